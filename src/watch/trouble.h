/* trouble: what goes wrong again and again is said once, then how long it lasts, then that it is over. Pure.
 */
#ifndef LAPSE_WATCH_TROUBLE_H
#define LAPSE_WATCH_TROUBLE_H

#include "watch/event.h"

/* Of one scheduler: one entry per policy that fails, and one for the scheduler as a whole (policy ""). */
struct troubles;
struct troubles *troubles_new(const char *scheduler);
void troubles_free(struct troubles *t);

/* A tick ended so. Says what is new (EVENT_TICK_FAILED, once per different error of a policy while its
 * trouble lasts, with policy, table, error, outcome), what lasts (EVENT_STILL_FAILING, after 1, 10, then
 * every 60 minutes, with how long and how many ticks), what is over (EVENT_RECOVERED). Errors that differ in
 * numbers and keys alone are the same. Policies that failed because the database was not there are one
 * trouble, the scheduler's. A policy that was held elsewhere, stopped or paused says nothing of what failed
 * before; one that is off or no longer there has no trouble. Returns the number of errors of this tick, for
 * the metric: 0 when all went well. */
size_t troubles_of_tick(struct troubles *t, const struct report *r, instant at, event_say *say,
                        void *context);
/* The error that lasts, for status: the scheduler's own, else the oldest. NULL: none. Lives until the next
 * call. */
const char *troubles_now(const struct troubles *t, instant *ret_since);

#endif
