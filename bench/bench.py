#!/usr/bin/python3
"""bench/bench.py [--rows N] [--repeats N] [--engine NAME] [CASE…]: lapse beside what one would write by hand.

The case `daemon` (--policies N, --seconds N, --ticks N) is idle.py's: what a daemon costs that has nothing to do.

Everything is compared in one run, alternating, as a ratio of medians: a machine's absolute times mean nothing. Prints a
Markdown table; a ratio above the case's limit makes it end with 1 (with --report it only says so).
"""
import argparse
import shutil
import sqlite3
import statistics
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import harness
import idle
import purges

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


CASES = {"orphans": Orphans, "cap-idle": IdleCap, "cap-idle-indexed": IdleCapIndexed, "purges": purges.Purges, "purges-idle": purges.PurgesIdle}
DAEMON = "daemon"


def install(db, case):
    if getattr(case, "install", False):
        r = harness.lapse(db, case.contract, "install")
        if r.code:
            sys.exit(f"lapse failed: {r}")


class OnSqlite:
    def __init__(self, case, rows):
        self.original = harness.Sqlite()
        c = self.original.connection
        c.execute("PRAGMA journal_mode=WAL")
        c.execute("CREATE TEMP TABLE numbers (n integer PRIMARY KEY)")
        c.execute(f"""INSERT INTO numbers WITH RECURSIVE one(n) AS
                      (SELECT 1 UNION ALL SELECT n + 1 FROM one WHERE n < {rows}) SELECT n FROM one""")
        install(self.original, case)
        for sql in case.schema(rows):
            c.execute(sql)
        c.execute("ANALYZE")
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db = self.original

    def fresh(self):
        """A copy of the data as it was."""
        self.db = harness.Sqlite()
        self.db.close()
        self.original.close()
        shutil.copyfile(self.original.path, self.db.path)

    def by_hand(self, sql):
        c = sqlite3.connect(self.db.path, isolation_level=None)
        n = 0
        for one in [sql] if isinstance(sql, str) else ["BEGIN IMMEDIATE", *sql]:
            done = c.execute(one)
            n += done.rowcount if done.rowcount >= 0 else len(done.fetchall())
        if c.in_transaction:
            c.execute("COMMIT")
        c.close()
        return n

    def end(self):
        if self.db is not self.original:
            self.db.drop()


class OnPostgres:
    server = None

    def __init__(self, case, rows):
        if not OnPostgres.server:
            OnPostgres.server = harness.Postgres(settings={"max_wal_size": "4GB", "shared_buffers": "256MB"})
        self.original = self.server.fresh()
        self.original.execute(f"CREATE TEMP TABLE numbers AS SELECT n FROM generate_series(1::bigint, {rows}) AS n")
        install(self.original, case)
        for sql in case.schema(rows):
            self.original.execute(sql)
        self.original.execute("VACUUM ANALYZE")
        self.original.close()
        self.db = self.original

    def fresh(self):
        name = f"{self.original.name}_copy"
        self.server.admin(f"DROP DATABASE IF EXISTS {name}")
        self.server.admin(f"CREATE DATABASE {name} TEMPLATE {self.original.name}")
        self.server.admin("CHECKPOINT")
        self.db = harness.PostgresDatabase(self.server, name)

    def by_hand(self, sql):
        with self.db.connect() as c, c.cursor() as cursor:
            n = 0
            for one in [sql] if isinstance(sql, str) else sql:
                cursor.execute(one)
                n += cursor.rowcount
            c.commit()
        self.db.close()
        return n

    def end(self):
        pass


ENGINES = {"sqlite": OnSqlite, "postgresql": OnPostgres}


def timed(work):
    start = time.monotonic()
    result = work()
    return time.monotonic() - start, result


def run_lapse(place, case, contract=None):
    command = getattr(case, "command", ("sweep", "--no-progress"))
    r = harness.lapse(place.db, contract or case.contract, *command, "--json", "--now", NOW, timeout=3000)
    if r.code:
        sys.exit(f"lapse failed: {r}")
    return case.count(r.json) if hasattr(case, "count") else sum(p["rows"] for p in r.json["policies"])


def compare(case, engine, rows, repeats):
    """Times of lapse and of the hand-written statement, in turns, each on the same data."""
    place = ENGINES[engine](case, rows)
    by_hand = (lambda: place.by_hand(case.by_hand)) if case.by_hand else (lambda: run_lapse(place, case, case.other_contract))
    ways = {"lapse": lambda: run_lapse(place, case), "hand": by_hand}
    times = {name: [] for name in ways}
    for turn in range(repeats + 1):                 # the first turn warms up
        for name in (list(ways) if turn % 2 else list(reversed(ways))):
            if case.deletes or turn == 0:
                place.fresh()
            seconds, n = timed(ways[name])
            if n != case.expected(rows):
                sys.exit(f"{case.__name__} on {engine}: {name} took {n} rows, not {case.expected(rows)}")
            if turn:
                times[name].append(seconds)
            if case.deletes:
                place.end()
    return times


def spread(times):
    return f"{min(times):.2f} to {max(times):.2f}"


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--rows", type=int, default=1000000)
    args.add_argument("--repeats", type=int, default=5)
    args.add_argument("--engine", choices=ENGINES, action="append")
    args.add_argument("--report", action="store_true", help="say what misses its goal, but end with 0")
    args.add_argument("--policies", type=int, default=1000)
    args.add_argument("--seconds", type=float, default=60, help="how long an idle daemon is watched")
    args.add_argument("--ticks", type=int, default=10000, help="over which its memory is watched")
    args.add_argument("cases", nargs="*", metavar="CASE", help=", ".join([*CASES, DAEMON]))
    o = args.parse_args()
    for name in o.cases:
        if name not in CASES and name != DAEMON:
            args.error(f"there is no case '{name}'; there are {', '.join([*CASES, DAEMON])}")
    missed = []
    by_hand = [name for name in o.cases or CASES if name != DAEMON]
    if by_hand:
        print(f"{o.rows} rows, {o.repeats} repeats; seconds are of this machine, the ratio is what counts.\n")
        print("| case | engine | by hand, s | lapse, s | lapse / by hand | goal |")
        print("|---|---|---|---|---|---|", flush=True)
    for name in by_hand:
        case = CASES[name]
        for engine in o.engine or ENGINES:
            t = compare(case, engine, o.rows, o.repeats)
            ratio = statistics.median(t["lapse"]) / statistics.median(t["hand"])
            if ratio > case.limit:
                missed.append(f"{name} on {engine}: {ratio:.2f} > {case.limit}")
            print(f"| {name} | {engine} | {spread(t['hand'])} | {spread(t['lapse'])} | {ratio:.2f} | ≤ {case.limit} |",
                  flush=True)
    if not o.cases or DAEMON in o.cases:
        missed += idle.main(o.engine or list(ENGINES), o.policies, 5 if o.seconds > 5 else 1, o.seconds, o.ticks)
    print("\nEvery goal is met." if not missed else "\nMissed: " + "; ".join(missed))
    return 1 if missed and not o.report else 0


if __name__ == "__main__":
    sys.exit(main())
