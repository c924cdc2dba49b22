/* bounded: which keys have only so many values, and above all which do not. */
#include "world.h"

#include "schema/bounded.h"

/* A table `t` with the columns given, whose key is unique (primary unless it says otherwise), and one CHECK.
 */
static const char *bounded(struct world *w, const char *columns, const char *key, const char *check)
{
    struct table *t = add_table(w, "public", "t", columns, key);
    add_index(w, t, key, NULL);
    t->indexes[0].unique = t->indexes[0].primary = true;
    if (check) {
        t->checks = arena_push(w->arena, t->checks, t->n_checks, sizeof(*t->checks));
        t->checks[t->n_checks++] = check;
    }
    const char *words = table_bounded_by(w->facts, t, w->arena);
    return words ? words : "";
}

static void one_value(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *columns, *check, *words;
    } cases[] = {
        {"id!", "id = 1", "(id = 1)"},
        {"id!", "(id = 1)", "(id = 1)"},
        {"id!", "((1 = id))", "(id = 1)"},
        {"id!", "id == 1", "(id = 1)"},
        {"id!", "id IN (1)", "(id = 1)"},
        {"id!", "(id = ANY (ARRAY[1]))", "(id = 1)"},
        {"id!", "id = -1", "(id = -1)"},
        {"id!", "(id = '-1'::integer)", "(id = '-1')"},
        {"id!", "(id = (1)::smallint)", "(id = 1)"},
        {"id!", "\"id\" = 1", "(id = 1)"},
        {"id!", "[id] = 1", "(id = 1)"},
        {"id!", "id -- the one\n = /* * */ 1", "(id = 1)"},
        {"id!", "id = 1 AND length(x) > 2", "(id = 1)"},
        {"id!", "x > 2 AND (y OR z) AND (id = 1)", "(id = 1)"},
        {"id!", "NOT x AND id = 1", "(id = 1)"},
        {"id:text!", "(id = 'x'::text)", "(id = 'x')"},
        {"id:text!", "((id)::text = 'it''s'::text)", "(id = 'it''s')"},
        {"id:text!", "(id = 'x'::character varying(3))", "(id = 'x')"},
        {"id:boolean!", "id", "(id = true)"},
        {"id:boolean!", "(id = true)", "(id = true)"},
        {"id:boolean!", "(id IS TRUE)", "(id = TRUE)"},
        {"id:mood!", "(id = 'sad'::public.mood)", "(id = 'sad')"},
        {"id:mood!", "(id = 'sad'::\"odd schema\".\"Mood\")", "(id = 'sad')"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *found = bounded(w, cases[i].columns, "id", cases[i].check);
        if (strcmp(found, arena_printf(w->arena, "singleton primary key %s", cases[i].words)) != 0)
            fail_msg("%s: '%s'", cases[i].check, found);
    }
}

static void never_taken_for_bounded(void **state)
{
    struct world *w = *state;
    static const char *const checks[] = {
        "id >= 1",
        "id <> 1",
        "id = 1 OR other = 2",
        "(id = 1) OR other = 2",
        "id = 1 AND x OR y",
        "x OR id = 1",
        "(x OR id = 1) AND y",
        "(id = 1) IS NOT TRUE",
        "(id = 1) = false",
        "NOT (id = 1)",
        "NOT id = 1",
        "id = 1 + other",
        "id = 1 = other",
        "id = other",
        "id = NULL",
        "id = (NULL)::integer",
        "id IS NOT NULL",
        "id IN (1, other)",
        "id IN (SELECT 1)",
        "id NOT IN (1)",
        "other = 1",
        "ids = 1",
        "i = 1",
        "\"ID\" = 1",
        "\"i\"\"d\" = 1",
        "t.other = 1 AND lower(id) = 1",
        "id % 2 = 1",
        "(id)::text = '1'",
        "id BETWEEN 1 AND 1",
        "x BETWEEN 0 AND id = 1",
        "CASE WHEN x THEN id = 1 ELSE true END",
        "id = 1 || x",
        "x || id = 1",
        "id = 1 XOR x",
        "coalesce(id = 1, true)",
        "id",
        "'id = 1' <> x",
        "x <> '' AND 'y' = 'id = 1'",
        "/* id = 1 */ true",
        "id = E'x'",
        "id = 1 COLLATE \"C\"",
        "(id = 1",
        "id = 1)",
        "id = '1",
        "\"",
        "",
    };
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        const char *found = bounded(w, "id!, other", "id", checks[i]);
        if (*found)
            fail_msg("%s: '%s'", checks[i], found);
    }
}

static void the_key_decides(void **state)
{
    struct world *w = *state;
    assert_string_equal(bounded(w, "id", "id", "id = 1"), ""); /* NULL, any number of times */
    assert_string_equal(bounded(w, "id!, other!", "id, other", "id = 1"), "");
    struct table *t = add_table(w, "public", "t", "id!", "id");
    t->checks = arena_push(w->arena, t->checks, t->n_checks++, sizeof(*t->checks));
    t->checks[0] = "id = 1";
    assert_null(table_bounded_by(w->facts, t, w->arena)); /* no index */
    add_index(w, t, "id", NULL);
    assert_null(table_bounded_by(w->facts, t, w->arena)); /* not unique */
    t->indexes[0].unique = true;
    assert_string_equal(table_bounded_by(w->facts, t, w->arena), "singleton unique key (id = 1)");
    t->indexes[0].partial = true;
    assert_null(table_bounded_by(w->facts, t, w->arena));
    t->indexes[0].partial = false;
    t->inheritors = true;
    assert_null(table_bounded_by(w->facts, t, w->arena));
    t->inheritors = false;
    t->kind = KIND_VIEW;
    assert_null(table_bounded_by(w->facts, t, w->arena));
}

static void some_values(void **state)
{
    struct world *w = *state;
    assert_string_equal(bounded(w, "id!", "id", "id IN (1, 2, 3)"),
                        "primary key of listed values (id in 1, 2, 3), at most 3 rows");
    assert_string_equal(bounded(w, "id:text!", "id",
                                "((id)::text = ANY ((ARRAY['a'::character varying, 'b'::character "
                                "varying])::text[]))"),
                        "primary key of listed values (id in 'a', 'b'), at most 2 rows");
    assert_string_equal(bounded(w, "id:mood!", "id", NULL), "enum primary key (id), at most 2 rows");
    assert_string_equal(bounded(w, "id:boolean!", "id", NULL), "boolean primary key (id), at most 2 rows");
    assert_string_equal(bounded(w, "id:boolean", "id", NULL), "");
    assert_string_equal(bounded(w, "id:mood", "id", NULL), "");
}

/* Where booleans are numbers, any number but 0 is true, and a boolean column holds them all. */
static void booleans_that_are_numbers(void **state)
{
    struct world *w = *state;
    w->facts->booleans_are_integers = w->facts->ignores_case = true;
    assert_string_equal(bounded(w, "id:boolean!", "id", NULL), "");
    assert_string_equal(bounded(w, "id:boolean!", "id", "id"), "");
    assert_string_equal(bounded(w, "id:boolean!", "id", "id IS TRUE"), "");
    assert_string_equal(bounded(w, "id:boolean!", "id", "ID = TRUE"), "singleton primary key (id = TRUE)");
    assert_string_equal(bounded(w, "id!", "id", "id IS 1"), "singleton primary key (id = 1)");
}

static void generated_from_a_constant(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "public", "t", "one!", "one");
    add_index(w, t, "one", NULL);
    t->indexes[0].unique = true;
    t->columns[0].generated = true;
    assert_null(table_bounded_by(w->facts, t, w->arena));
    t->columns[0].generated_as = "other + 1";
    assert_null(table_bounded_by(w->facts, t, w->arena));
    t->columns[0].generated_as = "'x'::text";
    assert_string_equal(table_bounded_by(w->facts, t, w->arena), "singleton unique key (one = 'x')");
    t->columns[0].generated = false; /* a default is no rule */
    assert_null(table_bounded_by(w->facts, t, w->arena));
}

static void a_long_list_is_data(void **state)
{
    struct world *w = *state;
    AUTO(text_release) struct text check = {0};
    text_add(&check, "id IN (0");
    for (int i = 1; i < 101; i++)
        text_addf(&check, ", %d", i);
    text_add(&check, ")");
    assert_string_equal(bounded(w, "id!", "id", text_str(&check)), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_value),           TEST(never_taken_for_bounded),   TEST(the_key_decides),
        TEST(some_values),         TEST(booleans_that_are_numbers), TEST(generated_from_a_constant),
        TEST(a_long_list_is_data),
    };
    return cmocka_run_group_tests_name("bounded", tests, NULL, NULL);
}
