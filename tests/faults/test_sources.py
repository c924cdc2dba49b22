"""A source comes back, changes or goes between any two statements of a sweep of orphans (PostgreSQL, through a proxy).

Each case is run once for every statement from the reading that finds the rows to the end of the first batch and one
beyond. What was committed before the second judgement counts; a source row that is there is as it was judged until
COMMIT; and a source that empties makes no orphans."""
from harness import *
from proxy import *

SCHEMA = """
    create table doc (id integer primary key, state text);
    create table task (id integer primary key, doc_id integer)"""
RESET = """
    truncate doc, task;
    insert into doc values (1, 'open'), (2, 'shut'), (5, 'open');
    insert into task values (1, 1), (2, 2), (3, 3), (4, 9), (5, 5)"""


def contract(orphan="", batch=100):
    return f"policies: {{p: {{table: task, orphan: {{of: doc(id), by: doc_id{orphan}}}, keep: now, batch: {batch}, " \
           "timeouts: {lock: 100ms}}}"


UNMATCHED = ", matching: {state: open}, delete_when: deleted_or_unmatched"


def finds(statement):
    return statement.sql.startswith("SELECT this") and "EXISTS" in statement.sql and "LIMIT" in statement.sql


def judges(statement):
    return statement.sql.startswith("SELECT this") and "EXISTS" in statement.sql and "LIMIT" not in statement.sql


def locks_source(statement):
    return "FOR SHARE" in statement.sql or "IN SHARE MODE" in statement.sql


@every_server
class Sources(Case):
    def setUp(self):
        super().setUp()
        self.given(SCHEMA)

    def through(self, contract, before, code=0):
        with Proxy(self.db, before, looks=False) as proxy:
            r = lapse(proxy.dsn, contract, "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, code, f"{r}\n{proxy.seen}")
        return r, proxy.seen

    def each(self, contract, act, check, early=(), code=0):
        """check(other, r, point, seen): point is the number of the statement before which the other session acted."""
        self.given(RESET)
        _, seen = self.through(contract, None)
        first = next(s.number for s in seen if finds(s))
        last = next(s.number for s in seen if s.number > first and s.sql.startswith("COMMIT"))
        self.assertGreater(last - first, 4, seen)
        for point in range(first, last + 2):
            with self.subTest(point=point):
                self.given(RESET)
                with Session(self.db) as other:
                    other.do(*early)
                    where = []

                    def come_in(statement):
                        if statement.number == point:
                            other.do(*act)
                            where.append(statement)

                    r, seen = self.through(contract, come_in, code)
                    other.finish()
                    self.assertTrue(where, "the point was never reached")
                    self.assertIsNone(other.error, where)
                    check(other, r, point, seen)
                    self.assertTrue({1, 5} <= set(self.ids("task")), f"rows with a source that matches {where}\n{seen}")
                    self.assertEqual(r.policy("p")["rows"], 5 - len(self.ids("task")), r)

    def there(self, task):
        return task in self.ids("task")

    def saved_if_before(self, task, is_last_chance):
        """The other session saved the row if it came in before (or at) this statement, and not after it."""
        def check(other, r, point, seen):
            chance = max(s.number for s in seen if is_last_chance(s))
            self.assertEqual(self.there(task), point <= chance, f"at {point}, {chance}\n{seen}\n{r}")
            self.assertFalse(self.there(4), r)
        return check

    # --- the source comes back ------------------------------------------------------------------------------

    BACK = ("insert into doc values (3, 'open')",)

    def test_the_source_is_inserted(self):
        self.each(contract(), self.BACK, self.saved_if_before(3, judges))

    def test_the_source_is_inserted_in_one_batch(self):
        self.each(contract(batch="null"), self.BACK, self.saved_if_before(3, judges))

    def test_the_source_is_inserted_and_matches(self):
        self.each(contract(UNMATCHED), self.BACK, self.saved_if_before(3, judges))

    def test_the_reference_moves_to_another_source(self):
        def check(other, r, point, seen):
            self.assertEqual(self.there(3), other.rows == 1, f"at {point}\n{seen}\n{r}")
            self.assertFalse(self.there(4), r)
        self.each(contract(UNMATCHED), ("update task set doc_id = 1 where id = 3",), check)

    # --- it matches again -------------------------------------------------------------------------------------

    MATCH = ("update doc set state = 'open' where id = 2",)

    def test_the_source_matches_again(self):
        # from its lock on the update waits, until the row is gone
        self.each(contract(UNMATCHED), self.MATCH, self.saved_if_before(2, locks_source))

    def test_the_source_matches_again_in_one_batch(self):
        self.each(contract(UNMATCHED, batch="null"), self.MATCH, self.saved_if_before(2, locks_source))

    def test_an_update_under_way_is_waited_for(self):
        def check(other, r, point, seen):
            self.assertTrue(self.there(2), f"an update that was under way did not count, at {point}\n{seen}\n{r}")
            self.assertFalse(self.there(4), r)
        for batch in 100, "null":
            self.each(contract(UNMATCHED, batch), ("commit",), check, early=("begin", *self.MATCH))

    def test_an_update_that_changes_its_mind(self):
        def check(other, r, point, seen):
            p = r.policy("p")
            if self.there(2):
                self.assertTrue(p["left"] or p["skipped"], f"a row that is due stays unsaid, at {point}\n{seen}\n{r}")
            self.assertFalse(self.there(4), r)
        self.each(contract(UNMATCHED), ("rollback",), check, early=("begin", *self.MATCH))

    def test_a_deletion_under_way(self):
        def check(other, r, point, seen):
            self.assertFalse(self.there(4), r)
            self.assertFalse(self.there(2), f"the source went, the row stays, at {point}\n{seen}\n{r}")
        self.each(contract(UNMATCHED), ("commit",), check, early=("begin", "delete from doc where id = 2"))

    # --- it empties ---------------------------------------------------------------------------------------------

    def test_the_source_empties(self):
        def check(other, r, point, seen):
            self.assertEqual(r.policy("p")["outcome"], "failed", r)
            self.assertIn("became empty", r.policy("p")["error"])
            judged = [s.number for s in seen if judges(s) and s.number < point]
            if not judged:
                self.left("task", 1, 2, 3, 4, 5)
        self.each(contract(batch=1), ("delete from doc",), check, code=1)
        self.each(contract(batch="null"), ("delete from doc",), check, code=1)
