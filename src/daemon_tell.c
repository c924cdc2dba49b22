/* daemon_tell: what a tick did, told to everybody: the log, the metrics, those who ask for the status. In the
 * thread that did it. */
#include <string.h>

#include "daemon_parts.h"

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

void tell_lease(struct worker *w, bool led)
{
    struct lapse_daemon *d = w->daemon;
    bool leads = hand_leads(w->hand);
    if (leads == led)
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

/* The gravest of its policies'; of one that has none, what became of it as a whole. */
static const char *tick_outcome(const struct report *r)
{
    static const enum outcome_kind gravest[] = {OUTCOME_FAILED,  OUTCOME_FUSE,   OUTCOME_REFUSED,
                                                OUTCOME_STOPPED, OUTCOME_PAUSED, OUTCOME_HELD};
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

struct policy_state *policy_state(struct lapse_daemon *d, const struct terms *t, const struct policy *p)
{
    size_t n = d->terms->contract->n_policies;
    if (t == d->terms)
        return &d->states[p - t->contract->policies];
    for (size_t i = 0; i < n; i++)
        if (strcmp(d->terms->contract->policies[i].name, p->name) == 0)
            return &d->states[i];
    return NULL;
}

static void note_policy(struct policy_state *s, const struct report *r, const struct report_policy *p,
                        instant at)
{
    s->ran = true;
    s->outcome = p->kind;
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
                                 .lost = r->exit == LAPSE_UNREACHABLE};
    for (size_t i = 0; i < r->n_policies; i++) {
        struct policy_state *s = policy_state(d, w->held, r->policies[i].policy);
        w->last.rows += rows_gone(r, &r->policies[i]);
        if (s)
            note_policy(s, r, &r->policies[i], started);
    }
    note_error(w, errors);
    pthread_mutex_unlock(&d->lock);
}

/* --- all of it -------------------------------------------------------------------------------------------
 */

void tell_tick(struct worker *w, const struct report *r, instant started, bool led)
{
    struct lapse_daemon *d = w->daemon;
    instant at = when_now();
    tell_lease(w, led);
    tell_held(w, r, at);
    tell_brake(w, r, at);
    events_of_tick(r, w->name, at, daemon_say_lent, d);
    size_t errors = troubles_of_tick(w->troubles, r, at, daemon_say_lent, d);
    meter_tick(d->meter, r, w->name);
    meter_add(d->meter, METRIC_TICK_ERRORS, (const char *[]){w->name}, (double)errors);
    note_tick(w, r, started, errors);
}
