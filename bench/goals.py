"""What lapse set out to reach, and whether the figures show it.

    goals(data) -> [Goal(what, wanted, found, met), …]; met is None where nothing was measured.
"""
import collections

import race

Goal = collections.namedtuple("Goal", "what wanted found met")
NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mariadb": "MariaDB"}


def at_least(what, wanted, found, unit=""):
    return Goal(what, f"≥ {wanted:g}{unit}", None if found is None else f"{found:.2f}{unit}", None if found is None else found >= wanted)


def at_most(what, wanted, found, unit=""):
    return Goal(what, f"≤ {wanted:g}{unit}", None if found is None else f"{found:.3g}{unit}", None if found is None else found <= wanted)


def result(data, key, who):
    found = data.get("races", {}).get(key, {}).get("contenders", {}).get(who, {})
    return found if found.get("runs") else None


def ratio(data, key, who="lapse", to="floor"):
    """The median over the turns of `who` to `to`, in rows per second."""
    a, b = result(data, key, who), result(data, key, to)
    return race.median([x / y for x, y in zip(race.rates(a), race.rates(b))]) if a and b else None


def speed(data):
    two = "lapse, 2 workers"
    yield at_least("PostgreSQL with foreign keys, one connection, of the floor", 1.0, ratio(data, "sweep-fk postgresql"))
    yield at_least("PostgreSQL with foreign keys, two connections", 1.4, ratio(data, "sweep-fk postgresql", two))
    yield at_least("PostgreSQL without foreign keys, one connection", 0.85, ratio(data, "sweep postgresql"))
    yield at_least("PostgreSQL without foreign keys, two connections", 1.5, ratio(data, "sweep postgresql", two))
    yield at_least("SQLite", 1.2, ratio(data, "sweep-fk sqlite"))
    yield at_least("MariaDB", 0.9, ratio(data, "sweep-fk mariadb"))
    yield at_least("MariaDB, of pt-archiver's bulk mode", 4, ratio(data, "sweep-fk mariadb", "lapse", "pt-archiver, bulk"))


def evenness(data):
    for key, found in data.get("races", {}).items():
        lapse, even = (found["contenders"].get(who, {}) for who in ("lapse", "lapse, pace off"))
        where = f"{NAMES[found['engine']]}, {found['case']}"
        if found["case"].startswith("sweep") and lapse.get("watched"):
            if found["engine"] == "postgresql":
                longest = race.median(race.longest_s(lapse))
                yield at_most(f"{where}: longest transaction", 100, longest and 1000 * longest, " ms")
            # with a pace, the first batches are small ones that feel their way: they would flatter the last
            each = [t for t in map(race.tenths, (even if even.get("watched") else lapse)["watched"]) if t]
            yield at_most(f"{where}: a row in the last tenth of the batches / in the first", 1.1, race.median(each))


def growth(data):
    for key, found in sorted(data.get("growth", {}).items()):
        where = NAMES[found["engine"]]
        small, big = found["sizes"][0], found["sizes"][-1]
        yield at_most(f"{where}: time per row, {big['due']:,} due rows / {small['due']:,}", 1.1,
                      (big["seconds"] / big["due"]) / (small["seconds"] / small["due"]))
        yield at_most(f"{where}: memory, {big['due']:,} due rows / {small['due']:,}", 1.05,
                      big["peak_kb"] / small["peak_kb"] if small["peak_kb"] else None)


def calm(data):
    for key, found in sorted(data.get("load", {}).items()):
        where, phases = NAMES[found["engine"]], {p["phase"]: p for p in found["phases"]}
        idle, lapse = phases.get("idle"), phases.get("lapse")
        if not idle or not lapse:
            continue
        yield at_most(f"{where}: the application's p99 while lapse sweeps / alone", 2, lapse["p99_ms"] / idle["p99_ms"])
        if found["engine"] == "sqlite":
            yield at_most("SQLite: p99 while lapse sweeps", 10, lapse["p99_ms"], " ms")
            yield at_least("SQLite: the application's rate of writes while lapse sweeps", 0.7, lapse["writes_s"] / idle["writes_s"])
            yield at_most("SQLite: statements that found the database busy", 0, float(lapse["errors"]))


def goals(data):
    return [g for part in (speed, evenness, growth, calm) for g in part(data)]
