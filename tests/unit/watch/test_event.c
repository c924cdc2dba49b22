/* Tests of src/watch/event.c and src/watch/event_json.c: lines that stay lines, whatever the texts hold; what a tick
 * says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "watch/event.h"

static const instant NOW = INT64_C(1794830400000000); /* 2026-11-16T12:00:00Z */

/* --- lines --------------------------------------------------------------------------------------- */

static char *text_of(const struct event *ev, bool colour)
{
    struct text t = {0};
    event_print_text(ev, colour, &t);
    return t.data;
}

static char *line_of(const struct event *ev)
{
    struct text t = {0};
    event_print_json(ev, &t);
    return t.data;
}

static json_t *json_of(const struct event *ev)
{
    AUTO(mem_free_p) char *line = line_of(ev);
    json_error_t why;
    json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, &why);
    if (!j)
        fail_msg("%s: %s", why.text, line);
    return j;
}

static void reads(const struct event *ev, const char *json, const char *text)
{
    AUTO(mem_free_p) char *line = line_of(ev), *plain = text_of(ev, false);
    assert_string_equal(line, json);
    assert_string_equal(plain, text);
}

static void test_a_line(void **state)
{
    (void)state;
    AUTO(event_free_p) struct event *ev = event_new(EVENT_SERVING, NULL, NOW + 250000);
    event_message(ev, "on %s", "127.0.0.1:9933");
    event_text(ev, "address", "127.0.0.1:9933");
    event_text(ev, "token", NULL);
    event_number(ev, "most", INT64_MAX);
    event_time(ev, "since", NOW);
    event_span(ev, "took", 1500000);
    event_texts(ev, "paths", (const char *const[]){"/metrics", "/a b"}, 2);
    reads(ev,
          "{\"time\":\"2026-11-16T12:00:00.25Z\",\"level\":\"info\",\"event\":\"lapse.serving\","
          "\"message\":\"on 127.0.0.1:9933\",\"address\":\"127.0.0.1:9933\",\"token\":null,"
          "\"most\":9223372036854775807,\"since\":\"2026-11-16T12:00:00Z\",\"took\":1.5,"
          "\"paths\":[\"/metrics\",\"/a b\"]}",
          "2026-11-16 12:00:00Z info  lapse.serving  on 127.0.0.1:9933 address=127.0.0.1:9933 token=\"\" "
          "most=9223372036854775807 since=2026-11-16T12:00:00Z took=1.500s paths=/metrics,\"/a b\"");
}

static void test_a_name_of_a_scheduler(void **state)
{
    (void)state;
    AUTO(event_free_p) struct event *ev = event_new(EVENT_LEASE_TAKEN, "statestore", NOW);
    reads(ev,
          "{\"time\":\"2026-11-16T12:00:00Z\",\"level\":\"info\",\"event\":\"statestore.lease_taken\","
          "\"scheduler\":\"statestore\"}",
          "2026-11-16 12:00:00Z info  statestore.lease_taken");
    AUTO(event_free_p) struct event *other = event_new(EVENT_REMARK, NULL, NOW);
    event_rename(other, "http.refused");
    event_level(other, LEVEL_WARN);
    event_message(other, "x");
    reads(
        other,
        "{\"time\":\"2026-11-16T12:00:00Z\",\"level\":\"warn\",\"event\":\"http.refused\",\"message\":\"x\"}",
        "2026-11-16 12:00:00Z warn  http.refused  x");
    AUTO(mem_free_p) char *plain = text_of(other, false), *coloured = text_of(other, true);
    assert_null(strchr(plain, '\033'));
    assert_non_null(strstr(coloured, "\033[33mwarn "));
}

static void test_the_vocabulary_is_whole(void **state)
{
    (void)state;
    for (int k = 0; k < N_EVENTS; k++) {
        assert_non_null(event_word((enum event_kind)k));
        assert_true(strlen(event_help((enum event_kind)k)) > 3);
        for (int other = 0; other < k; other++)
            assert_string_not_equal(event_word((enum event_kind)k), event_word((enum event_kind)other));
        AUTO(event_free_p) struct event *ev = event_new((enum event_kind)k, "s", NOW);
        json_t *j = json_of(ev);
        const char *name = json_string_value(json_object_get(j, "event"));
        const char *word = event_word((enum event_kind)k);
        const char *of = strchr(word, '.') ? word : event_of_scheduler((enum event_kind)k) ? "s." : "lapse.";
        assert_int_equal(strncmp(name, of, 2), 0);
        json_decref(j);
    }
}

static void test_keys_that_are_taken(void **state)
{
    (void)state;
    AUTO(event_free_p) struct event *ev = event_new(EVENT_REMARK, NULL, NOW);
    event_number(ev, "time", 1);
    event_number(ev, "message", 2);
    event_number(ev, "now", 3);
    event_number(ev, "now", 4);
    event_number(ev, "now", 5);
    json_t *j = json_of(ev);
    assert_int_equal(json_integer_value(json_object_get(j, "time_")), 1);
    assert_int_equal(json_integer_value(json_object_get(j, "message_")), 2);
    assert_int_equal(json_integer_value(json_object_get(j, "now")), 3);
    assert_int_equal(json_integer_value(json_object_get(j, "now_")), 4);
    assert_int_equal(json_integer_value(json_object_get(j, "now__")), 5);
    assert_int_equal(json_object_size(j), 3 + 5);
    json_decref(j);
}

/* Nothing that any reader takes for the end of a line, and UTF-8. */
static void assert_one_line(const char *s)
{
    static const char *const breaks[] = {"\n",   "\r",       "\v",       "\f",           "\x1c",
                                         "\x1d", "\x1e",     "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9",
                                         "\x1b", "\xC2\x9b", "\x7f",     "\x01",         "\xff"};
    for (size_t i = 0; i < COUNT_OF(breaks); i++)
        assert_null(strstr(s, breaks[i]));
    for (size_t n; *s; s += n)
        assert_int_not_equal(n = report_utf8(s), 0);
}

static void test_texts_that_would_break_a_line(void **state)
{
    (void)state;
    static const char *const evil[] = {
        "a\nb\r\nc",
        "\x01\x02\x1b[31mred\x7f",
        "\xff\xfe\x80 caf\xC3",
        "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
        "\xED\xA0\x80 surrogate",
        "\xF4\x90\x80\x80 beyond",
        "\xC0\xAF overlong",
        "\xE2\x80\xA8 and \xE2\x80\xA9",
        "\xC2\x85 \xC2\x9b",
        "\"quote\\ back\"",
        "",
    };
    for (size_t i = 0; i < COUNT_OF(evil); i++) {
        AUTO(event_free_p) struct event *ev = event_new(EVENT_REMARK, evil[i], NOW);
        event_message(ev, "%s", evil[i]);
        event_text(ev, "text", evil[i]);
        event_text(ev, evil[i], "value");
        event_texts(ev, "list", (const char *const[]){evil[i]}, 1);
        AUTO(mem_free_p) char *line = line_of(ev), *text = text_of(ev, false);
        assert_one_line(line);
        assert_one_line(text);
        json_t *j = json_of(ev);
        assert_int_equal(json_object_size(j), 8);
        json_decref(j);
    }
    AUTO(event_free_p) struct event *ev = event_new(EVENT_REMARK, NULL, NOW);
    event_text(ev, "e", "caf\xC3\xA9\n\xff.");
    json_t *j = json_of(ev);
    assert_string_equal(json_string_value(json_object_get(j, "e")), "caf\xC3\xA9\n\xEF\xBF\xBD.");
    json_decref(j);
}

/* As text: what a value holds neither ends its line nor its quotes, nor turns round what is beside it. */
static void test_values_as_text(void **state)
{
    (void)state;
    static const struct {
        const char *value, *shown;
    } cases[] = {
        {"plain", "v=plain"},
        {"", "v=\"\""},
        {"two words", "v=\"two words\""},
        {"say \"x\" level=error", "v=\"say \\\"x\\\" level=error\""},
        {"a\nb", "v=\"a\\nb\""},
        {"end \\", "v=\"end \\\\\""},
        {"\xE2\x80\xAE"
         "desrever\xE2\x80\x8B",
         "v=\\u202edesrever\\u200b"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(event_free_p) struct event *ev = event_new(EVENT_REMARK, NULL, NOW);
        event_text(ev, "v", cases[i].value);
        AUTO(mem_free_p) char *text = text_of(ev, false);
        assert_non_null(strstr(text, cases[i].shown));
    }
    AUTO(event_free_p) struct event *ev = event_new(EVENT_REMARK, NULL, NOW);
    event_message(ev, "one\ntwo\tthree");
    AUTO(mem_free_p) char *text = text_of(ev, false);
    assert_non_null(strstr(text, "one\\ntwo\\tthree"));
}

static void test_a_megabyte(void **state)
{
    (void)state;
    size_t n = 1 << 20;
    AUTO(mem_free_p) char *big = mem_alloc(n + 1);
    for (size_t i = 0; i + 1 < n; i += 2)
        memcpy(big + i, "\xC3\xA9", 2); /* every byte but one in two would cut a character */
    for (size_t shift = 0; shift < 2; shift++) {
        AUTO(event_free_p) struct event *ev = event_new(EVENT_REMARK, NULL, NOW);
        event_message(ev, "%s%s", shift ? "x" : "", big);
        event_text(ev, "error", big);
        AUTO(mem_free_p) char *line = line_of(ev);
        assert_true(strlen(line) < 2 * EVENT_TEXT_MOST + 300);
        assert_one_line(line);
        assert_non_null(strstr(line, "… (1044480 bytes more)"));
        json_decref(json_of(ev));
    }
}

/* --- a tick -------------------------------------------------------------------------------------- */

static struct policy presence = {.name = "presence",
                                 .table = {.table = {.text = "t"}},
                                 .label = "presence_entries",
                                 .scheduler = "statestore"};
static struct policy inbox = {
    .name = "inbox", .table = {.table = {.text = "t"}}, .label = "channel_inbox", .scheduler = "statestore"};
static struct policy inbox_failed = {
    .name = "inbox.failed", .table = {.table = {.text = "t"}}, .label = "channel_inbox"};
static struct contract secretive = {.store = "postgresql://app:hunter2@db/app"};

static const char *names[] = {"public.work_queue", "public.channel_inbox"};
static const char *labels[] = {"work_queue", "public.channel_inbox"};

static struct report *a_report(enum report_kind kind)
{
    struct report *r = report_new(kind, "sweep");
    r->contract = &secretive;
    r->now = NOW - 1000000;
    return r;
}

/* along: rows that went along, -1: it has no plan */
static struct report_policy *with(struct report *r, const struct policy *p, enum outcome_kind kind,
                                  int64_t along, int64_t own)
{
    struct report_policy *rp = report_add_policy(r, p);
    rp->kind = kind;
    if (along >= 0) {
        rp->tables = names;
        rp->labels = labels;
        rp->n_tables = 2;
        rp->gone = arena_alloc(r->arena, 2 * sizeof(*rp->gone));
        rp->gone[0] = along;
        rp->gone[1] = own;
    }
    return rp;
}

struct heard {
    struct text lines, texts;
    size_t n;
};

static void hear(void *context, const struct event *ev)
{
    struct heard *h = context;
    event_print_json(ev, &h->lines);
    event_print_text(ev, false, &h->texts);
    text_add(&h->lines, "\n");
    text_add(&h->texts, "\n");
    h->n++;
}

static void says(struct report *r, const char *lines, const char *texts)
{
    struct heard h = {0};
    events_of_tick(r, "statestore", NOW, hear, &h);
    assert_string_equal(text_str(&h.lines), lines);
    assert_string_equal(text_str(&h.texts), texts);
    text_release(&h.lines);
    text_release(&h.texts);
    report_free(r);
}

#define HEAD(level, word)                                                                                    \
    "{\"time\":\"2026-11-16T12:00:00Z\",\"level\":\"" level "\",\"event\":\"statestore." word                \
    "\",\"scheduler\":\"statestore\",\"message\":"
#define AT "\"now\":\"2026-11-16T11:59:59Z\""

static void test_rows_that_went(void **state)
{
    (void)state;
    struct report *r = a_report(REPORT_SWEEP);
    with(r, &presence, OUTCOME_DONE, -1, 0);
    with(r, &inbox, OUTCOME_DONE, 3, 5);
    with(r, &inbox_failed, OUTCOME_FAILED, 1, 2);
    r->policies[1].detach_tables = names;
    r->policies[1].detached = (int64_t[]){77, 78};
    r->policies[1].n_detach_tables = 2;
    says(r,
         HEAD("info", "lifecycle_pruned") "\"11 rows: channel_inbox 7, work_queue 4\"," AT
                                          ",\"presence_entries\":0,\"channel_inbox\":7,\"work_queue\":4}\n",
         "2026-11-16 12:00:00Z info  statestore.lifecycle_pruned  11 rows: channel_inbox 7, work_queue 4\n");
}

static void test_nothing_went(void **state)
{
    (void)state;
    struct report *r = a_report(REPORT_SWEEP);
    with(r, &presence, OUTCOME_DONE, 0, 0);
    with(r, &inbox, OUTCOME_REFUSED, -1, 0);
    with(r, &inbox, OUTCOME_DISABLED, -1, 0);
    says(r, HEAD("debug", "lifecycle_pruned") "\"nothing went\"," AT ",\"presence_entries\":0}\n",
         "2026-11-16 12:00:00Z debug statestore.lifecycle_pruned  nothing went\n");
}

static void test_a_tick_that_was_anothers_says_nothing(void **state)
{
    (void)state;
    struct report *r = a_report(REPORT_SWEEP);
    with(r, &presence, OUTCOME_HELD, -1, 0);
    with(r, &inbox, OUTCOME_PAUSED, 0, 0);
    says(r, "", "");
    r = a_report(REPORT_ERROR);
    r->error = "could not connect";
    says(r, "", "");
}

static void test_what_went_is_said_though_the_tick_broke(void **state)
{
    (void)state;
    struct report *r = a_report(REPORT_SWEEP);
    with(r, &presence, OUTCOME_PAUSED, 0, 1);
    r->error = "lost";
    says(r, HEAD("info", "lifecycle_pruned") "\"1 row: presence_entries 1\"," AT ",\"presence_entries\":1}\n",
         "2026-11-16 12:00:00Z info  statestore.lifecycle_pruned  1 row: presence_entries 1\n");
}

static void test_a_budget_used_up(void **state)
{
    (void)state;
    struct report *r = a_report(REPORT_SWEEP);
    with(r, &presence, OUTCOME_BUDGET, 0, 5);
    with(r, &inbox, OUTCOME_WINDOW, 0, 0);
    with(r, &inbox_failed, OUTCOME_BUDGET, 0, 1);
    says(
        r,
        HEAD("info", "lifecycle_pruned") "\"6 rows: presence_entries 5, channel_inbox 1\"," AT
                                         ",\"presence_entries\":5,\"channel_inbox\":1}\n" HEAD(
                                             "warn",
                                             "lifecycle_prune_budget_exhausted") "\"the budget of this "
                                                                                 "tick was used up, the "
                                                                                 "next one goes on: "
                                                                                 "presence, "
                                                                                 "inbox.failed\"," AT
                                                                                 ",\"policies\":["
                                                                                 "\"presence\",\"inbox."
                                                                                 "failed\"]}\n",
        "2026-11-16 12:00:00Z info  statestore.lifecycle_pruned  6 rows: presence_entries 5, channel_inbox "
        "1\n"
        "2026-11-16 12:00:00Z warn  statestore.lifecycle_prune_budget_exhausted  the budget of this tick was "
        "used up, the next one goes on: presence, inbox.failed\n");
}

static void test_observed(void **state)
{
    (void)state;
    struct report *r = a_report(REPORT_PLAN);
    with(r, &inbox, OUTCOME_DONE, 3, 5);
    says(r,
         HEAD("info", "lifecycle_observed") "\"8 rows due: channel_inbox 5, work_queue 3\"," AT
                                            ",\"channel_inbox\":5,\"work_queue\":3}\n",
         "2026-11-16 12:00:00Z info  statestore.lifecycle_observed  8 rows due: channel_inbox 5, work_queue "
         "3\n");
    r = a_report(REPORT_PLAN);
    with(r, &inbox, OUTCOME_DONE, 0, 0);
    says(r, HEAD("debug", "lifecycle_observed") "\"nothing is due\"," AT ",\"channel_inbox\":0}\n",
         "2026-11-16 12:00:00Z debug statestore.lifecycle_observed  nothing is due\n");
}

static void test_labels_that_are_no_good_keys(void **state)
{
    (void)state;
    static struct policy odd = {.name = "odd", .table = {.table = {.text = "t"}}, .label = "now"},
                         odder = {.name = "odder", .table = {.table = {.text = "t"}}, .label = "level"};
    struct report *r = a_report(REPORT_SWEEP);
    with(r, &odd, OUTCOME_DONE, -1, 0);
    with(r, &odder, OUTCOME_DONE, 0, 2);
    says(r, HEAD("info", "lifecycle_pruned") "\"2 rows: level 2\"," AT ",\"now_\":0,\"level_\":2}\n",
         "2026-11-16 12:00:00Z info  statestore.lifecycle_pruned  2 rows: level 2\n");
}

static void test_many_labels(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    struct report *r = a_report(REPORT_SWEEP);
    struct policy *many = arena_alloc(r->arena, MANY * sizeof(*many));
    for (int i = 0; i < MANY; i++) {
        many[i].table.table.text = many[i].name = many[i].label = arena_printf(r->arena, "p%d", i);
        with(r, &many[i], OUTCOME_DONE, 0, i);
    }
    struct heard h = {0};
    events_of_tick(r, "s", NOW, hear, &h);
    assert_int_equal(h.n, 1);
    assert_non_null(strstr(h.texts.data, "499500 rows: p1 1, p2 2, p3 3, p4 4, p5 5, p6 6, p7 7, p8 8 and "
                                         "991 more\n"));
    assert_non_null(strstr(h.lines.data, ",\"p0\":0,\"p1\":1,"));
    assert_non_null(strstr(h.lines.data, ",\"p999\":999}\n"));
    text_release(&h.lines);
    text_release(&h.texts);
    report_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line),
        cmocka_unit_test(test_a_name_of_a_scheduler),
        cmocka_unit_test(test_the_vocabulary_is_whole),
        cmocka_unit_test(test_keys_that_are_taken),
        cmocka_unit_test(test_texts_that_would_break_a_line),
        cmocka_unit_test(test_values_as_text),
        cmocka_unit_test(test_a_megabyte),
        cmocka_unit_test(test_rows_that_went),
        cmocka_unit_test(test_nothing_went),
        cmocka_unit_test(test_a_tick_that_was_anothers_says_nothing),
        cmocka_unit_test(test_what_went_is_said_though_the_tick_broke),
        cmocka_unit_test(test_a_budget_used_up),
        cmocka_unit_test(test_observed),
        cmocka_unit_test(test_labels_that_are_no_good_keys),
        cmocka_unit_test(test_many_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
