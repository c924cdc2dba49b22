/* YAML as a tree: places, duplicates, aliases, merges, replacement, and what is refused. */
#include "contract/yaml.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* The tree in one line, each node with its place: {a@1:1 'b'@1:4}@1:1. */
static void show(const struct node *n, struct text *out)
{
    static const char *const open[] = {"", "[", "{"}, *const close[] = {"", "]", "}"};
    text_add(out, open[n->kind]);
    if (n->kind == NODE_SCALAR)
        text_addf(out, n->quoted ? "'%s'" : "%s", n->text);
    for (size_t i = 0; i < n->n_items; i++) {
        text_add(out, i ? " " : "");
        show(n->items[i], out);
    }
    for (size_t i = 0; i < n->n_pairs; i++) {
        text_add(out, i ? " " : "");
        show(n->pairs[i].key, out);
        text_add(out, " ");
        show(n->pairs[i].value, out);
    }
    text_addf(out, "%s@%d:%d", close[n->kind], n->at.line, n->at.column);
}

static void parse(const char *yaml, size_t len, struct text *tree, struct text *wrong)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    AUTO(mistakes_release) struct mistakes m = {0};
    const struct node *root = yaml_parse(a, yaml, len, &m);
    mistakes_settle(&m);
    assert_true(root || m.n > 0);
    if (root && root->size < 1000)
        show(root, tree);
    for (size_t i = 0; i < m.n; i++)
        text_addf(wrong, "%s%d:%d %s", i ? "\n" : "", m.list[i].at.line, m.list[i].at.column, m.list[i].text);
}

static void test_trees(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a: b", "{a@1:1 b@1:4}@1:1"},
        {"a: 'b'\nc: \"d\"\n'e': |\n  f\n", "{a@1:1 'b'@1:4 c@2:1 'd'@2:4 'e'@3:1 'f\n'@4:1}@1:1"},
        {"a:\n  - 1\n  - [2, {x: y}]\n", "{a@1:1 [1@2:5 [2@3:6 {x@3:10 y@3:13}@3:9]@3:5]@2:3}@1:1"},
        {"a:\nb: ~", "{a@1:1 @1:1 b@2:1 ~@2:4}@1:1"},
        {"a: {\n  b: c\n}\n", "{a@1:1 {b@2:3 c@2:6}@1:4}@1:1"},
        {"\xef\xbb\xbf"
         "a: 1\r\nb: 2\r\n",
         "{a@1:1 1@1:4 b@2:1 2@2:4}@1:1"},
        {"é: ü\n", "{é@1:1 ü@1:4}@1:1"},
        {"a: !!str 5\nb: ! 6\nc: !!int 7\nd: !!map {}",
         "{a@1:1 '5'@1:10 b@2:1 '6'@2:6 c@3:1 7@3:10 d@4:1 {}@4:10}@1:1"},
        {"a: &x [1]\nb: *x\n", "{a@1:1 [1@1:8]@1:7 b@2:1 [1@1:8]@1:7}@1:1"},
        {"a: &x 1\nb: &x 2\nc: *x\n", "{a@1:1 1@1:7 b@2:1 2@2:7 c@3:1 2@2:7}@1:1"},
        {"a: &a {k: 1, l: 2}\nb: {<<: *a, k: 3}\n",
         "{a@1:1 {k@1:8 1@1:11 l@1:14 2@1:17}@1:7 b@2:1 {k@2:13 3@2:16 l@1:14 2@1:17}@2:4}@1:1"},
        {"- &a {k: 1}\n- &b {k: 2, m: 3}\n- {<<: [*a, *b]}\n",
         "[{k@1:7 1@1:10}@1:6 {k@2:7 2@2:10 m@2:13 3@2:16}@2:6 {k@1:7 1@1:10 m@2:13 3@2:16}@3:3]@1:1"},
        {"'<<': 1\n", "{'<<'@1:1 1@1:7}@1:1"},
        {"---\na: 1\n...\n", "{a@2:1 1@2:4}@2:1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text tree = {0}, wrong = {0};
        parse(cases[i][0], strlen(cases[i][0]), &tree, &wrong);
        if (strcmp(text_str(&tree), cases[i][1]) != 0 || wrong.len)
            fail_msg("%s\nexpected %s\nfound    %s\n%s", cases[i][0], cases[i][1], text_str(&tree),
                     text_str(&wrong));
    }
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *wrong;
    } cases[] = {
        {"", "1:1 the file is empty"},
        {"# only words\n", "1:1 the file is empty"},
        {"---\n...\n---\n", "3:1 a second document begins here; a contract is one document"},
        {"a: 1\n---\nb: 2\n", "2:1 a second document begins here; a contract is one document"},
        {"a: 1\nb: 2\na: 3\na: 4\n", "3:1 the key 'a' is here twice; first on line 1, column 1\n4:1 the key "
                                     "'a' is here twice; first on line 1, column 1"},
        {"a: {x: 1, \"x\": 2}", "1:11 the key 'x' is here twice; first on line 1, column 5"},
        {"? [a]\n: b\n", "1:3 a key must be a text, not a list or map"},
        {"a: *x\n", "1:5 '*x' names no anchor above; a text that begins with * is put in quotes"},
        {"a: &x {b: *x}\n", "1:12 '*x' is inside the node it names"},
        {"a: {<<: 5}\n", "1:9 '<<' merges a map or a list of maps, usually *aliases"},
        {"a: !foo 5\n", "1:9 the tag '!foo' is not known here; write the value without a tag"},
        {"a: \"x\\0y\"\n", "1:4 a text with a NUL character (\\0) in it"},
        {"a: [1, 2\n", "2:1 not valid YAML: flow sequence without a closing bracket"},
        {"a: \"b\n", "1:5 not valid YAML: double-quoted scalar without closing quote"},
        {"a: b: c\n", "1:5 not valid YAML: invalid nested block mapping on the same line"},
        {"\ta: 1\n", "1:1 not valid YAML: invalid tab as indendation in a mapping"},
        {"a: * * * * *\n",
         "1:5 not valid YAML: invalid alias detected; a text that begins with * is put in quotes"},
        {"{ a: ${X:-7}d }\n", "1:7 not valid YAML: missing comma in flow mapping; inside { } and [ ] put a "
                              "value with ${…} in quotes"},
        {"a: 1\nb: \xff\n", "2:4 not a text: a byte that is no UTF-8, or a control character"},
        {"a: é\x01\n", "1:5 not a text: a byte that is no UTF-8, or a control character"},
        {"a: \xc0\x80\n", "1:4 not a text: a byte that is no UTF-8, or a control character"},
        {"a: \xed\xa0\x80\n", "1:4 not a text: a byte that is no UTF-8, or a control character"},
        {"a: \xe2\x82", "1:4 not a text: a byte that is no UTF-8, or a control character"},
        {"\xff\xfe"
         "a",
         "1:1 not a text: a byte that is no UTF-8, or a control character"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text tree = {0}, wrong = {0};
        parse(cases[i].yaml, strlen(cases[i].yaml), &tree, &wrong);
        if (strcmp(text_str(&wrong), cases[i].wrong) != 0)
            fail_msg("%s\nexpected:\n%s\nfound:\n%s", cases[i].yaml, cases[i].wrong, text_str(&wrong));
    }
    AUTO(text_release) struct text tree = {0}, wrong = {0};
    parse("a: b\0c", 6, &tree, &wrong);
    assert_string_equal(text_str(&wrong), "1:5 not a text: a byte that is no UTF-8, or a control character");
}

static void test_replacement(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"${LAPSE_A}", "one"},         {"x${LAPSE_A}y${LAPSE_A}", "xoneyone"},
        {"${LAPSE_B:-two}", "two"},    {"${LAPSE_EMPTY:-two}", "two"},
        {"x${LAPSE_EMPTY}", "x"},      {"x${LAPSE_B:-}", "x"},
        {"$${LAPSE_A}", "${LAPSE_A}"}, {"$LAPSE_A $ $$", "$LAPSE_A $ $$"},
        {"${LAPSE_A:-two}", "one"},    {"${LAPSE_B:-a:-b}", "a:-b"},
    };
    setenv("LAPSE_A", "one", 1);
    setenv("LAPSE_EMPTY", "", 1);
    setenv("LAPSE_BAD", "\xff", 1);
    unsetenv("LAPSE_B");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(arena_free_p) struct arena *a = arena_new();
        AUTO(mistakes_release) struct mistakes m = {0};
        const struct node *root = yaml_parse(a, cases[i][0], strlen(cases[i][0]), &m);
        assert_int_equal(m.n, 0);
        assert_string_equal(root->text, cases[i][1]);
        assert_false(root->quoted);
    }
    AUTO(text_release) struct text tree = {0}, wrong = {0};
    parse("${LAPSE_BAD}", 12, &tree, &wrong);
    assert_string_equal(text_str(&wrong), "1:1 the environment variable 'LAPSE_BAD' is not UTF-8 text");
}

static void assert_refused(const struct text *yaml, const char *words)
{
    AUTO(text_release) struct text tree = {0}, wrong = {0};
    parse(yaml->data, yaml->len, &tree, &wrong);
    if (!strstr(text_str(&wrong), words))
        fail_msg("expected %s, found %s", words, text_str(&wrong));
}

static void test_too_much(void **state)
{
    (void)state;
    AUTO(text_release)
    struct text deep = {0}, laughs = {0}, merges = {0}, wide = {0}, huge = {0}, anchors = {0}, nested = {0};
    for (int i = 0; i < 100000; i++)
        text_add(&deep, "[");
    assert_refused(&deep, "1:65 nested deeper than 64 levels");

    text_add(&laughs, "- &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 30; i++)
        text_addf(&laughs, "- &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i - 1, i - 1, i - 1, i - 1,
                  i - 1, i - 1);
    assert_refused(&laughs, "the file has more than 1000000 nodes");

    text_add(&merges, "- &a {");
    for (int i = 0; i < 2000; i++)
        text_addf(&merges, "k%d: 1, ", i);
    text_add(&merges, "}\n");
    for (int i = 0; i < 2000; i++)
        text_addf(&merges, "- {<<: *a, x%d: 1}\n", i);
    assert_refused(&merges, "the file has more than 1000000 nodes");

    text_add(&nested, "- &a0 [x]\n");
    for (int i = 1; i < 100; i++)
        text_addf(&nested, "- &a%d [*a%d]\n", i, i - 1);
    assert_refused(&nested, "nested deeper than 64 levels");

    for (int i = 0; i < 2000; i++)
        text_addf(&anchors, "- &a%d x\n", i);
    assert_refused(&anchors, "more than 1000 anchors");

    text_add(&wide, "[");
    for (int i = 0; i < 1100000; i++)
        text_add(&wide, "a,");
    assert_refused(&wide, "the file has more than 1000000 nodes");

    for (int i = 0; i < 1000000; i++)
        text_add(&huge, "- abcdefg\n");
    assert_refused(&huge, "1:1 the file is larger than 4 MiB");

    AUTO(text_release) struct text value = {0}, swollen = {0};
    for (int i = 0; i < 10000; i++)
        text_add(&value, "0123456789");
    setenv("LAPSE_BIG", value.data, 1);
    for (int i = 0; i < 100; i++)
        text_add(&swollen, "- ${LAPSE_BIG}\n");
    assert_refused(&swollen, "longer than 4 MiB once ${…} is replaced");
    unsetenv("LAPSE_BIG");
}

static void test_just_enough(void **state)
{
    (void)state;
    AUTO(text_release) struct text yaml = {0}, tree = {0}, wrong = {0};
    for (int i = 0; i < 63; i++)
        text_add(&yaml, "[");
    text_add(&yaml, "x");
    for (int i = 0; i < 63; i++)
        text_add(&yaml, "]");
    parse(yaml.data, yaml.len, &tree, &wrong);
    assert_string_equal(text_str(&wrong), "");
}

/* libfyaml itself prints nothing, whatever it is given. */
static void test_garbage_in_silence(void **state)
{
    (void)state;
    static const char alphabet[] = "ab:-,[]{}&*!|>'\"%@`#?\\\n\n  \t.~<=1$";
    int saved = dup(2), ends[2];
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char yaml[40];
        size_t len = 0;
        for (seed = seed * 1664525u + 1013904223u; len < sizeof(yaml) && len < (seed >> 24); len++) {
            yaml[len] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
            seed = seed * 1664525u + 1013904223u;
        }
        AUTO(text_release) struct text tree = {0}, wrong = {0};
        parse(yaml, len, &tree, &wrong);
    }
    dup2(saved, 2);
    close(saved);
    close(ends[1]);
    char said[1];
    assert_int_equal(read(ends[0], said, 1), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),       cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_replacement), cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_just_enough), cmocka_unit_test(test_garbage_in_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
