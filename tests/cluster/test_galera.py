"""A Galera cluster, every node well: sweeps on several nodes at once, an application beside them, leases, purges."""
from galera_case import *

import random_rounds
import round_words
import rounds

N = 600


class Sweeping(ClusterTest):
    def test_two_sweepers_and_an_application(self):
        """Every row that went is counted once, by whoever; what was brought back to life is there, whole, on every node."""
        self.fill(N)
        tables = tables_of_jobs()
        before = self.state(tables)
        applications = [Application(db, i, N) for i, db in enumerate(self.on)]
        for a in applications:
            a.start()
        eventually(lambda: all(len(a.added) > 10 and len(a.revived) > 5 or a.trouble for a in applications), 60)
        results = self.meeting(CONTRACT, nodes=2)
        for a in applications:
            a.finish()
        results.append(self.sweep(CONTRACT, now=None))
        about = "\n".join(str(r)[:1500] for r in results)
        for r in results:
            entry = r.policy("job")
            self.assertEqual((r.code, entry["outcome"], entry["skipped"], entry["unknown"]), (0, "done", [], 0), about)
        job, step, note = tables
        for a in applications:
            for at, at_ms in a.added.items():
                before[job][at] = {"id": at, "at_ms": at_ms}
                before[note][at] = {"id": at, "job_id": at}
                before[step].update({2 * at + k: {"id": 2 * at + k, "job_id": at} for k in (0, 1)})
            for at in a.revived:
                before[job][at]["at_ms"] = FAR_MS
            for at in a.deleted:
                del before[job][at], before[note][at]
                before[step] = {i: row for i, row in before[step].items() if row["job_id"] != at}
        due = sum(row["at_ms"] is not None and row["at_ms"] <= MS for row in before[job].values())
        gone = {t: sum(counts(r.policy("job")["tables"]).get(t, 0) for r in results) for t in ("job", "step", "note")}
        self.assertEqual(gone, {"job": due, "step": 2 * due, "note": due}, about)
        self.as_the_oracle_says(tables, before)
        self.assertGreater(sum(r.policy("job")["retries"] for r in results), 0, f"what conflicts is tried again\n{about}")

    def test_row_by_row_on_three_nodes(self):
        """Each after the same row, all the time: a row that another node was faster with is no failure."""
        self.fill(400)
        contract = CONTRACT.replace("batch: 20", "batch: 1")
        results = self.meeting(contract)
        about = "\n".join(str(r)[:1500] for r in results)
        for r in results:
            entry = r.policy("job")
            self.assertEqual((r.code, entry["outcome"], entry["skipped"], entry["unknown"]), (0, "done", [], 0), about)
        self.assertEqual(sum(r.policy("job")["rows"] for r in results), 400, about)
        self.assertGreater(sum(r.policy("job")["retries"] for r in results), 1, about)
        self.all_is_right()

    def test_every_bound_on_three_nodes(self):
        """Three sweepers of the same rows, one per node, no lock between them. What ranks rows needs own tables."""
        contract = """
            policies:
              job: { table: job, expires: at_ms, batch: 10, with: [ step(job_id) ], detach: [ ext(job_id) ] }
              task: { table: task, orphan: { of: doc(id), by: doc_id }, age: at_ms, keep: 1h, batch: 10 }
              mark: { table: mark, cap: { rows: 5, per: [ owner ], newest: [ at_ms ] }, batch: 10 }
              inbox: { table: inbox, expires: at_ms, after: [ outbox(inbox_id) ], batch: null }
            """
        self.given("""
            create table job (id integer primary key, at_ms bigint); create index job_at on job(at_ms);
            create table step (id integer primary key, job_id integer not null references job(id));
            create table ext (id integer primary key, job_id integer references job(id));
            create table doc (id integer primary key);
            create table task (id integer primary key, doc_id integer, at_ms bigint); create index task_doc on task(doc_id);
            create table mark (id integer primary key, owner integer, at_ms bigint); create index mark_owner on mark(owner, at_ms);
            create table inbox (id integer primary key, at_ms bigint); create index inbox_at on inbox(at_ms);
            create table outbox (id integer primary key, inbox_id integer); create index outbox_inbox on outbox(inbox_id);""")
        self.given(f"""
            insert into job select seq, if(seq % 10 = 0, {FAR_MS}, {MS}) from seq_1_to_300;
            insert into step select seq, (seq + 1) div 2 from seq_1_to_600; insert into ext select seq, seq from seq_1_to_300;
            insert into doc select seq * 2 from seq_1_to_100; insert into task select seq, seq, {MS} from seq_1_to_200;
            insert into mark select seq, seq % 10, {MS} + seq from seq_1_to_200;
            insert into inbox select seq, {MS} from seq_1_to_200; insert into outbox select seq, seq * 4 from seq_1_to_50""")
        ints = lambda *names: {n: column(n) for n in names}
        job = oracle.Table("job", ints("id", "at_ms"), key=["id"])
        to_job = [oracle.Foreign(["job_id"], job, ["id"])]
        tables = [job, oracle.Table("step", ints("id", "job_id"), key=["id"], foreign=to_job),
                  oracle.Table("ext", ints("id", "job_id"), key=["id"], foreign=to_job),
                  oracle.Table("doc", ints("id"), key=["id"]), oracle.Table("task", ints("id", "doc_id", "at_ms"), key=["id"]),
                  oracle.Table("mark", ints("id", "owner", "at_ms"), key=["id"]),
                  oracle.Table("inbox", ints("id", "at_ms"), key=["id"]),
                  oracle.Table("outbox", ints("id", "inbox_id"), key=["id"])]
        before = self.state(tables)
        self.lapse(contract, "install", code=0)
        self.cluster.settle()
        results = self.meeting(contract)
        about = "\n".join(str(r)[:3000] for r in results)
        self.assertEqual([r.code for r in results], [0] * 3, about)
        total = {}
        for r in results:
            for table, rows in self.gone(r).items():
                total[table] = total.get(table, 0) + rows
        self.assertEqual(total, {"job": 270, "step": 540, "task": 100, "mark": 150, "inbox": 150}, about)
        self.assertEqual(sum(self.gone(r, "detached").get("ext", 0) for r in results), 270, about)
        self.as_the_oracle_says(tables, before, contract)


class ByTheOracle(ClusterTest):
    """Random schemas, rows and policies, swept through all three nodes at once."""
    GROUPS = 5 if THOROUGH else 1

    def test_rounds(self):
        on, retries = random_rounds.OnMariadb, 0
        for group in range(self.GROUPS):
            first = 4_000_000 + group * rounds.GROUP
            played = [rounds.Round("mariadb", s) for s in range(first, first + rounds.GROUP)]
            if group:
                self.on = [self.cluster.fresh().on(self.cluster.nodes[0])]
                self.on = [self.on[0].on(node) for node in self.cluster.nodes]
            on.load(self.on[0], played)
            self.cluster.settle()
            contract = "policies:\n" + "".join(r.contract_part() for r in played)
            self.assertEqual(lapse(self.on[0], contract, "install").code, 0)     # for those that rank rows
            self.cluster.settle()
            how = {"env": random_rounds.SANITIZER}
            sweep = ("sweep", "--json", "--now", round_words.iso(played[0].now))
            if group:
                results = [p.wait(200) for p in [Lapse.start(db, contract, *sweep, **how) for db in self.on]]
            else:
                results = self.meeting(contract, *sweep[2:], **how)
            for r in results:
                self.assertIn(r.code, (0, 3), r)
                retries += sum(e.get("retries", 0) for e in r.json["policies"])
            for _ in range(20):
                swept = lapse(self.on[1], contract, *sweep, timeout=200, **how)
                self.assertIn(swept.code, (0, 3), swept)
                if not any(t["rows"] for e in swept.json["policies"] for t in e["tables"]):
                    break
            self.cluster.settle()
            for one in played:
                for db in self.on:
                    wrong = random_rounds.difference(random_rounds.as_rows(one.at_last), on.rows(db, one),
                                                     ("gone or changed wrongly", "should be gone"))
                    self.assertFalse(wrong, f"{db.server.address}\n{random_rounds.told(one, wrong)}")
        self.assertGreater(retries, 0, "what conflicts is tried again")


def some(points):
    """All of them, or, where time is short, every other one and the last."""
    return points if THOROUGH else [p for p in points if (points[-1] - p) % 2 == 0]


class OtherNodes(ClusterTest):
    """A session of another node comes in before any one statement of a batch. Its write is not seen by locks."""
    SET_UP = """
        drop table if exists step, note, job, doc, brake_of_appliers;
        create table doc (id integer primary key, open integer);
        create table job (id integer primary key, at_ms bigint, doc_id integer); create index job_at on job(at_ms);
        create table step (id integer primary key, job_id integer not null references job(id));
        create table note (id integer primary key, job_id integer); create index note_job on note(job_id);
        create table brake_of_appliers (id integer primary key auto_increment)"""
    RESET = f"""delete from note; delete from step; delete from job; delete from doc; insert into doc values (2, 0), (7, 0);
                insert into job values (1, {MS - 5}, 1), (2, {MS - 5}, 2); insert into step values (1, 1), (2, 2)"""

    def reset(self):
        self.on[0].script(self.RESET)
        self.cluster.settle()

    def through(self, contract, before=None):
        with Proxy(self.db, before, looks=False) as proxy:
            r = lapse(proxy.dsn, contract, "sweep", "--json", "--now", NOW)
        return r, list(proxy.seen)

    def batch(self, contract):
        """The numbers of statements of the first batch: BEGIN, the one with which the judgement begins (the node catches
        up with its cluster, asked over another connection), COMMIT."""
        self.reset()
        r, seen = self.through(contract)
        self.assertEqual(r.code, 0, r)
        begin = next(s for s in seen if s.begins_batch)
        commit = next(s for s in seen if s.number > begin.number and s.ends_batch)
        self.assertTrue(commit.sql.startswith("COMMIT"), seen)
        beside = [s.number for s in seen[begin.number:commit.number] if s.connection != begin.connection]
        self.assertTrue(beside, f"it never asked beside: {seen}")
        return begin.number, beside[-1], commit.number

    def each(self, contract, act, check, points, held=False):
        """Runs the sweep once for each of points(begin, judged, commit), statements before which the other node commits
        `act`. held: the node that sweeps hears of it a second late. check(about) looks at every node."""
        self.given(self.SET_UP)
        self.cluster.settle()
        for number in points(*self.batch(contract)):
            with self.subTest(number=number, held=held):
                self.reset()
                came = []

                def come_in(s):
                    if s.number == number:
                        came.append(s)
                        if held:
                            threading.Timer(1, self.hold_appliers(0, 1)).start()
                        self.on[1].execute(act)

                r, seen = self.through(contract, come_in)
                self.assertTrue(came, f"never reached: {seen}")
                self.assertEqual(r.code, 0, f"{r}\n{seen}")
                check(f"before {came}\n{seen}\n{r}")

    @staticmethod
    def whole_batch(begin, _judged, commit):
        return some(range(begin + 1, commit + 1))

    @staticmethod
    def until_judged(begin, judged, _commit):
        return some(range(begin + 1, judged + 1))

    @staticmethod
    def first_and_last(begin, judged, _commit):
        return begin + 1, judged

    def left(self, jobs, steps=..., notes=..., about=""):
        """On every node."""
        for table, ids in ("job", jobs), ("step", steps), ("note", notes):
            if ids is not ...:
                self.assertEqual([i for i, in self.everywhere(f"select id from {table} order by 1")], ids, about)

    def test_a_row_comes_back_to_life(self):
        """Until the COMMIT, whatever was seen of it: the write of the other node was first."""
        self.each("policies: {job: {table: job, expires: at_ms, with: [step(job_id), note(job_id)]}}",
                  f"update job set at_ms = {FAR_MS} where id = 1",
                  lambda about: self.left([1], [1], [], about), self.whole_batch)

    def test_a_row_gets_a_dependent_by_foreign_key(self):
        """Until the COMMIT: the batch is tried again, and takes it along. Neither goes without the other."""
        self.each("policies: {job: {table: job, expires: at_ms, with: [step(job_id)]}}", "insert into step values (9, 1)",
                  lambda about: self.left([], [], [], about), self.whole_batch)

    def test_a_row_gets_a_dependent_without_foreign_key(self):
        for held, points in (False, self.until_judged), (True, self.first_and_last):
            self.each("policies: {job: {table: job, expires: at_ms, with: [step(job_id), note(job_id)]}}",
                      "insert into note values (9, 1)", lambda about: self.left([], [], [], about), points, held)

    def test_a_row_waits(self):
        """after, without a foreign key: what another node committed before the judgement counts."""
        for held, points in (False, self.until_judged), (True, self.first_and_last):
            self.each("policies: {job: {table: job, expires: at_ms, with: [step(job_id)], after: [note(job_id)]}}",
                      "insert into note values (9, 1)", lambda about: self.left([1], [1], [9], about), points, held)

    def test_a_row_is_held_by_another(self):
        for held, points in (False, self.until_judged), (True, self.first_and_last):
            self.each("policies: {job: {table: job, expires: at_ms, with: [step(job_id)],"
                      " hold: 'exists (select 1 from doc where doc.id = this.doc_id and doc.open = 1)'}}",
                      "update doc set open = 1 where id = 2", lambda about: self.left([2], [2], about=about), points, held)

    def test_an_orphan_gets_its_source(self):
        for held, points in (False, self.until_judged), (True, self.first_and_last):
            self.each("policies: {job: {table: job, orphan: {of: doc(id), by: doc_id}, age: at_ms, keep: now,"
                      " with: [step(job_id)]}}",
                      "insert into doc values (1, 0)", lambda about: self.left([1, 2], [1, 2], about=about), points, held)
