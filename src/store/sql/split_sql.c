/* split_sql: statements about rows that may go ahead of the row that owns them. */
#include "store/sql/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* lapse_N is path[N]. */
static const char *step(char buf[ALIAS_SIZE], size_t n)
{
    snprintf(buf, ALIAS_SIZE, "lapse_%u", (unsigned)n);
    return buf;
}

/* " FROM …": the rows of the path's last node, each joined to the one that owns it, up to path[1]. */
static void from_path(struct writer *w, const struct sql_path *path)
{
    char child[ALIAS_SIZE], parent[ALIAS_SIZE];
    sql_from(w, path->nodes[1]->table, step(child, 1));
    for (size_t i = 2; i < path->n; i++) {
        sql_add(w->s, " JOIN ");
        sql_table(w->s, w->d, path->nodes[i]->table);
        text_addf(&w->s->sql, " AS %s ON ", step(child, i));
        sql_join(w, &path->nodes[i]->join, child, step(parent, i - 1));
    }
    w->aliases = (int)path->n;
}

void sql_path_count(struct stmt *s, const struct dialect *d, const struct plan *p,
                    const struct sql_path *path, int64_t most)
{
    char first[ALIAS_SIZE];
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*) FROM (SELECT 1");
    from_path(&w, path);
    sql_add(s, " WHERE ");
    sql_refers_to(s, d, step(first, 1), &path->nodes[1]->join, path->nodes[0], path->nodes[0]->set);
    sql_add(s, "\nLIMIT ");
    sql_bind_integer(s, d, most);
    sql_add(s, ") AS lapse_rows");
}

/* "(SELECT 1 …": rows of the path that `this` owns. */
static void owned(struct writer *w, const struct sql_path *path)
{
    char first[ALIAS_SIZE];
    sql_add(w->s, "(SELECT 1");
    from_path(w, path);
    sql_add(w->s, " WHERE ");
    sql_join(w, &path->nodes[1]->join, step(first, 1), THIS);
}

void sql_heavy(struct stmt *s, const struct dialect *d, const struct plan *p, const struct sql_path *paths,
               size_t n, int64_t most)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, p->root.carry, p->root.n_carry);
    sql_add(s, ", CASE WHEN ");
    for (size_t i = 0; i < n; i++) {
        sql_add(s, i ? " OR " : "");
        owned(&w, &paths[i]);
        sql_add(s, " LIMIT 1 OFFSET ");
        sql_bind_integer(s, d, most);
        sql_add(s, ") IS NOT NULL");
    }
    sql_add(s, " THEN 1 ELSE 0 END\n");
    sql_from(&w, p->root.table, THIS);
    sql_add(s, "\nWHERE ");
    sql_in_own_set(s, d, THIS, &p->root);
}

/* A row without a key could not be found again: it goes with the row that owns it. */
static void and_has_key(struct stmt *s, const struct dialect *d, const struct table *t)
{
    for (size_t i = 0; t->key_may_be_null && i < t->n_key; i++) {
        if (t->key[i]->not_null)
            continue;
        sql_add(s, " AND ");
        sql_column(s, d, THIS, t->key[i]);
        sql_add(s, " IS NOT NULL");
    }
}

void sql_ahead_keys(struct stmt *s, const struct dialect *d, const struct node *parent, const struct node *n,
                    int64_t most)
{
    stmt_clear(s);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, n->table->key, n->table->n_key);
    sql_from_table(s, d, n->table, THIS);
    sql_add(s, " WHERE ");
    sql_refers_to(s, d, THIS, &n->join, parent, parent->set);
    and_has_key(s, d, n->table);
    sql_add(s, "\nLIMIT ");
    sql_bind_integer(s, d, most);
}

/* The node as if `set` were its own. */
static struct node with_set(const struct node *n, int set)
{
    struct node other = *n;
    other.set = set;
    return other;
}

void sql_ahead_lock(struct stmt *s, const struct dialect *d, const struct node *parent, const struct node *n,
                    int keys)
{
    const struct node found = with_set(n, keys);
    AUTO(sql_by_release) struct sql_by b = sql_by_key(&found);
    stmt_clear(s);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, n->carry, n->n_carry);
    sql_from_by(s, d, n->table, THIS, &b);
    sql_add(s, " AND ");
    sql_refers_to(s, d, THIS, &n->join, parent, parent->set);
    d->lock(s, THIS, LOCK_WAIT);
}

void sql_owners(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                const struct node *n, const struct sql_path *paths, size_t n_paths, int64_t most)
{
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_columns(s, d, THIS, n->table->key, n->table->n_key);
    sql_from_table(s, d, n->table, THIS);
    sql_add(s, " WHERE ");
    sql_refers_to(s, d, THIS, &n->join, parent, parent->set);
    and_has_key(s, d, n->table);
    for (size_t i = 0; i < n_paths; i++) {
        sql_add(s, i ? " OR EXISTS " : " AND (EXISTS ");
        owned(&w, &paths[i]);
        sql_add(s, ")");
    }
    sql_add(s, ")\nLIMIT ");
    sql_bind_integer(s, d, most);
}

void sql_delete_ahead(struct stmt *s, const struct dialect *d, const struct plan *p,
                      const struct node *parent, const struct node *n, int keys)
{
    const struct node found = with_set(n, keys);
    struct writer w = sql_writer(s, d, p);
    AUTO(sql_by_release) struct sql_by b = sql_by_key(&found);
    sql_add(s, d->deletes_alias ? "DELETE " THIS : "DELETE");
    sql_from_by(s, d, n->table, THIS, &b);
    sql_add(s, " AND ");
    sql_refers_to(s, d, THIS, &n->join, parent, parent->set);
    if (!n->where)
        return;
    sql_add(s, " AND ");
    sql_expression(&w, THIS, n->where);
}

void sql_ahead_left(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                    const struct node *n, int keys, bool inside)
{
    const struct node found = with_set(n, keys);
    struct writer w = sql_writer(s, d, p);
    sql_add(s, "SELECT ");
    sql_builtin(s, d, "count(*)");
    sql_from_table(s, d, n->table, THIS);
    sql_add(s, " WHERE ");
    sql_in_own_set(s, d, THIS, &found);
    sql_add(s, " AND ");
    sql_refers_to(s, d, THIS, &n->join, parent, parent->set);
    if (!inside || !n->where)
        return;
    sql_add(s, " AND ");
    sql_expression(&w, THIS, n->where);
}
