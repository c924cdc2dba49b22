/* catalog: what SQLite's catalog says -> facts. */
#include "store/sqlite/store.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* One query with at most one text parameter, written where the SQL says %. */
static int ask(struct sql_store *s, const char *sql, const char *name, struct rows *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    for (const char *p = sql; *p; p++) {
        if (*p == '%')
            sql_bind_text(&st, &dialect_sqlite, name, NULL);
        else
            text_add_n(&st.sql, p, 1);
    }
    if (s->engine->query(s, &st, ret, e))
        return err_wrap(e, "reading the schema");
    return 0;
}

static const char *copy(struct facts *f, const struct value *v)
{
    return v->kind == VALUE_TEXT ? arena_strndup(f->arena, v->text, v->len) : arena_strdup(f->arena, "");
}

static struct column *column_in_any_case(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (strcasecmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

static void push_column(struct facts *f, const struct column ***list, size_t *n, const struct column *c)
{
    *list = arena_push(f->arena, *list, *n, sizeof(**list));
    (*list)[(*n)++] = c;
}

/* --- columns ----------------------------------------------------------------------------------- */

/* SQLite's own rules of affinity, in their order; within NUMERIC, a column may hold anything. */
static enum type_class class_of(const char *declared)
{
    static const struct {
        const char *part;
        enum type_class type;
    } rules[] = {
        {"INT", TYPE_INTEGER}, {"CHAR", TYPE_TEXT}, {"CLOB", TYPE_TEXT}, {"TEXT", TYPE_TEXT},
        {"BLOB", TYPE_BLOB},   {"REAL", TYPE_REAL}, {"FLOA", TYPE_REAL}, {"DOUB", TYPE_REAL},
    };
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (strcasestr(declared, rules[i].part))
            return rules[i].type;
    return strcasestr(declared, "BOOL") ? TYPE_BOOLEAN : TYPE_DYNAMIC;
}

/* What a column says of its place in the primary key (from 1; 0: none) is needed until the key is known. */
struct reading {
    struct sql_store *s;
    struct facts *f;
    struct table *t;
    int64_t *key_place; /* per column */
    bool without_rowid;
    bool strict;
    bool has_primary_index;
    bool integer_key; /* INTEGER PRIMARY KEY: the rowid itself */
};

/* hidden: 1 in a virtual table, 2 and 3 generated */
enum { COL_NAME, COL_TYPE, COL_NOT_NULL, COL_KEY_PLACE, COL_GENERATED };
static const char columns_sql[] = "SELECT name, type, \"notnull\", pk, hidden > 1 "
                                  "FROM pragma_table_xinfo(%, 'main') WHERE hidden <> 1 ORDER BY cid";

/* Whether a column keeps values as they come: it has no affinity, and nothing says what it may hold. */
static bool keeps_any_class(const struct column *c, bool strict)
{
    if (strict)
        return strcasecmp(c->sql_type, "ANY") == 0;
    return !*c->sql_type || c->type == TYPE_BLOB;
}

/* Of those that an application brought along nobody knows what they do. */
static void note_collation(struct column *c)
{
    c->folds = c->collation && strcasecmp(c->collation, "RTRIM") != 0;
    c->pads = c->collation && strcasecmp(c->collation, "NOCASE") != 0;
}

static int read_columns(struct reading *r, struct err *e)
{
    AUTO(rows_release) struct rows rows = {0};
    if (ask(r->s, columns_sql, r->t->name, &rows, e))
        return -1;
    struct facts *f = r->f;
    r->t->columns = arena_alloc(f->arena, rows.n_rows * sizeof(*r->t->columns));
    r->key_place = arena_alloc(f->arena, rows.n_rows * sizeof(*r->key_place));
    for (size_t i = 0; i < rows.n_rows; i++) {
        const struct value *v = rows_at(&rows, i);
        struct column *c = &r->t->columns[r->t->n_columns++];
        c->name = copy(f, &v[COL_NAME]);
        c->sql_type = copy(f, &v[COL_TYPE]);
        c->type = class_of(c->sql_type);
        c->any_class = keeps_any_class(c, r->strict);
        c->not_null = v[COL_NOT_NULL].integer != 0;
        c->generated = v[COL_GENERATED].integer != 0;
        const char *collation = sqlite_collation(r->s, r->t->name, c->name);
        c->collation = collation ? arena_strdup(f->arena, collation) : NULL;
        note_collation(c);
        r->key_place[i] = v[COL_KEY_PLACE].integer;
    }
    return 0;
}

/* --- indexes ----------------------------------------------------------------------------------- */

static const char *skip_quoted(const char *p)
{
    char close = *p == '[' ? ']' : *p;
    for (p++; *p; p++)
        if (*p == close && (close == ']' || *++p != close))
            return close == ']' ? p + 1 : p;
    return p;
}

static const char *skip_comment(const char *p)
{
    const char *close = *p == '-' ? "\n" : "*/";
    const char *end = strstr(p, close);
    if (end == p + 1) /* the star of the opening itself, in slash star slash */
        end = strstr(end + 1, close);
    return end ? end + strlen(close) : p + strlen(p);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* What follows the first WHERE outside parentheses, quotes and comments; NULL: none. Every turn of the loop
 * moves on by at least one character. */
static const char *text_after_where(const char *sql)
{
    int depth = 0;
    for (const char *p = sql; *p;) {
        if (strchr("\"'`[", *p)) {
            p = skip_quoted(p);
        } else if (strncmp(p, "--", 2) == 0 || strncmp(p, "/*", 2) == 0) {
            p = skip_comment(p);
        } else if (is_word(*p)) {
            const char *word = p;
            while (is_word(*p))
                p++;
            if (depth == 0 && p - word == 5 && strncasecmp(word, "WHERE", 5) == 0)
                return p + strspn(p, " \t\r\n");
        } else {
            depth += (*p == '(') - (*p == ')');
            p++;
        }
    }
    return NULL;
}

static bool same_collation(const char *a, const char *b)
{
    return strcasecmp(a ? a : "BINARY", b ? b : "BINARY") == 0;
}

enum { IDX_NAME, IDX_UNIQUE, IDX_ORIGIN, IDX_PARTIAL, IDX_SQL, IDX_COLUMN, IDX_COLLATION };
static const char indexes_sql[] =
    "SELECT l.name, l.\"unique\", l.origin, l.partial, m.sql, x.name, x.coll "
    "FROM pragma_index_list(%, 'main') l JOIN pragma_index_xinfo(l.name, 'main') x "
    "LEFT JOIN main.sqlite_schema m ON m.type = 'index' AND m.name = l.name "
    "WHERE x.key ORDER BY l.seq, x.seqno";

static struct index *push_index(struct reading *r, const char *name)
{
    struct table *t = r->t;
    t->indexes = arena_push(r->f->arena, t->indexes, t->n_indexes, sizeof(*t->indexes));
    struct index *x = &t->indexes[t->n_indexes++];
    x->name = name;
    return x;
}

static struct index *start_index(struct reading *r, const struct value *v)
{
    struct index *x = push_index(r, copy(r->f, &v[IDX_NAME]));
    x->unique = v[IDX_UNIQUE].integer != 0;
    x->primary = strcmp(v[IDX_ORIGIN].text, "pk") == 0;
    x->partial = v[IDX_PARTIAL].integer != 0;
    if (x->partial)
        x->predicate = text_after_where(copy(r->f, &v[IDX_SQL]));
    r->has_primary_index = r->has_primary_index || x->primary;
    return x;
}

/* An index in another collation than the column's does not serve comparisons of the column: that part of it
 * counts as an expression. */
static void add_index_column(struct reading *r, struct index *x, const struct value *v)
{
    const struct column *c = v[IDX_COLUMN].kind == VALUE_TEXT ? column_named(r->t, v[IDX_COLUMN].text) : NULL;
    const char *collation = v[IDX_COLLATION].kind == VALUE_TEXT ? v[IDX_COLLATION].text : NULL;
    if (c && !same_collation(collation, c->collation))
        c = NULL;
    push_column(r->f, &x->columns, &x->n_columns, c);
}

static int read_indexes(struct reading *r, struct err *e)
{
    AUTO(rows_release) struct rows rows = {0};
    if (ask(r->s, indexes_sql, r->t->name, &rows, e))
        return -1;
    struct index *x = NULL;
    for (size_t i = 0; i < rows.n_rows; i++) {
        const struct value *v = rows_at(&rows, i);
        if (!x || strcmp(x->name, v[IDX_NAME].text) != 0)
            x = start_index(r, v);
        add_index_column(r, x, v);
    }
    return 0;
}

/* --- the key ----------------------------------------------------------------------------------- */

static struct column *key_column_at(const struct reading *r, int64_t place)
{
    for (size_t i = 0; i < r->t->n_columns; i++)
        if (r->key_place[i] == place)
            return &r->t->columns[i];
    return NULL;
}

/* A primary key of one column without an index of its own is the rowid; it acts as an index. */
static void note_integer_key(struct reading *r)
{
    struct column *c = key_column_at(r, 1);
    if (!c || r->has_primary_index || r->without_rowid)
        return;
    r->integer_key = true;
    c->not_null = true;
    struct index *x = push_index(r, "INTEGER PRIMARY KEY");
    x->unique = x->primary = true;
    push_column(r->f, &x->columns, &x->n_columns, c);
}

/* Rows are found again by comparing in the column's own collation: a key that is unique only in another one
 * (its column is then NULL in the index) could mean two rows. */
static bool tells_rows_apart(const struct index *x)
{
    for (size_t i = 0; i < x->n_columns; i++)
        if (!x->columns[i])
            return false;
    return x->unique && !x->partial;
}

static bool all_not_null(const struct index *x)
{
    for (size_t i = 0; i < x->n_columns; i++)
        if (!x->columns[i]->not_null)
            return false;
    return true;
}

static const struct index *find_key(const struct table *t)
{
    const struct index *best = NULL;
    for (size_t i = 0; i < t->n_indexes; i++) {
        const struct index *x = &t->indexes[i];
        if (!tells_rows_apart(x))
            continue;
        if (x->primary)
            return x;
        if (all_not_null(x) && (!best || x->n_columns < best->n_columns))
            best = x;
    }
    return best;
}

/* The primary key in the order it was declared, else a unique key. A rowid nobody declared is no key: VACUUM
 * may change it. */
static void find_table_key(struct reading *r)
{
    const struct index *x = find_key(r->t);
    if (!x)
        return;
    r->t->key = x->columns;
    r->t->n_key = x->n_columns;
    r->t->key_may_be_null = !all_not_null(x);
    r->t->lies_by_key = x->primary && (r->integer_key || r->without_rowid);
}

/* --- CHECK constraints and generated columns ---------------------------------------------------- */

/* The text of CREATE TABLE as it was written. A definition is what stands between two commas inside the outer
 * parentheses: a column with its constraints, or a constraint of the table. */
struct ddl {
    struct reading *r;
    const char *first; /* the first word of the definition: the column's name, if it is one */
    size_t first_len;
};

static struct column *column_written(const struct reading *r, const char *s, size_t len)
{
    bool quoted = len > 2 && strchr("\"'`[", *s);
    AUTO(text_release) struct text name = {0};
    text_add_n(&name, quoted ? s + 1 : s, quoted ? len - 2 : len);
    return column_in_any_case(r->t, text_str(&name));
}

/* What stands in the parentheses that open at p; *end goes behind them. */
static const char *in_parentheses(struct arena *a, const char *p, const char **end)
{
    const char *from = p + 1;
    int depth = 0;
    do {
        if (strchr("\"'`[", *p))
            p = skip_quoted(p);
        else if (strncmp(p, "--", 2) == 0 || strncmp(p, "/*", 2) == 0)
            p = skip_comment(p);
        else
            depth += (*p == '(') - (*p == ')'), p++;
    } while (*p && depth);
    *end = p;
    return depth ? "" : arena_strndup(a, from, (size_t)(p - from) - 1);
}

static const char *skip_blanks(const char *p)
{
    while (isspace((unsigned char)*p) || strncmp(p, "--", 2) == 0 || strncmp(p, "/*", 2) == 0)
        p = isspace((unsigned char)*p) ? p + 1 : skip_comment(p);
    return p;
}

/* A word of a definition, and what it brings: CHECK (…), AS (…). Returns where to go on. */
static const char *take_word(struct ddl *d, const char *word, const char *end)
{
    struct table *t = d->r->t;
    struct arena *a = d->r->f->arena;
    size_t len = (size_t)(end - word);
    bool check = len == 5 && strncasecmp(word, "CHECK", 5) == 0;
    bool generated = len == 2 && strncasecmp(word, "AS", 2) == 0;
    const char *open = skip_blanks(end);
    if (!d->first) {
        d->first = word;
        d->first_len = len;
    }
    if ((!check && !generated) || *open != '(')
        return end;
    const char *inside = in_parentheses(a, open, &end);
    struct column *c = generated ? column_written(d->r, d->first, d->first_len) : NULL;
    if (c)
        c->generated_as = inside;
    if (check) {
        t->checks = arena_push(a, t->checks, t->n_checks, sizeof(*t->checks));
        t->checks[t->n_checks++] = inside;
    }
    return end;
}

/* Every turn of the loop moves on by at least one character. */
static void read_ddl(struct reading *r, const char *sql)
{
    struct ddl d = {.r = r};
    int depth = 0;
    for (const char *p = skip_blanks(sql); *p; p = skip_blanks(p)) {
        const char *end = p + 1;
        bool quoted = strchr("\"'`[", *p) != NULL;
        if (quoted)
            end = skip_quoted(p);
        while (!quoted && is_word(*p) && is_word(*end))
            end++;
        if (depth == 1 && (quoted || is_word(*p)))
            end = take_word(&d, p, end);
        else if (depth == (*p == ',') && (*p == '(' || *p == ','))
            d.first = NULL;
        if (!quoted)
            depth += (*p == '(') - (*p == ')');
        p = end;
    }
}

static int read_checks(struct reading *r, struct err *e)
{
    AUTO(rows_release) struct rows rows = {0};
    if (ask(r->s, "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = %", r->t->name, &rows,
            e))
        return -1;
    if (rows.n_rows && rows.cells[0].kind == VALUE_TEXT)
        read_ddl(r, rows.cells[0].text);
    return 0;
}

/* --- foreign keys and triggers ----------------------------------------------------------------- */

enum { FK_CHILD, FK_ID, FK_PARENT, FK_FROM, FK_TO, FK_ACTION };
static const char fkeys_sql[] = "SELECT m.name, f.id, f.\"table\", f.\"from\", f.\"to\", f.on_delete "
                                "FROM main.sqlite_schema m JOIN pragma_foreign_key_list(m.name, 'main') f "
                                "WHERE m.type = 'table' ORDER BY m.name, f.id, f.seq";

static enum on_delete action_of(const char *words)
{
    for (int a = ON_DELETE_NO_ACTION; a <= ON_DELETE_SET_DEFAULT; a++)
        if (strcmp(words, on_delete_name((enum on_delete)a) + strlen("ON DELETE ")) == 0)
            return (enum on_delete)a;
    return ON_DELETE_NO_ACTION;
}

/* The parent's column: as named, else the primary key's at this place. */
static const struct column *parent_column(const struct reading *r, const struct value *to, size_t i)
{
    return to->kind == VALUE_TEXT ? column_in_any_case(r->t, to->text) : key_column_at(r, (int64_t)i + 1);
}

static bool same_fkey(const struct value *a, const struct value *b)
{
    return strcmp(a[FK_CHILD].text, b[FK_CHILD].text) == 0 && a[FK_ID].integer == b[FK_ID].integer;
}

/* The rows from `from` on that make one foreign key; n of them. One that names columns the parent does not
 * have is left out: SQLite itself refuses every DELETE then ("foreign key mismatch"). */
static void add_fkey(struct reading *r, const struct rows *rows, size_t from, size_t n)
{
    struct arena *a = r->f->arena;
    const struct value *first = rows_at(rows, from);
    struct fkey k = {
        .name = "",
        .child_table = copy(r->f, &first[FK_CHILD]),
        .child_columns = arena_alloc(a, n * sizeof(char *)),
        .parent_columns = arena_alloc(a, n * sizeof(char *)),
        .n = n,
        .action = action_of(first[FK_ACTION].text),
    };
    for (size_t i = 0; i < n; i++) {
        const struct value *v = rows_at(rows, from + i);
        const struct column *c = parent_column(r, &v[FK_TO], i);
        if (!c)
            return;
        k.child_columns[i] = copy(r->f, &v[FK_FROM]);
        k.parent_columns[i] = c->name;
    }
    struct table *t = r->t;
    t->fkeys_in = arena_push(a, t->fkeys_in, t->n_fkeys_in, sizeof(*t->fkeys_in));
    t->fkeys_in[t->n_fkeys_in++] = k;
}

static void find_fkeys(struct reading *r, const struct rows *fkeys)
{
    for (size_t i = 0, n; i < fkeys->n_rows; i += n) {
        for (n = 1; i + n < fkeys->n_rows && same_fkey(rows_at(fkeys, i), rows_at(fkeys, i + n));)
            n++;
        if (strcasecmp(rows_at(fkeys, i)[FK_PARENT].text, r->t->name) == 0)
            add_fkey(r, fkeys, i, n);
    }
}

/* Any trigger whose text mentions the event: a BEFORE trigger can keep a row quietly, with RAISE(IGNORE), an
 * AFTER trigger can put it back. */
static const char triggers_sql[] =
    "SELECT total(instr(lower(sql), 'delete')), total(instr(lower(sql), 'update')) FROM main.sqlite_schema "
    "WHERE type = 'trigger' AND tbl_name = % COLLATE NOCASE";

static int read_triggers(struct reading *r, struct err *e)
{
    AUTO(rows_release) struct rows rows = {0};
    if (ask(r->s, triggers_sql, r->t->name, &rows, e))
        return -1;
    r->t->delete_hooks = rows.cells[0].real > 0;
    r->t->update_hooks = rows.cells[1].real > 0;
    return 0;
}

/* --- tables ------------------------------------------------------------------------------------ */

enum { TAB_NAME, TAB_KIND, TAB_WITHOUT_ROWID, TAB_STRICT };
static const char tables_sql[] = "SELECT name, type, wr, strict FROM pragma_table_list "
                                 "WHERE schema = 'main' AND name NOT IN ('sqlite_schema', 'sqlite_master') "
                                 "ORDER BY name";

/* A virtual table's shadow tables are its own business: SQLite keeps us from writing to them. */
static enum table_kind kind_of(const char *word)
{
    if (strcmp(word, "table") == 0)
        return KIND_TABLE;
    return strcmp(word, "view") == 0 ? KIND_VIEW : KIND_VIRTUAL;
}

static const char *print_name(struct facts *f, const char *name)
{
    AUTO(text_release) struct text t = {0};
    table_name_print(&(struct table_name){.table = {.text = name}}, &t);
    return arena_strdup(f->arena, text_str(&t));
}

static int read_table(struct reading *r, const struct rows *fkeys, struct err *e)
{
    if (r->t->kind != KIND_TABLE) {
        struct err ignored = ERR_INIT; /* a view on a missing table, a module that is not loaded */
        read_columns(r, &ignored);
        return 0;
    }
    if (read_columns(r, e) || read_indexes(r, e) || read_checks(r, e) || read_triggers(r, e))
        return -1;
    note_integer_key(r);
    find_table_key(r);
    find_fkeys(r, fkeys);
    return 0;
}

static struct table *push_table(struct facts *f, const struct value *v)
{
    struct table *t = arena_alloc(f->arena, sizeof(*t));
    t->name = copy(f, &v[TAB_NAME]);
    t->kind = kind_of(v[TAB_KIND].text);
    t->print = print_name(f, t->name);
    t->may_select = t->may_delete = t->may_update = t->may_insert = true;
    f->tables = arena_push(f->arena, f->tables, f->n_tables, sizeof(struct table *));
    f->tables[f->n_tables++] = t;
    return t;
}

static bool asked_for(const struct facts *f, const struct table_names *names, const char *table)
{
    for (size_t i = 0; i < names->n; i++) {
        const struct table_name *n = names->list[i];
        bool here = !n->schema.text || name_matches(f, &n->schema, "main");
        if (here && name_matches(f, &n->table, table))
            return true;
    }
    return false;
}

static int fill(struct sql_store *s, const struct table_names *names, struct facts *f, struct err *e)
{
    AUTO(rows_release) struct rows tables = {0}, fkeys = {0};
    if (ask(s, tables_sql, NULL, &tables, e) || ask(s, fkeys_sql, NULL, &fkeys, e))
        return -1;
    for (size_t i = 0; i < tables.n_rows; i++) {
        const struct value *v = rows_at(&tables, i);
        if (!asked_for(f, names, v[TAB_NAME].text))
            continue;
        struct reading r = {.s = s,
                            .f = f,
                            .t = push_table(f, v),
                            .without_rowid = v[TAB_WITHOUT_ROWID].integer != 0,
                            .strict = v[TAB_STRICT].integer != 0};
        if (read_table(&r, &fkeys, e))
            return err_wrap(e, "table %s", r.t->print);
    }
    return 0;
}

int sqlite_inspect(struct store *s, const struct table_names *names, struct facts **ret, struct err *e)
{
    AUTO(facts_free_p) struct facts *f = facts_new();
    f->ignores_case = true;
    f->booleans_are_integers = true;
    f->fkeys_act_at_once = true;
    f->one_writer = f->restricts_at_once = true;
    f->create_index = "CREATE INDEX";
    f->names_indexes = true;
    f->drops_not = "SQLite has no partitions";
    if (fill((struct sql_store *)s, names, f, e))
        return -1;
    *ret = f;
    f = NULL;
    return 0;
}

int sqlite_list_tables(struct store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                       struct err *e)
{
    AUTO(rows_release) struct rows tables = {0};
    if (ask((struct sql_store *)s, tables_sql, NULL, &tables, e))
        return -1;
    struct table_name *list = NULL;
    size_t n = 0;
    for (size_t i = 0; i < tables.n_rows; i++) {
        const struct value *v = rows_at(&tables, i);
        if (kind_of(v[TAB_KIND].text) != KIND_TABLE || strncasecmp(v[TAB_NAME].text, "sqlite_", 7) == 0)
            continue;
        list = arena_push(a, list, n, sizeof(*list));
        list[n++].table.text = arena_strndup(a, v[TAB_NAME].text, v[TAB_NAME].len);
    }
    *ret = list;
    *ret_n = n;
    return 0;
}
