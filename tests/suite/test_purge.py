"""Purges: one instance's data, some time after it ended, by a row that any program writes."""
import contextlib
import datetime
import os
import subprocess
import time

from harness import *

SCHEMA = """
    create table workflow (id text primary key, status text);
    create table workflow_step (id integer primary key, workflow_id text);
    create table workflow_kv (instance_id text, "key" text, value text, primary key (instance_id, "key"));
    create index step_workflow on workflow_step(workflow_id)"""

CONTRACT = """
    purges:
      workflow:
        label: Workflow
        retention: { failed: 24h, archived: never }
        erases:
          - workflow_step(workflow_id)
          - { ref: workflow_kv(instance_id), keep: { key: ["workflow:output", "meta:*"] } }
          - workflow(id)"""
ONLY = CONTRACT.replace("retention: { failed: 24h, archived: never }", "only: [completed, failed, unknown]")
T = "workflow"


class Purging(Case):
    contract = CONTRACT

    def setUp(self):
        super().setUp()
        self.given(SCHEMA.replace(" text", f" {self.text}"))
        self.lapse(self.contract, "install", code=0)

    @property
    def text(self):
        return "varchar(320) collate utf8mb4_nopad_bin" if self.on_mariadb else "text"     # a key has 3072 bytes there

    def instance(self, *names):
        for n in names:
            self.db.execute("insert into workflow values (?, 'done')", (n,))
            self.insert("workflow_step(id, workflow_id)", *[(self.number(), n) for _ in range(2)])
            self.insert("workflow_kv", (n, "workflow:input", "x"), (n, "workflow:output", "y"), (n, "meta:a", "z"))

    _n = 0

    def number(self):
        Purging._n += 1
        return Purging._n

    def schedule(self, instance, reason="completed", ago_ms=None, space=T, at_ms=None):
        """As an application does it; scheduled so long before NOW."""
        columns, values = ["space", "instance", "reason"], [space, instance, reason]
        if ago_ms is not None:
            columns.append("scheduled_at")
            values.append(self.time(MS - ago_ms))
        if at_ms is not None:
            columns.append("purge_at")
            values.append(self.time(at_ms))
        self.db.execute(f"insert into lapse_purge ({', '.join(columns)}) values ({', '.join('?' * len(values))})", values)

    def time(self, ms):
        t = iso(ms)
        t = t if "." in t else t.replace("Z", ".000Z")
        return t.replace("T", " ").removesuffix("Z") if self.on_mariadb else t

    def due(self, *executed, now=NOW, code=0, contract=None):
        r = self.lapse(contract or self.contract, "purge", "due", "--json", *(["--now", now] if now else []), code=code)
        self.assertEqual([(x["instance"], x["reason"]) for x in r.json["executed"]], list(executed), r)
        return r

    def there(self, instance):
        """What is left of it: (workflow, steps, keys)."""
        return (self.db.rows("select count(*) from workflow where id = ?", (instance,))[0][0],
                self.db.rows("select count(*) from workflow_step where workflow_id = ?", (instance,))[0][0],
                [r[0] for r in self.db.rows("select \"key\" from workflow_kv where instance_id = ? order by 1", (instance,))])

    WHOLE = (1, 2, ["meta:a", "workflow:input", "workflow:output"])
    PURGED = (0, 0, ["meta:a", "workflow:output"])

    def pending(self):
        return [r[0] for r in self.db.rows("select instance from lapse_purge order by id")]


@every_engine
class Due(Purging):
    def test_everything_but_what_is_kept(self):
        self.instance("a", "b")
        self.schedule("a", ago_ms=2 * MINUTE)
        r = self.due(("a", "completed"))
        self.assertEqual(r.json["executed"][0]["rows"], 4)
        self.assertEqual(r.json["spaces"][0]["rows"], 4)
        self.assertEqual((self.there("a"), self.there("b"), self.pending()), (self.PURGED, self.WHOLE, []))

    def test_the_line(self):
        self.instance("a")
        self.schedule("a", ago_ms=2 * MINUTE)
        r = self.lapse(self.contract, "purge", "due", "--now", NOW, code=0)
        self.assertIn("[Workflow] Purged data for a (completed)\n", r.out)

    def test_exactly_at_its_time_and_a_millisecond_before(self):
        self.instance("a")
        for kind in ({"ago_ms": 60_000}, {"ago_ms": 0, "at_ms": MS}):
            with self.subTest(kind):
                self.schedule("a", **kind)
                self.due(now=iso(MS - 1))
                self.assertEqual(self.there("a")[0], 1 if "at_ms" not in kind else 0)
                self.due(("a", "completed"))
                self.assertEqual(self.pending(), [])

    def test_microseconds_are_exact(self):
        self.instance("a")
        at = f"{NOW[:-1]}.000500Z"
        self.db.execute("insert into lapse_purge (space, instance, reason, scheduled_at, purge_at) values "
                        "('workflow', 'a', 'x', ?, ?)", (self.time(MS), at))
        self.due(now=f"{NOW[:-1]}.000499Z")
        self.assertEqual(self.there("a"), self.WHOLE)
        self.due(("a", "x"), now=at)

    def test_a_delay_for_a_reason(self):
        self.instance("a", "b", "c")
        self.schedule("a", "failed", ago_ms=24 * HOUR - 1)
        self.schedule("b", "failed", ago_ms=24 * HOUR)
        self.schedule("c", "archived", ago_ms=900 * DAY)
        self.due(("b", "failed"))
        self.assertEqual(self.pending(), ["a", "c"])

    def test_at_once(self):
        contract = self.contract.replace("label: Workflow", "delay: 0")
        self.instance("a")
        self.schedule("a")
        self.due(("a", "completed"), now=None, contract=contract)

    def test_no_reason_is_unknown(self):
        self.instance("a", "b")
        self.schedule("a", None, ago_ms=HOUR)
        self.schedule("b", "", ago_ms=HOUR)
        self.due(("b", ""), ("a", "unknown"))

    def test_a_time_of_its_own(self):
        self.instance("a", "b")
        self.schedule("a", "failed", ago_ms=1, at_ms=MS)
        self.schedule("b", ago_ms=DAY, at_ms=MS + 1)
        self.due(("a", "failed"))
        self.assertEqual(self.pending(), ["b"])

    def test_the_first_end_wins(self):
        """The later one would be due already."""
        self.instance("a", "b")
        self.schedule("a", "failed", ago_ms=HOUR)
        self.schedule("a", "completed", ago_ms=HOUR - 1)
        self.schedule("b", "completed", ago_ms=HOUR)
        self.schedule("b", "failed", ago_ms=HOUR - 1)
        self.due(("b", "completed"))
        self.assertEqual((self.there("a"), self.there("b")), (self.WHOLE, self.PURGED))
        self.assertEqual(self.db.rows("select instance, reason from lapse_purge"), [("a", "failed")])
        self.due(("a", "failed"), now=iso(MS + 23 * HOUR))

    def test_of_two_at_the_same_time_the_first_written(self):
        self.instance("a")
        self.schedule("a", "failed", ago_ms=HOUR)
        self.schedule("a", "completed", ago_ms=HOUR)
        self.due()
        self.assertEqual(self.there("a"), self.WHOLE)

    def test_nothing_there_to_erase(self):
        self.schedule("nobody", ago_ms=HOUR)
        r = self.due(("nobody", "completed"))
        self.assertEqual(r.json["executed"][0]["rows"], 0)
        self.assertEqual(self.pending(), [])

    def test_an_unknown_space_is_left_and_said(self):
        self.schedule("x", ago_ms=HOUR, space="Workflow")
        r = self.due()
        self.assertEqual(r.json["unknown_spaces"], ["Workflow"])
        self.assertEqual(self.pending(), ["x"])
        r = self.lapse(self.contract, "purge", "due", code=0)
        self.assertIn("space 'Workflow'", r.said)

    def test_names_compare_exactly(self):
        names = ["a", "A", "a ", " a", "á", "a\u0301", "ﬀ", "ff", "x" * 300, "x" * 301, "", "%", "a%", "'", '"', "\\", "\n",
                 "{a}", "NULL", "null", "a,b"]
        self.instance(*names)
        for n in names[1::2]:
            self.schedule(n, ago_ms=HOUR)
        r = self.lapse(self.contract, "purge", "due", "--json", "--now", NOW, code=0)
        self.assertEqual(sorted(x["instance"] for x in r.json["executed"]), sorted(names[1::2]))
        for i, n in enumerate(names):
            self.assertEqual(self.there(n), self.PURGED if i % 2 else self.WHOLE, repr(n))

    def test_a_very_long_name(self):
        name = "".join(chr(33 + (i * i * 7) % 90) for i in range(1_000_000))
        if self.on_postgres:      # keys of the data's own tables have a limit there
            self.given("alter table workflow drop constraint workflow_pkey; alter table workflow_kv drop constraint "
                       "workflow_kv_pkey; drop index step_workflow")
        elif self.on_mariadb:
            self.given("alter table workflow drop primary key, modify id longtext collate utf8mb4_nopad_bin; alter table workflow_kv "
                       "drop primary key, modify instance_id longtext collate utf8mb4_nopad_bin; alter table workflow_step "
                       "drop index step_workflow, modify workflow_id longtext collate utf8mb4_nopad_bin")
        self.instance(name)
        self.schedule(name, ago_ms=HOUR)
        self.schedule(name, ago_ms=HOUR)
        r = self.lapse(self.contract, "purge", "due", "--json", "--now", NOW, code=0)
        self.assertEqual(r.json["executed"][0]["rows"], 4)
        self.assertEqual(self.there(name), self.PURGED)

    def test_many_at_once(self):
        self.db.script("""insert into workflow select 'w' || n, 'done' from (%s) s;
                       insert into workflow_step select n * 2 + k, 'w' || n from (%s) s, (select 0 as k union all select 1) t;
                       insert into workflow_kv select 'w' || n, 'k', 'v' from (%s) s;
                       insert into lapse_purge (space, instance, reason, scheduled_at)
                           select 'workflow', 'w' || n, case n %% 3 when 0 then 'a' when 1 then 'b' end, '%s' from (%s) s"""
                       % ((self.series(3500),) * 3 + (self.time(MS - HOUR), self.series(3500))))
        r = self.lapse(self.contract, "purge", "due", "--json", "--now", NOW, code=0)
        s = r.json["spaces"][0]
        self.assertEqual((s["executed"], s["rows"], len(r.json["executed"])), (3500, 14000, 3500), s)
        self.assertEqual({x["rows"] for x in r.json["executed"]}, {4} if self.on_sqlite else {None})   # see docs/purges.md
        self.assertEqual(self.db.rows("select count(*) from lapse_purge union all select count(*) from workflow"), [(0,), (0,)])

    def test_instances_that_refer_to_each_other(self):
        self.given("create table node (id varchar(20) primary key, parent varchar(20) references node(id));"
                   "insert into node values ('a', null), ('b', 'a'), ('c', 'b'), ('d', null)")
        for name in "abc":
            self.schedule(name, "done", ago_ms=HOUR, space="node")
        r = self.lapse("purges: { node: { erases: [node(id)] } }", "purge", "due", "--json", "--now", NOW, code=0)
        self.assertEqual([(x["instance"], x["rows"]) for x in r.json["executed"]], [("a", 1), ("b", 1), ("c", 1)], r)
        self.assertEqual(self.db.rows("select id from node"), [("d",)])

    def test_many_reasons(self):
        """More than one look finds."""
        self.instance("a", "z")
        self.db.script("insert into lapse_purge (space, instance, reason, scheduled_at) "
                       f"select 'workflow', 'w' || n, 'r' || n, '{self.time(MS - 1)}' from ({self.series(2500)}) s")
        self.schedule("a", "a", ago_ms=HOUR)
        self.schedule("z", "z", ago_ms=HOUR)
        self.due(("a", "a"), ("z", "z"))

    def test_a_brake_on_everything(self):
        self.instance("a")
        self.schedule("a", ago_ms=HOUR)
        self.lapse(self.contract, "pause", code=0)
        self.due(code=6)
        self.lapse(self.contract, "resume", code=0)
        self.due(("a", "completed"))

    def test_it_needs_its_tables(self):
        self.forget_who()
        self.given("drop table lapse_purge; delete from lapse_version where version > 3")
        r = self.lapse(self.contract, "purge", "due", code=2)
        self.assertIn("run lapse install", r.err)
        self.lapse(self.contract, "install", code=0)
        self.due()


@every_engine
class Only(Purging):
    contract = ONLY

    def test_scheduling_another_reason_is_a_success_that_says_so(self):
        for reason, said in (("cancelled", "not for 'cancelled'"), ("complete", "did you mean 'completed'")):
            with self.subTest(reason):
                r = self.lapse(self.contract, "purge", "schedule", T, "a", reason, code=0)
                self.assertIn("nothing was scheduled", r.out)
                self.assertIn(said, r.out)
                j = self.lapse(self.contract, "purge", "schedule", T, "a", reason, "--json", code=0).json
                self.assertEqual((j["scheduled"], j["reason"], j["instance"], j["purges"]), (False, reason, "a", []))
        self.assertEqual(self.pending(), [])

    def test_other_reasons_are_removed_and_nothing_else(self):
        self.instance("a", "b", "c")
        self.schedule("a", "cancelled", ago_ms=HOUR)
        self.schedule("b", "cancelled", ago_ms=HOUR)
        self.schedule("b", "completed", ago_ms=HOUR - 1)
        self.schedule("c", "cancelled", ago_ms=HOUR, at_ms=MS)
        r = self.due(("b", "completed"))
        self.assertEqual(r.json["spaces"][0]["removed"], 3)
        self.assertEqual((self.there("a"), self.there("b"), self.there("c")), (self.WHOLE, self.PURGED, self.WHOLE))
        self.assertEqual(self.pending(), [])

    def test_they_are_removed_at_once(self):
        self.schedule("a", "cancelled", ago_ms=0)
        self.due()
        self.assertEqual(self.pending(), [])

    def test_an_earlier_one_does_not_count(self):
        self.instance("a")
        self.schedule("a", "cancelled", ago_ms=DAY)
        self.schedule("a", "completed", ago_ms=1)
        self.due()
        self.assertEqual(self.there("a"), self.WHOLE)
        self.assertEqual(self.db.rows("select reason from lapse_purge"), [("completed",)])

    def test_no_reason_counts_as_unknown(self):
        self.instance("a")
        self.schedule("a", None, ago_ms=HOUR)
        self.due(("a", "unknown"))
        contract = ONLY.replace(", unknown", "")
        self.schedule("a", None, ago_ms=HOUR)
        self.due(contract=contract)
        self.assertEqual(self.pending(), [])


@every_engine
class Large(Purging):
    """Applications write into the table, and may write anything: what lapse reads of it is bounded."""
    MEGABYTE = "x" * 1_000_000

    def test_an_error(self):
        self.instance("a")
        self.schedule("a", ago_ms=HOUR)
        self.db.execute("update lapse_purge set error = ?", (self.MEGABYTE,))
        r = self.lapse(self.contract, "purge", "list", "--json", code=0)
        self.assertEqual(r.json["purges"][0]["error"], "x" * 2000)
        self.due(("a", "completed"))
        self.assertEqual(self.pending(), [])

    def test_a_reason(self):
        self.instance("a", "b")
        long = "x" * 2001
        try:
            for n in range(3):
                self.schedule("a", long + str(n), ago_ms=HOUR)
        except Exception as e:
            self.assertTrue(self.on_mariadb, e)     # its columns take 380
            return
        if self.engine == "sqlite":                 # nor does an index of PostgreSQL
            self.schedule("c", self.MEGABYTE, ago_ms=HOUR)
        self.schedule("b", ago_ms=HOUR)
        r = self.due(("b", "completed"), code=1)
        self.assertEqual(self.there("a"), self.WHOLE)
        listed = self.lapse(self.contract, "purge", "list", "--json", code=0)
        self.assertLess(len(listed.out), 20_000)
        self.assertEqual(sorted(p["instance"] for p in listed.json["purges"]), ["a", "c"] if self.engine == "sqlite" else ["a"])
        for p in listed.json["purges"]:
            self.assertEqual((p["state"], p["reason"]), ("parked", "x" * 2000 + "…"))
            self.assertIn("longer than 2,000 characters", p["error"])
        self.due()

    def test_an_instance(self):
        """What is read of it in part is taken for no other."""
        beginning = "y" * 2000
        self.instance(beginning[:300])
        for tail in ("a", "b"):
            self.schedule(beginning + tail, ago_ms=-HOUR)
        shown = self.lapse(self.contract, "purge", "list", "--json", code=0).json["purges"]
        self.assertEqual([(p["instance"], p["state"]) for p in shown], [(beginning + "…", "due")] * 2)
        self.assertEqual(self.lapse(self.contract, "purge", "status", T, beginning + "a", "--json", code=0)
                         .json["purges"][0]["instance"], beginning + "a")
        self.given("delete from lapse_purge")
        self.schedule("z" * 1_000_001, ago_ms=HOUR)
        self.schedule(beginning[:300], ago_ms=HOUR)
        self.due((beginning[:300], "completed"), code=1)
        left = self.db.rows("select error from lapse_purge where parked_at is not null")
        self.assertEqual(len(left), 1)
        self.assertIn("longer than 1,000,000 characters", left[0][0])


@every_engine
class Stuck(Purging):
    def test_a_retry_that_lapse_did_not_write(self):
        self.schedule("a", at_ms=MS - HOUR)
        self.assertEqual(self.due(("a", "completed")).json["stuck"], [])
        self.schedule("b", at_ms=MS - HOUR)
        self.db.execute("update lapse_purge set retry_at = ?", (self.time(MS + DAY),))
        r = self.due()
        self.assertEqual(len(r.json["stuck"]), 1, r)
        self.assertIn("more than an hour ahead", r.json["stuck"][0])
        self.assertIn("an hour ahead", self.lapse(self.contract, "purge", "due", "--now", NOW, code=0).out)


class StuckForEver(Purging, PostgresTest):
    def test_infinite_times(self):
        for column in ("purge_at", "retry_at"):
            for value in ("infinity", "-infinity"):
                with self.subTest(f"{column} {value}"):
                    self.schedule("a", at_ms=MS - HOUR)
                    self.given(f"update lapse_purge set {column} = '{value}'")
                    r = self.due()
                    self.assertEqual(len(r.json["stuck"]), 1, r)
                    self.assertIn("infinite", r.json["stuck"][0])
                    self.given("delete from lapse_purge")


class Application(Purging):
    """The least that a program needs to schedule and cancel, and what it can do with it."""
    GRANT = "insert (space, instance, reason, purge_at), select, delete"

    def least(self, connection, denied):
        self.instance("a", "b")
        with connection.cursor() as c:
            c.execute("insert into lapse_purge (space, instance, reason) values ('workflow', 'a', 'completed')")
            c.execute("select count(*) from lapse_purge where instance = 'a'")
            self.assertEqual(c.fetchall()[0][0], 1)
            c.execute("delete from lapse_purge where space = 'workflow' and instance = 'a'")
            # Any instance of a space, at once: who has this right may erase them all.
            c.execute("insert into lapse_purge (space, instance, reason, purge_at) values ('workflow', 'b', 'completed', "
                      "'2001-01-01 00:00:00')")
            for sql in ("update lapse_purge set error = 'x'",
                        "insert into lapse_purge (space, instance, reason, retry_at) values ('workflow', 'a', 'x', '2001-01-01')",
                        "insert into lapse_purge (space, instance, error) values ('workflow', 'a', 'x')",
                        "delete from workflow"):
                with self.subTest(sql), self.assertRaises(denied):
                    c.execute(sql)
        self.due(("b", "completed"))
        self.assertEqual((self.there("a"), self.there("b")), (self.WHOLE, self.PURGED))


class PostgresApplication(Application, PostgresTest):
    def test_the_least_grant(self):
        import psycopg2
        role = f"app_{self.db.name}"
        self.given(f"create role {role} login; grant {self.GRANT} on lapse_purge to {role}")
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        connection = psycopg2.connect(self.db.server.dsn(self.db.name, user=role))
        self.addCleanup(connection.close)
        connection.autocommit = True
        self.least(connection, psycopg2.errors.InsufficientPrivilege)


class MariadbApplication(Application, MariadbTest):
    def test_the_least_grant(self):
        import pymysql
        self.db.server.user(self.db.name, "app", f"{self.GRANT} on lapse_purge")
        connection = self.db.server.connect(self.db.name, user=f"app_{self.db.name}")
        self.addCleanup(connection.close)
        self.least(connection, pymysql.err.OperationalError)


class Typed(Purging):
    """An id is converted to the column's type and must come back the same."""

    def setUp(self):
        super().setUp()
        self.given("create table job (id integer primary key, note text)")
        self.insert("job", *[(n, "x") for n in (0, 1, 7, -7, 10, 1000)])

    contract = "purges: { job: { erases: [job(id)] } }"

    def parked(self):
        return {r[0]: r[1] for r in self.db.rows("select instance, error from lapse_purge where parked_at is not null")}


@every_engine
class Types(Typed):
    def test_whole_numbers(self):
        good, bad = ["7", "-7", "0"], ["007", " 1", "1 ", "+1", "1.0", "1e3", "0x1", "-0", "", "one", "10_0", "１",
                                       "99999999999999999999", "1\n"]
        for n in good + bad:
            self.schedule(n, ago_ms=HOUR, space="job")
        r = self.lapse(self.contract, "purge", "due", "--json", "--now", NOW, code=1)
        self.assertEqual(sorted(x["instance"] for x in r.json["executed"]), sorted(good))
        self.left("job", 1, 10, 1000)
        self.assertEqual(set(self.parked()), set(bad))
        self.assertIn("does not come back the same", self.parked()["007"])
        self.due()

    def test_columns_that_fold(self):
        """However the column compares, another name is another instance."""
        self.given("create collation folds (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
                   "create table f (id text collate folds primary key)" if self.on_postgres else
                   "create table f (id text collate %s primary key)" % ("nocase" if self.on_sqlite else "utf8mb4_general_ci"))
        self.insert("f", "abc")
        contract = "purges: { f: { erases: [f(id)] } }"
        self.schedule("ABC", ago_ms=HOUR, space="f")
        r = self.due(("ABC", "completed"), contract=contract)
        self.assertEqual(r.json["executed"][0]["rows"], 0)
        self.left("f", "abc")
        self.schedule("abc", ago_ms=HOUR, space="f")
        r = self.due(("abc", "completed"), contract=contract)
        self.assertEqual(r.json["executed"][0]["rows"], 1)



class PostgresTypes(Typed, PostgresTest):
    def test_beyond_the_range(self):
        self.schedule("99999999999", ago_ms=HOUR, space="job")
        self.due(code=1)
        self.assertEqual(set(self.parked()), {"99999999999"})


    def test_uuid(self):
        u = "0f8fad5b-d9cb-469f-a165-70867728950e"
        self.given(f"create table u (id uuid primary key); insert into u values ('{u}')")
        contract = "purges: { u: { erases: [u(id)] } }"
        for n in (u.upper(), u.replace("-", ""), "{" + u + "}", "x"):
            self.schedule(n, ago_ms=HOUR, space="u")
        self.due(code=1, contract=contract)
        self.assertEqual(len(self.parked()), 4)
        self.assertEqual(len(self.db.rows("select * from u")), 1)
        self.schedule(u, ago_ms=HOUR, space="u")
        self.due((u, "completed"), contract=contract)


    def test_padded(self):
        self.given("create table c (id char(8) primary key); insert into c values ('abc')")
        contract = "purges: { c: { erases: [c(id)] } }"
        self.schedule("abc ", ago_ms=HOUR, space="c")
        self.due(code=1, contract=contract)
        self.schedule("abc", ago_ms=HOUR, space="c")
        r = self.due(("abc", "completed"), contract=contract)
        self.assertEqual(r.json["executed"][0]["rows"], 1)


    def test_enum(self):
        self.given("create type e as enum ('one', 'two'); create table e1 (id e primary key); insert into e1 values ('one')")
        contract = "purges: { e: { erases: [e1(id)] } }"
        self.schedule("three", ago_ms=HOUR, space="e")
        self.due(code=1, contract=contract)
        self.schedule("one", ago_ms=HOUR, space="e")
        self.due(("one", "completed"), contract=contract)



@every_server
class Lengths(Typed):
    def test_longer_than_the_column(self):
        """Such an id is not in the table, and says so; that of the same first letters stays."""
        self.given("create table v (id varchar(3) primary key); create table c (id char(3) primary key)")
        for table in ("v", "c"):
            self.given("delete from lapse_purge")
            self.insert(table, "abc", "äöü")
            for n in ("abcd", "äöü", "äöüä"):
                self.schedule(n, ago_ms=HOUR, space="s")
            r = self.due(("äöü", "completed"), code=1, contract=f"purges: {{ s: {{ erases: [{table}(id)] }} }}")
            self.left(table, "abc")
            self.assertEqual(set(self.parked()), {"abcd", "äöüä"}, r)
            self.assertIn("at most 3 characters", self.parked()["abcd"])


class PostgresLengths(Typed, PostgresTest):
    def test_types_of_their_own(self):
        self.given("create domain inner_d as varchar(3); create domain outer_d as inner_d;"
                   "create table n (id name primary key); create table c (id \"char\" primary key); create table d (id outer_d primary key)")
        for table, good, bad in (("n", "x" * 63, "x" * 64), ("c", "a", "ab"), ("d", "abc", "abcd")):
            with self.subTest(table):
                self.given("delete from lapse_purge")
                self.insert(table, good)
                self.schedule(bad, ago_ms=HOUR, space="s")
                contract = f"purges: {{ s: {{ erases: [{table}(id)] }} }}"
                self.due(code=1, contract=contract)
                self.assertEqual(set(self.parked()), {bad})
                self.schedule(good, ago_ms=HOUR, space="s")
                self.due((good, "completed"), contract=contract)
                self.left(table)


class MariadbTypes(Typed, MariadbTest):
    def test_character_sets(self):
        """What a column cannot hold is in none of its rows, and holds up no other."""
        for charset, parked in (("latin1", []), ("latin2", []), ("ascii", ["é", "ł", "😀"]), ("utf8mb3", ["😀"]), ("ucs2", ["😀"]),
                                ("utf16", []), ("utf8mb4 collate utf8mb4_bin", [])):
            for index in ("primary key", "not null"):
                with self.subTest(charset=charset, index=index):
                    self.given("drop table if exists t; delete from lapse_purge;"
                               f"create table t (id varchar(20) character set {charset} {index})")
                    self.insert("t", "?", "a", "b", "c")
                    for n in ("é", "ł", "😀", "a", "B", "c "):
                        self.schedule(n, ago_ms=HOUR, space="s")
                    r = self.lapse("purges: { s: { erases: [t(id)] } }", "purge", "due", "--json", "--now", NOW)
                    self.left("t", "?", "b", "c")
                    self.assertEqual(sorted(self.parked()), parked, r)
                    self.assertEqual({x["instance"]: x["rows"] for x in r.json["executed"]},
                                     {n: int(n == "a") for n in ("é", "ł", "😀", "a", "B", "c ") if n not in parked})

    def test_characters_that_such_a_column_holds(self):
        self.given("create table t (id varchar(20) character set latin1 primary key)")
        self.insert("t", "é", "x", "€", "?")
        for n in ("é", "€", "ł"):
            self.schedule(n, ago_ms=HOUR, space="s")
        r = self.lapse("purges: { s: { erases: [t(id)] } }", "purge", "due", "--json", "--now", NOW, code=0)
        self.assertEqual({x["instance"]: x["rows"] for x in r.json["executed"]}, {"é": 1, "€": 1, "ł": 0})
        self.left("t", "?", "x")

    def test_a_kept_text_that_the_column_cannot_hold(self):
        """What would fail when the first purge is due is an error before; what would not is none."""
        refused = {}
        for charset in ("latin1", "ascii", "utf8mb3", "ucs2", "utf8mb4"):
            for keep in ("plain", "ł😀", "ł😀*"):
                with self.subTest(charset=charset, keep=keep):
                    self.given("drop table if exists t; delete from lapse_purge;"
                               f"create table t (id varchar(20) primary key, k varchar(20) character set {charset})")
                    self.insert("t", ("a", "plain"), ("b", "other"))
                    contract = f"purges: {{ s: {{ erases: [ {{ ref: t(id), keep: {{ k: '{keep}' }} }} ] }} }}"
                    r = self.check(contract)
                    said = [f["what"] for f in r.json["findings"] if "does not accept what is kept of" in f["what"]]
                    self.assertEqual(r.code, 3 if said else 0, r)
                    self.schedule("b", ago_ms=HOUR, space="s")
                    r = self.lapse(contract, "purge", "due", "--json", "--now", NOW)
                    self.assertEqual(r.code != 0, bool(said), r)
                    refused[charset, keep] = bool(said)
        self.assertTrue(refused["latin1", "ł😀"], refused)
        self.assertFalse(refused["utf8mb4", "ł😀"], refused)

    def test_with_a_trigger(self):
        """It is looked whether all went."""
        self.given("create table t (id varchar(20) character set latin1 primary key, n integer);"
                   "create trigger before_t before delete on t for each row begin set @n = 1; end")
        self.insert("t", ("a", 1), ("?", 2))
        for n in ("a", "ł"):
            self.schedule(n, ago_ms=HOUR, space="s")
        self.due(("a", "completed"), ("ł", "completed"), contract="purges: { s: { erases: [t(id)] } }")
        self.left("t", "?")

    def test_numbers_that_are_shown_otherwise(self):
        self.given("create table z (id int(8) zerofill primary key); create table b (id bit(8) primary key)")
        for table in ("z", "b"):
            self.insert(table, 5, 53)
            self.schedule("5", ago_ms=HOUR, space="s")
            r = self.due(("5", "completed"), contract=f"purges: {{ s: {{ erases: [{table}(id)] }} }}")
            self.assertEqual(r.json["executed"][0]["rows"], 1)
            self.assertEqual(self.db.rows(f"select id + 0 from {table}"), [(53,)])


class SqliteTypes(Typed, SqliteTest):
    def test_no_text_at_all(self):
        self.instance("a")
        self.given("insert into lapse_purge (space, instance, reason, scheduled_at) values "
                   f"('workflow', x'61', 'x', '{self.time(MS - HOUR)}')")
        self.due(code=1, contract=CONTRACT)
        self.assertEqual(self.there("a"), self.WHOLE)
        self.assertIn("no text", self.db.rows("select error from lapse_purge")[0][0])


    def test_bytes_that_are_no_text(self):
        """SQLite keeps them; PostgreSQL refuses them in the application's own transaction."""
        self.given("insert into workflow values (cast(x'ff61' as text), 'done'), (cast(x'fe61' as text), 'done');"
                   "insert into lapse_purge (space, instance, reason, scheduled_at) values "
                   f"('workflow', cast(x'ff61' as text), 'x', '{self.time(MS - HOUR)}')")
        r = self.lapse(CONTRACT, "purge", "due", "--json", "--now", NOW, code=0)
        self.assertEqual(r.json["executed"][0]["rows"], 1)
        self.assertEqual(self.db.rows("select hex(id) from workflow"), [("FE61",)])


@every_engine
class Failing(Purging):
    """One that fails is tried again, then parked; the others go."""

    def setUp(self):
        super().setUp()
        self.given("create table hold (workflow_id text)")
        self.guard()

    def guard(self):
        if self.on_postgres:
            self.given("""create function keep() returns trigger language plpgsql as $$ begin
                          if exists (select 1 from hold where workflow_id = old.id) then raise exception 'on hold'; end if;
                          return old; end $$;
                          create trigger keep before delete on workflow for each row execute function keep()""")
        else:
            self.given("""create trigger keep before delete on workflow
                          when exists (select 1 from hold where workflow_id = old.id)
                          begin select raise(abort, 'on hold'); end""")

    def test_the_rest_is_unaffected(self):
        names = [f"w{i:03}" for i in range(300)]
        self.instance(*names)
        for n in names:
            self.schedule(n, ago_ms=HOUR)
        self.insert("hold", "w007", "w008", "w250")
        r = self.lapse(self.contract, "purge", "due", "--json", "--now", NOW, code=1)
        s = r.json["spaces"][0]
        self.assertEqual((s["executed"], s["retried"], s["parked"], s["outcome"]), (297, 3, 0, "done"), s)
        for n in ("w007", "w008", "w250"):
            self.assertEqual(self.there(n), self.WHOLE)
        rows = self.db.rows("select instance, attempts, error from lapse_purge order by 1")
        self.assertEqual([r[:2] for r in rows], [("w007", 1), ("w008", 1), ("w250", 1)])
        self.assertIn("on hold", rows[0][2])
        self.due()                                      # not yet again
        self.given("delete from hold")
        self.given(f"update lapse_purge set retry_at = '{self.time(MS)}'")
        r = self.lapse(self.contract, "purge", "due", "--json", "--now", NOW, code=0)
        self.assertEqual(r.json["spaces"][0]["executed"], 3)

    def test_after_ten_attempts_it_is_parked(self):
        self.instance("a", "b")
        self.schedule("a", ago_ms=HOUR)
        self.schedule("a", ago_ms=HOUR)
        self.insert("hold", "a")
        for attempt in range(1, 11):
            r = self.due(code=1)
            self.assertEqual(r.json["spaces"][0]["parked"], attempt == 10)
            self.given(f"update lapse_purge set retry_at = '{self.time(MS)}' where parked_at is null")
        self.schedule("a", ago_ms=HOUR)
        self.given("delete from hold")
        self.due()
        self.assertEqual(self.there("a"), self.WHOLE)
        r = self.lapse(self.contract, "purge", "status", T, "a", "--json", code=0)
        self.assertEqual([(p["state"], p["attempts"]) for p in r.json["purges"]], [("parked", 10)])
        r = self.lapse(self.contract, "purge", "list", code=0)
        self.assertIn("parked after 10 attempts", r.out)
        self.lapse(self.contract, "purge", "cancel", T, "a", code=0)
        self.schedule("a", ago_ms=HOUR)
        self.due(("a", "completed"))

    def test_the_pauses_grow(self):
        self.instance("a")
        self.insert("hold", "a")
        self.schedule("a", ago_ms=HOUR)
        waits = []
        for _ in range(4):
            self.due(code=1)
            wait = self.per_engine(postgres="extract(epoch from retry_at - clock_timestamp())",
                                   sqlite="(julianday(retry_at) - julianday('now')) * 86400",
                                   mariadb="timestampdiff(microsecond, now(6), retry_at) / 1e6")
            waits.append(round(float(self.db.rows(f"select {wait} from lapse_purge")[0][0])))
            self.given(f"update lapse_purge set retry_at = '{self.time(MS)}'")
        for got, wanted in zip(waits, (2, 4, 8, 16)):
            self.assertAlmostEqual(got, wanted, delta=1)

    @not_on("mariadb", "no trigger can keep a row quietly")
    def test_a_trigger_that_quietly_says_no(self):
        self.given("drop trigger keep on workflow" if self.on_postgres else "drop trigger keep")
        if self.on_postgres:
            self.given("""create or replace function keep() returns trigger language plpgsql as $$ begin
                          if exists (select 1 from hold where workflow_id = old.id) then return null; end if; return old; end $$;
                          create trigger keep before delete on workflow for each row execute function keep()""")
        else:
            self.given("""create trigger keep before delete on workflow
                          when exists (select 1 from hold where workflow_id = old.id) begin select raise(ignore); end""")
        self.instance("a", "b")
        self.insert("hold", "a")
        self.schedule("a", ago_ms=HOUR)
        self.schedule("b", ago_ms=HOUR)
        self.due(("b", "completed"), code=1)
        self.assertEqual((self.there("a"), self.there("b")), (self.WHOLE, self.PURGED))


@every_server
class Codes(Purging):
    def test_whatever_a_trigger_calls_its_refusal(self):
        """An error that would be the server's if it were not a trigger that says so, of one row."""
        codes = ("42501", "42P01", "53100", "XX000", "0A000", "LP001") if self.on_postgres else \
            ("42000", "0A000", "25000", "HY000", "08000", "02000", "45000")
        if self.on_postgres:
            self.given("""create function refuse() returns trigger language plpgsql as $$ begin
                          if old.status <> 'done' then raise exception 'on hold' using errcode = old.status; end if;
                          return old; end $$;
                          create trigger refuse before delete on workflow for each row execute function refuse()""")
        else:
            arms = " ".join(f"if old.status = '{c}' then signal sqlstate '{c}' set message_text = 'on hold'; end if;" for c in codes)
            self.given(f"create trigger refuse before delete on workflow for each row begin {arms} end")
        self.instance(*codes, "good1", "good2")
        for c in codes:
            self.db.execute("update workflow set status = ? where id = ?", (c, c))
        for n in (*codes, "good1", "good2"):
            self.schedule(n, ago_ms=HOUR)
        self.due(("good1", "completed"), ("good2", "completed"), code=1)
        self.assertEqual(sorted(self.db.rows("select instance, attempts from lapse_purge")), sorted((c, 1) for c in codes))
        self.assertEqual([self.there(c) for c in codes], [self.WHOLE] * len(codes))


class SqliteFailing(Purging, SqliteTest):
    def test_one_of_many_ends_the_transaction(self):
        self.given("create trigger refuse before delete on workflow when old.id = 'c' begin select raise(rollback, 'no'); end")
        for name in "abcde":
            self.instance(name)
            self.schedule(name, ago_ms=HOUR)
        r = self.lapse(self.contract, "purge", "due", "--json", "--now", NOW)
        self.assertEqual(sorted(x["instance"] for x in r.json["executed"]), list("abde"), r)
        self.assertEqual({name: self.there(name) == self.PURGED for name in "abcde"},
                         {"a": True, "b": True, "c": False, "d": True, "e": True})
        self.assertEqual(self.db.rows("select instance, attempts from lapse_purge"), [("c", 1)])


@every_engine
class Checks(Purging):
    def findings(self, contract, *words, level="error", code=3, now_too=True):
        found = self.check(contract, code=code)
        self.finding(found, level, *words, policy="purges.workflow")
        if level == "error" and now_too:      # the space is refused, and nothing happens
            self.instance("q")
            self.schedule("q", ago_ms=HOUR)
            r = self.due(code=3, contract=contract)
            self.assertEqual(r.json["spaces"][0]["outcome"], "refused", r)
            self.assertEqual(self.there("q"), self.WHOLE)
        return found

    def changed(self, old, new):
        self.assertIn(old, CONTRACT)
        return CONTRACT.replace(old, new)

    def test_a_table_that_is_not_there(self):
        r = self.findings(self.changed("workflow_step(", "workflow_steps("), "workflow_steps", "does not exist")
        self.assertIn("workflow_step", str([f["fix"] for f in r.json["findings"]]))

    def test_a_column_that_is_not_there(self):
        self.findings(self.changed("workflow_step(workflow_id)", "workflow_step(workflowid)"), "no column", "workflowid")

    def test_a_keep_column_that_is_not_there(self):
        self.findings(self.changed("keep: { key:", "keep: { kee:"), "no column", "kee")

    def test_a_foreign_key_that_is_named_nowhere(self):
        for action in ("", "on delete cascade", "on delete set null"):
            with self.subTest(action):
                self.given("drop table if exists log; drop table if exists x")
                self.given(f"create table log (id integer primary key, w {self.text} references workflow(id) {action})")
                self.findings(CONTRACT, "log(w)", "named nowhere")
                self.given("delete from workflow_step; delete from workflow_kv; delete from log; delete from workflow; "
                           "delete from lapse_purge")

    def test_the_order(self):
        self.given(f"create table log (id integer primary key, w {self.text} references workflow(id))")
        self.findings(self.changed("- workflow(id)", "- workflow(id)\n          - log(w)"), "erased after")
        self.lapse(self.changed("- workflow(id)", "- log(w)\n          - workflow(id)"), "check", code=0)

    def test_kept_rows_that_refer_to_erased_ones(self):
        self.given(f"create table log (id integer primary key, w {self.text} references workflow(id), k text)")
        self.findings(self.changed("- workflow(id)", "- { ref: log(w), keep: { k: x } }\n          - workflow(id)"), "kept refer to")

    def test_the_same_twice(self):
        self.findings(self.changed("- workflow(id)", "- workflow(id)\n          - workflow_kv(instance_id)"), "is twice in erases")

    def test_what_one_keeps_another_would_erase(self):
        """By its second column, a row that is kept by its first."""
        self.given(f"create table edge (a {self.text}, b {self.text}, k {self.text})")
        keeping, plain = "{ ref: edge(%s), keep: { k: x } }", "edge(%s)"
        less = "{ ref: edge(%s), keep: { k: 'y*' } }"
        for first, second, now_too in ((keeping, plain, True), (plain, keeping, False), (keeping, less, False)):
            self.findings(self.changed("- workflow(id)", f"- {first % 'a'}\n          - {second % 'b'}\n          - workflow(id)"),
                          "keeps", "would erase", now_too=now_too)
        for form in (keeping, plain):
            self.lapse(self.changed("- workflow(id)", f"- {form % 'a'}\n          - {form % 'b'}\n          - workflow(id)"), "check", code=0)

    def test_its_own_table(self):
        self.findings(self.changed("- workflow(id)", "- lapse_purge(instance)"), "lapse_purge", "goes with the purge")

    def test_a_type_that_cannot_be_looked_up(self):
        self.given("create table odd (id %s)" % self.per_engine(postgres="numeric", sqlite="blob", mariadb="double"))
        self.findings(self.changed("- workflow(id)", "- odd(id)"), "cannot be looked up")

    def test_an_index(self):
        self.given("drop index step_workflow")
        r = self.findings(CONTRACT, "no index", "workflow_step", level="warning", code=0)
        fix = next(f["fix"] for f in r.json["findings"] if "no index" in f["what"] and "workflow_step" in f["what"])
        self.given(fix.replace("CONCURRENTLY ", ""))
        self.no_finding(self.check(CONTRACT, code=0), "no index")

    def test_without_tables(self):
        self.forget_who()
        self.given("drop table lapse_purge; delete from lapse_version where version > 3")
        self.finding(self.check(CONTRACT, code=0), "note", "nothing can be purged yet", policy="purges.workflow")

    def test_a_refused_space_does_not_stop_the_others(self):
        self.given("create table other (id text primary key); insert into other values ('o')")
        contract = self.changed("workflow_step(", "workflow_steps(") + "\n      other: { erases: [other(id)] }"
        self.schedule("a", ago_ms=HOUR)
        self.schedule("o", ago_ms=HOUR, space="other")
        self.due(("o", "completed"), code=3, contract=contract)



class Grants(Purging, PostgresTest):
    def test_grants(self):
        self.given("create role purger login") if not self.db.rows("select 1 from pg_roles where rolname = 'purger'") else None
        r = self.lapse(CONTRACT, "install", "--grants", "purger", code=0)
        self.assertIn("INSERT (space, instance, reason, purge_at), SELECT, DELETE on lapse_purge", r.out)
        self.given("\n".join(l for l in r.out.splitlines() if not l.startswith("--")))
        self.instance("a")
        self.schedule("a", ago_ms=HOUR)
        dsn = self.db.server.dsn(self.db.name, user="purger")
        self.assertEqual(lapse(dsn, CONTRACT, "purge", "due", "--now", NOW).code, 0)
        self.assertEqual(self.there("a"), self.PURGED)


@every_engine
class ByHand(Purging):
    contract = ONLY

    def purge(self, *words, code=0):
        return self.lapse(self.contract, "purge", *words, "--json", code=code)

    def test_schedule_status_cancel(self):
        self.instance("a")
        r = self.purge("schedule", T, "a", "completed")
        self.assertIs(r.json["scheduled"], True)
        self.assertEqual([p["state"] for p in r.json["purges"]], ["pending"])
        r = self.purge("schedule", T, "a", "failed")
        self.assertIs(r.json["scheduled"], False)
        self.assertEqual([p["reason"] for p in r.json["purges"]], ["completed"])
        r = self.purge("status", T, "a")
        self.assertEqual([p["reason"] for p in r.json["purges"]], ["completed"])
        due, scheduled = (r.json["purges"][0][k] for k in ("due_at", "scheduled_at"))
        self.assertAlmostEqual(self.seconds(due) - self.seconds(scheduled), 60, delta=0.01)
        self.assertIs(self.purge("cancel", T, "a").json["cancelled"], True)
        self.assertIs(self.purge("cancel", T, "a").json["cancelled"], False)
        self.assertIs(self.purge("status", T, "a").json["scheduled"], False)
        self.assertEqual(self.pending(), [])

    def seconds(self, text):
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

    def test_list(self):
        self.purge("schedule", T, "a", "completed")
        self.schedule("b", "cancelled")
        self.schedule("c", space="elsewhere")
        self.assertEqual([(p["instance"], p["state"]) for p in self.purge("list").json["purges"]],
                         [("a", "pending"), ("b", "not_purged"), ("c", "unknown_space")])
        self.assertEqual([p["instance"] for p in self.purge("list", T).json["purges"]], ["a", "b"])

    def test_a_repeated_one_is_listed_as_such(self):
        for instance, ago in (("a", 1), ("a", 2), ("b", 1)):
            self.schedule(instance, ago_ms=ago * HOUR)
        self.schedule("a", "cancelled", ago_ms=3 * HOUR)
        self.assertEqual([(p["instance"], p["state"]) for p in self.purge("list").json["purges"]],
                         [("a", "repeated"), ("a", "due"), ("b", "due"), ("a", "not_purged")])

    def test_a_delay_beyond_what_the_column_holds(self):
        """Then the delay decides, as it does for a plain INSERT."""
        for delay in ("7300d", "4000000d", "100000000d"):
            contract = f"purges: {{ workflow: {{ delay: {delay}, erases: [workflow(id)] }} }}"
            self.schedule("before")
            self.lapse(contract, "purge", "schedule", T, "hand", "completed", code=0)
            self.schedule("after")
            at = []
            for name in ("before", "hand", "after"):
                p = self.lapse(contract, "purge", "status", T, name, "--json", code=0).json["purges"][0]
                self.assertEqual(p["state"], "pending")
                at.append([int(n) for n in p["due_at"].split("T")[0].split("-")])
            self.assertEqual(at, sorted(at))
            self.assertGreater(at[0][0], 2040)
            self.given("delete from lapse_purge")

    def test_bad_words(self):
        for words, said in ((("schedule", "workflw", "a", "completed"), "did you mean 'workflow'"),
                            (("schedule", T, "a"), "lapse purge schedule SPACE INSTANCE REASON"),
                            (("cancel", "x", "a"), "there is no space 'x'"),
                            (("list", "workflow2"), "did you mean"),
                            (("schedul", T, "a", "b"), "did you mean 'schedule'"),
                            ((), "lapse purge due"), (("due", "x"), "lapse purge due")):
            with self.subTest(words):
                r = self.lapse(self.contract, "purge", *words, code=2)
                self.assertIn(said, r.err)
        self.assertEqual(self.pending(), [])

    def test_bytes(self):
        for bad in (b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80"):
            r = self.lapse(self.contract, "purge", "schedule", T, os.fsdecode(bad), "completed", code=2)
            self.assertIn("not valid UTF-8", r.err)
        for name in ("", " ", "\u202e\U0001f600", "\x1b[31m", "a\nb", "x" * 100_000):
            with self.subTest(name[:10]):
                self.assertIs(self.purge("schedule", T, name, "completed").json["scheduled"], True)
                self.assertEqual(self.purge("status", T, name).json["purges"][0]["instance"], name)
                self.lapse(self.contract, "purge", "list", code=0)
                self.assertIs(self.purge("cancel", T, name).json["cancelled"], True)

    def test_on_a_terminal_nothing_commands_it(self):
        self.purge("schedule", T, "\x1b[31m", "completed")
        self.assertNotIn("\x1b[31m", self.lapse(self.contract, "purge", "list", code=0).out)

    def test_no_value_makes_a_line_of_its_own(self):
        """Nor does it turn what stands beside it round, or hide."""
        forged = "a\nwf-1 b (completed): purged at 2020-01-01\u202e\u200b\u2028\u009b"
        r = self.lapse(self.contract, "purge", "schedule", T, forged, "completed", code=0)
        for out in (r.out, self.lapse(self.contract, "purge", "list", code=0).out,
                    self.lapse(self.contract, "purge", "status", T, forged, code=0).out,
                    self.lapse(self.contract, "purge", "cancel", T, forged, code=0).out):
            with self.subTest(out):
                self.assertNotRegex(out, "\nwf-1|[\u202e\u200b\u2028\u009b]")
                self.assertIn("a\\nwf-1 b (completed): purged at 2020-01-01\\u202e\\u200b\\u2028\\u009b", out)


class Client(Purging):
    """What any program does in a transaction of its own, done by the database's own command line."""

    def test_insert_and_delete(self):
        self.instance("wf-1", "wf-2")
        insert = "INSERT INTO lapse_purge (space, instance, reason) VALUES ('workflow', 'wf-1', 'completed');"
        self.client(f"BEGIN; UPDATE workflow SET status = 'completed' WHERE id = 'wf-1'; {insert} {insert} COMMIT;")
        self.client(insert.replace("wf-1", "wf-2"))
        self.assertEqual(self.pending(), ["wf-1", "wf-1", "wf-2"])
        self.due(now=None)
        self.client("DELETE FROM lapse_purge WHERE space = 'workflow' AND instance = 'wf-1';")
        self.assertEqual(self.pending(), ["wf-2"])
        self.client("UPDATE lapse_purge SET scheduled_at = %s WHERE instance = 'wf-2';" % self.minute_ago)
        self.due(("wf-2", "completed"), now=None)
        self.assertEqual((self.there("wf-1"), self.there("wf-2")), (self.WHOLE, self.PURGED))

    def test_the_clock_is_the_databases(self):
        self.client("INSERT INTO lapse_purge (space, instance) VALUES ('workflow', 'x');")
        at = self.lapse(self.contract, "purge", "status", T, "x", "--json", code=0).json["purges"][0]["scheduled_at"]
        self.assertAlmostEqual(datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp(), time.time(), delta=30)


class SqliteClient(Client, SqliteTest):
    minute_ago = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-61 seconds')"

    def client(self, sql, code=0):
        self.db.close()
        p = subprocess.run(["sqlite3", "-bail", self.db.path, sql], capture_output=True, text=True)
        self.assertEqual(p.returncode, code, p.stderr)
        return p.stderr

    def test_times_that_would_not_sort_are_refused(self):
        for bad in ("datetime('now')", "'2024-06-15T12:00:00Z'", "'2024-06-15T12:00:00.000+02:00'", "0", "'infinity'"):
            said = self.client(f"INSERT INTO lapse_purge (space, instance, purge_at) VALUES ('workflow', 'x', {bad});", 19)
            self.assertIn("write times like strftime", said, bad)


class PostgresClient(Client, PostgresTest):
    minute_ago = "clock_timestamp() - interval '61 seconds'"

    def client(self, sql):
        p = subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", self.db.dsn, "-c", sql], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_infinite_times_are_never_due(self):
        self.instance("a", "b", "c")
        for n, at in (("a", "infinity"), ("b", "-infinity")):
            self.client(f"INSERT INTO lapse_purge (space, instance, reason, purge_at) VALUES ('workflow', '{n}', 'x', '{at}')")
            self.client(f"INSERT INTO lapse_purge (space, instance, reason, scheduled_at) VALUES ('workflow', '{n}2', 'x', '{at}')")
        self.schedule("c", "x", ago_ms=HOUR)
        self.due(("c", "x"))
        self.assertEqual((self.there("a"), self.there("b")), (self.WHOLE, self.WHOLE))
        r = self.lapse(self.contract, "purge", "list", "--json", code=0)
        self.assertEqual({p["state"] for p in r.json["purges"]}, {"never"})


@every_engine
class Cost(Purging):
    def test_a_million_that_are_not_due(self):
        """The plan of every look goes through the index; here for some thousands."""
        n = 20_000
        far = f"'{self.time(MS + 99_000 * HOUR)}'" + ("::timestamptz" if self.on_postgres else "")
        self.db.script("insert into lapse_purge (space, instance, reason, purge_at, retry_at, parked_at) select 'workflow', "
                       "'w' || n, 'r' || (n % 3), case n % 4 when 1 then {0} end, case n % 4 when 2 then {0} end, "
                       "case n % 4 when 3 then {0} end from ({1}) s".format(far, self.series(n)))
        if self.on_postgres:
            self.given("analyze lapse_purge")
            before = self.touched()
            for _ in range(3):
                self.due(now=None)
            time.sleep(1.2)      # the server's counters come late
            self.assertLess(self.touched() - before, 2000)
        start = time.monotonic()
        self.due(now=None)
        self.assertLess(time.monotonic() - start, 10)

    def touched(self):
        with contextlib.closing(self.db.connect()) as c:
            with c.cursor() as q:
                q.execute("select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) from pg_stat_user_tables where relname = 'lapse_purge'")
                return int(q.fetchone()[0])
