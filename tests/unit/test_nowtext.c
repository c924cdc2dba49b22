/* nowtext: which conditions compare :now with a whole number. */
#include "world.h"

#include "nowtext.h"

static const struct {
    const char *sql, *column; /* the column that is refused, or NULL */
} conditions[] = {
    {"this.at_s < :now", "at_s"},
    {"at_s<:now", "at_s"},
    {":now > this.at_s", "at_s"},
    {":NOW>=at_s", "at_s"},
    {"this . at_s <> :now", "at_s"},
    {"THIS.AT_S = :now", "at_s"},
    {"this.\"at_s\" < :now", "at_s"},
    {"`at_s` < :now", "at_s"},
    {":now > [at_s]", "at_s"},
    {"this.\"odd one\" < :now", "odd one"},
    {"this.at_s /* since */ < -- 1970\n :now", "at_s"},
    {"(n = 1 or this.at_s < :now)", "at_s"},
    {"this.at < :now and :now > n", "n"},
    {"this.at < :now", NULL},
    {":now > at", NULL},
    {"other.at_s < :now", NULL}, /* another table's: its type is not known here */
    {"this.nope < :now", NULL},
    {"strftime('%s', :now) > this.at_s", NULL},
    {"this.at_s < unixepoch(:now)", NULL},
    {"this.at_s < 5", NULL},
    {"':now' > this.at_s", NULL},
    {"this.at_s < ':now'", NULL},
    {"this.at_s < 1 -- :now", NULL},
    {"this.at_s /* < :now */ > 1", NULL},
    {"this.at_s < :nowhere", NULL},
    {":now", NULL},
    {"< :now >", NULL},
    {"", NULL},
};

static void now_is_not_compared_with_numbers(void **state)
{
    struct world *w = *state;
    w->facts->folds_lower = false;
    w->facts->ignores_case = true;
    const struct table *t =
        add_table(w, NULL, "t", "at_s:integer, n:integer, odd one:integer, at:text, free:any", "n");
    for (size_t i = 0; i < COUNT_OF(conditions); i++) {
        AUTO(text_release) struct text expected = {0};
        struct err e = ERR_INIT;
        int r = nowtext_check(conditions[i].sql, w->facts, t, "do so", &e);
        if (conditions[i].column)
            text_addf(&expected, "the condition compares :now with '%s', which holds whole numbers; do so",
                      conditions[i].column);
        if (r != (conditions[i].column ? -1 : 0) || strcmp(e.text, text_str(&expected)) != 0)
            fail_msg("%s: %d %s", conditions[i].sql, r, e.text);
        assert_int_equal(e.kind, r ? ERR_USAGE : ERR_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(now_is_not_compared_with_numbers, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
