/* ticker: when a scheduler ticks. See ticker.h. */
#include "schedule/ticker.h"

#include <stdlib.h>

struct ticker {
    const struct scheduler *scheduler;
    struct zone *zone;
    struct cron *cron; /* NULL: by interval */
};

static const int64_t CORRECTED_US = 3 * 3600 * US_PER_S, MINUTE_US = 60 * US_PER_S;
/* 73,000 years from now: no sum or difference of two such times overflows. What lies beyond is never. */
static const instant FAR = INT64_MAX / 4;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static instant clamp(instant at)
{
    return at > FAR ? FAR : at < -FAR ? -FAR : at;
}

static instant later(instant at, int64_t us)
{
    instant sum;
    return add_i64(at, us, &sum) ? sum : NEVER;
}

static bool has_window(const struct ticker *t)
{
    return t->scheduler->window_from >= 0;
}

int ticker_open(const struct scheduler *s, struct ticker **ret, struct err *e)
{
    AUTO(ticker_free_p) struct ticker *t = mem_alloc(sizeof(*t));
    t->scheduler = s;
    if (!s->cron && s->every.us <= 0)
        return err_set(e, ERR_CONTRACT, "scheduler '%s': 'every' must be longer than 0", s->name);
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

int64_t ticker_every_us(const struct ticker *t)
{
    return t->cron ? 0 : t->scheduler->every.us;
}

void ticker_free_p(struct ticker **t)
{
    ticker_free(*t);
    *t = NULL;
}

/* --- the window ----------------------------------------------------------------------------------------- */

/* The instant of so many minutes into a local day. */
static instant at_minute(const struct ticker *t, int64_t day, int minute)
{
    return zone_first_instant(t->zone, day * US_PER_DAY + minute * MINUTE_US);
}

/* at, or when the window opens next; and when it closes then. */
static instant into_window(const struct ticker *t, instant at, instant *ret_until)
{
    /* The day before, whose window may last over midnight, and the day after, which may have begun already
     * when the clock was set back over midnight. Behind that, more than enough for windows that do not open.
     */
    enum { FROM_DAY = -1, TO_DAY = 7 };
    int from = t->scheduler->window_from, to = t->scheduler->window_to;
    *ret_until = NEVER;
    if (at >= FAR)
        return NEVER;
    if (!has_window(t))
        return at;
    at = clamp(at);
    int64_t today = when_floor_div(at + zone_offset_at(t->zone, at) * US_PER_S, US_PER_DAY);
    for (int64_t day = today + FROM_DAY; day <= today + TO_DAY; day++) {
        instant opens = at_minute(t, day, from), closes = at_minute(t, day + (to <= from), to);
        if (opens < closes && at < closes) {
            *ret_until = closes;
            return at > opens ? at : opens;
        }
    }
    return NEVER;
}

bool ticker_may_work(const struct ticker *t, instant now, instant *ret_until)
{
    instant until;
    bool may = !has_window(t) || into_window(t, clamp(now), &until) == clamp(now);
    if (ret_until)
        *ret_until = may && has_window(t) ? until : NEVER;
    return may;
}

/* --- ticks ---------------------------------------------------------------------------------------------- */

/* Every day on which cron fires has a time of it in the window: the contract makes sure of that. Only what a
 * clock change skips may make it miss a day, so a few tries are enough. */
enum { CRON_TRIES = 100 };

static instant next_by_cron(const struct ticker *t, instant after)
{
    for (int i = 0; i < CRON_TRIES; i++) {
        instant at, until;
        if (!cron_next(t->cron, t->zone, clamp(after), &at))
            return NEVER;
        instant inside = into_window(t, at, &until);
        if (inside == at || inside == NEVER)
            return inside;
        after = inside - 1;
    }
    return NEVER;
}

/* How far the clock may have gone back without the scheduler starting afresh. */
static int64_t patience(const struct ticker *t)
{
    if (!t->cron)
        return least(t->scheduler->every.us, MINUTE_US);
    return cron_is_interval(t->cron) ? MINUTE_US : CORRECTED_US;
}

/* The first beat of the interval, counted from `from`, that lies after now. One ahead of now has just been,
 * if the clock was set back a little since; if by more, the beat begins anew. */
static instant next_beat(const struct ticker *t, instant from, instant now)
{
    int64_t every = t->scheduler->every.us;
    instant until;
    if (from > now && from - now > patience(t))
        from = now;
    int64_t behind = from < now ? now - from : 0;
    return into_window(t, later(from + (behind - behind % every), every), &until);
}

instant ticker_first(const struct ticker *t, instant now, const instant *last)
{
    instant until;
    now = clamp(now);
    if (!t->scheduler->enabled)
        return NEVER;
    if (t->scheduler->run_on_start)
        return into_window(t, now, &until);
    return t->cron ? next_by_cron(t, now) : next_beat(t, last ? clamp(*last) : now, now);
}

instant ticker_next(const struct ticker *t, instant due, instant now)
{
    due = clamp(due);
    now = clamp(now);
    if (!t->scheduler->enabled)
        return NEVER;
    if (!t->cron)
        return next_beat(t, due, now);
    return next_by_cron(t, due > now && due - now <= patience(t) ? due : now);
}

static instant moved_by_cron(const struct ticker *t, instant due, instant before, instant after)
{
    bool forward = after > before;
    if (forward ? after - before > CORRECTED_US : before - after > patience(t))
        return next_by_cron(t, after);
    return due > after || ticker_may_work(t, after, NULL) ? due : next_by_cron(t, after);
}

instant ticker_moved(const struct ticker *t, instant due, instant before, instant after)
{
    instant until;
    if (due >= FAR)
        return NEVER;
    due = clamp(due);
    before = clamp(before);
    after = clamp(after);
    return t->cron ? moved_by_cron(t, due, before, after)
                   : into_window(t, clamp(after + (due - before)), &until);
}

instant ticker_jitter(const struct ticker *t, instant at, uint64_t chance)
{
    int64_t most = t->scheduler->jitter.us;
    instant until;
    if (at >= FAR || at <= -FAR || most <= 0 || !ticker_may_work(t, at, &until))
        return at;
    most = least(most, least(until, FAR) - 1 - at);
    return at + (int64_t)(chance % ((uint64_t)most + 1));
}
