/* rule: one policy before the contract has put it in its place; forms, values and mistakes are tested through
 * the contract. */
#include "reading.h"

#include "contract/rule.h"

static struct policy read_policy(struct reading *g, const char *map)
{
    AUTO(text_release) struct text yaml = {0};
    struct policy p;
    memset(&p, 0xff, sizeof(p)); /* whatever was there before */
    text_addf(&yaml, "name: { %s }\n", map);
    const struct node *n = tree(g, text_str(&yaml));
    rule_read(&g->reader, n->pairs[0].key, n->pairs[0].value, &p);
    assert_null(g->reader.policy);
    assert_false(g->reader.inside_not_yet);
    return p;
}

static void a_policy_has_its_defaults(void **state)
{
    struct reading *g = *state;
    struct policy p = read_policy(g, "table: t, expires: e");
    assert_mistakes(g, "");
    assert_string_equal(p.name, "name");
    assert_string_equal(p.label, "name");
    assert_null(p.scheduler); /* the contract resolves it */
    assert_true(p.enabled && !p.inclusive && !p.partitions.drop);
    assert_int_equal(p.batch, 1000);
    assert_int_equal(p.lock_timeout_us, 2 * US_PER_S);
    assert_int_equal(p.statement_timeout_us, 30 * US_PER_S);
    assert_int_equal(p.workers, 1);
    assert_string_equal(p.zone, "UTC");
    assert_int_equal(p.keep.kind, KEEP_NONE);
    assert_true(!p.rows && !p.where && !p.hold && !p.orphan && !p.cap && !p.keep_newest && !p.limits &&
                !p.pace);
    assert_true(p.at.line == 1 && p.at.column == 1);
    assert_int_equal(p.n_with + p.n_detach + p.n_after + p.n_age + p.n_not_yet, 0);
}

static void one_of_two_timeouts_leaves_the_other(void **state)
{
    struct reading *g = *state;
    struct policy p = read_policy(g, "table: t, expires: e, timeouts: { statement: 5s }, scheduler: s");
    assert_int_equal(p.lock_timeout_us, 2 * US_PER_S);
    assert_int_equal(p.statement_timeout_us, 5 * US_PER_S);
    assert_string_equal(p.scheduler, "s");
}

/* What stands below an entry of `with` belongs to it, at any depth. */
static void with_nests(void **state)
{
    struct reading *g = *state;
    struct policy p =
        read_policy(g, "table: t, expires: e, with: [a(x), { ref: b(x, y), with: [{ ref: c(x), "
                       "with: [d(x)], after: [e(x)] }], detach: [f(x)] }], after: [{ ref: g(x), "
                       "where: { s: 1 } }]");
    assert_mistakes(g, "");
    assert_int_equal(p.n_with, 2);
    assert_int_equal(p.with[0].n_with, 0);
    const struct with *b = &p.with[1], *c = &b->with[0];
    assert_int_equal(b->ref.n_columns, 2);
    assert_string_equal(b->detach[0].table.table.text, "f");
    assert_string_equal(c->with[0].ref.table.table.text, "d");
    assert_string_equal(c->after[0].ref.table.table.text, "e");
    assert_true(p.n_after == 1 && p.after[0].where != NULL && c->after[0].where == NULL);
    assert_int_equal(p.n_detach, 0);
}

static void a_cap_has_groups_and_an_order(void **state)
{
    struct reading *g = *state;
    struct policy p = read_policy(g, "table: t, cap: { rows: 500, per: [a, b], newest: [c, d] }");
    assert_mistakes(g, "");
    assert_true(p.cap && !p.keep_newest && p.n_not_yet == 0);
    assert_int_equal(p.cap->rows, 500);
    assert_true(p.cap->n_per == 2 && p.cap->n_newest == 2);
    assert_string_equal(p.cap->per[1].text, "b");
    assert_string_equal(p.cap->newest[0].text, "c");
    assert_true(p.cap->newest[1].at.line == 1 && p.cap->newest[1].at.column > p.cap->newest[0].at.column);
}

static void a_column_groups_or_orders(void **state)
{
    struct reading *g = *state;
    read_policy(g, "table: t, age: x, keep: 1h, keep_newest: { rows: 1, per: [a, b], newest: [c, b] }");
    assert_mistakes(g, "1:86 'per' and 'newest' both name the column 'b'; per makes the groups, newest the "
                       "order inside them");
}

static void keep_values_stand_in_the_order_of_the_file(void **state)
{
    struct reading *g = *state;
    struct policy p = read_policy(
        g, "table: t, age: a, keep: { by: s, values: { z: 1m, a: never, null: now }, otherwise: 2h }");
    assert_mistakes(g, "");
    assert_int_equal(p.keep.n_values, 3);
    assert_string_equal(p.keep.values[0].value.text, "z");
    assert_int_equal(p.keep.values[0].span.us, 60 * US_PER_S);
    assert_int_equal(p.keep.values[1].span.kind, SPAN_NEVER);
    assert_true(p.keep.values[2].value.null);
    assert_int_equal(p.keep.values[2].span.kind, SPAN_NOW);
    assert_int_equal(p.keep.span.us, 7200 * US_PER_S);
}

static void a_policy_that_is_none_is_one_mistake(void **state)
{
    struct reading *g = *state;
    const struct node *n = tree(g, "name: [table, t]\n");
    struct policy p;
    rule_read(&g->reader, n->pairs[0].key, n->pairs[0].value, &p);
    assert_int_equal(g->mistakes.n, 1);
    assert_string_equal(p.name, "name");
    assert_int_equal(p.batch, 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, reading_setup, reading_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_policy_has_its_defaults),
        TEST(one_of_two_timeouts_leaves_the_other),
        TEST(with_nests),
        TEST(a_cap_has_groups_and_an_order),
        TEST(a_column_groups_or_orders),
        TEST(keep_values_stand_in_the_order_of_the_file),
        TEST(a_policy_that_is_none_is_one_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
