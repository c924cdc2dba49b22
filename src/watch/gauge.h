/* gauge: how much is due and how old it is, looked at now and then, so that it costs little: bounded
 * counting, over a connection of its own that cannot write, never a policy whose sweep is running, and no
 * more than about a hundredth of the time. */
#ifndef LAPSE_WATCH_GAUGE_H
#define LAPSE_WATCH_GAUGE_H

#include "watch/event.h"
#include "watch/meter.h"

enum { GAUGE_MOST = 10000 }; /* rows counted per policy: more means "at least" */

/* --- when to look, pure: times are of a clock that never jumps, in microseconds
 * ------------------------------ A policy is looked at every minute, but all of them together no more than a
 * hundredth of the time: the pause is also a hundred times what looking at all of them takes. Those that did
 * not answer in time are apart: once an hour, and by themselves no more than a hundredth either. Between two
 * looks, of whichever policies, lie nine times what the first took. */
struct pace_of {
    int64_t due_us, took_us;
    bool slow; /* it did not answer in time when it was last looked at */
};
struct gauge_pace {
    struct pace_of *list;
    size_t n;
    int64_t not_before_us;
    int failures; /* the database was not there, so many times one after the other */
};
/* Which one to look at now; SIZE_MAX: none yet, wait so long. */
size_t pace_next(const struct gauge_pace *p, int64_t now_us, int64_t *ret_wait_us);
void pace_looked(struct gauge_pace *p, size_t i, int64_t now_us, int64_t took_us, bool slow);
void pace_busy(struct gauge_pace *p, size_t i, int64_t now_us); /* it is being swept: a little later */
/* The database is not there: a pause that grows from a second to a minute, then all are due. */
void pace_broke(struct gauge_pace *p, int64_t now_us);

/* --- looking -----------------------------------------------------------------------------------------------
 */
struct gauge_options {
    bool (*busy)(void *context, const struct policy *p); /* its sweep is running; NULL: never */
    event_say *say;                                      /* at level debug; NULL: nobody */
    void *context;
};
/* For one thread. The contract and the meter must outlive it. */
struct gauge;
struct gauge *gauge_new(const struct contract *c, struct meter *m, const struct gauge_options *o);
void gauge_free(struct gauge *g);
/* Looks at one policy at most, for two seconds at most. Returns how long nothing is to be done (us); it may
 * be called earlier. now_us: when_monotonic_us(). Whatever goes wrong, it goes on: what is not known is not
 * in the metrics, a lost connection is opened again. */
int64_t gauge_turn(struct gauge *g, int64_t now_us);
/* Whether the database was not there at the last look. */
bool gauge_lost(const struct gauge *g);
/* Ends the look that is running, soon, and there are no more. Any thread. */
void gauge_interrupt(struct gauge *g);

#endif
