/* sweep: whole runs on real files: batches, bisection, retries, stopping. */
#include "sqlite_plan.h"

#include <sys/wait.h>

#include "sweep/sweep.h"

#define NOW  (INT64_C(1000000) * US_PER_S)
#define JOBS "table: jobs, expires: at_s"

/* --- a run and what it left ----------------------------------------------------------------------- */

static void make_jobs(struct file *f, int n)
{
    AUTO(text_release) struct text sql = {0};
    do_sql(f->sql, "CREATE TABLE jobs(id INTEGER PRIMARY KEY, at_s INTEGER, bad TEXT)");
    text_addf(&sql,
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
              "INSERT INTO jobs(id, at_s) SELECT i, i FROM n",
              n);
    do_sql(f->sql, text_str(&sql));
    do_sql(f->sql, "CREATE INDEX jobs_at ON jobs(at_s)");
}

static void refuse_bad(struct file *f)
{
    do_sql(f->sql, "CREATE TRIGGER loud BEFORE DELETE ON jobs WHEN old.bad = 'loud' "
                   "BEGIN SELECT RAISE(ABORT, 'not this one'); END");
    do_sql(f->sql, "CREATE TRIGGER quiet BEFORE DELETE ON jobs WHEN old.bad = 'quiet' "
                   "BEGIN SELECT RAISE(IGNORE); END");
}

/* What a test watches and decides while a run is under way. */
struct watch {
    int calls, most_calls; /* of progress; stops after most_calls of them, 0: never */
    int64_t rows[1000];    /* gone, at each call */
    int asked, most_asked; /* of stop; true from the most_asked-th on, 0: never */
    struct file *file;
    const char *sql_at_first; /* run at the first progress call */
};

static bool stop(void *context)
{
    struct watch *w = context;
    w->asked++;
    return (w->most_calls && w->calls >= w->most_calls) || (w->most_asked && w->asked >= w->most_asked);
}

static void progress(void *context, const struct plan *p, const struct outcome *so_far)
{
    struct watch *w = context;
    assert_true(w->calls < 1000);
    w->rows[w->calls++] = so_far->gone[p->root.slot];
    assert_true(so_far->duration_us >= 0);
    if (w->sql_at_first && w->calls == 1)
        do_sql(w->file->sql, w->sql_at_first);
}

/* Every test runs both ways: rows picked from a cursor on, and rows found by one reading, then locked by key.
 */
static bool examines;

static int setup_examining(void **state)
{
    examines = true;
    return file_setup(state);
}

static int setup_picking(void **state)
{
    examines = false;
    return file_setup(state);
}

/* How large batches are is for the test to say, not for the machine that it runs on. */
static void take_time(struct plan *p)
{
    static struct pace at_leisure = {.target = {SPAN_TIME, 600 * US_PER_S},
                                     .target_set = true,
                                     .rows_per_second = -1,
                                     .duty = 1,
                                     .lag = {SPAN_NEVER, INT64_MAX},
                                     .lag_bytes = -1};
    ((struct policy *)p->policy)->pace = &at_leisure;
}

static struct outcome run(struct file *f, const char *keys, struct watch *w)
{
    AUTO(planned_release) struct planned p = plan_on(f, keys, NOW);
    p.plan->examines = examines;
    take_time(p.plan);
    struct sweep_options options = {0};
    struct outcome out;
    if (w)
        options = (struct sweep_options){.stop = stop, .progress = progress, .context = w};
    outcome_init(&out, p.plan);
    sweep_run(f->store, p.plan, &options, &out);
    return out;
}

static void assert_outcome(const struct outcome *o, enum outcome_kind kind, int64_t gone)
{
    if (o->kind != kind)
        fail_msg("%s: %s", outcome_name(o->kind), o->err.text);
    assert_int_equal(o->gone[0], gone);
    assert_int_equal(o->unknown, 0);
}

/* The skipped rows, as "id=3 refused, id=7 refused". */
static void assert_skipped(const struct outcome *o, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    for (size_t i = 0; i < o->n_skipped; i++)
        text_addf(&out, "%s%s %s", i ? ", " : "", o->skipped[i].key, o->skipped[i].reason);
    assert_string_equal(text_str(&out), expected);
}

static int64_t jobs_left(struct file *f)
{
    return ask_number(f->sql, "SELECT count(*) FROM jobs");
}

/* --- batches -------------------------------------------------------------------------------------- */

static void a_run_goes_batch_by_batch(void **state)
{
    struct file *f = *state;
    struct watch w = {0};
    make_jobs(f, 25);
    do_sql(f->sql, "UPDATE jobs SET at_s = 2000000 WHERE id > 23");
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: 10", &w);
    assert_outcome(&o, OUTCOME_DONE, 23);
    assert_int_equal(o.batches, 3);
    assert_int_equal(o.retries, 0);
    assert_int_equal(o.left, 0);
    assert_skipped(&o, "");
    assert_int_equal(w.calls, 3);
    assert_true(w.rows[0] == 10 && w.rows[1] == 20 && w.rows[2] == 23);
    assert_int_equal(jobs_left(f), 2);
    assert_true(o.duration_us > 0);
}

static void nothing_due_is_done(void **state)
{
    struct file *f = *state;
    struct watch w = {0};
    make_jobs(f, 3);
    AUTO(outcome_release) struct outcome o = run(f, "table: jobs, age: at_s, keep: 90d", &w);
    assert_outcome(&o, OUTCOME_DONE, 0);
    assert_int_equal(o.batches, 0);
    assert_int_equal(w.calls, 0);
    AUTO(outcome_release) struct outcome never = run(f, "table: jobs, age: at_s, keep: never", NULL);
    assert_outcome(&never, OUTCOME_DONE, 0);
    assert_int_equal(jobs_left(f), 3);
}

static void batch_null_is_one_transaction(void **state)
{
    struct file *f = *state;
    struct watch w = {0};
    make_jobs(f, SLICE_ALL * 2 + 5);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: null", &w);
    assert_outcome(&o, OUTCOME_DONE, SLICE_ALL * 2 + 5);
    assert_int_equal(o.batches, 1);
    assert_int_equal(w.calls, 1);
    assert_int_equal(jobs_left(f), 0);
}

/* Rows that become due behind the cursor, before it, while the run is under way: one more look finds them. */
static void rows_that_appear_behind_the_cursor_are_found(void **state)
{
    struct file *f = *state;
    struct watch w = {.file = f, .sql_at_first = "INSERT INTO jobs VALUES (100, 0, NULL), (101, -5, NULL)"};
    make_jobs(f, 6);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: 4", &w);
    assert_outcome(&o, OUTCOME_DONE, 8);
    assert_int_equal(jobs_left(f), 0);
}

/* --- rows that cannot go --------------------------------------------------------------------------- */

/* More than one reading finds. */
static void finds_come_in_pages(void **state)
{
    struct file *f = *state;
    make_jobs(f, SCOUT_MOST + 10);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: 20000, pace: { target: 10m }", NULL);
    assert_outcome(&o, OUTCOME_DONE, SCOUT_MOST + 10);
    assert_int_equal(o.batches, examines ? 4 : 3);
    assert_int_equal(jobs_left(f), 0);
}

/* A row that was found and then changed, before its lock, stays. */
static void a_row_that_came_back_to_life_stays(void **state)
{
    struct file *f = *state;
    struct watch w = {.file = f, .sql_at_first = "UPDATE jobs SET at_s = 2000000 WHERE id IN (13, 25)"};
    make_jobs(f, 25);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: 10", &w);
    assert_outcome(&o, OUTCOME_DONE, 23);
    assert_int_equal(o.left, 0);
    assert_int_equal(ask_number(f->sql, "SELECT sum(id) FROM jobs"), 13 + 25);
}

static void each_bad_row_is_found_and_the_rest_goes(void **state)
{
    struct file *f = *state;
    make_jobs(f, 1000);
    refuse_bad(f);
    do_sql(f->sql, "UPDATE jobs SET bad = 'loud' WHERE id IN (1, 500, 501, 1000)");
    do_sql(f->sql, "UPDATE jobs SET bad = 'quiet' WHERE id IN (250, 999)");
    struct watch w = {0};
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: 1000", &w);
    assert_outcome(&o, OUTCOME_DONE, 994);
    assert_skipped(
        &o, "id=1 refused, id=250 refused, id=500 refused, id=501 refused, id=999 refused, id=1000 refused");
    assert_non_null(strstr(o.skipped[0].error, "not this one"));
    assert_string_equal(o.skipped[1].error, "1 row of jobs stayed: a trigger or a rule kept it");
    assert_int_equal(jobs_left(f), 6);
    assert_int_equal(o.left, 0);  /* they are named already */
    assert_true(o.batches < 120); /* halves, not single rows */
    for (int i = 1; i < w.calls; i++)
        assert_true(w.rows[i] > w.rows[i - 1]);
    /* again: the same six, nothing else */
    AUTO(outcome_release) struct outcome again = run(f, JOBS ", batch: 1000", NULL);
    assert_outcome(&again, OUTCOME_DONE, 0);
    assert_int_equal(again.n_skipped, 6);
}

static void a_bad_owned_row_keeps_its_owner_whole(void **state)
{
    struct file *f = *state;
    make_jobs(f, 10);
    do_sql(f->sql, "CREATE TABLE step(id INTEGER PRIMARY KEY, job INTEGER)");
    do_sql(f->sql,
           "INSERT INTO step SELECT id * 10 + 1, id FROM jobs UNION SELECT id * 10 + 2, id FROM jobs");
    do_sql(f->sql,
           "CREATE TRIGGER quiet BEFORE DELETE ON step WHEN old.id = 42 BEGIN SELECT RAISE(IGNORE); END");
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", with: [step(job)]", NULL);
    assert_int_equal(o.kind, OUTCOME_DONE);
    assert_true(o.gone[0] == 18 && o.gone[1] == 9);
    assert_skipped(&o, "id=4 refused");
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM step WHERE job = 4"), 2);
}

static void a_bad_row_does_not_stop_batch_null(void **state)
{
    struct file *f = *state;
    make_jobs(f, 500);
    refuse_bad(f);
    do_sql(f->sql, "UPDATE jobs SET bad = 'loud' WHERE id IN (3, 400)");
    do_sql(f->sql, "UPDATE jobs SET bad = 'quiet' WHERE id = 500");
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: null", NULL);
    assert_outcome(&o, OUTCOME_DONE, 497);
    assert_int_equal(o.batches, 1);
    assert_skipped(&o, "id=3 refused, id=400 refused, id=500 refused");
    assert_int_equal(jobs_left(f), 3);
}

static void too_many_bad_rows_end_the_policy(void **state)
{
    struct file *f = *state;
    make_jobs(f, 300);
    refuse_bad(f);
    do_sql(f->sql, "UPDATE jobs SET bad = 'loud' WHERE id BETWEEN 11 AND 210");
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: 50", NULL);
    assert_outcome(&o, OUTCOME_FAILED, 10);
    assert_int_equal(o.n_skipped, SKIPPED_MOST);
    assert_int_equal(o.err.kind, ERR_REFUSED);
    assert_non_null(strstr(o.err.text, "gave up after 100 rows that could not be deleted; the last: "));
    assert_non_null(strstr(o.err.text, "not this one"));
    assert_int_equal(jobs_left(f), 290); /* the batches before are committed */
    assert_int_equal(o.left, 0);         /* it did not get that far */
}

static void too_many_bad_rows_roll_batch_null_back(void **state)
{
    struct file *f = *state;
    make_jobs(f, 300);
    refuse_bad(f);
    do_sql(f->sql, "UPDATE jobs SET bad = 'quiet' WHERE id BETWEEN 11 AND 210");
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: null", NULL);
    assert_outcome(&o, OUTCOME_FAILED, 0);
    assert_int_equal(o.n_skipped, SKIPPED_MOST);
    assert_int_equal(o.batches, 0);
    assert_int_equal(jobs_left(f), 300);
}

static void ninety_nine_bad_rows_are_not_too_many(void **state)
{
    struct file *f = *state;
    make_jobs(f, 120);
    refuse_bad(f);
    do_sql(f->sql, "UPDATE jobs SET bad = 'loud' WHERE id <= 99");
    AUTO(outcome_release) struct outcome o = run(f, JOBS, NULL);
    assert_outcome(&o, OUTCOME_DONE, 21);
    assert_int_equal(o.n_skipped, 99);
}

static void another_error_fails_the_policy_at_once(void **state)
{
    struct file *f = *state;
    make_jobs(f, 10);
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    do_sql(f->sql, "ALTER TABLE jobs RENAME COLUMN at_s TO later");
    struct sweep_options none = {0};
    AUTO(outcome_release) struct outcome o;
    outcome_init(&o, p.plan);
    sweep_run(f->store, p.plan, &none, &o);
    assert_outcome(&o, OUTCOME_FAILED, 0);
    assert_int_equal(o.err.kind, ERR_DATABASE);
    assert_non_null(strstr(o.err.text, "at_s"));
    assert_int_equal(o.retries, 0);
}

/* --- stopping ---------------------------------------------------------------------------------------- */

static void a_run_stops_between_batches(void **state)
{
    struct file *f = *state;
    struct watch w = {.most_calls = 2};
    make_jobs(f, 100);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: 10", &w);
    assert_outcome(&o, OUTCOME_STOPPED, 20);
    assert_int_equal(o.err.kind, ERR_STOPPED);
    assert_int_equal(w.calls, 2);
    assert_int_equal(jobs_left(f), 80);
    AUTO(outcome_release) struct outcome rest = run(f, JOBS ", batch: 10", NULL);
    assert_outcome(&rest, OUTCOME_DONE, 80);
}

static void a_run_asked_to_stop_before_does_nothing(void **state)
{
    struct file *f = *state;
    struct watch w = {.most_asked = 1};
    make_jobs(f, 10);
    AUTO(outcome_release) struct outcome o = run(f, JOBS, &w);
    assert_outcome(&o, OUTCOME_STOPPED, 0);
    struct watch all = {.most_asked = 2};
    AUTO(outcome_release) struct outcome whole = run(f, JOBS ", batch: null", &all);
    assert_outcome(&whole, OUTCOME_STOPPED, 0);
    assert_int_equal(jobs_left(f), 10);
}

/* --- others at work ---------------------------------------------------------------------------------- */

/* A process that holds the file's write lock: from when this returns until it is released, or for so long. */
struct holder {
    pid_t pid;
    int release;
};

static struct holder hold_lock(const struct file *f, int ms)
{
    int ready[2], release[2];
    char go;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(release), 0);
    struct holder h = {.pid = fork(), .release = release[1]};
    if (h.pid == 0) {
        struct store *other = NULL;
        close(release[1]);
        if (store_sqlite.open(f->dsn, false, &other, NULL) == 0 &&
            try_sql((struct sql_store *)other, "BEGIN IMMEDIATE", NULL, NULL) == 0 &&
            write(ready[1], "x", 1) == 1) {
            if (ms)
                when_sleep_us(ms * US_PER_MS);
            else
                (void)!read(release[0], &go, 1);
        }
        _exit(0); /* as a process that was killed: nothing is closed in order */
    }
    close(ready[1]);
    close(release[0]);
    assert_int_equal(read(ready[0], &go, 1), 1);
    close(ready[0]);
    return h;
}

static void let_go(struct holder *h)
{
    int status;
    close(h->release);
    assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
}

static void a_busy_database_is_tried_again(void **state)
{
    struct file *f = *state;
    make_jobs(f, 30);
    struct holder h = hold_lock(f, 300);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: 10, timeouts: { lock: 50ms }", NULL);
    let_go(&h);
    assert_outcome(&o, OUTCOME_DONE, 30);
    assert_true(o.retries > 0);
    assert_true(o.batches >= 3); /* more where it then steps back */
    assert_skipped(&o, "");
}

static void a_busy_database_is_tried_again_with_batch_null(void **state)
{
    struct file *f = *state;
    make_jobs(f, 30);
    struct holder h = hold_lock(f, 300);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", batch: null, timeouts: { lock: 50ms }", NULL);
    let_go(&h);
    assert_outcome(&o, OUTCOME_DONE, 30);
    assert_true(o.retries > 0);
    assert_int_equal(o.batches, 1);
}

/* It gives up in the end, in the words of the database, with nothing done. */
static void a_database_that_stays_busy_fails_the_policy(void **state)
{
    struct file *f = *state;
    make_jobs(f, 30);
    struct holder h = hold_lock(f, 0);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", timeouts: { lock: 1ms }", NULL);
    let_go(&h);
    assert_outcome(&o, OUTCOME_FAILED, 0);
    assert_int_equal(o.err.kind, ERR_BUSY);
    assert_string_equal(o.err.code, "SQLITE_BUSY");
    assert_true(o.retries >= 5);
    assert_skipped(&o, "");
    assert_int_equal(jobs_left(f), 30);
}

static void waiting_for_a_lock_can_be_stopped(void **state)
{
    struct file *f = *state;
    struct watch w = {.most_asked = 6};
    make_jobs(f, 30);
    struct holder h = hold_lock(f, 0);
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", timeouts: { lock: 1ms }", &w);
    let_go(&h);
    assert_outcome(&o, OUTCOME_STOPPED, 0);
    assert_true(o.retries > 0 && o.retries < 8);
}

/* A row whose deletion takes too long is alone in the end; the others go. */
static void a_row_that_takes_too_long_is_skipped(void **state)
{
    struct file *f = *state;
    make_jobs(f, 16);
    do_sql(f->sql,
           "CREATE TRIGGER slow BEFORE DELETE ON jobs WHEN old.id = 5 BEGIN "
           "SELECT count(*) FROM jobs a, jobs b, jobs c, jobs d, jobs e, jobs f, jobs g, jobs h; END");
    AUTO(outcome_release) struct outcome o = run(f, JOBS ", timeouts: { statement: 150ms }", NULL);
    assert_outcome(&o, OUTCOME_DONE, 15);
    assert_skipped(&o, "id=5 timeout");
    assert_int_equal(jobs_left(f), 1);
}

/* --- others that are faster ------------------------------------------------------------------------- */

static int conflicts; /* so many transactions lose against others before one does not */
static const struct store_ops *real_ops;

static int begin_too_late(struct store *s, const struct plan *p, struct err *e)
{
    return conflicts-- > 0 ? err_set(e, ERR_CONFLICT, "another was faster") : real_ops->begin(s, p, e);
}

static struct outcome run_against(struct file *f, const char *keys, int n)
{
    real_ops = f->store->ops;
    struct store_ops ops = *real_ops;
    ops.begin = begin_too_late;
    conflicts = n;
    f->store->ops = &ops;
    struct outcome o = run(f, keys, NULL);
    f->store->ops = real_ops;
    return o;
}

static void others_that_are_faster_many_times_are_no_failure(void **state)
{
    struct file *f = *state;
    make_jobs(f, 25);
    AUTO(outcome_release) struct outcome o = run_against(f, JOBS ", batch: 10", 12);
    assert_outcome(&o, OUTCOME_DONE, 25);
    assert_int_equal(o.retries, 10); /* two were not tried again, but made smaller */
    assert_skipped(&o, "");
}

static void others_that_are_always_faster_are(void **state)
{
    struct file *f = *state;
    make_jobs(f, 5);
    AUTO(outcome_release) struct outcome o = run_against(f, JOBS ", batch: 2", 1000);
    assert_outcome(&o, OUTCOME_FAILED, 0);
    assert_int_equal(o.err.kind, ERR_CONFLICT);
    AUTO(outcome_release) struct outcome whole = run_against(f, JOBS ", batch: null", 1000);
    assert_outcome(&whole, OUTCOME_FAILED, 0);
    assert_int_equal(jobs_left(f), 5);
}

/* --- names and memory ------------------------------------------------------------------------------- */

static void outcomes_have_names(void **state)
{
    (void)state;
    assert_string_equal(outcome_name(OUTCOME_DONE), "done");
    assert_string_equal(outcome_name(OUTCOME_FAILED), "failed");
    assert_string_equal(outcome_name(OUTCOME_REFUSED), "refused");
    assert_string_equal(outcome_name(OUTCOME_DISABLED), "disabled");
    assert_string_equal(outcome_name(OUTCOME_STOPPED), "stopped");
    struct outcome o;
    outcome_init(&o, NULL);
    assert_null(o.gone);
    outcome_release(&o);
}

int main(void)
{
#define PICKING(name) cmocka_unit_test_setup_teardown(name, setup_picking, file_teardown)
#define TEST(name)                                                                                           \
    PICKING(name),                                                                                           \
    {                                                                                                        \
#name "_examining", name, setup_examining, file_teardown, NULL                                       \
    }
    const struct CMUnitTest tests[] = {
        TEST(a_run_goes_batch_by_batch),
        TEST(nothing_due_is_done),
        TEST(batch_null_is_one_transaction),
        PICKING(rows_that_appear_behind_the_cursor_are_found),
        TEST(finds_come_in_pages),
        TEST(a_row_that_came_back_to_life_stays),
        TEST(each_bad_row_is_found_and_the_rest_goes),
        TEST(a_bad_owned_row_keeps_its_owner_whole),
        TEST(a_bad_row_does_not_stop_batch_null),
        TEST(too_many_bad_rows_end_the_policy),
        TEST(too_many_bad_rows_roll_batch_null_back),
        TEST(ninety_nine_bad_rows_are_not_too_many),
        TEST(another_error_fails_the_policy_at_once),
        TEST(a_run_stops_between_batches),
        TEST(a_run_asked_to_stop_before_does_nothing),
        TEST(a_busy_database_is_tried_again),
        TEST(a_busy_database_is_tried_again_with_batch_null),
        TEST(a_database_that_stays_busy_fails_the_policy),
        TEST(waiting_for_a_lock_can_be_stopped),
        TEST(a_row_that_takes_too_long_is_skipped),
        TEST(others_that_are_faster_many_times_are_no_failure),
        PICKING(others_that_are_always_faster_are),
        cmocka_unit_test(outcomes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
