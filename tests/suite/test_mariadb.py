"""What is MariaDB's own: connection strings, settings of the server, types that compare by accident, times, and which
rows a batch locks. What its catalog says is in test_mariadb_catalog.py."""
import contextlib
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

from harness import *

sys.path.insert(0, str(ROOT / "tests" / "faults"))
from proxy import Proxy, Session

PASSWORD = "hunter2-Sesame"
CONTRACT = "policies: {t: {table: t, expires: at_ms}}"


class OwnServer(Case):
    """A server of its own for the class, to be set up otherwise."""
    engine = "mariadb"
    settings, server = {}, None

    @classmethod
    def setUpClass(cls):
        cls.server = Mariadb(port=True, settings=cls.settings)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.db = self.server.fresh()
        self.addCleanup(self.db.drop)


class Strings(OwnServer, MariadbTest):
    """mariadb://…: every way to say where it is, who asks and with which password."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.admin(f"create user secret@'%' identified by '{PASSWORD}'")
        cls.server.admin("grant all on *.* to secret@'%'")

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, 0), (2, MS + 1))

    def works(self, dsn, **how):
        self.db.execute("insert ignore into t values (1, 0)")
        r = lapse(dsn, CONTRACT, "sweep", "--json", "--now", NOW, **how)
        self.assertEqual((r.code, self.ids("t")), (0, [2]), r)
        self.assertNotIn(PASSWORD, r.said)

    def fails(self, dsn, *words, code=5, **how):
        start = time.monotonic()
        for command in ("check", "plan", "sweep", "install"):
            r = lapse(dsn, CONTRACT, command, **how)
            self.assertEqual(r.code, code, r)
            self.assertNotIn(PASSWORD, r.said)
            for w in words:
                self.assertRegex(r.said.lower(), w)
        self.left("t", 1, 2)
        self.assertLess(time.monotonic() - start, 60)

    def where(self, who="root", query="", scheme="mariadb"):
        return f"{scheme}://{who}@127.0.0.1:{self.server.port}/{self.db.name}{query}"

    def test_a_socket_and_a_port(self):
        self.works(self.server.dsn(self.db.name))
        self.works(self.server.dsn(self.db.name, tcp=True))
        self.works(self.where(scheme="mysql"))

    def test_passwords(self):
        file = new_path("password")
        file.write_text(PASSWORD + "\n")
        file.chmod(0o600)
        self.works(self.where(f"secret:{PASSWORD}"))
        self.works(self.where("secret:" + PASSWORD.replace("-", "%2D")))
        self.works(self.where("secret", f"?password_file={file}"))
        self.works(self.where("secret"), env={"MYSQL_PWD": PASSWORD})

    def test_a_wrong_one_is_never_printed(self):
        self.fails(self.where("root:" + PASSWORD), "denied")
        self.fails(self.where("secret"), "denied")
        self.fails(self.where("secret", f"?password_file={new_path('none')}"), "password_file")

    def test_nobody_there(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.fails(f"mariadb://root:{PASSWORD}@127.0.0.1:{s.getsockname()[1]}/x")
        self.fails(f"mariadb://root:{PASSWORD}@localhost/x?socket={new_path('socket')}")
        self.fails(f"mariadb://root:{PASSWORD}@no-such-host.invalid/x")
        self.fails(f"mariadb://root@127.0.0.1:{self.server.port}/nowhere_db", "nowhere_db")

    def test_one_that_does_not_answer(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            dsn = f"mariadb://root:{PASSWORD}@127.0.0.1:{s.getsockname()[1]}/x?connect_timeout=2"
            start = time.monotonic()
            self.assertEqual(lapse(dsn, CONTRACT, "plan").code, 5)
            self.assertLess(time.monotonic() - start, 30)

    def test_broken_strings(self):
        for dsn in (f"mariadb://root:{PASSWORD}@h:notaport/x", f"mariadb://root:{PASSWORD}@h/x?nosuchoption=1",
                    f"mariadb://root:{PASSWORD}%zz@h/x", f"mariadb://root:{PASSWORD}@h:70000/x",
                    f"mariadb://root:{PASSWORD}@h", f"mariadb://root:{PASSWORD}@h/"):
            with self.subTest(dsn.replace(PASSWORD, "…")):
                r = lapse(dsn, CONTRACT, "sweep")
                self.assertIn(r.code, (2, 5), r)
                self.assertNotIn(PASSWORD, r.said)

    def test_the_password_is_in_no_list_of_processes(self):
        file = new_path("password")
        file.write_text(PASSWORD)
        with contextlib.closing(self.db.connect()) as c:
            c.execute("lock tables t write")
            p = Lapse.start(self.where("secret", f"?password_file={file}"), CONTRACT, "sweep")
            time.sleep(0.5)
            line = Path(f"/proc/{p.pid}/cmdline").read_text()
            shown = str(self.server.admin("select * from information_schema.processlist"))
            c.execute("unlock tables")
        p.wait()
        self.assertNotIn(PASSWORD, line + shown)

    def certificates(self):
        """A CA, another CA, and a server's key and certificate for localhost that the first signed."""
        home = new_path("tls")
        home.mkdir()
        openssl = lambda *args: subprocess.run(["openssl", *args], cwd=home, check=True, capture_output=True)
        for ca in ("ca", "other"):
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN=lapse test {ca}",
                    "-keyout", f"{ca}.key", "-out", f"{ca}.pem")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-out", "server.pem")
        (home / "server.key").chmod(0o644)      # the server is another user
        home.chmod(0o755)
        return home

    def test_encrypted_with_a_real_certificate(self):
        """The name in the certificate is localhost; 127.0.0.1 is another name for the same server."""
        home = self.certificates()
        server = Mariadb(port=True, settings={"ssl-cert": home / "server.pem", "ssl-key": home / "server.key",
                                              "ssl-ca": home / "ca.pem"})
        self.addCleanup(server.stop)
        server.admin(f"create user crypt@'%' identified by '{PASSWORD}' require ssl")
        server.admin("grant all on *.* to crypt@'%'")
        self.db = server.fresh()
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, 0), (2, MS + 1))

        def dsn(query, host="localhost"):
            return f"mariadb://crypt:{PASSWORD}@{host}:{server.port}/{self.db.name}?{query}"
        ca, other = f"ssl_ca={home / 'ca.pem'}", f"ssl_ca={home / 'other.pem'}"
        for good in ("ssl_mode=required", "ssl_mode=preferred", f"ssl_mode=verify_ca&{ca}", f"ssl_mode=verify_identity&{ca}", ca):
            with self.subTest(good):
                self.works(dsn(good))
        self.works(dsn("ssl_mode=required", "127.0.0.1"))
        self.db.execute("insert ignore into t values (1, 0)")
        for bad, host in (("ssl_mode=disabled", "localhost"), (other, "localhost"), (ca, "127.0.0.1"),
                          (f"ssl_mode=verify_ca&{other}", "localhost"),
                          (f"ssl_mode=verify_identity&{other}", "localhost"), (f"ssl_mode=verify_identity&{ca}", "127.0.0.1"),
                          (f"ssl_mode=verify_ca&ssl_ca={home / 'nowhere.pem'}", "localhost")):
            with self.subTest(bad, host=host):
                self.fails(dsn(bad, host))

    def test_the_greatest_of_unsigned_numbers_are_newest(self):
        """Beyond 63 bits a number is told as a text: that does not make a column one of numbers and texts."""
        self.given("create table u (id integer primary key, at_ms bigint unsigned)")
        self.insert("u", (1, 5), (2, 18446744073709551614), (3, 9223372036854775808), (4, 7))
        r = lapse(self.db, "policies: {u: {table: u, cap: {rows: 2, newest: [at_ms]}}}", "sweep", "--json", "--now", NOW)
        self.assertEqual((r.code, self.ids("u")), (0, [2, 3]), r)

    def test_encrypted_or_not_at_all(self):
        """A server that has no certificate is refused where encryption is asked for."""
        for mode in ("required", "verify_ca", "verify_identity"):
            self.fails(self.where(query=f"?ssl_mode={mode}"), "tls|ssl|encrypt")
        self.fails(self.where(query="?tls=required"), "there is no such option")


class Settings(OwnServer, MariadbTest):
    """Whatever the server's defaults are, statements mean the same."""
    settings = {"autocommit": "0", "transaction-isolation": "SERIALIZABLE", "div-precision-increment": "0",
                "group-concat-max-len": "4", "max-allowed-packet": "1M"}
    GLOBAL = "set global sql_safe_updates = 1, sql_select_limit = 1"
    MODES = ("", "ANSI", "NO_BACKSLASH_ESCAPES", "TRADITIONAL", "PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE",
             "ORACLE", "ONLY_FULL_GROUP_BY,NO_ZERO_DATE,NO_ZERO_IN_DATE,STRICT_ALL_TABLES", "IGNORE_SPACE,REAL_AS_FLOAT")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.admin(cls.GLOBAL)

    def test_modes(self):
        odd = ["a'b", "a\\b", "a\\'b", 'a"b', "", "\\", "%", "done"]
        self.given("create table t (id integer primary key, state varchar(20) collate utf8mb4_nopad_bin, kind char(5), "
                   "at datetime(6)); create index t_at on t(at)")
        self.given("create table c (id integer primary key, t_id integer references t(id))")
        for mode in self.MODES:
            with self.subTest(mode):
                self.server.admin(f"set global sql_mode = '{mode}'")
                self.db.close()
                self.given("set sql_select_limit = 18446744073709551615; set sql_safe_updates = 0; delete from c; delete from t")
                self.insert("t", *[(n, s, "x", "2024-06-15 11:00:00") for n, s in enumerate(odd)],
                            (50, "other", "x", "2024-06-15 11:00:00"), (51, "done", "y", "2024-06-15 11:00:00"),
                            (52, "done", "x", "2024-06-15 12:00:00.000001"))
                self.insert("c", *[(n, n) for n in range(len(odd))])
                self.given("commit")
                values = ", ".join("'%s'" % s.replace("'", "''") for s in odd)
                self.swept(f"policies: {{t: {{table: t, rows: {{state: [{values}], kind: x}}, expires: at, batch: 3, "
                           "with: [c(t_id)]}}", gone={"t": len(odd), "c": len(odd)})
                self.left("t", 50, 51, 52)

    def test_more_keys_than_a_packet_holds(self):
        self.given("set sql_select_limit = 18446744073709551615; set sql_safe_updates = 0; create table t (k varchar(90) primary key, "
                   "at_ms bigint); insert into t select concat(repeat('k', 60), seq), 0 from seq_1_to_30000; commit")
        for batch in ("null", 20000):
            with self.subTest(batch):
                self.given("insert ignore into t select concat(repeat('k', 60), seq), 0 from seq_1_to_30000; commit")
                r = self.sweep(f"policies: {{t: {{table: t, expires: at_ms, batch: {batch}}}}}", timeout=120)
                self.assertEqual(r.policy("t")["rows"], 30000)

    def test_a_server_that_only_reads(self):
        self.given("create table t (id integer primary key, at_ms bigint); insert into t values (1, 0); commit")
        dsn = self.server.user(self.db.name, "app", "select, insert, update, delete on *")
        self.server.admin("set global read_only = 1")
        try:
            r = lapse(dsn, CONTRACT, "sweep", "--json")
        finally:
            self.server.admin("set global read_only = 0")
        self.assertIn(r.code, (1, 5), r)
        self.assertRegex(r.said, "read.only")
        self.left("t", 1)


class Values(Case, MariadbTest):
    """Never by accident: what a column holds is compared as what the column is."""

    def goes(self, column, rows, wanted, *gone):
        """Of these values, those with these numbers go."""
        self.given(f"drop table if exists t; create table t (id integer primary key, v {column}, at_ms bigint)")
        self.insert("t", *[(n, v, 0) for n, v in enumerate(rows)])
        r = self.sweep(f"policies: {{t: {{table: t, rows: {{v: {wanted}}}, expires: at_ms}}}}", code=None)
        self.assertIn(r.code, (0, 3), r)
        self.assertEqual(self.ids("t"), [n for n in range(len(rows)) if n not in gone], r)
        return r

    def test_a_text_is_no_number(self):
        for column in ("varchar(20)", "varchar(20) collate utf8mb4_nopad_bin", "char(9)", "tinytext", "longtext"):
            with self.subTest(column):
                self.given(f"drop table if exists t; create table t (id integer primary key, v {column}, at_ms bigint)")
                self.insert("t", (1, "done", 0), (2, "", 0), (3, "0x", 0), (4, " 0", 0))
                with self.untouched():
                    r = self.sweep("policies: {t: {table: t, rows: {v: 0}, expires: at_ms}}", code=None)
                self.assertIn(r.code, (0, 3), r)

    def test_case_and_blanks(self):
        values = ["done", "DONE", "done ", "Done", "döne", " done", "done\t"]
        for column in ("varchar(20)", "char(20)", "tinytext", "varchar(20) collate utf8mb4_bin",
                       "varchar(20) collate utf8mb4_unicode_ci", "varchar(20) character set latin1"):
            with self.subTest(column):
                # CHAR has no blanks at its end
                self.goes(column, values, "done", *((0, 2) if column.startswith("char") else (0,)))

    def test_a_number_is_no_text(self):
        self.goes("integer", [0, 1, 12], "'1abc'")
        self.goes("integer", [0, 1, 12], "abc")
        self.goes("bigint", [2**53, 2**53 + 1], str(2**53 + 1), 1)
        self.goes("bigint unsigned", [2**63 - 1, 2**63 - 2], str(2**63 - 1), 0)

    def test_an_enum_is_what_it_says(self):
        self.goes("enum('2', '1', 'done')", ["2", "1", "done"], "'1'", 1)
        r = self.goes("enum('a', 'b')", ["a", "b"], "1")
        self.assertTrue(r.code == 3 or r.policy("t")["rows"] == 0)

    def test_exact_numbers(self):
        self.goes("decimal(20, 10)", ["0.1", "0.1000000001"], "0.1", 0)

    def test_a_text_is_no_time_of_day(self):
        """The server takes what is none for midnight."""
        times = ["00:00:00", "00:00:01", "01:00:00.5", "-12:00:00"]
        self.goes("time(1)", times, "'00:00:01'", 1)
        self.goes("time(1)", times, "'-12:00'", 3)
        for none in ("abc", "''", "'12:99:00'", "2024-06-15"):
            with self.subTest(none):
                r = self.goes("time(1)", times, none)
                self.assertEqual(r.code, 3, r)

    def test_a_year_has_four_digits(self):
        """The server takes 99 for 1999, and 5 for 2005."""
        years = [1999, 2005, 1970, 0]
        self.goes("year", years, "[1999, 0]", 0, 3)
        self.goes("year", years, "'2005'", 1)
        for none in ("99", "5", "'99'", "70"):
            with self.subTest(none):
                r = self.goes("year", years, none)
                self.assertEqual(r.code, 3, r)
        self.given("drop table t; create table t (id integer primary key, v year, at_ms bigint)")
        self.insert("t", *[(n, v, 0) for n, v in enumerate(years)])
        self.sweep("policies: {t: {table: t, where: {v: {lt: 71}}, expires: at_ms}}", code=3)
        self.left("t", 0, 1, 2, 3)

    def test_a_time_is_no_number(self):
        """`now` is never compared with a BIGINT as the number that its digits make."""
        self.given("create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms)")
        self.insert("t", (1, 20240615120000), (2, 20240615), (3, MS), (4, MS + 1), (5, 2**63 - 1), (6, -2**63))
        self.swept(CONTRACT, gone={"t": 3})
        self.left("t", 1, 4, 5)


class TimesOfItsOwn(Case, MariadbTest):
    def due(self, column, *rows, zone=None, now=NOW):
        """rows: (value, whether it goes)."""
        self.given(f"drop table if exists t; create table t (id integer primary key, at {column})")
        self.insert("t", *[(n, v) for n, (v, _) in enumerate(rows)])
        gone = sum(goes for _, goes in rows)
        said = f", zone: {zone}" if zone else ""
        self.swept(f"policies: {{t: {{table: t, expires: at{said}}}}}", gone={"t": gone} if gone else {}, now=now)
        self.assertEqual(self.ids("t"), [n for n, (_, goes) in enumerate(rows) if not goes], column)

    def test_fractions(self):
        self.due("datetime(6)", ("2024-06-15 12:00:00", True), ("2024-06-15 12:00:00.000001", False))
        self.due("timestamp(6)", ("2024-06-15 12:00:00", True), ("2024-06-15 12:00:00.000001", False))
        self.due("datetime(3)", ("2024-06-15 12:00:00", True), ("2024-06-15 12:00:00.001", False),
                 now="2024-06-15T12:00:00.000999Z")
        self.due("datetime", ("2024-06-15 12:00:00", True), ("2024-06-15 12:00:01", False), now="2024-06-15T12:00:00.9Z")

    def test_zones(self):
        """DATETIME is local to the declared zone, TIMESTAMP an instant whatever is declared."""
        self.due("datetime", ("2024-06-15 14:00:00", True), ("2024-06-15 14:00:01", False), zone="Europe/Prague")
        self.due("timestamp(0) null", ("2024-06-15 12:00:00", True), ("2024-06-15 12:00:01", False), zone="Europe/Prague")
        self.due("date", ("2024-06-15", True), ("2024-06-16", False), zone="Europe/Prague")
        # shown twice: the later
        self.due("datetime", ("2023-10-29 02:30:00", False), zone="Europe/Prague", now="2023-10-29T01:29:59Z")
        self.due("datetime", ("2023-10-29 02:30:00", True), zone="Europe/Prague", now="2023-10-29T01:30:00Z")

    def test_zero_dates_are_kept(self):
        for column in ("datetime", "timestamp(0) null", "date", "datetime(6)"):
            with self.subTest(column):
                self.given(f"drop table if exists t; create table t (id integer primary key, at {column}, n integer)")
                self.given("set sql_mode = 'ANSI_QUOTES'")
                self.insert("t", (1, "0000-00-00", 0), (2, "2020-01-01", 0), (3, None, 0))
                if column != "timestamp(0) null":
                    self.insert("t", (4, "2020-00-00", 0), (5, "2020-02-00", 0))
                kept = self.ids("t")
                kept.remove(2)
                self.swept("policies: {t: {table: t, expires: at}}", gone={"t": 1},
                           kept={"null_time": 1, "unreadable_time": len(kept) - 1})
                self.left("t", *kept)
                self.swept("policies: {t: {table: t, age: at, keep: 1d, where: {n: 0}}}", gone={})
                self.db.close()

    def test_a_zero_date_is_not_null(self):
        """In a condition the server takes it for NULL where the column admits none."""
        for column in ("date not null", "datetime not null", "datetime(6) not null", "date", "timestamp(0) not null default 0"):
            with self.subTest(column):
                self.given(f"drop table if exists t; create table t (id integer primary key, at {column}, other_s integer)")
                self.insert("t", (1, "0000-00-00", 1), (2, "2020-01-01", 1))
                self.swept("policies: {t: {table: t, age: [at, other_s], keep: 1h}}", gone={"t": 1},
                           kept={"null_time": 0, "unreadable_time": 1})
                self.left("t", 1)
                self.swept("policies: {t: {table: t, age: other_s, keep: 1h, rows: {at: null}}}", gone={})
                self.swept("policies: {t: {table: t, age: other_s, keep: 1h, hold: {at: {not: null}}}}", gone={})

    def test_the_ends_of_what_a_column_holds(self):
        self.due("datetime(6)", ("0001-01-01 00:00:00", True), ("9999-12-31 23:59:59.999999", False))
        self.due("timestamp(6) null", ("1970-01-01 00:00:01", True), ("2038-01-19 03:14:07.999999", False))
        self.due("date", ("0001-01-01", True), ("9999-12-31", False))

    def test_days_that_do_not_exist_are_kept(self):
        for column in ("datetime", "date"):
            self.given(f"drop table if exists t; create table t (id integer primary key, at {column})")
            self.given("set sql_mode = 'ANSI_QUOTES,ALLOW_INVALID_DATES'")
            self.insert("t", (1, "2020-02-31"), (2, "2019-02-29"), (3, "2020-02-29"), (4, "0000-05-01"), (5, "2020-00-05"))
            self.swept("policies: {t: {table: t, expires: at}}", gone={"t": 1}, kept={"unreadable_time": 4})
            self.swept("policies: {t: {table: t, age: at, keep: 1d, zone: Europe/Prague}}", gone={}, kept={"unreadable_time": 4})
            self.left("t", 1, 2, 4, 5)
            self.db.close()

    def test_counts_without_a_sign(self):
        """Nothing is subtracted from an unsigned column, and nothing overflows."""
        self.given("create table t (id integer primary key, at_s bigint unsigned, days bigint unsigned)")
        most = 2 ** 64 - 1
        self.insert("t", (1, 0, 1), (2, most, 1), (3, 0, most), (4, most, most), (5, 0, 0), (6, None, 1), (7, 0, None),
                    (8, MS // 1000 - 86401, 1), (9, MS // 1000 - 86400, 1))
        self.swept("policies: {t: {table: t, age: at_s, keep: {column: days, unit: d}}}", gone={"t": 2})
        self.left("t", 2, 3, 4, 5, 6, 7, 9)

    def test_the_latest_of_several(self):
        self.given("create table t (id integer primary key, a datetime(6), b bigint unsigned, c varchar(40))")
        old, new = "2024-06-01 12:00:00.000000", "2024-06-15 11:59:59.000001"
        text = "2024-06-01T14:00:00+02:00"
        self.insert("t", (1, old, 0, text), (2, new, 0, text), (3, old, MS, text), (4, old, 0, "2024-06-15T13:59:59+02:00"),
                    (5, None, 0, text), (6, old, None, None), (7, None, None, None), (8, None, None, "2024-06-15T11:59:59Z"))
        r = self.swept("policies: {t: {table: t, age: [a, b, c], unit: ms, keep: 1d}}", gone={"t": 3})
        self.left("t", 2, 3, 4, 7, 8)
        self.assertEqual(r.policy("t")["rows"], 3)

    def test_flags_of_patterns(self):
        """What a server's default_regex_flags make of a pattern does not matter."""
        flags = self.db.rows("select @@global.default_regex_flags")[0][0]
        self.addCleanup(lambda: self.db.execute("set global default_regex_flags = ?", (flags,)))
        for said in ("EXTENDED", "MULTILINE,DOTALL", "UNGREEDY", "EXTRA,EXTENDED_MORE"):
            try:
                self.db.execute("set global default_regex_flags = ?", (said,))
            except Exception:       # not one of this version's
                continue
            self.due("varchar(99)", ("2024-06-15 12:00:00.123456789 +00:00", False), ("2024-06-15 11:59:59.999999999 Z", True),
                     ("2024-06-15T11:59", True), ("2024-06-15T11:59\n", False), ("x\n2024-06-15T11:59", False),
                     ("2024-06-15\n11:59", False), ("2024-06-15T13:59:00.5+02:00", True), ("2024-06-15T13:59:00.5+0159", False),
                     ("2024-06-15T09:59:00-02", True), ("2024-06-15T11:59 -00:01", True), ("2024-06-15T11:59-00:02", False))

    def test_texts_of_any_length(self):
        """A text that a pattern takes long to refuse is refused, not an error."""
        self.given("create table t (id integer primary key, at longtext character set latin1)")
        at = "2024-06-01 10:00:00"
        self.insert("t", (1, at + "." + "1" * 1_000_000), (2, at + " " * 1_000_000 + "Z"), (3, at + " " * 1_000_000 + "x"),
                    (4, at + "." + "1" * 1_000_000 + "y"), (5, "2" * 1_000_000))
        self.swept("policies: {t: {table: t, expires: at}}", gone={"t": 2}, kept={"unreadable_time": 3})
        self.left("t", 3, 4, 5)

    def test_no_time(self):
        for column in ("time", "year", "json", "blob", "double", "enum('a')", "set('a')", "bit(8)", "point"):
            with self.subTest(column):
                self.given(f"drop table if exists t; create table t (id integer primary key, at {column})")
                r = self.check("policies: {t: {table: t, expires: at}}", code=3)
                self.finding(r, "error", "at", policy="t")


class Served(Case, MariadbTest):
    """What an index serves, it serves: the server itself says so of the very statements that are run."""

    KINDS = {"datetime(6)": "'2000-01-01' + interval seq day", "timestamp(6) null": "'2000-01-01' + interval seq day",
             "date": "'2000-01-01' + interval seq day", "bigint": "seq * 86400000 + 946684800000",
             "bigint unsigned": "seq * 86400000 + 946684800000",
             "varchar(40)": "date_format('2000-01-01' + interval seq day, '%Y-%m-%dT%H:%i:%sZ')",
             "varchar(40) character set latin1": "date_format('2000-01-01' + interval seq day, '%Y-%m-%d %H:%i:%s')"}

    def statements(self, contract, *command):
        self.db.execute("set global log_output = 'TABLE'")
        self.db.execute("truncate table mysql.general_log")
        self.db.execute("set global general_log = on")
        try:
            self.lapse(contract, *command, code=0)
        finally:
            self.db.execute("set global general_log = off")
        said = [(thread, sql.decode() if isinstance(sql, bytes) else sql) for thread, sql in self.db.rows(
            "select thread_id, argument from mysql.general_log where command_type = 'Query' order by event_time")]
        here = {thread for thread, sql in said if f"`{self.db.name}`" in sql}       # others talk to the server, too
        return [sql for thread, sql in said if thread in here]

    def plans(self, statements, of):
        """(the statement's beginning, how the swept rows are found)."""
        with contextlib.closing(self.db.connect()) as c:
            for sql in statements:
                if sql.startswith("SET NAMES"):
                    c.execute(sql)
                elif re.search(r"IS NOT NULL AND .* LIMIT \d+$", sql) or f"`{self.db.name}`" not in sql:
                    continue                                    # a few rows to look at; another suite's
                elif re.search(r"AS this\b", sql) and sql.startswith(of):
                    rows = [r for r in c.execute("explain " + sql).fetchall() if r[2] == "this"]
                    if rows:                                    # none: answered from the index's ends alone
                        yield sql[:60], rows[0][3], rows[0][5]

    def test_times(self):
        for kind, value in self.KINDS.items():
            for more in ("zone: Europe/Prague", "zone: UTC"):
                with self.subTest(f"{kind} {more}"):
                    self.given("drop table if exists t")
                    self.db.execute(f"create table t (id integer primary key, at_ms {kind}, days integer default 8900, filler varchar(200))")
                    self.db.execute(f"insert into t(id, at_ms, filler) select seq, {value}, repeat('x', 200) from seq_1_to_12000")
                    self.given("create index t_at on t(at_ms, id)")
                    self.db.execute("analyze table t")
                    said = "" if kind.startswith("bigint") else f", {more}"
                    for keep in ("8900d", "{column: days, unit: d}"):
                        contract = f"policies: {{t: {{table: t, age: at_ms, keep: {keep}{said}}}}}"
                        found = list(self.plans(self.statements(contract, "sweep", "--now", "2024-06-15T12:00:00Z"), "SELECT"))
                        self.assertTrue(found)
                        for sql, how, key in found:
                            self.assertIn(how, ("range", "index", "ref", "eq_ref", "const"), (sql, how, key))
                            self.assertIn(key, ("t_at", "PRIMARY"), (sql, how, key))
                        self.assertIn(("range", "t_at"), [f[1:] for f in found])
                        self.given("delete from t where id < 40")


    def examined(self, contract, *command):
        """(rows looked at, statement) of what is asked of lapse_purge, the most first."""
        self.db.execute("set global log_output = 'TABLE', global long_query_time = 0")
        self.addCleanup(lambda: self.db.execute("set global long_query_time = 10"))
        self.db.execute("truncate table mysql.slow_log")
        self.db.execute("set global slow_query_log = on")
        try:
            self.lapse(contract, *command, code=0)
        finally:
            self.db.execute("set global slow_query_log = off")
        return self.db.rows("select rows_examined, sql_text from mysql.slow_log where db = ? and sql_text like '%`lapse\\_purge` AS own%' "
                            "order by 1 desc", (self.db.name,))

    def test_purges(self):
        """Whatever waits, a turn looks at what is due; by the delay of a reason, a time of its own, a retry."""
        contract = "purges: {w: {retention: {r1: 1h, r2: never}, erases: [data(id)]}}"
        self.given("create table data (id varchar(40) collate utf8mb4_nopad_bin primary key)")
        self.lapse(contract, "install", code=0)
        self.db.execute("insert into data select concat('i', seq) from seq_1_to_40000")
        soon, late = "now(6) - interval 2 hour", "now(6) + interval 9 day"
        for when, column in (("scheduled_at", "scheduled_at"), ("purge_at", "purge_at"), ("retry_at", "retry_at")):
            self.db.execute(f"insert into lapse_purge(space, instance, reason, {column}) select 'w', concat('i', seq), "
                            f"elt(1 + seq % 4, 'r1', 'r2', 'r3', null), {late} from seq_1_to_10000")
            self.db.execute(f"insert into lapse_purge(space, instance, reason, {column}) select 'w', concat('i', 20000 + seq), "
                            f"'r1', {soon} from seq_1_to_10")
        found = self.examined(contract, "purge", "due", "--json")
        self.assertGreater(len(found), 5)
        self.assertLess(found[0][0], 400, found[0])
        self.assertEqual(self.db.rows("select count(*) from data"), [(39990,)])
        found = self.examined(contract, "purge", "due", "--json")
        self.assertLess(found[0][0], 20, found[0])


class Locks(Case, MariadbTest):
    """A batch locks its own rows: no gap between them, no row beyond them."""

    def setUp(self):
        super().setUp()
        self.given("""create table t (id integer primary key, state varchar(9) not null, at_ms bigint);
                      create table c (id integer primary key, t_id integer not null);
                      create index t_at on t(at_ms); create index c_t on c(t_id)""")
        self.insert("t", *[(n * 10, "done", n) for n in range(1, 31)])
        self.insert("c", *[(n * 10, n * 10) for n in range(1, 31)])

    def test_rows_of_others_are_not_waited_for(self):
        """Whatever part of the table a batch is: a row outside it that another session holds is not looked at."""
        for batch in (1, 5, 12, 29, "null"):
            with self.subTest(batch), Session(self.db) as other:
                self.given("delete from c; delete from t")
                self.insert("t", *[(n * 10, "done", n) for n in range(1, 31)])
                self.insert("c", *[(n * 10, n * 10) for n in range(1, 31)])
                other.do("begin", "update t set state = 'held' where id = 170", "update c set id = id + 1 where id = 170")
                start = time.monotonic()
                r = self.sweep("policies: {t: {table: t, rows: {state: done}, expires: at_ms, with: [c(t_id)], "
                               f"batch: {batch}, timeouts: {{lock: 40s}}}}}}")
                self.assertEqual((r.policy("t")["rows"], r.policy("t")["retries"]), (29, 0), r)
                self.assertLess(time.monotonic() - start, 30)
                other.do("rollback")
                self.left("t", 170)

    def test_others_go_on(self):
        for index in ("", "create index t_state on t(state, at_ms)"):
            with self.subTest(index):
                self.given(index or "select 1")
                self.free("before the first DELETE", lambda s: s.sql.startswith("DELETE"))
                self.free("before the first COMMIT of a batch", lambda s: s.sql.startswith("COMMIT"))

    def free(self, when, wanted):
        self.given("delete from c; delete from t")
        self.insert("t", *[(n * 10, "done", n) for n in range(1, 31)])
        self.insert("c", *[(n * 10, n * 10) for n in range(1, 31)])
        waited, done = [], []

        def before(s):
            if done or not wanted(s):
                return
            done.append(s)
            with Session(self.db) as other:
                for sql in ("insert into t values (5, 'done', 0)", "insert into t values (15, 'new', 15)",
                            "insert into c values (15, 15)", "insert into t values (999, 'done', 99)",
                            "update t set state = 'new' where id = 110", "delete from t where id = 300",
                            "update c set t_id = 120 where id = 110", "insert into c values (1000, 300)"):
                    other.do(sql)
                    if other.waits():
                        waited.append(sql)
                        other.connection.close()
                        return

        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn, "policies: {t: {table: t, rows: {state: done}, expires: at_ms, batch: 10, with: [c(t_id)]}}",
                      "sweep", "--json", "--now", NOW)
        self.assertTrue(done, proxy.seen)
        self.assertEqual(waited, [], f"{when} another session had to wait\n{proxy.seen}\n{r}")
        self.assertEqual(r.code, 0, r)
        self.assertIn(110, self.ids("t"))
