"""What MariaDB's information_schema says, and what it keeps from a user, as `check` and `sweep` see it."""
from harness import *

AT = "at_ms bigint, key (at_ms)"
T = "policies: {t: {table: t, expires: at_ms}}"


class Catalog(MariadbTest, Case):
    def findings(self, contract, code=None, dsn=None):
        r = lapse(dsn or self.db, contract, "check", "--json")
        if code is not None:
            self.assertEqual(r.code, code, r)
        return r

    def refused(self, contract, *words, dsn=None):
        """check has this error, and a sweep deletes nothing."""
        f = self.finding(self.findings(contract, 3, dsn), "error", *words)
        with self.untouched():
            r = lapse(dsn or self.db, contract, "sweep", "--now", NOW, "--json")
        self.assertEqual(r.code, 3, r)
        return f

    def goes(self, contract, rows, dsn=None):
        r = lapse(dsn or self.db, contract, "sweep", "--now", NOW, "--json")
        self.assertEqual((r.code, sum(self.gone(r).values())), (0, rows), r)


class Engines(Catalog):
    def test_what_keeps_no_transactions_is_refused(self):
        for engine in ("MyISAM", "Aria", "MEMORY"):
            with self.subTest(engine):
                self.given(f"drop table if exists t; create table t (id integer primary key, {AT}) engine={engine}")
                self.insert("t", (1, 0))
                f = self.refused(T, engine)
                self.given(f["fix"].replace("ALTER", "alter"))
                self.goes(T, 1)

    def test_also_where_rows_only_go_along_or_are_looked_at(self):
        self.given(f"create table t (id integer primary key, {AT});"
                   "create table c (id integer primary key, t_id integer, key (t_id)) engine=MyISAM")
        self.insert("t", (1, 0))
        for how in ("with: [c(t_id)]", "detach: [c(t_id)]", "after: [c(t_id)]"):
            with self.subTest(how):
                self.refused(f"policies: {{t: {{table: t, expires: at_ms, {how}}}}}", "MyISAM", ".c ")
        self.refused("policies: {t: {table: t, orphan: {of: c(id), by: id}, age: at_ms}}", "MyISAM")

    def test_a_purge_of_such_a_table(self):
        self.given("create table t (id varchar(20) primary key) engine=Aria")
        r = self.findings("purges: {t: {erases: [t(id)]}}", code=3)
        self.finding(r, "error", "Aria")

    def test_what_is_no_table(self):
        self.given("create table t (id integer primary key, at_ms bigint); create view v as select * from t; create sequence s")
        self.refused("policies: {t: {table: v, expires: at_ms}}", "a view")
        self.refused("policies: {t: {table: s, expires: start_value, unit: s}}", "a sequence")

    def test_history_is_said(self):
        self.given(f"create table t (id integer primary key, {AT}) with system versioning")
        self.insert("t", (1, 0))
        self.finding(self.findings(T, code=0), "warning", "system-versioned")
        self.goes(T, 1)
        self.assertEqual(self.db.rows("select count(*) from t for system_time all"), [(1,)])

    def test_a_partitioned_table(self):
        self.given("create table t (id integer, at_ms bigint, primary key (id, at_ms), key (at_ms)) "
                   "partition by range (at_ms) (partition p0 values less than (1000), partition p1 values less than maxvalue)")
        self.insert("t", (1, 0), (2, 5000), (3, 1 << 60))
        fix, = [f["fix"] for f in self.findings(T, code=0).json["findings"] if "filesort" in f["what"]]
        self.db.execute(fix)        # to an index of partitions no key is appended
        self.no_finding(self.findings(T, code=0), "index")
        self.goes(T, 2)


class Server(Catalog):
    """Settings that rule a sweep out."""

    def test_a_log_of_statements(self):
        server = Mariadb(settings={"log-bin": "log", "server-id": "1", "binlog-format": "STATEMENT"})
        self.addCleanup(server.stop)
        db = self.db = server.fresh()
        db.script("create table t (id integer primary key, at_ms bigint, key (at_ms)); insert into t values (1, 0)")
        r = self.check(T, code=3)
        f = self.finding(r, "error", "binlog_format")
        self.assertIn("SET GLOBAL binlog_format = ROW", f["fix"])
        self.sweep(T, code=3)
        self.assertEqual(db.rows("select count(*) from t"), [(1,)])
        server.admin("set global binlog_format = row")
        self.assertEqual(self.sweep(T, code=0).policy("t")["rows"], 1)


class Keys(Catalog):
    def key(self, definition, *rows):
        self.given(f"drop table if exists t; create table t ({definition}, {AT})")
        self.insert("t", *rows)

    def test_what_tells_rows_apart(self):
        for definition, rows in {
                "id integer unsigned primary key": [(4294967295, 0), (1, 0)],
                "id bigint unsigned primary key": [(18446744073709551615, 0), (9223372036854775808, 0), (1, 0)],
                "id binary(16) primary key": [(b"\0" * 16, 0), (b"\xff\\'\0" * 4, 0)],
                "id varbinary(9) primary key": [(b"", 0), (b" ", 0), (b"a", 0)],
                "id varchar(9) primary key": [("a", 0), ("ü'\\", 0)],
                "id char(9) primary key": [("a", 0), ("b ", 0)],
                "id decimal(20, 4) primary key": [("1.5", 0), ("-12345678901234.0001", 0)],
                "id double primary key": [(0.1, 0), (1e300, 0)],
                "id datetime(6) primary key": [("2020-01-02 03:04:05.678901", 0), ("2020-01-02 03:04:05", 0)],
                "id timestamp(3) primary key": [("2020-01-02 03:04:05.678", 0), ("2020-01-02 03:04:05", 0)],
                "id date primary key": [("2020-01-02", 0)],
                "id time(3) primary key": [("-12:00:01.5", 0), ("800:00:00", 0)],
                "id year primary key": [(1999, 0), (2024, 0)],
                "id uuid primary key": [("123e4567-e89b-12d3-a456-426655440000", 0)],
                "id inet6 primary key": [("2001:db8::ff00:42:8329", 0), ("::ffff:1.2.3.4", 0)],
                "id integer not null, unique (id)": [(1, 0), (2, 0)],
                "id varchar(20) not null, unique (id)": [("A", 0), ("b", 0)],
                }.items():
            with self.subTest(definition):
                self.key(definition, *rows)
                self.goes(T, len(rows))
                self.assertEqual(self.db.rows("select count(*) from t"), [(0,)])

    def test_what_does_not(self):
        for definition in ("id varchar(50) not null, primary key (id(10))",     # the beginning only
                           "id integer null, unique (id)",
                           "id integer not null",
                           "id enum('b', 'a') primary key",                     # sorted by number, compared by name
                           "id float primary key", "id bit(4) primary key"):
            with self.subTest(definition):
                self.key(definition, (1, 0))
                self.refused(T, "key")

    def test_a_better_key_is_taken(self):
        self.key("e enum('b', 'a') primary key, id integer not null, unique (id)", ("a", 1, 0), ("b", 2, 0))
        self.goes(T, 2)

    def test_enums_that_sort_unlike_their_names(self):
        self.given("create table t (id integer primary key, state enum('failed', 'done') not null, at_ms bigint,"
                   " key (state, at_ms))")
        self.insert("t", *((i, "failed" if i % 2 else "done", i) for i in range(20)))
        self.goes("policies: {t: {table: t, rows: {state: [done, failed]}, expires: at_ms, batch: 3}}", 20)

    def test_names_of_columns_in_any_case(self):
        self.given("create table t (Id integer primary key, At_Ms bigint, STATE varchar(9), key (at_ms))")
        self.insert("t", (1, 0, "x"))
        self.goes("policies: {t: {table: t, rows: {state: x}, expires: at_ms}}", 1)

    def test_names_of_tables_as_they_are(self):
        self.given(f"create table Jobs (id integer primary key, {AT})")
        f = self.refused("policies: {t: {table: jobs, expires: at_ms}}", "does not exist")
        self.assertIn("Jobs", f["fix"])

    def test_names_of_tables_where_the_server_folds_them(self):
        server = Mariadb(settings={"lower-case-table-names": "1"})
        self.addCleanup(server.stop)
        self.db = server.fresh()
        self.db.script(f"create table Jobs (id integer primary key, {AT}); insert into Jobs values (1, 0);"
                       "create table Kids (id integer primary key, j integer, foreign key (j) references Jobs (id))")
        self.refused("policies: {t: {table: JOBS, expires: at_ms}}", "kids(j)")
        self.goes("policies: {t: {table: JOBS, expires: at_ms, with: [Kids(j)]}}", 1)


class Indexes(Catalog):
    def lacks(self, contract, *words):
        f = self.finding(self.findings(contract, code=0), "warning", "no index", *words)
        return f["fix"]

    def test_the_beginning_of_a_column_does_not_serve(self):
        self.given("create table t (id integer primary key, at varchar(40), key (at(10)))")
        contract = "policies: {t: {table: t, expires: at}}"
        self.given(self.lacks(contract, "at"))
        self.no_finding(self.findings(contract, code=0), "no index")

    def test_nor_one_that_descends_or_is_ignored(self):
        for index in ("key (at_ms desc)", "key k (at_ms) ignored"):
            with self.subTest(index):
                self.given(f"drop table if exists t; create table t (id integer primary key, at_ms bigint, {index})")
                self.given(self.lacks(T, "at_ms"))
                self.no_finding(self.findings(T, code=0), "no index")

    def test_a_long_text_is_not_advised(self):
        self.given("create table t (id integer primary key, state longtext, at_ms bigint)")
        contract = "policies: {t: {table: t, rows: {state: x}, expires: at_ms}}"
        fix = self.lacks(contract, "at_ms")
        self.assertNotIn("state", fix)
        self.given(fix)

    def test_a_dependent_without_a_foreign_key(self):
        self.given(f"create table t (id integer primary key, {AT}); create table `order` (`key` integer primary key, `rank` integer)")
        contract = "policies: {t: {table: t, expires: at_ms, with: [order(rank)]}}"
        fix = self.lacks(contract, "rank")
        self.assertIn("`order`", fix)
        self.given(fix)
        self.no_finding(self.findings(contract, code=0), "no index")


class ForeignKeys(Catalog):
    def setUp(self):
        super().setUp()
        self.given(f"create table t (id integer primary key, {AT}); insert into t values (1, 0), (2, 1 << 60)")

    def other(self):
        """A database beside this one."""
        name = f"{self.db.name}__other"
        self.db.execute(f"create database `{name}`")
        return name

    def test_a_child_in_another_database(self):
        other = self.other()
        self.given(f"create table `{other}`.c (id integer primary key, t_id integer, "
                   f"foreign key (t_id) references `{self.db.name}`.t (id) on delete cascade)")
        self.db.execute(f"insert into `{other}`.c values (1, 1)")
        f = self.refused(T, "CASCADE", f"{other}.c(t_id)")
        self.goes(f"policies: {{t: {{table: t, expires: at_ms, with: [{other}.c(t_id)]}}}}", 2)
        self.assertIn("with", f["fix"])

    def test_odd_names(self):
        self.given("create table `odd-ü t` (`the id` integer primary key, at_ms bigint, key (at_ms));"
                   "create table `c-1` (id integer primary key, `T id` integer, constraint `f/k` foreign key (`T id`)"
                   " references `odd-ü t` (`the id`) on delete set null)")
        self.refused("""policies: {t: {table: '"odd-ü t"', expires: at_ms}}""", "SET NULL", "c-1")

    def test_of_several_columns(self):
        self.given("create table p (a integer, b integer, at_ms bigint, primary key (a, b));"
                   "create table c (id integer primary key, x integer, y integer, foreign key (y, x) references p (a, b))")
        self.refused("policies: {p: {table: p, expires: at_ms}}", "c(y, x)")
        self.no_finding(self.findings('policies: {p: {table: p, expires: at_ms, with: ["c(y, x)"]}}'), "named nowhere")

    def test_one_that_the_user_cannot_see_is_not_passed_over(self):
        """It would cascade: so a user who cannot know is refused, or told."""
        other = self.other()
        self.given("create table c (id integer primary key, t_id integer, foreign key (t_id) references t (id) on delete cascade);"
                   "insert into c values (1, 1)")
        user = self.db.server.user
        blind = user(self.db.name, "blind", "select, delete on t")
        f = self.refused(T, "another may refer", dsn=blind)
        self.assertIn("REFERENCES", f["fix"])
        for name, *grants in (["near", "select, delete on t", "references on *"], ["whole", "select, delete on *"]):
            with self.subTest(name):
                dsn = user(self.db.name, name, *grants)
                r = self.findings(T, code=3, dsn=dsn)
                self.finding(r, "error", "c(t_id)", "CASCADE")
                self.finding(r, "warning", "other databases")
        for right in ("references", "process"):
            with self.subTest(right):
                dsn = user(self.db.name, right, "select, delete on t")
                self.db.server.admin(f'grant {right} on *.* to "{right}_{self.db.name}"')
                r = self.findings(T, code=3, dsn=dsn)
                self.finding(r, "error", "c(t_id)", "CASCADE")
                self.no_finding(r, "other databases")
        self.given("drop table c")
        self.db.execute(f"create table `{other}`.c (id integer primary key, t_id integer, foreign key (t_id) references"
                        f" `{self.db.name}`.t (id) on delete cascade)")
        for right in ("references", "process"):
            with self.subTest(right, other=True):
                self.refused(T, f"{other}.c(t_id)", "CASCADE", dsn=self.db.server.dsn(self.db.name, f"{right}_{self.db.name}"))

    def test_an_action_that_is_hidden_is_said(self):
        self.given("create table c (id integer primary key, t_id integer, foreign key (t_id) references t (id) on delete cascade)")
        dsn = self.db.server.user(self.db.name, "half", "select, delete on t", "select on c")
        self.refused(T, "c(t_id)", "hidden", "silently", dsn=dsn)


class Rights(Catalog):
    def setUp(self):
        super().setUp()
        self.given(f"create table t (id integer primary key, {AT}); insert into t values (1, 0)")

    def test_what_is_missing(self):
        for name, grant, missing in (("reads", "select", "DELETE"), ("writes", "insert, update", "SELECT, DELETE"),
                                     ("some", "select (id, at_ms), delete", None)):
            with self.subTest(name):
                dsn = self.db.server.user(self.db.name, name, f"{grant} on t", "references on *")
                if missing:
                    f = self.refused(T, f"no right to {missing}", dsn=dsn)
                    self.assertIn(f"GRANT {missing} ON", f["fix"])
                else:
                    self.goes(T, 1, dsn=dsn)

    def test_by_whatever_way_it_comes(self):
        admin, db = self.db.server.admin, self.db.name
        admin(f'create role "role_{db}"')
        self.addCleanup(admin, f'drop role "role_{db}"')
        dsn = self.db.server.user(db, "member")
        admin(f'grant select, delete, references on "{db}".* to "role_{db}"')
        admin(f'grant "role_{db}" to "member_{db}"')
        self.assertIn(self.findings(T, dsn=dsn).code, (3, 5))      # the role is not in force
        admin(f'set default role "role_{db}" for "member_{db}"')
        self.goes(T, 1, dsn=dsn)
        self.insert("t", (1, 0))
        pattern = db[:-1].replace("_", r"\_") + "_"
        dsn = self.db.server.user(db, "pattern")
        admin(f'grant select, delete on "{pattern}".* to "pattern_{db}"')
        self.goes(T, 1, dsn=dsn)

    def test_of_two_patterns_the_narrower_counts(self):
        admin, db = self.db.server.admin, self.db.name
        dsn = self.db.server.user(db, "narrow")
        admin(f"""grant select, references on "{db[:2]}%%".* to "narrow_{db}" """)
        admin(f'grant delete, references on "{db}".* to "narrow_{db}"')
        self.refused(T, "no right to SELECT", dsn=dsn)

    def test_what_grants_prints_is_enough(self):
        self.given("create table c (id integer primary key, t_id integer, foreign key (t_id) references t (id))")
        self.insert("c", (1, 1))
        contract = "policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}"
        dsn = self.db.server.user(self.db.name, "least")
        self.lapse(contract, "install", code=0)
        grants = self.lapse(contract, "install", "--grants", f"least_{self.db.name}", code=0).out
        self.db.script(grants)
        r = self.findings(contract, 0, dsn)
        self.no_finding(r, "cannot be seen")
        self.goes(contract, 2, dsn=dsn)


class Folding(Catalog):
    """A collation that takes one text for another is worth a word where there are such texts."""

    def test_said_where_it_changes_what_matches(self):
        self.given("create table t (id integer primary key, folds varchar(20) collate utf8mb4_general_ci,"
                   " pads varchar(20) collate utf8mb4_bin, exact varchar(20) collate utf8mb4_nopad_bin, at_ms bigint, key (at_ms))")
        self.insert("t", (1, "DONE", "done ", "done ", 0), (2, "done", "done", "done", 0), (3, "done ", "DONE", "DONE", 0))
        for column, others in (("folds", ("DONE", "done ")), ("pads", ("done ",))):
            for key in ("rows", "where"):
                with self.subTest(column=column, key=key):
                    contract = f"policies: {{t: {{table: t, {key}: {{{column}: done}}, expires: at_ms}}}}"
                    f = self.finding(self.findings(contract, code=0), "warning", "'done'")
                    self.assertTrue(any(f"'{o}'" in f["what"] for o in others), f)
                    self.assertEqual(self.plan(contract).policy("t")["rows"], 1)
                    every = ", ".join(repr(o) for o in ("done", *others))
                    self.no_finding(self.findings(f"policies: {{t: {{table: t, {key}: {{{column}: [{every}]}}, expires: at_ms}}}}"),
                                    "takes for")
        self.no_finding(self.findings("policies: {t: {table: t, rows: {exact: done}, expires: at_ms}}"), "takes for")

    def test_not_where_it_does_not(self):
        self.given("create table t (id integer primary key, state varchar(20) collate utf8mb4_general_ci, at_ms bigint, key (at_ms))")
        self.insert("t", (1, "done", 0), (2, "open", 0))
        self.no_finding(self.findings("policies: {t: {table: t, rows: {state: done}, expires: at_ms}}"), "takes for")


class Triggers(Catalog):
    def test_named(self):
        self.given(f"create table t (id integer primary key, {AT});"
                   "create table c (id integer primary key, t_id integer, foreign key (t_id) references t (id) on delete cascade)")
        self.db.execute("create trigger c_gone before delete on c for each row set @x = 1")
        contract = "policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}"
        self.finding(self.findings(contract, code=0), "note", "c_gone")

    def test_that_undoes_a_detachment(self):
        """Nothing may go whose references were not really emptied."""
        self.given(f"create table t (id integer primary key, {AT});"
                   "create table c (id integer primary key, t_id integer, key (t_id))")
        self.db.execute("create trigger c_stays before update on c for each row set new.t_id = old.t_id")
        self.insert("t", (1, 0))
        self.insert("c", (1, 1))
        contract = "policies: {t: {table: t, expires: at_ms, detach: [c(t_id)]}}"
        self.finding(self.findings(contract, code=0), "note", "c_stays")
        with self.untouched():
            r = self.sweep(contract, code=1)
        self.assertIn("stayed attached", r.policy("t")["skipped"][0]["error"])

