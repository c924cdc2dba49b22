/* sql_row: statements about one row, word by word. The suites on real databases say whether they are right.
 */
#include "shown.h"
#include "world.h"

#include "store/postgres/store.h"
#include "store/sqlite/store.h"

#define NOW (INT64_C(1718452800) * US_PER_S) /* 2024-06-15T12:00:00Z */

static void add_tables(struct world *w)
{
    w->facts->ignores_case = true;
    add_table(w, NULL, "jobs", "id:integer!, parent_id:integer, state:text, at_ms:integer", "id");
    add_table(w, NULL, "step", "id:integer!, job_id:integer, state:text", "id");
    add_table(w, NULL, "log", "job_id:integer, note:text", "");
}

static struct expr key_of(const struct plan *p, struct value *v)
{
    *v = (struct value){.kind = VALUE_INTEGER, .integer = 42};
    return (struct expr){.kind = EXPR_IN, .column = p->root.table->key[0], .values = v, .n_values = 1};
}

static void a_row_is_judged(void **state)
{
    struct world *w = *state;
    add_tables(w);
    const struct plan *p = make_plan(w, "table: jobs, rows: {state: done}, expires: at_ms", NOW);
    struct value v;
    struct expr key = key_of(p, &v);
    struct inquiry q = {.key = &key, .columns = p->root.table->key, .n_columns = 1};
    q.times = p->times;
    q.n_times = 1;
    q.asked = (const struct expr *[]){p->rows, p->timely};
    q.n_asked = 2;
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(text_release) struct text out = {0};
    sql_judge_row(&s, &dialect_sqlite, p, &q);
    show(&s, '?', &out);
    assert_string_equal(
        text_str(&out),
        "SELECT this.\"id\", CASE typeof(this.\"at_ms\") WHEN 'integer' THEN "
        "max(-9223372036854775, min(9223372036854775, this.\"at_ms\")) * 1000 END, \n"
        "CASE NOT (this.\"state\" = ?1{done}) WHEN FALSE THEN 1 WHEN TRUE THEN 0 END, \n"
        "CASE NOT ((this.\"at_ms\" <= ?2{1718452800000} AND typeof(this.\"at_ms\") = 'integer')) "
        "WHEN FALSE THEN 1 WHEN TRUE THEN 0 END\n"
        " FROM main.\"jobs\" AS this\nWHERE this.\"id\" = ?3{42}\nLIMIT 2");
}

/* What comes after the sets of the row and all it owns. */
static void check_wait(struct world *w, const char *keys, struct wait (*which)(const struct plan *p),
                       const char *expected)
{
    const struct plan *p = make_plan(w, keys, NOW);
    struct value v;
    struct expr key = key_of(p, &v);
    struct wait wait = which(p);
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(text_release) struct text out = {0};
    sql_waits_for(&s, &dialect_sqlite, p, &key, &wait, 5);
    show(&s, '?', &out);
    assert_non_null(strstr(text_str(&out), "FROM main.\"jobs\" AS this WHERE this.\"id\" = ?1{42}"));
    const char *rest = strstr(text_str(&out), "\nSELECT ");
    assert_non_null(rest);
    assert_string_equal(rest, expected);
}

static struct wait after(const struct plan *p)
{
    return (struct wait){WAIT_AFTER, &p->root, NULL, 0, p->root.after[0]};
}

static struct wait with(const struct plan *p)
{
    return (struct wait){WAIT_WITH, &p->root.kids[0], &p->root, 0, NULL};
}

static struct wait below(const struct plan *p)
{
    return (struct wait){WAIT_BELOW, &p->root, NULL, 0, NULL};
}

static void rows_that_it_waits_for(void **state)
{
    struct world *w = *state;
    add_tables(w);
    check_wait(
        w, "table: jobs, expires: at_ms, after: [{ref: step(job_id), where: {state: x}}]", after,
        "\nSELECT lapse_1.\"id\", count(*) OVER () FROM main.\"step\" AS lapse_1 WHERE EXISTS (SELECT 1 FROM "
        "main.\"jobs\" AS this WHERE lapse_1.\"job_id\" = this.\"id\" AND this.\"id\" IN (SELECT c0 FROM "
        "lapse_set_0)) AND lapse_1.\"state\" = ?2{x}\nORDER BY lapse_1.\"id\"\nLIMIT ?3{5}");
    check_wait(
        w, "table: jobs, expires: at_ms, after: [log(job_id)]", after,
        "\nSELECT count(*) OVER () FROM main.\"log\" AS lapse_1 WHERE EXISTS (SELECT 1 FROM main.\"jobs\" AS "
        "this WHERE lapse_1.\"job_id\" = this.\"id\" AND this.\"id\" IN (SELECT c0 FROM lapse_set_0))\n"
        "LIMIT ?2{5}");
    check_wait(
        w, "table: jobs, expires: at_ms, with: [{ref: step(job_id), where: {state: x}}]", with,
        "\nSELECT this.\"id\", count(*) OVER () FROM main.\"step\" AS this WHERE this.\"job_id\" IN (SELECT "
        "c0 "
        "FROM lapse_set_0) AND (this.\"state\" = ?2{x}) IS NOT TRUE\nORDER BY this.\"id\"\nLIMIT ?3{5}");
    check_wait(
        w, "table: jobs, rows: {state: x}, expires: at_ms, with: [jobs(parent_id)]", below,
        "\nSELECT lapse_1.\"id\", count(*) OVER () FROM main.\"jobs\" AS lapse_1 WHERE EXISTS (SELECT 1 FROM "
        "main.\"jobs\" AS this WHERE lapse_1.\"parent_id\" = this.\"id\" AND this.\"id\" IN (SELECT c0 FROM "
        "lapse_set_0)) AND ((lapse_1.\"state\" = ?2{x} AND typeof(lapse_1.\"at_ms\") IN ('integer', 'null') "
        "AND lapse_1.\"at_ms\" IS NOT NULL)) IS NOT TRUE\nORDER BY lapse_1.\"id\"\nLIMIT ?3{5}");
}

static void a_place_in_its_group(void **state)
{
    struct world *w = *state;
    add_tables(w);
    const struct plan *p =
        make_plan(w, "table: jobs, rows: {state: x}, cap: {rows: 5, per: [parent_id], newest: [at_ms]}", NOW);
    struct value v;
    struct expr key = key_of(p, &v);
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(text_release) struct text out = {0};
    sql_rank_row(&s, &dialect_sqlite, p, &key);
    show(&s, '?', &out);
    assert_string_equal(
        text_str(&out),
        "SELECT lapse_2.lapse_n, lapse_2.lapse_of FROM (SELECT lapse_1.\"id\", row_number() OVER ( ORDER BY "
        "lapse_1.\"at_ms\" DESC, lapse_1.\"id\" DESC) AS lapse_n, count(*) OVER () AS lapse_of FROM "
        "main.\"jobs\" AS lapse_1 WHERE lapse_1.\"state\" = ?1{x} AND EXISTS (SELECT 1 FROM main.\"jobs\" AS "
        "this WHERE this.\"id\" = ?2{42} AND (lapse_1.\"parent_id\" = this.\"parent_id\" OR "
        "(lapse_1.\"parent_id\" IS NULL AND this.\"parent_id\" IS NULL)))) AS lapse_2 WHERE lapse_2.\"id\" = "
        "?3{42}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_is_judged, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_place_in_its_group, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(rows_that_it_waits_for, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
