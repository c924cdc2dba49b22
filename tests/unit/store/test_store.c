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

static void push_number(struct rows *r, int64_t number, bool as_text)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%lld", (long long)number);
    struct value v = {.kind = VALUE_INTEGER, .integer = number};
    if (as_text)
        v = (struct value){.kind = VALUE_TEXT, .text = text, .len = (size_t)len};
    rows_push(r, &v);
}

static void numbers_in_a_row_are_a_run(void **state)
{
    (void)state;
    for (int as_text = 0; as_text < 2; as_text++) {
        AUTO(rows_release) struct rows r = {.n_columns = 1};
        static const int64_t numbers[] = {7,
                                          5,
                                          6,
                                          4,
                                          6,
                                          -1,
                                          INT64_MAX,
                                          0,
                                          -2,
                                          -3,
                                          2,
                                          INT64_MAX - 1,
                                          1,
                                          INT64_MAX - 2,
                                          INT64_MIN + 2,
                                          INT64_MIN,
                                          INT64_MIN + 1};
        for (size_t i = 0; i < COUNT_OF(numbers); i++)
            push_number(&r, numbers[i], as_text);
        const enum value_kind as = as_text ? VALUE_TEXT : VALUE_INTEGER;
        const struct runs *runs = rows_runs(&r, 0, as);
        assert_non_null(runs);
        assert_ptr_equal(rows_runs(&r, 0, as), runs);
        static const int64_t ends[][2] = {
            {INT64_MIN, INT64_MIN + 2}, {-3, 2}, {4, 7}, {INT64_MAX - 2, INT64_MAX}};
        assert_int_equal(runs->n, COUNT_OF(ends));
        for (size_t i = 0; i < COUNT_OF(ends); i++) {
            assert_int_equal(runs->first[i], ends[i][0]);
            assert_int_equal(runs->last[i], ends[i][1]);
        }
        push_number(&r, 9, as_text); /* a fifth run, for 18 numbers: too many */
        assert_null(rows_runs(&r, 0, as));
        push_number(&r, 8, as_text);
        assert_int_equal(rows_runs(&r, 0, as)->n, 4);
    }
}

static void what_is_no_number_has_no_runs(void **state)
{
    (void)state;
    static const struct value odd[] = {
        {.kind = VALUE_NULL},
        {.kind = VALUE_REAL, .real = 5},
        {.kind = VALUE_BLOB, .text = "5", .len = 1},
        {.kind = VALUE_TEXT, .text = "", .len = 0},
        {.kind = VALUE_TEXT, .text = "5x", .len = 2},
        {.kind = VALUE_TEXT, .text = "5\0", .len = 2},
        {.kind = VALUE_TEXT, .text = "9223372036854775808", .len = 19},
        {.kind = VALUE_INTEGER, .integer = 5}, /* not as the others are given */
    };
    const enum value_kind as = VALUE_TEXT;
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        AUTO(rows_release) struct rows r = {.n_columns = 1};
        for (int64_t number = 1; number < 9; number++)
            push_number(&r, number, true);
        assert_non_null(rows_runs(&r, 0, as));
        rows_push(&r, &odd[i]);
        assert_null(rows_runs(&r, 0, as));
    }
    AUTO(rows_release) struct rows r = {.n_columns = 1};
    for (int64_t number = 1; number < 9; number++)
        push_number(&r, number, true);
    assert_null(rows_runs(&r, 0, VALUE_INTEGER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_scheme_finds_its_engine, file_setup, file_teardown),
        cmocka_unit_test(other_schemes_are_refused_without_showing_the_dsn),
        cmocka_unit_test(a_cursor_owns_its_values),
        cmocka_unit_test(a_cursor_may_be_set_from_itself),
        cmocka_unit_test(counts_begin_at_nothing),
        cmocka_unit_test(numbers_in_a_row_are_a_run),
        cmocka_unit_test(what_is_no_number_has_no_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
