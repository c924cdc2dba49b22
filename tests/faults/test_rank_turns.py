"""Batches that judge which rows are the newest take turns: two sweeps at once never leave a group with fewer rows than
are to stay, wherever an application changes who is newest."""
import contextlib
import os
import random
import signal
import sqlite3
import textwrap
import threading
import time

import freeze
from daemon import Daemon, eventually
from rank_races import *

DEADLOCK = 1213
LONG = bool(os.environ.get("LAPSE_LONG"))


@every_server
class Loss(Race):
    """One row of a group is to stay. The first sweep has judged row 2 second and waits for what it owns; row 1 falls behind;
    a second sweep sees row 2 as the newest, though it is about to go."""

    def lose(self, policy):
        self.reset()
        self.given("delete from c where t_id > 2; delete from t where id > 2")
        with Session(self.db) as application, Session(self.db) as other:
            application.do("begin", "update c set id = 99 where t_id = 2")
            first = Stop(self.db, policy, "the first").to(ENDS - 1)
            self.assertTrue(first.waits(), f"it has to wait for the application: {first.proxy.seen}")
            other.do("update t set n = 1 where id = 1").finish()
            second = Stop(self.db, policy, "the second").to(ENDS - 1)
            self.assertTrue(second.turned_away, f"while the first waits it judges nothing: {second.proxy.seen}")
            application.do("rollback").finish()
            results = [first.end(), second.end()]
        about = "\n".join(map(str, results))
        self.assertEqual([r.code for r in results], [0, 0], about)
        self.assertEqual(self.ids("t"), [1], about)
        self.assertEqual(self.ids("c", "t_id"), [1], about)
        self.assertEqual([r.policy("t")["rows"] for r in results], [1, 0], about)

    def test_cap(self):
        self.lose(contract(CAP))

    def test_keep_newest(self):
        self.lose(contract(KEEP))

    def test_in_one_batch(self):
        self.lose(contract(CAP, batch="null"))


@every_server
class Interleavings(Race):
    """All of them at the statements' boundaries with LAPSE_LONG; else a few that differ."""
    SOME = 3

    def grid(self, rule, batch, acts, early=(False,)):
        policy = contract(rule, batch)
        points = list(self.statements(policy))
        turned_away = 0
        for act in acts:
            for at in points if LONG else points[len(points) // 3::max(1, len(points) // self.SOME)]:
                stood = now = (0, 0, False)
                for other_at in points if LONG else points[-1:]:
                    for first_ends in (True, False) if LONG else (at % 2 == 0,):
                        for way in early:
                            with self.subTest(act=act, at=at, other_at=other_at, first_ends=first_ends, early=way):
                                now = self.race(policy, act, at, other_at, first_ends, way)
                    turned_away += now[2]
                    if now == stood:        # it stands where it stood: it comes no further
                        break
                    stood = now
        self.assertGreater(turned_away, 0, "the second sweep came while the first was judging")

    def test_cap(self):
        self.grid(CAP, 10, ACTS)

    def test_keep_newest(self):
        self.grid(KEEP, 10, list(ACTS) if LONG else list(ACTS)[:1])

    def test_rows_that_go_one_by_one(self):
        self.grid(CAP, 1, list(ACTS) if LONG else list(ACTS)[:2])

    def test_the_application_has_begun_before(self):
        self.grid(CAP, 10, list(ACTS) if LONG else list(ACTS)[:2], early=(True,))


@every_server
class Turns(Race):
    """Somebody else has the turn: a session of the test."""

    def setUp(self):
        super().setUp()
        self.reset()
        self.holder = Session(self.db)
        self.addCleanup(self.holder.connection.close)

    def take(self, table="t"):
        self.holder.do("begin", self.per_engine(
            postgres=f"select pg_advisory_xact_lock(1818325107, '{table}'::regclass::oid::integer)",
            mariadb=f"select get_lock('lapse:{self.db.name}.{table}', 0)")).finish()
        self.assertIsNone(self.holder.error)

    def give_back(self):
        self.holder.do("rollback", self.per_engine(postgres="select 1", mariadb="do release_all_locks()")).finish()

    def waits_for_it(self, *more, policy=contract(CAP)):
        """A sweep that was turned away more than once."""
        proxy = Proxy(self.db, looks=False)
        self.addCleanup(proxy.close)
        p = Lapse.start(proxy.dsn, policy, "sweep", "--json", "--now", NOW, *more)
        eventually(lambda: sum(is_turned_away(*two) for two in zip(proxy.seen, proxy.seen[1:])) > 1 or not p.running())
        self.assertTrue(p.running(), p.so_far())
        return p

    def test_it_goes_on_when_it_is_free(self):
        self.take()
        p = self.waits_for_it()
        self.assertEqual(self.ids("t"), sorted(BEFORE))
        self.give_back()
        r = p.wait()
        self.assertEqual((r.code, self.gone(r), r.policy("t")["retries"]), (0, {"t": 3, "c": 3}, 1), r)

    def test_it_is_given_back_each_time(self):
        """Also where a batch fails: the next sweep, and any other session, has it at once."""
        self.given(self.per_engine(
            postgres="create function no() returns trigger language plpgsql as $$begin raise 'no'; end$$;"
                     "create trigger no before delete on t for each row when (old.id = 2) execute function no()",
            mariadb="create trigger no before delete on t for each row begin "
                    "if old.id = 2 then signal sqlstate '45000' set message_text = 'no'; end if; end"))
        r = self.sweep(contract(CAP), code=1)
        self.assertEqual(([s["key"] for s in r.policy("t")["skipped"]], self.gone(r)), (["id=2"], {"t": 2, "c": 2}), r)
        self.take()
        self.give_back()

    def test_a_stop_ends_the_waiting(self):
        self.take()
        p = self.waits_for_it()
        p.signal(signal.SIGTERM)
        r = p.wait()
        self.assertEqual((r.code, r.policy("t")["outcome"]), (6, "stopped"), r)
        self.assertEqual(self.ids("t"), sorted(BEFORE))

    def test_a_brake_ends_the_waiting(self):
        self.lapse(contract(CAP), "install", code=0)
        self.take()
        p = self.waits_for_it()
        self.lapse(contract(CAP), "pause", "t", code=0)
        r = p.wait()
        self.assertEqual((r.code, r.policy("t")["outcome"]), (6, "paused"), r)

    def test_what_ranks_nothing_does_not_wait(self):
        self.take()
        self.assertEqual(self.gone(self.sweep("policies: {t: {table: t, age: at_ms, keep: 1h, with: [c(t_id)]}}")),
                         {"t": 5, "c": 5})

    def test_workers_are_one(self):
        c = contract(CAP, batch=1, more=", workers: 4")
        self.assertIn("workers: 4 is one here", self.lapse(c, "check").out)
        self.assertEqual(self.gone(self.sweep(c)), {"t": 3, "c": 3})

    def test_plan_shows_it(self):
        shown = self.lapse(contract(CAP), "plan", "--sql", "--now", NOW, code=0).out
        self.assertIn(self.per_engine(postgres="pg_try_advisory_xact_lock(1818325107", mariadb="GET_LOCK("), shown)
        shown = self.lapse("policies: {t: {table: t, age: at_ms, keep: 1h}}", "plan", "--sql", "--now", NOW, code=0).out
        self.assertNotIn("lock(18", shown.lower())
        self.assertNotIn("get_lock", shown.lower())

    @not_on("postgres", "its lock has no name")
    def test_a_long_name(self):
        name = "t" * 64
        self.given(f"rename table t to {name}")
        self.assertEqual(self.gone(self.sweep(contract(CAP).replace("table: t", f"table: {name}"))), {name: 3, "c": 3})

    @not_on("mariadb", "a partition is no table there")
    def test_a_partition_has_the_lock_of_its_whole(self):
        self.given("drop table t; create table t (id integer primary key, g text, n integer not null, at_ms bigint)"
                   " partition by range (id); create table \"t's \\1\" partition of t for values from (0) to (100)")
        self.reset()
        self.take()
        p = self.waits_for_it(policy=contract(CAP).replace("table: t,", "table: \"\\\"t's \\\\1\\\"\","))
        self.give_back()
        r = p.wait()
        self.assertEqual((r.code, r.policy("t")["rows"]), (0, 3), r)

    def test_rows_that_stay_are_not_locked(self):
        """At no statement of the batches has an application to wait for one of them."""
        held_up = []
        with Session(self.db) as application:
            def come_in(s):
                application.do("update t set at_ms = at_ms + 1 where id in (1, 11)")
                if application.waits():
                    held_up.append(s)
            with Proxy(self.db, come_in, looks=False) as proxy:
                r = lapse(proxy.dsn, contract(CAP, batch=2), "sweep", "--json", "--now", NOW)
            application.finish()
            self.assertIsNone(application.error)
        self.assertEqual(held_up, [], proxy.seen)
        self.assertEqual((r.code, self.gone(r)), (0, {"t": 3, "c": 3}), r)


class OneWriterOnSqlite(Case, SqliteTest):
    """A batch is a transaction beside which nobody writes: whatever comes, comes before or after it."""
    GROUPS = 300

    @again
    def test_a_batch_that_stands_still(self):
        self.given(SCHEMA + """; create trigger slow before delete on t begin select (with recursive r(i) as
                   (select 1 union all select i + 1 from r where i < 20000) select count(*) from r); end""")
        self.insert("t", *((2 * i + k, f"g{i}", 100 - 50 * k, 0) for i in range(self.GROUPS) for k in (0, 1)))
        self.insert("c", *((i, i) for i in range(2 * self.GROUPS)))
        policy = contract(CAP, batch=20)
        a = Lapse.start(self.db, policy, "sweep", "--json", "--now", NOW)
        eventually(lambda: self.db.rows("select count(*) from t")[0][0] < 2 * self.GROUPS or not a.running(), every=0.001)
        if not a.running():
            raise TooSoon("the first sweep")
        freeze.in_a_batch(self, a)
        with contextlib.closing(sqlite3.connect(self.db.path, timeout=0)) as c:
            with self.assertRaises(sqlite3.OperationalError):
                c.execute("update t set n = 1 where n = 100")
        b = Lapse.start(self.db, policy, "sweep", "--json", "--now", NOW)
        falls = threading.Thread(target=self.fall)
        falls.start()
        a.signal(signal.SIGCONT)
        falls.join(60)
        results = [a.wait(), b.wait()]
        about = "\n".join(str(r)[:800] for r in results)
        self.assertEqual([r.code for r in results], [0, 0], about)
        self.sweep(policy)
        self.assertEqual(self.db.rows("select count(*), count(distinct g) from t"), [(self.GROUPS, self.GROUPS)], about)
        self.assertEqual(self.db.rows("select count(*) from c where t_id not in (select id from t)"), [(0,)], about)

    def fall(self):
        with contextlib.closing(sqlite3.connect(self.db.path, timeout=60)) as c, c:
            c.execute("update t set n = 1 where n = 100")


@every_engine
class Together(Case):
    """Two daemons and a sweep with several workers, by two policies, while an application changes ranks and adds rows:
    whoever looks, at any moment, finds no group with fewer rows than are to stay."""
    GROUPS, KEPT, ADDED, SECONDS = 5, 2, 500, 2
    POLICIES = textwrap.dedent(f"""
        policies:
          cap: {{table: t, cap: {{rows: {KEPT}, per: [g], newest: [n]}}, batch: 20, workers: 3, with: [c(t_id)]}}
          keep: {{table: t, age: at_ms, keep: 1h, keep_newest: {{rows: {KEPT}, per: [g], newest: [n]}}, batch: 20, with: [c(t_id)]}}
        """)

    def test_never_fewer(self):
        self.given(SCHEMA)
        if self.on_sqlite:
            self.db.rows("pragma journal_mode = wal")
        self.insert("t", *((i, f"g{i % self.GROUPS}", i, 0) for i in range(self.GROUPS * self.KEPT)))
        self.trouble, self.looks, self.changes, self.over = [], 0, 0, False
        threads = [threading.Thread(target=self.guarded, args=(what,)) for what in (self.change, self.watch)]
        daemons = "schedulers: {main: {every: 1s}}" + self.POLICIES
        with Daemon(self.db, daemons), Daemon(self.db, daemons):
            for t in threads:
                t.start()
            ends = time.monotonic() + self.SECONDS
            while not self.trouble and (time.monotonic() < ends or self.looks < 30 or self.changes < 100):
                self.sweep(self.POLICIES, now=None)
                self.assertLess(time.monotonic(), ends + 100, f"{self.looks} looks, {self.changes} changes")
            self.over = True
            for t in threads:
                t.join(60)
        self.assertEqual(self.trouble, [])
        self.sweep(self.POLICIES, now=None)
        self.assertEqual(self.db.rows("select g, count(*) from t group by g order by g"),
                         [(f"g{i}", self.KEPT) for i in range(self.GROUPS)])

    def guarded(self, what):
        db = self.db.connect()
        try:
            while not self.over and not self.trouble:
                try:
                    what(db)
                except Exception as e:
                    if not self.on_mariadb or e.args[0] != DEADLOCK:     # of two one begins again
                        raise
        except Exception as e:
            self.trouble.append(e)
        finally:
            db.close()

    def change(self, db):
        """A row is added, but not for ever, so that every sweep ends; then some row becomes the newest or the oldest."""
        self.changes += 1
        i, c = self.changes + 1000, db.cursor()
        if self.changes <= self.ADDED:
            c.execute(f"insert into t values ({i}, 'g{i % self.GROUPS}', {random.randrange(1000)}, 0)")
            c.execute(f"insert into c values ({i}, {i})")
        c.execute(f"update t set n = {random.choice((0, 100_000 + self.changes))} where id = "
                  f"(select id from (select max(id) as id from t where g = 'g{random.randrange(self.GROUPS)}') x)")
        time.sleep(0.005)

    def watch(self, db):
        c = db.cursor()
        c.execute("select g, count(*) from t group by g")
        found = dict(c.fetchall())
        self.looks += 1
        if len(found) < self.GROUPS or min(found.values()) < self.KEPT:
            raise AssertionError(f"only {found}")
        time.sleep(0.002)
