"""What a purge may cost: the time of a statement, the memory of a batch, a turn while everything is paused."""
import contextlib
import os
import time

from daemon import Daemon
from harness import *
from test_purge import CONTRACT, Purging, T


def limited(statement, contract=CONTRACT):
    return contract.replace("label: Workflow", f"label: Workflow\n        timeouts: {{ statement: {statement} }}")


class Slow(Purging):
    """An instance whose data takes longer to erase than a statement may."""

    def slow(self, seconds):
        if self.on_postgres:
            self.given(f"""create function slow() returns trigger language plpgsql as $$ begin
                           if old.id like 'slow%' then perform pg_sleep({seconds}); end if; return old; end $$;
                           create trigger slow before delete on workflow for each row execute function slow()""")
        elif self.on_mariadb:
            self.db.execute("create trigger slow before delete on workflow for each row "
                            f"if old.id like 'slow%' then do sleep({seconds}); end if")
        else:
            self.given(f"""create trigger slow before delete on workflow when old.id like 'slow%' begin
                           select count(*) from (with recursive g(n) as (select 1 union all select n + 1 from g
                           where n < {int(seconds * 3_000_000)}) select n from g); end""")


@every_engine
class Alone(Slow):
    def test_it_is_said_what_helps(self):
        self.slow(3)
        self.instance("slow", "b")
        self.schedule("slow", ago_ms=HOUR)
        self.schedule("b", ago_ms=HOUR)
        short, long = limited("1s"), limited("10m")
        start = time.monotonic()
        r = self.due(("b", "completed"), code=1, contract=short)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual((r.json["spaces"][0]["retried"], self.there("slow")), (1, self.WHOLE))
        said = self.lapse(short, "purge", "list", code=0).out
        self.assertIn("failed 1 time, again at", said)
        self.assertIn("it took longer than a statement in 'workflow' may, 1s (give the space timeouts: { statement: … }", said)
        self.given(f"update lapse_purge set retry_at = '{self.time(MS)}'")
        self.due(("slow", "completed"), contract=long)
        self.assertEqual((self.there("slow"), self.pending()), (self.PURGED, []))

    def test_words(self):
        for bad, said in (("timeouts: { statement: -1s }", "statement"), ("timeouts: { lock: 2s }", "unknown key 'lock'"),
                          ("timeouts: 30s", "timeouts")):
            r = self.lapse(CONTRACT.replace("label: Workflow", bad), "check", code=2)
            self.assertIn(said, r.err)


class Together(Slow, PostgresTest):
    def test_many_of_them_together(self):
        """Each fits alone: a batch in which they do not is cut into pieces that do, and nothing is parked."""
        self.slow(0.05)
        names = [f"slow{i:02}" for i in range(40)]
        self.instance(*names)
        for n in names:
            self.schedule(n, ago_ms=HOUR)
        r = self.lapse(limited("700ms"), "purge", "due", "--json", "--now", NOW, code=0)
        s = r.json["spaces"][0]
        self.assertEqual((s["executed"], s["retried"], s["parked"], self.pending()), (40, 0, 0, []), s)


@every_engine
class Paused(Purging):
    def test_a_turn_only_reads(self):
        """Another holds the lock to write, and the tables are not looked at either: the brake is read first."""
        self.instance("a")
        self.schedule("a", ago_ms=HOUR)
        self.lapse(CONTRACT, "pause", code=0)
        self.given("alter table workflow_step rename to steps")
        self.db.close()
        with contextlib.closing(self.db.connect()) as other:
            if self.on_postgres:
                other.autocommit = False
                other.cursor().execute("lock table lapse_purge in exclusive mode")
            elif self.on_mariadb:
                other.begin()
                other.execute("select * from lapse_purge for update")
            else:
                other.execute("begin immediate")
            start = time.monotonic()
            r = self.due(code=6)
            self.assertLess(time.monotonic() - start, 15)
            other.rollback()
        self.assertEqual(r.json["spaces"][0]["outcome"], "paused")
        self.given("alter table steps rename to workflow_step")
        self.lapse(CONTRACT, "resume", code=0)
        self.due(("a", "completed"))

    def test_the_daemon_waits(self):
        with Daemon(self.db, CONTRACT.replace("label: Workflow", "delay: 0")) as d:
            d.wait_for("lapse.started")
            self.lapse(CONTRACT, "pause", code=0)
            self.instance("a")
            self.schedule("a")
            self.assertIn("paused", d.wait_for("purge.failed", space=T)["message"])
            time.sleep(2.5)
            self.assertEqual((len(d.said("purge.failed")), self.there("a")), (1, self.WHOLE), d)
            self.lapse(CONTRACT, "resume", code=0)
            d.wait_for("purge.executed", instance="a")


@every_engine
class Long(Purging):
    def test_a_batch_is_bounded_by_bytes(self):
        """Ids of a megabyte, between ordinary ones: few go in one transaction, and all go."""
        if self.on_postgres:      # keys of the data's own tables have a limit there
            self.given("alter table workflow drop constraint workflow_pkey; alter table workflow_kv drop constraint "
                       "workflow_kv_pkey; drop index step_workflow")
        elif self.on_mariadb:
            self.given("alter table workflow drop primary key, modify id longtext collate utf8mb4_nopad_bin, add key (id(180)); alter table "
                       "workflow_kv drop primary key, modify instance_id longtext collate utf8mb4_nopad_bin; alter table "
                       "workflow_step drop index step_workflow, modify workflow_id longtext collate utf8mb4_nopad_bin")
        names = [f"{i:02}" + "x" * (999_998 if i % 2 else 10) for i in range(60)]
        for n in names:
            self.db.execute("insert into workflow values (?, 'done')", (n,))
            self.schedule(n, ago_ms=HOUR)
        r = self.lapse(CONTRACT, "purge", "due", "--json", "--now", NOW, code=0)
        s = r.json["spaces"][0]
        self.assertEqual((s["executed"], s["rows"], self.pending()), (60, 60, []))
        self.assertEqual(sorted(x["instance"] for x in r.json["executed"]), names)
        self.assertGreaterEqual(s["batches"], 4)


@every_engine
class Crowded(Purging):
    """More rows of one instance than a transaction holds: it is done in parts, and the same row decides."""
    MANY = 110_000

    def crowd(self, instance, n, reason="completed", ago_ms=HOUR):
        values = f"'{T}', '{instance}', '{reason}', '{self.time(MS - ago_ms)}'"
        self.given("insert into lapse_purge (space, instance, reason, scheduled_at) " + self.per_engine(
            sqlite=f"with recursive g(n) as (select 1 union all select n + 1 from g where n < {n}) select {values} from g",
            postgres=f"select {values}::timestamptz from generate_series(1, {n})",
            mariadb=f"select {values} from seq_1_to_{n}"))

    def all_due(self, **k):
        return self.lapse(self.contract, "purge", "due", "--json", "--now", NOW, **k).json["spaces"][0]

    def test_all_go(self):
        self.instance("a", "b")
        self.schedule("b", ago_ms=HOUR)
        self.crowd("a", self.MANY)
        s = self.all_due(code=0)
        self.assertEqual((s["executed"], s["removed"], self.pending()), (2, self.MANY - 1, []), s)
        self.assertEqual((self.there("a"), self.there("b")), (self.PURGED, self.PURGED))
        self.assertGreaterEqual(s["batches"], 3)

    def test_the_first_decides(self):
        """It comes last of all that are found, and is not due for long."""
        self.instance("a")
        self.crowd("a", self.MANY)
        self.schedule("a", reason="failed", ago_ms=2 * HOUR)
        s = self.all_due(code=0)
        self.assertEqual((s["executed"], s["removed"], self.there("a")), (0, self.MANY, self.WHOLE), s)
        self.assertEqual(self.db.rows("select instance, reason from lapse_purge"), [("a", "failed")])

    def test_long_ids(self):
        """Each row comes with its id."""
        if self.on_mariadb:
            self.given("alter table workflow drop primary key, modify id longtext collate utf8mb4_nopad_bin, add key (id(180))")
        elif self.on_postgres:
            self.given("alter table workflow drop constraint workflow_pkey")
        name, n = "x" * 100_000, 300
        self.db.execute("insert into workflow values (?, 'done')", (name,))
        self.db.executemany(f"insert into lapse_purge (space, instance, reason, scheduled_at) values ('{T}', ?, 'completed', "
                            f"'{self.time(MS - HOUR)}')", [(name,)] * n)
        contract = "purges: { workflow: { erases: [workflow(id)] } }"
        s = self.lapse(contract, "purge", "due", "--json", "--now", NOW, code=0).json["spaces"][0]
        self.assertEqual((s["executed"], s["rows"], s["removed"], self.pending()), (1, 1, n - 1, []), s)
        self.assertGreaterEqual(s["batches"], 3)


class CrowdHeld(Crowded, PostgresTest):
    MANY = 50_900
    test_all_go = test_the_first_decides = test_long_ids = None

    def test_by_another(self):
        """Whoever holds a row may be about to take them all away: the data stays, and what he finds then is all there is."""
        self.instance("a", "b")
        self.crowd("a", self.MANY)
        self.schedule("b", ago_ms=2 * HOUR)
        self.db.close()
        with contextlib.closing(self.db.connect()) as other:
            other.autocommit = False
            other.cursor().execute("select id from lapse_purge where instance = 'a' order by id desc limit 1 for update")
            s = self.all_due()
            self.assertEqual((s["executed"], self.there("a"), self.there("b")), (1, self.WHOLE, self.PURGED), s)
            other.cursor().execute("delete from lapse_purge where instance = 'a'")
            other.commit()
        s = self.all_due(code=0)
        self.assertEqual((s["executed"], self.there("a"), self.pending()), (0, self.WHOLE, []), s)
