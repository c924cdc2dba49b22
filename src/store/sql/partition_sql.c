/* partition_sql: statements about one partition. Its columns are called as those of the table it is a part of, so the
 * plan's conditions hold for it as they are. */
#include "store/sql/internal.h"

static struct table as_table(const struct partition *x)
{
    return (struct table){.schema = x->schema, .name = x->name, .print = x->print};
}

void sql_partition_alive(struct stmt *s, const struct dialect *d, const struct plan *p,
                         const struct partition *x)
{
    struct writer w = sql_writer(s, d, p);
    const struct table t = as_table(x);
    const struct expr *due = p->due;
    const struct expr alive = {.kind = EXPR_NOT_TRUE, .kids = &due, .n_kids = 1};
    sql_add(s, "SELECT 1");
    sql_from_table(s, d, &t, THIS);
    sql_add(s, "\nWHERE ");
    sql_expression(&w, THIS, &alive);
    sql_add(s, "\nLIMIT 1");
}

void sql_partition_count(struct stmt *s, const struct dialect *d, const struct plan *p,
                         const struct partition *x)
{
    struct writer w = sql_writer(s, d, p);
    const struct table t = as_table(x);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*), ");
    sql_builtin(s, d, "count(*) FILTER (WHERE ");
    sql_expression(&w, THIS, p->due);
    sql_add(s, ")");
    sql_from_table(s, d, &t, THIS);
}

void sql_partition_lock(struct stmt *s, const struct dialect *d, const struct partition *x)
{
    const struct table t = as_table(x);
    stmt_clear(s);
    sql_add(s, "LOCK TABLE ");
    sql_table(s, d, &t);
    sql_add(s, " IN EXCLUSIVE MODE NOWAIT");
}

static void only(struct stmt *s, const struct dialect *d, const char *schema, const char *name)
{
    const struct table t = {.schema = schema, .name = name};
    sql_add(s, "ONLY ");
    sql_table(s, d, &t);
}

void sql_partition_seize(struct stmt *s, const struct dialect *d, const struct partition *x)
{
    const struct table t = as_table(x);
    stmt_clear(s);
    sql_add(s, "LOCK TABLE ");
    only(s, d, x->up_schema, x->up_name);
    sql_add(s, ", ");
    sql_table(s, d, &t);
    if (x->rest_name) {
        sql_add(s, ", ");
        only(s, d, x->rest_schema, x->rest_name);
    }
    sql_add(s, " IN ACCESS EXCLUSIVE MODE NOWAIT");
}

void sql_partition_drop(struct stmt *s, const struct dialect *d, const struct partition *x)
{
    const struct table t = as_table(x);
    stmt_clear(s);
    sql_add(s, "DROP TABLE ");
    sql_table(s, d, &t);
    sql_add(s, " RESTRICT");
}
