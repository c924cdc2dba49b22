/* tick: one tick of one scheduler: a sweep of its policies over a connection that may stay open between
 * ticks. What a tick deletes is decided by facts read in that tick; only the question whether anything is due
 * (one indexed probe per policy of expires or age) is asked with facts kept from before. */
#ifndef LAPSE_COMMAND_TICK_H
#define LAPSE_COMMAND_TICK_H

#include "command/internal.h"
#include "schedule/ticker.h"

struct tick_options {
    bool observe;               /* reads only, over a connection that cannot write: a REPORT_PLAN */
    instant until;              /* the window closes then, by the wall clock; NEVER: no window */
    bool again;                 /* only because another's lease may be free by now */
    const char *source, *owner; /* for the history: "daemon", "host:pid:random" */
    bool (*stop)(void *context);
    /* After every committed batch: the rows that went, per table of the policy. */
    void (*batch)(void *context, const struct report_policy *p, const int64_t *gone, int64_t us);
    /* What holds the sweep back is another than before, or it still waits. */
    void (*paced)(void *context, const struct report_policy *p, const struct outcome_pace *pace);
    void *context;
};

/* What a scheduler has between its ticks: its connection, its lease, what it knows of the schema. One thread
 * works with it; only hand_interrupt may be called from another. The contract must outlive it. */
struct hand;
struct hand *hand_new(const struct contract *c, const struct scheduler *s);
void hand_free(struct hand *h); /* hands its lease over, closes */

/* Never fails as a function: what went wrong is in the report (free it with report_free; before the
 * contract). report->exit is LAPSE_UNREACHABLE where the database was not there. */
struct report *hand_tick(struct hand *h, const struct tick_options *o);
/* Between ticks: renews the lease if it is held; returns how long that may wait (us), INT64_MAX: not needed.
 */
int64_t hand_keep(struct hand *h);
bool hand_leads(const struct hand *h); /* the lease is held, as far as is known */
/* Nothing to do for so long: closes the connection unless the lease needs it or the time is short. */
void hand_rest(struct hand *h, int64_t us);
/* Ends the statement that is running, soon: the tick rolls back and ends as stopped. Any thread. */
void hand_interrupt(struct hand *h);

#endif
