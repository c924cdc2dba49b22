/* sqlstore_keyed: a table of keys and values on a real file; the manager's tests run on it in a suite. */
#include "store/sql/sqlstore.h"

#include "sqlite_file.h"

static const struct keyed_ops *ops(struct file *f)
{
    return f->store->ops->keyed;
}

static struct keyed open_table(struct file *f, const char *value_type)
{
    struct err e = ERR_INIT;
    struct keyed k = {0};
    AUTO(text_release) struct text sql = {0};
    text_addf(&sql, "CREATE TABLE kv(instance TEXT, key TEXT, value %s, PRIMARY KEY (instance, key))",
              value_type);
    do_sql(f->sql, text_str(&sql));
    do_sql(f->sql, "INSERT INTO kv VALUES ('other', 'a', 'x'), ('A', 'a', 'x')");
    if (ops(f)->find(f->store, "kv", "a", &k, &e) < 0)
        fail_msg("%s", e.text);
    return k;
}

static void put(struct file *f, const struct keyed *k, const char *key, const char *value, size_t len)
{
    struct err e = ERR_INIT;
    const struct keyed_pair pair = {key, value, len};
    assert_int_equal(ops(f)->put(f->store, k, &pair, 1, &e), 0);
}

static void value_is(struct file *f, const struct keyed *k, const char *key, const char *value, size_t len)
{
    struct err e = ERR_INIT;
    void *got = NULL;
    size_t got_len = 99;
    assert_int_equal(ops(f)->get(f->store, k, key, &got, &got_len, &e), 0);
    assert_int_equal(got_len, len);
    assert_true(value ? got && memcmp(got, value, len + 1) == 0 : !got);
    free(got);
}

static void what_is_put_is_got(void **state)
{
    struct file *f = *state;
    AUTO(keyed_release) struct keyed k = open_table(f, "BLOB");
    put(f, &k, "a", "one", 3);
    put(f, &k, "a", "two\0\xff", 5);
    put(f, &k, "empty", "", 0);
    value_is(f, &k, "a", "two\0\xff", 5);
    value_is(f, &k, "empty", "", 0);
    value_is(f, &k, "b", NULL, 0);
}

static void keys_by_prefix(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    AUTO(keyed_release) struct keyed k = open_table(f, "TEXT");
    AUTO(keyed_keys_release) struct keyed_keys some = {0}, all = {0};
    put(f, &k, "step:1", "x", 1);
    put(f, &k, "step*", "x", 1);
    put(f, &k, "other", "x", 1);
    assert_int_equal(ops(f)->keys(f->store, &k, "step*", &some, &e), 0);
    assert_int_equal(some.n, 1);
    assert_int_equal(ops(f)->keys(f->store, &k, "", &all, &e), 0);
    assert_int_equal(all.n, 3);
}

static void only_this_instance_goes(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    AUTO(keyed_release) struct keyed k = open_table(f, "TEXT");
    put(f, &k, "x", "1", 1);
    put(f, &k, "y", "1", 1);
    put(f, &k, "kept", "1", 1);
    assert_int_equal(ops(f)->remove(f->store, &k, "x", &e), 0);
    assert_int_equal(ops(f)->remove(f->store, &k, "x", &e), 0);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM kv"), 4);
    assert_int_equal(ops(f)->remove_all(f->store, &k, "kept", &e), 0);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM kv"), 3);
    value_is(f, &k, "kept", "1", 1);
}

/* A key that is NULL is one of the instance's too; and what a trigger keeps is not reported as gone. */
static void all_of_it_goes(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    AUTO(keyed_release) struct keyed k = open_table(f, "TEXT");
    do_sql(f->sql, "INSERT INTO kv VALUES ('a', NULL, 'x')");
    assert_int_equal(ops(f)->remove_all(f->store, &k, "kept", &e), 0);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM kv WHERE instance = 'a'"), 0);
    do_sql(f->sql,
           "CREATE TRIGGER keeps BEFORE DELETE ON kv WHEN old.key = 'held' BEGIN SELECT RAISE(IGNORE); END");
    do_sql(f->sql, "INSERT INTO kv VALUES ('a', 'held', 'x'), ('a', 'free', 'x')");
    AUTO(keyed_release) struct keyed again = {0};
    assert_int_equal(ops(f)->find(f->store, "kv", "a", &again, &e), 0);
    assert_int_equal(ops(f)->remove(f->store, &again, "held", &e), -1);
    assert_non_null(strstr(e.text, "a trigger or a rule kept"));
    assert_int_equal(ops(f)->remove_all(f->store, &again, "kept", &e), -1);
    value_is(f, &again, "free", "x", 1); /* all of it or nothing */
    assert_int_equal(ops(f)->remove(f->store, &again, "free", &e), 0);
}

static void all_pairs_or_none(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    AUTO(keyed_release) struct keyed k = open_table(f, "TEXT CHECK (value <> 'bad')");
    const struct keyed_pair pairs[] = {{"x", "1", 1}, {"y", "bad", 3}};
    assert_int_equal(ops(f)->put(f->store, &k, pairs, 2, &e), -1);
    value_is(f, &k, "x", NULL, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(what_is_put_is_got), TEST(keys_by_prefix),
                                       TEST(only_this_instance_goes), TEST(all_of_it_goes),
                                       TEST(all_pairs_or_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
