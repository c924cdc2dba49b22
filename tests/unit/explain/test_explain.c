/* explain: keys from words, conditions in words, verdicts from answers. No database: answers are given. */
#include "world.h"

#include "explain/explain.h"

#define NOW  (INT64_C(1718452800) * US_PER_S) /* 2024-06-15T12:00:00Z */
#define HOUR (3600 * US_PER_S)

static const char *key_words(struct world *w, const struct table *t, const char *const *words, size_t n)
{
    struct err e = ERR_INIT;
    const struct expr *key;
    if (explain_key(w->arena, t, words, n, &key, &e) < 0) {
        assert_int_equal(e.kind, ERR_USAGE);
        return arena_strdup(w->arena, e.text);
    }
    AUTO(text_release) struct text out = {0};
    expr_print(key, &out);
    return arena_strdup(w->arena, text_str(&out));
}

static const char *key_word(struct world *w, const char *type, const char *word)
{
    struct table *t = add_table(w, NULL, "t", arena_printf(w->arena, "id:%s!", type), "id");
    return key_words(w, t, &word, 1);
}

static void a_key_gets_its_columns_types(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *type, *word, *expected;
    } cases[] = {
        {"integer", "42", "id is 42"},
        {"integer", "-9223372036854775808", "id is -9223372036854775808"},
        {"integer", "9223372036854775808",
         "key column 'id' is integer, but '9223372036854775808' is no whole number of 64 bits"},
        {"integer", "4 2", "key column 'id' is integer, but '4 2' is no whole number of 64 bits"},
        {"text", "42", "id is 42"},
        {"text", "it's", "id is 'it''s'"},
        {"text", "", "id is ''"},
        {"text", "NULL", "id is 'NULL'"},
        {"boolean", "t", "id is true"},
        {"boolean", "no", "key column 'id' is boolean, but 'no' is neither true nor false"},
        {"real", "1e3", "id is 1000"},
        {"real", "many", "key column 'id' is real, but 'many' is no number"},
        {"numeric", "1.50", "id is 1.50"},
        {"bytea", "x'00fF'", "id is x'00ff'"},
        {"bytea", "\\x00ff", "id is x'00ff'"},
        {"bytea", "x''", "id is x''"},
        {"bytea", "x'0'", "key column 'id' is bytea, but 'x'0'' is not written as bytes: x'00ff'"},
        {"bytea", "zz", "key column 'id' is bytea, but 'zz' is not written as bytes: x'00ff'"},
        {"uuid", "0f8f", "id is 0f8f"},
        {"any", "7", "id is 7 or 7"},
        {"any", "1.5", "id is 1.5 or 1.5"},
        {"any", "x'01'", "id is 'x''01''' or x'01'"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(key_word(w, cases[i].type, cases[i].word), cases[i].expected);
}

static void the_words_are_as_many_as_the_columns(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, NULL, "pair", "a:integer!, b:text!", "a, b");
    const char *words[] = {"1", "x", "y"};
    assert_string_equal(key_words(w, t, words, 2), "a is 1 and b is x");
    assert_string_equal(key_words(w, t, words, 3),
                        "the key of pair is (a, b): give 2 words after the policy, not 3");
    assert_string_equal(key_words(w, t, words, 0),
                        "the key of pair is (a, b): give 2 words after the policy, not 0");
}

static void add_tables(struct world *w)
{
    add_table(w, NULL, "jobs",
              "id:integer!, up:integer, state:text, n:integer, ok:boolean, at_us:integer, b_us:integer",
              "id");
    add_table(w, NULL, "step", "id:integer!, job_id:integer, state:text", "id");
}

static void conditions_in_words(void **state)
{
    struct world *w = *state;
    add_tables(w);
    static const struct {
        const char *where, *words;
    } cases[] = {
        {"{state: [a, 'b c']}", "state is a or 'b c'"},
        {"{state: [a, b, c]}", "state is a, b or c"},
        {"{state: {not: [a, b]}}", "state is none of a, b"},
        {"{state: {not: [a, null]}}", "state is not NULL and state is not a"},
        {"{state: {like: 'a%'}}", "state is like 'a%'"},
        {"{ok: true}", "ok is true"},
        {"{n: {gte: 3, lt: 9}}", "n >= 3 and n < 9"},
        {"{any: [{n: 1}, {n: 2, state: x}]}", "n is 1 or (n is 2 and state is x)"},
        {"{at_us: {older_than: 1h}}", "at_us before 2024-06-15T11:00:00Z"},
        {"{at_us: {newer_than: 1h}}", "at_us after 2024-06-15T11:00:00Z"},
        {"'this.n > 1'", "this.n > 1"},
        {"{n: [1,2,3,4,5,6,7,8,9,10]}", "n is 1, 2, 3, 4, 5, 6, 7, 8 or 2 more"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct plan *p = make_plan(
            w, arena_printf(w->arena, "table: jobs, expires: at_us, where: %s", cases[i].where), NOW);
        AUTO(text_release) struct text out = {0};
        expr_print(p->where, &out);
        assert_string_equal(text_str(&out), cases[i].words);
    }
    const struct plan *p = make_plan(w,
                                     "table: jobs, rows: {state: ['x*', null, y]}, expires: at_us, with: "
                                     "[jobs(up)], after: [step(job_id)]",
                                     NOW);
    AUTO(text_release) struct text out = {0};
    expr_print(p->rows, &out);
    assert_string_equal(text_str(&out), "state begins with x or state is NULL or state is y");
    text_clear(&out);
    expr_print(p->root.after[0], &out);
    assert_string_equal(text_str(&out), "there is a row of step(job_id)");
}

/* --- verdicts ----------------------------------------------------------------------------------- */

/* An answer in which everything is true and nothing is waited for, to be changed by the test. */
struct told {
    struct explaining x;
    struct answer answer;
};

static struct told begin(struct world *w, const char *keys, bool enabled)
{
    struct told t = {0};
    const struct plan *p = make_plan(w, keys, NOW);
    const char *word = "1";
    const struct expr *key;
    struct err e = ERR_INIT;
    assert_int_equal(explain_key(w->arena, p->root.table, &word, 1, &key, &e), 0);
    explain_begin(&t.x, w->arena, p, key, enabled);
    const struct inquiry *q = &t.x.inquiry;
    AUTO(mem_free_p) struct value *cells = mem_alloc(q->n_columns * sizeof(*cells));
    for (size_t i = 0; i < q->n_columns; i++)
        cells[i] = (struct value){.kind = VALUE_INTEGER, .integer = 1};
    t.answer.found = 1;
    t.answer.row.n_columns = q->n_columns;
    rows_push(&t.answer.row, cells);
    t.answer.times = mem_alloc((q->n_times + 1) * sizeof(*t.answer.times));
    for (size_t i = 0; i < q->n_times; i++)
        t.answer.times[i] = (struct answer_time){true, NOW};
    t.answer.verdicts = mem_alloc((q->n_asked + 1) * sizeof(*t.answer.verdicts));
    for (size_t i = 0; i < q->n_asked; i++)
        t.answer.verdicts[i] = VERDICT_TRUE;
    t.answer.waits = mem_alloc((q->n_waits + 1) * sizeof(*t.answer.waits));
    t.answer.n_waits = q->n_waits;
    due_init(&t.answer.goes, p);
    return t;
}

static struct explanation *end(struct told *t)
{
    explain_end(&t->x, &t->answer);
    answer_release(&t->answer);
    return t->x.explanation;
}

static void set_asked(struct told *t, const struct expr *asked, enum verdict v)
{
    size_t found = 0;
    for (size_t i = 0; i < t->x.inquiry.n_asked; i++)
        if (t->x.inquiry.asked[i] == asked) {
            t->answer.verdicts[i] = v;
            found++;
        }
    assert_true(found > 0);
}

static void not_due_for(struct told *t, const struct expr *asked, enum verdict v)
{
    set_asked(t, asked, v);
    set_asked(t, t->x.plan->due, v);
}

static const char *only_reason(const struct explanation *x)
{
    const char *reason = NULL;
    for (size_t i = 0; i < x->n_lines; i++)
        if (x->lines[i].reason) {
            assert_null(reason);
            reason = x->lines[i].reason;
        }
    return reason ? reason : "";
}

static void everything_true_is_due(void **state)
{
    struct world *w = *state;
    add_tables(w);
    struct told t = begin(w, "table: jobs, rows: {state: x}, age: at_us, keep: 1h", true);
    struct explanation *x = end(&t);
    assert_int_equal(x->kind, DUE_NOW);
    assert_string_equal(only_reason(x), "");
    assert_string_equal(x->key_text, "id=1");
    t = begin(w, "table: jobs, age: at_us, keep: 1h", false);
    x = end(&t);
    assert_int_equal(x->kind, DUE_NOT);
    assert_string_equal(only_reason(x), "the policy is disabled");
}

static void due_later_by_the_bound(void **state)
{
    struct world *w = *state;
    add_tables(w);
    static const struct {
        const char *keys;
        int64_t after;
    } cases[] = {
        {"table: jobs, age: at_us, keep: 1h", HOUR + 1},
        {"table: jobs, age: at_us, keep: 1h, inclusive: true", HOUR},
        {"table: jobs, age: [at_us, b_us], keep: 2h", 2 * HOUR + 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct told t = begin(w, cases[i].keys, true);
        not_due_for(&t, t.x.plan->aged, VERDICT_FALSE);
        struct explanation *x = end(&t);
        assert_int_equal(x->kind, DUE_LATER);
        assert_int_equal(x->due_at, NOW + cases[i].after);
        explain_confirm(x, true);
        assert_int_equal(x->kind, DUE_LATER);
        explain_confirm(x, false);
        assert_int_equal(x->kind, DUE_NOT);
    }
}

static void never_due(void **state)
{
    struct world *w = *state;
    add_tables(w);
    struct told t = begin(w, "table: jobs, age: at_us, keep: never", true);
    not_due_for(&t, t.x.plan->aged, VERDICT_FALSE);
    struct explanation *x = end(&t);
    assert_int_equal(x->kind, DUE_NEVER);
    assert_string_equal(only_reason(x), "its keep never ends");

    t = begin(w, "table: jobs, age: at_us, keep: 1h", true);
    not_due_for(&t, t.x.plan->aged, VERDICT_UNKNOWN);
    t.answer.row.cells[1] = (struct value){0};
    t.answer.times[0].usable = false;
    x = end(&t);
    assert_int_equal(x->kind, DUE_NEVER);
    assert_string_equal(only_reason(x), "it has no time");

    t = begin(w, "table: jobs, age: at_us, keep: 1h", true);
    not_due_for(&t, t.x.plan->aged, VERDICT_FALSE);
    t.answer.verdicts[0] = VERDICT_FALSE; /* not readable */
    x = end(&t);
    assert_int_equal(x->kind, DUE_NEVER);
    assert_string_equal(only_reason(x), "at_us is no usable time");
}

static void a_time_beyond_reckoning_promises_nothing(void **state)
{
    struct world *w = *state;
    add_tables(w);
    struct told t = begin(w, "table: jobs, age: at_us, keep: 1h", true);
    not_due_for(&t, t.x.plan->aged, VERDICT_FALSE);
    t.answer.times[0].at = INT64_MAX;
    assert_int_equal(end(&t)->kind, DUE_NOT);
}

static void held_and_outside(void **state)
{
    struct world *w = *state;
    add_tables(w);
    const char *keys = "table: jobs, rows: {state: x}, hold: {ok: true}, expires: at_us";
    struct told t = begin(w, keys, true);
    set_asked(&t, t.x.plan->due, VERDICT_FALSE);
    struct explanation *x = end(&t);
    assert_int_equal(x->kind, DUE_NOT);
    assert_string_equal(only_reason(x), "held (ok is true)");
    t = begin(w, keys, true);
    set_asked(&t, t.x.plan->hold->kids[0], VERDICT_UNKNOWN);
    not_due_for(&t, t.x.plan->rows, VERDICT_UNKNOWN);
    x = end(&t);
    assert_int_equal(x->kind, DUE_NOT);
    assert_string_equal(only_reason(x), "outside `rows`");
}

static void waiting(void **state)
{
    struct world *w = *state;
    add_tables(w);
    struct told t = begin(w, "table: jobs, expires: at_us, after: [step(job_id)]", true);
    struct value key = {.kind = VALUE_INTEGER, .integer = 7};
    set_asked(&t, t.x.plan->due, VERDICT_FALSE);
    t.answer.waits[0].total = 9;
    t.answer.waits[0].keys.n_columns = 1;
    rows_push(&t.answer.waits[0].keys, &key);
    struct explanation *x = end(&t);
    assert_int_equal(x->kind, DUE_NOT);
    assert_string_equal(only_reason(x), "waits for 9 rows of step");
    assert_string_equal(x->lines[x->n_lines - 1].keys[0], "id=7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_gets_its_columns_types, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(the_words_are_as_many_as_the_columns, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(conditions_in_words, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(everything_true_is_due, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(due_later_by_the_bound, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(never_due, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_time_beyond_reckoning_promises_nothing, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(held_and_outside, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(waiting, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
