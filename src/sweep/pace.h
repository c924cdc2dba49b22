/* pace: how hard a sweep may push. After every batch it hears how that one went, now and then what the
 * database says of those who work beside the sweep or follow it; it answers how many rows the next batch may
 * have, how long to wait before it, and why. Pure: told the clock (a monotonic one, in us). */
#ifndef LAPSE_SWEEP_PACE_H
#define LAPSE_SWEEP_PACE_H

#include "store/store.h"

/* What holds it back. Those up to PACE_LOCKS make batches smaller, the others make it wait. */
enum pace_reason {
    PACE_FREE,            /* nothing does */
    PACE_TARGET,          /* transactions would take longer than they should */
    PACE_LOCKS,           /* locks of others, conflicts */
    PACE_WRITERS,         /* others write: smaller batches, and pauses between them */
    PACE_PROBE,           /* a pause to see whether others write */
    PACE_LATENCY,         /* the same work takes much longer than it did */
    PACE_ROWS_PER_SECOND, /* the contract's */
    PACE_DUTY,            /* the contract's */
    PACE_SNAPSHOT,        /* a very old snapshot: what is deleted now cannot be cleaned up */
    PACE_FLOW_CONTROL,    /* a cluster that holds its writers up */
    PACE_LAG,             /* a replica is behind, or it is not known whether one is */
    PACE_AWAY,            /* the database is not there. No pacer says that: who works with it does */
    N_PACE_REASONS
};
/* "", "target", "locks", "writers", "probe", "latency", "rows_per_second", "duty", "snapshot",
 * "flow_control", "lag", "away" */
const char *pace_reason_name(enum pace_reason r);

/* A committed batch. */
struct pace_batch {
    int64_t asked;    /* rows it was allowed */
    int64_t rows;     /* rows of the policy's own table that it had */
    int64_t rows_all; /* … and all that went */
    int64_t us;       /* its transaction took */
};

/* What a transaction takes: a_us of its own, and b_us for each row of the policy's table. Least squares over
 * recent batches, of which older ones count less and less. */
struct pace_fit {
    double weight, x, y, xx, xy; /* sums over batches: of 1, rows, us, rows², rows·us */
    double a_us, b_us;
    bool known;               /* there were batches of different sizes: a and b can be told apart */
    int n;                    /* batches, up to a few */
    int64_t odd_rows, odd_us; /* the last one, where it was far from what was expected; else 0 */
};

enum {
    PACE_FIT_EXPECTS = 4, /* batches, until it is known what to expect */
    PACE_SIZES = 24,      /* powers of two, by which batches are compared */
    PACE_POSITIONS = 64,  /* of the log, remembered to tell a replica's delay by */
};
/* What it knows. Its fields are its own. */
struct pacer {
    int64_t batch; /* never more rows */
    bool whole;    /* batch: null: one transaction, of whatever size */
    bool own_target, own_duty, own_lag;
    int64_t target_us;
    double duty, rows_per_second; /* <= 0: not set */
    int64_t lag_us, lag_bytes;    /* INT64_MAX: not set */

    int64_t rows; /* of the next batch */
    bool doubling;
    enum pace_reason size_reason;
    struct pace_fit fit;
    int locked; /* batches, until locks that were met are forgotten */
    struct {
        double us_per_row;
        int n;
    } usual[PACE_SIZES]; /* all rows, by the size of the batch */
    double slower;       /* how many times longer than usual it takes now */

    int64_t seen_us;  /* the clock, as last told */
    int64_t until_us; /* no transaction before */
    enum pace_reason wait_reason;
    int64_t probed_us; /* when others were last left room, to see whether there are any */
    double paid_us;    /* until when rows_per_second is used up */
    bool partial;      /* the last batch was not full: there may be no more rows */
    bool passed;       /* … and the next one was let through to see */

    struct pressure heard;
    bool has_heard, deaf;
    char deaf_why[PRESSURE_TEXT];
    int64_t looked_us, look_took_us;
    bool looked;
    double others;      /* what they write in a second */
    bool beside;        /* others write now … */
    double fixed;       /* … the part of a short transaction that is not for its rows … */
    bool dear;          /* … which is much */
    double held_up;     /* share of the time in which a cluster held writers up */
    int64_t lag_now_us; /* of the replica furthest behind */
    int64_t missing_us; /* when a replica was missed; 0: none is */
    int64_t most_replicas;
    struct {
        int64_t us, written;
    } positions[PACE_POSITIONS];
    size_t n_positions;
};
void pacer_init(struct pacer *p, const struct policy *policy, int64_t now_us);

/* Adds a batch; the rows at which they cost as much as the transaction itself: with fewer, most of the time
 * is not for rows. At least 1; INT64_MAX: rows cost nothing that can be seen. Of its own only where sizes
 * differed, else 1. */
void pace_fit_add(struct pace_fit *f, int64_t rows, int64_t us);
int64_t pace_fit_even(const struct pace_fit *f);

/* How many rows the next batch may have: at least 1, never more than the policy's batch. */
int64_t pacer_rows(const struct pacer *p);
void pacer_batch(struct pacer *p, const struct pace_batch *b, int64_t now_us);
/* A transaction was rolled back for a lock or a conflict, and is tried again. */
void pacer_locked(struct pacer *p);

/* Whether it is time to look at the database (store_ops.pressure); then what it said, and how long that
 * took. Or that it could not be asked: why. */
bool pacer_wants_look(const struct pacer *p, int64_t now_us);
void pacer_heard(struct pacer *p, const struct pressure *said, int64_t now_us, int64_t took_us);
void pacer_deaf(struct pacer *p, const char *why, int64_t now_us, int64_t took_us);

/* How long to wait before the next transaction; 0: it may begin. Ask again afterwards: a wait for others has
 * no end of its own, and is given in pieces. */
struct pace_wait {
    int64_t us;
    enum pace_reason reason;
};
struct pace_wait pacer_wait(struct pacer *p, int64_t now_us);

/* What holds it back now, and in words for people: "a replica ('east') is 132 MB behind". */
enum pace_reason pacer_reason(const struct pacer *p);
void pacer_words(const struct pacer *p, enum pace_reason r, struct text *out);

#endif
