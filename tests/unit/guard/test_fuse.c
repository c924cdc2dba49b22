/* fuse: limits in rows, verdicts, words; on a real file. */
#include "guard/fuse.h"

#include "sqlite_plan.h"

#define NOW  (INT64_C(1000) * US_PER_S)
#define JOBS "table: jobs, expires: at_s, limits: "

static void fractions_are_exact(void **state)
{
    (void)state;
    /* Every fraction of two digits, of tables where it is a whole number of rows: that number is allowed. */
    for (int64_t size = 100; size <= 1000000; size *= 10)
        for (int percent = 1; percent <= 100; percent++) {
            struct limits l = {.rows = -1, .fraction = percent / 100.0};
            assert_int_equal(fuse_most(&l, size), size / 100 * percent);
        }
    struct limits third = {.rows = -1, .fraction = 0.33}, both = {.rows = 7, .fraction = 0.5},
                  rows = {.rows = 7, .fraction = -1};
    assert_int_equal(fuse_most(&third, 3), 0);
    assert_int_equal(fuse_most(&third, 4), 1);
    assert_int_equal(fuse_most(&third, 0), 0);
    assert_int_equal(fuse_most(&both, 10), 5);
    assert_int_equal(fuse_most(&both, 100), 7);
    assert_int_equal(fuse_most(&rows, 0), 7);
}

static void make_jobs(struct file *f, int n)
{
    struct err e = ERR_INIT;
    int from;
    AUTO(text_release) struct text sql = {0};
    do_sql(f->sql, "CREATE TABLE jobs (id INTEGER PRIMARY KEY, at_s INTEGER, up INTEGER REFERENCES jobs)");
    do_sql(f->sql, "CREATE INDEX jobs_up ON jobs (up)");
    text_addf(&sql,
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
              "INSERT INTO jobs SELECT i, 0, NULL FROM n",
              n);
    do_sql(f->sql, text_str(&sql));
    if (f->store->ops->own->install(f->store, &from, &e) < 0)
        fail_msg("%s", e.text);
}

static struct fuse judge(struct file *f, const char *keys, int64_t due)
{
    AUTO(planned_release) struct planned p = plan_on(f, keys, NOW);
    struct err e = ERR_INIT;
    struct fuse ret = {0};
    if (fuse_judge(f->store, p.plan, due, &ret, &e) < 0)
        fail_msg("%s", e.text);
    return ret;
}

static void counting_stops_where_it_is_enough(void **state)
{
    struct file *f = *state;
    make_jobs(f, 10);
    struct fuse holds = judge(f, JOBS "{ rows: 10 }", -1), trips = judge(f, JOBS "{ rows: 3 }", -1),
                known = judge(f, JOBS "{ rows: 3 }", 10), part = judge(f, JOBS "{ fraction: 0.9 }", -1);
    assert_true(holds.verdict == FUSE_HOLDS && holds.due == 10 && !holds.at_least);
    assert_true(trips.verdict == FUSE_WOULD_TRIP && trips.due == 4 && trips.at_least);
    assert_true(known.verdict == FUSE_WOULD_TRIP && known.due == 10 && !known.at_least);
    assert_true(part.verdict == FUSE_WOULD_TRIP && part.most == 9);
}

static void rows_below_count(void **state)
{
    struct file *f = *state;
    make_jobs(f, 4);
    do_sql(f->sql, "UPDATE jobs SET up = id - 1, at_s = 2000000 WHERE id > 1");
    assert_int_equal(judge(f, JOBS "{ rows: 3 }", -1).verdict, FUSE_HOLDS);
    struct fuse tree = judge(f, JOBS "{ rows: 3 }, with: [jobs(up)]", -1);
    assert_true(tree.verdict == FUSE_WOULD_TRIP && tree.due == 4);
}

static void verdicts_follow_what_is_kept(void **state)
{
    struct file *f = *state;
    make_jobs(f, 10);
    AUTO(planned_release) struct planned p = plan_on(f, JOBS "{ rows: 3 }", NOW);
    struct err e = ERR_INIT;
    struct fuse first, later;
    AUTO(text_release) struct text words = {0};
    assert_int_equal(fuse_judge(f->store, p.plan, -1, &first, &e), 0);
    assert_int_equal(fuse_trip(f->store, p.plan, &first, 4, &e), 0);
    assert_int_equal(judge(f, JOBS "{ rows: 3 }", -1).verdict, FUSE_TRIPPED);
    assert_int_equal(judge(f, JOBS "{ rows: 30 }", -1).verdict, FUSE_HOLDS);
    assert_int_equal(judge(f, JOBS "{ rows: 4 }", -1).verdict, FUSE_WOULD_TRIP);
    later = judge(f, JOBS "{ rows: 3 }", -1);
    fuse_words(p.plan, &later, &words);
    assert_non_null(strstr(text_str(&words), "lapse ack p"));
    assert_int_equal(f->store->ops->own->fuse_ack(f->store, "p", first.hash, &(struct deed){{0}, {0}}, &e),
                     0);
    later = judge(f, JOBS "{ rows: 3 }", -1);
    assert_int_equal(later.verdict, FUSE_ACKED);
    assert_int_equal(fuse_use(f->store, p.plan, &first, &e), 0); /* it was not acknowledged then */
    assert_int_equal(judge(f, JOBS "{ rows: 3 }", -1).verdict, FUSE_ACKED);
    assert_int_equal(fuse_use(f->store, p.plan, &later, &e), 0);
    assert_int_equal(judge(f, JOBS "{ rows: 3 }", -1).verdict, FUSE_WOULD_TRIP);
}

static void words_say_what_is_allowed(void **state)
{
    struct file *f = *state;
    make_jobs(f, 10);
    AUTO(planned_release) struct planned p = plan_on(f, JOBS "{ rows: 8, fraction: 0.5 }", NOW);
    struct err e = ERR_INIT;
    struct fuse v;
    AUTO(text_release) struct text words = {0};
    assert_int_equal(fuse_judge(f->store, p.plan, -1, &v, &e), 0);
    fuse_words(p.plan, &v, &words);
    assert_string_equal(text_str(&words),
                        "the fuse would trip: 6 rows or more would go, and a run may delete 5, 0.5 of jobs");
    v.verdict = FUSE_HOLDS;
    text_clear(&words);
    fuse_words(p.plan, &v, &words);
    assert_string_equal(text_str(&words), "");
    assert_string_equal(fuse_verdict_name(FUSE_WOULD_TRIP), "would_trip");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fractions_are_exact),
        TEST(counting_stops_where_it_is_enough),
        TEST(rows_below_count),
        TEST(verdicts_follow_what_is_kept),
        TEST(words_say_what_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
