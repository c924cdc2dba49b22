"""explain: why a row is, is not, or will be due, as the engine judges it."""
import datetime
import os
import random
import re
from concurrent.futures import ThreadPoolExecutor

from harness import *


def at(ms=0, us=0):
    """NOW moved by so much, as ISO text."""
    t = NOW_AT + datetime.timedelta(milliseconds=ms, microseconds=us)
    return t.isoformat(timespec="microseconds").replace("+00:00", "Z")


def shown(ms=0, us=0):
    """The same as the program prints it: no zeros at the end of the fraction."""
    text = at(ms, us).removesuffix("Z").rstrip("0").removesuffix(".")
    return (text if len(text) >= 19 else at(ms, us)[:19]) + "Z"


class Explain(Case):
    def explain(self, contract, *key, policy="p", now=NOW, code=0, **how):
        with self.untouched():
            return self.lapse(contract, "explain", "--now", now, "--json", policy, "--", *map(str, key), code=code,
                              **how)

    def told(self, contract, *key, policy="p", now=NOW, **how):
        """For people."""
        return self.lapse(contract, "explain", "--now", now, policy, "--", *map(str, key), code=0, **how).out

    def verdict(self, contract, *key, now=NOW):
        return self.explain(contract, *key, now=now).json["verdict"]

    def lines(self, result, part):
        return [c for c in result.json["conditions"] if c["part"] == part]

    def line(self, result, part):
        found = self.lines(result, part)
        self.assertEqual(len(found), 1, f"lines of {part} in\n{result}")
        return found[0]

    def reasons(self, result):
        return [r["part"] for r in result.json["reasons"]]


@every_engine
class Conditions(Explain):
    def setUp(self):
        super().setUp()
        self.given("create table job (id integer primary key, state text, n integer, pinned boolean, at_ms bigint)")

    def contract(self, rest="", keep="keep: 1h"):
        return f"policies: {{p: {{table: job, age: at_ms, {keep}{', ' + rest if rest else ''}}}}}"

    def test_due(self):
        self.insert("job(id, at_ms)", (1, 0))
        r = self.explain(self.contract(), 1)
        self.assertEqual((r.json["verdict"], r.json["due"], r.json["due_at"]), ("due", True, None))
        self.assertEqual(r.json["reasons"], [])
        self.assertEqual(r.json["key"], {"id": 1})
        self.assertEqual(r.json["policy"], "p")
        self.assertEqual(r.json["now"], NOW)
        self.assertEqual(r.json["outcome"], "explained")
        line = self.line(r, "age")
        self.assertEqual((line["value"], line["instant"], line["verdict"]), (0, "1970-01-01T00:00:00Z", "matches"))
        self.assertIn("due now", self.told(self.contract(), 1))

    def test_rows_one_line_per_column(self):
        self.insert("job", (1, "running", 3, None, 0))
        r = self.explain(self.contract('rows: {state: [done, failed, "x*", null], n: 3}'), 1)
        state, n = self.lines(r, "rows")
        self.assertEqual((state["column"], state["value"], state["verdict"], state["keeps"]),
                         ("state", "running", "does not match", True))
        for word in ("done", "failed", "begins with x", "NULL"):
            self.assertIn(word, state["demand"])
        self.assertEqual((n["demand"], n["value"], n["verdict"], n["keeps"]), ("n is 3", 3, "matches", False))
        self.assertEqual((r.json["verdict"], self.reasons(r)), ("not due", ["rows"]))

    def test_null_is_unknown(self):
        self.insert("job", (1, None, None, None, 0))
        r = self.explain(self.contract("rows: {state: done}, where: {n: {gte: 3}}, hold: {pinned: true}"), 1)
        for part in ("rows", "where"):
            self.assertEqual((self.line(r, part)["value"], self.line(r, part)["verdict"]), (None, "unknown"))
        hold = self.line(r, "hold")
        self.assertEqual((hold["verdict"], hold["said"], hold["keeps"]), ("unknown", "not held (unknown)", False))
        self.assertEqual(self.reasons(r), ["rows", "where"])

    def test_where_as_a_map(self):
        self.insert("job", (1, "b", 2, None, 0))
        r = self.explain(self.contract("where: {state: {not: [a, null]}, n: {gt: 1, lte: 2}, any: [{n: 7}, {state: {like: '_'}}]}"),
                         1)
        self.assertEqual(r.json["verdict"], "due")
        by_words = {c["demand"]: c["verdict"] for c in self.lines(r, "where")}
        self.assertEqual(by_words, {"state is not NULL": "matches", "state is not a": "matches", "n > 1": "matches",
                                    "n <= 2": "matches", "any of": "matches", "n is 7": "does not match",
                                    "state is like _": "matches"})
        depths = {c["demand"]: c["depth"] for c in self.lines(r, "where")}
        self.assertEqual((depths["any of"], depths["n is 7"]), (0, 1))

    def test_where_in_sql_shows_as_written(self):
        self.insert("job", (1, "b", 2, None, 0), (2, "b", None, None, 0))
        sql = "this.n * 2 = (select 4)"
        for key, verdict in ((1, "matches"), (2, "unknown")):
            line = self.line(self.explain(self.contract(f'where: "{sql}"'), key), "where")
            self.assertEqual((line["demand"], line["verdict"]), (sql, verdict))

    @property
    def true(self):
        return "1" if self.on_mariadb else "true"       # where a boolean is a number

    def test_hold(self):
        self.insert("job", (1, "a", 1, True, 0), (2, "a", 1, False, 0))
        c = self.contract("hold: {pinned: true}")
        r = self.explain(c, 1)
        self.assertEqual((r.json["verdict"], self.reasons(r)), ("not due", ["hold"]))
        self.assertEqual(self.line(r, "hold")["value"], True)
        self.assertIn(f"pinned is {self.true}", r.json["reasons"][0]["text"])
        self.assertEqual(self.verdict(c, 2), "due")

    def test_hold_of_several_holds_only_where_all_do(self):
        self.insert("job", (1, "a", 1, True, 0), (2, "a", 2, True, 0))
        c = self.contract("hold: {pinned: true, n: 1}")
        self.assertEqual(self.reasons(self.explain(c, 1)), ["hold"])
        r = self.explain(c, 2)
        self.assertEqual(r.json["verdict"], "due")
        self.assertEqual([(h["demand"], h["depth"]) for h in self.lines(r, "hold")],
                         [("all of", 0), (f"pinned is {self.true}", 1), ("n is 1", 1)])

    def test_held_until(self):
        self.insert("job(id, at_ms)", (1, MS - 2 * HOUR))
        c = self.contract("hold: {at_ms: {newer_than: 3h}}")
        r = self.explain(c, 1)
        self.assertEqual((r.json["verdict"], r.json["due_at"]), ("later", shown(HOUR)))
        self.assertEqual(self.verdict(c, 1, now=at(HOUR)), "due")
        self.assertEqual(self.verdict(c, 1, now=at(HOUR, -1)), "later")

    def test_not_yet_in_where(self):
        self.insert("job(id, at_ms)", (1, MS - 2 * HOUR))
        c = self.contract("where: {at_ms: {older_than: 3h}}")
        r = self.explain(c, 1)
        self.assertEqual((r.json["verdict"], r.json["due_at"], self.reasons(r)), ("later", shown(HOUR, 1), ["where"]))
        self.assertEqual(self.verdict(c, 1, now=at(HOUR, 1)), "due")
        self.assertEqual(self.verdict(c, 1, now=at(HOUR)), "later")

    def test_no_longer_when_old_enough(self):
        """Time alone is missing, but by then another condition has passed: no time is promised."""
        self.insert("job(id, at_ms)", (1, MS - HOUR // 2))
        r = self.explain(self.contract("where: {at_ms: {newer_than: 40m}}"), 1)
        self.assertEqual((r.json["verdict"], r.json["due_at"], self.reasons(r)), ("not due", None, ["age"]))

    def test_everything_at_once(self):
        self.insert("job", (1, "run", 1, True, MS))
        r = self.explain(self.contract("rows: {state: done}, where: {n: 2}, hold: {pinned: true}"), 1)
        self.assertEqual((r.json["verdict"], self.reasons(r)), ("not due", ["rows", "where", "hold", "age"]))
        self.assertEqual(self.line(r, "age")["due_at"], shown(HOUR, 1))
        said = self.told(self.contract("rows: {state: done}, where: {n: 2}, hold: {pinned: true}"), 1)
        for words in ("not due", "outside `rows`", "outside `where`", "held", "due in 1h"):
            self.assertIn(words, said)

    def test_long_lists_are_cut(self):
        self.insert("job", (1, "a", 500, None, 0))
        r = self.explain(self.contract("rows: {n: [%s]}" % ", ".join(map(str, range(1000)))), 1)
        self.assertIn("992 more", self.line(r, "rows")["demand"])
        self.assertEqual(self.line(r, "rows")["verdict"], "matches")

    def test_disabled(self):
        self.insert("job(id, at_ms)", (1, 0), (2, MS))
        c = self.contract("enabled: false")
        r = self.explain(c, 1)
        self.assertEqual((r.json["verdict"], r.json["due"], r.json["enabled"]), ("not due", False, False))
        self.assertEqual(self.reasons(r), ["enabled"])
        self.assertIn("disabled", self.told(c, 1))
        self.assertEqual(self.reasons(self.explain(c, 2)), ["enabled", "age"])

    def test_refused(self):
        self.insert("job(id, at_ms)", (1, 0))
        c = self.contract("where: {nope: 1}")
        r = self.explain(c, 1, code=3)
        self.assertEqual(r.json["outcome"], "refused")
        self.assertIn("has no column 'nope'", r.json["error"])
        self.assertIn("has no column 'nope'", self.lapse(c, "explain", "p", "1", code=3).said)

    def test_a_long_value_is_cut_for_people_only(self):
        text = "x y" * 50
        self.insert("job", (1, text, 1, None, 0))
        c = self.contract("rows: {state: a}")
        self.assertEqual(self.line(self.explain(c, 1), "rows")["value"], text)
        self.assertNotIn(text, self.told(c, 1))

    def test_a_value_stays_on_its_line(self):
        self.insert("job", (1, "a\nfine\u202eb\u200b", 1, None, MS))
        told = self.told(self.contract("rows: {state: x}"), 1)
        self.assertIn("a\\nfine\\u202eb\\u200b", told)
        self.assertNotRegex(told, "\nfine|[\u202e\u200b]")

    def test_on_a_terminal(self):
        self.insert("job", (1, "run\x1b[31m", 1, True, MS))
        r = self.lapse(self.contract("rows: {state: [a, b]}"), "explain", "p", "1", "--now", NOW, tty=True, size=(60, 30))
        self.assertEqual(r.code, 0)
        screen = r.screen.decode()
        self.assertIn("\\x1b[31m", screen)       # what could command the terminal is shown, not sent
        self.assertIn("\x1b[31m  rows", screen)   # its own colours
        bare = re.sub(r"\x1b\[[0-9;]*m", "", screen)
        self.assertLessEqual(max(map(len, bare.splitlines())), 60, bare)
        self.assertIn("due in 1h", bare)


@every_engine
class Times(Explain):
    def boundary(self, contract, due_at_us, *key):
        """Due from that instant on, not a microsecond earlier; and what is said before it says so."""
        due = self.explain(contract, *key, now=at(0, due_at_us))
        self.assertEqual(due.json["verdict"], "due", f"at the instant\n{due}")
        before = self.explain(contract, *key, now=at(0, due_at_us - 1))
        self.assertEqual((before.json["verdict"], before.json["due_at"]), ("later", shown(0, due_at_us)),
                         f"a microsecond before\n{before}")
        for now, rows in ((at(0, due_at_us), 1), (at(0, due_at_us - 1), 0)):
            self.assertEqual(self.plan(contract, now=now).policy("p")["rows"], rows, now)

    def test_expires(self):
        self.given("create table t (id integer primary key, at_us bigint)")
        self.insert("t", (1, US))
        self.boundary("policies: {p: {table: t, expires: at_us}}", 0, 1)
        line = self.line(self.explain("policies: {p: {table: t, expires: at_us}}", 1), "expires")
        self.assertIn("at or before", line["demand"])

    def test_age(self):
        self.given("create table t (id integer primary key, at_us bigint)")
        self.insert("t", (1, US))
        self.boundary("policies: {p: {table: t, age: at_us, keep: 90m}}", 90 * MINUTE * 1000 + 1, 1)

    def test_inclusive(self):
        self.given("create table t (id integer primary key, at_us bigint)")
        self.insert("t", (1, US))
        self.boundary("policies: {p: {table: t, age: at_us, keep: 90m, inclusive: true}}", 90 * MINUTE * 1000, 1)

    def test_seconds(self):
        self.given("create table t (id integer primary key, at_s bigint)")
        self.insert("t", (1, S))
        self.boundary("policies: {p: {table: t, age: at_s, keep: 1ms}}", 1001, 1)

    def test_text(self):
        self.given("create table t (id integer primary key, at text)")
        self.insert("t", (1, "2024-06-15 13:00:00.123456"), (2, "2024-06-15T15:00:00.123456+02:00"))
        for key in (1, 2):
            self.given(f"delete from t where id <> {key}" if key == 2 else "update t set at = null where id = 2")
            if key == 2:
                self.insert("t", (1, None))
                self.given("update t set at = '2024-06-15T15:00:00.123456+02:00' where id = 2")
            self.boundary("policies: {p: {table: t, age: at, keep: 1h}}", (2 * HOUR) * 1000 + 123457, key)

    def test_text_in_a_zone(self):
        self.given("create table t (id integer primary key, at text)")
        self.insert("t", (1, "2024-06-15 15:30:00"))
        c = "policies: {p: {table: t, age: at, keep: 1h, zone: Europe/Prague}}"
        self.assertEqual(self.line(self.explain(c, 1), "age")["instant"], "2024-06-15T13:30:00Z")
        self.boundary(c, 150 * MINUTE * 1000 + 1, 1)

    def test_unreadable(self):
        self.given("create table t (id integer primary key, at text)")
        self.insert("t", (1, "soon"))
        r = self.explain("policies: {p: {table: t, age: at, keep: 1h}}", 1)
        self.assertEqual(r.json["verdict"], "never")
        line = self.line(r, "age")
        self.assertEqual(line["value"], "soon")
        self.assertNotIn("instant", line)
        self.assertIn("no usable time", r.json["reasons"][0]["text"])

    def test_null(self):
        self.given("create table t (id integer primary key, at text)")
        self.insert("t", (1, None))
        for bound in ("age: at, keep: 1h", "expires: at"):
            r = self.explain(f"policies: {{p: {{table: t, {bound}}}}}", 1)
            self.assertEqual(r.json["verdict"], "never")
            self.assertIn("no time", r.json["reasons"][0]["text"])

    def test_far_ahead(self):
        self.given("create table t (id integer primary key, at_s bigint)")
        self.insert("t", (1, 2**63 - 1))
        r = self.explain("policies: {p: {table: t, age: at_s, keep: 1h}}", 1)
        self.assertIn(r.json["verdict"], ("not due", "never"))
        self.assertEqual(r.json["due_at"], None)

    def test_the_latest_of_several(self):
        self.given("create table t (id integer primary key, a_us bigint, b_us bigint, c_us bigint)")
        self.insert("t", (1, US - 5, US, None))
        c = "policies: {p: {table: t, age: [a_us, b_us, c_us], keep: 1h}}"
        self.boundary(c, HOUR * 1000 + 1, 1)
        whole, a, b, c = self.lines(self.explain(c, 1), "age")
        self.assertEqual((whole["instant"], whole["verdict"]), (shown(0), "does not match"))
        self.assertIn("latest of a_us, b_us, c_us", whole["demand"])
        self.assertEqual([(x["depth"], x["value"]) for x in (a, b, c)], [(1, US - 5), (1, US), (1, None)])

    def test_one_unreadable_of_several(self):
        self.given("create table t (id integer primary key, a text, b text)")
        self.insert("t", (1, "2020-01-01 00:00:00", "?"), (2, "2020-01-01 00:00:00", None), (3, None, None))
        c = "policies: {p: {table: t, age: [a, b], keep: 1h}}"
        self.assertEqual([self.verdict(c, k) for k in (1, 2, 3)], ["never", "due", "never"])

    def test_keep_never(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, 0))
        r = self.explain("policies: {p: {table: t, age: at_ms, keep: never}}", 1)
        self.assertEqual((r.json["verdict"], self.reasons(r)), ("never", ["age"]))

    def test_keep_by_value(self):
        self.given("create table t (id integer primary key, state text, at_us bigint)")
        self.insert("t", (1, "done", US), (2, "failed", US), (3, "other", US), (4, None, US))
        c = "policies: {p: {table: t, age: at_us, keep: {by: state, values: {done: 1m, failed: 24h, null: 2h}, otherwise: %s}}}"
        for key, said in ((1, "1m"), (2, "1d"), (3, "3h"), (4, "2h")):
            r = self.explain(c % "3h", key)
            self.assertEqual(self.line(r, "keep")["said"], said)
            self.assertEqual(r.json["verdict"], "later")
            again = self.explain(c % "3h", key, now=r.json["due_at"])
            self.assertEqual(again.json["verdict"], "due", r)
        self.assertEqual(self.explain(c % "3h", 2).json["due_at"], shown(24 * HOUR, 1))
        r = self.explain(c % "never", 3)
        self.assertEqual((r.json["verdict"], self.line(r, "keep")["said"]), ("never", "never ends"))

    def test_keep_by_a_value_written_in_two_ways(self):
        """A row that several values fit is kept for the longest of them."""
        self.given("create table t (id integer primary key, n integer, at_us bigint)")
        self.insert("t", (1, 1, US))
        c = "policies: {p: {table: t, age: at_us, keep: {by: n, values: {1: 1m, 01: 2h}, otherwise: never}}}"
        self.boundary(c, 2 * HOUR * 1000 + 1, 1)

    def test_keep_in_a_column(self):
        self.given("create table t (id integer primary key, ttl_s integer, at_us bigint)")
        self.insert("t", (1, 60, US), (2, None, US), (3, 0, US), (4, -5, US))
        c = "policies: {p: {table: t, age: at_us, keep: {column: ttl_s}%s}}"
        self.boundary(c % "", MINUTE * 1000 + 1, 1)
        self.boundary(c % ", inclusive: true", MINUTE * 1000, 1)
        self.assertEqual(self.line(self.explain(c % "", 1), "keep")["said"], "1m")
        for key in (2, 3, 4):
            r = self.explain(c % "", key)
            self.assertEqual((r.json["verdict"], self.line(r, "keep")["said"]), ("never", "never ends"))

    def test_a_keep_longer_than_since_1970(self):
        self.given("create table t (id integer primary key, ttl_days integer, at_us bigint)")
        self.insert("t", (1, 365 * 60, -US))
        r = self.explain("policies: {p: {table: t, age: at_us, keep: {column: ttl_days}}}", 1)
        self.assertEqual(r.json["verdict"], "later")
        self.boundary("policies: {p: {table: t, age: at_us, keep: {column: ttl_days}}}",
                      365 * 60 * DAY * 1000 - US, 1)

    def test_now_may_lie_ahead(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, MS))
        c = "policies: {p: {table: t, expires: at_ms}}"
        self.assertEqual(self.verdict(c, 1, now="2999-01-01T00:00:00Z"), "due")
        self.assertEqual(self.verdict(c, 1, now="2000-01-01T00:00:00Z"), "later")
        self.explain(c, 1, now="soon", code=2)

    def test_the_database_clock(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, MS), (2, 32503680000000))
        c = "policies: {p: {table: t, expires: at_ms}}"
        self.assertIn("due now", self.lapse(c, "explain", "p", "1", code=0).out)
        self.assertIn("due in", self.lapse(c, "explain", "p", "2", code=0).out)


class PostgresTimes(Explain, PostgresTest):
    def test_types(self):
        for kind, value in (("timestamptz", "2024-06-15 14:30:00+02"), ("timestamp", "2024-06-15 12:30:00"),
                            ("date", "2024-06-16")):
            with self.subTest(kind):
                self.given(f"drop table if exists t; create table t (id integer primary key, at {kind})")
                self.insert("t", (1, value))
                due = "2024-06-16T00:00:00Z" if kind == "date" else "2024-06-15T12:30:00Z"
                r = self.explain("policies: {p: {table: t, expires: at}}", 1)
                self.assertEqual((r.json["verdict"], r.json["due_at"]), ("later", due))
                self.assertEqual(self.verdict("policies: {p: {table: t, expires: at}}", 1, now=due), "due")

    def test_infinity(self):
        self.given("create table t (id integer primary key, at timestamptz)")
        self.insert("t", (1, "infinity"), (2, "-infinity"))
        for key in (1, 2):
            self.assertEqual(self.verdict("policies: {p: {table: t, expires: at}}", key), "never")

    def test_a_local_time_in_a_zone(self):
        self.given("create table t (id integer primary key, at timestamp)")
        self.insert("t", (1, "2024-10-27 02:30:00"))       # twice in Prague; the later one counts
        c = "policies: {p: {table: t, expires: at, zone: Europe/Prague}}"
        r = self.explain(c, 1)
        self.assertEqual(r.json["due_at"], "2024-10-27T01:30:00Z")
        self.assertEqual(self.verdict(c, 1, now="2024-10-27T01:30:00Z"), "due")
        self.assertEqual(self.verdict(c, 1, now="2024-10-27T01:29:59.999999Z"), "later")


@every_engine
class Others(Explain):
    """What a row waits for, and what would go with it."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table job (id integer primary key, parent integer, state text, at_ms bigint);
            create table outbox (id integer primary key, job_id integer, sent integer);
            create table log (id integer primary key, job_id integer, sealed integer);
            create table part (a integer, b integer, log_id integer, done integer, primary key (a, b));
            create table letter (id integer primary key, job_id integer);
            create index job_parent on job (parent); create index outbox_job on outbox (job_id);
            create index log_job on log (job_id); create index part_log on part (log_id);
            create index letter_job on letter (job_id)""")

    def contract(self, rest):
        return f"policies: {{p: {{table: job, expires: at_ms, {rest}}}}}"

    def test_after(self):
        self.insert("job(id, at_ms)", (1, 0), (2, 0))
        self.insert("outbox", *[(n, 1, n % 2) for n in range(1, 9)])
        r = self.explain(self.contract("after: [outbox(job_id)]"), 1)
        line = self.line(r, "after")
        self.assertEqual(line["demand"], f"no row of {self.schema}outbox(job_id)")
        self.assertEqual(line["waits_for"]["rows"], 8)
        self.assertEqual(line["waits_for"]["keys"], [f"id={n}" for n in range(1, 6)])
        self.assertEqual((r.json["verdict"], self.reasons(r)), ("not due", ["after"]))
        self.assertIn("waits for 8 rows of", r.json["reasons"][0]["text"])
        self.assertEqual(self.verdict(self.contract("after: [outbox(job_id)]"), 2), "due")

    def test_after_where(self):
        self.insert("job(id, at_ms)", (1, 0), (2, 0))
        self.insert("outbox", (1, 1, 0), (2, 1, 1), (3, 2, 1), (4, 2, None))
        for where in ("{sent: 0}", '"this.sent = 0"'):
            c = self.contract(f"after: [{{ref: outbox(job_id), where: {where}}}]")
            line = self.line(self.explain(c, 1), "after")
            self.assertEqual(line["waits_for"]["keys"], ["id=1"])
            self.assertEqual(self.verdict(c, 2), "due")

    def test_with_where(self):
        self.insert("job(id, at_ms)", (1, 0), (2, 0))
        self.insert("log", (1, 1, 1), (2, 1, 0), (3, 1, None), (4, 2, 1))
        c = self.contract("with: [{ref: log(job_id), where: {sealed: 1}}]")
        r = self.explain(c, 1)
        self.assertEqual(self.line(r, "with")["waits_for"]["keys"], ["id=2", "id=3"])
        self.assertEqual(self.reasons(r), ["with"])
        self.assertEqual(counts(r.json["tables"]), {"log": 3, "job": 1})
        self.assertEqual(self.verdict(c, 2), "due")

    def test_with_where_nested(self):
        self.insert("job(id, at_ms)", (1, 0), (2, 0))
        self.insert("log", (1, 1, 1), (2, 1, 1), (3, 2, 1))
        self.insert("part", (1, 1, 1, 1), (1, 2, 2, 0), (1, 3, 3, 1))
        c = self.contract("with: [{ref: log(job_id), with: [{ref: part(log_id), where: {done: 1}}]}]")
        r = self.explain(c, 1)
        self.assertEqual(self.line(r, "with")["waits_for"]["keys"], ["a=1, b=2"])
        self.assertIn("(a=1, b=2)", self.told(c, 1))
        self.assertEqual(counts(r.json["tables"]), {"part": 2, "log": 2, "job": 1})
        self.assertEqual(self.verdict(c, 2), "due")

    def test_after_of_owned_rows(self):
        self.insert("job(id, at_ms)", (1, 0), (2, 0))
        self.insert("log", (1, 1, 1), (2, 2, 1))
        self.insert("part", (1, 1, 1, 1))
        c = self.contract("with: [{ref: log(job_id), after: [part(log_id)]}]")
        r = self.explain(c, 1)
        self.assertEqual(self.line(r, "after")["waits_for"]["keys"], ["a=1, b=1"])
        self.assertIn("log", self.line(r, "after")["demand"])
        self.assertEqual(self.verdict(c, 2), "due")

    def test_a_subtree(self):
        self.insert("job", (1, None, "done", 0), (2, 1, "done", 0), (3, 2, "run", 0), (4, None, "done", 0),
                    (5, 4, "done", MS * 2), (6, None, "done", 0), (7, 6, "done", None))
        c = self.contract("rows: {state: done}, with: [job(parent)]")
        r = self.explain(c, 1)
        self.assertEqual(self.line(r, "with")["waits_for"]["keys"], ["id=3"])
        self.assertEqual(r.json["verdict"], "not due")
        r = self.explain(c, 4)
        self.assertEqual((r.json["verdict"], counts(r.json["tables"])), ("due", {"job": 2}))
        self.assertIn("1 more row of", self.told(c, 4))
        self.assertEqual(self.line(self.explain(c, 6), "with")["waits_for"]["keys"], ["id=7"])

    def test_after_below_a_subtree(self):
        self.insert("job", (1, None, "done", 0), (2, 1, "done", 0))
        self.insert("outbox", (7, 2, 0))
        c = self.contract("with: [job(parent)], after: [outbox(job_id)]")
        self.assertEqual(self.line(self.explain(c, 1), "after")["waits_for"]["keys"], ["id=7"])

    def test_what_goes_with_it(self):
        self.insert("job(id, parent, at_ms)", (1, None, MS * 2), (2, 1, 0), (3, None, 0))
        self.insert("log", (1, 1, 1), (2, 1, 0), (3, 3, 1))
        self.insert("letter", (1, 1), (2, 1), (3, 3))
        c = self.contract("with: [log(job_id)], detach: [letter(job_id), job(parent)]")
        r = self.explain(c, 1)
        self.assertEqual(r.json["verdict"], "later")
        self.assertEqual(counts(r.json["tables"]), {"log": 2, "job": 1})
        self.assertEqual(counts(r.json["detached"]), {"letter": 2, "job": 1})
        said = self.told(c, 1)
        self.assertIn("2 rows of", said)
        self.assertIn("2 references emptied in", said)
        self.assertIn("would go with it: nothing", self.told(self.contract("after: [outbox(job_id)]"), 1))


@every_engine
class Keys(Explain):
    def found(self, *key, **expected):
        r = self.explain("policies: {p: {table: t, expires: at_ms}}", *key)
        self.assertEqual(r.json["key"], expected, r)

    def test_a_missing_row(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        r = self.explain("policies: {p: {table: t, expires: at_ms}}", 42, code=1)
        self.assertIn("no such row in", r.json["error"])
        self.assertIn("id=42", r.json["error"])

    def test_a_missing_policy(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        r = self.explain("policies: {sessions: {table: t, expires: at_ms}}", 1, policy="session", code=2)
        self.assertIn("did you mean 'sessions'?", r.json["error"])

    def test_no_key(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        c = "policies: {p: {table: t, expires: at_ms}}"
        for words in ((), ("p",)):
            self.assertIn("explain POLICY KEY", self.lapse(c, "explain", *words, code=2).said)

    def test_not_a_number(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        for word in ("x", "", "1.5", "1 ", "99999999999999999999"):
            r = self.explain("policies: {p: {table: t, expires: at_ms}}", word, code=2)
            self.assertIn("key column 'id'", r.json["error"])
            self.assertIn(f"'{word}'", r.json["error"])

    def test_the_number_of_words(self):
        self.given("create table t (a integer, b text, at_ms bigint, primary key (a, b))")
        self.insert("t", (1, "x", 0), (1, "y", 0))
        for words in ((1,), (1, "x", 2)):
            r = self.explain("policies: {p: {table: t, expires: at_ms}}", *words, code=2)
            self.assertIn("(a, b)", r.json["error"])
        self.found(1, "y", a=1, b="y")
        self.explain("policies: {p: {table: t, expires: at_ms}}", 1, "z", code=1)

    def test_texts(self):
        self.given(f"create table t (id text{self.exact} primary key, at_ms bigint)")
        odd = ["plain", "it's", 'say "x"', "a b", " a", "a ", "", "a=b", "-x", "--json", "new\nline", "tab\t", "ž€🎉",
               "NULL", "null", "1", "01", "x'00'", "\\x00", "a;b--", "%", "$1", "?1", ":now"]
        self.insert("t", *[(k, 0) for k in odd])
        for key in odd:
            self.found(key, id=key)
            self.assertIn("due now", self.told("policies: {p: {table: t, expires: at_ms}}", key))
        self.explain("policies: {p: {table: t, expires: at_ms}}", "Plain", code=1)

    def test_not_utf8(self):
        self.given("create table t (id text primary key, at_ms bigint)")
        r = self.lapse("policies: {p: {table: t, expires: at_ms}}", "explain", "p", os.fsdecode(b"a\xffb"), code=2)
        self.assertIn("UTF-8", r.said)

    def test_bytes(self):
        kind = self.per_engine(postgres="bytea", sqlite="blob", mariadb="varbinary(90)")
        self.given(f"create table t (id {kind} primary key, at_ms bigint)")
        self.insert("t", (b"\x00\xff", 0), (b"", 0))
        shown_as = "\\x00ff" if self.on_postgres else "x'00ff'"
        for word in ("x'00ff'", "X'00FF'", "\\x00ff"):
            self.found(word, id=shown_as)
        self.found("x''", id="\\x" if self.on_postgres else "x''")
        for word in ("00ff", "x'0'", "x'0g'", "x'00", ""):
            self.assertIn("x'00ff'", self.explain("policies: {p: {table: t, expires: at_ms}}", word, code=2).json["error"])

    def test_booleans_and_numbers(self):
        self.given("create table t (a boolean not null, b double precision not null, at_ms bigint, primary key (a, b))")
        self.insert("t", (True, 0.1, 0), (False, 1e20, 0))
        true, false = ("1", "0") if self.on_mariadb else ("true", "false")       # numbers there
        for word in ("1",) if self.on_mariadb else ("true", "t", "1"):
            r = self.explain("policies: {p: {table: t, expires: at_ms}}", word, "0.1")
            self.assertEqual(r.json["key"]["a"], True)
        self.explain("policies: {p: {table: t, expires: at_ms}}", false, "1e20")
        self.assertIn("'maybe'", self.explain("policies: {p: {table: t, expires: at_ms}}", "maybe", "1", code=2).json["error"])
        self.assertIn("'many'", self.explain("policies: {p: {table: t, expires: at_ms}}", true, "many", code=2).json["error"])


class PostgresKeys(Explain, PostgresTest):
    C = "policies: {p: {table: t, expires: at_ms}}"

    def key_of(self, kind, value, *words, bad=None):
        self.given(f"drop table if exists t cascade; create table t (id {kind} primary key, at_ms bigint)")
        self.insert("t", (value, 0))
        for word in words:
            self.explain(self.C, word)
        if bad:
            self.assertIn(bad, self.explain(self.C, bad, code=2).json["error"])

    def test_types(self):
        self.key_of("uuid", "0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-70867728950e",
                    "0F8FAD5B-D9CB-469F-A165-70867728950E", bad="not-a-uuid")
        self.key_of("timestamptz", "2024-06-15 12:00:00.5+00", "2024-06-15 12:00:00.5+00", "2024-06-15T14:00:00.5+02:00",
                    bad="soon")
        self.key_of("date", "2024-06-15", "2024-06-15", bad="2024-06-31")
        self.key_of("numeric", "1.50", "1.5", "1.50")
        self.key_of("inet", "10.0.0.1", "10.0.0.1", bad="10.0.0.999")
        self.key_of("char(5)", "ab", "ab", "ab   ")
        self.key_of("smallint", 5, "5", bad="70000")
        self.given("create type mood as enum ('sad', 'ok')")
        self.key_of("mood", "ok", "ok", bad="okay")
        self.assertIn("sad, ok", self.explain(self.C, "okay", code=2).json["error"])


class SqliteKeys(Explain, SqliteTest):
    C = "policies: {p: {table: t, expires: at_ms}}"

    def test_a_column_of_anything(self):
        self.given("create table t (id primary key not null, at_ms bigint)")
        self.insert("t", (1, 0), ("a", 0), (b"\x01", 0), (2.5, 0), ("7", 0))
        for word, value in (("1", 1), ("a", "a"), ("x'01'", "x'01'"), ("2.5", 2.5), ("7", "7")):
            self.assertEqual(self.explain(self.C, word).json["key"], {"id": value})
        self.insert("t", (7, 0))
        self.assertIn("several rows", self.explain(self.C, "7", code=1).json["error"])

    def test_case_does_not_count_where_the_column_says_so(self):
        self.given("create table t (id text primary key collate nocase, at_ms bigint)")
        self.insert("t", ("Abc", 0))
        self.assertEqual(self.explain(self.C, "aBC").json["key"], {"id": "Abc"})


@every_engine
class Agrees(Explain):
    """Each row is due for explain if and only if a sweep deletes it."""

    def agrees(self, contract, keys, table="job", now=NOW):
        due = set()
        ask = lambda key: self.lapse(contract, "explain", "--now", now, "--json", "p", key, code=0)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(ask, keys))
        for key, r in zip(keys, answers):
            kept = bool(r.json["reasons"])
            self.assertEqual(r.json["due"], not kept, f"the lines and the verdict differ\n{r}")
            if r.json["due"]:
                due.add(key)
            elif r.json["verdict"] == "later":
                then = self.lapse(contract, "explain", "--now", r.json["due_at"], "--json", "p", key, code=0)
                self.assertEqual(then.json["verdict"], "due", r)
        self.assertEqual(self.plan(contract, now=now).policy("p")["rows"], len(due))
        before = set(self.ids(table))
        self.sweep(contract, now=now)
        self.assertEqual(before - set(self.ids(table)), due)
        self.assertTrue(due, "nothing was due: the test says nothing")
        self.assertTrue(before - due, "everything was due: the test says nothing")

    def varied(self, n=200):
        self.given("""
            create table job (id integer primary key, state text, n integer, pinned boolean, ttl_s integer,
                              at_ms bigint, at text);
            create table outbox (id integer primary key, job_id integer, sent integer);
            create table log (id integer primary key, job_id integer, sealed integer);
            create index outbox_job on outbox (job_id); create index log_job on log (job_id)""")
        rnd = random.Random(5)
        some = lambda *values: rnd.choice(values)
        times = [MS - HOUR, MS - HOUR - 1, MS - HOUR + 1, MS - 2 * HOUR, MS - DAY, 0, MS, MS + HOUR, None]
        self.insert("job", *[(k, some("done", "done", "failed", "run", None), some(1, 2, 3, None), some(True, False, None),
                              some(None, 0, 60, 3600, 86400), some(*times),
                              some("2024-06-15 10:59:59", "2024-06-15T13:00:00+02:00", "2024-06-15T10:00:00.5Z", None, "x",
                                   "2024-06-15 11:00:00", "1999-12-31T00:00:00Z")) for k in range(1, n + 1)])
        self.insert("outbox", *[(k, rnd.randint(1, n), some(0, 1, None)) for k in range(1, n // 3)])
        self.insert("log", *[(k, rnd.randint(1, n), some(1, 1, 1, 0, None)) for k in range(1, n // 2)])
        return range(1, n + 1)

    def test_guards_and_conditions(self):
        keys = self.varied()
        self.agrees("""policies: {p: {table: job, rows: {state: [done, failed, null]}, where: {any: [{n: {lt: 3}}, {n: null}]},
            hold: {pinned: true, n: 1}, age: at_ms, keep: 1h, inclusive: true,
            after: [{ref: outbox(job_id), where: {sent: 0}}], with: [{ref: log(job_id), where: {sealed: 1}}]}}""", keys)

    def test_text_times_and_keep_by_value(self):
        keys = self.varied(50)
        self.agrees("""policies: {p: {table: job, where: "this.n > 1 or this.state = 'done'", age: at,
            keep: {by: state, values: {done: 1h, null: 2h}, otherwise: 30m}}}""", keys)

    def test_several_times_and_own_keep(self):
        keys = self.varied(50)
        self.agrees("policies: {p: {table: job, age: [at_ms, at], keep: {column: ttl_s}}}", keys)


@every_engine
class Orphans(Explain):
    def setUp(self):
        super().setUp()
        self.given("""
            create table doc (id integer primary key, state text);
            create table task (id integer primary key, doc_id integer, at_ms bigint);
            create index task_doc on task (doc_id)""")
        self.insert("doc", (1, "open"), (2, "closed"), (3, None))
        self.insert("task", (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 9, 0), (5, None, 0), (6, 9, MS), (7, 9, None))

    def contract(self, when="deleted", matching="{state: open}"):
        return f"""policies: {{p: {{table: task, age: at_ms, keep: 1h,
            orphan: {{of: doc(id), by: doc_id, matching: {matching}, delete_when: {when}}}}}}}"""

    def said(self, contract, key):
        r = self.explain(contract, key)
        whole, source, match = self.lines(r, "orphan")
        self.assertEqual((whole["depth"], source["depth"], match["depth"]), (0, 1, 1))
        return r.json["verdict"], whole["verdict"], source["waits_for"]["keys"], match["verdict"]

    def test_deleted(self):
        c = self.contract()
        self.assertEqual(self.said(c, 1), ("not due", "does not match", ["id=1"], "matches"))
        self.assertEqual(self.said(c, 2), ("not due", "does not match", ["id=2"], "does not match"))
        self.assertEqual(self.said(c, 4), ("due", "matches", [], "does not match"))
        self.assertIn("its source exists", self.told(c, 1))
        self.assertIn("its source is gone", self.told(c, 4))

    def test_deleted_or_unmatched(self):
        c = self.contract("deleted_or_unmatched")
        self.assertEqual(self.said(c, 1), ("not due", "does not match", ["id=1"], "matches"))
        self.assertIn("its source exists and matches", self.told(c, 1))
        for key in (2, 3):
            self.assertEqual(self.said(c, key), ("due", "matches", [f"id={key}"], "does not match"))
            self.assertIn("its source does not match", self.told(c, key))
        self.assertEqual(self.said(c, 4)[0], "due")

    def test_never(self):
        r = self.explain(self.contract("never"), 4)
        self.assertEqual((r.json["verdict"], r.json["reasons"][0]["text"]), ("never", "delete_when is never"))

    def test_no_reference(self):
        r = self.explain(self.contract(), 5)
        self.assertEqual((r.json["verdict"], r.json["reasons"]), ("never", [{"part": "orphan", "text": "doc_id is NULL"}]))

    def test_grace(self):
        r = self.explain(self.contract(), 6)
        self.assertEqual((r.json["verdict"], r.json["due_at"], self.reasons(r)), ("later", shown(HOUR, 1), ["age"]))
        self.assertEqual(self.verdict(self.contract(), 6, now=r.json["due_at"]), "due")
        self.assertEqual(self.verdict(self.contract(), 7), "never")

    def test_two_columns(self):
        self.given("""create table src (a integer, b integer, primary key (a, b));
                      create table t (id integer primary key, a integer, b integer)""")
        self.insert("src", (1, 1))
        self.insert("t", (1, 1, 1), (2, 1, 2), (3, 1, None))
        c = "policies: {p: {table: t, orphan: {of: 'src(a, b)', by: [a, b]}, keep: now}}"
        self.assertEqual([self.verdict(c, k) for k in (1, 2, 3)], ["not due", "due", "never"])
        self.assertEqual(self.lines(self.explain(c, 1), "orphan")[1]["waits_for"]["keys"], ["a=1, b=1"])

    def test_agrees_with_a_sweep(self):
        for when in ("deleted", "deleted_or_unmatched"):
            due = {k for k in self.ids("task") if self.explain(self.contract(when), k).json["due"]}
            before = set(self.ids("task"))
            self.sweep(self.contract(when))
            self.assertEqual(before - set(self.ids("task")), due)
            self.assertTrue(due)


@every_engine
class Newest(Explain):
    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, who text, state text, at_ms bigint)")
        self.insert("t", (1, "a", "x", 1), (2, "a", "x", 2), (3, "a", "x", 3), (4, "a", "y", 9), (5, None, "x", 1),
                    (6, None, "x", None), (7, "a", "x", 3), (8, "b", "x", 5))

    def ranks(self, contract, part):
        found = {}
        for key in self.ids("t"):
            r = self.explain(contract, key)
            line = self.line(r, part)
            found[key] = (line["rank"], line["of"], r.json["due"])
        return found

    def test_a_cap_per_group(self):
        c = "policies: {p: {table: t, rows: {state: x}, cap: {rows: 2, per: [who], newest: [at_ms]}}}"
        ranks = self.ranks(c, "cap")
        self.assertEqual(ranks, {1: (4, 4, True), 2: (3, 4, True), 3: (2, 4, False), 4: (None, 0, False), 5: (1, 2, False),
                                 6: (2, 2, False), 7: (1, 4, False), 8: (1, 1, False)})
        r = self.explain(c, 3)
        self.assertEqual((r.json["verdict"], r.json["reasons"][0]["text"]), ("not due", "among the newest 2"))
        self.assertIn("not among the newest 2 per who by at_ms", self.line(r, "cap")["demand"])
        self.assertIn("rank 2 of 4", self.told(c, 3))
        self.assertIn("rows", self.reasons(self.explain(c, 4)))
        self.sweep(c)
        self.left("t", *[k for k, v in ranks.items() if not v[2]])

    def test_a_cap_of_all(self):
        c = "policies: {p: {table: t, rows: {state: x}, hold: {id: 1}, cap: {rows: 3, newest: [at_ms, id]}}}"
        ranks = self.ranks(c, "cap")
        self.assertEqual({k: v[0] for k, v in ranks.items()}, {8: 1, 7: 2, 3: 3, 2: 4, 5: 5, 1: 6, 6: 7, 4: None})
        self.assertEqual({k for k, v in ranks.items() if v[2]}, {2, 5, 6})
        self.sweep(c)
        self.left("t", 1, 3, 4, 7, 8)

    def test_keep_newest(self):
        c = "policies: {p: {table: t, age: at_ms, keep: 1h, keep_newest: {rows: 1, per: [who], newest: [at_ms]}}}"
        r = self.explain(c, 8)
        self.assertEqual((r.json["verdict"], self.reasons(r)), ("not due", ["keep_newest"]))
        self.assertEqual(self.line(r, "age")["verdict"], "matches")
        self.assertEqual(self.verdict(c, 6), "never")
        early = "1970-01-01T00:30:00Z"
        r = self.explain(c, 1, now=early)
        self.assertEqual((r.json["verdict"], r.json["due_at"]), ("later", "1970-01-01T01:00:00.001001Z"))
        self.assertEqual(self.explain(c, 8, now=early).json["verdict"], "not due")
        ranks = self.ranks(c, "keep_newest")
        self.sweep(c)
        self.left("t", *[k for k, v in ranks.items() if not v[2]])


class UnsignedKeys(Case, MariadbTest):
    def test_beyond_what_is_signed(self):
        self.given("create table big (id bigint unsigned primary key, at_ms bigint)")
        for n in (18446744073709551614, 18446744073709551615, 9223372036854775808):
            self.insert("big", (n, MS - n % 7))
        for n in (18446744073709551615, 9223372036854775808):
            r = self.lapse("policies: {p: {table: big, expires: at_ms}}", "explain", "p", n, "--json", "--now", NOW, code=0)
            self.assertEqual((r.json["key"]["id"], r.json["due"]), (str(n), True), r)
        r = self.lapse("policies: {p: {table: big, expires: at_ms}}", "explain", "p", "18446744073709551616", code=2)
        self.assertIn("no whole number", r.err)
