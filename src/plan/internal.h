/* What the files of plan share while a plan is made: names, values and conditions on one row. Private to
 * plan. */
#ifndef LAPSE_PLAN_INTERNAL_H
#define LAPSE_PLAN_INTERNAL_H

#include "plan/plan.h"

struct making {
    struct plan *plan;
    struct arena *arena;
    const struct policy *policy;
    const struct facts *facts;
    struct findings *findings;
    struct zone *zone; /* NULL: UTC */
};

#define complain(m, place, fix, ...)                                                                         \
    findings_add((m)->findings, FINDING_ERROR, (m)->policy->name, place, fix, __VA_ARGS__)

/* Names. NULL or false only after a finding. */
const struct table *plan_find_table(struct making *m, const struct table_name *name);
bool plan_need_key(struct making *m, const struct table *t, struct place at);
const struct column *plan_find_column(struct making *m, const struct table *t, const struct name *name,
                                      struct place at);

/* Times. The column of a bound. */
bool plan_ends_with(const char *s, const char *end);
bool plan_bound_column(struct making *m, const struct name *name, struct time_column *ret);

/* Expressions. add_kid takes NULL for nothing; simplest: an AND or OR of one is that one, of none NULL. */
struct expr *plan_expr(struct making *m, enum expr_kind kind);
void plan_add_kid(struct making *m, struct expr *x, const struct expr *kid);
const struct expr *plan_simplest(const struct expr *x);
const struct expr *plan_not_true(struct making *m, const struct expr *x);
const struct expr *plan_on_column(struct making *m, enum expr_kind kind, const struct column *c);
const struct expr *plan_compare_time(struct making *m, struct time_column t, enum compare cmp, instant at);

/* What is not among the newest of its group. Needs plan->matches and plan->times. NULL only after a finding.
 */
const struct expr *plan_beyond_newest(struct making *m, const struct newest *n);
/* How a cap's cursor walks: groups one after the other, oldest rows first. False: by the key alone. */
bool plan_ranks_in_order(const struct ranking *r);

/* Conditions of the contract. NULL only after a finding. */
const struct expr *plan_one_of(struct making *m, const struct column *c, const struct scalar *values,
                               size_t n);
const struct expr *plan_condition(struct making *m, const struct table *t, const struct cond *cond);

/* How rows are found, so far as the schema alone says it; with several values before the time, plan->states.
 */
void plan_say_walk(struct making *m);
/* Whether partitions may be dropped, and if not, why. After everything else. */
void plan_partitions(struct making *m);

/* The node's key set holds this column too. */
void plan_carry(struct making *m, struct node *n, const struct column *c);
/* plan->source and what belongs to it, plan->orphaned. Nothing for a policy without orphan. */
void plan_orphan(struct making *m);

#endif
