/* check: contract x facts -> findings. What it says is wrong with a policy, plan and sweep refuse. */
#ifndef LAPSE_CHECK_H
#define LAPSE_CHECK_H

#include "contract/contract.h"
#include "store/store.h"

/* Everything about one policy: keys that do not run yet, names and types (by making the plan), foreign keys
 * named nowhere, privileges, row security, units against real values, conditions the engine refuses. With
 * `thorough` also what only advises: indexes, states no row has, NULL and unreadable times (these read more
 * of the table). *ret_plan is the plan, or NULL when findings gained an error; free it with plan_free.
 * *ret_facts belongs to it: free it after. -1: the database failed; e says how. */
int check_policy(const struct contract *c, const struct policy *p, struct store *s, instant now,
                 bool thorough, struct findings *findings, struct plan **ret_plan, struct facts **ret_facts,
                 struct err *e);
/* Everything about one space of purges; as check_policy. *ret_plan and *ret_facts are set where nothing was
 * wrong. */
int check_purge(const struct purge_space *space, struct store *s, instant now, bool thorough,
                struct findings *findings, struct purge_plan **ret_plan, struct facts **ret_facts,
                struct err *e);
/* Its pure half. */
void check_purge_plan(const struct purge_plan *p, bool thorough, struct findings *findings);
/* Tables of the database that neither a policy, a purge nor `unbounded` names; notes, or errors when strict.
 */
int check_coverage(const struct contract *c, struct store *s, bool strict, struct findings *findings,
                   struct err *e);
/* Errors first, then warnings, then notes; within a level in the order of the contract. */
void findings_sort(struct findings *f);

/* What a user needs to sweep plans: one entry per table. The plans and their facts must outlive it. */
struct needs {
    struct arena *arena; /* borrowed */
    struct need *list;
    size_t n;
};
void needs_add(struct needs *all, const struct plan *p);
void needs_add_purge(struct needs *all, const struct purge_plan *p);
void needs_settle(struct needs *all); /* after the last plan */

/* What check_policy does once there is a plan. */
int check_made(const struct plan *plan, struct store *s, bool thorough, struct findings *findings,
               struct err *e);

/* What it says of the indexes alone: those there should be, and one that the database does not use. */
int check_plan_indexes(const struct plan *p, struct store *s, struct findings *findings, struct err *e);

/* The pure half of check_policy: foreign keys into tables that lose rows, indexes, privileges, kinds, hidden
 * rows. */
void check_plan(const struct plan *p, bool thorough, struct findings *findings);

#endif
