/* pieces: partitions swept one by one, each as if it were a table. See sweep.h and plan/pieces.c.
 *
 * They are a faster way to the same rows, and nothing depends on it: what is attached, dropped or otherwise
 * changed meanwhile, and whatever goes wrong with one, is left to the second look, which every sweep takes at
 * the whole table, and to the pass that follows where it finds something. */
#include "sweep/internal.h"

#include <string.h>

enum { LEFT_PIECES_MOST = 3 }; /* then it is not one partition's fault: no other is begun */

/* Then the oldest rows of all go first, not those of the first partition each time; and there may be no
 * second look. */
static bool may_end_early(const struct sweep_options *o)
{
    return o->budget_rows || o->budget_batches || o->budget_us || o->until;
}

void run_begin_pieces(struct run *r)
{
    struct team *t = r->team;
    t->by_pieces = !t->arena && r->whole->pieces.n && !may_end_early(r->options);
    t->next_piece = 0;
    t->piece = NULL;
    if (t->by_pieces)
        t->arena = arena_new();
}

static bool was_dropped(const struct run *r, const struct table_piece *x)
{
    const struct outcome *o = r->out;
    for (size_t i = 0; i < o->n_partitions; i++)
        if (!o->partitions[i].why && strcmp(o->partitions[i].name, x->print) == 0)
            return true;
    return false;
}

static bool gives_up(const struct run *r)
{
    team_lock(r);
    bool does = r->team->left_pieces >= LEFT_PIECES_MOST;
    team_unlock(r);
    return does;
}

/* Whether somebody left the one that parts are cut of. */
static bool is_left(const struct run *r)
{
    team_lock(r);
    bool is = r->team->piece == r->team->left_piece;
    team_unlock(r);
    return is || gives_up(r);
}

static const struct table_piece *next_of(struct run *r)
{
    const struct table_pieces *all = &r->whole->pieces;
    while (r->team->next_piece < all->n && !gives_up(r)) {
        const struct table_piece *x = &all->list[r->team->next_piece++];
        if (!was_dropped(r, x))
            return x;
    }
    return NULL;
}

bool run_next_piece(struct run *r)
{
    struct team *t = r->team;
    struct err ignored = ERR_INIT;
    struct estimate e;
    if (t->piece && !is_left(r))
        return true;
    t->piece = NULL;
    const struct table_piece *x = next_of(r);
    if (!x)
        return false;
    struct plan *p = plan_of_piece(r->whole, x, t->arena);
    if (r->store->ops->estimate(r->store, p, &e, &ignored) < 0)
        e = (struct estimate){-1, -1, -1, -1};
    plan_walk(p, &e);
    t->piece = p;
    cursor_release(&t->frontier);
    return true;
}

/* Of rows that were picked, one may be to blame: that is found out. */
static bool is_no_row_s(enum err_kind k, int64_t picked)
{
    return k == ERR_DATABASE || (!picked && (k == ERR_REFUSED || k == ERR_TIMEOUT));
}

bool run_leaves_piece(struct run *r, int64_t picked, const struct err *e)
{
    if (r->plan == r->whole || !is_no_row_s(e->kind, picked))
        return false;
    team_lock(r);
    r->team->left_pieces +=
        e->kind == ERR_TIMEOUT ? LEFT_PIECES_MOST : 1; /* which takes its time each time */
    r->team->left_piece = r->plan;
    team_unlock(r);
    return true;
}
