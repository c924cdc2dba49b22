"""pause and resume: brakes kept in the database, read in every batch."""
import json
import time

from harness import *

CONTRACT = """
    schedulers:
      often: { every: 1m }
      rarely: { every: 1h }
      both: { every: 1h }
    policies:
      a: { scheduler: often, table: a, expires: at_ms }
      b: { scheduler: rarely, table: b, expires: at_ms }
      both: { scheduler: often, table: c, expires: at_ms }
      d: { scheduler: both, table: d, expires: at_ms }
    """


class Brakes(Case):
    def setUp(self):
        super().setUp()
        for t in "abcd":
            self.given(f"create table {t} (id integer primary key, at_ms bigint)")
            self.insert(t, (1, 0))
        self.lapse(CONTRACT, "install", code=0)

    def say(self, *args, code=0):
        return self.lapse(CONTRACT, *args, "--json", code=code)

    def outcomes(self, code):
        r = self.sweep(CONTRACT, code=code)
        return {p["policy"]: p["outcome"] for p in r.json["policies"]}

    def paused(self, *names):
        outcomes = self.outcomes(6 if names else 0)
        self.assertEqual(sorted(p for p, o in outcomes.items() if o == "paused"), sorted(names))
        self.assertEqual({o for o in outcomes.values()} - {"done", "paused"}, set())


@every_engine
class Names(Brakes):
    def test_everything(self):
        r = self.say("pause")
        self.assertEqual((r.json["name"], r.json["until"]), (None, None))
        with self.untouched():
            self.paused("a", "b", "both", "d")
        self.assertTrue(self.say("resume").json["resumed"])
        self.paused()
        for t in "abcd":
            self.left(t)

    def test_a_policy(self):
        self.say("pause", "a")
        self.paused("a")
        self.left("a", 1)
        self.left("b")
        self.say("resume", "a")
        self.paused()

    def test_a_scheduler(self):
        self.say("pause", "often")
        self.paused("a", "both")

    def test_a_name_of_both(self):
        r = self.lapse(CONTRACT, "pause", "both", code=0)
        self.assertIn("policy and scheduler 'both'", r.out)
        self.paused("both", "d")

    def test_the_scheduler_that_nobody_writes(self):
        contract = "policies: {a: {table: a, expires: at_ms}}"
        self.lapse(contract, "pause", "default", code=0)
        self.assertEqual(self.sweep(contract, code=6).policy("a")["outcome"], "paused")

    def test_an_unknown_name(self):
        with self.untouched():
            self.assertIn("did you mean 'rarely'", self.say("pause", "rarly", code=2).json["error"])
            self.assertIn("no policy and no scheduler", self.say("resume", "zzzzzz", code=2).json["error"])
            self.say("pause", "a", "b", code=2)
            self.say("pause", "", code=2)

    def test_a_brake_on_a_policy_that_is_gone_can_be_released(self):
        self.say("pause", "a")
        other = "policies: {b: {table: b, expires: at_ms}}"
        r = self.lapse(other, "resume", "a", "--json", code=0)
        self.assertTrue(r.json["resumed"])
        self.paused()

    def test_names_compare_exactly(self):
        self.db.execute("insert into lapse_pause(name, paused_at) values (?, ?)", ("A", iso(MS)))
        self.db.execute("insert into lapse_pause(name, paused_at) values (?, ?)", ("a ", iso(MS)))
        self.paused()

    def test_odd_names(self):
        for name in ("it's", 'say "x"', "x; drop table a", "ünï", "50%", "{1}"):
            contract = f"policies: {{{json.dumps(name)}: {{table: a, expires: at_ms}}}}"
            self.lapse(contract, "pause", name, code=0)
            self.assertEqual(self.sweep(contract, code=6).policy(name)["outcome"], "paused")
            self.lapse(contract, "resume", name, code=0)
        self.left("a", 1)

    def test_resume_without_a_name_leaves_named_ones(self):
        self.say("pause")
        self.say("pause", "a")
        self.say("pause", "rarely")
        r = self.say("resume")
        self.assertEqual(r.json["still_paused"], ["a", "rarely"])
        self.assertIn("still: policy 'a'", self.lapse(CONTRACT, "resume", code=0).out)
        self.paused("a", "b")

    def test_resume_of_what_is_not_paused(self):
        r = self.say("resume", "a")
        self.assertFalse(r.json["resumed"])
        self.assertFalse(self.say("resume").json["resumed"])

    def test_a_policy_that_is_refused_stays_refused(self):
        self.say("pause")
        r = self.sweep("policies: {a: {table: a, expires: at_ms}, x: {table: nowhere, expires: at_ms}}", code=3)
        self.assertEqual([p["outcome"] for p in r.json["policies"]], ["paused", "refused"])


@every_engine
class Ends(Brakes):
    def test_for_a_while(self):
        r = self.say("pause", "a", "--for", "2h")
        self.assertRegex(r.json["until"], r"^\d{4}-")
        self.paused("a")

    def test_it_ends_by_itself(self):
        self.say("pause", "--for", "1h")
        self.paused("a", "b", "both", "d")
        self.say("pause", "--for", "1s")
        time.sleep(1.2)
        self.paused()

    def test_an_expired_brake_is_none(self):
        self.say("pause", "a", "--for", "1ms")
        time.sleep(0.05)
        self.assertNotIn("paused", self.plan(CONTRACT).policy("a"))
        self.assertFalse(self.say("resume", "a").json["resumed"])
        self.assertEqual(self.db.rows("select name from lapse_pause where released_at is null"), [])

    def test_one_that_was_released_does_not_come_back_with_the_clock(self):
        self.say("pause", "a", "--for", "1h")
        self.say("resume", "a")
        self.given(f"update lapse_pause set until = {self.clock(3600)}")      # as a server says it whose clock is behind
        self.paused()

    def test_expired_brakes_are_cleared_away(self):
        self.say("pause", "a", "--for", "1ms")
        time.sleep(0.05)
        self.say("pause", "b")
        self.assertEqual(self.db.rows("select name from lapse_pause where released_at is null"), [("b",)])

    def test_a_second_pause_replaces_the_first(self):
        self.say("pause", "a", "--for", "1ms")
        self.say("pause", "a")
        time.sleep(0.05)
        self.paused("a")
        self.say("pause", "a", "--for", "1ms")
        time.sleep(0.05)
        self.paused()

    def test_bad_lengths(self):
        with self.untouched():
            for length in ("2", "now", "never", "-1h", "1h x", "", "0s", "999999999d", "1 fortnight"):
                self.say("pause", "a", f"--for={length}", code=2)
        self.say("resume", "--for", "2h", code=2)

    def test_a_time_written_by_hand(self):
        self.db.execute("insert into lapse_pause (name, until, paused_at) values ('a', ?, ?)", ("2999-01-01 00:00:00", "2024-01-01 00:00:00"))
        self.db.execute("insert into lapse_pause (name, until, paused_at) values ('b', ?, ?)", ("2024-01-01 00:00:00", "2024-01-01 00:00:00"))
        self.paused("a")

    def test_beyond_what_the_tables_hold(self):
        if self.on_mariadb:
            self.assertIn("up to 2038-01-19", self.say("pause", "a", "--for", "5000d", code=2).said)
            self.paused()
        else:
            self.say("pause", "a", "--for", "5000d")
            self.paused("a")

    def test_a_time_that_means_nothing_does_not_end(self):
        self.db.execute("insert into lapse_pause (name, until, paused_at) values ('a', ?, ?)",
                        (self.per_engine(postgres="-infinity", sqlite="soon", mariadb="0000-00-00"), "2024-01-01 00:00:00"))
        self.paused("a")

    def test_pausing_at_once(self):
        running = [Lapse.start(self.db, CONTRACT, "pause", "a") for _ in range(6)]
        done = [p.wait() for p in running]
        self.assertEqual([r.code for r in done], [0] * 6, "\n".join(map(str, done)))
        self.assertEqual(self.db.rows("select name from lapse_pause where released_at is null"), [("a",)])


@every_engine
class Said(Brakes):
    def test_by_plan(self):
        self.say("pause", "often", "--for", "1h")
        r = self.plan(CONTRACT)
        self.assertEqual(r.policy("a")["paused"]["by"], "often")
        self.assertIsNotNone(r.policy("a")["paused"]["until"])
        self.assertEqual(r.policy("a")["rows"], 1)
        self.assertNotIn("paused", r.policy("b"))
        self.assertIn("lapse resume often", self.lapse(CONTRACT, "plan", code=0).out)

    def test_by_check(self):
        self.say("pause")
        self.finding(self.check(CONTRACT, code=0), "warning", "paused since", policy="b")

    def test_by_sweep(self):
        self.say("pause", "a")
        self.assertIn("lapse resume a", self.sweep(CONTRACT, code=6).policy("a")["error"])

    def test_to_people(self):
        self.assertIn("everything is paused until 'lapse resume'", self.lapse(CONTRACT, "pause", code=0).out)
        self.assertIn("the brake on everything is released", self.lapse(CONTRACT, "resume", code=0).out)


@every_engine
class MidCourse(Brakes):
    SLOW = "policies: {a: {table: a, expires: at_ms, batch: 1}}"

    def setUp(self):
        super().setUp()
        self.db.execute("delete from a")
        self.insert("a", *[(n, 0) for n in range(1, 101)])
        self.slow("a", 0.03)

    @again
    def test_a_second_process_stops_it(self):
        p = Lapse.start(self.db, self.SLOW, "sweep", "--now", NOW, "--json")
        deadline = time.monotonic() + 30
        while len(self.ids("a")) > 97:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.lapse(self.SLOW, "pause", "a", code=0)
        left = len(self.ids("a"))
        r = p.wait()
        if r.code == 0:
            raise TooSoon("a sweep that is paused")
        self.assertEqual((r.code, r.policy("a")["outcome"]), (6, "paused"), r)
        gone = r.policy("a")["rows"]
        self.assertGreater(gone, 0)
        self.assertEqual(len(self.ids("a")), 100 - gone)
        self.assertLessEqual(left - len(self.ids("a")), 1, "at most the batch that was under way")


class OneTransaction(Brakes, PostgresTest):
    @again
    def test_all_is_rolled_back(self):
        self.db.execute("delete from a")
        self.insert("a", *[(n, 0) for n in range(1, 6001)])
        self.given("""create function slow() returns trigger language plpgsql as $$ begin
                          if old.id = 1 then perform pg_sleep(2); end if; return old; end $$;
                      create trigger slow before delete on a for each row execute function slow()""")
        contract = "policies: {a: {table: a, expires: at_ms, batch: null}}"
        p = Lapse.start(self.db, contract, "sweep", "--now", NOW, "--json")
        deadline = time.monotonic() + 30
        while not self.db.rows("select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.lapse(contract, "pause", code=0)
        r = p.wait()
        if r.code == 0:
            raise TooSoon("a sweep that is paused")
        self.assertEqual((r.code, r.policy("a")["outcome"], r.policy("a")["rows"]), (6, "paused", 0), r)
        self.assertEqual(len(self.ids("a")), 6000)
