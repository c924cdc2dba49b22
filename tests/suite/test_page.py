"""lapse contract: the operators' page, from the contract alone."""
import html.parser
import json
import os
import re
import unittest

from harness import contract_file, folder, lapse, new_path

# The contract of the specification. Its store cannot be reached, and need not be.
EXAMPLE = """
lapse: 1
store: postgresql://lapse:Sesame-42@nowhere.invalid/app

schedulers:
  metadata:   { every: 1m }
  statestore: { every: 5m, run_on_start: false, exclusive: true }
  nightly:    { cron: "0 3 * * *", timezone: Europe/Prague, jitter: 30s }

policies:
  metadata:
    scheduler: metadata
    table: trax.metadata
    rows: { name: [ManifestManagerTrain, MetadataCleanupTrain],
            train_state: [completed, failed, cancelled] }
    age: start_time
    keep: 30m
    with:   [trax.work_queue(metadata_id), trax.log(metadata_id)]
    detach: [trax.dead_letter(retry_metadata_id), trax.metadata(parent_id)]
    batch: 1000

  presence_entries:
    scheduler: statestore
    table: presence_entries
    expires: expires_at_ms
    invariant: presence is derived inventory, not durable truth
    also: [the websocket heartbeat prunes expired rows inline]
  presence_entries.cap: { scheduler: statestore, table: presence_entries,
                          cap: { rows: 500, per: [tenant_id], newest: [last_seen_at_ms, instance_id] } }

  channel_inbox.completed:
    scheduler: statestore
    table: channel_inbox
    rows: { status: completed }
    age: received_at_ms
    keep: ${TERMINAL_RETENTION_DAYS:-7}d
    after: [channel_outbox(tenant_id, inbox_id)]

  remind-pending-order:
    scheduler: nightly
    table: orders_tasks
    rows: { task: remind-pending-order }
    orphan:
      of: orders(id)
      by: source_doc_id
      matching: { created_at: { older_than: 24h } }
      delete_when: deleted_or_unmatched
    age: [updated_at, last_finalized_at]
    keep: 1h

  workflow:
    table: workflow
    rows: { status: [completed, failed, cancelled] }
    age: finished_at
    keep: { by: status, values: { completed: 1m, failed: 24h, cancelled: 5m }, otherwise: never }
    with: [workflow_step(workflow_id)]

purges:
  workflow:
    label: Workflow
    delay: 60s
    retention: { failed: 24h }
    only: [completed, failed]
    erases:
      - workflow_step(workflow_id)
      - { ref: workflow_kv(instance_id), keep: { key: ["workflow:output", "workflow:status", "meta:*"] } }
      - workflow(id)

unbounded:
  models_dev_cache: singleton primary key (id = 1)
  channel_outbox.sent: deleted inline after delivery
"""

# The maintenance contract of operational tables: two schedulers, twelve tables.
OPERATIONAL = """
store: sqlite:/nowhere/at/all
schedulers:
  statestore: { every: 5m, exclusive: true }
  outbox:     { every: 5m, exclusive: true }
policies:
  presence_entries:
    { scheduler: statestore, table: presence_entries, expires: expires_at_ms,
      invariant: "presence is derived inventory, not durable truth",
      also: [websocket heartbeat loop prunes expired rows inline] }
  connections:
    { scheduler: statestore, table: connections, expires: expires_at_ms,
      invariant: active connections must keep refreshing TTL, also: [edge heartbeat loop clears expired ownership] }
  channel_inbound_dedupe:
    { scheduler: statestore, table: channel_inbound_dedupe, expires: expires_at_ms,
      invariant: replay safety remains bounded to the configured dedupe window,
      also: [best-effort inline cleanup during enqueue] }
  channel_inbox.failed:
    { scheduler: statestore, table: channel_inbox, rows: { status: failed }, age: received_at_ms, keep: 7d }
  channel_outbox.failed:
    { scheduler: statestore, table: channel_outbox, rows: { status: failed }, age: created_at, keep: 7d,
      invariant: retention must never be required for canonical transcript recovery,
      also: [successful sends prune immediately in the delivery path] }
  channel_inbox.completed:
    { scheduler: statestore, table: channel_inbox, rows: { status: completed }, age: received_at_ms, keep: 7d,
      after: ["channel_outbox(inbox_id)"] }
  lane_leases:
    { scheduler: statestore, table: lane_leases, expires: lease_expires_at_ms,
      invariant: workers must reacquire before doing serialized lane work }
  workspace_leases:
    { scheduler: statestore, table: workspace_leases, expires: lease_expires_at_ms,
      invariant: active owners must keep renewing }
  oauth_pending:
    { scheduler: statestore, table: oauth_pending, expires: expires_at,
      invariant: live handshakes must still complete inside the advertised expiry window,
      also: [callback consumption deletes the row inline] }
  oauth_refresh_leases:
    { scheduler: statestore, table: oauth_refresh_leases, expires: lease_expires_at_ms,
      invariant: active refresh owners must renew/reacquire }
  models_dev_refresh_leases:
    { scheduler: statestore, table: models_dev_refresh_leases, expires: lease_expires_at_ms,
      invariant: the cache row is separate and remains bounded independently }
  outbox:
    { scheduler: outbox, table: outbox, age: created_at, keep: 24h,
      invariant: recovery must remain possible from durable StateStore truth after rows age out }
  outbox_consumers:
    { scheduler: outbox, table: outbox_consumers, age: updated_at, keep: 24h }
unbounded:
  models_dev_cache: "bounded by a singleton primary key (id = 1), so it cannot grow without limit"
  channel_outbox.sent: deleted inline after delivery; a second background job would duplicate that lifecycle
"""

TTL, LEASE = "TTL via `expires_at_ms`.", "Lease TTL via `lease_expires_at_ms`."
EXPIRED, LEASES = "Deletes only rows whose TTL has expired;", "Deletes only expired leases;"
# policy, table, scheduler, then what the document says of bounding, trigger and invariant
FACTS = [
    ("presence_entries", "presence_entries", "statestore", [TTL], ["websocket heartbeat loop"],
     [EXPIRED, "Presence is derived inventory, not durable truth."]),
    ("connections", "connections", "statestore", [TTL], ["edge heartbeat loop"],
     [EXPIRED, "Active connections must keep refreshing TTL."]),
    ("channel_inbound_dedupe", "channel_inbound_dedupe", "statestore", [TTL], ["inline cleanup during enqueue"],
     [EXPIRED, "Replay safety remains bounded to the configured dedupe window."]),
    ("channel_inbox.failed", "channel_inbox", "statestore",
     ["Rows whose `status` is failed go 7 days after `received_at_ms`."], [], ["past their window"]),
    ("channel_inbox.completed", "channel_inbox", "statestore",
     ["Rows whose `status` is completed go 7 days after `received_at_ms`."], [],
     ["A row waits while any row in `channel_outbox(inbox_id)` refers to it."]),
    ("channel_outbox.failed", "channel_outbox", "statestore",
     ["Rows whose `status` is failed go 7 days after `created_at`."], ["successful sends prune immediately"],
     ["Retention must never be required for canonical transcript recovery."]),
    ("lane_leases", "lane_leases", "statestore", [LEASE], [],
     [LEASES, "Workers must reacquire before doing serialized lane work."]),
    ("workspace_leases", "workspace_leases", "statestore", [LEASE], [],
     [LEASES, "Active owners must keep renewing."]),
    ("oauth_pending", "oauth_pending", "statestore", ["TTL via `expires_at`."], ["callback consumption"],
     [EXPIRED, "Live handshakes must still complete inside the advertised expiry window."]),
    ("oauth_refresh_leases", "oauth_refresh_leases", "statestore", [LEASE], [],
     [LEASES, "Active refresh owners must renew/reacquire."]),
    ("models_dev_refresh_leases", "models_dev_refresh_leases", "statestore", [LEASE], [],
     [LEASES, "The cache row is separate and remains bounded independently."]),
    ("outbox", "outbox", "outbox", ["Rows go 24 hours after `created_at`."], [],
     ["Recovery must remain possible from durable StateStore truth after rows age out."]),
    ("outbox_consumers", "outbox_consumers", "outbox", ["Rows go 24 hours after `updated_at`."], [],
     ["past their window"]),
]

# Names and texts that are markup to somebody.
ODD = r"""
store: sqlite:x
schedulers: { "s|<script>alert(1)</script>": { every: 1m } }
policies:
  "p|`q``r": { table: '"a|b"."<script>x</script>"', expires: '"e|`&amp;"', label: 'l\"|`', unit: s,
               invariant: "one | two\n\n| three | </td></table><script>x</script> ` `` \\| \\ *b* _c_ <!-- & &lt; [a](b)",
               also: ["|", "</style>", "-->"], where: "this.x = '|' -- `\n or this.y < 3",
               with: ['"|"("`")'] }
purges: { "<b>|": { label: "<i>|", only: ["|", "<u>"], erases: ['"<|>"("|")'] } }
unbounded: { "<u>|`": "</li></ul><script>x</script> | `" }
"""


class Parser(html.parser.HTMLParser):
    """Reads HTML strictly: every element is closed where it should be."""
    EMPTY = {"meta"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.seen, self.text, self.rows, self.attributes = [], [], set(), [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.attributes += attributes
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text.append(data)
        if self.open[-1:] and ("td" in self.open or "th" in self.open):
            self.rows[-1][-1] += data

    def handle_comment(self, data):
        self.wrong.append(f"a comment: {data}")


def parsed(text):
    p = Parser()
    p.feed(text)
    p.close()
    if p.open:
        p.wrong.append(f"still open: {p.open}")
    return p


def rows(markdown, section):
    """The rows of a section's table: each a list of cells."""
    part = markdown.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


class Page(unittest.TestCase):
    maxDiff = None

    def page(self, contract, *options, code=0, **how):
        r = lapse(None, contract, "contract", *options, **how)
        self.assertEqual(r.code, code, r)
        return r.out

    def test_the_example(self):
        page = self.page(EXAMPLE)
        self.assertEqual(page.splitlines()[0], "Generated by `lapse contract` from `lapse.yaml`. Do not edit it by hand: "
                                               "change the contract and generate it again.")
        table = rows(page, "Contract")
        self.assertEqual([r[0] for r in table], [
            "`trax.metadata` (policy `metadata`)", "`presence_entries`",
            "`presence_entries` (policy `presence_entries.cap`)", "`channel_inbox` (policy `channel_inbox.completed`)",
            "`orders_tasks` (policy `remind-pending-order`)", "`workflow`"])
        self.assertTrue(all(len(r) == 5 and all(r) for r in table), table)
        for n, cell, words in [
            (0, 1, "go 30 minutes after `start_time`."),
            (0, 2, "Scheduler `metadata`, every minute, also at start."),
            (0, 3, "A row and what it owns go in one transaction, or stay."),
            (1, 1, "TTL via `expires_at_ms`."),
            (1, 2, "Scheduler `statestore`, every 5 minutes, not at start, one sweeper in the cluster (lease 30 seconds). "
                   "Also: the websocket heartbeat prunes expired rows inline."),
            (2, 1, "At most 500 rows per `tenant_id` stay: the newest by `last_seen_at_ms`, then `instance_id`."),
            (3, 1, "Rows whose `status` is completed go 7 days after `received_at_ms`."),
            (3, 3, "A row waits while any row in `channel_outbox(tenant_id, inbox_id)` refers to it."),
            (4, 1, "They go 1 hour after the latest of `updated_at` and `last_finalized_at`."),
            (4, 2, "Scheduler `nightly`, by cron `0 3 * * *` in Europe/Prague, not at start, up to 30 seconds later at "
                   "random."),
            (5, 1, "completed after 1 minute, failed after 24 hours and cancelled after 5 minutes; any other value never."),
            (5, 2, "Scheduler `default`, every minute, also at start."),
            (5, 4, "count under the table `workflow_step`."),
        ]:
            self.assertIn(words, table[n][cell])
        purge, = rows(page, "Purges")
        self.assertIn("An instance is purged 1 minute after it ended. If the reason is failed, 24 hours", purge[1])
        self.assertLess(purge[2].index("1. The rows of `workflow_step`"), purge[2].index("3. The rows of `workflow`"))
        self.assertIn("`[Workflow] Purged data for ID (REASON)`", purge[4])
        self.assertNotIn("Sesame-42", page)
        self.assertNotIn("nowhere.invalid", page)

    def test_a_value_from_the_environment(self):
        page = self.page(EXAMPLE, env={"TERMINAL_RETENTION_DAYS": "30"})
        self.assertIn("go 30 days after `received_at_ms`", page)

    def test_every_fact_of_the_operational_tables(self):
        page = self.page(OPERATIONAL)
        table = rows(page, "Contract")
        self.assertEqual(len(table), len(FACTS))
        for cells, (policy, name, scheduler, bounding, trigger, invariant) in zip(table, FACTS):
            with self.subTest(policy):
                self.assertEqual(cells[0], f"`{name}`" + ("" if name == policy else f" (policy `{policy}`)"))
                self.assertIn(f"Scheduler `{scheduler}`, every 5 minutes", cells[2])
                self.assertIn("one sweeper in the cluster", cells[2])
                for cell, facts in ((1, bounding), (2, trigger), (3, invariant)):
                    for fact in facts:
                        self.assertIn(fact, cells[cell])
                self.assertEqual(cells[4], f'`lifecycle_prune_rows_total{{scheduler="{scheduler}",table="{policy}",'
                                           f'policy="{policy}"}}` and `{scheduler}.lifecycle_pruned`.')
        for fact in ("- `models_dev_cache` has no policy: bounded by a singleton primary key (id = 1), so it cannot grow",
                     "- `channel_outbox.sent` has no policy: deleted inline after delivery;",
                     "`statestore` and `outbox` run under a single-writer lease",
                     "Tick failures are logged as `statestore.lifecycle_tick_failed` or `outbox.lifecycle_tick_failed`.",
                     '`lifecycle_tick_errors_total{scheduler="statestore"}` and '
                     '`lifecycle_tick_errors_total{scheduler="outbox"}`'):
            self.assertIn(fact, page)
        self.assertNotIn("without coordination", page)

    def test_html_says_what_markdown_says(self):
        text = self.page(OPERATIONAL, "--html")
        p = parsed(text)
        self.assertEqual(p.wrong, [])
        head = ["Table", "Bounding mechanism", "Prune trigger", "Safety invariant", "Observability"]
        page = self.page(OPERATIONAL)
        table = [head, *rows(page, "Contract"), head, *rows(page, "Lapse's own tables")]
        self.assertEqual([[re.sub(r"\W", "", c) for c in r] for r in p.rows],
                         [[re.sub(r"\W", "", c) for c in r] for r in table])

    def test_lapse_s_own_tables(self):
        contract = "store: sqlite:x\nown_schema: upkeep\npolicies: {s: {table: s, expires: at_ms}}"
        (table, bound, trigger, invariant, _), = rows(self.page(contract), "Lapse's own tables")
        self.assertEqual(table, "`upkeep.lapse_run` (policy `lapse.run`)")
        self.assertIn("0 after 30 minutes; any other value after 7 days", bound)
        self.assertIn("the newest row per `scheduler` and `source`", bound)
        self.assertIn("Scheduler `lapse`, every 10 minutes, not at start", trigger)
        own = json.loads(self.page(contract, "--json"))["own"]
        self.assertEqual([p["policy"] for p in own["policies"]], ["lapse.run"])
        self.assertEqual([s["scheduler"] for s in own["schedulers"]], ["lapse"])

    def test_html_needs_nothing_else(self):
        text = self.page(EXAMPLE, "--html")
        p = parsed(text)
        self.assertEqual(p.wrong, [])
        self.assertLessEqual(p.seen, {"html", "head", "meta", "title", "style", "body", "p", "h1", "h2", "table", "thead",
                                      "tbody", "tr", "th", "td", "ul", "li", "code", "strong"})
        self.assertFalse({"src", "href"} & {name for name, _ in p.attributes})
        style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
        self.assertNotRegex(style, r"@import|url\(")
        self.assertEqual(style.count("{"), style.count("}"))
        for rule in ("@media print", "table-header-group", "break-inside:avoid", "prefers-color-scheme:dark"):
            self.assertIn(rule, style)

    def test_odd_names_in_html(self):
        text = self.page(ODD, "--html")
        p = parsed(text)
        self.assertEqual(p.wrong, [])
        self.assertNotIn("script", p.seen)
        self.assertFalse({"b", "i", "u"} & p.seen)
        shown = "".join(p.text)
        for words in ("p|`q``r", '"a|b"."<script>x</script>"', "One | two", "</td></table><script>x</script> ` `` \\| \\ *b*",
                      "&lt; [a](b)", "this.x = '|' -- `  or this.y < 3", "</li></ul><script>x</script> | `",
                      'table="l\\\\\\"|`"', "[<i>|] Purged data"):
            self.assertIn(words, shown)
        self.assertEqual({len(r) for r in p.rows}, {5})

    def test_odd_names_in_markdown(self):
        page = self.page(ODD)
        self.assertEqual([len(r) for r in rows(page, "Contract")], [5])
        self.assertEqual([len(r) for r in rows(page, "Purges")], [5])
        for line in page.splitlines():
            if line.startswith("|"):
                self.assertEqual(line.count("|"), 6, line)      # a bar of a name is never a bar of the page
        self.assertFalse(re.findall(r"<(?!/?code>)[^ ]", re.sub(r"\\.|`[^`]*`", "", page)))
        self.assertRegex(page, r"\\\*b\\\* \\_c\\_ &lt;!-- &amp; &amp;lt; \\\[a\\\]\(b\)")

    def test_long_lists_are_cut(self):
        names = [f"state{n}" for n in range(200)]
        page = self.page("store: sqlite:x\npolicies: {p: {table: p, rows: {s: [%s]}, expires: e_ms}}" % ", ".join(names))
        self.assertIn("`s` is state0, state1, state2, state3, state4, state5, state6, state7 or 192 others.", page)

    def test_the_same_bytes_every_time(self):
        for form in ([], ["--html"], ["--json"]):
            for contract in (EXAMPLE, OPERATIONAL, ODD):
                pages = {self.page(contract, *form, env={"TZ": zone, "LANG": lang})
                         for zone, lang in (("UTC", "C"), ("Asia/Tokyo", "de_DE.UTF-8"))}
                self.assertEqual(len(pages), 1)

    def test_json(self):
        r = lapse(None, EXAMPLE, "contract", "--json")
        self.assertEqual((r.code, r.json["command"], r.json["exit"]), (0, "contract", 0))
        by_name = {p["policy"]: p for p in r.json["policies"]}
        self.assertEqual(by_name["metadata"]["keep_ms"], 1_800_000)
        self.assertEqual([w["ref"] for w in by_name["metadata"]["with"]],
                         ["trax.work_queue(metadata_id)", "trax.log(metadata_id)"])
        self.assertEqual(len(by_name["metadata"]["metrics"]), 3)
        self.assertEqual(by_name["presence_entries.cap"]["cap"],
                         {"rows": 500, "per": ["tenant_id"], "newest": ["last_seen_at_ms", "instance_id"]})
        self.assertEqual(by_name["remind-pending-order"]["orphan"]["delete_when"], "deleted_or_unmatched")
        self.assertEqual(by_name["workflow"]["keep"]["values"][1], {"value": "failed", "keep_ms": 86_400_000})
        self.assertIsNone(by_name["workflow"]["keep"]["otherwise_ms"])
        self.assertEqual(by_name["presence_entries"]["says"]["bounding_mechanism"], ["TTL via expires_at_ms."])
        self.assertEqual([s["scheduler"] for s in r.json["schedulers"]], ["metadata", "statestore", "nightly", "default"])
        self.assertEqual(r.json["purges"][0]["retention_ms"], {"failed": 86_400_000})
        self.assertEqual(r.json["unbounded"][0]["name"], "models_dev_cache")
        self.assertNotIn("Sesame-42", r.out)

    def test_a_bad_contract(self):
        r = lapse(None, "store: sqlite:x\npolicies: {p: {tabel: t}}", "contract")
        self.assertEqual(r.code, 2, r)
        self.assertIn("did you mean 'table'", r.err)
        self.assertEqual(r.out, "")


class Check(unittest.TestCase):
    def setUp(self):
        self.contract = contract_file(None, EXAMPLE)
        self.file = new_path("page", ".md")

    def run_(self, *options, code):
        r = lapse(None, self.contract, "contract", *options)
        self.assertEqual(r.code, code, r)
        return r

    def test_up_to_date(self):
        for form in ([], ["--html"]):
            self.run_(*form, "-o", self.file, code=0)
            self.assertEqual(self.file.read_text(), self.run_(*form, code=0).out)
            self.assertIn("is up to date", self.run_(*form, "--check", self.file, code=0).out)
            self.file.write_bytes(self.file.read_bytes().replace(b"\n", b"\r\n"))
            self.run_(*form, "--check", self.file, code=0)
            self.assertEqual(self.run_(*form, "--check", self.file, "--json", code=0).json["exit"], 0)

    def test_out_of_date(self):
        self.run_("-o", self.file, code=0)
        old = self.file.read_text()
        at = next(n for n, line in enumerate(old.splitlines(), 1) if "7 days after" in line)
        self.contract.write_text(EXAMPLE.replace(":-7}d", ":-9}d"))
        r = self.run_("--check", self.file, code=3)
        self.assertIn(f"{self.file}:{at}:", r.out)
        self.assertRegex(r.out, r"expected: .*go 9 days after[\s\S]*found: .*go 7 days after")
        self.assertIn(f"fix: lapse -f {self.contract} contract -o {self.file}", r.out)
        self.assertEqual(self.file.read_text(), old, "it only looks")
        finding, = self.run_("--check", self.file, "--json", code=3).json["findings"]
        self.assertTrue(finding["at"].startswith(f"{self.file}:{at}:"), finding)
        command = finding["fix"].split()
        self.assertEqual(lapse(None, None, *command[1:]).code, 0)      # what it says to do does it
        self.run_("--check", self.file, code=0)

    def test_the_other_form_is_out_of_date(self):
        self.run_("--html", "-o", self.file, code=0)
        r = self.run_("--check", self.file, code=3)
        self.assertIn(f"{self.file}:1:1", r.out)
        self.file.write_text("")
        self.assertIn("the end of the page", self.run_("--check", self.file, code=3).out)
        self.assertIn("contract --html -o", self.run_("--html", "--check", self.file, code=3).out)

    def test_a_page_with_more_or_less(self):
        page = self.run_(code=0).out
        self.file.write_text(page + "more\n")
        self.assertRegex(self.run_("--check", self.file, code=3).out, r"expected: the end of the\s+page; found: more")
        self.file.write_bytes(page.encode()[:200] + b"\0\xff" + page.encode()[200:])
        self.run_("--check", self.file, code=3)

    def test_missing_and_unreadable(self):
        missing = folder() / "no such page.md"
        r = self.run_("--check", missing, code=3)
        self.assertIn("there is no such page", r.out)
        self.assertIn(f"contract -o '{missing}'", r.out)
        r = self.run_("--check", folder(), code=2)
        self.assertIn("cannot read", r.err)
        r = self.run_("-o", folder() / "no" / "such" / "folder.md", code=1)
        self.assertIn("cannot write", r.err)

    def test_no_link_is_followed(self):
        """Who may write in the folder would choose which file is overwritten."""
        other = new_path("other")
        other.write_text("precious")
        link = new_path("link", ".md")
        link.symlink_to(other)
        r = self.run_("-o", link, code=1)
        self.assertIn("is a link", r.err)
        self.assertEqual(other.read_text(), "precious")
        dangling = new_path("dangling", ".md")
        nowhere = new_path("nowhere")
        dangling.symlink_to(nowhere)
        self.run_("-o", dangling, code=1)
        self.assertFalse(nowhere.exists())

    def test_only_a_file_is_written_or_read(self):
        pipe = new_path("pipe")
        os.mkfifo(pipe)
        for place in (pipe, "/dev/null"):
            with self.subTest(place):
                self.assertIn("no file", self.run_("-o", place, code=1).err)
                self.assertIn("no file", self.run_("--check", place, code=2).err)
        self.assertFalse(os.path.isfile("/dev/null"))

    def test_a_shorter_page_replaces_a_longer_one(self):
        self.file.write_text("x" * 1_000_000)
        self.run_("-o", self.file, code=0)
        self.run_("--check", self.file, code=0)

    def test_options_that_exclude_each_other(self):
        for options in (["--check", "x", "-o", "y"], ["--html", "--json"]):
            r = self.run_(*options, code=2)
            self.assertIn("exclude each other", r.err)
            self.assertEqual(r.out, "")

    def test_a_bad_contract_leaves_the_page(self):
        self.file.write_text("old")
        self.contract.write_text("store: 1\n")
        self.run_("-o", self.file, code=2)
        self.assertEqual(self.file.read_text(), "old")
