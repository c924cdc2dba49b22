"""Another session changes who is newest, between any two statements of a sweep (PostgreSQL, through a proxy that stops
there). What it committed before the second judgement counts; what comes later comes too late; rows that it saved by
themselves survive, wherever it came in."""
from harness import *
from proxy import *

NEWEST = "newest: [at]"
PER = f"{{rows: 3, per: [g], {NEWEST}}}"
ALL = f"{{rows: 3, {NEWEST}}}"

# x has two rows beyond the newest three, y none
RESET = """
    truncate t, o;
    insert into t select i, 'x', i from generate_series(1, 5) i;
    insert into o select i, i from generate_series(1, 5) i"""
RESET_Y = RESET + "; insert into t select i, 'y', i from generate_series(11, 13) i; insert into o select i, i from generate_series(11, 13) i"


def contract(cap, more=""):
    return f"policies: {{t: {{table: t, cap: {cap}, with: [o(t_id)]{more}}}}}"


@every_server
class Ranks(Case):
    def setUp(self):
        super().setUp()
        self.given("""create table t (id integer primary key, g text, at bigint not null);
                      create table o (id integer primary key, t_id integer not null references t(id) on update cascade);
                      create index on t(g, at); create index on t(at); create index on o(t_id)""")

    def through(self, contract, before):
        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn, contract, "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 0, f"{r}\n{proxy.seen}")
        return r, proxy.seen

    def each(self, cap, act, check, early=(), reset=RESET, more=""):
        """Once for every statement from the reading that finds the rows to the first COMMIT.
        check(other, there, counts, where): counts says that it came before the second judgement."""
        c = contract(cap, more)
        self.given(reset)
        _, seen = self.through(c, None)
        picked = next(s.number for s in seen if "FOR UPDATE" in s.sql)
        scout = max(s.number for s in seen if s.number < picked and "\nLIMIT" in s.sql)
        commit = next(s.number for s in seen if s.number > picked and s.sql.startswith("COMMIT"))
        self.assertTrue(scout < picked < commit, seen)
        for point in range(scout, commit + 1):
            with self.subTest(point=point):
                self.given(reset)
                with Session(self.db) as other:
                    other.do(*early)
                    r, seen = self.through(c, lambda s: other.do(*act) and None if s.number == point else None)
                    other.finish()
                    where = f"before statement {point}\n{seen}\n{r}"
                    self.assertIsNone(other.error, where)
                    there = self.ids("t")
                    self.assertEqual(self.ids("o", "t_id"), [i for i in there if i < 90], f"rows and what they own {where}")
                    self.assertEqual(r.policy("t")["skipped"], [], where)
                    check(other, there, point <= picked + 1, where)

    def both(self, act, check, **how):
        for cap in (PER, ALL):
            with self.subTest(cap=cap):
                self.each(cap, act, check, **how)

    def test_the_newest_is_deleted(self):
        def check(other, there, counts, where):
            self.assertEqual(there, [2, 3, 4] if counts else [3, 4], where)
        act = ("delete from o where t_id = 5", "delete from t where id = 5")
        self.both(act, check)
        self.both(("commit",), check, early=("begin", *act))

    def test_the_newest_is_deleted_in_one_batch(self):
        def check(other, there, counts, where):
            self.assertEqual(there, [2, 3, 4] if counts else [3, 4], where)
        self.each(PER, ("delete from o where t_id = 5", "delete from t where id = 5"), check, more=", batch: null")

    def test_the_newest_moves_to_another_group(self):
        def check(other, there, counts, where):
            self.assertEqual([i for i in there if i < 5], [2, 3, 4] if counts else [3, 4], where)
            self.assertEqual([i for i in there if i > 10], [11, 12, 13], where)    # 5 is the oldest there: now or later
        self.each(PER, ("update t set g = 'y' where id = 5",), check, reset=RESET_Y)
        self.each(PER, ("update t set g = null where id = 5",), check, reset=RESET_Y)

    def test_a_newer_one_is_added(self):
        def check(other, there, counts, where):
            self.assertIn(there, ([4, 5, 99], [3, 4, 5, 99]), where)
        self.both(("insert into t values (99, 'x', 99)",), check)
        self.both(("commit",), check, early=("begin", "insert into t values (99, 'x', 99)"))

    def test_an_older_one_is_added(self):
        def check(other, there, counts, where):
            self.assertIn(there, ([3, 4, 5], [3, 4, 5, 99]), where)
        self.both(("insert into t values (99, 'x', 0)",), check)

    def test_a_doomed_row_moves_to_another_group(self):
        def check(other, there, counts, where):
            self.assertEqual(1 in there, other.rows == 1, f"moved: {other.rows} {where}")
            self.assertEqual([i for i in there if i > 1], [3, 4, 5], where)
        self.each(PER, ("update t set g = 'z' where id = 1",), check)
        self.each(PER, ("update t set g = null where id = 1",), check)

    def test_a_doomed_row_moved_by_an_open_transaction(self):
        def check(other, there, counts, where):
            self.assertEqual(there, [1, 3, 4, 5], where)
        self.each(PER, ("commit",), check, early=("begin", "update t set g = 'z' where id = 1"))

    def test_a_doomed_row_becomes_the_newest(self):
        def check(other, there, counts, where):
            self.assertEqual(1 in there, other.rows == 1, f"renewed: {other.rows} {where}")
            self.assertTrue({4, 5} <= set(there) and 2 not in there, where)
        self.both(("update t set at = 99 where id = 1",), check)

    def test_a_group_comes_up_meanwhile(self):
        """A row moves into a group whose rows were not looked at: nobody is judged by a group seen in part."""
        def check(other, there, counts, where):
            self.assertEqual([i for i in there if i > 10], [11, 12, 13], where)
            self.assertEqual(1 in there, False, where)
        self.each(PER, ("update t set g = 'y' where id = 1",), check, reset=RESET_Y)
