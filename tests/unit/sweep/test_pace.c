/* Tests of src/sweep/pace.c: scripted batches and looks, and what the pacer makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "sweep/pace.h"

enum { MS = 1000, S = 1000 * MS };

/* A pacer, its clock, and a database in which a row costs so much. */
struct play {
    struct policy policy;
    struct pace pace;
    struct pacer p;
    int64_t now;
    double row_us, fixed_us;
};

static void begin(struct play *g, int64_t batch)
{
    g->policy.batch = batch;
    if (g->pace.target.us || g->pace.duty || g->pace.rows_per_second || g->pace.lag.us || g->pace.lag_bytes) {
        g->pace.target_set = g->pace.target.us > 0;
        if (!g->pace.target_set)
            g->pace.target = (struct span){SPAN_TIME, 50 * MS};
        if (!g->pace.lag.us)
            g->pace.lag = (struct span){SPAN_NEVER, INT64_MAX};
        if (!g->pace.lag_bytes)
            g->pace.lag_bytes = -1;
        g->policy.pace = &g->pace;
    }
    g->row_us = g->row_us > 0 ? g->row_us : 50;
    g->fixed_us = g->fixed_us > 0 ? g->fixed_us : 1000;
    if (!g->now)
        g->now = 5 * S;
    pacer_init(&g->p, &g->policy, g->now);
}
#define PLAY(batch, ...)                                                                                     \
    struct play g = {__VA_ARGS__};                                                                           \
    begin(&g, batch)
#define PLAY_AGAIN(batch, ...)                                                                               \
    g = (struct play){__VA_ARGS__};                                                                          \
    begin(&g, batch)
#define TARGET(us_) .pace.target = {SPAN_TIME, us_}
#define LAG(us_)    .pace.lag = {SPAN_TIME, us_}

/* A batch of what is allowed, at most so many rows; how long it took. */
static int64_t go(struct play *g, int64_t there)
{
    int64_t asked = pacer_rows(&g->p), rows = asked < there ? asked : there;
    int64_t us = (int64_t)(g->fixed_us + g->row_us * (double)rows);
    g->now += us;
    pacer_batch(&g->p, &(struct pace_batch){asked, rows, rows, us}, g->now);
    return us;
}

static void go_on(struct play *g, int n)
{
    for (int i = 0; i < n; i++)
        go(g, INT64_MAX);
}

/* Waits as told; what that was. */
static int64_t wait_us(struct play *g)
{
    int64_t us = 0;
    for (struct pace_wait w; (w = pacer_wait(&g->p, g->now)).us && us < 3600 * (int64_t)S; us += w.us)
        g->now += w.us;
    return us;
}

static const struct pressure calm = {.others = 10, .replicas = 0};

static void hear(struct play *g, struct pressure said)
{
    pacer_heard(&g->p, &said, g->now, 100);
}

/* Others write so often in a second, and are looked at five times in it. */
static void beside(struct play *g, double rate, double seconds, bool one_writer)
{
    struct pressure said = g->p.has_heard ? g->p.heard : calm;
    double count = (double)said.others;
    said.one_writer = one_writer;
    for (double t = 0; t < seconds; t += 0.2) {
        count += rate * 0.2;
        said.others = (int64_t)count;
        g->now += 200 * MS;
        hear(g, said);
    }
}

static void reason_is(const struct play *g, const char *name)
{
    assert_string_equal(pace_reason_name(pacer_reason(&g->p)), name);
}

static void every_reason_has_a_name_and_words(void **state)
{
    (void)state;
    PLAY(100, .row_us = 1);
    for (int r = 0; r < N_PACE_REASONS; r++) {
        AUTO(text_release) struct text words = {0};
        assert_non_null(pace_reason_name((enum pace_reason)r));
        pacer_words(&g.p, (enum pace_reason)r, &words);
        assert_int_equal(words.len > 0, r != PACE_FREE);
        assert_int_equal(strlen(pace_reason_name((enum pace_reason)r)) > 0, r != PACE_FREE);
    }
}

static void it_begins_small_and_doubles_up_to_the_batch(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 10);
    int64_t first = pacer_rows(&g.p);
    assert_int_equal(first, 100);
    go(&g, INT64_MAX);
    assert_int_equal(pacer_rows(&g.p), 200);
    go_on(&g, 3);
    assert_int_equal(pacer_rows(&g.p), 1000);
    go_on(&g, 100);
    assert_int_equal(pacer_rows(&g.p), 1000);
    reason_is(&g, "");
    assert_int_equal(wait_us(&g), 0);
}

static void a_small_batch_or_a_long_target_begins_whole(void **state)
{
    (void)state;
    PLAY(10, .row_us = 10);
    assert_int_equal(pacer_rows(&g.p), 10);
    struct play long_one = {.row_us = 1000, .pace.target = {SPAN_TIME, 600 * (int64_t)S}};
    begin(&long_one, 100000);
    assert_int_equal(pacer_rows(&long_one.p), 100000);
    go_on(&long_one, 5);
    assert_int_equal(pacer_rows(&long_one.p), 100000);
}

static void batches_settle_below_the_target(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 200);
    go_on(&g, 20);
    for (int i = 0; i < 100; i++)
        assert_in_range(go(&g, INT64_MAX), 30 * MS, 50 * MS);
    reason_is(&g, "target");
}

static void slow_rows_shrink_it_fast_and_it_grows_back_gently(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 10);
    go_on(&g, 10);
    g.row_us = 5000; /* a full batch takes five seconds */
    go(&g, INT64_MAX);
    assert_in_range(pacer_rows(&g.p), 1, 100);
    reason_is(&g, "target");
    go_on(&g, 3);
    assert_in_range(pacer_rows(&g.p), 1, 10);
    assert_in_range(go(&g, INT64_MAX), 1, 50 * MS);
    g.row_us = 10;
    int64_t before = pacer_rows(&g.p), steps = 0;
    while (pacer_rows(&g.p) < 1000 && steps < 100) {
        go(&g, INT64_MAX);
        assert_in_range(pacer_rows(&g.p), before + 1, before < 100 ? before * 2 : before + before / 8 + 1);
        before = pacer_rows(&g.p);
        steps++;
    }
    assert_in_range(steps, 20, 80);
    go(&g, INT64_MAX);
    assert_int_equal(pacer_rows(&g.p), 1000);
}

static void one_slow_moment_halves_at_most(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 30);
    go_on(&g, 10);
    g.fixed_us = 150 * MS;
    go(&g, INT64_MAX);
    assert_in_range(pacer_rows(&g.p), 500, 999);
}

static void a_row_that_is_too_slow_alone_is_still_tried(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 2 * S);
    go_on(&g, 5);
    assert_int_equal(pacer_rows(&g.p), 1);
    go_on(&g, 5);
    assert_int_equal(pacer_rows(&g.p), 1);
}

static void what_was_not_full_says_nothing_of_more(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 10);
    for (int i = 0; i < 10; i++)
        go(&g, 20);
    assert_int_equal(pacer_rows(&g.p), 100);
}

/* What each transaction costs, however few its rows, is no reason to take ever fewer. */
static void costs_of_a_transaction_do_not_shrink_it_to_nothing(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .fixed_us = 80 * MS);
    go_on(&g, 200);
    assert_in_range(pacer_rows(&g.p), 31, 1000);
    g.fixed_us = 1000;
    go_on(&g, 100);
    assert_int_equal(pacer_rows(&g.p), 1000);
}

/* A reading that costs as much for three rows as for a hundred. */
static void finding_rows_is_paid_once_for_many(void **state)
{
    (void)state;
    PLAY(100, .row_us = 10, .fixed_us = 80 * MS);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(pacer_rows(&g.p), 100);
        go(&g, INT64_MAX);
    }
    reason_is(&g, "");
    PLAY_AGAIN(1000, .row_us = 100, .fixed_us = 40 * MS); /* the target would leave a hundred; even are 400 */
    go_on(&g, 60);
    assert_in_range(pacer_rows(&g.p), 350, 1000);
    PLAY_AGAIN(1000, .row_us = 100, .fixed_us = 40 * MS, TARGET(50 * MS)); /* the contract's own, too */
    go_on(&g, 60);
    assert_in_range(pacer_rows(&g.p), 350, 1000);
}

/* A busy machine: every third batch takes twenty times as long, and every transaction has its moment. */
static void chance_does_not_starve_it(void **state)
{
    (void)state;
    for (int64_t batch = 100; batch <= 1000; batch *= 10) {
        PLAY(batch, .row_us = 30);
        int64_t rows = 0;
        for (int i = 0; i < 300; i++) {
            g.fixed_us = (i * 7 % 10) * 8 * MS + (i % 3 == 0 ? 100 * MS : 1 * MS);
            rows += pacer_rows(&g.p);
            go(&g, INT64_MAX);
        }
        assert_true(rows >= 300 * 100);
    }
}

static void some_rows_are_no_burden_unless_somebody_asks_for_less(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 1000);
    go_on(&g, 50);
    assert_int_equal(pacer_rows(&g.p), 100); /* a tenth of a second */
    pacer_locked(&g.p);
    assert_int_equal(pacer_rows(&g.p), 50); /* whose locks were met */
    go(&g, INT64_MAX);
    assert_in_range(pacer_rows(&g.p), 1, 60);
    PLAY_AGAIN(1000, .row_us = 1000, TARGET(50 * MS)); /* the contract */
    go_on(&g, 50);
    assert_in_range(pacer_rows(&g.p), 20, 50);
    PLAY_AGAIN(1000, .row_us = 1000); /* who writes */
    hear(&g, calm);
    go_on(&g, 50);
    beside(&g, 50, 1, false);
    go_on(&g, 10);
    assert_in_range(pacer_rows(&g.p), 1, 10);
    PLAY_AGAIN(1000, .row_us = 10 * MS); /* rows that are dear: a hundred would be a second */
    go_on(&g, 50);
    assert_in_range(pacer_rows(&g.p), 1, 10);
}

static void two_sizes_tell_what_is_for_rows(void **state)
{
    (void)state;
    struct pace_fit f = {0};
    assert_int_equal(pace_fit_even(&f), 1);
    for (int i = 0; i < 10; i++)
        pace_fit_add(&f, 100, 45 * MS);
    assert_int_equal(pace_fit_even(&f), 1); /* of one size nothing can be told */
    for (int i = 0; i < 4; i++)
        pace_fit_add(&f, 50, 42500);
    assert_in_range(pace_fit_even(&f), 790, 810); /* 40 ms, and 50 us for each */
    pace_fit_add(&f, 50, 4 * S);                  /* chance */
    assert_in_range(pace_fit_even(&f), 790, 810);
    pace_fit_add(&f, 100, 8 * S); /* twice it is none */
    assert_true(f.b_us > 70 * MS && f.a_us < 1 * S);
    pace_fit_add(&f, 100, 10 * MS);
    pace_fit_add(&f, 50, 9 * MS); /* nor when it is fast */
    assert_true(f.b_us < 30 && f.a_us > 7 * MS);
    pace_fit_add(&f, 1000, 9 * MS);
    pace_fit_add(&f, 2000, 9 * MS);
    assert_true(pace_fit_even(&f) > 1000);
    for (int i = 0; i < 200; i++) /* what was long ago tells nothing */
        pace_fit_add(&f, 100, 9 * MS);
    assert_int_equal(pace_fit_even(&f), 1);
    for (int i = 0; i < 10; i++)
        pace_fit_add(&f, i % 2 ? INT64_MAX : 1, i % 3 ? INT64_MAX : 0);
    assert_true(pace_fit_even(&f) >= 1);
}

static void locks_halve_it(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 10);
    go_on(&g, 10);
    pacer_locked(&g.p);
    assert_int_equal(pacer_rows(&g.p), 500);
    reason_is(&g, "locks");
    for (int i = 0; i < 20; i++)
        pacer_locked(&g.p);
    assert_in_range(pacer_rows(&g.p), 16, 31); /* small, not useless: what refuses a row is found otherwise */
    go_on(&g, 200);
    assert_int_equal(pacer_rows(&g.p), 1000);
    reason_is(&g, "");
}

static void rows_per_second_is_kept(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 10, .pace.rows_per_second = 250);
    int64_t begun = g.now, rows = 0;
    for (int i = 0; i < 100; i++) {
        rows += pacer_rows(&g.p);
        go(&g, INT64_MAX);
        if (i == 0)
            reason_is(&g, "rows_per_second");
        wait_us(&g);
        double seconds = (double)(g.now - begun) / S;
        assert_true((double)rows <= 250 * seconds + 1);
    }
    assert_true((double)rows >= 0.99 * 250 * (double)(g.now - begun) / S);
}

static void a_row_every_so_many_seconds(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 10, .pace.rows_per_second = 0.1);
    assert_int_equal(pacer_rows(&g.p), 1);
    go(&g, INT64_MAX);
    assert_in_range(wait_us(&g), 9900 * MS, 10 * S);
}

static void what_was_not_used_is_not_saved_up(void **state)
{
    (void)state;
    PLAY(100, .row_us = 10, .pace.rows_per_second = 100);
    go(&g, INT64_MAX);
    wait_us(&g);
    g.now += 3600 * (int64_t)S;
    go(&g, INT64_MAX);
    assert_in_range(wait_us(&g), 900 * MS, 1 * S);
}

static void what_was_let_through_stays_owed(void **state)
{
    (void)state;
    PLAY(100, .row_us = 10, .pace.rows_per_second = 100);
    go(&g, 50); /* not full: the next one may begin at once */
    assert_int_equal(pacer_wait(&g.p, g.now).us, 0);
    go(&g, INT64_MAX);
    assert_in_range(wait_us(&g), 1400 * MS, 1500 * MS);
}

static void now_and_then_it_lets_in_who_waits_for_its_lock(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 10);
    struct pressure said = calm;
    said.one_writer = true;
    hear(&g, said);
    int64_t busy = 0, rest = 0;
    int pauses = 0;
    while (busy < 20 * (int64_t)S) {
        busy += go(&g, INT64_MAX);
        int64_t us = wait_us(&g);
        assert_true(us == 0 || us > 100 * MS);
        assert_true(pauses || us || busy < 60 * MS); /* soon for the first time */
        pauses += us > 0;
        rest += us;
        reason_is(&g, "");
    }
    assert_in_range(pauses, 6, 9);
    assert_true(rest < busy / 20);
    said.others++; /* one got in */
    hear(&g, said);
    go(&g, INT64_MAX);
    reason_is(&g, "writers");
}

static void duty_is_kept(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .pace.duty = 0.25);
    int64_t busy = 0, begun = g.now;
    for (int i = 0; i < 50; i++) {
        busy += go(&g, INT64_MAX);
        reason_is(&g, "duty");
        wait_us(&g);
    }
    double share = (double)busy / (double)(g.now - begun);
    assert_true(share > 0.24 && share < 0.26);
}

/* Several connections: what is under way at a look is counted by the database, and not yet taken off. */
static void what_is_under_way_is_nobody_elses(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20);
    struct pressure said = calm;
    for (int i = 0; i < 100; i++) {
        said.under_way = i * 7 % 50;
        said.others = calm.others + said.under_way;
        g.now += 200 * MS;
        hear(&g, said);
        go(&g, INT64_MAX);
        assert_true(pacer_reason(&g.p) != PACE_WRITERS);
    }
    for (int i = 0; i < 20; i++) { /* somebody does write */
        said.under_way = i % 3;
        said.others = calm.others + 50 + 5 * i + i % 3;
        g.now += 200 * MS;
        hear(&g, said);
    }
    go(&g, INT64_MAX);
    reason_is(&g, "writers");
}

/* Two connections: one has just had a long batch, the other has a short one. */
static void a_short_batch_does_not_end_a_long_pause(void **state)
{
    (void)state;
    PLAY(1000, TARGET(10 * S), .pace.duty = 0.25);
    pacer_batch(&g.p, &(struct pace_batch){100, 100, 100, 1 * S}, g.now);
    int64_t until = g.now + 3 * S;
    g.now += 5 * MS;
    pacer_batch(&g.p, &(struct pace_batch){100, 100, 100, 10 * MS}, g.now);
    reason_is(&g, "duty");
    assert_int_equal(pacer_wait(&g.p, g.now).us, until - g.now);
}

static void with_a_duty_of_its_own_others_change_nothing(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .pace.duty = 1);
    beside(&g, 100, 3, true);
    go_on(&g, 30);
    assert_int_equal(pacer_rows(&g.p), 1000);
    assert_int_equal(wait_us(&g), 0);
}

static void a_batch_that_was_not_full_is_followed_by_a_look_for_more(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .pace.duty = 0.1);
    go(&g, 10);
    assert_int_equal(pacer_wait(&g.p, g.now).us, 0);
    assert_true(pacer_wait(&g.p, g.now).us > 0); /* once */
}

static void beside_others_it_steps_back_and_alone_it_does_not(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 40);
    hear(&g, calm);
    beside(&g, 0, 3, false);
    go_on(&g, 20);
    assert_int_equal(pacer_rows(&g.p), 1000);
    assert_int_equal(wait_us(&g), 0);
    beside(&g, 0.3, 20, false); /* a heartbeat is no load */
    go(&g, INT64_MAX);
    assert_int_equal(wait_us(&g), 0);

    beside(&g, 50, 1, false);
    int64_t us = go(&g, INT64_MAX);
    assert_in_range(us, 1, 3 * MS);
    reason_is(&g, "writers");
    assert_in_range(wait_us(&g), us * 11, us * 12);

    struct pressure said = g.p.heard;
    said.lax = true; /* transactions may be many: none of them waits for the disk */
    hear(&g, said);
    beside(&g, 50, 1, false);
    go_on(&g, 10);
    us = go(&g, INT64_MAX);
    assert_in_range(us, 1, 3 * MS);
    reason_is(&g, "writers");
    assert_in_range(wait_us(&g), us * 2, us * 5 / 2);

    beside(&g, 0, 6, false);
    go_on(&g, 10);
    assert_int_equal(wait_us(&g), 0);
    assert_int_equal(pacer_rows(&g.p), 1000);
    reason_is(&g, "");
}

/* A disk that takes its time with every commit. */
static void where_a_transaction_is_dear_they_are_fewer(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .fixed_us = 8 * MS);
    hear(&g, calm);
    go_on(&g, 20);
    beside(&g, 50, 1, false);
    go_on(&g, 80);
    assert_in_range(go(&g, INT64_MAX), 12 * MS, 22 * MS);
    reason_is(&g, "writers");
    beside(&g, 0, 6, false);
    g.fixed_us = 0;
    go_on(&g, 20);
    beside(&g, 50, 1, false);
    go_on(&g, 80);
    assert_in_range(go(&g, INT64_MAX), 1, 3 * MS);
}

static void where_one_writes_at_a_time_batches_are_short(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 10, .fixed_us = 100);
    hear(&g, calm);
    go_on(&g, 10);
    beside(&g, 5, 3, true);
    for (int i = 0; i < 20; i++) {
        int64_t us = go(&g, INT64_MAX), rest = wait_us(&g);
        assert_in_range(us, 1, 5 * MS);
        assert_true((double)us / (double)(us + rest) < 0.03); /* they keep nearly all of it */
    }
    g.fixed_us = 100 * MS; /* no batch is short any more */
    int64_t us = go(&g, INT64_MAX), rest = wait_us(&g);
    assert_in_range(rest, us * 39 / 10, us * 41 / 10);
}

static void a_target_of_its_own_stays_beside_others(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 1000, TARGET(10 * (int64_t)S));
    hear(&g, calm);
    beside(&g, 100, 3, true);
    go(&g, INT64_MAX);
    assert_int_equal(pacer_rows(&g.p), 1000);
    assert_true(wait_us(&g) > 0);
}

static void growing_latency_makes_pauses_and_passes(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 5);
    go_on(&g, 50);
    assert_int_equal(wait_us(&g), 0);
    g.row_us = 30; /* still far below the target */
    go_on(&g, 8);
    reason_is(&g, "latency");
    assert_true(pacer_wait(&g.p, g.now).us > 0);
    g.row_us = 5;
    go_on(&g, 20);
    assert_int_equal(wait_us(&g), 0);
    g.row_us = 30; /* for good: then it is the rows, not the others */
    go_on(&g, 400);
    assert_int_equal(wait_us(&g), 0);
}

static void an_old_snapshot_slows_it_down(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20);
    struct pressure said = calm;
    said.snapshot_us = 599 * (int64_t)S;
    hear(&g, said);
    go(&g, INT64_MAX);
    assert_int_equal(wait_us(&g), 0);
    said.snapshot_us = 7200 * (int64_t)S;
    hear(&g, said);
    int64_t us = go(&g, INT64_MAX);
    reason_is(&g, "snapshot");
    assert_in_range(wait_us(&g), us - 1, us + 1);
}

static void flow_control_slows_it_down_and_stops_it(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20);
    struct pressure said = calm;
    hear(&g, said);
    g.now += S;
    said.held_up_us += 50 * MS;
    hear(&g, said);
    int64_t us = go(&g, INT64_MAX);
    reason_is(&g, "flow_control");
    assert_in_range(wait_us(&g), us - 1, us + 1);
    g.now += S;
    said.held_up_us += 900 * MS;
    hear(&g, said);
    assert_int_equal(pacer_wait(&g.p, g.now).reason, PACE_FLOW_CONTROL);
    g.now += S;
    hear(&g, said);
    assert_int_equal(pacer_wait(&g.p, g.now).us, 0);
    said.queued = 100;
    hear(&g, said);
    go(&g, INT64_MAX);
    reason_is(&g, "flow_control");
}

static struct pressure replica(int64_t written, int64_t behind)
{
    struct pressure said = calm;
    said.replicas = 1;
    said.written = written;
    said.lag_bytes = behind;
    memcpy(said.furthest, "east", sizeof("east"));
    return said;
}

static bool waits(struct play *g)
{
    struct pace_wait w = pacer_wait(&g->p, g->now);
    assert_int_equal(w.us > 0, w.reason == PACE_LAG);
    return w.us > 0;
}

static void lag_in_bytes_stops_it_until_it_is_over(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .pace.lag_bytes = 1000000);
    assert_true(waits(&g)); /* not known yet */
    hear(&g, replica(5000000, 1000000));
    assert_false(waits(&g));
    hear(&g, replica(6000000, 1000001));
    assert_true(waits(&g));
    reason_is(&g, "lag");
    AUTO(text_release) struct text words = {0};
    pacer_words(&g.p, PACE_LAG, &words);
    assert_string_equal(text_str(&words), "the replica 'east' is 977 kB behind");
    g.now += 3600 * (int64_t)S;
    assert_true(waits(&g)); /* time alone does not help */
    hear(&g, replica(6000000, 0));
    assert_false(waits(&g));
}

static void unknown_lag_stops_it_where_a_limit_is_set(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .pace.lag_bytes = 1000000);
    struct pressure said = replica(1, -1);
    strcpy(said.unknown, "hidden");
    strcpy(said.fix, "GRANT it");
    hear(&g, said);
    assert_true(waits(&g));
    AUTO(text_release) struct text words = {0};
    pacer_words(&g.p, PACE_LAG, &words);
    assert_string_equal(text_str(&words), "hidden; GRANT it");
    hear(&g, replica(1, 0));
    assert_false(waits(&g));
    pacer_deaf(&g.p, "denied", g.now, 10);
    assert_true(waits(&g));

    struct play none = {.row_us = 20};
    begin(&none, 1000);
    hear(&none, said);
    assert_false(waits(&none));
    pacer_deaf(&none.p, "denied", none.now, 10);
    assert_false(waits(&none));
    hear(&none, replica(INT64_C(1) << 40, INT64_C(200) << 20)); /* by itself it only slows down */
    int64_t us = go(&none, INT64_MAX);
    reason_is(&none, "lag");
    assert_in_range(wait_us(&none), 8 * us, 10 * us);
}

static void lag_in_time_is_told_by_where_the_log_stood(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, LAG(10 * (int64_t)S));
    int64_t written = 0;
    for (int i = 0; i < 40; i++, g.now += S / 4) { /* it follows, two seconds behind */
        written += 1000;
        hear(&g, replica(written, written < 8000 ? 0 : 8000));
        assert_false(waits(&g));
    }
    assert_in_range(g.p.lag_now_us, 1 * S, 3 * S);
    int64_t stands = written - 8000;
    bool waited = false;
    for (int i = 0; i < 80 && !waited; i++, g.now += S / 4) { /* it stands still, and says nothing of that */
        written += 1000;
        hear(&g, replica(written, written - stands));
        waited = waits(&g);
        assert_int_equal(waited, i >= 32);
    }
    assert_true(waited);
    hear(&g, replica(written, 0));
    assert_false(waits(&g));
}

static void a_delay_that_the_server_knows_of_counts_where_there_is_one(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, LAG(10 * (int64_t)S));
    hear(&g, replica(1000, 0));
    struct pressure said = replica(2000, 500);
    said.lag_us = 3600 * (int64_t)S;
    g.now += S;
    hear(&g, said);
    assert_false(waits(&g)); /* it is nearly there: the figure is an old one */
    said.lag_bytes = 1500;
    g.now += S;
    hear(&g, said);
    assert_true(waits(&g));
}

static void a_replica_that_goes_away_is_waited_for_a_while(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .pace.lag_bytes = 1000000);
    hear(&g, replica(1000, 500));
    assert_false(waits(&g));
    struct pressure gone = replica(1000, 0);
    gone.replicas = 0;
    hear(&g, gone);
    assert_true(waits(&g));
    g.now += 9 * S;
    hear(&g, gone);
    assert_true(waits(&g));
    g.now += 2 * S;
    hear(&g, gone);
    assert_false(waits(&g));
}

static void looks_are_sparing(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20);
    assert_true(pacer_wants_look(&g.p, g.now));
    struct pressure said = calm;
    pacer_heard(&g.p, &said, g.now, 1 * MS);
    assert_false(pacer_wants_look(&g.p, g.now + 199 * MS));
    assert_true(pacer_wants_look(&g.p, g.now + 200 * MS));
    pacer_heard(&g.p, &said, g.now, 100 * MS); /* an expensive one */
    assert_false(pacer_wants_look(&g.p, g.now + 4999 * MS));
    assert_true(pacer_wants_look(&g.p, g.now + 5 * S));
    pacer_heard(&g.p, &said, g.now, INT64_MAX);
    assert_false(pacer_wants_look(&g.p, g.now + 5 * S));
}

static void another_server_is_no_load(void **state)
{
    (void)state;
    PLAY(1000, .row_us = 20, .pace.lag_bytes = 1000000);
    struct pressure said = replica(INT64_MAX, 0);
    said.others = 1000000000;
    said.held_up_us = 1000000000;
    hear(&g, said);
    g.now += S;
    hear(&g, replica(5, 0)); /* counts begin anew */
    assert_false(waits(&g));
    assert_int_equal(g.p.beside, false);
    said.others = -1; /* not known */
    g.now += S;
    hear(&g, said);
    g.now += S;
    said.others = 1000000000;
    hear(&g, said);
    assert_int_equal(g.p.beside, false);
}

static void a_clock_that_is_set_back_prolongs_nothing(void **state)
{
    (void)state;
    PLAY(100, .row_us = 100, .pace.rows_per_second = 100, .now = 1000 * (int64_t)S);
    hear(&g, calm);
    go(&g, INT64_MAX);
    g.now -= 900 * (int64_t)S;
    assert_in_range(wait_us(&g), 0, 1 * S);
    g.now -= 50 * (int64_t)S;
    assert_true(pacer_wants_look(&g.p, g.now + 200 * MS));
    hear(&g, calm);
    go(&g, INT64_MAX);
    assert_in_range(wait_us(&g), 0, 1 * S);
    g.now += 1000000 * (int64_t)S; /* and one that leaps ahead ends a wait */
    go(&g, INT64_MAX);
    g.now += 1000000 * (int64_t)S;
    assert_int_equal(wait_us(&g), 0);
}

static void nothing_overflows(void **state)
{
    (void)state;
    PLAY(INT64_MAX, .pace.rows_per_second = 1e-300, .pace.duty = 1e-300, TARGET(INT64_MAX));
    const struct pace_batch large = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX / 2};
    for (int i = 0; i < 70; i++) {
        pacer_batch(&g.p, &large, g.now);
        assert_in_range(pacer_rows(&g.p), 1, INT64_MAX);
        assert_true(pacer_wait(&g.p, g.now).us >= 0);
    }
    struct play fast = {.pace.rows_per_second = 1e300, .pace.target = {SPAN_TIME, 1}};
    begin(&fast, INT64_MAX);
    for (int i = 0; i < 200; i++) {
        pacer_batch(&fast.p, &(struct pace_batch){pacer_rows(&fast.p), pacer_rows(&fast.p), INT64_MAX, 0},
                    fast.now);
        assert_in_range(pacer_rows(&fast.p), 1, INT64_MAX);
    }
    pacer_batch(&fast.p, &(struct pace_batch){1, 0, 0, 0}, fast.now); /* nothing happened */
    pacer_batch(&fast.p, &(struct pace_batch){1, 1, 1, -5}, fast.now);
    struct pressure odd = {
        .others = INT64_MAX, .written = INT64_MIN, .lag_bytes = INT64_MAX, .lag_us = INT64_MAX};
    hear(&fast, odd);
    fast.now = INT64_MAX / 2;
    odd.others = INT64_MIN;
    hear(&fast, odd);
    go(&fast, 1);
    assert_true(pacer_wait(&fast.p, fast.now).us >= 0);
}

static void one_transaction_for_all_keeps_its_size(void **state)
{
    (void)state;
    PLAY(BATCH_ALL, .row_us = 1000);
    assert_int_equal(pacer_rows(&g.p), SLICE_ALL);
    go_on(&g, 3);
    pacer_locked(&g.p);
    assert_int_equal(pacer_rows(&g.p), SLICE_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_a_name_and_words),
        cmocka_unit_test(it_begins_small_and_doubles_up_to_the_batch),
        cmocka_unit_test(a_small_batch_or_a_long_target_begins_whole),
        cmocka_unit_test(batches_settle_below_the_target),
        cmocka_unit_test(slow_rows_shrink_it_fast_and_it_grows_back_gently),
        cmocka_unit_test(one_slow_moment_halves_at_most),
        cmocka_unit_test(a_row_that_is_too_slow_alone_is_still_tried),
        cmocka_unit_test(what_was_not_full_says_nothing_of_more),
        cmocka_unit_test(costs_of_a_transaction_do_not_shrink_it_to_nothing),
        cmocka_unit_test(finding_rows_is_paid_once_for_many),
        cmocka_unit_test(chance_does_not_starve_it),
        cmocka_unit_test(some_rows_are_no_burden_unless_somebody_asks_for_less),
        cmocka_unit_test(two_sizes_tell_what_is_for_rows),
        cmocka_unit_test(locks_halve_it),
        cmocka_unit_test(rows_per_second_is_kept),
        cmocka_unit_test(a_row_every_so_many_seconds),
        cmocka_unit_test(what_was_not_used_is_not_saved_up),
        cmocka_unit_test(what_was_let_through_stays_owed),
        cmocka_unit_test(now_and_then_it_lets_in_who_waits_for_its_lock),
        cmocka_unit_test(duty_is_kept),
        cmocka_unit_test(what_is_under_way_is_nobody_elses),
        cmocka_unit_test(a_short_batch_does_not_end_a_long_pause),
        cmocka_unit_test(with_a_duty_of_its_own_others_change_nothing),
        cmocka_unit_test(a_batch_that_was_not_full_is_followed_by_a_look_for_more),
        cmocka_unit_test(beside_others_it_steps_back_and_alone_it_does_not),
        cmocka_unit_test(where_a_transaction_is_dear_they_are_fewer),
        cmocka_unit_test(where_one_writes_at_a_time_batches_are_short),
        cmocka_unit_test(a_target_of_its_own_stays_beside_others),
        cmocka_unit_test(growing_latency_makes_pauses_and_passes),
        cmocka_unit_test(an_old_snapshot_slows_it_down),
        cmocka_unit_test(flow_control_slows_it_down_and_stops_it),
        cmocka_unit_test(lag_in_bytes_stops_it_until_it_is_over),
        cmocka_unit_test(unknown_lag_stops_it_where_a_limit_is_set),
        cmocka_unit_test(lag_in_time_is_told_by_where_the_log_stood),
        cmocka_unit_test(a_delay_that_the_server_knows_of_counts_where_there_is_one),
        cmocka_unit_test(a_replica_that_goes_away_is_waited_for_a_while),
        cmocka_unit_test(looks_are_sparing),
        cmocka_unit_test(another_server_is_no_load),
        cmocka_unit_test(a_clock_that_is_set_back_prolongs_nothing),
        cmocka_unit_test(nothing_overflows),
        cmocka_unit_test(one_transaction_for_all_keeps_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
