"""A database that is away for a while, as during a failover: it is waited for, that is said, and a stop ends it. What is lost
at the COMMIT of a cluster is tried again."""
import signal
import threading
import time
import unittest

from daemon import Daemon, eventually
from harness import *
from proxy import *

SCHEMA = "create table job (id integer primary key, at_ms bigint); create index job_at on job(at_ms)"
LAST = 40
TRIES = 10      # in vain, in a row: more than it once had in all
PURGES = "purges: {job: {delay: 0, erases: [job(id)], timeouts: {away: 60s}}}"


def contract(away="60s", more=""):
    return f"""policies: {{job: {{table: job, expires: at_ms, batch: 10, timeouts: {{away: {away}}},
                                  pace: {{target: 1m, duty: 1}}{more}}}}}"""


class Away(Case):
    in_doubt = False        # a COMMIT without an answer: what is gone then, MariaDB cannot say by whom

    def setUp(self):
        super().setUp()
        self.given(SCHEMA)
        self.fill()

    def fill(self):
        self.given("delete from job")
        self.insert("job", *[(n, n) for n in range(1, LAST + 1)], (1000, MS + 1))

    def proxy(self, then, at="DELETE"):
        """The connection breaks once, in mid-sweep; from then on the server is as `then` makes it."""
        broken = []

        def before(s):
            if s.sql.startswith(at) and s.number > 10 and not broken:
                broken.append(s)
                then(proxy)
                return CUT
            return PASS

        proxy = Proxy(self.db, before)
        self.addCleanup(proxy.close)
        return proxy

    def went(self, r, code=0, rows=LAST):
        p = r.policy("job")
        self.assertEqual((r.code, p["outcome"], p["rows"] + p["unknown"]),
                         (code, "done" if code == 0 else p["outcome"], rows), r)
        self.assertEqual(0 if self.in_doubt and self.on_mariadb else p["unknown"], 0, r)
        self.left("job", *range(rows + 1, LAST + 1), 1000)
        return p


@every_server
class Waiting(Away):
    def test_longer_than_an_election(self):
        proxy = self.proxy(lambda p: p.refuse(TRIES))
        r = lapse(proxy.dsn, contract(), "sweep", "--now", NOW)
        self.assertEqual((r.code, proxy.refused), (0, TRIES), r)
        self.left("job", 1000)
        self.assertIn("job  waits: the database is not there: ", r.err)
        self.assertEqual(r.err.count("waits: "), 1, r)
        self.assertIn("for away", r.out)

    def test_no_longer_than_it_may(self):
        proxy = self.proxy(lambda p: p.refuse(10 ** 9))
        r = lapse(proxy.dsn, contract("1s"), "sweep", "--json", "--now", NOW)
        self.went(r, 5, 0)
        self.assertIn("waited for in vain for 1s (timeouts.away)", r.policy("job")["error"])
        self.assertGreater(r.policy("job")["pace"]["waited_ms"]["away"], 900)

    def test_it_is_waited_for_once(self):
        """Not again for each policy that follows, nor for the history."""
        proxy = self.proxy(lambda p: p.refuse(10 ** 9))
        self.lapse(contract(), "install", code=0)
        more = "".join(f"\n  p{i}: {{table: job, expires: at_ms, timeouts: {{away: 60s}}}}" for i in range(3))
        one = contract("1s").replace("policies: {", "").strip()[:-1]
        start = time.monotonic()
        r = lapse(proxy.dsn, f"policies:\n  {one}{more}", "sweep", "--json", "--now", NOW)
        self.assertEqual([p["outcome"] for p in r.json["policies"]][:4], ["failed"] * 4, r)
        self.assertEqual(r.code, 5, r)
        self.assertLess(time.monotonic() - start, 50)

    def test_never_there_at_all(self):
        """At the start nothing is waited for."""
        proxy = Proxy(self.db)
        proxy.close()
        start = time.monotonic()
        r = lapse(proxy.dsn, contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 5, r)
        self.assertLess(time.monotonic() - start, 30)

    def stopped(self, then, refused):
        proxy = self.proxy(then)
        p = Lapse.start(proxy.dsn, contract("10m"), "sweep", "--json", "--now", NOW)
        self.addCleanup(p.kill)
        eventually(lambda: proxy.refused >= refused or not p.running())
        start = time.monotonic()
        p.signal(signal.SIGINT)
        r = p.wait()
        took = time.monotonic() - start
        self.went(r, 6, 0)
        self.assertLess(took, 5, "of which it is to take half a second, on a machine that has time")

    def test_stopped_between_two_tries(self):
        self.stopped(lambda p: p.refuse(10 ** 9), 5)

    def test_stopped_while_a_server_does_not_answer(self):
        """It takes the connection, and is silent: nothing that a client library can be told to stop."""
        self.stopped(lambda p: p.hang(), 1)

    def test_purges(self):
        self.lapse(PURGES, "install", code=0)
        self.given("insert into lapse_purge (space, instance, reason) values ('job', '1', 'completed'), ('job', '2', 'failed')")
        proxy = self.proxy(lambda p: p.refuse(TRIES))
        r = lapse(proxy.dsn, PURGES, "purge", "due")
        self.assertEqual((r.code, proxy.refused), (0, TRIES), r)
        self.assertIn("job  waits: the database is not there: ", r.err)
        self.left("job", *range(3, LAST + 1), 1000)

    def test_the_daemon(self):
        """Says so, is not ready meanwhile, and goes on in the same tick."""
        proxy = self.proxy(lambda p: p.refuse(10 ** 9))
        self.given("update job set at_ms = 4102444800000 where id = 1000")
        d = Daemon(proxy, "schedulers: {default: {every: 1h}}\n" + contract("10m"))
        self.addCleanup(lambda: d.kill() if d.running() else None)
        line = d.wait_for("default.lifecycle_paced", reason="away")
        self.assertEqual((line["level"], line["policy"]), ("warn", "job"), d)
        status, body = d.http("/readyz")
        self.assertEqual((status, "could not reach the database" in body), (503, True), body)
        proxy.refuse(0)
        pruned = d.wait_for("default.lifecycle_pruned")
        self.assertEqual(pruned["job"], LAST, d)
        eventually(d.ready)
        self.left("job", 1000)
        d.stop()


@every_server
class Restarted(Away):
    """A server of its own: killed in mid-sweep, and there again when it was looked for in vain."""
    in_doubt = True

    def setUp(self):
        self.server = Mariadb(durable=True) if self.on_mariadb else Postgres(settings={"synchronous_commit": "on"})
        self.addCleanup(self.server.stop)
        self.db = self.server.fresh()
        self.given(SCHEMA)
        self.fill()

    def test_at_a_commit(self):
        """Whose rows are looked up: all that was due is gone, and counted once."""
        reached, stopped, commits = threading.Event(), threading.Event(), []

        def before(s):
            commits.extend([s] if s.sql == "COMMIT" else [])
            if len(commits) == 2 and not reached.is_set():
                reached.set()
                stopped.wait(60)
                return DEAF

        with Proxy(self.db, before, patience_s=30) as proxy:
            p = Lapse.start(proxy.dsn, contract(), "sweep", "--json", "--now", NOW)
            self.addCleanup(p.kill)
            self.assertTrue(reached.wait(60))
            self.db.close()
            self.server.stop(signal.SIGKILL if self.on_mariadb else signal.SIGQUIT)
            stopped.set()
            self.server.start()
            self.went(p.wait())


@every_server
class Doubt(Away):
    """A COMMIT without an answer, and an application that writes before its rows are looked up."""

    def commit_without_answer(self, what, then, text):
        """The first COMMIT of a batch is cut off so; when the program is there again, the application does that."""
        cut, back = [], []

        def before(s):
            if s.sql == "COMMIT" and not cut and any(x.sql.startswith("DELETE") and "job" in x.sql for x in proxy.seen):
                cut.append(s.connection)
                return what
            if cut and s.connection != cut[0] and not back:
                back.append(s)
                eventually(lambda: what is CUT or self.db.rows("select count(*) from job where id <= 10")[0][0] == 0)
                then()
            return PASS

        with Proxy(self.db, before) as proxy:
            return lapse(proxy.dsn, text, "sweep", "--json", "--now", NOW)

    def test_a_row_is_put_back(self):
        """Its transaction deleted all or none: that one row is there again says nothing."""
        r = self.commit_without_answer(MUTE, lambda: self.db.execute("insert into job values (1, ?)", (MS + 1,)), contract())
        p = r.policy("job")
        self.assertEqual(p["rows"] + p["unknown"], LAST, r)
        self.assertEqual((p["rows"], r.code), (LAST, 0) if self.on_postgres else (LAST - 10, 1), r)
        self.left("job", 1, 1000)

    def test_others_delete_them_under_a_lease(self):
        """It keeps out sweeps, and no applications."""
        text = "schedulers: {default: {every: 1h, exclusive: true}}\n" + contract()
        self.lapse(text, "install", code=0)
        r = self.commit_without_answer(CUT, lambda: self.db.execute("delete from job where id <= 10"), text)
        p = r.policy("job")
        self.assertEqual((p["rows"], p["unknown"]), (LAST - 10, 10), r)
        self.left("job", 1000)

    def test_what_is_looked_up_is_in_the_metrics(self):
        cut = []

        def before(s):
            if s.sql == "COMMIT" and not cut and any(x.sql.startswith("DELETE") and "job" in x.sql and x.connection == s.connection
                                                     for x in proxy.seen):
                cut.append(s)
                return MUTE
            return PASS

        with Proxy(self.db, before) as proxy, Daemon(proxy, "schedulers: {default: {every: 1h}}\n" + contract()) as d:
            line = d.wait_for("default.lifecycle_pruned")
            self.assertEqual(d.metrics()["lifecycle_prune_rows_total", "default", "job", "job"], line["job"])
            self.assertEqual(line["job"], LAST + 1 if self.on_postgres else LAST - 9)     # by its clock one more is due

    def test_a_stop_while_nobody_answers(self):
        for args in (["plan"], ["sweep", "--now", NOW]):
            with self.subTest(args[0]):
                reached, over = threading.Event(), threading.Event()

                def before(s):
                    if '"job"' in s.sql.replace("`", '"') and s.sql.startswith("SELECT") and s.number > 8 and not reached.is_set():
                        proxy.hang()
                        reached.set()
                        over.wait(60)
                    return PASS

                with Proxy(self.db, before) as proxy:
                    p = Lapse.start(proxy.dsn, contract(), *args)
                    self.addCleanup(p.kill)
                    self.assertTrue(reached.wait(60))
                    p.signal(signal.SIGINT)
                    r = p.wait(30)
                    over.set()
                self.assertEqual(r.code, 6, r)


class Mysqls(Away, MariadbTest):
    """What a group of MySQL says, by a proxy before a real session whose transaction is really rolled back."""
    CERTIFICATION = Refuse(3101, "40000", "Plugin instructed the server to rollback the current transaction.")
    BUSY = Refuse(1180, "HY000", "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT")
    HOOK = Refuse(3100, "HY000", "Error on observer while running replication hook 'before_commit'.")

    def commits(self, what, times):
        told = []

        def before(s):
            if s.sql == "COMMIT" and len(told) < times:
                told.append(s)
                return what

        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn, contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual(len(told), times, r)
        return self.went(r), proxy

    def test_a_conflict_that_is_found_at_commit(self):
        for what in (self.CERTIFICATION, self.BUSY):
            with self.subTest(what.packet):
                self.fill()
                p, proxy = self.commits(what, 3)
                self.assertGreaterEqual(p["retries"], 3)
                self.assertEqual(proxy.connections, 1, "nothing is wrong with the connection")

    def test_conflicts_that_do_not_end(self):
        """Less may be faster than the others: the batch is halved."""
        self.commits(self.CERTIFICATION, 8)

    def test_what_is_not_certain_is_looked_up(self):
        p, proxy = self.commits(self.HOOK, 2)
        self.assertGreater(proxy.connections, 1)


class SwitchedOver(Away, unittest.TestCase):
    """One address, behind which the server that takes writes changes: the one that was it only reads by now."""
    engine = "mariadb"

    def setUp(self):
        self.server = Mariadb()
        self.addCleanup(self.server.stop)
        self.db = self.server.fresh()
        self.given(SCHEMA)
        self.fill()
        self.server.admin("create user lapse_app identified by ''")
        self.server.admin(f"grant select, delete on `{self.db.name}`.* to lapse_app")

    def sweep_during(self, before, code=0):
        with Proxy(self.db, before) as proxy:
            dsn = proxy.dsn.replace(f"//{self.server.USER}@", "//lapse_app@")
            r = lapse(dsn, contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, code, f"{r}\n{proxy.seen}")
        return r, proxy

    def test_it_is_waited_for(self):
        commits = []

        def before(s):
            commits.extend([s] if s.sql == "COMMIT" else [])
            if len(commits) == 1 and s.sql == "COMMIT":
                self.server.admin("set global read_only = 1")
            if s.connection == 4:      # two were tried in vain
                self.server.admin("set global read_only = 0")

        r, proxy = self.sweep_during(before)
        self.went(r)
        self.assertGreaterEqual(proxy.connections, 4)

    def test_a_replica_from_the_beginning_is_not(self):
        self.server.admin("set global read_only = 1")
        start = time.monotonic()
        r, proxy = self.sweep_during(None, 1)
        self.assertIn("read-only", r.policy("job")["error"])
        self.assertLess(time.monotonic() - start, 30)
