"""The oracle itself: cases computed by hand, and a proof that the random rounds would notice a misreading."""
import datetime
import itertools
import re
import unittest
from unittest import mock
from zoneinfo import ZoneInfo

import oracle
import round_words
import rounds
from oracle import DAY, SECOND, UNUSABLE, Column, Foreign, Schema, Table, duration, read_text

HOUR, MINUTE = 3600 * SECOND, 60 * SECOND


def at(text):
    """An instant, by the oracle's own reader (which Texts tests against numbers)."""
    return read_text(text, None)


NOW = at("2024-06-15T12:00:00Z")


class Durations(unittest.TestCase):
    def test_forms(self):
        for text, us in (("1h30m", 5400 * SECOND), ("60 seconds", 60 * SECOND), ("1.5h", 5400 * SECOND), (250, 250_000),
                         ("2 W", 14 * DAY), ("1d 2h 3m 4s 5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5000),
                         ("now", 0), ("never", None), ("0.5ms", 500), ("3 Mins", 3 * MINUTE), ("1hr", HOUR)):
            self.assertEqual(duration(text), us, text)


class Texts(unittest.TestCase):
    def test_readable(self):
        for text, us in (
                ("1970-01-01T00:00:00Z", 0), ("1970-01-01 00:00", 0), ("1970-01-02t00:00:00.5z", DAY + 500_000),
                ("2024-06-15T12:00:00Z", 1718452800 * SECOND), ("2024-06-15 14:00:00+02", 1718452800 * SECOND),
                ("2024-06-15 14:00:00 +0200", 1718452800 * SECOND), ("2024-06-15T06:30:00-05:30", 1718452800 * SECOND),
                ("1969-12-31T23:59:59.999999Z", -1), ("1970-01-01T00:00:00.0000019Z", 1),
                ("2000-02-29T00:00Z", 951782400 * SECOND), ("0001-01-01T00:00:00Z", -62135596800 * SECOND),
                ("9999-12-31T23:59:59Z", 253402300799 * SECOND), ("1970-01-01T15:59:00+15:59", 0)):
            self.assertEqual(read_text(text, None), us, text)

    def test_unreadable(self):
        for text in round_words.GARBAGE + ["2020-01-01T00:00:00Z\0", "1970-01-01T15:59:00+16"]:
            self.assertIs(read_text(text, None), UNUSABLE, text)

    def test_zones(self):
        for text, zone, utc in (
                ("2024-01-15 12:00", "Europe/Prague", "2024-01-15T11:00Z"),
                ("2024-07-15 12:00", "Europe/Prague", "2024-07-15T10:00Z"),
                ("2024-10-27 02:30", "Europe/Prague", "2024-10-27T01:30Z"),     # twice: the later one
                ("2024-03-31 02:30", "Europe/Prague", "2024-03-31T01:30Z"),     # skipped: by the offset before
                ("2024-03-31 03:00", "Europe/Prague", "2024-03-31T01:00Z"),
                ("2024-04-07 01:45", "Australia/Lord_Howe", "2024-04-06T15:15Z"),
                ("2011-12-30 12:00", "Pacific/Apia", "2011-12-30T22:00Z"),      # a day that never was
                ("2024-07-15 12:00+00", "Europe/Prague", "2024-07-15T12:00Z")):
            self.assertEqual(read_text(text, zone), at(utc), f"{text} {zone}")

    def test_server_texts(self):
        for text, us in (("1970-01-01 00:00:00+00", 0), ("1970-01-02", DAY), ("1970-01-01 00:00:00.25", 250_000),
                         ("0001-01-01 00:00:00+00 BC", -62167219200 * SECOND)):
            self.assertEqual(oracle.read_server(text), us, text)
        for us in (0, -1, NOW + 120, -62167219200 * SECOND, 568971820800 * SECOND):
            self.assertEqual(oracle.read_server(oracle.show_server(us, True)), us)
        for days in (-800_000, -719_468, -1, 0, 59, 60, 11_016, 19_000, 2_932_896):
            self.assertEqual(oracle.days_of(*oracle.civil_of(days)), days)


class Conditions(unittest.TestCase):
    TABLE = Table("t", {n: Column(n, k) for n, k in (("a", "text"), ("n", "int"), ("at_ms", "int"))})

    def truth(self, said, prefixes=False, **row):
        row = {"a": None, "n": None, "at_ms": None, **row}
        return oracle.Conditions(NOW, None, None, {}).truth(said, self.TABLE, row, {}, prefixes)

    def test_three_values(self):
        for said, row, expected in (
                ({"a": "x"}, {"a": "x"}, True), ({"a": "x"}, {"a": "X"}, False), ({"a": "x"}, {}, None),
                ({"a": None}, {}, True), ({"a": None}, {"a": ""}, False), ({"a": ["x", None]}, {}, True),
                ({"a": ["x", None]}, {"a": "y"}, False), ({"a": {"not": "x"}}, {}, None),
                ({"a": {"not": ["x", None]}}, {}, False), ({"a": {"not": ["x", None]}}, {"a": "y"}, True),
                ({"a": {"not": None}}, {"a": "y"}, True), ({"n": {"gte": 3, "lt": 5}}, {"n": 3}, True),
                ({"n": {"gte": 3, "lt": 5}}, {"n": 5}, False), ({"n": {"gt": 3}}, {}, None),
                ({"any": [{"a": "x"}, {"n": 1}]}, {"n": 1}, True), ({"any": [{"a": "x"}, {"n": 1}]}, {"n": 2}, None),
                ({"n": 1, "a": "x"}, {"n": 2}, False), ({"n": 1, "a": "x"}, {"n": 1}, None),
                ({"at_ms": {"older_than": "1h"}}, {"at_ms": (NOW - HOUR) // 1000}, False),
                ({"at_ms": {"older_than": "1h"}}, {"at_ms": (NOW - HOUR) // 1000 - 1}, True),
                ({"at_ms": {"newer_than": "1h"}}, {"at_ms": (NOW - HOUR) // 1000}, False),
                ({"at_ms": {"newer_than": "1h"}}, {"at_ms": "soon"}, None)):
            self.assertIs(self.truth(said, **row), expected, f"{said} {row}")

    def test_prefixes(self):
        for said, value, expected in (("do*", "done", True), ("do*", "Done", False), ("do\\*", "do*", True),
                                      ("do\\*", "done", False), ("do%*", "do%x", True), ("do%*", "done", False)):
            self.assertIs(self.truth({"a": said}, prefixes=True, a=value), expected, f"{said} {value}")
        self.assertFalse(self.truth({"a": "do*"}, a="done"), "only `rows` has prefixes")

    def test_like(self):
        for pattern, value, expected in (("d%", "done", True), ("D%", "done", False), ("d_ne", "done", True),
                                         ("d\\_ne", "done", False), ("d\\_ne", "d_ne", True), ("%", "", True),
                                         ("a.c", "abc", False), ("%e", "do\ne", True)):
            self.assertIs(oracle.like(value, pattern), expected, f"{pattern} {value}")


class Sweeps(unittest.TestCase):
    """A small world: t, its items, the items' notes, and what else refers to t."""

    def setUp(self):
        def table(name, *columns, key=("id",)):
            return Table(name, {n: Column(n, k) for n, k in columns}, key=list(key))
        self.t = table("t", ("id", "int"), ("at_ms", "int"), ("seen", "text"), ("state", "text"), ("ttl", "int"),
                       ("up", "int"), ("code", "text"))
        self.item = table("item", ("id", "int"), ("t_id", "int"), ("state", "text"))
        self.note = table("note", ("id", "int"), ("item_id", "int"))
        self.mark = table("mark", ("id", "int"), ("code", "text"), ("tenant", "text"))
        self.mark.columns["tenant"].nullable = False
        self.mark.foreign.append(Foreign(["code"], self.t, ["code"]))
        self.schema = Schema([self.t, self.item, self.note, self.mark])
        self.state = {x: {} for x in self.schema.tables}

    def put(self, table, *rows):
        for row in rows:
            self.state[table][row["id"]] = {**dict.fromkeys(table.columns), **row}

    def t_rows(self, **ages):
        """t1=… in seconds before now."""
        self.put(self.t, *({"id": int(n[1:]), "at_ms": NOW // 1000 - s * 1000} for n, s in ages.items()))

    def swept(self, **policy):
        policies = {"policies": {"p": {"table": "t", **policy}}}
        ((_, v),) = oracle.sweep(policies, self.schema, self.state, NOW)
        gone = {t.name: sorted(i for x, i in v.gone if x is t) for t in self.schema.tables}
        return {name: ids for name, ids in gone.items() if ids}, \
            {(t.name, i): sorted(c) for (t, i), c in v.detached.items()}, v.why

    def gone(self, **policy):
        return self.swept(**policy)[0]

    def test_expires_now(self):
        self.t_rows(t1=0, t2=1, t3=-1)
        self.put(self.t, {"id": 4})
        self.assertEqual(self.gone(expires="at_ms"), {"t": [1, 2]})

    def test_age_is_strict(self):
        self.t_rows(t1=60, t2=61, t3=59)
        self.assertEqual(self.gone(age="at_ms", keep="1m"), {"t": [2]})

    def test_age_inclusive(self):
        self.t_rows(t1=60, t2=61, t3=59)
        self.assertEqual(self.gone(age="at_ms", keep="1m", inclusive=True), {"t": [1, 2]})

    def test_latest_of_several(self):
        self.t_rows(t1=100, t2=100, t3=100, t4=100)
        self.state[self.t][1]["seen"] = "2024-06-15T12:00:00+02:00"     # 10:00 UTC: older than both
        self.state[self.t][2]["seen"] = "2024-06-15 11:59:30"           # young
        self.state[self.t][3]["seen"] = "2024-06-15"                    # cannot be read
        got, _, why = self.swept(age=["at_ms", "seen"], keep="1m")
        self.assertEqual(got, {"t": [1, 4]})
        self.assertEqual(why, {1: "due", 2: "young", 3: "unreadable", 4: "due"})

    def test_keep_by(self):
        self.t_rows(t1=100, t2=100, t3=100, t4=100)
        for i, s in ((1, "done"), (2, "failed"), (3, "odd")):
            self.state[self.t][i]["state"] = s
        keep = {"by": "state", "values": {"done": "1m", "failed": "1h"}}
        before = oracle.copy(self.state)
        self.assertEqual(self.gone(age="at_ms", keep=keep), {"t": [1]})
        self.state = before
        self.assertEqual(self.gone(age="at_ms", keep={**keep, "otherwise": "10s"}), {"t": [1, 3, 4]})

    def test_keep_column(self):
        self.t_rows(t1=100, t2=100, t3=100, t4=100)
        for i, ttl in ((1, 99), (2, 100), (3, 0)):
            self.state[self.t][i]["ttl"] = ttl
        self.assertEqual(self.gone(age="at_ms", keep={"column": "ttl", "unit": "s"}), {"t": [1]})

    def test_rows_where_hold(self):
        self.t_rows(t1=9, t2=9, t3=9, t4=9, t5=-9)
        for i, s in ((1, "done"), (2, "new"), (3, "down"), (5, "done")):
            self.state[self.t][i]["state"] = s
        got, _, why = self.swept(expires="at_ms", rows={"state": ["do*", None]}, hold={"state": "down"})
        self.assertEqual(got, {"t": [1, 4]})
        self.assertEqual(why, {1: "due", 2: "out", 3: "held", 4: "due", 5: "young"})

    def items(self):
        self.t_rows(t1=9, t2=9, t3=-9)
        self.put(self.item, {"id": 10, "t_id": 1, "state": "ok"}, {"id": 11, "t_id": 1, "state": "ok"},
                 {"id": 20, "t_id": 2, "state": "open"}, {"id": 30, "t_id": 3}, {"id": 40})
        self.put(self.note, {"id": 100, "item_id": 10}, {"id": 300, "item_id": 30}, {"id": 400})

    def test_with_two_deep(self):
        self.items()
        self.assertEqual(self.gone(expires="at_ms", **{"with": [{"ref": "item(t_id)", "with": ["note(item_id)"]}]}),
                         {"t": [1, 2], "item": [10, 11, 20], "note": [100]})

    def test_with_where_waits(self):
        self.items()
        self.assertEqual(self.gone(expires="at_ms", **{"with": [{"ref": "item(t_id)", "where": {"state": "ok"}}]}),
                         {"t": [1], "item": [10, 11]})

    def test_after(self):
        self.items()
        after = [{"ref": "item(t_id)", "where": {"state": "ok"}}]
        self.assertEqual(self.gone(expires="at_ms", after=after), {"t": [2]})

    def test_after_below(self):
        self.items()
        self.assertEqual(self.gone(expires="at_ms", **{"with": [{"ref": "item(t_id)", "after": ["note(item_id)"]}]}),
                         {"t": [2], "item": [20]})

    def test_detach_to_a_unique_key(self):
        self.t_rows(t1=9, t2=-9)
        for i, c in ((1, "a"), (2, "b")):
            self.state[self.t][i]["code"] = c
        self.put(self.mark, {"id": 1, "code": "a", "tenant": "x"}, {"id": 2, "code": "b", "tenant": "x"},
                 {"id": 3, "tenant": "x"})
        got, detached, _ = self.swept(expires="at_ms", detach=["mark(code)"])
        self.assertEqual((got, detached), ({"t": [1]}, {("mark", 1): ["code"]}))
        self.assertEqual([r["code"] for r in self.state[self.mark].values()], [None, "b", None])

    def test_detach_keeps_what_cannot_be_null(self):
        self.t_rows(t1=9)
        self.state[self.t][1].update(code="a", state="x")
        self.put(self.mark, {"id": 1, "code": "a", "tenant": "x"})
        _, detached, _ = self.swept(expires="at_ms", detach=["mark(tenant, code) -> (state, code)"])
        self.assertEqual(detached, {("mark", 1): ["code"]})

    def test_subtree(self):
        self.t_rows(t1=9, t2=-9, t3=-9, t4=-9, t5=9, t6=9)
        for i, up in ((2, 1), (3, 2), (5, 6), (6, 5)):          # 1 <- 2 <- 3, and 5 <-> 6
            self.state[self.t][i]["up"] = up
        self.put(self.item, {"id": 30, "t_id": 3}, {"id": 40, "t_id": 4})
        self.assertEqual(self.gone(expires="at_ms", **{"with": ["t(up)", "item(t_id)"]}),
                         {"t": [1, 2, 3, 5, 6], "item": [30]})

    def test_subtree_holds_what_may_not_be_touched(self):
        self.t_rows(t1=9, t2=-9, t3=-9, t4=9, t5=-9, t6=9, t7=9, t8=9, t9=-9)
        for i, up in ((2, 1), (3, 2), (5, 4), (7, 6), (9, 8)):      # 1 <- 2 <- 3, 4 <- 5, 6 <- 7, 8 <- 9
            self.state[self.t][i]["up"] = up
        self.state[self.t][3]["state"] = "out"
        self.state[self.t][5]["state"] = "held"
        self.state[self.t][7]["at_ms"] = None
        got, _, why = self.swept(expires="at_ms", where={"any": [{"state": None}, {"state": "held"}]},
                                 hold={"state": "held"}, **{"with": ["t(up)"]})
        self.assertEqual(got, {"t": [8, 9]})
        self.assertEqual({i: w for i, w in why.items() if w.startswith("waiting")},
                         {1: "waiting below: out", 4: "waiting below: held", 6: "waiting below: null"})

    def test_own_rows_owned_by_a_dependent(self):
        """The way by which a row of the policy's own table would go makes no difference."""
        self.t_rows(t1=9, t2=-9, t3=9, t4=9)
        self.put(self.item, {"id": 10, "t_id": 1}, {"id": 30, "t_id": 3})
        self.state[self.t][2].update(up=10, state="done")
        self.state[self.t][4].update(up=30, state="new")
        for i in (1, 3):
            self.state[self.t][i]["state"] = "done"
        got, _, why = self.swept(expires="at_ms", rows={"state": "done"},
                                 **{"with": [{"ref": "item(t_id)", "with": ["t(up)"]}]})
        self.assertEqual((got, why[3]), ({"t": [1, 2], "item": [10]}, "waiting below: out"))

    def test_subtree_of_a_dependent_holds_nothing_back(self):
        self.t_rows(t1=9)
        self.item.columns["up"] = Column("up", "int")
        self.put(self.item, {"id": 10, "t_id": 1, "state": "x"}, {"id": 11, "state": "held", "up": 10})
        self.assertEqual(self.gone(expires="at_ms", hold={"state": "held"},
                                   **{"with": [{"ref": "item(t_id)", "with": ["item(up)"]}]}),
                         {"t": [1], "item": [10, 11]})

    def test_references_emptied(self):
        """Two in a row that stays; none in a due row; in a young one that another root takes along, perhaps."""
        self.t_rows(t1=9, t2=9, t3=-9, t4=9)
        self.item.columns["b"] = Column("b", "int")
        self.put(self.item, {"id": 10, "t_id": 1, "b": 2}, {"id": 20, "t_id": 1, "b": 3})
        self.state[self.t][4]["up"] = 1
        said = {"table": "t", "expires": "at_ms", "detach": ["item(t_id)", "item(b)", "t(up)"]}
        v = oracle.Judge(said, self.schema, NOW).verdict(self.state)
        self.assertEqual({(t.name, i, c): v.may_count((t, i, c)) for t, i, c in v.emptied},
                         {("item", 10, ("t_id",)): True, ("item", 10, ("b",)): True, ("item", 20, ("t_id",)): True,
                          ("t", 4, ("up",)): False})

    def test_references_emptied_in_rows_that_go(self):
        self.t_rows(t1=9, t2=9)
        self.put(self.item, {"id": 10, "t_id": 1, "state": "x"}, {"id": 11, "t_id": 1})
        self.put(self.note, {"id": 100, "item_id": 10})
        self.note.columns.update({"t_id": Column("t_id", "int"), "other": Column("other", "int")})
        self.state[self.note][100].update(t_id=2, other=11)
        said = {"table": "t", "expires": "at_ms", "detach": ["note(t_id)"],
                "with": [{"ref": "item(t_id)", "with": ["note(item_id)"], "detach": ["note(other)"]}]}
        v = oracle.Judge(said, self.schema, NOW).verdict(self.state)
        self.assertEqual({c: v.may_count((t, i, c)) for t, i, c in v.emptied}, {("t_id",): True, ("other",): False})

    def test_until_nothing_is_left(self):
        self.t_rows(t1=9, t2=9)
        self.put(self.item, {"id": 10, "t_id": 1})
        contract = {"policies": {"a": {"table": "t", "expires": "at_ms", "after": ["item(t_id)"]},
                                 "b": {"table": "item", "age": "at_ms", "keep": "now"}}}
        self.item.columns["at_ms"] = Column("at_ms", "int")
        self.state[self.item][10]["at_ms"] = 0
        self.assertEqual(sorted(oracle.exhausted(contract, self.schema, self.state, NOW)[self.t]), [])
        list(oracle.sweep(contract, self.schema, self.state, NOW))
        self.assertEqual(sorted(self.state[self.t]), [1])

    def test_subtree_waits(self):
        self.t_rows(t1=9, t2=-9, t3=9)
        self.state[self.t][2]["up"] = 1
        self.put(self.item, {"id": 20, "t_id": 2})
        self.assertEqual(self.gone(expires="at_ms", **{"with": ["t(up)"]}, after=["item(t_id)"]), {"t": [3]})

    def test_detach_of_itself(self):
        self.t_rows(t1=9, t2=-9, t3=9)
        for i in (2, 3):
            self.state[self.t][i]["up"] = 1
        got, detached, _ = self.swept(expires="at_ms", detach=["t(up)"])
        self.assertEqual((got, detached), ({"t": [1, 3]}, {("t", 2): ["up"]}))

    def test_at_most(self):
        self.t_rows(t1=9, t2=9, t3=9, t4=-9)
        for i, up in ((2, 1), (4, 3)):
            self.state[self.t][i]["up"] = up
        said = {"table": "t", "expires": "at_ms", "after": ["t(up)"]}
        left = oracle.at_most(said, self.schema, self.state, NOW)
        self.assertEqual(sorted(left[self.t]), [3, 4])
        self.assertEqual(self.gone(expires="at_ms", after=["t(up)"]), {"t": [2]})


class Newest(unittest.TestCase):
    """cap and keep_newest, on a table of its own."""

    def setUp(self):
        self.t = Table("t", {n: Column(n, k) for n, k in (
            ("id", "int"), ("at_ms", "int"), ("n", "int"), ("tenant", "text"), ("region", "text"), ("state", "text"),
            ("up", "int"), ("seen", "timestamptz"))}, key=["id"])
        self.schema = Schema([self.t])

    def gone(self, *rows, **policy):
        """rows: dicts; ids are 1, 2, …"""
        self.state = {self.t: {i: {**dict.fromkeys(self.t.columns), "id": i, **r} for i, r in enumerate(rows, 1)}}
        ((_, self.v),) = oracle.sweep({"policies": {"p": {"table": "t", **policy}}}, self.schema, self.state, NOW)
        return sorted(i for _, i in self.v.gone)

    def test_the_oldest_go(self):
        cap = {"rows": 2, "newest": "n"}
        self.assertEqual(self.gone({"n": 5}, {"n": 9}, {"n": 1}, {"n": 7}, cap=cap), [1, 3])
        self.assertEqual(self.gone({"n": 5}, {"n": 9}, cap=cap), [])
        self.assertEqual(self.gone({"n": 5}, cap=cap), [])
        self.assertEqual(self.gone(cap=cap), [])

    def test_each_group_has_its_own(self):
        rows = [{"tenant": t, "n": n} for t, n in (("a", 1), ("a", 2), ("b", 1), ("b", 2), ("A", 1), (None, 1), (None, 2))]
        self.assertEqual(self.gone(*rows, cap={"rows": 1, "per": ["tenant"], "newest": ["n"]}), [1, 3, 6])

    def test_null_in_a_part_of_the_group(self):
        rows = [{"tenant": t, "region": r} for t, r in (("a", None), (None, "a"), (None, None), ("a", None), (None, "a"))]
        self.assertEqual(self.gone(*rows, cap={"rows": 1, "per": ["tenant", "region"], "newest": "n"}), [1, 2])

    def test_null_is_oldest(self):
        self.assertEqual(self.gone({"n": None}, {"n": -9}, {"n": None}, cap={"rows": 1, "newest": "n"}), [1, 3])
        self.assertEqual(self.gone({"n": 1}, {"n": None}, {"n": None}, cap={"rows": 2, "newest": "n"}), [2])

    def test_ties(self):
        tie = [{"n": 1, "state": "x"}, {"n": 1, "state": "y"}, {"n": 1, "state": "x"}, {"n": 1}]
        self.assertEqual(self.gone(*tie, cap={"rows": 2, "newest": "n"}), [1, 2])
        self.assertEqual(self.gone(*tie, cap={"rows": 2, "newest": ["n", "state"]}), [1, 4])

    def test_a_key_of_several_columns(self):
        self.t.key = ["region", "id"]
        self.assertEqual(self.gone({"region": "b"}, {"region": "c"}, {"region": "b"}, cap={"rows": 2, "newest": "n"}), [1])

    def test_no_primary_key(self):
        self.t.key, self.t.unique = [], ["id"]
        self.assertEqual(self.gone({}, {}, {}, cap={"rows": 1, "newest": "n"}), [1, 2])

    def test_times_and_enums(self):
        rows = [{"seen": s} for s in ("2024-01-01 00:00:00+00", "infinity", "0044-03-15 00:00:00+00 BC", "-infinity", None,
                                      "20000-01-01 00:00:00+00")]
        for n, gone in ((1, [1, 3, 4, 5, 6]), (2, [1, 3, 4, 5]), (3, [3, 4, 5]), (4, [4, 5]), (5, [5])):
            self.assertEqual(self.gone(*rows, cap={"rows": n, "newest": "seen"}), gone)
        self.t.columns["state"].order = ["new", "done", "a"]
        self.assertEqual(self.gone({"state": "done"}, {"state": "a"}, {"state": "new"}, {}, cap={"rows": 2, "newest": "state"}),
                         [3, 4])

    def test_several_types(self):
        """SQLite: numbers, texts, blobs."""
        rows = [{"n": v} for v in ("x", 5, b"", 0.5, None, 7)]
        for n, gone in ((1, [1, 2, 4, 5, 6]), (2, [2, 4, 5, 6]), (3, [2, 4, 5]), (4, [4, 5])):
            self.assertEqual(self.gone(*rows, cap={"rows": n, "newest": "n"}), gone)

    def test_held_rows_count(self):
        rows = [{"n": 1}, {"n": 2, "state": "held"}, {"n": 3}, {"n": 4, "state": "held"}]
        self.assertEqual(self.gone(*rows, cap={"rows": 2, "newest": "n"}, hold={"state": "held"}), [1])
        self.assertEqual(self.v.why, {1: "due", 2: "held", 3: "among the newest", 4: "among the newest"})

    def test_waiting_rows_count(self):
        rows = [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4, "up": 2}, {"n": 5, "up": 4}]
        self.assertEqual(self.gone(*rows, cap={"rows": 2, "newest": "n"}, after=["t(up)"]), [1, 3])
        self.assertEqual(self.v.why[2], "waiting after")

    def test_rows_outside_do_not(self):
        rows = [{"n": 1, "state": "x"}, {"n": 2}, {"n": 3, "state": "x"}, {"n": 4, "state": "y"}]
        self.assertEqual(self.gone(*rows, cap={"rows": 1, "newest": "n"}, rows={"state": "x"}), [1])

    def test_subtree(self):
        """A row that owns one of the newest waits; one that owns only others takes them along."""
        rows = [{"n": 1}, {"n": 9, "up": 1}, {"n": 2}, {"n": 3, "up": 3}, {"n": 8}]
        self.assertEqual(self.gone(*rows, cap={"rows": 2, "newest": "n"}, **{"with": ["t(up)"]}), [3, 4])
        self.assertEqual(self.v.why[1], "waiting below: among the newest")

    def test_keep_newest(self):
        old, young = {"at_ms": 0}, {"at_ms": NOW // 1000}
        keep = {"age": "at_ms", "keep": "1h", "keep_newest": {"rows": 2, "newest": "n"}}
        self.assertEqual(self.gone({"n": 1, **old}, {"n": 2, **old}, {"n": 3, **old}, **keep), [1])
        self.assertEqual(self.gone({"n": 1, **old}, {"n": 2, **young}, {"n": 3, **young}, **keep), [1])
        self.assertEqual(self.gone({"n": 1, **young}, {"n": 2, **old}, {"n": 3, **old}, **keep), [])
        self.assertEqual(self.gone({"n": 1, **old}, {"n": 2}, {"n": 3}, **keep), [1])
        self.assertEqual(self.v.why, {1: "due", 2: "null", 3: "null"})

    def test_keep_newest_per_group(self):
        rows = [{"at_ms": i, "tenant": t} for i, t in enumerate(["a", "a", "b", None, None])]
        keep = {"age": "at_ms", "keep": "1h", "keep_newest": {"rows": 1, "per": "tenant", "newest": "at_ms"}}
        self.assertEqual(self.gone(*rows, **keep), [1, 4])

    def test_keep_newest_by_instants(self):
        """An age column says who is newest by its instants; what cannot be used is oldest."""
        rows = [{"seen": s} for s in ("2024-01-01 00:00:00+00", "infinity", "2023-01-01 00:00:00+00", None)]
        keep = {"age": "seen", "keep": "1h", "keep_newest": {"rows": 1, "newest": "seen"}}
        self.assertEqual(self.gone(*rows, **keep), [3])
        rows = [{"state": s} for s in ("2024-01-01T12:00:00+09:00", "2024-01-01 04:00:00Z", "9999")]
        keep = {"age": "state", "keep": "1h", "keep_newest": {"rows": 1, "newest": "state"}}
        self.assertEqual(self.gone(*rows, **keep), [1])

    def test_keep_newest_and_a_subtree(self):
        rows = [{"at_ms": 0}, {"at_ms": 5, "up": 1}, {"at_ms": 1}]
        keep = {"age": "at_ms", "keep": "1h", "keep_newest": {"rows": 1, "newest": "at_ms"}}
        self.assertEqual(self.gone(*rows, **keep, **{"with": ["t(up)"]}), [3])


class Orphans(unittest.TestCase):
    def setUp(self):
        def table(name, *columns):
            return Table(name, {n: Column(n, k) for n, k in columns}, key=["id"])
        self.t = table("t", ("id", "int"), ("s", "int"), ("region", "text"), ("at_ms", "int"), ("seen_ms", "int"),
                       ("state", "text"), ("up", "int"))
        self.s = table("source", ("id", "int"), ("region", "text"), ("state", "text"), ("at_ms", "int"))
        self.schema = Schema([self.t, self.s])
        self.source(1, 2, 3)

    def source(self, *rows):
        rows = [r if isinstance(r, dict) else {"id": r} for r in rows]
        self.sources = {i: {**dict.fromkeys(self.s.columns), **r} for i, r in enumerate(rows)}

    def gone(self, *rows, orphan=None, **policy):
        """rows: dicts, old unless they say; ids are 1, 2, …"""
        self.state = {self.s: dict(self.sources), self.t: {
            i: {**dict.fromkeys(self.t.columns), "at_ms": 0, "id": i, **r} for i, r in enumerate(rows, 1)}}
        said = {"table": "t", "orphan": {"of": "source(id)", "by": "s", **(orphan or {})}, "age": "at_ms", **policy}
        said = {k: v for k, v in said.items() if v is not None}
        ((_, self.v),) = oracle.sweep({"policies": {"p": said}}, self.schema, self.state, NOW)
        return sorted(i for _, i in self.v.gone)

    def test_the_source_is_deleted(self):
        self.assertEqual(self.gone({"s": 1}, {"s": 4}, {"s": None}), [2])
        self.assertEqual(self.v.why, {1: "has a source", 2: "due", 3: "has a source"})

    def test_grace(self):
        """24 hours unless said, from the latest time; at the edge it is kept."""
        edge = (NOW - DAY) // 1000
        self.assertEqual(self.gone({"s": 4, "at_ms": edge - 1}, {"s": 4, "at_ms": edge}, {"s": 4, "at_ms": None}), [1])
        self.assertEqual(self.gone({"s": 4, "at_ms": edge}, {"s": 4, "at_ms": edge + 1}, inclusive=True), [1])
        self.assertEqual(self.gone({"s": 4, "seen_ms": edge}, {"s": 4, "seen_ms": None}, {"s": 4, "at_ms": None},
                                   {"s": 4, "at_ms": None, "seen_ms": 1}, age=["at_ms", "seen_ms"]), [2, 4])
        self.assertEqual(self.gone({"s": 4, "at_ms": edge}, keep="1h"), [1])
        self.assertEqual(self.gone({"s": 4}, keep="never"), [])

    def test_no_grace(self):
        self.assertEqual(self.gone({"s": 4, "at_ms": None}, {"s": 4, "at_ms": NOW}, {"s": 1}, age=None, keep="now"), [1, 2])

    def test_when(self):
        self.source({"id": 1, "state": "open"}, {"id": 2, "state": "closed"}, {"id": 3})
        rows = [{"s": n} for n in (1, 2, 3, 4, None)]
        for when, gone in ((None, [4]), ("deleted", [4]), ("sourceDocumentDeleted", [4]), ("never", []),
                           ("deleted_or_unmatched", [2, 3, 4]), ("sourceDocumentDeletedOrNoLongerMatching", [2, 3, 4])):
            said = {"matching": {"state": "open"}, **({"delete_when": when} if when else {})}
            self.assertEqual(self.gone(*rows, orphan=said), gone, when)

    def test_matching_by_age(self):
        self.source({"id": 1, "at_ms": 0}, {"id": 2, "at_ms": NOW // 1000}, {"id": 3})
        said = {"matching": {"at_ms": {"older_than": "24h"}}, "delete_when": "deleted_or_unmatched"}
        self.assertEqual(self.gone({"s": 1}, {"s": 2}, {"s": 3}, orphan=said), [2, 3])

    def test_one_of_several_sources_is_enough(self):
        self.source({"id": 1, "state": "closed", "region": "x"}, {"id": 2, "state": "open", "region": "x"},
                    {"id": 3, "state": "closed", "region": "y"}, {"id": 4, "state": "closed", "region": "y"})
        said = {"of": "source(region)", "by": "region"}
        rows = [{"region": r} for r in "xyz"]
        self.assertEqual(self.gone(*rows, orphan=said), [3])
        said.update(matching={"state": "open"}, delete_when="deleted_or_unmatched")
        self.assertEqual(self.gone(*rows, orphan=said), [2, 3])

    def test_several_columns(self):
        self.source({"id": 1, "region": "x"}, {"id": 2, "region": "y"}, {"id": 3, "region": None})
        rows = [{"s": s, "region": r} for s, r in ((1, "x"), (1, "y"), (2, "y"), (None, "z"), (9, None), (3, None), (3, "z"))]
        self.assertEqual(self.gone(*rows, orphan={"of": "source(id, region)", "by": ["s", "region"]}), [2, 7])
        self.assertEqual(self.gone(*rows, orphan={"of": "source(region, id)", "by": ["region", "s"]}), [2, 7])

    def test_an_empty_source(self):
        self.source()
        self.assertEqual((self.gone({"s": 1}), self.v.refused), ([], True))
        self.assertEqual((self.gone({"s": 1}, {}, orphan={"allow_empty": True}), self.v.refused), ([1], False))
        self.assertEqual((self.gone({"s": 1}, orphan={"delete_when": "never"}), self.v.refused), ([], False))
        self.source({"id": 7, "state": "x"})
        said = {"matching": {"state": "y"}, "delete_when": "deleted_or_unmatched"}
        self.assertEqual((self.gone({"s": 7}, orphan=said), self.v.refused), ([1], False))

    def test_rows_and_hold(self):
        rows = [{"s": 9, "state": "x"}, {"s": 9, "state": "held"}, {"s": 9}]
        self.assertEqual(self.gone(*rows, where={"state": {"not": None}}, hold={"state": "held"}), [1])
        self.assertEqual(self.v.why, {1: "due", 2: "held", 3: "out"})

    def test_subtree(self):
        """What has a source is not taken along; what is too young is."""
        rows = [{"s": 9}, {"s": 1, "up": 1}, {"s": 9}, {"s": 9, "up": 3, "at_ms": NOW // 1000}, {"s": 9}, {"up": 5}]
        self.assertEqual(self.gone(*rows, **{"with": ["t(up)"]}), [3, 4])
        self.assertEqual(self.v.why[5], "waiting below: has a source")

    def test_of_the_table_itself(self):
        """Each row that goes would make orphans: such a policy is refused."""
        self.assertEqual((self.gone({"up": 7}, {"up": 1}, orphan={"of": "t(id)", "by": "up"}), self.v.refused), ([], True))
        self.assertEqual((self.gone({"s": 7}, **{"with": ["source(at_ms)"]}), self.v.refused), ([], True))

    def test_the_newest_stay(self):
        rows = [{"s": 9, "at_ms": 1}, {"s": 9, "at_ms": 2}, {"s": 1, "at_ms": 3}]
        self.assertEqual(self.gone(*rows, keep_newest={"rows": 2, "newest": "at_ms"}), [1])


class Misreadings(unittest.TestCase):
    """Each is a way to get the language wrong. Judged by it, some of the first rounds must come out differently: then a
    program that reads it so would be caught."""
    ROUNDS = 600

    @classmethod
    def setUpClass(cls):
        cls.rounds = [rounds.Round(e, s) for e in ("sqlite", "postgres") for s in range(cls.ROUNDS)]

    def caught(self, where, name, wrong):
        """Seeds whose end differs when `where.name` is replaced by `wrong`. What is rare is looked for in further rounds."""
        found = []
        further = (rounds.Round(e, s) for s in range(self.ROUNDS, 5 * self.ROUNDS) for e in ("sqlite", "postgres"))
        for r in itertools.chain(self.rounds, further):
            with mock.patch.object(where, name, wrong):
                state = oracle.copy(r.before)
                list(oracle.sweep(r.contract(), r.schema, state, r.now, r.sql))
            if state != r.expected:
                found.append(r.seed)
            if len(found) > (2 if r.seed < self.ROUNDS else 0):
                break
        self.assertTrue(found, "no round tells the difference")

    def test_the_right_reading(self):
        """Nothing replaced: every round comes out as it did."""
        for r in self.rounds:
            state = oracle.copy(r.before)
            list(oracle.sweep(r.contract(), r.schema, state, r.now, r.sql))
            self.assertEqual(state, r.expected, r.seed)

    def with_said(self, change):
        """Judges by a contract in which something is changed."""
        made = oracle.Judge.__init__

        def init(judge, said, *rest, **named):
            made(judge, change(dict(said)), *rest, **named)
        self.caught(oracle.Judge, "__init__", init)

    def test_age_inclusive_always(self):
        self.with_said(lambda p: {**p, "inclusive": True})

    def test_age_inclusive_never(self):
        self.with_said(lambda p: {**p, "inclusive": False})

    def test_expires_is_strict(self):
        right = oracle.Judge.cutoff

        def cutoff(judge, row):
            found = right(judge, row)
            return (found[0], False) if found and "expires" in judge.said else found
        self.caught(oracle.Judge, "cutoff", cutoff)

    def test_each_key_forgotten(self):
        for key in ("rows", "where", "hold", "with", "detach", "after", "zone"):
            with self.subTest(key):
                self.with_said(lambda p: {k: v for k, v in p.items() if k != key})

    def test_ambiguous_time_is_the_earlier(self):
        def local(t, zone):
            return min(_readings(t, zone))
        self.caught(oracle, "instant_of_local", local)

    def test_skipped_time_by_the_offset_after(self):
        def local(t, zone):
            first, second = _readings(t, zone)
            return second
        self.caught(oracle, "instant_of_local", local)

    def test_earliest_of_several(self):
        def latest(judge, row):
            read = [oracle.instant(row[c.name], c, judge.unit, judge.zone) for c in judge.times]
            return UNUSABLE if UNUSABLE in read else min((t for t in read if t is not None), default=None)
        self.caught(oracle.Judge, "latest", latest)

    def test_any_null_is_never_due(self):
        def latest(judge, row):
            read = [oracle.instant(row[c.name], c, judge.unit, judge.zone) for c in judge.times]
            return UNUSABLE if UNUSABLE in read else None if None in read else max(read)
        self.caught(oracle.Judge, "latest", latest)

    def test_unreadable_is_ignored_beside_others(self):
        def latest(judge, row):
            read = [oracle.instant(row[c.name], c, judge.unit, judge.zone) for c in judge.times]
            return max((t for t in read if t not in (None, UNUSABLE)), default=None)
        self.caught(oracle.Judge, "latest", latest)

    def test_null_takes_no_otherwise(self):
        right = oracle.Judge.cutoff

        def cutoff(judge, row):
            keep = judge.said.get("keep")
            if isinstance(keep, dict) and "by" in keep and row[judge.table.column(keep["by"]).name] is None:
                return None
            return right(judge, row)
        self.caught(oracle.Judge, "cutoff", cutoff)

    def test_prefixes_ignore_case(self):
        right = oracle.Conditions._is

        def is_(value, wanted, column, prefixes, folded):
            if prefixes and isinstance(value, str) and isinstance(wanted, str) and wanted.endswith("*"):
                value, wanted = value.lower(), wanted.lower()
            return right(value, wanted, column, prefixes, folded)
        self.caught(oracle.Conditions, "_is", staticmethod(is_))

    def test_like_ignores_case(self):
        right = oracle.like
        self.caught(oracle, "like", lambda v, p: right(v.lower(), p.lower()))

    def test_null_in_a_list_is_unknown(self):
        right = oracle.Conditions._is
        self.caught(oracle.Conditions, "_is",
                    staticmethod(lambda v, w, *more: None if w is None else right(v, w, *more)))

    def test_unknown_is_true(self):
        right = oracle.Conditions.truth
        self.caught(oracle.Conditions, "truth", lambda *a, **k: right(*a, **k) is not False)

    def test_texts_compared_as_texts(self):
        self.caught(oracle, "read_text", lambda text, zone: _stamp(text))

    def test_offsets_ignored(self):
        right = oracle.read_text
        self.caught(oracle, "read_text", lambda text, zone: right(
            text[:16] + re.sub(r" *[+-]\d\d:?(\d\d)?$", "Z", text[16:]), zone))

    def test_fractions_ignored(self):
        right = oracle.read_text

        def read(text, zone):
            found = right(text, zone)
            return found if found is UNUSABLE else found // SECOND * SECOND
        self.caught(oracle, "read_text", read)

    def test_subtree_is_one_level(self):
        right = oracle.Judge.gather

        def gather(judge, root, state):
            kept = judge.owner.owned
            judge.owner.owned = [(r, w, _Leaf(judge.owner) if level is judge.owner else level) for r, w, level in kept]
            try:
                return right(judge, root, state)
            finally:
                judge.owner.owned = kept
        self.caught(oracle.Judge, "gather", gather)

    def test_subtree_takes_along_what_may_not_be_touched(self):
        right = oracle.Judge.untouchable
        for why in ("out", "held", "null", "unreadable"):
            with self.subTest(why):
                self.caught(oracle.Judge, "untouchable", lambda *a: None if right(*a) == why else right(*a))

    def test_subtree_waits_for_the_young(self):
        right = oracle.Judge.untouchable
        self.caught(oracle.Judge, "untouchable",
                    lambda judge, row, state: right(judge, row, state)
                    or ("young" if judge.of_row(row, state) == "young" else None))

    def test_subtree_of_a_dependent_holds_back(self):
        """Rows outside the `where` of the `with` entry that leads to their table."""
        right = oracle.Owner.__init__

        def init(owner, said, table, schema):
            right(owner, said, table, schema)
            outer = said.get("where") if "ref" in said else None
            owner.owned = [(r, w or outer if level is owner else w, level) for r, w, level in owner.owned]
        self.caught(oracle.Owner, "__init__", init)

    def test_second_level_forgotten(self):
        right = oracle.Owner.__init__

        def init(owner, said, table, schema):
            right(owner, said, table, schema)
            owner.owned = [(r, w, owner if level is owner else _Leaf(level)) for r, w, level in owner.owned]
        self.caught(oracle.Owner, "__init__", init)

    def test_where_of_owned_rows_forgotten(self):
        """An owned row outside `where` goes with the others."""
        made = oracle.Owner.__init__

        def init(owner, said, table, schema):
            made(owner, said, table, schema)
            owner.owned = [(r, None, level) for r, _, level in owner.owned]
        self.caught(oracle.Owner, "__init__", init)

    def test_where_of_after_forgotten(self):
        made = oracle.Owner.__init__

        def init(owner, said, table, schema):
            made(owner, said, table, schema)
            owner.after = [(r, None) for r, _ in owner.after]
        self.caught(oracle.Owner, "__init__", init)

    def test_references_always_to_the_primary_key(self):
        made = oracle.Ref.__init__

        def init(ref, text, schema, owner):
            made(ref, text, schema, owner)
            if len(owner.key) == len(ref.columns):
                ref.targets = list(owner.key)
        self.caught(oracle.Ref, "__init__", init)

    def test_newest_rules_forgotten(self):
        self.with_said(lambda p: {k: v for k, v in p.items() if k != "keep_newest"})

    def in_rule(self, rule, change):
        """A cap, keep_newest or orphan in which something is changed."""
        self.with_said(lambda p: {**p, rule: change(dict(p[rule]))} if rule in p else p)

    def test_one_too_many(self):
        for rule in ("cap", "keep_newest"):
            for by in (1, -1):
                with self.subTest(rule=rule, by=by):
                    self.in_rule(rule, lambda said: {**said, "rows": said["rows"] + by})

    def test_groups_forgotten(self):
        for rule in ("cap", "keep_newest"):
            with self.subTest(rule):
                self.in_rule(rule, lambda said: {**said, "per": []})

    def test_further_columns_forgotten(self):
        for rule in ("cap", "keep_newest"):
            with self.subTest(rule):
                self.in_rule(rule, lambda said: {**said, "newest": oracle.listed(said["newest"])[:1]})

    def test_ties_by_the_smallest_key(self):
        right = oracle.Newest.place

        def place(newest, row):
            found = right(newest, row)
            return found[:len(newest.newest)] + [_Reversed(p) for p in found[len(newest.newest):]]
        self.caught(oracle.Newest, "place", place)

    def test_age_columns_sorted_as_they_are_written(self):
        self.caught(oracle.Newest, "place_of", lambda newest, row, c: oracle.place(row[c.name], c))

    def test_null_is_newest(self):
        right = oracle.place
        self.caught(oracle, "place", lambda v, c: (9, 0) if v is None else right(v, c))

    def test_a_null_group_is_none(self):
        right = oracle.Newest.has
        for wrong in (True, False):     # each row of it a group of its own; or none of them counts
            with self.subTest(wrong=wrong):
                self.caught(oracle.Newest, "has", lambda n, row, rows: wrong if None in [row[c] for c in n.per]
                            else right(n, row, rows))

    def population(self, left_out):
        right = oracle.Judge.population
        self.caught(oracle.Judge, "population", lambda judge, state: [
            r for r in right(judge, state) if not left_out(judge, r, state)])

    def test_held_rows_do_not_count(self):
        self.population(lambda judge, r, state: judge.held(r, state))

    def test_rows_without_a_time_do_not_count(self):
        self.population(lambda judge, r, state: judge.timed() and judge.latest(r) in (None, UNUSABLE))

    def test_young_rows_do_not_count(self):
        self.population(lambda judge, r, state: judge.of_time(r) == "young")

    def test_rows_outside_count(self):
        self.caught(oracle.Judge, "population", lambda judge, state: list(state[judge.table].values()))

    def test_orphan_keys(self):
        for key, wrong in (("matching", None), ("delete_when", "deleted"), ("delete_when", "never"), ("allow_empty", True),
                           ("allow_empty", False)):
            with self.subTest(key=key, wrong=wrong):
                self.in_rule("orphan", lambda said: {**said, key: wrong})

    def test_null_by_is_an_orphan(self):
        right = oracle.Orphan.lost
        self.caught(oracle.Orphan, "lost", lambda o, row, *rest: True if None in [row[c] for c in o.by]
                    else right(o, row, *rest))

    def test_only_all_null_is_kept(self):
        right = oracle.Orphan.lost

        def lost(o, row, *rest):
            given = [row[c] for c in o.by]
            return True if None in given and set(given) != {None} else right(o, row, *rest)
        self.caught(oracle.Orphan, "lost", lost)

    def test_unknown_matches(self):
        def lost(o, row, state, conditions):
            if o.when == "never" or None in [row[c] for c in o.by]:
                return False
            return not [r for r in o.sources(row, state) if o.when == "deleted"
                        or conditions.truth(o.matching, o.source, r, state) is not False]
        self.caught(oracle.Orphan, "lost", lost)

    def test_every_source_must_match(self):
        def lost(o, row, state, conditions):
            if o.when == "never" or None in [row[c] for c in o.by]:
                return False
            found = o.sources(row, state)
            return not found or o.when != "deleted" and any(
                conditions.truth(o.matching, o.source, r, state) is not True for r in found)
        self.caught(oracle.Orphan, "lost", lost)

    def test_one_part_of_the_key_is_enough(self):
        def sources(o, row, state):
            return [r for r in state[o.source].values() if oracle.same(r[o.key[0]], row[o.by[0]])]
        self.caught(oracle.Orphan, "sources", sources)

    def test_grace_of_an_hour(self):
        self.with_said(lambda p: {"keep": "1h", **p} if "orphan" in p else p)

    def test_subtree_takes_along_what_others_keep(self):
        right = oracle.Judge.untouchable
        for why in ("has a source", "among the newest"):
            with self.subTest(why):
                self.caught(oracle.Judge, "untouchable", lambda *a: None if right(*a) == why else right(*a))

    def test_detach_sets_every_column(self):
        right = oracle.Judge.gather

        def gather(judge, root, state):
            columns = [c for t in state for c in t.columns.values()]
            before = [c.nullable for c in columns]
            for c in columns:
                c.nullable = True
            try:
                return right(judge, root, state)
            finally:
                for c, nullable in zip(columns, before):
                    c.nullable = nullable
        self.caught(oracle.Judge, "gather", gather)

    def test_null_refers_to_null(self):
        def rows_of(ref, row, state):
            for i, r in state[ref.table].items():
                if all(r[c] == row[t] for c, t in zip(ref.columns, ref.targets)):
                    yield i, r
        self.caught(oracle.Ref, "rows_of", rows_of)


def _stamp(text):
    """A text as if T…Z were its only form."""
    return read_text(text[:10] + "T" + text[11:19].ljust(8, "0") + "Z", None)


def _readings(local, zone):
    if zone in (None, "UTC"):
        return local, local
    year, month, day = oracle.civil_of(local // DAY)
    if not 1 < year < 9999:
        return local, local
    wall = datetime.datetime(year, month, day, tzinfo=ZoneInfo(zone)) + datetime.timedelta(microseconds=local % DAY)
    return tuple(local - wall.replace(fold=f).utcoffset() // datetime.timedelta(microseconds=1) for f in (0, 1))


class _Reversed:
    """Sorts the other way round."""

    def __init__(self, place):
        self.place = place

    def __lt__(self, other):
        return other.place < self.place

    def __gt__(self, other):
        return other.place > self.place

    def __eq__(self, other):
        return other.place == self.place


class _Leaf:
    """A level whose rows own nothing."""

    def __init__(self, level):
        self.table, self.detach, self.after, self.owned = level.table, [], [], []

    def losing(self):
        return {self.table}


if __name__ == "__main__":
    unittest.main()
