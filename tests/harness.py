#!/usr/bin/python3
"""What every Python test stands on: real databases, the program as a process, and TAP output.

A suite is a file tests/*/test_*.py of unittest classes. `tests/run` runs them all;
`tests/harness.py FILE [Class[.test]…]` runs one, starting the server it needs.

    from harness import *

    @every_engine
    class Expires(Case):
        def test_now_exactly(self):
            self.given("create table s (id integer primary key, at_ms bigint)")
            self.insert("s(id, at_ms)", (1, MS - 1), (2, MS), (3, MS + 1), (4, None))
            self.swept("policies: {s: {table: s, expires: at_ms}}", gone={"s": 2})
            self.left("s", 3, 4)

A case runs on a fresh database of each engine: self.db, an object with

    .dsn  .engine  .connect()  .execute(sql, params=())  .script(sql)  .rows(sql, params=())  .dump()

Values are written as `?` on every engine. The pieces can be used alone:

    server = Postgres(port=True, settings={"fsync": "on"}); db = server.fresh(); server.stop()
    db = Sqlite()
    r = lapse(db, contract, "sweep", "--json");  r.code, r.out, r.err, r.json
    p = Lapse.start(db, contract, "sweep");  p.signal(SIGTERM);  r = p.wait()

Two traps are set on purpose: the program runs in a time zone that is not UTC, and so does the server (connections
of the tests themselves are in UTC).
"""
import atexit
import contextlib
import datetime
import fcntl
import importlib.util
import itertools
import json
import os
import pty
import pwd
import re
import select
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import time
import traceback
import types
import unittest
from pathlib import Path

import psycopg2

ROOT = Path(__file__).resolve().parent.parent

# The time at which the suites sweep (sweep --now): in the past, far from any edge.
NOW = "2024-06-15T12:00:00Z"
NOW_AT = datetime.datetime(2024, 6, 15, 12, tzinfo=datetime.timezone.utc)
S = int(NOW_AT.timestamp())
MS = S * 1000
US = MS * 1000
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000     # in milliseconds


def iso(ms, sep="T", zone="Z"):
    """Milliseconds since the epoch as ISO text in UTC."""
    t = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)
    return t.isoformat(sep, "milliseconds" if ms % 1000 else "seconds") + zone


# --- folders and ends ----------------------------------------------------------------------------------

_ends = []


def at_end(fn):
    """Calls fn when the process ends, however it is asked to."""
    _ends.append(fn)
    return fn


def _run_ends():
    while _ends:
        with contextlib.suppress(Exception):
            _ends.pop()()


def _on_signal(number, _frame):
    sys.exit(128 + number)


atexit.register(_run_ends)
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGTERM, _on_signal)
    signal.signal(signal.SIGHUP, _on_signal)
    signal.signal(signal.SIGINT, signal.default_int_handler)    # a background shell has it ignored, for our children too

_folder = None


def folder():
    """This process's temporary folder, readable by the server's user; removed at the end."""
    global _folder
    if _folder is None:
        _folder = Path(tempfile.mkdtemp(prefix="lapse-"))
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
            c.execute(_percent(sql, params), params or None)
            return c.rowcount

    def executemany(self, sql, rows):
        with self.connection.cursor() as c:
            c.execute("begin")
            for row in rows:
                c.execute(_percent(sql, row), row)
            c.execute("commit")

    def script(self, sql):
        with self.connection.cursor() as c:
            c.execute(sql)

    def rows(self, sql, params=()):
        with self.connection.cursor() as c:
            c.execute(_percent(sql, params), params or None)
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


def _percent(sql, params):
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
        self.port = _free_port() if port else None
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
            raise RuntimeError("no PostgreSQL server under /usr/lib/postgresql: run scripts/setup")
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
        name = f"t{os.getpid()}_{next(self._names)}"
        self.admin(f'create database "{name}" template template0')
        return PostgresDatabase(self, name)

    def borrow(self):
        """An empty database to be given back: several times faster than a fresh one."""
        return PostgresDatabase(self, self._spare.pop()) if self._spare else self.fresh()


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


_shared = None


def postgres():
    """The server that all suites of this run share. Tests that stop or configure one start their own."""
    global _shared
    if _shared is None:
        home = os.environ.get("LAPSE_TEST_POSTGRES")
        _shared = Postgres.at(home) if home else Postgres()
    return _shared


# --- the program ---------------------------------------------------------------------------------------

def program():
    """The binary under test: $LAPSE, else the one in the build folder ($LAPSE_BUILD, set by tests/run)."""
    if os.environ.get("LAPSE"):
        return os.environ["LAPSE"]
    builds = [os.environ["LAPSE_BUILD"]] if os.environ.get("LAPSE_BUILD") else [ROOT / "build-san", ROOT / "build"]
    for build in builds:
        if (Path(build) / "lapse").is_file():
            return str(Path(build).resolve() / "lapse")
    raise AssertionError(f"there is no program to test: {Path(builds[0]) / 'lapse'}")


_SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|ThreadSanitizer|runtime error:")


class Result:
    def __init__(self, args, code, out, err, screen=None):
        self.args, self.code, self.out, self.err, self.screen = args, code, out, err, screen

    @property
    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as e:
            raise AssertionError(f"the output is not JSON ({e}):\n{self}")

    def policy(self, name):
        """The entry of one policy in the JSON of plan and sweep."""
        for p in self.json["policies"]:
            if p["policy"] == name:
                return p
        raise AssertionError(f"no policy {name} in the output:\n{self}")

    @property
    def said(self):
        return self.out + self.err

    def sane(self, signals=()):
        """Fails on a sanitizer's report and on a crash; death by one of `signals` is expected."""
        if _SANITIZER.search(self.said):
            raise AssertionError(f"a sanitizer reports:\n{self}")
        if self.code < 0 and -self.code not in signals:
            raise AssertionError(f"the program died of signal {-self.code}:\n{self}")
        return self

    def __str__(self):
        return f"$ lapse {' '.join(self.args)}   (exit {self.code})\n{self.out}{self.err}".rstrip()


def contract_file(db, contract):
    """Writes a contract; `store:` is put before it if it has none. db: a database, a DSN or None (no store line)."""
    if isinstance(contract, Path):
        return contract
    where = new_path("contract")
    where.mkdir()
    path = where / "lapse.yaml"
    if isinstance(contract, bytes):
        path.write_bytes(contract)
        return path
    contract = textwrap.dedent(contract)
    if db is not None and not re.search(r"^store(_file)?\s*:", contract, re.M):
        contract = f"store: {json.dumps(getattr(db, 'dsn', db))}\n{contract}"
    path.write_text(contract)
    return path


def _environment(env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LAPSE"))}
    clean.update({
        "TZ": "Asia/Kathmandu", "LANG": "C.UTF-8", "TERM": "xterm-256color",
        "ASAN_OPTIONS": "abort_on_error=0:detect_stack_use_after_return=1", "UBSAN_OPTIONS": "print_stacktrace=1",
    })
    clean.update(env or {})
    return {k: str(v) for k, v in clean.items() if v is not None}


def lapse(db, contract, *args, env=None, timeout=60, tty=False, size=(100, 30), cwd=None):
    """Runs `lapse -f CONTRACT args…` and returns its Result. contract None: no -f. tty: on a terminal of size
    (columns, rows); .screen is then the raw bytes that it showed."""
    args = _arguments(db, contract, args)
    if tty:
        return _on_terminal(args, _environment(env), timeout, size).sane()
    try:
        p = subprocess.run([program(), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=_environment(env), timeout=timeout, cwd=cwd or folder())
    except subprocess.TimeoutExpired as e:
        raise AssertionError(f"lapse {' '.join(args)} took longer than {timeout} s\n"
                             f"{(e.stdout or b'').decode(errors='replace')}{(e.stderr or b'').decode(errors='replace')}")
    return Result(args, p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")).sane()


def _arguments(db, contract, args):
    file = [] if contract is None else ["-f", str(contract_file(db, contract))]
    return file + [str(a) for a in args]


def _on_terminal(args, env, timeout, size):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    p = subprocess.Popen([program(), *args], stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder(),
                         start_new_session=True)
    os.close(slave)
    screen, deadline = b"", time.monotonic() + timeout
    try:
        while True:
            ready, _, _ = select.select([master], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"lapse {' '.join(args)} took longer than {timeout} s on a terminal:\n{screen!r}")
            try:
                part = os.read(master, 65536)
            except OSError:     # the other end is closed
                break
            if not part:
                break
            screen += part
    finally:
        os.close(master)
        if p.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(2)
        if p.poll() is None:
            p.kill()
        p.wait()
    return Result(args, p.returncode, screen.decode(errors="replace"), "", screen)


class Lapse:
    """A running program. Its output goes to files, so it never waits for a reader."""

    def __init__(self, args, env):
        self.args = args
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen([program(), *args], stdin=subprocess.DEVNULL, stdout=self._out,
                                        stderr=self._err, env=env, cwd=folder(), start_new_session=True)
        self.pid = self.process.pid
        at_end(self.kill)

    @classmethod
    def start(cls, db, contract, *args, env=None):
        return cls(_arguments(db, contract, args), _environment(env))

    def running(self):
        return self.process.poll() is None

    def signal(self, number):
        if self.running():
            self.process.send_signal(number)

    def kill(self):
        if self.running():
            self.process.kill()
            self.process.wait()

    def so_far(self):
        """What it has written until now: (stdout, stderr)."""
        return tuple(os.pread(f.fileno(), 1 << 26, 0).decode(errors="replace") for f in (self._out, self._err))

    def wait(self, timeout=60, signals=()):
        """Its Result once it has ended. signals: those that may have ended it."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"lapse {' '.join(self.args)} still ran after {timeout} s:\n{''.join(self.so_far())}")
        return Result(self.args, self.process.returncode, *self.so_far()).sane(signals)


# --- test cases ----------------------------------------------------------------------------------------

def last_part(table):
    """`metadata` of `trax.metadata`: what a table is called without its schema."""
    return table.rsplit(".", 1)[-1].strip('"')


def counts(entries, full_names=False):
    """[{table, rows}, …] as {table: rows} without the zeros."""
    found = {}
    for e in entries:
        name = e["table"] if full_names else last_part(e["table"])
        found[name] = found.get(name, 0) + e["rows"]
    return {k: v for k, v in found.items() if v}


class Case:
    """The verbs that cases are written in. Mix it with an engine's test class, or use @every_engine."""
    maxDiff = None
    longMessage = True

    def given(self, sql):
        """Runs DDL and other statements, as they are, on either engine."""
        self.db.script(sql)

    def insert(self, into, *rows):
        """insert("t(a, b)", (1, 2), (3, 4)). A row of one column may be a bare value."""
        rows = [r if isinstance(r, (tuple, list)) else (r,) for r in rows]
        if rows:
            self.db.executemany(f"insert into {into} values ({', '.join('?' * len(rows[0]))})", rows)

    def ids(self, table, column="id"):
        return [r[0] for r in self.db.rows(f"select {column} from {table} order by 1")]

    def left(self, table, *ids, column="id"):
        """These are the rows that are still there, no more and no fewer."""
        self.assertEqual(self.ids(table, column), sorted(ids), f"rows of {table}")

    def lapse(self, contract, *args, code=None, **how):
        r = lapse(self.db, contract, *args, **how)
        if code is not None:
            self.assertEqual(r.code, code, f"exit code of\n{r}")
        return r

    def sweep(self, contract, *names, now=NOW, code=0, **how):
        return self.lapse(contract, "sweep", *names, *(["--now", now] if now else []), "--json", code=code, **how)

    def plan(self, contract, *names, now=NOW, code=0, **how):
        return self.lapse(contract, "plan", *names, *(["--now", now] if now else []), "--json", code=code, **how)

    def check(self, contract, *options, code=None, **how):
        return self.lapse(contract, "check", *options, "--json", code=code, **how)

    def gone(self, result, key="tables"):
        """What a sweep or plan says went, over all policies: {table: rows}."""
        total = {}
        for p in result.json["policies"]:
            for table, rows in counts(p.get(key, [])).items():
                total[table] = total.get(table, 0) + rows
        return total

    def swept(self, contract, gone, detached=None, names=(), now=NOW, code=0, same_plan=True, again=True, kept=None):
        """Plans, sweeps and sweeps again. The plan writes nothing and foretells `gone` ({table: rows}), the
        sweep deletes just that, and the second sweep finds nothing. detached=...: not compared. Returns the first
        sweep's result."""
        before = self.db.dump()
        planned = self.plan(contract, *names, now=now, code=None)
        self.assertEqual(self.db.dump(), before, f"plan wrote something\n{planned}")
        self.assertIn(planned.code, (0, code), f"exit code of\n{planned}")
        if same_plan:
            self.assertEqual(self.gone(planned), gone, f"planned by\n{planned}")
            if detached is not ...:
                self.assertEqual(self.gone(planned, "detached"), detached or {}, f"detached as planned by\n{planned}")
        if kept is not None:
            for key, rows in kept.items():
                self.assertEqual(sum(p["kept"][key] for p in planned.json["policies"]), rows, f"{key} in\n{planned}")
        swept = self.sweep(contract, *names, now=now, code=code)
        self.assertEqual(self.gone(swept), gone, f"gone by\n{swept}")
        if detached is not ...:
            self.assertEqual(self.gone(swept, "detached"), detached or {}, f"detached by\n{swept}")
        for p in swept.json["policies"]:
            own = sum(t["rows"] for t in p.get("tables", []) if t["table"] == p["table"])
            self.assertEqual(p.get("rows", 0), own, f"rows of {p['policy']} in\n{swept}")
        before, after = without_history(before), without_history(self.db.dump())
        removed = {last_part(t): len(before[t]) - len(after[t]) for t in before if len(before[t]) != len(after[t])}
        self.assertEqual(removed, gone, f"really gone after\n{swept}")
        if again:
            second = self.sweep(contract, *names, now=now, code=code)
            self.assertEqual(self.gone(second), {}, f"the second sweep found something\n{second}")
            self.assertEqual(without_history(self.db.dump()), after, f"the second sweep wrote something\n{second}")
        return swept

    def untouched(self):
        """A block after which every table but the history must be as it was before."""
        return _Untouched(self)

    def finding(self, result, level, *words, policy=...):
        """The finding of this level whose text has all the words; fails if there is none."""
        for f in result.json["findings"]:
            text = f"{f['what']} {f.get('fix') or ''}".lower()
            if f["level"] == level and all(w.lower() in text for w in words) and policy in (..., f["policy"]):
                return f
        self.fail(f"no {level} with {words}" + ("" if policy is ... else f" for policy {policy}") + f" in\n{result}")

    def no_finding(self, result, *words):
        for f in result.json["findings"]:
            text = f"{f['what']} {f.get('fix') or ''}".lower()
            self.assertFalse(all(w.lower() in text for w in words), f"unexpected finding {f}\nin {result}")

    @property
    def on_postgres(self):
        return self.engine == "postgres"


def without_history(dump):
    """A sweep that deletes nothing leaves a row in the history; every other table must be as it was."""
    return {t: rows for t, rows in dump.items() if last_part(t) != "lapse_run"}


class _Untouched:
    def __init__(self, case):
        self.case = case

    def __enter__(self):
        self.before = without_history(self.case.db.dump())

    def __exit__(self, kind, *_):
        if kind is None:
            self.case.assertEqual(without_history(self.case.db.dump()), self.before, "something was written")


class SqliteTest(unittest.TestCase):
    engine = "sqlite"

    def setUp(self):
        self.db = Sqlite()
        self.addCleanup(self.db.drop)
        self.db.rows("select 1")


class PostgresTest(unittest.TestCase):
    engine = "postgres"

    def setUp(self):
        self.db = postgres().borrow()
        self.addCleanup(self.db.give_back)


ENGINES = {"Sqlite": SqliteTest, "Postgres": PostgresTest}


def every_engine(cases):
    """Makes a test class per engine of a class of cases, in its module: class Xs -> XsOnSqlite, XsOnPostgres."""
    module = sys.modules[cases.__module__]
    for name, engine in ENGINES.items():
        made = types.new_class(f"{cases.__name__}On{name}", (cases, engine))
        made.__module__, made.__qualname__ = cases.__module__, made.__name__
        setattr(module, made.__name__, made)
    return cases


# --- running one suite ---------------------------------------------------------------------------------

class _TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.bad = 0

    def _line(self, test, trouble=None):
        self.number += 1
        self.bad += trouble is not None
        print(f"{'not ok' if trouble else 'ok'} {self.number} - {test.id().split('.', 1)[-1]}")
        for line in (trouble or "").splitlines():
            print(f"# {line}")
        sys.stdout.flush()

    def addSuccess(self, test):
        self._line(test)

    def addFailure(self, test, err):
        self._line(test, self._text(err))

    addError = addFailure

    def addSkip(self, test, reason):
        self._line(test, f"skipped: {reason}. A test runs or fails")

    def addExpectedFailure(self, test, err):
        self._line(test)

    def addUnexpectedSuccess(self, test):
        self._line(test, "was expected to fail and did not")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._line(subtest, self._text(err))

    def _text(self, err):
        kind, value, trace = err
        shown = [f for f in traceback.extract_tb(trace) if "unittest" not in f.filename]
        frames = [f"{Path(f.filename).name}:{f.lineno}: {f.line}" for f in shown]
        return "\n".join(frames + [f"{kind.__name__}: {value}"])


def main(arguments=None):
    """harness.py FILE [Class[.test]…]: runs the tests of one file and prints TAP."""
    file, *names = arguments if arguments is not None else sys.argv[1:]
    sys.modules.setdefault("harness", sys.modules[__name__])
    sys.path.insert(0, str(ROOT / "tests"))
    sys.path.insert(0, str(Path(file).resolve().parent))
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    tests = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    result = _TapResult()
    try:
        tests.run(result)
    finally:
        _run_ends()
    print(f"1..{result.number}")
    return 1 if result.bad or not result.number else 0


__all__ = [
    "Case", "DAY", "HOUR", "Lapse", "MINUTE", "MS", "NOW", "NOW_AT", "Postgres", "PostgresTest", "ROOT", "Result", "S",
    "SECOND", "Sqlite", "SqliteTest", "US", "at_end", "contract_file", "counts", "every_engine", "folder", "iso",
    "lapse", "last_part", "main", "new_path", "postgres", "program",
]

if __name__ == "__main__":
    sys.exit(main())
