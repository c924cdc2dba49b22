"""In which order rows are found, and why; whether the index that check names serves."""
import json
import re

from harness import Case, every_engine, lapse

ROWS = 12000


def contract(policy):
    return "policies:\n  p: " + policy + "\n"


@every_engine
class Walks(Case):
    """The same rows go, whichever way they are found."""

    def fill(self, scattered, columns="", values=""):
        """Six of ten are due; in the order of the key they are as old as their neighbours, or anything."""
        self.db.execute(f"CREATE TABLE jobs (id integer NOT NULL PRIMARY KEY, at_ms bigint NOT NULL, pad varchar(40)"
                        f"{columns})")
        rank = f"(n * {'7919' if scattered else '1'}) % {ROWS}"
        age = f"CASE WHEN {rank} < {ROWS * 6 // 10} THEN 1600000000000 ELSE 4000000000000 END + {rank} * 1000"
        self.db.execute(f"INSERT INTO jobs SELECT n, {age}, 'some more text in each row'{values} FROM ({self.series(ROWS)}) AS s")

    def analyze(self):
        self.db.execute(self.per_engine(sqlite="ANALYZE", postgres="ANALYZE jobs", mariadb="ANALYZE TABLE jobs"))

    def found(self, policy):
        r = lapse(self.db, contract(policy), "plan", "--json")
        self.assertEqual(r.code, 0, r)
        return json.loads(r.out)["policies"][0]["found"]

    def sweep(self, policy, due):
        stay = {r[0] for r in self.db.rows(f"SELECT id FROM jobs WHERE NOT ({due})")}
        r = lapse(self.db, contract(policy), "sweep")
        self.assertEqual(r.code, 0, r)
        self.assertEqual({r[0] for r in self.db.rows("SELECT id FROM jobs")}, stay)

    def test_rows_that_lie_as_the_index_has_them_are_found_by_it(self):
        self.fill(False)
        self.db.execute("CREATE INDEX jobs_at ON jobs (at_ms, id)")
        self.analyze()
        policy = "{ table: jobs, expires: at_ms, batch: 700 }"
        self.assertEqual(self.found(policy)["by"], "index")
        self.sweep(policy, "at_ms < 3000000000000")

    def test_a_large_part_that_lies_anywhere_is_found_as_it_lies(self):
        self.fill(True)
        self.db.execute("CREATE INDEX jobs_at ON jobs (at_ms, id)")
        self.analyze()
        policy = "{ table: jobs, expires: at_ms, batch: 700 }"
        found = self.found(policy)
        self.assertEqual(found["by"], self.per_engine(sqlite="key", postgres="place", mariadb="key"))
        self.assertIn("jobs_at", found["text"])
        self.sweep(policy, "at_ms < 3000000000000")

    def test_a_small_part_is_found_by_the_index_wherever_it_lies(self):
        self.fill(True)
        self.db.execute("CREATE INDEX jobs_at ON jobs (at_ms, id)")
        self.db.execute("UPDATE jobs SET at_ms = at_ms + 2400000000000 WHERE at_ms < 1700000000000 AND id % 20 <> 0")
        self.analyze()
        policy = "{ table: jobs, expires: at_ms, batch: 100 }"
        self.assertEqual(self.found(policy)["by"], "index")
        self.sweep(policy, "at_ms < 3000000000000")

    def test_without_an_index_the_table_is_walked_once(self):
        self.fill(True)
        self.analyze()
        for policy in ("{ table: jobs, expires: at_ms, batch: 333 }",):
            found = self.found(policy)
            self.assertEqual(found["by"], self.per_engine(sqlite="key", postgres="place", mariadb="key"))
            self.assertIn("no index", found["text"])
            self.sweep(policy, "at_ms < 3000000000000")

    def test_gaps_of_blocks_without_a_due_row_are_passed(self):
        self.fill(False)
        self.db.execute(f"UPDATE jobs SET at_ms = 4000000000000 WHERE id BETWEEN 100 AND {ROWS - 50}")
        self.db.execute("UPDATE jobs SET at_ms = 1600000000000 WHERE id > 11990")
        self.sweep("{ table: jobs, expires: at_ms, batch: 3 }", "at_ms < 3000000000000")

    def test_a_batch_of_one_and_all_in_one(self):
        for batch in ("1", "null"):
            with self.subTest(batch=batch):
                self.fill(True)
                self.db.execute("DELETE FROM jobs WHERE id > 300")
                self.sweep(f"{{ table: jobs, expires: at_ms, batch: {batch} }}", "at_ms < 3000000000000")
                self.db.execute("DROP TABLE jobs")

    def test_several_states_are_found_by_their_index(self):
        self.fill(False, ", state varchar(10) NOT NULL DEFAULT 'x'", ", CASE n % 4 WHEN 0 THEN 'done' WHEN 1 THEN "
                                                                   "'failed' WHEN 2 THEN 'going' ELSE 'open' END")
        self.db.execute("CREATE INDEX jobs_state_at ON jobs (state, at_ms, id)")
        self.analyze()
        policy = "{ table: jobs, rows: { state: [open, done] }, expires: at_ms, batch: 500, hold: { pad: nothing } }"
        self.assertEqual(self.found(policy)["by"], "index")
        self.sweep(policy, "at_ms < 3000000000000 AND state IN ('done', 'open')")


@every_engine
class Suggestions(Case):
    """What check says to create makes the due query a range of that index."""
    BOUNDS = {
        "expires": "{ table: jobs, expires: at_ms }",
        "age": "{ table: jobs, age: at_ms, keep: 1h }",
        "inclusive": "{ table: jobs, age: at_ms, keep: 1h, inclusive: true }",
        "state": "{ table: jobs, rows: { state: done }, age: at_ms, keep: 1h }",
        "states": "{ table: jobs, rows: { state: [done, failed] }, age: at_ms, keep: 1h }",
        "where": "{ table: jobs, where: { n: { gte: 3 } }, age: at_ms, keep: 1h }",
        "keep by": "{ table: jobs, age: at_ms, keep: { by: state, values: { done: 1h, failed: 2h } } }",
        "keep column": "{ table: jobs, age: at_ms, keep: { column: n, unit: s } }",
    }

    def test_every_bound(self):
        for name, policy in self.BOUNDS.items():
            with self.subTest(bound=name):
                self.db.execute("CREATE TABLE jobs (id integer NOT NULL PRIMARY KEY, at_ms bigint NOT NULL, "
                                "state varchar(10) NOT NULL, n integer NOT NULL)")
                self.db.execute(f"INSERT INTO jobs SELECT n, 1600000000000 + n * 1000, CASE n % 2 WHEN 0 THEN 'done' ELSE "
                                f"'failed' END, n FROM ({self.series(2000)}) AS s")
                r = lapse(self.db, contract(policy), "check", "--json")
                said = [f for f in json.loads(r.out)["findings"] if "serves the search" in f["what"]]
                self.assertEqual(len(said), 1, r)
                self.db.execute(re.sub(" CONCURRENTLY", "", said[0]["fix"]))
                r = lapse(self.db, contract(policy), "check", "--json")
                self.assertEqual([f["what"] for f in json.loads(r.out)["findings"] if "index" in f["what"]], [], r)
                self.assertRangeScan(policy)
                self.db.execute("DROP TABLE jobs")

    def test_an_index_of_the_time_alone_serves(self):
        """Rows of one time are sorted by their key, and no others: nothing to be warned of."""
        self.db.execute("CREATE TABLE leases (name varchar(20) NOT NULL PRIMARY KEY, ends_at_ms bigint NOT NULL)")
        self.db.execute("CREATE INDEX leases_end ON leases (ends_at_ms)")
        self.db.execute(f"INSERT INTO leases SELECT concat_('l', n), 1600000000000 + n FROM ({self.series(2000)}) AS s"
                        .replace("concat_('l', n)", self.per_engine(mariadb="concat('l', n)", sqlite="'l' || n", postgres="'l' || n")))
        r = lapse(self.db, contract("{ table: leases, expires: ends_at_ms }"), "check", "--json")
        self.assertEqual([f["what"] for f in json.loads(r.out)["findings"] if "index" in f["what"]], [], r)

    def assertRangeScan(self, policy):
        """By the database's own words, for the statement that plan --sql shows."""
        shown = lapse(self.db, contract(policy), "plan", "--sql").out
        pick = re.search(r"^SELECT.*?;$", shown, re.M | re.S).group(0).rstrip(";")
        values = re.findall(r"^--   \d+ = (.*)$", shown.split(pick)[1].split("\n\n")[0], re.M)
        for n, value in reversed(list(enumerate(values, 1))):
            value = value if re.fullmatch(r"-?\d+", value) else f"'{value}'"
            pick = re.sub(rf"[$?]{n}\b", value, pick)
        if self.engine == "postgres":
            self.db.execute("SET enable_seqscan = off")
            self.db.execute("SET enable_bitmapscan = off")
            words = "\n".join(r[0] for r in self.db.rows("EXPLAIN " + pick))
            self.assertRegex(words, r"Index (Only )?Scan")
            self.assertNotRegex(words, r"Sort|Seq Scan")
        elif self.engine == "sqlite":
            words = "\n".join(r[3] for r in self.db.rows("EXPLAIN QUERY PLAN " + pick))
            self.assertRegex(words, "SEARCH this USING")
            self.assertNotIn("TEMP B-TREE", words)
        else:
            name = [r[0] for r in self.db.rows("SELECT DISTINCT index_name FROM information_schema.statistics WHERE "
                    "table_schema = database() AND table_name = 'jobs' AND index_name <> 'PRIMARY'")][0]
            words = str(self.db.rows("EXPLAIN " + pick.replace(" AS this", f" AS this FORCE INDEX ({name})")))
            self.assertIn("'range'", words)
            self.assertNotIn("filesort", words)
