/* ticker: when a scheduler ticks. Pure: it is told the time and the chance. */
#ifndef LAPSE_TICKER_H
#define LAPSE_TICKER_H

#include "contract.h"

#define NEVER INT64_MAX

/* A scheduler's clockwork: its cron and zone, resolved. Borrows the scheduler. */
struct ticker;
int ticker_open(const struct scheduler *s, struct ticker **ret, struct err *e);
void ticker_free(struct ticker *t);
void ticker_free_p(struct ticker **t);

/* The first tick of a process that starts now; last: when the scheduler last ran, or NULL. What was missed while
 * nothing ran is made up for by run_on_start or not at all. */
instant ticker_first(const struct ticker *t, instant now, const instant *last);
/* The tick after the one that was due at `due`, which ended now. Ticks that were missed meanwhile (it took long,
 * the machine slept) are one: the interval keeps its beat. */
instant ticker_next(const struct ticker *t, instant due, instant now);
/* The clock was set: where it showed `before` it shows `after`. When the tick that was due at `due` is due now. An
 * interval goes on as if nothing had happened; cron reads the new clock, and does not repeat what it did unless
 * the clock went back by more than three hours. */
instant ticker_moved(const struct ticker *t, instant due, instant before, instant after);
/* A little later than at, by chance (any number), but still inside the window. */
instant ticker_jitter(const struct ticker *t, instant at, uint64_t chance);
/* Whether it may work now, and until when (NEVER: no window). */
bool ticker_may_work(const struct ticker *t, instant now, instant *ret_until);

#endif
