"""Which rows a policy may touch: rows, where and hold."""
from harness import *


@every_engine
class Rows(Case):
    def setUp(self):
        super().setUp()
        self.given("create table job (id integer primary key, name text, state text, code integer, at_ms bigint)")

    def only(self, rows, *left, gone):
        self.swept(f"policies: {{job: {{table: job, rows: {rows}, age: at_ms, keep: 1h}}}}",
                   gone={"job": gone} if gone else {})
        self.left("job", *left)

    def names(self, *names):
        self.insert("job(id, name, at_ms)", *[(n, name, 0) for n, name in enumerate(names, 1)])

    def test_a_value(self):
        self.names("a", "b", None, "A", "a ", "")
        self.only("{ name: a }", 2, 3, 4, 5, 6, gone=1)

    def test_a_list(self):
        self.names("a", "b", "c", None)
        self.only("{ name: [a, c] }", 2, 4, gone=2)

    def test_null(self):
        self.names("a", None, "null", "")
        self.only("{ name: null }", 1, 3, 4, gone=1)

    def test_null_in_a_list(self):
        self.names("a", None, "b")
        self.only("{ name: [a, null] }", 3, gone=2)

    def test_the_word_null_in_quotes(self):
        self.names("a", None, "null")
        self.only("{ name: 'null' }", 1, 2, gone=1)

    def test_a_prefix(self):
        self.names("meta:a", "meta:", "meta", "Meta:a", "xmeta:a", None)
        self.only('{ name: "meta:*" }', 3, 4, 5, 6, gone=2)

    def test_a_prefix_with_pattern_characters(self):
        self.names("50%_done", "50%_x", "50ab", "50%a", "500_a", "50\\%_a")
        self.only('{ name: "50%_*" }', 3, 4, 5, 6, gone=2)

    def test_a_prefix_with_a_bracket_and_a_question_mark(self):
        self.names("a?[b]c", "axb", "a?[b]", "a?[")
        self.only('{ name: "a?[b]*" }', 2, 4, gone=2)

    def test_a_star_alone_says_nothing_and_is_refused(self):
        self.names("a", "", None)
        with self.untouched():
            r = self.lapse('policies: {job: {table: job, rows: {name: "*"}, expires: at_ms}}', "sweep", code=2)
        self.assertIn("'*'", r.said)

    def test_an_escaped_star(self):
        self.names("a*", "ab", "a", "a\\*")
        self.only("{ name: 'a\\*' }", 2, 3, 4, gone=1)

    def test_a_star_in_the_middle(self):
        self.names("a*b", "axb", "a")
        self.only("{ name: 'a*b' }", 2, 3, gone=1)

    def test_values_and_prefixes_in_one_list(self):
        self.names("done", "fail:1", "fail", "run", None)
        self.only('{ name: [done, "fail:*", null] }', 3, 4, gone=3)

    def test_a_prefix_beyond_ascii(self):
        self.names("žluť", "žlutá", "zlu", "Žluť")
        self.only('{ name: "žlu*" }', 3, 4, gone=2)

    def test_quotes_in_a_value(self):
        self.names("it's", 'say "x"', "a;b--", "it''s")
        self.only("""{ name: ["it's", 'say "x"', "a;b--"] }""", 4, gone=3)

    def test_integers(self):
        self.insert("job(id, code, at_ms)", (1, 1, 0), (2, 2, 0), (3, -1, 0), (4, None, 0))
        self.only("{ code: [1, -1] }", 2, 4, gone=2)

    def test_integers_written_as_text(self):
        self.insert("job(id, code, at_ms)", (1, 1, 0), (2, 2, 0))
        self.only("{ code: '1' }", 2, gone=1)

    def test_digits_in_a_text_column(self):
        self.names("1", "01", "1.0", "2")
        self.only("{ name: 1 }", 2, 3, 4, gone=1)

    def test_leading_zeros_stay_in_a_text_column(self):
        self.names("7", "007", "true", "yes")
        self.only("{ name: [007, true] }", 1, 4, gone=2)

    def test_columns_are_anded(self):
        self.insert("job", (1, "a", "done", 1, 0), (2, "a", "run", 1, 0), (3, "b", "done", 1, 0), (4, "a", "done", 2, 0))
        self.only("{ name: a, state: [done, failed], code: 1 }", 2, 3, 4, gone=1)

    def test_a_million_years_do_not_help(self):
        self.names("a", "b")
        self.only("{ name: c }", 1, 2, gone=0)

    def test_booleans(self):
        self.given("create table flag (id integer primary key, done boolean, at_ms bigint)")
        self.insert("flag", (1, True, 0), (2, False, 0), (3, None, 0))
        self.swept("policies: {flag: {table: flag, rows: {done: true}, expires: at_ms}}", gone={"flag": 1})
        self.left("flag", 2, 3)
        self.swept("policies: {flag: {table: flag, rows: {done: [false, null]}, expires: at_ms}}", gone={"flag": 2})

    def test_long_lists(self):
        self.insert("job(id, code, at_ms)", *[(n, n, 0) for n in range(1, 1001)])
        self.only("{ code: [%s] }" % ", ".join(str(n) for n in range(2, 1000)), 1, 1000, gone=998)


class PostgresValues(Case, PostgresTest):
    """Values get the column's type."""

    def typed(self, kind, rows, values, gone):
        self.given(f"create table t (id integer primary key, v {kind}, at_ms bigint)")
        self.insert("t", *[(n, v, 0) for n, v in enumerate(values, 1)])
        self.swept(f"policies: {{t: {{table: t, rows: {{v: {rows}}}, expires: at_ms}}}}", gone={"t": gone})

    def test_enum(self):
        self.given("create type state as enum ('completed', 'failed', 'running')")
        self.typed("state", "[completed, failed]", ["completed", "failed", "running", None], 2)
        self.left("t", 3, 4)

    def test_enum_in_another_schema_with_odd_names(self):
        self.given("""create schema "Odd One"; create type "Odd One"."St ate" as enum ('A b', 'c')""")
        self.typed('"Odd One"."St ate"', "['A b']", ["A b", "c"], 1)

    def test_enum_prefix(self):
        self.given("create type state as enum ('done', 'done_late', 'running')")
        self.typed("state", '"done*"', ["done", "done_late", "running", None], 2)

    def test_uuid(self):
        self.typed("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
                   ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"], 1)

    def test_numeric(self):
        self.typed("numeric", "[1.50, 2]", ["1.5", "2.0", "3"], 2)

    def test_bigint_beyond_doubles(self):
        self.typed("bigint", "9007199254740993", [9007199254740993, 9007199254740992], 1)

    def test_char(self):
        self.typed("char(5)", "ab", ["ab", "abc"], 1)

    def test_varchar(self):
        self.typed("varchar(20)", "[done, failed]", ["done", "failed", "run"], 2)

    def test_double(self):
        self.typed("double precision", "[0.5, 2]", [0.5, 2, 3], 2)

    def test_boolean_text_forms(self):
        self.typed("boolean", "[true]", [True, False], 1)

    def test_inet(self):
        self.typed("inet", "10.0.0.1", ["10.0.0.1", "10.0.0.2"], 1)

    def test_a_value_the_type_cannot_hold(self):
        self.given("create table t (id integer primary key, v integer, at_ms bigint)")
        self.insert("t", (1, 1, 0))
        with self.untouched():
            r = self.sweep("policies: {t: {table: t, rows: {v: [1, x]}, expires: at_ms}}", code=3)
        self.assertEqual(r.policy("t")["outcome"], "refused")


@every_engine
class Where(Case):
    """A further condition on the row, structured: the same on every engine."""

    def setUp(self):
        super().setUp()
        self.given(f"""create table orders (id integer primary key, status text{self.exact}, attempts integer,
                                            error text{self.exact}, created_ms bigint, at_ms bigint)""")

    def fill(self):
        self.insert("orders", (1, "paid", 0, None, MS - 25 * HOUR, 0), (2, "paid", 3, "x", MS - 24 * HOUR, 0),
                    (3, "open", 5, None, MS - HOUR, 0), (4, None, None, "Boom", None, 0),
                    (5, "Paid", 9, "b%", MS + HOUR, 0))

    def where(self, condition, *gone):
        self.fill()
        self.swept(f"policies: {{orders: {{table: orders, expires: at_ms, where: {condition}}}}}",
                   gone={"orders": len(gone)} if gone else {})
        self.left("orders", *({1, 2, 3, 4, 5} - set(gone)))

    def test_bare_value(self):
        self.where("{ status: paid }", 1, 2)

    def test_bare_list(self):
        self.where("{ status: [paid, open] }", 1, 2, 3)

    def test_bare_null(self):
        self.where("{ status: null }", 4)

    def test_eq(self):
        self.where("{ attempts: { eq: 3 } }", 2)

    def test_eq_list(self):
        self.where("{ attempts: { eq: [3, 5, null] } }", 2, 3, 4)

    def test_not(self):
        self.where("{ status: { not: paid } }", 3, 5)       # unknown for NULL

    def test_not_null(self):
        self.where("{ error: { not: null } }", 2, 4, 5)

    def test_not_list(self):
        self.where("{ status: { not: [paid, Paid] } }", 3)

    def test_not_list_with_null(self):
        self.where("{ status: { not: [paid, null] } }", 3, 5)

    def test_lt(self):
        self.where("{ attempts: { lt: 3 } }", 1)

    def test_lte(self):
        self.where("{ attempts: { lte: 3 } }", 1, 2)

    def test_gt(self):
        self.where("{ attempts: { gt: 3 } }", 3, 5)

    def test_gte(self):
        self.where("{ attempts: { gte: 3 } }", 2, 3, 5)

    def test_a_range(self):
        self.where("{ attempts: { gte: 3, lt: 9 } }", 2, 3)

    def test_like(self):
        self.where('{ status: { like: "p%" } }', 1, 2)      # case counts

    def test_like_underscore(self):
        self.where('{ error: { like: "B__m" } }', 4)

    def test_like_escape(self):
        self.where(r"{ error: { like: 'b\%' } }", 5)

    def test_older_than(self):
        self.where("{ created_ms: { older_than: 24h } }", 1)    # strictly; NULL is unknown

    def test_newer_than(self):
        self.where("{ created_ms: { newer_than: 24h } }", 3, 5)

    def test_entries_are_anded(self):
        self.where("{ status: paid, attempts: { gte: 3 }, error: { not: null }, created_ms: { older_than: 23h } }", 2)

    def test_any(self):
        self.where("{ any: [ { status: open }, { attempts: { lt: 1 } } ] }", 1, 3)

    def test_any_beside_others(self):
        self.where("{ status: paid, any: [ { attempts: 3 }, { error: { like: 'x%' } } ] }", 2)

    def test_any_with_unknown(self):
        self.where("{ any: [ { status: nothing }, { error: Boom } ] }", 4)

    def test_nested_any(self):
        self.where("{ any: [ { status: paid, any: [ { attempts: 0 }, { attempts: 7 } ] }, { status: open } ] }", 1, 3)

    def test_with_rows(self):
        self.fill()
        self.swept("""
            policies:
              orders: { table: orders, expires: at_ms, rows: { status: [paid, open] }, where: { attempts: { gt: 0 } } }
            """, gone={"orders": 2})
        self.left("orders", 1, 4, 5)

    def test_text_compares(self):
        self.where('{ error: { gte: "b" } }', 2, 5)


@every_engine
class WhereTimes(Case):
    def test_older_than_on_text(self):
        self.given("create table t (id integer primary key, seen text, at_ms bigint)")
        self.insert("t", (1, "2024-06-15T12:59:59+02:00", 0), (2, "2024-06-15 11:00:00", 0), (3, "rubbish", 0),
                    (4, None, 0))
        self.swept("policies: {t: {table: t, expires: at_ms, where: {seen: {older_than: 1h}}}}", gone={"t": 1})
        self.left("t", 2, 3, 4)

    def test_newer_than_in_hold_keeps(self):
        self.given("create table t (id integer primary key, seen_s integer, at_ms bigint)")
        self.insert("t", (1, S - 3601, 0), (2, S - 3600, 0), (3, S - 3599, 0), (4, None, 0))
        self.swept("policies: {t: {table: t, expires: at_ms, hold: {seen_s: {newer_than: 1h}}}}", gone={"t": 3},
                   kept={"held": 1})
        self.left("t", 3)

    def test_the_zone_of_the_policy(self):
        self.given("create table t (id integer primary key, seen text, at_ms bigint)")
        self.insert("t", (1, "2024-06-15 12:59:59", 0), (2, "2024-06-15 13:00:00", 0))
        self.swept("policies: {t: {table: t, expires: at_ms, zone: Europe/Prague, where: {seen: {older_than: 1h}}}}",
                   gone={"t": 1})
        self.left("t", 2)


@every_engine
class Hold(Case):
    def setUp(self):
        super().setUp()
        self.given("create table doc (id integer primary key, owner text, legal boolean, at_ms bigint)")
        self.insert("doc", (1, "a", True, 0), (2, "a", False, 0), (3, None, None, 0), (4, "b", True, MS + 1))

    def test_held_rows_stay(self):
        self.swept("policies: {doc: {table: doc, expires: at_ms, hold: {legal: true}}}", gone={"doc": 2},
                   kept={"held": 1})
        self.left("doc", 1, 4)

    def test_unknown_does_not_hold(self):
        self.swept("policies: {doc: {table: doc, expires: at_ms, hold: {owner: {not: b}}}}", gone={"doc": 1},
                   kept={"held": 2})
        self.left("doc", 1, 2, 4)

    def test_sql(self):
        self.swept("""policies: {doc: {table: doc, expires: at_ms, hold: "this.owner = 'a' and this.id < 2"}}""",
                   gone={"doc": 2}, kept={"held": 1})
        self.left("doc", 1, 4)

    def test_sql_with_a_subquery(self):
        self.given("create table legal_hold (doc integer primary key)")
        self.insert("legal_hold", 2)
        self.swept("""
            policies:
              doc: { table: doc, expires: at_ms, hold: "exists (select 1 from legal_hold h where h.doc = this.id)" }
            unbounded: { legal_hold: by hand }
            """, gone={"doc": 2}, kept={"held": 1})
        self.left("doc", 2, 4)

    def test_where_and_hold(self):
        self.swept("policies: {doc: {table: doc, expires: at_ms, where: {owner: a}, hold: {legal: true}}}",
                   gone={"doc": 1})
        self.left("doc", 1, 3, 4)


@every_engine
class Sql(Case):
    """Conditions in the engine's SQL."""

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, name text, n integer, seen %s, at_ms bigint)"
                   % self.per_engine(postgres="timestamptz", sqlite="text", mariadb="datetime"))
        self.insert("t", (1, "a", 1, "2024-06-15 10:00:00", 0), (2, "b", 2, "2024-06-15 11:30:00", 0),
                    (3, None, 3, None, 0), (4, "it's; this.n", 4, "2024-06-15 10:00:00", 0))

    def where(self, sql, *gone):
        import json
        self.swept(f"policies: {{t: {{table: t, expires: at_ms, where: {json.dumps(sql)}}}}}",
                   gone={"t": len(gone)} if gone else {})
        self.left("t", *({1, 2, 3, 4} - set(gone)))

    def test_this(self):
        self.where("this.n % 2 = 0", 2, 4)

    def test_this_in_a_string_is_text(self):
        self.where("this.name = 'it''s; this.n'", 4)

    def test_or_stays_inside(self):
        self.where("this.n = 1 or this.n = 2", 1, 2)

    def test_now(self):
        self.where(self.per_engine(postgres="this.seen < :now - interval '1 hour'",
                                   sqlite="this.seen < datetime(:now, '-1 hour')",
                                   mariadb="this.seen < :now - interval 1 hour"), 1, 4)

    def test_unknown_is_not_true(self):
        self.where("this.name <> 'a'", 2, 4)

    def test_a_subquery_over_the_same_table(self):
        self.where("this.n < (select max(n) from t)", 1, 2, 3)

    def test_a_correlated_subquery(self):
        self.where("exists (select 1 from t o where o.n = this.n + 3)", 1)

    def test_comments(self):
        self.where("this.n = 1 /* one; ) */ -- the rest )", 1)

    def test_a_colon_that_is_no_parameter(self):
        self.where("this.name = ':now'", *())

    def test_case_and_newlines(self):
        self.where("case when this.n > 2\n then 1 else 0 end = 1", 3, 4)

    def test_this_in_capitals_and_quotes(self):
        self.where('THIS.n = 1 or `this`.n = 2' if self.on_mariadb else 'THIS.n = 1 or "this".n = 2', 1, 2)

    def test_question_marks_and_percents(self):
        self.where("this.name like '%n' or this.name = '?'", 4)


class PostgresSql(Case, PostgresTest):
    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, v jsonb, at timestamptz)")
        self.insert("t", (1, '{"done": true}', "2020-01-01Z"), (2, '{"done": false}', "2020-01-01Z"),
                    (3, "{}", "2020-01-01Z"))

    def where(self, sql, *gone):
        import json
        self.swept(f"policies: {{t: {{table: t, age: at, keep: 1h, where: {json.dumps(sql)}}}}}",
                   gone={"t": len(gone)})
        self.left("t", *({1, 2, 3} - set(gone)))

    def test_a_cast(self):
        self.where("(this.v->>'done')::boolean", 1)

    def test_the_question_mark_operator(self):
        self.where("this.v ? 'done'", 1, 2)

    def test_dollar_quotes(self):
        self.where("this.v = $q$ {\"done\": true}$q$::jsonb and $$;)$$ <> ''", 1)

    def test_escape_strings(self):
        self.where(r"E'\')' <> '' and this.id = 1", 1)

    def test_now_is_a_timestamptz(self):
        self.where("this.at + interval '1 year' < :now and pg_typeof(:now)::text = 'timestamp with time zone'", 1, 2, 3)

    def test_array_slices_are_no_parameters(self):
        self.where("(array[1,2,3])[1:2] = array[1,2] and this.id = 2", 2)
