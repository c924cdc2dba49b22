"""The cases `sweep-fk` and `sweep`: executions, their logs and their places in a queue; 60 % of the executions are due.

Of `rows` executions the oldest two thirds have passed their time; one in ten of these is still running and stays. Each has
three log rows, every other one a queue row. So 1,000,000 executions are 3,000,000 and 500,000 rows that go with them.
"""
import cron
import pt_archiver
from race import PACE_OFF, Lapse, floor, loop

NOW = "2026-01-02T00:00:00Z"
CUTOFF_MS = 1767312000000 - 30 * 60 * 1000
NAMES = ("ManifestManagerTrain", "MetadataCleanupTrain")
STATES = ("completed", "failed", "cancelled")
LOGS = 3
ALL = ("sqlite", "postgresql", "mariadb")
CHILDREN = ("log", "work_queue")

# How each engine keeps an id, a time and a name, and how it makes a time of milliseconds.
WORDS = {
    "sqlite": ("integer", "integer", "text", "{ms}", "{ms}"),
    "postgresql": ("bigint", "timestamptz", "text", "to_timestamp(({ms}) / 1000.0)", "to_timestamp({ms} / 1000.0)"),
    "mariadb": ("bigint", "datetime(3)", "varchar(64)", "from_unixtime(({ms}) / 1000.0)", "'2026-01-01 23:30:00'"),
}


def old(rows):
    """So many have passed their time."""
    return rows * 2 // 3


def due(rows):
    """… and so many of them have ended."""
    return old(rows) - old(rows) // 10


def due_queue(rows):
    """Due executions with an even number."""
    return old(rows) // 2 - old(rows) // 10


def at(engine, ms):
    """An instant as this engine writes it."""
    return WORDS[engine][3].format(ms=ms)


def condition(engine, this="metadata"):
    cutoff = WORDS[engine][4].format(ms=CUTOFF_MS)
    return (f"{this}.start_time < {cutoff} AND {this}.name IN {NAMES!r} AND {this}.train_state IN {STATES!r}")


class Tables:
    """Executions and what belongs to them, tied by foreign keys."""
    name, title = "sweep-fk", "with foreign keys"
    foreign_keys = True
    engines = ALL
    contenders = {
        "floor": (floor, ALL),
        "lapse": (Lapse(), ALL),
        "lapse, pace off": (Lapse(*PACE_OFF), ALL),
        "lapse, 2 workers": (Lapse({"workers": 2}), ("postgresql", "mariadb")),
        "loop": (loop, ALL),
        "pg_cron": (cron.run, ("postgresql",)),
        "pt-archiver, bulk": (pt_archiver.Archiver("--bulk-delete", "--commit-each"), ("mariadb",)),
        "pt-archiver, row by row": (pt_archiver.Archiver(one_of=100), ("mariadb",)),
    }

    condition = staticmethod(condition)

    @staticmethod
    def missing():
        """It can run wherever the engines can."""

    @staticmethod
    def now():
        return NOW

    @staticmethod
    def whole(rows):
        return {"metadata": rows, "log": rows * LOGS, "work_queue": rows // 2}

    @staticmethod
    def left(rows):
        stay = rows - due(rows)
        return {"metadata": stay, "log": stay * LOGS, "work_queue": rows // 2 - due_queue(rows)}

    @staticmethod
    def floor_sql(engine):
        this = condition(engine)
        if engine == "mariadb":     # which would look at every log row for an IN
            children = [f"DELETE {t} FROM {t} JOIN metadata ON metadata.id = {t}.metadata_id WHERE {this}" for t in CHILDREN]
        else:
            children = [f"DELETE FROM {t} WHERE metadata_id IN (SELECT id FROM metadata WHERE {this})" for t in CHILDREN]
        return children + [f"DELETE FROM metadata WHERE {this}"]

    @staticmethod
    def loop_sql(engine, limit):
        """The children of the next so many, then these themselves."""
        this = condition(engine)
        some = f"SELECT id FROM metadata WHERE {this} ORDER BY start_time LIMIT {limit}"
        if engine == "mariadb":     # which has no LIMIT below IN
            return [f"DELETE {t} FROM {t} JOIN ({some}) AS picked ON picked.id = {t}.metadata_id" for t in CHILDREN] + [
                f"DELETE FROM metadata WHERE {this} ORDER BY start_time LIMIT {limit}"]
        return [f"DELETE FROM {t} WHERE metadata_id IN ({some})" for t in CHILDREN] + [
            f"DELETE FROM metadata WHERE id IN ({some})"]

    @classmethod
    def contract_on(cls, engine, **keys):
        more = "".join(f"    {k}: {v}\n" for k, v in keys.items())
        unit = "    unit: ms\n" if engine == "sqlite" else ""
        return f"""
policies:
  metadata:
    table: metadata
    rows: {{ name: [{', '.join(NAMES)}], train_state: [{', '.join(STATES)}] }}
    age: start_time
    keep: 30m
    with: [work_queue(metadata_id), log(metadata_id)]
{unit}{more}"""

    @classmethod
    def schema_on(cls, engine, rows):
        key, time, name, made, _ = WORDS[engine]
        tie = f", FOREIGN KEY (metadata_id) REFERENCES metadata(id)" if cls.foreign_keys else ""
        at = made.format(ms=f"{CUTOFF_MS} + CASE WHEN n <= {old(rows)} THEN (n - {old(rows)} - 1) * 1000 ELSE n - {old(rows)} END")
        state = "CASE n % 10 WHEN 0 THEN 'in_progress' WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled' ELSE 'completed' END"
        three = "(SELECT 0 AS k UNION ALL SELECT 1 UNION ALL SELECT 2) AS three"
        return [
            f"CREATE TABLE metadata (id {key} PRIMARY KEY, name {name} NOT NULL, train_state {name} NOT NULL, "
            f"start_time {time} NOT NULL, end_time {time}, input text)",
            f"CREATE TABLE log (id {key} PRIMARY KEY, metadata_id {key} NOT NULL, level {name}, message text{tie})",
            f"CREATE TABLE work_queue (id {key} PRIMARY KEY, metadata_id {key} NOT NULL, status {name}, attempts integer{tie})",
            f"INSERT INTO metadata SELECT n, CASE n % 2 WHEN 0 THEN '{NAMES[0]}' ELSE '{NAMES[1]}' END, {state}, {at}, {at}, "
            "'{\"manifest\": ' || n || ', \"reason\": \"every few seconds\"}' FROM numbers ORDER BY n",
            f"INSERT INTO log SELECT (n - 1) * {LOGS} + k + 1, n, 'information', 'step ' || k || ' of execution ' || n || "
            f"' came to its end without anything to tell' FROM numbers, {three} ORDER BY n, k",
            "INSERT INTO work_queue SELECT n / 2, n, 'dispatched', 1 FROM numbers WHERE n % 2 = 0 ORDER BY n",
            "CREATE INDEX metadata_start_time ON metadata (start_time)",
            *([] if engine == "mariadb" and cls.foreign_keys else      # which makes them itself
              ["CREATE INDEX log_metadata_id ON log (metadata_id)",
               "CREATE INDEX work_queue_metadata_id ON work_queue (metadata_id)"]),
        ]


class TablesWithoutKeys(Tables):
    """The same without foreign keys."""
    name, title = "sweep", "without foreign keys"
    engines = ("postgresql",)       # where it makes the difference
    foreign_keys = False
