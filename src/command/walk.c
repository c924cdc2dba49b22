/* The facade: in which order rows of a policy are found. */
#include "command/internal.h"

/* See sweep/pieces.c. */
static bool may_end_early(const struct scheduler *s)
{
    return s->budget_rows > 0 || s->budget_batches > 0 || s->budget_time.kind == SPAN_TIME ||
           s->window_from >= 0;
}

static void take_pieces(struct work *w, struct plan *plan)
{
    struct err ignored = ERR_INIT;
    if (!w->store->ops->pieces || may_end_early(work_scheduler(w, plan->policy)) ||
        !plan_may_go_by_pieces(plan) ||
        w->store->ops->pieces(w->store, plan, plan->arena, &plan->pieces, &ignored) < 0)
        plan->pieces = (struct table_pieces){0};
}

void work_explain(struct work *w, const struct plan *plan, struct text *out)
{
    const struct table_pieces *all = &plan->pieces;
    if (!all->n) {
        w->store->ops->explain(w->store, plan, out);
        return;
    }
    AUTO(arena_free_p) struct arena *a = arena_new();
    text_addf(out, "-- in one partition after the other, %zu of them, here %s\n", all->n, all->list[0].print);
    w->store->ops->explain(w->store, plan_of_piece(plan, &all->list[0], a), out);
}

/* It only advises: whatever is not known, the plan stays as the schema alone made it. An error that lasts is
 * met again by whatever is asked next. */
void work_walk(struct work *w, struct plan *plan, struct report_policy *rp)
{
    struct err ignored = ERR_INIT;
    struct estimate e;
    if (plan->examines || w->store->ops->estimate(w->store, plan, &e, &ignored) < 0)
        e = (struct estimate){-1, -1, -1, -1};
    plan_walk(plan, &e);
    take_pieces(w, plan);
    rp->walk = plan->pieces.n ? WALK_PIECES : plan->walk;
    if (plan->pieces.n)
        rp->walk_why = arena_printf(w->report->arena, "partition by partition, in %zu of %zu", plan->pieces.n,
                                    plan->pieces.of);
    else
        rp->walk_why = plan->walk_why ? arena_strdup(w->report->arena, plan->walk_why) : NULL;
}
