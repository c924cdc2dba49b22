"""limits: a run that would delete too much deletes nothing, says so, and stays stopped until lapse ack."""
import signal
import sys
import time

from harness import *

sys.path.insert(0, str(ROOT / "tests" / "faults"))
from proxy import Proxy


class Fuse(Case):
    def setUp(self):
        super().setUp()
        self.given("create table s (id integer primary key, at_ms bigint, kind text)")
        self.given("create index s_at on s(at_ms, id)")
        self.lapse("policies: {s: {table: s, expires: at_ms}}", "install", code=0)

    def rows(self, due, others=0):
        self.insert("s", *[(n, 0, "x") for n in range(1, due + 1)])
        self.insert("s", *[(n, MS + 1, "x") for n in range(100001, 100001 + others)])

    @staticmethod
    def contract(limits="rows: 5", more=""):
        return f"policies: {{s: {{table: s, expires: at_ms, limits: {{{limits}}}{more}}}}}"

    def holds(self, contract, gone):
        r = self.sweep(contract)
        self.assertEqual((r.policy("s")["outcome"], r.policy("s")["rows"]), ("done", gone), r)
        return r

    def trips(self, contract, gone=0, **how):
        before = self.db.rows("select count(*) from s")[0][0]
        r = self.sweep(contract, code=4, **how)
        self.assertEqual((r.policy("s")["outcome"], r.policy("s")["rows"]), ("fuse", gone), r)
        self.assertEqual(self.db.rows("select count(*) from s"), [(before - gone,)])
        self.assertIn("lapse ack s", r.policy("s")["error"])
        return r

    def ack(self, contract, *names, code=0):
        return self.lapse(contract, "ack", *(names or ["s"]), "--json", code=code)

    def fuse(self):
        return self.db.rows("select policy, due_rows, most_rows, acked_at is not null from lapse_fuse where policy_hash <> ''")

    def spawn_on_delete(self, what="new"):
        """Every row that goes leaves another that is due."""
        if self.on_mariadb:     # no trigger may do that there: another session does, once a batch is committed
            self.spawning = True
        elif self.on_postgres:
            self.given("""create function spawn() returns trigger language plpgsql as $$ begin
                              if old.id < 5000 then insert into s values (old.id + 1000, 1, 'new'); end if;
                              return null; end $$;
                          create trigger t after delete on s for each row execute function spawn()""")
        else:
            self.given("""create trigger t after delete on s when old.id < 5000 begin
                              insert into s values (old.id + 1000, 1, 'new'); end""")

    def slow_delete(self):
        self.slow("s", 0.03)

    def wait_until_gone(self, rows, total):
        deadline = time.monotonic() + 30
        while self.db.rows("select count(*) from s where kind = 'x'")[0][0] > total - rows:
            self.assertLess(time.monotonic(), deadline, "the sweep does not get on")
            time.sleep(0.01)


@every_engine
class Limits(Fuse):
    def test_all_in_one_within_its_limits(self):
        """In several slices, whose rows are summed up: none of them waits for the others."""
        self.given(f"insert into s select n, 0, 'x' from ({self.series(11000)}) as numbers")
        self.holds(self.contract("rows: 12000", ", batch: null"), 11000)

    def test_exactly_the_limit_is_allowed(self):
        self.rows(5, 2)
        self.holds(self.contract(), 5)
        self.assertEqual(self.fuse(), [])

    def test_one_more_trips(self):
        self.rows(6, 100)
        self.trips(self.contract())
        self.assertEqual(self.fuse(), [("s", 6, 5, False)])

    def test_it_stays_tripped(self):
        self.rows(6)
        self.trips(self.contract())
        self.db.execute("delete from s where id < 6")
        r = self.trips(self.contract())
        self.assertIn("tripped at", r.policy("s")["error"])
        self.db.execute("delete from s")
        self.trips(self.contract())

    def test_the_first_trip_is_what_is_remembered(self):
        self.rows(6)
        self.trips(self.contract())
        first = self.db.rows("select * from lapse_fuse")
        self.trips(self.contract())
        self.assertEqual(self.db.rows("select * from lapse_fuse"), first)

    def test_a_fraction_exactly(self):
        self.rows(29, 71)
        self.holds(self.contract("fraction: 0.29"), 29)

    def test_a_fraction_passed(self):
        self.rows(30, 70)
        self.trips(self.contract("fraction: 0.29"))
        self.assertEqual(self.fuse(), [("s", 30, 29, False)])

    def test_all_of_a_table(self):
        self.rows(7)
        self.holds(self.contract("fraction: 1"), 7)

    def test_a_fraction_below_one_row(self):
        self.rows(1, 2)
        self.trips(self.contract("fraction: 0.3"))

    def test_an_empty_table_is_no_reason(self):
        self.holds(self.contract("fraction: 0.1"), 0)

    def test_both_limits_hold(self):
        self.rows(4, 16)
        self.trips(self.contract("rows: 10, fraction: 0.19"))
        self.db.execute("delete from lapse_fuse")
        self.trips(self.contract("rows: 3, fraction: 0.9"))
        self.holds(self.contract("rows: 4, fraction: 0.2"), 4)

    def test_small_batches_add_up(self):
        self.rows(5)
        self.holds(self.contract(more=", batch: 1"), 5)
        self.rows(6)
        self.trips(self.contract(more=", batch: 1"))

    @not_on("mariadb", "a trigger cannot write its own table")
    def test_one_transaction(self):
        self.rows(6)
        self.trips(self.contract(more=", batch: null"))
        self.db.execute("delete from lapse_fuse")
        self.db.execute("delete from s where id = 6")
        self.holds(self.contract(more=", batch: null"), 5)

    def test_other_tables_do_not_count(self):
        self.given("create table step (id integer primary key, s_id integer)")
        self.given("create index step_s on step(s_id)")
        self.rows(2)
        self.insert("step", *[(n, 1 + n % 2) for n in range(20)])
        r = self.sweep(self.contract("rows: 2", ", with: [step(s_id)]"))
        self.assertEqual(self.gone(r), {"s": 2, "step": 20})

    def test_a_subtree_counts(self):
        self.given("create table n (id integer primary key, at_ms bigint, up integer references n(id))")
        self.given("create index n_up on n(up); create index n_at on n(at_ms, id)")
        self.insert("n", (1, 0, None), (2, MS + 1, 1), (3, MS + 1, 2), (4, MS + 1, 3))
        policy = "policies: {n: {table: n, expires: at_ms, limits: {rows: %d}, with: [n(up)]}}"
        with self.untouched_but_own():
            r = self.sweep(policy % 3, code=4)
            self.assertEqual(r.policy("n")["outcome"], "fuse")
        self.assertEqual(self.db.rows("select due_rows from lapse_fuse"), [(4,)])
        self.assertEqual(self.gone(self.sweep(policy % 4)), {"n": 4})

    def untouched_but_own(self):
        case = self

        class Block:
            def __enter__(self):
                self.before = case.db.rows("select * from n order by 1")

            def __exit__(self, kind, *_):
                if kind is None:
                    case.assertEqual(case.db.rows("select * from n order by 1"), self.before)
        return Block()

    def test_several_policies_where_one_trips(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.rows(6)
        self.insert("t", (1, 0))
        r = self.sweep("""
            policies:
              s: { table: s, expires: at_ms, limits: { rows: 5 } }
              t: { table: t, expires: at_ms, limits: { rows: 5 } }
            """, code=4)
        self.assertEqual([p["outcome"] for p in r.json["policies"]], ["fuse", "done"])
        self.left("t")

    def test_what_is_graver_decides_the_exit(self):
        self.rows(6)
        refused = "r: {table: nowhere, expires: at_ms}"
        policies = "policies: {s: {table: s, expires: at_ms, limits: {rows: 5}}, %s}"
        self.sweep(policies % refused, code=4)
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, 0))
        if self.on_postgres:
            self.given("""create function no() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
                          create trigger t before delete on t for each row execute function no()""")
        else:
            self.given("create trigger t before delete on t begin select raise(abort, 'no'); end")
        self.sweep(policies % "t: {table: t, expires: at_ms}", code=1)

    def test_people_are_told(self):
        self.rows(6)
        r = self.lapse(self.contract(), "sweep", "--now", NOW, code=4)
        self.assertIn("fuse", r.out)
        self.assertIn("lapse ack s", r.out)

    def test_bad_limits(self):
        for limits in ("rows: 0", "rows: -1", "rows: 1.5", "fraction: 0", "fraction: 1.01", "fraction: -0.5", "", "row: 1"):
            r = self.lapse(self.contract(limits), "sweep", code=2)
            self.assertIn("lapse.yaml:", r.err)


@every_engine
class Bounds(Fuse):
    def test_a_cap(self):
        self.rows(0, 10)
        policy = "policies: {s: {table: s, cap: {rows: 4, newest: id}, limits: {rows: %d}}}"
        r = self.sweep(policy % 5, code=4)
        self.assertEqual((r.policy("s")["outcome"], len(self.ids("s"))), ("fuse", 10))
        self.assertEqual(self.sweep(policy % 6).policy("s")["rows"], 6)

    def test_keep_newest(self):
        self.rows(10)
        policy = "policies: {s: {table: s, age: at_ms, keep: 1s, keep_newest: {rows: 4, newest: id}, limits: {rows: %d}}}"
        self.assertEqual(self.sweep(policy % 5, code=4).policy("s")["outcome"], "fuse")
        self.assertEqual(self.sweep(policy % 6).policy("s")["rows"], 6)

    def test_orphans(self):
        """A source that lost most of its rows: just what a fuse is for."""
        self.given("create table o (id integer primary key)")
        self.given("create table task (id integer primary key, o_id integer, at_ms bigint)")
        self.insert("o", *range(1, 11))
        self.insert("task", *[(n, n, 0) for n in range(1, 11)])
        policy = """policies: {task: {table: task, age: at_ms, keep: 1s, orphan: {of: o(id), by: o_id},
                                      limits: {fraction: 0.5}}}"""
        self.db.execute("delete from o where id <= 6")
        self.assertEqual(self.sweep(policy, code=4).policy("task")["outcome"], "fuse")
        self.assertEqual(len(self.ids("task")), 10)
        self.insert("o", 6)
        self.assertEqual(self.sweep(policy, code=4).policy("task")["outcome"], "fuse", "it stays tripped")
        self.ack(policy, "task")
        self.assertEqual(self.sweep(policy).policy("task")["rows"], 5)

    def test_orphans_one_by_one(self):
        self.given("create table o (id integer primary key)")
        self.given("create table task (id integer primary key, o_id integer, at_ms bigint)")
        self.insert("o", 99)
        self.insert("task", *[(n, n, 0) for n in range(1, 11)])
        policy = "policies: {task: {table: task, age: at_ms, keep: 1s, orphan: {of: o(id), by: o_id}, batch: %s, limits: {rows: %d}}}"
        self.assertEqual(self.sweep(policy % (1, 9), code=4).policy("task")["outcome"], "fuse")
        self.assertEqual(self.sweep(policy % (1, 10)).policy("task")["rows"], 10)


@every_engine
class MidCourse(Fuse):
    @not_on("mariadb", "a trigger cannot write its own table")
    def test_rows_that_become_due_meanwhile(self):
        self.rows(3)
        self.spawn_on_delete()
        r = self.trips_after(self.contract(more=", batch: 1"), 5)
        self.assertIn("mid-course", r.policy("s")["error"])
        self.assertEqual(self.fuse(), [("s", 6, 5, False)])
        self.trips_after(self.contract(more=", batch: 1"), 0)

    spawning = False

    def spawned_sweep(self, contract):
        seen = {n for n, in self.db.rows("select id from s")}

        def before(statement):
            there = {n for n, in self.db.rows("select id from s")}
            new = [(n + 1000, 1, "new") for n in sorted(seen - there) if n < 5000]
            seen.clear()
            seen.update(there | {n for n, _, _ in new})
            self.insert("s", *new)

        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn, contract, "sweep", "--now", NOW, "--json")
        self.assertEqual(r.code, 4, r)
        return r

    def trips_after(self, contract, gone):
        r = self.spawned_sweep(contract) if self.spawning else self.sweep(contract, code=4)
        self.assertEqual((r.policy("s")["outcome"], r.policy("s")["rows"]), ("fuse", gone), r)
        return r

    @not_on("mariadb", "a trigger cannot write its own table")
    def test_the_batch_that_passes_it_is_rolled_back_whole(self):
        self.rows(3)
        self.spawn_on_delete()
        self.trips_after(self.contract("rows: 4", ", batch: 3"), 3)
        self.left("s", 1001, 1002, 1003)

    @not_on("mariadb", "a trigger cannot write its own table")
    def test_one_transaction(self):
        self.rows(3)
        self.spawn_on_delete()
        self.trips_after(self.contract("rows: 4", ", batch: null"), 0)
        self.left("s", 1, 2, 3)
        self.assertEqual(self.fuse()[0][2:], (4, False))

    @not_on("mariadb", "a trigger cannot write its own table")
    def test_what_went_before_counts_in_the_next_run_too(self):
        self.rows(3)
        self.spawn_on_delete()
        contract = self.contract("rows: 4", ", batch: 3")
        self.trips_after(contract, 3)
        self.ack(contract)
        self.given("" if self.on_mariadb else "drop trigger t" + (" on s" if self.on_postgres else ""))
        self.holds(contract, 3)


@every_engine
class Ack(Fuse):
    def test_once(self):
        self.rows(6)
        self.trips(self.contract())
        r = self.ack(self.contract())
        self.assertEqual((r.json["rows"], r.json["limit"], r.json["acknowledged"]), (6, 5, True))
        self.holds(self.contract(), 6)
        self.assertEqual(self.fuse(), [])
        self.rows(6)
        self.trips(self.contract())

    def test_a_run_within_the_limit_uses_it_up_too(self):
        self.rows(6)
        self.trips(self.contract())
        self.ack(self.contract())
        self.db.execute("delete from s")
        self.holds(self.contract(), 0)
        self.rows(6)
        self.trips(self.contract())

    def test_a_stopped_run_keeps_it(self):
        self.rows(60)
        self.slow_delete()
        contract = self.contract(more=", batch: 1")
        self.trips(contract)
        self.ack(contract)
        p = Lapse.start(self.db, contract, "sweep", "--now", NOW, "--json")
        self.wait_until_gone(2, 60)
        p.signal(signal.SIGTERM)
        r = p.wait()
        self.assertEqual((r.code, r.policy("s")["outcome"]), (6, "stopped"), r)
        self.assertEqual(self.fuse()[0][3], bool(1))
        self.given("drop trigger slow" + (" on s" if self.on_postgres else ""))
        self.holds(contract, 60 - r.policy("s")["rows"])
        self.assertEqual(self.fuse(), [])

    def test_a_paused_run_keeps_it(self):
        self.rows(6)
        self.trips(self.contract())
        self.ack(self.contract())
        self.lapse(self.contract(), "pause", code=0)
        self.sweep(self.contract(), code=6)
        self.lapse(self.contract(), "resume", code=0)
        self.holds(self.contract(), 6)

    def test_a_plan_keeps_it(self):
        self.rows(6)
        self.trips(self.contract())
        self.ack(self.contract())
        self.assertEqual(self.plan(self.contract()).policy("s")["fuse"]["state"], "acknowledged")
        self.holds(self.contract(), 6)

    def test_twice(self):
        self.rows(6)
        self.trips(self.contract())
        self.assertTrue(self.ack(self.contract()).json["changed"])
        self.assertFalse(self.ack(self.contract()).json["changed"])

    def test_of_a_fuse_that_has_not_tripped(self):
        self.rows(6)
        r = self.ack(self.contract())
        self.assertEqual((r.json["acknowledged"], r.json["changed"]), (False, False))
        self.assertIn("has not tripped", self.lapse(self.contract(), "ack", "s", code=0).out)
        self.trips(self.contract())

    def test_of_a_policy_without_limits(self):
        r = self.ack("policies: {s: {table: s, expires: at_ms}}", code=2)
        self.assertIn("no limits", r.json["error"])

    def test_of_an_unknown_policy(self):
        contract = "policies: {sessions: {table: s, expires: at_ms, limits: {rows: 5}}}"
        self.assertIn("did you mean 'sessions'", self.lapse(contract, "ack", "sesions", code=2).err)
        self.assertIn("ack POLICY", self.lapse(contract, "ack", code=2).err)
        self.assertIn("ack POLICY", self.lapse(contract, "ack", "sessions", "sessions", code=2).err)

    def test_what_it_says(self):
        self.rows(6)
        self.trips(self.contract())
        self.assertIn("6 rows", self.lapse(self.contract(), "ack", "s", code=0).out)

    def test_of_one_policy_only(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.rows(6)
        self.insert("t", *[(n, 0) for n in range(9)])
        both = """
            policies:
              s: { table: s, expires: at_ms, limits: { rows: 5 } }
              t: { table: t, expires: at_ms, limits: { rows: 5 } }
            """
        self.sweep(both, code=4)
        self.ack(both, "t")
        r = self.sweep(both, code=4)
        self.assertEqual([p["outcome"] for p in r.json["policies"]], ["fuse", "done"])


@every_engine
class Changed(Fuse):
    def test_another_layout_is_the_same_policy(self):
        self.rows(6)
        self.trips(self.contract())
        same = """
            policies:
              s:
                limits:
                  rows: 5      # no more than that
                table: "s"
                batch: 2
                label: The S
                invariant: words
                timeouts: { lock: 3s }
                expires: at_ms
            """.replace('"s"', "s")
        r = self.sweep(same, code=4)
        self.assertIn("tripped at", r.policy("s")["error"])

    def test_a_changed_policy_is_judged_anew(self):
        self.rows(6)
        self.trips(self.contract())
        self.holds(self.contract("rows: 6"), 6)

    def test_a_changed_policy_may_trip_too(self):
        self.rows(8)
        self.trips(self.contract())
        self.trips(self.contract("rows: 6"))
        self.assertEqual(self.fuse(), [("s", 7, 6, False)])

    def test_a_narrower_condition(self):
        self.rows(6)
        self.trips(self.contract())
        self.holds(self.contract(more=", where: {id: {lt: 4}}"), 3)

    def test_an_acknowledgement_is_for_the_policy_as_it_was_then(self):
        self.rows(8)
        self.trips(self.contract())
        self.ack(self.contract())
        self.trips(self.contract("rows: 6"))

    def test_acknowledging_a_changed_policy(self):
        self.rows(8)
        self.trips(self.contract())
        self.ack(self.contract("rows: 6"))
        self.holds(self.contract("rows: 6"), 8)


@every_engine
class Foretold(Fuse):
    def test_check_warns_before(self):
        self.rows(6)
        self.finding(self.check(self.contract(), code=0), "warning", "fuse would trip", policy="s")
        self.assertEqual(self.fuse(), [], "check writes nothing")

    def test_check_says_that_it_has(self):
        self.rows(6)
        self.trips(self.contract())
        self.finding(self.check(self.contract(), code=0), "warning", "fuse tripped at", "lapse ack s", policy="s")

    def test_check_says_nothing_where_it_holds(self):
        self.rows(5)
        self.no_finding(self.check(self.contract(), code=0), "fuse")

    def test_plan_says_before(self):
        self.rows(7)
        with self.untouched():
            r = self.plan(self.contract(), code=0)
        self.assertEqual((r.policy("s")["rows"], r.policy("s")["fuse"]["state"], r.policy("s")["fuse"]["limit"]),
                         (7, "would_trip", 5))
        self.assertIn("7 rows would go", self.lapse(self.contract(), "plan", "--now", NOW, code=0).out)

    def test_plan_says_that_it_has(self):
        self.rows(7)
        self.trips(self.contract())
        fuse = self.plan(self.contract(), code=0).policy("s")["fuse"]
        self.assertEqual((fuse["state"], fuse["tripped_rows"]), ("tripped", 6))
        self.assertRegex(fuse["tripped_at"], r"^\d{4}-\d\d-\d\dT")
        self.assertIn("lapse ack s", self.lapse(self.contract(), "plan", "--now", NOW, code=0).out)

    def test_plan_says_that_it_holds(self):
        self.rows(5)
        self.assertEqual(self.plan(self.contract(), code=0).policy("s")["fuse"], {"state": "holds", "limit": 5})


@every_engine
class Sweepers(Fuse):
    def test_several_at_once(self):
        self.rows(40)
        running = [Lapse.start(self.db, self.contract(), "sweep", "--now", NOW, "--json") for _ in range(5)]
        done = [p.wait() for p in running]
        self.assertEqual([r.code for r in done], [4] * 5, "\n".join(map(str, done)))
        self.assertEqual(len(self.ids("s")), 40)
        self.assertEqual(self.fuse(), [("s", 6, 5, False)])


class OnPostgres(Fuse, PostgresTest):
    def test_another_process_makes_rows_due(self):
        self.rows(20)
        self.slow_delete()
        contract = self.contract("rows: 25", ", batch: 1")
        p = Lapse.start(self.db, contract, "sweep", "--now", NOW, "--json")
        self.wait_until_gone(3, 20)
        self.insert("s", *[(n, 1, "late") for n in range(2001, 2021)])
        r = p.wait()
        self.assertEqual(r.code, 4, r)
        self.assertEqual(r.policy("s")["rows"], 25)
        self.assertEqual(len(self.ids("s")), 15)

    def test_a_fuse_that_cannot_be_stored_stops_all_the_same(self):
        self.rows(6)
        self.given("""create function no() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;
                      create trigger t before insert on lapse_fuse for each row execute function no()""")
        with self.untouched():
            r = self.sweep(self.contract(), code=1)
        self.assertEqual(r.policy("s")["outcome"], "failed")
        self.assertIn("could not be kept", r.policy("s")["error"])

    def test_a_locked_fuse_table(self):
        self.rows(3)
        c = self.db.connect()
        c.autocommit = False
        c.cursor().execute("lock table lapse_fuse in share mode")
        self.holds(self.contract(), 3)      # reading is enough where it holds
        c.rollback()
        c.close()
