"""Who paused, resumed or acknowledged, and why; cutoff and contract of a run. Own tables of the version before."""
import getpass
import socket

from harness import *

CONTRACT = "policies: {s: {table: s, age: at_ms, keep: 1h, limits: {rows: 1}}, t: {table: t, expires: at_ms}}"


@every_engine
class Who(Case):
    def setUp(self):
        super().setUp()
        self.given("create table s (id integer primary key, at_ms bigint); create table t (id integer primary key, at_ms bigint)")
        self.insert("s", (1, 0), (2, 0), (3, MS))
        self.insert("t", (1, 0), (2, MS + 1))
        self.lapse(CONTRACT, "install", code=0)

    def by(self, *args, actor="Jane Doe", code=0):
        return self.lapse(CONTRACT, *args, "--json", env={"LAPSE_ACTOR": actor} if actor else {}, code=code).json

    def who(self, actor="Jane Doe"):
        role = self.per_engine(sqlite="", postgres="postgres, ", mariadb="root, ")
        return f"{role}{getpass.getuser()}@{socket.gethostname()}" + (f", {actor}" if actor else "")

    def status(self, scheduler="default"):
        return next(s for s in self.by("status")["schedulers"] if s["scheduler"] == scheduler)

    def test_pause_and_resume(self):
        said = self.by("pause", "s", "--reason", "audit until friday, žluť")
        self.assertEqual((said["who"], said["reason"]), (self.who(), "audit until friday, žluť"))
        brake, = self.status()["brakes"]
        self.assertEqual((brake["name"], brake["who"], brake["reason"]), ("s", self.who(), "audit until friday, žluť"))
        out = self.lapse(CONTRACT, "status", code=0).out
        self.assertIn("Jane Doe", out)
        self.assertIn("audit until friday", out)
        self.assertIn("audit until friday", self.sweep(CONTRACT, "s", code=6).policy("s")["error"])
        self.by("resume", "s", "--reason", "audit is over", actor=None)
        s = self.status()
        self.assertEqual(s["brakes"], [])
        released, = s["released"]
        self.assertEqual((released["name"], released["who"], released["reason"]), ("s", self.who(None), "audit is over"))
        self.assertIn("audit is over", self.lapse(CONTRACT, "status", code=0).out)
        self.assertFalse(self.by("resume", "s", "--reason", "again")["resumed"])
        self.assertEqual(self.status()["released"][0]["reason"], "audit is over", "nothing was released")
        self.by("pause", "s")
        s = self.status()
        self.assertEqual((s["released"], s["brakes"][0]["reason"]), ([], None))

    def test_ack(self):
        self.sweep(CONTRACT, "s", code=4)
        said = self.by("ack", "s", "--reason", "as ordered")
        self.assertEqual((said["who"], said["reason"]), (self.who(), "as ordered"))
        for used in (False, True):
            ack, = self.status()["acks"]
            self.assertEqual((ack["policy"], ack["used"], ack["who"], ack["reason"]), ("s", used, self.who(), "as ordered"))
            self.assertIn("as ordered", self.lapse(CONTRACT, "status", code=0).out)
            if not used:
                self.sweep(CONTRACT, "s")
                self.left("s", 3)
        self.insert("s", (4, 0), (5, 0))
        self.sweep(CONTRACT, "s", code=4)
        self.assertEqual(self.status()["acks"], [], "it tripped anew")

    def test_bad_reasons(self):
        for reason in ("x" * 600, "a\nb", "a\x1b[31mb"):
            self.assertIn("--reason", self.lapse(CONTRACT, "pause", "--reason", reason, code=2).err)
        self.lapse(CONTRACT, "pause", "--reason", "x" * 599, code=0)
        self.assertIn("LAPSE_ACTOR", self.lapse(CONTRACT, "pause", env={"LAPSE_ACTOR": "a\nb"}, code=2).err)

    def test_a_run_has_cutoffs_and_a_contract(self):
        self.sweep(CONTRACT, code=4)
        run, = self.by("history")["runs"]
        self.assertEqual(run["cutoff"][:19], NOW[:19])
        self.assertRegex(run["contract"], "^[0-9a-f]{16}$")
        s, t = run["policies"]
        self.assertEqual((s["policy"], s["outcome"], s["rows"]), ("s", "fuse", {}))
        self.assertEqual((t["policy"], t["outcome"], t["rows"]), ("t", "done", {"t": 1}))
        self.assertEqual((s["cutoff"][:19], t["cutoff"][:19]), ("2024-06-15T11:00:00", NOW[:19]))
        self.sweep(CONTRACT, "t")
        self.sweep(CONTRACT.replace("1h", "2h"), "t")
        other, same, first = (r["contract"] for r in self.by("history")["runs"])
        self.assertEqual(same, first)
        self.assertNotEqual(other, first)

    def test_the_version_before(self):
        """What it has works, and what it has not is said."""
        self.forget_who()
        said = self.by("pause", "s", "--reason", "x")
        self.assertIn("version 4", said["not_kept"])
        self.assertIn("version 4", self.lapse(CONTRACT, "pause", "s", code=0).out)
        self.assertEqual(self.status()["brakes"][0]["who"], None)
        self.assertTrue(any("version 4" in r for r in self.by("status")["remarks"]))
        self.by("resume", "s")
        self.assertEqual(self.db.rows("select name from lapse_pause"), [])
        self.sweep(CONTRACT, "s", code=4)
        self.by("ack", "s")
        self.sweep(CONTRACT, "s")
        self.assertEqual(self.db.rows("select policy from lapse_fuse"), [])
        run = self.by("history")["runs"][0]
        self.assertEqual((run["outcome"], run["contract"], run["cutoff"], run["policies"]), ("done", None, None, []))
        r = self.lapse(CONTRACT, "install", "--json", code=0).json
        self.assertEqual((r["from"], r["version"]), (4, 5))
        self.by("pause", "--reason", "now it is kept")
        self.assertEqual(self.status()["brakes"][0]["reason"], "now it is kept")

    def test_a_program_of_the_version_before_takes_a_released_brake_for_ended(self):
        self.by("pause")
        self.by("resume")
        ended = self.per_engine(sqlite="until <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", postgres="until <= now()",
                                mariadb="until <= now(6)")
        self.assertEqual(self.db.rows(f"select count(*) from lapse_pause where {ended}"), [(1,)])
