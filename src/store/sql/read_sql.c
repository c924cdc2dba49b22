/* read_sql: statements that read: probes, counts, samples. See sql.h. */
#include "store/sql/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is any group of a cap larger than what stays of it? Counting sorts nothing. */
static void over_cap(struct writer *w, const struct plan *p)
{
    const struct ranking *r = p->beyond->ranking;
    struct stmt *s = w->s;
    sql_add(s, "SELECT 1");
    sql_from_table(s, w->d, p->root.table, THIS);
    sql_add(s, "\nWHERE ");
    sql_expression(w, THIS, p->matches);
    if (r->n_per) {
        sql_add(s, "\nGROUP BY ");
        sql_columns(s, w->d, THIS, r->per, r->n_per);
        sql_add(s, " HAVING ");
        sql_builtin(s, w->d, "count(*)");
        sql_sign(s, w->d, ">");
        sql_bind_integer(s, w->d, r->rows);
    }
    sql_add(s, "\nLIMIT 1");
    if (!r->n_per) {
        sql_add(s, " OFFSET ");
        sql_bind_integer(s, w->d, r->rows);
    }
}

void sql_probe(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = sql_writer(s, d, p);
    if (p->policy->cap) {
        over_cap(&w, p);
        return;
    }
    sql_add(s, "SELECT 1");
    sql_from_table(s, d, p->root.table, THIS);
    sql_add(s, "\nWHERE ");
    sql_expression(&w, THIS, p->beyond ? p->aged : p->due);
    if (p->beyond) {
        sql_add(s, " AND ");
        sql_expression(&w, THIS, p->matches);
    }
    sql_in_order(s, d, p);
    sql_add(s, "\nLIMIT 1");
}

void sql_size(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    stmt_clear(s);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*)");
    sql_from_table(s, d, p->root.table, THIS);
}

/* The end of a SELECT FROM (SELECT …: of the first due rows, at most so many. */
static void due_rows(struct writer *w, const struct plan *p, int64_t most)
{
    sql_from_table(w->s, w->d, p->root.table, THIS);
    sql_add(w->s, "\nWHERE ");
    sql_expression(w, THIS, p->due);
    sql_in_order(w->s, w->d, p);
    sql_add(w->s, "\nLIMIT ");
    sql_bind_integer(w->s, w->d, most);
    sql_add(w->s, ") AS lapse_rows");
}

void sql_remaining(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t most)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*) FROM (SELECT 1");
    due_rows(&w, p, most);
}

static void names_of_set(struct stmt *s, int set, size_t n)
{
    text_addf(&s->sql, "lapse_set_%d(", set);
    for (size_t i = 0; i < n; i++)
        text_addf(&s->sql, "%sc%zu", i ? ", " : "", i);
    sql_add(s, ")");
}

/* The columns of a row against those of a set that do not compare as they do. */
static void exists_within(struct stmt *s, const struct dialect *d, const char *alias,
                          const struct column *const *list, size_t n, const struct node *set,
                          const struct column *const *targets)
{
    struct writer w = {.s = s, .d = d};
    char name[ALIAS_SIZE];
    text_addf(&s->sql, "EXISTS (SELECT 1 FROM lapse_set_%d AS lapse_in WHERE ", set->set);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "c%zu", sql_carried_at(set, targets[i]));
        sql_add(s, i ? " AND " : "");
        sql_equal(&w, alias, list[i], "lapse_in", targets[i], name);
    }
    sql_add(s, ")");
}

/* (alias.a, alias.b) IN (SELECT c0, c1 FROM lapse_set_N) */
static void within(struct stmt *s, const struct dialect *d, const char *alias,
                   const struct column *const *list, size_t n, const struct node *set,
                   const struct column *const *targets)
{
    const char *operators = NULL;
    bool alike = sql_operators_of_row(d, list, targets, n, &operators);
    for (size_t i = 0; i < n; i++)
        alike = alike && sql_alike(d, list[i], targets[i]);
    if (!alike) {
        exists_within(s, d, alias, list, n, set, targets);
        return;
    }
    sql_in_select(s, d, operators, alias, list, n);
    sql_add(s, "SELECT ");
    for (size_t i = 0; i < n; i++) {
        text_addf(&s->sql, "%sc%zu", i ? ", " : "", sql_carried_at(set, targets[i]));
        sql_add_type(s, d, operators, targets[i]);
    }
    text_addf(&s->sql, " FROM lapse_set_%d)", set->set);
}

/* The walk down inside the table, as the recursive half of a set. */
static void grown(struct writer *w, const struct node *n)
{
    char row[ALIAS_SIZE];
    struct stmt *s = w->s;
    sql_alias(w, row);
    sql_add(s, "\nUNION SELECT ");
    sql_columns(s, w->d, row, n->carry, n->n_carry);
    sql_from_table(s, w->d, n->table, row);
    text_addf(&s->sql, " JOIN lapse_set_%d AS lapse_up ON ", n->set);
    for (size_t g = 0; g < n->n_grow; g++) {
        const struct join *j = &n->grow[g];
        sql_add(s, g ? " OR (" : "(");
        for (size_t i = 0; i < j->n; i++) {
            char name[ALIAS_SIZE];
            snprintf(name, sizeof(name), "c%zu", sql_carried_at(n, j->parent[i]));
            sql_add(s, i ? " AND " : "");
            sql_equal(w, row, j->child[i], "lapse_up", j->parent[i], name);
        }
        sql_add(s, ")");
    }
}

static void time_of_row(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    if (!p->n_times)
        sql_add(s, "NULL");
    else if (p->n_times == 1)
        d->time_value(s, THIS, &p->times[0]);
    else
        d->latest(s, THIS, p->times, p->n_times);
}

static void one_place(struct writer *w, const struct plan *p, int64_t from)
{
    struct stmt *s = w->s;
    const struct column *key = p->root.table->key[0];
    char row[ALIAS_SIZE];
    sql_add(s, "SELECT * FROM (SELECT ");
    time_of_row(s, w->d, p);
    sql_add(s, " AS t, CASE WHEN ");
    sql_expression(w, THIS, p->aged);
    sql_add(s, " AND ");
    sql_expression(w, THIS, p->matches);
    sql_add(s, " THEN 1 ELSE 0 END AS due");
    sql_from_table(s, w->d, p->root.table, THIS);
    sql_add(s, " WHERE ");
    sql_column(s, w->d, THIS, key);
    sql_sign(s, w->d, ">=");
    sql_bind_integer(s, w->d, from);
    sql_add(s, " ORDER BY ");
    sql_column(s, w->d, THIS, key);
    text_addf(&s->sql, " LIMIT 1) AS %s", sql_alias(w, row));
}

void sql_spread(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t low, int64_t step,
                int64_t places)
{
    struct writer w = sql_writer(s, d, p);
    for (int64_t i = 0; i < places; i++) {
        sql_add(s, i ? "\nUNION ALL " : "");
        one_place(&w, p, low + i * step);
    }
}

void sql_key_ends(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    const char *ends[] = {"min(", "max("};
    stmt_clear(s);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        sql_add(s, i ? "), (SELECT " : "SELECT (SELECT ");
        sql_builtin(s, d, ends[i]);
        sql_column(s, d, THIS, p->root.table->key[0]);
        sql_add(s, ")");
        sql_from_table(s, d, p->root.table, THIS);
    }
    sql_add(s, ")");
}

void sql_due(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT 1");
    sql_from_table(s, d, p->root.table, THIS);
    sql_add(s, "\nWHERE ");
    sql_expression(&w, THIS, p->due);
}

void sql_backlog(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t most)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*), ");
    sql_builtin(s, d, "min(t) FROM (SELECT ");
    time_of_row(s, d, p);
    sql_add(s, " AS t");
    due_rows(&w, p, most);
}

static void root_sets(struct writer *w, const struct plan *p)
{
    struct stmt *s = w->s;
    const struct node *root = &p->root;
    names_of_set(s, 0, root->n_carry);
    sql_add(s, " AS (SELECT ");
    sql_columns(s, w->d, THIS, root->carry, root->n_carry);
    sql_from_table(s, w->d, root->table, THIS);
    sql_add(s, " WHERE ");
    sql_expression(w, THIS, p->due);
    if (root->n_grow)
        grown(w, root);
    sql_add(s, ")");
}

static void kid_sets(struct writer *w, const struct node *parent)
{
    for (size_t i = 0; i < parent->n_kids; i++) {
        const struct node *n = &parent->kids[i];
        if (n->set < 0)
            continue;
        sql_add(w->s, ",\n");
        names_of_set(w->s, n->set, n->n_carry);
        sql_add(w->s, " AS (SELECT ");
        sql_columns(w->s, w->d, THIS, n->carry, n->n_carry);
        sql_from_table(w->s, w->d, n->table, THIS);
        sql_add(w->s, " WHERE ");
        within(w->s, w->d, THIS, n->join.child, n->join.n, parent, n->join.parent);
        if (n->n_grow)
            grown(w, n);
        sql_add(w->s, ")");
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
    sql_add(w->s, "WITH RECURSIVE ");
    root_sets(w, p);
    kid_sets(w, &p->root);
}

/* "this row of table t goes": an OR over every node of that table. Returns whether anything was written. */
static bool goes(struct writer *w, const struct node *n, const struct node *parent, const struct table *t,
                 bool begun)
{
    if (n->table == t) {
        sql_add(w->s, begun ? " OR " : "");
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
        sql_add(w->s, begun ? " OR " : "");
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
        if (begun)
            sql_sign(w->s, w->d, "+");
        sql_add(w->s, "(SELECT ");
        sql_builtin(w->s, w->d, "count(*)");
        sql_from_table(w->s, w->d, t, THIS);
        sql_add(w->s, " WHERE (");
        loses_reference(w, &p->root, &n->detach[i], false);
        sql_add(w->s, ")");
        if (plan_loses(p, t)) {
            sql_add(w->s, " AND (");
            goes(w, &p->root, NULL, t, false);
            sql_add(w->s, ") IS NOT TRUE");
        }
        sql_add(w->s, ")");
        begun = true;
    }
    for (size_t i = 0; i < n->n_kids; i++)
        begun = detached(w, p, &n->kids[i], t, begun);
    return begun;
}

/* The only node of the table; NULL: there are several. *n: how many were met. */
static const struct node *only_node(const struct node *n, const struct table *t, size_t *ret_met)
{
    const struct node *found = n->table == t ? n : NULL;
    *ret_met += found != NULL;
    for (size_t i = 0; i < n->n_kids; i++) {
        const struct node *below = only_node(&n->kids[i], t, ret_met);
        found = found ? found : below;
    }
    return found;
}

/* A set that alone has all rows of the table that go is counted as it is: none is looked up again. */
static void count_of_slot(struct writer *w, const struct plan *p, const struct table *t)
{
    size_t met = 0;
    const struct node *n = only_node(&p->root, t, &met);
    sql_add(w->s, "(SELECT ");
    sql_builtin(w->s, w->d, "count(*)");
    if (met == 1 && n->set >= 0) {
        text_addf(&w->s->sql, " FROM lapse_set_%d)", n->set);
        return;
    }
    sql_from_table(w->s, w->d, t, THIS);
    sql_add(w->s, " WHERE ");
    goes(w, &p->root, NULL, t, false);
    sql_add(w->s, ")");
}

void sql_count(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = sql_writer(s, d, p);
    sql_sets(&w, p);
    sql_add(s, "\nSELECT ");
    for (size_t i = 0; i < p->n_slots; i++) {
        sql_add(s, i ? ",\n" : "");
        if (p->slots[i] == p->root.table && plan_counts_alone(p))
            sql_add(s, "NULL");
        else
            count_of_slot(&w, p, p->slots[i]);
    }
    for (size_t i = 0; i < p->n_detach_slots; i++) {
        sql_add(s, ",\n");
        detached(&w, p, &p->root, p->detach_slots[i], false);
    }
}

/* The bound's time, as it is stored where that has its order: then only two of them are reckoned with. */
static bool stored_in_order(const struct plan *p)
{
    return p->n_times == 1 && p->times[0].encoding != TIME_TEXT;
}

static void one_end(struct writer *w, const struct plan *p, const char *end, const char *name)
{
    sql_add(w->s, ", ");
    if (!p->n_times) {
        text_addf(&w->s->sql, "NULL AS %s", name);
        return;
    }
    sql_builtin(w->s, w->d, end);
    if (stored_in_order(p))
        sql_column(w->s, w->d, THIS, p->times[0].column);
    else
        time_of_row(w->s, w->d, p);
    text_addf(&w->s->sql, ") AS %s", name);
}

static void end_as_time(struct stmt *s, const struct dialect *d, const struct plan *p, const char *name)
{
    sql_add(s, ", ");
    if (!stored_in_order(p)) {
        text_addf(&s->sql, "lapse_ends.%s", name);
        return;
    }
    struct column column = *p->times[0].column;
    struct time_column time = p->times[0];
    column.name = name;
    time.column = &column;
    d->time_value(s, "lapse_ends", &time);
}

void sql_count_due(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    static const char low[] = "lapse_oldest", high[] = "lapse_newest";
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT lapse_ends.lapse_rows");
    end_as_time(s, d, p, low);
    end_as_time(s, d, p, high);
    sql_add(s, "\nFROM (SELECT ");
    sql_builtin(s, d, "count(*) AS lapse_rows");
    one_end(&w, p, "min(", low);
    one_end(&w, p, "max(", high);
    sql_from_table(s, d, p->root.table, THIS);
    sql_add(s, "\nWHERE ");
    sql_expression(&w, THIS, p->due);
    sql_add(s, ") AS lapse_ends");
}

void sql_count_beside(struct stmt *s, const struct dialect *d, const struct plan *p,
                      const struct plan *const *others, size_t n)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*)");
    sql_from_table(s, d, p->root.table, THIS);
    sql_add(s, "\nWHERE ");
    sql_expression(&w, THIS, p->due);
    for (size_t i = 0; i < n; i++) {
        struct writer other = w; /* of another plan, in the same statement */
        other.plan = others[i];
        other.now = others[i]->now;
        sql_add(s, " AND (");
        sql_expression(&other, THIS, others[i]->due);
        sql_add(s, ") IS NOT TRUE");
        w.aliases = other.aliases;
    }
}

/* Rows that have reached the bound, old enough and, for orphans, without a source, but are kept by `by`: what
 * must be true of a row that goes. A count of its own, since a condition that looks at other rows is a join
 * in a WHERE, but in an aggregate may be asked of every row anew. NULL: nothing keeps any. */
static void count_kept(struct writer *w, const struct plan *p, const struct expr *and, const struct expr *by)
{
    const struct expr *all[] = {p->matches, p->timely, p->orphaned, and};
    if (!by) {
        sql_add(w->s, "0");
        return;
    }
    sql_add(w->s, "(SELECT ");
    sql_builtin(w->s, w->d, "count(*)");
    sql_from_table(w->s, w->d, p->root.table, THIS);
    sql_add(w->s, " WHERE ");
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (!all[i])
            continue;
        sql_expression(w, THIS, all[i]);
        sql_add(w->s, " AND ");
    }
    sql_add(w->s, "NOT (");
    sql_expression(w, THIS, by);
    sql_add(w->s, "))");
}

static void matching_and(struct writer *w, const struct plan *p)
{
    sql_add(w->s, "(SELECT ");
    sql_builtin(w->s, w->d, "count(*)");
    sql_from_table(w->s, w->d, p->root.table, THIS);
    sql_add(w->s, " WHERE ");
    sql_expression(w, THIS, p->matches);
    sql_add(w->s, " AND ");
}

/* Asked only where a column may be NULL, and so that an index which leads to the time can tell. */
static void count_without_time(struct writer *w, const struct plan *p)
{
    bool may = p->n_times > 0;
    for (size_t i = 0; i < p->n_times; i++)
        may = may && !p->times[i].column->not_null;
    if (!may) {
        sql_add(w->s, "0");
        return;
    }
    matching_and(w, p);
    for (size_t i = 0; i < p->n_times; i++) {
        sql_add(w->s, i ? " AND " : "");
        sql_column(w->s, w->d, THIS, p->times[i].column);
        sql_add(w->s, sql_is_null(w->d));
    }
    sql_add(w->s, ")");
}

static void count_unreadable(struct writer *w, const struct plan *p)
{
    bool any = false;
    for (size_t i = 0; i < p->n_times; i++) {
        if (w->d->always_readable(&p->times[i]))
            continue;
        if (any)
            sql_add(w->s, " OR ");
        else
            matching_and(w, p);
        sql_add(w->s, any ? "" : "(");
        any = true;
        w->d->time_unreadable(w->s, THIS, &p->times[i]);
    }
    sql_add(w->s, any ? "))" : "0");
}

void sql_kept(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    count_without_time(&w, p);
    sql_add(s, ",\n");
    count_unreadable(&w, p);
    sql_add(s, ",\n");
    count_kept(&w, p, NULL, p->hold);
    sql_add(s, ",\n");
    count_kept(&w, p, p->hold, p->free_);
}

void sql_sample(struct stmt *s, const struct dialect *d, const struct plan *p, const struct column *c,
                int64_t most)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_column(s, d, THIS, c);
    sql_from_table(s, d, p->root.table, THIS);
    sql_add(s, " WHERE ");
    sql_column(s, d, THIS, c);
    sql_add(s, " IS NOT NULL AND ");
    sql_expression(&w, THIS, p->matches);
    sql_add(s, " LIMIT ");
    sql_bind_integer(s, d, most);
}

void sql_recent(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t most)
{
    const struct table *t = p->root.table;
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*), ");
    sql_builtin(s, d, "count(lapse_recent.lapse_due), ");
    sql_builtin(s, d, "max(lapse_recent.lapse_at) FROM (SELECT CASE WHEN ");
    sql_expression(&w, THIS, p->aged);
    sql_add(s, " THEN 1 END AS lapse_due, ");
    if (p->n_times > 1)
        d->latest(s, THIS, p->times, p->n_times);
    else
        d->time_value(s, THIS, &p->times[0]);
    sql_add(s, " AS lapse_at");
    sql_from_table(s, d, t, THIS);
    sql_add(s, " WHERE ");
    sql_expression(&w, THIS, p->matches);
    sql_add(s, " ORDER BY ");
    for (size_t i = 0; i < t->n_key; i++) {
        sql_add(s, i ? ", " : "");
        sql_column(s, d, THIS, t->key[i]);
        sql_add(s, " DESC");
    }
    sql_add(s, " LIMIT ");
    sql_bind_integer(s, d, most);
    sql_add(s, ") AS lapse_recent");
}

void sql_alone(struct stmt *s, const struct dialect *d, const struct plan *p, const struct table *t,
               const struct expr *x)
{
    char row[ALIAS_SIZE];
    struct writer w = sql_writer(s, d, p);
    sql_alias(&w, row);
    sql_add(s, "SELECT 1");
    sql_from_table(s, d, t, row);
    sql_add(s, " WHERE ");
    sql_expression(&w, row, x);
}

void sql_try(struct stmt *s, const struct dialect *d, const struct plan *p, const struct table *t,
             const struct expr *x)
{
    char row[ALIAS_SIZE];
    struct writer w = sql_writer(s, d, p);
    sql_alias(&w, row);
    sql_add(s, "SELECT ");
    sql_expression(&w, row, x);
    sql_from_table(s, d, t, row);
    sql_add(s, " LIMIT 1");
}

void sql_has(struct stmt *s, const struct dialect *d, const struct table *t, const struct expr *is)
{
    stmt_clear(s);
    struct writer w = {.s = s, .d = d};
    sql_add(s, "SELECT 1");
    sql_from_table(s, d, t, THIS);
    sql_add(s, " WHERE ");
    sql_expression(&w, THIS, is);
    sql_add(s, " LIMIT 1");
}

void sql_lookalike(struct stmt *s, const struct dialect *d, const struct table *t, const struct column *c,
                   const struct value *values, size_t n)
{
    stmt_clear(s);
    sql_add(s, "SELECT ");
    sql_column(s, d, THIS, c);
    sql_from_table(s, d, t, THIS);
    sql_add(s, " WHERE ");
    sql_compared(s, d, THIS, c, CMP_EQ);
    sql_bind(s, d, values[0], c->sql_type);
    sql_add(s, " AND NOT (TRUE");
    d->exactly(s, THIS, c, values, n);
    sql_add(s, ") LIMIT 1");
}
