/* fuse: whether a run may delete as much as it would: a policy's `limits` against what is due, and what is
 * kept of an earlier trip. */
#ifndef LAPSE_GUARD_FUSE_H
#define LAPSE_GUARD_FUSE_H

#include "contract/policy_hash.h"
#include "store/store.h"

enum fuse_verdict {
    FUSE_HOLDS,      /* no more is due than a run may delete */
    FUSE_WOULD_TRIP, /* more is due: a run now would trip it */
    FUSE_TRIPPED,    /* it has, for the policy as it is: nothing runs */
    FUSE_ACKED,      /* it had, and the next run may pass the limit */
};
const char *fuse_verdict_name(enum fuse_verdict v); /* "holds", "would_trip", "tripped", "acknowledged" */

struct fuse {
    enum fuse_verdict verdict;
    char hash[POLICY_HASH_SIZE]; /* of the policy as it is */
    int64_t most;                /* rows of its own table that a run may delete */
    int64_t due;                 /* such rows that would go now */
    bool at_least;               /* counting stopped there: there may be more */
    struct fuse_row stored;
};

/* How many rows one run may delete of a table that has so many. */
int64_t fuse_most(const struct limits *l, int64_t table_rows);
/* due: how many rows would go, if that is known; -1: they are counted, no further than needed. The policy has
 * limits, and lapse's own tables are installed. */
int fuse_judge(struct store *s, const struct plan *p, int64_t due, struct fuse *ret, struct err *e);
/* Keeps that a run would have deleted so many rows. */
int fuse_trip(struct store *s, const struct plan *p, const struct fuse *f, int64_t rows, struct err *e);
/* A run that was acknowledged has done its work. */
int fuse_use(struct store *s, const struct plan *p, const struct fuse *f, struct err *e);
/* What there is to say of it, and what to do; nothing where it holds. */
void fuse_words(const struct plan *p, const struct fuse *f, struct text *out);

#endif
