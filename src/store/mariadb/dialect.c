/* dialect: how MariaDB and MySQL spell times, key sets, locks and patterns. Pure text.
 *
 * Every statement runs with time_zone +00:00 and a sql_mode of our own (the connection sees to it).
 * Parameters become literals; times are written here as such. Whatever a column holds, no function may be
 * given what it cannot read: that is a warning in a SELECT but an error in a DELETE. So each is asked behind
 * a condition that tells what can be read, and only functions that both servers have are used.
 *
 * A column may hold zero dates (0000-00-00, 2024-00-00) and dates that are none (2024-02-31), which compare
 * as if they were dates: these are no times. */
#include "store/mariadb/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct dialect *const self = &dialect_mariadb;

/* Texts that when_parse() reads, and no others. No anchor that would see the end of a line, no
 * blank, nothing that a server's default flags for patterns could turn into something else. */
#define DATE_PATTERN                                                                                         \
    "(?!0000)(?:"                                                                                            \
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"                                              \
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"                                                                 \
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"                                                                          \
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
#define TIME_PATTERN   "[Tt\\x20](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]+)?)?"
#define OFFSET_PATTERN "\\x20*(?:[Zz]|[-+](?:0[0-9]|1[0-5])(?::?[0-5][0-9])?)"

static const char pattern_local[] = "\\A" DATE_PATTERN TIME_PATTERN "\\z";
static const char pattern_offset[] = "\\A" DATE_PATTERN TIME_PATTERN OFFSET_PATTERN "\\z";
static const char pattern_any[] = "\\A" DATE_PATTERN TIME_PATTERN "(?:" OFFSET_PATTERN ")?\\z";

/* What TO_SECONDS gives for 1970. */
static const int64_t SECONDS_1970 = INT64_C(62167219200);
/* Changes of a zone's clock are written out up to here (2100); times beyond read with the last offset. No
 * cutoff lies there. */
static const int64_t STEPS_UNTIL_S = INT64_C(4102444800);

static void add(struct stmt *s, const char *text)
{
    text_add(&s->sql, text);
}

/* alias.`column`, to be written more than once. The caller frees it. */
static char *column_text(const char *alias, const struct column *c)
{
    AUTO(stmt_release) struct stmt s = {0};
    sql_column(&s, self, alias, c);
    return mem_strdup(text_str(&s.sql));
}

static bool is_before(enum compare cmp)
{
    return cmp == CMP_LT || cmp == CMP_LE;
}

static void placeholder(struct stmt *s, size_t n)
{
    text_addf(&s->sql, "%s%zu%s", MARIADB_PARAM, n, MARIADB_PARAM);
}

/* --- texts, exactly ------------------------------------------------------------------------------------- */

static bool is_text(const struct column *c)
{
    return c->type == TYPE_TEXT || c->type == TYPE_ENUM;
}

/* Whether texts that differ in their bytes always differ for the column. */
static bool compares_exactly(const struct column *c)
{
    return !c->folds && !c->pads;
}

/* The bytes of a text in UTF-8, whatever its own character set. */
static void add_bytes(struct stmt *s, const char *text)
{
    text_addf(&s->sql, "CAST(CONVERT(%s USING utf8mb4) AS BINARY)", text);
}

static void add_hex(struct stmt *s, const struct value *v)
{
    add(s, "X'");
    for (size_t i = 0; i < v->len; i++)
        text_addf(&s->sql, "%02x", (unsigned char)v->text[i]);
    add(s, "'");
}

static void bytes(struct stmt *s, const char *alias, const struct column *c)
{
    AUTO(mem_free_p) char *column = column_text(alias, c);
    add_bytes(s, column);
}

static void exactly(struct stmt *s, const char *alias, const struct column *c, const struct value *values,
                    size_t n)
{
    AUTO(mem_free_p) char *column = column_text(alias, c);
    if (compares_exactly(c))
        return;
    add(s, " AND ");
    add_bytes(s, column);
    for (size_t i = 0; i < n; i++) {
        add(s, i ? ", " : " IN (");
        add_hex(s, &values[i]);
    }
    add(s, ")");
}

static bool alike(const struct column *a, const struct column *b)
{
    if (!is_text(a) || !is_text(b))
        return true;
    return strcmp(a->collation ? a->collation : "", b->collation ? b->collation : "") == 0;
}

/* "utf8mb4_general_ci" is of utf8mb4. */
static size_t charset_length(const struct column *c)
{
    return c->collation ? strcspn(c->collation, "_") : 0;
}

static bool same_charset(const struct column *a, const struct column *b)
{
    size_t n = charset_length(a);
    return n == charset_length(b) && (!n || strncmp(a->collation, b->collation, n) == 0);
}

/* a = b as the column of a compares: an index on a serves it. */
static void equal_as(struct stmt *s, const char *a, const struct column *of_a, const char *b)
{
    if (of_a->collation)
        text_addf(&s->sql, "%s = CONVERT(%s USING %.*s) COLLATE %s AND ", a, b, (int)charset_length(of_a),
                  of_a->collation, of_a->collation);
}

/* Two collations cannot be compared as such. Texts that are the same are equal in either, so that both may be
 * asked for the sake of an index; where more is to be equal, all that common collations fold is. */
static void equal(struct stmt *s, const char *a, const struct column *of_a, const char *b,
                  const struct column *of_b, bool exact)
{
    static const char *const folding[] = {"utf8mb4_general_ci", "utf8mb4_unicode_520_ci"};
    add(s, "(");
    if (exact) {
        equal_as(s, a, of_a, b);
        equal_as(s, b, of_b, a);
        add_bytes(s, a);
        add(s, " = ");
        add_bytes(s, b);
    }
    for (size_t i = 0; !exact && i < COUNT_OF(folding); i++)
        text_addf(&s->sql, "%sCONVERT(%s USING utf8mb4) COLLATE %s = CONVERT(%s USING utf8mb4) COLLATE %s",
                  i ? " OR " : "", a, folding[i], b, folding[i]);
    add(s, ")");
}

/* --- key sets ------------------------------------------------------------------------------------------- */

/* "(a, b) IN (rows of the set)". as_bytes: the texts among them by their bytes. */
static void write_in(struct stmt *s, const char *alias, const struct column *const *columns, size_t n,
                     int set, const size_t *at, const struct column *const *types, bool as_bytes)
{
    size_t first = s->n_params + 1;
    add(s, n > 1 ? "(" : "");
    for (size_t i = 0; i < n; i++) {
        AUTO(mem_free_p) char *column = column_text(alias, columns[i]);
        bool bytes = as_bytes && is_text(columns[i]);
        add(s, i ? ", " : "");
        if (bytes)
            add_bytes(s, column);
        else
            add(s, column);
        sql_bind_set(s, set, at[i], bytes ? "binary" : types[i]->sql_type);
    }
    text_addf(&s->sql, "%s IN (%s%zu", n > 1 ? ")" : "", MARIADB_PARAM, first);
    if (n > 1)
        text_addf(&s->sql, "-%zu", s->n_params);
    text_addf(&s->sql, "%s)", MARIADB_PARAM);
}

/* The column's own comparison is what an index serves. Where the set's column has another, a row is taken
 * only if the texts are the same; where it has another character set, its texts may not even fit the column.
 */
static void in_set(struct stmt *s, const char *alias, const struct column *const *columns, size_t n, int set,
                   const size_t *at, const struct column *const *types)
{
    bool all_alike = true, fit = true;
    for (size_t i = 0; i < n; i++) {
        all_alike = all_alike && alike(columns[i], types[i]);
        fit = fit && (!is_text(columns[i]) || same_charset(columns[i], types[i]));
    }
    add(s, all_alike ? "" : "(");
    if (fit)
        write_in(s, alias, columns, n, set, at, types, false);
    if (all_alike)
        return;
    add(s, fit ? " AND " : "");
    write_in(s, alias, columns, n, set, at, types, true);
    add(s, ")");
}

/* Whether every text can be written in the column's character set; and so be compared with it as it is. */
static bool holds_any(const struct column *c)
{
    static const char *const sets[] = {"utf8mb4", "utf16", "utf16le", "utf32"};
    size_t n = charset_length(c);
    for (size_t i = 0; i < COUNT_OF(sets); i++)
        if (strlen(sets[i]) == n && strncmp(c->collation, sets[i], n) == 0)
            return true;
    return c->type != TYPE_TEXT || !n;
}

static void is_text_of_set(struct stmt *s, const char *alias, const struct column *c, int set, bool indexed)
{
    (void)indexed;
    const size_t first = 0;
    bool any = holds_any(c);
    if (any)
        write_in(s, alias, &c, 1, set, &first, &c, false);
    if (any && compares_exactly(c))
        return;
    add(s, any ? " AND " : "");
    write_in(s, alias, &c, 1, set, &first, &c, true);
}

/* --- times as literals ------------------------------------------------------------------------------------
 */

/* The years a column can hold. */
static int64_t within_years(int64_t local_us)
{
    const int64_t first = civil_to_days(1, 1, 1) * US_PER_DAY;
    const int64_t last = civil_to_days(10000, 1, 1) * US_PER_DAY - 1;
    return local_us < first ? first : local_us > last ? last : local_us;
}

static void add_datetime(struct stmt *s, int64_t local_us)
{
    char buf[WHEN_TEXT_SIZE];
    text_addf(&s->sql, "TIMESTAMP'%s'", when_format_local(within_years(local_us), 6, buf));
}

static void add_date(struct stmt *s, int64_t days)
{
    char buf[WHEN_TEXT_SIZE];
    int64_t us;
    if (!mul_i64(days, US_PER_DAY, &us))
        us = days < 0 ? INT64_MIN : INT64_MAX;
    text_addf(&s->sql, "DATE'%s'", when_format_date(within_years(us), buf));
}

static void add_number(struct stmt *s, int64_t i)
{
    text_addf(&s->sql, "%" PRId64, i);
}

/* --- what can be read -------------------------------------------------------------------------------------
 */

static void add_usable(struct stmt *s, const char *column, enum encoding encoding)
{
    if (encoding == TIME_INSTANT) {
        text_addf(&s->sql, "%s >= TIMESTAMP'1970-01-01 00:00:01' AND MONTH(%s) > 0", column, column);
        return;
    }
    text_addf(&s->sql,
              "%s >= %s AND MONTH(%s) > 0 AND DAYOFMONTH(%s) > 0 "
              "AND DAYOFMONTH(%s) <= DAYOFMONTH(LAST_DAY(%s))",
              column, encoding == TIME_DATE ? "DATE'0001-01-01'" : "TIMESTAMP'0001-01-01 00:00:00'", column,
              column, column, column);
}

/* A text with its own letters, whatever the column folds. The caller frees it. */
static char *exact_text(const char *alias, const struct column *c)
{
    AUTO(mem_free_p) char *column = column_text(alias, c);
    AUTO(text_release) struct text t = {0};
    text_addf(&t, "CONVERT(%s USING utf8mb4) COLLATE utf8mb4_bin", column);
    return mem_strdup(text_str(&t));
}

static void add_matches(struct stmt *s, const char *exact, const char *pattern)
{
    text_addf(&s->sql, "%s REGEXP ", exact);
    sql_bind_text(s, self, pattern, NULL);
}

/* --- seconds ----------------------------------------------------------------------------------------------
 * As TO_SECONDS counts them, on the clock that the value shows. */

/* How far the zone's clock is ahead at a local time: INTERVAL finds the step, by halves. */
static void add_zone_offset(struct stmt *s, const char *seconds, const struct zone *z)
{
    AUTO(text_release) struct text offsets = {0};
    int64_t from;
    int32_t offset;
    size_t n = 0;
    AUTO(text_release) struct text steps = {0};
    for (; zone_step(z, n, &from, &offset) && from < STEPS_UNTIL_S; n++) {
        text_addf(&offsets, "%s%d", n ? "," : "", (int)offset);
        if (n)
            text_addf(&steps, ",%" PRId64, from + SECONDS_1970);
    }
    if (n == 1)
        add(s, text_str(&offsets));
    else
        text_addf(&s->sql, "CAST(ELT(INTERVAL(%s%s) + 1,%s) AS SIGNED)", seconds, text_str(&steps),
                  text_str(&offsets));
}

/* Seconds and the microseconds behind them as microseconds since 1970. */
static void add_us(struct stmt *s, const char *seconds, const char *offset, const char *us)
{
    text_addf(&s->sql, "(%s - %s - %" PRId64 ") * 1000000 + %s", seconds, offset, SECONDS_1970, us);
}

static char *zone_offset(const char *seconds, const struct zone *z)
{
    AUTO(stmt_release) struct stmt s = {0};
    if (!z || zone_is_utc(z))
        return mem_strdup("0");
    add_zone_offset(&s, seconds, z);
    return mem_strdup(text_str(&s.sql));
}

/* --- text times -------------------------------------------------------------------------------------------
 * YYYY-MM-DD HH:MM[:SS[.f…]][offset]: the pattern has been seen to match, so each part stands in its place.
 */

static char *text_seconds(const char *x)
{
    AUTO(text_release) struct text t = {0};
    text_addf(&t,
              "(TO_DAYS(LEFT(%s, 10)) * 86400 + CAST(SUBSTRING(%s, 12, 2) AS SIGNED) * 3600 + "
              "CAST(SUBSTRING(%s, 15, 2) AS SIGNED) * 60 + "
              "CASE SUBSTRING(%s, 17, 1) WHEN ':' THEN CAST(SUBSTRING(%s, 18, 2) AS SIGNED) ELSE 0 END)",
              x, x, x, x, x);
    return mem_strdup(text_str(&t));
}

/* Up to six digits of the fraction, up to where they end. */
static char *text_us(const char *x)
{
    static const char *const ends[] = {" ", "Z", "z", "+", "-"};
    AUTO(text_release) struct text t = {0};
    text_addf(&t, "CASE SUBSTRING(%s, 20, 1) WHEN '.' THEN CAST(RPAD(", x);
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        text_add(&t, "SUBSTRING_INDEX(");
    text_addf(&t, "SUBSTRING(%s, 21, 6)", x);
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        text_addf(&t, ", '%s', 1)", ends[i]);
    text_add(&t, ", 6, '0') AS SIGNED) ELSE 0 END");
    return mem_strdup(text_str(&t));
}

/* +HH, +HHMM, +HH:MM or none: told apart by how far from the end the sign stands. */
static char *text_offset(const char *x)
{
    static const struct {
        int sign, hours;
        bool minutes;
    } forms[] = {{-3, -2, false}, {-5, -4, true}, {-6, -5, true}};
    AUTO(text_release) struct text t = {0};
    text_add(&t, "CASE");
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        for (int minus = 0; minus < 2; minus++) {
            text_addf(&t, " WHEN SUBSTRING(%s, %d, 1) = '%s' THEN %s(CAST(SUBSTRING(%s, %d, 2) AS SIGNED)", x,
                      forms[i].sign, minus ? "-" : "+", minus ? "-" : "", x, forms[i].hours);
            text_add(&t, " * 3600");
            if (forms[i].minutes)
                text_addf(&t, " + CAST(RIGHT(%s, 2) AS SIGNED) * 60", x);
            text_add(&t, ")");
        }
    text_add(&t, " ELSE 0 END");
    return mem_strdup(text_str(&t));
}

/* A text with an offset, or in UTC without one; or on the wall clock of z. Only behind add_matches(). */
static void add_text_us(struct stmt *s, const char *exact, const struct zone *local_in)
{
    AUTO(mem_free_p) char *seconds = text_seconds(exact), *us = text_us(exact);
    AUTO(mem_free_p) char *offset = local_in ? zone_offset(seconds, local_in) : text_offset(exact);
    add_us(s, seconds, offset, us);
}

/* Texts begin with their date: one further from the cutoff's than any offset can reach needs no closer
 * look. This is what an index serves, in any collation, since digits sort as digits. */
static void add_coarse_text(struct stmt *s, const char *alias, const struct column *c, enum compare cmp,
                            instant at)
{
    char buf[WHEN_TEXT_SIZE];
    int64_t day;
    if (!add_i64(at, (is_before(cmp) ? 2 : -2) * US_PER_DAY, &day) || within_years(day) != day)
        return;
    sql_column(s, self, alias, c);
    text_addf(&s->sql, " %s '%s' AND ", is_before(cmp) ? "<" : ">", when_format_date(day, buf));
}

static void compare_text(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                         instant at)
{
    bool utc = !t->zone || zone_is_utc(t->zone);
    AUTO(mem_free_p) char *exact = exact_text(alias, t->column);
    add_coarse_text(s, alias, t->column, cmp, at);
    add(s, "CASE WHEN ");
    add_matches(s, exact, utc ? pattern_any : pattern_offset);
    add(s, " THEN ");
    add_text_us(s, exact, NULL);
    add(s, sql_compare(cmp));
    add_number(s, at);
    if (!utc) {
        struct local_bound bound = sql_bound_of(t, cmp, at);
        AUTO(mem_free_p) char *seconds = text_seconds(exact), *us = text_us(exact);
        AUTO(stmt_release) struct stmt local = {0};
        add(&local, "(");
        add_us(&local, seconds, "0", us);
        add(&local, ")");
        add(s, " WHEN ");
        add_matches(s, exact, pattern_local);
        add(s, " THEN ");
        sql_within(s, &dialect_mariadb, text_str(&local.sql), &bound, is_before(cmp), add_number);
    }
    add(s, " ELSE FALSE END");
}

static void text_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    bool utc = !t->zone || zone_is_utc(t->zone);
    AUTO(mem_free_p) char *exact = exact_text(alias, t->column);
    add(s, "CASE WHEN ");
    add_matches(s, exact, utc ? pattern_any : pattern_offset);
    add(s, " THEN ");
    add_text_us(s, exact, NULL);
    if (!utc) {
        add(s, " WHEN ");
        add_matches(s, exact, pattern_local);
        add(s, " THEN ");
        add_text_us(s, exact, t->zone);
    }
    add(s, " END");
}

/* --- comparing --------------------------------------------------------------------------------------------
 */

/* value * unit cmp at, turned into an exact bound for value. */
static void compare_integer(struct stmt *s, const char *column, enum compare cmp, instant at, int64_t unit)
{
    int64_t down = when_floor_div(at, unit);
    bool up = (cmp == CMP_LT || cmp == CMP_GE) && when_floor_mod(at, unit) != 0;
    text_addf(&s->sql, "%s%s%" PRId64, column, sql_compare(cmp), down + up);
}

static void time_compare(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                         instant at)
{
    AUTO(mem_free_p) char *column = column_text(alias, t->column);
    struct local_bound bound = sql_bound_of(t, cmp, at);
    add(s, "(");
    switch (t->encoding) {
    case TIME_INSTANT:
        text_addf(&s->sql, "%s%s", column, sql_compare(cmp));
        add_datetime(s, at);
        break;
    case TIME_LOCAL:
        sql_within(s, &dialect_mariadb, column, &bound, is_before(cmp), add_datetime);
        break;
    case TIME_DATE:
        bound = sql_bound_days(bound);
        sql_within(s, &dialect_mariadb, column, &bound, is_before(cmp), add_date);
        break;
    case TIME_INTEGER:
        compare_integer(s, column, cmp, at, t->unit_us);
        break;
    case TIME_TEXT:
        compare_text(s, alias, t, cmp, at);
        break;
    }
    if (t->encoding != TIME_INTEGER && t->encoding != TIME_TEXT) {
        add(s, " AND ");
        add_usable(s, column, t->encoding);
    }
    add(s, ")");
}

/* --- values -----------------------------------------------------------------------------------------------
 */

static void timestamp_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    AUTO(mem_free_p) char *column = column_text(alias, t->column);
    AUTO(text_release) struct text seconds = {0}, us = {0};
    text_addf(&seconds, "TO_SECONDS(%s)", column);
    text_addf(&us, "MICROSECOND(%s)", column);
    AUTO(mem_free_p)
    char *offset = zone_offset(text_str(&seconds), t->encoding == TIME_INSTANT ? NULL : t->zone);
    add(s, "CASE WHEN ");
    add_usable(s, column, t->encoding);
    add(s, " THEN ");
    add_us(s, text_str(&seconds), offset, t->encoding == TIME_DATE ? "0" : text_str(&us));
    add(s, " END");
}

/* A column of 64 bits has 20 digits at most; as a decimal nothing overflows, signed or not. */
static void add_decimal(struct stmt *s, const char *alias, const struct column *c, int64_t unit)
{
    AUTO(mem_free_p) char *column = column_text(alias, c);
    text_addf(&s->sql, "CAST(%s AS DECIMAL(20,0)) * %" PRId64, column, unit);
}

static void time_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    if (t->encoding == TIME_TEXT)
        text_value(s, alias, t);
    else if (t->encoding == TIME_INTEGER)
        add_decimal(s, alias, t->column, t->unit_us);
    else
        timestamp_value(s, alias, t);
}

/* GREATEST knows no NULL: it stands for less than any time can be, and comes back as NULL. */
static void latest(struct stmt *s, const char *alias, const struct time_column *t, size_t n)
{
    static const char never[] = "-1000000000000000000000000000000";
    add(s, "NULLIF(GREATEST(");
    for (size_t i = 0; i < n; i++) {
        add(s, i ? ", COALESCE(" : "COALESCE(");
        time_value(s, alias, &t[i]);
        text_addf(&s->sql, ", %s)", never);
    }
    text_addf(&s->sql, "), %s)", never);
}

static void time_readable(struct stmt *s, const char *alias, const struct time_column *t)
{
    AUTO(mem_free_p) char *column = column_text(alias, t->column);
    if (t->encoding == TIME_INTEGER) {
        add(s, "TRUE");
        return;
    }
    text_addf(&s->sql, "(%s%s OR ", column, self->is_null);
    if (t->encoding == TIME_TEXT) {
        AUTO(mem_free_p) char *exact = exact_text(alias, t->column);
        add_matches(s, exact, pattern_any);
    } else {
        add_usable(s, column, t->encoding);
    }
    add(s, ")");
}

static void time_unreadable(struct stmt *s, const char *alias, const struct time_column *t)
{
    add(s, "NOT ");
    time_readable(s, alias, t);
}

static bool always_readable(const struct time_column *t)
{
    return t->encoding == TIME_INTEGER;
}

/* A keep is greater than 0, so whatever is due lies before `at`: that bound the index can serve. */
static void time_keep(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                      instant at, const struct column *keep, int64_t keep_unit_us)
{
    AUTO(mem_free_p) char *column = column_text(alias, keep);
    add(s, "(");
    time_compare(s, alias, t, CMP_LT, at);
    text_addf(&s->sql, " AND %s > 0 AND ", column);
    add_decimal(s, alias, keep, keep_unit_us);
    text_addf(&s->sql, " <= %" PRId64 " AND ", at);
    time_value(s, alias, t);
    text_addf(&s->sql, "%s%" PRId64 " - ", sql_compare(cmp), at);
    add_decimal(s, alias, keep, keep_unit_us);
    add(s, ")");
}

/* --- patterns ---------------------------------------------------------------------------------------------
 * Backslashes mean something in a string or not, as sql_mode says: the pattern is rewritten with an escape
 * that always means itself. */

static void add_escaped(struct text *to, char c)
{
    if (strchr("%_|", c))
        text_add(to, "|");
    text_add_n(to, &c, 1);
}

static void add_like(struct stmt *s, const char *subject, const struct text *pattern)
{
    text_addf(&s->sql, "%s LIKE ", subject);
    sql_bind_text(s, self, text_str(pattern), NULL);
    add(s, " ESCAPE '|'");
}

static void like_as(struct stmt *s, const char *subject, const char *pattern)
{
    AUTO(text_release) struct text own = {0};
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && !p[1]) { /* matches nothing */
            add(s, "FALSE");
            return;
        }
        if (*p == '%' || *p == '_')
            text_add_n(&own, p, 1);
        else
            add_escaped(&own, *p == '\\' ? *++p : *p);
    }
    add_like(s, subject, &own);
}

static void like(struct stmt *s, const char *alias, const struct column *c, const char *pattern)
{
    AUTO(mem_free_p) char *exact = exact_text(alias, c);
    like_as(s, exact, pattern);
}

static bool is_ascii(const char *s)
{
    while (*s && (unsigned char)*s < 0x80)
        s++;
    return !*s;
}

/* In the column's own collation, unless its character set may not have all letters of the pattern. */
static void like_folded(struct stmt *s, const char *alias, const struct column *c, const char *pattern)
{
    AUTO(mem_free_p) char *column = column_text(alias, c);
    AUTO(text_release) struct text subject = {0};
    text_addf(
        &subject,
        holds_any(c) || is_ascii(pattern) ? "%s" : "CONVERT(%s USING utf8mb4) COLLATE utf8mb4_general_ci",
        column);
    like_as(s, text_str(&subject), pattern);
}

static void prefix(struct stmt *s, const char *alias, const struct column *c, const char *begin)
{
    AUTO(text_release) struct text own = {0};
    for (const char *p = begin; *p; p++)
        add_escaped(&own, *p);
    text_add(&own, "%");
    AUTO(mem_free_p) char *exact = exact_text(alias, c);
    add_like(s, exact, &own);
}

/* --- the rest ---------------------------------------------------------------------------------------------
 */

/* MariaDB names no table to lock: all of the outermost FROM are. */
static void lock(struct stmt *s, const char *alias, enum lock_mode mode)
{
    (void)alias;
    add(s, mode == LOCK_SHARE  ? " LOCK IN SHARE MODE SKIP LOCKED"
           : mode == LOCK_SKIP ? " FOR UPDATE SKIP LOCKED"
                               : " FOR UPDATE");
}

/* Before 10.6: a row that another holds ends the statement at once. */
static void lock_or_fail(struct stmt *s, const char *alias, enum lock_mode mode)
{
    (void)alias;
    add(s, mode == LOCK_SHARE  ? " LOCK IN SHARE MODE NOWAIT"
           : mode == LOCK_SKIP ? " FOR UPDATE NOWAIT"
                               : " FOR UPDATE");
}

/* Before 10.3: it waits, as long as the connection lets it. */
static void lock_and_wait(struct stmt *s, const char *alias, enum lock_mode mode)
{
    (void)alias;
    add(s, mode == LOCK_SHARE ? " LOCK IN SHARE MODE" : " FOR UPDATE");
}

static void lock_mysql(struct stmt *s, const char *alias, enum lock_mode mode)
{
    text_addf(&s->sql, " FOR %s OF %s%s", mode == LOCK_SHARE ? "SHARE" : "UPDATE", alias,
              mode == LOCK_WAIT ? "" : " SKIP LOCKED");
}

static void use_index(struct stmt *s, const struct index *i)
{
    add(s, " FORCE INDEX (");
    sql_name(s, self, i->primary ? "PRIMARY" : i->name);
    add(s, ")");
}

/* What makes a value in a list of rows one of the column's type. Times stand there as texts: as times they
 * could lose their fractions to those without. "": nothing need; NULL: such columns are not listed. */
static const char *list_cast(const struct column *c)
{
    static const struct {
        const char *type, *cast;
    } casts[] = {{"datetime", "DATETIME(6)"},
                 {"timestamp", "DATETIME(6)"},
                 {"date", "DATE"},
                 {"uuid", "uuid"},
                 {"inet4", "inet4"},
                 {"inet6", "inet6"}};
    for (size_t i = 0; i < COUNT_OF(casts); i++)
        if (strcasecmp(c->sql_type, casts[i].type) == 0)
            return casts[i].cast;
    bool as_it_is = c->type == TYPE_INTEGER || c->type == TYPE_NUMERIC || c->type == TYPE_BLOB ||
                    (c->type == TYPE_TEXT && c->collation);
    return as_it_is && strcasecmp(c->sql_type, "bit") != 0 ? "" : NULL;
}

static bool may_be_listed(const struct column *c, const struct column *of_set)
{
    const char *cast = list_cast(c);
    return cast && c->type == of_set->type && (!*cast || strcasecmp(c->sql_type, of_set->sql_type) == 0);
}

/* "CAST(k0 AS DATE) AS k0": of the column's type and in its collation, so that its index serves. */
static void add_listed(struct stmt *s, const struct column *c, size_t i)
{
    const char *cast = list_cast(c), *collation = c->type == TYPE_TEXT ? c->collation : NULL;
    if (collation)
        text_addf(&s->sql, "CONVERT(k%zu USING %.*s) COLLATE %s AS k%zu", i, (int)charset_length(c),
                  collation, collation, i);
    else if (*cast)
        text_addf(&s->sql, "CAST(k%zu AS %s) AS k%zu", i, cast, i);
    else
        text_addf(&s->sql, "k%zu", i);
}

/* A short table would be read, and locked, from end to end for a few keys, whatever the index it is forced
 * to. Row by row the index is used. row: what MARIADB_PARAM has a row begin with. */
static bool list_keys(struct stmt *s, const struct column *const *columns, size_t n, int set,
                      const size_t *at, const struct column *const *types, char row)
{
    size_t first = s->n_params + 1;
    for (size_t i = 0; i < n; i++)
        if (!may_be_listed(columns[i], types[i]))
            return false;
    add(s, "(WITH lapse_rows(");
    for (size_t i = 0; i < n; i++) {
        text_addf(&s->sql, "%sk%zu", i ? ", " : "", i);
        sql_bind_set(s, set, at[i], *list_cast(columns[i]) ? "varchar" : types[i]->sql_type);
    }
    text_addf(&s->sql, ") AS (VALUES %s%zu%c%zu%s) SELECT DISTINCT ", MARIADB_PARAM, first, row, s->n_params,
              MARIADB_PARAM);
    for (size_t i = 0; i < n; i++) {
        add(s, i ? ", " : "");
        add_listed(s, columns[i], i);
    }
    add(s, " FROM lapse_rows) AS lapse_keys STRAIGHT_JOIN ");
    return true;
}

static bool key_list(struct stmt *s, const struct column *const *columns, size_t n, int set, const size_t *at,
                     const struct column *const *types)
{
    return list_keys(s, columns, n, set, at, types, '-');
}

/* VALUES ROW(1), ROW(2). */
static bool key_list_mysql(struct stmt *s, const struct column *const *columns, size_t n, int set,
                           const size_t *at, const struct column *const *types)
{
    return list_keys(s, columns, n, set, at, types, '=');
}

/* Numbers of one kind: beyond what the other side holds, or with and without a sign, no index serves. */
static bool plain_numbers(const struct column *c, const struct column *of_set)
{
    return c->type == TYPE_INTEGER && of_set->type == TYPE_INTEGER && may_be_listed(c, of_set) &&
           strcasecmp(c->sql_type, of_set->sql_type) == 0 && strcasecmp(c->sql_type, "bigint unsigned") != 0;
}

/* With sql_safe_updates a DELETE of one table is held to an index, however short the table is, and fails
 * where it cannot be; the multi-table form is not. A trigger would be held to it, too. */
static bool delete_by(struct stmt *s, const struct table *t, const struct column *c, int set, size_t at,
                      const struct column *type)
{
    AUTO(stmt_release) struct stmt name = {0};
    if (t->delete_hooks || !plain_numbers(c, type))
        return false;
    sql_table(&name, self, t);
    text_addf(&s->sql, "SET STATEMENT sql_safe_updates = 1 FOR DELETE FROM %s WHERE ", text_str(&name.sql));
    write_in(s, text_str(&name.sql), &c, 1, set, &at, &type, false);
    return true;
}

/* Compares with a column of times as it is, and takes INTERVALs. */
static void now(struct stmt *s, instant at)
{
    add_datetime(s, at);
}

/* --- ranks ------------------------------------------------------------------------------------------ */

/* No longer than the shorter of the two servers takes; what is longer is told apart by a number. Two that are
 * alike exclude each other without need. */
static void add_lock_name(struct stmt *s, const struct table *t)
{
    enum { MOST = 64 };
    AUTO(text_release) struct text name = {0};
    text_addf(&name, "lapse:%s.%s", t->schema ? t->schema : "", t->name);
    if (name.len > MOST) {
        uint64_t h = UINT64_C(14695981039346656037);
        for (size_t i = 0; i < name.len; i++)
            h = (h ^ (unsigned char)name.data[i]) * UINT64_C(1099511628211);
        text_clear(&name);
        text_addf(&name, "lapse:%016" PRIx64, h);
    }
    sql_bind_text(s, self, text_str(&name), NULL);
}

static void rank_lock(struct stmt *s, const struct table *t)
{
    text_add(&s->sql, "GET_LOCK(");
    add_lock_name(s, t);
    text_add(&s->sql, ", 0)");
}

static void rank_unlock(struct stmt *s, const struct table *t)
{
    text_add(&s->sql, "RELEASE_LOCK(");
    add_lock_name(s, t);
    text_add(&s->sql, ")");
}

#define NAMES       "varchar(380) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
#define NAMES_MYSQL "varchar(380) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin"
#define LONG        "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
#define LONG_MYSQL  "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin"

/* The last of a TIMESTAMP; since 11.5 MariaDB counts without a sign. */
#define LAST_2038 (INT64_C(2147483648) * US_PER_S - 1)
#define LAST_2106 (INT64_C(4294967296) * US_PER_S - 1)

const struct dialect dialect_mariadb = {
    .quote = '`',
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
    .lock = lock,
    .is_text_of_set = is_text_of_set,
    .is_null = " <=> NULL", /* IS NULL is true of 0000-00-00, where the column is NOT NULL */
    .alike = alike,
    .equal = equal,
    .exactly = exactly,
    .tells_apart = compares_exactly,
    .bytes = bytes,
    .use_index = use_index,
    .key_list = key_list,
    .delete_by = delete_by,
    .text_cast = "CHAR",
    .once = " AS ",
    .nulls_last = "",
    .locks_rows = true,
    .rank_lock = rank_lock,
    .rank_unlock = rank_unlock,
    .show = mariadb_show,
    .picks_by_read = true,
    .deletes_alias = true,
    .keys_by_row = true,
    .writes_alone = true,
    .cycles_hold = true,
    .recursion_apart = true,
    .rows_spelt_out = true,
    .now = now,
    .now_is_text = "it is a time like TIMESTAMP'2026-11-16 04:54:14.123456' here: write "
                   "UNIX_TIMESTAMP(:now), or UNIX_TIMESTAMP(:now) * 1000",
    .own = {.name_type = NAMES,
            .time_type = "timestamp(6) NULL", /* an instant, whatever zone a session that writes it is in */
            .moment_type = "timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)", /* else it has ON UPDATE */
            .moments_begin_now = true,
            .long_name_type = LONG,
            .text_type = LONG,
            .time = TIME_INSTANT,
            .instant = add_datetime,
            .first = US_PER_S,
            .last = LAST_2038,
            .number_type = "bigint AUTO_INCREMENT",
            .by_any = {"(", "(180))"},
            .time_digits = 6,
            .clock = "CURRENT_TIMESTAMP(6)",
            .clock_us = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', CURRENT_TIMESTAMP(6))",
            .later = {"CURRENT_TIMESTAMP(6) + INTERVAL ", " MICROSECOND"},
            .lock = "DO GET_LOCK('lapse install', 10)",
            .unlock = "DO RELEASE_LOCK('lapse install')",
            .table_end = " ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
            .from_none = " FROM DUAL",
            .new_column = " IF NOT EXISTS",
            .commits_alone = true,
            .accounts = true,
            .orders_rest = true,
            .looks_apart = true,
            .has_schema = "SELECT 1 FROM information_schema.schemata WHERE schema_name = {1} AND "
                          "(@@lower_case_table_names > 0 OR CAST(schema_name AS BINARY) = {1})",
            /* Whoever may write to a table sees its triggers, and who defined them only with the right
             * TRIGGER. */
            .foreign =
                "SELECT CONCAT('the trigger ', TRIGGER_NAME, ' on ', EVENT_OBJECT_TABLE, ' runs code of ',"
                " COALESCE(DEFINER, 'somebody whom this user may not see')),"
                " CONCAT('DROP TRIGGER ', TRIGGER_NAME), DEFINER FROM information_schema.TRIGGERS"
                " WHERE CAST(EVENT_OBJECT_SCHEMA AS BINARY) = CAST({1} AS BINARY)"
                " AND FIND_IN_SET(EVENT_OBJECT_TABLE, {4})"
                " AND (DEFINER IS NULL OR (CAST(DEFINER AS BINARY) <> CAST(CURRENT_USER() AS BINARY)"
                " AND NOT CAST(DEFINER AS BINARY) <=> CAST({2} AS BINARY)"
                " AND NOT CAST(DEFINER AS BINARY) <=> CAST(CONCAT({2}, '@%') AS BINARY)))"
                " ORDER BY EVENT_OBJECT_TABLE, TRIGGER_NAME LIMIT 20"},
    .strings_escape = true,
    .hash_comments = true,
    .reserved = MARIADB_PARAM,
    .backticks = true,
};

struct dialect mariadb_dialect_for(const struct mariadb_server *server)
{
    struct dialect d = dialect_mariadb;
    d.ranks_by_row = server->certifies != NULL;
    if (server->mysql) {
        d.key_list = key_list_mysql;
        d.delete_by = NULL; /* has no SET STATEMENT */
        d.lock = lock_mysql;
        d.own.new_column = NULL;
        d.own.name_type = NAMES_MYSQL;
        d.own.text_type = d.own.long_name_type = LONG_MYSQL;
    } else if (server->version >= 110500) {
        d.own.last = LAST_2106;
    } else if (server->version < 100600) {
        d.lock = server->version >= 100300 ? lock_or_fail : lock_and_wait;
        d.held_fails = !server->undoes_all;
    }
    return d;
}
