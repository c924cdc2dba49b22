"""Another session acts between any two statements of a sweep (PostgreSQL, through a proxy that stops there).

Each case is run once for every statement from the first look at the data to the last one of the sweep. What holds
afterwards, wherever the other session came in: a row is there with all it owns, or gone with all of it; what was
saved in time survives; and the sweep itself does not fail."""
from daemon import eventually
from harness import *
from proxy import *

SCHEMA = """
    create table job (id integer primary key, state text not null, at_ms bigint);
    create table step (id integer primary key, job_id integer not null references job(id), closed boolean default true);
    create table note (id integer primary key, step_id integer not null references step(id));
    create table ext (id integer primary key, job_id integer references job(id));
    create table flag (id integer primary key, job_id integer);
    create index on job(state, at_ms); create index on step(job_id);
    create index on note(step_id); create index on ext(job_id); create index on flag(job_id)"""
OUTBOX = "create table outbox (id integer primary key, job_id integer references job(id)); create index on outbox(job_id)"

RESET = """
    truncate job, step, note, ext, flag cascade;
    insert into job values (1, 'done', 0), (2, 'done', 0), (3, 'running', 0);
    insert into step(id, job_id) select j * 10 + n, j from generate_series(1, 3) j, generate_series(1, 2) n;
    insert into note select s.id * 10 + n, s.id from step s, generate_series(1, 2) n;
    insert into ext select j, j from generate_series(1, 3) j"""

OUTBOX_RESET = "delete from outbox;" + RESET
OWNED = "with: [{ref: step(job_id), with: [note(step_id)]}], detach: [ext(job_id)]"

# The foreign key says no. On MariaDB the row that is added may also be what the sweep waits for: one of both gives way.
TOO_LATE = "foreign key|1213"


def contract(more="", owned=OWNED, batch=100):
    return f"policies: {{job: {{table: job, rows: {{state: done}}, expires: at_ms, batch: {batch}, {owned}{more}}}}}"


@every_server
class Interleaving(Case):
    def setUp(self):
        super().setUp()
        self.given(SCHEMA)

    def through(self, contract, before, code=0):
        with Proxy(self.db, before, looks=False) as proxy:
            r = lapse(proxy.dsn, contract, "sweep", "--json", "--now", NOW)
        self.assertEqual(r.code, code, f"{r}\n{proxy.seen}")
        return r, proxy.seen[next(i for i, s in enumerate(proxy.seen) if s.begins_batch):]

    def points(self, contract, reset):
        """The statements before which another session may come in: those of the first batch, and the next one."""
        self.given(reset)
        _, seen = self.through(contract, None)
        last = next(s for s in seen if s.ends_batch)
        self.assertGreater(last.number - seen[0].number, 3, seen)
        self.assertTrue(last.sql.startswith("COMMIT"), seen)
        return range(seen[0].number, last.number + 2)

    def each(self, contract, act, early=(), reset=RESET, check=None, code=0):
        """Runs the sweep once for every point. early: what the other session does before the sweep begins (an open
        transaction); act: what it does at the point. check(session, swept, where) looks at the result."""
        for point in self.points(contract, reset):
            with self.subTest(point=point):
                self.given(reset)
                with Session(self.db) as other:
                    other.do(*early)
                    where = []

                    def come_in(statement):
                        if statement.number == point:
                            other.do(*act)
                            where.append(statement)

                    r, seen = self.through(contract, come_in, code)
                    other.finish()
                    self.assertTrue(where, "the point was never reached")
                    self.whole(reset, where, seen)
                    self.counted(r)
                    check(other, r, f"at {where}\n{seen}\n{r}")

    def whole(self, reset, *about):
        """Every row owns something that is there, and every root has what it had."""
        about = "\n".join(map(str, about))
        orphans = self.db.rows("select id from step where job_id not in (select id from job)") + \
            self.db.rows("select id from note where step_id not in (select id from step)")
        self.assertEqual(orphans, [], f"rows without what owns them {about}")
        for job, in self.db.rows("select id from job where id <= 3"):
            stripped = [s for s in (job * 10 + 1, job * 10 + 2) if not self.db.rows(
                "select 1 from step where id = ? having count(*) = 1", (s,))]
            self.assertEqual(stripped, [], f"job {job} has lost steps {about}")
        for step, in self.db.rows("select id from step where id < 99"):
            self.assertEqual(self.db.rows("select count(*) from note where step_id = ? and id < 1000", (step,)), [(2,)],
                             f"notes of step {step} {about}")
        self.assertEqual(self.db.rows("select count(*) from ext"), [(3,)], about)

    def counted(self, r):
        """What it says went is what went: everything began as 3 jobs; rows added meanwhile have ids from 50 on."""
        went = self.gone(r).get("job", 0)
        self.assertEqual(went, 3 - self.db.rows("select count(*) from job where id <= 3")[0][0], r)

    def there(self, job):
        return bool(self.db.rows("select 1 from job where id = ?", (job,)))

    # --- the row itself comes back to life -----------------------------------------------------------------

    def survives(self, other, r, where):
        self.assertTrue(self.there(1), f"a revived row was deleted {where}")
        self.assertFalse(self.there(2), where)

    def test_revived_by_an_open_transaction_that_commits(self):
        self.each(contract(), early=("begin", "update job set state = 'running' where id = 1"), act=("commit",),
                  check=self.survives)

    def test_revived_by_an_open_transaction_in_one_batch(self):
        self.each(contract(batch="null"), early=("begin", "update job set state = 'running' where id = 1"),
                  act=("commit",), check=self.survives)

    def test_revived_by_an_open_transaction_judged_twice(self):
        self.each(contract(", after: [flag(job_id)]"), check=self.survives, act=("commit",),
                  early=("begin", "update job set state = 'running' where id = 1"))

    def test_an_open_transaction_that_changes_its_mind(self):
        def check(other, r, where):
            self.assertFalse(self.there(2), where)
            if self.there(1):       # it was locked for too long: next time
                self.assertEqual(r.policy("job")["left"], 1, where)
        self.each(contract(), early=("begin", "update job set state = 'running' where id = 1"), act=("rollback",),
                  check=check)

    def revived_or_gone(self, other, r, where):
        self.assertIsNone(other.error, where)
        self.assertEqual(self.there(1), other.rows == 1, f"revived: {other.rows} {where}")
        self.assertFalse(self.there(2), where)

    REVIVE = ("update job set state = 'running' where id = 1 and state = 'done'",)

    def test_revived_at_that_moment(self):
        self.each(contract(), act=self.REVIVE, check=self.revived_or_gone)

    def test_revived_at_that_moment_in_one_batch(self):
        self.each(contract(batch="null"), act=self.REVIVE, check=self.revived_or_gone)

    @not_on("mariadb", "a table with partitions has no foreign keys there")
    def test_revived_at_that_moment_on_partitions(self):
        # coming back to life moves the row to another partition
        self.given("drop table job cascade; create table job (id integer, state text, at_ms bigint, "
                   "primary key (id, state)) partition by list (state); "
                   "create table job_done partition of job for values in ('done'); "
                   "create table job_rest partition of job default")
        self.whole = lambda *_: None
        self.each("policies: {job: {table: job, rows: {state: done}, expires: at_ms}}", act=self.REVIVE,
                  check=self.revived_or_gone)

    # --- what it owns, refers to it or holds it changes ------------------------------------------------------

    def added_or_refused(self, other, r, where):
        """A row that was added is there with its owner, or went with it; else the foreign key said no."""
        if other.error:
            self.assertRegex(str(other.error), TOO_LATE)
            self.assertFalse(self.there(1), where)
        if self.there(1):
            self.assertTrue(self.db.rows("select 1 from step where id = 99"), f"the row stayed without the new one {where}")
        self.assertFalse(self.there(2), where)

    def test_a_dependent_is_added(self):
        self.each(contract(), act=("insert into step(id, job_id) values (99, 1)", "insert into note values (9991, 99), (9992, 99)"),
                  check=self.added_or_refused)

    def test_a_dependent_is_added_in_one_batch(self):
        self.each(contract(batch="null"), act=("insert into step(id, job_id) values (99, 1)",), check=self.added_or_refused)

    def test_a_dependent_added_by_an_open_transaction(self):
        def check(other, r, where):
            self.assertIsNone(other.error, where)
            self.added_or_refused(other, r, where)
        self.each(contract(), early=("begin", "insert into step(id, job_id) values (99, 1)"), act=("commit",), check=check)

    def test_a_dependent_of_a_dependent_is_added(self):
        def check(other, r, where):
            if other.error:
                self.assertRegex(str(other.error), TOO_LATE)
            self.assertFalse(self.there(1), where)
            self.assertFalse(self.there(2), where)
        self.each(contract(), act=("insert into note values (9991, 11)",), check=check)

    def test_a_row_to_detach_is_added(self):
        def check(other, r, where):
            if other.error:
                self.assertRegex(str(other.error), TOO_LATE)
            else:
                self.assertEqual(self.db.rows("select job_id is null from outbox"), [(not self.there(1),)], where)
            self.assertFalse(self.there(2), where)
        self.given(OUTBOX)
        self.each(contract(owned=OWNED.replace("ext(job_id)", "ext(job_id), outbox(job_id)")), reset=OUTBOX_RESET, act=("insert into outbox values (1, 1)",),
                  check=check)

    AFTER = OWNED + ", after: [outbox(job_id)]"

    def waits_or_gone(self, other, r, where):
        self.assertEqual(self.there(1), other.error is None, f"{other.error} {where}")
        self.assertFalse(self.there(2), where)

    def test_a_row_to_wait_for_is_added(self):
        self.given(OUTBOX)
        self.each(contract(owned=self.AFTER), reset=OUTBOX_RESET, act=("insert into outbox values (1, 1)",), check=self.waits_or_gone)

    def test_a_row_to_wait_for_added_by_an_open_transaction(self):
        self.given(OUTBOX)
        self.each(contract(owned=self.AFTER), reset=OUTBOX_RESET, early=("begin", "insert into outbox values (1, 1)"), act=("commit",),
                  check=self.waits_or_gone)

    def held(self, other, r, where):
        """Before the second judgement it counts; from then on it comes too late."""
        self.assertFalse(self.there(2), where)
        point = int(where.split("[")[1].split(":")[0])
        picked = next(s for s in self.seen if s.sql.startswith("SELECT") and "FOR UPDATE" in s.sql)
        judged = picked.number + 1
        self.assertEqual(self.there(1), point <= judged, f"judged at {judged} {where}")

    def judged_twice(self, policy):
        self.given(RESET)
        _, self.seen = self.through(policy, None)
        self.each(policy, act=("insert into flag values (1, 1)",), check=self.held)

    def test_a_row_to_wait_for_without_a_foreign_key(self):
        self.judged_twice(contract(", after: [flag(job_id)]"))

    def test_it_is_held(self):
        self.judged_twice(contract(", hold: 'exists (select 1 from flag f where f.job_id = this.id)'"))

    def test_it_is_held_in_one_batch(self):
        self.judged_twice(contract(", hold: 'exists (select 1 from flag f where f.job_id = this.id)'", batch="null"))

    # --- rows change their owner ---------------------------------------------------------------------------

    def test_a_dependent_is_given_to_a_row_that_lives(self):
        reset = RESET + "; insert into step(id, job_id) values (99, 1)"

        def check(other, r, where):
            self.assertIsNone(other.error, where)
            self.assertFalse(self.there(1), where)
            self.assertEqual(self.db.rows("select job_id from step where id = 99"), [(3,)] * other.rows, where)
        self.each(contract(), reset=reset, act=("update step set job_id = 3 where id = 99",), check=check)

    def test_a_dependent_is_taken_from_a_row_that_lives(self):
        reset = RESET + "; insert into step(id, job_id) values (99, 3)"

        def check(other, r, where):
            self.assertFalse(self.there(1), where)
            if other.error:
                self.assertRegex(str(other.error), TOO_LATE)
                self.assertEqual(self.db.rows("select job_id from step where id = 99"), [(3,)], where)
            else:
                self.assertEqual(self.db.rows("select job_id from step where id = 99"), [], where)
        self.each(contract(), reset=reset, act=("update step set job_id = 1 where id = 99",), check=check)

    def test_a_dependent_taken_by_an_open_transaction(self):
        reset = RESET + "; insert into step(id, job_id) values (99, 3)"

        def check(other, r, where):
            self.assertIsNone(other.error, where)
            self.assertEqual(len(self.db.rows("select 1 from step where id = 99")), self.there(1), where)
        self.each(contract(), reset=reset, early=("begin", "update step set job_id = 1 where id = 99"), act=("commit",),
                  check=check)

    def test_a_dependent_given_away_by_an_open_transaction(self):
        reset = RESET + "; insert into step(id, job_id) values (99, 1)"

        def check(other, r, where):
            self.assertIsNone(other.error, where)
            self.assertEqual(self.db.rows("select job_id from step where id = 99"), [(3,)], where)
            self.assertFalse(self.there(2), where)
        self.each(contract(), reset=reset, early=("begin", "update step set job_id = 3 where id = 99"), act=("commit",),
                  check=check)

    # --- a dependent that its `where` spares ------------------------------------------------------------------

    def reopened(self, other, r, where):
        """A dependent was reopened: its owner waits for it, or it had gone before."""
        self.assertIsNone(other.error, where)
        self.assertEqual(self.there(1), other.rows == 1, f"reopened: {other.rows} {where}")
        self.assertFalse(self.there(2), where)
        self.assertEqual(r.policy("job")["skipped"], [], where)

    REOPEN = ("update step set closed = false where id = 11",)

    def test_a_dependent_that_is_spared(self):
        self.given("drop table note")
        reset = "; ".join(s for s in RESET.replace("note, ", "").split(";") if "into note" not in s)

        def check(other, r, where):
            self.reopened(other, r, where)
            self.assertEqual(self.ids("step"), [11, 12, 31, 32] if self.there(1) else [31, 32], where)
        self.whole = lambda *_: None
        self.each(contract(owned="with: [{ref: step(job_id), where: {closed: true}}], detach: [ext(job_id)]", batch=1),
                  reset=reset, act=self.REOPEN, check=check)

    def test_a_dependent_with_dependents_that_is_spared(self):
        self.each(contract(owned="with: [{ref: step(job_id), where: {closed: true}, with: [note(step_id)]}], "
                                 "detach: [ext(job_id)]", batch=1), act=self.REOPEN, check=self.reopened)


@every_server
class Subtree(Case):
    """Rows that own rows of their own table."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table node (id integer primary key, parent integer references node(id), state text, at_ms bigint);
            create table leaf (id integer primary key, node_id integer not null references node(id));
            create index on node(parent); create index on leaf(node_id)""")

    # below a root that is due: rows that may go but are not due themselves
    RESET = f"""
        truncate node, leaf;
        insert into node values (1, null, 'done', 0), (11, 1, 'done', {MS + 1}), (111, 11, 'done', {MS + 1}),
            (1111, 111, 'done', {MS + 1}), (2, null, 'done', 0), (21, 2, 'done', {MS + 1}), (3, null, 'live', 0),
            (31, 3, 'done', {MS + 1});
        insert into leaf select id, id from node"""
    CONTRACT = "policies: {node: {table: node, rows: {state: done}, expires: at_ms, with: [node(parent), leaf(node_id)]}}"

    points, through = Interleaving.points, Interleaving.through

    def each(self, act, check, early=(), added=0):
        for point in self.points(self.CONTRACT, self.RESET):
            with self.subTest(point=point):
                self.given(self.RESET)
                with Session(self.db) as other:
                    other.do(*early)
                    r, seen = self.through(self.CONTRACT, lambda s: other.do(*act) and None if s.number == point else None)
                    other.finish()
                    where = f"before statement {point}\n{seen}\n{r}"
                    ids = self.ids("node")
                    self.assertEqual(self.ids("leaf"), ids, where)
                    self.assertEqual(self.gone(r).get("node", 0), 8 - len(ids) + (added if other.rows else 0), where)
                    self.assertNotIn(2, ids, where)
                    check(other, ids, where)

    def test_the_row_is_revived(self):
        def check(other, ids, where):
            self.assertEqual(ids, [1, 3, 11, 31, 111, 1111] if other.rows else [3, 31], where)
        self.each(("update node set state = 'live' where id = 1 and state = 'done'",), check)

    def test_the_row_is_revived_by_an_open_transaction(self):
        def check(other, ids, where):
            self.assertEqual(ids, [1, 3, 11, 31, 111, 1111], where)
        self.each(("commit",), check, early=("begin", "update node set state = 'live' where id = 1"))

    def test_a_row_is_added_below(self):
        def check(other, ids, where):
            if other.error:
                self.assertRegex(str(other.error), TOO_LATE)
            self.assertEqual(ids, [3, 31], where)
        self.each(("insert into node values (99, 1111, 'done', 0)",), check, added=1)

    def test_a_branch_is_taken_away(self):
        def check(other, ids, where):
            self.assertIsNone(other.error, where)
            self.assertEqual(ids, [3, 31, 111, 1111] if other.rows else [3, 31], where)
        self.each(("update node set parent = 3 where id = 111",), check)

    def test_a_branch_is_hung_in(self):
        def check(other, ids, where):
            if other.error:
                self.assertRegex(str(other.error), TOO_LATE)
            self.assertEqual(ids, [3, 31] if other.error else [3], where)
        self.each(("update node set parent = 1111 where id = 31",), check)

    def test_a_row_below_is_saved(self):
        """It may not go, so nothing above it does; unless it has gone before."""
        def check(other, ids, where):
            self.assertIsNone(other.error, where)
            self.assertEqual(ids, [1, 3, 11, 31, 111, 1111] if other.rows else [3, 31], where)
        self.each(("update node set state = 'live' where id = 111",), check)

    def test_a_row_below_is_saved_by_an_open_transaction(self):
        def check(other, ids, where):
            self.assertEqual(ids, [1, 3, 11, 31, 111, 1111], where)
        self.each(("commit",), check, early=("begin", "update node set state = 'live' where id = 111"))

@every_server
class Neighbours(Case):
    """Keys that follow each other are looked up as stretches: 1 to 9, 11 to 19, … A row that moves from one stretch to another while
    the sweep waits for it belongs to a doomed row before and after."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table job (id integer primary key, state text not null, at_ms bigint);
            create table part (id integer primary key, job_id integer);
            create index on job(state, at_ms); create index on part(job_id)""")
        numbers = self.series(100)
        self.given(f"insert into job select n, case n % 10 when 0 then 'running' else 'done' end, 0 from ({numbers}) s;"
                   f"insert into part select n, n from ({numbers}) s")

    def moved(self, ends, to, left):
        with Session(self.db) as other:
            other.do("begin", f"update part set job_id = {to} where id = 15")
            p = Lapse.start(self.db, contract(owned="with: [part(job_id)]"), "sweep", "--now", NOW)
            eventually(self.per_engine(
                postgres=lambda: self.db.rows("select 1 from pg_locks where not granted"),
                mariadb=lambda: "LOCK WAIT" in self.db.rows("show engine innodb status")[0][2]))
            other.do(ends)
        r = p.wait()
        self.assertEqual(r.code, 0, r)
        self.left("job", *range(10, 101, 10))
        self.left("part", *range(10, 101, 10), *left)

    def test_to_another_that_goes(self):
        self.moved("commit", 35, [])

    def test_to_one_that_stays(self):
        self.moved("commit", 40, [15])

    def test_the_only_one_where_nothing_is_counted(self):
        """Whether a row was passed by is told by the server's counters, unless they are off."""
        self.given("delete from part where job_id % 10 <> 0 and id <> 15")
        self.given(self.per_engine(postgres=f"alter database {self.db.name} set track_counts = off", mariadb=""))
        self.moved("commit", 35, [])

    def test_and_back(self):
        self.moved("rollback", 40, [])
