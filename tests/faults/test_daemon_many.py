"""Many daemons on one database, and daemons that are killed or frozen at work."""
import json
import random
import re
import signal
import time

import freeze
from daemon_case import *
from proxy import Proxy

JOBS = """create table job (id integer primary key, at_ms bigint); create index job_at on job(at_ms);
          create table step (id integer primary key, job_id integer not null); create index step_job on step(job_id)"""
SHARED = """
    schedulers: { one: { every: 200ms } }
    policies: { job: { scheduler: one, table: job, expires: at_ms, batch: 20, with: [ step(job_id) ] } }
    """
LEASE_MS = 900
EXCLUSIVE = f"""
    schedulers: {{ one: {{ every: 200ms, exclusive: true, lease: {LEASE_MS}ms }} }}
    policies: {{ job: {{ scheduler: one, table: job, expires: at_ms, batch: BATCH, with: [ step(job_id) ] }} }}
    """


class Many(Case):
    def setUp(self):
        super().setUp()
        self.given(JOBS)
        self.next = 1
        if self.on_sqlite:
            self.db.execute("pragma journal_mode = wal")
        self.lapse(SHARED, "install", code=0)

    def daemon(self, contract, db=None):
        d = Daemon(db or self.db, contract)
        self.addCleanup(lambda: d.kill() if d.running() else None)
        return d

    def fill(self, n):
        """n jobs that are due with two steps each, and a tenth more that is not; returns the numbers that must stay."""
        first, self.next = self.next, self.next + 2 * n
        due, stay = range(first, first + n), range(first + n, first + n + n // 10)
        rows = [(i, 1) for i in due] + [(i, FAR_MS) for i in stay]
        self.db.executemany("insert into step values (?, ?)", [(2 * i + k, i) for i, _ in rows for k in (0, 1)])
        self.db.executemany("insert into job values (?, ?)", rows)
        return list(stay)

    def due(self):
        return self.db.rows("select count(*) from job where at_ms = 1")[0][0]

    def half_done(self):
        return self.db.rows("select id, 'step alone' from step where job_id not in (select id from job) union all "
                            "select id, 'job stripped' from job j where (select count(*) from step where job_id = j.id) <> 2")

    def counted(self, *daemons):
        """(jobs, steps) that went, by the metrics of all of them."""
        return tuple(sum(d.metric("lifecycle_prune_rows_total", "one", t) for d in daemons) for t in ("job", "step"))

    def swept(self, *daemons, timeout=60):
        eventually(lambda: not self.due(), timeout, words=lambda: "\n".join(map(str, daemons)))


@every_engine
class Shared(Many):
    def shared(self, n):
        daemons = [self.daemon(SHARED) for _ in range(n)]
        for d in daemons:
            d.serving()
        stay, total = [], 0
        for _ in range(4):
            stay += self.fill(300)
            total += 300
            self.swept(*daemons)
        words = "\n".join(map(str, daemons))
        eventually(lambda: self.counted(*daemons) == (total, 2 * total), words=lambda: f"{self.counted(*daemons)}\n{words}")
        self.left("job", *stay)
        self.assertEqual(self.half_done(), [])
        self.assertEqual(sum(d.metric("lifecycle_tick_errors_total") for d in daemons), 0, words)
        self.assertEqual(sum(len(d.said("lifecycle_tick_failed")) for d in daemons), 0, words)
        # the log has it once its tick ended
        logged = lambda: sum(x["job"] for d in daemons for x in d.said("lifecycle_pruned") if "job" in x)
        eventually(lambda: logged() >= total, words=lambda: f"{logged()}\n{words}")
        self.assertEqual(logged(), total, "the log counts what the metrics count")
        for d in daemons:
            d.stop()
        return daemons

    def test_two(self):
        self.shared(2)

    def test_three(self):
        daemons = self.shared(3)
        self.assertGreater(sum(bool(d.said("lifecycle_pruned", job=lambda n: n > 0)) for d in daemons), 0)


@every_engine
class Exclusive(Many):
    contract = EXCLUSIVE.replace("BATCH", "20")

    def leaders(self, daemons):
        return [d for d in daemons if d.running() and d.metric("lapse_lease_held", "one") == 1]

    def test_one_works(self):
        contract = self.contract.replace(f"{LEASE_MS}ms", "30s")      # on a busy machine a shorter one may be lost
        daemons = [self.daemon(contract) for _ in range(3)]
        for d in daemons:
            d.serving()
        leader = eventually(lambda: self.leaders(daemons))[0]
        stay = []
        for _ in range(3):
            stay += self.fill(200)
            self.swept(*daemons)
        eventually(lambda: self.counted(leader) == (600, 1200), words=lambda: str(leader))
        self.assertEqual(self.leaders(daemons), [leader])
        for d in daemons:
            if d is not leader:
                self.assertEqual(self.counted(d), (0, 0), d)
                self.assertEqual(d.metric("lifecycle_tick_errors_total"), 0, d)
                self.assertLessEqual(len(d.said("lease_held_elsewhere")), 2, f"said once, not at every tick\n{d}")
        self.left("job", *stay)

        # An orderly stop hands over at once: the next tick of another one finds it free.
        leader.stop()
        rest = [d for d in daemons if d is not leader]
        after = eventually(lambda: self.leaders(rest), words=lambda: "\n".join(map(str, rest)))
        stay += self.fill(100)
        self.swept(*rest)
        eventually(lambda: self.counted(*rest) == (100, 200))
        self.assertEqual(len(after), 1)
        for d in rest:
            d.stop()
        self.left("job", *stay)
        self.assertEqual(self.half_done(), [])
        self.assertEqual(self.db.rows("select owner from lapse_lease where scheduler = 'one'"), [(None,)])

    def test_handed_over_without_waiting(self):
        """A lease of ten minutes: only a hand-over can explain that another works soon after."""
        long = self.contract.replace(f"{LEASE_MS}ms", "10m")
        a = self.daemon(long)
        a.wait_for("lease_taken")
        b = self.daemon(long)
        b.wait_for("lease_held_elsewhere")
        self.fill(50)
        a.stop()
        self.swept(b)
        b.stop()

    def test_killed(self):
        """The leader dies without a word: the next takes over when the lease expires, not before."""
        a = self.daemon(self.contract)
        a.wait_for("lease_taken")
        b = self.daemon(self.contract)
        b.wait_for("lease_held_elsewhere")
        a.kill()
        stay = self.fill(50)
        start = time.monotonic()
        self.swept(b)
        self.assertLess(time.monotonic() - start, LEASE_MS / 1000 + 20)
        b.stop()
        self.left("job", *stay)

    def test_killed_in_a_run(self):
        """Its own next tick is an hour away: it works as soon as the lease of the one that died has ended."""
        slow = EXCLUSIVE.replace("every: 200ms", "every: 1h, run_on_start: true").replace(f"{LEASE_MS}ms", "2s")
        slow = slow.replace("batch: BATCH", "batch: 1, pace: { rows_per_second: 4 }")
        self.assertIn("1h", slow)
        self.assertIn("rows_per_second", slow)
        stay = self.fill(24)
        a = self.daemon(slow)
        a.wait_for("lease_taken")
        eventually(lambda: self.due() < 24, words=lambda: str(a))
        b = self.daemon(slow)
        b.wait_for("lease_held_elsewhere")
        a.kill()
        self.assertGreater(self.due(), 0, a)
        b.wait_for("lease_taken")
        self.swept(b)
        b.stop()
        self.left("job", *stay)

    def test_frozen_between_ticks(self):
        """Frozen past its lease while it had nothing to do; woken when there is work that is another's."""
        a = self.daemon(self.contract)
        a.wait_for("lease_taken")
        time.sleep(0.5)
        b = self.daemon(self.contract)
        b.wait_for("lease_held_elsewhere")
        freeze.frozen(a)
        b.wait_for("lease_taken")
        freeze.frozen(b)        # so that only the woken one could delete
        time.sleep(0.1)
        self.db.execute(f"update lapse_lease set expires_at = {self.clock(3600)}")
        self.fill(40)
        a.signal(signal.SIGCONT)
        a.wait_for("lease_lost")
        time.sleep(1)
        self.assertEqual(self.due(), 40, a)
        b.signal(signal.SIGCONT)
        self.swept(b)
        eventually(lambda: self.counted(b) == (40, 80))
        self.assertEqual(self.counted(a), (0, 0))
        b.stop()
        a.stop()
        self.assertEqual(self.half_done(), [])


@every_server
class FrozenInABatch(Many):
    """The leader is frozen before each statement of its batch, past its lease, while another takes over."""
    contract = EXCLUSIVE.replace("BATCH", "5")

    def frozen_before(self, wanted):
        """wanted(statement, statements of this batch before it) -> freeze here."""
        self.given("delete from lapse_lease; delete from job; delete from step")
        box, batch, frozen = [], [], []

        def before(s):
            if s.begins_batch:
                batch.clear()
            batch.append(s.sql)
            if box and not frozen and self.armed and wanted(s, batch):
                frozen.append(s)
                freeze.frozen(box[0])
                time.sleep(LEASE_MS / 1000 + 0.3)
                other = self.daemon(self.contract)
                other.wait_for("lease_taken")
                self.swept(other)
                eventually(lambda: self.counted(other)[0] + self.gone_before == self.total)
                freeze.frozen(other)
                self.db.execute(f"update lapse_lease set expires_at = {self.clock(3600)}")
                self.fresh = self.fill(10)      # also ten that are due, and whose business it is not
                self.others = other
                box[0].signal(signal.SIGCONT)

        self.armed, self.gone_before, self.total = False, 0, 20
        with Proxy(self.db, before, apart=False) as proxy:
            a = self.daemon(self.contract, proxy.dsn)
            a.wait_for("lease_taken")
            box.append(a)
            self.armed = True
            stay = self.fill(20)
            eventually(lambda: frozen, words=lambda: f"{proxy.seen[-30:]}\n{a}")
            a.wait_for("lease_lost")
            time.sleep(0.5)
            words = f"before {frozen[0]}\n{a}"
            self.assertEqual(self.due(), 10, words)
            self.assertEqual(self.half_done(), [], words)
            self.assertEqual(self.counted(a), (0, 0), words)
            self.assertIsNone(proxy.trouble, words)
            a.stop()
            self.others.stop()
        self.assertTrue(set(stay) <= set(self.ids("job")), words)

    def test_at_the_lock(self):
        self.frozen_before(lambda s, batch: s.begins_batch and s.number > 1 and "lapse_lease" not in s.sql)

    def test_at_the_delete(self):
        self.frozen_before(lambda s, batch: s.sql.startswith("DELETE") and "step" in s.sql)

    def test_at_the_delete_of_the_roots(self):
        self.frozen_before(lambda s, batch: s.sql.startswith("DELETE") and re.search(r'["`]job["`]', s.sql))

    def test_at_the_fence(self):
        self.frozen_before(lambda s, batch: "lapse_lease" in s.sql and s.sql.startswith("UPDATE")
                           and any(b.startswith("DELETE") for b in batch))

    def test_at_the_commit(self):
        self.frozen_before(lambda s, batch: s.sql.startswith("COMMIT") and any(b.startswith("DELETE") for b in batch))


class FrozenAtWork(Many, SqliteTest):
    """SQLite: a takeover waits for the file lock, if the frozen one has it."""
    contract = EXCLUSIVE.replace("BATCH", "10")
    ROWS = 3000

    def at_work(self):
        """A leader in the middle of its work, and another that would like to lead."""
        a = self.daemon(self.contract)
        a.wait_for("lease_taken")
        b = self.daemon(self.contract)
        b.wait_for("lease_held_elsewhere")
        self.stay = self.fill(self.ROWS)
        eventually(lambda: self.due() < self.ROWS, every=0.002, words=lambda: str(a))
        return a, b

    def finished(self, a, b):
        self.assertEqual(self.half_done(), [])
        eventually(lambda: self.counted(a, b) == (self.ROWS, 2 * self.ROWS),
                   words=lambda: f"{self.counted(a, b)}\n{a}\n{b}")
        self.left("job", *self.stay)
        a.stop()
        b.stop()

    def test_between_two_batches(self):
        a, b = self.at_work()
        freeze.between_batches(self, a)
        b.wait_for("lease_taken")
        self.swept(b)
        freeze.between_batches(self, b)
        self.db.execute("update lapse_lease set expires_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour')")
        due = self.fill(20)
        a.signal(signal.SIGCONT)
        a.wait_for("lease_lost")
        time.sleep(1)
        self.assertEqual(self.due(), 20, "the woken one deletes nothing under the old token")
        b.signal(signal.SIGCONT)
        self.swept(b)
        self.stay += due
        self.ROWS += 20
        self.finished(a, b)

    def test_in_a_batch(self):
        a, b = self.at_work()
        freeze.in_a_batch(self, a)
        here = self.due()
        time.sleep(LEASE_MS / 1000 + 1)
        self.assertEqual(self.due(), here, "the file is locked")
        a.signal(signal.SIGCONT)
        self.swept(a, b)
        self.finished(a, b)


@every_engine
class Killed(Many):
    """kill -9 in the middle of the work, then a new one."""
    contract = SHARED.replace("batch: 20", "batch: 3")

    def test_again_and_again(self):
        rng = random.Random(5)
        stay = []
        hit = 0
        for round in range(60):
            if round >= 8 and hit > 2:      # a fast sweep is often done when it is to be killed
                break
            stay += self.fill(150)
            d = self.daemon(self.contract)
            was = self.due()
            eventually(lambda: self.due() < was, every=0.002, words=lambda: str(d))
            time.sleep(rng.uniform(0, 0.03))
            d.kill()
            d.sane()
            hit += 0 < self.due()
            self.assertEqual(self.half_done(), [], d)
            self.assertTrue(set(stay) <= set(self.ids("job")), d)
        self.assertGreater(hit, 2, "some kills hit one that was at work")
        running = self.db.rows("select count(*) from lapse_run where outcome = 'running'")[0][0]
        self.assertGreaterEqual(running, 1, "the history shows who did not come back")
        with self.daemon(SHARED.replace("batch: 20", "batch: 200, pace: { target: 10s, duty: 1 }")) as d:
            self.swept(d, timeout=120)
        self.left("job", *stay)
        self.assertEqual(self.half_done(), [])
        history = self.lapse(self.contract, "history", "--json", code=0)
        self.assertIn("running", json.dumps(history.json))
