/* rule: a policy as the contract writes it -> struct policy, and what cannot stand together. Readers of the
 * key table. */
#ifndef LAPSE_CONTRACT_RULE_H
#define LAPSE_CONTRACT_RULE_H

#include "contract/condition.h"

/* Reads one policy; its scheduler stays as written, NULL if none is. */
void rule_read(struct reader *r, const struct node *key, const struct node *map, struct policy *ret);

void read_unit(struct reader *r, const struct node *n, void *field, size_t *count);        /* int64_t */
void read_keep(struct reader *r, const struct node *n, void *field, size_t *count);        /* struct keep */
void read_keep_span(struct reader *r, const struct node *n, void *field, size_t *count);   /* struct span */
void read_keep_values(struct reader *r, const struct node *n, void *field, size_t *count); /* struct keep */
void read_keep_unit(struct reader *r, const struct node *n, void *field, size_t *count);   /* int64_t */
void read_orphan(struct reader *r, const struct node *n, void *field, size_t *count); /* struct orphan * */
void read_orphan_when(struct reader *r, const struct node *n, void *field,
                      size_t *count);                                              /* enum orphan_when */
void read_cap(struct reader *r, const struct node *n, void *field, size_t *count); /* struct newest * */
void read_keep_newest(struct reader *r, const struct node *n, void *field,
                      size_t *count);                                                   /* struct newest * */
void read_with(struct reader *r, const struct node *n, void *field, size_t *count);     /* struct with * */
void read_after(struct reader *r, const struct node *n, void *field, size_t *count);    /* struct after * */
void read_batch(struct reader *r, const struct node *n, void *field, size_t *count);    /* int64_t */
void read_workers(struct reader *r, const struct node *n, void *field, size_t *count);  /* int64_t */
void read_limits(struct reader *r, const struct node *n, void *field, size_t *count);   /* struct limits * */
void read_pace(struct reader *r, const struct node *n, void *field, size_t *count);     /* struct pace * */
void read_timeouts(struct reader *r, const struct node *n, void *field, size_t *count); /* struct policy */
void read_partitions(struct reader *r, const struct node *n, void *field,
                     size_t *count); /* struct partition_rule */

#endif
