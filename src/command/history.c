/* history: what a command that deletes writes into the history. */
#include <string.h>

#include "command/internal.h"

void history_add_policy(struct history *h, const struct report_policy *rp)
{
    const struct history_part part = {.policy = rp->policy->name,
                                      .has_cutoff = rp->has_latest,
                                      .cutoff = rp->latest,
                                      .outcome = outcome_name(rp->kind),
                                      .error = rp->error,
                                      .labels = rp->labels,
                                      .gone = rp->gone,
                                      .n = rp->n_tables,
                                      .skipped = (int64_t)rp->n_skipped,
                                      .unknown = rp->unknown,
                                      .batches = rp->batches};
    history_add(h, &part);
}

/* --- a sweep -------------------------------------------------------------------------------------------- */

static struct history *find(struct work *w, const struct policy *p)
{
    for (size_t i = 0; i < w->n_histories; i++)
        if (!strcmp(w->histories[i].row.scheduler, p->scheduler))
            return &w->histories[i];
    return NULL;
}

/* A database that does not even say what time it is cannot be written to either; this process's clock will do
 * for what is said of that. */
static instant clock_now(struct work *w)
{
    struct err e = ERR_INIT;
    instant now;
    return w->store->ops->now(w->store, &now, &e) < 0 ? when_now() : now;
}

void work_history_open(struct work *w, const struct policy *p)
{
    char owner[200], hash[POLICY_HASH_SIZE];
    if (!p->enabled || find(w, p) || !work_keeps_history(w))
        return;
    own_process(owner, sizeof(owner));
    w->histories = mem_grow(w->histories, w->n_histories + 1, sizeof(*w->histories));
    history_open(&w->histories[w->n_histories++], w->store, p->scheduler, "sweep",
                 w->lease ? w->lease->owner : owner, clock_now(w));
    history_contract(&w->histories[w->n_histories - 1],
                     policies_hash(w->contract->policies, w->contract->n_policies, hash));
}

void work_history_begin(struct work *w, const struct policy *p)
{
    struct history *h = find(w, p);
    if (h)
        history_begin(h);
}

void work_history_add(struct work *w, const struct report_policy *rp)
{
    struct history *h = find(w, rp->policy);
    if (h)
        history_add_policy(h, rp);
}

void work_history_end(struct work *w, const struct policy *p)
{
    struct history *h = find(w, p);
    if (!h)
        return;
    history_end(h, clock_now(w));
    if (h->trouble.kind != ERR_NONE)
        work_remark(w, arena_printf(w->report->arena, "the history of scheduler '%s' has a gap: %s",
                                    p->scheduler, h->trouble.text));
}

void work_histories_release(struct work *w)
{
    for (size_t i = 0; i < w->n_histories; i++)
        history_release(&w->histories[i]);
    mem_free_p(&w->histories);
    w->n_histories = 0;
}

bool work_keeps_history(const struct work *w)
{
    const char *fix;
    return !*history_obstacle(w->store, &fix);
}

void work_history_remark(struct work *w)
{
    AUTO(text_release) struct text t = {0};
    history_excuse(w->store, &t);
    if (t.len)
        work_remark(w, arena_strdup(w->report->arena, text_str(&t)));
}
