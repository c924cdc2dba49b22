/* Tests of src/watch/meter.c: the text that Prometheus reads, byte for byte; many threads at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "watch/meter.h"

#define L(...) ((const char *const[]){__VA_ARGS__})

static char *printed(struct meter *m)
{
    struct text t = {0};
    meter_print(m, &t);
    return t.data;
}

static void prints(struct meter *m, const char *line)
{
    AUTO(mem_free_p) char *all = printed(m);
    AUTO(text_release) struct text whole = {0};
    text_addf(&whole, "\n%s\n", line);
    if (!strstr(all, text_str(&whole)))
        fail_msg("no %s in\n%s", line, all);
}

static void prints_no(struct meter *m, const char *what)
{
    AUTO(mem_free_p) char *all = printed(m);
    if (strstr(all, what))
        fail_msg("%s in\n%s", what, all);
}

static void test_the_text(void **state)
{
    (void)state;
    struct meter *m = meter_new();
    meter_add(m, METRIC_PRUNE_ROWS, L("s", "b", "p"), 9007199254740991.0);
    meter_add(m, METRIC_PRUNE_ROWS, L("s", "a", "q"), 1);
    meter_add(m, METRIC_PRUNE_ROWS, L("s", "a", "p"), 2);
    meter_add(m, METRIC_PRUNE_ROWS, L("s", "a", "q"), 1);
    meter_set(m, METRIC_LAST_SUCCESS, L("s"), 1794830400.25);
    meter_set(m, METRIC_LEASE_HELD, L("s"), 1);
    meter_set(m, METRIC_LEASE_HELD, L("s"), 0);
    AUTO(mem_free_p) char *all = printed(m);
    assert_string_equal(
        all,
        "# HELP lifecycle_prune_rows_total Rows deleted, by the policy's label or the table that rows went "
        "along from; counted after commit.\n"
        "# TYPE lifecycle_prune_rows_total counter\n"
        "lifecycle_prune_rows_total{scheduler=\"s\",table=\"a\",policy=\"p\"} 2\n"
        "lifecycle_prune_rows_total{scheduler=\"s\",table=\"a\",policy=\"q\"} 2\n"
        "lifecycle_prune_rows_total{scheduler=\"s\",table=\"b\",policy=\"p\"} 9007199254740991\n"
        "# HELP lapse_last_success_timestamp_seconds When the last tick began in which nothing failed.\n"
        "# TYPE lapse_last_success_timestamp_seconds gauge\n"
        "lapse_last_success_timestamp_seconds{scheduler=\"s\"} 1794830400.25\n"
        "# HELP lapse_lease_held Whether this process holds the lease of an exclusive scheduler.\n"
        "# TYPE lapse_lease_held gauge\n"
        "lapse_lease_held{scheduler=\"s\"} 0\n"
        "# HELP lapse_build_info The version of lapse; always 1.\n"
        "# TYPE lapse_build_info gauge\n"
        "lapse_build_info{version=\"" LAPSE_VERSION "\"} 1\n");
    meter_free(m);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.0, "0"},
                 {0.1, "0.1"},
                 {1.0 / 3, "0.33333333333333331"},
                 {1e15, "1000000000000000"},
                 {1e300, "1e+300"},
                 {NAN, "NaN"},
                 {INFINITY, "+Inf"},
                 {-INFINITY, "-Inf"},
                 {-2.5, "-2.5"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct meter *m = meter_new();
        meter_set(m, METRIC_NEXT_TICK, L("s"), cases[i].x);
        AUTO(text_release) struct text line = {0};
        text_addf(&line, "lapse_next_tick_timestamp_seconds{scheduler=\"s\"} %s", cases[i].text);
        prints(m, text_str(&line));
        meter_free(m);
    }
}

static void test_labels_are_escaped(void **state)
{
    (void)state;
    struct meter *m = meter_new();
    meter_set(m, METRIC_DUE_ROWS, L("a\"b\\c\nd", "caf\xC3\xA9\xff"), 1);
    prints(m, "lapse_due_rows{scheduler=\"a\\\"b\\\\c\\nd\",table=\"caf\xC3\xA9\xEF\xBF\xBD\"} 1");
    meter_free(m);
}

static void test_histograms(void **state)
{
    (void)state;
    struct meter *m = meter_new();
    static const double seconds[] = {0, 0.001, 0.0011, 0.25, 60, 61};
    for (size_t i = 0; i < COUNT_OF(seconds); i++)
        meter_observe(m, METRIC_BATCH_SECONDS, L("s", "t"), seconds[i]);
#define B "lapse_batch_duration_seconds_bucket{scheduler=\"s\",table=\"t\",le="
    prints(m,
           B "\"0.001\"} 2\n" B "\"0.0025\"} 3\n" B "\"0.005\"} 3\n" B "\"0.01\"} 3\n" B "\"0.025\"} 3\n" B
             "\"0.05\"} 3\n" B "\"0.1\"} 3\n" B "\"0.25\"} 4\n" B "\"0.5\"} 4\n" B "\"1\"} 4\n" B
             "\"2.5\"} 4\n" B "\"5\"} 4\n" B "\"10\"} 4\n" B "\"30\"} 4\n" B "\"60\"} 5\n" B "\"+Inf\"} 6\n"
             "lapse_batch_duration_seconds_sum{scheduler=\"s\",table=\"t\"} 121.2521\n"
             "lapse_batch_duration_seconds_count{scheduler=\"s\",table=\"t\"} 6");
    meter_observe(m, METRIC_TICK_SECONDS, L("s"), 3600);
    prints(m, "lapse_tick_duration_seconds_bucket{scheduler=\"s\",le=\"900\"} 0\n"
              "lapse_tick_duration_seconds_bucket{scheduler=\"s\",le=\"3600\"} 1\n"
              "lapse_tick_duration_seconds_bucket{scheduler=\"s\",le=\"+Inf\"} 1");
    meter_free(m);
}

static void test_a_gauge_that_says_nothing_now(void **state)
{
    (void)state;
    struct meter *m = meter_new();
    meter_set(m, METRIC_DUE_ROWS, L("s", "a"), 1);
    meter_set(m, METRIC_DUE_ROWS, L("s", "b"), 2);
    meter_drop(m, METRIC_DUE_ROWS, L("s", "a"));
    meter_drop(m, METRIC_DUE_ROWS, L("s", "a"));
    meter_drop(m, METRIC_DUE_ROWS, L("s", "c"));
    prints_no(m, "table=\"a\"");
    prints(m, "lapse_due_rows{scheduler=\"s\",table=\"b\"} 2");
    meter_drop(m, METRIC_DUE_ROWS, L("s", "b"));
    prints_no(m, "lapse_due_rows");
    meter_free(m);
}

/* --- contracts ----------------------------------------------------------------------------------- */

static struct contract *contract_of(const char *yaml)
{
    struct contract *c = NULL;
    AUTO(arena_free_p) struct arena *a = arena_new();
    struct mistakes mistakes = {.arena = a};
    struct err e = ERR_INIT;
    if (contract_parse("t.yaml", yaml, strlen(yaml), &c, &mistakes, &e) < 0)
        fail_msg("%s", mistakes.n ? mistakes.list[0].text : e.text);
    return c;
}

#define STORE "store: sqlite:x.db\n"
static const char FIRST[] =
    STORE "schedulers: { main: { every: 1m }, only: { every: 1m, exclusive: true } }\n"
          "policies:\n"
          "  jobs: { scheduler: main, table: jobs, label: j, age: at, unit: s, keep: 1d,\n"
          "          with: [ app.steps(job_id), jobs(parent_id) ] }\n"
          "  leases: { scheduler: only, table: leases, expires: at_ms }\n";
static const char SECOND[] = STORE "schedulers: { only: { every: 1m } }\n"
                                   "policies:\n"
                                   "  leases: { table: leases, expires: at_ms }\n";

static void test_what_a_contract_expects(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = contract_of(FIRST), *d = contract_of(SECOND);
    struct meter *m = meter_new();
    meter_expect(m, c);
    prints(m,
           "lifecycle_prune_rows_total{scheduler=\"main\",table=\"app.steps\",policy=\"jobs\"} 0\n"
           "lifecycle_prune_rows_total{scheduler=\"main\",table=\"j\",policy=\"jobs\"} 0\n"
           "lifecycle_prune_rows_total{scheduler=\"only\",table=\"leases\",policy=\"leases\"} 0\n"
           "# HELP lifecycle_tick_errors_total Errors of ticks: policies that failed or were refused, rows "
           "that could not go, the database not there.\n"
           "# TYPE lifecycle_tick_errors_total counter\n"
           "lifecycle_tick_errors_total{scheduler=\"lapse\"} 0\n"
           "lifecycle_tick_errors_total{scheduler=\"main\"} 0\n"
           "lifecycle_tick_errors_total{scheduler=\"only\"} 0");
    prints(m, "lapse_tick_duration_seconds_count{scheduler=\"main\"} 0");
    prints(m, "lapse_rows_skipped_total{scheduler=\"main\",table=\"j\",reason=\"locked\"} 0\n"
              "lapse_rows_skipped_total{scheduler=\"main\",table=\"j\",reason=\"refused\"} 0\n"
              "lapse_rows_skipped_total{scheduler=\"main\",table=\"j\",reason=\"timeout\"} 0\n"
              "lapse_rows_skipped_total{scheduler=\"main\",table=\"j\",reason=\"too_heavy\"} 0\n"
              "lapse_rows_skipped_total{scheduler=\"only\",table=\"leases\",reason=\"locked\"} 0");
    prints(m, "lapse_lease_held{scheduler=\"only\"} 0");
    prints_no(m, "lapse_lease_held{scheduler=\"main\"}");

    meter_add(m, METRIC_PRUNE_ROWS, L("main", "j", "jobs"), 3);
    meter_set(m, METRIC_DUE_ROWS, L("main", "j"), 3);
    meter_set(m, METRIC_DUE_ROWS, L("only", "leases"), 4);
    meter_set(m, METRIC_NEXT_TICK, L("main"), 5);
    meter_set(m, METRIC_NEXT_TICK, L("only"), 6);
    meter_set(m, METRIC_PURGES_PENDING, L("space"), 7);
    meter_expect(m, c);
    prints(m, "lifecycle_prune_rows_total{scheduler=\"main\",table=\"j\",policy=\"jobs\"} 3");
    prints_no(m, "lapse_purges_pending");
    meter_expect(m, d);
    prints(m, "lifecycle_prune_rows_total{scheduler=\"main\",table=\"j\",policy=\"jobs\"} 3");
    prints_no(m, "lapse_due_rows{scheduler=\"main\"");
    prints(m, "lapse_due_rows{scheduler=\"only\",table=\"leases\"} 4");
    prints_no(m, "lapse_next_tick_timestamp_seconds{scheduler=\"main\"");
    prints(m, "lapse_next_tick_timestamp_seconds{scheduler=\"only\"} 6");
    prints_no(m, "lapse_lease_held");
    prints(m, "lapse_build_info{version=\"" LAPSE_VERSION "\"} 1");
    meter_free(m);
}

/* --- ticks --------------------------------------------------------------------------------------- */

static struct policy jobs = {
    .name = "jobs", .label = "j", .scheduler = "main", .table = {.table = {.text = "jobs"}}};
static struct policy other = {
    .name = "other", .label = "o", .scheduler = "main", .table = {.table = {.text = "other"}}};
static const char *tables[] = {"app.steps", "app.jobs"}, *labels[] = {"steps", "?"};
static int64_t gone[] = {30, 12};
static struct skipped_row skipped[] = {{(char *)"id=1", "refused", (char *)"no"},
                                       {(char *)"id=2", "refused", (char *)"no"},
                                       {(char *)"id=3", "news", (char *)"no"}};

static struct report *a_tick(enum report_kind kind, enum outcome_kind outcome)
{
    struct report *r = report_new(kind, "sweep");
    struct report_policy *p = report_add_policy(r, &jobs);
    p->kind = outcome;
    p->tables = tables;
    p->labels = labels;
    p->n_tables = 2;
    p->gone = outcome == OUTCOME_HELD ? (int64_t[]){0, 0} : gone;
    r->now = 1794830400 * US_PER_S;
    r->duration_us = 20 * US_PER_MS;
    if (outcome == OUTCOME_HELD)
        p->n_tables = 0;
    else
        report_add_policy(r, &other);
    return r;
}

static void test_a_tick(void **state)
{
    (void)state;
    struct meter *m = meter_new();
    struct report *r = a_tick(REPORT_SWEEP, OUTCOME_DONE);
    meter_tick(m, r, "main");
    meter_tick(m, r, "main");
    prints_no(m, "lifecycle_prune_rows_total"); /* its batches were counted as they went */
    prints(m, "lapse_tick_duration_seconds_bucket{scheduler=\"main\",le=\"0.01\"} 0\n"
              "lapse_tick_duration_seconds_bucket{scheduler=\"main\",le=\"0.025\"} 2");
    prints(m, "lapse_last_success_timestamp_seconds{scheduler=\"main\"} 1794830400");
    prints_no(m, "lapse_rows_skipped_total");
    r->now += US_PER_S;
    r->policies[0].skipped = skipped;
    r->policies[0].n_skipped = 3;
    meter_tick(m, r, "main");
    prints(m, "lapse_rows_skipped_total{scheduler=\"main\",table=\"j\",reason=\"other\"} 1\n"
              "lapse_rows_skipped_total{scheduler=\"main\",table=\"j\",reason=\"refused\"} 2");
    prints(m, "lapse_last_success_timestamp_seconds{scheduler=\"main\"} 1794830400");
    report_free(r);
    meter_free(m);
}

static void test_ticks_that_are_no_success(void **state)
{
    (void)state;
    static const enum outcome_kind kinds[] = {OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_STOPPED, OUTCOME_FUSE,
                                              OUTCOME_HELD};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct meter *m = meter_new();
        struct report *r = a_tick(REPORT_SWEEP, kinds[i]);
        meter_tick(m, r, "main");
        prints_no(m, "lapse_last_success");
        if (kinds[i] == OUTCOME_HELD)
            prints_no(m, "lapse_tick_duration_seconds");
        else
            prints(m, "lapse_tick_duration_seconds_count{scheduler=\"main\"} 1");
        report_free(r);
        meter_free(m);
    }
    struct meter *m = meter_new();
    struct report *r = report_new(REPORT_ERROR, "sweep");
    r->error = "no database";
    meter_tick(m, r, "main");
    prints_no(m, "lapse_last_success");
    report_free(r);
    r = a_tick(REPORT_PLAN, OUTCOME_DONE); /* what is due is not gone */
    meter_tick(m, r, "main");
    prints_no(m, "lifecycle_prune_rows_total");
    prints(m, "lapse_last_success_timestamp_seconds{scheduler=\"main\"} 1794830400");
    report_free(r);
    meter_free(m);
}

static void test_batches(void **state)
{
    (void)state;
    struct meter *m = meter_new();
    struct report *r = a_tick(REPORT_SWEEP, OUTCOME_DONE);
    meter_batch(m, &r->policies[0], gone, 3 * US_PER_MS);
    meter_batch(m, &r->policies[0], (int64_t[]){0, 1}, 2 * US_PER_MS);
    prints(m, "lapse_batch_duration_seconds_sum{scheduler=\"main\",table=\"j\"} 0.005");
    prints(m, "lifecycle_prune_rows_total{scheduler=\"main\",table=\"j\",policy=\"jobs\"} 13\n"
              "lifecycle_prune_rows_total{scheduler=\"main\",table=\"steps\",policy=\"jobs\"} 30");
    report_free(r);
    meter_free(m);
}

/* --- threads ------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 500 };

static void *count_much(void *meter)
{
    struct meter *m = meter;
    const struct report_policy nothing = {.policy = &jobs};
    for (int i = 0; i < ROUNDS; i++) {
        char table[20];
        snprintf(table, sizeof(table), "t%d", i % 50);
        meter_add(m, METRIC_PRUNE_ROWS, L("s", table, "p"), 1);
        meter_batch(m, &nothing, NULL, i);
        meter_set(m, METRIC_DUE_ROWS, L("s", table), i);
        if (i % 3 == 0)
            meter_drop(m, METRIC_DUE_ROWS, L("s", table));
        if (i % 50 == 0) {
            struct text t = {0};
            meter_print(m, &t);
            text_release(&t);
        }
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct meter *m = meter_new();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_much, m), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    prints(m, "lifecycle_prune_rows_total{scheduler=\"s\",table=\"t0\",policy=\"p\"} 40");
    prints(m, "lapse_batch_duration_seconds_count{scheduler=\"main\",table=\"j\"} 2000");
    meter_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_text),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_labels_are_escaped),
        cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_a_gauge_that_says_nothing_now),
        cmocka_unit_test(test_what_a_contract_expects),
        cmocka_unit_test(test_a_tick),
        cmocka_unit_test(test_ticks_that_are_no_success),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
