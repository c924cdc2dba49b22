/* What MariaDB is asked, word by word. No server: the suites on real servers say whether it is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "store/mariadb/store.h"

static const struct column instant_column = {.name = "at", .sql_type = "timestamp", .type = TYPE_TIMESTAMPTZ};
static const struct column local_column = {.name = "at", .sql_type = "datetime", .type = TYPE_TIMESTAMP};
static const struct column date_column = {.name = "day", .sql_type = "date", .type = TYPE_DATE};
static const struct column integer_column = {.name = "n", .sql_type = "bigint", .type = TYPE_INTEGER};
static const struct column text_column = {.name = "Odd `t",
                                          .sql_type = "varchar",
                                          .type = TYPE_TEXT,
                                          .collation = "utf8mb4_general_ci",
                                          .folds = true,
                                          .pads = true};
static const struct column bin_column = {
    .name = "b", .sql_type = "varchar", .type = TYPE_TEXT, .collation = "utf8mb4_bin", .pads = true};
static const struct column exact_column = {
    .name = "x", .sql_type = "varchar", .type = TYPE_TEXT, .collation = "utf8mb4_nopad_bin"};
static const struct column latin_column = {.name = "l",
                                           .sql_type = "varchar",
                                           .type = TYPE_TEXT,
                                           .collation = "latin1_swedish_ci",
                                           .folds = true,
                                           .pads = true};

static const struct dialect *const d = &dialect_mariadb;

#define EXACT "CONVERT(this.`Odd ``t` USING utf8mb4) COLLATE utf8mb4_bin"
#define REAL_DATE(column)                                                                                    \
    "MONTH(" column ") > 0 AND DAYOFMONTH(" column ") > 0 AND DAYOFMONTH(" column                            \
    ") <= DAYOFMONTH(LAST_DAY(" column "))"

/* The kind of a parameter in braces: a pattern, a text, a set's column. */
static void show_param(const struct param *p, struct text *out)
{
    if (p->set >= 0)
        text_addf(out, "{set %d.%zu %s}", p->set, p->set_column, p->sql_type ? p->sql_type : "");
    else if (strncmp(p->value.text, "\\A", 2) != 0)
        text_addf(out, "{%s}", p->value.text);
    else if (!strstr(p->value.text, "[Zz]"))
        text_add(out, "{local}");
    else
        text_add(out, strstr(p->value.text, "))?\\z") ? "{any}" : "{with offset}");
}

static const char *shown(const struct stmt *s, struct text *out)
{
    text_clear(out);
    for (const char *c = text_str(&s->sql); *c; c++) {
        if (*c != MARIADB_PARAM[0]) {
            text_add_n(out, c, 1);
            continue;
        }
        char *end;
        size_t from = strtoul(c + 1, &end, 10), to = *end == '-' ? strtoul(end + 1, &end, 10) : from;
        assert_int_equal(*end, MARIADB_PARAM[0]);
        assert_true(from >= 1 && from <= to && to <= s->n_params);
        for (size_t i = from; i <= to; i++)
            show_param(&s->params[i - 1], out);
        c = end;
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
    check_text(&s, "(this.`at` < TIMESTAMP'2026-11-16 05:00:00.000001'"
                   " AND this.`at` >= TIMESTAMP'1970-01-01 00:00:01' AND MONTH(this.`at`) > 0)");
    d->time_compare(&s, "this", &t, CMP_GE, INT64_MIN);
    check_text(&s, "(this.`at` >= TIMESTAMP'0001-01-01 00:00:00.000000'"
                   " AND this.`at` >= TIMESTAMP'1970-01-01 00:00:01' AND MONTH(this.`at`) > 0)");
    d->time_compare(&s, "this", &t, CMP_LE, INT64_MAX);
    check_text(&s, "(this.`at` <= TIMESTAMP'9999-12-31 23:59:59.999999'"
                   " AND this.`at` >= TIMESTAMP'1970-01-01 00:00:01' AND MONTH(this.`at`) > 0)");
    d->time_readable(&s, "this", &t);
    check_text(&s, "(this.`at` <=> NULL OR this.`at` >= TIMESTAMP'1970-01-01 00:00:01'"
                   " AND MONTH(this.`at`) > 0)");
    d->time_value(&s, "this", &t);
    check_text(&s, "CASE WHEN this.`at` >= TIMESTAMP'1970-01-01 00:00:01' AND MONTH(this.`at`) > 0"
                   " THEN (TO_SECONDS(this.`at`) - 0 - 62167219200) * 1000000 + MICROSECOND(this.`at`) END");
    d->now(&s, at("2026-11-16T05:00:00.5Z"));
    check_text(&s, "TIMESTAMP'2026-11-16 05:00:00.500000'");
}

static void test_local_times(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(zone_free_p) struct zone *prague = zone_of("Europe/Prague");
    struct time_column t = {.column = &local_column, .encoding = TIME_LOCAL, .zone = prague};
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-07-01T10:00:00Z"));
    check_text(&s, "(this.`at` < TIMESTAMP'2026-07-01 12:00:00.000000'"
                   " AND this.`at` >= TIMESTAMP'0001-01-01 00:00:00' AND " REAL_DATE("this.`at`") ")");
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-03-29T01:30:00Z")); /* 02:30 to 03:00 do not exist */
    check_text(&s, "(this.`at` < TIMESTAMP'2026-03-29 03:30:00.000000'"
                   " AND NOT (this.`at` >= TIMESTAMP'2026-03-29 02:30:00.000000'"
                   " AND this.`at` < TIMESTAMP'2026-03-29 03:00:00.000000')"
                   " AND this.`at` >= TIMESTAMP'0001-01-01 00:00:00' AND " REAL_DATE("this.`at`") ")");
}

/* A zone's steps are written out; one without any is a number. */
static void test_zones_of_values(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(zone_free_p) struct zone *prague = zone_of("Europe/Prague"), *fixed = zone_of("Etc/GMT-3");
    struct time_column t = {.column = &local_column, .encoding = TIME_LOCAL, .zone = fixed};
    d->time_value(&s, "this", &t);
    check_text(&s, "CASE WHEN this.`at` >= TIMESTAMP'0001-01-01 00:00:00' AND " REAL_DATE(
                       "this.`at`") " THEN (TO_SECONDS(this.`at`) - 10800 - 62167219200) * 1000000"
                                    " + MICROSECOND(this.`at`) END");
    t.zone = prague;
    d->time_value(&s, "this", &t);
    const char *sql = text_str(&s.sql);
    assert_non_null(strstr(sql, "THEN (TO_SECONDS(this.`at`) - CAST(ELT(INTERVAL(TO_SECONDS(this.`at`),"));
    assert_non_null(strstr(sql, ",63941972400,")); /* 2026-03-29 03:00 */
    assert_null(strstr(sql, ",6627"));             /* 2100 */
}

static void test_dates(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(zone_free_p) struct zone *prague = zone_of("Europe/Prague");
    struct time_column t = {.column = &date_column, .encoding = TIME_DATE, .zone = prague};
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-06-30T22:00:00Z")); /* midnight itself */
    check_text(&s, "(this.`day` < DATE'2026-07-01' AND this.`day` >= DATE'0001-01-01' AND " REAL_DATE(
                       "this.`day`") ")");
    d->time_compare(&s, "this", &t, CMP_LE, at("2026-06-30T22:00:00Z"));
    check_text(&s, "(this.`day` < DATE'2026-07-02' AND this.`day` >= DATE'0001-01-01' AND " REAL_DATE(
                       "this.`day`") ")");
    t.zone = NULL;
    d->time_value(&s, "this", &t);
    check_text(&s, "CASE WHEN this.`day` >= DATE'0001-01-01' AND " REAL_DATE(
                       "this.`day`") " THEN (TO_SECONDS(this.`day`) - 0 - 62167219200) * 1000000 + 0 END");
}

static void test_integers(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct time_column t = {.column = &integer_column, .encoding = TIME_INTEGER, .unit_us = US_PER_S};
    d->time_compare(&s, "this", &t, CMP_LT, 1500000);
    check_text(&s, "(this.`n` < 2)");
    d->time_compare(&s, "this", &t, CMP_LE, 1500000);
    check_text(&s, "(this.`n` <= 1)");
    d->time_compare(&s, "this", &t, CMP_GE, -1500000);
    check_text(&s, "(this.`n` >= -1)");
    d->time_value(&s, "this", &t);
    check_text(&s, "CAST(this.`n` AS DECIMAL(20,0)) * 1000000");
    d->time_readable(&s, "this", &t);
    check_text(&s, "TRUE");
    d->time_keep(&s, "this", &t, CMP_LE, at("2026-11-16T05:00:00Z"), &integer_column, US_PER_DAY);
    check_text(&s, "((this.`n` < 1794805200) AND this.`n` > 0"
                   " AND CAST(this.`n` AS DECIMAL(20,0)) * 86400000000 <= 1794805200000000"
                   " AND CAST(this.`n` AS DECIMAL(20,0)) * 1000000 <= 1794805200000000"
                   " - CAST(this.`n` AS DECIMAL(20,0)) * 86400000000)");
}

/* What the index serves comes first; nothing is worked out of a text that no pattern matches. */
static void test_texts(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(text_release) struct text out = {0};
    AUTO(zone_free_p) struct zone *prague = zone_of("Europe/Prague");
    struct time_column t = {.column = &text_column, .encoding = TIME_TEXT};
    d->time_compare(&s, "this", &t, CMP_LT, at("2026-11-16T05:00:00Z"));
    const char *begins = "(this.`Odd ``t` < '2026-11-18' AND CASE WHEN " EXACT " REGEXP {any} THEN (";
    const char *sql = shown(&s, &out);
    assert_int_equal(strncmp(sql, begins, strlen(begins)), 0);
    assert_non_null(strstr(sql, " < 1794805200000000 ELSE FALSE END)"));
    stmt_clear(&s);
    t.zone = prague;
    d->time_compare(&s, "this", &t, CMP_GE, at("2026-11-16T05:00:00Z"));
    begins = "(this.`Odd ``t` > '2026-11-14' AND CASE WHEN " EXACT " REGEXP {with offset} THEN (";
    sql = shown(&s, &out);
    assert_int_equal(strncmp(sql, begins, strlen(begins)), 0);
    assert_non_null(strstr(sql, " WHEN " EXACT " REGEXP {local} THEN "));
    assert_non_null(
        strstr(sql, " >= 1794808800000000 ELSE FALSE END)")); /* the wall clock is an hour ahead */
    stmt_clear(&s);
    d->time_readable(&s, "this", &t);
    check_text(&s, "(this.`Odd ``t` <=> NULL OR " EXACT " REGEXP {any})");
    d->time_compare(&s, "this", &t, CMP_GE, INT64_MIN); /* no date to compare with */
    assert_int_equal(strncmp(text_str(&s.sql), "(CASE ", 6), 0);
}

static void test_latest(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct time_column t[] = {{.column = &integer_column, .encoding = TIME_INTEGER, .unit_us = 1},
                              {.column = &integer_column, .encoding = TIME_INTEGER, .unit_us = 1000}};
    d->latest(&s, "this", t, 2);
    check_text(&s, "NULLIF(GREATEST(COALESCE(CAST(this.`n` AS DECIMAL(20,0)) * 1, "
                   "-1000000000000000000000000000000), COALESCE(CAST(this.`n` AS DECIMAL(20,0)) * 1000, "
                   "-1000000000000000000000000000000)), -1000000000000000000000000000000)");
}

static void test_patterns(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    d->like(&s, "this", &text_column, "a%_\\%\\\\|\\x'");
    check_text(&s, EXACT " LIKE {a%_|%\\||x'} ESCAPE '|'");
    d->like(&s, "this", &text_column, "a\\");
    check_text(&s, "FALSE");
    d->prefix(&s, "this", &text_column, "50%_|\\");
    check_text(&s, EXACT " LIKE {50|%|_||\\%} ESCAPE '|'");
}

#define BYTES(column) "CAST(CONVERT(" column " USING utf8mb4) AS BINARY)"

static void test_sets(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    const struct column *two[] = {&integer_column, &text_column}, *other[] = {&integer_column, &bin_column};
    const struct column *one = &text_column, *latin = &latin_column;
    const size_t places[] = {0, 2};
    d->in_set(&s, "this", two, 2, 3, places, two);
    check_text(&s, "(this.`n`, this.`Odd ``t`) IN ({set 3.0 bigint}{set 3.2 varchar})");
    d->in_set(&s, "this", two, 1, 0, places, two);
    check_text(&s, "this.`n` IN ({set 0.0 bigint})");
    /* Another collation, another character set: the same bytes. */
    d->in_set(&s, "this", two, 2, 0, places, other);
    check_text(&s, "((this.`n`, this.`Odd ``t`) IN ({set 0.0 bigint}{set 0.2 varchar}) AND "
                   "(this.`n`, " BYTES("this.`Odd ``t`") ") IN ({set 0.0 bigint}{set 0.2 binary}))");
    d->in_set(&s, "this", &latin, 1, 0, places, &one);
    check_text(&s, "(" BYTES("this.`l`") " IN ({set 0.0 binary}))");
    d->is_text_of_set(&s, "this", &text_column, 1, true);
    check_text(&s,
               "this.`Odd ``t` IN ({set 1.0 varchar}) AND " BYTES("this.`Odd ``t`") " IN ({set 1.0 binary})");
    d->is_text_of_set(&s, "this", &exact_column, 1, true);
    check_text(&s, "this.`x` IN ({set 1.0 varchar})");
    /* An id that the character set lacks could not even be compared. */
    d->is_text_of_set(&s, "this", &latin_column, 1, true);
    check_text(&s, BYTES("this.`l`") " IN ({set 1.0 binary})");
    d->is_text_of_set(&s, "this", &integer_column, 1, true);
    check_text(&s, "this.`n` IN ({set 1.0 bigint})");
}

static void test_exactness(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    const struct value values[] = {{.kind = VALUE_TEXT, .text = "DONE", .len = 4},
                                   {.kind = VALUE_TEXT, .text = "\xc3\xa9", .len = 2}};
    d->exactly(&s, "this", &bin_column, values, 2); /* 'DONE ' is 'DONE' to it */
    check_text(&s, " AND " BYTES("this.`b`") " IN (X'444f4e45', X'c3a9')");
    d->exactly(&s, "this", &exact_column, values, 2);
    check_text(&s, "");
    d->exactly(&s, "this", &integer_column, values, 1);
    check_text(&s, "");
    assert_true(d->tells_apart(&exact_column));
    assert_false(d->tells_apart(&bin_column));
    assert_true(d->alike(&integer_column, &text_column));
    assert_true(d->alike(&text_column, &text_column));
    assert_false(d->alike(&text_column, &bin_column));
    d->equal(&s, "a.b", &bin_column, "c.l", &latin_column, true);
    check_text(&s, "(a.b = CONVERT(c.l USING utf8mb4) COLLATE utf8mb4_bin"
                   " AND c.l = CONVERT(a.b USING latin1) COLLATE latin1_swedish_ci"
                   " AND " BYTES("a.b") " = " BYTES("c.l") ")");
    d->equal(&s, "a.b", &bin_column, "c.l", &latin_column, false);
    check_text(&s, "(CONVERT(a.b USING utf8mb4) COLLATE utf8mb4_general_ci ="
                   " CONVERT(c.l USING utf8mb4) COLLATE utf8mb4_general_ci OR"
                   " CONVERT(a.b USING utf8mb4) COLLATE utf8mb4_unicode_520_ci ="
                   " CONVERT(c.l USING utf8mb4) COLLATE utf8mb4_unicode_520_ci)");
}

static void check_lock(const struct mariadb_server *server, enum lock_mode mode, const char *expected)
{
    AUTO(stmt_release) struct stmt s = {0};
    const struct dialect of = mariadb_dialect_for(server);
    of.lock(&s, "this", mode);
    check_text(&s, expected);
}

static void test_servers(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    const struct mariadb_server now = {.version = 101119}, before = {.version = 100500},
                                later = {.version = 110502}, long_ago = {.version = 100200},
                                mysql = {.mysql = true, .version = 80036},
                                undoing = {.version = 100500, .undoes_all = true};
    check_lock(&now, LOCK_SKIP, " FOR UPDATE SKIP LOCKED");
    check_lock(&now, LOCK_WAIT, " FOR UPDATE");
    check_lock(&now, LOCK_SHARE, " LOCK IN SHARE MODE SKIP LOCKED");
    check_lock(&before, LOCK_SKIP, " FOR UPDATE NOWAIT");
    check_lock(&before, LOCK_SHARE, " LOCK IN SHARE MODE NOWAIT");
    check_lock(&long_ago, LOCK_SKIP, " FOR UPDATE");
    check_lock(&mysql, LOCK_SKIP, " FOR UPDATE OF this SKIP LOCKED");
    check_lock(&mysql, LOCK_SHARE, " FOR SHARE OF this SKIP LOCKED");
    check_lock(&mysql, LOCK_WAIT, " FOR UPDATE OF this");
    assert_false(mariadb_dialect_for(&now).held_fails || mariadb_dialect_for(&mysql).held_fails);
    assert_true(mariadb_dialect_for(&before).held_fails);
    assert_false(mariadb_dialect_for(&undoing).held_fails);
    assert_non_null(strstr(mariadb_dialect_for(&now).own.name_type, "utf8mb4_nopad_bin"));
    assert_non_null(strstr(mariadb_dialect_for(&mysql).own.name_type, "utf8mb4_0900_bin"));
    assert_non_null(strstr(mariadb_dialect_for(&mysql).own.long_name_type, "utf8mb4_0900_bin"));
    char last[WHEN_TEXT_SIZE];
    assert_string_equal(when_format(mariadb_dialect_for(&now).own.last, last), "2038-01-19T03:14:07.999999Z");
    assert_string_equal(when_format(mariadb_dialect_for(&later).own.last, last),
                        "2106-02-07T06:28:15.999999Z");
    d->use_index(&s, &(struct index){.name = "by `at`"});
    check_text(&s, " FORCE INDEX (`by ``at```)");
}

/* Keys as rows to be joined, and the DELETE that is held to an index: each server has its own words. */
static void test_lists_of_keys(void **state)
{
    (void)state;
    const struct mariadb_server maria = {.version = 101119}, mysql = {true, 80036, false};
    const struct dialect here = mariadb_dialect_for(&maria), there = mariadb_dialect_for(&mysql);
    const struct column id = {.name = "id", .sql_type = "bigint", .type = TYPE_INTEGER},
                        at = {.name = "at", .sql_type = "datetime", .type = TYPE_TIMESTAMP},
                        when = {.name = "w", .sql_type = "timestamp", .type = TYPE_TIMESTAMPTZ},
                        real = {.name = "r", .sql_type = "double", .type = TYPE_REAL};
    const struct column *both[] = {&id, &at}, *unlike[] = {&id, &when}, *none[] = {&real};
    const size_t places[] = {0, 1};
    struct table t = {.name = "t", .schema = "db"};
    AUTO(stmt_release) struct stmt s = {0};
    assert_true(here.key_list(&s, both, 2, 0, places, both));
    assert_non_null(strstr(text_str(&s.sql),
                           "(VALUES " MARIADB_PARAM "1-2" MARIADB_PARAM ") SELECT DISTINCT k0, "
                           "CAST(k1 AS DATETIME(6)) AS k1 FROM lapse_rows"));
    stmt_clear(&s);
    assert_true(there.key_list(&s, both, 2, 0, places, both));
    assert_non_null(strstr(text_str(&s.sql), "(VALUES " MARIADB_PARAM "1=2" MARIADB_PARAM ")"));
    stmt_clear(&s);
    assert_false(here.key_list(&s, both, 2, 0, places, unlike));
    assert_false(here.key_list(&s, none, 1, 0, places, none));
    assert_int_equal(s.sql.len, 0);
    assert_true(here.delete_by(&s, &t, &id, 0, 0, &id));
    assert_string_equal(text_str(&s.sql), "SET STATEMENT sql_safe_updates = 1 FOR DELETE FROM `db`.`t` WHERE "
                                          "`db`.`t`.`id` IN (" MARIADB_PARAM "1" MARIADB_PARAM ")");
    assert_null(there.delete_by);
    t.delete_hooks = true; /* a trigger's own statements must not be held to an index */
    stmt_clear(&s);
    assert_false(here.delete_by(&s, &t, &id, 0, 0, &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instants),
        cmocka_unit_test(test_local_times),
        cmocka_unit_test(test_zones_of_values),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_latest),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_exactness),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_lists_of_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
