/* orphan: is the source of orphans served by an index, protected by a foreign key, and not a table that
 * this policy empties itself? */
#include "check/internal.h"

static struct place source_place(const struct plan *p)
{
    return p->policy->orphan->of.at;
}

/* A row that goes would make orphans of others: `plan` could not foretell where that ends. */
static void check_own_source(const struct survey *s)
{
    const struct plan *p = s->plan;
    if (!plan_loses(p, p->source))
        return;
    findings_add(s->findings, FINDING_ERROR, p->policy->name, source_place(p),
                 "name a source that this policy deletes nothing from",
                 "the policy deletes rows of %s, which is its source: each that goes would make orphans of "
                 "others",
                 p->source->print);
}

/* Nor may a detachment empty the key that makes a row a source. */
static void check_emptied_source(const struct survey *s, const struct node *n)
{
    const struct plan *p = s->plan;
    const struct join *j = &p->source_join;
    for (size_t i = 0; i < n->n_detach; i++)
        for (size_t k = 0; n->detach[i].table == p->source && k < n->detach[i].n_emptied; k++)
            for (size_t c = 0; c < j->n; c++)
                if (n->detach[i].emptied[k] == j->child[c])
                    findings_add(s->findings, FINDING_ERROR, p->policy->name, source_place(p),
                                 "take it out of detach, or name another column of the source",
                                 "the policy detaches '%s' of its source %s, which rows are found by: each "
                                 "row that goes would make orphans of others",
                                 j->child[c]->name, p->source->print);
    for (size_t i = 0; i < n->n_kids; i++)
        check_emptied_source(s, &n->kids[i]);
}

/* What its siblings hold would count as gone. The whole table holds all of it. */
static void check_whole_source(const struct survey *s)
{
    const struct plan *p = s->plan;
    if (p->source->part_of)
        findings_add(s->findings, FINDING_ERROR, p->policy->name, source_place(p),
                     arena_printf(s->findings->arena, "name the whole table: %s", p->source->part_of),
                     "the source %s is a part of %s: rows whose source is in another part would pass for "
                     "orphans",
                     p->source->print, p->source->part_of);
}

static void check_source_index(const struct survey *s)
{
    const struct plan *p = s->plan;
    const struct join *j = &p->source_join;
    if (table_index_on(p->source, j->child, j->n))
        return;
    findings_add(s->findings, FINDING_WARNING, p->policy->name, source_place(p),
                 index_words(s, p->source, j->child, j->n),
                 "no index of %s leads with (%s): to find the source of a row the whole table is read",
                 p->source->print, column_words(s->findings->arena, j->child, j->n));
}

/* The swept table is the child of such a key, the source its parent. */
static bool is_referring(const struct plan *p)
{
    struct join j = {p->source_join.parent, p->source_join.child, p->source_join.n};
    return join_is_enforced(&j, p->source, p->root.table);
}

static void check_later_source(const struct survey *s)
{
    const struct plan *p = s->plan;
    const struct orphan *o = p->policy->orphan;
    struct arena *a = s->findings->arena;
    const char *by = column_words(a, p->source_join.parent, p->source_join.n);
    if (!is_referring(p))
        findings_add(s->findings, FINDING_NOTE, p->policy->name, source_place(p), "",
                     "(%s) of %s has no foreign key to %s: a source that is inserted, or put back, while its "
                     "row is being deleted does not save it",
                     by, p->root.table->print, p->source->print);
    else if (o->when == ORPHAN_DELETED)
        findings_add(
            s->findings, FINDING_NOTE, p->policy->name, source_place(p),
            "see whether delete_when: deleted_or_unmatched is meant",
            "(%s) of %s has a foreign key to %s, which keeps rows from losing their source: none can "
            "be an orphan",
            by, p->root.table->print, p->source->print);
}

void check_orphan(const struct survey *s)
{
    const struct plan *p = s->plan;
    if (!p->source)
        return;
    check_own_source(s);
    check_emptied_source(s, &p->root);
    check_whole_source(s);
    if (p->policy->orphan->when == ORPHAN_NEVER)
        findings_add(s->findings, FINDING_NOTE, p->policy->name, source_place(p), "",
                     "delete_when: never: nothing is ever due");
    else
        check_later_source(s);
}

void check_orphan_index(const struct survey *s)
{
    if (s->plan->source)
        check_source_index(s);
}
