/* pieces_json: PostgreSQL's partitions that can be swept one by one, and which of them may
 * hold due rows. See store_ops.pieces.
 *
 * Which may, the planner says: what it leaves out of a plan for the whole table, by the bounds of partitions,
 * has no such rows. Explained, never carried out. */
#include "store/postgres/store.h"

#include <jansson.h>
#include <string.h>

/* Direct partitions alone: whoever detaches what lies between waits for nobody who uses a partition below it.
 * A plain table of heap that this user may do everything with; what is being detached is not seen any more.
 * From version 14 on places are found fast, and a partition can be half detached. */
static const char pieces_sql[] =
    "SELECT n.nspname, c.relname,"
    "       pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),"
    "       pg_catalog.current_setting('server_version_num')::int >= 140000"
    "       AND c.relkind = 'r' AND c.relam = 2 AND NOT pg_catalog.row_security_active(c.oid)"
    "       AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
    "       AND pg_catalog.has_table_privilege(c.oid, 'SELECT')"
    "       AND pg_catalog.has_table_privilege(c.oid, 'DELETE')"
    "       AND pg_catalog.has_any_column_privilege(c.oid, 'UPDATE')"
    "       AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid"
    "                       AND NOT t.tgisinternal AND t.tgtype & 24 <> 0)"
    "       AND NOT EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid),"
    "       c.relkind = 'p' "
    "FROM pg_catalog.pg_inherits i "
    "JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "JOIN pg_catalog.pg_class top ON top.oid = i.inhparent AND top.relname = $2::text "
    "JOIN pg_catalog.pg_namespace topn ON topn.oid = top.relnamespace AND topn.nspname = $1::text "
    "WHERE COALESCE(pg_catalog.to_jsonb(i) ->> 'inhdetachpending', 'false') = 'false'";

static const char *cell(const struct rows *r, size_t row, size_t column)
{
    const struct value *v = &rows_at(r, row)[column];
    return v->kind == VALUE_NULL ? "" : v->text;
}

static size_t find(const struct rows *all, const char *schema, const char *name)
{
    size_t i = 0;
    while (i < all->n_rows && (strcmp(cell(all, i, 0), schema) != 0 || strcmp(cell(all, i, 1), name) != 0))
        i++;
    return i;
}

static bool has_one(const struct table_pieces *list, const char *print)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->list[i].print, print) == 0)
            return true;
    return false;
}

/* The partitions that this node of a plan, and those below it, read, in the plan's order, which is that of
 * their bounds. False: one of them is not for sweeping alone. */
static bool add_read(const json_t *node, const struct rows *all, struct arena *a, struct table_pieces *ret)
{
    const char *schema = json_string_value(json_object_get(node, "Schema"));
    const char *name = json_string_value(json_object_get(node, "Relation Name"));
    const char *as = json_string_value(json_object_get(node, "Parent Relationship"));
    const json_t *kids = json_object_get(node, "Plans");
    if (as && (strcmp(as, "InitPlan") == 0 || strcmp(as, "SubPlan") == 0)) /* what a condition looks at */
        return true;
    size_t at = schema && name ? find(all, schema, name) : all->n_rows;
    if (at < all->n_rows && cell(all, at, 3)[0] != 't')
        return false;
    if (at < all->n_rows && !has_one(ret, cell(all, at, 2))) {
        ret->list = arena_push(a, ret->list, ret->n, sizeof(*ret->list));
        ret->list[ret->n++] = (struct table_piece){arena_strdup(a, schema), arena_strdup(a, name),
                                                   arena_strdup(a, cell(all, at, 2)), &postgres_place};
    }
    for (size_t i = 0; i < json_array_size(kids); i++)
        if (!add_read(json_array_get(kids, i), all, a, ret))
            return false;
    return true;
}

/* What is divided further is not read itself, and what it is divided into is not listed. */
static bool any_divided(const struct rows *all)
{
    for (size_t i = 0; i < all->n_rows; i++)
        if (cell(all, i, 4)[0] == 't')
            return true;
    return false;
}

static int explain(struct sql_store *s, const struct plan *p, json_t **ret, struct err *e)
{
    AUTO(stmt_release) struct stmt due = {0};
    AUTO(rows_release) struct rows found = {0};
    sql_due(&due, s->engine->dialect, p);
    AUTO(mem_free_p) char *sql = mem_strdup(text_str(&due.sql));
    text_clear(&due.sql);
    text_addf(&due.sql, "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) %s", sql);
    if (s->engine->query(s, &due, &found, e) < 0)
        return -1;
    *ret = found.n_rows ? json_loads(cell(&found, 0, 0), 0, NULL) : NULL;
    return 0;
}

static int read_pieces(struct sql_store *s, const struct plan *p, struct arena *a, struct table_pieces *ret,
                       struct err *e)
{
    const struct table *t = p->root.table;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows all = {0};
    json_t *plans = NULL;
    text_add(&st.sql, pieces_sql);
    struct param params[] = {
        {.value = {.kind = VALUE_TEXT, .text = t->schema, .len = strlen(t->schema)}, .set = -1},
        {.value = {.kind = VALUE_TEXT, .text = t->name, .len = strlen(t->name)}, .set = -1}};
    struct stmt asked = {.sql = st.sql, .params = params, .n_params = COUNT_OF(params)};
    if (s->engine->query(s, &asked, &all, e) < 0 || explain(s, p, &plans, e) < 0)
        return -1;
    ret->of = all.n_rows;
    if (!plans || any_divided(&all) ||
        !add_read(json_object_get(json_array_get(plans, 0), "Plan"), &all, a, ret))
        ret->n = 0;
    json_decref(plans);
    return 0;
}

int postgres_pieces(struct store *store, const struct plan *p, struct arena *a, struct table_pieces *ret,
                    struct err *e)
{
    struct sql_store *s = (struct sql_store *)store;
    *ret = (struct table_pieces){0};
    int r = s->engine->begin_read(s, p->policy->statement_timeout_us, e);
    if (r == 0)
        r = read_pieces(s, p, a, ret, e);
    s->engine->rollback(s);
    return r;
}
