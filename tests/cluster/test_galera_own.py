"""A Galera cluster and what lapse keeps in it: leases, purges, brakes and fuses hold over all nodes."""
import itertools

from galera_case import *

EXCLUSIVE = CONTRACT.replace("policies:", "schedulers: { main: { every: 1h, exclusive: true, lease: 10s } }\n    policies:")
N = 100


class Installed(ClusterTest):
    def setUp(self):
        super().setUp()
        self.lapse(CONTRACT, "install", code=0)
        self.cluster.settle()


class Install(ClusterTest):
    def test_on_all_nodes_at_once(self):
        running = [Lapse.start(db, CONTRACT, "install") for db in self.on]
        results = [p.wait() for p in running]
        self.assertEqual([r.code for r in results], [0] * 3, "\n".join(map(str, results)))
        versions = self.everywhere("select version from lapse_version order by 1")
        self.assertEqual(versions, [(i + 1,) for i in range(len(versions))])
        self.assertGreaterEqual(len(versions), 4)
        self.assertEqual(self.everywhere("select count(*) from lapse_purge"), [(0,)])


class Leases(Installed):
    def test_two_nodes_take_it_at_once(self):
        """Both see that it is free, both take it, both commit: one has it, the other hears who."""
        self.fill(N)
        meeting = Meeting("update", "lapse_lease")
        proxies = [Proxy(db, meeting.before()) for db in self.on[:2]]
        with proxies[0], proxies[1]:
            running = [Lapse.start(p.dsn, EXCLUSIVE, "sweep", "--json") for p in proxies]
            results = [p.wait() for p in running]
        about = "\n".join(map(str, results))
        self.assertEqual(meeting.met, 2, about)
        self.assertEqual([r.code for r in results], [0, 0], about)
        takes = [s for p in proxies for s in p.seen if "token = token + 1" in s.sql]
        self.assertGreaterEqual(len(takes), 3, f"one of them tried it again: {takes}\n{about}")
        outcomes = sorted(r.policy("job")["outcome"] for r in results)      # it may be free again by then
        self.assertIn(outcomes, (["done", "held_elsewhere"], ["done", "done"]), about)
        self.assertEqual(sum(r.policy("job").get("rows", 0) for r in results), N, about)
        self.assertEqual(self.everywhere("select token, owner from lapse_lease"), [(outcomes.count("done"), None)])
        self.all_is_right()

    def test_many_times(self):
        """Whoever has it sweeps, nobody else; over all of them every row counts once, and the token counts the takers."""
        self.fill(N)
        done = 0
        for _ in range(4):
            results = [p.wait() for p in [self.start(i, EXCLUSIVE, "--now", NOW) for i in range(3)]]
            about = "\n".join(map(str, results))
            self.assertEqual([r.code for r in results], [0] * 3, about)
            outcomes = [r.policy("job")["outcome"] for r in results]
            self.assertLessEqual(set(outcomes), {"done", "held_elsewhere"}, about)
            done += outcomes.count("done")
            self.assertEqual(sum(r.policy("job").get("rows", 0) for r in results), N, about)
            self.assertEqual(self.everywhere("select token, owner from lapse_lease"), [(done, None)], about)
            self.all_is_right()
            self.given("drop table note; drop table step; drop table job; drop table brake_of_appliers")
            self.fill(N)

    def lost_at_commit(self, held):
        """Its holder is about to commit when another takes the lease, on another node: nothing of the batch is kept."""
        self.fill(N)
        fenced, came = After(["update", "lapse_lease", "token = 1 "]), []

        def come(s):
            if not fenced(s) or came:
                return
            let_go = self.hold_appliers(0, 1) if held else None
            came.append(self.on[1].execute("update lapse_lease set token = token + 1, owner = 'another',"
                                           " expires_at = now() + interval 1 minute"))
            if let_go:
                threading.Timer(0.5, let_go).start()

        with Proxy(self.db, come) as proxy:
            r = lapse(proxy.dsn, EXCLUSIVE, "sweep", "--json")
        about = f"{r}\n{proxy.seen}"
        self.assertEqual(came, [1], about)
        entry = r.policy("job")
        self.assertEqual((r.code, entry["outcome"], entry["rows"], entry["unknown"]), (1, "failed", 0, 0), about)
        self.assertIn("the lease of 'main' was lost to another", entry["error"])
        self.assertGreater(entry["retries"], 0, about)
        self.assertEqual(self.everywhere(f"select count(*) from job where at_ms <= {MS}"), [(N,)])
        self.whole()

    def test_lost_at_commit(self):
        self.lost_at_commit(held=False)

    def test_lost_at_commit_unheard_of(self):
        """The node of the former holder has not heard of it: its COMMIT is refused by the cluster."""
        self.lost_at_commit(held=True)


PURGES = """
    purges:
      workflow: { delay: 1m, erases: [ step(workflow_id), workflow(id) ] }
    """


class Purges(Installed):
    def setUp(self):
        super().setUp()
        self.given("create table workflow (id varchar(40) primary key);"
                   "create table step (id integer primary key, workflow_id varchar(40));"
                   "create index step_workflow on step(workflow_id)")
        self.steps = itertools.count(1)

    def schedule(self, node, instances, purge_at="'2024-01-01'"):
        self.on[node].executemany("insert into workflow values (?)", [(i,) for i in instances])
        self.on[node].executemany("insert into step values (?, ?)", [(next(self.steps), i) for i in instances for _ in (0, 1)])
        self.on[node].script("".join(f"insert into lapse_purge (space, instance, reason, purge_at)"
                                     f" values ('workflow', '{i}', 'completed', {purge_at});" for i in instances))

    def test_each_is_executed_once(self):
        for node in range(3):
            self.schedule(node, [f"wf-{node}-{i}" for i in range(60)])
        self.schedule(0, ["waits"], "'2037-01-01'")
        self.cluster.settle()
        running = [Lapse.start(db, PURGES, "purge", "due", "--json") for db in self.on]
        results = [p.wait() for p in running]
        about = "\n".join(map(str, results))
        self.assertEqual([r.code for r in results], [0] * 3, about)
        self.assertEqual(sum(s["executed"] for r in results for s in r.json["spaces"]), 180, about)
        self.assertEqual(self.everywhere("select id from workflow"), [("waits",)])
        self.assertEqual(self.everywhere("select count(*) from step"), [(2,)])
        self.assertEqual(self.everywhere("select instance from lapse_purge"), [("waits",)])

    def test_daemons_share_them(self):
        """Every purge has one line in the log of one daemon."""
        with Daemon(self.on[0], PURGES) as a, Daemon(self.on[1], PURGES) as b:
            for node in range(3):
                self.schedule(node, [f"wf-{node}-{i}" for i in range(40)])
            eventually(lambda: self.on[2].rows("select count(*) from lapse_purge") == [(0,)], 60)
            eventually(lambda: len(a.said("purge.executed")) + len(b.said("purge.executed")) >= 120)
        said = [x["instance"] for d in (a, b) for x in d.said("purge.executed")]
        self.assertEqual(sorted(said), sorted(f"wf-{n}-{i}" for n in range(3) for i in range(40)))
        self.assertEqual(self.everywhere("select count(*) from workflow"), [(0,)])

    def cancelled(self, held):
        """On another node, while the purge is about to be committed: the instance stays whole."""
        self.given("create table brake_of_appliers (id integer primary key auto_increment)")
        self.schedule(0, ["wf-1", "wf-2"])
        self.cluster.settle()
        commits, came = After(["delete", "workflow"]), []

        def come(s):
            if commits(s) and not came:
                came.append(s)
                let_go = self.hold_appliers(0, 1) if held else None
                came.append(self.on[1].execute("delete from lapse_purge where instance = 'wf-1'"))
                if let_go:
                    threading.Timer(0.5, let_go).start()

        with Proxy(self.db, come) as proxy:
            r = lapse(proxy.dsn, PURGES, "purge", "due", "--json")
        self.assertEqual((r.code, came[1:]), (0, [1]), f"{r}\n{proxy.seen}")
        self.assertEqual(sum(s["executed"] for s in r.json["spaces"]), 1, r)
        self.assertEqual(self.everywhere("select id from workflow"), [("wf-1",)])
        self.assertEqual(self.everywhere("select distinct workflow_id from step"), [("wf-1",)])
        self.assertEqual(self.everywhere("select count(*) from lapse_purge"), [(0,)])

    def test_cancelled_elsewhere(self):
        self.cancelled(held=False)

    def test_cancelled_elsewhere_unheard_of(self):
        self.cancelled(held=True)


class BrakesAndFuses(Installed):
    def test_a_pause_holds_on_every_node_at_once(self):
        """Also on a node that hears of it late."""
        self.fill(N)
        for node, held in ((1, False), (0, True)):
            self.lapse(CONTRACT, "resume", code=0)
            self.cluster.settle()
            let_go = self.hold_appliers(0, 1) if held else None
            r = lapse(self.on[2], CONTRACT, "pause")
            self.assertEqual(r.code, 0, r)
            if let_go:
                threading.Timer(1, let_go).start()
            r = lapse(self.on[node], CONTRACT, "sweep", "--json")
            self.assertEqual((r.code, r.policy("job")["outcome"]), (6, "paused"), r)
        self.assertEqual(self.due_left(), N)

    def test_a_fuse(self):
        self.fill(N)
        contract = CONTRACT.replace("batch: 20", f"batch: 20, limits: {{ rows: {N - 1} }}")
        self.lapse(contract, "sweep", "--json", code=4)
        for db in self.on:
            r = lapse(db, contract, "sweep", "--json")
            self.assertEqual((r.code, r.policy("job")["outcome"]), (4, "fuse"), r)
        r = lapse(self.on[2], contract, "ack", "job")
        self.assertEqual(r.code, 0, r)
        r = lapse(self.on[1], contract, "sweep", "--json")
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, N), r)
        self.all_is_right()


class Limits(ClusterTest):
    def limited(self, name, value):
        default = self.db.server.admin(f"select @@global.{name}")[0][0]
        self.db.server.admin(f"set global {name} = {value}")
        self.addCleanup(lambda: self.db.server.admin(f"set global {name} = {default}"))

    def test_rows_of_a_write_set(self):
        """wsrep_max_ws_rows: a batch that is too large is split."""
        self.fill(N)
        self.limited("wsrep_max_ws_rows", 10)
        r = self.sweep(CONTRACT, now=None)
        self.assertEqual((r.policy("job")["rows"], r.policy("job")["skipped"]), (N, []), r)
        self.all_is_right()

    def test_bytes_of_a_write_set(self):
        """wsrep_max_ws_size, which is noticed by COMMIT."""
        self.given("create table t (id integer primary key, at_ms bigint, words varchar(2000)); create index t_at on t(at_ms)")
        self.given(f"insert into t select seq, {MS} - seq, repeat('x', 2000) from seq_1_to_{N}")
        self.limited("wsrep_max_ws_size", 30_000)
        r = self.sweep("policies: {t: {table: t, expires: at_ms}}", now=None)
        self.assertEqual((r.policy("t")["rows"], r.policy("t")["skipped"]), (N, []), r)
        self.assertGreater(r.policy("t")["batches"], 5, r)
        self.assertEqual(self.everywhere("select count(*) from t"), [(0,)])
