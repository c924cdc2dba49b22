/* retry: pauses grow, end when asked to, and connections are had again. */
#include "store/retry.h"

#include "sqlite_file.h"

static bool yes(void *context)
{
    ++*(int *)context;
    return true;
}

static void pauses_grow_and_end(void **state)
{
    (void)state;
    for (int tries = 0; tries < 20; tries++) {
        int64_t full = INT64_C(20000) << (tries > 6 ? 6 : tries);
        int64_t us = retry_pause_us(tries);
        assert_in_range(us, full / 2, full);
    }
}

static void waiting_ends_when_asked_to(void **state)
{
    (void)state;
    int asked = 0;
    const struct patience none = {0}, p = {yes, &asked};
    int64_t started = when_monotonic_us();
    retry_wait_us(&p, 60 * US_PER_S);
    assert_int_equal(asked, 1);
    assert_true(when_monotonic_us() - started < 10 * US_PER_S);
    retry_wait_us(&none, 1000);
}

static void a_connection_is_had_again(void **state)
{
    struct file *f = *state;
    const struct patience none = {0};
    struct err e = {.kind = ERR_LOST};
    assert_true(retry_is_lost(&e));
    assert_true(retry_reconnect(f->store, &none, &e));
    assert_int_equal(ask_number(f->sql, "SELECT 1"), 1);
}

static void or_it_says_that_it_was_stopped(void **state)
{
    struct file *f = *state;
    int asked = 0;
    const struct patience p = {yes, &asked};
    struct err e = {.kind = ERR_LOST};
    assert_false(retry_reconnect(f->store, &p, &e));
    assert_int_equal(e.kind, ERR_STOPPED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(pauses_grow_and_end), TEST(waiting_ends_when_asked_to),
                                       TEST(a_connection_is_had_again), TEST(or_it_says_that_it_was_stopped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
