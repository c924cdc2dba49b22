/* daemon_purges: the thread that carries out purges. It says of each what it did, and of what goes wrong
 * once, until that changes. */
#include <string.h>

#include "daemon_parts.h"
#include "lapse_purger.h"

enum { PENDING_MOST = 10000 };                   /* how far those that wait are counted … */
static const int64_t PENDING_US = 15 * US_PER_S; /* … and how often */

/* What the thread remembers between turns. */
struct purges_work {
    struct lapse_daemon *daemon;
    const struct contract *contract;
    struct purger *purger;
    char **said; /* per space, and one for the turn as a whole: the trouble that was said; NULL: none */
    char *said_strangers;
    int64_t counted_us;
};

static bool should_stop(void *context)
{
    struct lapse_daemon *d = ((struct purges_work *)context)->daemon;
    return atomic_load(&d->stopping);
}

static void on_executed(void *context, const struct purge_done *done)
{
    struct purges_work *w = context;
    const char *labels[] = {done->space->name, done->reason};
    AUTO(text_release) struct text line = {0};
    struct event *ev = event_new(EVENT_PURGE_EXECUTED, NULL, when_now());
    purge_line(done->space, done->instance, done->reason, &line);
    event_message(ev, "%s", text_str(&line));
    event_text(ev, "space", done->space->name);
    event_text(ev, "instance", done->instance->text ? done->instance->text : "");
    event_text(ev, "reason", done->reason);
    event_number(ev, "rows", done->rows);
    meter_add(w->daemon->meter, METRIC_PURGES, labels, 1); /* who reads the line finds it counted */
    daemon_say(w->daemon, ev);
}

/* --- what goes wrong ---------------------------------------------------------------------------------------
 */

static void say_failed(struct purges_work *w, const char *space, const char *words)
{
    struct event *ev = event_new(EVENT_PURGE_FAILED, NULL, when_now());
    event_message(ev, "%s", words);
    if (space)
        event_text(ev, "space", space);
    daemon_say(w->daemon, ev);
}

/* words NULL: nothing is wrong (any more). */
static void say_once(struct purges_work *w, char **said, const char *space, const char *words)
{
    if (words && *said && strcmp(words, *said) == 0)
        return;
    if (words)
        say_failed(w, space, words);
    else if (*said)
        daemon_remark(w->daemon, LEVEL_INFO, "purges%s%s go on: what was wrong is over", space ? " of " : "",
                      space ? space : "");
    mem_free_p(said);
    *said = words ? mem_strdup(words) : NULL;
}

static void say_space(struct purges_work *w, size_t at, const struct purger_space *s)
{
    const struct purging_outcome *o = &s->out;
    if (s->kind == PURGER_IDLE)
        return;
    if (s->kind == PURGER_REFUSED)
        say_once(w, &w->said[at], s->space->name, s->refused);
    else if (o->kind == PURGING_STOPPED)
        return;
    else
        say_once(w, &w->said[at], s->space->name, o->kind == PURGING_DONE ? NULL : o->err.text);
    if (o->retried || o->parked)
        say_failed(w, s->space->name, o->trouble);
    if (o->unknown)
        daemon_remark(w->daemon, LEVEL_WARN, "purges of %s: %lld in commits whose outcome is unknown",
                      s->space->name, (long long)o->unknown);
}

static void say_strangers(struct purges_work *w, const struct purger_turn *t)
{
    AUTO(text_release) struct text names = {0};
    for (size_t i = 0; i < t->n_strangers; i++)
        text_addf(&names, "%s'%s'", i ? ", " : "", t->strangers[i]);
    if (!names.len || (w->said_strangers && strcmp(w->said_strangers, text_str(&names)) == 0))
        return;
    daemon_remark(w->daemon, LEVEL_WARN,
                  "lapse_purge has rows of spaces that the contract does not have, which are left alone: %s",
                  text_str(&names));
    mem_free_p(&w->said_strangers);
    w->said_strangers = mem_strdup(text_str(&names));
}

static void say_whole(struct purges_work *w, const struct purger_turn *t)
{
    AUTO(text_release) struct text words = {0};
    if (t->err.kind != ERR_NONE)
        text_addf(&words, "%s%s%s%s", t->err.text, *t->fix ? " (" : "", t->fix, *t->fix ? ")" : "");
    say_once(w, &w->said[w->contract->n_purges], NULL, words.len ? text_str(&words) : NULL);
}

/* --- turns -------------------------------------------------------------------------------------------------
 */

static void count_pending(struct purges_work *w)
{
    int64_t now_us = when_monotonic_us();
    if (w->counted_us && now_us - w->counted_us < PENDING_US)
        return;
    w->counted_us = now_us;
    for (size_t i = 0; i < w->contract->n_purges; i++) {
        const char *labels[] = {w->contract->purges[i].name};
        int64_t n = purger_pending(w->purger, &w->contract->purges[i], PENDING_MOST);
        if (n >= 0)
            meter_set(w->daemon->meter, METRIC_PURGES_PENDING, labels, (double)n);
    }
}

static int64_t turn(struct purges_work *w)
{
    AUTO(purger_turn_release) struct purger_turn t = {0};
    const struct purging_options o = {should_stop, on_executed, w};
    purger_turn(w->purger, &o, &t);
    if (should_stop(w))
        return 0;
    for (size_t i = 0; i < t.n; i++)
        say_space(w, i, &t.spaces[i]);
    say_whole(w, &t);
    say_strangers(w, &t);
    count_pending(w);
    return t.wait_us;
}

/* Works until it should stop or there are other terms. The lock is held, but not in a turn. */
static void work_under(struct lapse_daemon *d, const struct contract *c)
{
    struct purges_thread *t = &d->purges;
    struct purges_work w = {.daemon = d, .contract = c, .purger = t->purger};
    w.said = mem_alloc((c->n_purges + 1) * sizeof(*w.said));
    while (!t->stop && !t->terms) {
        int64_t us = INT64_MAX / 4;
        pthread_mutex_unlock(&d->lock);
        if (c->n_purges)
            us = turn(&w);
        pthread_mutex_lock(&d->lock);
        if (!t->stop && !t->terms)
            daemon_cond_wait(&t->wake, &d->lock, us < US_PER_S * 3600 ? us : US_PER_S * 3600);
    }
    for (size_t i = 0; i <= c->n_purges; i++)
        mem_free_p(&w.said[i]);
    mem_free_p(&w.said);
    mem_free_p(&w.said_strangers);
}

static void *run(void *daemon)
{
    struct lapse_daemon *d = daemon;
    struct purges_thread *t = &d->purges;
    pthread_mutex_lock(&d->lock);
    while (!t->stop) {
        struct terms *terms = t->terms;
        t->terms = NULL;
        t->purger = purger_new(terms->contract);
        work_under(d, terms->contract);
        struct purger *p = t->purger;
        t->purger = NULL;
        pthread_mutex_unlock(&d->lock);
        purger_free(p);
        terms_drop(terms);
        pthread_mutex_lock(&d->lock);
    }
    t->done = true;
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* --- for the loop ------------------------------------------------------------------------------------------
 */

/* Who only observes carries nothing out. */
void purges_start(struct lapse_daemon *d)
{
    if (d->options.observe)
        return;
    d->purges.running = daemon_thread(&d->purges.thread, run, d) == 0;
    if (!d->purges.running)
        daemon_remark(d, LEVEL_ERROR, "purges are not carried out: no thread could be started");
}

void purges_order_terms(struct lapse_daemon *d, struct terms *t)
{
    terms_drop(d->purges.terms);
    d->purges.terms = terms_take(t);
    pthread_cond_signal(&d->purges.wake);
}

void purges_order_stop(struct lapse_daemon *d)
{
    d->purges.stop = true;
    pthread_cond_signal(&d->purges.wake);
}

void purges_interrupt(struct lapse_daemon *d)
{
    if (d->purges.purger)
        purger_interrupt(d->purges.purger);
}

bool purges_are_over(const struct lapse_daemon *d)
{
    return !d->purges.running || d->purges.done;
}

void purges_join(struct lapse_daemon *d)
{
    if (d->purges.running)
        pthread_join(d->purges.thread, NULL);
    d->purges.running = false;
    terms_drop(d->purges.terms);
    d->purges.terms = NULL;
}
