/* read: counting and probing, in transactions that cannot write. See sqlstore.h. */
#include "store/sql/store_internal.h"

#include <stdlib.h>
#include <string.h>

static const int64_t AT_LEAST_US = 2 * US_PER_S, KEPT_US = 3 * US_PER_S;

/* Runs one reading function in a transaction that cannot write and is always rolled back. */
int sqlstore_reading(struct sql_store *s, const struct plan *p, struct err *e)
{
    return s->engine->begin_read(s, p->policy->statement_timeout_us, e);
}

int sqlstore_look_begin(struct store *store, int64_t statement_timeout_us, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    s->looking = s->engine->begin_read(s, statement_timeout_us, e) == 0;
    return s->looking ? 0 : -1;
}

void sqlstore_look_end(struct store *store)
{
    struct sql_store *s = sqlstore_of(store);
    s->looking = false;
    s->engine->rollback(s);
}

int sqlstore_probe(struct store *store, const struct plan *p, bool *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sqlstore_forget_found(s); /* a sweep may begin */
    s->found.never = false;
    sql_probe(&st, s->engine->dialect, p);
    if (s->looking)
        return sqlstore_query_any(s, &st, ret, e);
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = sqlstore_query_any(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_scout(struct store *store, const struct plan *p, const struct stretch *in, int64_t most,
                   struct rows *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_scout(&st, s->engine->dialect, p, in, most);
    if (s->writing)
        return s->engine->query(s, &st, ret, e);
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = s->engine->query(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_cut(struct store *store, const struct plan *p, const struct cursor *after, int64_t rows,
                 struct cursor *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    if (p->walk == WALK_PLACE)
        return sqlstore_cut_by_place(s, p, after, rows, ret, e);
    sql_cut(&st, s->engine->dialect, p, after, rows);
    int r = s->writing ? 0 : sqlstore_reading(s, p, e);
    if (r == 0)
        r = s->engine->query(s, &st, &found, e);
    if (!s->writing)
        s->engine->rollback(s);
    if (r == 0 && found.n_rows)
        cursor_set(ret, rows_at(&found, 0), p->n_order);
    return r;
}

int sqlstore_size(struct store *store, const struct plan *p, int64_t *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_size(&st, s->engine->dialect, p);
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = sqlstore_query_number(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_remaining(struct store *store, const struct plan *p, int64_t most, int64_t *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_remaining(&st, s->engine->dialect, p, most);
    int r = s->writing ? 0 : sqlstore_reading(s, p, e);
    if (r == 0)
        r = sqlstore_query_number(s, &st, ret, e);
    if (!s->writing)
        s->engine->rollback(s);
    return r;
}

/* The rows that were not read are younger: those that were came in the order of their time. */
static bool oldest_first(const struct plan *p)
{
    return p->n_times == 1 && p->n_order && p->order[0] == p->times[0].column;
}

int sqlstore_backlog(struct store *store, const struct plan *p, int64_t most, int64_t timeout_us,
                     struct backlog *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    sql_backlog(&st, s->engine->dialect, p, most);
    int r = s->engine->begin_read(s, timeout_us, e);
    if (r == 0)
        r = s->engine->query(s, &st, &found, e);
    s->engine->rollback(s);
    if (r < 0)
        return -1;
    const struct value *row = rows_at(&found, 0);
    *ret = (struct backlog){.rows = sqlstore_number(&row[0])};
    ret->has_oldest = row[1].kind != VALUE_NULL && (ret->rows < most || oldest_first(p));
    ret->oldest = ret->has_oldest ? sqlstore_number(&row[1]) : 0;
    return 0;
}

static int count_due(struct sql_store *s, const struct plan *p, struct due *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    sql_count_due(&st, s->engine->dialect, p);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    const struct value *row = rows_at(&found, 0);
    ret->gone[p->root.slot] = sqlstore_number(&row[0]);
    ret->has_range = row[1].kind != VALUE_NULL;
    ret->oldest = sqlstore_number(&row[1]);
    ret->newest = sqlstore_number(&row[2]);
    return 0;
}

static int count_below(struct sql_store *s, const struct plan *p, struct due *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows counts = {0};
    sql_count(&st, s->engine->dialect, p);
    if (s->engine->query(s, &st, &counts, e) < 0)
        return -1;
    const struct value *cell = rows_at(&counts, 0);
    for (size_t i = 0; i < p->n_slots; i++, cell++)
        ret->gone[i] = cell->kind == VALUE_NULL ? ret->gone[i] : sqlstore_number(cell);
    for (size_t i = 0; i < p->n_detach_slots; i++)
        ret->detached[i] = sqlstore_number(cell++);
    return 0;
}

static int kept_in(struct sql_store *s, const struct plan *p, struct due *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows kept = {0};
    sql_kept(&st, s->engine->dialect, p);
    if (s->engine->query(s, &st, &kept, e) < 0)
        return -1;
    const struct value *row = rows_at(&kept, 0);
    ret->null_time = sqlstore_number(&row[0]);
    ret->unreadable_time = sqlstore_number(&row[1]);
    ret->held = sqlstore_number(&row[2]);
    ret->waiting = sqlstore_number(&row[3]);
    return 0;
}

/* How many there are at least, where counting them all took too long: as many as a short look can see. */
static int64_t count_some(struct sql_store *s, const struct plan *p)
{
    static const int64_t most[] = {100000, 1000, 1};
    for (size_t i = 0; i < COUNT_OF(most); i++) {
        AUTO(stmt_release) struct stmt st = {0};
        struct err ignored = ERR_INIT;
        int64_t n = 0;
        sql_remaining(&st, s->engine->dialect, p, most[i]);
        int r = s->engine->begin_read(s, AT_LEAST_US, &ignored);
        if (r == 0)
            r = sqlstore_query_number(s, &st, &n, &ignored);
        s->engine->rollback(s);
        if (r == 0)
            return n;
        if (ignored.kind != ERR_TIMEOUT)
            break;
    }
    return 0;
}

/* Why rows are kept is worth no more time than the counting was, and never long. */
static int64_t time_for_kept(const struct plan *p, int64_t took_us)
{
    int64_t most = p->policy->statement_timeout_us, us = took_us > KEPT_US ? took_us : KEPT_US;
    return most > 0 && most < us ? most : us;
}

static int look_at_kept(struct sql_store *s, const struct plan *p, int64_t timeout_us, struct due *ret,
                        struct err *e)
{
    struct err why = ERR_INIT;
    int r = s->engine->begin_read(s, timeout_us, &why);
    if (r == 0)
        r = kept_in(s, p, ret, &why);
    s->engine->rollback(s);
    ret->kept_unknown = r < 0 && why.kind == ERR_TIMEOUT;
    if (r < 0 && !ret->kept_unknown)
        *e = why;
    return ret->kept_unknown ? 0 : r;
}

int sqlstore_count(struct store *store, const struct plan *p, struct due *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    int64_t began = when_monotonic_us();
    struct err why = ERR_INIT;
    bool counted = false;
    int r = sqlstore_reading(s, p, &why);
    if (r == 0)
        r = count_due(s, p, ret, &why);
    if (r == 0 && !plan_goes_alone(p)) {
        counted = plan_counts_alone(p);
        ret->least = ret->gone[p->root.slot];
        r = count_below(s, p, ret, &why);
    }
    s->engine->rollback(s);
    ret->below_unknown = r < 0 && counted && why.kind == ERR_TIMEOUT;
    if (r < 0 && !ret->below_unknown) {
        if (why.kind == ERR_TIMEOUT && !ret->least)
            ret->least = count_some(s, p);
        *e = why;
        return -1;
    }
    return look_at_kept(s, p, time_for_kept(p, when_monotonic_us() - began), ret, e);
}

int sqlstore_count_beside(struct store *store, const struct plan *p, const struct plan *const *others,
                          size_t n, int64_t *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_count_beside(&st, s->engine->dialect, p, others, n);
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = sqlstore_query_number(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_kept(struct store *store, const struct plan *p, struct due *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = kept_in(s, p, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_has_value(struct store *store, const struct table *t, const struct expr *is, bool *ret,
                       struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_has(&st, s->engine->dialect, t, is);
    int r = s->engine->begin_read(s, 30 * US_PER_S, e);
    if (r == 0)
        r = sqlstore_query_any(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_lookalike(struct store *store, const struct table *t, const struct column *c,
                       const struct value *values, size_t n, bool *ret_found, struct text *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    *ret_found = false;
    if (!s->engine->dialect->exactly) /* no column folds */
        return 0;
    sql_lookalike(&st, s->engine->dialect, t, c, values, n);
    int r = s->engine->begin_read(s, 30 * US_PER_S, e);
    if (r == 0)
        r = s->engine->query(s, &st, &found, e);
    s->engine->rollback(s);
    *ret_found = r == 0 && found.n_rows > 0;
    if (*ret_found)
        value_print(rows_at(&found, 0), ret);
    return r;
}
