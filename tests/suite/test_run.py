"""`lapse run`: ticks, reload, stop, what it says and what it exits with."""
import contextlib
import os
import socket
import subprocess
import threading
import time
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM

from daemon import Daemon, eventually
from harness import *

JOB = "create table job (id integer primary key, at_ms bigint not null); create index job_at on job (at_ms)"
EVERY_1S = """
    schedulers: { main: { every: 1s } }
    policies: { job: { table: job, expires: at_ms } }
"""
OFTEN = "schedulers: { main: { every: 100ms } }\npolicies: { job: { table: job, expires: at_ms } }\n"


def now_ms():
    return int(time.time() * 1000)


class DaemonCase(Case):
    """A table of jobs, and daemons that are ended with their test."""

    def setUp(self):
        super().setUp()
        self.given(JOB)

    def jobs(self, *ids, at=1):
        self.insert("job(id, at_ms)", *[(i, at) for i in ids])

    def daemon(self, contract, *options, db=None, **how):
        d = Daemon(db or self.db, contract, *options, **how)
        self.addCleanup(d.kill)
        return d

    def gone_soon(self, *ids, table="job", timeout=10):
        """These rows disappear."""
        eventually(lambda: not set(ids) & set(self.ids(table)), timeout,
                   words=lambda: f"rows {ids} are still in {table}: {self.ids(table)}")

    def slow(self, table, seconds):
        """Each deleted row takes so long, about; longer on a busy machine, never much less."""
        if self.on_postgres:
            self.given(f"""
                create function slow() returns trigger language plpgsql as
                    'begin perform pg_sleep({seconds}); return old; end';
                create trigger slow before delete on {table} for each row execute function slow()""")
            return
        rows, began = 200_000, time.monotonic()
        count = "with recursive c(x) as (select 1 union all select x + 1 from c limit {}) select count(*) from c"
        self.db.rows(count.format(rows))
        rows = int(rows * seconds / (time.monotonic() - began))
        self.given(f"create view burn as {count.format(rows)};"
                   f"create trigger slow before delete on {table} begin select * from burn; end")


@every_engine
class Ticks(DaemonCase):
    def test_at_start_and_as_rows_expire(self):
        self.jobs(1, 2)
        at = now_ms() + 2500
        self.jobs(3, at=at)
        self.jobs(4, at=at + DAY)
        with self.daemon(EVERY_1S) as d:
            d.wait_for("main.lifecycle_pruned", job=2, level="info")
            self.left("job", 3, 4)
            eventually(lambda: self.ids("job") == [4], 10)
            self.assertGreaterEqual(now_ms(), at, "it went before its time")
            self.assertLess(now_ms(), at + 4000, "the tick after it came late")
            d.wait_for("main.lifecycle_pruned", job=0, level="debug")
        self.assertEqual([x["event"] for x in d.lines][0], "lapse.started")
        self.assertEqual([x["event"] for x in d.lines][-1], "lapse.stopped")
        self.left("job", 4)

    def test_who_runs_at_start(self):
        self.given("create table other (id integer primary key, at_ms bigint not null)")
        self.insert("other(id, at_ms)", (1, 1))
        self.jobs(1)
        with self.daemon("""
            schedulers:
              yes: { every: 1h }
              "no": { every: 1h, run_on_start: false }
              cron: { cron: "0 0 1 1 *" }
              off: { every: 1s, enabled: false }
            policies:
              job: { table: job, scheduler: yes, expires: at_ms }
              other: { table: other, scheduler: "no", expires: at_ms }
              other.cron: { table: other, scheduler: cron, expires: at_ms }
              other.off: { table: other, scheduler: off, expires: at_ms }
        """) as d:
            d.wait_for("yes.lifecycle_pruned", job=1)
            time.sleep(1.2)
            self.left("other", 1)
            self.assertEqual({x.get("scheduler") for x in d.lines} - {None}, {"yes"})

    def test_each_ticks_alone(self):
        self.given("create table other (id integer primary key, at_ms bigint not null);"
                   "create index other_at on other (at_ms)")
        if not self.on_postgres:
            self.skip_writes()
        self.slow("job", 1)
        self.jobs(1, 2, 3)
        with self.daemon("""
            schedulers: { slow: { every: 1h }, quick: { every: 100ms } }
            policies:
              job: { table: job, scheduler: slow, expires: at_ms, batch: 1 }
              other: { table: other, scheduler: quick, expires: at_ms }
        """) as d:
            d.wait_for("slow.lifecycle_pruned", job=3)
            self.assertGreaterEqual(len(d.said("quick.lifecycle_pruned")), 5)

    def skip_writes(self):
        """On SQLite one writer waits for the other, but who has nothing to write waits for nobody (WAL)."""
        self.db.rows("pragma journal_mode = wal")

    def test_never_overlaps_itself(self):
        self.slow("job", 0.3)
        self.jobs(1, 2, 3, 4)
        with self.daemon("""
            schedulers: { main: { every: 100ms } }
            policies: { job: { table: job, expires: at_ms, batch: 1 } }
        """) as d:
            d.wait_for("main.lifecycle_pruned", job=4)
            d.wait_for("main.lifecycle_pruned", job=0)
        self.assertEqual([x["job"] for x in d.said("main.lifecycle_pruned") if x["job"]], [4])

    def test_observe_deletes_nothing(self):
        self.jobs(1, 2)
        self.lapse(OFTEN, "install", code=0)
        with self.untouched():
            with self.daemon(OFTEN, "--observe") as d:
                d.wait_for("main.lifecycle_observed", job=2)
                eventually(lambda: len(d.said("main.lifecycle_observed")) > 1)
            self.assertEqual(d.said("lifecycle_pruned"), [])

    def test_the_beat_survives_a_restart(self):
        contract = """
            schedulers: { main: { every: 4s, run_on_start: false } }
            policies: { job: { table: job, expires: at_ms } }
        """
        with self.daemon(contract, "--install") as d:
            d.wait_for("lapse.installed")
            d.wait_for("main.lifecycle_pruned")
            ticked = time.monotonic()
        time.sleep(max(0, ticked + 2.5 - time.monotonic()))
        with self.daemon(contract) as d:
            d.wait_for("main.lifecycle_pruned")
            self.assertLess(time.monotonic() - ticked, 5.5, "it began to count anew")
            self.assertGreater(time.monotonic() - ticked, 3.5, "it did not wait for its beat")


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
            self.assertEqual(sorted(said["changes"]), ["policy job changed", "policy other added", "scheduler more added"])
            self.gone_soon(1, table="other")
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
            d.wait_for("lapse.contract_reloaded", changes=["policy job changed"])
            self.assertNotEqual(self.ids("job"), [], "the reload waited for the tick")
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
            for text in ("schedulers: { main: { every: 100ms } }\npolicies: {}\n", contract, "policies: {}\n"):
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

    def test_watch(self):
        with self.daemon(OFTEN, "--watch") as d:
            d.wait_for("main.lifecycle_pruned")
            text = d.contract.read_text()

            def changed(how, batch):
                mark = d.mark()
                how(text.replace("expires: at_ms", f"expires: at_ms, batch: {batch}"))
                d.wait_for("lapse.contract_reloaded", after=mark, timeout=5, changes=["policy job changed"])

            def renamed(words):
                beside = d.contract.with_suffix(".tmp")
                beside.write_text(words)
                beside.rename(d.contract)

            def written(words):
                with d.contract.open("r+") as f:
                    f.write(words[:20])
                    f.flush()
                    time.sleep(0.1)
                    f.write(words[20:])
                    f.truncate()

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
        path = contract_file(self.db, OFTEN)
        (base / "v1" / "lapse.yaml").write_text(path.read_text())
        (base / "v2" / "lapse.yaml").write_text(path.read_text().replace("at_ms }", "at_ms, batch: 9 }"))
        (base / "..data").symlink_to("v1")
        (base / "lapse.yaml").symlink_to("..data/lapse.yaml")
        with self.daemon(base / "lapse.yaml", "--watch") as d:
            d.wait_for("main.lifecycle_pruned")
            (base / "..tmp").symlink_to("v2")
            (base / "..tmp").rename(base / "..data")
            d.wait_for("lapse.contract_reloaded", timeout=5, changes=["policy job changed"])


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
        self.assertLess(time.monotonic() - began, 3)
        left = len(self.ids("job"))
        self.assertIn(left, range(5, 10))
        (row,) = self.db.rows("select outcome, rows, ended_at is not null from lapse_run where scheduler = 'main'")
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
        d.stop(SIGINT)
        self.assertLess(time.monotonic() - began, 4)
        self.left("job", 1)

    def at_work(self, d):
        if self.on_postgres:
            eventually(lambda: self.db.rows("select 1 from pg_stat_activity where datname = current_database() "
                                            "and state = 'active' and application_name = 'lapse' "
                                            "and wait_event = 'PgSleep'"))
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
            second.wait_for("main.lease_taken", timeout=5)
            self.gone_soon(1)

    def test_without_a_database(self):
        """It stays up, says so, and stops when asked; when there is one, it works."""
        where = new_path("later")
        dsn = f"postgresql://nobody:hush@/x?host={where}" if self.on_postgres else f"sqlite:{where}/db"
        d = self.daemon(EVERY_1S, db=dsn)
        failed = d.wait_for("main.lifecycle_tick_failed")
        self.assertEqual(failed["level"], "error")
        time.sleep(1.5)
        self.assertTrue(d.running())
        if not self.on_postgres:
            where.mkdir()
            with contextlib.closing(sqlite3.connect(where / "db")) as c:
                c.executescript(JOB + "; insert into job values (1, 1)")
            d.wait_for("main.lifecycle_recovered")
        began = time.monotonic()
        d.stop()
        self.assertLess(time.monotonic() - began, 5)
        self.assertNotIn("hush", str(d))


@every_engine
class Install(DaemonCase):
    def test_before_the_first_tick(self):
        self.jobs(1)
        with self.daemon(OFTEN, "--install") as d:
            d.wait_for("main.lifecycle_pruned")
        names = [x["event"] for x in d.lines]
        self.assertLess(names.index("lapse.installed"), names.index("main.lifecycle_pruned"))
        self.assertIn(("daemon",), self.db.rows("select source from lapse_run"))

    def test_without_it_no_history_is_kept(self):
        with self.daemon(OFTEN) as d:
            d.wait_for("lapse.remark", message=lambda m: "run lapse install" in m)
            eventually(lambda: len(d.said("main.lifecycle_pruned")) > 3)
            self.assertEqual(len([x for x in d.lines if "lapse install" in x["message"]]), 1)
        self.assertFalse([t for t in self.db.tables() if "lapse" in t])


class Rights(DaemonCase, PostgresTest):
    def test_a_user_that_may_not_install(self):
        role = f"weak_{os.getpid()}"
        self.given(f"create role {role} login; grant select, delete on job to {role}")
        self.addCleanup(self.given, f"drop owned by {role}; drop role {role}")
        dsn = self.db.server.dsn(self.db.name, user=role)
        self.jobs(1)
        d = self.daemon(OFTEN, "--install", db=dsn)
        d.process.wait(20)
        self.assertEqual(d.process.returncode, 1, str(d))
        d.wait_for("lapse.remark", level="error")
        self.left("job", 1)

    def test_secrets(self):
        dsn = self.db.server.dsn(self.db.name, password="open-sesame")
        path = contract_file(dsn, OFTEN)
        d = self.daemon(path, "--watch")
        d.wait_for("main.lifecycle_pruned")
        path.write_text(path.read_text().replace("open-sesame", "open-barley"))
        d.wait_for("lapse.contract_reloaded", changes=["store changed"])
        path.write_text(path.read_text().replace("store:", "stor:"))
        d.wait_for("lapse.contract_refused")
        command = Path(f"/proc/{d.pid}/cmdline").read_bytes()
        d.stop()
        self.assertNotRegex(str(d), "open-")
        self.assertNotIn(b"open-", command)

    def test_observing_cannot_write(self):
        """Not even by a function that a condition calls."""
        self.given("""
            create function sly(integer) returns boolean language plpgsql as
                'begin insert into job values ($1 + 1000, 1); return true; end'""")
        self.jobs(1)
        with self.untouched():
            with self.daemon("policies: { job: { table: job, where: sly(this.id), expires: at_ms } }\n"
                             "schedulers: { main: { every: 200ms } }", "--observe") as d:
                d.wait_for("main.lifecycle_tick_failed", error=lambda e: "read-only" in e)


class Program(SqliteTest, DaemonCase):
    def setUp(self):
        super().setUp()
        self.given(JOB)

    def test_bad_usage(self):
        for options, words in ((["--observe", "--install"], "--install"), (["--log-level", "loud"], "debug, info, warn or error"),
                               (["--log-format", "xml"], "text or json"), (["now"], "takes no arguments"),
                               (["--json"], "does not take --json")):
            r = self.lapse(OFTEN, "run", *options, code=2)
            self.assertIn(words, r.err, options)
        r = self.lapse("policies: { job: { tabel: job }, more: { expires: 1 } }", "run", code=2)
        self.assertGreaterEqual(len(re.findall(r"lapse\.yaml:\d+:\d+:", r.err)), 2)
        self.lapse(Path("/nowhere/lapse.yaml"), "run", code=2)

    def test_text_and_levels(self):
        self.jobs(1)
        p = Lapse.start(self.db, OFTEN, "run", "--log-format", "text")
        eventually(lambda: "main.lifecycle_pruned" in p.so_far()[1])
        p.signal(SIGTERM)
        r = p.wait()
        self.assertEqual(r.code, 0, r)
        self.assertNotIn("{", r.err.splitlines()[0])
        self.assertNotIn("\x1b", r.err)
        p = Lapse.start(self.db, OFTEN, "run", "--log-level", "error")
        time.sleep(0.5)
        p.signal(SIGINT)
        r = p.wait()
        self.assertEqual((r.code, r.said), (0, ""))

    def test_service_manager(self):
        path = new_path("notify")
        got = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(str(path))
            s.settimeout(0.1)

            def heard(*words):
                with contextlib.suppress(TimeoutError):
                    while True:
                        got.append(s.recv(4096).decode())
                return all(any(w in m.split("\n") or w in m for m in got) for w in words)

            d = self.daemon(OFTEN, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": 1_000_000})
            eventually(lambda: heard("READY=1", "WATCHDOG=1", "STATUS=1 scheduler, 1 policy; "))
            got.clear()
            d.signal(SIGHUP)
            eventually(lambda: heard("RELOADING=1", "MONOTONIC_USEC=", "READY=1"))
            got.clear()
            time.sleep(2)
            heard()
            self.assertGreaterEqual(sum("WATCHDOG=1" in m for m in got), 3)
            d.stop()
            self.assertTrue(heard("STOPPING=1"))

    def test_a_reader_that_went_away(self):
        """Of the log: the daemon goes on."""
        r, w = os.pipe()
        p = subprocess.Popen([program(), "-f", str(contract_file(self.db, OFTEN)), "run"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=w, start_new_session=True)
        self.addCleanup(p.kill)
        os.close(w)
        os.read(r, 1)
        os.close(r)
        self.jobs(1, 2)
        self.gone_soon(1, 2)
        p.terminate()
        self.assertEqual(p.wait(20), 0)
