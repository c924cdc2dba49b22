/* store_sqlite_ties: what hangs on the rows of a table: foreign keys, triggers. */
#include "store_sqlite.h"

#include <stdlib.h>
#include <string.h>

void known_ties_release(struct known_ties *known)
{
    for (size_t i = 0; i < known->n; i++) {
        free(known->list[i].table);
        free(known->list[i].key);
        free(known->list[i].question);
    }
    free(known->list);
    *known = (struct known_ties){0};
}

static int ask_number(struct sql_store *s, const struct stmt *st, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (s->engine->query(s, st, &found, e) < 0)
        return -1;
    if (found.n_rows != 1 || rows_at(&found, 0)->kind != VALUE_INTEGER)
        return err_set(e, ERR_DATABASE, "sqlite: the schema does not answer: %s", text_str(&st->sql));
    *ret = rows_at(&found, 0)->integer;
    return 0;
}

static int ask_schema(struct sql_store *s, int64_t *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "PRAGMA main.schema_version");
    return ask_number(s, &st, ret, e);
}

/* Names are compared as SQLite compares them. */
static int ask_triggers(struct sql_store *s, const char *table, int64_t *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "SELECT count(*) FROM (SELECT type, tbl_name FROM main.sqlite_schema"
                      " UNION ALL SELECT type, tbl_name FROM temp.sqlite_schema)"
                      " WHERE type = 'trigger' AND tbl_name = ");
    sql_bind_text(&st, s->engine->dialect, table, NULL);
    text_add(&st.sql, " COLLATE NOCASE");
    return ask_number(s, &st, ret, e);
}

/* A row per column of a foreign key that refers to the table. It can be asked for by whole numbers where it
 * refers to the key (of several columns, another refers to something else), and its own column makes a number
 * of whatever is one: a text, compared with the key as the key compares, would be found elsewhere in its
 * index. */
enum { REF_TABLE, REF_COLUMN, REF_ASKABLE };
static int ask_references(struct sql_store *s, const char *table, const char *key, struct rows *ret,
                          struct err *e)
{
    const struct dialect *d = s->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "SELECT t.name, k.\"from\","
                      " EXISTS (SELECT 1 FROM pragma_table_xinfo(t.name, 'main') AS c"
                      " WHERE c.name = k.\"from\" COLLATE NOCASE AND instr(upper(c.type), 'INT'))"
                      " AND coalesce(k.\"to\", (SELECT CASE WHEN count(*) = 1 THEN max(p.name) END"
                      " FROM pragma_table_xinfo(");
    sql_bind_text(&st, d, table, NULL);
    text_add(&st.sql, ", 'main') AS p WHERE p.pk), '') = ");
    sql_bind_text(&st, d, key, NULL);
    text_add(&st.sql, " COLLATE NOCASE"
                      " FROM main.sqlite_schema AS t, pragma_foreign_key_list(t.name, 'main') AS k"
                      " WHERE t.type = 'table' AND k.\"table\" = ");
    sql_bind_text(&st, d, table, NULL);
    text_add(&st.sql, " COLLATE NOCASE");
    return s->engine->query(s, &st, ret, e);
}

/* NULL: one of them cannot be asked for. */
static char *question_of(const struct dialect *d, const struct rows *references)
{
    AUTO(stmt_release) struct stmt st = {0};
    for (size_t i = 0; i < references->n_rows; i++) {
        const struct value *r = rows_at(references, i);
        if (!r[REF_ASKABLE].integer)
            return NULL;
        text_add(&st.sql, i ? " OR EXISTS (SELECT 1 FROM main." : "SELECT EXISTS (SELECT 1 FROM main.");
        sql_name(&st, d, r[REF_TABLE].text);
        text_add(&st.sql, " WHERE ");
        sql_name(&st, d, r[REF_COLUMN].text);
        text_add(&st.sql, " BETWEEN ?1 AND ?2)");
    }
    return mem_strdup(text_str(&st.sql));
}

static int ask_ties(struct sql_store *s, struct ties *t, struct err *e)
{
    AUTO(rows_release) struct rows references = {0};
    int64_t triggers;
    if (ask_triggers(s, t->table, &triggers, e) < 0 ||
        ask_references(s, t->table, t->key, &references, e) < 0)
        return -1;
    t->none = !triggers && !references.n_rows;
    if (!triggers && references.n_rows && *t->key)
        t->question = question_of(s->engine->dialect, &references);
    return 0;
}

int sqlite_ties(struct sql_store *s, struct known_ties *known, const struct table *t, const struct ties **ret,
                struct err *e)
{
    const char *key = t->n_key == 1 && t->key[0]->type == TYPE_INTEGER ? t->key[0]->name : "";
    int64_t schema;
    if (ask_schema(s, &schema, e) < 0)
        return -1;
    if (schema != known->schema)
        known_ties_release(known);
    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->list[i].table, t->name) == 0 && strcmp(known->list[i].key, key) == 0) {
            *ret = &known->list[i];
            return 0;
        }
    known->schema = schema;
    known->list = mem_grow(known->list, known->n + 1, sizeof(*known->list));
    struct ties *added = &known->list[known->n];
    *added = (struct ties){.table = mem_strdup(t->name), .key = mem_strdup(key)};
    known->n++;
    if (ask_ties(s, added, e) < 0) {
        known_ties_release(known);
        return -1;
    }
    *ret = added;
    return 0;
}
