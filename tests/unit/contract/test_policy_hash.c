/* What a policy means: alike however it is written, different where anything that counts differs. */
#include "contract/policy_hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "contract/contract.h"

static struct contract *parse(const char *policy)
{
    AUTO(text_release) struct text yaml = {0};
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    struct contract *c = NULL;
    struct err e = ERR_INIT;
    text_addf(&yaml,
              "store: sqlite:x\nschedulers: { a: { every: 1m }, b: { every: 1m } }\npolicies:\n  p:\n%s",
              policy);
    if (contract_parse("lapse.yaml", text_str(&yaml), yaml.len, &c, &mistakes, &e))
        fail_msg("%s: %s", policy, mistakes.n ? mistakes.list[0].text : e.text);
    return c;
}

static void hash_of(const char *policy, char ret[POLICY_HASH_SIZE])
{
    AUTO(contract_free_p) struct contract *c = parse(policy);
    policy_hash(&c->policies[0], ret);
}

#define AGE "    scheduler: a\n    table: t\n    age: at_ms\n"

/* Each line is one meaning, written in several ways. */
static const char *const meanings[][4] = {
    {AGE "    keep: 1h\n", "    age: [at_ms]\n    keep: 60m   # an hour\n    scheduler: a\n    table: t\n",
     "    { scheduler: b, table: t, age: at_ms, keep: 3600000, batch: 7, label: T, invariant: x, also: [y] "
     "}\n",
     AGE "    keep: 1 hour\n    timeouts: { lock: 1s }\n    enabled: false\n"},
    {AGE "    keep: 2h\n"},
    {AGE "    keep: never\n"},
    {AGE "    keep: now\n"},
    {AGE "    keep: 1h\n    inclusive: true\n"},
    {AGE "    keep: 1h\n    unit: s\n"},
    {AGE "    keep: 1h\n    zone: Europe/Prague\n"},
    {"    scheduler: a\n    table: u\n    age: at_ms\n    keep: 1h\n"},
    {"    scheduler: a\n    table: x.t\n    age: at_ms\n    keep: 1h\n"},
    {"    scheduler: a\n    table: '\"t\"'\n    age: at_ms\n    keep: 1h\n"},
    {"    scheduler: a\n    table: t\n    expires: at_ms\n"},
    {"    scheduler: a\n    table: t\n    age: [at_ms, b_ms]\n    keep: 1h\n",
     "    scheduler: a\n    table: t\n    age: [b_ms, at_ms]\n    keep: 1h\n"},
    {AGE "    keep: 1h\n    rows: { s: [x, y], k: 1 }\n",
     AGE "    keep: 1h\n    rows: { k: 1, s: ['y', \"x\"] }\n"},
    {AGE "    keep: 1h\n    rows: { s: [x, y], k: '1' }\n"},
    {AGE "    keep: 1h\n    rows: { s: x, k: 1 }\n"},
    {AGE "    keep: 1h\n    rows: { s: null }\n"},
    {AGE "    keep: 1h\n    rows: { s: 'null' }\n"},
    {AGE "    keep: 1h\n    rows: { s: 'x*' }\n"},
    {AGE "    keep: 1h\n    rows: { s: 'x\\*' }\n"},
    {AGE "    keep: 1h\n    where: { s: x }\n"},
    {AGE "    keep: 1h\n    where: { s: { not: x } }\n"},
    {AGE "    keep: 1h\n    where: { s: { older_than: 1h } }\n"},
    {AGE "    keep: 1h\n    where: { s: { older_than: 2h } }\n"},
    {AGE "    keep: 1h\n    where: { s: { newer_than: 2h } }\n"},
    {AGE "    keep: 1h\n    where: s = 1\n"},
    {AGE "    keep: 1h\n    where: s = 2\n"},
    {AGE "    keep: 1h\n    hold: { s: x }\n"},
    {AGE "    keep: { by: s, values: { a: 1h, b: 2h } }\n",
     AGE "    keep: { values: { b: 120m, a: 1h }, by: s, otherwise: never }\n"},
    {AGE "    keep: { by: s, values: { a: 2h, b: 1h } }\n"},
    {AGE "    keep: { by: s, values: { a: 1h, b: 2h }, otherwise: 1h }\n"},
    {AGE "    keep: { column: k, unit: s }\n"},
    {AGE "    keep: { column: k, unit: m }\n"},
    {AGE "    keep: 1h\n    with: [c(a), d(a)]\n", AGE "    keep: 1h\n    with: [d(a), { ref: c( a ) }]\n"},
    {AGE "    keep: 1h\n    with: [c(a)]\n    detach: [d(a)]\n"},
    {AGE "    keep: 1h\n    with: [c(a)]\n    after: [d(a)]\n"},
    {AGE "    keep: 1h\n    with: [{ ref: c(a), with: [d(a)] }]\n"},
    {AGE "    keep: 1h\n    with: [{ ref: c(a), split: true }]\n    detach: [d(a)]\n"},
    {AGE "    keep: 1h\n    with: [{ ref: c(a), where: { x: 1 } }, d(a)]\n"},
    {AGE "    keep: 1h\n    after: [{ ref: d(a), where: { x: 1 } }]\n"},
    {AGE "    keep: 1h\n    with: [\"c(a, b) -> (x, y)\"]\n"},
    {AGE "    keep: 1h\n    with: [\"c(b, a) -> (x, y)\"]\n"},
    {AGE "    keep: 1h\n    limits: { rows: 5 }\n"},
    {AGE "    keep: 1h\n    limits: { rows: 6 }\n"},
    {AGE "    keep: 1h\n    limits: { fraction: 0.5 }\n"},
    {AGE "    keep: 1h\n    limits: { rows: 5, fraction: 0.5 }\n",
     AGE "    keep: 1h\n    limits: { fraction: .5, rows: 5 }\n"},
    {AGE "    keep: 1h\n    keep_newest: { rows: 3, per: [a, b], newest: n }\n",
     AGE "    keep: 1h\n    keep_newest: { newest: [n], per: [b, a], rows: 3 }\n"},
    {AGE "    keep: 1h\n    keep_newest: { rows: 4, per: [a, b], newest: n }\n"},
    {AGE "    keep: 1h\n    keep_newest: { rows: 3, newest: n }\n"},
    {"    scheduler: a\n    table: t\n    cap: { rows: 3, newest: [n, m] }\n"},
    {"    scheduler: a\n    table: t\n    cap: { rows: 3, newest: [m, n] }\n"},
    {AGE "    keep: 1h\n    orphan: { of: o(id), by: x }\n"},
    {AGE "    keep: 1h\n    orphan: { of: o(id), by: y }\n"},
    {AGE "    keep: 1h\n    orphan: { of: o(id), by: x, allow_empty: true }\n"},
    {AGE "    keep: 1h\n    orphan: { of: o(id), by: x, matching: { a: 1 } }\n"},
    {AGE "    keep: 1h\n    orphan: { of: o(id), by: x, matching: { a: 1 }, delete_when: "
         "deleted_or_unmatched }\n"},
};

static void one_meaning_has_one_hash(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(meanings); i++) {
        char first[POLICY_HASH_SIZE], other[POLICY_HASH_SIZE];
        hash_of(meanings[i][0], first);
        assert_int_equal(strlen(first), 16);
        for (size_t k = 1; k < 4 && meanings[i][k]; k++) {
            hash_of(meanings[i][k], other);
            if (strcmp(first, other) != 0)
                fail_msg("%s and\n%s differ", meanings[i][0], meanings[i][k]);
        }
    }
}

static void two_meanings_have_two(void **state)
{
    (void)state;
    char all[COUNT_OF(meanings)][POLICY_HASH_SIZE];
    for (size_t i = 0; i < COUNT_OF(meanings); i++) {
        hash_of(meanings[i][0], all[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(all[i], all[k]) == 0)
                fail_msg("%s and\n%s are alike", meanings[i][0], meanings[k][0]);
    }
}

/* Fuses that tripped before an upgrade of lapse must be found after it. */
static void a_hash_stays_what_it_was(void **state)
{
    (void)state;
    char hash[POLICY_HASH_SIZE];
    hash_of(AGE "    keep: 1h\n    rows: { s: [x, y] }\n    limits: { rows: 5 }\n", hash);
    assert_string_equal(hash, "0d37f342fcf7461f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_meaning_has_one_hash),
        cmocka_unit_test(two_meanings_have_two),
        cmocka_unit_test(a_hash_stays_what_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
