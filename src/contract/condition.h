/* condition: what the contract says of a row, as a map or as SQL. Readers of the key table. */
#ifndef LAPSE_CONTRACT_CONDITION_H
#define LAPSE_CONTRACT_CONDITION_H

#include "contract/reader.h"

/* struct cond *: a map of columns and operators (COND_ALL), or a string of SQL (COND_SQL). */
void read_condition(struct reader *r, const struct node *n, void *field, size_t *count);
/* struct cond *: column -> value or list, COND_ALL of one COND_IN for each column; prefixes allowed. */
void read_rows(struct reader *r, const struct node *n, void *field, size_t *count);

/* Readers of the section "condition": one operator of one column, into the struct cond it is given. */
void read_in(struct reader *r, const struct node *n, void *cond, size_t *count);
void read_not_in(struct reader *r, const struct node *n, void *cond, size_t *count);
void read_lt(struct reader *r, const struct node *n, void *cond, size_t *count);
void read_lte(struct reader *r, const struct node *n, void *cond, size_t *count);
void read_gt(struct reader *r, const struct node *n, void *cond, size_t *count);
void read_gte(struct reader *r, const struct node *n, void *cond, size_t *count);
void read_like(struct reader *r, const struct node *n, void *cond, size_t *count);
void read_older_than(struct reader *r, const struct node *n, void *cond, size_t *count);
void read_newer_than(struct reader *r, const struct node *n, void *cond, size_t *count);

#endif
