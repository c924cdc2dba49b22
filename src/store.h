/* store: the adapter seam. A store is asked to inspect, to count and to erase slices of plans; it is never
 * handed SQL. One ops struct per engine; what differs between engines stays behind it. */
#ifndef LAPSE_STORE_H
#define LAPSE_STORE_H

#include <stdatomic.h>

#include "keyed.h"
#include "purges.h"

/* Rows read, as they came. Texts live in the arena. PostgreSQL gives text and NULL only. */
struct rows {
    struct arena *arena;
    size_t n_columns, n_rows;
    struct value *cells; /* row by row */
};
void rows_release(struct rows *r);
void rows_push(struct rows *r, const struct value *cells); /* copies texts; n_columns must be set */
const struct value *rows_at(const struct rows *r, size_t row);

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

/* What one slice did inside the open transaction; it counts once commit() succeeded. Also filled, as far as
 * it came, when the slice fails. */
struct slice {
    int64_t picked;    /* due rows that were locked; 0: no more due rows beyond the cursor */
    int64_t *gone;     /* per plan->slots */
    int64_t *detached; /* per plan->detach_slots: references emptied in rows that stay */
    struct cursor end; /* the last row picked: where the next slice begins */
    char *key;         /* picked == 1: that row, "id=42"; else NULL */
};
void slice_init(struct slice *s, const struct plan *p);
void slice_release(struct slice *s);

/* What a sweep would do now. */
struct due {
    int64_t *gone;     /* per plan->slots */
    int64_t *detached; /* per plan->detach_slots */
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

/* Values of an integer or text time column as they are, from a bounded sample. */
struct time_sample {
    int64_t n;                                       /* not NULL */
    int64_t unreadable;                              /* text that is no timestamp; another storage class */
    int64_t plausible_s, plausible_ms, plausible_us; /* integers that lie in 1990 to 2100 when read so */
    char example[64];                                /* one unreadable or implausible value */
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

enum {
    SLICE_ALL = 5000,   /* batch: null: one transaction, in slices of so many rows */
    SCOUT_MOST = 50000, /* rows that one reading finds of a plan that examines */
};

/* Whether a count of the unit since 1970 lies in 1990 to 2100. */
bool time_is_plausible(int64_t count, int64_t unit_us);

struct store;
struct store_ops {
    const char *scheme; /* "sqlite", "postgresql", "mariadb" */
    /* Opens a connection; reading: it must not be able to write. The DSN may hold a password: never in an
     * error. */
    int (*open)(const char *dsn, bool reading, struct store **ret, struct err *e);
    void (*close)(struct store *s);
    /* A new connection after ERR_LOST or ERR_COMMIT_UNKNOWN. */
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
    int (*disorder)(struct store *s, const struct plan *p, const struct column *c, struct disorder *ret,
                    struct err *e);
    /* Values of some columns as they are, long texts cut, from a few rows of the table; *ret_whole: it has no
     * others. ret is {0}. Never reads much of a large table. */
    int (*look)(struct store *s, const struct table *t, const struct column *const *columns, size_t n,
                struct rows *ret, bool *ret_whole, struct err *e);
    /* Is there a row of the table with this column value? */
    int (*has_value)(struct store *s, const struct table *t, const struct expr *is, bool *ret, struct err *e);

    /* One consistent look, in a transaction that cannot write. */
    int (*count)(struct store *s, const struct plan *p, struct due *ret, struct err *e);
    /* Is anything due? One indexed probe. */
    int (*probe)(struct store *s, const struct plan *p, bool *ret, struct err *e);
    /* Probes in between share one transaction that cannot write; nothing else may be asked. After an error,
     * look_end; it never fails. */
    int (*look_begin)(struct store *s, int64_t statement_timeout_us, struct err *e);
    void (*look_end)(struct store *s);
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

    /* A transaction. After any error of slice or commit, call rollback (or undo). */
    int (*begin)(struct store *s, const struct plan *p, struct err *e);
    /* Locks up to `most` due rows beyond the cursor, judges again, erases them with all they own. */
    int (*slice)(struct store *s, const struct plan *p, const struct cursor *from, int64_t most,
                 struct slice *ret, struct err *e);
    /* Plans that examine: up to `most` rows beyond the cursor that look due, without a lock; each what the
     * root carries, then plan->order. In the open transaction, or else in one that cannot write. */
    int (*scout)(struct store *s, const struct plan *p, const struct cursor *from, int64_t most,
                 struct rows *ret, struct err *e);
    /* As slice, of rows that scout found: those that are still due. picked == 0: none of them. */
    int (*slice_of)(struct store *s, const struct plan *p, const struct rows *these, struct slice *ret,
                    struct err *e);
    /* Only with batch: null: a slice that failed is undone alone, the transaction goes on. */
    int (*mark)(struct store *s, struct err *e);
    int (*undo)(struct store *s, struct err *e);
    int (*commit)(struct store *s, struct err *e);
    void (*rollback)(struct store *s);

    const struct own_ops *own;      /* lapse's own tables */
    const struct keyed_ops *keyed;  /* tables of keys and values */
    const struct purge_ops *purges; /* the one of them that others write to; from OWN_SINCE_PURGES on */
};
struct store {
    const struct store_ops *ops;
    const char *own_schema; /* where lapse's own tables belong; NULL: where names are found. Borrowed */
    struct own_state own;   /* as own->look found them; nothing before */
    int64_t idle_most_us;   /* a transaction that writes and hears nothing for so long may be ended by the
                             * server; 0: as the engine sees fit */
    const atomic_bool
        *interrupted; /* NULL: never. While it is true, what runs or is asked ends soon with
                       * ERR_STOPPED; rollback and close go on. Any thread may set it. Borrowed */
};

/* By the DSN's scheme. ERR_USAGE: no such engine (the text lists those there are). */
int store_open(const char *dsn, bool reading, struct store **ret, struct err *e);
/* Whether a DSN may hold a password. */
bool store_may_hold_secret(const char *dsn);
bool store_interrupted(const struct store *s);
void store_close(struct store *s);
void store_close_p(struct store **s);
extern const struct store_ops store_sqlite, store_postgres;

#endif
