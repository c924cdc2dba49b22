/* row: conditions on one row, resolved: names become columns, values get their column's type, durations
 * become instants. Part of plan; what cannot be resolved is a finding. */
#include "plan/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "contract/contract.h"

/* --- names ------------------------------------------------------------------------------------ */

static const char *kind_words(enum table_kind k)
{
    switch (k) {
    case KIND_VIEW:
        return "a view";
    case KIND_FOREIGN:
        return "a foreign table";
    case KIND_VIRTUAL:
        return "a virtual table";
    case KIND_SEQUENCE:
        return "a sequence";
    case KIND_TABLE:
    case KIND_PARTITIONED:
        break;
    }
    return NULL;
}

const struct table *plan_find_table(struct making *m, const struct table_name *name)
{
    const struct table *t = facts_table(m->facts, name);
    if (!t) {
        AUTO(text_release) struct text print = {0};
        table_name_print(name, &print);
        complain(
            m, name->at,
            m->facts->hides
                ? arena_printf(m->facts->arena,
                               "name a table of the database connected to, or of another as "
                               "database.table; a table that this user has no right on cannot be seen%s%s",
                               m->facts->grants ? "; " : "", m->facts->grants ? m->facts->grants : "")
                : "name a table of this database, with its schema if it is not on the search "
                  "path",
            "table '%s' does not exist", text_str(&print));
        return NULL;
    }
    if (kind_words(t->kind)) {
        complain(m, name->at, "name the base table that holds the rows", "'%s' is %s, not a table", t->print,
                 kind_words(t->kind));
        return NULL;
    }
    if (t->inheritors) {
        complain(m, name->at, "name the tables that inherit from it one by one",
                 "other tables inherit from '%s', so its key does not tell their rows apart", t->print);
        return NULL;
    }
    return t;
}

bool plan_need_key(struct making *m, const struct table *t, struct place at)
{
    if (t->n_key)
        return true;
    for (size_t i = 0; i < t->n_indexes; i++)
        if (t->indexes[i].primary && t->indexes[i].columns[0]) {
            complain(m, at, "add a unique index over NOT NULL columns of other types",
                     "the primary key of '%s' (%s %s, …) is of a type that cannot tell rows apart here",
                     t->print, t->indexes[i].columns[0]->name, t->indexes[i].columns[0]->sql_type);
            return false;
        }
    complain(m, at, "add a primary key, or a unique index over NOT NULL columns",
             "table '%s' has no key that tells its rows apart", t->print);
    return false;
}

const struct column *plan_find_column(struct making *m, const struct table *t, const struct name *name,
                                      struct place at)
{
    const struct column *c = table_column(m->facts, t, name);
    if (c)
        return c;
    const char **names = arena_alloc(m->arena, t->n_columns * sizeof(*names));
    AUTO(text_release) struct text all = {0};
    for (size_t i = 0; i < t->n_columns; i++) {
        names[i] = t->columns[i].name;
        text_addf(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = nearest_word(name->text, names, t->n_columns);
    const char *fix = near ? arena_printf(m->arena, "did you mean '%s'?", near)
                           : arena_printf(m->arena, "its columns are: %s", text_str(&all));
    complain(m, at, fix, "table '%s' has no column '%s'", t->print, name->text);
    return NULL;
}

/* --- values ------------------------------------------------------------------------------------- */

static bool parse_integer(const char *s, int64_t *ret)
{
    const char *digits = *s == '-' || *s == '+' ? s + 1 : s;
    if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    long long v = strtoll(s, NULL, 10);
    if (errno)
        return false;
    *ret = v;
    return true;
}

static bool parse_real(const char *s, double *ret)
{
    if (!*s || strspn(s, "+-.0123456789eE") != strlen(s))
        return false;
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    if (*end || errno)
        return false;
    *ret = v;
    return true;
}

static bool parse_boolean(const struct scalar *v, int64_t *ret)
{
    if (v->quoted)
        return false;
    if (!strcmp(v->text, "true") || !strcmp(v->text, "false")) {
        *ret = v->text[0] == 't';
        return true;
    }
    return false;
}

static struct value integer_value(int64_t i)
{
    return (struct value){.kind = VALUE_INTEGER, .integer = i};
}

static struct value text_value(const char *s)
{
    return (struct value){.kind = VALUE_TEXT, .text = s, .len = strlen(s)};
}

static bool enum_has(const struct column *c, const char *label)
{
    for (size_t i = 0; i < c->n_labels; i++)
        if (!strcmp(c->labels[i], label))
            return true;
    return false;
}

static void complain_label(struct making *m, const struct column *c, const struct scalar *v)
{
    AUTO(text_release) struct text all = {0};
    for (size_t i = 0; i < c->n_labels; i++)
        text_addf(&all, "%s%s", i ? ", " : "", c->labels[i]);
    const char *near = nearest_word(v->text, c->labels, c->n_labels);
    const char *fix = near ? arena_printf(m->arena, "did you mean '%s'? it has: %s", near, text_str(&all))
                           : arena_printf(m->arena, "it has: %s", text_str(&all));
    complain(m, v->at, fix, "'%s' is not a value of %s, the type of column '%s'", v->text, c->sql_type,
             c->name);
}

const char *plan_text_of(struct arena *a, const struct column *c, const char *text)
{
    size_t len = strlen(text);
    while (c->trims && len && text[len - 1] == ' ')
        len--;
    return text[len] ? arena_strndup(a, text, len) : text;
}

/* A scalar of the contract as a value of the column's type. Not for NULL. */
static bool typed_value(struct making *m, const struct column *c, const struct scalar *v, struct value *ret)
{
    int64_t i;
    double d;
    switch (c->type) {
    case TYPE_BOOLEAN:
        if (parse_boolean(v, &i) || (parse_integer(v->text, &i) && (i == 0 || i == 1))) {
            *ret = integer_value(i);
            return true;
        }
        complain(m, v->at, "write true or false", "'%s' is not a boolean, as column '%s' is", v->text,
                 c->name);
        return false;
    case TYPE_INTEGER:
        if (parse_integer(v->text, &i) || (m->facts->booleans_are_integers && parse_boolean(v, &i))) {
            *ret = integer_value(i);
            return true;
        }
        complain(m, v->at, "write a whole number", "'%s' is not a whole number, as column '%s' (%s) holds",
                 v->text, c->name, c->sql_type);
        return false;
    case TYPE_REAL:
    case TYPE_NUMERIC:
        if (!parse_real(v->text, &d)) {
            complain(m, v->at, "write a number", "'%s' is not a number, as column '%s' (%s) holds", v->text,
                     c->name, c->sql_type);
            return false;
        }
        *ret = c->type == TYPE_REAL ? (struct value){.kind = VALUE_REAL, .real = d} : text_value(v->text);
        return true;
    case TYPE_ENUM:
        if (!enum_has(c, v->text)) {
            complain_label(m, c, v);
            return false;
        }
        *ret = text_value(v->text);
        return true;
    case TYPE_DYNAMIC:
        if (!v->quoted && (parse_integer(v->text, &i) || parse_boolean(v, &i)))
            *ret = integer_value(i);
        else if (!v->quoted && parse_real(v->text, &d))
            *ret = (struct value){.kind = VALUE_REAL, .real = d};
        else
            *ret = text_value(v->text);
        return true;
    case TYPE_BLOB:
        complain(m, v->at, "compare it in SQL: where: \"this.… = …\"",
                 "column '%s' holds bytes (%s), which a plain value cannot be", c->name, c->sql_type);
        return false;
    case TYPE_TEXT:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP:
    case TYPE_DATE:
    case TYPE_OTHER:
        break;
    }
    *ret = text_value(plan_text_of(m->arena, c, v->text));
    return true;
}

/* What a column is compared with by order. As texts, 10 comes before 9; and a number is no time. */
static bool value_in_order(struct making *m, const struct column *c, const struct scalar *v,
                           struct value *ret)
{
    double ignored;
    bool number = !v->quoted && parse_real(v->text, &ignored);
    bool time = c->type == TYPE_TIMESTAMPTZ || c->type == TYPE_TIMESTAMP || c->type == TYPE_DATE;
    if (number && c->type == TYPE_TEXT)
        complain(
            m, v->at,
            "write a text in quotes if the order of texts is meant, or a condition in SQL that makes numbers "
            "of them",
            "%s is a number, but column '%s' (%s) holds texts, of which '10' comes before '9'", v->text,
            c->name, c->sql_type);
    else if (number && time)
        complain(m, v->at, "write older_than or newer_than",
                 "%s is a number, but column '%s' (%s) holds times", v->text, c->name, c->sql_type);
    else
        return typed_value(m, c, v, ret);
    return false;
}

/* --- times ---------------------------------------------------------------------------------------- */

bool plan_ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcasecmp(s + n - k, end);
}

/* 0: the name says nothing. */
int64_t plan_unit_of_suffix(const char *name)
{
    for (size_t i = 0; i < TIME_UNITS; i++) {
        const char *sign = time_units[i].sign;
        size_t len = strlen(name), end = strlen(sign);
        if (len > end + 1 && plan_ends_with(name, sign) && name[len - end - 1] == '_')
            return time_units[i].us;
    }
    return 0;
}

static bool time_column(struct making *m, const struct column *c, int64_t unit_us, struct place at,
                        struct time_column *ret)
{
    *ret = (struct time_column){.column = c, .zone = m->zone, .at = at};
    switch (c->type) {
    case TYPE_TIMESTAMPTZ:
        ret->encoding = TIME_INSTANT;
        return true;
    case TYPE_TIMESTAMP:
        ret->encoding = TIME_LOCAL;
        return true;
    case TYPE_DATE:
        ret->encoding = TIME_DATE;
        return true;
    case TYPE_TEXT:
        ret->encoding = TIME_TEXT;
        return true;
    case TYPE_DYNAMIC:
        ret->encoding = unit_us ? TIME_INTEGER : TIME_TEXT;
        ret->unit_us = unit_us;
        return true;
    case TYPE_INTEGER:
        if (unit_us) {
            ret->encoding = TIME_INTEGER;
            ret->unit_us = unit_us;
            return true;
        }
        complain(m, at, "say what it counts since 1970: unit: s, unit: ms or unit: us",
                 "column '%s' is a whole number (%s) without a unit", c->name, c->sql_type);
        return false;
    case TYPE_BOOLEAN:
    case TYPE_REAL:
    case TYPE_NUMERIC:
    case TYPE_ENUM:
    case TYPE_BLOB:
    case TYPE_OTHER:
        break;
    }
    complain(m, at,
             "name a column that is a timestamp, a date, a whole number with a unit, or text in ISO form",
             "column '%s' is %s, which holds no time", c->name, c->sql_type);
    return false;
}

/* The column of a bound: what the policy says goes before what the name says. */
bool plan_bound_column(struct making *m, const struct name *name, struct time_column *ret)
{
    struct place at = name->at.line ? name->at : m->policy->at;
    const struct column *c = plan_find_column(m, m->plan->root.table, name, at);
    if (!c)
        return false;
    int64_t unit = m->policy->unit_us ? m->policy->unit_us : plan_unit_of_suffix(c->name);
    return time_column(m, c, unit, at, ret);
}

/* The column of a condition: its own name goes before the policy's unit, which is said of the bound. */
static bool condition_time(struct making *m, const struct column *c, struct place at, struct time_column *ret)
{
    int64_t unit = plan_unit_of_suffix(c->name);
    return time_column(m, c, unit ? unit : m->policy->unit_us, at, ret);
}

/* --- conditions ------------------------------------------------------------------------------------- */

struct expr *plan_expr(struct making *m, enum expr_kind kind)
{
    struct expr *x = arena_alloc(m->arena, sizeof(*x));
    x->kind = kind;
    return x;
}

void plan_add_kid(struct making *m, struct expr *x, const struct expr *kid)
{
    if (!kid)
        return;
    x->kids = arena_push(m->arena, x->kids, x->n_kids, sizeof(*x->kids));
    x->kids[x->n_kids++] = kid;
}

/* An AND or OR of one is that one; of none, NULL. */
const struct expr *plan_simplest(const struct expr *x)
{
    return x->n_kids == 0 ? NULL : x->n_kids == 1 ? x->kids[0] : x;
}

const struct expr *plan_not_true(struct making *m, const struct expr *x)
{
    struct expr *n = plan_expr(m, EXPR_NOT_TRUE);
    plan_add_kid(m, n, x);
    return n;
}

const struct expr *plan_on_column(struct making *m, enum expr_kind kind, const struct column *c)
{
    struct expr *x = plan_expr(m, kind);
    x->column = c;
    return x;
}

static const struct expr *compare_value(struct making *m, enum expr_kind kind, enum compare cmp,
                                        const struct column *c, struct value v)
{
    struct expr *x = plan_expr(m, kind);
    x->column = c;
    x->cmp = cmp;
    x->values = arena_alloc(m->arena, sizeof(v));
    x->values[0] = v;
    x->n_values = 1;
    return x;
}

const struct expr *plan_compare_time(struct making *m, struct time_column t, enum compare cmp, instant at)
{
    struct expr *x = plan_expr(m, EXPR_TIME);
    x->time = t;
    x->cmp = cmp;
    x->at = at;
    return x;
}

static bool need_text(struct making *m, const struct column *c, const char *what, struct place at)
{
    if (c->type == TYPE_TEXT || c->type == TYPE_DYNAMIC)
        return true;
    complain(m, at, "write whole values", "%s needs a text column, but '%s' is %s", what, c->name,
             c->sql_type);
    return false;
}

/* A prefix of an enum's labels is those labels. */
static bool labels_with(struct making *m, const struct column *c, const struct scalar *v, struct expr *any)
{
    struct expr *in = plan_expr(m, EXPR_IN);
    in->column = c;
    in->values = arena_alloc(m->arena, c->n_labels * sizeof(*in->values));
    for (size_t i = 0; i < c->n_labels; i++)
        if (strncmp(c->labels[i], v->text, strlen(v->text)) == 0)
            in->values[in->n_values++] = text_value(c->labels[i]);
    if (in->n_values)
        plan_add_kid(m, any, in);
    else
        complain_label(m, c, v);
    return in->n_values > 0;
}

/* column is one of values: NULL and prefixes take a comparison of their own. NULL on an error. */
const struct expr *plan_one_of(struct making *m, const struct column *c, const struct scalar *values,
                               size_t n)
{
    struct expr *any = plan_expr(m, EXPR_OR), *in = plan_expr(m, EXPR_IN);
    in->column = c;
    in->values = arena_alloc(m->arena, (n ? n : 1) * sizeof(*in->values));
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        const struct scalar *v = &values[i];
        if (v->null)
            plan_add_kid(m, any, plan_on_column(m, EXPR_IS_NULL, c));
        else if (v->prefix && c->type == TYPE_ENUM)
            ok &= labels_with(m, c, v, any);
        else if (v->prefix && need_text(m, c, "a prefix", v->at))
            plan_add_kid(m, any, compare_value(m, EXPR_PREFIX, CMP_EQ, c, text_value(v->text)));
        else if (v->prefix || !typed_value(m, c, v, &in->values[in->n_values]))
            ok = false;
        else
            in->n_values++;
    }
    if (in->n_values)
        plan_add_kid(m, any, in);
    return ok ? plan_simplest(any) : NULL;
}

static const struct expr *none_of(struct making *m, const struct column *c, const struct scalar *values,
                                  size_t n)
{
    struct expr *all = plan_expr(m, EXPR_AND), *in = plan_expr(m, EXPR_NOT_IN);
    in->column = c;
    in->values = arena_alloc(m->arena, (n ? n : 1) * sizeof(*in->values));
    for (size_t i = 0; i < n; i++) {
        if (values[i].null)
            plan_add_kid(m, all, plan_on_column(m, EXPR_NOT_NULL, c));
        else if (typed_value(m, c, &values[i], &in->values[in->n_values]))
            in->n_values++;
        else
            return NULL;
    }
    if (in->n_values)
        plan_add_kid(m, all, in);
    return plan_simplest(all);
}

static const struct expr *by_age(struct making *m, const struct cond *cond, const struct column *c)
{
    bool older = cond->op == COND_OLDER_THAN;
    struct time_column t;
    instant at;
    if (!condition_time(m, c, cond->at, &t))
        return NULL;
    if (cond->span.kind == SPAN_NEVER || !sub_i64(m->plan->now, cond->span.us, &at))
        return older ? plan_expr(m, EXPR_FALSE) : plan_on_column(m, EXPR_NOT_NULL, c);
    return plan_compare_time(m, t, older ? CMP_LT : CMP_GT, at);
}

static enum compare compare_of(enum cond_op op)
{
    switch (op) {
    case COND_LT:
        return CMP_LT;
    case COND_LTE:
        return CMP_LE;
    case COND_GT:
        return CMP_GT;
    default:
        return CMP_GE;
    }
}

static const struct expr *on_one_column(struct making *m, const struct table *t, const struct cond *cond)
{
    const struct column *c = plan_find_column(m, t, &cond->column, cond->at);
    struct value v;
    if (!c)
        return NULL;
    switch (cond->op) {
    case COND_IN:
        return plan_one_of(m, c, cond->values, cond->n_values);
    case COND_NOT_IN:
        return none_of(m, c, cond->values, cond->n_values);
    case COND_LIKE:
        if (!need_text(m, c, "like", cond->at))
            return NULL;
        return compare_value(m, EXPR_LIKE, CMP_EQ, c, text_value(cond->values[0].text));
    case COND_OLDER_THAN:
    case COND_NEWER_THAN:
        return by_age(m, cond, c);
    default:
        if (!value_in_order(m, c, &cond->values[0], &v))
            return NULL;
        return compare_value(m, EXPR_COMPARE, compare_of(cond->op), c, v);
    }
}

/* NULL only after a finding: a condition that was given is never empty. */
const struct expr *plan_condition(struct making *m, const struct table *t, const struct cond *cond)
{
    struct expr *x;
    switch (cond->op) {
    case COND_ALL:
    case COND_ANY:
        x = plan_expr(m, cond->op == COND_ALL ? EXPR_AND : EXPR_OR);
        for (size_t i = 0; i < cond->n_kids; i++) {
            const struct expr *kid = plan_condition(m, t, cond->kids[i]);
            plan_add_kid(m, x, kid ? kid : plan_expr(m, EXPR_FALSE));
        }
        return plan_simplest(x);
    case COND_SQL:
        x = plan_expr(m, EXPR_SQL);
        x->sql = cond->sql;
        x->table = t;
        x->at_place = cond->at;
        m->plan->judge_again = true;
        return x;
    default:
        return on_one_column(m, t, cond);
    }
}
