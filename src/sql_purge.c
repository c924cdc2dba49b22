/* sql_purge: statements that erase the data of instances. Part of sql. */
#include "sql_parts.h"

static void of_instances(struct writer *w, const struct erasing *x, int set)
{
    sql_from(w, x->table, THIS);
    text_add(&w->s->sql, " WHERE ");
    w->d->is_text_of_set(w->s, THIS, x->column, set);
    if (!x->keep)
        return;
    text_add(&w->s->sql, " AND (");
    sql_expression(w, THIS, x->keep);
    text_add(&w->s->sql, ") IS NOT TRUE");
}

static void instance_text(struct writer *w, const struct erasing *x)
{
    text_add(&w->s->sql, "CAST(");
    sql_name(w->s, w->d, x->column->name);
    text_addf(&w->s->sql, " AS %s)", w->d->text_cast);
}

void sql_erase(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, "DELETE");
    of_instances(&w, x, set);
    if (!d->locks_rows) /* then they can be counted before */
        return;
    text_add(&s->sql, " RETURNING ");
    instance_text(&w, x);
}

void sql_erase_count(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, "SELECT ");
    instance_text(&w, x);
    text_add(&s->sql, ", count(*)");
    of_instances(&w, x, set);
    text_add(&s->sql, " GROUP BY "); /* as an index has them */
    sql_column(s, d, THIS, x->column);
}

void sql_erase_left(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, "SELECT count(*)");
    of_instances(&w, x, set);
}
