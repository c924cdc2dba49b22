/* catalog: information_schema -> facts. It opens every table of the server unless it is asked with
 * the schema and the name of one, so questions name the tables one by one, many in one statement. What comes
 * back depends on what the user may see; sight.c says what that leaves open. */
#include "store/mariadb/catalog.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- asking -------------------------------------------------------------------------------------- */

/* "{12}" becomes the placeholder of params[11]. */
static void add_sql(struct text *out, const char *sql)
{
    for (const char *open; (open = strchr(sql, '{')) != NULL; sql = strchr(open, '}') + 1) {
        text_add_n(out, sql, (size_t)(open - sql));
        text_addf(out, MARIADB_PARAM "%lu" MARIADB_PARAM, strtoul(open + 1, NULL, 10));
    }
    text_add(out, sql);
}

int mariadb_ask(struct sql_store *s, const char *sql, const char *const *texts, size_t n, struct rows *ret,
                struct err *e)
{
    AUTO(stmt_release) struct stmt st = {.n_params = n};
    st.params = mem_grow(NULL, n + 1, sizeof(*st.params));
    memset(st.params, 0, (n + 1) * sizeof(*st.params));
    for (size_t i = 0; i < n; i++) {
        st.params[i].set = -1;
        if (texts[i])
            st.params[i].value =
                (struct value){.kind = VALUE_TEXT, .text = texts[i], .len = strlen(texts[i])};
    }
    add_sql(&st.sql, sql);
    return s->engine->query(s, &st, ret, e) < 0 ? err_wrap(e, "reading the catalog") : 0;
}

const char *mariadb_cell(const struct rows *r, size_t row, size_t column)
{
    const struct value *v = &r->cells[row * r->n_columns + column];
    return v->kind == VALUE_TEXT || v->kind == VALUE_BLOB ? v->text : NULL;
}

int64_t mariadb_number(const struct rows *r, size_t row, size_t column)
{
    const struct value *v = &r->cells[row * r->n_columns + column];
    if (v->kind == VALUE_INTEGER)
        return v->integer;
    return v->kind == VALUE_TEXT ? strtoll(v->text, NULL, 10) : 0;
}

static const char *keep(struct arena *a, const char *text)
{
    return text ? arena_strdup(a, text) : NULL;
}

/* --- the server ---------------------------------------------------------------------------------- */

static bool is_on(const char *value)
{
    return strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0;
}

static void note_variable(struct server *ret, const char *name, const char *value)
{
    if (strcmp(name, "version") == 0) {
        char *minor = NULL;
        long major = strtol(value, &minor, 10);
        ret->version = (int)(100 * major + (*minor == '.' ? strtol(minor + 1, NULL, 10) : 0));
        ret->mariadb = strcasestr(value, "mariadb") != NULL;
    } else if (strcmp(name, "lower_case_table_names") == 0) {
        ret->names_fold = strcmp(value, "1") == 0;
    } else if (strcmp(name, "binlog_format") == 0) {
        ret->statement_binlog = strcasecmp(value, "STATEMENT") == 0;
    } else if (strcmp(name, "wsrep_on") == 0) {
        ret->galera = is_on(value);
    } else if (strcmp(name, "group_replication_group_name") == 0) {
        ret->group = *value != '\0';
    }
}

static int read_server(struct sql_store *s, struct arena *a, struct server *ret, struct err *e)
{
    AUTO(rows_release) struct rows variables = {0}, database = {0};
    if (mariadb_ask(s,
                    "SHOW VARIABLES WHERE Variable_name IN ('version', 'lower_case_table_names', "
                    "'binlog_format', 'wsrep_on', 'group_replication_group_name')",
                    NULL, 0, &variables, e) < 0 ||
        mariadb_ask(s, "SELECT DATABASE()", NULL, 0, &database, e) < 0)
        return -1;
    for (size_t i = 0; i < variables.n_rows; i++)
        if (mariadb_cell(&variables, i, 1))
            note_variable(ret, mariadb_cell(&variables, i, 0), mariadb_cell(&variables, i, 1));
    ret->database = keep(a, mariadb_cell(&database, 0, 0));
    return 0;
}

/* Statements are logged as they are, and a DELETE of picked rows says nothing of which they were; MariaDB
 * refuses each of them at READ COMMITTED, in the middle of a batch. */
static void judge_server(struct facts *f, const struct server *s)
{
    f->engine_fix = "ENGINE=InnoDB";
    f->certifies = s->galera ? "Galera" : s->group ? "group replication" : NULL;
    if (!s->statement_binlog)
        return;
    f->refused = "the server logs statements (binlog_format = STATEMENT), which READ COMMITTED rules out: "
                 "replicas would delete other rows";
    f->refused_fix = "SET GLOBAL binlog_format = ROW (or MIXED), and connect again";
}

/* --- names --------------------------------------------------------------------------------------- */

struct wanted {
    const char *schema, *table;
};

static const char *as_kept(struct arena *a, const struct server *s, const struct name *n)
{
    char *text = arena_strdup(a, n->text);
    for (char *c = text; s->names_fold && !n->quoted && *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    return text;
}

static bool is_wanted(const struct wanted *list, size_t n, const struct wanted *w)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].schema, w->schema) == 0 && strcmp(list[i].table, w->table) == 0)
            return true;
    return false;
}

/* Each table once. A name without a schema is looked for in the database connected to, and nowhere else. */
static struct wanted *wanted_of(struct arena *a, const struct server *s, const struct table_names *names,
                                size_t *ret_n)
{
    struct wanted *list = arena_alloc(a, (names->n + 1) * sizeof(*list));
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++) {
        const struct table_name *name = names->list[i];
        struct wanted w = {.schema = name->schema.text ? as_kept(a, s, &name->schema) : s->database,
                           .table = as_kept(a, s, &name->table)};
        if (w.schema && !is_wanted(list, n, &w))
            list[n++] = w;
    }
    *ret_n = n;
    return list;
}

/* --- one question for many tables ---------------------------------------------------------------- */

enum { TABLES_AT_ONCE = 32 };

/* A SELECT of one table, in which {n} is its number, {schema} and {table} its names. */
static void add_for_table(struct text *out, const char *sql, size_t number, size_t place)
{
    for (const char *open; (open = strchr(sql, '{')) != NULL; sql = strchr(open, '}') + 1) {
        text_add_n(out, sql, (size_t)(open - sql));
        if (open[1] == 'n')
            text_addf(out, "%zu", number);
        else
            text_addf(out, "{%zu}", 2 * place + (open[1] == 's' ? 1 : 2));
    }
    text_add(out, sql);
}

static int ask_for(struct sql_store *s, const char *sql, const char *order, const struct wanted *list,
                   size_t from, size_t to, struct rows *ret, struct err *e)
{
    const char *texts[2 * TABLES_AT_ONCE];
    AUTO(text_release) struct text all = {0};
    for (size_t i = from; i < to; i++) {
        text_add(&all, i > from ? " UNION ALL " : "");
        add_for_table(&all, sql, i, i - from);
        texts[2 * (i - from)] = list[i].schema;
        texts[2 * (i - from) + 1] = list[i].table;
    }
    text_addf(&all, " ORDER BY n%s", order);
    return mariadb_ask(s, text_str(&all), texts, 2 * (to - from), ret, e);
}

/* --- tables -------------------------------------------------------------------------------------- */

enum { TAB_N, TAB_SCHEMA, TAB_NAME, TAB_TYPE, TAB_ENGINE, TAB_OPTIONS, TAB_TRANSACTIONS };
static const char tables_sql[] =
    "SELECT {n} AS n, t.TABLE_SCHEMA, t.TABLE_NAME, t.TABLE_TYPE, t.ENGINE, t.CREATE_OPTIONS,"
    "       (SELECT e.TRANSACTIONS FROM information_schema.ENGINES e WHERE e.ENGINE = t.ENGINE) "
    "FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = {schema} AND t.TABLE_NAME = {table}";

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(word, list[i]) == 0)
            return true;
    return false;
}

static enum table_kind kind_of(const char *type, const char *engine, const char *options)
{
    static const char *const elsewhere[] = {"FEDERATED", "CONNECT", "SPIDER"};
    if (strcmp(type, "SEQUENCE") == 0)
        return KIND_SEQUENCE;
    if (strstr(type, "VIEW"))
        return KIND_VIEW;
    if (engine && is_one_of(engine, elsewhere, COUNT_OF(elsewhere)))
        return KIND_FOREIGN;
    return options && strstr(options, "partitioned") ? KIND_PARTITIONED : KIND_TABLE;
}

static const char *print_name(struct arena *a, const char *schema, const char *table)
{
    AUTO(text_release) struct text out = {0};
    const struct table_name name = {.schema.text = schema, .table.text = table};
    table_name_print(&name, &out);
    return arena_strdup(a, text_str(&out));
}

/* Galera replicates InnoDB alone. */
static const char *unsafe_engine(const struct reading *r, const char *engine, const char *transactions)
{
    bool safe = transactions && strcmp(transactions, "YES") == 0;
    if (safe && (!r->server.galera || strcasecmp(engine, "InnoDB") == 0))
        return NULL;
    return engine ? keep(r->facts->arena, engine) : "one that cannot be opened";
}

static void push_table(struct reading *r, const struct rows *rows, size_t i)
{
    struct facts *f = r->facts;
    struct table *t = arena_alloc(f->arena, sizeof(*t));
    const char *type = mariadb_cell(rows, i, TAB_TYPE), *engine = mariadb_cell(rows, i, TAB_ENGINE);
    t->schema = keep(f->arena, mariadb_cell(rows, i, TAB_SCHEMA));
    t->name = keep(f->arena, mariadb_cell(rows, i, TAB_NAME));
    t->kind = kind_of(type, engine, mariadb_cell(rows, i, TAB_OPTIONS));
    t->print = print_name(f->arena, t->schema, t->name);
    t->bare = r->server.database && strcmp(t->schema, r->server.database) == 0;
    t->keeps_history = strcmp(type, "SYSTEM VERSIONED") == 0;
    if (t->kind == KIND_TABLE || t->kind == KIND_PARTITIONED)
        t->unsafe_engine = unsafe_engine(r, engine, mariadb_cell(rows, i, TAB_TRANSACTIONS));
    f->tables = arena_push(f->arena, f->tables, f->n_tables, sizeof(*f->tables));
    f->tables[f->n_tables++] = t;
}

/* information_schema compares in any case; the file system, which decides, may not. */
static bool is_same_name(const struct server *s, const char *asked, const char *found)
{
    return s->names_fold ? strcasecmp(asked, found) == 0 : strcmp(asked, found) == 0;
}

static int read_tables(struct reading *r, const struct wanted *list, size_t n, struct err *e)
{
    for (size_t from = 0, to; from < n; from = to) {
        AUTO(rows_release) struct rows rows = {0};
        to = from + TABLES_AT_ONCE < n ? from + TABLES_AT_ONCE : n;
        if (ask_for(r->store, tables_sql, "", list, from, to, &rows, e) < 0)
            return -1;
        for (size_t i = 0; i < rows.n_rows; i++) {
            const struct wanted *w = &list[mariadb_number(&rows, i, TAB_N)];
            if (is_same_name(&r->server, w->schema, mariadb_cell(&rows, i, TAB_SCHEMA)) &&
                is_same_name(&r->server, w->table, mariadb_cell(&rows, i, TAB_NAME)))
                push_table(r, &rows, i);
        }
    }
    return 0;
}

/* --- columns ------------------------------------------------------------------------------------- */

enum {
    COL_N,
    COL_PLACE,
    COL_NAME,
    COL_TYPE,
    COL_WHOLE_TYPE,
    COL_NULLABLE,
    COL_COLLATION,
    COL_BYTES,
    COL_LONGEST,
    COL_EXTRA,
    COL_GENERATED_AS,
    COL_RIGHTS
};
static const char columns_sql[] =
    "SELECT {n} AS n, ORDINAL_POSITION AS place, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE,"
    "       COLLATION_NAME, CHARACTER_OCTET_LENGTH, CHARACTER_MAXIMUM_LENGTH, EXTRA, GENERATION_EXPRESSION, "
    "PRIVILEGES "
    "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table}";

static const struct type {
    const char *name;
    enum type_class class;
    int bytes;
    bool unordered;
} types[] = {
    {"tinyint", TYPE_INTEGER, 1, false},    {"smallint", TYPE_INTEGER, 2, false},
    {"mediumint", TYPE_INTEGER, 3, false},  {"int", TYPE_INTEGER, 4, false},
    {"bigint", TYPE_INTEGER, 0, false},     {"year", TYPE_INTEGER, 2, false},
    {"bit", TYPE_INTEGER, 0, false},        {"float", TYPE_REAL, 0, false},
    {"double", TYPE_REAL, 0, false},        {"decimal", TYPE_NUMERIC, 0, false},
    {"char", TYPE_TEXT, 0, false},          {"varchar", TYPE_TEXT, 0, false},
    {"tinytext", TYPE_TEXT, 0, false},      {"text", TYPE_TEXT, 0, false},
    {"mediumtext", TYPE_TEXT, 0, false},    {"longtext", TYPE_TEXT, 0, false},
    {"enum", TYPE_ENUM, 0, false},          {"timestamp", TYPE_TIMESTAMPTZ, 0, false},
    {"datetime", TYPE_TIMESTAMP, 0, false}, {"date", TYPE_DATE, 0, false},
    {"binary", TYPE_BLOB, 0, false},        {"varbinary", TYPE_BLOB, 0, false},
    {"tinyblob", TYPE_BLOB, 0, false},      {"blob", TYPE_BLOB, 0, false},
    {"mediumblob", TYPE_BLOB, 0, false},    {"longblob", TYPE_BLOB, 0, false},
    {"time", TYPE_OTHER, 0, false},         {"uuid", TYPE_OTHER, 0, false},
    {"inet4", TYPE_OTHER, 0, false},        {"inet6", TYPE_OTHER, 0, false},
    {"set", TYPE_OTHER, 0, false},
};

/* json, point, vector and whatever is to come: compared by the server, but without an order. */
static const struct type *type_of(const char *name)
{
    static const struct type other = {"", TYPE_OTHER, 0, true};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (strcasecmp(types[i].name, name) == 0)
            return &types[i];
    return &other;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* A collation says by its name how it compares: byte by byte or character by character (_bin), or by weights,
 * of which different texts may have the same; and blanks at the end count only in NO PAD ones. */
static void note_collation(struct column *c)
{
    if (!c->collation || strcmp(c->collation, "binary") == 0)
        return;
    c->folds = !ends_with(c->collation, "_bin");
    c->pads = !strstr(c->collation, "_nopad_") && !strstr(c->collation, "_0900_");
}

/* The sets of which it can be said in a number; 0: it holds any, or only the server knows which. */
static uint32_t last_character(const char *collation)
{
    static const struct {
        const char *set;
        uint32_t last;
    } sets[] = {{"ascii_", 0x7f}, {"utf8_", 0xffff}, {"utf8mb3_", 0xffff}, {"ucs2_", 0xffff}};
    for (size_t i = 0; collation && i < COUNT_OF(sets); i++)
        if (strncmp(collation, sets[i].set, strlen(sets[i].set)) == 0)
            return sets[i].last;
    return 0;
}

/* The longest that an index of InnoDB holds whole. */
enum { INDEX_BYTES = 3072 };

static bool is_cut_in_indexes(const char *type, int64_t bytes)
{
    return ends_with(type, "text") || ends_with(type, "blob") || bytes > INDEX_BYTES;
}

/* The labels of enum('a','it''s','back\\slash'). */
static void add_labels(struct arena *a, struct column *c, const char *type)
{
    AUTO(text_release) struct text label = {0};
    const char *p = strchr(type, '(');
    while (p && p[1] == '\'') {
        text_clear(&label);
        for (p += 2; *p && (*p != '\'' || p[1] == '\''); p++) {
            char ch = *p;
            if (ch == '\\' && p[1]) {
                ch = *++p;
                ch = ch == 'n' ? '\n' : ch == 'r' ? '\r' : ch;
            } else if (ch == '\'') {
                p++;
            }
            text_add_n(&label, &ch, 1);
        }
        c->labels = arena_push(a, c->labels, c->n_labels, sizeof(*c->labels));
        c->labels[c->n_labels++] = arena_strdup(a, text_str(&label));
        p = *p ? p + 1 : NULL; /* the comma, or the end */
    }
}

static bool is_generated(const char *extra)
{
    return strstr(extra, "VIRTUAL GENERATED") || strstr(extra, "STORED GENERATED") ||
           strstr(extra, "PERSISTENT");
}

/* An expression as the standard writes its strings: 'it\'s' becomes 'it''s', and no character set is named.
 * Every turn of the loop takes a character. */
static const char *standard_text(struct arena *a, const char *s)
{
    AUTO(text_release) struct text out = {0};
    bool inside = false;
    for (; *s; s++) {
        size_t word = !inside && *s == '_' ? strspn(s, "_abcdefghijklmnopqrstuvwxyz0123456789") : 0;
        if (word && s[word] == '\'' && (!out.len || !isalnum((unsigned char)out.data[out.len - 1]))) {
            s += word - 1;
            continue;
        }
        inside ^= *s == '\'';
        if (inside && *s == '\\' && s[1]) {
            s++;
            if (*s == '\'')
                text_add(&out, "''");
            else
                text_add_n(&out, *s == 'n' ? "\n" : *s == 'r' ? "\r" : s, 1);
            continue;
        }
        text_add_n(&out, s, 1);
    }
    return arena_strdup(a, text_str(&out));
}

static const char *generated_as(struct arena *a, const char *expression)
{
    return expression ? standard_text(a, expression) : NULL;
}

static void push_column(struct arena *a, struct table *t, const struct rows *r, size_t row)
{
    const char *name = mariadb_cell(r, row, COL_TYPE), *whole = mariadb_cell(r, row, COL_WHOLE_TYPE);
    const char *extra = mariadb_cell(r, row, COL_EXTRA);
    const struct type *type = type_of(name);
    bool is_unsigned = strstr(whole, " unsigned") != NULL;
    t->columns = arena_push(a, t->columns, t->n_columns, sizeof(*t->columns));
    struct column *c = &t->columns[t->n_columns++];
    *c = (struct column){
        .name = keep(a, mariadb_cell(r, row, COL_NAME)),
        .sql_type = arena_printf(a, "%s%s", name, is_unsigned ? " unsigned" : ""),
        .type = strcmp(whole, "bit(1)") == 0 ? TYPE_BOOLEAN : type->class,
        .bytes = type->bytes,
        .is_unsigned = is_unsigned || strcmp(name, "bit") == 0,
        .not_null = strcmp(mariadb_cell(r, row, COL_NULLABLE), "NO") == 0,
        .unordered = type->unordered,
        .collation = keep(a, mariadb_cell(r, row, COL_COLLATION)),
        .generated = extra && is_generated(extra),
        .sorts_apart = strcmp(name, "enum") == 0 || strcmp(name, "set") == 0,
        .trims = strcmp(name, "char") == 0,
        .cut_in_indexes = is_cut_in_indexes(name, mariadb_number(r, row, COL_BYTES)),
    };
    if (c->generated)
        c->generated_as = generated_as(a, mariadb_cell(r, row, COL_GENERATED_AS));
    note_collation(c);
    if (c->type == TYPE_TEXT) {
        c->longest = mariadb_number(r, row, COL_LONGEST);
        c->last_character = last_character(c->collation);
    }
    if (c->type == TYPE_ENUM)
        add_labels(a, c, whole);
}

/* A right on a column is told with it; a column without any is not told at all. */
static void fill_columns(struct reading *r, struct table *t, const struct rows *rows, size_t from, size_t to)
{
    t->may_insert = to > from;
    for (size_t i = from; i < to; i++) {
        const char *rights = mariadb_cell(rows, i, COL_RIGHTS);
        push_column(r->facts->arena, t, rows, i);
        t->may_update |= strstr(rights, "update") != NULL;
        t->may_insert &= strstr(rights, "insert") != NULL;
    }
}

/* --- indexes and the key ------------------------------------------------------------------------- */

enum {
    IDX_N,
    IDX_SECONDARY,
    IDX_NAME,
    IDX_PLACE,
    IDX_NOT_UNIQUE,
    IDX_COLUMN,
    IDX_CUT,
    IDX_DIRECTION,
    IDX_TYPE
};
static const char indexes_order[] = ", secondary, INDEX_NAME, place";
static const char indexes_sql[] =
    "SELECT {n} AS n, INDEX_NAME <> 'PRIMARY' AS secondary, INDEX_NAME, SEQ_IN_INDEX AS place, NON_UNIQUE,"
    "       COLUMN_NAME, SUB_PART, COLLATION, INDEX_TYPE "
    "FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table} AND INDEX_TYPE IN ('BTREE', 'HASH')";

/* Which indexes the optimizer passes over. */
static const char *not_ignored(const struct server *s)
{
    if (s->mariadb)
        return s->version >= 1006 ? " AND IGNORED = 'NO'" : "";
    return s->version >= 800 ? " AND IS_VISIBLE = 'YES'" : "";
}

static struct index *push_index(struct arena *a, struct table *t, const struct rows *r, size_t row)
{
    t->indexes = arena_push(a, t->indexes, t->n_indexes, sizeof(*t->indexes));
    struct index *x = &t->indexes[t->n_indexes++];
    *x = (struct index){
        .name = keep(a, mariadb_cell(r, row, IDX_NAME)),
        .unique = mariadb_number(r, row, IDX_NOT_UNIQUE) == 0,
        .primary = mariadb_number(r, row, IDX_SECONDARY) == 0,
    };
    return x;
}

/* A part that holds only the beginning of values counts as an expression: what is unique there may be less
 * than the whole, and it serves no order. So does a column this user cannot see. */
static void push_index_column(struct arena *a, const struct table *t, struct index *x, const struct rows *r,
                              size_t row)
{
    const char *name = mariadb_cell(r, row, IDX_COLUMN), *direction = mariadb_cell(r, row, IDX_DIRECTION);
    bool cut = r->cells[row * r->n_columns + IDX_CUT].kind != VALUE_NULL;
    x->columns = arena_push(a, x->columns, x->n_columns, sizeof(*x->columns));
    x->columns[x->n_columns++] = name && !cut ? column_named(t, name) : NULL;
    x->descends |= direction && *direction == 'D';
}

/* Values of these types do not come back as the literals that find their rows: an enum is compared by its
 * label but sorted by its number, a float is rounded when it is written down. */
static bool is_no_key_type(const struct column *c)
{
    return c->sorts_apart || c->unordered || strncmp(c->sql_type, "float", 5) == 0 ||
           strcmp(c->sql_type, "bit") == 0;
}

static bool tells_rows_apart(const struct index *x)
{
    for (size_t i = 0; i < x->n_columns; i++)
        if (!x->columns[i] || !x->columns[i]->not_null || is_no_key_type(x->columns[i]))
            return false;
    return x->unique;
}

/* The primary key comes first; else the shortest. */
static void find_key(struct table *t)
{
    const struct index *best = NULL;
    for (size_t i = 0; i < t->n_indexes && !(best && best->primary); i++)
        if (tells_rows_apart(&t->indexes[i]) && (!best || t->indexes[i].n_columns < best->n_columns))
            best = &t->indexes[i];
    t->key = best ? best->columns : NULL;
    t->n_key = best ? best->n_columns : 0;
    t->lies_by_key = best && best->primary;
}

static void fill_indexes(struct reading *r, struct table *t, const struct rows *rows, size_t from, size_t to)
{
    struct index *x = NULL;
    for (size_t i = from; i < to; i++) {
        /* One by hash serves no order. A table of another engine is refused for that, not for its key. */
        if (strcmp(mariadb_cell(rows, i, IDX_TYPE), "HASH") == 0 && !t->unsafe_engine)
            continue;
        if (!x || strcmp(x->name, mariadb_cell(rows, i, IDX_NAME)) != 0)
            x = push_index(r->facts->arena, t, rows, i);
        push_index_column(r->facts->arena, t, x, rows, i);
    }
    find_key(t);
}

/* --- CHECK constraints --------------------------------------------------------------------------- */

static const char *checks_sql(const struct server *s)
{
    if (s->mariadb)
        return "SELECT {n} AS n, CHECK_CLAUSE AS what, CONSTRAINT_NAME AS name "
               "FROM information_schema.CHECK_CONSTRAINTS "
               "WHERE CONSTRAINT_SCHEMA = {schema} AND TABLE_NAME = {table}";
    return "SELECT {n} AS n, c.CHECK_CLAUSE AS what, c.CONSTRAINT_NAME AS name "
           "FROM information_schema.TABLE_CONSTRAINTS t JOIN information_schema.CHECK_CONSTRAINTS c "
           "  ON c.CONSTRAINT_SCHEMA = t.CONSTRAINT_SCHEMA AND c.CONSTRAINT_NAME = t.CONSTRAINT_NAME "
           "WHERE t.TABLE_SCHEMA = {schema} AND t.TABLE_NAME = {table} AND t.CONSTRAINT_TYPE = 'CHECK' "
           "  AND t.ENFORCED = 'YES'";
}

/* MariaDB's json is a longtext of which this is checked. */
static void note_json(struct table *t, const char *check)
{
    AUTO(text_release) struct text json = {0};
    for (size_t i = 0; i < t->n_columns; i++) {
        struct column *c = &t->columns[i];
        text_clear(&json);
        text_addf(&json, "json_valid(`%s`)", c->name);
        if (strcmp(check, text_str(&json)) == 0 && strcmp(c->sql_type, "longtext") == 0) {
            c->sql_type = "json";
            c->type = TYPE_OTHER;
            c->unordered = true;
        }
    }
}

static void fill_checks(struct reading *r, struct table *t, const struct rows *rows, size_t from, size_t to)
{
    t->checks = arena_alloc(r->facts->arena, (to - from) * sizeof(*t->checks));
    for (size_t i = from; i < to; i++) {
        const char *check = mariadb_cell(rows, i, 1);
        if (!check)
            continue;
        t->checks[t->n_checks++] = standard_text(r->facts->arena, check);
        note_json(t, check);
    }
}

/* --- triggers ------------------------------------------------------------------------------------ */

static const char triggers_sql[] =
    "SELECT {n} AS n, EVENT_MANIPULATION AS event, TRIGGER_NAME AS name FROM information_schema.TRIGGERS "
    "WHERE EVENT_OBJECT_SCHEMA = {schema} AND EVENT_OBJECT_TABLE = {table}";

/* One cannot keep a row quietly here, but it can change what an UPDATE sets, and write to other tables. */
static void fill_triggers(struct reading *r, struct table *t, const struct rows *rows, size_t from, size_t to)
{
    AUTO(text_release) struct text names = {0};
    for (size_t i = from; i < to; i++) {
        bool deletes = strstr(mariadb_cell(rows, i, 1), "DELETE") != NULL;
        bool updates = strstr(mariadb_cell(rows, i, 1), "UPDATE") != NULL;
        t->delete_hooks |= deletes;
        t->update_hooks |= updates;
        if (deletes || updates)
            text_addf(&names, "%s%s", names.len ? ", " : "", mariadb_cell(rows, i, 2));
    }
    t->hooks = names.len ? arena_strdup(r->facts->arena, text_str(&names)) : NULL;
}

/* --- all together -------------------------------------------------------------------------------- */

typedef void fill_fn(struct reading *r, struct table *t, const struct rows *rows, size_t from, size_t to);

/* Asks about all tables of the facts; each is filled from its rows of the answer. */
static int read_parts(struct reading *r, const struct wanted *list, const char *sql, const char *order,
                      fill_fn *fill, struct err *e)
{
    size_t n = r->facts->n_tables;
    for (size_t from = 0, to; from < n; from = to) {
        AUTO(rows_release) struct rows rows = {0};
        to = from + TABLES_AT_ONCE < n ? from + TABLES_AT_ONCE : n;
        if (ask_for(r->store, sql, order, list, from, to, &rows, e) < 0)
            return -1;
        for (size_t i = 0, end; i < rows.n_rows; i = end) {
            int64_t table = mariadb_number(&rows, i, 0);
            for (end = i + 1; end < rows.n_rows && mariadb_number(&rows, end, 0) == table;)
                end++;
            fill(r, r->facts->tables[table], &rows, i, end);
        }
    }
    return 0;
}

static struct wanted *tables_found(const struct facts *f)
{
    struct wanted *list = arena_alloc(f->arena, (f->n_tables + 1) * sizeof(*list));
    for (size_t i = 0; i < f->n_tables; i++)
        list[i] = (struct wanted){f->tables[i]->schema, f->tables[i]->name};
    return list;
}

/* Columns first: indexes and checks look them up. */
static int read_all_parts(struct reading *r, struct err *e)
{
    const struct wanted *list = tables_found(r->facts);
    AUTO(text_release) struct text indexes = {0};
    text_addf(&indexes, "%s%s", indexes_sql, not_ignored(&r->server));
    if (read_parts(r, list, columns_sql, ", place", fill_columns, e) < 0 ||
        read_parts(r, list, checks_sql(&r->server), ", name", fill_checks, e) < 0 ||
        read_parts(r, list, text_str(&indexes), indexes_order, fill_indexes, e) < 0 ||
        read_parts(r, list, triggers_sql, ", name", fill_triggers, e) < 0)
        return -1;
    return mariadb_read_fkeys(r, e) < 0 ? -1 : mariadb_read_rights(r, e);
}

int mariadb_read_facts(struct sql_store *s, const struct table_names *names, struct facts **ret,
                       struct err *e)
{
    AUTO(facts_free_p) struct facts *f = facts_new();
    struct reading r = {.store = s, .facts = f};
    if (read_server(s, f->arena, &r.server, e) < 0)
        return -1;
    f->ignores_case = r.server.names_fold;
    f->columns_ignore_case = true;
    f->booleans_are_integers = true;
    f->fkeys_act_at_once = true;
    f->backticks = true;
    f->create_index = "CREATE INDEX";
    f->end_of_index = " ALGORITHM=INPLACE LOCK=NONE";
    f->names_indexes = true;
    f->drops_not = "MariaDB drops a partition outside of any transaction, so that nothing could be proved of "
                   "its rows at that moment";
    f->default_schema = r.server.database;
    judge_server(f, &r.server);
    if (mariadb_read_grants(&r, e) < 0)
        return -1;
    size_t n = 0;
    const struct wanted *list = wanted_of(f->arena, &r.server, names, &n);
    if (read_tables(&r, list, n, e) < 0 || (f->n_tables && read_all_parts(&r, e) < 0))
        return -1;
    *ret = f;
    f = NULL;
    return 0;
}

int mariadb_read_tables(struct sql_store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                        struct err *e)
{
    static const char sql[] =
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
        "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') "
        "  AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') "
        "ORDER BY TABLE_SCHEMA, TABLE_NAME";
    AUTO(rows_release) struct rows r = {0};
    if (mariadb_ask(s, sql, NULL, 0, &r, e) < 0)
        return -1;
    struct table_name *list = arena_alloc(a, (r.n_rows + 1) * sizeof(*list));
    for (size_t i = 0; i < r.n_rows; i++) {
        list[i].schema.text = keep(a, mariadb_cell(&r, i, 0));
        list[i].table.text = keep(a, mariadb_cell(&r, i, 1));
    }
    *ret = list;
    *ret_n = r.n_rows;
    return 0;
}
