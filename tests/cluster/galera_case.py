"""What the suites of a Galera cluster share: one cluster for all tests of a file, jobs with their steps and notes, an
application that writes on every node, and the oracle's word on each."""
import contextlib
import os
import random
import sys
import threading
import time
import unittest
from pathlib import Path

import pymysql

for _folder in ("oracle", "faults"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / _folder))
import oracle
from daemon import *
from galera import Galera
from harness import *
from proxy import Proxy

THOROUGH = bool(os.environ.get("LAPSE_CLUSTER"))        # make test-cluster
FAR_MS = 4_102_444_800_000      # the year 2100: never due in a test
CONFLICT, NOT_READY = 1213, 1047
PACE = "pace: { target: 1m, duty: 1 }"     # batches are what they are, however slow the machine is
CONTRACT = f"""
    policies:
      job: {{ table: job, expires: at_ms, batch: 20, with: [ step(job_id), note(job_id) ], {PACE} }}
    """
SCHEMA = """create table job (id integer primary key, at_ms bigint);
            create table step (id integer primary key, job_id integer not null references job(id));
            create table note (id integer primary key, job_id integer not null);
            create index job_at on job(at_ms); create index step_job on step(job_id);
            create index note_job on note(job_id);
            create table brake_of_appliers (id integer primary key auto_increment)"""
KEPT = 10       # jobs that are never due, each with its steps and its note

_cluster = None


def cluster():
    global _cluster
    if _cluster is None:
        _cluster = Galera()
    return _cluster


def thorough(test):
    """A test that only make test-cluster has."""
    return test if THOROUGH else None


def column(name):
    return oracle.Column(name, "int")


def tables_of_jobs():
    job = oracle.Table("job", {n: column(n) for n in ("id", "at_ms")}, key=["id"])
    step = oracle.Table("step", {n: column(n) for n in ("id", "job_id")}, key=["id"],
                        foreign=[oracle.Foreign(["job_id"], job, ["id"])])
    note = oracle.Table("note", {n: column(n) for n in ("id", "job_id")}, key=["id"])
    return [job, step, note]


class ClusterTest(Case, unittest.TestCase):
    """self.db is the database seen through the first node, self.on[1] through the second…"""
    engine = "mariadb"

    def setUp(self):
        self.cluster = cluster()
        self.cluster.settle()
        self.db = self.cluster.fresh()
        self.cluster.settle()
        self.on = [self.db.on(node) for node in self.cluster.nodes]
        self.db = self.on[0]
        self.addCleanup(self.tidy)

    def tidy(self):
        for db in self.on:
            db.close()
        self.cluster.settle()
        self.db.server.admin(f'drop database if exists "{self.db.name}"')

    # --- jobs

    def fill(self, due):
        """So many jobs that are due, with two steps and a note each; KEPT that are not."""
        self.given(SCHEMA)
        self.given(f"insert into job select seq, {MS} - seq from seq_1_to_{due};"
                   f"insert into job select -seq, {FAR_MS} from seq_1_to_{KEPT - 1}; insert into job values (0, null);"
                   "insert into step select 2 * id + k, id from job, (select 0 k union all select 1) two;"
                   "insert into note select id, id from job")
        self.cluster.settle()

    def due_left(self, db=None):
        return (db or self.db).rows(f"select count(*) from job where at_ms <= {MS}")[0][0]

    def start(self, node, contract=CONTRACT, *more):
        p = Lapse.start(self.on[node], contract, "sweep", "--json", *more)
        self.addCleanup(p.kill)
        return p

    def meeting(self, contract, *more, nodes=3, **how):
        """Sweeps through so many nodes at once. The first transactions in which they delete are all about to be committed
        before the first of them is: since no lock holds between nodes they are of the same rows, and one alone can be."""
        meeting = Meeting("delete ", programs=nodes)
        with contextlib.ExitStack() as stack:
            proxies = [stack.enter_context(Proxy(db, meeting.before())) for db in self.on[:nodes]]
            running = [Lapse.start(p.dsn, contract, "sweep", "--json", *more, **how) for p in proxies]
            for p in running:
                self.addCleanup(p.kill)
            results = [p.wait(200) for p in running]
        self.assertEqual(meeting.met, nodes)
        return results

    def until_left(self, p, most, node=0):
        """The sweep has come so far that no more than so many are left. The test is @again."""
        eventually(lambda: self.due_left(self.on[node]) <= most or not p.running(), 60, every=0.002)
        if not p.running():
            raise TooSoon(f"a sweep that left {most}")

    def everywhere(self, sql, params=()):
        """What every node answers once all have caught up: the same."""
        self.cluster.settle()
        answers = []
        for db in self.on:
            db.close()
            answers.append(db.rows(sql, params))
        self.assertEqual(answers[1:], answers[:-1], f"the nodes differ: {sql}")
        return answers[0]

    def state(self, tables):
        """{table: {id: row}} of every node, which must be the same on all."""
        return {t: {row[0]: dict(zip(t.columns, row)) for row in
                    self.everywhere(f"select {', '.join(t.columns)} from {t.name}")} for t in tables}

    def as_the_oracle_says(self, tables, before, contract=CONTRACT):
        """What is left on every node is what is left of `before` when everything due is gone."""
        wanted = oracle.exhausted(contract, oracle.Schema(tables), before, int(time.time() * 1_000_000))
        found = self.state(tables)
        for t in tables:
            self.assertEqual(found[t], wanted[t], f"rows of {t}")

    def all_is_right(self):
        """What was due is gone with all it owned, on every node; what was not is there with its own."""
        kept = list(range(1 - KEPT, 1))
        self.assertEqual([i for i, in self.everywhere("select id from job order by 1")], kept)
        self.assertEqual(self.everywhere("select job_id, count(*) from step group by 1 order by 1"), [(i, 2) for i in kept])
        self.assertEqual([i for i, in self.everywhere("select job_id from note order by 1")], kept)

    def whole(self):
        """No job without its steps and its note, none the other way round, on every node."""
        self.assertEqual(self.everywhere("select id from job where (select count(*) from step where job_id = job.id) <> 2"
                                         " or (select count(*) from note where job_id = job.id) <> 1"), [])
        self.assertEqual(self.everywhere("select job_id from note where job_id not in (select id from job)"), [])

    def hold_appliers(self, node, other):
        """From now on `node` applies nothing of what is committed on others, until the returned function is called."""
        holder = self.on[node].connect()
        holder.execute("lock tables brake_of_appliers write")
        self.on[other].execute("insert into brake_of_appliers () values ()")
        return holder.close


class Meeting:
    """Before the COMMIT of the first transaction of each of several programs in which these words are said, all wait for
    each other."""

    def __init__(self, *words, programs=2):
        self.words, self.barrier, self.met = words, threading.Barrier(programs), 0

    def before(self):
        mine, is_it = [], After(self.words)

        def come(s):
            if not mine and is_it(s):
                mine.append(s)
                self.barrier.wait(45)       # a transaction that is idle is ended after a minute
                self.met += 1
        return come


class After:
    """Finds the COMMIT of the transaction in which something like this was said."""

    def __init__(self, words):
        self.words, self.said = words, set()

    def __call__(self, s):
        if s.begins_batch:
            self.said.discard(s.connection)
        if all(w in s.sql.lower() for w in self.words):
            self.said.add(s.connection)
        return s.sql.startswith("COMMIT") and s.connection in self.said


class Application(threading.Thread):
    """Writes through one node all the time: brings jobs that are due back to life, adds some that are due and some that
    are not, deletes some itself. Keeps what was acknowledged; of what was not, the whole is rolled back. It ends some time:
    on a busy machine, sweeps would never come to a COMMIT before it changed one of their rows."""
    MOST = 400

    def __init__(self, db, number, due):
        super().__init__(daemon=True)
        self.connection, self.rng, self.due = db.connect(), random.Random(number), due
        self.revived, self.added, self.deleted = set(), {}, set()
        self.next, self.ends, self.trouble, self.conflicts = 1_000_000 * (number + 1), False, None, 0
        self.tries = 0

    def run(self):
        try:
            while not self.ends and self.tries < self.MOST:
                self.tries += 1
                try:
                    self.rng.choice((self.revive, self.revive, self.add, self.delete))()
                except pymysql.OperationalError as e:
                    self.conflicts += 1
                    if e.args[0] != CONFLICT:
                        raise
                time.sleep(0.001)
        except Exception as e:
            self.trouble = e

    def finish(self):
        self.ends = True
        self.join()
        if self.trouble is not None:
            raise self.trouble
        return self

    def do(self, sql, *params):
        return self.connection.execute(sql, params).rowcount

    def revive(self):
        at = self.rng.randrange(1, self.due + 1)
        if self.do("update job set at_ms = ? where id = ?", FAR_MS, at):
            self.revived.add(at)

    def add(self):
        """However long it takes: the oracle has to look at each of them."""
        if len(self.added) == 60:
            return
        self.next += 1
        at, time_ms = self.next, self.rng.choice((MS, FAR_MS))
        self.connection.begin()
        self.do("insert into job values (?, ?)", at, time_ms)
        self.do("insert into step values (?, ?), (?, ?)", 2 * at, at, 2 * at + 1, at)
        self.do("insert into note values (?, ?)", at, at)
        self.connection.commit()
        self.added[at] = time_ms

    def delete(self):
        at = self.rng.randrange(1, self.due + 1)
        self.connection.begin()
        self.do("delete from step where job_id = ?", at)
        self.do("delete from note where job_id = ?", at)
        gone = self.do("delete from job where id = ? and at_ms < ?", at, FAR_MS)
        if gone:
            self.connection.commit()
            self.deleted.add(at)
        else:
            self.connection.rollback()
