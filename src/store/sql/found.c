/* sqlstore: due rows that one reading finds for many slices, where the order is no index's. See sqlstore.h.
 *
 * Where an index leads to the time and does not end with the key, the rows of one time are sorted by their key, or,
 * where the engine knows little of the table, all that are due. Mostly these are few, and rows are best locked as
 * they are found. Where they are many each slice would sort all that are left, to take the first of them. So they
 * are read once, without a lock; a slice takes the next of them, and locks those that are still due. When these are
 * used up, it begins as before. */
#include "store/sql/store_internal.h"

enum {
    SORTED_MANY = 20, /* rows of one time in a slice say that there may be many */
    SLOW_TIMES = 4,   /* times longer than to delete what was found */
    SLICES = 16,      /* are read for at once */
};
static const int64_t SLOW_US = 2 * US_PER_MS, SLOW_ROW_US = 20;

void sqlstore_forget_found(struct sql_store *s)
{
    rows_release(&s->found.rows);
    cursor_release(&s->found.after);
    cursor_release(&s->found.upto);
    cursor_release(&s->found.first);
    s->found.plan = NULL;
}

static void copy_of(struct cursor *to, const struct cursor *from)
{
    if (from)
        cursor_copy(to, from);
}

static bool is_same(const struct cursor *kept, const struct cursor *asked)
{
    static const struct cursor none = {0};
    return cursor_same(kept, asked ? asked : &none);
}

/* It is read in a slice's transaction, so for some slices only: a condition may take its time for each row. */
static int find(struct sql_store *s, const struct plan *p, const struct stretch *in, int64_t most,
                struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    sqlstore_forget_found(s);
    sql_scout(&st, s->engine->dialect, p, in, most < SCOUT_MOST / SLICES ? most * SLICES : SCOUT_MOST);
    if (s->engine->query(s, &st, &s->found.rows, e) < 0) {
        sqlstore_forget_found(s);
        return -1;
    }
    s->found.plan = p;
    s->found.taken = 0;
    copy_of(&s->found.after, in->after);
    copy_of(&s->found.upto, in->upto);
    if (in->first)
        cursor_set(&s->found.first, in->first, 1);
    return 0;
}

static bool stands_behind(const struct sql_store *s, const struct cursor *at, size_t row)
{
    const struct value *order = rows_at(&s->found.rows, row) + s->found.plan->root.n_carry;
    size_t same = 0;
    while (same < at->n && value_same(&order[same], &at->values[same]))
        same++;
    return same == at->n;
}

/* Goes to where the slice begins: behind the last one, or further back, after one that was undone. False: it
 * begins elsewhere, or all of them are used up. */
static bool go_to(struct sql_store *s, const struct plan *p, const struct stretch *in)
{
    struct cursor first = {
        .set = in->first != NULL, .values = (struct value *)in->first, .n = in->first != NULL};
    if (s->found.plan != p || s->found.rows.n_columns != p->root.n_carry + p->n_order || !in->after ||
        !in->after->set || !is_same(&s->found.upto, in->upto) || !cursor_same(&s->found.first, &first))
        return false;
    size_t at = s->found.taken;
    while (at > 0 && !stands_behind(s, in->after, at - 1))
        at--;
    s->found.taken = at;
    return (at > 0 || is_same(&s->found.after, in->after)) && at < s->found.rows.n_rows;
}

/* Whether there are any for this slice. */
static int have_found(struct sql_store *s, const struct plan *p, const struct stretch *in, int64_t most,
                      bool *ret, struct err *e)
{
    *ret = go_to(s, p, in);
    if (*ret)
        return 0;
    sqlstore_forget_found(s);
    if (!s->found.wanted || s->found.never)
        return 0;
    s->found.wanted = false;
    if (find(s, p, in, most, e) < 0) {
        s->found.never = e->kind == ERR_TIMEOUT;
        e->kind = s->found.never ? ERR_BUSY : e->kind; /* the transaction again, without it */
        return -1;
    }
    *ret = s->found.rows.n_rows > 0;
    return 0;
}

int sqlstore_pick_found(struct sql_store *s, const struct plan *p, struct stretch *in, int64_t most,
                        struct slice *ret, struct err *e)
{
    bool have;
    /* Ends because each turn begins behind the last, and they are not found again. */
    while (!ret->picked) {
        if (have_found(s, p, in, most, &have, e) < 0)
            return -1;
        if (!have)
            return 0;
        struct rows these = s->found.rows;
        these.cells += s->found.taken * these.n_columns;
        these.n_rows -= s->found.taken;
        these.n_rows = (uint64_t)most < these.n_rows ? (size_t)most : these.n_rows;
        if (sqlstore_pick_these(s, p, &these, ret, e) < 0)
            return -1;
        s->found.taken += these.n_rows;
        in->after = &ret->end;
    }
    return 0;
}

/* --- when ---------------------------------------------------------------------------------------------- */

static size_t place_of_time(const struct plan *p)
{
    size_t at = 0;
    while (at < p->n_order && p->order[at] != p->times[0].column)
        at++;
    return at;
}

/* A whole slice of one time: there may be many more. */
bool sqlstore_is_of_one_time(const struct plan *p, const struct rows *picked, int64_t most)
{
    size_t time = p->root.n_carry + place_of_time(p);
    if (!p->sorts || most < SORTED_MANY || picked->n_rows < (uint64_t)most)
        return false;
    return value_same(&rows_at(picked, 0)[time], &rows_at(picked, picked->n_rows - 1)[time]);
}

/* To find rows should not take much longer than to delete them. One that does may be chance. */
void sqlstore_note_pick(struct sql_store *s, const struct plan *p, int64_t rows, int64_t pick_us,
                        int64_t rest_us)
{
    bool slow =
        p->sorts && pick_us > SLOW_US && pick_us / SLOW_ROW_US > rows && pick_us / SLOW_TIMES > rest_us;
    s->found.slow = slow ? s->found.slow + 1 : 0;
    if (s->found.slow < 2)
        return;
    s->found.wanted = true;
    s->found.slow = 0;
}
