/* history: the row of a run on a real file: when it is written, and what it says. */
#include "record/history.h"

#include "sqlite_file.h"

static void install(struct file *f)
{
    struct err e = ERR_INIT;
    int from;
    if (f->store->ops->own->install(f->store, &from, &e) < 0)
        fail_msg("%s", e.text);
}

static struct history begun(struct file *f)
{
    struct history h;
    history_open(&h, f->store, "often", "daemon", "host:1:x", 1000 * US_PER_S);
    return h;
}

static struct run_row only(struct file *f, struct run_rows *all)
{
    struct err e = ERR_INIT;
    if (f->store->ops->own->runs(f->store, NULL, 10, all, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(all->n, 1);
    return all->list[0];
}

static int64_t written(struct file *f)
{
    return ask_number(f->sql, "SELECT count(*) FROM lapse_run");
}

static void add(struct history *h, const char *outcome, const char *error, int64_t rows)
{
    const char *labels[] = {"part", "job"};
    const int64_t gone[] = {rows * 2, rows};
    history_add(h, &(struct history_part){.policy = "p",
                                          .outcome = outcome,
                                          .error = error,
                                          .labels = labels,
                                          .gone = gone,
                                          .n = 2,
                                          .batches = 1});
}

static void nothing_is_kept_without_a_place(void **state)
{
    struct file *f = *state;
    const char *fix;
    AUTO(text_release) struct text excuse = {0};
    AUTO(history_release) struct history h = begun(f);
    history_begin(&h);
    add(&h, "done", NULL, 3);
    history_end(&h, 1001 * US_PER_S);
    assert_false(h.kept || h.written);
    assert_int_equal(h.trouble.kind, ERR_NONE);
    history_excuse(f->store, &excuse);
    assert_string_equal(text_str(&excuse), "no history is kept: lapse's own tables are not installed");
    f->store->own.version = OWN_SINCE_RUNS - 1;
    assert_non_null(strstr(history_obstacle(f->store, &fix), "earlier version"));
    assert_string_equal(fix, "run lapse install");
    f->store->own.version = OWN_SINCE_RUNS;
    assert_string_equal(history_obstacle(f->store, &fix), "");
    snprintf(f->store->own.lacks_runs, sizeof(f->store->own.lacks_runs), "INSERT on x");
    snprintf(f->store->own.hint, sizeof(f->store->own.hint), "what to do");
    text_clear(&excuse);
    history_excuse(f->store, &excuse);
    assert_string_equal(text_str(&excuse), "no history is kept: this user lacks INSERT on x (what to do)");
}

static void it_says_running_until_its_end(void **state)
{
    struct file *f = *state;
    install(f);
    AUTO(history_release) struct history h = begun(f);
    assert_int_equal(written(f), 0);
    history_begin(&h);
    AUTO(run_rows_release) struct run_rows first = {0};
    struct run_row row = only(f, &first);
    assert_string_equal(row.outcome, "running");
    assert_false(row.ended);
    assert_string_equal(row.scheduler, "often");
    assert_string_equal(row.source, "daemon");
    assert_string_equal(row.owner, "host:1:x");
    assert_true(row.started == 1000 * US_PER_S && row.rows == 0);
    add(&h, "failed", "no\xc5 way", 3);
    AUTO(run_rows_release) struct run_rows second = {0};
    row = only(f, &second);
    assert_string_equal(row.outcome, "running");
    assert_string_equal(row.counts, "{\"part\":6,\"job\":3}");
    assert_true(row.rows == 9 && row.errors == 1 && !row.ended);
    history_end(&h, 1005 * US_PER_S);
    AUTO(run_rows_release) struct run_rows third = {0};
    row = only(f, &third);
    assert_string_equal(row.outcome, "failed");
    assert_string_equal(row.error, "no? way");
    assert_true(row.ended && row.ended_at == 1005 * US_PER_S);
    assert_int_equal(h.trouble.kind, ERR_NONE);
}

static void nothing_due_is_one_writing(void **state)
{
    struct file *f = *state;
    install(f);
    AUTO(history_release) struct history h = begun(f);
    add(&h, "done", NULL, 0);
    add(&h, "disabled", NULL, 0);
    assert_int_equal(written(f), 0);
    history_end(&h, 900 * US_PER_S); /* a clock that went back */
    AUTO(run_rows_release) struct run_rows all = {0};
    struct run_row row = only(f, &all);
    assert_string_equal(row.outcome, "done");
    assert_string_equal(row.counts, "{}");
    assert_null(row.error);
    assert_true(row.ended_at == row.started);
}

static void a_lease_held_elsewhere_leaves_nothing(void **state)
{
    struct file *f = *state;
    install(f);
    AUTO(history_release) struct history h = begun(f);
    add(&h, "held_elsewhere", "by x", 0);
    history_end(&h, 1001 * US_PER_S);
    assert_int_equal(written(f), 0);
    AUTO(history_release) struct history other = begun(f);
    add(&other, "held_elsewhere", "by x", 0);
    add(&other, "failed", "y", 0);
    history_end(&other, 1001 * US_PER_S);
    assert_int_equal(written(f), 1);
}

static void the_gravest_counts(void **state)
{
    struct file *f = *state;
    static const char *const order[] = {"done",    "window",  "budget", "paused",
                                        "stopped", "refused", "fuse",   "failed"};
    install(f);
    for (size_t i = 0; i + 1 < COUNT_OF(order); i++) {
        AUTO(history_release) struct history h = begun(f);
        add(&h, order[i + 1], "why", 0);
        add(&h, order[i], "less", 0);
        history_end(&h, 1001 * US_PER_S);
        assert_string_equal(h.row.outcome, order[i + 1]);
        assert_int_equal(h.row.errors, (i + 1 > 4) + (i > 4));
        assert_true(i + 1 > 4 ? !strcmp(h.row.error, "why") : !h.row.error);
    }
    AUTO(history_release) struct history h = begun(f);
    history_fail(&h, "what?", "odd");
    history_end(&h, 1001 * US_PER_S);
    assert_string_equal(h.row.outcome, "failed");
    assert_int_equal(h.row.errors, 1);
}

static void a_row_that_cannot_be_written_is_trouble_until_it_can(void **state)
{
    struct file *f = *state;
    install(f);
    do_sql(f->sql,
           "CREATE TRIGGER no BEFORE INSERT ON lapse_run BEGIN SELECT raise(ABORT, 'not today'); END");
    AUTO(history_release) struct history h = begun(f);
    history_begin(&h);
    assert_non_null(strstr(h.trouble.text, "not today"));
    assert_false(h.written);
    do_sql(f->sql, "DROP TRIGGER no");
    add(&h, "done", NULL, 4);
    assert_int_equal(h.trouble.kind, ERR_NONE);
    history_end(&h, 1001 * US_PER_S);
    AUTO(run_rows_release) struct run_rows all = {0};
    assert_int_equal(only(f, &all).rows, 12);
}

static void labels_are_summed(void **state)
{
    struct file *f = *state;
    install(f);
    AUTO(text_release) struct text counts = {0};
    AUTO(history_release) struct history h = begun(f);
    add(&h, "done", NULL, 1);
    const char *labels[] = {"job", "\xc3\xa9"};
    const int64_t gone[] = {5, 1};
    history_add(&h, &(struct history_part){.outcome = "done", .labels = labels, .gone = gone, .n = 2});
    history_counts_json(&h, &counts);
    assert_string_equal(text_str(&counts), "{\"part\":2,\"job\":6,\"\\u00E9\":1}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_kept_without_a_place),
        TEST(it_says_running_until_its_end),
        TEST(nothing_due_is_one_writing),
        TEST(a_lease_held_elsewhere_leaves_nothing),
        TEST(the_gravest_counts),
        TEST(a_row_that_cannot_be_written_is_trouble_until_it_can),
        TEST(labels_are_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
