/* folding: texts that a column takes for one another. A row goes only if it has the very text that the
 * contract names; what else the column would find by it stays, or is kept longer, and that is worth saying. */
#include "check/internal.h"

#include <string.h>

struct folding {
    const struct plan *plan;
    struct store *store;
    struct findings *findings;
    const char *end; /* what becomes of such rows */
};

static const char *how_words(const struct column *c)
{
    if (!c->folds)
        return "blanks at the end do not count";
    return c->pads ? "case, accents or blanks at the end do not count" : "case or the like does not count";
}

/* Whether there are rows that the column finds by the first text, and that are none of them. */
static int look_for(const struct folding *f, const struct column *column, struct value *texts, size_t n,
                    struct place at, struct err *e)
{
    AUTO(text_release) struct text other = {0};
    bool found = false;
    if (f->store->ops->lookalike(f->store, f->plan->root.table, column, texts, n, &found, &other, e) < 0)
        return -1;
    if (found)
        findings_add(
            f->findings, FINDING_WARNING, f->plan->policy->name, at,
            arena_printf(f->findings->arena, "write '%s' as well if these rows are meant", text_str(&other)),
            "%s: there are rows with '%s', which the column takes for '%s' (%s: %s); they are not the same, "
            "so these rows %s",
            column->name, text_str(&other), texts[0].text,
            column->collation ? column->collation : column->sql_type, how_words(column), f->end);
    return 0;
}

/* Each text in turn against all of them: one that is written out is meant. */
static int check_texts(const struct folding *f, const struct column *c, const struct scalar *values, size_t n,
                       struct err *e)
{
    struct arena *a = f->findings->arena;
    struct value *texts = arena_alloc(a, (n + 1) * sizeof(*texts));
    struct place *at = arena_alloc(a, (n + 1) * sizeof(*at));
    size_t k = 0;
    if (!c || c->type != TYPE_TEXT || (!c->folds && !c->pads))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (!values[i].text || values[i].null || values[i].prefix)
            continue;
        const char *text = plan_text_of(a, c, values[i].text);
        at[k] = values[i].at;
        texts[k++] = (struct value){.kind = VALUE_TEXT, .text = text, .len = strlen(text)};
    }
    for (size_t i = 0; i < k; i++) {
        struct value first = texts[i];
        texts[i] = texts[0];
        texts[0] = first;
        if (look_for(f, c, texts, k, at[i], e) < 0)
            return -1;
    }
    return 0;
}

static int check_condition(const struct folding *f, const struct cond *c, struct err *e)
{
    for (size_t i = 0; c && i < c->n_kids; i++)
        if (check_condition(f, c->kids[i], e) < 0)
            return -1;
    if (!c || c->op != COND_IN)
        return 0;
    return check_texts(f, table_column(f->plan->facts, f->plan->root.table, &c->column), c->values,
                       c->n_values, e);
}

static int check_keep(const struct folding *f, const struct keep *k, struct err *e)
{
    if (k->kind != KEEP_BY)
        return 0;
    struct scalar *values = arena_alloc(f->findings->arena, (k->n_values + 1) * sizeof(*values));
    for (size_t i = 0; i < k->n_values; i++)
        values[i] = k->values[i].value;
    return check_texts(f, table_column(f->plan->facts, f->plan->root.table, &k->column), values, k->n_values,
                       e);
}

int check_lookalikes(const struct plan *p, struct store *s, struct findings *findings, struct err *e)
{
    struct folding f = {p, s, findings, "stay"};
    if (check_condition(&f, p->policy->rows, e) < 0 || check_condition(&f, p->policy->where, e) < 0)
        return -1;
    f.end = "are kept for the longer of its duration and otherwise";
    return check_keep(&f, &p->policy->keep, e);
}
