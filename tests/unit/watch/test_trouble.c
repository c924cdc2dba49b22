/* Tests of src/watch/trouble.c: two days in a moment; what is said of what fails, and how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "watch/trouble.h"

#define S INT64_C(1000000)
#define M (60 * S)
#define H (60 * M)
static const instant START = INT64_C(1794830400000000); /* 2026-11-16T12:00:00Z */

static struct policy good = {.name = "good", .label = "good", .table = {.table = {.text = "g"}}};
static struct policy bad = {.name = "bad", .label = "b", .table = {.table = {.text = "t"}}};

/* What was said: "minute kind policy: message" a line, failed and recovered alone. */
struct said {
    struct text lines;
    instant from;
};

static void hear(void *context, const struct event *ev)
{
    static const char *const words[N_EVENTS] = {
        [EVENT_TICK_FAILED] = "failed", [EVENT_STILL_FAILING] = "still", [EVENT_RECOVERED] = "recovered"};
    struct said *s = context;
    AUTO(text_release) struct text line = {0};
    event_print_text(ev, false, &line);
    assert_non_null(words[event_kind_of(ev)]);
    instant at;
    assert_true(when_parse(line.data, 20, NULL, &at));
    text_addf(&s->lines, "%lld %s %s\n", (long long)((at - s->from) / M), words[event_kind_of(ev)],
              event_message_of(ev));
}

static struct said from(instant at)
{
    return (struct said){.from = at};
}

static void heard(struct said *s, const char *expected)
{
    assert_string_equal(text_str(&s->lines), expected);
    text_clear(&s->lines);
    if (s->lines.data)
        s->lines.data[0] = 0;
}

static void done(struct said *s, struct troubles *t)
{
    text_release(&s->lines);
    troubles_free(t);
}

static struct report *both(enum outcome_kind kind, const char *error)
{
    struct report *r = report_new(REPORT_SWEEP, "sweep");
    report_add_policy(r, &good);
    struct report_policy *p = report_add_policy(r, &bad);
    p->kind = kind;
    p->error = error ? arena_strdup(r->arena, error) : NULL;
    return r;
}

static size_t tick(struct troubles *t, struct report *r, instant at, struct said *s)
{
    size_t n = troubles_of_tick(t, r, at, hear, s);
    report_free(r);
    return n;
}

/* It trips in mid-course, stays tripped, is counted anew: one thing. After an acknowledgement it is another. */
static void test_a_fuse_is_said_once(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START);
    assert_int_equal(tick(t, both(OUTCOME_FUSE, "the fuse tripped in mid-course: 6 rows"), START, &s), 1);
    heard(&s, "0 failed policy 'bad': the fuse tripped in mid-course: 6 rows\n");
    assert_int_equal(
        tick(t, both(OUTCOME_FUSE, "the fuse tripped at noon: it would have deleted 6 rows"), START + S, &s),
        1);
    assert_int_equal(tick(t, both(OUTCOME_FUSE, "it has tripped"), START + 2 * S, &s), 1);
    heard(&s, "");
    assert_int_equal(tick(t, both(OUTCOME_FAILED, "no such table"), START + 3 * S, &s), 1);
    heard(&s, "0 failed policy 'bad': no such table\n");
    assert_int_equal(tick(t, both(OUTCOME_DONE, NULL), START + 4 * S, &s), 0);
    text_release(&s.lines);
    s = from(START);
    assert_int_equal(tick(t, both(OUTCOME_FUSE, "it has tripped"), START + 5 * S, &s), 1);
    heard(&s, "0 failed policy 'bad': it has tripped\n");
    done(&s, t);
}

static void test_two_days(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START);
    struct text expected = {0};
    text_add(&expected, "0 failed policy 'bad': relation \"t\" does not exist, pid 0\n");
    text_add(&expected,
             "1 still policy 'bad': still failing after 1m, 2 ticks failed: relation \"t\" does not "
             "exist, pid 1\n");
    text_add(&expected,
             "10 still policy 'bad': still failing after 10m, 11 ticks failed: relation \"t\" does "
             "not exist, pid 10\n");
    for (int h = 1; h < 48; h++) {
        AUTO(text_release) struct text span = {0};
        span_format_rough(h * H, &span);
        text_addf(&expected,
                  "%d still policy 'bad': still failing after %s, %d ticks failed: relation \"t\" does not "
                  "exist, pid %d\n",
                  h * 60, text_str(&span), h * 60 + 1, h * 60);
    }
    for (int m = 0; m < 2 * 24 * 60; m++) {
        char error[80];
        snprintf(error, sizeof(error), "relation \"t\" does not exist, pid %d", m);
        assert_int_equal(tick(t, both(OUTCOME_FAILED, error), START + m * M, &s), 1);
    }
    heard(&s, text_str(&expected));
    instant since;
    assert_string_equal(troubles_now(t, &since), "policy 'bad': relation \"t\" does not exist, pid 2879");
    assert_int_equal(since, START);
    assert_int_equal(tick(t, both(OUTCOME_DONE, NULL), START + 2 * 24 * H, &s), 0);
    heard(&s, "2880 recovered policy 'bad': went well again after 2d, 2880 ticks failed: relation \"t\" does "
              "not exist, pid 2879\n");
    assert_null(troubles_now(t, NULL));
    assert_int_equal(tick(t, both(OUTCOME_DONE, NULL), START + 2 * 24 * H + M, &s), 0);
    heard(&s, "");
    text_release(&expected);
    done(&s, t);
}

/* Every interval: at the beats, no more than once for steps that passed between two ticks. */
static void test_seldom_ticks(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START);
    for (int i = 0; i < 5; i++)
        tick(t, both(OUTCOME_FAILED, "x"), START + i * 25 * M, &s);
    heard(&s, "0 failed policy 'bad': x\n"
              "25 still policy 'bad': still failing after 25m, 2 ticks failed: x\n"
              "75 still policy 'bad': still failing after 1h 15m, 4 ticks failed: x\n");
    done(&s, t);
}

static void keep_json(void *context, const struct event *ev)
{
    struct text *t = context;
    event_print_json(ev, t);
    text_add(t, "\n");
}

static void test_lines(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    AUTO(text_release) struct text lines = {0};
    struct report *r = both(OUTCOME_FUSE, "too many");
    troubles_of_tick(t, r, START, keep_json, &lines);
    troubles_of_tick(t, r, START + M, keep_json, &lines);
    report_free(r);
    r = both(OUTCOME_DONE, NULL);
    troubles_of_tick(t, r, START + 61 * S, keep_json, &lines);
    report_free(r);
    assert_string_equal(
        text_str(&lines),
        "{\"time\":\"2026-11-16T12:00:00Z\",\"level\":\"error\",\"event\":\"main.lifecycle_tick_failed\","
        "\"scheduler\":\"main\",\"message\":\"policy 'bad': too many\",\"policy\":\"bad\",\"label\":\"b\","
        "\"table\":\"t\",\"outcome\":\"fuse\",\"error\":\"too many\"}\n"
        "{\"time\":\"2026-11-16T12:01:00Z\",\"level\":\"error\",\"event\":\"main.lifecycle_still_failing\","
        "\"scheduler\":\"main\",\"message\":\"policy 'bad': still failing after 1m, 2 ticks failed: too "
        "many\",\"policy\":\"bad\",\"label\":\"b\",\"table\":\"t\",\"outcome\":\"fuse\",\"error\":\"too "
        "many\",\"since\":\"2026-11-16T12:00:00Z\",\"lasted_s\":60.0,\"ticks\":2}\n"
        "{\"time\":\"2026-11-16T12:01:01Z\",\"level\":\"info\",\"event\":\"main.lifecycle_recovered\","
        "\"scheduler\":\"main\",\"message\":\"policy 'bad': went well again after 1m 1s, 2 ticks failed: too "
        "many\",\"policy\":\"bad\",\"label\":\"b\",\"table\":\"t\",\"outcome\":\"fuse\",\"error\":\"too "
        "many\",\"since\":\"2026-11-16T12:00:00Z\",\"lasted_s\":61.0,\"ticks\":2}\n");
    troubles_free(t);
}

static void test_the_same_error(void **state)
{
    (void)state;
    static const struct {
        const char *one, *other;
        bool same;
    } cases[] = {
        {"deadlock of process 12 and 13", "deadlock of process 99871 and 2", true},
        {"Key (id)=(42) is still referenced", "Key (id)=(abc, def) is still referenced", true},
        {"row id=wf-x, of t", "row id=wf-y, of t", true},
        {"key 3fa85f64-5717-4562-b3fc-2c963f66afa6 no", "key 9c858901-8a57-4791-81fe-4c455b099bc9 no", true},
        {"connection to 10.0.0.7, port 5432 failed", "connection to 10.0.0.12, port 6000 failed", true},
        {"postgresql 55P03: lock timeout", "postgresql 57014: canceled", false},
        {"relation a does not exist", "relation b does not exist", false},
        {"x=", "x=1", true},
        {"x=(", "x=(", true},
        {"", " ", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct troubles *t = troubles_new("main");
        struct said s = from(START);
        tick(t, both(OUTCOME_FAILED, cases[i].one), START, &s);
        text_release(&s.lines);
        tick(t, both(OUTCOME_FAILED, cases[i].other), START + S, &s);
        if ((s.lines.len == 0) != cases[i].same)
            fail_msg("%s / %s", cases[i].one, cases[i].other);
        done(&s, t);
    }
}

/* Two errors in turn: each once. A trouble of very many errors ends up saying none of them again. */
static void test_different_errors_are_said_once_each(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START);
    for (int i = 0; i < 50; i++)
        tick(t, both(OUTCOME_FAILED, i % 2 ? "one" : "other"), START + i * S, &s);
    heard(&s, "0 failed policy 'bad': other\n0 failed policy 'bad': one\n");
    for (int i = 0; i < 100; i++) {
        char word[3] = {(char)('a' + i % 26), (char)('a' + i / 26), 0};
        tick(t, both(OUTCOME_FAILED, word), START + 50 * S, &s);
    }
    size_t lines = 0;
    for (const char *c = text_str(&s.lines); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 14);
    done(&s, t);
}

static void test_outcomes_that_say_nothing(void **state)
{
    (void)state;
    static const enum outcome_kind kinds[] = {OUTCOME_STOPPED, OUTCOME_PAUSED, OUTCOME_HELD, OUTCOME_WINDOW};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct troubles *t = troubles_new("main");
        struct said s = from(START);
        assert_int_equal(tick(t, both(OUTCOME_FAILED, "x"), START, &s), 1);
        assert_int_equal(tick(t, both(kinds[i], "why"), START + M, &s), 0);
        assert_non_null(troubles_now(t, NULL));
        assert_int_equal(tick(t, both(OUTCOME_DONE, NULL), START + 2 * M, &s), 0);
        heard(&s, "0 failed policy 'bad': x\n"
                  "2 recovered policy 'bad': went well again after 2m, 1 tick failed: x\n");
        done(&s, t);
    }
}

static void test_what_is_off_or_gone_has_no_trouble(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START);
    tick(t, both(OUTCOME_FAILED, "x"), START, &s);
    tick(t, both(OUTCOME_DISABLED, NULL), START, &s);
    assert_null(troubles_now(t, NULL));
    tick(t, both(OUTCOME_REFUSED, "x"), START, &s);
    assert_non_null(troubles_now(t, NULL));
    struct report *r = report_new(REPORT_SWEEP, "sweep");
    report_add_policy(r, &good);
    tick(t, r, START, &s);
    assert_null(troubles_now(t, NULL));
    heard(&s, "0 failed policy 'bad': x\n0 failed policy 'bad': x\n");
    done(&s, t);
}

static struct report *no_database(const char *error)
{
    struct report *r = report_new(REPORT_ERROR, "sweep");
    r->error = error;
    r->unreachable = true;
    return r;
}

static void test_the_database_lost_and_back(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START);
    assert_int_equal(tick(t, both(OUTCOME_FAILED, "x"), START, &s), 1);
    heard(&s, "0 failed policy 'bad': x\n");
    for (int i = 0; i < 4; i++)
        assert_int_equal(tick(t, no_database("no route"), START + (2 + i) * M / 2, &s), 1);
    heard(&s, "1 failed no route\n2 still still failing after 1m, 3 ticks failed: no route\n");
    instant since;
    assert_string_equal(troubles_now(t, &since), "no route");
    assert_int_equal(since, START + M);
    assert_int_equal(tick(t, both(OUTCOME_DONE, NULL), START + 5 * M, &s), 0);
    heard(&s, "5 recovered went well again after 4m, 4 ticks failed: no route\n"
              "5 recovered policy 'bad': went well again after 5m, 1 tick failed: x\n");
    done(&s, t);
}

/* In mid-tick: a hundred policies that met with it are one error, and nothing is said of what they had. */
static void test_the_database_lost_in_a_tick(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START);
    tick(t, both(OUTCOME_FAILED, "x"), START, &s);
    heard(&s, "0 failed policy 'bad': x\n");
    struct report *r = both(OUTCOME_FAILED, "server closed the connection");
    r->policies[0].kind = OUTCOME_FAILED;
    r->policies[0].error = "server closed the connection, too";
    r->policies[0].unreachable = r->policies[1].unreachable = true;
    assert_int_equal(tick(t, r, START + M, &s), 1);
    heard(&s, "1 failed server closed the connection, too\n");
    assert_int_equal(tick(t, both(OUTCOME_HELD, NULL), START + 2 * M, &s), 0);
    heard(&s, "2 recovered went well again after 1m, 1 tick failed: server closed the connection, too\n");
    assert_string_equal(troubles_now(t, NULL), "policy 'bad': x");
    done(&s, t);
}

static void test_rows_that_stayed(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START);
    struct skipped_row rows[] = {{(char *)"id=7", "refused", (char *)"violates fk"},
                                 {(char *)"id=8", "refused", (char *)"violates fk"}};
    for (int i = 0; i < 3; i++) {
        struct report *r = both(OUTCOME_DONE, NULL);
        r->policies[1].skipped = rows + (i > 0);
        r->policies[1].n_skipped = i ? 1 : 2;
        assert_int_equal(tick(t, r, START + i * S, &s), 1);
    }
    heard(&s, "0 failed policy 'bad': rows that could not be deleted: 2; the first (refused), id=7: violates "
              "fk\n");
    struct report *r = both(OUTCOME_DONE, NULL);
    r->policies[0].unknown = 3;
    assert_int_equal(tick(t, r, START + 2 * S, &s), 1);
    heard(&s, "0 failed policy 'good': rows that may or may not be gone, because the connection broke in a "
              "commit: 3\n"
              "0 recovered policy 'bad': went well again after 2.0s, 3 ticks failed: rows that could not be "
              "deleted: 1; the first (refused), id=8: violates fk\n");
    done(&s, t);
}

static void test_a_clock_that_is_set_back(void **state)
{
    (void)state;
    struct troubles *t = troubles_new("main");
    struct said s = from(START - 10 * H);
    tick(t, both(OUTCOME_FAILED, "x"), START, &s);
    tick(t, both(OUTCOME_FAILED, "x"), START - 9 * H, &s);
    tick(t, both(OUTCOME_FAILED, "x"), START - 9 * H + M, &s);
    heard(&s, "600 failed policy 'bad': x\n"
              "61 still policy 'bad': still failing after 1m, 3 ticks failed: x\n");
    done(&s, t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fuse_is_said_once),
        cmocka_unit_test(test_two_days),
        cmocka_unit_test(test_seldom_ticks),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_the_same_error),
        cmocka_unit_test(test_different_errors_are_said_once_each),
        cmocka_unit_test(test_outcomes_that_say_nothing),
        cmocka_unit_test(test_what_is_off_or_gone_has_no_trouble),
        cmocka_unit_test(test_the_database_lost_and_back),
        cmocka_unit_test(test_the_database_lost_in_a_tick),
        cmocka_unit_test(test_rows_that_stayed),
        cmocka_unit_test(test_a_clock_that_is_set_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
