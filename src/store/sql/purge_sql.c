/* purge_sql: statements that erase the data of instances. Part of sql. */
#include "store/sql/internal.h"

static void are_not_kept(struct writer *w, const struct erasing *x)
{
    text_add(&w->s->sql, "(");
    w->keeps = true;
    sql_expression(w, THIS, x->keep);
    w->keeps = false;
    text_add(&w->s->sql, ") IS NOT TRUE");
}

static void are_of_instances(struct writer *w, const struct erasing *x, int set, enum whose whose)
{
    if (whose == EACH_ROW)
        w->d->is_text_of_row(w->s, THIS, x->column, set);
    else
        w->d->is_text_of_set(w->s, THIS, x->column, set, table_index_on(x->table, &x->column, 1));
    if (!x->keep)
        return;
    text_add(&w->s->sql, " AND ");
    are_not_kept(w, x);
}

/* Rows that are locked or deleted are found by the index of their column: in a short table the rows of other
 * instances would be waited for. */
static void from_touched(struct writer *w, const struct erasing *x, int set)
{
    size_t first = 0;
    struct sql_by b = {.columns = &x->column, .types = &x->column, .n = 1, .set = set, .at = &first};
    text_add(&w->s->sql, " FROM ");
    sql_table_by(w->s, w->d, x->table, THIS, &b);
}

static void touched_of_instances(struct writer *w, const struct erasing *x, int set, enum whose whose)
{
    from_touched(w, x, set);
    text_add(&w->s->sql, " WHERE ");
    are_of_instances(w, x, set, whose);
}

/* A number as numbers are written, whatever the column would show it as. */
static void instance_text(struct writer *w, const struct erasing *x)
{
    bool plain = x->column->type == TYPE_INTEGER && !w->d->catalog;
    text_add(&w->s->sql, "CAST(");
    sql_name(w->s, w->d, x->column->name);
    text_addf(&w->s->sql, "%s AS %s)", plain ? " + 0" : "", w->d->text_cast);
}

void sql_erase_unkept(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, "SELECT 1");
    sql_from_table(s, d, x->table, THIS);
    text_add(&s->sql, " WHERE ");
    are_not_kept(&w, x);
}

void sql_erase(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set,
               enum whose whose)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, d->deletes_alias ? "DELETE " THIS : "DELETE");
    touched_of_instances(&w, x, set, whose);
}

/* "LEFT JOIN t AS lapse_1 ON lapse_1.parent = this.id" for every way by which the table refers to itself;
 * their first columns are then NULL where no row does. */
static void join_kids(struct writer *w, const struct table *t)
{
    struct stmt *s = w->s;
    size_t n = 0;
    for (size_t i = 0; i < t->n_fkeys_in; i++) {
        const struct fkey *k = &t->fkeys_in[i];
        if (!fkey_is_own(t, k))
            continue;
        text_add(&s->sql, " LEFT JOIN ");
        sql_table(s, w->d, t);
        text_addf(&s->sql, " AS lapse_%zu ON ", ++n);
        for (size_t c = 0; c < k->n; c++) {
            text_addf(&s->sql, "%slapse_%zu.", c ? " AND " : "", n);
            sql_name(s, w->d, k->child_columns[c]);
            text_add(&s->sql, " = " THIS ".");
            sql_name(s, w->d, k->parent_columns[c]);
        }
    }
}

void sql_erase_leaves(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set)
{
    struct writer w = {.s = s, .d = d, .now = now};
    size_t n = 0;
    stmt_clear(s);
    text_add(&s->sql, "DELETE " THIS);
    from_touched(&w, x, set);
    join_kids(&w, x->table);
    text_add(&s->sql, " WHERE ");
    are_of_instances(&w, x, set, WHOLE_SET);
    for (size_t i = 0; i < x->table->n_fkeys_in; i++) {
        if (!fkey_is_own(x->table, &x->table->fkeys_in[i]))
            continue;
        text_addf(&s->sql, " AND lapse_%zu.", ++n);
        sql_name(s, d, x->table->fkeys_in[i].child_columns[0]);
        text_add(&s->sql, sql_is_null(d));
    }
}

void sql_erase_told(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set)
{
    struct writer w = {.s = s, .d = d, .now = now};
    sql_erase(s, d, now, x, set, WHOLE_SET);
    text_add(&s->sql, " RETURNING ");
    instance_text(&w, x);
}

void sql_erase_count(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, "SELECT ");
    instance_text(&w, x);
    text_add(&s->sql, d->locks_rows ? ", 1" : ", count(*)"); /* the latter of engines without a path */
    touched_of_instances(&w, x, set, WHOLE_SET);
    if (d->locks_rows) {
        d->lock(s, THIS, LOCK_WAIT);
        return;
    }
    text_add(&s->sql, " GROUP BY "); /* as an index has them */
    sql_column(s, d, THIS, x->column);
}

void sql_erase_left(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set,
                    enum whose whose)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, "SELECT ");
    sql_builtin(s, d, "count(*)");
    touched_of_instances(&w, x, set, whose);
}
