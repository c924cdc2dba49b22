/* report: what a command found or did. The data; json.c and text.c show it. */
#include "report/report.h"

#include <string.h>

#include "base/quote.h"

struct report *report_new(enum report_kind kind, const char *command)
{
    struct arena *a = arena_new();
    struct report *r = arena_alloc(a, sizeof(*r));
    r->arena = a;
    r->kind = kind;
    r->command = command ? arena_strdup(a, command) : NULL;
    r->findings.arena = a;
    return r;
}

void report_free(struct report *r)
{
    if (r)
        arena_free(r->arena);
}

struct report_policy *report_add_policy(struct report *r, const struct policy *p)
{
    r->policies = arena_push(r->arena, r->policies, r->n_policies, sizeof(*r->policies));
    struct report_policy *added = &r->policies[r->n_policies++];
    *added = (struct report_policy){.policy = p};
    AUTO(text_release) struct text name = {0};
    table_name_print(&p->table, &name);
    added->table = arena_strdup(r->arena, text_str(&name));
    return added;
}

void report_add_fact(struct report *r, struct report_fact fact)
{
    r->facts = arena_push(r->arena, r->facts, r->n_facts, sizeof(*r->facts));
    r->facts[r->n_facts++] = fact;
}

int64_t report_rows(const struct report_policy *p)
{
    return p->n_tables ? p->gone[p->n_tables - 1] : 0;
}

bool report_uncounted(const struct report_policy *p)
{
    return !p->counted && (p->kind == OUTCOME_FAILED || p->kind == OUTCOME_STOPPED);
}

const char *report_label(const struct report_policy *p, size_t slot)
{
    if (slot + 1 >= p->n_tables)
        return p->policy->label;
    return p->labels ? p->labels[slot] : p->tables[slot];
}

bool report_ran(const struct report_policy *p)
{
    for (size_t i = 0; i < p->n_tables; i++)
        if (p->gone[i])
            return true;
    return p->kind != OUTCOME_REFUSED && p->kind != OUTCOME_DISABLED && p->kind != OUTCOME_PAUSED &&
           p->kind != OUTCOME_HELD && p->kind != OUTCOME_WINDOW;
}

bool report_in_trouble(const struct report_policy *p)
{
    return p->kind == OUTCOME_FAILED || p->kind == OUTCOME_REFUSED || p->kind == OUTCOME_FUSE ||
           p->n_skipped || p->unknown;
}

void report_place(const struct report *r, struct place at, struct text *out)
{
    text_add(out, r->file ? r->file : r->contract ? r->contract->file : "contract");
    if (at.line > 0)
        text_addf(out, ":%d:%d", at.line, at.column);
}

void report_levels(const struct findings *f, size_t ret_count[3])
{
    memset(ret_count, 0, 3 * sizeof(*ret_count));
    for (size_t i = 0; i < f->n; i++)
        ret_count[f->list[i].level]++;
}

size_t report_utf8(const char *s)
{
    return utf8_length(s);
}
