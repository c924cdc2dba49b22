"""PostgreSQL behind pgbouncer in transaction mode: connections that change, break, move; other clients' leavings.

That everything else works there too is shown by the suites themselves: see tests/pooled.py.
"""
import signal

import psycopg2

from pg_case import *

import random_rounds
import rounds

N = 800
SLOW = """create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(30); return old; end $$;
          create trigger slow before delete on step for each row execute function slow();"""


class Pooled(PairTest):
    """A pair, too, where a test needs one; else one server."""
    paired = False
    pool = {}

    def setUp(self):
        if self.paired:
            super().setUp()
            server = self.pair.primary
        else:
            server = self.node = Node(settings=self.settings)
            self.addCleanup(server.kill)
            self.db = server.fresh()
            self.addCleanup(lambda: self.db.close())
        server.admin(f"alter role postgres password '{Pooler.PASSWORD}'")
        self.pooler = Pooler(server, **self.pool)
        self.addCleanup(self.pooler.stop)
        self.db.dsn = self.pooler.dsn(self.db.name)

    def fill(self, due):
        if not self.paired:
            self.pair = type("One", (), {"caught_up": lambda s: None, "primary": self.node, "stop": lambda s: None})()
        super().fill(due)

    def swept(self, r, rows=N):
        self.assertEqual((r.code, r.policy("job")["rows"], r.policy("job")["unknown"]), (0, rows, 0), r)
        self.all_is_right()
        return r.policy("job")


class Changing(Pooled):
    """Each transaction has a server connection of its own, which is closed behind it."""
    pool = {"default_pool_size": 3, "server_lifetime": 0, "server_idle_timeout": 1}

    def test_every_transaction_elsewhere(self):
        self.fill(200)
        self.given("create table seen (pid integer); create function saw() returns trigger language plpgsql as"
                   " $$ begin insert into seen values (pg_backend_pid()); return null; end $$;"
                   "create trigger saw after delete on job for each statement execute function saw()")
        self.lapse(CONTRACT, "install", code=0)
        self.swept(self.sweep(CONTRACT, now=None), 200)
        pids = [p for p, in self.db.rows("select pid from seen")]
        self.assertEqual(len(pids), 10)
        self.assertGreater(len(set(pids)), 5, "the batches ran in sessions of their own")

    def test_the_daemon(self):
        self.fill(200)
        contract = CONTRACT.replace("policies:", "schedulers: { default: { every: 200ms, exclusive: true, lease: 5s } }\n    policies:")
        self.lapse(contract, "install", code=0)
        with Daemon(self.db, contract) as d:
            eventually(lambda: self.due_left() == 0)
            self.insert("job", (5000, 1))
            eventually(lambda: self.due_left() == 0)
            self.assertEqual(d.said("lifecycle_tick_failed"), [], d)
            self.assertEqual(self.db.rows("select token from lapse_lease"), [(1,)])
        self.all_is_right()


class One(Pooled):
    """One server connection for all."""
    pool = {"default_pool_size": 1}

    def client(self):
        c = psycopg2.connect(self.db.dsn)
        self.addCleanup(c.close)
        c.autocommit = True
        return c

    def test_two_sweepers_share_it(self):
        self.fill(N)
        two = [self.start(), self.start()]
        rows = [p.wait().policy("job")["rows"] for p in two]
        self.assertEqual(sum(rows), N)
        self.all_is_right()

    def test_what_others_leave_behind(self):
        """Another client makes temporary tables and sets a search path in its session, and the next to have that session is the sweep: it deletes
        from the table that the contract names, as this user finds it."""
        self.fill(40)
        self.given("create schema other; create table other.job (like job including all);"
                   "create table other.step (like step including all); create role nobody_much;"
                   "insert into other.job select * from job;"
                   "create function late() returns trigger language plpgsql as $$ begin perform pg_sleep(0.8); return null; end $$;"
                   "create trigger late after delete on job for each statement execute function late()")
        self.lapse(CONTRACT, "install", code=0)
        with self.client().cursor() as c:
            c.execute("create temp table job (id integer, at_ms bigint); create temp table step (id integer, job_id integer)")
            c.execute("set search_path = other; set role nobody_much; set timezone = 'Asia/Tokyo'; set datestyle = 'SQL, DMY';"
                      "set default_transaction_read_only = on; set statement_timeout = 400; set standard_conforming_strings = off")
        with self.client().cursor() as c:
            c.execute("show search_path")
            self.assertEqual(c.fetchall(), [("other",)], "the session is that one")
        self.assertEqual(self.plan(CONTRACT, now=None).policy("job")["table"], "public.job")
        self.swept(self.sweep(CONTRACT, now=None), 40)
        self.assertEqual(self.db.rows("select count(*) from other.job"), [(40 + KEPT,)])
        self.assertEqual(self.db.rows("select count(*) from lapse_run"), [(1,)], "its own tables are found")

    def test_it_leaves_nothing_behind(self):
        self.fill(40)
        c = self.client()

        def settings():
            with c.cursor() as q:
                q.execute("select name, setting from pg_settings where name <> 'application_name' order by 1")
                return q.fetchall()
        before = settings()
        self.lapse(CONTRACT, "install", code=0)
        self.sweep(CONTRACT, now=None)
        self.assertEqual(settings(), before)

    def test_held_up_by_others(self):
        """Somebody has the only connection: it waits, and then goes on."""
        self.fill(40)
        with self.client().cursor() as c:
            c.execute("begin; select 1")
            p = self.start()
            time.sleep(1)
            self.assertTrue(p.running())
            c.execute("rollback")
        self.swept(p.wait(), 40)

    def stopped_in_a_statement(self):
        self.fill(40)
        self.given(SLOW)
        contract = CONTRACT.replace("policies:", "schedulers: { default: { every: 200ms } }\n    policies:")
        d = Daemon(self.db, contract)
        self.addCleanup(lambda: d.kill() if d.running() else None)
        eventually(lambda: self.node.ask("select 1 from pg_stat_activity where wait_event = 'PgSleep'"))
        return d

    def test_stopped_at_once(self):
        """The second request cancels the statement, through the pooler; its transaction is rolled back."""
        d = self.stopped_in_a_statement()
        d.signal(signal.SIGTERM)
        time.sleep(0.4)
        start = time.monotonic()
        d.stop()
        self.assertLess(time.monotonic() - start, 20)
        eventually(lambda: not self.node.ask("select 1 from pg_stat_activity where wait_event = 'PgSleep'"), 15,
                   words="the statement is cancelled on the server")
        self.assertEqual(self.due_left(), 40)

    def test_stopped_at_once_with_a_pooler_that_hangs(self):
        """Nobody hears the cancellation: the connection is given up, and it ends all the same."""
        d = self.stopped_in_a_statement()
        self.pooler.process.send_signal(signal.SIGSTOP)
        self.addCleanup(lambda: self.pooler.process.send_signal(signal.SIGCONT))
        d.signal(signal.SIGTERM)
        time.sleep(0.4)
        start = time.monotonic()
        d.stop(code=(0, 6))     # 6: on a busy machine it is not waited for
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(self.due_left(), 40)


class ByTheOracle(Pooled):
    """Random rounds, with a server connection for each transaction; after each group, the oracle compares all rows."""
    pool = {"server_lifetime": 0}
    settings = {"max_locks_per_transaction": "256", "synchronous_commit": "off"}

    def fresh(self):
        db = self.node.fresh()
        db.dsn = self.pooler.dsn(db.name)
        return db

    def test_rounds(self):
        direct, shown = random_rounds.OnPostgres.fresh, []
        random_rounds.OnPostgres.fresh = self.fresh
        try:
            played = random_rounds.Played("postgres", 5_000_000, 400 if THOROUGH else rounds.GROUP, shown.append).play()
        finally:
            random_rounds.OnPostgres.fresh = direct
        self.assertFalse(played.failed, "\n".join(shown))
        self.assertGreater(played.features["something goes"], 0.4 * played.rounds)


class Restarted(Pooled):
    @again
    def test_killed_in_mid_sweep(self):
        """kill -9: whatever was under way in the server is rolled back, or was committed and is looked up."""
        self.fill(N)
        p = self.start()
        for left in (0.8, 0.5):
            self.until_left(p, N * left)
            self.pooler.stop()
            self.pooler.start()
        r = p.wait()
        entry = r.policy("job")
        self.assertEqual((r.code, entry["outcome"]), (1 if entry["unknown"] else 0, "done"), r)
        self.assertLessEqual(entry["rows"], N)
        self.assertLessEqual(N, entry["rows"] + entry["unknown"])
        self.assertGreaterEqual(entry["retries"], 1)
        self.all_is_right()

    @again
    def test_orderly(self):
        """It is asked to end when its clients have none of its connections: each row counts once."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.pooler.stop(signal.SIGINT)
        self.pooler.start()
        r = p.wait()
        self.assertEqual(self.swept(r)["unknown"], 0)

    @again
    def test_paused(self):
        """PAUSE holds the next transaction back, RESUME lets it go."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.pooler.say("pause")
        left = self.due_left()
        time.sleep(0.5)
        self.assertEqual(self.due_left(), left)
        self.pooler.say("resume")
        self.assertEqual(self.swept(p.wait())["retries"], 0)

    @again
    def test_the_server_behind_it_crashes(self):
        """At a statement, not at a COMMIT: nothing is in doubt."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.held_up(p)
        self.node.kill()
        self.node.start()
        self.db.close()
        self.assertGreaterEqual(self.swept(p.wait())["retries"], 1)


class Moved(Pooled):
    """A failover behind the pooler, whose clients stay connected."""
    paired = True

    @again
    def test_in_mid_sweep(self):
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.held_up(p)
        self.pair.caught_up()
        self.pair.fail_over()
        self.pooler.move(self.pair.primary)
        r = p.wait()
        entry = self.went_on(r)
        self.assertEqual((r.code, entry["rows"], entry["unknown"]), (0, N, 0), r)

    def test_a_standby_is_behind_it(self):
        """… and clients that were connected before are told of it by the first transaction that writes."""
        self.fill(N)
        contract = CONTRACT.replace("lock: 20s", "lock: 20s, away: 1s")
        with Daemon(self.db, contract.replace("policies:", "schedulers: { main: { every: 300ms } }\n    policies:")) as d:
            eventually(lambda: self.due_left() == 0)
            after = d.mark()
            self.pooler.move(self.pair.standby)
            self.insert("job", (5000, 1))
            line = d.wait_for("main.lifecycle_tick_failed", after=after)
            self.assertIn("the server is a standby and takes no writes", line["error"])
            self.assertFalse(d.ready())
            r = self.lapse(CONTRACT, "sweep", code=5)
            self.assertIn("the server is a standby and takes no writes", r.err)
            self.lapse(CONTRACT, "plan", code=0)
            self.pooler.move(self.pair.primary)
            d.wait_for("main.lifecycle_recovered")
            eventually(lambda: self.due_left() == 0)
        self.all_is_right()


class MovedSynchronous(Pooled):
    paired = True
    synchronous = True

    @again
    def test_a_commit_without_an_answer(self):
        """The pooler says that it has lost its server: the rows of that COMMIT are looked up on the next."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.pair.cut()
        self.until(p, "wait_event = 'SyncRep'")
        self.pair.fail_over()
        self.pooler.move(self.pair.primary)
        r = p.wait()
        entry = self.went_on(r)
        self.assertEqual((r.code, entry["rows"], entry["unknown"]), (0, N, 0), r)
