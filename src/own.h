/* own: what lapse keeps for itself in the database: which version of its tables is there, tripped fuses,
 * brakes. Plain values and the verbs a store has for them; where and how they are kept is the store's affair.
 */
#ifndef LAPSE_OWN_H
#define LAPSE_OWN_H

#include "plan.h"

enum { OWN_VERSION = 1 }; /* of the tables that this program knows */

/* As last looked at. */
struct own_state {
    int version;      /* 0: not installed */
    char schema[260]; /* where they are, or would be; "" where the engine has no schemas */
    char lacks[200]; /* rights this user needs for a fuse and has not: "INSERT on public.lapse_fuse"; "": none
                      */
};

/* The fuse of a policy, as kept. */
struct fuse_row {
    bool there;         /* false: it never tripped, or that is settled */
    char hash[20];      /* of the policy when it tripped, or when it was acknowledged */
    int64_t rows, most; /* how many rows (at least) would have gone, how many may */
    instant tripped_at;
    bool acked; /* one run of this hash may pass the limit */
    instant acked_at;
};

/* A brake in force. */
struct brake {
    const char *name; /* of a policy, a scheduler or both; "": everything */
    bool ends;
    instant until, since;
};
struct brakes {
    struct arena *arena; /* NULL: there are none */
    struct brake *list;
    size_t n;
};
void brakes_release(struct brakes *b);
/* The brake that stops this policy, the general one first; NULL: none. */
const struct brake *brakes_on(const struct brakes *b, const char *policy, const char *scheduler);
const struct brake *brakes_named(const struct brakes *b, const char *name); /* NULL: none */
/* "paused since … until … by a brake on 'x' (lapse resume x)" */
void brake_words(const struct brake *b, struct text *out);

/* What a user must be allowed to do with a table. */
enum { NEED_SELECT = 1, NEED_DELETE = 2, NEED_UPDATE = 4, NEED_INSERT = 8 };
struct need {
    const struct table *table;
    int rights;
    const struct column **updates; /* NEED_UPDATE: of these columns only */
    size_t n_updates;
};

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
    int (*print_grants)(struct store *s, const char *role, const struct need *needs, size_t n,
                        struct text *out, struct err *e);

    int (*fuse_read)(struct store *s, const char *policy, struct fuse_row *ret, struct err *e);
    /* A fuse that has tripped with the same hash stays as it is. */
    int (*fuse_trip)(struct store *s, const char *policy, const char *hash, int64_t rows, int64_t most,
                     struct err *e);
    int (*fuse_ack)(struct store *s, const char *policy, const char *hash, struct err *e);
    /* The run that was acknowledged is over: back to normal. Only this very acknowledgement is taken away. */
    int (*fuse_use)(struct store *s, const char *policy, const struct fuse_row *acked, struct err *e);

    /* The brakes in force, by the database's clock. In the open transaction, or in none. */
    int (*brakes)(struct store *s, struct brakes *ret, struct err *e);
    /* until NULL: until it is released. Both also clear away what has expired. */
    int (*brake)(struct store *s, const char *name, const instant *until, struct err *e);
    int (*release)(struct store *s, const char *name, bool *ret_was_there, struct err *e);
};

#endif
