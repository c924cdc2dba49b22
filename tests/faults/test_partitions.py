"""partitions: drop, with another session before any one statement, and with the connection cut at any of them.

What holds wherever it comes: a row that was brought to life, or added, in time is there afterwards; a partition is there
with all its rows or gone with all of them; what is counted is what went."""
import contextlib
import threading
import time

from harness import *
from proxy import *

SCHEMA = """
    create table ev (id integer, at timestamptz not null, state text not null, primary key (id, at)) partition by range (at);
    create table ev_1 partition of ev for values from ('2024-01-01') to ('2024-02-01');
    create table ev_2 partition of ev for values from ('2024-02-01') to ('2024-03-01');
    create table ev_6 partition of ev for values from ('2024-06-01') to ('2024-07-01')"""
ROWS = """
    insert into ev select g, '2024-01-02', 'done' from generate_series(1, 5) g;
    insert into ev select g, '2024-02-02', 'run' from generate_series(11, 15) g;
    insert into ev select g, '2024-06-14', 'done' from generate_series(21, 25) g"""
RESET = f"drop table if exists ev; {SCHEMA}; {ROWS}"
SLOW = 'where: "pg_sleep(0.02) is not null", '      # judging takes longer than everybody may wait
CONTRACT = "policies: {ev: {table: ev, rows: {state: done}, age: at, keep: 30d, partitions: drop}}"


class Partitions(Case, PostgresTest):
    def through(self, contract=CONTRACT, before=None, *more):
        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn, contract, "sweep", "--json", "--now", NOW, *more)
        return r, list(proxy.seen)

    def rows(self):
        return {i for i, in self.db.rows("select id from ev")}

    def there(self, name):
        return self.db.rows("select to_regclass(?) is not null", (name,)) == [(True,)]

    def all_points(self, contract=CONTRACT):
        """Every statement of a sweep that drops ev_1, from the one that lists its partitions to the next transaction."""
        self.given(RESET)
        r, seen = self.through(contract)
        self.assertEqual((r.code, self.there("ev_1"), self.gone(r)), (0, False, {"ev": 5}), r)
        listed = next(s.number for s in seen if s.sql.startswith("WITH RECURSIVE root"))
        dropped = next(s.number for s in seen if s.sql.startswith("DROP TABLE"))
        return range(listed, dropped + 4)

    def each(self, act, check, contract=CONTRACT, early=()):
        for point in self.all_points(contract):
            with self.subTest(point=point):
                self.given(RESET)
                with Session(self.db) as other:
                    other.do(*early)

                    def come_in(statement):
                        if statement.number == point:
                            other.do(*act)

                    r, seen = self.through(contract, come_in)
                    other.finish()
                    where = f"before {point}\n{seen}\nother: {other.rows} {other.error}\n{r}"
                    self.assertEqual((r.code, r.policy("ev")["outcome"]), (0, "done"), where)
                    check(other, r, where)
                    first = {i for i in self.rows() if i <= 25}
                    self.assertEqual(self.gone(r).get("ev", 0), 15 - len(first), f"counted {where}")
                    self.assertEqual(first - {1, 2, 3, 4, 5}, set(range(11, 16)) | set(range(21, 26)), where)

    # --- races ------------------------------------------------------------------------------------------------------

    def revived(self, other, r, where):
        self.assertIsNone(other.error, where)
        self.assertEqual(1 in self.rows(), other.rows == 1, where)
        self.assertEqual(self.there("ev_1"), other.rows == 1, where)

    def test_a_row_revived(self):
        self.each(("update ev set state = 'run' where id = 1 and state = 'done'",), self.revived)

    def test_a_row_revived_while_rows_are_judged_for_long(self):
        self.each(("update ev set state = 'run' where id = 1 and state = 'done'",), self.revived,
                  CONTRACT.replace("partitions", SLOW + "partitions"))

    def test_a_row_revived_in_the_partition_itself(self):
        def check(other, r, where):
            if other.error:
                self.assertIn("does not exist", str(other.error), where)
            self.assertEqual(1 in self.rows(), other.rows == 1, where)
        self.each(("update ev_1 set state = 'run' where id = 1 and state = 'done'",), check)

    def test_a_row_revived_by_an_open_transaction(self):
        def check(other, r, where):
            self.assertIn(1, self.rows(), where)
            self.assertTrue(self.there("ev_1"), where)
        self.each(("commit",), check, early=("begin", "update ev set state = 'run' where id = 1"))

    def test_a_row_added(self):
        def check(other, r, where):
            if other.error:
                self.assertIn("no partition of relation", str(other.error), where)
            self.assertEqual(99 in self.rows(), not other.error, where)
            self.assertEqual(self.there("ev_1"), not other.error, where)
        for contract in (CONTRACT, CONTRACT.replace("partitions", SLOW + "partitions")):
            self.each(("insert into ev values (99, '2024-01-09', 'run')",), check, contract)

    def test_a_row_added_by_an_open_transaction(self):
        def check(other, r, where):
            self.assertIn(99, self.rows(), where)
        self.each(("commit",), check, early=("begin", "insert into ev values (99, '2024-01-09', 'run')"))

    def test_a_row_that_moves_there(self):
        def check(other, r, where):
            if other.error:
                self.assertIn("no partition of relation", str(other.error), where)
            self.assertIn(11, self.rows(), where)
        self.each(("update ev set at = '2024-01-09' where id = 11",), check)

    def test_after(self):
        """A row that makes it wait, in a table without a foreign key: what was committed before the judgement counts."""
        self.given("create table box (ev_id integer)")
        late = []

        def check(other, r, where):
            self.assertIsNone(other.error, where)
            late.append(self.there("ev_1"))
            self.assertEqual(1 in self.rows(), self.there("ev_1"), where)
            self.given("delete from box")
        self.each(("insert into box values (1)",), check, CONTRACT.replace("partitions", "after: [box(ev_id) -> (id)], partitions"))
        self.assertEqual(late, sorted(late, reverse=True), "in time up to one point, never after it")
        self.assertEqual(set(late), {True, False})

    def test_a_trigger_made_meanwhile(self):
        self.given("create table log (id integer); create function note() returns trigger language plpgsql as "
                   "'begin insert into log values (old.id); return old; end'")

        def check(other, r, where):
            logged = {i for i, in self.db.rows("select id from log")}
            self.assertEqual(self.there("ev_1"), other.error is None, where)      # made in time: it fires for each row
            self.assertEqual(logged, {1, 2, 3, 4, 5} if other.error is None else set(), where)
            self.given("truncate log")
        self.each(("create trigger t after delete on ev_1 for each row execute function note()",), check)

    def test_detached_meanwhile(self):
        self.detached("alter table ev detach partition ev_1")

    def test_renamed_meanwhile(self):
        self.detached("alter table ev_1 rename to ev_old")

    def detached(self, act):
        for point in self.all_points():
            with self.subTest(point=point):
                self.given("drop table if exists ev_1, ev_old;" + RESET)
                with Session(self.db) as other:
                    r, seen = self.through(CONTRACT, lambda s: other.do(act) and None if s.number == point else PASS)
                    other.finish()
                where = f"before {point}\n{seen}\n{other.error}\n{r}"
                name = "ev_1" if "detach" in act else "ev_old"
                if other.error:
                    self.assertFalse(self.there("ev_1"), where)
                    self.assertEqual(self.gone(r), {"ev": 5}, where)
                elif "detach" in act:       # its rows are no rows of the table any more, and stay
                    self.assertEqual(self.db.rows("select count(*) from ev_1"), [(5 - self.gone(r).get("ev", 0),)], where)
                elif self.there(name):
                    self.assertEqual(self.db.rows(f"select count(*) from {name}"), [(5 - self.gone(r).get("ev", 0),)], where)
        self.given("drop table if exists ev_1, ev_old")

    # --- cuts -------------------------------------------------------------------------------------------------------

    def test_cut_at_any_statement(self):
        """The connection breaks once: the sweep goes on, and all is gone in the end; nothing is counted that is not."""
        points = self.all_points()
        for how in (CUT, MUTE, DEAF, STRAND):
            for point in points if how in (CUT, MUTE) else points[-5:]:
                with self.subTest(how=how, point=point):
                    self.given(RESET)
                    r, seen = self.through(CONTRACT, lambda s: how if s.number == point else PASS)
                    where = f"{how} {point}\n{seen}\n{r}"
                    if r.code == 5:     # before there was anything to go on with
                        self.assertEqual(len(self.rows()), 15, where)
                        continue
                    p = r.policy("ev")
                    self.assertEqual(self.rows(), set(range(11, 16)) | set(range(21, 26)), where)
                    self.assertEqual(p["rows"] + p["unknown"] if not p["rows"] else p["rows"], 5, where)
                    if how == CUT and not seen[point - 1].sql.startswith("COMMIT"):
                        self.assertEqual(p["unknown"], 0, where)

    def test_killed_at_any_statement(self):
        for point in self.all_points():
            with self.subTest(point=point):
                self.given(RESET)
                running = []

                def kill(statement):
                    if statement.number == point:
                        running[0].kill()

                with Proxy(self.db, kill) as proxy:
                    path = contract_file(proxy.dsn, CONTRACT)
                    running.append(Lapse.start(None, path, "sweep", "--json", "--now", NOW))
                    running[0].wait(30, signals=(9,))
                self.settled()
                self.assertIn(self.rows() & {1, 2, 3, 4, 5}, (set(), {1, 2, 3, 4, 5}), f"half after {proxy.seen}")
                left = len(self.rows() & {1, 2, 3, 4, 5})
                r = self.sweep(CONTRACT)
                self.assertEqual((self.gone(r).get("ev", 0), self.there("ev_1")), (left, False), f"{proxy.seen}\n{r}")

    def settled(self):
        """The session of the killed program has ended."""
        deadline = time.monotonic() + 20
        while self.db.rows("select 1 from pg_stat_activity where application_name = 'lapse' and datname = current_database()"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    # --- others at the same table -------------------------------------------------------------------------------

    def test_many_sweepers_count_each_row_once(self):
        for turn in range(5):
            self.given(RESET)
            sweepers = [Lapse.start(self.db, CONTRACT, "sweep", "--json", "--now", NOW) for _ in range(4)]
            said = [s.wait() for s in sweepers]
            self.assertEqual([r.code for r in said], [0] * 4, "\n".join(map(str, said)))
            self.assertEqual(sum(self.gone(r).get("ev", 0) for r in said), 5, "\n".join(map(str, said)))
            self.assertEqual(self.rows(), set(range(11, 16)) | set(range(21, 26)))

    def test_readers_and_writers_meanwhile(self):
        """Neither fails, nor waits long, whatever of the table it uses; rows that it added are there."""
        stop, trouble, slowest, added = threading.Event(), [], [0.0], []

        def work(n):
            with contextlib.closing(self.db.connect()) as c:
                c.autocommit = True
                k = c.cursor()
                for i in range(10**6):
                    if stop.wait(0.01):
                        return
                    start = time.monotonic()
                    try:
                        if n == 0:
                            k.execute("select count(*) from ev")
                        elif n == 1:
                            k.execute("update ev set state = state where id = 21")
                        else:
                            k.execute(f"insert into ev values ({1000 + i}, '2024-06-14', 'done')")
                            added.append(1000 + i)
                    except Exception as e:
                        trouble.append(e)
                    slowest[0] = max(slowest[0], time.monotonic() - start)

        self.given(RESET)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for t in threads:
            t.start()
        dropped = 0
        try:
            for turn in range(6):
                r = self.sweep(CONTRACT)
                dropped += any(p["dropped"] for p in r.policy("ev")["partitions"])
                self.db.execute("create table if not exists ev_1 partition of ev for values from ('2024-01-01') to ('2024-02-01')")
                self.db.execute("insert into ev select g, '2024-01-02', 'done' from generate_series(1, 500) g on conflict do nothing")
        finally:
            stop.set()
            for t in threads:
                t.join()
        self.assertEqual(trouble, [])
        self.assertGreater(dropped, 0, "busy tables are dropped from, too")
        self.assertLess(slowest[0], 15, "a statement waited too long")
        self.assertLessEqual(set(added), self.rows())
