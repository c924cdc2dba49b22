/* partitions: whether partitions may be dropped instead of deleted from. See partitions.h.
 *
 * A drop fires no trigger, deletes nothing that refers to the rows, and is not sent to subscribers: where any
 * of that counts, rows go one by one. */
#include "plan/partitions.h"

#include <stdio.h>
#include <string.h>

#include "plan/internal.h"

/* A local time of an unknown zone comes no later than so after the same time in UTC. */
static const int64_t FARTHEST_WEST_US = 12 * 3600 * US_PER_S;

static const char *fkey_reason(struct arena *a, const struct table *t)
{
    AUTO(text_release) struct text names = {0};
    for (size_t i = 0; i < t->n_fkeys_in; i++)
        text_addf(&names, "%s%s", i ? ", " : "", t->fkeys_in[i].child_table);
    return arena_printf(a, "foreign keys point at %s (of %s)", t->print, text_str(&names));
}

/* NULL: none. */
static const char *reason(struct making *m)
{
    const struct plan *p = m->plan;
    const struct table *t = p->root.table;
    if (p->root.n_kids || p->root.n_grow)
        return "its rows take others along (with)";
    if (p->root.n_detach)
        return "other rows are detached from its rows (detach)";
    if (p->source)
        return "each row is judged by its source (orphan)";
    if (m->policy->batch == BATCH_ALL)
        return "all rows are to go in one transaction (batch: null)";
    if (t->n_fkeys_in)
        return fkey_reason(m->arena, t);
    if (t->delete_hooks)
        return arena_printf(m->arena, "%s has triggers or rules on delete, which a drop does not fire",
                            t->print);
    return NULL;
}

static instant latest_cutoff(const struct plan *p)
{
    instant latest = p->now;
    bool any = false;
    for (size_t i = 0; i < p->n_cutoffs; i++) {
        const struct cutoff *c = &p->cutoffs[i];
        if (!c->never && (!any || c->at > latest))
            latest = c->at;
        any |= !c->never;
    }
    return latest < p->now ? latest : p->now;
}

void plan_partitions(struct making *m)
{
    struct plan *p = m->plan;
    const struct table *t = p->root.table;
    if (!m->policy->partitions.drop || !t || m->facts->drops_not || !t->ranges || !t->owned)
        return;
    p->drops_not = reason(m);
    p->drops = !p->drops_not;
    p->range_by = latest_cutoff(p);
}

void partitions_release(struct partitions *p)
{
    arena_free(p->arena);
    *p = (struct partitions){0};
}

static const struct time_column *time_named(const struct plan *p, const char *column)
{
    for (size_t i = 0; i < p->n_times; i++)
        if (strcmp(p->times[i].column->name, column) == 0)
            return &p->times[i];
    return NULL;
}

/* The end of a range of whole numbers that are times. */
static bool number_has_ended(const struct plan *p, const struct partition *x, const struct time_column *t)
{
    int64_t at, unit = t ? t->unit_us : plan_unit_of_suffix(x->column);
    if (unit && mul_i64(x->end, unit, &at))
        return at <= p->range_by;
    return !unit && x->counted_up;
}

bool partition_has_ended(const struct plan *p, const struct partition *x)
{
    const struct time_column *t = x->column ? time_named(p, x->column) : NULL;
    if (!x->column || !x->has_end)
        return false;
    switch (x->of) {
    case RANGE_TIMES:
        return x->end <= p->range_by;
    case RANGE_LOCALS:
        if (!t)
            return x->end + FARTHEST_WEST_US <= p->range_by;
        return (t->zone ? zone_instant(t->zone, x->end) : x->end) <= p->range_by;
    case RANGE_NUMBERS:
        return number_has_ended(p, x, t);
    case RANGE_OTHER:
        break;
    }
    return false;
}

bool partition_is_below(const struct partition *x, const struct partition *above)
{
    AUTO(text_release) struct text id = {0};
    text_addf(&id, " %s ", above->id);
    return strstr(x->above, text_str(&id)) != NULL;
}

bool partition_is_quick(const struct plan *p, const struct partition_look *l, struct text *words)
{
    int64_t most = p->policy->lock_timeout_us;
    if (l->took_us <= most)
        return true;
    text_addf(
        words,
        "judging its %lld rows took %.1f s, and anyone who writes to it would wait as long: timeouts.lock "
        "allows "
        "%.1f s",
        (long long)l->rows, (double)l->took_us / (double)US_PER_S, (double)most / (double)US_PER_S);
    return false;
}
