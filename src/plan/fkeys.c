/* fkeys: which references a foreign key watches. Pure. */
#include "plan/plan.h"

#include <string.h>

static bool same_schema(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

bool fkey_is_from(const struct fkey *k, const struct table *child)
{
    return strcmp(k->child_table, child->name) == 0 && same_schema(k->child_schema, child->schema);
}

static bool join_has_pair(const struct join *j, const char *child, const char *parent)
{
    for (size_t i = 0; i < j->n; i++)
        if (strcmp(j->child[i]->name, child) == 0 && strcmp(j->parent[i]->name, parent) == 0)
            return true;
    return false;
}

/* More pairs of equal columns find fewer rows: the key watches all of the join's when its pairs are among
 * them. */
static bool fkey_protects_join(const struct fkey *k, const struct join *j)
{
    for (size_t i = 0; i < k->n; i++)
        if (!join_has_pair(j, k->child_columns[i], k->parent_columns[i]))
            return false;
    return k->n > 0;
}

bool join_is_enforced(const struct join *j, const struct table *parent, const struct table *child)
{
    for (size_t i = 0; i < parent->n_fkeys_in; i++)
        if (fkey_is_from(&parent->fkeys_in[i], child) && fkey_protects_join(&parent->fkeys_in[i], j))
            return true;
    return false;
}
