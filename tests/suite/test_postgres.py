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
        said = [(re.sub("^.*?plan_cache_mode", "plan_cache_mode", sql), "FOR UPDATE" in sql) for _, sql in self.said()
                if "plan_cache_mode" in sql or "FOR UPDATE" in sql]
        picks = [i for i, (_, is_pick) in enumerate(said) if is_pick]
        self.assertEqual(len(picks), 11)
        self.assertEqual({said[i - 1][0].startswith("plan_cache_mode = force_custom_plan") for i in picks}, {True}, said)


class Names(PostgresTest, Case):
    def setUp(self):
        super().setUp()
        self.given(SCHEMA.format(n=50))

    def test_they_are_few(self):
        """Counted in the session itself, by a trigger."""
        self.given("""
            create table seen (n integer);
            create function note() returns trigger language plpgsql as
                $$begin insert into seen select count(*) from pg_prepared_statements where name like 'lapse\\_%'; return null; end$$;
            create trigger note after delete on job for each statement execute function note()""")
        self.sweep(job())
        seen = [n for n, in self.db.rows("select n from seen")]
        self.assertEqual(seen[0], 0)
        self.assertGreater(seen[-1], 2)
        self.assertLessEqual(seen[-1], 32)

    def test_a_name_that_the_server_does_not_know(self):
        """Whatever took it away (a pooler that shows itself as its server): the batch is done again, without names."""
        self.given("""
            create table done (n integer);
            create function drop_all() returns trigger language plpgsql as $$begin
                insert into done values (1);
                if (select count(*) from done) = 4 then execute 'deallocate all'; end if; return null; end$$;
            create trigger drop_all after delete on job for each statement execute function drop_all()""")
        r = self.sweep(job())
        self.assertEqual((r.policy("job")["rows"], r.policy("job")["retries"]), (50, 1), r)
        self.assertEqual(self.db.rows("select count(*) from done"), [(r.policy("job")["batches"],)])
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
        """A prepared statement that gives it is refused: 'cached plan must not change result type'."""
        r = self.meanwhile("alter table job alter at_ms type numeric")
        self.assertEqual((r.code, r.policy("job")["rows"], r.policy("job")["skipped"], r.policy("job")["retries"]), (0, 50, [], 1), r)
        self.assertEqual((self.ids("job"), self.ids("step")), ([], []))

    @again
    def test_a_refusal_in_the_midst_of_what_is_sent_together(self):
        """A foreign key that is new: the row that it holds is found, the rest goes."""
        r = self.meanwhile("create table bill (id integer primary key, step_id integer references step); insert into bill values (1, 98)")
        self.assertEqual((r.policy("job")["rows"], [s["key"] for s in r.policy("job")["skipped"]]), (49, ["id=49"]), r)
        self.left("job", 49)
        self.left("step", 98, 99)
