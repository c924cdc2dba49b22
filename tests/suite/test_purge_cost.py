"""What a batch of purges reads of lapse_purge: the due rows, however many others wait and whatever is known of the table."""
import time

from harness import *

CONTRACT = """
purges: { job: { delay: 1h, erases: [step(job), note(job)] } }
"""
PENDING, DUE = 20000, 300


class PostgresPurgeCost(Case, PostgresTest):
    def setUp(self):
        super().setUp()
        self.given("create table step (id bigint primary key, job text); create index step_job on step(job);"
                   "create table note (id bigint primary key, job text); create index note_job on note(job)")
        self.lapse(CONTRACT, "install", code=0)
        # what a table is believed to be that was filled a moment ago: nobody has looked at it yet
        self.given("alter table lapse_purge set (autovacuum_enabled = false);"
                   f"insert into lapse_purge (space, instance, reason, scheduled_at) select 'job', 'p' || n, "
                   f"case n % 3 when 0 then 'completed' when 1 then 'failed' end, '{NOW}' from generate_series(1, {PENDING}) n")

    def read(self):
        """(rows read one after the other, rows fetched by an index), once the sessions that read them have said so."""
        last = None
        while True:
            time.sleep(0.1)
            now = self.db.rows("select coalesce(seq_tup_read, 0), coalesce(idx_tup_fetch, 0) from pg_stat_user_tables"
                               " where relname = 'lapse_purge'")[0]
            if now == last:
                return now
            last = now

    def purge(self, columns, values):
        self.given(f"insert into lapse_purge (space, instance, {columns}) select 'job', 'd' || n, {values} "
                   f"from generate_series(1, {DUE}) n; insert into step select n, 'd' || n from generate_series(1, {DUE}) n")
        self.assertEqual(self.db.rows("select last_analyze, last_autoanalyze from pg_stat_user_tables"
                                      " where relname = 'lapse_purge'"), [(None, None)])
        before = self.read()
        r = self.lapse(CONTRACT, "purge", "due", "--json", "--now", NOW, code=0)
        self.assertEqual((r.json["spaces"][0]["executed"], r.json["spaces"][0]["rows"]), (DUE, DUE), r)
        one_by_one, by_index = (now - was for now, was in zip(self.read(), before))
        self.assertEqual(one_by_one, 0)
        self.assertLess(by_index, 8 * DUE)
        self.assertEqual(self.db.rows("select count(*) from lapse_purge"), [(PENDING,)])

    def test_by_a_reason(self):
        self.purge("reason, scheduled_at", "'completed', '2024-01-01Z'")

    def test_without_a_reason(self):
        self.purge("scheduled_at", "'2024-01-01Z'")

    def test_by_a_time(self):
        self.purge("reason, purge_at", "'completed', '2024-01-01Z'")

    def test_again(self):
        self.purge("reason, scheduled_at, retry_at, attempts", "'completed', '2023-12-31Z', '2024-01-01Z', 1")

    def test_twice_scheduled(self):
        self.given(f"insert into lapse_purge (space, instance, reason, purge_at) select 'job', 'd' || n, 'failed', '2024-01-02Z' "
                   f"from generate_series(1, {DUE}) n")
        self.purge("reason, purge_at", "'completed', '2024-01-01Z'")
