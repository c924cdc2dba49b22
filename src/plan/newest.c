/* newest: the newest rows of each group, which cap and keep_newest leave alone. Part of plan.
 *
 * A row is beyond the newest when at least so many rows of its group come before it. Held and waiting rows
 * are ranked with the others: they count, though they never go. */
#include "plan/internal.h"

#include <string.h>

static bool is_among(const struct column *c, const struct column *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == c)
            return true;
    return false;
}

/* A column to group or to order by. NULL only after a finding. seen: those named before it. */
static const struct column *ranked_column(struct making *m, const struct newest *n, const struct name *name,
                                          const char *key, const struct column **seen, size_t *n_seen)
{
    struct place at = name->at.line ? name->at : n->at;
    const struct column *c = plan_find_column(m, m->plan->root.table, name, at);
    if (!c)
        return NULL;
    if (is_among(c, seen, *n_seen)) {
        complain(m, at, "name each column once: those of per make the groups, those of newest the order",
                 "'%s' names the column '%s' again", key, c->name);
        return NULL;
    }
    seen[(*n_seen)++] = c;
    if (!c->unordered)
        return c;
    complain(m, at, "name a column whose values have an order",
             "column '%s' is %s, which has no order: '%s' cannot use it", c->name, c->sql_type, key);
    return NULL;
}

/* An age column is ordered by its instant: what is old by one must not be new by the other. */
static const struct time_column *time_of(const struct plan *p, const struct column *c)
{
    for (size_t i = 0; i < p->n_times; i++)
        if (p->times[i].column == c)
            return &p->times[i];
    return NULL;
}

/* Rows are compared by one operator: that of the engine. */
static bool is_plain(const struct making *m, const struct ranking *r)
{
    const struct table *t = m->plan->root.table;
    for (size_t i = 0; i < r->n_newest; i++)
        if (r->newest[i].time || !r->newest[i].column->not_null || r->newest[i].column->sorts_apart ||
            r->newest[i].column->operators)
            return false;
    for (size_t i = 0; i < t->n_key; i++)
        if (!t->key[i]->not_null || t->key[i]->operators)
            return false;
    return true;
}

static const struct ranking *ranking_of(struct making *m, const struct newest *n)
{
    struct ranking *r = arena_alloc(m->arena, sizeof(*r));
    const struct column **seen = arena_alloc(m->arena, (n->n_per + n->n_newest + 1) * sizeof(*seen));
    size_t before = m->findings->errors, n_seen = 0;
    r->rows = n->rows;
    r->n_per = n->n_per;
    r->n_newest = n->n_newest;
    r->per = arena_alloc(m->arena, (n->n_per + 1) * sizeof(*r->per));
    r->newest = arena_alloc(m->arena, (n->n_newest + 1) * sizeof(*r->newest));
    for (size_t i = 0; i < n->n_per; i++)
        r->per[i] = ranked_column(m, n, &n->per[i], "per", seen, &n_seen);
    for (size_t i = 0; i < n->n_newest; i++) {
        const struct column *c = ranked_column(m, n, &n->newest[i], "newest", seen, &n_seen);
        r->newest[i] = (struct newest_column){c, time_of(m->plan, c), n->newest[i].at};
    }
    r->plain = m->findings->errors == before && is_plain(m, r);
    return m->findings->errors == before ? r : NULL;
}

const struct expr *plan_beyond_newest(struct making *m, const struct newest *n)
{
    if (n->rows < 1 || !n->n_newest) {
        complain(m, n->at, "write rows: a whole number of at least 1, and newest: the columns to order by",
                 "policy '%s' does not say how many rows stay, or which are newest", m->policy->name);
        return NULL;
    }
    const struct ranking *r = ranking_of(m, n);
    if (!r)
        return NULL;
    struct expr *x = plan_expr(m, EXPR_BEYOND_NEWEST);
    x->table = m->plan->root.table;
    x->ranking = r;
    plan_add_kid(m, x, m->plan->matches);
    return x;
}

bool plan_ranks_in_order(const struct ranking *r)
{
    for (size_t i = 0; i < r->n_per; i++)
        if (!r->per[i]->not_null || r->per[i]->sorts_apart)
            return false;
    for (size_t i = 0; i < r->n_newest; i++)
        if (!r->newest[i].column->not_null || r->newest[i].column->sorts_apart)
            return false;
    return true;
}
