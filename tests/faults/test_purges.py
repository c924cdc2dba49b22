"""Purges against whatever else happens to the same instance: exactly one outcome, whole.

An instance is whole (a workflow, two steps, three keys) or purged (the kept key alone). Who cancels and is told that a
row was deleted has it whole; who is told that none was has it purged."""
import contextlib
import os
import random
import re
import threading
import time

from daemon import Daemon, eventually
from harness import *
from proxy import CUT, DEAF, MUTE, Proxy, Session

SCHEMA = """
    create table workflow (id text primary key, status text);
    create table workflow_step (id integer primary key, workflow_id text references workflow(id));
    create table workflow_kv (instance_id text, "key" text, primary key (instance_id, "key"));
    create index step_workflow on workflow_step(workflow_id)"""
CONTRACT = """
    purges:
      workflow:
        retention: { failed: 24h }
        erases:
          - workflow_step(workflow_id)
          - { ref: workflow_kv(instance_id), keep: { key: ["workflow:output"] } }
          - workflow(id)"""
LOOK = re.compile(r"WITH RECURSIVE lapse_reason|SELECT(?s:.)*`lapse_purge`")
WHOLE, PURGED = (1, 2, 3), (0, 0, 1)
AT = "2024-06-15T10:00:00.000Z"
LATER = "2024-06-15T11:59:30.000Z"       # not due yet


class Purging(Case):
    NAMES = ["a", "b", "c"]

    def setUp(self):
        super().setUp()
        self.given(SCHEMA)
        self.lapse(CONTRACT, "install", code=0)

    def fill(self, names=None, scheduled=True):
        self.given("delete from lapse_purge; delete from workflow_step; delete from workflow_kv; delete from workflow")
        names = names or self.NAMES
        self.db.executemany("insert into workflow values (?, 'completed')", [(n,) for n in names])
        self.db.executemany("insert into workflow_step values (?, ?)",
                            [(i * 2 + k, n) for i, n in enumerate(names) for k in (0, 1)])
        self.db.executemany("insert into workflow_kv values (?, ?)",
                            [(n, k) for n in names for k in ("input", "workflow:output", "workflow:status")])
        if scheduled:
            self.db.executemany("insert into lapse_purge (space, instance, reason, scheduled_at) values "
                                "('workflow', ?, 'completed', ?)", [(n, AT) for n in names])

    def state(self, name):
        return tuple(self.db.rows(f"select count(*) from {t} where {c} = ?", (name,))[0][0] for t, c in
                     (("workflow", "id"), ("workflow_step", "workflow_id"), ("workflow_kv", "instance_id")))

    def states(self, names=None):
        return {n: self.state(n) for n in names or self.NAMES}

    def rows(self):
        return sorted(r[0] for r in self.db.rows("select instance from lapse_purge"))

    def due(self, db=None, code=0):
        r = lapse(db or self.db, CONTRACT, "purge", "due", "--json", "--now", NOW)
        if code is not None:
            self.assertEqual(r.code, code, r)
        return r

    @staticmethod
    def executed(r):
        return [x["instance"] for x in r.json.get("executed", [])]

    def rerun_finishes(self):
        """Whatever happened, nothing is half done and nothing is lost."""
        self.due()
        self.assertEqual((self.states(), self.rows()), ({n: PURGED for n in self.NAMES}, []))


class Statements(Purging):
    def at(self, text):
        """A time as a session writes it by itself."""
        return self.per_engine(postgres=f"'{text}'", mariadb="'" + text.replace("T", " ").replace("Z", "") + "'")

    def its_rows_alone(self):
        """A session of MariaDB otherwise keeps locked whatever it looked at, which in a short table may be all."""
        return self.per_engine(postgres="select 1", mariadb="set session transaction isolation level read committed")

    def through(self, before=None):
        with Proxy(self.db, before) as proxy:
            r = self.due(proxy.dsn, code=None)
        return r, list(proxy.seen)

    def points(self):
        """Every statement from the look at what is due to the one after the batch."""
        self.fill()
        r, seen = self.through()
        self.assertEqual(sorted(self.executed(r)), self.NAMES, r)
        begins = next(i for i, s in enumerate(seen) if s.begins_batch)
        ends = next(i for i, s in enumerate(seen[begins:], begins) if s.ends_batch)
        self.assertTrue(seen[ends].sql.startswith("COMMIT"), seen)
        look = max(i for i, s in enumerate(seen[:begins]) if LOOK.match(s.sql))
        return range(seen[look].number - 1, min(seen[ends].number + 2, len(seen)) + 1)

    def each(self, act, check, early=(), late=()):
        """Another session acts before each statement; late: what it does once the purging is over."""
        outcomes = set()
        for point in self.points():
            with self.subTest(point=point):
                self.fill()
                with Session(self.db) as other:
                    other.do(self.its_rows_alone(), *early)
                    came = []

                    def come_in(statement):
                        if statement.number == point:
                            other.do(*act)
                            came.append(statement)

                    r, seen = self.through(come_in)
                    self.assertTrue(came, seen)
                    other.finish()
                    told = other.rows
                    other.do(*late) if late else None
                    other.finish()
                    self.assertIsNone(other.error, f"{other.error}\n{seen}")
                    outcomes.add(check(r, told, f"before {came[0]}\ntold: {told}\n{r}"))
        return outcomes


@every_server
class Cancel(Statements):
    CANCEL = "delete from lapse_purge where space = 'workflow' and instance = 'b'"

    def one_outcome(self, r, told, how):
        done = self.executed(r)
        self.assertEqual(r.code, 0, how)
        self.assertEqual(self.states(("a", "c")), {"a": PURGED, "c": PURGED}, how)
        self.assertEqual("b" in done, told == 0, how)
        self.assertEqual(self.state("b"), WHOLE if told else PURGED, how)
        self.assertEqual(self.rows(), [], how)
        return told

    def test_at_once(self):
        self.assertEqual(self.each([self.CANCEL], self.one_outcome), {0, 1})

    def test_in_a_transaction_that_commits_in_between(self):
        """It began before, so it always wins."""
        def check(r, told, how):
            self.assertEqual(self.state("b"), WHOLE, how)
            self.assertNotIn("b", self.executed(r), how)
            self.assertEqual(self.rows(), [], how)
            return True
        self.each(["commit"], check, early=["begin", self.CANCEL])

    def test_in_a_transaction_that_is_rolled_back(self):
        def check(r, told, how):
            done = "b" in self.executed(r)
            self.assertEqual(self.state("b"), PURGED if done else WHOLE, how)
            self.assertEqual(self.rows(), [] if done else ["b"], how)
            self.rerun_finishes()
            return done
        self.assertIn(True, self.each(["rollback"], check, early=["begin", self.CANCEL]))

    def test_of_one_with_two_rows(self):
        fill = self.fill

        def twice(*a, **k):
            fill(*a, **k)
            self.given(f"insert into lapse_purge (space, instance, reason, scheduled_at) values ('workflow', 'b', 'failed', '{AT}')")
        self.fill = twice

        def check(r, told, how):
            self.assertIn(told, (0, 2), how)
            return self.one_outcome(r, told, how)
        self.assertEqual(self.each([self.CANCEL], check), {0, 2})

    def test_while_another_holds_one_of_its_rows(self):
        """Whoever holds a row may be about to take them all away."""
        for held in ("completed", "failed"):
            with self.subTest(held):
                self.fill()
                self.given(f"insert into lapse_purge (space, instance, reason, scheduled_at) values ('workflow', 'b', 'failed', '{AT}')")
                with Session(self.db) as other:
                    other.do(self.its_rows_alone(), "begin", f"delete from lapse_purge where instance = 'b' and reason = '{held}'")
                    r = self.due()
                    self.assertEqual((sorted(self.executed(r)), self.state("b")), (["a", "c"], WHOLE), r)
                    other.do("rollback")
                self.assertEqual(self.rows(), ["b", "b"])
                self.rerun_finishes()

    def test_restart(self):
        """The instance runs again: what it then writes is never purged, and what it had is all there or all gone."""
        def check(r, told, how):
            self.assertEqual(self.rows(), [], how)
            steps = self.db.rows("select count(*) from workflow_step where workflow_id = 'b'")[0][0]
            status = self.db.rows("select status from workflow where id = 'b'")
            purged = "b" in self.executed(r)
            self.assertEqual((status, steps), ([("running",)], 1 if purged else 3), how)
            return purged
        self.assertEqual(self.each([
            "begin", self.CANCEL, self.per_engine(postgres="insert into workflow values ('b', 'x') on conflict (id) do nothing",
                                                  mariadb="insert ignore into workflow values ('b', 'x')"),
            "update workflow set status = 'running' where id = 'b'", "insert into workflow_step values (99, 'b')", "commit"],
            check), {True, False})


@every_server
class Schedule(Statements):
    def test_again(self):
        """A repeat never fails; whatever is left of it goes with the next run."""
        def check(r, told, how):
            self.assertEqual(sorted(self.executed(r)), self.NAMES, how)
            self.assertEqual(self.states(), {n: PURGED for n in self.NAMES}, how)
            left = self.rows()
            self.assertIn(left, ([], ["b"]), how)
            self.due()
            self.assertEqual(self.rows(), [], how)
            return len(left)
        self.assertEqual(self.each(["insert into lapse_purge (space, instance, reason, scheduled_at) values "
                                    f"('workflow', 'b', 'other', {self.at(AT)})"], check), {0, 1})

    def test_in_a_transaction_that_commits_late(self):
        """Nothing remembers how far it had looked."""
        def check(r, told, how):
            self.due()
            self.assertEqual((self.rows(), self.state("late")), ([], PURGED), how)
            return True
        fill = self.fill
        self.fill = lambda: fill(self.NAMES + ["late"]) or self.given("delete from lapse_purge where instance = 'late'")
        self.each(["commit"], check, early=["begin", "insert into lapse_purge (space, instance, reason, scheduled_at) values "
                                                     f"('workflow', 'late', 'completed', {self.at('2020-01-01T00:00:00Z')})"])


@every_server
class Broken(Statements):
    def at_each(self, what):
        unknown = 0
        for point in self.points():
            with self.subTest(point=point):
                self.fill()
                r, seen = self.through(lambda s: what if s.number == point else None)
                how = f"before {seen[point - 1]}\n{r}"
                states = self.states()
                self.assertEqual({n for n in self.NAMES if states[n] == PURGED} | {n for n in self.NAMES if states[n] == WHOLE},
                                 set(self.NAMES), how)
                if r.code == 5:      # lost where nothing had begun
                    self.assertEqual(set(states.values()), {WHOLE}, how)
                else:
                    self.assertEqual(set(states.values()), {PURGED}, how)
                    space = r.json["spaces"][0]
                    self.assertEqual(space["executed"] + space["unknown"] >= len(self.NAMES), True, how)
                    self.assertEqual(r.code, 1 if space["unknown"] else 0, how)
                    unknown += space["unknown"]
                self.rerun_finishes()
        return unknown

    def test_cut(self):
        self.at_each(CUT)

    def test_no_answer(self):
        self.assertGreater(self.at_each(MUTE), 0, "a commit without an answer is said to be unknown")

    def test_gone_at_once(self):
        self.at_each(DEAF)

    def test_killed_at_every_statement(self):
        for point in self.points():
            with self.subTest(point=point):
                self.fill()
                started, box = threading.Event(), []

                def before(statement):
                    if statement.number == point:
                        started.wait(10)
                        box[0].kill()
                        return CUT

                with Proxy(self.db, before) as proxy:
                    box.append(Lapse.start(proxy.dsn, CONTRACT, "purge", "due", "--json", "--now", NOW))
                    started.set()
                    box[0].wait(30, signals=(9,))
                states = set(self.states().values())
                self.assertIn(states, ({WHOLE}, {PURGED}))
                self.assertEqual(self.rows(), self.NAMES if states == {WHOLE} else [])
                self.rerun_finishes()

    def test_another_at_work_at_every_statement(self):
        """Each is executed once, by one of them."""
        for point in self.points():
            with self.subTest(point=point):
                self.fill()
                others = []
                r, seen = self.through(lambda s: others.append(self.due()) if s.number == point else None)
                done = self.executed(r) + self.executed(others[0])
                self.assertEqual(sorted(done), self.NAMES, f"before {seen[point - 1]}\n{r}\n{others[0]}")
                self.assertEqual((self.states(), self.rows()), ({n: PURGED for n in self.NAMES}, []))


@every_server
class Refused(Statements):
    NAMES = ["b"]

    def test_changed_before_it_is_noted(self):
        """What failed was another purge: the one that is there now has not been tried."""
        self.given(self.per_engine(
            postgres="""create function no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
                        create trigger no before delete on workflow for each row execute function no()""",
            mariadb="create trigger no before delete on workflow for each row signal sqlstate '45000' set message_text = 'no'"))
        self.fill()
        noted = []

        def come_in(statement):
            if "attempts = " in statement.sql:
                noted.append(statement)
                with Session(self.db) as other:
                    other.do(f"update lapse_purge set scheduled_at = {self.at(LATER)}")
                    other.finish()
                    self.assertIsNone(other.error)

        self.through(come_in)
        self.assertTrue(noted)
        self.assertEqual(self.db.rows("select attempts, error, retry_at from lapse_purge"), [(0, None, None)])


@every_server
class Daemons(Statements):
    """The same from the daemon, whose purges share a process with everything else."""

    def through_daemon(self, kill_at=None):
        """Statements of its first batch; killed before that one."""
        self.fill()
        seen, box, ready = [], [], threading.Event()
        purger = []

        def before(s):
            if re.search(r"lapse_reason|min\(own\.reason\)", s.sql) and not purger:
                purger.append(s.connection)
            if s.connection not in purger or not (seen or s.begins_batch):
                return None
            seen.append(s)
            if len(seen) != kill_at:
                return None
            ready.wait(20)
            box[0].process.kill()
            return CUT

        with Proxy(self.db, before) as proxy:
            box.append(Daemon(proxy.dsn, CONTRACT))
            ready.set()
            if kill_at:
                box[0].process.wait(40)
                box[0].kill()
            else:
                eventually(lambda: not self.rows(), 40, words=lambda: str(box[0]))
                box[0].stop()
        return seen

    def test_killed_at_every_statement(self):
        seen = self.through_daemon()
        ends = next(i for i, s in enumerate(seen) if s.ends_batch)
        self.assertTrue(seen[ends].sql.startswith("COMMIT"), seen)
        outcomes = set()
        for point in range(1, ends + 3):
            with self.subTest(point=point):
                self.through_daemon(point)
                states = set(self.states().values())
                self.assertIn(states, ({WHOLE}, {PURGED}), seen[:point])
                self.assertEqual(self.rows(), self.NAMES if states == {WHOLE} else [], seen[:point])
                outcomes |= states
        self.assertEqual(outcomes, {WHOLE, PURGED})
        self.fill()
        with Daemon(self.db, CONTRACT) as d:
            eventually(lambda: not self.rows(), 40, words=lambda: str(d))
        self.assertEqual(self.states(), {n: PURGED for n in self.NAMES})


class Spaces(Purging, PostgresTest):
    def test_one_that_fails_does_not_hold_up_the_next(self):
        """What is due in the first could not be read, since the table was locked for too long."""
        self.fill()
        first = "purges:\n      earlier: { erases: [ workflow(id) ] }"
        locked, purger = [], []

        def before(s):
            if not purger and "lapse_reason" in s.sql:
                purger.append(s.connection)
                locked.append(self.db.connect())
                locked[0].autocommit = False
                locked[0].cursor().execute("lock table lapse_purge in access exclusive mode")
            elif s.connection in purger and s.sql.startswith("ROLLBACK") and len(locked) == 1:
                locked[0].rollback()
                locked.append(True)

        with Proxy(self.db, before) as proxy, Daemon(proxy.dsn, CONTRACT.replace("purges:", first)) as d:
            d.wait_for("purge.executed", instance="a", timeout=40)
            self.assertIn("lock timeout", d.wait_for("purge.failed", space="earlier")["message"])
            looks = [s for s in proxy.seen if s.connection in purger and "lapse_reason" in s.sql]
            executed = next(s for s in proxy.seen if s.connection in purger and s.begins_batch)
            self.assertEqual(len([s for s in looks if s.number < executed.number]), 2, "in the same turn")
        locked[0].close()


@every_engine
class Together(Purging):
    """Several at work, beside programs that schedule, cancel and start again: raw rows are the judge."""
    COUNT = 400

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("LAPSE_SEED") or random.SystemRandom().randrange(10**9))
        self.random = random.Random(self.seed)
        self.NAMES = [f"w{i:04}" for i in range(self.COUNT)]

    def test_many(self):
        self.fill()
        cancelled, told_gone, stop = [], [], threading.Event()
        victims = self.random.sample(self.NAMES, self.COUNT // 3)

        def cancel():
            with contextlib.closing(self.db.connect()) as c:
                for n in victims:
                    q = c.cursor()
                    mark = "?" if self.on_sqlite else "%s"
                    q.execute(f"delete from lapse_purge where space = 'workflow' and instance = {mark}", (n,))
                    (cancelled if q.rowcount else told_gone).append(n)
                    if self.on_sqlite:
                        c.commit()
                    time.sleep(0.001)
            stop.set()

        ones = [Lapse.start(self.db, CONTRACT, "purge", "due", "--json", "--now", NOW) for _ in range(4)]
        canceller = threading.Thread(target=cancel)
        canceller.start()
        results = [p.wait(120) for p in ones]
        canceller.join()
        last = self.due()
        done = [n for r in results + [last] for n in self.executed(r)]
        how = f"LAPSE_SEED={self.seed}"
        self.assertEqual(len(done), len(set(done)), how)
        self.assertEqual(sorted(done + cancelled), self.NAMES, how)
        states = self.states()
        self.assertEqual({n for n in self.NAMES if states[n] == PURGED}, set(done), how)
        self.assertEqual({n for n in self.NAMES if states[n] == WHOLE}, set(cancelled), how)
        self.assertEqual(self.rows(), [], how)

    def test_killed_at_random(self):
        self.fill()
        start = time.monotonic()
        self.due()
        length = time.monotonic() - start
        for kill in range(25):
            if not self.rows():
                self.fill()
            p = Lapse.start(self.db, CONTRACT, "purge", "due", "--json", "--now", NOW)
            time.sleep(self.random.uniform(0, length))
            p.kill()
            p.wait(30, signals=(9,))
            self.sessions_end()
            left = set(self.rows())
            counts = dict(self.db.rows("select id, (select count(*) from workflow_step where workflow_id = w.id) * 10 + "
                                       "(select count(*) from workflow_kv where instance_id = w.id) from workflow w"))
            kept = dict(self.db.rows("select instance_id, count(*) from workflow_kv group by 1"))
            how = f"kill {kill}, LAPSE_SEED={self.seed}"
            self.assertEqual(set(counts), left, how)
            self.assertEqual(set(counts.values()) - {23}, set(), how)
            self.assertEqual(kept, {n: 3 if n in left else 1 for n in self.NAMES}, how)
        self.due()
        self.assertEqual(self.rows(), [])

    def test_the_clock_jumps_back(self):
        self.fill(["a"])
        self.NAMES = ["a"]
        r = lapse(self.db, CONTRACT, "purge", "due", "--json", "--now", "2024-06-15T10:00:59.999Z")
        self.assertEqual((r.code, self.executed(r), self.state("a")), (0, [], WHOLE))
        r = lapse(self.db, CONTRACT, "purge", "due", "--json", "--now", "2024-06-15T09:00:00Z")
        self.assertEqual((r.code, self.executed(r), self.state("a")), (0, [], WHOLE))
        r = lapse(self.db, CONTRACT, "purge", "due", "--json", "--now", "2024-06-15T10:01:00Z")
        self.assertEqual((r.code, self.executed(r), self.state("a")), (0, ["a"], PURGED))
