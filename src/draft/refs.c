/* refs: what a policy does about the foreign keys that point at its table.
 *
 *   the child goes with the table (it owns it)           with
 *   the child has a policy of its own, or another owner  after: the row waits for it
 *   ON DELETE CASCADE                                    with
 *   ON DELETE SET NULL                                   detach
 *   anything else                                        detach where the columns may be NULL, else with
 *
 * Only what the schema itself would do, to rows that come and go, is done without being decided. */
#include <string.h>

#include "draft/internal.h"
#include "draft/words.h"

enum { DEEPEST = 6 };

static size_t number_of(const struct facts *f, const char *schema, const char *name)
{
    for (size_t i = 0; i < f->n_tables; i++) {
        const struct table *t = f->tables[i];
        bool same = !schema || !t->schema ? schema == t->schema : strcmp(schema, t->schema) == 0;
        if (same && strcmp(t->name, name) == 0)
            return i;
    }
    return SIZE_MAX;
}

static const struct table *child_of(const struct facts *f, const struct fkey *k)
{
    size_t i = number_of(f, k->child_schema, k->child_table);
    return i == SIZE_MAX ? NULL : f->tables[i];
}

static size_t index_of(const struct facts *f, const struct table *t)
{
    return number_of(f, t->schema, t->name);
}

/* --- owners ------------------------------------------------------------------------------------------------
 */

static bool all_not_null(const struct table *child, const struct fkey *k)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct column *c = column_named(child, k->child_columns[i]);
        if (!c || !c->not_null)
            return false;
    }
    return true;
}

static bool leads_key(const struct table *child, const struct fkey *k)
{
    if (child->n_key <= k->n)
        return false;
    for (size_t i = 0; i < k->n; i++) {
        bool found = false;
        for (size_t j = 0; j < k->n; j++)
            found |= strcmp(child->key[j]->name, k->child_columns[i]) == 0;
        if (!found)
            return false;
    }
    return true;
}

/* A row of the child is a part of the parent's row. */
static bool is_part(struct arena *a, const struct table *child, const struct table *parent,
                    const struct fkey *k)
{
    if (child == parent || !all_not_null(child, k) || words_are_queue(a, child->name))
        return false;
    return k->action == ON_DELETE_CASCADE || leads_key(child, k) ||
           words_extend(a, child->name, parent->name);
}

/* Whether `t` is, at some remove, owned by `by`. Ends: an owner is set only where this is false. */
static bool is_below(const struct draft_house *h, const struct table *t, const struct table *by)
{
    while (t && t != by)
        t = h->owner[index_of(h->facts, t)];
    return t == by;
}

static bool own_children(struct draft_house *h, const struct table *parent, const bool *keeps)
{
    bool any = false;
    for (size_t k = 0; k < parent->n_fkeys_in; k++) {
        const struct table *child = child_of(h->facts, &parent->fkeys_in[k]);
        size_t i = child ? index_of(h->facts, child) : 0;
        if (!child || h->owner[i] || keeps[i] || is_below(h, parent, child))
            continue;
        if (!is_part(h->draft->arena, child, parent, &parent->fkeys_in[k]))
            continue;
        h->owner[i] = parent;
        h->drafted[i] = false;
        any = true;
    }
    return any;
}

/* Ends since every round but the last gives some table an owner, and none loses one. A table whose owner has
 * no policy after all would go with nothing: owners must lead up to a policy. */
void draft_own(struct draft_house *h, const bool *keeps)
{
    bool any;
    do {
        any = false;
        for (size_t i = 0; i < h->facts->n_tables; i++)
            if (h->drafted[i] || h->owner[i])
                any |= own_children(h, h->facts->tables[i], keeps);
    } while (any);
}

/* --- references --------------------------------------------------------------------------------------------
 */

/* The way down from the policy's table. */
struct path {
    const struct table *table;
    const struct path *above;
    int depth;
};

static bool is_on_path(const struct path *p, const struct table *t)
{
    for (; p; p = p->above)
        if (p->table == t)
            return true;
    return false;
}

static bool may_be_emptied(const struct table *child, const struct fkey *k)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct column *c = column_named(child, k->child_columns[i]);
        if (c && !c->not_null && !c->generated && !table_is_key_column(child, c))
            return true;
    }
    return false;
}

static const char *fkey_title(struct arena *a, const struct fkey *k)
{
    return *k->name ? arena_printf(a, "%s, %s", k->name, on_delete_name(k->action))
                    : on_delete_name(k->action);
}

struct treatment {
    enum draft_role role;
    const char *because; /* behind the foreign key's title; "" if that says it */
    const char *doubt;   /* NULL: none */
};

static struct treatment judge_self(const struct table *t, const struct fkey *k)
{
    if (k->action == ON_DELETE_CASCADE)
        return (struct treatment){DRAFT_WITH, "the rows below go too",
                                  "whether all rows below a row that goes may go"};
    if (!may_be_emptied(t, k))
        return (struct treatment){DRAFT_AFTER, "a row waits for those below it", NULL};
    return (struct treatment){
        DRAFT_DETACH, "the rows below stay",
        k->action == ON_DELETE_SET_NULL ? NULL : "whether rows may lose the row above them"};
}

static struct treatment judge_child(const struct draft_house *h, const struct path *p,
                                    const struct table *child, const struct fkey *k)
{
    if (!child || p->depth >= DEEPEST)
        return (struct treatment){DRAFT_AFTER, "not looked at any further", "what becomes of these rows"};
    size_t i = index_of(h->facts, child);
    if (child == p->table)
        return judge_self(child, k);
    if (h->owner[i] == p->table)
        return (struct treatment){
            DRAFT_WITH, "they are part of the row",
            k->action == ON_DELETE_CASCADE ? NULL : "whether these rows may go with it"};
    if (h->drafted[i])
        return (struct treatment){DRAFT_AFTER, "they have a policy of their own", NULL};
    if (h->owner[i] || is_on_path(p, child))
        return (struct treatment){DRAFT_AFTER, "they go with other rows", NULL};
    if (k->action == ON_DELETE_CASCADE)
        return (struct treatment){DRAFT_WITH, "", NULL};
    bool empty = may_be_emptied(child, k);
    if (k->action == ON_DELETE_SET_NULL && empty)
        return (struct treatment){DRAFT_DETACH, "", NULL};
    if (empty)
        return (struct treatment){DRAFT_DETACH, "the column may be NULL",
                                  "whether these rows may lose it, or it waits for them (after)"};
    return (struct treatment){DRAFT_WITH, "the column may not be NULL",
                              "whether these rows may go with it, or it waits for them (after)"};
}

static const char *child_words(struct arena *a, const struct fkey *k)
{
    AUTO(text_release) struct text t = {0};
    text_addf(&t, "%s(", k->child_table);
    for (size_t i = 0; i < k->n; i++)
        text_addf(&t, "%s%s", i ? ", " : "", k->child_columns[i]);
    text_add(&t, ")");
    return arena_strdup(a, text_str(&t));
}

/* Two foreign keys over the same columns are one reference; the first speaks for both. */
static bool is_repeated(const struct table *t, size_t k)
{
    const struct fkey *x = &t->fkeys_in[k];
    for (size_t i = 0; i < k; i++) {
        const struct fkey *y = &t->fkeys_in[i];
        if (x->n != y->n || strcmp(x->child_table, y->child_table) != 0 ||
            (x->child_schema && strcmp(x->child_schema, y->child_schema) != 0))
            continue;
        size_t same = 0;
        while (same < x->n && strcmp(x->child_columns[same], y->child_columns[same]) == 0)
            same++;
        if (same == x->n)
            return true;
    }
    return false;
}

static void add_refs(const struct draft_house *h, struct draft_policy *p, const struct path *path,
                     struct draft_ref **ret, size_t *ret_n);

static void add_ref(const struct draft_house *h, struct draft_policy *p, const struct path *path,
                    const struct fkey *k, struct draft_ref *r)
{
    struct arena *a = h->draft->arena;
    const struct table *child = child_of(h->facts, k);
    struct treatment v = judge_child(h, path, child, k);
    const char *title = fkey_title(a, k);
    *r = (struct draft_ref){.role = v.role, .child = child, .fkey = k};
    r->why = *v.because ? arena_printf(a, "%s: %s", title, v.because) : title;
    if (v.doubt)
        draft_say(a, &p->decide, "%s: %s", child_words(a, k), v.doubt);
    else if (!child || !words_are_ephemeral(a, child->name))
        draft_say(a, &p->decide, "%s: %s", child_words(a, k),
                  v.role == DRAFT_AFTER ? "whether it should wait for these rows"
                                        : "these rows may be worth keeping");
    struct path below = {child, path, path->depth + 1};
    if (v.role == DRAFT_WITH && child != path->table)
        add_refs(h, p, &below, &r->below, &r->n_below);
}

static void add_refs(const struct draft_house *h, struct draft_policy *p, const struct path *path,
                     struct draft_ref **ret, size_t *ret_n)
{
    const struct table *t = path->table;
    struct draft_ref *list = arena_alloc(h->draft->arena, (t->n_fkeys_in + 1) * sizeof(*list));
    size_t n = 0;
    for (size_t k = 0; k < t->n_fkeys_in; k++)
        if (!is_repeated(t, k))
            add_ref(h, p, path, &t->fkeys_in[k], &list[n++]);
    *ret = list;
    *ret_n = n;
}

void draft_refs(const struct draft_house *h, struct draft_policy *p)
{
    struct path top = {p->table, NULL, 0};
    add_refs(h, p, &top, &p->refs, &p->n_refs);
}
