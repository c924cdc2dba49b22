"""`lapse run`: ticks, own tables, rights, what it says and what it exits with."""
import contextlib
import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM

from harness import *
from run_case import EVERY_1S, JOB, OFTEN, QUIET, DaemonCase, eventually, now_ms


@every_engine
class Ticks(DaemonCase):
    def test_at_start_and_as_rows_expire(self):
        self.jobs(1, 2)
        self.jobs(4, at=now_ms() + DAY)
        with self.daemon(EVERY_1S) as d:
            d.wait_for("main.lifecycle_pruned", job=2, level="info")
            at = now_ms() + 2500
            self.jobs(3, at=at)
            eventually(lambda: self.ids("job") == [4])
            self.assertGreaterEqual(now_ms(), at, "it went before its time")
            self.assertLess(now_ms(), at + 10000, "the tick after it came late")
            d.wait_for("main.lifecycle_pruned", job=0, level="debug")
        self.assertIn("lapse.started", [x["event"] for x in d.lines][:2])
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
        if self.on_sqlite:
            self.skip_writes()
        self.slow("job", 1)
        self.jobs(1, 2, 3)
        with self.daemon("""
            schedulers: { slow: { every: 1h }, quick: { every: 100ms } }
            policies:
              job: { table: job, scheduler: slow, expires: at_ms, batch: 1 }
              other: { table: other, scheduler: quick, expires: at_ms }
        """) as d:
            d.wait_for("slow.lifecycle_pruned", timeout=60, job=3)
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
            d.wait_for("main.lifecycle_pruned", timeout=60, job=4)
            d.wait_for("main.lifecycle_pruned", job=0)
        self.assertEqual([x["job"] for x in d.said("main.lifecycle_pruned") if x["job"]], [4])

    def test_a_brake_is_said_once(self):
        contract = OFTEN
        with self.daemon(contract, "--install") as d:
            d.wait_for("main.lifecycle_pruned")
            self.lapse(contract, "pause", "main", code=0)
            d.wait_for("main.paused", policies="job", message=lambda m: "lapse resume main" in m)
            self.jobs(1)
            time.sleep(0.5)
            self.left("job", 1)
            self.assertEqual(len(d.said("main.paused")), 1)
            self.lapse(contract, "resume", "main", code=0)
            self.gone_soon(1)
            self.assertEqual(d.said("lifecycle_tick_failed"), [])

    def test_observe_deletes_nothing(self):
        self.jobs(1, 2)
        self.lapse(OFTEN, "install", code=0)
        with self.untouched():
            with self.daemon(OFTEN, "--observe") as d:
                d.wait_for("main.lifecycle_observed", job=2)
                eventually(lambda: len(d.said("main.lifecycle_observed")) > 1)
            self.assertEqual(d.said("lifecycle_pruned"), [])

    def test_the_history_is_swept(self):
        self.lapse(EVERY_1S, "install", code=0)
        for name, scheduler, ago in (("beat", "lapse", 595), ("old", "main", 2400), ("new", "main", 1200)):
            self.given(f"insert into lapse_run (id, scheduler, source, owner, started_at, outcome, rows_gone, skipped, "
                       f"unknown, batches, errors, counts) values ('{name}', '{scheduler}', 'daemon', 'o', "
                       f"{self.clock(-ago)}, 'done', 0, 0, 0, 0, 0, '{{}}')")
        d = self.daemon(EVERY_1S)
        d.wait_for("lapse.lifecycle_pruned", lapse_run=1)
        left = self.ids("lapse_run")
        self.assertNotIn("old", left)
        self.assertLessEqual({"beat", "new"}, set(left))
        self.assertEqual(d.metrics()["lifecycle_prune_rows_total", "lapse", "lapse_run", "lapse.run"], 1)
        before = d.metrics()["lapse_last_success_timestamp_seconds", "lapse"]
        mark = d.mark()
        d.signal(SIGHUP)
        d.wait_for("lapse.contract_reloaded", after=mark)
        self.assertEqual(d.metrics()["lapse_last_success_timestamp_seconds", "lapse"], before)
        d.stop()

    def test_the_beat_survives_a_restart(self):
        contract = """
            schedulers: { main: { every: 1h, run_on_start: %s } }
            policies: { job: { table: job, expires: at_ms } }
        """
        with self.daemon(contract % "true", "--install") as d:
            d.wait_for("lapse.installed")
            d.wait_for("main.lifecycle_pruned")
        began = time.monotonic()
        self.given(f"update lapse_run set started_at = {self.clock(-3596)} where scheduler = 'main'")
        with self.daemon(contract % "false") as d:
            d.wait_for("main.lifecycle_pruned")         # one that counts anew comes in an hour
            self.assertGreater(time.monotonic() - began, 3.5, "it did not wait for its beat")


@every_engine
class Install(DaemonCase):
    def test_before_the_first_tick(self):
        self.jobs(1)
        with self.daemon(OFTEN, "--install") as d:
            d.wait_for("main.lifecycle_pruned")
        names = [x["event"] for x in d.lines]
        self.assertLess(names.index("lapse.installed"), names.index("main.lifecycle_pruned"))
        self.assertIn(("daemon",), self.db.rows("select source from lapse_run"))

    def test_a_store_that_is_set_right_while_it_is_waited_for(self):
        """What was asked of the wrong one is asked of the right one, and the wrong one is forgotten."""
        d = self.daemon(OFTEN, db=Sqlite(new_path("nowhere", ".db")).dsn)
        d.wait_for("main.lifecycle_tick_failed")
        self.assertFalse(d.ready())
        d.rewrite(self.db, OFTEN)
        d.signal(SIGHUP)
        d.wait_for("lapse.contract_reloaded", changes=lambda c: "store changed" in c)
        eventually(d.ready, words=lambda: d.http("/readyz"))
        d.stop()

    def test_the_history_is_swept(self):
        """By the built-in scheduler, which keeps its beat of ten minutes over a restart."""
        with self.daemon(OFTEN, "--install") as d:
            d.wait_for("main.lifecycle_pruned")
            (status,) = [s for s in json.loads(d.http("/api/status")[1])["schedulers"] if s["name"] == "lapse"]
            self.assertEqual((status["every"], status["last"], status["enabled"]), ("10m", None, True))
        for run, scheduler, s in (("last", "lapse", 598), ("old", "main", 8 * 86400), ("young", "main", 6 * 86400)):
            self.db.execute(f"""
                insert into lapse_run (id, scheduler, source, owner, started_at, ended_at, outcome, rows_gone, skipped,
                                       unknown, batches, errors, counts)
                values ('{run}', '{scheduler}', 'daemon', 'test', {self.clock(-s)}, {self.clock(-s)}, 'done', 5, 0, 0, 0, 0, '{{}}')""")
        with self.daemon(OFTEN) as d:
            d.wait_for("lapse.lifecycle_pruned", lapse_run=1)
            left = self.ids("lapse_run")
            self.assertNotIn("old", left)
            self.assertIn("young", left)
            self.assertIn("last", left)

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
        path = contract_file(dsn, QUIET)
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
        p = Lapse.start(self.db, QUIET, "run", "--log-format", "text")
        eventually(lambda: "main.lifecycle_pruned" in p.so_far()[1])
        p.signal(SIGTERM)
        r = p.wait()
        self.assertEqual(r.code, 0, r)
        self.assertNotIn("{", r.err.splitlines()[0])
        self.assertNotIn("\x1b", r.err)
        self.jobs(2)
        p = Lapse.start(self.db, QUIET, "run", "--log-level", "error")
        self.gone_soon(2)
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

            def in_time():
                """Eight of them, four times as many as must be; where others work, a few less for once."""
                heard()
                got.clear()
                time.sleep(2)
                heard()
                return sum("WATCHDOG=1" in m for m in got) >= 5
            eventually(in_time)
            d.stop()
            self.assertTrue(heard("STOPPING=1"))

    def test_a_reader_that_went_away(self):
        """Of the log: the daemon goes on."""
        r, w = os.pipe()
        p = subprocess.Popen([program(), "-f", str(contract_file(self.db, QUIET)), "run"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=w, start_new_session=True)
        self.addCleanup(p.kill)
        os.close(w)
        os.read(r, 1)
        os.close(r)
        self.jobs(1, 2)
        self.gone_soon(1, 2)
        p.terminate()
        self.assertEqual(p.wait(20), 0)
