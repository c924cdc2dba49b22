/* row: the verbs about one row that SQL engines share. Part of sqlstore. */
#include "store/sql/sqlstore.h"

#include <stdlib.h>

/* An engine may give whole numbers as texts. Beyond 64 bits: the nearest that fits. */
static int64_t whole(const struct value *v)
{
    return v->kind == VALUE_TEXT ? strtoll(v->text, NULL, 10) : v->integer;
}

static enum verdict verdict_of(const struct value *v)
{
    if (v->kind == VALUE_NULL)
        return VERDICT_UNKNOWN;
    return whole(v) ? VERDICT_TRUE : VERDICT_FALSE;
}

static void read_row(const struct inquiry *q, const struct value *cell, struct answer *ret)
{
    ret->row.n_columns = q->n_columns;
    if (q->n_columns)
        rows_push(&ret->row, cell);
    cell += q->n_columns;
    ret->times = mem_alloc((q->n_times + 1) * sizeof(*ret->times));
    for (size_t i = 0; i < q->n_times; i++, cell++)
        ret->times[i] = (struct answer_time){cell->kind != VALUE_NULL, whole(cell)};
    ret->verdicts = mem_alloc((q->n_asked + 1) * sizeof(*ret->verdicts));
    for (size_t i = 0; i < q->n_asked; i++, cell++)
        ret->verdicts[i] = verdict_of(cell);
}

static int ask_wait(struct sql_store *s, const struct plan *p, const struct inquiry *q, const struct wait *w,
                    struct answer_wait *ret, struct err *e)
{
    size_t n_key = wait_table(w)->n_key;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    sql_waits_for(&st, s->engine->dialect, p, q->key, w, q->most);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    ret->keys.n_columns = n_key;
    for (size_t i = 0; n_key && i < found.n_rows; i++)
        rows_push(&ret->keys, rows_at(&found, i));
    ret->total = found.n_rows ? whole(&rows_at(&found, 0)[n_key]) : 0;
    return 0;
}

static int ask_rank(struct sql_store *s, const struct plan *p, const struct inquiry *q, struct answer *ret,
                    struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    if (!p->beyond)
        return 0;
    sql_rank_row(&st, s->engine->dialect, p, q->key);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    if (found.n_rows) {
        ret->rank = whole(&rows_at(&found, 0)[0]);
        ret->ranked = whole(&rows_at(&found, 0)[1]);
    }
    return 0;
}

static int ask_goes(struct sql_store *s, const struct plan *p, const struct inquiry *q, struct due *ret,
                    struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    struct plan one = *p; /* the same, for this row alone */
    one.due = q->key;
    due_init(ret, p);
    ret->gone[p->root.slot] = 1;
    if (plan_goes_alone(p))
        return 0;
    sql_count(&st, s->engine->dialect, &one);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    const struct value *cell = rows_at(&found, 0);
    for (size_t i = 0; i < p->n_slots; i++, cell++)
        ret->gone[i] = cell->kind == VALUE_NULL ? ret->gone[i] : whole(cell);
    for (size_t i = 0; i < p->n_detach_slots; i++)
        ret->detached[i] = whole(cell++);
    return 0;
}

static int ask_all(struct sql_store *s, const struct plan *p, const struct inquiry *q, struct answer *ret,
                   struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    sql_judge_row(&st, s->engine->dialect, p, q);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    ret->found = found.n_rows;
    if (ret->found != 1)
        return 0;
    read_row(q, rows_at(&found, 0), ret);
    ret->waits = mem_alloc((q->n_waits + 1) * sizeof(*ret->waits));
    for (; ret->n_waits < q->n_waits; ret->n_waits++)
        if (ask_wait(s, p, q, &q->waits[ret->n_waits], &ret->waits[ret->n_waits], e) < 0)
            return -1;
    if (q->rank && ask_rank(s, p, q, ret, e) < 0)
        return -1;
    return q->goes ? ask_goes(s, p, q, &ret->goes, e) : 0;
}

int sqlstore_judge_row(struct store *store, const struct plan *p, const struct inquiry *q, struct answer *ret,
                       struct err *e)
{
    struct sql_store *s = (struct sql_store *)store;
    AUTO(answer_release) struct answer answer = {0};
    int r = s->engine->begin_read(s, p->policy->statement_timeout_us, e);
    if (r == 0)
        r = ask_all(s, p, q, &answer, e);
    s->engine->rollback(s);
    if (r < 0)
        return -1;
    *ret = answer;
    answer = (struct answer){0};
    return 0;
}
