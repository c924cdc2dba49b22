/* Tests of src/schedule/beat.c: when ticks begin, over clocks that are set, machines that sleep, databases that are
 * gone, contracts that change; and a whole day of several schedulers against lists made another way. */
#include "schedule/beat.h"

#include "clockwork.h"

/* Both clocks, and what a test does with them. */
static struct clocks clocks_at(const char *text)
{
    return (struct clocks){time_of(text), 5 * H};
}

static void pass(struct clocks *c, int64_t us)
{
    c->wall += us;
    c->boot_us += us;
}

#define NOON "2026-03-04T12:00:00Z"

static struct beat begun(const struct clockwork *c, struct clocks now)
{
    struct beat b;
    beat_begin(&b, c->t, now, NULL, 0);
    return b;
}

#define GIVEN(...)                                                                                           \
    AUTO(release) struct clockwork c;                                                                        \
    open_clockwork(&c, &(struct given){__VA_ARGS__})

static void an_interval_ticks_on_its_beat(void **state)
{
    (void)state;
    GIVEN(.every = M, .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    assert_true(beat_turn(&b, now, 0));
    pass(&now, 3 * S);
    beat_end(&b, now, false, NEVER, 0);
    assert_int_equal(b.due, time_of("2026-03-04T12:01:00Z"));
    pass(&now, 56 * S);
    assert_false(beat_turn(&b, now, 0));
    pass(&now, S);
    assert_true(beat_turn(&b, now, 0));
}

static void a_tick_never_overlaps_itself_and_misses_are_one(void **state)
{
    (void)state;
    GIVEN(.every = M, .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    assert_true(beat_turn(&b, now, 0));
    for (int i = 0; i < 300; i++) { /* five minutes and a half */
        pass(&now, S);
        assert_false(beat_turn(&b, now, 0));
    }
    pass(&now, 30 * S);
    assert_int_equal(beat_late_us(&b, now.wall), 4 * M + 30 * S);
    beat_end(&b, now, false, NEVER, 0);
    assert_int_equal(beat_late_us(&b, now.wall), 0);
    assert_int_equal(b.start, time_of("2026-03-04T12:06:00Z")); /* one, on the old beat */
    assert_int_equal(beat_interval_us(&b, now.wall), M);
}

static void end_well(struct beat *b, struct clocks now)
{
    beat_end(b, now, false, NEVER, 0);
}

static void jitter_delays_the_tick_and_not_the_beat(void **state)
{
    (void)state;
    GIVEN(.every = M, .run_on_start = true, .jitter = 10 * S);
    struct clocks now = clocks_at(NOON);
    struct beat b;
    beat_begin(&b, c.t, now, NULL, 7 * S);
    assert_int_equal(b.due, now.wall);
    assert_int_equal(b.start, now.wall + 7 * S);
    assert_false(beat_turn(&b, now, 0));
    pass(&now, 7 * S);
    assert_true(beat_turn(&b, now, 0));
    beat_end(&b, now, false, NEVER,
             10 * S + 4); /* any number: 10 s and a microsecond are possible, so 3 are left */
    assert_int_equal(b.due, time_of("2026-03-04T12:01:00Z"));
    assert_int_equal(b.start, b.due + 3);
    assert_int_equal(beat_late_us(&b, b.start), 0);
    assert_int_equal(beat_late_us(&b, b.start + 5), 5);
}

static void a_suspended_machine_ticks_once_when_it_wakes(void **state)
{
    (void)state;
    GIVEN(.every = M, .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    assert_true(beat_turn(&b, now, 0));
    end_well(&b, now);
    pass(&now, 3 * H + 20 * S);
    assert_true(beat_turn(&b, now, 0));
    end_well(&b, now);
    assert_int_equal(b.start, time_of("2026-03-04T15:01:00Z"));
}

static void a_window_that_closed_while_it_slept_is_left_out(void **state)
{
    (void)state;
    const struct given given[] = {{.every = H, .window = "12:00-14:00", .run_on_start = true},
                                  {.cron = "0 12,13 * * *", .window = "12:00-14:00"}};
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        AUTO(release) struct clockwork c;
        open_clockwork(&c, &given[i]);
        struct clocks now = clocks_at("2026-03-04T11:59:00Z");
        struct beat b = begun(&c, now);
        assert_int_equal(b.start, time_of(NOON));
        pass(&now, M);
        assert_true(beat_turn(&b, now, 0));
        end_well(&b, now);
        assert_int_equal(b.start, time_of("2026-03-04T13:00:00Z"));
        pass(&now, 2 * H + S); /* 14:00:01: due, and shut */
        assert_false(beat_turn(&b, now, 0));
        assert_int_equal(b.start, time_of("2026-03-05T12:00:00Z"));
        assert_false(b.working);
        pass(&now, 22 * H - S);
        assert_true(beat_turn(&b, now, 0));
    }
}

/* The clock is set while the next tick is waited for. */
static void a_clock_that_is_set(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct given given;
        int64_t by;
        const char *starts; /* by the new clock */
    } cases[] = {
        {"an interval goes on as if nothing had happened", {.every = 10 * M}, 2 * H, "2026-03-04T14:10:00Z"},
        {"… and back", {.every = 10 * M}, -2 * H, "2026-03-04T10:10:00Z"},
        {"less than a second is no jump", {.every = 10 * M}, S - 1, "2026-03-04T12:10:00Z"},
        {"nor back", {.every = 10 * M}, 1 - S, "2026-03-04T12:10:00Z"},
        {"a second is", {.every = 10 * M}, S, "2026-03-04T12:10:01Z"},
        {"cron reads the new clock", {.cron = "30 12 * * *"}, 20 * M, "2026-03-04T12:30:00Z"},
        {"set forward over it: at once", {.cron = "30 12 * * *"}, 2 * H, "2026-03-04T12:30:00Z"},
        {"far forward: it never was", {.cron = "30 12 * * *"}, 4 * H, "2026-03-05T12:30:00Z"},
        {"far back: afresh", {.cron = "30 12 * * *"}, -24 * H, "2026-03-03T12:30:00Z"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(release) struct clockwork c;
        open_clockwork(&c, &cases[i].given);
        struct clocks now = clocks_at(NOON);
        struct beat b = begun(&c, now);
        pass(&now, 5 * S);
        now.wall += cases[i].by;
        bool at_once = beat_turn(&b, now, 0);
        if (b.start != time_of(cases[i].starts))
            fail_msg("%s: %lld us off", cases[i].what, (long long)(b.start - time_of(cases[i].starts)));
        assert_int_equal(at_once, b.start <= now.wall);
    }
}

/* Half a millisecond in every second, as adjtime does: an hour of it is no jump. */
static void a_clock_that_is_slewed_is_not_set(void **state)
{
    (void)state;
    GIVEN(.every = H);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    for (int i = 0; i < 3500; i++) {
        pass(&now, S);
        now.wall += 500;
        assert_false(beat_turn(&b, now, 0));
    }
    assert_int_equal(b.start, time_of("2026-03-04T13:00:00Z"));
}

static void a_clock_that_is_set_in_mid_tick(void **state)
{
    (void)state;
    GIVEN(.every = 4 * H, .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    assert_true(beat_turn(&b, now, 0));
    pass(&now, M);
    now.wall += 3 * H;
    end_well(&b, now);
    assert_int_equal(b.start, now.wall + 4 * H - M);

    AUTO(release) struct clockwork d;
    open_clockwork(&d, &(struct given){.cron = "0 12 * * *"});
    now = clocks_at("2026-03-04T11:59:00Z");
    b = begun(&d, now);
    pass(&now, M);
    assert_true(beat_turn(&b, now, 0));
    now.wall -= 2 * M; /* 11:58: it does not run twice */
    end_well(&b, now);
    assert_int_equal(b.start, time_of("2026-03-05T12:00:00Z"));
}

static void a_lost_database_is_tried_again(void **state)
{
    (void)state;
    GIVEN(.every = 10 * M, .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    static const int64_t least[] = {1, 2, 4, 8, 16, 30, 30, 30}, most[] = {2, 4, 8, 16, 32, 60, 60, 60};
    for (int late = 0; late < 2; late++) {
        struct beat b = begun(&c, now);
        struct clocks at = now;
        for (size_t i = 0; i < COUNT_OF(least); i++) {
            assert_true(beat_turn(&b, at, 0));
            pass(&at, 100);
            beat_end(&b, at, true, NEVER, late ? (uint64_t)(most[i] - least[i]) * S : 0);
            assert_int_equal(b.due, now.wall); /* the same tick */
            assert_int_equal(b.start - at.wall, (late ? most[i] : least[i]) * S);
            pass(&at, b.start - at.wall - 1);
            assert_false(beat_turn(&b, at, 0));
            pass(&at, 1);
        }
        assert_true(beat_turn(&b, at, 0));
        end_well(&b, at);
        assert_int_equal(b.failures, 0);
        assert_int_equal(b.start, now.wall + 10 * M);
    }
}

static void a_try_never_waits_past_the_next_beat(void **state)
{
    (void)state;
    GIVEN(.every = 5 * S, .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    instant last = now.wall - 5 * S;
    for (int i = 0; i < 20; i++) {
        pass(&now, b.start - now.wall);
        assert_true(beat_turn(&b, now, 0));
        assert_true(now.wall - last <= 5 * S);
        last = now.wall;
        beat_end(&b, now, true, NEVER, 0);
    }
    assert_int_equal((b.start - time_of(NOON)) % (5 * S),
                     0); /* by now its pauses are longer than the interval */
    assert_int_equal(b.failures, 20);
}

/* Another may have been in the way: the same tick once more, then the next in its place. */
static void a_tick_that_is_tried_again_at_a_time(void **state)
{
    (void)state;
    GIVEN(.every = H, .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    assert_true(beat_turn(&b, now, 0));
    beat_end(&b, now, false, now.wall + 30 * S, 0);
    assert_int_equal(b.start, now.wall + 30 * S);
    assert_int_equal(b.failures, 0);
    pass(&now, 30 * S);
    assert_true(beat_turn(&b, now, 0));
    beat_end(&b, now, false, NEVER, 0);
    assert_int_equal(b.start, time_of(NOON) + H);
    pass(&now, b.start - now.wall);
    assert_true(beat_turn(&b, now, 0));
    beat_end(&b, now, false, now.wall + 2 * H, 0); /* the next tick comes before */
    assert_int_equal(b.start, time_of(NOON) + 2 * H);
}

static void a_try_does_not_leave_the_window(void **state)
{
    (void)state;
    GIVEN(.every = H, .window = "11:00-12:01", .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    assert_true(beat_turn(&b, now, 0));
    pass(&now, 59 * S);
    beat_end(&b, now, true, NEVER, 0);
    assert_int_equal(b.start, time_of("2026-03-05T11:00:00Z"));
}

/* What is left of a pause is as long as before, whatever the clock shows. */
static void a_clock_that_is_set_between_two_tries(void **state)
{
    (void)state;
    const struct given given[] = {{.every = H, .run_on_start = true},
                                  {.cron = "0 12 * * *", .run_on_start = true}};
    for (size_t i = 0; i < COUNT_OF(given); i++)
        for (int back = 0; back < 2; back++) {
            AUTO(release) struct clockwork c;
            open_clockwork(&c, &given[i]);
            struct clocks now = clocks_at(NOON);
            struct beat b = begun(&c, now);
            assert_true(beat_turn(&b, now, 0));
            beat_end(&b, now, true, NEVER, 0);
            now.wall += back ? -40 * M : 40 * M;
            assert_false(beat_turn(&b, now, 0));
            assert_int_equal(b.start, now.wall + S);
            pass(&now, S);
            assert_true(beat_turn(&b, now, 0));
        }
}

static void a_contract_that_is_read_again(void **state)
{
    (void)state;
    GIVEN(.every = H, .run_on_start = true);
    AUTO(release) struct clockwork shorter, off, cron;
    open_clockwork(&shorter, &(struct given){.every = 7 * M, .run_on_start = true});
    open_clockwork(&off, &(struct given){.every = H, .run_on_start = true, .off = true});
    open_clockwork(&cron, &(struct given){.cron = "50 12 * * *", .run_on_start = true});
    struct clocks now = clocks_at(NOON);
    instant last = now.wall;
    struct beat b = begun(&c, now);
    assert_true(beat_turn(&b, now, 0));
    beat_change(&b, shorter.t, now, &last, 0);
    assert_true(b.working); /* it ends under the contract it began with */
    pass(&now, 20 * M);
    assert_false(beat_turn(&b, now, 0));
    end_well(&b, now);
    assert_int_equal(b.start, last + 21 * M);
    beat_change(&b, c.t, now, &last, 0); /* that is no start */
    assert_int_equal(b.start, last + H);
    beat_change(&b, off.t, now, &last, 0);
    assert_int_equal(b.start, NEVER);
    pass(&now, 5 * H);
    assert_false(beat_turn(&b, now, 0));
    assert_int_equal(beat_late_us(&b, now.wall), 0);
    beat_change(&b, c.t, now, &last, 0);
    assert_int_equal(b.start, last + 6 * H);
    beat_change(&b, cron.t, now, &last, 0);
    assert_int_equal(b.start, time_of("2026-03-05T12:50:00Z"));
    assert_int_equal(beat_interval_us(&b, now.wall), 24 * H);

    b = begun(&c, now); /* lost: the tick is still tried again, if it may be */
    assert_true(beat_turn(&b, now, 0));
    beat_end(&b, now, true, NEVER, 0);
    beat_change(&b, cron.t, now, NULL, 0);
    assert_int_equal(b.start, now.wall + S);
    beat_change(&b, off.t, now, NULL, 0);
    assert_int_equal(b.start, NEVER);
}

static void what_is_not_enabled_never_ticks(void **state)
{
    (void)state;
    GIVEN(.every = M, .run_on_start = true, .off = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    assert_int_equal(b.due, NEVER);
    assert_int_equal(b.start, NEVER);
    pass(&now, 99 * H);
    now.wall += H;
    assert_false(beat_turn(&b, now, 0));
    assert_int_equal(b.due, NEVER);
}

/* --- a day ------------------------------------------------------------------------------------------------
 */

/* Of 28 March 2026, 12:00 UTC; in the night Prague's clocks go from 02:00 to 03:00, at 01:00 UTC. */
#define DAY_BEGINS "2026-03-28T12:00:00Z"

struct scheduler_of_day {
    struct given given;
    int64_t takes;
    const char *const *listed; /* NULL: one every `apart` from the beginning on */
    int64_t apart;
    /* while it runs */
    struct clockwork c;
    struct beat b;
    instant ends;
    uint64_t chance; /* of the tick that is waited for */
    size_t ticks;
};

static uint64_t next_chance(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1;
    return *seed >> 20;
}

static instant expected(const struct scheduler_of_day *s, size_t tick)
{
    instant due = s->listed ? time_of(s->listed[tick]) : time_of(DAY_BEGINS) + (instant)tick * s->apart;
    return due + (s->given.jitter ? (instant)(s->chance % (uint64_t)(s->given.jitter + 1)) : 0);
}

static void step(struct scheduler_of_day *s, struct clocks now, uint64_t *seed)
{
    if (s->b.working && now.wall >= s->ends) {
        s->chance = next_chance(seed);
        beat_end(&s->b, now, false, NEVER, s->chance);
    }
    while (beat_turn(&s->b, now, 0)) {
        assert_int_equal(now.wall, expected(s, s->ticks));
        s->ticks++;
        s->ends = now.wall + s->takes;
    }
}

static instant next_event(const struct scheduler_of_day *list, size_t n)
{
    instant next = NEVER;
    for (size_t i = 0; i < n; i++) {
        instant own = list[i].b.working ? list[i].ends : list[i].b.start;
        next = own < next ? own : next;
    }
    return next;
}

static void a_day_of_several_schedulers(void **state)
{
    (void)state;
    static const char *const cron[] = {"2026-03-28T13:15:00Z", "2026-03-28T15:15:00Z", "2026-03-28T17:15:00Z",
                                       "2026-03-28T19:15:00Z", "2026-03-28T21:15:00Z", "2026-03-28T23:15:00Z",
                                       "2026-03-29T01:00:00Z", /* 02:15 never was */
                                       "2026-03-29T02:15:00Z", "2026-03-29T04:15:00Z", "2026-03-29T06:15:00Z",
                                       "2026-03-29T08:15:00Z", "2026-03-29T10:15:00Z"};
    static const char *const night[] = {
        "2026-03-28T21:00:00Z", "2026-03-28T21:30:00Z", "2026-03-28T22:00:00Z", "2026-03-28T22:30:00Z",
        "2026-03-28T23:00:00Z", "2026-03-28T23:30:00Z", "2026-03-29T00:00:00Z", "2026-03-29T00:30:00Z",
        "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:00:00Z", "2026-03-29T02:30:00Z",
        "2026-03-29T03:00:00Z", "2026-03-29T03:30:00Z"};
    struct scheduler_of_day list[] = {
        {.given = {.every = M, .run_on_start = true}, .takes = 2 * S, .apart = M},
        {.given = {.every = 5 * M, .run_on_start = true, .jitter = 30 * S}, .takes = 40 * S, .apart = 5 * M},
        {.given = {.cron = "15 */2 * * *", .zone = "Europe/Prague"}, .takes = 10 * M, .listed = cron},
        {.given = {.every = 30 * M, .zone = "Europe/Prague", .window = "22:00-06:00", .run_on_start = true},
         .takes = S,
         .listed = night},
        {.given = {.every = 10 * M, .run_on_start = true}, .takes = 25 * M, .apart = 30 * M}, /* slow */
    };
    static const size_t ticks[] = {24 * 60, 24 * 12, COUNT_OF(cron), COUNT_OF(night), 48};
    struct clocks now = clocks_at(DAY_BEGINS);
    instant end = now.wall + 24 * H;
    uint64_t seed = 42;
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        open_clockwork(&list[i].c, &list[i].given);
        list[i].chance = next_chance(&seed);
        beat_begin(&list[i].b, list[i].c.t, now, NULL, list[i].chance);
    }
    for (instant next; (next = next_event(list, COUNT_OF(list))) < end;) {
        if (next > now.wall + 1) { /* nothing begins too early */
            pass(&now, next - 1 - now.wall);
            for (size_t i = 0; i < COUNT_OF(list); i++)
                assert_false(beat_turn(&list[i].b, now, 0));
        }
        pass(&now, next - now.wall);
        for (size_t i = 0; i < COUNT_OF(list); i++)
            step(&list[i], now, &seed);
    }
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        assert_int_equal(list[i].ticks, ticks[i]);
        release(&list[i].c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_ticks_on_its_beat),
        cmocka_unit_test(a_tick_never_overlaps_itself_and_misses_are_one),
        cmocka_unit_test(jitter_delays_the_tick_and_not_the_beat),
        cmocka_unit_test(a_suspended_machine_ticks_once_when_it_wakes),
        cmocka_unit_test(a_window_that_closed_while_it_slept_is_left_out),
        cmocka_unit_test(a_clock_that_is_set),
        cmocka_unit_test(a_clock_that_is_slewed_is_not_set),
        cmocka_unit_test(a_clock_that_is_set_in_mid_tick),
        cmocka_unit_test(a_lost_database_is_tried_again),
        cmocka_unit_test(a_try_never_waits_past_the_next_beat),
        cmocka_unit_test(a_tick_that_is_tried_again_at_a_time),
        cmocka_unit_test(a_try_does_not_leave_the_window),
        cmocka_unit_test(a_clock_that_is_set_between_two_tries),
        cmocka_unit_test(a_contract_that_is_read_again),
        cmocka_unit_test(what_is_not_enabled_never_ticks),
        cmocka_unit_test(a_day_of_several_schedulers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
