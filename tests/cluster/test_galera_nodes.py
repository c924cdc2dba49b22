"""A Galera cluster whose nodes are killed, frozen and cut off while lapse works through them."""
from galera_case import *

N = 1000
NOT_PRIMARY = "not in the primary part of its cluster"


class NodesTest(ClusterTest):
    def several(self, *numbers):
        """A DSN that lists several nodes."""
        hosts = ",".join(f"{self.cluster.nodes[n].address}:{self.cluster.ports['sql']}" for n in numbers)
        return f"mariadb://root@{hosts}/{self.db.name}"

    def came_through(self, results, due=N):
        """Whatever was answered: no more went than was counted or may have gone, no less than was counted; what is still
        there goes with the next sweep. No row counts twice."""
        self.cluster.settle()
        self.db.close()
        about = "\n".join(map(str, results))
        gone = due - self.everywhere(f"select count(*) from job where at_ms <= {MS}")[0][0]
        self.whole()
        entries = [r.policy("job") for r in results]
        rows, unknown = sum(e["rows"] for e in entries), sum(e["unknown"] for e in entries)
        self.assertLessEqual(rows, gone, about)
        self.assertLessEqual(gone, rows + unknown, about)
        for r, e in zip(results, entries):
            self.assertEqual(e["skipped"], [], about)
            self.assertIn((r.code, e["outcome"]), ((0, "done"), (1, "done"), (5, "failed")), about)
            self.assertTrue(r.code != 1 or e["unknown"], about)
        self.sweep(CONTRACT, now=None)
        self.all_is_right()
        return rows, unknown


class Killed(NodesTest):
    @again
    def test_another_node_of_the_list_takes_over(self):
        """-9 in mid-sweep; the sweep goes on through the next node, another one on the third all the while."""
        self.fill(N)
        p = Lapse.start(self.several(1, 2), CONTRACT, "sweep", "--json")
        q = self.start(0)
        self.until_left(p, N * 0.8, node=2)
        self.cluster.nodes[1].kill()
        results = [p.wait(), q.wait()]
        self.assertEqual(results[1].code, 0, results[1])
        self.cluster.nodes[1].rejoin()
        self.came_through(results)

    @thorough
    @again
    def test_the_only_node(self):
        """Exit 5, the rest with the next sweep; the node comes back and has what it missed."""
        self.fill(N)
        p = self.start(1)
        self.until_left(p, N * 0.8)
        self.cluster.nodes[1].kill()
        r = p.wait()
        if r.code == 0:
            self.cluster.nodes[1].rejoin()
            raise TooSoon("a sweep through the node that was killed")
        self.assertEqual(r.code, 5, r)
        other = lapse(self.on[0], CONTRACT, "sweep", "--json")
        self.assertEqual(other.code, 0, other)
        self.cluster.nodes[1].rejoin()
        self.came_through([r, other])

    @thorough
    def test_at_commit(self):
        """A few times: each time the COMMIT is on its way when the node is killed."""
        for delay_s in (0, 0.002):
            with self.subTest(delay_s=delay_s):
                self.given("drop table if exists note, step, job, brake_of_appliers")
                self.fill(100)
                came = []

                def come(s):
                    deletes = any(x.sql.startswith("DELETE") for x in proxy.seen)
                    if s.sql.startswith("COMMIT") and deletes and not came:
                        came.append(s)
                        threading.Timer(delay_s, self.cluster.nodes[1].kill).start()

                with Proxy(self.on[1]) as proxy:
                    proxy._before = come
                    r = lapse(proxy.dsn, CONTRACT, "sweep", "--json")
                self.assertTrue(came, r)
                self.assertIn(r.policy("job")["unknown"], (0, 20), r)
                self.cluster.nodes[1].rejoin()
                self.came_through([r], due=100)

    @thorough
    def test_it_comes_back_as_a_copy(self):
        """Its folder is useless: it is sent everything (SST by rsync) while others sweep."""
        self.fill(N)
        node = self.cluster.nodes[2]
        node.kill()
        (node.data / "grastate.dat").unlink()
        (node.data / "ibdata1").unlink()
        p = self.start(0)
        node.launch()
        r = p.wait(120)
        node.wait_until_ready()
        self.assertEqual((r.code, r.policy("job")["rows"]), (0, N), r)
        self.assertIn("SST", node.log.read_text())
        self.came_through([r])


class Frozen(NodesTest):
    @again
    def test_for_ten_seconds(self):
        """A node that is worked through is frozen; the cluster goes on without it, and so does the sweep on another. The
        one that waited for it hears that its transaction is in doubt, or never began, and nothing is counted twice."""
        self.fill(N)
        p, q = self.start(1), self.start(0)
        self.until_left(p, N * 0.9)
        with self.cluster.nodes[1].frozen():
            r = q.wait()
            self.assertEqual((r.code, r.policy("job")["outcome"]), (0, "done"), r)
            self.assertEqual(self.due_left(), 0)
            self.db.execute(f"update job set at_ms = {FAR_MS} where id < 0")
            time.sleep(10)
        results = [r, p.wait(90)]
        self.came_through(results)

    @thorough
    def test_it_believes_to_be_well(self):
        """A node that was thawed answers from the past until it notices. What it would delete is not deleted."""
        self.given(SCHEMA)
        self.given(f"insert into job values (1, {MS}), (2, {MS}); insert into step values (1, 1); insert into note values (1, 1)")
        self.cluster.settle()
        contract = CONTRACT.replace("with: [ step(job_id), note(job_id) ]", "with: [ step(job_id) ], after: [ note(job_id) ]")
        node = self.cluster.nodes[1]
        with node.frozen():
            time.sleep(8)
            self.on[0].script(f"insert into note values (2, 2)")
        r = lapse(self.on[1], contract, "sweep", "--json")
        self.assertIn(r.code, (0, 1, 5), r)
        self.assertEqual(self.everywhere("select id from job order by 1"), [(1,), (2,)], r)


class CutOff(NodesTest):
    def test_a_node_without_a_majority(self):
        """It answers, and says what it is; nothing is read from it, nothing decided by it."""
        self.fill(N)
        node = self.cluster.nodes[2]
        node.isolate()
        try:
            for command in ("check", "plan", "sweep", "install"):
                r = lapse(self.on[2], CONTRACT, command)
                self.assertEqual(r.code, 5, r)
                self.assertIn(NOT_PRIMARY, r.out + r.err)
            with Daemon(self.on[2], CONTRACT) as d:
                failed = d.wait_for("lifecycle_tick_failed", 30)
                self.assertIn(NOT_PRIMARY, str(failed), d)
                self.assertEqual(d.http("/readyz")[0], 503)
                self.assertEqual(self.due_left(), N)
                node.join_again()
                d.wait_for("lifecycle_pruned", 60, job=N)
                eventually(lambda: d.http("/readyz")[0] == 200)
        finally:
            node.join_again()
        self.all_is_right()

    @thorough
    @again
    def test_in_mid_sweep(self):
        """Through a list of nodes the sweep goes on elsewhere; alone it ends with 5."""
        self.fill(N)
        slow = CONTRACT.replace("batch: 20", "batch: 5")
        p = Lapse.start(self.several(1, 0), slow, "sweep", "--json")
        self.until_left(p, N * 0.9)
        self.cluster.nodes[1].isolate()
        try:
            r = p.wait(90)
            self.assertEqual(r.policy("job")["outcome"], "done", r)
        finally:
            self.cluster.nodes[1].join_again()
        self.came_through([r])

    def test_a_commit_in_doubt(self):
        """Both others stand still when it commits; they have got it when the node is cut off. It is answered that the node
        has no majority; the others have deleted the rows: reported apart, not as gone, and not as still there."""
        self.fill(100)
        came = []
        others = self.cluster.nodes[1:]

        def come(s):
            deletes = any(x.sql.startswith("DELETE") for x in proxy.seen)
            if s.sql.startswith("COMMIT") and deletes and not came:
                came.append(s)
                for node in others:
                    node.freeze()
                threading.Timer(2, cut).start()     # they have got it by then

        def cut():
            self.cluster.nodes[0].admin("set global wsrep_provider_options = 'gmcast.isolate=1'")
            for node in others:
                node.thaw()

        try:
            with Proxy(self.db) as proxy:
                proxy._before = come
                r = lapse(proxy.dsn, CONTRACT.replace("with:", "timeouts: { away: 2s }, with:"), "sweep", "--json")
        finally:
            self.cluster.nodes[0].join_again()
        self.assertTrue(came, r)
        entry = r.policy("job")
        self.assertEqual((r.code, entry["rows"], entry["unknown"]), (5, 0, 20), f"{r}\n{proxy.seen}")
        self.cluster.settle()
        self.assertEqual(self.everywhere(f"select count(*) from job where at_ms <= {MS}"), [(80,)])
        self.came_through([r], due=100)

    @thorough
    def test_a_lease(self):
        """Its holder is cut off: it can write nothing more. Another takes the lease when it ends."""
        self.fill(N)
        self.lapse(CONTRACT, "install", code=0)
        self.cluster.settle()
        contract = CONTRACT.replace("policies:", "schedulers: { main: { every: 1s, exclusive: true, lease: 8s } }\n    policies:")
        contract = contract.replace("batch: 20", "batch: 1")
        node = self.cluster.nodes[1]
        with Daemon(self.on[1], contract) as a:
            eventually(lambda: self.due_left() < N - 5, every=0.002)
            node.isolate()
            try:
                with Daemon(self.on[0], contract) as b:
                    b.wait_for("lifecycle_pruned", 90)
                    eventually(lambda: self.due_left() == 0, 60)
            finally:
                node.join_again()
            self.cluster.settle()
        gone = sum(x.get("job", 0) for d in (a, b) for x in d.said("lifecycle_pruned"))
        self.assertLessEqual(gone, N)
        self.assertGreaterEqual(gone, N - 1, "all but a batch in doubt")
        self.all_is_right()
