/* sql_partition: statements about one partition, word by word. */
#include "world.h"

#include "store/postgres/store.h"

static const struct partition part = {.schema = "s",
                                      .name = "ev \"1\"",
                                      .up_schema = "s",
                                      .up_name = "ev",
                                      .rest_schema = "r",
                                      .rest_name = "rest"};

static const struct plan *planned(struct world *w)
{
    add_table(w, "s", "ev", "id, at_ms, state", "id, at_ms");
    return make_plan(w, "table: s.ev, expires: at_ms, rows: { state: done }", 7000);
}

static void every_row_is_judged(void **state)
{
    struct world *w = *state;
    const struct plan *p = planned(w);
    AUTO(stmt_release) struct stmt s = {0};
    sql_partition_alive(&s, &dialect_postgres, p, &part);
    const char *where = strstr(text_str(&s.sql), "WHERE ");
    assert_ptr_equal(strstr(text_str(&s.sql), "SELECT 1 FROM \"s\".\"ev \"\"1\"\"\" AS this\nWHERE "),
                     text_str(&s.sql));
    assert_non_null(strstr(where, " IS NOT TRUE\nLIMIT 1"));
    sql_partition_count(&s, &dialect_postgres, p, &part);
    const char *sql = text_str(&s.sql);
    assert_ptr_equal(strstr(sql, "SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE "), sql);
    assert_non_null(strstr(sql, ") FROM \"s\".\"ev \"\"1\"\"\" AS this"));
    assert_null(strstr(sql, "LIMIT"));
    assert_int_equal(s.n_params, 2);
}

static void locks_are_not_waited_for(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    sql_partition_lock(&s, &dialect_postgres, &part);
    assert_string_equal(text_str(&s.sql), "LOCK TABLE \"s\".\"ev \"\"1\"\"\" IN EXCLUSIVE MODE NOWAIT");
    sql_partition_seize(&s, &dialect_postgres, &part);
    assert_string_equal(text_str(&s.sql),
                        "LOCK TABLE ONLY \"s\".\"ev\", \"s\".\"ev \"\"1\"\"\", ONLY \"r\".\"rest\" IN "
                        "ACCESS EXCLUSIVE MODE NOWAIT");
    struct partition alone = part;
    alone.rest_name = NULL;
    sql_partition_seize(&s, &dialect_postgres, &alone);
    assert_string_equal(
        text_str(&s.sql),
        "LOCK TABLE ONLY \"s\".\"ev\", \"s\".\"ev \"\"1\"\"\" IN ACCESS EXCLUSIVE MODE NOWAIT");
    sql_partition_drop(&s, &dialect_postgres, &part);
    assert_string_equal(text_str(&s.sql), "DROP TABLE \"s\".\"ev \"\"1\"\"\" RESTRICT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_is_judged, world_setup, world_teardown),
        cmocka_unit_test(locks_are_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
