"""Whatever a schema or a server of MariaDB may be: nothing goes that must not, and nothing stays without a word."""
import json
import time

from harness import *


class Shapes(Case, MariadbTest):
    """Keys, columns and tables that are not as most are."""

    def tried(self, contract, **how):
        """Swept, or refused with a word."""
        r = self.sweep(contract, code=None, **how)
        self.assertIn(r.code, (0, 1, 3), r)
        return r

    def test_periods_without_overlaps(self):
        self.given("""create table t (id integer, s date, e date, at_ms bigint, period for p(s, e),
                      primary key (id, p without overlaps))""")
        self.insert("t", (1, "2020-01-01", "2020-02-01", 0), (1, "2020-02-01", "2020-03-01", MS + 1),
                    (2, "2020-01-01", "2020-02-01", MS + 1))
        r = self.tried("policies: {t: {table: t, expires: at_ms}}")
        self.assertEqual(self.db.rows("select count(*) from t where at_ms > 0"), [(2,)], r)

    def test_keys_of_every_type(self):
        for type in ("float", "double", "decimal(30, 20)", "year", "bit(7)", "bit(64)", "uuid", "inet6", "binary(4)", "time(3)",
                     "datetime(3)", "date", "bigint unsigned", "int(9) zerofill", "varchar(9) character set sjis", "set('a', 'b')",
                     "char(5) character set utf16", "timestamp(6)"):
            with self.subTest(type):
                values = {"year": (1999, 2000, 2155), "bit(7)": (1, 2, 3), "int(9) zerofill": (1, 2, 3),
                          "bit(64)": (1, 2**63, 2**64 - 1),
                          "uuid": ["01890000-0000-7000-8000-%012d" % n for n in range(3)], "inet6": ("::1", "::2", "::3"),
                          "binary(4)": (b"a", b"a ", b"a\0\0b"), "time(3)": ("-12:00:00.001", "00:00:00", "838:00:00"),
                          "datetime(3)": ("0000-00-00 00:00:00", "2024-00-10 00:00:00", "2024-01-01 00:00:00.001"),
                          "date": ("0000-00-00", "2024-02-00", "2024-02-29"), "bigint unsigned": (0, 2**63, 2**64 - 1),
                          "set('a', 'b')": ("", "a,b", "b"), "timestamp(6)": ("2024-01-01 00:00:00.000001", "2024-01-02", "2038-01-19 03:14:07"),
                          "varchar(9) character set sjis": ("a\\", "ソ'", "表"), "char(5) character set utf16": ("a", "'", "😀"),
                          }.get(type, (0.1, 0.7, 3.3))
                self.given(f"drop table if exists c; drop table if exists t; set sql_mode = 'ANSI_QUOTES'; "
                           f"create table t (k {type} primary key, at_ms bigint); create index t_at on t(at_ms); "
                           f"create table c (id integer primary key, k {type}); create index c_k on c(k)")
                self.insert("t", *[(v, 0) for v in values])
                self.insert("c", *[(n, v) for n, v in enumerate(values)])
                r = self.tried("policies: {t: {table: t, expires: at_ms, batch: 2, with: [c(k)]}}", timeout=40)
                if r.code == 0:
                    self.assertEqual((r.policy("t")["rows"], self.db.rows("select count(*) from t"), self.ids("c")), (3, [(0,)], []), r)

    def test_children_of_other_types(self):
        for parent, child, keys, kids in (("integer", "varchar(9)", (1, 2), ("1abc", "1 ", "01", "1.0")),
                                          ("varchar(9)", "integer", ("1abc", "x", "01"), (0, 1)),
                                          ("varchar(9) collate utf8mb4_bin", "varchar(9) collate utf8mb4_general_ci", ("abc", "x"), ("ABC", "abc ", "X", "äbc")),
                                          ("varchar(9) collate utf8mb4_general_ci", "varchar(9) collate utf8mb4_bin", ("abc", "x"), ("ABC", "X")),
                                          ("varchar(9) collate utf8mb4_nopad_bin", "varchar(9) collate utf8mb4_bin", ("a", "b"), ("a ", "b  ")),
                                          ("varchar(9) character set latin1", "varchar(9) character set utf8mb4", ("a?", "é"), ("aж", "e")),
                                          ("varchar(9)", "binary(9)", ("a", "b"), ("a", "A")),
                                          ("integer", "enum('2', '1', '3')", (1, 2), ("3",)),
                                          ("varchar(9) collate utf8mb4_bin", "enum('A', 'B') collate utf8mb4_general_ci", ("a", "b"), ("A", "B")),
                                          ("integer", "decimal(9, 2)", (1, 2), (1.01, 1.99)),
                                          ("bigint", "double", (2**53 + 1, 7), (float(2**53), 7.5)),
                                          ("bigint", "float", (16777217, 7), (16777216.0, 7.5)),
                                          ("date", "datetime", ("2024-01-01", "2024-01-02"), ("2024-01-01 10:00:00",)),
                                          ("date", "varchar(20)", ("2024-01-01", "2024-01-02"), ("2024-1-1", "20240101")),
                                          ("char(36)", "uuid", ("x", "01890000-0000-7000-8000-000000000001"), ("01890000-0000-7000-8000-000000000002",)),
                                          ("varchar(9)", "json", ("1", "2"), ("[1]", '"1"')),
                                          ("integer", "bit(8)", (1, 2), (3, 49)),
                                          ("datetime(6)", "datetime", ("2024-01-01 10:00:00.4", "2024-01-02"), ("2024-01-01 10:00:00",)),
                                          ):
            with self.subTest(f"{parent} -> {child}"):
                self.given(f"drop table if exists c; drop table if exists t; create table t (k {parent} primary key, at_ms bigint); "
                           f"create table c (id integer primary key, k {child}); create index c_k on c(k)")
                self.insert("t", *[(v, 0) for v in keys])
                self.insert("c", *[(n, v) for n, v in enumerate(kids)])
                r = self.tried("policies: {t: {table: t, expires: at_ms, with: [c(k)]}}", timeout=40)
                self.assertEqual(self.ids("c"), list(range(len(kids))), r)

    def test_what_folds_makes_rows_stay(self):
        """keep by a value, not, hold, matching: what the column takes for it stays."""
        self.given("create table t (id integer primary key, kind varchar(9) collate utf8mb4_general_ci, at_ms bigint); create table s (id integer primary key, "
                   "state varchar(9) collate utf8mb4_general_ci); create table o (id integer primary key, s_id integer, at_ms bigint); create index o_s on o(s_id)")
        self.insert("t", (1, "audit", 0), (2, "AUDIT", 0), (3, "audit ", 0), (4, "áudit", 0), (5, "x", 0))
        self.insert("s", (1, "OPEN"), (2, "open "), (3, "shut"))
        self.insert("o", (1, 1, 0), (2, 2, 0), (3, 3, 0))
        for contract in ("age: at_ms, keep: {by: kind, values: {audit: never}, otherwise: 1h}", "expires: at_ms, where: {kind: {not: audit}}",
                         "expires: at_ms, where: {kind: {not: [audit, y]}}", "expires: at_ms, hold: {kind: audit}",
                         "expires: at_ms, hold: {any: [{kind: audit}, {kind: y}]}", "expires: at_ms, hold: \"this.kind = 'audit'\""):
            with self.subTest(contract):
                self.tried("policies: {t: {table: t, %s}}" % contract)
                self.left("t", 1, 2, 3, 4)
        self.tried("policies: {o: {table: o, orphan: {of: s(id), by: s_id, matching: {state: open}, delete_when: deleted_or_unmatched}, age: at_ms, keep: 1h}}")
        self.left("o", 1, 2)

    def test_what_folds_is_no_group(self):
        """Rows are of one group where their values are the same, not where the column takes them for equal."""
        bounds = ("cap: {rows: 1, per: [tenant, kind], newest: n}",
                  "age: at_ms, keep: 1h, keep_newest: {rows: 1, per: [tenant, kind], newest: n}")
        for kind in ("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_nopad_bin", "latin1_swedish_ci"):
            for bound in bounds:
                with self.subTest(kind, bound=bound):
                    self.given(f"drop table if exists t; create table t (id integer primary key, tenant varchar(9) character set "
                               f"{kind.split('_')[0]} collate {kind}, kind integer, n integer, at_ms bigint, key (tenant, kind, n))")
                    self.insert("t", (1, "a", 1, 1, 0), (2, "A", 1, 2, 0), (3, "a ", 1, 3, 0), (4, "ä", 1, 4, 0), (5, "a", 1, 5, 0),
                                (6, None, 1, 1, 0), (7, None, 1, 2, 0), (8, "a", None, 1, 0), (9, "a", None, 2, 0))
                    contract = "policies: {t: {table: t, batch: 2, %s}}" % bound
                    self.assertEqual(self.plan(contract).policy("t")["rows"], 3)
                    r = self.lapse(contract, "explain", "t", "2", "--now", NOW, "--json")
                    self.assertFalse(r.json["due"], r)
                    self.swept(contract, gone={"t": 3})
                    self.left("t", 2, 3, 4, 5, 7, 9)

    def test_rows_that_each_say_how_long(self):
        self.given("create table t (id integer primary key, at_ms bigint, hold_h decimal(9, 2))")
        self.insert("t", (1, MS - 60_000, "0.40"), (2, MS - 60_000, "1.50"), (3, 0, "1.00"))
        r = self.tried("policies: {t: {table: t, age: at_ms, keep: {column: hold_h, unit: h}}}")
        self.assertEqual([n for n in (1, 2) if n in self.ids("t")], [1, 2])

    def test_a_decimal_time(self):
        self.given("create table t (id integer primary key, at_s decimal(20, 6))")
        self.insert("t", (1, f"{MS // 1000}.000001"), (2, f"{MS // 1000}.4"))
        r = self.tried("policies: {t: {table: t, age: at_s, keep: now}}")
        self.left("t", 1, 2)

    def test_names_in_other_letters(self):
        self.given("create table t (id integer primary key, at_ms bigint); create table T (id integer, at_ms bigint, primary key (id, at_ms));"
                   "create table `té%s` (id integer primary key, at_ms bigint); create table `te%s` (id2 integer primary key, at_ms bigint)")
        self.insert("T", (1, 0), (1, MS + 1))
        self.insert("t", (1, 0))
        self.tried("policies: {t: {table: T, expires: at_ms}}")
        self.left("T", 1)
        self.left("t", 1)
        r = self.tried("policies: {t: {table: 'té%s', expires: at_ms}}")
        self.assertEqual(r.code, 0, r)

    def test_ignored_and_descending_indexes(self):
        self.given("create table t (id integer primary key, at_ms bigint, index a (at_ms) ignored); create table u (id integer primary key, "
                   "at_ms bigint, index a (at_ms desc, id desc)); create table c (id integer primary key, t_id integer, index b (t_id) ignored)")
        for t in "tu":
            self.insert(t, *[(n, n % 3) for n in range(20)], (99, MS + 1))
        self.insert("c", (1, 1), (2, 99))
        self.assertEqual(self.tried("policies: {t: {table: t, expires: at_ms, batch: 3, with: [c(t_id)]}}").code, 0)
        self.assertEqual(self.tried("policies: {t: {table: u, expires: at_ms, batch: 3}}").code, 0)
        self.left("t", 99), self.left("u", 99), self.left("c", 2)

    def test_no_primary_key(self):
        self.given("create table t (k text not null, at_ms bigint, unique (k)); create table u (k varchar(50) not null, at_ms bigint, unique (k(2)))")
        for t in "tu":
            self.insert(t, ("aa" + "x" * 20, 0), ("ab" + "x" * 20, MS + 1))
            r = self.tried("policies: {t: {table: %s, expires: at_ms}}" % t)
            self.assertEqual(self.db.rows(f"select count(*) from {t} where at_ms > 0"), [(1,)])


    def test_zero_dates_are_not_null(self):
        """A date that may not be NULL `IS NULL` for MariaDB where it is 0000-00-00."""
        for type in ("date", "datetime", "datetime(6)", "timestamp(6)"):
            with self.subTest(type):
                self.given(f"drop table if exists t; set sql_mode = 'ANSI_QUOTES'; create table t (id integer primary key, "
                           f"z {type} not null default 0, at datetime, at_ms bigint)")
                self.insert("t", (1, "0000-00-00", "2020-01-01", 0), (2, "2020-01-01", "2020-01-01", 0))
                r = self.sweep("policies: {t: {table: t, age: [z, at], keep: 1h}}")
                self.left("t", 1)
                for contract in ("expires: at_ms, rows: {z: null}", "expires: at_ms, where: {z: null}", "expires: at_ms, where: {any: [{z: null}, {id: 7}]}",
                                 "expires: z, where: {id: 1}"):
                    self.sweep("policies: {t: {table: t, %s}}" % contract)
                    self.left("t", 1)
                self.swept("policies: {t: {table: t, age: [z, at], keep: 1h}}", gone={}, kept={"unreadable_time": 1})


class Odd(Case, MariadbTest):
    def test_values(self):
        odd = ["a\x01b", "\x011\x01", "a\\", "'", "😀", "ж", "\\' or 1=1 -- ", "a\x00b", "*/", "`", "a\nb", "\x1a", "%s", "?", "\ufeff"]
        for charset in ("utf8mb4", "utf8mb3", "latin1", "gbk", "sjis", "utf16", "binary"):
            with self.subTest(charset):
                self.given(f"drop table if exists t; create table t (id integer primary key, v varchar(40) character set {charset}, at_ms bigint)")
                for n, v in enumerate(odd):
                    try:
                        self.insert("t", (n, v, 0))
                    except Exception:
                        self.insert("t", (n, "other", 0))
                self.insert("t", (50, "other", 0), (51, "a", 0), (52, "", 0), (53, None, 0))
                for n, v in enumerate(odd):
                    r = self.sweep("policies: {t: {table: t, rows: {v: %s}, expires: at_ms}}" % json.dumps(v), code=None)
                    self.assertIn(r.code, (0, 1, 2, 3), r)
                    self.assertTrue(set(range(n + 1, len(odd))) | {50, 51, 52, 53} <= set(self.ids("t")), (v, r))


class Defaults(Case, MariadbTest):
    """Settings of the server that change what a statement means."""
    engine = "mariadb"

    @classmethod
    def setUpClass(cls):
        cls.server = Mariadb(port=True, settings={})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.db = self.server.fresh()
        self.addCleanup(self.db.drop)

    def test_completion_type(self):
        self.given("create table t (id integer primary key, at_ms bigint, index a (at_ms))")
        for kind in (1, 2):
            with self.subTest(kind):
                self.insert("t", *[(n, 0) for n in range(20)])
                self.server.admin(f"set global completion_type = {kind}")
                r = self.sweep("policies: {t: {table: t, expires: at_ms, batch: 3}}", code=None)
                self.server.admin("set global completion_type = 0")
                self.assertEqual((r.code, self.ids("t")), (0, []), r)

    def test_as_of_long_ago(self):
        self.given("create table t (id integer primary key, at_ms bigint, index a (at_ms)) with system versioning")
        self.insert("t", (1, 0), (2, 0))
        time.sleep(1.1)
        when = self.db.rows("select now(6)")[0][0]
        self.given(f"update t set at_ms = {MS + 1} where id = 1")
        self.server.admin(f"set global system_versioning_asof = '{when}'")
        r = self.sweep("policies: {t: {table: t, expires: at_ms}}", code=None)
        self.server.admin("set global system_versioning_asof = default")
        self.assertEqual((r.code, self.ids("t")), (0, [1]), r)

    def test_long_keys_are_ranked_whole(self):
        for kind in ("general_ci", "nopad_bin", "unicode_ci"):
            with self.subTest(kind):
                self.given(f"drop table if exists t; create table t (k varchar(700) collate utf8mb4_{kind} primary key, at_ms bigint, g int)")
                for bound in ("cap: {rows: 5, per: g, newest: at_ms}", "age: at_ms, keep: 1h, keep_newest: {rows: 5, per: g, newest: at_ms}"):
                    self.given("delete from t")
                    self.insert("t", *[("é" * 600 + str(100 + n * 37 % 60), 0, n % 2) for n in range(60)])
                    self.sweep("policies: {t: {table: t, %s}}" % bound)
                    self.assertEqual(sorted(int(k[-3:]) for k in self.ids("t", "k")), list(range(150, 160)))

    def test_short_sorts(self):
        self.server.admin("set global max_sort_length = 64")
        self.given("create table t (k varchar(200) primary key, at_ms bigint, v int)")
        self.insert("t", *[("p" * 100 + str((n * 37) % 100), 0, 0) for n in range(100)])
        r = self.sweep("policies: {t: {table: t, expires: at_ms, batch: 3}}", code=None)
        self.server.admin("set global max_sort_length = default")
        self.assertEqual((r.code, self.db.rows("select count(*) from t")), (0, [(0,)]), r)

    def test_regex_flags_and_clock(self):
        self.given("create table t (id integer primary key, at varchar(40))")
        self.insert("t", (1, "2024-06-15 11:00:00"), (2, "2024-06-15 12:00:01"), (3, "2024-06-15T11:00:00 +0000"))
        self.server.admin("set global default_regex_flags = 'EXTENDED_MORE,UNGREEDY,MULTILINE,DOTALL'")
        r = self.sweep("policies: {t: {table: t, expires: at}}", code=None)
        self.server.admin("set global default_regex_flags = default")
        self.assertEqual((r.code, self.ids("t")), (0, [2]), r)

    def test_a_clock_that_stands(self):
        self.given("create table t (id integer primary key, at datetime, index a (at))")
        self.given("insert into t values (1, utc_timestamp() - interval 1 hour), (2, utc_timestamp() + interval 1 day)")
        dsn = self.server.user(self.db.name, "app", "select, insert, update, delete on *")
        self.server.admin("set global init_connect = 'set timestamp = 2000000000, foreign_key_checks = 0, sql_select_limit = 1, tx_read_only = 0'")
        r = lapse(dsn, "policies: {t: {table: t, expires: at}}", "sweep", "--json")
        self.server.admin("set global init_connect = ''")
        self.assertEqual(self.ids("t"), [2], r)


