/* folding: texts that a column's collation takes for one another. A row goes only if it has the very
 * text that the contract names; what else the column would find by it stays, and that is worth saying. */
#include "check/internal.h"

#include <string.h>

struct folding {
    const struct plan *plan;
    struct store *store;
    struct findings *findings;
};

static const char *how_words(const struct column *c)
{
    if (!c->folds)
        return "blanks at the end do not count";
    return c->pads ? "case, accents or blanks at the end do not count" : "case or accents do not count";
}

static int look_for(const struct folding *f, const struct cond *c, const struct column *column,
                    struct value *values, size_t n, struct err *e)
{
    AUTO(text_release) struct text other = {0};
    bool found = false;
    if (f->store->ops->lookalike(f->store, f->plan->root.table, column, values, n, &found, &other, e) < 0)
        return -1;
    if (!found)
        return 0;
    struct place at = c->at;
    for (size_t i = 0; i < c->n_values; i++)
        if (c->values[i].text && strcmp(c->values[i].text, values[0].text) == 0)
            at = c->values[i].at;
    findings_add(
        f->findings, FINDING_WARNING, f->plan->policy->name, at,
        arena_printf(f->findings->arena, "write '%s' as well if these rows are meant", text_str(&other)),
        "%s: there are rows with '%s', which the column takes for '%s' (%s: %s); they are not the same, "
        "so these rows stay",
        column->name, text_str(&other), values[0].text, column->collation, how_words(column));
    return 0;
}

/* Each value in turn against all of them: one that is written out is meant. */
static int check_values(const struct folding *f, const struct cond *c, const struct column *column,
                        struct err *e)
{
    struct value *values = arena_alloc(f->findings->arena, (c->n_values + 1) * sizeof(*values));
    size_t n = 0;
    for (size_t i = 0; i < c->n_values; i++)
        if (c->values[i].text && !c->values[i].null && !c->values[i].prefix)
            values[n++] = (struct value){
                .kind = VALUE_TEXT, .text = c->values[i].text, .len = strlen(c->values[i].text)};
    for (size_t i = 0; i < n; i++) {
        struct value first = values[i];
        values[i] = values[0];
        values[0] = first;
        if (look_for(f, c, column, values, n, e) < 0)
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
    const struct column *column = table_column(f->plan->facts, f->plan->root.table, &c->column);
    if (!column || column->type != TYPE_TEXT || (!column->folds && !column->pads))
        return 0;
    return check_values(f, c, column, e);
}

int check_lookalikes(const struct plan *p, struct store *s, struct findings *findings, struct err *e)
{
    const struct folding f = {p, s, findings};
    return check_condition(&f, p->policy->rows, e) < 0 ? -1 : check_condition(&f, p->policy->where, e);
}
