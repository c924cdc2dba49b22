/* Tests of src/beat.c: when ticks begin, over clocks that are set, machines that sleep, databases that are gone,
 * contracts that change; and a whole day of several schedulers against lists made another way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "beat.h"

#define S INT64_C(1000000)
#define M (60 * S)
#define H (60 * M)

/* A scheduler as the contract gives it, in a few words. */
struct given {
    int64_t every;
    const char *cron, *zone;
    int from, to; /* the window, in minutes of the day; both 0: none */
    bool run_on_start;
    int64_t jitter;
    bool off;
};

struct clockwork {
    struct scheduler s;
    struct ticker *t;
};

static void open_clockwork(struct clockwork *c, const struct given *g)
{
    bool window = g->from != g->to;
    c->s = (struct scheduler){.name = "s",
                              .every = {g->cron ? SPAN_NEVER : SPAN_TIME, g->cron ? INT64_MAX : g->every},
                              .cron = g->cron,
                              .timezone = g->zone ? g->zone : "UTC",
                              .run_on_start = g->run_on_start,
                              .jitter = {SPAN_TIME, g->jitter},
                              .window_from = window ? g->from : -1,
                              .window_to = window ? g->to : -1,
                              .enabled = !g->off};
    struct err e = ERR_INIT;
    c->t = NULL;
    if (ticker_open(&c->s, &c->t, &e) < 0)
        fail_msg("%s", e.text);
}

static void release(struct clockwork *c)
{
    ticker_free(c->t);
}

static instant time_of(const char *text)
{
    instant at;
    assert_true(when_parse(text, strlen(text), NULL, &at));
    return at;
}

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

#define GIVEN(...) AUTO(release) struct clockwork c; open_clockwork(&c, &(struct given){__VA_ARGS__})

static void an_interval_ticks_on_its_beat(void **state)
{
    (void)state;
    GIVEN(.every = M, .run_on_start = true);
    struct clocks now = clocks_at(NOON);
    struct beat b = begun(&c, now);
    assert_true(beat_turn(&b, now, 0));
    pass(&now, 3 * S);
    beat_end(&b, now, false, 0);
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
    beat_end(&b, now, false, 0);
    assert_int_equal(beat_late_us(&b, now.wall), 0);
    assert_int_equal(b.start, time_of("2026-03-04T12:06:00Z")); /* one, on the old beat */
    assert_int_equal(beat_interval_us(&b, now.wall), M);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_ticks_on_its_beat),
        cmocka_unit_test(a_tick_never_overlaps_itself_and_misses_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
