/* server: what speaks against deleting here at all: how the server logs, how a table is kept, foreign
 * keys that this user cannot see. */
#include "check/internal.h"

#include <string.h>

void check_refused(const struct facts *f, struct findings *findings, const char *policy, struct place at)
{
    if (f->refused)
        findings_add(findings, FINDING_ERROR, policy, at, f->refused_fix, "%s", f->refused);
}

/* Without transactions what a row owns could be gone when the row itself must stay after all. */
void check_engine(const struct facts *f, const struct table *t, struct findings *findings, const char *policy,
                  struct place at)
{
    if (!t->unsafe_engine)
        return;
    AUTO(text_release) struct text table = {0};
    sql_table_words(&table, f, t);
    findings_add(findings, FINDING_ERROR, policy, at,
                 arena_printf(findings->arena, "ALTER TABLE %s %s", text_str(&table), f->engine_fix),
                 "%s is kept by the storage engine %s, whose rows cannot be locked or rolled back here",
                 t->print, t->unsafe_engine);
}

static bool is_said(const struct findings *findings, const char *what)
{
    for (size_t i = 0; i < findings->n; i++)
        if (strcmp(findings->list[i].what, what) == 0)
            return true;
    return false;
}

/* A child in the parent's own schema is the rule, and a row of it that cascaded unseen would be gone. One in
 * another is rare, but cannot be ruled out; that is said once. */
void check_sight(const struct facts *f, const struct table *t, struct findings *findings, const char *policy,
                 struct place at)
{
    static const char elsewhere[] =
        "foreign keys of tables in other databases, on which this user has no right, cannot be seen: what "
        "they "
        "refer to would be deleted, and their rows with it where they say ON DELETE CASCADE";
    if (t->fkeys_seen == SIGHT_SOME)
        findings_add(findings, f->looks_on ? FINDING_WARNING : FINDING_ERROR, policy, at, f->sight_fix,
                     "this user sees only some tables of %s: another may refer to %s, and its rows would be "
                     "deleted or changed silently",
                     t->schema, t->print);
    else if (t->fkeys_seen == SIGHT_SCHEMA && !is_said(findings, elsewhere))
        findings_add(findings, FINDING_WARNING, NULL, (struct place){0}, f->sight_fix, "%s", elsewhere);
}

const char *hook_words(struct arena *a, const struct table *t)
{
    if (t->hooks_hidden)
        return "triggers (this user cannot see whether there are any)";
    return t->hooks ? arena_printf(a, "triggers (%s)", t->hooks) : "triggers or rules";
}
