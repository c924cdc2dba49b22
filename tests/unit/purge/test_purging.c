/* purging: whole runs on a real file: what is due, several batches, stopping, brakes, failures. */
#include "purge/purging.h"

#include "sqlite_file.h"

struct fixture {
    struct file *file;
    struct contract *contract;
    struct facts *facts;
    struct purge_plan *plan;
    struct arena *arena;
    instant now;
    int done, stop_after; /* 0: never */
    int64_t rows;
};

static void executed(void *context, const struct purge_done *d)
{
    struct fixture *x = context;
    x->done++;
    x->rows += d->rows;
}

static bool stop(void *context)
{
    const struct fixture *x = context;
    return x->stop_after && x->done >= x->stop_after;
}

static void open_fixture(struct fixture *x, struct file *f)
{
    struct err e = ERR_INIT;
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    static const char yaml[] = "store: sqlite:x\npurges: { job: { only: [x, y], retention: { y: 1h }, "
                               "erases: [step(job), jobs(id)] } }";
    int from;
    *x = (struct fixture){.file = f, .arena = arena_new()};
    do_sql(f->sql, "CREATE TABLE jobs(id TEXT PRIMARY KEY)");
    do_sql(f->sql, "CREATE TABLE step(job TEXT)");
    assert_int_equal(f->store->ops->own->install(f->store, &from, &e), 0);
    assert_int_equal(f->store->ops->own->look(f->store, &e), 0);
    assert_int_equal(contract_parse("x", yaml, sizeof(yaml) - 1, &x->contract, &mistakes, &e), 0);
    struct findings found = {.arena = x->arena};
    struct table_names names = {0};
    purge_tables(&x->contract->purges[0], x->arena, &names);
    assert_int_equal(f->store->ops->inspect(f->store, &names, &x->facts, &e), 0);
    assert_int_equal(f->store->ops->now(f->store, &x->now, &e), 0);
    x->plan = purge_plan_make(&x->contract->purges[0], x->facts, x->now, &found);
    assert_non_null(x->plan);
}

static void close_fixture(struct fixture *x)
{
    purge_plan_free(x->plan);
    facts_free(x->facts);
    contract_free(x->contract);
    arena_free(x->arena);
}

/* n jobs, two minutes ago. */
static void schedule(struct fixture *x, int n, const char *reason)
{
    AUTO(text_release) struct text sql = {0};
    text_addf(&sql,
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
              "INSERT INTO lapse_purge (space, instance, reason, scheduled_at) SELECT 'job', 'j' || i, '%s', "
              "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-120 seconds') FROM n",
              n, reason);
    do_sql(x->file->sql, text_str(&sql));
    do_sql(x->file->sql, "INSERT OR IGNORE INTO jobs SELECT instance FROM lapse_purge");
    do_sql(x->file->sql, "INSERT INTO step SELECT id FROM jobs WHERE id NOT IN (SELECT job FROM step)");
}

static struct purging_outcome run(struct fixture *x)
{
    struct err e = ERR_INIT;
    struct purging_outcome out;
    AUTO(purging_look_release) struct purging_look look = {0};
    const struct purging_options o = {stop, executed, x};
    struct store *s = x->file->store;
    assert_int_equal(purging_look(s, x->plan->space, x->now, NULL, &look, &e), 0);
    purging_run(s, x->plan, &look.groups, x->now, &o, &out);
    return out;
}

static int64_t count(struct fixture *x, const char *table)
{
    AUTO(text_release) struct text sql = {0};
    text_addf(&sql, "SELECT count(*) FROM %s", table);
    return ask_number(x->file->sql, text_str(&sql));
}

static void all_that_is_due_goes(void **state)
{
    AUTO(close_fixture) struct fixture x;
    open_fixture(&x, *state);
    schedule(&x, 2500, "x");
    struct purging_outcome out = run(&x);
    assert_int_equal(out.kind, PURGING_DONE);
    assert_int_equal(out.executed, 2500);
    assert_int_equal(x.done, 2500);
    assert_int_equal(out.rows, 5000);
    assert_int_equal(x.rows, 5000);
    assert_true(out.batches >= 2);
    assert_int_equal(count(&x, "lapse_purge") + count(&x, "jobs") + count(&x, "step"), 0);
}

static void when_the_next_is_due(void **state)
{
    AUTO(close_fixture) struct fixture x;
    struct err e = ERR_INIT;
    open_fixture(&x, *state);
    AUTO(purging_look_release) struct purging_look nothing = {0}, later = {0}, due = {0};
    assert_int_equal(purging_look(x.file->store, x.plan->space, x.now, NULL, &nothing, &e), 0);
    assert_false(nothing.due);
    assert_int_equal(nothing.next, INT64_MAX);
    schedule(&x, 3, "y");
    assert_int_equal(purging_look(x.file->store, x.plan->space, x.now, NULL, &later, &e), 0);
    assert_false(later.due);
    assert_in_range((later.next - x.now) / US_PER_S, 3600 - 125, 3600 - 115);
    assert_int_equal(run(&x).executed, 0);
    x.now = later.next;
    assert_int_equal(purging_look(x.file->store, x.plan->space, x.now, NULL, &due, &e), 0);
    assert_true(due.due);
    assert_int_equal(run(&x).executed, 3);
}

static void it_stops_when_asked(void **state)
{
    AUTO(close_fixture) struct fixture x;
    open_fixture(&x, *state);
    schedule(&x, 2500, "x");
    x.stop_after = 1;
    struct purging_outcome out = run(&x);
    assert_int_equal(out.kind, PURGING_STOPPED);
    assert_in_range(out.executed, 1, 2499);
    assert_int_equal(count(&x, "jobs"), 2500 - out.executed);
    assert_int_equal(count(&x, "lapse_purge"), 2500 - out.executed);
}

static void a_brake_stops_it(void **state)
{
    AUTO(close_fixture) struct fixture x;
    struct err e = ERR_INIT;
    open_fixture(&x, *state);
    schedule(&x, 3, "x");
    assert_int_equal(x.file->store->ops->own->brake(x.file->store, "", NULL, &(struct deed){{0}, {0}}, &e),
                     0);
    assert_int_equal(run(&x).kind, PURGING_PAUSED);
    assert_int_equal(count(&x, "jobs"), 3);
}

static void one_that_is_refused_is_put_off(void **state)
{
    AUTO(close_fixture) struct fixture x;
    open_fixture(&x, *state);
    schedule(&x, 200, "x");
    do_sql(x.file->sql, "CREATE TRIGGER no BEFORE DELETE ON jobs WHEN old.id IN ('j7', 'j150') "
                        "BEGIN SELECT RAISE(ABORT, 'not this one'); END");
    struct purging_outcome out = run(&x);
    assert_int_equal(out.kind, PURGING_DONE);
    assert_int_equal(out.executed, 198);
    assert_int_equal(out.retried, 2);
    assert_non_null(strstr(out.trouble, "not this one"));
    assert_int_equal(ask_number(x.file->sql, "SELECT count(*) FROM lapse_purge WHERE attempts = 1 AND "
                                             "retry_at IS NOT NULL AND instance IN ('j7', 'j150')"),
                     2);
    assert_int_equal(count(&x, "step"), 2);
    assert_int_equal(run(&x).executed, 0);
}

static void reasons_that_do_not_count(void **state)
{
    AUTO(close_fixture) struct fixture x;
    open_fixture(&x, *state);
    schedule(&x, 5, "z");
    struct purging_outcome out = run(&x);
    assert_int_equal(out.removed, 5);
    assert_int_equal(out.executed, 0);
    assert_int_equal(count(&x, "jobs"), 5);
    assert_int_equal(count(&x, "lapse_purge"), 0);
}

static void a_broken_table_fails_the_space(void **state)
{
    AUTO(close_fixture) struct fixture x;
    open_fixture(&x, *state);
    schedule(&x, 3, "x");
    do_sql(x.file->sql, "DROP TABLE step");
    struct purging_outcome out = run(&x);
    assert_int_equal(out.kind, PURGING_FAILED);
    assert_int_equal(count(&x, "jobs"), 3);
    assert_int_equal(ask_number(x.file->sql, "SELECT sum(attempts) FROM lapse_purge"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_that_is_due_goes),
        TEST(when_the_next_is_due),
        TEST(it_stops_when_asked),
        TEST(a_brake_stops_it),
        TEST(one_that_is_refused_is_put_off),
        TEST(reasons_that_do_not_count),
        TEST(a_broken_table_fails_the_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
