/* quote: scalars that are read back as they were, comments that stay comments. */
#include "world.h"

#include "base/quote.h"

static const char *const texts[] = {
    "plain",     "two words", "a: b", "a #b",    "true",     "NULL", "On",        "~",
    "1",         "1.5",       "-x",   "*x",      "&x",       "!x",   "?",         "%x",
    "@x",        "`x`",       "a,b",  "[a]",     "{a}",      "it's", "say \"x\"", "back\\slash",
    "trailing ", " leading",  "$x",   "${HOME}", "$${HOME}", "$$",   "žluťoučký", "a\tb",
    "a\nb",      "\x01",      "x:",   "e1",      "0x1",      "=",    "<<",        "(a)",
};

static void read_back(const char *text, bool flow)
{
    AUTO(text_release) struct text yaml = {0};
    text_add(&yaml, "store: sqlite:x\npolicies: { p: { table: t, expires: e } }\nunbounded:");
    text_add(&yaml, flow ? " { t: " : "\n  t: ");
    yaml_scalar(&yaml, text, flow);
    text_add(&yaml, flow ? " }\n" : "\n");
    struct mistakes mistakes = {0};
    struct err e = ERR_INIT;
    struct contract *c = NULL;
    if (contract_parse("x", text_str(&yaml), yaml.len, &c, &mistakes, &e))
        fail_msg("%s: %s", text_str(&yaml), mistakes.n ? mistakes.list[0].text : e.text);
    assert_string_equal(c->unbounded[0].why, text);
    contract_free(c);
    mistakes_release(&mistakes);
}

static void scalars_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (!yaml_can_hold(texts[i]))
            continue;
        read_back(texts[i], false);
        read_back(texts[i], true);
    }
}

static void bare_where_possible(void **state)
{
    (void)state;
    AUTO(text_release) struct text out = {0};
    yaml_scalar(&out, "singleton primary key (id = 1)", false);
    assert_string_equal(text_str(&out), "singleton primary key (id = 1)");
    text_clear(&out);
    yaml_scalar(&out, "a, b", false);
    yaml_scalar(&out, "a, b", true);
    assert_string_equal(text_str(&out), "a, b\"a, b\"");
}

static void what_a_contract_cannot_hold(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "a\nb",     "\t",           "\x7F",         "\xFF",         "a\xC3",
        "\xC2\x85", "\xE2\x80\xA8", "\xEF\xBB\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(yaml_can_hold(bad[i]));
    assert_true(yaml_can_hold(""));
    assert_true(yaml_can_hold("žluť \xF0\x9F\x90\x8E \xE2\x80\x94"));
}

static void what_people_would_not_see_is_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *line, *lines;
    } cases[] = {
        {"", "", ""},
        {"a\nb\tc\r", "a\\nb\\tc\\x0d", "a\nb\tc\\x0d"},
        {"\033[31m\x7F\xC2\x9B", "\\x1b[31m\\x7f\\u009b", "\\x1b[31m\\x7f\\u009b"},
        {"a\xE2\x80\xAE"
         "b\xE2\x81\xA6\xD8\x9C",
         "a\\u202eb\\u2066\\u061c", "a\\u202eb\\u2066\\u061c"}, /* the direction */
        {"\xE2\x80\x8B\xE2\x80\x8D\xEF\xBB\xBF\xC2\xAD\xEF\xB8\x8F", "\\u200b\\u200d\\ufeff\\u00ad\\ufe0f",
         "\\u200b\\u200d\\ufeff\\u00ad\\ufe0f"}, /* no width */
        {"\xE2\x80\xA8\xF3\xA0\x81\xA1", "\\u2028\\U000e0061", "\\u2028\\U000e0061"},
        {"caf\xE9 \xC0\x80 \xE2\x82", "caf\\xe9 \\xc0\\x80 \\xe2\\x82", "caf\\xe9 \\xc0\\x80 \\xe2\\x82"},
        {"žluť \xF0\x9F\x90\x8E \xE2\x80\x94 \xD7\xA9\xD7\x9C",
         "žluť \xF0\x9F\x90\x8E \xE2\x80\x94 \xD7\xA9\xD7\x9C",
         "žluť \xF0\x9F\x90\x8E \xE2\x80\x94 \xD7\xA9\xD7\x9C"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text line = {0}, lines = {0};
        text_add_seen(&line, cases[i].text, false);
        text_add_seen(&lines, cases[i].text, true);
        assert_string_equal(text_str(&line), cases[i].line);
        assert_string_equal(text_str(&lines), cases[i].lines);
    }
    AUTO(text_release) struct text yaml = {0};
    yaml_scalar(&yaml, "a\xE2\x80\xAE", false);
    yaml_comment(&yaml, "a\xE2\x80\xAE");
    assert_string_equal(text_str(&yaml), "\"a\\u202e\"a\\u202e");
}

static void a_comment_stays_one(void **state)
{
    (void)state;
    AUTO(text_release) struct text out = {0};
    yaml_comment(&out, "a\nb\r\xC2\x85"
                       "c\xE2\x80\xA8 d\xFF é");
    assert_string_equal(text_str(&out), "a\xEF\xBF\xBD"
                                        "b\xEF\xBF\xBD\xEF\xBF\xBD"
                                        "c\xEF\xBF\xBD d\xEF\xBF\xBD é");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_come_back),           cmocka_unit_test(bare_where_possible),
        cmocka_unit_test(what_a_contract_cannot_hold), cmocka_unit_test(what_people_would_not_see_is_escaped),
        cmocka_unit_test(a_comment_stays_one),
    };
    return cmocka_run_group_tests_name("quote", tests, NULL, NULL);
}
