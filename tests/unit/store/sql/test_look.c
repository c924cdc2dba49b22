/* look: a few rows of a table, whatever its size. */
#include "sqlite_file.h"

static const struct table *inspect(struct file *f, const char *name, struct facts **ret)
{
    struct err e = ERR_INIT;
    struct table_name n = {.table.text = name};
    const struct table_name *list[] = {&n};
    struct table_names names = {list, 1};
    if (store_sqlite.inspect(f->store, &names, ret, &e))
        fail_msg("%s", e.text);
    assert_int_equal((*ret)->n_tables, 1);
    return (*ret)->tables[0];
}

static void look(struct file *f, const struct table *t, struct rows *ret, bool *whole)
{
    struct err e = ERR_INIT;
    const struct column *columns[8];
    for (size_t i = 0; i < t->n_columns; i++)
        columns[i] = &t->columns[i];
    if (f->store->ops->look(f->store, t, columns, t->n_columns, ret, whole, &e))
        fail_msg("%s", e.text);
}

static void all_of_a_small_table(void **state)
{
    struct file *f = *state;
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(rows_release) struct rows rows = {0};
    bool whole = false;
    do_sql(f->sql, "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT, x)");
    do_sql(f->sql, "INSERT INTO t VALUES (1, printf('%.500c', 'a'), NULL), (2, NULL, 7)");
    look(f, inspect(f, "t", &facts), &rows, &whole);
    assert_true(whole);
    assert_int_equal(rows.n_rows, 2);
    assert_int_equal(rows_at(&rows, 0)[1].len, 64); /* a long text is cut */
    assert_int_equal(rows_at(&rows, 1)[1].kind, VALUE_NULL);
    assert_int_equal(rows_at(&rows, 1)[2].integer, 7);
}

static void both_ends_of_a_large_one(void **state)
{
    struct file *f = *state;
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(rows_release) struct rows rows = {0};
    bool whole = true;
    do_sql(f->sql, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    do_sql(f->sql, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT "
                   "INTO t SELECT i FROM n");
    look(f, inspect(f, "t", &facts), &rows, &whole);
    assert_false(whole);
    assert_int_equal(rows.n_rows, 2000);
    assert_int_equal(rows_at(&rows, 0)[0].integer, 1);
    assert_int_equal(rows_at(&rows, 1000)[0].integer, 5000);
}

static void a_row_that_both_ends_have_counts_once(void **state)
{
    struct file *f = *state;
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(rows_release) struct rows rows = {0};
    bool whole = true;
    do_sql(f->sql, "CREATE TABLE t (a TEXT NOT NULL, b INTEGER NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID");
    do_sql(f->sql, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) INSERT "
                   "INTO t SELECT 'x', i FROM n");
    look(f, inspect(f, "t", &facts), &rows, &whole);
    assert_false(whole);
    assert_int_equal(rows.n_columns, 2);
    assert_int_equal(rows.n_rows, 1500);
    assert_int_equal(rows_at(&rows, 1000)[1].integer, 1500);
    assert_int_equal(rows_at(&rows, 1499)[1].integer, 1001);
}

static void a_large_one_without_a_key(void **state)
{
    struct file *f = *state;
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(rows_release) struct rows rows = {0};
    bool whole = true;
    do_sql(f->sql, "CREATE TABLE t (i INTEGER)");
    do_sql(f->sql, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT "
                   "INTO t SELECT i FROM n");
    look(f, inspect(f, "t", &facts), &rows, &whole);
    assert_false(whole); /* it cannot know */
    assert_int_equal(rows.n_rows, 1000);
}

static void what_cannot_be_read(void **state)
{
    struct file *f = *state;
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(rows_release) struct rows rows = {0};
    struct err e = ERR_INIT;
    bool whole;
    do_sql(f->sql, "CREATE TABLE t (i INTEGER)");
    const struct table *t = inspect(f, "t", &facts);
    do_sql(f->sql, "DROP TABLE t");
    const struct column *c = &t->columns[0];
    assert_int_equal(f->store->ops->look(f->store, t, &c, 1, &rows, &whole, &e), -1);
    assert_int_equal(e.kind, ERR_DATABASE);
    do_sql(f->sql, "CREATE TABLE u (i INTEGER)"); /* no transaction was left open */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_of_a_small_table),
        TEST(both_ends_of_a_large_one),
        TEST(a_row_that_both_ends_have_counts_once),
        TEST(a_large_one_without_a_key),
        TEST(what_cannot_be_read),
    };
    return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
