/* runs: what goes by stretches of numbers instead of key by key.
 *
 * The plain case only, a DELETE per table: of rows that own nothing, then of those that own them. Some
 * engines make a DELETE per run of it; one by one they are held by a row of another run that refers to
 * theirs, which only tables have that are trees. Whatever must be asked between two of them (a trigger may
 * have kept a row, a condition decides what goes) has its own way. */
#include "store/sql/store_internal.h"

#include <stdlib.h>

static bool is_plain(const struct node *n)
{
    for (size_t i = 0; i < n->n_kids; i++)
        if (n->kids[i].set >= 0 || n->kids[i].where || n->kids[i].table->delete_hooks)
            return false;
    return !n->n_grow && !n->n_detach && !n->table->delete_hooks;
}

static void by_runs_release(struct by_runs *b)
{
    for (size_t i = 0; i < b->n; i++)
        stmt_release(&b->list[i].st);
    free(b->list);
}

static struct by_runs by_runs_new(size_t n)
{
    return (struct by_runs){.list = mem_alloc(n * sizeof(struct by_runs_one)), .n = n};
}

static bool few_runs(struct sql_store *s, const struct stmt *st)
{
    const struct dialect *d = s->engine->dialect;
    const struct param *p = &st->params[0];
    const struct runs *runs = rows_runs(&s->sets[p->set].rows, p->set_column, d->runs.given_as);
    return runs && (!d->runs.most || runs->n <= d->runs.most);
}

static bool is_watched(const struct node *n, const struct node *kid)
{
    return join_is_enforced(&kid->join, n->table, kid->table);
}

/* Whether no other statement counts the same rows. */
static bool is_alone(const struct node *n, const struct node *kid)
{
    size_t same = n->table == kid->table;
    for (size_t i = 0; i < n->n_kids; i++)
        same += n->kids[i].table == kid->table;
    return same == 1;
}

/* A DELETE per kid, then the node's own. By the runs of the keys: all of them, since what has no index is to
 * be found without. */
static bool write_by_runs(struct sql_store *s, const struct node *n, struct by_runs *b)
{
    const struct dialect *d = s->engine->dialect;
    for (size_t i = 0; i < n->n_kids; i++) {
        struct by_runs_one *one = &b->list[i];
        if (!sql_delete_kids_by_runs(&one->st, d, n, &n->kids[i]) || !few_runs(s, &one->st))
            return false;
        one->table = n->kids[i].table;
        one->index = !is_watched(n, &n->kids[i]) && is_alone(n, &n->kids[i])
                         ? table_index_on(one->table, n->kids[i].join.child, n->kids[i].join.n)
                         : NULL;
    }
    struct stmt *own = &b->list[n->n_kids].st;
    return sql_delete_set_by_runs(own, d, n) && few_runs(s, own);
}

/* Whatever makes it slow by runs (an index that is not there any more) is not met twice. */
static int run_all_by_runs(struct sql_store *s, const struct plan *p, struct by_runs *b, struct err *e)
{
    struct err why = ERR_INIT;
    if (s->engine->execute_by_runs(s, b, &why) == 0)
        return 0;
    if (why.kind == ERR_TIMEOUT)
        s->slow_by_runs = p;
    if (e)
        *e = why;
    return -1;
}

/* Where nobody else is kept out, a row that went from one run to another while the DELETE waited for it
 * belongs to neither as the DELETE sees it: it was met, and did not go. Where a foreign key watches, the row
 * that owns it could not go either; elsewhere it would be left behind. */
static bool may_be_left(const struct node *n, const struct node *kid, const struct by_runs_one *deleted)
{
    return !is_watched(n, kid) && (!deleted->index || deleted->met != deleted->rows);
}

/* Only then it is asked for: the index still has all that went. */
static int none_left(struct sql_store *s, const struct plan *p, const struct node *n,
                     const struct by_runs *deletes, struct err *e)
{
    AUTO(by_runs_release) struct by_runs left = by_runs_new(n->n_kids);
    left.n = 0;
    for (size_t i = 0; i < n->n_kids && s->engine->dialect->locks_rows; i++)
        if (may_be_left(n, &n->kids[i], &deletes->list[i]))
            sql_kids_left_by_runs(&left.list[left.n++].st, s->engine->dialect, n, &n->kids[i]);
    if (left.n && run_all_by_runs(s, p, &left, e) < 0)
        return -1;
    for (size_t i = 0; i < left.n; i++)
        if (left.list[i].rows)
            return sqlstore_changed_meanwhile(e, n->table);
    return 0;
}

int sqlstore_erase_by_runs(struct sql_store *s, const struct plan *p, const struct node *n, struct slice *ret,
                           bool *ret_done, struct err *e)
{
    *ret_done = false;
    if (!s->engine->execute_by_runs || s->slow_by_runs == p || !is_plain(n))
        return 0;
    AUTO(by_runs_release) struct by_runs b = by_runs_new(n->n_kids + 1);
    if (!write_by_runs(s, n, &b))
        return 0;
    b.last = n == &p->root;
    if (run_all_by_runs(s, p, &b, e) < 0 || none_left(s, p, n, &b, e) < 0)
        return -1;
    s->settled = b.settled;
    for (size_t i = 0; i < n->n_kids; i++)
        ret->gone[n->kids[i].slot] += b.list[i].rows;
    *ret_done = true;
    return sqlstore_count_gone(s, n, false, b.list[n->n_kids].rows, ret, e);
}
