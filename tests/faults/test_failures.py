"""What goes wrong while a sweep runs, provoked for real: conflicts, locks, lost connections, signals, servers that
stop. It is retried or reported; nothing is half done; numbers are rows that are gone."""
import contextlib
import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path

from harness import *
from proxy import *

SCHEMA = """
    create table job (id integer primary key, at_ms bigint);
    create table step (id integer primary key, job_id integer not null references job(id));
    create index job_at on job(at_ms); create index step_job on step(job_id)"""
LAST = 40


def contract(batch=10, more=""):
    pace = "" if batch == "null" else ", pace: {target: 1m, duty: 1}"       # batches are what they are, on any machine
    return f"policies: {{job: {{table: job, expires: at_ms, batch: {batch}, with: [step(job_id)]{pace}{more}}}}}"


class Jobs(Case):
    """Jobs 1 to 40, each with a step, all due; and one that is not."""

    def setUp(self):
        super().setUp()
        self.given(SCHEMA)
        self.fill()

    def fill(self):
        self.given("delete from step; delete from job")
        self.insert("job", *[(n, n) for n in range(1, LAST + 1)], (1000, MS + 1))
        self.insert("step", *[(n, n) for n in range(1, LAST + 1)], (1000, 1000))

    def stayed(self, *rows):
        self.left("job", *rows, 1000)
        self.left("step", *rows, 1000)

    def whole(self):
        self.assertEqual(self.ids("job"), self.ids("step"))

    def went(self, r, rows, outcome="done"):
        p = r.policy("job")
        self.assertEqual((p["outcome"], p["rows"], self.gone(r)), (outcome, rows, {"job": rows, "step": rows}), r)
        return p


# --- locks and conflicts -----------------------------------------------------------------------------------

@every_server
class Conflicts(Jobs):
    def test_a_deadlock_that_the_sweep_loses(self):
        """The other session has a step and wants its job; the sweep has the job and wants the step. On PostgreSQL whoever
        has waited for deadlock_timeout first is the victim: the other session never looks. On MariaDB it is who has
        written less."""
        with Session(self.db) as other:
            if self.on_postgres:
                heavy = "set deadlock_timeout = '1min'"
            else:
                self.given("create table heavy (id integer primary key)")
                heavy = "insert into heavy select seq from seq_1_to_1000"
            crossed = []

            def before(s):
                if s.sql.startswith("DELETE") and not crossed:
                    crossed.append(True)
                    other.do("begin", heavy, "select id from step where id = 7 for update",
                             "select id from job where id = 7 for update", "rollback")

            with Proxy(self.db, before) as proxy:
                r = lapse(proxy.dsn, contract(more=", timeouts: {lock: 5s}"), "sweep", "--json", "--now", NOW)
            other.finish()
            self.assertIsNone(other.error)
        self.assertEqual(r.code, 0, r)
        self.assertTrue(crossed)
        self.assertGreater(self.went(r, LAST)["retries"], 0)
        self.stayed()

    def test_a_lock_that_is_never_released(self):
        with Session(self.db) as other:
            other.do("begin", "update step set id = id where id = 7")
            r = self.sweep(contract(more=", timeouts: {lock: 20ms}"), code=1)
            other.do("rollback")
        p = self.went(r, LAST - 1)
        self.assertEqual([(s["key"], s["reason"]) for s in p["skipped"]], [("id=7", "locked")])
        self.assertRegex(p["skipped"][0]["error"], "(?i)lock (wait )?timeout")
        self.stayed(7)
        self.went(self.sweep(contract()), 1)

    def test_a_lock_that_is_released_in_time(self):
        """When it is tried again for the second time."""
        begun = []

        def before(s):
            if s.begins_batch:
                begun.append(s)
                if len(begun) == 3:
                    other.do("rollback")

        with Session(self.db) as other:
            other.do("begin", "update step set id = id where id = 7")
            with Proxy(self.db, before) as proxy:
                r = lapse(proxy.dsn, contract(more=", timeouts: {lock: 100ms}"), "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 0, r)
        self.assertGreater(self.went(r, LAST)["retries"], 0)
        self.stayed()

    def test_a_row_that_stays_locked_is_left(self):
        with Session(self.db) as other:
            other.do("begin", "select id from job where id = 7 for update")
            r = self.sweep(contract())
            other.do("rollback")
        self.assertEqual(self.went(r, LAST - 1)["left"], 1)
        self.stayed(7)

    def test_a_row_that_goes_after_all_was_not_skipped(self):
        """Pass one skips 7, whose step is locked, and leaves 9, which is locked itself; the second look gets both."""
        with Session(self.db) as other:
            other.do("begin", "update step set id = id where id = 7", "select id from job where id = 9 for update")

            def before(s):
                if "count(*) FROM (SELECT 1" in s.sql:      # how many are left?
                    other.do("rollback")

            with Proxy(self.db, before) as proxy:
                r = lapse(proxy.dsn, contract(4, ", timeouts: {lock: 20ms}"), "sweep", "--json", "--now", NOW, timeout=150)
        self.assertEqual((r.code, self.went(r, LAST)["skipped"]), (0, []), r)
        self.stayed()

    def test_serialization_failures(self):
        for batch in (10, "null"):
            with self.subTest(batch):
                self.fill()
                self.given("drop sequence if exists tries; create sequence tries")
                self.given("""
                    drop trigger if exists no;
                    create trigger no before delete on job when old.id = 25 begin
                        if nextval(tries) <= 3 then signal sqlstate '40001' set mysql_errno = 1213; end if; end"""
                           if self.on_mariadb else """
                    create or replace function no() returns trigger language plpgsql as $$ begin
                        if nextval('tries') <= 3 then
                            raise exception 'could not serialize' using errcode = '40001';
                        end if;
                        return old; end $$;
                    drop trigger if exists no on job;
                    create trigger no before delete on job for each row when (old.id = 25) execute function no()""")
                r = self.sweep(contract(batch))
                self.assertEqual(self.went(r, LAST)["retries"], 3)
                self.stayed()

    def test_a_serialization_failure_without_end(self):
        self.given("""create trigger no before delete on job when old.id = 25 begin
                      signal sqlstate '40001' set mysql_errno = 1213; end""" if self.on_mariadb else """
            create function no() returns trigger language plpgsql as $$ begin
                raise exception 'could not serialize' using errcode = '40001'; end $$;
            create trigger no before delete on job for each row when (old.id = 25) execute function no()""")
        r = self.sweep(contract(2), code=1)
        p = self.went(r, LAST - 1)
        self.assertEqual([s["key"] for s in p["skipped"]], ["id=25"])
        self.stayed(25)

    def test_a_statement_that_takes_too_long(self):
        self.given("create trigger slow before delete on step when old.id = 7 begin do sleep(10); end"
                   if self.on_mariadb else """
            create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(10); return old; end $$;
            create trigger slow before delete on step for each row when (old.id = 7) execute function slow()""")
        r = self.sweep(contract(4, ", timeouts: {statement: 150ms}"), code=1)
        p = self.went(r, LAST - 1)
        self.assertEqual([(s["key"], s["reason"]) for s in p["skipped"]], [("id=7", "too_heavy")])
        self.stayed(7)


class PostgresConflicts(Jobs, PostgresTest):
    def test_settings_of_the_role(self):
        role = f"odd_{self.db.name}"
        self.given(f"""
            create role {role} login; grant select, update, delete on job, step to {role};
            alter role {role} set default_transaction_isolation = 'serializable';
            alter role {role} set default_transaction_read_only = on;
            alter role {role} set lock_timeout = 1; alter role {role} set statement_timeout = 1;
            alter role {role} set search_path = pg_catalog; alter role {role} set standard_conforming_strings = off;
            alter role {role} set datestyle = 'SQL, DMY'; alter role {role} set row_security = on""")
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        self.given(f"alter role {role} reset statement_timeout")
        named = contract().replace("table: job", "table: public.job").replace("step(", "public.step(")
        r = lapse(self.db.server.dsn(self.db.name, user=role), named, "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 0, r)
        self.went(r, LAST)
        self.stayed()

    def test_row_security_that_hides_rows(self):
        role = f"tenant_{self.db.name}"
        self.given(f"create role {role} login; grant select, update, delete on job, step to {role}")
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        for table in ("job", "step"):
            with self.subTest(table):
                self.given(f"alter table {table} enable row level security; "
                           f"create policy few on {table} using (id < 20)")
                with self.untouched():
                    r = lapse(self.db.server.dsn(self.db.name, user=role), contract(), "sweep", "--json", "--now", NOW)
                self.assertEqual(r.code, 3, r)
                self.assertRegex(r.out, "row.(level )?security")
                self.given(f"drop policy few on {table}; alter table {table} disable row level security")

    def test_row_security_that_comes_in_mid_sweep(self):
        role = f"tenant_{self.db.name}"
        self.given(f"create role {role} login; grant select, update, delete on job, step to {role}")
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        done = []

        def before(s):
            if s.begins_batch and not done:
                done.append(True)
                self.given("alter table step enable row level security; create policy few on step using (id > 20)")

        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn.replace("postgres@", f"{role}@"), contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 1, r)
        self.assertIn("row-level security", r.out)
        self.stayed(*range(1, LAST + 1))

    def test_a_read_only_database(self):
        self.given(f'alter database "{self.db.name}" set default_transaction_read_only = on')
        self.went(self.sweep(contract()), LAST)     # a default, which a sweep overrides


# --- connections --------------------------------------------------------------------------------------------

@every_server
class Connections(Jobs):
    def through(self, before, code=0, batch=20, looks=False):
        with Proxy(self.db, before, looks=looks) as proxy:
            r = lapse(proxy.dsn, contract(batch), "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, code, f"{r}\n{proxy.seen}")
        return r, proxy

    def statements(self, batch=20):
        self.fill()
        return self.through(None, batch=batch)[1].seen

    def test_lost_before_any_statement(self):
        """From the first statement of the policy on (the first of all are part of connecting), but COMMIT."""
        seen = self.statements()
        clock = next(i for i, s in enumerate(seen) if "SELECT (EXTRACT(epoch" in s.sql or s.sql.startswith("SELECT TIMESTAMPDIFF"))
        for s in seen[clock + 1:]:
            if s.sql == "COMMIT":
                continue
            with self.subTest(s):
                self.fill()
                r, proxy = self.through(lambda now: CUT if now.number == s.number else PASS)
                self.stayed()
                self.went(r, LAST)
                self.assertEqual(proxy.connections, 2 if s.number < len(proxy.seen) else 1)

    def test_lost_while_it_asks_how_others_fare(self):
        for number in range(3 if self.on_postgres else 1):
            with self.subTest(number):
                self.fill()
                asked = []

                def before(s):
                    asked.extend([s] if s.look else [])
                    return CUT if s.look and len(asked) == number + 1 else PASS

                r, proxy = self.through(before, looks=True)
                self.stayed()
                self.went(r, LAST)
                self.assertEqual(proxy.connections, 2)

    def test_lost_before_any_statement_in_one_batch(self):
        seen = self.statements("null")
        first = next(s.number for s in seen if s.begins_batch)
        for s in seen[first - 1:]:
            if s.sql == "COMMIT":
                continue
            with self.subTest(s):
                self.fill()
                r, _ = self.through(lambda now: CUT if now.number == s.number else PASS, batch="null")
                self.stayed()
                self.went(r, LAST)

    def test_rows_that_the_broken_connection_still_holds(self):
        for batch in (20, "null"):
            with self.subTest(batch):
                self.fill()
                r, _ = self.through(lambda s: STRAND if s.sql.startswith("DELETE") and s.connection == 1 else PASS,
                                    batch=batch)
                self.stayed()
                self.assertEqual(self.went(r, LAST)["left"], 0)

    def test_the_answer_is_lost(self):
        """Of any statement of a batch but COMMIT: nothing was committed."""
        seen = self.statements()
        first = next(s.number for s in seen if s.begins_batch)
        for s in seen[first - 1:first + 6]:
            if s.sql.startswith("COMMIT"):
                continue
            with self.subTest(s):
                self.fill()
                r, _ = self.through(lambda now: MUTE if now.number == s.number else PASS)
                self.stayed()
                self.assertEqual(self.went(r, LAST)["unknown"], 0)

    def test_ended_by_an_administrator(self):
        seen = self.statements()
        first = next(s.number for s in seen if s.begins_batch)
        for s in seen[first - 1:first + 6]:
            with self.subTest(s):
                self.fill()

                def before(now):
                    if now.number == s.number:
                        self.end_sessions()

                r, _ = self.through(before)
                self.stayed()
                self.counted(r)

    def end_sessions(self):
        """On a connection of its own: once the first is ended, the program may come back or end, and the test go on."""
        with contextlib.closing(type(self.db)(self.db.server, self.db.name)) as db:
            theirs = self.per_engine(
                mariadb="select id from information_schema.processlist where db = database() and id not in"
                        f" (connection_id(), {self.db.connection.thread_id() if self.on_mariadb else 0})",
                postgres="select pid from pg_stat_activity where application_name = 'lapse' and datname = current_database()")
            ended = {pid for pid, in db.rows(theirs)}
            for pid in ended:
                db.rows(f"select pg_terminate_backend({pid})") if self.on_postgres else db.execute(f"kill {pid}")
            while ended & {pid for pid, in db.rows(theirs)}:
                time.sleep(0.005)

    def counted(self, r):
        """All is gone. By whom, the server can be asked; MariaDB's cannot, and there what had no answer is counted apart."""
        p = r.policy("job")
        self.assertEqual((r.code, p["outcome"], p["rows"] + p["unknown"], p["left"]), (0, "done", LAST, 0), r)
        self.assertEqual(p["unknown"] if self.on_postgres else 0, 0, r)
        return p

    def lose_commit(self, how, batch=10, code=0):
        lost = []

        def before(s):
            if s.sql == "COMMIT" and not lost:
                lost.append(s)
                return how
            return PASS

        r, _ = self.through(before, code, batch)
        self.assertTrue(lost)
        return r

    def test_a_commit_whose_answer_is_lost(self):
        """Some of its rows are looked up: they are gone, and count once."""
        for batch in (10, "null"):
            with self.subTest(batch):
                self.fill()
                r = self.lose_commit(MUTE, batch)
                p = self.counted(r)
                lost = LAST if batch == "null" else 10
                self.assertEqual(p["unknown"], 0 if self.on_postgres else lost, r)
                if batch == 10:
                    self.assertEqual(p["batches"], 4 if self.on_postgres else 3, r)
                self.stayed()
                self.assertEqual(self.gone(self.sweep(contract())), {})

    def test_a_row_of_it_that_somebody_put_back(self):
        """That one of them is there again does not mean that nothing had gone. It is swept, too."""
        put = []

        def before(s):
            if s.connection == 2 and s.begins_batch and not put:
                put.append(s)
                self.insert("job", (1, 1))
            return MUTE if s.sql == "COMMIT" and s.connection == 1 else PASS

        r, _ = self.through(before, batch=10, code=0 if self.on_postgres else 1)
        self.stayed()
        self.assertEqual((r.policy("job")["rows"], r.policy("job")["unknown"]),
                         (LAST + 1, 0) if self.on_postgres else (LAST - 9, 10), r)

    def test_what_cannot_be_looked_up_is_said_to_be_unknown(self):
        for how in ("--json", "--no-progress"):
            with self.subTest(how):
                self.fill()
                with Proxy(self.db, lambda s: MUTE if s.sql == "COMMIT" or s.connection > 1 else PASS) as proxy:
                    r = lapse(proxy.dsn, contract(10, ", timeouts: {away: 1ms}"), "sweep", how, "--now", NOW)
                self.assertEqual(r.code, 5, r)
                self.assertIn("unknown", r.said)
                if how == "--json":
                    self.assertEqual((r.policy("job")["rows"], r.policy("job")["unknown"]), (0, 10), r)

    def test_a_commit_that_never_arrives(self):
        for batch in (10, "null"):
            with self.subTest(batch):
                self.fill()
                with Proxy(self.db, lambda s: CUT if s.sql == "COMMIT" and s.connection == 1 else PASS) as proxy:
                    r = lapse(proxy.dsn, contract(batch), "sweep", "--json", "--now", NOW)
                self.stayed()
                self.assertEqual((r.code, self.went(r, LAST)["unknown"]), (0, 0), r)

    def test_a_connection_that_breaks_every_time(self):
        with Proxy(self.db, lambda s: CUT if s.sql.startswith("DELETE") else PASS) as proxy:
            r = lapse(proxy.dsn, contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 1, "the database was reached each time: it is the policy that failed\n" + str(r))
        self.assertGreater(proxy.connections, 2)
        self.stayed(*range(1, LAST + 1))

    def test_a_proxy_that_takes_no_more_connections(self):
        proxy = Proxy(self.db, lambda s: proxy.close() if s.sql.startswith("DELETE") else PASS)
        r = lapse(proxy.dsn, contract(more=", timeouts: {away: 1s}"), "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 5, r)
        self.assertEqual(r.policy("job")["outcome"], "failed")
        self.assertIn("connect", r.policy("job")["error"])
        self.stayed(*range(1, LAST + 1))


@every_server
class Servers(Case):
    """Servers of our own, to be stopped."""
    server = None

    @classmethod
    def setUpClass(cls):
        # a crash loses nothing that was committed
        cls.server = Mariadb(durable=True) if cls.engine == "mariadb" else Postgres(settings={"synchronous_commit": "on"})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.db = self.server.fresh()
        self.given(SCHEMA)
        Jobs.fill(self)

    def test_restarted_in_mid_sweep(self):
        for how in (signal.SIGKILL, signal.SIGTERM) if self.on_mariadb else (signal.SIGQUIT, signal.SIGINT):
            for kind in ("DELETE", "COMMIT"):
                with self.subTest(how=how, before=kind):
                    Jobs.fill(self)
                    reached, stopped = threading.Event(), threading.Event()

                    def before(s):
                        if s.sql.startswith(kind) and not reached.is_set():
                            reached.set()
                            stopped.wait(30)

                    with Proxy(self.db, before, patience_s=30) as proxy:
                        p = Lapse.start(proxy.dsn, contract(), "sweep", "--json", "--now", NOW)
                        self.assertTrue(reached.wait(30))
                        self.db.close()
                        self.server.stop(how)       # by this thread: the server ends with the one that started it
                        stopped.set()
                        self.server.start()
                        r = p.wait(60)
                    self.assertEqual(self.ids("job"), [1000])
                    self.assertEqual(self.ids("step"), [1000])
                    p = r.policy("job")
                    self.assertEqual((r.code, p["outcome"], p["rows"] + p["unknown"]), (0, "done", LAST), r)
                    self.assertGreater(p["retries"], 0)

    def test_a_crash_that_undoes_commits(self):
        """The server forgets what was not on its disk yet. What was counted of it is doubted and looked up: what
        is still gone counts, what is back goes again."""
        if not self.on_mariadb:
            self.server.admin("alter system set wal_writer_delay = '10s'")      # which would have it there soon
            self.server.admin("alter system set timezone = 'Asia/Kolkata'")
            self.server.admin("select pg_reload_conf()")
        commits, reached, stopped = [], threading.Event(), threading.Event()

        def before(s):
            commits.extend([s] if s.sql.startswith("COMMIT") else [])
            if len(commits) in (2, 4) and s.sql.startswith("COMMIT"):
                time.sleep(1.2)         # a sweep that lasts: now commits do not wait for the disk; then the next second
            if reached.is_set() or (len(commits) == 6 and s.sql.startswith("DELETE")):
                reached.set()
                stopped.wait(30)

        with Proxy(self.db, before, patience_s=30) as proxy:
            p = Lapse.start(proxy.dsn, contract(5), "sweep", "--json", "--now", NOW)
            self.assertTrue(reached.wait(30))
            self.db.close()
            self.server.stop(signal.SIGKILL if self.on_mariadb else signal.SIGQUIT)
            self.server.start()
            gone = LAST + 1 - len(self.ids("job"))
            self.db.close()
            stopped.set()
            r = p.wait(60)
        self.assertEqual(self.ids("job"), [1000])
        found = r.policy("job")
        self.assertEqual(gone, 30 if self.on_mariadb else 20, "nothing was forgotten, or too much")
        self.assertEqual((r.code, found["outcome"], found["rows"], found["unknown"]), (0, "done", LAST, 0), r)

    def test_zz_gone_for_good(self):
        def before(s):
            if s.sql.startswith("DELETE"):
                self.db.close()
                self.server.stop()

        with Proxy(self.db, before) as proxy:
            start = time.monotonic()
            r = lapse(proxy.dsn, contract(more=", timeouts: {away: 2s}"), "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 5, r)
        self.assertEqual(r.policy("job")["outcome"], "failed")
        self.assertEqual(r.policy("job")["rows"], 0)
        self.assertLess(time.monotonic() - start, 40)
        self.server.start()
        self.assertEqual(len(self.ids("job")), LAST + 1)


# --- SQLite -------------------------------------------------------------------------------------------------

def opened(p, path):
    """Returns when the program has the file open."""
    def holds():
        with contextlib.suppress(OSError):
            return any(os.readlink(f) == str(path) for f in Path(f"/proc/{p.pid}/fd").iterdir())
    deadline = time.monotonic() + 60
    while p.running() and not holds():
        if time.monotonic() > deadline:
            raise AssertionError("the file is not opened")
        time.sleep(0.01)


class Busy(Jobs, SqliteTest):
    def writer(self):
        c = self.db.connect()
        c.execute("begin immediate")
        self.addCleanup(c.close)
        return c

    def swept_beside(self, c, batch=10):
        """Somebody commits a while after the sweep has opened the file. The test is @again: it may not have come that far."""
        p = Lapse.start(self.db, contract(batch, ", timeouts: {lock: 50ms}"), "sweep", "--json", "--now", NOW)
        opened(p, self.db.path)
        time.sleep(0.6)
        c.execute("commit")
        r = p.wait()
        self.assertEqual(r.code, 0, r)
        if not r.policy("job")["retries"]:
            raise TooSoon("a lock that is waited for")
        return r

    def ends_in_time(self, batch):
        c = self.writer()
        c.execute("update job set at_ms = ? where id = 7", (MS + 1,))
        self.went(self.swept_beside(c, batch), LAST - 1)
        self.stayed(7)

    @again
    def test_a_writer_that_ends_in_time(self):
        self.ends_in_time(10)

    @again
    def test_a_writer_that_ends_in_time_for_all_in_one(self):
        self.ends_in_time("null")

    def test_a_writer_that_never_ends(self):
        c = self.writer()
        r = self.sweep(contract(more=", timeouts: {lock: 20ms}"), code=1)
        p = r.policy("job")
        self.assertEqual((p["outcome"], p["rows"]), ("failed", 0))
        self.assertIn("locked", p["error"])
        c.execute("rollback")
        self.stayed(*range(1, LAST + 1))

    @again
    def test_a_reader_that_keeps_commits_from_ending(self):
        c = self.db.connect()
        self.addCleanup(c.close)
        c.execute("begin")
        c.execute("select * from job").fetchone()
        self.went(self.swept_beside(c), LAST)
        self.stayed()

    def test_a_reader_of_the_log(self):
        self.db.rows("pragma journal_mode = wal")
        c = self.db.connect()
        self.addCleanup(c.close)
        c.execute("begin")
        c.execute("select * from job").fetchall()
        self.went(self.sweep(contract()), LAST)
        c.execute("rollback")
        self.stayed()

    def test_a_statement_that_takes_too_long(self):
        self.given("create trigger slow before delete on step when old.id = 7 begin "
                   "select count(*) from (with recursive s(n) as (select 1 union all select n + 1 from s where n < 1e12) "
                   "select n from s); end")
        r = self.sweep(contract(4, ", timeouts: {statement: 100ms}"), code=1)
        p = self.went(r, LAST - 1)
        self.assertEqual([(s["key"], s["reason"]) for s in p["skipped"]], [("id=7", "too_heavy")])
        self.stayed(7)

    def test_a_read_only_file(self):
        self.db.close()
        self.db.path.chmod(0o444)
        ro = f"sqlite:{self.db.path}"
        before = self.db.path.read_bytes()
        if os.access(self.db.path, os.W_OK):    # root may write everything: ask as somebody else
            self.db.path.parent.chmod(0o755)
            r = self.as_nobody(ro)
        else:
            r = lapse(ro, contract(), "sweep", "--json", "--now", NOW)
        self.assertNotEqual(r.code, 0, r)
        self.assertRegex(r.out, "read-?only|only be read")
        self.assertEqual(self.db.path.read_bytes(), before)

    def as_nobody(self, dsn):
        path = contract_file(dsn, contract())
        p = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program(), "-f", str(path),
                            "sweep", "--json", "--now", NOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/")
        return Result(["sweep"], p.returncode, p.stdout.decode(), p.stderr.decode()).sane()

    def test_a_full_disk(self):
        """A limit on the size of files: the journal cannot be written."""
        self.given("create table wide (id integer primary key, at_ms integer, x text)")
        self.insert("wide", *[(n, 0, "x" * 3000) for n in range(400)])
        self.db.close()
        path = contract_file(self.db, "policies: {wide: {table: wide, expires: at_ms, batch: 300}}")
        most = 100_000

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        p = subprocess.run([program(), "-f", str(path), "sweep", "--json", "--now", NOW], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, preexec_fn=limit)
        r = Result(["sweep"], p.returncode, p.stdout.decode(), p.stderr.decode()).sane()
        self.assertEqual(r.code, 1, r)
        there = self.db.rows("select count(*) from wide")[0][0]
        self.assertEqual(self.db.rows("pragma integrity_check"), [("ok",)])
        self.assertEqual(there, 400 - r.policy("wide")["rows"], r)
        self.assertGreater(there, 0)
        self.assertRegex(r.policy("wide")["error"], "SQLITE_(FULL|IOERR)")
        self.assertEqual(self.gone(self.sweep("policies: {wide: {table: wide, expires: at_ms}}")), {"wide": there})


# --- signals ------------------------------------------------------------------------------------------------

@every_engine
class Signals(Case):
    ROWS = 20000

    def setUp(self):
        super().setUp()
        self.given(SCHEMA)
        for table in ("job", "step"):
            self.given(f"insert into {table} select n, {'0' if table == 'job' else 'n'} from ({self.series(self.ROWS)}) s")

    def begun(self):
        deadline = time.monotonic() + 60
        while self.db.rows("select 1 from job where id = 1"):
            self.assertLess(time.monotonic(), deadline, "the sweep does not begin")
            time.sleep(0.02)

    def in_the_way(self):
        """An open transaction for which a sweep must wait."""
        c = self.db.connect()
        self.addCleanup(c.close)
        if not self.on_sqlite:
            with c.cursor() as cursor:
                cursor.execute("begin")
                cursor.execute("update step set id = id where id = 5")
        else:
            c.execute("begin immediate")
        return c

    def waits(self, p):
        """Returns when the sweep waits for that transaction; on SQLite, as far as one can see."""
        if self.on_sqlite:
            opened(p, self.db.path)
            time.sleep(1)
            return
        sql = self.per_engine(
            postgres="select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
            mariadb="select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT' and trx_mysql_thread_id in "
                    "(select id from information_schema.processlist where db = database())")
        deadline = time.monotonic() + 60
        while not self.db.rows(sql):
            self.assertLess(time.monotonic(), deadline, "the sweep does not wait")
            time.sleep(0.11)        # what information_schema shows is a tenth of a second old

    def test_it_stops_after_the_batch(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                self.given("create table if not exists other (id integer primary key, at_ms bigint)")
                self.given("delete from other; insert into other values (1, 0)")
                if 1 not in self.ids("job"):
                    self.given("insert into job values (1, 0); insert into step values (1, 1)")
                before = len(self.ids("job"))
                p = Lapse.start(self.db, "policies:\n  job: {table: job, expires: at_ms, batch: 1, with: [step(job_id)]}\n"
                                         "  other: {table: other, expires: at_ms}", "sweep", "--json", "--now", NOW)
                self.begun()
                p.signal(number)
                start = time.monotonic()
                r = p.wait(30)
                self.assertLess(time.monotonic() - start, 15)
                left = len(self.ids("job"))
                self.assertEqual(self.ids("job"), self.ids("step"))
                self.assertEqual(r.code, 6, r)
                self.assertEqual((r.policy("job")["outcome"], r.policy("job")["rows"]), ("stopped", before - left), r)
                self.assertGreater(left, 0)
                self.assertEqual(r.policy("other")["outcome"], "stopped")
                self.left("other", 1)

    def test_the_second_one_ends_it_at_once(self):
        c = self.in_the_way()
        p = Lapse.start(self.db, contract(1000, ", timeouts: {lock: 20s}"), "sweep", "--json", "--now", NOW)
        self.waits(p)
        p.signal(signal.SIGTERM)
        if self.on_sqlite:          # it waits for its turn to write, and has not begun: one is enough
            self.assertEqual(p.wait(15).code, 6)
            c.rollback()
            return
        time.sleep(0.3)
        self.assertTrue(p.running(), "".join(p.so_far()))
        p.signal(signal.SIGTERM)
        r = p.wait(15, signals=(signal.SIGTERM,))
        self.assertEqual(r.code, -signal.SIGTERM, r)
        c.rollback()
        self.assertEqual(self.ids("job"), self.ids("step"))

    @again
    def test_one_request_that_arrives_twice(self):
        """timeout(1) signals its child and then the group that the child is in."""
        c = self.in_the_way()
        p = Lapse.start(self.db, contract(1000, ", timeouts: {lock: 100ms}"), "sweep", "--json", "--now", NOW)
        self.waits(p)
        start = time.monotonic()
        p.signal(signal.SIGTERM)
        time.sleep(0.01)
        p.signal(signal.SIGTERM)
        late = time.monotonic() - start > 0.05
        r = p.wait(30, signals=(signal.SIGTERM,))
        c.rollback()
        if late and r.code == -signal.SIGTERM:
            raise TooSoon("another request, not the same")
        self.assertEqual(r.code, 6, r)
        self.assertEqual(len(self.ids("job")), self.ROWS)

    def test_while_it_waits_for_a_lock(self):
        """The pauses between tries end when it is asked to stop."""
        c = self.in_the_way()
        p = Lapse.start(self.db, contract(1000, ", timeouts: {lock: 100ms}"), "sweep", "--json", "--now", NOW)
        self.waits(p)
        p.signal(signal.SIGTERM)
        r = p.wait(30)
        c.rollback()
        self.assertEqual(r.code, 6, r)
        self.assertEqual(len(self.ids("job")), self.ROWS)
