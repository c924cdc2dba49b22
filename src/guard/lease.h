/* lease: one sweeper at a time for an exclusive scheduler: a row in the database with an owner, an end by the
 * database's clock and a token. Whoever finds it free or expired takes it with the next token, and every
 * batch ends with a write that only the current token passes: one that slept past its lease deletes nothing
 * when it wakes. */
#ifndef LAPSE_GUARD_LEASE_H
#define LAPSE_GUARD_LEASE_H

#include "store/store.h"

struct lease {
    struct store *store;
    const char *scheduler; /* borrowed */
    int64_t us;            /* how long it lasts */
    bool held;             /* as far as is known here; the fence knows */
    int64_t renewed_us;    /* by the monotonic clock */
    struct lease_row row;  /* who holds it, or held it when it was asked for */
    char owner[200];       /* us: "host:pid:random" */
};
/* Nothing is asked of the database yet. */
void lease_init(struct lease *l, struct store *s, const char *scheduler, int64_t us);
/* Why leases cannot be had here, and what to do; "": they can. own->look has been called. */
const char *lease_obstacle(const struct store *s, const char **ret_fix);

/* Takes it, or keeps what is held; takes it again where it was lost meanwhile and is free now. ERR_HELD: row
 * says who holds it, and until when. */
int lease_take(struct lease *l, struct err *e);
/* In a pause of the work: renews it when a good part of it is over. ERR_LEASE: lost. */
int lease_keep(struct lease *l, struct err *e);
/* How long lease_keep may wait; INT64_MAX: it is not held. */
int64_t lease_rest_us(const struct lease *l);
/* The last statement of a transaction before COMMIT; renews it. ERR_LEASE: lost, roll back. */
int lease_fence(struct lease *l, struct err *e);
/* A copy was held over another connection, too: what became of it there. */
void lease_unite(struct lease *l, const struct lease *copy);
/* Hands it over at once. Nothing to do where it is not held. */
int lease_drop(struct lease *l, struct err *e);

#endif
