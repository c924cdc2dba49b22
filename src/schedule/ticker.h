/* ticker: when a scheduler ticks. Pure: it is told the time and the chance.
 *
 * A daemon keeps `due`, the beat, and starts the tick at ticker_jitter(due): the beat itself has no jitter in
 * it, so nothing drifts. Having slept until then it asks ticker_may_work; where the answer is no (the machine
 * was suspended through the window), it goes on with ticker_next as if it had ticked. */
#ifndef LAPSE_SCHEDULE_TICKER_H
#define LAPSE_SCHEDULE_TICKER_H

#include "contract/contract.h"

#define NEVER INT64_MAX

/* A scheduler's clockwork: its cron and zone, resolved. Borrows the scheduler. */
struct ticker;
int ticker_open(const struct scheduler *s, struct ticker **ret, struct err *e);
void ticker_free(struct ticker *t);
void ticker_free_p(struct ticker **t);

/* The first tick of a process that starts now; last: when the scheduler last ran, or NULL. What was missed
 * while nothing ran is made up for by run_on_start or not at all: an interval keeps the beat of its last run,
 * unless that lies ahead. Always in the window; NEVER for a scheduler that is not enabled. */
instant ticker_first(const struct ticker *t, instant now, const instant *last);
/* The tick after the one that was due at `due`, which ended now. Ticks that were missed meanwhile (it took
 * long, the machine slept) are one: the interval keeps its beat. A beat that falls outside the window waits
 * until it opens, and the beat goes on from there; a time of cron outside is left out. If the clock was set
 * back below due, the tick does not repeat: see ticker_moved. */
instant ticker_next(const struct ticker *t, instant due, instant now);
/* The clock was set while the tick of `due` was waited for: where it showed `before` it shows `after`. When
 * that tick is due now. `before` must count the time of a suspended machine (CLOCK_BOOTTIME does): sleep is
 * no jump.
 *
 * An interval goes on as if nothing had happened. Cron reads the new clock. Set forward over due by up to
 * three hours, it ticks at once, as it does for a time that a clock change skips; by more, the clock was
 * wrong and the times in between never were. Set back by up to three hours, nothing repeats, as with a
 * repeated hour; by more, it starts afresh. For a cron that is an interval, one minute back is enough for
 * that: it must not fall silent. */
instant ticker_moved(const struct ticker *t, instant due, instant before, instant after);
/* A little later than at, by chance (any number), but still before the window closes. */
instant ticker_jitter(const struct ticker *t, instant at, uint64_t chance);
/* Whether it may work now, and until when (NEVER: no window). A window is one stretch from its begin to its
 * end, each the first time the clock shows it, or the clock change that skips it; one that is skipped whole
 * does not open that day. */
bool ticker_may_work(const struct ticker *t, instant now, instant *ret_until);
/* The interval; 0: it goes by cron. */
int64_t ticker_every_us(const struct ticker *t);

#endif
