/* purging: carries out purges that are due. See purging.h.
 *
 * A batch is one transaction: lock due rows, and all rows of the same instances; judge each instance by the
 * row that decides; erase, remove the rows, commit. So a cancel that deletes the rows first wins wholly, and
 * one that waits for the lock finds them gone, and the data with them. What can go wrong decides what happens
 * next:
 *
 *   conflict, busy    the whole transaction again, after a pause that grows; then half as many
 *   refused, timeout  half as many; one that is alone is tried again later, and after ten attempts parked
 *   lost              a new connection, then again: nothing was committed
 *   commit unknown    counted apart, a new connection, and on
 *   anything else     the space fails, for now
 *
 * A group ends because every row that is picked goes, or waits for something else afterwards; a batch in
 * which others hold everything that was picked ends it too. Where the instances that were picked have more
 * rows than one transaction can hold, it only removes some of those that change nothing, and the next one
 * finds fewer. */
#include "purge/purging.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "store/retry.h"

enum {
    BATCH = 1000,       /* rows of the first transaction */
    BATCH_MOST = 10000, /* of many more, a server would rather read the whole table than look each up */
    TRIES = 8,          /* of one transaction before it is split */
    TRIES_SPLIT = 2,    /* … once it is being split */
    LOCKED_MOST = 20,   /* purges in a row that a lock kept: then it is not theirs, but the table's */
    LOOKS_AFTER_LOSS = 4,
    FURTHER_MOST = 100, /* times in a group that others held all that was picked */
    TIMEOUT_PARTS = 10,
    MUCH_BYTES = 4 << 20, /* of ids in one transaction */
};
static const int64_t SLOW_US = 300 * US_PER_MS; /* a transaction that takes longer is too large */
static const int64_t BUSY_US = 30 * US_PER_S;   /* what a lock keeps is tried again after so long */

struct run {
    struct store *store;
    const struct purge_plan *plan;
    const struct purging_options *options;
    struct purging_outcome *out;
    struct patience patience;
    instant now;
    int64_t most; /* rows of the next batch */
    int tries;    /* failed tries of the current batch */
    int locked;   /* purges put off for a lock since one last went */
    int looks;    /* still to be taken at rows that the session of a broken connection may hold */
    int further;  /* times that others held all that was picked of this group */
    bool finished;
};

/* One transaction: what was picked, and what is to become of it. */
struct batch {
    struct purge_rows rows; /* picked, and the others of the same instances */
    size_t picked;
    struct purge_cases cases;
    int64_t gone;
    int64_t *gone_by; /* per erasing */
};

static void batch_release(struct batch *b)
{
    purge_rows_release(&b->rows);
    mem_free_p(&b->gone_by);
}

bool purging_obstacle(const struct store *s, struct text *why, const char **ret_fix)
{
    size_t before = why->len;
    *ret_fix = "run lapse install";
    if (!s->own.version)
        text_add(why, "lapse's own tables are not installed");
    else if (s->own.version < OWN_SINCE_PURGES)
        text_add(why, "lapse's own tables are of an earlier version, which has no purges");
    else if (s->own.lacks_purges[0]) {
        *ret_fix = "'lapse install --grants ROLE' prints what is needed";
        text_addf(why, "this user has no right to %s", s->own.lacks_purges);
    }
    return why->len > before;
}

/* --- what is due -----------------------------------------------------------------------------------------
 */

/* Up to which time rows of a group are due; false: they never are. Rows whose reason does not count are to be
 * removed at once, those whose reason cannot be told are to be parked. */
static bool due_up_to(const struct purge_space *s, const struct purge_group *g, instant now, instant *ret)
{
    *ret = now;
    if (g->wait != PURGE_BY_REASON || g->odd || !purge_takes(s, g->reason))
        return true;
    struct span delay = purge_delay(s, g->reason);
    return delay.kind != SPAN_NEVER && sub_i64(now, delay.us, ret);
}

void purging_look_release(struct purging_look *l)
{
    purge_groups_release(&l->groups);
}

int purging_look(struct store *s, const struct purge_space *space, instant now, const char *after,
                 struct purging_look *ret, struct err *e)
{
    struct purging_look look = {.next = INT64_MAX};
    if (s->ops->purges->groups(s, space->name, after, &look.groups, e) < 0)
        return -1;
    for (size_t i = 0; i < look.groups.n; i++) {
        const struct purge_group *g = &look.groups.list[i];
        instant until, at;
        if (!due_up_to(space, g, now, &until))
            continue;
        look.due = look.due || g->first <= until;
        if (add_i64(g->first, now - until, &at) && at < look.next)
            look.next = at;
    }
    *ret = look;
    return 0;
}

/* --- ending and waiting ----------------------------------------------------------------------------------
 */

static void end(struct run *r, enum purging_kind kind, const struct err *e)
{
    r->out->kind = kind;
    if (e)
        r->out->err = *e;
    r->finished = true;
}

static bool stopped(struct run *r)
{
    struct err e = ERR_INIT;
    if (!r->finished && patience_ends(&r->patience)) {
        err_set(&e, ERR_STOPPED, "stopped when asked to");
        end(r, PURGING_STOPPED, &e);
    }
    return r->finished;
}

/* Asked in every batch. */
int purging_brake(struct store *s, struct err *e)
{
    AUTO(brakes_release) struct brakes brakes = {0};
    AUTO(text_release) struct text words = {0};
    if (s->ops->own->brakes(s, &brakes, e) < 0)
        return -1;
    const struct brake *on = brakes_named(&brakes, "");
    if (!on)
        return 0;
    brake_words(on, &words);
    return err_set(e, ERR_PAUSED, "%s", text_str(&words));
}

/* --- a batch ---------------------------------------------------------------------------------------------
 */

static int batch_once(struct run *r, const struct purge_group *g, instant until, struct batch *b,
                      struct err *e)
{
    const struct purge_ops *ops = r->store->ops->purges;
    const char *space = r->plan->space->name;
    b->gone_by = mem_alloc(r->plan->n * sizeof(*b->gone_by));
    if (ops->begin(r->store, r->plan->space, e) < 0 || purging_brake(r->store, e) < 0 ||
        ops->pick(r->store, space, g, until, r->most, &b->rows, e) < 0)
        return -1;
    b->picked = b->rows.n;
    if (!b->picked)
        return 0;
    if (ops->others(r->store, space, &b->rows, e) < 0)
        return -1;
    b->cases = purge_judge(r->plan->space, &b->rows, r->now);
    purge_judge_fit(r->plan, &b->cases, b->rows.arena);
    if (ops->carry_out(r->store, r->plan, &b->cases, b->gone_by, e) < 0)
        return -1;
    return r->store->ops->commit(r->store, e);
}

static void note_trouble(struct run *r, const struct purge_row *row, const char *why)
{
    struct purging_outcome *o = r->out;
    AUTO(text_release) struct text name = {0};
    purge_name_print(&row->instance, &name);
    if (!o->trouble[0])
        snprintf(o->trouble, sizeof(o->trouble), "instance '%.60s': %s", text_str(&name), why);
}

static int64_t rows_going(const struct purge_case *c)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += purge_goes(c, &c->rows[i]);
    return n;
}

/* What the committed transaction did. True: there may be more. */
static bool count_batch(struct run *r, const struct batch *b)
{
    struct purging_outcome *o = r->out;
    bool moved = false;
    for (size_t i = 0; i < b->cases.n; i++) {
        const struct purge_case *c = &b->cases.list[i];
        moved = moved || (c->verdict == PURGE_THIN ? rows_going(c) > 0 : c->verdict != PURGE_BUSY);
        o->removed += rows_going(c) - (c->verdict == PURGE_EXECUTE);
        if (c->verdict == PURGE_MISFIT) {
            o->parked++;
            note_trouble(r, c->decides, c->why);
        }
        if (c->verdict != PURGE_EXECUTE)
            continue;
        const struct purge_done done = {r->plan->space, &c->decides->instance,
                                        purge_reason(c->decides->reason), c->untold ? -1 : c->gone};
        o->executed++;
        if (r->options->executed)
            r->options->executed(r->options->context, &done);
    }
    for (size_t i = 0; i < r->plan->n; i++)
        o->rows += b->gone_by[i];
    return moved;
}

static int64_t to_be_executed(const struct batch *b)
{
    int64_t n = 0;
    for (size_t i = 0; i < b->cases.n; i++)
        n += b->cases.list[i].verdict == PURGE_EXECUTE;
    return n;
}

/* --- what cannot go --------------------------------------------------------------------------------------
 */

static bool is_lock(const struct err *e)
{
    return e->kind == ERR_BUSY || e->kind == ERR_CONFLICT;
}

/* It was alone: more time is all that helps. */
static void explain_timeout(const struct run *r, struct err *why)
{
    AUTO(text_release) struct text limit = {0};
    if (why->kind != ERR_TIMEOUT)
        return;
    span_format(r->plan->space->statement_timeout_us, &limit);
    err_wrap(
        why,
        "it took longer than a statement in '%s' may, %s (give the space timeouts: { statement: … } with "
        "more time, or an index that lapse check names)",
        r->plan->space->name, text_str(&limit));
}

/* What a database, or a trigger in it, says may be no text that it takes back: noting it must not fail. */
static void make_storable(char *s)
{
    for (size_t n; *s; s += n ? n : 1) {
        n = utf8_length(s);
        if (!n)
            *s = '?';
    }
}

/* An instance that was alone in its transaction: later again, and not for ever. A lock is nobody's fault. */
static void put_off(struct run *r, const struct purge_row *row, struct err *why)
{
    struct err e = ERR_INIT;
    int64_t attempts = row->attempts + !is_lock(why);
    bool parks = attempts >= PURGE_ATTEMPTS;
    int64_t wait = parks ? -1 : is_lock(why) ? BUSY_US : purge_backoff_us(attempts);
    explain_timeout(r, why);
    make_storable(why->text);
    note_trouble(r, row, why->text);
    r->locked = is_lock(why) ? r->locked + 1 : 0;
    if (r->locked >= LOCKED_MOST) {
        e = *why;
        err_wrap(&e, "gave up after %d purges one after the other were locked", LOCKED_MOST);
        end(r, PURGING_FAILED, &e);
        return;
    }
    while (r->store->ops->purges->failed(r->store, row, attempts, wait, why->text, &e) < 0) {
        if (retry_is_lost(&e) && r->tries++ < TRIES && retry_reconnect(r->store, &r->patience, &e))
            continue;
        end(r, e.kind == ERR_STOPPED ? PURGING_STOPPED : PURGING_FAILED, &e);
        return;
    }
    r->out->parked += parks;
    r->out->retried += !parks;
}

/* The only one of which anything was to become; NULL: there are more, or none. */
static const struct purge_case *alone(const struct batch *b)
{
    const struct purge_case *found = NULL;
    for (size_t i = 0; i < b->cases.n; i++) {
        if (b->cases.list[i].verdict == PURGE_BUSY)
            continue;
        if (found)
            return NULL;
        found = &b->cases.list[i];
    }
    return found;
}

static int64_t busy_rows(const struct batch *b)
{
    int64_t n = 0;
    for (size_t i = 0; i < b->cases.n; i++)
        for (size_t k = 0; k < b->cases.list[i].n; k++)
            n += b->cases.list[i].verdict == PURGE_BUSY && b->cases.list[i].rows[k].locked;
    return n;
}

/* Of what was tried, beside those that others hold, half, or less where each try takes its time. Always fewer
 * than there were. */
static int64_t fewer(const struct batch *b, bool timed_out)
{
    int64_t picked = (int64_t)b->picked, busy = busy_rows(b);
    int64_t part = busy < picked ? (picked - busy) / (timed_out ? TIMEOUT_PARTS : 2) : 0;
    int64_t all = busy + (part > 1 ? part : 1);
    return all < picked ? all : picked > 1 ? picked - 1 : 1;
}

/* Fewer, or it was alone. Nothing picked, or nothing to be executed: not a purge's fault, the space fails. In
 * particular, one that waits is not put off: there is nothing that it was tried for. */
static void split_or_put_off(struct run *r, const struct batch *b, struct err *e)
{
    const struct purge_case *one = alone(b);
    r->tries = 0;
    if (!one && b->cases.n > 1 && r->most > 1) {
        r->most = fewer(b, e->kind == ERR_TIMEOUT);
        return;
    }
    if (!b->cases.n && e->kind == ERR_CONFLICT && r->most > 1) { /* less may be faster than others are */
        r->most /= 2;
        return;
    }
    if (one && (one->verdict == PURGE_EXECUTE || one->verdict == PURGE_MISFIT))
        put_off(r, one->decides, e);
    else
        end(r, PURGING_FAILED, e);
}

static bool try_again(struct run *r)
{
    if (++r->tries > (r->most < BATCH ? TRIES_SPLIT : TRIES))
        return false;
    r->out->retries++;
    retry_wait_us(&r->patience, retry_pause_us(r->tries));
    return true;
}

static void recover(struct run *r, const struct batch *b, struct err *e)
{
    switch (e->kind) {
    case ERR_CONFLICT:
    case ERR_BUSY:
        if (!try_again(r))
            split_or_put_off(r, b, e);
        break;
    case ERR_REFUSED:
    case ERR_TIMEOUT:
        split_or_put_off(r, b, e);
        break;
    case ERR_PAUSED:
        end(r, PURGING_PAUSED, e);
        break;
    case ERR_STOPPED:
        end(r, PURGING_STOPPED, e);
        break;
    case ERR_COMMIT_UNKNOWN:
        r->out->unknown += to_be_executed(b);
        /* fall through */
    case ERR_LOST:
        if (++r->tries > TRIES || !retry_reconnect(r->store, &r->patience, e))
            end(r, e->kind == ERR_STOPPED ? PURGING_STOPPED : PURGING_FAILED, e);
        r->looks = LOOKS_AFTER_LOSS;
        r->out->retries++;
        break;
    default:
        end(r, PURGING_FAILED, e);
        break;
    }
}

/* Rows that are picked are locked, also those for which there was no room: next time as many as there was. */
static void fit_bytes(struct run *r, const struct batch *b)
{
    size_t bytes = 0;
    for (size_t i = 0; i < b->rows.n; i++)
        bytes += b->rows.list[i].instance.len;
    if (bytes > MUCH_BYTES && (int64_t)b->picked < r->most)
        r->most = (int64_t)b->picked;
}

/* Towards a transaction that is neither long nor small. */
static void adapt(struct run *r, int64_t took_us)
{
    r->tries = r->locked = 0;
    if (took_us > SLOW_US)
        r->most = r->most > 1 ? r->most / 2 : 1;
    else if (took_us < SLOW_US / 2)
        r->most = r->most > BATCH_MOST / 2 ? BATCH_MOST : r->most * 2;
}

/* The session of a broken connection holds its rows until the server notices: then a few looks, after pauses
 * that grow. */
static bool looks_again(struct run *r)
{
    if (!r->looks)
        return false;
    retry_wait_us(&r->patience, retry_pause_us(3 + LOOKS_AFTER_LOSS - r->looks--));
    return true;
}

/* Of instances that are crowded, fewer at a time: so that there is room for many rows of each, or that those
 * whose rows others hold end up alone. */
static bool looks_closer(struct run *r, const struct batch *b, bool moved)
{
    bool few = b->rows.n - b->picked < b->picked;
    if (!b->rows.crowded || b->picked < 2 || (moved && !few))
        return false;
    r->most = (int64_t)b->picked / 2;
    return true;
}

/* Others hold all that was picked, and there may be more behind it: not for ever, since what fails there
 * makes batches smaller again. */
static bool looks_further(struct run *r, const struct batch *b)
{
    if ((int64_t)b->picked < r->most || r->most >= BATCH || r->further >= FURTHER_MOST)
        return false;
    r->further++;
    r->most *= 2;
    return true;
}

/* A group's batches, until nothing of it is due, or others hold the rest. */
static void run_group(struct run *r, const struct purge_group *g, instant until)
{
    r->further = 0;
    while (!stopped(r)) {
        AUTO(batch_release) struct batch b = {0};
        struct err e = ERR_INIT;
        int64_t started = when_monotonic_us();
        if (batch_once(r, g, until, &b, &e) < 0) {
            r->store->ops->rollback(r->store);
            recover(r, &b, &e);
            continue;
        }
        if (!b.picked) {
            r->store->ops->rollback(r->store);
            if (looks_again(r))
                continue;
            return;
        }
        r->out->batches++;
        adapt(r, when_monotonic_us() - started);
        fit_bytes(r, &b);
        bool moved = count_batch(r, &b);
        if (!looks_closer(r, &b, moved) && !moved && !looks_further(r, &b))
            return;
    }
}

void purging_run(struct store *s, const struct purge_plan *p, const struct purge_groups *groups, instant now,
                 const struct purging_options *o, struct purging_outcome *ret)
{
    struct run r = {.store = s, .plan = p, .options = o, .out = ret, .now = now, .most = BATCH};
    r.patience = (struct patience){o->stop, o->context, p->space->away_us, o->waits};
    *ret = (struct purging_outcome){.err = ERR_INIT};
    for (size_t i = 0; i < groups->n && !stopped(&r); i++) {
        instant until;
        if (due_up_to(p->space, &groups->list[i], now, &until) && groups->list[i].first <= until)
            run_group(&r, &groups->list[i], until);
    }
}
