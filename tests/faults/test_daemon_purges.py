"""Purges of a daemon against programs that cancel, start again and schedule the same instance, before every statement of a batch."""
import contextlib
import threading
import time

from daemon import Daemon, eventually
from harness import *
from proxy import Proxy, Session
from test_purges import AT, CONTRACT, LOOK, PURGED, WHOLE, Purging

CANCEL = "delete from lapse_purge where space = 'workflow' and instance = 'b'"


@every_server
class Races(Purging):
    def between(self, point, act):
        """Another session acts before that statement of the first batch; the statements, what it was told, what was executed."""
        self.fill()
        seen, purger, acted = [], [], threading.Event()
        with Session(self.db) as other:
            def before(s):
                if LOOK.match(s.sql) and not purger:
                    purger.append(s.connection)
                if s.connection not in purger or not (seen or s.begins_batch):
                    return
                seen.append(s)
                if len(seen) == point:
                    other.do(*act)
                    acted.set()

            with Proxy(self.db, before) as proxy, Daemon(proxy.dsn, CONTRACT) as d:
                if act:
                    self.assertTrue(acted.wait(40), d)
                    other.finish()
                    self.assertIsNone(other.error, f"{other.error}\n{seen}")
                eventually(lambda: not self.rows(), 40, words=lambda: str(d))
                d.stop()
                done = sorted(e["instance"] for e in d.said("purge.executed"))
            return seen, other.rows, done, f"before {seen[point - 1]}\ntold: {other.rows}, done: {done}\n{d}"

    def races(self, act, check):
        seen = self.between(0, ())[0]
        ends = next(i for i, s in enumerate(seen) if s.ends_batch)
        self.assertTrue(seen[ends].sql.startswith("COMMIT"), seen)
        outcomes = set()
        for point in range(1, ends + 3):
            with self.subTest(point=point):
                outcomes.add(check(*self.between(point, act)[1:]))
        return outcomes

    def test_cancelled(self):
        def check(told, done, how):
            self.assertEqual(done, ["a", "c"] if told else self.NAMES, how)
            self.assertEqual(self.states(), {"a": PURGED, "b": WHOLE if told else PURGED, "c": PURGED}, how)
            return told
        self.assertEqual(self.races([CANCEL], check), {0, 1})

    def test_started_again(self):
        """What it writes then is never purged."""
        def check(told, done, how):
            steps = self.db.rows("select count(*) from workflow_step where workflow_id = 'b'")[0][0]
            status = self.db.rows("select status from workflow where id = 'b'")
            self.assertEqual((status, steps), ([("running",)], 1 if "b" in done else 3), how)
            return "b" in done
        insert = ("insert ignore into workflow values ('b', 'x')" if self.on_mariadb else
                  "insert into workflow values ('b', 'x') on conflict (id) do nothing")
        self.assertEqual(self.races([
            "begin", CANCEL, insert, "update workflow set status = 'running' where id = 'b'",
            "insert into workflow_step values (99, 'b')", "commit"], check), {True, False})

    def test_scheduled_again(self):
        """It never fails. What came too late for the batch is a purge of nothing."""
        def check(told, done, how):
            self.assertIn(done, (self.NAMES, sorted(self.NAMES + ["b"])), how)
            self.assertEqual(self.states(), {n: PURGED for n in self.NAMES}, how)
            return len(done)
        at = AT.replace("T", " ").removesuffix("Z") if self.on_mariadb else AT
        self.assertEqual(self.races(["insert into lapse_purge (space, instance, reason, scheduled_at) values "
                                     f"('workflow', 'b', 'other', '{at}')"], check), {3, 4})


class Flood(Purging, PostgresTest):
    def test_many_notices_are_few_looks(self):
        """Programs may notify as often as they like: the database is not asked as often."""
        looks = []
        with Proxy(self.db, lambda s: looks.append(s) if LOOK.match(s.sql) else None) as proxy, \
                Daemon(proxy.dsn, CONTRACT.replace("retention:", "notify: true\n        retention:")) as d, \
                contextlib.closing(self.db.connect()) as c, c.cursor() as q:
            eventually(lambda: self.db.rows("select 1 from pg_stat_activity where query = 'LISTEN lapse_purge' and datname = current_database()"),
                       words=lambda: str(d))
            c.autocommit = True
            before, start = len(looks), time.monotonic()
            while (took := time.monotonic() - start) < 3 or len(looks) - before < 7 and took < 30:
                q.execute("notify lapse_purge")
            found = len(looks) - before
        self.assertGreater(found, 6)        # they are heard
        self.assertLess(found, 27 * took)
