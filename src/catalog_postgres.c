/* catalog_postgres: PostgreSQL's catalog -> facts. Names are resolved once, here; all that follows is asked
 * by oid. */
#include "store_postgres.h"

#include <stdlib.h>
#include <string.h>

/* Runs a query with text parameters. ret is {0} or an earlier answer. */
static int ask(struct sql_store *s, const char *sql, const char *const *texts, size_t n, struct rows *ret,
               struct err *e)
{
    enum { MOST = 4 };
    struct param params[MOST] = {0};
    struct stmt st = {.params = params, .n_params = n};
    for (size_t i = 0; i < n; i++) {
        params[i].set = -1;
        if (texts[i])
            params[i].value = (struct value){.kind = VALUE_TEXT, .text = texts[i], .len = strlen(texts[i])};
    }
    text_add(&st.sql, sql);
    int result = s->engine->query(s, &st, ret, e);
    text_release(&st.sql);
    return result < 0 ? err_wrap(e, "reading the catalog") : 0;
}

/* NULL: SQL NULL. Valid as long as the rows. */
static const char *cell(const struct rows *r, size_t row, size_t column)
{
    const struct value *v = &r->cells[row * r->n_columns + column];
    return v->kind == VALUE_NULL ? NULL : v->text;
}

static const char *keep(struct arena *a, const char *text)
{
    return text ? arena_strdup(a, text) : NULL;
}

static bool is_true(const char *text)
{
    return text && text[0] == 't';
}

/* --- columns ------------------------------------------------------------------------------------- */

/* A domain stands for the type below it, at any depth. Types outside pg_catalog are written with their
 * schema; "char" and name as text, since a cast to them would cut a longer value. */
static const char columns_sql[] =
    "WITH RECURSIVE below (declared, oid, depth) AS ("
    "    SELECT DISTINCT atttypid, atttypid, 0 FROM pg_catalog.pg_attribute WHERE attrelid = $1::oid"
    "  UNION ALL"
    "    SELECT below.declared, t.typbasetype, below.depth + 1"
    "    FROM below JOIN pg_catalog.pg_type t ON t.oid = below.oid WHERE t.typtype = 'd'"
    "), base AS ("
    "    SELECT DISTINCT ON (declared) declared, oid FROM below ORDER BY declared, depth DESC"
    ") "
    "SELECT a.attname,"
    "       CASE WHEN n.nspname <> 'pg_catalog'"
    "            THEN pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(t.typname)"
    "            WHEN t.typname IN ('char', 'name') THEN 'text'"
    "            ELSE pg_catalog.format_type(t.oid, -1) END,"
    "       CASE WHEN t.typtype = 'e' THEN 'enum'"
    "            WHEN n.nspname = 'pg_catalog' OR t.typname = 'citext' THEN t.typname"
    "            ELSE '' END,"
    "       a.attnotnull,"
    "       c.collname,"
    "       t.oid,"
    "       a.attgenerated <> '' "
    "FROM pg_catalog.pg_attribute a "
    "JOIN base ON base.declared = a.atttypid "
    "JOIN pg_catalog.pg_type t ON t.oid = base.oid "
    "JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace "
    "LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation AND c.collname <> 'default' "
    "WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped "
    "ORDER BY a.attnum";

static enum type_class class_of(const char *type)
{
    static const struct {
        const char *name;
        enum type_class class;
    } classes[] = {
        {"bool", TYPE_BOOLEAN},        {"int2", TYPE_INTEGER}, {"int4", TYPE_INTEGER},
        {"int8", TYPE_INTEGER},        {"float4", TYPE_REAL},  {"float8", TYPE_REAL},
        {"numeric", TYPE_NUMERIC},     {"text", TYPE_TEXT},    {"varchar", TYPE_TEXT},
        {"bpchar", TYPE_TEXT},         {"char", TYPE_TEXT},    {"name", TYPE_TEXT},
        {"citext", TYPE_TEXT},         {"enum", TYPE_ENUM},    {"timestamptz", TYPE_TIMESTAMPTZ},
        {"timestamp", TYPE_TIMESTAMP}, {"date", TYPE_DATE},    {"bytea", TYPE_BLOB},
    };
    for (size_t i = 0; i < COUNT_OF(classes); i++)
        if (strcmp(classes[i].name, type) == 0)
            return classes[i].class;
    return TYPE_OTHER;
}

static int read_labels(struct sql_store *s, struct arena *a, const char *type_oid, struct column *c,
                       struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (ask(s, "SELECT enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = $1::oid ORDER BY enumsortorder",
            &type_oid, 1, &r, e) < 0)
        return -1;
    c->labels = arena_alloc(a, r.n_rows * sizeof(*c->labels));
    c->n_labels = r.n_rows;
    for (size_t i = 0; i < r.n_rows; i++)
        c->labels[i] = keep(a, cell(&r, i, 0));
    return 0;
}

static int read_columns(struct sql_store *s, struct arena *a, const char *oid, struct table *t, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (ask(s, columns_sql, &oid, 1, &r, e) < 0)
        return -1;
    t->columns = arena_alloc(a, r.n_rows * sizeof(*t->columns));
    t->n_columns = r.n_rows;
    for (size_t i = 0; i < r.n_rows; i++) {
        struct column *c = &t->columns[i];
        c->name = keep(a, cell(&r, i, 0));
        c->sql_type = keep(a, cell(&r, i, 1));
        c->type = class_of(cell(&r, i, 2));
        c->not_null = is_true(cell(&r, i, 3));
        c->collation = keep(a, cell(&r, i, 4));
        c->generated = is_true(cell(&r, i, 6));
        if (c->type == TYPE_ENUM && read_labels(s, a, cell(&r, i, 5), c, e) < 0)
            return -1;
    }
    return 0;
}

/* --- indexes and the key ------------------------------------------------------------------------- */

/* One row per index and key column, the best key first. Only B-trees: others serve no order. A key tells
 * every two rows apart at any moment: its columns are not NULL, it covers all rows, and it is not checked
 * only at COMMIT. Arrays are left out, since key sets are bound as arrays. Rows are found again by comparing
 * in the column's own collation: one that an index has in another counts as an expression, as what is unique
 * there may be equal here. */
static const char indexes_sql[] =
    "SELECT i.indexrelid, c.relname, i.indisunique, i.indisprimary, i.indpred IS NOT NULL,"
    "       pg_catalog.pg_get_expr(i.indpred, i.indrelid),"
    "       CASE WHEN a.attcollation = i.indcollation[part.place::int - 1] THEN a.attname END, key.usable "
    "FROM pg_catalog.pg_index i "
    "JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid "
    "JOIN pg_catalog.pg_am am ON am.oid = c.relam AND am.amname = 'btree' "
    "CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS part (attnum, place) "
    "LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = part.attnum "
    "CROSS JOIN LATERAL ("
    "    SELECT i.indisunique AND i.indpred IS NULL AND (i.indimmediate OR i.indisprimary)"
    "           AND count(k.attnum) = i.indnkeyatts"
    "           AND bool_and(k.attnotnull AND kt.typcategory <> 'A'"
    "                        AND k.attcollation = i.indcollation[p.place::int - 1]) AS usable"
    "    FROM pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS p (attnum, place)"
    "    LEFT JOIN pg_catalog.pg_attribute k"
    "           ON k.attrelid = i.indrelid AND k.attnum = p.attnum AND k.attnum > 0"
    "    LEFT JOIN pg_catalog.pg_type kt ON kt.oid = k.atttypid"
    "    WHERE p.place <= i.indnkeyatts"
    ") AS key "
    "WHERE i.indrelid = $1::oid AND i.indisvalid AND i.indisready AND i.indislive"
    "  AND part.place <= i.indnkeyatts "
    "ORDER BY i.indisprimary DESC, i.indnkeyatts, c.relname, i.indexrelid, part.place";

static void push_index_column(struct arena *a, const struct table *t, struct index *x, const char *name)
{
    x->columns = arena_push(a, x->columns, x->n_columns, sizeof(*x->columns));
    x->columns[x->n_columns++] = name ? column_named(t, name) : NULL;
}

static struct index *push_index(struct arena *a, struct table *t, const struct rows *r, size_t row)
{
    t->indexes = arena_push(a, t->indexes, t->n_indexes, sizeof(*t->indexes));
    struct index *x = &t->indexes[t->n_indexes++];
    *x = (struct index){
        .name = keep(a, cell(r, row, 1)),
        .unique = is_true(cell(r, row, 2)),
        .primary = is_true(cell(r, row, 3)),
        .partial = is_true(cell(r, row, 4)),
        .predicate = keep(a, cell(r, row, 5)),
    };
    return x;
}

static int read_indexes(struct sql_store *s, struct arena *a, const char *oid, struct table *t, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (ask(s, indexes_sql, &oid, 1, &r, e) < 0)
        return -1;
    size_t key = SIZE_MAX;
    for (size_t i = 0; i < r.n_rows; i++) {
        bool first = i == 0 || strcmp(cell(&r, i, 0), cell(&r, i - 1, 0)) != 0;
        if (first)
            push_index(a, t, &r, i);
        if (first && key == SIZE_MAX && is_true(cell(&r, i, 7)))
            key = t->n_indexes - 1;
        push_index_column(a, t, &t->indexes[t->n_indexes - 1], cell(&r, i, 6));
    }
    if (key != SIZE_MAX) {
        t->key = t->indexes[key].columns;
        t->n_key = t->indexes[key].n_columns;
    }
    return 0;
}

/* --- foreign keys -------------------------------------------------------------------------------- */

/* Partitions on either side have copies of a foreign key; the one it was declared as is told, once. */
static const char fkeys_sql[] =
    "WITH RECURSIVE family (oid) AS ("
    "    SELECT $1::oid"
    "  UNION"
    "    SELECT i.inhrelid FROM family"
    "    JOIN pg_catalog.pg_inherits i ON i.inhparent = family.oid"
    "    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition"
    "), pointing (oid, parent) AS ("
    "    SELECT k.oid, k.conparentid FROM pg_catalog.pg_constraint k"
    "    JOIN family ON family.oid = k.confrelid WHERE k.contype = 'f'"
    "  UNION"
    "    SELECT k.oid, k.conparentid FROM pointing"
    "    JOIN pg_catalog.pg_constraint k ON k.oid = pointing.parent"
    ") "
    "SELECT k.oid, k.conname, n.nspname, c.relname, k.confdeltype, child.attname, parent.attname "
    "FROM pointing "
    "JOIN pg_catalog.pg_constraint k ON k.oid = pointing.oid "
    "JOIN pg_catalog.pg_class c ON c.oid = k.conrelid "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS pair (child, parent, "
    "place) "
    "JOIN pg_catalog.pg_attribute child ON child.attrelid = k.conrelid AND child.attnum = pair.child "
    "JOIN pg_catalog.pg_attribute parent ON parent.attrelid = k.confrelid AND parent.attnum = pair.parent "
    "WHERE pointing.parent = 0 "
    "ORDER BY n.nspname, c.relname, k.conname, k.oid, pair.place";

static enum on_delete action_of(const char *confdeltype)
{
    switch (confdeltype[0]) {
    case 'r':
        return ON_DELETE_RESTRICT;
    case 'c':
        return ON_DELETE_CASCADE;
    case 'n':
        return ON_DELETE_SET_NULL;
    case 'd':
        return ON_DELETE_SET_DEFAULT;
    default:
        return ON_DELETE_NO_ACTION;
    }
}

static void push_fkey(struct arena *a, struct table *t, const struct rows *r, size_t row)
{
    t->fkeys_in = arena_push(a, t->fkeys_in, t->n_fkeys_in, sizeof(*t->fkeys_in));
    t->fkeys_in[t->n_fkeys_in++] = (struct fkey){
        .name = keep(a, cell(r, row, 1)),
        .child_schema = keep(a, cell(r, row, 2)),
        .child_table = keep(a, cell(r, row, 3)),
        .action = action_of(cell(r, row, 4)),
    };
}

static int read_fkeys(struct sql_store *s, struct arena *a, const char *oid, struct table *t, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (ask(s, fkeys_sql, &oid, 1, &r, e) < 0)
        return -1;
    for (size_t i = 0; i < r.n_rows; i++) {
        if (i == 0 || strcmp(cell(&r, i, 0), cell(&r, i - 1, 0)) != 0)
            push_fkey(a, t, &r, i);
        struct fkey *k = &t->fkeys_in[t->n_fkeys_in - 1];
        k->child_columns = arena_push(a, k->child_columns, k->n, sizeof(*k->child_columns));
        k->parent_columns = arena_push(a, k->parent_columns, k->n, sizeof(*k->parent_columns));
        k->child_columns[k->n] = keep(a, cell(&r, i, 5));
        k->parent_columns[k->n++] = keep(a, cell(&r, i, 6));
    }
    return 0;
}

/* --- tables -------------------------------------------------------------------------------------- */

/* A bare name that matches nothing exactly is tried in lower case, as PostgreSQL itself folds it. Parameters:
 * schema (NULL: the search path), whether it may be folded, table, whether it may be folded. */
static const char find_sql[] =
    "SELECT c.oid "
    "FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS path (schema, place)"
    "       ON path.schema = n.nspname "
    "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')"
    "  AND (c.relname = $3::text"
    "       OR ($4::boolean AND c.relname = pg_catalog.lower($3::text COLLATE \"C\")))"
    "  AND CASE WHEN $1::text IS NULL THEN path.place IS NOT NULL"
    "           ELSE n.nspname = $1::text"
    "                OR ($2::boolean AND n.nspname = pg_catalog.lower($1::text COLLATE \"C\")) END "
    "ORDER BY coalesce(n.nspname = $1::text, true) DESC, c.relname = $3::text DESC, path.place "
    "LIMIT 1";

/* A SELECT that locks rows needs the right to update some column; a trigger before the event may say no, one
 * after it may undo it, and a rule may do something else. tgtype: 8 delete, 16 update; ev_type: 2 update,
 * 4 delete. */
static const char table_sql[] =
    "WITH RECURSIVE family (oid) AS ("
    "    SELECT $1::oid"
    "  UNION"
    "    SELECT i.inhrelid FROM family"
    "    JOIN pg_catalog.pg_inherits i ON i.inhparent = family.oid"
    "    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition"
    "), hook (tgtype) AS ("
    "    SELECT tgtype FROM pg_catalog.pg_trigger JOIN family ON family.oid = tgrelid"
    "    WHERE tgenabled <> 'D' AND NOT tgisinternal"
    "  UNION ALL"
    "    SELECT CASE ev_type WHEN '4' THEN 8 ELSE 16 END FROM pg_catalog.pg_rewrite"
    "    JOIN family ON family.oid = ev_class WHERE ev_enabled <> 'D' AND ev_type IN ('2', '4')"
    ") "
    "SELECT n.nspname, c.relname, c.relkind,"
    "       c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = c.oid),"
    "       EXISTS (SELECT FROM hook WHERE tgtype & 8 <> 0),"
    "       EXISTS (SELECT FROM hook WHERE tgtype & 16 <> 0),"
    "       pg_catalog.row_security_active(c.oid),"
    "       enter.may AND pg_catalog.has_table_privilege(c.oid, 'SELECT'),"
    "       enter.may AND pg_catalog.has_table_privilege(c.oid, 'DELETE'),"
    "       enter.may AND pg_catalog.has_any_column_privilege(c.oid, 'UPDATE'),"
    "       pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),"
    "       pg_catalog.pg_table_is_visible(c.oid) "
    "FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "CROSS JOIN LATERAL (SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') AS may) AS enter "
    "WHERE c.oid = $1::oid";

static enum table_kind kind_of(const char *relkind)
{
    switch (relkind[0]) {
    case 'p':
        return KIND_PARTITIONED;
    case 'v':
    case 'm':
        return KIND_VIEW;
    case 'f':
        return KIND_FOREIGN;
    default:
        return KIND_TABLE;
    }
}

static void fill_table(struct arena *a, const struct rows *r, struct table *t)
{
    *t = (struct table){
        .schema = keep(a, cell(r, 0, 0)),
        .name = keep(a, cell(r, 0, 1)),
        .kind = kind_of(cell(r, 0, 2)),
        .inheritors = is_true(cell(r, 0, 3)),
        .delete_hooks = is_true(cell(r, 0, 4)),
        .update_hooks = is_true(cell(r, 0, 5)),
        .rows_hidden = is_true(cell(r, 0, 6)),
        .may_select = is_true(cell(r, 0, 7)),
        .may_delete = is_true(cell(r, 0, 8)),
        .may_update = is_true(cell(r, 0, 9)),
        .print = keep(a, cell(r, 0, 10)),
        .bare = is_true(cell(r, 0, 11)),
    };
}

/* n_rows 0: no such table. */
static int find_table(struct sql_store *s, const struct table_name *name, struct rows *ret, struct err *e)
{
    const char *texts[] = {name->schema.text, name->schema.quoted ? "f" : "t", name->table.text,
                           name->table.quoted ? "f" : "t"};
    return ask(s, find_sql, texts, COUNT_OF(texts), ret, e);
}

static bool is_read_already(const struct facts *f, const struct table *t)
{
    for (size_t i = 0; i < f->n_tables; i++)
        if (strcmp(f->tables[i]->schema, t->schema) == 0 && strcmp(f->tables[i]->name, t->name) == 0)
            return true;
    return false;
}

static int read_table(struct sql_store *s, const struct table_name *name, struct facts *f, struct err *e)
{
    AUTO(rows_release) struct rows found = {0}, r = {0};
    if (find_table(s, name, &found, e) < 0)
        return -1;
    if (found.n_rows == 0)
        return 0;
    const char *oid = cell(&found, 0, 0);
    if (ask(s, table_sql, &oid, 1, &r, e) < 0)
        return -1;
    if (r.n_rows == 0) /* dropped meanwhile */
        return 0;
    struct table *t = arena_alloc(f->arena, sizeof(*t));
    fill_table(f->arena, &r, t);
    if (is_read_already(f, t))
        return 0;
    if (read_columns(s, f->arena, oid, t, e) < 0 || read_indexes(s, f->arena, oid, t, e) < 0 ||
        read_fkeys(s, f->arena, oid, t, e) < 0)
        return -1;
    f->tables = arena_push(f->arena, f->tables, f->n_tables, sizeof(*f->tables));
    f->tables[f->n_tables++] = t;
    return 0;
}

int postgres_read_facts(struct sql_store *s, const struct table_names *names, struct facts **ret,
                        struct err *e)
{
    AUTO(facts_free_p) struct facts *f = facts_new();
    AUTO(rows_release) struct rows r = {0};
    if (ask(s, "SELECT pg_catalog.current_schema()", NULL, 0, &r, e) < 0)
        return -1;
    f->folds_lower = true;
    f->create_index = "CREATE INDEX CONCURRENTLY";
    f->default_schema = keep(f->arena, cell(&r, 0, 0));
    for (size_t i = 0; i < names->n; i++)
        if (read_table(s, names->list[i], f, e) < 0)
            return -1;
    *ret = f;
    f = NULL;
    return 0;
}

/* As it would be written in a contract: in quotes only where a bare name means another. */
static struct name exact_name(struct arena *a, const char *text)
{
    bool bare = text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
    return (struct name){.text = keep(a, text), .quoted = !bare};
}

int postgres_read_tables(struct sql_store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                         struct err *e)
{
    static const char sql[] =
        "SELECT n.nspname, c.relname "
        "FROM pg_catalog.pg_class c "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'"
        "  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'"
        "  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d"
        "                  WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid"
        "                    AND d.deptype = 'e') "
        "ORDER BY n.nspname, c.relname";
    AUTO(rows_release) struct rows r = {0};
    if (ask(s, sql, NULL, 0, &r, e) < 0)
        return -1;
    struct table_name *list = arena_alloc(a, r.n_rows * sizeof(*list));
    for (size_t i = 0; i < r.n_rows; i++) {
        list[i].schema = exact_name(a, cell(&r, i, 0));
        list[i].table = exact_name(a, cell(&r, i, 1));
    }
    *ret = list;
    *ret_n = r.n_rows;
    return 0;
}
