/* look: the values of some columns in a few rows of a table, at a cost that does not grow with it. */
#include "store/sql/sqlstore.h"

enum { LOOK_ROWS = 1000, LOOK_TIMEOUT_S = 3, LOOK_TEXT = 64 };

/* A text may be as long as it likes; its beginning says what it is. */
static void look_at_column(struct stmt *st, const struct dialect *d, const struct column *c)
{
    bool text = c->type == TYPE_TEXT;
    if (text)
        sql_builtin(st, d, "substr(");
    sql_column(st, d, "this", c);
    if (text)
        text_addf(&st->sql, ", 1, %d)", LOOK_TEXT);
}

static void by_key_backwards(struct stmt *st, const struct dialect *d, const struct table *t)
{
    for (size_t i = 0; i < t->n_key; i++) {
        text_add(&st->sql, i ? ", " : " ORDER BY ");
        sql_column(st, d, "this", t->key[i]);
        text_add(&st->sql, " DESC");
    }
}

/* Columns to look at, and behind them the key, by which a row that two readings bring is known. */
static void look_columns(struct stmt *st, const struct dialect *d, const struct table *t,
                         const struct column *const *columns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        text_add(&st->sql, i ? ", " : "");
        look_at_column(st, d, columns[i]);
    }
    for (size_t i = 0; i < t->n_key; i++) {
        text_add(&st->sql, ", ");
        sql_column(st, d, "this", t->key[i]);
    }
}

static int read_some(struct sql_store *s, const struct table *t, const struct column *const *columns,
                     size_t n, bool from_the_end, struct rows *ret, struct err *e)
{
    const struct dialect *d = s->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "SELECT ");
    look_columns(&st, d, t, columns, n);
    text_add(&st.sql, " FROM ");
    sql_table(&st, d, t);
    text_add(&st.sql, " AS this");
    if (from_the_end)
        by_key_backwards(&st, d, t);
    text_addf(&st.sql, " LIMIT %d", LOOK_ROWS);
    return s->engine->query(s, &st, ret, e);
}

/* Both bring LOOK_ROWS rows at most, so comparing each with each costs less than a sort is worth. */
static bool is_among(const struct rows *rows, const struct value *row, size_t n_columns, size_t n_key)
{
    for (size_t i = 0; i < rows->n_rows; i++) {
        const struct value *other = rows_at(rows, i);
        size_t same = 0;
        while (same < n_key && value_same(&other[n_columns + same], &row[n_columns + same]))
            same++;
        if (same == n_key)
            return true;
    }
    return false;
}

/* The first rows as they come; of a longer table the last by key too, which its index finds. */
int sqlstore_look(struct store *store, const struct table *t, const struct column *const *columns, size_t n,
                  struct rows *ret, bool *ret_whole, struct err *e)
{
    struct sql_store *s = (struct sql_store *)store;
    AUTO(rows_release) struct rows first = {0}, last = {0};
    int r = s->engine->begin_read(s, LOOK_TIMEOUT_S * US_PER_S, e);
    if (r == 0)
        r = read_some(s, t, columns, n, false, &first, e);
    *ret_whole = r == 0 && first.n_rows < LOOK_ROWS;
    if (r == 0 && !*ret_whole && t->n_key)
        r = read_some(s, t, columns, n, true, &last, e);
    s->engine->rollback(s);
    ret->n_columns = n;
    for (size_t i = 0; i < first.n_rows; i++)
        rows_push(ret, rows_at(&first, i));
    for (size_t i = 0; i < last.n_rows; i++)
        if (!is_among(&first, rows_at(&last, i), n, t->n_key))
            rows_push(ret, rows_at(&last, i));
    return r;
}
