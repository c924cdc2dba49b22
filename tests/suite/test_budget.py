"""budget, window, enabled: what one run of a policy may do, and what of a scheduler concerns a sweep by hand."""
from harness import *


@every_engine
class Budget(Case):
    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.given("create table o (id integer primary key, at_ms bigint)")

    def fill(self, n, table="t"):
        self.insert(table, *[(i, i) for i in range(n)])

    def run_it(self, budget, rows, outcome, code, policy="batch: 3", table="t"):
        contract = f"""
            schedulers: {{ s: {{ every: 1m, budget: {budget} }} }}
            policies: {{ {table}: {{ table: {table}, expires: at_ms, pace: {{ target: 10m }}, {policy} }} }}
            """
        r = self.sweep(contract, code=code)
        p = r.policy(table)
        self.assertEqual((p["rows"], p["outcome"]), (rows, outcome), r)
        return p

    def test_rows(self):
        for batch, batches in (("batch: 3", 2), ("batch: 1000", 1), ("batch: null", 1), ("batch: 1", 5)):
            with self.subTest(batch):
                self.given("delete from t")
                self.fill(12)
                p = self.run_it("{ rows: 5 }", 5, "budget", 6, batch)
                self.assertEqual(p["batches"], batches, "cut to what is left, at once")
                self.assertIn("budget.rows is used up, and rows are still due", p["error"])
                self.left("t", *range(5, 12))       # the oldest went
                self.run_it("{ rows: 5 }", 5, "budget", 6, batch)
                self.run_it("{ rows: 5 }", 2, "done", 0, batch)

    def test_used_up_with_nothing_left_is_done(self):
        for budget, policy in (("{ rows: 6 }", "batch: 3"), ("{ batches: 2 }", "batch: 3"),
                               ("{ batches: 1 }", "batch: null"), ("{ rows: 6 }", "batch: null")):
            with self.subTest(budget=budget, policy=policy):
                self.fill(6)
                self.run_it(budget, 6, "done", 0, policy)

    def test_batches(self):
        self.fill(12)
        p = self.run_it("{ batches: 2 }", 6, "budget", 6)
        self.assertEqual(p["batches"], 2)
        self.assertIn("budget.batches", p["error"])

    def test_time(self):
        self.fill(12)
        p = self.run_it("{ time: 0.001ms }", 3, "budget", 6)
        self.assertEqual(p["batches"], 1, "one is always tried")
        self.assertIn("budget.time", p["error"])
        self.run_it("{ time: 10m }", 9, "done", 0)

    def test_is_of_each_policy(self):
        self.fill(4)
        self.fill(4, "o")
        r = self.sweep("""
            schedulers: { s: { every: 1m, budget: { rows: 3 } } }
            policies: { t: { table: t, expires: at_ms }, o: { table: o, expires: at_ms } }
            """, code=6)
        self.assertEqual([(p["policy"], p["rows"], p["outcome"]) for p in r.json["policies"]],
                         [("t", 3, "budget"), ("o", 3, "budget")])

    def test_rows_that_are_skipped_are_not_what_is_left(self):
        self.fill(4)
        contract = """
            schedulers: { s: { every: 1m, budget: { rows: 3 } } }
            policies: { t: { table: t, expires: at_ms, batch: 1 } }
            """
        if self.on_postgres:
            self.given("create function no() returns trigger language plpgsql as "
                       "$$begin if old.id = 0 then raise 'no'; end if; return old; end$$; "
                       "create trigger no before delete on t for each row execute function no()")
        else:
            self.given("create trigger no before delete on t when old.id = 0 begin select raise(abort, 'no'); end")
        r = self.sweep(contract, code=1)
        p = r.policy("t")
        self.assertEqual((p["rows"], p["outcome"], len(p["skipped"])), (3, "done", 1), r)

    def test_dependents_do_not_count(self):
        self.fill(4)
        self.given("create table child (id integer primary key, t integer references t(id))")
        self.insert("child", *[(i, i % 4) for i in range(40)])
        self.run_it("{ rows: 2 }", 2, "budget", 6, "with: [child(t)]")
        self.assertEqual(self.db.rows("select count(*) from child"), [(20,)])

    def test_a_bound_that_examines(self):
        self.fill(10)
        contract = """
            schedulers: { s: { every: 1m, budget: { rows: 4 } } }
            policies: { t: { table: t, cap: { rows: 1, newest: [at_ms] }, batch: 3 } }
            """
        for rows, outcome, code in ((4, "budget", 6), (4, "budget", 6), (1, "done", 0)):
            p = self.sweep(contract, code=code).policy("t")
            self.assertEqual((p["rows"], p["outcome"]), (rows, outcome))
        self.left("t", 9)

    def test_for_people(self):
        self.fill(3)
        r = self.lapse("""
            schedulers: { s: { every: 1m, budget: { rows: 2 } } }
            policies: { t: { table: t, expires: at_ms } }
            """, "sweep", code=6)
        self.assertIn("out of budget", r.out)
        self.assertIn("budget.rows is used up, and rows are still due", r.out)


@every_engine
class Trees(Case):
    """Rows below a row, in the same table, are rows of the policy's own table."""

    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, up integer references t(id), at_ms bigint); "
                   "create index t_up on t(up)")

    def plant(self):
        """1 with 2 young rows below it, 10 with 5, 20 alone."""
        self.db.empty("t")
        self.insert("t", (1, None, 1), (2, 1, 2 * MS), (3, 2, 2 * MS), (10, None, 2),
                    *[(11 + i, 10, 2 * MS) for i in range(5)], (20, None, 3))

    def sweep_with(self, rows, batch, code):
        return self.sweep(f"""
            schedulers: {{ s: {{ every: 1m, budget: {{ rows: {rows} }} }} }}
            policies: {{ t: {{ table: t, expires: at_ms, batch: {batch}, with: [t(up)] }} }}
            """, code=code).policy("t")

    def test_whole_or_not_at_all(self):
        for batch in ("1000", "null"):
            with self.subTest(batch):
                self.plant()
                p = self.sweep_with(7, batch, 6)
                self.assertEqual((p["rows"], p["outcome"]), (3, "budget"))       # 10 needs 6, and 4 are left
                p = self.sweep_with(7, batch, 0)
                self.assertEqual((p["rows"], p["outcome"]), (7, "done"))

    def test_one_that_fits_into_no_budget_is_skipped_and_said(self):
        for batch in ("1000", "null"):
            with self.subTest(batch):
                self.plant()
                p = self.sweep_with(5, batch, 1)
                self.assertEqual((p["rows"], p["outcome"]), (4, "done"))
                self.assertEqual([s["key"] for s in p["skipped"]], ["id=10"])
                self.assertIn("6 rows of the policy's own table go together, and budget.rows is 5",
                              p["skipped"][0]["error"])
                self.left("t", 10, 11, 12, 13, 14, 15)


@every_engine
class ByHand(Case):
    """What of a scheduler says when it runs does not keep a sweep by hand."""

    def test_window_and_enabled(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        for scheduler in ("every: 1m, enabled: false", "cron: '0 0 1 1 *', window: '00:00-00:01'"):
            with self.subTest(scheduler):
                self.insert("t", (1, 1))
                r = self.sweep(f"""
                    schedulers: {{ s: {{ {scheduler} }} }}
                    policies: {{ t: {{ table: t, expires: at_ms }} }}
                    """, code=0)
                self.assertEqual(r.policy("t")["rows"], 1)


class Contract(Case, SqliteTest):
    def test_jitter_is_shorter_than_the_interval(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        for jitter, code in (("59s", 0), ("60s", 2), ("2m", 2)):
            r = self.lapse(f"schedulers: {{ s: {{ every: 1m, jitter: {jitter} }} }}\n"
                           "policies: { t: { table: t, expires: at_ms } }", "sweep", code=code)
            if code:
                self.assertIn("'jitter' must be shorter than 'every'", r.err)
        self.lapse("schedulers: { s: { cron: '0 3 * * *', jitter: 2h } }\n"
                   "policies: { t: { table: t, expires: at_ms } }", "sweep", code=0)
