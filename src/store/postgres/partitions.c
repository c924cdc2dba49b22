/* partitions: a partition judged under a lock and dropped, in one transaction.
 *
 * DROP needs ACCESS EXCLUSIVE on the table it is a part of, on the partition and on the default partition.
 * Where rows are judged within a moment, these are taken first: whoever uses the table waits for that moment.
 * Where it takes longer:
 *
 *   1. EXCLUSIVE on the partition: others still read it, nobody writes to it or locks its rows. So what a new
 *      statement says of its rows holds until COMMIT.
 *   2. Every row is judged.
 *   3. ACCESS EXCLUSIVE on the three. It lasts to COMMIT, a few milliseconds. It is not to be had as long as
 *      some statement has the table and waits for the partition; then the sweep gives way.
 *
 * DETACH would also lock the tables that foreign keys of the partition point at; DETACH … CONCURRENTLY ends
 * the transaction in which rows were judged.
 *
 * No lock is ever waited for. Whoever waits for ACCESS EXCLUSIVE holds up all who come after; and to wait for
 * the table while others wait for the partition would be a deadlock, that the server may end by failing the
 * application's statement. So each is asked for again and again for a time, then all is rolled back, and the
 * sweep tries once more or leaves it. Only what the drop itself locks besides (the table that a foreign key
 * of this partition alone points at, a sequence that it owns) is waited for, for a moment. */
#include "store/postgres/store.h"

#include <stdlib.h>
#include <string.h>

#define NO_SUCH_TABLE "42P01"

static const int64_t ASK_MOST_US = 200 * US_PER_MS; /* for a lock, while others may wait for another */
static const int64_t MOMENT_US = 50 * US_PER_MS;    /* for which everybody may wait */

static struct sql_store *of(struct store *s)
{
    return (struct sql_store *)s;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int set_local(struct sql_store *s, const char *name, int64_t us, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t none, ms = least(us / US_PER_MS, INT32_MAX);
    text_addf(&st.sql, "SET LOCAL %s = %lld", name, (long long)(ms < 1 ? 1 : ms));
    return s->engine->execute(s, &st, &none, e);
}

static int64_t number(const struct rows *r, size_t column)
{
    return strtoll(rows_at(r, 0)[column].text, NULL, 10);
}

/* --- without a lock ------------------------------------------------------------------------------ */

static int list(struct store *store, const struct plan *p, struct partitions *ret, struct err *e)
{
    struct sql_store *s = of(store);
    int r = s->engine->begin_read(s, p->policy->statement_timeout_us, e);
    if (r == 0)
        r = postgres_read_partitions(s, p, NULL, ret, e);
    s->engine->rollback(s);
    size_t n = 0;
    for (size_t i = 0; i < ret->n; i++)
        if (partition_has_ended(p, &ret->list[i]))
            ret->list[n++] = ret->list[i];
    ret->n = n;
    return r;
}

/* Most that are not whole show it in one of their first rows; the others are read twice, and the second time
 * says how long it takes. */
static int look_in(struct sql_store *s, const struct plan *p, const struct partition *x,
                   struct partition_look *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows alive = {0}, counts = {0};
    sql_partition_alive(&st, s->engine->dialect, p, x);
    if (s->engine->query(s, &st, &alive, e) < 0)
        return -1;
    if (alive.n_rows)
        return 0;
    int64_t started = when_monotonic_us();
    sql_partition_count(&st, s->engine->dialect, p, x);
    if (s->engine->query(s, &st, &counts, e) < 0)
        return -1;
    ret->took_us = when_monotonic_us() - started;
    ret->rows = number(&counts, 0);
    ret->whole = ret->rows > 0 && ret->rows == number(&counts, 1);
    return 0;
}

static int look(struct store *store, const struct plan *p, const struct partition *x,
                struct partition_look *ret, struct err *e)
{
    struct sql_store *s = of(store);
    struct err why = ERR_INIT;
    *ret = (struct partition_look){0};
    int r = s->engine->begin_read(s, p->policy->statement_timeout_us, &why);
    if (r == 0)
        r = look_in(s, p, x, ret, &why);
    s->engine->rollback(s);
    if (r == 0 || strcmp(why.code, NO_SUCH_TABLE) == 0)
        return 0;
    *e = why;
    return -1;
}

/* --- under one ----------------------------------------------------------------------------------- */

/* Locked, it can neither be detached nor renamed, and gets no trigger; whatever has its name by now must be
 * what was listed. */
static int is_still(struct sql_store *s, const struct plan *p, const struct partition *x, bool *ret,
                    struct err *e)
{
    AUTO(partitions_release) struct partitions now = {0};
    if (postgres_read_partitions(s, p, x->id, &now, e) < 0)
        return -1;
    const struct partition *y = now.n == 1 ? &now.list[0] : NULL;
    *ret = y && strcmp(y->print, x->print) == 0 && !y->why && partition_has_ended(p, y);
    return 0;
}

static int pause_for_others(struct sql_store *s, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows none = {0};
    text_add(&st.sql, "SELECT pg_catalog.pg_sleep(0.01)");
    return s->engine->query(s, &st, &none, e);
}

/* A statement that locks without waiting, until it succeeds or the time is over. */
static int ask_for(struct sql_store *s, const struct stmt *st, int64_t most_us, struct err *e)
{
    int64_t until = when_monotonic_us() + most_us, none;
    for (;;) {
        struct err why = ERR_INIT;
        if (s->engine->mark(s, e) < 0)
            return -1;
        if (s->engine->execute(s, st, &none, &why) == 0)
            return 0;
        if (why.kind != ERR_BUSY || when_monotonic_us() >= until) {
            *e = why;
            return -1;
        }
        if (s->engine->undo(s, e) < 0 || pause_for_others(s, e) < 0)
            return -1;
    }
}

static int lock(struct sql_store *s, const struct plan *p, const struct partition *x,
                const struct partition_look *l, bool *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    struct err why = ERR_INIT;
    *ret = false;
    (l->took_us <= MOMENT_US ? sql_partition_seize : sql_partition_lock)(&st, s->engine->dialect, x);
    if (ask_for(s, &st, p->policy->lock_timeout_us, &why) == 0)
        return is_still(s, p, x, ret, e);
    if (strcmp(why.code, NO_SUCH_TABLE) == 0)
        return 0;
    *e = why;
    return -1;
}

/* In a statement of its own: it sees all that was committed before the lock was had. */
static int judge(struct sql_store *s, const struct plan *p, const struct partition *x, int64_t *ret_rows,
                 struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows counts = {0};
    int64_t most = p->policy->statement_timeout_us;
    sql_partition_count(&st, s->engine->dialect, p, x);
    if (set_local(s, "statement_timeout", least(most, p->policy->lock_timeout_us), e) < 0 ||
        s->engine->query(s, &st, &counts, e) < 0 || set_local(s, "statement_timeout", most, e) < 0)
        return -1;
    *ret_rows = number(&counts, 0) == number(&counts, 1) ? number(&counts, 0) : 0;
    return 0;
}

static int hold(struct store *store, const struct plan *p, const struct partition *x,
                const struct partition_look *l, int64_t *ret_rows, struct err *e)
{
    bool held;
    *ret_rows = 0;
    if (lock(of(store), p, x, l, &held, e) < 0)
        return -1;
    return held ? judge(of(store), p, x, ret_rows, e) : 0;
}

static int drop(struct store *store, const struct plan *p, const struct partition *x, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    int64_t none;
    sql_partition_seize(&st, s->engine->dialect, x);
    if (ask_for(s, &st, least(p->policy->lock_timeout_us, ASK_MOST_US), e) < 0)
        return -1;
    sql_partition_drop(&st, s->engine->dialect, x);
    if (set_local(s, "lock_timeout", MOMENT_US, e) < 0)
        return -1;
    return s->engine->execute(s, &st, &none, e);
}

/* --- for people ---------------------------------------------------------------------------------- */

static void show(struct text *out, const char *what, const struct stmt *st)
{
    text_addf(out, "-- %s\n%s;\n", what, text_str(&st->sql));
    for (size_t i = 0; i < st->n_params; i++) {
        text_addf(out, "--   %zu = ", i + 1);
        value_print(&st->params[i].value, out);
        text_add(out, "\n");
    }
    text_add(out, "\n");
}

static void explain(struct store *store, const struct plan *p, const struct partition *x, struct text *out)
{
    const struct dialect *d = of(store)->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    sql_partition_alive(&st, d, p, x);
    show(out, "does the partition have a row that is not due? Without a lock", &st);
    sql_partition_lock(&st, d, x);
    show(out, "if not: nobody writes to it from here to COMMIT", &st);
    sql_partition_count(&st, d, p, x);
    show(out, "its rows, and those of them that are due: it goes only if all are", &st);
    sql_partition_seize(&st, d, x);
    show(out,
         "what a drop needs; asked for again and again, never waited for (first of all, where the rows are "
         "soon judged)",
         &st);
    sql_partition_drop(&st, d, x);
    show(out, "drop the partition", &st);
}

const struct partition_ops postgres_partitions = {
    .list = list,
    .look = look,
    .hold = hold,
    .drop = drop,
    .explain = explain,
};
