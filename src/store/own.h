/* own: what lapse keeps for itself in the database: which version of its tables is there, tripped fuses,
 * brakes, leases, past runs. Plain values and the verbs a store has for them; where and how they are kept is
 * the store's affair.
 */
#ifndef LAPSE_STORE_OWN_H
#define LAPSE_STORE_OWN_H

#include "plan/plan.h"

enum { OWN_VERSION = 5 }; /* of the tables that this program knows */

/* As last looked at. */
struct own_state {
    int version;      /* 0: not installed */
    char schema[260]; /* where they are, or would be; "" where the engine has no schemas */
    char lacks[200]; /* rights this user needs for a fuse and has not: "INSERT on public.lapse_fuse"; "": none
                      */
    char lacks_lease[200];  /* the same for a lease */
    char lacks_runs[200];   /* the same for the history */
    char lacks_purges[200]; /* the same for purges */
    bool may_sweep;         /* it has some right that only a sweep needs; else it looks on, or operates */
    char hint[500];         /* what prints the rights that it should have */
};
/* The versions that brought leases, the history, purges, who did something and why. */
enum { OWN_SINCE_LEASES = 2, OWN_SINCE_RUNS = 3, OWN_SINCE_PURGES = 4, OWN_SINCE_WHO = 5 };

/* Who does something, and why, as both are kept; "": not said. From OWN_SINCE_WHO on. */
enum { WHO_SIZE = 400, REASON_SIZE = 600 };
struct deed {
    char who[WHO_SIZE]; /* "role, user@host, actor" */
    char reason[REASON_SIZE];
};
/* role: of the database, NULL: it knows nobody; actor: who $LAPSE_ACTOR says, NULL: nobody. */
void deed_set_who(struct deed *d, const char *role, const char *actor);
/* As much of a text as there is room for, in whole characters. */
void deed_copy(char *ret, size_t size, const char *text);

/* The fuse of a policy, as kept. */
struct fuse_row {
    bool there;         /* false: it never tripped, or that is settled */
    char hash[20];      /* of the policy when it tripped, or when it was acknowledged */
    int64_t rows, most; /* how many rows (at least) would have gone, how many may */
    instant tripped_at;
    bool acked; /* one run of this hash may pass the limit */
    bool used;  /* … and did: kept for who it was. Then it is not `there` */
    instant acked_at;
    struct deed by; /* who acknowledged it */
};

/* A brake in force. */
struct brake {
    const char *name; /* of a policy, a scheduler or both; "": everything */
    bool ends;
    instant until, since;
    struct deed by;
};
struct brakes {
    struct arena *arena; /* NULL: there are none */
    struct brake *list;
    size_t n;
    struct brake *released; /* those that were released last, by name: since when, by whom */
    size_t n_released;
};
void brakes_release(struct brakes *b);
/* The brake that stops this policy, the general one first; NULL: none. */
const struct brake *brakes_on(const struct brakes *b, const char *policy, const char *scheduler);
const struct brake *brakes_named(const struct brakes *b, const char *name); /* NULL: none */
/* "paused since … until … by a brake on 'x' (lapse resume x)" */
void brake_words(const struct brake *b, struct text *out);

/* "host:pid:random": for people the host and the process; what tells it from every other, also from an
 * earlier process of the same number in another container of the same name, is random. */
void own_process(char *ret, size_t size);

/* The lease of a scheduler, as kept. */
struct lease_row {
    int64_t token;   /* grows by one whenever it is taken; never used again */
    char owner[200]; /* "": it is free */
    bool ends;       /* false: its end cannot be read; it does not expire */
    instant until;
};

/* A tick of a scheduler, or the part of a sweep that concerns one, as kept in the history. */
struct run_row {
    char id[40];           /* chosen by who runs it; never used again */
    const char *scheduler; /* texts are borrowed, or live in the arena of run_rows */
    const char *source;    /* "daemon" or "sweep" */
    const char *owner;     /* "host:pid:random" */
    instant started;       /* by the database's clock */
    bool ended;            /* false: it is running, or nobody is left who could say */
    instant ended_at;
    const char *outcome; /* "running", then "done", "failed", "stopped", "budget", "paused", "fuse" … */
    int64_t rows;        /* gone, of all tables; detached ones are not gone */
    int64_t skipped, unknown, batches, errors;
    const char *error;  /* the first; NULL: none */
    const char *counts; /* JSON: rows gone by label and dependent table, as the log has them */
    /* From OWN_SINCE_WHO on; NULL: not kept. */
    const char *contract; /* the hash of its policies */
    const char *policies; /* JSON: what became of each of them, and its cutoff */
    bool has_cutoff;
    instant cutoff; /* no row that was younger went: the latest of them */
};
struct run_rows {
    struct arena *arena; /* NULL: there are none */
    struct run_row *list;
    size_t n;
};
void run_rows_release(struct run_rows *r);

/* All kept runs of a scheduler together. */
struct run_totals {
    struct arena *arena; /* NULL: there are none */
    struct run_total {
        const char *scheduler;
        int64_t runs, rows, skipped, unknown, errors;
        instant since;     /* the oldest began */
        const char *error; /* the last one; NULL: none */
        instant error_at;  /* when its run began */
    } * list;
    size_t n;
};
void run_totals_release(struct run_totals *t);

/* The lease of a scheduler beside its name, for those who look at all of them. */
struct lease_rows {
    struct arena *arena;
    struct {
        const char *scheduler;
        struct lease_row row;
        bool expired; /* by the database's clock */
    } * list;
    size_t n;
};
void lease_rows_release(struct lease_rows *l);

/* What a user must be allowed to do with a table. */
enum { NEED_SELECT = 1, NEED_DELETE = 2, NEED_UPDATE = 4, NEED_INSERT = 8 };
struct need {
    const struct table *table;
    int rights;
    const struct column **updates; /* NEED_UPDATE: of these columns only */
    size_t n_updates;
};

/* What a role is for: `sweep` runs and purges, `operate` pauses, resumes and acknowledges, `read` looks. */
enum grants_for { FOR_SWEEP, FOR_OPERATE, FOR_READ };
const char *grants_for_name(enum grants_for what); /* "sweep" */
bool grants_for_named(const char *name, enum grants_for *ret);

struct store;
/* Each runs in transactions of its own unless it says otherwise. All but look, install and print need tables
 * that are installed. */
struct own_ops {
    /* Finds the tables: sets store->own. An error: they are not what they should be, or newer than this
     * program. */
    int (*look)(struct store *s, struct err *e);
    /* Brings the tables to OWN_VERSION; any number may try at once. *ret_from: what was there. */
    int (*install)(struct store *s, int *ret_from, struct err *e);
    /* For people, after look: the statements that install would run; what a role needs for these and for
     * the given tables. Appended to out. */
    void (*print)(struct store *s, struct text *out);
    int (*print_grants)(struct store *s, const char *role, enum grants_for what, const struct need *needs,
                        size_t n, bool purges, struct text *out, struct err *e);

    int (*fuse_read)(struct store *s, const char *policy, struct fuse_row *ret, struct err *e);
    /* A fuse that has tripped with the same hash stays as it is. */
    int (*fuse_trip)(struct store *s, const char *policy, const char *hash, int64_t rows, int64_t most,
                     struct err *e);
    int (*fuse_ack)(struct store *s, const char *policy, const char *hash, const struct deed *by,
                    struct err *e);
    /* The run that was acknowledged is over: back to normal. Only this very acknowledgement is taken away. */
    int (*fuse_use)(struct store *s, const char *policy, const struct fuse_row *acked, struct err *e);

    /* The brakes in force, by the database's clock. In the open transaction, or in none. */
    int (*brakes)(struct store *s, struct brakes *ret, struct err *e);
    /* until NULL: until it is released. Both also clear away what has expired. */
    int (*brake)(struct store *s, const char *name, const instant *until, const struct deed *by,
                 struct err *e);
    int (*release)(struct store *s, const char *name, const struct deed *by, bool *ret_was_there,
                   struct err *e);

    /* Takes the lease for so long, by the database's clock, if it is free, expired or this owner's already
     * (whose answer was lost). *ret: who holds it now; the owner's own name: taken. Names compare exactly. */
    int (*lease_take)(struct store *s, const char *scheduler, const char *owner, int64_t us,
                      struct lease_row *ret, struct err *e);
    /* A write that only the current token passes, and that renews the lease. In the open transaction, as its
     * last statement before COMMIT, or else in one of its own. ERR_LEASE: it is somebody else's. A lease that
     * expired and that nobody took is still the owner's: the token alone decides. */
    int (*lease_fence)(struct store *s, const char *scheduler, const char *owner, int64_t token, int64_t us,
                       struct err *e);
    /* Free for the next one at once. A lease that is somebody else's is left alone. */
    int (*lease_drop)(struct store *s, const char *scheduler, const char *owner, int64_t token,
                      struct err *e);
    int (*leases)(struct store *s, struct lease_rows *ret, struct err *e);

    /* From OWN_SINCE_RUNS on. Writes the row of this id, new or again. */
    int (*run_put)(struct store *s, const struct run_row *row, struct err *e);
    /* The newest first, at most so many; of one scheduler, or of all (NULL). */
    int (*runs)(struct store *s, const char *scheduler, int64_t most, struct run_rows *ret, struct err *e);
    /* The newest of each scheduler; by the daemon only, or by whom ever. */
    int (*last_runs)(struct store *s, bool daemon, struct run_rows *ret, struct err *e);
    int (*run_totals)(struct store *s, struct run_totals *ret, struct err *e);
};

#endif
