/* text: a statement and its parameters -> the text that a server reads. See store.h.
 *
 * The session's sql_mode is ours, so a backslash escapes; its character set is utf8mb4. A value is written as
 * the type that its column has: a text compared with a number, or a number with a text, would match by
 * accident. */
#include "store/mariadb/store.h"

#include <stdlib.h>
#include <string.h>

/* --- literals ---------------------------------------------------------------------------------------- */

enum literal {
    LITERAL_TEXT,
    LITERAL_NUMBER,
    LITERAL_YEAR,
    LITERAL_BYTES,
    LITERAL_DATETIME,
    LITERAL_DATE,
    LITERAL_TIME,
    LITERAL_ANY
};

static enum literal literal_of(const char *sql_type)
{
    static const struct {
        const char *type;
        enum literal literal;
    } types[] = {
        {"tinyint", LITERAL_NUMBER},     {"smallint", LITERAL_NUMBER}, {"mediumint", LITERAL_NUMBER},
        {"int", LITERAL_NUMBER},         {"integer", LITERAL_NUMBER},  {"bigint", LITERAL_NUMBER},
        {"decimal", LITERAL_NUMBER},     {"numeric", LITERAL_NUMBER},  {"float", LITERAL_NUMBER},
        {"double", LITERAL_NUMBER},      {"real", LITERAL_NUMBER},     {"year", LITERAL_YEAR},
        {"bit", LITERAL_NUMBER},         {"boolean", LITERAL_NUMBER},  {"binary", LITERAL_BYTES},
        {"varbinary", LITERAL_BYTES},    {"blob", LITERAL_BYTES},      {"tinyblob", LITERAL_BYTES},
        {"mediumblob", LITERAL_BYTES},   {"longblob", LITERAL_BYTES},  {"datetime", LITERAL_DATETIME},
        {"timestamp", LITERAL_DATETIME}, {"date", LITERAL_DATE},       {"time", LITERAL_TIME},
    };
    if (!sql_type)
        return LITERAL_ANY;
    size_t len = strcspn(sql_type, "( ");
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (strlen(types[i].type) == len && strncasecmp(types[i].type, sql_type, len) == 0)
            return types[i].literal;
    return LITERAL_TEXT;
}

static void add_quoted(struct text *t, const char *s, size_t len)
{
    text_add(t, "'");
    for (size_t i = 0, n; i < len; i += n) {
        n = 0;
        while (i + n < len && !strchr("'\\", s[i + n])) /* a NUL is found, too */
            n++;
        text_add_n(t, s + i, n);
        if (i + n == len)
            break;
        text_add(t, s[i + n] ? "\\" : "\\0");
        if (s[i + n])
            text_add_n(t, s + i + n, 1);
        n++;
    }
    text_add(t, "'");
}

static void add_bytes(struct text *t, const char *s, size_t len)
{
    text_add(t, "X'");
    for (size_t i = 0; i < len; i++)
        text_addf(t, "%02x", (unsigned)(unsigned char)s[i]);
    text_add(t, "'");
}

/* -12, 0.5, 1e10: what the language reads as one number. */
static bool is_number(const char *s, size_t len)
{
    size_t i = len && (*s == '-' || *s == '+'), digits = 0;
    for (; i < len && strchr("0123456789", s[i]) && s[i]; i++)
        digits++;
    if (i < len && s[i] == '.')
        for (i++; i < len && strchr("0123456789", s[i]) && s[i]; i++)
            digits++;
    if (!digits || i == len)
        return digits > 0;
    if (s[i] != 'e' && s[i] != 'E')
        return false;
    i++;
    i += i < len && (s[i] == '-' || s[i] == '+');
    for (digits = 0; i < len && strchr("0123456789", s[i]) && s[i]; i++)
        digits++;
    return digits && i == len;
}

static int add_number(struct text *t, const char *s, size_t len, const char *sql_type, struct err *e)
{
    if (!is_number(s, len))
        return err_set(e, ERR_DATABASE, "mariadb: '%.*s' is not a value of type %s",
                       (int)(len < 60 ? len : 60), s, sql_type);
    text_add_n(t, s, len);
    return 0;
}

/* Of a year with one or two digits the server makes one of 1970 to 2069; 0 is none of them. */
static int add_year(struct text *t, const char *s, size_t len, struct err *e)
{
    AUTO(text_release) struct text digits = {0};
    text_add_n(&digits, s, len);
    double year = is_number(s, len) ? strtod(text_str(&digits), NULL) : 0;
    if (year > -100 && year < 100 && year != 0)
        return err_set(e, ERR_DATABASE, "mariadb: '%.*s' is not a value of type year: it has four digits",
                       (int)(len < 60 ? len : 60), s);
    return add_number(t, s, len, "year", e);
}

/* A literal that is no time is an error of the statement; a text that is none would be compared as one that
 * is. One without a time of day begins with midnight. */
static void add_datetime(struct text *t, const char *s, size_t len, bool date)
{
    bool short_ = !date && len == sizeof("YYYY-MM-DD") - 1;
    AUTO(text_release) struct text whole = {0};
    text_add_n(&whole, s, len);
    text_add(&whole, short_ ? " 00:00:00" : "");
    text_add(t, date ? "DATE" : "TIMESTAMP");
    add_quoted(t, text_str(&whole), whole.len);
}

static int add_text(struct text *t, const char *s, size_t len, enum literal as, const char *sql_type,
                    struct err *e)
{
    switch (as) {
    case LITERAL_NUMBER:
        return add_number(t, s, len, sql_type, e);
    case LITERAL_YEAR:
        return add_year(t, s, len, e);
    case LITERAL_TIME:
        text_add(t, "TIME");
        add_quoted(t, s, len);
        return 0;
    case LITERAL_BYTES:
        add_bytes(t, s, len);
        return 0;
    case LITERAL_DATETIME:
    case LITERAL_DATE:
        add_datetime(t, s, len, as == LITERAL_DATE);
        return 0;
    case LITERAL_TEXT:
    case LITERAL_ANY:
        break;
    }
    add_quoted(t, s, len);
    return 0;
}

int mariadb_literal(const struct value *v, const char *sql_type, struct text *out, struct err *e)
{
    enum literal as = literal_of(sql_type);
    AUTO(text_release) struct text printed = {0};
    switch (v->kind) {
    case VALUE_NULL:
        text_add(out, "NULL");
        return 0;
    case VALUE_BLOB:
        add_bytes(out, v->text, v->len);
        return 0;
    case VALUE_TEXT:
        return add_text(out, v->text, v->len, as, sql_type, e);
    case VALUE_INTEGER:
    case VALUE_REAL:
        break;
    }
    value_print(v, &printed);
    if (as == LITERAL_ANY || as == LITERAL_NUMBER)
        text_add_n(out, text_str(&printed), printed.len);
    else
        return add_text(out, text_str(&printed), printed.len, as, sql_type, e);
    return 0;
}

/* --- statements -------------------------------------------------------------------------------------- */

/* The parameters first to last, from 1 on, that stand between two MARIADB_PARAM, and what begins a row of
 * them; returns what follows them. NULL: they are none. */
static const char *placeholder(const struct stmt *st, const char *at, size_t *ret_first, size_t *ret_last,
                               const char **ret_begin)
{
    char *end;
    *ret_first = *ret_last = strtoul(at + 1, &end, 10);
    *ret_begin = *end == '-' ? "(" : *end == '=' ? "ROW(" : "";
    if (**ret_begin)
        *ret_last = strtoul(end + 1, &end, 10);
    bool good = *end == *MARIADB_PARAM && *ret_first >= 1 && *ret_first <= *ret_last;
    return good && *ret_last <= st->n_params ? end + 1 : NULL;
}

/* All rows of a set, of the columns that these parameters name. */
static int add_set(const struct sql_store *s, const struct param *p, size_t n, const char *begin,
                   struct text *out, struct err *e)
{
    const struct rows none = {0};
    const struct rows *rows = (size_t)p->set < s->n_sets ? &s->sets[p->set].rows : &none;
    const struct value null = {.kind = VALUE_NULL};
    for (size_t row = 0; row < rows->n_rows || row == 0; row++) {
        text_add(out, row ? "," : "");
        text_add(out, begin);
        for (size_t i = 0; i < n; i++) {
            const struct value *v = rows->n_rows ? &rows_at(rows, row)[p[i].set_column] : &null;
            text_add(out, i ? "," : "");
            if (mariadb_literal(v, p[i].sql_type, out, e) < 0)
                return -1;
        }
        text_add(out, *begin ? ")" : "");
    }
    return 0;
}

int mariadb_write(const struct sql_store *s, const struct stmt *st, struct text *out, struct err *e)
{
    const char *from = text_str(&st->sql);
    for (const char *at; (at = strchr(from, *MARIADB_PARAM));) {
        size_t first, last;
        const char *begin;
        text_add_n(out, from, (size_t)(at - from));
        if (!(from = placeholder(st, at, &first, &last, &begin)))
            return err_set(e, ERR_DATABASE, "mariadb: a name or a condition holds the control character 1");
        const struct param *p = &st->params[first - 1];
        int r = p->set >= 0 ? add_set(s, p, last - first + 1, begin, out, e)
                            : mariadb_literal(&p->value, p->sql_type, out, e);
        if (r < 0)
            return -1;
    }
    text_add(out, from);
    return 0;
}

void mariadb_show(const struct stmt *st, struct text *out)
{
    const char *from = text_str(&st->sql);
    for (const char *at; (at = strchr(from, *MARIADB_PARAM));) {
        size_t first, last;
        const char *begin;
        text_add_n(out, from, (size_t)(at - from));
        if (!(from = placeholder(st, at, &first, &last, &begin)))
            return;
        for (size_t i = first; i <= last; i++)
            text_addf(out, "%s?%zu", i > first ? ", " : "", i);
    }
    text_add(out, from);
}
