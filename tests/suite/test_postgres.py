"""PostgreSQL: what a sweep runs batch by batch is prepared, and sent together. Nothing may go wrong that would not without."""
import re
import unittest

from daemon import eventually
from harness import *

SCHEMA = """
    create table job (id integer primary key, at_ms bigint not null);
    create table step (id integer primary key, job_id integer not null references job);
    create index job_at on job(at_ms, id); create index step_job on step(job_id);
    insert into job select n, n from generate_series(1, {n}) n;
    insert into step select 2 * n + k, n from generate_series(1, {n}) n, generate_series(0, 1) k"""


def job(more=""):
    return f"policies: {{job: {{table: job, expires: at_ms, with: [step(job_id)], batch: 5{more}}}}}"


class Prepared(unittest.TestCase, Case):
    """As the server's log tells it."""
    engine = "postgres"

    def setUp(self):
        self.server = Postgres(settings={"log_statement": "all", "log_line_prefix": "%a %p "})
        self.addCleanup(self.server.stop)
        self.db = self.server.fresh()
        self.given(SCHEMA.format(n=50))

    def said(self):
        """[(name or None, statement)] of the sweep."""
        found = re.findall(r"^lapse \d+ LOG:  (?:statement|execute (\S+)): (.*?)(?=\n\S* ?\d+ [A-Z]+:  |\Z)",
                           self.server.log.read_text(errors="replace"), re.M | re.S)
        return [(name if name.startswith("lapse_") else None, sql) for name, sql in found]

    def deletes(self):
        return [(name, sql) for name, sql in self.said() if sql.startswith("DELETE")]

    def test_what_comes_again_has_a_name(self):
        self.swept(job(), gone={"job": 50, "step": 100})
        deletes = self.deletes()
        self.assertEqual(len(deletes), 20)
        self.assertEqual([name for name, _ in deletes[:2]], [None, None], "the first batch")
        names = {name: sql for name, sql in deletes[2:]}
        self.assertEqual(len(names), 2, "one for each table")
        self.assertNotIn(None, names)
        self.assertEqual(len(set(names.values())), 2)
        said = [sql for _, sql in self.said()]
        self.assertEqual(said.count("DEALLOCATE ALL"), 1)
        self.assertGreater(said.index("DEALLOCATE ALL"), max(i for i, sql in enumerate(said) if sql.startswith("DELETE")))

    def test_one_batch_prepares_nothing(self):
        self.swept(job().replace("batch: 5", "batch: 50"), gone={"job": 50, "step": 100})
        self.assertEqual({name for name, _ in self.said()}, {None})
        self.assertNotIn("DEALLOCATE ALL", [sql for _, sql in self.said()])

    def test_how_rows_are_picked_is_planned_anew_for_each_batch(self):
        """Planned once for all, the server would not know how few it is asked for, nor from where on."""
        self.swept(job(), gone={"job": 50, "step": 100})
        picks = [name for name, sql in self.said() if "FOR UPDATE" in sql]
        self.assertEqual(picks, [None] * 11)


class Names(PostgresTest, Case):
    def setUp(self):
        super().setUp()
        self.given(SCHEMA.format(n=50))

    def in_the_session(self, does):
        """A policy whose condition runs this for each row, in the session that sweeps."""
        self.given(f"""
            create table seen (id integer, n integer);
            create function looks(k integer) returns boolean language plpgsql volatile as $$begin {does} return true; end$$""")
        return job(", where: 'looks(id)'")

    def test_they_are_few(self):
        self.sweep(self.in_the_session(r"""if current_setting('transaction_read_only') = 'off' then
            insert into seen select k, count(*) from pg_prepared_statements where name like 'lapse\_%'; end if;"""))
        seen = [n for n, in self.db.rows("select n from seen order by id")]
        self.assertEqual(seen[0], 0)
        self.assertGreater(seen[-1], 2)
        self.assertLessEqual(seen[-1], 32)

    def test_a_name_that_the_server_does_not_know(self):
        """Whatever took it away (a pooler that shows itself as its server): the batch is done again, without names."""
        contract = self.in_the_session("if k = 22 and not exists (select from seen) then execute 'deallocate all'; end if;")
        r = self.sweep(contract)
        self.assertEqual((r.policy("job")["rows"], r.policy("job")["skipped"], r.policy("job")["retries"]), (50, [], 1), r)
        self.assertEqual((self.ids("job"), self.ids("step")), ([], []))

    def meanwhile(self, sql):
        """Once a sweep has done some batches, and before its last."""
        p = Lapse.start(self.db, job(", pace: { duty: 0.02 }"), "sweep", "--json", "--no-progress", "--now", NOW)
        eventually(lambda: len(self.ids("job")) < 35)
        self.given(sql)
        if len(self.ids("job")) == 0:
            raise TooSoon("the sweep was over")
        return p.wait()

    @again
    def test_a_column_gets_another_type_meanwhile(self):
        """Of the key even, by which the prepared statements find their rows."""
        r = self.meanwhile("alter table step alter job_id type bigint; alter table job alter id type bigint")
        self.assertEqual((r.code, r.policy("job")["rows"], r.policy("job")["skipped"]), (0, 50, []), r)
        self.assertEqual((self.ids("job"), self.ids("step")), ([], []))

    @again
    def test_a_refusal_in_the_midst_of_what_is_sent_together(self):
        """A foreign key that is new: the row that it holds is found, the rest goes."""
        r = self.meanwhile("create table bill (id integer primary key, step_id integer references step); insert into bill values (1, 98)")
        self.assertEqual((r.policy("job")["rows"], [s["key"] for s in r.policy("job")["skipped"]]), (49, ["id=49"]), r)
        self.left("job", 49)
        self.left("step", 98, 99)


class Places(PostgresTest, Case):
    """Rows whose keys are no numbers are deleted where they lie. Those that moved go, too; who is there instead, does not."""
    KEYS = {"uuid": ("id uuid primary key", "('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid"),
            "text": ("id text primary key", "'k' || n"),
            "pair": ("a integer, id integer, primary key (a, id)", "n % 3, n")}
    CONTRACT = "policies: {job: {table: job, expires: at_ms, batch: 7}}"

    def jobs(self, kind="uuid", n=40, partitioned=""):
        columns, key = self.KEYS[kind]
        self.given(f"""drop table if exists job; create table job ({columns}, at_ms bigint not null, n integer not null) {partitioned};
                       create index on job(at_ms);
                       insert into job select {key}, n, n from generate_series(1, {n}) n;
                       insert into job select {key}, {4 * MS}, n from generate_series({n + 1}, {n + 20}) n""")

    def kept(self):
        return [n for n, in self.db.rows("select n from job order by 1")]

    def by_place(self, contract=None):
        return "ctid" in self.lapse(contract or self.CONTRACT, "plan", "--sql").out

    def test_all_that_is_due_and_nothing_else(self):
        for kind in self.KEYS:
            with self.subTest(kind):
                self.jobs(kind)
                self.assertTrue(self.by_place())
                self.assertEqual(self.sweep(self.CONTRACT).policy("job")["rows"], 40)
                self.assertEqual(self.kept(), list(range(41, 61)))

    def test_only_where_a_place_is_one_row_s_alone(self):
        """Partitions have the same places (each goes for itself, or none by place), a trigger may update or keep what it is to delete, what is
        detached moves."""
        self.given(f"""
            create table job (id text, at_ms bigint not null, n integer not null, primary key (id, at_ms)) partition by range (at_ms);
            create table p1 partition of job for values from (0) to ({MS}) partition by range (at_ms);
            create table p1a partition of p1 for values from (0) to (20); create table p1b partition of p1 for values from (20) to ({MS});
            create table p2 partition of job for values from ({MS}) to ({9 * MS});
            insert into job select 'k' || n, n, n from generate_series(1, 40) n;
            insert into job select 'k' || n, {4 * MS}, n from generate_series(41, 60) n""")
        self.assertFalse(self.by_place())
        self.sweep(self.CONTRACT)
        self.assertEqual(self.kept(), list(range(41, 61)))
        self.jobs()
        self.given("create table part (id integer primary key, job_id uuid references job)")
        self.assertFalse(self.by_place(self.CONTRACT.replace("batch: 7", "detach: [part(job_id)]")))
        self.given("drop table part; create function nothing() returns trigger language plpgsql as 'begin return old; end';"
                   "create trigger nothing before delete on job for each row execute function nothing()")
        self.assertFalse(self.by_place())
        self.given("drop table job cascade; create table job (id integer primary key, at_ms bigint not null, n integer not null);"
                   "create index on job(at_ms)")
        self.assertFalse(self.by_place(), "a number is as fast")

    def test_rows_that_move_after_they_were_locked(self):
        """A trigger of what they own updates them: they are found by their key."""
        self.jobs()
        self.given("""
            create table step (id text primary key, job_id uuid not null references job);
            insert into step select n || 'a', id from job; insert into step select n || 'b', id from job where n % 2 = 0;
            create index on step(job_id);
            create function count_down() returns trigger language plpgsql as
                'begin update job set n = n + 100 where id = old.job_id; return null; end';
            create trigger count_down after delete on step for each row execute function count_down()""")
        contract = self.CONTRACT.replace("batch: 7", "batch: 7, with: [step(job_id)]")
        self.assertTrue(self.by_place(contract))
        r = self.sweep(contract)
        self.assertEqual((r.policy("job")["rows"], r.policy("job")["retries"], r.policy("job")["skipped"]), (40, 0, []), r)
        self.assertEqual(self.kept(), list(range(41, 61)))
        self.assertEqual(self.db.rows("select count(*) from step s where not exists (select from job where id = s.job_id)"), [(0,)])

    def test_rows_that_moved_before_they_were_locked(self):
        """While the statement that locks them is under way, others update some: those that are still due go, from where they are now."""
        self.jobs(n=20)
        self.given("""
            create table latch (n integer);
            create function waits(k integer) returns boolean language plpgsql volatile as $$begin
                for i in 1..600 loop
                    exit when k <> 2 or not exists (select from latch);
                    perform pg_sleep(0.05);
                end loop;
                return true; end$$;
            insert into latch values (1)""")
        p = Lapse.start(self.db, "policies: {job: {table: job, expires: at_ms, batch: 100, where: 'waits(n)'}}", "sweep", "--json", "--no-progress",
                        "--now", NOW)
        eventually(lambda: self.db.rows("select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"))
        self.given(f"update job set n = n + 100 where n between 5 and 9; update job set at_ms = {4 * MS} where n = 12; delete from latch")
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["rows"], r.policy("job")["batches"]), (0, 19, 1), r)
        self.assertEqual(self.kept(), [12, *range(21, 41)])

    @again
    def test_a_table_that_inherits_meanwhile(self):
        """Its rows lie at the same places, and those of the table have moved: none of its is touched."""
        self.jobs(n=60)
        self.given(f"""
            create table step (id integer primary key, job_id uuid not null references job);
            insert into step select n, id from job; create index on step(job_id);
            create function touch() returns trigger language plpgsql as 'begin update job set n = n where id = old.job_id; return null; end';
            create trigger touch after delete on step for each row execute function touch();
            create table other (id uuid primary key, at_ms bigint not null, n integer not null);
            insert into other select gen_random_uuid(), case when n % 2 = 0 then n else {4 * MS} end, n from generate_series(1, 80) n""")
        contract = self.CONTRACT.replace("batch: 7", "batch: 5, with: [step(job_id)], pace: { duty: 0.05 }")
        p = Lapse.start(self.db, contract, "sweep", "--json", "--no-progress", "--now", NOW)
        eventually(lambda: len(self.kept()) < 75)
        self.given("alter table other inherit job")
        if self.db.rows("select count(*) from only job") == [(20,)]:
            raise TooSoon("the sweep was over")
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, 60), r)
        self.assertEqual(self.db.rows("select count(*) from only job"), [(20,)])
        self.assertEqual(self.db.rows("select count(*) from other"), [(80,)])

    def test_rows_in_the_midst(self):
        """Rows that own others are locked, and go from where they lie, too."""
        self.jobs()
        self.given("""
            create table step (id text primary key, job_id uuid not null references job);
            create table note (id integer primary key, step_id text not null references step);
            insert into step select 's' || n, id from job; insert into note select n, 's' || n from job;
            create index on step(job_id); create index on note(step_id)""")
        contract = self.CONTRACT.replace("batch: 7", "batch: 7, with: [{ref: step(job_id), with: [note(step_id)]}]")
        self.assertEqual(self.lapse(contract, "plan", "--sql").out.count('this."ctid" OPERATOR(pg_catalog.=) ANY'), 2)
        self.sweep(contract)
        self.assertEqual(self.kept(), list(range(41, 61)))
        self.left("note", *range(41, 61))
        self.assertEqual(len(self.ids("step")), 20)


class Beside(PostgresTest, Case):
    """What a sweep sets for its own statements is not for those that its statements call forth."""

    def test_foreign_keys_and_triggers_keep_their_plans(self):
        """A server plans them once per session. Planned for each row, a sweep would take four times as long."""
        self.given("""
            create table job (id uuid primary key default gen_random_uuid(), at_ms bigint not null); create index on job(at_ms);
            insert into job(at_ms) select n from generate_series(1, 20) n;
            create table seen (mode text);
            create function note() returns trigger language plpgsql as
                $$begin insert into seen values (current_setting('plan_cache_mode')); return null; end$$;
            create trigger note after delete on job for each row execute function note()""")
        self.sweep("policies: {job: {table: job, expires: at_ms, batch: 5}}")
        self.assertEqual(self.db.rows("select mode, count(*) from seen group by 1"), [("auto", 20)])
