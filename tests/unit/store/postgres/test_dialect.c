/* What PostgreSQL is asked, word by word. No server: the suites on real servers say whether it is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "shown.h"
#include "store/postgres/store.h"

static const struct column instant_column = {
    .name = "at", .sql_type = "timestamp with time zone", .type = TYPE_TIMESTAMPTZ};
static const struct column local_column = {
    .name = "at", .sql_type = "timestamp without time zone", .type = TYPE_TIMESTAMP};
static const struct column date_column = {.name = "day", .sql_type = "date", .type = TYPE_DATE};
static const struct column integer_column = {.name = "n", .sql_type = "integer", .type = TYPE_INTEGER};
static const struct column text_column = {.name = "Odd \"t", .sql_type = "text", .type = TYPE_TEXT};

static const struct dialect *const d = &dialect_postgres;

static const char *pattern_kind(const char *pattern)
{
    if (!strstr(pattern, "[Zz]"))
        return "{local}";
    return strstr(pattern, "))?$") ? "{any}" : "{with offset}";
}

/* The statement with each placeholder's value behind it in braces, patterns by their kind, and without the
 * schema of the operators, functions and types: that they have one is looked at. */
static const char *shown(const struct stmt *s, struct text *out)
{
    AUTO(text_release) struct text sql = {0};
    text_clear(out);
    for (const char *c = unqualified(text_str(&s->sql), &sql); *c; c++) {
        text_add_n(out, c, 1);
        size_t n = 0;
        if (*c == '$')
            for (; c[1] >= '0' && c[1] <= '9'; c++) {
                text_add_n(out, c + 1, 1);
                n = n * 10 + (size_t)(c[1] - '0');
            }
        if (n) {
            assert_true(n <= s->n_params);
            const struct param *p = &s->params[n - 1];
            if (p->set >= 0)
                text_addf(out, "{set %d.%zu}", p->set, p->set_column);
            else if (p->value.kind == VALUE_INTEGER)
                text_addf(out, "{%lld}", (long long)p->value.integer);
            else if (p->value.text[0] == '^')
                text_add(out, pattern_kind(p->value.text));
            else
                text_addf(out, "{%s}", p->value.text);
        }
    }
    return text_str(out);
}

static void check_text(struct stmt *s, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    assert_string_equal(shown(s, &out), expected);
    stmt_clear(s);
}

static instant at(const char *text)
{
    instant ret = 0;
    assert_true(when_parse(text, strlen(text), NULL, &ret));
    return ret;
}

static struct zone *zone_of(const char *name)
{
    struct zone *z = NULL;
    struct err e = ERR_INIT;
    assert_int_equal(zone_open(name, &z, &e), 0);
    return z;
}

static void test_instants(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct time_column t = {.column = &instant_column, .encoding = TIME_INSTANT};
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-11-16T05:00:00.000001Z"));
    check_text(&s, "(this.\"at\" < $1{2026-11-16 05:00:00.000001+00}::timestamp with time zone"
                   " AND this.\"at\" > '-infinity'::timestamp with time zone)");
    d->time_compare(&s, "this", &t, CMP_GE, at("0001-01-01T00:00:00Z") - 1);
    check_text(&s, "(this.\"at\" >= $1{0001-12-31 23:59:59.999999+00 BC}::timestamp with time zone"
                   " AND this.\"at\" < 'infinity'::timestamp with time zone)");
    d->time_compare(&s, "this", &t, CMP_LE, INT64_MIN);
    check_text(&s, "(this.\"at\" <= $1{4714-11-24 00:00:00.000000+00 BC}::timestamp with time zone"
                   " AND this.\"at\" > '-infinity'::timestamp with time zone)");
    d->time_readable(&s, "this", &t);
    check_text(&s, "coalesce(isfinite(this.\"at\"::timestamp with time zone), true)");
    d->time_value(&s, "this", &t);
    check_text(&s, "CASE WHEN this.\"at\" >= '4713-01-01 BC'::timestamp with time zone AND this.\"at\" < "
                   "'294247-01-01'::timestamp with time zone"
                   " THEN (EXTRACT(epoch FROM this.\"at\") * 1000000::numeric)::bigint END");
    d->now(&s, at("2026-11-16T05:00:00.5Z"));
    check_text(&s, "$1{2026-11-16 05:00:00.500000+00}::timestamp with time zone");
}

static void test_local_times(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(zone_free_p) struct zone *prague = zone_of("Europe/Prague");
    struct time_column t = {.column = &local_column, .encoding = TIME_LOCAL, .zone = prague};
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-07-01T10:00:00Z"));
    check_text(&s, "(this.\"at\" < $1{2026-07-01 12:00:00.000000}::timestamp without time zone"
                   " AND this.\"at\" > '-infinity'::timestamp without time zone)");
    d->time_compare(&s, "this", &t, CMP_GT, at("2026-07-01T10:00:00Z"));
    check_text(&s, "(this.\"at\" >= $1{2026-07-01 12:00:00.000001}::timestamp without time zone"
                   " AND this.\"at\" < 'infinity'::timestamp without time zone)");
    d->time_value(&s, "this", &t);
    check_text(&s, "CASE WHEN this.\"at\" >= '4713-01-01 BC'::timestamp without time zone AND this.\"at\" < "
                   "'294247-01-01'::timestamp without time zone"
                   " THEN (EXTRACT(epoch FROM this.\"at\" AT TIME ZONE $1{Europe/Prague}::text)"
                   " * 1000000::numeric)::bigint END");
}

/* At 01:30Z on 2026-03-29 clocks show 03:30; the skipped 02:30 to 03:00 read as 01:30Z to 02:00Z. */
static void test_skipped_local_times(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(zone_free_p) struct zone *prague = zone_of("Europe/Prague");
    struct time_column t = {.column = &local_column, .encoding = TIME_LOCAL, .zone = prague};
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-03-29T01:30:00Z"));
    check_text(&s, "(this.\"at\" < $1{2026-03-29 03:30:00.000000}::timestamp without time zone"
                   " AND NOT (this.\"at\" >= $2{2026-03-29 02:30:00.000000}::timestamp without time zone"
                   " AND this.\"at\" < $3{2026-03-29 03:00:00.000000}::timestamp without time zone)"
                   " AND this.\"at\" > '-infinity'::timestamp without time zone)");
    d->time_compare(&s, "this", &t, CMP_GE, at("2026-03-29T01:30:00Z"));
    check_text(&s, "(this.\"at\" >= $1{2026-03-29 02:30:00.000000}::timestamp without time zone"
                   " AND NOT (this.\"at\" >= $2{2026-03-29 03:00:00.000000}::timestamp without time zone"
                   " AND this.\"at\" < $3{2026-03-29 03:30:00.000000}::timestamp without time zone)"
                   " AND this.\"at\" < 'infinity'::timestamp without time zone)");
}

static void test_dates(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(zone_free_p) struct zone *prague = zone_of("Europe/Prague");
    struct time_column t = {.column = &date_column, .encoding = TIME_DATE, .zone = prague};
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-06-30T22:00:00Z")); /* midnight itself */
    check_text(&s, "(this.\"day\" < $1{2026-07-01}::date AND this.\"day\" > '-infinity'::date)");
    d->time_compare(&s, "this", &t, CMP_LE, at("2026-06-30T22:00:00Z"));
    check_text(&s, "(this.\"day\" < $1{2026-07-02}::date AND this.\"day\" > '-infinity'::date)");
    d->time_compare(&s, "this", &t, CMP_GT, at("2026-06-30T21:59:59Z"));
    check_text(&s, "(this.\"day\" >= $1{2026-07-01}::date AND this.\"day\" < 'infinity'::date)");
    t.zone = NULL;
    d->time_value(&s, "this", &t);
    check_text(&s, "CASE WHEN this.\"day\" >= '4713-01-01 BC'::date AND this.\"day\" < '294247-01-01'::date"
                   " THEN (EXTRACT(epoch FROM this.\"day\"::timestamp without time zone)"
                   " * 1000000::numeric)::bigint END");
}

static void test_zones_that_the_server_would_mistake(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(zone_free_p) struct zone *cet = zone_of("CET");
    struct time_column t = {.column = &local_column, .encoding = TIME_LOCAL, .zone = cet};
    d->time_value(&s, "this", &t);
    assert_string_equal(s.params[0].value.text, "Europe/Brussels");
}

static void test_integers(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct time_column t = {.column = &integer_column, .encoding = TIME_INTEGER, .unit_us = 1000};
    static const struct {
        enum compare cmp;
        instant at;
        const char *expected;
    } cases[] = {
        {CMP_LT, 2000, "(this.\"n\" < $1{2}::bigint)"},
        {CMP_LT, 2001, "(this.\"n\" < $1{3}::bigint)"},
        {CMP_LE, 2001, "(this.\"n\" <= $1{2}::bigint)"},
        {CMP_GT, 2001, "(this.\"n\" > $1{2}::bigint)"},
        {CMP_GE, 2001, "(this.\"n\" >= $1{3}::bigint)"},
        {CMP_LT, -1, "(this.\"n\" < $1{0}::bigint)"},
        {CMP_LE, -1, "(this.\"n\" <= $1{-1}::bigint)"},
        {CMP_LT, INT64_MAX, "(this.\"n\" < $1{9223372036854776}::bigint)"},
        {CMP_GT, INT64_MIN, "(this.\"n\" > $1{-9223372036854776}::bigint)"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        d->time_compare(&s, "this", &t, cases[i].cmp, cases[i].at);
        check_text(&s, cases[i].expected);
    }
    d->time_value(&s, "this", &t);
    check_text(&s, "(this.\"n\"::numeric * 1000::numeric)");
    d->time_readable(&s, "this", &t);
    check_text(&s, "true");
}

static void test_texts(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct time_column t = {.column = &text_column, .encoding = TIME_TEXT};
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-12-30T12:00:00Z"));
    check_text(&s, "(this.\"Odd \"\"t\" < $1{2027-01-01}::text"
                   " AND CASE WHEN this.\"Odd \"\"t\"::text COLLATE \"C\" ~ $2{any}::text"
                   " THEN regexp_replace(this.\"Odd \"\"t\"::text COLLATE \"C\","
                   " $3{(?<=[.][0-9]{6})[0-9]+}::text, ''::text)::timestamp with time zone"
                   " < $4{2026-12-30 12:00:00.000000+00}::timestamp with time zone ELSE false END)");
    d->time_compare(&s, "this", &t, CMP_GT, at("0001-01-02T00:00:00Z")); /* no date is that far before */
    assert_int_equal(strncmp(text_str(&s.sql), "(CASE ", 6), 0);
    stmt_clear(&s);
    d->time_readable(&s, "this", &t);
    check_text(&s, "coalesce(this.\"Odd \"\"t\"::text COLLATE \"C\" ~ $1{any}::text, true)");
}

static void test_texts_in_a_zone(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(zone_free_p) struct zone *prague = zone_of("Europe/Prague");
    struct column padded = {.name = "c", .sql_type = "bpchar", .type = TYPE_TEXT};
    struct time_column t = {.column = &padded, .encoding = TIME_TEXT, .zone = prague};
    d->time_compare(&s, "this", &t, CMP_GE, at("2026-07-03T10:00:00Z"));
    check_text(
        &s, "(this.\"c\" > $1{2026-07-01}::bpchar"
            " AND CASE WHEN this.\"c\"::text COLLATE \"C\" ~ $2{with offset}::text"
            " THEN regexp_replace(this.\"c\"::text COLLATE \"C\", $3{(?<=[.][0-9]{6})[0-9]+}::text, ''::text)"
            "::timestamp with time zone >= $4{2026-07-03 10:00:00.000000+00}::timestamp with time zone"
            " WHEN this.\"c\"::text COLLATE \"C\" ~ $5{local}::text"
            " THEN regexp_replace(this.\"c\"::text COLLATE \"C\", $6{(?<=[.][0-9]{6})[0-9]+}::text, ''::text)"
            "::timestamp without time zone >= $7{2026-07-03 12:00:00.000000}::timestamp without time zone"
            " ELSE false END)");
}

static void test_keep_and_latest(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct column keep = {.name = "keep_s", .sql_type = "integer", .type = TYPE_INTEGER};
    struct time_column t[] = {
        {.column = &integer_column, .encoding = TIME_INTEGER, .unit_us = 1000},
        {.column = &integer_column, .encoding = TIME_INTEGER, .unit_us = 1},
    };
    d->time_keep(&s, "this", t, CMP_LE, 5000, &keep, 1000000);
    check_text(&s, "((this.\"n\" < $1{5}::bigint) AND this.\"keep_s\"::numeric > 0::numeric"
                   " AND (this.\"keep_s\"::numeric * 1000000::numeric) <= $2{5000}::numeric"
                   " AND (this.\"n\"::numeric * 1000::numeric)::numeric <= ($3{5000}::numeric"
                   " - (this.\"keep_s\"::numeric * 1000000::numeric)))");
    d->latest(&s, "this", t, 2);
    check_text(&s, "GREATEST((this.\"n\"::numeric * 1000::numeric), (this.\"n\"::numeric * 1::numeric))");
}

static void test_patterns(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct column collated = {.name = "c", .sql_type = "text", .type = TYPE_TEXT, .collation = "de-x"};
    struct column plain = {.name = "c", .sql_type = "character varying", .type = TYPE_TEXT, .collation = "C"};
    struct column label = {.name = "c", .sql_type = "public.state", .type = TYPE_ENUM};
    d->like(&s, "this", &plain, "a\\%b%");
    check_text(&s, "this.\"c\" ~~ $1{a\\%b%}::text");
    d->like(&s, "this", &plain, "a\\\\");
    check_text(&s, "this.\"c\" ~~ $1{a\\\\}::text");
    d->like(&s, "this", &plain, "a\\");
    check_text(&s, "false");
    d->prefix(&s, "this", &collated, "50%_\\x");
    check_text(&s, "this.\"c\" COLLATE \"C\" ~~ $1{50\\%\\_\\\\x%}::text");
    d->prefix(&s, "this", &label, "do");
    check_text(&s, "this.\"c\"::text ~~ $1{do%}::text");
}

static void test_sets(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct column a = {.name = "a", .sql_type = "integer"}, b = {.name = "b", .sql_type = "text"};
    const struct column *const columns[] = {&a, &b}, *const types[] = {&integer_column, &text_column};
    d->in_set(&s, "this", columns, 1, 2, (size_t[]){3}, types);
    check_text(&s, "this.\"a\" = ANY($1{set 2.3}::integer[])");
    d->in_set(&s, "this", columns, 2, 0, (size_t[]){1, 0}, types);
    check_text(&s, "(this.\"a\", this.\"b\") = ANY(SELECT * FROM"
                   " ROWS FROM (unnest($1{set 0.1}::integer[]), unnest($2{set 0.0}::text[])))");
}

/* Rows that are locked are found where they lie, if the set knows where. */
static void test_sets_by_place(void **state)
{
    (void)state;
    static const struct column place = {.name = "ctid", .sql_type = "tid", .type = TYPE_OTHER};
    const struct column *columns[] = {&text_column, &place};
    struct table t = {.name = "t", .kind = KIND_TABLE, .key = columns, .n_key = 1};
    struct node n = {.table = &t, .carry = columns, .n_carry = 2, .set = 3};
    AUTO(stmt_release) struct stmt s = {0};
    assert_false(sql_delete_set_by_place(&s, d, &n)); /* the table has none */
    t.place = &place;
    assert_true(sql_delete_set_by_place(&s, d, &n));
    assert_ptr_equal(s.deletes, &t);
    check_text(&s, "DELETE FROM ONLY \"t\" AS this WHERE this.\"ctid\" = ANY($1{set 3.1}::tid[])");
    n.n_carry = 1;
    assert_false(sql_delete_set_by_place(&s, d, &n)); /* it was not read */
}

/* Keys that nobody weighs: only by an index of which each key finds one row at most, in its own type. Else
 * the few keys that are believed in may look like the whole table, and each of its rows is compared with
 * each. */
static void test_sets_by_an_index(void **state)
{
    (void)state;
    static const char by_index[] = "DELETE FROM \"t\" AS this WHERE this.\"n\" ="
                                   " ANY((SELECT $1{set 0.0}::integer[])::integer[])",
                      weighed[] = "DELETE FROM \"t\" AS this WHERE this.\"n\" = ANY($1{set 0.0}::integer[])";
    const struct column *columns[] = {&integer_column};
    struct index x = {.name = "t_pkey", .columns = columns, .n_columns = 1, .unique = true, .primary = true};
    struct table t = {
        .name = "t", .kind = KIND_TABLE, .indexes = &x, .n_indexes = 1, .key = columns, .n_key = 1};
    struct node n = {.table = &t, .carry = columns, .n_carry = 1};
    AUTO(stmt_release) struct stmt s = {0};
    sql_delete_set(&s, d, &n);
    check_text(&s, by_index);
    t.kind = KIND_PARTITIONED;
    sql_delete_set(&s, d, &n);
    check_text(&s, weighed);
    t.kind = KIND_TABLE;
    x.unique = x.primary = false;
    sql_delete_set(&s, d, &n);
    check_text(&s, weighed);

    x.unique = true;
    const struct column *parents[] = {&text_column};
    struct node parent = {.table = &t, .carry = parents, .n_carry = 1}, kid = {.table = &t, .set = -1};
    kid.join = (struct join){.child = columns, .parent = parents, .n = 1};
    sql_delete_kids(&s, d, &(struct plan){0}, &parent, &kid);
    check_text(&s, "DELETE FROM \"t\" AS this WHERE this.\"n\" = ANY($1{set 0.0}::text[])");
}

/* Only by an index that has every row, of one table, and numbers on both sides. */
static void test_runs(void **state)
{
    (void)state;
    const struct column *columns[] = {&integer_column}, *texts[] = {&text_column};
    struct index x = {.name = "t_n", .columns = columns, .n_columns = 1};
    struct table t = {
        .name = "t", .kind = KIND_TABLE, .indexes = &x, .n_indexes = 1, .key = columns, .n_key = 1};
    struct node parent = {.table = &t, .carry = columns, .n_carry = 1}, kid = {.table = &t, .set = -1};
    kid.join = (struct join){.child = columns, .parent = columns, .n = 1};
    AUTO(stmt_release) struct stmt s = {0};
    assert_true(sql_delete_kids_by_runs(&s, d, &parent, &kid));
    assert_int_equal(s.params[0].part, ROWS_FIRSTS);
    assert_int_equal(s.params[1].part, ROWS_LASTS);
    check_text(&s, "DELETE FROM \"t\" AS this USING"
                   " ROWS FROM (unnest($1{set 0.0}::bigint[]), unnest($2{set 0.0}::bigint[]))"
                   " AS lapse_run(first, last)"
                   " WHERE this.\"n\" >= lapse_run.first AND this.\"n\" <= lapse_run.last");
    assert_true(sql_delete_set_by_runs(&s, d, &parent));
    x.partial = true;
    assert_false(sql_delete_kids_by_runs(&s, d, &parent, &kid));
    assert_false(sql_delete_set_by_runs(&s, d, &parent));
    x.partial = false;
    t.kind = KIND_PARTITIONED;
    assert_false(sql_delete_kids_by_runs(&s, d, &parent, &kid));
    t.kind = KIND_TABLE;
    t.n_indexes = 0;
    assert_false(sql_delete_kids_by_runs(&s, d, &parent, &kid));
    t.n_indexes = 1;
    const struct expr where = {.kind = EXPR_TRUE};
    kid.where = &where;
    assert_false(sql_delete_kids_by_runs(&s, d, &parent, &kid));
    kid.where = NULL;
    kid.join.parent = parent.carry = texts;
    assert_false(sql_delete_kids_by_runs(&s, d, &parent, &kid));
}

static void test_placeholders_and_locks(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    sql_bind(&s, d, (struct value){.kind = VALUE_INTEGER, .integer = 7}, NULL);
    check_text(&s, "$1{7}");
    sql_bind(&s, d, (struct value){.kind = VALUE_INTEGER, .integer = 7}, "smallint");
    check_text(&s, "$1{7}::smallint");
    d->lock(&s, "this", LOCK_SKIP);
    check_text(&s, " FOR UPDATE OF this SKIP LOCKED");
    d->lock(&s, "kid", LOCK_WAIT);
    check_text(&s, " FOR UPDATE OF kid");
    d->lock(&s, "source", LOCK_SHARE);
    check_text(&s, " FOR SHARE OF source SKIP LOCKED");
    assert_true(d->locks_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instants),
        cmocka_unit_test(test_local_times),
        cmocka_unit_test(test_skipped_local_times),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_zones_that_the_server_would_mistake),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_texts_in_a_zone),
        cmocka_unit_test(test_keep_and_latest),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_sets_by_place),
        cmocka_unit_test(test_sets_by_an_index),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_placeholders_and_locks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
