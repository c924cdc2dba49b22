/* ticker: when a scheduler ticks. See ticker.h. */
#include "ticker.h"

#include <stdlib.h>

struct ticker {
    const struct scheduler *scheduler;
    struct zone *zone; /* NULL: UTC */
    struct cron *cron; /* NULL: by interval */
};

enum { CRON_TRIES = 20000 }; /* times outside the window before a cron counts as never inside: a month of minutes */
static const int64_t CORRECTED_US = 3 * 3600 * US_PER_S, MINUTE_US = 60 * US_PER_S;

int ticker_open(const struct scheduler *s, struct ticker **ret, struct err *e)
{
    AUTO(ticker_free_p) struct ticker *t = mem_alloc(sizeof(*t));
    t->scheduler = s;
    if (zone_open(s->timezone, &t->zone, e) < 0)
        return err_wrap(e, "scheduler '%s'", s->name);
    if (s->cron && cron_parse(s->cron, &t->cron, e) < 0)
        return err_wrap(e, "scheduler '%s'", s->name);
    *ret = t;
    t = NULL;
    return 0;
}

void ticker_free(struct ticker *t)
{
    if (!t)
        return;
    zone_free(t->zone);
    cron_free(t->cron);
    free(t);
}

void ticker_free_p(struct ticker **t)
{
    ticker_free(*t);
    *t = NULL;
}

static instant later(instant at, int64_t us)
{
    instant sum;
    return add_i64(at, us, &sum) ? sum : NEVER;
}

/* --- the window ----------------------------------------------------------------------------------------- */

static int64_t local_of(const struct ticker *t, instant at)
{
    return at + zone_offset_at(t->zone, at) * US_PER_S;
}

/* The instant of so many minutes into the local day that `local` lies in, or some days later. */
static instant at_minute(const struct ticker *t, int64_t local, int days, int minute)
{
    int64_t midnight = when_floor_div(local, US_PER_DAY) * US_PER_DAY;
    return zone_first_instant(t->zone, midnight + days * US_PER_DAY + minute * MINUTE_US);
}

bool ticker_may_work(const struct ticker *t, instant now, instant *ret_until)
{
    int from = t->scheduler->window_from, to = t->scheduler->window_to;
    if (ret_until)
        *ret_until = NEVER;
    if (from < 0)
        return true;
    int64_t local = local_of(t, now);
    for (int day = -1; day <= 0; day++) { /* the window that began yesterday, and today's */
        instant begins = at_minute(t, local, day, from);
        instant ends = at_minute(t, local, day + (to <= from), to);
        if (begins <= now && now < ends) {
            if (ret_until)
                *ret_until = ends;
            return true;
        }
    }
    return false;
}

/* at, or when the window opens next. */
static instant into_window(const struct ticker *t, instant at)
{
    if (at == NEVER || ticker_may_work(t, at, NULL))
        return at;
    int64_t local = local_of(t, at);
    instant opens = at_minute(t, local, 0, t->scheduler->window_from);
    return opens > at ? opens : at_minute(t, local, 1, t->scheduler->window_from);
}

/* --- ticks ---------------------------------------------------------------------------------------------- */

static instant next_by_cron(const struct ticker *t, instant after)
{
    for (int i = 0; i < CRON_TRIES; i++) {
        if (!cron_next(t->cron, t->zone, after, &after))
            return NEVER;
        if (ticker_may_work(t, after, NULL))
            return after;
    }
    return NEVER;
}

/* The first beat of the interval, counted from `from`, that lies after now. A `from` ahead of now is no beat to
 * wait for: the clock was set back since. */
static instant next_beat(const struct ticker *t, instant from, instant now)
{
    int64_t every = t->scheduler->every.us;
    if (from > now)
        from = now;
    int64_t behind = now - from;
    return into_window(t, later(from, (behind / every + 1) * every));
}

instant ticker_first(const struct ticker *t, instant now, const instant *last)
{
    if (!t->scheduler->enabled)
        return NEVER;
    if (t->scheduler->run_on_start)
        return into_window(t, now);
    return t->cron ? next_by_cron(t, now) : next_beat(t, last ? *last : now, now);
}

instant ticker_next(const struct ticker *t, instant due, instant now)
{
    if (!t->cron)
        return next_beat(t, due, now);
    return next_by_cron(t, due > now && due - now <= CORRECTED_US ? due : now);
}

instant ticker_moved(const struct ticker *t, instant due, instant before, instant after)
{
    if (due == NEVER)
        return NEVER;
    if (!t->cron)
        return into_window(t, later(after, due - before));
    if (after >= due)
        return due;
    return after > before || before - after <= CORRECTED_US ? due : next_by_cron(t, after);
}

instant ticker_jitter(const struct ticker *t, instant at, uint64_t chance)
{
    int64_t jitter = t->scheduler->jitter.us;
    if (at == NEVER || jitter <= 0)
        return at;
    instant delayed = later(at, (int64_t)(chance % ((uint64_t)jitter + 1)));
    return ticker_may_work(t, delayed, NULL) ? delayed : at;
}
