"""What a batch on MariaDB holds: its own rows and nothing beside them, however they are found and judged; and two
sweepers share what is to do."""
import sys
import threading
import time
from pathlib import Path

from harness import *

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from proxy import Proxy, Session

ROWS, BATCH = 400, 10
HELD = """select trx_rows_locked, trx_tables_locked, trx_isolation_level from information_schema.innodb_trx
          where trx_mysql_thread_id in (select id from information_schema.processlist where db = database() and id <> connection_id())
          order by trx_rows_locked desc"""


ALL = "select t.id from (select seq from seq_1_to_400) as k straight_join {0} as t force index (primary) on t.id = k.seq for update nowait"
STAY = ALL.replace("seq_1_to_400", "seq_1_to_400 where seq not in (GONE)")


class Held(Case, MariadbTest):
    """The rows that the first batch has locked when it commits, by the server's own count, and whether another session
    may touch every other row of every table in it."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table src (id integer primary key, state varchar(9) not null);
            create table t (id integer primary key, state varchar(9) not null, at_ms bigint, note integer, src_id integer,
                            up integer);
            create table c (id integer primary key, t_id integer not null, state varchar(9) not null);
            create table d (id integer primary key, t_id integer);
            create index c_t on c(t_id); create index d_t on d(t_id); create index t_up on t(up)""")
        self.insert("src", *[(n, "gone" if n % 2 else "live") for n in range(1, ROWS + 1)])
        self.insert("t", *[(n, "done" if n % 4 else "live", n, ROWS - n, n, None) for n in range(1, ROWS + 1)])
        self.insert("c", *[(n, n, "done") for n in range(1, ROWS + 1)])
        self.insert("d", *[(n, n) for n in range(1, ROWS + 1)])
        self.given("analyze table t, c, d, src")

    def holds(self, policy, most, touches=()):
        """most: how many locks the batch may hold on rows and entries of indexes."""
        seen = []

        def before(s):
            if seen or not s.sql.startswith("COMMIT") or not any("DELETE" in x.sql for x in proxy.seen):
                return
            time.sleep(0.2)     # what information_schema shows is a tenth of a second old
            seen.append(self.db.rows(HELD)[0])
            gone = set(range(1, ROWS + 1)) - set(self.dirty_ids())
            self.assertEqual(len(gone), BATCH, gone)
            with Session(self.db) as other:
                other.do("set innodb_lock_wait_timeout = 1")
                other.do("set transaction isolation level read committed")
                other.do("begin")
                for sql in (STAY.format("t"), *touches):
                    other.do(sql.replace("GONE", ", ".join(map(str, gone))))
                    self.assertFalse(other.waits(), f"{sql} waits")
                    self.assertIsNone(other.error, f"{sql}\nis refused, gone are {gone}")
                other.do("rollback")

        with Proxy(self.db, before) as proxy:
            r = lapse(proxy.dsn, f"policies: {{t: {{table: t, {policy}, batch: {BATCH}}}}}", "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, 0, r)
        self.assertTrue(seen, proxy.seen)
        self.assertEqual(seen[0][2], "READ COMMITTED")
        self.assertLessEqual(int(seen[0][0]), most, f"{seen[0]}\n{proxy.seen}")
        self.assertGreaterEqual(int(seen[0][0]), BATCH)

    def dirty_ids(self):
        with self.db.connect() as c:
            c.execute("set transaction isolation level read uncommitted")
            return [n for n, in c.execute("select id from t").fetchall()]

    def test_by_the_key(self):
        self.holds("rows: {state: done}, expires: at_ms", BATCH)

    def test_by_an_index_of_the_time(self):
        self.given("create index t_at on t(at_ms)")
        self.holds("rows: {state: done}, expires: at_ms", 2 * BATCH)

    def test_by_an_index_of_state_and_time(self):
        self.given("create index t_state on t(state, at_ms)")
        self.holds("rows: {state: done}, expires: at_ms", 2 * BATCH)

    def test_backwards_and_sorted(self):
        """The newest go first of those beyond a cap: nothing serves that order, the rows are sorted."""
        self.holds("rows: {state: done}, cap: {rows: 5, newest: [note]}", BATCH)

    def test_a_small_table_that_a_scan_would_do_for(self):
        self.given("delete from c where id > 30; delete from d where id > 30; delete from t where id > 30")
        self.insert("t", *[(n, "live", 0, 0, None, None) for n in range(31, ROWS + 1)])
        self.given("analyze table t")
        self.holds("rows: {state: done}, expires: at_ms", BATCH)

    def test_with_what_it_owns(self):
        self.holds("rows: {state: done}, expires: at_ms, with: [c(t_id)], detach: [d(t_id)]", 6 * BATCH,
                   [STAY.format("c"), STAY.format("d")])

    def test_judged_by_other_rows(self):
        """What a condition looks at is read, not locked: the rows of other tables, and those it finds none in."""
        self.given("delete from c where id % 3 = 0")
        self.holds("rows: {state: done}, expires: at_ms, after: [c(t_id)]", BATCH, [ALL.format("c")])

    def test_judged_by_sql(self):
        self.holds("rows: {state: done}, expires: at_ms, where: 'exists (select 1 from c where c.t_id = this.id)',"
                   " hold: 'exists (select 1 from src where src.id = this.src_id and src.state = ''x'')'", BATCH,
                   [ALL.format("c"), ALL.format("src")])

    def test_orphans(self):
        self.given("delete from src where id % 2 = 1")
        self.holds("rows: {state: done}, orphan: {of: src(id), by: src_id}, age: at_ms, keep: 1h", BATCH,
                   [ALL.format("src")])

    def test_orphans_whose_source_no_longer_matches(self):
        """The source rows that decide are held, shared; no others are."""
        self.holds("rows: {state: done}, orphan: {of: src(id), by: src_id, matching: {state: live},"
                   " delete_when: deleted_or_unmatched}, age: at_ms, keep: 1h", 2 * BATCH,
                   [STAY.format("src")])

    def test_a_tree(self):
        self.given("update t set up = id - 100 where id > 300; update t set at_ms = null where id > 300")
        self.holds("rows: {state: [done, live]}, expires: at_ms, with: [{ref: t(up), where: {state: [done, live]}}]", 4 * BATCH)


class Short(Case, MariadbTest):
    """Tables so short that reading all is cheaper than looking up the keys: the rows of others are not waited for."""
    # what a key may be, and the n-th value of it
    KEYS = {
        "integer": "{0}", "bigint unsigned": "9223372036854775808 + {0}", "decimal(20, 5)": "{0} + 0.00001",
        "varchar(40)": "concat('wf-', {0})", "varchar(40) character set latin1": "concat('wf-', {0})",
        "varchar(40) collate utf8mb4_nopad_bin": "concat('wf-', {0})", "varbinary(40)": "concat('wf-', {0})",
        "date": "date'2024-01-01' + interval {0} day",
        "datetime": "timestamp'2024-01-01 00:00:00' + interval {0} second",
        "datetime(6)": "timestamp'2024-01-01 00:00:00' + interval {0} * 250001 microsecond",
        "timestamp(3)": "timestamp'2024-01-01 00:00:00' + interval {0} * 250000 microsecond",
        "uuid": "concat('0190a3c4-5d6e-7f80-9a0b-', lpad({0}, 12, '0'))", "inet4": "concat('10.0.0.', {0})",
        "inet6": "concat('fe80::', {0})",
    }
    INSTANCES = ("integer", "bigint unsigned", "varchar(40)", "varchar(40) character set latin1",
                 "varchar(40) collate utf8mb4_nopad_bin", "uuid")
    ROWS, HELD = 36, 12         # every twelfth is another's

    def held_by_another(self, table, by):
        other = Session(self.db).__enter__()
        other.do("set transaction isolation level read committed")
        other.do("begin")
        other.do(f"select x.{by} from (select n from numbers where n % {self.HELD} = 0) as k"
                 f" straight_join {table} as x force index ({by}) on x.{by} = k.n for update")
        self.assertIsNone(other.error)
        self.assertEqual(other.rows, self.ROWS // self.HELD)
        return other

    def setUp(self):
        super().setUp()
        self.given(f"create table numbers (n integer primary key); insert into numbers select seq from seq_1_to_{self.ROWS}")

    def erased(self, contract, rows):
        self.lapse(contract, "install", code=0)
        self.given("delete from lapse_purge; insert into lapse_purge (space, instance, reason) "
                   f"select distinct 'run', cast(run as char), 'x' from step where id % {self.HELD} <> 0; analyze table step")
        with self.held_by_another("step", "id"):
            r = self.lapse(contract, "purge", "due", "--json", code=0)
            self.assertEqual(len(r.json["executed"]), self.HELD - 1, r)
        self.assertEqual(self.ROWS - len(self.ids("step")), rows)

    def test_erases(self):
        for kind, value in ((k, self.KEYS[k]) for k in self.INSTANCES):
            for keep in ("", ", keep: {n: 3}"):
                with self.subTest(kind, keep=keep):
                    self.given(f"""drop table if exists step;
                        create table step (id integer, run {kind} not null, n integer, primary key (id), key (run), key id (id));
                        insert into step select n, {value.format(f'(n % {self.HELD})')}, n from numbers""")
                    self.erased(f"purges: {{run: {{delay: 0, erases: [{{ref: step(run){keep}}}]}}}}", 33 - bool(keep))

    def test_erases_a_tree(self):
        self.given(f"""create table step (id integer, run integer not null, up integer, primary key (id), key (run), key id (id),
                                          foreign key (up) references step (id));
                       insert into step select n, n % {self.HELD}, null from numbers where n <= 12;
                       insert into step select n, n % {self.HELD}, n - 12 from numbers where n > 12""")
        self.erased("purges: {run: {delay: 0, erases: [step(run)]}}", 33)

    def test_a_key_of_any_type(self):
        for kind, value in self.KEYS.items():
            with self.subTest(kind):
                self.given(f"""drop table if exists kid; drop table if exists t;
                    create table t (k {kind} primary key, due_ms bigint, n integer, key n (n));
                    create table kid (id integer primary key, t_k {kind}, n integer, key (t_k), key n (n));
                    insert into t select {value.format('n')}, case when n % {self.HELD} = 0 then null else n end, n from numbers;
                    insert into kid select n, {value.format('n')}, n from numbers; analyze table t, kid""")
                with self.held_by_another("t", "n"), self.held_by_another("kid", "n"):
                    self.sweep("policies: {t: {table: t, expires: due_ms, with: [kid(t_k)], timeouts: {lock: 1s}}}", code=0)
                self.assertEqual(self.db.rows("select n from t order by n"), [(12,), (24,), (36,)])
                self.left("kid", 12, 24, 36)


class Sharing(Case, MariadbTest):
    version, passes_by = None, "SKIP LOCKED"

    def proxy(self, before=None):
        return Proxy(self.db, before, version=self.version)

    def locks_so(self, *proxies):
        """In these words, as this server knows them."""
        for proxy in proxies:
            self.assertTrue([s for s in proxy.seen if s.sql.endswith(f"FOR UPDATE {self.passes_by}")], proxy.seen)

    def test_two_share_the_work(self):
        """Neither commits a batch before the other has one under way: so both have some, whoever is faster."""
        self.given("create table t (id integer primary key, at_ms bigint, pad varchar(200)); create index t_at on t(at_ms)")
        self.given("insert into t select seq, seq % 1000, repeat('x', 200) from seq_1_to_5000")
        contract = "policies: {t: {table: t, expires: at_ms, batch: 100, timeouts: {lock: 30s}}}"
        under_way, batches = threading.Barrier(2), 5

        def before():
            deleted, met = set(), []

            def come(s):
                if s.sql.startswith("DELETE"):
                    deleted.add(s.connection)
                if s.sql.startswith("COMMIT") and s.connection in deleted and len(met) < batches:
                    met.append(s)
                    under_way.wait(30)
            return come

        with self.proxy(before()) as a, self.proxy(before()) as b:
            both = [Lapse.start(p.dsn, contract, "sweep", "--json", "--now", NOW) for p in (a, b)]
            done = [r.wait(120) for r in both]
        self.locks_so(a, b)
        rows = [r.json["policies"][0]["rows"] for r in done]
        self.assertEqual([r.code for r in done], [0, 0], done)
        self.assertEqual((sum(rows), self.ids("t")), (5000, []), "each row is counted once")
        self.assertGreaterEqual(min(rows), batches, "both do their share")

    def test_rows_that_others_hold_are_passed_by(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", *[(n, 0) for n in range(1, 101)])
        with Session(self.db) as other:
            other.do("set transaction isolation level read committed")
            other.do("begin")
            other.do("select * from t where id between 1 and 30 for update", "select * from t where id = 55 for update")
            start = time.monotonic()
            with self.proxy() as proxy:
                r = lapse(proxy.dsn, "policies: {t: {table: t, expires: at_ms, batch: 10, timeouts: {lock: 30s}}}", "sweep", "--json",
                          "--now", NOW)
            self.assertLess(time.monotonic() - start, 25, "waits for nobody")
            self.left("t", *range(1, 31), 55)
            self.assertEqual((r.code, r.policy("t")["left"], r.policy("t")["skipped"]), (0, 31, []), r)
            self.locks_so(proxy)
            other.do("rollback")

    def test_limits_are_set_for_every_transaction(self):
        """A lock on an owned row is waited for no longer than timeouts.lock says, and the transaction is rolled back."""
        self.given("""create table t (id integer primary key, at_ms bigint);
                      create table c (id integer primary key, t_id integer); create index c_t on c(t_id)""")
        self.insert("t", (1, 0), (2, 0))
        self.insert("c", (1, 1), (2, 2))
        with Session(self.db) as other:
            other.do("begin")
            other.do("select * from c where id = 1 for update")
            r = self.sweep("policies: {t: {table: t, expires: at_ms, with: [c(t_id)], batch: 1, timeouts: {lock: 1s}}}",
                           code=None)
            self.assertIn(r.code, (1, 6), r)
            self.assertIn("1205", r.said)
            self.left("t", 1, 2) if self.ids("t") == [1, 2] else self.left("t", 1)
            self.assertEqual([row for row in self.db.rows(HELD) if int(row[0]) > 1], [])
            other.do("rollback")


class SharingWithoutSkipping(Sharing):
    """As before MariaDB 10.6, which can only refuse to wait: the same server says that it is older."""
    version, passes_by = "10.05", "NOWAIT"
    test_limits_are_set_for_every_transaction = None

    def test_where_that_undoes_the_transaction(self):
        """innodb_rollback_on_timeout: the rows that were had before are not held any more, so nothing is passed by."""
        server = Mariadb(settings={"innodb-rollback-on-timeout": "ON"})
        self.addCleanup(server.stop)
        self.db = server.fresh()
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", *[(n, 0) for n in range(1, 11)])
        with Session(self.db) as other:
            other.do("begin", "select * from t where id = 5 for update")
            with self.proxy() as proxy:
                r = lapse(proxy.dsn, "policies: {t: {table: t, expires: at_ms, batch: 4}}", "sweep", "--json", "--now", NOW)
            self.assertEqual((r.code, r.policy("t")["outcome"], r.policy("t")["rows"]), (1, "failed", 4), r)
            self.left("t", *range(5, 11))
            other.do("rollback")
        self.assertEqual(self.sweep("policies: {t: {table: t, expires: at_ms, batch: 4}}").policy("t")["rows"], 6)


if __name__ == "__main__":
    main()
