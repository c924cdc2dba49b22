/* coverage: tables of the database that nothing in the contract bounds. */
#include "check/internal.h"

#include <string.h>

#include "schema/bounded.h"
#include "base/quote.h"

struct listing {
    const struct contract *contract;
    const struct facts *facts; /* how names match */
    const struct table_name *tables;
    size_t n;
};

static bool is_default_schema(const struct facts *f, const char *schema)
{
    return !schema || (f->default_schema && strcmp(schema, f->default_schema) == 0);
}

/* Where the default schema has no table of that name, an unqualified name stands for any other. */
static bool bare_name_means(const struct listing *in, const struct name *n, const struct table_name *t)
{
    if (!name_matches(in->facts, n, t->table.text))
        return false;
    if (is_default_schema(in->facts, t->schema.text))
        return true;
    for (size_t i = 0; i < in->n; i++)
        if (is_default_schema(in->facts, in->tables[i].schema.text) &&
            name_matches(in->facts, n, in->tables[i].table.text))
            return false;
    return true;
}

static bool name_means(const struct listing *in, const struct table_name *n, const struct table_name *t)
{
    if (!n->schema.text)
        return bare_name_means(in, &n->table, t);
    const char *schema = t->schema.text ? t->schema.text : "main"; /* as SQLite calls it */
    return name_matches(in->facts, &n->schema, schema) && name_matches(in->facts, &n->table, t->table.text);
}

/* --- policies and purges ---------------------------------------------------------------------------------
 */

static bool with_names(const struct listing *in, const struct with *list, size_t n,
                       const struct table_name *t)
{
    for (size_t i = 0; i < n; i++)
        if (name_means(in, &list[i].ref.table, t) || with_names(in, list[i].with, list[i].n_with, t))
            return true;
    return false;
}

static bool policy_names(const struct listing *in, const struct table_name *t)
{
    for (size_t i = 0; i < in->contract->n_policies; i++) {
        const struct policy *p = &in->contract->policies[i];
        if (name_means(in, &p->table, t) || with_names(in, p->with, p->n_with, t))
            return true;
    }
    return false;
}

static bool purge_names(const struct listing *in, const struct table_name *t)
{
    for (size_t i = 0; i < in->contract->n_purges; i++) {
        const struct purge_space *space = &in->contract->purges[i];
        for (size_t k = 0; k < space->n_erases; k++)
            if (name_means(in, &space->erases[k].ref.table, t))
                return true;
    }
    return false;
}

/* --- unbounded --------------------------------------------------------------------------------------------
 */

/* The next part of a dotted name, bare or in double quotes; *rest goes behind its dot, or to NULL. */
static struct name take_part(struct arena *a, const char **rest)
{
    const char *s = *rest;
    struct name part = {.quoted = *s == '"' && strchr(s + 1, '"')};
    if (!part.quoted) {
        size_t len = strcspn(s, ".");
        part.text = arena_strndup(a, s, len);
        *rest = s[len] ? s + len + 1 : NULL;
        return part;
    }
    AUTO(text_release) struct text name = {0};
    for (s++; *s && (*s != '"' || s[1] == '"'); s++) {
        text_add_n(&name, s, 1);
        s += *s == '"'; /* doubled */
    }
    part.text = arena_strdup(a, text_str(&name));
    s += strcspn(s, ".");
    *rest = *s ? s + 1 : NULL;
    return part;
}

/* `table`, `schema.table`, or either with a word behind it, as in channel_outbox.sent. */
static bool unbounded_means(const struct listing *in, const struct unbounded *u, const struct table_name *t,
                            struct arena *a)
{
    if (strcmp(u->name, t->table.text) == 0)
        return true;
    const char *rest = u->name;
    struct table_name bare = {.table = take_part(a, &rest)};
    if (name_means(in, &bare, t))
        return true;
    if (!rest)
        return false;
    struct table_name qualified = {.schema = bare.table, .table = take_part(a, &rest)};
    return name_means(in, &qualified, t);
}

static bool unbounded_names(const struct listing *in, const struct table_name *t, struct arena *a)
{
    for (size_t i = 0; i < in->contract->n_unbounded; i++)
        if (unbounded_means(in, &in->contract->unbounded[i], t, a))
            return true;
    return false;
}

/* As the contract may write it: with its schema, and without. */
static const char *nearest_table(const struct listing *in, const char *word, struct arena *a)
{
    const char **words = arena_alloc(a, 2 * in->n * sizeof(*words));
    for (size_t i = 0; i < in->n; i++) {
        struct table_name bare = {.table = in->tables[i].table};
        words[2 * i] = table_words(a, &bare);
        words[2 * i + 1] = table_words(a, &in->tables[i]);
    }
    const char *near = nearest_word(word, words, 2 * in->n);
    const char *dot = strchr(word, '.');
    if (!near && dot)
        near = nearest_word(arena_strndup(a, word, (size_t)(dot - word)), words, 2 * in->n);
    return near;
}

/* What a draft leaves to decide is no reason. */
static bool is_undecided(const struct unbounded *u)
{
    return strcmp(u->why, "?") == 0;
}

static void check_unbounded(const struct listing *in, const struct unbounded *u, bool strict,
                            struct findings *findings)
{
    struct arena *a = findings->arena;
    if (is_undecided(u))
        findings_add(findings, strict ? FINDING_ERROR : FINDING_WARNING, NULL, u->at,
                     "write why it cannot grow, or give it a policy", "unbounded '%s' does not say why",
                     u->name);
    for (size_t i = 0; i < in->n; i++)
        if (unbounded_means(in, u, &in->tables[i], a))
            return;
    const char *near = nearest_table(in, u->name, a);
    findings_add(
        findings, FINDING_WARNING, NULL, u->at,
        near ? arena_printf(a, "did you mean '%s'?", near) : "take the line out, or correct the name",
        "unbounded '%s' names no table", u->name);
}

/* --- the verdict
 * -------------------------------------------------------------------------------------------- */

static bool is_own(const struct table_name *t)
{
    return strncmp(t->table.text, "lapse_", strlen("lapse_")) == 0;
}

static bool is_open(const struct listing *in, const struct table_name *t, struct arena *a)
{
    return !is_own(t) && !policy_names(in, t) && !purge_names(in, t) && !unbounded_names(in, t, a);
}

/* A table that cannot grow needs only to be named as such: the line is ready. */
static void say_open(const struct facts *f, const struct table_name *t, bool strict,
                     struct findings *findings)
{
    size_t before = findings->n;
    struct arena *a = findings->arena;
    const struct table *known = facts_table(f, t);
    const char *name = table_words(a, t), *why = known ? table_bounded_by(f, known, a) : NULL;
    enum finding_level level = strict ? FINDING_ERROR : FINDING_NOTE;
    if (!why) {
        findings_add(findings, level, NULL, (struct place){0},
                     arena_printf(a, "add a policy, or unbounded: { %s: why it cannot grow }", name),
                     "table '%s' has no policy and no unbounded line", name);
        findings->list[before].unnamed = true;
        return;
    }
    AUTO(text_release) struct text line = {0};
    yaml_scalar(&line, name, false);
    text_add(&line, ": ");
    yaml_scalar(&line, why, false);
    findings_add(findings, level, NULL, (struct place){0},
                 arena_printf(a, "it cannot grow; add to unbounded the line  %s", text_str(&line)),
                 "table '%s' has no policy and no unbounded line", name);
    findings->list[before].unnamed = true;
}

void coverage_open(const struct contract *c, const struct facts *f, const struct table_name *tables, size_t n,
                   struct arena *a, struct table_names *open)
{
    struct listing in = {c, f, tables, n};
    for (size_t i = 0; i < n; i++) {
        if (!is_open(&in, &tables[i], a))
            continue;
        open->list = arena_push(a, open->list, open->n, sizeof(*open->list));
        open->list[open->n++] = &tables[i];
    }
}

void coverage_judge(const struct contract *c, const struct facts *f, const struct table_name *tables,
                    size_t n_tables, bool strict, struct findings *findings)
{
    struct listing in = {c, f, tables, n_tables};
    struct table_names open = {0};
    if (!c->n_policies && !c->n_purges)
        findings_add(findings, FINDING_WARNING, NULL, (struct place){0},
                     "decide on the policies of the draft, or write one",
                     "the contract has no policies: a sweep deletes nothing");
    coverage_open(c, f, tables, n_tables, findings->arena, &open);
    for (size_t i = 0; i < open.n; i++)
        say_open(f, open.list[i], strict, findings);
    for (size_t i = 0; i < c->n_unbounded; i++)
        check_unbounded(&in, &c->unbounded[i], strict, findings);
}
