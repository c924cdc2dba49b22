/* Tests of src/watch/gauge.c: when it looks (a day in a moment), and what it makes of a real file. */
#include "sqlite_plan.h"

#include "watch/gauge.h"

#define S  INT64_C(1000000)
#define M  (60 * S)
#define H  (60 * M)
#define MS INT64_C(1000)

/* --- when to look -------------------------------------------------------------------------------- */

enum { MOST = 1000 };
struct day {
    struct pace_of list[MOST];
    int64_t looks[MOST], busy_us, now_us;
};

/* A day of looking at n policies, each of which takes so long; those beyond `slow` do not answer in time. */
static void spend(struct day *d, size_t n, const int64_t *took_us, size_t slow, int64_t until_us)
{
    struct gauge_pace p = {.list = d->list, .n = n};
    int64_t wait;
    while (d->now_us < until_us) {
        size_t i = pace_next(&p, d->now_us, &wait);
        if (i == SIZE_MAX) {
            assert_true(wait > 0);
            d->now_us += wait;
            continue;
        }
        d->looks[i]++;
        d->busy_us += took_us[i];
        d->now_us += took_us[i];
        pace_looked(&p, i, d->now_us, took_us[i], i >= slow);
    }
}

static void test_every_minute(void **state)
{
    (void)state;
    static struct day d;
    static const int64_t took[] = {2 * MS, 3 * MS};
    spend(&d, 2, took, 2, 24 * H);
    assert_in_range(d.looks[0], 1430, 1440);
    assert_in_range(d.looks[1], 1430, 1440);
}

static void test_a_hundredth_of_the_time(void **state)
{
    (void)state;
    static struct day d;
    static int64_t took[MOST];
    for (size_t i = 0; i < MOST; i++)
        took[i] = (int64_t)(1 + i % 7) * MS;
    spend(&d, MOST, took, MOST, 24 * H);
    assert_in_range(d.busy_us, 24 * H / 120, 24 * H / 100 + 2 * 4 * S); /* the first round knows no better */
    for (size_t i = 1; i < MOST; i++)                                   /* none is forgotten */
        assert_in_range(d.looks[i], d.looks[0] - 1, d.looks[0] + 1);
}

/* One that takes a second is looked at every hundred seconds, and the others wait with it. */
static void test_a_long_look(void **state)
{
    (void)state;
    static struct day d;
    static const int64_t took[] = {1 * S, 1 * MS};
    spend(&d, 2, took, 2, 24 * H);
    assert_in_range(d.looks[0], 850, 864);
    assert_in_range(d.looks[1], 850, 864);
}

/* Those that do not answer in time do not keep the others from being looked at. */
static void test_slow_ones(void **state)
{
    (void)state;
    static struct day d;
    static const int64_t took[] = {1 * MS, 2 * S, 2 * S};
    spend(&d, 3, took, 1, 24 * H);
    assert_in_range(d.looks[0], 1350, 1440);
    assert_in_range(d.looks[1], 23, 25);
    static struct day many;
    static int64_t two_seconds[100];
    for (size_t i = 0; i < 100; i++)
        two_seconds[i] = 2 * S;
    spend(&many, 100, two_seconds, 0, 24 * H);
    assert_true(many.busy_us < 24 * H / 100 + 200 * S);
}

static void test_no_policies(void **state)
{
    (void)state;
    struct gauge_pace p = {0};
    int64_t wait = 0;
    assert_true(pace_next(&p, 5, &wait) == SIZE_MAX);
    assert_int_equal(wait, M);
}

static void test_gaps(void **state)
{
    (void)state;
    struct pace_of list[2] = {{0}};
    struct gauge_pace p = {.list = list, .n = 2};
    int64_t wait;
    assert_int_equal(pace_next(&p, 100 * S, &wait), 0);
    pace_looked(&p, 0, 101 * S, 1 * S, false);
    assert_true(pace_next(&p, 101 * S, &wait) == SIZE_MAX);
    assert_int_equal(wait, 9 * S);
    assert_int_equal(pace_next(&p, 110 * S, &wait), 1);
    pace_busy(&p, 1, 110 * S);
    assert_true(pace_next(&p, 110 * S, &wait) == SIZE_MAX);
    assert_int_equal(wait, 1 * S);
}

static void test_a_database_that_is_not_there(void **state)
{
    (void)state;
    static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct pace_of list[2] = {{0}};
    struct gauge_pace p = {.list = list, .n = 2};
    int64_t wait, now = 100 * S;
    pace_looked(&p, 0, now, MS, false);
    pace_looked(&p, 1, now, 2 * S, true);
    for (size_t i = 0; i < COUNT_OF(pauses); i++) {
        pace_broke(&p, now);
        assert_true(pace_next(&p, now, &wait) == SIZE_MAX);
        assert_int_equal(wait, pauses[i] * S);
        now += wait;
        assert_int_equal(pace_next(&p, now, &wait), 0); /* all are due, but those that would not answer */
    }
    pace_looked(&p, 0, now, MS, false);
    pace_broke(&p, now);
    assert_true(pace_next(&p, now, &wait) == SIZE_MAX);
    assert_int_equal(wait, 1 * S);
}

/* --- looking ------------------------------------------------------------------------------------- */

struct lookout {
    struct contract *contract;
    struct meter *meter;
    struct gauge *gauge;
    struct text said;
    const char *swept; /* the policy that is busy */
    int64_t now_us;
};

static bool is_swept(void *context, const struct policy *p)
{
    struct lookout *l = context;
    return l->swept && !strcmp(l->swept, p->name);
}

static void note(void *context, const struct event *ev)
{
    struct lookout *l = context;
    assert_int_equal(event_level_of(ev), LEVEL_DEBUG);
    text_addf(&l->said, "%s\n", event_message_of(ev));
}

static struct lookout look_out(const char *path, const char *policies)
{
    struct lookout l = {.meter = meter_new()};
    struct mistakes mistakes = {0};
    struct err e = ERR_INIT;
    AUTO(text_release) struct text yaml = {0};
    text_addf(&yaml,
              "store: sqlite:%s\nschedulers: {main: {every: 1m}, off: {every: 1m, enabled: false}}\n%s", path,
              policies);
    if (contract_parse("lapse.yaml", yaml.data, yaml.len, &l.contract, &mistakes, &e))
        fail_msg("%s", mistakes.n ? mistakes.list[0].text : e.text);
    mistakes_release(&mistakes);
    return l;
}

static void open_gauge(struct lookout *l)
{
    l->gauge = gauge_new(l->contract, l->meter, &(struct gauge_options){is_swept, note, l});
}

/* Until each policy had its turn. */
static void turn(struct lookout *l)
{
    for (int64_t wait = 0; wait < 30 * S; l->now_us += wait)
        wait = gauge_turn(l->gauge, l->now_us);
}

static void shut(struct lookout *l)
{
    gauge_free(l->gauge);
    meter_free(l->meter);
    contract_free(l->contract);
    text_release(&l->said);
}

/* The gauges of what is due, without what every line begins with; ages as whole seconds of 1000. */
static void shows(struct lookout *l, const char *expected)
{
    AUTO(text_release) struct text all = {0}, found = {0};
    meter_print(l->meter, &all);
    for (char *line = strtok(all.data, "\n"); line; line = strtok(NULL, "\n")) {
        const char *table = strstr(line, "table=\"");
        if (*line == '#' || !table)
            continue;
        size_t len = strcspn(table + 7, "\"");
        double value = strtod(strrchr(line, ' '), NULL);
        if (!strncmp(line, "lapse_due_rows", 14))
            text_addf(&found, "%.*s %.0f rows\n", (int)len, table + 7, value);
        if (!strncmp(line, "lapse_oldest_due_age_seconds", 28))
            text_addf(&found, "%.*s %.0f000 s\n", (int)len, table + 7, value / 1000);
    }
    assert_string_equal(text_str(&found), expected);
}

#define POLICIES                                                                                             \
    "policies:\n"                                                                                            \
    "  sessions: {scheduler: main, table: sessions, expires: at_s}\n"                                        \
    "  one: {scheduler: main, label: jobs, table: jobs, rows: {state: one}, age: at_s, keep: 1h}\n"          \
    "  two: {scheduler: main, label: jobs, table: jobs, rows: {state: two}, age: at_s, keep: 1h}\n"          \
    "  most: {scheduler: main, table: sessions, cap: {rows: 2, newest: [id]}}\n"                             \
    "  idle: {scheduler: off, table: sessions, expires: at_s}\n"                                             \
    "  not: {scheduler: main, enabled: false, table: sessions, expires: at_s}\n"

static void fill(struct file *f)
{
    static const char *const statements[] = {
        "create table sessions (id integer primary key, at_s integer)",
        "create index sessions_at on sessions(at_s)",
        "create table jobs (id integer primary key, state text, at_s integer)",
        "insert into sessions values (1, unixepoch() - 5000), (2, unixepoch() - 5001), (3, unixepoch() - "
        "4000),"
        "(9, unixepoch() + 5000)",
        "insert into jobs values (1, 'one', unixepoch() - 7000), (2, 'two', unixepoch() - 9000),"
        "(3, 'two', unixepoch() - 8000), (4, 'two', unixepoch() - 60), (5, 'three', 1)",
    };
    for (size_t i = 0; i < COUNT_OF(statements); i++)
        do_sql(f->sql, statements[i]);
}

static void test_what_is_due(void **state)
{
    struct file *f = *state;
    fill(f);
    struct lookout l = look_out(file_path(f), POLICIES);
    open_gauge(&l);
    turn(&l);
    shows(&l, "jobs 3 rows\nmost 2 rows\nsessions 3 rows\njobs 9000 s\nsessions 5000 s\n");
    do_sql(f->sql, "delete from sessions where id < 9");
    do_sql(f->sql, "delete from jobs where id = 2");
    shows(&l, "jobs 3 rows\nmost 2 rows\nsessions 3 rows\njobs 9000 s\nsessions 5000 s\n");
    turn(&l); /* a minute later */
    shows(&l, "jobs 2 rows\nmost 0 rows\nsessions 0 rows\njobs 8000 s\nsessions 0000 s\n");
    assert_string_equal(text_str(&l.said), "");
    shut(&l);
}

static void test_a_policy_that_is_swept(void **state)
{
    struct file *f = *state;
    fill(f);
    struct lookout l = look_out(file_path(f), POLICIES);
    open_gauge(&l);
    l.swept = "one";
    for (int i = 0; i < 100; i++)
        l.now_us += gauge_turn(l.gauge, l.now_us);
    shows(&l, "most 2 rows\nsessions 3 rows\nsessions 5000 s\n"); /* of jobs only half is known */
    l.swept = NULL;
    turn(&l);
    shows(&l, "jobs 3 rows\nmost 2 rows\nsessions 3 rows\njobs 9000 s\nsessions 5000 s\n");
    shut(&l);
}

/* A table that goes, and comes back with another column; one that was never there. */
static void test_a_schema_that_changes(void **state)
{
    struct file *f = *state;
    fill(f);
    struct lookout l =
        look_out(file_path(f), POLICIES "  none: {scheduler: main, table: nowhere, expires: at_s}\n");
    open_gauge(&l);
    turn(&l);
    assert_non_null(strstr(l.said.data, "what is due of policy 'none' is not known: "));
    do_sql(f->sql, "drop table jobs");
    do_sql(f->sql, "create table jobs (key text primary key, state text, at_s integer)");
    do_sql(f->sql, "insert into jobs values ('k', 'one', unixepoch() - 4000)");
    turn(&l); /* a statement fails, so the schema is read anew before its ten minutes are over */
    shows(&l, "most 2 rows\nsessions 3 rows\nsessions 5000 s\n");
    turn(&l);
    shows(&l, "jobs 1 rows\nmost 2 rows\nsessions 3 rows\njobs 4000 s\nsessions 5000 s\n");
    do_sql(f->sql, "drop table jobs");
    turn(&l);
    shows(&l, "most 2 rows\nsessions 3 rows\nsessions 5000 s\n");
    shut(&l);
}

/* Not there, there, gone, back: what is not known is not shown; said once each time. */
static void test_a_database_that_comes_and_goes(void **state)
{
    struct file *f = *state;
    fill(f);
    AUTO(text_release) struct text away = {0};
    text_addf(&away, "%s.away", file_path(f));
    struct lookout l = look_out(text_str(&away), POLICIES);
    open_gauge(&l);
    for (int i = 0; i < 5; i++)
        l.now_us += gauge_turn(l.gauge, l.now_us);
    shows(&l, "");
    assert_int_equal(strncmp(l.said.data, "what is due is not known: ", 26), 0);
    assert_ptr_equal(strchr(l.said.data, '\n'), l.said.data + l.said.len - 1);
    assert_int_equal(rename(file_path(f), text_str(&away)), 0);
    turn(&l);
    shows(&l, "jobs 3 rows\nmost 2 rows\nsessions 3 rows\njobs 9000 s\nsessions 5000 s\n");
    shut(&l);
}

static void test_interrupted(void **state)
{
    struct file *f = *state;
    fill(f);
    struct lookout l = look_out(file_path(f), POLICIES);
    open_gauge(&l);
    l.now_us += gauge_turn(l.gauge, l.now_us);
    gauge_interrupt(l.gauge);
    assert_int_equal(gauge_turn(l.gauge, l.now_us + 10 * M), M);
    shows(&l, "sessions 3 rows\nsessions 5000 s\n");
    shut(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_minute),
        cmocka_unit_test(test_a_hundredth_of_the_time),
        cmocka_unit_test(test_a_long_look),
        cmocka_unit_test(test_slow_ones),
        cmocka_unit_test(test_no_policies),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_a_database_that_is_not_there),
        cmocka_unit_test_setup_teardown(test_what_is_due, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(test_a_policy_that_is_swept, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(test_a_schema_that_changes, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(test_a_database_that_comes_and_goes, file_setup, file_teardown),
        cmocka_unit_test_setup_teardown(test_interrupted, file_setup, file_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
