/* condition: maps of columns and values -> struct cond. */
#include "contract/condition.h"

#include <string.h>
#include <strings.h>

static struct cond *new_cond(struct reader *r, enum cond_op op, struct place at)
{
    struct cond *c = arena_alloc(r->arena, sizeof(*c));
    *c = (struct cond){.op = op, .at = at};
    return c;
}

static void add_kid(struct reader *r, struct cond *parent, struct cond *kid)
{
    parent->kids = arena_push(r->arena, parent->kids, parent->n_kids, sizeof(struct cond *));
    parent->kids[parent->n_kids++] = kid;
}

/* A value left empty is more likely forgotten than meant as NULL. */
static void add_value(struct reader *r, struct cond *c, const struct node *n)
{
    if (node_is_null(n) && !n->text[0])
        mistakes_add(r->mistakes, n->at, "'%s' has no value; write null for SQL NULL", r->key);
    c->values = arena_push(r->arena, c->values, c->n_values, sizeof(*c->values));
    c->values[c->n_values++] = reader_scalar(n);
}

/* One value or a list of them. */
static void read_values(struct reader *r, const struct node *n, struct cond *c)
{
    static const char allowed[] = "a value or a list of values";
    if (n->kind == NODE_LIST && n->n_items == 0)
        mistakes_add(r->mistakes, n->at, "'%s' has an empty list; name at least one value", r->key);
    for (size_t i = 0; i < n->n_items; i++) {
        if (n->items[i]->kind == NODE_SCALAR)
            add_value(r, c, n->items[i]);
        else
            reader_wrong(r, n->items[i], allowed);
    }
    if (n->kind == NODE_SCALAR)
        add_value(r, c, n);
    else if (n->kind == NODE_MAP)
        reader_wrong(r, n, allowed);
}

void read_in(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    (void)count;
    ((struct cond *)cond)->op = COND_IN;
    read_values(r, n, cond);
}

void read_not_in(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    (void)count;
    ((struct cond *)cond)->op = COND_NOT_IN;
    read_values(r, n, cond);
}

static void read_comparison(struct reader *r, const struct node *n, struct cond *c, enum cond_op op)
{
    c->op = op;
    if (reader_text(r, n, "one value that is not null"))
        add_value(r, c, n);
}

void read_lt(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    (void)count;
    read_comparison(r, n, cond, COND_LT);
}

void read_lte(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    (void)count;
    read_comparison(r, n, cond, COND_LTE);
}

void read_gt(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    (void)count;
    read_comparison(r, n, cond, COND_GT);
}

void read_gte(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    (void)count;
    read_comparison(r, n, cond, COND_GTE);
}

void read_like(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    (void)count;
    read_comparison(r, n, cond, COND_LIKE);
}

void read_older_than(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    ((struct cond *)cond)->op = COND_OLDER_THAN;
    read_kept_or_none(r, n, &((struct cond *)cond)->span, count);
}

void read_newer_than(struct reader *r, const struct node *n, void *cond, size_t *count)
{
    ((struct cond *)cond)->op = COND_NEWER_THAN;
    read_kept_or_none(r, n, &((struct cond *)cond)->span, count);
}

/* --- maps ---------------------------------------------------------------------------------------- */

/* A condition on the column that a pair names; text NULL after a mistake. */
static struct cond *column_cond(struct reader *r, const struct pair *p)
{
    struct cond *c = new_cond(r, COND_IN, p->key->at);
    read_name(r, p->key, &c->column, NULL);
    return c;
}

/* { gte: 3, lt: 9 }: each operator is a condition of its own, all of them hold. */
static void add_operators(struct reader *r, struct cond *parent, const struct pair *column)
{
    const struct node *map = column->value;
    if (map->n_pairs == 0)
        mistakes_add(r->mistakes, map->at, "'%s' has an empty map; write an operator like { gte: 3 }",
                     r->key);
    for (size_t i = 0; i < map->n_pairs; i++) {
        const struct key_doc *op = reader_key(r, "condition", map->pairs[i].key);
        if (!op)
            continue;
        struct cond *c = column_cond(r, column);
        const char *outer = r->key;
        r->key = op->key;
        op->read(r, map->pairs[i].value, c, NULL);
        r->key = outer;
        add_kid(r, parent, c);
    }
}

static void add_any(struct reader *r, struct cond *parent, const struct pair *p)
{
    if (p->value->kind != NODE_LIST || p->value->n_items == 0) {
        reader_wrong(r, p->value, "a list of conditions (a column of that name is written '\"any\"')");
        return;
    }
    struct cond *any = new_cond(r, COND_ANY, p->key->at);
    for (size_t i = 0; i < p->value->n_items; i++) {
        struct cond *kid = NULL;
        read_condition(r, p->value->items[i], &kid, NULL);
        if (kid)
            add_kid(r, any, kid);
    }
    add_kid(r, parent, any);
}

static void add_entry(struct reader *r, struct cond *parent, const struct pair *p)
{
    const char *outer = r->key;
    r->key = p->key->text;
    if (strcmp(p->key->text, "any") == 0) {
        add_any(r, parent, p);
    } else if (p->value->kind == NODE_MAP) {
        add_operators(r, parent, p);
    } else {
        struct cond *c = column_cond(r, p);
        read_values(r, p->value, c);
        add_kid(r, parent, c);
    }
    r->key = outer;
}

/* A lone number, true or null is a slip, not SQL. */
static bool looks_like_sql(const struct node *n)
{
    return n->quoted || (strspn(n->text, "0123456789.+-") != strlen(n->text) &&
                         strcasecmp(n->text, "true") != 0 && strcasecmp(n->text, "false") != 0);
}

static struct cond *sql_cond(struct reader *r, const struct node *n)
{
    static const char allowed[] = "a condition: a map like { status: paid }, or a text of SQL";
    const char *sql = reader_text(r, n, allowed);
    if (!sql)
        return NULL;
    if (!looks_like_sql(n) || sql[strspn(sql, " \t\r\n")] == '\0') {
        reader_wrong(r, n, allowed);
        return NULL;
    }
    struct cond *c = new_cond(r, COND_SQL, n->at);
    c->sql = sql;
    return c;
}

void read_condition(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct cond *c;
    if (n->kind == NODE_SCALAR) {
        c = sql_cond(r, n);
    } else {
        if (!reader_map(r, n, "a condition: a map like { status: paid }, or a text of SQL"))
            return;
        c = new_cond(r, COND_ALL, n->at);
        for (size_t i = 0; i < n->n_pairs; i++)
            add_entry(r, c, &n->pairs[i]);
    }
    *(struct cond **)field = c;
}

/* --- rows ---------------------------------------------------------------------------------------- */

/* A trailing * makes a prefix, a trailing \* is a star. */
static void find_prefix(struct reader *r, struct scalar *v)
{
    size_t len = v->null ? 0 : strlen(v->text);
    if (len == 0 || v->text[len - 1] != '*')
        return;
    bool literal = len > 1 && v->text[len - 2] == '\\';
    if (len == 1)
        mistakes_add(r->mistakes, v->at,
                     "'%s': '*' alone is every value; leave the column out, or write \\* for a star", r->key);
    else if (literal)
        v->text = arena_printf(r->arena, "%.*s*", (int)(len - 2), v->text);
    else
        v->text = arena_strndup(r->arena, v->text, len - 1);
    v->prefix = len > 1 && !literal;
}

static void add_row_values(struct reader *r, struct cond *parent, const struct pair *p)
{
    const char *outer = r->key;
    r->key = p->key->text;
    struct cond *c = column_cond(r, p);
    if (p->value->kind == NODE_MAP)
        reader_wrong(r, p->value, "a value or a list of values here (did you mean 'where'?)");
    else
        read_values(r, p->value, c);
    for (size_t i = 0; i < c->n_values; i++)
        find_prefix(r, &c->values[i]);
    add_kid(r, parent, c);
    r->key = outer;
}

void read_rows(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    if (!reader_map(r, n, "a map of columns, like { status: [completed, failed] }"))
        return;
    struct cond *all = new_cond(r, COND_ALL, n->at);
    for (size_t i = 0; i < n->n_pairs; i++)
        add_row_values(r, all, &n->pairs[i]);
    *(struct cond **)field = all;
}
