"""notify: an application that says NOTIFY has its purge looked at at once; what is not heard is found a second later."""
import signal
import statistics
import time

from daemon import Daemon, eventually
from harness import *

CONTRACT = """
    purges:
      workflow: { delay: 0, notify: true, erases: [ workflow(id) ] }"""
QUIET = CONTRACT.replace("notify: true", "notify: false")
LISTENING = "select pid from pg_stat_activity where query = 'LISTEN lapse_purge' and datname = current_database()"


class Notify(Case, PostgresTest):
    def setUp(self):
        super().setUp()
        self.given("create table workflow (id text primary key)")
        self.lapse(CONTRACT, "install", code=0)
        self.n = 0

    def listening(self, wanted=1):
        return eventually(lambda: len(self.db.rows(LISTENING)) == wanted, words=f"{wanted} that listen") and self.db.rows(LISTENING)

    def purged_after(self, d, *say):
        """How long a purge takes; right after another, when a look is a second away."""
        self.n += 1
        name = f"w{self.n}"
        with self.db.connect() as c:
            c.autocommit = False
            with c.cursor() as q:
                q.execute("insert into workflow values (%s)", (name,))
                q.execute("insert into lapse_purge (space, instance, reason) values ('workflow', %s, 'completed')", (name,))
                for s in say:
                    q.execute(s)
            c.commit()
            start = time.monotonic()
            d.wait_for("purge.executed", instance=name)
            return time.monotonic() - start

    def mostly(self, d, *say):
        """How long most of them take."""
        self.purged_after(d)
        return statistics.median(self.purged_after(d, *say) for _ in range(7))

    def test_at_once(self):
        with Daemon(self.db, CONTRACT) as d:
            self.listening()
            heard, unheard = self.mostly(d, "notify lapse_purge"), self.mostly(d, "notify another_channel")
            self.assertLess(heard, 0.5)
            self.assertGreater(unheard, 0.6)      # else this says nothing
            self.assertLess(self.mostly(d, "select pg_notify('lapse_purge', 'wf-1')"), 0.5)
            start = time.monotonic()
            d.stop()
            self.assertLess(time.monotonic() - start, 20)

    def test_off_unless_asked_for(self):
        for contract in (QUIET, CONTRACT.replace("notify: true,", "")):
            with Daemon(self.db, contract) as d:
                d.wait_for("lapse.started")
                self.assertGreater(self.mostly(d, "notify lapse_purge"), 0.6)
                self.listening(0)

    def test_a_reload(self):
        with Daemon(self.db, QUIET) as d:
            d.wait_for("lapse.started")
            for contract, wanted in ((CONTRACT, 1), (QUIET, 0), (CONTRACT, 1)):
                after = d.mark()
                d.rewrite(self.db, contract)
                d.signal(signal.SIGHUP)
                d.wait_for("contract_reloaded", after=after)
                self.listening(wanted)
            self.assertLess(self.mostly(d, "notify lapse_purge"), 0.5)

    def test_a_connection_that_is_lost(self):
        """Nothing is lost with it, and it is had again."""
        with Daemon(self.db, CONTRACT) as d:
            pid = self.listening()[0][0]
            self.db.rows(f"select pg_terminate_backend({pid})")
            d.wait_for("lapse.remark", message=lambda m: "are not heard" in m and "every second" in m)
            self.assertLess(self.purged_after(d, "notify lapse_purge"), 20)
            d.wait_for("lapse.remark", message=lambda m: "are heard again" in m)
            self.assertNotEqual(self.listening()[0][0], pid)
            self.assertLess(self.mostly(d, "notify lapse_purge"), 0.5)
            self.assertEqual(len(d.said("lapse.remark", message=lambda m: "heard" in m)), 2, d)

    def test_one_that_only_observes_does_not_listen(self):
        with Daemon(self.db, CONTRACT, "--observe") as d:
            d.wait_for("lapse.started")
            time.sleep(1)
            self.listening(0)


class Sqlite(Case, SqliteTest):
    def test_refused(self):
        self.given("create table workflow (id text primary key)")
        self.lapse(QUIET, "install", code=0)
        r = self.check(CONTRACT, code=3)
        self.finding(r, "error", "sqlite has no notifications", policy="purges.workflow")
        self.check(QUIET, code=0)
        self.insert("workflow", "a")
        self.db.execute("insert into lapse_purge (space, instance) values ('workflow', 'a')")
        with Daemon(self.db, CONTRACT) as d:
            self.assertIn("no notifications", d.wait_for("purge.failed", space="workflow")["message"])
        self.left("workflow", "a")
