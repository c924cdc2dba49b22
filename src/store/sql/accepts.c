/* accepts: what the engine thinks of a plan, and its statements for people. See sqlstore.h. */
#include "store/sql/store_internal.h"

#include <stdlib.h>
#include <string.h>

static int scan_conditions(const struct dialect *d, const struct plan *p, const struct expr *x, struct err *e)
{
    if (!x)
        return 0;
    if (x->kind == EXPR_SQL) {
        if (sql_condition(NULL, d, "this", x->sql, p->now, e) < 0)
            return -1;
        return sql_now_is_time(d, x->sql, p->facts, x->table, e);
    }
    for (size_t i = 0; i < x->n_kids; i++)
        if (scan_conditions(d, p, x->kids[i], e) < 0)
            return -1;
    return 0;
}

/* A condition on another table's rows must hold its own there: beside the swept row, a column that only the
 * swept table has would be taken from that one, and the condition would be about the wrong row. */
static int accepts_alone(struct sql_store *s, const struct plan *p, const struct table *t,
                         const struct expr *x, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    if (!x)
        return 0;
    sql_alone(&st, s->engine->dialect, p, t, x);
    return s->engine->accepts(s, &st, e);
}

static int accepts_nodes(struct sql_store *s, const struct plan *p, const struct node *n, struct err *e)
{
    for (size_t i = 0; i < n->n_grow; i++)
        if (accepts_alone(s, p, n->table, n->grow_where[i], e) < 0)
            return -1;
    for (size_t i = 0; i < n->n_after; i++)
        if (n->after[i]->n_kids && accepts_alone(s, p, n->after[i]->table, n->after[i]->kids[0], e) < 0)
            return -1;
    for (size_t i = 0; i < n->n_kids; i++)
        if (accepts_alone(s, p, n->kids[i].table, n->kids[i].where, e) < 0 ||
            accepts_nodes(s, p, &n->kids[i], e) < 0)
            return -1;
    return 0;
}

static bool has_sql(const struct expr *x)
{
    bool found = x->kind == EXPR_SQL;
    for (size_t i = 0; i < x->n_kids && !found; i++)
        found = has_sql(x->kids[i]);
    return found;
}

/* A condition that writes is found out when it is carried out, in a transaction that cannot. */
static int accepts_matching(struct sql_store *s, const struct plan *p, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    bool ignored;
    if (!p->matching)
        return 0;
    if (accepts_alone(s, p, p->source, p->matching, e) < 0)
        return -1;
    sql_try(&st, s->engine->dialect, p, p->source, p->matching);
    return has_sql(p->matching) ? sqlstore_query_any(s, &st, &ignored, e) : 0;
}

int sqlstore_accepts(struct store *store, const struct plan *p, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    const struct dialect *d = s->engine->dialect;
    /* Conditions of owned rows are in there too: they say what a row waits for. */
    if (scan_conditions(d, p, p->due, e) < 0 || scan_conditions(d, p, p->matching, e) < 0)
        return -1;
    AUTO(stmt_release) struct stmt st = {0};
    sql_probe(&st, d, p);
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = s->engine->accepts(s, &st, e);
    if (r == 0 && p->beyond) { /* whose probe does not rank */
        sql_remaining(&st, d, p, 1);
        r = s->engine->accepts(s, &st, e);
    }
    if (r == 0) {
        sql_count_due(&st, d, p);
        r = s->engine->accepts(s, &st, e);
    }
    if (r == 0 && !plan_goes_alone(p)) {
        sql_count(&st, d, p);
        r = s->engine->accepts(s, &st, e);
    }
    if (r == 0)
        r = accepts_nodes(s, p, &p->root, e);
    if (r == 0)
        r = accepts_matching(s, p, e);
    s->engine->rollback(s);
    return r;
}

/* --- for people
 * ----------------------------------------------------------------------------------------------------- */

void sqlstore_show(struct text *out, const struct dialect *d, const struct stmt *st, const char *what)
{
    text_addf(out, "-- %s\n", what);
    if (d->show)
        d->show(st, out);
    else
        text_add(out, text_str(&st->sql));
    text_add(out, ";\n");
    for (size_t i = 0; i < st->n_params; i++) {
        const struct param *m = &st->params[i];
        text_addf(out, "--   %zu = ", i + 1);
        if (m->set >= 0)
            text_addf(out, "keys of set %d", m->set);
        else
            value_print(&m->value, out);
        text_add(out, "\n");
    }
    text_add(out, "\n");
}

static void explain_gather(const struct dialect *d, const struct plan *p, const struct node *n,
                           struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(text_release) struct text what = {0};
    for (size_t way = 0; way < n->n_grow; way++) {
        sql_grow(&st, d, n, way, p->n_sets);
        text_clear(&what);
        text_addf(&what, "lock the subtree, level by level, into set %d", n->set);
        sqlstore_show(out, d, &st, text_str(&what));
    }
    for (size_t i = 0; i < n->n_kids; i++) {
        if (n->kids[i].set < 0)
            continue;
        sql_pick_kids(&st, d, n, &n->kids[i]);
        text_clear(&what);
        text_addf(&what, "lock owned rows of %s into set %d", n->kids[i].table->print, n->kids[i].set);
        sqlstore_show(out, d, &st, text_str(&what));
        explain_gather(d, p, &n->kids[i], out);
    }
}

static void explain_erase(const struct dialect *d, const struct plan *p, const struct node *n,
                          struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(text_release) struct text what = {0};
    for (size_t i = 0; i < n->n_kids; i++) {
        if (n->kids[i].set >= 0) {
            explain_erase(d, p, &n->kids[i], out);
            continue;
        }
        sql_delete_kids(&st, d, p, n, &n->kids[i]);
        text_clear(&what);
        text_addf(&what, "delete owned rows of %s", n->kids[i].table->print);
        sqlstore_show(out, d, &st, text_str(&what));
    }
    for (size_t i = 0; i < n->n_detach; i++) {
        sql_detach(&st, d, p, n, &n->detach[i], false);
        text_clear(&what);
        text_addf(&what, "detach rows of %s", n->detach[i].table->print);
        sqlstore_show(out, d, &st, text_str(&what));
    }
    bool by_place = sql_delete_set_by_place(&st, d, n);
    text_clear(&what);
    text_addf(&what, "delete the rows of %s", n->table->print);
    if (by_place) {
        text_add(&what, ", where they lie");
        sqlstore_show(out, d, &st, text_str(&what));
        text_clear(&what);
        text_addf(&what, "delete those of %s that were updated since they were locked, by key",
                  n->table->print);
    }
    sql_delete_set(&st, d, n);
    sqlstore_show(out, d, &st, text_str(&what));
}

static void explain_ranks(const struct sql_store *s, const struct plan *p, struct text *out)
{
    const struct dialect *d = s->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    if (!p->beyond || !d->rank_lock)
        return;
    if (d->ranks_by_row) {
        sqlown_explain_ranks(s, p->root.table, out);
        return;
    }
    text_add(&st.sql, "SELECT ");
    d->rank_lock(&st, p->root.table);
    sqlstore_show(
        out, d, &st,
        "begin a batch: one at a time of all that rank rows of the table; where another runs, later");
}

void sqlstore_explain(struct store *store, const struct plan *p, struct text *out)
{
    const struct dialect *d = sqlstore_of(store)->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    if (p->examines) {
        sql_scout(&st, d, p, NULL, SCOUT_MOST);
        sqlstore_show(out, d, &st,
                      "find rows that look due, for many batches at once; a batch is so many of them, set 0");
        explain_ranks(sqlstore_of(store), p, out);
        sql_pick_set(&st, d, p);
        sqlstore_show(out, d, &st, "lock those of set 0 that are still as they were");
    } else if (d->picks_by_read) {
        sql_scout(&st, d, p, NULL, p->policy->batch == BATCH_ALL ? SLICE_ALL : p->policy->batch);
        sqlstore_show(out, d, &st, "find due rows, set 0 (later batches begin after the last row)");
        sql_pick_set(&st, d, p);
        sqlstore_show(out, d, &st, "lock those of set 0 that are still due");
    } else {
        sql_pick(&st, d, p, NULL, p->policy->batch == BATCH_ALL ? SLICE_ALL : p->policy->batch);
        sqlstore_show(out, d, &st,
                      "pick and lock due rows into set 0 (later batches begin after the last row)");
    }
    if (p->source_locked && d->locks_rows) {
        sql_lock_source(&st, d, p);
        sqlstore_show(out, d, &st, "lock the source rows of set 0, so that they stay as they are judged");
    }
    if (p->judge_again) {
        sql_judge(&st, d, p);
        sqlstore_show(out, d, &st, "judge again what looks at other rows");
    }
    sqlstore_explain_split(d, p, out);
    explain_gather(d, p, &p->root, out);
    explain_erase(d, p, &p->root, out);
}
