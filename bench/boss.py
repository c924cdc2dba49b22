"""The case `pg-boss`: finished jobs in pg-boss's own tables, on PostgreSQL. It moves them to an archive and deletes them from
there later; lapse deletes them where they are.

pg-boss is installed by scripts/setup (tests/node; version 10, for Node 20 and later). Its tables have no index that finds what has
ended; `lapse check` names one, and lapse is measured without it and with it.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import harness
from missing import Missing
from race import Lapse, floor, loop

HERE = ("postgresql",)
SCRIPT = Path(__file__).resolve().parent / "boss.js"
NOW = "2026-01-02T00:00:00Z"


def modules():
    """The folder with pg-boss in it."""
    found = harness.node_modules()
    if not found:
        raise Missing("pg-boss is not installed: run scripts/setup bench")
    return found


def boss(action, db):
    done = subprocess.run(["node", str(SCRIPT), action, db.dsn], capture_output=True, text=True, cwd=harness.folder(),
                          env={"PATH": os.environ["PATH"], "HOME": str(harness.folder()), "NODE_PATH": str(modules()), "TZ": "UTC"})
    if done.returncode:
        sys.exit(f"pg-boss failed: {done.stdout}{done.stderr}")
    return done.stdout


def purge(place, _case, _rows):
    """Its two steps, without the time between them."""
    took = json.loads(boss("purge", place.db))
    return {"seconds": took["archive_s"] + took["drop_s"], "longest_s": max(took.values())}


class Indexed(Lapse):
    """lapse, with the index that check names."""

    def contract(self, place, case):
        place.db.execute("CREATE INDEX IF NOT EXISTS job_completed_on ON pgboss.job (completed_on, name, id)")
        place.db.close()
        return super().contract(place, case)


class Jobs:
    """Jobs of one queue; six of ten ended long ago, the others wait or ended just now."""
    name, title = "pg-boss", "finished jobs of pg-boss"
    engines = HERE
    contenders = {
        "floor": (floor, HERE),
        "lapse": (Lapse(), HERE),
        "lapse, with its index": (Indexed(), HERE),
        "loop": (loop, HERE),
        "pg-boss": (purge, HERE),
    }

    @staticmethod
    def missing():
        modules()

    @staticmethod
    def now():
        return NOW

    @staticmethod
    def whole(rows):
        return {"pgboss.job": rows, "pgboss.archive": 0}

    @staticmethod
    def left(rows):
        return {"pgboss.job": rows - sum(rows // 10 + (n <= rows % 10) for n in range(1, 7)), "pgboss.archive": 0}

    @staticmethod
    def contract_on(_engine, **keys):
        more = "".join(f"    {k}: {v}\n" for k, v in keys.items())
        return f"""
policies:
  job:
    table: pgboss.job
    rows: {{ state: [completed, cancelled, failed] }}
    age: completed_on
    keep: 12h
{more}"""

    @staticmethod
    def due():
        return f"completed_on < timestamptz '{NOW}' - interval '12 hours' AND state IN ('completed', 'cancelled', 'failed')"

    @classmethod
    def floor_sql(cls, _engine):
        return [f"DELETE FROM pgboss.job WHERE {cls.due()}"]

    @classmethod
    def loop_sql(cls, _engine, limit):
        return [f"DELETE FROM pgboss.job WHERE (name, id) IN (SELECT name, id FROM pgboss.job WHERE {cls.due()} LIMIT {limit})"]

    @staticmethod
    def build(db, rows):
        boss("install", db)
        db.execute(f"""
            INSERT INTO pgboss.job (name, data, state, created_on, started_on, completed_on, keep_until, output)
            SELECT 'mail', jsonb_build_object('to', 'user ' || n), CASE WHEN n % 10 BETWEEN 1 AND 5 THEN 'completed' WHEN n % 10 = 6
                THEN 'failed' WHEN n % 10 IN (7, 8) THEN 'completed' ELSE 'created' END::pgboss.job_state,
                created, created, CASE WHEN n % 10 BETWEEN 1 AND 6 THEN created WHEN n % 10 IN (7, 8) THEN now() + interval '1 day' END,
                now() + interval '14 days', NULL
            FROM (SELECT n, timestamptz '{NOW}' - interval '30 days' + n * interval '1 second' AS created
                  FROM generate_series(1, {rows}) AS n) AS made""")
