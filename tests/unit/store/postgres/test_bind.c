/* store_postgres_bind: values and sets as the texts that the server reads. */
#include "world.h"

#include "store/postgres/store.h"

static struct value text_value(const char *text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text, .len = strlen(text)};
}

static void bound_as(struct sql_store *s, const struct stmt *st, const char *const *expected)
{
    AUTO(bound_release) struct bound b = {0};
    postgres_bind(s, st, &b);
    assert_int_equal(b.n, st->n_params);
    for (size_t i = 0; i < b.n; i++)
        if (expected[i])
            assert_string_equal(b.values[i], expected[i]);
        else
            assert_null(b.values[i]);
}

static void values_are_texts(void **state)
{
    (void)state;
    struct sql_store s = {0};
    AUTO(stmt_release) struct stmt st = {0};
    sql_bind(&st, &dialect_postgres, (struct value){.kind = VALUE_NULL}, "text");
    sql_bind(&st, &dialect_postgres, (struct value){.kind = VALUE_INTEGER, .integer = INT64_MIN}, "bigint");
    sql_bind(&st, &dialect_postgres, (struct value){.kind = VALUE_REAL, .real = 0.5}, "float8");
    sql_bind(&st, &dialect_postgres, text_value("it's \"so\" \\"), "text");
    sql_bind(&st, &dialect_postgres, (struct value){.kind = VALUE_BLOB, .text = "\0\xff", .len = 2}, "bytea");
    bound_as(&s, &st, (const char *[]){NULL, "-9223372036854775808", "0.5", "it's \"so\" \\", "\\x00ff"});
}

static void sets_are_arrays(void **state)
{
    (void)state;
    struct sql_store s = {.n_sets = 1, .sets = mem_alloc(sizeof(*s.sets))};
    AUTO(stmt_release) struct stmt st = {0};
    s.sets[0].rows.n_columns = 2;
    rows_push(&s.sets[0].rows, (struct value[]){text_value("1"), text_value("a\"b\\c")});
    rows_push(&s.sets[0].rows,
              (struct value[]){{.kind = VALUE_INTEGER, .integer = -2}, {.kind = VALUE_NULL}});
    rows_push(&s.sets[0].rows,
              (struct value[]){text_value("NULL"), {.kind = VALUE_BLOB, .text = "\x01", .len = 1}});
    sql_bind_set(&st, 0, 0, "text");
    sql_bind_set(&st, 0, 1, "text");
    sql_bind_set(&st, 7, 0, "text");
    bound_as(&s, &st, (const char *[]){"{\"1\",-2,\"NULL\"}", "{\"a\\\"b\\\\c\",NULL,\"\\\\x01\"}", "{}"});
    sql_store_release(&s);
}

/* Keys that follow each other are told by their first and their last. */
static void runs_are_two_arrays(void **state)
{
    (void)state;
    struct sql_store s = {.n_sets = 1, .sets = mem_alloc(sizeof(*s.sets))};
    AUTO(stmt_release) struct stmt st = {0};
    static const char *const keys[] = {"5", "6", "7", "8", "-1", "-2", "-3", "-4"};
    s.sets[0].rows.n_columns = 1;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        rows_push(&s.sets[0].rows, (struct value[]){text_value(keys[i])});
    sql_bind_set(&st, 0, 0, "bigint");
    sql_bind_set(&st, 0, 0, "bigint");
    st.params[0].part = ROWS_FIRSTS;
    st.params[1].part = ROWS_LASTS;
    bound_as(&s, &st, (const char *[]){"{-4,5}", "{-1,8}"});
    sql_store_release(&s);
}

static void an_array_is_built_item_by_item(void **state)
{
    (void)state;
    AUTO(text_release) struct text none = {0}, some = {0};
    postgres_end_array(&none);
    assert_string_equal(text_str(&none), "{}");
    postgres_add_item(&some, "a,b");
    postgres_add_item(&some, NULL);
    postgres_add_item(&some, "");
    postgres_end_array(&some);
    assert_string_equal(text_str(&some), "{\"a,b\",NULL,\"\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_texts),
        cmocka_unit_test(sets_are_arrays),
        cmocka_unit_test(runs_are_two_arrays),
        cmocka_unit_test(an_array_is_built_item_by_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
