/* condition: the tree a map or a text becomes; mistakes are tested through the contract. */
#include "reading.h"

#include "contract/condition.h"

static void show_values(struct text *out, const struct cond *c)
{
    for (size_t i = 0; i < c->n_values; i++) {
        const struct scalar *v = &c->values[i];
        text_addf(out, "%s%s%s%s", i ? ", " : "", v->null ? "null" : v->text, v->prefix ? "..." : "",
                  v->quoted ? "'" : "");
    }
}

static void show(struct text *out, const struct cond *c)
{
    static const char *const words[] = {[COND_ALL] = "all",
                                        [COND_ANY] = "any",
                                        [COND_IN] = "in",
                                        [COND_NOT_IN] = "not",
                                        [COND_LT] = "lt",
                                        [COND_LTE] = "lte",
                                        [COND_GT] = "gt",
                                        [COND_GTE] = "gte",
                                        [COND_LIKE] = "like",
                                        [COND_OLDER_THAN] = "older",
                                        [COND_NEWER_THAN] = "newer",
                                        [COND_SQL] = "sql"};
    text_addf(out, "%s", words[c->op]);
    if (c->op == COND_SQL) {
        text_addf(out, "<%s>", c->sql);
        return;
    }
    text_add(out, "(");
    if (c->column.text)
        text_addf(out, "%s@%d ", c->column.text, c->at.column);
    if (c->op == COND_OLDER_THAN || c->op == COND_NEWER_THAN)
        span_format(c->span.us, out);
    show_values(out, c);
    for (size_t i = 0; i < c->n_kids; i++) {
        text_add(out, i ? ", " : "");
        show(out, c->kids[i]);
    }
    text_add(out, ")");
}

static void assert_shown(const struct cond *c, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    show(&out, c);
    assert_string_equal(text_str(&out), expected);
}

static const struct {
    const char *yaml, *shown;
} conditions[] = {
    {"{ a: x }", "all(in(a@3 x))"},
    {"{ a: [x, 'y', null, 5] }", "all(in(a@3 x, y', null, 5))"},
    {"{ a: x*, b: 1 }", "all(in(a@3 x*), in(b@10 1))"}, /* a prefix is for rows only */
    {"{ a: { gte: 3, lt: 9 } }", "all(gte(a@3 3), lt(a@3 9))"},
    {"{ a: { lte: 1, gt: 2, eq: 3, not: [4, null] } }",
     "all(lte(a@3 1), gt(a@3 2), in(a@3 3), not(a@3 4, null))"},
    {"{ a: { like: 'x%', older_than: 1h, newer_than: now } }",
     "all(like(a@3 x%'), older(a@3 1h), newer(a@3 now))"},
    {"{ any: [{ a: 1 }, { any: [{ b: 2 }, 'c = 3'] }] }",
     "all(any(all(in(a@11 1)), all(any(all(in(b@29 2)), sql<c = 3>))))"},
    {"{ '\"any\"': 1 }", "all(in(any@3 1))"},
    {"this.a > :now", "sql<this.a > :now>"},
    {"'1'", "sql<1>"}, /* quoted, it is meant */
    {"|\n a = 1\n or b = 2\n", "sql<a = 1\nor b = 2\n>"},
};

static void a_condition_becomes_a_tree(void **state)
{
    struct reading *g = *state;
    for (size_t i = 0; i < COUNT_OF(conditions); i++) {
        struct cond *c = NULL;
        read_condition(&g->reader, tree(g, conditions[i].yaml), &c, NULL);
        assert_mistakes(g, "");
        assert_shown(c, conditions[i].shown);
    }
}

static const struct {
    const char *yaml, *shown;
} rows[] = {
    {"{ a: x, b: [y, null] }", "all(in(a@3 x), in(b@9 y, null))"},
    {"{ a: 'x*' }", "all(in(a@3 x...'))"},
    {"{ a: 'x**' }", "all(in(a@3 x*...'))"},
    {"{ a: 'x\\*' }", "all(in(a@3 x*'))"},
    {"{ a: '\\*' }", "all(in(a@3 *'))"},
    {"{ a: '*x' }", "all(in(a@3 *x'))"},
    {"{ any: 1 }", "all(in(any@3 1))"}, /* a column like another */
};

static void rows_become_values_and_prefixes(void **state)
{
    struct reading *g = *state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct cond *c = NULL;
        read_rows(&g->reader, tree(g, rows[i].yaml), &c, NULL);
        assert_mistakes(g, "");
        assert_shown(c, rows[i].shown);
    }
}

/* A field that could not be read stays as it was. */
static void what_is_no_condition_is_not_one(void **state)
{
    struct reading *g = *state;
    static const char *const bad[] = {"[a]", "{}", "null", "5", "true", "' '"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct cond *c = NULL;
        read_condition(&g->reader, tree(g, bad[i]), &c, NULL);
        assert_int_equal(g->mistakes.n, 1);
        assert_null(c);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, reading_setup, reading_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_condition_becomes_a_tree),
        TEST(rows_become_values_and_prefixes),
        TEST(what_is_no_condition_is_not_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
