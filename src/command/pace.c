/* pace: what check says of how hard policies may push: keys that mean nothing here, and limits that
 * nobody could tell to be kept. */
#include <string.h>

#include "command/internal.h"

static bool sets_lag(const struct policy *p)
{
    return p->pace && (p->pace->lag.kind == SPAN_TIME || p->pace->lag_bytes >= 0);
}

static void finding(struct work *w, const struct policy *p, enum finding_level level, const char *fix,
                    const char *what)
{
    findings_add(&w->report->findings, level, p->name, p->pace->at, fix, "%s", what);
}

/* One transaction has no next one. */
static void check_whole(struct work *w, const struct policy *p)
{
    if (p->batch == BATCH_ALL && p->pace &&
        (p->pace->target_set || p->pace->duty > 0 || p->pace->rows_per_second > 0))
        finding(w, p, FINDING_WARNING, "give it a batch, or take them out",
                "'target', 'duty' and 'rows_per_second' mean nothing with batch: null, where all goes in one "
                "transaction");
}

static void check_lag(struct work *w, const struct policy *p, const struct pressure *said)
{
    struct arena *a = w->report->arena;
    const char *out = "take 'lag' and 'lag_bytes' out";
    if (said->no_lag)
        finding(w, p, FINDING_WARNING, out,
                arena_printf(a, "'lag' and 'lag_bytes' mean nothing here: %s", said->no_lag));
    else if (said->unknowable)
        finding(w, p, FINDING_ERROR, out,
                arena_printf(a, "'lag' and 'lag_bytes' cannot be kept: %s", said->unknown));
    else if (said->lag_bytes < 0)
        finding(w, p, said->fix[0] ? FINDING_ERROR : FINDING_WARNING, arena_strdup(a, said->fix),
                arena_printf(a, "a sweep would wait, and go on waiting: %s", said->unknown));
}

/* Not asked for by the contract, but heeded where it can be. */
static void note_unseen(struct work *w, const struct pressure *said)
{
    struct findings *f = &w->report->findings;
    const char *what = arena_printf(w->report->arena, "%s; sweeps ignore it then", said->unknown);
    if (said->lag_bytes >= 0 || !said->replicas)
        return;
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->list[i].what, what) == 0)
            return;
    findings_add(f, FINDING_NOTE, NULL, (struct place){0}, arena_strdup(w->report->arena, said->fix), "%s",
                 what);
}

void work_pace_finding(struct work *w, const struct policy *p)
{
    struct err e = ERR_INIT;
    struct pressure said;
    check_whole(w, p);
    if (w->store->ops->pressure(w->store, &said, &e) < 0) {
        if (sets_lag(p))
            finding(w, p, FINDING_WARNING, "",
                    arena_printf(w->report->arena, "how replicas fare could not be asked: %s", e.text));
        return;
    }
    if (sets_lag(p))
        check_lag(w, p, &said);
    else
        note_unseen(w, &said);
}
