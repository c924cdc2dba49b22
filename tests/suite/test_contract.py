"""Mistakes in the contract: each as file:line:column with what was read and what is allowed, all at once, exit 2."""
from harness import *


class Mistakes(Case, SqliteTest):
    def setUp(self):
        super().setUp()
        self.given("create table t (id integer primary key, state text, at_ms integer)")
        self.insert("t", (1, "a", 0))

    def mistake(self, contract, *words, at=None):
        with self.untouched():
            r = self.lapse(contract, "sweep", "--now", NOW, code=2)
        self.assertRegex(r.said, r"lapse\.yaml:\d+:\d+")
        for w in words:
            self.assertIn(w.lower(), r.said.lower(), r)
        if at:
            self.assertIn(f"lapse.yaml:{at}", r.said)
        return r

    def policy(self, body, *words):
        return self.mistake(f"policies: {{t: {{table: t, {body}}}}}", *words)

    def test_an_unknown_key(self):
        self.mistake("polices: {}", "polices", "policies", at="2:1")
        self.policy("expire: at_ms", "expire", "expires")
        self.policy("expires: at_ms, dtach: []", "dtach", "detach")
        self.mistake("schedulers: {a: {evry: 1m}}", "evry", "every")
        self.policy("expires: at_ms, with: [{ref: c(id), wher: {a: 1}}]", "wher", "where")

    def test_a_key_that_is_nothing_like_any(self):
        r = self.policy("expires: at_ms, zzzzqqq: 1", "zzzzqqq")
        self.assertNotIn("did you mean", r.said.lower())

    def test_the_place(self):
        self.mistake("policies:\n  t:\n    table: t\n    expires: at_ms\n    battch: 5\n", "battch", "batch", at="6:5")

    def test_all_at_once(self):
        r = self.mistake("""
            lapse: 7
            policies:
              a: { tabel: t, expires: at_ms }
              b: { table: t, age: at_ms, keep: 5 parsecs }
              c: { table: t, expires: at_ms, batch: many }
            schedulers:
              s: { cron: "99 * * * *" }
            """, "tabel", "parsecs", "many", "99")
        places = {line for line in r.said.split() if line.startswith("lapse.yaml:") or "/lapse.yaml:" in line}
        self.assertGreaterEqual(len(places), 4, r)

    def test_wrong_types(self):
        for body in ("expires: [at_ms]", "expires: {a: b}", "expires: at_ms, rows: state", "expires: at_ms, rows: [state]",
                     "expires: at_ms, batch: -1", "expires: at_ms, batch: 0", "expires: at_ms, batch: 1.5", "expires: at_ms, batch: x",
                     "expires: at_ms, enabled: maybe", "age: at_ms, keep: 1h, inclusive: 5", "age: {a: b}, keep: 1h",
                     "age: [], keep: 1h", "expires: at_ms, with: {c: id}", "expires: at_ms, with: [5]",
                     "expires: at_ms, label: [x]", "expires: at_ms, unit: minutes", "expires: at_ms, timeouts: 5",
                     "expires: at_ms, where: 5", "expires: at_ms, where: []", "expires: at_ms, timeouts: {lock: -1s}",
                     "expires: at_ms, workers: 0", "expires: at_ms, limits: {fraction: 2}"):
            with self.subTest(body):
                self.policy(body)
        for text in ("policies: []", "policies: 5", "policies: {t: 5}", "policies: {t: [a]}", "schedulers: []", "lapse: x",
                     "lapse: 2", "unbounded: [a]", "purges: []"):
            with self.subTest(text):
                self.mistake(text)

    def test_durations(self):
        for keep in ("'5'", "5 parsecs", "-1h", "1h 5", "'+1h'", "1 month", "2 years", "99999999999999999999d", "1h foo", "''",
                     "1.2.3h", "h", "never 1h", "[1h]", "{}", "-5", "1y", "1mo", "0", "0s", "1,5h", "~", "0x10", "1e3", "6M", "1h 30M"):
            with self.subTest(keep):
                self.policy(f"age: at_ms, keep: {keep}")

    def test_keep_zero_must_be_written_now(self):
        self.policy("age: at_ms, keep: 0", "now")

    def test_good_durations(self):
        for keep in ("1h30m", "60 seconds", "1.5h", "86400000", "60000", "500ms", "2W", "1 Day", "90 min", "250ms", "3hrs", "never", "now", "1d 2h 3m 4s 5ms"):
            with self.subTest(keep):
                self.plan(f"policies: {{t: {{table: t, age: at_ms, keep: {keep}}}}}")

    def test_a_number_that_deletes_everything_is_refused_with_what_it_means(self):
        """Where it says how long rows are kept; a purge's delay may be any number of milliseconds."""
        for keep, means, instead in (("30", "30 milliseconds", "30d"), ("86400", "1 minute 26 seconds 400 milliseconds", "1d"),
                                     ("2592000", "43 minutes 12 seconds", "30d")):
            for where in ("age: at_ms, keep: %s", "age: at_ms, keep: {by: state, values: {a: %s}}",
                          "age: at_ms, keep: {by: state, values: {a: 1d}, otherwise: %s}",
                          "expires: at_ms, where: {at_ms: {older_than: %s}}", "expires: at_ms, hold: {at_ms: {newer_than: %s}}"):
                with self.subTest(keep=keep, where=where):
                    self.policy(where % keep, f"{keep} is {means}", f"write {instead}")
        self.plan("policies: {t: {table: t, age: at_ms, keep: 86400000}}\n"
                  "purges: {wf: {delay: 30, retention: {failed: 86400}, erases: [t(id)]}}")

    def test_bounds(self):
        self.policy("label: x", "expires")
        self.policy("expires: at_ms, age: at_ms, keep: 1h")
        self.policy("age: at_ms", "keep")
        self.policy("keep: 1h", "age")
        self.policy("expires: at_ms, keep: 1h")
        self.policy("expires: at_ms, cap: {rows: 5, newest: [at_ms]}")
        self.policy("expires: at_ms, inclusive: true")
        self.policy("expires: at_ms, keep_newest: {rows: 1, newest: [at_ms]}")
        self.mistake("policies: {t: {expires: at_ms}}", "table")

    def test_keep_maps(self):
        for keep in ("{by: state}", "{values: {a: 1h}}", "{by: state, values: {}}", "{by: state, values: {a: x}}",
                     "{by: state, values: [a]}", "{column: ttl, by: state, values: {a: 1h}}", "{by: state, values: {a: 1h}, unit: s}",
                     "{column: ttl, unit: parsecs}", "{column: [ttl]}", "{by: state, values: {a: 0}}", "{by: state, values: {a: 1h}, other: 1h}"):
            with self.subTest(keep):
                self.policy(f"age: at_ms, keep: {keep}")

    def test_references(self):
        for ref in ("c", "c()", "c(a", "c(a))", "(a)", "c(a,)", "c(a) -> b", "c(a) -> ()", "'c(a) -> (b, c)'", "'c(a, b) -> (c)'",
                    "''", "a.b.c(d)", "'c(a) x'", "'c(a, a)'", "'\"c(a)'"):
            with self.subTest(ref):
                self.policy(f"expires: at_ms, with: [{ref if ref[0] in chr(39) else chr(39) + ref + chr(39)}]")

    def test_table_names(self):
        for name in ("''", "a.b.c", "'a.'", "'.a'", "'\"a'", "'a b'", "[t]", "~", "'\"\"'"):
            with self.subTest(name):
                with self.untouched():
                    r = self.lapse(f"policies: {{p: {{table: {name}, expires: at_ms}}}}", "sweep", "--now", NOW)
                # a blank in a bare name may be taken as written: then there is no such table
                self.assertIn(r.code, (2, 3) if name in ("'a b'",) else (2,), r)

    def test_conditions(self):
        for where in ("{state: {nope: 1}}", "{state: {older_than: x}}", "{state: {older_than: 5 parsecs}}", "{any: {state: a}}", "{any: []}",
                      "{state: {lt: [1, 2]}}", "{state: {lt: null}}", "{state: {like: [a]}}", "{state: {}}", "{state: []}", "{}", "''",
                      "{state: {like: null}}", "{any: [5]}"):
            with self.subTest(where):
                self.policy(f"expires: at_ms, where: {where}")

    def test_a_prefix_only_in_rows(self):
        # in a condition a star is a star
        self.insert("t", (2, "a*", 0), (3, "ab", 0))
        self.sweep("policies: {t: {table: t, expires: at_ms, where: {state: 'a*'}}}")
        self.left("t", 1, 3)

    def test_empty_rows(self):
        self.policy("expires: at_ms, rows: {}")
        self.policy("expires: at_ms, rows: {state: []}")
        self.policy("expires: at_ms, rows: {state: {eq: a}}")

    def test_schedulers(self):
        for body in ("{}", "{every: 1m, cron: '* * * * *'}", "{every: never}", "{every: 0}", "{every: -5m}", "{cron: '* * *'}",
                     "{cron: '61 * * * *'}", "{cron: '0 0 30 2 *'}", "{cron: ''}", "{cron: '* * * * * * *'}", "{cron: '@fortnightly'}",
                     "{every: 1m, timezone: Mars/Olympus}", "{every: 1m, window: '25:00-06:00'}", "{every: 1m, window: x}",
                     "{every: 1m, jitter: x}", "{every: 1m, budget: {rows: -1}}", "{every: 1m, budget: {minutes: 1}}",
                     "{every: 1m, run_on_start: perhaps}", "{every: 1m, lease: 0}"):
            with self.subTest(body):
                self.mistake(f"schedulers: {{s: {body}}}\npolicies: {{t: {{scheduler: s, table: t, expires: at_ms}}}}")

    def test_cron_inside_every(self):
        self.plan("schedulers: {s: {every: 'cron 0 3 * * *'}}\npolicies: {t: {table: t, expires: at_ms}}")

    def test_good_crons(self):
        for cron in ("0 3 * * *", "*/5 * * * * *", "0 0 1,15 * MON-FRI", "0 0 L * ?", "0 9 * * MON#1", "@daily", "CRON 0 3 * * 7"):
            with self.subTest(cron):
                self.plan(f"schedulers: {{s: {{cron: '{cron}'}}}}\npolicies: {{t: {{table: t, expires: at_ms}}}}")

    def test_an_unknown_scheduler(self):
        self.mistake("schedulers: {fast: {every: 1m}, slow: {every: 1h}}\npolicies: {t: {scheduler: fst, table: t, expires: at_ms}}",
                     "fst", "fast")

    def test_the_default_scheduler(self):
        self.plan("schedulers: {fast: {every: 1m}, slow: {every: 1h}}\npolicies: {t: {table: t, expires: at_ms}}")
        self.plan("policies: {t: {scheduler: default, table: t, expires: at_ms}}")
        self.plan("schedulers: {default: {every: 1m}, slow: {every: 1h}}\npolicies: {t: {table: t, expires: at_ms}}")

    def test_purges(self):
        for body in ("{}", "{erases: []}", "{erases: [x]}", "{erases: [t(id)], delay: x}", "{erases: [t(id)], only: completed}",
                     "{erases: [t(id)], retention: 5}", "{erases: [{ref: t(id), keep: 5}]}", "{erases: [t(id)], laebl: x}"):
            with self.subTest(body):
                if body == "{erases: [t(id)], only: completed}":
                    continue        # a single value may stand for a list of one
                self.mistake(f"purges: {{w: {body}}}\npolicies: {{t: {{table: t, expires: at_ms}}}}")

    def test_orphans_and_caps(self):
        for body in ("orphan: {of: u(id)}, age: at_ms", "orphan: {by: id}, age: at_ms", "orphan: {of: u, by: id}, age: at_ms",
                     "orphan: {of: u(id), by: id, delete_when: maybe}, age: at_ms", "cap: {rows: 5}", "cap: {newest: [at_ms]}",
                     "cap: {rows: -1, newest: [at_ms]}", "cap: {rows: x, newest: [at_ms]}", "cap: {rows: 5, newest: []}"):
            with self.subTest(body):
                self.policy(body)

    def test_the_aliases_of_delete_when(self):
        self.given("create table u (id integer primary key); insert into u values (1)")
        for when in ("deleted", "deleted_or_unmatched", "never", "sourceDocumentDeleted", "sourceDocumentDeletedOrNoLongerMatching"):
            with self.subTest(when):
                self.sweep("policies: {t: {table: t, orphan: {of: u(id), by: id, matching: {id: 1}, "
                           "delete_when: %s}, age: at_ms}}" % when)

    def test_zones(self):
        self.policy("expires: at_ms, zone: Mars/Olympus", "mars/olympus")

    def test_reading_and_allowed_are_said(self):
        self.policy("expires: at_ms, unit: minutes", "minutes", "ms")
        self.policy("expires: at_ms, enabled: maybe", "maybe", "true")
        self.policy("expires: at_ms, batch: many", "many")

    def test_version(self):
        self.plan("lapse: 1\npolicies: {t: {table: t, expires: at_ms}}")

    def test_the_whole_vocabulary_is_read(self):
        """The contract of the specification: nothing in it is a mistake."""
        self.given("create table orders (id integer primary key, created_at text)")
        r = self.lapse("""
            lapse: 1
            own_schema: lapse
            serve: { listen: "127.0.0.1:0", token_file: token }
            schedulers:
              metadata:   { every: 1m }
              statestore: { every: 5m, run_on_start: false, exclusive: true, lease: 30s }
              nightly:    { cron: "0 3 * * *", timezone: Europe/Prague, jitter: 30s, enabled: true }
            policies:
              presence_entries:
                scheduler: statestore
                table: t
                expires: at_ms
                invariant: presence is derived inventory, not durable truth
                also: [the websocket heartbeat prunes expired rows inline]
                timeouts: { lock: 2s, statement: 30s }
              presence_entries.cap: { scheduler: statestore, table: t,
                                      cap: { rows: 500, per: [state], newest: [at_ms, id] } }
              inbox.completed:
                scheduler: statestore
                table: t
                rows: { state: completed }
                age: at_ms
                keep: ${TERMINAL_RETENTION_DAYS:-7}d
                limits: { rows: 1000, fraction: 0.5 }
                pace: { target: 50ms, rows_per_second: 1000, duty: 0.5, lag: 5s, lag_bytes: 1000000 }
                workers: 2
                partitions: drop
                keep_newest: { rows: 3, per: [state], newest: [at_ms] }
              remind-pending-order:
                scheduler: nightly
                table: t
                rows: { state: remind-pending-order }
                orphan:
                  of: orders(id)
                  by: id
                  matching: { created_at: { older_than: 24h } }
                  delete_when: deleted_or_unmatched
                  allow_empty: true
                age: [at_ms]
                keep: 1h
            purges:
              workflow:
                label: Workflow
                delay: 60s
                retention: { failed: 24h }
                only: [completed, failed]
                erases:
                  - orders(id)
                  - { ref: t(id), keep: { state: ["workflow:output", "workflow:status", "meta:*"] } }
            unbounded:
              models_dev_cache: singleton primary key (id = 1)
              channel_outbox.sent: deleted inline after delivery
            """, "check", "--json")
        self.assertEqual(r.code, 3, r)      # some of it does not run yet; none of it is a mistake
        self.assertEqual(r.json["command"], "check")
