/* status: the commands status and history: what the database knows of schedulers and past runs, whether
 * a daemon runs or not. */
#include <string.h>

#include "command/internal.h"
#include "report/status.h"

enum { HISTORY_LAST = 20, HISTORY_MOST = 100000 };

static int start(struct work *w, const struct lapse_contract *c, const struct lapse_options *o,
                 enum report_kind kind, const char *command, struct err *e)
{
    if (work_start(w, c, o, kind, command, true) < 0 || work_own(w) < 0)
        return -1;
    if (w->store->own.version >= OWN_SINCE_RUNS)
        return 0;
    const char *fix, *why = history_obstacle(w->store, &fix);
    err_set(e, ERR_USAGE, "no history is kept: %s: %s", why, fix);
    return -1;
}

static struct lapse_report *finish(struct work *w, int64_t started, int result, const struct err *e)
{
    if (result < 0 && !w->report->error)
        work_fail(w, e);
    if (result < 0)
        w->report->kind = REPORT_ERROR;
    return work_finish(w, started);
}

/* --- past runs ------------------------------------------------------------------------------------------ */

static struct run_row *copy_run(struct arena *a, const struct run_row *row)
{
    struct run_row *copy = arena_alloc(a, sizeof(*copy));
    const char **texts[] = {&copy->scheduler, &copy->source, &copy->owner,    &copy->outcome,
                            &copy->error,     &copy->counts, &copy->contract, &copy->policies};
    *copy = *row;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        *texts[i] = *texts[i] ? arena_strdup(a, *texts[i]) : NULL;
    return copy;
}

static bool knows_scheduler(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (strcmp(c->schedulers[i].name, name) == 0)
            return true;
    return c->own && knows_scheduler(c->own, name);
}

/* Runs of one that the contract no longer has are history, too. */
static int no_such_scheduler(const struct contract *c, const char *name, struct err *e)
{
    AUTO(mem_free_p) const char **names = mem_alloc((c->n_schedulers + 1) * sizeof(*names));
    for (size_t i = 0; i < c->n_schedulers; i++)
        names[i] = c->schedulers[i].name;
    const char *near = nearest_word(name, names, c->n_schedulers);
    return err_set(e, ERR_USAGE, "there is no scheduler '%s' in %s, and the history has no run of it%s%s%s",
                   name, c->file, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int history(struct work *w, const struct lapse_options *o, struct err *e)
{
    AUTO(run_rows_release) struct run_rows found = {0};
    const char *name = o && o->n_policies ? o->policies[0] : NULL;
    int64_t most = o && o->last ? o->last : HISTORY_LAST;
    struct arena *a = w->report->arena;
    if (o && o->n_policies > 1)
        return err_set(e, ERR_USAGE, "name one scheduler, or none for all");
    if (most < 1 || most > HISTORY_MOST)
        return err_set(e, ERR_USAGE, "--last is a number from 1 to %d", HISTORY_MOST);
    if (w->store->ops->own->runs(w->store, name, most, &found, e) < 0)
        return -1;
    if (name && !found.n && !knows_scheduler(w->contract, name))
        return no_such_scheduler(w->contract, name, e);
    struct run_rows *runs = arena_alloc(a, sizeof(*runs));
    runs->list = arena_alloc(a, (found.n + 1) * sizeof(*runs->list));
    for (; runs->n < found.n; runs->n++)
        runs->list[runs->n] = *copy_run(a, &found.list[runs->n]);
    w->report->runs = runs;
    return 0;
}

struct lapse_report *lapse_history(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct work w;
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    const struct lapse_options stop = work_only_stop(o);
    int r = start(&w, c, &stop, REPORT_HISTORY, "history", &e);
    return finish(&w, started, r < 0 ? r : history(&w, o, &e), &e);
}

/* --- schedulers ----------------------------------------------------------------------------------------- */

/* What the database knows of all of them. */
struct known {
    struct run_rows last, daemon;
    struct run_totals totals;
    struct lease_rows leases;
};

static void known_release(struct known *k)
{
    run_rows_release(&k->last);
    run_rows_release(&k->daemon);
    run_totals_release(&k->totals);
    lease_rows_release(&k->leases);
}

static int read_known(struct work *w, struct known *k, struct err *e)
{
    const struct own_ops *own = w->store->ops->own;
    return own->last_runs(w->store, false, &k->last, e) < 0 ||
                   own->last_runs(w->store, true, &k->daemon, e) < 0 ||
                   own->run_totals(w->store, &k->totals, e) < 0 || own->leases(w->store, &k->leases, e) < 0
               ? -1
               : 0;
}

static const struct run_row *run_of(struct arena *a, const struct run_rows *all, const char *scheduler)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->list[i].scheduler, scheduler) == 0)
            return copy_run(a, &all->list[i]);
    return NULL;
}

static const char *ticks_words(struct arena *a, const struct scheduler *s)
{
    AUTO(text_release) struct text t = {0};
    if (s->cron)
        text_addf(&t, "cron %s", s->cron);
    else {
        text_add(&t, "every ");
        span_format(s->every.us, &t);
    }
    if (s->cron && strcmp(s->timezone, "UTC") != 0)
        text_addf(&t, " (%s)", s->timezone);
    if (s->window_from >= 0)
        text_addf(&t, ", %02d:%02d-%02d:%02d", s->window_from / 60, s->window_from % 60, s->window_to / 60,
                  s->window_to % 60);
    return arena_strdup(a, text_str(&t));
}

static void add_lease(struct work *w, const struct known *k, struct status_scheduler *s)
{
    for (size_t i = 0; s->scheduler->exclusive && i < k->leases.n; i++)
        if (strcmp(k->leases.list[i].scheduler, s->scheduler->name) == 0) {
            struct lease_row *copy = arena_alloc(w->report->arena, sizeof(*copy));
            *copy = k->leases.list[i].row;
            s->lease = copy;
            s->lease_expired = k->leases.list[i].expired;
        }
}

static void add_total(struct work *w, const struct known *k, struct status_scheduler *s)
{
    for (size_t i = 0; i < k->totals.n; i++)
        if (strcmp(k->totals.list[i].scheduler, s->scheduler->name) == 0) {
            s->total = k->totals.list[i];
            s->total.scheduler = s->scheduler->name;
            s->total.error = s->total.error ? arena_strdup(w->report->arena, s->total.error) : NULL;
        }
}

/* Each brake once, however many policies it stops. */
static void push_brake(struct arena *a, const struct brake *all, size_t n_all, const char *name,
                       const struct brake **list, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp((*list)[i].name, name) == 0)
            return;
    for (size_t i = 0; i < n_all; i++) {
        if (strcmp(all[i].name, name) != 0)
            continue;
        struct brake *grown = arena_push(a, (struct brake *)*list, *n, sizeof(*grown));
        grown[*n] = all[i];
        grown[(*n)++].name = arena_strdup(a, name);
        *list = grown;
    }
}

static void add_brake(struct work *w, const char *name, struct status_scheduler *s)
{
    const struct brakes *b = &w->brakes;
    struct arena *a = w->report->arena;
    push_brake(a, b->list, b->n, name, &s->brakes, &s->n_brakes);
    push_brake(a, b->released, b->n_released, name, &s->released, &s->n_released);
}

static int add_policy(struct work *w, const struct policy *p, struct status_scheduler *s, struct err *e)
{
    struct status_fuse fuse = {.policy = p->name};
    if (strcmp(p->scheduler, s->scheduler->name) != 0)
        return 0;
    s->n_policies++;
    add_brake(w, p->name, s);
    if (!p->limits)
        return 0;
    if (w->store->ops->own->fuse_read(w->store, p->name, &fuse.row, e) < 0)
        return -1;
    if (fuse.row.acked) {
        s->acks = arena_push(w->report->arena, s->acks, s->n_acks, sizeof(*s->acks));
        s->acks[s->n_acks++] = fuse;
    }
    if (!fuse.row.there || fuse.row.acked)
        return 0;
    s->fuses = arena_push(w->report->arena, s->fuses, s->n_fuses, sizeof(*s->fuses));
    s->fuses[s->n_fuses++] = fuse;
    return 0;
}

static int add_recent(struct work *w, struct status_scheduler *s, struct err *e)
{
    AUTO(run_rows_release) struct run_rows found = {0};
    if (w->store->ops->own->runs(w->store, s->scheduler->name, STATUS_RECENT_MOST, &found, e) < 0)
        return -1;
    s->n_recent = found.n;
    for (size_t i = 0; i < found.n; i++)
        s->recent[found.n - 1 - i] = found.list[i].rows;
    return 0;
}

/* Late is what should have ticked twice since a daemon last ran it. One that no daemon ever ran is not late:
 * it may be swept by hand only. */
static int judge_beat(struct work *w, struct status_scheduler *s, struct err *e)
{
    AUTO(ticker_free_p) struct ticker *t = NULL;
    s->next = NEVER;
    if (!s->scheduler->enabled)
        return 0;
    if (ticker_open(s->scheduler, &t, e) < 0)
        return -1;
    if (!s->daemon) {
        if (s->scheduler->cron)
            s->next = ticker_first(t, w->now, NULL);
        return 0;
    }
    instant last = s->daemon->started, due = ticker_next(t, last, last);
    instant second = due == NEVER ? NEVER : ticker_next(t, due, due);
    if (second != NEVER && w->now >= second)
        s->late_us = w->now - due;
    /* An interval makes up for what was missed, cron waits for its next time. */
    s->next = s->scheduler->cron && due <= w->now ? ticker_next(t, last, w->now) : due;
    return 0;
}

static int add_scheduler(struct work *w, const struct contract *c, const struct scheduler *scheduler,
                         const struct known *k, struct status_scheduler *ret, struct err *e)
{
    struct arena *a = w->report->arena;
    *ret = (struct status_scheduler){.scheduler = scheduler,
                                     .built_in = !c->own,
                                     .ticks = ticks_words(a, scheduler),
                                     .last = run_of(a, &k->last, scheduler->name),
                                     .daemon = run_of(a, &k->daemon, scheduler->name)};
    add_lease(w, k, ret);
    add_total(w, k, ret);
    add_brake(w, "", ret);
    add_brake(w, scheduler->name, ret);
    for (size_t i = 0; i < c->n_policies; i++)
        if (add_policy(w, &c->policies[i], ret, e) < 0)
            return -1;
    return add_recent(w, ret, e) < 0 ? -1 : judge_beat(w, ret, e);
}

/* Schedulers that the contract had once. */
static void say_former(struct work *w, const struct known *k)
{
    AUTO(text_release) struct text names = {0};
    for (size_t i = 0; i < k->totals.n; i++)
        if (!knows_scheduler(w->contract, k->totals.list[i].scheduler))
            text_addf(&names, "%s'%s'", names.len ? ", " : "", k->totals.list[i].scheduler);
    if (names.len)
        work_remark(w, arena_printf(w->report->arena,
                                    "the history has runs of schedulers that are not in the contract: %s",
                                    text_str(&names)));
}

static int status(struct work *w, struct err *e)
{
    AUTO(known_release) struct known k = {0};
    const struct contract *contracts[] = {w->contract, w->contract->own};
    struct status *s = arena_alloc(w->report->arena, sizeof(*s));
    size_t most = w->contract->n_schedulers + w->contract->own->n_schedulers;
    if (read_known(w, &k, e) < 0)
        return -1;
    s->list = arena_alloc(w->report->arena, most * sizeof(*s->list));
    for (size_t i = 0; i < COUNT_OF(contracts); i++)
        for (size_t j = 0; j < contracts[i]->n_schedulers; j++)
            if (add_scheduler(w, contracts[i], &contracts[i]->schedulers[j], &k, &s->list[s->n++], e) < 0)
                return -1;
    w->report->status = s;
    say_former(w, &k);
    if (*w->store->own.lacks_runs && w->store->own.may_sweep)
        work_history_remark(w);
    if (w->store->own.version < OWN_SINCE_WHO)
        work_remark(w, arena_printf(w->report->arena,
                                    "lapse's own tables are version %d: who paused, resumed or acknowledged, "
                                    "and cutoffs and contracts of runs, are not kept (run lapse install)",
                                    w->store->own.version));
    return 0;
}

struct lapse_report *lapse_status(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct work w;
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    const struct lapse_options stop = work_only_stop(o);
    int r = start(&w, c, &stop, REPORT_STATUS, "status", &e);
    return finish(&w, started, r < 0 ? r : status(&w, &e), &e);
}
