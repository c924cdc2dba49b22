/* references: do the rows that a reference finds belong to their parent, and does anything protect
 * them?
 */
#include "check/internal.h"

#include <string.h>
#include <strings.h>

static bool same_collation(const struct facts *f, const struct column *a, const struct column *b)
{
    if (!a->collation || !b->collation)
        return !a->collation && !b->collation;
    return f->ignores_case ? strcasecmp(a->collation, b->collation) == 0
                           : strcmp(a->collation, b->collation) == 0;
}

static const char *collation_words(struct arena *a, const struct column *c)
{
    return c->collation ? arena_printf(a, "the collation %s", c->collation) : "the default collation";
}

static void check_collations(const struct survey *s, const struct reference *r)
{
    struct arena *a = s->findings->arena;
    const char *words = reference_words(a, r);
    for (size_t i = 0; i < r->join.n; i++) {
        const struct column *child = r->join.child[i], *parent = r->join.parent[i];
        if (same_collation(s->plan->facts, child, parent))
            continue;
        findings_add(s->findings, FINDING_ERROR, s->plan->policy->name, r->at,
                     "give both columns the same collation, or take the reference out",
                     "%s: %s has %s, but %s of %s has %s: rows could match that do not belong "
                     "together",
                     words, child->name, collation_words(a, child), parent->name,
                     r->parent->node->table->print, collation_words(a, parent));
    }
}

static void check_protection(const struct survey *s, const struct reference *r)
{
    if (join_is_enforced(&r->join, r->parent->node->table, r->child))
        return;
    findings_add(s->findings, FINDING_NOTE, s->plan->policy->name, r->at,
                 "add a foreign key if such rows may be inserted while their parent is due",
                 "%s has no foreign key to %s: a row inserted while its parent is being deleted is not "
                 "protected and stays behind",
                 reference_words(s->findings->arena, r), r->parent->node->table->print);
}

static void check_detach_hooks(const struct survey *s, const struct reference *r)
{
    if (r->role != ROLE_DETACH || !r->child->update_hooks)
        return;
    findings_add(s->findings, FINDING_NOTE, s->plan->policy->name, r->at, "",
                 "%s of %s may keep a row from being detached: lapse verifies it, and leaves what the row "
                 "refers to",
                 hook_words(s->findings->arena, r->child), r->child->print);
}

static bool has_parent(const struct join *j, const struct column *c)
{
    for (size_t i = 0; i < j->n; i++)
        if (j->parent[i] == c)
            return true;
    return false;
}

static bool all_are_parents(const struct join *j, const struct column *const *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!columns[i] || !has_parent(j, columns[i]))
            return false;
    return n > 0;
}

static bool has_one_parent(const struct reference *r)
{
    const struct table *parent = r->parent->node->table;
    if (all_are_parents(&r->join, parent->key, parent->n_key))
        return true;
    for (size_t i = 0; i < parent->n_indexes; i++) {
        const struct index *x = &parent->indexes[i];
        if (x->unique && !x->partial && all_are_parents(&r->join, x->columns, x->n_columns))
            return true;
    }
    return false;
}

/* Waiting for a row that belongs to several is safe; deleting or detaching it takes it from all of them. */
static void check_parents(const struct survey *s, const struct reference *r)
{
    struct arena *a = s->findings->arena;
    if (r->role == ROLE_AFTER || has_one_parent(r))
        return;
    findings_add(s->findings, FINDING_WARNING, s->plan->policy->name, r->at,
                 "point the reference at a unique key, or use after",
                 "%s points at (%s) of %s, which is not unique: a row may belong to others that stay",
                 reference_words(a, r), column_words(a, r->join.parent, r->join.n),
                 r->parent->node->table->print);
}

void check_references(const struct survey *s)
{
    for (size_t i = 0; i < s->n_references; i++) {
        check_collations(s, &s->references[i]);
        check_parents(s, &s->references[i]);
        check_protection(s, &s->references[i]);
        check_detach_hooks(s, &s->references[i]);
    }
}
