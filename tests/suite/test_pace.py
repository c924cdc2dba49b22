"""pace: what makes batches smaller, what makes a sweep wait, and that it says so."""
import contextlib
import threading
import unittest

from daemon import *
from harness import *

SWEEP = "policies: {{ t: {{ table: t, expires: at_ms, {} }} }}"


class PaceCase(Case):
    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms);"
                   "create table app (id integer primary key, n integer); insert into app values (1, 0), (2, 0)")

    def fill(self, n, first=1):
        self.given(f"insert into t select n, n from ({self.series(first + n - 1, first)}) s")

    def start(self, contract, *more):
        p = Lapse.start(self.db, contract, "sweep", "--json", *more)
        self.addCleanup(p.kill)
        return p

    def rows_left(self):
        return self.db.rows("select count(*) from t")[0][0]

    def until(self, left, p):
        eventually(lambda: self.rows_left() <= left or not p.running(), words=f"{left} rows are left")
        self.assertTrue(p.running(), "it was over too soon")

    @contextlib.contextmanager
    def writing(self):
        """Somebody else writes, as fast as it goes. Gives a count of what was written, and what went wrong."""
        done, stop, db = {"writes": 0, "errors": [], "longest": 0}, threading.Event(), self.db.connect()

        def write():
            with contextlib.closing(db):
                while not stop.is_set():
                    began = time.monotonic()
                    try:
                        with contextlib.closing(db.cursor()) as c:
                            c.execute("update app set n = n + 1 where id = 1")
                        db.commit()
                    except Exception as e:
                        done["errors"].append(str(e))
                        db.rollback()
                    done["longest"] = max(done["longest"], time.monotonic() - began)
                    done["writes"] += 1
                    time.sleep(0.002)
        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield done
        finally:
            stop.set()
            thread.join()


@every_engine
class Pace(PaceCase):
    def test_batches_shrink_to_the_target(self):
        self.slow("t", 0.02)
        self.fill(60)
        p = self.sweep(SWEEP.format("batch: 30, pace: { target: 100ms, duty: 1 }")).policy("t")
        self.assertEqual((p["rows"], p["outcome"]), (60, "done"))
        self.assertGreater(p["batches"], 5, "each row takes a fiftieth of a second: five are a batch")
        self.assertEqual(p["pace"]["reason"], "target")
        self.assertLess(p["pace"]["rows"], 10)

    def test_it_has_a_target_unless_it_is_given_one(self):
        self.slow("t", 0.02)
        self.fill(40)
        self.assertGreater(self.sweep(SWEEP.format("batch: 20")).policy("t")["batches"], 5)
        self.fill(40)
        p = self.sweep(SWEEP.format("batch: 20, pace: { target: 10m, duty: 1 }")).policy("t")
        self.assertEqual((p["batches"], p["pace"]["reason"], p["pace"]["rows"]), (2, "", 20))

    def test_all_in_one_transaction_stays_that(self):
        self.slow("t", 0.01)
        self.fill(30)
        p = self.sweep(SWEEP.format("batch: null, pace: { target: 10ms, duty: 0.1, rows_per_second: 1 }")).policy("t")
        self.assertEqual((p["rows"], p["batches"], p["pace"]["waited_ms"]), (30, 1, {}))
        r = self.check(SWEEP.format("batch: null, pace: { target: 10ms }"))
        self.finding(r, "warning", "mean nothing with batch: null", policy="t")

    def test_rows_per_second(self):
        self.fill(50)
        p = self.sweep(SWEEP.format("batch: 10, pace: { rows_per_second: 25, target: 10m }")).policy("t")
        self.assertEqual((p["rows"], p["batches"]), (50, 5))
        self.assertGreaterEqual(p["duration_ms"], 40 / 25 * 1000)
        self.assertGreater(p["pace"]["waited_ms"]["rows_per_second"], 100)

    def test_never_more_than_a_seconds_worth_at_once(self):
        self.fill(6)
        p = self.sweep(SWEEP.format("pace: { rows_per_second: 2.5, target: 10m }")).policy("t")
        self.assertEqual((p["rows"], p["batches"]), (6, 3))

    def test_duty(self):
        self.slow("t", 0.01)
        self.fill(15)
        p = self.sweep(SWEEP.format("batch: 5, pace: { duty: 0.1, target: 10m }")).policy("t")
        self.assertEqual((p["rows"], p["batches"]), (15, 3))
        self.assertGreater(p["pace"]["waited_ms"]["duty"], 2 * 9 * 5 * 10 * 0.5, "nine times as long as transactions")

    def test_a_wait_ends_when_asked_to(self):
        self.fill(5)
        p = self.start(SWEEP.format("pace: { rows_per_second: 0.01 }"))
        self.until(4, p)
        began = time.monotonic()
        p.signal(SIGTERM)
        r = p.wait()
        self.assertEqual((r.code, r.policy("t")["outcome"], r.policy("t")["rows"]), (6, "stopped", 1), r)
        self.assertLess(time.monotonic() - began, 30)

    def test_a_wait_sees_a_brake(self):
        self.fill(5)
        contract = SWEEP.format("pace: { rows_per_second: 0.01 }")
        self.lapse(contract, "install", code=0)
        p = self.start(contract)
        self.until(4, p)
        self.lapse(contract, "pause", code=0)
        r = p.wait()
        self.assertEqual((r.code, r.policy("t")["outcome"], r.policy("t")["rows"]), (6, "paused", 1), r)

    def test_a_wait_is_part_of_the_budget(self):
        self.fill(5)
        r = self.sweep("""
            schedulers: { s: { every: 1m, budget: { time: 3s } } }
            policies: { t: { table: t, expires: at_ms, pace: { rows_per_second: 0.01 } } }
            """, code=6)
        self.assertEqual((r.policy("t")["outcome"], r.policy("t")["rows"]), ("budget", 1), r)

    def test_a_wait_keeps_the_lease(self):
        self.fill(2)
        contract = """
            schedulers: { s: { every: 1m, exclusive: true, lease: 3s } }
            policies: { t: { table: t, expires: at_ms, pace: { rows_per_second: 0.125 } } }
            """
        self.lapse(contract, "install", code=0)
        p = self.start(contract)
        self.until(1, p)
        until = time.monotonic() + 6
        while time.monotonic() < until and p.running():
            r = self.lapse(contract, "sweep", "--json", code=0)
            self.assertEqual(r.policy("t")["outcome"], "held_elsewhere" if self.rows_left() else r.policy("t")["outcome"], r)
            time.sleep(0.5)
        r = p.wait()
        self.assertEqual((r.code, r.policy("t")["outcome"], r.policy("t")["rows"]), (0, "done", 2), r)

    def test_beside_others_it_steps_back(self):
        self.slow("t", 0.002)
        self.fill(6000)
        p = self.start(SWEEP.format("batch: 100"))
        with self.writing() as other:
            eventually(lambda: other["writes"] > 3)
            self.until(5900, p)
            time.sleep(8)
            p.signal(SIGTERM)
            r = p.wait()
        self.assertEqual(other["errors"], [])
        self.assertIn("writers", r.policy("t")["pace"]["waited_ms"], r)

    def test_with_a_duty_of_its_own_it_does_not(self):
        self.slow("t", 0.002)
        self.fill(300)
        with self.writing() as other:
            eventually(lambda: other["writes"] > 3)
            r = self.sweep(SWEEP.format("batch: 50, pace: { duty: 1, target: 10m }"))
        self.assertEqual(r.policy("t")["pace"]["waited_ms"], {}, r)
        self.assertEqual(r.policy("t")["batches"], 6, r)

    def test_a_terminal_shows_why(self):
        self.fill(6)
        r = self.lapse(SWEEP.format("pace: { rows_per_second: 2 }"), "sweep", "--now", NOW, tty=True, code=0)
        self.assertIn("no more than 2 rows a second", r.err + r.out)

    def test_limits_of_lag_that_mean_nothing(self):
        self.fill(3)
        contract = SWEEP.format("pace: { lag: 10s, lag_bytes: 1000000 }")
        r = self.check(contract)
        if self.on_sqlite:
            self.finding(r, "warning", "SQLite has no replicas", policy="t")
        elif self.on_mariadb:
            self.finding(r, "error", "known on each of them only", policy="t")
            r = self.sweep(contract, code=1)
            self.assertIn("pace.lag cannot be kept", r.policy("t")["error"])
            self.left("t", 1, 2, 3)
            return
        else:
            self.no_finding(r, "lag")
        self.assertEqual(self.sweep(contract).policy("t")["rows"], 3)

    def test_a_daemon_says_that_it_waits(self):
        self.fill(2)
        contract = "schedulers: { main: { every: 1h } }\n" + SWEEP.format("pace: { rows_per_second: 0.05 }, label: tt")
        self.lapse(contract, "install", code=0)
        with Daemon(self.db, contract) as d:
            said = d.wait_for("main.lifecycle_paced", 60, level="info")
            self.assertEqual((said["level"], said["policy"], said["reason"], said["rows"]), ("info", "t", "rows_per_second", 1), d)
            self.assertIn("no more than 0.05 rows a second", said["message"])
            eventually(lambda: d.metric("lapse_pace_wait_seconds_total", "main", "tt", "rows_per_second") > 5)
            self.assertEqual(d.metric("lapse_pace_rows", "main", "tt"), 1)
            state = next(p for p in json.loads(d.http("/api/policies")[1]) if p["name"] == "t")
            self.assertEqual(state["pace"]["reason"], "rows_per_second", state)


class Alone(PaceCase):
    """On a server of its own, where nobody else is."""
    def test_alone_it_does_not_wait(self):
        self.slow("t", 0.0005)
        self.fill(4000)
        r = self.sweep(SWEEP.format("batch: 20"), timeout=120)
        self.assertNotIn("writers", r.policy("t")["pace"]["waited_ms"], r)

    def test_plain_deletes_are_its_own(self):
        """Without a trigger, rows may go by another statement; and of several connections, some are always at it."""
        self.given("create table step (id integer primary key, t_id integer); create index step_t on step(t_id)")
        for workers in (1, 3):
            with self.subTest(workers=workers):
                self.fill(20_000)
                self.given("insert into step select id, id from t")
                r = self.sweep(SWEEP.format(f"batch: 50, workers: {workers}, with: [step(t_id)]"), timeout=120)
                self.assertEqual(r.policy("t")["rows"], 20_000)
                self.assertNotIn("writers", r.policy("t")["pace"]["waited_ms"], r)

    def test_many_rows_of_one_time_go_about_as_fast_as_by_one_delete(self):
        """They are not sorted anew for each batch. Both in one run, in turns: the best of three, for others use the machine."""
        n, ratios, most = 60_000, [], self.per_engine(sqlite=60, postgres=100, mariadb=30)
        batch = self.per_engine(sqlite=100, postgres=500, mariadb=500)
        for turn in range(3):
            times = {}
            for name in ("one", "many"):
                table = f"{name}{turn}"
                self.given(f"create table {table} (id varchar(40) primary key, name varchar(20), state varchar(20), at_ms bigint);"
                           f"create index {table}_at on {table}(name, state, at_ms);"
                           f"insert into {table} select cast(n * 7919 % {n} as varchar(40)), 'job', 'done', 1000 from ({self.series(n)}) s")
            began = time.monotonic()
            self.db.execute(f"delete from one{turn} where name = 'job' and state = 'done' and at_ms <= {MS}")
            times["one"] = time.monotonic() - began
            p = self.sweep(f"policies: {{ t: {{ table: many{turn}, rows: {{ name: job, state: done }}, expires: at_ms, batch: {batch} }} }}", timeout=300).policy("t")
            self.assertEqual((p["rows"], p["outcome"]), (n, "done"), p)
            self.assertLess(p["batches"], n / 100 * 1.2, p)
            ratios.append(p["duration_ms"] / 1000 / times["one"])
            if ratios[-1] < most:
                return
        self.fail(f"the sweep takes so many times as long as one DELETE: {ratios}")

    def test_what_it_writes_itself_is_nobody_else(self):
        """A lease is written in every batch."""
        self.slow("t", 0.0005)
        self.fill(3000)
        contract = """
            schedulers: { s: { every: 1m, exclusive: true } }
            policies: { t: { table: t, expires: at_ms, batch: 20 } }
            """
        self.lapse(contract, "install", code=0)
        r = self.sweep(contract, timeout=120)
        self.assertNotIn("writers", r.policy("t")["pace"]["waited_ms"], r)


class AloneSqlite(Alone, unittest.TestCase):
    engine = "sqlite"

    def setUp(self):
        self.db = Sqlite()
        super().setUp()

    def test_other_writers_keep_their_rate(self):
        """A writer beside a sweep, against the same before and after it, in turns. The time is the writer's own."""
        self.given("pragma journal_mode = wal")
        rates = {True: [], False: []}
        with self.writing() as other:
            def rate(seconds):
                began, writes = time.monotonic(), other["writes"]
                time.sleep(seconds)
                return (other["writes"] - writes) / (time.monotonic() - began)
            for turn in range(3):
                rates[False].append(rate(2))
                self.fill(300_000, turn * 300_000 + 1)
                p = self.start(SWEEP.format("batch: 1000"))
                self.until((turn + 1) * 300_000 - 100, p)
                time.sleep(0.5)
                rates[True].append(rate(2))
                running = p.running()
                p.signal(SIGTERM)
                r = p.wait()
                if running:
                    self.assertIn("writers", r.policy("t")["pace"]["waited_ms"], r)
        self.assertEqual(other["errors"], [])
        self.assertGreater(max(rates[True]), 0.5 * min(rates[False]), rates)


class AlonePostgres(Alone, unittest.TestCase):
    engine = "postgres"

    def setUp(self):
        self.server = Postgres(settings={"autovacuum": "off"})     # which writes, too, when it comes to it
        self.addCleanup(self.server.stop)
        self.db = self.server.fresh()
        self.addCleanup(self.db.close)
        super().setUp()


    def test_what_each_transaction_costs_does_not_make_them_many(self):
        """A DELETE that takes longer than the target however few its rows."""
        self.given("create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.08); return null; end';"
                   "create trigger slow after delete on t for each statement execute function slow()")
        self.fill(2000)
        p = self.sweep(SWEEP.format("batch: 100"), timeout=120).policy("t")
        self.assertEqual((p["rows"], p["batches"]), (2000, 20), p)


class AloneMariadb(Alone, unittest.TestCase):
    engine = "mariadb"

    def setUp(self):
        self.server = Mariadb()
        self.addCleanup(self.server.stop)
        self.db = self.server.fresh()
        self.addCleanup(self.db.close)
        super().setUp()


class ReadAhead(Case, PostgresTest):
    """Rows that are read for several batches at once."""
    def test_a_slow_condition_is_not_asked_of_all_rows_at_once(self):
        """That would take longer than a statement may."""
        rows = 1500
        self.given("""create table t (id integer primary key, at_ms bigint); create index on t (at_ms);
                      create function slow(integer) returns boolean language plpgsql as 'begin perform pg_sleep(0.0005); return false; end'""")
        self.given(f"insert into t select n, n / 50 from generate_series(1, {rows}) g(n)")
        self.given("analyze t")
        r = self.sweep("policies: {t: {table: t, expires: at_ms, batch: 20, hold: 'slow(id)', timeouts: {statement: 1s}, pace: {target: 1m}}}",
                       code=0)
        self.assertEqual((r.policy("t")["outcome"], r.policy("t")["rows"]), ("done", rows), r)
