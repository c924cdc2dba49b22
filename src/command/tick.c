/* tick: one tick of one scheduler. See tick.h.
 *
 * A tick that finds nothing to do should cost the database next to nothing: the clock, the brakes, and one
 * indexed probe per policy, all of a stretch of policies in one transaction. The probe is made from facts
 * that an earlier tick read. Whatever is deleted goes the whole way of a sweep instead: facts, check, plan,
 * sweep. */
#include "command/tick.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const int64_t FACTS_LAST_US = 600 * US_PER_S; /* then they are read again, whatever a probe says */
static const int64_t LOOK_LASTS_US = 20 * US_PER_MS; /* probes share a transaction for so long */
static const int64_t REST_US = 120 * US_PER_S;       /* a pause that is worth a new connection */
static const int64_t KEEP_AGAIN_US = US_PER_S;       /* a lease that could not be renewed */
static const int64_t RENEW_US = 10 * US_PER_S;       /* a connection over which ticks fail */

/* What is kept of a policy between ticks. */
struct known {
    const struct policy *policy;
    struct facts *facts; /* NULL: none; only of policies whose probe is cheap */
    int64_t read_us;     /* by the monotonic clock */
    int64_t stamp;       /* of the schema, before they were read */
    bool calm;           /* the last tick had nothing to complain of */
};

struct hand {
    const struct contract *contract;
    const struct scheduler *scheduler;
    struct known *known; /* in the order of the file */
    size_t n_known;
    struct store *store; /* NULL: not connected */
    bool reading;        /* how it was opened … */
    int64_t opened_us;   /* … and when */
    struct lease lease;  /* exclusive schedulers */
    int64_t looked_us;   /* when lapse's own tables were last looked at; 0: not on this connection */
    bool calm;           /* the last tick as a whole had nothing to complain of … */
    bool failed;         /* … or failed, though the database was there */
    atomic_bool interrupted;
};

/* One tick at work. */
struct tick {
    struct hand *hand;
    const struct tick_options *options;
    struct work work;
    struct history history; /* nothing with observe */
    int64_t stamp;          /* of the schema as the tick began; -1: the engine has none */
    int64_t clock_us;       /* when the database's clock was read, by the monotonic one */
    int64_t look_since_us;  /* a transaction for probes is open since then; 0: none is */
    int64_t look_timeout_us;
    const char *why_not;            /* the rest of the policies is not begun; NULL: it is */
    const struct report_policy *at; /* the one that is swept */
};

/* --- the hand ------------------------------------------------------------------------------------------- */

static size_t policies_of(const struct contract *c, const struct scheduler *s, struct known *known)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_policies; i++) {
        if (strcmp(c->policies[i].scheduler, s->name) != 0)
            continue;
        if (known)
            known[n].policy = &c->policies[i];
        n++;
    }
    return n;
}

struct hand *hand_new(const struct contract *c, const struct scheduler *s)
{
    struct hand *h = mem_alloc(sizeof(*h));
    h->contract = c;
    h->scheduler = s;
    h->n_known = policies_of(c, s, NULL);
    h->known = mem_alloc(h->n_known * sizeof(*h->known));
    policies_of(c, s, h->known);
    lease_init(&h->lease, NULL, s->name, s->lease.us);
    atomic_init(&h->interrupted, false);
    return h;
}

static void disconnect(struct hand *h)
{
    store_close(h->store);
    h->store = h->lease.store = NULL;
    h->lease.held = false;
    h->looked_us = 0;
}

/* Where ticks fail, the database may be another by now: one that others took over from goes on answering,
 * and refuses. The lease is not given up: if it is not ours there, the fence says so. */
static int renew(struct hand *h, struct err *e)
{
    if (!h->store || !h->failed || when_monotonic_us() - h->opened_us < RENEW_US)
        return 0;
    h->looked_us = 0;
    h->opened_us = when_monotonic_us();
    return h->store->ops->reconnect(h->store, e);
}

static void hand_over(struct hand *h)
{
    struct err e = ERR_INIT;
    if (h->store)
        lease_drop(&h->lease, &e); /* else it ends by itself */
}

void hand_free(struct hand *h)
{
    if (!h)
        return;
    atomic_store(&h->interrupted, false);
    hand_over(h);
    disconnect(h);
    for (size_t i = 0; i < h->n_known; i++)
        facts_free(h->known[i].facts);
    free(h->known);
    free(h);
}

bool hand_leads(const struct hand *h)
{
    return h->lease.held && when_monotonic_us() - h->lease.renewed_us < h->lease.us;
}

/* Where the database is not there, the lease may still be ours when it is back: the fence decides. */
int64_t hand_keep(struct hand *h)
{
    struct err e = ERR_INIT;
    if (h->lease.held && lease_keep(&h->lease, &e) < 0 && e.kind != ERR_LEASE)
        return KEEP_AGAIN_US;
    return lease_rest_us(&h->lease);
}

void hand_rest(struct hand *h, int64_t us)
{
    if (us >= REST_US && !h->lease.held)
        disconnect(h);
}

void hand_interrupt(struct hand *h)
{
    atomic_store(&h->interrupted, true);
}

static bool asked_to_stop(void *tick)
{
    const struct tick_options *o = ((struct tick *)tick)->options;
    return o->stop && o->stop(o->context);
}

/* --- what a tick begins with ---------------------------------------------------------------------------- */

static int connect(struct tick *t, struct err *e)
{
    struct hand *h = t->hand;
    if (h->store && h->reading != t->options->observe)
        disconnect(h);
    if (renew(h, e) < 0)
        return -1;
    if (!h->store) {
        if (store_open(h->contract->store, t->options->observe, &h->store, e) < 0)
            return -1;
        h->reading = t->options->observe;
        h->opened_us = when_monotonic_us();
        h->store->own_schema = h->contract->own_schema;
        h->store->own_owner = h->contract->own_owner;
        h->store->interrupted = &h->interrupted;
        h->store->own_goes_on = true;
        h->lease.store = h->store;
    }
    t->work.store = h->store;
    return 0;
}

/* Tables that are all there and all right are looked at again now and then; until they are, always. */
static bool own_is_known(const struct hand *h)
{
    const struct own_state *own = &h->store->own;
    return h->looked_us && h->calm && own->version == OWN_VERSION && !own->lacks[0] && !own->lacks_lease[0] &&
           when_monotonic_us() - h->looked_us < FACTS_LAST_US;
}

static int read_own(struct tick *t, struct err *e)
{
    struct hand *h = t->hand;
    struct store *s = h->store;
    if (!own_is_known(h)) {
        h->looked_us = 0;
        if (s->ops->own->look(s, e) < 0)
            return -1;
        h->looked_us = when_monotonic_us();
    }
    return s->own.version ? s->ops->own->brakes(s, &t->work.brakes, e) : 0;
}

static int read_clock_and_own(struct tick *t, struct err *e)
{
    struct store *s = t->work.store;
    if (s->ops->now(s, &t->work.now, e) < 0)
        return -1;
    t->clock_us = when_monotonic_us();
    if (s->ops->schema_stamp(s, &t->stamp, e) < 0)
        return -1;
    return read_own(t, e);
}

/* The first statements find out whether the connection is still there. */
static int get_ready(struct tick *t, struct err *e)
{
    if (connect(t, e) < 0)
        return -1;
    if (read_clock_and_own(t, e) == 0)
        return 0;
    t->hand->looked_us = 0;
    if (e->kind != ERR_LOST || asked_to_stop(t) || t->work.store->ops->reconnect(t->work.store, e) < 0)
        return -1;
    return read_clock_and_own(t, e);
}

/* --- probes --------------------------------------------------------------------------------------------- */

static void end_look(struct tick *t)
{
    if (t->look_since_us)
        t->work.store->ops->look_end(t->work.store);
    t->look_since_us = 0;
}

/* Probes follow each other in one transaction, as long as it stays a short one. */
static int begin_look(struct tick *t, const struct policy *p, struct err *e)
{
    int64_t now = when_monotonic_us();
    if (t->look_since_us &&
        (now - t->look_since_us >= LOOK_LASTS_US || t->look_timeout_us != p->statement_timeout_us))
        end_look(t);
    if (t->look_since_us)
        return 0;
    if (t->work.store->ops->look_begin(t->work.store, p->statement_timeout_us, e) < 0)
        return -1;
    t->look_since_us = now;
    t->look_timeout_us = p->statement_timeout_us;
    return 0;
}

static bool probe_says_no(struct tick *t, const struct plan *plan)
{
    struct err ignored = ERR_INIT; /* the fresh look meets it again */
    bool due = true;
    if (begin_look(t, plan->policy, &ignored) == 0 &&
        t->work.store->ops->probe(t->work.store, plan, &due, &ignored) == 0)
        return !due;
    end_look(t);
    return false;
}

/* Where the engine says that its schema has not changed, facts do not age. */
static bool is_known(const struct tick *t, const struct known *k)
{
    if (!k->facts || !k->calm)
        return false;
    return t->stamp >= 0 ? k->stamp == t->stamp : when_monotonic_us() - k->read_us < FACTS_LAST_US;
}

/* Asked with facts from an earlier tick. false: something is due, or that is not known. */
static bool nothing_due(struct tick *t, const struct known *k, struct report_policy *rp)
{
    if (!is_known(t, k))
        return false;
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    struct findings found = {.arena = scratch};
    AUTO(plan_free_p) struct plan *plan = plan_make(k->policy, k->facts, t->work.now, &found);
    if (!plan || found.errors || !probe_says_no(t, plan))
        return false;
    work_names(&t->work, rp, plan);
    return true;
}

/* --- one policy ----------------------------------------------------------------------------------------- */

static void on_begin(void *tick, const struct plan *p)
{
    (void)p;
    history_begin(&((struct tick *)tick)->history);
}

static void on_batch(void *tick, const struct plan *p, const struct outcome *so_far)
{
    (void)p;
    const struct tick_options *o = ((struct tick *)tick)->options;
    if (o->batch)
        o->batch(o->context, ((struct tick *)tick)->at, so_far->batch_gone, so_far->batch_us);
}

static void on_pace(void *tick, const struct plan *p, const struct outcome *so_far)
{
    (void)p;
    const struct tick_options *o = ((struct tick *)tick)->options;
    if (o->paced)
        o->paced(o->context, ((struct tick *)tick)->at, &so_far->pace);
}

/* Everything anew: what goes is decided by what is there now. */
static void sweep_fresh(struct tick *t, struct known *k, struct report_policy *rp)
{
    struct work *w = &t->work;
    struct facts *facts = NULL;
    end_look(t);
    AUTO(plan_free_p) struct plan *plan = work_plan(w, k->policy, rp, &facts);
    t->at = rp;
    if (plan)
        work_sweep(w, rp, plan,
                   (struct sweep_options){.stop = asked_to_stop,
                                          .begins = on_begin,
                                          .progress = on_batch,
                                          .paced = on_pace,
                                          .context = t,
                                          .until = t->options->until == NEVER ? 0 : t->options->until});
    facts_free(k->facts);
    k->facts = plan && !plan->examines ? facts : NULL;
    k->read_us = when_monotonic_us();
    k->stamp = t->stamp;
    if (!k->facts) {
        plan_free_p(&plan);
        facts_free(facts);
    }
}

static void leave_out(struct tick *t, struct report_policy *rp, enum outcome_kind kind, enum err_kind why,
                      const char *words)
{
    struct err e = ERR_INIT;
    err_set(&e, why, "%s", words);
    work_policy_failed(&t->work, rp, &e);
    rp->kind = kind;
}

/* true: the policy is not begun, and its entry says why. */
static bool is_left_out(struct tick *t, struct report_policy *rp)
{
    const struct policy *p = rp->policy;
    const struct brake *brake = brakes_on(&t->work.brakes, p->name, p->scheduler);
    AUTO(text_release) struct text words = {0};
    if (!p->enabled) {
        rp->kind = OUTCOME_DISABLED;
    } else if (t->why_not) {
        leave_out(t, rp, OUTCOME_STOPPED, ERR_STOPPED, t->why_not);
    } else if (asked_to_stop(t)) {
        leave_out(t, rp, OUTCOME_STOPPED, ERR_STOPPED, "not begun: asked to stop");
    } else if (t->options->until != NEVER && when_now() >= t->options->until) {
        leave_out(t, rp, OUTCOME_WINDOW, ERR_WINDOW, "not begun: the window closed");
    } else if (brake && !t->options->observe) {
        brake_words(brake, &words);
        leave_out(t, rp, OUTCOME_PAUSED, ERR_PAUSED, text_str(&words));
    } else {
        return false;
    }
    return true;
}

static void work_on(struct tick *t, struct known *k, struct report_policy *rp)
{
    if (t->options->observe)
        work_count(&t->work, rp);
    else if (!nothing_due(t, k, rp))
        sweep_fresh(t, k, rp);
}

/* The connection broke before anything was deleted, and the database is there. */
static bool only_connection_broke(struct tick *t, const struct report_policy *rp)
{
    struct err ignored = ERR_INIT;
    if (!rp->unreachable || rp->batches || rp->unknown || asked_to_stop(t))
        return false;
    end_look(t);
    return t->work.store->ops->reconnect(t->work.store, &ignored) == 0;
}

/* Once more over a new connection. If that breaks as well, it is what this policy asks of the database that
 * the database does not bear: the policy fails, and the others have their turn. */
static void work_on_over_breaks(struct tick *t, struct known *k, struct report_policy *rp)
{
    struct report *r = t->work.report;
    struct report_policy before = *rp;
    struct err e = ERR_INIT;
    int exit = r->exit;
    work_on(t, k, rp);
    if (!only_connection_broke(t, rp))
        return;
    *rp = before;
    r->exit = exit;
    work_on(t, k, rp);
    if (!only_connection_broke(t, rp))
        return;
    r->exit = exit;
    err_set(&e, ERR_DATABASE, "%s", rp->error);
    work_policy_failed(&t->work, rp, &e);
}

static void do_policy(struct tick *t, struct known *k, struct report_policy *rp)
{
    work_on_over_breaks(t, k, rp);
    k->calm = rp->kind == OUTCOME_DONE && !rp->n_skipped && !rp->unknown;
    if (t->work.report->exit == LAPSE_UNREACHABLE)
        t->why_not = "not begun: the database is not there";
    else if (t->work.lease && !t->work.lease->held)
        t->why_not = "not begun: the lease was lost to another";
}

static void note(struct tick *t, const struct report_policy *rp)
{
    if (!t->options->observe)
        history_add_policy(&t->history, rp);
}

/* --- the tick ------------------------------------------------------------------------------------------- */

/* Whether the newest run of the scheduler has no end: whoever holds the lease is at work, or died at it. */
static bool is_running(struct tick *t, struct err *e)
{
    AUTO(run_rows_release) struct run_rows newest = {0};
    struct store *s = t->work.store;
    return s->own.version >= OWN_SINCE_RUNS && !s->own.lacks_runs[0] &&
           s->ops->own->runs(s, t->hand->scheduler->name, 1, &newest, e) == 0 && newest.n &&
           !newest.list[0].ended;
}

/* A holder that died would keep everybody from work until their own next ticks. Its run is written down only after a
 * while, so the first look does not count on it. */
static void look_again(struct tick *t, const struct lease_row *holder)
{
    struct err ignored = ERR_INIT;
    instant now;
    struct store *s = t->work.store;
    if (!holder->ends || (t->options->again && !is_running(t, &ignored)) ||
        s->ops->now(s, &now, &ignored) < 0)
        return;
    t->work.report->again_us = (holder->until > now ? holder->until - now : 0) + US_PER_MS;
}

/* Asked for once. What is said of the first policy then holds for all. */
static bool leads(struct tick *t)
{
    struct report *r = t->work.report;
    struct report_policy *first = NULL;
    for (size_t i = 0; i < r->n_policies && !first; i++)
        if (r->policies[i].policy->enabled)
            first = &r->policies[i];
    if (!t->hand->scheduler->exclusive || t->options->observe || !first)
        return true;
    t->work.lease = &t->hand->lease;
    if (work_lease(&t->work, first) == 0)
        return true;
    for (size_t i = 0; i < r->n_policies; i++) {
        struct report_policy *rp = &r->policies[i];
        rp->kind = rp->policy->enabled ? first->kind : OUTCOME_DISABLED;
        rp->error = rp->policy->enabled ? first->error : NULL;
        rp->holder = rp->policy->enabled ? first->holder : NULL;
    }
    if (first->holder)
        look_again(t, first->holder);
    return false;
}

static void do_policies(struct tick *t)
{
    struct hand *h = t->hand;
    struct report *r = t->work.report;
    for (size_t i = 0; i < h->n_known; i++)
        report_add_policy(r, h->known[i].policy);
    bool lead = leads(t);
    for (size_t i = 0; i < h->n_known; i++) {
        struct report_policy *rp = &r->policies[i];
        if (lead && !is_left_out(t, rp)) {
            struct store *s = t->work.store;
            s->asks = (struct patience){.stop = asked_to_stop, .context = t};
            do_policy(t, &h->known[i], rp);
            s->asks = (struct patience){0};
        }
        note(t, rp);
    }
    end_look(t);
}

/* --- the history ---------------------------------------------------------------------------------------- */

static void open_history(struct tick *t)
{
    char hash[POLICY_HASH_SIZE];
    const struct contract *c = t->hand->contract;
    if (!t->options->observe)
        history_open(&t->history, t->work.store, t->hand->scheduler->name, t->options->source,
                     t->options->owner, t->work.now);
    if (!t->options->observe)
        history_contract(&t->history, policies_hash(c->policies, c->n_policies, hash));
}

static void end_history(struct tick *t)
{
    struct work *w = &t->work;
    if (t->options->observe)
        return;
    history_end(&t->history, w->now + (when_monotonic_us() - t->clock_us));
    if (t->history.trouble.kind != ERR_NONE)
        work_remark(w, arena_printf(w->report->arena, "the history of scheduler '%s' has a gap: %s",
                                    t->hand->scheduler->name, t->history.trouble.text));
}

static void begin_report(struct tick *t)
{
    static const struct lapse_options none = {0};
    struct work *w = &t->work;
    bool observe = t->options->observe;
    *w = (struct work){.contract = t->hand->contract, .options = &none, .due = -1};
    w->report = report_new(observe ? REPORT_PLAN : REPORT_SWEEP, "run");
    w->report->contract = w->contract;
    w->report->file = w->contract->file;
}

struct report *hand_tick(struct hand *h, const struct tick_options *o)
{
    int64_t started = when_monotonic_us();
    struct tick t = {.hand = h, .options = o};
    struct err e = ERR_INIT;
    begin_report(&t);
    struct report *r = t.work.report;
    if (get_ready(&t, &e) == 0) {
        r->now = t.work.now;
        if (h->contract->own || work_keeps_history(&t.work)) { /* else there is nothing of lapse's own */
            open_history(&t);
            do_policies(&t);
            end_history(&t);
        }
    } else {
        work_fail(&t.work, &e);
        r->kind = REPORT_ERROR;
    }
    h->calm = r->exit == LAPSE_DONE;
    h->failed = r->exit == LAPSE_FAILED || r->exit == LAPSE_FINDINGS;
    brakes_release(&t.work.brakes);
    history_release(&t.history);
    atomic_store(&h->interrupted, false);
    r->duration_us = when_monotonic_us() - started;
    return r;
}
