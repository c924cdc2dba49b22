/* check_plan: what a plan and the facts behind it say without asking the database again: privileges, row
 * security, collations, references without a foreign key, triggers; foreign keys and indexes have files of
 * their own. */
#include "check_parts.h"

#include <string.h>
#include <strings.h>

enum { NEED_SELECT = 1, NEED_DELETE = 2, NEED_UPDATE = 4 };

static const char *policy_name(const struct survey *s)
{
    return s->plan->policy->name;
}

/* --- access ----------------------------------------------------------------------------------------------
 */

/* What is done to a table, and where the contract first says so. 0: nothing. */
static int needs(const struct survey *s, const struct table *t, struct place *ret_at)
{
    int need = 0;
    for (size_t i = s->n_references; i-- > 0;) {
        const struct reference *r = &s->references[i];
        if (r->child != t)
            continue;
        need |= r->role == ROLE_DETACH ? NEED_SELECT | NEED_UPDATE : NEED_SELECT;
        *ret_at = r->at;
    }
    for (size_t i = s->n_losers; i-- > 0;) {
        if (s->losers[i]->node->table != t)
            continue;
        need |= NEED_SELECT | NEED_DELETE | NEED_UPDATE; /* rows are locked, which takes UPDATE */
        *ret_at = s->losers[i]->at;
    }
    return need;
}

static const char *privilege_words(struct arena *a, int privileges)
{
    AUTO(text_release) struct text out = {0};
    static const char *const names[] = {"SELECT", "DELETE", "UPDATE"};
    for (int i = 0; i < 3; i++)
        if (privileges & (1 << i))
            text_addf(&out, "%s%s", out.len ? ", " : "", names[i]);
    return arena_strdup(a, text_str(&out));
}

static void check_access(const struct survey *s, const struct table *t)
{
    struct arena *a = s->findings->arena;
    struct place at = {0};
    int need = needs(s, t, &at);
    int have = (t->may_select ? NEED_SELECT : 0) | (t->may_delete ? NEED_DELETE : 0) |
               (t->may_update ? NEED_UPDATE : 0);
    if (need & ~have) {
        const char *missing = privilege_words(a, need & ~have);
        AUTO(text_release) struct text grant = {0};
        text_addf(&grant, "GRANT %s ON ", missing);
        sql_table_words(&grant, t);
        text_add(&grant, " TO the user that lapse connects as");
        findings_add(s->findings, FINDING_ERROR, policy_name(s), at, text_str(&grant),
                     "this user has no right to %s on %s%s", missing, t->print,
                     need & ~have & NEED_UPDATE && need & NEED_DELETE ? " (locking rows takes UPDATE)" : "");
    }
    if (need && t->rows_hidden)
        findings_add(s->findings, FINDING_ERROR, policy_name(s), at,
                     "connect as the owner of the table, or as a user with BYPASSRLS",
                     "row security hides rows of %s from this user", t->print);
}

/* --- references --------------------------------------------------------------------------------------------
 */

static bool same_collation(const struct facts *f, const struct column *a, const struct column *b)
{
    if (!a->collation || !b->collation)
        return !a->collation && !b->collation;
    return f->ignores_case ? strcasecmp(a->collation, b->collation) == 0
                           : strcmp(a->collation, b->collation) == 0;
}

static const char *collation_words(const struct column *c)
{
    return c->collation ? c->collation : "the default";
}

static void check_collations(const struct survey *s, const struct reference *r)
{
    const char *words = reference_words(s->findings->arena, r);
    for (size_t i = 0; i < r->join.n; i++) {
        const struct column *child = r->join.child[i], *parent = r->join.parent[i];
        if (same_collation(s->plan->facts, child, parent))
            continue;
        findings_add(s->findings, FINDING_ERROR, policy_name(s), r->at,
                     "give both columns the same collation, or take the reference out",
                     "%s: %s has the collation %s, but %s of %s has %s: rows could match that do not belong "
                     "together",
                     words, child->name, collation_words(child), parent->name, r->parent->node->table->print,
                     collation_words(parent));
    }
}

static bool is_protected(const struct reference *r)
{
    const struct table *parent = r->parent->node->table;
    for (size_t i = 0; i < parent->n_fkeys_in; i++)
        if (fkey_is_from(&parent->fkeys_in[i], r->child) &&
            fkey_protects_join(&parent->fkeys_in[i], &r->join))
            return true;
    return false;
}

static void check_protection(const struct survey *s, const struct reference *r)
{
    if (is_protected(r))
        return;
    findings_add(s->findings, FINDING_NOTE, policy_name(s), r->at,
                 "add a foreign key if such rows may be inserted while their parent is due",
                 "%s has no foreign key to %s: a row inserted while its parent is being deleted is not "
                 "protected and stays behind",
                 reference_words(s->findings->arena, r), r->parent->node->table->print);
}

static void check_detach_hooks(const struct survey *s, const struct reference *r)
{
    if (r->role != ROLE_DETACH || !r->child->update_hooks)
        return;
    findings_add(s->findings, FINDING_NOTE, policy_name(s), r->at, "",
                 "triggers or rules of %s may keep a row from being detached: lapse verifies it, and leaves "
                 "what the row refers to",
                 r->child->print);
}

/* --- tables that lose rows
 * ----------------------------------------------------------------------------------- */

static void check_loser(const struct survey *s, const struct loser *l)
{
    const struct table *t = l->node->table;
    if (t->delete_hooks)
        findings_add(s->findings, FINDING_NOTE, policy_name(s), l->at, "",
                     "triggers or rules of %s may keep a row from being deleted: lapse verifies it, and "
                     "leaves such a row whole",
                     t->print);
    if (t->key_may_be_null)
        findings_add(s->findings, FINDING_NOTE, policy_name(s), l->at,
                     "declare the key's columns NOT NULL to rule such rows out",
                     "the key of %s may be NULL: a row without a key is never touched", t->print);
}

void check_plan(const struct plan *p, bool thorough, struct findings *findings)
{
    struct survey s = survey_of(p, findings);
    check_fkeys(&s);
    for (size_t i = 0; i < p->facts->n_tables; i++)
        check_access(&s, p->facts->tables[i]);
    for (size_t i = 0; i < s.n_references; i++) {
        check_collations(&s, &s.references[i]);
        check_protection(&s, &s.references[i]);
        check_detach_hooks(&s, &s.references[i]);
    }
    for (size_t i = 0; i < s.n_losers; i++)
        check_loser(&s, s.losers[i]);
    if (thorough)
        check_indexes(&s);
}
