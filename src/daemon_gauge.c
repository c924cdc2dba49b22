/* daemon_gauge: the thread that looks now and then at how much is due, for the metrics. */
#include <string.h>

#include "daemon_parts.h"

/* Who looks at a table while it is swept would only see the sweep, and be in its way. */
static bool is_swept(void *daemon, const struct policy *p)
{
    struct lapse_daemon *d = daemon;
    bool swept = false;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->n_workers && !swept; i++)
        swept = d->workers[i]->beat.working && strcmp(d->workers[i]->name, p->scheduler) == 0;
    pthread_mutex_unlock(&d->lock);
    return swept;
}

/* Looks until it should stop or there are other terms. The lock is held, but not while it looks. */
static void look(struct lapse_daemon *d, struct gauge *g)
{
    struct gauge_thread *t = &d->gauge;
    while (!t->stop && !t->terms) {
        pthread_mutex_unlock(&d->lock);
        int64_t us = gauge_turn(g, when_monotonic_us());
        pthread_mutex_lock(&d->lock);
        t->lost = gauge_lost(g);
        if (!t->stop && !t->terms)
            daemon_cond_wait(&t->wake, &d->lock, us);
    }
}

static void *run(void *daemon)
{
    struct lapse_daemon *d = daemon;
    struct gauge_thread *t = &d->gauge;
    const struct gauge_options o = {.busy = is_swept, .say = daemon_say_lent, .context = d};
    pthread_mutex_lock(&d->lock);
    while (!t->stop) {
        struct terms *terms = t->terms;
        t->terms = NULL;
        t->gauge = gauge_new(terms->contract, d->meter, &o);
        look(d, t->gauge);
        struct gauge *g = t->gauge;
        t->gauge = NULL;
        pthread_mutex_unlock(&d->lock);
        gauge_free(g);
        terms_drop(terms);
        pthread_mutex_lock(&d->lock);
    }
    t->done = true;
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* --- for the loop ----------------------------------------------------------------------------------------
 */

void gauge_start(struct lapse_daemon *d)
{
    d->gauge.running = daemon_thread(&d->gauge.thread, run, d) == 0;
    if (!d->gauge.running)
        daemon_remark(d, LEVEL_WARN, "how much is due is not measured: no thread could be started");
}

void gauge_order_terms(struct lapse_daemon *d, struct terms *t)
{
    terms_drop(d->gauge.terms);
    d->gauge.terms = terms_take(t);
    pthread_cond_signal(&d->gauge.wake);
}

void gauge_order_stop(struct lapse_daemon *d)
{
    d->gauge.stop = true;
    if (d->gauge.gauge)
        gauge_interrupt(d->gauge.gauge);
    pthread_cond_signal(&d->gauge.wake);
}

bool gauge_is_over(const struct lapse_daemon *d)
{
    return !d->gauge.running || d->gauge.done;
}

void gauge_join(struct lapse_daemon *d)
{
    if (d->gauge.running)
        pthread_join(d->gauge.thread, NULL);
    d->gauge.running = false;
    terms_drop(d->gauge.terms);
    d->gauge.terms = NULL;
}
