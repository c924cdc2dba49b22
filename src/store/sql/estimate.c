/* estimate: what can be said of a table before it is swept, so that it costs next to nothing.
 *
 * An engine may know. Where rows lie by a key that counts, a hundred of them, evenly spread over it, tell how
 * many are due, and whether those beside each other are about as old. */
#include "store/sql/store_internal.h"

enum { PLACES = 100 };
static const int64_t ESTIMATE_US = 2 * US_PER_S;

static bool counts(const struct table *t)
{
    return t->lies_by_key && t->n_key == 1 && t->key[0]->type == TYPE_INTEGER && !t->key[0]->is_unsigned;
}

/* How many times are earlier; of the same time an index has the rows in the order of their key. */
static double rank_of(const struct rows *found, size_t row)
{
    double rank = 0;
    int64_t own = sqlstore_number(rows_at(found, row));
    for (size_t i = 0; i < found->n_rows; i++) {
        int64_t other = sqlstore_number(rows_at(found, i));
        rank += other < own || (other == own && i < row);
    }
    return rank;
}

/* How far the times follow the key, or go against it: the correlation of their ranks. */
static double order_in(const struct rows *found)
{
    double both = 0, keys = 0, middle = ((double)found->n_rows - 1) / 2;
    for (size_t i = 0; i < found->n_rows; i++) {
        double key = (double)i - middle, time = rank_of(found, i) - middle;
        both += key * time;
        keys += key * key;
    }
    return keys > 0 ? (both < 0 ? -both : both) / keys : -1;
}

static int ask_around(struct sql_store *s, const struct plan *p, struct estimate *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows ends = {0}, found = {0};
    sql_key_ends(&st, s->engine->dialect, p);
    if (s->engine->query(s, &st, &ends, e) < 0)
        return -1;
    if (!ends.n_rows || rows_at(&ends, 0)->kind == VALUE_NULL)
        return 0;
    int64_t low = sqlstore_number(rows_at(&ends, 0)), high = sqlstore_number(rows_at(&ends, 0) + 1), span;
    if (!sub_i64(high, low, &span) || span < PLACES)
        return 0;
    sql_spread(&st, s->engine->dialect, p, low, span / PLACES, PLACES);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    double due = 0;
    for (size_t i = 0; i < found.n_rows; i++)
        due += (double)sqlstore_number(rows_at(&found, i) + 1);
    ret->rows = (double)span + 1;
    ret->due = found.n_rows ? ret->rows * due / (double)found.n_rows : -1;
    ret->order = order_in(&found);
    return 0;
}

int sqlstore_estimate(struct store *store, const struct plan *p, struct estimate *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    struct estimate seen = {-1, -1, -1, -1};
    *ret = seen;
    if (!s->engine->estimate && (!p->index || !counts(p->root.table)))
        return 0;
    int r = s->engine->begin_read(s, ESTIMATE_US, e);
    if (r == 0)
        r = (s->engine->estimate ? s->engine->estimate : ask_around)(s, p, &seen, e);
    s->engine->rollback(s);
    if (r == 0)
        *ret = seen;
    return r;
}

int sqlstore_served(struct store *store, const struct plan *p, bool *ret, struct text *words, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    const struct dialect *d = s->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    bool apart = p->n_states && d->one_state_each;
    *ret = true;
    if (!s->engine->served)
        return 0;
    sql_scout_by_index(&st, d, p, &(struct stretch){.first = apart ? &p->states[0] : NULL}, 1000);
    int r = s->engine->begin_read(s, ESTIMATE_US, e);
    if (r == 0)
        r = s->engine->served(s, &st, ret, words, e);
    s->engine->rollback(s);
    return r;
}
