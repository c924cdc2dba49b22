"""The benchmark still runs: every case on every engine, small. What it measures so says nothing."""
import os
import re
import subprocess
import unittest

from harness import *


class Bench(unittest.TestCase):
    def test_every_case(self):
        done = subprocess.run(["/usr/bin/python3", "-B", str(ROOT / "bench" / "bench.py"), "--rows", "2000", "--repeats", "1",
                               "--policies", "20", "--seconds", "2", "--ticks", "200", "--report"], capture_output=True, text=True, timeout=300, env={**os.environ, "LAPSE": program()})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = re.findall(r"^\| (?!daemon)([\w-]+) \| (sqlite|postgresql) \| .* \| [0-9.]+ \| ≤ [0-9.]+ \|$", done.stdout, re.M)
        self.assertEqual(len(rows), 2 * len({case for case, _ in rows}), done.stdout)
        self.assertGreaterEqual(len(rows), 6, done.stdout)
        daemon = re.findall(r"^\| daemon \| (sqlite|postgresql) \| .* \| [0-9.]+ \| ≤ [0-9.]+ \|$", done.stdout, re.M)
        self.assertEqual(len(daemon), 10, done.stdout)

    def test_a_case_that_is_not_there(self):
        done = subprocess.run(["/usr/bin/python3", "-B", str(ROOT / "bench" / "bench.py"), "orphan"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there are orphans, cap-idle", done.stderr)
