/* The facade: what a sweep would delete, counted and not deleted: `plan`, and the daemon that only observes. See
 * lapse.h.
 *
 * What each policy would delete is counted policy by policy. What all of them would delete together is less
 * where two would take the same rows: that is counted where it is one more reading of one table, and else
 * known only as "at most". */
#include "command/internal.h"

#include <stdlib.h>
#include <string.h>

static void mark_split(bool *split, const struct node *n)
{
    split[n->slot] |= n->split;
    for (size_t i = 0; i < n->n_kids; i++)
        mark_split(split, &n->kids[i]);
}

/* What a row of the plan waits for may itself be deleted by it. */
static bool waits_for_own(const struct plan *p, const struct node *n)
{
    for (size_t i = 0; i < n->n_after; i++)
        if (plan_loses(p, n->after[i]->table))
            return true;
    for (size_t i = 0; i < n->n_kids; i++)
        if (waits_for_own(p, &n->kids[i]))
            return true;
    return false;
}

static void copy_due(struct work *w, struct report_policy *rp, const struct plan *p, const struct due *d)
{
    struct arena *a = w->report->arena;
    work_copy_counts(rp, d->gone, d->detached);
    rp->counted = true;
    rp->below_unknown = d->below_unknown;
    rp->kept_unknown = d->kept_unknown;
    rp->split = arena_alloc(a, p->n_slots * sizeof(*rp->split));
    mark_split(rp->split, &p->root);
    struct cutoff *cutoffs = arena_alloc(a, (p->n_cutoffs + 1) * sizeof(*cutoffs));
    for (size_t i = 0; i < p->n_cutoffs; i++) {
        cutoffs[i] = p->cutoffs[i];
        cutoffs[i].when = NULL; /* the plan's own */
        cutoffs[i].value = p->cutoffs[i].value ? arena_strdup(a, p->cutoffs[i].value) : NULL;
    }
    rp->cutoffs = cutoffs;
    rp->n_cutoffs = p->n_cutoffs;
    rp->cutoff_per_row = p->n_cutoffs == 0 && p->n_times;
    rp->has_range = d->has_range;
    rp->oldest = d->oldest;
    rp->newest = d->newest;
    rp->null_time = d->null_time;
    rp->unreadable_time = d->unreadable_time;
    rp->held = d->held;
    rp->waiting = d->waiting;
    rp->frees = d->waiting && waits_for_own(p, &p->root);
    rp->circles = plan_holds_circles(p) && report_rows(rp) > 0;
}

/* The indexes whose want `check` names: what would make the counting, and the sweep, faster. */
static void copy_indexes(struct work *w, struct report_policy *rp, const struct plan *p)
{
    struct arena *a = w->report->arena;
    struct findings found = {.arena = a};
    struct err ignored = ERR_INIT;
    if (check_plan_indexes(p, w->store, &found, &ignored) < 0)
        return;
    for (size_t i = 0; i < found.n; i++) {
        if (found.list[i].level == FINDING_ERROR)
            continue;
        rp->indexes = arena_push(a, rp->indexes, rp->n_indexes, sizeof(*rp->indexes));
        rp->indexes[rp->n_indexes++] = found.list[i];
    }
}

/* It took longer than a statement may: what is known all the same, and what would help. */
static void not_counted(struct work *w, struct report_policy *rp, const struct plan *p, const struct due *d,
                        struct err *e)
{
    rp->least = d->least;
    rp->timed_out = e->kind == ERR_TIMEOUT;
    if (e->kind != ERR_TIMEOUT)
        return;
    AUTO(text_release) struct text limit = {0};
    span_format(p->policy->statement_timeout_us, &limit);
    err_set(e, ERR_TIMEOUT, "counting them took longer than a statement may: %s (timeouts: statement)",
            text_str(&limit));
    copy_indexes(w, rp, p);
}

static int count(struct work *w, struct report_policy *rp, const struct plan *plan, struct err *e)
{
    AUTO(due_release) struct due due;
    due_init(&due, plan);
    for (int tries = 0; w->store->ops->count(w->store, plan, &due, e) < 0;) {
        if (work_reads_again(w, &tries, e))
            continue;
        not_counted(w, rp, plan, &due, e);
        return -1;
    }
    copy_due(w, rp, plan, &due);
    if (rp->below_unknown)
        copy_indexes(w, rp, plan);
    return 0;
}

/* The policy's plan, counted; NULL: there is none, or it was not counted. */
static struct plan *count_policy(struct work *w, struct report_policy *rp, struct facts **ret_facts)
{
    AUTO(plan_free_p) struct plan *plan = work_plan(w, rp->policy, rp, ret_facts);
    struct err e = ERR_INIT;
    if (!plan)
        return NULL;
    if (count(w, rp, plan, &e) < 0 || work_partitions(w, plan, rp, &e) < 0 ||
        work_own_policy(w, plan, rp, &e) < 0) {
        work_policy_failed(w, rp, &e);
        return NULL;
    }
    if (w->options->sql) {
        AUTO(text_release) struct text sql = {0};
        work_partition_sql(w, plan, &sql);
        work_explain(w, plan, &sql);
        rp->sql = arena_strdup(w->report->arena, text_str(&sql));
    }
    struct plan *counted = plan;
    plan = NULL;
    return counted;
}

void work_count(struct work *w, struct report_policy *rp)
{
    AUTO(facts_free_p) struct facts *facts = NULL;
    plan_free(count_policy(w, rp, &facts));
}

/* --- all of them together
 * ------------------------------------------------------------------------------------ */

/* What was counted of one policy. */
struct counted {
    struct facts *facts;
    struct plan *plan; /* NULL: it was not counted */
    size_t entry;      /* of the report */
};
struct all {
    struct counted *list;
    size_t n;
};

static void all_release(struct all *a)
{
    for (size_t i = 0; i < a->n; i++) {
        plan_free(a->list[i].plan);
        facts_free(a->list[i].facts);
    }
    free(a->list);
}

static const struct expr *values_named(const struct expr *x, const char *column)
{
    const struct expr *found = NULL;
    if (x && x->kind == EXPR_IN && strcmp(x->column->name, column) == 0)
        return x;
    for (size_t i = 0; x && x->kind == EXPR_AND && i < x->n_kids && !found; i++)
        found = values_named(x->kids[i], column);
    return found;
}

static bool share_a_value(const struct expr *a, const struct expr *b)
{
    for (size_t i = 0; i < a->n_values; i++)
        for (size_t k = 0; k < b->n_values; k++)
            if (value_same(&a->values[i], &b->values[k]))
                return true;
    return false;
}

/* Rows of the same table: `rows` of one has a column that has none of the values it has in the other. */
static bool are_apart(const struct expr *a, const struct expr *b)
{
    if (!a || !b)
        return false;
    if (a->kind == EXPR_AND) {
        for (size_t i = 0; i < a->n_kids; i++)
            if (are_apart(a->kids[i], b))
                return true;
        return false;
    }
    const struct expr *other = a->kind == EXPR_IN ? values_named(b, a->column->name) : NULL;
    return other && !share_a_value(a, other);
}

static bool same_table(const struct table *a, const struct table *b)
{
    return strcmp(a->print, b->print) == 0;
}

static const struct node *child_of(const struct plan *p, const struct table *t)
{
    const struct node *found = NULL;
    for (size_t i = 0; i < p->root.n_kids; i++)
        if (same_table(p->root.kids[i].table, t)) {
            if (found)
                return NULL;
            found = &p->root.kids[i];
        }
    return found;
}

static bool same_columns(const struct column **a, const struct column **b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(a[i]->name, b[i]->name) != 0)
            return false;
    return true;
}

static bool takes_as_own(const struct plan *p, const struct table *t)
{
    return same_table(p->root.table, t) && plan_counts_alone(p);
}

/* Whether two policies can take the same row of the table: not where each takes its own rows of it, or what
 * refers to these, and the two have none of these in common. */
static bool may_share(const struct plan *a, const struct plan *b, const struct table *t)
{
    if (!same_table(a->root.table, b->root.table) || !are_apart(a->rows, b->rows))
        return true;
    if (takes_as_own(a, t) && takes_as_own(b, t))
        return false;
    const struct node *of_a = child_of(a, t), *of_b = child_of(b, t);
    return !of_a || !of_b || of_a->n_kids || of_b->n_kids || of_a->n_grow || of_b->n_grow ||
           of_a->join.n != of_b->join.n || !same_columns(of_a->join.child, of_b->join.child, of_a->join.n) ||
           !same_columns(of_a->join.parent, of_b->join.parent, of_a->join.n);
}

static int64_t rows_in(const struct work *w, const struct counted *c, const struct table *t)
{
    const struct plan *p = c->plan;
    for (size_t i = 0; p && i < p->n_slots; i++)
        if (same_table(p->slots[i], t))
            return w->report->policies[c->entry].gone[i];
    return 0;
}

/* How many rows of a table the policy adds to those that others before it take. False: at most so many. */
static bool rows_added(struct work *w, const struct all *all, size_t at, const struct table *t, int64_t *ret)
{
    const struct counted *c = &all->list[at];
    AUTO(mem_free_p) const struct plan **sharing = mem_alloc((at + 1) * sizeof(*sharing));
    struct err ignored = ERR_INIT;
    bool as_own = takes_as_own(c->plan, t);
    size_t n = 0;
    *ret = rows_in(w, c, t);
    for (size_t i = 0; i < at && *ret; i++) {
        const struct counted *other = &all->list[i];
        if (!rows_in(w, other, t) || !may_share(c->plan, other->plan, t))
            continue;
        as_own = as_own && takes_as_own(other->plan, t);
        sharing[n++] = other->plan;
    }
    return n == 0 ||
           (as_own && w->store->ops->count_beside(w->store, c->plan, sharing, n, ret, &ignored) == 0);
}

static void sum_up(struct work *w, const struct all *all)
{
    struct report *r = w->report;
    int64_t largest = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct plan *p = all->list[i].plan;
        int64_t rows, alone = 0;
        for (size_t k = 0; p && k < p->n_slots; k++) {
            alone += rows_in(w, &all->list[i], p->slots[k]);
            r->at_most |= !rows_added(w, all, i, p->slots[k], &rows);
            r->most += rows;
        }
        largest = alone > largest ? alone : largest;
    }
    r->least = r->at_most ? largest : r->most;
}

/* Where a policy was not counted, what is known of it counts for the least alone; of some others the table
 * may be the same, so the largest is it. */
static void add_uncounted(struct report *r)
{
    int64_t largest = 0;
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = &r->policies[i];
        r->not_all |= report_uncounted(p) || p->below_unknown;
        largest = p->least > largest ? p->least : largest;
    }
    r->least = largest > r->least ? largest : r->least;
}

struct lapse_report *lapse_plan(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct work w;
    int64_t started = when_monotonic_us();
    if (work_start(&w, c, o, REPORT_PLAN, "plan", true) < 0 || work_own(&w) < 0)
        return work_finish(&w, started);
    AUTO(all_release) struct all all = {.list = mem_alloc((w.contract->n_policies + 1) * sizeof(*all.list))};
    for (size_t i = 0; i < w.contract->n_policies; i++) {
        if (!work_selected(&w, &w.contract->policies[i]))
            continue;
        struct counted *new = &all.list[all.n++];
        new->entry = w.report->n_policies;
        struct report_policy *rp = report_add_policy(w.report, &w.contract->policies[i]);
        if (work_asked(&w)) {
            struct err e = ERR_INIT;
            err_set(&e, ERR_STOPPED, "not begun: asked to stop");
            work_policy_failed(&w, rp, &e);
            continue;
        }
        work_counting(&w, rp->policy);
        new->plan = count_policy(&w, rp, &new->facts);
    }
    sum_up(&w, &all);
    add_uncounted(w.report);
    return work_finish(&w, started);
}
