/* What two contracts say otherwise of one name, key by key. */
#include "contract/written.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct contract *parsed(const char *policy)
{
    AUTO(text_release) struct text yaml = {0};
    AUTO(mistakes_release) struct mistakes m = {0};
    struct err e = ERR_INIT;
    struct contract *c = NULL;
    text_addf(&yaml, "store: sqlite:x\npolicies:\n  p: {table: t, %s}\n", policy);
    if (contract_parse("lapse.yaml", text_str(&yaml), yaml.len, &c, &m, &e) < 0)
        fail_msg("%s\n%s", m.n ? m.list[0].text : e.text, text_str(&yaml));
    return c;
}

static void hear(void *heard, const char *words)
{
    struct text *t = heard;
    text_addf(t, "%s%s", t->len ? "\n" : "", words);
}

static void assert_said(const char *from, const char *to, const char *words)
{
    AUTO(contract_free_p) struct contract *a = parsed(from), *b = parsed(to);
    AUTO(text_release) struct text heard = {0};
    written_compare(a, b, "policies", "p", "p", hear, &heard);
    assert_string_equal(text_str(&heard), words);
}

static void every_key_by_itself(void **state)
{
    (void)state;
    assert_said("age: at_ms, keep: 365d", "age: at_ms, keep: 30d", "p: keep 365d -> 30d");
    assert_said("age: at_ms, keep: 1d", "keep: 1d, age: at_ms", "");
    assert_said("age: at_ms, keep: 1d", "expires: at_ms, batch: 7",
                "p: expires unset -> at_ms\np: batch unset -> 7\np: age at_ms -> unset\np: keep 1d -> unset");
    assert_said("expires: at_ms", "expires: at_ms, batch: null", "p: batch unset -> null");
}

static void maps_by_their_own_keys(void **state)
{
    (void)state;
    assert_said("age: at_ms, keep: {by: s, values: {a: 1d, b: 2d}}",
                "age: at_ms, keep: {by: s, values: {a: 1d, c: 2d}, otherwise: 3d}",
                "p: keep.values.c unset -> 2d\np: keep.values.b 2d -> unset\np: keep.otherwise unset -> 3d");
    assert_said("age: at_ms, keep: 1d", "age: at_ms, keep: {by: s, values: {a: 1d}}",
                "p: keep 1d -> { by: s, values: { a: 1d } }");
    assert_said("expires: at_ms, rows: {s: [a, b]}", "expires: at_ms, rows: {s: a}", "p: rows.s [a, b] -> a");
    assert_said("expires: at_ms, rows: {s: ['a, b']}", "expires: at_ms, rows: {s: [a, b]}",
                "p: rows.s [\"a, b\"] -> [a, b]");
}

static void long_values_are_cut(void **state)
{
    (void)state;
    char policy[400], a[301];
    memset(a, 'a', 300);
    a[300] = '\0';
    snprintf(policy, sizeof(policy), "expires: at_ms, invariant: %s", a);
    a[100] = '\0';
    AUTO(text_release) struct text words = {0};
    text_addf(&words, "p: invariant unset -> %s\xE2\x80\xA6", a);
    assert_said("expires: at_ms", policy, text_str(&words));
}

static void a_name_that_one_has_not(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *a = parsed("expires: at_ms"), *b = parsed("expires: other_ms");
    AUTO(text_release) struct text heard = {0};
    written_compare(a, b, "policies", "q", "q", hear, &heard);
    written_compare(a, b, "purges", "p", "p", hear, &heard);
    assert_string_equal(text_str(&heard), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_by_itself),
        cmocka_unit_test(maps_by_their_own_keys),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(a_name_that_one_has_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
