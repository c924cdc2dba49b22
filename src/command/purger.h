/* purger: the purges of a contract, turn by turn, over a connection that stays open. One thread works
 * with it: purger_turn, wait for as long as it says, again. */
#ifndef LAPSE_COMMAND_PURGER_H
#define LAPSE_COMMAND_PURGER_H

#include "command/internal.h"
#include "purge/purging.h"

/* What became of a space in a turn. */
enum purger_kind { PURGER_IDLE, PURGER_WORKED, PURGER_REFUSED };
struct purger_space {
    const struct purge_space *space;
    enum purger_kind kind; /* WORKED: out says what was done */
    struct purging_outcome out;
    const char *refused; /* what check finds, one per line; NULL: nothing */
    bool more;           /* it has more reasons than were looked at: again soon */
    instant next;        /* when the next is due, as far as is known; INT64_MAX: nothing waits */
};
/* Of one turn; texts live in its arena. */
struct purger_turn {
    struct arena *arena;
    struct purger_space *spaces; /* of the contract, in its order; none where err says why */
    size_t n;
    struct err err;  /* the turn as a whole: no database, no tables; ERR_NONE */
    const char *fix; /* what to do about it; "": nothing */
    const char *
        *strangers; /* spaces that rows are in and the contract does not have; looked for now and then */
    size_t n_strangers;
    const char **stuck; /* in words: rows that wait for no time that comes; looked for as often */
    size_t n_stuck;
    int64_t wait_us; /* until the next turn, by the monotonic clock */
};
void purger_turn_release(struct purger_turn *t);

struct purger;
struct purger *purger_new(const struct contract *c); /* which must outlive it */
void purger_free(struct purger *p);
/* Never fails as a function. */
void purger_turn(struct purger *p, const struct purging_options *o, struct purger_turn *ret);
/* Ends the statement that is running, soon. Any thread. */
void purger_interrupt(struct purger *p);
/* How many wait, counted up to `most`; -1: that cannot be said now. By the thread that turns. */
int64_t purger_pending(struct purger *p, const struct purge_space *s, int64_t most);

/* One space once, over an open store whose own tables were looked at: what is due now is carried out. -1: the
 * database failed; e says how. */
int purger_space_turn(struct store *s, const struct contract *c, const struct purge_space *space, instant now,
                      char **after, const struct purging_options *o, struct arena *a,
                      struct purger_space *ret, struct err *e);
/* A sentence per space that has rows which will not be due, or are tried again only in an hour or later: longer than lapse
 * ever waits. */
int purger_stuck(struct store *s, const struct contract *c, instant now, struct arena *a, const char ***ret,
                 size_t *ret_n, struct err *e);
/* Spaces of rows that the contract does not know. */
int purger_strangers(struct store *s, const struct contract *c, struct arena *a, const char ***ret,
                     size_t *ret_n, struct err *e);

#endif
