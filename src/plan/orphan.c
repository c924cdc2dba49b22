/* orphan: rows whose source is gone. Part of plan: the condition that tells them, and whether the two
 * tables can be compared at all. What cannot be compared would make every row an orphan, so it is refused. */
#include "plan/internal.h"

#include <string.h>
#include <strings.h>

/* --- comparing ---------------------------------------------------------------------------------------- */

/* A number that both sides write the same way: SQLite's columns that prefer numbers are among them, since
 * what is no number stays the text it was, on both sides. */
static bool is_exact_number(const struct column *c)
{
    return c->type == TYPE_INTEGER || c->type == TYPE_NUMERIC || (c->type == TYPE_DYNAMIC && !c->any_class);
}

/* Texts that compare by rules of their own: padding does not count, or case. */
static bool is_odd_text(const struct column *c)
{
    size_t len = strlen(c->sql_type);
    return strcasecmp(c->sql_type, "bpchar") == 0 ||
           (len >= 6 && strcasecmp(c->sql_type + len - 6, "citext") == 0);
}

static bool is_array(const struct column *c)
{
    size_t len = strlen(c->sql_type);
    return len > 2 && strcmp(c->sql_type + len - 2, "[]") == 0;
}

/* Stricter than for a reference: there a row that is not found stays, here it goes. */
static bool safely_comparable(const struct column *a, const struct column *b)
{
    if (a->any_class || b->any_class || is_array(a) || is_array(b))
        return false;
    if (is_exact_number(a) && is_exact_number(b))
        return true;
    if (a->type != b->type)
        return false;
    bool same_name = strcasecmp(a->sql_type, b->sql_type) == 0;
    switch (a->type) {
    case TYPE_TEXT:
        return same_name || (!is_odd_text(a) && !is_odd_text(b));
    case TYPE_ENUM:
    case TYPE_OTHER:
    case TYPE_REAL:
        return same_name;
    default:
        return true;
    }
}

static const char *type_words(const struct column *c)
{
    return *c->sql_type ? c->sql_type : "without a type";
}

static void complain_types(struct making *m, const struct join *j, size_t i)
{
    const struct column *key = j->child[i], *by = j->parent[i];
    const char *fix = "give both columns the same type";
    if (key->any_class || by->any_class)
        fix = "declare both columns with the same type, such as INTEGER or TEXT: one without keeps '1' and 1 "
              "apart";
    complain(m, m->policy->orphan->at, fix,
             "'%s.%s' is %s and '%s.%s' is %s: they cannot be compared safely, and every row would pass for "
             "an orphan",
             m->plan->source->print, key->name, type_words(key), m->plan->root.table->print, by->name,
             type_words(by));
}

static bool same_collation(const struct facts *f, const struct column *a, const struct column *b)
{
    if (!a->collation || !b->collation)
        return !a->collation && !b->collation;
    return f->ignores_case ? strcasecmp(a->collation, b->collation) == 0
                           : strcmp(a->collation, b->collation) == 0;
}

static const char *collation_words(struct making *m, const struct column *c)
{
    return c->collation ? arena_printf(m->arena, "the collation %s", c->collation) : "the default collation";
}

static bool compares(struct making *m, const struct join *j)
{
    bool ok = true;
    for (size_t i = 0; i < j->n; i++) {
        const struct column *key = j->child[i], *by = j->parent[i];
        if (!safely_comparable(key, by)) {
            complain_types(m, j, i);
            ok = false;
        } else if (!same_collation(m->facts, key, by)) {
            complain(m, m->policy->orphan->at, "give both columns the same collation",
                     "'%s.%s' has %s and '%s.%s' has %s: they cannot be compared safely",
                     m->plan->source->print, key->name, collation_words(m, key), m->plan->root.table->print,
                     by->name, collation_words(m, by));
            ok = false;
        }
    }
    return ok;
}

/* --- the condition ------------------------------------------------------------------------------------ */

/* The source's key against the columns of the swept row. */
static bool resolve_source(struct making *m, struct join *ret)
{
    const struct orphan *o = m->policy->orphan;
    struct plan *p = m->plan;
    p->source = plan_find_table(m, &o->of.table);
    *ret = (struct join){.n = o->n_by};
    ret->child = arena_alloc(m->arena, ret->n * sizeof(*ret->child));
    ret->parent = arena_alloc(m->arena, ret->n * sizeof(*ret->parent));
    bool ok = p->source != NULL;
    for (size_t i = 0; i < ret->n; i++) {
        ret->child[i] = p->source ? plan_find_column(m, p->source, &o->of.columns[i], o->of.at) : NULL;
        ret->parent[i] =
            plan_find_column(m, p->root.table, &o->by[i], o->by[i].at.line ? o->by[i].at : o->at);
        ok &= ret->child[i] && ret->parent[i];
    }
    return ok && compares(m, ret);
}

static const struct expr *exists(struct making *m, const struct join *join, const struct expr *matching)
{
    struct expr *x = plan_expr(m, EXPR_EXISTS);
    x->table = m->plan->source;
    x->joins = join;
    x->n_joins = 1;
    plan_add_kid(m, x, matching);
    return x;
}

/* Every column is there, and no source row with that key (and, where it counts, one that matches). A source
 * that empties while the sweep runs orphans nothing. */
static const struct expr *orphaned(struct making *m)
{
    static const struct join no_columns = {0};
    const struct orphan *o = m->policy->orphan;
    const struct plan *p = m->plan;
    if (o->when == ORPHAN_NEVER)
        return plan_expr(m, EXPR_FALSE);
    struct expr *all = plan_expr(m, EXPR_AND);
    for (size_t i = 0; i < p->source_join.n; i++)
        plan_add_kid(m, all, plan_on_column(m, EXPR_NOT_NULL, p->source_join.parent[i]));
    const struct expr *matching = o->when == ORPHAN_DELETED_OR_UNMATCHED ? p->matching : NULL;
    plan_add_kid(m, all, plan_not_true(m, exists(m, &p->source_join, matching)));
    if (p->source_needed)
        plan_add_kid(m, all, exists(m, &no_columns, NULL));
    return all;
}

void plan_orphan(struct making *m)
{
    const struct orphan *o = m->policy->orphan;
    struct plan *p = m->plan;
    if (!o || !resolve_source(m, &p->source_join))
        return;
    if (o->matching)
        p->matching = plan_condition(m, p->source, o->matching);
    p->source_needed = !o->allow_empty && o->when != ORPHAN_NEVER;
    p->source_locked = o->when == ORPHAN_DELETED_OR_UNMATCHED;
    p->orphaned = orphaned(m);
    p->examines = p->judge_again = true;
    for (size_t i = 0; p->source_locked && i < p->source_join.n; i++)
        plan_carry(m, &p->root, p->source_join.parent[i]);
}
