"""Exclusive schedulers: one sweeper at a time, by a lease in the database."""
import re
import signal
import sqlite3
import time

from harness import *

CONTRACT = """
    schedulers:
      one: { every: 5m, exclusive: true, lease: LEASE }
      two: { every: 5m, exclusive: true }
      any: { every: 5m }
    policies:
      a: { scheduler: one, table: a, expires: at_ms, batch: 5 }
      b: { scheduler: two, table: b, expires: at_ms }
      c: { scheduler: any, table: c, expires: at_ms }
      d: { scheduler: one, table: d, expires: at_ms }
    """
SHORT, LONG = CONTRACT.replace("LEASE", "1s"), CONTRACT.replace("LEASE", "1h")
OTHER = "elsewhere:1:00000001"


class Leases(Case):
    def setUp(self):
        super().setUp()
        if self.on_sqlite:
            self.db.execute("pragma journal_mode = wal")       # so that it can be looked at while it is written
        for t in "abcd":
            self.given(f"create table {t} (id integer primary key, at_ms bigint); create index {t}_at on {t}(at_ms)")
            self.insert(t, (1, 0), (2, MS + 1))

    def install(self):
        self.lapse(LONG, "install", code=0)

    def held(self, scheduler="one", seconds=3600, token=7):
        self.given(f"delete from lapse_lease where scheduler = '{scheduler}'; insert into lapse_lease(scheduler, token, "
                   f"owner, acquired_at, expires_at) values ('{scheduler}', {token}, '{OTHER}', {self.clock(-9)}, "
                   f"{self.clock(seconds)})")

    def break_in(self, p, act):
        """Between two batches: on SQLite back to back batches leave hardly a moment to another writer."""
        if not self.on_sqlite:
            return act()
        self.db.execute("pragma busy_timeout = 0")
        for _ in range(1000):
            p.signal(signal.SIGSTOP)
            try:
                return act()
            except sqlite3.OperationalError:
                pass
            finally:
                p.signal(signal.SIGCONT)
            time.sleep(0.003)
        self.fail("it was never between two batches")

    def row(self, scheduler="one"):
        return self.db.rows("select token, owner from lapse_lease where scheduler = ?", (scheduler,))

    def outcomes(self, contract=LONG, *names, code=0):
        r = self.sweep(contract, *names, code=code)
        return {p["policy"]: p["outcome"] for p in r.json["policies"]}

    def fill(self, rows=400):
        self.db.executemany("insert into a values (?, ?)", [(i, i) for i in range(10, 10 + rows)])

    def wait_for(self, sql, seconds=60):
        end = time.monotonic() + seconds
        while not (found := self.db.rows(sql)):
            self.assertLess(time.monotonic(), end, sql)
            time.sleep(0.005)
        return found


@every_engine
class Taking(Leases):
    def test_taken_and_handed_over(self):
        self.install()
        self.assertEqual(set(self.outcomes().values()), {"done"})
        for t in "abcd":
            self.left(t, 2)
        self.assertEqual(self.row(), [(1, None)])
        self.assertEqual(self.row("two"), [(1, None)])
        self.assertEqual(self.row("any"), [])
        self.outcomes()
        self.assertEqual(self.row(), [(2, None)], "taken once for both of its policies")

    def test_held_elsewhere(self):
        self.install()
        self.held()
        with self.untouched_tables("ad"):
            self.assertEqual(self.outcomes(), {"a": "held_elsewhere", "b": "done", "c": "done", "d": "held_elsewhere"})
        self.assertEqual(self.row(), [(7, OTHER)])
        self.left("b", 2)
        self.left("c", 2)

    def untouched_tables(self, names):
        case = self

        class Same:
            def __enter__(self):
                self.was = [case.db.rows(f"select * from {t}") for t in names]

            def __exit__(self, *_):
                case.assertEqual([case.db.rows(f"select * from {t}") for t in names], self.was)
        return Same()

    def test_what_is_said(self):
        self.install()
        self.held()
        p = self.sweep(LONG, "a").policy("a")
        self.assertEqual((p["held_by"]["scheduler"], p["held_by"]["owner"]), ("one", OTHER))
        self.assertRegex(p["held_by"]["until"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
        self.assertNotIn("held_by", self.sweep(LONG, "b").policy("b"))
        r = self.lapse(LONG, "sweep", code=0)
        until = re.search(r"the lease of 'one' is held by " + OTHER + r" until (\d{4}-\S+ \S+) UTC", " ".join(r.out.split()))
        self.assertTrue(until, r)
        self.assertIn("held elsewhere", r.out)
        self.assertIn("2 policies held elsewhere", r.out)

    def test_plan_check_and_explain_do_not_ask(self):
        self.install()
        self.held()
        with self.untouched():
            self.assertEqual(self.plan(LONG).policy("a")["rows"], 1)
            self.no_finding(self.check(LONG, code=0), "lease")
            self.lapse(LONG, "explain", "a", "1", code=0)

    def test_expired_it_is_taken_over_with_the_next_token(self):
        self.install()
        self.held(seconds=-1)
        self.assertEqual(self.outcomes(LONG, "a"), {"a": "done"})
        self.assertEqual(self.row(), [(8, None)])
        self.left("a", 2)

    def test_one_that_ends_soon_is_still_held(self):
        self.install()
        self.held(seconds=30)
        self.assertEqual(self.outcomes(LONG, "a"), {"a": "held_elsewhere"})

    def test_names_are_exact(self):
        self.install()
        for name in ("One", "one ", "ONE", "on", "two"):
            self.held(name)
        self.assertEqual(self.outcomes(LONG, "a", "b"), {"a": "done", "b": "held_elsewhere"})

    def test_odd_names(self):
        self.install()
        contract = LONG.replace("one", "\"it's {1} \\\"ünï\\\"; --\"")
        self.assertEqual(self.outcomes(contract, "a"), {"a": "done"})
        self.assertEqual(self.row("it's {1} \"ünï\"; --"), [(1, None)])

    def test_a_disabled_policy_takes_none(self):
        self.install()
        self.assertEqual(self.outcomes(LONG.replace("batch: 5", "enabled: false"), "a"), {"a": "disabled"})
        self.assertEqual(self.row(), [])

    def test_the_report_keeps_the_order_of_the_file(self):
        self.install()
        self.assertEqual(list(self.outcomes()), ["a", "b", "c", "d"])


@every_engine
class Without(Leases):
    def test_not_installed(self):
        self.assertEqual(self.outcomes(code=3), {"a": "refused", "b": "refused", "c": "done", "d": "refused"})
        self.left("a", 1, 2)
        self.left("c", 2)
        self.assertIn("run lapse install", self.sweep(LONG, "a", code=3).policy("a")["error"])
        found = self.check(LONG, code=3)
        self.finding(found, "error", "scheduler 'one'", "lease", "run lapse install", policy=None)
        self.assertEqual(sum("lease" in f["what"] for f in found.json["findings"]), 2, found)   # schedulers, not policies
        self.assertEqual(self.plan(LONG).policy("a")["rows"], 1)

    def test_of_an_earlier_version(self):
        self.install()
        self.forget_who()
        self.given("drop table lapse_lease; drop table lapse_run; drop table lapse_purge; delete from lapse_version where version > 1")
        p = self.sweep(LONG, "a", "c", code=3)
        self.assertEqual((p.policy("a")["outcome"], p.policy("c")["outcome"]), ("refused", "done"))
        self.assertIn("run lapse install", p.policy("a")["error"])
        self.finding(self.check(LONG, code=3), "error", "earlier version", policy=None)
        self.install()
        self.assertEqual(self.outcomes(LONG, "a"), {"a": "done"})


@every_engine
class Ending(Leases):
    def test_a_stop_hands_it_over(self):
        self.install()
        self.fill(20000)
        p = Lapse.start(self.db, LONG, "sweep", "a", "d", "--json", "--now", NOW)
        self.wait_for("select 1 from lapse_lease where owner is not null")
        p.signal(signal.SIGTERM)
        r = p.wait()
        self.assertEqual((r.code, r.policy("a")["outcome"], r.policy("d")["outcome"]), (6, "stopped", "stopped"))
        self.assertEqual(self.row(), [(1, None)])

    def test_a_failure_hands_it_over(self):
        self.install()
        if self.on_postgres:
            self.given("create function no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$; "
                       "create trigger no before delete on a for each row execute function no()")
        else:
            self.db.script("create trigger no before delete on a begin select raise(abort, 'no'); end")
        self.fill(200)
        self.assertEqual(self.outcomes(LONG, "a", "d", code=1), {"a": "failed", "d": "done"})
        self.assertEqual(self.row(), [(1, None)])

    def test_killed_it_ends_by_itself(self):
        self.install()
        self.fill(20000)
        p = Lapse.start(self.db, SHORT, "sweep", "a", "--json", "--now", NOW)
        self.wait_for("select 1 from lapse_lease where owner is not null")
        p.kill()
        p.wait(signals=(9,))
        token, owner = self.row()[0]
        self.assertEqual(token, 1)
        if owner:       # it was not faster
            self.assertIn(f":{p.pid}:", owner)
            time.sleep(1.2)
            self.assertEqual(self.outcomes(SHORT, "a"), {"a": "done"})
            self.assertEqual(self.row(), [(2, None)])
            self.left("a", 2)

    def test_a_lease_that_is_lost_in_mid_course(self):
        self.install()
        self.fill(20000)
        p = Lapse.start(self.db, LONG, "sweep", "a", "d", "--json", "--now", NOW)
        self.wait_for("select 1 from lapse_lease where owner is not null")
        self.break_in(p, self.held)
        r = p.wait()
        here = self.db.rows("select count(*) from a")[0][0]
        self.assertEqual((r.code, r.policy("a")["outcome"]), (1, "failed"), r)
        self.assertIn(f"lost to {OTHER}", r.policy("a")["error"])
        self.assertEqual(r.policy("a")["rows"], 20002 - here)
        self.assertEqual(r.policy("d")["outcome"], "held_elsewhere")
        self.left("d", 1, 2)
        self.assertEqual(self.row(), [(7, OTHER)])

    def test_all_in_one_is_fenced_too(self):
        self.install()
        self.fill(20000)
        p = Lapse.start(self.db, LONG.replace("batch: 5", "batch: null"), "sweep", "a", "--json", "--now", NOW)
        self.wait_for("select 1 from lapse_lease where owner is not null")
        self.held()
        r = p.wait()
        gone = 20002 - self.db.rows("select count(*) from a")[0][0]
        self.assertEqual(r.policy("a")["rows"], gone, r)
        self.assertIn((r.policy("a")["outcome"], gone), (("failed", 0), ("done", 20001)))


@every_engine
class Many(Leases):
    @again
    def test_two_at_once(self):
        self.install()
        self.fill(4000)
        first = Lapse.start(self.db, LONG, "sweep", "a", "--json", "--now", NOW)
        self.wait_for("select 1 from lapse_lease where owner is not null")
        second = self.sweep(LONG, "a")
        first = first.wait()
        if (second.policy("a")["outcome"], second.policy("a")["rows"]) == ("done", 0):
            raise TooSoon("the first was over")
        self.assertEqual((first.code, first.policy("a")["outcome"], first.policy("a")["rows"]), (0, "done", 4001), first)
        self.assertEqual((second.policy("a")["outcome"], second.policy("a")["rows"]), ("held_elsewhere", 0))

    def test_six_at_once_again_and_again(self):
        """Each of them gets a token of its own or none, and together they report what went."""
        self.install()
        self.fill(300)
        taken, gone = 0, 0
        for _ in range(3):
            done = [p.wait() for p in [Lapse.start(self.db, LONG, "sweep", "a", "--json", "--now", NOW)
                                       for _ in range(6)]]
            self.assertEqual([r.code for r in done], [0] * 6, "\n".join(map(str, done)))
            entries = [r.policy("a") for r in done]
            taken += sum(e["outcome"] == "done" for e in entries)
            gone += sum(e["rows"] for e in entries)
            self.assertGreater(taken, 0)
        self.assertEqual(self.row(), [(taken, None)])
        self.assertEqual(gone, 301)
        self.left("a", 2)


class Rights(Leases, PostgresTest):
    def test_one_that_is_missing(self):
        self.install()
        self.given("drop role if exists sweeper; create role sweeper login; grant select, delete, update on a, c to sweeper; "
                   "grant select on lapse_version, lapse_pause to sweeper; grant select, insert, delete on lapse_fuse "
                   "to sweeper; grant select, insert on lapse_lease to sweeper")
        dsn = postgres().dsn(self.db.name, user="sweeper")
        r = lapse(dsn, LONG, "sweep", "a", "c", "--json", "--now", NOW)
        self.assertEqual((r.code, r.policy("a")["outcome"], r.policy("c")["outcome"]), (3, "refused", "done"), r)
        self.assertIn("UPDATE on public.lapse_lease", r.policy("a")["error"])
        self.given("grant update on lapse_lease to sweeper")
        self.assertEqual(lapse(dsn, LONG, "sweep", "a", "--now", NOW).code, 0)
        self.given("drop owned by sweeper; drop role sweeper")
