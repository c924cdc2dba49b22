/* draft: (facts of all tables, a few rows of each) -> a contract to begin with. Pure.
 *
 * Nothing destructive is guessed. A policy stands in the draft as it is only where the schema itself says
 * when a row is over, the table holds rows that come and go, and everything that points at it is spoken for;
 * all others are written out in full, but commented out, with what there is to decide. */
#ifndef LAPSE_DRAFT_H
#define LAPSE_DRAFT_H

#include "contract/contract.h"
#include "store/store.h"

/* What a look at a table brought: a cell per row and column. */
struct draft_look {
    const struct table *table;
    const struct column **columns;
    size_t n_columns;
    struct rows rows;
    bool whole;          /* the table has no other rows */
    const char *trouble; /* NULL: none. Why it could not be looked at */
};

enum draft_bound { DRAFT_EXPIRES, DRAFT_ENDED, DRAFT_AGE, DRAFT_DELETED };

/* What must be so of a row before it is over, beside its age. */
enum draft_test { DRAFT_IS_SET, DRAFT_ABOVE_ZERO, DRAFT_IS_TRUE, DRAFT_IS_ONE };
struct draft_condition {
    const struct column *column;
    enum draft_test test;
};

/* A foreign key into the table, and what the policy does about it. */
enum draft_role { DRAFT_WITH, DRAFT_DETACH, DRAFT_AFTER };
struct draft_ref {
    enum draft_role role;
    const struct table *child; /* NULL: not among the facts */
    const struct fkey *fkey;
    const char *why;
    struct draft_ref *below; /* DRAFT_WITH: what points at the rows that go */
    size_t n_below;
};

/* Sentences, in order. */
struct draft_lines {
    const char **list;
    size_t n;
};

struct draft_policy {
    const char *name;
    const struct table *table;
    enum draft_bound bound;
    const struct column *time;
    const char *unit;           /* NULL: its name or type says it */
    const char *zone;           /* NULL: it has its own */
    bool above_zero;            /* a count: 0 may stand for "never" */
    const struct column *state; /* DRAFT_ENDED */
    const char **states;
    size_t n_states;
    struct draft_condition *conditions;
    size_t n_conditions;
    struct draft_ref *refs;
    size_t n_refs;
    struct draft_lines why;
    struct draft_lines decide; /* none: certain, it stands as it is */
};

/* A table that no policy is for. */
struct draft_rest {
    const struct table *table;
    const char *bounded_by; /* NULL: to decide */
    const char *goes_with;  /* NULL: none. The policy that takes its rows along */
    struct draft_lines why;
};

struct draft {
    struct arena *arena; /* owns all but the facts */
    const struct facts *facts;
    struct draft_policy *policies; /* the certain ones first */
    size_t n_policies, n_certain;
    struct draft_rest *rest;
    size_t n_rest;
    struct draft_lines odd; /* tables that a contract cannot name */
};

/* The columns of a table worth a look; ret has room for all. */
size_t draft_columns(const struct table *t, const struct column **ret);
/* looks: one per table of the facts, in their order. What check would say of each policy, by facts alone, is
 * in it already. */
struct draft *draft_make(const struct facts *f, const struct draft_look *looks, instant now);
void draft_free(struct draft *d);
/* The contract of one policy of the draft alone, for check. */
int draft_contract(const struct draft_policy *p, struct contract **ret, struct err *e);
/* One more thing to decide: a certain policy is not certain any more. Call draft_sort afterwards. */
void draft_doubt(struct draft *d, struct draft_policy *p, const char *what);
void draft_sort(struct draft *d);

/* The whole file. The DSN is in it only where it cannot hold a password. Lines that are to be decided begin
 * with "# ", comments with ##. */
void draft_text(const struct draft *d, const char *dsn, struct text *out);
void draft_policy_text(const struct draft_policy *p, bool commented, struct text *out);

#endif
