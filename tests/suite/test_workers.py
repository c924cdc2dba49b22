"""workers: several connections sweep one policy at once. What goes, what is counted and what stops it are as with one."""
import signal
import time

from harness import *


@every_engine
class Workers(Case):
    def jobs(self, n, more=""):
        """So many due rows, each with two steps."""
        self.given(f"""
            create table job (id integer primary key, at_ms bigint, state text{more});
            create table step (id integer primary key, job_id integer not null);
            create index job_at on job(at_ms); create index step_job on step(job_id);
            insert into job(id, at_ms, state) select n, n, 'x' from ({self.series(n)}) s;
            insert into step select 2 * n + k, n from ({self.series(n)}) s, (select 0 as k union all select 1) t""")

    def who(self, table="job", seconds=0.001):
        """Notes which connection deletes each row, which takes so long."""
        seq = self.per_engine(sqlite="integer primary key", postgres="bigserial", mariadb="bigint auto_increment primary key")
        self.given(f"create table who (seq {seq}, id integer, at integer)")
        if self.on_postgres:
            self.given(f"""
                create function note_who() returns trigger language plpgsql as
                    $$begin insert into who(id, at) values (old.id, pg_backend_pid()); perform pg_sleep({seconds}); return old; end$$;
                create trigger note_who before delete on {table} for each row execute function note_who()""")
        elif self.on_mariadb:
            self.given(f"""create trigger note_who before delete on {table} for each row
                           begin insert into who(id, at) values (old.id, connection_id()); do sleep({seconds}); end""")

    def connections(self):
        """Each row went once; how many connections there were, and how evenly they shared."""
        self.assertEqual(self.db.rows("select id from who group by id having count(*) > 1"), [])
        return sorted(n for n, in self.db.rows("select count(*) from who group by at"))

    def job(self, workers=3, batch=5, more="", bound="expires: at_ms"):
        return f"policies: {{job: {{table: job, {bound}, batch: {batch}, workers: {workers}{more}}}}}"

    @not_on("sqlite", "it has one writer")
    @again
    def test_share_the_rows(self):
        self.jobs(400)
        self.who(seconds=0.01)
        self.sweep(self.job(workers=3))
        shares = self.connections()
        self.assertEqual(sum(shares), 400)
        if len(shares) < 3 or shares[0] < 20:
            raise TooSoon(f"not all had a part of it: {shares}")
        self.assertEqual(len(shares), 3)

    @not_on("sqlite", "it has one writer")
    def test_parts_are_disjoint_and_leave_nothing_out(self):
        """Four batches are one connection's, and each goes forward only: nobody is in another's part, and nothing is left
        for a second look."""
        self.jobs(400)
        self.given("update job set at_ms = 7 where id <= 200")      # parts end among rows that differ by their key alone
        self.who()
        self.sweep(self.job(workers=3, batch=5))
        went = self.db.rows("select id, at from who order by seq")
        self.assertEqual(len(went), 400)
        for first in range(1, 401, 20):
            self.assertEqual(len({at for id_, at in went if first <= id_ < first + 20}), 1, f"part of {first}")
        for at in {at for _, at in went}:
            ids = [id_ for id_, by in went if by == at]
            self.assertEqual(ids, sorted(ids), "each goes forward")

    def test_all_that_is_due_and_nothing_else(self):
        for workers in (1, 2, 3, 8, 64):
            for batch in (1, 7, 1000):
                with self.subTest(workers=workers, batch=batch):
                    self.given("drop table if exists job; drop table if exists step")
                    self.jobs(200)
                    self.given(f"update job set at_ms = {MS + 1} where id % 10 = 3;"
                               "update job set at_ms = null where id % 10 = 4; update job set at_ms = 77 where id % 10 < 3")
                    self.swept(self.job(workers, batch, more=", with: [step(job_id)]"), gone={"job": 160, "step": 320})

    def test_one_row_and_none(self):
        self.jobs(1)
        self.swept(self.job(4, more=", with: [step(job_id)]"), gone={"job": 1, "step": 2})
        self.swept(self.job(4, more=", with: [step(job_id)]"), gone={})

    def test_keys_of_text_and_of_several_columns(self):
        self.given("create table t (a varchar(20) not null, b integer not null, c varchar(20) not null, at_ms bigint, "
                   "primary key (a, b, c))")
        words = ["", " ", "a", "A", "á", "z", "~", "it's", "back\\slash", "100%"]
        rows = [(w if not self.on_mariadb else f"{i}{w}", n, f"{w}{k}", 5) for i, w in enumerate(words)
                for n in (-1, 0, 7) for k in range(6)]
        self.insert("t", *rows)
        self.swept("policies: {t: {table: t, expires: at_ms, batch: 2, workers: 3}}", gone={"t": len(rows)})

    def test_order_by_state_and_time(self):
        self.given("create table q (id integer primary key, state varchar(10), at_ms bigint)")
        self.given("create index q_state on q(state, at_ms)")
        self.insert("q", *[(i, ("done", "failed", "open", None)[i % 4], 100 + i // 3) for i in range(400)])
        self.swept("policies: {q: {table: q, rows: {state: [done, failed]}, expires: at_ms, batch: 3, workers: 3}}",
                   gone={"q": 200})

    def test_times_that_are_all_the_same(self):
        self.jobs(300)
        self.given("update job set at_ms = 7")
        self.swept(self.job(3, 2, more=", with: [step(job_id)]"), gone={"job": 300, "step": 600})

    def test_budget_of_rows_is_exact(self):
        self.jobs(300)
        self.slow("job", 0.004)     # so that all are at it when it ends
        for rows in (1, 4, 50, 71):
            for batch in (1, 3, 1000):
                with self.subTest(rows=rows, batch=batch):
                    kept = {i for i, in self.db.rows("select id from job")}
                    self.insert("job", *[(i, i, "x") for i in range(1, 301) if i not in kept])
                    r = self.sweep(f"schedulers: {{s: {{every: 1m, budget: {{rows: {rows}}}}}}}\n"
                                   + self.job(4, batch), code=6)
                    p = r.policy("job")
                    self.assertEqual((p["rows"], p["outcome"]), (rows, "budget"), r)
                    self.assertEqual(self.db.rows("select count(*) from job"), [(300 - rows,)])

    def test_budget_that_is_just_enough(self):
        self.jobs(60)
        r = self.sweep(f"schedulers: {{s: {{every: 1m, budget: {{rows: 60}}}}}}\n" + self.job(4, 3))
        self.assertEqual((r.policy("job")["rows"], r.policy("job")["outcome"]), (60, "done"), r)

    def test_budget_of_batches_is_exact(self):
        for batches in (1, 5, 17):
            with self.subTest(batches=batches):
                self.given("drop table if exists job; drop table if exists step")
                self.jobs(300)
                r = self.sweep(f"schedulers: {{s: {{every: 1m, budget: {{batches: {batches}}}}}}}\n" + self.job(4, 5), code=6)
                p = r.policy("job")
                self.assertEqual((p["batches"], p["outcome"]), (batches, "budget"), r)
                self.assertIn(p["rows"], range(batches, 5 * batches + 1), r)        # the pace may make them smaller
                self.assertEqual(self.db.rows("select count(*) from job"), [(300 - p["rows"],)])

    def test_budget_of_time(self):
        self.jobs(300)
        self.slow("job", 0.01)
        r = self.sweep(f"schedulers: {{s: {{every: 1m, budget: {{time: 100ms}}}}}}\n" + self.job(3, 2), code=6)
        p = r.policy("job")
        self.assertEqual(p["outcome"], "budget", r)
        self.assertIn("budget.time", p["error"])
        self.assertEqual(self.db.rows("select count(*) from job"), [(300 - p["rows"],)])

    def test_budget_with_subtrees(self):
        """Rows that go together fit into what is left, or wait; never more than the budget goes."""
        self.given("create table n (id integer primary key, up integer references n(id), at_ms bigint); "
                   "create index n_up on n(up); create index n_at on n(at_ms)")
        for rows in (9, 20, 31):
            with self.subTest(rows=rows):
                self.given("update n set up = null; delete from n")
                self.insert("n", *[(10 * i, None, 1000 + i) for i in range(1, 31)])
                self.insert("n", *[(10 * i + k, 10 * i, MS + 1) for i in range(1, 31) for k in (1, 2, 3)])
                r = self.sweep(f"schedulers: {{s: {{every: 1m, budget: {{rows: {rows}}}}}}}\n"
                               "policies: {n: {table: n, expires: at_ms, with: [n(up)], batch: 3, workers: 4}}",
                               code=6)
                p = r.policy("n")
                self.assertEqual((p["rows"], p["outcome"]), (rows // 4 * 4, "budget"), r)
                self.assertEqual(self.db.rows("select count(*) from n"), [(120 - rows // 4 * 4,)])

    def test_subtree_across_parts(self):
        """Chains whose rows are due themselves, spread over the parts of all: each row goes once."""
        self.given("create table n (id integer primary key, up integer references n(id), at_ms bigint); "
                   "create index n_up on n(up); create index n_at on n(at_ms)")
        self.insert("n", *[(i, i - 60 if i > 60 else None, i) for i in range(1, 301)])
        self.swept("policies: {n: {table: n, expires: at_ms, with: [n(up)], batch: 4, workers: 3}}", gone={"n": 300})

    def test_shared_dependents_are_counted_once(self):
        self.given("create table a (id integer primary key, at_ms bigint); create index a_at on a(at_ms);"
                   "create table link (id integer primary key, x integer, y integer);"
                   "create index link_x on link(x); create index link_y on link(y)")
        self.insert("a", *[(i, i) for i in range(1, 201)])
        self.insert("link", *[(i, i, 201 - i) for i in range(1, 201)])
        self.swept("policies: {a: {table: a, expires: at_ms, with: [link(x), link(y)], batch: 3, workers: 4}}",
                   gone={"a": 200, "link": 200})

    def test_detached_once(self):
        self.jobs(200)
        self.given("create table ext (id integer primary key, job_id integer, other integer); "
                   "create index ext_a on ext(job_id); create index ext_b on ext(other)")
        self.insert("ext", *[(i, i, 201 - i) for i in range(1, 201)])
        self.swept(self.job(4, 3, more=", with: [step(job_id)], detach: [ext(job_id), ext(other)]"),
                   gone={"job": 200, "step": 400}, detached=...)
        self.assertEqual(self.db.rows("select count(*), count(job_id), count(other) from ext"), [(200, 0, 0)])

    def test_waiting_and_held_rows(self):
        self.jobs(200)
        self.given("create table open_item (job_id integer)")
        self.insert("open_item(job_id)", *[(i,) for i in range(7, 201, 10)])
        self.given("update job set state = 'held' where id % 10 = 3")
        self.swept(self.job(3, 4, more=", hold: {state: held}, after: [open_item(job_id)], with: [step(job_id)]"),
                   gone={"job": 160, "step": 320})

    def test_orphans(self):
        self.given("create table src (id integer primary key); create table task (id integer primary key, src_id integer)")
        self.insert("src", *[(i,) for i in range(1, 101)])
        self.insert("task", *[(i, i if i % 3 else i + 1000) for i in range(1, 101)])
        self.insert("task", *[(i, i) for i in range(1000, 1300)])
        self.swept("policies: {task: {table: task, orphan: {of: src(id), by: src_id}, keep: now, batch: 3, workers: 4}}",
                   gone={"task": 333})

    def test_caps(self):
        self.given("create table c (id integer primary key, grp integer, at_ms bigint)")
        self.insert("c", *[(i, i % 7, i) for i in range(700)])
        self.swept("policies: {c: {table: c, cap: {rows: 10, per: [grp], newest: [at_ms]}, batch: 4, workers: 4}}",
                   gone={"c": 630})
        self.assertEqual(self.db.rows("select min(at_ms) from c"), [(630,)])

    def test_keep_newest(self):
        self.jobs(300)
        self.given("update job set state = 'b' where id % 2 = 0")
        self.swept(self.job(4, 5, bound="age: at_ms, keep: 1h, keep_newest: {rows: 3, per: [state], newest: [at_ms]}",
                            more=", with: [step(job_id)]"), gone={"job": 294, "step": 588})
        self.left("job", *range(295, 301))

    def test_refused_rows_are_skipped_once(self):
        self.jobs(200)
        if self.on_postgres:
            self.given("create function no() returns trigger language plpgsql as "
                       "$$begin if old.id % 20 = 0 then raise 'no'; end if; return old; end$$; "
                       "create trigger no before delete on job for each row execute function no()")
        elif self.on_mariadb:
            self.given("create trigger no before delete on job for each row begin if old.id % 20 = 0 then "
                       "signal sqlstate '45000' set message_text = 'no'; end if; end")
        else:
            self.given("create trigger no before delete on job when old.id % 20 = 0 begin select raise(abort, 'no'); end")
        r = self.sweep(self.job(3, 8), code=1)
        p = r.policy("job")
        self.assertEqual((p["rows"], sorted(s["key"] for s in p["skipped"])),
                         (190, sorted(f"id={i}" for i in range(20, 201, 20))), r)

    def test_gives_up_after_a_hundred_in_all(self):
        self.jobs(800)
        if self.on_postgres:
            self.given("create function no() returns trigger language plpgsql as $$begin raise 'no'; end$$; "
                       "create trigger no before delete on job for each row execute function no()")
        elif self.on_mariadb:
            self.given("create trigger no before delete on job for each row begin "
                       "signal sqlstate '45000' set message_text = 'no'; end")
        else:
            self.given("create trigger no before delete on job begin select raise(abort, 'no'); end")
        r = self.sweep(self.job(4, 4), code=1)
        p = r.policy("job")
        self.assertEqual((p["rows"], p["outcome"]), (0, "failed"), r)
        self.assertIn("gave up after 100 rows", p["error"])
        self.assertIn(len(p["skipped"]), range(100, 104))      # those that the others were at

    def test_is_refused_with_batch_null(self):
        self.jobs(1)
        r = self.lapse(self.job(2, "null"), "check", code=2)
        self.assertIn("'workers' cannot stand with 'batch: null'", r.said)
        r = self.lapse(self.job(65), "check", code=2)
        self.assertIn("'workers' must be a whole number from 1 to 64", r.said)
        self.sweep(self.job(1, "null"))

    def test_check_says_where_it_means_one(self):
        self.jobs(1)
        r = self.check(self.job(4, more=", with: [step(job_id)]"), code=None)
        if self.on_sqlite:
            self.finding(r, "note", "workers: 4 is one here", policy="job")
        else:
            self.no_finding(r, "is one here")

    def test_progress_shows_the_sum(self):
        self.jobs(100)
        r = self.sweep(self.job(3, 5, more=", with: [step(job_id)]"))
        p = r.policy("job")
        self.assertEqual((p["rows"], {t["table"].split(".")[-1]: t["rows"] for t in p["tables"]}["step"]), (100, 200), r)
        self.assertGreaterEqual(p["batches"], 20, r)

    def test_history_has_one_row_with_the_sum(self):
        self.jobs(100)
        contract = self.job(3, 5, more=", with: [step(job_id)]")
        self.lapse(contract, "install", code=0)
        self.sweep(contract)
        self.assertEqual(self.db.rows("select count(*) from lapse_run"), [(1,)])
        runs = self.lapse(contract, "history", "--json", code=0).json["runs"]
        self.assertEqual(sum(runs[0]["counts"].values()), 300, runs)


@every_server
class Limits(Case):
    def setUp(self):
        super().setUp()
        self.given("create table s (id integer primary key, at_ms bigint); create index s_at on s(at_ms, id)")

    def contract(self, limits, workers=4, batch=3):
        return f"policies: {{s: {{table: s, expires: at_ms, limits: {{{limits}}}, batch: {batch}, workers: {workers}}}}}"

    def rows(self, n):
        self.given(f"insert into s select n, n from ({self.series(n)}) x")

    def test_holds_at_the_limit(self):
        self.lapse(self.contract("rows: 100"), "install", code=0)
        self.rows(100)
        self.assertEqual(self.sweep(self.contract("rows: 100")).policy("s")["rows"], 100)

    def test_trips_before_it_begins(self):
        self.lapse(self.contract("rows: 100"), "install", code=0)
        self.rows(101)
        r = self.sweep(self.contract("rows: 100"), code=4)
        self.assertEqual((r.policy("s")["rows"], r.policy("s")["outcome"]), (0, "fuse"), r)

    @not_on("mariadb", "no trigger may add to the table that loses rows")
    def test_never_passes_it_in_mid_course(self):
        """Every row that goes leaves another that is due: the sum of all connections stays within the limit."""
        contract = self.contract("rows: 100")
        self.lapse(contract, "install", code=0)
        self.given("""create function again() returns trigger language plpgsql as
                      $$begin insert into s values (old.id + 1000, old.id + 1000); return old; end$$;
                      create trigger again after delete on s for each row execute function again()""")
        for turn in range(8):
            with self.subTest(turn=turn):
                self.given("alter table s disable trigger again; delete from s; alter table s enable trigger again; "
                           "delete from lapse_fuse")
                self.rows(90)
                r = self.sweep(contract, code=4)
                p = r.policy("s")
                self.assertEqual(p["outcome"], "fuse", r)
                self.assertIn(p["rows"], range(90, 101), r)
                self.assertEqual(self.db.rows("select count(*), sum(id / 1000) from s"), [(90, p["rows"])])
                self.assertEqual(self.db.rows("select count(*) from lapse_fuse"), [(1,)])
                self.assertEqual(self.sweep(contract, code=4).policy("s")["rows"], 0, "it stays stopped")


@every_server
class Together(Case):
    """With other sessions, a lease, a brake, a signal."""

    def jobs(self, n):
        self.given(f"create table job (id integer primary key, at_ms bigint); create index job_at on job(at_ms);"
                   f"insert into job select n, n from ({self.series(n)}) s")

    CONTRACT = "policies: {job: {table: job, expires: at_ms, batch: 5, workers: 3}}"
    EXCLUSIVE = "schedulers: {s: {every: 1m, exclusive: true, lease: 2s}}\n" + CONTRACT

    def ours(self):
        return self.db.rows(self.per_engine(
            postgres="select count(*) from pg_stat_activity where application_name = 'lapse' and datname = current_database()",
            mariadb="select count(*) from information_schema.processlist where db = database() and id <> connection_id()"))[0][0]

    def test_exclusive(self):
        self.jobs(400)
        self.lapse(self.EXCLUSIVE, "install", code=0)
        self.slow("job", 0.002)
        r = self.sweep(self.EXCLUSIVE)
        p = r.policy("job")
        self.assertEqual((p["rows"], p["outcome"]), (400, "done"), r)
        self.assertEqual(self.db.rows("select owner from lapse_lease"), [(None,)], "handed over")

    def test_budget_is_exact_while_others_are_about_to_commit(self):
        """Whoever waits for the lease's row has looked at the budget already."""
        self.jobs(300)
        self.slow("job", 0.004)
        contract = self.EXCLUSIVE.replace("lease: 2s", "lease: 2s, budget: {rows: 71}").replace("batch: 5, workers: 3", "batch: 2, workers: 6")
        self.lapse(contract, "install", code=0)
        for turn in range(4):
            p = self.sweep(contract, code=6).policy("job")
            self.assertEqual((p["rows"], p["outcome"]), (71, "budget"))

    def test_a_lost_lease_ends_all(self):
        self.jobs(600)
        self.lapse(self.EXCLUSIVE, "install", code=0)
        self.slow("job", 0.01)
        p = Lapse.start(self.db, self.EXCLUSIVE, "sweep", "--json", "--now", NOW)
        self.until(lambda: self.db.rows("select count(*) from job")[0][0] < 580)
        self.db.execute("update lapse_lease set token = token + 1, owner = 'another'")
        then = self.db.rows("select count(*) from job")[0][0]
        r = p.wait()
        left = self.db.rows("select count(*) from job")[0][0]
        self.assertEqual(r.code, 1, r)
        self.assertEqual(r.policy("job")["outcome"], "failed", r)
        self.assertIn("lease", r.policy("job")["error"])
        self.assertEqual(left, 600 - r.policy("job")["rows"])
        self.assertEqual(left, then, "no connection commits without it")

    def until(self, true, seconds=60):
        end = time.monotonic() + seconds
        while not true():
            self.assertLess(time.monotonic(), end, "it did not come to that")
            time.sleep(0.02)

    def test_stops_when_asked(self):
        self.jobs(3000)
        self.slow("job", 0.005)
        p = Lapse.start(self.db, self.CONTRACT, "sweep", "--json", "--now", NOW)
        self.until(lambda: self.db.rows("select count(*) from job")[0][0] < 2950)
        p.signal(signal.SIGTERM)
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["outcome"]), (6, "stopped"), r)
        self.assertEqual(self.db.rows("select count(*) from job"), [(3000 - r.policy("job")["rows"],)])
        self.until(lambda: self.ours() == 0)

    def test_pause_stops_all(self):
        self.jobs(3000)
        self.lapse(self.CONTRACT, "install", code=0)
        self.slow("job", 0.005)
        p = Lapse.start(self.db, self.CONTRACT, "sweep", "--json", "--now", NOW)
        self.until(lambda: self.db.rows("select count(*) from job")[0][0] < 2950)
        self.until(lambda: self.ours() == 3)
        self.lapse(self.CONTRACT, "pause", code=0)
        r = p.wait()
        self.assertEqual((r.code, r.policy("job")["outcome"]), (6, "paused"), r)
        self.assertEqual(self.db.rows("select count(*) from job"), [(3000 - r.policy("job")["rows"],)])

    def test_a_broken_connection_is_one_workers(self):
        self.jobs(1500)
        self.slow("job", 0.004)
        p = Lapse.start(self.db, self.CONTRACT, "sweep", "--json", "--now", NOW)
        for _ in range(4):
            before = self.db.rows("select count(*) from job")[0][0]
            self.until(lambda: self.db.rows("select count(*) from job")[0][0] < before - 20)
            self.break_one()
        r = p.wait()
        rows, unknown = r.policy("job")["rows"], r.policy("job")["unknown"]
        self.assertEqual(r.code, 1 if unknown else 0, r)
        self.assertTrue(rows <= 1500 <= rows + unknown, r)      # a commit that was cut off may have been none: they went later
        self.assertGreater(r.policy("job")["retries"], 0)
        self.assertEqual(self.db.rows("select count(*) from job"), [(0,)])

    def break_one(self):
        if self.on_postgres:
            self.db.rows("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lapse' "
                         "and datname = current_database() order by random() limit 1")
            return
        for id_, in self.db.rows("select id from information_schema.processlist where db = database() "
                                 "and id <> connection_id() order by rand() limit 1"):
            try:
                self.db.execute(f"kill {id_}")
            except Exception as e:      # it ended meanwhile
                self.assertIn("Unknown thread", str(e))

    def test_rows_that_another_holds_are_left(self):
        self.jobs(300)
        other = self.db.connect()
        cursor = other.cursor()
        cursor.execute("begin")
        for i in range(50, 301, 50):        # by key, so that no other is held
            cursor.execute(f"update job set at_ms = at_ms - 1 where id = {i}")
        r = self.sweep(self.CONTRACT)
        self.assertEqual((r.policy("job")["rows"], r.policy("job")["left"]), (294, 6), r)
        cursor.execute("rollback")
        self.assertEqual(self.sweep(self.CONTRACT).policy("job")["rows"], 6)

    def test_two_processes_with_several_each(self):
        self.jobs(1000)
        both = [Lapse.start(self.db, self.CONTRACT, "sweep", "--json", "--now", NOW) for _ in range(2)]
        results = [p.wait(60) for p in both]
        self.assertEqual([r.code for r in results], [0, 0], results)
        self.assertEqual(sum(r.policy("job")["rows"] for r in results), 1000)

    def test_works_alone_where_no_other_connection_is_to_be_had(self):
        if self.on_mariadb:
            self.given("select 1")
            return self.only_one_on_mariadb()
        self.jobs(100)
        self.given("do $$begin execute format('create role one_only login connection limit 1'); end$$; "
                   "grant select, update, delete on job to one_only")
        self.addCleanup(lambda: self.given("drop owned by one_only; drop role one_only"))
        r = lapse(self.db.dsn + ("&" if "?" in self.db.dsn else "?") + "user=one_only", self.CONTRACT, "sweep", "--json", "--now", NOW)
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, 100), r)
        self.assertIn("policy 'job': 2 of its 3 connections could not be had", " ".join(r.json["remarks"]), r)

    def only_one_on_mariadb(self):
        self.jobs(100)
        r = self.sweep(self.CONTRACT)
        self.assertEqual(r.policy("job")["rows"], 100)
