/* plan: (policy, facts, now) -> what to erase and in what order. See plan.h.
 *
 * Everything here is resolution: what rows own becomes a tree of nodes, bounds become cutoffs (row.c has
 * names, values and conditions). What cannot be resolved is a finding; a plan with a finding is not made. */
#include "plan/internal.h"

#include <stdlib.h>
#include <string.h>

/* The plan as allocated: the zone is freed with it. */
struct plan_box {
    struct plan plan;
    struct zone *zone;
};

static size_t error_count(const struct making *m)
{
    return m->findings->errors;
}

/* --- references --------------------------------------------------------------------------------------- */

static bool same_table(const char *schema, const char *name, const struct table *t)
{
    return !strcmp(name, t->name) && (!schema || !t->schema || !strcmp(schema, t->schema));
}

/* The foreign key of exactly these child columns, in any order. */
static const struct fkey *fkey_of(const struct table *parent, const struct table *child,
                                  const struct column *const *columns, size_t n)
{
    for (size_t i = 0; i < parent->n_fkeys_in; i++) {
        const struct fkey *k = &parent->fkeys_in[i];
        if (k->n != n || !same_table(k->child_schema, k->child_table, child))
            continue;
        size_t found = 0;
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                found += !strcmp(k->child_columns[a], columns[b]->name);
        if (found == n)
            return k;
    }
    return NULL;
}

static const struct column *parent_column(const struct table *parent, const struct fkey *k,
                                          const struct column *child)
{
    for (size_t i = 0; i < k->n; i++)
        if (!strcmp(k->child_columns[i], child->name))
            return column_named(parent, k->parent_columns[i]);
    return NULL;
}

/* Two of these may be one as floating point, so that is no number among them. */
static bool is_exact_number(enum type_class t)
{
    return t == TYPE_INTEGER || t == TYPE_NUMERIC;
}

static bool comparable(const struct column *a, const struct column *b)
{
    if (a->type == TYPE_DYNAMIC || b->type == TYPE_DYNAMIC)
        return true;
    if (is_exact_number(a->type) && is_exact_number(b->type))
        return true;
    if (a->type != b->type)
        return false;
    return (a->type != TYPE_OTHER && a->type != TYPE_ENUM) || !strcmp(a->sql_type, b->sql_type);
}

static bool names_key_column(const struct table *parent, const struct column *c)
{
    for (size_t i = 0; i < parent->n_key; i++)
        if (strcmp(parent->key[i]->name, c->name) == 0)
            return true;
    return false;
}

/* Without a foreign key the columns stand for the key's by their order. The key's own names in another order
 * are a trap: the reference would find rows of other parents. */
static bool order_is_plain(struct making *m, const struct ref *ref, const struct table *parent,
                           const struct join *join)
{
    size_t named = 0, moved = 0;
    for (size_t i = 0; i < join->n; i++) {
        named += names_key_column(parent, join->child[i]);
        moved += strcmp(join->child[i]->name, parent->key[i]->name) != 0;
    }
    if (named < join->n || !moved)
        return true;
    AUTO(text_release) struct text print = {0};
    ref_print(ref, &print);
    complain(m, ref->at,
             arena_printf(m->arena, "say which columns are meant: %s -> (column, …)", text_str(&print)),
             "'%s' names the key of '%s' in another order than the key has", text_str(&print), parent->print);
    return false;
}

static bool targets_of(struct making *m, const struct ref *ref, const struct table *parent,
                       const struct table *child, struct join *join)
{
    const struct fkey *fkey = fkey_of(parent, child, join->child, join->n);
    if (!ref->n_targets && !fkey && parent->n_key != join->n) {
        AUTO(text_release) struct text print = {0};
        ref_print(ref, &print);
        complain(
            m, ref->at,
            arena_printf(m->arena, "say which columns it points at: %s -> (column, …)", text_str(&print)),
            "'%s' has %zu column%s, but the key of '%s' has %zu and no foreign key says otherwise",
            text_str(&print), join->n, join->n == 1 ? "" : "s", parent->print, parent->n_key);
        return false;
    }
    if (!ref->n_targets && !fkey && !order_is_plain(m, ref, parent, join))
        return false;
    for (size_t i = 0; i < join->n; i++) {
        join->parent[i] = ref->n_targets ? plan_find_column(m, parent, &ref->targets[i], ref->at)
                          : fkey         ? parent_column(parent, fkey, join->child[i])
                                         : parent->key[i];
        if (!join->parent[i])
            return false;
    }
    return true;
}

static const struct table *resolve_ref(struct making *m, const struct ref *ref, const struct table *parent,
                                       struct join *ret)
{
    const struct table *child = plan_find_table(m, &ref->table);
    if (!child)
        return NULL;
    struct join join = {.n = ref->n_columns};
    join.child = arena_alloc(m->arena, join.n * sizeof(*join.child));
    join.parent = arena_alloc(m->arena, join.n * sizeof(*join.parent));
    size_t before = error_count(m);
    for (size_t i = 0; i < join.n; i++)
        join.child[i] = plan_find_column(m, child, &ref->columns[i], ref->at);
    if (error_count(m) > before || !targets_of(m, ref, parent, child, &join))
        return NULL;
    for (size_t i = 0; i < join.n; i++) {
        if (comparable(join.child[i], join.parent[i]))
            continue;
        complain(m, ref->at, "point it at a column of the same type: -> (column)",
                 "'%s.%s' is %s and '%s.%s' is %s: they cannot be compared safely", child->print,
                 join.child[i]->name, join.child[i]->sql_type, parent->print, join.parent[i]->name,
                 join.parent[i]->sql_type);
        return NULL;
    }
    *ret = join;
    return child;
}

/* --- what goes with a row ---------------------------------------------------------------------------------
 */

void plan_carry(struct making *m, struct node *n, const struct column *c)
{
    for (size_t i = 0; i < n->n_carry; i++)
        if (n->carry[i] == c)
            return;
    n->carry = arena_push(m->arena, n->carry, n->n_carry, sizeof(*n->carry));
    n->carry[n->n_carry++] = c;
}

static void carry_parents(struct making *m, struct node *n, const struct join *join)
{
    for (size_t i = 0; i < join->n; i++)
        plan_carry(m, n, join->parent[i]);
}

static void add_detachment(struct making *m, struct node *n, const struct ref *ref)
{
    struct detachment d = {0};
    d.table = resolve_ref(m, ref, n->table, &d.join);
    if (!d.table)
        return;
    for (size_t i = 0; i < d.join.n; i++) {
        const struct column *c = d.join.child[i];
        if (c->not_null || c->generated || table_is_key_column(d.table, c))
            continue;
        d.emptied = arena_push(m->arena, d.emptied, d.n_emptied, sizeof(*d.emptied));
        d.emptied[d.n_emptied++] = c;
    }
    if (!d.n_emptied) {
        AUTO(text_release) struct text print = {0};
        ref_print(ref, &print);
        complain(m, ref->at, "use with (its rows go too) or after (wait until they are gone)",
                 "'%s' cannot be detached: its columns are NOT NULL, generated or part of its key",
                 text_str(&print));
        return;
    }
    carry_parents(m, n, &d.join);
    n->detach = arena_push(m->arena, n->detach, n->n_detach, sizeof(*n->detach));
    n->detach[n->n_detach++] = d;
}

static bool same_columns(const struct join *a, const struct join *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->child[i] != b->child[i])
            return false;
    return true;
}

/* What the subtree's rows own is listed beside the entry, where it holds for the row itself too; an entry of
 * its own below would leave out the row. Saying the same twice is harmless. */
static void check_self_entry(struct making *m, const struct node *n, const struct with *w,
                             const struct below *beside)
{
    for (size_t i = 0; i < w->n_with; i++) {
        struct join inner, outer;
        const struct table *t = resolve_ref(m, &w->with[i].ref, n->table, &inner);
        bool said = false;
        for (size_t k = 0; t && k < beside->n_with && !said; k++)
            said = facts_table(m->facts, &beside->with[k].ref.table) == t &&
                   resolve_ref(m, &beside->with[k].ref, n->table, &outer) == t &&
                   same_columns(&inner, &outer);
        if (t && !said)
            complain(m, w->with[i].ref.at,
                     "list it beside the entry: it then holds for every row of the subtree",
                     "'%s' is below an entry on the table itself", t->print);
    }
    if (w->n_detach || w->n_after)
        complain(m, w->ref.at, "list them beside the entry: they then hold for every row of the subtree",
                 "detach and after stand below an entry on the table itself");
}

static bool splits_below(const struct node *n)
{
    bool found = false;
    for (size_t i = 0; i < n->n_kids && !found; i++)
        found = n->kids[i].split || splits_below(&n->kids[i]);
    return found;
}

static bool has_below(const struct node *n, const struct table *t)
{
    bool found = n->table == t;
    for (size_t i = 0; i < n->n_kids && !found; i++)
        found = has_below(&n->kids[i], t);
    return found;
}

/* Where rows cannot go ahead of the row that owns them. */
static bool may_split(struct making *m, const struct with *w, const struct node *kid,
                      const struct node *owner)
{
    AUTO(text_release) struct text ref = {0};
    ref_print(&w->ref, &ref);
    const char *why = NULL, *fix = "take split out";
    if (w->split && kid->table == owner->table)
        why = "it is the subtree of the table itself, which goes whole";
    else if (w->split && m->policy->batch == BATCH_ALL) {
        why = "batch: null wants everything in one transaction";
        fix = "take split out, or give batch a number";
    } else if (w->split && has_below(kid, m->plan->root.table)) {
        why = "rows of the policy's own table go with these, and those are counted and go whole";
    } else if (kid->n_grow && (w->split || splits_below(kid))) {
        why = "these rows own a subtree of their own table, which goes whole";
    }
    if (why)
        complain(m, w->ref.at, fix, "'%s' cannot be split: %s", text_str(&ref), why);
    return !why;
}

static void add_below(struct making *m, struct node *n, const struct below *b);

static void add_with(struct making *m, struct node *n, const struct with *w, const struct below *beside)
{
    struct node kid = {.set = -1};
    kid.table = resolve_ref(m, &w->ref, n->table, &kid.join);
    if (!kid.table)
        return;
    carry_parents(m, n, &kid.join);
    if (w->where)
        kid.where = plan_condition(m, kid.table, w->where);
    if (kid.table == n->table) {
        check_self_entry(m, n, w, beside);
        may_split(m, w, &kid, n);
        struct join *grow = arena_push(m->arena, (void *)n->grow, n->n_grow, sizeof(*grow));
        grow[n->n_grow++] = kid.join;
        n->grow = grow;
        n->grow_where = arena_push(m->arena, n->grow_where, n->n_grow - 1, sizeof(*n->grow_where));
        n->grow_where[n->n_grow - 1] = kid.where;
        return;
    }
    struct below b = below_with(w);
    if (b.n_with || b.n_detach || b.n_after || w->split) {
        if (!plan_need_key(m, kid.table, w->ref.at))
            return;
        add_below(m, &kid, &b);
    }
    kid.split = w->split;
    m->plan->splits |= w->split;
    if (!may_split(m, w, &kid, n))
        return;
    n->kids = arena_push(m->arena, n->kids, n->n_kids, sizeof(*n->kids));
    n->kids[n->n_kids++] = kid;
}

static void add_after(struct making *m, struct node *n, const struct after *a)
{
    struct expr *x = plan_expr(m, EXPR_EXISTS);
    struct join *join = arena_alloc(m->arena, sizeof(*join));
    x->table = resolve_ref(m, &a->ref, n->table, join);
    x->joins = join;
    x->n_joins = 1;
    if (!x->table)
        return;
    if (a->where)
        plan_add_kid(m, x, plan_condition(m, x->table, a->where));
    n->after = arena_push(m->arena, n->after, n->n_after, sizeof(*n->after));
    n->after[n->n_after++] = x;
}

/* A row that is locked stays where it is, and there it is found faster than by its key; numbers, which come
 * in stretches, are as fast. Rows that are updated on the way move. */
static void carry_place(struct making *m, struct node *n)
{
    const struct table *t = n->table;
    bool by_number = t->n_key == 1 && t->key[0]->type == TYPE_INTEGER;
    if (t->place && !by_number && !t->delete_hooks && !n->n_grow && !n->n_detach)
        plan_carry(m, n, t->place);
}

static void add_below(struct making *m, struct node *n, const struct below *b)
{
    for (size_t i = 0; i < n->table->n_key; i++)
        plan_carry(m, n, n->table->key[i]);
    for (size_t i = 0; i < b->n_with; i++)
        add_with(m, n, &b->with[i], b);
    for (size_t i = 0; i < b->n_detach; i++)
        add_detachment(m, n, &b->detach[i]);
    for (size_t i = 0; i < b->n_after; i++)
        add_after(m, n, &b->after[i]);
    carry_place(m, n);
}

/* --- what a row waits for
 * ------------------------------------------------------------------------------------ */

static const struct expr *exists(struct making *m, const struct table *t, const struct join *join,
                                 const struct expr *kid)
{
    struct expr *x = plan_expr(m, EXPR_EXISTS);
    x->table = t;
    x->joins = join;
    x->n_joins = 1;
    plan_add_kid(m, x, kid);
    return x;
}

/* What must hold for a row of the swept table to go at all, at any age: it matches, is not held, has a time,
 * is not among the newest that stay and, for orphans, has no source. A row below a due one goes with it
 * however young it is, but not against this. */
static const struct expr *may_ever_go(struct making *m)
{
    const struct plan *p = m->plan;
    struct expr *all = plan_expr(m, EXPR_AND), *some = plan_expr(m, EXPR_OR);
    plan_add_kid(m, all, p->matches->kind == EXPR_TRUE ? NULL : p->matches);
    plan_add_kid(m, all, p->hold);
    plan_add_kid(m, all, p->orphaned);
    for (size_t i = 0; i < p->n_times; i++) {
        struct expr *readable = plan_expr(m, EXPR_TIME_READABLE);
        readable->time = p->times[i];
        plan_add_kid(m, all, readable);
        plan_add_kid(m, some, plan_on_column(m, EXPR_NOT_NULL, p->times[i].column));
    }
    plan_add_kid(m, all, plan_simplest(some));
    plan_add_kid(m, all, p->beyond);
    return plan_simplest(all);
}

static const struct expr *and_may_go(struct making *m, const struct expr *where)
{
    struct expr *allowed = plan_expr(m, EXPR_AND);
    plan_add_kid(m, allowed, where);
    plan_add_kid(m, allowed, may_ever_go(m));
    return plan_simplest(allowed);
}

/* For every way on which rows of the swept table go with others: in its own subtree, or owned by a dependent.
 * The same is asked again of each row below when it is locked: it may have changed since the root was judged.
 */
static void guard_own_rows(struct making *m, struct node *n)
{
    const struct table *own = m->plan->root.table;
    for (size_t i = 0; n->table == own && i < n->n_grow; i++)
        n->grow_where[i] = and_may_go(m, n->grow_where[i]);
    for (size_t i = 0; i < n->n_kids; i++) {
        if (n->kids[i].table == own)
            n->kids[i].where = and_may_go(m, n->kids[i].where);
        guard_own_rows(m, &n->kids[i]);
    }
}

/* True where a row of this node must wait: for an `after` row, for an owned row outside its `where`, or
 * because an owned row must wait. NULL: it never does. */
static const struct expr *waits(struct making *m, const struct node *n)
{
    struct expr *any = plan_expr(m, EXPR_OR);
    for (size_t i = 0; i < n->n_after; i++)
        plan_add_kid(m, any, n->after[i]);
    for (size_t i = 0; i < n->n_kids; i++) {
        const struct node *kid = &n->kids[i];
        struct expr *why = plan_expr(m, EXPR_OR);
        if (kid->where)
            plan_add_kid(m, why, plan_not_true(m, kid->where));
        plan_add_kid(m, why, waits(m, kid));
        if (why->n_kids)
            plan_add_kid(m, any, exists(m, kid->table, &kid->join, plan_simplest(why)));
    }
    for (size_t i = 0; i < n->n_grow; i++)
        if (n->grow_where[i])
            plan_add_kid(m, any, exists(m, n->table, &n->grow[i], plan_not_true(m, n->grow_where[i])));
    if (!any->n_kids || !n->n_grow)
        return plan_simplest(any);
    struct expr *below = plan_expr(m, EXPR_SUBTREE_EXISTS);
    below->table = n->table;
    below->joins = n->grow;
    below->n_joins = n->n_grow;
    plan_add_kid(m, below, plan_simplest(any));
    return below;
}

/* --- the bound
 * -------------------------------------------------------------------------------------------------- */

/* The latest usable of the columns cmp at, as conditions on each: NULL ones do not count, one must be there.
 */
static const struct expr *times_before(struct making *m, enum compare cmp, instant at)
{
    struct plan *p = m->plan;
    if (p->n_times == 1)
        return plan_compare_time(m, p->times[0], cmp, at);
    struct expr *all = plan_expr(m, EXPR_AND), *some = plan_expr(m, EXPR_OR);
    for (size_t i = 0; i < p->n_times; i++) {
        struct expr *one = plan_expr(m, EXPR_OR);
        plan_add_kid(m, one, plan_on_column(m, EXPR_IS_NULL, p->times[i].column));
        plan_add_kid(m, one, plan_compare_time(m, p->times[i], cmp, at));
        plan_add_kid(m, all, one);
        plan_add_kid(m, some, plan_on_column(m, EXPR_NOT_NULL, p->times[i].column));
    }
    plan_add_kid(m, all, some);
    return all;
}

static void add_cutoff(struct making *m, const char *value, bool never, instant at)
{
    struct plan *p = m->plan;
    p->cutoffs = arena_push(m->arena, p->cutoffs, p->n_cutoffs, sizeof(*p->cutoffs));
    p->cutoffs[p->n_cutoffs++] = (struct cutoff){value, never, at, NULL, NULL};
}

/* Older than span: the bound for it, and its cutoff for people. */
static const struct expr *older_than(struct making *m, struct span span, const char *value)
{
    instant at;
    bool never = span.kind == SPAN_NEVER || !sub_i64(m->plan->now, span.us, &at);
    add_cutoff(m, value, never, never ? 0 : at);
    return never ? plan_expr(m, EXPR_FALSE) : times_before(m, m->policy->inclusive ? CMP_LE : CMP_LT, at);
}

static const struct expr *latest_cutoff(struct making *m)
{
    const struct plan *p = m->plan;
    bool found = false;
    instant at = INT64_MIN;
    for (size_t i = 0; i < p->n_cutoffs; i++) {
        if (p->cutoffs[i].never)
            continue;
        found = true;
        at = p->cutoffs[i].at > at ? p->cutoffs[i].at : at;
    }
    return found ? times_before(m, m->policy->inclusive ? CMP_LE : CMP_LT, at) : NULL;
}

/* Whether values that are written differently are different values of the column. */
static bool takes_literally(const struct column *c)
{
    return c->type == TYPE_ENUM ||
           (c->type == TYPE_TEXT && !c->collation && !c->folds && strcasecmp(c->sql_type, "text") == 0);
}

/* 1 and 01, or a and A where case is ignored: a row must be old enough for each value that the column takes its
 * own for. bounds: per value; NULL: a finding says why. */
static void old_for_each(struct making *m, const struct column *c, const struct scalar *values,
                         const struct expr *const *bounds, size_t n, struct expr *bound)
{
    for (size_t i = 0; i < n; i++) {
        struct expr *one = plan_expr(m, EXPR_OR);
        const struct expr *taken = plan_one_of(m, c, &values[i], 1);
        if (!bounds[i] || !taken)
            continue;
        m->plan->cutoffs[i].taken = taken;
        plan_add_kid(m, one, plan_not_true(m, taken));
        plan_add_kid(m, one, bounds[i]);
        plan_add_kid(m, bound, one);
    }
}

/* The same for no text but these. */
static const struct expr *exactly(struct making *m, const struct expr *x)
{
    struct expr *copy = plan_expr(m, x->kind);
    *copy = *x;
    copy->equality = EQUALITY_EXACT;
    copy->kids = NULL;
    copy->n_kids = 0;
    for (size_t i = 0; i < x->n_kids; i++)
        plan_add_kid(m, copy, exactly(m, x->kids[i]));
    return copy;
}

/* A duration per value. The widest cutoff stands first, on its own: an index can serve that one. */
static const struct expr *keep_by(struct making *m)
{
    const struct keep *k = &m->policy->keep;
    const struct column *c = plan_find_column(m, m->plan->root.table, &k->column, k->at);
    if (!c)
        return NULL;
    size_t before = error_count(m);
    struct expr *any = plan_expr(m, EXPR_OR);
    struct scalar *all = arena_alloc(m->arena, (k->n_values ? k->n_values : 1) * sizeof(*all));
    const struct expr **bounds = arena_alloc(m->arena, (k->n_values ? k->n_values : 1) * sizeof(*bounds));
    for (size_t i = 0; i < k->n_values; i++) {
        all[i] = k->values[i].value;
        struct expr *one = plan_expr(m, EXPR_AND);
        plan_add_kid(m, one, plan_one_of(m, c, &all[i], 1));
        bounds[i] = older_than(m, k->values[i].span, all[i].null ? "null" : all[i].text);
        plan_add_kid(m, one, bounds[i]);
        m->plan->cutoffs[m->plan->n_cutoffs - 1].when = one->kids[0];
        plan_add_kid(m, any, one);
    }
    if (error_count(m) > before)
        return NULL;
    struct expr *rest = plan_expr(m, EXPR_AND);
    if (k->n_values)
        plan_add_kid(m, rest, plan_not_true(m, exactly(m, plan_one_of(m, c, all, k->n_values))));
    plan_add_kid(m, rest, older_than(m, k->span, NULL));
    plan_add_kid(m, any, rest);
    struct expr *bound = plan_expr(m, EXPR_AND);
    plan_add_kid(m, bound, latest_cutoff(m));
    plan_add_kid(m, bound, any);
    if (c->folds || c->pads || (k->n_values > 1 && !takes_literally(c)))
        old_for_each(m, c, all, bounds, k->n_values, bound);
    return bound;
}

static int64_t keep_unit(const struct keep *k, const struct column *c)
{
    static const struct {
        const char *suffix;
        int64_t us;
    } longer[] = {{"_seconds", US_PER_S},
                  {"_minutes", 60 * US_PER_S},
                  {"_hours", 3600 * US_PER_S},
                  {"_days", US_PER_DAY}};
    if (k->unit_us)
        return k->unit_us;
    for (size_t i = 0; i < COUNT_OF(longer); i++)
        if (plan_ends_with(c->name, longer[i].suffix))
            return longer[i].us;
    return plan_unit_of_suffix(c->name);
}

/* Each row says how long. No row can be due whose time is not in the past: that part an index can serve. */
static const struct expr *keep_column(struct making *m)
{
    const struct keep *k = &m->policy->keep;
    struct plan *p = m->plan;
    const struct column *c = plan_find_column(m, p->root.table, &k->column, k->at);
    if (!c)
        return NULL;
    if (c->type != TYPE_INTEGER && c->type != TYPE_DYNAMIC) {
        complain(m, k->at, "name a whole-number column", "column '%s' is %s, not a count of time", c->name,
                 c->sql_type);
        return NULL;
    }
    int64_t unit = keep_unit(k, c);
    if (!unit) {
        complain(m, k->at, "add a unit: keep: { column: …, unit: s }", "column '%s' has no unit", c->name);
        return NULL;
    }
    struct expr *all = plan_expr(m, EXPR_AND);
    plan_add_kid(m, all, times_before(m, CMP_LT, p->now));
    for (size_t i = 0; i < p->n_times; i++) {
        struct expr *x = plan_expr(m, EXPR_TIME_KEEP);
        x->time = p->times[i];
        x->cmp = m->policy->inclusive ? CMP_LE : CMP_LT;
        x->at = p->now;
        x->keep_column = c;
        x->keep_unit_us = unit;
        if (p->n_times == 1) {
            plan_add_kid(m, all, x);
            continue;
        }
        struct expr *one = plan_expr(m, EXPR_OR);
        plan_add_kid(m, one, plan_on_column(m, EXPR_IS_NULL, p->times[i].column));
        plan_add_kid(m, one, x);
        plan_add_kid(m, all, one);
    }
    return all;
}

static void no_bound(struct making *m)
{
    complain(m, m->policy->at, "give it one of: expires, age with keep",
             "policy '%s' has no bound that this version can run", m->policy->name);
}

/* The bound by age, or NULL after a finding. */
static const struct expr *age_bound(struct making *m)
{
    const struct policy *pol = m->policy;
    struct plan *p = m->plan;
    if (!p->n_times && pol->orphan) /* without grace */
        return plan_expr(m, EXPR_TRUE);
    if (!p->n_times) {
        no_bound(m);
        return NULL;
    }
    if (pol->expires.text) {
        add_cutoff(m, NULL, false, p->now);
        return plan_compare_time(m, p->times[0], CMP_LE, p->now);
    }
    switch (pol->keep.kind) {
    case KEEP_SPAN:
        return older_than(m, pol->keep.span, NULL);
    case KEEP_BY:
        return keep_by(m);
    case KEEP_COLUMN:
        return keep_column(m);
    case KEEP_NONE:
        break;
    }
    no_bound(m);
    return NULL;
}

/* Rows are judged again among the groups of those picked. An array cannot stand in a key set: such a column
 * does not narrow. */
static void carry_groups(struct making *m, const struct ranking *r)
{
    for (size_t i = 0; i < r->n_per; i++)
        if (!plan_ends_with(r->per[i]->sql_type, "[]"))
            plan_carry(m, &m->plan->root, r->per[i]);
}

/* A cap is its own bound; keep_newest takes from what is old enough. What ranks rows looks at many of them,
 * and others may change those until the rows are locked. */
static const struct expr *bound(struct making *m)
{
    const struct policy *pol = m->policy;
    struct plan *p = m->plan;
    const struct newest *n = pol->cap ? pol->cap : pol->keep_newest;
    const struct expr *old = pol->cap ? plan_expr(m, EXPR_TRUE) : age_bound(m);
    p->aged = old;
    if (!n || !old)
        return old;
    p->beyond = plan_beyond_newest(m, n);
    if (!p->beyond)
        return NULL;
    p->examines = p->judge_again = true;
    carry_groups(m, p->beyond->ranking);
    struct expr *both = plan_expr(m, EXPR_AND);
    plan_add_kid(m, both, pol->cap ? NULL : old);
    plan_add_kid(m, both, p->beyond);
    return plan_simplest(both);
}

static bool resolve_times(struct making *m)
{
    const struct policy *pol = m->policy;
    struct plan *p = m->plan;
    size_t n = pol->expires.text ? 1 : pol->n_age;
    bool ok = n || pol->orphan || pol->cap, counts = false;
    if (!ok)
        no_bound(m);
    p->times = arena_alloc(m->arena, (n ? n : 1) * sizeof(*p->times));
    for (size_t i = 0; i < n; i++) {
        ok &= plan_bound_column(m, pol->expires.text ? &pol->expires : &pol->age[i], &p->times[i]);
        counts |= ok && p->times[i].encoding == TIME_INTEGER;
    }
    p->n_times = n;
    bool for_source = pol->orphan && pol->orphan->matching; /* whose times may be counted in it */
    if (ok && n && pol->unit_us && !counts && !for_source) {
        complain(m, p->times[0].at, "take unit: out",
                 "unit: is said of a whole-number column, but '%s' is %s", p->times[0].column->name,
                 p->times[0].column->sql_type);
        return false;
    }
    return ok;
}

/* --- the cursor
 * --------------------------------------------------------------------------------------------------- */

/* How many values `rows` allows for a column: 0 when it does not speak of it, or allows NULL or a prefix. */
static size_t values_allowed(const struct making *m, const struct cond *rows, const struct column *c)
{
    size_t n = 0;
    if (!rows)
        return 0;
    for (size_t i = 0; rows->op == COND_ALL && i < rows->n_kids && !n; i++)
        n = values_allowed(m, rows->kids[i], c);
    if (rows->op != COND_IN || table_column(m->facts, m->plan->root.table, &rows->column) != c)
        return n;
    for (size_t i = 0; i < rows->n_values; i++)
        if (rows->values[i].null || rows->values[i].prefix)
            return 0;
    return rows->n_values;
}

/* The columns before the time in an index whose order a cursor can follow: those that `rows` allows several
 * values for. False: the index does not lead to the time. */
static bool leads_to_time(const struct making *m, const struct index *x, const struct column *time,
                          const struct column **before, size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_columns && !x->descends; i++) {
        const struct column *c = x->columns[i];
        if (c == time) {
            *ret_n = n;
            return !x->partial || table_index_on(m->plan->root.table, x->columns, i + 1) == x;
        }
        size_t values = c ? values_allowed(m, m->policy->rows, c) : 0;
        if (!values || (values > 1 && c->sorts_apart)) /* a cursor compares what was sorted */
            return false;
        if (values > 1)
            before[n++] = c;
    }
    return false;
}

static size_t place_in(const struct column *c, const struct column *const *list, size_t n)
{
    size_t i = 0;
    while (i < n && list[i] != c)
        i++;
    return i;
}

/* Rows of one time are to come in the order of the key: some engines sort all that is due for it, if what
 * stands behind the time in the index is something else. */
enum behind { BEHIND_KEY, BEHIND_NOTHING, BEHIND_OTHERS };
static enum behind behind_time(const struct index *x, const struct column *time, const struct table *t)
{
    size_t at = place_in(time, x->columns, x->n_columns), next = at + 1;
    for (size_t i = 0; i < t->n_key; i++) {
        if (place_in(t->key[i], x->columns, at + 1) <= at)
            continue;
        if (next == x->n_columns)
            return BEHIND_NOTHING;
        if (x->columns[next++] != t->key[i])
            return BEHIND_OTHERS;
    }
    return BEHIND_KEY;
}

static void order_by(struct making *m, const struct column *c)
{
    struct plan *p = m->plan;
    for (size_t i = 0; i < p->n_order; i++)
        if (p->order[i] == c)
            return;
    p->order = arena_push(m->arena, p->order, p->n_order, sizeof(*p->order));
    p->order[p->n_order++] = c;
}

/* A cap goes group by group, so that judging a batch again reads few groups, and from the oldest row of each.
 * A cursor cannot pass NULLs. */
static void order_by_rank(struct making *m, const struct ranking *r)
{
    for (size_t i = 0; i < r->n_per; i++)
        order_by(m, r->per[i]);
    for (size_t i = 0; i < r->n_newest; i++)
        order_by(m, r->newest[i].column);
}

/* The cursor follows an index on the time where there is one, so that every batch is a short range of it.
 * Without one it follows the key: the whole sweep is then one walk over the table instead of one per batch.
 */
static void choose_order(struct making *m)
{
    struct plan *p = m->plan;
    const struct table *t = p->root.table;
    size_t fewest = SIZE_MAX;
    enum behind behind = BEHIND_OTHERS;
    const struct column **best = NULL;
    for (size_t i = 0; p->n_times == 1 && i < t->n_indexes; i++) {
        const struct index *x = &t->indexes[i];
        const struct column **before = arena_alloc(m->arena, (x->n_columns + 1) * sizeof(*before));
        size_t n;
        if (!leads_to_time(m, x, p->times[0].column, before, &n))
            continue;
        enum behind b = behind_time(x, p->times[0].column, t);
        if (n < fewest || (n == fewest && b < behind)) {
            fewest = n;
            behind = b;
            best = before;
            p->index = x;
        }
    }
    if (best) {
        for (size_t i = 0; i < fewest; i++)
            order_by(m, best[i]);
        order_by(m, p->times[0].column);
        p->sorts = behind == BEHIND_OTHERS || (behind == BEHIND_NOTHING && !t->lies_by_key);
    }
    if (m->policy->cap && p->beyond && plan_ranks_in_order(p->beyond->ranking))
        order_by_rank(m, p->beyond->ranking);
    for (size_t i = 0; i < t->n_key; i++)
        order_by(m, t->key[i]);
    plan_say_walk(m);
}

/* --- numbering
 * ------------------------------------------------------------------------------------------------------ */

static size_t slot_of(struct making *m, const struct table ***slots, size_t *n, const struct table *t)
{
    for (size_t i = 0; i < *n; i++)
        if ((*slots)[i] == t)
            return i;
    *slots = arena_push(m->arena, *slots, *n, sizeof(**slots));
    (*slots)[*n] = t;
    return (*n)++;
}

static void number_nodes(struct making *m, struct node *n, bool root)
{
    struct plan *p = m->plan;
    if (root || n->n_kids || n->n_detach || n->n_grow)
        n->set = p->n_sets++;
    for (size_t i = 0; i < n->n_detach; i++)
        n->detach[i].slot = slot_of(m, &p->detach_slots, &p->n_detach_slots, n->detach[i].table);
    for (size_t i = 0; i < n->n_kids; i++)
        number_nodes(m, &n->kids[i], false);
    if (!root && n->table == p->root.table)
        return; /* counted with the root */
    n->slot = slot_of(m, &p->slots, &p->n_slots, n->table);
}

static void share_root_slot(struct node *n, const struct node *root)
{
    for (size_t i = 0; i < n->n_kids; i++) {
        if (n->kids[i].table == root->table)
            n->kids[i].slot = root->slot;
        share_root_slot(&n->kids[i], root);
    }
}

/* --- putting it together
 * ---------------------------------------------------------------------------------------------- */

static void make_matches(struct making *m)
{
    struct plan *p = m->plan;
    const struct policy *pol = m->policy;
    const struct table *t = p->root.table;
    struct expr *matches = plan_expr(m, EXPR_AND);
    p->rows = pol->rows ? plan_condition(m, t, pol->rows) : NULL;
    p->where = pol->where ? plan_condition(m, t, pol->where) : NULL;
    plan_add_kid(m, matches, p->rows);
    plan_add_kid(m, matches, p->where);
    for (size_t i = 0; t->key_may_be_null && i < t->n_key; i++)
        if (!t->key[i]->not_null)
            plan_add_kid(m, matches, plan_on_column(m, EXPR_NOT_NULL, t->key[i]));
    p->matches = matches->n_kids ? plan_simplest(matches) : plan_expr(m, EXPR_TRUE);
}

static void make_conditions(struct making *m)
{
    struct plan *p = m->plan;
    const struct policy *pol = m->policy;
    struct expr *due = plan_expr(m, EXPR_AND);
    if (pol->hold) {
        const struct expr *held = plan_condition(m, p->root.table, pol->hold);
        p->hold = held ? plan_not_true(m, held) : NULL;
    }
    guard_own_rows(m, &m->plan->root);
    const struct expr *waiting = waits(m, &p->root);
    if (waiting) {
        p->free_ = plan_not_true(m, waiting);
        p->judge_again = true;
    }
    plan_add_kid(m, due, p->timely && p->timely->kind == EXPR_TRUE ? NULL : p->timely);
    plan_add_kid(m, due, p->matches->kind == EXPR_TRUE ? NULL : p->matches);
    plan_add_kid(m, due, p->hold);
    plan_add_kid(m, due, p->orphaned);
    plan_add_kid(m, due, p->free_);
    p->due = due->n_kids ? plan_simplest(due) : plan_expr(m, EXPR_TRUE);
}

static void make(struct making *m)
{
    struct plan *p = m->plan;
    const struct policy *pol = m->policy;
    p->root.table = plan_find_table(m, &pol->table);
    if (!p->root.table || !plan_need_key(m, p->root.table, pol->table.at))
        return;
    struct below b = below_policy(pol);
    add_below(m, &p->root, &b);
    make_matches(m);
    if (resolve_times(m)) {
        p->timely = bound(m);
        choose_order(m);
    }
    plan_orphan(m);
    make_conditions(m);
    number_nodes(m, &p->root, true);
    share_root_slot(&p->root, &p->root);
    plan_partitions(m);
}

struct plan *plan_make(const struct policy *pol, const struct facts *f, instant now,
                       struct findings *findings)
{
    struct plan_box *box = mem_alloc(sizeof(*box));
    struct plan *p = &box->plan;
    p->arena = arena_new();
    p->policy = pol;
    p->facts = f;
    p->now = now;
    struct making m = {.plan = p, .arena = p->arena, .policy = pol, .facts = f, .findings = findings};
    size_t before = findings->errors;
    struct err e = ERR_INIT;
    if (zone_open(pol->zone, &box->zone, &e) < 0)
        findings_add(findings, FINDING_ERROR, pol->name, pol->at, "name a zone of the system's zoneinfo",
                     "%s", e.text);
    m.zone = zone_is_utc(box->zone) ? NULL : box->zone;
    if (findings->errors == before)
        make(&m);
    if (findings->errors == before)
        return p;
    plan_free(p);
    return NULL;
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    struct plan_box *box = (struct plan_box *)p;
    zone_free(box->zone);
    arena_free(p->arena);
    free(box);
}

void plan_free_p(struct plan **p)
{
    plan_free(*p);
    *p = NULL;
}

static bool is_table_below(const struct node *n, const struct table *t)
{
    for (size_t i = 0; i < n->n_kids; i++)
        if (n->kids[i].table == t || is_table_below(&n->kids[i], t))
            return true;
    return false;
}

bool plan_counts_alone(const struct plan *p)
{
    return !p->root.n_grow && !is_table_below(&p->root, p->root.table);
}

bool plan_goes_alone(const struct plan *p)
{
    return !p->root.n_grow && !p->root.n_kids && !p->root.n_detach;
}

bool plan_loses(const struct plan *p, const struct table *t)
{
    for (size_t i = 0; i < p->n_slots; i++)
        if (p->slots[i] == t)
            return true;
    return false;
}

/* The first name under which the contract knows the table; NULL: it names it nowhere below. */
static const struct table_name *name_below(const struct plan *p, const struct below *b, const struct table *t)
{
    for (size_t i = 0; i < b->n_with; i++) {
        const struct table_name *n = &b->with[i].ref.table;
        if (facts_table(p->facts, n) == t)
            return n;
        struct below deeper = below_with(&b->with[i]);
        if ((n = name_below(p, &deeper, t)))
            return n;
    }
    return NULL;
}

const char *plan_label(const struct plan *p, size_t slot, struct arena *a)
{
    AUTO(text_release) struct text name = {0};
    struct below b = below_policy(p->policy);
    if (slot == p->root.slot)
        return arena_strdup(a, p->policy->label);
    const struct table_name *written = name_below(p, &b, p->slots[slot]);
    if (!written)
        return arena_strdup(a, p->slots[slot]->print);
    table_name_print(written, &name);
    return arena_strdup(a, text_str(&name));
}

static void add_name(struct arena *a, struct table_names *names, const struct table_name *n)
{
    names->list = arena_push(a, names->list, names->n, sizeof(*names->list));
    names->list[names->n++] = n;
}

static void names_below(struct arena *a, struct table_names *names, const struct below *b)
{
    for (size_t i = 0; i < b->n_with; i++) {
        add_name(a, names, &b->with[i].ref.table);
        struct below under = below_with(&b->with[i]);
        names_below(a, names, &under);
    }
    for (size_t i = 0; i < b->n_detach; i++)
        add_name(a, names, &b->detach[i].table);
    for (size_t i = 0; i < b->n_after; i++)
        add_name(a, names, &b->after[i].ref.table);
}

void plan_tables(const struct policy *p, struct arena *a, struct table_names *names)
{
    add_name(a, names, &p->table);
    if (p->orphan)
        add_name(a, names, &p->orphan->of.table);
    struct below b = below_policy(p);
    names_below(a, names, &b);
}
