/* sqlstore_row: one row asked after, on a real file. */
#include "sqlite_plan.h"

#define NOW (INT64_C(1718452800) * US_PER_S)

static void fill(struct file *f)
{
    do_sql(f->sql, "CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT, at_ms INTEGER)");
    do_sql(f->sql, "CREATE TABLE step (id INTEGER PRIMARY KEY, job_id INTEGER)");
    do_sql(f->sql, "CREATE TABLE note (job_id INTEGER)");
    do_sql(f->sql, "INSERT INTO job VALUES (1, 'done', 5), (2, NULL, NULL), (3, 'run', 'x')");
    do_sql(f->sql, "INSERT INTO step VALUES (1, 1), (2, 1), (3, 1), (4, 2)");
    do_sql(f->sql, "INSERT INTO note VALUES (1), (1)");
}

struct asking {
    struct planned planned;
    struct value value;
    struct expr key;
    struct inquiry q;
    struct answer answer;
};

static void ask(struct file *f, struct asking *a, int64_t id)
{
    struct err e = ERR_INIT;
    const struct plan *p = a->planned.plan;
    answer_release(&a->answer);
    a->value = (struct value){.kind = VALUE_INTEGER, .integer = id};
    a->key =
        (struct expr){.kind = EXPR_IN, .column = p->root.table->key[0], .values = &a->value, .n_values = 1};
    a->q.key = &a->key;
    a->q.most = 2;
    if (f->store->ops->judge_row(f->store, p, &a->q, &a->answer, &e))
        fail_msg("%s", e.text);
}

static void asking_release(struct asking *a)
{
    answer_release(&a->answer);
    planned_release(&a->planned);
}

static void verdicts_have_three_values(void **state)
{
    struct file *f = *state;
    fill(f);
    AUTO(asking_release) struct asking a = {0};
    a.planned = plan_on(f, "table: job, rows: {state: done}, expires: at_ms", NOW);
    const struct plan *p = a.planned.plan;
    a.q = (struct inquiry){.columns = (const struct column *[]){p->times[0].column}, .n_columns = 1};
    a.q.times = p->times;
    a.q.n_times = 1;
    a.q.asked = &a.planned.plan->rows;
    a.q.n_asked = 1;
    ask(f, &a, 1);
    assert_int_equal(a.answer.found, 1);
    assert_int_equal(rows_at(&a.answer.row, 0)[0].integer, 5);
    assert_true(a.answer.times[0].usable);
    assert_int_equal(a.answer.times[0].at, 5000);
    assert_int_equal(a.answer.verdicts[0], VERDICT_TRUE);
    ask(f, &a, 2);
    assert_int_equal(a.answer.verdicts[0], VERDICT_UNKNOWN);
    assert_false(a.answer.times[0].usable);
    ask(f, &a, 3);
    assert_int_equal(a.answer.verdicts[0], VERDICT_FALSE);
    assert_false(a.answer.times[0].usable);
    assert_string_equal(rows_at(&a.answer.row, 0)[0].text, "x");
    ask(f, &a, 4);
    assert_int_equal(a.answer.found, 0);
}

static void waits_and_what_goes(void **state)
{
    struct file *f = *state;
    fill(f);
    AUTO(asking_release) struct asking a = {0};
    a.planned = plan_on(f, "table: job, expires: at_ms, after: [step(job_id), note(job_id)]", NOW);
    const struct node *root = &a.planned.plan->root;
    const struct wait waits[] = {{WAIT_AFTER, root, NULL, 0, root->after[0]},
                                 {WAIT_AFTER, root, NULL, 1, root->after[1]}};
    a.q = (struct inquiry){
        .waits = waits, .n_waits = 2, .goes = true, .asked = &a.planned.plan->due, .n_asked = 1};
    ask(f, &a, 1);
    assert_int_equal(a.answer.waits[0].total, 3);
    assert_int_equal(a.answer.waits[0].keys.n_rows, 2);
    assert_int_equal(rows_at(&a.answer.waits[0].keys, 1)[0].integer, 2);
    assert_int_equal(a.answer.waits[1].total, 2);
    assert_int_equal(a.answer.waits[1].keys.n_rows, 0);
    assert_int_equal(a.answer.goes.gone[root->slot], 1);
    assert_int_equal(a.answer.verdicts[0], VERDICT_FALSE);
    ask(f, &a, 3);
    assert_int_equal(a.answer.waits[0].total, 0);
}

static void a_failure_leaves_nothing(void **state)
{
    struct file *f = *state;
    fill(f);
    AUTO(asking_release) struct asking a = {0};
    a.planned = plan_on(f, "table: job, expires: at_ms", NOW);
    struct err e = ERR_INIT;
    struct expr bad = {.kind = EXPR_SQL, .sql = "nonsense(1)"};
    a.q = (struct inquiry){.key = &bad, .asked = &a.planned.plan->due, .n_asked = 1};
    assert_int_equal(f->store->ops->judge_row(f->store, a.planned.plan, &a.q, &a.answer, &e), -1);
    assert_int_equal(e.kind, ERR_DATABASE);
    assert_null(a.answer.verdicts);
    assert_int_equal(do_sql(f->sql, "DELETE FROM note"), 2); /* no transaction was left open */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(verdicts_have_three_values, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(waits_and_what_goes, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(a_failure_leaves_nothing, file_setup, file_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
