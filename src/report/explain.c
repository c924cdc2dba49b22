/* explain: why a row is due or not, for people. Part of report. */
#include <string.h>

#include "report/screen.h"

enum { VALUE_MOST = 60 }; /* columns of a value that are shown */

/* Something of the row may be long and have lines: one line of it, cut. */
static const char *short_text(const struct screen *v, const char *s)
{
    const char *line = clean(v, s);
    if (columns(line) <= VALUE_MOST)
        return line;
    size_t len = 0;
    for (int room = VALUE_MOST - 1; room > 0; room--)
        len += report_utf8(line + len);
    return arena_printf(v->arena, "%.*s%s", (int)len, line, v->cut);
}

static const char *instant_text(const struct screen *v, instant at)
{
    char buf[WHEN_TEXT_SIZE];
    return arena_strdup(v->arena, when_format(at, buf));
}

/* "1718452800000 = 2024-06-15T12:00:00Z"; once where both are the same. */
static const char *value_text(const struct screen *v, const struct explain_line *l)
{
    const char *at = l->has_at ? instant_text(v, l->at) : NULL;
    if (!l->has_value)
        return at ? at : "";
    AUTO(text_release) struct text t = {0};
    if (at)
        value_print(&l->value.value, &t);
    else
        explain_value_print(l->value.type, &l->value.value, &t);
    const char *stored = short_text(v, text_str(&t));
    if (!at)
        return stored;
    bool same = l->value.type == TYPE_TIMESTAMPTZ || strcmp(stored, at) == 0;
    return same ? at : arena_printf(v->arena, "%s = %s", stored, at);
}

/* "2 rows: id=7, id=9" */
static const char *rows_text(const struct screen *v, const struct explain_line *l)
{
    AUTO(text_release) struct text t = {0};
    if (!l->total)
        return "none";
    text_add(&t, count(v, l->total, "row", "rows"));
    for (size_t i = 0; i < l->n_keys; i++) {
        const char *key = short_text(v, l->keys[i]);
        bool many = strchr(key, ',') != NULL;
        text_addf(&t, "%s%s%s%s", i ? ", " : ": ", many ? "(" : "", key, many ? ")" : "");
    }
    if (l->n_keys && (int64_t)l->n_keys < l->total)
        text_add(&t, ", …");
    return arena_strdup(v->arena, text_str(&t));
}

static const char *rank_text(const struct screen *v, const struct explain_line *l)
{
    return l->rank ? arena_printf(v->arena, "rank %s of %s", number(v, l->rank), number(v, l->ranked)) : "";
}

/* "due in 3h 12m (2026-11-16T10:12:00Z)" */
static const char *due_in(const struct screen *v, instant now, instant at)
{
    int64_t us;
    if (!sub_i64(at, now, &us))
        return arena_printf(v->arena, "due at %s", instant_text(v, at));
    return arena_printf(v->arena, "due in %s (%s)", duration(v, us), instant_text(v, at));
}

static const char *said_text(const struct screen *v, const struct report *r, const struct explain_line *l)
{
    int64_t us;
    if (!l->reason || !l->later || !sub_i64(l->due_at, r->now, &us) || us <= 0)
        return clean(v, l->said);
    return arena_printf(v->arena, "due in %s (%s)", duration(v, us), utc(v, l->due_at));
}

static enum style style_of(const struct explain_line *l)
{
    return l->reason ? l->later ? YELLOW : RED : l->depth ? DIM : PLAIN;
}

static void add_line(const struct screen *v, const struct report *r, struct grid *g,
                     const struct explain_line *l, bool same_part)
{
    grid_row(g, style_of(l),
             (const char *[CELLS_MOST]){
                 arena_printf(v->arena, "  %s", same_part ? "" : l->part),
                 arena_printf(v->arena, "%*s%s", l->depth * 2, "", short_text(v, l->demand)),
                 l->counts  ? rows_text(v, l)
                 : l->ranks ? rank_text(v, l)
                            : value_text(v, l),
                 said_text(v, r, l)});
}

/* A terminal too narrow for a line each: the condition, and below it the value and what is said of it. */
static void show_narrow(const struct screen *v, const struct grid *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const char *const *cells = g->lines[i].cells;
        const char *head = arena_printf(v->arena, "%-9s ", cells[0]);
        put(v, g->lines[i].style, head, strlen(head));
        put_text(v, g->lines[i].style, cells[1], columns(head), 12);
        const char *what =
            arena_printf(v->arena, "%s%s%s", cells[2], *cells[2] && *cells[3] ? ": " : "", cells[3]);
        fprintf(v->out, "%12s", "");
        put_text(v, g->lines[i].style, what, 12, 12);
    }
}

static void show_lines(const struct screen *v, const struct report *r, const struct explanation *x)
{
    struct grid g = {.arena = v->arena, .n_columns = 4};
    int widths[CELLS_MOST];
    for (size_t i = 0; i < x->n_lines; i++)
        add_line(v, r, &g, &x->lines[i], i && strcmp(x->lines[i - 1].part, x->lines[i].part) == 0);
    if (v->width && grid_measure(&g, widths) > v->width)
        show_narrow(v, &g);
    else
        grid_print(v, &g);
}

/* Two columns outside `rows` are one reason. */
static bool said_before(const struct explanation *x, size_t line)
{
    for (size_t i = 0; i < line; i++)
        if (x->lines[i].reason && strcmp(x->lines[i].reason, x->lines[line].reason) == 0)
            return true;
    return false;
}

static const char *headline(const struct screen *v, const struct report *r, const struct explanation *x)
{
    AUTO(text_release) struct text why = {0};
    for (size_t i = 0; i < x->n_lines; i++)
        if (x->lines[i].reason && !said_before(x, i))
            list_add(&why, clean(v, x->lines[i].reason));
    switch (x->kind) {
    case DUE_NOW:
        return "due now";
    case DUE_LATER:
        return due_in(v, r->now, x->due_at);
    case DUE_NOT:
    case DUE_NEVER:
        break;
    }
    return arena_printf(v->arena, "%s%s%s", x->kind == DUE_NEVER ? "never due as it is" : "not due",
                        why.len ? ": " : "", text_str(&why));
}

static void list_tables(const struct screen *v, struct text *t, const char **names, const int64_t *rows,
                        size_t n, const char *one, const char *many)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i])
            list_add(t, arena_printf(v->arena, "%s %s", count(v, rows[i], one, many), clean(v, names[i])));
}

/* Of the row's own table, itself does not count. */
static const char *goes_text(const struct screen *v, const struct explanation *x)
{
    AUTO(text_release) struct text t = {0};
    int64_t below = x->n_tables ? x->gone[x->n_tables - 1] - 1 : 0;
    list_tables(v, &t, x->tables, x->gone, x->n_tables ? x->n_tables - 1 : 0, "row of", "rows of");
    if (below > 0)
        list_add(&t, arena_printf(v->arena, "%s %s", count(v, below, "more row of", "more rows of"),
                                  clean(v, x->table)));
    list_tables(v, &t, x->detach_tables, x->detached, x->n_detach_tables, "reference emptied in",
                "references emptied in");
    return t.len ? arena_strdup(v->arena, text_str(&t)) : "nothing";
}

static void show_policy(const struct screen *v, const struct report_policy *p)
{
    put_line(v, RED,
             arena_printf(v->arena, "policy %s: %s", clean(v, p->policy->name), outcome_name(p->kind)));
    if (p->error)
        put_remark(v, RED, "why", p->error);
}

void show_explain(const struct screen *v, const struct report *r)
{
    const struct explanation *x = r->explanation;
    if (!x && r->n_policies && !r->error)
        show_policy(v, &r->policies[0]);
    if (!x)
        return;
    enum style styles[] = {[DUE_NOW] = GREEN, [DUE_LATER] = YELLOW, [DUE_NOT] = BOLD, [DUE_NEVER] = BOLD};
    const char *head = arena_printf(v->arena, "%s %s, policy %s: ", clean(v, x->table),
                                    short_text(v, x->key_text), clean(v, r->policies[0].policy->name));
    put(v, BOLD, head, strlen(head));
    put_text(v, styles[x->kind], headline(v, r, x), columns(head), 2);
    show_lines(v, r, x);
    put_remark(v, DIM, x->kind == DUE_NOW ? "goes with it" : "would go with it", goes_text(v, x));
}
