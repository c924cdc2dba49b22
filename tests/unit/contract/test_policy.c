/* Names and references as the contract writes them. */
#include "contract/policy.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *read, *text;
        bool quoted;
    } cases[] = {
        {"start_time", "start_time", false},
        {"two words", "two words", false},
        {"a.b", "a.b", false},
        {"a(b, c)", "a(b, c)", false},
        {"\"any\"", "any", true},
        {"\"a \"\"b\"\"\"", "a \"b\"", true},
        {"it's a \"b\"", "it's a \"b\"", false},
        {"příjmení", "příjmení", false},
    };
    AUTO(arena_free_p) struct arena *a = arena_new();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct name n = {0};
        assert_int_equal(name_parse(a, cases[i].read, &n, NULL), 0);
        assert_string_equal(n.text, cases[i].text);
        assert_int_equal(n.quoted, cases[i].quoted);
    }
    static const char *const bad[] = {"", "\"", "\"\"", "\"a", "\"a\"b", "\"a\"\"", "a\nb", "\"a\nb\""};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct name n = {.text = "untouched"};
        struct err e = ERR_INIT;
        assert_int_equal(name_parse(a, bad[i], &n, &e), -1);
        assert_string_equal(n.text, "untouched");
        assert_int_equal(e.kind, ERR_CONTRACT);
    }
}

static void test_tables(void **state)
{
    (void)state;
    static const struct {
        const char *read, *schema, *table, *printed;
    } cases[] = {
        {"orders", NULL, "orders", "orders"},
        {"trax.metadata", "trax", "metadata", "trax.metadata"},
        {" trax . metadata ", "trax", "metadata", "trax.metadata"},
        {"\"odd.name\"", NULL, "odd.name", "\"odd.name\""},
        {"\"My Schema\".\"x\"", "My Schema", "x", "\"My Schema\".\"x\""},
        {"My Schema.x y", "My Schema", "x y", "My Schema.x y"},
        {"a.\"b\"\"c\"", "a", "b\"c", "a.\"b\"\"c\""},
    };
    AUTO(arena_free_p) struct arena *a = arena_new();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text t = {0};
        struct table_name n = {0};
        assert_int_equal(table_name_parse(a, cases[i].read, &n, NULL), 0);
        assert_string_equal(n.table.text, cases[i].table);
        assert_int_equal(n.schema.text != NULL, cases[i].schema != NULL);
        if (cases[i].schema)
            assert_string_equal(n.schema.text, cases[i].schema);
        table_name_print(&n, &t);
        assert_string_equal(text_str(&t), cases[i].printed);
    }
    static const char *const bad[] = {"",    ".",   "a.",   ".a",     "a.b.c", "a(b)",
                                      "a,b", "\"a", "a\"b", "\"a\"b", "a..b"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct table_name n = {0};
        struct err e = ERR_INIT;
        assert_int_equal(table_name_parse(a, bad[i], &n, &e), -1);
        assert_non_null(strstr(e.text, "is not a table name"));
    }
}

static void test_refs(void **state)
{
    (void)state;
    static const struct {
        const char *read, *printed;
        size_t n_columns, n_targets;
    } cases[] = {
        {"log(id)", "log(id)", 1, 0},
        {"trax.log( a ,b )", "trax.log(a, b)", 2, 0},
        {"t(a, b) -> (x, y)", "t(a, b) -> (x, y)", 2, 2},
        {"t(a)->(x)", "t(a) -> (x)", 1, 1},
        {"\"a(b)\".t(\"c, d\")", "\"a(b)\".t(\"c, d\")", 1, 0},
        {"work queue(the id)", "work queue(the id)", 1, 0},
    };
    AUTO(arena_free_p) struct arena *a = arena_new();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text t = {0};
        struct ref r = {0};
        assert_int_equal(ref_parse(a, cases[i].read, &r, NULL), 0);
        assert_int_equal(r.n_columns, cases[i].n_columns);
        assert_int_equal(r.n_targets, cases[i].n_targets);
        ref_print(&r, &t);
        assert_string_equal(text_str(&t), cases[i].printed);
    }
}

static void test_bad_refs(void **state)
{
    (void)state;
    static const struct {
        const char *read, *text;
    } cases[] = {
        {"trax.log metadata_id", "'trax.log metadata_id' is not a reference; write table(column, …)"},
        {"", "'' is not a reference; write table(column, …)"},
        {"t()", "'t()' is not a reference; write table(column, …)"},
        {"t(a,)", "'t(a,)' is not a reference; write table(column, …)"},
        {"t(a", "'t(a' is not a reference; write table(column, …)"},
        {"t(a) x", "'t(a) x' is not a reference; write table(column, …)"},
        {"t(a) ->", "'t(a) ->' is not a reference; write table(column, …)"},
        {"t(a.b)", "'t(a.b)' is not a reference; write table(column, …)"},
        {"(a)", "'(a)' is not a reference; write table(column, …)"},
        {"t(a, b) -> (x)",
         "'t(a, b) -> (x)' has 2 in the first list of columns and 1 in the second; they must agree"},
        {"t(a, b, a)", "'t(a, b, a)' names the column 'a' twice"},
        {"t(a, b) -> (x, x)", "'t(a, b) -> (x, x)' names the column 'x' twice"},
    };
    AUTO(arena_free_p) struct arena *a = arena_new();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ref r;
        struct err e = ERR_INIT;
        assert_int_equal(ref_parse(a, cases[i].read, &r, &e), -1);
        assert_string_equal(e.text, cases[i].text);
    }
    AUTO(text_release) struct text huge = {0};
    text_add(&huge, "t(c");
    for (int i = 0; i < 100000; i++)
        text_add(&huge, ", c");
    text_add(&huge, ")");
    struct ref r;
    assert_int_equal(ref_parse(a, huge.data, &r, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_refs),
        cmocka_unit_test(test_bad_refs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
