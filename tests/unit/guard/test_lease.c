/* lease: who takes, keeps and hands over, on a real file with two connections. */
#include "guard/lease.h"

#include "sqlite_file.h"

enum { LONG = 3600 };

struct two {
    struct file *file;
    struct store *other;
    struct lease a, b;
};

static struct two setup(void **state, int64_t us)
{
    struct two t = {.file = *state};
    struct err e = ERR_INIT;
    int from;
    assert_int_equal(t.file->store->ops->own->install(t.file->store, &from, &e), 0);
    assert_int_equal(store_sqlite.open(t.file->dsn, false, &t.other, &e), 0);
    assert_int_equal(t.other->ops->own->look(t.other, &e), 0);
    lease_init(&t.a, t.file->store, "s", us);
    lease_init(&t.b, t.other, "s", us);
    return t;
}

static void two_release(struct two *t)
{
    store_close(t->other);
}

static void take(struct lease *l)
{
    struct err e = ERR_INIT;
    if (lease_take(l, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(l->held);
    assert_int_equal(l->store->idle_most_us, l->us);
}

static void refused(int r, const struct lease *l, enum err_kind kind, const struct err *e, const char *words)
{
    assert_int_equal(r, -1);
    assert_int_equal(e->kind, kind);
    assert_false(l->held);
    assert_int_equal(l->store->idle_most_us, 0);
    if (!strstr(e->text, words))
        fail_msg("'%s' has no '%s'", e->text, words);
}

static void owners_differ(void **state)
{
    struct lease a, b;
    char pid[32];
    struct file *f = *state;
    snprintf(pid, sizeof(pid), ":%ld:", (long)getpid());
    lease_init(&a, f->store, "s", 1);
    lease_init(&b, f->store, "s", 1);
    assert_string_not_equal(a.owner, b.owner);
    assert_non_null(strstr(a.owner, pid));
    assert_true(a.owner[0] != ':');
}

static void one_of_two_has_it(void **state)
{
    AUTO(two_release) struct two t = setup(state, LONG * US_PER_S);
    struct err e = ERR_INIT;
    take(&t.a);
    assert_int_equal(t.a.row.token, 1);
    refused(lease_take(&t.b, &e), &t.b, ERR_HELD, &e, t.a.owner);
    assert_non_null(strstr(e.text, " until "));
    assert_string_equal(t.b.row.owner, t.a.owner);
    assert_true(t.b.row.ends && t.b.row.until > when_now() + (LONG - 60) * US_PER_S);
    take(&t.a); /* it has it already */
    assert_int_equal(t.a.row.token, 1);
}

static void it_is_handed_over(void **state)
{
    AUTO(two_release) struct two t = setup(state, LONG * US_PER_S);
    struct err e = ERR_INIT;
    take(&t.a);
    assert_int_equal(lease_drop(&t.a, &e), 0);
    assert_int_equal(t.a.store->idle_most_us, 0);
    take(&t.b);
    assert_int_equal(t.b.row.token, 2);
    assert_int_equal(lease_drop(&t.a, &e), 0); /* not its own any more: left alone */
    refused(lease_take(&t.a, &e), &t.a, ERR_HELD, &e, t.b.owner);
    assert_int_equal(lease_drop(&t.b, &e), 0);
    assert_int_equal(ask_number(t.file->sql, "SELECT token FROM lapse_lease"), 2);
}

static void one_that_slept_has_lost_it(void **state)
{
    AUTO(two_release) struct two t = setup(state, 20 * US_PER_MS);
    struct err e = ERR_INIT;
    take(&t.a);
    when_sleep_us(40 * US_PER_MS);
    take(&t.b);
    assert_int_equal(t.b.row.token, 2);
    refused(lease_fence(&t.a, &e), &t.a, ERR_LEASE, &e, t.b.owner);
    assert_int_equal(lease_fence(&t.b, &e), 0);
    assert_int_equal(lease_drop(&t.b, &e), 0);
    refused(lease_fence(&t.a, &e), &t.a, ERR_LEASE, &e, "done by now");
    take(&t.a);
    assert_int_equal(t.a.row.token, 3);
}

static void an_expired_one_that_nobody_took_is_still_ours(void **state)
{
    AUTO(two_release) struct two t = setup(state, 20 * US_PER_MS);
    struct err e = ERR_INIT;
    take(&t.a);
    when_sleep_us(40 * US_PER_MS);
    t.a.us = LONG * US_PER_S;
    assert_int_equal(lease_fence(&t.a, &e), 0);
    refused(lease_take(&t.b, &e), &t.b, ERR_HELD, &e, t.a.owner);
}

static void it_is_renewed_when_a_part_is_over(void **state)
{
    AUTO(two_release) struct two t = setup(state, LONG * US_PER_S);
    struct err e = ERR_INIT;
    take(&t.a);
    do_sql(t.file->sql, "UPDATE lapse_lease SET expires_at = '2020-01-01T00:00:00Z'");
    assert_int_equal(lease_keep(&t.a, &e), 0);
    assert_int_equal(ask_number(t.file->sql, "SELECT count(*) FROM lapse_lease WHERE expires_at > '2021'"),
                     0);
    t.a.renewed_us -= LONG * US_PER_S / 2;
    assert_int_equal(lease_keep(&t.a, &e), 0);
    assert_int_equal(ask_number(t.file->sql, "SELECT count(*) FROM lapse_lease WHERE expires_at > '2021'"),
                     1);
    assert_true(t.a.renewed_us > when_monotonic_us() - LONG * US_PER_S / 4);
}

static void lost_between_two_policies_and_free_it_is_taken_again(void **state)
{
    AUTO(two_release) struct two t = setup(state, LONG * US_PER_S);
    struct err e = ERR_INIT;
    take(&t.a);
    do_sql(t.file->sql, "UPDATE lapse_lease SET token = 5, owner = NULL");
    t.a.renewed_us -= LONG * US_PER_S;
    take(&t.a);
    assert_int_equal(t.a.row.token, 6);
    do_sql(t.file->sql, "UPDATE lapse_lease SET token = 7, owner = 'x'");
    t.a.renewed_us -= LONG * US_PER_S;
    refused(lease_take(&t.a, &e), &t.a, ERR_HELD, &e, "held by x until");
}

static void an_end_that_cannot_be_read_does_not_come(void **state)
{
    AUTO(two_release) struct two t = setup(state, 20 * US_PER_MS);
    struct err e = ERR_INIT;
    take(&t.a);
    do_sql(t.file->sql, "UPDATE lapse_lease SET expires_at = 'soon'");
    when_sleep_us(40 * US_PER_MS);
    refused(lease_take(&t.b, &e), &t.b, ERR_HELD, &e, "cannot be read");
}

static void it_says_what_is_in_the_way(void **state)
{
    struct file *f = *state;
    const char *fix;
    f->store->own = (struct own_state){0};
    assert_non_null(strstr(lease_obstacle(f->store, &fix), "not installed"));
    assert_string_equal(fix, "run lapse install");
    f->store->own.version = OWN_SINCE_LEASES - 1;
    assert_non_null(strstr(lease_obstacle(f->store, &fix), "no leases"));
    assert_string_equal(fix, "run lapse install");
    f->store->own.version = OWN_SINCE_LEASES;
    assert_string_equal(lease_obstacle(f->store, &fix), "");
    snprintf(f->store->own.lacks_lease, sizeof(f->store->own.lacks_lease), "UPDATE on x");
    snprintf(f->store->own.hint, sizeof(f->store->own.hint), "lapse install --grants app");
    assert_string_equal(lease_obstacle(f->store, &fix), "UPDATE on x");
    assert_string_equal(fix, "lapse install --grants app");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(owners_differ),
        TEST(one_of_two_has_it),
        TEST(it_is_handed_over),
        TEST(one_that_slept_has_lost_it),
        TEST(an_expired_one_that_nobody_took_is_still_ours),
        TEST(it_is_renewed_when_a_part_is_over),
        TEST(lost_between_two_policies_and_free_it_is_taken_again),
        TEST(an_end_that_cannot_be_read_does_not_come),
        TEST(it_says_what_is_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
