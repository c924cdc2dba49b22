"""The bounds: expires, and age with keep in all its forms. Every case on every engine."""
from harness import *


@every_engine
class Expires(Case):
    CONTRACT = "policies: {session: {table: session, expires: expires_at_ms}}"

    def setUp(self):
        super().setUp()
        self.given("create table session (id integer primary key, expires_at_ms bigint)")

    def test_now_exactly_is_due(self):
        self.insert("session", (1, MS - 1), (2, MS), (3, MS + 1))
        r = self.swept(self.CONTRACT, gone={"session": 2})
        self.left("session", 3)
        p = r.policy("session")
        self.assertEqual((p["outcome"], p["rows"], p["label"]), ("done", 2, "session"))
        self.assertEqual(r.json["now"][:19], NOW[:19])
        self.assertEqual((r.json["command"], r.json["exit"]), ("sweep", 0))

    def test_null_is_never_due(self):
        self.insert("session", (1, None), (2, MS - DAY))
        self.swept(self.CONTRACT, gone={"session": 1}, kept={"null_time": 1})
        self.left("session", 1)

    def test_nothing_due(self):
        self.insert("session", (1, MS + DAY), (2, None))
        self.swept(self.CONTRACT, gone={})
        self.left("session", 1, 2)

    def test_empty_table(self):
        self.swept(self.CONTRACT, gone={})

    def test_the_databases_clock_is_now(self):
        import time
        now_ms = int(time.time() * 1000)
        self.insert("session", (1, now_ms - MINUTE), (2, now_ms + HOUR))
        self.swept(self.CONTRACT, gone={"session": 1}, now=None)
        self.left("session", 2)

    def test_an_expiry_before_1970_is_due(self):
        self.insert("session", (1, -5 * DAY), (2, 0), (3, MS + 1))
        self.swept(self.CONTRACT, gone={"session": 2})
        self.left("session", 3)

    def test_extreme_integers(self):
        self.insert("session", (1, 2**63 - 1), (2, -2**63), (3, MS))
        self.sweep(self.CONTRACT)
        self.assertIn(1, self.ids("session"))
        self.assertNotIn(3, self.ids("session"))


@every_engine
class AgeAndKeep(Case):
    def setUp(self):
        super().setUp()
        self.given("create table job (id integer primary key, state text, done_ms bigint)")

    def test_strictly_older(self):
        cutoff = MS - 30 * MINUTE
        self.insert("job(id, done_ms)", (1, cutoff - 1), (2, cutoff), (3, cutoff + 1), (4, None))
        self.swept("policies: {job: {table: job, age: done_ms, keep: 30m}}", gone={"job": 1}, kept={"null_time": 1})
        self.left("job", 2, 3, 4)

    def test_inclusive(self):
        cutoff = MS - 30 * MINUTE
        self.insert("job(id, done_ms)", (1, cutoff - 1), (2, cutoff), (3, cutoff + 1))
        self.swept("policies: {job: {table: job, age: done_ms, keep: 30m, inclusive: true}}", gone={"job": 2})
        self.left("job", 3)

    def test_keep_now(self):
        self.insert("job(id, done_ms)", (1, MS - 1), (2, MS), (3, MS + 1))
        self.swept("policies: {job: {table: job, age: done_ms, keep: now}}", gone={"job": 1})
        self.left("job", 2, 3)

    def test_keep_never(self):
        self.insert("job(id, done_ms)", (1, 0), (2, MS))
        self.swept("policies: {job: {table: job, age: done_ms, keep: never}}", gone={})
        self.left("job", 1, 2)

    def test_keep_in_milliseconds(self):
        self.insert("job(id, done_ms)", (1, MS - 1501), (2, MS - 1500))
        self.swept("policies: {job: {table: job, age: done_ms, keep: 1500ms}}", gone={"job": 1})
        self.left("job", 2)

    def test_keep_of_several_units(self):
        keep = DAY + 12 * HOUR + 90 * SECOND
        self.insert("job(id, done_ms)", (1, MS - keep - 1), (2, MS - keep))
        self.swept("policies: {job: {table: job, age: done_ms, keep: 1.5 Days 90sec}}", gone={"job": 1})
        self.left("job", 2)

    def test_keep_longer_than_time_itself(self):
        self.insert("job(id, done_ms)", (1, 0), (2, MS))
        self.swept("policies: {job: {table: job, age: done_ms, keep: 40000d}}", gone={})
        self.left("job", 1, 2)

    def test_the_cutoff_is_shown(self):
        self.insert("job(id, done_ms)", (1, MS - 2 * HOUR), (2, MS - 3 * HOUR), (3, MS))
        p = self.plan("policies: {job: {table: job, age: done_ms, keep: 1h}}").policy("job")
        self.assertEqual(p["outcome"], "planned")
        self.assertEqual(p["cutoff"][:19], "2024-06-15T11:00:00")
        self.assertEqual(p["oldest"][:19], "2024-06-15T09:00:00")
        self.assertEqual(p["newest"][:19], "2024-06-15T10:00:00")
        self.assertEqual(p["rows"], 2)

    def test_no_oldest_when_nothing_is_due(self):
        p = self.plan("policies: {job: {table: job, age: done_ms, keep: 1h}}").policy("job")
        self.assertEqual((p["rows"], p["oldest"], p["newest"]), (0, None, None))


@every_engine
class KeepByValue(Case):
    def setUp(self):
        super().setUp()
        self.given("create table workflow (id integer primary key, status text, finished_ms bigint)")

    def fill(self):
        self.insert("workflow", (1, "completed", MS - MINUTE - 1), (2, "completed", MS - MINUTE),
                    (3, "failed", MS - DAY - 1), (4, "failed", MS - 2 * HOUR),
                    (5, "running", 0), (6, None, 0), (7, "completed", None), (8, "cancelled", 0))

    def test_other_values_are_kept_for_ever(self):
        self.fill()
        self.swept("""
            policies:
              workflow:
                table: workflow
                age: finished_ms
                keep: { by: status, values: { completed: 1m, failed: 24h, cancelled: never } }
            """, gone={"workflow": 2})
        self.left("workflow", 2, 4, 5, 6, 7, 8)

    def test_otherwise_never(self):
        self.fill()
        self.swept("""
            policies:
              workflow:
                table: workflow
                age: finished_ms
                keep: { by: status, values: { completed: 1m }, otherwise: never }
            """, gone={"workflow": 1})
        self.left("workflow", 2, 3, 4, 5, 6, 7, 8)

    def test_otherwise_a_duration(self):
        self.fill()
        self.insert("workflow", (9, "running", MS - DAY), (10, "running", MS - DAY - 1))
        self.swept("""
            policies:
              workflow:
                table: workflow
                age: finished_ms
                keep: { by: status, values: { completed: 1m, failed: never }, otherwise: 1d }
            """, gone={"workflow": 5})
        self.left("workflow", 2, 3, 4, 7, 9)

    def test_keep_now_for_a_value(self):
        self.insert("workflow", (1, "completed", MS - 1), (2, "completed", MS), (3, "failed", MS - 1))
        self.swept("""
            policies:
              workflow:
                table: workflow
                age: finished_ms
                keep: { by: status, values: { completed: now, failed: 1h } }
            """, gone={"workflow": 1})
        self.left("workflow", 2, 3)

    def test_by_a_number(self):
        self.given("create table task (id integer primary key, priority integer, done_ms bigint)")
        self.insert("task", (1, 1, MS - 2 * HOUR), (2, 2, MS - 2 * HOUR), (3, 3, MS - 2 * HOUR), (4, None, 0))
        self.swept("""
            policies:
              task: { table: task, age: done_ms, keep: { by: priority, values: { 1: 1h, 2: 3h } } }
            """, gone={"task": 1})
        self.left("task", 2, 3, 4)

    def test_inclusive(self):
        self.insert("workflow", (1, "completed", MS - MINUTE), (2, "completed", MS - MINUTE + 1))
        self.swept("""
            policies:
              workflow:
                table: workflow
                age: finished_ms
                keep: { by: status, values: { completed: 1m } }
                inclusive: true
            """, gone={"workflow": 1})
        self.left("workflow", 2)

    def test_by_a_boolean(self):
        self.given("create table flag (id integer primary key, ok boolean, done_ms bigint)")
        self.insert("flag", (1, True, MS - 2 * HOUR), (2, False, MS - 2 * HOUR), (3, False, MS - 2 * DAY), (4, None, 0))
        self.swept("policies: {flag: {table: flag, age: done_ms, keep: {by: ok, values: {true: 1h, false: 1d}}}}",
                   gone={"flag": 2})
        self.left("flag", 2, 4)

    def test_together_with_rows(self):
        self.fill()
        self.swept("""
            policies:
              workflow:
                table: workflow
                rows: { status: [failed, running] }
                age: finished_ms
                keep: { by: status, values: { completed: 1m, failed: 24h } }
            """, gone={"workflow": 1})
        self.left("workflow", 1, 2, 4, 5, 6, 7, 8)


@every_engine
class KeepPerRow(Case):
    def setUp(self):
        super().setUp()
        self.given("create table doc (id integer primary key, made_ms bigint, ttl bigint, ttl_s integer)")

    def test_seconds(self):
        self.insert("doc(id, made_ms, ttl)", (1, MS - 10_001, 10), (2, MS - 10_000, 10), (3, MS - DAY, 86401))
        self.swept("policies: {doc: {table: doc, age: made_ms, keep: {column: ttl, unit: s}}}", gone={"doc": 1})
        self.left("doc", 2, 3)

    def test_milliseconds(self):
        self.insert("doc(id, made_ms, ttl)", (1, MS - 11, 10), (2, MS - 10, 10), (3, MS - 11, 11))
        self.swept("policies: {doc: {table: doc, age: made_ms, keep: {column: ttl, unit: ms}}}", gone={"doc": 1})
        self.left("doc", 2, 3)

    def test_microseconds(self):
        self.insert("doc(id, made_ms, ttl)", (1, MS - 2, 1999), (2, MS - 2, 2000))
        self.swept("policies: {doc: {table: doc, age: made_ms, keep: {column: ttl, unit: us}}}", gone={"doc": 1})
        self.left("doc", 2)

    def test_hours_and_days(self):
        for unit, one in {"m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}.items():
            with self.subTest(unit):
                self.db.execute("delete from doc")
                self.insert("doc(id, made_ms, ttl)", (1, MS - 2 * one - 1, 2), (2, MS - 2 * one, 2), (3, 0, None))
                self.swept(f"policies: {{doc: {{table: doc, age: made_ms, keep: {{column: ttl, unit: {unit}}}}}}}",
                           gone={"doc": 1})
                self.left("doc", 2, 3)

    def test_the_unit_of_the_suffix(self):
        self.insert("doc(id, made_ms, ttl_s)", (1, MS - 10_001, 10), (2, MS - 10_000, 10))
        self.swept("policies: {doc: {table: doc, age: made_ms, keep: {column: ttl_s}}}", gone={"doc": 1})
        self.left("doc", 2)

    def test_null_zero_and_negative_are_never(self):
        self.insert("doc(id, made_ms, ttl)", (1, 0, None), (2, 0, 0), (3, 0, -1), (4, 0, -2**62), (5, 0, 1))
        self.swept("policies: {doc: {table: doc, age: made_ms, keep: {column: ttl, unit: s}}}", gone={"doc": 1})
        self.left("doc", 1, 2, 3, 4)

    def test_very_long(self):
        self.insert("doc(id, made_ms, ttl)", (1, 0, 2**62), (2, 0, 2**63 - 1), (3, 0, 10**12), (4, MS - 1001, 1))
        self.swept("policies: {doc: {table: doc, age: made_ms, keep: {column: ttl, unit: s}}}", gone={"doc": 1})
        self.left("doc", 1, 2, 3)

    def test_inclusive(self):
        self.insert("doc(id, made_ms, ttl)", (1, MS - 10_000, 10), (2, MS - 9_999, 10))
        self.swept("policies: {doc: {table: doc, age: made_ms, keep: {column: ttl, unit: s}, inclusive: true}}",
                   gone={"doc": 1})
        self.left("doc", 2)

    def test_null_age(self):
        self.insert("doc(id, made_ms, ttl)", (1, None, 1))
        self.swept("policies: {doc: {table: doc, age: made_ms, keep: {column: ttl, unit: s}}}", gone={},
                   kept={"null_time": 1})


@every_engine
class LatestOfSeveral(Case):
    def setUp(self):
        super().setUp()
        self.given("create table task (id integer primary key, updated_ms bigint, finalized_ms bigint, seen_s bigint)")

    def test_the_latest_decides(self):
        old, new = MS - 2 * HOUR, MS - 30 * MINUTE
        self.insert("task(id, updated_ms, finalized_ms)", (1, old, old), (2, old, new), (3, new, old), (4, new, new))
        self.swept("policies: {task: {table: task, age: [updated_ms, finalized_ms], keep: 1h}}", gone={"task": 1})
        self.left("task", 2, 3, 4)

    def test_nulls_do_not_count(self):
        old, new = MS - 2 * HOUR, MS - 30 * MINUTE
        self.insert("task(id, updated_ms, finalized_ms)", (1, old, None), (2, None, old), (3, new, None),
                    (4, None, None))
        self.swept("policies: {task: {table: task, age: [updated_ms, finalized_ms], keep: 1h}}", gone={"task": 2},
                   kept={"null_time": 1})
        self.left("task", 3, 4)

    def test_the_edge(self):
        cutoff = MS - HOUR
        self.insert("task(id, updated_ms, finalized_ms)", (1, cutoff - 1, cutoff - 1), (2, cutoff - 1, cutoff),
                    (3, cutoff, None))
        self.swept("policies: {task: {table: task, age: [updated_ms, finalized_ms], keep: 1h}}", gone={"task": 1})
        self.left("task", 2, 3)

    def test_units_from_suffixes_may_differ(self):
        self.insert("task(id, updated_ms, seen_s)", (1, MS - 2 * HOUR, S - 7200), (2, MS - 2 * HOUR, S - 60),
                    (3, MS - 60_000, S - 7200))
        self.swept("policies: {task: {table: task, age: [updated_ms, seen_s], keep: 1h}}", gone={"task": 1})
        self.left("task", 2, 3)

    def test_three_columns(self):
        old, new = MS - 2 * HOUR, MS
        self.insert("task", (1, old, old, S - 7200), (2, old, old, S), (3, None, old, None), (4, old, new, None))
        self.swept("policies: {task: {table: task, age: [updated_ms, finalized_ms, seen_s], keep: 1h}}",
                   gone={"task": 2})
        self.left("task", 2, 4)

    def test_mixed_encodings(self):
        self.given("create table mixed (id integer primary key, made_text text, made_ms bigint)")
        old, new = MS - 2 * HOUR, MS - 60_000
        self.insert("mixed", (1, iso(old), old), (2, iso(new), old), (3, iso(old), new), (4, None, old),
                    (5, iso(old), None), (6, "soon", old))
        self.swept("policies: {mixed: {table: mixed, age: [made_text, made_ms], keep: 1h}}", gone={"mixed": 3},
                   kept={"unreadable_time": 1})
        self.left("mixed", 2, 3, 6)

    def test_with_keep_per_row(self):
        self.given("create table k (id integer primary key, a_ms bigint, b_ms bigint, ttl integer)")
        self.insert("k", (1, MS - 9_000, MS - 20_000, 10), (2, MS - 11_000, MS - 20_000, 10), (3, None, MS - 11_000, 10),
                    (4, None, None, 10), (5, 0, 0, None))
        self.swept("policies: {k: {table: k, age: [a_ms, b_ms], keep: {column: ttl, unit: s}}}", gone={"k": 2})
        self.left("k", 1, 4, 5)

    def test_with_keep_by_value(self):
        self.given("create table k (id integer primary key, a_ms bigint, b_ms bigint, state text)")
        self.insert("k", (1, MS - 2 * HOUR, MS - 3 * HOUR, "done"), (2, MS - 2 * HOUR, MS - 3 * HOUR, "failed"),
                    (3, MS - 1, 0, "done"))
        self.swept("policies: {k: {table: k, age: [a_ms, b_ms], keep: {by: state, values: {done: 1h, failed: 1d}}}}",
                   gone={"k": 1})
        self.left("k", 2, 3)


@every_engine
class TwoPoliciesOnOneTable(Case):
    def test_each_counts_its_own(self):
        self.given("create table inbox (id integer primary key, state text, at_ms bigint)")
        self.insert("inbox", (1, "done", MS - 2 * DAY), (2, "failed", MS - 2 * DAY), (3, "failed", MS - 9 * DAY),
                    (4, "new", 0))
        r = self.swept("""
            policies:
              inbox.done:   { table: inbox, rows: { state: done }, age: at_ms, keep: 1d }
              inbox.failed: { table: inbox, rows: { state: failed }, age: at_ms, keep: 7d }
            """, gone={"inbox": 2})
        self.left("inbox", 2, 4)
        self.assertEqual([(p["policy"], p["rows"]) for p in r.json["policies"]],
                         [("inbox.done", 1), ("inbox.failed", 1)])

    def test_overlapping(self):
        self.given("create table inbox (id integer primary key, expires_ms bigint, at_ms bigint)")
        self.insert("inbox", (1, MS - 1, MS - 9 * DAY), (2, MS + 1, MS - 9 * DAY), (3, MS - 1, MS), (4, MS + 1, MS))
        r = self.swept("""
            policies:
              first:  { table: inbox, expires: expires_ms }
              second: { table: inbox, age: at_ms, keep: 1d }
            """, gone={"inbox": 3}, same_plan=False)
        self.left("inbox", 4)
        self.assertEqual([p["rows"] for p in r.json["policies"]], [2, 1])
