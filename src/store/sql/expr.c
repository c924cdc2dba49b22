/* expr: conditions. See sql.h. */
#include "store/sql/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sql_alike(const struct dialect *d, const struct column *a, const struct column *b)
{
    return a == b || !d->alike || d->alike(a, b);
}

/* alias.column, to be written by a dialect; under another name, if one is given. The caller frees it. */
static char *column_text(const struct dialect *d, const char *operators, const char *alias,
                         const struct column *c, const char *as)
{
    AUTO(stmt_release) struct stmt s = {0};
    if (as)
        text_addf(&s.sql, "%s.%s", alias, as);
    else
        sql_column(&s, d, alias, c);
    sql_add_type(&s, d, operators, c);
    return mem_strdup(text_str(&s.sql));
}

/* A column of `child` against one of `parent`, which may stand there under another name. */
void sql_equal(struct writer *w, const char *child, const struct column *c, const char *parent,
               const struct column *p, const char *as)
{
    const char *operators = sql_operators(w->d, c, p);
    AUTO(mem_free_p) char *a = column_text(w->d, operators, child, c, NULL);
    AUTO(mem_free_p) char *b = column_text(w->d, operators, parent, p, as);
    if (!sql_alike(w->d, c, p)) {
        w->d->equal(w->s, a, c, b, p, !w->keeps);
        return;
    }
    sql_add(w->s, a);
    sql_operator(w->s, operators, "=");
    sql_add(w->s, b);
}

void sql_join(struct writer *w, const struct join *j, const char *child, const char *parent)
{
    for (size_t i = 0; i < j->n; i++) {
        sql_add(w->s, i ? " AND " : "");
        sql_equal(w, child, j->child[i], parent, j->parent[i], NULL);
    }
}

void sql_in_select(struct stmt *s, const struct dialect *d, const char *operators, const char *alias,
                   const struct column *const *list, size_t n)
{
    sql_add(s, n > 1 ? "(" : "");
    sql_operands(s, d, operators, alias, list, n);
    sql_add(s, n > 1 ? ")" : "");
    if (operators)
        sql_operator(s, operators, "=");
    sql_add(s, operators ? "ANY(" : " IN (");
}

static void kids(struct writer *w, const char *alias, const struct expr *x, const char *between)
{
    sql_add(w->s, "(");
    for (size_t i = 0; i < x->n_kids; i++) {
        sql_add(w->s, i ? between : "");
        sql_expression(w, alias, x->kids[i]);
    }
    sql_add(w->s, ")");
}

/* IN would look for = on the search path; an array of the values does not, and is what IN becomes. */
static void compare_values(struct writer *w, const char *alias, const struct expr *x, bool in)
{
    const struct dialect *d = w->d;
    if (x->n_values == 1) {
        sql_compared(w->s, d, alias, x->column, in ? CMP_EQ : CMP_NE);
        sql_bind(w->s, d, x->values[0], x->column->sql_type);
        return;
    }
    if (d->catalog) {
        sql_compared(w->s, d, alias, x->column, in ? CMP_EQ : CMP_NE);
        sql_add(w->s, in ? "ANY(ARRAY[" : "ALL(ARRAY[");
    } else {
        sql_column(w->s, d, alias, x->column);
        sql_add(w->s, in ? " IN (" : " NOT IN (");
    }
    for (size_t i = 0; i < x->n_values; i++) {
        sql_add(w->s, i ? ", " : "");
        sql_bind(w->s, d, x->values[i], x->column->sql_type);
    }
    sql_add(w->s, d->catalog ? "])" : ")");
}

/* Whether the column is one of the values, or none of them. A column may find texts equal that are not: then
 * a row goes only where they are the same, and stays also where they are merely equal. */
static void value_list(struct writer *w, const char *alias, const struct expr *x, bool in)
{
    bool exact = x->equality == EQUALITY_SAFE ? in != w->keeps : x->equality == EQUALITY_EXACT;
    if (!exact || !sql_folds(x->column)) {
        compare_values(w, alias, x, in);
        return;
    }
    sql_add(w->s, in ? "(" : "NOT (");
    compare_values(w, alias, x, true);
    w->d->exactly(w->s, alias, x->column, x->values, x->n_values);
    sql_add(w->s, ")");
}

/* As it is written; where that keeps a row, also in another case, if that does not count for the column. */
static void pattern(struct writer *w, const char *alias, const struct expr *x)
{
    const char *text = x->values[0].text;
    bool loosely = w->keeps && x->equality != EQUALITY_EXACT && x->column->folds;
    sql_add(w->s, loosely ? "(" : "");
    if (x->kind == EXPR_LIKE)
        w->d->like(w->s, alias, x->column, text);
    else
        w->d->prefix(w->s, alias, x->column, text);
    if (!loosely)
        return;
    AUTO(text_release) struct text like = {0};
    for (const char *p = text; *p; p++)
        text_addf(&like, "%s%c", x->kind == EXPR_PREFIX && strchr("\\%_", *p) ? "\\" : "", *p);
    text_add(&like, x->kind == EXPR_PREFIX ? "%" : "");
    sql_add(w->s, " OR ");
    w->d->like_folded(w->s, alias, x->column, text_str(&like));
    sql_add(w->s, ")");
}

/* Before and after. Of numbers and texts in one column one kind comes before the other; that lets no row go. */
static void in_order(struct writer *w, const char *alias, const struct expr *x)
{
    bool of_kind = w->d->is_of_kind && !w->keeps;
    sql_add(w->s, of_kind ? "(" : "");
    sql_compared(w->s, w->d, alias, x->column, x->cmp);
    sql_bind(w->s, w->d, x->values[0], x->column->sql_type);
    if (!of_kind)
        return;
    w->d->is_of_kind(w->s, alias, x->column, &x->values[0]);
    sql_add(w->s, ")");
}

static void exists(struct writer *w, const char *alias, const struct expr *x)
{
    char row[ALIAS_SIZE];
    sql_alias(w, row);
    sql_add(w->s, "EXISTS (SELECT 1");
    sql_from_table(w->s, w->d, x->table, row);
    sql_add(w->s, x->joins[0].n ? " WHERE " : "");
    sql_join(w, &x->joins[0], row, alias);
    if (x->n_kids) {
        sql_add(w->s, x->joins[0].n ? " AND " : " WHERE ");
        sql_expression(w, row, x->kids[0]);
    }
    sql_add(w->s, ")");
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

/* The columns of a walk down a tree under a prefix of their own, as they are listed or under an alias. */
static void tree_names(struct writer *w, const struct column *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sql_add(w->s, i ? ", " : "");
        sql_name(w->s, w->d, list[i]->name);
    }
}

/* "child JOIN tree": by any of the ways down. */
static void tree_down(struct writer *w, const struct expr *x, const char *child, const char *tree)
{
    sql_from_table(w->s, w->d, x->table, child);
    text_addf(&w->s->sql, " JOIN %s ON ", tree);
    for (size_t j = 0; j < x->n_joins; j++) {
        sql_add(w->s, j ? " OR (" : "(");
        sql_join(w, &x->joins[j], child, tree);
        sql_add(w->s, ")");
    }
}

/* "tree JOIN row WHERE …": the rows of the tree for which the condition is true. */
static void tree_rows(struct writer *w, const struct expr *x, const char *tree, const char *row)
{
    text_addf(&w->s->sql, " FROM %s JOIN ", tree);
    sql_table(w->s, w->d, x->table);
    text_addf(&w->s->sql, " AS %s ON ", row);
    sql_join(w, &(struct join){x->table->key, x->table->key, x->table->n_key}, row, tree);
    sql_add(w->s, " WHERE ");
    sql_expression(w, row, x->kids[0]);
}

/* This row, its children, theirs, … : UNION drops rows already found, so a cycle ends. */
static void subtree_below(struct writer *w, const char *alias, const struct expr *x,
                          const struct column *const *list, size_t n)
{
    char tree[ALIAS_SIZE], child[ALIAS_SIZE], row[ALIAS_SIZE];
    sql_alias(w, tree);
    sql_alias(w, child);
    sql_alias(w, row);
    text_addf(&w->s->sql, "EXISTS (WITH RECURSIVE %s(", tree);
    tree_names(w, list, n);
    sql_add(w->s, ") AS (SELECT ");
    sql_columns(w->s, w->d, alias, list, n);
    sql_add(w->s, " UNION SELECT ");
    sql_columns(w->s, w->d, child, list, n);
    tree_down(w, x, child, tree);
    sql_add(w->s, ") SELECT 1");
    tree_rows(w, x, tree, row);
    sql_add(w->s, ")");
}

/* The rows that may be asked about: those picked, else those that look due by what they say themselves. */
static void tree_roots(struct writer *w, const char *root, const struct expr *x)
{
    const struct expr *own[] = {w->plan->aged, w->plan->matches};
    bool keeps = w->keeps;
    sql_from_table(w->s, w->d, x->table, root);
    sql_add(w->s, " WHERE TRUE");
    if (w->picked) {
        sql_add(w->s, " AND ");
        sql_in_own_set(w->s, w->d, root, w->picked);
    }
    w->keeps = false;
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (!own[i])
            continue;
        sql_add(w->s, " AND ");
        sql_expression(w, root, own[i]);
    }
    w->keeps = keeps;
}

/* The same where the recursion does not see the row outside: every row of the tree remembers the key of the
 * root that led to it, and this row is one of those roots. */
static void subtree_apart(struct writer *w, const char *alias, const struct expr *x,
                          const struct column *const *list, size_t n)
{
    char tree[ALIAS_SIZE], child[ALIAS_SIZE], row[ALIAS_SIZE], root[ALIAS_SIZE];
    const struct table *t = x->table;
    struct stmt *s = w->s;
    sql_alias(w, tree);
    sql_alias(w, child);
    sql_alias(w, row);
    sql_alias(w, root);
    sql_add(s, t->n_key > 1 ? "(" : "");
    sql_columns(s, w->d, alias, t->key, t->n_key);
    text_addf(&s->sql, "%s IN (WITH RECURSIVE %s(", t->n_key > 1 ? ")" : "", tree);
    for (size_t i = 0; i < t->n_key; i++)
        text_addf(&s->sql, "lapse_root_%zu, ", i);
    tree_names(w, list, n);
    sql_add(s, ") AS (SELECT ");
    sql_columns(s, w->d, root, t->key, t->n_key);
    sql_add(s, ", ");
    sql_columns(s, w->d, root, list, n);
    tree_roots(w, root, x);
    sql_add(s, " UNION SELECT ");
    for (size_t i = 0; i < t->n_key; i++)
        text_addf(&s->sql, "%s.lapse_root_%zu, ", tree, i);
    sql_columns(s, w->d, child, list, n);
    tree_down(w, x, child, tree);
    sql_add(s, ") SELECT ");
    for (size_t i = 0; i < t->n_key; i++)
        text_addf(&s->sql, "%s%s.lapse_root_%zu", i ? ", " : "", tree, i);
    tree_rows(w, x, tree, row);
    sql_add(s, ")");
}

/* The columns a walk up needs: the key, and what refers to the row above. */
static size_t up_columns(const struct expr *x, const struct column **ret)
{
    struct join *turned = mem_alloc(x->n_joins * sizeof(*turned));
    for (size_t j = 0; j < x->n_joins; j++)
        turned[j] = (struct join){x->joins[j].parent, x->joins[j].child, x->joins[j].n};
    struct expr up = *x;
    up.joins = turned;
    size_t n = tree_columns(&up, ret);
    free(turned);
    return n;
}

/* The same for rows of a table that is not swept itself, of which any may be asked about: the rows for which
 * the condition is true, and all that lie above them; this row is one of those. */
static void subtree_upwards(struct writer *w, const char *alias, const struct expr *x,
                            const struct column **list)
{
    char tree[ALIAS_SIZE], above[ALIAS_SIZE], row[ALIAS_SIZE];
    const struct table *t = x->table;
    struct stmt *s = w->s;
    size_t n = up_columns(x, list);
    sql_alias(w, tree);
    sql_alias(w, above);
    sql_alias(w, row);
    sql_add(s, t->n_key > 1 ? "(" : "");
    sql_columns(s, w->d, alias, t->key, t->n_key);
    text_addf(&s->sql, "%s IN (WITH RECURSIVE %s(", t->n_key > 1 ? ")" : "", tree);
    tree_names(w, list, n);
    sql_add(s, ") AS (SELECT ");
    sql_columns(s, w->d, row, list, n);
    sql_from_table(s, w->d, t, row);
    sql_add(s, " WHERE ");
    sql_expression(w, row, x->kids[0]);
    sql_add(s, " UNION SELECT ");
    sql_columns(s, w->d, above, list, n);
    sql_from_table(s, w->d, t, above);
    text_addf(&s->sql, " JOIN %s ON ", tree);
    for (size_t j = 0; j < x->n_joins; j++) {
        sql_add(s, j ? " OR (" : "(");
        sql_join(w, &x->joins[j], tree, above);
        sql_add(s, ")");
    }
    sql_add(s, ") SELECT ");
    sql_columns(s, w->d, tree, t->key, t->n_key);
    text_addf(&s->sql, " FROM %s)", tree);
}

static void subtree_exists(struct writer *w, const char *alias, const struct expr *x)
{
    size_t most = x->table->n_key;
    for (size_t j = 0; j < x->n_joins; j++)
        most += x->joins[j].n;
    AUTO(mem_free_p) const struct column **list = mem_alloc(most * sizeof(*list));
    size_t n = tree_columns(x, list);
    bool swept = w->plan && x->table == w->plan->root.table && strcmp(alias, THIS) == 0;
    if (w->d->recursion_apart && swept)
        subtree_apart(w, alias, x, list, n);
    else if (w->d->recursion_apart)
        subtree_upwards(w, alias, x, list);
    else
        subtree_below(w, alias, x, list, n);
}

/* Newest first, the key last. */
void sql_newest_first(struct writer *w, const char *row, const struct expr *x)
{
    const struct ranking *r = x->ranking;
    sql_add(w->s, " ORDER BY ");
    for (size_t i = 0; i < r->n_newest; i++) {
        const struct newest_column *c = &r->newest[i];
        if (c->time)
            w->d->time_value(w->s, row, c->time);
        else
            sql_column(w->s, w->d, row, c->column);
        text_addf(&w->s->sql, " DESC%s, ", c->time || !c->column->not_null ? w->d->nulls_last : "");
    }
    for (size_t i = 0; i < x->table->n_key; i++) {
        sql_add(w->s, i ? ", " : "");
        sql_column(w->s, w->d, row, x->table->key[i]);
        sql_add(w->s, " DESC");
    }
}

/* The same order as a row to compare: of columns that the engine's own operators compare. */
static void rank_columns(struct writer *w, const char *row, const struct expr *x)
{
    for (size_t i = 0; i < x->ranking->n_newest; i++) {
        sql_column(w->s, w->d, row, x->ranking->newest[i].column);
        sql_add(w->s, ", ");
    }
    sql_columns(w->s, w->d, row, x->table->key, x->table->n_key);
}

/* Only the groups of the rows picked: a group that is looked at is looked at whole, others do not matter. */
static void groups_of_picked(struct writer *w, const char *row, const struct ranking *r)
{
    for (size_t i = 0; i < r->n_per; i++) {
        const struct column *c = r->per[i];
        size_t at = sql_carried_at(w->picked, c);
        if (at == w->picked->n_carry)
            continue;
        sql_add(w->s, " AND (");
        w->d->in_set(w->s, row, &c, 1, w->picked->set, &at, &c);
        if (!c->not_null) {
            sql_add(w->s, " OR ");
            sql_column(w->s, w->d, row, c);
            sql_add(w->s, sql_is_null(w->d));
        }
        sql_add(w->s, ")");
    }
}

/* "(PARTITION BY a, b": rows are of one group where their values are the same, whatever else the column takes
 * for equal: to be one of a group lets a row go. */
static void partition(struct writer *w, const char *row, const struct ranking *r)
{
    sql_add(w->s, "(PARTITION BY ");
    sql_columns(w->s, w->d, row, r->per, r->n_per);
    for (size_t i = 0; i < r->n_per; i++) {
        if (!sql_folds(r->per[i]))
            continue;
        sql_add(w->s, ", ");
        w->d->bytes(w->s, row, r->per[i]);
    }
}

/* The keys of all rows numbered beyond so many in their group. */
static void numbered_beyond(struct writer *w, const char *alias, const struct expr *x)
{
    char row[ALIAS_SIZE], list[ALIAS_SIZE];
    struct stmt *s = w->s;
    const struct table *t = x->table;
    sql_alias(w, row);
    sql_alias(w, list);
    sql_add(s, "SELECT ");
    sql_columns(s, w->d, list, t->key, t->n_key);
    sql_add(s, " FROM (SELECT ");
    sql_columns(s, w->d, row, t->key, t->n_key);
    sql_add(s, ", ");
    sql_builtin(s, w->d, "row_number() OVER ");
    partition(w, row, x->ranking);
    sql_newest_first(w, row, x);
    sql_add(s, ") AS lapse_n");
    sql_from_table(s, w->d, t, row);
    sql_add(s, " WHERE ");
    sql_expression(w, row, x->kids[0]);
    if (w->picked && strcmp(alias, THIS) == 0)
        groups_of_picked(w, row, x->ranking);
    text_addf(&s->sql, ") AS %s WHERE %s.lapse_n", list, list);
    sql_sign(s, w->d, ">");
    sql_bind_integer(s, w->d, x->ranking->rows);
}

/* The keys of the newest rows of all. */
static void newest_of_all(struct writer *w, const struct expr *x)
{
    char row[ALIAS_SIZE];
    struct stmt *s = w->s;
    sql_alias(w, row);
    sql_add(s, "SELECT ");
    sql_columns(s, w->d, row, x->table->key, x->table->n_key);
    sql_from_table(s, w->d, x->table, row);
    sql_add(s, " WHERE ");
    sql_expression(w, row, x->kids[0]);
    sql_newest_first(w, row, x);
    sql_add(s, " LIMIT ");
    sql_bind_integer(s, w->d, x->ranking->rows);
}

/* Older than the last of the newest. Where nothing is NULL that is one comparison with one row, which an
 * index on the order finds without the table; with fewer rows than stay there is no such row, and nothing is
 * older. */
static void beyond_last(struct writer *w, const char *alias, const struct expr *x, const char *row)
{
    struct stmt *s = w->s;
    const struct table *t = x->table;
    sql_add(s, "(");
    rank_columns(w, alias, x);
    sql_add(s, ")");
    sql_sign(s, w->d, "<");
    sql_add(s, "(SELECT ");
    rank_columns(w, row, x);
    sql_from_table(s, w->d, t, row);
    sql_add(s, " WHERE ");
    sql_expression(w, row, x->kids[0]);
    sql_newest_first(w, row, x);
    sql_add(s, " LIMIT 1 OFFSET ");
    sql_bind_integer(s, w->d, x->ranking->rows - 1);
    sql_add(s, ")");
}

/* In groups: the row is one of those beyond. Else it is not in the short list of the newest; NOT IN would
 * search a list beyond PostgreSQL's work_mem from its beginning for every row. Either is worked out once:
 * where few rows are expected outside, an engine would do it again for each of them. */
static void beyond_newest(struct writer *w, const char *alias, const struct expr *x)
{
    char found[ALIAS_SIZE], list[ALIAS_SIZE];
    struct stmt *s = w->s;
    const struct table *t = x->table;
    bool grouped = x->ranking->n_per > 0, listed = false;
    const char *operators = NULL;
    sql_alias(w, found);
    sql_alias(w, list);
    if (x->ranking->plain && !grouped) {
        beyond_last(w, alias, x, found);
        return;
    }
    listed = grouped && sql_operators_of_row(w->d, t->key, t->key, t->n_key, &operators);
    if (listed)
        sql_in_select(s, w->d, operators, alias, t->key, t->n_key);
    else
        sql_add(s, grouped ? "EXISTS (SELECT 1 FROM (" : "NOT EXISTS (SELECT 1 FROM (");
    text_addf(&s->sql, "WITH %s%s(", found, w->d->once);
    if (grouped)
        numbered_beyond(w, alias, x);
    else
        newest_of_all(w, x);
    sql_add(s, ") SELECT ");
    sql_columns(s, w->d, found, t->key, t->n_key);
    text_addf(&s->sql, " FROM %s)", found);
    if (listed)
        return;
    text_addf(&s->sql, " AS %s WHERE ", list);
    sql_join(w, &(struct join){t->key, t->key, t->n_key}, list, alias);
    sql_add(s, ")");
}

static void not_true(struct writer *w, const char *alias, const struct expr *x)
{
    if (x->kids[0]->kind == EXPR_EXISTS) { /* never unknown; so written, it can become an anti-join */
        sql_add(w->s, "NOT ");
        exists(w, alias, x->kids[0]);
        return;
    }
    kids(w, alias, x, "");
    sql_add(w->s, " IS NOT TRUE");
}

void sql_expression(struct writer *w, const char *alias, const struct expr *x)
{
    struct stmt *s = w->s;
    const struct dialect *d = w->d;
    struct err ignored = ERR_INIT;
    switch (x->kind) {
    case EXPR_TRUE:
        sql_add(s, "TRUE");
        break;
    case EXPR_FALSE:
        sql_add(s, "FALSE");
        break;
    case EXPR_AND:
        kids(w, alias, x, " AND ");
        break;
    case EXPR_OR:
        kids(w, alias, x, " OR ");
        break;
    case EXPR_NOT_TRUE:
        w->keeps = !w->keeps;
        not_true(w, alias, x);
        w->keeps = !w->keeps;
        break;
    case EXPR_IS_NULL:
    case EXPR_NOT_NULL:
        sql_column(s, d, alias, x->column);
        sql_add(s, x->kind == EXPR_IS_NULL ? sql_is_null(d) : " IS NOT NULL");
        break;
    case EXPR_COMPARE:
        if (x->cmp == CMP_EQ || x->cmp == CMP_NE)
            value_list(w, alias, x, x->cmp == CMP_EQ);
        else
            in_order(w, alias, x);
        break;
    case EXPR_IN:
    case EXPR_NOT_IN:
        value_list(w, alias, x, x->kind == EXPR_IN);
        break;
    case EXPR_LIKE:
    case EXPR_PREFIX:
        pattern(w, alias, x);
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
        sql_add(s, "(");
        if (sql_condition(s, d, alias, x->sql, w->now, &ignored) < 0)
            sql_add(s, "this condition was refused");
        sql_add(s, ")");
        break;
    }
}
