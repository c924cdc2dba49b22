"""Rows that the database does not let go: triggers, rules and foreign keys that say no, quietly or loudly.

The row stays with all it owns, the others of its batch go, it is named with the database's words, exit 1."""
from harness import *

QUIET = "no trigger can keep a row quietly"
BAD, LAST = 500, 1000       # the row that cannot go, of so many


@every_engine
class Refusals(Case):
    def setUp(self):
        super().setUp()
        self.given("""
            create table job (id integer primary key, at_ms bigint);
            create table step (id integer primary key, job_id integer not null references job(id));
            create table note (id integer primary key, step_id integer not null references step(id));
            create table ext (id integer primary key, job_id integer references job(id) on delete cascade);
            create index job_at on job(at_ms); create index step_job on step(job_id);
            create index note_step on note(step_id); create index ext_job on ext(job_id)""")

    def fill(self, last=LAST):
        for table in ("job", "step", "note", "ext"):
            columns = "n, 0" if table == "job" else "n, n"
            self.given(f"insert into {table} select {columns} from ({self.series(last)}) s")

    def contract(self, batch=1000):
        return f"""
            policies:
              job: {{ table: job, expires: at_ms, batch: {batch},
                     with: [ {{ ref: step(job_id), with: [ note(step_id) ] }} ], detach: [ ext(job_id) ] }}"""

    def trigger(self, table, event="delete", when=f"old.id = {BAD}", quiet=True, words="under audit"):
        if self.on_postgres:
            body = "return null;" if quiet else f"raise exception '{words} %', old.id;"
            self.given(f"""
                create function no_{table}() returns trigger language plpgsql as $$ begin {body} end $$;
                create trigger no before {event} on {table} for each row when ({when}) execute function no_{table}()""")
        else:
            what = "ignore" if quiet else f"abort, '{words}'"
            self.given(f"create trigger no_{table} before {event} on {table} when {when} begin select raise({what}); end")

    def one_stays(self, *words, batch=1000, rows=(BAD,), contract=None, last=LAST):
        r = self.sweep(contract or self.contract(batch), code=1)
        p = r.policy("job")
        rows = sorted(rows)
        for table in ("job", "step", "note"):
            self.left(table, *rows)
        self.assertEqual([i for i, in self.db.rows("select id from ext where job_id is not null order by 1")], rows)
        self.assertEqual(self.db.rows("select count(*) from ext"), [(last,)])
        self.assertEqual((p["outcome"], p["rows"]), ("done", last - len(rows)))
        self.assertEqual(self.gone(r), {t: last - len(rows) for t in ("job", "step", "note")})
        self.assertEqual(self.gone(r, "detached"), {"ext": last - len(rows)})
        self.assertEqual(sorted((s["key"], s["reason"]) for s in p["skipped"]),
                         sorted((f"id={i}", "refused") for i in rows))
        for s in p["skipped"]:
            for word in words:
                self.assertIn(word, s["error"])
        return r

    # --- triggers ---------------------------------------------------------------------------------------

    @not_on("mariadb", QUIET)
    def test_quiet_on_the_row(self):
        self.fill()
        self.trigger("job")
        self.one_stays("trigger", "job")

    @not_on("mariadb", QUIET)
    def test_quiet_on_the_row_in_one_batch(self):
        self.fill()
        self.trigger("job")
        self.one_stays("trigger", "job", batch="null")

    @not_on("mariadb", QUIET)
    def test_quiet_on_a_dependent(self):
        self.fill()
        self.trigger("step")
        self.one_stays("trigger", "step")

    @not_on("mariadb", QUIET)
    def test_quiet_on_a_dependent_of_a_dependent(self):
        self.fill()
        self.trigger("note")
        self.one_stays("trigger", "note")

    @not_on("mariadb", QUIET)
    def test_quiet_on_a_dependent_of_a_dependent_in_one_batch(self):
        self.fill()
        self.trigger("note")
        self.one_stays("trigger", "note", batch="null")

    @not_on("mariadb", QUIET)
    def test_quiet_where_no_foreign_key_would_notice(self):
        self.given("drop table ext; drop table note; drop table step; "
                   "create table step (id integer primary key, job_id integer); "
                   "create table note (id integer primary key, step_id integer); "
                   "create table ext (id integer primary key, job_id integer); create index s on step(job_id); "
                   "create index n on note(step_id); create index e on ext(job_id)")
        self.fill()
        self.trigger("note", when=f"old.id in ({BAD}, {BAD + 1}, 7)")
        self.one_stays("trigger", "note", rows=(7, BAD, BAD + 1))

    def test_loud_on_the_row(self):
        self.fill()
        self.trigger("job", quiet=False)
        r = self.one_stays("under audit")
        self.assertIn("under audit", r.out)

    def test_loud_on_a_dependent_of_a_dependent(self):
        self.fill()
        self.trigger("note", quiet=False)
        self.one_stays("under audit")

    def test_loud_in_one_batch(self):
        self.fill()
        self.trigger("note", quiet=False)
        self.one_stays("under audit", batch="null")

    @not_on("mariadb", QUIET)
    def test_a_detachment_that_is_quietly_refused(self):
        # the foreign key cascades: had the row gone, the one that should stay would have gone with it
        self.fill()
        self.trigger("ext", event="update")
        self.one_stays("trigger", "ext")

    @not_on("mariadb", QUIET)
    def test_a_detachment_that_is_quietly_refused_in_one_batch(self):
        self.fill()
        self.trigger("ext", event="update")
        self.one_stays("trigger", "ext", batch="null")

    def test_a_detachment_that_is_loudly_refused(self):
        self.fill()
        self.trigger("ext", event="update", quiet=False)
        self.one_stays("under audit")

    def test_text_says_it_too(self):
        self.fill(20)
        self.trigger("job", when="old.id = 7", quiet=False)
        r = self.lapse(self.contract(), "sweep", "--now", NOW, code=1)
        self.assertIn("id=7", r.said)
        self.assertIn("under audit", r.said)

    # --- too many of them ---------------------------------------------------------------------------------

    def too_many(self, batch):
        self.fill(400)
        self.trigger("job", when="old.id % 2 = 0", quiet=False)
        self.given("create table other (id integer primary key, at_ms bigint); insert into other values (1, 0)")
        r = self.sweep(self.contract(batch) + "\n              other: { table: other, expires: at_ms }", code=1)
        p = r.policy("job")
        self.assertEqual(p["outcome"], "failed")
        self.assertIn("under audit", p["error"])
        self.assertLessEqual(len(p["skipped"]), 100)
        self.assertEqual(r.policy("other")["rows"], 1)
        self.left("other")
        left = self.ids("job")
        self.assertEqual(left, self.ids("step"))
        self.assertEqual(left, self.ids("note"))
        self.assertEqual([i for i in left if i % 2 == 0], list(range(2, 401, 2)))
        self.assertEqual(p["rows"], 400 - len(left))
        return p

    def test_more_than_a_hundred(self):
        self.assertEqual(len(self.too_many(50)["skipped"]), 100)

    def test_more_than_a_hundred_in_one_batch(self):
        self.assertEqual(self.too_many("null")["rows"], 0)

    def test_ninety_nine(self):
        self.fill(300)
        self.trigger("job", when="old.id % 3 = 0 and old.id > 3", quiet=False)
        self.one_stays("under audit", rows=range(6, 301, 3), last=300)

    # --- foreign keys -------------------------------------------------------------------------------------

    def referred_to(self, deferred, batch=1000):
        """A trigger makes a row that refers to the one that goes, once its table has been detached."""
        how = " deferrable initially deferred" if deferred else ""
        self.given(f"create table late (id integer primary key, job_id integer references job(id){how}); "
                   f"create index late_job on late(job_id)")
        if self.on_postgres:
            self.given("create function late() returns trigger language plpgsql as "
                       "$$ begin insert into late values (old.id, old.id); return null; end $$; create trigger late "
                       f"after update on ext for each row when (old.id = {BAD}) execute function late()")
        else:
            self.given(f"create trigger late after update on ext when old.id = {BAD} "
                       "begin insert into late values (old.id, old.id); end")
        self.fill()
        self.one_stays("late" if not self.on_sqlite else "FOREIGN KEY",
                       contract=self.contract(batch).replace("detach: [", "detach: [ late(job_id),"))
        self.left("late")

    def test_a_foreign_key(self):
        self.referred_to(False)

    @not_on("mariadb", "it has no deferred constraints")
    def test_a_deferred_foreign_key(self):
        self.referred_to(True)

    @not_on("mariadb", "it has no deferred constraints")
    def test_a_deferred_foreign_key_in_one_batch(self):
        self.referred_to(True, batch="null")


class PostgresRefusals(Case, PostgresTest):
    contract, one_stays, fill = Refusals.contract, Refusals.one_stays, Refusals.fill

    def setUp(self):
        super().setUp()
        self.given("""
            create table job (id integer primary key, at_ms bigint);
            create table step (id integer primary key, job_id integer not null);
            create table note (id integer primary key, step_id integer not null);
            create table ext (id integer primary key, job_id integer);
            create index on job(at_ms); create index on step(job_id); create index on note(step_id);
            create index on ext(job_id)""")
        self.fill()

    def test_a_rule_on_the_row(self):
        self.given(f"create rule no as on delete to job where old.id = {BAD} do instead nothing")
        self.one_stays("rule", "job")

    def test_a_rule_on_a_dependent(self):
        self.given(f"create rule no as on delete to step where old.id = {BAD} do instead nothing")
        self.one_stays("rule", "step")

    def test_a_rule_on_a_dependent_of_a_dependent(self):
        self.given(f"create rule no as on delete to note where old.id = {BAD} do instead nothing")
        self.one_stays("rule", "note")

    def test_a_rule_on_a_detachment(self):
        self.given(f"create rule no as on update to ext where old.id = {BAD} do instead nothing")
        self.one_stays("rule", "ext")

    def test_a_rule_that_marks_instead(self):
        self.given("alter table job add deleted boolean; "
                   f"create rule no as on delete to job where old.id = {BAD} do instead "
                   "update job set deleted = true where id = old.id")
        self.one_stays("rule", "job")
        self.assertEqual(self.db.rows("select deleted from job"), [(None,)], "what the rule did was not undone")

    def test_a_constraint_trigger_at_the_end(self):
        self.given(f"""
            create function no() returns trigger language plpgsql as $$ begin raise exception 'kept by law'; end $$;
            create constraint trigger no after delete on note deferrable initially deferred
                for each row when (old.id = {BAD}) execute function no()""")
        self.one_stays("kept by law")

    def test_a_trigger_on_one_partition(self):
        self.given(f"""
            drop table note; create table note (id integer primary key, step_id integer not null) partition by range (id);
            create table note_a partition of note for values from (0) to (300);
            create table note_b partition of note for values from (300) to (9999); create index on note(step_id);
            insert into note select n, n from generate_series(1, {LAST}) n;
            create function no() returns trigger language plpgsql as $$ begin return null; end $$;
            create trigger no before delete on note_b for each row when (old.id = {BAD}) execute function no()""")
        self.one_stays("trigger", "note")


class PlacesOfRows(Case, PostgresTest):
    """A row's place (ctid) is no name for it."""

    def test_the_same_place_in_another_partition(self):
        self.given("""
            create table t (id integer, at_ms bigint, kept boolean, primary key (id, kept)) partition by list (kept);
            create table t_due partition of t for values in (false);
            create table t_kept partition of t for values in (true);
            insert into t select n, 0, false from generate_series(1, 500) n;
            insert into t select n, 9e15, true from generate_series(1, 500) n""")
        self.assertEqual(self.db.rows("select min(ctid)::text, max(ctid)::text from t_due"),
                         self.db.rows("select min(ctid)::text, max(ctid)::text from t_kept"))
        self.swept("policies: {t: {table: t, expires: at_ms, batch: 100}}", gone={"t": 500})
        self.assertEqual(self.db.rows("select count(*) from t where kept"), [(500,)])

    def test_the_same_place_in_an_inheritor_of_a_dependent(self):
        self.given("""
            create table t (id integer primary key, at_ms bigint);
            create table c (id integer, t_id integer, side integer, primary key (id, side)) partition by list (side);
            create table c1 partition of c for values in (1); create table c2 partition of c for values in (2);
            create table d (id integer primary key, c_id integer, c_side integer); create index on c(t_id);
            create index on d(c_id, c_side);
            insert into t values (1, 0), (2, 9e15);
            insert into c values (1, 1, 1), (1, 2, 2);
            insert into d values (1, 1, 1), (2, 1, 2)""")
        self.swept("policies: {t: {table: t, expires: at_ms, with: [{ref: c(t_id), with: ['d(c_id, c_side)']}]}}",
                   gone={"t": 1, "c": 1, "d": 1})
        self.left("d", 2)


@every_engine
class DetachInside(Case):
    """The swept table refers to itself, and the references are emptied."""

    def test_in_any_order_and_batch(self):
        for batch in (1, 2, 3, 1000, "null"):
            with self.subTest(batch):
                self.given("drop table if exists t")
                self.given("create table t (id integer primary key, parent integer references t(id), at_ms bigint); "
                           "create index t_parent on t(parent)")
                # a chain up and a chain down, a cycle, one that is its own parent, and living children of dead rows
                self.insert("t(id, at_ms)", *[(n, 0) for n in range(1, 41)], *[(n, MS + 1) for n in range(101, 111)])
                self.given("update t set parent = id - 1 where id between 2 and 10; "
                           "update t set parent = id + 1 where id between 11 and 19; "
                           "update t set parent = 21 where id = 22; update t set parent = 22 where id = 21; "
                           "update t set parent = id where id = 30; update t set parent = id - 100 where id > 100")
                r = self.sweep(f"policies: {{t: {{table: t, expires: at_ms, batch: {batch}, detach: [t(parent)]}}}}")
                self.assertEqual(r.policy("t")["rows"], 40)
                self.left("t", *range(101, 111))
                self.assertEqual(self.db.rows("select count(*) from t where parent is not null"), [(0,)])
                self.assertEqual(self.gone(r, "detached"), {"t": 10})

    @not_on("mariadb", QUIET)
    def test_a_row_that_stays_is_whole(self):
        self.given("create table t (id integer primary key, parent integer references t(id), at_ms bigint); "
                   "create index t_parent on t(parent)")
        self.insert("t", (1, None, 0), (2, 1, 0), (3, 2, 0), (4, 3, MS + 1), (5, 2, MS + 1))
        if self.on_postgres:
            self.given("create function no() returns trigger language plpgsql as $$ begin return null; end $$; "
                       "create trigger no before delete on t for each row when (old.id = 2) execute function no()")
        else:
            self.given("create trigger no before delete on t when old.id = 2 begin select raise(ignore); end")
        r = self.sweep("policies: {t: {table: t, expires: at_ms, detach: [t(parent)]}}", code=1)
        self.assertEqual(sorted(self.db.rows("select id, parent from t")), [(2, None), (4, None), (5, 2)])
        self.assertEqual([s["key"] for s in r.policy("t")["skipped"]], ["id=2"])


class SqliteRefusals(Case, SqliteTest):
    def test_a_trigger_that_ends_the_transaction(self):
        self.given("create table t (id integer primary key, at_ms integer); create table c (id integer primary key, t_id); "
                   "create index c_t on c(t_id); "
                   "create trigger no before delete on t when old.id = 7 begin select raise(rollback, 'no and undone'); end")
        self.insert("t", *[(n, 0) for n in range(1, 101)])
        self.insert("c", *[(n, n) for n in range(1, 101)])
        r = self.sweep("policies: {t: {table: t, expires: at_ms, with: [c(t_id)]}}", code=1)
        self.left("t", 7)
        self.left("c", 7)
        self.assertEqual(r.policy("t")["rows"], 99)
        self.assertIn("no and undone", r.policy("t")["skipped"][0]["error"])

    def test_a_trigger_that_ends_the_transaction_in_one_batch(self):
        self.given("create table t (id integer primary key, at_ms integer); create table c (id integer primary key, t_id); "
                   "create index c_t on c(t_id); "
                   "create trigger no before delete on t when old.id = 7 begin select raise(rollback, 'no and undone'); end")
        self.insert("t", *[(n, 0) for n in range(1, 101)])
        self.insert("c", *[(n, n) for n in range(1, 101)])
        r = self.sweep("policies: {t: {table: t, expires: at_ms, batch: null, with: [c(t_id)]}}", code=1)
        self.assertEqual(self.ids("t"), self.ids("c"))
        self.assertIn(7, self.ids("t"))
        self.assertEqual(r.policy("t")["rows"], 100 - len(self.ids("t")))
        self.assertIn("no and undone", r.out)

    def test_a_trigger_that_fails_half_way(self):
        self.given("create table t (id integer primary key, at_ms integer); create table trail (id integer primary key); "
                   "create trigger no after delete on t begin insert into trail values (old.id); "
                   "select raise(fail, 'half way') where old.id = 7; end")
        self.insert("t", *[(n, 0) for n in range(1, 51)])
        r = self.sweep("policies: {t: {table: t, expires: at_ms}}", code=1)
        self.left("t", 7)
        self.left("trail", *[n for n in range(1, 51) if n != 7])
        self.assertIn("half way", r.policy("t")["skipped"][0]["error"])
