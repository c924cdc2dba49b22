/* search_path: may others create objects where names in triggers and in SQL text are looked up? */
#include "check/internal.h"

#include <string.h>

static const struct expr *first_sql(const struct expr *x)
{
    const struct expr *found = x && x->kind == EXPR_SQL ? x : NULL;
    for (size_t i = 0; x && !found && i < x->n_kids; i++)
        found = first_sql(x->kids[i]);
    return found;
}

void path_use_sql(struct path_use *u, const struct expr *x)
{
    const struct expr *sql = u->what ? NULL : first_sql(x);
    if (!sql)
        return;
    u->what = "SQL text";
    u->at = sql->at_place;
}

void path_use_table(struct path_use *u, struct arena *a, const struct table *t, const char *trigger,
                    struct place at)
{
    u->tables = arena_push(a, u->tables, u->n_tables, sizeof(*u->tables));
    u->tables[u->n_tables++] = t;
    if (!trigger || u->what)
        return;
    u->what = arena_printf(a, "trigger %s of %s", trigger, t->print);
    u->at = at;
}

/* --- who may create there ------------------------------------------------------------------------- */

static bool has_line(const char *lines, const char *line)
{
    size_t len = strlen(line);
    for (; lines && *lines; lines = strchr(lines, '\n') + 1)
        if (strncmp(lines, line, len) == 0 && lines[len] == '\n')
            return true;
    return false;
}

/* Who owns one of the tables can have code run when its rows are deleted, whatever the search path is. */
static bool is_other(const struct path_use *u, const struct path_schema *x)
{
    for (size_t i = 0; i < u->n_tables; i++)
        if (u->tables[i]->owner && has_line(x->acts_as, u->tables[i]->owner))
            return false;
    return x->who != NULL;
}

/* Entries of one schema follow each other. */
static size_t end_of_schema(const struct facts *f, size_t from)
{
    size_t end = from + 1;
    while (end < f->n_path && strcmp(f->path[end].name, f->path[from].name) == 0)
        end++;
    return end;
}

/* "PUBLIC, mallory" */
static void others_in(const struct path_use *u, const struct facts *f, size_t from, size_t end,
                      struct text *ret, bool *ret_owner)
{
    *ret_owner = false;
    for (size_t i = from; i < end; i++) {
        if (!is_other(u, &f->path[i]))
            continue;
        text_addf(ret, "%s%s", ret->len ? ", " : "", f->path[i].who);
        *ret_owner = *ret_owner || f->path[i].owner;
    }
}

/* What of the path nobody else may create in. */
static void safe_path(const struct path_use *u, const struct facts *f, struct text *ret)
{
    for (size_t i = 0, end; i < f->n_path; i = end) {
        AUTO(text_release) struct text who = {0};
        bool owner;
        end = end_of_schema(f, i);
        others_in(u, f, i, end, &who, &owner);
        if (f->path[i].there && !who.len)
            text_addf(ret, "%s%s", ret->len ? ", " : "", f->path[i].name);
    }
    if (!ret->len)
        text_add(ret, "pg_catalog");
}

/* --- what is said of it --------------------------------------------------------------------------- */

static const char *fix_of(const struct path_use *u, const struct facts *f, struct arena *a,
                          const struct path_schema *x, const char *who, bool owner)
{
    AUTO(text_release) struct text path = {0}, revoke = {0};
    safe_path(u, f, &path);
    if (x->there && !owner) /* from an owner nothing can be revoked for good */
        text_addf(&revoke, "REVOKE CREATE ON SCHEMA %s FROM %s; or ", x->name, who);
    else if (!x->there)
        text_addf(&revoke, "CREATE SCHEMA %s; or ", x->name);
    return arena_printf(a, "%sALTER ROLE %s SET search_path = %s", text_str(&revoke), f->role,
                        text_str(&path));
}

static bool is_said(const struct findings *findings, const char *what)
{
    for (size_t i = 0; i < findings->n; i++)
        if (strcmp(findings->list[i].what, what) == 0)
            return true;
    return false;
}

static void say_open(const struct path_use *u, const struct facts *f, struct findings *findings,
                     const char *policy, const struct path_schema *x, const char *who, bool owner)
{
    const char *fix = fix_of(u, f, findings->arena, x, who, owner);
    const char *others = arena_printf(findings->arena, "others (%s) may create %s%s", who,
                                      x->there ? "objects in schema " : "the schema ", x->name);
    if (u->what) {
        findings_add(findings, FINDING_ERROR, policy, u->at, fix,
                     "%s looks names up on the search path of this user, where %s: their operators and "
                     "functions would run with this user's rights",
                     u->what, others);
        return;
    }
    const char *what = arena_printf(findings->arena,
                                    "%s, which is on the search path of this user: a trigger or SQL text "
                                    "would run their operators and functions with this user's rights",
                                    others);
    if (!is_said(findings, what))
        findings_add(findings, FINDING_WARNING, NULL, (struct place){0}, fix, "%s", what);
}

void check_path(const struct path_use *u, const struct facts *f, bool thorough, struct findings *findings,
                const char *policy)
{
    if (!u->what && !thorough)
        return;
    for (size_t i = 0, end; i < f->n_path; i = end) {
        AUTO(text_release) struct text who = {0};
        bool owner;
        end = end_of_schema(f, i);
        others_in(u, f, i, end, &who, &owner);
        if (who.len)
            say_open(u, f, findings, policy, &f->path[i], text_str(&who), owner);
    }
}

/* --- a policy ------------------------------------------------------------------------------------- */

void check_policy_path(const struct survey *s, bool thorough)
{
    const struct plan *p = s->plan;
    struct path_use u = {0};
    for (size_t i = 0; i < s->n_losers; i++) {
        const struct node *n = s->losers[i]->node;
        path_use_table(&u, s->findings->arena, n->table, n->table->delete_trigger, s->losers[i]->at);
    }
    for (size_t i = 0; i < s->n_references; i++) {
        const struct reference *r = &s->references[i];
        if (r->role == ROLE_DETACH)
            path_use_table(&u, s->findings->arena, r->child, r->child->update_trigger, r->at);
    }
    path_use_sql(&u, p->due);
    path_use_sql(&u, p->matching);
    for (size_t i = 0; i < s->n_losers; i++)
        path_use_sql(&u, s->losers[i]->node->where);
    check_path(&u, p->facts, thorough, s->findings, p->policy->name);
}
