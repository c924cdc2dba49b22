"""Tables that nothing in the contract names: listed, and where they cannot grow, with the line to paste."""
import re

from harness import *

CONTRACT = "policies: {t: {table: t, expires: at_ms}}\n"


class Coverage(Case):
    def open(self, *options, contract=CONTRACT, code=None):
        """{table: fix} of the tables that check says nothing names."""
        r = self.check(contract, *options, code=code)
        self.result = r
        found = {}
        for f in r.json["findings"]:
            named = re.match(rf"table '(?:{self.schema})?(.*)' has no policy and no unbounded line$", f["what"])
            if named:
                self.assertEqual(f["level"], "error" if "--strict" in options else "note")
                found[named.group(1)] = f["fix"]
        return found

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, at_ms bigint)")

    def bounded(self, definition, words, before=""):
        """A table `b (definition)` is suggested with these words, and the line given is taken."""
        self.given(f"drop table if exists b; {before}; create table b ({definition})")
        fix = self.open()["b"]
        line = re.search(r"add to unbounded the line  (.*)$", fix)
        self.assertTrue(line, f"{definition}: {fix}")
        self.assertIn(words, line.group(1), definition)
        self.assertEqual(self.open("--strict", contract=f"{CONTRACT}unbounded:\n  {line.group(1)}\n", code=0), {})

    def unbounded(self, definition, before="", after=""):
        self.given(f"drop table if exists b; {before}; create table b ({definition}); {after}")
        self.assertIn("add a policy", self.open()["b"], definition)


@every_engine
class Keys(Coverage):
    def test_singletons(self):
        for definition, words in [
                ("id integer primary key check (id = 1), v text", "b: singleton primary key (id = 1)"),
                ("id integer primary key check (1 = id)", "singleton primary key (id = 1)"),
                ("id integer primary key check (id in (1))", "singleton primary key (id = 1)"),
                ("id integer primary key, v text, check (v <> '' and (id = 1))", "singleton primary key (id = 1)"),
                ("id integer, constraint one check (id=1), constraint pk primary key (id)", "(id = 1)"),
                (f"id text{self.exact} not null unique check (id = 'it''s')", "singleton unique key (id = 'it''s')"),
                ("\"Odd id\" integer not null primary key check (\"Odd id\" = 7)", "(Odd id = 7)"),
                ("id varchar(9) not null primary key check (id = 'x')", "singleton primary key (id = 'x')"),
                ("id integer primary key check (id in (1, 2, 3))", "at most 3 rows"),
                *([] if self.on_mariadb else       # there such a column is never NOT NULL
                  [("a integer, id integer not null unique generated always as (1) stored", "singleton unique key (id = 1)")]),
        ]:
            with self.subTest(definition):
                self.bounded(definition, words)

    def test_not_taken_for_bounded(self):
        for definition in [
                "id integer primary key check (id >= 1)",
                "id integer primary key check (id = 1 or v = 'x'), v text",
                "id integer primary key check (id <> 1)",
                "id integer primary key, v integer check (v = 1)",
                "id integer unique check (id = 1)",                         # NULL, any number of times
                "id integer check (id = 1)",                                # no key
                "id integer not null check (id = 1), v integer not null, primary key (id, v)",
                "id integer primary key default 1",
                "id integer primary key check (coalesce(id = 1, true))",
                "id integer primary key check (id = v), v integer",
                "id text primary key, v text default 'check (id = 1)'",
                "id integer primary key, v text /* check (id = 1) */",
                "id integer primary key, v text -- check (id = 1)\n",
                "id integer not null unique, a integer, v integer generated always as (a + 1) stored",
        ]:
            with self.subTest(definition):
                self.unbounded(definition)

    @not_on("mariadb", "it has no partial index")
    def test_a_partial_key_is_none(self):
        self.unbounded("id integer not null check (id = 1), v integer",
                       after="create unique index b_id on b (id) where v > 0")

    def test_covered_tables_are_not_spoken_of(self):
        self.given("create table b (id integer primary key check (id = 1), t_id integer)")
        for line in ("unbounded: {b: small}", "policies: {t: {table: t, expires: at_ms, with: [b(t_id)]}}"):
            contract = line if line.startswith("policies") else CONTRACT + line
            self.assertEqual(self.open(contract=contract), {}, self.result)
            self.no_finding(self.result, "cannot grow")

    def test_a_line_beside_a_policy(self):
        self.assertEqual(self.open("--strict", contract=CONTRACT + "unbounded: {t.sent: deleted inline}", code=0), {})
        self.assertEqual(self.result.json["warnings"], 0 + self.result.out.count("no index"), self.result)

    def test_an_undecided_line(self):
        self.given("create table b (id integer primary key)")
        contract = CONTRACT + 'unbounded: {b: "?"}'
        r = self.check(contract, code=0)
        self.finding(r, "warning", "'b' does not say why")
        self.finding(self.check(contract, "--strict", code=3), "error", "'b' does not say why")

    def test_in_text(self):
        self.given("create table models_dev_cache (id integer primary key check (id = 1))")
        r = self.lapse(CONTRACT, "check", code=0)
        self.assertIn("models_dev_cache: singleton primary key (id = 1)", r.out)


class OnSqlite(Coverage, SqliteTest):
    def test_as_sqlite_writes_it(self):
        for definition, words in [
                ("id integer primary key check ([id] == 1)", "(id = 1)"),
                ("id integer primary key CHECK(`ID` IS 1)", "(id = 1)"),
                ("id /* ( */ integer primary key -- ,check(\n, v varchar(10) check (v <> ')'), check (id = 1)", "(id = 1)"),
                ("id boolean not null unique check (id = true)", "(id = true)"),
                ("a varchar(3), one integer not null unique as (1)", "(one = 1)"),
        ]:
            with self.subTest(definition):
                self.bounded(definition + "\n", words)

    def test_without_rowid(self):       # there a primary key admits no NULL
        self.given("create table b (id text primary key check (id = 'x')) without rowid")
        self.assertIn("b: singleton primary key (id = 'x')", self.open()["b"])

    def test_not_as_sqlite_reads_it(self):
        for definition in [
                "id text primary key check (id = 'x')",         # NULL is a key there
                "id boolean not null primary key",              # any number
                "id boolean not null primary key check (id)",
                "id boolean not null primary key check (id is true)",
                'id text not null primary key check (id = "x")',
                "id text collate nocase not null check (id = 'x'), unique (id collate binary)",
        ]:
            with self.subTest(definition):
                self.unbounded(definition)


class OnPostgres(Coverage, PostgresTest):
    def test_as_postgres_writes_it(self):
        mood = "drop type if exists mood cascade; create type mood as enum ('happy', 'sad', 'so so')"
        for definition, words, before in [
                ("id boolean primary key check (id)", "singleton primary key (id = true)", ""),
                ("id boolean primary key default true check (id = true)", "singleton primary key (id = true)", ""),
                ("id boolean primary key", "boolean primary key (id), at most 2 rows", ""),
                ("id mood primary key", "enum primary key (id), at most 3 rows", mood),
                ("id mood primary key check (id = 'so so')", "singleton primary key (id = 'so so')", mood),
                ("id smallint primary key check (id = -1)", "singleton primary key (id = ", ""),
                ("id char(3) primary key check (id = 'x')", "singleton primary key (id = 'x')", ""),
                ("id varchar primary key check (id in ('a', 'b'))", "at most 2 rows", ""),
                ("id boolean not null unique generated always as (true) stored", "singleton unique key (id = true)", ""),
                ("id integer primary key deferrable initially deferred check (id = 1)", "(id = 1)", ""),
        ]:
            with self.subTest(definition):
                self.bounded(definition, words, before)

    def test_not_valid(self):
        self.unbounded("id integer primary key", after="alter table b add check (id = 1) not valid")

    def test_inheritors(self):
        self.given("drop table if exists b; create table b (id integer primary key check (id = 1)); "
                   "create table kid () inherits (b)")
        self.assertIn("add a policy", self.open()["b"])
        self.assertIn("add a policy", self.open()["kid"])       # its key was not inherited

    def test_boolean_that_may_be_null(self):
        self.unbounded("id boolean unique")
        self.unbounded("id boolean unique check (id)")


class Told(Coverage, SqliteTest):
    """For people: what is wrong is not lost among tables that nothing names."""
    def said(self, *options, contract=CONTRACT):
        return self.lapse(contract, "check", *options).out

    def test_several_are_one_line(self):
        self.given("create table a (id integer primary key); create table b (id integer primary key)")
        out = self.said()
        self.assertIn("2 tables have no policy and no unbounded line\n         fix: lapse check -v lists them", out)
        self.assertNotIn("'a'", out)
        for option in ("-v", "--verbose"):
            out = self.said(option)
            self.assertIn("table 'a' has no policy and no unbounded line\n", out)
            self.assertIn("table 'b' has no policy and no unbounded line\n", out)
        self.assertIn("error    ", self.said("--strict"))
        self.assertIn("table 'a' has", self.said("--strict"))

    def test_one_is_told_by_its_name(self):
        self.given("create table a (id integer primary key)")
        self.assertIn("table 'a' has no policy and no unbounded line\n", self.said())

    def test_the_statements_alone(self):
        self.given("create table a (id integer primary key)")
        self.insert("t", *((n, n) for n in range(1, 200)))
        two = "policies: {t: {table: t, expires: at_ms}, again: {table: t, expires: at_ms}}"
        self.assertEqual(self.said("--sql", contract=two), "CREATE INDEX t_at_ms_id ON t (at_ms, id);\n")
        self.db.script(self.said("--sql"))
        self.assertEqual(self.said("--sql", contract=two), "")
