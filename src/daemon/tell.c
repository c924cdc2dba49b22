/* tell: what a tick did, told to everybody: the log, the metrics, those who ask for the status. In the
 * thread that did it. */
#include <string.h>

#include "daemon/internal.h"

/* --- the lease and the brake: said when they change ------------------------------------------------------
 */

/* Whether this is news; "": nothing to be said. */
static bool is_new(char **said, const char *now)
{
    const char *before = *said ? *said : "";
    if (strcmp(before, now) == 0)
        return false;
    mem_free_p(said);
    *said = mem_strdup(now);
    return *now != 0;
}

/* Against what was told last: a process that was frozen finds its lease expired before it asks anybody. */
void tell_lease(struct worker *w)
{
    struct lapse_daemon *d = w->daemon;
    bool leads = hand_leads(w->hand);
    if (leads == w->leads) /* only this thread writes it */
        return;
    struct event *ev = event_new(leads ? EVENT_LEASE_TAKEN : EVENT_LEASE_LOST, w->name, when_now());
    event_message(ev,
                  leads ? "this process leads: it holds the lease of '%s'"
                        : "the lease of '%s' was lost: another process may have it",
                  w->name);
    daemon_say(d, ev);
    meter_set(d->meter, METRIC_LEASE_HELD, (const char *[]){w->name}, leads);
    pthread_mutex_lock(&d->lock);
    w->leads = leads;
    pthread_mutex_unlock(&d->lock);
}

static void tell_held(struct worker *w, const struct report *r, instant at)
{
    const char *owner = "";
    for (size_t i = 0; i < r->n_policies && !*owner; i++)
        if (r->policies[i].kind == OUTCOME_HELD && r->policies[i].holder)
            owner = r->policies[i].holder->owner;
    if (!is_new(&w->said_lease, owner))
        return;
    struct event *ev = event_new(EVENT_HELD_ELSEWHERE, w->name, at);
    event_message(ev, "another process holds the lease and does the work");
    event_text(ev, "holder", owner);
    daemon_say(w->daemon, ev);
}

static void tell_brake(struct worker *w, const struct report *r, instant at)
{
    AUTO(text_release) struct text names = {0};
    const char *why = NULL;
    for (size_t i = 0; i < r->n_policies; i++)
        if (r->policies[i].kind == OUTCOME_PAUSED) {
            text_addf(&names, "%s%s", names.len ? ", " : "", r->policies[i].policy->name);
            why = why ? why : r->policies[i].error;
        }
    if (!is_new(&w->said_brake, text_str(&names)))
        return;
    struct event *ev = event_new(EVENT_PAUSED, w->name, at);
    event_message(ev, "%s", why ? why : "a brake is on");
    event_text(ev, "policies", text_str(&names));
    daemon_say(w->daemon, ev);
}

static void tell_remarks(struct worker *w, const struct report *r)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < r->n_remarks; i++)
        text_addf(&t, "%s%s", i ? "; " : "", r->remarks[i]);
    if (is_new(&w->said_remarks, text_str(&t)))
        daemon_remark(w->daemon, LEVEL_WARN, "%s", text_str(&t));
}

/* The gravest of its policies'; of one that has none, what became of it as a whole. */
static const char *tick_outcome(const struct report *r)
{
    static const enum outcome_kind gravest[] = {OUTCOME_FAILED,  OUTCOME_FUSE,   OUTCOME_REFUSED,
                                                OUTCOME_STOPPED, OUTCOME_PAUSED, OUTCOME_BUDGET,
                                                OUTCOME_WINDOW,  OUTCOME_HELD};
    if (r->exit == LAPSE_UNREACHABLE)
        return "unreachable";
    for (size_t g = 0; g < COUNT_OF(gravest); g++)
        for (size_t i = 0; i < r->n_policies; i++)
            if (r->policies[i].kind == gravest[g])
                return outcome_name(gravest[g]);
    return r->error ? "failed" : "done";
}

/* --- the status ------------------------------------------------------------------------------------------
 */

static int64_t rows_gone(const struct report *r, const struct report_policy *p)
{
    int64_t rows = 0;
    for (size_t i = 0; i < p->n_tables && r->kind == REPORT_SWEEP; i++)
        rows += p->gone[i];
    return rows;
}

/* What a report speaks of is mostly of the terms in force: then no name is looked for. */
static struct policy_state *state_of(struct lapse_daemon *d, const struct terms *t, const struct policy *p)
{
    const struct contract *c = t->contract;
    if (t != d->terms)
        return policy_state(d, p->name);
    bool own = strcmp(p->scheduler, OWN_SCHEDULER) == 0;
    return &d->states[own ? (size_t)(p - c->own->policies) + c->n_policies : (size_t)(p - c->policies)];
}

struct policy_state *policy_state(struct lapse_daemon *d, const char *name)
{
    for (size_t i = 0; i < terms_policies(d->terms); i++)
        if (strcmp(terms_policy(d->terms, i)->name, name) == 0)
            return &d->states[i];
    return NULL;
}

void states_free(struct lapse_daemon *d)
{
    for (size_t i = 0; d->terms && i < terms_policies(d->terms); i++)
        mem_free_p(&d->states[i].error);
    mem_free_p(&d->states);
}

static void note_policy(struct policy_state *s, const struct report *r, const struct report_policy *p,
                        instant at)
{
    s->ran = true;
    s->outcome = p->kind;
    s->pace = (struct outcome_pace){0};
    s->at = at;
    s->rows = rows_gone(r, p);
    s->rows_total += s->rows;
    s->due = r->kind == REPORT_PLAN && p->kind == OUTCOME_DONE ? report_rows(p) : -1;
    mem_free_p(&s->error);
    s->error = p->error && *p->error ? mem_strdup(p->error) : NULL;
}

static void note_error(struct worker *w, size_t errors)
{
    const char *error = troubles_now(w->troubles, &w->error_since);
    w->errors += (int64_t)errors;
    mem_free_p(&w->error);
    w->error = error ? mem_strdup(error) : NULL;
}

static void note_tick(struct worker *w, const struct report *r, instant started, size_t errors)
{
    struct lapse_daemon *d = w->daemon;
    pthread_mutex_lock(&d->lock);
    w->last = (struct last_tick){.there = true,
                                 .started = started,
                                 .duration_us = r->duration_us,
                                 .outcome = tick_outcome(r),
                                 .lost = r->exit == LAPSE_UNREACHABLE,
                                 .again = r->again_us ? when_now() + r->again_us : NEVER};
    d->gauge.lost = d->gauge.lost && w->last.lost; /* it is there again, whatever the last look found */
    for (size_t i = 0; i < r->n_policies; i++) {
        struct policy_state *s = state_of(d, w->held, r->policies[i].policy);
        w->last.rows += rows_gone(r, &r->policies[i]);
        if (s)
            note_policy(s, r, &r->policies[i], started);
    }
    note_error(w, errors);
    pthread_mutex_unlock(&d->lock);
}

/* --- all of it -------------------------------------------------------------------------------------------
 */

void tell_tick(struct worker *w, const struct report *r, instant started)
{
    struct lapse_daemon *d = w->daemon;
    instant at = when_now();
    meter_tick(d->meter, r, w->name); /* counted before it is said: who reads the one finds the other */
    tell_lease(w);
    tell_held(w, r, at);
    tell_brake(w, r, at);
    tell_remarks(w, r);
    events_of_tick(r, w->name, at, daemon_say_lent, d);
    size_t errors = troubles_of_tick(w->troubles, r, at, daemon_say_lent, d);
    meter_add(d->meter, METRIC_TICK_ERRORS, (const char *[]){w->name}, (double)errors);
    note_tick(w, r, started, errors);
}
