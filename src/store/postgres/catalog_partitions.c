/* catalog_partitions: PostgreSQL's catalog -> the partitions of a table that could be dropped. */
#include "store/postgres/store.h"

#include <stdlib.h>
#include <string.h>

/* A value in the text of a bound: 'it''s', 7, MAXVALUE. */
#define BOUND_VALUE "(?:''(?:[^'']|'''')*''|[^'',()]+)"

/* Those by range, with the first value at which the range ends, as text and, where its type says when rows
 * come or counts them, as a number. Ends that are no time of ours (infinity) are none.
 *
 * A drop takes the subtree along, so what is asked of a partition is asked of all that are below it. One that
 * is being detached from it goes, too, though its rows are not seen any more by whoever reads the partition.
 * What depends on it and would not go with it (a view) makes DROP … RESTRICT fail; that is found out here,
 * before anything is locked. What its own parts (constraints, triggers, row security) say of its columns goes
 * with it.
 *
 * Parameters: schema, table, the oid of the only one that matters, or NULL. */
static const char partitions_sql[] =
    "WITH RECURSIVE root AS ("
    "    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    "    WHERE n.nspname = $1::text AND c.relname = $2::text"
    "), family (oid, up, above) AS ("
    "    SELECT i.inhrelid, i.inhparent, ARRAY[]::oid[] FROM pg_catalog.pg_inherits i"
    "    JOIN root ON root.oid = i.inhparent WHERE NOT i.inhdetachpending"
    "  UNION ALL"
    "    SELECT i.inhrelid, i.inhparent, family.above || family.oid FROM family"
    "    JOIN pg_catalog.pg_inherits i ON i.inhparent = family.oid WHERE NOT i.inhdetachpending"
    "), published AS ("
    "    SELECT pg_catalog.string_agg(DISTINCT b.pubname::text, ', ') AS names"
    "    FROM pg_catalog.pg_publication b JOIN pg_catalog.pg_publication_tables t USING (pubname)"
    "    JOIN pg_catalog.pg_namespace n ON n.nspname = t.schemaname"
    "    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename"
    "    WHERE b.pubdelete AND c.oid IN (SELECT oid FROM family UNION ALL SELECT oid FROM root UNION ALL"
    "                                    SELECT pg_catalog.pg_partition_ancestors(oid)::oid FROM root)"
    ") "
    "SELECT c.oid, pg_catalog.array_to_string(family.above, ' '), n.nspname, c.relname,"
    "       pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),"
    "       a.attname, y.typname,"
    "       CASE WHEN y.typname IN ('timestamptz', 'timestamp', 'date')"
    "            THEN CASE WHEN bound.value::timestamp BETWEEN '0001-01-01' AND '9999-12-31' THEN"
    "                      (extract(epoch FROM CASE y.typname WHEN 'timestamptz' THEN "
    "bound.value::timestamptz"
    "                       ELSE bound.value::timestamp AT TIME ZONE 'UTC' END) * 1000000)::bigint END"
    "            WHEN y.typname IN ('int2', 'int4', 'int8') THEN bound.value::bigint END,"
    "       CASE WHEN y.typname IN ('int2', 'int4', 'int8') THEN ("
    "           SELECT pg_catalog.bool_or(q.seqincrement > 0 AND NOT q.seqcycle AND q.seqcache = 1"
    "                  AND CASE WHEN pg_catalog.has_sequence_privilege(q.seqrelid, 'USAGE, SELECT')"
    "                      THEN pg_catalog.pg_sequence_last_value(q.seqrelid) >= bound.value::bigint END)"
    "           FROM root"
    "           JOIN pg_catalog.pg_attribute top ON top.attrelid = root.oid AND top.attname = a.attname"
    "           JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::regclass"
    "                AND d.refobjid = root.oid AND d.refobjsubid = top.attnum AND d.deptype IN ('a', 'i')"
    "                AND d.classid = 'pg_catalog.pg_class'::regclass"
    "           JOIN pg_catalog.pg_sequence q ON q.seqrelid = d.objid) END,"
    "       coalesce("
    "           'it belongs to ' || (SELECT pg_catalog.min(pg_catalog.pg_get_userbyid(o.relowner)::text)"
    "               FROM pg_catalog.pg_class o WHERE o.oid = ANY (tree.oids)"
    "               AND NOT pg_catalog.pg_has_role(o.relowner, 'USAGE')),"
    "           (SELECT 'it has a foreign table, ' || pg_catalog.min(o.relname::text)"
    "            FROM pg_catalog.pg_class o WHERE o.oid = ANY (tree.oids) AND o.relkind NOT IN ('r', 'p')"
    "            HAVING pg_catalog.count(*) > 0),"
    "           (SELECT 'its partition ' || pg_catalog.min(o.relname::text) || ' is being detached, and "
    "would go "
    "with it'"
    "            FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class o ON o.oid = i.inhrelid"
    "            WHERE i.inhdetachpending AND i.inhparent = ANY (tree.oids)"
    "            HAVING pg_catalog.count(*) > 0),"
    "           (SELECT 'trigger ' || pg_catalog.min(g.tgname::text) || ' fires on delete, and not on a drop'"
    "            FROM pg_catalog.pg_trigger g"
    "            WHERE (g.tgrelid = ANY (tree.oids || family.above) OR g.tgrelid = (SELECT oid FROM root))"
    "              AND NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype & 8 <> 0"
    "            HAVING pg_catalog.count(*) > 0),"
    "           (SELECT 'it has the rule ' || pg_catalog.min(w.rulename::text) || ' on delete'"
    "            FROM pg_catalog.pg_rewrite w WHERE w.ev_class = ANY (tree.oids) AND w.ev_type = '4'"
    "            HAVING pg_catalog.count(*) > 0),"
    "           (SELECT 'foreign key ' || pg_catalog.min(k.conname::text) || ' points at it'"
    "            FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.confrelid = ANY (tree.oids)"
    "            HAVING pg_catalog.count(*) > 0),"
    "           (SELECT pg_catalog.min(CASE WHEN w.ev_class IS NULL"
    "                       THEN pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid)"
    "                       ELSE pg_catalog.pg_describe_object('pg_catalog.pg_class'::regclass, w.ev_class, "
    "0) END)"
    "                   || ' depends on it'"
    "            FROM pg_catalog.pg_depend d"
    "            LEFT JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid"
    "                 AND d.classid = 'pg_catalog.pg_rewrite'::regclass"
    "            WHERE d.deptype = 'n' AND (d.refclassid = 'pg_catalog.pg_class'::regclass"
    "                                       AND d.refobjid = ANY (tree.oids)"
    "                                       OR d.refclassid = 'pg_catalog.pg_type'::regclass"
    "                                       AND d.refobjid = ANY (tree.types))"
    "              AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend own WHERE own.classid = d.classid"
    "                  AND own.objid = d.objid AND own.deptype <> 'n'"
    "                  AND own.refclassid = 'pg_catalog.pg_class'::regclass"
    "                  AND own.refobjid = ANY (tree.oids))),"
    "           'its deletes are published (' || published.names || '), and a drop is not',"
    "           'the reader of the logical slot ' || (SELECT pg_catalog.min(l.slot_name::text || ' (' || "
    "l.plugin || ')')"
    "               FROM pg_catalog.pg_replication_slots l WHERE l.slot_type = 'logical'"
    "               AND l.database = pg_catalog.current_database() AND l.plugin <> 'pgoutput')"
    "               || ' is told of deletes, and not of a drop'),"
    "       upn.nspname, upc.relname, restn.nspname, restc.relname "
    "FROM family "
    "JOIN pg_catalog.pg_class c ON c.oid = family.oid "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "JOIN pg_catalog.pg_partitioned_table t ON t.partrelid = family.up AND t.partstrat = 'r' "
    "JOIN pg_catalog.pg_class upc ON upc.oid = family.up "
    "JOIN pg_catalog.pg_namespace upn ON upn.oid = upc.relnamespace "
    "LEFT JOIN pg_catalog.pg_class restc ON restc.oid = t.partdefid "
    "LEFT JOIN pg_catalog.pg_namespace restn ON restn.oid = restc.relnamespace "
    "LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = family.up AND a.attnum = t.partattrs[0] "
    "LEFT JOIN pg_catalog.pg_type y ON y.oid = a.atttypid"
    "     AND y.typnamespace = 'pg_catalog'::pg_catalog.regnamespace "
    "CROSS JOIN published "
    "CROSS JOIN LATERAL (SELECT pg_catalog.array_agg(o.oid) AS oids, pg_catalog.array_agg(o.reltype) AS types"
    "    FROM pg_catalog.pg_class o WHERE o.oid = c.oid"
    "       OR o.oid IN (SELECT below.oid FROM family below WHERE c.oid = ANY (below.above))) AS tree "
    "CROSS JOIN LATERAL (SELECT pg_catalog.substring(pg_catalog.pg_get_expr(c.relpartbound, c.oid),"
    "    '^FOR VALUES FROM \\((?:" BOUND_VALUE "(?:, )?)+\\) TO \\((" BOUND_VALUE ")') AS text) AS written "
    "CROSS JOIN LATERAL (SELECT CASE WHEN written.text LIKE '''%' THEN"
    "        pg_catalog.replace(pg_catalog.substr(written.text, 2, pg_catalog.length(written.text) - 2),"
    "                           '''''', '''')"
    "    WHEN written.text NOT IN ('MAXVALUE', 'MINVALUE') THEN written.text END AS value) AS bound "
    "WHERE c.relkind IN ('r', 'p') AND bound.value IS NOT NULL AND ($3::oid IS NULL OR c.oid = $3::oid) "
    "ORDER BY pg_catalog.cardinality(family.above), 5";

static const char *cell(const struct rows *r, size_t row, size_t column)
{
    const struct value *v = &rows_at(r, row)[column];
    return v->kind == VALUE_NULL ? NULL : v->text;
}

static const char *kept(struct arena *a, const struct rows *r, size_t row, size_t column)
{
    const char *text = cell(r, row, column);
    return text ? arena_strdup(a, text) : NULL;
}

static enum range_of range_of(const char *type)
{
    static const struct {
        const char *type;
        enum range_of of;
    } ranges[] = {
        {"timestamptz", RANGE_TIMES}, {"timestamp", RANGE_LOCALS}, {"date", RANGE_LOCALS},
        {"int2", RANGE_NUMBERS},      {"int4", RANGE_NUMBERS},     {"int8", RANGE_NUMBERS},
    };
    for (size_t i = 0; type && i < COUNT_OF(ranges); i++)
        if (strcmp(ranges[i].type, type) == 0)
            return ranges[i].of;
    return RANGE_OTHER;
}

static struct partition read_one(struct arena *a, const struct rows *r, size_t row)
{
    const char *end = cell(r, row, 7), *counted = cell(r, row, 8);
    return (struct partition){
        .id = kept(a, r, row, 0),
        .above = arena_printf(a, " %s ", cell(r, row, 1)),
        .schema = kept(a, r, row, 2),
        .name = kept(a, r, row, 3),
        .print = kept(a, r, row, 4),
        .column = kept(a, r, row, 5),
        .of = range_of(cell(r, row, 6)),
        .has_end = end != NULL,
        .end = end ? strtoll(end, NULL, 10) : 0,
        .counted_up = counted && counted[0] == 't',
        .why = kept(a, r, row, 9),
        .up_schema = kept(a, r, row, 10),
        .up_name = kept(a, r, row, 11),
        .rest_schema = kept(a, r, row, 12),
        .rest_name = kept(a, r, row, 13),
    };
}

static struct value text_value(const char *text)
{
    return text ? (struct value){.kind = VALUE_TEXT, .text = text, .len = strlen(text)} : (struct value){0};
}

int postgres_read_partitions(struct sql_store *s, const struct plan *p, const char *id,
                             struct partitions *ret, struct err *e)
{
    const struct table *t = p->root.table;
    struct param params[] = {{.value = text_value(t->schema), .set = -1},
                             {.value = text_value(t->name), .set = -1},
                             {.value = text_value(id), .set = -1}};
    struct stmt st = {.params = params, .n_params = COUNT_OF(params), .of_catalog = true};
    AUTO(rows_release) struct rows r = {0};
    text_add(&st.sql, partitions_sql);
    int result = s->engine->query(s, &st, &r, e);
    text_release(&st.sql);
    if (result < 0)
        return err_wrap(e, "reading the partitions of %s", t->print);
    ret->arena = arena_new();
    ret->list = arena_alloc(ret->arena, (r.n_rows + 1) * sizeof(*ret->list));
    for (size_t i = 0; i < r.n_rows; i++)
        ret->list[ret->n++] = read_one(ret->arena, &r, i);
    return 0;
}
