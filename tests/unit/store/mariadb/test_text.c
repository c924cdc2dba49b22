/* store_mariadb_text: values as literals of their column's type, sets as lists, statements for people. */
#include "world.h"

#include "store/mariadb/store.h"

static struct value text_value(const char *text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text, .len = strlen(text)};
}

static void literal_is(struct value v, const char *type, const char *expected)
{
    struct err e = ERR_INIT;
    AUTO(text_release) struct text t = {0};
    if (mariadb_literal(&v, type, &t, &e) < 0) {
        text_clear(&t);
        text_addf(&t, "! %s", e.text);
    }
    assert_string_equal(text_str(&t), expected);
}

static void a_value_has_the_type_of_its_column(void **state)
{
    (void)state;
    const struct value zero = {.kind = VALUE_INTEGER, .integer = 0}, null = {.kind = VALUE_NULL};
    literal_is(null, "int", "NULL");
    literal_is(zero, NULL, "0");
    literal_is(zero, "bigint", "0");
    literal_is(zero, "varchar", "'0'");
    literal_is(zero, "enum", "'0'");
    literal_is((struct value){.kind = VALUE_INTEGER, .integer = INT64_MIN}, "bigint", "-9223372036854775808");
    literal_is((struct value){.kind = VALUE_REAL, .real = 0.5}, "double", "0.5");
    literal_is(text_value("18446744073709551615"), "bigint", "18446744073709551615");
    literal_is(text_value("12.50"), "decimal", "12.50");
    literal_is(text_value("-1e-7"), "double", "-1e-7");
    literal_is(text_value("done"), "int", "! mariadb: 'done' is not a value of type int");
    literal_is(text_value(""), "int", "! mariadb: '' is not a value of type int");
    literal_is(text_value("1 or 1"), "bigint", "! mariadb: '1 or 1' is not a value of type bigint");
    literal_is(text_value("1e"), "double", "! mariadb: '1e' is not a value of type double");
    literal_is(text_value("."), "double", "! mariadb: '.' is not a value of type double");
    literal_is(text_value("ab"), "varbinary", "X'6162'");
    literal_is(text_value("2024-01-02"), "datetime", "TIMESTAMP'2024-01-02 00:00:00'");
    literal_is(text_value("2024-01-02 03:04:05.6"), "timestamp", "TIMESTAMP'2024-01-02 03:04:05.6'");
    literal_is(text_value("2024-01-02"), "date", "DATE'2024-01-02'");
    literal_is(text_value("-12:00:01.5"), "time", "TIME'-12:00:01.5'");
    literal_is(zero, "year", "0");
    literal_is(text_value("1999"), "year", "1999");
    literal_is((struct value){.kind = VALUE_INTEGER, .integer = 2155}, "year", "2155");
    literal_is((struct value){.kind = VALUE_INTEGER, .integer = 99}, "year",
               "! mariadb: '99' is not a value of type year: it has four digits");
    literal_is(text_value("+5.0"), "year",
               "! mariadb: '+5.0' is not a value of type year: it has four digits");
    literal_is(text_value("x"), "year", "! mariadb: 'x' is not a value of type year");
    literal_is((struct value){.kind = VALUE_BLOB, .text = "\0\xff", .len = 2}, "varchar", "X'00ff'");
}

static void texts_are_escaped(void **state)
{
    (void)state;
    literal_is(text_value(""), "varchar", "''");
    literal_is(text_value("it's"), "varchar", "'it\\'s'");
    literal_is(text_value("a\\"), "varchar", "'a\\\\'");
    literal_is(text_value("\\' or 1 -- "), NULL, "'\\\\\\' or 1 -- '");
    literal_is((struct value){.kind = VALUE_TEXT, .text = "a\0b", .len = 3}, "text", "'a\\0b'");
    literal_is(text_value("žlutý \x1a %_\""), "text", "'žlutý \x1a %_\"'");
}

/* Of a store only its sets are looked at. */
static void written_as(const struct sql_store *s, const struct stmt *st, const char *expected,
                       const char *shown)
{
    struct err e = ERR_INIT;
    AUTO(text_release) struct text t = {0}, for_people = {0};
    if (mariadb_write(s, st, &t, &e) < 0) {
        text_clear(&t);
        text_addf(&t, "! %s", e.text);
    }
    assert_string_equal(text_str(&t), expected);
    mariadb_show(st, &for_people);
    assert_string_equal(text_str(&for_people), shown);
}

static void sets_are_lists(void **state)
{
    (void)state;
    struct sql_store s = {.n_sets = 2, .sets = mem_alloc(2 * sizeof(*s.sets))};
    AUTO(stmt_release) struct stmt st = {0};
    s.sets[0].rows.n_columns = 2;
    rows_push(&s.sets[0].rows, (struct value[]){text_value("1"), text_value("a")});
    rows_push(&s.sets[0].rows, (struct value[]){text_value("2"), {.kind = VALUE_NULL}});
    sql_bind_set(&st, 0, 0, "int");
    sql_bind_set(&st, 0, 1, "varchar");
    sql_bind_set(&st, 1, 0, "int");
    sql_bind_set(&st, 1, 1, "varchar");
    text_add(&st.sql, "a IN (\x01"
                      "1\x01) AND (a, b) IN (\x01"
                      "1-2\x01) OR (a, b) IN (\x01"
                      "3-4\x01) VALUES \x01"
                      "1-1\x01");
    written_as(&s, &st,
               "a IN (1,2) AND (a, b) IN ((1,'a'),(2,NULL)) OR (a, b) IN ((NULL,NULL)) VALUES (1),(2)",
               "a IN (?1) AND (a, b) IN (?1, ?2) OR (a, b) IN (?3, ?4) VALUES ?1");
    sql_store_release(&s);
}

static void a_set_that_is_not_there_is_empty(void **state)
{
    (void)state;
    const struct sql_store s = {0};
    AUTO(stmt_release) struct stmt st = {0};
    sql_bind_set(&st, 3, 0, "int");
    text_add(&st.sql, "a IN (\x01"
                      "1\x01)");
    written_as(&s, &st, "a IN (NULL)", "a IN (?1)");
}

static void a_stray_byte_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"a\x01", "a\x01z\x01",
                                        "a\x01"
                                        "0\x01",
                                        "a\x01"
                                        "1\x01",
                                        "a\x01"
                                        "3-2\x01"};
    const struct sql_store s = {0};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        AUTO(stmt_release) struct stmt st = {0};
        text_add(&st.sql, texts[i]);
        written_as(&s, &st, "! mariadb: a name or a condition holds the control character 1", "a");
    }
}

static void a_value_that_does_not_fit_stops_the_statement(void **state)
{
    (void)state;
    const struct sql_store s = {0};
    AUTO(stmt_release) struct stmt st = {0};
    sql_bind(&st, &dialect_mariadb, text_value("x"), "int");
    written_as(&s, &st, "! mariadb: 'x' is not a value of type int", "?1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_has_the_type_of_its_column),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(sets_are_lists),
        cmocka_unit_test(a_set_that_is_not_there_is_empty),
        cmocka_unit_test(a_stray_byte_is_refused),
        cmocka_unit_test(a_value_that_does_not_fit_stops_the_statement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
