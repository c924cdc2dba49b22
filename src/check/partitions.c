/* partitions: can partitions be dropped, as the policy asks, and what speaks against it? */
#include <string.h>

#include "check/internal.h"

#define ROW_BY_ROW "take the key out: its rows then go one by one"

void check_partitions(const struct survey *s)
{
    const struct plan *p = s->plan;
    const struct table *t = p->root.table;
    struct place at = p->policy->partitions.at;
    if (!p->policy->partitions.drop)
        return;
    if (p->facts->drops_not)
        findings_add(s->findings, FINDING_ERROR, p->policy->name, at, ROW_BY_ROW,
                     "partitions: drop cannot be done here: %s", p->facts->drops_not);
    else if (!t->ranges)
        findings_add(s->findings, FINDING_ERROR, p->policy->name, at, ROW_BY_ROW,
                     "%s has no partitions by range: there is nothing to drop", t->print);
    else if (!t->owned)
        findings_add(
            s->findings, FINDING_ERROR, p->policy->name, at,
            arena_printf(s->findings->arena, "connect as %s, or GRANT %s TO this user; or take the key out",
                         t->owner, t->owner),
            "%s belongs to %s: only its owner can drop its partitions", t->print, t->owner);
    else if (p->drops_not)
        findings_add(s->findings, FINDING_WARNING, p->policy->name, at, ROW_BY_ROW " as well",
                     "no partition of %s is ever dropped: %s", t->print, p->drops_not);
}

/* A reason that an earlier one has, too. */
static bool is_said(const struct partitions *all, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (all->list[i].why && strcmp(all->list[i].why, all->list[at].why) == 0)
            return true;
    return false;
}

int check_listed_partitions(const struct plan *p, struct store *s, struct findings *findings, struct err *e)
{
    AUTO(partitions_release) struct partitions all = {0};
    if (s->ops->partitions->list(s, p, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++)
        if (all.list[i].why && !is_said(&all, i))
            findings_add(findings, FINDING_WARNING, p->policy->name, p->policy->partitions.at, "",
                         "%s is not dropped, its rows go one by one: %s", all.list[i].print, all.list[i].why);
    return 0;
}
