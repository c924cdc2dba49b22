/* store: which engine a DSN means, and the small values that cross the seam. */
#include "sqlite_file.h"

static void a_scheme_finds_its_engine(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    struct store *s = NULL;
    assert_int_equal(store_open(f->dsn, true, &s, &e), 0);
    assert_ptr_equal(s->ops, &store_sqlite);
    store_close_p(&s);
    assert_null(s);
    store_close(NULL);
    /* nothing listens there, and that is PostgreSQL's word */
    const char *const nowhere[] = {"postgresql:///x?host=/nonexistent", "postgres:///x?host=/nonexistent"};
    for (size_t i = 0; i < COUNT_OF(nowhere); i++) {
        assert_int_equal(store_open(nowhere[i], true, &s, &e), -1);
        assert_int_equal(e.kind, ERR_UNREACHABLE);
        assert_null(s);
    }
}

static void other_schemes_are_refused_without_showing_the_dsn(void **state)
{
    (void)state;
    static const struct {
        const char *dsn, *text;
    } bad[] = {
        {"oracle://u:secret@h/d",
         "store: the scheme is not known; there are sqlite:PATH, postgresql://… and mariadb://…"},
        {"secret", "store: the scheme is not known; there are sqlite:PATH, postgresql://… and mariadb://…"},
        {"SQLITE:secret",
         "store: the scheme is not known; there are sqlite:PATH, postgresql://… and mariadb://…"},
        {"postgresql:secret",
         "store: the scheme is not known; there are sqlite:PATH, postgresql://… and mariadb://…"},
        {"", "store: the scheme is not known; there are sqlite:PATH, postgresql://… and mariadb://…"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct err e = ERR_INIT;
        struct store *s = NULL;
        assert_int_equal(store_open(bad[i].dsn, false, &s, &e), -1);
        assert_int_equal(e.kind, ERR_USAGE);
        assert_string_equal(e.text, bad[i].text);
        assert_null(s);
    }
}

static void a_cursor_owns_its_values(void **state)
{
    (void)state;
    char word[] = "a\0b", bytes[] = "xy";
    struct value values[] = {{.kind = VALUE_TEXT, .text = word, .len = 3},
                             {.kind = VALUE_INTEGER, .integer = 42},
                             {.kind = VALUE_BLOB, .text = bytes, .len = 2},
                             {.kind = VALUE_TEXT, .text = "", .len = 0},
                             {.kind = VALUE_NULL}};
    AUTO(cursor_release) struct cursor c = {0}, copy = {0};
    cursor_set(&c, values, COUNT_OF(values));
    word[0] = bytes[0] = '!';
    cursor_copy(&copy, &c);
    cursor_set(&c, values + 1, 1); /* frees what was there */
    assert_true(c.set && c.n == 1 && c.values[0].integer == 42);
    assert_true(copy.set);
    assert_int_equal(copy.n, 5);
    assert_int_equal(copy.values[0].len, 3);
    assert_memory_equal(copy.values[0].text, "a\0b", 4);
    assert_int_equal(copy.values[2].kind, VALUE_BLOB);
    assert_memory_equal(copy.values[2].text, "xy", 2);
    assert_string_equal(copy.values[3].text, "");
    assert_null(copy.values[4].text);
    cursor_release(&c);
    assert_false(c.set);
    cursor_copy(&copy, &c); /* the start */
    assert_false(copy.set);
    assert_null(copy.values);
}

/* From its own values, as when a sweep goes on from where it is. */
static void a_cursor_may_be_set_from_itself(void **state)
{
    (void)state;
    AUTO(cursor_release) struct cursor c = {0};
    struct value v = {.kind = VALUE_TEXT, .text = "word", .len = 4};
    cursor_set(&c, &v, 1);
    cursor_copy(&c, &c);
    assert_string_equal(c.values[0].text, "word");
}

static void counts_begin_at_nothing(void **state)
{
    (void)state;
    struct plan p = {.n_slots = 3, .n_detach_slots = 2};
    struct slice s;
    struct due d;
    memset(&s, 0xff, sizeof(s));
    memset(&d, 0xff, sizeof(d));
    slice_init(&s, &p);
    due_init(&d, &p);
    for (size_t i = 0; i < 3; i++)
        assert_true(s.gone[i] == 0 && d.gone[i] == 0);
    for (size_t i = 0; i < 2; i++)
        assert_true(s.detached[i] == 0 && d.detached[i] == 0);
    assert_true(!s.end.set && !s.key && s.picked == 0 && !d.has_range);
    s.key = mem_strdup("id=1");
    cursor_set(&s.end, &(struct value){.kind = VALUE_TEXT, .text = "x", .len = 1}, 1);
    slice_release(&s);
    due_release(&d);
    assert_null(s.gone);
    assert_null(s.key);
    assert_null(d.detached);
    slice_release(&s); /* twice does no harm */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_scheme_finds_its_engine, file_setup, file_teardown),
        cmocka_unit_test(other_schemes_are_refused_without_showing_the_dsn),
        cmocka_unit_test(a_cursor_owns_its_values),
        cmocka_unit_test(a_cursor_may_be_set_from_itself),
        cmocka_unit_test(counts_begin_at_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
