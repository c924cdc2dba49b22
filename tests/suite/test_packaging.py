"""The unit file: what systemd itself says of it, and that it is installed for the program that is installed."""
import os
import re
import subprocess
import unittest
from pathlib import Path

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
