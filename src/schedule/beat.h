/* beat: where a scheduler stands between its ticks: what it waits for, and whether a tick is running. Pure:
 * it is told the clocks and the chance, so a day passes in a test as fast as the test likes. */
#ifndef LAPSE_SCHEDULE_BEAT_H
#define LAPSE_SCHEDULE_BEAT_H

#include "schedule/ticker.h"

/* One reading of both clocks. boot_us never jumps and counts the time of a suspended machine. */
struct clocks {
    instant wall;
    int64_t boot_us;
};

struct beat {
    const struct ticker *ticker; /* borrowed */
    instant due;                 /* the tick that is waited for or running; NEVER: none comes */
    instant start;               /* when it begins: due and its jitter, or a later try of it */
    bool working;                /* a tick is running: the next does not begin before it ended */
    bool begun;                  /* the tick of `due` is running, or is tried again */
    int failures;                /* tries that the database cut short, one after the other */
    struct clocks seen;          /* the last reading */
};

/* As a process starts; last: when the scheduler last ran, or NULL. */
void beat_begin(struct beat *b, const struct ticker *t, struct clocks now, const instant *last,
                uint64_t chance);
/* The contract was read again, and this scheduler says something else than before: the next tick by its new
 * words, counted from the last one. That is no start: run_on_start does not count. A tick that is running, or
 * is tried again because the database was not there, goes on; the one after it goes by the new words. */
void beat_change(struct beat *b, const struct ticker *t, struct clocks now, const instant *last,
                 uint64_t chance);
/* Time went on. true: a tick begins now, and is running until beat_end. What was missed meanwhile is one
 * tick; where the window has closed, none. Notices that the wall clock was set: by a second or more against
 * boot_us; less is a clock that is being kept right. */
bool beat_turn(struct beat *b, struct clocks now, uint64_t chance);
/* The tick ended. lost: the database was not there: the same tick is tried again, after a pause that grows
 * from a second to a minute, but never past the next beat or the window. again: it is tried again then, as another
 * may be kept from it no more; NEVER: it is not. */
void beat_end(struct beat *b, struct clocks now, bool lost, instant again, uint64_t chance);
/* By how much it is late: a tick that should have begun and has not, or one that has been running for longer
 * than until the next was due. 0: it is not. */
int64_t beat_late_us(const struct beat *b, instant now);
/* How long from one tick to the next, about: what "late" is measured by. */
int64_t beat_interval_us(const struct beat *b, instant now);

#endif
