/* lapse_lease: what the commands ask of the leases of exclusive schedulers. */
#include <string.h>

#include "lapse_parts.h"

const struct scheduler *work_exclusive(const struct work *w, const struct policy *p)
{
    const struct contract *c = w->contract;
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (!strcmp(c->schedulers[i].name, p->scheduler))
            return c->schedulers[i].exclusive ? &c->schedulers[i] : NULL;
    return NULL;
}

void work_lease_finding(struct work *w, const struct policy *p)
{
    const char *fix, *why = lease_obstacle(w->store, &fix);
    if (!work_exclusive(w, p) || !*why)
        return;
    if (w->store->own.version < OWN_SINCE_LEASES)
        findings_add(&w->report->findings, FINDING_ERROR, p->name, p->at, fix, "%s", why);
    else
        findings_add(&w->report->findings, FINDING_ERROR, p->name, p->at, fix,
                     "the lease of an exclusive scheduler needs a right that this user has not: %s", why);
}

/* Without leases nothing says that this sweeper is the only one. */
static int refuse_without(struct work *w, struct report_policy *rp, const char *why, const char *fix)
{
    struct err e = ERR_INIT;
    bool lacks = w->store->own.version >= OWN_SINCE_LEASES;
    err_set(&e, ERR_FINDINGS, "%s%s (%s)",
            lacks ? "the lease of an exclusive scheduler needs a right that this user has not: " : "", why,
            fix);
    work_policy_failed(w, rp, &e);
    rp->kind = OUTCOME_REFUSED;
    return -1;
}

static void copy_holder(struct work *w, const struct lease *l, struct report_policy *rp)
{
    struct lease_row *copy = arena_alloc(w->report->arena, sizeof(*copy));
    *copy = l->row;
    rp->holder = copy;
    rp->kind = OUTCOME_HELD;
}

int work_lease(struct work *w, struct report_policy *rp)
{
    struct err e = ERR_INIT;
    const char *fix, *why = lease_obstacle(w->store, &fix);
    if (*why)
        return refuse_without(w, rp, why, fix);
    if (lease_take(w->lease, &e) == 0)
        return 0;
    work_policy_failed(w, rp, &e);
    if (e.kind == ERR_HELD)
        copy_holder(w, w->lease, rp);
    return -1;
}

void work_lease_drop(struct work *w)
{
    struct err e = ERR_INIT;
    if (w->lease && lease_drop(w->lease, &e) < 0)
        work_remark(
            w, arena_printf(w->report->arena, "the lease of '%s' was not handed over and ends by itself: %s",
                            w->lease->scheduler, e.text));
    w->lease = NULL;
}
