"""Galera: a node that does not keep up makes the cluster hold its writers up; a sweep steps back for it."""
from galera_case import *


class FlowControl(ClusterTest):
    def held_up_ms(self):
        """How long the sweep's node was held up until now."""
        return int(self.cluster.nodes[0].status("flow_control_paused_ns")) / 1_000_000

    @again
    def test_a_node_that_does_not_keep_up(self):
        self.fill(2500)
        p = self.start(0, CONTRACT.replace("batch: 20", "batch: 5").replace(PACE, ""))
        self.until_left(p, 2490)
        for _ in range(3):
            release, before = self.hold_appliers(1, 2), self.held_up_ms()
            eventually(lambda: self.held_up_ms() > before + 700 or not p.running(), 60)
            release()
            if not p.running():
                raise TooSoon("a sweep that is held up")
            time.sleep(0.5)
        r = p.wait(300)
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, 2500), r)
        self.assertGreater(r.policy("job")["pace"]["waited_ms"].get("flow_control", 0), 100, r)
        self.all_is_right()

    def test_limits_of_lag_mean_nothing_here(self):
        self.fill(5)
        r = self.check(CONTRACT.replace(PACE, "pace: { lag: 5s }"))
        self.finding(r, "warning", "hold their writers up by themselves", policy="job")
