"""The case `partitions`: events in a partition per day, on PostgreSQL. pg_partman drops the partitions that are older than its
retention; lapse deletes rows, or drops partitions where it is told to.

Days are counted from the midnight (UTC) before the run, because pg_partman's retention looks at the clock. So what is due
ends where a partition ends, and everybody has to leave the same rows.
"""
import datetime
from pathlib import Path

from missing import Missing
from race import Lapse, floor, loop

DAYS, KEPT = 30, 12
HERE = ("postgresql",)
TODAY = datetime.datetime.now(datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
CUTOFF = f"timestamptz '{(TODAY - datetime.timedelta(days=KEPT)).isoformat()}'"


def installed():
    return any(Path("/usr/share/postgresql").glob("*/extension/pg_partman.control"))


def maintain(place, _case, _rows):
    place.by_hand("SELECT partman.run_maintenance('public.event')")
    return {}


class Partitions:
    """A table of events, a partition a day."""
    name, title = "partitions", "events, a partition per day"
    engines = HERE
    contenders = {
        "floor": (floor, HERE),
        "lapse": (Lapse(), HERE),
        "lapse, partitions: drop": (Lapse({"partitions": "drop"}), HERE),
        "loop": (loop, HERE),
        "pg_partman": (maintain, HERE),
    }

    @staticmethod
    def missing():
        if not installed():
            raise Missing("pg_partman is not installed: run scripts/setup bench")

    @staticmethod
    def now():
        return TODAY.strftime("%Y-%m-%dT%H:%M:%SZ")

    @staticmethod
    def whole(rows):
        return {"event": rows}

    @staticmethod
    def left(rows):
        """Row n is of day n % DAYS before today's midnight; the first KEPT days stay."""
        return {"event": sum(1 for day in range(DAYS) for _ in range(rows // DAYS + (0 < (day or DAYS) <= rows % DAYS)) if day < KEPT)}

    @staticmethod
    def contract_on(_engine, **keys):
        more = "".join(f"    {k}: {v}\n" for k, v in keys.items())
        return f"policies:\n  event:\n    table: event\n    age: at\n    keep: {KEPT}d\n{more}"

    @staticmethod
    def floor_sql(_engine):
        return [f"DELETE FROM event WHERE at < {CUTOFF}"]

    @staticmethod
    def loop_sql(_engine, limit):
        return [f"DELETE FROM event WHERE (id, at) IN (SELECT id, at FROM event WHERE at < {CUTOFF} ORDER BY at LIMIT {limit})"]

    @staticmethod
    def schema_on(_engine, _rows):
        first = (TODAY - datetime.timedelta(days=DAYS)).isoformat()
        return [
            "CREATE SCHEMA partman",
            "CREATE EXTENSION pg_partman SCHEMA partman",
            "CREATE TABLE event (id bigint, at timestamptz NOT NULL, kind text, payload text, PRIMARY KEY (id, at)) "
            "PARTITION BY RANGE (at)",
            "CREATE INDEX event_at ON event (at)",
            f"SELECT partman.create_parent('public.event', 'at', 'native', 'daily', p_start_partition := '{first}')",
            f"UPDATE partman.part_config SET retention = '{KEPT} days', retention_keep_table = false",
            # in the order in which they came, a second apart at most
            f"INSERT INTO event SELECT n, timestamptz '{TODAY.isoformat()}' - (n % {DAYS}) * interval '1 day' - "
            "(n % 86000) * interval '1 second' - interval '1 second', 'login', 'something that happened to user ' || n FROM numbers "
            f"ORDER BY 2",
        ]
