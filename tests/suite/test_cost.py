"""Cost grows with what is deleted, not with the table, given the index that check names."""
import re

from harness import *

KINDS = {                   # kind of column -> (its DDL, a value that is not due, the n-th due value on PostgreSQL)
    "seconds": ("at_s bigint", S + 10**6, f"{S - 10**6} + n"),
    "milliseconds": ("at_ms bigint", MS + 10**9, f"{MS - 10**9} + n"),
    "text": ("at_text text", "2025-01-01 00:00:00",
             """to_char('2024-01-01'::timestamp + n * interval '1s', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""),
    "timestamptz": ("at_tz timestamptz", "2025-01-01T00:00:00Z", "'2024-01-01Z'::timestamptz + n * interval '1s'"),
    "timestamp": ("at_local timestamp", "2025-01-01T00:00:00", "'2024-01-01'::timestamp + n * interval '1s'"),
}


class SqliteCost(Case, SqliteTest):
    def search(self, kind, bound, ddl=""):
        column = KINDS[kind][0].split()[0]
        self.given(f"drop table if exists t; create table t (id integer primary key, state text, {KINDS[kind][0]}); "
                   + (ddl or f"create index t_at on t({column})"))
        self.insert(f"t(id, {column})", *[(n, KINDS[kind][1]) for n in range(100)])
        self.given("analyze")
        self.db.connection.create_function("lapse_instant", -1, lambda *_: None, deterministic=True)
        sql = "\n".join(self.plan(f"policies: {{t: {{table: t, {bound.format(column)}}}}}", "--sql").policy("t")["sql"])
        pick = re.search(r"select.*?;", re.sub(r"--.*", "", sql), re.I | re.S).group(0).rstrip(";")
        names = len(set(re.findall(r"\?\d+", pick)))
        steps = [r[3] for r in self.db.rows("explain query plan " + pick, (0,) * names)]
        self.assertTrue(any("SEARCH" in s and "USING" in s and "t_at" in s for s in steps), f"{steps}\n{pick}")
        self.assertFalse(any("TEMP B-TREE" in s for s in steps), f"it sorts: {steps}\n{pick}")

    def test_expires(self):
        for kind in ("seconds", "milliseconds", "text"):
            with self.subTest(kind):
                self.search(kind, "expires: {}")

    def test_age(self):
        for kind in ("seconds", "milliseconds", "text"):
            with self.subTest(kind):
                self.search(kind, "age: {}, keep: 1h")

    def test_with_a_state(self):
        self.search("milliseconds", "rows: {{state: done}}, age: {}, keep: 1h", "create index t_at on t(state, at_ms)")


class PostgresCost(Case, PostgresTest):
    ROWS = 20000

    def cost(self, kind, due, bound="expires: {}", batch=1000):
        """Rows that a sweep looks at in a table of ROWS rows that are not due and some that are."""
        column = KINDS[kind][0].split()[0]
        self.given(f"create table t (id integer primary key, {KINDS[kind][0]}); create index t_at on t({column})")
        self.db.execute(f"insert into t select n, ? from generate_series(1, {self.ROWS}) n", (KINDS[kind][1],))
        self.db.execute(f"insert into t select 100000 + n, {KINDS[kind][2]} from generate_series(1, {due}) n")
        self.db.execute("analyze t")
        before = self.looked()
        r = self.sweep(f"policies: {{t: {{table: t, batch: {batch}, {bound.format(column)}}}}}")
        self.assertEqual(r.policy("t")["rows"], due, r)
        return self.looked() - before

    def looked(self):
        # a session's numbers are seen once it has ended
        import time
        last = -1
        while True:
            time.sleep(0.1)
            now = self.db.rows("select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables"
                               " where relname = 't'")[0][0]
            if now == last:
                return now
            last = now

    def test_a_few_due_rows_in_a_large_table(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.given("drop table if exists t")
                self.assertLess(self.cost(kind, 10), 3000)

    def test_age(self):
        self.assertLess(self.cost("timestamptz", 10, "age: {}, keep: 1h"), 3000)

    def test_the_last_batch_costs_what_the_first_did(self):
        for kind in ("milliseconds", "timestamptz", "text"):
            with self.subTest(kind):
                self.given("drop table if exists t")
                due = 4000
                self.assertLess(self.cost(kind, due, batch=50), 4 * due + 3000)

    def test_many_rows_of_one_instant(self):
        # with the index that check names
        self.given("create table t (id integer primary key, at_ms bigint)")
        found = self.check("policies: {t: {table: t, expires: at_ms}}")
        index = re.search(r"\((.*)\)", self.finding(found, "warning", "create index")["fix"]).group(1)
        self.given(f"create index t_at on t({index}); insert into t select n, {MS - 1} from generate_series(1, 4000) n")
        self.db.execute("analyze t")
        before = self.looked()
        self.sweep("policies: {t: {table: t, expires: at_ms, batch: 50}}")
        self.assertLess(self.looked() - before, 4 * 4000 + 3000)
