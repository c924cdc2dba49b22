"""Two sweeps and an application at once, statement by statement: who may be where, and what may be left afterwards."""
import itertools
import threading
import time

from harness import *
from proxy import Proxy, Session

PATIENCE_S = 60


class Stop:
    """A program that goes on through its proxy up to a statement, and stands there until it is told to go further.

    A sweep that is turned away, since another judges ranks, stands where it rolls back: each further try is like it."""

    def __init__(self, db, contract, name):
        self.name, self.more = name, threading.Condition()
        self.at, self.until, self.last, self.away = None, 0, None, False
        self.proxy = Proxy(db, self._come, looks=False)
        self.db, self.pid = db, None
        self.program = Lapse.start(self.proxy.dsn, contract, "sweep", "--json", "--now", NOW)
        self.result = None

    def _come(self, s):
        with self.more:
            self.away, self.last = is_turned_away(self.last, s), s
            end = time.monotonic() + PATIENCE_S
            while self._holds(s):
                self.at = s
                self.more.notify_all()
                if not self.more.wait(end - time.monotonic()):
                    raise AssertionError(f"{self.name} was never let on from {s}")
            self.at = None

    def _holds(self, s):
        return s.number >= self.until or self.away and self.until < ENDS

    def to(self, number):
        """Until it stands before this statement, is turned away, waits for a lock, or has ended."""
        with self.more:
            self.until = number
            if self.at and not self._holds(self.at):
                self.at = None
            self.more.notify_all()
        end = time.monotonic() + PATIENCE_S
        while not self.stands() and self.program.running() and not self.waits():
            assert time.monotonic() < end, f"{self.name} neither goes on nor waits: {self.proxy.seen}"
            with self.more:
                if self.at is None:
                    self.more.wait(0.02)
        return self

    def stands(self):
        with self.more:
            return self.at is not None

    @property
    def number(self):
        """Of the statement that it stands before; 0: before none."""
        with self.more:
            return self.at.number if self.at else 0

    @property
    def turned_away(self):
        with self.more:
            return self.at is not None and self.away

    def waits(self):
        """Whether it waits for a lock of the database."""
        return bool(waiting(self.db, self.proxy.backends))

    def end(self):
        with self.more:
            self.until = ENDS
            self.more.notify_all()
        if self.result is None:
            self.result = self.program.wait(PATIENCE_S)
            self.proxy.close()
            if self.proxy.trouble:
                raise self.proxy.trouble
        return self.result

    def let_go(self):
        """To its end, without waiting for it."""
        with self.more:
            self.until = ENDS
            self.more.notify_all()


ENDS = 1 << 30


def is_turned_away(before, s):
    """PostgreSQL is asked for the turn together with BEGIN, MariaDB right after it."""
    asked = before is not None and (before.begins_batch or "GET_LOCK" in before.sql)
    return asked and s.connection == before.connection and s.sql.startswith("ROLLBACK")


def waiting(db, backends):
    """Those of these connections that wait for a row another has locked."""
    if db.engine == "postgres":
        return [i for i, in db.rows("select pid from pg_locks where not granted") if i in backends]
    status = db.rows("show engine innodb status")[0][2]
    return [i for i in backends for t in status.split("---TRANSACTION") if "LOCK WAIT" in t and f"thread id {i}," in t]


class Rows:
    """{id: (group, n)}: rows of which so many of each group stay, the largest n first, then the largest id."""
    KEPT = 1

    @classmethod
    def beyond(cls, rows):
        """Those that a sweep may delete."""
        found = set()
        for g in {g for g, _ in rows.values()}:
            of_it = sorted((n, i) for i, (its, n) in rows.items() if its == g)
            found |= {i for _, i in of_it[:-cls.KEPT]}
        return found

    @classmethod
    def may_be_left(cls, before, act, after):
        """Whether some serial order of batches and the application's transaction leads there. act(rows): what the
        application does, None: nothing. A batch may delete any of the rows that are beyond the newest, no more."""
        one = sorted(cls.beyond(before))
        for size in range(len(one) + 1):
            for first in itertools.combinations(one, size):
                then = {i: row for i, row in before.items() if i not in first}
                then = act(then) if act else then
                gone = set(then) - set(after)
                if all(then.get(i) == row for i, row in after.items()) and gone <= cls.beyond(then):
                    return True
        return False


def with_row(i, row):
    return lambda rows: {**rows, i: row}


def changed(i, row):
    """An UPDATE: of a row that is not there any more it changes nothing."""
    return lambda rows: {**rows, i: row} if i in rows else rows


def without(i):
    return lambda rows: {k: v for k, v in rows.items() if k != i}


BEFORE = {1: ("x", 100), 2: ("x", 50), 3: ("x", 25), 11: ("y", 10), 12: ("y", 5)}
# What the application does in one transaction; and what that does to the rows.
ACTS = {
    "the newest becomes the oldest": ("update t set n = 1 where id = 1", changed(1, ("x", 1))),
    "the oldest becomes the newest": ("update t set n = 200 where id = 3", changed(3, ("x", 200))),
    "a newer one is added": ("insert into t values (9, 'x', 300, 0)", with_row(9, ("x", 300))),
    "the newest is deleted": ("delete from t where id = 1", without(1)),
    "the newest moves away": ("update t set g = 'y' where id = 1", changed(1, ("y", 100))),
    "another group's newest moves in": ("update t set g = 'x' where id = 11", changed(11, ("x", 10))),
}
CAP = "cap: {rows: 1, per: [g], newest: [n]}"
KEEP = "age: at_ms, keep: 1h, keep_newest: {rows: 1, per: [g], newest: [n]}"
SCHEMA = """create table t (id integer primary key, g text, n integer not null, at_ms bigint);
            create table c (id integer primary key, t_id integer not null);
            create index t_g on t(g, n); create index c_t on c(t_id)"""


def contract(rule, batch=10, more=""):
    return f"policies: {{t: {{table: t, {rule}, batch: {batch}, with: [c(t_id)]{more}}}}}"


class Race(Case):
    """Mixed into a case on a server: self.race()."""

    def setUp(self):
        super().setUp()
        self.given(SCHEMA)

    def reset(self):
        self.given("delete from c; delete from t")
        self.insert("t", *((i, g, n, 0) for i, (g, n) in BEFORE.items()))
        self.insert("c", *((i, i) for i in BEFORE))

    def statements(self, policy):
        """The numbers of the statements of a sweep alone, from the one that finds the rows to the end of its second
        batch, or to its own end."""
        self.reset()
        with Proxy(self.db, looks=False) as proxy:
            r = lapse(proxy.dsn, policy, "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 0, r)
        seen = proxy.seen
        begins = [s.number for s in seen if s.begins_batch]
        ends = [s.number for s in seen if s.ends_batch and s.number > begins[0]]
        finds = max(s.number for s in seen if s.begins and s.number < begins[0])
        return range(finds, min(ends[min(1, len(ends) - 1)] + 3, len(seen) + 1))

    def race(self, policy, act, first_at, second_at, first_ends, early=False):
        """The first sweep stands before one of its statements, the second before one of its own, and the application
        does its transaction; then one of them ends, then the other. early: the application changes its row before the
        second sweep begins, and commits where it would else have done all. Returns where they really stood."""
        sql, effect = ACTS[act]
        self.reset()
        with Session(self.db) as application:
            a = Stop(self.db, policy, "the first").to(first_at)
            if early:
                application.do("begin", sql)
            b = Stop(self.db, policy, "the second").to(second_at)
            stood = a.number, b.number, b.turned_away
            if not early:
                application.do("begin", sql, "commit")
            elif application.waits():
                pass    # for the first one, whose COMMIT lets it on
            else:
                application.do("commit")
            one, other = (a, b) if first_ends else (b, a)
            one.let_go()
            if not self.can_end_alone(one, other):
                other.let_go()
            results = [one.end(), other.end()]
            application.finish()
            if early:
                application.do("commit").finish()
            error = application.error
        about = f"{act}, stood before {stood}, {'first' if first_ends else 'second'} ends first, early {early}\n" \
                f"{a.proxy.seen}\n{b.proxy.seen}\napplication: {error}\n" + "\n".join(map(str, results))
        for r in results:
            self.assertEqual(r.code, 0, about)
            self.assertEqual(r.policy("t")["skipped"], [], about)
        self.is_right(None if error else effect, about)
        return stood

    def can_end_alone(self, one, other):
        """Whether it ends though the other stands where it is."""
        end = time.monotonic() + PATIENCE_S
        while one.program.running():
            assert time.monotonic() < end, one.proxy.seen
            seen = one.proxy.seen[-12:]
            if one.waits() or sum(is_turned_away(*two) for two in zip(seen, seen[1:])) > 1:     # tries again and again
                return False
            time.sleep(0.003)
        return True

    def is_right(self, effect, about):
        left = {i: (g, n) for i, g, n in self.db.rows("select id, g, n from t")}
        self.assertTrue(Rows.may_be_left(BEFORE, effect, left), f"no serial order leaves {left}\n{about}")
        for i in BEFORE:
            if i in left:
                self.assertEqual(self.db.rows("select count(*) from c where t_id = ?", (i,)), [(1,)], f"of {i}\n{about}")
        owners = {i for i, in self.db.rows("select t_id from c")} - set(left)
        self.assertLessEqual(owners, {1}, f"left behind\n{about}")      # whose owner the application may have deleted
