/* sqlstore: what goes by stretches of numbers instead of key by key.
 *
 * The plain case only, a DELETE per table: of rows that own nothing, then of those that own them. Whatever
 * must be asked between two of them (a trigger may have kept a row, a condition decides what goes) has its
 * own way. */
#include "sqlstore_parts.h"

#include <stdlib.h>

static bool is_plain(const struct node *n)
{
    for (size_t i = 0; i < n->n_kids; i++)
        if (n->kids[i].set >= 0 || n->kids[i].where || n->kids[i].table->delete_hooks)
            return false;
    return !n->n_grow && !n->n_detach && !n->table->delete_hooks;
}

/* A DELETE per kid, then the node's own; then, by runs, a question per kid that no foreign key watches. */
struct batch {
    struct stmt *list;
    size_t n;
};

static void batch_release(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        stmt_release(&b->list[i]);
    free(b->list);
}

static bool few_runs(struct sql_store *s, const struct stmt *st)
{
    return rows_runs(&s->sets[st->params[0].set].rows, st->params[0].set_column);
}

/* By the runs of the keys: all of them, since what has no index is to be found without. */
static bool write_by_runs(struct sql_store *s, const struct node *n, struct batch *b)
{
    const struct dialect *d = s->engine->dialect;
    for (size_t i = 0; i < n->n_kids; i++)
        if (!sql_delete_kids_by_runs(&b->list[i], d, n, &n->kids[i]) || !few_runs(s, &b->list[i]))
            return false;
    struct stmt *own = &b->list[n->n_kids];
    if (!sql_delete_set_by_runs(own, d, n) || !few_runs(s, own))
        return false;
    for (size_t i = 0; i < n->n_kids; i++)
        if (!join_is_enforced(&n->kids[i].join, n->table, n->kids[i].table))
            sql_kids_left_by_runs(&b->list[b->n++], d, n, &n->kids[i]);
    return true;
}

/* Whatever makes it slow by runs (an index that is not there any more) is not met twice. */
static int run_batch(struct sql_store *s, const struct plan *p, const struct batch *b, int64_t *ret_rows,
                     struct err *e)
{
    struct err why = ERR_INIT;
    if (s->engine->execute_by_index(s, b->list, b->n, ret_rows, &why) == 0)
        return 0;
    if (why.kind == ERR_TIMEOUT)
        s->slow_by_runs = p;
    if (e)
        *e = why;
    return -1;
}

int sqlstore_erase_by_runs(struct sql_store *s, const struct plan *p, const struct node *n, struct slice *ret,
                           bool *ret_done, struct err *e)
{
    size_t n_deletes = n->n_kids + 1, most = n_deletes + n->n_kids;
    *ret_done = false;
    if (!s->engine->execute_by_index || s->slow_by_runs == p || !is_plain(n))
        return 0;
    AUTO(batch_release) struct batch b = {.n = n_deletes};
    AUTO(mem_free_p) int64_t *rows = mem_alloc(most * sizeof(*rows));
    b.list = mem_alloc(most * sizeof(*b.list));
    if (!write_by_runs(s, n, &b))
        return 0;
    if (run_batch(s, p, &b, rows, e) < 0)
        return -1;
    for (size_t i = n_deletes; i < b.n; i++)
        if (rows[i])
            return sqlstore_changed_meanwhile(e, n->table);
    for (size_t i = 0; i < n->n_kids; i++)
        ret->gone[n->kids[i].slot] += rows[i];
    *ret_done = true;
    return sqlstore_count_gone(s, n, false, rows[n->n_kids], ret, e);
}
