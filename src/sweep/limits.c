/* limits: what a run may do: brakes, lease, fuse, budget. See sweep.h. */
#include "sweep/internal.h"

#include <stdlib.h>
#include <string.h>

#include "store/retry.h"

static const int64_t LOOK_FOR_OWN_US = US_PER_S;

/* --- brakes and fuses ------------------------------------------------------------------------------------
 */

/* -1 with ERR_PAUSED: a brake is on. Asked in every batch, so that one that is set now works now. */
int run_no_brake(struct run *r, struct err *e)
{
    AUTO(brakes_release) struct brakes brakes = {0};
    if (!r->store->own.version)
        return 0;
    if (r->store->ops->own->brakes(r->store, &brakes, e) < 0)
        return -1;
    const struct brake *on = brakes_on(&brakes, r->plan->policy->name, r->plan->policy->scheduler);
    if (!on)
        return 0;
    AUTO(text_release) struct text words = {0};
    brake_words(on, &words);
    return err_set(e, ERR_PAUSED, "%s", text_str(&words));
}

/* Tables that were installed since the run began hold brakes too; looked for now and then, between
 * transactions. */
int run_look_for_own(struct run *r, struct err *e)
{
    int64_t now = when_monotonic_us();
    if (r->store->own.version || now - r->looked_for_own < LOOK_FOR_OWN_US)
        return 0;
    r->looked_for_own = now;
    return r->store->ops->own->look(r->store, e);
}

/* --- the lease ------------------------------------------------------------------------------------------ */

static int lease_refused(struct err *e)
{
    if (e->kind != ERR_LEASE)
        return -1;
    struct err why = *e;
    return err_set(e, ERR_LEASE, "%s; what was not committed was rolled back", why.text);
}

/* Nothing but COMMIT may follow. */
int run_pass_fence(struct run *r, struct err *e)
{
    struct lease *l = r->lease;
    return !l || lease_fence(l, e) == 0 ? 0 : lease_refused(e);
}

/* After a batch that committed nothing, and so renewed nothing. */
int run_keep_lease(struct run *r, struct err *e)
{
    struct lease *l = r->lease;
    return !l || lease_keep(l, e) == 0 ? 0 : lease_refused(e);
}

/* --- limits --------------------------------------------------------------------------------------------- */

/* Rows that may be gone after a commit without an answer count as gone. */
int64_t run_gone_before(const struct run *r)
{
    return r->out->gone[r->plan->root.slot] + r->out->unknown;
}

/* Whether others may be at it, too: all in one transaction is one connection's, and counts for itself. */
static bool shares(const struct run *r)
{
    return r->claims && r->plan->policy->batch != BATCH_ALL;
}

/* -1 with ERR_FUSE: with these rows the run would pass its limit. Rows that others are about to commit count;
 * where only they would make it pass, whether they really go is waited for. It is not for long: nothing but
 * the fence and COMMIT is left for them to do, and no row that is locked here holds these up. */
int run_within_limits(struct run *r, int64_t rows, struct err *e)
{
    struct team *t = r->team;
    team_lock(r);
    while (t->rows_ending && rows <= r->most_gone - run_gone_before(r) &&
           rows > r->most_gone - run_gone_before(r) - t->rows_ending)
        pthread_cond_wait(&t->changed, &t->lock);
    bool fits = rows <= r->most_gone - run_gone_before(r);
    if (fits && shares(r)) {
        r->ending = rows;
        t->rows_ending += rows;
    }
    team_unlock(r);
    if (fits)
        return 0;
    return err_set(
        e, ERR_FUSE,
        "the fuse tripped in mid-course: the run would have passed %lld rows, the most that its limits "
        "allow; that batch was rolled back, and nothing more is deleted until 'lapse ack %s'",
        (long long)r->most_gone, r->plan->policy->name);
}

/* --- the budget ----------------------------------------------------------------------------------------- */

/* What others have set aside is not there for this connection. */
static int64_t rows_not_gone(const struct run *r)
{
    int64_t most = r->options->budget_rows;
    return most > 0 ? most - run_gone_before(r) : INT64_MAX;
}

static int64_t rows_to_claim(const struct run *r)
{
    return rows_not_gone(r) - (r->team->rows_claimed - r->claimed);
}

/* Rows that may still go; `open`: rows that went in the open transaction. */
int64_t run_rows_in_budget(const struct run *r, int64_t open)
{
    if (shares(r))
        return r->claimed;
    team_lock(r);
    int64_t rows = rows_not_gone(r) - open;
    team_unlock(r);
    return rows;
}

static void use_up(struct run *r, enum err_kind kind, const char *why)
{
    r->team->used_up = kind;
    r->team->used_up_why = why;
}

/* Whether no further slice may begin. Something is always tried first: a budget of time that is shorter than
 * one batch must not keep everything for ever. */
static bool used_up(struct run *r, int64_t open)
{
    const struct sweep_options *o = r->options;
    int64_t rows = r->needs ? r->needs : 1;
    if (rows_not_gone(r) - open < rows)
        use_up(r, ERR_BUDGET, "budget.rows");
    else if (o->budget_batches > 0 && r->out->batches >= o->budget_batches)
        use_up(r, ERR_BUDGET, "budget.batches");
    else if (o->budget_us > 0 && r->team->turned && when_monotonic_us() - r->started >= o->budget_us)
        use_up(r, ERR_BUDGET, "budget.time");
    else if (o->until && when_now() >= o->until)
        use_up(r, ERR_WINDOW, "window");
    return r->team->used_up != ERR_NONE;
}

bool run_used_up(struct run *r, int64_t open)
{
    team_lock(r);
    bool is = used_up(r, open);
    team_unlock(r);
    return is;
}

static bool claim(struct run *r)
{
    struct team *t = r->team;
    const struct sweep_options *o = r->options;
    int64_t rows = rows_to_claim(r);
    if (rows < (r->needs ? r->needs : 1) ||
        (o->budget_batches > 0 && r->out->batches + t->batches_open >= o->budget_batches))
        return false;
    r->claims = true;
    int64_t pace = pacer_rows(&t->pacer), most = r->most < pace ? r->most : pace;
    r->claimed = most < rows ? most : rows;
    r->claimed = r->claimed < r->needs ? r->needs : r->claimed;
    t->rows_claimed += r->claimed;
    t->batches_open++;
    return true;
}

/* Ends because a claim that fails where nobody else has one means that it is used up. */
bool run_claim(struct run *r)
{
    struct team *t = r->team;
    bool had = false;
    team_lock(r);
    while (!t->over && !used_up(r, 0) && !(had = claim(r)))
        pthread_cond_wait(&t->changed, &t->lock);
    r->finished |= t->over;
    team_unlock(r);
    return had;
}

static void count(struct run *r, const struct slice *s)
{
    for (size_t i = 0; i < r->plan->n_slots; i++)
        r->out->gone[i] += s->gone[i];
    for (size_t i = 0; i < r->plan->n_detach_slots; i++)
        r->out->detached[i] += s->detached[i];
    r->out->batches++;
}

void run_settle(struct run *r, const struct slice *committed, const struct slice *unknown)
{
    struct team *t = r->team;
    team_lock(r);
    if (committed) {
        count(r, committed);
        run_note_commit(r, committed);
    }
    if (unknown)
        run_note_doubt(r, unknown);
    t->batches_open -= r->claims;
    t->rows_claimed -= r->claimed;
    t->rows_ending -= r->ending;
    r->claims = false;
    r->claimed = r->ending = 0;
    pthread_cond_broadcast(&t->changed);
    team_unlock(r);
}

/* -1 with ERR_BUDGET: rows below the picked ones, in the same table, would pass the budget. */
int run_within_budget(struct run *r, const struct slice *s, int64_t open, struct err *e)
{
    int64_t rows = s->gone[r->plan->root.slot];
    team_lock(r);
    bool fits = rows <= rows_to_claim(r) - open;
    if (fits && shares(r)) {
        r->team->rows_claimed += rows - r->claimed;
        r->claimed = rows;
        pthread_cond_broadcast(&r->team->changed);
    }
    team_unlock(r);
    if (fits)
        return 0;
    return err_set(e, ERR_BUDGET, "%lld rows of the policy's own table go together, and budget.rows is %lld",
                   (long long)rows, (long long)r->options->budget_rows);
}

/* What does not fit goes in parts, or in the next run; a row that would not fit into any is skipped. */
void run_cut_to_budget(struct run *r, const struct slice *s, const struct err *e)
{
    if (s->picked > 1)
        r->most = s->picked / 2;
    else if (s->gone[r->plan->root.slot] > r->options->budget_rows)
        run_skip_row(r, s, e);
    else
        r->needs = s->gone[r->plan->root.slot];
}

/* In a transaction of its own: what tripped it is rolled back. */
void run_trip(struct run *r, const struct slice *s, const struct err *e)
{
    struct err why = ERR_INIT;
    team_lock(r);
    int64_t rows = s->gone ? run_gone_before(r) + s->gone[r->plan->root.slot] : r->fuse.due;
    bool another = r->team->tripping;
    r->team->tripping = true;
    team_unlock(r);
    r->finished |= another;
    for (int tries = 0; !another && fuse_trip(r->store, r->plan, &r->fuse, rows, &why) < 0; tries++) {
        if (retry_is_lost(&why) && tries < TRIES && run_reconnected(r, &why))
            continue;
        err_wrap(&why, "the fuse tripped, but that could not be kept for the next run");
        run_end(r, OUTCOME_FAILED, &why);
        return;
    }
    if (!another)
        run_end(r, OUTCOME_FUSE, e);
}
