"""The ready-made contracts in contracts/, each on its own tables and sample data, on every engine.

The sample says itself what must become of each row: a marked column begins with `keep` or `go`. The marks were
written from the words of the systems' own documents, not from what the program does.
"""
import re
import unittest
from datetime import datetime, timezone

from harness import *

HOME = ROOT / "contracts"

# Per contract: the column of each table that has the mark; None: every row stays.
MARKS = {
    "metadata-older": {"metadata": "external_id", "work_queue": "external_id", "log": "message"},
    "metadata": {"metadata": "external_id", "work_queue": "external_id", "log": "message", "dead_letter": "reason"},
    "orphaned-tasks": {"orders_tasks": "id", "orders": None},
    "operational-tables": {
        "presence_entries": "instance_id", "connections": "connection_id", "channel_inbound_dedupe": "dedupe_key",
        "channel_inbox": "body", "channel_outbox": "body", "lane_leases": "lane", "workspace_leases": "workspace_id",
        "oauth_pending": "state", "oauth_refresh_leases": "account_id", "models_dev_refresh_leases": "key",
        "models_dev_cache": "body", "outbox": "payload", "outbox_consumers": "consumer_id"},
    "workflow-data": {"workflow": "id", "workflow_step": "workflow_id", "workflow_kv": "instance_id"},
}
SCHEMAS = {"metadata": "trax"}      # on PostgreSQL, where it is not public


class Ready(Case):
    """A contract on its sample; `name` is its folder."""
    name = None

    def setUp(self):
        super().setUp()
        self.home = HOME / self.name
        self.contract = self.home / "lapse.yaml"
        self.marks = MARKS[self.name]
        self.options = {}
        schema = self.per_engine(postgres="postgresql", sqlite="sqlite", mariadb="mariadb")
        self.given((self.home / f"schema.{schema}.sql").read_text())
        data = self.timed((self.home / "data.sql").read_text())
        # rows of one INSERT refer to each other; MariaDB looks at them one by one
        self.given(f"set foreign_key_checks = 0; {data}; set foreign_key_checks = 1" if self.on_mariadb else data)

    def timed(self, sql):
        """MariaDB's DATETIME takes no zone; these are in UTC."""
        def in_utc(m):
            return datetime.fromisoformat(m[1]).astimezone(timezone.utc).strftime("'%Y-%m-%d %H:%M:%S.%f'")
        return re.sub(r"'(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[-+]\d\d:\d\d))'", in_utc, sql) if self.on_mariadb else sql

    @property
    def environment(self):
        schema = SCHEMAS.get(self.name) if self.on_postgres else None
        return {"LAPSE_STORE": self.db.dsn + (f"&options=-csearch_path%3D{schema}" if schema else ""), **self.options}

    def lapse(self, contract, *args, **how):
        return super().lapse(contract, *args, env=self.environment, **how)

    def variant(self, *changes):
        """The contract with some lines written otherwise, as a user would."""
        text = self.contract.read_text()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = new_path("variant", ".yaml")
        path.write_text(text)
        return path

    def marked(self, table):
        column = self.marks[table]
        return sorted(r[0] for r in self.db.rows(f'select "{column}" from {table}'))

    def going(self):
        """{table: how many rows are marked to go}"""
        found = {t: sum(m.startswith("go") for m in self.marked(t)) for t, column in self.marks.items() if column}
        return {t: n for t, n in found.items() if n}

    def only_kept(self):
        for table, column in self.marks.items():
            if column:
                wrong = [m for m in self.marked(table) if not m.startswith("keep")]
                self.assertEqual(wrong, [], f"rows of {table} that are still there")

    def has(self, table, mark):
        return self.db.rows(f"select count(*) from {table} where {self.marks[table]} = ?", (mark,)) == [(1,)]

    def page(self, *words):
        """The operators' page, which says how the schedulers and labels were read, has all these."""
        page = self.lapse(self.contract, "contract", code=0).out
        for w in words:
            self.assertIn(w, page)

    def repeat(self, into, select, last):
        self.given(self.timed(f"insert into {into} with recursive s (n) as (select 1 union all select n + 1 from s "
                              f"where n < {last}) select {select} from s"))


class Sample(Ready):
    """What holds for every contract."""
    detached = {}
    without_time = {}   # options that switch off what does not depend on the time
    planned = {}        # where a plan cannot know what the same run will have changed: {table: rows}

    def test_the_sample_is_marked_and_meets_both_fates(self):
        for table, column in self.marks.items():
            for mark in self.marked(table) if column else []:
                self.assertRegex(mark, "^(keep|go)[-:]", table)
        self.assertTrue(self.going())
        self.assertEqual({last_part(t) for t in self.db.tables()}, set(self.marks))

    def test_it_fits_its_schema(self):
        for options in ((), ("--strict",)):
            found = self.check(self.contract, *options, code=0)
            self.assertEqual([f for f in found.json["findings"] if f["level"] != "note"], [], found)

    def test_the_columns_of_both_schemas_are_the_same(self):
        def columns(text):
            return re.findall(r"^(CREATE (?:TABLE|INDEX).*|    \w+)", text, re.M)

        sqlite, postgres = ((self.home / f"schema.{e}.sql").read_text() for e in ("sqlite", "postgresql"))
        self.assertEqual([c for c in columns(sqlite) if c.strip() != "CHECK"], columns(postgres))

    def test_what_is_marked_to_go_goes_and_the_rest_stays_as_it_was(self):
        before, gone = self.db.dump(), self.going()
        planned = self.plan(self.contract)
        self.assertEqual(self.db.dump(), before, "plan wrote something")
        self.assertEqual(self.gone(planned), {**gone, **self.planned}, planned)
        swept = self.swept(self.contract, gone, self.detached, same_plan=False)
        self.assertEqual([p["outcome"] for p in swept.json["policies"]], ["done"] * len(swept.json["policies"]), swept)
        self.only_kept()
        after = self.db.dump()
        for table in before:
            changed = [r for r in after[table] if r not in before[table]]
            self.assertEqual(len(changed), self.detached.get(last_part(table), 0), f"changed rows of {table}")
            self.assertTrue(all("keep-loses-" in str(r) for r in changed), changed)

    def test_before_its_time_nothing_goes(self):
        self.options = self.without_time
        with self.untouched():
            self.assertEqual(self.gone(self.sweep(self.contract, now="2023-12-01T00:00:00Z")), {})

    def test_three_at_once_do_it_once(self):
        gone = self.going()
        running = [Lapse.start(None, self.contract, "sweep", "--json", "--now", NOW, env=self.environment)
                   for _ in range(3)]
        results = [p.wait() for p in running]
        about = "\n".join(map(str, results))
        self.assertEqual([r.code for r in results], [0, 0, 0], about)
        total = {}
        for r in results + [self.sweep(self.contract)]:     # what waited for another's row goes in the next run
            for table, rows in self.gone(r).items():
                total[table] = total.get(table, 0) + rows
        self.assertEqual(total, gone, about)
        self.only_kept()

    def test_only_structured_conditions(self):
        """So that one file serves every engine."""
        text = re.sub(r"#.*", "", self.contract.read_text())
        for key in ("where", "hold", "matching"):
            for value in re.findall(rf"\b{key}:[ \t]*(\S)", text):
                self.assertEqual(value, "{", f"{key} of {self.contract}")


class MetadataTables(Ready):
    """What both forms of the metadata cleanup promise."""
    listed = state = None

    def many(self, rows):
        """Due rows with a queue entry and a log line each."""
        for table in ("dead_letter", "work_queue", "log", "metadata"):
            if table in self.marks:
                self.db.empty(table)
        self.repeat(f"metadata (id, external_id, name, {self.state}, start_time)",
                    f"n, 'go-' || n, '{self.listed}', 'completed', '2024-06-15T10:00:00Z'", rows)
        self.given("insert into work_queue (id, external_id, metadata_id) select id, external_id, id from metadata;"
                   "insert into log (id, metadata_id, message) select id, id, 'go: ' || id from metadata")

    def repeat(self, into, select, last):
        if self.on_postgres:
            select = select.replace("'completed'", f"'completed'::{self.state}") \
                           .replace("'2024-06-15T10:00:00Z'", "timestamptz '2024-06-15T10:00:00Z'")
        super().repeat(into, select, last)

    def test_names_are_added_to_the_list(self):
        wider = self.variant((f"{self.listed},", f"{self.listed}, {self.unlisted}, LegacyName,"))
        self.plan(wider)
        self.sweep(wider)
        self.assertFalse(self.has("metadata", "keep-name-not-on-the-list"))
        self.assertEqual(self.marked("log").count("keep: its metadata is not on the list"), 0)
        for mark in ("keep-pending-at-any-age", "keep-in-progress-at-any-age", "keep-exactly-at-the-cutoff"):
            self.assertTrue(self.has("metadata", mark), mark)

    def test_every_minute_and_at_start_on_any_number_of_servers(self):
        self.page("every minute, also at start", "`metadata` takes no lease")

    def test_another_period_and_interval(self):
        self.options = {"RETENTION_PERIOD": "2h", "CLEANUP_INTERVAL": "5m"}
        self.check(self.contract, code=0)
        self.page("every 5 minutes, also at start")
        self.assertEqual(self.plan(self.contract).policy("metadata")["cutoff"], "2024-06-15T10:00:00Z")
        self.sweep(self.contract)
        self.assertTrue(self.has("metadata", "go-just-before-the-cutoff"))      # of the shorter period
        self.assertFalse(self.has("metadata", "go-completed-long-ago"))

    def test_the_database_s_own_clock_decides_without_now(self):
        swept = self.sweep(self.contract, now=None)
        self.assertEqual(self.marked("metadata").count("keep-exactly-at-the-cutoff"), 0)
        self.assertTrue(self.has("metadata", "keep-pending-at-any-age"))
        self.assertEqual(swept.json["policies"][0]["outcome"], "done")

    def refuse(self, table, condition):
        """A trigger that refuses to delete some rows."""
        if self.on_postgres:
            self.given(f"create function no() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;"
                       f"create trigger no before delete on {table} for each row when ({condition}) execute function no()")
        else:
            self.given(f"create trigger no before delete on {table} for each row when {condition}"
                       f" begin select raise(abort, 'not this one'); end")

    def test_a_failure_midway_leaves_the_row_and_the_next_run_completes(self):
        self.refuse("log", "old.message = 'go: ended'")
        gone, queued = self.going(), self.marked("work_queue")
        swept = self.sweep(self.contract, code=1)
        self.assertEqual(len(swept.policy("metadata")["skipped"]), 1, swept)
        self.assertTrue(self.has("metadata", "go-completed-long-ago"))
        # The documents lose the queue entries here until the next run; lapse keeps a row and what it owns whole.
        self.assertEqual([m for m in self.marked("work_queue") if m.startswith("go")],
                         [m for m in queued if m in ("go-with-its-metadata", "go-too-with-its-metadata")])
        self.assertEqual([m for m in self.marked("log") if m.startswith("go")], ["go: ended", "go: started"])
        self.given(f"drop trigger no {'on log' if self.on_postgres else ''}")
        again = self.sweep(self.contract)
        self.assertEqual(self.gone(again)["metadata"], 1)
        self.assertEqual(self.gone(swept)["metadata"] + 1, gone["metadata"])
        self.only_kept()


@every_engine
class OlderMetadata(MetadataTables, Sample):
    name = "metadata-older"
    listed, unlisted, state = "JobDispatcherWorkflow", "BillingWorkflow", "workflow_state"

    def test_everything_goes_in_one_transaction(self):
        self.many(2500)
        swept = self.sweep(self.contract)
        self.assertEqual(self.gone(swept), {"metadata": 2500, "work_queue": 2500, "log": 2500})
        self.assertEqual(swept.policy("metadata")["batches"], 1)


@every_engine
class Metadata(MetadataTables, Sample):
    name = "metadata"
    detached = {"metadata": 1, "dead_letter": 1}
    listed, unlisted, state = "ManifestManagerTrain", "JobDispatcherTrain", "train_state"

    def test_in_batches_until_no_more_are_left(self):
        for size, batches in ((None, 2), ("400", 5), ("null", 1)):
            with self.subTest(size=size):
                self.many(2000)
                self.options = {"DELETE_BATCH_SIZE": size} if size else {}
                swept = self.sweep(self.contract)
                self.assertEqual(self.gone(swept), {"metadata": 2000, "work_queue": 2000, "log": 2000})
                self.assertGreaterEqual(swept.policy("metadata")["batches"], batches)
                if size == "null":
                    self.assertEqual(swept.policy("metadata")["batches"], 1)

    def test_many_servers_share_the_work(self):
        self.many(3000)
        running = [Lapse.start(None, self.contract, "sweep", "--json", "--now", NOW,
                               env={**self.environment, "DELETE_BATCH_SIZE": "50"}) for _ in range(4)]
        results = [p.wait(120) for p in running]
        self.assertEqual([r.code for r in results], [0] * 4, results)
        self.assertEqual(sum(self.gone(r).get("metadata", 0) for r in results), 3000)
        self.assertEqual(sum(self.gone(r).get("log", 0) for r in results), 3000)
        self.assertEqual(self.ids("metadata") + self.ids("work_queue") + self.ids("log"), [])

    def test_references_are_cleared_only_of_what_went(self):
        self.sweep(self.contract)
        self.assertEqual(self.db.rows("select reason, retry_metadata_id from dead_letter order by id"),
                         [("keep-loses-its-retry", None), ("keep-has-its-retry-still", 8), ("keep-was-never-retried", None)])
        self.assertEqual(self.db.rows("select external_id, parent_id from metadata where id in (15, 16) order by id"),
                         [("keep-loses-its-parent", None), ("keep-has-its-parent-still", 12)])

    def test_a_period_of_its_own_for_a_name(self):
        """MetadataCleanupTrain kept for two hours, the other for half an hour."""
        by_name = self.variant(("    keep: ${RETENTION_PERIOD:-30m}\n",
                                "    keep: { by: name, values: { ManifestManagerTrain: 30m, MetadataCleanupTrain: 2h } }\n"))
        self.check(by_name, code=0)
        self.sweep(by_name)
        self.assertTrue(self.has("metadata", "go-failed"))                      # MetadataCleanupTrain, an hour old
        self.assertTrue(self.has("metadata", "go-by-start-not-by-end"))         # likewise
        self.assertFalse(self.has("metadata", "go-cancelled"))                  # ManifestManagerTrain, an hour old
        self.assertFalse(self.has("metadata", "go-just-before-the-cutoff"))

    def test_a_train_that_comes_back_to_life_survives(self):
        self.db.execute("update metadata set train_state = 'in_progress' where external_id = 'go-completed-long-ago'")
        self.sweep(self.contract)
        self.assertTrue(self.has("metadata", "go-completed-long-ago"))
        self.assertEqual([m for m in self.marked("log") if m.startswith("go")], ["go: ended", "go: started"])


@every_engine
class WorkflowData(Sample):
    name = "workflow-data"

    def test_results_can_be_read_until_the_delay_is_over(self):
        for now, there in (("2024-06-15T12:00:00.000Z", True), ("2024-06-15T12:00:00.001Z", False)):
            self.sweep(self.contract, now=now)
            self.assertEqual(self.has("workflow", "keep-completed-just-after"), there, now)
            outputs = self.db.rows("select count(*) from workflow_kv where instance_id = 'keep-completed-just-after'")
            self.assertEqual(outputs, [(2 if there else 0,)])

    def test_one_delay_for_every_state(self):
        """60 seconds unless said otherwise, whatever the state."""
        self.options = {"KEEP_COMPLETED": "60 seconds", "KEEP_FAILED": "60 seconds", "KEEP_CANCELLED": "60000"}
        self.check(self.contract, code=0)
        self.sweep(self.contract)
        for mark in ("keep-failed-an-hour-ago", "keep-cancelled-just-after"):
            self.assertFalse(self.has("workflow", mark), mark)
        self.assertTrue(self.has("workflow", "keep-completed-just-after"))
        self.assertTrue(self.has("workflow", "keep-started-again"))

    def test_only_some_states(self):
        only = self.variant(("rows: { status: [completed, failed, cancelled] }", "rows: { status: completed }"))
        self.check(only, code=0)
        self.sweep(only)
        self.assertTrue(self.has("workflow", "go-failed-exactly"))
        self.assertTrue(self.has("workflow", "go-cancelled-exactly"))
        self.assertFalse(self.has("workflow", "go-completed-exactly"))

    def test_a_state_without_a_delay_is_kept(self):
        wider = self.variant(("rows: { status: [completed, failed, cancelled] }",
                              "rows: { status: [completed, failed, cancelled, paused] }"))
        self.sweep(wider)
        self.assertTrue(self.has("workflow", "keep-paused-in-its-resume-alarm"))

    def test_started_again_before_its_time(self):
        self.db.execute("update workflow set status = 'running', finished_at = null where id = 'go-completed-exactly'")
        self.sweep(self.contract)
        self.assertTrue(self.has("workflow", "go-completed-exactly"))
        self.assertEqual(self.db.rows("select count(*) from workflow_step where workflow_id = 'go-completed-exactly'"), [(2,)])

    def test_every_form_of_the_purge_options_is_read(self):
        erases = "    erases:\n      - workflow_step(workflow_id)\n      - workflow_kv(instance_id)\n"
        for delay in ("60 seconds", "5 minutes", "60000", "0"):
            self.options = {"PURGE_DELAY": delay}
            self.check(self.contract, code=0)
        self.options = {}
        self.check(self.variant(("    erases:\n", "    only: [completed, failed, cancelled]\n    erases:\n")), code=0)
        self.check(self.variant((erases, "    erases:\n      - workflow_step(workflow_id)\n      - { ref: workflow_kv(instance_id), "
                                         "keep: { key: ['workflow:output', 'workflow:status'] } }\n")), code=0)
        wrong = self.check(self.variant(("    erases:\n", "    only: [completed]\n    erases:\n")), code=2)
        self.assertIn("not in 'only'", wrong.out)
        self.options = {"PURGE_DELAY": "soon"}
        self.check(self.contract, code=2)


@every_engine
class OrphanedTasks(Sample):
    name = "orphaned-tasks"

    def test_the_interval_in_each_of_its_forms(self):
        self.page("every 24 hours")
        for interval, read in (("12h", "every 12 hours"), ("7d", "every 7 days"), ("86400000", "every 24 hours"),
                               ("CRON 0 3 * * *", "0 3 * * *")):
            self.options = {"TASK_CLEANUP_INTERVAL": interval}
            self.check(self.contract, code=0)
            self.page(read)
        self.options = {"TASK_CLEANUP_INTERVAL": "CRON 0 25 * * *"}
        self.check(self.contract, code=2)

    def test_the_documents_own_words_for_the_strategies(self):
        words = self.variant(("delete_when: deleted_or_unmatched", "delete_when: sourceDocumentDeletedOrNoLongerMatching"),
                             ("of: orders(id), by: source_doc_id }", "of: orders(id), by: source_doc_id, "
                                                                    "delete_when: sourceDocumentDeleted }"))
        self.swept(words, self.going())
        self.only_kept()

    def test_the_default_grace_is_a_day(self):
        swept = self.sweep(self.variant(("    age: [updated_at, last_finalized_at]\n    keep: 1h\n",
                                         "    age: [updated_at, last_finalized_at]\n")))
        self.assertEqual(swept.policy("remind-pending-order")["rows"], 0)
        self.assertEqual(swept.policy("sync-order")["rows"], 5)

    def test_a_source_that_comes_back_saves_its_tasks(self):
        self.db.execute("insert into orders (id) values ('o-deleted')")
        self.assertEqual(self.sweep(self.contract).policy("sync-order")["rows"], 0)
        self.assertTrue(self.has("orders_tasks", "go-both-times-old"))

    def test_an_empty_source_is_more_likely_a_mistake(self):
        self.given("delete from orders")
        with self.untouched():
            self.sweep(self.contract, code=3)

    def test_in_batches_of_a_thousand(self):
        self.repeat("orders_tasks (id, task, source_doc_id, status, updated_at)",
                    "'go-' || n, 'sync-order', 'o-deleted', 'completed', "
                    + ("timestamptz " if self.on_postgres else "") + "'2024-06-01T00:00:00Z'", 2500)
        swept = self.sweep(self.contract)
        self.assertEqual(swept.policy("sync-order")["rows"], 2505)
        self.assertGreaterEqual(swept.policy("sync-order")["batches"], 3)
        self.only_kept()


@every_engine
class OperationalTables(Sample):
    name = "operational-tables"
    without_time = {"PRESENCE_MAX_ENTRIES": "1000"}

    def setUp(self):
        super().setUp()
        self.lapse(self.contract, "install", code=0)        # its schedulers are exclusive
        tables = self.db.tables
        self.db.tables = lambda: [t for t in tables() if not last_part(t).startswith("lapse_")]     # the sample's own
        self.addCleanup(delattr, self.db, "tables")

    @property
    def planned(self):      # one completed row waits in the plan for an answer that goes in the same run
        return {"channel_inbox": self.going()["channel_inbox"] - 1}

    def test_names_in_metrics_and_logs_are_the_documents(self):
        tables = {
            "statestore": ("presence_entries", "connections", "channel_inbound_dedupe", "channel_inbox.failed",
                           "channel_inbox.completed", "channel_outbox.failed", "lane_leases", "workspace_leases",
                           "oauth_pending", "oauth_refresh_leases", "models_dev_refresh_leases"),
            "outbox": ("outbox", "outbox_consumers")}
        labels = {p["label"] for p in self.plan(self.contract).json["policies"]}
        self.assertEqual(labels, {t for some in tables.values() for t in some})
        for scheduler, some in tables.items():
            self.page(f"`{scheduler}.lifecycle_pruned`", f"`{scheduler}.lifecycle_tick_failed`",
                      f'lifecycle_tick_errors_total{{scheduler="{scheduler}"}}',
                      f"Scheduler `{scheduler}`, every 5 minutes, not at start, one sweeper in the cluster",
                      *(f'lifecycle_prune_rows_total{{scheduler="{scheduler}",table="{t}"' for t in some))
        self.page("`models_dev_cache` has no policy", "`channel_outbox.sent` has no policy")

    def test_a_completed_message_goes_after_its_answers(self):
        waiting, answer = "keep: an answer of it is still queued", "keep: not sent yet"
        self.sweep(self.contract)
        self.assertTrue(self.has("channel_inbox", waiting))
        self.db.execute("delete from channel_outbox where outbox_id = 2")       # sent: the delivery path deletes it
        self.assertEqual(self.gone(self.sweep(self.contract)), {"channel_inbox": 1})
        self.assertFalse(self.has("channel_inbox", waiting))
        self.assertEqual(self.marked("channel_outbox").count(answer), 1)        # that of another message

    def test_over_two_runs_where_the_message_is_swept_first(self):
        mark = "go: its failed answer goes in the same run"
        self.sweep(self.contract, "channel_inbox.completed")
        self.assertTrue(self.has("channel_inbox", mark))
        self.sweep(self.contract, "channel_outbox.failed")
        self.assertTrue(self.has("channel_inbox", mark))
        self.sweep(self.contract, "channel_inbox.completed")
        self.assertFalse(self.has("channel_inbox", mark))

    def test_a_failed_answer_is_there_through_its_whole_window(self):
        mark = "keep: an answer of it failed and is still in its window"
        self.sweep(self.contract)
        self.assertTrue(self.has("channel_inbox", mark))
        swept = self.sweep(self.contract, now="2024-06-15T12:00:00.001Z")
        self.assertEqual(swept.policy("channel_outbox.failed")["rows"], 1)
        self.assertFalse(self.has("channel_inbox", mark))

    def test_another_terminal_window(self):
        self.options = {"TERMINAL_RETENTION_DAYS": "30"}
        swept = self.plan(self.contract)
        for policy in ("channel_outbox.failed", "channel_inbox.failed", "channel_inbox.completed"):
            self.assertEqual(swept.policy(policy)["cutoff"], "2024-05-16T12:00:00Z")
            self.assertEqual(swept.policy(policy)["rows"], 0)

    def test_one_retention_for_the_outbox_and_its_consumers(self):
        self.options = {"OUTBOX_RETENTION": "1h"}
        swept = self.sweep(self.contract, "outbox", "outbox_consumers")
        self.assertEqual([swept.policy(p)["rows"] for p in ("outbox", "outbox_consumers")], [3, 3])

    def test_another_cap(self):
        self.options = {"PRESENCE_MAX_ENTRIES": "1"}
        self.sweep(self.contract)
        self.assertEqual(self.db.rows("select tenant_id, instance_id from presence_entries order by 1"),
                         [("crowd", "keep-in-the-cap-502"), ("north", "keep-just-alive"), ("south", "keep-alive")])

    def test_an_entry_that_is_refreshed_stays(self):
        self.db.execute("update presence_entries set expires_at_ms = ? where instance_id = 'go-expired-exactly'", (MS + 1,))
        self.sweep(self.contract)
        self.assertTrue(self.has("presence_entries", "go-expired-exactly"))


class Folder(unittest.TestCase):
    def test_every_contract_is_tested_and_complete(self):
        self.assertEqual({p.name for p in HOME.iterdir() if p.is_dir()}, set(MARKS))
        for name in MARKS:
            self.assertEqual({p.name for p in (HOME / name).iterdir()},
                             {"README.md", "lapse.yaml", "schema.sqlite.sql", "schema.postgresql.sql", "schema.mariadb.sql",
                              "data.sql"})
