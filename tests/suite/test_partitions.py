"""partitions: drop. A partition whose range has ended and whose rows are all due is dropped; everything else goes row by
row. What is dropped is what the rows themselves say, never what the bounds let guess."""
import datetime
import json
import os
import random
import unittest

from daemon import Daemon
from harness import *

EV = """
    create table ev (id integer, at timestamptz not null, state text not null default 'done', n integer,
        primary key (id, at)) partition by range (at);
    create index on ev (at, id);
    create table ev_1 partition of ev for values from ('2024-01-01') to ('2024-02-01');
    create table ev_2 partition of ev for values from ('2024-02-01') to ('2024-03-01');
    create table ev_6 partition of ev for values from ('2024-06-01') to ('2024-07-01')"""


def contract(more="", bound="age: at, keep: 30d", table="ev", top=""):
    return f"{top}\npolicies: {{ev: {{table: {table}, {bound}, partitions: drop{', ' + more if more else ''}}}}}"


class Drops(Case):
    TABLE = "ev"

    def fill(self, month, n=10, first=1, table="ev", state="done"):
        self.db.execute(f"insert into {table} (id, at, state) select g, make_timestamptz(2024, {month}, 2, 0, 0, 0, 'UTC')"
                        f" + g * interval '1 minute', '{state}' from generate_series({first}, {first + n - 1}) g")

    def there(self, table=None):
        """The partitions that are there, at any depth."""
        return sorted(last_part(n) for n, in self.db.rows(
            "select relid::text from pg_partition_tree(?::regclass) where level > 0", (table or self.TABLE,)))

    def counts(self, table=None):
        return dict(self.db.rows(f"select tableoid::regclass::text, count(*) from {table or self.TABLE} group by 1"))

    @staticmethod
    def dropped(r):
        return {last_part(p["table"]): p["rows"] for p in r.policy("ev")["partitions"] if p["dropped"]}

    @staticmethod
    def kept(r):
        return {last_part(p["table"]): p["why"] for p in r.policy("ev")["partitions"] if not p["dropped"]}

    def drops(self, said, dropped, gone, kept=(), code=0, table=None, left=None):
        """plan foretells it, sweep does it, the rows and the partitions are really gone, and a second sweep finds
        nothing."""
        table = table or self.TABLE
        before, were = self.there(table), sum(self.counts(table).values())
        planned = self.plan(said)
        self.assertEqual((self.there(table), sum(self.counts(table).values())), (before, were), "plan wrote")
        self.assertEqual(self.dropped(planned), dropped, planned)
        self.assertEqual(set(self.kept(planned)), set(kept), planned)
        self.assertEqual(planned.policy("ev")["rows"], gone, planned)
        r = self.sweep(said, code=code)
        self.assertEqual(self.dropped(r), dropped, r)
        self.assertEqual(set(self.kept(r)), set(kept), r)
        self.assertEqual(r.policy("ev")["rows"], gone, r)
        self.assertEqual(sum(self.counts(table).values()), were - gone, r)
        for name in dropped:
            self.assertEqual(self.db.rows("select to_regclass(?)", (name,)), [(None,)], name)
        again = self.sweep(said, code=code)
        self.assertEqual((again.policy("ev")["rows"], self.dropped(again)), (0, {}), again)
        return r


class RowByRow(Drops, PostgresTest):
    """Without `partitions: drop`."""

    def test_a_batch_leaves_other_partitions_alone(self):
        self.given(EV)
        for month in (1, 2, 6):
            self.fill(month, 2000)
        self.given("analyze ev")

        def read():
            self.db.execute("select pg_stat_clear_snapshot()")
            return self.db.rows("select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relname = 'ev_6'")[0][0]
        before = read()
        r = self.sweep("policies: {ev: {table: ev, age: at, keep: 30d, batch: 100}}")
        self.assertEqual((r.policy("ev")["rows"], self.counts()), (4000, {"ev_6": 2000}), r)
        self.assertGreater(r.policy("ev")["batches"], 30)
        self.assertLess(read() - before, 3 * 2000, "read again with each batch")


class Dropped(Drops, PostgresTest):
    def setUp(self):
        super().setUp()
        self.given(EV)

    def test_wholly_due(self):
        self.fill(1, 10), self.fill(2, 20), self.fill(6, 5)
        self.drops(contract(), {"ev_1": 10, "ev_2": 20}, 30)
        self.assertEqual(self.there(), ["ev_6"])

    def test_without_the_key_nothing_is_dropped(self):
        self.fill(1)
        r = self.sweep("policies: {ev: {table: ev, age: at, keep: 30d}}")
        self.assertNotIn("partitions", r.policy("ev"), r)
        self.assertEqual(self.there(), ["ev_1", "ev_2", "ev_6"])

    def test_one_row_that_is_not_due_keeps_it(self):
        for why, more in (("a state", "rows: {state: done}"), ("a condition", "where: {state: done}"),
                          ("a hold", "hold: {state: run}")):
            with self.subTest(why):
                self.given("truncate ev")
                self.fill(1, 10), self.fill(2, 10)
                self.db.execute("update ev set state = 'run' where id = 7 and at < '2024-02-01'")
                self.drops(contract(more), {"ev_2": 10} if "ev_2" in self.there() else {}, 19)
                self.assertEqual(self.ids("ev"), [7])
                self.given("create table if not exists ev_2 partition of ev for values from ('2024-02-01') to ('2024-03-01')")

    def test_null_is_not_due(self):
        self.given("create table nu (id integer, at timestamptz not null, fin timestamptz, primary key (id, at)) "
                   "partition by range (at); create table nu_1 partition of nu for values from ('2024-01-01') to ('2024-02-01');"
                   "insert into nu values (1, '2024-01-02', '2024-01-03'), (2, '2024-01-02', null)")
        said = contract(bound="age: fin, keep: 1d", table="nu")
        self.drops(said, {}, 1, table="nu")
        self.db.execute("update nu set fin = '2024-01-09'")
        self.drops(said, {"nu_1": 1}, 1, table="nu")

    def test_an_empty_one_stays(self):
        self.fill(2)
        self.drops(contract(), {"ev_2": 10}, 10)
        self.assertEqual(self.there(), ["ev_1", "ev_6"])

    def test_the_bounds_are_not_enough_and_not_needed_alone(self):
        # every row is due, but the range has not ended by the cutoff: an application may still write to it
        self.fill(6, 10)
        self.drops(contract(bound="age: at, keep: 5d"), {}, 10)
        self.assertIn("ev_6", self.there())
        # the range has ended, but another column says when a row is due
        self.given("truncate ev")
        self.fill(1, 10)
        self.given(f"update ev set n = {S + 1}; update ev set n = {S - 90000} where id <> 4")
        self.drops(contract("unit: s", bound="expires: n"), {}, 9)
        self.assertEqual(self.ids("ev"), [4])

    def test_the_end_of_the_range_exactly(self):
        self.given("create table ev_m partition of ev for values from ('2024-03-01') to ('2024-05-16 12:00:00+00');"
                   "insert into ev values (1, '2024-03-05'), (2, '2024-05-16 11:59:59.999999+00')")
        self.drops(contract(bound="age: at, keep: 30d"), {"ev_m": 2}, 2)      # the cutoff is 2024-05-16T12:00:00Z
        self.given("create table ev_m partition of ev for values from ('2024-03-01') to ('2024-05-16 12:00:00.000001+00');"
                   "insert into ev values (1, '2024-03-05'), (2, '2024-05-16 11:59:59.999999+00')")
        self.drops(contract(bound="age: at, keep: 30d"), {}, 2)
        self.assertIn("ev_m", self.there())

    def test_the_default_partition_and_open_ends_stay(self):
        self.given("create table ev_d partition of ev default;"
                   "create table ev_0 partition of ev for values from (minvalue) to ('2024-01-01');"
                   "create table ev_9 partition of ev for values from ('2025-01-01') to (maxvalue);"
                   "insert into ev values (1, '2023-01-01'), (2, '2024-04-04'), (3, '2026-01-01')")
        self.drops(contract(), {"ev_0": 1}, 2)
        self.assertEqual(self.there(), ["ev_1", "ev_2", "ev_6", "ev_9", "ev_d"])
        self.assertEqual(self.ids("ev"), [3])

    def test_a_late_row_finds_the_default_partition(self):
        self.given("create table ev_d partition of ev default")
        self.fill(1)
        self.drops(contract(), {"ev_1": 10}, 10)
        self.fill(1, 1)
        self.drops(contract(), {}, 1)

    def test_many_more_rows_than_a_batch(self):
        self.fill(1, 2500)
        r = self.drops(contract("batch: 10"), {"ev_1": 2500}, 2500)
        self.assertEqual(r.policy("ev")["batches"], 1, r)

    def test_names_that_need_quotes(self):
        self.given("""create schema "Odd "" schema"; drop table ev_1;
            create table "Odd "" schema"."it's ; x" partition of ev for values from ('2024-01-01') to ('2024-02-01')""")
        self.fill(1, 3)
        r = self.sweep(contract())
        self.assertEqual([p["table"] for p in r.policy("ev")["partitions"]], ['"Odd "" schema"."it\'s ; x"'], r)
        self.assertEqual(self.there(), ["ev_2", "ev_6"])

    def test_bounds_with_odd_texts(self):
        self.given("""create table od (at timestamptz, k text collate "C", id integer, primary key (at, k, id)) partition by range (at, k);
            create table od_1 partition of od for values from ('2024-01-01', ') TO (''2030-01-01''') to ('2024-02-01', 'x''y, (');
            create table od_2 partition of od for values from ('2024-03-01', ') TO (''2020-01-01''') to ('2024-07-01', 'z');
            insert into od values ('2024-01-02', 'k', 1), ('2024-03-02', 'k', 2)""")
        self.drops(contract(table="od"), {"od_1": 1}, 2, table="od")
        self.assertEqual(self.there("od"), ["od_2"])

    def test_its_own_checks_indexes_and_policies_go_with_it(self):
        self.given("""alter table ev_1 add constraint odd check (n is null or n > id);
            create index on ev_1 (n) where n > 3; create statistics st on id, n from ev_1;
            create policy p on ev_1 using (n < 5)""")
        self.fill(1)
        self.drops(contract(), {"ev_1": 10}, 10)

    def test_rows_that_others_hold(self):
        self.fill(1), self.fill(2)
        with self.db.connect() as c:
            c.autocommit = False
            c.cursor().execute("select * from ev_1 where id = 3 for update")
            r = self.sweep(contract("timeouts: {lock: 100ms}"), code=0)
            self.assertEqual(self.dropped(r), {"ev_2": 10}, r)
            self.assertIn("could not obtain lock", self.kept(r)["ev_1"], r)
            self.assertEqual((r.policy("ev")["rows"], r.policy("ev")["left"]), (19, 1), r)
            c.rollback()
        self.drops(contract(), {"ev_1": 1}, 1)

    def test_a_long_reader(self):
        self.fill(1)
        with self.db.connect() as c:
            c.autocommit = False
            c.cursor().execute("select count(*) from ev")
            r = self.sweep(contract())
            self.assertEqual((self.dropped(r), r.policy("ev")["rows"]), ({}, 10), r)
            self.assertIn("could not obtain lock", self.kept(r)["ev_1"], r)
            self.assertGreater(r.policy("ev")["retries"], 0, r)
            c.rollback()
        self.assertIn("ev_1", self.there())

    def test_the_text_says_it(self):
        self.fill(1), self.fill(2)
        self.given("create view v as select * from ev_2")
        p = self.lapse(contract(), "plan", "--now", NOW, "--sql", code=0)
        for words in ("drops: public.ev_1 (10 rows)", "not dropped public.ev_2: view public.v depends on it", "DROP TABLE",
                      "IN EXCLUSIVE MODE NOWAIT", "IN ACCESS EXCLUSIVE MODE NOWAIT"):
            self.assertIn(words, p.out)
        r = self.lapse(contract(), "sweep", "--now", NOW, code=0)
        for words in ("dropped: public.ev_1 (10 rows)", "not dropped public.ev_2: view public.v depends on it"):
            self.assertIn(words, r.out)

    def test_the_daemon_says_it(self):
        self.fill(1), self.fill(2)
        self.given("create view v as select * from ev_2")
        with Daemon(self.db, contract(), "--install") as d:
            line = d.wait_for("lifecycle_pruned", ev=20)
            self.assertEqual(line["partitions_dropped"], ["public.ev_1"], line)
            self.assertEqual(line["partitions_not_dropped"], ["public.ev_2: view public.v depends on it"], line)
            self.assertEqual(d.metric("lifecycle_prune_rows_total", "default", "ev", "ev"), 20)


class Judged(Drops, PostgresTest):
    """Every part of the due condition counts, also those that look at other rows."""

    def setUp(self):
        super().setUp()
        self.given(EV)
        self.fill(1), self.fill(2), self.fill(6)

    def test_after(self):
        self.given("create table box (id integer, ev_id integer); insert into box values (1, 3)")
        said = contract("after: [box(ev_id) -> (id)]")
        self.drops(said, {}, 18)
        self.assertEqual(sorted(self.counts().items()), [("ev_1", 1), ("ev_2", 1), ("ev_6", 10)])
        self.given("delete from box")
        self.drops(said, {"ev_1": 1, "ev_2": 1}, 2)

    def test_a_hold_that_asks_another_table(self):
        self.given("create table legal (ev_id integer); insert into legal values (3)")
        hold = 'hold: "exists (select 1 from legal l where l.ev_id = this.id and this.at < \'2024-02-01\')"'
        self.drops(contract(hold), {"ev_2": 10}, 19)

    def test_cap(self):
        self.drops(contract(bound="cap: {rows: 15, newest: [at]}"), {"ev_1": 10}, 15)

    def test_keep_newest(self):
        self.drops(contract("keep_newest: {rows: 12, newest: at}"), {"ev_1": 10}, 18)

    def test_keep_by(self):
        self.given("update ev set state = 'odd' where id = 5 and at < '2024-02-01'")
        self.drops(contract(bound="age: at, keep: {by: state, values: {done: 30d}}"), {"ev_2": 10}, 19)

    def test_a_row_type_in_a_condition(self):
        # a row of a partition passes for one of the table, whatever the order of its columns
        self.given("""create function f(ev) returns boolean language sql immutable as $$ select $1.id <> 4 or $1.at > '2024-02-01' $$;
            create table ev_o (state text not null default 'done', n integer, at timestamptz not null, id integer not null, primary key (id, at));
            alter table ev attach partition ev_o for values from ('2023-01-01') to ('2024-01-01');
            insert into ev (id, at) values (5, '2023-01-01'), (6, '2023-01-02')""")
        self.drops(contract('where: "f(this)"'), {"ev_2": 10, "ev_o": 2}, 21)


class Ranges(Drops, PostgresTest):
    """What a range is of, and when it has ended."""

    def ranges(self, type_, bounds, values, bound, dropped, gone, **how):
        self.given("drop table if exists ev; create table ev (id integer generated always as identity, "
                   f"k {type_}, at timestamptz default '2024-01-01', primary key (id, k)) partition by range (k)")
        for i, (a, b) in enumerate(bounds, 1):
            self.given(f"create table ev_{i} partition of ev for values from ({a}) to ({b})")
        for v in values:
            self.db.execute(f"insert into ev (k) values ({v})")
        self.drops(contract(bound=bound, **how), dropped, gone)

    def test_milliseconds(self):
        self.ranges("bigint", [(0, MS - 30 * DAY), (MS - 30 * DAY, MS + 1)], ["1", f"{MS - 30 * DAY - 1}", f"{MS}"],
                    "age: k, keep: 30d, unit: ms", {"ev_1": 2}, 2)

    def test_a_number_of_seconds_that_is_another_column(self):
        self.given("create table ev (id integer, made_s integer, at timestamptz, primary key (id, made_s)) partition by range (made_s);"
                   f"create table ev_1 partition of ev for values from (0) to ({S - 86400 * 3});"
                   f"create table ev_2 partition of ev for values from ({S - 86400 * 3}) to ({S});"
                   f"insert into ev values (1, 5, '2024-01-01'), (2, {S - 100}, '2024-01-01')")
        self.drops(contract(bound="age: at, keep: 1d"), {"ev_1": 1}, 2)

    def test_days(self):
        self.ranges("date", [("'2024-05-01'", "'2024-06-14'"), ("'2024-06-14'", "'2024-06-16'")],
                    ["'2024-05-02'", "'2024-06-13'", "'2024-06-14'"], "age: k, keep: 1d", {"ev_1": 2}, 3)

    def test_local_times_in_a_zone(self):
        # 2024-06-14 14:00 in Prague is 12:00 UTC, which is the cutoff
        for end, dropped in (("2024-06-14 14:00:00", {"ev_1": 1}), ("2024-06-14 14:00:00.000001", {})):
            self.ranges("timestamp", [("'2024-05-01'", f"'{end}'")], ["'2024-06-13'"],
                        "age: k, keep: 1d, zone: Europe/Prague", dropped, 1)

    def test_local_times_of_no_known_zone(self):
        for end, dropped in (("2024-06-14 00:00:00", {"ev_1": 1}), ("2024-06-14 00:00:00.000001", {})):
            self.ranges("timestamp", [("'2024-05-01'", f"'{end}'")], ["'2024-06-13'"], "age: at, keep: 1d", dropped, 1)

    def test_numbers_that_are_counted_up(self):
        self.given("create table ev (id bigint generated always as identity, at timestamptz, primary key (id)) partition by range (id);"
                   "create table ev_1 partition of ev for values from (1) to (6);"
                   "create table ev_2 partition of ev for values from (6) to (11);"
                   "insert into ev (at) select '2024-01-01' from generate_series(1, 8)")
        self.drops(contract(bound="age: at, keep: 1d"), {"ev_1": 5}, 8)      # 8 of 10: ev_2 is still being written to
        self.assertEqual(self.there(), ["ev_2"])

    def test_numbers_of_which_sessions_keep_some_for_later(self):
        # a session that took 20 at once may still come with the fifth of them
        self.given("create table ev (id bigint generated always as identity (cache 20), at timestamptz, primary key (id))"
                   "  partition by range (id);"
                   "create table ev_1 partition of ev for values from (1) to (6);"
                   "create table ev_2 partition of ev for values from (6) to (11);"
                   "insert into ev (at) select '2024-01-01' from generate_series(1, 8)")
        self.drops(contract(bound="age: at, keep: 1d"), {}, 8)
        self.assertEqual(self.there(), ["ev_1", "ev_2"])

    def test_numbers_that_say_nothing(self):
        # tenants 1 to 5 have only old rows, and may have new ones any time
        self.given("create table ev (id integer, tenant integer, at timestamptz, primary key (id, tenant)) partition by range (tenant);"
                   "create table ev_1 partition of ev for values from (1) to (6);"
                   "create table ev_2 partition of ev for values from (6) to (11);"
                   "insert into ev select g, g, '2024-01-01' from generate_series(1, 8) g")
        self.drops(contract(bound="age: at, keep: 1d"), {}, 8)
        self.assertEqual(self.there(), ["ev_1", "ev_2"])

    def test_infinity_texts_and_expressions(self):
        self.ranges("timestamptz", [("'-infinity'", "'infinity'")], ["'2024-01-01'"], "age: k, keep: 1d", {}, 1)
        self.ranges("text", [("'2023'", "'2024-02'")], ["'2024-01-01T00:00:00Z'"], "age: k, keep: 1d", {}, 1)
        self.given("drop table ev; create table ev (id integer not null, at timestamptz not null) partition by range ((at at time zone 'UTC'));"
                   "create table ev_1 partition of ev for values from ('2023-01-01') to ('2024-01-01');"
                   "create unique index on ev_1 (id); insert into ev values (1, '2023-05-05')")
        self.finding(self.check(contract(bound="age: at, keep: 1d"), code=3), "error", "key")

    def test_an_end_before_any_time(self):
        self.ranges("timestamptz", [("minvalue", "'-infinity'"), ("'-infinity'", "'2024-01-01'")], ["'2023-01-01'"],
                    "age: k, keep: 1d", {"ev_2": 1}, 1)


class Nested(Drops, PostgresTest):
    def test_parts_of_a_list(self):
        self.given("""create table ev (id integer, tenant text, at timestamptz, state text, primary key (id, tenant, at)) partition by list (tenant);
            create table ev_a partition of ev for values in ('a') partition by range (at);
            create table ev_b partition of ev for values in ('b') partition by range (at);
            create table ev_a1 partition of ev_a for values from ('2024-01-01') to ('2024-02-01');
            create table ev_a6 partition of ev_a for values from ('2024-06-01') to ('2024-07-01');
            create table ev_b1 partition of ev_b for values from ('2024-01-01') to ('2024-02-01');
            insert into ev values (1, 'a', '2024-01-02', 'x'), (2, 'a', '2024-06-14', 'x'), (3, 'b', '2024-01-02', 'y')""")
        self.drops(contract("rows: {state: x}"), {"ev_a1": 1}, 1)
        self.assertEqual(self.there(), ["ev_a", "ev_a6", "ev_b", "ev_b1"])

    HASHED = """create table ev (id integer, at timestamptz, state text default 'done', primary key (id, at)) partition by range (at);
        create table ev_1 partition of ev for values from ('2024-01-01') to ('2024-02-01') partition by hash (id);
        create table ev_1a partition of ev_1 for values with (modulus 2, remainder 0);
        create table ev_1b partition of ev_1 for values with (modulus 2, remainder 1)"""

    def test_a_partition_with_partitions_goes_whole(self):
        self.given(self.HASHED)
        self.fill(1, 10)
        self.drops(contract(), {"ev_1": 10}, 10)
        self.assertEqual(self.there(), [])

    def test_one_row_below_keeps_it_all(self):
        self.given(self.HASHED)
        self.fill(1, 10)
        self.given("update ev set state = 'run' where id = 3")
        self.drops(contract("rows: {state: done}"), {}, 9)
        self.assertEqual(self.there(), ["ev_1", "ev_1a", "ev_1b"])

    def test_ranges_in_ranges(self):
        self.given("""create table ev (id integer, at timestamptz, state text default 'done', primary key (id, at)) partition by range (at);
            create table ev_y partition of ev for values from ('2024-01-01') to ('2025-01-01') partition by range (at);
            create table ev_1 partition of ev_y for values from ('2024-01-01') to ('2024-02-01');
            create table ev_6 partition of ev_y for values from ('2024-06-01') to ('2024-07-01');
            create table ev_z partition of ev for values from ('2023-01-01') to ('2024-01-01') partition by range (at);
            create table ev_z1 partition of ev_z for values from ('2023-01-01') to ('2023-02-01');
            insert into ev values (100, '2023-01-05')""")
        self.fill(1, 10), self.fill(6, 10)
        self.drops(contract(), {"ev_z": 1, "ev_1": 10}, 11)
        self.assertEqual(self.there(), ["ev_6", "ev_y"])

    def test_one_that_is_being_detached_is_no_part_any_more(self):
        self.given(EV)
        self.fill(1)
        self.given("update pg_inherits set inhdetachpending = true where inhrelid = 'ev_1'::regclass")
        r = self.sweep(contract())
        self.assertEqual(self.dropped(r), {}, r)
        self.assertEqual(self.db.rows("select count(*) from ev_1"), [(10,)])

    def test_what_is_being_detached_from_it_keeps_it(self):
        # a drop would take ev_2 along, whose rows nobody sees any more who reads ev or ev_y
        self.given("""create table ev (id integer, at timestamptz, state text default 'done', primary key (id, at)) partition by range (at);
            create table ev_y partition of ev for values from ('2024-01-01') to ('2024-04-01') partition by range (at);
            create table ev_1 partition of ev_y for values from ('2024-01-01') to ('2024-02-01');
            create table ev_2 partition of ev_y for values from ('2024-02-01') to ('2024-03-01')""")
        self.fill(1), self.fill(2, 5, state="run")
        self.detach_halfway("ev_y", "ev_2")
        said = contract("rows: {state: done}")
        self.finding(self.check(said), "warning", "its partition ev_2 is being detached")
        r = self.sweep(said)
        self.assertEqual((self.dropped(r), r.policy("ev")["rows"]), ({"ev_1": 10}, 10), r)
        self.assertIn("ev_2 is being detached", self.kept(r)["ev_y"])
        self.assertEqual(self.db.rows("select count(*) from ev_2"), [(5,)])

    def detach_halfway(self, parent, partition):
        """DETACH … CONCURRENTLY that was given up while it waited for a transaction."""
        reader, owner = self.db.connect(), self.db.connect()
        reader.autocommit = False
        reader.cursor().execute(f"select count(*) from {parent}")
        owner.cursor().execute("set lock_timeout = '50ms'")
        with self.assertRaisesRegex(Exception, "lock timeout"):
            owner.cursor().execute(f"alter table {parent} detach partition {partition} concurrently")
        reader.close(), owner.close()
        self.assertEqual(self.db.rows("select inhrelid::regclass::text from pg_inherits where inhdetachpending"), [(partition,)])


class Refused(Drops, PostgresTest):
    """What speaks against it, in check, plan and sweep: rows go one by one."""

    def setUp(self):
        super().setUp()
        self.given(EV)
        self.fill(1)

    def row_by_row(self, said, *words, gone=10, name="ev_1"):
        self.finding(self.check(said), "warning", *words)
        r = self.drops(said, {}, gone, kept=[name] if name else [])
        if not name:
            planned = self.plan(said).policy("ev")
            self.assertIn(words[0], planned["partitions_why"])
        self.assertEqual(self.there(), ["ev_1", "ev_2", "ev_6"])
        return r

    def test_triggers(self):
        self.given("""create table log (id integer);
            create function note() returns trigger language plpgsql as 'begin insert into log values (old.id); return old; end';
            create trigger t after delete on ev_1 for each row execute function note()""")
        self.row_by_row(contract(), "triggers or rules on delete", name=None)
        self.assertEqual(self.db.rows("select count(*) from log"), [(10,)])

    def test_a_trigger_of_another_event_does_not_matter(self):
        self.given("""create function note() returns trigger language plpgsql as 'begin return new; end';
            create trigger t before insert on ev for each row execute function note()""")
        self.drops(contract(), {"ev_1": 10}, 10)

    def test_foreign_keys(self):
        self.given("create table kid (id integer, ev_id integer, ev_at timestamptz, foreign key (ev_id, ev_at) references ev (id, at))")
        said = contract("after: [kid(ev_id, ev_at)]")
        self.row_by_row(said, "foreign keys point at public.ev (of kid)", name=None)

    def test_a_foreign_key_of_its_own_does_not_matter(self):
        self.given("create table src (id integer primary key); insert into src values (1); "
                   "alter table ev add column src integer references src; update ev set src = 1")
        self.drops(contract(), {"ev_1": 10}, 10)
        self.assertEqual(self.db.rows("select count(*) from src"), [(1,)])

    def test_a_foreign_key_of_this_partition_alone(self):
        # a drop locks what it points at, too: nobody waits for long while somebody else has that
        self.given("create table src (id integer primary key); insert into src values (1); alter table ev add column src integer;"
                   "alter table ev_1 add foreign key (src) references src; update ev set src = 1")
        reader = self.db.connect()
        reader.autocommit = False
        reader.cursor().execute("select * from src")
        r = self.sweep(contract("timeouts: {lock: 60s}"))
        self.assertEqual((self.dropped(r), r.policy("ev")["rows"]), ({}, 10), r)
        self.assertIn("lock timeout", self.kept(r)["ev_1"])
        self.assertLess(r.policy("ev")["duration_ms"], 60_000, r)
        reader.close()
        self.fill(1)
        self.drops(contract(), {"ev_1": 10}, 10)

    def test_with_detach_orphan_and_one_transaction(self):
        self.given("create table kid (id integer primary key, ev_id integer); create index on kid (ev_id); insert into kid values (1, 1)")
        for more, words in (("with: [kid(ev_id) -> (id)]", "take others along"), ("detach: [kid(ev_id) -> (id)]", "detached"),
                            ("batch: null", "one transaction")):
            with self.subTest(more):
                self.given("truncate ev")
                self.fill(1)
                self.row_by_row(contract(more), words, name=None)
        self.given("truncate ev; create table src (id integer primary key); insert into src values (77)")
        self.fill(1)
        self.row_by_row(contract(bound="orphan: {of: src(id), by: id}, age: at, keep: 1d"), "source", name=None)

    def test_a_view(self):
        self.given("create view v as select * from ev_1")
        self.row_by_row(contract(), "view public.v depends on it")

    def test_a_view_on_the_whole_does_not_matter(self):
        self.given("create view v as select * from ev; create materialized view m as select count(*) from ev")
        self.drops(contract(), {"ev_1": 10}, 10)

    def test_a_column_of_its_row_type(self):
        self.given("create table other (x ev_1)")
        self.row_by_row(contract(), "other", "depends on it")

    def test_a_publication(self):
        self.given("create publication p for table ev")
        self.addCleanup(lambda: self.given("drop publication p"))
        self.row_by_row(contract(), "its deletes are published (p), and a drop is not")

    def test_a_publication_of_the_table_that_it_is_a_part_of(self):
        self.given("create table every (id integer, at timestamptz not null, state text not null default 'done', n integer,"
                   "  primary key (id, at)) partition by range (at);"
                   "alter table every attach partition ev for values from ('2024-01-01') to ('2025-01-01');"
                   "create publication p for table every with (publish_via_partition_root)")
        self.addCleanup(lambda: self.given("drop publication p"))
        self.row_by_row(contract(), "its deletes are published (p), and a drop is not")

    def test_a_publication_without_deletes_does_not_matter(self):
        self.given("create publication p for table ev with (publish = 'insert')")
        self.addCleanup(lambda: self.given("drop publication p"))
        self.drops(contract(), {"ev_1": 10}, 10)

    def test_a_drop_that_the_server_refuses(self):
        self.given("""create function no() returns event_trigger language plpgsql as $$ begin raise exception 'no drops here'; end $$;
            create event trigger no_drops on sql_drop execute function no()""")
        self.addCleanup(lambda: self.given("drop event trigger no_drops"))
        r = self.sweep(contract())
        self.assertEqual((self.dropped(r), r.policy("ev")["rows"], r.policy("ev")["outcome"]), ({}, 10, "done"), r)
        self.assertIn("no drops here", self.kept(r)["ev_1"])
        self.assertIn("ev_1", self.there())

    def test_a_judgement_that_takes_too_long(self):
        slow = 'where: "pg_sleep(0.02) is not null"'
        r = self.drops(contract(slow + ", timeouts: {lock: 100ms}"), {}, 10, kept=["ev_1"])
        self.assertIn("timeouts.lock allows 0.1 s", self.kept(r)["ev_1"])
        self.assertIn("ev_1", self.there())

    def as_role(self, grants, name="r"):
        role = f"{name}_{self.db.name}"
        self.given(f"create role {role} login; " + grants.replace("ROLE", role))
        self.addCleanup(lambda: self.given(f"drop owned by {role}; drop role {role}"))
        return self.db.server.dsn(self.db.name, user=role)

    def test_another_owner(self):
        dsn = self.as_role("grant all on all tables in schema public to ROLE")
        r = lapse(dsn, contract(), "check", "--json")
        self.assertEqual(r.code, 3, r)
        owner = self.db.rows("select pg_get_userbyid(relowner) from pg_class where relname = 'ev'")[0][0]
        self.finding(r, "error", "belongs to", owner, "only its owner", f"grant {owner} to")
        self.assertEqual(lapse(dsn, contract(), "sweep", "--json").code, 3)
        self.assertEqual(self.counts(), {"ev_1": 10})

    def test_the_owner_who_is_no_superuser(self):
        dsn = self.as_role("alter table ev owner to ROLE; alter table ev_1 owner to ROLE; grant all on schema public to ROLE;"
                           "alter table ev_2 owner to ROLE")
        self.fill(2)
        r = lapse(dsn, contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual((r.code, self.dropped(r)), (0, {"ev_1": 10, "ev_2": 10}), r)

    def test_one_partition_of_another_owner(self):
        self.fill(2)
        dsn = self.as_role("alter table ev owner to ROLE; alter table ev_1 owner to ROLE; grant all on ev_2, ev_6 to ROLE;"
                           "grant all on schema public to ROLE")
        r = lapse(dsn, contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual((r.code, self.dropped(r), r.policy("ev")["rows"]), (0, {"ev_1": 10}, 20), r)
        self.assertIn("it belongs to", self.kept(r)["ev_2"])

    def test_row_security_on_a_partition(self):
        self.fill(2)
        dsn = self.as_role("alter table ev owner to ROLE; alter table ev_1 owner to ROLE; alter table ev_2 owner to ROLE;"
                           "grant all on ev_6 to ROLE; grant all on schema public to ROLE; alter table ev_1 enable row level security;"
                           "alter table ev_1 force row level security; create policy p on ev_1 using (id < 5)")
        r = lapse(dsn, contract(), "sweep", "--json", "--now", NOW)
        self.assertEqual((r.code, self.dropped(r), r.policy("ev")["rows"]), (0, {"ev_2": 10}, 20), r)
        self.assertIn("row-level security", self.kept(r)["ev_1"])

    def test_tables_without_such_partitions(self):
        self.given("create table plain (id integer primary key, at timestamptz);"
                   "create table li (id integer, at timestamptz, primary key (id)) partition by list (id)")
        for table in ("plain", "li", "ev_1"):
            r = self.check(contract(table=table), code=3)
            self.finding(r, "error", "no partitions by range")


class Decoded(Drops, unittest.TestCase):
    """Whoever reads the log without a publication is told of deletes, too."""
    engine = "postgres"

    def setUp(self):
        self.server = Postgres(settings={"wal_level": "logical", "max_replication_slots": "2", "max_wal_senders": "2"})
        self.addCleanup(self.server.stop)
        self.db = self.server.fresh()
        self.addCleanup(self.db.close)
        super().setUp()

    def test_a_logical_slot(self):
        other = self.server.fresh()
        self.addCleanup(other.close)
        self.given(EV)
        for db, dropped in ((other, {"ev_1": 10}), (self.db, {})):
            db.rows("select pg_create_logical_replication_slot('s', 'test_decoding')")
            self.fill(1)
            r = self.sweep(contract())
            self.assertEqual((self.dropped(r), r.policy("ev")["rows"]), (dropped, 10), r)
            db.rows("select pg_drop_replication_slot('s')")
            self.given("create table if not exists ev_1 partition of ev for values from ('2024-01-01') to ('2024-02-01')")
        self.assertIn("the reader of the logical slot s (test_decoding) is told of deletes", self.kept(r)["ev_1"])


class Bounded(Drops, PostgresTest):
    """Fuse, budget and brake hold for partitions as for rows."""

    def setUp(self):
        super().setUp()
        self.given(EV)
        self.fill(1, 10), self.fill(2, 20), self.fill(6)
        self.lapse(contract(), "install", code=0)

    def test_the_fuse_before(self):
        r = self.sweep(contract("limits: {rows: 25}"), code=4)
        self.assertEqual((r.policy("ev")["outcome"], r.policy("ev")["rows"]), ("fuse", 0), r)
        self.assertEqual(self.there(), ["ev_1", "ev_2", "ev_6"])
        self.lapse(contract("limits: {rows: 25}"), "ack", "ev", code=0)
        self.drops(contract("limits: {rows: 25}"), {"ev_1": 10, "ev_2": 20}, 30)

    def test_the_fuse_holds(self):
        self.drops(contract("limits: {rows: 30}"), {"ev_1": 10, "ev_2": 20}, 30)

    def budget(self, budget):
        return contract(top=f"schedulers: {{default: {{every: 1m, budget: {{{budget}}}}}}}")

    def test_budget_of_rows(self):
        r = self.sweep(self.budget("rows: 12"), code=6)
        self.assertEqual((self.dropped(r), r.policy("ev")["rows"], r.policy("ev")["outcome"]), ({"ev_1": 10}, 12, "budget"), r)
        self.assertIn("budget.rows", self.kept(r)["ev_2"])
        self.assertEqual(self.counts(), {"ev_2": 18, "ev_6": 10})
        r = self.sweep(self.budget("rows: 18"), code=0)
        self.assertEqual(self.dropped(r), {"ev_2": 18}, r)

    def test_budget_of_batches(self):
        r = self.sweep(self.budget("batches: 1"), code=6)
        self.assertEqual((self.dropped(r), r.policy("ev")["batches"], r.policy("ev")["outcome"]), ({"ev_1": 10}, 1, "budget"), r)

    def test_pause(self):
        self.lapse(contract(), "pause", "ev", code=0)
        r = self.sweep(contract(), code=6)
        self.assertEqual(r.policy("ev")["outcome"], "paused", r)
        self.assertEqual(self.there(), ["ev_1", "ev_2", "ev_6"])

    def test_the_history_counts_them(self):
        self.sweep(contract())
        runs = json.loads(self.lapse(contract(), "history", "--json", code=0).out)["runs"]
        self.assertEqual(runs[0]["rows"], 30, runs)

    def test_a_lease(self):
        said = contract(top="schedulers: {default: {every: 1m, exclusive: true}}")
        self.drops(said, {"ev_1": 10, "ev_2": 20}, 30)


@every_engine
class Elsewhere(Case):
    """On engines without it, and where there is nothing to drop."""

    def test_refused(self):
        self.given("create table s (id integer primary key, at_ms bigint)")
        self.insert("s", (1, 1))
        said = "policies: {s: {table: s, expires: at_ms, partitions: drop}}"
        r = self.check(said, code=3)
        self.finding(r, "error", self.per_engine(sqlite="SQLite has no partitions", postgres="no partitions by range",
                                                 mariadb="outside of any transaction"), "take the key out")
        self.sweep(said, code=3)
        self.left("s", 1)


class Random(Drops, PostgresTest):
    """Whatever is in the table: the rows that stay are those that the policy does not want, judged here by hand, and the
    same as without the key."""
    ROUNDS = 20
    MONTHS = 6

    def given_rows(self, rnd):
        """Rows of months 1 to 6 as (id, month, day, state, n); some months are of one mind."""
        rows = []
        for month in range(1, self.MONTHS + 1):
            mood = rnd.choice((["done"], ["done"], ["done", "failed"], ["done", "failed", "run", None]))
            for _ in range(rnd.choice((0, 1, 5, 12))):
                rows.append((len(rows) + 1, month, rnd.randint(1, 28), rnd.choice(mood), rnd.choice((None, 0, 1, 1, 1))))
        return rows

    POLICIES = (
        ("rows: {state: done}", lambda age, state, n, boxed: state == "done" and age > 40),
        ("hold: {n: 0}", lambda age, state, n, boxed: n != 0 and age > 40),
        ("after: [box(ev_id) -> (id)]", lambda age, state, n, boxed: not boxed and age > 40),
        ("where: {any: [{state: done}, {state: null}]}", lambda age, state, n, boxed: state in ("done", None) and age > 40),
        ("", lambda age, state, n, boxed: age > 40),
    )
    BY_STATE = ("keep: {by: state, values: {done: 40d, failed: 75d}}",
                lambda age, state, n, boxed: age > {"done": 40, "failed": 75}.get(state, 10**9))

    def build(self, rows, boxed):
        self.given("drop table if exists ev, box; create table box (ev_id integer);"
                   "create table ev (id integer, at timestamptz not null, state text, n integer, primary key (id, at)) partition by range (at)")
        for m in range(1, self.MONTHS + 1):
            self.given(f"create table ev_{m} partition of ev for values from ('2024-{m:02}-01Z') to ('2024-{m + 1:02}-01Z')")
        self.insert("ev (id, at, state, n)", *[(i, f"2024-{m:02}-{d:02} 00:00Z", s, n) for i, m, d, s, n in rows])
        self.insert("box", *boxed)

    def test_rounds(self):
        seed = int(os.environ.get("LAPSE_SEED") or random.SystemRandom().randrange(10**9))
        rnd, drops = random.Random(seed), 0
        for turn in range(self.ROUNDS):
            rows = self.given_rows(rnd)
            boxed = [i for i, *_ in rows if rnd.random() < 0.05]
            words, wants = rnd.choice((*self.POLICIES, self.BY_STATE))
            keep = "" if words.startswith("keep") else "keep: 40d, "
            said = contract(words, bound=f"age: at, {keep}batch: {rnd.choice((1, 3, 1000))}")

            def due(i, month, day, state, n):
                age = (NOW_AT - datetime.datetime(2024, month, day, tzinfo=datetime.timezone.utc)).total_seconds() / 86400
                return wants(age, state, n, i in boxed)

            stays = [r[0] for r in rows if not due(*r)]
            with self.subTest(seed=seed, turn=turn, said=said):
                for policy in (said, said.replace(", partitions: drop", "")):
                    self.build(rows, boxed)
                    r = self.sweep(policy)
                    self.assertEqual(self.ids("ev"), stays, f"{rows}\n{r}")
                    self.assertEqual(r.policy("ev")["rows"], len(rows) - len(stays), r)
                    if policy is said:
                        went = self.dropped(r)
                        drops += len(went)
                        whole = {f"ev_{m}" for m in range(1, 5) if any(x[1] == m for x in rows)
                                 and all(due(*x) for x in rows if x[1] == m)}
                        self.assertEqual(set(went), whole, f"{rows}\n{r}")
        self.assertGreater(drops, self.ROUNDS // 4)
