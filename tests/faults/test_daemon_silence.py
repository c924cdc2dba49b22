"""A database that falls silent: connections stay open, and no answer ever comes, as where a network swallows everything.
And one that is back for some before it is for others."""
import threading
import time

from daemon_case import *
from proxy import CUT, PASS, Proxy

JOB = "create table job (id integer primary key, at_ms bigint); create index job_at on job(at_ms)"
POLICY = "policies: { job: { table: job, expires: at_ms, timeouts: { lock: 200ms, statement: 500ms } } }\n"
CLOCK = "SELECT (extract(epoch"      # what a tick asks first


class Silence(Case, PostgresTest):
    def setUp(self):
        super().setUp()
        self.given(JOB)
        self.silent = set()      # connections
        self.over = threading.Event()
        self.addCleanup(self.over.set)

    def before(self, statement):
        if statement.connection in self.silent:
            self.over.wait(300)
            return CUT
        return PASS

    def test_a_tick_gives_up_a_connection_that_is_silent(self):
        with Proxy(self.db, self.before) as proxy:
            with Daemon(proxy.dsn, "schedulers: { main: { every: 300ms } }\n" + POLICY) as d:
                d.wait_for("lifecycle_pruned")
                self.silent |= set(range(1, proxy.connections + 1))
                self.insert("job", (1, 1))
                d.wait_for("lifecycle_pruned", 50, job=1)
                eventually(d.ready, words=lambda: d.http("/readyz"))

    def test_a_start_into_silence_is_not_ready(self):
        """Nothing happens before it is known when schedulers last ran, so that must be said."""
        self.silent |= set(range(100))
        with Proxy(self.db, self.before) as proxy:
            with Daemon(proxy.dsn, "schedulers: { main: { every: 300ms } }\n" + POLICY) as d:
                d.wait_for("lapse.started")
                eventually(lambda: proxy.seen)
                status, words = d.http("/readyz")
                self.assertEqual(status, 503, words)
                self.assertIn("has not answered", words)
                self.over.set()
                d.wait_for("main.lifecycle_tick_failed")


class Return(Case, PostgresTest):
    def test_a_tick_that_is_tried_again_is_not_forgotten(self):
        """Its time came while the database was away. That the database then says when the scheduler last ran, before
        the next try, is no reason to wait until the next day."""
        self.given(JOB)
        once = "schedulers: { main: { cron: '0 0 4 1 1 *', run_on_start: true } }\n" + POLICY
        self.lapse(once, "install", code=0)
        with Daemon(self.db, once) as d:
            d.wait_for("lifecycle_pruned")
        self.insert("job", (1, 1))
        cut = [lambda sql: True]
        with Proxy(self.db, lambda s: CUT if cut[0](s.sql) else PASS) as proxy:
            soon = time.gmtime(time.time() + 3)
            cron = f"{soon.tm_sec} {soon.tm_min} {soon.tm_hour} * * *"
            with Daemon(proxy.dsn, f"schedulers: {{ main: {{ cron: '{cron}' }} }}\n" + POLICY) as d:
                d.wait_for("main.lifecycle_tick_failed")
                cut[0] = lambda sql: sql.startswith(CLOCK)
                after = len(proxy.seen)
                eventually(lambda: any("max(started_at)" in s.sql for s in proxy.seen[after:]), 70)
                time.sleep(0.5)
                cut[0] = lambda sql: False
                d.wait_for("lifecycle_pruned", 70, job=1)
