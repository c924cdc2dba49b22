"""Eight sweepers at once on one database: none fails, and every row is counted once over all of them."""
from harness import *

SWEEPERS = 8


@every_engine
class Sweepers(Case):
    def at_once(self, contract, gone, detached=None):
        """Starts them together. gone, detached: {table: rows} over all of them."""
        running = [Lapse.start(self.db, contract, "sweep", "--json", "--now", NOW) for _ in range(SWEEPERS)]
        results = [p.wait(120) for p in running]
        about = "\n".join(str(r)[:1500] for r in results)
        self.assertEqual([r.code for r in results], [0] * SWEEPERS, about)
        for key, expected in (("tables", gone), ("detached", detached or {})):
            total = {}
            for r in results:
                for table, rows in self.gone(r, key).items():
                    total[table] = total.get(table, 0) + rows
            self.assertEqual(total, expected, f"{key}\n{about}")
        for r in results:
            for p in r.json["policies"]:
                self.assertEqual((p["outcome"], p["skipped"], p["unknown"]), ("done", [], 0), about)
        last = self.sweep(contract)
        self.assertEqual(self.gone(last), {}, last)
        return results

    def fill(self, into, select, last):
        if self.on_mariadb:     # there / makes fractions
            select = select.replace("/", "div")
        self.given(f"insert into {into} select {select} from ({self.series(last)}) s")

    @again
    def test_a_table_alone(self):
        self.given("create table t (id integer primary key, at_ms bigint); create index t_at on t(at_ms)")
        self.fill("t", f"n, case when n % 10 = 0 then {MS + 1} else n end", 4000)
        results = self.at_once("policies: {t: {table: t, expires: at_ms, batch: 20}}", {"t": 3600})
        self.left("t", *range(10, 4001, 10))
        if not self.on_sqlite and sum(r.policy("t")["rows"] > 0 for r in results) == 1:
            raise TooSoon("a sweep that others have their share of")

    def test_with_a_write_ahead_log(self):
        if self.on_sqlite:
            self.db.rows("pragma journal_mode = wal")
        self.owned(10)

    def owned(self, batch):
        self.given("""
            create table job (id integer primary key, at_ms bigint);
            create table step (id integer primary key, job_id integer not null references job(id));
            create table note (id integer primary key, step_id integer not null references step(id));
            create table ext (id integer primary key, job_id integer references job(id));
            create index job_at on job(at_ms); create index step_job on step(job_id);
            create index note_step on note(step_id); create index ext_job on ext(job_id)""")
        self.fill("job", f"n, case when n % 10 = 0 then {MS + 1} else n end", 1000)
        self.fill("step", "n, (n + 1) / 2", 2000)
        self.fill("note", "n, (n + 1) / 2", 4000)
        self.fill("ext", "n, n", 1000)
        self.at_once(f"policies: {{job: {{table: job, expires: at_ms, batch: {batch}, detach: [ext(job_id)], "
                     f"with: [{{ref: step(job_id), with: [note(step_id)]}}]}}}}",
                     {"job": 900, "step": 1800, "note": 3600}, {"ext": 900})
        self.left("job", *range(10, 1001, 10))
        self.assertEqual(self.ids("step"), [n for n in range(1, 2001) if (n + 1) // 2 % 10 == 0])
        self.assertEqual(self.db.rows("select count(*) from ext where job_id is not null"), [(100,)])

    def test_dependents_of_dependents(self):
        self.owned(20)

    def test_everything_in_one_batch(self):
        self.owned("null")

    def test_a_shared_dependent(self):
        """Two references of one table lead to rows that different sweepers delete."""
        self.given("""
            create table node (id integer primary key, at_ms bigint);
            create table edge (id integer primary key, a integer references node(id), b integer references node(id));
            create index edge_a on edge(a); create index edge_b on edge(b); create index node_at on node(at_ms)""")
        self.fill("node", "n, 0", 600)
        self.fill("edge", "n, n, 1 + (n * 7919) % 600", 600)
        self.at_once("policies: {node: {table: node, expires: at_ms, batch: 10, with: [edge(a), edge(b)]}}",
                     {"node": 600, "edge": 600})

    def test_a_table_that_refers_to_itself(self):
        self.given("create table t (id integer primary key, parent integer references t(id), at_ms bigint); "
                   "create index t_parent on t(parent); create index t_at on t(at_ms)")
        self.fill("t", f"n, null, case when n % 10 = 0 then {MS + 1} else 0 end", 800)
        self.given("update t set parent = 1 + (id * 7919) % 800")
        parents = dict(self.db.rows("select id, parent from t"))
        results = self.at_once("policies: {t: {table: t, expires: at_ms, batch: 10, detach: [t(parent)]}}",
                               {"t": 720}, {"t": sum(n % 10 == 0 and p % 10 != 0 for n, p in parents.items())})
        self.left("t", *range(10, 801, 10))
        self.assertEqual({n: p for n, p in self.db.rows("select id, parent from t")},
                         {n: p if p % 10 == 0 else None for n, p in parents.items() if n % 10 == 0})
        return results

    def test_trees(self):
        """A row goes when it is due, and with it all below it, however young."""
        self.given("create table t (id integer primary key, parent integer references t(id), at_ms bigint); "
                   "create table leaf (id integer primary key, t_id integer references t(id)); "
                   "create index t_parent on t(parent); create index t_at on t(at_ms); create index leaf_t on leaf(t_id)")
        young = MS + 1
        self.fill("t", f"n, null, case when n % 3 = 0 then 0 else {young} end", 100)
        for level in range(1, 8):       # each row has one below it, so trees are eight high
            self.fill("t", f"n + {level} * 100, n + {level - 1} * 100, "
                             f"case when n % 10 = {level} then 0 else {young} end", 100)
        self.given("insert into leaf select id, id from t")
        parents = dict(self.db.rows("select id, parent from t"))
        at = dict(self.db.rows("select id, at_ms from t"))

        def goes(n):
            return n is not None and (at[n] == 0 or goes(parents[n]))
        due = [n for n in parents if goes(n)]
        self.at_once("policies: {t: {table: t, expires: at_ms, batch: 10, "
                     "with: [t(parent), leaf(t_id)]}}", {"t": len(due), "leaf": len(due)})
        self.left("t", *[n for n in parents if n not in due])

    def test_after_and_hold(self):
        self.given("create table t (id integer primary key, at_ms bigint); create table wait (id integer primary key, t_id "
                   "integer references t(id)); create index t_at on t(at_ms); create index wait_t on wait(t_id)")
        self.fill("t", "n, 0", 1000)
        self.fill("wait", "n, n * 10", 100)
        self.at_once("policies: {t: {table: t, expires: at_ms, batch: 10, after: [wait(t_id)], hold: 'this.id % 7 = 0'}}",
                     {"t": sum(n % 10 != 0 and n % 7 != 0 for n in range(1, 1001))})

    def test_several_policies(self):
        self.given("create table a (id integer primary key, at_ms bigint); create table b (id integer primary key, "
                   "a_id integer references a(id), at_ms bigint); create index b_a on b(a_id); "
                   "create index a_at on a(at_ms); create index b_at on b(at_ms)")
        self.fill("a", "n, 0", 500)
        self.fill("b", f"n, n, case when n % 2 = 0 then 0 else {MS + 1} end", 500)
        self.at_once("policies:\n  a: {table: a, expires: at_ms, batch: 10, with: [b(a_id)]}\n"
                     "  b: {table: b, expires: at_ms, batch: 10}", {"a": 500, "b": 500})
