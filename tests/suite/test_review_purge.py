"""Purges: what a second look found."""
import time

from harness import *
from test_purge import ONLY, Purging, T


@every_engine
class Early(Purging):
    def stubborn(self):
        if self.on_postgres:
            self.given("""create function stays() returns trigger language plpgsql as $$ begin
                          if old.reason = 'again' then raise exception 'stays'; end if; return old; end $$;
                          create trigger stays before delete on lapse_purge for each row execute function stays()""")
        else:
            self.given("create trigger stays before delete on lapse_purge when old.reason = 'again' "
                       "begin select raise(abort, 'stays'); end")

    def test_a_row_that_cannot_be_removed_brings_nothing_forward(self):
        """The first row waits; that the second could not be removed is no failed attempt of the first."""
        self.stubborn()
        self.instance("a")
        self.schedule("a", ago_ms=HOUR, at_ms=MS + 100 * HOUR)
        self.schedule("a", "again", ago_ms=HOUR // 2)
        self.lapse(self.contract, "purge", "due", "--now", NOW, code=1, timeout=20)
        self.assertEqual(self.db.rows("select attempts, retry_at from lapse_purge order by id"), [(0, None), (0, None)])

    def test_scheduling_after_a_reason_that_does_not_count(self):
        """That row goes unexecuted, and nothing would be left of what was asked for."""
        self.instance("a")
        self.schedule("a", "paused")
        r = self.lapse(ONLY, "purge", "schedule", T, "a", "completed", "--json", code=0)
        self.assertTrue(r.json["scheduled"], r)
        self.due(contract=ONLY, now=None)
        self.assertEqual(self.db.rows("select reason from lapse_purge"), [("completed",)])


class Postgres(Purging, PostgresTest):
    def test_a_failure_of_one_without_a_usable_time_is_noted(self):
        self.given("""create function no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
                      create trigger no before delete on workflow for each row execute function no()""")
        self.instance("a")
        self.given("insert into lapse_purge (space, instance, reason, scheduled_at, purge_at) "
                   f"values ('workflow', 'a', 'x', '-infinity', '{self.time(MS)}')")
        self.lapse(self.contract, "purge", "due", "--now", NOW, code=1, timeout=20)
        self.assertEqual(self.db.rows("select attempts from lapse_purge"), [(1,)])

    def test_a_restart_is_not_the_victim_of_a_deadlock(self):
        """An application that has locked its row and then cancels is never told of a deadlock: the purge gives way."""
        self.given("""create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.6); return old; end $$;
                      create trigger slow before delete on workflow_kv for each row execute function slow()""")
        name = self.db.rows("select current_database()")[0][0]
        self.given(f'alter database "{name}" set deadlock_timeout = \'1s\'')      # as it is out of the box
        self.addCleanup(self.given, f'alter database "{name}" reset deadlock_timeout')
        self.instance("a")
        self.schedule("a", ago_ms=HOUR)
        app = self.db.connect()
        app.autocommit = False
        with app.cursor() as q:
            q.execute("update workflow set status = 'running' where id = 'a'")
            p = Lapse.start(self.db, self.contract, "purge", "due", "--now", NOW)
            while not self.db.rows("select 1 from pg_stat_activity where wait_event = 'PgSleep'"):
                time.sleep(0.02)
            q.execute("delete from lapse_purge where instance = 'a'")
            self.assertEqual(q.rowcount, 1)
            app.commit()
        app.close()
        p.wait()
        self.assertEqual(self.there("a"), self.WHOLE)

    def test_a_locked_table_keeps_only_its_own_space(self):
        self.given("create table job (id text primary key, note text); insert into job values ('j', 'x')")
        contract = self.contract.replace("purges:", "purges:\n      aaa: { erases: [job(id)] }")
        self.instance("a")
        self.schedule("a", ago_ms=HOUR)
        self.schedule("j", ago_ms=HOUR, space="aaa")
        other = self.db.connect()
        other.autocommit = False
        with other.cursor() as q:
            q.execute("lock table job in access exclusive mode")
            r = self.lapse(contract, "purge", "due", "--now", NOW, "--json", timeout=60)
        other.rollback()
        other.close()
        self.assertEqual(self.there("a"), self.PURGED, r)

    def test_types_that_shorten(self):
        """A cast to these cuts silently."""
        long = "x" * 63
        self.given(f"create extension if not exists citext; create domain d as citext;"
                   f"create table n (id name primary key); insert into n values ('{long}');"
                   "create table v (id varchar(3) primary key); insert into v values ('abc');"
                   "create table c1 (id \"char\" primary key); insert into c1 values ('a');"
                   "create table b (id char(3) primary key); insert into b values ('abc');"
                   "create table ci (id citext primary key); insert into ci values ('abc');"
                   "create table dd (id d primary key); insert into dd values ('abc')")
        for table, name in (("n", long + "y"), ("v", "abcd"), ("v", "abc "), ("c1", "ab"), ("b", "abcd"), ("ci", "ABC"), ("dd", "ABC")):
            with self.subTest(table=table, name=name):
                self.given("delete from lapse_purge")
                self.schedule(name, ago_ms=HOUR, space="s")
                r = self.lapse(f"purges: {{ s: {{ erases: [{table}(id)] }} }}", "purge", "due", "--now", NOW, "--json")
                self.assertEqual(self.db.rows(f"select count(*) from {table}"), [(1,)], r)


class Sqlite(Purging, SqliteTest):
    def test_collations(self):
        for i, (ddl, stored, name) in enumerate((("text collate rtrim", "abc ", "abc"), ("integer", "7.5", "7"), ("text", 7, "7.0"),
                                  ("varchar(3) collate nocase", "ABC", "abc"), ("int", "x7", "7"))):
            with self.subTest(ddl=ddl):
                self.given(f"create table t{i} (id {ddl}); delete from lapse_purge")
                self.insert(f"t{i}", (stored,))
                self.schedule(name, ago_ms=HOUR, space="s")
                r = self.lapse(f"purges: {{ s: {{ erases: [t{i}(id)] }} }}", "purge", "due", "--now", NOW, "--json")
                self.assertEqual(self.db.rows(f"select count(*) from t{i}"), [(1,)], r)
