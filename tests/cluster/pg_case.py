"""What the suites of a primary with its standby share: jobs with their steps, some due, some never."""
import os
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))
from daemon import *
from harness import *
from pgcluster import *

THOROUGH = bool(os.environ.get("LAPSE_CLUSTER"))        # make test-cluster
FAR_MS = 4_102_444_800_000      # the year 2100: never due in a test
PACE = "pace: { target: 1m, duty: 1 }"     # batches are what they are, however slow the machine is
CONTRACT = f"""
    policies:
      job: {{ table: job, expires: at_ms, batch: 20, with: [ step(job_id) ], timeouts: {{ lock: 20s }}, {PACE} }}
    """
SCHEMA = """create table job (id integer primary key, at_ms bigint);
            create table step (id integer primary key, job_id integer not null references job(id));
            create index job_at on job(at_ms); create index step_job on step(job_id);"""
KEPT = 10       # jobs that are never due, each with a step


class PairTest(Case, unittest.TestCase):
    """A pair of its own for every test."""
    engine = "postgres"
    settings, synchronous = None, False

    def setUp(self):
        self.pair = Pair(self.settings, self.synchronous)
        self.addCleanup(self.pair.stop)
        self.db = self.pair.fresh()
        self.addCleanup(lambda: self.db.close())

    def fill(self, due):
        """So many jobs that are due, two steps each; KEPT that are not."""
        self.given(SCHEMA)
        self.given(f"""insert into job select i, {MS} - i from generate_series(1, {due}) i;
                       insert into job select -i, {FAR_MS} from generate_series(1, {KEPT - 1}) i;
                       insert into job values (0, null);
                       insert into step select 2 * id + k, id from job, generate_series(0, 1) k""")
        self.pair.caught_up()

    def due_left(self):
        return self.db.rows(f"select count(*) from job where at_ms <= {MS}")[0][0]

    def start(self, contract=CONTRACT, dsn=None):
        p = Lapse.start(dsn or self.db, contract, "sweep", "--json")
        self.addCleanup(p.kill)
        return p

    def until_left(self, p, most):
        """The sweep has come so far that no more than so many jobs are left. The test is @again."""
        eventually(lambda: self.due_left() <= most or not p.running(), 60, every=0.002)
        if not p.running():
            raise TooSoon(f"a sweep that left {most}")

    def held_up(self, p):
        """Between two batches: the next one waits for this session. What is left now is not changed any more."""
        holder = self.db.connect()
        self.addCleanup(holder.close)
        with holder.cursor() as c:
            c.execute("begin; lock table step in share row exclusive mode; lock table job in share row exclusive mode")
        self.until(p, "wait_event_type = 'Lock'")
        return holder

    def until(self, p, state):
        """The sweep's session is in this state, in words of pg_stat_activity. The test is @again."""
        found = eventually(lambda: self.pair.primary.ask(
            f"select 1 from pg_stat_activity where application_name = 'lapse' and {state}") or not p.running(), 60, every=0.002)
        if not isinstance(found, list):
            raise TooSoon(f"a sweep with {state}")

    def all_is_right(self):
        """What was due is gone with its steps; what was not is there with its."""
        self.left("job", *range(1 - KEPT, 1))
        self.assertEqual(self.db.rows("select job_id, count(*) from step group by 1 order by 1"),
                         [(i, 2) for i in range(1 - KEPT, 1)])

    def whole(self):
        """No job without its steps, none the other way round."""
        self.assertEqual(self.db.rows("select id from job where (select count(*) from step where job_id = job.id) <> 2"), [])

    def went_on(self, r, lost=0):
        """The result of a sweep during which the primary changed; it, or the next one, finishes. Returns its entry."""
        self.db.moved()
        self.whole()
        entry = r.policy("job")
        self.assertEqual(entry.get("skipped"), [], r)
        if r.code == 5:
            self.assertRegex(entry["error"], "connect|standby|read-only|closed", r)
        else:
            self.assertEqual((r.code, entry["outcome"]), (1 if entry["unknown"] else 0, "done"), r)
        self.sweep(CONTRACT, now=None)
        self.all_is_right()
        return entry
