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
    server = Mariadb(durable=True, settings={"sql-mode": "ANSI"})
    db = Sqlite()
    r = lapse(db, contract, "sweep", "--json");  r.code, r.out, r.err, r.json
    p = Lapse.start(db, contract, "sweep");  p.signal(SIGTERM);  r = p.wait()

Tables are written once, in words that SQLite and PostgreSQL read; mariadb.py has what MariaDB reads instead.

Traps are set on purpose: the program runs in a time zone that is not UTC, and so do the servers (connections of the
tests themselves are in UTC); MariaDB's collation folds case and blanks.
"""
import contextlib
import datetime
import fcntl
import functools
import importlib.util
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import time
import traceback
import types
import unittest
from pathlib import Path

from mariadb import Mariadb
from mysql import Mysql
from servers import Postgres, PostgresDatabase, Sqlite, at_end, folder, free_port, new_path, run_ends

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


# --- databases -----------------------------------------------------------------------------------------

_shared = {}


def _server(kind, variable):
    """The server that all suites of this run share. Tests that stop or configure one start their own."""
    if kind not in _shared:
        home = os.environ.get(variable)
        _shared[kind] = kind.at(home) if home else kind()
    return _shared[kind]


def postgres():
    return _server(Postgres, "LAPSE_TEST_POSTGRES")


def mariadb():
    return _server(Mysql if on_mysql() else Mariadb, "LAPSE_TEST_MARIADB")


def on_mysql():
    """Whether the tests of MariaDB run on MySQL (make test-mysql)."""
    return bool(os.environ.get("LAPSE_MYSQL"))


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
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "MYSQL", "MARIADB", "LC_", "LAPSE"))}
    clean.update({
        "TZ": "Asia/Kathmandu", "LANG": "C.UTF-8", "TERM": "xterm-256color",
        "ASAN_OPTIONS": "abort_on_error=0:detect_stack_use_after_return=1", "UBSAN_OPTIONS": "print_stacktrace=1",
    })
    clean.update(env or {})
    return {k: str(v) for k, v in clean.items() if v is not None}


def lapse(db, contract, *args, env=None, timeout=180, tty=False, size=(100, 30), cwd=None):
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

    def wait(self, timeout=180, signals=()):
        """Its Result once it has ended. signals: those that may have ended it."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"lapse {' '.join(self.args)} still ran after {timeout} s:\n{''.join(self.so_far())}")
        return Result(self.args, self.process.returncode, *self.so_far()).sane(signals)


def node_modules():
    """The folder of the modules that tests/node names; None: scripts/setup could not install them."""
    made = ROOT / "build-node"
    return made / "node_modules" if (made / "installed.json").is_file() else None


# --- test cases ----------------------------------------------------------------------------------------

def last_part(table):
    """`metadata` of `trax.metadata`: what a table is called without its schema."""
    return table.rsplit(".", 1)[-1].strip('"')


def counts(entries, full_names=False):
    """[{table, rows}, …] as {table: rows} without the zeros, and without what is not known."""
    found = {}
    for e in entries:
        name = e["table"] if full_names else last_part(e["table"])
        found[name] = found.get(name, 0) + (e["rows"] or 0)
    return {k: v for k, v in found.items() if v}


class TooSoon(Exception):
    """What a test meant to come into was over before it came."""


def again(test):
    """A test that comes into something at work: if it comes too late (TooSoon), all of it is done again, a few times."""
    @functools.wraps(test)
    def run(self):
        for left in reversed(range(6)):
            try:
                return test(self)
            except TooSoon:
                if not left:
                    raise
            self.doCleanups()
            self.setUp()
    return run


class Case:
    """The verbs that cases are written in. Mix it with an engine's test class, or use @every_engine."""
    maxDiff = None
    longMessage = True

    def given(self, sql):
        """Runs DDL and other statements; mariadb.py has what MariaDB reads instead."""
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

    def forget_who(self):
        """lapse's own tables as version 4 had them: without who did something, and why."""
        columns = {"lapse_pause": ("paused_by", "reason", "released_at", "released_by", "release_reason"),
                   "lapse_fuse": ("acked_by", "reason"), "lapse_run": ("cutoff", "contract", "policies")}
        self.given("".join(f"alter table {t} drop column {c};" for t in columns for c in columns[t]) +
                   "delete from lapse_version where version > 4")

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

    @property
    def on_sqlite(self):
        return self.engine == "sqlite"

    @property
    def on_mariadb(self):
        return self.engine == "mariadb"

    def per_engine(self, **said):
        """per_engine(sqlite=…, postgres=…, mariadb=…): what this engine wants to hear."""
        return said[self.engine]

    @property
    def schema(self):
        """What stands before a table's name where it is shown in full."""
        return self.per_engine(sqlite="", postgres="public.", mariadb=f"{getattr(self.db, 'name', '')}.")

    @property
    def exact(self):
        """Behind a text column whose values differ by case or blanks alone."""
        return " collate utf8mb4_nopad_bin" if self.on_mariadb else ""

    def exactly(self, sql):
        """The same tables with texts that differ by case or blanks alone."""
        return re.sub(r"\btext\b", "text" + self.exact, sql)

    @property
    def long_text(self):
        return "longtext" if self.on_mariadb else "text"

    def clock(self, seconds=0):
        """SQL for the database's own time, so many seconds on."""
        return self.per_engine(sqlite=f"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '{seconds:+} seconds')",
                               postgres=f"now() + interval '{seconds} s'",
                               mariadb=f"now(6) + interval {seconds} second")

    def series(self, last, first=1):
        """SELECT of the numbers n, first to last."""
        return self.per_engine(
            sqlite=f"with recursive g(n) as (select {first} union all select n + 1 from g where n < {last}) select n from g",
            postgres=f"select n from generate_series({first}, {last}) g(n)",
            mariadb=f"select seq n from seq_{first}_to_{last}")

    def sessions_end(self):
        """Those of a program that was killed: one may still commit while tables are looked at one after the other."""
        if self.on_sqlite:
            return
        sql = self.per_engine(
            postgres="select 1 from pg_stat_activity where application_name = 'lapse' and datname = current_database()",
            mariadb="select 1 from information_schema.processlist where db = database() and id <> connection_id()")
        end = time.monotonic() + 60
        while self.db.rows(sql):
            self.assertLess(time.monotonic(), end, "a session of a program that is gone goes on")
            time.sleep(0.01)

    def slow(self, table, seconds):
        """Each row that is deleted takes so long, about; longer on a busy machine, never much less."""
        if self.on_sqlite:
            count = "with recursive c(x) as (select 1 union all select x + 1 from c limit {}) select count(*) from c"
            rows, began = 200_000, time.thread_time()      # without what others do meanwhile
            self.db.rows(count.format(rows))
            rows = int(rows * seconds / (time.thread_time() - began))
            self.given(f"create view burn as {count.format(rows)};"
                       f"create trigger slow before delete on {table} begin select * from burn; end")
        elif self.on_mariadb:
            self.given(f"create trigger slow before delete on {table} begin do sleep({seconds}); end")
        else:
            self.given(f"""
                create function slow() returns trigger language plpgsql as
                    'begin perform pg_sleep({seconds}); return old; end';
                create trigger slow before delete on {table} for each row execute function slow()""")


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


class MariadbTest(unittest.TestCase):
    engine = "mariadb"

    def setUp(self):
        self.db = mariadb().borrow()
        self.addCleanup(self.db.give_back)


ENGINES = {"Sqlite": SqliteTest, "Postgres": PostgresTest, "Mariadb": MariadbTest}
if os.environ.get("LAPSE_TEST_ENGINES"):    # by hand, while working on one engine: LAPSE_TEST_ENGINES=Mariadb tests/run …
    ENGINES = {n: ENGINES[n] for n in os.environ["LAPSE_TEST_ENGINES"].split(",")}


def not_on(engine, why):
    """A test that says nothing about this engine: @not_on("mariadb", "it has no partial index")."""
    def mark(test):
        test.not_on = {engine: why, **getattr(test, "not_on", {})}
        return test
    return mark


def every_engine(cases):
    """Makes a test class per engine of a class of cases, in its module: class Xs -> XsOnSqlite, XsOnPostgres…"""
    return _on(ENGINES, cases)


def every_server(cases):
    """The same without SQLite: what is about connections and other sessions."""
    return _on({n: e for n, e in ENGINES.items() if e.engine != "sqlite"}, cases)


def _on(engines, cases):
    module = sys.modules[cases.__module__]
    for name, engine in engines.items():
        made = types.new_class(f"{cases.__name__}On{name}", (cases, engine))
        for test in dir(cases):
            if engine.engine in getattr(getattr(cases, test), "not_on", {}):
                setattr(made, test, None)       # what is no function is no test
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


def _each(tests):
    for t in tests:
        yield from _each(t) if isinstance(t, unittest.TestSuite) else (t,)


def _piece(tests):
    """All of them, or with LAPSE_TEST_PIECE=k/n every n-th: tests/run has long suites in pieces."""
    if not os.environ.get("LAPSE_TEST_PIECE"):
        return tests
    k, n = map(int, os.environ["LAPSE_TEST_PIECE"].split("/"))
    tests = list(_each(tests))
    if tests and k >= len(tests):
        print("1..0 # this file has fewer tests than pieces")
        sys.exit(0)
    return unittest.TestSuite(tests[k::n])


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
    if os.environ.get("LAPSE_POOLED"):      # the same tests through pgbouncer
        import pooled
        tests = pooled.tests(tests, Path(file).stem.removeprefix("test_"))
    tests = _piece(tests)
    result = _TapResult()
    try:
        tests.run(result)
    finally:
        run_ends()
    print(f"1..{result.number}")
    return 1 if result.bad or not result.number else 0


__all__ = [
    "Case", "DAY", "HOUR", "Lapse", "MINUTE", "MS", "Mariadb", "MariadbTest", "NOW", "NOW_AT", "Postgres", "PostgresTest",
    "ROOT", "Result", "S", "SECOND", "Sqlite", "SqliteTest", "TooSoon", "US", "again", "at_end", "contract_file", "counts", "every_engine", "every_server",
    "folder", "iso", "lapse", "last_part", "main", "mariadb", "new_path", "node_modules", "not_on", "postgres",
    "program",
]

if __name__ == "__main__":
    sys.exit(main())
