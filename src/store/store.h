/* store: the adapter seam. A store is asked to inspect, to count and to erase slices of plans; it is never
 * handed SQL. One ops struct per engine; what differs between engines stays behind it. */
#ifndef LAPSE_STORE_H
#define LAPSE_STORE_H

#include <stdatomic.h>

#include "store/keyed.h"
#include "store/own.h"
#include "plan/partitions.h"
#include "plan/purges.h"

/* Whole numbers as stretches without a gap, first to last, in order. */
struct runs {
    size_t column, n;
    int64_t *first, *last;
};

/* Rows read, as they came. Texts live in the arena. PostgreSQL gives text and NULL only. */
struct rows {
    struct arena *arena;
    size_t n_columns, n_rows;
    struct value *cells; /* row by row */
    struct text *sent;   /* per part and column, as an engine sends all of it; NULL: not made */
    struct runs *runs;   /* of the column that was asked for last. A change forgets both */
};
/* What of a column is sent: each value; or of its runs the first numbers, or the last. */
enum rows_part { ROWS_EACH, ROWS_FIRSTS, ROWS_LASTS, N_ROWS_PARTS };
void rows_release(struct rows *r);
void rows_push(struct rows *r, const struct value *cells); /* copies texts; n_columns must be set */
/* Room for so many rows at once, to be filled by the caller, whose texts take so many bytes: which are
 * returned. r must be empty. */
char *rows_make(struct rows *r, size_t n_columns, size_t n_rows, size_t bytes);
const struct value *rows_at(const struct rows *r, size_t row);
/* The column's values as runs. NULL: they are no whole numbers, given as this kind of value, or so many runs
 * that it is not worth while. */
const struct runs *rows_runs(struct rows *r, size_t column, enum value_kind given_as);

/* A value as people read it: NULL, 42, 1.5, text as it is, x'00ff'. */
void value_print(const struct value *v, struct text *out);

/* Where the next slice begins: after these values of plan->order. {0} is the start. Owned by the caller. */
struct cursor {
    bool set;
    struct value *values; /* plan->n_order of them; the bytes of texts are owned too */
    size_t n;
};
void cursor_release(struct cursor *c);
void cursor_copy(struct cursor *to, const struct cursor *from);
void cursor_set(struct cursor *c, const struct value *values, size_t n); /* copies; frees what was there */
bool cursor_same(const struct cursor *a, const struct cursor *b);
bool value_same(const struct value *a, const struct value *b); /* byte by byte; NULL is NULL */

/* The rows beyond `after`, up to and with `upto`, in the plan's order. Not set, or NULL: from the first, to
 * the last. */
struct stretch {
    const struct cursor *after, *upto;
    const struct value *first; /* only rows with this value in the order's first column; NULL: with any */
};

/* What one slice did inside the open transaction; it counts once commit() succeeded. Also filled, as far as
 * it came, when the slice fails. */
struct slice {
    int64_t picked;       /* due rows that were locked; 0: no more due rows in the stretch */
    int64_t *gone;        /* per plan->slots */
    int64_t *detached;    /* per plan->detach_slots: references emptied in rows that stay */
    struct cursor end;    /* the last row picked: where the next slice begins */
    char *key;            /* picked == 1: that row, "id=42"; else NULL */
    struct rows root;     /* picked == 1: that row, as scout gives it, without a place in the order */
    char transaction[24]; /* how the server knows it; "": not by name */
    struct rows some;     /* SLICE_SOME of the rows that go, in the same shape: to be looked up after a COMMIT
                           * without an answer, which deleted all of them or none */

    /* Plans with `splits`. Asked: of split nodes no more rows than this go in one transaction; ahead: of the
     * one row of slice_of so many go, and it stays, where it owns more. */
    int64_t split_most;
    bool ahead;
    /* Told: rows that were due and did not go, in the same shape: because all together own too much, or each
     * of them does. stays: what went, went ahead of the one row. */
    struct rows put_off, heavy;
    bool stays;
};
void slice_init(struct slice *s, const struct plan *p);
void slice_release(struct slice *s);

/* What a sweep would do now. */
struct due {
    int64_t *gone;      /* per plan->slots */
    int64_t *detached;  /* per plan->detach_slots */
    int64_t least;      /* not counted, since it took too long: so many rows of its own table at least */
    bool below_unknown; /* … only those of the policy's own table were: how many go with them is not known */
    bool kept_unknown;  /* … nor what is kept, and why */
    bool has_range;
    instant oldest, newest; /* of the roots that would go: the bound's (latest) time */
    int64_t null_time, unreadable_time, held, waiting; /* rows the policy speaks of that stay, and why */
};
void due_init(struct due *d, const struct plan *p);
void due_release(struct due *d);

/* What waits to be swept, looked at so that it costs little. */
struct backlog {
    int64_t rows;    /* due now, `most` at most: then it means "at least" */
    bool has_oldest; /* false: none is due, age plays no part, or it would have to read on to know */
    instant oldest;  /* the bound's (latest) time of the oldest of them */
};

/* How those fare who work beside a sweep, or follow it. Of what only grows, differences alone mean something.
 */
enum { PRESSURE_TEXT = 240 };
struct pressure {
    int64_t others;              /* grows with what others write; -1: not known … */
    int64_t under_way;           /* … of which so many may be lapse's own: see store_marks */
    bool one_writer;             /* whoever writes keeps all others from writing */
    bool lax;                    /* store->lax: commits of a sweep cost next to nothing */
    int64_t replicas;            /* that follow, or are away and kept a place for */
    int64_t written;             /* bytes of the log; grows */
    int64_t lag_bytes;           /* of it, what the replica furthest behind has not applied; -1: not known */
    int64_t lag_us;              /* its delay, as the server says; 0: it says nothing of use */
    int64_t snapshot_us;         /* how long the oldest snapshot is held already, as far as it can be seen */
    int64_t held_up_us;          /* for how long a cluster held its writers up; grows */
    int64_t queued;              /* transactions of a cluster that this node has yet to apply */
    char furthest[64];           /* the replica furthest behind */
    const char *no_lag;          /* nobody can be behind here: why; NULL: somebody can */
    bool unknowable;             /* lag_bytes is not known, and never will be … */
    char unknown[PRESSURE_TEXT]; /* … or is not known now: why … */
    char fix[PRESSURE_TEXT];     /* … and what would help; "": nothing that is known */
};

/* Values of an integer or text time column as they are, from a bounded sample. */
struct time_sample {
    int64_t n;                                       /* not NULL */
    int64_t unreadable;                              /* text that is no timestamp; another storage class */
    int64_t plausible_s, plausible_ms, plausible_us; /* integers that lie in 1990 to 2100 when read so */
    char example[64];                                /* one unreadable or implausible value */
};

/* The rows with the highest keys, of those that a policy may touch. */
struct recent {
    int64_t rows, due; /* looked at; of them, old enough */
    bool more;         /* there may be others */
    bool has_newest;
    instant newest; /* of their times */
};

/* Two values of a column, from a bounded sample, whose order says nothing: a number and a text, or times
 * written in different ways. */
struct disorder {
    bool found, of_times;
    char one[64], other[64];
};

/* Rows that make a row of the plan wait. */
enum wait_kind {
    WAIT_AFTER,  /* any of `rows`, one of the node's after */
    WAIT_WITH,   /* the node's own rows that are outside its where */
    WAIT_BELOW,  /* rows below the node's, by grow[at], that are outside grow_where[at] */
    WAIT_SOURCE, /* the row's own source, whether it matches or not */
};
struct wait {
    enum wait_kind kind;
    const struct node *node, *parent; /* parent NULL: the root */
    size_t at;
    const struct expr *rows; /* WAIT_AFTER, WAIT_SOURCE: EXPR_EXISTS; else NULL */
};
const struct table *wait_table(const struct wait *w); /* whose rows they are */

/* One row asked after, by its key: what it holds, conditions as the engine judges them, what it waits for,
 * what would go with it. */
struct inquiry {
    const struct expr *key; /* which row of the swept table */
    const struct column **columns;
    size_t n_columns;
    const struct time_column *times;
    size_t n_times;
    const struct expr **asked;
    size_t n_asked;
    const struct wait *waits;
    size_t n_waits;
    int64_t most; /* so many rows of each wait are named */
    bool rank;    /* its place in its group, where the plan ranks rows */
    bool goes;    /* what would go with it, whether it is due or not */
};
enum verdict { VERDICT_FALSE, VERDICT_TRUE, VERDICT_UNKNOWN };
struct answer {
    size_t found;    /* 0: there is no such row; 2: the key fits several, nothing else is said */
    struct rows row; /* its columns as stored */
    struct answer_time {
        bool usable; /* false: NULL, or no instant that can be reckoned with */
        instant at;
    } * times;
    enum verdict *verdicts; /* per asked */
    struct answer_wait {
        struct rows keys; /* of the first rows; none where their table has no key */
        int64_t total;
    } * waits;
    size_t n_waits;
    int64_t rank, ranked; /* the newest is 1, of so many; 0: it is not ranked */
    struct due goes;      /* gone and detached */
};
void answer_release(struct answer *a);

enum fate {
    FATE_NOTHING,   /* rows of it are there: it did not commit */
    FATE_COMMITTED, /* it did */
    FATE_GONE,      /* none is there; another may have deleted them */
    FATE_MIXED,     /* some are there: others deleted rows, or put them back */
};

enum {
    SLICE_SOME = 20,
    SLICE_ALL = 5000,   /* batch: null: one transaction, in slices of so many rows */
    SCOUT_MOST = 50000, /* rows that one reading finds of a plan that examines */
};

/* Whether a count of the unit since 1970 lies in 1990 to 2100. */
bool time_is_plausible(int64_t count, int64_t unit_us);

/* What may end a wait, and how long a server that is not there is waited for. {0}: nothing ends it, and one
 * try is all. */
struct patience {
    bool (*stop)(void *context); /* asked while waiting; true: stop. NULL: never */
    void *context;
    int64_t away_us; /* a server that is being replaced */
    /* After each try in vain, and about every second of the wait: why, and for how long. May be NULL. */
    void (*waits)(void *context, const struct err *why, int64_t waited_us);
};
bool patience_ends(const struct patience *p);

struct store;
/* Partitions dropped instead of deleted from; for plans that drop. */
struct partition_ops {
    /* The partitions whose range has ended, in a transaction that cannot write. ret is {0}. */
    int (*list)(struct store *s, const struct plan *p, struct partitions *ret, struct err *e);
    /* A look at its rows without a lock. One that is no longer there is not whole. */
    int (*look)(struct store *s, const struct plan *p, const struct partition *x, struct partition_look *ret,
                struct err *e);
    /* In the open transaction: keeps others from writing to it, sees that it is still the one that was
     * listed, and judges every row; l is what the look found. *ret_rows: how many there are, all of them due;
     * 0: not all are, or it is another or gone, and the transaction must be rolled back. Waits for nobody:
     * ERR_BUSY. */
    int (*hold)(struct store *s, const struct plan *p, const struct partition *x,
                const struct partition_look *l, int64_t *ret_rows, struct err *e);
    /* After that. Only what commits is gone. */
    int (*drop)(struct store *s, const struct plan *p, const struct partition *x, struct err *e);
    /* The statements of both, for people: appended to out. */
    void (*explain)(struct store *s, const struct plan *p, const struct partition *x, struct text *out);
};
#define LAX_MOST_US US_PER_S /* between two syncs of what can be done again */
struct store_ops {
    const char *scheme; /* "sqlite", "postgresql", "mariadb" */
    /* Opens a connection; reading: it must not be able to write. The DSN may hold a password: never in an
     * error. */
    int (*open)(const char *dsn, bool reading, struct store **ret, struct err *e);
    void (*close)(struct store *s);
    /* A new connection after ERR_LOST or ERR_COMMIT_UNKNOWN. One try, which store_gives_up ends. */
    int (*reconnect)(struct store *s, struct err *e);
    /* The database's clock. */
    int (*now)(struct store *s, instant *ret, struct err *e);

    /* Facts of the tables named; a table that does not exist is simply not in them. */
    int (*inspect)(struct store *s, const struct table_names *names, struct facts **ret, struct err *e);
    /* A number that is another after any change of the schema; -1: the engine has none. */
    int (*schema_stamp)(struct store *s, int64_t *ret, struct err *e);
    /* Every ordinary table of the database that is not the engine's own, "schema.table", for coverage. */
    int (*list_tables)(struct store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                       struct err *e);
    /* Whether the engine accepts the plan's conditions (SQL texts, values of odd types). An error says why
     * not. */
    int (*accepts)(struct store *s, const struct plan *p, struct err *e);
    int (*sample)(struct store *s, const struct plan *p, size_t time, struct time_sample *ret, struct err *e);
    int (*recent)(struct store *s, const struct plan *p, struct recent *ret, struct err *e);
    int (*disorder)(struct store *s, const struct plan *p, const struct column *c, struct disorder *ret,
                    struct err *e);
    /* Values of some columns as they are, long texts cut, from a few rows of the table; *ret_whole: it has no
     * others. ret is {0}. Never reads much of a large table. */
    int (*look)(struct store *s, const struct table *t, const struct column *const *columns, size_t n,
                struct rows *ret, bool *ret_whole, struct err *e);
    /* Is there a row of the table with this column value? */
    int (*has_value)(struct store *s, const struct table *t, const struct expr *is, bool *ret, struct err *e);
    /* A value of the table's column that the column takes for values[0], though it is none of the n texts:
     * it is appended to ret where *ret_found. */
    int (*lookalike)(struct store *s, const struct table *t, const struct column *c,
                     const struct value *values, size_t n, bool *ret_found, struct text *ret, struct err *e);

    /* One consistent look, in a transaction that cannot write; what took too long is left out, as ret says.
     * Where that is all of it: ERR_TIMEOUT, with ret->least. */
    int (*count)(struct store *s, const struct plan *p, struct due *ret, struct err *e);
    /* How many rows of its own table are due that are due by none of the others, n plans of the same table.
     */
    int (*count_beside)(struct store *s, const struct plan *p, const struct plan *const *others, size_t n,
                        int64_t *ret, struct err *e);
    /* Only what is kept, and why; of the rest ret says nothing. */
    int (*kept)(struct store *s, const struct plan *p, struct due *ret, struct err *e);
    /* Is anything due? One indexed probe. */
    int (*probe)(struct store *s, const struct plan *p, bool *ret, struct err *e);
    /* Probes in between share one transaction that cannot write; nothing else may be asked. After an error,
     * look_end; it never fails. */
    int (*look_begin)(struct store *s, int64_t statement_timeout_us, struct err *e);
    void (*look_end)(struct store *s);
    /* What the engine reckons of the policy's table, so that it costs next to nothing: each below 0 where it
     * does not say. Never longer than a few seconds. */
    int (*estimate)(struct store *s, const struct plan *p, struct estimate *ret, struct err *e);
    /* Whether the database can find due rows by the plan's index alone, as a range and without sorting; if
     * not, words says what it would do. Explained, never carried out. */
    int (*served)(struct store *s, const struct plan *p, bool *ret, struct text *words, struct err *e);
    /* How many rows the policy's own table has, due or not. */
    int (*size)(struct store *s, const struct plan *p, int64_t *ret, struct err *e);
    /* How many due rows there are, counting at most `most` (they may be locked by others). */
    int (*remaining)(struct store *s, const struct plan *p, int64_t most, int64_t *ret, struct err *e);
    /* The same with the oldest of them, in one reading of no more than so many due rows and no longer than
     * that. */
    int (*backlog)(struct store *s, const struct plan *p, int64_t most, int64_t timeout_us,
                   struct backlog *ret, struct err *e);
    /* One consistent look at one row, in a transaction that cannot write. */
    int (*judge_row)(struct store *s, const struct plan *p, const struct inquiry *q, struct answer *ret,
                     struct err *e);
    /* The statements, for people: appended to out. */
    void (*explain)(struct store *s, const struct plan *p, struct text *out);

    /* A transaction. After any error of begin, slice or commit, call rollback (or undo). Of those whose plan
     * ranks rows of one table, one is open at a time. ERR_TURN: another is; nobody was waited for. */
    int (*begin)(struct store *s, const struct plan *p, struct err *e);
    /* Locks up to `most` due rows of the stretch, judges again, erases them with all they own. */
    int (*slice)(struct store *s, const struct plan *p, const struct stretch *in, int64_t most,
                 struct slice *ret, struct err *e);
    /* Plans that examine: up to `most` rows of the stretch that look due, without a lock; each what the
     * root carries, then plan->order. In the open transaction, or else in one that cannot write. */
    int (*scout)(struct store *s, const struct plan *p, const struct stretch *in, int64_t most,
                 struct rows *ret, struct err *e);
    /* Where a part of about so many due rows ends that begins beyond the cursor; *ret is {0}, and stays not
     * set where fewer are left: then the part has no end. Parts that begin where others ended are disjoint,
     * and leave no row out. In the open transaction, or else in one that cannot write. */
    int (*cut)(struct store *s, const struct plan *p, const struct cursor *after, int64_t rows,
               struct cursor *ret, struct err *e);
    /* As slice, of rows that scout found: those that are still due. picked == 0: none of them. */
    int (*slice_of)(struct store *s, const struct plan *p, const struct rows *these, struct slice *ret,
                    struct err *e);
    /* What became of a transaction whose COMMIT had no answer, by these rows that it deleted and its name, as
     * the slice had both. Waits for whoever is about to delete them, as long as the policy waits for a lock:
     * then ERR_BUSY. In a transaction of its own. */
    int (*look_up)(struct store *s, const struct plan *p, const struct slice *of, enum fate *ret,
                   struct err *e);
    /* How many rows of each slot a row owns, counting at most `most` of each. */
    int (*weigh)(struct store *s, const struct plan *p, const struct rows *root, int64_t most,
                 int64_t timeout_us, int64_t *ret, struct err *e);
    /* Only with batch: null: a slice that failed is undone alone, the transaction goes on. */
    int (*mark)(struct store *s, struct err *e);
    int (*undo)(struct store *s, struct err *e);
    int (*commit)(struct store *s, struct err *e);
    /* What slices committed is there after a crash or a power failure, too: until then the last of it, what
     * LAX_MOST_US had room for, may not be, and would be swept again. NULL: each commit sees to it. */
    int (*sync)(struct store *s, struct err *e);
    void (*rollback)(struct store *s);

    /* How others fare now: cheap, and outside of any transaction. */
    int (*pressure)(struct store *s, struct pressure *ret, struct err *e);

    /* Waits, for so long at most, until an application says that it scheduled a purge, or until wake_fd can
     * be read; on a connection that does nothing else. What was said while nobody heard it is lost. NULL: the
     * engine has nothing to say it with. */
    int (*hear)(struct store *s, int64_t most_us, int wake_fd, bool *ret_heard, struct err *e);

    /* The partitions in which rows of such a plan may be due, as far as the database can tell without looking
     * at rows; into the arena. None where one of them is not for sweeping alone. NULL: there are none. */
    int (*pieces)(struct store *s, const struct plan *p, struct arena *a, struct table_pieces *ret,
                  struct err *e);
    const struct partition_ops *partitions; /* NULL: facts->drops_not says why */

    const struct own_ops *own;      /* lapse's own tables */
    const struct keyed_ops *keyed;  /* tables of keys and values */
    const struct purge_ops *purges; /* the one of them that others write to; from OWN_SINCE_PURGES on */
};
/* What lapse itself writes, as the engine counts it. Connections that sweep together share one such count. */
struct store_marks {
    atomic_llong begun, done;
};

struct store {
    const struct store_ops *ops;
    char *dsn;              /* as it was opened with, for another connection. May hold a password */
    const char *own_schema; /* where lapse's own tables belong; NULL: where names are found. Borrowed */
    const char *own_owner;  /* may own them, beside whom the engine trusts; NULL: nobody. Borrowed */
    struct own_state own;   /* as own->look found them; nothing before */
    char role[260];         /* whom the database knows this connection as; "": it knows nobody */
    const char *purpose; /* what its grants should be for: "sweep", "operate", "read"; NULL: for none of it */
    const char *only_reads; /* opened for reading where nobody can write: "a standby"; NULL: it is not so */
    int64_t idle_most_us;   /* a transaction that writes and hears nothing for so long may be ended by the
                             * server; 0: as the engine sees fit */
    bool lax;               /* a server that crashes may forget what was committed since the last sync */
    int64_t lives; /* so often the server was found to have begun anew, or to be another one: it may have */
    int64_t syncs; /* so often what was committed until then was made sure */
    struct patience patience;             /* of those who are not told another one: retry_reconnect */
    bool out_of_patience;                 /* the server was waited for in vain since it was last there */
    const struct patience *trying;        /* while a connection is tried: what may end that … */
    int64_t trying_until_us;              /* … and when it ends by itself */
    struct store_marks own_marks, *marks; /* NULL: the store's own. Borrowed */
    bool marking;                         /* between store_mark_begin and what ends it */
    const atomic_bool *interrupted; /* NULL: never. While it is true, what runs or is asked ends soon with
                       * ERR_STOPPED; rollback and close go on. Any thread may set it. Borrowed */
    struct patience
        asks;         /* its stop: the same, but not while it writes: a batch that has begun is finished */
    bool own_goes_on; /* nor what is written to lapse's own tables: how a run ended */
    bool writes;      /* a transaction that writes is open, or begins and must not be given up */
};

/* By the DSN's scheme. ERR_USAGE: no such engine (the text lists those there are). */
int store_open(const char *dsn, bool reading, struct store **ret, struct err *e);
/* The same, and the store asks p from then on; ERR_STOPPED soon after p says so, however long a server takes
 * to answer. */
int store_open_patiently(const char *dsn, bool reading, const struct patience *p, struct store **ret,
                         struct err *e);
/* Another connection that writes, to the same database, on the terms of this one: dsn, own_schema, own_owner,
 * own, idle_most_us, marks, interrupted. */
int store_another(const struct store *terms, struct store **ret, struct err *e);
/* Whether a DSN may hold a password. */
bool store_may_hold_secret(const char *dsn);
/* "role 'x': 'lapse install --grants x --for read' prints what it needs", for errors about rights; nothing where
 * there are no roles. */
void store_grants_hint(const struct store *s, struct text *out);
bool store_interrupted(const struct store *s);
/* Whether a try to connect is to end: interrupted, asked to stop, or out of time. */
bool store_gives_up(const struct store *s);
/* Around what lapse itself adds to what an engine counts of everybody's writing: it was counted, or it was
 * not. Without a beginning it was counted in between. */
void store_mark_begin(struct store *s);
void store_mark(struct store *s);
void store_unmark(struct store *s);
/* What others wrote, where the engine counted `counted` after marks_done was `done` here: at most
 * ret->others, and at least ret->under_way less. */
int64_t store_marks_done(struct store *s);
void store_take_marks_off(struct store *s, int64_t counted, int64_t done, struct pressure *ret);
void store_close(struct store *s);
void store_close_p(struct store **s);
extern const struct store_ops store_sqlite, store_postgres, store_mariadb;

#endif
