/* recover: what happens after something went wrong, and how a run ends. See sweep.h. */
#include "sweep/internal.h"

#include <stdlib.h>
#include <string.h>

#include "store/retry.h"

/* --- ending ------------------------------------------------------------------------------------------- */

bool run_asked_to_stop(const struct run *r)
{
    team_lock(r);
    bool stop = r->options->stop && r->options->stop(r->options->context);
    team_unlock(r);
    return stop;
}

/* Where several connections end the run, what went wrong is more than that it was asked to stop. */
void run_end(struct run *r, enum outcome_kind kind, const struct err *e)
{
    bool wrong = kind == OUTCOME_FAILED || kind == OUTCOME_FUSE;
    team_lock(r);
    bool was_wrong = r->out->kind == OUTCOME_FAILED || r->out->kind == OUTCOME_FUSE;
    if (!r->team->over || (wrong && !was_wrong)) {
        r->out->kind = kind;
        if (e)
            r->out->err = *e;
    }
    r->team->over = true;
    pthread_cond_broadcast(&r->team->changed);
    team_unlock(r);
    r->finished = true;
}

void run_stop(struct run *r)
{
    struct err e = ERR_INIT;
    err_set(&e, ERR_STOPPED, "stopped when asked to");
    run_end(r, OUTCOME_STOPPED, &e);
}

/* --- pauses and connections ------------------------------------------------------------------------------
 */

static bool ends_waiting(void *run)
{
    return run_asked_to_stop(run) || team_is_over(run);
}

static void on_wait(void *run, const struct err *why, int64_t waited_us)
{
    run_say_away(run, why, waited_us);
}

static struct patience patience_of(const struct run *r)
{
    return (struct patience){ends_waiting, (void *)r, r->plan->policy->away_us, on_wait};
}

static void count_retry(struct run *r)
{
    team_lock(r);
    r->out->retries++;
    team_unlock(r);
}

void run_wait_us(const struct run *r, int64_t us)
{
    struct patience p = patience_of(r);
    retry_wait_us(&p, us);
}

void run_wait_for(const struct run *r, int tries)
{
    run_wait_us(r, retry_pause_us(tries));
}

/* --- what a crash may undo -------------------------------------------------------------------------------
 */

static void keep(struct doubts *to, const struct plan *p, const struct slice *s, bool counted)
{
    to->list = mem_grow(to->list, to->n + 1, sizeof(*to->list));
    struct doubt *d = &to->list[to->n++];
    *d = (struct doubt){.plan = p, .counted = counted};
    slice_init(&d->went, p);
    memcpy(d->went.gone, s->gone, p->n_slots * sizeof(*s->gone));
    memcpy(d->went.detached, s->detached, p->n_detach_slots * sizeof(*s->detached));
    memcpy(d->went.transaction, s->transaction, sizeof(s->transaction));
    d->went.some.n_columns = s->some.n_columns;
    for (size_t i = 0; i < s->some.n_rows; i++)
        rows_push(&d->went.some, rows_at(&s->some, i));
}

static void forget(struct doubts *d)
{
    for (size_t i = 0; i < d->n; i++)
        slice_release(&d->list[i].went);
    free(d->list);
    *d = (struct doubts){0};
}

static void add_to_outcome(struct run *r, const struct doubt *d, int sign)
{
    for (size_t i = 0; i < d->plan->n_slots; i++)
        r->out->gone[i] += sign * d->went.gone[i];
    for (size_t i = 0; i < d->plan->n_detach_slots; i++)
        r->out->detached[i] += sign * d->went.detached[i];
}

static int64_t rows_of(const struct doubt *d)
{
    return d->went.gone[d->plan->root.slot];
}

void run_note_doubt(struct run *r, const struct slice *unknown)
{
    keep(&r->doubts, r->plan, unknown, false);
    r->out->unknown += rows_of(&r->doubts.list[r->doubts.n - 1]);
}

/* Rows that were counted may be back: they are counted apart, like those of a commit without an answer. */
static void doubt(struct run *r)
{
    for (size_t i = 0; i < r->unsure.n; i++) {
        const struct doubt *d = &r->unsure.list[i];
        add_to_outcome(r, d, -1);
        r->out->unknown += rows_of(d);
        keep(&r->doubts, d->plan, &d->went, true);
    }
    forget(&r->unsure);
}

static void heed_life(struct run *r)
{
    if (r->store->lives != r->lives) {
        doubt(r);
        r->lost = true; /* what came back is looked for again */
    }
    r->lives = r->store->lives;
}

void run_note_commit(struct run *r, const struct slice *committed)
{
    heed_life(r);
    if (!r->store->lax || r->store->syncs != r->syncs) /* what was before this one */
        forget(&r->unsure);
    r->syncs = r->store->syncs;
    if (r->store->lax)
        keep(&r->unsure, r->plan, committed, true);
}

void run_release_doubts(struct run *r)
{
    forget(&r->unsure);
    forget(&r->doubts);
}

/* A transaction deletes all of its rows or none: where all that are looked up are there it did not, and they are
 * looked for again. Rows that are gone may have gone by another's hand, also under a lease, which keeps out
 * sweeps and not applications: unless the server knows the transaction, they stay "unknown". */
static int look_up_one(struct run *r, const struct doubt *d, struct err *e)
{
    enum fate fate;
    if (!d->went.some.n_rows)
        return 0;
    if (r->store->ops->look_up(r->store, d->plan, &d->went, &fate, e) < 0)
        return -1;
    team_lock(r);
    if (fate == FATE_COMMITTED) {
        add_to_outcome(r, d, 1);
        r->out->batches += !d->counted;
    }
    if (fate == FATE_COMMITTED || fate == FATE_NOTHING)
        r->out->unknown -= rows_of(d);
    else if (fate == FATE_GONE)
        r->out->unknown_gone += rows_of(d);
    r->lost |= fate == FATE_NOTHING || fate == FATE_MIXED;
    r->back |= fate == FATE_NOTHING;
    team_unlock(r);
    if (fate == FATE_COMMITTED && !d->counted) {
        r->batch_started = when_monotonic_us();
        run_report_progress(r, &d->went);
    }
    return 0;
}

static void drop_first(struct doubts *d)
{
    slice_release(&d->list[0].went);
    memmove(d->list, d->list + 1, --d->n * sizeof(*d->list));
}

/* Ends: of what cannot be looked up so often, nothing is known. */
void run_look_up(struct run *r)
{
    int tries = 0;
    while (r->doubts.n) {
        struct err e = ERR_INIT;
        int failed = look_up_one(r, &r->doubts.list[0], &e);
        bool lost = failed && retry_is_lost(&e),
             again = lost || e.kind == ERR_BUSY || e.kind == ERR_CONFLICT || e.kind == ERR_TURN;
        if (failed && e.kind == ERR_LEASE)
            run_end(r, OUTCOME_FAILED, &e);
        if (!failed || !again || ++tries > TRIES) {
            drop_first(&r->doubts);
            tries = 0;
        } else if (!lost) {
            run_wait_for(r, tries);
        } else if (!run_reconnected(r, &e)) {
            return;
        }
    }
}

void run_make_sure(struct run *r)
{
    struct err e = ERR_INIT;
    int tries = 0, failed = 0;
    team_lock(r);
    bool any = r->out->batches > 0;
    team_unlock(r);
    if (!r->store->ops->sync || !any)
        return;
    while ((failed = r->store->ops->sync(r->store, &e)) < 0 && retry_is_lost(&e) && tries++ < TRIES)
        if (!run_reconnected(r, &e))
            break;
    bool stopped = failed && e.kind == ERR_STOPPED; /* the server goes on, and will see to it */
    team_lock(r);
    heed_life(r);
    if (failed && !stopped)
        doubt(r);
    forget(&r->unsure);
    team_unlock(r);
    if (!failed || r->finished)
        return;
    if (!stopped)
        err_wrap(&e, "rows are gone, but a power failure may bring some back");
    run_end(r, stopped ? OUTCOME_STOPPED : OUTCOME_FAILED, &e);
}

bool run_reconnected(struct run *r, struct err *e)
{
    struct patience p = patience_of(r);
    int64_t begun = when_monotonic_us();
    bool connected = retry_reconnect(r->store, &p, e);
    team_lock(r);
    r->out->pace.waited_us[PACE_AWAY] += when_monotonic_us() - begun;
    heed_life(r);
    if (!connected)
        doubt(r);
    team_unlock(r);
    if (!connected)
        return false;
    count_retry(r);
    r->lost = true;
    return true;
}

/* --- rows that cannot go
 * ------------------------------------------------------------------------------------ */

static const char *skip_reason(enum err_kind k)
{
    return k == ERR_REFUSED ? "refused" : k == ERR_TIMEOUT ? "timeout" : "locked";
}

/* Past the rows of this slice. */
void run_move_on(struct run *r, const struct slice *s)
{
    if (r->source != FROM_CURSOR) {
        run_pass_put_off(r, s);
        return;
    }
    cursor_copy(&r->cursor, &s->end);
    r->taken += r->trying;
    r->missed += r->trying ? (int64_t)r->trying - s->picked : 0;
    r->trying = 0;
    r->needs = 0;
}

/* How many there are now. */
static size_t add_skipped(struct run *r, const char *key, const char *reason, const struct err *e)
{
    struct outcome *o = r->out;
    team_lock(r);
    o->skipped = mem_grow(o->skipped, o->n_skipped + 1, sizeof(*o->skipped));
    o->skipped[o->n_skipped++] = (struct skipped_row){mem_strdup(key), reason, mem_strdup(e->text)};
    size_t n = o->n_skipped;
    team_unlock(r);
    return n;
}

void run_skip_row(struct run *r, const struct slice *s, const struct err *e)
{
    struct err many = *e;
    const char *reason = run_too_heavy(r, s, &many) ? "too_heavy" : skip_reason(e->kind);
    run_move_on(r, s);
    r->tries = 0;
    size_t skipped = add_skipped(r, s->key ? s->key : "?", reason, &many);
    r->locked = e->kind == ERR_BUSY || e->kind == ERR_CONFLICT ? r->locked + 1 : 0;
    if (r->locked >= LOCKED_MOST) {
        err_wrap(&many, "gave up after %d rows one after the other were locked", LOCKED_MOST);
        run_end(r, OUTCOME_FAILED, &many);
    }
    if (skipped < SKIPPED_MOST)
        return;
    err_wrap(&many, "gave up after %d rows that could not be deleted; the last", SKIPPED_MOST);
    run_end(r, OUTCOME_FAILED, &many);
}

/* Where others were faster each time, as on several nodes of a cluster, less may be fast enough. */
static bool may_be_faster(const struct run *r, const struct err *e)
{
    return e->kind == ERR_CONFLICT && r->most > 1 && r->plan->policy->batch != BATCH_ALL;
}

/* Half of what was tried; a row that was alone is skipped. Nothing picked: not a row's fault, the policy
 * fails. */
void run_split_or_skip(struct run *r, const struct slice *s, const struct err *e)
{
    r->tries = 0;
    if (s->picked > 1)
        r->most = s->picked / 2;
    else if (s->picked == 1 && run_fewer_ahead(r))
        ; /* of the same row */
    else if (s->picked == 1)
        run_skip_row(r, s, e);
    else if (may_be_faster(r, e))
        r->most /= 2;
    else
        run_end(r, OUTCOME_FAILED, e);
}

static bool try_again(struct run *r)
{
    int most = r->most < r->batch ? TRIES_SPLIT : TRIES;
    if (++r->tries > most)
        return false;
    count_retry(r);
    run_wait_for(r, r->tries);
    return true;
}

/* --- what to do about an error -------------------------------------------------------------------------- */

/* A database that is there each time, and breaks the connection each time, is reached: it is what this policy
 * asks of it that it does not bear. */
static void recover_connection(struct run *r, struct err *e)
{
    if (!run_reconnected(r, e)) {
        if (!run_asked_to_stop(r) && !team_is_over(r))
            run_end(r, OUTCOME_FAILED, e);
    } else if (++r->tries > TRIES) {
        e->kind = ERR_DATABASE;
        err_wrap(e, "gave up after the connection broke %d times one after the other", r->tries);
        run_end(r, OUTCOME_FAILED, e);
    }
}

/* Others, who do the same work, are at it for no longer than their batches last: that is no failure, however
 * long they go on. Whatever else may end the run ends it now as before. */
static void wait_for_turn(struct run *r, const struct slice *s)
{
    enum { LONGEST = 2 }; /* at most 80 ms: the other's transactions follow each other closely */
    struct err e = ERR_INIT;
    if (r->turns++ == 0)
        count_retry(r);
    run_turned(r);
    if (run_no_brake(r, &e) < 0 || run_keep_lease(r, &e) < 0)
        run_recover(r, s, &e);
    else
        run_wait_for(r, r->turns < LONGEST ? r->turns : LONGEST);
}

void run_recover(struct run *r, const struct slice *s, struct err *e)
{
    switch (e->kind) {
    case ERR_TURN:
        wait_for_turn(r, s);
        break;
    case ERR_CONFLICT:
    case ERR_BUSY:
        run_tell_lock(r);
        if (!try_again(r))
            run_split_or_skip(r, s, e);
        break;
    case ERR_REFUSED:
    case ERR_TIMEOUT:
        run_split_or_skip(r, s, e);
        break;
    case ERR_BUDGET:
        run_cut_to_budget(r, s, e);
        break;
    case ERR_PAUSED:
        run_end(r, OUTCOME_PAUSED, e);
        break;
    case ERR_STOPPED: /* interrupted */
        if (run_asked_to_stop(r))
            run_stop(r);
        else
            run_end(r, OUTCOME_STOPPED, e);
        break;
    case ERR_FUSE:
        run_trip(r, s, e);
        break;
    case ERR_COMMIT_UNKNOWN:
    case ERR_LOST:
        recover_connection(r, e);
        break;
    default:
        run_end(r, OUTCOME_FAILED, e);
        break;
    }
    if (!r->finished && run_asked_to_stop(r))
        run_stop(r);
}
