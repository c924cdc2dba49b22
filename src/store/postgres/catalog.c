/* catalog: PostgreSQL's catalog -> facts. Names are resolved once, here; all that follows is asked
 * by oid, for all tables at once ($1): answers come table by table, the table's oid first. */
#include "store/postgres/store.h"

#include <stdlib.h>
#include <string.h>

/* Runs a query with text parameters. ret is {0} or an earlier answer. */
static int ask(struct sql_store *s, const char *sql, const char *const *texts, size_t n, struct rows *ret,
               struct err *e)
{
    enum { MOST = 5 };
    struct param params[MOST] = {0};
    struct stmt st = {.params = params, .n_params = n, .of_catalog = true};
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

/* Of the rows from `from` on: does this one begin another of what the column tells apart? */
static bool begins(const struct rows *r, size_t from, size_t row, size_t column)
{
    return row == from || strcmp(cell(r, row, column), cell(r, row - 1, column)) != 0;
}

/* --- columns ------------------------------------------------------------------------------------- */

/* One row per column, or per label of a column that is an enum. A domain stands for the type below it, at any
 * depth. Types outside pg_catalog are written with their schema; "char" and name as text, since a cast to
 * them would cut a longer value. What compares a type is the operator of its default class: by another one,
 * that of text for citext, case would count, and no index would serve. */
static const char columns_sql[] =
    "WITH RECURSIVE below (declared, oid, kind, base, modifier) AS ("
    "    SELECT oid, oid, typtype, typbasetype, typtypmod FROM pg_catalog.pg_type"
    "    WHERE oid IN (SELECT atttypid FROM pg_catalog.pg_attribute WHERE attrelid = ANY ($1::oid[]))"
    "  UNION ALL"
    "    SELECT below.declared, t.oid, t.typtype, t.typbasetype, GREATEST(below.modifier, t.typtypmod) FROM "
    "below"
    "    JOIN pg_catalog.pg_type t ON t.oid = below.base"
    "    WHERE below.kind = 'd'"
    ") "
    "SELECT a.attrelid,"
    "       a.attname,"
    "       CASE WHEN n.nspname <> 'pg_catalog'"
    "            THEN pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(t.typname)"
    "            WHEN t.typname IN ('char', 'name') THEN 'text'"
    "            ELSE pg_catalog.format_type(t.oid, -1) END,"
    "       CASE WHEN t.typtype = 'e' THEN 'enum'"
    "            WHEN n.nspname = 'pg_catalog' OR t.typname = 'citext' THEN t.typname"
    "            ELSE '' END,"
    "       a.attnotnull,"
    "       c.collname,"
    "       label.enumlabel,"
    "       a.attgenerated <> '',"
    "       kind.typcategory IN ('U', 'G') AND NOT EXISTS (SELECT FROM pg_catalog.pg_opclass o"
    "           JOIN pg_catalog.pg_am m ON m.oid = o.opcmethod AND m.amname = 'btree'"
    "           WHERE o.opcintype = kind.oid AND o.opcdefault),"
    "       (SELECT pg_catalog.quote_ident(opn.nspname) FROM pg_catalog.pg_opclass o"
    "           JOIN pg_catalog.pg_am m ON m.oid = o.opcmethod AND m.amname IN ('btree', 'hash')"
    "           JOIN pg_catalog.pg_amop eq ON eq.amopfamily = o.opcfamily"
    "                AND eq.amopstrategy = CASE m.amname WHEN 'btree' THEN 3 ELSE 1 END"
    "                AND eq.amoplefttype = o.opcintype AND eq.amoprighttype = o.opcintype"
    "           JOIN pg_catalog.pg_operator op ON op.oid = eq.amopopr AND op.oprname = '='"
    "           JOIN pg_catalog.pg_namespace opn ON opn.oid = op.oprnamespace AND opn.nspname <> 'pg_catalog'"
    "           WHERE o.opcintype = t.oid AND o.opcdefault ORDER BY m.amname LIMIT 1),"
    "       (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d"
    "        WHERE a.attgenerated <> '' AND d.adrelid = a.attrelid AND d.adnum = a.attnum),"
    "       CASE t.typname WHEN 'char' THEN 1 WHEN 'name' THEN 63"
    "            WHEN 'varchar' THEN GREATEST(a.atttypmod, below.modifier, 4) - 4"
    "            WHEN 'bpchar' THEN GREATEST(a.atttypmod, below.modifier, 4) - 4 ELSE 0 END,"
    "       EXISTS (SELECT FROM pg_catalog.pg_partitioned_table p"
    "           WHERE p.partrelid = a.attrelid AND p.partstrat = 'r' AND a.attnum = ANY (p.partattrs)),"
    "       kind.typname = 'citext' OR NOT COALESCE(c.collisdeterministic, true),"
    "       t.typname = 'bpchar' "
    "FROM pg_catalog.pg_attribute a "
    "JOIN below ON below.declared = a.atttypid AND below.kind <> 'd' "
    "JOIN pg_catalog.pg_type t ON t.oid = below.oid "
    "JOIN pg_catalog.pg_type kind ON kind.oid = CASE t.typcategory WHEN 'A' THEN t.typelem ELSE t.oid END "
    "JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace "
    "LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation AND c.collname <> 'default' "
    "LEFT JOIN pg_catalog.pg_enum label ON label.enumtypid = t.oid "
    "WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped "
    "ORDER BY a.attrelid, a.attnum, label.enumsortorder";

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

static int bytes_of(const char *type)
{
    return strcmp(type, "int2") == 0 ? 2 : strcmp(type, "int4") == 0 ? 4 : 0;
}

static void push_column(struct arena *a, struct table *t, const struct rows *r, size_t row)
{
    t->columns = arena_push(a, t->columns, t->n_columns, sizeof(*t->columns));
    t->columns[t->n_columns++] = (struct column){
        .name = keep(a, cell(r, row, 1)),
        .sql_type = keep(a, cell(r, row, 2)),
        .type = class_of(cell(r, row, 3)),
        .bytes = bytes_of(cell(r, row, 3)),
        .not_null = is_true(cell(r, row, 4)),
        .collation = keep(a, cell(r, row, 5)),
        .generated = is_true(cell(r, row, 7)),
        .unordered = is_true(cell(r, row, 8)),
        .operators = keep(a, cell(r, row, 9)),
        .generated_as = keep(a, cell(r, row, 10)),
        .longest = strtoll(cell(r, row, 11), NULL, 10),
        .parts = is_true(cell(r, row, 12)),
        .folds = is_true(cell(r, row, 13)),
        .trims = is_true(cell(r, row, 14)),
    };
}

static void push_label(struct arena *a, struct column *c, const char *label)
{
    c->labels = arena_push(a, c->labels, c->n_labels, sizeof(*c->labels));
    c->labels[c->n_labels++] = keep(a, label);
}

static void fill_columns(struct arena *a, struct table *t, const struct rows *r, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (begins(r, from, i, 1))
            push_column(a, t, r, i);
        if (cell(r, i, 6))
            push_label(a, &t->columns[t->n_columns - 1], cell(r, i, 6));
    }
}

/* --- indexes and the key ------------------------------------------------------------------------- */

/* One row per index and key column, the best key first. Only B-trees: others serve no order. A key tells
 * every two rows apart at any moment: its columns are not NULL, it covers all rows, and it is not checked
 * only at COMMIT. Arrays are left out, since key sets are bound as arrays. Rows are found again by comparing
 * in the column's own collation: one that an index has in another counts as an expression, as what is unique
 * there may be equal here. Who has seen rows that were changed before an index was made may not use it, nor
 * may anybody while such are there. */
static const char indexes_sql[] =
    "SELECT i.indrelid, i.indexrelid, c.relname, i.indisunique, i.indisprimary, i.indpred IS NOT NULL,"
    "       pg_catalog.pg_get_expr(i.indpred, i.indrelid),"
    "       CASE WHEN a.attcollation = i.indcollation[part.place::int - 1] THEN a.attname END, key.usable,"
    "       i.indcheckxmin AND pg_catalog.age(i.xmin) <= pg_catalog.age("
    "           pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::xid) "
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
    "WHERE i.indrelid = ANY ($1::oid[]) AND i.indisvalid AND i.indisready AND i.indislive"
    "  AND part.place <= i.indnkeyatts "
    "ORDER BY i.indrelid, i.indisprimary DESC, i.indnkeyatts, c.relname, i.indexrelid, part.place";

static void push_index_column(struct arena *a, const struct table *t, struct index *x, const char *name)
{
    x->columns = arena_push(a, x->columns, x->n_columns, sizeof(*x->columns));
    x->columns[x->n_columns++] = name ? column_named(t, name) : NULL;
}

static void push_index(struct arena *a, struct table *t, const struct rows *r, size_t row)
{
    t->indexes = arena_push(a, t->indexes, t->n_indexes, sizeof(*t->indexes));
    t->indexes[t->n_indexes++] = (struct index){
        .name = keep(a, cell(r, row, 2)),
        .unique = is_true(cell(r, row, 3)),
        .primary = is_true(cell(r, row, 4)),
        .partial = is_true(cell(r, row, 5)),
        .predicate = keep(a, cell(r, row, 6)),
        .too_new = is_true(cell(r, row, 9)),
    };
}

static void fill_indexes(struct arena *a, struct table *t, const struct rows *r, size_t from, size_t to)
{
    size_t key = SIZE_MAX;
    for (size_t i = from; i < to; i++) {
        bool first = begins(r, from, i, 1);
        if (first)
            push_index(a, t, r, i);
        if (first && key == SIZE_MAX && is_true(cell(r, i, 8)))
            key = t->n_indexes - 1;
        push_index_column(a, t, &t->indexes[t->n_indexes - 1], cell(r, i, 7));
    }
    if (key != SIZE_MAX) {
        t->key = t->indexes[key].columns;
        t->n_key = t->indexes[key].n_columns;
    }
}

/* --- CHECK constraints ---------------------------------------------------------------------------- */

/* One that is NOT VALID says nothing of older rows. */
static const char checks_sql[] = "SELECT k.conrelid, pg_catalog.pg_get_expr(k.conbin, k.conrelid) "
                                 "FROM pg_catalog.pg_constraint k "
                                 "WHERE k.conrelid = ANY ($1::oid[]) AND k.contype = 'c' AND k.convalidated "
                                 "ORDER BY k.conrelid, k.conname";

static void fill_checks(struct arena *a, struct table *t, const struct rows *r, size_t from, size_t to)
{
    t->checks = arena_alloc(a, (to - from) * sizeof(*t->checks));
    for (size_t i = from; i < to; i++)
        if (cell(r, i, 1))
            t->checks[t->n_checks++] = keep(a, cell(r, i, 1));
}

/* --- foreign keys -------------------------------------------------------------------------------- */

/* Partitions on either side have copies of a foreign key; the one it was declared as is told, once. */
static const char fkeys_sql[] =
    "WITH RECURSIVE family (top, oid, kind) AS ("
    "    SELECT oid, oid, relkind FROM pg_catalog.pg_class WHERE oid = ANY ($1::oid[])"
    "  UNION"
    "    SELECT family.top, c.oid, c.relkind FROM family"
    "    JOIN pg_catalog.pg_inherits i ON i.inhparent = family.oid"
    "    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition"
    "    WHERE family.kind = 'p'"
    "), pointing (top, oid, parent) AS ("
    "    SELECT family.top, k.oid, k.conparentid FROM pg_catalog.pg_constraint k"
    "    JOIN family ON family.oid = k.confrelid WHERE k.contype = 'f'"
    "  UNION"
    "    SELECT pointing.top, k.oid, k.conparentid FROM pointing"
    "    JOIN pg_catalog.pg_constraint k ON k.oid = pointing.parent"
    "    WHERE pointing.parent <> 0"
    ") "
    "SELECT pointing.top, k.oid, k.conname, n.nspname, c.relname, k.confdeltype,"
    "       (SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = k.conrelid AND attnum = "
    "pair.child),"
    "       (SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = k.confrelid AND attnum = "
    "pair.parent) "
    "FROM pointing "
    "JOIN pg_catalog.pg_constraint k ON k.oid = pointing.oid "
    "JOIN pg_catalog.pg_class c ON c.oid = k.conrelid "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS pair (child, parent, place) "
    "WHERE pointing.parent = 0 "
    "ORDER BY pointing.top, n.nspname, c.relname, k.conname, k.oid, pair.place";

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
        .name = keep(a, cell(r, row, 2)),
        .child_schema = keep(a, cell(r, row, 3)),
        .child_table = keep(a, cell(r, row, 4)),
        .action = action_of(cell(r, row, 5)),
    };
}

static void fill_fkeys(struct arena *a, struct table *t, const struct rows *r, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (begins(r, from, i, 1))
            push_fkey(a, t, r, i);
        struct fkey *k = &t->fkeys_in[t->n_fkeys_in - 1];
        k->child_columns = arena_push(a, k->child_columns, k->n, sizeof(*k->child_columns));
        k->parent_columns = arena_push(a, k->parent_columns, k->n, sizeof(*k->parent_columns));
        k->child_columns[k->n] = keep(a, cell(r, i, 6));
        k->parent_columns[k->n++] = keep(a, cell(r, i, 7));
    }
}

/* --- tables -------------------------------------------------------------------------------------- */

/* A SELECT that locks rows needs the right to update some column; a trigger before the event may say no, one
 * after it may undo it, and a rule may do something else. tgtype: 8 delete, 16 update; ev_type: 2 update,
 * 4 delete. A function that sets its own search path looks nothing up on this user's. A bare name is looked up
 * without pg_table_is_visible: a temporary table that another client of a pooled session left would hide the
 * real one. */
static const char tables_sql[] =
    "WITH RECURSIVE family (top, oid, kind) AS ("
    "    SELECT oid, oid, relkind FROM pg_catalog.pg_class WHERE oid = ANY ($1::oid[])"
    "  UNION"
    "    SELECT family.top, c.oid, c.relkind FROM family"
    "    JOIN pg_catalog.pg_inherits i ON i.inhparent = family.oid"
    "    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition"
    "    WHERE family.kind = 'p'"
    "), hook (top, tgtype, follows) AS ("
    "    SELECT family.top, tgtype, CASE WHEN l.lanname NOT IN ('internal', 'c') AND NOT EXISTS ("
    "               SELECT FROM pg_catalog.unnest(f.proconfig) AS own WHERE own LIKE 'search_path=%')"
    "           THEN tgname END"
    "    FROM pg_catalog.pg_trigger JOIN family ON family.oid = tgrelid"
    "    JOIN pg_catalog.pg_proc f ON f.oid = tgfoid JOIN pg_catalog.pg_language l ON l.oid = f.prolang"
    "    WHERE tgenabled <> 'D' AND NOT tgisinternal"
    "  UNION ALL"
    "    SELECT family.top, CASE ev_type WHEN '4' THEN 8 ELSE 16 END, NULL FROM pg_catalog.pg_rewrite"
    "    JOIN family ON family.oid = ev_class WHERE ev_enabled <> 'D' AND ev_type IN ('2', '4')"
    ") "
    "SELECT c.oid, n.nspname, c.relname, c.relkind,"
    "       c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = c.oid),"
    "       EXISTS (SELECT FROM hook WHERE top = c.oid AND tgtype & 8 <> 0),"
    "       EXISTS (SELECT FROM hook WHERE top = c.oid AND tgtype & 16 <> 0),"
    "       pg_catalog.row_security_active(c.oid),"
    "       enter.may AND pg_catalog.has_table_privilege(c.oid, 'SELECT'),"
    "       enter.may AND pg_catalog.has_table_privilege(c.oid, 'DELETE'),"
    "       enter.may AND pg_catalog.has_any_column_privilege(c.oid, 'UPDATE'),"
    "       pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),"
    "       c.oid = (SELECT v.oid FROM pg_catalog.pg_class v"
    "                JOIN pg_catalog.pg_namespace vn ON vn.oid = v.relnamespace"
    "                JOIN pg_catalog.unnest($2::name[]) WITH ORDINALITY"
    "                     AS path (schema, place) ON path.schema = vn.nspname"
    "                WHERE v.relname = c.relname ORDER BY path.place LIMIT 1),"
    "       (SELECT pg_catalog.quote_ident(un.nspname) || '.' || pg_catalog.quote_ident(up.relname)"
    "        FROM pg_catalog.pg_inherits i"
    "        JOIN pg_catalog.pg_class up ON up.oid = i.inhparent"
    "        JOIN pg_catalog.pg_namespace un ON un.oid = up.relnamespace"
    "        WHERE i.inhrelid = c.oid AND i.inhseqno = 1),"
    "       enter.may AND pg_catalog.has_table_privilege(c.oid, 'INSERT'),"
    "       c.relkind = 'r' AND c.relam = 2 AND pg_catalog.current_setting('server_version_num')::int >= "
    "140000,"
    "       EXISTS (SELECT FROM family JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = family.oid"
    "               WHERE family.top = c.oid AND p.partstrat = 'r'),"
    "       pg_catalog.pg_get_userbyid(c.relowner), pg_catalog.pg_has_role(c.relowner, 'USAGE'),"
    "       (SELECT pg_catalog.min(follows) FROM hook WHERE top = c.oid AND tgtype & 8 <> 0),"
    "       (SELECT pg_catalog.min(follows) FROM hook WHERE top = c.oid AND tgtype & 16 <> 0) "
    "FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "CROSS JOIN LATERAL (SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') AS may) AS enter "
    "WHERE c.oid = ANY ($1::oid[]) "
    "ORDER BY pg_catalog.array_position($1::oid[], c.oid)";

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

/* Finds rows fast from version 14 on. Those of partitions and inheritors each begin with the first block. */
const struct column postgres_place = {
    .name = "ctid", .sql_type = "tid", .type = TYPE_OTHER, .not_null = true};

static void push_table(struct facts *f, const struct rows *r, size_t row)
{
    struct table *t = arena_alloc(f->arena, sizeof(*t));
    *t = (struct table){
        .schema = keep(f->arena, cell(r, row, 1)),
        .name = keep(f->arena, cell(r, row, 2)),
        .kind = kind_of(cell(r, row, 3)),
        .inheritors = is_true(cell(r, row, 4)),
        .delete_hooks = is_true(cell(r, row, 5)),
        .update_hooks = is_true(cell(r, row, 6)),
        .rows_hidden = is_true(cell(r, row, 7)),
        .may_select = is_true(cell(r, row, 8)),
        .may_delete = is_true(cell(r, row, 9)),
        .may_update = is_true(cell(r, row, 10)),
        .print = keep(f->arena, cell(r, row, 11)),
        .bare = is_true(cell(r, row, 12)),
        .part_of = keep(f->arena, cell(r, row, 13)),
        .may_insert = is_true(cell(r, row, 14)),
        .place = is_true(cell(r, row, 15)) && !is_true(cell(r, row, 4)) ? &postgres_place : NULL,
        .ranges = is_true(cell(r, row, 16)),
        .owner = keep(f->arena, cell(r, row, 17)),
        .owned = is_true(cell(r, row, 18)),
        .delete_trigger = keep(f->arena, cell(r, row, 19)),
        .update_trigger = keep(f->arena, cell(r, row, 20)),
    };
    f->tables = arena_push(f->arena, f->tables, f->n_tables, sizeof(*f->tables));
    f->tables[f->n_tables++] = t;
}

/* --- the search path ------------------------------------------------------------------------------ */

/* The schemas that search_path names, and who may create in each besides those who are trusted: this user,
 * roles that it is a member of, those that may act as it, superusers, whoever owns the database. A superuser
 * counts as a member of every role, so memberships are followed here. Of a schema that is not there, who may
 * create it. $1: the oids of tables, $2: what search_path says. */
static const char path_sql[] =
    "WITH RECURSIVE mine (oid) AS ("
    "    SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user"
    "  UNION"
    "    SELECT m.roleid FROM pg_catalog.pg_auth_members m JOIN mine ON mine.oid = m.member"
    "), word (text, place) AS ("
    "    SELECT found[1], place FROM pg_catalog.regexp_matches($2::text,"
    "        '\"(?:[^\"]|\"\")*\"|[^,[:space:]\"]+', 'g') WITH ORDINALITY AS x (found, place)"
    "), named (name, place) AS ("
    "    SELECT CASE WHEN bare = '$user' THEN current_user::text ELSE bare END, min(place)"
    "    FROM (SELECT place, CASE WHEN text LIKE '\"%'"
    "                             THEN replace(substr(text, 2, length(text) - 2), '\"\"', '\"')"
    "                             ELSE lower(text) END AS bare FROM word) AS w"
    "    GROUP BY 1"
    "), schema (name, place, oid, owner, acl) AS ("
    "    SELECT named.name, named.place, n.oid, n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner))"
    "    FROM named JOIN pg_catalog.pg_namespace n ON n.nspname = named.name"
    "  UNION ALL"
    "    SELECT named.name, named.place, NULL, NULL, coalesce(d.datacl, acldefault('d', d.datdba))"
    "    FROM named JOIN pg_catalog.pg_database d ON d.datname = current_database()"
    "    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = named.name)"
    ") "
    "SELECT quote_ident(schema.name), schema.oid IS NOT NULL, other.who, other.owner, other.acts_as,"
    "       quote_ident(current_user) "
    "FROM schema LEFT JOIN LATERAL ("
    "    SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS who,"
    "           g.grantee = schema.owner AS owner,"
    "           (SELECT string_agg(DISTINCT o.rolname || chr(10), '') FROM pg_catalog.pg_class c"
    "            JOIN pg_catalog.pg_roles o ON o.oid = c.relowner"
    "            WHERE c.oid = ANY ($1::oid[]) AND pg_has_role(r.oid, o.oid, 'MEMBER')) AS acts_as"
    "    FROM (SELECT grantee FROM aclexplode(schema.acl) WHERE privilege_type = 'CREATE'"
    "          UNION SELECT schema.owner) AS g"
    "    LEFT JOIN pg_catalog.pg_roles r ON r.oid = g.grantee"
    "    CROSS JOIN (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user) AS me"
    "    CROSS JOIN (SELECT datdba FROM pg_catalog.pg_database WHERE datname = current_database()) AS here"
    "    WHERE g.grantee = 0 OR NOT (r.rolsuper OR r.rolname = 'pg_database_owner'"
    "          OR r.oid IN (SELECT oid FROM mine) OR pg_has_role(r.oid, me.oid, 'MEMBER')"
    "          OR pg_has_role(r.oid, here.datdba, 'MEMBER'))) AS other ON true "
    "WHERE schema.name !~ '^pg_' "
    "ORDER BY schema.place, other.who";

static int read_path(struct sql_store *s, const char *oids, const char *search_path, struct facts *f,
                     struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (ask(s, path_sql, (const char *[]){oids, search_path}, 2, &r, e) < 0)
        return -1;
    f->path = arena_alloc(f->arena, (r.n_rows + 1) * sizeof(*f->path));
    for (size_t i = 0; i < r.n_rows; i++) {
        f->path[f->n_path++] = (struct path_schema){
            .name = keep(f->arena, cell(&r, i, 0)),
            .there = is_true(cell(&r, i, 1)),
            .who = keep(f->arena, cell(&r, i, 2)),
            .owner = is_true(cell(&r, i, 3)),
            .acts_as = keep(f->arena, cell(&r, i, 4)),
        };
        f->role = keep(f->arena, cell(&r, i, 5));
    }
    return 0;
}

/* --- names --------------------------------------------------------------------------------------- */

/* The oids of the tables there are, each once, in the order of the names (NULL: none). A bare name that
 * matches nothing exactly is tried in lower case, as PostgreSQL itself folds it. Parameters, an item per
 * name: schema (NULL: the search path), whether it may be folded, table, whether it may be folded; and the
 * schemas of the search path. */
static const char find_sql[] =
    "SELECT pg_catalog.array_agg(found.oid ORDER BY found.place) "
    "FROM ("
    "    SELECT best.oid, pg_catalog.min(asked.place) AS place"
    "    FROM unnest($1::text[], $2::boolean[], $3::text[], $4::boolean[]) WITH ORDINALITY"
    "         AS asked (schema, schema_folds, name, name_folds, place)"
    "    CROSS JOIN LATERAL ("
    "        SELECT c.oid"
    "        FROM pg_catalog.pg_class c"
    "        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    "        LEFT JOIN pg_catalog.unnest($5::name[]) WITH ORDINALITY"
    "                  AS path (schema, place) ON path.schema = n.nspname"
    "        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')"
    "          AND (c.relname = asked.name"
    "               OR (asked.name_folds AND c.relname = pg_catalog.lower(asked.name COLLATE \"C\")))"
    "          AND CASE WHEN asked.schema IS NULL THEN path.place IS NOT NULL"
    "                   ELSE n.nspname = asked.schema"
    "                        OR (asked.schema_folds"
    "                            AND n.nspname = pg_catalog.lower(asked.schema COLLATE \"C\")) END"
    "        ORDER BY coalesce(n.nspname = asked.schema, true) DESC, c.relname = asked.name DESC, path.place"
    "        LIMIT 1"
    "    ) AS best"
    "    GROUP BY best.oid"
    ") AS found";

static int find_tables(struct sql_store *s, const struct table_names *names, const char *path,
                       struct rows *ret, struct err *e)
{
    enum { SCHEMA, SCHEMA_FOLDS, TABLE, TABLE_FOLDS, N, PATH = N };
    struct text arrays[N] = {0};
    const char *texts[N + 1] = {[PATH] = path};
    for (size_t i = 0; i < names->n; i++) {
        const struct table_name *name = names->list[i];
        postgres_add_item(&arrays[SCHEMA], name->schema.text);
        postgres_add_item(&arrays[SCHEMA_FOLDS], name->schema.quoted ? "f" : "t");
        postgres_add_item(&arrays[TABLE], name->table.text);
        postgres_add_item(&arrays[TABLE_FOLDS], name->table.quoted ? "f" : "t");
    }
    for (size_t i = 0; i < N; i++) {
        postgres_end_array(&arrays[i]);
        texts[i] = text_str(&arrays[i]);
    }
    int result = ask(s, find_sql, texts, COUNT_OF(texts), ret, e);
    for (size_t i = 0; i < N; i++)
        text_release(&arrays[i]);
    return result;
}

/* --- all together -------------------------------------------------------------------------------- */

/* The tables found: row i of the answer to tables_sql is tables[i] of the facts. */
struct reading {
    struct sql_store *store;
    struct facts *facts;
    const char *oids; /* an array */
    struct rows tables;
};

static void reading_release(struct reading *r)
{
    rows_release(&r->tables);
}

static struct table *table_of(const struct reading *r, const char *oid)
{
    for (size_t i = 0; i < r->tables.n_rows; i++)
        if (strcmp(cell(&r->tables, i, 0), oid) == 0)
            return r->facts->tables[i];
    return NULL;
}

typedef void fill_fn(struct arena *a, struct table *t, const struct rows *r, size_t from, size_t to);

/* Asks about all tables; each is filled from its rows of the answer. */
static int read_parts(const struct reading *r, const char *sql, fill_fn *fill, struct err *e)
{
    AUTO(rows_release) struct rows parts = {0};
    if (ask(r->store, sql, &r->oids, 1, &parts, e) < 0)
        return -1;
    for (size_t from = 0, to; from < parts.n_rows; from = to) {
        to = from + 1;
        while (to < parts.n_rows && !begins(&parts, from, to, 0))
            to++;
        struct table *t = table_of(r, cell(&parts, from, 0));
        if (t)
            fill(r->facts->arena, t, &parts, from, to);
    }
    return 0;
}

/* Columns first: indexes look them up. */
static int read_tables(struct sql_store *s, const char *oids, const char *path, struct facts *f,
                       struct err *e)
{
    AUTO(reading_release) struct reading r = {.store = s, .facts = f, .oids = oids};
    if (ask(s, tables_sql, (const char *[]){oids, path}, 2, &r.tables, e) < 0)
        return -1;
    for (size_t i = 0; i < r.tables.n_rows; i++)
        push_table(f, &r.tables, i);
    if (read_parts(&r, columns_sql, fill_columns, e) < 0 || read_parts(&r, indexes_sql, fill_indexes, e) < 0)
        return -1;
    return read_parts(&r, checks_sql, fill_checks, e) < 0 ? -1 : read_parts(&r, fkeys_sql, fill_fkeys, e);
}

int postgres_read_facts(struct sql_store *s, const struct table_names *names, struct facts **ret,
                        struct err *e)
{
    AUTO(facts_free_p) struct facts *f = facts_new();
    AUTO(rows_release) struct rows found = {0}, path = {0};
    if (postgres_names(s, &path, e) < 0 || find_tables(s, names, cell(&path, 0, 0), &found, e) < 0)
        return -1;
    f->folds_lower = true;
    f->locking_takes_update = true;
    f->create_index = "CREATE INDEX CONCURRENTLY";
    f->default_schema = keep(f->arena, cell(&path, 0, 1));
    const char *oids = cell(&found, 0, 0);
    if (oids && (read_tables(s, oids, cell(&path, 0, 0), f, e) < 0 ||
                 read_path(s, oids, cell(&path, 0, 2), f, e) < 0))
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

/* --- estimates ------------------------------------------------------------------------------------ */

static double real_of(const char *text)
{
    return text ? strtod(text, NULL) : -1;
}

static int ask_statistics(struct sql_store *s, const struct plan *p, struct estimate *ret, struct err *e)
{
    const struct dialect *d = s->engine->dialect;
    const struct table *t = p->root.table;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    text_add(&st.sql, "SELECT c.reltuples, pg_catalog.pg_relation_size(c.oid)"
                      " / pg_catalog.current_setting('block_size')::bigint,"
                      " (SELECT pg_catalog.abs(st.correlation) FROM pg_catalog.pg_stats st"
                      " WHERE st.schemaname = n.nspname AND st.tablename = c.relname AND st.attname = ");
    sql_bind_text(&st, d, p->n_times == 1 ? p->times[0].column->name : "", "text");
    text_add(&st.sql, ") FROM pg_catalog.pg_class c"
                      " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ");
    sql_bind_text(&st, d, t->schema, "text");
    text_add(&st.sql, " AND c.relname = ");
    sql_bind_text(&st, d, t->name, "text");
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    if (!found.n_rows)
        return 0;
    ret->rows = real_of(cell(&found, 0, 0));
    ret->blocks = real_of(cell(&found, 0, 1));
    ret->order = real_of(cell(&found, 0, 2));
    return 0;
}

/* The planner's own: "Seq Scan on jobs this  (cost=0.00..41.50 rows=600 width=4)". */
int postgres_estimate(struct sql_store *s, const struct plan *p, struct estimate *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt due = {0};
    AUTO(rows_release) struct rows found = {0};
    sql_due(&due, s->engine->dialect, p);
    AUTO(mem_free_p) char *sql = mem_strdup(text_str(&due.sql));
    text_clear(&due.sql);
    text_addf(&due.sql, "EXPLAIN %s", sql);
    if (ask_statistics(s, p, ret, e) < 0 || s->engine->query(s, &due, &found, e) < 0)
        return -1;
    const char *plan = found.n_rows ? cell(&found, 0, 0) : NULL, *rows = plan ? strstr(plan, " rows=") : NULL;
    ret->due = rows ? real_of(rows + strlen(" rows=")) : -1;
    return 0;
}

/* A line of the plan without what it would cost. */
static void add_line(struct text *words, const char *line)
{
    line += strspn(line, " ->");
    size_t len = strcspn(line, "(");
    while (len && line[len - 1] == ' ')
        len--;
    text_add(words, words->len ? "; " : "");
    text_add_n(words, line, len);
}

/* Of a short table the whole is read, and rightly so: asked is what the planner does if it must not. What it
 * then still reads whole or sorts, no index serves. Rows of one time, sorted by their key, are no matter. */
int postgres_served(struct sql_store *s, const struct stmt *st, bool *ret, struct text *words, struct err *e)
{
    AUTO(stmt_release) struct stmt no = {0};
    AUTO(rows_release) struct rows found = {0}, ignored = {0};
    struct stmt explained = {.params = st->params, .n_params = st->n_params, .has_sql = st->has_sql};
    text_add(&no.sql, "SELECT pg_catalog.set_config('enable_seqscan', 'off', true),"
                      " pg_catalog.set_config('enable_sort', 'off', true),"
                      " pg_catalog.set_config('enable_bitmapscan', 'off', true)");
    if (s->engine->query(s, &no, &ignored, e) < 0)
        return -1;
    text_addf(&explained.sql, "EXPLAIN %s", text_str(&st->sql));
    int r = s->engine->query(s, &explained, &found, e);
    text_release(&explained.sql);
    *ret = true;
    for (size_t i = 0; r == 0 && i < found.n_rows; i++) {
        const char *line = cell(&found, i, 0);
        bool node = i == 0 || strstr(line, "->  ");
        bool sorts = node && strstr(line, "Sort  (") && !strstr(line, "Incremental Sort  (");
        *ret = *ret && !sorts && !strstr(line, "Seq Scan on ");
        if (node)
            add_line(words, line);
    }
    return r;
}
