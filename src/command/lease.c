/* lease: what the commands ask of the leases of exclusive schedulers. */
#include <string.h>

#include "command/internal.h"

const struct scheduler *work_scheduler(const struct work *w, const struct policy *p)
{
    const struct contract *c = w->contract;
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (!strcmp(c->schedulers[i].name, p->scheduler))
            return &c->schedulers[i];
    return NULL;
}

const struct scheduler *work_exclusive(const struct work *w, const struct policy *p)
{
    const struct scheduler *s = work_scheduler(w, p);
    return s && s->exclusive ? s : NULL;
}

/* Why there can be no lease; NULL: there can. */
static const char *obstacle(struct work *w, const char **ret_fix)
{
    const char *why = lease_obstacle(w->store, ret_fix);
    if (!*why)
        return NULL;
    if (w->store->own.version < OWN_SINCE_LEASES)
        return why;
    *ret_fix = arena_strdup(w->report->arena, *ret_fix);
    if (!w->store->own.may_sweep && w->store->purpose && strcmp(w->store->purpose, "sweep") != 0)
        return NULL; /* this user looks on */
    return arena_printf(w->report->arena,
                        "the lease of an exclusive scheduler needs a right that this user has not: %s", why);
}

/* Said of the scheduler, once for all its policies. */
void work_lease_finding(struct work *w, const struct policy *p)
{
    const struct scheduler *s = work_exclusive(w, p);
    const char *fix, *why = s ? obstacle(w, &fix) : NULL;
    struct findings *f = &w->report->findings;
    if (!why)
        return;
    for (size_t i = 0; i < f->n; i++)
        if (!f->list[i].policy && f->list[i].at.line == s->at.line)
            return;
    findings_add(f, FINDING_ERROR, NULL, s->at, fix, "scheduler '%s': %s", s->name, why);
}

/* Without leases nothing says that this sweeper is the only one. */
static int refuse_without(struct work *w, struct report_policy *rp, const char *why, const char *fix)
{
    struct err e = ERR_INIT;
    err_set(&e, ERR_FINDINGS, "%s (%s)", why, fix);
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
    const char *fix, *why = obstacle(w, &fix);
    if (why)
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
