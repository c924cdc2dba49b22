/* pacing: how hard a sweep pushes: between its transactions it looks how others fare, and waits where the
 * pacer says so. Never inside of a transaction; while it waits it stays what it was: it hears a brake and a
 * request to stop, keeps its lease, and its budget of time runs. */
#include "sweep/internal.h"

#include <stdio.h>

#include "store/retry.h"

static const int64_t LONG_US = US_PER_S; /* of a wait: between two looks at brakes, and two words of it */

/* Rows that own others and rows that are owned differ in what they cost: each kind has its own. */
static struct pacer *pacer_of(const struct run *r)
{
    return r->source == FROM_HEAVY ? &r->team->ahead : &r->team->pacer;
}

static void say(struct run *r, enum pace_reason reason, const char *why, int64_t waiting_us)
{
    struct outcome_pace *o = &r->out->pace;
    AUTO(text_release) struct text words = {0};
    team_lock(r);
    pacer_words(pacer_of(r), reason, &words);
    snprintf(o->words, sizeof(o->words), "%s%s%.300s", text_str(&words), *why ? ": " : "", why);
    o->reason = reason;
    o->rows = pacer_rows(pacer_of(r));
    o->waiting_us = waiting_us;
    r->out->duration_us = when_monotonic_us() - r->started;
    if (r->options->paced)
        r->options->paced(r->options->context, r->plan, r->out);
    team_unlock(r);
}

void run_say_away(struct run *r, const struct err *why, int64_t waited_us)
{
    say(r, PACE_AWAY, why->text, waited_us + 1);
}

/* One connection at a time. */
static bool begin_look(struct run *r, int64_t now)
{
    struct team *t = r->team;
    team_lock(r);
    bool wants = !t->looking && pacer_wants_look(pacer_of(r), now);
    t->looking |= wants;
    team_unlock(r);
    return wants;
}

/* A look that fails does not end the sweep, unless the connection broke: then the next transaction, which
 * knows what to do, finds that out. Where the contract sets a limit that only a look can tell to be kept, the
 * pacer waits, and says why. */
static void look(struct run *r)
{
    struct err e = ERR_INIT;
    struct pressure said;
    int64_t begun = when_monotonic_us();
    if (!begin_look(r, begun))
        return;
    int failed = r->store->ops->pressure(r->store, &said, &e);
    said.lax = r->store->lax;
    int64_t now = when_monotonic_us();
    bool fatal = failed && (retry_is_lost(&e) || e.kind == ERR_STOPPED);
    team_lock(r);
    r->team->looking = false;
    if (failed)
        pacer_deaf(pacer_of(r), e.text, now, now - begun);
    else
        pacer_heard(pacer_of(r), &said, now, now - begun);
    if (failed && !fatal && !r->out->pace.deaf[0])
        snprintf(r->out->pace.deaf, sizeof(r->out->pace.deaf), "%.200s", e.text);
    team_unlock(r);
    if (fatal)
        run_recover(r, &(struct slice){0}, &e);
}

/* What may end a long wait. */
static void look_up(struct run *r)
{
    struct err e = ERR_INIT;
    if (run_look_for_own(r, &e) < 0 || run_no_brake(r, &e) < 0)
        run_recover(r, &(struct slice){0}, &e);
    run_turned(r); /* its time is used, though nothing was done with it */
}

static void wait(struct run *r, struct pace_wait w)
{
    struct err e = ERR_INIT;
    int64_t begun = when_monotonic_us();
    if (run_keep_lease(r, &e) < 0) {
        run_recover(r, &(struct slice){0}, &e);
        return;
    }
    run_wait_us(r, w.us < LONG_US ? w.us : LONG_US);
    team_lock(r);
    r->out->pace.waited_us[w.reason] += when_monotonic_us() - begun;
    team_unlock(r);
}

/* What nobody will ever know is not waited for. */
static bool is_in_vain(struct run *r, struct pace_wait w)
{
    const struct pacer *p = pacer_of(r);
    struct err e = ERR_INIT;
    team_lock(r);
    bool vain = w.us && w.reason == PACE_LAG && !p->deaf && p->heard.unknowable;
    if (vain)
        err_set(&e, ERR_DATABASE, "pace.lag cannot be kept: %s", p->heard.unknown);
    team_unlock(r);
    if (!vain)
        return false;
    run_end(r, OUTCOME_FAILED, &e);
    return true;
}

/* How long to wait now; *ret_reason is what holds it back, *ret_new: that was another before. */
static struct pace_wait ask(struct run *r, int64_t now, enum pace_reason *ret_reason, bool *ret_new)
{
    struct pacer *p = pacer_of(r);
    team_lock(r);
    struct pace_wait w = pacer_wait(p, now);
    *ret_reason = w.us && w.reason != PACE_PROBE ? w.reason : pacer_reason(p);
    *ret_new = *ret_reason != r->out->pace.reason;
    team_unlock(r);
    return w;
}

void run_keep_pace(struct run *r)
{
    int64_t begun = when_monotonic_us(), said_us = begun, now = begun;
    while (!r->finished && !run_asked_to_stop(r) && !team_is_over(r)) {
        enum pace_reason reason;
        bool is_new;
        look(r);
        struct pace_wait w = ask(r, now = when_monotonic_us(), &reason, &is_new);
        if (is_in_vain(r, w))
            return;
        bool lasts = w.us && now - said_us >= LONG_US;
        if (lasts)
            look_up(r);
        if (is_new || lasts) {
            say(r, reason, "", w.us ? now - begun + 1 : 0);
            said_us = now;
        }
        if (!w.us || r->finished || run_used_up(r, 0))
            break;
        wait(r, w);
    }
    team_lock(r);
    r->out->pace.waiting_us = 0;
    r->out->pace.rows = pacer_rows(pacer_of(r));
    team_unlock(r);
}

int64_t run_pace_rows(const struct run *r)
{
    team_lock(r);
    int64_t rows = pacer_rows(pacer_of(r));
    team_unlock(r);
    return rows;
}

void run_tell_lock(struct run *r)
{
    team_lock(r);
    pacer_locked(pacer_of(r));
    team_unlock(r);
}

void run_end_pace(struct run *r)
{
    bool gone_for_good = r->out->pace.reason == PACE_AWAY && r->out->kind == OUTCOME_FAILED;
    if ((r->out->batches || r->out->pace.reason) && !gone_for_good)
        say(r, r->out->pace.reason == PACE_AWAY ? PACE_FREE : r->out->pace.reason, "", 0);
}

void run_tell_pace(struct run *r, const struct slice *committed, int64_t asked)
{
    int64_t now = when_monotonic_us(), all = 0;
    for (size_t i = 0; i < r->plan->n_slots; i++)
        all += committed->gone[i];
    bool ahead = r->source == FROM_HEAVY; /* what it owns counts, then */
    team_lock(r);
    pacer_batch(pacer_of(r),
                &(struct pace_batch){.asked = ahead ? committed->split_most : asked,
                                     .rows = ahead ? all : committed->picked,
                                     .rows_all = all > committed->picked ? all : committed->picked,
                                     .us = now - r->begun},
                now);
    team_unlock(r);
}
