"""`lapse init`: the draft passes check as it is, is complete when uncommented, and never names what must not go."""
import os
import re
import socket
import subprocess
import time
import unittest
from pathlib import Path

import yaml

from harness import *

# The tables of the systems that lapse was made for, as they would be written on either engine.
OPERATIONAL = """
    create table presence_entries (instance_id text not null primary key, tenant_id text not null,
                                   last_seen_at_ms bigint, expires_at_ms bigint not null);
    create table connections (id text not null primary key, expires_at_ms bigint not null);
    create table channel_inbound_dedupe (id text not null primary key, expires_at_ms bigint not null);
    create table channel_inbox (tenant_id text not null, inbox_id integer not null, status text not null,
                                received_at_ms bigint not null, primary key (tenant_id, inbox_id));
    create table channel_outbox (outbox_id integer primary key, tenant_id text not null, inbox_id integer not null,
                                 status text not null, created_at_ms bigint not null,
                                 foreign key (tenant_id, inbox_id) references channel_inbox (tenant_id, inbox_id));
    create table lane_leases (lane text not null primary key, lease_expires_at_ms bigint not null);
    create table workspace_leases (workspace text not null primary key, lease_expires_at_ms bigint not null);
    create table oauth_pending (state text not null primary key, expires_at text not null);
    create table oauth_refresh_leases (id text not null primary key, lease_expires_at_ms bigint not null);
    create table models_dev_refresh_leases (id text not null primary key, lease_expires_at_ms bigint not null);
    create table models_dev_cache (id integer primary key check (id = 1), fetched_at_ms bigint);
    create table outbox (id integer primary key, topic text, created_at_ms bigint not null);
    create table outbox_consumers (id text not null primary key, updated_at_ms bigint not null);
    create table workflow (id text not null primary key, status text not null, finished_at_ms bigint);
    create table workflow_step (workflow_id text not null references workflow (id) on delete cascade,
                                step integer not null, status text, primary key (workflow_id, step));
    create table metadata (id integer primary key, name text, train_state text, start_time bigint,
                           parent_id integer references metadata (id));
    create table work_queue (id integer primary key, metadata_id integer not null references metadata (id),
                             created_at_ms bigint);
    create table log (id integer primary key, metadata_id integer not null references metadata (id));
    create table dead_letter (id integer primary key, retry_metadata_id integer references metadata (id));
    create table orders (id integer primary key, status text, created_at_ms bigint, session_id integer);
    create table orders_tasks (id integer primary key, task text, source_doc_id integer, updated_at_ms bigint);
"""
PRECIOUS = """
    create table users (id integer primary key, email text, status text, password_expires_at_ms bigint,
                        created_at_ms bigint, updated_at_ms bigint);
    create table payments (id integer primary key, status text, expires_at_ms bigint, completed_at_ms bigint);
    create table audit_log (id integer primary key, created_at_ms bigint, expires_at_ms bigint);
    create table subscriptions (id integer primary key, valid_until_ms bigint, expires_at_ms bigint);
    create table api_keys (id integer primary key, expires_at_ms bigint);
    create table certificates (id integer primary key, expires_at_ms bigint);
    create table jobs (id integer primary key, status text, locked_until_ms bigint, lease_expires_at_ms bigint);
    create table oauth_tokens (id integer primary key, refresh_token text, expires_at_ms bigint);
"""
OLD = MS - 30 * 86_400_000
CERTAIN = {"presence_entries", "connections", "channel_inbound_dedupe", "lane_leases", "workspace_leases",
           "oauth_pending", "oauth_refresh_leases", "models_dev_refresh_leases"}


def uncommented(draft):
    return re.sub(r"^# ", "", draft, flags=re.M)


class Drafts(Case):
    def init(self, *args, code=0, **how):
        r = lapse(None, None, "init", self.db.dsn, *args, **how)
        self.assertEqual(r.code, code, r)
        return r

    def draft(self, clean=True, **how):
        """The draft as {"policies": …, "unbounded": …}, once as it is and once with everything uncommented; it has
        passed check, and nothing was written."""
        with self.untouched():
            r = self.init(**how)
        self.text = r.out
        env = {"LAPSE_STORE": self.db.dsn}
        for text in (r.out, uncommented(r.out)):
            checked = self.check(text, code=0 if clean else None, env=env)
            if text is r.out:
                self.assertEqual(checked.json["errors"], 0, f"{text}\n{checked}")
                self.checked = checked
        live, every = ({k: v or {} for k, v in yaml.safe_load(t.replace("$${", "${")).items()}
                       for t in (r.out, uncommented(r.out)))
        again = self.init("--json", **how).json
        self.assertEqual(r.out, again["draft"], "drafts differ")
        entries = again["tables"]
        self.assertEqual({e["policy"] for e in entries if e["certain"] and e["found"] == "expires"}, set(live["policies"]))
        self.assertEqual({e["policy"] for e in entries if e["found"] in ("expires", "ended", "age")}, set(every["policies"]))
        for e in entries:
            self.assertEqual(e["certain"], e["found"] == "bounded" or not (e["decide"] or e["found"] in ("nothing", "owned")))
        self.live, self.every = live, every
        return live, every


@every_engine
class Seeds(Drafts):
    def setUp(self):
        super().setUp()
        self.given(OPERATIONAL + PRECIOUS)

    def fill(self):
        self.insert("channel_inbox", ("a", 1, "completed", MS), ("a", 2, "failed", MS), ("a", 3, "queued", MS))
        self.insert("channel_outbox", (1, "a", 1, "FAILED", MS), (2, "a", 2, "queued", MS))
        self.insert("oauth_pending", ("s", "2024-06-15T12:00:00Z"))
        self.insert("workflow", ("w", "completed", MS), ("v", "running", None))
        self.insert("workflow_step", ("w", 1, "completed"))
        self.insert("metadata", (1, "A", "completed", S, None), (2, "B", "pending", S, 1))
        self.insert("orders", (1, "completed", MS, None))
        self.insert("users", (1, "a@b", "active", MS, MS, MS), (2, "c@d", "closed", MS, MS, MS))
        self.insert("payments", (1, "completed", MS, MS))

    def test_what_stands(self):
        self.fill()
        live, every = self.draft()
        self.assertEqual(set(live["policies"]), CERTAIN)
        self.assertEqual(live["unbounded"], {"models_dev_cache": "singleton primary key (id = 1)"})
        self.assertEqual(live["policies"]["lane_leases"]["expires"], "lease_expires_at_ms")
        self.assertNotIn("unit", live["policies"]["lane_leases"])
        for p in live["policies"].values():
            self.assertLessEqual(set(p), {"table", "expires", "where"})

    def test_what_is_drafted(self):
        self.fill()
        _, every = self.draft()
        p = every["policies"]
        self.assertEqual(p["channel_inbox"]["rows"], {"status": ["completed", "failed"]})
        self.assertEqual(p["channel_inbox"]["age"], "received_at_ms")
        self.assertEqual(p["channel_inbox"]["after"], ["channel_outbox(tenant_id, inbox_id)"])
        self.assertEqual(p["channel_outbox"]["rows"], {"status": ["FAILED"]})
        self.assertEqual(p["workflow"]["with"], ["workflow_step(workflow_id)"])
        self.assertNotIn("workflow_step", p)
        self.assertEqual(p["metadata"]["rows"], {"train_state": ["completed"]})
        self.assertEqual((p["metadata"]["age"], p["metadata"]["unit"]), ("start_time", "s"))
        self.assertEqual(p["metadata"]["with"], ["log(metadata_id)"])
        self.assertEqual(p["metadata"]["after"], ["work_queue(metadata_id)"])
        self.assertEqual(p["metadata"]["detach"], ["dead_letter(retry_metadata_id)", "metadata(parent_id)"])
        self.assertEqual(p["outbox_consumers"]["age"], "updated_at_ms")
        for name, policy in p.items():
            if "expires" not in policy:
                self.assertEqual(policy["keep"], "never", name)
        self.assertIn("completed 1, failed 1, queued 1", self.text)

    def test_sessions_by_their_last_use(self):
        self.given("""create table web_sessions (id integer primary key, lastaccess bigint);
            create table mdl_sessions (id integer primary key, timecreated bigint, timemodified bigint);
            create table upload_tokens (id integer primary key, created_at_ms bigint);
            create table history_uint (id integer primary key, clock bigint)""")
        self.insert("web_sessions", (1, S))
        self.insert("mdl_sessions", (1, S, S))
        self.insert("upload_tokens", (1, MS))
        self.insert("history_uint", (1, S))
        live, every = self.draft()
        age = {name: p.get("age") for name, p in every["policies"].items()}
        self.assertEqual((age["web_sessions"], age["mdl_sessions"], age["history_uint"]),
                         ("lastaccess", "timemodified", "clock"))
        self.assertNotIn("upload_tokens", every["policies"])    # when they began does not say that they are over
        self.assertEqual({"web_sessions", "mdl_sessions"} & set(live["policies"]), set())

    def test_nothing_goes_that_must_not(self):
        self.fill()
        live, every = self.draft()
        standing = "\n".join(l for l in self.text.splitlines() if not l.lstrip().startswith("#"))
        for table in ("users", "orders", "payments", "audit_log", "subscriptions", "api_keys", "certificates", "jobs",
                      "oauth_tokens", "work_queue"):
            self.assertNotRegex(standing, rf"\b{table}\b", self.text)
        self.assertNotIn("locked_until_ms", uncommented(standing))
        self.assertNotIn("expires", every["policies"].get("users", {}))     # a password's end is not a user's
        self.assertNotIn("expires", every["policies"].get("jobs", {}))
        self.swept(self.text, gone={"oauth_pending": 1})        # all that has expired and comes and goes

    def test_empty_tables(self):
        live, every = self.draft()
        self.assertEqual(set(live["policies"]), CERTAIN - {"oauth_pending"})    # its texts: no row says what they are
        self.assertIn("oauth_pending", every["policies"])
        self.assertNotIn("workflow", every["policies"])                         # no state is known


@every_engine
class Certainty(Drafts):
    def certain(self, table, columns, *rows, sql=""):
        self.given(f"create table {table} (id integer primary key, {columns}); {sql}")
        if rows:
            self.insert(f"{table}", *rows)
        live, _ = self.draft()
        return table in live["policies"]

    def test_units_from_values(self):
        for n, (value, unit) in enumerate([(S, "s"), (MS, "ms"), (US, "us")]):
            self.assertTrue(self.certain(f"sessions_{n}", "expires_at bigint", (1, value)))
            self.assertEqual(self.live["policies"][f"sessions_{n}"]["unit"], unit)

    def test_units_that_nobody_says(self):
        self.assertFalse(self.certain("sessions", "expires_at bigint"))
        self.assertIn("in which unit expires_at counts", self.text)

    def test_a_name_that_lies(self):
        self.assertFalse(self.certain("sessions", "expires_at_ms bigint", (1, S)))
        self.assertEqual(self.every["policies"]["sessions"]["unit"], "s")

    def test_mixed_units(self):
        self.assertFalse(self.certain("sessions", "expires_at bigint", (1, S), (2, MS)))

    def test_numbers_that_are_no_times(self):
        self.given("create table sessions (id integer primary key, expires_at bigint)")
        self.insert("sessions", (1, 3), (2, 4))
        live, every = self.draft()
        self.assertNotIn("sessions", every["policies"])
        self.assertIn("expires_at holds no times", self.text)

    def test_zero_means_never(self):
        self.assertTrue(self.certain("sessions", "expires_at_ms bigint", (1, 0), (2, MS)))
        self.assertEqual(self.gone(self.sweep(self.text)), {"sessions": 1})
        self.left("sessions", 1)

    def test_texts(self):
        for n, (texts, certain) in enumerate([
                (["2024-06-15T12:00:00Z", "2024-06-15 12:00:00.5+02:00"], True),
                (["2024-06-15 12:00:00"], False), (["2024-06-15T12:00:00Z", "2024-06-15 12:00:00"], False),
                (["2024-06-15T12:00:00Z", "soon"], False)]):
            self.assertEqual(self.certain(f"sessions_{n}", "expires_at text", *enumerate(texts)), certain, texts)

    def test_what_points_at_it(self):
        self.given("""
            create table sessions (id integer primary key, expires_at_ms bigint);
            create table session_tokens (id integer primary key, session_id integer not null references sessions (id)
                                         on delete cascade);
            create table page_cache (id integer primary key, session_id integer references sessions (id)
                                     on delete set null)""")
        live, _ = self.draft()
        self.assertEqual(live["policies"]["sessions"]["with"], ["session_tokens(session_id)"])
        self.assertEqual(live["policies"]["sessions"]["detach"], ["page_cache(session_id)"])
        self.given("create table orders (id integer primary key, session_id integer references sessions (id) "
                   "on delete cascade)")
        live, every = self.draft()
        self.assertEqual(live["policies"], {})
        self.assertIn("orders(session_id)", every["policies"]["sessions"]["with"])

    def test_deep_and_round(self):
        self.given("""
            create table a_locks (id integer primary key, expires_at_ms bigint);
            create table b_locks (id integer primary key, a_id integer not null references a_locks (id) on delete cascade);
            create table c_locks (id integer primary key, b_id integer not null references b_locks (id) on delete cascade,
                                  up integer references c_locks (id) on delete set null);
            create table d_locks (id integer primary key, c_id integer not null, a_id integer,
                                  foreign key (c_id) references c_locks (id) on delete cascade,
                                  foreign key (a_id) references a_locks (id) on delete set null)""")
        live, every = self.draft()
        self.assertIn("a_locks", every["policies"])
        self.assertIn("ref: b_locks(a_id)", self.text)

    def test_schema_says_no_key(self):
        self.given("create table sessions (token text, expires_at_ms bigint)")
        live, every = self.draft(clean=False)
        self.assertEqual(live["policies"], {})
        self.assertRegex(self.text, "decide: check says: .*key")


@every_engine
class HandedOn(Drafts):
    """What was never delivered is not over, however old it is."""

    @property
    def flag(self):
        return "bit(1)" if self.engine == "mariadb" else "boolean"

    def drafted(self, name, columns, *rows):
        self.given(f"create table {name} (id integer primary key, {columns})")
        if rows:
            self.insert(name, *rows)
        _, every = self.draft()
        return every["policies"].get(name)

    def test_a_time(self):
        p = self.drafted("outbox", "topic text, created_at_ms bigint, published_at_ms bigint",
                         (1, "a", OLD, OLD), (2, "b", OLD, None), (3, "c", OLD, 0))
        self.assertEqual((p["age"], p["where"]), ("published_at_ms", {"published_at_ms": {"gt": 0}}))
        draft = uncommented(self.text).replace("keep: never", "keep: 1d")
        self.assertEqual(self.gone(self.sweep(draft)), {"outbox": 1})
        self.left("outbox", 2, 3)

    def test_a_flag_and_another_time(self):
        p = self.drafted("email_queue", f"created_at_ms bigint, dispatched {self.flag}, delivered_at_ms bigint")
        self.assertEqual(p["age"], "delivered_at_ms")
        self.assertEqual(p["where"], {"dispatched": True, "delivered_at_ms": {"gt": 0}})
        p = self.drafted("events_outbox", "created_at_ms bigint, sent integer", (1, OLD, 0), (2, OLD, 1))
        self.assertEqual((p["age"], p["where"]), ("created_at_ms", {"sent": 1}))
        draft = re.sub("keep: never", "keep: 1d", uncommented(self.text))
        self.assertEqual(self.gone(self.sweep(draft)), {"events_outbox": 1})
        self.left("events_outbox", 1)

    def test_a_number_without_rows_may_be_a_flag(self):
        p = self.drafted("msg_queue", "created_at_ms bigint, dispatched integer not null default 0")
        self.assertEqual((p["age"], p["where"]), ("created_at_ms", {"dispatched": 1}))

    def test_a_state_without_values(self):
        p = self.drafted("email_queue", "status varchar(20), created_at_ms bigint, delivered_at_ms bigint")
        self.assertEqual((p["age"], p["where"]), ("delivered_at_ms", {"delivered_at_ms": {"gt": 0}}))

    def test_nothing_says_it(self):
        self.assertEqual(self.drafted("outbox", "created_at_ms bigint")["age"], "created_at_ms")
        self.assertIn("decide: which rows are done with", self.text)

    def test_with_a_state(self):
        p = self.drafted("inbox", "status text, created_at_ms bigint, processed_at_ms bigint", (1, "done", MS, None))
        self.assertEqual(p["rows"], {"status": ["done"]})
        self.assertEqual((p["age"], p["where"]), ("processed_at_ms", {"processed_at_ms": {"gt": 0}}))


@every_engine
class Names(Drafts):
    def age_of(self, table, *columns):
        self.given(f"create table {table} (id integer primary key, " + ", ".join(f"{c} bigint" for c in columns) + ")")
        self.insert(table, (1, *[S] * len(columns)))
        _, every = self.draft()
        return every["policies"].get(table, {}).get("age")

    def test_times(self):
        for table, columns in [("audit_log", ["at"]), ("domain_events", ["happened_at"]), ("mailqueue", ["receivedat"]),
                               ("radacct", ["acctstoptime", "acctstarttime"]), ("radpostauth", ["authdate"]),
                               ("problem_events", ["clock"]), ("visits", ["lastaccess"]), ("sync_log", ["changed"]),
                               ("http_log", ["request_time"])]:
            self.assertEqual(self.age_of(table, *columns), columns[0], table)

    def test_what_is_set_up(self):
        self.given("""create table queues (name varchar(40) not null primary key, created_at_ms bigint, updated_at_ms bigint);
                      create table radippool (id integer primary key, expiry_time bigint, updated_at_ms bigint);
                      create table outboxes (id integer primary key, queue_name varchar(40), created_at_ms bigint);
                      create table work_queue (id integer primary key, name text, created_at_ms bigint)""")
        self.insert("radippool", (1, S, MS))
        _, every = self.draft()
        self.assertEqual(set(every["policies"]), {"work_queue"})
        self.assertIn("its key is name: its rows are queues, not what waits in them", self.text)
        self.assertIn("its queue's name is queue_name: its rows are queues", self.text)
        self.assertIn("its name says that it is a pool", self.text)

    def test_soft_deletes(self):
        flag = "bit(1)" if self.engine == "mariadb" else "boolean"
        self.given(f"""create table notes (id integer primary key, deleted {flag}, deleted_at_ms bigint);
                       create table cards (id integer primary key, del integer, updated_at_ms bigint);
                       create table sessions (id integer primary key, expires_at_ms bigint, deleted_at_ms bigint)""")
        self.insert("cards", (1, 0, OLD), (2, 1, OLD))
        _, every = self.draft()
        p = every["policies"]
        self.assertEqual((p["notes"]["age"], p["notes"]["where"]),
                         ("deleted_at_ms", {"deleted": True, "deleted_at_ms": {"gt": 0}}))
        self.assertEqual((p["cards"]["age"], p["cards"]["where"]), ("updated_at_ms", {"del": 1}))
        self.assertEqual(p["sessions.deleted"]["age"], "deleted_at_ms")
        draft = re.sub("keep: never", "keep: 1d", uncommented(self.text))
        self.assertEqual(self.gone(self.sweep(draft)), {"cards": 1})
        self.left("cards", 1)


@every_engine
class Files(Drafts):
    def test_an_empty_database(self):
        live, every = self.draft()
        self.assertEqual((live["policies"], live["unbounded"]), ({}, {}))
        self.finding(self.checked, "warning", "no policies")
        self.assertIn("no policies", self.lapse(self.text, "sweep", code=0).said)

    def test_only_own_tables(self):
        self.given("create table lapse_run (id integer primary key, state text, finished_at bigint)")
        live, every = self.draft()
        self.assertNotIn("lapse_run", self.text)

    def test_into_a_file(self):
        self.given("create table sessions (id integer primary key, expires_at_ms bigint)")
        path = new_path("draft", ".yaml")
        r = self.init("-o", path)
        self.assertEqual(r.said, "")
        self.assertEqual(path.read_text(), self.init().out)
        self.check(path, code=0)
        before = path.read_bytes()
        r = self.init("--output", path, code=2)
        self.assertIn("not overwritten", r.err)
        self.assertEqual(path.read_bytes(), before)
        r = self.init("-o", "/nowhere/x.yaml", code=1)
        self.assertIn("/nowhere/x.yaml", r.err)
        dangling = new_path("link")
        os.symlink("/nowhere/else", dangling)
        self.init("-o", dangling, code=2)

    def test_bad_calls(self):
        for args, words in ([(), "needs one database"], [("a", "b"), "needs one database"],
                            [("nowhere",), "scheme"], [("oracle://x/y",), "scheme"]):
            r = lapse(None, None, "init", *args)
            self.assertEqual(r.code, 2, r)
            self.assertIn(words, r.err)
        for dsn in ("sqlite:/nowhere/x", "postgresql:///x?host=/nowhere"):
            path = new_path("draft", ".yaml")
            r = lapse(None, None, "init", dsn, "-o", path)
            self.assertEqual((r.code, path.exists()), (5, False), r)
            self.assertEqual(lapse(None, None, "init", dsn, "--json").json["exit"], 5)

    def test_odd_names(self):
        names = ['My.Lock', 'a ""quoted"" lock', "true", "${HOME} lock", "žluť lock", "- lock", "#lock", "lock: x",
                 "it's a lock", "select", "(lock)", "a, lock", "tab\tlock", "line\nlock:\n    table: users", "*"]
        for name in names:
            self.given(f'create table "{name}" ("Id, it" integer primary key, "Expires.At_ms" bigint, "x: y" integer'
                       + (f' references "{names[0]}" ("Id, it"))' if name.isprintable() else ")"))
        live, every = self.draft(clean=False)
        self.assertEqual(len([p for p in every["policies"].values() if p.get("expires") == "Expires.At_ms"]),
                         len(names) - 2)
        self.assertNotIn("\nlock", self.text)
        self.assertIn("a contract cannot name it", self.text)
        r = self.check(uncommented(self.text), code=0)
        self.assertEqual(r.json["errors"], 0)

    def test_values_that_are_yaml(self):
        self.given("create table jobs (id integer primary key, status text, updated_at_ms bigint)")
        odd = ["Timed Out", "done\n", "'failed'", "SENT!", "dead: letter", "no", "x\ninjected: true"]
        self.insert("jobs", *[(n, v, MS) for n, v in enumerate(odd)])
        _, every = self.draft()
        self.assertEqual(set(every["policies"]["jobs"]["rows"]["status"]), {"Timed Out", "'failed'", "SENT!"})
        self.assertNotIn("\ninjected", self.text)

    def test_many_values_are_no_state(self):
        self.given(f"create table jobs (id integer primary key, state {self.long_text}, updated_at_ms bigint)")
        self.insert("jobs", *[(n, f"private {n} " + "x" * 10000, MS) for n in range(100)])
        self.draft()
        self.assertNotIn("private", self.text)
        self.assertIn("too many different values", self.text)

    def test_many_tables(self):
        self.given(";".join(
            f"create table sessions_{n} (id integer primary key, expires_at_ms bigint);"
            f"create table t{n} (id integer primary key, status text, updated_at_ms bigint"
            + (f", up integer references t{n - 1} (id))" if n else ")") for n in range(150)))
        start = time.monotonic()
        r = self.init()
        took = time.monotonic() - start
        self.assertEqual(r.out.count("\n    expires: expires_at_ms"), 150)
        self.assertLess(took, 60, "300 tables")
        self.assertEqual(self.check(r.out, code=0).json["errors"], 0)

    def test_a_large_table(self):
        self.given("create table jobs (id integer primary key, updated_at_ms bigint, status text)")
        self.given(f"insert into jobs select n, {MS}, case when n = 300000 then 'revoked' else 'active' end "
                   f"from ({self.series(300000)}) s")
        start = time.monotonic()
        self.init()
        self.assertLess(time.monotonic() - start, 15)
        self.assertIn("in the 2000 rows looked at: active 1999, revoked 1", self.init().out)     # both ends


class ProcessList(unittest.TestCase):
    def test_the_password_is_not_in_it(self):
        with socket.socket() as mute:       # a server that never answers
            mute.bind(("127.0.0.1", 0))
            mute.listen()
            dsn = f"postgresql://u:s3cret@127.0.0.1:{mute.getsockname()[1]}/db?password=s3cret"
            p = subprocess.Popen([program(), "init", dsn], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            mute.settimeout(20)
            with mute.accept()[0]:
                shown = Path(f"/proc/{p.pid}/cmdline").read_bytes()
        self.assertIn(b"\0init\0postgresql://***", shown)
        self.assertNotIn(b"s3cret", shown)


class OnPostgres(Drafts, PostgresTest):
    def test_types(self):
        self.given("""
            create type state as enum ('Queued', 'DONE', 'dead');
            create table app_sessions (id int primary key, expires_at timestamptz);
            create table b_sessions (id int primary key, expires_at timestamp);
            create table c_sessions (id int primary key, expires_at date);
            create table d_sessions (id int primary key, expires_at float8);
            create table jobs (id int primary key, status state, finished_at timestamptz)""")
        live, every = self.draft()
        self.assertEqual(set(live["policies"]), {"app_sessions"})
        self.assertEqual(every["policies"]["b_sessions"]["zone"], "UTC")
        self.assertNotIn("d_sessions", every["policies"])
        self.assertEqual(every["policies"]["jobs"]["rows"], {"status": ["DONE", "dead"]})

    def test_schemas(self):
        self.given("""
            create schema "Odd.One"; create schema other;
            create table sessions (id int primary key, expires_at timestamptz);
            create table other.sessions (id int primary key, expires_at timestamptz);
            create table "Odd.One"."Sessions" (id int primary key, expires_at timestamptz);
            create view other.v_sessions as table sessions;
            create table partition_sessions (id int, expires_at timestamptz, primary key (id)) partition by range (id);
            create table partition_sessions_1 partition of partition_sessions for values from (1) to (2)""")
        live, _ = self.draft()
        tables = {p["table"] for p in live["policies"].values()}
        self.assertEqual(tables, {"sessions", "other.sessions", '"Odd.One".Sessions', "partition_sessions"})
        self.assertNotIn("partition_sessions_1", self.text)
        self.assertNotIn("v_sessions", self.text)

    def test_partitions_stand_for_their_parent(self):
        self.given("""
            create table app_sessions (id int primary key, expires_at timestamptz);
            create table app_session_event (at timestamptz not null, session_id int not null references app_sessions (id)
                                            on delete cascade) partition by range (at);
            create table app_session_event_1 partition of app_session_event for values from ('2024-01-01') to ('2025-01-01');
            create table app_session_event_2 partition of app_session_event default""")
        _, every = self.draft(clean=False)
        self.assertEqual(every["policies"]["app_sessions"]["with"], ["app_session_event(session_id)"])
        self.assertNotIn("app_session_event_", self.text.replace("app_session_event_session_id_fkey", ""))

    def test_no_privileges(self):
        self.given("""
            create table sessions (id int primary key, expires_at timestamptz);
            create table locks (id int primary key, expires_at timestamptz);
            create table leases (id int primary key, expires_at timestamptz);
            alter table leases enable row level security;
            grant select on locks, leases to guarded; grant usage on schema public to guarded""")
        dsn = re.sub(r"user=[^&]*", "", self.db.dsn)
        dsn += ("&" if "?" in dsn else "?") + f"user=guarded&password={Postgres.PASSWORD}"
        r = lapse(None, None, "init", dsn)
        self.assertEqual(r.code, 0, r)
        self.assertNotIn(Postgres.PASSWORD, r.said)
        self.assertIn("store: ${LAPSE_STORE}", r.out)
        self.assertEqual(yaml.safe_load(r.out)["policies"], None)
        self.assertIn("may not be read", r.out)
        self.assertIn("row security hides rows", r.out)
        self.assertRegex(r.out, "decide: check says: .*locks")
        checked = self.check(r.out, env={"LAPSE_STORE": dsn}, code=0)
        self.assertEqual(checked.json["errors"], 0)

    def test_a_locked_table(self):
        self.given("create table sessions (id int primary key, expires_at_ms bigint); "
                   "create table locks (id int primary key, expires_at_ms bigint)")
        with self.db.connect() as c:
            c.autocommit = False
            c.cursor().execute("lock table sessions")
            start = time.monotonic()
            r = lapse(None, None, "init", self.db.dsn)
            self.assertLess(time.monotonic() - start, 20)
            c.rollback()
        self.assertEqual(r.code, 0, r)
        self.assertEqual(set(yaml.safe_load(r.out)["policies"]), {"locks"})
        self.assertIn("could not be looked at", r.out)


class OnSqlite(Drafts, SqliteTest):
    def test_what_is_no_table(self):
        self.given("create virtual table f using fts5(status, expires_at); create view v as select 1 as expires_at; "
                   "create temp table sessions (id integer primary key, expires_at_ms)")
        live, every = self.draft(clean=False)
        self.assertEqual((live["policies"], every["policies"]), ({}, {}))

    def test_names_that_are_not_utf8(self):
        c = self.db.connection
        c.execute("pragma writable_schema = on")
        self.given("create table tmp_sessions (id integer primary key, expires_at_ms bigint)")
        c.execute("update sqlite_schema set name = cast(x'ff5f73657373696f6e73' as text), tbl_name = "
                  "cast(x'ff5f73657373696f6e73' as text), sql = cast(cast('create table \"' as blob) || "
                  "x'ff5f73657373696f6e73' || cast('\" (id integer primary key, expires_at_ms bigint)' as blob) as text)")
        self.db.close()
        r = self.init()
        self.assertIn("a contract cannot name it", r.out)
        self.assertEqual(yaml.safe_load(r.out)["policies"], None)

    def test_column_without_type(self):
        self.given("create table sessions (id integer primary key, expires_at)")
        self.insert("sessions", (1, MS))
        live, _ = self.draft()
        self.assertEqual(live["policies"]["sessions"]["unit"], "ms")
