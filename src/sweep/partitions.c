/* partitions: partitions that are wholly due, dropped before the rows of the others go. See sweep.h.
 *
 * Each is looked at without a lock first; what is not whole, or would hold others up for too long, is left to
 * the pass that follows. Then, in a transaction of its own: brakes, lock and judgement, budget and limits,
 * drop, the lease's fence, COMMIT. So nothing is half done at any instant, and what others did before the
 * lock counts.
 *
 * Whatever speaks against it (a lock that others hold, a view, a time limit) fails nothing: the rows of that
 * partition go one by one, and the outcome says why. */
#include "sweep/internal.h"

#include <stdlib.h>
#include <string.h>

enum { DROP_TRIES = 2 };

static void note(struct run *r, const struct partition *x, int64_t rows, const char *why)
{
    struct outcome *o = r->out;
    o->partitions = mem_grow(o->partitions, o->n_partitions + 1, sizeof(*o->partitions));
    o->partitions[o->n_partitions++] =
        (struct partition_outcome){mem_strdup(x->print), rows, why ? mem_strdup(why) : NULL};
}

/* The rows of the partition as a slice: what budget, limits and progress ask about. */
static void as_slice(const struct run *r, int64_t rows, struct slice *s)
{
    s->picked = rows;
    s->gone[r->plan->root.slot] = rows;
}

static int drop_in(struct run *r, const struct partition *x, const struct partition_look *l, struct slice *s,
                   struct err *e)
{
    const struct partition_ops *ops = r->store->ops->partitions;
    int64_t rows;
    if (r->store->ops->begin(r->store, r->plan, e) < 0 || run_no_brake(r, e) < 0 ||
        ops->hold(r->store, r->plan, x, l, &rows, e) < 0)
        return -1;
    as_slice(r, rows, s);
    if (!rows)
        return 0;
    if (run_within_budget(r, s, 0, e) < 0 || run_within_limits(r, rows, e) < 0 ||
        ops->drop(r->store, r->plan, x, e) < 0 || run_pass_fence(r, e) < 0)
        return -1;
    return r->store->ops->commit(r->store, e);
}

/* In a transaction of its own. It is gone if s->picked says so. */
static int drop_once(struct run *r, const struct partition *x, const struct partition_look *l,
                     struct slice *s, struct err *e)
{
    r->batch_started = when_monotonic_us();
    int result = drop_in(r, x, l, s, e);
    if (result < 0 && e->kind == ERR_COMMIT_UNKNOWN)
        run_settle(r, NULL, s);
    if (result < 0 || !s->picked) {
        r->store->ops->rollback(r->store);
        return result < 0 ? -1 : run_keep_lease(r, e);
    }
    run_settle(r, s, NULL);
    run_turned(r);
    r->tries = 0;
    note(r, x, s->picked, NULL);
    run_report_progress(r, s);
    return 0;
}

/* Errors that concern this partition alone: its rows go one by one. Others are the run's. */
static bool is_its_own(enum err_kind k)
{
    return k == ERR_BUSY || k == ERR_CONFLICT || k == ERR_TIMEOUT || k == ERR_REFUSED || k == ERR_DATABASE ||
           k == ERR_BUDGET;
}

static bool is_worth_another_try(enum err_kind k)
{
    return k == ERR_BUSY || k == ERR_CONFLICT;
}

static void take(struct run *r, const struct partition *x, const struct partition_look *l)
{
    for (int tries = 1; !r->finished; tries++) {
        AUTO(slice_release) struct slice s;
        struct err e = ERR_INIT;
        slice_init(&s, r->plan);
        run_keep_pace(r);
        if (r->finished)
            return;
        run_say_begins(r);
        if (drop_once(r, x, l, &s, &e) == 0)
            return;
        if (!is_its_own(e.kind)) {
            run_recover(r, &s, &e);
            tries -= e.kind == ERR_TURN;
        } else if (!is_worth_another_try(e.kind) || tries >= DROP_TRIES) {
            note(r, x, l->rows, e.text);
            return;
        } else {
            r->out->retries++;
            run_wait_for(r, tries);
        }
        if (!r->finished && run_asked_to_stop(r))
            run_stop(r);
    }
}

/* False: it is not for dropping. What is not whole is not worth a word. */
static bool is_for_dropping(struct run *r, const struct partition *x, const struct partition_look *l)
{
    AUTO(text_release) struct text words = {0};
    if (!l->whole)
        return false;
    if (x->why)
        text_add(&words, x->why);
    else if (partition_is_quick(r->plan, l, &words) && l->rows > run_rows_in_budget(r, 0))
        text_addf(&words, "its %lld rows are more than budget.rows leaves", (long long)l->rows);
    if (words.len)
        note(r, x, l->rows, text_str(&words));
    return !words.len;
}

static void try_partition(struct run *r, const struct partition *x)
{
    const struct partition_ops *ops = r->store->ops->partitions;
    struct slice none = {0};
    while (!r->finished) {
        struct err e = ERR_INIT;
        struct partition_look l;
        if (run_look_for_own(r, &e) == 0 && ops->look(r->store, r->plan, x, &l, &e) == 0) {
            if (is_for_dropping(r, x, &l))
                take(r, x, &l);
            return;
        }
        if (is_its_own(e.kind)) {
            note(r, x, 0, e.text);
            return;
        }
        run_recover(r, &none, &e);
    }
}

static bool went(const struct run *r, const struct partition *x)
{
    for (size_t i = 0; i < r->out->n_partitions; i++)
        if (!r->out->partitions[i].why && strcmp(r->out->partitions[i].name, x->print) == 0)
            return true;
    return false;
}

static bool went_with_another(const struct run *r, const struct partitions *all, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (partition_is_below(&all->list[at], &all->list[i]) && went(r, &all->list[i]))
            return true;
    return false;
}

/* -1: there is no list, and the run is over or goes on without. */
static int list_all(struct run *r, struct partitions *ret)
{
    const struct partition every = {.print = r->plan->root.table->print};
    struct slice none = {0};
    while (!r->finished) {
        struct err e = ERR_INIT;
        if (r->store->ops->partitions->list(r->store, r->plan, ret, &e) == 0)
            return 0;
        if (is_its_own(e.kind)) {
            note(r, &every, 0, e.text);
            return -1;
        }
        run_recover(r, &none, &e);
    }
    return -1;
}

void run_partitions(struct run *r)
{
    AUTO(partitions_release) struct partitions all = {0};
    if (!r->plan->drops || list_all(r, &all) < 0)
        return;
    for (size_t i = 0; i < all.n && !r->finished && !run_used_up(r, 0); i++) {
        if (run_asked_to_stop(r))
            run_stop(r);
        else if (!went_with_another(r, &all, i))
            try_partition(r, &all.list[i]);
    }
}
