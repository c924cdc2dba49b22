"""Where the benchmark's data live: built once per case, and given to each contender as it was.

    place = ENGINES[name](case, rows)    # case.schema(rows) or case.schema_on(engine, rows): statements
    place.fresh()                        # another copy of the data: place.db; call it before each contender that writes
    place.end()                          # done with that copy

Servers are set up as in production: what is committed is on the disk. Only cleaning up in the background is off where an
engine lets us, so that nobody pays for what another left behind.
"""
import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import cron
import harness


def install(db, case):
    if getattr(case, "install", False):
        r = harness.lapse(db, case.contract, "install")
        if r.code:
            sys.exit(f"lapse failed: {r}")


def statements(case, engine, rows):
    if hasattr(case, "build"):          # it makes them itself
        return []
    return case.schema_on(engine, rows) if hasattr(case, "schema_on") else case.schema(rows)


class OnSqlite:
    engine = "sqlite"

    def __init__(self, case, rows):
        self.original = harness.Sqlite()
        c = self.original.connection
        c.execute("PRAGMA journal_mode=WAL")
        c.execute("CREATE TEMP TABLE numbers (n integer PRIMARY KEY)")
        c.execute(f"""INSERT INTO numbers WITH RECURSIVE one(n) AS
                      (SELECT 1 UNION ALL SELECT n + 1 FROM one WHERE n < {rows}) SELECT n FROM one""")
        install(self.original, case)
        for sql in statements(case, self.engine, rows):
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
        c.execute("PRAGMA foreign_keys = ON")
        n = 0
        for one in [sql] if isinstance(sql, str) else ["BEGIN IMMEDIATE", *sql]:
            done = c.execute(one)
            n += done.rowcount if done.rowcount >= 0 else len(done.fetchall())
        if c.in_transaction:
            c.execute("COMMIT")
        c.close()
        return n

    def application(self):
        """A connection that keeps what it commits, as an application's does and not every test's."""
        c = sqlite3.connect(self.db.path, isolation_level=None, timeout=30, check_same_thread=False)
        c.execute("PRAGMA foreign_keys = ON")
        return c

    def end(self):
        if self.db is not self.original:
            self.db.drop()

    def drop(self):
        self.original.drop()

    @staticmethod
    def version():
        return f"SQLite {sqlite3.sqlite_version}"


class OnPostgres:
    engine = "postgresql"
    server = None
    SETTINGS = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "1GB", "max_wal_size": "8GB",
                "checkpoint_timeout": "30min", "autovacuum": "off", "max_worker_processes": "16"}

    def __init__(self, case, rows):
        self.server = self._server()
        self.original = self.server.fresh()
        self.original.execute(f"CREATE TEMP TABLE numbers AS SELECT n FROM generate_series(1::bigint, {rows}) AS n")
        install(self.original, case)
        for sql in statements(case, self.engine, rows):
            self.original.execute(sql)
        if hasattr(case, "build"):
            case.build(self.original, rows)
        self.original.execute("VACUUM ANALYZE")
        self.original.close()
        self.db = self.original

    @classmethod
    def _server(cls):
        if not OnPostgres.server:
            OnPostgres.server = harness.Postgres(settings={**cls.SETTINGS, **cron.settings()})
        return OnPostgres.server

    def fresh(self):
        name = f"{self.original.name}_copy"
        self.server.admin(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.server.admin(f"CREATE DATABASE {name} TEMPLATE {self.original.name}")
        self.server.admin("CHECKPOINT")
        self.db = harness.PostgresDatabase(self.server, name)

    def warm(self):
        """Reads the tables into memory: otherwise the first contender would do it for the others."""
        self.db.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        self.db.rows("SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relkind IN ('r', 'i') AND oid >= 16384")
        self.db.execute("DROP EXTENSION pg_prewarm")
        self.db.close()

    def by_hand(self, sql):
        with contextlib.closing(self.db.connect()) as c, c.cursor() as cursor:
            n = 0
            for one in [sql] if isinstance(sql, str) else ["BEGIN", *sql, "COMMIT"]:
                cursor.execute(one)
                n += max(0, cursor.rowcount)
        self.db.close()
        return n

    def application(self):
        return self.db.connect()

    def end(self):
        self.db.close()

    def drop(self):
        for name in (f"{self.original.name}_copy", self.original.name):
            self.server.admin(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    @classmethod
    def version(cls):
        said = subprocess.run([sorted(harness.Path("/usr/lib/postgresql").glob("*/bin/postgres"))[-1], "--version"],
                              capture_output=True, text=True).stdout
        return "PostgreSQL " + said.split()[2]


class OnMariadb:
    """A copy of the data is a copy of the server's folder: nothing that copies tables is as fast."""
    engine = "mariadb"
    SETTINGS = {"innodb-flush-method": "fsync", "innodb-fast-shutdown": "0"}
    ROOM = {"innodb-buffer-pool-size": "1G", "innodb-log-file-size": "1G"}          # a few rows do not need it
    SOON = {"innodb-flush-log-at-trx-commit": "0", "innodb-doublewrite": "0"}       # while the data are made

    def __init__(self, case, rows):
        settings = {**self.SETTINGS, **(self.ROOM if rows >= 50000 else {})}
        self.server = harness.Mariadb(settings={**settings, **self.SOON})
        self.db = self.original = self.server.fresh()
        self.original.execute(f"CREATE TEMPORARY TABLE numbers AS SELECT CAST(seq AS SIGNED) AS n FROM seq_1_to_{max(1, rows)}")
        install(self.original, case)
        for sql in statements(case, self.engine, rows):
            self.original.execute(sql)
        tables = ", ".join(self.original.tables())
        self.original.rows(f"ANALYZE TABLE {tables}")
        self.original.close()
        self.server.stop(signal.SIGTERM)        # a slow shutdown: nothing is left to be purged
        self.kept = harness.new_path("maria-original")
        self.server.data.rename(self.kept)
        self.server._settings = {**harness.Mariadb.SETTINGS, **settings}

    def fresh(self):
        self.server.stop()
        shutil.rmtree(self.server.data, ignore_errors=True)
        subprocess.run(["cp", "-a", self.kept, self.server.data], check=True)
        self.server.start()

    def warm(self):
        for table in self.db.tables():
            for index, in self.db.rows("SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema ="
                                       " database() AND table_name = ?", (table.strip('"'),)):
                self.db.rows(f"SELECT count(*) FROM {table} FORCE INDEX (`{index}`)")
        self.db.close()

    def by_hand(self, sql):
        c = self.db.connect()
        n = 0
        for one in [sql] if isinstance(sql, str) else ["START TRANSACTION", *sql, "COMMIT"]:
            n += c.execute(one).rowcount
        c.close()
        return n

    def application(self):
        return self.db.connect()

    def end(self):
        self.db.close()

    def drop(self):
        self.server.stop()
        shutil.rmtree(self.server.data, ignore_errors=True)
        shutil.rmtree(self.kept, ignore_errors=True)

    @staticmethod
    def version():
        return "MariaDB " + subprocess.run(["mariadbd", "--version"], capture_output=True, text=True).stdout.split()[2].split("-")[0]


ENGINES = {"sqlite": OnSqlite, "postgresql": OnPostgres, "mariadb": OnMariadb}


def timed(work):
    start = time.monotonic()
    result = work()
    return time.monotonic() - start, result
