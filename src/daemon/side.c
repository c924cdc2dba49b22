/* side: a thread beside the workers that does one thing again and again, each time under the terms in
 * force: the gauges, the purges, the notices of purges. */
#include "daemon/internal.h"

/* Turns until it should stop or there are other terms. The lock is held, but not in a turn. */
static void work_under(struct side *s, void *work)
{
    while (!s->stop && !s->terms) {
        bool lost = false;
        s->asked = false;
        pthread_mutex_unlock(&s->daemon->lock);
        int64_t us = s->kind->turn(work, &lost);
        pthread_mutex_lock(&s->daemon->lock);
        s->lost = lost;
        if (!s->stop && !s->terms && !s->asked)
            daemon_cond_wait(&s->wake, &s->daemon->lock, us);
    }
}

static void *run(void *side)
{
    struct side *s = side;
    struct lapse_daemon *d = s->daemon;
    pthread_mutex_lock(&d->lock);
    while (!s->stop) {
        struct terms *terms = s->terms;
        s->terms = NULL;
        void *work = s->work = s->kind->open(d, terms->contract);
        work_under(s, work);
        s->work = NULL; /* out of everybody's sight: closing it may ask the database */
        pthread_mutex_unlock(&d->lock);
        s->kind->close(work);
        terms_drop(terms);
        pthread_mutex_lock(&d->lock);
    }
    s->done = true;
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* --- for the loop ------------------------------------------------------------------------------------------
 */

void side_init(struct side *s, struct lapse_daemon *d, const struct side_kind *kind)
{
    s->daemon = d;
    s->kind = kind;
    daemon_cond_init(&s->wake);
}

void side_start(struct side *s)
{
    s->running = thread_begin(&s->thread, run, s) == 0;
    if (!s->running)
        daemon_remark(s->daemon, LEVEL_ERROR, "%s: no thread could be started", s->kind->without);
}

void side_order_terms(struct side *s, struct terms *t)
{
    terms_drop(s->terms);
    s->terms = terms_take(t);
    pthread_cond_signal(&s->wake);
}

void side_order_stop(struct side *s)
{
    s->stop = true;
    pthread_cond_signal(&s->wake);
}

void side_ask(struct side *s)
{
    s->asked = true;
    pthread_cond_signal(&s->wake);
}

void side_interrupt(struct side *s)
{
    if (s->work)
        s->kind->interrupt(s->work);
}

bool side_is_over(const struct side *s)
{
    return !s->running || s->done;
}

void side_join(struct side *s)
{
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = false;
    terms_drop(s->terms);
    s->terms = NULL;
}
