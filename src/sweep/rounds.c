/* sweep: a trigger that inserts a due row for each one that is deleted would keep a run going without end.
 *
 * The cursor moves forward only, but such rows are inserted ahead of it. So it is looked now and then whether
 * fewer rows are due ahead than some number. Where more than twice that number go afterwards, and the way
 * still has no end, they did not lie there when it was looked: they come as fast as they go.
 *
 * It is looked after 1,000 rows, 2,000, 4,000 and so on, no further ahead than a sixteenth of what has gone.
 * So a run that ends reads little more for it. */
#include "sweep/internal.h"

enum { FIRST_LOOK = 1000, PART = 16, ROUNDS = 2 };

void run_begin_rounds(struct run *r)
{
    r->taken_now = r->ahead = r->ahead_at = 0;
    r->look_at = FIRST_LOOK;
}

/* Whether fewer than so many are due behind the cursor. As rows lie no part can be told by its rows: there
 * they are counted. */
static int look_ahead(struct run *r, int64_t most, bool *ret_fewer, struct err *e)
{
    const struct store_ops *ops = r->store->ops;
    AUTO(cursor_release) struct cursor end = {0};
    int64_t n = 0;
    if (r->plan->walk == WALK_PLACE) {
        int counted = ops->remaining(r->store, r->plan, most, &n, e);
        *ret_fewer = n < most;
        return counted;
    }
    int cut = ops->cut(r->store, r->plan, &r->cursor, most, &end, e);
    *ret_fewer = !end.set;
    return cut;
}

static void end_without_end(struct run *r)
{
    struct err e = ERR_INIT;
    err_set(
        &e, ERR_DATABASE,
        "rows come as fast as they go: fewer than %lld were due, %lld have gone since, and there is no end; "
        "does a trigger insert rows that are due?",
        (long long)r->ahead, (long long)(r->taken_now - r->ahead_at));
    run_end(r, OUTCOME_FAILED, &e);
}

void run_heed_rounds(struct run *r)
{
    struct err e = ERR_INIT;
    bool fewer = false;
    if (r->finished || r->plan->examines) /* which reads once what there is */
        return;
    if (r->ahead && r->taken_now - r->ahead_at >= ROUNDS * r->ahead)
        end_without_end(r);
    if (r->ahead || r->taken_now < r->look_at)
        return;
    int64_t most = r->look_at / PART > FIRST_LOOK ? r->look_at / PART : FIRST_LOOK;
    r->look_at *= r->plan->walk == WALK_PLACE ? PART : 2;
    if (look_ahead(r, most, &fewer, &e) < 0 ||
        !fewer) /* it only looks: what is wrong, the next batch meets */
        return;
    r->ahead = most;
    r->ahead_at = r->taken_now;
}
