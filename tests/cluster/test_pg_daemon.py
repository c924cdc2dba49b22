"""PostgreSQL: daemons with a lease and with purges, through a failover."""
import signal

from pg_case import *

DAEMON = """
    schedulers: { main: { every: 200ms, exclusive: true, lease: 2s } }
    policies:
      job: { table: job, expires: at_ms, batch: 20, with: [ step(job_id) ] }
    purges:
      workflow: { delay: 0, erases: [ workflow_step(workflow_id), workflow(id) ] }
    """


class Daemons(PairTest):
    def setUp(self):
        super().setUp()
        self.fill(100)
        self.given("create table workflow (id text primary key);"
                   "create table workflow_step (id serial primary key, workflow_id text references workflow(id));"
                   "create index step_workflow on workflow_step(workflow_id); insert into workflow values ('stays')")
        self.lapse(DAEMON, "install", code=0)
        self.numbers = iter(range(10_000, 10 ** 6))

    def daemon(self):
        d = Daemon(self.db, DAEMON)
        self.addCleanup(lambda: d.kill() if d.running() else None)
        return d

    def workflows(self, *names):
        self.db.executemany("insert into workflow values (?)", [(n,) for n in names])
        self.db.executemany("insert into workflow_step (workflow_id) values (?)", [(n,) for n in names] * 3)
        self.db.executemany("insert into lapse_purge (space, instance, reason) values ('workflow', ?, 'done')",
                            [(n,) for n in names])

    def works(self, *daemons, timeout=30):
        """What becomes due goes, what is purged is gone, the rest stays."""
        said = lambda: "\n".join(map(str, daemons))
        new = [next(self.numbers) for _ in range(5)]
        self.insert("job(id, at_ms)", *[(n, 1) for n in new])
        self.insert("step", *[(n, n) for n in new])
        names = [f"w{n}" for n in new]
        self.workflows(*names)
        eventually(lambda: not self.due_left(), timeout, words=said)
        eventually(lambda: not self.db.rows("select 1 from lapse_purge"), timeout, words=said)
        self.all_is_right()
        self.left("workflow", "stays")
        self.assertEqual(self.db.rows("select count(*) from workflow_step"), [(0,)])
        return names

    def purged(self, *daemons):
        return sorted(x["instance"] for d in daemons for x in d.said("purge.executed"))

    def leaders(self, *daemons):
        return [d for d in daemons if d.metric("lapse_lease_held", "main")]

    def test_two_of_them(self):
        """Before and after, one of them has the lease; each purge is executed once."""
        two = self.daemon(), self.daemon()
        names = self.works(*two)
        eventually(lambda: len(self.leaders(*two)) == 1)
        before = self.db.rows("select token from lapse_lease")
        self.pair.caught_up()
        after = [d.mark() for d in two]
        self.pair.fail_over()
        self.db.moved()
        for _ in range(2):
            names += self.works(*two)
        eventually(lambda: len(self.leaders(*two)) == 1)
        self.assertGreaterEqual(self.db.rows("select token from lapse_lease"), before)
        eventually(lambda: self.purged(*two) == sorted(names), words=lambda: f"{self.purged(*two)}\n{names}")
        for d in two:
            eventually(d.ready, words=lambda: f"{d.http('/readyz')}\n{d}")
            d.stop()
        self.assertEqual(self.db.rows("select owner from lapse_lease"), [(None,)])

    def test_the_lease_was_not_replicated(self):
        """One hands its lease to the other, and the failover undoes that: the other deletes nothing by it, and takes it
        when it is over."""
        one = self.daemon()
        self.works(one)
        two = self.daemon()
        two.wait_for("lapse.started")
        (token,), = self.db.rows("select token from lapse_lease")
        self.pair.caught_up()
        self.pair.cut()
        one.stop()
        eventually(lambda: self.leaders(two), words=str(two))
        self.assertGreater(self.db.rows("select token from lapse_lease")[0][0], token)
        self.pair.fail_over()
        self.db.moved()
        (owner, now), = self.db.rows("select owner, token from lapse_lease")
        self.assertEqual(now in (token, token + 1), True)
        self.works(two)
        self.assertGreater(self.db.rows("select token from lapse_lease")[0][0], token)
        self.assertEqual(self.leaders(two), [two])
        two.stop()

    def test_the_same_token_twice(self):
        """One took the lease with a token that was not replicated, and slept; on the new primary another takes it with
        the same one. Whose it is decides."""
        one = self.daemon()
        self.works(one)
        self.pair.caught_up()
        self.pair.cut()
        one.stop()
        two = self.daemon()
        eventually(lambda: self.leaders(two), 30, words=lambda: str(two))
        (lost,), = self.db.rows("select token from lapse_lease")
        two.signal(signal.SIGSTOP)
        self.pair.fail_over()
        self.db.moved()
        three = self.daemon()
        eventually(lambda: self.leaders(three), 30, words=lambda: str(three))
        self.assertEqual(self.db.rows("select token from lapse_lease"), [(lost,)])
        two.signal(signal.SIGCONT)
        self.works(two, three)
        eventually(lambda: self.leaders(two, three) == [three], words=lambda: f"{two}\n{three}")
        self.assertEqual(sum(x["job"] for x in two.said("lifecycle_pruned")), 0, two)
        three.stop()
        two.stop()

    def test_one_wakes_up_after_it(self):
        """A daemon that had the lease was frozen; another took it, and the failover undid that as well. There is never
        more than one whose deletions count."""
        one = self.daemon()
        self.works(one)
        eventually(lambda: self.leaders(one))
        self.pair.caught_up()
        self.pair.cut()
        one.signal(signal.SIGSTOP)
        two = self.daemon()
        eventually(lambda: self.leaders(two), 30, words=lambda: str(two))
        self.pair.fail_over()
        self.db.moved()
        one.signal(signal.SIGCONT)
        self.works(one, two)
        eventually(lambda: len(self.leaders(one, two)) == 1)
        (owner,), = self.db.rows("select owner from lapse_lease")
        self.assertEqual([d.said("lapse.started")[0]["owner"].rsplit(":", 1)[0] for d in self.leaders(one, two)],
                         [owner.rsplit(":", 1)[0]])
        one.stop()
        two.stop()

    def test_a_purge_that_was_not_replicated(self):
        """The data is back, and so is the order to purge it: it is purged again, and said again."""
        d = self.daemon()
        self.works(d)
        self.workflows_wait()
        self.pair.caught_up()
        self.pair.cut()
        self.db.execute("update lapse_purge set purge_at = now()")
        eventually(lambda: not self.db.rows("select 1 from lapse_purge"), words=lambda: str(d))
        self.pair.fail_over()
        self.db.moved()
        self.assertEqual(self.db.rows("select count(*) from workflow where id = 'later'"), [(1,)])
        self.db.execute("update lapse_purge set purge_at = now()")
        self.works(d)
        eventually(lambda: self.purged(d).count("later") == 2, words=lambda: str(d))
        d.stop()

    def workflows_wait(self):
        self.db.execute("insert into workflow values ('later')")
        self.db.execute("insert into lapse_purge (space, instance, reason, purge_at) values ('workflow', 'later', 'done',"
                        " now() + interval '1 hour')")
