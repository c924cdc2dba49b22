/* pieces: partitions that are swept one by one, each as if it were a table. See plan.h.
 *
 * To find and delete rows in the whole, a planner plans for every partition, and rows are looked up by their
 * keys, since a place says nothing without the partition it is in. In one partition alone all that is faster,
 * and locks nothing else. What is deleted is the same. */
#include <string.h>

#include "plan/plan.h"

static bool asks_about(const struct expr *x, const struct table *t)
{
    if (!x)
        return false;
    bool does = x->kind != EXPR_SQL && x->table == t; /* whose own words name the whole */
    for (size_t i = 0; i < x->n_kids && !does; i++)
        does = asks_about(x->kids[i], t);
    return does;
}

static bool touches(const struct node *n, const struct table *t)
{
    bool does = n->table == t || asks_about(n->where, t);
    for (size_t i = 0; i < n->n_detach && !does; i++)
        does = n->detach[i].table == t;
    for (size_t i = 0; i < n->n_after && !does; i++)
        does = asks_about(n->after[i], t);
    for (size_t i = 0; i < n->n_kids && !does; i++)
        does = touches(&n->kids[i], t);
    return does;
}

/* Rows of the table itself, beside the one that is judged, would be looked for in one partition only. */
static bool looks_at_own_table(const struct plan *p)
{
    const struct node *root = &p->root;
    bool does = root->n_grow || p->source == root->table || asks_about(p->due, root->table) ||
                asks_about(p->free_, root->table);
    for (size_t i = 0; i < root->n_detach && !does; i++)
        does = root->detach[i].table == root->table;
    for (size_t i = 0; i < root->n_kids && !does; i++)
        does = touches(&root->kids[i], root->table);
    return does;
}

bool plan_may_go_by_pieces(const struct plan *p)
{
    const struct table *t = p->root.table;
    return t->kind == KIND_PARTITIONED && p->policy->batch != BATCH_ALL && !p->examines && !p->splits &&
           !p->beyond && !t->delete_hooks && !t->update_hooks && !t->hooks_hidden && !t->rows_hidden &&
           !looks_at_own_table(p);
}

/* As in the plan of a table that has places. */
static void carry_place(struct plan *p, const struct table *t)
{
    struct node *root = &p->root;
    bool by_number = t->n_key == 1 && t->key[0]->type == TYPE_INTEGER;
    if (!t->place || by_number || root->n_detach)
        return;
    const struct column **carry = arena_alloc(p->arena, (root->n_carry + 1) * sizeof(*carry));
    memcpy(carry, root->carry, root->n_carry * sizeof(*carry));
    carry[root->n_carry++] = t->place;
    root->carry = carry;
}

struct plan *plan_of_piece(const struct plan *p, const struct table_piece *x, struct arena *a)
{
    struct table *t = arena_alloc(a, sizeof(*t));
    struct plan *one = arena_alloc(a, sizeof(*one));
    *t = *p->root.table;
    t->whole = p->root.table;
    t->kind = KIND_TABLE;
    t->ranges = false;
    t->schema = x->schema;
    t->name = x->name;
    t->print = x->print;
    t->place = x->place;
    *one = *p;
    one->arena = a;
    one->root.table = t;
    one->pieces = (struct table_pieces){0};
    one->drops = false;
    carry_place(one, t);
    return one;
}
