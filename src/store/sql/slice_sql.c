/* slice_sql: the statements of a slice, in the order of execution. See sql.h. */
#include "store/sql/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One end of a stretch: the sign between what a row has and the cursor's values, and of all but the last. */
struct side {
    enum compare sign, strict;
};
static const struct side beyond = {CMP_GT, CMP_GT}, up_to = {CMP_LE, CMP_LT};

/* a > x OR (a = x AND (b > y OR …)), from column i on. */
static void side_from(struct stmt *s, const struct dialect *d, const struct plan *p, const struct side *side,
                      const struct cursor *c, size_t i)
{
    bool last = i + 1 == p->n_order;
    const enum compare signs[] = {last ? side->sign : side->strict, CMP_EQ};
    for (size_t k = 0; k < (last ? 1 : 2); k++) {
        sql_add(s, k ? " OR (" : last ? "" : "(");
        sql_compared(s, d, THIS, p->order[i], signs[k]);
        sql_bind(s, d, c->values[i], p->order[i]->sql_type);
    }
    if (last)
        return;
    sql_add(s, " AND ");
    side_from(s, d, p, side, c, i + 1);
    sql_add(s, "))");
}

/* Columns that no one operator compares as a row: their index serves what is said of the first. */
static void and_first(struct stmt *s, const struct dialect *d, const struct plan *p, const struct side *side,
                      const struct cursor *c, size_t first)
{
    if (d->rows_spelt_out)
        return;
    sql_add(s, " AND ");
    sql_compared(s, d, THIS, p->order[first], side->strict == CMP_GT ? CMP_GE : CMP_LE);
    sql_bind(s, d, c->values[first], p->order[first]->sql_type);
}

/* From column `first` of the order on. */
static void and_side(struct stmt *s, const struct dialect *d, const struct plan *p, const struct side *side,
                     const struct cursor *c, size_t first)
{
    size_t n = p->n_order - first;
    bool row = n > 1;
    const char *operators = NULL;
    if (!c || !c->set)
        return;
    if (d->rows_spelt_out || !sql_operators_of_row(d, p->order + first, p->order + first, n, &operators)) {
        and_first(s, d, p, side, c, first);
        sql_add(s, " AND ");
        side_from(s, d, p, side, c, first);
        return;
    }
    sql_add(s, row ? " AND (" : " AND ");
    sql_operands(s, d, operators, THIS, p->order + first, n);
    sql_add(s, row ? ")" : "");
    sql_operator(s, operators, side->sign == CMP_GT ? ">" : "<=");
    sql_add(s, row ? "(" : "");
    for (size_t i = first; i < p->n_order; i++) {
        sql_add(s, i > first ? ", " : "");
        sql_bind(s, d, c->values[i], p->order[i]->sql_type);
    }
    sql_add(s, row ? ")" : "");
}

/* Within one value of the first column, the others alone say what lies beyond. */
static void within(struct stmt *s, const struct dialect *d, const struct plan *p, const struct stretch *in)
{
    if (!in)
        return;
    if (in->first) {
        sql_add(s, " AND ");
        sql_compared(s, d, THIS, p->order[0], CMP_EQ);
        sql_bind(s, d, *in->first, p->order[0]->sql_type);
    }
    bool same = in->first && in->after && in->after->set && value_same(in->first, &in->after->values[0]);
    and_side(s, d, p, &beyond, in->after, same ? 1 : 0);
    and_side(s, d, p, &up_to, in->upto, 0);
}

static void order_by(struct stmt *s, const struct dialect *d, const struct plan *p, size_t first)
{
    sql_add(s, "\nORDER BY ");
    sql_columns(s, d, THIS, p->order + first, p->n_order - first);
}

/* No index has rows as they lie: to ask for the first of them would be to sort them all. */
void sql_in_order(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    if (p->walk != WALK_PLACE)
        order_by(s, d, p, 0);
}

static void select_roots(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, p->root.carry, p->root.n_carry);
    sql_add(s, ", ");
    sql_columns(s, d, THIS, p->order, p->n_order);
    sql_add(s, "\n");
}

/* What was a partition may be somebody's archive by now. */
static void and_is_part(struct stmt *s, const struct dialect *d, const struct table *t)
{
    if (t->whole && d->is_part)
        d->is_part(s, t);
}

/* Where rows are to be found by the key, though an index leads to their time, that index is of no use for it. */
static void due(struct writer *w, const struct plan *p)
{
    bool only_key = p->walk == WALK_KEY && p->index;
    sql_add(w->s, only_key ? "(" : "");
    sql_expression(w, THIS, p->due);
    sql_add(w->s, only_key ? ") IS TRUE" : "");
}

static void scout(struct stmt *s, const struct dialect *d, const struct plan *p, const struct stretch *in,
                  int64_t most, const struct index *held_to)
{
    struct writer w = sql_writer(s, d, p);
    select_roots(s, d, p);
    sql_from_table(s, d, p->root.table, THIS);
    if (held_to && d->use_index)
        d->use_index(s, held_to);
    sql_add(s, "\nWHERE ");
    due(&w, p);
    within(s, d, p, in);
    and_is_part(s, d, p->root.table);
    order_by(s, d, p, in && in->first ? 1 : 0);
    sql_add(s, "\nLIMIT ");
    sql_bind_integer(s, d, most);
}

void sql_scout(struct stmt *s, const struct dialect *d, const struct plan *p, const struct stretch *in,
               int64_t most)
{
    scout(s, d, p, in, most, NULL);
}

void sql_scout_by_index(struct stmt *s, const struct dialect *d, const struct plan *p,
                        const struct stretch *in, int64_t most)
{
    scout(s, d, p, in, most, p->index);
}

void sql_pick(struct stmt *s, const struct dialect *d, const struct plan *p, const struct stretch *in,
              int64_t most)
{
    sql_scout(s, d, p, in, most);
    d->lock(s, THIS, LOCK_SKIP);
}

void sql_cut(struct stmt *s, const struct dialect *d, const struct plan *p, const struct cursor *after,
             int64_t rows)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, p->order, p->n_order);
    sql_add(s, "\n");
    sql_from_table(s, d, p->root.table, THIS);
    sql_add(s, "\nWHERE ");
    sql_expression(&w, THIS, p->aged);
    if (p->matches->kind != EXPR_TRUE) {
        sql_add(s, " AND ");
        sql_expression(&w, THIS, p->matches);
    }
    and_side(s, d, p, &beyond, after, 0);
    sql_in_order(s, d, p);
    sql_add(s, "\nLIMIT 1 OFFSET ");
    sql_bind_integer(s, d, rows - 1);
}

/* No index is used for what else is said of these rows, but that of their key: whatever the planner believes of a
 * table of which it knows little, the rows are few. */
void sql_pick_set(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = sql_writer(s, d, p);
    const struct expr *own[] = {p->aged, p->matches, p->hold};
    AUTO(sql_by_release) struct sql_by b = sql_by_key(&p->root);
    select_roots(s, d, p);
    sql_add(s, " FROM ");
    sql_table_by(s, d, p->root.table, THIS, &b);
    sql_add(s, "\n");
    sql_where_by(s, d, THIS, &b);
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (!own[i] || own[i]->kind == EXPR_TRUE)
            continue;
        sql_add(s, "\nAND (");
        sql_expression(&w, THIS, own[i]);
        sql_add(s, ") IS TRUE");
    }
    and_is_part(s, d, p->root.table);
    d->lock(s, THIS, LOCK_SKIP);
}

static void count_of(struct stmt *s, const struct dialect *d, const struct table *t)
{
    stmt_clear(s);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*)");
    sql_from_table(s, d, t, THIS);
    sql_add(s, " WHERE ");
}

void sql_lock_source(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    char row[ALIAS_SIZE];
    struct writer w = sql_writer(s, d, p);
    sql_alias(&w, row);
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(&p->source_join, &p->root, p->root.set);
    sql_add(s, "SELECT 1");
    sql_from_by(s, d, p->source, row, &b);
    d->lock(s, row, LOCK_SHARE);
}

void sql_source_there(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    count_of(s, d, p->source);
    sql_refers_to(s, d, THIS, &p->source_join, &p->root, p->root.set);
}

void sql_judge(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, p->root.carry, p->root.n_carry);
    sql_add(s, "\n");
    sql_from_table(s, d, p->root.table, THIS);
    sql_add(s, "\nWHERE ");
    sql_in_own_set(s, d, THIS, &p->root);
    sql_add(s, "\nAND ");
    w.picked = &p->root;
    sql_expression(&w, THIS, p->due);
}

void sql_grow(struct stmt *s, const struct dialect *d, const struct node *n, size_t way, int frontier)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(&n->grow[way], n, frontier);
    stmt_clear(s);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, n->carry, n->n_carry);
    sql_from_by(s, d, n->table, THIS, &b);
    d->lock(s, THIS, LOCK_WAIT);
}

void sql_pick_kids(struct stmt *s, const struct dialect *d, const struct node *parent, const struct node *n)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(&n->join, parent, parent->set);
    stmt_clear(s);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, n->carry, n->n_carry);
    sql_from_by(s, d, n->table, THIS, &b);
    d->lock(s, THIS, LOCK_WAIT);
}

/* "this row is in a set, or owned by a row in one": an OR over every node of its table. */
static bool gathered(struct writer *w, const struct node *n, const struct node *parent, const struct table *t,
                     bool begun)
{
    if (n->table == t) {
        sql_add(w->s, begun ? " OR " : "");
        if (n->set >= 0)
            sql_in_own_set(w->s, w->d, THIS, n);
        else
            sql_refers_to(w->s, w->d, THIS, &n->join, parent, parent->set);
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
    sql_add(w->s, "(");
    gathered(w, &p->root, NULL, t->table, false);
    if (t->table == p->root.table) {
        sql_add(w->s, " OR ");
        sql_expression(w, THIS, p->due);
    }
    sql_add(w->s, ")");
}

static void empty_references(struct stmt *s, const struct dialect *d, const struct node *parent,
                             const struct detachment *t)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(&t->join, parent, parent->set);
    sql_add(s, "UPDATE ");
    sql_table_by(s, d, t->table, THIS, &b);
    sql_add(s, " SET ");
    for (size_t i = 0; i < t->n_emptied; i++) {
        sql_add(s, i ? ", " : "");
        sql_name(s, d, t->emptied[i]->name);
        sql_add(s, " = NULL");
    }
    sql_add(s, " ");
    sql_where_by(s, d, THIS, &b);
}

void sql_detach(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                const struct detachment *t, bool inside)
{
    struct writer w = sql_writer(s, d, p);
    empty_references(s, d, parent, t);
    if (!plan_loses(p, t->table))
        return;
    sql_add(s, " AND ");
    goes_too(&w, p, t);
    sql_add(s, inside ? " IS TRUE" : " IS NOT TRUE");
}

void sql_detach_all(struct stmt *s, const struct dialect *d, const struct node *parent,
                    const struct detachment *t)
{
    stmt_clear(s);
    empty_references(s, d, parent, t);
}

void sql_detach_inside(struct stmt *s, const struct dialect *d, const struct plan *p,
                       const struct node *parent, const struct detachment *t)
{
    struct writer w = sql_writer(s, d, p);
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(&t->join, parent, parent->set);
    sql_add(s, "SELECT 1");
    sql_from_by(s, d, t->table, THIS, &b);
    sql_add(s, " AND ");
    goes_too(&w, p, t);
    d->lock(s, THIS, LOCK_WAIT);
}

void sql_detach_left(struct stmt *s, const struct dialect *d, const struct node *parent,
                     const struct detachment *t)
{
    count_of(s, d, t->table);
    sql_refers_to(s, d, THIS, &t->join, parent, parent->set);
}

/* more: a condition follows. */
static void delete_from(struct stmt *s, const struct dialect *d, const struct table *t, struct sql_by *b,
                        bool more)
{
    stmt_clear(s);
    s->deletes = t;
    if (d->delete_by && !more && b->n == 1 && sql_index_by(t, b) &&
        d->delete_by(s, t, b->columns[0], b->set, b->at[0], b->types[0]))
        return;
    sql_add(s, d->deletes_alias ? "DELETE " THIS : "DELETE");
    sql_from_by(s, d, t, THIS, b);
}

void sql_delete_kids(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                     const struct node *n)
{
    struct writer w = sql_writer(s, d, p);
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(&n->join, parent, parent->set);
    delete_from(s, d, n->table, &b, n->where != NULL);
    if (n->where) {
        sql_add(s, " AND ");
        sql_expression(&w, THIS, n->where);
    }
}

void sql_kids_left(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                   const struct node *n, bool inside)
{
    struct writer w = sql_writer(s, d, p);
    count_of(s, d, n->table);
    sql_refers_to(s, d, THIS, &n->join, parent, parent->set);
    if (inside && n->where) {
        sql_add(s, " AND ");
        sql_expression(&w, THIS, n->where);
    }
}

void sql_set_waiting(struct stmt *s, const struct dialect *d, const struct plan *p)
{
    struct writer w = sql_writer(s, d, p);
    count_of(s, d, p->root.table);
    sql_in_own_set(s, d, THIS, &p->root);
    sql_add(s, " AND NOT (");
    sql_expression(&w, THIS, p->free_);
    sql_add(s, ")");
}

void sql_delete_set(struct stmt *s, const struct dialect *d, const struct node *n)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_key(n);
    delete_from(s, d, n->table, &b, false);
}

bool sql_delete_set_by_place(struct stmt *s, const struct dialect *d, const struct node *n)
{
    const struct column *place = n->table->place;
    size_t at = place ? sql_carried_at(n, place) : n->n_carry;
    if (at == n->n_carry)
        return false;
    stmt_clear(s);
    s->deletes = n->table;
    sql_add(s, "DELETE");
    sql_from_table(s, d, n->table, THIS);
    sql_add(s, " WHERE ");
    d->in_set(s, THIS, &place, 1, n->set, &at, &place);
    return true;
}

static void by_runs(struct stmt *s, const struct dialect *d, const struct table *t, const struct sql_by *b,
                    const char *verb, const char *joined)
{
    stmt_clear(s);
    sql_add(s, verb);
    sql_from_table(s, d, t, THIS);
    if (d->runs.list) {
        sql_add(s, joined);
        d->runs.list(s, b->set, b->at[0]);
    }
    sql_add(s, " WHERE ");
    d->runs.has(s, THIS, b->columns[0], b->set, b->at[0]);
}

static bool delete_by_runs(struct stmt *s, const struct dialect *d, const struct table *t,
                           const struct sql_by *b)
{
    if (!sql_may_go_by_runs(d, t, b))
        return false;
    by_runs(s, d, t, b, "DELETE", " USING ");
    s->deletes = t;
    s->runs_of = b->columns[0];
    return true;
}

bool sql_delete_kids_by_runs(struct stmt *s, const struct dialect *d, const struct node *parent,
                             const struct node *n)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(&n->join, parent, parent->set);
    return !n->where && delete_by_runs(s, d, n->table, &b);
}

bool sql_delete_set_by_runs(struct stmt *s, const struct dialect *d, const struct node *n)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_key(n);
    return delete_by_runs(s, d, n->table, &b);
}

/* Without a LIMIT: where one row would do, a planner expects to meet it soon, and reads the table as it
 * comes. */
void sql_kids_left_by_runs(struct stmt *s, const struct dialect *d, const struct node *parent,
                           const struct node *n)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_reference(&n->join, parent, parent->set);
    by_runs(s, d, n->table, &b, "SELECT 1", ", ");
}

void sql_leaves(struct stmt *s, const struct dialect *d, const struct node *n)
{
    struct writer w = {.s = s, .d = d};
    stmt_clear(s);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, n->carry, n->n_carry);
    sql_from_table(s, d, n->table, THIS);
    sql_add(s, " WHERE ");
    sql_in_own_set(s, d, THIS, n);
    for (size_t i = 0; i < n->n_grow; i++) {
        char row[ALIAS_SIZE];
        sql_add(s, " AND NOT EXISTS (SELECT 1");
        sql_from_table(s, d, n->table, sql_alias(&w, row));
        sql_add(s, " WHERE ");
        sql_join(&w, &n->grow[i], row, THIS);
        sql_add(s, ")");
    }
}

void sql_delete_leaves(struct stmt *s, const struct dialect *d, const struct node *n, int frontier)
{
    struct node leaves = *n;
    leaves.set = frontier;
    sql_delete_set(s, d, &leaves);
}

/* Whether column i of way g is the first of this name that may be NULL. */
static bool can_be_emptied(const struct node *n, size_t g, size_t i)
{
    const struct column *c = n->grow[g].child[i];
    for (size_t k = 0; k <= g; k++)
        for (size_t j = 0; j < (k < g ? n->grow[k].n : i); j++)
            if (n->grow[k].child[j] == c)
                return false;
    return !c->not_null && !c->generated && !table_is_key_column(n->table, c);
}

bool sql_break_cycles(struct stmt *s, const struct dialect *d, const struct node *n)
{
    const char *between = " SET ";
    AUTO(sql_by_release) struct sql_by b = sql_by_key(n);
    stmt_clear(s);
    sql_add(s, "UPDATE ");
    sql_table_by(s, d, n->table, THIS, &b);
    for (size_t g = 0; g < n->n_grow; g++)
        for (size_t i = 0; i < n->grow[g].n; i++) {
            if (!can_be_emptied(n, g, i))
                continue;
            sql_add(s, between);
            sql_name(s, d, n->grow[g].child[i]->name);
            sql_add(s, " = NULL");
            between = ", ";
        }
    sql_add(s, " ");
    sql_where_by(s, d, THIS, &b);
    return *between == ',';
}

void sql_set_left(struct stmt *s, const struct dialect *d, const struct node *n)
{
    count_of(s, d, n->table);
    sql_in_own_set(s, d, THIS, n);
}

void sql_lock_set(struct stmt *s, const struct dialect *d, const struct node *n)
{
    AUTO(sql_by_release) struct sql_by b = sql_by_key(n);
    stmt_clear(s);
    sql_add(s, "SELECT 1 FROM ");
    sql_table_by(s, d, n->table, THIS, &b);
    sql_add(s, "\n");
    sql_where_by(s, d, THIS, &b);
    d->lock(s, THIS, LOCK_WAIT);
}
