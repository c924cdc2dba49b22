/* sql: a plan -> SQL text in a dialect. See sql.h. Here: what every statement is made of; expr.c writes
 * conditions, slice_sql.c what deletes, read_sql.c what counts.
 *
 * The swept row is always called `this`; rows joined to it get names that no contract is likely to use.
 * Values are always parameters. */
#include "store/sql/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- parameters and names ------------------------------------------------------------------------- */

void stmt_clear(struct stmt *s)
{
    text_clear(&s->sql);
    s->n_params = 0;
    arena_free(s->arena);
    s->arena = NULL;
    s->deletes = NULL;
    s->runs_of = NULL;
    s->of_catalog = s->has_sql = false;
}

void stmt_release(struct stmt *s)
{
    text_release(&s->sql);
    free(s->params);
    arena_free(s->arena);
    *s = (struct stmt){0};
}

static size_t add_param(struct stmt *s, struct param p)
{
    s->params = mem_grow(s->params, s->n_params + 1, sizeof(*s->params));
    s->params[s->n_params++] = p;
    return s->n_params;
}

void sql_bind(struct stmt *s, const struct dialect *d, struct value v, const char *sql_type)
{
    size_t n = add_param(s, (struct param){.value = v, .sql_type = sql_type, .set = -1});
    d->placeholder(s, n);
}

void sql_bind_integer(struct stmt *s, const struct dialect *d, int64_t i)
{
    sql_bind(s, d, (struct value){.kind = VALUE_INTEGER, .integer = i}, d->integer_type);
}

void sql_bind_text(struct stmt *s, const struct dialect *d, const char *text, const char *sql_type)
{
    if (!s->arena)
        s->arena = arena_new();
    size_t len = strlen(text);
    const char *copy = arena_strndup(s->arena, text, len);
    sql_bind(s, d, (struct value){.kind = VALUE_TEXT, .text = copy, .len = len}, sql_type);
}

size_t sql_bind_set(struct stmt *s, int set, size_t column, const char *sql_type)
{
    return add_param(s, (struct param){.sql_type = sql_type, .set = set, .set_column = column});
}

size_t sql_bind_runs(struct stmt *s, int set, size_t column, enum rows_part part, const char *sql_type)
{
    return add_param(s, (struct param){.sql_type = sql_type, .set = set, .set_column = column, .part = part});
}

void sql_name(struct stmt *s, const struct dialect *d, const char *name)
{
    char quote[2] = {d->quote, '\0'};
    text_add(&s->sql, quote);
    for (const char *c = name; *c; c++) {
        if (*c == d->quote)
            text_add(&s->sql, quote);
        text_add_n(&s->sql, c, 1);
    }
    text_add(&s->sql, quote);
}

void sql_column(struct stmt *s, const struct dialect *d, const char *alias, const struct column *c)
{
    text_addf(&s->sql, "%s.", alias);
    sql_name(s, d, c->name);
}

void sql_table(struct stmt *s, const struct dialect *d, const struct table *t)
{
    if (t->schema) {
        sql_name(s, d, t->schema);
        text_add(&s->sql, ".");
    } else if (d->table_prefix) {
        text_add(&s->sql, d->table_prefix);
    }
    sql_name(s, d, t->name);
}

/* Where rows are read, locked or changed. */
static void sql_own_rows(struct stmt *s, const struct dialect *d, const struct table *t, const char *alias)
{
    if (t->place && d->only)
        text_add(&s->sql, d->only);
    sql_table(s, d, t);
    text_addf(&s->sql, " AS %s", alias);
}

static const char *const signs[] = {
    [CMP_EQ] = "=", [CMP_NE] = "<>", [CMP_LT] = "<", [CMP_LE] = "<=", [CMP_GT] = ">", [CMP_GE] = ">="};

const char *sql_compare(enum compare cmp)
{
    static const char *const apart[] = {[CMP_EQ] = " = ",  [CMP_NE] = " <> ", [CMP_LT] = " < ",
                                        [CMP_LE] = " <= ", [CMP_GT] = " > ",  [CMP_GE] = " >= "};
    return apart[cmp];
}

const char *sql_operators(const struct dialect *d, const struct column *a, const struct column *b)
{
    bool own = a->operators && b->operators && strcmp(a->operators, b->operators) == 0 &&
               strcmp(a->sql_type, b->sql_type) == 0;
    return d->catalog && own ? a->operators : d->catalog;
}

bool sql_operators_of_row(const struct dialect *d, const struct column *const *a,
                          const struct column *const *b, size_t n, const char **ret)
{
    const char *first = sql_operators(d, a[0], b[0]);
    for (size_t i = 1; i < n; i++) {
        const char *other = sql_operators(d, a[i], b[i]);
        if (other != first && strcmp(other, first) != 0)
            return false;
    }
    *ret = first;
    return true;
}

void sql_operator(struct stmt *s, const char *operators, const char *sign)
{
    if (operators)
        text_addf(&s->sql, " OPERATOR(%s.%s) ", operators, sign);
    else
        text_addf(&s->sql, " %s ", sign);
}

void sql_sign(struct stmt *s, const struct dialect *d, const char *sign)
{
    sql_operator(s, d->catalog, sign);
}

void sql_builtin(struct stmt *s, const struct dialect *d, const char *call)
{
    text_addf(&s->sql, "%s%s%s", d->catalog ? d->catalog : "", d->catalog ? "." : "", call);
}

void sql_add_type(struct stmt *s, const struct dialect *d, const char *operators, const struct column *c)
{
    if (operators && operators != d->catalog)
        text_addf(&s->sql, "::%s", c->sql_type);
}

void sql_operand(struct stmt *s, const struct dialect *d, const char *operators, const char *alias,
                 const struct column *c)
{
    sql_column(s, d, alias, c);
    sql_add_type(s, d, operators, c);
}

void sql_operands(struct stmt *s, const struct dialect *d, const char *operators, const char *alias,
                  const struct column *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        text_add(&s->sql, i ? ", " : "");
        sql_operand(s, d, operators, alias, list[i]);
    }
}

void sql_compared(struct stmt *s, const struct dialect *d, const char *alias, const struct column *c,
                  enum compare cmp)
{
    const char *operators = sql_operators(d, c, c);
    sql_operand(s, d, operators, alias, c);
    sql_operator(s, operators, signs[cmp]);
}

const char *sql_is_null(const struct dialect *d)
{
    return d->is_null ? d->is_null : " IS NULL";
}

void sql_add(struct stmt *s, const char *text)
{
    text_add(&s->sql, text);
}

bool sql_folds(const struct column *c)
{
    return c->folds || c->pads;
}

void sql_columns(struct stmt *s, const struct dialect *d, const char *alias, const struct column *const *list,
                 size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sql_add(s, i ? ", " : "");
        sql_column(s, d, alias, list[i]);
    }
}

void sql_from_table(struct stmt *s, const struct dialect *d, const struct table *t, const char *alias)
{
    sql_add(s, " FROM ");
    sql_own_rows(s, d, t, alias);
}

void sql_by_release(struct sql_by *b)
{
    free(b->at);
}

const struct index *sql_index_by(const struct table *t, const struct sql_by *b)
{
    for (size_t i = 0; b->columns == t->key && i < t->n_indexes; i++)
        if (t->indexes[i].primary)
            return &t->indexes[i];
    return table_index_on(t, b->columns, b->n);
}

/* What joins a table to the list of keys says all that "in the set" says, and no less: whole numbers are not
 * cut in a list, whatever the others in it. */
static bool list_says_it(const struct sql_by *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->columns[i]->type != TYPE_INTEGER || b->types[i]->type != TYPE_INTEGER)
            return false;
    return true;
}

/* Of several parts, those that the keys name are known only while they are weighed: the others would be
 * opened, too. */
static bool has_one_index(const struct table *t)
{
    return t->kind == KIND_TABLE && !t->inheritors;
}

/* Whether the index is made use of though nobody knows how many keys there are. Of a column with few values,
 * each of the few keys that are believed in would be a large part of the table; by another type it may not
 * serve at all; and then each row would be compared with each key. */
static bool serves_unweighed(const struct index *x, const struct column *c, const struct column *type)
{
    return x->unique && !x->partial && x->n_columns == 1 &&
           (strcmp(c->sql_type, type->sql_type) == 0 ||
            (c->type == TYPE_INTEGER && type->type == TYPE_INTEGER));
}

bool sql_may_go_by_runs(const struct dialect *d, const struct table *t, const struct sql_by *b)
{
    const struct index *x = sql_index_by(t, b);
    return d->runs.has && b->n == 1 && list_says_it(b) && has_one_index(t) && x && !x->partial && !x->too_new;
}

/* A table whose rows are locked or changed, found by a set of keys. */
void sql_table_by(struct stmt *s, const struct dialect *d, const struct table *t, const char *alias,
                  struct sql_by *b)
{
    const struct index *found = sql_index_by(t, b), *i = d->use_index ? found : NULL;
    bool listed = i && d->key_list && d->key_list(s, b->columns, b->n, b->set, b->at, b->types);
    sql_own_rows(s, d, t, alias);
    if (i)
        d->use_index(s, i);
    for (size_t k = 0; listed && k < b->n; k++) {
        sql_add(s, k ? " AND " : " ON ");
        sql_column(s, d, alias, b->columns[k]);
        text_addf(&s->sql, " = lapse_keys.k%zu", k);
    }
    b->said = listed && list_says_it(b);
    b->indexed = d->in_set_by_index && b->n == 1 && found && has_one_index(t) &&
                 serves_unweighed(found, b->columns[0], b->types[0]);
}

void sql_where_by(struct stmt *s, const struct dialect *d, const char *alias, const struct sql_by *b)
{
    sql_add(s, b->said ? "WHERE TRUE" : "WHERE ");
    if (b->indexed)
        d->in_set_by_index(s, alias, b->columns[0], b->set, b->at[0], b->types[0]);
    else if (!b->said)
        d->in_set(s, alias, b->columns, b->n, b->set, b->at, b->types);
}

void sql_from_by(struct stmt *s, const struct dialect *d, const struct table *t, const char *alias,
                 struct sql_by *b)
{
    sql_add(s, " FROM ");
    sql_table_by(s, d, t, alias, b);
    sql_add(s, " ");
    sql_where_by(s, d, alias, b);
}

size_t sql_carried_at(const struct node *n, const struct column *c)
{
    size_t i = 0;
    while (i < n->n_carry && n->carry[i] != c)
        i++;
    return i;
}

/* Rows of a child whose reference is in the parent's set. set: the parent's own, or another of the same
 * shape. */
struct sql_by sql_by_reference(const struct join *j, const struct node *parent, int set)
{
    struct sql_by b = {.columns = j->child, .types = j->parent, .n = j->n, .set = set};
    b.at = mem_alloc(j->n * sizeof(*b.at));
    for (size_t i = 0; i < j->n; i++)
        b.at[i] = sql_carried_at(parent, j->parent[i]);
    return b;
}

void sql_refers_to(struct stmt *s, const struct dialect *d, const char *alias, const struct join *j,
                   const struct node *parent, int set)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(j, parent, set);
    d->in_set(s, alias, b.columns, b.n, b.set, b.at, b.types);
}

/* Rows of the node's own table that are in its set: the key leads what is carried. */
struct sql_by sql_by_key(const struct node *n)
{
    const struct table *t = n->table;
    struct sql_by b = {.columns = t->key, .types = t->key, .n = t->n_key, .set = n->set};
    b.at = mem_alloc(t->n_key * sizeof(*b.at));
    for (size_t i = 0; i < t->n_key; i++)
        b.at[i] = i;
    return b;
}

void sql_in_own_set(struct stmt *s, const struct dialect *d, const char *alias, const struct node *n)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_key(n);
    d->in_set(s, alias, b.columns, b.n, b.set, b.at, b.types);
}

/* --- writing by a plan ------------------------------------------------------------------------- */

struct writer sql_writer(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    stmt_clear(s);
    return (struct writer){.s = s, .d = d, .now = p->now, .plan = p};
}

const char *sql_alias(struct writer *w, char buf[ALIAS_SIZE])
{
    snprintf(buf, ALIAS_SIZE, "lapse_%d", ++w->aliases);
    return buf;
}

void sql_from(struct writer *w, const struct table *t, const char *alias)
{
    sql_from_table(w->s, w->d, t, alias);
}
