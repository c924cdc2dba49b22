/* dialect_sqlite: what it writes, what it means to a real SQLite, and that indexes still serve. */
#include "sqlite_file.h"

#include <inttypes.h>

#define NOW INT64_C(1794632054123456) /* 2026-11-14 */

static const struct dialect *const d = &dialect_sqlite;

static const struct column when_column = {.name = "at", .sql_type = "INTEGER", .type = TYPE_INTEGER};
static const struct column keep_column = {.name = "keep", .sql_type = "INTEGER", .type = TYPE_INTEGER};

static void assert_sql(struct stmt *s, const char *expected)
{
    assert_string_equal(text_str(&s->sql), expected);
    stmt_release(s);
}

static void writes_times(void **state)
{
    (void)state;
    struct stmt s = {0};
    struct time_column ms = {.column = &when_column, .encoding = TIME_INTEGER, .unit_us = 1000};
    d->time_compare(&s, "this", &ms, CMP_LT, 5001);
    assert_int_equal(s.params[0].value.integer, 6);
    assert_sql(&s, "(this.\"at\" < ?1 AND typeof(this.\"at\") = 'integer')");
    d->time_compare(&s, "this", &ms, CMP_LE, 5001);
    assert_int_equal(s.params[0].value.integer, 5);
    stmt_release(&s);
    d->time_compare(&s, "this", &ms, CMP_LT, -5001);
    assert_int_equal(s.params[0].value.integer, -5);
    stmt_release(&s);

    struct time_column text = {.column = &when_column, .encoding = TIME_TEXT};
    d->time_compare(&s, "this", &text, CMP_LE, 0);
    assert_string_equal(s.params[0].value.text, "1970-01-04");
    assert_string_equal(s.params[1].value.text, "UTC");
    assert_sql(&s, "(this.\"at\" < ?1 AND lapse_instant(this.\"at\", ?2) <= ?3)");
    d->time_compare(&s, "this", &text, CMP_LT, INT64_MAX);
    assert_sql(&s, "(lapse_instant(this.\"at\", ?1) < ?2)");
    d->time_readable(&s, "this", &text);
    assert_sql(&s, "(this.\"at\" IS NULL OR lapse_instant(this.\"at\", ?1) IS NOT NULL)");
    d->lock(&s, "this", LOCK_SKIP);
    d->lock(&s, "this", LOCK_SHARE);
    assert_sql(&s, "");
    assert_false(d->locks_rows);
    d->now(&s, NOW);
    assert_string_equal(s.params[0].value.text, "2026-11-14 04:54:14.123");
    stmt_release(&s);
}

static void writes_sets(void **state)
{
    (void)state;
    struct column a = {.name = "a"}, b = {.name = "b\"x"}, nocase = {.name = "n", .collation = "NOCASE"};
    const struct column *one[] = {&a}, *two[] = {&a, &b}, *folded[] = {&nocase};
    size_t at[] = {2, 0};
    struct stmt s = {0};
    d->in_set(&s, "this", one, 1, 3, at, one);
    assert_sql(&s, "this.\"a\" IN (SELECT c2 FROM temp.lapse_set_3)");
    d->in_set(&s, "x", two, 2, 0, at, two);
    assert_sql(&s, "(x.\"a\", x.\"b\"\"x\") IN (SELECT c2, c0 FROM temp.lapse_set_0)");
    d->in_set(&s, "x", one, 1, 0, at, folded);
    assert_sql(&s, "(x.\"a\" IN (SELECT c2 FROM temp.lapse_set_0) AND "
                   "x.\"a\" COLLATE \"NOCASE\" IN (SELECT c2 FROM temp.lapse_set_0))");
}

/* --- verdicts ----------------------------------------------------------------------------------- */

#define TEXT(s)                                                                                              \
    {                                                                                                        \
        .kind = VALUE_TEXT, .text = s, .len = sizeof(s) - 1                                                  \
    }
#define BLOB(s)                                                                                              \
    {                                                                                                        \
        .kind = VALUE_BLOB, .text = s, .len = sizeof(s) - 1                                                  \
    }
#define INTEGER(i)                                                                                           \
    {                                                                                                        \
        .kind = VALUE_INTEGER, .integer = i                                                                  \
    }
#define REAL(r)                                                                                              \
    {                                                                                                        \
        .kind = VALUE_REAL, .real = r                                                                        \
    }

static const struct value odd_values[] = {
    {.kind = VALUE_NULL},
    INTEGER(0),
    INTEGER(1),
    INTEGER(-1),
    INTEGER(INT64_MAX),
    INTEGER(INT64_MIN),
    INTEGER(INT64_MAX / 1000),
    INTEGER(INT64_MAX / 1000 + 1),
    INTEGER(INT64_MIN / 1000000 - 1),
    INTEGER(NOW),
    INTEGER(NOW - 1),
    INTEGER(NOW + 1),
    INTEGER(NOW / 1000),
    INTEGER(NOW / 1000 + 1),
    INTEGER(NOW / 1000 - 1),
    INTEGER(NOW / 1000000),
    INTEGER(NOW / 1000000 + 1),
    REAL(1.5),
    REAL(-0.0),
    REAL(1e300),
    REAL(1794632054.5),
    BLOB(""),
    BLOB("2020-01-01 00:00:00"),
    TEXT(""),
    TEXT("now"),
    TEXT("123"),
    TEXT(" 2020-01-01 00:00:00"),
    TEXT("2020-01-01 00:00:00 "),
    TEXT("2020-01-01"),
    TEXT("2020-02-30 00:00:00"),
    TEXT("2020-01-01 00:00:00\0x"),
    TEXT("0001-01-01 00:00"),
    TEXT("9999-12-31T23:59:59.999999Z"),
    TEXT("9999-12-31T23:59:59.999999-15:59"),
    TEXT("2026-11-14 04:54:14.123456"),
    TEXT("2026-11-14 04:54:14.123455"),
    TEXT("2026-11-14T04:54:14.123457Z"),
    TEXT("2026-11-14t04:54:14.1234569z"),
    TEXT("2026-11-14 20:53:14.123456+15:59"),
    TEXT("2026-11-14 20:53:14.123455+15:59"),
    TEXT("2026-11-13 12:55:14.123456-15:59"),
    TEXT("2026-11-13 12:55:14.123457 -1559"),
    TEXT("2026-10-25 02:30:00"),
    TEXT("2026-10-25 02:30:00+02"),
    TEXT("2026-10-25 02:30:00+01:00"),
    TEXT("2026-03-29 02:30:00"),
    TEXT("1969-12-31 23:59:59.999999Z"),
    TEXT("1970-01-01T00:00:00Z"),
    TEXT("26-11-14 04:54:14"),
    TEXT("+2026-11-14 04:54:14"),
    TEXT("2026-11-14T04:54:14\xc3\xa9"),
};

static const struct value odd_keeps[] = {
    INTEGER(60), {.kind = VALUE_NULL},   INTEGER(0), INTEGER(-5), INTEGER(INT64_MAX),
    REAL(1.5),   INTEGER(NOW / 1000000), TEXT("x"),  INTEGER(1),
};

static const instant cutoffs[] = {
    NOW,
    NOW + 1,
    0,
    -1,
    INT64_C(1792895400000000), /* 2026-10-25T00:30:00Z: 02:30 in Prague, the first time */
    INT64_C(1792899000000000), /* one hour later: the second time */
    INT64_C(-62135596800000000),
    INT64_C(253402300799999999),
    INT64_MAX,
    INT64_MIN,
};

/* The instant by time/when.h; wider than 64 bits, since a count of seconds may lie far out. */
static bool instant_of(const struct time_column *t, const struct value *v, __int128 *ret)
{
    instant at;
    if (t->encoding == TIME_INTEGER) {
        *ret = (__int128)v->integer * t->unit_us;
        return v->kind == VALUE_INTEGER;
    }
    if (v->kind != VALUE_TEXT || !when_parse(v->text, v->len, t->zone, &at))
        return false;
    *ret = at;
    return true;
}

static bool compares(__int128 a, enum compare cmp, __int128 b)
{
    return cmp == CMP_LT ? a < b : cmp == CMP_LE ? a <= b : cmp == CMP_GT ? a > b : a >= b;
}

/* The stored values: affinity may have changed them. Column 0 the time, 1 the keep, 2 a verdict. */
static struct rows verdicts(struct file *f, const char *table, const struct stmt *condition)
{
    struct stmt st = *condition;
    st.sql = (struct text){0};
    text_addf(&st.sql, "SELECT this.\"at\", this.\"keep\", %s FROM \"%s\" AS this", text_str(&condition->sql),
              table);
    struct rows rows = ask_stmt(f->sql, &st);
    text_release(&st.sql);
    return rows;
}

static bool is_true(const struct value *v)
{
    return v->kind == VALUE_INTEGER && v->integer != 0;
}

static void expect(bool expected, const struct value *row, const struct stmt *s, instant at)
{
    if (is_true(&row[2]) != expected)
        fail_msg("%s at %" PRId64 ": kind %d, %" PRId64 ", '%s', keep %" PRId64 ": expected %d",
                 text_str(&s->sql), at, (int)row[0].kind, row[0].integer, row[0].text ? row[0].text : "",
                 row[1].integer, expected);
}

static void check_compare(struct file *f, const char *table, const struct time_column *t, enum compare cmp,
                          instant at)
{
    AUTO(stmt_release) struct stmt s = {0};
    d->time_compare(&s, "this", t, cmp, at);
    AUTO(rows_release) struct rows rows = verdicts(f, table, &s);
    for (size_t i = 0; i < rows.n_rows; i++) {
        const struct value *row = &rows.cells[i * 3];
        __int128 when;
        expect(instant_of(t, row, &when) && compares(when, cmp, at), row, &s, at);
    }
}

static void check_keep(struct file *f, const char *table, const struct time_column *t, enum compare cmp,
                       instant at, int64_t unit)
{
    AUTO(stmt_release) struct stmt s = {0};
    d->time_keep(&s, "this", t, cmp, at, &keep_column, unit);
    AUTO(rows_release) struct rows rows = verdicts(f, table, &s);
    for (size_t i = 0; i < rows.n_rows; i++) {
        const struct value *row = &rows.cells[i * 3];
        __int128 when, cutoff = at - (__int128)row[1].integer * unit;
        bool keeps = row[1].kind == VALUE_INTEGER && row[1].integer > 0 && cutoff >= 0;
        expect(keeps && instant_of(t, row, &when) && compares(when, cmp, cutoff), row, &s, at);
    }
}

static void check_readable_and_value(struct file *f, const char *table, const struct time_column *t)
{
    AUTO(stmt_release) struct stmt s = {0}, v = {0};
    d->time_readable(&s, "this", t);
    d->time_value(&v, "this", t);
    AUTO(rows_release) struct rows readable = verdicts(f, table, &s), values = verdicts(f, table, &v);
    for (size_t i = 0; i < readable.n_rows; i++) {
        const struct value *row = &readable.cells[i * 3], *value = &values.cells[i * 3 + 2];
        __int128 when;
        bool usable = instant_of(t, row, &when);
        assert_int_equal(row[2].kind, VALUE_INTEGER); /* never unknown */
        expect(usable || row[0].kind == VALUE_NULL, row, &s, 0);
        assert_int_equal(value->kind, usable ? VALUE_INTEGER : VALUE_NULL);
        if (!usable)
            continue;
        bool fits = when >= INT64_MIN && when <= INT64_MAX;
        if (fits && llabs(value->integer) < INT64_MAX / 2)
            assert_true(value->integer == (int64_t)when);
        else
            assert_true((value->integer > 0) == (when > 0) && llabs(value->integer) > INT64_MAX / 2);
    }
}

static void check_all(struct file *f, const char *table, const struct time_column *t)
{
    static const int64_t units[] = {1, 1000, 1000000};
    for (size_t i = 0; i < COUNT_OF(cutoffs); i++) {
        for (enum compare cmp = CMP_LT; cmp <= CMP_GE; cmp++)
            check_compare(f, table, t, cmp, cutoffs[i]);
        for (size_t u = 0; u < COUNT_OF(units); u++) {
            check_keep(f, table, t, CMP_LT, cutoffs[i], units[u]);
            check_keep(f, table, t, CMP_LE, cutoffs[i], units[u]);
        }
    }
    check_readable_and_value(f, table, t);
}

static void insert(struct file *f, const char *table, const struct value *at, const struct value *keep)
{
    AUTO(stmt_release) struct stmt s = {0};
    text_addf(&s.sql, "INSERT INTO \"%s\" VALUES (", table);
    sql_bind(&s, d, *at, NULL);
    text_add(&s.sql, ", ");
    sql_bind(&s, d, *keep, NULL);
    text_add(&s.sql, ")");
    struct err e = ERR_INIT;
    int64_t n;
    if (f->sql->engine->execute(f->sql, &s, &n, &e))
        fail_msg("%s", e.text);
}

static const char *const declared[] = {"INTEGER", "TEXT", "DATETIME",           "",
                                       "BLOB",    "REAL", "TEXT COLLATE NOCASE"};

static void fill_tables(struct file *f)
{
    do_sql(f->sql, "BEGIN");
    for (size_t k = 0; k < COUNT_OF(declared); k++) {
        AUTO(text_release) struct text sql = {0};
        text_addf(&sql, "CREATE TABLE \"%s\"(at %s, keep INTEGER)", declared[k], declared[k]);
        do_sql(f->sql, text_str(&sql));
        text_clear(&sql);
        text_addf(&sql, "CREATE INDEX \"%s at\" ON \"%s\"(at)", declared[k], declared[k]);
        do_sql(f->sql, text_str(&sql));
        for (size_t i = 0; i < COUNT_OF(odd_values); i++)
            for (size_t j = 0; j < COUNT_OF(odd_keeps); j++)
                insert(f, declared[k], &odd_values[i], &odd_keeps[j]);
    }
    do_sql(f->sql, "COMMIT");
}

static void verdicts_agree_with_when(void **state)
{
    struct file *f = *state;
    fill_tables(f);
    static const int64_t units[] = {1, 1000, 1000000};
    static const char *const zones[] = {"Europe/Prague", "Pacific/Kiritimati", "America/New_York"};
    for (size_t k = 0; k < COUNT_OF(declared); k++) {
        struct time_column t = {.column = &when_column, .encoding = TIME_INTEGER};
        for (size_t i = 0; i < COUNT_OF(units); i++) {
            t.unit_us = units[i];
            check_all(f, declared[k], &t);
        }
        t = (struct time_column){.column = &when_column, .encoding = TIME_TEXT};
        check_all(f, declared[k], &t);
        for (size_t i = 0; i < COUNT_OF(zones); i++) {
            AUTO(zone_free_p) struct zone *z = NULL;
            assert_int_equal(zone_open(zones[i], &z, NULL), 0);
            t.zone = z;
            check_all(f, declared[k], &t);
        }
    }
}

static void latest_ignores_null_and_never_passes_over_the_far_future(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(a, b)");
    do_sql(f->sql,
           "INSERT INTO t VALUES (1, NULL), (NULL, 2), (3, 2), (NULL, NULL), (9223372036854775807, 1), "
           "('x', 5), (2.5, -1), (-9223372036854775808, NULL)");
    struct column a = {.name = "a"}, b = {.name = "b"};
    struct time_column t[] = {{.column = &a, .encoding = TIME_INTEGER, .unit_us = 1000},
                              {.column = &b, .encoding = TIME_INTEGER, .unit_us = 1000}};
    AUTO(stmt_release) struct stmt s = {0};
    text_add(&s.sql, "SELECT ");
    d->latest(&s, "this", t, 2);
    text_add(&s.sql, " FROM t AS this ORDER BY rowid");
    AUTO(rows_release) struct rows rows = ask_stmt(f->sql, &s);
    static const int64_t expected[] = {
        1000, 2000, 3000, 0, INT64_C(9223372036854775000), 5000, -1000, INT64_C(-9223372036854775000)};
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(rows.cells[i].kind, i == 3 ? VALUE_NULL : VALUE_INTEGER);
        assert_true(i == 3 || rows.cells[i].integer == expected[i]);
    }
}

/* --- indexes ------------------------------------------------------------------------------------- */

static void assert_plan(struct file *f, const struct stmt *condition, const char *table, const char *expected)
{
    struct stmt st = *condition;
    st.sql = (struct text){0};
    text_addf(&st.sql, "SELECT 1 FROM \"%s\" AS this WHERE %s", table, text_str(&condition->sql));
    AUTO(text_release) struct text plan = {0};
    ask_plan(f->sql, &st, &plan);
    if (!strstr(text_str(&plan), expected) || strstr(text_str(&plan), "SCAN this"))
        fail_msg("%s:\n%s", text_str(&st.sql), text_str(&plan));
    text_release(&st.sql);
}

static void indexes_serve_times(void **state)
{
    struct file *f = *state;
    fill_tables(f);
    for (size_t k = 0; k < COUNT_OF(declared); k++) {
        for (int text = 0; text < 2; text++) {
            struct time_column t = {
                .column = &when_column, .encoding = text ? TIME_TEXT : TIME_INTEGER, .unit_us = 1000};
            AUTO(stmt_release) struct stmt below = {0}, above = {0}, keep = {0};
            d->time_compare(&below, "this", &t, CMP_LT, NOW);
            d->time_compare(&above, "this", &t, CMP_GT, NOW);
            d->time_keep(&keep, "this", &t, CMP_LT, NOW, &keep_column, 1000);
            assert_plan(f, &below, declared[k], "(at<?)");
            assert_plan(f, &above, declared[k], "(at>?)");
            assert_plan(f, &keep, declared[k], "(at<?)");
        }
    }
}

/* --- key sets ------------------------------------------------------------------------------------- */

static void load(struct file *f, const struct node *n, const char *select)
{
    struct sql_store *s = f->sql;
    struct err e = ERR_INIT;
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, select);
    sql_store_release(s);
    s->n_sets = 1;
    s->sets = mem_alloc(sizeof(*s->sets));
    s->sets[0].node = n;
    s->sets[0].rows = ask_stmt(s, &st);
    if (s->engine->load_set(s, 0, &e))
        fail_msg("%s", e.text);
}

static int64_t count_in_set(struct file *f, const struct column *child, const struct column *parent)
{
    const struct column *columns[] = {child}, *types[] = {parent};
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "SELECT count(*) FROM child AS this WHERE ");
    d->in_set(&st, "this", columns, 1, 0, (const size_t[]){0}, types);
    AUTO(rows_release) struct rows rows = ask_stmt(f->sql, &st);
    return rows.cells[0].integer;
}

static const struct column typed[] = {
    {.name = "i", .sql_type = "INTEGER", .type = TYPE_INTEGER},
    {.name = "t", .sql_type = "TEXT", .type = TYPE_TEXT},
    {.name = "r", .sql_type = "REAL", .type = TYPE_REAL},
    {.name = "b", .sql_type = "BLOB", .type = TYPE_BLOB},
    {.name = "n", .sql_type = "NUMERIC", .type = TYPE_DYNAMIC},
    {.name = "x", .sql_type = "", .type = TYPE_DYNAMIC},
};

static void a_set_compares_as_the_column_would(void **state)
{
    struct file *f = *state;
    for (int child = 0; child < 2; child++) {
        AUTO(text_release) struct text sql = {0};
        const char *name = child ? "child" : "parent";
        text_addf(&sql, "CREATE TABLE %s(i INTEGER, t TEXT, r REAL, b BLOB, n NUMERIC, x)", name);
        do_sql(f->sql, text_str(&sql));
        static const char *const values[] = {"1",
                                             "'1'",
                                             "'01'",
                                             "1.0",
                                             "'1.0'",
                                             "x'31'",
                                             "'a'",
                                             "'A'",
                                             "NULL",
                                             "''",
                                             "1e20",
                                             "0.1",
                                             "'0.1'",
                                             "9007199254740993",
                                             "'9007199254740993'",
                                             "x'00'",
                                             "'a ' "};
        for (size_t i = 0; i < COUNT_OF(values); i++) {
            const char *v = values[i];
            text_clear(&sql);
            text_addf(&sql, "INSERT INTO %s VALUES (%s,%s,%s,%s,%s,%s)", name, v, v, v, v, v, v);
            do_sql(f->sql, text_str(&sql));
        }
    }
    for (size_t p = 0; p < COUNT_OF(typed); p++) {
        const struct column *carry[] = {&typed[p]};
        struct node n = {.carry = carry, .n_carry = 1};
        AUTO(text_release) struct text sql = {0};
        text_addf(&sql, "SELECT %s FROM parent", typed[p].name);
        load(f, &n, text_str(&sql));
        for (size_t c = 0; c < COUNT_OF(typed); c++) {
            text_clear(&sql);
            text_addf(
                &sql,
                "SELECT count(*) FROM child WHERE EXISTS (SELECT 1 FROM parent WHERE child.%s = parent.%s)",
                typed[c].name, typed[p].name);
            int64_t expected = ask_number(f->sql, text_str(&sql)),
                    got = count_in_set(f, &typed[c], &typed[p]);
            if (got != expected)
                fail_msg("child.%s, set of parent.%s: %" PRId64 " instead of %" PRId64, typed[c].name,
                         typed[p].name, got, expected);
        }
    }
}

static void indexes_serve_sets(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE child(i INTEGER, t TEXT, r REAL)");
    do_sql(f->sql, "CREATE INDEX ci ON child(i)");
    do_sql(f->sql, "CREATE INDEX cti ON child(t, i)");
    const struct column *carry[] = {&typed[0], &typed[1]}, *swapped[] = {&typed[1], &typed[0]};
    struct node n = {.carry = carry, .n_carry = 2};
    load(f, &n, "SELECT 1, 'x'");
    AUTO(stmt_release) struct stmt one = {0}, two = {0};
    d->in_set(&one, "this", carry, 1, 0, (const size_t[]){0}, carry);
    assert_plan(f, &one, "child", "SEARCH this USING COVERING INDEX ci (i=?)");
    d->in_set(&two, "this", swapped, 2, 0, (const size_t[]){1, 0}, swapped);
    assert_plan(f, &two, "child", "SEARCH this USING COVERING INDEX cti (t=? AND i=?)");
}

static void a_set_may_change_its_shape_and_outlives_rollback(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    const struct column *carry[] = {&typed[0], &typed[1]}, *other[] = {&typed[1]};
    struct node two = {.carry = carry, .n_carry = 2}, one = {.carry = other, .n_carry = 1};
    assert_int_equal(g->begin_write(f->sql, 1000, 0, NULL), 0);
    load(f, &two, "SELECT 1, 'x'");
    g->rollback(f->sql);
    load(f, &two, "SELECT 1, 'x' UNION SELECT 2, 'y'");
    load(f, &two, "SELECT 3, 'z'");
    assert_int_equal(ask_number(f->sql, "SELECT total(c0) = 3 FROM temp.lapse_set_0"), 1);
    load(f, &one, "SELECT 'seven'");
    assert_int_equal(ask_number(f->sql, "SELECT c0 = 'seven' AND typeof(c0) = 'text' FROM temp.lapse_set_0"),
                     1);
}

/* --- patterns -------------------------------------------------------------------------------------- */

/* LIKE by the book, on ASCII. */
static bool matches(const char *p, const char *s)
{
    if (!*p)
        return !*s;
    if (*p == '%')
        return matches(p + 1, s) || (*s && matches(p, s + 1));
    if (!*s)
        return false;
    if (*p == '_')
        return matches(p + 1, s + 1);
    if (*p == '\\' && p[1])
        p++;
    return *p == *s && matches(p + 1, s + 1);
}

/* Such a pattern matches nothing, on any engine. */
static bool ends_in_escape(const char *p)
{
    for (; *p; p++)
        if (*p == '\\' && !*++p)
            return true;
    return false;
}

static void random_text(char *buf, size_t most, const char *letters, unsigned *seed)
{
    size_t n = (size_t)rand_r(seed) % most;
    for (size_t i = 0; i < n; i++)
        buf[i] = letters[(size_t)rand_r(seed) % strlen(letters)];
    buf[n] = '\0';
}

static bool verdict_on(struct file *f, const char *text, const char *pattern, bool prefix)
{
    static const struct column c = {.name = "c", .type = TYPE_TEXT};
    AUTO(stmt_release) struct stmt s = {0};
    text_add(&s.sql, "SELECT ");
    (prefix ? d->prefix : d->like)(&s, "this", &c, pattern);
    text_add(&s.sql, " FROM (SELECT ");
    sql_bind_text(&s, d, text, NULL);
    text_add(&s.sql, " AS c) AS this");
    AUTO(rows_release) struct rows rows = ask_stmt(f->sql, &s);
    return is_true(&rows.cells[0]);
}

static void patterns_mean_the_same_as_elsewhere(void **state)
{
    struct file *f = *state;
    unsigned seed = 7;
    for (int i = 0; i < 4000; i++) {
        char text[12], pattern[8];
        random_text(text, sizeof(text), "aA*?[]^-\\%_", &seed);
        random_text(pattern, sizeof(pattern), "aA*?[]^-%%__\\", &seed);
        if (verdict_on(f, text, pattern, false) != (!ends_in_escape(pattern) && matches(pattern, text)))
            fail_msg("'%s' LIKE '%s'", text, pattern);
        if (verdict_on(f, text, pattern, true) != (strncmp(text, pattern, strlen(pattern)) == 0))
            fail_msg("'%s' begins with '%s'", text, pattern);
    }
    assert_true(verdict_on(f, "\xc3\xa9t\xc3\xa9", "_t_", false));
    assert_false(verdict_on(f, "ABC", "abc", false));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, file_setup, file_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_times),
        cmocka_unit_test(writes_sets),
        T(verdicts_agree_with_when),
        T(latest_ignores_null_and_never_passes_over_the_far_future),
        T(indexes_serve_times),
        T(a_set_compares_as_the_column_would),
        T(indexes_serve_sets),
        T(a_set_may_change_its_shape_and_outlives_rollback),
        T(patterns_mean_the_same_as_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
