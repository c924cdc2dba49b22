/* sqlstore: what every SQL engine does the same way behind the store seam: the order of statements in a
 * slice, key sets, counting. An engine file brings a connection (struct engine), a dialect and its catalog.
 */
#ifndef LAPSE_STORE_SQL_SQLSTORE_H
#define LAPSE_STORE_SQL_SQLSTORE_H

#include "store/sql/sql.h"

/* The keys of the rows of one table that this slice is about. */
struct keyset {
    struct rows rows;
    const struct node *node;
};

/* Statements in this order, each about the runs of a set's numbers. */
struct by_runs {
    struct by_runs_one {
        struct stmt st;
        const struct table *table;
        const struct index *index; /* asked: met; NULL: it is not wanted, or was not to be known */
        int64_t rows;              /* told: what it changed, or how many rows it gave */
        int64_t met;               /* told: by how many rows of its table it passed; of no use if index is
                                    * another statement's, too */
    } * list;
    size_t n;
    bool last;    /* asked: nothing else is written before engine.settle … */
    bool settled; /* told: … which was done with them */
};

struct sql_store;
struct engine {
    const struct dialect *dialect;
    /* Errors are classified (ERR_CONFLICT, ERR_BUSY, ERR_TIMEOUT, ERR_REFUSED, ERR_LOST, ERR_DATABASE), code
     * is the engine's own, text the database's words. Set parameters refer to store->sets. */
    int (*query)(struct sql_store *s, const struct stmt *st, struct rows *ret, struct err *e);
    int (*execute)(struct sql_store *s, const struct stmt *st, int64_t *ret_affected, struct err *e);
    /* Each finds its rows by an index, which is used whatever the engine believes of the table. NULL: there
     * is nothing to be gained by that. */
    int (*execute_by_runs)(struct sql_store *s, struct by_runs *b, struct err *e);
    /* Runs a statement once for every row of a set, whose values are its set parameters: all that it gives
     * (ret may be NULL) until there are `most` rows, and what each run changed. The set need not be loaded.
     * NULL: each would cost a way to the server, and statements about whole sets are faster. */
    int (*each)(struct sql_store *s, const struct stmt *st, int set, size_t most, struct rows *ret,
                int64_t *ret_changed, struct err *e);
    /* A set's rows have changed; statements that read it follow. */
    int (*load_set)(struct sql_store *s, int set, struct err *e);
    int (*begin_read)(struct sql_store *s, int64_t statement_timeout_us, struct err *e);
    /* With `ranks` of the store, and unless these are excluded by a row: alone among those of the same table;
     * ERR_TURN: another is not over. */
    int (*begin_write)(struct sql_store *s, int64_t lock_timeout_us, int64_t statement_timeout_us,
                       struct err *e);
    /* NULL: not needed. Within the transaction, before rows that it has not locked are judged: this server
     * has applied what any server of its cluster has committed. */
    int (*catch_up)(struct sql_store *s, struct err *e);
    int (*settle)(struct sql_store *s, struct err *e); /* deferred constraints speak now, before COMMIT */
    int (*mark)(struct sql_store *s, struct err *e);
    int (*undo)(struct sql_store *s, struct err *e);
    int (*commit)(struct sql_store *s, struct err *e); /* ERR_COMMIT_UNKNOWN when no answer came */
    void (*rollback)(struct sql_store *s);             /* also when nothing is open; never fails */
    /* Whether the transaction of that name committed. NULL: it has no name. */
    int (*committed)(struct sql_store *s, const char *transaction, bool *ret, struct err *e);
    /* NULL: nothing is known without counting. In a transaction that cannot write; ret says "not known". */
    int (*estimate)(struct sql_store *s, const struct plan *p, struct estimate *ret, struct err *e);
    /* Explains a statement that picks: store_ops.served. In a transaction that cannot write. NULL: it is
     * taken for granted. */
    int (*served)(struct sql_store *s, const struct stmt *st, bool *ret, struct text *words, struct err *e);
    /* Compiles or explains a statement without running it: does the engine accept it? */
    int (*accepts)(struct sql_store *s, const struct stmt *st, struct err *e);
};
/* An engine's store begins with this. */
struct sql_store {
    struct store store;
    const struct engine *engine;
    struct keyset *sets;
    size_t n_sets;
    bool writing;                    /* a transaction that writes is open */
    bool repeatable;                 /* … of which whatever might get lost would be found and done again */
    char transaction[24];            /* its name; "": it has none */
    bool looking;                    /* one for probes is */
    const struct table *ranks;       /* while one begins that judges ranks of this table's rows; NULL: none */
    const struct plan *walked;       /* by place: of which … */
    double due_per_block;            /* … this was seen last */
    const struct plan *slow_by_runs; /* of which a statement by runs took too long; NULL: none did */
    bool settled;                    /* since the rows were locked, with the last of the statements */
    struct {
        const struct node *node; /* NULL: none */
        char *root;              /* the row that owns them */
        struct rows keys;
        size_t taken;
    } ahead; /* keys of rows that may go ahead, found for several transactions at once */
    struct {
        const struct plan *plan;          /* NULL: none */
        struct rows rows;                 /* as sql_scout gives them */
        size_t taken;                     /* … of which so many were picked from */
        struct cursor after, upto, first; /* the stretch that they are of */
        bool wanted;                      /* they are to be found for the next slice */
        bool never;                       /* it took too long: not again in this sweep */
        int slow;                         /* slices in a row that took long to find rows for */
    } found;                              /* due rows, found for several slices at once */
};
void sql_store_release(struct sql_store *s); /* the sets */

/* The verbs of store_ops that every SQL engine shares; SQLSTORE_VERBS puts them into the ops table. */
int sqlstore_accepts(struct store *s, const struct plan *p, struct err *e);
int sqlstore_sample(struct store *s, const struct plan *p, size_t time, struct time_sample *ret,
                    struct err *e);
int sqlstore_recent(struct store *s, const struct plan *p, struct recent *ret, struct err *e);
int sqlstore_look(struct store *s, const struct table *t, const struct column *const *columns, size_t n,
                  struct rows *ret, bool *ret_whole, struct err *e);
int sqlstore_disorder(struct store *s, const struct plan *p, const struct column *c, struct disorder *ret,
                      struct err *e);
int sqlstore_has_value(struct store *s, const struct table *t, const struct expr *is, bool *ret,
                       struct err *e);
int sqlstore_lookalike(struct store *s, const struct table *t, const struct column *c,
                       const struct value *values, size_t n, bool *ret_found, struct text *ret,
                       struct err *e);
int sqlstore_count(struct store *s, const struct plan *p, struct due *ret, struct err *e);
int sqlstore_count_beside(struct store *s, const struct plan *p, const struct plan *const *others, size_t n,
                          int64_t *ret, struct err *e);
int sqlstore_kept(struct store *s, const struct plan *p, struct due *ret, struct err *e);
int sqlstore_probe(struct store *s, const struct plan *p, bool *ret, struct err *e);
int sqlstore_look_begin(struct store *s, int64_t statement_timeout_us, struct err *e);
void sqlstore_look_end(struct store *s);
int sqlstore_served(struct store *s, const struct plan *p, bool *ret, struct text *words, struct err *e);
int sqlstore_estimate(struct store *s, const struct plan *p, struct estimate *ret, struct err *e);
int sqlstore_size(struct store *s, const struct plan *p, int64_t *ret, struct err *e);
int sqlstore_remaining(struct store *s, const struct plan *p, int64_t most, int64_t *ret, struct err *e);
int sqlstore_backlog(struct store *s, const struct plan *p, int64_t most, int64_t timeout_us,
                     struct backlog *ret, struct err *e);
int sqlstore_judge_row(struct store *s, const struct plan *p, const struct inquiry *q, struct answer *ret,
                       struct err *e);
void sqlstore_explain(struct store *s, const struct plan *p, struct text *out);
int sqlstore_begin(struct store *s, const struct plan *p, struct err *e);
int sqlstore_slice(struct store *s, const struct plan *p, const struct stretch *in, int64_t most,
                   struct slice *ret, struct err *e);
int sqlstore_scout(struct store *s, const struct plan *p, const struct stretch *in, int64_t most,
                   struct rows *ret, struct err *e);
int sqlstore_cut(struct store *s, const struct plan *p, const struct cursor *after, int64_t rows,
                 struct cursor *ret, struct err *e);
int sqlstore_slice_of(struct store *s, const struct plan *p, const struct rows *these, struct slice *ret,
                      struct err *e);
int sqlstore_look_up(struct store *s, const struct plan *p, const struct slice *of, enum fate *ret,
                     struct err *e);
int sqlstore_weigh(struct store *s, const struct plan *p, const struct rows *root, int64_t most,
                   int64_t timeout_us, int64_t *ret, struct err *e);
int sqlstore_mark(struct store *s, struct err *e);
int sqlstore_undo(struct store *s, struct err *e);
int sqlstore_commit(struct store *s, struct err *e);
void sqlstore_rollback(struct store *s);
extern const struct own_ops sqlown;      /* own.c */
extern const struct purge_ops sqlpurges; /* purge_queue.c */
extern const struct keyed_ops sqlkeyed;  /* keyed.c */
#define SQLSTORE_VERBS                                                                                       \
    .accepts = sqlstore_accepts, .sample = sqlstore_sample, .recent = sqlstore_recent,                       \
    .disorder = sqlstore_disorder, .look = sqlstore_look, .has_value = sqlstore_has_value,                   \
    .lookalike = sqlstore_lookalike, .count = sqlstore_count, .count_beside = sqlstore_count_beside,         \
    .kept = sqlstore_kept, .probe = sqlstore_probe, .look_begin = sqlstore_look_begin,                       \
    .look_end = sqlstore_look_end, .remaining = sqlstore_remaining, .size = sqlstore_size,                   \
    .explain = sqlstore_explain, .begin = sqlstore_begin, .slice = sqlstore_slice, .scout = sqlstore_scout,  \
    .slice_of = sqlstore_slice_of, .weigh = sqlstore_weigh, .look_up = sqlstore_look_up,                     \
    .mark = sqlstore_mark, .undo = sqlstore_undo, .commit = sqlstore_commit, .rollback = sqlstore_rollback,  \
    .judge_row = sqlstore_judge_row, .backlog = sqlstore_backlog, .cut = sqlstore_cut,                       \
    .estimate = sqlstore_estimate, .served = sqlstore_served, .own = &sqlown, .purges = &sqlpurges,          \
    .keyed = &sqlkeyed

#endif
