"""Partitions that are swept one by one, on PostgreSQL: what goes is what would go from the whole, whatever becomes of a partition
meanwhile. What is no partition any more is nobody's to sweep."""
import threading

import psycopg2

from daemon import eventually
from harness import *

EV = """
    create table ev (id integer, at timestamptz not null, n integer, primary key (id, at)) partition by range (at);
    create index on ev (at, id);
    create table ev_1 partition of ev for values from ('2024-01-01') to ('2024-02-01');
    create table ev_2 partition of ev for values from ('2024-02-01') to ('2024-03-01');
    create table ev_6 partition of ev for values from ('2024-06-01') to ('2024-07-01')"""
LATCH = """
    create table latch (n integer); insert into latch values (1);
    create function waits(k integer) returns boolean language plpgsql volatile as $$begin
        for i in 1..1200 loop
            exit when k <> 2 or current_query() not like '%FOR UPDATE%' or not exists (select from latch);
            perform pg_sleep(0.05);
        end loop;
        return true; end$$"""


class PiecesTest(PostgresTest, Case):
    def contract(self, more="batch: 4", bound="age: at, keep: 30d", table="ev"):
        return f"policies: {{ev: {{table: {table}, {bound}{', ' + more if more else ''}}}}}"

    def fill(self, month, first, n=10, table="ev"):
        self.given(f"insert into {table} (id, at, n) select g, make_timestamptz(2024, {month}, 2, 0, 0, 0, 'UTC') + g * interval '1 minute', g"
                   f" from generate_series({first}, {first + n - 1}) g")

    def three(self):
        self.given(EV)
        for month, first in ((1, 1), (2, 11), (6, 21)):
            self.fill(month, first)
        self.given("analyze ev")

    def found(self, contract):
        return self.plan(contract).policy("ev")["found"]

    def goes(self, contract, rows, *left, apart=True):
        """It is swept partition by partition, or is not; either way these rows stay, and a second sweep finds nothing."""
        self.assertEqual(self.found(contract)["by"] == "partition", apart)
        r = self.sweep(contract)
        self.assertEqual((r.policy("ev")["rows"], r.policy("ev")["retries"], r.policy("ev")["left"]), (rows, 0, 0), r)
        self.assertEqual(self.ids("ev"), list(left))
        self.assertEqual(self.sweep(contract).policy("ev")["rows"], 0)


class ByPieces(PiecesTest):
    def test_ranges(self):
        self.three()
        self.assertEqual(self.found(self.contract()), {"by": "partition", "text": "partition by partition, in 2 of 3"})
        self.goes(self.contract(), 20, *range(21, 31))

    def test_the_statements(self):
        self.three()
        sql = self.lapse(self.contract(), "plan", "--sql", "--now", NOW).out
        self.assertIn("-- in one partition after the other, 2 of them, here public.ev_1\n", sql)
        self.assertIn('FROM ONLY "public"."ev_1" AS this', sql)
        self.assertIn("AND NOT inhdetachpending)", sql)

    def test_a_condition_that_names_a_partition(self):
        """What it looks at is not what is swept, nor what comes first."""
        self.three()
        contract = self.contract("where: 'exists (select from ev_6 x where x.id = 21)'")
        self.assertIn("2 of them, here public.ev_1\n", self.lapse(contract, "plan", "--sql", "--now", NOW).out)
        self.goes(contract, 20, *range(21, 31))

    def test_names_that_need_quotes(self):
        self.given("""create schema "it's"; create table "it's"."e ""v" (id integer, at timestamptz not null, n integer, primary key (id, at))
                        partition by range (at);
                      create table "it's"."o'ld"(like "it's"."e ""v" including all);
                      alter table "it's"."e ""v" attach partition "it's"."o'ld" for values from ('2024-01-01') to ('2024-02-01')""")
        self.fill(1, 1, table='"it\'s"."e ""v"')
        contract = self.contract(table="""'"it''s"."e ""v"'""")
        self.assertEqual(self.found(contract)["by"], "partition")
        self.assertEqual(self.sweep(contract).policy("ev")["rows"], 10)

    def test_lists_with_a_default(self):
        self.given("""
            create table ev (id integer, kind text, at timestamptz, primary key (kind, id)) partition by list (kind);
            create table ev_a partition of ev for values in ('a', 'b'); create table ev_c partition of ev for values in ('c');
            create table ev_rest partition of ev default;
            insert into ev select g, substr('abcd', 1 + g % 4, 1), case when g <= 20 then timestamptz '2024-01-01' + g * interval '1 hour' end
                from generate_series(1, 30) g""")
        self.goes(self.contract(), 20, *range(21, 31))
        self.given("insert into ev values (31, 'c', '2024-01-01'), (32, 'a', '2024-01-01'), (33, 'x', '2024-01-01')")
        contract = self.contract("rows: {kind: [c, x]}")
        self.assertEqual(self.found(contract)["text"], "partition by partition, in 2 of 3")
        self.goes(contract, 2, *range(21, 31), 32)

    def test_hashes(self):
        """Keys that are numbers go by stretches."""
        self.given("create table ev (id integer primary key, at timestamptz) partition by hash (id); create index on ev(at);"
                   + "".join(f"create table ev_{i} partition of ev for values with (modulus 3, remainder {i});" for i in range(3)) +
                   "insert into ev select g, timestamptz '2024-01-01' + g * interval '2 day' from generate_series(1, 120) g")
        self.goes(self.contract("batch: 7"), 68, *range(69, 121))

    def test_with_what_they_own(self):
        self.three()
        self.given("""
            create table step (id integer primary key, ev_id integer, at timestamptz, foreign key (ev_id, at) references ev);
            create table note (ev_id integer); create index on step(ev_id, at); insert into note values (3), (12);
            insert into step select id * 10 + k, id, at from ev, generate_series(1, 3) k""")
        contract = self.contract("batch: 4, with: [step(ev_id, at)], after: [note(ev_id) -> (id)], hold: {n: [5, 15]}")
        self.goes(contract, 16, 3, 5, 12, 15, *range(21, 31))
        self.assertEqual(self.db.rows("select count(*), count(distinct ev_id) from step"), [(42, 14)])

    def test_detached_references(self):
        self.three()
        self.given("create table note (id integer primary key, ev_id integer, at timestamptz, foreign key (ev_id, at) references ev);"
                   "create index on note(ev_id, at); insert into note select id, id, at from ev")
        self.goes(self.contract("detach: [note(ev_id, at)]"), 20, *range(21, 31))
        self.assertEqual(self.db.rows("select count(*), count(ev_id) from note"), [(30, 10)])

    def test_two_connections(self):
        """Every row is had once, and counted once."""
        self.given("create table ev (id integer, at timestamptz not null, n integer, primary key (id, at)) partition by range (at);"
                   "create index on ev (at)")
        for month in range(1, 7):
            self.given(f"create table ev_{month} partition of ev for values from ('2024-{month:02}-01') to ('2024-{month + 1:02}-01')")
            self.fill(month, month * 1000, 150)
        self.goes(self.contract("batch: 5, workers: 3"), 750, *range(6000, 6150))

    def test_a_budget(self):
        self.three()
        r = self.sweep("schedulers: {default: {every: 1m, budget: {rows: 13}}}\n" + self.contract(), code=6)
        self.assertEqual((r.policy("ev")["rows"], r.policy("ev")["outcome"]), (13, "budget"), r)
        self.assertEqual(self.ids("ev"), list(range(14, 31)))

    def test_rows_that_others_hold(self):
        """They are passed by, looked for once more, and told."""
        self.three()
        other = psycopg2.connect(self.db.dsn)
        self.addCleanup(other.close)
        with other.cursor() as c:
            c.execute("select 1 from ev where id in (2, 13) for update")
            r = self.sweep(self.contract())
        self.assertEqual((r.policy("ev")["rows"], r.policy("ev")["left"]), (18, 2), r)
        self.assertEqual(self.ids("ev"), [2, 13, *range(21, 31)])


class Troubled(PiecesTest):
    """What goes wrong in one partition is tried in the whole, and told if it is wrong there, too."""
    FAILS = """create function fails(k integer) returns boolean language plpgsql volatile as $$begin
        if k = 13 and {when} then raise exception 'thirteen'; end if; return true; end$$"""

    def given_fails(self, when):
        self.three()
        self.given(self.FAILS.format(when=when))
        return self.contract("batch: 4, where: 'fails(n)'")

    def test_in_one_alone(self):
        contract = self.given_fails("current_query() like '%ONLY%'")
        r = self.sweep(contract)
        self.assertEqual((r.policy("ev")["rows"], r.policy("ev")["left"]), (20, 0), r)
        self.assertEqual(self.ids("ev"), list(range(21, 31)))

    def test_in_many(self):
        """After a few, no other is begun."""
        self.given("create table ev (id integer, at timestamptz not null, n integer, primary key (id, at)) partition by range (at);"
                   + "".join(f"create table ev_{d} partition of ev for values from ('2024-01-{d:02}') to ('2024-01-{d + 1:02}');" for d in range(1, 21))
                   + "insert into ev select g, timestamptz '2024-01-01 12:00' + (g - 1) * interval '1 day', 13 from generate_series(1, 20) g;"
                   "create sequence tried;" + self.FAILS.format(when="current_query() like '%ONLY%' and nextval('tried') > 0"))
        r = self.sweep(self.contract("where: 'fails(n)'"))
        self.assertEqual((r.policy("ev")["rows"], self.db.rows("select last_value from tried")), (20, [(3,)]), r)

    def test_in_one_alone_beside_two_connections(self):
        """Its other parts are not tried either."""
        self.given(EV)
        self.fill(1, 1, n=400)
        self.given("update ev set n = 13; create sequence tried;" + self.FAILS.format(when="current_query() like '%ONLY%FOR UPDATE%' and nextval('tried') > 0"))
        r = self.sweep(self.contract("batch: 2, workers: 2, where: 'fails(n)'"))
        self.assertEqual((r.policy("ev")["rows"], r.policy("ev")["left"]), (400, 0), r)
        self.assertLess(self.db.rows("select last_value from tried")[0][0], 6)

    def test_under_a_budget(self):
        """There may be no second look then: the whole is swept from the start, and the oldest rows go first."""
        contract = "schedulers: {default: {every: 1m, budget: {rows: 14}}}\n" + self.given_fails("current_query() like '%FOR UPDATE%'")
        self.assertNotEqual(self.found(contract)["by"], "partition")
        r = self.sweep(contract, code=1)
        self.assertEqual(r.policy("ev")["outcome"], "failed", r)
        self.assertIn("thirteen", r.policy("ev")["error"])

    def test_everywhere(self):
        """Also where it cannot even be asked what is left."""
        for workers in (1, 2):
            with self.subTest(workers):
                self.given("drop table if exists ev; drop function if exists fails")
                contract = self.given_fails("true").replace("batch: 4", f"batch: 4, workers: {workers}")
                r = self.sweep(contract, code=1)
                self.assertEqual((r.policy("ev")["outcome"], r.policy("ev")["rows"]), ("failed", 10), r)
                self.assertIn("thirteen", r.policy("ev")["error"])
                self.assertEqual(self.ids("ev"), list(range(11, 31)))


class NotApart(PiecesTest):
    """Where a partition is no table like another, or others of its rows count, rows are found in the whole, as ever."""

    def test_triggers(self):
        for table in ("ev", "ev_1"):
            with self.subTest(table):
                self.given("drop table if exists ev, seen; drop function if exists noted")
                self.three()
                self.given("create table seen (n integer); create function noted() returns trigger language plpgsql as"
                           " 'begin insert into seen values (1); return null; end';"
                           f"create trigger noted after delete on {table} for each statement execute function noted()")
                self.goes(self.contract(), 20, *range(21, 31), apart=False)
                if table == "ev":
                    self.assertGreater(self.db.rows("select count(*) from seen"), [(0,)])

    def test_parts_of_parts(self):
        self.given("""create table ev (id integer, at timestamptz not null, n integer, primary key (id, at)) partition by range (at);
            create table ev_1 partition of ev for values from ('2024-01-01') to ('2024-02-01') partition by hash (id);
            create table ev_1a partition of ev_1 for values with (modulus 2, remainder 0);
            create table ev_1b partition of ev_1 for values with (modulus 2, remainder 1);
            create table ev_2 partition of ev for values from ('2024-02-01') to ('2024-03-01')""")
        self.fill(1, 1)
        self.fill(2, 11)
        self.goes(self.contract(), 20, apart=False)

    def test_what_counts_rows_of_its_own_table(self):
        self.three()
        self.goes(self.contract("keep_newest: {rows: 5, newest: at}"), 20, *range(21, 31), apart=False)

    def test_rows_below(self):
        self.three()
        self.given("alter table ev add up integer; update ev set up = 1 where id = 15")
        self.goes(self.contract("with: [ev(up) -> (id)]"), 20, *range(21, 31), apart=False)

    def test_a_single_transaction(self):
        self.three()
        self.goes(self.contract("batch: null"), 20, *range(21, 31), apart=False)

    def test_who_may_not_touch_the_partitions(self):
        """Rights on the whole are enough, as they are for every other statement."""
        self.three()
        role = f"only_{self.db.name}"
        self.given(f"create role {role} login; grant usage on schema public to {role}; grant select, delete, update on ev to {role}")
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        user = self.db.server.dsn(self.db.name, user=role)
        self.assertNotEqual(lapse(user, self.contract(), "plan", "--json", "--now", NOW).policy("ev")["found"]["by"], "partition")
        r = lapse(user, self.contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual((r.code, r.policy("ev")["rows"], self.ids("ev")), (0, 20, list(range(21, 31))), r)

    def test_who_may_not_touch_one_that_has_nothing_due(self):
        """It is not looked at."""
        self.three()
        role = f"most_{self.db.name}"
        self.given(f"create role {role} login; grant usage on schema public to {role};"
                   f"grant select, delete, update on ev, ev_1, ev_2 to {role}")
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        user = self.db.server.dsn(self.db.name, user=role)
        self.assertEqual(lapse(user, self.contract(), "plan", "--json", "--now", NOW).policy("ev")["found"]["by"], "partition")
        self.assertEqual(lapse(user, self.contract(), "sweep", "--json", "--now", NOW).policy("ev")["rows"], 20)


class Detached(PiecesTest):
    """CONCURRENTLY: at once the partition is not seen in the whole any more; then it waits for the sweep, which has rows of it locked."""

    def detach(self, divided=""):
        self.three()
        self.given(f"""
            create table ev_3 partition of ev for values from ('2024-03-01') to ('2024-04-01') {divided};
            create table step (id integer primary key, ev_id integer); create index on step(ev_id); insert into step select id, id from ev;
            create table latch (n integer); insert into latch values (1);
            create function slow() returns trigger language plpgsql as $$begin
                for i in 1..1200 loop exit when not exists (select from latch); perform pg_sleep(0.05); end loop; return old; end$$;
            create trigger slow before delete on step for each statement execute function slow()""")
        contract = self.contract("batch: 4, with: [step(ev_id) -> (id)]")
        self.assertEqual(self.found(contract)["by"] == "partition", not divided)
        p = Lapse.start(self.db, contract, "sweep", "--json", "--no-progress", "--now", NOW)
        eventually(lambda: self.db.rows("select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"))
        other = psycopg2.connect(self.db.dsn)
        self.addCleanup(other.close)
        other.autocommit = True
        detaches = threading.Thread(target=lambda: other.cursor().execute("alter table ev detach partition ev_1 concurrently"))
        detaches.start()
        eventually(lambda: self.db.rows("select 1 from pg_inherits where inhdetachpending and inhrelid = 'ev_1'::regclass"))
        self.given("delete from latch")
        r = p.wait()
        detaches.join()
        self.assertEqual(r.code, 0, r)
        self.assertEqual(self.db.rows("select count(*) from ev_1 where not exists (select from step where ev_id = ev_1.id)"), [(0,)])
        self.assertEqual(self.ids("ev"), list(range(21, 31)))
        self.assertEqual(self.db.rows("select count(*) from step"), [(10 + len(self.ids("ev_1")),)])
        return r.policy("ev")["rows"]

    def test_while_it_is_swept_for_itself(self):
        self.assertEqual(self.detach(), 14)

    def test_while_the_whole_is_swept(self):
        """Its rows keep what they own."""
        self.assertEqual(self.detach("partition by hash (id)"), 10)
        self.assertEqual(len(self.ids("ev_1")), 10)


class Meanwhile(PiecesTest):
    """A sweep waits in the first partition, and something happens to another."""

    def meanwhile(self, sql, more="batch: 4"):
        self.three()
        self.given(LATCH)
        p = Lapse.start(self.db, self.contract(f"{more}, where: 'waits(n)'"), "sweep", "--json", "--no-progress", "--now", NOW)
        eventually(lambda: self.db.rows("select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
                                        """ and position('FROM ONLY "public"."ev_1"' in query) > 0"""))
        for one in sql:
            self.given(one)
        self.given("delete from latch")
        r = p.wait()
        self.assertEqual(r.code, 0, r)
        return r.policy("ev")

    def test_it_is_detached(self):
        """It may be an archive now, and keeps its rows."""
        self.assertEqual(self.meanwhile(["alter table ev detach partition ev_2"])["rows"], 10)
        self.assertEqual((self.ids("ev"), self.ids("ev_2")), (list(range(21, 31)), list(range(11, 21))))

    def test_it_is_detached_and_another_has_its_name(self):
        self.assertEqual(self.meanwhile(["alter table ev detach partition ev_2; alter table ev_2 rename to archive;"
                                         "create table ev_2 (like archive); insert into ev_2 select * from archive"])["rows"], 10)
        self.assertEqual((self.ids("ev_2"), self.ids("archive")), (list(range(11, 21)),) * 2)

    def test_it_is_part_of_another_table(self):
        self.assertEqual(self.meanwhile(["alter table ev detach partition ev_2; create table of (like ev including all) partition by range (at);"
                                         "alter table of attach partition ev_2 for values from ('2024-02-01') to ('2024-03-01')"])["rows"], 10)
        self.assertEqual(self.ids("of"), list(range(11, 21)))

    def test_it_is_dropped(self):
        self.assertEqual(self.meanwhile(["drop table ev_2"])["rows"], 10)
        self.assertEqual(self.ids("ev"), list(range(21, 31)))

    def test_it_is_dropped_beside_two_connections(self):
        """The other one may have been through it before."""
        self.assertIn(self.meanwhile(["drop table ev_2"], "batch: 1, workers: 2")["rows"], range(10, 21))
        self.assertEqual(self.ids("ev"), list(range(21, 31)))

    def test_it_is_renamed(self):
        """It is still a partition: the second look finds its rows."""
        self.assertEqual(self.meanwhile(["alter table ev_2 rename to ev_two"])["rows"], 20)
        self.assertEqual(self.ids("ev"), list(range(21, 31)))

    def test_another_is_attached(self):
        r = self.meanwhile(["create table ev_3 partition of ev for values from ('2024-03-01') to ('2024-04-01');"
                            "insert into ev values (99, '2024-03-05', 99)"])
        self.assertEqual(r["rows"], 21)
        self.assertEqual(self.ids("ev"), list(range(21, 31)))

    def test_rows_move(self):
        r = self.meanwhile(["update ev set at = '2024-06-14' where id in (12, 13); update ev set n = n + 100 where id = 14"])
        self.assertEqual(r["rows"], 18)
        self.assertEqual(self.ids("ev"), [12, 13, *range(21, 31)])

    def test_the_one_it_is_in_stays(self):
        """To detach it takes a lock that waits for the sweep's transaction."""
        self.three()
        self.given(LATCH)
        p = Lapse.start(self.db, self.contract("where: 'waits(n)'"), "sweep", "--json", "--no-progress", "--now", NOW)
        eventually(lambda: self.db.rows("select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"))
        with self.assertRaisesRegex(Exception, "lock timeout"):
            self.given("set local lock_timeout = '300ms'; alter table ev detach partition ev_1")
        self.given("delete from latch")
        self.assertEqual(p.wait().policy("ev")["rows"], 20)
