/* ties: what hangs on the rows of a table: foreign keys, triggers. */
#include "store/sqlite/store.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { REFERENCES_MOST = 50 }; /* in one question */

void known_ties_release(struct known_ties *known)
{
    for (size_t i = 0; i < known->n; i++) {
        free(known->list[i].table);
        free(known->list[i].key);
        free(known->list[i].question);
    }
    free(known->list);
    rows_release(&known->references);
    rows_release(&known->triggers);
    *known = (struct known_ties){0};
}

static int ask(struct sql_store *s, const char *sql, struct rows *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, sql);
    return s->engine->query(s, &st, ret, e);
}

static int ask_schema(struct sql_store *s, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (ask(s, "PRAGMA main.schema_version", &found, e) < 0)
        return -1;
    if (found.n_rows != 1 || rows_at(&found, 0)->kind != VALUE_INTEGER)
        return err_set(e, ERR_DATABASE, "sqlite: the schema has no version");
    *ret = rows_at(&found, 0)->integer;
    return 0;
}

/* A row per column of a foreign key. Its numbers: the column makes a number of whatever is one. A text,
 * compared with the key as the key compares, would be found elsewhere in the column's index. */
enum { REF_PARENT, REF_TABLE, REF_COLUMN, REF_TO, REF_COLUMNS, REF_NUMBERS };
static const char ALL_REFERENCES[] =
    "SELECT k.\"table\", t.name, k.\"from\", k.\"to\","
    " (SELECT count(*) FROM pragma_foreign_key_list(t.name, 'main') AS o WHERE o.id = k.id),"
    " EXISTS (SELECT 1 FROM pragma_table_xinfo(t.name, 'main') AS c"
    " WHERE c.name = k.\"from\" COLLATE NOCASE AND instr(upper(c.type), 'INT'))"
    " FROM main.sqlite_schema AS t, pragma_foreign_key_list(t.name, 'main') AS k WHERE t.type = 'table'";
static const char ALL_TRIGGERS[] =
    "SELECT tbl_name FROM main.sqlite_schema WHERE type = 'trigger'"
    " UNION ALL SELECT tbl_name FROM temp.sqlite_schema WHERE type = 'trigger'";

static int read_schema(struct sql_store *s, struct known_ties *known, struct err *e)
{
    int64_t schema = 0;
    if (ask_schema(s, &schema, e) < 0)
        return -1;
    if (known->read && schema == known->schema)
        return 0;
    known_ties_release(known);
    if (ask(s, ALL_REFERENCES, &known->references, e) < 0 || ask(s, ALL_TRIGGERS, &known->triggers, e) < 0)
        return -1;
    known->schema = schema;
    known->read = true;
    return 0;
}

/* Whether this column alone is the table's primary key now: what refers to anything else may not be served by
 * it, or by nothing. */
static int is_primary_key(struct sql_store *s, const char *table, const char *key, bool *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "SELECT name FROM pragma_table_xinfo(");
    sql_bind_text(&st, s->engine->dialect, table, NULL);
    text_add(&st.sql, ", 'main') WHERE pk");
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    *ret = found.n_rows == 1 && strcasecmp(rows_at(&found, 0)->text, key) == 0;
    return 0;
}

static bool is_of(const struct value *name, const char *table)
{
    return name->text && strcasecmp(name->text, table) == 0;
}

static bool has_trigger(const struct known_ties *known, const char *table)
{
    for (size_t i = 0; i < known->triggers.n_rows; i++)
        if (is_of(rows_at(&known->triggers, i), table))
            return true;
    return false;
}

static size_t count_references(const struct known_ties *known, const char *table)
{
    size_t n = 0;
    for (size_t i = 0; i < known->references.n_rows; i++)
        n += is_of(&rows_at(&known->references, i)[REF_PARENT], table);
    return n;
}

static bool is_askable(const struct value *reference, const char *key)
{
    const char *to = reference[REF_TO].text;
    return reference[REF_COLUMNS].integer == 1 && reference[REF_NUMBERS].integer &&
           (!to || strcasecmp(to, key) == 0);
}

/* Without the CASTs a column of texts would be compared as such. NULL: one of them cannot be asked for. */
static char *question_of(const struct dialect *d, const struct known_ties *known, const struct ties *t)
{
    AUTO(stmt_release) struct stmt st = {0};
    for (size_t i = 0; i < known->references.n_rows; i++) {
        const struct value *r = rows_at(&known->references, i);
        if (!is_of(&r[REF_PARENT], t->table))
            continue;
        if (!is_askable(r, t->key))
            return NULL;
        text_add(&st.sql,
                 st.sql.len ? " OR EXISTS (SELECT 1 FROM main." : "SELECT EXISTS (SELECT 1 FROM main.");
        sql_name(&st, d, r[REF_TABLE].text);
        text_add(&st.sql, " WHERE ");
        sql_name(&st, d, r[REF_COLUMN].text);
        text_add(&st.sql, " BETWEEN CAST(?1 AS INTEGER) AND CAST(?2 AS INTEGER))");
    }
    return mem_strdup(text_str(&st.sql));
}

static int find_ties(struct sql_store *s, const struct known_ties *known, struct ties *t, struct err *e)
{
    size_t references = count_references(known, t->table);
    bool served = false;
    if (has_trigger(known, t->table))
        return 0;
    t->none = !references;
    if (!references || references > REFERENCES_MOST)
        return 0;
    if (is_primary_key(s, t->table, t->key, &served, e) < 0)
        return -1;
    t->question = served ? question_of(s->engine->dialect, known, t) : NULL;
    return 0;
}

int sqlite_ties(struct sql_store *s, struct known_ties *known, const struct table *t, const struct ties **ret,
                struct err *e)
{
    const char *key = t->n_key == 1 ? t->key[0]->name : "";
    if (read_schema(s, known, e) < 0)
        return -1;
    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->list[i].table, t->name) == 0 && strcmp(known->list[i].key, key) == 0) {
            *ret = &known->list[i];
            return 0;
        }
    known->list = mem_grow(known->list, known->n + 1, sizeof(*known->list));
    struct ties *added = &known->list[known->n++];
    *added = (struct ties){.table = mem_strdup(t->name), .key = mem_strdup(key)};
    if (find_ties(s, known, added, e) < 0) {
        known_ties_release(known);
        return -1;
    }
    *ret = added;
    return 0;
}
