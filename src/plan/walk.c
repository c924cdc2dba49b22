/* walk: in which order rows are found, and why. Pure: an engine's estimate in, an order out.
 *
 * By an index on the time every batch is a short range, and a sweep reads what it deletes. That is the best
 * way while little is due, and while rows lie about as the index has them. Where a large part of a table is
 * due and its rows lie anywhere, each of them is a block of its own to be read, changed and written, the same
 * block again and again: then one walk over the table as it lies is faster, though it also reads what stays.
 * Without an index the whole table has to be read anyhow. */
#include "plan/internal.h"

#include <stdlib.h>
#include <string.h>

static const double MANY_ROWS = 10000; /* below, any way is fast */
static const double LARGE_PART = 0.2;  /* of the table: so much of what is read on the way is due */
static const double SCATTERED = 0.5;   /* rows lie less in the order of the index than that */

static bool has_large_part(const struct estimate *e)
{
    return e->rows >= MANY_ROWS && e->due >= e->rows * LARGE_PART;
}

static void take_order(struct plan *p, enum walk walk, const struct column *const *columns, size_t n)
{
    p->order = arena_alloc(p->arena, n * sizeof(*p->order));
    memcpy(p->order, columns, n * sizeof(*p->order));
    p->n_order = n;
    p->walk = walk;
    p->sorts = false;
    p->n_states = 0;
}

static void say_without_index(struct plan *p)
{
    const char *how = p->walk == WALK_PLACE ? "as they lie in the table" : "by the key";
    if (p->policy->cap || p->n_times == 0)
        p->walk_why = "by the key";
    else if (p->n_times > 1)
        p->walk_why = arena_printf(p->arena, "%s: no index has the latest of several times", how);
    else
        p->walk_why = arena_printf(p->arena, "%s: no index leads to %s", how, p->times[0].column->name);
}

static int by_value(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    if (x->kind != VALUE_TEXT)
        return (x->integer > y->integer) - (x->integer < y->integer);
    size_t least = x->len < y->len ? x->len : y->len;
    int r = memcmp(x->text, y->text, least);
    return r ? r : (x->len > y->len) - (x->len < y->len);
}

static const struct expr *values_of(const struct expr *x, const struct column *c)
{
    const struct expr *found = NULL;
    if (x && x->kind == EXPR_IN && x->column == c)
        return x;
    for (size_t i = 0; x && x->kind == EXPR_AND && i < x->n_kids && !found; i++)
        found = values_of(x->kids[i], c);
    return found;
}

/* Only of values that compare as their bytes do, or as numbers. */
static void find_states(struct making *m)
{
    struct plan *p = m->plan;
    const struct column *c = p->order[0];
    const struct expr *in = values_of(p->rows, c);
    if (p->examines || c == p->times[0].column || !in || c->collation || c->folds)
        return;
    for (size_t i = 0; i < in->n_values; i++)
        if (in->values[i].kind != in->values[0].kind ||
            (in->values[i].kind != VALUE_TEXT && in->values[i].kind != VALUE_INTEGER))
            return;
    p->n_states = in->n_values;
    p->states = arena_alloc(m->arena, in->n_values * sizeof(*p->states));
    memcpy(p->states, in->values, in->n_values * sizeof(*p->states));
    qsort(p->states, p->n_states, sizeof(*p->states), by_value);
}

void plan_say_walk(struct making *m)
{
    struct plan *p = m->plan;
    p->walk = p->index ? WALK_INDEX : WALK_KEY;
    if (!p->index) {
        say_without_index(p);
        return;
    }
    p->walk_why = arena_printf(m->arena, "by the index %s", p->index->name);
    find_states(m);
}

void plan_walk(struct plan *p, const struct estimate *e)
{
    const struct table *t = p->root.table;
    if (p->examines || p->policy->cap || p->n_times == 0)
        return;
    if (!p->index && !t->place)
        return;
    bool scattered = has_large_part(e) && e->order >= 0 && e->order < SCATTERED;
    if (p->index && (!scattered || (!t->place && !t->lies_by_key)))
        return;
    if (t->place)
        take_order(p, WALK_PLACE, &t->place, 1);
    else
        take_order(p, WALK_KEY, t->key, t->n_key);
    p->due_per_block = e->due > 0 && e->blocks > 0 ? e->due / e->blocks : 0;
    if (p->index)
        p->walk_why = arena_printf(
            p->arena, "%s: about %.0f %% of the rows are due, and they do not lie as the index %s has them",
            p->walk == WALK_PLACE ? "as they lie in the table" : "by the key, as they lie",
            100 * e->due / e->rows, p->index->name);
    else
        say_without_index(p);
}
