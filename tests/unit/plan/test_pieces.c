/* plan_pieces: which plans may go partition by partition, and what one is for one partition. */
#include "world.h"

#define NOW  (INT64_C(1718452800) * US_PER_S) /* 2024-06-15T12:00:00Z */
#define BASE "table: ev, age: at_ms, keep: 1d"

static const struct column place = {.name = "ctid", .sql_type = "tid", .type = TYPE_OTHER};
static const struct table_piece piece = {"s", "ev_1", "s.ev_1", &place};

static struct table *add_ev(struct world *w)
{
    struct table *t = add_table(w, "public", "ev", "id, at_ms, up, state", "id, at_ms");
    t->kind = KIND_PARTITIONED;
    return t;
}

static void may(struct world *w, const char *keys, bool expected)
{
    if (plan_may_go_by_pieces(make_plan(w, keys, NOW)) != expected)
        fail_msg("%s", keys);
}

static void rows_judged_by_themselves(void **state)
{
    struct world *w = *state;
    struct table *t = add_ev(w);
    add_table(w, "public", "kid", "id, ev_id", "id");
    may(w, BASE, true);
    may(w, BASE ", workers: 3, rows: { state: done }, hold: { up: 1 }", true);
    may(w, BASE ", where: \"up > 1\"", true);
    may(w, BASE ", with: [kid(ev_id) -> (id)]", true);
    may(w, BASE ", detach: [kid(ev_id) -> (id)]", true);
    may(w, BASE ", after: [kid(ev_id) -> (id)]", true);
    t->kind = KIND_TABLE;
    may(w, BASE, false);
}

static void rows_judged_by_others_of_their_table(void **state)
{
    struct world *w = *state;
    add_ev(w);
    add_table(w, "public", "kid", "id, ev_id", "id");
    may(w, BASE ", with: [ev(up) -> (id)]", false);
    may(w, BASE ", detach: [ev(up) -> (id)]", false);
    may(w, BASE ", after: [ev(up) -> (id)]", false);
    may(w, BASE ", with: [{ ref: kid(ev_id) -> (id), after: [ev(up) -> (id)] }]", false);
    may(w, BASE ", with: [{ ref: kid(ev_id) -> (id), detach: [ev(up) -> (id)] }]", false);
    may(w, BASE ", keep_newest: { rows: 3, newest: at_ms }", false);
    may(w, "table: ev, cap: { rows: 3, newest: at_ms }", false);
    may(w, "table: ev, orphan: { of: ev(id), by: up }, keep: now", false);
}

static void what_is_told_of_the_whole(void **state)
{
    struct world *w = *state;
    struct table *t = add_ev(w);
    add_table(w, "public", "kid", "id, ev_id", "id");
    may(w, BASE ", batch: null", false);
    may(w, BASE ", with: [{ ref: kid(ev_id) -> (id), split: true }]", false);
    bool *const kept[] = {&t->delete_hooks, &t->update_hooks, &t->hooks_hidden, &t->rows_hidden};
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        *kept[i] = true;
        assert_false(plan_may_go_by_pieces(make_plan(w, BASE, NOW)));
        *kept[i] = false;
    }
}

static void one_of_them(void **state)
{
    struct world *w = *state;
    const struct table *t = add_ev(w);
    add_table(w, "public", "kid", "id, ev_id", "id");
    const struct plan *p = make_plan(w, BASE, NOW);
    AUTO(arena_free_p) struct arena *a = arena_new();
    const struct plan *one = plan_of_piece(p, &piece, a);
    assert_true(one->root.table->whole == t && p->root.table == t && !t->whole);
    assert_string_equal(one->root.table->name, "ev_1");
    assert_string_equal(one->root.table->schema, "s");
    assert_true(one->root.table->kind == KIND_TABLE && one->root.table->place == &place);
    assert_true(one->due == p->due && one->n_slots == p->n_slots && one->root.slot == p->root.slot);
    assert_int_equal(one->root.n_carry, p->root.n_carry + 1);
    assert_true(one->root.carry[p->root.n_carry] == &place);
    p = make_plan(w, BASE ", detach: [kid(ev_id) -> (id)]", NOW);
    assert_int_equal(plan_of_piece(p, &piece, a)->root.n_carry, p->root.n_carry);
}

static void numbers_go_without_their_place(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "public", "ev", "id, at_ms", "id");
    t->kind = KIND_PARTITIONED;
    const struct plan *p = make_plan(w, BASE, NOW);
    AUTO(arena_free_p) struct arena *a = arena_new();
    assert_int_equal(plan_of_piece(p, &piece, a)->root.n_carry, p->root.n_carry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_judged_by_themselves, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(rows_judged_by_others_of_their_table, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_is_told_of_the_whole, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(one_of_them, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(numbers_go_without_their_place, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
