/* purge: one kind of instance as the sentences of its row. */
#include "page/internal.h"

#include <string.h>

/* "1 minute after an instance ended", "at once", "never" */
static const char *delay_words(struct arena *a, const struct span *s)
{
    if (s->kind == SPAN_NEVER)
        return "never";
    return s->us == 0 ? "as soon as it ended" : arena_printf(a, "%s after it ended", words_time(a, s->us));
}

static const char *reason_words(struct arena *a, const char *reason)
{
    return words_value(a, &(struct scalar){.text = reason});
}

static const char *reasons_words(struct arena *a, const char *const *reasons, size_t n, const char *last)
{
    const char **items = arena_alloc(a, (n + 1) * sizeof(*items));
    for (size_t i = 0; i < n; i++)
        items[i] = reason_words(a, reasons[i]);
    return words_list(a, items, n, last);
}

static const struct span *retention_of(const struct purge_space *s, const char *reason)
{
    for (size_t i = 0; i < s->n_retention; i++)
        if (strcmp(s->retention[i].reason, reason) == 0)
            return &s->retention[i].span;
    return NULL;
}

/* The plain delay matters unless every reason that is purged has one of its own. */
static bool uses_delay(const struct purge_space *s)
{
    for (size_t i = 0; i < s->n_only; i++)
        if (!retention_of(s, s->only[i]))
            return true;
    return s->n_only == 0;
}

static void say_when(struct arena *a, struct page_cell *cell, const struct purge_space *s)
{
    if (uses_delay(s))
        cell_add(a, cell, "An instance is purged %s.", delay_words(a, &s->delay));
    for (size_t i = 0; i < s->n_retention; i++)
        cell_add(a, cell, "If the reason is %s, %s.", reason_words(a, s->retention[i].reason),
                 delay_words(a, &s->retention[i].span));
    if (s->n_only)
        cell_add(a, cell, "Only if the reason is %s; for any other it is never purged.",
                 reasons_words(a, s->only, s->n_only, "or"));
}

static void say_erases(struct arena *a, struct page_cell *cell, const struct purge_space *s)
{
    for (size_t i = 0; i < s->n_erases; i++) {
        const struct erase *e = &s->erases[i];
        cell_add(a, cell, "%zu. The rows of %s whose %s is the instance%s%s.", i + 1,
                 words_table(a, &e->ref.table), words_columns(a, e->ref.columns, e->ref.n_columns, "and"),
                 e->keep ? ", but not those whose " : "", e->keep ? words_cond(a, e->keep) : "");
    }
}

static bool any_kept(const struct purge_space *s)
{
    for (size_t i = 0; i < s->n_erases; i++)
        if (s->erases[i].keep)
            return true;
    return false;
}

static void say_purge_safety(struct arena *a, struct page_cell *cell, const struct purge_space *s)
{
    cell_add(a, cell, "All of it goes in one transaction with the purge's own row, or stays.");
    if (any_kept(s))
        cell_add(a, cell, "Rows that are kept are never touched.");
    cell_add(a, cell,
             "The first end of an instance decides; one that is started again is cancelled and keeps its "
             "data.");
    cell_add(a, cell, "Until then the data can be read; a purge that is due is never lost.");
}

static void say_purge_observability(struct arena *a, struct page_cell *cell, const struct contract *c,
                                    const struct purge_space *s)
{
    const char *line = arena_printf(a, "[%s] Purged data for ID (REASON)", s->label);
    if (c->listen)
        cell_add(a, cell, "%s and %s.",
                 words_code(a, words_metric(a, "lapse_purges_total", "space", s->name, NULL)),
                 words_code(a, words_metric(a, "lapse_purges_pending", "space", s->name, NULL)));
    cell_add(a, cell, "%s in the log: %s.", words_code(a, "purge.executed"), words_code(a, line));
}

void purge_cells(struct arena *a, const struct contract *c, const struct purge_space *s,
                 struct page_cell ret[N_PURGE_CELLS])
{
    cell_add(a, &ret[CELL_SPACE], "%s", words_code(a, s->name));
    if (strcmp(s->label, s->name) != 0)
        cell_add(a, &ret[CELL_SPACE], "(%s)", words_clean(a, s->label));
    say_when(a, &ret[CELL_WHEN], s);
    say_erases(a, &ret[CELL_ERASES], s);
    say_purge_safety(a, &ret[CELL_PURGE_INVARIANT], s);
    say_purge_observability(a, &ret[CELL_PURGE_OBSERVABILITY], c, s);
}
