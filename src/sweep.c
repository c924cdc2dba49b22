/* sweep: runs a plan. See sweep.h.
 *
 * A pass walks the due rows with a cursor, one slice at a time, each slice in a transaction of its own (or,
 * with batch: null, all slices in one). What can go wrong with a slice decides what happens next:
 *
 *   conflict, busy    the whole transaction again, after a pause that grows; then as refused
 *   refused, timeout  half as many rows; a row that is alone is skipped for this run and reported
 *   lost              a new connection, then again: nothing was committed
 *   commit unknown    counted apart, a new connection, and on from the same place: what went is not found
 * again anything else     the policy fails
 *
 * Under a lease, the last statement before COMMIT is its fence: where another took the lease meanwhile, the
 * transaction is rolled back and the policy fails.
 *
 * A budget is no failure: the batch is cut to the rows that are left of it, and when it is used up the run
 * ends after the commit; whether rows are still due then is asked once, and makes the difference between
 * "done" and "budget".
 *
 * The pass ends because the cursor only moves forward: past what went, past what was skipped.
 *
 * Where a bound examines many rows to find few, one reading finds the rows for many slices (the finds); each
 * slice takes the next of them, locks those that are still there and judges them again. */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

#include "retry.h"

enum {
    TRIES = 8,            /* of one transaction before it is split */
    TRIES_SPLIT = 2,      /* … once it is being split */
    LOCKED_MOST = 5,      /* rows in a row that a lock kept: then it is no row's lock, but the table's */
    LEFT_MOST = 1000,     /* how far rows that stayed are counted */
    LOOKS_AFTER_LOSS = 4, /* at rows that the session of a broken connection may still hold */
};
static const int64_t LOOK_FOR_OWN_US = US_PER_S;

struct run {
    struct store *store;
    const struct plan *plan;
    const struct sweep_options *options;
    struct outcome *out;
    struct cursor cursor;
    struct rows finds;      /* plans that examine: what the last reading found … */
    size_t taken;           /* … how many of it were had */
    size_t trying;          /* … and how many are in the current slice */
    bool last_finds;        /* … and there is nothing beyond */
    int64_t missed;         /* finds that could not be locked or had changed */
    int64_t most;           /* rows of the next slice */
    int64_t batch;          /* rows a slice may have */
    int tries;              /* failed tries of the current transaction */
    int locked;             /* rows skipped for a lock since one last went */
    bool lost;              /* a connection broke */
    struct fuse fuse;       /* policies with limits */
    int64_t most_gone;      /* rows of its own table that the run may delete */
    int64_t looked_for_own; /* when lapse's own tables were last looked for */
    int64_t started, batch_started;
    bool said_begins;
    bool turned;             /* a batch went by, with or without rows */
    enum err_kind used_up;   /* ERR_BUDGET, ERR_WINDOW: no further batch */
    const char *used_up_why; /* "budget.rows" */
    bool finished;
};

const char *outcome_name(enum outcome_kind k)
{
    static const char *const names[] = {
        [OUTCOME_DONE] = "done",         [OUTCOME_FAILED] = "failed",       [OUTCOME_REFUSED] = "refused",
        [OUTCOME_DISABLED] = "disabled", [OUTCOME_STOPPED] = "stopped",     [OUTCOME_PAUSED] = "paused",
        [OUTCOME_FUSE] = "fuse",         [OUTCOME_HELD] = "held_elsewhere", [OUTCOME_BUDGET] = "budget",
        [OUTCOME_WINDOW] = "window"};
    return names[k];
}

void outcome_init(struct outcome *o, const struct plan *p)
{
    *o = (struct outcome){0};
    if (!p)
        return;
    o->gone = mem_alloc(p->n_slots * sizeof(*o->gone));
    o->detached = mem_alloc(p->n_detach_slots * sizeof(*o->detached));
}

static void drop_skipped(struct outcome *o, size_t from)
{
    for (size_t i = from; i < o->n_skipped; i++) {
        free(o->skipped[i].key);
        free(o->skipped[i].error);
    }
    o->n_skipped = from;
}

void outcome_release(struct outcome *o)
{
    drop_skipped(o, 0);
    free(o->skipped);
    free(o->gone);
    free(o->detached);
    *o = (struct outcome){0};
}

/* --- ending ------------------------------------------------------------------------------------------- */

static bool asked_to_stop(const struct run *r)
{
    return r->options->stop && r->options->stop(r->options->context);
}

static void end(struct run *r, enum outcome_kind kind, const struct err *e)
{
    r->out->kind = kind;
    if (e)
        r->out->err = *e;
    r->finished = true;
}

static void stop(struct run *r)
{
    struct err e = ERR_INIT;
    err_set(&e, ERR_STOPPED, "stopped when asked to");
    end(r, OUTCOME_STOPPED, &e);
}

/* --- pauses and connections ------------------------------------------------------------------------------
 */

static struct patience patience_of(const struct run *r)
{
    return (struct patience){r->options->stop, r->options->context};
}

static void wait_for(const struct run *r, int tries)
{
    struct patience p = patience_of(r);
    retry_wait_us(&p, retry_pause_us(tries));
}

static bool reconnected(struct run *r, struct err *e)
{
    struct patience p = patience_of(r);
    if (!retry_reconnect(r->store, &p, e))
        return false;
    r->out->retries++;
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
static void move_on(struct run *r, const struct slice *s)
{
    cursor_copy(&r->cursor, &s->end);
    r->taken += r->trying;
    r->missed += r->trying ? (int64_t)r->trying - s->picked : 0;
    r->trying = 0;
}

static void skip_row(struct run *r, const struct slice *s, const struct err *e)
{
    struct outcome *o = r->out;
    const char *key = s->key ? s->key : "?";
    move_on(r, s);
    r->tries = 0;
    o->skipped = mem_grow(o->skipped, o->n_skipped + 1, sizeof(*o->skipped));
    o->skipped[o->n_skipped++] =
        (struct skipped_row){mem_strdup(key), skip_reason(e->kind), mem_strdup(e->text)};
    r->locked = e->kind == ERR_BUSY || e->kind == ERR_CONFLICT ? r->locked + 1 : 0;
    struct err many = *e;
    if (r->locked >= LOCKED_MOST) {
        err_wrap(&many, "gave up after %d rows one after the other were locked", LOCKED_MOST);
        end(r, OUTCOME_FAILED, &many);
    }
    if (o->n_skipped < SKIPPED_MOST)
        return;
    err_wrap(&many, "gave up after %d rows that could not be deleted; the last", SKIPPED_MOST);
    end(r, OUTCOME_FAILED, &many);
}

/* Half of what was tried; a row that was alone is skipped. Nothing picked: not a row's fault, the policy
 * fails. */
static void split_or_skip(struct run *r, const struct slice *s, const struct err *e)
{
    r->tries = 0;
    if (s->picked > 1)
        r->most = s->picked / 2;
    else if (s->picked == 1)
        skip_row(r, s, e);
    else
        end(r, OUTCOME_FAILED, e);
}

static bool try_again(struct run *r)
{
    int most = r->most < r->batch ? TRIES_SPLIT : TRIES;
    if (++r->tries > most)
        return false;
    r->out->retries++;
    wait_for(r, r->tries);
    return true;
}

/* --- brakes and fuses ------------------------------------------------------------------------------------
 */

/* -1 with ERR_PAUSED: a brake is on. Asked in every batch, so that one that is set now works now. */
static int no_brake(struct run *r, struct err *e)
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
static int look_for_own(struct run *r, struct err *e)
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
static int pass_fence(struct run *r, struct err *e)
{
    struct lease *l = r->options->lease;
    return !l || lease_fence(l, e) == 0 ? 0 : lease_refused(e);
}

/* After a batch that committed nothing, and so renewed nothing. */
static int keep_lease(struct run *r, struct err *e)
{
    struct lease *l = r->options->lease;
    return !l || lease_keep(l, e) == 0 ? 0 : lease_refused(e);
}

/* --- limits --------------------------------------------------------------------------------------------- */

/* Rows that may be gone after a commit without an answer count as gone. */
static int64_t gone_before(const struct run *r)
{
    return r->out->gone[r->plan->root.slot] + r->out->unknown;
}

/* -1 with ERR_FUSE: with these rows the run would pass its limit. */
static int within_limits(const struct run *r, int64_t rows, struct err *e)
{
    if (gone_before(r) + rows <= r->most_gone)
        return 0;
    return err_set(
        e, ERR_FUSE,
        "the fuse tripped in mid-course: the run would have passed %lld rows, the most that its limits "
        "allow; that batch was rolled back, and nothing more is deleted until 'lapse ack %s'",
        (long long)r->most_gone, r->plan->policy->name);
}

/* --- the budget ----------------------------------------------------------------------------------------- */

/* Rows that may still go; `open`: rows that went in the open transaction. */
static int64_t rows_in_budget(const struct run *r, int64_t open)
{
    int64_t most = r->options->budget_rows;
    return most > 0 ? most - gone_before(r) - open : INT64_MAX;
}

static void use_up(struct run *r, enum err_kind kind, const char *why)
{
    r->used_up = kind;
    r->used_up_why = why;
}

/* Whether no further slice may begin. Something is always tried first: a budget of time that is shorter than
 * one batch must not keep everything for ever. */
static bool used_up(struct run *r, int64_t open)
{
    const struct sweep_options *o = r->options;
    if (rows_in_budget(r, open) <= 0)
        use_up(r, ERR_BUDGET, "budget.rows");
    else if (o->budget_batches > 0 && r->out->batches >= o->budget_batches)
        use_up(r, ERR_BUDGET, "budget.batches");
    else if (o->budget_us > 0 && r->turned && when_monotonic_us() - r->started >= o->budget_us)
        use_up(r, ERR_BUDGET, "budget.time");
    else if (o->until && when_now() >= o->until)
        use_up(r, ERR_WINDOW, "window");
    return r->used_up != ERR_NONE;
}

/* -1 with ERR_BUDGET: rows below the picked ones, in the same table, would pass the budget. */
static int within_budget(const struct run *r, const struct slice *s, int64_t open, struct err *e)
{
    int64_t rows = s->gone[r->plan->root.slot];
    if (rows <= rows_in_budget(r, open))
        return 0;
    return err_set(e, ERR_BUDGET, "%lld rows of the policy's own table go together, and budget.rows is %lld",
                   (long long)rows, (long long)r->options->budget_rows);
}

/* What does not fit goes in parts, or in the next run; a row that would not fit into any is skipped. */
static void cut_to_budget(struct run *r, const struct slice *s, const struct err *e)
{
    if (s->picked > 1)
        r->most = s->picked / 2;
    else if (s->gone[r->plan->root.slot] > r->options->budget_rows)
        skip_row(r, s, e);
    else
        use_up(r, ERR_BUDGET, "budget.rows");
}

/* In a transaction of its own: what tripped it is rolled back. */
static void trip(struct run *r, const struct slice *s, const struct err *e)
{
    struct err why = ERR_INIT;
    int64_t rows = s->gone ? gone_before(r) + s->gone[r->plan->root.slot] : r->fuse.due;
    for (int tries = 0; fuse_trip(r->store, r->plan, &r->fuse, rows, &why) < 0; tries++) {
        if (retry_is_lost(&why) && tries < TRIES && reconnected(r, &why))
            continue;
        err_wrap(&why, "the fuse tripped, but that could not be kept for the next run");
        end(r, OUTCOME_FAILED, &why);
        return;
    }
    end(r, OUTCOME_FUSE, e);
}

/* A database that is there each time, and breaks the connection each time, is reached: it is what this policy
 * asks of it that it does not bear. */
static void recover_connection(struct run *r, struct err *e)
{
    if (!reconnected(r, e)) {
        if (!asked_to_stop(r))
            end(r, OUTCOME_FAILED, e);
    } else if (++r->tries > TRIES) {
        e->kind = ERR_DATABASE;
        err_wrap(e, "gave up after the connection broke %d times one after the other", r->tries);
        end(r, OUTCOME_FAILED, e);
    }
}

static void recover(struct run *r, const struct slice *s, struct err *e)
{
    switch (e->kind) {
    case ERR_CONFLICT:
    case ERR_BUSY:
        if (!try_again(r))
            split_or_skip(r, s, e);
        break;
    case ERR_REFUSED:
    case ERR_TIMEOUT:
        split_or_skip(r, s, e);
        break;
    case ERR_BUDGET:
        cut_to_budget(r, s, e);
        break;
    case ERR_PAUSED:
        end(r, OUTCOME_PAUSED, e);
        break;
    case ERR_STOPPED: /* interrupted */
        end(r, OUTCOME_STOPPED, e);
        break;
    case ERR_FUSE:
        trip(r, s, e);
        break;
    case ERR_COMMIT_UNKNOWN:
    case ERR_LOST:
        recover_connection(r, e);
        break;
    default:
        end(r, OUTCOME_FAILED, e);
        break;
    }
    if (!r->finished && asked_to_stop(r))
        stop(r);
}

/* --- slices
 * ---------------------------------------------------------------------------------------------------- */

static void add_counts(const struct plan *p, int64_t *gone, int64_t *detached, const struct slice *s)
{
    for (size_t i = 0; i < p->n_slots; i++)
        gone[i] += s->gone[i];
    for (size_t i = 0; i < p->n_detach_slots; i++)
        detached[i] += s->detached[i];
}

/* After a split, back up to full batches. */
static void grow_back(struct run *r)
{
    r->locked = 0;
    r->most = r->most > r->batch / 2 ? r->batch : r->most * 2;
    r->tries = 0;
}

static void report_progress(struct run *r, const struct slice *committed)
{
    int64_t now = when_monotonic_us();
    r->out->duration_us = now - r->started;
    r->out->batch_us = now - r->batch_started;
    r->out->batch_gone = committed->gone;
    if (r->options->progress)
        r->options->progress(r->options->context, r->plan, r->out);
    r->out->batch_gone = NULL;
}

static void say_begins(struct run *r)
{
    if (r->options->begins && !r->said_begins)
        r->options->begins(r->options->context, r->plan);
    r->said_begins = true;
}

/* Makes sure that there are finds to take, if the plan works with them. 0: there is nothing more; -1: failed.
 */
static int look_around(struct run *r, struct err *e)
{
    if (!r->plan->examines || r->taken < r->finds.n_rows)
        return 1;
    if (r->last_finds)
        return 0;
    rows_release(&r->finds);
    r->taken = 0;
    if (r->store->ops->scout(r->store, r->plan, &r->cursor, SCOUT_MOST, &r->finds, e) < 0)
        return -1;
    r->last_finds = r->finds.n_rows < SCOUT_MOST;
    return r->finds.n_rows > 0;
}

static void forget_finds(struct run *r)
{
    rows_release(&r->finds);
    r->taken = r->trying = 0;
    r->last_finds = false;
    r->missed = 0;
}

/* The next slice: of the finds, or from the cursor on. */
static int take(struct run *r, int64_t open, struct slice *s, struct err *e)
{
    const struct store_ops *ops = r->store->ops;
    int64_t budget = rows_in_budget(r, open), most = r->most < budget ? r->most : budget;
    if (!r->plan->examines)
        return ops->slice(r->store, r->plan, &r->cursor, most, s, e);
    size_t left = r->finds.n_rows - r->taken;
    r->trying = left < (size_t)most ? left : (size_t)most;
    struct rows next = r->finds;
    next.cells = r->finds.cells + r->taken * r->finds.n_columns;
    next.n_rows = r->trying;
    return ops->slice_of(r->store, r->plan, &next, s, e);
}

/* One slice in a transaction of its own. ret_more: there may be another. */
static int batch_once(struct run *r, struct slice *s, bool *ret_more, struct err *e)
{
    const struct store_ops *ops = r->store->ops;
    int found = look_for_own(r, e) < 0 ? -1 : look_around(r, e);
    *ret_more = found > 0;
    if (found <= 0)
        return found;
    say_begins(r);
    if (ops->begin(r->store, r->plan, e) < 0 || no_brake(r, e) < 0 || take(r, 0, s, e) < 0 ||
        within_budget(r, s, 0, e) < 0 || within_limits(r, s->gone[r->plan->root.slot], e) < 0 ||
        (s->picked && (pass_fence(r, e) < 0 || ops->commit(r->store, e) < 0))) {
        if (e->kind == ERR_COMMIT_UNKNOWN)
            r->out->unknown += s->gone[r->plan->root.slot];
        ops->rollback(r->store);
        return -1;
    }
    *ret_more = s->picked || r->plan->examines;
    r->turned = true;
    if (!s->picked) {
        ops->rollback(r->store);
        move_on(r, s);
        return keep_lease(r, e);
    }
    add_counts(r->plan, r->out->gone, r->out->detached, s);
    move_on(r, s);
    r->out->batches++;
    grow_back(r);
    return 0;
}

static void pass_in_batches(struct run *r)
{
    while (!r->finished && !used_up(r, 0)) {
        if (asked_to_stop(r)) {
            stop(r);
            return;
        }
        r->batch_started = when_monotonic_us();
        AUTO(slice_release) struct slice s;
        struct err e = ERR_INIT;
        bool more;
        slice_init(&s, r->plan);
        if (batch_once(r, &s, &more, &e) < 0)
            recover(r, &s, &e);
        else if (!more)
            return;
        else if (s.picked)
            report_progress(r, &s);
    }
}

/* All slices in one transaction; a slice that is refused is undone alone. -1: the transaction as a whole
 * failed. A budget that is used up ends it like the last row: what went so far is committed. */
static int slices_of_all(struct run *r, struct slice *all, struct err *e)
{
    const struct store_ops *ops = r->store->ops;
    int64_t *open = &all->gone[r->plan->root.slot];
    while (!r->finished) {
        AUTO(slice_release) struct slice s;
        slice_init(&s, r->plan);
        int found = used_up(r, *open) ? 0 : look_around(r, e);
        if (found <= 0)
            return found;
        if (no_brake(r, e) < 0 || ops->mark(r->store, e) < 0)
            return -1;
        if (take(r, *open, &s, e) == 0 && within_budget(r, &s, *open, e) == 0) {
            if (!s.picked && !r->plan->examines)
                return 0;
            add_counts(r->plan, all->gone, all->detached, &s);
            if (within_limits(r, *open, e) < 0)
                return -1;
            move_on(r, &s);
            grow_back(r);
            r->turned = true;
            continue;
        }
        if (e->kind != ERR_REFUSED && e->kind != ERR_TIMEOUT && e->kind != ERR_BUDGET)
            return -1;
        struct err ignored = ERR_INIT;
        if (ops->undo(r->store, &ignored) < 0)
            return -1;
        if (e->kind == ERR_BUDGET)
            cut_to_budget(r, &s, e);
        else
            split_or_skip(r, &s, e);
    }
    return -1; /* gave up: r says why */
}

static void all_in_one(struct run *r)
{
    const struct store_ops *ops = r->store->ops;
    for (int tries = 0; !r->finished && !used_up(r, 0);) {
        if (asked_to_stop(r)) {
            stop(r);
            return;
        }
        r->batch_started = when_monotonic_us();
        AUTO(slice_release) struct slice all;
        struct err e = ERR_INIT;
        size_t skipped = r->out->n_skipped;
        slice_init(&all, r->plan);
        cursor_release(&r->cursor);
        forget_finds(r);
        r->most = r->batch;
        say_begins(r);
        if (ops->begin(r->store, r->plan, &e) == 0 && slices_of_all(r, &all, &e) == 0 &&
            pass_fence(r, &e) == 0 && ops->commit(r->store, &e) == 0) {
            add_counts(r->plan, r->out->gone, r->out->detached, &all);
            r->out->batches++;
            report_progress(r, &all);
            return;
        }
        ops->rollback(r->store);
        if (r->finished)
            return;
        if (e.kind == ERR_COMMIT_UNKNOWN)
            r->out->unknown += all.gone[r->plan->root.slot];
        r->used_up = ERR_NONE; /* by rows that did not go */
        drop_skipped(r->out, skipped);
        r->tries = tries++; /* slices inside reset it; here it counts whole transactions */
        recover(r, &all, &e);
    }
}

static void pass(struct run *r)
{
    cursor_release(&r->cursor);
    forget_finds(r);
    r->most = r->batch;
    r->tries = 0;
    if (r->plan->policy->batch == BATCH_ALL)
        all_in_one(r);
    else
        pass_in_batches(r);
}

/* --- reading around it
 * --------------------------------------------------------------------------------------------- */

static bool anything_due(struct run *r)
{
    struct slice none = {0};
    bool due = false;
    while (!r->finished) {
        struct err e = ERR_INIT;
        if (r->store->ops->probe(r->store, r->plan, &due, &e) == 0)
            return due;
        recover(r, &none, &e);
    }
    return false;
}

/* Rows that are due and still there, without those skipped. A plan that examines knows when it had all it
 * found. */
static int64_t rows_left(struct run *r)
{
    int64_t n = 0;
    struct err e = ERR_INIT;
    if (r->plan->examines && !r->missed && !r->lost)
        return 0;
    if (r->store->ops->remaining(r->store, r->plan, LEFT_MOST, &n, &e) < 0)
        return 0; /* it only informs */
    int64_t skipped = (int64_t)r->out->n_skipped;
    return n > skipped ? n - skipped : 0;
}

/* Rows may have been locked by others, or moved before the cursor, meanwhile: one more look. The session of a
 * broken connection holds its rows until the server notices: then a few, after pauses that grow. */
static void look_again(struct run *r)
{
    int most = r->lost ? LOOKS_AFTER_LOSS : 1;
    for (int i = 0; i < most && !r->finished && !r->used_up && rows_left(r) > 0; i++) {
        if (r->lost)
            wait_for(r, i + 3);
        drop_skipped(r->out, 0); /* they are tried again, too: what goes now was not skipped */
        pass(r);
    }
}

/* Whether rows are still due beside those that were skipped. */
static bool more_is_due(struct run *r)
{
    struct slice none = {0};
    int64_t skipped = (int64_t)r->out->n_skipped, n = 0;
    if (!skipped)
        return anything_due(r);
    while (!r->finished) {
        struct err e = ERR_INIT;
        if (r->store->ops->remaining(r->store, r->plan, skipped + 1, &n, &e) == 0)
            return n > skipped;
        recover(r, &none, &e);
    }
    return false;
}

static void say_used_up(struct run *r)
{
    struct err e = ERR_INIT;
    if (r->finished || !r->used_up || !more_is_due(r))
        return;
    if (r->used_up == ERR_WINDOW)
        err_set(&e, ERR_WINDOW, "the window closed, and rows are still due");
    else
        err_set(&e, ERR_BUDGET, "%s is used up, and rows are still due", r->used_up_why);
    end(r, r->used_up == ERR_WINDOW ? OUTCOME_WINDOW : OUTCOME_BUDGET, &e);
}

/* Brakes and the fuse before anything is deleted. */
static int judge(struct run *r, struct err *e)
{
    r->most_gone = INT64_MAX;
    if (no_brake(r, e) < 0)
        return -1;
    if (!r->plan->policy->limits)
        return 0;
    if (fuse_judge(r->store, r->plan, -1, &r->fuse, e) < 0)
        return -1;
    if (r->fuse.verdict != FUSE_ACKED)
        r->most_gone = r->fuse.most;
    return 0;
}

static void say_fuse(struct run *r)
{
    struct slice none = {0};
    struct err e = ERR_INIT;
    AUTO(text_release) struct text words = {0};
    if (r->fuse.verdict == FUSE_TRIPPED) {
        fuse_words(r->plan, &r->fuse, &words);
        err_set(&e, ERR_FUSE, "%s", text_str(&words));
        end(r, OUTCOME_FUSE, &e);
    } else if (r->fuse.verdict == FUSE_WOULD_TRIP) {
        err_set(&e, ERR_FUSE,
                "the fuse tripped: more than %lld row%s would go, the most that its limits allow; nothing is "
                "deleted until 'lapse ack %s'",
                (long long)r->fuse.most, r->fuse.most == 1 ? "" : "s", r->plan->policy->name);
        trip(r, &none, &e);
    }
}

static bool may_begin(struct run *r)
{
    struct slice none = {0};
    while (!r->finished) {
        struct err e = ERR_INIT;
        if (judge(r, &e) == 0) {
            r->tries = 0;
            say_fuse(r);
            return !r->finished;
        }
        recover(r, &none, &e);
    }
    return false;
}

/* Whether the run had what was acknowledged: it is done, or it failed after it deleted something, and would
 * otherwise pass the limit again each time. One that was stopped may be begun again. */
static bool used_ack(const struct run *r)
{
    if (!r->plan->policy->limits || r->fuse.verdict != FUSE_ACKED)
        return false;
    return !r->finished || (r->out->kind == OUTCOME_FAILED && gone_before(r) > 0);
}

static void settle_fuse(struct run *r)
{
    struct err e = ERR_INIT;
    if (!used_ack(r))
        return;
    for (int tries = 0; fuse_use(r->store, r->plan, &r->fuse, &e) < 0; tries++) {
        if (retry_is_lost(&e) && tries < TRIES && reconnected(r, &e))
            continue;
        err_wrap(&e, "rows are gone, but the acknowledged fuse could not be reset");
        if (!r->finished)
            end(r, OUTCOME_FAILED, &e);
        return;
    }
}

/* While the source is empty nothing is an orphan, so the sweep found an early end: that must be said. Asked
 * twice, because to a reading that waited for it a table that was truncated and filled again looks empty. */
static void look_at_source(struct run *r)
{
    const struct expr any = {.kind = EXPR_TRUE};
    const struct plan *p = r->plan;
    struct slice none = {0};
    bool has = true, asked = false;
    while (!r->finished && p->source_needed) {
        struct err e = ERR_INIT;
        if (r->store->ops->has_value(r->store, p->source, &any, &has, &e) < 0) {
            recover(r, &none, &e);
            continue;
        }
        if (!has && !asked) {
            asked = true;
            continue;
        }
        if (!has) {
            err_set(
                &e, ERR_DATABASE,
                "the source %s became empty while the sweep ran: what is left would pass for orphans, and "
                "stays; see why, or set allow_empty: true",
                p->source->print);
            end(r, OUTCOME_FAILED, &e);
        }
        return;
    }
}

void sweep_run(struct store *s, const struct plan *p, const struct sweep_options *o, struct outcome *ret)
{
    int64_t started = when_monotonic_us();
    struct run r = {.store = s, .plan = p, .options = o, .out = ret};
    r.started = r.looked_for_own = started;
    r.batch = p->policy->batch == BATCH_ALL ? SLICE_ALL : p->policy->batch;
    ret->kind = OUTCOME_DONE;
    bool looks_anyway = p->examines && !p->beyond; /* a probe would examine as much; of ranks it is cheap */
    bool begun = !asked_to_stop(&r) && may_begin(&r);
    if (begun && (looks_anyway || anything_due(&r))) {
        pass(&r);
        look_again(&r);
        say_used_up(&r);
        if (!r.finished && !r.used_up)
            ret->left = rows_left(&r);
    } else if (!r.finished && asked_to_stop(&r)) {
        stop(&r);
    }
    look_at_source(&r);
    if (begun)
        settle_fuse(&r);
    cursor_release(&r.cursor);
    forget_finds(&r);
    ret->duration_us = when_monotonic_us() - started;
}
