/* purges: which row of an instance decides, when, and what ids can stand in a column. */
#include "world.h"

#include "plan/purges.h"

#define NOW (INT64_C(1718452800) * US_PER_S) /* 2024-06-15T12:00:00Z */

static const struct purge_space *space_of(struct world *w, const char *keys)
{
    AUTO(text_release) struct text yaml = {0};
    text_addf(&yaml, "store: sqlite:x\npurges: { job: { erases: [jobs(id)]%s%s } }", *keys ? ", " : "", keys);
    parse(w, text_str(&yaml));
    return &w->contract->purges[0];
}

static struct value text(const char *s)
{
    return (struct value){.kind = VALUE_TEXT, .text = s, .len = strlen(s)};
}

static struct purge_time at(int64_t s)
{
    return (struct purge_time){true, true, NOW + s * US_PER_S};
}

/* Scheduled so many seconds before now. */
static struct purge_row row(int64_t id, const char *instance, const char *reason, int64_t ago)
{
    return (struct purge_row){.id = id,
                              .space = "job",
                              .instance = text(instance),
                              .reason = reason,
                              .scheduled = at(-ago),
                              .locked = true};
}

static struct purge_cases judge(const struct purge_space *s, struct purge_rows *rows,
                                const struct purge_row *list, size_t n)
{
    *rows = (struct purge_rows){.arena = arena_new(), .n = n, .crowded = rows->crowded};
    rows->list = arena_alloc(rows->arena, n * sizeof(*list));
    memcpy(rows->list, list, n * sizeof(*list));
    return purge_judge(s, rows, NOW);
}

static void verdict_is(const struct purge_space *s, enum purge_verdict verdict, int64_t decides,
                       const struct purge_row *list, size_t n)
{
    AUTO(purge_rows_release) struct purge_rows rows = {0};
    struct purge_cases c = judge(s, &rows, list, n);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.list[0].n, n);
    assert_int_equal(c.list[0].verdict, verdict);
    assert_int_equal(c.list[0].decides ? c.list[0].decides->id : 0, decides);
}
#define VERDICT(s, verdict, decides, ...)                                                                    \
    verdict_is(s, verdict, decides, (const struct purge_row[]){__VA_ARGS__},                                 \
               sizeof((const struct purge_row[]){__VA_ARGS__}) / sizeof(struct purge_row))

static void due_exactly_at_its_time(void **state)
{
    const struct purge_space *s = space_of(*state, "retention: { failed: 24h, kept: never }");
    struct purge_row late = row(1, "a", "x", 60);
    VERDICT(s, PURGE_EXECUTE, 1, late);
    late.scheduled.at++;
    VERDICT(s, PURGE_WAIT, 1, late);
    VERDICT(s, PURGE_WAIT, 1, row(1, "a", "failed", 24 * 3600 - 1));
    VERDICT(s, PURGE_EXECUTE, 1, row(1, "a", "failed", 24 * 3600));
    VERDICT(s, PURGE_WAIT, 1, row(1, "a", "kept", 1000000));
    VERDICT(s, PURGE_EXECUTE, 1, row(1, "a", NULL, 60));
}

static void the_first_decides(void **state)
{
    const struct purge_space *s = space_of(*state, "retention: { failed: 24h }");
    VERDICT(s, PURGE_WAIT, 2, row(1, "a", "x", 100), row(2, "a", "failed", 101));
    VERDICT(s, PURGE_EXECUTE, 1, row(1, "a", "x", 101), row(2, "a", "failed", 100));
    VERDICT(s, PURGE_WAIT, 1, row(1, "a", "failed", 100), row(2, "a", "x", 100)); /* by number, then */
    struct purge_row unclear = row(3, "a", "x", 1);
    unclear.scheduled.usable = false;
    VERDICT(s, PURGE_WAIT, 3, row(1, "a", "x", 100), unclear);
}

static void times_of_their_own(void **state)
{
    const struct purge_space *s = space_of(*state, "");
    struct purge_row r = row(1, "a", "x", 1000);
    r.at = at(1);
    VERDICT(s, PURGE_WAIT, 1, r);
    r.at = at(0);
    VERDICT(s, PURGE_EXECUTE, 1, r);
    r.retry = at(1);
    VERDICT(s, PURGE_WAIT, 1, r);
    r.retry = at(0);
    VERDICT(s, PURGE_EXECUTE, 1, r);
    r.at = at(1); /* a retry only puts off */
    VERDICT(s, PURGE_WAIT, 1, r);
    r.at = at(0);
    r.parked = at(-5);
    VERDICT(s, PURGE_WAIT, 1, r);
    r = row(1, "a", "x", 1000);
    r.at = (struct purge_time){.there = true}; /* infinite */
    VERDICT(s, PURGE_WAIT, 1, r);
}

static void reasons_outside_only(void **state)
{
    const struct purge_space *s = space_of(*state, "only: [x, unknown]");
    VERDICT(s, PURGE_REMOVE, 0, row(1, "a", "y", 1), row(2, "a", "X", 1));
    VERDICT(s, PURGE_EXECUTE, 2, row(1, "a", "y", 1000), row(2, "a", "x", 100));
    VERDICT(s, PURGE_WAIT, 2, row(1, "a", "y", 1000), row(2, "a", "x", 1));
    VERDICT(s, PURGE_EXECUTE, 1, row(1, "a", NULL, 100));
}

static void what_others_hold_stays(void **state)
{
    const struct purge_space *s = space_of(*state, "");
    struct purge_row held = row(2, "a", "x", 50);
    held.locked = false;
    VERDICT(s, PURGE_BUSY, 1, row(1, "a", "x", 100), held);
}

/* Which of these go, by number. */
static void part_goes(const struct purge_space *s, struct purge_row *list, size_t n, const char *numbers)
{
    AUTO(purge_rows_release) struct purge_rows rows = {.crowded = true};
    AUTO(text_release) struct text gone = {0};
    struct purge_cases c = judge(s, &rows, list, n);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.list[0].verdict, PURGE_THIN);
    for (int64_t id = 1; id <= (int64_t)n; id++)
        for (size_t i = 0; i < n; i++)
            if (rows.list[i].id == id && purge_goes(&c.list[0], &rows.list[i]))
                text_addf(&gone, "%d ", (int)id);
    assert_string_equal(text_str(&gone), numbers);
}

static void of_a_part_the_first_that_counts_stays(void **state)
{
    const struct purge_space *s = space_of(*state, "only: [x, failed]");
    struct purge_row list[] = {row(1, "a", "x", 100), row(2, "a", "failed", 101), row(3, "a", "y", 102),
                               row(4, "a", "x", 103)};
    part_goes(s, list, 4, "1 2 3 ");
    part_goes(s, list, 3, "1 3 ");
    list[3].locked = false; /* who holds it may delete it: another must be there to decide */
    part_goes(s, list, 4, "1 3 ");
    list[0].reason = list[1].reason = "y";
    part_goes(s, list, 3, "1 2 3 ");
    list[0].scheduled.usable = false;
    list[0].odd = true;
    part_goes(s, list, 3, "2 3 ");
}

static void instances_are_told_apart_by_bytes(void **state)
{
    const struct purge_space *s = space_of(*state, "");
    const char *names[] = {"b", "a", "A", "a ", "", "ab", "a"};
    struct purge_row list[COUNT_OF(names)];
    AUTO(purge_rows_release) struct purge_rows rows = {0};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        list[i] = row((int64_t)i + 1, names[i], "x", 100);
    struct purge_cases c = judge(s, &rows, list, COUNT_OF(names));
    assert_int_equal(c.n, 6);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct value v = text(names[i]);
        assert_string_equal(purge_case_of(&c, &v)->decides->instance.text, names[i]);
    }
    struct value a = text("a"), missing = text("aa");
    assert_int_equal(purge_case_of(&c, &a)->n, 2);
    assert_null(purge_case_of(&c, &missing));
}

static void fit_is(struct world *w, const char *type, const char *good, const char *bad)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    struct column c = column_by_words(a, type);
    if (strcmp(c.sql_type, "int4") == 0)
        c.bytes = 4;
    size_t n;
    (void)w;
    const char **words_of = words(a, good, &n);
    for (size_t i = 0; i < n; i++) {
        AUTO(text_release) struct text why = {0};
        struct value v = text(words_of[i]);
        if (!purge_fits(&c, &v, &why))
            fail_msg("%s should fit %s", words_of[i], type);
    }
    words_of = words(a, bad, &n);
    for (size_t i = 0; i < n; i++) {
        AUTO(text_release) struct text why = {0};
        struct value v = text(words_of[i]);
        if (purge_fits(&c, &v, &why) || !why.len)
            fail_msg("%s should not fit %s", words_of[i], type);
    }
}

static void ids_come_back_the_same(void **state)
{
    fit_is(*state, "c:integer", "0, 7, -7, 2147483648, 9223372036854775807, -9223372036854775808",
           "007, -0, +1, 1.0, 1e3, 0x1, x, 9223372036854775808, --1, -");
    fit_is(*state, "c:uuid", "0f8fad5b-d9cb-469f-a165-70867728950e",
           "0F8FAD5B-D9CB-469F-A165-70867728950E, 0f8fad5bd9cb469fa16570867728950e, "
           "0f8fad5b-d9cb-469f-a165-70867728950, 0f8fad5b-d9cb-469f-a165-70867728950e1");
    fit_is(*state, "c:text", "a, 007", "");
    struct column small = {.name = "c", .sql_type = "integer", .type = TYPE_INTEGER, .bytes = 4};
    AUTO(text_release) struct text why = {0};
    struct value most = text("2147483647"), over = text("2147483648"), least = text("-2147483648");
    assert_true(purge_fits(&small, &most, &why));
    assert_true(purge_fits(&small, &least, &why));
    assert_false(purge_fits(&small, &over, &why));
    small.is_unsigned = true;
    struct value top = text("4294967295"), beyond = text("4294967296"), below = text("-1");
    assert_true(purge_fits(&small, &top, &why));
    assert_false(purge_fits(&small, &beyond, &why));
    assert_false(purge_fits(&small, &below, &why));
    small.bytes = 0;
    struct value widest = text("18446744073709551615"), wider = text("18446744073709551616");
    assert_true(purge_fits(&small, &widest, &why));
    assert_false(purge_fits(&small, &wider, &why));
    assert_false(purge_fits(&small, &below, &why));
    struct column narrow = {.name = "c", .sql_type = "varchar", .type = TYPE_TEXT, .longest = 2};
    struct value two = text("\xc3\xa9\xe2\x82\xac"), three = text("abc"), broad = text("\xf0\x9f\x98\x80");
    assert_true(purge_fits(&narrow, &two, &why) && purge_fits(&narrow, &broad, &why));
    assert_false(purge_fits(&narrow, &three, &why));
    narrow.last_character = 0xffff;
    assert_true(purge_fits(&narrow, &two, &why));
    assert_false(purge_fits(&narrow, &broad, &why));
    narrow.last_character = 0x7f;
    assert_false(purge_fits(&narrow, &two, &why));
    struct column padded = {.name = "c", .sql_type = "bpchar", .type = TYPE_TEXT};
    struct value blank = text("a "), plain = text("a"), empty = text(""), blob = text("a");
    assert_false(purge_fits(&padded, &blank, &why));
    padded.sql_type = "char";
    padded.pads = true;
    assert_false(purge_fits(&padded, &blank, &why));
    assert_true(purge_fits(&padded, &plain, &why));
    assert_true(purge_fits(&padded, &empty, &why));
    blob.kind = VALUE_BLOB;
    assert_false(purge_fits(&padded, &blob, &why));
    const struct value with_nul = {.kind = VALUE_TEXT, .text = "7\0", .len = 2};
    assert_false(purge_fits(&small, &with_nul, &why));
}

static void pauses_grow(void **state)
{
    (void)state;
    assert_int_equal(purge_backoff_us(1), 2 * US_PER_S);
    assert_int_equal(purge_backoff_us(9), 512 * US_PER_S);
    assert_int_equal(purge_backoff_us(1000000), 1024 * US_PER_S);
    assert_int_equal(purge_backoff_us(-5), 2 * US_PER_S);
}

static void the_line(void **state)
{
    const struct purge_space *s = space_of(*state, "label: Workflow");
    AUTO(text_release) struct text out = {0};
    struct value v = text("wf-1");
    purge_line(s, &v, NULL, &out);
    assert_string_equal(text_str(&out), "[Workflow] Purged data for wf-1 (unknown)");
}

static void a_plan(void **state)
{
    struct world *w = *state;
    const struct purge_space *s = space_of(w, "");
    add_table(w, NULL, "jobs", "id:integer!, note:text", "id");
    struct purge_plan *p = purge_plan_make(s, w->facts, NOW, &w->findings);
    assert_non_null(p);
    assert_int_equal(p->n, 1);
    assert_string_equal(p->erases[0].column->name, "id");
    purge_plan_free(p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(due_exactly_at_its_time),
        TEST(the_first_decides),
        TEST(times_of_their_own),
        TEST(reasons_outside_only),
        TEST(what_others_hold_stays),
        TEST(of_a_part_the_first_that_counts_stays),
        TEST(instances_are_told_apart_by_bytes),
        TEST(ids_come_back_the_same),
        TEST(pauses_grow),
        TEST(the_line),
        TEST(a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
