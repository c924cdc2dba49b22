/* dialect: how PostgreSQL spells times, key sets, locks and patterns. Pure text.
 *
 * Every statement runs with TimeZone UTC and DateStyle ISO, YMD (the connection sees to it), so that a text
 * without an offset reads as UTC. Patterns and times are bound, never written, so that
 * standard_conforming_strings does not matter.
 *
 * What is written means the same under any search path (see store/sql/sql.h): functions, types, collations and
 * operators have their schema. Of types, those that are words of the language (bigint, timestamp with time
 * zone) need none. */
#include "store/postgres/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The types a parameter is bound as. */
#define SQL_INSTANT "timestamp with time zone"
#define SQL_LOCAL   "timestamp without time zone"

/* Texts that when_parse() reads, and no others: the casts behind these patterns cannot fail. */
#define DATE_PATTERN                                                                                         \
    "(?!0000)(?:"                                                                                            \
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"                                              \
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"                                                                 \
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"                                                                          \
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
#define TIME_PATTERN   "[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]+)?)?"
#define OFFSET_PATTERN " *(?:[Zz]|[-+](?:0[0-9]|1[0-5])(?::?[0-5][0-9])?)"

static const char pattern_local[] = "^" DATE_PATTERN TIME_PATTERN "$";
static const char pattern_offset[] = "^" DATE_PATTERN TIME_PATTERN OFFSET_PATTERN "$";
static const char pattern_any[] = "^" DATE_PATTERN TIME_PATTERN "(?:" OFFSET_PATTERN ")?$";
/* The digits of a fraction that lie beyond microseconds: taken out, since a cast would round them. */
static const char pattern_beyond_us[] = "(?<=[.][0-9]{6})[0-9]+";

/* The range in which an instant has a count of microseconds in 64 bits in every zone. Not infinite. */
static const char *const usable_from = "4713-01-01 BC", *const usable_before = "294247-01-01";

/* The first day that PostgreSQL can hold, in days from 1970. */
enum { FIRST_DAY = -2440588 };

#define CATALOG  "pg_catalog."
#define OP(sign) " OPERATOR(pg_catalog." sign ") "
#define TEXT     CATALOG "text"
#define BYTEWISE " COLLATE pg_catalog.\"C\""

static void add(struct stmt *s, const char *text)
{
    text_add(&s->sql, text);
}

static void add_sign(struct stmt *s, enum compare cmp)
{
    static const char *const signs[] = {[CMP_EQ] = OP("="),  [CMP_NE] = OP("<>"), [CMP_LT] = OP("<"),
                                        [CMP_LE] = OP("<="), [CMP_GT] = OP(">"),  [CMP_GE] = OP(">=")};
    add(s, signs[cmp]);
}

/* Types that the grammar knows mean pg_catalog's. A type of another schema comes with it. */
static bool needs_schema(const char *type)
{
    static const char *const words[] = {"bigint",
                                        "boolean",
                                        "bit varying",
                                        "character",
                                        "character varying",
                                        "double precision",
                                        "integer",
                                        "interval",
                                        "numeric",
                                        "real",
                                        "smallint",
                                        "time with time zone",
                                        "time without time zone",
                                        SQL_INSTANT,
                                        SQL_LOCAL};
    size_t len = strcspn(type, "[");
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strlen(words[i]) == len && strncmp(words[i], type, len) == 0)
            return false;
    return !strchr(type, '.');
}

static void add_cast(struct stmt *s, const char *type, const char *more)
{
    text_addf(&s->sql, "::%s%s%s", needs_schema(type) ? CATALOG : "", type, more);
}

static void bind_text(struct stmt *s, const char *text, const char *sql_type)
{
    sql_bind_text(s, &dialect_postgres, text, sql_type);
}

static void bind_numeric(struct stmt *s, int64_t i)
{
    sql_bind(s, &dialect_postgres, (struct value){.kind = VALUE_INTEGER, .integer = i}, "numeric");
}

/* alias."column", to be written more than once. The caller frees it. */
static char *column_text(const char *alias, const struct column *c)
{
    AUTO(stmt_release) struct stmt s = {0};
    sql_column(&s, &dialect_postgres, alias, c);
    return mem_strdup(text_str(&s.sql));
}

static bool is_before(enum compare cmp)
{
    return cmp == CMP_LT || cmp == CMP_LE;
}

/* --- times as parameters ------------------------------------------------------------------------ */

/* PostgreSQL's own spelling of a day, with BC where it needs one; days before its first are the first. */
static void add_day(struct text *t, int64_t days, const char *rest)
{
    struct civil d = civil_from_days(days < FIRST_DAY ? FIRST_DAY : days);
    bool bc = d.year < 1;
    text_addf(t, "%04lld-%02d-%02d%s%s", (long long)(bc ? 1 - d.year : d.year), d.month, d.day, rest,
              bc ? " BC" : "");
}

static void bind_time(struct stmt *s, int64_t us, const char *offset, const char *sql_type)
{
    AUTO(text_release) struct text t = {0};
    char rest[WHEN_TEXT_SIZE];
    int64_t days = when_floor_div(us, US_PER_DAY), of_day = when_floor_mod(us, US_PER_DAY);
    int64_t seconds = of_day / US_PER_S;
    if (days < FIRST_DAY)
        of_day = seconds = 0;
    snprintf(rest, sizeof(rest), " %02d:%02d:%02d.%06d%s", (int)(seconds / 3600), (int)(seconds / 60 % 60),
             (int)(seconds % 60), (int)(of_day % US_PER_S), offset);
    add_day(&t, days, rest);
    bind_text(s, text_str(&t), sql_type);
}

static void bind_instant(struct stmt *s, instant at)
{
    bind_time(s, at, "+00", SQL_INSTANT);
}

static void bind_local(struct stmt *s, int64_t local_us)
{
    bind_time(s, local_us, "", SQL_LOCAL);
}

static void bind_date(struct stmt *s, int64_t days)
{
    AUTO(text_release) struct text t = {0};
    add_day(&t, days, "");
    bind_text(s, text_str(&t), "date");
}

/* PostgreSQL reads these four as abbreviations of a fixed offset, not as the zones of that name; what
 * the zone database links them to is meant. */
static const char *server_zone(const struct zone *z)
{
    static const struct {
        const char *name, *meant;
    } shadowed[] = {
        {"CET", "Europe/Brussels"},
        {"MET", "Europe/Brussels"},
        {"EET", "Europe/Athens"},
        {"WET", "Europe/Lisbon"},
    };
    const char *name = z ? zone_name(z) : "UTC";
    for (size_t i = 0; i < COUNT_OF(shadowed); i++)
        if (strcmp(shadowed[i].name, name) == 0)
            return shadowed[i].meant;
    return name;
}

/* --- comparing ---------------------------------------------------------------------------------- */

static const char *type_of(enum encoding encoding)
{
    return encoding == TIME_INSTANT ? SQL_INSTANT : encoding == TIME_LOCAL ? SQL_LOCAL : "date";
}

/* What lies outside the values that a column counts as a time: -infinity is before nothing. */
static void exclude_infinity(struct stmt *s, const char *subject, enum encoding encoding, enum compare cmp)
{
    text_addf(&s->sql, is_before(cmp) ? " AND %s" OP(">") "'-infinity'" : " AND %s" OP("<") "'infinity'",
              subject);
    add_cast(s, type_of(encoding), "");
}

static void compare_instant(struct stmt *s, const char *subject, enum compare cmp, instant at)
{
    add(s, subject);
    add_sign(s, cmp);
    bind_instant(s, at);
}

/* value * unit cmp at, turned into an exact bound for value. */
static void compare_integer(struct stmt *s, const char *subject, enum compare cmp, instant at, int64_t unit)
{
    int64_t down = when_floor_div(at, unit);
    bool up = (cmp == CMP_LT || cmp == CMP_GE) && when_floor_mod(at, unit) != 0;
    add(s, subject);
    add_sign(s, cmp);
    sql_bind(s, &dialect_postgres, (struct value){.kind = VALUE_INTEGER, .integer = down + up}, "bigint");
}

/* --- text times --------------------------------------------------------------------------------- */

/* A text column as its bytes: blanks that pad a char(n) are gone, and patterns work in every collation. */
static char *exact_text(const char *alias, const struct column *c)
{
    AUTO(mem_free_p) char *column = column_text(alias, c);
    AUTO(text_release) struct text t = {0};
    text_addf(&t, "%s::" TEXT BYTEWISE, column);
    return mem_strdup(text_str(&t));
}

static void add_matches(struct stmt *s, const char *exact, const char *pattern)
{
    text_addf(&s->sql, "%s" OP("~"), exact);
    bind_text(s, pattern, "text");
}

/* The text as a timestamp. Only behind add_matches(). The caller frees it. */
static char *text_cast(struct stmt *s, const char *exact, const char *sql_type)
{
    AUTO(text_release) struct text t = {0};
    size_t from = s->sql.len;
    bind_text(s, pattern_beyond_us, "text");
    text_addf(&t, CATALOG "regexp_replace(%s, %s, ''::" TEXT ")::%s", exact, text_str(&s->sql) + from,
              sql_type);
    s->sql.data[s->sql.len = from] = '\0';
    return mem_strdup(text_str(&t));
}

/* Texts begin with their date: one further from the cutoff's than any offset can reach needs no closer
 * look. This is what an index serves, in any collation, since digits sort as digits. */
static void add_coarse_text(struct stmt *s, const char *alias, const struct column *c, enum compare cmp,
                            instant at)
{
    const char *type = c->operators || strcmp(c->sql_type, "bpchar") == 0 ? c->sql_type : "text";
    int64_t days = when_floor_div(at, US_PER_DAY) + (is_before(cmp) ? 2 : -2);
    if (days < civil_to_days(1, 1, 1) || days > civil_to_days(9999, 12, 31))
        return;
    AUTO(text_release) struct text day = {0};
    add_day(&day, days, "");
    sql_compared(s, &dialect_postgres, alias, c, is_before(cmp) ? CMP_LT : CMP_GT);
    bind_text(s, text_str(&day), type);
    add(s, " AND ");
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
    AUTO(mem_free_p) char *as_instant = text_cast(s, exact, SQL_INSTANT);
    compare_instant(s, as_instant, cmp, at);
    if (!utc) {
        struct local_bound bound = sql_bound_of(t, cmp, at);
        add(s, " WHEN ");
        add_matches(s, exact, pattern_local);
        add(s, " THEN ");
        AUTO(mem_free_p) char *as_local = text_cast(s, exact, SQL_LOCAL);
        sql_within(s, &dialect_postgres, as_local, &bound, is_before(cmp), bind_local);
    }
    add(s, " ELSE false END");
}

static void postgres_time_compare(struct stmt *s, const char *alias, const struct time_column *t,
                                  enum compare cmp, instant at)
{
    AUTO(mem_free_p) char *column = column_text(alias, t->column);
    struct local_bound bound;
    add(s, "(");
    switch (t->encoding) {
    case TIME_INSTANT:
        compare_instant(s, column, cmp, at);
        exclude_infinity(s, column, t->encoding, cmp);
        break;
    case TIME_LOCAL:
        bound = sql_bound_of(t, cmp, at);
        sql_within(s, &dialect_postgres, column, &bound, is_before(cmp), bind_local);
        exclude_infinity(s, column, t->encoding, cmp);
        break;
    case TIME_DATE:
        bound = sql_bound_days(sql_bound_of(t, cmp, at));
        sql_within(s, &dialect_postgres, column, &bound, is_before(cmp), bind_date);
        exclude_infinity(s, column, t->encoding, cmp);
        break;
    case TIME_INTEGER:
        compare_integer(s, column, cmp, at, t->unit_us);
        break;
    case TIME_TEXT:
        compare_text(s, alias, t, cmp, at);
        break;
    }
    add(s, ")");
}

/* --- values ------------------------------------------------------------------------------------- */

/* Exact: since PostgreSQL 14 extract() gives a decimal. */
static void add_microseconds(struct stmt *s, const char *timestamp, const struct zone *local_in)
{
    text_addf(&s->sql, "(EXTRACT(epoch FROM %s", timestamp);
    if (local_in) {
        add(s, " AT TIME ZONE ");
        bind_text(s, server_zone(local_in), "text");
    }
    add(s, ")" OP("*") "1000000::numeric)::bigint");
}

static void text_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    bool utc = !t->zone || zone_is_utc(t->zone);
    AUTO(mem_free_p) char *exact = exact_text(alias, t->column);
    add(s, "CASE WHEN ");
    add_matches(s, exact, utc ? pattern_any : pattern_offset);
    add(s, " THEN ");
    AUTO(mem_free_p) char *as_instant = text_cast(s, exact, SQL_INSTANT);
    add_microseconds(s, as_instant, NULL);
    if (!utc) {
        add(s, " WHEN ");
        add_matches(s, exact, pattern_local);
        add(s, " THEN ");
        AUTO(mem_free_p) char *as_local = text_cast(s, exact, SQL_LOCAL);
        add_microseconds(s, as_local, t->zone);
    }
    add(s, " END");
}

/* A timestamp or date: its zone is applied only where nothing can overflow. */
static void timestamp_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    AUTO(mem_free_p) char *column = column_text(alias, t->column);
    AUTO(text_release) struct text timestamp = {0};
    bool utc = !t->zone || zone_is_utc(t->zone);
    text_addf(&timestamp, "%s%s", column, t->encoding == TIME_DATE ? "::" SQL_LOCAL : "");
    text_addf(&s->sql, "CASE WHEN %s" OP(">=") "'%s'", column, usable_from);
    add_cast(s, type_of(t->encoding), "");
    text_addf(&s->sql, " AND %s" OP("<") "'%s'", column, usable_before);
    add_cast(s, type_of(t->encoding), "");
    add(s, " THEN ");
    add_microseconds(s, text_str(&timestamp), t->encoding == TIME_INSTANT || utc ? NULL : t->zone);
    add(s, " END");
}

static void postgres_time_value(struct stmt *s, const char *alias, const struct time_column *t)
{
    if (t->encoding == TIME_TEXT) {
        text_value(s, alias, t);
    } else if (t->encoding == TIME_INTEGER) {
        add(s, "(");
        sql_column(s, &dialect_postgres, alias, t->column);
        text_addf(&s->sql, "::numeric" OP("*") "%lld::numeric)", (long long)t->unit_us);
    } else {
        timestamp_value(s, alias, t);
    }
}

static void postgres_latest(struct stmt *s, const char *alias, const struct time_column *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add(s, i ? ", " : "GREATEST(");
        postgres_time_value(s, alias, &t[i]);
    }
    add(s, ")");
}

static void postgres_time_readable(struct stmt *s, const char *alias, const struct time_column *t)
{
    if (t->encoding == TIME_INTEGER) {
        add(s, "true");
        return;
    }
    add(s, "coalesce(");
    if (t->encoding == TIME_TEXT) {
        AUTO(mem_free_p) char *exact = exact_text(alias, t->column);
        add_matches(s, exact, pattern_any);
    } else {
        AUTO(mem_free_p) char *column = column_text(alias, t->column);
        text_addf(&s->sql, CATALOG "isfinite(%s", column);
        add_cast(s, type_of(t->encoding), ")");
    }
    add(s, ", true)");
}

/* Of times only the infinite ones: an index has them at its two ends. */
static void postgres_time_unreadable(struct stmt *s, const char *alias, const struct time_column *t)
{
    if (t->encoding == TIME_TEXT || t->encoding == TIME_INTEGER) {
        add(s, "NOT ");
        postgres_time_readable(s, alias, t);
        return;
    }
    AUTO(mem_free_p) char *column = column_text(alias, t->column);
    text_addf(&s->sql, "(%s" OP("=") "'infinity'", column);
    add_cast(s, type_of(t->encoding), "");
    text_addf(&s->sql, " OR %s" OP("=") "'-infinity'", column);
    add_cast(s, type_of(t->encoding), ")");
}

static bool postgres_always_readable(const struct time_column *t)
{
    return t->encoding == TIME_INTEGER;
}

/* A keep is greater than 0, so whatever is due lies before `at`: that bound the index can serve. The rest
 * is reckoned in exact decimals, which cannot overflow. */
static void postgres_time_keep(struct stmt *s, const char *alias, const struct time_column *t,
                               enum compare cmp, instant at, const struct column *keep, int64_t keep_unit_us)
{
    AUTO(mem_free_p) char *column = column_text(alias, keep);
    AUTO(text_release) struct text keep_us = {0};
    text_addf(&keep_us, "(%s::numeric" OP("*") "%lld::numeric)", column, (long long)keep_unit_us);
    add(s, "(");
    postgres_time_compare(s, alias, t, CMP_LT, at);
    text_addf(&s->sql, " AND %s::numeric" OP(">") "0::numeric AND %s" OP("<="), column, text_str(&keep_us));
    bind_numeric(s, at);
    add(s, " AND ");
    postgres_time_value(s, alias, t);
    add(s, "::numeric");
    add_sign(s, cmp);
    add(s, "(");
    bind_numeric(s, at);
    text_addf(&s->sql, OP("-") "%s))", text_str(&keep_us));
}

/* --- patterns ----------------------------------------------------------------------------------- */

/* LIKE compares bytes, but not in a collation that is not deterministic; the default one always is. */
static void add_like(struct stmt *s, const char *alias, const struct column *c, const char *pattern)
{
    bool plain = strcmp(c->sql_type, "text") == 0 || strcmp(c->sql_type, "character varying") == 0;
    bool collated = c->collation && strcmp(c->collation, "C") != 0 && strcmp(c->collation, "POSIX") != 0;
    sql_column(s, &dialect_postgres, alias, c);
    if (!plain)
        add(s, "::" TEXT);
    if (collated)
        add(s, BYTEWISE);
    add(s, OP("~~")); /* LIKE */
    bind_text(s, pattern, "text");
}

static bool ends_in_escape(const char *pattern)
{
    size_t len = strlen(pattern), n = 0;
    while (n < len && pattern[len - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

static void postgres_like(struct stmt *s, const char *alias, const struct column *c, const char *pattern)
{
    if (ends_in_escape(pattern)) /* matches nothing; PostgreSQL would raise an error */
        add(s, "false");
    else
        add_like(s, alias, c, pattern);
}

/* What a collation that is not deterministic takes for equal beside case is not to be had for a pattern. */
static void postgres_like_folded(struct stmt *s, const char *alias, const struct column *c,
                                 const char *pattern)
{
    if (ends_in_escape(pattern)) {
        add(s, "false");
        return;
    }
    sql_column(s, &dialect_postgres, alias, c);
    add(s, "::" TEXT " COLLATE pg_catalog.\"default\"" OP("~~*")); /* ILIKE */
    bind_text(s, pattern, "text");
}

static void postgres_prefix(struct stmt *s, const char *alias, const struct column *c, const char *prefix)
{
    AUTO(text_release) struct text pattern = {0};
    for (const char *p = prefix; *p; p++) {
        if (strchr("\\%_", *p))
            text_add(&pattern, "\\");
        text_add_n(&pattern, p, 1);
    }
    text_add(&pattern, "%");
    add_like(s, alias, c, text_str(&pattern));
}

/* --- the rest ----------------------------------------------------------------------------------- */

static void postgres_placeholder(struct stmt *s, size_t n)
{
    const struct param *p = &s->params[n - 1];
    text_addf(&s->sql, "$%zu", n);
    if (p->sql_type)
        add_cast(s, p->sql_type, p->set >= 0 ? "[]" : "");
}

/* A table's name as a value: '"public"."job"'::regclass. */
static void as_class(struct stmt *s, const struct table *t)
{
    AUTO(stmt_release) struct stmt name = {0};
    sql_table(&name, &dialect_postgres, t);
    add(s, "'");
    for (const char *c = text_str(&name.sql); *c; c++)
        text_add_n(&s->sql, *c == '\'' ? "''" : c, *c == '\'' ? 2 : 1);
    add(s, "'::pg_catalog.regclass");
}

/* The statement has locked it, so that the name stands for it, before that is looked up; to detach it now
 * takes a lock that is in conflict with ours. */
static void postgres_is_part(struct stmt *s, const struct table *t)
{
    add(s, " AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid" OP("="));
    as_class(s, t);
    add(s, "::pg_catalog.oid AND inhparent" OP("="));
    as_class(s, t->whole);
    add(s, "::pg_catalog.oid");
    add(s, " AND NOT inhdetachpending)");
}

/* From version 14 on there is such a thing. */
static void postgres_parting(struct stmt *s, const struct table *t)
{
    stmt_clear(s);
    add(s, "SELECT 1 FROM pg_catalog.pg_inherits i WHERE i.inhdetachpending AND i.inhparent" OP(
               "=") "ANY(SELECT relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree(");
    as_class(s, t);
    add(s, "))");
}

/* Whether partitions are told by it, and its values have a least and a greatest. */
static bool parts_by(const struct column *c, const struct column *type)
{
    bool ordered = c->type == TYPE_INTEGER || c->type == TYPE_TIMESTAMPTZ || c->type == TYPE_TIMESTAMP ||
                   c->type == TYPE_DATE;
    return c->parts && ordered && strcmp(c->sql_type, type->sql_type) == 0;
}

/* Of a list of rows no partition can be told, and all would be read, or looked into for each of them. Between
 * which values they lie is said beside it: what has none of these is left alone. */
static void between_ends(struct stmt *s, const char *alias, const struct column *c, size_t param)
{
    static const struct {
        const char *sign, *end;
    } sides[] = {{OP(">="), "min"}, {OP("<="), "max"}};
    for (size_t i = 0; i < COUNT_OF(sides); i++) {
        add(s, " AND ");
        sql_column(s, &dialect_postgres, alias, c);
        text_addf(&s->sql, "%s(SELECT pg_catalog.%s(lapse_end) FROM pg_catalog.unnest(", sides[i].sign,
                  sides[i].end);
        postgres_placeholder(s, param);
        add(s, ") AS lapse_end)");
    }
}

/* Sets are bound as arrays, one per column: as the rows of a table. */
static void rows_of_arrays(struct stmt *s, size_t n, int set, const size_t *at,
                           const struct column *const *types)
{
    for (size_t i = 0; i < n; i++) {
        add(s, i ? ", pg_catalog.unnest(" : "ROWS FROM (pg_catalog.unnest(");
        postgres_placeholder(s, sql_bind_set(s, set, at ? at[i] : i, types[i]->sql_type));
        add(s, ")");
    }
    add(s, ")");
}

/* Where no one operator compares them all. */
static void exists_in_arrays(struct stmt *s, const char *alias, const struct column *const *columns, size_t n,
                             int set, const size_t *at, const struct column *const *types)
{
    const struct dialect *d = &dialect_postgres;
    add(s, "EXISTS (SELECT 1 FROM ");
    rows_of_arrays(s, n, set, at, types);
    add(s, " AS lapse_key(");
    for (size_t i = 0; i < n; i++)
        text_addf(&s->sql, "%sk%zu", i ? ", " : "", i);
    add(s, ") WHERE ");
    for (size_t i = 0; i < n; i++) {
        const char *operators = sql_operators(d, columns[i], types[i]);
        add(s, i ? " AND " : "");
        sql_operand(s, d, operators, alias, columns[i]);
        sql_operator(s, operators, "=");
        text_addf(&s->sql, "lapse_key.k%zu", i);
    }
    add(s, ")");
}

static void in_arrays(struct stmt *s, const char *alias, const struct column *const *columns, size_t n,
                      int set, const size_t *at, const struct column *const *types)
{
    const struct dialect *d = &dialect_postgres;
    const char *operators = NULL;
    if (!sql_operators_of_row(d, columns, types, n, &operators)) {
        exists_in_arrays(s, alias, columns, n, set, at, types);
        return;
    }
    add(s, n > 1 ? "(" : "");
    sql_operands(s, d, operators, alias, columns, n);
    add(s, n > 1 ? ")" : "");
    sql_operator(s, operators, "=");
    add(s, n > 1 ? "ANY(SELECT * FROM " : "ANY(");
    if (n > 1)
        rows_of_arrays(s, n, set, at, types);
    else
        postgres_placeholder(s, sql_bind_set(s, set, at[0], types[0]->sql_type));
    add(s, ")");
}

static void postgres_in_set(struct stmt *s, const char *alias, const struct column *const *columns, size_t n,
                            int set, const size_t *at, const struct column *const *types)
{
    size_t first = s->n_params + 1;
    bool parted = false;
    for (size_t i = 0; n > 1 && i < n; i++)
        parted = parted || parts_by(columns[i], types[i]);
    add(s, parted ? "(" : "");
    in_arrays(s, alias, columns, n, set, at, types);
    for (size_t i = 0; parted && i < n; i++)
        if (parts_by(columns[i], types[i]))
            between_ends(s, alias, columns[i], first + i);
    add(s, parted ? ")" : "");
}

/* How many an inner SELECT gives is not looked at: they are believed to be few, and nobody weighs each.
 * Without an index every row would be compared with each in turn. */
static void postgres_in_set_by_index(struct stmt *s, const char *alias, const struct column *c, int set,
                                     size_t at, const struct column *type)
{
    const char *operators = sql_operators(&dialect_postgres, c, type);
    sql_operand(s, &dialect_postgres, operators, alias, c);
    sql_operator(s, operators, "=");
    add(s, "ANY((SELECT ");
    postgres_placeholder(s, sql_bind_set(s, set, at, type->sql_type));
    add(s, ")");
    add_cast(s, type->sql_type, "[])"); /* without a type it would be a SELECT of numbers */
}

/* Before version 17 ANY of a thousand keys is a thousand descents into the index, also where the keys follow
 * each other, as numbers do that were handed out in the order of time.
 *
 * A row that another transaction changed meanwhile is judged anew beside the one run that it was found by:
 * one that moved to another run stays. Where no foreign key forbids that, it must be asked for afterwards. */
static void postgres_runs(struct stmt *s, int set, size_t at)
{
    add(s, "ROWS FROM (pg_catalog.unnest(");
    postgres_placeholder(s, sql_bind_runs(s, set, at, ROWS_FIRSTS, "bigint"));
    add(s, "), pg_catalog.unnest(");
    postgres_placeholder(s, sql_bind_runs(s, set, at, ROWS_LASTS, "bigint"));
    add(s, ")) AS lapse_run(first, last)");
}

static void postgres_runs_have(struct stmt *s, const char *alias, const struct column *c, int set, size_t at)
{
    (void)set, (void)at;
    sql_column(s, &dialect_postgres, alias, c);
    add(s, OP(">=") "lapse_run.first AND ");
    sql_column(s, &dialect_postgres, alias, c);
    add(s, OP("<=") "lapse_run.last");
}

/* The column's own comparison is what an index serves; where it may find two texts equal that are not, they
 * are compared as bytes too. */
static void postgres_is_text_of_set(struct stmt *s, const char *alias, const struct column *c, int set,
                                    bool indexed)
{
    bool plain = strcmp(c->sql_type, "text") == 0 || strcmp(c->sql_type, "character varying") == 0;
    const size_t first = 0;
    if (indexed)
        postgres_in_set_by_index(s, alias, c, set, first, c);
    else
        postgres_in_set(s, alias, &c, 1, set, &first, &c);
    if (c->type != TYPE_TEXT || (plain && !c->collation))
        return;
    add(s, " AND ");
    sql_column(s, &dialect_postgres, alias, c);
    add(s, "::" TEXT BYTEWISE OP("=") "ANY(");
    postgres_placeholder(s, sql_bind_set(s, set, 0, "text"));
    add(s, ")");
}

static void postgres_bytes(struct stmt *s, const char *alias, const struct column *c)
{
    sql_column(s, &dialect_postgres, alias, c);
    add(s, "::" TEXT BYTEWISE);
}

/* What is no text itself, an array of such, is written as its type writes it. */
static void postgres_exactly(struct stmt *s, const char *alias, const struct column *c,
                             const struct value *values, size_t n)
{
    if (!c->folds)
        return;
    add(s, " AND ");
    postgres_bytes(s, alias, c);
    add(s, n > 1 ? OP("=") "ANY(ARRAY[" : OP("="));
    for (size_t i = 0; i < n; i++) {
        add(s, i ? ", " : "");
        sql_bind(s, &dialect_postgres, values[i], c->type == TYPE_TEXT ? "text" : c->sql_type);
        add(s, c->type == TYPE_TEXT ? "" : "::" TEXT);
    }
    add(s, n > 1 ? "])" : "");
}

static void postgres_of_row(struct stmt *s, int set, size_t column)
{
    (void)set;
    text_addf(&s->sql, "lapse_row.c%zu", column);
}

/* Of a table that was never analyzed, ANY of many is believed to be all of it. OFFSET keeps the SELECT for
 * itself, so that it is carried out row by row. */
static void postgres_each_row(struct stmt *s, int set, const struct column *const *types, size_t n)
{
    add(s, "SELECT lapse_found.* FROM ");
    rows_of_arrays(s, n, set, NULL, types);
    add(s, " AS lapse_row(");
    for (size_t i = 0; i < n; i++)
        text_addf(&s->sql, "%sc%zu", i ? ", " : "", i);
    add(s, ") CROSS JOIN LATERAL (");
}

static void postgres_lock(struct stmt *s, const char *alias, enum lock_mode mode)
{
    text_addf(&s->sql, " FOR %s OF %s%s", mode == LOCK_SHARE ? "SHARE" : "UPDATE", alias,
              mode == LOCK_WAIT ? "" : " SKIP LOCKED");
}

/* --- places: (block,offset) --------------------------------------------------------------------- */

static void last_in(int64_t block, struct text *out)
{
    text_addf(out, "(%lld,65535)", (long long)block);
}

static bool block_of(const struct value *place, int64_t *ret)
{
    char *end = NULL;
    if (place->kind != VALUE_TEXT || place->text[0] != '(')
        return false;
    *ret = strtoll(place->text + 1, &end, 10);
    return *end == ',';
}

static void blocks(struct stmt *s, const struct table *t)
{
    AUTO(stmt_release) struct stmt name = {0};
    sql_table(&name, &dialect_postgres, t);
    stmt_clear(s);
    text_add(&s->sql, "SELECT pg_catalog.pg_relation_size(");
    sql_bind_text(s, &dialect_postgres, text_str(&name.sql), "pg_catalog.regclass");
    text_add(&s->sql, ")" OP("/") "pg_catalog.current_setting('block_size')::bigint");
}

/* --- ranks ---------------------------------------------------------------------------------------- */

/* As a literal, since nothing is bound where BEGIN goes along; a backslash means one thing in this form
 * alone, whatever the session's settings. */
static void add_regclass(struct stmt *s, const struct table *t)
{
    AUTO(stmt_release) struct stmt name = {0};
    sql_table(&name, &dialect_postgres, t);
    add(s, "CAST(E'");
    for (const char *c = text_str(&name.sql); *c; c++) {
        if (*c == '\'' || *c == '\\')
            text_add_n(&s->sql, c, 1);
        text_add_n(&s->sql, c, 1);
    }
    add(s, "' AS pg_catalog.regclass)");
}

/* A class of lapse's own, and the table; a partition's is that of its whole. It ends with the transaction, so
 * that a pooler may have another behind it then. */
static void rank_lock(struct stmt *s, const struct table *t)
{
    enum { LAPSE_CLASS = 1818325107 }; /* "laps" */
    text_addf(&s->sql, "pg_catalog.pg_try_advisory_xact_lock(%d, CAST(COALESCE(pg_catalog.pg_partition_root(",
              LAPSE_CLASS);
    add_regclass(s, t);
    add(s, "), ");
    add_regclass(s, t);
    add(s, ") AS pg_catalog.int4))");
}

const struct dialect dialect_postgres = {
    .rank_lock = rank_lock,
    .quote = '"',
    .catalog = "pg_catalog",
    .integer_type = "bigint",
    .placeholder = postgres_placeholder,
    .in_set = postgres_in_set,
    .time_compare = postgres_time_compare,
    .time_keep = postgres_time_keep,
    .time_readable = postgres_time_readable,
    .time_unreadable = postgres_time_unreadable,
    .always_readable = postgres_always_readable,
    .time_value = postgres_time_value,
    .latest = postgres_latest,
    .like = postgres_like,
    .prefix = postgres_prefix,
    .like_folded = postgres_like_folded,
    .bytes = postgres_bytes,
    .exactly = postgres_exactly,
    .lock = postgres_lock,
    .is_text_of_set = postgres_is_text_of_set,
    .of_row = postgres_of_row,
    .each_row = postgres_each_row,
    .in_set_by_index = postgres_in_set_by_index,
    /* Each run is believed to be a ninth of the table. */
    .runs = {postgres_runs, postgres_runs_have, VALUE_TEXT, 125},
    .only = "ONLY ",
    .is_part = postgres_is_part,
    .parting = postgres_parting,
    .place = {last_in, block_of, blocks},
    .each_row_end = " OFFSET 0) AS lapse_found",
    .text_cast = TEXT,
    .hex_blobs = true,
    .once = " AS MATERIALIZED ",
    .nulls_last = " NULLS LAST",
    .locks_rows = true,
    .returning = true,
    .now = bind_instant,
    .own = {.name_type = TEXT BYTEWISE,
            .time_type = SQL_INSTANT,
            .moment_type = SQL_INSTANT " NOT NULL",
            .long_name_type = TEXT BYTEWISE,
            .text_type = TEXT,
            .bind_name = "text",
            .bind_time = SQL_INSTANT,
            .time = TIME_INSTANT,
            .number_type = "bigint GENERATED BY DEFAULT AS IDENTITY",
            .by_any = {"USING hash (", ")"}, /* a tree cannot hold more than a third of a page */
            .time_digits = 6,
            .clock = CATALOG "clock_timestamp()",
            .clock_us =
                "(EXTRACT(epoch FROM pg_catalog.clock_timestamp())" OP("*") "1000000::numeric)::bigint",
            .later = {"(pg_catalog.clock_timestamp()" OP("+") "(",
                      "::double precision" OP("*") "interval '1 microsecond'))"},
            .lock = "SELECT pg_catalog.pg_advisory_xact_lock(7809921730811)",
            .has_schema = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname" OP("=") "{1}",
            .foreign = postgres_foreign},
    .dollar_quotes = true,
    .backslash_strings = true,
    .nested_comments = true,
    .question_marks_ok = true,
};
