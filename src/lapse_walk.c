/* The facade: in which order rows of a policy are found. */
#include "lapse_parts.h"

/* It only advises: whatever is not known, the plan stays as the schema alone made it. An error that lasts is
 * met again by whatever is asked next. */
void work_walk(struct work *w, struct plan *plan, struct report_policy *rp)
{
    struct err ignored = ERR_INIT;
    struct estimate e;
    if (plan->examines || w->store->ops->estimate(w->store, plan, &e, &ignored) < 0)
        e = (struct estimate){-1, -1, -1, -1};
    plan_walk(plan, &e);
    rp->walk = plan->walk;
    rp->walk_why = plan->walk_why ? arena_strdup(w->report->arena, plan->walk_why) : NULL;
}
