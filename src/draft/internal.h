/* internal: what the files of draft share. Included by draft*.c only. */
#ifndef LAPSE_DRAFT_INTERNAL_H
#define LAPSE_DRAFT_INTERNAL_H

#include "draft/draft.h"

enum { LONGEST = 40 }; /* of a value that a comment shows */

void draft_say(struct arena *a, struct draft_lines *to, const char *fmt, ...) PRINTF(3, 4);

/* A column as a time. */
struct draft_time {
    const struct column *column;
    bool usable; /* it may hold times */
    bool count;  /* it is a whole number */
    const char *unit, *zone;
    struct draft_lines why, decide;
};
struct draft_time draft_time_of(const struct draft_look *l, const struct column *c, struct arena *a);

/* Foreign keys into the tables of the policies, and which tables go with others. */
struct draft_house {
    struct draft *draft;
    const struct facts *facts;
    const struct table **owner; /* per table of the facts: what its rows go with; NULL: they stand alone */
    bool *drafted;              /* per table of the facts: it has a policy of its own */
};
/* Settles owners: from then on `drafted` is false for tables that go with another. keeps[i]: the table has an
 * expiry of its own, and stands alone. */
void draft_own(struct draft_house *h, const bool *keeps);
/* Fills in what points at the policy's table; doubts go to its `decide`. */
void draft_refs(const struct draft_house *h, struct draft_policy *p);

#endif
