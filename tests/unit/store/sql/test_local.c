/* What dialects share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "store/sqlite/store.h"

static void write_number(struct stmt *s, int64_t i)
{
    text_addf(&s->sql, "%lld", (long long)i);
}

static void check_within(const struct local_bound *b, bool within, const char *expected)
{
    AUTO(stmt_release) struct stmt s = {0};
    sql_within(&s, &dialect_sqlite, "t", b, within, write_number);
    assert_string_equal(text_str(&s.sql), expected);
}

static void test_within(void **state)
{
    (void)state;
    const struct local_bound plain = {5, 0, 0}, hole = {9, 3, 6};
    check_within(&plain, true, "t < 5");
    check_within(&plain, false, "t >= 5");
    check_within(&hole, true, "t < 9 AND NOT (t >= 3 AND t < 6)");
    check_within(&hole, false, "t >= 3 AND NOT (t >= 6 AND t < 9)");
}

static void check_days(struct local_bound us, int64_t below, int64_t hole_from, int64_t hole_to)
{
    struct local_bound b = sql_bound_days(us);
    assert_int_equal(b.below, below);
    assert_int_equal(b.hole_from, hole_from);
    assert_int_equal(b.hole_to, hole_to);
}

/* A day is within if its midnight is. */
static void test_days(void **state)
{
    (void)state;
    const int64_t day = US_PER_DAY;
    check_days((struct local_bound){2 * day, 0, 0}, 2, 0, 0);
    check_days((struct local_bound){2 * day + 1, 0, 0}, 3, 0, 0);
    check_days((struct local_bound){-1, 0, 0}, 0, 0, 0);
    check_days((struct local_bound){5 * day, 2 * day, 3 * day}, 5, 2, 3);
    check_days((struct local_bound){5 * day, 2 * day + 1, 2 * day + 5}, 5, 3, 3); /* no midnight in it */
    check_days((struct local_bound){3 * day, 2 * day, 3 * day}, 2, 0, 0);         /* up to the end */
}

static void test_bounds_are_those_of_the_zone(void **state)
{
    (void)state;
    const struct time_column t = {.encoding = TIME_LOCAL};
    assert_int_equal(sql_bound_of(&t, CMP_LT, 7).below, 7);
    assert_int_equal(sql_bound_of(&t, CMP_GE, 7).below, 7);
    assert_int_equal(sql_bound_of(&t, CMP_LE, 7).below, 8);
    assert_int_equal(sql_bound_of(&t, CMP_GT, 7).below, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within),
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_bounds_are_those_of_the_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
