"""The host program in examples/: what its users see of a purge."""
import os
import subprocess
import unittest
from pathlib import Path

from harness import ROOT

BUILD = Path(os.environ.get("LAPSE_BUILD", ROOT / "build"))


def workflow(*commands):
    done = subprocess.run([BUILD / "example_workflow"], input="\n".join(commands) + "\n", text=True, timeout=30,
                          capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.splitlines()


class Workflow(unittest.TestCase):
    def test_it_can_be_queried_until_the_delay_is_over(self):
        self.assertEqual(
            workflow("start a ok ok", "query a", "advance 59000", "query a", "advance 1000", "query a"),
            ["a: status completed, output completed, 4 step keys, purge to come",
             "a: status completed, output completed, 4 step keys, purge to come",
             "60000 [Workflow] Purged data for a (completed)",
             "a: status -, output completed, 0 step keys"])

    def test_a_restart_takes_the_purge_back(self):
        self.assertEqual(
            workflow("start a ok", "advance 59000", "start a pause pause pause pause pause pause pause",
                     "advance 5000", "query a", "advance 64000", "query a"),
            ["a: status paused, output -, 8 step keys",
             "a: status paused, output -, 14 step keys"])

    def test_the_second_terminal_state_changes_nothing(self):
        self.assertEqual(
            workflow("start a ok", "advance 30000", "cancel a", "advance 30000"),
            ["a: nothing to cancel", "60000 [Workflow] Purged data for a (completed)"])

    def test_pauses_and_retries_share_the_alarm_with_the_purge(self):
        self.assertEqual(
            workflow("start a ok pause flaky ok", "query a", "advance 10000", "query a", "advance 4000", "query a",
                     "advance 60000"),
            ["a: status paused, output -, 6 step keys",
             "a: status retrying, output -, 7 step keys",
             "a: status completed, output completed, 8 step keys, purge to come",
             "74000 [Workflow] Purged data for a (completed)"])

    def test_failed_ones_stay_longer(self):
        self.assertEqual(
            workflow("start a bad", "start b pause", "cancel b", "advance 60000", "advance 3543000", "query a",
                     "advance 1000"),
            ["60000 [Workflow] Purged data for b (cancelled)",
             "a: status failed, output failed, 2 step keys, purge to come",
             "3604000 [Workflow] Purged data for a (failed)"])

    def test_it_is_a_small_program(self):
        self.assertLessEqual(len((ROOT / "examples" / "workflow.c").read_text().splitlines()), 300)


if __name__ == "__main__":
    unittest.main()
