"""Equality: where being equal lets a row go, a text is the very same; where it keeps a row, what the column takes for it is enough."""
import re

from harness import *

WORDS = ["closed", "CLOSED", "Closed", "closed ", "CLOSED  ", "clösed", " closed", "open"]
MIN, OLD = 60_000, MS - 10 * HOUR

# Columns that take texts that differ for equal; the first is used where one is enough.
FOLDING = {
    "sqlite": ["text collate nocase", "text collate rtrim", "varchar(20) collate NoCase"],
    "postgres": ["citext", "text collate folds", "varchar(20) collate level1", "tag"],
    "mariadb": ["varchar(20)", "varchar(20) collate utf8mb4_bin", "varchar(20) collate utf8mb4_unicode_520_ci",
                "varchar(20) character set latin1", "text collate utf8mb4_general_nopad_ci"],
}


class Folding(Case):
    def setUp(self):
        super().setUp()
        if self.on_postgres:
            self.given("create extension citext; create domain tag as citext;"
                       "create collation folds (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
                       "create collation level1 (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
        self.given("create table o (id integer primary key)")

    def taken(self, condition, table="t"):
        return {r[0] for r in self.db.rows(f"select id from {table} where {condition}")}

    def fill(self, table, column, more=()):
        """A table (id, s, at_ms) of rows that are long due; all their ids."""
        self.given(f"drop table if exists {table}; create table {table} (id integer primary key, s {column}, at_ms bigint)")
        rows = [*enumerate([*WORDS, None], 1), *more]
        self.insert(table, *((n, w, OLD) for n, w in rows))
        return {n for n, _ in rows}

    def each(self):
        """For each kind of column a table t: what s = 'closed' finds in it."""
        for column in FOLDING[self.engine]:
            self.fill("t", column)
            taken = self.taken("s = 'closed'")
            self.assertGreater(len(taken), 1, f"{column} folds nothing: the test says nothing")
            yield column, taken

    def judged(self, cases, more=()):
        """cases: of what s = 'closed' finds and of all rows, a list of (a policy's words, the rows that go by them). All of
        them, for each kind of column, in one contract: each on a table of its own."""
        policies, expected = [], {}
        for column, taken in self.each():
            every = self.fill("t", column, more)
            for rest, gone in cases(taken, every):
                name = f"t{len(expected)}"
                self.fill(name, column, more)
                policies.append(f"  {name}: {{ table: {name}, {rest if 'keep:' in rest or 'cap:' in rest else rest + ', expires: at_ms'} }}\n")
                expected[name] = column, rest, every, set(gone)
        contract = "policies:\n" + "".join(policies)
        planned, swept = self.plan(contract), self.sweep(contract)
        for name, (column, rest, every, gone) in expected.items():
            with self.subTest(column=column, rest=rest):
                self.assertEqual(set(self.ids(name)), every - gone)
                self.assertEqual((planned.policy(name)["rows"], swept.policy(name)["rows"]), (len(gone), len(gone)))


@every_engine
class OwnColumn(Folding):
    def test_conditions(self):
        self.judged(lambda taken, every: [
            ("rows: {s: closed}", {1}),
            ("rows: {s: [closed, open]}", {1, 8}),
            ("rows: {s: [Closed, closed, null]}", {1, 3, 9}),
            ("rows: {s: 'clo*'}", {1, 4}),
            ("where: {s: {eq: closed}}", {1}),
            ("where: {any: [{s: [closed]}, {s: open}]}", {1, 8}),
            ("where: {s: {like: 'clo%'}}", {1, 4}),
            # not keeps a row
            ("where: {s: {not: closed}}", every - taken - {9}),
            ("where: {s: {not: [closed, open, null]}}", every - taken - {8, 9}),
            # hold does; what is closed itself is alone not held by not: closed, and of NULL nothing is known
            ("hold: {s: closed}", every - taken),
            ("hold: {s: [closed, open]}", every - taken - {8}),
            ("hold: {s: {not: closed}}", {1, 9}),
            ("hold: {any: [{s: {not: closed}}, {s: closed}]}", {9})])

    def test_patterns(self):
        """They are of letters: case counts, but where that would let a row go that the column itself would find."""
        def cases(taken, every):
            cases = {1, 2, 3, 4, 5} if 2 in taken else {1, 4}
            accents = {6} & taken if self.on_mariadb else set()
            return [("hold: {s: {like: 'clo%'}}", every - cases - accents),
                    ("where: {any: [{s: {like: 'CL%'}}, {s: 'open'}]}", {2, 5, 8})]
        self.judged(cases)

    def test_keep_by(self):
        """The longer of the value's own period and otherwise, where it is merely taken for it."""
        def cases(taken, every):
            keep = "age: at_ms, keep: {by: s, values: {%s}, otherwise: %s}"
            return [(keep % ("closed: 1h", "never"), {1}),
                    ("age: at_ms, keep: {by: s, values: {closed: 1h}}", {1}),
                    (keep % ("closed: 1h", "24h"), {1}),
                    (keep % ("closed: 1h", "2h"), every),
                    (keep % ("closed: 24h", "2h"), every - taken),
                    (keep % ("closed: never", "now"), every - taken),
                    # several that it is taken for: the longest, and not otherwise, where it is the very text of one
                    (keep % ("closed: 1h, Closed: 2h", "never"), {1, 3}),
                    (keep % ("closed: 1h, Closed: 24h", "never"), {1} - (taken if 3 in taken else set()))]
        self.judged(cases)

    def test_groups(self):
        """To be one of a group lets a row go: what is not the same is another group."""
        self.judged(lambda taken, every: [("keep_newest: {rows: 1, per: s, newest: id}, age: at_ms, keep: 1h", {1, 2}),
                                          ("cap: {rows: 1, per: [s], newest: id}", {1, 2})],
                    more=[(11, "closed"), (12, "CLOSED")])


@every_engine
class OtherRows(Folding):
    def test_other_rows(self):
        """What an `after` waits for and the source that an orphan has keep a row; what goes with it is let go."""
        policies, expected = [], {}
        for i, (column, taken) in enumerate(self.each()):
            every = set(range(1, len(WORDS) + 2))
            rest = every - taken
            for k, (words, gone) in enumerate((
                    ("expires: at_ms, after: [{ref: C(t_id), where: {s: closed}}]", rest),
                    ("expires: at_ms, with: [{ref: C(t_id), where: {s: closed}}]", {1, 9}),
                    ("expires: at_ms, with: [{ref: C(t_id), where: {s: {not: closed}}}]", rest),
                    ("orphan: {of: C(id), by: id, matching: {s: closed}, delete_when: deleted_or_unmatched}, age: at_ms, keep: 1h", rest))):
                name, child = f"t{i}_{k}", f"c{i}_{k}"
                self.fill(name, column)
                self.given(f"create table {child} (id integer primary key, t_id integer, s {column}); create index {child}_t on {child} (t_id)")
                self.insert(child, *((n, n, w) for n, w in enumerate(WORDS, 1)))
                policies.append(f"  {name}: {{ table: {name}, {words.replace('C(', child + '(')} }}\n")
                expected[name] = column, words, every - gone
        contract = "policies:\n" + "".join(policies)
        planned = self.plan(contract)
        self.sweep(contract)
        for name, (column, words, left) in expected.items():
            with self.subTest(column=column, words=words):
                self.assertEqual(set(self.ids(name)), left)
                self.assertEqual(planned.policy(name)["rows"], len(WORDS) + 1 - len(left))

    def test_purge(self):
        """What is kept for being equal to a value stays; the instance itself is told by its bytes."""
        spaces, expected = [], {}
        for i, (column, taken) in enumerate(self.each()):
            self.given(f"create table kv{i} (id integer primary key, instance {column}, s {column})")
            self.insert(f"kv{i}", *((n, "wf-1", w) for n, w in enumerate(WORDS, 1)), (20, "WF-1", "x"), (21, "wf-1 ", "x"))
            spaces.append(f"  w{i}: {{ delay: 0, erases: [{{ ref: kv{i}(instance), keep: {{ s: [closed, open] }} }}] }}\n")
            expected[f"kv{i}"] = taken | {8, 20, 21}
        contract = "purges:\n" + "".join(spaces)
        self.lapse(contract, "install", code=0)
        for i in range(len(spaces)):
            self.lapse(contract, "purge", "schedule", f"w{i}", "wf-1", "completed", code=0)
        self.lapse(contract, "purge", "due", code=0)
        for table, left in expected.items():
            self.assertEqual(set(self.ids(table)), left, table)


@every_engine
class Told(Folding):
    """What explain, check and plan say is true."""

    def lines(self, contract, key):
        r = self.lapse(contract, "explain", "--now", NOW, "--json", "t", str(key), code=0)
        return r, {c["part"]: c for c in r.json["conditions"]}

    def test_explain_of_keep_by(self):
        for column, taken in list(self.each())[:2]:
            self.fill("t", column)
            key = min(taken - {1})
            contract = "policies: {t: {table: t, age: at_ms, keep: {by: s, values: {closed: %s}, otherwise: %s}}}"
            for value, otherwise, said, verdict in (("1h", "never", "never ends", "never"), ("1h", "2h", "2h", "due"),
                                                    ("24h", "2h", "1d", "later"), ("24h", "never", "never ends", "never")):
                with self.subTest(value=value, otherwise=otherwise):
                    r, lines = self.lines(contract % (value, otherwise), key)
                    self.assertEqual(r.json["verdict"], verdict, r)
                    self.assertTrue(lines["keep"]["said"].startswith(said), r)
                    self.assertIn("equal to 'closed', but not the same text", lines["keep"]["said"])
            r, lines = self.lines(contract % ("1h", "never"), 1)
            self.assertEqual((lines["keep"]["said"], r.json["verdict"]), ("1h", "due"))
            r, lines = self.lines(contract % ("never", "1h"), 8)
            self.assertEqual((lines["keep"]["said"], r.json["verdict"]), ("1h", "due"))

    def test_explain_of_rows(self):
        for column, taken in list(self.each())[:2]:
            self.fill("t", column)
            for part in ("rows", "where"):
                contract = f"policies: {{t: {{table: t, {part}: {{s: closed}}, expires: at_ms}}}}"
                r, lines = self.lines(contract, min(taken - {1}))
                self.assertIn("not the same text", lines[part]["said"])
                self.assertEqual(r.json["verdict"], "not due")
                self.assertEqual(self.lines(contract, 8)[1][part]["said"], "does not match")
                self.assertEqual(self.lines(contract, 1)[1][part]["said"], "matches")

    def test_check_says_where_a_column_folds(self):
        for _, taken in self.each():
            others = [WORDS[n - 1] for n in taken - {1}]
            for part in ("rows: {s: closed}, expires: at_ms", "where: {s: closed}, expires: at_ms"):
                f = self.finding(self.check(f"policies: {{t: {{table: t, {part}}}}}"), "warning", "takes for 'closed'", "these rows stay")
                self.assertTrue(any(f"'{o}'" in f["what"] for o in others), f)
            r = self.check("policies: {t: {table: t, age: at_ms, keep: {by: s, values: {closed: 1h}, otherwise: never}}}")
            f = self.finding(r, "warning", "takes for 'closed'", "the longer of")
            self.assertTrue(any(f"'{o}'" in f["what"] for o in others), f)
            every = ", ".join(f"'{WORDS[n - 1]}'" for n in taken)
            self.no_finding(self.check(f"policies: {{t: {{table: t, rows: {{s: [{every}]}}, expires: at_ms}}}}"), "takes for")
            self.no_finding(self.check("policies: {t: {table: t, rows: {s: open}, expires: at_ms}}"), "takes for")


@every_engine
class Char(Case):
    """A char(n) has no trailing blanks. SQLite knows no such type: there it is a text like any other."""

    def test_blanks_at_the_end(self):
        column = "char(9)"
        self.given(f"create table t (id integer primary key, s {column}, at_ms bigint)")
        self.insert("t", (1, "done", 0), (2, "done  ", 0), (3, " done", 0), (4, "open", 0))
        same = {1} if self.on_sqlite else {1, 2}
        for wanted, gone in (("done", same), ("done  ", {2} if self.on_sqlite else {1, 2})):
            for form in ("rows: {s: '%s'}", "where: {s: {eq: '%s'}}", "rows: {s: ['%s', x]}"):
                with self.subTest(wanted=wanted, form=form):
                    contract = f"policies: {{t: {{table: t, {form % wanted}, expires: at_ms}}}}"
                    self.assertEqual(self.plan(contract).policy("t")["rows"], len(gone))
                    self.no_finding(self.check(contract), "takes for")
        self.swept("policies: {t: {table: t, rows: {s: 'done '}, expires: at_ms}}",
                   gone={} if self.on_sqlite else {"t": 2}, again=False)


@every_engine
class Order(Case):
    """lt, lte, gt, gte: numbers with numbers, texts with texts."""

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, s varchar(20), n integer, r double precision, at_ms bigint, at timestamp)")
        self.insert("t(id, s, n, r, at_ms)", (1, "5", 5, 5.5, 0), (2, "10", 10, 10.5, 0), (3, "abc", None, None, 0))

    def refused(self, column, words, *conditions):
        contract = "policies:\n" + "".join(f"  p{i}: {{ table: t, expires: at_ms, where: {{ {c} }} }}\n" for i, c in enumerate(conditions))
        with self.untouched():
            r = self.check(contract, code=3)
            self.sweep(contract, code=3)
        for i, condition in enumerate(conditions):
            with self.subTest(condition):
                f = self.finding(r, "error", f"column '{column}'", *words, policy=f"p{i}")
                line, at = map(int, f["at"].split(":")[1:])
                self.assertEqual(line, 3 + i)       # behind the store's
                self.assertGreater(at, 40)

    def test_a_number_against_a_text_column(self):
        self.refused("s", ("is a number", "holds texts"),
                     *(f"s: {{ {op}: {n} }}" for op in ("lt", "lte", "gt", "gte") for n in ("7", "-7", "1.5", "1e3")))

    def test_a_text_against_a_number(self):
        self.refused("n", ("whole number",), "n: abc", "n: [5, abc]", "n: { not: abc }", "n: { lt: abc }", "n: { gte: 'x1' }")
        self.refused("r", ("number",), "r: abc", "r: { gt: abc }", "r: { lte: '' }")

    @not_on("sqlite", "it has no type for times")
    def test_a_number_against_a_time(self):
        self.refused("at", ("is a number", "holds times"), "at: { lt: 5 }", "at: { gte: 1700000000 }")

    def test_what_is_meant(self):
        cases = (("s: { gt: '7' }", 1), ("s: { lt: abc }", 2), ("n: { gte: 7 }", 1), ("n: { lt: '7' }", 1), ("r: { gt: 6 }", 1), ("s: 5", 1))
        planned = self.plan("policies:\n" + "".join(f"  p{i}: {{ table: t, expires: at_ms, where: {{ {c} }} }}\n"
                                                    for i, (c, _) in enumerate(cases)))
        for i, (condition, rows) in enumerate(cases):
            self.assertEqual(planned.policy(f"p{i}")["rows"], rows, condition)


class Kinds(Case, SqliteTest):
    """SQLite's columns hold values of any kind; of numbers and texts the ones come before the others."""

    def test_another_kind_lets_no_row_go(self):
        values = [1, 9, "abc", "", b"abc", None, 2.5]
        cases = (("integer", "{ gt: 5 }", {1}), ("integer", "{ lt: 5 }", {0, 6}), ("numeric", "{ gte: 9 }", {1}),
                 ("numeric", "{ lt: '5' }", {0, 6}), ("", "{ gt: 5 }", {1}), ("", "{ gt: 'a' }", {2}), ("", "{ lt: 'a' }", {3}),
                 ("numeric", "{ lt: 'b' }", {2, 3}), ("text", "{ gt: 'a' }", {2}))
        for i, (column, _, _) in enumerate(cases):
            self.given(f"create table t{i} (id integer primary key, v {column}, at_ms integer)")
            self.insert(f"t{i}", *((n, v, 0) for n, v in enumerate(values)))
        self.sweep("policies:\n" + "".join(f"  t{i}: {{ table: t{i}, expires: at_ms, where: {{ v: {condition} }} }}\n"
                                           for i, (_, condition, _) in enumerate(cases)))
        for i, (column, condition, gone) in enumerate(cases):
            with self.subTest(column=column, condition=condition):
                self.left(f"t{i}", *(set(range(len(values))) - gone))

    def test_a_hold_holds_it_all_the_same(self):
        self.given("create table t (id integer primary key, v integer, at_ms integer)")
        self.insert("t", (1, 1, 0), (2, 9, 0), (3, "abc", 0))
        self.swept("policies: {t: {table: t, expires: at_ms, hold: {v: {gt: 5}}}}", gone={"t": 1})


@every_engine
class Index(Folding):
    """The column's own equality is what an index serves; the bytes are a filter on what it found."""

    def access(self, statement):
        if self.on_sqlite:
            return " ".join(r[3] for r in self.db.rows("explain query plan " + statement))
        if self.on_postgres:
            return "\n".join(r[0] for r in self.db.rows("explain " + statement))
        return "\n".join(str(r) for r in self.db.rows("explain " + statement))

    def due_statement(self, contract):
        out = self.lapse(contract, "plan", "--sql", code=0).out
        block = re.search(r"^-- (?:find|pick and lock) due rows.*\n((?:SELECT)[^;]*);\n((?:--   \d+ = .*\n)*)", out, re.M)
        self.assertTrue(block, out)
        sql = block[1]
        for n, value in reversed(re.findall(r"^--   (\d+) = (.*)$", block[2], re.M)):
            sql = re.sub(rf"[$?]{n}\b", lambda _: value if re.fullmatch(r"-?\d+", value) else f"'{value}'", sql)
        return sql

    def test_it_is_used(self):
        many = self.series(20000)
        for column in FOLDING[self.engine][:2]:
            with self.subTest(column):
                self.given(f"drop table if exists t; create table t (id integer primary key, s {column} not null, at_ms bigint not null)")
                word = self.per_engine(sqlite="'open' || n", postgres="'open' || n", mariadb="concat('open', n)")
                self.given(f"insert into t select n, {word}, n from ({many}) as g; create index t_s on t (s, at_ms)")
                self.insert("t", (20001, "closed", 0), (20002, "CLOSED", 0), (20003, "closed ", 0))
                self.given("analyze table t" if self.on_mariadb else "analyze t")
                for rows in ("closed", "[closed, shut]"):
                    contract = f"policies: {{t: {{table: t, rows: {{s: {rows}}}, expires: at_ms}}}}"
                    found = self.access(self.due_statement(contract))
                    self.assertIn("t_s", found)
                    self.assertNotRegex(found, r"Seq Scan|SCAN this(?! USING)")
                    self.no_finding(self.check(contract), "no index")
                self.swept(f"policies: {{t: {{table: t, rows: {{s: closed}}, expires: at_ms}}}}", gone={"t": 1})
