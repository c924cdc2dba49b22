"""Every index that check says to create is proved: created as it is printed, the finding is gone, and the database reads
what it read whole by that index. Whether it does is said by its own EXPLAIN, of the statements that plan --sql shows."""
import re
import time

from daemon import eventually
from harness import Case, every_engine, every_server, lapse, not_on, on_mysql

ROWS = 20_000
KEYS = (1, 2, 3)        # what stands for the keys of a batch
OLD, NEVER = 1_600_000_000_000, 4_000_000_000_000

TABLES = """
create table tenants (id integer not null primary key, name varchar(20) not null);
create table jobs (id integer not null primary key, tenant_id integer not null, tenant varchar(20) not null, at_ms bigint not null,
                   state varchar(10) not null, n integer not null, pad varchar(60) not null);
create table steps (id integer not null primary key, job_id integer);
create table notes (id integer not null primary key, step_id integer not null);
"""


def contract(policy):
    return f"policies:\n  p: {policy}\n"


class Suggesting(Case):
    def fill(self, rows):
        """One of forty is due, and one of ten without its tenant."""
        name = self.per_engine(sqlite="'t' || n", postgres="'t' || n", mariadb="concat('t', n)")
        group = self.per_engine(sqlite="'t' || (n / 10)", postgres="'t' || (n / 10)", mariadb="concat('t', n div 10)")
        series = f"({self.series(max(rows, 1))}) AS s WHERE {rows} > 0"
        self.given(TABLES)
        self.db.execute(f"INSERT INTO tenants SELECT n, {name} FROM {series}")
        self.db.execute(f"INSERT INTO jobs SELECT n, n % 2000, {group}, CASE n % 40 WHEN 0 THEN {OLD} ELSE {NEVER} END + n * 1000, "
                        f"CASE n % 4 WHEN 0 THEN 'done' WHEN 1 THEN 'failed' ELSE 'open' END, n, "
                        f"'some more text, so that rows have a size' FROM {series}")
        self.db.execute(f"INSERT INTO steps SELECT n, n FROM {series}")
        self.db.execute(f"INSERT INTO notes SELECT n, n FROM {series}")
        self.analyze()

    def clear(self):
        self.db.script("drop table jobs; drop table steps; drop table notes; drop table tenants")

    def analyze(self):
        for table in ("tenants", "jobs", "steps", "notes"):
            self.db.execute(self.per_engine(sqlite=f"ANALYZE {table}", postgres=f"ANALYZE {table}", mariadb=f"ANALYZE TABLE {table}"))

    def findings(self, policy):
        """What check says of indexes: [(what, fix)]."""
        found = lapse(self.db, contract(policy), "check", "--json").json["findings"]
        return [(f["what"], f.get("fix", "")) for f in found if "index" in f["what"] or "CREATE INDEX" in f.get("fix", "")]

    def create(self, fix):
        """As it is printed. PostgreSQL lets an index be built CONCURRENTLY only outside of a transaction."""
        self.assertRegex(fix, "^CREATE INDEX ")
        self.db.execute(fix)

    # --- what the database says of a statement ---

    def statements(self, policy):
        """What plan --sql shows: [(title, statement with values)]."""
        shown = lapse(self.db, contract(policy), "plan", "--sql").out
        blocks = re.findall(r"^-- (.*)\n((?:SELECT|DELETE|UPDATE|SET)[^;]*);\n((?:--   \d+ = .*\n)*)", shown, re.M)
        self.assertTrue(blocks, shown)
        return [(title, self.with_values(sql, re.findall(r"^--   (\d+) = (.*)$", values, re.M))) for title, sql, values in blocks]

    def with_values(self, sql, values):
        keys = ", ".join(map(str, KEYS))
        for n, value in reversed(values):
            if value.startswith("keys of set"):
                row = "ROW" if on_mysql() else ""
                sql = sql.replace(f"VALUES ?{n})", "VALUES " + ", ".join(f"{row}({k})" for k in KEYS) + ")")
                value = f"'{{{keys}}}'" if self.engine == "postgres" else keys
            elif not re.fullmatch(r"-?\d+", value):
                value = f"'{value}'"
            sql = re.sub(rf"[$?]{n}\b", lambda _: value, sql)
        pairs = " UNION ALL ".join(f"SELECT {k} AS c0, {k} AS c1" for k in KEYS)
        sql = re.sub(r"^SET STATEMENT .*? FOR ", "", sql)       # of which there is no EXPLAIN
        return re.sub(r"temp\.lapse_set_\d+", f"({pairs})", sql)

    def reads(self, statement, alias):
        """How the rows of an alias (a pattern) are found: "whole" or "index"; and the words that say so."""
        if self.engine == "sqlite":
            words = [r[3] for r in self.db.rows("EXPLAIN QUERY PLAN " + statement)]
            found = [w for w in words if re.match(rf"(SCAN|SEARCH) ({alias})\b", w)]
            whole = [w for w in found if w.startswith("SCAN")]
        elif self.engine == "postgres":
            words = [r[0] for r in self.db.rows("EXPLAIN " + statement)]
            found = [w for w in words if re.search(rf"Scan.* on \w+ ({alias})\b", w)]
            whole = [w for w in found if "Seq Scan" in w]
        else:
            words = [tuple(map(str, r)) for r in self.db.rows("EXPLAIN FORMAT=TRADITIONAL " + statement)]
            found = [w for w in words if re.fullmatch(alias, w[2])]
            whole = [w for w in found if w[-7 if len(w) == 10 else -8] in ("ALL", "index")]
        self.assertTrue(found, (statement, words))
        return "whole" if whole else "index", words


@every_engine
class Suggested(Suggesting):
    # The title of a statement, and the alias that is read whole there as long as the index is missing.
    DUE, JUDGED = (r"(find|pick and lock) due rows", "this"), ("judge again", "lapse_1")
    RANKED = ("judge again", "lapse_3")

    def statement(self, policy, title):
        found = [sql for t, sql in self.statements(policy) if re.search(title, t)]
        self.assertTrue(found, (title, self.statements(policy)))
        return found[0]

    def read(self, policy, how, reads):
        for title, alias in reads:
            found, words = self.reads(self.statement(policy, title), alias)
            self.assertEqual(found, how, (title, words))

    def proved(self, policy, suggestions, *reads):
        self.fill(ROWS)
        said = self.findings(policy)
        self.assertEqual(len(said), suggestions, said)
        self.read(policy, "whole", reads)
        for _, fix in said:
            self.create(fix)
        self.analyze()
        self.assertEqual(self.findings(policy), [])
        self.read(policy, "index", reads)

    def test_expires(self):
        self.proved("{ table: jobs, expires: at_ms }", 1, self.DUE)

    def test_age(self):
        self.proved("{ table: jobs, age: at_ms, keep: 1h }", 1, self.DUE)

    def test_age_of_a_state(self):
        self.proved("{ table: jobs, rows: { state: done }, age: at_ms, keep: 1h }", 1, self.DUE)

    def test_age_of_several_states(self):
        self.proved("{ table: jobs, rows: { state: [done, failed] }, age: at_ms, keep: 1h }", 1, self.DUE)

    def test_what_is_owned(self):
        self.proved("{ table: jobs, expires: at_ms, with: [ { ref: steps(job_id), with: [notes(step_id)] } ] }", 3, self.DUE,
                    (r"owned rows of \S*steps", "this"), (r"owned rows of \S*notes", "this|notes"))

    def test_what_is_detached(self):
        self.proved("{ table: jobs, expires: at_ms, detach: [steps(job_id)] }", 2, self.DUE, (r"\bsteps", "this"))

    def test_what_comes_first(self):
        self.proved("{ table: jobs, expires: at_ms, after: [steps(job_id)] }", 2, self.JUDGED)

    def test_orphan(self):
        self.proved("{ table: jobs, age: at_ms, keep: 1h, orphan: { of: tenants(name), by: tenant } }", 1, self.JUDGED)

    def test_cap(self):
        self.proved("{ table: jobs, cap: { rows: 5, per: tenant_id, newest: at_ms } }", 1, self.RANKED)

    def test_keep_newest(self):
        self.proved("{ table: jobs, age: at_ms, keep: 1h, keep_newest: { rows: 5, per: tenant_id, newest: at_ms } }", 1, self.RANKED)


@every_engine
class Short(Suggesting):
    """A database rightly reads a short table whole, whatever its indexes: no reason to warn."""

    POLICIES = ("{ table: jobs, expires: at_ms }", "{ table: jobs, rows: { state: done }, age: at_ms, keep: 1h }",
                "{ table: jobs, rows: { state: [done, failed] }, age: at_ms, keep: 1h }",
                "{ table: jobs, where: { pad: { like: 'x%' } }, age: at_ms, keep: 1h }")

    def quiet(self, rows):
        """All are due: then least of all an index helps."""
        for policy in self.POLICIES:
            with self.subTest(policy=policy):
                self.fill(rows)
                self.db.execute(f"UPDATE jobs SET at_ms = {OLD} + n")
                (_, fix), = self.findings(policy)
                self.create(fix)
                self.analyze()
                self.assertEqual(self.findings(policy), [])
                self.clear()

    def test_an_empty_table(self):
        self.quiet(0)

    def test_a_row(self):
        self.quiet(1)

    def test_a_few_rows(self):
        self.quiet(50)

    def test_an_index_with_states_first_serves_them(self):
        for rows in (0, 3):
            with self.subTest(rows=rows):
                self.fill(rows)
                self.db.execute("CREATE INDEX jobs_by_state ON jobs (state, at_ms, id)")
                self.db.execute(f"UPDATE jobs SET at_ms = {OLD} + n")
                self.assertEqual(self.findings(self.POLICIES[1]) + self.findings(self.POLICIES[2]), [])
                self.clear()


@every_engine
class Unserved(Suggesting):
    """An index that is there, and does not help."""
    POLICY = "{ table: jobs, expires: at_ms }"

    def test_another_column_leads(self):
        for rows in (3, 2000):
            with self.subTest(rows=rows):
                self.fill(rows)
                self.db.execute("CREATE INDEX jobs_other ON jobs (n, at_ms, id)")
                (what, fix), = self.findings(self.POLICY)
                self.assertIn("no index of", what)
                self.create(fix)
                self.assertEqual(self.findings(self.POLICY), [])
                self.clear()

    @not_on("sqlite", "it sorts rows of one time alone")
    @not_on("postgres", "it sorts rows of one time alone")
    def test_something_else_than_the_key_stands_behind_the_time(self):
        """All that is due would be sorted for each batch."""
        for rows in (3, 2000):
            with self.subTest(rows=rows):
                self.fill(rows)
                self.db.execute("CREATE INDEX a_first ON jobs (at_ms, n)")
                (what, fix), = self.findings(self.POLICY)
                self.assertRegex(what, "the index a_first leads to at_ms, but the database cannot find due rows by it: .*filesort")
                self.create(fix)
                self.assertEqual(self.findings(self.POLICY), [])
                self.clear()

    @not_on("mariadb", "an index compares as its column does")
    @not_on("sqlite", "an index that compares otherwise is none of the column")
    def test_it_compares_otherwise(self):
        """Byte by byte, which is not how the column's texts compare."""
        policy = "{ table: visits, expires: at }"
        for rows in (3, 2000):
            with self.subTest(rows=rows):
                self.given("create table visits (id integer not null primary key, at text not null)")
                self.db.execute(f"INSERT INTO visits SELECT n, '2020-01-01T00:00:00Z' FROM ({self.series(rows)}) AS s")
                self.db.execute("CREATE INDEX bytewise ON visits (at text_pattern_ops)")
                (what, fix), = self.findings(policy)
                self.assertIn("the index bytewise leads to at, but the database cannot find due rows by it: ", what)
                self.create(fix)
                self.assertEqual(self.findings(policy), [])
                self.given("drop table visits")

    @not_on("mariadb", "an index serves whoever may see it")
    @not_on("sqlite", "nobody else is there while an index is made")
    def test_it_is_newer_than_a_transaction(self):
        """PostgreSQL lets nobody use an index that rows were changed ahead of, until all that saw them before have ended."""
        self.fill(50)
        other = self.db.connect()
        self.addCleanup(other.close)
        cursor = other.cursor()
        cursor.execute("BEGIN")
        cursor.execute("SELECT txid_current()")
        self.db.execute("UPDATE jobs SET at_ms = at_ms + 1 WHERE id = 3")
        self.db.execute("CREATE INDEX jobs_due ON jobs (at_ms, id)")
        (what, fix), = self.findings(self.POLICY)
        self.assertIn("the index jobs_due leads to at_ms, but the database does not use it as long as transactions run that began "
                      "before it was made: ", what)
        self.assertEqual(fix, "wait until those have ended, then run lapse check again")
        cursor.execute("COMMIT")
        eventually(lambda: self.findings(self.POLICY) == [])

    @not_on("mariadb", "an index serves whoever may see it")
    @not_on("sqlite", "nobody else is there while an index is made")
    def test_it_was_newer_than_a_transaction(self):
        """Which is over, and the index is of no use all the same."""
        self.given("create table visits (id integer not null primary key, at text not null)")
        self.db.execute("INSERT INTO visits SELECT n, '2020-01-01T00:00:00Z' FROM generate_series(1, 50) n")
        with self.db.connect() as other, other.cursor() as cursor:
            cursor.execute("SELECT txid_current()")
            self.db.execute("UPDATE visits SET at = at || '' WHERE id = 3")
            self.db.execute("CREATE INDEX bytewise ON visits (at text_pattern_ops)")
        self.assertEqual(self.db.rows("SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'bytewise'::regclass"), [(True,)])

        def said():
            (what, _), = self.findings("{ table: visits, expires: at }")
            return "the database cannot find due rows by it: " in what
        eventually(said)


@every_server
class Held(Suggesting):
    def test_rows_that_others_hold_are_not_waited_for(self):
        """To be explained is not to be carried out: nothing is locked, nor waited for."""
        self.fill(50)
        self.db.execute("CREATE INDEX jobs_due ON jobs (at_ms, id)")
        connection = self.db.connect()
        self.addCleanup(connection.close)
        other = connection.cursor()
        other.execute("BEGIN")
        other.execute("SELECT id FROM jobs FOR UPDATE")
        start = time.monotonic()
        self.assertEqual(self.findings("{ table: jobs, expires: at_ms }"), [])
        self.assertLess(time.monotonic() - start, 4)    # less than it would wait for a lock
        other.execute("UPDATE jobs SET n = n + 1")
        other.execute("COMMIT")
