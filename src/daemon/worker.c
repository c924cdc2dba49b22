/* worker: the thread of one scheduler. It waits for orders of the loop: a tick, other terms, to leave;
 * between ticks it keeps its lease. */
#include "daemon/internal.h"

/* --- the hand --------------------------------------------------------------------------------------------
 */

static void set_hand(struct worker *w, struct hand *h)
{
    pthread_mutex_lock(&w->daemon->lock);
    w->hand = h;
    w->leads = w->leads && h;
    pthread_mutex_unlock(&w->daemon->lock);
}

static struct hand *new_hand(const struct worker *w)
{
    const struct contract *c = terms_part(w->held, w->name);
    return hand_new(c, scheduler_named(c, w->name));
}

/* Hands the lease over and closes the connection. hand_free asks the database, so nobody may wait for it: the
 * hand is out of everybody's sight before. */
static void let_go(struct worker *w)
{
    struct hand *h = w->hand;
    set_hand(w, NULL);
    hand_free(h);
    meter_set(w->daemon->meter, METRIC_LEASE_HELD, (const char *[]){w->name}, 0);
}

static bool asked_to_stop(void *context)
{
    const struct worker *w = context;
    return atomic_load(&w->daemon->stopping);
}

static void on_batch(void *context, const struct report_policy *p, const int64_t *gone, int64_t us)
{
    struct worker *w = context;
    tell_lease(w); /* who leads is not known only when a long tick ends */
    meter_batch(w->daemon->meter, p, gone, us);
}

static void on_pace(void *context, const struct report_policy *p, const struct outcome_pace *pace)
{
    tell_pace(context, p->policy, pace);
}

/* --- orders ----------------------------------------------------------------------------------------------
 * Each is carried out without the lock, and returns with it. */

static void change_terms(struct worker *w)
{
    struct terms *old = w->held;
    w->held = w->terms_next;
    w->terms_next = NULL;
    pthread_mutex_unlock(&w->daemon->lock);
    if (w->hand)
        let_go(w);
    terms_drop(old);
    pthread_mutex_lock(&w->daemon->lock);
}

static void tick(struct worker *w)
{
    struct lapse_daemon *d = w->daemon;
    struct tick_options o = {.observe = d->options.observe,
                             .until = w->until,
                             .again = w->last.there && w->last.again != NEVER,
                             .source = "daemon",
                             .owner = d->owner,
                             .stop = asked_to_stop,
                             .batch = on_batch,
                             .paced = on_pace,
                             .context = w};
    w->tick = false;
    pthread_mutex_unlock(&d->lock);
    if (!w->hand)
        set_hand(w, new_hand(w));
    instant started = when_now();
    tell_pace_begins(w);
    struct report *r = hand_tick(w->hand, &o);
    tell_tick(w, r, started);
    report_free(r);
    pthread_mutex_lock(&d->lock);
    w->finished = true;
    daemon_wake(d);
}

static void rest(struct worker *w)
{
    int64_t us = w->beat.start == NEVER ? INT64_MAX : w->beat.start - when_now();
    w->rest = false;
    pthread_mutex_unlock(&w->daemon->lock);
    if (w->hand)
        hand_rest(w->hand, us > 0 ? us : 0);
    pthread_mutex_lock(&w->daemon->lock);
}

static bool has_orders(const struct worker *w)
{
    return w->leave || w->terms_next || w->tick || w->rest;
}

/* Until there is an order, or the lease wants to be renewed. */
static void wait_for_orders(struct worker *w)
{
    pthread_mutex_unlock(&w->daemon->lock);
    int64_t us = INT64_MAX;
    if (w->hand) {
        us = hand_keep(w->hand);
        tell_lease(w);
    }
    pthread_mutex_lock(&w->daemon->lock);
    if (!has_orders(w))
        daemon_cond_wait(&w->wake, &w->daemon->lock, us);
}

static void obey(struct worker *w)
{
    if (w->terms_next)
        change_terms(w);
    else if (w->tick)
        tick(w);
    else if (w->rest)
        rest(w);
    else
        wait_for_orders(w);
}

/* The order to leave may be taken back (its scheduler is in the contract again) until `left` is set. */
static void *work(void *worker)
{
    struct worker *w = worker;
    struct lapse_daemon *d = w->daemon;
    pthread_mutex_lock(&d->lock);
    do {
        while (!w->leave)
            obey(w);
        pthread_mutex_unlock(&d->lock);
        if (w->hand)
            let_go(w);
        pthread_mutex_lock(&d->lock);
    } while (!w->leave);
    w->left = true;
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* --- for the loop ----------------------------------------------------------------------------------------
 */

/* Waits are by a clock that nobody sets. */
void daemon_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

void daemon_cond_wait(pthread_cond_t *c, pthread_mutex_t *lock, int64_t us)
{
    int64_t at;
    if (!add_i64(when_monotonic_us(), us, &at)) {
        pthread_cond_wait(c, lock);
        return;
    }
    struct timespec t = {.tv_sec = (time_t)(at / US_PER_S), .tv_nsec = (long)(at % US_PER_S * 1000)};
    pthread_cond_timedwait(c, lock, &t);
}

struct worker *worker_start(struct lapse_daemon *d, struct terms *t, const struct scheduler *s)
{
    struct worker *w = mem_alloc(sizeof(*w));
    w->daemon = d;
    w->name = mem_strdup(s->name);
    w->held = terms_take(t);
    w->troubles = troubles_new(s->name);
    daemon_cond_init(&w->wake);
    if (thread_begin(&w->thread, work, w) == 0)
        return w;
    worker_free(w);
    return NULL;
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    ticker_free(w->ticker);
    terms_drop(w->terms);
    terms_drop(w->terms_next);
    terms_drop(w->held);
    troubles_free(w->troubles);
    pthread_cond_destroy(&w->wake);
    mem_free_p(&w->error);
    mem_free_p(&w->said_lease);
    mem_free_p(&w->said_brake);
    mem_free_p(&w->said_remarks);
    mem_free_p(&w->name);
    mem_free_p(&w);
}

void worker_show_next(struct worker *w)
{
    const char *labels[] = {w->name};
    if (!w->begun || w->beat.start == NEVER)
        meter_drop(w->daemon->meter, METRIC_NEXT_TICK, labels);
    else
        meter_set(w->daemon->meter, METRIC_NEXT_TICK, labels, (double)w->beat.start / (double)US_PER_S);
}

void worker_order_tick(struct worker *w, instant until)
{
    w->tick = true;
    w->until = until;
    pthread_cond_signal(&w->wake);
}

void worker_order_rest(struct worker *w)
{
    w->rest = true;
    pthread_cond_signal(&w->wake);
}

void worker_order_terms(struct worker *w, struct terms *t)
{
    terms_drop(w->terms_next);
    w->terms_next = terms_take(t);
    w->leave = false;
    pthread_cond_signal(&w->wake);
}

void worker_order_leave(struct worker *w)
{
    w->leave = true;
    pthread_cond_signal(&w->wake);
}

void worker_interrupt(struct worker *w)
{
    if (w->hand)
        hand_interrupt(w->hand);
}
