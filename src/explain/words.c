/* words: conditions and values in words. Part of explain. */
#include <string.h>

#include "explain/explain.h"

enum { VALUES_SHOWN = 8 };

static bool is_plain(const char *s, size_t len)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/@+";
    for (size_t i = 0; i < len; i++)
        if (!((unsigned char)s[i] & 0x80) && !memchr(plain, s[i], sizeof(plain) - 1))
            return false;
    return len > 0 && !(len == 4 && memcmp(s, "NULL", 4) == 0);
}

static void quoted(const char *s, size_t len, struct text *out)
{
    text_add(out, "'");
    for (size_t i = 0; i < len; i++)
        text_add_n(out, s[i] == '\'' ? "''" : &s[i], s[i] == '\'' ? 2 : 1);
    text_add(out, "'");
}

/* Only what people wrote themselves needs quotes to be told from the words around it. */
static bool may_need_quotes(enum type_class t)
{
    return t == TYPE_TEXT || t == TYPE_ENUM || t == TYPE_DYNAMIC || t == TYPE_OTHER;
}

void explain_value_print(enum type_class type, const struct value *v, struct text *out)
{
    bool text = v->kind == VALUE_TEXT;
    if (type == TYPE_BOOLEAN && v->kind == VALUE_INTEGER && (v->integer == 0 || v->integer == 1))
        text_add(out, v->integer ? "true" : "false");
    else if (type == TYPE_BOOLEAN && text && v->len == 1)
        text_add(out, v->text[0] == 't' ? "true" : "false");
    else if (text && may_need_quotes(type) && !is_plain(v->text, v->len))
        quoted(v->text, v->len, out);
    else
        value_print(v, out);
}

void key_print(const struct table *t, const struct value *row, struct text *out)
{
    for (size_t i = 0; i < t->n_key; i++) {
        text_addf(out, "%s%s=", i ? ", " : "", t->key[i]->name);
        explain_value_print(t->key[i]->type, &row[i], out);
    }
}

void join_print(const struct table *t, const struct join *j, struct text *out)
{
    text_addf(out, "%s%s", t->print, j->n ? "(" : "");
    for (size_t i = 0; i < j->n; i++)
        text_addf(out, "%s%s", i ? ", " : "", j->child[i]->name);
    text_add(out, j->n ? ")" : "");
}

/* "a, b or c"; of many the first few. */
static void value_list(const struct expr *x, const char *last, struct text *out)
{
    size_t n = x->n_values > VALUES_SHOWN ? VALUES_SHOWN : x->n_values;
    for (size_t i = 0; i < n; i++) {
        text_add(out, i == 0 ? "" : i + 1 == x->n_values ? last : ", ");
        explain_value_print(x->column->type, &x->values[i], out);
    }
    if (n < x->n_values)
        text_addf(out, "%s%zu more", last, x->n_values - n);
}

static const char *before_or_after(enum compare cmp)
{
    static const char *const words[] = {
        [CMP_EQ] = "at",           [CMP_NE] = "not at", [CMP_LT] = "before",
        [CMP_LE] = "at or before", [CMP_GT] = "after",  [CMP_GE] = "at or after"};
    return words[cmp];
}

static void time_words(const struct expr *x, struct text *out)
{
    char buf[WHEN_TEXT_SIZE];
    text_addf(out, "%s %s %s", x->time.column->name, before_or_after(x->cmp), when_format(x->at, buf));
}

static void compare_words(const struct expr *x, struct text *out)
{
    static const char *const signs[] = {[CMP_EQ] = "is", [CMP_NE] = "is not", [CMP_LT] = "<",
                                        [CMP_LE] = "<=", [CMP_GT] = ">",      [CMP_GE] = ">="};
    text_addf(out, "%s %s ", x->column->name, signs[x->cmp]);
    explain_value_print(x->column->type, &x->values[0], out);
}

static void pattern_words(const struct expr *x, const char *verb, struct text *out)
{
    text_addf(out, "%s %s ", x->column->name, verb);
    explain_value_print(x->column->type, &x->values[0], out);
}

static void kids_words(const struct expr *x, const char *between, struct text *out)
{
    for (size_t i = 0; i < x->n_kids; i++) {
        bool many = x->kids[i]->kind == EXPR_AND || x->kids[i]->kind == EXPR_OR;
        text_add(out, i ? between : "");
        text_add(out, many ? "(" : "");
        expr_print(x->kids[i], out);
        text_add(out, many ? ")" : "");
    }
}

static void rows_words(const struct expr *x, const char *which, struct text *out)
{
    text_add(out, which);
    join_print(x->table, &x->joins[0], out);
    if (x->n_kids) {
        text_add(out, " where ");
        expr_print(x->kids[0], out);
    }
}

static void newest_words(const struct ranking *r, struct text *out)
{
    text_addf(out, "not among the newest %lld", (long long)r->rows);
    for (size_t i = 0; i < r->n_per; i++)
        text_addf(out, "%s%s", i ? ", " : " per ", r->per[i]->name);
    for (size_t i = 0; i < r->n_newest; i++)
        text_addf(out, "%s%s", i ? ", " : " by ", r->newest[i].column->name);
}

void expr_print(const struct expr *x, struct text *out)
{
    switch (x->kind) {
    case EXPR_TRUE:
        text_add(out, "always");
        break;
    case EXPR_FALSE:
        text_add(out, "never");
        break;
    case EXPR_AND:
        kids_words(x, " and ", out);
        break;
    case EXPR_OR:
        kids_words(x, " or ", out);
        break;
    case EXPR_NOT_TRUE:
        text_add(out, "not (");
        expr_print(x->kids[0], out);
        text_add(out, ")");
        break;
    case EXPR_IS_NULL:
        text_addf(out, "%s is NULL", x->column->name);
        break;
    case EXPR_NOT_NULL:
        text_addf(out, "%s is not NULL", x->column->name);
        break;
    case EXPR_COMPARE:
        compare_words(x, out);
        break;
    case EXPR_IN:
        text_addf(out, "%s is ", x->column->name);
        value_list(x, " or ", out);
        break;
    case EXPR_NOT_IN:
        text_addf(out, "%s is %s ", x->column->name, x->n_values > 1 ? "none of" : "not");
        value_list(x, ", ", out);
        break;
    case EXPR_LIKE:
        pattern_words(x, "is like", out);
        break;
    case EXPR_PREFIX:
        pattern_words(x, "begins with", out);
        break;
    case EXPR_TIME:
        time_words(x, out);
        break;
    case EXPR_TIME_KEEP:
        text_addf(out, "%s is older than %s says", x->time.column->name, x->keep_column->name);
        break;
    case EXPR_TIME_READABLE:
        text_addf(out, "%s is no unusable time", x->time.column->name);
        break;
    case EXPR_EXISTS:
        rows_words(x, "there is a row of ", out);
        break;
    case EXPR_SUBTREE_EXISTS:
        rows_words(x, "it or a row below it by ", out);
        break;
    case EXPR_BEYOND_NEWEST:
        newest_words(x->ranking, out);
        break;
    case EXPR_SQL:
        text_add(out, x->sql);
        break;
    }
}
