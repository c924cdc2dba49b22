"""What `plan` counts: at what cost, what it says where it could not, and rows that several policies would take."""
import unittest

from harness import *
from harness import on_mysql

EVENTS = "create table events (id integer primary key, state text not null, at_ms bigint not null)"
PARTS = "create table parts (id integer primary key, event_id bigint not null)"


@every_engine
class TogetherOnce(Case):
    """The total of all policies."""

    def setUp(self):
        super().setUp()
        self.given(f"{EVENTS}; {PARTS}")
        self.insert("events(id, state, at_ms)", *[(i, "done" if i <= 6 else "failed", MS - i * SECOND) for i in range(1, 11)])
        self.insert("parts(id, event_id)", *[(i, i % 10 + 1) for i in range(20)])

    def total(self, policies, code=0):
        r = self.plan(policies, code=code)
        return r.json["total"]

    def test_rows_that_two_policies_would_take_count_once(self):
        self.assertEqual(self.total("""
policies:
  old: {table: events, expires: at_ms}
  done: {table: events, rows: {state: done}, expires: at_ms}
  late: {table: events, age: at_ms, keep: 1m}
"""), {"rows": 10, "at_least": 10, "at_most": 10})

    def test_values_that_differ_keep_policies_apart(self):
        self.assertEqual(self.total("""
policies:
  done: {table: events, rows: {state: done}, expires: at_ms, with: [parts(event_id)]}
  failed: {table: events, rows: {state: failed}, expires: at_ms, with: [parts(event_id)]}
"""), {"rows": 30, "at_least": 30, "at_most": 30})

    def test_rows_that_go_along_twice_are_at_most_so_many(self):
        contract = """
policies:
  old: {table: events, expires: at_ms, with: [parts(event_id)]}
  done: {table: events, rows: {state: done}, expires: at_ms, with: [parts(event_id)]}
"""
        self.assertEqual(self.total(contract), {"rows": None, "at_least": 30, "at_most": 42})
        self.assertIn("at most 42 rows would go at", self.lapse(contract, "plan", "--now", NOW, code=0).out)

    def test_a_terminal_shows_which_one_is_being_counted(self):
        r = self.lapse("policies: {old: {table: events, expires: at_ms}}", "plan", "--now", NOW, tty=True)
        self.assertLess(r.screen.index(b"counting"), r.screen.index(b"10 rows would go"), r.screen)


@every_engine
class NotCounted(Case):
    """Counting takes as long as the condition: some 50 ms a row."""

    def setUp(self):
        super().setUp()
        self.given(EVENTS)
        self.insert("events(id, state, at_ms)", *[(i, "done", MS - i * SECOND) for i in range(1, 11)])
        self.slow = self.per_engine(
            sqlite="(with recursive c(i) as (select 1 union all select i + 1 from c where i < 300000 + this.id) "
                   "select count(*) from c) > 0",
            postgres="pg_sleep(0.05 + this.id * 0) is not null",
            mariadb="sleep(0.05 + this.id * 0) = 0")

    def contract(self, more=""):
        return f"""
policies:
  slow: {{table: events, where: "{self.slow}", age: at_ms, keep: now, timeouts: {{statement: 60ms}}{more}}}
  fast: {{table: events, rows: {{id: [1, 2]}}, age: at_ms, keep: now}}
"""

    def test_is_no_zero(self):
        r = self.plan(self.contract(), code=1)
        p = r.policy("slow")
        self.assertEqual((p["outcome"], p["rows"], p["kept"]["held"]), ("not_counted", None, None), r)
        self.assertTrue(1 <= p["rows_at_least"] <= 10, r)
        self.assertIn("timeouts: statement", p["error"])
        self.assertEqual(r.policy("fast")["rows"], 2)
        self.assertEqual((r.json["total"]["rows"], r.json["total"]["at_most"]), (None, None))
        self.assertGreaterEqual(r.json["total"]["at_least"], 2)

    def test_in_words_with_the_index_that_check_names(self):
        named = self.finding(self.check(self.contract()), "warning", "no index of", "at_ms", policy="slow")["fix"]
        r = self.lapse(self.contract(), "plan", "--now", NOW, code=1)
        self.assertRegex(r.out, r"slow +\S*events +- +not counted \(at least \d+\)")
        self.assertIn(named, r.out)
        self.assertRegex(r.out, r"at least \d+ rows would go at .*; 1 policy not counted")


@every_engine
class Waiting(Case):
    def test_more_become_free_where_rows_wait_for_others_that_go(self):
        self.given("create table runs (id integer primary key, after_id bigint, at_ms bigint not null)")
        self.insert("runs", (1, None, MS - 3), (2, 1, MS - 2), (3, 2, MS - 1))
        contract = "policies: {runs: {table: runs, expires: at_ms, after: [runs(after_id)]}}"
        p = self.plan(contract).policy("runs")
        self.assertEqual((p["rows"], p["kept"]["waiting"], p["more_become_free"]), (1, 2, True))
        self.assertIn("2 waiting, some of them for rows that go: more become free then",
                      self.lapse(contract, "plan", "--now", NOW, code=0).out)
        contract = "policies: {runs: {table: runs, expires: at_ms}}"
        self.assertFalse(self.plan(contract).policy("runs")["more_become_free"])


class Cost:
    """By what the server says it read."""
    ROWS = 3000

    def setUp(self):
        super().setUp()
        self.given(f"{EVENTS}; {PARTS}")
        self.insert("events(id, state, at_ms)", *[(i, "done", MS - i) for i in range(1, self.ROWS + 1)])
        self.insert("parts(id, event_id)", *[(i, i) for i in range(1, self.ROWS + 1)])
        self.given("create index events_at on events (at_ms, id); create index parts_event on parts (event_id)")
        self.settle()

    def test_each_row_is_read_once(self):
        before = self.read("events")
        r = self.plan("policies: {p: {table: events, expires: at_ms}}")
        self.assertEqual(r.policy("p")["rows"], self.ROWS)
        self.assertLess(self.read("events") - before, 1.5 * self.ROWS)

    def test_with_dependents_it_is_a_reading_of_each_table(self):
        before = self.read("events"), self.read("parts")
        r = self.plan("policies: {p: {table: events, expires: at_ms, with: [parts(event_id)]}}")
        self.assertEqual(counts(r.policy("p")["tables"]), {"events": self.ROWS, "parts": self.ROWS})
        self.assertLess(self.read("events") - before[0], 2.5 * self.ROWS)
        self.assertLess(self.read("parts") - before[1], 2.5 * self.ROWS)


class CostOnPostgres(Cost, Case, PostgresTest):
    def settle(self):
        self.db.script("vacuum analyze")

    def read(self, table):
        """Counters come when a session ends, or about a second later."""
        self.db.rows("select pg_stat_force_next_flush()")
        return self.db.rows(f"""select coalesce(sum(seq_tup_read), 0) + (select coalesce(sum(idx_tup_read), 0)
            from pg_stat_user_indexes where relname = '{table}') from pg_stat_user_tables where relname = '{table}'""")[0][0]


@unittest.skipIf(on_mysql(), "MySQL counts no rows by table")
class CostOnMariadb(Cost, Case, MariadbTest):
    def settle(self):
        self.db.rows("analyze table events, parts")
        self.db.execute("set global userstat = 1")

    def read(self, table):
        return self.db.rows("select coalesce(sum(rows_read), 0) from information_schema.table_statistics where "
                            "table_schema = database() and table_name = ?", (table,))[0][0]


if __name__ == "__main__":
    main()
