/* split: rows that own more than goes in one transaction.
 *
 * A slice may put roots off: those that do not fit beside the others, and those that are heavy, which own too
 * much on their own. The first are had at once, in slices of their own. The heavy ones wait until the cursor
 * has passed all others (of several connections, each keeps those that it found), so that none of those waits
 * for them; or until there are many of them, so that nothing grows with the table. Then each is gone ahead
 * of, transaction by transaction, until it goes with the rest.
 *
 * It ends because whatever is taken is passed, but for a heavy root that stays: and then some of what it owns
 * went. */
#include "sweep/internal.h"

#include <stdlib.h>

enum {
    HEAVY_MOST = 1000,    /* heavy roots to be remembered */
    WEIGH_MOST = 1000000, /* rows that a root which took too long is said to own */
};
static const int64_t WEIGH_US = 2 * US_PER_S;

static void forget(struct rows *rows, size_t *taken)
{
    rows_release(rows);
    *taken = 0;
}

void run_forget_put_off(struct run *r)
{
    forget(&r->put_off, &r->put_off_taken);
    forget(&r->heavy, &r->heavy_taken);
    r->source = FROM_CURSOR;
    r->walked = false;
    r->split_most = r->batch;
}

int64_t run_split_most(const struct run *r)
{
    int64_t most = r->split_most;
    if (r->source != FROM_HEAVY)
        return most;
    int64_t pace = run_pace_rows(r);
    return pace < most ? pace : most;
}

static size_t put_off_left(const struct run *r)
{
    return r->put_off.n_rows - r->put_off_taken;
}

static size_t heavy_left(const struct run *r)
{
    return r->heavy.n_rows - r->heavy_taken;
}

bool run_choose_source(struct run *r)
{
    r->source = put_off_left(r) ? FROM_PUT_OFF : FROM_CURSOR;
    if (r->source == FROM_CURSOR && heavy_left(r) && (r->heavy_now || heavy_left(r) >= HEAVY_MOST))
        r->source = FROM_HEAVY;
    return r->source != FROM_CURSOR || !r->walked;
}

/* Some rows of a list, where they are. */
static struct rows part_of(const struct rows *rows, size_t first, size_t count)
{
    struct rows part = *rows;
    part.cells += first * rows->n_columns;
    part.n_rows = count;
    return part;
}

int run_take_put_off(struct run *r, int64_t most, struct slice *s, struct err *e)
{
    bool heavy = r->source == FROM_HEAVY;
    size_t left = put_off_left(r), count = left < (size_t)most ? left : (size_t)most;
    r->trying = heavy ? 1 : count;
    struct rows next =
        heavy ? part_of(&r->heavy, r->heavy_taken, 1) : part_of(&r->put_off, r->put_off_taken, r->trying);
    s->ahead = heavy;
    return r->store->ops->slice_of(r->store, r->plan, &next, s, e);
}

void run_pass_put_off(struct run *r, const struct slice *s)
{
    bool heavy = r->source == FROM_HEAVY;
    *(heavy ? &r->heavy_taken : &r->put_off_taken) += r->trying;
    r->missed += (int64_t)r->trying - s->picked;
    r->trying = 0;
    if (!heavy_left(r))
        forget(&r->heavy, &r->heavy_taken);
    if (!put_off_left(r))
        forget(&r->put_off, &r->put_off_taken);
}

static void append(struct rows *to, const struct rows *more)
{
    to->n_columns = more->n_rows ? more->n_columns : to->n_columns;
    for (size_t i = 0; i < more->n_rows; i++)
        rows_push(to, rows_at(more, i));
}

void run_note_put_off(struct run *r, const struct slice *s)
{
    int64_t kept = s->picked - (int64_t)(s->put_off.n_rows + s->heavy.n_rows);
    append(&r->put_off, &s->put_off);
    append(&r->heavy, &s->heavy);
    if (s->put_off.n_rows)
        r->most = kept > 0 ? kept : 1;
    if (s->stays && r->split_most < r->batch)
        r->split_most = r->split_most > r->batch / 2 ? r->batch : r->split_most * 2;
}

bool run_fewer_ahead(struct run *r)
{
    if (r->source != FROM_HEAVY || r->split_most <= 1)
        return false;
    r->split_most /= 2;
    return true;
}

/* --- rows that are too heavy ---------------------------------------------------------------------------- */

/* The slot of which the row owns most, by a look that must not take long either; SIZE_MAX: not known. */
static size_t heaviest(struct run *r, const struct slice *s, int64_t *ret_rows)
{
    AUTO(mem_free_p) int64_t *rows = mem_alloc(r->plan->n_slots * sizeof(*rows));
    struct err ignored = ERR_INIT;
    size_t most = SIZE_MAX;
    *ret_rows = 0;
    if (!s->root.n_rows || r->plan->policy->batch == BATCH_ALL || /* whose transaction is open */
        r->store->ops->weigh(r->store, r->plan, &s->root, WEIGH_MOST, WEIGH_US, rows, &ignored) < 0)
        return SIZE_MAX;
    for (size_t i = 0; i < r->plan->n_slots; i++) {
        if (rows[i] <= *ret_rows)
            continue;
        most = i;
        *ret_rows = rows[i];
    }
    return most;
}

bool run_too_heavy(struct run *r, const struct slice *s, struct err *e)
{
    const struct plan *p = r->plan;
    struct err words = *e;
    int64_t rows;
    if (e->kind != ERR_TIMEOUT || !p->root.n_kids || s->picked != 1)
        return false;
    size_t slot = heaviest(r, s, &rows);
    AUTO(text_release) struct text time = {0};
    span_format(p->policy->statement_timeout_us, &time);
    if (slot == SIZE_MAX || slot == p->root.slot)
        err_set(
            e, ERR_TIMEOUT,
            "too heavy: with what it owns it takes longer than timeouts.statement (%s) allows; set split: "
            "true on the reference by which it owns very many rows, or allow more time (%s)",
            text_str(&time), words.text);
    else
        err_set(
            e, ERR_TIMEOUT,
            "too heavy: it owns %s%lld row%s of %s, and takes longer than timeouts.statement (%s) allows; "
            "set split: true on that reference, or allow more time (%s)",
            rows >= WEIGH_MOST ? "at least " : "", (long long)rows, rows == 1 ? "" : "s",
            p->slots[slot]->print, text_str(&time), words.text);
    return true;
}
