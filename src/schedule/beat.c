/* beat: where a scheduler stands between its ticks. See beat.h. */
#include "schedule/beat.h"

/* What a clock may differ from the other between two readings without having been set. */
static const int64_t SLEW_US = US_PER_S;
static const int64_t RETRY_LEAST_US = US_PER_S, RETRY_MOST_US = 60 * US_PER_S;

static void wait_for(struct beat *b, instant due, uint64_t chance)
{
    b->due = due;
    b->begun = false;
    b->start = ticker_jitter(b->ticker, due, chance);
}

/* By how much the wall clock was set since the last reading, as far as it was; sleep is no jump. */
static int64_t jump(const struct beat *b, struct clocks now)
{
    int64_t passed = now.boot_us - b->seen.boot_us, by = now.wall - b->seen.wall - passed;
    return by >= SLEW_US || by <= -SLEW_US ? by : 0;
}

/* The tick that is waited for is due when ticker_moved says. One that was begun, and is running or tried
 * again, stays the same tick; what is left of a pause is as long as before. */
static void notice_jump(struct beat *b, struct clocks now, uint64_t chance)
{
    int64_t by = jump(b, now);
    instant before = now.wall - by;
    b->seen = now;
    if (!by || b->due == NEVER)
        return;
    if (b->begun) {
        b->due += ticker_every_us(b->ticker) ? by : 0;
        b->start += by;
        return;
    }
    wait_for(b, ticker_moved(b->ticker, b->due, before, now.wall), chance);
}

/* From 1 to 2 seconds, and twice that from try to try, up to a minute: the first half of it and a part of the
 * rest by chance, so that those who lost the same database do not all come back at once. */
static int64_t retry_pause(int failures, uint64_t chance)
{
    int64_t most = 2 * RETRY_LEAST_US;
    for (int i = 1; i < failures && most < RETRY_MOST_US; i++)
        most *= 2;
    most = most > RETRY_MOST_US ? RETRY_MOST_US : most;
    return most / 2 + (int64_t)(chance % (uint64_t)(most / 2 + 1));
}

void beat_begin(struct beat *b, const struct ticker *t, struct clocks now, const instant *last,
                uint64_t chance)
{
    *b = (struct beat){.ticker = t, .seen = now};
    wait_for(b, ticker_first(t, now.wall, last), chance);
}

void beat_change(struct beat *b, const struct ticker *t, struct clocks now, const instant *last,
                 uint64_t chance)
{
    notice_jump(b, now, chance); /* by the words it was waited for with */
    b->ticker = t;
    instant next = ticker_next(t, last ? *last : now.wall, now.wall);
    if (b->working)
        return;
    bool goes_on = b->begun && next != NEVER && b->start < next && ticker_may_work(t, b->start, NULL);
    if (!goes_on)
        wait_for(b, next, chance);
}

bool beat_turn(struct beat *b, struct clocks now, uint64_t chance)
{
    notice_jump(b, now, chance);
    if (b->working || b->due == NEVER || now.wall < b->start)
        return false;
    b->working = b->begun = ticker_may_work(b->ticker, now.wall, NULL);
    if (!b->working)
        wait_for(b, ticker_next(b->ticker, b->due, now.wall), chance);
    return b->working;
}

void beat_end(struct beat *b, struct clocks now, bool lost, instant again, uint64_t chance)
{
    notice_jump(b, now, chance);
    b->working = false;
    b->failures = lost ? b->failures + 1 : 0;
    instant next = ticker_next(b->ticker, b->due, now.wall);
    if (lost)
        again = now.wall + retry_pause(b->failures, chance);
    if (again != NEVER && next != NEVER && again < next && ticker_may_work(b->ticker, again, NULL))
        b->start = again;
    else
        wait_for(b, next, chance);
}

int64_t beat_late_us(const struct beat *b, instant now)
{
    instant by = b->working ? ticker_next(b->ticker, b->due, b->start) : b->start;
    return by < now ? now - by : 0;
}

int64_t beat_interval_us(const struct beat *b, instant now)
{
    int64_t every = ticker_every_us(b->ticker);
    if (every)
        return every;
    instant one = b->due == NEVER ? ticker_next(b->ticker, now, now) : b->due;
    instant other = ticker_next(b->ticker, one, one);
    return one == NEVER || other == NEVER ? INT64_MAX : other - one;
}
