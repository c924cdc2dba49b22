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

void sql_erase(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, "DELETE");
    of_instances(&w, x, set);
    text_add(&s->sql, " RETURNING CAST(");
    sql_name(s, d, x->column->name);
    text_addf(&s->sql, " AS %s)", d->text_cast);
}

void sql_erase_left(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set)
{
    struct writer w = {.s = s, .d = d, .now = now};
    stmt_clear(s);
    text_add(&s->sql, "SELECT count(*)");
    of_instances(&w, x, set);
}
