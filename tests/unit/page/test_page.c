/* The operators' page: a sentence for every key, and nothing that a name could break. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "page/internal.h"

/* --- making ------------------------------------------------------------------------------------- */

static struct contract *contract_of(const char *yaml)
{
    struct contract *c = NULL;
    struct mistakes mistakes;
    struct err e = ERR_INIT;
    if (contract_parse("some/where/lapse.yaml", yaml, strlen(yaml), &c, &mistakes, &e) < 0)
        fail_msg("%s: %s\n%s", e.text, mistakes.n ? mistakes.list[0].text : "", yaml);
    mistakes_release(&mistakes);
    return c;
}

static struct contract *policy_of(const char *keys)
{
    AUTO(text_release) struct text yaml = {0};
    text_addf(&yaml, "store: sqlite:x\npolicies: {p: {table: t, %s}}\n", keys);
    return contract_of(text_str(&yaml));
}

/* The sentences of a cell in one line; code is between backticks, what is strong between stars. */
static void flatten(const struct page_cell *cell, struct text *out)
{
    static const char *const around[] = {[MARK_CODE] = "`", [MARK_STRONG] = "*", [MARK_END] = ""};
    for (size_t i = 0; i < cell->n; i++) {
        const char *line = cell->lines[i];
        struct piece piece;
        text_add(out, i ? " " : "");
        while (piece_next(&line, &piece)) {
            text_add(out, around[piece.mark]);
            text_add_n(out, piece.text, piece.len);
            text_add(out, around[piece.mark]);
        }
    }
}

static void cell_is(const struct page_cell *cell, const char *expected)
{
    AUTO(text_release) struct text t = {0};
    flatten(cell, &t);
    assert_string_equal(text_str(&t), expected);
}

static void policy_says(const char *keys, int cell, const char *expected)
{
    AUTO(contract_free_p) struct contract *c = policy_of(keys);
    AUTO(page_free_p) struct page *p = page_make(c);
    cell_is(&p->policies->cells[cell], expected);
}

static void bounds(const char *keys, const char *expected)
{
    policy_says(keys, CELL_BOUNDING, expected);
}

static void assures(const char *keys, const char *expected)
{
    policy_says(keys, CELL_INVARIANT, expected);
}

/* What is said of a policy's trigger beside its schedule; without the mark of keys that do not run yet. */
static void runs(const char *keys, const char *expected)
{
    static const char schedule[] = "Scheduler `default`, every minute, also at start. ";
    AUTO(contract_free_p) struct contract *c = policy_of(keys);
    c->policies[0].n_not_yet = 0;
    AUTO(page_free_p) struct page *p = page_make(c);
    AUTO(text_release) struct text t = {0};
    flatten(&p->policies->cells[CELL_TRIGGER], &t);
    assert_memory_equal(text_str(&t), schedule, strlen(schedule));
    assert_string_equal(text_str(&t) + strlen(schedule), expected);
}

static void scheduled(const char *keys, const char *expected)
{
    AUTO(text_release) struct text yaml = {0};
    text_addf(&yaml, "store: sqlite:x\nschedulers: {s: {%s}}\npolicies: {p: {table: t, expires: e_ms}}\n",
              keys);
    AUTO(contract_free_p) struct contract *c = contract_of(text_str(&yaml));
    AUTO(page_free_p) struct page *p = page_make(c);
    cell_is(&p->policies->cells[CELL_TRIGGER], expected);
}

static const struct page_cell *list_of(const struct page *p, const char *title)
{
    for (size_t i = 0; i < p->n_sections; i++)
        if (strcmp(p->sections[i].title, title) == 0)
            return &p->sections[i].list;
    fail_msg("no section %s", title);
    return NULL;
}

/* Whether the page's failure handling has these words. */
static bool failures_say(const char *yaml, const char *words)
{
    AUTO(contract_free_p) struct contract *c = contract_of(yaml);
    AUTO(page_free_p) struct page *p = page_make(c);
    AUTO(text_release) struct text t = {0};
    flatten(list_of(p, "Failure handling"), &t);
    return strstr(text_str(&t), words) != NULL;
}

/* --- words -------------------------------------------------------------------------------------- */

static void test_times(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *words;
    } cases[] = {{0, "0 seconds"},
                 {1, "1 microsecond"},
                 {US_PER_S, "1 second"},
                 {1500 * US_PER_MS, "1 second 500 milliseconds"},
                 {5400 * US_PER_S, "1 hour 30 minutes"},
                 {US_PER_DAY, "24 hours"},
                 {US_PER_DAY * 3 / 2, "36 hours"},
                 {2 * US_PER_DAY, "2 days"},
                 {7 * US_PER_DAY + 60 * US_PER_S, "7 days 1 minute"},
                 {1500 * US_PER_DAY, "1,500 days"}};
    AUTO(arena_free_p) struct arena *a = arena_new();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(words_time(a, cases[i].us), cases[i].words);
}

static void test_numbers(void **state)
{
    (void)state;
    AUTO(arena_free_p) struct arena *a = arena_new();
    assert_string_equal(words_count(a, 1, "row"), "1 row");
    assert_string_equal(words_count(a, 999, "row"), "999 rows");
    assert_string_equal(words_count(a, 1000, "batch"), "1,000 batches");
    assert_string_equal(words_count(a, 1234567, "row"), "1,234,567 rows");
    assert_string_equal(words_percent(a, 0.125), "12.5 %");
    assert_string_equal(words_percent(a, 0.07), "7 %");
}

static void test_lists(void **state)
{
    (void)state;
    static const char *const items[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    AUTO(arena_free_p) struct arena *a = arena_new();
    assert_string_equal(words_list(a, items, 0, "or"), "");
    assert_string_equal(words_list(a, items, 1, "or"), "a");
    assert_string_equal(words_list(a, items, 2, "or"), "a or b");
    assert_string_equal(words_list(a, items, 3, "and"), "a, b and c");
    assert_string_equal(words_list(a, items, 8, "and"), "a, b, c, d, e, f, g and h");
    assert_string_equal(words_list(a, items, 9, "or"), "a, b, c, d, e, f, g, h or 1 other");
    assert_string_equal(words_list(a, items, 10, "and"), "a, b, c, d, e, f, g, h and 2 others");
}

static void test_texts_are_made_harmless(void **state)
{
    (void)state;
    AUTO(arena_free_p) struct arena *a = arena_new();
    assert_string_equal(words_clean(a, " a\nb\r\n\tc\x01\x02\x03\x7f "), "a b   c");
    assert_string_equal(words_clean(a, "x\xE2\x80\xA8y\xC2\x85z"), "x y z");
    assert_string_equal(words_clean(a, "\xff\xc3\xa9"), "\xEF\xBF\xBD\xc3\xa9");
    assert_string_equal(words_sentence(a, "presence is derived", true), "Presence is derived.");
    assert_string_equal(words_sentence(a, "presence is derived!", false), "presence is derived!");
    assert_string_equal(words_sentence(a, "channel_outbox rows go", true), "channel_outbox rows go.");
    assert_string_equal(words_sentence(a, "eBPF maps", true), "eBPF maps.");
    assert_string_equal(words_metric(a, "m", "a", "x\"y\\z\n", "b", "", NULL), "m{a=\"x\\\"y\\\\z\",b=\"\"}");
}

/* --- bounding mechanism -------------------------------------------------------------------------- */

static void test_expires(void **state)
{
    (void)state;
    bounds("expires: expires_at_ms", "TTL via `expires_at_ms`.");
    bounds("expires: lease_expires_at_ms", "Lease TTL via `lease_expires_at_ms`.");
    bounds("expires: release_at_ms", "TTL via `release_at_ms`.");
    bounds("expires: e, unit: s", "TTL via `e`. Integer times count seconds.");
    bounds("expires: e, zone: Europe/Prague", "TTL via `e`. Times without a zone are in Europe/Prague.");
    bounds("expires: e_ms, rows: {kind: x}, where: {n: {gte: 3}}",
           "TTL via `e_ms`, for rows whose `kind` is x, where `n` is at least 3.");
    assures("expires: e_ms",
            "Deletes only rows whose TTL has expired; a row without a time in `e_ms` stays.");
    assures("expires: lease_e_ms",
            "Deletes only expired leases; a row without a time in `lease_e_ms` stays.");
}

static void test_age(void **state)
{
    (void)state;
    bounds("age: start_time, keep: 30m, rows: {status: [completed, failed, cancelled]}",
           "Rows whose `status` is completed, failed or cancelled go 30 minutes after `start_time`.");
    bounds("age: [a, b], keep: 1h", "Rows go 1 hour after the latest of `a` and `b`.");
    bounds("age: a, keep: now", "Rows go as soon as `a` lies in the past.");
    bounds("age: a, keep: never", "Rows stay for ever: `keep: never`.");
    bounds("age: a, keep: 1d, inclusive: true",
           "Rows go 24 hours after `a`. A row of exactly that age goes too.");
    bounds("age: a, keep: 2d, rows: {x: 1, y: 'two words'}",
           "Rows whose `x` is 1, and whose `y` is `'two words'`, go 2 days after `a`.");
    assures("age: [a, b], keep: 1h",
            "Deletes only rows past their window; a row without a time in any of `a` and `b` stays.");
    assures("age: a, keep: never", "Deletes nothing.");
    assures(
        "age: a, keep: 1h, rows: {x: 1}, invariant: nobody reads them",
        "Deletes only rows past their window; a row without a time in `a` stays. Never touches other rows, "
        "at any age. Nobody reads them.");
}

static void test_keep_by_value_and_by_row(void **state)
{
    (void)state;
    bounds("age: f, keep: {by: status, values: {completed: 1m, failed: 24h, odd one: never, x: now}}",
           "Rows go by their `status`, counted from `f`: completed after 1 minute, failed after 24 hours, "
           "`'odd one'` "
           "never and x at once; any other value never.");
    bounds("age: f, keep: {by: status, values: {a: 1m}, otherwise: 2h}",
           "Rows go by their `status`, counted from `f`: a after 1 minute; any other value after 2 hours.");
    assures("age: f, keep: {by: status, values: {a: never}}", "Deletes nothing.");
    bounds("age: f, keep: {column: ttl_s}", "Rows go when the time that their `ttl_s` gives in seconds has "
                                            "passed since `f`; NULL, 0 and less is never.");
    bounds("age: f, keep: {column: days, unit: d}", "Rows go when the time that their `days` gives in days "
                                                    "has passed since `f`; NULL, 0 and less is never.");
    bounds("age: f, keep: {column: ttl}",
           "Rows go when the time that their `ttl` gives has passed since `f`; NULL, 0 and less is never.");
}

static void test_newest(void **state)
{
    (void)state;
    bounds("age: a, keep: 7d, keep_newest: {rows: 3, per: [x, y], newest: [a, b]}",
           "Rows go 7 days after `a`. However old, the newest 3 rows per `x` and `y` by `a`, then `b` stay.");
    bounds("age: a, keep: 7d, keep_newest: {rows: 1, newest: a}",
           "Rows go 7 days after `a`. However old, the newest row by `a` stays.");
    bounds("cap: {rows: 500, per: [tenant_id], newest: [seen, id]}",
           "At most 500 rows per `tenant_id` stay: the newest by `seen`, then `id`.");
    bounds("cap: {rows: 1, newest: seen}", "At most 1 row stays: the newest by `seen`.");
    bounds("rows: {k: x, l: y}, cap: {rows: 1000, newest: seen}",
           "Of the rows whose `k` is x, and whose `l` is y, at most 1,000 stay: the newest by `seen`.");
    assures("cap: {rows: 5, per: p, newest: n}", "Deletes only rows beyond the newest 5 per `p`.");
    assures("cap: {rows: 5, newest: n}, hold: {h: 1}",
            "Deletes only rows beyond the newest 5. A row stays while `h` is 1. Rows that are held or wait "
            "count, but "
            "never go.");
}

static void test_orphan(void **state)
{
    (void)state;
    bounds("orphan: {of: orders(id), by: order_id}, age: [u, f]",
           "Orphans: rows whose row in `orders` (its `id` is their `order_id`) is gone. They go 24 hours "
           "after the "
           "latest of `u` and `f`.");
    bounds(
        "orphan: {of: 's.o(a, b)', by: [x, y]}, keep: now",
        "Orphans: rows whose row in `s.o` (its `a` and `b` are their `x` and `y`) is gone. They go at once.");
    bounds("rows: {task: remind}, orphan: {of: o(id), by: d, matching: {c: {older_than: 24h}}, "
           "delete_when: deleted_or_unmatched}, age: u, keep: 1h",
           "Orphans: rows whose `task` is remind, and whose row in `o` (its `id` is their `d`) is gone or no "
           "longer "
           "matches. It matches while `c` is older than 24 hours. They go 1 hour after `u`.");
    bounds("orphan: {of: o(id), by: d, delete_when: never}, age: u",
           "Orphans of `o` stay for ever: `delete_when: never`.");
    assures("orphan: {of: o(id), by: d, delete_when: never}, age: u", "Deletes nothing.");
    assures("orphan: {of: o(id), by: d, matching: {c: 1}}, age: u",
            "Deletes only orphans; a row with NULL in `d` stays. So does one without a time in `u`. A row of "
            "`o` counts "
            "whether it matches or not. If `o` is empty or cannot be read in full, nothing is deleted and "
            "that is an "
            "error.");
    assures(
        "orphan: {of: o(id), by: d, matching: {c: 1}, delete_when: deleted_or_unmatched, allow_empty: true}, "
        "keep: now",
        "Deletes only orphans; a row with NULL in `d` stays. A match that is unknown counts as none. If `o` "
        "is empty, "
        "every row is an orphan: the contract allows it.");
}

static void test_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *words;
    } cases[] = {
        {"{a: [x, null]}", "`a` is x or NULL"},
        {"{a: ''}", "`a` is `''`"},
        {"{a: 'null'}", "`a` is `'null'`"},
        {"{a: {not: null}}", "`a` is not NULL"},
        {"{a: {not: [x, y]}}", "`a` is none of x and y"},
        {"{a: {lt: 3}}", "`a` is less than 3"},
        {"{a: {lte: 3}}", "`a` is at most 3"},
        {"{a: {gt: 3}}", "`a` is greater than 3"},
        {"{a: {gte: -3}}", "`a` is at least -3"},
        {"{a: {like: 'x%'}}", "`a` is like `'x%'`"},
        {"{a: {older_than: 1h}}", "`a` is older than 1 hour"},
        {"{a: {newer_than: 90s}}", "`a` is newer than 1 minute 30 seconds"},
        {"{a: {newer_than: 0s}}", "`a` lies in the future"},
        {"{a: 1, b: {gt: 2, lt: 9}}", "`a` is 1, and `b` is greater than 2, and `b` is less than 9"},
        {"{a: 1, any: [{b: 2, c: 3}, {d: 4}]}", "`a` is 1, and ((`b` is 2, and `c` is 3), or `d` is 4)"},
        {"{any: [{b: 2}]}", "`b` is 2"},
        {"\"this.n > 3\\n and this.m\"", "`this.n > 3  and this.m`"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text keys = {0}, expected = {0};
        text_addf(&keys, "expires: e_ms, hold: %s", cases[i].yaml);
        text_addf(&expected,
                  "Deletes only rows whose TTL has expired; a row without a time in `e_ms` stays. A row "
                  "stays while %s.",
                  cases[i].words);
        assures(text_str(&keys), text_str(&expected));
    }
    bounds("expires: e_ms, rows: {k: ['m:*', a, 'n:*', '\\*']}",
           "TTL via `e_ms`, for rows whose `k` is a or `'*'` or begins with `m:` or `n:`.");
    bounds("age: a, keep: 1m, where: 'this.n > 1'", "Rows where `this.n > 1` go 1 minute after `a`.");
    bounds("age: a, keep: 1m, where: {x: 1, y: 2}",
           "Rows where `x` is 1, and `y` is 2, go 1 minute after `a`.");
    bounds("expires: e_ms, rows: {k: [a, b, c, d, e, f, g, h, i, j, k]}",
           "TTL via `e_ms`, for rows whose `k` is a, b, c, d, e, f, g, h or 3 others.");
}

static void test_what_goes_along(void **state)
{
    (void)state;
    bounds("expires: e_ms, with: ['a(x)', 'b(y, z)'], detach: ['c(x)']",
           "TTL via `e_ms`. What a row owns in `a(x)` and `b(y, z)` goes with it. References in `c(x)` are "
           "set to NULL; "
           "those rows stay.");
    bounds("expires: e_ms, with: [{ref: a(x), where: {done: 1}, with: [b(y)], detach: ['c(z)']}]",
           "TTL via `e_ms`. What a row owns in `a(x)` goes with it. In `a(x)` only rows where `done` is 1 "
           "go; a row that "
           "owns others there waits. With rows of `a` go theirs in `b(y)`. References to `a` in `c(z)` are "
           "set to NULL; "
           "those rows stay.");
    bounds(
        "expires: e_ms, with: [{ref: a(x), split: true}, t(parent)]",
        "TTL via `e_ms`. What a row owns in `a(x)` and `t(parent)` goes with it. Rows in `a(x)` may go "
        "ahead in "
        "transactions of their own; a row that comes back to life meanwhile keeps only what is left of them. "
        "By `t(parent)` that is the whole subtree.");
    bounds("expires: e_ms, partitions: drop",
           "TTL via `e_ms`. A partition that is wholly due is dropped instead of deleted from.");
    policy_says("expires: e_ms, with: [{ref: a(x), with: [b(y), a(z)]}]", CELL_OBSERVABILITY,
                "`lifecycle_prune_rows_total{scheduler=\"default\",table=\"p\",policy=\"p\"}` and "
                "`default.lifecycle_pruned`. Rows that go along count under the table `a` or `b`.");
}

static void test_waits_and_wholeness(void **state)
{
    (void)state;
#define EXPIRED "Deletes only rows whose TTL has expired; a row without a time in `e_ms` stays."
    assures("expires: e_ms, after: ['o(a, b)', {ref: q(x), where: {open: 1}}]", EXPIRED
            " A row waits while any row in `o(a, b)` refers to it. A row waits while any row in `q(x)` where "
            "`open` is 1 refers to it.");
    assures("expires: e_ms, with: [{ref: a(x), after: [q(y)]}]",
            EXPIRED " A row waits while any row in `q(y)` refers to what it owns in `a`. A row and what it "
                    "owns go in one "
                    "transaction, or stay.");
    assures("expires: e_ms, with: [{ref: a(x), split: true}]",
            EXPIRED " What may go ahead of a row may be gone while the row stays.");
    assures("expires: e_ms, with: [b(x), {ref: a(x), split: true}]", EXPIRED
            " A row and what it owns go in one transaction, or stay, but for what may go ahead: that may be "
            "gone while its owner stays.");
    assures("expires: e_ms, detach: [b(x)]", EXPIRED);
    assures(
        "expires: e_ms, limits: {rows: 1000, fraction: 0.5}", EXPIRED
        " Fuse: a run that would delete more than 1,000 rows or 50 % of the table deletes nothing and stays "
        "stopped until `lapse ack p`.");
    assures(
        "expires: e_ms, limits: {rows: 1}", EXPIRED
        " Fuse: a run that would delete more than 1 row deletes nothing and stays stopped until `lapse ack "
        "p`.");
}

/* --- prune trigger ------------------------------------------------------------------------------- */

static void test_schedules(void **state)
{
    (void)state;
    scheduled("every: 5m", "Scheduler `s`, every 5 minutes, also at start.");
    scheduled("every: 1h, run_on_start: false", "Scheduler `s`, every hour, not at start.");
    scheduled("every: 90m", "Scheduler `s`, every 1 hour 30 minutes, also at start.");
    scheduled("every: 5m, exclusive: true, lease: 1m",
              "Scheduler `s`, every 5 minutes, also at start, one sweeper in the cluster (lease 1 minute).");
    scheduled("cron: '0 3 * * *', timezone: Europe/Prague, jitter: 30s",
              "Scheduler `s`, by cron `0 3 * * *` in Europe/Prague, not at start, up to 30 seconds later at "
              "random.");
    scheduled("every: 1m, window: '22:00-06:30', timezone: Asia/Tokyo",
              "Scheduler `s`, every minute, also at start, only from 22:00 to 06:30 Asia/Tokyo.");
    scheduled("every: 1m, budget: {rows: 5000, batches: 1, time: 30s}",
              "Scheduler `s`, every minute, also at start, at most 5,000 rows, 1 batch and 30 seconds per "
              "policy and "
              "tick.");
    scheduled("every: 1m, enabled: false",
              "None while its scheduler is disabled; then scheduler `s`, every minute, also at start.");
}

static void test_effort(void **state)
{
    (void)state;
    runs("expires: e_ms, batch: null", "Everything that is due goes in one transaction.");
    runs("expires: e_ms, batch: 1", "At most 1 row in one transaction.");
    runs("expires: e_ms, workers: 2", "2 connections sweep at once.");
    runs("expires: e_ms, timeouts: {lock: 1s}",
         "It waits at most 1 second for a lock and 30 seconds for a statement.");
    runs("expires: e_ms, pace: {rows_per_second: 1000, duty: 0.5, lag: 5s, lag_bytes: 1000000}",
         "Transactions of about 50 milliseconds, at most 1000 rows a second, busy at most 50 % of the time. "
         "It waits "
         "while a replica is more than 5 seconds or 1,000,000 bytes behind.");
    runs("expires: e_ms, also: [the heartbeat prunes inline, 'so does X!']",
         "Also: the heartbeat prunes inline. Also: so does X!");
}

static void test_what_does_not_run_is_not_claimed(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = policy_of("expires: e_ms, enabled: false");
    AUTO(page_free_p) struct page *off = page_make(c);
    cell_is(&off->policies->cells[CELL_TABLE], "`t` (policy `p`) *Disabled*");
    cell_is(&off->policies->cells[CELL_TRIGGER],
            "None while the policy is disabled; then scheduler `default`, every minute, also at start.");

    AUTO(contract_free_p) struct contract *refused = policy_of("expires: e_ms");
    struct policy *p = &refused->policies[0];
    p->not_yet = arena_push(refused->arena, p->not_yet, 0, sizeof(*p->not_yet));
    p->not_yet[p->n_not_yet++].key = "cap";
    AUTO(page_free_p) struct page *page = page_make(refused);
    cell_is(&page->policies->cells[CELL_TRIGGER],
            "Scheduler `default`, every minute, also at start. *Not run yet*: this version of lapse refuses "
            "a policy with "
            "`cap`.");
}

/* --- the rest of the page ------------------------------------------------------------------------ */

#define STORE  "store: sqlite:secret-file\n"
#define PURGES "purges: {wf: {erases: [wf(id)]}}\n"

static void test_failure_handling_follows_the_schedulers(void **state)
{
    (void)state;
    static const char one[] = STORE "policies: {p: {table: t, expires: e_ms}}\n";
    static const char two[] =
        STORE "schedulers: {a: {every: 1m, exclusive: true}, b: {every: 1m}, idle: {every: 1m, "
              "exclusive: true}}\n"
              "policies: {p: {scheduler: a, table: t, expires: e_ms, limits: {rows: 5}}, q: "
              "{scheduler: b, table: u, expires: e_ms}}\n";
    assert_true(failures_say(one, "`default` takes no lease"));
    assert_false(failures_say(one, "single-writer"));
    assert_false(failures_say(one, " a fuse"));
    assert_false(failures_say(one, "budget"));
    assert_false(failures_say(one, "purge"));
    assert_true(failures_say(two, "`a` runs under a single-writer lease"));
    assert_true(failures_say(two, "`b` takes no lease"));
    assert_false(failures_say(two, "idle"));
    assert_true(failures_say(two, "logged as `a.lifecycle_tick_failed` or `b.lifecycle_tick_failed`."));
    assert_true(failures_say(two, "`lifecycle_tick_errors_total{scheduler=\"b\"}` from `/metrics` on "
                                  "`127.0.0.1:9933`"));
    assert_true(failures_say(two, "`p` has a fuse."));
    assert_true(failures_say(STORE
                             "serve: {listen: 'localhost:0'}\npolicies: {p: {table: t, expires: e_ms}}\n",
                             "on a port of `localhost` that is picked at start"));
    assert_true(failures_say(STORE PURGES, "A purge is never lost"));
    assert_false(failures_say(STORE PURGES, "Tick failures"));
}

static void test_without_a_server_there_are_no_metrics(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = contract_of(STORE "serve: off\npolicies: {p: {table: t, expires: e_ms}}\n" PURGES);
    AUTO(page_free_p) struct page *p = page_make(c);
    AUTO(text_release) struct text t = {0};
    cell_is(&p->policies->cells[CELL_OBSERVABILITY], "`default.lifecycle_pruned` in the log.");
    cell_is(&p->purges->cells[CELL_PURGE_OBSERVABILITY],
            "`purge.executed` in the log: `[wf] Purged data for ID (REASON)`.");
    page_markdown(p, &t);
    assert_null(strstr(text_str(&t), "_total"));
    assert_null(strstr(text_str(&t), "secret-file"));
}

static void test_purges(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = contract_of(
        STORE
        "purges:\n  w: {label: Work, retention: {failed: 24h, lost: never}, only: [completed, failed, "
        "lost], erases: [step(w_id), {ref: kv(w_id), keep: {k: ['meta:*', out]}}]}\n"
        "  v: {delay: 0, retention: {a: 1h}, only: a, erases: [v(id)]}\n  u: {delay: 0, erases: [u(id)]}\n");
    AUTO(page_free_p) struct page *p = page_make(c);
    const struct page_cell *w = p->purges->cells, *v = w + N_PURGE_CELLS, *u = v + N_PURGE_CELLS;
    assert_null(p->policies);
    cell_is(&w[CELL_SPACE], "`w` (Work)");
    cell_is(&w[CELL_WHEN],
            "An instance is purged 1 minute after it ended. If the reason is failed, 24 hours after it "
            "ended. If the "
            "reason is lost, never. Only if the reason is completed, failed or lost; for any other it is "
            "never purged.");
    cell_is(&w[CELL_ERASES],
            "1. The rows of `step` whose `w_id` is the instance. 2. The rows of `kv` whose `w_id` is the "
            "instance, but not "
            "those whose `k` is out or begins with `meta:`.");
    cell_is(&v[CELL_WHEN],
            "If the reason is a, 1 hour after it ended. Only if the reason is a; for any other it is never "
            "purged.");
    cell_is(&u[CELL_WHEN], "An instance is purged as soon as it ended.");
}

static void test_non_goals(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c =
        contract_of(STORE PURGES "unbounded: {cache: singleton primary key (id = 1), odd: '?'}\n");
    AUTO(page_free_p) struct page *p = page_make(c);
    cell_is(list_of(p, "Explicit non-goals"),
            "`cache` has no policy: singleton primary key (id = 1). `odd` has no policy: why is not decided "
            "yet.");
    AUTO(contract_free_p) struct contract *none = contract_of(STORE PURGES);
    AUTO(page_free_p) struct page *bare = page_make(none);
    cell_is(list_of(bare, "Explicit non-goals"), "None: the contract names nothing that needs no policy.");
}

static void test_policies_of_a_table_stand_together(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = contract_of(
        STORE "policies: {a: {table: x, expires: e_ms}, b: {table: y, expires: e_ms}, c: {table: x, expires: "
              "f_ms}, d: {table: s.x, expires: e_ms}}\n");
    AUTO(page_free_p) struct page *p = page_make(c);
    static const char order[] = "acbd";
    for (size_t i = 0; i < strlen(order); i++)
        assert_int_equal(p->ordered[i]->name[0], order[i]);
}

/* --- Markdown and HTML --------------------------------------------------------------------------- */

static const char odd[] = STORE "policies: {'a|b`<script>': {table: '\"x|y`\"', label: '\\\"', expires: "
                                "'<e|>_ms', invariant: \"_so_ *it* is "
                                "|\\nand <b>&lt; [x](y) a_b $1$\"}}\nunbounded: {'`': '# no | <i>'}\n";

static void test_markdown_holds_odd_names(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = contract_of(odd);
    AUTO(page_free_p) struct page *p = page_make(c);
    AUTO(text_release) struct text t = {0};
    page_markdown(p, &t);
    const char *row = strstr(text_str(&t), "\n| <code>");
    assert_non_null(row);
    size_t bars = 0;
    for (const char *s = row + 1; *s != '\n'; s++)
        bars += *s == '|';
    assert_int_equal(bars, 6);
    assert_non_null(strstr(row, "| <code>&#34;x&#124;y&#96;&#34;</code> (policy "
                                "<code>a&#124;b&#96;&#60;script&#62;</code>) |"));
    assert_non_null(strstr(row, "\\_so\\_ \\*it\\* is &#124; and &lt;b&gt;&amp;lt; \\[x\\](y) a_b \\$1\\$."));
    assert_non_null(strstr(row, "- <code>&#96;</code> has no policy: # no &#124; &lt;i&gt;."));
    assert_null(strstr(text_str(&t), "<script"));
    assert_null(strstr(text_str(&t), "<b>"));
}

static void test_html_escapes_everything(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = contract_of(odd);
    AUTO(page_free_p) struct page *p = page_make(c);
    AUTO(text_release) struct text t = {0};
    page_html(p, &t);
    assert_memory_equal(text_str(&t), "<!DOCTYPE html>\n", 16);
    assert_non_null(strstr(text_str(&t), "<code>a|b`&lt;script&gt;</code>"));
    assert_non_null(strstr(text_str(&t), "is | and &lt;b&gt;&amp;lt; [x](y)"));
    assert_null(strstr(text_str(&t), "<script"));
    assert_null(strstr(text_str(&t), "<b>"));
    assert_null(strstr(text_str(&t), "http:"));
}

static void test_json_has_the_same_facts(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = contract_of(odd);
    AUTO(page_free_p) struct page *p = page_make(c);
    AUTO(text_release) struct text t = {0};
    page_json(p, &t);
    assert_ptr_equal(memchr(t.data, '\n', t.len), t.data + t.len - 1);
    json_t *whole = json_loads(text_str(&t), 0, NULL),
           *policy = json_array_get(json_object_get(whole, "policies"), 0);
    assert_string_equal(json_string_value(json_object_get(policy, "policy")), "a|b`<script>");
    assert_string_equal(json_string_value(json_object_get(policy, "bound")), "expires");
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(policy, "metrics"), 0)),
        "lifecycle_prune_rows_total{scheduler=\"default\",table=\"\\\\\\\"\",policy=\"a|b`<script>\"}");
    assert_null(strstr(text_str(&t), "secret-file"));
    json_decref(whole);
}

static void test_the_first_line_names_the_source(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = contract_of(STORE PURGES);
    AUTO(page_free_p) struct page *p = page_make(c);
    AUTO(text_release) struct text one = {0}, other = {0};
    page_markdown(p, &one);
    page_markdown(p, &other);
    static const char first[] = "Generated by `lapse contract` from `lapse.yaml`. Do not edit it by hand";
    assert_memory_equal(one.data, first, strlen(first));
    assert_string_equal(one.data, other.data);
}

/* --- differences ---------------------------------------------------------------------------------- */

static void differs(const char *expected, const char *found, const char *verdict)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    struct page_difference d;
    AUTO(text_release) struct text t = {0};
    if (page_differs(a, expected, found, strlen(found), &d))
        text_addf(&t, "%d:%d %s / %s", d.at.line, d.at.column, d.expected, d.found);
    assert_string_equal(text_str(&t), verdict);
}

static void test_differences(void **state)
{
    (void)state;
    differs("a\nb\n", "a\nb\n", "");
    differs("a\nb\n", "a\r\nb\r\n", "");
    differs("a\nb\n", "a\r\nb\n", "");
    differs("a\nb\n", "a\nb", "");
    differs("a\nbc\n", "a\nbd\n", "2:2 bc / bd");
    differs("a\nb\n", "a\n", "2:1 b / the end of the page");
    differs("a\n", "a\nb\n", "2:1 the end of the page / b");
    differs("a\n", "", "1:1 a / the end of the page");
    differs("\xc3\xa9x\n", "\xc3\xa9y\n", "1:2 \xc3\xa9x / \xc3\xa9y");
    differs("\xc3\xa9\n", "\xc3\xa8\n", "1:1 \xc3\xa9 / \xc3\xa8");
    differs("a\n\n", "a\n", "2:1  / the end of the page");
    differs("0123456789012345678901234567890123456789x", "0123456789012345678901234567890123456789y",
            "1:41 …012345678901234567890123456789x / …012345678901234567890123456789y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_texts_are_made_harmless),
        cmocka_unit_test(test_expires),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_keep_by_value_and_by_row),
        cmocka_unit_test(test_newest),
        cmocka_unit_test(test_orphan),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_what_goes_along),
        cmocka_unit_test(test_waits_and_wholeness),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_effort),
        cmocka_unit_test(test_what_does_not_run_is_not_claimed),
        cmocka_unit_test(test_failure_handling_follows_the_schedulers),
        cmocka_unit_test(test_without_a_server_there_are_no_metrics),
        cmocka_unit_test(test_purges),
        cmocka_unit_test(test_non_goals),
        cmocka_unit_test(test_policies_of_a_table_stand_together),
        cmocka_unit_test(test_markdown_holds_odd_names),
        cmocka_unit_test(test_html_escapes_everything),
        cmocka_unit_test(test_json_has_the_same_facts),
        cmocka_unit_test(test_the_first_line_names_the_source),
        cmocka_unit_test(test_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
