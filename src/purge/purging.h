/* purging: carries out the purges of one space that are due: batches, retry, splitting, parking -> outcome.
 * Any number may work at once; each purge is executed by one of them. */
#ifndef LAPSE_PURGE_PURGING_H
#define LAPSE_PURGE_PURGING_H

#include "store/store.h"

/* A purge that was executed: its transaction is committed. */
struct purge_done {
    const struct purge_space *space;
    const struct value *instance;
    const char *reason; /* "unknown" where none was given */
    int64_t rows;       /* of its data; -1: it went with many others, and only all were counted */
};

struct purging_options {
    /* Asked before every batch and while waiting; true: stop. May be NULL. */
    bool (*stop)(void *context);
    /* After the commit, for every purge. May be NULL. */
    void (*executed)(void *context, const struct purge_done *done);
    void *context;
    /* While the database is not there: why, and for how long. May be NULL. */
    void (*waits)(void *context, const struct err *why, int64_t waited_us);
};

enum purging_kind { PURGING_DONE, PURGING_FAILED, PURGING_STOPPED, PURGING_PAUSED };
/* Of committed transactions only. */
struct purging_outcome {
    enum purging_kind kind;
    struct err err; /* why not done */
    int64_t executed, rows;
    int64_t unknown; /* purges in commits whose outcome is unknown */
    int64_t removed; /* rows that count for nothing: a reason outside `only`, or scheduled again */
    int64_t retried; /* purges that failed and are tried again later */
    int64_t parked;  /* purges that need help from now on */
    int64_t batches, retries;
    char trouble[1200]; /* the first failure of a purge, for people; "": none */
};

/* Whether anything is due now, and when the next is, as far as is known (INT64_MAX: nothing waits). Costs
 * next to nothing, however many wait. */
struct purging_look {
    struct purge_groups groups;
    bool due;
    instant next;
};
void purging_look_release(struct purging_look *l);
int purging_look(struct store *s, const struct purge_space *space, instant now, const char *after,
                 struct purging_look *ret, struct err *e);

/* Carries out what is due of these groups. Never fails as a function: what went wrong is in the outcome. */
void purging_run(struct store *s, const struct purge_plan *p, const struct purge_groups *groups, instant now,
                 const struct purging_options *o, struct purging_outcome *ret);

/* -1 with ERR_PAUSED: the brake on everything is on, so nothing would be carried out. Only reads. */
int purging_brake(struct store *s, struct err *e);

/* Whether purges cannot be had here: why is appended, and what to do. own->look has been called. */
bool purging_obstacle(const struct store *s, struct text *why, const char **ret_fix);

#endif
