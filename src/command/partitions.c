/* partitions: what plan and sweep say of partitions that are dropped instead of deleted from. */
#include "command/internal.h"

static void add(struct work *w, struct report_policy *rp, const char *name, int64_t rows, const char *why)
{
    struct arena *a = w->report->arena;
    struct partition_outcome *list = arena_push(a, (void *)rp->partitions, rp->n_partitions, sizeof(*list));
    list[rp->n_partitions++] =
        (struct partition_outcome){arena_strdup(a, name), rows, why && *why ? arena_strdup(a, why) : NULL};
    rp->partitions = list;
}

/* As the sweep would find it now, without budget and limits. -1: the database failed. */
static int look_at(struct work *w, const struct plan *plan, const struct partition *x,
                   struct report_policy *rp, bool *ret_drop, struct err *e)
{
    AUTO(text_release) struct text words = {0};
    struct partition_look l;
    *ret_drop = false;
    if (w->store->ops->partitions->look(w->store, plan, x, &l, e) < 0)
        return -1;
    if (!l.whole)
        return 0;
    if (x->why)
        text_add(&words, x->why);
    else
        partition_is_quick(plan, &l, &words);
    add(w, rp, x->print, l.rows, text_str(&words));
    *ret_drop = !words.len;
    return 0;
}

/* The only ones that are not looked at are those that would go with another. */
int work_partitions(struct work *w, const struct plan *plan, struct report_policy *rp, struct err *e)
{
    AUTO(partitions_release) struct partitions all = {0};
    rp->drops_not = plan->drops_not ? arena_strdup(w->report->arena, plan->drops_not) : NULL;
    if (!plan->drops)
        return 0;
    if (w->store->ops->partitions->list(w->store, plan, &all, e) < 0)
        return -1;
    AUTO(mem_free_p) bool *drops = mem_alloc((all.n + 1) * sizeof(*drops));
    for (size_t i = 0; i < all.n; i++) {
        bool along = false;
        for (size_t k = 0; k < i && !along; k++)
            along = drops[k] && partition_is_below(&all.list[i], &all.list[k]);
        if (!along && look_at(w, plan, &all.list[i], rp, &drops[i], e) < 0)
            return -1;
    }
    return 0;
}

void work_partition_sql(struct work *w, const struct plan *plan, struct text *out)
{
    const struct partition any = {.schema = plan->root.table->schema,
                                  .name = "the_partition",
                                  .up_schema = plan->root.table->schema,
                                  .up_name = plan->root.table->name};
    if (plan->drops)
        w->store->ops->partitions->explain(w->store, plan, &any, out);
}

void work_partition_outcomes(struct work *w, struct report_policy *rp, const struct outcome *o)
{
    for (size_t i = 0; i < o->n_partitions; i++)
        add(w, rp, o->partitions[i].name, o->partitions[i].rows, o->partitions[i].why);
}
