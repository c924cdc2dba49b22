/* gauge: looks at the policies of a contract, one at a time. See gauge.h. */
#include "watch/gauge.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SECOND       US_PER_S
#define MINUTE       (60 * SECOND)
#define LOOK_EVERY   MINUTE        /* a policy */
#define SLOW_EVERY   (60 * MINUTE) /* one that did not answer in time */
#define LOOK_TIMEOUT (2 * SECOND)
#define FACTS_LAST   (10 * MINUTE) /* what is known of the schema */
#define FACTS_ANEW   MINUTE        /* … where it proved wrong */
#define BUSY_WAIT    SECOND
#define LONG_WAIT    (5 * MINUTE) /* a connection is not kept for */
enum { SHARE = 100, GAP = 9 };

/* --- when to look -------------------------------------------------------------------------------- */

size_t pace_next(const struct gauge_pace *p, int64_t now_us, int64_t *ret_wait_us)
{
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++)
        if (first == SIZE_MAX || p->list[i].due_us < p->list[first].due_us)
            first = i;
    *ret_wait_us = LOOK_EVERY;
    if (first == SIZE_MAX)
        return SIZE_MAX;
    int64_t due = p->list[first].due_us > p->not_before_us ? p->list[first].due_us : p->not_before_us;
    *ret_wait_us = due > now_us ? due - now_us : 0;
    return due > now_us ? SIZE_MAX : first;
}

static int64_t time_of_all(const struct gauge_pace *p, bool slow)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->list[i].slow == slow ? p->list[i].took_us : 0;
    return sum;
}

void pace_looked(struct gauge_pace *p, size_t i, int64_t now_us, int64_t took_us, bool slow)
{
    p->failures = 0;
    p->list[i].took_us = took_us;
    p->list[i].slow = slow;
    int64_t every = slow ? SLOW_EVERY : LOOK_EVERY, share = SHARE * time_of_all(p, slow);
    p->list[i].due_us = now_us + (share > every ? share : every);
    p->not_before_us = now_us + GAP * took_us;
}

void pace_busy(struct gauge_pace *p, size_t i, int64_t now_us)
{
    p->list[i].due_us = now_us + BUSY_WAIT;
}

void pace_broke(struct gauge_pace *p, int64_t now_us)
{
    int64_t pause = SECOND;
    for (int i = 0; i < p->failures && pause < MINUTE; i++)
        pause *= 2;
    p->failures++;
    p->not_before_us = now_us + (pause < MINUTE ? pause : MINUTE);
    for (size_t i = 0; i < p->n; i++)
        p->list[i].due_us = p->list[i].slow ? p->list[i].due_us : 0;
}

/* --- the policies -------------------------------------------------------------------------------- */

/* A policy and what was last seen of it. */
struct gauged {
    const struct policy *policy;
    bool known, ageless; /* ageless: age plays no part, or is not known */
    int64_t rows, age_us;
};
struct gauge {
    const struct contract *contract;
    struct meter *meter;
    struct gauge_options options;
    struct store *store;             /* NULL: none is open */
    struct facts *facts;             /* of every table that the policies name */
    int64_t facts_us, facts_took_us; /* when they were read, and for how long */
    bool facts_wrong, lost;          /* lost: the database was not there */
    atomic_bool interrupted;
    struct gauged *list; /* as in pace.list */
    struct gauge_pace pace;
};

static bool scheduler_enabled(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (!strcmp(c->schedulers[i].name, name))
            return c->schedulers[i].enabled;
    return true;
}

struct gauge *gauge_new(const struct contract *c, struct meter *m, const struct gauge_options *o)
{
    struct gauge *g = mem_alloc(sizeof(*g));
    atomic_init(&g->interrupted, false);
    g->contract = c;
    g->meter = m;
    g->options = o ? *o : (struct gauge_options){0};
    g->list = mem_alloc((c->n_policies + 1) * sizeof(*g->list));
    for (size_t i = 0; i < c->n_policies; i++)
        if (c->policies[i].enabled && scheduler_enabled(c, c->policies[i].scheduler))
            g->list[g->pace.n++].policy = &c->policies[i];
    g->pace.list = mem_alloc((g->pace.n + 1) * sizeof(*g->pace.list));
    return g;
}

static void disconnect(struct gauge *g)
{
    facts_free(g->facts);
    g->facts = NULL;
    store_close(g->store);
    g->store = NULL;
}

void gauge_free(struct gauge *g)
{
    if (!g)
        return;
    disconnect(g);
    free(g->pace.list);
    free(g->list);
    free(g);
}

/* --- what is shown ------------------------------------------------------------------------------- */

static void show_or_drop(struct meter *m, enum metric x, const char *const *labels, bool known, double value)
{
    if (known)
        meter_set(m, x, labels, value);
    else
        meter_drop(m, x, labels);
}

/* Policies that share a label are one: their rows together, the greatest age. One that is not known leaves
 * the whole unknown. */
static void show(struct gauge *g, const struct policy *p)
{
    const char *const labels[] = {p->scheduler, p->label};
    struct gauged all = {.known = true};
    for (size_t i = 0; i < g->pace.n; i++) {
        const struct gauged *x = &g->list[i];
        if (strcmp(x->policy->scheduler, p->scheduler) != 0 || strcmp(x->policy->label, p->label) != 0)
            continue;
        all.known &= x->known;
        all.ageless |= x->ageless;
        all.rows += x->rows;
        all.age_us = x->age_us > all.age_us ? x->age_us : all.age_us;
    }
    show_or_drop(g->meter, METRIC_DUE_ROWS, labels, all.known, (double)all.rows);
    show_or_drop(g->meter, METRIC_OLDEST_DUE, labels, all.known && !all.ageless,
                 (double)all.age_us / (double)US_PER_S);
}

static void forget(struct gauge *g, struct gauged *x)
{
    *x = (struct gauged){.policy = x->policy};
    show(g, x->policy);
}

static void say(struct gauge *g, const char *scheduler, const struct policy *p, const struct err *e)
{
    if (!g->options.say)
        return;
    AUTO(event_free_p) struct event *ev = event_new(EVENT_REMARK, scheduler, when_now());
    event_level(ev, LEVEL_DEBUG);
    if (p)
        event_message(ev, "what is due of policy '%s' is not known: %s", p->name, e->text);
    else
        event_message(ev, "what is due is not known: %s", e->text);
    if (p)
        event_text(ev, "policy", p->name);
    event_text(ev, "error", e->text);
    g->options.say(g->options.context, ev);
}

/* --- a look -------------------------------------------------------------------------------------- */

static int connect(struct gauge *g, struct err *e)
{
    if (!g->store && store_open(g->contract->store, true, &g->store, e) < 0)
        return -1;
    g->store->own_schema = g->contract->own_schema;
    g->store->own_owner = g->contract->own_owner;
    g->store->interrupted = &g->interrupted;
    return 0;
}

/* One reading of the catalog for all policies: it is kept for a while, and is small. */
static bool facts_are_good(const struct gauge *g, int64_t now_us)
{
    int64_t last = g->facts_wrong ? FACTS_ANEW : FACTS_LAST, share = SHARE * g->facts_took_us;
    return g->facts && now_us - g->facts_us < (share > last ? share : last);
}

static int read_facts(struct gauge *g, int64_t now_us, struct err *e)
{
    int64_t began = when_monotonic_us();
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    struct table_names names = {0};
    struct facts *facts = NULL;
    if (facts_are_good(g, now_us))
        return 0;
    for (size_t i = 0; i < g->pace.n; i++)
        plan_tables(g->list[i].policy, scratch, &names);
    if (g->store->ops->inspect(g->store, &names, &facts, e) < 0)
        return -1;
    facts_free(g->facts);
    g->facts = facts;
    g->facts_us = now_us;
    g->facts_took_us = when_monotonic_us() - began;
    g->facts_wrong = false;
    return 0;
}

static int count(struct gauge *g, struct gauged *x, struct err *e)
{
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    struct findings found = {.arena = scratch};
    struct backlog b;
    instant now;
    if (g->store->ops->now(g->store, &now, e) < 0)
        return -1;
    AUTO(plan_free_p) struct plan *plan = plan_make(x->policy, g->facts, now, &found);
    if (!plan)
        return err_set(e, ERR_FINDINGS, "%s", found.n ? found.list[0].what : "it has no plan");
    if (g->store->ops->backlog(g->store, plan, GAUGE_MOST, LOOK_TIMEOUT, &b, e) < 0)
        return -1;
    x->known = true;
    x->rows = b.rows;
    x->ageless = !plan->n_times || (b.rows && !b.has_oldest);
    x->age_us = b.has_oldest && now > b.oldest ? now - b.oldest : 0;
    return 0;
}

static bool not_there(const struct err *e)
{
    return e->kind == ERR_LOST || e->kind == ERR_UNREACHABLE || e->kind == ERR_COMMIT_UNKNOWN;
}

static void broke(struct gauge *g, int64_t now_us, const struct err *e)
{
    g->lost = not_there(e);
    if (!g->pace.failures)
        say(g, NULL, NULL, e);
    disconnect(g);
    for (size_t i = 0; i < g->pace.n; i++)
        g->list[i].known = false;
    for (size_t i = 0; i < g->pace.n; i++)
        show(g, g->list[i].policy);
    pace_broke(&g->pace, now_us);
}

static void look(struct gauge *g, size_t i, int64_t now_us)
{
    struct err e = ERR_INIT;
    struct gauged *x = &g->list[i];
    int64_t began = when_monotonic_us();
    int r = connect(g, &e) < 0 ? -1 : read_facts(g, now_us, &e);
    if (r < 0 && e.kind == ERR_STOPPED)
        return;
    if (r < 0) {
        broke(g, now_us, &e);
        return;
    }
    int64_t ready = when_monotonic_us();
    r = count(g, x, &e);
    int64_t ended = when_monotonic_us();
    if (r < 0 && e.kind == ERR_STOPPED)
        return;
    if (r < 0 && not_there(&e)) {
        broke(g, now_us, &e);
        return;
    }
    g->lost = false;
    /* The schema is read for all: it delays the next look, but is no policy's own. */
    pace_looked(&g->pace, i, now_us + (ended - began), ended - ready, r < 0 && e.kind == ERR_TIMEOUT);
    g->pace.not_before_us += GAP * (ready - began);
    if (r < 0) {
        g->facts_wrong |= e.kind == ERR_DATABASE;
        forget(g, x);
        say(g, x->policy->scheduler, x->policy, &e);
    } else {
        show(g, x->policy);
    }
}

int64_t gauge_turn(struct gauge *g, int64_t now_us)
{
    int64_t wait, began = when_monotonic_us();
    size_t i = pace_next(&g->pace, now_us, &wait);
    if (atomic_load(&g->interrupted))
        return LOOK_EVERY;
    if (i == SIZE_MAX) {
        if (wait > LONG_WAIT)
            disconnect(g);
        return wait;
    }
    if (g->options.busy && g->options.busy(g->options.context, g->list[i].policy))
        pace_busy(&g->pace, i, now_us);
    else
        look(g, i, now_us);
    pace_next(&g->pace, now_us + (when_monotonic_us() - began), &wait);
    return wait;
}

bool gauge_lost(const struct gauge *g)
{
    return g->lost;
}

void gauge_interrupt(struct gauge *g)
{
    atomic_store(&g->interrupted, true);
}
