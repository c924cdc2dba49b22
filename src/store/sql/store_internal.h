/* What the files of sqlstore lend each other. Private to sqlstore. */
#ifndef LAPSE_STORE_SQL_STORE_INTERNAL_H
#define LAPSE_STORE_SQL_STORE_INTERNAL_H

#include "store/sql/sqlstore.h"

struct sql_store *sqlstore_of(struct store *s);
int64_t sqlstore_number(const struct value *v);
int sqlstore_query_number(struct sql_store *s, const struct stmt *st, int64_t *ret, struct err *e);
int sqlstore_query_any(struct sql_store *s, const struct stmt *st, bool *ret, struct err *e); /* any row? */
/* The rows that a picking statement locks become set 0; ret_found, {0}: they with their places in the order.
 */
int sqlstore_pick(struct sql_store *s, const struct plan *p, const struct stmt *st, struct slice *ret,
                  struct rows *ret_found, struct err *e);
/* Locks those of these rows that are still due by what they say themselves: set 0. */
int sqlstore_pick_these(struct sql_store *s, const struct plan *p, const struct rows *these,
                        struct slice *ret, struct err *e);
/* Plans that sort: picks of what was found for several slices, as far as there is any; `in` then begins behind what
 * others held. Whether a picked slice is all of one time; what it took to pick, and to delete what was picked. */
int sqlstore_pick_found(struct sql_store *s, const struct plan *p, struct stretch *in, int64_t most,
                        struct slice *ret, struct err *e);
bool sqlstore_is_of_one_time(const struct plan *p, const struct rows *picked, int64_t most);
void sqlstore_note_pick(struct sql_store *s, const struct plan *p, int64_t rows, int64_t pick_us,
                        int64_t rest_us);
void sqlstore_forget_found(struct sql_store *s);
/* Picks by plans that walk as rows lie; and where a part of so many due rows ends. */
int sqlstore_pick_by_place(struct sql_store *s, const struct plan *p, const struct stretch *in, int64_t most,
                           struct slice *ret, struct err *e);
int sqlstore_cut_by_place(struct sql_store *s, const struct plan *p, const struct cursor *after, int64_t rows,
                          struct cursor *ret, struct err *e);
/* A transaction that cannot write; always rolled back. */
int sqlstore_reading(struct sql_store *s, const struct plan *p, struct err *e);

/* sqlstore.c: the plan's sets, and one more. The steps of a slice: the subtree of a node's set joins it; what
 * its rows own, where that owns rows itself, is locked into sets; rows locked after the judgement still let
 * the roots go; all of it is deleted; and stays so once triggers have run. */
void sqlstore_prepare_sets(struct sql_store *s, const struct plan *p);
int sqlstore_grow(struct sql_store *s, const struct node *n, struct err *e);
int sqlstore_gather(struct sql_store *s, const struct node *n, struct err *e);
int sqlstore_still_free(struct sql_store *s, const struct plan *p, struct err *e);
int sqlstore_erase(struct sql_store *s, const struct plan *p, const struct node *n, struct slice *ret,
                   struct err *e);
int sqlstore_stays_gone(struct sql_store *s, const struct node *n, struct err *e);
/* So many rows of the set went: as many as there are, or those left are gone all the same. */
int sqlstore_count_gone(struct sql_store *s, const struct node *n, bool tree, int64_t gone, struct slice *ret,
                        struct err *e);
int sqlstore_kept_by_hooks(struct err *e, int64_t left, const struct table *t, const char *what);
int sqlstore_changed_meanwhile(struct err *e, const struct table *t);

/* runs.c: deletes the rows of a node's set and what they own, if that is possible and worth while by
 * the runs of their keys; ret_done: it was. */
int sqlstore_erase_by_runs(struct sql_store *s, const struct plan *p, const struct node *n, struct slice *ret,
                           bool *ret_done, struct err *e);

/* split.c: leaves in set 0 the roots that may go in this slice, and tells which do not; where one is
 * to be gone ahead of, does so, and leaves none. */
int sqlstore_split(struct sql_store *s, const struct plan *p, struct slice *ret, struct err *e);
/* Adds a root to others, as scout gives them, without a place in the order. */
void sqlstore_put_off(const struct plan *p, const struct value *carried, struct rows *to);
void sqlstore_forget_ahead(struct sql_store *s);
void sqlstore_explain_split(const struct dialect *d, const struct plan *p, struct text *out);

/* own.c: in the open transaction, writes the row that of all transactions in which ranks of the table's
 * rows are judged, on any server of a cluster, only one at a time can. ERR_TURN: another does. */
int sqlown_claim_ranks(struct sql_store *s, const struct table *t, struct err *e);
/* For people: what it writes. */
void sqlown_explain_ranks(const struct sql_store *s, const struct table *t, struct text *out);

/* accepts.c: a statement and its parameters, for people. */
void sqlstore_show(struct text *out, const struct dialect *d, const struct stmt *st, const char *what);

#endif
