/* sql: a plan -> SQL text in a dialect. See sql.h.
 *
 * The swept row is always called `this`; rows joined to it get names that no contract is likely to use.
 * Values are always parameters. */
#include "sql_parts.h"

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

const char *sql_compare(enum compare cmp)
{
    static const char *const signs[] = {[CMP_EQ] = " = ",  [CMP_NE] = " <> ", [CMP_LT] = " < ",
                                        [CMP_LE] = " <= ", [CMP_GT] = " > ",  [CMP_GE] = " >= "};
    return signs[cmp];
}

static void add(struct stmt *s, const char *text)
{
    text_add(&s->sql, text);
}

static void columns(struct stmt *s, const struct dialect *d, const char *alias,
                    const struct column *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add(s, i ? ", " : "");
        sql_column(s, d, alias, list[i]);
    }
}

static void from(struct stmt *s, const struct dialect *d, const struct table *t, const char *alias)
{
    add(s, " FROM ");
    sql_table(s, d, t);
    text_addf(&s->sql, " AS %s", alias);
}

/* --- expressions --------------------------------------------------------------------------------------- */

static const char *new_alias(struct writer *w, char buf[ALIAS_SIZE])
{
    snprintf(buf, ALIAS_SIZE, "lapse_%d", ++w->aliases);
    return buf;
}

static void expression(struct writer *w, const char *alias, const struct expr *x);

static void join_columns(struct writer *w, const struct join *j, const char *child, const char *parent)
{
    for (size_t i = 0; i < j->n; i++) {
        add(w->s, i ? " AND " : "");
        sql_column(w->s, w->d, child, j->child[i]);
        add(w->s, " = ");
        sql_column(w->s, w->d, parent, j->parent[i]);
    }
}

static void kids(struct writer *w, const char *alias, const struct expr *x, const char *between)
{
    add(w->s, "(");
    for (size_t i = 0; i < x->n_kids; i++) {
        add(w->s, i ? between : "");
        expression(w, alias, x->kids[i]);
    }
    add(w->s, ")");
}

static void value_list(struct writer *w, const char *alias, const struct expr *x)
{
    sql_column(w->s, w->d, alias, x->column);
    if (x->n_values == 1) {
        add(w->s, x->kind == EXPR_IN ? " = " : " <> ");
        sql_bind(w->s, w->d, x->values[0], x->column->sql_type);
        return;
    }
    add(w->s, x->kind == EXPR_IN ? " IN (" : " NOT IN (");
    for (size_t i = 0; i < x->n_values; i++) {
        add(w->s, i ? ", " : "");
        sql_bind(w->s, w->d, x->values[i], x->column->sql_type);
    }
    add(w->s, ")");
}

static void exists(struct writer *w, const char *alias, const struct expr *x)
{
    char row[ALIAS_SIZE];
    new_alias(w, row);
    add(w->s, "EXISTS (SELECT 1");
    from(w->s, w->d, x->table, row);
    add(w->s, x->joins[0].n ? " WHERE " : "");
    join_columns(w, &x->joins[0], row, alias);
    if (x->n_kids) {
        add(w->s, x->joins[0].n ? " AND " : " WHERE ");
        expression(w, row, x->kids[0]);
    }
    add(w->s, ")");
}

/* The columns a walk down a tree needs: the key, and what the ways down refer to. */
static size_t tree_columns(const struct expr *x, const struct column **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < x->table->n_key; i++)
        ret[n++] = x->table->key[i];
    for (size_t j = 0; j < x->n_joins; j++)
        for (size_t i = 0; i < x->joins[j].n; i++) {
            size_t k = 0;
            while (k < n && ret[k] != x->joins[j].parent[i])
                k++;
            if (k == n)
                ret[n++] = x->joins[j].parent[i];
        }
    return n;
}

/* This row, its children, theirs, … : UNION drops rows already found, so a cycle ends. */
static void subtree_exists(struct writer *w, const char *alias, const struct expr *x)
{
    char tree[ALIAS_SIZE], child[ALIAS_SIZE], row[ALIAS_SIZE];
    new_alias(w, tree);
    new_alias(w, child);
    new_alias(w, row);
    size_t most = x->table->n_key;
    for (size_t j = 0; j < x->n_joins; j++)
        most += x->joins[j].n;
    AUTO(mem_free_p) const struct column **list = mem_alloc(most * sizeof(*list));
    size_t n = tree_columns(x, list);
    text_addf(&w->s->sql, "EXISTS (WITH RECURSIVE %s(", tree);
    for (size_t i = 0; i < n; i++) {
        add(w->s, i ? ", " : "");
        sql_name(w->s, w->d, list[i]->name);
    }
    add(w->s, ") AS (SELECT ");
    columns(w->s, w->d, alias, list, n);
    add(w->s, " UNION SELECT ");
    columns(w->s, w->d, child, list, n);
    from(w->s, w->d, x->table, child);
    text_addf(&w->s->sql, " JOIN %s ON ", tree);
    for (size_t j = 0; j < x->n_joins; j++) {
        add(w->s, j ? " OR (" : "(");
        join_columns(w, &x->joins[j], child, tree);
        add(w->s, ")");
    }
    text_addf(&w->s->sql, ") SELECT 1 FROM %s JOIN ", tree);
    sql_table(w->s, w->d, x->table);
    text_addf(&w->s->sql, " AS %s ON ", row);
    for (size_t i = 0; i < x->table->n_key; i++) {
        add(w->s, i ? " AND " : "");
        sql_column(w->s, w->d, row, x->table->key[i]);
        add(w->s, " = ");
        sql_column(w->s, w->d, tree, x->table->key[i]);
    }
    add(w->s, " WHERE ");
    expression(w, row, x->kids[0]);
    add(w->s, ")");
}

static size_t carried_at(const struct node *n, const struct column *c)
{
    size_t i = 0;
    while (i < n->n_carry && n->carry[i] != c)
        i++;
    return i;
}

/* Newest first, the key last. */
static void newest_first(struct writer *w, const char *row, const struct expr *x)
{
    const struct ranking *r = x->ranking;
    add(w->s, " ORDER BY ");
    for (size_t i = 0; i < r->n_newest; i++) {
        const struct newest_column *c = &r->newest[i];
        if (c->time)
            w->d->time_value(w->s, row, c->time);
        else
            sql_column(w->s, w->d, row, c->column);
        text_addf(&w->s->sql, " DESC%s, ", c->time || !c->column->not_null ? w->d->nulls_last : "");
    }
    for (size_t i = 0; i < x->table->n_key; i++) {
        add(w->s, i ? ", " : "");
        sql_column(w->s, w->d, row, x->table->key[i]);
        add(w->s, " DESC");
    }
}

/* The same order as a row to compare. */
static void rank_columns(struct writer *w, const char *row, const struct expr *x)
{
    for (size_t i = 0; i < x->ranking->n_newest; i++) {
        sql_column(w->s, w->d, row, x->ranking->newest[i].column);
        add(w->s, ", ");
    }
    columns(w->s, w->d, row, x->table->key, x->table->n_key);
}

/* Only the groups of the rows picked: a group that is looked at is looked at whole, others do not matter. */
static void groups_of_picked(struct writer *w, const char *row, const struct ranking *r)
{
    for (size_t i = 0; i < r->n_per; i++) {
        const struct column *c = r->per[i];
        size_t at = carried_at(w->picked, c);
        if (at == w->picked->n_carry)
            continue;
        add(w->s, " AND (");
        w->d->in_set(w->s, row, &c, 1, w->picked->set, &at, &c);
        if (!c->not_null) {
            add(w->s, " OR ");
            sql_column(w->s, w->d, row, c);
            add(w->s, " IS NULL");
        }
        add(w->s, ")");
    }
}

/* The keys of all rows numbered beyond so many in their group. */
static void numbered_beyond(struct writer *w, const char *alias, const struct expr *x)
{
    char row[ALIAS_SIZE], list[ALIAS_SIZE];
    struct stmt *s = w->s;
    const struct table *t = x->table;
    new_alias(w, row);
    new_alias(w, list);
    add(s, "SELECT ");
    columns(s, w->d, list, t->key, t->n_key);
    add(s, " FROM (SELECT ");
    columns(s, w->d, row, t->key, t->n_key);
    add(s, ", row_number() OVER (PARTITION BY ");
    columns(s, w->d, row, x->ranking->per, x->ranking->n_per);
    newest_first(w, row, x);
    add(s, ") AS lapse_n");
    from(s, w->d, t, row);
    add(s, " WHERE ");
    expression(w, row, x->kids[0]);
    if (w->picked && strcmp(alias, THIS) == 0)
        groups_of_picked(w, row, x->ranking);
    text_addf(&s->sql, ") AS %s WHERE %s.lapse_n > ", list, list);
    sql_bind_integer(s, w->d, x->ranking->rows);
}

/* The keys of the newest rows of all. */
static void newest_of_all(struct writer *w, const struct expr *x)
{
    char row[ALIAS_SIZE];
    struct stmt *s = w->s;
    new_alias(w, row);
    add(s, "SELECT ");
    columns(s, w->d, row, x->table->key, x->table->n_key);
    from(s, w->d, x->table, row);
    add(s, " WHERE ");
    expression(w, row, x->kids[0]);
    newest_first(w, row, x);
    add(s, " LIMIT ");
    sql_bind_integer(s, w->d, x->ranking->rows);
}

/* Older than the last of the newest. Where nothing is NULL that is one comparison with one row, which an
 * index on the order finds without the table; with fewer rows than stay there is no such row, and nothing is
 * older. */
static void beyond_last(struct writer *w, const char *alias, const struct expr *x, const char *row)
{
    struct stmt *s = w->s;
    const struct table *t = x->table;
    add(s, "(");
    rank_columns(w, alias, x);
    add(s, ") < (SELECT ");
    rank_columns(w, row, x);
    from(s, w->d, t, row);
    add(s, " WHERE ");
    expression(w, row, x->kids[0]);
    newest_first(w, row, x);
    add(s, " LIMIT 1 OFFSET ");
    sql_bind_integer(s, w->d, x->ranking->rows - 1);
    add(s, ")");
}

/* In groups: the row is one of those beyond. Else it is not in the short list of the newest; NOT IN would
 * search a list beyond PostgreSQL's work_mem from its beginning for every row. Either is worked out once:
 * where few rows are expected outside, an engine would do it again for each of them. */
static void beyond_newest(struct writer *w, const char *alias, const struct expr *x)
{
    char found[ALIAS_SIZE], list[ALIAS_SIZE];
    struct stmt *s = w->s;
    const struct table *t = x->table;
    bool grouped = x->ranking->n_per > 0;
    new_alias(w, found);
    new_alias(w, list);
    if (x->ranking->plain && !grouped) {
        beyond_last(w, alias, x, found);
        return;
    }
    if (grouped) {
        add(s, t->n_key > 1 ? "(" : "");
        columns(s, w->d, alias, t->key, t->n_key);
        add(s, t->n_key > 1 ? ") IN (" : " IN (");
    } else {
        add(s, "NOT EXISTS (SELECT 1 FROM (");
    }
    text_addf(&s->sql, "WITH %s%s(", found, w->d->once);
    if (grouped)
        numbered_beyond(w, alias, x);
    else
        newest_of_all(w, x);
    add(s, ") SELECT ");
    columns(s, w->d, found, t->key, t->n_key);
    text_addf(&s->sql, " FROM %s)", found);
    if (grouped)
        return;
    text_addf(&s->sql, " AS %s WHERE ", list);
    join_columns(w, &(struct join){t->key, t->key, t->n_key}, list, alias);
    add(s, ")");
}

static void expression(struct writer *w, const char *alias, const struct expr *x)
{
    struct stmt *s = w->s;
    const struct dialect *d = w->d;
    struct err ignored = ERR_INIT;
    switch (x->kind) {
    case EXPR_TRUE:
        add(s, "TRUE");
        break;
    case EXPR_FALSE:
        add(s, "FALSE");
        break;
    case EXPR_AND:
        kids(w, alias, x, " AND ");
        break;
    case EXPR_OR:
        kids(w, alias, x, " OR ");
        break;
    case EXPR_NOT_TRUE:
        if (x->kids[0]->kind == EXPR_EXISTS) { /* never unknown; so written, it can become an anti-join */
            add(s, "NOT ");
            exists(w, alias, x->kids[0]);
            break;
        }
        kids(w, alias, x, "");
        add(s, " IS NOT TRUE");
        break;
    case EXPR_IS_NULL:
    case EXPR_NOT_NULL:
        sql_column(s, d, alias, x->column);
        add(s, x->kind == EXPR_IS_NULL ? " IS NULL" : " IS NOT NULL");
        break;
    case EXPR_COMPARE:
        sql_column(s, d, alias, x->column);
        add(s, sql_compare(x->cmp));
        sql_bind(s, d, x->values[0], x->column->sql_type);
        break;
    case EXPR_IN:
    case EXPR_NOT_IN:
        value_list(w, alias, x);
        break;
    case EXPR_LIKE:
        d->like(s, alias, x->column, x->values[0].text);
        break;
    case EXPR_PREFIX:
        d->prefix(s, alias, x->column, x->values[0].text);
        break;
    case EXPR_TIME:
        d->time_compare(s, alias, &x->time, x->cmp, x->at);
        break;
    case EXPR_TIME_KEEP:
        d->time_keep(s, alias, &x->time, x->cmp, x->at, x->keep_column, x->keep_unit_us);
        break;
    case EXPR_TIME_READABLE:
        d->time_readable(s, alias, &x->time);
        break;
    case EXPR_EXISTS:
        exists(w, alias, x);
        break;
    case EXPR_SUBTREE_EXISTS:
        subtree_exists(w, alias, x);
        break;
    case EXPR_BEYOND_NEWEST:
        beyond_newest(w, alias, x);
        break;
    case EXPR_SQL:
        /* Checked before any statement is run; one that fails the check never gets here whole. */
        add(s, "(");
        if (sql_condition(s, d, alias, x->sql, w->now, &ignored) < 0)
            add(s, "this condition was refused");
        add(s, ")");
        break;
    }
}

/* --- the statements of a slice -----------------------------------------------------------------------------
 */

static struct writer writer_for(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    stmt_clear(s);
    return (struct writer){.s = s, .d = d, .now = p->now};
}

/* Rows of a child whose reference is in the parent's set. set: the parent's own, or another of the same
 * shape. */
static void refers_to(struct stmt *s, const struct dialect *d, const char *alias, const struct join *j,
                      const struct node *parent, int set)
{
    AUTO(mem_free_p) size_t *at = mem_alloc(j->n * sizeof(*at));
    for (size_t i = 0; i < j->n; i++)
        at[i] = carried_at(parent, j->parent[i]);
    d->in_set(s, alias, j->child, j->n, set, at, j->parent);
}

/* Rows of the node's own table that are in its set: the key leads what is carried. */
static void in_own_set(struct stmt *s, const struct dialect *d, const char *alias, const struct node *n)
{
    const struct table *t = n->table;
    AUTO(mem_free_p) size_t *at = mem_alloc(t->n_key * sizeof(*at));
    for (size_t i = 0; i < t->n_key; i++)
        at[i] = i;
    d->in_set(s, alias, t->key, t->n_key, n->set, at, t->key);
}

static void beyond(struct stmt *s, const struct dialect *d, const struct plan *p,
                   const struct cursor *from_here)
{
    bool row = p->n_order > 1;
    add(s, row ? " AND (" : " AND ");
    columns(s, d, THIS, p->order, p->n_order);
    add(s, row ? ") > (" : " > ");
    for (size_t i = 0; i < p->n_order; i++) {
        add(s, i ? ", " : "");
        sql_bind(s, d, from_here->values[i], p->order[i]->sql_type);
    }
    add(s, row ? ")" : "");
}

static void in_order(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    add(s, "\nORDER BY ");
    columns(s, d, THIS, p->order, p->n_order);
}

static void select_roots(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    add(s, "SELECT ");
    columns(s, d, THIS, p->root.carry, p->root.n_carry);
    add(s, ", ");
    columns(s, d, THIS, p->order, p->n_order);
    add(s, "\n");
    from(s, d, p->root.table, THIS);
    add(s, "\nWHERE ");
}

void sql_scout(struct stmt *s, const struct dialect *d, const struct plan *p, const struct cursor *from_here,
               int64_t most)
{
    struct writer w = writer_for(s, d, p);
    select_roots(s, d, p);
    expression(&w, THIS, p->due);
    if (from_here && from_here->set)
        beyond(s, d, p, from_here);
    in_order(s, d, p);
    add(s, "\nLIMIT ");
    sql_bind_integer(s, d, most);
}

void sql_pick(struct stmt *s, const struct dialect *d, const struct plan *p, const struct cursor *from_here,
              int64_t most)
{
    sql_scout(s, d, p, from_here, most);
    d->lock(s, THIS, LOCK_SKIP);
}

void sql_pick_set(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = writer_for(s, d, p);
    const struct expr *own[] = {p->aged, p->matches, p->hold};
    select_roots(s, d, p);
    in_own_set(s, d, THIS, &p->root);
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (!own[i] || own[i]->kind == EXPR_TRUE)
            continue;
        add(s, "\nAND ");
        expression(&w, THIS, own[i]);
    }
    d->lock(s, THIS, LOCK_SKIP);
}

static void count_of(struct stmt *s, const struct dialect *d, const struct table *t)
{
    stmt_clear(s);
    add(s, "SELECT count(*)");
    from(s, d, t, THIS);
    add(s, " WHERE ");
}

void sql_lock_source(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    char row[ALIAS_SIZE];
    struct writer w = writer_for(s, d, p);
    new_alias(&w, row);
    add(s, "SELECT count(*) FROM (SELECT 1");
    from(s, d, p->source, row);
    add(s, " WHERE ");
    refers_to(s, d, row, &p->source_join, &p->root, p->root.set);
    d->lock(s, row, LOCK_SHARE);
    add(s, ") AS lapse_rows");
}

void sql_source_there(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    count_of(s, d, p->source);
    refers_to(s, d, THIS, &p->source_join, &p->root, p->root.set);
}

void sql_judge(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = writer_for(s, d, p);
    add(s, "SELECT ");
    columns(s, d, THIS, p->root.carry, p->root.n_carry);
    add(s, "\n");
    from(s, d, p->root.table, THIS);
    add(s, "\nWHERE ");
    in_own_set(s, d, THIS, &p->root);
    add(s, "\nAND ");
    w.picked = &p->root;
    expression(&w, THIS, p->due);
}

void sql_grow(struct stmt *s, const struct dialect *d, const struct node *n, size_t way, int frontier)
{
    stmt_clear(s);
    add(s, "SELECT ");
    columns(s, d, THIS, n->carry, n->n_carry);
    from(s, d, n->table, THIS);
    add(s, " WHERE ");
    refers_to(s, d, THIS, &n->grow[way], n, frontier);
    d->lock(s, THIS, LOCK_WAIT);
}

void sql_pick_kids(struct stmt *s, const struct dialect *d, const struct node *parent, const struct node *n)
{
    stmt_clear(s);
    add(s, "SELECT ");
    columns(s, d, THIS, n->carry, n->n_carry);
    from(s, d, n->table, THIS);
    add(s, " WHERE ");
    refers_to(s, d, THIS, &n->join, parent, parent->set);
    d->lock(s, THIS, LOCK_WAIT);
}

/* "this row is in a set, or owned by a row in one": an OR over every node of its table. */
static bool gathered(struct writer *w, const struct node *n, const struct node *parent, const struct table *t,
                     bool begun)
{
    if (n->table == t) {
        add(w->s, begun ? " OR " : "");
        if (n->set >= 0)
            in_own_set(w->s, w->d, THIS, n);
        else
            refers_to(w->s, w->d, THIS, &n->join, parent, parent->set);
        begun = true;
    }
    for (size_t i = 0; i < n->n_kids; i++)
        begun = gathered(w, &n->kids[i], n, t, begun);
    return begun;
}

/* Rows of the detachment's table that go in this run: those that go in this batch, and, in the swept table,
 * whatever is due. */
static void goes_too(struct writer *w, const struct plan *p, const struct detachment *t)
{
    add(w->s, "(");
    gathered(w, &p->root, NULL, t->table, false);
    if (t->table == p->root.table) {
        add(w->s, " OR ");
        expression(w, THIS, p->due);
    }
    add(w->s, ")");
}

void sql_detach(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                const struct detachment *t, bool inside)
{
    struct writer w = writer_for(s, d, p);
    add(s, "UPDATE ");
    sql_table(s, d, t->table);
    add(s, " AS " THIS " SET ");
    for (size_t i = 0; i < t->n_emptied; i++) {
        add(s, i ? ", " : "");
        sql_name(s, d, t->emptied[i]->name);
        add(s, " = NULL");
    }
    add(s, " WHERE ");
    refers_to(s, d, THIS, &t->join, parent, parent->set);
    if (!plan_loses(p, t->table))
        return;
    add(s, " AND ");
    goes_too(&w, p, t);
    add(s, inside ? " IS TRUE" : " IS NOT TRUE");
}

void sql_detach_left(struct stmt *s, const struct dialect *d, const struct node *parent,
                     const struct detachment *t)
{
    count_of(s, d, t->table);
    refers_to(s, d, THIS, &t->join, parent, parent->set);
}

static void delete_from(struct stmt *s, const struct dialect *d, const struct table *t)
{
    stmt_clear(s);
    add(s, "DELETE");
    from(s, d, t, THIS);
    add(s, " WHERE ");
}

void sql_delete_kids(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                     const struct node *n)
{
    struct writer w = writer_for(s, d, p);
    delete_from(s, d, n->table);
    refers_to(s, d, THIS, &n->join, parent, parent->set);
    if (n->where) {
        add(s, " AND ");
        expression(&w, THIS, n->where);
    }
}

void sql_kids_left(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                   const struct node *n, bool inside)
{
    struct writer w = writer_for(s, d, p);
    count_of(s, d, n->table);
    refers_to(s, d, THIS, &n->join, parent, parent->set);
    if (inside && n->where) {
        add(s, " AND ");
        expression(&w, THIS, n->where);
    }
}

void sql_set_waiting(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = writer_for(s, d, p);
    count_of(s, d, p->root.table);
    in_own_set(s, d, THIS, &p->root);
    add(s, " AND NOT (");
    expression(&w, THIS, p->free_);
    add(s, ")");
}

void sql_delete_set(struct stmt *s, const struct dialect *d, const struct node *n)
{
    delete_from(s, d, n->table);
    in_own_set(s, d, THIS, n);
}

void sql_delete_leaves(struct stmt *s, const struct dialect *d, const struct node *n)
{
    struct writer w = {.s = s, .d = d};
    sql_delete_set(s, d, n);
    for (size_t i = 0; i < n->n_grow; i++) {
        char row[ALIAS_SIZE];
        add(s, " AND NOT EXISTS (SELECT 1");
        from(s, d, n->table, new_alias(&w, row));
        add(s, " WHERE ");
        join_columns(&w, &n->grow[i], row, THIS);
        add(s, ")");
    }
}

void sql_set_left(struct stmt *s, const struct dialect *d, const struct node *n)
{
    count_of(s, d, n->table);
    in_own_set(s, d, THIS, n);
}

/* --- reading
 * ---------------------------------------------------------------------------------------------------- */

/* Is any group of a cap larger than what stays of it? Counting sorts nothing. */
static void over_cap(struct writer *w, const struct plan *p)
{
    const struct ranking *r = p->beyond->ranking;
    struct stmt *s = w->s;
    add(s, "SELECT 1");
    from(s, w->d, p->root.table, THIS);
    add(s, "\nWHERE ");
    expression(w, THIS, p->matches);
    if (r->n_per) {
        add(s, "\nGROUP BY ");
        columns(s, w->d, THIS, r->per, r->n_per);
        add(s, " HAVING count(*) > ");
        sql_bind_integer(s, w->d, r->rows);
    }
    add(s, "\nLIMIT 1");
    if (!r->n_per) {
        add(s, " OFFSET ");
        sql_bind_integer(s, w->d, r->rows);
    }
}

void sql_probe(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = writer_for(s, d, p);
    if (p->policy->cap) {
        over_cap(&w, p);
        return;
    }
    add(s, "SELECT 1");
    from(s, d, p->root.table, THIS);
    add(s, "\nWHERE ");
    expression(&w, THIS, p->beyond ? p->aged : p->due);
    if (p->beyond) {
        add(s, " AND ");
        expression(&w, THIS, p->matches);
    }
    in_order(s, d, p);
    add(s, "\nLIMIT 1");
}

void sql_size(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    stmt_clear(s);
    add(s, "SELECT count(*)");
    from(s, d, p->root.table, THIS);
}

void sql_remaining(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t most)
{
    struct writer w = writer_for(s, d, p);
    add(s, "SELECT count(*) FROM (SELECT 1");
    from(s, d, p->root.table, THIS);
    add(s, "\nWHERE ");
    expression(&w, THIS, p->due);
    in_order(s, d, p);
    add(s, "\nLIMIT ");
    sql_bind_integer(s, d, most);
    add(s, ") AS lapse_rows");
}

static void names_of_set(struct stmt *s, int set, size_t n, bool time)
{
    text_addf(&s->sql, "lapse_set_%d(", set);
    for (size_t i = 0; i < n; i++)
        text_addf(&s->sql, "%sc%zu", i ? ", " : "", i);
    add(s, time ? ", t)" : ")");
}

/* (alias.a, alias.b) IN (SELECT c0, c1 FROM lapse_set_N) */
static void within(struct stmt *s, const struct dialect *d, const char *alias,
                   const struct column *const *list, size_t n, const struct node *set,
                   const struct column *const *targets)
{
    add(s, n > 1 ? "(" : "");
    columns(s, d, alias, list, n);
    add(s, n > 1 ? ") IN (SELECT " : " IN (SELECT ");
    for (size_t i = 0; i < n; i++)
        text_addf(&s->sql, "%sc%zu", i ? ", " : "", carried_at(set, targets[i]));
    text_addf(&s->sql, " FROM lapse_set_%d)", set->set);
}

/* The walk down inside the table, as the recursive half of a set. */
static void grown(struct writer *w, const struct node *n)
{
    char row[ALIAS_SIZE];
    struct stmt *s = w->s;
    new_alias(w, row);
    add(s, "\nUNION SELECT ");
    columns(s, w->d, row, n->carry, n->n_carry);
    from(s, w->d, n->table, row);
    text_addf(&s->sql, " JOIN lapse_set_%d AS lapse_up ON ", n->set);
    for (size_t g = 0; g < n->n_grow; g++) {
        const struct join *j = &n->grow[g];
        add(s, g ? " OR (" : "(");
        for (size_t i = 0; i < j->n; i++) {
            add(s, i ? " AND " : "");
            sql_column(s, w->d, row, j->child[i]);
            text_addf(&s->sql, " = lapse_up.c%zu", carried_at(n, j->parent[i]));
        }
        add(s, ")");
    }
}

static void time_of_row(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    if (!p->n_times)
        add(s, "NULL");
    else if (p->n_times == 1)
        d->time_value(s, THIS, &p->times[0]);
    else
        d->latest(s, THIS, p->times, p->n_times);
}

void sql_backlog(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t most)
{
    struct writer w = writer_for(s, d, p);
    add(s, "SELECT count(*), min(t) FROM (SELECT ");
    time_of_row(s, d, p);
    add(s, " AS t");
    from(s, d, p->root.table, THIS);
    add(s, "\nWHERE ");
    expression(&w, THIS, p->due);
    in_order(s, d, p);
    add(s, "\nLIMIT ");
    sql_bind_integer(s, d, most);
    add(s, ") AS lapse_rows");
}

static void root_sets(struct writer *w, const struct plan *p)
{
    struct stmt *s = w->s;
    const struct node *root = &p->root;
    add(s, "lapse_due");
    add(s, "(");
    for (size_t i = 0; i < root->n_carry; i++)
        text_addf(&s->sql, "c%zu, ", i);
    add(s, "t) AS (SELECT ");
    columns(s, w->d, THIS, root->carry, root->n_carry);
    add(s, ", ");
    time_of_row(s, w->d, p);
    from(s, w->d, root->table, THIS);
    add(s, " WHERE ");
    expression(w, THIS, p->due);
    add(s, "),\n");
    names_of_set(s, 0, root->n_carry, false);
    add(s, " AS (SELECT ");
    for (size_t i = 0; i < root->n_carry; i++)
        text_addf(&s->sql, "%sc%zu", i ? ", " : "", i);
    add(s, " FROM lapse_due");
    if (root->n_grow)
        grown(w, root);
    add(s, ")");
}

static void kid_sets(struct writer *w, const struct node *parent)
{
    for (size_t i = 0; i < parent->n_kids; i++) {
        const struct node *n = &parent->kids[i];
        if (n->set < 0)
            continue;
        add(w->s, ",\n");
        names_of_set(w->s, n->set, n->n_carry, false);
        add(w->s, " AS (SELECT ");
        columns(w->s, w->d, THIS, n->carry, n->n_carry);
        from(w->s, w->d, n->table, THIS);
        add(w->s, " WHERE ");
        within(w->s, w->d, THIS, n->join.child, n->join.n, parent, n->join.parent);
        if (n->n_grow)
            grown(w, n);
        add(w->s, ")");
        kid_sets(w, n);
    }
}

void sql_of_node(struct writer *w, const struct node *n, const struct node *parent)
{
    const struct table *t = n->table;
    if (n->set >= 0)
        within(w->s, w->d, THIS, t->key, t->n_key, n, t->key);
    else
        within(w->s, w->d, THIS, n->join.child, n->join.n, parent, n->join.parent);
}

void sql_sets(struct writer *w, const struct plan *p)
{
    add(w->s, "WITH RECURSIVE ");
    root_sets(w, p);
    kid_sets(w, &p->root);
}

/* "this row of table t goes": an OR over every node of that table. Returns whether anything was written. */
static bool goes(struct writer *w, const struct node *n, const struct node *parent, const struct table *t,
                 bool begun)
{
    if (n->table == t) {
        add(w->s, begun ? " OR " : "");
        sql_of_node(w, n, parent);
        begun = true;
    }
    for (size_t i = 0; i < n->n_kids; i++)
        begun = goes(w, &n->kids[i], n, t, begun);
    return begun;
}

static bool same_reference(const struct detachment *a, const struct detachment *b)
{
    if (a->table != b->table || a->join.n != b->join.n)
        return false;
    for (size_t i = 0; i < a->join.n; i++) {
        size_t j = 0;
        while (j < b->join.n && b->join.child[j] != a->join.child[i])
            j++;
        if (j == b->join.n)
            return false;
    }
    return true;
}

static const struct detachment *first_of(const struct node *n, const struct detachment *t)
{
    const struct detachment *found = NULL;
    for (size_t i = 0; i < n->n_detach; i++)
        if (same_reference(&n->detach[i], t))
            return &n->detach[i];
    for (size_t i = 0; !found && i < n->n_kids; i++)
        found = first_of(&n->kids[i], t);
    return found;
}

/* "this row refers to one that goes": an OR over every node that detaches this reference. */
static bool loses_reference(struct writer *w, const struct node *n, const struct detachment *t, bool begun)
{
    for (size_t i = 0; i < n->n_detach; i++) {
        const struct join *j = &n->detach[i].join;
        if (!same_reference(&n->detach[i], t))
            continue;
        add(w->s, begun ? " OR " : "");
        within(w->s, w->d, THIS, j->child, j->n, n, j->parent);
        begun = true;
    }
    for (size_t i = 0; i < n->n_kids; i++)
        begun = loses_reference(w, &n->kids[i], t, begun);
    return begun;
}

/* References to be emptied: one count per reference, since a row may lose several; one for all the ways that
 * lead to it, since it is emptied once. */
static bool detached(struct writer *w, const struct plan *p, const struct node *n, const struct table *t,
                     bool begun)
{
    for (size_t i = 0; i < n->n_detach; i++) {
        if (n->detach[i].table != t || first_of(&p->root, &n->detach[i]) != &n->detach[i])
            continue;
        add(w->s, begun ? " + (SELECT count(*)" : "(SELECT count(*)");
        from(w->s, w->d, t, THIS);
        add(w->s, " WHERE (");
        loses_reference(w, &p->root, &n->detach[i], false);
        add(w->s, ")");
        if (plan_loses(p, t)) {
            add(w->s, " AND (");
            goes(w, &p->root, NULL, t, false);
            add(w->s, ") IS NOT TRUE");
        }
        add(w->s, ")");
        begun = true;
    }
    for (size_t i = 0; i < n->n_kids; i++)
        begun = detached(w, p, &n->kids[i], t, begun);
    return begun;
}

void sql_count(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = writer_for(s, d, p);
    sql_sets(&w, p);
    add(s, "\nSELECT ");
    for (size_t i = 0; i < p->n_slots; i++) {
        add(s, "(SELECT count(*)");
        from(s, d, p->slots[i], THIS);
        add(s, " WHERE ");
        goes(&w, &p->root, NULL, p->slots[i], false);
        add(s, "),\n");
    }
    for (size_t i = 0; i < p->n_detach_slots; i++) {
        detached(&w, p, &p->root, p->detach_slots[i], false);
        add(s, ",\n");
    }
    add(s, "(SELECT min(t) FROM lapse_due), (SELECT max(t) FROM lapse_due)");
}

static void filter(struct stmt *s)
{
    add(s, "count(*) FILTER (WHERE ");
}

/* Rows that have reached the bound, old enough and, for orphans, without a source, but are kept by `by`: what
 * must be true of a row that goes. A count of its own, since a condition that looks at other rows is a join
 * in a WHERE, but in a FILTER may be asked of every row anew. NULL: nothing keeps any. */
static void count_kept(struct writer *w, const struct plan *p, const struct expr *and, const struct expr *by)
{
    const struct expr *all[] = {p->matches, p->timely, p->orphaned, and};
    if (!by) {
        add(w->s, "0");
        return;
    }
    add(w->s, "(SELECT count(*)");
    from(w->s, w->d, p->root.table, THIS);
    add(w->s, " WHERE ");
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (!all[i])
            continue;
        expression(w, THIS, all[i]);
        add(w->s, " AND ");
    }
    add(w->s, "NOT (");
    expression(w, THIS, by);
    add(w->s, "))");
}

void sql_kept(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = writer_for(s, d, p);
    add(s, "SELECT ");
    filter(s);
    add(s, p->n_times ? "" : "FALSE");
    for (size_t i = 0; i < p->n_times; i++) {
        add(s, i ? " AND " : "");
        sql_column(s, d, THIS, p->times[i].column);
        add(s, " IS NULL");
    }
    add(s, "),\n");
    filter(s);
    add(s, p->n_times ? "NOT (" : "NOT (TRUE");
    for (size_t i = 0; i < p->n_times; i++) {
        add(s, i ? " AND " : "");
        d->time_readable(s, THIS, &p->times[i]);
    }
    add(s, ")),\n");
    count_kept(&w, p, NULL, p->hold);
    add(s, ",\n");
    count_kept(&w, p, p->hold, p->free_);
    add(s, "\n");
    from(s, d, p->root.table, THIS);
    add(s, " WHERE ");
    expression(&w, THIS, p->matches);
}

void sql_sample(struct stmt *s, const struct dialect *d, const struct plan *p, const struct column *c,
                int64_t most)
{
    struct writer w = writer_for(s, d, p);
    add(s, "SELECT ");
    sql_column(s, d, THIS, c);
    from(s, d, p->root.table, THIS);
    add(s, " WHERE ");
    sql_column(s, d, THIS, c);
    add(s, " IS NOT NULL AND ");
    expression(&w, THIS, p->matches);
    add(s, " LIMIT ");
    sql_bind_integer(s, d, most);
}

void sql_alone(struct stmt *s, const struct dialect *d, const struct plan *p, const struct table *t,
               const struct expr *x)
{
    char row[ALIAS_SIZE];
    struct writer w = writer_for(s, d, p);
    new_alias(&w, row);
    add(s, "SELECT 1");
    from(s, d, t, row);
    add(s, " WHERE ");
    expression(&w, row, x);
}

void sql_try(struct stmt *s, const struct dialect *d, const struct plan *p, const struct table *t,
             const struct expr *x)
{
    char row[ALIAS_SIZE];
    struct writer w = writer_for(s, d, p);
    new_alias(&w, row);
    add(s, "SELECT ");
    expression(&w, row, x);
    from(s, d, t, row);
    add(s, " LIMIT 1");
}

void sql_has(struct stmt *s, const struct dialect *d, const struct table *t, const struct expr *is)
{
    stmt_clear(s);
    struct writer w = {.s = s, .d = d};
    add(s, "SELECT 1");
    from(s, d, t, THIS);
    add(s, " WHERE ");
    expression(&w, THIS, is);
    add(s, " LIMIT 1");
}

/* --- lent to other files
 * ------------------------------------------------------------------------------------------- */

struct writer sql_writer(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    return writer_for(s, d, p);
}

const char *sql_alias(struct writer *w, char buf[ALIAS_SIZE])
{
    return new_alias(w, buf);
}

void sql_from(struct writer *w, const struct table *t, const char *alias)
{
    from(w->s, w->d, t, alias);
}

void sql_expression(struct writer *w, const char *alias, const struct expr *x)
{
    expression(w, alias, x);
}

void sql_join(struct writer *w, const struct join *j, const char *child, const char *parent)
{
    join_columns(w, j, child, parent);
}

void sql_newest_first(struct writer *w, const char *alias, const struct expr *x)
{
    newest_first(w, alias, x);
}
