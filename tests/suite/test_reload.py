"""`lapse run`: a contract that is read again, and the end of a daemon."""
import contextlib
import sqlite3
import time
from signal import SIGHUP, SIGINT, SIGTERM

from harness import *
from run_case import EVERY_1S, JOB, OFTEN, QUIET, DaemonCase, eventually


@every_engine
class Reload(DaemonCase):
    def test_what_changed_is_said_and_done(self):
        self.given("create table other (id integer primary key, at_ms bigint not null)")
        self.insert("other(id, at_ms)", (1, 1))
        with self.daemon(OFTEN) as d:
            d.wait_for("main.lifecycle_pruned")
            d.rewrite(self.db, """
                schedulers: { main: { every: 100ms }, more: { every: 1h } }
                policies:
                  job: { table: job, scheduler: main, expires: at_ms, batch: 10 }
                  other: { table: other, scheduler: more, expires: at_ms }
            """)
            d.signal(SIGHUP)
            said = d.wait_for("lapse.contract_reloaded")
            self.assertEqual(sorted(said["changes"]), ["policy job: batch unset -> 10", "policy job: scheduler unset -> main",
                                                       "policy other added", "scheduler more added"])
            d.wait_for("more.lifecycle_pruned", other=1)
            mark = d.mark()
            d.signal(SIGHUP)
            self.assertEqual(d.wait_for("lapse.contract_reloaded", after=mark)["changes"], [])
            d.rewrite(self.db, OFTEN)
            d.signal(SIGHUP)
            d.wait_for("lapse.contract_reloaded", changes=lambda c: "scheduler more removed" in c)
            mark = d.mark()
            self.jobs(1)
            self.gone_soon(1)
            self.assertEqual(d.said("more.lifecycle_pruned", after=mark), [])

    def test_a_broken_one_is_refused_whole(self):
        with self.daemon(OFTEN) as d:
            d.wait_for("main.lifecycle_pruned")
            d.rewrite(self.db, """
                schedulers: { main: { every: 1 parsec } }
                policies: { job: { tabel: job, expires: at_ms }, more: { table: job, expires: at_ms, batch: -1 } }
            """)
            d.signal(SIGHUP)
            said = d.wait_for("lapse.contract_refused")
            self.assertGreaterEqual(len(said["mistakes"]), 3)
            for mistake in said["mistakes"]:
                self.assertRegex(mistake, r"lapse\.yaml:\d+:\d+: ")
            self.jobs(1)
            self.gone_soon(1)
            d.contract.unlink()
            mark = d.mark()
            d.signal(SIGHUP)
            d.wait_for("lapse.contract_refused", after=mark)
            self.jobs(2)
            self.gone_soon(2)
            d.rewrite(self.db, OFTEN)
            d.signal(SIGHUP)
            self.assertEqual(d.wait_for("lapse.contract_reloaded")["changes"], [])

    @again
    def test_a_tick_ends_as_it_began(self):
        self.slow("job", 0.3)
        self.jobs(1, 2, 3, 4)
        with self.daemon("""
            schedulers: { main: { every: 200ms } }
            policies: { job: { table: job, expires: at_ms, batch: 1 } }
        """) as d:
            eventually(lambda: len(self.ids("job")) < 4)
            d.rewrite(self.db, """
                schedulers: { main: { every: 200ms } }
                policies: { job: { table: job, rows: { id: 77 }, expires: at_ms, batch: 1 } }
            """)
            d.signal(SIGHUP)
            d.wait_for("lapse.contract_reloaded", changes=["policy job: rows unset -> { id: 77 }"])
            if not self.ids("job"):
                raise TooSoon("the reload waited for the tick")
            d.wait_for("main.lifecycle_pruned", job=4)
            self.jobs(5, 77)
            self.gone_soon(77)
            self.left("job", 5)

    def test_a_scheduler_removed_in_its_tick(self):
        self.slow("job", 0.3)
        self.jobs(1, 2, 3)
        contract = """
            schedulers: { main: { every: 100ms }, slow: { every: 100ms } }
            policies: { job: { table: job, scheduler: slow, expires: at_ms, batch: 1 } }
        """
        with self.daemon(contract) as d:
            eventually(lambda: len(self.ids("job")) < 3)
            without = "policies: { job: { table: job, rows: { id: 77 }, expires: at_ms } }"
            for text in (without, contract, without):
                d.rewrite(self.db, text)
                mark = d.mark()
                d.signal(SIGHUP)
                d.wait_for("lapse.contract_reloaded", after=mark)
            d.wait_for("slow.lifecycle_pruned", job=3)
            time.sleep(0.3)
            self.jobs(9)
            time.sleep(0.5)
            self.left("job", 9)

    def test_storm(self):
        two = OFTEN.replace("100ms", "50ms")
        with self.daemon(OFTEN) as d:
            d.wait_for("main.lifecycle_pruned")
            for i in range(120):
                d.rewrite(self.db, two if i % 2 else OFTEN)
                d.signal(SIGHUP)
                if i % 3:
                    time.sleep(0.005)
            self.jobs(1)
            self.gone_soon(1)
            self.assertEqual(d.said("contract_refused"), [])
            self.assertGreater(len(d.said("contract_reloaded")), 3)

    @again
    def test_watch(self):
        with self.daemon(OFTEN, "--watch") as d:
            d.wait_for("main.lifecycle_pruned")
            text = d.contract.read_text()

            def changed(how, batch):
                mark = d.mark()
                how(text.replace("expires: at_ms", f"expires: at_ms, batch: {batch}"))
                d.wait_for("lapse.contract_reloaded", after=mark,
                           changes=lambda c: len(c) == 1 and c[0].startswith("policy job: batch ") and c[0].endswith(f" -> {batch}"))

            def renamed(words):
                beside = d.contract.with_suffix(".tmp")
                beside.write_text(words)
                beside.rename(d.contract)

            def written(words):
                began = time.monotonic()
                with d.contract.open("w") as f:         # half a contract is there for a while
                    f.write(words[:60])
                    f.flush()
                    time.sleep(0.1)
                    f.write(words[60:])
                if time.monotonic() - began > 0.19:
                    raise TooSoon("it was left alone for so long that half of it may be read")

            changed(renamed, 2)
            changed(written, 3)
            d.contract.unlink()         # gone is no reload
            time.sleep(0.5)
            changed(renamed, 4)
            self.assertEqual(d.said("contract_refused"), [])

    def test_watch_through_links(self):
        """As a mounted ConfigMap changes: a link to a folder is replaced, the file's own link stays."""
        base = new_path("mounted")
        for n in (1, 2):
            (base / f"v{n}").mkdir(parents=True)
        path = contract_file(self.db, QUIET)
        (base / "v1" / "lapse.yaml").write_text(path.read_text())
        (base / "v2" / "lapse.yaml").write_text(path.read_text().replace("at_ms }", "at_ms, batch: 9 }"))
        (base / "..data").symlink_to("v1")
        (base / "lapse.yaml").symlink_to("..data/lapse.yaml")
        with self.daemon(base / "lapse.yaml", "--watch") as d:
            d.wait_for("main.lifecycle_pruned")
            (base / "..tmp").symlink_to("v2")
            (base / "..tmp").rename(base / "..data")
            d.wait_for("lapse.contract_reloaded", changes=["policy job: batch unset -> 9"])


@every_engine
class Stop(DaemonCase):
    def test_within_the_batch(self):
        self.slow("job", 0.4)
        self.jobs(*range(10))
        contract = """
            schedulers: { main: { every: 1h } }
            policies: { job: { table: job, expires: at_ms, batch: 1 } }
        """
        d = self.daemon(contract, "--install")
        eventually(lambda: len(self.ids("job")) < 10)
        began = time.monotonic()
        d.stop()
        self.assertLess(time.monotonic() - began, 10)
        left = len(self.ids("job"))
        self.assertIn(left, range(4, 10))
        (row,) = self.db.rows("select outcome, rows_gone, ended_at is not null from lapse_run where scheduler = 'main'")
        self.assertEqual((row[0], row[1], bool(row[2])), ("stopped", 10 - left, True))
        self.assertEqual([x["event"] for x in d.lines][-2:].count("lapse.stopped"), 1)

    def test_the_second_signal(self):
        self.slow("job", 30)
        self.jobs(1)
        d = self.daemon("schedulers: { main: { every: 1h } }\n"
                        "policies: { job: { table: job, expires: at_ms, timeouts: { statement: 5m } } }")
        self.at_work(d)
        d.signal(SIGTERM)
        d.wait_for("lapse.stopping")
        time.sleep(0.5)
        self.assertTrue(d.running(), "it did not wait for the batch")
        began = time.monotonic()
        d.stop(SIGINT)              # exit 0: no thread was left behind
        self.assertLess(time.monotonic() - began, 10)
        self.left("job", 1)

    def at_work(self, d):
        if self.on_postgres:
            eventually(lambda: self.db.rows("select 1 from pg_stat_activity where datname = current_database() "
                                            "and state = 'active' and application_name = 'lapse' "
                                            "and wait_event = 'PgSleep'"))
        elif self.on_mariadb:
            eventually(lambda: self.db.rows("select 1 from information_schema.processlist where db = database() "
                                            "and state = 'User sleep'"))
        else:
            def locked():
                with contextlib.closing(self.db.connect()) as c:
                    try:
                        c.execute("pragma busy_timeout = 0")
                        c.execute("begin immediate")
                        c.execute("rollback")
                        return False
                    except sqlite3.OperationalError:
                        return True
            eventually(lambda: locked() and not time.sleep(0.1) and locked())

    def test_the_lease_is_handed_over(self):
        contract = """
            schedulers: { main: { every: 300ms, exclusive: true, lease: 1m } }
            policies: { job: { table: job, expires: at_ms } }
        """
        first = self.daemon(contract, "--install")
        first.wait_for("main.lease_taken")
        first.wait_for("main.lifecycle_pruned")
        with self.daemon(contract) as second:
            second.wait_for("main.lease_held_elsewhere")
            time.sleep(1)
            self.assertEqual(len(second.said("lease_held_elsewhere")), 1, "said once")
            self.assertEqual(second.said("lifecycle_pruned"), [])
            first.stop()
            self.jobs(1)
            second.wait_for("main.lease_taken", timeout=30)
            self.gone_soon(1)

    def test_without_a_database(self):
        """It stays up, says so, and stops when asked; when there is one, it works."""
        where = new_path("later")
        dsn = self.per_engine(postgres=f"postgresql://nobody:hush@/x?host={where}", sqlite=f"sqlite:{where}/db",
                              mariadb=f"mariadb://nobody:hush@localhost/x?socket={where}")
        d = self.daemon(EVERY_1S, db=dsn)
        failed = d.wait_for("main.lifecycle_tick_failed")
        self.assertEqual(failed["level"], "error")
        time.sleep(1.5)
        self.assertTrue(d.running())
        if self.on_sqlite:
            where.mkdir()
            with contextlib.closing(sqlite3.connect(where / "db")) as c:
                c.executescript(JOB + "; insert into job values (1, 1)")
            d.wait_for("main.lifecycle_recovered")
        began = time.monotonic()
        d.stop()
        self.assertLess(time.monotonic() - began, 20)
        self.assertNotIn("hush", str(d))
