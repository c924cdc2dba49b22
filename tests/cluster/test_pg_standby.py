"""PostgreSQL: a server that is a standby, or becomes one, or ceases to be one, under the program."""
import contextlib
import signal
import threading

from pg_case import *

REFUSED = "the server is a standby and takes no writes"
PURGES = """
    purges: { workflow: { delay: 1s, erases: [ step(job_id) ] } }
    """
DAEMON = CONTRACT.replace("policies:", "schedulers: { main: { every: 300ms } }\n    policies:")


class Standby(PairTest):
    def setUp(self):
        super().setUp()
        self.fill(60)
        self.lapse(CONTRACT, "install", code=0)
        self.pair.caught_up()
        self.there = self.pair.standby.dsn(self.db.name, tcp=True)

    def on_standby(self, *args, contract=CONTRACT, code=None, dsn=None):
        start = time.monotonic()
        r = lapse(dsn or self.there, contract, *args)
        self.assertLess(time.monotonic() - start, 20, "it was tried again and again")
        if code is not None:
            self.assertEqual(r.code, code, r)
        return r

    def sessions(self):
        return self.pair.standby.ask(f"select count(*) from pg_stat_activity where datname = '{self.db.name}'"
                                     " and application_name = 'lapse'")[0][0]

    def test_what_writes_is_refused(self):
        before = self.db.dump()
        log = self.pair.standby.log.read_text().count("ERROR")
        for command in (["sweep"], ["install"], ["pause"], ["resume"], ["purge", "schedule", "workflow", "1", "done"],
                        ["purge", "cancel", "workflow", "1"], ["purge", "due"]):
            with self.subTest(command=command):
                r = self.on_standby(*command, contract=CONTRACT + PURGES, code=5)
                self.assertEqual(r.err.count(REFUSED), 1, r)
                self.assertIn("target_session_attrs=read-write", r.err)
        self.assertEqual(self.pair.standby.log.read_text().count("ERROR"), log, "nothing was tried")
        self.assertEqual(self.db.dump(), before)

    def test_so_it_is_with_nothing_due(self):
        """A sweep that could not delete anything does not pass for one that had nothing to delete."""
        self.sweep(CONTRACT, now=None)
        self.pair.caught_up()
        self.assertIn(REFUSED, self.on_standby("sweep", code=5).err)

    def test_what_reads_works(self):
        r = self.on_standby("plan", "--json", code=0)
        self.assertEqual(r.policy("job")["rows"], 60, r)
        self.assertIn("standby", " ".join(r.json["remarks"]))
        r = self.on_standby("check", "--json", code=0)
        self.finding(r, "warning", "a standby", "nothing can be deleted there")
        self.assertNotIn("standby", self.lapse(CONTRACT, "plan").said + self.lapse(CONTRACT, "check").said)
        for command in (["status"], ["history"], ["explain", "job", "1"], ["purge", "list"], ["install", "--print"]):
            with self.subTest(command=command):
                self.on_standby(*command, contract=CONTRACT + PURGES, code=0)

    def test_asked_for_one_that_writes(self):
        """The connection string wants a server that takes writes, and names none."""
        for command in ("plan", "sweep"):
            r = self.on_standby(command, dsn=self.there + "?target_session_attrs=read-write", code=5)
            self.assertIn("read-only", r.err)

    def test_a_standby_before_the_primary(self):
        """Both are named, the standby first, and nothing is asked of them: the first is taken, and refused. Asked for
        one that writes, the other is found."""
        hosts = f"127.0.0.1:{self.pair.standby.port},127.0.0.1:{self.pair.primary.port}"
        both = f"postgresql://postgres@{hosts}/{self.db.name}"
        self.assertIn(REFUSED, self.on_standby("sweep", dsn=both, code=5).err)
        for attrs in ("read-write", "primary"):
            self.on_standby("sweep", dsn=f"{both}?target_session_attrs={attrs}", code=0)
        self.all_is_right()

    def test_the_daemon_waits_for_it(self):
        """Beside a standby it says once what is wrong, and begins when that is promoted."""
        with Daemon(self.there, DAEMON) as d:
            line = d.wait_for("main.lifecycle_tick_failed")
            self.assertIn(REFUSED, line["error"])
            eventually(lambda: d.metric("lifecycle_tick_errors_total", "main") >= 4)
            self.assertEqual(len(d.said("main.lifecycle_tick_failed")), 1, d)
            self.assertFalse(d.ready())
            self.assertEqual(self.sessions() <= 2, True, "connections do not pile up")
            self.pair.fail_over()
            self.db.moved()
            d.wait_for("main.lifecycle_recovered")
            eventually(lambda: self.due_left() == 0)
            eventually(d.ready)
        self.all_is_right()

    def test_an_observer_does_not_mind(self):
        """It reads there, and goes on reading when the standby is promoted."""
        with Daemon(self.there, DAEMON, "--observe") as d:
            d.wait_for("lifecycle_observed", job=60)
            self.pair.fail_over()
            self.db.moved()
            self.db.execute("delete from step where job_id between 1 and 20")
            self.db.execute("delete from job where id between 1 and 20")
            d.wait_for("lifecycle_observed", job=40)
            self.assertEqual(d.said("lifecycle_tick_failed"), [], d)
        self.assertEqual(self.due_left(), 40)

    def test_the_old_primary_is_back_as_a_standby(self):
        """Whoever knows that server alone is refused, in mid-work as well."""
        alone = self.pair.primary.dsn(self.db.name, tcp=True)
        with Daemon(alone, DAEMON) as d:
            eventually(lambda: self.due_left() == 0)
            after = d.mark()
            self.pair.fail_over()
            self.pair.rejoin()
            self.db.moved()
            self.db.execute(f"insert into job values (500, 1)")
            line = d.wait_for("main.lifecycle_tick_failed", after=after, error=lambda e: REFUSED in e)
            time.sleep(0.5)
            self.assertEqual(self.ids("job"), [*range(1 - KEPT, 1), 500])
            self.assertFalse(d.ready())
        self.assertIn(REFUSED, self.on_standby("sweep", dsn=alone, code=5).err)


class Conflict(PairTest):
    """What the primary removes, a standby must remove as well, and cancels whoever still reads it."""

    def slow_reader(self, *args, seconds=0.02):
        """Each row of sixty takes it so long."""
        self.given("create table t (id integer primary key, at_ms bigint); create table other (id integer);"
                   "create index t_at on t(at_ms);"
                   "insert into t select i, 1 from generate_series(1, 60) i; insert into other select generate_series(1, 2000)")
        self.pair.caught_up()
        contract = """policies: { t: { table: t, expires: at_ms, where: "pg_sleep(SECONDS) is not null" } }""".replace("SECONDS", str(seconds))
        p = Lapse.start(self.pair.standby.dsn(self.db.name, tcp=True), contract, *args)
        self.addCleanup(p.kill)
        return p

    def remove(self):
        self.given("delete from other")
        self.given("vacuum other")

    def cancelled(self):
        return self.pair.standby.log.read_text().count("due to conflict with recovery")

    def reading(self):
        return self.pair.standby.ask("select 1 from pg_stat_activity where application_name = 'lapse'"
                                     " and state = 'active' and query like '%pg_sleep%' and query not like 'EXPLAIN%'")

    @again
    def test_a_plan_is_begun_again(self):
        p = self.slow_reader("plan", "--json")
        eventually(self.reading, every=0.005)
        self.remove()
        r = p.wait()
        if not self.cancelled():
            raise TooSoon("a reading that stands in the way")
        self.assertEqual((r.code, r.policy("t")["rows"]), (0, 60), r)

    def test_not_for_ever(self):
        """It gives up where each reading is cancelled, and says why."""
        over = threading.Event()

        def go_on():
            while not over.is_set():
                with contextlib.suppress(Exception):
                    self.given("insert into other select generate_series(1, 200)")
                    self.remove()
        p = self.slow_reader("plan", "--json", seconds=0.2)
        t = threading.Thread(target=go_on)
        t.start()
        try:
            r = p.wait()
        finally:
            over.set()
            t.join()
        self.assertIn(r.code, (1, 5), r)        # 5: not even the catalog could be read, or the connection was ended each time
        self.assertIn("conflict with recovery", r.said)
        self.assertGreater(self.cancelled(), 1)

    def test_a_session_that_is_ended(self):
        """… or the whole session (it stood in the way of a DROP, say): again over a new one."""
        p = self.slow_reader("plan", "--json")
        pid = eventually(lambda: self.pair.standby.ask(
            "select pid from pg_stat_activity where application_name = 'lapse' and query like '%pg_sleep%'"
            " and query not like 'EXPLAIN%' and state = 'active'"), every=0.005)[0][0]
        self.pair.standby.ask(f"select pg_terminate_backend({pid})")
        r = p.wait()
        self.assertEqual((r.code, r.policy("t")["rows"]), (0, 60), r)


class Demoted(PairTest):
    @again
    def test_read_only_by_default(self):
        """An administrator makes transactions read-only by default, in mid-sweep. A sweep asks for transactions that
        write, and goes on; a new connection that must be read-write is not had any more."""
        self.fill(600)
        p = self.start()
        self.until_left(p, 500)
        holder = self.held_up(p)
        self.pair.primary.set(default_transaction_read_only="on")
        holder.close()
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, 600), r)
        self.db.close()
        self.all_is_right()
        self.assertIn("read-only", self.lapse(CONTRACT, "sweep", code=5).err)
        self.db.dsn = self.pair.dsn(self.db.name, attrs="primary")
        self.lapse(CONTRACT, "sweep", code=0)
