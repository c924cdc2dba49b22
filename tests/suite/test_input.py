"""Bad input of every kind: a clear message, the right exit code, nothing deleted."""
import os
import re
import shutil
import socket
import subprocess

from harness import *

PASSWORD = "Geheimnis-77"


class Input(Case):
    CONTRACT = "policies: {t: {table: t, expires: at_ms}}"

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, 0), (2, MS + 1))

    def refuses(self, contract, code, *words, commands=("check", "plan", "sweep"), db=..., **how):
        """All commands end with this code and say the words, and nothing is deleted."""
        for command in commands:
            for json in ((), ("--json",)):
                with self.subTest(f"{command} {' '.join(json)}"), self.untouched():
                    r = lapse(self.db if db is ... else db, contract, command, *json, **how)
                    self.assertIn(r.code, code if isinstance(code, tuple) else (code,), r)
                    for word in words:
                        self.assertRegex(r.said.lower(), word)
                    self.assertTrue(r.said.strip(), "nothing was said")
                    self.assertNotIn(PASSWORD, r.said)
                    self.assertNotIn(Postgres.PASSWORD, r.said)
                    if not json and r.code in (2, 5):
                        self.assertEqual(r.out, "", "a command that could not begin has no result to show")


class Files(Input, SqliteTest):
    """The contract itself. The engine does not matter here."""

    def test_a_missing_file(self):
        self.refuses(new_path("nowhere", ".yaml"), 2, "nowhere", "no such file", "lapse init dsn", "-f file")

    def test_no_default_file(self):
        r = lapse(None, None, "plan")
        self.assertEqual(r.code, 2, r)
        self.assertIn("lapse.yaml", r.said)

    def test_an_unreadable_file(self):
        path = contract_file(self.db, self.CONTRACT)
        path.chmod(0)
        if os.getuid() == 0:
            # root reads everything: ask as somebody else, with a copy of the program that all may run
            copy = new_path("lapse")
            shutil.copy(program(), copy)
            copy.chmod(0o755)
            p = subprocess.run([copy, "-f", path, "plan"], capture_output=True, text=True, user="nobody", group="nogroup",
                               extra_groups=[], cwd="/")
        else:
            p = subprocess.run([program(), "-f", path, "plan"], capture_output=True, text=True)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn("ermission denied", p.stderr)

    def test_a_database_of_a_server_that_replicates(self):
        """sqld, rqlite and their like: their replicas would keep what is deleted in the file."""
        for name, folder, server in (("wallog", False, "sqld"), (".sentinel", False, "sqld"), ("raft.db", False, "rqlite"),
                                     ("data-info", False, "libsql"), ("ltx", True, "litefs")):
            with self.subTest(name):
                home = new_folder()
                shutil.copy(self.db.path, home / "data")
                (home / "link").symlink_to(home / "data")
                contract = "store: 'sqlite:%s'\n" + self.CONTRACT
                self.assertEqual(lapse(None, contract % (home / "link"), "plan").code, 0)
                (home / name).mkdir() if folder else (home / name).write_bytes(b"")
                before = (home / "data").read_bytes()
                self.refuses(contract % (home / "data"), 2, server, "replicas", db=None)
                self.refuses(contract % (home / "link"), 2, server, name, db=None, commands=("sweep",))
                self.assertEqual((home / "data").read_bytes(), before)

    def test_a_file_that_fails_while_it_is_read(self):
        r = lapse(None, None, "-f", "/proc/self/mem", "plan")
        self.assertEqual(r.code, 2, r)

    def test_a_directory(self):
        self.refuses(new_folder(), 2, "directory")

    def test_a_device(self):
        r = lapse(None, None, "-f", "/dev/zero", "plan", timeout=20)
        self.assertEqual(r.code, 2, r)

    def test_a_pipe(self):
        """Nobody ever writes into it: it is not waited for."""
        pipe = new_path("pipe")
        os.mkfifo(pipe)
        r = lapse(None, None, "-f", pipe, "plan", timeout=60)
        self.assertEqual(r.code, 2, r)
        self.assertIn("a pipe", r.err)
        for place, what in ((pipe, "a pipe"), ("/dev/zero", "a device"), (new_folder(), "a directory")):
            with self.subTest(what):
                r = lapse(None, f"store_file: {place}\n{self.CONTRACT}\n", "plan", timeout=60)
                self.assertEqual(r.code, 2, r)
                self.assertIn(f"it is {what}", r.err)

    def test_an_empty_file(self):
        self.refuses(b"", 2)

    def test_a_file_of_comments(self):
        self.refuses(b"# nothing\n", 2)

    def test_binary_garbage(self):
        import random
        for seed in range(5):
            self.refuses(random.Random(seed).randbytes(5000), 2, commands=("plan",))
        self.refuses(b"\x00" * 100, 2, commands=("plan",))
        self.refuses(b"\xff\xfe" + "policies: {}".encode("utf-16le"), (2,), commands=("plan",))

    def test_text_that_is_not_utf8(self):
        self.refuses(f"store: '{self.db.dsn}'\n".encode() + b"policies: {t: {table: t, label: \"\xff\xfe\", expires: at_ms}}", 2,
                     commands=("plan", "sweep"))

    def test_ten_megabytes(self):
        policies = "".join(f"  p{n}: {{ table: t{n}, expires: at_ms, invariant: {'x' * 150} }}\n" for n in range(45000))
        text = "policies:\n" + policies
        self.assertGreater(len(text), 8_000_000)
        with self.untouched():
            r = lapse(self.db, text, "check", timeout=60)
        self.assertIn(r.code, (2, 3))

    def test_ten_megabytes_of_one_scalar(self):
        r = lapse(self.db, f"policies: {{t: {{table: t, expires: at_ms, label: {'x' * 10_000_000}}}}}", "plan", "--json")
        self.assertIn(r.code, (0, 2))

    def test_ten_megabytes_of_errors(self):
        text = "policies:\n" + "".join(f"  p{n}: {{ tabel: t }}\n" for n in range(400000))
        with self.untouched():
            r = lapse(self.db, text, "check", timeout=60)
        self.assertEqual(r.code, 2)
        self.assertLess(len(r.said), 100_000, "not a line for every one of them")

    def test_deep_nesting(self):
        for text in ("policies: " + "[" * 100_000, "policies: " + "{a: " * 100_000, "policies: " + "[" * 5000 + "]" * 5000,
                     "\n".join("  " * n + "a:" for n in range(3000)), "policies: {t: {table: t, expires: at_ms, where: "
                     + "{any: [" * 3000 + "{id: 1}" + "]}" * 3000 + "}}"):
            with self.untouched():
                r = lapse(self.db, text, "check")
            self.assertEqual(r.code, 2, r.said[:500])
            self.assertTrue(r.said)

    def test_duplicate_keys(self):
        self.refuses("policies: {t: {table: t, expires: at_ms, expires: id}}", 2, "expires", "twice|duplicate|already|again")
        self.refuses("policies:\n  t: {table: t, expires: at_ms}\n  t: {table: t, expires: at_ms}\n", 2, "twice|duplicate|already|again")
        self.refuses("policies: {t: {table: t, expires: at_ms}}\npolicies: {}\n", 2, "twice|duplicate|already|again")

    def test_aliases_that_explode(self):
        bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        for here, there in zip("bcdefghij", "abcdefghi"):
            bomb += f"{here}: &{here} [{','.join(['*' + there] * 10)}]\n"
        self.refuses(bomb + "policies: *j\n", 2)
        inside = bomb + "policies: {t: {table: t, expires: at_ms, rows: {id: *j}}}\n"
        self.refuses(inside, 2, commands=("check",))

    def test_an_alias_to_itself(self):
        self.refuses("policies: &p {t: *p}\n", 2, commands=("check",))

    def test_an_unknown_alias(self):
        self.refuses("policies: *nothing\n", 2, commands=("check",))

    def test_harmless_anchors_work_or_are_refused(self):
        r = self.sweep("""
            policies:
              t: { table: t, expires: &col at_ms }
              u: { table: t, age: *col, keep: 30d }
            """, code=None)
        self.assertIn(r.code, (0, 2))
        self.assertIn(2, self.ids("t"))

    def test_tags_and_merge_keys_are_not_silently_ignored(self):
        r = self.lapse("policies: {t: {<<: {table: t}, expires: at_ms}}", "plan", "--json")
        self.assertIn(r.code, (0, 2))
        self.assertIn(self.lapse("policies: {t: !!int {table: t, expires: at_ms}}", "plan", "--json").code, (0, 2))

    def test_several_documents(self):
        self.refuses(f"store: '{self.db.dsn}'\npolicies: {{}}\n---\npolicies: {{t: {{table: t, expires: at_ms}}}}\n", 2, db=None,
                     commands=("check",))

    def test_not_a_map(self):
        for text in ("[]", "just text", "5", "- a\n- b\n", "null", "''"):
            self.refuses(text.encode(), 2, commands=("check",))

    def test_broken_yaml_says_where(self):
        self.refuses(b"store: 'sqlite:x'\npolicies: {t: {table: t,\n  expires: [at_ms}}\n", 2, r"lapse\.yaml:[23]:\d+")


class Stores(Input, SqliteTest):
    def test_no_store(self):
        self.refuses(self.CONTRACT, 2, "store", db=None)

    def test_an_unknown_engine(self):
        for dsn in ("oracle://x/y", "mysqlite:/x", "x", "", "mongodb://localhost/x"):
            with self.subTest(dsn):
                self.refuses(self.CONTRACT, 2, "sqlite", db=dsn, commands=("sweep",))

    def test_two_hosts_that_are_not_there(self):
        """The words of libpq are several lines, which are told apart."""
        self.refuses(self.CONTRACT, 5, "port 1 failed", "; is the server running", r"\?; connection to server at",
                     db="postgresql://127.0.0.1:1,127.0.0.1:2/app", commands=("sweep",))

    def test_a_missing_database(self):
        path = new_path("missing", ".sqlite")
        self.refuses(self.CONTRACT, 5, "missing", db=f"sqlite:{path}")
        self.assertFalse(path.exists(), "it was created")

    def test_a_missing_folder(self):
        self.refuses(self.CONTRACT, 5, db=f"sqlite:{folder()}/none/x.sqlite")

    def test_a_directory(self):
        self.refuses(self.CONTRACT, 5, db=f"sqlite:{new_folder()}")

    def test_a_file_that_is_no_database(self):
        path = new_path("text", ".sqlite")
        path.write_text("This is no database. " * 500)
        before = path.read_bytes()
        self.refuses(self.CONTRACT, 5, "not a database", db=f"sqlite:{path}")
        self.assertEqual(path.read_bytes(), before)

    def test_a_damaged_database(self):
        self.insert("t", *[(n, 0) for n in range(10, 5000)])
        self.db.close()
        data = bytearray(self.db.path.read_bytes())
        for n in range(4096 * 2, len(data), 7):
            data[n] ^= 0x5A
        broken = new_path("broken", ".sqlite")
        broken.write_bytes(data)
        for command in ("check", "plan", "sweep"):
            r = lapse(f"sqlite:{broken}", self.CONTRACT, command)
            self.assertIn(r.code, (1, 3, 5), r)
            self.assertRegex(r.said.lower(), "malformed|corrupt|not a database")

    def test_a_read_only_database(self):
        where = new_folder()
        path = where / "ro.sqlite"
        self.db.close()
        shutil.copy(self.db.path, path)
        path.chmod(0o444)
        where.chmod(0o555)
        contract = contract_file(f"sqlite:{path}", self.CONTRACT)
        run = {"capture_output": True, "text": True, "cwd": "/"}
        binary = program()
        if os.getuid() == 0:
            binary = new_path("lapse")
            shutil.copy(program(), binary)
            binary.chmod(0o755)
            run.update(user="nobody", group="nogroup", extra_groups=[])
        before = path.read_bytes()
        p = subprocess.run([binary, "-f", contract, "sweep"], **run)
        self.assertIn(p.returncode, (1, 3, 5), p.stdout + p.stderr)
        self.assertRegex((p.stdout + p.stderr).lower(), "read.?only|only be read|permission")
        self.assertEqual(path.read_bytes(), before)
        p = subprocess.run([binary, "-f", contract, "plan", "--now", NOW], **run)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        where.chmod(0o755)

    def test_odd_paths(self):
        for name in ("a b", "x?mode=memory", "x#y", "x%41", "ž", "file:x"):
            with self.subTest(name):
                db = Sqlite(new_folder() / (name + ".sqlite"))
                db.script("create table t (id integer primary key, at_ms integer); insert into t values (1, 0)")
                r = lapse(db, self.CONTRACT, "sweep", "--json")
                self.assertEqual(r.code, 0, r)
                self.assertEqual(db.rows("select * from t"), [])
                db.close()

    def test_a_relative_path(self):
        where = new_folder()
        shutil.copy(self.db.path, where / "x.sqlite")
        r = lapse("sqlite:x.sqlite", self.CONTRACT, "plan", "--json", cwd=where)
        self.assertEqual(r.policy("t")["rows"], 2, r)

    def test_store_file(self):
        path = contract_file(None, "store_file: dsn\n" + self.CONTRACT)
        (path.parent / "dsn").write_text(self.db.dsn + "\n")
        r = lapse(None, path, "sweep", "--json", "--now", NOW, cwd="/")
        self.assertEqual(r.code, 0, r)
        self.left("t", 2)

    def test_store_file_that_is_missing(self):
        self.refuses("store_file: nowhere.txt\n" + self.CONTRACT, 2, "nowhere.txt", db=None)

    def test_store_and_store_file(self):
        self.refuses(f"store: 'sqlite:x'\nstore_file: y\n{self.CONTRACT}", 2, "store_file", db=None)

    def test_an_empty_store_file(self):
        path = contract_file(None, "store_file: dsn\n" + self.CONTRACT)
        (path.parent / "dsn").write_text("\n")
        self.refuses(path, 2, db=None)

    def test_the_environment(self):
        contract = ('store: "${LAPSE_TEST_DSN}"\n'
                    'policies: {t: {table: "${LAPSE_TEST_TABLE:-t}", age: at_ms, keep: "${LAPSE_TEST_DAYS:-7}d"}}')
        r = lapse(None, contract, "sweep", "--json", "--now", NOW, env={"LAPSE_TEST_DSN": self.db.dsn})
        self.assertEqual(r.code, 0, r)
        self.left("t", 2)

    def test_the_environment_overrides_the_default(self):
        contract = "policies: {t: {table: t, age: at_ms, keep: '${LAPSE_TEST_DAYS:-7}d'}}"
        r = lapse(self.db, contract, "sweep", "--json", "--now", NOW, env={"LAPSE_TEST_DAYS": "100000"})
        self.assertEqual(r.policy("t")["rows"], 0, r)

    def test_a_variable_that_is_not_set(self):
        self.refuses("policies: {t: {table: '${LAPSE_TEST_UNSET}', expires: at_ms}}", 2, "lapse_test_unset")

    def test_a_variable_cannot_add_keys(self):
        contract = "policies: {t: {table: t, age: at_ms, keep: '${X}'}}"
        self.refuses(contract, 2, env={"X": "now\n    rows: {}"}, commands=("sweep",))

    def test_a_bad_value_from_the_environment(self):
        self.refuses("policies: {t: {table: t, age: at_ms, keep: '${X}d'}}", 2, env={"X": "-7"}, commands=("sweep",))


class PostgresStores(Input, PostgresTest):
    def test_no_server(self):
        self.refuses(self.CONTRACT, 5, db=f"postgresql:///x?host={folder()}/none")

    def test_a_port_that_is_closed(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.refuses(self.CONTRACT, 5, db=f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/x")

    def test_a_host_that_does_not_exist(self):
        self.refuses(self.CONTRACT, 5, db=f"postgresql://me:{PASSWORD}@no-such-host.invalid/x")

    def test_a_server_that_does_not_answer(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            port = s.getsockname()[1]
            self.refuses(self.CONTRACT, 5, db=f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/x?connect_timeout=2",
                         commands=("plan",))

    def test_no_such_database(self):
        self.refuses(self.CONTRACT, 5, "nowhere_db", db=postgres().dsn("nowhere_db"))

    def test_a_wrong_password_is_never_printed(self):
        self.refuses(self.CONTRACT, 5, "password",
                     db=postgres().dsn(self.db.name, user="guarded", password=PASSWORD))

    def test_a_missing_password_does_not_ask(self):
        self.refuses(self.CONTRACT, 5, "password", db=postgres().dsn(self.db.name, user="guarded"), timeout=10)

    def test_the_right_password(self):
        self.given("grant all on t to guarded")
        dsn = postgres().dsn(self.db.name, user="guarded", password=Postgres.PASSWORD)
        r = lapse(dsn, self.CONTRACT, "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 0, r)
        self.assertNotIn(Postgres.PASSWORD, r.said)

    def test_a_password_in_a_broken_dsn(self):
        for dsn in (f"postgresql://me:{PASSWORD}@[::1/x", f"postgresql://me:{PASSWORD}@h:notaport/x",
                    f"postgresql://me@h/x?password={PASSWORD}&nosuchoption=1",
                    f"postgresql://me:{PASSWORD}%zz@h/x", f"postgres//me:{PASSWORD}@h/x"):
            with self.subTest(dsn.replace(PASSWORD, "…")):
                self.refuses(self.CONTRACT, (2, 5), db=dsn, commands=("plan", "sweep"))

    def test_the_password_is_not_in_the_process_list(self):
        dsn = postgres().dsn(self.db.name, user="guarded", password=Postgres.PASSWORD)
        self.given("grant all on t to guarded")
        blocker = self.db.connect()
        with blocker.cursor() as c:
            c.execute("begin; lock table t in access exclusive mode")
            p = Lapse.start(dsn, self.CONTRACT, "sweep")
            import time
            time.sleep(0.5)
            line = open(f"/proc/{p.pid}/cmdline").read()
            names = self.db.rows("select application_name, query from pg_stat_activity where usename = 'guarded'")
            c.execute("rollback")
        blocker.close()
        p.wait()
        self.assertNotIn(Postgres.PASSWORD, line)
        self.assertNotIn(Postgres.PASSWORD, str(names))

    def test_a_database_that_cannot_be_written(self):
        self.given(f"""
            revoke all on t from public; create role ro_{self.db.name} login; grant select on t to ro_{self.db.name}""")
        self.addCleanup(lambda: self.given(f"drop owned by ro_{self.db.name}; drop role ro_{self.db.name}"))
        self.refuses(self.CONTRACT, 3, "delete|privilege|permission", db=postgres().dsn(self.db.name, user=f"ro_{self.db.name}"),
                     commands=("sweep",))


@every_engine
class Schemas(Input):
    """The contract reads well and the schema does not allow it."""

    def test_a_view_instead_of_a_table(self):
        self.given("create view v as select * from t")
        self.refuses("policies: {p: {table: v, expires: at_ms}}", 3, "view")

    def test_a_table_without_a_key(self):
        self.given("create table bare (x integer, at_ms bigint)")
        self.insert("bare", (1, 0))
        self.refuses("policies: {p: {table: bare, expires: at_ms}}", 3, "key")

    def test_a_time_column_that_is_boolean(self):
        self.given("create table b (id integer primary key, done boolean)")
        self.insert("b", (1, True))
        self.refuses("policies: {p: {table: b, expires: done}}", 3, "done", "tinyint" if self.on_mariadb else "boolean")

    def test_a_reference_to_a_missing_column(self):
        self.given("create table c (id integer primary key)")
        self.refuses("policies: {p: {table: t, expires: at_ms, with: [c(t_id)]}}", 3, "t_id")

    def test_sql_that_does_not_parse(self):
        self.refuses("policies: {p: {table: t, expires: at_ms, where: 'this.id = = 1'}}", 3, "syntax")

    def test_sql_with_a_semicolon(self):
        self.refuses("policies: {p: {table: t, expires: at_ms, where: '1 = 1; delete from t'}}", (2, 3), ";")

    def test_sql_that_closes_its_parenthesis(self):
        self.refuses("policies: {p: {table: t, expires: at_ms, hold: '1 = 0) or (1 = 1'}}", (2, 3), r"parenthes|\)")

    def test_sql_that_writes(self):
        if self.on_postgres:
            self.given("create function f() returns boolean language sql as 'delete from t returning true'")
            self.refuses("policies: {p: {table: t, expires: at_ms, where: 'f()'}}", (1, 3), commands=("check", "plan"))

    def test_sql_of_a_whole_statement(self):
        self.refuses("policies: {p: {table: t, expires: at_ms, where: 'delete from t'}}", (2, 3))

    def test_an_unknown_zone(self):
        for zone in ("Europe/Prag", "../../etc/passwd", "Mars", "''", "/etc/localtime", "posixrules/../x"):
            with self.subTest(zone):
                self.refuses(f"policies: {{p: {{table: t, expires: at_ms, zone: {zone}}}}}", 2, r"lapse\.yaml:2:\d+", "zone",
                             commands=("sweep",))

    def test_a_row_of_an_odd_value(self):
        self.insert("t", (3, None))
        self.sweep(self.CONTRACT)
        self.left("t", 2, 3)


class Usage(Input, SqliteTest):
    def usage(self, code, *args, words=()):
        with self.untouched():
            r = lapse(None, None, *args)
        self.assertEqual(r.code, code, r)
        for w in words:
            self.assertIn(w, r.said)
        return r

    def test_no_command(self):
        self.usage(2, words=("--help",))

    def test_a_command_by_another_name(self):
        for word, ours in (("validate", "check"), ("dry-run", "plan"), ("apply", "sweep"), ("daemon", "run")):
            with self.subTest(word):
                self.usage(2, word, words=(f"unknown command '{word}' (that is 'lapse {ours}' here)",))

    def test_an_unknown_command(self):
        self.usage(2, "swep", words=("swep", "sweep"))

    def test_an_unknown_option(self):
        path = contract_file(self.db, self.CONTRACT)
        self.usage(2, "-f", path, "sweep", "--dry-run", words=("--dry-run",))
        self.usage(2, "-f", path, "sweep", "--jsn", words=("--jsn",))

    def test_an_option_of_another_command(self):
        path = contract_file(self.db, self.CONTRACT)
        self.usage(2, "-f", path, "sweep", "--sql")
        self.usage(2, "-f", path, "sweep", "--strict")

    def test_an_option_without_its_value(self):
        self.usage(2, "sweep", "-f")
        path = contract_file(self.db, self.CONTRACT)
        self.usage(2, "-f", path, "sweep", "--now")

    def test_an_argument_too_many(self):
        path = contract_file(self.db, self.CONTRACT)
        self.usage(2, "-f", path, "check", "extra")

    def test_help(self):
        for args in (("--help",), ("-h",), ("help",), ("sweep", "--help")):
            with self.subTest(args):
                r = self.usage(0, *args)
                self.assertIn("sweep", r.out)
                self.assertEqual(r.err, "")

    def test_help_of_every_command_has_an_example(self):
        names = re.findall(r"^  ([a-z]+) {2,}", self.usage(0, "help").out, re.M)
        self.assertIn("sweep", names)
        for name in names:
            with self.subTest(name):
                example = re.search(r"^example: lapse (.*)", self.usage(0, "help", name).out, re.M)[1]
                self.assertIn(name, example.split())

    def test_help_of_a_key(self):
        for args in (("help", "keep_newest"), ("keys", "keep_newest")):
            self.usage(0, *args, words=("policy.keep_newest: map\n",))
        self.usage(0, "help", "enabled", words=("scheduler.enabled: ", "policy.enabled: "))
        self.assertNotIn("scheduler.enabled", self.usage(0, "help", "policy.enabled").out)
        self.usage(2, "keys", "kepp", words=("no key 'kepp' (did you mean 'keep'?)",))
        self.usage(2, "help", "swep", words=("did you mean 'sweep'?",))
        self.usage(2, "help", "kepp", words=("'lapse help keep'",))

    def test_a_sweep_of_purges_only_says_what_carries_them_out(self):
        contract = "purges: {flow: {erases: [t(id)]}}"
        for command in ("sweep", "plan"):
            self.assertIn("has purges only: lapse run carries them out, or lapse purge due", self.lapse(contract, command, code=0).said)
            self.assertNotIn("purges only", self.lapse(self.CONTRACT + "\n" + contract, command, code=0).said)

    def test_version(self):
        r = self.usage(0, "--version")
        self.assertRegex(r.out, r"\d+\.\d+")


def new_folder():
    path = new_path("folder")
    path.mkdir()
    return path
