/* store_postgres_known: which statements come again, and what they are called. */
#include "world.h"

#include <stdio.h>

#include "store/postgres/store.h"

static struct known_statement *meet(struct statements *all, const char *sql)
{
    AUTO(text_release) struct text t = {0};
    text_add(&t, sql);
    return statements_meet(all, &t);
}

static void a_statement_is_known_when_it_comes_again(void **state)
{
    (void)state;
    AUTO(statements_forget) struct statements all = {.mark = "here"};
    assert_null(meet(&all, "SELECT 1"));
    assert_null(meet(&all, "SELECT 10"));
    const struct known_statement *one = meet(&all, "SELECT 1"), *ten = meet(&all, "SELECT 10");
    assert_non_null(one);
    assert_non_null(ten);
    assert_ptr_not_equal(one, ten);
    assert_string_equal(one->sql, "SELECT 1");
    assert_string_equal(one->name, "lapse_here_1");
    assert_string_equal(ten->name, "lapse_here_2");
    assert_ptr_equal(meet(&all, "SELECT 1"), one);
}

static void only_what_the_server_has_is_named(void **state)
{
    (void)state;
    AUTO(statements_forget) struct statements all = {0};
    meet(&all, "SELECT 1");
    struct known_statement *k = meet(&all, "SELECT 1");
    assert_false(k->is_named);
    assert_false(statements_any_named(&all));
    k->is_named = true;
    assert_true(statements_any_named(&all));
}

static void what_is_forgotten_gets_another_name(void **state)
{
    (void)state;
    AUTO(statements_forget) struct statements all = {.mark = "here"};
    meet(&all, "SELECT 1");
    meet(&all, "SELECT 1")->is_named = true;
    statements_forget(&all);
    assert_false(statements_any_named(&all));
    assert_null(meet(&all, "SELECT 1"));
    assert_string_equal(meet(&all, "SELECT 1")->name, "lapse_here_2");
}

static void no_more_than_there_is_room_for(void **state)
{
    (void)state;
    char sql[32];
    AUTO(statements_forget) struct statements all = {0};
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < KNOWN_MOST + 8; i++) {
            snprintf(sql, sizeof(sql), "SELECT %d", i);
            assert_int_equal(meet(&all, sql) != NULL, turn == 1 && i < KNOWN_MOST);
        }
    assert_int_equal(all.n, KNOWN_MOST);
}

/* As long as a name can be at the server, of the longest mark that there is. */
static void the_longest_name_has_room(void **state)
{
    (void)state;
    AUTO(statements_forget)
    struct statements all = {.mark = "01234567-89ab-cdef-0123-456789abcdef", .met = UINT32_MAX - 1};
    meet(&all, "SELECT 1");
    assert_string_equal(meet(&all, "SELECT 1")->name,
                        "lapse_01234567-89ab-cdef-0123-456789abcdef_4294967295");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_statement_is_known_when_it_comes_again),
        cmocka_unit_test(only_what_the_server_has_is_named),
        cmocka_unit_test(what_is_forgotten_gets_another_name),
        cmocka_unit_test(no_more_than_there_is_room_for),
        cmocka_unit_test(the_longest_name_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
