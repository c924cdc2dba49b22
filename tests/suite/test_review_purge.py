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

    @not_on("sqlite", "a trigger on lapse_purge is refused there")
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

    def test_a_retry_brings_nothing_forward(self):
        """The first attempt failed, and now the contract waits longer, or for ever."""
        for reason, then in (("failed", iso(MS + 23 * HOUR)), ("archived", None)):
            with self.subTest(reason):
                self.given("delete from lapse_purge; delete from workflow; delete from workflow_step; delete from workflow_kv")
                self.instance("a")
                self.schedule("a", reason, ago_ms=HOUR)
                self.given(f"update lapse_purge set attempts = 1, error = 'x', retry_at = '{self.time(MS - 1000)}'")
                self.due()
                self.assertEqual((self.there("a"), self.db.rows("select attempts, retry_at from lapse_purge")), (self.WHOLE, [(1, None)]))
                self.due(now=iso(MS + 22 * HOUR))
                self.assertEqual(self.there("a"), self.WHOLE)
                if then:
                    self.due(("a", reason), now=then)
                    self.assertEqual((self.there("a"), self.pending()), (self.PURGED, []))

    def test_scheduling_again_does_not_hasten_a_retry(self):
        self.instance("a")
        self.schedule("a", ago_ms=HOUR)
        self.given(f"update lapse_purge set attempts = 3, error = 'x', retry_at = '{self.time(MS + 5000)}'")
        self.schedule("a", "again", ago_ms=HOUR // 2)
        self.due()
        self.assertEqual(self.there("a"), self.WHOLE)
        self.assertEqual(self.db.rows("select attempts from lapse_purge where retry_at is not null"), [(3,)])
        self.due(("a", "completed"), now=iso(MS + 5000))

    def test_an_instance_of_the_same_name_in_another_space(self):
        """Its row neither decides nor goes: scheduled earlier, later, and under a space that nobody knows."""
        self.given(f"create table job (id {self.text} primary key)")
        self.insert("job", "a")
        self.instance("a")
        contract = self.contract.replace("purges:", "purges:\n      jobs: { delay: 30d, erases: [job(id)] }")
        self.schedule("a", "x", ago_ms=3 * HOUR, space="jobs")
        self.schedule("a", "x", ago_ms=3 * HOUR, space="nobody")
        self.schedule("a", ago_ms=2 * HOUR)
        self.schedule("a", "x", ago_ms=HOUR, space="jobs")
        r = self.due(("a", "completed"), contract=contract)
        self.assertEqual(r.json["spaces"][-1]["removed"], 0, r)
        self.assertEqual(self.there("a"), self.PURGED)
        self.assertEqual(self.db.rows("select space from lapse_purge order by id"), [("jobs",), ("nobody",), ("jobs",)])
        self.assertEqual(self.db.rows("select count(*) from job"), [(1,)])

    def test_what_is_kept_does_not_go_with_its_parent(self):
        """A table that refers to itself, within the instance."""
        self.given(f"""create table node (wf {self.text}, id integer, parent integer, kind {self.text}, primary key (wf, id),
                       foreign key (wf, parent) references node(wf, id) on delete cascade);
                       insert into node values ('a', 1, null, 'x');
                       insert into node values ('a', 2, 1, 'keep')""")
        keeps = "purges: { s: { erases: [ { ref: node(wf), keep: { kind: keep } } ] } }"
        self.schedule("a", ago_ms=HOUR, space="s")
        self.finding(self.check(keeps, code=3), "error", "that are kept refer to rows of", policy="purges.s")
        self.lapse(keeps, "purge", "due", "--now", NOW, code=3)
        self.assertEqual(self.db.rows("select count(*) from node"), [(2,)])
        self.lapse("purges: { s: { erases: [ node(wf) ] } }", "purge", "due", "--now", NOW, code=0)
        self.assertEqual(self.db.rows("select count(*) from node"), [(0,)])


class Postgres(Purging, PostgresTest):
    def raising(self, words):
        self.given(f"""create or replace function no() returns trigger language plpgsql as $$ begin raise exception '%', {words}; end $$;
                       drop trigger if exists no on workflow;
                       create trigger no before delete on workflow for each row when (old.id like 'bad%') execute function no()""")

    def test_long_words_of_a_trigger(self):
        """Half a character at the end of what is noted would be refused, and the space would stand still."""
        self.instance("bad", "b")
        for i in range(4):
            with self.subTest(i):
                self.raising(f"repeat('x', {i}) || repeat('{'é😀'[i % 2]}', 3000)")
                self.given("delete from lapse_purge")
                self.schedule("bad", ago_ms=HOUR)
                self.schedule("b", ago_ms=HOUR)
                self.due(("b", "completed"), code=1)
                self.assertEqual(self.db.rows("select instance, attempts from lapse_purge"), [("bad", 1)])

    def test_one_that_fails_behind_those_that_others_hold(self):
        """Batches that shrink because of it must not end with what is held."""
        for held in (1, 4):
            with self.subTest(held=held):
                self.given("drop trigger if exists no on workflow; delete from lapse_purge; delete from workflow; delete from workflow_step; delete from workflow_kv")
                self.raising("'no'")
                names = [f"held{i}" for i in range(held)]
                self.instance(*names, "bad1", "bad2", "c1", "c2")
                for n in names:
                    self.schedule(n, ago_ms=3 * HOUR)
                    self.schedule(n, "failed", ago_ms=2 * HOUR)
                for n in ("bad1", "bad2", "c1", "c2"):
                    self.schedule(n, ago_ms=HOUR)
                other = self.db.connect()
                other.autocommit = False
                with other.cursor() as q:
                    q.execute("select 1 from lapse_purge where reason = 'failed' for update")
                    r = self.lapse(self.contract, "purge", "due", "--now", NOW, "--json", code=1, timeout=60)
                other.rollback()
                other.close()
                self.assertEqual(sorted(x["instance"] for x in r.json["executed"]), ["c1", "c2"], r)
                self.assertEqual(self.db.rows("select instance, attempts from lapse_purge where attempts > 0 order by 1"),
                                 [("bad1", 1), ("bad2", 1)])
                self.assertEqual({n: self.there(n) for n in names}, {n: self.WHOLE for n in names})

    def test_times_before_all_calendars(self):
        """Such a row is never picked, so nobody is told that it is due."""
        self.instance("a")
        for at in ("4000-01-01 BC", "-infinity", "infinity", "20000-01-01"):
            with self.subTest(at):
                self.given(f"delete from lapse_purge; insert into lapse_purge (space, instance, reason, scheduled_at) values ('workflow', 'a', 'x', '{at}')")
                self.due()
                self.assertIn("never due", self.lapse(self.contract, "purge", "list", code=0).out)

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
