/* sqlown: lapse's own tables on a real file: steps of versions, fuses, brakes. */
#include "store/sql/own.h"

#include "sqlite_file.h"

static const struct deed someone = {"us", "why"};

static const struct own_ops *own_of(struct file *f)
{
    return f->store->ops->own;
}

static void install(struct file *f)
{
    struct err e = ERR_INIT;
    int from = -1;
    if (own_of(f)->install(f->store, &from, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(from, 0);
}

/* --- versions ------------------------------------------------------------------------------------- */

static const struct own_step steps[] = {
    {1, "CREATE TABLE {lapse_a} (n {count}, t {time}, s {name})"},
    {2, "ALTER TABLE {lapse_a} ADD COLUMN m {count}\n\nCREATE TABLE {lapse_b} (x {count})"},
    {3, "INSERT INTO {lapse_b} (x) VALUES (3)"},
};

static int upgrade(struct file *f, size_t n, struct err *e)
{
    int from = -1;
    return sqlown_upgrade(f->sql, steps, n, &from, e) < 0 ? -1 : from;
}

static void only_missing_steps_run(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    assert_int_equal(upgrade(f, 1, &e), 0);
    assert_int_equal(upgrade(f, 1, &e), 1);
    do_sql(f->sql, "INSERT INTO lapse_a (n) VALUES (7)");
    assert_int_equal(upgrade(f, 3, &e), 1);
    assert_int_equal(upgrade(f, 3, &e), 3);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM lapse_version"), 3);
    assert_int_equal(ask_number(f->sql, "SELECT max(version) FROM lapse_version"), 3);
    assert_int_equal(ask_number(f->sql, "SELECT n FROM lapse_a WHERE m IS NULL"), 7);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM lapse_b"), 1);
}

static void a_step_that_fails_leaves_nothing(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    assert_int_equal(upgrade(f, 1, &e), 0);
    do_sql(f->sql, "CREATE TABLE lapse_b (y)");
    assert_int_equal(upgrade(f, 3, &e), -1);
    assert_non_null(strstr(e.text, "version 2"));
    assert_int_equal(ask_number(f->sql, "SELECT max(version) FROM lapse_version"), 1);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM pragma_table_info('lapse_a')"), 3);
}

static void nothing_is_installed_at_first(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    f->store->own.version = 9;
    assert_int_equal(own_of(f)->look(f->store, &e), 0);
    assert_int_equal(f->store->own.version, 0);
    install(f);
    assert_int_equal(f->store->own.version, OWN_VERSION);
    f->store->own.version = 0;
    assert_int_equal(own_of(f)->look(f->store, &e), 0);
    assert_int_equal(f->store->own.version, OWN_VERSION);
    assert_string_equal(f->store->own.lacks, "");
}

static void newer_tables_are_refused(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    install(f);
    do_sql(f->sql, "INSERT INTO lapse_version SELECT max(version) + 1, 'x' FROM lapse_version");
    assert_int_equal(own_of(f)->look(f->store, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_int_equal(f->store->own.version, 0);
}

/* --- fuses ----------------------------------------------------------------------------------------- */

static struct fuse_row fuse(struct file *f, const char *policy)
{
    struct err e = ERR_INIT;
    struct fuse_row row = {0};
    if (own_of(f)->fuse_read(f->store, policy, &row, &e) < 0)
        fail_msg("%s", e.text);
    return row;
}

static void a_fuse_trips_once(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    install(f);
    assert_false(fuse(f, "p").there);
    assert_int_equal(own_of(f)->fuse_trip(f->store, "p", "h1", 10, 5, &e), 0);
    struct fuse_row first = fuse(f, "p");
    assert_true(first.there && !first.acked && first.rows == 10 && first.most == 5);
    assert_string_equal(first.hash, "h1");
    assert_true(first.tripped_at > when_now() - 60 * US_PER_S && first.tripped_at <= when_now());
    assert_int_equal(own_of(f)->fuse_trip(f->store, "p", "h1", 11, 5, &e), 0);
    assert_int_equal(fuse(f, "p").rows, 10);
    assert_int_equal(own_of(f)->fuse_trip(f->store, "p", "h2", 12, 6, &e), 0);
    assert_int_equal(fuse(f, "p").rows, 12);
    assert_false(fuse(f, "P").there);
}

static void an_acknowledgement_is_used_once(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    install(f);
    assert_int_equal(own_of(f)->fuse_trip(f->store, "p", "h1", 10, 5, &e), 0);
    assert_int_equal(own_of(f)->fuse_ack(f->store, "p", "h2", &someone, &e), 0);
    struct fuse_row acked = fuse(f, "p");
    assert_true(acked.acked && acked.acked_at > 0);
    assert_string_equal(acked.hash, "h2");
    struct fuse_row older = acked;
    older.acked_at--;
    assert_int_equal(own_of(f)->fuse_use(f->store, "p", &older, &e), 0); /* another one: not ours to take */
    assert_true(fuse(f, "p").there);
    assert_int_equal(own_of(f)->fuse_use(f->store, "p", &acked, &e), 0);
    assert_false(fuse(f, "p").there);
    assert_true(fuse(f, "p").used);
    assert_string_equal(fuse(f, "p").by.who, "us");
    assert_string_equal(fuse(f, "p").by.reason, "why");
    assert_int_equal(own_of(f)->fuse_use(f->store, "p", &acked, &e), 0);
}

static void a_trip_takes_an_acknowledgement_away(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    install(f);
    assert_int_equal(own_of(f)->fuse_trip(f->store, "p", "h1", 10, 5, &e), 0);
    assert_int_equal(own_of(f)->fuse_ack(f->store, "p", "h1", &someone, &e), 0);
    struct fuse_row acked = fuse(f, "p");
    assert_int_equal(own_of(f)->fuse_trip(f->store, "p", "h1", 20, 5, &e), 0);
    assert_true(fuse(f, "p").there && !fuse(f, "p").acked && fuse(f, "p").rows == 20);
    assert_int_equal(own_of(f)->fuse_use(f->store, "p", &acked, &e), 0);
    assert_true(fuse(f, "p").there);
}

/* --- brakes ---------------------------------------------------------------------------------------- */

static void assert_brakes(struct file *f, const char *expected)
{
    AUTO(brakes_release) struct brakes b = {0};
    AUTO(text_release) struct text t = {0};
    struct err e = ERR_INIT;
    if (own_of(f)->brakes(f->store, &b, &e) < 0)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < b.n; i++)
        text_addf(&t, "%s'%s'%s", i ? " " : "", b.list[i].name, b.list[i].ends ? " ends" : "");
    assert_string_equal(text_str(&t), expected);
}

static void brakes_end(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    instant past = when_now() - 1, later = when_now() + 3600 * US_PER_S;
    bool was_there = false;
    install(f);
    assert_brakes(f, "");
    assert_int_equal(own_of(f)->brake(f->store, "it's", &later, &someone, &e), 0);
    assert_int_equal(own_of(f)->brake(f->store, "", NULL, &someone, &e), 0);
    assert_int_equal(own_of(f)->brake(f->store, "old", &past, &someone, &e), 0);
    assert_brakes(f, "'' 'it's' ends");
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM lapse_pause"), 3);
    assert_int_equal(own_of(f)->release(f->store, "", &someone, &was_there, &e), 0);
    assert_true(was_there);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM lapse_pause WHERE released_at IS NULL"), 1);
    assert_int_equal(ask_number(f->sql, "SELECT count(*) FROM lapse_pause WHERE released_at IS NOT NULL AND "
                                        "released_by = 'us'"),
                     1);
    assert_int_equal(own_of(f)->release(f->store, "", &someone, &was_there, &e), 0);
    assert_false(was_there);
    assert_int_equal(own_of(f)->brake(f->store, "it's", NULL, &someone, &e), 0);
    assert_brakes(f, "'it's'");
}

static void a_brake_is_read_inside_a_transaction(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    install(f);
    assert_int_equal(own_of(f)->brake(f->store, "p", NULL, &someone, &e), 0);
    assert_int_equal(f->sql->engine->begin_write(f->sql, US_PER_S, US_PER_S, &e), 0);
    f->sql->writing = true;
    do_sql(f->sql, "INSERT INTO lapse_pause (name, until, paused_at) VALUES ('q', NULL, '2024-01-01')");
    assert_brakes(f, "'p' 'q'");
    sqlstore_rollback(f->store);
    assert_brakes(f, "'p'");
}

/* --- leases ---------------------------------------------------------------------------------------- */

static struct lease_row take(struct file *f, const char *scheduler, const char *owner, int64_t us)
{
    struct err e = ERR_INIT;
    struct lease_row row = {0};
    if (own_of(f)->lease_take(f->store, scheduler, owner, us, &row, &e) < 0)
        fail_msg("%s", e.text);
    return row;
}

static void a_token_is_never_used_again(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    install(f);
    assert_int_equal(take(f, "s", "a", US_PER_S * 60).token, 1);
    assert_string_equal(take(f, "s", "b", US_PER_S * 60).owner, "a");
    assert_int_equal(take(f, "s", "a", US_PER_S * 60).token, 2); /* its answer was lost */
    assert_int_equal(own_of(f)->lease_drop(f->store, "s", "a", 1, &e), 0);
    assert_string_equal(take(f, "s", "b", US_PER_S * 60).owner, "a");
    assert_int_equal(own_of(f)->lease_drop(f->store, "s", "a", 2, &e), 0);
    assert_int_equal(take(f, "s", "b", US_PER_S * 60).token, 3);
    assert_int_equal(take(f, "S", "a", US_PER_S * 60).token, 1); /* another name */
    assert_int_equal(take(f, "s ", "a", US_PER_S * 60).token, 1);
}

static void only_the_current_token_passes(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    install(f);
    take(f, "s", "a", US_PER_S * 60);
    assert_int_equal(own_of(f)->lease_fence(f->store, "s", "a", 1, US_PER_S * 60, &e), 0);
    const struct {
        const char *scheduler, *owner;
        int64_t token;
    } wrong[] = {{"s", "a", 0}, {"s", "a", 2}, {"s", "b", 1}, {"S", "a", 1}, {"t", "a", 1}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(own_of(f)->lease_fence(f->store, wrong[i].scheduler, wrong[i].owner, wrong[i].token,
                                                US_PER_S * 60, &e),
                         -1);
        assert_int_equal(e.kind, ERR_LEASE);
    }
}

static void a_fence_belongs_to_the_open_transaction(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    install(f);
    take(f, "s", "a", US_PER_S * 60);
    assert_int_equal(f->sql->engine->begin_write(f->sql, US_PER_S, US_PER_S, &e), 0);
    f->sql->writing = true;
    assert_int_equal(own_of(f)->lease_fence(f->store, "s", "a", 1, US_PER_S * 7200, &e), 0);
    assert_int_equal(ask_number(f->sql, "SELECT unixepoch(expires_at) > unixepoch() + 3600 FROM lapse_lease"),
                     1);
    sqlstore_rollback(f->store);
    assert_int_equal(ask_number(f->sql, "SELECT unixepoch(expires_at) > unixepoch() + 3600 FROM lapse_lease"),
                     0);
}

/* --- the history ------------------------------------------------------------------------------------- */

static void put(struct file *f, const char *id, const char *scheduler, const char *source, instant started,
                int64_t rows)
{
    struct err e = ERR_INIT;
    struct run_row row = {.scheduler = scheduler,
                          .source = source,
                          .owner = "h:1:x",
                          .started = started,
                          .outcome = "done",
                          .rows = rows,
                          .skipped = 1,
                          .unknown = 2,
                          .batches = 3,
                          .errors = 4,
                          .error = rows ? "it's" : NULL,
                          .counts = "{}"};
    row.ended = rows > 0;
    row.ended_at = started + US_PER_S;
    snprintf(row.id, sizeof(row.id), "%s", id);
    if (own_of(f)->run_put(f->store, &row, &e) < 0)
        fail_msg("%s", e.text);
}

/* The ids, as "a b c". */
static const char *ids(const struct run_rows *r, char buf[200])
{
    *buf = '\0';
    for (size_t i = 0; i < r->n; i++)
        snprintf(buf + strlen(buf), 200 - strlen(buf), "%s%s", i ? " " : "", r->list[i].id);
    return buf;
}

static void a_run_is_written_once_and_again(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    AUTO(run_rows_release) struct run_rows all = {0};
    install(f);
    put(f, "a", "often", "daemon", 1234567, 0);
    put(f, "a", "other", "sweep", 99, 7);
    assert_int_equal(own_of(f)->runs(f->store, NULL, 10, &all, &e), 0);
    assert_int_equal(all.n, 1);
    const struct run_row *row = &all.list[0];
    assert_string_equal(row->scheduler, "often"); /* who ran it does not change */
    assert_true(row->started == 1234567 && row->ended && row->ended_at == 99 + US_PER_S);
    assert_true(row->rows == 7 && row->skipped == 1 && row->unknown == 2 && row->batches == 3 &&
                row->errors == 4);
    assert_string_equal(row->error, "it's");
    assert_string_equal(row->owner, "h:1:x");
}

static void the_newest_first(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    char buf[200];
    install(f);
    put(f, "a", "x", "daemon", 5 * US_PER_S, 1); /* a whole second sorts before its fractions */
    put(f, "b", "x", "sweep", 5 * US_PER_S + 500000, 1);
    put(f, "c", "X", "daemon", 6 * US_PER_S, 0);
    put(f, "d", "x", "daemon", 4 * US_PER_S + 999999, 1);
    put(f, "f", "y", "sweep", US_PER_S, 1);
    put(f, "e", "y", "sweep", US_PER_S, 1);
    const struct {
        const char *scheduler;
        int64_t most;
        const char *ids;
    } cases[] = {
        {NULL, 10, "c b a d f e"}, {NULL, 2, "c b"}, {"x", 10, "b a d"}, {"x", 1, "b"}, {"z", 5, ""}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(run_rows_release) struct run_rows found = {0};
        assert_int_equal(own_of(f)->runs(f->store, cases[i].scheduler, cases[i].most, &found, &e), 0);
        assert_string_equal(ids(&found, buf), cases[i].ids);
    }
    AUTO(run_rows_release) struct run_rows last = {0}, daemon = {0};
    AUTO(run_totals_release) struct run_totals totals = {0};
    assert_int_equal(own_of(f)->last_runs(f->store, false, &last, &e), 0);
    assert_string_equal(ids(&last, buf), "c b f");
    assert_int_equal(own_of(f)->last_runs(f->store, true, &daemon, &e), 0);
    assert_string_equal(ids(&daemon, buf), "c a");
    assert_int_equal(own_of(f)->run_totals(f->store, &totals, &e), 0);
    assert_int_equal(totals.n, 3);
    assert_true(totals.list[0].rows == 0 &&
                totals.list[2].rows == 2); /* a writing changes its own row alone */
    assert_string_equal(totals.list[1].scheduler, "x");
    assert_true(totals.list[1].runs == 3 && totals.list[1].rows == 3 && totals.list[1].errors == 12);
    assert_true(totals.list[1].since == 4 * US_PER_S + 999999);
}

static void leases_are_listed(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    struct lease_row row;
    AUTO(lease_rows_release) struct lease_rows all = {0};
    install(f);
    assert_int_equal(own_of(f)->lease_take(f->store, "b", "one", 60 * US_PER_S, &row, &e), 0);
    assert_int_equal(own_of(f)->lease_take(f->store, "a", "two", 60 * US_PER_S, &row, &e), 0);
    assert_int_equal(own_of(f)->lease_take(f->store, "c", "three", 60 * US_PER_S, &row, &e), 0);
    assert_int_equal(own_of(f)->lease_drop(f->store, "c", "three", row.token, &e), 0);
    do_sql(f->sql, "UPDATE lapse_lease SET expires_at = '2020-01-01T00:00:00Z' WHERE scheduler = 'a'");
    assert_int_equal(own_of(f)->leases(f->store, &all, &e), 0);
    assert_int_equal(all.n, 3);
    assert_string_equal(all.list[0].scheduler, "a");
    assert_string_equal(all.list[0].row.owner, "two");
    assert_true(all.list[0].expired && !all.list[1].expired && !all.list[2].expired);
    assert_string_equal(all.list[2].row.owner, "");
}

/* --- for people -------------------------------------------------------------------------------------- */

static void what_is_printed_is_what_is_missing(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    AUTO(text_release) struct text before = {0}, after = {0};
    assert_int_equal(own_of(f)->look(f->store, &e), 0);
    own_of(f)->print(f->store, &before);
    assert_non_null(strstr(text_str(&before), "CREATE TABLE main.\"lapse_pause\""));
    assert_null(strchr(text_str(&before), '{'));
    install(f);
    own_of(f)->print(f->store, &after);
    assert_string_equal(text_str(&after), "");
    assert_int_equal(own_of(f)->print_grants(f->store, "r", FOR_SWEEP, NULL, 0, false, &after, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_missing_steps_run),
        TEST(a_step_that_fails_leaves_nothing),
        TEST(nothing_is_installed_at_first),
        TEST(newer_tables_are_refused),
        TEST(a_fuse_trips_once),
        TEST(an_acknowledgement_is_used_once),
        TEST(a_trip_takes_an_acknowledgement_away),
        TEST(brakes_end),
        TEST(a_brake_is_read_inside_a_transaction),
        TEST(a_token_is_never_used_again),
        TEST(only_the_current_token_passes),
        TEST(a_fence_belongs_to_the_open_transaction),
        TEST(a_run_is_written_once_and_again),
        TEST(the_newest_first),
        TEST(leases_are_listed),
        TEST(what_is_printed_is_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
