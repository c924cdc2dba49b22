/* partitions: a partition of the swept table as the engine describes it, and whether it may be dropped.
 * Plain data and pure. */
#ifndef LAPSE_PLAN_PARTITIONS_H
#define LAPSE_PLAN_PARTITIONS_H

#include "plan/plan.h"

/* What the first column of its range holds. */
enum range_of {
    RANGE_OTHER,   /* nothing that says when rows come */
    RANGE_TIMES,   /* instants */
    RANGE_LOCALS,  /* local times and days */
    RANGE_NUMBERS, /* whole numbers */
};
struct partition {
    const char *id;    /* tells it from another that has its name later */
    const char *above; /* the ids of the partitions that it is a part of, each between blanks; "": none */
    const char *schema, *name, *print;
    const char *up_schema, *up_name; /* the table that it is a direct part of */
    const char *rest_schema,
        *rest_name;     /* what takes the rows that are in no part of that; NULL: nothing does */
    const char *column; /* the first of its range; NULL: an expression */
    enum range_of of;
    bool has_end;
    int64_t end;     /* its rows lie before it: microseconds, or a number */
    bool counted_up; /* RANGE_NUMBERS: the column counts up by itself, and has come to the end or beyond */
    const char *why; /* why it must not be dropped, whatever its rows say; NULL: nothing speaks against it */
};
struct partitions {
    struct arena *arena;
    struct partition *list; /* a partition comes after those that it is a part of */
    size_t n;
};
void partitions_release(struct partitions *p);

/* Whether its range has ended: no application has a reason to put another row there, which would fail once it
 * is gone. Of times, it has by the latest cutoff; of numbers, where they are counted up. */
bool partition_has_ended(const struct plan *p, const struct partition *x);
bool partition_is_below(const struct partition *x, const struct partition *above);

/* What a look at its rows found. */
struct partition_look {
    bool whole; /* it has rows, and every one of them is due */
    int64_t rows;
    int64_t took_us; /* to judge them all */
};
/* Whoever writes to it waits while its rows are judged under a lock: no longer than the sweep waits for
 * others. False: words say why not. */
bool partition_is_quick(const struct plan *p, const struct partition_look *l, struct text *words);

#endif
