/* The list of mistakes, and the word that was probably meant. */
#include "contract/mistake.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static void test_nearest_word(void **state)
{
    (void)state;
    static const char *const words[] = {"keep",      "keep_newest",  "table", "where", "with", "older_than",
                                        "scheduler", "run_on_start", "ms",    "s",     "us"};
    static const char *const cases[][2] = {
        {"kepp", "keep"},
        {"KEEP", "keep"},
        {"tabel", "table"},
        {"wehre", "where"},
        {"wiht", "with"},
        {"older", "older_than"},
        {"schedulers", "scheduler"},
        {"runOnStart", "run_on_start"},
        {"keep-newest", "keep_newest"},
        {"MS", "ms"},
        {"m", NULL},
        {"foo", NULL},
        {"", NULL},
        {"xyz", NULL},
        {"kipf", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *found = nearest_word(cases[i][0], words, COUNT_OF(words));
        if (!cases[i][1])
            assert_null(found);
        else if (!found || strcmp(found, cases[i][1]) != 0)
            fail_msg("%s: %s", cases[i][0], found ? found : "none");
    }
    char long_word[1000];
    memset(long_word, 'a', sizeof(long_word) - 1);
    long_word[sizeof(long_word) - 1] = '\0';
    const char *const long_words[] = {long_word};
    assert_null(nearest_word(long_word, words, COUNT_OF(words)));
    assert_null(nearest_word("aaaaaaaaaaaaaaa!", long_words, 1));
}

static void test_settle(void **state)
{
    (void)state;
    AUTO(mistakes_release) struct mistakes m = {0};
    mistakes_settle(&m);
    mistakes_add(&m, (struct place){2, 1}, "b");
    mistakes_add(&m, (struct place){1, 9}, "tab\there, cut %.1s", "\xc3\xa9");
    mistakes_add(&m, (struct place){2, 1}, "b");
    mistakes_add(&m, (struct place){1, 2}, "é");
    mistakes_settle(&m);
    assert_int_equal(m.n, 3);
    assert_string_equal(m.list[0].text, "é");
    assert_string_equal(m.list[1].text, "tab?here, cut ?");
    assert_string_equal(m.list[2].text, "b");
}

static void test_most(void **state)
{
    (void)state;
    AUTO(mistakes_release) struct mistakes m = {0};
    for (int i = 0; i < 20000; i++)
        mistakes_add(&m, (struct place){i + 1, 1}, "x");
    assert_true(mistakes_full(&m));
    mistakes_settle(&m);
    assert_int_equal(m.n, 100);
    assert_string_equal(m.list[99].text, "and 9901 more mistakes from here on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest_word),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
