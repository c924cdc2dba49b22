"""Names of any bytes: instances, reasons and spaces that are long, empty, no UTF-8, no text at all, or hold a zero byte."""
import os
import subprocess

import psycopg2

from daemon import Daemon
from harness import *
from test_purge import CONTRACT, ONLY, Purging, T
from test_purge_table import BUILD


class SqliteBytes(Purging, SqliteTest):
    """Here a column of texts holds anything."""

    def scheduled(self, space="'workflow'", instance="'a'", reason="'completed'", ago_ms=HOUR):
        self.given("insert into lapse_purge (space, instance, reason, scheduled_at) values "
                   f"({space}, {instance}, {reason}, '{self.time(MS - ago_ms)}')")

    def parked(self):
        return self.db.rows("select hex(instance), error from lapse_purge where parked_at is not null")

    def test_a_reason_that_cannot_be_told(self):
        """It may have been meant for one of a longer delay: nothing is erased, and it is seen."""
        for contract in (CONTRACT, ONLY):
            for reason in ("cast(x'636f6d706c6574656400' as text)", "cast(x'00' as text)", "x'636f6d706c65746564'", "x''"):
                with self.subTest(reason=reason, only=contract == ONLY):
                    self.given("delete from lapse_purge; delete from workflow; delete from workflow_step; delete from workflow_kv")
                    self.instance("a", "b")
                    self.scheduled(reason=reason)
                    self.scheduled(instance="'b'")
                    r = self.due(("b", "completed"), code=1, contract=contract)
                    self.assertEqual(r.json["spaces"][0]["parked"], 1)
                    self.assertIn("the reason is no text, holds a zero byte", r.json["spaces"][0]["error"])
                    self.assertEqual((self.there("a"), self.there("b")), (self.WHOLE, self.PURGED))
                    self.assertIn("schedule the purge again", self.parked()[0][1])
                    self.due(contract=contract)                               # it is said once
                    shown = self.lapse(contract, "purge", "list", "--json", code=0).json["purges"]
                    self.assertEqual([(p["instance"], p["state"]) for p in shown], [("a", "parked")])
                    self.assertIn("parked after 1 attempt: the reason is no text", self.lapse(contract, "purge", "list", code=0).out)
                    self.lapse(contract, "purge", "cancel", T, "a", code=0)
                    self.scheduled()
                    self.due(("a", "completed"), contract=contract)

    def test_such_a_reason_with_a_time_of_its_own(self):
        self.instance("a")
        self.given("insert into lapse_purge (space, instance, reason, scheduled_at, purge_at) values "
                   f"('workflow', 'a', x'61', '{self.time(MS)}', '{self.time(MS)}')")
        self.due(code=1)
        self.assertEqual((self.there("a"), len(self.parked())), (self.WHOLE, 1))

    def test_of_two_rows_the_first_decides_whatever_its_reason(self):
        self.instance("a", "b")
        self.scheduled(reason="x'61'", ago_ms=HOUR + 1)
        self.scheduled()
        self.scheduled(instance="'b'", ago_ms=HOUR + 1)
        self.scheduled(instance="'b'", reason="x'61'")
        self.due(("b", "completed"), code=1)
        self.assertEqual((self.there("a"), self.there("b"), self.pending()), (self.WHOLE, self.PURGED, ["a"]))

    def test_many_reasons_that_cannot_be_told(self):
        """More than one look finds; and it ends."""
        self.db.script("with recursive g(n) as (select 1 union all select n + 1 from g where n < 2500) insert into lapse_purge "
                       "(space, instance, reason, scheduled_at) select 'workflow', 'w' || n, "
                       f"case n % 2 when 0 then cast('r' || n as blob) else 'r' || char(0) || n end, '{self.time(MS)}' from g")
        self.due(code=1)
        self.assertEqual(len(self.parked()), 2500)

    def test_the_daemon_says_it(self):
        contract = CONTRACT.replace("label: Workflow", "delay: 1ms")
        self.instance("a")
        self.db.execute("insert into workflow values (cast(x'610062' as text), '')")
        with Daemon(self.db, contract) as d:
            d.wait_for("lapse.started")
            self.scheduled(reason="cast(x'780079' as text)")
            line = d.wait_for("purge.failed", space="workflow")
            self.assertIn("instance 'a': the reason is no text, holds a zero byte", line["message"])
            self.scheduled(instance="cast(x'610062' as text)")
            line = d.wait_for("purge.executed")
            self.assertEqual((line["instance"], line["rows"]), ("a\\x00b", 1))
            self.assertEqual(line["message"], "[workflow] Purged data for a\\x00b (completed)")
        self.assertEqual(self.there("a"), self.WHOLE)

    def test_spaces_that_only_look_known(self):
        for space, shown in (("cast(x'776f726b666c6f7700' as text)", "workflow\\x00"), ("x'776f726b666c6f77'", "x'776f726b666c6f77'")):
            with self.subTest(shown):
                self.given("delete from lapse_purge")
                self.scheduled(space=space)
                r = self.due()
                self.assertEqual(r.json["unknown_spaces"], [shown])
                p = self.lapse(CONTRACT, "purge", "list", "--json", code=0).json["purges"][0]
                self.assertEqual((p["space"], p["state"]), (shown, "unknown_space"))
                self.assertEqual(self.pending(), ["a"])

    def test_a_zero_byte_in_an_instance(self):
        """Every byte counts: a, a\\0, a\\0b and the bytes of a are four instances."""
        names = {"a": "'a'", "a0": "cast(x'6100' as text)", "a0b": "cast(x'610062' as text)", "0": "cast(x'00' as text)"}
        for n in names.values():
            self.given(f"insert into workflow values ({n}, 'done'); insert into workflow_step(workflow_id) values ({n});"
                       f"insert into workflow_kv values ({n}, 'k', 'v')")
        for n in ("a0", "0"):
            self.scheduled(instance=names[n])
        self.scheduled(instance="x'61'")
        r = self.due(("\\x00", "completed"), ("a\\x00", "completed"), code=1)
        self.assertEqual([x["rows"] for x in r.json["executed"]], [3, 3])
        for t, c in (("workflow", "id"), ("workflow_step", "workflow_id"), ("workflow_kv", "instance_id")):
            self.assertEqual(self.db.rows(f"select hex({c}) from {t} order by 1"), [("61",), ("610062",)])
        self.assertEqual([(n, "no text" in why) for n, why in self.parked()], [("61", True)])
        self.assertEqual([p["instance"] for p in self.lapse(CONTRACT, "purge", "list", "--json", code=0).json["purges"]], ["x'61'"])


class PostgresBytes(Purging, PostgresTest):
    def test_what_a_text_cannot_hold_is_refused_where_it_is_written(self):
        for bad in (r"E'a\x00'", r"E'\xff'", r"E'\xed\xa0\x80'"):
            for column in ("space", "instance", "reason"):
                values = {"space": "'workflow'", "instance": "'a'", "reason": "'x'", column: bad}
                with self.subTest(bad=bad, column=column), self.assertRaisesRegex(psycopg2.DataError, "invalid byte sequence"):
                    self.db.execute(f"insert into lapse_purge (space, instance, reason) values ({', '.join(values.values())})")
        self.assertEqual(self.pending(), [])


class LibraryCase(Case):
    """The manager over a table, of an instance of any bytes."""

    def manager(self, instance):
        path = new_path("instance")
        path.write_bytes(instance)
        self.db.close()
        return subprocess.run([BUILD / "tests" / "test_purge"], env={**os.environ, "LAPSE_PURGE_DSN": self.db.dsn,
                              "LAPSE_PURGE_INSTANCE": str(path), "LAPSE_PURGE_TEST": "it_goes_after_the_delay"}, capture_output=True,
                              text=True, errors="replace", timeout=100)

    def table(self, name="text", key="text", index='primary key (instance, "key")'):
        if self.on_mariadb:
            name, key = (f"{'varchar(300)' if index else 'longtext'} collate utf8mb4_nopad_bin" if t == "text" else t for t in (name, key))
        self.given(f'drop table if exists kv; create table kv (instance {name} not null, "key" {key} not null, value text'
                   f"{index and ', ' + index})")

    def works(self, instance):
        r = self.manager(instance)
        self.assertEqual(r.returncode, 0, r.stdout[-3000:] + r.stderr[-3000:])

    def refused(self, instance, *words):
        r = self.manager(instance)
        self.assertNotEqual(r.returncode, 0)
        for w in words:
            self.assertIn(w, (r.stdout + r.stderr)[:2000])
        self.assertEqual(self.db.rows("select count(*) from kv"), [(0,)])


@every_engine
class Library(LibraryCase):
    def test_empty_and_strange(self):
        self.table()
        for name in (b"", b" ", b"'\"\\%*", "á\u202e".encode()):
            with self.subTest(name):
                self.works(name)

    def test_a_megabyte(self):
        self.table(index="")
        self.works(bytes(33 + (i * i * 7) % 90 for i in range(1_000_000)))

    def test_no_utf8(self):
        self.table()
        if self.on_postgres:
            self.refused(b"a\xff", "the instance cannot be looked up in kv", "invalid byte sequence")
        elif self.on_mariadb:
            self.refused(b"a\xff", "Incorrect string value")
        else:
            self.works(b"a\xff")


class PostgresLibrary(LibraryCase, PostgresTest):
    def test_types_that_shorten(self):
        """A name that fits is as good as any; one that would be cut would become another's."""
        for name, key, good, bad in (("name", "text", b"x" * 63, b"x" * 64), ("varchar(4)", "text", b"abcd", b"abc  "),
                                     ('"char"', "text", b"a", b"ab"), ("text", "name", b"a", None), ("text", "varchar(99)", b"a", None)):
            with self.subTest(name=name, key=key):
                self.table(name, key)
                self.works(good)
                self.given("delete from kv")
                if bad:
                    self.refused(bad, "does not come back the same")

    def test_a_key_too_long_for_its_index(self):
        self.table()
        self.refused(os.urandom(50_000).hex().encode(), "index row")
