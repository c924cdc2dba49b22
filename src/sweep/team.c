/* team: several connections that sweep one policy at once. See sweep.h.
 *
 * The due rows are walked in parts of a few batches each, in the order of the plan: whoever has nothing to do
 * looks where the next part ends, moves the frontier there and sweeps what lies before it. So parts are of
 * one size whatever the rows are like, all connections end at about the same time, and no part is cut before
 * it is needed. A part begins beyond the row that ends the one before it and ends with its own last row; the
 * last part has no end. Rows that come to lie before the frontier meanwhile are left for the second look.
 *
 * Plans that examine: one reading finds rows for many batches; a part is the next of them.
 *
 * To the database the connections are sweepers like any others, which may be there besides: each of them
 * locks, judges and commits for itself, so nothing of that is different here. What is one, is one for all of
 * them: the outcome, the budget and the limits (of which each sets aside what its batch may need), the end of
 * the run. What ranks rows is swept by one: its batches exclude each other. The first connection is the
 * caller's own; if others cannot be had, it works alone. */
#include "sweep/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

enum { PART_BATCHES = 4 };

struct member {
    struct run run;
    struct store terms; /* of the connection that it is to have */
    struct lease lease;
    pthread_t thread;
    bool started;
};

void team_init(struct team *t)
{
    *t = (struct team){0};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
}

void team_release(struct team *t)
{
    cursor_release(&t->frontier);
    rows_release(&t->finds);
    arena_free(t->arena);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}

void team_lock(const struct run *r)
{
    pthread_mutex_lock(&r->team->lock);
}

void team_unlock(const struct run *r)
{
    pthread_mutex_unlock(&r->team->lock);
}

bool team_is_over(const struct run *r)
{
    team_lock(r);
    bool over = r->team->over;
    team_unlock(r);
    return over;
}

/* --- parts ---------------------------------------------------------------------------------------------- */

static int64_t n_workers(const struct run *r)
{
    return r->plan->facts->one_writer || r->plan->beyond ? 1 : r->plan->policy->workers;
}

static int64_t part_rows(const struct run *r)
{
    return r->batch <= INT64_MAX / PART_BATCHES ? r->batch * PART_BATCHES : r->batch;
}

/* One at a time: until end_cut, the frontier and the finds are this connection's. False: there is no more. */
static bool begin_cut(struct run *r)
{
    struct team *t = r->team;
    team_lock(r);
    while (t->cutting && !t->over)
        pthread_cond_wait(&t->changed, &t->lock);
    r->finished |= t->over;
    bool mine = !t->over && !t->walked;
    t->cutting |= mine;
    team_unlock(r);
    return mine;
}

static void end_cut(struct run *r, bool walked)
{
    struct team *t = r->team;
    team_lock(r);
    t->cutting = false;
    t->walked |= walked;
    pthread_cond_broadcast(&t->changed);
    team_unlock(r);
}

/* What takes too long to be cut goes as it is; for one connection nothing is cut. */
static int cut_stretch(struct run *r, struct err *e)
{
    struct team *t = r->team;
    AUTO(cursor_release) struct cursor upto = {0};
    int cut = 0;
    if (n_workers(r) > 1)
        cut = r->store->ops->cut(r->store, r->plan, &t->frontier, part_rows(r), &upto, e);
    if (cut < 0 && e->kind != ERR_TIMEOUT) {
        t->piece = run_leaves_piece(r, 0, e) ? NULL : t->piece;
        end_cut(r, false);
        return -1;
    }
    cursor_copy(&r->cursor, &t->frontier);
    cursor_copy(&r->upto, &upto);
    cursor_copy(&t->frontier, &upto);
    t->piece = upto.set ? t->piece : NULL;
    end_cut(r, !upto.set && !t->by_pieces);
    return 1;
}

/* The same in the next partition that has something left. */
static int cut_piece(struct run *r, struct err *e)
{
    if (!run_next_piece(r)) {
        end_cut(r, true);
        return 0;
    }
    r->plan = r->team->piece;
    return cut_stretch(r, e);
}

static int find_more(struct run *r, bool *ret_last, struct err *e)
{
    struct team *t = r->team;
    const struct stretch in = {.after = &t->frontier};
    *ret_last = t->last_finds;
    if (t->last_finds || t->taken < t->finds.n_rows)
        return 0;
    struct rows found = {0};
    if (r->store->ops->scout(r->store, r->plan, &in, SCOUT_MOST, &found, e) < 0) {
        rows_release(&found);
        return -1;
    }
    rows_release(&t->finds);
    t->finds = found;
    t->taken = 0;
    t->last_finds = *ret_last = found.n_rows < SCOUT_MOST;
    if (found.n_rows)
        cursor_set(&t->frontier, rows_at(&found, found.n_rows - 1) + r->plan->root.n_carry, r->plan->n_order);
    return 0;
}

static int share_finds(struct run *r, struct err *e)
{
    struct team *t = r->team;
    bool last = false;
    if (find_more(r, &last, e) < 0) {
        end_cut(r, false);
        return -1;
    }
    size_t left = t->finds.n_rows - t->taken;
    size_t n = left < (size_t)part_rows(r) ? left : (size_t)part_rows(r);
    rows_release(&r->finds);
    r->finds.n_columns = t->finds.n_columns;
    for (size_t i = 0; i < n; i++)
        rows_push(&r->finds, rows_at(&t->finds, t->taken++));
    r->taken = r->trying = 0;
    r->last_finds = true; /* of this part */
    end_cut(r, last && t->taken == t->finds.n_rows);
    return n > 0;
}

/* False: there is none, or the run is over. */
static bool next_part(struct run *r)
{
    struct slice none = {0};
    while (!r->finished) {
        struct err e = ERR_INIT;
        if (!begin_cut(r))
            return false;
        int got = r->team->by_pieces  ? cut_piece(r, &e)
                  : r->plan->examines ? share_finds(r, &e)
                                      : cut_stretch(r, &e);
        if (got >= 0) {
            r->tries = 0;
            return got > 0;
        }
        if (!run_leaves_piece(r, 0, &e))
            run_recover(r, &none, &e);
    }
    return false;
}

static bool is_used_up(const struct run *r)
{
    team_lock(r);
    bool is = r->team->used_up != ERR_NONE;
    team_unlock(r);
    return is;
}

static void sweep_parts(struct run *r)
{
    do
        run_pass_in_batches(r);
    while (!r->finished && !is_used_up(r) && next_part(r));
    run_work_off(r);
}

/* --- the others ----------------------------------------------------------------------------------------- */

/* The others do its part. */
static void note_missing(struct run *r, const char *why)
{
    team_lock(r);
    bool new =
        !r->team->over && r->out->alone < r->plan->policy->workers - 1; /* a second look may miss it again */
    if (new && r->out->alone++ == 0)
        snprintf(r->out->alone_why, sizeof(r->out->alone_why), "%.200s", why);
    team_unlock(r);
}

static void *help(void *member)
{
    struct member *m = member;
    struct run *r = &m->run;
    struct err e = ERR_INIT;
    AUTO(store_close_p) struct store *s = NULL;
    if (store_another(&m->terms, &s, &e) < 0) {
        note_missing(r, e.text);
        return NULL;
    }
    r->store = m->lease.store = s;
    r->lives = s->lives;
    if (next_part(r))
        sweep_parts(r);
    run_make_sure(r);
    run_look_up(r);
    run_release_doubts(r);
    cursor_release(&r->cursor);
    cursor_release(&r->upto);
    rows_release(&r->finds);
    run_forget_put_off(r);
    return NULL;
}

static void start(struct member *m, const struct run *r)
{
    struct store *s = r->store;
    m->terms = (struct store){.dsn = s->dsn,
                              .own_schema = s->own_schema,
                              .own_owner = s->own_owner,
                              .own = s->own,
                              .idle_most_us = s->idle_most_us,
                              .marks = s->marks ? s->marks : &s->own_marks,
                              .interrupted = s->interrupted};
    if (r->lease)
        m->lease = *r->lease;
    m->run = (struct run){.plan = r->plan,
                          .whole = r->whole,
                          .options = r->options,
                          .out = r->out,
                          .team = r->team,
                          .lease = r->lease ? &m->lease : NULL,
                          .most = r->batch,
                          .batch = r->batch,
                          .split_most = r->batch,
                          .fuse = r->fuse,
                          .most_gone = r->most_gone,
                          .looked_for_own = r->looked_for_own,
                          .started = r->started,
                          .said_begins = true};
    m->started = thread_begin(&m->thread, help, m) == 0;
    if (!m->started)
        note_missing(&m->run, "no thread could be started");
}

static void join(struct member *m, struct run *r)
{
    if (!m->started)
        return;
    pthread_join(m->thread, NULL);
    r->lost |= m->run.lost;
    r->missed += m->run.missed;
    if (r->lease)
        lease_unite(r->lease, &m->lease);
}

static bool all_given_out(const struct run *r)
{
    team_lock(r);
    bool walked = r->team->walked;
    team_unlock(r);
    return walked;
}

static void sweep_together(struct run *r, size_t others)
{
    struct member *members = mem_alloc(others * sizeof(*members));
    run_say_begins(r); /* on this connection, while it is free */
    for (size_t i = 0; i < others; i++)
        start(&members[i], r);
    sweep_parts(r);
    for (size_t i = 0; i < others; i++)
        join(&members[i], r);
    free(members);
    r->finished |= r->team->over;
}

static void begin_walk(struct run *r)
{
    struct team *t = r->team;
    t->walked = t->last_finds = false;
    t->taken = 0;
    rows_release(&t->finds);
    cursor_release(&t->frontier);
    cursor_release(&r->upto);
    run_begin_pieces(r);
}

void team_pass(struct run *r)
{
    int64_t workers = n_workers(r);
    begin_walk(r);
    if (workers <= 1 && !r->team->by_pieces) {
        run_pass_in_batches(r);
        run_work_off(r);
        return;
    }
    if (!next_part(r))
        ;
    else if (workers <= 1 || all_given_out(r)) /* one part is no work for others */
        sweep_parts(r);
    else
        sweep_together(r, (size_t)workers - 1);
    cursor_release(&r->upto);
    r->plan = r->whole;
}
