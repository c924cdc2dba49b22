/* Tests of src/schedule/ticker.c: intervals and cron, windows, clocks that are set, machines that sleep, whole years.
 */
#include "clockwork.h"

static void check_time(size_t i, instant got, const char *expected)
{
    char buf[WHEN_TEXT_SIZE];
    if (got != time_of(expected))
        fail_msg("case %zu: %s, not %s", i, got == NEVER ? "never" : when_format(got, buf), expected);
}

static void the_first_tick(void **state)
{
    (void)state;
    static const struct {
        struct given given;
        const char *now, *last, *due;
    } cases[] = {
        /* run_on_start: now, whatever was before */
        {{.every = H, .run_on_start = true}, "2026-01-01 10:00", NULL, "2026-01-01 10:00"},
        {{.every = H, .run_on_start = true}, "2026-01-01 10:00", "2026-01-01 09:59", "2026-01-01 10:00"},
        {{.cron = "0 3 * * *", .run_on_start = true}, "2026-01-01 10:00", NULL, "2026-01-01 10:00"},
        /* without: never at start, not even the first time */
        {{.every = H}, "2026-01-01 10:00", NULL, "2026-01-01 11:00"},
        {{.cron = "0 3 * * *"}, "2026-01-01 10:00", NULL, "2026-01-02 03:00"},
        {{.cron = "0 3 * * *"}, "2026-01-01 03:00", "2025-01-01 03:00", "2026-01-02 03:00"},
        /* the beat of the last run is kept */
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 09:40", "2026-01-01 10:40"},
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 09:00", "2026-01-01 11:00"},
        {{.every = H}, "2026-01-01 10:00", "2025-12-24 07:13", "2026-01-01 10:13"},
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 10:00", "2026-01-01 11:00"},
        {{.every = 24 * H}, "2026-01-02 04:00", "2026-01-01 03:00", "2026-01-03 03:00"},
        /* a last run ahead: the clock was wrong then, or is now */
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 10:00:30", "2026-01-01 11:00:30"},
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 10:01:01", "2026-01-01 11:00"},
        {{.every = H}, "2026-01-01 10:00", "2036-01-01 10:00", "2026-01-01 11:00"},
        {{.cron = "0 3 * * *"}, "2026-01-01 10:00", "2036-01-01 03:00", "2026-01-02 03:00"},
        /* in the window */
        {{.every = H, .run_on_start = true, .window = "22:00-06:00"},
         "2026-01-01 10:00",
         NULL,
         "2026-01-01 22:00"},
        {{.every = H, .run_on_start = true, .window = "22:00-06:00"},
         "2026-01-01 05:59",
         NULL,
         "2026-01-01 05:59"},
        {{.every = H, .run_on_start = true, .window = "22:00-06:00"},
         "2026-01-01 06:00",
         NULL,
         "2026-01-01 22:00"},
        {{.every = H, .window = "22:00-06:00"}, "2026-01-01 05:30", NULL, "2026-01-01 22:00"},
        {{.every = H, .window = "22:00-06:00"}, "2026-01-01 04:30", NULL, "2026-01-01 05:30"},
        {{.cron = "@hourly", .window = "22:00-06:00"}, "2026-01-01 05:30", NULL, "2026-01-01 22:00"},
        {{.cron = "* * * * * *", .window = "22:00-06:00"}, "2026-01-01 05:59:59", NULL, "2026-01-01 22:00"},
        {{.cron = "30 5,12 * * *", .window = "22:00-06:00"}, "2026-01-01 05:30", NULL, "2026-01-02 05:30"},
        {{.cron = "0 12 * * *", .window = "22:00-06:00"}, "2026-01-01 05:30", NULL, "never"},
        {{.cron = "0 3 29 2 *", .window = "03:00-03:01"}, "2026-01-01 00:00", NULL, "2028-02-29 03:00"},
        /* by the wall clock of the zone */
        {{.every = H, .run_on_start = true, .window = "22:00-06:00", .zone = "Europe/Prague"},
         "2026-07-01 19:59",
         NULL,
         "2026-07-01 20:00"},
        {{.cron = "0 3 * * *", .zone = "Europe/Prague"}, "2026-01-01 10:00", NULL, "2026-01-02 02:00"},
        /* off */
        {{.every = H, .run_on_start = true, .off = true}, "2026-01-01 10:00", NULL, "never"},
        {{.cron = "* * * * *", .off = true}, "2026-01-01 10:00", NULL, "never"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(release) struct clockwork c;
        open_clockwork(&c, &cases[i].given);
        instant last = time_of(cases[i].last);
        check_time(i, ticker_first(c.t, time_of(cases[i].now), cases[i].last ? &last : NULL), cases[i].due);
    }
}

static void the_tick_after(void **state)
{
    (void)state;
    static const struct {
        struct given given;
        const char *due, *now, *next;
    } cases[] = {
        {{.every = 5 * M}, "2026-01-01 10:00", "2026-01-01 10:00:01", "2026-01-01 10:05"},
        {{.every = 5 * M}, "2026-01-01 10:00", "2026-01-01 10:00", "2026-01-01 10:05"},
        /* it took long, or the machine slept: one tick, and the old beat */
        {{.every = 5 * M}, "2026-01-01 10:00", "2026-01-01 10:05", "2026-01-01 10:10"},
        {{.every = 5 * M}, "2026-01-01 10:00", "2026-01-01 10:12", "2026-01-01 10:15"},
        {{.every = 5 * M}, "2026-01-01 10:00", "2026-01-09 10:12", "2026-01-09 10:15"},
        {{.cron = "*/5 * * * *"}, "2026-01-01 10:00", "2026-01-01 10:12", "2026-01-01 10:15"},
        {{.cron = "0 3 * * *"}, "2026-01-01 03:00", "2026-01-05 09:00", "2026-01-06 03:00"},
        {{.cron = "0 3 * * *"}, "2026-01-01 03:00", "2026-01-01 03:00", "2026-01-02 03:00"},
        /* the clock went back while it worked */
        {{.every = 5 * M}, "2026-01-01 10:00", "2026-01-01 09:59:59", "2026-01-01 10:05"},
        {{.every = 5 * M}, "2026-01-01 10:00", "2026-01-01 08:00", "2026-01-01 08:05"},
        {{.every = S}, "2026-01-01 10:00", "2026-01-01 09:59:58", "2026-01-01 09:59:59"},
        {{.cron = "0 3 * * *"}, "2026-01-01 03:00", "2026-01-01 00:00", "2026-01-02 03:00"},
        {{.cron = "0 3 * * *"}, "2026-01-01 03:00", "2025-12-31 23:59", "2026-01-01 03:00"},
        {{.cron = "*/5 * * * *"}, "2026-01-01 10:00", "2026-01-01 09:59:59", "2026-01-01 10:05"},
        {{.cron = "*/5 * * * *"}, "2026-01-01 10:00", "2026-01-01 08:58", "2026-01-01 09:00"},
        /* the window */
        {{.every = 5 * M, .window = "22:00-06:00"},
         "2026-01-01 23:55",
         "2026-01-01 23:56",
         "2026-01-02 00:00"},
        {{.every = 5 * M, .window = "22:00-06:00"},
         "2026-01-01 05:55",
         "2026-01-01 05:56",
         "2026-01-01 22:00"},
        {{.every = 5 * M, .window = "22:00-06:00"},
         "2026-01-01 05:55",
         "2026-01-01 22:31",
         "2026-01-01 22:35"},
        {{.every = 7 * M, .window = "08:00-09:00"},
         "2026-01-01 08:56",
         "2026-01-01 08:56",
         "2026-01-02 08:00"},
        {{.every = 36 * H, .window = "08:00-09:00"},
         "2026-01-01 08:30",
         "2026-01-01 08:30",
         "2026-01-03 08:00"},
        {{.cron = "*/7 * * * *", .window = "08:00-09:00"},
         "2026-01-01 08:56",
         "2026-01-01 08:56",
         "2026-01-02 08:00"},
        /* shorter than a millisecond: the next of the beats, however many went by */
        {{.every = 1}, "2026-01-01 10:00", "2026-01-01 10:00", "2026-01-01 10:00:00.000001"},
        {{.every = 300}, "2026-01-01 10:00", "2026-01-01 10:00:00.000900", "2026-01-01 10:00:00.001200"},
        {{.every = 300}, "2026-01-01 10:00", "2026-01-01 10:00:00.000899", "2026-01-01 10:00:00.000900"},
        {{.every = M, .off = true}, "2026-01-01 10:00", "2026-01-01 10:00", "never"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(release) struct clockwork c;
        open_clockwork(&c, &cases[i].given);
        check_time(i, ticker_next(c.t, time_of(cases[i].due), time_of(cases[i].now)), cases[i].next);
    }
}

static void a_clock_that_is_set(void **state)
{
    (void)state;
    static const struct {
        struct given given;
        const char *due, *before, *after, *then;
    } cases[] = {
        /* an interval waits on as long as it would have */
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 09:30", "2026-01-01 09:30:10", "2026-01-01 10:00:10"},
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 09:30", "2031-05-06 07:08", "2031-05-06 07:38"},
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 09:30", "1970-01-01 00:00", "1970-01-01 00:30"},
        {{.every = H}, "2026-01-01 10:00", "2026-01-01 10:01", "2026-01-01 08:01", "2026-01-01 08:00"},
        {{.every = H, .window = "08:00-12:00"},
         "2026-01-01 10:00",
         "2026-01-01 09:30",
         "2026-01-01 11:40",
         "2026-01-02 08:00"},
        /* cron: what was jumped over is made up for once, if it was a little */
        {{.cron = "0 3 * * *"},
         "2026-01-01 03:00",
         "2026-01-01 02:00",
         "2026-01-01 02:59",
         "2026-01-01 03:00"},
        {{.cron = "0 3 * * *"},
         "2026-01-01 03:00",
         "2026-01-01 02:00",
         "2026-01-01 05:00",
         "2026-01-01 03:00"},
        {{.cron = "0 3 * * *"},
         "2026-01-01 03:00",
         "2026-01-01 02:00",
         "2026-01-01 05:00:01",
         "2026-01-02 03:00"},
        {{.cron = "0 3 * * *"},
         "2026-01-01 03:00",
         "2025-12-31 22:00",
         "2026-01-01 02:00",
         "2026-01-01 03:00"},
        {{.cron = "0 3 * * *"},
         "1970-01-01 03:00",
         "1970-01-01 00:01",
         "2026-11-16 10:00",
         "2026-11-17 03:00"},
        {{.cron = "0 3 * * *", .window = "02:00-04:00"},
         "2026-01-01 03:00",
         "2026-01-01 02:00",
         "2026-01-01 04:30",
         "2026-01-02 03:00"},
        /* back: no repetition, unless it was much */
        {{.cron = "0 3 * * *"},
         "2026-01-02 03:00",
         "2026-01-01 03:30",
         "2026-01-01 00:30",
         "2026-01-02 03:00"},
        {{.cron = "0 3 * * *"},
         "2026-01-02 03:00",
         "2026-01-01 03:30",
         "2026-01-01 00:29",
         "2026-01-01 03:00"},
        {{.cron = "0 3 * * *"},
         "2036-01-02 03:00",
         "2036-01-01 03:30",
         "2026-01-01 00:30",
         "2026-01-01 03:00"},
        /* one that says how often must not be silent for hours */
        {{.cron = "*/5 * * * *"},
         "2026-01-01 10:05",
         "2026-01-01 10:01",
         "2026-01-01 08:01",
         "2026-01-01 08:05"},
        {{.cron = "*/5 * * * *"},
         "2026-01-01 10:05",
         "2026-01-01 10:00:30",
         "2026-01-01 09:59:40",
         "2026-01-01 10:05"},
        {{.cron = "*/5 * * * *"},
         "2026-01-01 10:05",
         "2026-01-01 10:01",
         "2026-01-01 12:01",
         "2026-01-01 10:05"},
        {{.every = H}, "never", "2026-01-01 10:01", "2026-01-01 12:01", "never"},
        {{.cron = "@daily"}, "never", "2026-01-01 10:01", "2026-01-01 12:01", "never"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(release) struct clockwork c;
        open_clockwork(&c, &cases[i].given);
        check_time(
            i, ticker_moved(c.t, time_of(cases[i].due), time_of(cases[i].before), time_of(cases[i].after)),
            cases[i].then);
    }
}

/* opens and closes: the window around or after `at`, by asking when a tick may start and how long it may
 * work. */
static void windows_by_the_wall_clock(void **state)
{
    (void)state;
    static const struct {
        const char *window, *zone, *at, *opens, *closes;
    } cases[] = {
        {"22:00-06:00", "UTC", "2026-01-01 12:00", "2026-01-01 22:00", "2026-01-02 06:00"},
        {"22:00-06:00", "UTC", "2026-01-02 00:00", "2026-01-02 00:00", "2026-01-02 06:00"},
        {"00:00-00:01", "UTC", "2026-01-02 00:01", "2026-01-03 00:00", "2026-01-03 00:01"},
        {"23:59-23:58", "UTC", "2026-01-02 23:58", "2026-01-02 23:59", "2026-01-03 23:58"},
        {"20:00-00:00", "UTC", "2026-01-02 23:59", "2026-01-02 23:59", "2026-01-03 00:00"},
        /* Prague, 29 March: 02:00 to 03:00 are skipped at 01:00 UTC */
        {"02:30-05:00", "Europe/Prague", "2026-03-29 00:00", "2026-03-29 01:00", "2026-03-29 03:00"},
        {"22:00-02:30", "Europe/Prague", "2026-03-28 22:00", "2026-03-28 22:00", "2026-03-29 01:00"},
        {"02:10-02:50", "Europe/Prague", "2026-03-29 00:00", "2026-03-30 00:10", "2026-03-30 00:50"},
        {"02:10-02:50", "Europe/Prague", "2026-03-29 01:00", "2026-03-30 00:10", "2026-03-30 00:50"},
        {"22:00-06:00", "Europe/Prague", "2026-03-28 12:00", "2026-03-28 21:00", "2026-03-29 04:00"},
        /* 25 October: 02:00 to 03:00 are repeated, 00:00 to 02:00 UTC */
        {"22:00-02:30", "Europe/Prague", "2026-10-24 21:00", "2026-10-24 21:00", "2026-10-25 00:30"},
        {"22:00-02:30", "Europe/Prague", "2026-10-25 01:10", "2026-10-25 21:00", "2026-10-26 01:30"},
        {"02:30-05:00", "Europe/Prague", "2026-10-25 00:00", "2026-10-25 00:30", "2026-10-25 04:00"},
        {"02:30-05:00", "Europe/Prague", "2026-10-25 01:10", "2026-10-25 01:10", "2026-10-25 04:00"},
        {"02:10-02:50", "Europe/Prague", "2026-10-25 00:20", "2026-10-25 00:20", "2026-10-25 00:50"},
        {"02:10-02:50", "Europe/Prague", "2026-10-25 01:20", "2026-10-26 01:10", "2026-10-26 01:50"},
        {"22:00-06:00", "Europe/Prague", "2026-10-24 12:00", "2026-10-24 20:00", "2026-10-25 05:00"},
        /* half an hour */
        {"01:45-02:15", "Australia/Lord_Howe", "2026-10-03 12:00", "2026-10-03 15:15", "2026-10-03 15:30"},
        /* 00:00 is skipped in Santiago on 6 September, at 04:00 UTC */
        {"00:00-06:00", "America/Santiago", "2026-09-06 03:00", "2026-09-06 04:00", "2026-09-06 09:00"},
        /* set back over midnight, 00:01 to 23:01 of the day before, at 02:31 UTC: the new day's window is
           open */
        {"00:00-06:00", "America/St_Johns", "2010-11-07 02:45", "2010-11-07 02:45", "2010-11-07 09:30"},
        /* a day that was left out */
        {"10:00-11:00", "Pacific/Apia", "2011-12-29 22:00", "2011-12-30 20:00", "2011-12-30 21:00"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(release) struct clockwork c;
        open_clockwork(
            &c, &(struct given){
                    .every = H, .run_on_start = true, .window = cases[i].window, .zone = cases[i].zone});
        instant at = time_of(cases[i].at), until, opens = ticker_first(c.t, at, NULL);
        check_time(i, opens, cases[i].opens);
        assert_int_equal(ticker_may_work(c.t, at, NULL), opens == at);
        assert_true(ticker_may_work(c.t, opens, &until));
        check_time(i, until, cases[i].closes);
        assert_true(ticker_may_work(c.t, until - 1, NULL));
        assert_false(ticker_may_work(c.t, until, &until));
        assert_true(until == NEVER);
        if (opens > at)
            assert_false(ticker_may_work(c.t, opens - 1, NULL));
    }
}

static void no_window_is_always_open(void **state)
{
    (void)state;
    AUTO(release) struct clockwork c;
    open_clockwork(&c, &(struct given){.every = H});
    instant until = 0;
    assert_true(ticker_may_work(c.t, time_of("2026-01-01 10:00"), &until));
    assert_true(until == NEVER);
}

static void jitter_is_spread_and_stays_inside(void **state)
{
    (void)state;
    AUTO(release) struct clockwork plain, night, none;
    open_clockwork(&plain, &(struct given){.every = H, .jitter = 30 * S});
    open_clockwork(&night, &(struct given){.every = H, .jitter = 30 * H, .window = "22:00-06:00"});
    open_clockwork(&none, &(struct given){.every = H});
    instant at = time_of("2026-01-01 05:59:50"), closes = time_of("2026-01-01 06:00");
    uint64_t seed = 7;
    int late = 0;
    for (int i = 0; i < 1000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        instant by_plain = ticker_jitter(plain.t, at, seed >> 20),
                by_night = ticker_jitter(night.t, at, seed >> 20);
        assert_true(by_plain >= at && by_plain <= at + 30 * S);
        assert_true(by_night >= at && by_night < closes);
        assert_true(ticker_jitter(none.t, at, seed) == at);
        late += by_plain > at + 15 * S;
    }
    assert_in_range(late, 400, 600);
    assert_true(ticker_jitter(plain.t, at, (uint64_t)(30 * S)) == at + 30 * S);
    assert_true(ticker_jitter(plain.t, at, (uint64_t)(30 * S + 1)) == at);
    assert_true(ticker_jitter(night.t, closes - 1, UINT64_MAX) == closes - 1);
    assert_true(ticker_jitter(night.t, closes - 10 * S, (uint64_t)(10 * S - 1)) == closes - 1);
    assert_true(ticker_jitter(plain.t, NEVER, 5) == NEVER);
}

/* No time, no interval, however odd, overflows (the sanitizers watch) or comes out before now. */
static void extremes_do_no_harm(void **state)
{
    (void)state;
    static const struct given schedulers[] = {
        {.every = 1},
        {.every = INT64_MAX, .jitter = INT64_MAX},
        {.every = INT64_MAX / 2, .jitter = 1},
        {.every = H, .window = "22:00-06:00", .zone = "Europe/Prague", .jitter = INT64_MAX},
        {.cron = "* * * * * *", .zone = "America/Santiago", .window = "06:00-06:01"},
        {.cron = "0 0 29 2 1", .zone = "Australia/Lord_Howe"},
    };
    static const instant times[] = {INT64_MIN,     INT64_MIN + 1, INT64_MIN / 4, -1,       0, 1,
                                    INT64_MAX / 4, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(schedulers); i++) {
        AUTO(release) struct clockwork c;
        open_clockwork(&c, &schedulers[i]);
        for (size_t k = 0; k < COUNT_OF(times) * COUNT_OF(times); k++) {
            instant now = times[k % COUNT_OF(times)], other = times[k / COUNT_OF(times)], until;
            if (now < INT64_MAX / 4) {
                assert_true(ticker_first(c.t, now, &other) > now);
                assert_true(ticker_next(c.t, other, now) > now);
            } else {
                assert_true(ticker_first(c.t, now, &other) == NEVER);
                assert_true(ticker_next(c.t, other, now) == NEVER);
            }
            assert_true(ticker_jitter(c.t, now, (uint64_t)other) >= now);
            ticker_moved(c.t, now, other, times[(k + 3) % COUNT_OF(times)]);
            if (ticker_may_work(c.t, now, &until))
                assert_true(until > now || now == NEVER);
        }
    }
}

static void what_cannot_be_opened_says_why(void **state)
{
    (void)state;
    static const struct {
        struct scheduler s;
        const char *why;
    } cases[] = {
        {{.name = "a", .timezone = "UTC"}, "scheduler 'a': 'every' must be longer than 0"},
        {{.name = "b", .every = {SPAN_TIME, 1}, .timezone = "Mars/Olympus"}, "scheduler 'b'"},
        {{.name = "c", .cron = "x", .timezone = "UTC"}, "scheduler 'c'"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ticker *t = NULL;
        struct err e = ERR_INIT;
        assert_int_equal(ticker_open(&cases[i].s, &t, &e), -1);
        assert_null(t);
        assert_ptr_equal(strstr(e.text, cases[i].why), e.text);
    }
}

/* --- simulations ---------------------------------------------------------------------------------------- */

/* What a daemon does, with a clock that only this loop moves. */
struct run {
    int count;
    instant first, last;       /* beats */
    int64_t shortest, longest; /* between two beats */
};

static struct run simulate(const struct given *g, instant from, instant to, int64_t takes)
{
    AUTO(release) struct clockwork c;
    open_clockwork(&c, g);
    struct run r = {.shortest = INT64_MAX};
    uint64_t seed = 11;
    instant now = from;
    for (instant due = ticker_first(c.t, from, NULL); due < to; due = ticker_next(c.t, due, now)) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        instant start = ticker_jitter(c.t, due, seed >> 20);
        assert_true(due > r.last || !r.count);
        assert_true(start >= now);
        assert_true(ticker_may_work(c.t, due, NULL) && ticker_may_work(c.t, start, NULL));
        now = start + takes;
        if (r.count++) {
            r.shortest = due - r.last < r.shortest ? due - r.last : r.shortest;
            r.longest = due - r.last > r.longest ? due - r.last : r.longest;
        } else {
            r.first = due;
        }
        r.last = due;
    }
    return r;
}

static void a_day_and_a_year(void **state)
{
    (void)state;
    static const struct {
        struct given given;
        const char *from, *to;
        int64_t takes;
        int count;
        int64_t shortest, longest;
    } cases[] = {
        /* a day */
        {{.every = M}, "2026-01-01 00:00", "2026-01-02 00:00", 900000, 1439, M, M},
        {{.every = M, .run_on_start = true}, "2026-01-01 00:00", "2026-01-02 00:00", 900000, 1440, M, M},
        {{.every = M, .jitter = 30 * S}, "2026-01-01 00:00", "2026-01-02 00:00", 20 * S, 1439, M, M},
        {{.every = 5 * M, .run_on_start = true},
         "2026-01-01 00:00",
         "2026-01-02 00:00",
         12 * M,
         96,
         15 * M,
         15 * M},
        {{.every = S, .run_on_start = true}, "2026-01-01 00:00", "2026-01-02 00:00", 1, 86400, S, S},
        {{.cron = "*/15 * * * * *"}, "2026-01-01 00:00", "2026-01-02 00:00", S, 4 * 1440 - 1, 15 * S, 15 * S},
        {{.cron = "*/5 * * * *", .window = "22:00-06:00"},
         "2026-01-01 12:00",
         "2026-01-02 12:00",
         1,
         96,
         5 * M,
         5 * M},
        /* the days of the clock changes */
        {{.cron = "*/5 * * * *", .zone = "Europe/Prague"},
         "2026-03-28 23:01",
         "2026-03-29 22:01",
         1,
         23 * 12,
         5 * M,
         5 * M},
        {{.cron = "*/5 * * * *", .zone = "Europe/Prague"},
         "2026-10-24 22:01",
         "2026-10-25 23:01",
         1,
         25 * 12,
         5 * M,
         5 * M},
        {{.cron = "30 * * * *", .zone = "Europe/Prague"},
         "2026-10-24 22:01",
         "2026-10-25 23:01",
         1,
         25,
         H,
         H},
        /* a year, each with its change of clocks */
        {{.every = H}, "2026-01-01 00:00", "2027-01-01 00:00:01", S, 8760, H, H},
        {{.every = 7 * M, .jitter = M}, "2026-01-01 00:00", "2027-01-01 00:00", 5 * M, 75085, 7 * M, 7 * M},
        {{.cron = "*/5 * * * *", .zone = "Europe/Prague"},
         "2026-01-01 00:00",
         "2027-01-01 00:00:01",
         S,
         365 * 288,
         5 * M,
         5 * M},
        {{.cron = "*/5 * * * *", .zone = "Australia/Lord_Howe"},
         "2026-01-01 00:00",
         "2027-01-01 00:00:01",
         S,
         365 * 288,
         5 * M,
         5 * M},
        {{.cron = "0 3 * * *", .zone = "Europe/Prague", .jitter = 30 * S},
         "2026-01-01 12:00",
         "2027-01-01 12:00",
         M,
         365,
         23 * H,
         25 * H},
        {{.cron = "30 2 * * *", .zone = "Europe/Prague"},
         "2026-01-01 12:00",
         "2027-01-01 12:00",
         M,
         365,
         23 * H + 30 * M,
         25 * H},
        {{.cron = "30 0 * * *", .zone = "America/Santiago"},
         "2026-01-01 12:00",
         "2027-01-01 12:00",
         M,
         365,
         23 * H + 30 * M,
         25 * H},
        {{.every = 5 * M, .window = "22:00-06:00", .zone = "Europe/Prague", .jitter = M},
         "2026-01-01 12:00",
         "2027-01-01 12:00",
         2 * M,
         365 * 96,
         5 * M,
         16 * H + 5 * M},
        {{.cron = "*/10 * * * *", .window = "01:30-02:30", .zone = "Europe/Prague"},
         "2026-01-01 12:00",
         "2027-01-01 12:00",
         M,
         365 * 6 - 3,
         10 * M,
         24 * H + 10 * M},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct run r =
            simulate(&cases[i].given, time_of(cases[i].from), time_of(cases[i].to), cases[i].takes);
        if (r.count != cases[i].count || r.shortest != cases[i].shortest || r.longest != cases[i].longest)
            fail_msg("case %zu: %d ticks, %lld to %lld s apart", i, r.count, (long long)(r.shortest / S),
                     (long long)(r.longest / S));
        if (!cases[i].given.cron && !cases[i].given.window)
            assert_true((r.last - time_of(cases[i].from)) % cases[i].given.every == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_tick),           cmocka_unit_test(the_tick_after),
        cmocka_unit_test(a_clock_that_is_set),      cmocka_unit_test(windows_by_the_wall_clock),
        cmocka_unit_test(no_window_is_always_open), cmocka_unit_test(jitter_is_spread_and_stays_inside),
        cmocka_unit_test(extremes_do_no_harm),      cmocka_unit_test(what_cannot_be_opened_says_why),
        cmocka_unit_test(a_day_and_a_year),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
