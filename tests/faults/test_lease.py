"""A sweeper that is frozen past its lease, while another takes over: when it wakes it deletes nothing."""
import signal
import threading
import time

import freeze
from harness import *
from proxy import Proxy, Session

LEASE_MS = 700
CONTRACT = f"""
    schedulers: {{ one: {{ every: 5m, exclusive: true, lease: {LEASE_MS}ms }} }}
    policies:
      job: {{ scheduler: one, table: job, expires: at_ms, batch: BATCH, with: [ step(job_id) ], pace: {{ target: 1m, duty: 1 }} }}
    """
OTHER = "elsewhere:1:00000001"
FRESH = range(1000, 1005)     # due, and there only when the frozen one wakes


class Frozen(Case):
    def setUp(self):
        super().setUp()
        self.given("""create table job (id integer primary key, at_ms bigint);
                      create table step (id integer primary key, job_id integer not null);
                      create index job_at on job(at_ms); create index step_job on step(job_id)""")
        self.lapse(CONTRACT.replace("BATCH", "2"), "install", code=0)

    def fill(self, rows):
        self.given("delete from step; delete from job; delete from lapse_lease")
        self.db.executemany("insert into job values (?, ?)", [(n, n) for n in range(1, rows + 1)])
        self.db.executemany("insert into step values (?, ?)", [(n, n) for n in range(1, rows + 1)])

    def jobs(self):
        return self.db.rows("select count(*) from job")[0][0]

    def taken_over(self):
        """Another holds the lease from now on, and there is something due that is its business."""
        self.given(f"update lapse_lease set token = token + 1, owner = '{OTHER}', expires_at = {self.clock(3600)}")
        self.assertEqual(self.db.rows("select owner from lapse_lease"), [(OTHER,)])
        self.db.executemany("insert into job values (?, ?)", [(n, n) for n in FRESH])
        self.db.executemany("insert into step values (?, ?)", [(n, n) for n in FRESH])

    def nothing_went(self):
        self.assertEqual(self.db.rows(f"select id from job where id >= {FRESH[0]} order by id"), [(n,) for n in FRESH])
        self.assertEqual(self.db.rows(f"select id from step where id >= {FRESH[0]} order by id"), [(n,) for n in FRESH])


@every_server
class AtEveryStatement(Frozen):
    """PostgreSQL: before any statement, from taking the lease to the second batch."""
    ROWS = 6

    def through(self, contract, point=None, act=None):
        """Its result when it is frozen before that statement while act() goes on; and the statements."""
        started = threading.Event()
        box = []

        def before(statement):
            if statement.number == point:
                started.wait(10)
                box[0].signal(signal.SIGSTOP)
                try:
                    act()
                finally:
                    box[0].signal(signal.SIGCONT)

        with Proxy(self.db, before, looks=False) as proxy:
            box.append(Lapse.start(proxy.dsn, contract, "sweep", "--json", "--now", NOW))
            started.set()
            r = box[0].wait()
        return r, list(proxy.seen)

    def points(self, contract):
        self.fill(self.ROWS)
        r, seen = self.through(contract)
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, self.ROWS), r)
        taking = next(i for i, s in enumerate(seen) if "lapse_lease" in s.sql and s.sql.startswith("INSERT"))
        deletes = next(i for i, s in enumerate(seen) if s.sql.startswith("DELETE"))
        ends = next(i for i, s in enumerate(seen) if i > deletes and s.sql.startswith("COMMIT"))
        self.assertRegex(seen[ends - 1].sql, r'^UPDATE \S*["`]lapse_lease["`]', "the fence is the last statement before COMMIT")
        starts = max(i for i, s in enumerate(seen[:taking]) if s.begins_batch)
        self.assertLessEqual(taking - starts, 2, seen)      # it asks whether it may write, or sets the path of names
        begins = max(s.number for s in seen[:deletes] if s.begins_batch)
        asleep = "transaction_timeout = 1" if self.on_mariadb else \
            "idle_in_transaction_session_timeout = %d" % LEASE_MS
        self.assertTrue(any(asleep in s.sql for s in seen[begins - 4:begins]), seen[begins - 4:begins])
        return range(seen[starts].number, min(seen[ends].number + 4, len(seen)) + 1), seen[ends].number

    def frozen(self, batch):
        contract = CONTRACT.replace("BATCH", batch)
        points, commit = self.points(contract)
        self.assertGreater(len(points), 10)
        ends = set()
        for point in points:
            with self.subTest(point=point):
                self.fill(self.ROWS)
                others = []

                def takeover():
                    time.sleep(LEASE_MS / 1000 + 0.3)
                    others.append(lapse(self.db, contract, "sweep", "--json", "--now", NOW))
                    self.taken_over()

                r, seen = self.through(contract, point, takeover)
                self.assertTrue(others, f"the point was never reached: {seen}")
                mine, theirs = r.policy("job"), others[0].policy("job")
                words = f"before {seen[point - 1]}\n{seen[point - 1:]}\n{r}\n{others[0]}"
                self.nothing_went()
                self.assertEqual(self.jobs(), len(FRESH), words)
                self.assertEqual((others[0].code, theirs["outcome"]), (0, "done"), words)
                self.assertEqual(mine["rows"] + theirs["rows"], self.ROWS, words)
                # MariaDB closes the connection without a word: of a COMMIT that was sent it is not known
                self.assertIn(mine["unknown"], (0, 2) if self.on_mariadb and point == commit else (0,), words)
                self.assertEqual(theirs["unknown"], 0, words)
                if point <= commit:
                    self.assertEqual(mine["rows"], 0, words)
                self.assertIn((r.code, mine["outcome"]), ((1, "failed"), (0, "held_elsewhere")), words)
                self.assertIn(OTHER, mine["error"], words)
                ends.add(mine["outcome"])
        self.assertEqual(ends, {"failed", "held_elsewhere"})

    def test_batches(self):
        self.frozen("2")

    def test_all_in_one(self):
        """What follows its COMMIT deletes nothing, so that is left out."""
        contract = CONTRACT.replace("BATCH", "null")
        _, commit = self.points(contract)
        for point in (commit - 3, commit - 1, commit):
            with self.subTest(point=point):
                self.fill(self.ROWS)

                def takeover():
                    time.sleep(LEASE_MS / 1000 + 0.3)
                    self.taken_over()

                r, seen = self.through(contract, point, takeover)
                self.nothing_went()
                self.assertEqual((r.code, r.policy("job")["rows"], self.jobs()), (1, 0, self.ROWS + len(FRESH)), r)

    def test_nobody_took_over(self):
        """Its transaction was ended by the server, the lease expired, and it is still its own."""
        contract = CONTRACT.replace("BATCH", "2")
        _, commit = self.points(contract)
        for point in (commit - 1, commit, commit + 1):
            with self.subTest(point=point):
                self.fill(self.ROWS)
                r, _ = self.through(contract, point, lambda: time.sleep(LEASE_MS / 1000 + 0.3))
                unknown = r.policy("job")["unknown"]
                self.assertIn(unknown, (0, 2) if self.on_mariadb and point == commit else (0,), r)
                self.assertEqual((r.code, r.policy("job")["rows"], self.jobs()), (1 if unknown else 0, self.ROWS, 0), r)
                self.assertEqual(self.db.rows("select token, owner from lapse_lease"), [(1, None)])

    def test_a_takeover_waits_for_a_commit_under_way(self):
        """The fence has locked the row: who comes now waits, and finds that the lease was renewed."""
        contract = CONTRACT.replace("BATCH", "2")
        self.fill(self.ROWS)
        waiting = self.per_engine(
            postgres="select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
            mariadb="select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT' and trx_mysql_thread_id in "
                    "(select id from information_schema.processlist where db = database())")
        with Session(self.db) as holder:
            self.given(f"insert into lapse_lease values ('one', 5, '{OTHER}', {self.clock()}, {self.clock(-1)})")
            holder.do("begin", f"update lapse_lease set expires_at = {self.clock(3600)}")
            p = Lapse.start(self.db, contract, "sweep", "--json", "--now", NOW)
            end = time.monotonic() + 20
            while not self.db.rows(waiting):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.15)
            holder.do("commit")
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["outcome"]), (0, "held_elsewhere"), r)
        self.assertEqual(self.jobs(), self.ROWS)


@every_server
class WithoutALease(Frozen):
    """Also where it has none, whoever is frozen in a batch lets go of its rows soon."""

    def test_locks_end(self):
        self.fill(6)
        contract = CONTRACT.replace("BATCH", "3").replace(", exclusive: true, lease: 700ms", "")
        self.assertNotIn("lease", contract)
        started, box, let_go = threading.Event(), [], []

        def before(statement):
            if statement.sql.startswith("DELETE") and not let_go:
                started.wait(10)
                box[0].signal(signal.SIGSTOP)
                try:
                    with Session(self.db) as other:
                        other.do(self.per_engine(postgres="set lock_timeout = '30s'",
                                                 mariadb="set innodb_lock_wait_timeout = 30"))
                        other.do("update job set at_ms = at_ms + 1 where id = 1")
                        waited = other.waits()
                        other.finish(40)
                        let_go.append((waited, other.error, other.rows))
                finally:
                    box[0].signal(signal.SIGCONT)

        with Proxy(self.db, before, looks=False) as proxy:
            box.append(Lapse.start(proxy.dsn, contract, "sweep", "--json", "--now", NOW))
            started.set()
            r = box[0].wait()
        self.assertEqual(let_go, [(True, None, 1)], r)
        self.assertEqual((r.code, self.jobs()), (0, 0), r)


class InMidRun(Frozen, SqliteTest):
    """SQLite: a takeover waits for the file lock, if the frozen one has it."""
    ROWS = 3000

    def setUp(self):
        super().setUp()
        self.db.execute("pragma journal_mode = wal")       # so that it can be looked at while it is written

    def started(self, contract):
        """A sweep that has deleted something and has not finished."""
        self.fill(self.ROWS)
        p = Lapse.start(self.db, contract, "sweep", "--json", "--now", NOW)
        while p.running() and self.jobs() == self.ROWS:
            time.sleep(0.002)
        return p

    def test_frozen(self):
        contract = CONTRACT.replace("BATCH", "10")
        for stop, then in ((freeze.between_batches, self.it_takes_over), (freeze.in_a_batch, self.it_waits)):
            for round in range(3):
                with self.subTest(then.__name__, round=round):
                    p = self.started(contract)
                    stop(self, p)
                    time.sleep(LEASE_MS / 1000 + 0.2)
                    then(p, contract)

    def it_takes_over(self, p, contract):
        other = self.sweep(contract).policy("job")
        self.assertEqual((other["outcome"], self.jobs()), ("done", 0))
        self.taken_over()
        p.signal(signal.SIGCONT)
        r = p.wait()
        self.nothing_went()
        self.assertEqual((r.code, r.policy("job")["outcome"]), (1, "failed"), r)
        self.assertIn(f"lost to {OTHER}", r.policy("job")["error"])
        self.assertEqual(r.policy("job")["rows"] + other["rows"], self.ROWS)

    def it_waits(self, p, contract):
        here = self.jobs()
        other = Lapse.start(self.db, contract, "sweep", "--json", "--now", NOW)
        time.sleep(1)
        self.assertTrue(other.running(), "".join(other.so_far()))
        self.assertEqual(self.jobs(), here)
        p.signal(signal.SIGCONT)
        mine, theirs = p.wait(), other.wait()
        words = f"{mine}\n{theirs}"
        self.assertEqual(self.jobs(), 0, words)
        self.assertEqual(mine.policy("job")["rows"] + theirs.policy("job")["rows"], self.ROWS, words)
        self.assertIn((mine.policy("job")["outcome"], theirs.policy("job")["outcome"]),
                      (("done", "held_elsewhere"), ("done", "done"), ("failed", "done")), words)
