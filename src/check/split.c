/* split: what rows that may go ahead of their owner cost. */
#include "check/internal.h"

/* Whether rows of the node, or below it, may make the root wait. */
static bool makes_wait(const struct node *n)
{
    bool waits = n->where || n->n_after;
    for (size_t i = 0; i < n->n_kids && !waits; i++)
        waits = makes_wait(&n->kids[i]);
    return waits;
}

void check_split(const struct survey *s)
{
    for (size_t i = 0; i < s->n_losers; i++) {
        const struct loser *l = s->losers[i];
        if (!l->node->split || !makes_wait(l->node))
            continue;
        findings_add(
            s->findings, FINDING_WARNING, s->plan->policy->name, l->at,
            "take where and after from it, or out of what it owns, if a row owns very many",
            "%s is split, and where or after may make its owner wait for a row of it: each transaction "
            "looks at all that are left",
            l->node->table->print);
    }
}
