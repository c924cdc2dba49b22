/* needs: what a user must be allowed to do so that a plan can be swept, and no more. */
#include "check/internal.h"

#include <string.h>

static bool same_table(const struct table *a, const struct table *b)
{
    bool schemas = a->schema && b->schema;
    return strcmp(a->name, b->name) == 0 && (!schemas || strcmp(a->schema, b->schema) == 0);
}

static struct need *need(struct needs *all, const struct table *t, int rights)
{
    size_t i = 0;
    while (i < all->n && !same_table(all->list[i].table, t))
        i++;
    if (i == all->n) {
        all->list = arena_push(all->arena, all->list, all->n, sizeof(*all->list));
        all->list[all->n++].table = t;
    }
    all->list[i].rights |= rights;
    return &all->list[i];
}

static void need_update(struct needs *all, const struct table *t, const struct column *c)
{
    struct need *n = need(all, t, NEED_SELECT | NEED_UPDATE);
    for (size_t i = 0; i < n->n_updates; i++)
        if (strcmp(n->updates[i]->name, c->name) == 0)
            return;
    n->updates = arena_push(all->arena, n->updates, n->n_updates, sizeof(*n->updates));
    n->updates[n->n_updates++] = c;
}

static void need_node(struct needs *all, const struct node *n, int locking)
{
    need(all, n->table, NEED_SELECT | NEED_DELETE | (n->set >= 0 ? locking : 0));
    for (size_t i = 0; i < n->n_detach; i++)
        for (size_t k = 0; k < n->detach[i].n_emptied; k++)
            need_update(all, n->detach[i].table, n->detach[i].emptied[k]);
    for (size_t i = 0; i < n->n_kids; i++)
        need_node(all, &n->kids[i], locking);
}

void needs_add(struct needs *all, const struct plan *p)
{
    for (size_t i = 0; i < p->facts->n_tables; i++)
        need(all, p->facts->tables[i], NEED_SELECT);
    int locking = p->facts->locking_takes_update ? NEED_UPDATE : 0;
    if (p->source_locked)
        need(all, p->source, locking);
    need_node(all, &p->root, locking);
}

void needs_add_purge(struct needs *all, const struct purge_plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        need(all, p->erases[i].table, NEED_SELECT | NEED_DELETE);
}

/* Locking rows takes the right to update some column. */
void needs_settle(struct needs *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct need *n = &all->list[i];
        const struct table *t = n->table;
        if (n->rights & NEED_UPDATE && !n->n_updates)
            need_update(all, t, t->n_key ? t->key[0] : &t->columns[0]);
    }
}
