/* purge: what a purge erases against the schema: names and types (by making the plan), foreign keys
 * into the tables that lose rows, their order, rows that are kept, indexes, privileges. */
#include "check/internal.h"

#include <string.h>

#include "contract/policy_hash.h"

struct looking {
    const struct purge_plan *plan;
    struct findings *findings;
    const char *name;
};

static const char *entry_words(const struct looking *l, const struct erasing *x)
{
    const struct reference r = {.child = x->table,
                                .join = {.child = (const struct column **)&x->column, .n = 1}};
    return reference_words(l->findings->arena, &r);
}

/* --- foreign keys ----------------------------------------------------------------------------------------
 */

/* Whatever refers to a row of that instance is of the instance itself. */
static bool is_of_same_instance(const struct fkey *k, const struct erasing *child,
                                const struct erasing *parent)
{
    const struct join j = {(const struct column **)&child->column, (const struct column **)&parent->column,
                           1};
    return join_covers_fkey(&j, k);
}

static bool acts_silently(const struct fkey *k)
{
    return k->action != ON_DELETE_NO_ACTION && k->action != ON_DELETE_RESTRICT;
}

static void say_named_nowhere(const struct looking *l, const struct erasing *parent, const struct fkey *k)
{
    struct arena *a = l->findings->arena;
    findings_add(l->findings, FINDING_ERROR, l->name, parent->at,
                 arena_printf(a, "add its table to erases, before %s, by the column that holds the instance",
                              entry_words(l, parent)),
                 "%s refers to %s (%s) and is named nowhere", fkey_words(a, k), parent->table->print,
                 on_delete_name(k->action));
}

/* The child's entry against the parent's: before it, without rows that stay, and of the same instance. */
static void check_pair(const struct looking *l, size_t child, size_t parent, const struct fkey *k)
{
    struct arena *a = l->findings->arena;
    const struct erasing *c = &l->plan->erases[child], *p = &l->plan->erases[parent];
    if (child > parent)
        findings_add(l->findings, FINDING_ERROR, l->name, c->at,
                     arena_printf(a, "write %s before %s", entry_words(l, c), entry_words(l, p)),
                     "%s is erased after %s, to which it refers (%s)", c->table->print, p->table->print,
                     on_delete_name(k->action));
    else if (c->keep && (child != parent || acts_silently(k)))
        findings_add(l->findings, FINDING_ERROR, l->name, c->at,
                     arena_printf(a,
                                  child == parent
                                      ? "keep nothing of %s, or change the foreign key to ON DELETE NO ACTION"
                                      : "keep nothing of %s, or take %s out of erases",
                                  c->table->print, entry_words(l, p)),
                     "rows of %s that are kept refer to rows of %s that are erased (%s)", c->table->print,
                     p->table->print, on_delete_name(k->action));
    else if (!is_of_same_instance(k, c, p) && acts_silently(k))
        findings_add(
            l->findings, FINDING_ERROR, l->name, p->at, "change the foreign key to ON DELETE NO ACTION",
            "%s refers to %s (%s) by other columns than the instance's: rows of other instances would "
            "be changed silently",
            fkey_words(a, k), p->table->print, on_delete_name(k->action));
}

static void check_fkey(const struct looking *l, size_t parent, const struct fkey *k)
{
    bool named = false;
    for (size_t i = 0; i < l->plan->n; i++)
        if (fkey_is_from(k, l->plan->erases[i].table)) {
            check_pair(l, i, parent, k);
            named = true;
        }
    if (!named)
        say_named_nowhere(l, &l->plan->erases[parent], k);
}

/* --- one entry -------------------------------------------------------------------------------------------
 */

/* By two columns a row may be of the instance twice. */
static void check_two(const struct looking *l, size_t one, size_t other)
{
    const struct erase *said = l->plan->space->erases;
    const struct erasing *x = &l->plan->erases[one], *y = &l->plan->erases[other];
    const struct erasing *keeps = x->keep ? x : y, *erases = x->keep ? y : x;
    if (x->column == y->column)
        findings_add(l->findings, FINDING_ERROR, l->name, y->at, "write it once",
                     "%s is twice in erases: what one of them keeps, the other would erase",
                     entry_words(l, y));
    else if (!cond_same(said[one].keep, said[other].keep))
        findings_add(l->findings, FINDING_ERROR, l->name, erases->at, "give both the same keep",
                     "a row that %s keeps, %s would erase", entry_words(l, keeps), entry_words(l, erases));
}

static void check_twice(const struct looking *l, size_t at)
{
    const struct erasing *x = &l->plan->erases[at];
    for (size_t i = 0; i < at; i++)
        if (l->plan->erases[i].table == x->table)
            check_two(l, i, at);
}

static void check_not_own(const struct looking *l, const struct erasing *x)
{
    if (strcmp(x->table->name, "lapse_purge") == 0)
        findings_add(l->findings, FINDING_ERROR, l->name, x->at, "leave it out",
                     "a row of %s goes with the purge that it asks for", x->table->print);
}

static void check_rights(const struct looking *l, const struct erasing *x)
{
    const struct table *t = x->table;
    const char *missing = t->may_select   ? (t->may_delete ? NULL : "DELETE")
                          : t->may_delete ? "SELECT"
                                          : "SELECT, DELETE";
    bool looks_on = l->plan->facts->looks_on && t->may_select;
    if (missing)
        findings_add(l->findings, looks_on ? FINDING_NOTE : FINDING_ERROR, l->name, x->at,
                     grant_words(l->findings->arena, l->plan->facts, t, missing),
                     "this user has no right to %s on %s", missing, t->print);
    if (t->rows_hidden)
        findings_add(l->findings, FINDING_ERROR, l->name, x->at,
                     "connect as the owner of the table, or as a user with BYPASSRLS",
                     "row security hides rows of %s from this user", t->print);
}

static void check_advice(const struct looking *l, const struct erasing *x)
{
    const struct column *column = x->column;
    const struct plan as = {.facts = l->plan->facts};
    const struct survey survey = {.plan = &as, .findings = l->findings};
    if (!table_index_on(x->table, &column, 1))
        findings_add(l->findings, FINDING_WARNING, l->name, x->at, index_words(&survey, x->table, &column, 1),
                     "no index of %s leads with %s: each batch of purges reads the whole table",
                     x->table->print, column->name);
    if (x->table->delete_hooks)
        findings_add(l->findings, FINDING_NOTE, l->name, x->at, "",
                     "%s of %s may keep a row from being deleted: lapse verifies it, and leaves such an "
                     "instance whole",
                     hook_words(l->findings->arena, x->table), x->table->print);
}

static void check_purge_path(const struct looking *l, bool thorough)
{
    struct path_use u = {0};
    for (size_t i = 0; i < l->plan->n; i++) {
        const struct erasing *x = &l->plan->erases[i];
        path_use_table(&u, l->findings->arena, x->table, x->table->delete_trigger, x->at);
        path_use_sql(&u, x->keep);
    }
    check_path(&u, l->plan->facts, thorough, l->findings, l->name);
}

void check_purge_plan(const struct purge_plan *p, bool thorough, struct findings *findings)
{
    const struct looking l = {p, findings, purge_finding_name(findings->arena, p->space)};
    check_refused(p->facts, findings, l.name, p->space->at);
    for (size_t i = 0; i < p->n; i++) {
        const struct erasing *x = &p->erases[i];
        check_twice(&l, i);
        check_not_own(&l, x);
        check_rights(&l, x);
        check_engine(p->facts, x->table, findings, l.name, x->at);
        check_sight(p->facts, x->table, findings, l.name, x->at);
        for (size_t k = 0; k < x->table->n_fkeys_in; k++)
            check_fkey(&l, i, &x->table->fkeys_in[k]);
        if (thorough)
            check_advice(&l, x);
    }
    check_purge_path(&l, thorough);
}

/* --- the space -------------------------------------------------------------------------------------------
 */

/* A text that the column's character set cannot hold, and whatever else only the database can tell: else it
 * would be found when the first purge is due. */
static int check_kept(const struct purge_plan *p, struct store *s, struct findings *findings, struct err *e)
{
    const char *name = purge_finding_name(findings->arena, p->space);
    for (size_t i = 0; i < p->n; i++) {
        const struct erasing *x = &p->erases[i];
        struct err refused = ERR_INIT;
        if (s->ops->purges->accepts(s, p, x, &refused) == 0)
            continue;
        if (refused.kind != ERR_DATABASE && refused.kind != ERR_USAGE && refused.kind != ERR_REFUSED) {
            if (e)
                *e = refused;
            return -1;
        }
        findings_add(findings, FINDING_ERROR, name, p->space->erases[i].keep->at, "correct the condition",
                     "the database does not accept what is kept of %s: %s", x->table->print, refused.text);
    }
    return 0;
}

int check_purge(const struct purge_space *space, struct store *s, instant now, bool thorough,
                struct findings *findings, struct purge_plan **ret_plan, struct facts **ret_facts,
                struct err *e)
{
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(purge_plan_free_p) struct purge_plan *plan = NULL;
    struct table_names names = {0};
    size_t errors = findings->errors, before = findings->n;
    purge_tables(space, findings->arena, &names);
    if (s->ops->inspect(s, &names, &facts, e))
        return -1;
    check_role(s, facts);
    if (space->notify && !s->ops->hear)
        findings_add(findings, FINDING_ERROR, purge_finding_name(findings->arena, space), space->at,
                     "leave notify out: lapse run looks every second",
                     "notify: %s has no notifications that lapse could listen to", s->ops->scheme);
    plan = purge_plan_make(space, facts, now, findings);
    if (plan)
        check_purge_plan(plan, thorough, findings);
    else if (check_suggest_tables(s, facts, &names, findings, before, e))
        return -1;
    if (thorough && findings->errors == errors && check_kept(plan, s, findings, e) < 0)
        return -1;
    if (findings->errors > errors)
        return 0;
    *ret_plan = plan;
    *ret_facts = facts;
    plan = NULL;
    facts = NULL;
    return 0;
}
