"""Connections that fall silent (no answer ever comes, as where a network swallows everything), that break again and
again, that come back for some before they do for others, that lead to a server others took over from."""
import re
import threading
import time

from daemon_case import *
from proxy import CUT, PASS, Proxy

JOB = "create table job (id integer primary key, at_ms bigint); create index job_at on job(at_ms)"
POLICY = "policies: { job: { table: job, expires: at_ms, timeouts: { lock: 200ms, statement: 500ms } } }\n"
B = re.compile(r"""["`]b["`]""")
CLOCK = ("SELECT (extract(epoch", "SELECT TIMESTAMPDIFF")      # what a tick asks first


@every_server
class Silence(Case):
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


@every_server
class Return(Case):
    @again
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
            at = int(time.time()) + 3
            soon = time.gmtime(at)
            cron = f"{soon.tm_sec} {soon.tm_min} {soon.tm_hour} * * *"
            with Daemon(proxy.dsn, f"schedulers: {{ main: {{ cron: '{cron}' }} }}\n" + POLICY) as d:
                d.wait_for("lapse.started")
                if time.time() > at - 0.2:
                    raise TooSoon("a daemon's first tick")
                d.wait_for("main.lifecycle_tick_failed")
                cut[0] = lambda sql: sql.startswith(CLOCK)
                after = len(proxy.seen)
                eventually(lambda: any("max(started_at)" in s.sql for s in proxy.seen[after:]), 70)
                time.sleep(0.5)
                cut[0] = lambda sql: False
                d.wait_for("lifecycle_pruned", 70, job=1)


@every_server
class Breaks(Case):
    CONTRACT = """
        schedulers: { main: { every: 1h, budget: { rows: 3 } } }
        policies:
          a: { table: a, expires: at_ms }
          b: { table: b, expires: at_ms }
          c: { table: c, expires: at_ms }
        """

    def setUp(self):
        super().setUp()
        for t in "abc":
            self.given(f"create table {t} (id integer primary key, at_ms bigint); create index {t}_at on {t}(at_ms)")
            self.insert(t, *[(i, 1) for i in range(10)])

    def broken_by(self, which):
        """Statements of policy b that `which` chooses break the connection, each time."""
        with Proxy(self.db, lambda s: CUT if which(s.sql) else PASS) as proxy:
            with Daemon(proxy.dsn, self.CONTRACT) as d:
                failed = d.wait_for("main.lifecycle_tick_failed", 60)
                self.assertIn("b", failed["message"])
                d.wait_for("lifecycle_pruned", a=3, c=3)
                time.sleep(4)       # the same tick is not tried again: its budget is used up
                self.assertEqual([len(self.ids(t)) for t in "abc"], [7, 10, 7], d)

    def test_a_policy_that_breaks_connections_when_it_is_looked_at_stops_no_other(self):
        self.broken_by(lambda sql: B.search(sql) and "WHERE" in sql)

    def test_a_policy_that_breaks_connections_when_it_deletes_stops_no_other(self):
        self.broken_by(lambda sql: sql.startswith("DELETE") and B.search(sql))

    def test_a_budget_is_not_used_up_by_rows_that_came_back(self):
        """All in one transaction, whose end breaks: it is done again."""
        contract = """
            schedulers: { main: { every: 1h, exclusive: true, budget: { rows: 3 } } }
            policies: { a: { table: a, expires: at_ms, batch: null } }
            """
        self.lapse(contract, "install", code=0)
        deleted, cut = [], []

        def before(s):
            if s.sql.startswith("DELETE"):
                deleted.append(s)
            if deleted and not cut and "lapse_lease" in s.sql:
                cut.append(s)
                return CUT
            return PASS

        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn, contract, "sweep", "--json")
        self.assertTrue(cut, proxy.seen)
        self.assertEqual((r.code, r.policy("a")["rows"], len(self.ids("a"))), (6, 3, 7), r)


@every_server
class Takeover(Case):
    def test_a_server_that_others_took_over_from_is_left(self):
        """It is still there and answers, but what it answers is of no use."""
        self.given(JOB)
        self.insert("job", (1, 1))
        old = type(self.db.server)()
        self.addCleanup(old.stop)
        old.admin(f"create database {self.db.name}")
        link = new_path("link")
        link.symlink_to(old.home)
        dsn = f"postgresql://{self.db.server.USER}@/{self.db.name}?host={link}" if self.on_postgres else \
            f"mariadb://{self.db.server.USER}@localhost/{self.db.name}?socket={link}/socket"
        with Daemon(dsn, "schedulers: { main: { every: 300ms } }\n" + POLICY) as d:
            d.wait_for("main.lifecycle_tick_failed")
            beside = new_path("link")
            beside.symlink_to(self.db.server.home)
            beside.rename(link)
            d.wait_for("lifecycle_pruned", 30, job=1)
            d.wait_for("main.lifecycle_recovered")
