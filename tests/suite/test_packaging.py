"""The unit file: what systemd itself says of it, and that it is installed for the program that is installed."""
import os
import re
import signal
import subprocess
import unittest
from pathlib import Path

from daemon import Daemon, built, eventually
from harness import *

UNIT = ROOT / "packaging" / "lapse.service"


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def settings(path):
    """The lines in force: {key: [value, …]}."""
    found = {}
    for line in path.read_text().splitlines():
        if re.match(r"\w+=", line):
            key, value = line.split("=", 1)
            found.setdefault(key, []).append(value)
    return found


class Unit(unittest.TestCase):
    def test_exposure(self):
        """2.0 of 10 at the most; systemd counts in tenths."""
        code, text = said("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", str(UNIT))
        self.assertEqual(code, 0, text)
        level = re.search(r"Overall exposure level for lapse.service: ([\d.]+)", text)
        self.assertLessEqual(float(level[1]), 2.0, text)

    def test_exposure_can_fail(self):
        """The same question of a unit without its hardening."""
        bare = new_path("unit")
        bare.mkdir()
        (bare / "lapse.service").write_text("[Service]\nExecStart=/bin/true\n")
        code, text = said("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager",
                          str(bare / "lapse.service"))
        self.assertNotEqual(code, 0, text)

    def verified(self, text):
        home = new_path("unit")
        home.mkdir()
        (home / "lapse.service").write_text(text)
        return said("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(home / "lapse.service"))

    def test_verify(self):
        unit = UNIT.read_text().replace("/usr/bin/lapse", program())
        self.assertEqual(self.verified(unit), (0, ""))
        code, text = self.verified(unit.replace("ProtectSystem=strict", "ProtectSystem=stirct"))
        self.assertIn("stirct", text)

    def test_what_it_relies_on(self):
        has = settings(UNIT)
        self.assertEqual((has["Type"], has["Restart"], has["RestartPreventExitStatus"]), (["notify"], ["on-failure"], ["2"]))
        self.assertEqual(has["ExecReload"], ["/bin/kill -HUP $MAINPID"])
        self.assertEqual(has["CapabilityBoundingSet"], [""])
        self.assertIn("WatchdogSec", has)
        self.assertIn(" run ", has["ExecStart"][0] + " ")

    def test_installed_for_the_program_beside_it(self):
        build = Path(os.environ.get("LAPSE_BUILD", ROOT / "build"))
        made = build / "packaging" / "lapse.service"
        prefix = subprocess.run(["meson", "introspect", "--buildoptions", str(build)], capture_output=True, text=True).stdout
        prefix = re.search(r'"name": "prefix".*?"value": "([^"]*)"|"value": "([^"]*)"[^}]*"name": "prefix"', prefix)
        where = next(g for g in prefix.groups() if g)
        self.assertTrue(settings(made)["ExecStart"][0].startswith(f"{where}/bin/lapse -f "), made.read_text())
        self.assertEqual(made.read_text().replace(f"{where}/bin/lapse", "/usr/bin/lapse"), UNIT.read_text())
        code, text = said("meson", "introspect", "--installed", str(build))
        self.assertRegex(text, r'lapse\.service": "[^"]*/systemd/system/lapse\.service"')


def group(name):
    """The system calls of a group of systemd's, with those of the groups in it."""
    code, text = said("systemd-analyze", "syscall-filter", "--no-pager", name)
    assert code == 0, text
    found = set()
    for word in re.findall(r"^ {4}(\S+)", text, re.M):
        if word.startswith("@"):
            found |= group(word)
        elif word != "#":
            found.add(word)
    return found


@every_engine
class Calls(Case):
    """The daemon really runs under the restrictions of its unit: it makes no call that they forbid."""
    CONTRACT = """
        schedulers: { main: { every: 100ms }, mine: { every: 100ms, exclusive: true, lease: 1s } }
        policies:
          a: { scheduler: main, table: a, expires: at_ms }
          b: { scheduler: mine, table: b, expires: at_ms }
        """

    def allowed(self):
        has = settings(UNIT)["SystemCallFilter"]
        yes, no = has[0].split(), has[1].removeprefix("~").split()
        calls = set().union(*map(group, yes)) - set().union(*map(group, no))
        self.assertGreater(len(calls), 100)
        self.assertNotIn("mount", calls)
        return calls

    def test_what_it_calls(self):
        for t in "ab":
            self.given(f"create table {t} (id integer primary key, at_ms bigint); create index {t}_at on {t}(at_ms)")
            self.insert(f"{t}(id, at_ms)", (1, 1), (2, 1))
        self.lapse(self.CONTRACT, "install", code=0)
        trace = new_path("trace")
        d = Daemon(self.db, self.CONTRACT, "--watch", binary=built("LAPSE_BUILD_PLAIN"),
                   wrap=("strace", "-f", "-qq", "-o", str(trace)))
        for t in "ab":
            eventually(lambda: not self.ids(t), 60, words=lambda: str(d))
        d.http("/metrics")
        d.http("/api/runs")
        child = int(Path(f"/proc/{d.pid}/task/{d.pid}/children").read_text().split()[0])
        os.kill(child, signal.SIGHUP)
        d.wait_for("contract_reloaded", 60)
        os.kill(child, signal.SIGTERM)
        d.stop(0)
        lines = [line.split(maxsplit=1)[1] for line in trace.read_text().splitlines()]
        calls = {m[1] for line in lines if (m := re.match(r"(\w+)\(", line))}
        self.assertGreater(len(calls), 30)
        # SQLite gives a journal its file's owner if it may: root may, the service may not
        forbidden = calls - self.allowed() - {"execve"} - ({"fchown"} if os.getuid() == 0 else set())
        self.assertEqual(forbidden, set(), [line for line in lines if line.split("(")[0] in forbidden][:5])
        self.assertEqual([x for x in lines if "PROT_EXEC" in x and "PROT_WRITE" in x], [])
        families = {m[1] for x in lines if (m := re.match(r"socket\((\w+),", x))}
        # the resolver asks which addresses the machine has, and does without an answer
        self.assertLessEqual(families - {"AF_NETLINK"}, set(settings(UNIT)["RestrictAddressFamilies"][0].split()))
        written = {m[1] for x in lines if (m := re.search(r'^open(?:at)?\(.*?"([^"]+)", [^)]*(?:O_WRONLY|O_RDWR|O_CREAT)', x))}
        place = str(getattr(self.db, "path", "/nowhere"))
        self.assertEqual({w for w in written if not w.startswith(place)} - {"/dev/null", "/dev/tty"}, set())
