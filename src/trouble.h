/* trouble: what goes wrong again and again is said once, then how long it lasts, then that it is over. Pure.
 */
#ifndef LAPSE_TROUBLE_H
#define LAPSE_TROUBLE_H

#include "event.h"

/* Of one scheduler: one entry per policy that fails, and one for the scheduler as a whole (policy ""). */
struct troubles;
struct troubles *troubles_new(const char *scheduler);
void troubles_free(struct troubles *t);

/* A tick ended so. Calls say for each event: what is new (EVENT_TICK_FAILED, once per different error of a
 * policy, with policy, table, error, outcome, count), what lasts (EVENT_STILL_FAILING, after 1, 10, then
 * every 60 minutes, with how long and how many ticks), what is over (EVENT_RECOVERED). Returns the number of
 * errors of this tick, for the metric: 0 when all went well. A tick that was held elsewhere, stopped or
 * paused says nothing of what failed before. */
size_t troubles_of_tick(struct troubles *t, const struct report *r, instant at,
                        void (*say)(void *context, struct event *ev), void *context);
/* The error that lasts, for status; NULL: none. Lives until the next call. */
const char *troubles_now(const struct troubles *t, instant *ret_since);

#endif
