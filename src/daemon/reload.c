/* reload: a contract is taken into force, whole or not at all. */
#include <string.h>

#include "daemon/internal.h"

/* --- terms -----------------------------------------------------------------------------------------------
 */

struct terms *terms_new(struct contract *c)
{
    struct terms *t = mem_alloc(sizeof(*t));
    t->contract = c;
    atomic_init(&t->users, 1);
    return t;
}

struct terms *terms_take(struct terms *t)
{
    atomic_fetch_add(&t->users, 1);
    return t;
}

void terms_drop(struct terms *t)
{
    if (!t || atomic_fetch_sub(&t->users, 1) > 1)
        return;
    contract_free(t->contract);
    mem_free_p(&t);
}

const struct scheduler *scheduler_named(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (strcmp(c->schedulers[i].name, name) == 0)
            return &c->schedulers[i];
    return NULL;
}

const struct contract *terms_part(const struct terms *t, const char *scheduler)
{
    return scheduler_named(t->contract, scheduler) ? t->contract : t->contract->own;
}

size_t terms_policies(const struct terms *t)
{
    return t->contract->n_policies + t->contract->own->n_policies;
}

const struct policy *terms_policy(const struct terms *t, size_t i)
{
    const struct contract *c = t->contract;
    return i < c->n_policies ? &c->policies[i] : &c->own->policies[i - c->n_policies];
}

int terms_load(const char *file, struct terms **ret, struct mistakes *m, struct err *e)
{
    struct contract *c = NULL;
    if (contract_load(file, &c, m, e) < 0)
        return -1;
    *ret = terms_new(c);
    return 0;
}

/* --- posts: who does what under the new terms ------------------------------------------------------------
 */

struct post {
    const struct scheduler *scheduler;
    struct ticker *ticker;
    struct worker *worker;
    bool fresh; /* it had none before */
};
struct posts {
    struct post *list;
    size_t n;
};

static void posts_release(struct posts *p)
{
    for (size_t i = 0; i < p->n; i++)
        ticker_free(p->list[i].ticker);
    mem_free_p(&p->list);
}

static bool has_policies(const struct contract *c, const struct scheduler *s)
{
    for (size_t i = 0; i < c->n_policies; i++)
        if (strcmp(c->policies[i].scheduler, s->name) == 0)
            return true;
    return false;
}

static int open_posts_of(const struct contract *c, struct posts *ret, struct err *e)
{
    for (size_t i = 0; i < c->n_schedulers; i++) {
        if (!has_policies(c, &c->schedulers[i]))
            continue;
        ret->list = mem_grow(ret->list, ret->n + 1, sizeof(*ret->list));
        struct post *p = &ret->list[ret->n];
        *p = (struct post){.scheduler = &c->schedulers[i]};
        if (ticker_open(p->scheduler, &p->ticker, e) < 0)
            return err_wrap(e, "scheduler '%s'", p->scheduler->name);
        ret->n++;
    }
    return 0;
}

/* What lapse keeps of its own is swept like anything else: else the history would grow for ever. */
static int open_posts(const struct contract *c, struct posts *ret, struct err *e)
{
    return open_posts_of(c, ret, e) < 0 || open_posts_of(c->own, ret, e) < 0 ? -1 : 0;
}

/* One that was told to leave and has not left is taken back: two threads of a scheduler would overlap. */
static struct worker *find_worker(struct lapse_daemon *d, const char *name)
{
    for (size_t i = 0; i < d->n_workers; i++)
        if (!d->workers[i]->left && strcmp(d->workers[i]->name, name) == 0)
            return d->workers[i];
    return NULL;
}

static void dismiss_fresh(struct posts *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].fresh)
            worker_order_leave(p->list[i].worker);
}

static int fill_posts(struct lapse_daemon *d, struct terms *t, struct posts *posts, struct err *e)
{
    for (size_t i = 0; i < posts->n; i++) {
        struct post *p = &posts->list[i];
        p->worker = find_worker(d, p->scheduler->name);
        if (p->worker)
            continue;
        p->worker = worker_start(d, t, p->scheduler);
        if (!p->worker) {
            dismiss_fresh(posts);
            return err_set(e, ERR_SYSTEM,
                           "scheduler '%s': no thread could be started: the limit of the system or of this "
                           "user",
                           p->scheduler->name);
        }
        p->fresh = true;
        d->workers = mem_grow(d->workers, d->n_workers + 1, sizeof(struct worker *));
        d->workers[d->n_workers++] = p->worker;
    }
    return 0;
}

/* --- the change itself: nothing here can fail ------------------------------------------------------------
 */

/* What is known of policies stays with their names. */
static void move_states(struct lapse_daemon *d, const struct terms *t)
{
    struct policy_state *states = mem_alloc(terms_policies(t) * sizeof(*states));
    for (size_t i = 0; i < terms_policies(t); i++) {
        struct policy_state *before = policy_state(d, terms_policy(t, i)->name);
        if (before) {
            states[i] = *before;
            before->error = NULL;
        }
    }
    states_free(d);
    d->states = states;
}

static void set_beat(struct worker *w, const struct post *p, bool anew)
{
    struct beat *b = &w->beat;
    const instant *last = w->ran ? &w->ran_at : NULL;
    bool same = !anew && scheduler_times_same(w->scheduler, p->scheduler);
    if (anew)
        w->begun = false;
    else if (w->begun && same)
        b->ticker = p->ticker;
    else if (w->begun)
        beat_change(b, p->ticker, daemon_clocks(), last, daemon_chance());
}

static void take_post(struct worker *w, struct post *p, struct terms *t)
{
    bool anew = p->fresh || (w->leave && !w->beat.working);
    set_beat(w, p, anew);
    ticker_free(w->ticker);
    terms_drop(w->terms);
    w->ticker = p->ticker;
    p->ticker = NULL;
    w->terms = terms_take(t);
    w->scheduler = p->scheduler;
    if (!p->fresh)
        worker_order_terms(w, t);
}

static void dismiss_others(struct lapse_daemon *d, const struct posts *posts)
{
    for (size_t i = 0; i < d->n_workers; i++) {
        bool stays = false;
        for (size_t k = 0; k < posts->n; k++)
            stays = stays || posts->list[k].worker == d->workers[i];
        if (!stays)
            worker_order_leave(d->workers[i]);
    }
}

int terms_enforce(struct lapse_daemon *d, struct terms *t, struct err *e)
{
    AUTO(posts_release) struct posts posts = {0};
    if (open_posts(t->contract, &posts, e) < 0)
        return -1;
    pthread_mutex_lock(&d->lock);
    if (fill_posts(d, t, &posts, e) < 0) {
        pthread_mutex_unlock(&d->lock);
        return -1;
    }
    struct terms *old = d->terms;
    if (t != old) {
        move_states(d, t);
        d->terms = t;
        d->generation++;
        d->loaded_at = when_now();
    }
    dismiss_others(d, &posts);
    for (size_t i = 0; i < posts.n; i++)
        take_post(posts.list[i].worker, &posts.list[i], t);
    side_order_terms(&d->gauge, t);
    side_order_terms(&d->purges, t);
    side_order_terms(&d->notices, t);
    side_interrupt(&d->notices); /* it may be waiting for long */
    meter_expect(d->meter, t->contract);
    for (size_t i = 0; i < posts.n; i++)
        worker_show_next(posts.list[i].worker);
    pthread_mutex_unlock(&d->lock);
    if (t != old)
        terms_drop(old);
    return 0;
}

/* --- reading again ---------------------------------------------------------------------------------------
 */

static void refuse(struct lapse_daemon *d, const struct mistakes *m, const struct err *e)
{
    struct event *ev = event_new(EVENT_RELOAD_REFUSED, NULL, when_now());
    AUTO(arena_free_p) struct arena *a = arena_new();
    const char **texts = arena_alloc(a, (m->n + 1) * sizeof(*texts));
    for (size_t i = 0; i < m->n; i++)
        texts[i] = arena_printf(a, "%s:%d:%d: %s", d->file, m->list[i].at.line, m->list[i].at.column,
                                m->list[i].text);
    if (!m->n)
        texts[0] = arena_strdup(a, e->text);
    event_message(ev, "the contract was read again and refused; the one before stays in force: %s", texts[0]);
    event_text(ev, "file", d->file);
    event_texts(ev, "mistakes", texts, m->n ? m->n : 1);
    daemon_say(d, ev);
    pthread_mutex_lock(&d->lock);
    mem_free_p(&d->refused);
    d->refused = mem_strdup(texts[0]);
    pthread_mutex_unlock(&d->lock);
}

static void say_changes(struct lapse_daemon *d, const struct changes *c)
{
    struct event *ev = event_new(EVENT_RELOADED, NULL, when_now());
    if (c->n)
        event_message(ev, "the contract was read again: %zu %s", c->n, c->n == 1 ? "change" : "changes");
    else
        event_message(ev, "the contract was read again: nothing changed");
    event_text(ev, "file", d->file);
    event_texts(ev, "changes", c->list, c->n);
    daemon_say(d, ev);
}

/* Whole or not at all: whoever serves the contract has a say before it comes into force. */
static int can_be_served(struct lapse_daemon *d, const struct contract *c, struct err *e)
{
    const struct lapse_serve wanted = {.generation = d->generation + 1,
                                       .listen = (char *)(uintptr_t)c->listen,
                                       .token_file = (char *)(uintptr_t)c->token_file};
    AUTO(mem_free_p) char *why = NULL;
    if (!d->options.accept || d->options.accept(d->options.context, &wanted, &why) == 0)
        return 0;
    return err_set(e, ERR_CONTRACT, "serve: %s", why ? why : "not so");
}

void daemon_reload(struct lapse_daemon *d)
{
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    AUTO(changes_release) struct changes changes = {0};
    struct err e = ERR_INIT;
    struct terms *t = NULL;
    watch_loaded(&d->watch, d->file);
    if (terms_load(d->file, &t, &mistakes, &e) < 0) {
        refuse(d, &mistakes, &e);
        return;
    }
    changes_find(d->terms->contract, t->contract, &changes);
    bool moved = !same_store(d->terms->contract, t->contract);
    if (can_be_served(d, t->contract, &e) < 0 || terms_enforce(d, t, &e) < 0) {
        terms_drop(t);
        refuse(d, &mistakes, &e);
        return;
    }
    say_changes(d, &changes);
    pthread_mutex_lock(&d->lock);
    mem_free_p(&d->refused);
    bool asking = d->prepare.running && !d->prepare.done; /* the store before, which may never answer */
    if (moved && (d->options.install || asking))
        prepare_again(d);
    pthread_mutex_unlock(&d->lock);
}
