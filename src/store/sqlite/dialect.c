/* dialect: how SQLite spells times, patterns and key sets.
 *
 * A column of SQLite holds values of any storage class, whatever was declared. Each time condition therefore
 * has two parts: a plain comparison of the column, which an index serves, and a test of the value itself,
 * which keeps values of another class, or text that is no timestamp, out. */
#include "store/sqlite/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct dialect *const self = &dialect_sqlite;

static void placeholder(struct stmt *s, size_t n)
{
    text_addf(&s->sql, "?%zu", n);
}

/* --- key sets --------------------------------------------------------------------------------- */

static const char *collation_of(const struct column *c)
{
    return c->collation ? c->collation : "BINARY";
}

static bool same_collation(const struct column *a, const struct column *b)
{
    return strcmp(collation_of(a), collation_of(b)) == 0;
}

/* Whether a column keeps values as they come: '1' and 1 are then two. */
static bool keeps_class(const struct column *c)
{
    bool any = c->type == TYPE_DYNAMIC && (!*c->sql_type || strcasecmp(c->sql_type, "ANY") == 0);
    return any || c->type == TYPE_BLOB;
}

/* A foreign key compares as its parent's column does, but IN would turn '1' of that column into the 1 of a
 * child that has an affinity. */
static bool same_class(const struct column *child, const struct column *parent)
{
    return keeps_class(child) || !keeps_class(parent);
}

/* as: NULL, or the columns whose collation and affinity decide. */
static void write_columns(struct stmt *s, const char *alias, const struct column *const *columns, size_t n,
                          const struct column *const *as)
{
    text_add(&s->sql, n > 1 ? "(" : "");
    for (size_t i = 0; i < n; i++) {
        text_add(&s->sql, i ? ", " : "");
        text_add(&s->sql, as && !same_class(columns[i], as[i]) ? "+" : "");
        sql_column(s, self, alias, columns[i]);
        if (as && !same_collation(columns[i], as[i])) {
            text_add(&s->sql, " COLLATE ");
            sql_name(s, self, collation_of(as[i]));
        }
    }
    text_add(&s->sql, n > 1 ? ")" : "");
}

static void write_in(struct stmt *s, const char *alias, const struct column *const *columns, size_t n,
                     int set, const size_t *at, const struct column *const *as)
{
    write_columns(s, alias, columns, n, as);
    text_add(&s->sql, " IN (SELECT ");
    for (size_t i = 0; i < n; i++)
        text_addf(&s->sql, "%sc%zu", i ? ", " : "", at[i]);
    text_addf(&s->sql, " FROM temp.lapse_set_%d)", set);
}

/* IN compares with the left side's collation and affinity. Where the set's column has others, the two may
 * disagree on which rows belong together; a row is taken only if both say so. */
static void in_set(struct stmt *s, const char *alias, const struct column *const *columns, size_t n, int set,
                   const size_t *at, const struct column *const *types)
{
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same = same && same_collation(columns[i], types[i]) && same_class(columns[i], types[i]);
    if (same) {
        write_in(s, alias, columns, n, set, at, NULL);
        return;
    }
    text_add(&s->sql, "(");
    write_in(s, alias, columns, n, set, at, NULL);
    text_add(&s->sql, " AND ");
    write_in(s, alias, columns, n, set, at, types);
    text_add(&s->sql, ")");
}

/* Between two whole numbers that follow each other a column may hold others: 1.5. typeof() would be asked at
 * the price of a function call. The CASTs have a column that holds texts after all compared as numbers. */
static void runs_have(struct stmt *s, const char *alias, const struct column *c, int set, size_t at)
{
    sql_column(s, self, alias, c);
    text_addf(&s->sql, " BETWEEN CAST(?%zu AS INTEGER)", sql_bind_runs(s, set, at, ROWS_FIRSTS, NULL));
    text_addf(&s->sql, " AND CAST(?%zu AS INTEGER) AND ", sql_bind_runs(s, set, at, ROWS_LASTS, NULL));
    sql_column(s, self, alias, c);
    text_add(&s->sql, " | 0 = ");
    sql_column(s, self, alias, c);
}

/* --- times ------------------------------------------------------------------------------------ */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static bool is_upper(enum compare cmp)
{
    return cmp == CMP_LT || cmp == CMP_LE;
}

/* For a count c of units: c * unit < at is c < ceil(at / unit), c * unit <= at is c <= floor(at / unit);
 * likewise for > and >=. Exact, and nothing can overflow. */
static void compare_count(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                          instant at)
{
    bool up = cmp == CMP_LT || cmp == CMP_GE;
    sql_column(s, self, alias, t->column);
    text_add(&s->sql, sql_compare(cmp));
    sql_bind_integer(s, self, up ? ceil_div(at, t->unit_us) : floor_div(at, t->unit_us));
}

/* An offset moves the date in a text by less than a day and a half from the instant's date in UTC. */
#define COARSE_US (3 * US_PER_DAY)
#define YEAR_1    (INT64_C(-62135596800) * US_PER_S)
#define YEAR_10K  (INT64_C(253402300800) * US_PER_S)

/* The dates that can lie before (or after) the instant, compared as text. Writes " AND " after it; writes
 * nothing where the date has no four-digit year. */
static void compare_date(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                         instant at)
{
    int64_t day;
    if (!add_i64(at, is_upper(cmp) ? COARSE_US : -COARSE_US, &day) || day < YEAR_1 || day >= YEAR_10K)
        return;
    char date[WHEN_TEXT_SIZE];
    sql_column(s, self, alias, t->column);
    text_add(&s->sql, is_upper(cmp) ? " < " : " >= ");
    sql_bind_text(s, self, when_format_date(day, date), NULL);
    text_add(&s->sql, " AND ");
}

/* The instant of a text; NULL for anything else. */
static void text_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    text_add(&s->sql, "lapse_instant(");
    sql_column(s, self, alias, t->column);
    text_add(&s->sql, ", ");
    sql_bind_text(s, self, t->zone ? zone_name(t->zone) : "UTC", NULL);
    text_add(&s->sql, ")");
}

/* A count beyond what microseconds can hold stays the latest (or earliest) of all, so that `latest` cannot
 * pass over a time that means "never". SQLite would make a rounded real of it. */
static void count_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    int64_t most = INT64_MAX / t->unit_us;
    text_add(&s->sql, "CASE typeof(");
    sql_column(s, self, alias, t->column);
    text_addf(&s->sql, ") WHEN 'integer' THEN max(-%" PRId64 ", min(%" PRId64 ", ", most, most);
    sql_column(s, self, alias, t->column);
    text_addf(&s->sql, ")) * %" PRId64 " END", t->unit_us);
}

static void time_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    if (t->encoding == TIME_INTEGER)
        count_value(s, alias, t);
    else
        text_value(s, alias, t);
}

static void type_is_integer(struct stmt *s, const char *alias, const struct column *c)
{
    text_add(&s->sql, "typeof(");
    sql_column(s, self, alias, c);
    text_add(&s->sql, ") = 'integer'");
}

static void time_compare(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                         instant at)
{
    text_add(&s->sql, "(");
    if (t->encoding == TIME_INTEGER) {
        compare_count(s, alias, t, cmp, at);
        text_add(&s->sql, " AND ");
        type_is_integer(s, alias, t->column);
    } else {
        compare_date(s, alias, t, cmp, at);
        text_value(s, alias, t);
        text_add(&s->sql, sql_compare(cmp));
        sql_bind_integer(s, self, at);
    }
    text_add(&s->sql, ")");
}

/* keep >= 1, so the time lies before `at` itself: that bound the index serves. keep <= at / unit keeps
 * at - keep * unit from going below 1970, and so from overflowing. */
static void time_keep(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                      instant at, const struct column *keep, int64_t keep_unit_us)
{
    text_add(&s->sql, "(");
    if (t->encoding == TIME_INTEGER) {
        compare_count(s, alias, t, CMP_LT, at);
        text_add(&s->sql, " AND ");
    } else {
        compare_date(s, alias, t, CMP_LT, at);
    }
    type_is_integer(s, alias, keep);
    text_add(&s->sql, " AND ");
    sql_column(s, self, alias, keep);
    text_addf(&s->sql, " BETWEEN 1 AND %" PRId64 " AND ", at < 0 ? 0 : at / keep_unit_us);
    time_value(s, alias, t);
    text_add(&s->sql, sql_compare(cmp));
    sql_bind_integer(s, self, at);
    text_add(&s->sql, " - ");
    sql_column(s, self, alias, keep);
    text_addf(&s->sql, " * %" PRId64 ")", keep_unit_us);
}

static void time_readable(struct stmt *s, const char *alias, const struct time_column *t)
{
    if (t->encoding == TIME_INTEGER) {
        text_add(&s->sql, "typeof(");
        sql_column(s, self, alias, t->column);
        text_add(&s->sql, ") IN ('integer', 'null')");
        return;
    }
    text_add(&s->sql, "(");
    sql_column(s, self, alias, t->column);
    text_add(&s->sql, " IS NULL OR ");
    text_value(s, alias, t);
    text_add(&s->sql, " IS NOT NULL)");
}

/* In a column that makes whole numbers of all that are some, what is no whole number differs from its bits.
 * That costs a third of asking for its type. */
static void time_unreadable(struct stmt *s, const char *alias, const struct time_column *t)
{
    bool bits = t->encoding == TIME_INTEGER && t->column->type == TYPE_INTEGER && !t->column->any_class;
    if (bits) {
        sql_column(s, self, alias, t->column);
        text_add(&s->sql, " | 0 <> ");
        sql_column(s, self, alias, t->column);
        return;
    }
    text_add(&s->sql, "NOT (");
    time_readable(s, alias, t);
    text_add(&s->sql, ")");
}

static bool always_readable(const struct time_column *t)
{
    (void)t;
    return false;
}

static void latest(struct stmt *s, const char *alias, const struct time_column *t, size_t n)
{
    text_add(&s->sql, "lapse_latest(");
    for (size_t i = 0; i < n; i++) {
        text_add(&s->sql, i ? ", " : "");
        time_value(s, alias, &t[i]);
    }
    text_add(&s->sql, ")");
}

/* --- patterns: SQLite's LIKE folds case, its GLOB does not ------------------------------------ */

static void glob_literal(struct text *glob, char c)
{
    if (c == '*' || c == '?' || c == '[')
        text_addf(glob, "[%c]", c);
    else
        text_add_n(glob, &c, 1);
}

/* False: the pattern ends in an escape, and matches nothing. */
static bool glob_of_like(struct text *glob, const char *pattern)
{
    for (const char *p = pattern; *p; p++) {
        if (*p == '%')
            text_add(glob, "*");
        else if (*p == '_')
            text_add(glob, "?");
        else if (*p == '\\' && !p[1])
            return false;
        else
            glob_literal(glob, *p == '\\' ? *++p : *p);
    }
    return true;
}

static void write_glob(struct stmt *s, const char *alias, const struct column *c, const struct text *glob)
{
    sql_column(s, self, alias, c);
    text_add(&s->sql, " GLOB ");
    sql_bind_text(s, self, text_str(glob), NULL);
}

static void like(struct stmt *s, const char *alias, const struct column *c, const char *pattern)
{
    AUTO(text_release) struct text glob = {0};
    if (glob_of_like(&glob, pattern))
        write_glob(s, alias, c, &glob);
    else
        text_add(&s->sql, "FALSE");
}

static void prefix(struct stmt *s, const char *alias, const struct column *c, const char *begin)
{
    AUTO(text_release) struct text glob = {0};
    for (const char *p = begin; *p; p++)
        glob_literal(&glob, *p);
    text_add(&glob, "*");
    write_glob(s, alias, c, &glob);
}

/* The engine's own LIKE folds what NOCASE does. */
static void like_folded(struct stmt *s, const char *alias, const struct column *c, const char *pattern)
{
    sql_column(s, self, alias, c);
    text_add(&s->sql, " LIKE ");
    sql_bind_text(s, self, pattern, NULL);
    text_add(&s->sql, " ESCAPE '\\'");
}

static void bytes(struct stmt *s, const char *alias, const struct column *c)
{
    sql_column(s, self, alias, c);
    text_add(&s->sql, " COLLATE BINARY");
}

static void exactly(struct stmt *s, const char *alias, const struct column *c, const struct value *values,
                    size_t n)
{
    if (!c->collation)
        return;
    text_add(&s->sql, " AND ");
    bytes(s, alias, c);
    text_add(&s->sql, n > 1 ? " IN (" : " = ");
    for (size_t i = 0; i < n; i++) {
        text_add(&s->sql, i ? ", " : "");
        sql_bind(s, self, values[i], NULL);
    }
    text_add(&s->sql, n > 1 ? ")" : "");
}

/* Whether the column would turn the text into a number before it compares. */
static bool is_taken_for_number(const struct column *c, const struct value *v)
{
    char *end = NULL;
    if (v->kind != VALUE_TEXT)
        return true;
    if (c->type == TYPE_TEXT || c->any_class)
        return false;
    strtod(v->text, &end);
    return end != v->text && !*end;
}

static void is_of_kind(struct stmt *s, const char *alias, const struct column *c, const struct value *v)
{
    text_add(&s->sql, " AND typeof(");
    sql_column(s, self, alias, c);
    text_addf(&s->sql, ") NOT IN ('blob', %s)", is_taken_for_number(c, v) ? "'text'" : "'integer', 'real'");
}

/* The set has the column's affinity, and so converts as the column does. */
static void is_text_of_set(struct stmt *s, const char *alias, const struct column *c, int set, bool indexed)
{
    (void)indexed;
    const size_t first = 0;
    struct column exact = *c;
    const struct column *as = &exact;
    exact.collation = NULL;
    in_set(s, alias, &c, 1, set, &first, &as);
}

static void of_row(struct stmt *s, int set, size_t column)
{
    text_addf(&s->sql, "?%zu", sql_bind_set(s, set, column, NULL));
}

static void is_text_of_row(struct stmt *s, const char *alias, const struct column *c, int set)
{
    sql_column(s, self, alias, c);
    text_add(&s->sql, " = ");
    of_row(s, set, 0);
    if (!c->collation)
        return;
    text_add(&s->sql, " AND ");
    sql_column(s, self, alias, c);
    text_add(&s->sql, " COLLATE BINARY = ");
    of_row(s, set, 0);
}

/* BEGIN IMMEDIATE has locked the whole database already. */
static void lock(struct stmt *s, const char *alias, enum lock_mode mode)
{
    (void)s, (void)alias, (void)mode;
}

/* The form of SQLite's own date functions: they read it, and it compares as text with what they write. */
static void now(struct stmt *s, instant at)
{
    char buf[WHEN_TEXT_SIZE];
    sql_bind_text(s, self, when_format_local(at, 3, buf), NULL);
}

/* Texts of times that sort as the times do; NULL passes. */
#define DAY_GLOB  "[0-9][0-9][0-9][0-9]-[0-1][0-9]-[0-3][0-9]"
#define TIME_GLOB "[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]"

const struct dialect dialect_sqlite = {
    .quote = '"',
    .table_prefix = "main.",
    .placeholder = placeholder,
    .in_set = in_set,
    .time_compare = time_compare,
    .time_keep = time_keep,
    .time_readable = time_readable,
    .time_unreadable = time_unreadable,
    .always_readable = always_readable,
    .time_value = time_value,
    .latest = latest,
    .like = like,
    .prefix = prefix,
    .like_folded = like_folded,
    .bytes = bytes,
    .exactly = exactly,
    .is_of_kind = is_of_kind,
    .lock = lock,
    .is_text_of_set = is_text_of_set,
    .is_text_of_row = is_text_of_row,
    .of_row = of_row,
    .runs = {.has = runs_have, .given_as = VALUE_INTEGER},
    .text_cast = "TEXT",
    .one_state_each = true,
    .once = " AS ",
    .nulls_last = "",
    .now_is_text =
        "it is a text like '2026-11-16 04:54:14.123' here: write unixepoch(:now), or unixepoch(:now) * 1000",
    .now = now,
    .own = {.name_type = "TEXT",
            .time_type = "TEXT",
            .moment_type = "TEXT NOT NULL",
            .long_name_type = "TEXT",
            .text_type = "TEXT",
            .time = TIME_TEXT,
            .clock = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
            .clock_us = "lapse_instant(strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'UTC')",
            .later = {"strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+' || (", " / 1000000.0) || ' seconds')"},
            .number_type = "INTEGER",
            .by_any = {"(", ", space)"},
            .time_check = {" CONSTRAINT \"write times like strftime('%Y-%m-%dT%H:%M:%fZ', 'now')\" CHECK (",
                           " GLOB '" DAY_GLOB "T" TIME_GLOB "Z' OR ",
                           " GLOB '" DAY_GLOB "T" TIME_GLOB "[0-9][0-9][0-9]Z')"},
            .time_digits = 3,
            .no_roles = "SQLite has no roles: anyone who may write the file may sweep it",
            /* Whoever may write the file can have made them. */
            .foreign = "SELECT 'there is a trigger ' || name || ' on ' || tbl_name, "
                       "'DROP TRIGGER \"' || replace(name, '\"', '\"\"') || '\"', NULL "
                       "FROM main.sqlite_schema WHERE type = 'trigger' AND "
                       "instr(',' || {4} || ',', ',' || lower(tbl_name) || ',') > 0 ORDER BY name LIMIT 20"},
    .backticks = true,
    .brackets = true,
};
