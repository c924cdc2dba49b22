/* Brakes: which one stops a policy, and how it is told. */
#include "store/own.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include <stdio.h>

#include <string.h>

static struct brake list[] = {
    {"", false, 0, 0},
    {"a", false, 0, 0},
    {"s", true, 7200 * US_PER_S, 3600 * US_PER_S},
};

static void the_general_brake_comes_first(void **state)
{
    (void)state;
    const struct brakes all = {NULL, list, 3}, named = {NULL, list + 1, 2}, none = {0};
    assert_ptr_equal(brakes_on(&all, "a", "s"), &list[0]);
    assert_ptr_equal(brakes_on(&all, "x", "y"), &list[0]);
    assert_ptr_equal(brakes_on(&named, "a", "s"), &list[1]);
    assert_ptr_equal(brakes_on(&named, "x", "s"), &list[2]);
    assert_null(brakes_on(&named, "x", "y"));
    assert_null(brakes_on(&named, "A", "S"));
    assert_null(brakes_on(&none, "a", "s"));
}

static void names_are_policies_and_schedulers(void **state)
{
    (void)state;
    const struct brakes named = {NULL, list + 1, 2};
    assert_ptr_equal(brakes_on(&named, "s", "x"), &list[2]); /* a policy of that name */
    assert_ptr_equal(brakes_on(&named, "x", "a"), &list[1]);
    assert_ptr_equal(brakes_named(&named, "a"), &list[1]);
    assert_null(brakes_named(&named, ""));
}

static void assert_words(const struct brake *b, const char *expected)
{
    AUTO(text_release) struct text t = {0};
    brake_words(b, &t);
    assert_string_equal(text_str(&t), expected);
}

static void it_says_how_to_release_it(void **state)
{
    (void)state;
    assert_words(&list[0], "paused since 1970-01-01 00:00:00 UTC (lapse resume)");
    assert_words(&list[1], "paused since 1970-01-01 00:00:00 UTC by a brake on 'a' (lapse resume a)");
    assert_words(&list[2],
                 "paused since 1970-01-01 01:00:00 UTC until 1970-01-01 02:00:00 UTC by a brake on 's' "
                 "(lapse resume s)");
}

static void releasing_nothing_is_fine(void **state)
{
    (void)state;
    struct brakes b = {0};
    brakes_release(&b);
    b.arena = arena_new();
    b.n = 1;
    brakes_release(&b);
    assert_true(!b.arena && !b.n);
}

static void every_process_has_a_name_of_its_own(void **state)
{
    (void)state;
    char one[200], other[200], small[8];
    unsigned random;
    long pid;
    own_process(one, sizeof(one));
    own_process(other, sizeof(other));
    assert_string_not_equal(one, other);
    assert_int_equal(sscanf(strchr(one, ':'), ":%ld:%8x", &pid, &random), 2);
    assert_int_equal(pid, getpid());
    own_process(small, sizeof(small));
    assert_true(strlen(small) < sizeof(small));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_general_brake_comes_first),
        cmocka_unit_test(names_are_policies_and_schedulers),
        cmocka_unit_test(it_says_how_to_release_it),
        cmocka_unit_test(releasing_nothing_is_fine),
        cmocka_unit_test(every_process_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
