"""kill -9 at random moments, again and again: nothing is ever half done, and a rerun finishes.

Every round starts a sweep in small batches, kills it after a random time within the length of a whole sweep, and looks:
a row is there with all it owns or gone with all of it. A database that is swept empty is filled again, so that
most kills hit a sweep at work."""
import os
import random
import time

from harness import *

KILLS = 200
JOBS = 160
DUE = JOBS * 9 // 10


@every_engine
class Kill(Case):
    CONTRACT = """
        policies:
          job: { table: job, expires: at_ms, batch: 4, detach: [ ext(job_id), job(parent) ],
                 with: [ { ref: step(job_id), with: [ note(step_id) ] } ] }"""

    kills = KILLS

    def setUp(self):
        super().setUp()
        self.given("""
            create table job (id integer primary key, at_ms bigint, parent integer references job(id));
            create table step (id integer primary key, job_id integer not null);
            create table note (id integer primary key, step_id integer not null);
            create table ext (id integer primary key, job_id integer);
            create index job_at on job(at_ms); create index job_parent on job(parent); create index step_job on step(job_id);
            create index note_step on note(step_id); create index ext_job on ext(job_id)""")
        self.seed = int(os.environ.get("LAPSE_SEED") or random.SystemRandom().randrange(10**9))
        self.random = random.Random(self.seed)

    def fill(self):
        """Nine in ten are due; what the living own refers to the dead."""
        series = f"({self.series(JOBS)}) s"
        twice = "(select 0 as k union all select 1) t"
        self.given(f"""
            delete from note; delete from step; delete from ext; update job set parent = null; delete from job;
            insert into job(id, at_ms) select n, case when n % 10 = 0 then {MS + 1} else n end from {series};
            update job set parent = case when id % 10 = 0 then id - 1 when id > 1 then id - 1 end;
            insert into step select n * 2 + k, n from {series}, {twice};
            insert into note select n * 4 + k, n * 2 + k from {series}, {twice};
            insert into ext select n, n from {series}""")

    def half_done(self):
        """Rows that lack their owner or what they own. Two steps a job, a note a step, an ext each."""
        return {what: self.db.rows(sql) for what, sql in {
            "steps without their job": "select id from step where job_id not in (select id from job)",
            "notes without their step": "select id from note where step_id not in (select id from step)",
            "jobs without their steps": "select id from job j where (select count(*) from step where job_id = j.id) <> 2",
            "steps without their note": "select id from step s where not exists (select 1 from note where step_id = s.id)",
            "attached to nothing": "select id from ext where job_id not in (select id from job)",
            "detached from a job that is there": "select id from ext where job_id is null and id in (select id from job)",
            "living jobs lost": f"select count(*) from job where id % 10 = 0 having count(*) <> {JOBS // 10}",
            "ext lost": f"select count(*) from ext having count(*) <> {JOBS}",
        }.items() if self.db.rows(sql)}

    def whole_sweep(self):
        self.fill()
        start = time.monotonic()
        r = self.sweep(self.CONTRACT)
        self.assertEqual(self.gone(r)["job"], DUE)
        return time.monotonic() - start

    def test_at_random_moments(self):
        length = self.whole_sweep()
        path = contract_file(self.db, self.CONTRACT)
        hit, filled, reach = 0, 0, 0.6 * length
        for kill in range(self.kills):
            if not self.db.rows(f"select 1 from job where at_ms <= {MS} limit 1"):
                self.fill()
                filled += 1
            before = self.db.rows("select count(*) from job")
            p = Lapse.start(None, path, "sweep", "--json", "--now", NOW)
            time.sleep(self.random.uniform(0, reach))
            p.kill()
            p.wait(10, signals=(9,))
            self.sessions_end()
            half = self.half_done()
            self.assertEqual(half, {}, f"after kill {kill}, LAPSE_SEED={self.seed}")
            worked = self.db.rows("select count(*) from job") != before
            hit += worked
            reach *= 1 if worked else 1.1     # the machine may be slower now than when the length was measured
            if not self.db.rows(f"select 1 from job where at_ms <= {MS} limit 1"):
                reach *= 0.8
        self.assertGreater(hit, self.kills // 10, f"too few kills hit a sweep at work; filled {filled} times")
        self.finished()

    def finished(self):
        due = self.db.rows(f"select count(*) from job where at_ms <= {MS}")[0][0]
        r = self.sweep(self.CONTRACT)
        self.assertEqual(self.gone(r).get("job", 0), due)
        self.left("job", *range(10, JOBS + 1, 10))
        self.assertEqual(self.half_done(), {})
        self.assertEqual(self.db.rows("select count(*) from job where parent is not null"), [(0,)])
        self.assertEqual(self.db.rows("select count(*) from ext where job_id is not null"), [(JOBS // 10,)])

    def test_in_one_batch(self):
        """Everything or nothing."""
        self.CONTRACT = self.CONTRACT.replace("batch: 4", "batch: null")
        length = self.whole_sweep()
        path = contract_file(self.db, self.CONTRACT)
        self.fill()
        for kill in range(12):
            p = Lapse.start(None, path, "sweep", "--json", "--now", NOW)
            time.sleep(self.random.uniform(0.2 * length, length))
            p.kill()
            p.wait(10, signals=(9,))
            self.assertEqual(self.half_done(), {}, f"after kill {kill}, LAPSE_SEED={self.seed}")
            there = self.db.rows("select count(*) from job")[0][0]
            self.assertIn(there, (JOBS, JOBS - DUE), f"after kill {kill}, LAPSE_SEED={self.seed}")
            if there != JOBS:
                self.fill()
        self.finished()


@every_server
class KillOfSeveral(Kill):
    """The same with several connections, whose parts refer to each other's rows."""
    CONTRACT = Kill.CONTRACT.replace("batch: 4", "batch: 4, workers: 3")
    kills = KILLS // 4
    test_in_one_batch = None
