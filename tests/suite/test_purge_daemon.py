"""The daemon carries out purges: soon after they are due, said and counted."""
import datetime
import signal
import time

from daemon import Daemon, eventually
from harness import *

CONTRACT = """
    purges:
      workflow:
        label: Workflow
        delay: 300ms
        retention: { failed: 24h }
        erases: [ workflow_step(workflow_id), workflow(id) ]
    policies: { t: { table: t, expires: at_ms } }"""


@every_engine
class Purges(Case):
    def setUp(self):
        super().setUp()
        self.given("create table workflow (id text primary key); create table workflow_step (workflow_id text);"
                   "create index step_workflow on workflow_step(workflow_id);"
                   "create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms)")
        self.lapse(CONTRACT, "install", code=0)

    def instance(self, *names, reason="completed"):
        for n in names:
            self.db.execute("insert into workflow values (?)", (n,))
            self.insert("workflow_step", n, n)
            self.db.execute("insert into lapse_purge (space, instance, reason) values ('workflow', ?, ?)", (n, reason))

    def test_said_and_counted(self):
        with Daemon(self.db, CONTRACT) as d:
            d.wait_for("lapse.started")
            self.instance("a")
            self.instance("b", reason="failed")
            line = d.wait_for("purge.executed", instance="a")
            self.assertEqual((line["message"], line["space"], line["reason"], line["rows"], line["level"]),
                             ("[Workflow] Purged data for a (completed)", "workflow", "completed", 3, "info"))
            eventually(lambda: d.metric("lapse_purges_total", "workflow", "completed") == 1)    # said first, then counted
            self.left("workflow", "b")
        self.assertEqual(self.db.rows("select instance from lapse_purge"), [("b",)])

    def test_reasons_without_end_are_few_series(self):
        """An application may write a new reason each time."""
        for n in range(60):
            self.instance(f"w{n:02}", reason=f"because of {n:02}")
        self.instance("long", reason="x" * 300)
        self.instance("named", reason="completed")
        with Daemon(self.db, CONTRACT.replace("retention: { failed: 24h }", "retention: { completed: 300ms, failed: 24h }")) as d:
            eventually(lambda: not self.db.rows("select 1 from workflow"))
            d.wait_for("purge.executed", instance="named")
            d.wait_for("purge.executed", instance="long", reason="x" * 300)
            series = eventually(lambda: (lambda s: s if sum(s.values()) == 62 else None)(
                {labels[1]: v for (name, *labels), v in d.metrics().items() if name == "lapse_purges_total"}))
        self.assertEqual(len(series), 52)           # fifty, the one that the contract names, and the others
        self.assertEqual((series["other"], series["completed"]), (11, 1))

    def test_what_was_due_before_it_started(self):
        self.instance("a", "b")
        with Daemon(self.db, CONTRACT) as d:
            d.wait_for("purge.executed", instance="a")
            d.wait_for("purge.executed", instance="b")
            eventually(lambda: d.metric("lapse_purges_pending", "workflow") == 0)

    def test_an_observer_leaves_them(self):
        self.instance("a")
        with Daemon(self.db, CONTRACT, "--observe") as d:
            d.wait_for("lifecycle_observed")
            time.sleep(2.5)
        self.left("workflow", "a")

    def test_what_is_wrong_is_said_once(self):
        with Daemon(self.db, CONTRACT) as d:
            d.wait_for("lapse.started")
            self.given("alter table workflow_step rename to steps")
            self.instance_without_steps("a")
            line = d.wait_for("purge.failed", space="workflow")
            self.assertIn("workflow_step", line["message"])
            time.sleep(3)
            self.assertEqual(len(d.said("purge.failed")), 1, d)
            self.left("workflow", "a")
            self.given("alter table steps rename to workflow_step")
            d.wait_for("purge.executed", instance="a")

    def test_what_is_refused_is_left_for_a_while(self):
        """Its tables are not looked at in every turn; other spaces go on meanwhile."""
        contract = CONTRACT.replace("    policies:", "      second: { delay: 0, erases: [ other(id) ] }\n    policies:")
        self.given("create table other (id text primary key); alter table workflow_step rename to steps")
        with Daemon(self.db, contract) as d:
            self.instance_without_steps("a")
            failed = d.wait_for("purge.failed", space="workflow")
            self.given("alter table steps rename to workflow_step")
            self.db.execute("insert into other values ('x')")
            self.db.execute("insert into lapse_purge (space, instance) values ('second', 'x')")
            d.wait_for("purge.executed", instance="x")
            line = d.wait_for("purge.executed", instance="a")
            self.assertGreater(self.seconds(line) - self.seconds(failed), 7)

    def seconds(self, line):
        return datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()

    def instance_without_steps(self, n):
        self.db.execute("insert into workflow values (?)", (n,))
        self.db.execute("insert into lapse_purge (space, instance, reason) values ('workflow', ?, 'completed')", (n,))

    def test_unknown_spaces_are_said(self):
        self.db.execute("insert into lapse_purge (space, instance) values ('other', 'x')")
        with Daemon(self.db, CONTRACT) as d:
            self.assertIn("'other'", d.wait_for("lapse.remark", level="warn")["message"])

    def test_a_reload_changes_the_delay(self):
        with Daemon(self.db, CONTRACT) as d:
            d.wait_for("lapse.started")
            self.instance("b", reason="failed")
            time.sleep(1.5)
            self.left("workflow", "b")
            d.rewrite(self.db, CONTRACT.replace("failed: 24h", "failed: 1ms"))
            d.signal(signal.SIGHUP)
            d.wait_for("purge.executed", instance="b")

    def test_several_share_them(self):
        with Daemon(self.db, CONTRACT) as one, Daemon(self.db, CONTRACT) as two:
            one.wait_for("lapse.started")
            two.wait_for("lapse.started")
            names = [f"w{i}" for i in range(60)]
            self.instance(*names)
            eventually(lambda: not self.db.rows("select 1 from lapse_purge"))
        said = [x["instance"] for d in (one, two) for x in d.said("purge.executed")]
        self.assertEqual(sorted(said), sorted(names))
        self.left("workflow")

    def test_killed_and_started_again(self):
        """Nothing is lost."""
        names = [f"w{i}" for i in range(200)]
        self.instance(*names)
        for _ in range(5):
            d = Daemon(self.db, CONTRACT)
            time.sleep(0.4)
            d.kill()
        with Daemon(self.db, CONTRACT) as d:
            d.wait_for("lapse.started")
            eventually(lambda: not self.db.rows("select 1 from lapse_purge"))
        self.assertEqual(self.db.rows("select count(*) from workflow_step union all select count(*) from workflow"), [(0,), (0,)])

    def test_the_clock_jumps_back(self):
        """What was scheduled before the jump was scheduled, as the clock now has it, some time from now: it waits for
        that and its delay, others do not wait for it, and it is not lost."""
        at = self.clock(4)
        with Daemon(self.db, CONTRACT) as d:
            d.wait_for("lapse.started")
            start = time.monotonic()
            self.db.execute("insert into workflow values ('before')")
            self.db.execute(f"insert into lapse_purge (space, instance, reason, scheduled_at) values ('workflow', 'before', 'completed', {at})")
            self.instance("after")
            d.wait_for("purge.executed", instance="before")
            self.assertGreaterEqual(time.monotonic() - start, 4)
            self.assertEqual([x["instance"] for x in d.said("purge.executed")], ["after", "before"])
