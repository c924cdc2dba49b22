/* facts: names, indexes, findings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "schema/facts.h"

static struct facts *make(void **state)
{
    struct facts *f = facts_new();
    *state = f;
    return f;
}

static int teardown(void **state)
{
    facts_free(*state);
    return 0;
}

static struct table *add_table(struct facts *f, const char *schema, const char *name,
                               const char *const *columns)
{
    struct table *t = arena_alloc(f->arena, sizeof(*t));
    t->schema = schema;
    t->bare = schema && strcmp(schema, "public") == 0;
    t->name = name;
    for (; *columns; columns++) {
        t->columns = arena_push(f->arena, t->columns, t->n_columns, sizeof(*t->columns));
        t->columns[t->n_columns++] = (struct column){.name = *columns};
    }
    f->tables = arena_push(f->arena, f->tables, f->n_tables, sizeof(struct table *));
    f->tables[f->n_tables++] = t;
    return t;
}

static struct index *add_index(struct facts *f, struct table *t, const char *const *columns,
                               const char *predicate)
{
    t->indexes = arena_push(f->arena, t->indexes, t->n_indexes, sizeof(*t->indexes));
    struct index *x = &t->indexes[t->n_indexes++];
    x->partial = predicate != NULL;
    x->predicate = predicate;
    for (; *columns; columns++) {
        x->columns = arena_push(f->arena, x->columns, x->n_columns, sizeof(struct column *));
        x->columns[x->n_columns++] = **columns == '(' ? NULL : column_named(t, *columns);
    }
    return x;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct name bare(const char *s)
{
    return (struct name){.text = s};
}

static struct name quoted(const char *s)
{
    return (struct name){.text = s, .quoted = true};
}

static struct table_name table_of(struct name schema, struct name table)
{
    return (struct table_name){.schema = schema, .table = table};
}

static void names_fold_as_the_engine_folds(void **state)
{
    struct facts *f = make(state);
    struct name users = bare("Users"), as_quoted = quoted("Users");
    assert_true(name_matches(f, &users, "Users"));
    assert_false(name_matches(f, &users, "users"));

    f->folds_lower = true;
    assert_true(name_matches(f, &users, "users"));
    assert_true(name_matches(f, &users, "Users"));
    assert_false(name_matches(f, &users, "USERS"));
    assert_false(name_matches(f, &as_quoted, "users"));
    assert_true(name_matches(f, &as_quoted, "Users"));

    f->folds_lower = false;
    f->ignores_case = true;
    assert_true(name_matches(f, &users, "USERS"));
    assert_false(name_matches(f, &as_quoted, "USERS"));
    assert_false(name_matches(f, &users, "USERS2"));
    assert_false(name_matches(f, &users, "USER"));
}

static void columns_may_fold_where_tables_do_not(void **state)
{
    struct facts *f = make(state);
    f->columns_ignore_case = true;
    struct table *t = add_table(f, NULL, "log", NAMES("Id"));
    const struct name id = bare("ID"), exact = quoted("ID"), log = bare("LOG");
    assert_ptr_equal(table_column(f, t, &id), &t->columns[0]);
    assert_null(table_column(f, t, &exact));
    assert_false(name_matches(f, &log, "log"));
}

static void letters_outside_ascii_do_not_fold(void **state)
{
    struct facts *f = make(state);
    f->ignores_case = true;
    struct name n = bare("\xc3\x84"
                         "b");
    assert_true(name_matches(f, &n,
                             "\xc3\x84"
                             "B"));
    assert_false(name_matches(f, &n,
                              "\xc3\xa4"
                              "b"));
}

static void an_exact_match_wins(void **state)
{
    struct facts *f = make(state);
    f->folds_lower = true;
    f->default_schema = "public";
    struct table *lower = add_table(f, "public", "job", NAMES("id", "Id", "ID"));
    struct table *upper = add_table(f, "public", "Job", NAMES("id"));

    struct table_name n = table_of(bare(NULL), bare("Job"));
    assert_ptr_equal(facts_table(f, &n), upper);
    n = table_of(bare(NULL), bare("JOB"));
    assert_ptr_equal(facts_table(f, &n), lower);
    n = table_of(bare(NULL), quoted("JOB"));
    assert_null(facts_table(f, &n));

    struct name id = bare("ID"), odd = bare("iD"), exact = quoted("iD");
    assert_ptr_equal(table_column(f, lower, &id), &lower->columns[2]);
    assert_ptr_equal(table_column(f, lower, &odd), &lower->columns[0]);
    assert_null(table_column(f, lower, &exact));
}

static void an_unqualified_name_means_what_the_engine_finds_by_it(void **state)
{
    struct facts *f = make(state);
    f->folds_lower = true;
    f->default_schema = "public";
    struct table *audit = add_table(f, "audit", "log", NAMES("id"));
    struct table_name n = table_of(bare(NULL), bare("log"));
    assert_null(facts_table(f, &n));
    struct table *public = add_table(f, "public", "log", NAMES("id"));
    assert_ptr_equal(facts_table(f, &n), public);
    n = table_of(bare("Audit"), bare("log"));
    assert_ptr_equal(facts_table(f, &n), audit);
    n = table_of(quoted("Audit"), bare("log"));
    assert_null(facts_table(f, &n));
}

static void without_schemas_only_main_is_one(void **state)
{
    struct facts *f = make(state);
    f->ignores_case = true;
    struct table *t = add_table(f, NULL, "log", NAMES("id"));
    struct table_name n = table_of(bare(NULL), bare("LOG"));
    assert_ptr_equal(facts_table(f, &n), t);
    n = table_of(bare("Main"), bare("log"));
    assert_ptr_equal(facts_table(f, &n), t);
    n = table_of(bare("temp"), bare("log"));
    assert_null(facts_table(f, &n));
}

static void key_columns(void **state)
{
    struct facts *f = make(state);
    struct table *t = add_table(f, NULL, "t", NAMES("a", "b", "c"));
    const struct column *key[] = {&t->columns[2], &t->columns[0]};
    t->key = key;
    t->n_key = 2;
    assert_true(table_is_key_column(t, &t->columns[0]));
    assert_false(table_is_key_column(t, &t->columns[1]));
    assert_true(table_is_key_column(t, &t->columns[2]));
    assert_null(column_named(t, "A"));
}

static void an_index_leads_with_the_columns_in_any_order(void **state)
{
    struct facts *f = make(state);
    struct table *t = add_table(f, NULL, "t", NAMES("a", "b", "c"));
    const struct column *a[] = {&t->columns[0]}, *ab[] = {&t->columns[0], &t->columns[1]};
    const struct column *b[] = {&t->columns[1]}, *abc[] = {&t->columns[0], &t->columns[1], &t->columns[2]};

    assert_null(table_index_on(t, a, 1));
    add_index(f, t, NAMES("(lower(a))", "a"), NULL);
    assert_null(table_index_on(t, a, 1));
    add_index(f, t, NAMES("b", "a"), NULL);
    assert_null(table_index_on(t, a, 1));
    assert_ptr_equal(table_index_on(t, b, 1), &t->indexes[1]);
    assert_ptr_equal(table_index_on(t, ab, 2), &t->indexes[1]);
    assert_null(table_index_on(t, abc, 3));
}

static bool serves(struct facts *f, const char *predicate)
{
    struct table *t = add_table(f, NULL, "t", NAMES("a", "b c", "z"));
    add_index(f, t, NAMES("a", "b c"), predicate);
    const struct column *both[] = {&t->columns[0], &t->columns[1]};
    return table_index_on(t, both, 2) != NULL;
}

static void a_partial_index_serves_if_it_leaves_out_only_nulls(void **state)
{
    struct facts *f = make(state);
    static const char *const good[] = {
        "a IS NOT NULL", "(a IS NOT NULL)", "((a IS NOT NULL) AND (\"b c\" IS NOT NULL))",
        "A notnull",     "`a` not null",    " [b c] is\nnot null and(a)is not null ",
    };
    static const char *const bad[] = {
        "a IS NULL",
        "z IS NOT NULL",
        "a IS NOT NULL OR z IS NOT NULL",
        "a IS NOT NULL AND z = 1",
        "NOT a IS NOT NULL",
        "a IS NOT NULLX",
        "\"a IS NOT NULL",
        "a",
        "",
        "(a IS NOT NULL) AND",
        "a > 0",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!serves(f, good[i]))
            fail_msg("should serve: %s", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (serves(f, bad[i]))
            fail_msg("should not serve: %s", bad[i]);
}

static void a_doubled_quote_is_part_of_a_name(void **state)
{
    struct facts *f = make(state);
    struct table *t = add_table(f, NULL, "t", NAMES("a\"b"));
    add_index(f, t, NAMES("a\"b"), "\"a\"\"b\" IS NOT NULL");
    const struct column *c[] = {&t->columns[0]};
    assert_non_null(table_index_on(t, c, 1));
}

static void findings_are_copied_and_errors_counted(void **state)
{
    struct facts *f = make(state);
    struct findings list = {.arena = f->arena};
    char policy[] = "jobs", fix[] = "do it";
    findings_add(&list, FINDING_WARNING, policy, (struct place){3, 5}, fix, "table '%s' has %d", "t", 7);
    findings_add(&list, FINDING_ERROR, NULL, (struct place){0}, NULL, "bad");
    memset(policy, 'x', 4);
    memset(fix, 'x', 5);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.errors, 1);
    assert_string_equal(list.list[0].policy, "jobs");
    assert_string_equal(list.list[0].fix, "do it");
    assert_string_equal(list.list[0].what, "table 't' has 7");
    assert_int_equal(list.list[0].at.line, 3);
    assert_null(list.list[1].policy);
    assert_string_equal(list.list[1].fix, "");
}

static void actions_have_names(void **state)
{
    (void)state;
    assert_string_equal(on_delete_name(ON_DELETE_NO_ACTION), "ON DELETE NO ACTION");
    assert_string_equal(on_delete_name(ON_DELETE_SET_DEFAULT), "ON DELETE SET DEFAULT");
}

static void a_key_of_the_table_itself(void **state)
{
    (void)state;
    const struct table plain = {.name = "t"}, in = {.schema = "s", .name = "t"};
    assert_true(fkey_is_own(&plain, &(struct fkey){.child_table = "t"}));
    assert_false(fkey_is_own(&plain, &(struct fkey){.child_table = "u"}));
    assert_true(fkey_is_own(&in, &(struct fkey){.child_schema = "s", .child_table = "t"}));
    assert_false(fkey_is_own(&in, &(struct fkey){.child_schema = "x", .child_table = "t"}));
    assert_false(fkey_is_own(&in, &(struct fkey){.child_table = "t"}));
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, teardown)
    const struct CMUnitTest tests[] = {
        T(names_fold_as_the_engine_folds),
        T(letters_outside_ascii_do_not_fold),
        T(columns_may_fold_where_tables_do_not),
        T(an_exact_match_wins),
        T(an_unqualified_name_means_what_the_engine_finds_by_it),
        T(without_schemas_only_main_is_one),
        T(key_columns),
        T(an_index_leads_with_the_columns_in_any_order),
        T(a_partial_index_serves_if_it_leaves_out_only_nulls),
        T(a_doubled_quote_is_part_of_a_name),
        T(findings_are_copied_and_errors_counted),
        cmocka_unit_test(a_key_of_the_table_itself),
        cmocka_unit_test(actions_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
