/* sweep: runs a plan. See sweep.h.
 *
 * A pass walks the due rows with a cursor, one slice at a time, each slice in a transaction of its own (or,
 * with batch: null, all slices in one). What can go wrong with a slice decides what happens next:
 *
 *   turn            the whole transaction again, however often: another judges ranks of the same table
 *   conflict, busy    the whole transaction again, after a pause that grows; then as refused
 *   refused, timeout  half as many rows; a row that is alone is skipped for this run and reported
 *   lost              a new connection, then again: nothing was committed
 *   commit unknown    a new connection, some of the rows are looked up: they count, or are found again;
 *                     apart where that cannot be known
 *   anything else     the policy fails
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
#include "sweep/internal.h"

#include <stdlib.h>
#include <string.h>

#include "store/retry.h"

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

void run_drop_skipped(struct outcome *o, size_t from)
{
    for (size_t i = from; i < o->n_skipped; i++) {
        free(o->skipped[i].key);
        free(o->skipped[i].error);
    }
    o->n_skipped = from;
}

void outcome_release(struct outcome *o)
{
    run_drop_skipped(o, 0);
    free(o->skipped);
    for (size_t i = 0; i < o->n_partitions; i++) {
        free(o->partitions[i].name);
        free(o->partitions[i].why);
    }
    free(o->partitions);
    free(o->gone);
    free(o->detached);
    *o = (struct outcome){0};
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

/* One connection at a time. */
void run_report_progress(struct run *r, const struct slice *committed)
{
    team_lock(r);
    int64_t now = when_monotonic_us();
    r->out->duration_us = now - r->started;
    r->out->batch_us = now - r->batch_started;
    r->out->deleting_us += r->out->batch_us;
    r->out->batch_gone = committed->gone;
    if (r->options->progress)
        r->options->progress(r->options->context, r->plan, r->out);
    r->out->batch_gone = NULL;
    team_unlock(r);
}

void run_say_begins(struct run *r)
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
    const struct stretch in = {.after = &r->cursor};
    rows_release(&r->finds);
    r->taken = 0;
    if (r->store->ops->scout(r->store, r->plan, &in, SCOUT_MOST, &r->finds, e) < 0)
        return -1;
    r->last_finds = r->finds.n_rows < SCOUT_MOST;
    return r->finds.n_rows > 0;
}

void run_forget_finds(struct run *r)
{
    rows_release(&r->finds);
    r->taken = r->trying = 0;
    r->last_finds = false;
    r->missed = 0;
}

/* What the policy, a split, the pace and the budget leave of a batch. */
static int64_t most_rows(const struct run *r, int64_t open)
{
    int64_t budget = run_rows_in_budget(r, open), pace = run_pace_rows(r);
    int64_t most = r->most < pace ? r->most : pace;
    return most < budget ? most : budget;
}

/* The next slice: of the finds, or from the cursor on. */
static int take(struct run *r, int64_t open, struct slice *s, struct err *e)
{
    const struct store_ops *ops = r->store->ops;
    const struct stretch in = {&r->cursor, &r->upto};
    int64_t most = most_rows(r, open);
    s->split_most = run_split_most(r);
    if (r->source != FROM_CURSOR)
        return run_take_put_off(r, most, s, e);
    if (!r->plan->examines)
        return ops->slice(r->store, r->plan, &in, most, s, e);
    size_t left = r->finds.n_rows - r->taken;
    r->trying = left < (size_t)most ? left : (size_t)most;
    struct rows next = r->finds;
    next.cells = r->finds.cells + r->taken * r->finds.n_columns;
    next.n_rows = r->trying;
    return ops->slice_of(r->store, r->plan, &next, s, e);
}

void run_turned(struct run *r)
{
    team_lock(r);
    r->team->turned = true;
    team_unlock(r);
}

/* The time that counts is what others may have to wait for: from here to the commit. */
static int begin(struct run *r, struct err *e)
{
    if (r->store->ops->begin(r->store, r->plan, e) < 0)
        return -1;
    r->turns = 0;
    r->begun = when_monotonic_us();
    return 0;
}

/* One slice in a transaction of its own. ret_more: there may be another. */
static int batch_once(struct run *r, struct slice *s, bool *ret_more, struct err *e)
{
    const struct store_ops *ops = r->store->ops;
    int found = run_look_for_own(r, e) < 0 ? -1 : r->source != FROM_CURSOR ? 1 : look_around(r, e);
    *ret_more = found > 0;
    if (found <= 0)
        return found;
    run_say_begins(r);
    int64_t asked = most_rows(r, 0);
    if (begin(r, e) < 0 || run_no_brake(r, e) < 0 || take(r, 0, s, e) < 0 ||
        run_within_budget(r, s, 0, e) < 0 ||
        run_within_limits(r, s->gone[r->plan->root.slot] + s->stays, e) < 0 ||
        (s->picked && (run_pass_fence(r, e) < 0 || ops->commit(r->store, e) < 0))) {
        run_settle(r, NULL, e->kind == ERR_COMMIT_UNKNOWN ? s : NULL);
        ops->rollback(r->store);
        return -1;
    }
    *ret_more = s->picked || r->plan->examines || r->source != FROM_CURSOR;
    run_turned(r);
    if (!s->picked) {
        ops->rollback(r->store);
        run_move_on(r, s);
        return run_keep_lease(r, e);
    }
    run_settle(r, s, NULL);
    r->taken_now += r->source == FROM_CURSOR ? s->picked : 0;
    if (!s->stays)
        run_move_on(r, s);
    *ret_more =
        r->source != FROM_CURSOR || r->plan->examines || !r->upto.set || !cursor_same(&r->cursor, &r->upto);
    grow_back(r);
    run_note_put_off(r, s);
    run_tell_pace(r, s, r->upto.set ? s->picked : asked); /* the end of a part is not the end of the rows */
    return 0;
}

/* false: there is no other in this part. */
static bool next_batch(struct run *r)
{
    AUTO(slice_release) struct slice s;
    struct err e = ERR_INIT;
    bool more = true;
    r->batch_started = when_monotonic_us();
    slice_init(&s, r->plan);
    if (batch_once(r, &s, &more, &e) < 0) {
        run_settle(r, NULL, NULL);
        if (run_leaves_piece(r, s.picked, &e))
            return false;
        run_recover(r, &s, &e);
        return !r->finished;
    }
    if (s.picked)
        run_report_progress(r, &s);
    return more;
}

/* Before each transaction; true: what it may do is set aside. */
static bool may_go_on(struct run *r)
{
    if (r->finished || run_used_up(r, 0))
        return false;
    run_look_up(r);
    run_keep_pace(r);
    if (r->finished || !run_claim(r))
        return false;
    if (run_asked_to_stop(r))
        run_stop(r);
    return !r->finished;
}

static void walk(struct run *r)
{
    run_begin_rounds(r);
    while (run_choose_source(r) && may_go_on(r)) {
        r->walked |= !next_batch(r);
        run_settle(r, NULL, NULL);
        run_heed_rounds(r);
    }
    run_settle(r, NULL, NULL);
}

void run_pass_in_batches(struct run *r)
{
    r->walked = false;
    walk(r);
}

void run_work_off(struct run *r)
{
    r->walked = r->heavy_now = true;
    walk(r);
    r->heavy_now = false;
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
        int found = run_used_up(r, *open) ? 0 : look_around(r, e);
        if (found <= 0)
            return found;
        if (run_no_brake(r, e) < 0 || ops->mark(r->store, e) < 0)
            return -1;
        if (take(r, *open, &s, e) == 0 && run_within_budget(r, &s, *open, e) == 0) {
            if (!s.picked && !r->plan->examines)
                return 0;
            add_counts(r->plan, all->gone, all->detached, &s);
            if (s.some.n_rows) { /* the transaction is one: those of the last slice speak for all */
                rows_release(&all->some);
                all->some = s.some;
                s.some = (struct rows){0};
                memcpy(all->transaction, s.transaction, sizeof(all->transaction));
            }
            if (run_within_limits(r, *open, e) < 0)
                return -1;
            r->taken_now += s.picked;
            run_move_on(r, &s);
            grow_back(r);
            run_turned(r);
            run_heed_rounds(r);
            continue;
        }
        if (e->kind != ERR_REFUSED && e->kind != ERR_TIMEOUT && e->kind != ERR_BUDGET)
            return -1;
        struct err why = ERR_INIT;
        if (ops->undo(r->store, &why) < 0) { /* then the whole transaction is undone, or lost */
            *e = why.kind == ERR_CONFLICT || retry_is_lost(&why) ? why : *e;
            return -1;
        }
        if (e->kind == ERR_BUDGET)
            run_cut_to_budget(r, &s, e);
        else
            run_split_or_skip(r, &s, e);
    }
    return -1; /* gave up: r says why */
}

static void all_in_one(struct run *r)
{
    const struct store_ops *ops = r->store->ops;
    for (int tries = 0; may_go_on(r);) {
        r->batch_started = when_monotonic_us();
        AUTO(slice_release) struct slice all;
        struct err e = ERR_INIT;
        size_t skipped = r->out->n_skipped;
        slice_init(&all, r->plan);
        cursor_release(&r->cursor);
        run_forget_finds(r);
        r->most = r->batch;
        run_begin_rounds(r);
        run_say_begins(r);
        if (begin(r, &e) == 0 && slices_of_all(r, &all, &e) == 0 && run_pass_fence(r, &e) == 0 &&
            ops->commit(r->store, &e) == 0) {
            run_settle(r, &all, NULL);
            run_report_progress(r, &all);
            return;
        }
        ops->rollback(r->store);
        run_settle(r, NULL, e.kind == ERR_COMMIT_UNKNOWN ? &all : NULL);
        if (r->finished)
            return;
        r->team->used_up = ERR_NONE; /* by rows that did not go */
        r->needs = 0;
        run_drop_skipped(r->out, skipped);
        r->tries = e.kind == ERR_TURN
                       ? tries
                       : tries++; /* slices inside reset it; here it counts whole transactions */
        run_recover(r, &all, &e);
    }
}

static void pass(struct run *r)
{
    cursor_release(&r->cursor);
    run_forget_finds(r);
    run_forget_put_off(r);
    r->most = r->batch;
    r->tries = 0;
    r->needs = 0;
    if (r->plan->policy->batch == BATCH_ALL)
        all_in_one(r);
    else
        team_pass(r);
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
        run_recover(r, &none, &e);
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
 * broken connection holds its rows until the server notices: then a few, after pauses that grow. Says whether
 * nothing is left; that look was the last thing it did. */
static bool look_again(struct run *r)
{
    int most = r->lost ? LOOKS_AFTER_LOSS : 1;
    for (int i = 0; i < most && !r->finished && !r->team->used_up; i++) {
        bool sure = !r->team->left_pieces; /* what went wrong there may be wrong with the question, too */
        r->team->left_pieces = 0;
        int64_t left = rows_left(r), before = r->out->gone[r->plan->root.slot];
        if (run_asked_to_stop(r)) {
            run_stop(r);
            return false;
        }
        if (left == 0 && sure)
            return true;
        if (r->lost)
            run_wait_for(r, i + 3);
        run_drop_skipped(r->out, 0); /* they are tried again, too: what goes now was not skipped */
        pass(r);
        r->last_look = r->out->gone[r->plan->root.slot] - before;
    }
    return false;
}

/* What was skipped because others were at it may be gone by now: then there is nothing to be said of it. */
static void forget_what_went(struct run *r)
{
    struct err e = ERR_INIT;
    int64_t left = 0;
    for (size_t i = 0; i < r->out->n_skipped; i++)
        if (strcmp(r->out->skipped[i].reason, "locked") != 0)
            return;
    if (r->out->n_skipped && r->store->ops->remaining(r->store, r->plan, 1, &left, &e) == 0 && !left)
        run_drop_skipped(r->out, 0);
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
        run_recover(r, &none, &e);
    }
    return false;
}

static void say_used_up(struct run *r)
{
    struct err e = ERR_INIT;
    if (r->finished || !r->team->used_up || !more_is_due(r))
        return;
    if (r->team->used_up == ERR_WINDOW)
        err_set(&e, ERR_WINDOW, "the window closed, and rows are still due");
    else
        err_set(&e, ERR_BUDGET, "%s is used up, and rows are still due", r->team->used_up_why);
    run_end(r, r->team->used_up == ERR_WINDOW ? OUTCOME_WINDOW : OUTCOME_BUDGET, &e);
}

/* Brakes and the fuse before anything is deleted. */
static int judge(struct run *r, struct err *e)
{
    r->most_gone = INT64_MAX;
    if (run_no_brake(r, e) < 0)
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
        run_end(r, OUTCOME_FUSE, &e);
    } else if (r->fuse.verdict == FUSE_WOULD_TRIP) {
        err_set(&e, ERR_FUSE,
                "the fuse tripped: more than %lld row%s would go, the most that its limits allow; nothing is "
                "deleted until 'lapse ack %s'",
                (long long)r->fuse.most, r->fuse.most == 1 ? "" : "s", r->plan->policy->name);
        run_trip(r, &none, &e);
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
        run_recover(r, &none, &e);
    }
    return false;
}

/* Whether the run had what was acknowledged: it is done, or it failed after it deleted something, and would
 * otherwise pass the limit again each time. One that was stopped may be begun again. */
static bool used_ack(const struct run *r)
{
    if (!r->plan->policy->limits || r->fuse.verdict != FUSE_ACKED)
        return false;
    return !r->finished || (r->out->kind == OUTCOME_FAILED && run_gone_before(r) > 0);
}

static void settle_fuse(struct run *r)
{
    struct err e = ERR_INIT;
    if (!used_ack(r))
        return;
    for (int tries = 0; fuse_use(r->store, r->plan, &r->fuse, &e) < 0; tries++) {
        if (retry_is_lost(&e) && tries < TRIES && run_reconnected(r, &e))
            continue;
        err_wrap(&e, "rows are gone, but the acknowledged fuse could not be reset");
        if (!r->finished)
            run_end(r, OUTCOME_FAILED, &e);
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
            run_recover(r, &none, &e);
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
            run_end(r, OUTCOME_FAILED, &e);
        }
        return;
    }
}

/* What turns out to be there at the end goes now. */
static void settle_doubts(struct run *r)
{
    for (int looks = 0; looks < LOOKS_AFTER_LOSS; looks++) {
        r->back = false;
        run_make_sure(r);
        run_look_up(r);
        if (!r->back || r->finished || r->team->used_up)
            return;
        pass(r);
    }
}

void sweep_run(struct store *s, const struct plan *p, const struct sweep_options *o, struct outcome *ret)
{
    int64_t started = when_monotonic_us();
    AUTO(team_release) struct team team;
    struct run r = {.store = s,
                    .plan = p,
                    .whole = p,
                    .options = o,
                    .out = ret,
                    .team = &team,
                    .lease = o->lease,
                    .lives = s->lives};
    team_init(&team);
    r.started = r.looked_for_own = started;
    pacer_init(&team.pacer, p->policy, started);
    pacer_init(&team.ahead, p->policy, started);
    r.batch = p->policy->batch == BATCH_ALL ? SLICE_ALL : p->policy->batch;
    ret->kind = OUTCOME_DONE;
    bool looks_anyway = p->examines && !p->beyond; /* a probe would examine as much; of ranks it is cheap */
    bool begun = !run_asked_to_stop(&r) && may_begin(&r);
    if (begun && (looks_anyway || anything_due(&r))) {
        int64_t dropping = when_monotonic_us();
        run_partitions(&r);
        ret->deleting_us += ret->n_partitions ? when_monotonic_us() - dropping : 0;
        pass(&r);
        bool over = look_again(&r);
        forget_what_went(&r);
        say_used_up(&r);
        if (!r.finished && !team.used_up)
            ret->left = over ? 0 : rows_left(&r);
        int64_t again = r.last_look < LEFT_MOST ? r.last_look : LEFT_MOST;
        ret->came_again = again > 0 && ret->left >= again;
    } else if (!r.finished && run_asked_to_stop(&r)) {
        run_stop(&r);
    }
    look_at_source(&r);
    run_end_pace(&r);
    struct patience asks = s->asks;
    s->asks = (struct patience){0}; /* how it ended is written down */
    if (begun)
        settle_fuse(&r);
    settle_doubts(&r);
    run_release_doubts(&r);
    s->asks = asks;
    cursor_release(&r.cursor);
    run_forget_finds(&r);
    run_forget_put_off(&r);
    ret->duration_us = when_monotonic_us() - started;
    if (ret->deleting_us > ret->duration_us) /* of several connections together */
        ret->deleting_us = ret->duration_us;
}
