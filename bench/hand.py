"""Cases beside a hand-written statement: tasks that lost their order, caps that nothing is over, purges. Part of bench/bench.py."""
import statistics
import sys

import harness
import purges
from engines import ENGINES, timed

NOW = "2026-01-02T00:00:00Z"
OLD_MS = 1767225600000 - 3 * 86400 * 1000       # three days before the end of 2025
ORPHANS_OF = 100                                # one task in so many has lost its order


class Orphans:
    """Tasks whose order is gone: found and deleted."""
    limit = 1.5
    deletes = True
    contract = """
policies:
  tasks:
    table: tasks
    orphan: { of: orders(id), by: order_id }
    age: updated_at_ms
    keep: 1h
"""
    by_hand = f"""DELETE FROM tasks WHERE updated_at_ms < {OLD_MS + 1000}
                  AND NOT EXISTS (SELECT 1 FROM orders WHERE orders.id = tasks.order_id)"""

    @staticmethod
    def schema(rows):
        return [
            "CREATE TABLE orders (id integer PRIMARY KEY, note text)",
            "CREATE TABLE tasks (id integer PRIMARY KEY, order_id integer NOT NULL, updated_at_ms bigint NOT NULL, "
            "payload text)",
            f"INSERT INTO orders SELECT n, 'order ' || n FROM numbers WHERE n % {ORPHANS_OF} <> 0",
            f"INSERT INTO tasks SELECT n, n, {OLD_MS}, 'something to be done for order ' || n FROM numbers",
        ]

    @staticmethod
    def expected(rows):
        return rows // ORPHANS_OF


class IdleCap:
    """A cap of 500 over many groups, none of which is over it."""
    limit = 1.0
    deletes = False
    index = ""
    contract = """
policies:
  presence:
    table: presence
    cap: { rows: 500, per: [tenant_id], newest: [seen_at_ms] }
"""
    by_hand = """SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY tenant_id ORDER BY seen_at_ms DESC, id DESC)
                 AS n FROM presence) AS ranked WHERE n > 500"""

    @classmethod
    def schema(cls, rows):
        groups = max(1, min(10000, rows // 100))
        return [
            "CREATE TABLE presence (id integer PRIMARY KEY, tenant_id integer NOT NULL, seen_at_ms bigint NOT NULL, "
            "host text)",
            f"""INSERT INTO presence SELECT n, n * 7919 % {groups}, {OLD_MS} + n * 31 % 1000003, 'host ' || n
                FROM numbers""",
            *([cls.index] if cls.index else []),
        ]

    @staticmethod
    def expected(_rows):
        return 0


class IdleCapIndexed(IdleCap):
    """The same with the index that check names."""
    index = "CREATE INDEX presence_newest ON presence (tenant_id, seen_at_ms)"


CASES = {"orphans": Orphans, "cap-idle": IdleCap, "cap-idle-indexed": IdleCapIndexed, "purges-due": purges.Purges,
         "purges-schedule": purges.PurgesSchedule}


def run_lapse(place, case):
    command = getattr(case, "command", ("sweep", "--no-progress"))
    told = hasattr(case, "gone")                    # then what is left says how many went
    r = harness.lapse(place.db, case.contract, *command, *([] if told else ["--json"]), "--now", NOW, timeout=3000)
    if r.code:
        sys.exit(f"lapse failed: {r}")
    return None if told else sum(p["rows"] for p in r.json["policies"])


def compare(case, engine, rows, repeats):
    """Times of lapse and of the hand-written statement, in turns, each on the same data."""
    place = ENGINES[engine](case, rows)
    if hasattr(case, "compare"):
        return case.compare(place, rows, repeats)
    ways = {"lapse": lambda: run_lapse(place, case), "hand": lambda: place.by_hand(case.by_hand)}
    times = {name: [] for name in ways}
    for turn in range(repeats + 1):                 # the first turn warms up
        for name in (list(ways) if turn % 2 else list(reversed(ways))):
            if case.deletes or turn == 0:
                place.fresh()
            seconds, n = timed(ways[name])
            n = case.gone(place.db, rows) if hasattr(case, "gone") else n
            if n != case.expected(rows):
                sys.exit(f"{case.__name__} on {engine}: {name} took {n} rows, not {case.expected(rows)}")
            if turn:
                times[name].append(seconds)
            if case.deletes:
                place.end()
    return times


def spread(times):
    return f"{min(times):.2f} to {max(times):.2f}"


def main(names, engines, rows, repeats):
    """Prints the table; returns what missed its goal."""
    missed = []
    print(f"\n{rows} rows, {repeats} repeats; seconds are of this machine, the ratio is what counts.\n")
    print("| case | engine | by hand, s | lapse, s | lapse / by hand | goal |\n|---|---|---|---|---|---|", flush=True)
    for name in names:
        case = CASES[name]
        for engine in engines:
            t = compare(case, engine, rows, repeats)
            ratio = statistics.median(t["lapse"]) / statistics.median(t["hand"])
            if ratio > case.limit:
                missed.append(f"{name} on {engine}: {ratio:.2f} > {case.limit}")
            print(f"| {name} | {engine} | {spread(t['hand'])} | {spread(t['lapse'])} | {ratio:.2f} | ≤ {case.limit} |",
                  flush=True)
    return missed
