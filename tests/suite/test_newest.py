"""cap and keep_newest: the newest rows of each group stay."""
import re

from harness import *


def cap(more="", rows=2, per="", newest="at_ms", table="t"):
    per = f"per: [{per}], " if per else ""
    return f"policies: {{t: {{table: {table}, cap: {{rows: {rows}, {per}newest: [{newest}]}}{more}}}}}"


def newest(more="", rows=2, per="", newest="at_ms", age="at_ms", keep="1h"):
    per = f"per: [{per}], " if per else ""
    return f"policies: {{t: {{table: t, age: {age}, keep: {keep}, keep_newest: {{rows: {rows}, {per}newest: [{newest}]}}{more}}}}}"


@every_engine
class Cap(Case):
    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, a text, b integer, at_ms bigint, n integer, state text)")

    def rows(self, *rows, into="t(id, a, at_ms)"):
        self.insert(into, *rows)

    def test_one_group(self):
        self.rows((1, "x", 50), (2, "x", 10), (3, "y", 40), (4, "y", 30), (5, "y", 20))
        r = self.swept(cap(), gone={"t": 3})
        self.left("t", 1, 3)
        self.assertEqual(r.policy("t")["left"], 0)

    def test_per_group(self):
        self.rows((1, "x", 5), (2, "x", 4), (3, "x", 3), (4, "y", 1), (5, "y", 2), (6, "z", 9), (7, "x", 6))
        self.swept(cap(per="a"), gone={"t": 2})
        self.left("t", 1, 4, 5, 6, 7)

    def test_nothing_over(self):
        self.rows((1, "x", 5), (2, "x", 4), (3, "y", 3), (4, "y", 1))
        for c in (cap(per="a"), cap(rows=4), cap(rows=5), cap(rows=9223372036854775807)):
            r = self.swept(c, gone={})
            self.assertEqual(r.policy("t")["batches"], 0)
        self.left("t", 1, 2, 3, 4)

    def test_an_empty_table(self):
        self.swept(cap(), gone={})
        self.swept(cap(per="a, b"), gone={})

    def test_ties_by_further_columns_then_by_the_key(self):
        self.insert("t(id, a, at_ms, n)", (1, "x", 5, 1), (2, "x", 5, 3), (3, "x", 5, 2), (4, "x", 5, 3), (5, "x", 4, 9))
        self.swept(cap(newest="at_ms, n", rows=3), gone={"t": 2})
        self.left("t", 2, 3, 4)
        self.swept(cap(newest="at_ms, n", rows=1), gone={"t": 2})       # 2 and 4 are equal: the greater key is newer
        self.left("t", 4)

    def test_ties_by_the_key_in_groups(self):
        self.rows(*((i, "xy"[i % 2], 7) for i in range(1, 11)))
        self.swept(cap(per="a"), gone={"t": 6})
        self.left("t", 7, 8, 9, 10)

    def test_null_is_oldest(self):
        self.rows((1, "x", None), (2, "x", -5), (3, "x", None), (4, "x", 5), (5, "y", None))
        self.swept(cap(per="a", rows=3), gone={"t": 1})
        self.left("t", 2, 3, 4, 5)
        self.swept(cap(rows=2), gone={"t": 2})
        self.left("t", 2, 4)

    def test_null_in_a_further_column_is_oldest(self):
        self.insert("t(id, at_ms, n)", (9, 5, None), (2, 5, 1), (3, 5, 2), (4, 6, None))
        self.swept(cap(newest="at_ms, n", rows=3), gone={"t": 1})
        self.left("t", 2, 3, 4)

    def test_a_null_group_is_a_group(self):
        self.rows((1, None, 1), (2, None, 2), (3, None, 3), (4, "x", 0), (5, "x", 0), (6, "", 0))
        self.swept(cap(per="a"), gone={"t": 1})
        self.left("t", 2, 3, 4, 5, 6)

    def test_null_in_one_column_of_the_group(self):
        into = "t(id, a, b, at_ms)"
        self.rows((1, "x", None, 1), (2, "x", None, 2), (3, "x", 1, 3), (4, "x", 1, 4), (5, None, 1, 5), (6, None, 1, 6),
                  (7, None, None, 7), (8, None, None, 8), (9, "y", None, 9), into=into)
        for batch in (1, 2, "null"):
            with self.subTest(batch=batch):
                self.given("delete from t where id > 100")
                self.rows((101, "x", None, 0), (102, None, 1, 0), (103, None, None, 0), (104, "x", 1, 0), (105, "y", None, 0),
                          into=into)
                self.swept(cap(f", batch: {batch}", per="a, b"), gone={"t": 4})
                self.left("t", *range(1, 10), 105)

    def test_held_rows_count_but_stay(self):
        self.insert("t(id, a, at_ms, state)", (1, "x", 9, "held"), (2, "x", 8, ""), (3, "x", 7, ""), (4, "x", 1, "held"))
        self.swept(cap(", hold: {state: held}", per="a"), gone={"t": 1}, kept={"held": 1})
        self.left("t", 1, 2, 4)

    def test_only_held_rows_beyond(self):
        self.insert("t(id, a, at_ms, state)", (1, "x", 9, ""), (2, "x", 8, ""), (3, "x", 7, "held"))
        self.swept(cap(", hold: {state: held}"), gone={}, kept={"held": 1})

    def test_waiting_rows_count_but_stay(self):
        self.given("create table o (id integer primary key, t_id integer); create index o_t on o(t_id)")
        self.rows((1, "x", 9), (2, "x", 8), (3, "x", 7), (4, "x", 6))
        self.insert("o", (1, 1), (2, 4))
        self.swept(cap(", after: [o(t_id)]"), gone={"t": 1}, kept={"waiting": 1})
        self.left("t", 1, 2, 4)

    def test_rows_and_where_restrict_the_population(self):
        self.insert("t(id, a, at_ms, state)", *((i, "x", i, ("done", "open")[i % 2]) for i in range(1, 11)))
        self.swept(cap(", rows: {state: done}", per="a"), gone={"t": 3})       # 2 4 6 of 2 4 6 8 10
        self.left("t", 1, 3, 5, 7, 8, 9, 10)
        self.swept(cap(", rows: {state: open}, where: {at_ms: {lt: 9}}"), gone={"t": 2})
        self.left("t", 5, 7, 8, 9, 10)
        self.swept(cap(", where: 'this.at_ms > 5 and this.id in (select max(x.id) from t x union select 8)'", rows=1),
                   gone={"t": 1})
        self.left("t", 5, 7, 9, 10)

    def test_what_it_owns_goes_and_what_refers_is_detached(self):
        self.given("""create table o (id integer primary key, t_id integer not null references t(id));
                      create table d (id integer primary key, t_id integer references t(id));
                      create index o_t on o(t_id); create index d_t on d(t_id)""")
        self.rows(*((i, "x", i) for i in range(1, 7)))
        self.insert("o", *((i * 10, i) for i in range(1, 7)))
        self.insert("d", *((i * 10, i) for i in range(1, 7)))
        self.swept(cap(", with: [o(t_id)], detach: [d(t_id)], batch: 3", per="a"), gone={"t": 4, "o": 4}, detached={"d": 4})
        self.left("o", 50, 60)
        self.assertEqual(self.db.rows("select count(*) from d where t_id is null"), [(4,)])

    def test_batches_smaller_than_the_excess(self):
        for batch, batches in ((1, 30), (7, 5), (30, 1), (1000, 1), ("null", 1)):
            more = f", batch: {batch}, pace: {{ target: 10m }}"
            for c, keep in ((cap(more, per="b", rows=2), lambda i: i > 30), (cap(more, rows=10), lambda i: i > 30)):
                with self.subTest(batch=batch, c=c):
                    self.given("delete from t")
                    self.insert("t(id, b, at_ms)", *((i, i % 5, i // 3) for i in range(1, 41)))
                    r = self.swept(c, gone={"t": 30})
                    self.left("t", *filter(keep, range(1, 41)))
                    self.assertEqual(r.policy("t")["batches"], batches)

    def test_oldest_first(self):
        self.given("drop table t; create table t (id integer primary key, b integer not null, at_ms bigint not null)")
        self.insert("t", *((i, i % 2, 100 - i) for i in range(1, 9)))
        r = self.plan(cap(per="b", rows=1), "--sql")
        self.assertIn('ORDER BY this."b", this."at_ms", this."id"', "\n".join(r.json["policies"][0]["sql"]).replace("`", '"'))
        self.swept(cap(", batch: 1", per="b", rows=1), gone={"t": 6})
        self.left("t", 1, 2)

    def test_a_composite_key(self):
        self.given("create table k (g integer, id integer, x text, at_ms bigint not null, primary key (g, id))")
        self.insert("k", *((g, i, "xy"[g % 2], 7) for g in range(4) for i in range(4)))
        for c, gone in ((cap(", batch: 3", per="x", rows=5, table="k"), 6), (cap(", batch: 3", rows=6, table="k"), 4)):
            self.swept(c, gone={"k": gone})
        # the greatest keys: (3, *), then (2, *)
        self.assertEqual(self.db.rows("select g, id from k order by 1, 2"),
                         [(2, 2), (2, 3), (3, 0), (3, 1), (3, 2), (3, 3)])

    def test_a_subtree_waits_whole(self):
        self.given("create table n (id integer primary key, up integer references n(id), at_ms bigint); create index n_up on n(up)")
        self.insert("n", (1, None, 1), (2, 1, 2), (3, None, 3), (4, 3, 9), (5, None, 8), (6, 5, 0))
        # newest: 4, 5. 3 is beyond, but 4 below it is not; 6 is beyond and goes alone; 1 goes with 2
        self.swept(cap(", with: [n(up)]", table="n"), gone={"n": 3}, kept={"waiting": 1})
        self.left("n", 3, 4, 5)

    def test_of_its_own_table_through_a_dependent(self):
        self.given("""create table m (id integer primary key, t_id integer); create index m_t on m(t_id);
                      create index t_b on t(b)""")
        self.insert("t(id, b, at_ms)", (1, None, 1), (2, 10, 9), (3, None, 2), (4, 30, 0), (5, None, 8))
        self.insert("m", (10, 1), (30, 3))
        self.swept(cap(", with: [{ref: m(t_id), with: [t(b)]}]"), gone={"t": 2, "m": 1}, kept={"waiting": 1})
        self.left("t", 1, 2, 5)

    def test_detach_inside_the_table(self):
        self.given("create table n (id integer primary key, up integer references n(id), at_ms bigint); create index n_up on n(up)")
        self.insert("n", (1, None, 1), (2, 1, 2), (3, 2, 3), (4, 1, 4), (5, 4, 5))
        self.swept(cap(", detach: [n(up)], batch: 1", table="n"), gone={"n": 3}, detached={"n": 1})
        self.assertEqual(self.db.rows("select id, up from n order by 1"), [(4, None), (5, 4)])

    def test_two_policies_on_one_table(self):
        self.rows((1, "x", 1), (2, "x", 2), (3, "x", MS), (4, "x", MS + 1), (5, "x", MS + 2), (6, "x", MS + 3))
        self.swept("""
            policies:
              t: { table: t, expires: at_ms }
              t.cap: { table: t, cap: { rows: 2, newest: at_ms } }
            """, gone={"t": 4}, same_plan=False)
        self.left("t", 5, 6)

    def test_what_plan_shows(self):
        self.rows((1, "x", 1), (2, "x", 2), (3, "x", 3))
        p = self.plan(cap(rows=1)).policy("t")
        self.assertEqual((p["rows"], p["oldest"], p["newest"], p["cutoff"]), (2, None, None, None))
        self.assertNotIn("cutoffs", p)
        r = self.lapse(cap(rows=1), "plan", code=0)
        row = next(line for line in r.out.splitlines() if line.startswith("t "))
        self.assertRegex(row, r"2 +- +- +-$")

    def test_an_index_is_advised(self):
        found = self.finding(self.check(cap(per="a", newest="at_ms, n"), code=0), "warning", "no index", "(a, at_ms, n)")
        self.given(found["fix"].replace(" CONCURRENTLY", ""))
        self.no_finding(self.check(cap(per="a", newest="at_ms, n"), code=0), "no index")
        found = self.finding(self.check(cap(", rows: {state: x}"), code=0), "warning", "no index", "(state, at_ms)")
        self.given(found["fix"].replace(" CONCURRENTLY", ""))
        self.no_finding(self.check(cap(", rows: {state: x}"), code=0), "no index")
        self.finding(self.check(newest(per="b"), code=0), "warning", "no index", "(b, at_ms)")


@every_engine
class KeepNewest(Case):
    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, a text, at_ms bigint, done_ms bigint, n integer)")

    def test_old_ones_go_but_the_newest_stay(self):
        self.insert("t(id, a, at_ms)", (1, "x", MS - 5 * HOUR), (2, "x", MS - 4 * HOUR), (3, "x", MS - 3 * HOUR),
                    (4, "y", MS - 9 * HOUR), (5, "y", MS - 9 * HOUR), (6, "z", MS - 9 * HOUR), (7, "z", MS),
                    (8, "z", MS - 1), (9, "z", MS - 10 * HOUR))
        self.swept(newest(per="a"), gone={"t": 3})
        self.left("t", 2, 3, 4, 5, 7, 8)
        self.swept(newest(rows=5), gone={"t": 1})      # 4 and 5 are equally old: the greater key is newer
        self.left("t", 2, 3, 5, 7, 8)

    def test_young_ones_stay_though_beyond(self):
        self.insert("t(id, a, at_ms)", *((i, "x", MS - 1000 - i) for i in range(9)))
        self.swept(newest(rows=1), gone={})

    def test_keep_by(self):
        self.insert("t(id, a, at_ms)", *((i, "xy"[i % 2], MS - i * HOUR) for i in range(1, 11)))
        self.swept(newest(keep="{by: a, values: {x: 3h, y: 8h}}", rows=5), gone={"t": 4})      # x: 4 6 8 10, y: 9
        self.left("t", 1, 2, 3, 4, 5, 7)

    def test_without_a_usable_time(self):
        # 1, 2 have no time and stay; they are oldest and take no place among the newest
        self.insert("t(id, a, at_ms)", (1, "x", None), (2, "x", None), (3, "x", 1), (4, "x", 2), (5, "x", 3))
        self.swept(newest(), gone={"t": 1}, kept={"null_time": 2})
        self.left("t", 1, 2, 4, 5)

    def test_the_latest_of_several_and_another_order(self):
        self.insert("t", (1, "x", 1, 5, 9), (2, "x", 1, MS, 8), (3, "x", 1, None, 7), (4, "x", None, 1, 6), (5, "x", None, None, 5))
        self.swept(newest(age="[at_ms, done_ms]", newest="n", rows=1), gone={"t": 2}, kept={"null_time": 1})
        self.left("t", 1, 2, 5)

    def test_text_times_in_any_form_are_ordered_as_instants(self):
        self.given("create table x (id integer primary key, g text, at text)")
        self.insert("x", (1, "a", "2024-01-01T10:00:00Z"), (2, "a", "2024-01-01 10:30:00"), (3, "a", "2024-01-01T09:00:00-05:00"),
                    (4, "a", "rubbish"), (5, "a", None), (6, "a", "2024-01-01T00:00:00Z"))
        # 14:00 (3), 10:30 (2), 10:00 (1), 0:00 (6); as text 1 would come before 2
        for per in ("", "g"):
            with self.subTest(per=per):
                self.given("delete from x where id = 6")
                self.insert("x", (6, "a", "2024-01-01T00:00:00Z"))
                c = newest(age="at", newest="at", rows=2, per=per).replace("table: t", "table: x")
                if not per:
                    p = self.plan(c).policy("t")
                    self.assertEqual(p["rows"], 2)
                    continue
                self.swept(c, gone={"x": 2}, kept={"null_time": 1, "unreadable_time": 1})
                self.left("x", 2, 3, 4, 5)

    def test_a_subtree(self):
        self.given("create table n (id integer primary key, up integer references n(id), at_ms bigint); create index n_up on n(up)")
        self.insert("n", (1, None, 1), (2, 1, 20), (3, None, 3), (4, 3, 4), (5, None, 10))
        c = newest(", with: [n(up)]").replace("table: t", "table: n")
        self.swept(c, gone={"n": 2}, kept={"waiting": 1})
        self.left("n", 1, 2, 5)

    def test_a_row_of_another_group_goes_along(self):
        self.given("create table n (id integer primary key, up integer references n(id), g text, at_ms bigint);"
                   "create index n_up on n(up)")
        self.insert("n", (1, None, "a", 1), (2, 1, "b", MS - 2), (3, None, "a", 2), (4, None, "b", MS - 1))
        # 2 is too young to go by itself, but not among the newest of its group: it goes with 1
        c = newest(", with: [n(up)]", per="g", rows=1).replace("table: t", "table: n")
        self.swept(c, gone={"n": 2})
        self.left("n", 3, 4)

    def test_with_inclusive_and_never(self):
        self.insert("t(id, at_ms)", (1, MS - HOUR), (2, MS - HOUR), (3, MS - HOUR))
        self.swept(newest(rows=1), gone={})
        self.swept(newest(keep="never", rows=1), gone={})
        self.swept(newest(", inclusive: true", rows=1), gone={"t": 2})
        self.left("t", 3)


@every_engine
class Refused(Case):
    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, a text, at_ms bigint, n integer)")
        self.insert("t", *((i, "x", i, i) for i in range(9)))

    def test_in_the_file(self):
        for c, words in (
                (cap(rows=0), "'rows' must be a whole number of at least 1, not '0'"),
                (cap(rows=-3), "at least 1"),
                (cap(rows="x"), "at least 1"),
                (cap(rows=1.5), "at least 1"),
                (cap(rows="'5'"), "at least 1"),
                (cap(rows="99999999999999999999"), "at least 1"),
                (cap(newest=""), "empty list"),
                (cap(newest="at_ms, at_ms"), "twice"),
                (cap(per="a, a"), "twice"),
                (cap(per="a, at_ms"), "both"),
                (cap(", age: at_ms, keep: 1h"), "two bounds"),
                ("policies: {t: {table: t, cap: {rows: 5}}}", "newest"),
                ("policies: {t: {table: t, cap: {newest: at_ms}}}", "rows"),
                ("policies: {t: {table: t, cap: 5}}", "cap"),
                ("policies: {t: {table: t, cap: {rows: 5, newest: at_ms, most: 3}}}", "most"),
                ("policies: {t: {table: t, expires: at_ms, keep_newest: {rows: 5, newest: at_ms}}}", "needs 'age'"),
                (newest(rows=0), "at least 1"),
                (newest(per="a, a"), "twice")):
            with self.subTest(c=c), self.untouched():
                r = self.lapse(c, "sweep", code=2)
                self.assertRegex(r.err, r":\d+:\d+: ")
                self.assertIn(words, r.err)

    def test_against_the_schema(self):
        for c, words in (
                (cap(newest="when"), ("no column 'when'",)),
                (cap(per="aa"), ("no column 'aa'", "id, a, at_ms, n")),
                (newest(newest="nn"), ("no column 'nn'",))):
            with self.subTest(c=c), self.untouched():
                found = self.finding(self.check(c, code=3), "error", *words)
                name = re.search(r"\[(\w+)\]", c.replace("[at_ms]", "")).start(1) + 1
                self.assertRegex(found["at"], f":{name}$")
                self.sweep(c, code=3)

    def test_names_that_fold_to_one_column(self):
        with self.untouched():
            self.finding(self.check(cap(newest="N, n"), code=3), "error", "'newest' names the column 'n' again")
            self.finding(self.check(cap(per="A", newest="a"), code=3), "error", "'newest' names the column 'a' again")
            self.sweep(cap(newest="N, n"), code=3)

    def test_a_unit_beside_a_cap(self):
        # it is of conditions' times
        self.swept(cap(", unit: ms, where: {n: {older_than: 1h}}", rows=8), gone={"t": 1})

    def test_texts_of_times_written_in_several_ways(self):
        self.given("create table x (id integer primary key, g text, at text)")
        mixed = ("2024-01-01T10:00:00Z", "2024-01-01 11:00:00"), ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00+02:00"), \
            ("2024-01-01T10:00:00", "2024-01-01T10:00:00Z")
        for values in mixed:
            with self.subTest(values=values):
                self.given("delete from x")
                self.insert("x", *((i, "x", v) for i, v in enumerate(values * 2)))
                with self.untouched():
                    self.finding(self.check(cap(newest="at", table="x"), code=3), "error", "at", "written in", *values)
                    self.sweep(cap(newest="at", rows=1, table="x"), code=3)
        for values in ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00.5Z"), ("b", "a"), ("2024-01-01", "2024-02-01"), ("b", None), \
                ("2024-01-01T10:00:00+02:00", "2024-01-02T10:00:00+02:00"):
            with self.subTest(values=values):
                self.given("delete from x")
                self.insert("x", *((i, "x", v) for i, v in enumerate(values * 2)))
                self.swept(cap(newest="at", rows=3, table="x"), gone={"x": 1})


class OnSqlite(Case, SqliteTest):
    def test_groups_of_a_collation_that_ignores_case(self):
        """What is not the same text is another group: to be one of a group lets a row go."""
        self.given("create table t (id integer primary key, a text collate nocase, at_ms integer)")
        self.insert("t", *((i, ("Foo", "foo", "FOO", "bar")[i % 4], i) for i in range(16)))
        for batch in (1, 1000):
            self.swept(cap(f", batch: {batch}", per="a"), gone={"t": 8} if batch == 1 else {})
        self.left("t", *range(8, 16))

    def test_values_of_any_class_are_groups(self):
        self.given("create table t (id integer primary key, a, at_ms integer)")
        self.insert("t", *((i, (1, "1", 1.0, b"1", None)[i % 5], i) for i in range(20)))
        # 1 and 1.0 are one group of 8, the others have 4 each
        self.swept(cap(", batch: 3", per="a"), gone={"t": 12})
        self.assertEqual(len(self.ids("t")), 8)

    def test_rows_without_a_key_do_not_count(self):
        self.given("create table t (k text primary key, a text, at_ms integer)")
        self.insert("t", (None, "x", 9), (None, "x", 8), ("a", "x", 1), ("b", "x", 2), ("c", "x", 3))
        for per in ("", "a"):
            with self.subTest(per=per):
                self.given("insert or ignore into t values ('a', 'x', 1)")
                self.swept(cap(per=per), gone={"t": 1})
                self.assertEqual(self.db.rows("select k from t order by at_ms"), [("b",), ("c",), (None,), (None,)])

    def test_numbers_and_texts_in_one_order(self):
        self.given("create table t (id integer primary key, at_ms integer)")
        self.insert("t", (1, 5), (2, "2024-01-01"), (3, 7))
        with self.untouched():
            self.finding(self.check(cap(rows=1), code=3), "error", "at_ms", "numbers", "text")
            self.sweep(cap(rows=1), code=3)


class OnPostgres(Case, PostgresTest):
    def test_types_without_an_order(self):
        self.given("create domain d as json; create table t (id integer primary key, j json, x xml, p point, a json[], d d, b jsonb,"
                   " u uuid, i inet, ok integer[], bits bit(3), at timestamptz)")
        for column in ("j", "x", "p", "a", "d"):
            with self.subTest(column=column):
                self.finding(self.check(cap(per=column, newest="at"), code=3), "error", f"column '{column}'", "no order")
                self.finding(self.check(cap(newest=column), code=3), "error", f"column '{column}'", "no order")
        for column in ("b", "u", "i", "ok", "bits"):
            with self.subTest(column=column):
                self.swept(cap(per=column, newest="at"), gone={})
                self.swept(cap(newest=column), gone={})

    def test_groups_of_odd_types(self):
        for kind, values in (("integer[]", ("{1,2}", "{2}", None)), ("uuid", ("0" * 32, "1" * 32, None)),
                             ("numeric", ("1.0", "2", None)), ("float8", ("NaN", "0.1", None)), ("char(4)", ("a", "b", None)),
                             ("jsonb", ('{"a": 1}', '"x,\\"y"', None)), ("timestamptz", ("infinity", "2024-01-01", None)),
                             ("boolean", ("true", "false", None)), ("text", ("a,b\"'{}\\", "", None))):
            with self.subTest(kind=kind):
                self.given(f"drop table if exists t; create table t (id integer primary key, a {kind}, at_ms bigint)")
                self.insert("t", *((i, values[i % 3], i) for i in range(12)))
                self.swept(cap(", batch: 2", per="a"), gone={"t": 6})
                self.left("t", *range(6, 12))

    def test_a_collation_that_ignores_case(self):
        self.given("create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
                   "create table t (id integer primary key, a text collate ci, at_ms bigint)")
        self.insert("t", *((i, ("Foo", "foo", "FOO", "bar")[i % 4], i) for i in range(16)))
        self.swept(cap(", batch: 1", per="a"), gone={"t": 8})
        self.left("t", *range(8, 16))

    def test_partitions(self):
        self.given("create table t (id integer, a text, at_ms bigint, primary key (id, a)) partition by list (a);"
                   "create table t1 partition of t for values in ('x'); create table t2 partition of t default")
        self.insert("t", *((i, "xy"[i % 2], i) for i in range(10)))
        self.swept(cap(", batch: 3", per="a"), gone={"t": 6})
        self.left("t", 6, 7, 8, 9)
        self.swept(cap(rows=1), gone={"t": 3})
        self.left("t", 9)
