/* What the files of sqlown share: statements with words in braces (see own.c), and the transactions they
 * run in. Private to sqlown. */
#ifndef LAPSE_STORE_SQL_OWN_INTERNAL_H
#define LAPSE_STORE_SQL_OWN_INTERNAL_H

#include "store/sql/own.h"
#include "store/sql/store_internal.h"

enum { OWN_TRIES = 5 };
#define OWN_LOCK_US      (10 * US_PER_S)
#define OWN_STATEMENT_US (30 * US_PER_S)
#define OWN_PAUSE_US     (20 * US_PER_MS)

struct own_arg {
    enum { ARG_NAME, ARG_COUNT, ARG_TIME, ARG_VALUE } kind;
    const char *name;
    const struct value *value; /* ARG_VALUE: a name as it is stored */
    int64_t number;
    bool null;
};

/* Words in braces become what the engine calls them. */
void own_add(struct stmt *st, const struct sql_store *s, const char *sql, size_t len,
             const struct own_arg *args);
/* … in a statement of its own: st is cleared first. */
void own_write(struct stmt *st, const struct sql_store *s, const char *sql, size_t len,
               const struct own_arg *args);
int own_run(struct sql_store *s, const char *sql, const struct own_arg *args, int64_t *ret_affected,
            struct err *e);
int own_ask(struct sql_store *s, const char *sql, const struct own_arg *args, struct rows *ret,
            struct err *e);

/* In the open transaction; or else in one of its own, where waiting has an end. */
int own_look_up(struct sql_store *s, const char *sql, const struct own_arg *args, struct rows *ret,
                struct err *e);
int64_t own_number(const struct value *v); /* 0 where it is none */

/* A statement of a transaction that writes. */
struct own_change {
    const char *sql;
    const struct own_arg *args;
    struct rows *found; /* not NULL: it asks, and this is the answer */
    int64_t affected;
};
/* All in one transaction, again where another was faster. */
int own_change(struct sql_store *s, struct own_change *changes, size_t n, struct err *e);

/* Whether another was faster, or may be done soon. */
bool own_may_try_again(const struct err *e);

/* The tables: own_tables.c. */
int sqlown_look(struct store *store, struct err *e);
int sqlown_install(struct store *store, int *ret_from, struct err *e);
void sqlown_print(struct store *store, struct text *out);
int sqlown_print_grants(struct store *store, const char *role, enum grants_for what, const struct need *needs,
                        size_t n, bool purges, struct text *out, struct err *e);

/* -1 with ERR_FINDINGS: somebody who is not trusted owns one of these tables (names, between commas), or has
 * code on it. store->own.schema is set. inside: the open transaction; else one of its own. None of them is
 * touched: own_trust.c. */
int sqlown_trust(struct sql_store *s, const char *names, bool inside, struct err *e);

/* The history: own_runs.c. */
int sqlown_run_put(struct store *store, const struct run_row *row, struct err *e);
int sqlown_runs(struct store *store, const char *scheduler, int64_t most, struct run_rows *ret,
                struct err *e);
int sqlown_last_runs(struct store *store, bool daemon, struct run_rows *ret, struct err *e);
int sqlown_run_totals(struct store *store, struct run_totals *ret, struct err *e);

#endif
