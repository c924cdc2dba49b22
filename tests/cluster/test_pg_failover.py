"""PostgreSQL: the primary is killed and its standby promoted, with the program at work."""
import random
import signal

from pg_case import *

import random_rounds
import round_words
import rounds

N = 1200


class Failover(PairTest):
    def in_mid_sweep(self, share):
        """At whatever moment: nothing that must stay goes, and what is counted is what went."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * share)
        self.pair.fail_over()
        self.went_on(p.wait())

    @again
    def test_early_in_mid_sweep(self):
        self.in_mid_sweep(0.9)

    @again
    def test_late_in_mid_sweep(self):
        self.in_mid_sweep(0.4)

    @again
    def test_between_two_statements(self):
        """In a transaction that has not come to its COMMIT: nothing is in doubt, every row is counted once."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.held_up(p)
        self.pair.caught_up()
        self.pair.fail_over()
        r = p.wait()
        entry = self.went_on(r)
        self.assertEqual((r.code, entry["rows"], entry["unknown"]), (0, N, 0), r)
        self.assertEqual(counts(entry["tables"]), {"job": N, "step": 2 * N}, r)
        self.assertGreater(entry["retries"], 0)

    @again
    def test_what_was_not_replicated_is_back(self):
        """Asynchronous replication loses the last commits. The rows are there again, and go again; they are counted both
        times, because they went both times."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.pair.cut()
        self.until_left(p, self.due_left() - 100)
        self.held_up(p)
        gone = N - self.due_left()
        back = self.db.on_standby(f"select count(*) from job where at_ms <= {MS}")[0][0]
        self.assertGreaterEqual(back, N - gone + 100)
        self.pair.fail_over()
        r = p.wait()
        entry = self.went_on(r)
        self.assertEqual((r.code, entry["rows"], entry["unknown"]), (0, gone + back, 0), r)

    @again
    def test_too_long_for_the_sweep(self):
        """Nobody is promoted for as long as it may wait: it ends with 5, and the next one goes on."""
        self.fill(N)
        p = self.start(CONTRACT.replace("lock: 20s", "lock: 20s, away: 2s"))
        self.until_left(p, N * 0.8)
        self.pair.kill()
        r = p.wait()
        if r.code == 0:
            raise TooSoon("a sweep of the primary that was killed")
        self.assertEqual(r.code, 5, r)
        entry = r.policy("job")
        self.assertRegex(entry["error"], "read-only")
        self.pair.promote()
        self.db.moved()
        self.whole()
        self.assertLessEqual(entry["rows"] + entry["unknown"], N)
        self.assertGreater(entry["rows"], 0)
        self.sweep(CONTRACT, now=None)
        self.all_is_right()

    @again
    def test_switched_over(self):
        """Orderly: the primary is shut down, the other promoted, the first comes back as its standby. Each row counts once."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.db.close()
        self.pair.primary.stop(signal.SIGINT)
        self.pair.promote()
        self.pair.rejoin()
        r = p.wait()
        entry = self.went_on(r)
        self.assertEqual(entry["rows"] + entry["unknown"] >= N, True, r)
        self.assertLessEqual(entry["rows"], N, r)

    def test_all_in_one_transaction(self):
        """It has deleted some of it, and waits for a row."""
        self.fill(N)
        holder = self.db.connect()
        self.addCleanup(holder.close)
        with holder.cursor() as c:
            c.execute("begin; select 1 from step where job_id = 7 for update")
        p = self.start(CONTRACT.replace("batch: 20", "batch: null").replace(f", {PACE}", ""))
        self.until(p, "wait_event_type = 'Lock' and query like 'DELETE%'")
        self.pair.fail_over()
        r = p.wait()
        entry = self.went_on(r)
        self.assertIn(entry["rows"], (N, 0), r)


class Synchronous(PairTest):
    synchronous = True

    @again
    def test_nothing_is_lost(self):
        """What the sweep counted is gone on the one that was promoted."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.6)
        self.pair.fail_over()
        r = p.wait()
        entry = self.went_on(r)
        self.assertLessEqual(entry["rows"], N, r)
        self.assertLessEqual(N, entry["rows"] + entry["unknown"], r)

    @again
    def test_a_commit_without_an_answer(self):
        """The COMMIT waits for the standby, whose answer never comes. Its rows are looked up. If the standby never heard of
        it, they are still there, and go now; if only its answer was cut off, they are gone. Each counts once."""
        self.fill(N)
        p = self.start()
        self.until_left(p, N * 0.8)
        self.pair.cut()
        self.until(p, "wait_event = 'SyncRep'")
        self.pair.fail_over()
        r = p.wait()
        entry = self.went_on(r)
        self.assertEqual((r.code, entry["rows"], entry["unknown"]), (0, N, 0), r)

    @again
    def test_asked_to_stop_at_such_a_commit(self):
        """A second time: the server is told not to wait, and answers that it has committed, here. So it counts."""
        self.fill(N)
        with Daemon(self.db, CONTRACT) as d:
            eventually(lambda: self.due_left() < N * 0.8, every=0.002)
            self.pair.cut()
            waits = lambda: self.pair.primary.ask("select 1 from pg_stat_activity where wait_event = 'SyncRep'")
            eventually(lambda: waits() or not self.due_left())
            if not waits():
                raise TooSoon("a COMMIT that waits for the standby")
            d.signal(signal.SIGTERM)
            time.sleep(0.4)
            d.stop()
        gone = sum(x["job"] for x in d.said("lifecycle_pruned"))
        self.assertEqual(gone, N - self.due_left(), d)
        self.whole()


class ByTheOracle(PairTest):
    """Random schemas, rows and policies; the primary changes while they are swept."""
    settings = {"max_locks_per_transaction": "256"}
    GROUPS = 5 if THOROUGH else 1

    @again
    def test_rounds(self):
        on, rng, interrupted = random_rounds.OnPostgres, random.Random(7), 0
        for group in range(self.GROUPS):
            seeds = range(3_000_000 + group * rounds.GROUP, 3_000_000 + (group + 1) * rounds.GROUP)
            played = [rounds.Round("postgres", s) for s in seeds]
            if group:
                self.pair.rejoin()
                self.pair.wait_for()
                self.db = self.pair.fresh()
            on.load(self.db, played)
            self.pair.caught_up()
            contract = contract_file(self.db, "policies:\n" + "".join(r.contract_part() for r in played))
            now = round_words.iso(played[0].now)
            p = Lapse.start(self.db, contract, "sweep", "--json", "--now", now, env=random_rounds.SANITIZER)
            eventually(lambda: not p.running() or self.pair.primary.ask(
                "select 1 from pg_stat_activity where application_name = 'lapse' and xact_start is not null"), every=0.002)
            time.sleep(rng.uniform(0, 0.4))
            interrupted += p.running()
            self.pair.fail_over()
            r = p.wait()
            self.assertIn(r.code, (0, 1, 3, 5), r)
            self.db.moved()
            for _ in range(20):
                swept = lapse(self.db, contract, "sweep", "--json", "--now", now, env=random_rounds.SANITIZER)
                self.assertIn(swept.code, (0, 3), swept)
                if not any(t["rows"] for e in swept.json["policies"] for t in e["tables"]):
                    break
            for one in played:
                found = on.rows(self.db, one)
                wrong = random_rounds.difference(random_rounds.as_rows(one.at_last), found,
                                                 ("gone or changed wrongly", "should be gone"))
                self.assertFalse(wrong, random_rounds.told(one, wrong))
        if not interrupted:
            raise TooSoon("a sweep during which a failover came")
