/* sql_purge: statements that erase the data of instances, word by word. */
#include "shown.h"
#include "world.h"

#include "store/mariadb/store.h"
#include "store/postgres/store.h"
#include "store/sqlite/store.h"

static const struct column text_key = {.name = "id", .sql_type = "text", .type = TYPE_TEXT};
static const struct column folded = {
    .name = "id", .sql_type = "text", .type = TYPE_TEXT, .collation = "nocase"};
static const struct table jobs = {.schema = "s", .name = "jobs"}, plain = {.name = "jobs"};

typedef void (*writes)(struct stmt *, const struct dialect *, instant, const struct erasing *, int,
                       enum whose);

static void is_of(writes write, enum whose whose, const struct dialect *d, const struct erasing *x,
                  const char *expected)
{
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(text_release) struct text sql = {0};
    write(&s, d, 0, x, 2, whose);
    assert_string_equal(without_schemas(d, text_str(&s.sql), &sql), expected);
}

static void is(writes write, const struct dialect *d, const struct erasing *x, const char *expected)
{
    is_of(write, WHOLE_SET, d, x, expected);
}

static void rows_say_whose_they_were(void **state)
{
    (void)state;
    const struct erasing x = {.table = &jobs, .column = &text_key};
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(text_release) struct text sql = {0};
    sql_erase_told(&s, &dialect_postgres, 0, &x, 2);
    assert_string_equal(unqualified(text_str(&s.sql), &sql),
                        "DELETE FROM \"s\".\"jobs\" AS this WHERE this.\"id\" = "
                        "ANY($1::text[]) RETURNING CAST(\"id\" AS text)");
    is(sql_erase, &dialect_postgres, &x,
       "DELETE FROM \"s\".\"jobs\" AS this WHERE this.\"id\" = ANY($1::text[])");
    const struct erasing y = {.table = &plain, .column = &text_key};
    is(sql_erase, &dialect_sqlite, &y,
       "DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_2)");
    sql_erase_count(&s, &dialect_sqlite, 0, &y, 2);
    assert_string_equal(text_str(&s.sql),
                        "SELECT CAST(\"id\" AS TEXT), count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" "
                        "IN (SELECT c0 FROM temp.lapse_set_2) GROUP BY this.\"id\"");
}

static void one_after_the_other(void **state)
{
    (void)state;
    const struct expr null = {.kind = EXPR_IS_NULL, .column = &text_key};
    const struct erasing x = {.table = &plain, .column = &text_key, .keep = &null},
                         y = {.table = &plain, .column = &folded};
    is_of(sql_erase, EACH_ROW, &dialect_sqlite, &x,
          "DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" = ?1 AND (this.\"id\" IS NULL) IS NOT TRUE");
    is_of(sql_erase_left, EACH_ROW, &dialect_sqlite, &y,
          "SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" = ?1 AND this.\"id\" COLLATE BINARY "
          "= ?2");
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
    AUTO(stmt_release) struct stmt s = {0};
    sql_erase_unkept(&s, &dialect_sqlite, 0, &x);
    assert_string_equal(text_str(&s.sql),
                        "SELECT 1 FROM main.\"jobs\" AS this WHERE (this.\"id\" IS NULL) IS NOT TRUE");
}

/* The rows to which no row of the same table refers, by any of its foreign keys; others' do not matter. */
static void leaves_go_first(void **state)
{
    (void)state;
    const char *up[] = {"up"}, *two[] = {"a", "b"}, *id[] = {"id"}, *keys[] = {"x", "y"};
    struct fkey in[] = {
        {.child_schema = "s", .child_table = "jobs", .child_columns = up, .parent_columns = id, .n = 1},
        {.child_schema = "other", .child_table = "jobs", .child_columns = up, .parent_columns = id, .n = 1},
        {.child_schema = "s", .child_table = "steps", .child_columns = up, .parent_columns = id, .n = 1},
        {.child_schema = "s", .child_table = "jobs", .child_columns = two, .parent_columns = keys, .n = 2},
    };
    struct table t = jobs;
    t.fkeys_in = in;
    t.n_fkeys_in = COUNT_OF(in);
    const struct erasing x = {.table = &t, .column = &text_key};
    AUTO(stmt_release) struct stmt s = {0};
    sql_erase_leaves(&s, &dialect_mariadb, 0, &x, 2);
    assert_string_equal(text_str(&s.sql),
                        "DELETE this FROM `s`.`jobs` AS this LEFT JOIN `s`.`jobs` AS lapse_1 ON lapse_1.`up` "
                        "= this.`id` LEFT JOIN `s`.`jobs` AS lapse_2 ON lapse_2.`a` = this.`x` AND "
                        "lapse_2.`b` = this.`y` WHERE this.`id` IN (\x01"
                        "1\x01) AND lapse_1.`up` <=> NULL "
                        "AND lapse_2.`a` <=> NULL");
}

int main(void)
{
    (void)show;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_say_whose_they_were),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(texts_are_compared_as_bytes),
        cmocka_unit_test(what_is_kept),
        cmocka_unit_test(leaves_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
