"""What `lapse check` finds, each with where, what and what to do."""
import re

from harness import *


class Checks(Case):
    def findings(self, contract, *options, code=None):
        r = self.check(contract, *options, code=code)
        for f in r.json["findings"]:
            self.assertIn(f["level"], ("error", "warning", "note"))
            self.assertTrue(f["what"])
            self.assertRegex(f["at"], r"lapse\.yaml(:\d+:\d+)?$")
        for level in ("error", "warning", "note"):
            self.assertEqual(r.json[level + "s"], sum(f["level"] == level for f in r.json["findings"]))
        self.assertEqual(r.code, 3 if r.json["errors"] else 0, r)
        self.assertEqual(r.json["exit"], r.code)
        return r

    def error(self, contract, *words, policy="t", sweeps=True):
        """check has this error, plan and sweep refuse the policy, nothing is deleted."""
        r = self.findings(contract)
        f = self.finding(r, "error", *words, policy=policy)
        self.assertRegex(f["at"], r":\d+:\d+$", f"an error says where: {f}")
        if sweeps:
            with self.untouched():
                s = self.sweep(contract, code=3)
            self.assertEqual(s.policy(policy)["outcome"], "refused")
            self.assertTrue(s.policy(policy)["error"])
            self.assertEqual(self.plan(contract, code=3).policy(policy)["outcome"], "refused")
        return f

    def warned(self, contract, *words):
        """A warning or an error."""
        r = self.findings(contract)
        for level in ("warning", "error"):
            for f in r.json["findings"]:
                text = f"{f['what']} {f.get('fix') or ''}".lower()
                if f["level"] == level and all(w.lower() in text for w in words):
                    return f
        self.fail(f"no warning or error with {words} in\n{r}")


@every_engine
class Clean(Checks):
    def test_nothing_to_say(self):
        self.given("""
            create table t (id integer primary key, state text, at_ms bigint not null);
            create table c (id integer primary key, t_id integer references t(id));
            create index t_at on t(at_ms); create index c_t on c(t_id)""")
        self.insert("t", (1, "done", MS), (2, "open", MS))
        r = self.findings("policies: {t: {table: t, rows: {state: [done]}, expires: at_ms, with: [c(t_id)]}}")
        self.assertEqual((r.code, r.json["errors"], r.json["warnings"]), (0, 0, 0), r)

    def test_as_text(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        r = self.lapse("policies: {t: {table: t, expires: at_msx}}", "check", code=3)
        self.assertRegex(r.said, r"lapse\.yaml:2:\d+")
        self.assertIn("at_msx", r.said)
        self.assertIn("error", r.said.lower())

    def test_errors_come_first_and_in_the_order_of_the_file(self):
        self.given("create table t (id integer primary key, at_ms bigint); create table u (id integer primary key, at_ms bigint)")
        r = self.findings("""
            policies:
              a: { table: t, expires: at_ms }
              b: { table: nope, expires: at_ms }
              c: { table: u, expires: wrong }
            """)
        levels = [f["level"] for f in r.json["findings"]]
        order = ["error", "warning", "note"]
        self.assertEqual(levels, sorted(levels, key=order.index))
        self.assertEqual([f["policy"] for f in r.json["findings"] if f["level"] == "error"], ["b", "c"])

    def test_it_writes_nothing(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, 0))
        with self.untouched():
            self.findings("policies: {t: {table: t, expires: at_ms}}")

    def test_a_disabled_policy(self):
        self.findings("policies: {t: {table: nope, expires: at_ms, enabled: false}}")

    def test_where_is_the_line_of_the_key(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        r = self.findings("# one\npolicies:\n  t:\n    table: t\n    expires: wrong_ms\n")
        self.assertIn("lapse.yaml:6:", self.finding(r, "error", "wrong_ms")["at"])


@every_engine
class TablesAndColumns(Checks):
    def setUp(self):
        super().setUp()
        self.given("create table jobs (id integer primary key, state text, n integer, at_ms bigint, other_id integer)")
        self.insert("jobs", (1, "a", 1, 0, None))

    def test_no_such_table(self):
        f = self.error("policies: {t: {table: jbos, expires: at_ms}}", "jbos")
        self.assertIn("jobs", f["what"] + f["fix"], "did you mean")

    def test_no_such_column(self):
        for contract in ("expires: at_mz", "age: [at_ms, at_mz], keep: 1h", "expires: at_ms, rows: {at_mz: x}",
                         "expires: at_ms, where: {at_mz: x}", "expires: at_ms, hold: {any: [{at_mz: x}]}",
                         "age: at_ms, keep: {by: at_mz, values: {x: 1h}}", "age: at_ms, keep: {column: at_mz, unit: s}"):
            with self.subTest(contract):
                self.error(f"policies: {{t: {{table: jobs, {contract}}}}}", "at_mz")

    def test_a_reference_to_what_is_not_there(self):
        self.given("create table c (id integer primary key, job_id integer)")
        for contract in ("with: [nope(job_id)]", "with: [c(nope)]", "detach: [nope(job_id)]", "detach: [c(nope)]",
                         "after: [nope(job_id)]", "after: [c(nope)]", "with: [c(job_id) -> (nope)]",
                         "with: [{ref: c(job_id), where: {nope: 1}}]", "with: [{ref: c(job_id), with: [nope(id)]}]",
                         "after: [{ref: c(job_id), where: {nope: 1}}]"):
            with self.subTest(contract):
                self.error(f"policies: {{t: {{table: jobs, expires: at_ms, {contract}}}}}", "nope")

    def test_a_reference_of_the_wrong_length(self):
        self.given("create table c (id integer primary key, a integer, b integer)")
        self.error('policies: {t: {table: jobs, expires: at_ms, with: ["c(a, b)"]}}', "c")

    def test_a_reference_with_types_that_do_not_compare(self):
        self.given("create table c (id integer primary key, job text)")
        r = self.findings("policies: {t: {table: jobs, expires: at_ms, with: [c(job)]}}")
        if self.on_postgres:
            self.finding(r, "error", "job")

    def test_a_target_that_is_not_unique(self):
        self.given("create table c (id integer primary key, n integer)")
        self.warned("policies: {t: {table: jobs, expires: at_ms, with: [c(n) -> (n)]}}", "unique")

    def test_a_view(self):
        self.given("create view v as select * from jobs")
        with self.untouched():
            self.error("policies: {t: {table: v, expires: at_ms}}", "view")

    def test_a_view_as_a_dependent(self):
        self.given("create table c (id integer primary key, job_id integer); create view v as select * from c")
        self.error("policies: {t: {table: jobs, expires: at_ms, with: [v(job_id)]}}", "view")

    def test_no_key(self):
        self.given("create table bare (a integer, at_ms bigint)")
        self.insert("bare", (1, 0))
        self.error("policies: {t: {table: bare, expires: at_ms}}", "bare", "key")

    def test_a_unique_key_that_admits_null_is_no_key(self):
        self.given("create table bare (a integer unique, at_ms bigint)")
        self.insert("bare", (1, 0))
        self.error("policies: {t: {table: bare, expires: at_ms}}", "key")

    @not_on("mariadb", "it has no partial index")
    def test_a_partial_unique_index_is_no_key(self):
        self.given("create table bare (a integer not null, at_ms bigint); create unique index u on bare(a) where a > 5")
        self.insert("bare", (1, 0), (1, 0))
        self.error("policies: {t: {table: bare, expires: at_ms}}", "key")

    def test_detach_of_a_column_that_must_not_be_null(self):
        self.given("create table c (id integer primary key, job_id integer not null references jobs(id))")
        self.error("policies: {t: {table: jobs, expires: at_ms, detach: [c(job_id)]}}", "job_id", "null")

    def test_detach_of_a_key_column(self):
        self.given("create table c (job_id integer, n integer, primary key (job_id, n))")
        self.error("policies: {t: {table: jobs, expires: at_ms, detach: [c(job_id)]}}", "job_id")

    def test_sql_that_does_not_parse(self):
        f = self.error("policies: {t: {table: jobs, expires: at_ms, where: 'this.nope = 1'}}", "nope")
        self.assertTrue(f["what"])
        self.error("policies: {t: {table: jobs, expires: at_ms, where: 'this.n = = 1'}}")

    def test_sql_that_leaves_its_parentheses(self):
        for sql in ("this.n = 1) or (1 = 1", "this.n = 1; delete from jobs", "this.n = 1 --", "this.n = 'x",
                    "this.n = 1 /*", "(this.n = 1", "this.n = :later", "1=1)--"):
            with self.subTest(sql), self.untouched():
                for key in ("where", "hold"):
                    r = self.lapse(f'policies: {{t: {{table: jobs, expires: at_ms, {key}: "{sql}"}}}}', "sweep", "--json")
                    if sql == "this.n = 1 --":
                        self.assertIn(r.code, (0, 2, 3), r)     # harmless: may also be read as it was meant
                        self.db.execute("delete from jobs")
                        self.insert("jobs", (1, "a", 1, 0, None))
                    else:
                        self.assertIn(r.code, (2, 3), r)

    def test_like_on_a_number(self):
        r = self.findings("policies: {t: {table: jobs, expires: at_ms, where: {n: {like: 'a%'}}}}")
        if self.on_postgres:
            self.assertEqual(r.code, 3)

    def test_prefix_on_a_number(self):
        r = self.findings("policies: {t: {table: jobs, expires: at_ms, rows: {n: 'a*'}}}")
        if self.on_postgres:
            self.assertEqual(r.code, 3)

    def test_older_than_on_no_time(self):
        self.given("alter table jobs add column flag boolean")
        self.error("policies: {t: {table: jobs, expires: at_ms, where: {flag: {older_than: 1h}}}}", "flag")


@every_engine
class Times(Checks):
    def test_a_boolean(self):
        self.given("create table t (id integer primary key, expires_at boolean)")
        self.insert("t", (1, True))
        kind = "tinyint" if self.on_mariadb else "boolean"      # which is nothing else there
        self.error("policies: {t: {table: t, expires: expires_at}}", "expires_at", kind)

    def test_no_unit(self):
        self.given("create table t (id integer primary key, expires_at bigint)")
        f = self.error("policies: {t: {table: t, expires: expires_at}}", "unit")
        self.assertIn("expires_at", f["what"])

    def test_no_unit_of_keep(self):
        self.given("create table t (id integer primary key, at_ms bigint, ttl integer)")
        self.error("policies: {t: {table: t, age: at_ms, keep: {column: ttl}}}", "ttl", "unit")

    def test_seconds_declared_as_milliseconds(self):
        # read as milliseconds they all lie in January 1970: everything would be due
        self.given("create table t (id integer primary key, expires_at bigint)")
        self.insert("t", (1, S - 100), (2, S + 10**8), (3, None))
        self.error("policies: {t: {table: t, expires: expires_at, unit: ms}}", "expires_at")

    def test_seconds_in_a_column_called_ms(self):
        self.given("create table t (id integer primary key, made_ms bigint)")
        self.insert("t", (1, S - 100), (2, S))
        self.error("policies: {t: {table: t, age: made_ms, keep: 1d}}", "made_ms")

    def test_milliseconds_declared_as_microseconds(self):
        self.given("create table t (id integer primary key, expires_at bigint)")
        self.insert("t", (1, MS - 100), (2, MS + 10**11))
        self.error("policies: {t: {table: t, expires: expires_at, unit: us}}", "expires_at")

    def test_milliseconds_declared_as_seconds(self):
        self.given("create table t (id integer primary key, expires_at bigint)")
        self.insert("t", (1, MS - 100), (2, MS))
        self.warned("policies: {t: {table: t, expires: expires_at, unit: s}}", "expires_at")

    def test_zero_and_other_odd_values_do_not_alarm(self):
        self.given("create table t (id integer primary key, expires_at_ms bigint); create index i on t(expires_at_ms)")
        self.insert("t", (1, 0), (2, MS), (3, MS + DAY), (4, MS - DAY))
        r = self.findings("policies: {t: {table: t, expires: expires_at_ms}}", code=0)
        self.assertEqual(r.json["errors"], 0)

    def test_null_times_are_counted(self):
        self.given("create table t (id integer primary key, at_ms bigint); create index i on t(at_ms)")
        self.insert("t", (1, None), (2, None), (3, MS))
        r = self.findings("policies: {t: {table: t, expires: at_ms}}", code=0)
        found = [f for f in r.json["findings"] if "NULL" in f["what"] and "2" in f["what"]]
        self.assertTrue(found, r)

    def test_unreadable_text_is_counted_and_shown(self):
        self.given("create table t (id integer primary key, expires_at text); create index i on t(expires_at)")
        self.insert("t", (1, "2024-01-01T00:00:00Z"), (2, "next tuesday"), (3, "2030-01-01 00:00:00"))
        f = self.warned("policies: {t: {table: t, expires: expires_at}}", "expires_at", "next tuesday")
        self.assertIn("1", f["what"])

    def test_all_text_unreadable(self):
        self.given("create table t (id integer primary key, expires_at text)")
        self.insert("t", (1, "a"), (2, "b"))
        self.warned("policies: {t: {table: t, expires: expires_at}}", "expires_at")

    def test_keep_column_that_is_no_number(self):
        self.given("create table t (id integer primary key, at_ms bigint, ttl text)")
        self.insert("t", (1, 0, "x"))
        if self.on_postgres:
            self.error("policies: {t: {table: t, age: at_ms, keep: {column: ttl, unit: s}}}", "ttl")


class PostgresTimes(Checks, PostgresTest):
    def test_types_that_are_no_time(self):
        for kind in ("boolean", "json", "bytea", "uuid", "time", "interval", "integer[]", "double precision", "point"):
            with self.subTest(kind):
                self.given(f"drop table if exists t; create table t (id integer primary key, x {kind})")
                self.error("policies: {t: {table: t, expires: x}}", "x")

    def test_a_materialized_view(self):
        self.given("create table t (id integer primary key, at timestamptz); create materialized view m as select * from t")
        self.error("policies: {t: {table: m, expires: at}}", "view")

    def test_a_foreign_table(self):
        self.given("""create extension postgres_fdw; create server s foreign data wrapper postgres_fdw;
                      create foreign table f (id integer, at timestamptz) server s""")
        self.error("policies: {t: {table: f, expires: at}}", "foreign")

    def test_a_sequence_or_index(self):
        self.given("create sequence sq")
        self.error("policies: {t: {table: sq, expires: at}}", "sq")

    def test_a_system_table(self):
        r = self.findings("policies: {t: {table: pg_catalog.pg_class, expires: reltuples}}")
        self.assertEqual(r.code, 3)


class SqliteTables(Checks, SqliteTest):
    def test_a_virtual_table(self):
        self.given("create virtual table f using fts5(body, at_ms)")
        self.error("policies: {t: {table: f, expires: at_ms}}", "f")

    def test_the_engines_own_table(self):
        r = self.findings("policies: {t: {table: sqlite_schema, expires: rootpage, unit: s}}")
        self.assertEqual(r.code, 3)

    def test_a_misspelt_column_is_not_a_string(self):
        # SQLite would read an unknown "column" in double quotes as text
        self.given("create table t (id integer primary key, at_ms integer)")
        self.insert("t", (1, 0))
        self.error("""policies: {t: {table: t, expires: at_ms, where: '"statsu" = ''x'' or this.statsu = 1'}}""", "statsu")


@every_engine
class ForeignKeys(Checks):
    """A foreign key into a table that loses rows must be named."""

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms)")
        self.insert("t", (1, 0))

    CONTRACT = "policies: {t: {table: t, expires: at_ms}}"

    def test_named_nowhere(self):
        self.given("create table c (id integer primary key, t_id integer references t(id))")
        f = self.error(self.CONTRACT, "t_id")
        self.assertIn("c(t_id)", f["what"] + f["fix"])
        self.assertRegex(f["fix"], r"with|detach|after")

    def test_what_on_delete_does(self):
        for action, words in {"cascade": "CASCADE", "set null": "SET NULL", "restrict": "RESTRICT",
                              "no action": "NO ACTION", "set default": "SET DEFAULT"}.items():
            if self.on_mariadb and action == "set default":      # it has none
                continue
            with self.subTest(action):
                self.given("drop table if exists c; create table c (id integer primary key, t_id integer default 0 "
                           f"references t(id) on delete {action})")
                f = self.error(self.CONTRACT, "c(t_id)")
                self.assertIn(words, (f["what"] + f["fix"]).upper())

    def test_named_is_enough(self):
        self.given("create table c (id integer primary key, t_id integer references t(id)); create index c_t on c(t_id)")
        for key in ("with", "detach", "after"):
            with self.subTest(key):
                r = self.findings(f"policies: {{t: {{table: t, expires: at_ms, {key}: [c(t_id)]}}}}")
                self.assertEqual(r.json["errors"], 0, r)

    def test_one_of_two_named(self):
        self.given("create table c (id integer primary key, a integer references t(id), b integer references t(id))")
        f = self.error("policies: {t: {table: t, expires: at_ms, with: [c(a)]}}", "c(b)")
        self.assertNotIn("c(a)", f["what"])

    def test_below_with(self):
        self.given("""
            create table c (id integer primary key, t_id integer references t(id));
            create table d (id integer primary key, c_id integer references c(id));
            create table e (id integer primary key, d_id integer references d(id) on delete cascade)""")
        self.error("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}", "d(c_id)")
        f = self.error("policies: {t: {table: t, expires: at_ms, with: [{ref: c(t_id), with: [d(c_id)]}]}}", "e(d_id)")
        self.assertIn("CASCADE", f["what"] + f["fix"])
        r = self.findings("policies: {t: {table: t, expires: at_ms, with: [{ref: c(t_id), with: "
                          "[{ref: d(c_id), with: [e(d_id)]}]}]}}")
        self.assertEqual(r.json["errors"], 0, r)

    def test_a_self_reference(self):
        self.given("create table n (id integer primary key, up integer references n(id), at_ms bigint)")
        self.insert("n", (1, None, 0))
        self.error("policies: {t: {table: n, expires: at_ms}}", "n(up)")

    def test_composite(self):
        self.given("""
            create table p (a integer not null, b integer not null, at_ms bigint, primary key (a, b));
            create table c (id integer primary key, x integer, y integer, foreign key (x, y) references p(a, b))""")
        self.error("policies: {t: {table: p, expires: at_ms}}", "c(x, y)")

    def test_the_line_to_add_works(self):
        self.given("create table c (id integer primary key, t_id integer references t(id))")
        f = self.error(self.CONTRACT, "c(t_id)")
        ref = re.search(r"[\w.\"]*c\(t_id\)", f["fix"]).group(0)
        r = self.findings(f"policies: {{t: {{table: t, expires: at_ms, with: ['{ref}']}}}}")
        self.assertEqual(r.json["errors"], 0, r)

    def test_a_reference_without_a_foreign_key_is_said(self):
        self.given("create table c (id integer primary key, t_id integer); create index c_t on c(t_id)")
        for key in ("with", "after"):
            with self.subTest(key):
                r = self.findings(f"policies: {{t: {{table: t, expires: at_ms, {key}: [c(t_id)]}}}}", code=0)
                found = [f for f in r.json["findings"] if "foreign key" in f["what"].lower() and "c" in f["what"]]
                self.assertTrue(found, r)


class PostgresForeignKeys(Checks, PostgresTest):
    def test_into_a_partition(self):
        self.given("""
            create table ev (id integer not null, day date not null, at timestamptz, primary key (id, day)) partition by range (day);
            create table ev_1 partition of ev for values from ('2024-01-01') to ('2024-02-01');
            create table c (id integer primary key, ev_id integer, ev_day date, foreign key (ev_id, ev_day) references ev_1(id, day))""")
        self.error("policies: {t: {table: ev, expires: at}}", "c(ev_id, ev_day)")

    def test_across_schemas(self):
        self.given("""
            create schema a; create schema b; create table a.p (id integer primary key, at timestamptz);
            create table b.c (id integer primary key, p_id integer references a.p(id))""")
        self.error("policies: {t: {table: a.p, expires: at}}", "b.c(p_id)")

    def test_from_a_partitioned_table_is_said_once(self):
        self.given("""
            create table p (id integer primary key, at timestamptz);
            create table c (id integer not null, day date not null, p_id integer references p(id), primary key (id, day)) partition by range (day);
            create table c_1 partition of c for values from ('2024-01-01') to ('2024-02-01');
            create table c_2 partition of c for values from ('2024-02-01') to ('2024-03-01')""")
        self.error("policies: {t: {table: p, expires: at}}", "c(p_id)")
        r = self.findings("policies: {t: {table: p, expires: at, with: [c(p_id)]}}")
        self.assertEqual(r.json["errors"], 0, r)


@every_engine
class States(Checks):
    def test_a_state_that_no_row_has(self):
        self.given("create table t (id integer primary key, state text, at_ms bigint)")
        self.insert("t", (1, "completed", MS))
        f = self.warned("policies: {t: {table: t, rows: {state: [completed, compleated]}, expires: at_ms}}", "compleated")
        self.assertNotIn("'completed'", f["what"])

    def test_all_there(self):
        self.given("create table t (id integer primary key, state text, at_ms bigint); create index i on t(at_ms)")
        self.insert("t", (1, "completed", MS), (2, "failed", MS), (3, None, MS), (4, "x:1", MS))
        r = self.findings('policies: {t: {table: t, rows: {state: [completed, failed, null, "x:*"]}, expires: at_ms}}')
        self.assertEqual(r.json["warnings"] + r.json["errors"], 0, r)

    def test_in_keep(self):
        self.given("create table t (id integer primary key, state text, at_ms bigint)")
        self.insert("t", (1, "completed", MS))
        self.warned("policies: {t: {table: t, age: at_ms, keep: {by: state, values: {completed: 1h, faild: 1h}}}}", "faild")

    def test_an_empty_table_has_no_states(self):
        self.given("create table t (id integer primary key, state text, at_ms bigint)")
        r = self.findings("policies: {t: {table: t, rows: {state: done}, expires: at_ms}}")
        self.assertEqual(r.json["errors"], 0)


class Enums(Checks, PostgresTest):
    def test_a_label_that_the_enum_has_not(self):
        self.given("create type st as enum ('completed', 'failed'); create table t (id integer primary key, state st, at_ms bigint)")
        self.insert("t", (1, "completed", 0))
        f = self.warned("policies: {t: {table: t, rows: {state: [completed, canceled]}, expires: at_ms}}", "canceled")
        self.assertTrue(f["fix"] or "failed" in f["what"])

    def test_a_label_that_no_row_has_is_fine(self):
        self.given("create type st as enum ('completed', 'failed'); create table t (id integer primary key, state st, at_ms bigint);"
                   "create index i on t(at_ms)")
        self.insert("t", (1, "completed", MS))
        r = self.findings("policies: {t: {table: t, rows: {state: [completed, failed]}, expires: at_ms}}")
        self.no_finding(r, "failed")


@every_engine
class Indexes(Checks):
    def setUp(self):
        super().setUp()
        # there a foreign key brings an index along
        self.references = (lambda table: "") if self.on_mariadb else (lambda table: f" references {table}(id)")

    def create(self, text):
        """The CREATE INDEX that a finding gives."""
        found = re.search(r"create index[^;]*", text, re.I)
        self.assertTrue(found, text)
        if self.on_postgres:
            self.assertIn("CONCURRENTLY", found.group(0).upper())
        return found.group(0)

    def test_the_due_query(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        contract = "policies: {t: {table: t, expires: at_ms}}"
        f = self.warned(contract, "create index", "at_ms")
        self.given(self.create(f["fix"] or f["what"]))
        self.no_finding(self.findings(contract), "create index")

    def test_with_a_state(self):
        self.given("create table t (id integer primary key, state text, at_ms bigint)")
        self.insert("t", (1, "done", MS))
        contract = "policies: {t: {table: t, rows: {state: done}, age: at_ms, keep: 1h}}"
        f = self.warned(contract, "create index", "at_ms")
        self.given(self.create(f["fix"] or f["what"]))
        self.no_finding(self.findings(contract), "create index")

    def test_a_dependent(self):
        self.given("create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms); "
                   f"create table c (id integer primary key, t_id integer{self.references('t')})")
        for key in ("with", "detach", "after"):
            with self.subTest(key):
                contract = f"policies: {{t: {{table: t, expires: at_ms, {key}: [c(t_id)]}}}}"
                f = self.warned(contract, "create index", "t_id")
                sql = self.create(f["fix"] or f["what"])
        self.given(sql)
        for key in ("with", "detach", "after"):
            self.no_finding(self.findings(f"policies: {{t: {{table: t, expires: at_ms, {key}: [c(t_id)]}}}}"), "create index")

    def test_a_deep_dependent(self):
        self.given(f"""
            create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms);
            create table c (id integer primary key, t_id integer references t(id)); create index c_t on c(t_id);
            create table d (id integer primary key, c_id integer{self.references('c')})""")
        self.warned("policies: {t: {table: t, expires: at_ms, with: [{ref: c(t_id), with: [d(c_id)]}]}}", "create index", "c_id")

    def test_an_index_that_starts_otherwise_does_not_serve(self):
        self.given("create table t (id integer primary key, at_ms bigint); create index t_at on t(id, at_ms)")
        self.warned("policies: {t: {table: t, expires: at_ms}}", "create index", "at_ms")

    def test_an_index_made_invalid_does_not_serve(self):
        if self.on_postgres:
            self.given("create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms);"
                       "update pg_index set indisvalid = false where indexrelid = 't_at'::regclass")
            self.warned("policies: {t: {table: t, expires: at_ms}}", "create index", "at_ms")

    @not_on("mariadb", "it has no partial index")
    def test_a_partial_index_does_not_serve(self):
        self.given("create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms) where id > 5")
        self.warned("policies: {t: {table: t, expires: at_ms}}", "create index", "at_ms")

    @not_on("mariadb", "it has no partial index")
    def test_an_index_of_what_is_not_null_serves(self):
        self.given("create table t (id integer primary key, at_ms bigint); "
                   "create index t_at on t(at_ms) where at_ms is not null")
        self.no_finding(self.findings("policies: {t: {table: t, expires: at_ms}}"), "create index")

    def test_odd_names_are_quoted(self):
        self.given("""create table "Odd T" ("The Id" integer primary key, "At Ms" bigint)""")
        contract = """policies: {t: {table: '"Odd T"', expires: '"At Ms"', unit: ms}}"""
        f = self.warned(contract, "create index")
        self.given(self.create(f["fix"] or f["what"]))
        self.no_finding(self.findings(contract), "create index")

    def test_composite_dependents_in_any_order(self):
        self.given("""
            create table p (a integer not null, b integer not null, at_ms bigint, primary key (a, b)); create index p_at on p(at_ms);
            create table c (id integer primary key, x integer, y integer, foreign key (x, y) references p(a, b));
            create index c_p on c(y, x)""")
        self.no_finding(self.findings('policies: {p: {table: p, expires: at_ms, with: ["c(x, y)"]}}'), "create index")


@every_engine
class Coverage(Checks):
    def setUp(self):
        super().setUp()
        self.given("""
            create table t (id integer primary key, at_ms bigint); create index i on t(at_ms);
            create table c (id integer primary key, t_id integer references t(id)); create index c_t on c(t_id);
            create table lonely (id integer primary key)""")

    def test_a_table_that_nothing_names(self):
        r = self.findings("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}", code=0)
        found = [f for f in r.json["findings"] if "lonely" in f["what"]]
        self.assertEqual([f["level"] for f in found], ["note"], r)
        self.assertIn("unbounded", found[0]["what"] + found[0]["fix"])

    def test_strict(self):
        r = self.findings("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}", "--strict", code=3)
        self.finding(r, "error", "lonely")
        self.no_finding(r, "table c ")

    def test_unbounded(self):
        r = self.findings("""
            policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}
            unbounded: {lonely: a singleton}
            """, "--strict", code=0)
        self.no_finding(r, "lonely")

    def test_the_line_to_add_works(self):
        contract = "policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}\n"
        f = self.finding(self.findings(contract, "--strict"), "error", "lonely")
        line = re.search(r"unbounded: \{.*\}", f["fix"]).group(0)
        self.no_finding(self.findings(contract + line, "--strict", code=0), "lonely")

    def test_the_line_to_add_for_an_odd_name_works(self):
        self.given("""create table "Odd T" (id integer primary key); drop table lonely""")
        contract = "policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}\n"
        f = self.finding(self.findings(contract, "--strict"), "error", "Odd T")
        line = re.search(r"unbounded: \{.*\}", f["fix"]).group(0)
        self.no_finding(self.findings(contract + line, "--strict", code=0), "Odd T")

    def test_an_unbounded_line_that_names_no_table(self):
        r = self.findings("""
            policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}
            unbounded: {lonley: a singleton}
            """)
        self.assertTrue([f for f in r.json["findings"] if "lonley" in f["what"]], r)

    def test_strict_does_not_concern_sweep(self):
        self.sweep("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}", code=0)

    def test_a_purge_names_its_tables(self):
        r = self.findings("""
            policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}
            purges: {l: {erases: [lonely(id)]}}
            """, "--strict")
        self.no_finding(r, "lonely", "unbounded")


@every_engine
class NotYet(Checks):
    def test_is_an_error_of_the_policy(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.error("policies: {t: {table: t, expires: at_ms, limits: {rows: 5}}}", "limits")


class Privileges(Checks, PostgresTest):
    def as_role(self, grants):
        role = f"r_{self.db.name}"
        self.given(f"create role {role} login; " + grants.replace("ROLE", role))
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        return self.db.server.dsn(self.db.name, user=role)

    def test_no_delete(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        r = lapse(self.as_role("grant select on t to ROLE"), "policies: {t: {table: t, expires: at_ms}}", "check", "--json")
        f = self.finding(r, "error", "delete")
        self.assertIn("GRANT", f["fix"].upper())

    def test_no_update_for_detach(self):
        self.given("create table t (id integer primary key, at_ms bigint); "
                   "create table c (id integer primary key, t_id integer references t(id))")
        dsn = self.as_role("grant select, delete, update on t to ROLE; grant select on c to ROLE")
        r = lapse(dsn, "policies: {t: {table: t, expires: at_ms, detach: [c(t_id)]}}", "check", "--json")
        self.finding(r, "error", "update", "c")

    def test_locking_takes_update(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        dsn = self.as_role("grant select, delete on t to ROLE")
        r = lapse(dsn, "policies: {t: {table: t, expires: at_ms}}", "check", "--json")
        self.finding(r, "error", "update")

    def test_a_reference_from_where_we_may_not_look(self):
        self.given("""
            create schema s; create table t (id integer primary key, at_ms bigint);
            create table s.c (id integer primary key, t_id integer references t(id) on delete cascade)""")
        r = lapse(self.as_role("grant all on t to ROLE"), "policies: {t: {table: t, expires: at_ms}}", "check", "--json")
        self.finding(r, "error", "s.c(t_id)", "cascade")

    def test_enough(self):
        self.given("create table t (id integer primary key, at_ms bigint); create index i on t(at_ms)")
        dsn = self.as_role("grant select, delete, update on t to ROLE")
        r = lapse(dsn, "policies: {t: {table: t, expires: at_ms}}", "check", "--json")
        self.assertEqual(r.code, 0, r)


@every_engine
class WhatRowsSay(Case):
    """What is worth a word though nothing is wrong with the contract itself: told by a few rows, not by all."""

    def table(self, count, old, kind="bigint"):
        self.given(f"drop table if exists t; create table t (id integer primary key, s varchar(20), at_ms {kind}); create index t_at on t (at_ms)")
        far = 4102444800000 - 1000
        self.given(f"insert into t select n, 'done', case when n <= {old} then 1000000000000 else {far} end from ({self.series(count)}) as g")

    def words(self, keep="keep: 6m", rest=""):
        return self.check(f"policies: {{t: {{table: t, age: at_ms, {keep}{rest}}}}}")

    def test_nearly_all_rows_are_due(self):
        self.table(1200, 1200)
        for keep, said in (("keep: 6m", "6 minutes"), ("keep: 86400000", "1 day"),
                           ("keep: {by: s, values: {done: 90m}}", "done 1 hour 30 minutes, others for ever")):
            with self.subTest(keep):
                self.finding(self.words(keep), "warning", "nearly all rows are due", "1200 of all 1200 rows", f"at a keep of {said}")
        for keep, rest in (("keep: never", ""), ("keep: 50000d", ""), ("keep: 6m", ", rows: {s: open}"),
                           ("keep: {by: s, values: {open: 1m}}", "")):
            with self.subTest(keep=keep, rest=rest):
                self.no_finding(self.words(keep, rest), "nearly all")

    def test_not_of_few_rows_or_of_many_that_are_young(self):
        for count, old in ((999, 999), (1200, 1100)):
            self.table(count, old)
            self.no_finding(self.words(), "nearly all")

    def test_of_many_rows_those_with_the_highest_keys_are_looked_at(self):
        self.table(12000, 11900)
        f = self.finding(self.words(), "warning", "nearly all rows are due", "of the 10000 rows with the highest keys")
        self.assertIn("9900 of", f["what"])
        self.table(12000, 4000)
        self.no_finding(self.words(), "nearly all")

    def ahead(self, kind, value, *words, rest=""):
        self.given(f"drop table if exists a; create table a (id integer primary key, at_time {kind})")
        self.given(f"insert into a values (1, {value}), (2, null)")
        r = self.check(f"policies: {{a: {{table: a, age: at_time, keep: 1d{rest}}}}}")
        if not words:
            self.no_finding(r, "ahead")
            return
        self.assertRegex(self.finding(r, "warning", "at_time", "ahead", *words)["what"], "lies 1 hour (1[0-9]|20) minutes ahead")

    def test_the_newest_time_lies_ahead(self):
        later, now = self.clock(4830), self.clock(0)
        if self.on_sqlite:
            self.ahead("text", f"replace({later}, 'Z', '')", "no other zone is given, so what has no offset is read as utc")
            self.ahead("text", now)
        else:
            local, instant = self.per_engine(postgres=("timestamp", "timestamptz"), mariadb=("datetime(6)", "timestamp(6)"), sqlite=None)
            utc = self.per_engine(postgres="({}) at time zone 'utc'", mariadb="{}", sqlite=None)
            self.ahead(local, utc.format(later), "; no other zone is given, read as utc", "zone: europe/prague")
            self.ahead(local, utc.format(self.clock(4830 + 3600)), "read as of zone africa/lagos", rest=", zone: Africa/Lagos")
            self.ahead(instant, later, "ahead of the database's clock")
            self.ahead(local, utc.format(now))
            self.ahead(instant, now)

    def test_a_column_without_any_time(self):
        self.given("create table n (id integer primary key, at text)")
        self.insert("n", (1, "tomorrow"), (2, "soon"), (3, None))
        contract = "policies: {n: {table: n, age: at, keep: 1d}}"
        r = self.check(contract, code=3)
        self.finding(r, "error", "none of the 2 values looked at is a time", "for example '")
        self.no_finding(r, "create index")
        self.no_finding(r, "no index")
        self.insert("n", (4, "2024-01-01T00:00:00Z"))
        r = self.check(contract, code=0)
        self.finding(r, "warning", "no index", "create index")
        self.finding(r, "warning", "that is no time")
