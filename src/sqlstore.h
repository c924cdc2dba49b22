/* sqlstore: what every SQL engine does the same way behind the store seam: the order of statements in a
 * slice, key sets, counting. An engine file brings a connection (struct engine), a dialect and its catalog.
 */
#ifndef LAPSE_SQLSTORE_H
#define LAPSE_SQLSTORE_H

#include "sql.h"

/* The keys of the rows of one table that this slice is about. */
struct keyset {
    struct rows rows;
    const struct node *node;
};

struct sql_store;
struct engine {
    const struct dialect *dialect;
    /* Errors are classified (ERR_CONFLICT, ERR_BUSY, ERR_TIMEOUT, ERR_REFUSED, ERR_LOST, ERR_DATABASE), code
     * is the engine's own, text the database's words. Set parameters refer to store->sets. */
    int (*query)(struct sql_store *s, const struct stmt *st, struct rows *ret, struct err *e);
    int (*execute)(struct sql_store *s, const struct stmt *st, int64_t *ret_affected, struct err *e);
    /* A set's rows have changed; statements that read it follow. */
    int (*load_set)(struct sql_store *s, int set, struct err *e);
    int (*begin_read)(struct sql_store *s, int64_t statement_timeout_us, struct err *e);
    int (*begin_write)(struct sql_store *s, int64_t lock_timeout_us, int64_t statement_timeout_us,
                       struct err *e);
    int (*settle)(struct sql_store *s, struct err *e); /* deferred constraints speak now, before COMMIT */
    int (*mark)(struct sql_store *s, struct err *e);
    int (*undo)(struct sql_store *s, struct err *e);
    int (*commit)(struct sql_store *s, struct err *e); /* ERR_COMMIT_UNKNOWN when no answer came */
    void (*rollback)(struct sql_store *s);             /* also when nothing is open; never fails */
    /* Compiles or explains a statement without running it: does the engine accept it? */
    int (*accepts)(struct sql_store *s, const struct stmt *st, struct err *e);
};
/* An engine's store begins with this. */
struct sql_store {
    struct store store;
    const struct engine *engine;
    struct keyset *sets;
    size_t n_sets;
    bool writing; /* a transaction that writes is open */
    bool looking; /* one for probes is */
};
void sql_store_release(struct sql_store *s); /* the sets */

/* The verbs of store_ops that every SQL engine shares; SQLSTORE_VERBS puts them into the ops table. */
int sqlstore_accepts(struct store *s, const struct plan *p, struct err *e);
int sqlstore_sample(struct store *s, const struct plan *p, size_t time, struct time_sample *ret,
                    struct err *e);
int sqlstore_look(struct store *s, const struct table *t, const struct column *const *columns, size_t n,
                  struct rows *ret, bool *ret_whole, struct err *e);
int sqlstore_disorder(struct store *s, const struct plan *p, const struct column *c, struct disorder *ret,
                      struct err *e);
int sqlstore_has_value(struct store *s, const struct table *t, const struct expr *is, bool *ret,
                       struct err *e);
int sqlstore_count(struct store *s, const struct plan *p, struct due *ret, struct err *e);
int sqlstore_probe(struct store *s, const struct plan *p, bool *ret, struct err *e);
int sqlstore_look_begin(struct store *s, int64_t statement_timeout_us, struct err *e);
void sqlstore_look_end(struct store *s);
int sqlstore_size(struct store *s, const struct plan *p, int64_t *ret, struct err *e);
int sqlstore_remaining(struct store *s, const struct plan *p, int64_t most, int64_t *ret, struct err *e);
int sqlstore_backlog(struct store *s, const struct plan *p, int64_t most, int64_t timeout_us,
                     struct backlog *ret, struct err *e);
int sqlstore_judge_row(struct store *s, const struct plan *p, const struct inquiry *q, struct answer *ret,
                       struct err *e);
void sqlstore_explain(struct store *s, const struct plan *p, struct text *out);
int sqlstore_begin(struct store *s, const struct plan *p, struct err *e);
int sqlstore_slice(struct store *s, const struct plan *p, const struct cursor *from, int64_t most,
                   struct slice *ret, struct err *e);
int sqlstore_scout(struct store *s, const struct plan *p, const struct cursor *from, int64_t most,
                   struct rows *ret, struct err *e);
int sqlstore_slice_of(struct store *s, const struct plan *p, const struct rows *these, struct slice *ret,
                      struct err *e);
int sqlstore_mark(struct store *s, struct err *e);
int sqlstore_undo(struct store *s, struct err *e);
int sqlstore_commit(struct store *s, struct err *e);
void sqlstore_rollback(struct store *s);
extern const struct own_ops sqlown;      /* sqlown.c */
extern const struct purge_ops sqlpurges; /* sqlown_purge.c */
extern const struct keyed_ops sqlkeyed;  /* sqlstore_keyed.c */
#define SQLSTORE_VERBS                                                                                       \
    .accepts = sqlstore_accepts, .sample = sqlstore_sample, .disorder = sqlstore_disorder,                   \
    .look = sqlstore_look, .has_value = sqlstore_has_value, .count = sqlstore_count,                         \
    .probe = sqlstore_probe, .look_begin = sqlstore_look_begin, .look_end = sqlstore_look_end,               \
    .remaining = sqlstore_remaining, .size = sqlstore_size, .explain = sqlstore_explain,                     \
    .begin = sqlstore_begin, .slice = sqlstore_slice, .scout = sqlstore_scout,                               \
    .slice_of = sqlstore_slice_of, .mark = sqlstore_mark, .undo = sqlstore_undo, .commit = sqlstore_commit,  \
    .rollback = sqlstore_rollback, .judge_row = sqlstore_judge_row, .backlog = sqlstore_backlog,             \
    .own = &sqlown, .purges = &sqlpurges, .keyed = &sqlkeyed

#endif
