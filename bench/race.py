"""Contenders on the same data, in turns, beside the floor.

A case (tables.py, partman.py, boss.py) says what the data are and who takes part:

    engines                       where it can run
    contenders                    {name: (function, engines)}, the floor first. function(place, case, rows) deletes what is due and
                                  returns a dict of what it knows: longest_s of its longest transaction, seconds if it has a clock
                                  of its own, part if it only did a part. It raises Missing where it cannot run
    schema_on(engine, rows)       the statements that make the data, or build(db, rows), which makes them
    contract_on(engine, **keys)   a contract, with further keys of the policy
    floor_sql(engine), loop_sql(engine, limit)
    whole(rows), left(rows)       rows per table before and afterwards
    missing()                     why it cannot run here at all, or None; optional
"""
import json
import re
import statistics
import sys
import time

import process
from engines import ENGINES
from missing import Missing

WATCHED = 3         # so many sweeps at most are looked at batch by batch


# --- contenders that every case has -----------------------------------------------------------------------------

def floor(place, case, _rows):
    """One transaction with one DELETE per table, children first: nothing that leaves the same rows is less work."""
    start = time.monotonic()
    place.by_hand(case.floor_sql(place.engine))
    return {"longest_s": time.monotonic() - start}


def loop(place, case, _rows):
    """DELETE … WHERE id IN (SELECT … LIMIT 1000) until nothing goes, from one client; each statement commits by itself."""
    c = place.application()
    cursor = c.cursor()
    longest, gone = 0.0, 1
    while gone:
        gone = 0
        for sql in case.loop_sql(place.engine, 1000):
            start = time.monotonic()
            cursor.execute(sql)
            longest = max(longest, time.monotonic() - start)
            gone += max(0, cursor.rowcount)
    c.close()
    return {"longest_s": longest}


class Lapse:
    """lapse sweep, with further keys of the policy: the first of these sets that it takes."""

    def __init__(self, *variants):
        self.variants = variants or ({},)

    def contract(self, place, case):
        """Asked for keys that this lapse does not run, it takes no part."""
        why = None
        for keys in self.variants:
            contract = case.contract_on(place.engine, **keys)
            try:
                process.lapse(place.db, contract, "check", "--json")
                return contract
            except process.Failed as e:
                said = re.search(r"'[^']*' is validated but does not run in this version", str(e))
                if not keys or not (said or e.code == 2):
                    sys.exit(f"lapse failed: {e}")
                why = said[0] if said else why or "lapse refuses " + ", ".join(f"{k}: {v}" for k, v in keys.items())
        raise Missing(why)

    def __call__(self, place, case, _rows):
        try:
            done = process.sweep(place.db, self.contract(place, case), case.now())
        except process.Failed as e:
            sys.exit(f"lapse failed: {e}")
        policies = json.loads(done.out)["policies"]
        return {"seconds": done.seconds, "peak_kb": done.peak_kb, "batches": sum(p.get("batches", 0) for p in policies)}

    def watch(self, place, case):
        """Every batch of a sweep."""
        return process.batches(place.db, self.contract(place, case), case.now())


# A sweep that looks at nobody else.
PACE_OFF = ({"pace": "off"}, {"pace": "{ target: never, duty: 1 }"}, {"pace": "{ target: 1h, duty: 1 }"})


# --- the race ---------------------------------------------------------------------------------------------------

def look(place, case, rows):
    """What is left. Rows that had to stay and went are worse than any time."""
    found = {t: place.db.rows(f"SELECT count(*) FROM {t}")[0][0] for t in case.whole(rows)}
    place.db.close()
    return found


def wal_bytes(place):
    if place.engine != "postgresql":
        return None
    at, = place.db.rows("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0]
    place.db.close()
    return int(at)


def prepared(place):
    place.fresh()
    if hasattr(place, "warm"):
        place.warm()


def judge(place, case, rows, who, part=False):
    """The rows that went. Ends the benchmark if they are not those that were due; of a part, none may have had to stay."""
    found, due = look(place, case, rows), case.left(rows)
    if any(found[t] < n for t, n in due.items()) if part else found != due:
        sys.exit(f"{case.__name__} on {place.engine}: {who} left {found}, not {due}")
    return sum(n - found[t] for t, n in case.whole(rows).items())


def one(place, case, name, rows):
    """One run of a contender on fresh data: its seconds, rows and what else was measured."""
    prepared(place)
    before, start = wal_bytes(place), time.monotonic()
    run = case.contenders[name][0](place, case, rows)
    run.setdefault("seconds", time.monotonic() - start)
    if before is not None:
        run["wal_bytes"] = wal_bytes(place) - before
    run["rows"] = judge(place, case, rows, name, "part" in run)
    place.end()
    return run


def watched(place, case, name, rows):
    """The batches of one sweep on fresh data."""
    prepared(place)
    found = case.contenders[name][0].watch(place, case)
    judge(place, case, rows, name)
    place.end()
    return found


def compare(case, engine, rows, repeats, takes_part=lambda who: True, say=lambda text: None):
    """{contender: {"runs": [run, …], "watched": [[batch, …], …]} or {"missing": why}}, the floor first."""
    place = ENGINES[engine](case, rows)
    names = [n for n, (_, engines) in case.contenders.items() if engine in engines and takes_part(n)]
    results = {n: {"runs": []} for n in names}
    for turn in range(repeats):         # what is missing is known after the first
        for n in (names if turn % 2 == 0 else names[::-1]):
            if "missing" in results[n]:
                continue
            try:
                run = one(place, case, n, rows)
                results[n]["runs"].append(run)
                say(f"{case.name} on {engine}, turn {turn + 1} of {repeats}: {n}: {run['seconds']:.2f} s, "
                    f"{run['rows'] / run['seconds']:.0f} rows/s")
                if turn < WATCHED and hasattr(case.contenders[n][0], "watch") and process.batches_program().is_file():
                    results[n].setdefault("watched", []).append(watched(place, case, n, rows))
            except Missing as e:
                results[n] = {"missing": str(e)}
                say(f"{case.name} on {engine}: {n} takes no part: {e}")
    place.drop()
    return results


# --- what the figures say ---------------------------------------------------------------------------------------

def rates(result):
    return [r["rows"] / r["seconds"] for r in result["runs"]]


def ratios(results):
    """{contender: [rows per second of each run / those of the floor in the same turn]}."""
    base = rates(results["floor"])
    return {n: [a / b for a, b in zip(rates(r), base)] for n, r in results.items() if r.get("runs")}


def tenths(batches):
    """How much longer a row took in the last tenth of the batches than in the first; None when there are too few."""
    part = len(batches) // 10
    if part < 1:
        return None
    took = [sum(b[1] for b in some) / max(1, sum(b[2] for b in some)) for some in (batches[:part], batches[-part:])]
    return took[1] / took[0]


def longest_s(result):
    """Of each run, its longest transaction."""
    if result.get("watched"):
        return [max(b[1] for b in run) / 1e6 for run in result["watched"] if run]
    return [r["longest_s"] for r in result.get("runs", ()) if "longest_s" in r]


def median(values):
    return statistics.median(values) if values else None
