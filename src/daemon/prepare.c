/* prepare: what is asked of the database before the first tick: lapse's own tables, if they are to be
 * installed, and when each scheduler last ran. A thread of its own, because the database may take its time,
 * or not be there: then the tables are waited for, the last runs are not. */
#include "daemon/internal.h"

#define PAUSE_FIRST_US US_PER_S
#define PAUSE_MOST_US  (60 * US_PER_S)

/* The answer of one try. */
struct answer_runs {
    struct run_rows runs;
    struct text excuse; /* why no history is kept; "": it is */
};

static int ask_runs(struct store *s, const struct contract *c, struct answer_runs *ret, struct err *e)
{
    s->own_schema = c->own_schema;
    s->own_owner = c->own_owner;
    if (s->ops->own->look(s, e) < 0)
        return -1;
    history_excuse(s, &ret->excuse);
    if (!s->own.version)
        text_add(&ret->excuse, " (run lapse install)");
    return s->own.version >= OWN_SINCE_RUNS ? s->ops->own->last_runs(s, true, &ret->runs, e) : 0;
}

static int last_runs(const struct contract *c, struct answer_runs *ret, struct err *e)
{
    AUTO(store_close_p) struct store *s = NULL;
    if (store_open(c->store, true, &s, e) < 0)
        return -1;
    return ask_runs(s, c, ret, e);
}

static bool is_unreachable(const struct err *e)
{
    return e->kind == ERR_UNREACHABLE || e->kind == ERR_LOST;
}

/* 0, or what the process should exit with. */
static int install(struct lapse_daemon *d, struct contract *c, struct err *e)
{
    struct lapse_contract box = {c};
    struct lapse_report *r = lapse_install(&box, NULL);
    int code = (int)lapse_report_exit(r);
    if (code != LAPSE_DONE) {
        err_set(e, code == LAPSE_UNREACHABLE ? ERR_UNREACHABLE : ERR_DATABASE, "%s",
                r->report->error ? r->report->error : "the tables could not be installed");
    } else {
        struct event *ev = event_new(EVENT_INSTALLED, NULL, when_now());
        event_message(ev, "%s", r->report->words ? r->report->words : "lapse's own tables are installed");
        daemon_say(d, ev);
    }
    lapse_report_free(r);
    return code;
}

/* --- tries -----------------------------------------------------------------------------------------------
 */

static bool stopped(struct lapse_daemon *d)
{
    return d->prepare.stop || atomic_load(&d->stopping);
}

static void pause_before_next(struct lapse_daemon *d, int64_t *us)
{
    struct prepare *p = &d->prepare;
    pthread_mutex_lock(&d->lock);
    if (!stopped(d))
        daemon_cond_wait(&p->wake, &d->lock, *us / 2 + (int64_t)(daemon_chance() % (uint64_t)*us) / 2);
    pthread_mutex_unlock(&d->lock);
    *us = *us * 2 < PAUSE_MOST_US ? *us * 2 : PAUSE_MOST_US;
}

static bool is_stopped(struct lapse_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    bool yes = stopped(d);
    pthread_mutex_unlock(&d->lock);
    return yes;
}

/* Said once; the rest is the schedulers' to say. */
static void note_unreachable(struct lapse_daemon *d, const struct err *e)
{
    struct prepare *p = &d->prepare;
    pthread_mutex_lock(&d->lock);
    bool news = !p->unreachable;
    p->unreachable = true;
    if (!d->options.install && !p->stop)
        p->may_begin = true;
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
    if (news)
        daemon_remark(d, LEVEL_WARN, "the database is not there: %s; %s", e->text,
                      d->options.install
                          ? "nothing is done before lapse's own tables are installed; trying again"
                          : "when schedulers last ran is not known yet; trying again");
}

static void note_exit(struct lapse_daemon *d, int code, const struct err *e)
{
    bool first = d->prepare.first;
    daemon_remark(d, LEVEL_ERROR, "lapse's own tables cannot be installed: %s", e->text);
    pthread_mutex_lock(&d->lock);
    if (first)
        d->prepare.exit = code;
    else if (!d->prepare.stop)
        d->prepare.may_begin = true;
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
}

static void note_runs(struct lapse_daemon *d, struct answer_runs *a)
{
    struct prepare *p = &d->prepare;
    if (a->excuse.len && !d->options.observe)
        daemon_remark(d, LEVEL_INFO, "%s", text_str(&a->excuse));
    text_release(&a->excuse);
    pthread_mutex_lock(&d->lock);
    p->unreachable = false;
    if (p->stop) {
        run_rows_release(&a->runs);
    } else {
        p->may_begin = p->runs_new = true;
        p->runs = a->runs;
    }
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
}

/* Returns whether it is over, for better or worse. */
static bool try_install(struct lapse_daemon *d, bool *ret_failed)
{
    struct err e = ERR_INIT;
    int code = install(d, d->prepare.terms->contract, &e);
    if (code == LAPSE_UNREACHABLE) {
        note_unreachable(d, &e);
        return false;
    }
    *ret_failed = code != LAPSE_DONE;
    if (*ret_failed)
        note_exit(d, code, &e);
    return true;
}

static bool try_runs(struct lapse_daemon *d)
{
    struct answer_runs a = {0};
    struct err e = ERR_INIT;
    if (last_runs(d->prepare.terms->contract, &a, &e) == 0) {
        note_runs(d, &a);
        return true;
    }
    text_release(&a.excuse);
    if (is_unreachable(&e)) {
        note_unreachable(d, &e);
        return false;
    }
    daemon_remark(d, LEVEL_WARN, "when schedulers last ran is not known: %s", e.text);
    note_runs(d, &a);
    return true;
}

static void *prepare(void *daemon)
{
    struct lapse_daemon *d = daemon;
    int64_t pause_us = PAUSE_FIRST_US;
    bool failed = false;
    for (bool installed = !d->options.install; !is_stopped(d); pause_before_next(d, &pause_us)) {
        installed = installed || try_install(d, &failed);
        if (failed || (installed && try_runs(d)))
            break;
    }
    pthread_mutex_lock(&d->lock);
    d->prepare.done = true;
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* --- for the loop ----------------------------------------------------------------------------------------
 */

int prepare_start(struct lapse_daemon *d, bool first, struct err *e)
{
    struct prepare *p = &d->prepare;
    pthread_mutex_lock(&d->lock);
    p->stop = p->done = p->may_begin = p->unreachable = p->runs_new = false;
    p->first = first;
    p->terms = terms_take(d->terms);
    pthread_mutex_unlock(&d->lock);
    if (thread_begin(&p->thread, prepare, d) != 0) {
        terms_drop(p->terms);
        p->terms = NULL;
        return err_set(e, ERR_SYSTEM, "no thread could be started: the limit of the system or of this user");
    }
    p->running = true;
    return 0;
}

void prepare_stop(struct lapse_daemon *d)
{
    d->prepare.stop = true;
    pthread_cond_signal(&d->prepare.wake);
}

/* Until then nothing begins. */
void prepare_again(struct lapse_daemon *d)
{
    d->prepare.again = true;
    d->prepare.may_begin = false;
    prepare_stop(d);
}

void prepare_join(struct lapse_daemon *d)
{
    struct prepare *p = &d->prepare;
    if (!p->running)
        return;
    pthread_join(p->thread, NULL);
    p->running = false;
    terms_drop(p->terms);
    p->terms = NULL;
}
