"""Patroni with etcd: the leader is killed, or hands over, while a sweep works by both addresses or through haproxy. An election
takes about 20 seconds; in the end all that was due is gone, and exit is 0 (`make test-cluster`)."""
import unittest

from daemon import eventually
from harness import *
from patronicluster import Patroni

N = 1200
CONTRACT = """
    policies:
      job: { table: job, expires: at_ms, batch: 20, with: [ step(job_id) ], timeouts: { lock: 20s, away: 5m },
             pace: { target: 1m, duty: 1 } }
    """
SCHEMA = """create table job (id integer primary key, at_ms bigint);
            create table step (id integer primary key, job_id integer not null references job(id));
            create index job_at on job(at_ms); create index step_job on step(job_id);"""


class Elections(Case, unittest.TestCase):
    engine = "postgres"

    def setUp(self):
        self.cluster = Patroni()
        self.addCleanup(self.cluster.stop)

    def fill(self):
        self.db = self.cluster.fresh()
        self.given(SCHEMA)
        self.given(f"""insert into job select i, {MS} - i from generate_series(1, {N}) i;
                       insert into job values (0, null), (-1, 4102444800000);
                       insert into step select id, id from job""")

    def sweep_during(self, dsn, happens):
        p = Lapse.start(dsn, CONTRACT, "sweep", "--json", "--now", NOW)
        self.addCleanup(p.kill)
        left = f"select count(*) from job where at_ms <= {MS}"
        eventually(lambda: self.db.rows(left)[0][0] <= N * 0.8 or not p.running(), 60, every=0.002)
        holder = self.db.connect()       # from here on a batch is under way
        self.addCleanup(holder.close)
        with holder.cursor() as c:
            c.execute("begin; lock table step in share row exclusive mode; lock table job in share row exclusive mode")
        waits = "select 1 from pg_stat_activity where application_name = 'lapse' and wait_event_type = 'Lock'"
        if not isinstance(eventually(lambda: self.db.rows(waits) or not p.running(), 60, every=0.002), list):
            raise TooSoon("a sweep during which the leader changes")
        happens()
        self.db.close()
        r = p.wait(300)
        entry = r.policy("job")
        self.assertEqual((r.code, entry["outcome"], entry["skipped"], entry["left"]), (0, "done", [], 0), r)
        # the last commits of a leader that is killed may be lost: their rows were back, and went twice
        self.assertGreaterEqual(entry["rows"] + entry["unknown"], N, r)
        self.assertGreater(entry["pace"]["waited_ms"]["away"], 0, r)
        self.db.close()
        self.assertEqual(self.db.rows("select id from job order by id"), [(-1,), (0,)])
        self.assertEqual(self.db.rows("select id from step order by id"), [(-1,), (0,)])
        return entry

    @again
    def test_switched_over_and_killed(self):
        """Handed over, back again, and the leader killed: by both addresses, then through haproxy."""
        for dsn in (lambda: self.db.dsn, lambda: self.cluster.behind_haproxy(self.db.name)):
            self.fill()
            eventually(self.cluster.streams, 120, words=self.cluster.logs)
            entry = self.sweep_during(dsn(), self.cluster.switch_over)
            self.assertEqual((entry["rows"], entry["unknown"]), (N, 0), "an orderly change loses nothing")
            eventually(self.cluster.streams, 120, words=self.cluster.logs)
            self.fill()
            killed = []
            self.sweep_during(dsn(), lambda: killed.append(self.cluster.kill_leader()))
            killed[0].start()
            eventually(self.cluster.streams, 120, words=self.cluster.logs)
