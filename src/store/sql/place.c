/* place: due rows picked as they lie, a window of blocks after the other.
 *
 * A statement looks at so many blocks beyond the cursor, in which about a batch of due rows is expected, and
 * takes the first of those it finds: whatever plan the engine chooses, it reads no more than the window.
 * Where a window holds none, the next and larger one follows, to the end of the table. A row that is updated
 * meanwhile moves to another block: it is found there, or by the second look that every sweep takes. */
#include "store/sql/store_internal.h"

#include <stdlib.h>

enum {
    WINDOW_FIRST = 64, /* blocks, while nothing is known */
    WINDOW_MOST = 8192,
};

static int64_t width_for(const struct sql_store *s, int64_t most)
{
    double wide = s->due_per_block > 0 ? (double)most * 1.25 / s->due_per_block + 1 : WINDOW_FIRST;
    return wide > WINDOW_MOST ? WINDOW_MOST : (int64_t)wide;
}

static int64_t block_of(const struct sql_store *s, const struct cursor *c)
{
    int64_t block = 0;
    return c && c->set && s->engine->dialect->place.block_of(&c->values[0], &block) ? block : 0;
}

static void set_end_of(const struct sql_store *s, int64_t block, struct cursor *ret)
{
    AUTO(text_release) struct text place = {0};
    s->engine->dialect->place.last_in(block, &place);
    struct value v = {.kind = VALUE_TEXT, .text = text_str(&place), .len = place.len};
    cursor_set(ret, &v, 1);
}

static int count_blocks(struct sql_store *s, const struct plan *p, int64_t *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    s->engine->dialect->place.blocks(&st, p->root.table);
    return sqlstore_query_number(s, &st, ret, e);
}

/* The last block of the window of which a row was taken. One that moved while it was waited for is told by
 * its new place, which says nothing of where the next slice begins. -1: all of them did. */
static int64_t last_taken(const struct sql_store *s, const struct plan *p, const struct rows *found,
                          int64_t first, int64_t last, size_t *ret_row)
{
    int64_t block, best = -1;
    for (size_t i = 0; i < found->n_rows; i++)
        if (s->engine->dialect->place.block_of(rows_at(found, i) + p->root.n_carry, &block) &&
            block >= first && block <= last && block >= best) {
            best = block;
            *ret_row = i;
        }
    return best;
}

/* Where the next slice begins: behind the last row that was taken, or, where the window was emptied, behind
 * that. */
static void set_end(struct sql_store *s, const struct plan *p, const struct rows *found, int64_t first,
                    int64_t last, int64_t most, struct slice *ret)
{
    size_t row = 0;
    int64_t taken = (int64_t)found->n_rows < most ? -1 : last_taken(s, p, found, first, last, &row);
    if (taken < 0) {
        set_end_of(s, last, &ret->end);
        taken = last;
    } else {
        cursor_set(&ret->end, rows_at(found, row) + p->root.n_carry, 1);
    }
    s->due_per_block = (double)found->n_rows / (double)(taken - first + 1);
}

int sqlstore_pick_by_place(struct sql_store *s, const struct plan *p, const struct stretch *in, int64_t most,
                           struct slice *ret, struct err *e)
{
    AUTO(cursor_release) struct cursor from = {0}, to = {0};
    int64_t blocks = -1, first = block_of(s, in->after);
    int64_t stop = in->upto && in->upto->set ? block_of(s, in->upto) : INT64_MAX;
    if (s->walked != p)
        s->due_per_block = p->due_per_block;
    s->walked = p;
    int64_t width = width_for(s, most);
    if (in->after)
        cursor_copy(&from, in->after);
    /* Ends because every window begins behind the last, and a table has an end. */
    for (;; width = width > WINDOW_MOST / 2 ? WINDOW_MOST : width * 2) {
        AUTO(stmt_release) struct stmt st = {0};
        AUTO(rows_release) struct rows found = {0};
        int64_t last = first + width - 1;
        bool whole = last >= stop;
        if (!whole)
            set_end_of(s, last, &to);
        struct stretch window = {.after = &from, .upto = whole ? in->upto : &to};
        sql_pick(&st, s->engine->dialect, p, &window, most);
        if (sqlstore_pick(s, p, &st, ret, &found, e) < 0)
            return -1;
        if (found.n_rows) {
            set_end(s, p, &found, first, whole ? stop : last, most, ret);
            return 0;
        }
        if (!whole && blocks < 0 && count_blocks(s, p, &blocks, e) < 0)
            return -1;
        if (whole || last >= blocks)
            return 0;
        set_end_of(s, last, &from);
        first = last + 1;
    }
}

int sqlstore_cut_by_place(struct sql_store *s, const struct plan *p, const struct cursor *after, int64_t rows,
                          struct cursor *ret, struct err *e)
{
    int64_t blocks;
    double wide = p->due_per_block > 0 ? (double)rows / p->due_per_block + 1 : (double)rows / 10 + 1;
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = count_blocks(s, p, &blocks, e);
    s->engine->rollback(s);
    if (r < 0)
        return -1;
    int64_t first = block_of(s, after) + (after && after->set);
    if (wide < (double)(blocks - first))
        set_end_of(s, first + (int64_t)wide, ret);
    return 0;
}
