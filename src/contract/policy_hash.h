/* policy_hash: what a policy means, as a short text that stays the same however the contract is laid out. */
#ifndef LAPSE_CONTRACT_POLICY_HASH_H
#define LAPSE_CONTRACT_POLICY_HASH_H

#include "contract/policy.h"

enum { POLICY_HASH_SIZE = 17 }; /* 16 hexadecimal digits */

/* Of all that decides what is deleted: the table, conditions, bound, what goes along, limits. Not of how and
 * when: batches, pace, timeouts, schedulers; nor of words for people. Returns ret. */
const char *policy_hash(const struct policy *p, char ret[POLICY_HASH_SIZE]);
/* Of all of them together, by name and in their order. Returns ret. */
const char *policies_hash(const struct policy *list, size_t n, char ret[POLICY_HASH_SIZE]);
/* Whether two conditions say the same, in whatever order; NULL is one that says nothing. */
bool cond_same(const struct cond *a, const struct cond *b);
/* What is hashed; for tests. */
void policy_meaning(const struct policy *p, struct text *out);

#endif
