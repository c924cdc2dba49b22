/* store_sqlite_ties: rows by runs of their keys go as they would by SQLite's own hand, whatever hangs on
 * them. */
#include "sqlite_file.h"

static struct column id = {.name = "id", .type = TYPE_INTEGER, .sql_type = "INTEGER"};
static const struct column *key[] = {&id};
static struct index by_key = {
    .name = "rowid", .columns = key, .n_columns = 1, .unique = true, .primary = true};
static struct table parents = {
    .name = "p", .kind = KIND_TABLE, .indexes = &by_key, .n_indexes = 1, .key = key, .n_key = 1};
static const struct node node = {.table = &parents, .carry = key, .n_carry = 1};

enum { SET_MOST = 8 }; /* 1 to 8, of 20 */

static void fill_set(struct sql_store *s, struct keyset *set)
{
    set->node = &node;
    set->rows.n_columns = 1;
    for (int64_t i = 1; i <= SET_MOST; i++)
        rows_push(&set->rows, &(struct value){.kind = VALUE_INTEGER, .integer = i});
    s->sets = set;
    s->n_sets = 1;
}

/* The statement, for the rows 1 to 8. */
static int by_runs(struct sql_store *s, struct by_runs_one *one, struct err *e)
{
    struct keyset set = {0};
    struct by_runs b = {.list = one, .n = 1};
    fill_set(s, &set);
    int rc = s->engine->execute_by_runs(s, &b, e);
    rows_release(&set.rows);
    s->sets = NULL;
    s->n_sets = 0;
    return rc;
}

static int delete_parents(struct sql_store *s, int64_t *ret, struct err *e)
{
    struct by_runs_one one = {.table = &parents};
    assert_true(sql_delete_set_by_runs(&one.st, &dialect_sqlite, &node));
    assert_ptr_equal(one.st.runs_of, &id);
    int rc = by_runs(s, &one, e);
    *ret = one.rows;
    stmt_release(&one.st);
    return rc;
}

/* All of it: what is in the tables that each of these databases has. */
static void write_down(struct sql_store *s, struct text *out)
{
    static const char *const all[] = {
        "SELECT group_concat(id || '/' || coalesce(u, '-'), ' ') FROM (SELECT * FROM p ORDER BY id)",
        "SELECT group_concat(quote(x), ' ') FROM (SELECT x FROM c ORDER BY rowid)"};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        AUTO(stmt_release) struct stmt st = {0};
        text_add(&st.sql, all[i]);
        AUTO(rows_release) struct rows rows = ask_stmt(s, &st);
        text_addf(out, "%s; ", rows.cells[0].text ? rows.cells[0].text : "");
    }
}

/* As lapse has it, or as SQLite does by itself. Returns whether it went through. */
static bool outcome(const char *const *schema, bool by_hand, struct text *out)
{
    void *state = NULL;
    struct err e = ERR_INIT;
    assert_int_equal(file_setup(&state), 0);
    struct file *f = state;
    const struct engine *g = f->sql->engine;
    do_sql(f->sql, "CREATE TABLE p(id INTEGER PRIMARY KEY, u INTEGER UNIQUE REFERENCES p)");
    do_sql(f->sql, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
                   " INSERT INTO p SELECT i, NULL FROM n");
    for (size_t i = 0; schema[i]; i++)
        do_sql(f->sql, schema[i]);
    int64_t gone = 0;
    assert_int_equal(g->begin_write(f->sql, 0, 5 * US_PER_S, &e), 0);
    int rc = by_hand ? try_sql(f->sql, "DELETE FROM p WHERE id BETWEEN 1 AND 8", &gone, &e)
                     : delete_parents(f->sql, &gone, &e);
    if (rc == 0)
        rc = g->settle(f->sql, &e);
    assert_int_equal(ask_number(f->sql, "PRAGMA foreign_keys"), 1);
    if (rc) {
        text_addf(out, "%s; ", e.text);
        g->rollback(f->sql);
    } else {
        assert_int_equal(g->commit(f->sql, &e), 0);
    }
    write_down(f->sql, out);
    text_addf(out, "%lld", rc ? -1LL : (long long)gone);
    assert_int_equal(file_teardown(&state), 0);
    return rc == 0;
}

static void rows_go_as_sqlite_lets_them(void **state)
{
    (void)state;
    static const struct {
        const char *schema[5];
        bool goes;
    } cases[] = {
        {{"CREATE TABLE c(x)"}, true},
        {{"CREATE TABLE c(x INTEGER REFERENCES p)", "INSERT INTO c VALUES (9), (20), (NULL)"}, true},
        {{"CREATE TABLE c(x INTEGER REFERENCES p)", "INSERT INTO c VALUES (9), (3)"}, false},
        {{"CREATE TABLE c(x INTEGER REFERENCES p)", "CREATE INDEX cx ON c(x)", "INSERT INTO c VALUES (8)"},
         false},
        {{"CREATE TABLE c(x BIGINT REFERENCES P(ID))", "INSERT INTO c VALUES (1)"}, false},
        {{"CREATE TABLE c(x TEXT REFERENCES p)", "INSERT INTO c VALUES ('3')"}, false},
        {{"CREATE TABLE c(x TEXT REFERENCES p)", "INSERT INTO c VALUES ('12')"}, true},
        {{"CREATE TABLE c(x REFERENCES p)", "INSERT INTO c VALUES ('3')"}, false},
        {{"CREATE TABLE c(x INTEGER REFERENCES p ON DELETE CASCADE)", "INSERT INTO c VALUES (3), (4), (12)"},
         true},
        {{"CREATE TABLE c(x INTEGER REFERENCES p ON DELETE SET NULL)", "INSERT INTO c VALUES (3), (4), (12)"},
         true},
        {{"CREATE TABLE c(x INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED)", "INSERT INTO c VALUES (3)"},
         false},
        {{"CREATE TABLE c(x INTEGER REFERENCES p(u))", "UPDATE p SET u = 17 WHERE id = 5",
          "INSERT INTO c VALUES (17)"},
         false},
        {{"CREATE TABLE c(x INTEGER, y INTEGER, FOREIGN KEY (x, y) REFERENCES p(id, u))",
          "CREATE UNIQUE INDEX both ON p(id, u)", "UPDATE p SET u = 17 WHERE id = 5",
          "INSERT INTO c VALUES (5, 17)"},
         false},
        /* of which SQLite lets no row go, whether any refers to it or not */
        {{"CREATE TABLE c(x INTEGER, y INTEGER, FOREIGN KEY (x, y) REFERENCES p)"}, false},
        {{"DROP TABLE p", "CREATE TABLE p(id INTEGER, u INTEGER)", "INSERT INTO p VALUES (1, 1), (9, 9)",
          "CREATE TABLE c(x INTEGER REFERENCES p(id))"},
         false},
        {{"CREATE TABLE c(x)", "UPDATE p SET u = 3 WHERE id = 15"}, false},
        {{"CREATE TABLE c(x)", "UPDATE p SET u = 3 WHERE id = 4"}, true}, /* both go */
        {{"CREATE TABLE c(x)", "CREATE TRIGGER kept BEFORE DELETE ON p WHEN old.id = 4"
                               " BEGIN SELECT RAISE(IGNORE); END"},
         true},
        {{"CREATE TABLE c(x)", "CREATE TRIGGER told AFTER DELETE ON P BEGIN"
                               " INSERT INTO c VALUES (old.id), (\"text\"); END"},
         true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text by_us = {0}, by_hand = {0};
        bool went = outcome(cases[i].schema, false, &by_us);
        assert_int_equal(outcome(cases[i].schema, true, &by_hand), cases[i].goes);
        if (went != cases[i].goes || strcmp(text_str(&by_us), text_str(&by_hand)) != 0)
            fail_msg("%s: %s, not %s", cases[i].schema[0], text_str(&by_us), text_str(&by_hand));
    }
}

/* More than one question can ask about. */
static void many_may_refer(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    struct err e = ERR_INIT;
    int64_t gone;
    do_sql(f->sql, "CREATE TABLE p(id INTEGER PRIMARY KEY)");
    do_sql(f->sql, "INSERT INTO p VALUES (1), (2), (3), (9)");
    for (int i = 0; i < 1200; i++) {
        char sql[80];
        snprintf(sql, sizeof(sql), "CREATE TABLE c%d(x INTEGER REFERENCES p)", i);
        do_sql(f->sql, sql);
    }
    do_sql(f->sql, "INSERT INTO c1199 VALUES (3)");
    assert_int_equal(g->begin_write(f->sql, 0, 0, &e), 0);
    assert_int_equal(delete_parents(f->sql, &gone, &e), -1);
    assert_int_equal(e.kind, ERR_REFUSED);
    g->rollback(f->sql);
    do_sql(f->sql, "DELETE FROM c1199");
    assert_int_equal(g->begin_write(f->sql, 0, 0, &e), 0);
    assert_int_equal(delete_parents(f->sql, &gone, &e), 0);
    assert_int_equal(gone, 3);
    g->rollback(f->sql);
}

/* What was found out of a schema holds only as long as it does. */
static void a_schema_that_changes_is_asked_again(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    struct file other = *f;
    struct err e = ERR_INIT;
    int64_t gone;
    do_sql(f->sql, "CREATE TABLE p(id INTEGER PRIMARY KEY)");
    do_sql(f->sql, "INSERT INTO p VALUES (1), (2), (3), (9)");
    assert_int_equal(g->begin_write(f->sql, 0, 0, &e), 0);
    assert_int_equal(delete_parents(f->sql, &gone, &e), 0);
    assert_int_equal(gone, 3);
    assert_int_equal(g->commit(f->sql, &e), 0);

    file_open_store(&other, false);
    do_sql(other.sql, "CREATE TABLE late(p INTEGER REFERENCES p)");
    do_sql(other.sql, "INSERT INTO p VALUES (5), (6)");
    do_sql(other.sql, "INSERT INTO late VALUES (5)");
    assert_int_equal(g->begin_write(f->sql, 0, 0, &e), 0);
    assert_int_equal(delete_parents(f->sql, &gone, &e), -1);
    assert_int_equal(e.kind, ERR_REFUSED);
    g->rollback(f->sql);
    do_sql(other.sql, "DROP TABLE late");
    do_sql(other.sql, "CREATE TRIGGER kept BEFORE DELETE ON p BEGIN SELECT RAISE(IGNORE); END");
    assert_int_equal(g->begin_write(f->sql, 0, 0, &e), 0);
    assert_int_equal(delete_parents(f->sql, &gone, &e), 0);
    assert_int_equal(gone, 0);
    assert_int_equal(g->commit(f->sql, &e), 0);
    store_sqlite.close(other.store);
}

/* Owned rows, found by the numbers of those that own them: what only lies between two of them stays. */
static void nothing_between_two_numbers_goes(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    struct err e = ERR_INIT;
    static struct column of = {.name = "of", .type = TYPE_INTEGER, .sql_type = "INTEGER"};
    static const struct column *reference[] = {&of};
    static struct index by_reference = {.name = "kid_of", .columns = reference, .n_columns = 1};
    static struct table kids = {.name = "kid", .kind = KIND_TABLE, .indexes = &by_reference, .n_indexes = 1};
    struct node kid = {.table = &kids, .set = -1};
    kid.join = (struct join){.child = reference, .parent = key, .n = 1};
    do_sql(f->sql, "CREATE TABLE kid(name TEXT, of INTEGER)");
    do_sql(f->sql, "CREATE INDEX kid_of ON kid(of)");
    do_sql(f->sql, "INSERT INTO kid VALUES ('a', 1), ('b', 8), ('c', 8.0), ('d', '2'),"
                   " ('-', 0), ('-', 9), ('-', 1.5), ('-', 7.999), ('-', NULL), ('-', '2x'), ('-', x'32')");
    struct by_runs_one one = {.table = &kids};
    assert_true(sql_delete_kids_by_runs(&one.st, &dialect_sqlite, &node, &kid));
    AUTO(text_release) struct text plan = {0};
    ask_plan(f->sql, &one.st, &plan);
    assert_non_null(strstr(text_str(&plan), "USING INDEX kid_of (of>? AND of<?)"));
    assert_int_equal(g->begin_write(f->sql, 0, 0, &e), 0);
    assert_int_equal(by_runs(f->sql, &one, &e), 0);
    assert_int_equal(one.rows, 4);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM kid WHERE name <> '-'"), 0);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM kid"), 7);
    g->rollback(f->sql);

    /* a column that holds texts by now, which as texts lie between '1' and '8' */
    do_sql(f->sql, "DROP TABLE kid");
    do_sql(f->sql, "CREATE TABLE kid(name TEXT, of TEXT)");
    do_sql(f->sql, "CREATE INDEX kid_of ON kid(of)");
    do_sql(f->sql, "INSERT INTO kid VALUES ('a', '1'), ('b', '8'), ('-', '10'), ('-', '50'), ('-', '4000'),"
                   " ('-', '7.5'), ('-', '5x')");
    assert_int_equal(g->begin_write(f->sql, 0, 0, &e), 0);
    assert_int_equal(by_runs(f->sql, &one, &e), 0);
    assert_int_equal(one.rows, 2);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM kid WHERE name <> '-'"), 0);
    g->rollback(f->sql);
    stmt_release(&one.st);
}

/* One that ends early leaves foreign keys as they were. */
static void they_are_enforced_after_a_failure(void **state)
{
    struct file *f = *state;
    const struct engine *g = f->sql->engine;
    struct err e = ERR_INIT;
    do_sql(f->sql, "CREATE TABLE p(id INTEGER PRIMARY KEY, u INTEGER REFERENCES p)");
    do_sql(f->sql, "CREATE TABLE lone(id INTEGER, p INTEGER REFERENCES p)");
    do_sql(f->sql, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
                   " INSERT INTO lone SELECT i, NULL FROM n");
    AUTO(stmt_release) struct stmt st = {0};
    struct table lone = {.name = "lone", .kind = KIND_TABLE};
    text_add(&st.sql,
             "DELETE FROM lone WHERE id IN (SELECT a.id FROM lone a, lone b, lone c WHERE a.id + b.id"
             " + c.id < 0)");
    st.deletes = &lone;
    int64_t gone;
    assert_int_equal(g->begin_write(f->sql, 0, 20 * US_PER_MS, &e), 0);
    assert_int_equal(g->execute(f->sql, &st, &gone, &e), -1);
    assert_int_equal(e.kind, ERR_TIMEOUT);
    g->rollback(f->sql);
    assert_int_equal(ask_number(f->sql, "PRAGMA foreign_keys"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_go_as_sqlite_lets_them),
        cmocka_unit_test_setup_teardown(many_may_refer, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(a_schema_that_changes_is_asked_again, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(nothing_between_two_numbers_goes, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(they_are_enforced_after_a_failure, file_setup, file_teardown),
    };
    return cmocka_run_group_tests_name("store_sqlite_ties", tests, NULL, NULL);
}
