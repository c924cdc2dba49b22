"""The schema of the log's lines tells good ones from bad ones. The suites of the daemon hold every line against it."""
import json
import unittest

from daemon import wrong_with

GOOD = {"time": "2026-01-02T03:04:05.123Z", "level": "info", "event": "main.lifecycle_pruned", "scheduler": "main",
        "message": "3 rows went", "now": "2026-01-02T03:04:05Z", "job": 3, "step": 0}


class Lines(unittest.TestCase):
    def test_good(self):
        for change in ({}, {"level": "debug", "job": 0}, {"event": "a.b.lifecycle_pruned", "scheduler": "a.b"}):
            self.assertIsNone(wrong_with(json.dumps({**GOOD, **change})), change)
        self.assertIsNone(wrong_with(json.dumps({
            "time": GOOD["time"], "level": "info", "event": "lapse.contract_reloaded", "message": "x", "changed": ["a", "b"]})))

    def test_bad(self):
        for change in ({"time": None}, {"time": "2026-01-02 03:04:05"}, {"level": "warning"}, {"level": "debug"},
                       {"job": 0}, {"job": "3"}, {"job": 1.5}, {"job": -1}, {"now": None}, {"now": "today"},
                       {"event": "lifecycle_pruned"}, {"event": "main.lifecycle_purged"}, {"scheduler": None},
                       {"message": None}, {"rows": {"job": 3}}, {"event": "main.lifecycle_tick_failed"}):
            line = {k: v for k, v in {**GOOD, **change}.items() if v is not None}
            self.assertIsNotNone(wrong_with(json.dumps(line)), line)
        self.assertIsNotNone(wrong_with("lapse: something went wrong"))
