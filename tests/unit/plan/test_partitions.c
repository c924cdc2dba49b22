/* plan_partitions: which plans drop partitions, and which partitions nobody writes to any more. */
#include "world.h"

#include "plan/partitions.h"

#define NOW  (INT64_C(1718452800) * US_PER_S) /* 2024-06-15T12:00:00Z */
#define DAY  (86400 * US_PER_S)
#define BASE "table: ev, age: at_ms, keep: 1d, partitions: drop"

static struct table *add_ev(struct world *w)
{
    struct table *t = add_table(w, "public", "ev", "id, at_ms, made_s, seen:timestamp, state", "id, at_ms");
    t->kind = KIND_PARTITIONED;
    t->ranges = t->owned = true;
    return t;
}

static void a_plan_drops(void **state)
{
    struct world *w = *state;
    add_ev(w);
    const struct plan *p = make_plan(w, BASE, NOW);
    assert_true(p->drops && !p->drops_not && p->range_by == NOW - DAY);
    assert_false(make_plan(w, "table: ev, age: at_ms, keep: 1d", NOW)->drops);
    assert_true(make_plan(w, "table: ev, expires: at_ms, partitions: drop", NOW)->range_by == NOW);
    assert_true(make_plan(w, "table: ev, cap: { rows: 3, newest: at_ms }, partitions: drop", NOW)->range_by ==
                NOW);
    p = make_plan(
        w, "table: ev, age: at_ms, keep: { by: state, values: { a: 1d, b: 3d, c: never } }, partitions: drop",
        NOW);
    assert_true(p->range_by == NOW - DAY);
    p = make_plan(w, "table: ev, age: at_ms, keep: { by: state, values: { c: never } }, partitions: drop",
                  NOW);
    assert_true(p->range_by == NOW);
}

static void says(struct world *w, const char *keys, const char *why)
{
    const struct plan *p = make_plan(w, keys, NOW);
    assert_false(p->drops);
    assert_non_null(p->drops_not);
    if (!strstr(p->drops_not, why))
        fail_msg("%s", p->drops_not);
}

static void a_plan_that_takes_more_along_does_not(void **state)
{
    struct world *w = *state;
    struct table *t = add_ev(w);
    add_table(w, "public", "kid", "id, ev_id", "id");
    says(w, BASE ", with: [kid(ev_id) -> (id)]", "with");
    says(w, BASE ", with: [ev(id) -> (at_ms)]", "with");
    says(w, BASE ", detach: [kid(ev_id) -> (id)]", "detach");
    says(w, "table: ev, orphan: { of: kid(id), by: id }, partitions: drop, keep: now", "orphan");
    says(w, BASE ", batch: null", "one transaction");
    assert_true(make_plan(w, BASE ", after: [kid(ev_id) -> (id)]", NOW)->drops);
    t->delete_hooks = true;
    says(w, BASE, "triggers or rules");
    t->delete_hooks = false;
    add_fkey(w, t, "id", t, "id", ON_DELETE_NO_ACTION);
    says(w, BASE, "foreign keys point at public.ev (of ev)");
}

/* check has an error for each of these; there is nothing more to be said. */
static void where_it_cannot_be_it_is_not_planned(void **state)
{
    struct world *w = *state;
    struct table *t = add_ev(w);
    t->ranges = false;
    assert_true(!make_plan(w, BASE, NOW)->drops && !w->plan->drops_not);
    t->ranges = true;
    t->owned = false;
    assert_true(!make_plan(w, BASE, NOW)->drops && !w->plan->drops_not);
    t->owned = true;
    w->facts->drops_not = "no";
    assert_true(!make_plan(w, BASE, NOW)->drops && !w->plan->drops_not);
}

static bool ended(const struct plan *p, const char *column, enum range_of of, int64_t end)
{
    const struct partition x = {.column = column, .of = of, .has_end = true, .end = end};
    return partition_has_ended(p, &x);
}

static void ranges_of_times(void **state)
{
    struct world *w = *state;
    add_ev(w);
    const struct plan *p = make_plan(w, BASE, NOW);
    int64_t by = NOW - DAY, half = DAY / 2;
    assert_true(ended(p, "other", RANGE_TIMES, by) && !ended(p, "other", RANGE_TIMES, by + 1));
    assert_true(ended(p, "other", RANGE_LOCALS, by - half) &&
                !ended(p, "other", RANGE_LOCALS, by - half + 1));
    assert_true(ended(p, "at_ms", RANGE_NUMBERS, by / US_PER_MS) &&
                !ended(p, "at_ms", RANGE_NUMBERS, by / US_PER_MS + 1));
    assert_true(ended(p, "made_s", RANGE_NUMBERS, by / US_PER_S) &&
                !ended(p, "made_s", RANGE_NUMBERS, by / US_PER_S + 1));
    assert_false(ended(p, "made_s", RANGE_NUMBERS, INT64_MAX)); /* no time of ours */
    assert_false(ended(p, "state", RANGE_OTHER, 0));
    assert_false(ended(p, NULL, RANGE_TIMES, 0));
    const struct partition open = {.column = "other", .of = RANGE_TIMES};
    assert_false(partition_has_ended(p, &open));
}

static void local_times_of_the_policy_have_its_zone(void **state)
{
    struct world *w = *state;
    add_ev(w);
    const struct plan *p =
        make_plan(w, "table: ev, age: seen, keep: 1d, zone: Europe/Prague, partitions: drop", NOW);
    int64_t local = NOW - DAY + 2 * 3600 * US_PER_S;
    assert_true(ended(p, "seen", RANGE_LOCALS, local) && !ended(p, "seen", RANGE_LOCALS, local + 1));
    p = make_plan(w, "table: ev, age: seen, keep: 1d, partitions: drop", NOW);
    assert_true(ended(p, "seen", RANGE_LOCALS, NOW - DAY) && !ended(p, "seen", RANGE_LOCALS, NOW - DAY + 1));
}

static void numbers_that_are_no_times(void **state)
{
    struct world *w = *state;
    add_ev(w);
    const struct plan *p = make_plan(w, BASE, NOW);
    struct partition x = {.column = "id", .of = RANGE_NUMBERS, .has_end = true, .end = 5};
    assert_false(partition_has_ended(p, &x));
    x.counted_up = true;
    assert_true(partition_has_ended(p, &x));
    x.column = "made_s"; /* which is a time, however it is counted */
    x.end = NOW / US_PER_S;
    assert_false(partition_has_ended(p, &x));
}

static void below_another(void **state)
{
    (void)state;
    const struct partition a = {.id = "1", .above = "  "}, b = {.id = "11", .above = " 1 "},
                           c = {.id = "3", .above = " 1 11 "};
    assert_true(partition_is_below(&b, &a) && partition_is_below(&c, &a) && partition_is_below(&c, &b));
    assert_false(partition_is_below(&a, &b) || partition_is_below(&a, &a) || partition_is_below(&b, &c));
    const struct partition d = {.id = "4", .above = " 11 "};
    assert_false(partition_is_below(&d, &a));
}

static void a_judgement_must_be_quick(void **state)
{
    struct world *w = *state;
    add_ev(w);
    AUTO(text_release) struct text words = {0};
    const struct plan *p = make_plan(w, BASE ", timeouts: { lock: 3s }", NOW);
    struct partition_look l = {.whole = true, .rows = 7, .took_us = 3 * US_PER_S};
    assert_true(partition_is_quick(p, &l, &words) && !words.len);
    l.took_us++;
    assert_false(partition_is_quick(p, &l, &words));
    assert_non_null(strstr(text_str(&words), "timeouts.lock allows 3.0 s"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_plan_drops, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(a_plan_that_takes_more_along_does_not, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(where_it_cannot_be_it_is_not_planned, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(ranges_of_times, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(local_times_of_the_policy_have_its_zone, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(numbers_that_are_no_times, world_setup, world_teardown),
        cmocka_unit_test(below_another),
        cmocka_unit_test_setup_teardown(a_judgement_must_be_quick, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
