"""PostgreSQL with a streaming replica: a sweep waits while it is behind, says so, and goes on."""
from pg_case import *

PACED = "policies: {{ job: {{ table: job, expires: at_ms, batch: 20, with: [ step(job_id) ], pace: {} }} }}"
BYTES = PACED.format("{ lag_bytes: 2000 }")


class Lag(PairTest):
    def setUp(self):
        super().setUp()
        self.fill(400)

    def stand_still(self):
        self.pair.standby.admin("select pg_wal_replay_pause()")
        eventually(lambda: self.pair.standby.ask("select pg_get_wal_replay_pause_state()")[0][0] == "paused")

    def behind(self, least):
        eventually(lambda: self.pair.primary.ask(
            f"select pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) > {least} from pg_stat_replication")[0][0],
            words="the standby is behind")

    def holds(self, p):
        """It runs and deletes nothing."""
        eventually(lambda: not p.running() or self.waits(), 60, words="it waits")
        def settled():      # a batch that was under way when the limit was passed may still have gone
            before = self.due_left()
            time.sleep(2.5)
            return self.due_left() == before or not p.running()

        eventually(settled, 60, words="it waits")
        self.assertTrue(p.running(), "it did not wait")
        return self.due_left()

    def waits(self):
        return self.pair.primary.ask("select 1 from pg_stat_activity where application_name = 'lapse' and state = 'idle'")

    def goes_on(self, p):
        self.pair.standby.admin("select pg_wal_replay_resume()")
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["outcome"]), (0, "done"), r)
        self.assertGreater(r.policy("job")["pace"]["waited_ms"]["lag"], 500, r)
        self.all_is_right()

    def test_in_bytes(self):
        self.stand_still()
        self.given("update step set job_id = job_id")
        self.behind(2000)
        p = self.start(BYTES)
        self.assertEqual(self.holds(p), 400)
        self.goes_on(p)

    def test_what_the_sweep_itself_writes_counts(self):
        self.stand_still()
        p = self.start(PACED.format("{ lag_bytes: 2000, rows_per_second: 100 }"))
        eventually(lambda: self.due_left() < 400 or not p.running())
        left = self.holds(p)
        self.assertGreater(left, 0)
        self.goes_on(p)

    def test_in_time(self):
        """The server goes on to report the delay of the last thing that was replayed."""
        self.stand_still()
        p = self.start(PACED.format("{ lag: 1s, rows_per_second: 100 }"))
        eventually(lambda: self.due_left() < 400 or not p.running())
        time.sleep(3)
        left = self.holds(p)
        self.assertGreater(left, 0)
        self.goes_on(p)

    def test_without_a_limit_it_goes_on(self):
        self.stand_still()
        r = self.start(PACED.format("{ target: 1s }")).wait()
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, 400), r)

    def test_one_that_is_away_counts_by_its_slot(self):
        self.pair.primary.admin("select pg_create_physical_replication_slot('west', true)")
        self.given("update step set job_id = job_id")
        p = self.start(BYTES)
        self.assertEqual(self.holds(p), 400)
        p.signal(SIGTERM)
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["outcome"], r.policy("job")["pace"]["reason"]), (6, "stopped", "lag"), r)
        self.pair.primary.admin("select pg_drop_replication_slot('west')")
        self.assertEqual(self.start(BYTES).wait().policy("job")["rows"], 400)

    def test_what_cannot_be_seen_is_waited_for_and_said(self):
        self.given("create role sweeper login; grant all on job, step to sweeper")
        dsn = self.pair.primary.dsn(self.db.name, user="sweeper")
        r = lapse(dsn, BYTES, "check", "--json")
        self.finding(r, "error", "how far replicas are behind is not known: this user may not see it", policy="job")
        self.assertIn("GRANT pg_read_all_stats TO sweeper", r.out)
        p = self.start(BYTES, dsn)
        self.assertEqual(self.holds(p), 400)
        self.pair.primary.admin("grant pg_read_all_stats to sweeper")
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, 400), r)
        self.assertGreater(r.policy("job")["pace"]["waited_ms"]["lag"], 500, r)
        r = lapse(dsn, PACED.format("{ target: 1s }"), "check", "--json")
        self.no_finding(r, "replicas")
        self.pair.primary.admin("revoke pg_read_all_stats from sweeper")
        r = lapse(dsn, PACED.format("{ target: 1s }"), "check", "--json")
        self.finding(r, "note", "sweeps ignore it then")
        self.assertEqual(lapse(dsn, PACED.format("{ target: 1s }"), "sweep", "--json").code, 0)

    def test_a_daemon_says_so_and_goes_on(self):
        self.stand_still()
        self.given("update step set job_id = job_id")
        self.behind(2000)
        contract = "schedulers: { main: { every: 1h } }\n" + BYTES
        self.lapse(contract, "install", code=0)
        with Daemon(self.db, contract) as d:
            said = d.wait_for("main.lifecycle_paced", 60, level="info")
            self.assertEqual((said["policy"], said["reason"]), ("job", "lag"), d)
            self.assertRegex(said["message"], r"the replica '.*' is \d+ (bytes|kB|MB).* behind")
            eventually(lambda: d.metric("lapse_pace_wait_seconds_total", "main", "job", "lag") > 5)
            self.assertEqual(self.due_left(), 400)
            self.pair.standby.admin("select pg_wal_replay_resume()")
            d.wait_for("main.lifecycle_pruned", 60, job=400)
