/* store_sqlite: opening, transactions, errors by kind, on a real file with a second connection beside it. */
#include "sqlite_file.h"

static int open_kind(const char *dsn, bool reading, struct err *e)
{
    struct store *s = NULL;
    if (store_sqlite.open(dsn, reading, &s, e) == 0) {
        store_sqlite.close(s);
        return ERR_NONE;
    }
    assert_null(s);
    return (int)e->kind;
}

static void assert_words(const struct err *e, const char *words)
{
    if (!strstr(e->text, words))
        fail_msg("'%s' does not say '%s'", e->text, words);
}

static void what_cannot_be_opened_says_why(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    char dsn[128];
    for (int reading = 0; reading < 2; reading++) {
        snprintf(dsn, sizeof(dsn), "sqlite:%s/missing", f->folder);
        assert_int_equal(open_kind(dsn, reading, &e), ERR_UNREACHABLE);
        assert_words(&e, "/missing: No such file");
        assert_int_equal(access(dsn + 7, F_OK), -1);

        snprintf(dsn, sizeof(dsn), "sqlite:%s", f->folder);
        assert_int_equal(open_kind(dsn, reading, &e), ERR_UNREACHABLE);
        assert_words(&e, "it is a directory");

        snprintf(dsn, sizeof(dsn), "sqlite:%s/garbage", f->folder);
        FILE *out = fopen(dsn + 7, "w");
        for (int i = 0; i < 4096; i++)
            fputc('x', out);
        fclose(out);
        assert_int_equal(open_kind(dsn, reading, &e), ERR_UNREACHABLE);
        assert_words(&e, "not a database");
        assert_string_equal(e.code, "SQLITE_NOTADB");

        assert_int_equal(open_kind("sqlite:", reading, &e), ERR_USAGE);
        assert_int_equal(open_kind("sqlite::memory:", reading, &e), ERR_UNREACHABLE);
        assert_int_equal(open_kind("sqlite:/dev/null", reading, &e), ERR_UNREACHABLE);
        assert_words(&e, "not a regular file");
    }
}

static void a_path_may_be_written_in_several_ways(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    char dsn[128];
    snprintf(dsn, sizeof(dsn), "sqlite://%s/db", f->folder);
    assert_int_equal(open_kind(dsn, false, &e), ERR_NONE);
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(f->folder), 0);
    assert_int_equal(open_kind("sqlite:db", false, &e), ERR_NONE);
    assert_int_equal(open_kind("sqlite://db", false, &e), ERR_NONE);
    assert_int_equal(open_kind("sqlite:file:db", false, &e), ERR_UNREACHABLE);
    assert_int_equal(chdir(before), 0);
    free(before);
}

static void a_reading_connection_cannot_write(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(a)");
    store_sqlite.close(f->store);
    file_open_store(f, true);
    struct err e = ERR_INIT;
    assert_int_equal(f->sql->engine->begin_write(f->sql, 0, 0, &e), -1);
    assert_int_equal(e.kind, ERR_DATABASE);
    assert_words(&e, "can only be read");
    assert_int_equal(f->sql->engine->begin_read(f->sql, 0, &e), 0);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM t"), 0);
    assert_int_equal(try_sql(f->sql, "DELETE FROM t", NULL, &e), -1);
    assert_string_equal(e.code, "SQLITE_READONLY");
}

static void connections_are_strict(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    assert_int_equal(ask_number(f->sql, "PRAGMA foreign_keys"), 1);
    do_sql(f->sql, "CREATE TABLE t(a)");
    AUTO(stmt_release) struct stmt st = {0};
    static const char *const bad[] = {
        "SELECT 1 FROM t WHERE \"misspelt\" = 1",
        "SELECT 1 FROM t; DELETE FROM t",
        "SELECT 1 FROM t WHERE a = @x",
        "SELECT 1 FROM missing",
        "",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        stmt_clear(&st);
        text_add(&st.sql, bad[i]);
        struct rows rows = {0};
        assert_int_equal(f->sql->engine->accepts(f->sql, &st, &e), -1);
        assert_int_equal(e.kind, ERR_DATABASE);
        assert_int_equal(f->sql->engine->query(f->sql, &st, &rows, &e), -1);
    }
    text_add(&st.sql, "SELECT a FROM t");
    assert_int_equal(f->sql->engine->accepts(f->sql, &st, &e), 0);
}

static void begin(struct file *f)
{
    struct err e = ERR_INIT;
    if (f->sql->engine->begin_write(f->sql, 50 * US_PER_MS, 5 * US_PER_S, &e))
        fail_msg("%s", e.text);
}

static void make_rows(struct file *f)
{
    do_sql(f->sql, "CREATE TABLE t(id INTEGER PRIMARY KEY, s TEXT)");
    do_sql(f->sql, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
}

static void triggers_refuse(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    static const char *const raises[] = {"ABORT", "FAIL", "ROLLBACK"};
    make_rows(f);
    for (size_t i = 0; i < COUNT_OF(raises); i++) {
        AUTO(text_release) struct text sql = {0};
        text_addf(&sql,
                  "CREATE TRIGGER keep BEFORE DELETE ON t WHEN old.id = 2 BEGIN SELECT RAISE(%s, 'no!'); END",
                  raises[i]);
        do_sql(f->sql, text_str(&sql));
        struct err e = ERR_INIT;
        begin(f);
        assert_int_equal(try_sql(f->sql, "DELETE FROM t", NULL, &e), -1);
        assert_int_equal(e.kind, ERR_REFUSED);
        assert_string_equal(e.text, "sqlite SQLITE_CONSTRAINT_TRIGGER: no!");
        assert_string_equal(e.code, "SQLITE_CONSTRAINT_TRIGGER");
        g->rollback(f->sql);
        g->rollback(f->sql);
        assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM t"), 3);
        do_sql(f->sql, "DROP TRIGGER keep");
    }
    do_sql(f->sql, "CREATE TRIGGER keep BEFORE DELETE ON t WHEN old.id = 2 BEGIN SELECT RAISE(IGNORE); END");
    begin(f);
    assert_int_equal(do_sql(f->sql, "DELETE FROM t"), 2);
    g->rollback(f->sql);
}

static void nothing_runs_after_a_trigger_ended_the_transaction(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    struct err e = ERR_INIT;
    make_rows(f);
    do_sql(f->sql,
           "CREATE TRIGGER keep BEFORE DELETE ON t WHEN old.id = 2 BEGIN SELECT RAISE(ROLLBACK, 'no'); END");
    begin(f);
    assert_int_equal(g->mark(f->sql, &e), 0);
    assert_int_equal(try_sql(f->sql, "DELETE FROM t", NULL, &e), -1);
    assert_int_equal(try_sql(f->sql, "DELETE FROM t WHERE id = 1", NULL, &e), -1);
    assert_words(&e, "rolled back");
    assert_int_equal(g->undo(f->sql, &e), -1);
    assert_int_equal(g->settle(f->sql, &e), -1);
    assert_int_equal(g->commit(f->sql, &e), -1);
    g->rollback(f->sql);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM t"), 3);
    begin(f);
    assert_int_equal(do_sql(f->sql, "DELETE FROM t WHERE id = 1"), 1);
    assert_int_equal(g->commit(f->sql, &e), 0);
}

static void triggers_may_quote_strings_loosely(void **state)
{
    struct file *f = *state;
    make_rows(f);
    do_sql(f->sql, "CREATE TABLE log(x)");
    do_sql(f->sql, "CREATE TRIGGER l AFTER DELETE ON t BEGIN "
                   "INSERT INTO log SELECT old.id WHERE old.s = \"a\"; END");
    begin(f);
    assert_int_equal(do_sql(f->sql, "DELETE FROM t"), 3);
    assert_int_equal(f->sql->engine->commit(f->sql, NULL), 0);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM log"), 1);
}

static void foreign_keys_speak_before_commit(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    struct err e = ERR_INIT;
    do_sql(f->sql, "CREATE TABLE p(id INTEGER PRIMARY KEY)");
    do_sql(f->sql, "CREATE TABLE c(p REFERENCES p DEFERRABLE INITIALLY DEFERRED)");
    do_sql(f->sql, "CREATE TABLE n(p REFERENCES p)");
    do_sql(f->sql, "INSERT INTO p VALUES (1), (2)");
    do_sql(f->sql, "INSERT INTO c VALUES (1)");
    do_sql(f->sql, "INSERT INTO n VALUES (2)");
    begin(f);
    assert_int_equal(g->settle(f->sql, &e), 0);
    do_sql(f->sql, "DELETE FROM p WHERE id = 1");
    assert_int_equal(g->settle(f->sql, &e), -1);
    assert_int_equal(e.kind, ERR_REFUSED);
    assert_string_equal(e.text, "sqlite SQLITE_CONSTRAINT_FOREIGNKEY: FOREIGN KEY constraint failed");
    e = (struct err)ERR_INIT;
    assert_int_equal(g->commit(f->sql, &e), -1);
    assert_int_equal(e.kind, ERR_REFUSED);
    do_sql(f->sql, "DELETE FROM c");
    assert_int_equal(g->settle(f->sql, &e), 0);
    assert_int_equal(g->commit(f->sql, &e), 0);
    begin(f);
    assert_int_equal(try_sql(f->sql, "DELETE FROM p", NULL, &e), -1);
    assert_int_equal(e.kind, ERR_REFUSED);
    g->rollback(f->sql);
}

static void a_lock_held_elsewhere_is_busy(void **state)
{
    struct file *f = *state;
    struct file other = *f;
    struct err e = ERR_INIT;
    make_rows(f);
    file_open_store(&other, false);
    begin(f);
    int64_t start = when_monotonic_us();
    assert_int_equal(other.sql->engine->begin_write(other.sql, 100 * US_PER_MS, 0, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    assert_string_equal(e.code, "SQLITE_BUSY");
    assert_true(when_monotonic_us() - start >= 90 * US_PER_MS);
    f->sql->engine->rollback(f->sql);
    assert_int_equal(other.sql->engine->begin_write(other.sql, 100 * US_PER_MS, 0, &e), 0);
    other.sql->engine->rollback(other.sql);

    /* A reader keeps COMMIT from happening (no WAL); the transaction stays open and can be tried again. */
    assert_int_equal(other.sql->engine->begin_read(other.sql, 0, &e), 0);
    assert_int_equal(ask_number(other.sql, "SELECT count(*) FROM t"), 3);
    begin(f);
    do_sql(f->sql, "DELETE FROM t");
    assert_int_equal(f->sql->engine->commit(f->sql, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    other.sql->engine->rollback(other.sql);
    assert_int_equal(f->sql->engine->commit(f->sql, &e), 0);
    assert_int_equal(ask_number(other.sql, "SELECT count(*) FROM t"), 0);
    store_sqlite.close(other.store);
}

static void a_long_statement_times_out(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
    assert_int_equal(f->sql->engine->begin_read(f->sql, 30 * US_PER_MS, &e), 0);
    struct rows rows = {0};
    assert_int_equal(f->sql->engine->query(f->sql, &st, &rows, &e), -1);
    assert_int_equal(e.kind, ERR_TIMEOUT);
    assert_int_equal(ask_number(f->sql, "SELECT 7"), 7); /* each statement has its own time */
    f->sql->engine->rollback(f->sql);
}

static void a_mark_can_be_undone_and_moved(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    struct err e = ERR_INIT;
    make_rows(f);
    begin(f);
    assert_int_equal(g->mark(f->sql, &e), 0);
    do_sql(f->sql, "DELETE FROM t WHERE id = 1");
    assert_int_equal(g->mark(f->sql, &e), 0);
    do_sql(f->sql, "DELETE FROM t WHERE id = 2");
    assert_int_equal(g->undo(f->sql, &e), 0);
    do_sql(f->sql, "DELETE FROM t WHERE id = 3");
    assert_int_equal(g->undo(f->sql, &e), 0);
    assert_int_equal(g->commit(f->sql, &e), 0);
    assert_int_equal(ask_number(f->sql, "SELECT group_concat(id) = '2,3' FROM t"), 1);
}

static void values_come_back_as_they_are(void **state)
{
    struct file *f = *state;
    static const struct value values[] = {
        {.kind = VALUE_NULL},
        {.kind = VALUE_INTEGER, .integer = INT64_MIN},
        {.kind = VALUE_REAL, .real = 0.1},
        {.kind = VALUE_TEXT, .text = "a\0b", .len = 3},
        {.kind = VALUE_TEXT, .text = "", .len = 0},
        {.kind = VALUE_TEXT, .text = "\xff\xfe", .len = 2},
        {.kind = VALUE_BLOB, .text = "\0", .len = 1},
        {.kind = VALUE_BLOB, .text = "", .len = 0},
    };
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "SELECT ");
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        text_add(&st.sql, i ? ", " : "");
        sql_bind(&st, &dialect_sqlite, values[i], NULL);
    }
    AUTO(rows_release) struct rows rows = ask_stmt(f->sql, &st);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        const struct value *a = &values[i], *b = &rows.cells[i];
        assert_int_equal(a->kind, b->kind);
        assert_true(a->integer == b->integer && memcmp(&a->real, &b->real, sizeof(a->real)) == 0);
        assert_int_equal(a->len, b->len);
        assert_true(a->len == 0 || memcmp(a->text, b->text, a->len) == 0);
    }
}

static void functions_say_what_is_wrong(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    assert_int_equal(try_sql(f->sql, "SELECT lapse_instant('2020-01-01 00:00', 'No/Where')", NULL, &e), -1);
    assert_words(&e, "No/Where");
    assert_int_equal(ask_number(f->sql, "SELECT lapse_latest() IS NULL"), 1);
}

static void a_connection_can_be_made_again(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    char moved[64];
    make_rows(f);
    begin(f);
    do_sql(f->sql, "DELETE FROM t");
    snprintf(moved, sizeof(moved), "%s/moved", f->folder);
    assert_int_equal(rename(file_path(f), moved), 0);
    assert_int_equal(store_sqlite.reconnect(f->store, &e), -1);
    assert_int_equal(e.kind, ERR_UNREACHABLE);
    assert_int_equal(f->sql->engine->begin_write(f->sql, 0, 0, &e), -1);
    assert_int_equal(e.kind, ERR_LOST);
    f->sql->engine->rollback(f->sql);
    assert_int_equal(rename(moved, file_path(f)), 0);
    assert_int_equal(store_sqlite.reconnect(f->store, &e), 0);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM t"), 3);
}

static int64_t pages_after_a_look(struct file *f)
{
    struct err e = ERR_INIT;
    struct pressure said;
    assert_int_equal(store_sqlite.pressure(f->store, &said, &e), 0);
    return ask_number(f->sql, "PRAGMA wal_autocheckpoint");
}

/* Whoever writes beside a sweep would wait for a long move of the log. */
static void the_log_is_moved_less_often_while_nobody_else_writes(void **state)
{
    struct file *f = *state;
    struct file other = *f;
    make_rows(f);
    do_sql(f->sql, "PRAGMA journal_mode = WAL");
    file_open_store(&other, false);
    assert_int_equal(pages_after_a_look(f), 1000); /* nothing is known yet */
    do_sql(f->sql, "DELETE FROM t WHERE id = 1");
    assert_int_equal(pages_after_a_look(f), 4000);
    do_sql(other.sql, "DELETE FROM t WHERE id = 2");
    assert_int_equal(pages_after_a_look(f), 1000);
    assert_int_equal(pages_after_a_look(f), 4000);
    store_sqlite.close(other.store);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, file_setup, file_teardown)
    const struct CMUnitTest tests[] = {
        T(what_cannot_be_opened_says_why),
        T(a_path_may_be_written_in_several_ways),
        T(a_reading_connection_cannot_write),
        T(connections_are_strict),
        T(triggers_refuse),
        T(nothing_runs_after_a_trigger_ended_the_transaction),
        T(triggers_may_quote_strings_loosely),
        T(foreign_keys_speak_before_commit),
        T(a_lock_held_elsewhere_is_busy),
        T(a_long_statement_times_out),
        T(a_mark_can_be_undone_and_moved),
        T(values_come_back_as_they_are),
        T(functions_say_what_is_wrong),
        T(a_connection_can_be_made_again),
        T(the_log_is_moved_less_often_while_nobody_else_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
