/* One run of a plan, and what the files of sweep lend each other. Private to sweep. */
#ifndef LAPSE_SWEEP_INTERNAL_H
#define LAPSE_SWEEP_INTERNAL_H

#include <pthread.h>

#include "sweep/sweep.h"

enum {
    TRIES = 8,            /* of one transaction before it is split */
    TRIES_SPLIT = 2,      /* … once it is being split */
    LOCKED_MOST = 5,      /* rows in a row that a lock kept: then it is no row's lock, but the table's */
    LEFT_MOST = 1000,     /* how far rows that stayed are counted */
    LOOKS_AFTER_LOSS = 4, /* at rows that the session of a broken connection may still hold */
};
/* Where the rows of the current slice come from. */
enum source { FROM_CURSOR, FROM_PUT_OFF, FROM_HEAVY };

/* What the connections that sweep one policy at once share: the outcome, and this. Behind one lock, which
 * nobody holds while the database is asked. */
struct team {
    pthread_mutex_t lock;
    pthread_cond_t changed;        /* whatever another may wait for */
    bool over;                     /* one of them ended the run: no further batch */
    bool turned;                   /* a batch went by, with or without rows */
    bool tripping;                 /* one of them writes the fuse */
    enum err_kind used_up;         /* ERR_BUDGET, ERR_WINDOW: no further batch */
    const char *used_up_why;       /* "budget.rows" */
    int64_t batches_open;          /* set aside of the budget for batches under way … */
    int64_t rows_claimed;          /* … and rows for them */
    int64_t rows_ending;           /* rows of batches that are about to commit, for the limits */
    struct pacer pacer;            /* how hard all of them together may push … */
    struct pacer ahead;            /* … where rows go ahead of what owns them */
    bool looking;                  /* one of them looks how others fare */
    bool cutting;                  /* one of them looks where the next part ends */
    bool walked;                   /* all parts are given out */
    struct cursor frontier;        /* where the next part begins */
    bool by_pieces;                /* partition by partition: … */
    size_t left_pieces;            /* … so many were left to the second look … */
    const struct plan *left_piece; /* … the last of them … */
    size_t next_piece;             /* … which comes after … */
    const struct plan *piece; /* … the one that parts are cut of; NULL: none yet, or all of it is given out */
    struct arena *arena;      /* … their plans; NULL: none so far */
    struct rows finds;        /* plans that examine: what the last reading found … */
    size_t taken;             /* … how many of it were given out … */
    bool last_finds;          /* … and there is nothing beyond */
};
/* Transactions that may have committed, or may be undone: what went in each, and some of its rows. */
struct doubts {
    struct doubt {
        struct slice went;
        const struct plan *plan; /* of the whole, or of a partition */
        bool counted;            /* as a batch */
    } * list;
    size_t n;
};
struct run {
    struct store *store;
    const struct plan *plan; /* of the whole, or of the partition that its part is in */
    const struct plan *whole;
    const struct sweep_options *options;
    struct outcome *out; /* of all connections: behind the team's lock */
    struct team *team;
    struct lease *lease; /* as this connection holds it; NULL: none */
    bool claims;         /* a batch is under way: it has set aside … */
    int64_t claimed;     /* … so many rows of the budget */
    int64_t ending;      /* … and so many of the limits */
    int64_t needs;       /* rows that go together, for which the budget must have room; 0: any */
    struct cursor cursor;
    struct cursor upto;  /* where its part ends; not set: nowhere */
    struct rows finds;   /* plans that examine: what the last reading found … */
    size_t taken;        /* … how many of it were had */
    size_t trying;       /* … and how many are in the current slice */
    bool last_finds;     /* … and there is nothing beyond */
    enum source source;  /* plans with `splits`: of the current slice … */
    struct rows put_off; /* … roots that did not fit beside others … */
    struct rows heavy;   /* … roots that own too much … */
    size_t put_off_taken, heavy_taken;
    int64_t split_most; /* … rows of split nodes that may go in one transaction, for all that failed … */
    bool walked;        /* … the cursor has passed all others of its part … */
    bool heavy_now;     /* … and of all parts */
    int64_t missed;     /* finds that could not be locked or had changed */
    int64_t last_look;  /* rows that went in the last look */
    int64_t taken_now;  /* rows that went since this way began … */
    int64_t look_at;    /* … of which so many, it is looked how many are ahead: … */
    int64_t ahead;      /* … fewer than this; 0: it is not known … */
    int64_t ahead_at;   /* … when so many had gone */
    int64_t most;       /* rows of the next slice */
    int64_t batch;      /* rows a slice may have */
    int tries;          /* failed tries of the current transaction */
    int turns;          /* … and how often it was another's turn before it began */
    int locked;         /* rows skipped for a lock since one last went */
    bool lost;          /* a connection broke */
    struct doubts unsure;   /* what this connection committed and a crash of the server may undo … */
    int64_t lives;          /* … of which it had had so many then */
    int64_t syncs;          /* … and which was made sure so often before */
    struct doubts doubts;   /* of which it is not known whether it is gone: to be looked up … */
    bool back;              /* … and some of it was there */
    struct fuse fuse;       /* policies with limits */
    int64_t most_gone;      /* rows of its own table that the run may delete */
    int64_t looked_for_own; /* when lapse's own tables were last looked for */
    int64_t started, batch_started;
    bool said_begins;
    int64_t begun; /* the transaction of the current batch, when it was open */
    bool finished;
};

/* sweep.c: one part of the way. Once, before the first transaction that may delete something. */
void run_pass_in_batches(struct run *r);
/* What was put off until all others are gone. */
void run_work_off(struct run *r);
void run_say_begins(struct run *r);
void run_forget_finds(struct run *r);
void run_turned(struct run *r); /* a batch went by, or time */
void run_report_progress(struct run *r, const struct slice *committed);

/* rounds.c: whether rows come as fast as they go. */
void run_begin_rounds(struct run *r);
void run_heed_rounds(struct run *r); /* after each slice; it may end the run */

/* partitions.c: drops those that are wholly due, before the connections share the rest. */
void run_partitions(struct run *r);

/* pieces.c: partitions one by one, in the first pass; the second look is at the whole. While a part is
 * cut: team->piece is the plan of the partition it is to be of; false: there is none any more. */
void run_begin_pieces(struct run *r);
bool run_next_piece(struct run *r);
/* An error that a partition alone may have: it was dropped, detached, made another. It is left to the second
 * look, which meets the error again if it is the whole's. */
bool run_leaves_piece(struct run *r, int64_t picked, const struct err *e);

/* team.c: several connections. */
void team_init(struct team *t);
void team_release(struct team *t);
void team_lock(const struct run *r);
void team_unlock(const struct run *r);
/* Whether another ended the run. */
bool team_is_over(const struct run *r);
/* The whole way, in parts, by as many connections as the policy has workers. */
void team_pass(struct run *r);

/* recover.c: how it ends, waits, and goes on after an error. */
bool run_asked_to_stop(const struct run *r);
void run_end(struct run *r, enum outcome_kind kind, const struct err *e);
void run_stop(struct run *r);
void run_wait_for(const struct run *r, int tries);
void run_wait_us(const struct run *r, int64_t us);
bool run_reconnected(struct run *r, struct err *e);
/* What is reported as gone stays gone; what a crash may have brought back is not reported as gone. */
void run_make_sure(struct run *r);
/* A batch was committed: whether it is sure; or that is not known. Behind the team's lock. */
void run_note_commit(struct run *r, const struct slice *committed);
void run_note_doubt(struct run *r, const struct slice *unknown);
/* Looks rows up of which it is not known whether they are gone: then they count, or are found again. Between
 * transactions. */
void run_look_up(struct run *r);
void run_release_doubts(struct run *r);
/* Past the rows of this slice. */
void run_move_on(struct run *r, const struct slice *s);
/* Half of what was tried; a row that was alone is skipped. Nothing picked: not a row's fault, the policy
 * fails. */
void run_split_or_skip(struct run *r, const struct slice *s, const struct err *e);
void run_skip_row(struct run *r, const struct slice *s, const struct err *e);
void run_recover(struct run *r, const struct slice *s, struct err *e);
void run_drop_skipped(struct outcome *o, size_t from);

/* pacing.c: how hard it pushes. */
/* Before a transaction: waits as long as the pacer says, looking at the database meanwhile. It may end the
 * run. */
void run_keep_pace(struct run *r);
/* The last word of it. */
void run_end_pace(struct run *r);
void run_tell_pace(struct run *r, const struct slice *committed, int64_t asked);
int64_t run_pace_rows(const struct run *r);                                 /* of the next batch */
void run_say_away(struct run *r, const struct err *why, int64_t waited_us); /* it waits for the database */
void run_tell_lock(struct run *r); /* a transaction was rolled back for a lock or a conflict */

/* limits.c: what it may do. */
/* -1 with ERR_PAUSED: a brake is on. Asked in every batch, so that one that is set now works now. */
int run_no_brake(struct run *r, struct err *e);
int run_look_for_own(struct run *r, struct err *e);
/* The fence: nothing but COMMIT may follow. After a batch that committed nothing, and so renewed nothing. */
int run_pass_fence(struct run *r, struct err *e);
int run_keep_lease(struct run *r, struct err *e);
/* Rows that may be gone after a commit without an answer count as gone. */
int64_t run_gone_before(const struct run *r);
/* -1 with ERR_FUSE: with these rows the run would pass its limit; it is told what tripped it. */
int run_within_limits(struct run *r, int64_t rows, struct err *e);
void run_trip(struct run *r, const struct slice *s, const struct err *e);
/* Rows that may still go; `open`: rows that went in the open transaction. Whether no further slice may begin.
 * -1 with ERR_BUDGET: rows below the picked ones, in the same table, would pass the budget. */
int64_t run_rows_in_budget(const struct run *r, int64_t open);
bool run_used_up(struct run *r, int64_t open);
int run_within_budget(struct run *r, const struct slice *s, int64_t open, struct err *e);
/* Sets aside a batch and its rows of what is left of the budget; waits while others have set aside the last
 * of it, since some of that may come back. False: used up, or the run is over. */
bool run_claim(struct run *r);
/* What was set aside becomes what went, what may have gone, or comes back. */
void run_settle(struct run *r, const struct slice *committed, const struct slice *unknown);
void run_cut_to_budget(struct run *r, const struct slice *s, const struct err *e);

/* split.c: rows that own more than goes in one transaction. Chooses where the next slice comes from;
 * false: there is none any more. */
bool run_choose_source(struct run *r);
/* A slice of what was put off; then, once it is committed, what it put off, and how the next one is; or past
 * it. */
int run_take_put_off(struct run *r, int64_t most, struct slice *s, struct err *e);
void run_note_put_off(struct run *r, const struct slice *s);
void run_pass_put_off(struct run *r, const struct slice *s);
/* How many rows of split nodes may go in the next slice. Whether fewer may do; then they are fewer from now
 * on. */
int64_t run_split_most(const struct run *r);
bool run_fewer_ahead(struct run *r);
void run_forget_put_off(struct run *r);
/* A row that took too long with what it owns: says so, in words that help, instead of the database's alone.
 * False: it owns nothing. */
bool run_too_heavy(struct run *r, const struct slice *s, struct err *e);

#endif
