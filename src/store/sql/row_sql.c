/* row_sql: statements about one row: what it holds, how conditions judge it, what it waits for. Part of sql.
 */
#include "store/sql/internal.h"

/* Whether x is a part of `in`; then ret: where it is true, a row stays. */
static bool find_part(const struct expr *in, const struct expr *x, bool keeps, bool *ret)
{
    bool found = in == x;
    if (found)
        *ret = keeps;
    keeps = in->kind == EXPR_NOT_TRUE ? !keeps : keeps;
    for (size_t i = 0; i < in->n_kids && !found; i++)
        found = find_part(in->kids[i], x, keeps, ret);
    return found;
}

/* A condition is judged as it is where a row is judged as a whole. Whatever asks for the source keeps. */
static bool keeps(const struct plan *p, const struct expr *x)
{
    bool found = false;
    if (!find_part(p->due, x, false, &found))
        found = x->kind == EXPR_EXISTS && x->table == p->source;
    return found;
}

/* True, false or unknown as 1, 0 or NULL, the same on every engine: NOT makes one of three of any number, and
 * the operand of a CASE is judged once. */
static void verdict(struct writer *w, const struct expr *x)
{
    bool cast = w->d->catalog; /* CASE would look for = on the search path */
    text_add(&w->s->sql, cast ? "CAST(NOT (NOT (" : "CASE NOT (");
    sql_expression(w, THIS, x);
    text_add(&w->s->sql, cast ? ")) AS integer)" : ") WHEN FALSE THEN 1 WHEN TRUE THEN 0 END");
}

void sql_judge_row(struct stmt *s, const struct dialect *d, const struct plan *p, const struct inquiry *q)
{
    struct writer w = sql_writer(s, d, p);
    const char *between = "SELECT ";
    for (size_t i = 0; i < q->n_columns; i++, between = ", ") {
        text_add(&s->sql, between);
        sql_column(s, d, THIS, q->columns[i]);
    }
    for (size_t i = 0; i < q->n_times; i++, between = ", ") {
        text_add(&s->sql, between);
        d->time_value(s, THIS, &q->times[i]);
    }
    for (size_t i = 0; i < q->n_asked; i++, between = ", ") {
        text_add(&s->sql, between);
        text_add(&s->sql, "\n");
        w.keeps = keeps(p, q->asked[i]);
        verdict(&w, q->asked[i]);
        w.keeps = false;
    }
    text_add(&s->sql, "\n");
    sql_from(&w, p->root.table, THIS);
    text_add(&s->sql, "\nWHERE ");
    sql_expression(&w, THIS, q->key);
    text_add(&s->sql, "\nLIMIT 2");
}

/* "the row `alias` is of this row's group": a NULL group is one. */
static void of_same_group(struct writer *w, const char *alias, const struct ranking *r, const struct table *t,
                          const struct expr *key)
{
    text_add(&w->s->sql, " AND EXISTS (SELECT 1");
    sql_from(w, t, THIS);
    text_add(&w->s->sql, " WHERE ");
    sql_expression(w, THIS, key);
    for (size_t i = 0; i < r->n_per; i++) {
        const struct column *c = r->per[i];
        text_add(&w->s->sql, " AND (");
        sql_join(w, &(struct join){&c, &c, 1}, alias, THIS);
        if (sql_folds(c)) {
            text_add(&w->s->sql, " AND ");
            w->d->bytes(w->s, alias, c);
            sql_sign(w->s, w->d, "=");
            w->d->bytes(w->s, THIS, c);
        }
        text_add(&w->s->sql, " OR (");
        sql_column(w->s, w->d, alias, c);
        text_addf(&w->s->sql, "%s AND ", sql_is_null(w->d));
        sql_column(w->s, w->d, THIS, c);
        text_addf(&w->s->sql, "%s))", sql_is_null(w->d));
    }
    text_add(&w->s->sql, ")");
}

void sql_rank_row(struct stmt *s, const struct dialect *d, const struct plan *p, const struct expr *key)
{
    const struct expr *x = p->beyond;
    char row[ALIAS_SIZE], list[ALIAS_SIZE];
    struct writer w = sql_writer(s, d, p);
    sql_alias(&w, row);
    sql_alias(&w, list);
    text_addf(&s->sql, "SELECT %s.lapse_n, %s.lapse_of FROM (SELECT ", list, list);
    for (size_t i = 0; i < x->table->n_key; i++) {
        sql_column(s, d, row, x->table->key[i]);
        text_add(&s->sql, ", ");
    }
    sql_builtin(s, d, "row_number() OVER (");
    sql_newest_first(&w, row, x);
    text_add(&s->sql, ") AS lapse_n, ");
    sql_builtin(s, d, "count(*) OVER () AS lapse_of");
    sql_from(&w, x->table, row);
    text_add(&s->sql, " WHERE ");
    sql_expression(&w, row, x->kids[0]);
    of_same_group(&w, row, x->ranking, x->table, key);
    text_addf(&s->sql, ") AS %s WHERE ", list);
    sql_expression(&w, list, key);
}

static void outside(struct writer *w, const char *alias, const struct expr *x)
{
    text_add(&w->s->sql, " AND (");
    sql_expression(w, alias, x);
    text_add(&w->s->sql, ") IS NOT TRUE");
}

/* "the row `alias` refers by this join to a row of that node" */
static void refers_to_node(struct writer *w, const struct join *j, const char *alias, const struct wait *of)
{
    text_add(&w->s->sql, "EXISTS (SELECT 1");
    sql_from(w, of->node->table, THIS);
    text_add(&w->s->sql, " WHERE ");
    sql_join(w, j, alias, THIS);
    text_add(&w->s->sql, " AND ");
    sql_of_node(w, of->node, of->parent);
    text_add(&w->s->sql, ")");
}

/* Rows that are waited for keep this one; a `where` that they are outside of would let them go. */
static void waited_for(struct writer *w, const char *alias, const struct expr *key, const struct wait *of)
{
    const struct node *n = of->node;
    switch (of->kind) {
    case WAIT_AFTER:
        w->keeps = true;
        refers_to_node(w, &of->rows->joins[0], alias, of);
        if (of->rows->n_kids) {
            text_add(&w->s->sql, " AND ");
            sql_expression(w, alias, of->rows->kids[0]);
        }
        w->keeps = false;
        break;
    case WAIT_SOURCE:
        text_add(&w->s->sql, "EXISTS (SELECT 1");
        sql_from(w, n->table, THIS);
        text_add(&w->s->sql, " WHERE ");
        sql_expression(w, THIS, key);
        text_add(&w->s->sql, " AND ");
        w->keeps = true;
        sql_join(w, &of->rows->joins[0], alias, THIS);
        w->keeps = false;
        text_add(&w->s->sql, ")");
        break;
    case WAIT_WITH:
        sql_of_node(w, n, of->parent);
        outside(w, THIS, n->where);
        break;
    case WAIT_BELOW:
        refers_to_node(w, &n->grow[of->at], alias, of);
        outside(w, alias, n->grow_where[of->at]);
        break;
    }
}

static void key_columns(struct writer *w, const char *alias, const struct table *t, const char *before)
{
    for (size_t i = 0; i < t->n_key; i++) {
        text_add(&w->s->sql, i ? ", " : before);
        sql_column(w->s, w->d, alias, t->key[i]);
    }
}

void sql_waits_for(struct stmt *s, const struct dialect *d, const struct plan *p, const struct expr *key,
                   const struct wait *of, int64_t most)
{
    const struct table *t = wait_table(of);
    char row[ALIAS_SIZE];
    struct plan one = *p; /* the sets of this row alone */
    one.due = key;
    struct writer w = sql_writer(s, d, &one);
    const char *alias = of->kind == WAIT_WITH ? THIS : sql_alias(&w, row);
    sql_sets(&w, &one);
    key_columns(&w, alias, t, "\nSELECT ");
    text_add(&s->sql, t->n_key ? ", " : "\nSELECT ");
    sql_builtin(s, d, "count(*) OVER ()");
    sql_from(&w, t, alias);
    text_add(&s->sql, " WHERE ");
    waited_for(&w, alias, key, of);
    key_columns(&w, alias, t, "\nORDER BY ");
    text_add(&s->sql, "\nLIMIT ");
    sql_bind_integer(s, d, most);
}
