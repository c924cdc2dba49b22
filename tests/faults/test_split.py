"""Rows that go ahead of the row that owns them, and another session, a kill or a cut between any two statements.

Whatever happens: a row goes only while its owner is due, each transaction is bounded, what is told is what went, and a
rerun finishes."""
import os
import random
import time

from harness import *
from proxy import *

SCHEMA = """
    create table job (id integer primary key, state varchar(20), at_ms bigint);
    create table log (id integer primary key, job_id integer references job(id), kind varchar(20));
    create table note (id integer primary key, log_id integer references log(id));
    create table flag (id integer primary key, job_id integer);
    create table trace (id integer, owner integer, state varchar(20));
    create index job_at on job(at_ms); create index log_job on log(job_id); create index note_log on note(log_id);
    create index flag_job on flag(job_id)"""

LOGS, BATCH = 8, 3
RESET = f"""
    delete from note; delete from log; delete from job; delete from flag; delete from trace;
    insert into job values (1, 'done', 0), (2, 'done', 0), (3, 'running', 0);
    insert into log values {", ".join(f"({10 + i}, 1, 'x')" for i in range(LOGS))}, (20, 2, 'x'), (30, 3, 'x');
    insert into note select id * 10, id from log"""


def contract(more="", below=", with: [note(log_id)]"):
    return f"policies: {{job: {{table: job, rows: {{state: done}}, expires: at_ms, batch: {BATCH}, " \
           f"with: [{{ref: log(job_id), split: true{below}}}]{more}}}}}"


class Ahead(Case):
    def setUp(self):
        super().setUp()
        self.given(SCHEMA)
        state = "(select state from job where id = old.job_id)"
        if self.on_postgres:
            self.given(f"""
                create function trace() returns trigger language plpgsql as
                    $$ begin insert into trace values (old.id, old.job_id, {state}); return old; end $$;
                create trigger trace before delete on log for each row execute function trace()""")
        elif self.on_mariadb:
            self.given(f"create trigger trace before delete on log for each row insert into trace values (old.id, old.job_id, {state})")
        else:
            self.given(f"create trigger trace before delete on log begin insert into trace values (old.id, old.job_id, {state}); end")

    def reset(self):
        self.given(RESET)
        self.given("delete from trace")

    def number(self, sql):
        return self.db.rows(sql)[0][0]

    def sound(self, about):
        """Rows went only while their owner was due, with what they own, and no owner went before them. Row 99, which another
        session adds, owns nothing: it stays with its owner where that session still holds it when the sweep comes by."""
        self.assertEqual(self.db.rows("select * from trace where state <> 'done' or state is null or owner = 3"), [], about)
        for sql in ("select id from log where job_id not in (select id from job)",
                    "select id from note where log_id not in (select id from log)",
                    "select id from log where id not in (select log_id from note) and id < 99"):
            self.assertEqual(self.db.rows(sql), [], f"{sql}\n{about}")
        self.assertEqual(self.db.rows("select id from log where job_id = 3 and id = 30"), [(30,)], about)


@every_server
class Interleaved(Ahead):
    def through(self, policy, before=None):
        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn, policy, "sweep", "--json", "--now", NOW)
        return r, list(proxy.seen)

    def test_each_transaction_is_bounded(self):
        for below in (", with: [note(log_id)]", ", with: [{ref: note(log_id), split: true}]"):
            self.reset()
            counts = []

            def look(statement):
                if statement.begins_batch:
                    counts.append((self.number("select count(*) from log"), self.number("select count(*) from note")))

            r, seen = self.through(contract(below=below), look)
            self.assertEqual(r.code, 0, r)
            counts.append((self.number("select count(*) from log"), self.number("select count(*) from note")))
            went = [(a[0] - b[0], a[1] - b[1]) for a, b in zip(counts, counts[1:])]
            self.assertEqual((sum(w[0] for w in went), counts[-1]), (LOGS + 1, (1, 1)), went)
            self.assertLessEqual(max(w[0] for w in went), BATCH, went)
            self.assertGreaterEqual(sum(w[0] > 0 for w in went), 4, went)
            if "split" in below:
                self.assertLessEqual(max(sum(w) for w in went), BATCH, went)
            self.sound(seen)

    def points(self, policy):
        self.reset()
        r, seen = self.through(policy)
        self.assertEqual(r.code, 0, r)
        self.left("job", 3)
        first = next(i for i, s in enumerate(seen) if s.begins_batch)
        return [s.number for s in seen[first:]]

    def each(self, act, check, policy=None, code=(0,), early=()):
        policy = policy or contract()
        stayed = set()
        for point in self.points(policy):
            with self.subTest(point=point):
                self.reset()
                with Session(self.db) as other:
                    other.do(*early)

                    def come_in(statement):
                        if statement.number == point:
                            other.do(*act)

                    r, seen = self.through(policy, come_in)
                    other.finish()
                about = f"before {point}\n{seen}\n{other.rows} {other.error}\n{r}"
                self.assertIn(r.code, code, about)
                self.sound(about)
                self.assertEqual(self.db.rows("select id from job where id = 2"), [], about)
                self.assertEqual(self.gone(r).get("log", 0), self.number("select count(*) from trace"), f"counted {about}")
                stayed.add(check(other, r, about))
        return stayed

    def owned(self):
        return self.number("select count(*) from log where job_id = 1")

    def test_revived(self):
        def check(other, r, about):
            self.assertIsNone(other.error, about)
            there = bool(self.db.rows("select 1 from job where id = 1"))
            self.assertEqual(there, other.rows == 1, about)
            return self.owned() if there else "gone"
        stayed = self.each(("update job set state = 'running' where id = 1 and state = 'done'",), check)
        self.assertIn("gone", stayed)
        self.assertIn(LOGS, stayed, "in time for all of it")
        self.assertTrue(stayed & {LOGS - BATCH, LOGS - 2 * BATCH}, f"in mid-course: {stayed}")

    def test_revived_by_an_open_transaction(self):
        def check(other, r, about):
            self.assertEqual(self.owned(), LOGS, about)
        self.each(("commit",), check, early=("begin", "update job set state = 'running' where id = 1"))

    def test_something_to_wait_for(self):
        def check(other, r, about):
            there = bool(self.db.rows("select 1 from job where id = 1"))
            return self.owned() if there else "gone"
        stayed = self.each(("insert into flag values (1, 1)",), check, contract(", after: [flag(job_id)]"))
        self.assertTrue({"gone", LOGS} <= stayed and stayed & set(range(1, LOGS)), stayed)

    def test_a_row_outside_where(self):
        def check(other, r, about):
            there = bool(self.db.rows("select 1 from job where id = 1"))
            kept = bool(self.db.rows("select 1 from log where id = 17"))
            self.assertEqual(there, kept, about)
            self.assertEqual(kept, other.rows == 1, about)
            return self.owned() if there else "gone"
        for below in ("", ", with: [note(log_id)]"):
            stayed = self.each(("update log set kind = 'kept' where id = 17",), check,
                               contract(below=", where: {kind: x}" + (below or ", with: [note(log_id)]")))
            self.assertIn(LOGS, stayed)

    def test_given_to_a_row_that_lives(self):
        def check(other, r, about):
            if not other.error:
                self.assertEqual(self.db.rows("select job_id from log where id = 14"), [(3,)] * other.rows, about)
            self.assertEqual(self.ids("job"), [3], about)
        self.each(("update log set job_id = 3 where id = 14",), check)

    def test_added(self):
        def check(other, r, about):
            there = self.db.rows("select 1 from log where id = 99")
            self.assertEqual(bool(there), bool(self.db.rows("select 1 from job where id = 1")) and not other.error, about)
        self.each(("insert into log values (99, 1, 'x')",), check)

    def cut(self, how):
        """The connection breaks there, or the program is killed: nothing is half done, and a rerun finishes."""
        points = self.points(contract())
        for point in points:
            with self.subTest(point=point):
                self.reset()
                r, seen = self.through(contract(), lambda s: how if s.number == point else None)
                self.sound(f"{point} {seen}\n{r}")
                told = self.gone(r).get("log", 0) + self.gone(self.sweep(contract())).get("log", 0)
                self.left("job", 3)
                self.left("log", 30)
                unknown = any(p.get("unknown") for p in r.json["policies"])
                went = self.number("select count(*) from trace")
                self.assertEqual(went, LOGS + 1)
                self.assertTrue(told == went or unknown or told >= went - BATCH, f"{told} of {went} {point} {seen}\n{r}")

    def test_the_connection_breaks(self):
        self.cut(CUT)

    def test_the_answer_is_lost(self):
        self.cut(STRAND)


@every_engine
class Killed(Ahead):
    def test_at_random_moments(self):
        rng = random.Random(int(os.environ.get("LAPSE_SEED") or random.SystemRandom().randrange(10**9)))
        path = contract_file(self.db, contract())

        def fill():
            self.reset()
            self.insert("log", *[(100 + i, 1, "x") for i in range(120)])
            self.given("insert into note select id * 10, id from log where id >= 100")
        fill()
        began = time.monotonic()
        self.sweep(contract())
        reach, hit = time.monotonic() - began, 0
        for kill in range(25):
            if self.ids("job") == [3]:
                fill()
            before = self.number("select count(*) from log")
            p = Lapse.start(None, path, "sweep", "--json", "--now", NOW)
            time.sleep(rng.uniform(0.1, 0.9) * reach)
            p.kill()
            p.wait(10, signals=(9,))
            self.sound(f"after kill {kill}")
            worked = self.number("select count(*) from log") != before
            hit += worked
            reach *= 1 if worked else 1.1       # the machine may be slower now than when the length was measured
        self.assertGreater(hit, 1)
        self.sweep(contract())
        self.left("job", 3)
        self.left("log", 30)
        self.sound("at the end")
