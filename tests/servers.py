"""Real databases for tests: folders that go away at the end, SQLite files, PostgreSQL servers of our own."""
import atexit
import contextlib
import itertools
import os
import pwd
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg2


# --- folders and ends ----------------------------------------------------------------------------------

# In the names of this process's databases: processes share a server, and a number of a process comes again within one run.
RUN = f"{os.getpid()}_{random.SystemRandom().randrange(16**6):06x}"

_ends = []


def at_end(fn):
    """Calls fn when the process ends, however it is asked to."""
    _ends.append(fn)
    return fn


def run_ends():
    while _ends:
        with contextlib.suppress(Exception):
            _ends.pop()()


def _on_signal(number, _frame):
    sys.exit(128 + number)


atexit.register(run_ends)
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGTERM, _on_signal)
    signal.signal(signal.SIGHUP, _on_signal)
    signal.signal(signal.SIGINT, signal.default_int_handler)    # a background shell has it ignored, for our children too

_folder = None
ROOM = 4 << 30


def _in_memory():
    """Where files cost no disk, if it has room and $TMPDIR says nothing else: a crash of the machine is not what is tested."""
    where = "/dev/shm"
    if os.environ.get("TMPDIR") or not os.access(where, os.W_OK):
        return None
    found = os.statvfs(where)
    return where if found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC else None


def folder():
    """This process's temporary folder, readable by the server's user; removed at the end."""
    global _folder
    if _folder is None:
        _folder = Path(tempfile.mkdtemp(prefix="lapse-", dir=_in_memory()))
        _folder.chmod(0o755)
        at_end(lambda: shutil.rmtree(_folder, ignore_errors=True))
    return _folder


_numbers = itertools.count(1)


def new_path(stem, suffix=""):
    return folder() / f"{stem}{next(_numbers)}{suffix}"


# --- databases -----------------------------------------------------------------------------------------

class Database:
    """What both engines share. Every call of execute() is its own transaction."""
    engine = None

    def execute(self, sql, params=()):
        raise NotImplementedError

    def rows(self, sql, params=()):
        raise NotImplementedError

    def tables(self):
        raise NotImplementedError

    def empty(self, table):
        """Deletes every row, also where they refer to each other."""
        self.execute(f"delete from {table}")

    def dump(self):
        """Every row of every table, sorted: {table: [row, …]}. Equal dumps mean nothing was written."""
        return {t: sorted(self.rows(f"select * from {t}"), key=repr) for t in self.tables()}


class Sqlite(Database):
    engine = "sqlite"

    def __init__(self, path=None):
        self.path = Path(path) if path else new_path("db", ".sqlite")
        self.dsn = f"sqlite:{self.path}"
        self._connection = None

    def connect(self):
        c = sqlite3.connect(str(self.path), timeout=30, isolation_level=None, check_same_thread=False)
        c.execute("pragma foreign_keys = on")
        c.execute("pragma synchronous = off")
        return c

    @property
    def connection(self):
        if self._connection is None:
            self._connection = self.connect()
        return self._connection

    def execute(self, sql, params=()):
        return self.connection.execute(sql, params).rowcount

    def executemany(self, sql, rows):
        c = self.connection
        c.execute("begin")
        c.executemany(sql, rows)
        c.execute("commit")

    def script(self, sql):
        self.connection.executescript(sql)

    def rows(self, sql, params=()):
        return self.connection.execute(sql, params).fetchall()

    def tables(self):
        return ['"%s"' % n.replace('"', '""') for n, in self.rows(
            "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'")]

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def drop(self):
        self.close()
        for p in self.path.parent.glob(self.path.name + "*"):
            p.unlink()


class PostgresDatabase(Database):
    engine = "postgres"

    def __init__(self, server, name):
        self.server, self.name = server, name
        self.dsn = server.dsn(name)
        self._connection = None

    def connect(self, **options):
        return self.server.connect(self.name, **options)

    @property
    def connection(self):
        if self._connection is None or self._connection.closed:
            self._connection = self.connect()
        return self._connection

    def execute(self, sql, params=()):
        with self.connection.cursor() as c:
            c.execute(percent(sql, params), params or None)
            return c.rowcount

    def executemany(self, sql, rows):
        with self.connection.cursor() as c:
            c.execute("begin")
            for row in rows:
                c.execute(percent(sql, row), row)
            c.execute("commit")

    def script(self, sql):
        with self.connection.cursor() as c:
            c.execute(sql)

    def rows(self, sql, params=()):
        with self.connection.cursor() as c:
            c.execute(percent(sql, params), params or None)
            return c.fetchall()

    def tables(self):
        return [n for n, in self.rows(
            "select format('%I.%I', nspname, relname) from pg_class c join pg_namespace n on n.oid = relnamespace"
            " where relkind in ('r', 'p') and not relispartition and nspname !~ '^(pg_|information_schema)' order by 1")]

    def dump(self):
        # as text: psycopg2 has no value for infinity and for years beyond 9999
        return {t: sorted(r for r, in self.rows(f"select x::text from {t} x")) for t in self.tables()}

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def drop(self):
        self.close()
        self.server.admin(f'drop database if exists "{self.name}" with (force)')

    def give_back(self):
        """Empties a borrowed database for the next who borrows one."""
        self.close()
        try:
            self.script(f"""
                select pg_terminate_backend(pid) from pg_stat_activity
                    where datname = '{self.name}' and pid <> pg_backend_pid();
                do $$ declare s text; begin
                    for s in select nspname from pg_namespace where nspname !~ '^(pg_|information_schema)' loop
                        execute format('drop schema %I cascade', s);
                    end loop;
                end $$;
                create schema public authorization pg_database_owner; grant usage on schema public to public;
                alter database "{self.name}" reset all""")
            self.close()
            self.server._spare.append(self.name)
        except psycopg2.Error:
            self.drop()


def percent(sql, params):
    return sql.replace("%", "%%").replace("?", "%s") if params else sql


class Postgres:
    """A PostgreSQL server of our own: a temporary folder, a unix socket, and a loopback port with port=True.
    Role `guarded` (password `Sesame-42`) must give its password; everybody else is trusted."""
    USER = "postgres"
    PASSWORD = "Sesame-42"
    SETTINGS = {
        "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "64MB",
        "max_connections": "100", "deadlock_timeout": "100ms", "timezone": "Pacific/Auckland",
        "max_wal_size": "256MB", "autovacuum": "on", "log_min_messages": "warning", "jit": "off",
    }
    HBA = "local all guarded scram-sha-256\nhost all guarded all scram-sha-256\n" \
          "local all all trust\nhost all all 127.0.0.1/32 trust\n"

    def __init__(self, port=False, settings=None):
        self.home = new_path("pg")
        self.data = self.home / "data"
        self.log = self.home / "log"
        self.port = free_port() if port else None
        self.process = None
        self.owned = True
        self._names, self._spare = itertools.count(1), []
        self._admin = None
        self._admin_lock = threading.Lock()
        self._settings = dict(self.SETTINGS, **(settings or {}))
        self._create()
        self.start()
        at_end(self.stop)
        self.admin(f"create role guarded login password '{self.PASSWORD}'")

    @classmethod
    def at(cls, home):
        """The running server of another process."""
        self = cls.__new__(cls)
        self.home, self.port, self.process, self.owned = Path(home), None, None, False
        self.log = self.home / "log"
        self._names, self._spare = itertools.count(1), []
        self._admin, self._admin_lock = None, threading.Lock()
        return self

    def _create(self):
        bins = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        if not bins:
            raise RuntimeError("no PostgreSQL server under /usr/lib/postgresql: run scripts/setup test")
        self.bin = bins[-1].parent
        self.home.mkdir()
        if os.getuid() == 0:
            shutil.chown(self.home, self._server_user())
        made = subprocess.run(
            self._as_server(str(self.bin / "initdb"), "--no-sync", "-A", "trust", "-U", self.USER, "-E", "UTF8",
                            "--locale=C", "-D", str(self.data)),
            cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={"PATH": os.environ["PATH"]})
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{made.stdout}")
        (self.data / "pg_hba.conf").write_text(self.HBA)
        settings = dict(self._settings, unix_socket_directories=str(self.home), port=str(self.port or 5432),
                        listen_addresses="127.0.0.1" if self.port else "")
        with open(self.data / "postgresql.conf", "a") as f:
            f.writelines(f"{k} = '{v}'\n" for k, v in settings.items())

    @staticmethod
    def _server_user():
        for name in ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                return pwd.getpwnam(name).pw_name
        raise RuntimeError("no unprivileged user to run PostgreSQL as")

    def _as_server(self, *command):
        # PostgreSQL refuses to run as root. The death signal stops it when this process is killed.
        become = ["setpriv", "--pdeathsig", "INT"]
        if os.getuid() == 0:
            user = pwd.getpwnam(self._server_user())
            become += ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
        return become + list(command)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self._as_server(str(self.bin / "postgres"), "-D", str(self.data)), cwd="/", stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, env={"PATH": os.environ["PATH"], "LANG": "C"})
        deadline = time.monotonic() + 30
        while True:
            try:
                self.connect("postgres").close()
                return
            except psycopg2.OperationalError as e:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start: {e}\n{self.log.read_text()[-3000:]}")
                time.sleep(0.03)

    def stop(self, how=signal.SIGQUIT):
        """SIGQUIT crashes it (the next start recovers), SIGINT shuts it down, SIGTERM waits for its clients."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(30)

    def dsn(self, db, user=None, password=None, tcp=False):
        who = (user or self.USER) + (f":{password}" if password is not None else "")
        if tcp:
            return f"postgresql://{who}@127.0.0.1:{self.port}/{db}"
        port = f"&port={self.port}" if self.port else ""
        return f"postgresql://{who}@/{db}?host={self.home}{port}"

    def connect(self, db, **options):
        c = psycopg2.connect(dbname=db, user=self.USER, host=str(self.home), port=self.port or 5432,
                             options="-c timezone=UTC -c client_min_messages=error", **options)
        c.autocommit = True
        return c

    def admin(self, sql):
        with self._admin_lock:
            if self._admin is None or self._admin.closed:
                self._admin = self.connect("postgres")
            with self._admin.cursor() as c:
                c.execute(sql)

    def fresh(self):
        """A new, empty database."""
        name = f"t{RUN}_{next(self._names)}"
        self.admin(f'create database "{name}" template template0')
        return PostgresDatabase(self, name)

    def borrow(self):
        """An empty database to be given back: several times faster than a fresh one."""
        return PostgresDatabase(self, self._spare.pop()) if self._spare else self.fresh()


def free_port():
    """A port that nobody has. Of those that are never given to who asks for any: else it may be taken before it is used."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(lowest // 2, lowest)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
