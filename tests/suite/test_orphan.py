"""Rows whose source is gone, or no longer matches; and the many ways in which all of them could seem to be."""
import json

from harness import *

SCHEMA = """
    create table doc (id integer primary key, state text, made_ms bigint);
    create table task (id integer primary key, doc_id integer, kind text, up_ms bigint, end_ms bigint, parent_id integer);
    create index task_parent on task(parent_id)"""


def contract(orphan="", more="", of="doc(id)", by="doc_id", keep="keep: now", table="task"):
    return f"policies: {{p: {{table: {table}, orphan: {{of: '{of}', by: {by}{orphan}}}, {keep}{more}}}}}"


UNMATCHED = ", matching: {state: open}, delete_when: deleted_or_unmatched"
OLD = MS - 2 * DAY


@every_engine
class Orphans(Case):
    def setUp(self):
        super().setUp()
        self.given(SCHEMA)
        self.insert("doc(id, state)", (1, "open"), (2, "shut"), (3, None))

    def tasks(self, *rows):
        self.insert("task(id, doc_id)", *rows)

    def refused(self, contract, *words, code=3):
        """check, plan and sweep refuse the policy with these words, and nothing is touched."""
        with self.untouched():
            r = self.check(contract, code=code)
            self.finding(r, "error", *words)
            self.plan(contract, code=code)
            s = self.sweep(contract, code=code)
        self.assertEqual(s.policy("p")["outcome"], "refused", s)
        return r

    # --- who is an orphan ---------------------------------------------------------------------------------

    def test_the_source_is_gone(self):
        self.tasks((1, 1), (2, 2), (3, 3), (4, 4), (5, None), (6, 9))
        self.swept(contract(), gone={"task": 2})
        self.left("task", 1, 2, 3, 5)

    def test_the_source_no_longer_matches(self):
        # unknown (state is NULL) is not matching
        self.tasks((1, 1), (2, 2), (3, 3), (4, 4), (5, None))
        self.swept(contract(UNMATCHED), gone={"task": 3})
        self.left("task", 1, 5)

    def test_a_filter_is_ignored_when_only_deletion_counts(self):
        self.tasks((1, 1), (2, 2), (3, 3), (4, 4))
        self.swept(contract(", matching: {state: open}"), gone={"task": 1})
        self.left("task", 1, 2, 3)

    def test_the_aliases(self):
        self.tasks((1, 1), (2, 2), (4, 4))
        self.swept(contract(", matching: {state: open}, delete_when: sourceDocumentDeleted"), gone={"task": 1})
        self.swept(contract(", matching: {state: open}, delete_when: sourceDocumentDeletedOrNoLongerMatching"), gone={"task": 1})
        self.left("task", 1)

    def test_never(self):
        self.tasks((1, 1), (4, 4))
        self.swept(contract(", delete_when: never"), gone={})
        self.finding(self.check(contract(", delete_when: never")), "note", "never", "nothing is ever due")
        self.given("delete from doc")
        self.swept(contract(", delete_when: never"), gone={})

    def test_matching_by_time(self):
        self.insert("doc", (4, "open", MS - HOUR - 1), (5, "open", MS - HOUR), (6, "open", None))
        self.tasks((4, 4), (5, 5), (6, 6))
        self.swept(contract(", matching: {made_ms: {older_than: 1h}}, delete_when: deleted_or_unmatched"), gone={"task": 2})
        self.left("task", 4)

    def test_matching_by_time_takes_the_unit_and_the_zone(self):
        self.given("create table d2 (id integer primary key, at bigint, made text)")
        self.insert("d2", (1, S - 3601, "2024-06-15 12:59:59"), (2, S - 3600, "2024-06-15 13:00:00"))
        self.tasks((1, 1), (2, 2))
        unmatched = ", delete_when: deleted_or_unmatched, matching: "
        counted = contract(unmatched + "{at: {older_than: 1h}}", ", unit: s", of="d2(id)")
        local = contract(unmatched + "{made: {older_than: 1h}}", ", zone: Europe/Prague", of="d2(id)")
        for c in counted, local:
            self.assertEqual(self.gone(self.plan(c)), {"task": 1}, c)
        self.swept(local, gone={"task": 1})
        self.left("task", 1)

    def test_matching_in_sql(self):
        self.tasks((1, 1), (2, 2), (3, 3))
        self.swept(contract(", matching: \"this.state = 'open' or this.id = 2\", delete_when: deleted_or_unmatched"), gone={"task": 1})
        self.left("task", 1, 2)

    def test_any_source_row_with_the_key_counts(self):
        self.given("create table src (k integer, state text)")
        self.insert("src", (1, "shut"), (1, "open"), (2, "shut"), (None, "open"))
        self.tasks((1, 1), (2, 2), (3, 3), (4, None))
        self.swept(contract(UNMATCHED, of="src(k)"), gone={"task": 2})
        self.left("task", 1, 4)

    def test_composite_keys(self):
        self.given("create table src (a integer, b text, state text, primary key (a, b)); "
                   "create table t2 (id integer primary key, one integer, two text)")
        self.insert("src", (1, "a", "open"), (1, "b", "shut"), (2, "a", "open"))
        self.insert("t2", (1, 1, "a"), (2, 1, "b"), (3, 2, "b"), (4, None, "a"), (5, 1, None), (6, None, None), (7, 3, "a"))
        self.assertEqual(self.gone(self.plan(contract(of="src(a, b)", by="[one, two]", table="t2"))), {"t2": 2})
        self.swept(contract(UNMATCHED, of="src(a, b)", by="[one, two]", table="t2"), gone={"t2": 3})
        self.left("t2", 1, 4, 5, 6)

    def test_odd_names(self):
        self.given('create table "Or ders" ("I""d" integer primary key, "st,ate" text); '
                   'create table "T.x" ("k y" integer primary key, "by (1)" integer)')
        self.insert('"Or ders"', (1, "open"), (2, "shut"))
        self.insert('"T.x"', (1, 1), (2, 2), (3, 3))
        c = """
            policies:
              p:
                table: '"T.x"'
                orphan:
                  of: '"Or ders"("I""d")'
                  by: '"by (1)"'
                  matching: { '"st,ate"': open }
                  delete_when: deleted_or_unmatched
                keep: now
            """
        self.assertEqual(self.plan(c).policy("p")["rows"], 2)
        self.assertEqual(self.sweep(c).policy("p")["rows"], 2)
        self.assertEqual(self.db.rows('select "k y" from "T.x"'), [(1,)])

    # --- grace --------------------------------------------------------------------------------------------

    def aged(self, *rows):
        self.insert("task(id, doc_id, up_ms, end_ms)", *rows)

    def test_grace_counts_from_the_latest(self):
        cut = MS - HOUR
        self.aged((1, 9, cut - 1, cut - 1), (2, 9, cut - 1, cut), (3, 9, cut, cut - 1), (4, 9, cut - 1, None),
                  (5, 9, None, cut - 1), (6, 9, None, None), (7, 1, 0, 0), (8, 9, None, cut), (9, None, 0, 0))
        r = self.swept(contract(keep="keep: 1h", more=", age: [up_ms, end_ms]"), gone={"task": 3}, kept={"null_time": 1})
        self.left("task", 2, 3, 6, 7, 8, 9)
        self.assertEqual(r.policy("p")["rows"], 3)

    def test_grace_is_a_day_unless_given(self):
        self.aged((1, 9, MS - DAY - 1, None), (2, 9, MS - DAY, None), (3, 9, MS - HOUR, None))
        c = contract(keep="age: up_ms")
        self.assertEqual(self.plan(c).policy("p")["cutoff"], "2024-06-14T12:00:00Z")
        self.swept(c, gone={"task": 1})
        self.left("task", 2, 3)

    def test_inclusive_and_by_value(self):
        self.insert("task(id, doc_id, kind, up_ms)", (1, 9, "a", MS - HOUR), (2, 9, "b", MS - HOUR), (3, 9, "c", 0), (4, 1, "a", 0))
        self.swept(contract(keep="age: up_ms, inclusive: true, keep: {by: kind, values: {a: 1h, b: 2h}}"), gone={"task": 1})
        self.left("task", 2, 3, 4)

    def test_without_grace_nothing_needs_a_time(self):
        self.tasks((1, 9), (2, 1))
        c = contract()
        planned = self.plan(c).policy("p")
        self.assertEqual((planned["cutoff"], planned["oldest"], planned["newest"]), (None, None, None))
        shown = self.lapse(c, "plan", "--now", NOW, code=0).out
        self.assertRegex(shown, r"(?m)^p +\S*task +1 +- +- +-$")
        self.check(contract(more=", unit: ms"))         # says nothing about no column
        self.swept(c, gone={"task": 1})

    # --- beside other keys ----------------------------------------------------------------------------------

    def test_rows_where_and_hold(self):
        self.insert("task(id, doc_id, kind, up_ms)", (1, 9, "a", 0), (2, 9, "b", 0), (3, 9, "a", 1), (4, 9, "a", None), (5, 1, "a", 1))
        self.swept(contract(more=", rows: {kind: a}, where: {id: {lt: 4}}, hold: {up_ms: 1}"), gone={"task": 1}, kept={"held": 1})
        self.left("task", 2, 3, 4, 5)

    def test_with_after_and_detach(self):
        self.given("""
            create table step (id integer primary key, task_id integer references task(id));
            create table ext (id integer primary key, task_id integer references task(id));
            create table box (id integer primary key, task_id integer references task(id));
            create index step_task on step(task_id); create index ext_task on ext(task_id); create index box_task on box(task_id)""")
        self.tasks((1, 9), (2, 9), (3, 1))
        self.insert("step", (1, 1), (2, 1), (3, 2), (4, 3))
        self.insert("ext", (1, 1), (3, 3))
        self.insert("box", (2, 2))
        self.swept(contract(more=", with: [step(task_id)], detach: [ext(task_id)], after: [box(task_id)]"),
                   gone={"task": 1, "step": 2}, detached={"ext": 1}, kept={"waiting": 1})
        self.left("task", 2, 3)
        self.assertEqual(self.db.rows("select task_id from ext order by id"), [(None,), (3,)])

    def test_a_subtree_with_a_row_whose_source_exists_waits_whole(self):
        self.insert("task(id, doc_id, parent_id)", (1, 9, None), (2, 9, 1), (3, 9, 2), (4, 9, None), (5, 1, 4), (6, 9, 5),
                    (7, 9, None), (8, None, 7))
        self.swept(contract(more=", with: [task(parent_id)]"), gone={"task": 4})
        self.left("task", 4, 5, 7, 8)           # 6 is an orphan itself; 8 has no reference, and is kept with its parent

    def test_in_batches_and_in_one(self):
        for batch in (1, 3, "null"):
            with self.subTest(batch=batch):
                self.given("delete from task")
                self.tasks(*((i, i % 5) for i in range(1, 41)))
                r = self.swept(contract(UNMATCHED, f", batch: {batch}, pace: {{ target: 10m }}"), gone={"task": 32})
                self.assertEqual(self.db.rows("select distinct doc_id from task"), [(1,)])
                if batch == 3:
                    self.assertEqual(r.policy("p")["batches"], 11)

    # --- an empty source ------------------------------------------------------------------------------------

    def test_an_empty_source_refuses(self):
        self.tasks((1, 1), (2, 9))
        self.given("delete from doc")
        for more in "", UNMATCHED:
            self.refused(contract(more), "source", "doc", "is empty", "allow_empty: true")
        self.swept(contract(", allow_empty: true"), gone={"task": 2})

    def empties(self):
        """The source empties once the first batch has gone."""
        if self.on_postgres:
            self.given("""
                create function clear() returns trigger language plpgsql as
                    $$ begin if (select count(*) from task) <= 4 then delete from doc; end if; return null; end $$;
                create trigger clear after delete on task for each row execute function clear()""")
        else:
            self.given("create trigger clear after delete on task when (select count(*) from task) <= 4 "
                       "begin delete from doc; end")

    def test_a_source_that_empties_in_mid_run(self):
        for batch in (2, "null"):
            with self.subTest(batch=batch):
                self.given("delete from task; delete from doc; drop trigger if exists clear" + (" on task; drop function if exists clear" if self.on_postgres else ""))
                self.insert("doc(id, state)", (1, "open"))
                self.tasks((1, 9), (2, 9), (3, 1), (4, 1), (5, 9), (6, 9))
                self.empties()
                r = self.sweep(contract(more=f", batch: {batch}"), code=1)
                self.assertEqual(r.policy("p")["outcome"], "failed", r)
                self.assertIn("became empty", r.policy("p")["error"])
                self.assertTrue({3, 4} <= set(self.ids("task")), "rows that had a source were deleted")
                if batch == 2:
                    self.left("task", 3, 4, 5, 6)
                    self.assertEqual(r.policy("p")["rows"], 2)

    # --- a source that cannot be compared, or read -------------------------------------------------------------

    def pair(self, key, by, value="'1'", code=3, **how):
        """Columns of two types that hold the same value: never is every row an orphan."""
        self.given("drop table if exists k; drop table if exists b")
        self.given(f"create table k (k {key}); create table b (id integer primary key, b {by}); "
                   f"insert into k values ({value}); insert into b values (1, {value})")
        c = contract(of="k(k)", by="b", table="b")
        if code:
            return self.refused(c, "cannot be compared safely", **how)
        self.swept(c, gone={})
        self.given("delete from k; insert into k select null")
        self.swept(c, gone={"b": 1})

    def test_types(self):
        for key, by in (("integer", "text"), ("text", "integer"), ("text", "date"), ("double precision", "integer"),
                        ("double precision", "numeric(10,0)"), ("integer", "double precision")):
            with self.subTest(key=key, by=by):
                value = "'2024-01-01'" if "date" in by else "'1'"
                r = self.pair(key, by, value)
                f = self.finding(r, "error", "cannot be compared safely")
                self.assertIn("k.k' is ", f["what"])
                self.assertIn("b.b' is ", f["what"])
                self.assertTrue(f["fix"])

    def test_types_that_go_together(self):
        for key, by in (("integer", "bigint"), ("smallint", "integer"), ("text", "varchar(20)"), ("varchar(5)", "varchar(9)"),
                        ("numeric(10,0)", "numeric(8,2)"), ("integer", "numeric(9,0)"), ("date", "date")):
            with self.subTest(key=key, by=by):
                self.pair(key, by, "'2024-01-01'" if key == "date" else "'1'", code=0)

    def test_a_source_that_is_not_there(self):
        self.tasks((1, 9))
        self.refused(contract(of="dok(id)"), "table 'dok' does not exist", "did you mean", "doc")
        self.refused(contract(of="doc(nr)"), "has no column 'nr'")
        self.refused(contract(by="dok_id"), "has no column 'dok_id'", "doc_id")
        self.given("create view v as select * from doc")
        self.refused(contract(of="v(id)"), "is a view")

    def test_a_source_that_the_policy_empties(self):
        self.insert("task(id, doc_id, parent_id)", (1, 9, None), (2, 1, 1))
        self.refused(contract(of="task(id)", by="parent_id"), "which is its source")
        self.given("create table part (id integer primary key, task_id integer)")
        self.insert("part", (1, 1))
        self.refused(contract(of="part(id)", more=", with: [part(task_id)]"), "which is its source")

    # --- conditions that are none -------------------------------------------------------------------------------

    def test_a_matching_that_is_not_sql_or_writes(self):
        self.tasks((1, 1), (2, 9))
        for i, sql in enumerate((
                "id = 1; DELETE FROM doc", "(WITH d AS (DELETE FROM doc RETURNING 1) SELECT count(*) FROM d) > 0", "((",
                "this is not sql", "no_such_column = 1", "this.kind = 'a'", "kind is null", "DELETE FROM doc", "id = ?", "id = 1 /*")):
            with self.subTest(sql):         # it must be right also where it is not looked at
                when = "deleted" if i % 2 else "deleted_or_unmatched"
                self.refused(contract(f", matching: {json.dumps(sql)}, delete_when: {when}"), "condition")
        self.refused(contract(", matching: {stat: open}"), "has no column 'stat'", "state")
        self.refused(contract(", matching: {id: x}"), "whole number")

    # --- what check says -----------------------------------------------------------------------------------------

    def test_check_names_the_index_of_the_source(self):
        self.given("create table src (k integer)")
        self.insert("src", 1)
        r = self.check(contract(of="src(k)"), code=0)
        f = self.finding(r, "warning", "no index of", "src", "(k)")
        self.assertIn("CREATE INDEX", f["fix"])
        self.given(f["fix"].replace(" CONCURRENTLY", ""))
        self.no_finding(self.check(contract(of="src(k)"), code=0), "no index of")
        self.no_finding(self.check(contract(), code=0), "no index of")

    def test_check_says_what_protects(self):
        self.finding(self.check(contract(), code=0), "note", "doc_id", "no foreign key", "does not save it")
        self.given("create table t3 (id integer primary key, doc_id integer references doc(id))")
        r = self.check(contract(table="t3"), code=0)
        self.no_finding(r, "no foreign key")
        self.finding(r, "note", "none can be an orphan")
        self.insert("t3", (1, 1), (2, 2))
        self.swept(contract(UNMATCHED, table="t3"), gone={"t3": 1})


class OnSqlite(Case, SqliteTest):
    pair, refused = Orphans.pair, Orphans.refused

    def test_columns_without_a_type(self):
        for key, by in (("", "text"), ("text", ""), ("", ""), ("blob", "text"), ("text", "blob"), ("blob", "blob"),
                        ("", "integer"), ("blob", "integer"), ("integer", "")):
            with self.subTest(key=key, by=by):
                self.pair(key, by)
        self.finding(self.refused(contract(of="k(k)", by="b", table="b"), "declare both columns"), "error", "without a type")

    def test_strict_tables_hold_what_they_say(self):
        self.given("create table k (k blob) strict; create table b (id integer primary key, b blob) strict; "
                   "insert into k values (x'31'); insert into b values (1, x'31'), (2, x'32')")
        self.swept(contract(of="k(k)", by="b", table="b"), gone={"b": 1})
        self.given("create table k2 (k any) strict; insert into k2 values (1)")
        self.refused(contract(of="k2(k)", by="b", table="b"), "cannot be compared safely")

    def test_columns_that_prefer_numbers(self):
        self.pair("uuid", "uuid", "'3f2a-1'", code=0)
        self.pair("numeric", "integer", "'1'", code=0)
        self.pair("decimal(9)", "datetime", "'01'", code=0)
        self.pair("uuid", "text", "'3f2a-1'")

    def test_collations(self):
        self.pair("text collate nocase", "text collate nocase", "'a'", code=0)
        for key, by in (("text collate nocase", "text"), ("text", "text collate nocase"), ("text collate rtrim", "text")):
            with self.subTest(key=key, by=by):
                self.finding(self.pair(key, by, "'a'"), "error", "collation", "nocase" if "nocase" in key + by else "rtrim", "default collation")

    def test_a_virtual_table(self):
        self.given("create virtual table f using fts5(k); insert into f values ('1'); create table b (id integer primary key, b text)")
        self.refused(contract(of="f(k)", by="b", table="b"), "virtual table")


class OnPostgres(Case, PostgresTest):
    pair, refused = Orphans.pair, Orphans.refused

    def test_types(self):
        for key, by in (("text", "char(3)"), ("char(3)", "varchar(3)"), ("real", "double precision"), ("numeric", "real"),
                        ("uuid", "text"), ("integer[]", "integer[]"), ("timestamp", "timestamptz"), ("name", "text")):
            with self.subTest(key=key, by=by):
                value = {"uuid": "gen_random_uuid()", "integer[]": "'{1}'", "timestamp": "now()"}.get(key, "'1'")
                self.pair(key, by, value)

    def test_types_that_go_together(self):
        for key, by, value in (("char(3)", "char(5)", "'a'"), ("uuid", "uuid", "'5c1a5d8e-0000-4000-8000-000000000001'"),
                               ("bytea", "bytea", "'\\x31'"), ("timestamptz", "timestamptz", "'2024-01-01'"),
                               ("boolean", "boolean", "true"), ("real", "real", "0.1"), ("inet", "inet", "'::1'")):
            with self.subTest(key=key, by=by):
                self.pair(key, by, value, code=0)

    def test_enums_and_domains(self):
        self.given("create type mood as enum ('a', 'b'); create type mode as enum ('a', 'b'); create domain nr as integer")
        self.pair("mood", "mood", "'a'", code=0)
        self.pair("nr", "bigint", "1", code=0)
        self.pair("mood", "mode", "'a'")
        self.pair("mood", "text", "'a'")

    def test_citext(self):
        self.given("create extension if not exists citext")
        self.pair("citext", "citext", "'a'", code=0)
        self.pair("citext", "text", "'a'")
        self.pair("varchar", "citext", "'a'")

    def test_collations(self):
        self.given("create collation folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        self.pair("text collate folded", "text collate folded", "'a'", code=0)
        for key, by in (("text collate folded", "text"), ('text collate "C"', "text"), ('varchar collate "C"', 'varchar collate "POSIX"')):
            with self.subTest(key=key, by=by):
                self.finding(self.pair(key, by, "'a'"), "error", "collation")

    def test_a_partitioned_source(self):
        self.given(SCHEMA)
        self.given("create table src (k integer, state text) partition by range (k); "
                   "create table src_1 partition of src for values from (0) to (10); "
                   "create table src_2 partition of src for values from (10) to (20); create index on src(k)")
        self.insert("src", (1, "open"), (11, "open"), (12, "shut"))
        self.insert("task(id, doc_id)", (1, 1), (2, 11), (3, 12), (4, 2))
        self.refused(contract(of="src_1(k)"), "is a part of public.src", "name the whole table: public.src")
        self.swept(contract(UNMATCHED, of="src(k)"), gone={"task": 2})
        self.left("task", 1, 2)

    def test_schemas(self):
        self.given(SCHEMA)
        self.given("create schema s; create table s.doc (id integer primary key); insert into s.doc values (1); insert into doc(id) values (2)")
        self.insert("task(id, doc_id)", (1, 1), (2, 2))
        self.swept(contract(of="s.doc(id)"), gone={"task": 1})
        self.left("task", 1)

    # --- what this user may see -----------------------------------------------------------------------------

    def as_role(self, grants):
        role = f"r_{self.db.name}"
        self.given(f"create role {role} login; " + grants.replace("ROLE", role))
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        return self.db.server.dsn(self.db.name, user=role)

    def refused_to(self, dsn, contract, *words):
        with self.untouched():
            r = lapse(dsn, contract, "check", "--json")
            self.assertEqual(r.code, 3, r)
            self.finding(r, "error", *words)
            for command in "plan", "sweep":
                self.assertEqual(lapse(dsn, contract, command, "--json").code, 3)

    def setup_docs(self):
        self.given(SCHEMA)
        self.given("insert into doc(id, state) values (1, 'open'), (2, 'shut'); insert into task(id, doc_id) values (1, 1), (2, 2), (3, 9)")

    def test_row_security(self):
        self.setup_docs()
        dsn = self.as_role("grant all on task, doc to ROLE; alter table doc enable row level security; "
                           "create policy few on doc using (id = 1)")
        self.refused_to(dsn, contract(), "row security hides rows of", "doc")
        self.given("alter table doc disable row level security")
        r = lapse(dsn, contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual((r.code, self.ids("task")), (0, [1, 2]), r)

    def test_privileges(self):
        self.setup_docs()
        dsn = self.as_role("grant select, delete, update on task to ROLE")
        self.refused_to(dsn, contract(), "no right to select", "doc", "grant select")
        self.given(f"grant select on doc to r_{self.db.name}")
        self.refused_to(dsn, contract(UNMATCHED), "no right to update", "doc", "grant update", "locking rows")
        r = lapse(dsn, contract(), "sweep", "--json", "--now", NOW)         # no source row is locked: SELECT is enough
        self.assertEqual((r.code, self.ids("task")), (0, [1, 2]), r)
        self.given(f"grant update (state) on doc to r_{self.db.name}")
        r = lapse(dsn, contract(UNMATCHED), "sweep", "--json", "--now", NOW)
        self.assertEqual((r.code, self.ids("task")), (0, [1]), r)

    def test_foreign_and_inherited_sources(self):
        self.setup_docs()
        self.given("create table more () inherits (doc)")
        self.refused(contract(), "inherit from")
        self.given("insert into more values (1)")
        self.refused(contract(of="more(id)"), "is a part of public.doc")
        self.given("drop table more; create materialized view m as select * from doc")
        self.refused(contract(of="m(id)"), "is a view")

    def test_a_function_that_writes(self):
        self.setup_docs()
        self.given("create function eat(n integer) returns boolean language plpgsql as "
                   "$$ begin delete from doc where id = n; return true; end $$")
        for when in "deleted", "deleted_or_unmatched":
            self.refused(contract(f", matching: eat(this.id), delete_when: {when}"), "read-only")

    def test_no_source_row_is_fetched_and_an_index_is_enough(self):
        self.setup_docs()
        self.given("insert into doc(id) select i from generate_series(10, 20000) i; "
                   "insert into task(id, doc_id) select i, i from generate_series(10, 20000) i; delete from doc where id % 100 = 0; "
                   "analyze")
        self.swept(contract(), gone={"task": 201})
