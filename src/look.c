/* look: the values of some columns in a few rows of a table, at a cost that does not grow with it. */
#include "sqlstore.h"

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

static int read_some(struct sql_store *s, const struct table *t, const struct column *const *columns,
                     size_t n, bool from_the_end, struct rows *ret, struct err *e)
{
    const struct dialect *d = s->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    text_add(&st.sql, "SELECT ");
    for (size_t i = 0; i < n; i++) {
        text_add(&st.sql, i ? ", " : "");
        look_at_column(&st, d, columns[i]);
    }
    text_add(&st.sql, " FROM ");
    sql_table(&st, d, t);
    text_add(&st.sql, " AS this");
    if (from_the_end)
        by_key_backwards(&st, d, t);
    text_addf(&st.sql, " LIMIT %d", LOOK_ROWS);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    ret->n_columns = n;
    for (size_t i = 0; i < found.n_rows; i++)
        rows_push(ret, rows_at(&found, i));
    return 0;
}

/* The first rows as they come; of a longer table the last by key too, which its index finds. */
int sqlstore_look(struct store *store, const struct table *t, const struct column *const *columns, size_t n,
                  struct rows *ret, bool *ret_whole, struct err *e)
{
    struct sql_store *s = (struct sql_store *)store;
    int r = s->engine->begin_read(s, LOOK_TIMEOUT_S * US_PER_S, e);
    if (r == 0)
        r = read_some(s, t, columns, n, false, ret, e);
    *ret_whole = r == 0 && ret->n_rows < LOOK_ROWS;
    if (r == 0 && !*ret_whole && t->n_key)
        r = read_some(s, t, columns, n, true, ret, e);
    s->engine->rollback(s);
    return r;
}
