/* fkeys: which references a foreign key watches. Pure. */
#include "plan/plan.h"

#include <string.h>

static bool same_schema(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

static bool is_restricting(const struct node *n, const struct fkey *k)
{
    return n->n_grow && k->action == ON_DELETE_RESTRICT && fkey_is_own(n->table, k);
}

bool plan_restricts_circles(const struct plan *p, const struct node *n)
{
    for (size_t i = 0; p->facts->restricts_at_once && i < n->table->n_fkeys_in; i++)
        if (is_restricting(n, &n->table->fkeys_in[i]))
            return true;
    return false;
}

/* One column that is NULL is enough: such a row refers to none. */
static bool can_be_broken(const struct table *t, const struct fkey *k)
{
    for (size_t i = 0; i < k->n; i++)
        for (size_t c = 0; c < t->n_columns; c++)
            if (strcmp(t->columns[c].name, k->child_columns[i]) == 0 && !t->columns[c].not_null &&
                !t->columns[c].generated && !table_is_key_column(t, &t->columns[c]))
                return true;
    return false;
}

static bool holds_circles(const struct node *n)
{
    for (size_t i = 0; i < n->table->n_fkeys_in; i++)
        if (is_restricting(n, &n->table->fkeys_in[i]) && !can_be_broken(n->table, &n->table->fkeys_in[i]))
            return true;
    for (size_t i = 0; i < n->n_kids; i++)
        if (holds_circles(&n->kids[i]))
            return true;
    return false;
}

bool plan_holds_circles(const struct plan *p)
{
    return p->facts->restricts_at_once && holds_circles(&p->root);
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
