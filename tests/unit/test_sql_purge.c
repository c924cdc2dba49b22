/* sql_purge: statements that erase the data of instances, word by word. */
#include "shown.h"
#include "world.h"

#include "store_postgres.h"
#include "store_sqlite.h"

static const struct column text_key = {.name = "id", .sql_type = "text", .type = TYPE_TEXT};
static const struct column folded = {
    .name = "id", .sql_type = "text", .type = TYPE_TEXT, .collation = "nocase"};
static const struct table jobs = {.schema = "s", .name = "jobs"}, plain = {.name = "jobs"};

static void is(void (*write)(struct stmt *, const struct dialect *, instant, const struct erasing *, int),
               const struct dialect *d, const struct erasing *x, const char *expected)
{
    AUTO(stmt_release) struct stmt s = {0};
    write(&s, d, 0, x, 2);
    assert_string_equal(text_str(&s.sql), expected);
}

static void rows_say_whose_they_were(void **state)
{
    (void)state;
    const struct erasing x = {.table = &jobs, .column = &text_key};
    is(sql_erase, &dialect_postgres, &x,
       "DELETE FROM \"s\".\"jobs\" AS this WHERE this.\"id\" = ANY($1::text[]) RETURNING CAST(\"id\" AS "
       "text)");
    const struct erasing y = {.table = &plain, .column = &text_key};
    is(sql_erase, &dialect_sqlite, &y,
       "DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_2)");
    is(sql_erase_count, &dialect_sqlite, &y,
       "SELECT CAST(\"id\" AS TEXT), count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 "
       "FROM "
       "temp.lapse_set_2) GROUP BY this.\"id\"");
}

static void texts_are_compared_as_bytes(void **state)
{
    (void)state;
    const struct erasing x = {.table = &jobs, .column = &folded}, y = {.table = &plain, .column = &folded};
    is(sql_erase_left, &dialect_postgres, &x,
       "SELECT count(*) FROM \"s\".\"jobs\" AS this WHERE this.\"id\" = ANY($1::text[]) AND "
       "this.\"id\"::text COLLATE \"C\" = ANY($2::text[])");
    is(sql_erase_left, &dialect_sqlite, &y,
       "SELECT count(*) FROM main.\"jobs\" AS this WHERE (this.\"id\" IN (SELECT c0 FROM temp.lapse_set_2) "
       "AND "
       "this.\"id\" COLLATE \"BINARY\" IN (SELECT c0 FROM temp.lapse_set_2))");
}

static void what_is_kept(void **state)
{
    (void)state;
    const struct expr null = {.kind = EXPR_IS_NULL, .column = &folded};
    const struct erasing x = {.table = &plain, .column = &text_key, .keep = &null};
    is(sql_erase, &dialect_sqlite, &x,
       "DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_2) AND "
       "(this.\"id\" IS NULL) IS NOT TRUE");
}

int main(void)
{
    (void)show;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_say_whose_they_were),
        cmocka_unit_test(texts_are_compared_as_bytes),
        cmocka_unit_test(what_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
