"""Groups of three MySQL servers: a sweep through the death of the primary, sweepers on several primaries (`make test-mysql`)."""
import threading
import unittest

from daemon import eventually
from harness import *
from mysqlgroup import Group

N = 1200
CONTRACT = """
    policies:
      job: { table: job, expires: at_ms, batch: 20, with: [ step(job_id) ], timeouts: { lock: 20s, away: 120s },
             pace: { target: 1m, duty: 1 } }
    """
SCHEMA = """create table job (id integer primary key, at_ms bigint);
            create table step (id integer primary key, job_id integer not null);
            create index job_at on job(at_ms); create index step_job on step(job_id)"""


class Grouped(Case):
    engine = "mariadb"
    multi = False

    @classmethod
    def setUpClass(cls):
        cls.group = Group(cls.multi)

    @classmethod
    def tearDownClass(cls):
        cls.group.stop()

    def setUp(self):
        self.db = self.group.fresh()
        self.given(SCHEMA)
        self.given(f"""insert into job select seq, {MS} - seq from seq_1_to_{N};
                       insert into job values (0, null), (-1, 4102444800000);
                       insert into step select id, id from job""")
        self.group.settle()

    def left_of(self, db):
        return db.rows(f"select count(*) from job where at_ms <= {MS}")[0][0]

    def all_is_right(self, member):
        self.group.settle()
        db = self.db.on(member)
        self.assertEqual(db.rows("select id from job order by id"), [(-1,), (0,)])
        self.assertEqual(db.rows("select id from step order by id"), [(-1,), (0,)])

    def sweep_through(self, db):
        p = Lapse.start(db, CONTRACT, "sweep", "--json", "--now", NOW)
        self.addCleanup(p.kill)
        return p


class SinglePrimary(Grouped, unittest.TestCase):
    @again
    def test_the_primary_dies(self):
        p = self.sweep_through(self.db)
        eventually(lambda: self.left_of(self.db) <= N * 0.8 or not p.running(), 60, every=0.002)
        if not p.running():
            raise TooSoon("a sweep whose primary dies")
        dead = self.group.primary()
        self.db.close()
        dead.kill()
        r = p.wait(150)
        entry = r.policy("job")
        self.assertEqual((r.code, entry["outcome"], entry["skipped"], entry["left"]), (0, "done", [], 0), r)
        self.assertEqual(entry["rows"] + entry["unknown"], N, r)
        self.assertLessEqual(entry["unknown"], 20, r)
        self.assertGreater(entry["pace"]["waited_ms"]["away"], 0, r)
        dead.start()
        dead.join()
        self.all_is_right(self.group.primary())


class MultiPrimary(Grouped, unittest.TestCase):
    multi = True

    @again
    def test_sweepers_on_two_primaries(self):
        """They meet at COMMIT: certification lets one of them win, and the other goes again."""
        started = [self.sweep_through(self.db.on(m)) for m in self.group.members[:2]]
        results = [p.wait(150) for p in started]
        about = "\n".join(map(str, results))
        entries = [r.policy("job") for r in results]
        self.assertEqual([(r.code, e["outcome"], e["skipped"], e["unknown"]) for r, e in zip(results, entries)],
                         [(0, "done", [], 0)] * 2, about)
        self.assertEqual(sum(e["rows"] for e in entries), N, about)
        if not sum(e["retries"] for e in entries):
            raise TooSoon("two sweepers that meet")
        self.all_is_right(self.group.members[2])

    def test_an_application_on_another_primary(self):
        """Rows that it brings back to life stay, with all they own, whoever was first."""
        db, revived = self.db.on(self.group.members[1]), []
        ended = threading.Event()

        def application():
            import pymysql
            with db.connect() as c, c.cursor() as q:
                for i in range(N, 0, -7):
                    if ended.is_set():
                        return
                    try:
                        q.execute(f"update job set at_ms = 4102444800000 where id = {i}")
                        if q.rowcount:
                            revived.append(i)
                    except pymysql.Error:       # it was the sweep's
                        pass

        thread = threading.Thread(target=application)
        thread.start()
        r = self.sweep_through(self.db.on(self.group.members[0])).wait(150)
        ended.set()
        thread.join()
        entry = r.policy("job")
        self.assertEqual((r.code, entry["outcome"], entry["unknown"]), (0, "done", 0), r)
        self.group.settle()
        for m in self.group.members:
            found = [i for i, in self.db.on(m).rows("select id from job where id > 0 order by id")]
            self.assertEqual(found, sorted(revived), r)
            self.assertEqual(found, [i for i, in self.db.on(m).rows("select job_id from step where job_id > 0 order by 1")], r)
        self.assertEqual(entry["rows"], N - len(revived), r)
