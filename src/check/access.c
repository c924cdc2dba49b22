/* access: may this user do what the plan does, does it see every row, and will the rows obey? */
#include "check/internal.h"

static int locking(const struct survey *s)
{
    return s->plan->facts->locking_takes_update ? NEED_UPDATE : 0;
}

/* What is done to a table, and where the contract first says so. 0: nothing. */
static int needs(const struct survey *s, const struct table *t, struct place *ret_at)
{
    int need = 0;
    if (t == s->plan->source) {
        need |= s->plan->source_locked ? NEED_SELECT | locking(s) : NEED_SELECT;
        *ret_at = s->plan->policy->orphan->of.at;
    }
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
        need |= NEED_SELECT | NEED_DELETE;
        need |= s->losers[i]->node->set >= 0 ? locking(s) : 0; /* rows are locked */
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

/* UPDATE is asked for because rows are locked, though none need be changed. */
static bool locks(const struct survey *s, const struct table *t, int need)
{
    if (!s->plan->facts->locking_takes_update)
        return false;
    return need & NEED_DELETE || (t == s->plan->source && s->plan->source_locked);
}

static void check_table(const struct survey *s, const struct table *t)
{
    struct arena *a = s->findings->arena;
    struct place at = {0};
    int need = needs(s, t, &at);
    int have = (t->may_select ? NEED_SELECT : 0) | (t->may_delete ? NEED_DELETE : 0) |
               (t->may_update ? NEED_UPDATE : 0);
    int lacks = need & ~have, vital = s->plan->facts->looks_on ? lacks & NEED_SELECT : lacks;
    if (vital) {
        const char *missing = privilege_words(a, vital);
        findings_add(s->findings, FINDING_ERROR, s->plan->policy->name, at,
                     grant_words(a, s->plan->facts, t, missing), "this user has no right to %s on %s%s",
                     missing, t->print,
                     vital & NEED_UPDATE && locks(s, t, need) ? " (locking rows takes UPDATE)" : "");
    } else if (lacks) {
        findings_add(s->findings, FINDING_NOTE, s->plan->policy->name, at, "",
                     "this user has no right to %s on %s: it looks on, and another role must sweep",
                     privilege_words(a, lacks), t->print);
    }
    if (need)
        check_engine(s->plan->facts, t, s->findings, s->plan->policy->name, at);
    if (need && t->rows_hidden)
        findings_add(s->findings, FINDING_ERROR, s->plan->policy->name, at,
                     "connect as the owner of the table, or as a user with BYPASSRLS",
                     "row security hides rows of %s from this user", t->print);
}

static void check_loser(const struct survey *s, const struct loser *l)
{
    const struct table *t = l->node->table;
    if (t->delete_hooks)
        findings_add(s->findings, FINDING_NOTE, s->plan->policy->name, l->at, "",
                     "%s of %s may keep a row from being deleted: lapse verifies it, and leaves such a row "
                     "whole",
                     hook_words(s->findings->arena, t), t->print);
    if (t->keeps_history)
        findings_add(s->findings, FINDING_WARNING, s->plan->policy->name, l->at,
                     "remove the history as well, with DELETE HISTORY FROM or by its partitions; or drop the "
                     "versioning",
                     "%s is system-versioned: a row that is deleted stays in the table as its history",
                     t->print);
    check_sight(s->plan->facts, t, s->findings, s->plan->policy->name, l->at);
    if (t->key_may_be_null)
        findings_add(s->findings, FINDING_NOTE, s->plan->policy->name, l->at,
                     "declare the key's columns NOT NULL to rule such rows out",
                     "the key of %s may be NULL: a row without a key is never touched", t->print);
}

void check_access(const struct survey *s)
{
    check_refused(s->plan->facts, s->findings, s->plan->policy->name, s->plan->policy->at);
    for (size_t i = 0; i < s->plan->facts->n_tables; i++)
        check_table(s, s->plan->facts->tables[i]);
    for (size_t i = 0; i < s->n_losers; i++)
        check_loser(s, s->losers[i]);
}
