/* catalog_sqlite: facts of real schemas. */
#include "sqlite_file.h"

static struct name bare(const char *s)
{
    return (struct name){.text = s};
}

static struct facts *inspect(struct file *f, const char *schema, const char *const *tables)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    struct table_names names = {0};
    for (; *tables; tables++) {
        struct table_name *n = arena_alloc(a, sizeof(*n));
        n->schema = bare(schema);
        n->table = bare(*tables);
        names.list = arena_push(a, names.list, names.n, sizeof(*names.list));
        names.list[names.n++] = n;
    }
    struct facts *facts = NULL;
    struct err e = ERR_INIT;
    if (sqlite_inspect(f->store, &names, &facts, &e))
        fail_msg("%s", e.text);
    return facts;
}

static struct facts *inspect_one(struct file *f, const char *table)
{
    return inspect(f, NULL, (const char *const[]){table, NULL});
}

static void names_match_in_any_case_and_once(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE Jobs(id INTEGER PRIMARY KEY)");
    do_sql(f->sql, "CREATE TABLE \"odd \"\" name\"(id INTEGER PRIMARY KEY)");
    AUTO(facts_free_p)
    struct facts *facts =
        inspect(f, "MAIN", (const char *const[]){"jobs", "JOBS", "missing", "odd \" name", NULL});
    assert_int_equal(facts->n_tables, 2);
    assert_string_equal(facts->tables[0]->name, "Jobs");
    assert_null(facts->tables[0]->schema);
    assert_string_equal(facts->tables[0]->print, "Jobs");
    assert_string_equal(facts->tables[1]->print, "\"odd \"\" name\"");
    assert_true(facts->ignores_case && !facts->folds_lower && !facts->default_schema);
    AUTO(facts_free_p) struct facts *none = inspect(f, "temp", (const char *const[]){"jobs", NULL});
    assert_int_equal(none->n_tables, 0);
}

static void columns_have_the_class_of_their_affinity(void **state)
{
    struct file *f = *state;
    do_sql(f->sql,
           "CREATE TABLE t(a INT, b VARCHAR(10) NOT NULL COLLATE NOCASE, c DATETIME, d, e BLOB, f DOUBLE, "
           "g BOOLEAN, h DECIMAL(3,1), i BIGINT, j TIMESTAMP, k AS (a + 1), l CLOB, m REAL AS (1.0) STORED)");
    AUTO(facts_free_p) struct facts *facts = inspect_one(f, "t");
    const struct table *t = facts->tables[0];
    static const enum type_class types[] = {
        TYPE_INTEGER, TYPE_TEXT,    TYPE_DYNAMIC, TYPE_DYNAMIC, TYPE_BLOB, TYPE_REAL, TYPE_BOOLEAN,
        TYPE_DYNAMIC, TYPE_INTEGER, TYPE_DYNAMIC, TYPE_DYNAMIC, TYPE_TEXT, TYPE_REAL,
    };
    assert_int_equal(t->n_columns, COUNT_OF(types));
    for (size_t i = 0; i < COUNT_OF(types); i++)
        assert_int_equal(t->columns[i].type, types[i]);
    assert_string_equal(t->columns[1].sql_type, "VARCHAR(10)");
    assert_string_equal(t->columns[1].collation, "NOCASE");
    assert_true(t->columns[1].not_null);
    assert_null(t->columns[0].collation);
    assert_string_equal(t->columns[3].sql_type, "");
    assert_int_equal(t->n_key, 0);
    assert_true(t->may_select && t->may_delete && t->may_update);
}

static void some_columns_keep_what_comes(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(a INT, b, c BLOB, d ANY, e TEXT, f UUID)");
    do_sql(f->sql, "CREATE TABLE s(a INT, b ANY, c BLOB) STRICT");
    static const bool loose[] = {false, true, true, false, false, false}, strict[] = {false, true, false};
    AUTO(facts_free_p) struct facts *t = inspect_one(f, "t"), *s = inspect_one(f, "s");
    for (size_t i = 0; i < COUNT_OF(loose); i++)
        assert_int_equal(t->tables[0]->columns[i].any_class, loose[i]);
    for (size_t i = 0; i < COUNT_OF(strict); i++)
        assert_int_equal(s->tables[0]->columns[i].any_class, strict[i]);
}

/* The key's columns, "a,b"; "?" behind it if it may be NULL; "-": none. */
static void assert_key(struct file *f, const char *create, const char *expected)
{
    do_sql(f->sql, create);
    AUTO(facts_free_p) struct facts *facts = inspect_one(f, "t");
    const struct table *t = facts->tables[0];
    AUTO(text_release) struct text key = {0};
    for (size_t i = 0; i < t->n_key; i++)
        text_addf(&key, "%s%s", i ? "," : "", t->key[i]->name);
    text_add(&key, t->n_key ? "" : "-");
    text_add(&key, t->key_may_be_null ? "?" : "");
    if (strcmp(text_str(&key), expected) != 0)
        fail_msg("%s: key %s instead of %s", create, text_str(&key), expected);
    do_sql(f->sql, "DROP TABLE t");
}

static void keys(void **state)
{
    struct file *f = *state;
    assert_key(f, "CREATE TABLE t(id INTEGER PRIMARY KEY, x)", "id");
    assert_key(f, "CREATE TABLE t(id INTEGER PRIMARY KEY DESC, x)", "id?");
    assert_key(f, "CREATE TABLE t(x, id TEXT PRIMARY KEY)", "id?");
    assert_key(f, "CREATE TABLE t(x, id TEXT PRIMARY KEY NOT NULL)", "id");
    assert_key(f, "CREATE TABLE t(x, id TEXT PRIMARY KEY) WITHOUT ROWID", "id");
    assert_key(f, "CREATE TABLE t(x ANY, id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID", "id");
    assert_key(f, "CREATE TABLE t(a NOT NULL, b NOT NULL, PRIMARY KEY (b, a))", "b,a");
    assert_key(f, "CREATE TABLE t(a, b NOT NULL, PRIMARY KEY (b, a)) WITHOUT ROWID", "b,a");
    assert_key(f, "CREATE TABLE t(a NOT NULL, b NOT NULL, c NOT NULL UNIQUE, UNIQUE (a, b))", "c");
    assert_key(f, "CREATE TABLE t(a UNIQUE, b NOT NULL, c NOT NULL, UNIQUE (c, b))", "c,b");
    assert_key(f, "CREATE TABLE t(a UNIQUE, b)", "-");
    assert_key(f, "CREATE TABLE t(a, b)", "-");
    assert_key(f, "CREATE TABLE t(a TEXT COLLATE NOCASE PRIMARY KEY NOT NULL)", "a");
    /* Unique byte by byte, compared without case: two rows would answer to one key. */
    assert_key(f, "CREATE TABLE t(a TEXT COLLATE NOCASE NOT NULL, UNIQUE (a COLLATE BINARY))", "-");
}

static void partial_or_computed_indexes_are_no_key(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(a NOT NULL, b NOT NULL)");
    do_sql(f->sql, "CREATE UNIQUE INDEX p ON t(a) WHERE b > 0");
    do_sql(f->sql, "CREATE UNIQUE INDEX x ON t(lower(a))");
    AUTO(facts_free_p) struct facts *facts = inspect_one(f, "t");
    assert_int_equal(facts->tables[0]->n_key, 0);
}

static const struct index *index_named(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n_indexes; i++)
        if (strcmp(t->indexes[i].name, name) == 0)
            return &t->indexes[i];
    fail_msg("no index %s", name);
    return NULL;
}

static void indexes(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b INT, c TEXT COLLATE NOCASE)");
    do_sql(f->sql, "CREATE INDEX ab ON t(a, b DESC)");
    do_sql(f->sql, "CREATE INDEX x ON t(lower(a), b)");
    do_sql(f->sql, "CREATE INDEX foreign_collation ON t(a COLLATE NOCASE)");
    do_sql(f->sql, "CREATE INDEX own_collation ON t(c)");
    do_sql(f->sql, "CREATE INDEX \"where ( is\" ON t(b /* WHERE ( */) -- where\n WHERE (b) IS NOT NULL");
    do_sql(f->sql, "CREATE INDEX p ON t(a) WHERE b = 1");
    AUTO(facts_free_p) struct facts *facts = inspect_one(f, "t");
    const struct table *t = facts->tables[0];
    const struct column *id[] = {&t->columns[0]}, *a[] = {&t->columns[1]}, *b[] = {&t->columns[2]};
    const struct column *c[] = {&t->columns[3]}, *ba[] = {&t->columns[2], &t->columns[1]};
    assert_int_equal(t->n_indexes, 7);
    assert_true(table_index_on(t, id, 1)->primary);
    assert_string_equal(table_index_on(t, a, 1)->name, "ab");
    assert_string_equal(table_index_on(t, ba, 2)->name, "ab");
    assert_string_equal(table_index_on(t, b, 1)->name, "where ( is");
    assert_string_equal(table_index_on(t, c, 1)->name, "own_collation");
    assert_string_equal(index_named(t, "p")->predicate, "b = 1");
    assert_string_equal(index_named(t, "where ( is")->predicate, "(b) IS NOT NULL");
    assert_null(index_named(t, "x")->columns[0]);
    assert_ptr_equal(index_named(t, "x")->columns[1], b[0]);
    assert_null(index_named(t, "foreign_collation")->columns[0]);
}

static void foreign_keys_that_point_here(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE P(a TEXT, b INT, u INT UNIQUE, PRIMARY KEY (b, a))");
    do_sql(f->sql, "CREATE TABLE c1(x INT, y TEXT, FOREIGN KEY (x, y) REFERENCES p ON DELETE CASCADE)");
    do_sql(f->sql, "CREATE TABLE c2(x INT REFERENCES p(U) ON DELETE SET NULL, z INT REFERENCES other(id))");
    do_sql(f->sql, "CREATE TABLE c3(x INT REFERENCES p(gone), s INT REFERENCES c3(x))");
    AUTO(facts_free_p) struct facts *facts = inspect(f, NULL, (const char *const[]){"p", "c3", NULL});
    struct table_name name = {.table = bare("p")}, self = {.table = bare("c3")};
    const struct table *t = facts_table(facts, &name), *c3 = facts_table(facts, &self);
    assert_int_equal(t->n_fkeys_in, 2);
    const struct fkey *k = &t->fkeys_in[0];
    assert_string_equal(k->child_table, "c1");
    assert_int_equal(k->n, 2);
    assert_int_equal(k->action, ON_DELETE_CASCADE);
    assert_string_equal(k->child_columns[0], "x");
    assert_string_equal(k->parent_columns[0], "b");
    assert_string_equal(k->child_columns[1], "y");
    assert_string_equal(k->parent_columns[1], "a");
    assert_string_equal(t->fkeys_in[1].parent_columns[0], "u");
    assert_int_equal(t->fkeys_in[1].action, ON_DELETE_SET_NULL);
    assert_int_equal(c3->n_fkeys_in, 1);
    assert_string_equal(c3->fkeys_in[0].child_table, "c3");
    assert_int_equal(c3->fkeys_in[0].action, ON_DELETE_NO_ACTION);
}

static void triggers_are_hooks(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(id INTEGER PRIMARY KEY)");
    do_sql(f->sql, "CREATE TABLE u(id INTEGER PRIMARY KEY)");
    do_sql(f->sql, "CREATE TRIGGER x BEFORE Delete ON T BEGIN SELECT RAISE(IGNORE); END");
    do_sql(f->sql, "CREATE TRIGGER y BEFORE UPDATE OF id ON u BEGIN SELECT RAISE(IGNORE); END");
    AUTO(facts_free_p) struct facts *facts = inspect(f, NULL, (const char *const[]){"t", "u", NULL});
    assert_true(facts->tables[0]->delete_hooks && !facts->tables[0]->update_hooks);
    assert_true(!facts->tables[1]->delete_hooks && facts->tables[1]->update_hooks);
}

static void kinds_and_the_list(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, x)");
    do_sql(f->sql, "CREATE VIEW v AS SELECT id, x FROM t");
    do_sql(f->sql, "CREATE VIEW broken AS SELECT id FROM gone");
    do_sql(f->sql, "CREATE VIRTUAL TABLE words USING fts5(body)");
    AUTO(facts_free_p)
    struct facts *facts =
        inspect(f, NULL, (const char *const[]){"t", "v", "broken", "words", "words_data", NULL});
    assert_int_equal(facts->n_tables, 5);
    static const enum table_kind kinds[] = {KIND_VIEW, KIND_TABLE, KIND_VIEW, KIND_VIRTUAL, KIND_VIRTUAL};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        assert_int_equal(facts->tables[i]->kind, kinds[i]);
    assert_int_equal(facts->tables[2]->n_columns, 2);

    AUTO(arena_free_p) struct arena *a = arena_new();
    struct table_name *list = NULL;
    size_t n = 0;
    struct err e = ERR_INIT;
    assert_int_equal(sqlite_list_tables(f->store, a, &list, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(list[0].table.text, "t");
    assert_null(list[0].schema.text);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, file_setup, file_teardown)
    const struct CMUnitTest tests[] = {
        T(names_match_in_any_case_and_once),
        T(columns_have_the_class_of_their_affinity),
        T(some_columns_keep_what_comes),
        T(keys),
        T(partial_or_computed_indexes_are_no_key),
        T(indexes),
        T(foreign_keys_that_point_here),
        T(triggers_are_hooks),
        T(kinds_and_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
