"""lapse status and lapse history: how schedulers stand and what past runs did, from the database alone."""
import datetime
import json
import re

from harness import *

CONTRACT = """
schedulers:
  often: {every: 1m}
  nightly: {cron: "0 3 * * *", timezone: Europe/Prague}
  alone: {every: 10m, exclusive: true}
  off: {every: 1h, enabled: false}
policies:
  s: {table: s, expires: at_ms, scheduler: often, limits: {rows: 2}}
  n: {table: s, expires: at_ms, scheduler: nightly}
  a: {table: s, expires: at_ms, scheduler: alone}
  o: {table: s, expires: at_ms, scheduler: off}
"""


class Runs(Case):
    def setUp(self):
        super().setUp()
        self.given("create table s (id integer primary key, at_ms bigint)")

    def install(self):
        self.lapse(CONTRACT, "install", code=0)
        self.base = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)

    def text(self, at):
        return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def instant(self, text):
        """A time as the program writes it: it leaves out what is zero at a fraction's end."""
        self.assertRegex(text, r"T\d\d:\d\d:\d\d(\.\d*[1-9])?Z$")
        return datetime.datetime.fromisoformat(text.removesuffix("Z"))

    def put(self, id, scheduler, ago, rows=0, source="daemon", took=3, outcome="done", **more):
        """A run of so many seconds ago; took None: it has no end."""
        at = self.base - datetime.timedelta(seconds=ago)
        row = dict(id=id, scheduler=scheduler, source=source, owner="web-1:42:abcd", started_at=self.text(at),
                   ended_at=None if took is None else self.text(at + datetime.timedelta(seconds=took)), outcome=outcome,
                   rows_gone=rows, skipped=0, unknown=0, batches=1, errors=0, error=None,
                   counts=json.dumps({"s": rows} if rows else {})) | more
        self.insert(f"lapse_run({', '.join(row)})", tuple(row.values()))

    def status(self, name=None):
        r = self.lapse(CONTRACT, "status", "--json", code=0)
        found = {s["scheduler"]: s for s in r.json["schedulers"]}
        return found[name] if name else found

    def history(self, *args, code=0):
        return self.lapse(CONTRACT, "history", *args, "--json", code=code)


@every_engine
class Status(Runs):
    def test_without_own_tables(self):
        for command in ("status", "history"):
            r = self.lapse(CONTRACT, command, code=2)
            self.assertIn("run lapse install", r.err)
            self.assertEqual(r.out, "")
        self.install()
        self.forget_who()
        self.given("drop table lapse_run; drop table lapse_purge; delete from lapse_version where version > 2")
        self.assertIn("run lapse install", self.lapse(CONTRACT, "status", code=2).err)

    def test_it_writes_nothing(self):
        self.install()
        before = self.db.dump()
        self.status()
        self.history()
        self.assertEqual(self.db.dump(), before)

    def test_nothing_ran_yet(self):
        self.install()
        found = self.status()
        self.assertEqual(list(found), ["often", "nightly", "alone", "off", "lapse"])
        self.assertTrue(found["lapse"]["built_in"])
        for s in found.values():
            self.assertEqual((s["last"], s["running"], s["late_seconds"], s["total"]["runs"]), (None, False, 0, 0))
        self.assertIsNone(found["often"]["next"])
        self.assertRegex(found["nightly"]["next"], r"T0[12]:00:00Z$")
        out = self.lapse(CONTRACT, "status", code=0).out
        self.assertIn("never", out)
        self.assertRegex(out, r"off +every 1h +never.*disabled")

    def test_the_last_run_and_the_next(self):
        self.install()
        self.put("a", "often", 90, rows=7)
        self.put("b", "often", 30, rows=5, source="daemon")
        self.put("c", "often", 10, rows=1, source="sweep")
        s = self.status("often")
        self.assertEqual((s["last"]["id"], s["last"]["source"], s["last_by_daemon"]["id"]), ("c", "sweep", "b"))
        self.assertEqual(s["last"]["counts"], {"s": 1})
        self.assertEqual(self.instant(s["next"]), self.base + datetime.timedelta(seconds=30))
        self.assertEqual(s["late_seconds"], 0)
        self.assertEqual((s["total"]["runs"], s["total"]["rows"]), (3, 13))
        self.assertEqual(s["recent_rows"], [7, 5, 1])

    def test_late(self):
        self.install()
        self.put("a", "often", 80)
        self.assertEqual(self.status("often")["late_seconds"], 0, "one tick missed is not late yet")
        self.given("delete from lapse_run")
        self.put("a", "often", 300)
        self.put("b", "often", 10, source="sweep")
        late = self.status("often")["late_seconds"]
        self.assertTrue(240 <= late < 300, late)
        self.assertRegex(self.lapse(CONTRACT, "status", code=0).out, r"late: by 4m.*: is lapse run running\?")

    def test_late_by_cron(self):
        self.install()
        self.put("a", "nightly", 80000)         # less than a day, even the one that has only 23 hours
        self.assertEqual(self.status("nightly")["late_seconds"], 0)
        self.given("delete from lapse_run")
        self.put("a", "nightly", 3 * 86400 + 60)
        s = self.status("nightly")
        self.assertGreater(s["late_seconds"], 86400)
        self.assertGreater(self.instant(s["next"]), self.base, "what was missed is not made up for")

    def test_what_is_off_is_not_late(self):
        self.install()
        self.put("a", "off", 999999)
        self.assertEqual((self.status("off")["late_seconds"], self.status("off")["next"]), (0, None))

    def test_running(self):
        self.install()
        self.put("a", "often", 5, took=None, outcome="running", rows=3)
        s = self.status("often")
        self.assertTrue(s["running"])
        self.assertIsNone(s["last"]["ended"])
        self.assertIn("running for", self.lapse(CONTRACT, "status", code=0).out)
        self.given("delete from lapse_run")
        self.put("a", "often", 5000, took=None, outcome="running", rows=3)
        self.assertRegex(self.lapse(CONTRACT, "status", code=0).out, "late: .*was it killed")

    def test_leases(self):
        self.install()
        self.assertIsNone(self.status("alone")["lease"])
        self.given("insert into lapse_lease(scheduler, token, owner, expires_at) values ('alone', 3, 'web-2:7:x', "
                   "'2037-01-01T00:00:00Z')")
        self.assertEqual(self.status("alone")["lease"], {"owner": "web-2:7:x", "until": "2037-01-01T00:00:00Z",
                                                         "expired": False})
        self.assertIn("held by web-2:7:x until 2037-01-01 00:00:00 UTC", self.lapse(CONTRACT, "status", code=0).out)
        self.given("update lapse_lease set expires_at = '2020-01-01T00:00:00Z'")
        self.assertTrue(self.status("alone")["lease"]["expired"])
        self.assertIn("free: that of web-2:7:x ended", self.lapse(CONTRACT, "status", code=0).out)
        self.given("update lapse_lease set owner = null, expires_at = null")
        self.assertIsNone(self.status("alone")["lease"])

    def test_brakes_and_fuses(self):
        self.install()
        self.insert("s", (1, 0), (2, 0), (3, 0))
        self.sweep(CONTRACT, "s", code=4)
        self.lapse(CONTRACT, "pause", "s", "--for", "2h", code=0)
        self.lapse(CONTRACT, "pause", "often", code=0)
        self.lapse(CONTRACT, "pause", code=0)
        s = self.status()
        self.assertEqual([b["name"] for b in s["often"]["brakes"]], [None, "often", "s"])
        self.assertEqual([b["name"] for b in s["nightly"]["brakes"]], [None])
        fuse, = s["often"]["fuses"]
        self.assertEqual((fuse["policy"], fuse["rows"], fuse["limit"]), ("s", 3, 2))
        self.assertEqual(s["often"]["last"]["outcome"], "fuse")
        self.assertEqual(s["often"]["total"]["errors"], 1)
        self.assertIn("lapse ack s", s["often"]["total"]["last_error"])
        out = self.lapse(CONTRACT, "status", code=0).out
        self.assertIn("(lapse ack s)", out)
        self.assertIn("(lapse resume often)", out)
        self.lapse(CONTRACT, "ack", "s", code=0)
        self.assertEqual(self.status("often")["fuses"], [])

    def test_the_last_error_stays_in_sight(self):
        self.install()
        self.put("a", "often", 3000, errors=2, error="policy 's': no such thing", outcome="failed")
        self.put("b", "often", 4000, errors=1, error="an older one", outcome="failed")
        for i in range(30):
            self.put(f"ok{i}", "often", 900 - i)
        s = self.status("often")
        self.assertEqual((s["total"]["errors"], s["total"]["last_error"]), (3, "policy 's': no such thing"))
        self.assertEqual(s["last"]["outcome"], "done")
        self.assertEqual(len(s["recent_rows"]), 24)

    def test_schedulers_that_are_no_more(self):
        self.install()
        self.put("a", "former", 100, rows=2)
        r = self.lapse(CONTRACT, "status", "--json", code=0)
        self.assertEqual([x for x in r.json["remarks"] if "'former'" in x], r.json["remarks"])
        self.assertEqual(len(r.json["remarks"]), 1)

    def test_names_compare_exactly(self):
        self.install()
        self.put("a", "Often", 10, rows=2)
        self.assertIsNone(self.status("often")["last"])


@every_engine
class History(Runs):
    def setUp(self):
        super().setUp()
        self.install()
        for i in range(30):
            self.put(f"r{i:02}", "often" if i % 2 else "alone", 1000 - i, rows=i)

    def test_the_newest_first(self):
        ids = [r["id"] for r in self.history().json["runs"]]
        self.assertEqual(ids, [f"r{i:02}" for i in range(29, 9, -1)])
        self.assertEqual(len(self.history("--last", "1000").json["runs"]), 30)
        ids = [r["id"] for r in self.history("often", "--last", "3").json["runs"]]
        self.assertEqual(ids, ["r29", "r27", "r25"])

    def test_what_it_says(self):
        self.put("odd", "alone", 1, took=None, outcome="failed", error="no\x1b[31m way", errors=1, skipped=2, unknown=4)
        run = self.history("--last", "1").json["runs"][0]
        self.assertEqual({k: run[k] for k in ("source", "owner", "ended", "skipped", "unknown", "errors", "batches")},
                         {"source": "daemon", "owner": "web-1:42:abcd", "ended": None, "skipped": 2, "unknown": 4,
                          "errors": 1, "batches": 1})
        out = self.lapse(CONTRACT, "history", "--last", "2", code=0).out
        self.assertIn("no\\x1b[31m way", out)
        self.assertNotIn("\x1b", out)
        lines = [line for line in out.splitlines() if line.startswith("20")]
        self.assertEqual([re.split(r"\s{2,}", line)[1:5] for line in lines],
                         [["alone", "daemon", "failed", "0"], ["often", "daemon", "done", "29"]])
        self.assertIn("29 rows gone in 2 runs", out)

    def test_bad_names_and_numbers(self):
        self.assertIn("did you mean 'often'", self.history("oftne", code=2).said)
        self.assertIn("one scheduler", self.history("often", "alone", code=2).said)
        for last in ("0", "-3", "x", "1.5", "", "99999999999999999999"):
            self.assertEqual(self.lapse(CONTRACT, "history", f"--last={last}").code, 2, last)
        self.assertEqual(self.history("--last", "100001", code=2).code, 2)

    def test_one_that_is_no_more(self):
        self.put("f", "former", 5)
        self.assertEqual([r["id"] for r in self.history("former").json["runs"]], ["f"])
        self.assertEqual(self.history("off").json["runs"], [])

    def test_nothing_yet(self):
        self.given("delete from lapse_run")
        self.assertEqual(self.lapse(CONTRACT, "history", code=0).out, "nothing has run yet\n")

    def test_counts_that_are_no_json(self):
        self.given("update lapse_run set counts = 'x'")
        self.assertEqual(self.history("--last", "1").json["runs"][0]["counts"], {})


@every_engine
class Screens(Runs):
    def setUp(self):
        super().setUp()
        self.install()
        for i, rows in enumerate((0, 1, 50, 100)):
            self.put(f"r{i}", "often", 40 - i, rows=rows)

    def shown(self, command, locale, size=(100, 30)):
        r = lapse(self.db, CONTRACT, command, tty=True, size=size, env={"LC_ALL": locale})
        self.assertEqual(r.code, 0, r)
        return r.out

    def test_the_chart_of_status(self):
        self.assertIn("▁▂▅█", re.sub(r"\x1b\[[0-9;]*m", "", self.shown("status", "C.UTF-8")))
        self.assertIn("_.=#", re.sub(r"\x1b\[[0-9;]*m", "", self.shown("status", "C")))

    def test_the_bars_of_history(self):
        lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", self.shown("history", "C.UTF-8")).splitlines()
                 if line.startswith("20")]
        self.assertEqual([re.search(r"[▉-▏█]*\s*$", line).group().strip() for line in lines],
                         ["█" * 20, "█" * 10, "▏", ""])
        lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", self.shown("history", "C")).splitlines()
                 if line.startswith("20")]
        self.assertEqual([line.count("#") for line in lines], [20, 10, 1, 0])

    def test_a_narrow_terminal(self):
        for i in range(20):
            self.put(f"n{i}", "often", 20 - i, rows=i)
        for command in ("status", "history"):
            for line in re.sub(r"\x1b\[[0-9;]*m", "", self.shown(command, "C", size=(72, 30))).splitlines():
                self.assertLessEqual(len(line.rstrip()), 72, line)      # without the chart, which has no room

    def test_piped_it_is_plain(self):
        for command in ("status", "history"):
            out = self.lapse(CONTRACT, command, code=0).out
            self.assertNotRegex(out, r"[▁-█#\x1b]")


class Rights(Runs, PostgresTest):
    def test_reading_is_enough(self):
        self.install()
        self.put("a", "often", 10, rows=3)
        self.given("drop role if exists watcher; create role watcher login; grant usage on schema public to watcher; grant "
                   "select on lapse_version, lapse_pause, lapse_fuse, lapse_lease, lapse_run to watcher")
        dsn = postgres().dsn(self.db.name, user="watcher")
        try:
            r = lapse(dsn, CONTRACT, "status", "--json")
            self.assertEqual(r.code, 0, r)
            self.assertEqual(r.json["schedulers"][0]["last"]["rows"], 3)
            self.assertEqual(lapse(dsn, CONTRACT, "history").code, 0)
            self.given("revoke select on lapse_run from watcher")
            r = lapse(dsn, CONTRACT, "history")
            self.assertEqual(r.code, 1, r)
            self.assertIn("lapse_run", r.err)
        finally:
            self.given("drop owned by watcher; drop role watcher")
