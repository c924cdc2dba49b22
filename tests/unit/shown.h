/* A statement as text, for tests that compare SQL. */
#ifndef LAPSE_TEST_SHOWN_H
#define LAPSE_TEST_SHOWN_H

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "store/sql/sql.h"

static inline bool is_in(const char *const *words, const char *from, size_t len)
{
    for (; *words; words++)
        if (strlen(*words) == len && strncmp(*words, from, len) == 0)
            return true;
    return false;
}

/* The end of what is quoted, or of a word, that begins here. */
static inline const char *end_of(const char *c)
{
    char quote = *c;
    if (quote != '"' && quote != '\'') {
        while (isalnum((unsigned char)*c) || strchr("_$.", *c))
            if (!*c++)
                return c - 1;
        return c;
    }
    for (c++; *c && (*c != quote || c[1] == quote); c++)
        c += *c == quote;
    return *c ? c + 1 : c;
}

/* What PostgreSQL is sent, without the schema of its own operators, functions and types, for tests to be
 * read. Whatever looks anything up on the search path fails: an operator without its schema, a function, IN.
 * But for the contract's own SQL, which is always about a column `note`. */
static inline const char *unqualified(const char *sql, struct text *out)
{
    static const char *const keywords[] = {
        "EXISTS", "ANY",     "ALL",          "AND",   "OR",       "NOT",    "AS",     "WHERE", "FROM",
        "CAST",   "EXTRACT", "GREATEST",     "LEAST", "COALESCE", "OVER",   "FILTER", "ARRAY", "LATERAL",
        "SELECT", "ON",      "MATERIALIZED", "WHEN",  "coalesce", "VALUES", "UNION",  "IN",    NULL};
    static const char *const refused[] = {"LIKE", "BETWEEN", "DISTINCT", "NULLIF", "ILIKE", "SIMILAR", NULL};
    text_clear(out);
    for (const char *c = sql; *c;) {
        const char *end = end_of(c);
        size_t len = (size_t)(end - c);
        if (strncmp(c, "OPERATOR(pg_catalog.", 20) == 0) {
            end = strchr(c, ')');
            text_add_n(out, c + 20, (size_t)(end - c) - 20);
            c = end + 1;
            continue;
        }
        bool catalog = strncmp(c, "pg_catalog.", 11) == 0, name = isalpha((unsigned char)*c),
             call = *end == '(';
        if (name && (is_in(refused, c, len) ||
                     (call && !catalog && strncmp(c, "lapse_", 6) != 0 && !is_in(keywords, c, len))))
            fail_msg("'%.*s' is looked up on the search path: %s", (int)len, c, sql);
        if (len) {
            text_add_n(out, catalog ? c + 11 : c, catalog ? len - 11 : len);
            c = end;
            continue;
        }
        bool star =
            *c == '*' && c > sql && strchr("(. ", c[-1]) && !strchr("0123456789$", c[1 + (c[1] == ' ')]);
        bool emptied = strncmp(c, "= NULL", 6) == 0,
             contract = c - sql > 5 && strncmp(c - 5, "note ", 5) == 0;
        if (strchr("+-*/<>=~!@#%^&|`?", *c) && !star && !emptied && !contract)
            fail_msg("'%c' is looked up on the search path: %s", *c, sql);
        text_add_n(out, c++, 1);
    }
    return text_str(out);
}

/* The same of a statement in any dialect. */
static inline const char *without_schemas(const struct dialect *d, const char *sql, struct text *out)
{
    if (d->catalog)
        return unqualified(sql, out);
    text_clear(out);
    text_add(out, sql);
    return text_str(out);
}

/* A statement with the value of each placeholder behind it in braces. */
static inline void show_as(const char *sql, const struct stmt *s, char mark, struct text *out)
{
    for (const char *c = sql; *c; c++) {
        text_add_n(out, c, 1);
        size_t n = 0;
        if (*c == mark)
            for (; c[1] >= '0' && c[1] <= '9'; c++) {
                text_add_n(out, c + 1, 1);
                n = n * 10 + (size_t)(c[1] - '0');
            }
        if (!n || n > s->n_params)
            continue;
        const struct param *p = &s->params[n - 1];
        if (p->set >= 0)
            text_addf(out, "{set %d.%zu}", p->set, p->set_column);
        else if (p->value.kind == VALUE_INTEGER)
            text_addf(out, "{%lld}", (long long)p->value.integer);
        else
            text_addf(out, "{%.*s}", (int)p->value.len, p->value.text);
    }
}

static inline void show(const struct stmt *s, char mark, struct text *out)
{
    show_as(text_str(&s->sql), s, mark, out);
}

static inline void show_plain(const struct stmt *s, const struct dialect *d, char mark, struct text *out)
{
    AUTO(text_release) struct text sql = {0};
    show_as(without_schemas(d, text_str(&s->sql), &sql), s, mark, out);
}

#endif
