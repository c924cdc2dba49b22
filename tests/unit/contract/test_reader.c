/* reader: sections by a key table of its own, and what only the reader knows; values and their mistakes are
 * tested through the contract. */
#include "reading.h"

struct thing {
    int64_t count;
    const char *word;
    struct ref ref;
    struct ref *refs;
    size_t n_refs;
    bool flag;
    struct span span, kept, aged;
};

#define FIELD(name, reader)                                                                                  \
    .read = reader, .offset = offsetof(struct thing, name), .section = "thing", .key = #name, .type = "x"

static const struct key_doc keys[] = {
    {FIELD(count, read_count), .standard = "7", .doc = "How many."},
    {FIELD(word, read_text), .standard = "", .doc = "What it says.", .required = true},
    {FIELD(ref, read_ref), .standard = "", .doc = "Where."},
    {FIELD(refs, read_refs), .count_offset = offsetof(struct thing, n_refs), .standard = "", .doc = "Where."},
    {FIELD(flag, read_bool), .standard = "false", .doc = "Whether.", .not_yet = true},
    {FIELD(span, read_delay), .standard = "1m", .doc = "How long."},
    {FIELD(kept, read_kept), .standard = "", .doc = "How long."},
    {FIELD(aged, read_kept_or_none), .standard = "", .doc = "How long ago."},
};

static int setup(void **state)
{
    reading_setup(state);
    struct reading *g = *state;
    g->reader.keys = keys;
    g->reader.n_keys = COUNT_OF(keys);
    return 0;
}

static struct thing read_thing(struct reading *g, const char *yaml)
{
    struct thing t = {0};
    struct place at = {9, 9};
    const struct node *n = tree(g, yaml);
    assert_int_equal(reader_section(&g->reader, "thing", at, n, &t), n->kind == NODE_MAP && n->n_pairs > 0);
    return t;
}

static void a_section_has_its_defaults_and_its_keys(void **state)
{
    struct reading *g = *state;
    struct thing t = read_thing(g, "word: x\nspan: never\n");
    assert_mistakes(g, "");
    assert_int_equal(t.count, 7);
    assert_string_equal(t.word, "x");
    assert_int_equal(t.span.kind, SPAN_NEVER);
    t = read_thing(g, "{ word: y, count: 8 }");
    assert_int_equal(t.count, 8);
    assert_int_equal(t.span.us, 60 * US_PER_S);
}

static void every_mistake_of_a_section_is_said(void **state)
{
    struct reading *g = *state;
    struct thing t = read_thing(g, "cuont: 1\nxyzzy: 2\ncount: 0\nflag: yes\n");
    assert_mistakes(g, "1:1 unknown key 'cuont' (did you mean 'count'?)\n"
                       "2:1 unknown key 'xyzzy'; allowed: count, word, ref, refs, flag, span, kept, aged\n"
                       "3:8 'count' must be a whole number of at least 1, not '0'\n"
                       "4:7 'flag' must be true or false (did you mean true?), not 'yes'\n"
                       "9:9 'word' is missing. What it says.");
    assert_int_equal(t.count, 7); /* the default stays */
    read_thing(g, "[1]");
    assert_mistakes(
        g,
        "1:1 'outer' must be a map with some of the keys (count, word, ref, refs, flag, span, kept, aged), "
        "not a list");
    read_thing(g, "{}");
    assert_mistakes(
        g,
        "1:1 'outer' must be a map with some of the keys (count, word, ref, refs, flag, span, kept, aged), "
        "not an empty map");
}

/* YAML cuts t(a, b) at the comma inside [ ] and { }. */
static void a_reference_is_put_together_again(void **state)
{
    struct reading *g = *state;
    struct thing t =
        read_thing(g, "{ word: x, ref: t(a, b, c) -> (x, y, z), refs: [u(a), v(a, b) -> (c, d), w(e)] }");
    AUTO(text_release) struct text out = {0};
    assert_mistakes(g, "");
    ref_print(&t.ref, &out);
    for (size_t i = 0; i < t.n_refs; i++) {
        text_add(&out, "; ");
        ref_print(&t.refs[i], &out);
    }
    assert_string_equal(text_str(&out), "t(a, b, c) -> (x, y, z); u(a); v(a, b) -> (c, d); w(e)");
    assert_int_equal(t.refs[1].at.column, 55);
    read_thing(g, "word: x\nrefs: ['v(a', 'b)']\n"); /* what was quoted is whole */
    assert_int_equal(g->mistakes.n, 2);
}

static void what_does_not_run_yet_is_noted_for_a_policy(void **state)
{
    struct reading *g = *state;
    struct policy p = {0};
    read_thing(g, "{ word: x, flag: true }");
    g->reader.policy = &p;
    read_thing(g, "{ word: x, flag: false }"); /* as it is anyway */
    assert_int_equal(p.n_not_yet, 0);
    read_thing(g, "{ word: x, flag: true }");
    assert_int_equal(p.n_not_yet, 1);
    assert_string_equal(p.not_yet[0].key, "flag");
    assert_int_equal(p.not_yet[0].at.column, 12);
    assert_false(g->reader.inside_not_yet);
    g->reader.inside_not_yet = true; /* said already, further out */
    read_thing(g, "{ word: x, flag: true }");
    assert_int_equal(p.n_not_yet, 1);
}

static void a_message_shows_no_password_and_no_page(void **state)
{
    struct reading *g = *state;
    read_thing(g, "word: x\ncount: postgresql://me:secret@host/db\n");
    assert_mistakes(g, "2:8 'count' must be a whole number of at least 1, not 'postgresql://…'");
    read_thing(g, "word: x\ncount: 0123456789012345678901234567890123456789012345678901234567890123456789\n");
    assert_mistakes(g, "2:8 'count' must be a whole number of at least 1, not "
                       "'012345678901234567890123456789012345678901234567890123456789…'");
}

static void how_long_rows_are_kept_is_whole_minutes(void **state)
{
    struct reading *g = *state;
    struct thing t = read_thing(g, "{ word: x, span: 30, kept: 86400000, aged: 0 }");
    assert_mistakes(g, "");
    assert_int_equal(t.span.us, 30 * US_PER_MS); /* elsewhere any number of milliseconds will do */
    assert_int_equal(t.kept.us, US_PER_DAY);
    assert_int_equal(t.aged.kind, SPAN_TIME);
    t = read_thing(g, "{ word: x, kept: 30ms, aged: '90s' }"); /* with a unit it is meant */
    assert_mistakes(g, "");
    assert_int_equal(t.kept.us, 30 * US_PER_MS);
    t = read_thing(g, "word: x\nkept: 30\naged: 86400\n");
    assert_mistakes(
        g, "2:7 'kept': 30 is 30 milliseconds, for a number counts milliseconds; write 30d, 30h or 30m "
           "(or 30ms if that is meant)\n"
           "3:7 'aged': 86400 is 1 minute 26 seconds 400 milliseconds, for a number counts "
           "milliseconds; write 1d if it counts seconds (or 86400ms if that is meant)");
    assert_int_equal(t.kept.us + t.aged.us, 0);
    read_thing(g, "word: x\nkept: 2592000\naged: 9223372036854775\n");
    assert_mistakes(
        g, "2:7 'kept': 2592000 is 43 minutes 12 seconds, for a number counts milliseconds; write 30d if "
           "it counts seconds (or 2592000ms if that is meant)\n"
           "3:7 'aged': 9223372036854775 is 106751991 days 4 hours 54 seconds 775 milliseconds, for a "
           "number counts milliseconds; write it with a unit, like 30d (or 9223372036854775ms if that "
           "is meant)");
    read_thing(g, "word: x\nkept: 0\naged: never\n");
    assert_mistakes(g, "2:7 'kept' must be a duration longer than 0, not '0'\n"
                       "3:7 'aged' must be a duration, not 'never'");
}

static void a_path_is_beside_the_contract(void **state)
{
    struct reading *g = *state;
    assert_string_equal(reader_path(&g->reader, "x"), "folder/x");
    assert_string_equal(reader_path(&g->reader, "../x"), "folder/../x");
    assert_string_equal(reader_path(&g->reader, "/x"), "/x");
    g->reader.file = "lapse.yaml";
    assert_string_equal(reader_path(&g->reader, "x"), "x");
    g->reader.file = "/lapse.yaml";
    assert_string_equal(reader_path(&g->reader, "x"), "/x");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, reading_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_section_has_its_defaults_and_its_keys), TEST(every_mistake_of_a_section_is_said),
        TEST(a_reference_is_put_together_again),       TEST(what_does_not_run_yet_is_noted_for_a_policy),
        TEST(a_message_shows_no_password_and_no_page), TEST(how_long_rows_are_kept_is_whole_minutes),
        TEST(a_path_is_beside_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
