"""Odd schemas and contracts that once deleted what they must not, half of something, or more than they said."""
import json
import time

from harness import *

FAR = MS + DAY


@every_engine
class PutBack(Case):
    """A trigger that puts back what was deleted: the row stays whole, and is not counted."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table t (id integer primary key, at_ms bigint);
            create table c (id integer primary key, t_id integer);
            """)
        self.insert("t", (1, 0), (2, 0))
        self.insert("c", (11, 1), (21, 2))

    def after_delete(self, table, columns, when, kind="trigger", timing=""):
        values = ", ".join(f"old.{c}" for c in columns)
        if self.on_postgres:
            self.given(f"""
                create function again() returns trigger language plpgsql as
                $$ begin insert into {table} values ({values}); return null; end $$;
                create {kind} again after delete on {table} {timing} for each row when ({when})
                execute function again();
                """)
        else:
            self.given(f"create trigger again after delete on {table} when {when} "
                       f"begin insert into {table} values ({values}); end;")

    def refused(self, contract):
        r = self.swept(contract, gone={"t": 1, "c": 1}, same_plan=False, code=1)
        self.assertEqual([s["key"] for s in r.policy("t")["skipped"]], ["id=1"])
        self.left("t", 1)
        self.left("c", 11)

    def test_a_row_comes_back(self):
        self.after_delete("t", ("id", "at_ms"), "old.id = 1")
        self.refused("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}")

    def test_an_owned_row_comes_back(self):
        self.after_delete("c", ("id", "t_id"), "old.id = 11")
        self.refused("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}")

    def test_a_row_comes_back_when_constraints_are_checked(self):
        if not self.on_postgres:
            return
        self.after_delete("t", ("id", "at_ms"), "old.id = 1", "constraint trigger", "deferrable initially deferred")
        self.refused("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}")

    def test_a_detached_row_is_attached_again(self):
        if self.on_postgres:
            self.given("""
                create function again() returns trigger language plpgsql as
                $$ begin update c set t_id = old.t_id where id = old.id; return null; end $$;
                create trigger again after update on c for each row when (old.id = 11 and new.t_id is null)
                execute function again();
                """)
        else:
            self.given("create trigger again after update on c when old.id = 11 and new.t_id is null "
                       "begin update c set t_id = old.t_id where id = old.id; end;")
        r = self.sweep("policies: {t: {table: t, expires: at_ms, detach: [c(t_id)]}}", code=1)
        self.assertEqual([s["key"] for s in r.policy("t")["skipped"]], ["id=1"])
        self.left("t", 1)
        self.assertEqual(self.db.rows("select id, t_id from c order by id"), [(11, 1), (21, None)])


class SqliteKeys(Case, SqliteTest):
    def test_an_owned_row_without_a_key_keeps_its_owner(self):
        self.given("""
            create table t (id integer primary key, at_ms bigint);
            create table c (id text primary key, t_id integer);
            create table d (id integer primary key, c_id text);
            """)
        self.insert("t", (1, 0), (2, 0))
        self.insert("c", ("x", 1), ("y", 2), (None, 2))
        self.insert("d", (1, "x"), (2, "y"))
        r = self.sweep("policies: {t: {table: t, expires: at_ms, with: [{ref: c(t_id), with: [d(c_id)]}]}}", code=1)
        self.assertEqual(r.policy("t")["skipped"][0]["key"], "id=2")
        self.left("t", 2)
        self.left("d", 2)
        self.assertEqual(self.db.rows("select id from c order by 1"), [(None,), ("y",)])


class PostgresKeys(Case, PostgresTest):
    def test_an_index_in_another_collation_is_no_key(self):
        # 'a' and 'A' are two rows for the index, but one for a comparison with the column
        self.given("""
            create collation folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
            create table t (name text collate folded not null, at_ms bigint);
            create unique index on t (name collate "C");
            """)
        self.insert("t", ("a", 0), ("A", FAR))
        r = self.check("policies: {t: {table: t, expires: at_ms}}", code=3)
        self.finding(r, "error", "no key that tells its rows apart")
        with self.untouched():
            self.sweep("policies: {t: {table: t, expires: at_ms}}", code=3)


@every_engine
class ConditionsOnOtherTables(Case):
    """A condition on an owned row that names what only the swept table has is not one on the owned row."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table t (id integer primary key, status text, state text, at_ms bigint);
            create table c (id integer primary key, t_id integer, state text);
            create table d (id integer primary key, c_id integer);
            """)
        self.insert("t", (1, "done", "done", 0))
        self.insert("c", (1, 1, "open"))
        self.insert("d", (1, 1))

    def refused(self, keys):
        contract = f"policies: {{t: {{table: t, expires: at_ms, {keys}}}}}"
        self.finding(self.check(contract, code=3), "error", "does not accept")
        with self.untouched():
            self.sweep(contract, code=3)

    def test_with(self):
        self.refused("""with: [{ref: c(t_id), where: "status = 'done'", with: [d(c_id)]}]""")

    def test_with_by_the_quoted_name_of_this(self):
        self.refused("""with: [{ref: c(t_id), where: '"this".state = ''done''', with: [d(c_id)]}]""")

    def test_after(self):
        self.refused("""after: [{ref: c(t_id), where: "status = 'open'"}]""")

    def test_below_with(self):
        self.refused("""with: [{ref: c(t_id), with: [{ref: d(c_id), where: "state = 'done'"}]}]""")


class OwnedRowsThatChange(Case, PostgresTest):
    """An owned row leaves its `where` after the judgement, while its lock is waited for: its owner waits."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table t (id int primary key, parent int, state text default 'done', at_ms bigint);
            create table c (id int primary key, t_id int, state text);
            create table d (id int primary key, c_id int);
            """)
        self.insert("t(id, at_ms)", (1, 0), (2, 0))
        self.insert("c", (11, 1, "done"), (21, 2, "done"))
        self.insert("d", (111, 11), (211, 21))

    def changed_meanwhile(self, keys, change, rows=1):
        other = self.db.connect()
        with other.cursor() as c:
            c.execute("begin")
            c.execute(change)
            running = Lapse.start(self.db, f"policies: {{t: {{table: t, expires: at_ms, {keys}}}}}",
                                  "sweep", "--now", NOW, "--json")
            time.sleep(0.7)
            c.execute("commit")
        other.close()
        r = running.wait()
        self.assertEqual(r.code, 0, f"exit code of\n{r}")
        self.assertEqual(r.policy("t")["rows"], rows, f"rows of\n{r}")

    def test_a_row_that_owns_others(self):
        self.changed_meanwhile("with: [{ref: c(t_id), where: {state: done}, with: [d(c_id)]}]",
                               "update c set state = 'open' where id = 11")
        self.left("t", 1)
        self.left("c", 11)
        self.left("d", 111)

    def test_a_row_that_owns_nothing(self):
        self.given("drop table d")
        self.changed_meanwhile("with: [{ref: c(t_id), where: {state: done}}]",
                               "update c set state = 'open' where id = 11")
        self.left("t", 1)
        self.left("c", 11)

    def test_a_row_of_the_subtree(self):
        self.given("drop table c; drop table d")
        self.insert("t", (12, 1, "done", FAR), (22, 2, "done", FAR))
        self.changed_meanwhile("with: [{ref: t(parent), where: {state: done}}]",
                               "update t set state = 'open' where id = 12", rows=2)
        self.left("t", 1, 12)


@every_engine
class Scanning(Case):
    """Where a comment or a string ends is the same for lapse and for the database."""

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, kind text, at_ms bigint)")
        self.insert("t", (1, "x", 0), (2, "x", FAR))

    def contract(self, where):
        return "policies: " + json.dumps({"t": {"table": "t", "expires": "at_ms", "where": where}})

    def refused(self, where):
        with self.untouched():
            r = self.sweep(self.contract(where), code=3)
        self.assertIn("parenthesis", r.policy("t")["error"])

    def test_a_carriage_return_ends_a_comment(self):
        self.refused("false --\r) or (true")

    def test_a_string_goes_on_in_the_next_line(self):
        if not self.on_postgres:
            return
        for between in "\n", "--\n", " -- it's\n\t", "/*'*/\n":
            with self.subTest(between=between):
                self.refused(f"this.kind = E'a'{between}'\\'' ) or ('' = '' or this.kind = E'b'{between}'\\'")

    def test_comments_are_nothing(self):
        said = "this./*it's*/kind -- '\n= 'x' #)" if self.on_mariadb else "this./*it's*/kind --'\r= 'x' --)"
        self.swept(self.contract(said), gone={"t": 1})

    def test_a_tagged_string(self):
        if not self.on_postgres:
            return
        self.swept(self.contract("this.kind || ')' = $q$x)$q$"), gone={"t": 1})


@every_engine
class KeepByValues(Case):
    """Values that are written differently but are one to the column: the longest duration holds."""

    def test_numbers(self):
        self.given("create table t (id integer primary key, at_ms bigint, kind integer default 1)")
        self.insert("t(id, at_ms)", (1, MS - 2 * MINUTE), (2, MS - 25 * HOUR))
        self.swept("policies: {t: {table: t, age: at_ms, keep: {by: kind, values: {1: 24h, 01: 1m}}}}", gone={"t": 1})
        self.left("t", 1)

    def test_case(self):
        if self.on_postgres:
            self.given("create collation folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        collation = self.per_engine(postgres="folded", sqlite="nocase", mariadb="utf8mb4_general_ci")
        self.given(f"create table t (id integer primary key, at_ms bigint, kind text collate {collation} default 'Failed')")
        self.insert("t(id, at_ms)", (1, MS - 2 * MINUTE), (2, MS - 25 * HOUR))
        # it is taken for both and is neither: the longest of the two and of otherwise
        keep = "policies: {t: {table: t, age: at_ms, keep: {by: kind, values: {failed: 1m, FAILED: 24h}, otherwise: %s}}}"
        self.swept(keep % "never", gone={})
        self.swept(keep % "1m", gone={"t": 1})
        self.left("t", 1)

    def test_case_that_counts(self):
        self.given(f"create table t (id integer primary key, at_ms bigint, kind text{self.exact})")
        self.insert("t", (1, MS - 2 * MINUTE, "failed"), (2, MS - 2 * MINUTE, "FAILED"))
        self.swept("policies: {t: {table: t, age: at_ms, keep: {by: kind, values: {failed: 1m, FAILED: 24h}}}}",
                   gone={"t": 1})
        self.left("t", 2)


@every_engine
class References(Case):
    def test_a_generated_column_is_not_detached(self):
        self.given("""
            create table t (id integer primary key, at_ms bigint);
            create table c (id integer primary key, a integer, t_id integer generated always as (a + 0) stored);
            """)
        self.insert("t", (1, 0))
        self.insert("c(id, a)", (1, 1))
        r = self.check("policies: {t: {table: t, expires: at_ms, detach: [c(t_id)]}}", code=3)
        self.finding(r, "error", "cannot be detached", "generated")

    def test_floating_point_does_not_belong_to_whole_numbers(self):
        # as floating point, 2^53 and 2^53 + 1 are one
        self.given("""
            create table t (id bigint primary key, at_ms bigint);
            create table c (id integer primary key, t_id double precision);
            """)
        self.insert("t", (2 ** 53 + 1, 0), (2 ** 53, FAR))
        self.insert("c", (1, 2 ** 53))
        r = self.check("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}", code=3)
        self.finding(r, "error", "cannot be compared safely")

    def test_tables_with_the_names_of_key_sets(self):
        self.given("""
            create table lapse_set_0 (id integer primary key, at_ms bigint);
            create table lapse_set_1 (id integer primary key, t_id integer);
            create table lapse_due (id integer primary key, t_id integer);
            """)
        self.insert("lapse_set_0", (1, 0), (2, FAR))
        self.insert("lapse_set_1", (1, 1), (2, 2))
        self.insert("lapse_due", (1, 1), (2, 2))
        self.swept("""
            policies:
              t:
                table: lapse_set_0
                expires: at_ms
                with: [ { ref: lapse_set_1(t_id), with: [ lapse_due(t_id) ] } ]
            """, gone={"lapse_set_0": 1, "lapse_set_1": 1, "lapse_due": 1})


@every_engine
class Patterns(Case):
    def test_a_pattern_that_ends_in_an_escape_matches_nothing(self):
        self.given("create table t (id integer primary key, kind text, at_ms bigint)")
        self.insert("t", (1, "a\\", 0), (2, "a", 0))
        self.swept(r"policies: {t: {table: t, expires: at_ms, where: {kind: {like: 'a\'}}}}", gone={})


class SqliteClasses(Case, SqliteTest):
    def test_an_owner_that_is_text_does_not_own_a_number(self):
        self.given("""
            create table t (id primary key, at_ms bigint);
            create table c (id integer primary key, t_id integer);
            """)
        self.insert("t", ("1", 0), (1, FAR))
        self.insert("c", (1, 1))
        self.sweep("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}")
        self.assertEqual(self.db.rows("select id from t"), [(1,)])
        self.left("c", 1)


class PostgresNames(Case, PostgresTest):
    def test_an_exact_schema_wins(self):
        self.given("""
            create schema a; create schema "A";
            create table a.t (id int primary key, at_ms bigint, x int);
            create table "A".t (id int primary key, at_ms bigint, x int);
            """)
        self.insert("a.t", (1, 0, None), (2, FAR, 1))
        self.insert('"A".t', (1, 0, 1), (2, 0, 7))
        self.sweep("policies: {t: {table: a.t, expires: at_ms, with: [A.t(x)]}}")
        self.left("a.t", 2)
        self.left('"A".t', 2)


@every_engine
class OrderOfColumns(Case):
    """A composite reference without a foreign key is matched by the key's order: names that say otherwise are refused."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table t (tenant integer not null, id integer not null, at_ms bigint, primary key (tenant, id));
            create table c (k integer primary key, tenant integer, id integer);
            """)
        self.insert("t", (1, 2, 0), (2, 1, FAR))
        self.insert("c", (1, 1, 2), (2, 2, 1))

    def test_another_order_is_refused(self):
        r = self.sweep('policies: {t: {table: t, expires: at_ms, with: ["c(id, tenant)"]}}', code=3)
        self.assertIn("-> (", r.policy("t")["error"])
        self.assertEqual(len(self.db.rows("select 1 from t")), 2)

    def test_another_order_that_is_said(self):
        self.swept('policies: {t: {table: t, expires: at_ms, with: ["c(id, tenant) -> (id, tenant)"]}}',
                   gone={"t": 1, "c": 1})
        self.assertEqual(self.db.rows("select k from c"), [(2,)])


class SqliteNow(Case, SqliteTest):
    """:now is a text on SQLite, and every number is less than every text."""

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, at_ms integer, until_ms integer, until text)")
        self.insert("t", (1, 0, FAR, "2099-01-01 00:00:00"), (2, 0, 0, "2001-01-01 00:00:00"))

    def test_compared_with_a_number_it_is_refused(self):
        for hold in ("this.until_ms > :now", ":now < this.until_ms", "until_ms>=:now", 'this."until_ms" > :NOW',
                     "1 = 2 or (this.until_ms /* lease */ > :now)"):
            with self.subTest(hold):
                r = self.sweep(f"policies: {{t: {{table: t, expires: at_ms, hold: {json.dumps(hold)}}}}}", code=3)
                self.assertIn("unixepoch(:now)", r.policy("t")["error"])
                self.left("t", 1, 2)

    def test_what_it_suggests(self):
        self.swept('policies: {t: {table: t, expires: at_ms, hold: "this.until_ms > unixepoch(:now) * 1000"}}', gone={"t": 1})
        self.left("t", 1)

    def test_compared_with_text(self):
        self.swept('policies: {t: {table: t, expires: at_ms, hold: "this.until > :now"}}', gone={"t": 1})
        self.left("t", 1)
