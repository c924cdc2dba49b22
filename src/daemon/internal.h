/* What the files of the daemon share. Private to daemon.
 *
 * One thread, the loop, decides when something happens; a thread per scheduler does it. What they share is
 * behind one mutex, d->lock, which nobody holds while a database or a file is asked; contracts are shared
 * without it, because nobody writes to one. */
#ifndef LAPSE_DAEMON_INTERNAL_H
#define LAPSE_DAEMON_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "schedule/beat.h"
#include "watch/gauge.h"
#include "command/tick.h"
#include "watch/meter.h"
#include "base/thread.h"
#include "watch/trouble.h"

/* A contract in force, as long as anybody works under it. */
struct terms {
    struct contract *contract;
    atomic_uint users;
};
struct terms *terms_new(struct contract *c); /* owns it; one user */
struct terms *terms_take(struct terms *t);
void terms_drop(struct terms *t);
/* Where a scheduler stands: in the contract, or in what bounds lapse's own tables. */
const struct contract *terms_part(const struct terms *t, const char *scheduler);

/* How the last tick of a scheduler ended. */
struct last_tick {
    bool there;
    instant started;
    int64_t duration_us, rows;
    const char *outcome; /* a constant */
    bool lost;           /* the database was not there */
    instant again;       /* when the lease that another holds may be free; NEVER: this is not waited for */
};

/* A scheduler at work: its beat, which the loop turns, and its thread. */
struct worker {
    struct lapse_daemon *daemon;
    char *name;
    pthread_t thread;

    /* The loop's; changed under the lock, so that others may read them. */
    struct terms *terms;
    const struct scheduler *scheduler; /* of these terms */
    struct ticker *ticker;
    struct beat beat;
    bool begun; /* the beat; before, nothing is due */
    bool ran;   /* once, at ran_at, as far as is known */
    instant ran_at;

    /* Orders, under the lock; wake says that there is one. */
    pthread_cond_t wake;
    bool tick, rest, leave;
    instant until;            /* of the tick */
    struct terms *terms_next; /* to be worked under from the next tick on; NULL: as before */

    /* What came of them, under the lock. */
    bool finished; /* a tick ended, and the loop has not seen it yet */
    bool left;     /* the thread is about to end */
    bool leads;
    struct last_tick last;
    int64_t errors;
    char *error; /* that lasts; NULL: none */
    instant error_since;

    /* The thread's own. */
    struct terms *held; /* what hand works under */
    struct troubles *troubles;
    char *said_lease, *said_brake, *said_remarks; /* who holds the lease, what is paused …, as last said */
    bool away;                  /* it waits for a database that is not there. Behind the lock */
    const struct policy *paced; /* of which said_pace is, in this tick */
    struct outcome_pace said_pace;
    struct hand *hand; /* comes and goes under the lock, for worker_interrupt */
};

/* What became of a policy, for those who ask. */
struct policy_state {
    bool ran;
    enum outcome_kind outcome;
    instant at;
    int64_t rows, rows_total; /* gone with the last tick, and since the start */
    int64_t due;              /* with --observe; -1: not counted */
    char *error;              /* NULL: none */
    struct outcome_pace pace; /* of the tick that runs; nothing between ticks */
};

/* What is asked of the database before the first tick: own tables, last runs. A thread of its own, because
 * the database may take its time. */
struct prepare {
    pthread_t thread;
    bool running; /* the thread is there, to be joined */
    struct terms *terms;
    bool first; /* the daemon starts: what fails ends it */

    /* Under the lock. */
    pthread_cond_t wake;
    bool stop;
    bool again;     /* for other terms, once this is done */
    bool may_begin; /* nothing has to be waited for any more */
    bool done;
    bool unreachable; /* at the last try */
    int exit;         /* not 0: the daemon must end */
    struct run_rows runs;
    bool runs_new; /* not looked at by the loop yet */
};

/* What a side thread does. work lives from open to close, under one contract; open has the lock, turn and
 * close have not. */
struct side_kind {
    const char *without; /* what it means where the thread cannot be */
    void *(*open)(struct lapse_daemon *d, const struct contract *c);
    /* How long nothing is to be done, in us; *ret_lost: the database was not there. */
    int64_t (*turn)(void *work, bool *ret_lost);
    void (*close)(void *work);
    void (*interrupt)(void *work); /* ends the turn that is running, soon; any thread */
};
extern const struct side_kind side_gauge, side_purges, side_notices;
struct side {
    struct lapse_daemon *daemon;
    const struct side_kind *kind;
    pthread_t thread;
    bool running; /* to be joined */

    /* Under the lock. */
    pthread_cond_t wake;
    bool stop, done;
    struct terms *terms; /* to be worked under next; NULL: as before */
    bool asked;          /* for a turn before its time */
    void *work;          /* NULL: none now */
    bool lost;           /* the database was not there at the last turn */
};

/* A file that is watched. */
struct watch {
    int fd; /* inotify; -1: none */
    struct fingerprint {
        bool there;
        uint64_t device, inode, size;
        int64_t changed_ns, modified_ns;
    } loaded, seen;
    int64_t settles_us; /* by the monotonic clock; 0: nothing changed */
};

struct lapse_daemon {
    struct lapse_daemon_options options;
    char *file;
    char owner[200]; /* for the history */
    struct meter *meter;
    pthread_mutex_t log_lock;

    int wake_fd, timer_fd;
    atomic_uint asked;           /* a bit per enum lapse_request */
    atomic_bool stopping;        /* seen by every tick before its next batch */
    atomic_int_least64_t turned; /* when the loop last did, by the monotonic clock */

    pthread_mutex_t lock;
    struct terms *terms; /* in force */
    unsigned long generation;
    instant started, loaded_at;
    struct worker **workers;
    size_t n_workers;
    struct policy_state *states; /* per policy of terms, then of lapse's own */
    char *refused;               /* why the last reload was; NULL: it was not */
    bool running;
    struct prepare prepare;
    struct side gauge, purges, notices;

    /* The loop's own. */
    struct watch watch;
    struct clocks seen;
    int64_t told_us;    /* when LAPSE_ALIVE was last said */
    int64_t give_up_us; /* waiting for the end, by the monotonic clock; 0: it takes as long as it takes */
    bool abandoned;     /* threads were left behind: nothing of this may be freed */

    bool asking; /* a question to the history, one at a time; under the lock */
    pthread_cond_t answered;
};

/* log.c */
event_say daemon_say_lent;
void daemon_say(struct lapse_daemon *d, struct event *ev); /* frees it */
void daemon_remark(struct lapse_daemon *d, enum event_level level, const char *format, ...) PRINTF(3, 4);

/* daemon.c */
void daemon_wake(struct lapse_daemon *d);
uint64_t daemon_chance(void);
struct clocks daemon_clocks(void);

/* worker.c */
void daemon_cond_init(pthread_cond_t *c);
/* Of a cond_init. The lock is held. */
void daemon_cond_wait(pthread_cond_t *c, pthread_mutex_t *lock, int64_t us);
/* The rest is the loop's, with the lock held. */
/* A worker that waits for orders. NULL: there is no thread to be had. */
struct worker *worker_start(struct lapse_daemon *d, struct terms *t, const struct scheduler *s);
void worker_show_next(struct worker *w); /* to the metrics */
void worker_order_tick(struct worker *w, instant until);
void worker_order_rest(struct worker *w);
void worker_order_terms(struct worker *w, struct terms *t);
void worker_order_leave(struct worker *w);
void worker_free(struct worker *w); /* whose thread was joined */
void worker_interrupt(struct worker *w);

/* tell.c: what a tick's report means to everybody; in the worker's thread. */
void tell_tick(struct worker *w, const struct report *r, instant started);
void tell_lease(struct worker *w);
/* What is known of a policy of the terms in force; NULL: there is no such one. The lock is held. */
struct policy_state *policy_state(struct lapse_daemon *d, const char *name);
void states_free(struct lapse_daemon *d);

/* pace.c: the same of the pace of a sweep, while it runs. */
void tell_pace(struct worker *w, const struct policy *of, const struct outcome_pace *p);
void tell_pace_begins(struct worker *w); /* a tick */

/* reload.c */
int terms_load(const char *file, struct terms **ret, struct mistakes *m, struct err *e);
/* Puts everybody to work under these terms, instead of those in force (which they may be: the start); they
 * are the daemon's then. -1: nothing has changed. */
int terms_enforce(struct lapse_daemon *d, struct terms *t, struct err *e);
void daemon_reload(struct lapse_daemon *d);
size_t terms_policies(const struct terms *t); /* with lapse's own … */
const struct policy *terms_policy(const struct terms *t, size_t i);
const struct scheduler *scheduler_named(const struct contract *c, const char *name); /* NULL: none */

/* changes.c: what a contract says that another did not, in words: "policy sessions: changed". */
struct changes {
    struct arena *arena;
    const char **list;
    size_t n;
};
void changes_find(const struct contract *from, const struct contract *to, struct changes *ret);
void changes_release(struct changes *c);
bool same_store(const struct contract *a, const struct contract *b);
bool scheduler_times_same(const struct scheduler *a, const struct scheduler *b);

/* prepare.c */
int prepare_start(struct lapse_daemon *d, bool first, struct err *e);
void prepare_stop(struct lapse_daemon *d);  /* asks it to end; the lock is held */
void prepare_again(struct lapse_daemon *d); /* for the terms in force; the lock is held */
void prepare_join(struct lapse_daemon *d);

/* side.c: the loop's; orders and interruptions with the lock held, a start, after side_order_terms,
 * and a join without it. */
void side_init(struct side *s, struct lapse_daemon *d, const struct side_kind *kind);
void side_start(struct side *s);
void side_order_terms(struct side *s, struct terms *t);
void side_order_stop(struct side *s);
void side_ask(struct side *s); /* for a turn now, or another after this one */
void side_interrupt(struct side *s);
bool side_is_over(const struct side *s);
void side_join(struct side *s);

/* stop.c: the loop's. */
void stop_begin(struct lapse_daemon *d);
void stop_at_once(struct lapse_daemon *d);
int64_t stop_wait_us(const struct lapse_daemon *d, int64_t most_us);
bool stop_is_over(struct lapse_daemon *d);
enum lapse_exit stop_end(struct lapse_daemon *d);

/* watch.c */
void watch_open(struct watch *w, const char *file);
void watch_close(struct watch *w);
void watch_loaded(struct watch *w, const char *file); /* as it is now, it is about to be read */
/* Whether it has changed and settled; *ret_wait_us: when to ask again, at most what it was. */
bool watch_changed(struct watch *w, const char *file, int64_t *ret_wait_us);

#endif
