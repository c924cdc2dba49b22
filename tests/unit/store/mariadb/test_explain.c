/* store_mariadb_explain: which lines of EXPLAIN are a range in the order of the index, and how they are told.
 */
#include "world.h"

#include "store/mariadb/store.h"

static void says(const char *type, const char *key, const char *extra, bool range, const char *words)
{
    struct mariadb_access a = {type, key, key, extra};
    AUTO(text_release) struct text t = {0};
    mariadb_access_words(&a, &t);
    assert_string_equal(text_str(&t), words);
    assert_int_equal(mariadb_reads_range(&a), range);
}

static void a_range_is_one(void **state)
{
    (void)state;
    says("range", "jobs_at", "Using where; Using index", true,
         "EXPLAIN says type range, key jobs_at, Using where; Using index");
    says("range", "jobs_at", "", true, "EXPLAIN says type range, key jobs_at");
    says("const", "PRIMARY", NULL, true, "EXPLAIN says type const, key PRIMARY");
}

static void nothing_to_be_read_is_no_trouble(void **state)
{
    (void)state;
    says(NULL, NULL, "Impossible WHERE", true, "EXPLAIN says type NULL, Impossible WHERE");
}

static void what_reads_more_than_is_due_is_none(void **state)
{
    (void)state;
    says("ALL", NULL, "Using where", false, "EXPLAIN says type ALL, Using where");
    says("ref", "jobs_state_at", "Using where", false,
         "EXPLAIN says type ref, key jobs_state_at, Using where");
    says("index_merge", "a,b", "Using union(a,b); Using where", false,
         "EXPLAIN says type index_merge, key a,b, Using union(a,b); Using where");
}

/* MySQL of an empty table: it could, and need not. */
static void a_whole_index_is_read_by_choice_or_for_want_of_a_range(void **state)
{
    (void)state;
    struct mariadb_access a = {"index", NULL, "jobs_at", "Using where"};
    assert_false(mariadb_reads_range(&a));
    a.possible = "jobs_at";
    assert_true(mariadb_reads_range(&a));
    a.extra = "Using where; Using filesort";
    assert_false(mariadb_reads_range(&a));
}

static void what_is_sorted_is_none(void **state)
{
    (void)state;
    says("range", "jobs_at", "Using where; Using filesort", false,
         "EXPLAIN says type range, key jobs_at, Using where; Using filesort");
}

static void lines_are_told_one_after_the_other(void **state)
{
    (void)state;
    AUTO(text_release) struct text t = {0};
    mariadb_access_words(&(struct mariadb_access){.type = "ALL"}, &t);
    mariadb_access_words(&(struct mariadb_access){.type = "range", .key = "x"}, &t);
    assert_string_equal(text_str(&t), "EXPLAIN says type ALL; EXPLAIN says type range, key x");
}

/* Only what is explained is held to the index: what is carried out is the optimizer's to decide. */
static void the_explained_statement_is_held_to_the_index(void **state)
{
    struct world *w = *state;
    AUTO(stmt_release) struct stmt s = {0};
    struct table *t = add_table(w, "app", "jobs", "id:integer!, at:timestamptz", "id");
    add_index(w, t, "at", NULL);
    t->indexes[0].name = "jobs_at";
    struct plan *p = make_plan(w, "table: app.jobs, expires: at", US_PER_DAY);
    sql_scout(&s, &dialect_mariadb, p, NULL, 1000);
    assert_null(strstr(text_str(&s.sql), "INDEX"));
    stmt_clear(&s);
    sql_scout_by_index(&s, &dialect_mariadb, p, NULL, 1000);
    assert_non_null(strstr(text_str(&s.sql), "`app`.`jobs` AS this FORCE INDEX (`jobs_at`)\nWHERE "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_one),
        cmocka_unit_test(nothing_to_be_read_is_no_trouble),
        cmocka_unit_test(what_reads_more_than_is_due_is_none),
        cmocka_unit_test(a_whole_index_is_read_by_choice_or_for_want_of_a_range),
        cmocka_unit_test(what_is_sorted_is_none),
        cmocka_unit_test(lines_are_told_one_after_the_other),
        cmocka_unit_test_setup_teardown(the_explained_statement_is_held_to_the_index, world_setup,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
