/* key: the words of a key as a condition: each gets its column's type. Part of explain. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "contract/contract.h"
#include "explain/explain.h"

static bool read_integer(const char *s, int64_t *ret)
{
    const char *digits = s + (*s == '-' || *s == '+');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    long long v = strtoll(s, NULL, 10);
    *ret = v;
    return errno == 0;
}

static bool read_real(const char *s, double *ret)
{
    char *end;
    if (!*s || strspn(s, "+-.0123456789eE") != strlen(s))
        return false;
    errno = 0;
    *ret = strtod(s, &end);
    return !*end && !errno;
}

static int hex_digit(char c)
{
    const char *all = "0123456789abcdef", *at = c ? strchr(all, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
    return at ? (int)(at - all) : -1;
}

/* x'00ff' as SQL writes bytes, or \x00ff as PostgreSQL shows them. */
static bool read_bytes(struct arena *a, const char *s, struct value *ret)
{
    size_t len = strlen(s);
    bool literal = len >= 3 && (s[0] == 'x' || s[0] == 'X') && s[1] == '\'' && s[len - 1] == '\'';
    bool shown = len >= 2 && s[0] == '\\' && (s[1] == 'x' || s[1] == 'X');
    if (!literal && !shown)
        return false;
    size_t n = len - (literal ? 3 : 2);
    if (n % 2)
        return false;
    char *bytes = arena_alloc(a, n / 2 + 1);
    for (size_t i = 0; i < n; i += 2) {
        int high = hex_digit(s[2 + i]), low = hex_digit(s[3 + i]);
        if (high < 0 || low < 0)
            return false;
        bytes[i / 2] = (char)(high * 16 + low);
    }
    *ret = (struct value){.kind = VALUE_BLOB, .text = bytes, .len = n / 2};
    return true;
}

static bool read_boolean(const char *s, int64_t *ret)
{
    static const char *const words[] = {"false", "true", "f", "t", "0", "1"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(s, words[i]) == 0) {
            *ret = i % 2;
            return true;
        }
    return false;
}

static struct value text_value(const char *s)
{
    return (struct value){.kind = VALUE_TEXT, .text = s, .len = strlen(s)};
}

static int wrong(struct err *e, const struct column *c, const char *word, const char *wanted)
{
    return err_set(e, ERR_USAGE, "key column '%s' is %s, but '%s' is %s", c->name, c->sql_type, word, wanted);
}

static int wrong_label(struct err *e, const struct column *c, const char *word)
{
    AUTO(text_release) struct text all = {0};
    for (size_t i = 0; i < c->n_labels; i++)
        text_addf(&all, "%s%s", i ? ", " : "", c->labels[i]);
    const char *near = nearest_word(word, c->labels, c->n_labels);
    return err_set(e, ERR_USAGE, "key column '%s' is %s, which has no '%s'%s%s%s; it has: %s", c->name,
                   c->sql_type, word, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
                   text_str(&all));
}

/* A whole number from 2^63 to 2^64 - 1, which no other value holds exactly. */
static bool is_beyond_signed(const char *s)
{
    char *end = NULL;
    if (!*s || strspn(s, "0123456789") != strlen(s))
        return false;
    errno = 0;
    uint64_t n = strtoull(s, &end, 10);
    return errno == 0 && !*end && n > INT64_MAX;
}

/* A column that holds anything: whatever the word may stand for. */
static size_t any_values(struct arena *a, const char *word, struct value ret[3])
{
    size_t n = 0;
    int64_t i;
    double d;
    ret[n++] = text_value(word);
    if (read_integer(word, &i))
        ret[n++] = (struct value){.kind = VALUE_INTEGER, .integer = i};
    else if (read_real(word, &d))
        ret[n++] = (struct value){.kind = VALUE_REAL, .real = d};
    if (read_bytes(a, word, &ret[n]))
        n++;
    return n;
}

static int typed_values(struct arena *a, const struct column *c, const char *word, struct value ret[3],
                        size_t *ret_n, struct err *e)
{
    int64_t i;
    double d;
    bool label = false;
    *ret_n = 1;
    switch (c->type) {
    case TYPE_BOOLEAN:
        if (!read_boolean(word, &i))
            return wrong(e, c, word, "neither true nor false");
        ret[0] = (struct value){.kind = VALUE_INTEGER, .integer = i};
        return 0;
    case TYPE_INTEGER:
        if (c->is_unsigned && is_beyond_signed(word)) { /* it is bound as it is written */
            ret[0] = text_value(word);
            return 0;
        }
        if (!read_integer(word, &i))
            return wrong(e, c, word, "no whole number of 64 bits");
        ret[0] = (struct value){.kind = VALUE_INTEGER, .integer = i};
        return 0;
    case TYPE_REAL:
    case TYPE_NUMERIC:
        if (!read_real(word, &d))
            return wrong(e, c, word, "no number");
        ret[0] = c->type == TYPE_REAL ? (struct value){.kind = VALUE_REAL, .real = d} : text_value(word);
        return 0;
    case TYPE_BLOB:
        if (!read_bytes(a, word, &ret[0]))
            return wrong(e, c, word, "not written as bytes: x'00ff'");
        return 0;
    case TYPE_DYNAMIC:
        *ret_n = any_values(a, word, ret);
        return 0;
    case TYPE_ENUM:
        for (size_t k = 0; k < c->n_labels; k++)
            label |= strcmp(c->labels[k], word) == 0;
        if (!label)
            return wrong_label(e, c, word);
        break;
    case TYPE_TEXT:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP:
    case TYPE_DATE:
    case TYPE_OTHER:
        break;
    }
    ret[0] = text_value(word);
    return 0;
}

static int wrong_number(struct err *e, const struct table *t, size_t n)
{
    AUTO(text_release) struct text all = {0};
    for (size_t i = 0; i < t->n_key; i++)
        text_addf(&all, "%s%s", i ? ", " : "", t->key[i]->name);
    return err_set(e, ERR_USAGE, "the key of %s is (%s): give %zu word%s after the policy, not %zu", t->print,
                   text_str(&all), t->n_key, t->n_key == 1 ? "" : "s", n);
}

int explain_key(struct arena *a, const struct table *t, const char *const *words, size_t n,
                const struct expr **ret, struct err *e)
{
    if (n != t->n_key)
        return wrong_number(e, t, n);
    struct expr *all = arena_alloc(a, sizeof(*all));
    all->kind = EXPR_AND;
    all->kids = arena_alloc(a, n * sizeof(*all->kids));
    all->n_kids = n;
    for (size_t i = 0; i < n; i++) {
        struct expr *one = arena_alloc(a, sizeof(*one));
        one->kind = EXPR_IN;
        one->equality = EQUALITY_OWN;
        one->column = t->key[i];
        one->values = arena_alloc(a, 3 * sizeof(*one->values));
        if (typed_values(a, t->key[i], arena_strdup(a, words[i]), one->values, &one->n_values, e) < 0)
            return -1;
        all->kids[i] = one;
    }
    *ret = all;
    return 0;
}
