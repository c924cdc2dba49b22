/* page: the sections of the operators' page, and how a page that was read differs from the one that should
 * be. */
#include "page/internal.h"

#include <string.h>

static struct page_section *add_section(struct page *p, const char *title)
{
    struct page_section *s = &p->sections[p->n_sections++];
    s->title = title;
    return s;
}

static struct page_section *add_table(struct page *p, const char *title, const char *const *columns,
                                      size_t n_columns, size_t n_rows)
{
    struct page_section *s = add_section(p, title);
    s->columns = columns;
    s->n_columns = n_columns;
    s->n_rows = n_rows;
    s->cells = arena_alloc(p->arena, n_rows * n_columns * sizeof(*s->cells));
    return s;
}

/* --- policies ------------------------------------------------------------------------------------ */

static const char *table_text(struct arena *a, const struct policy *p)
{
    AUTO(text_release) struct text name = {0};
    table_name_print(&p->table, &name);
    return arena_strdup(a, text_str(&name));
}

/* Each table stands where the file first names it, with all its policies. */
static void order_policies(struct page *p)
{
    const struct contract *c = p->contract;
    const char **tables = arena_alloc(p->arena, c->n_policies * sizeof(*tables));
    bool *taken = arena_alloc(p->arena, c->n_policies * sizeof(*taken));
    size_t n = 0;
    p->ordered = arena_alloc(p->arena, c->n_policies * sizeof(struct policy *));
    for (size_t i = 0; i < c->n_policies; i++)
        tables[i] = table_text(p->arena, &c->policies[i]);
    for (size_t i = 0; i < c->n_policies; i++) {
        if (taken[i])
            continue;
        for (size_t k = i; k < c->n_policies; k++)
            if (!taken[k] && strcmp(tables[i], tables[k]) == 0) {
                taken[k] = true;
                p->ordered[n++] = &c->policies[k];
            }
    }
}

static const char *const policy_columns[N_POLICY_CELLS] = {"Table", "Bounding mechanism", "Prune trigger",
                                                           "Safety invariant", "Observability"};

static void add_policies(struct page *p)
{
    const struct contract *c = p->contract;
    if (!c->n_policies)
        return;
    order_policies(p);
    struct page_section *s = add_table(p, "Contract", policy_columns, N_POLICY_CELLS, c->n_policies);
    for (size_t i = 0; i < c->n_policies; i++)
        policy_cells(p->arena, c, p->ordered[i], &s->cells[i * N_POLICY_CELLS]);
    p->policies = s;
}

/* What lapse keeps for itself, where it is installed. */
static void add_own(struct page *p)
{
    const struct contract *own = p->contract->own;
    if (!own || !own->n_policies)
        return;
    struct page_section *s =
        add_table(p, "Lapse's own tables", policy_columns, N_POLICY_CELLS, own->n_policies);
    for (size_t i = 0; i < own->n_policies; i++)
        policy_cells(p->arena, own, &own->policies[i], &s->cells[i * N_POLICY_CELLS]);
    p->own = s;
}

static void add_purges(struct page *p)
{
    static const char *const columns[N_PURGE_CELLS] = {"Instances", "When", "Erased, in this order",
                                                       "Safety invariant", "Observability"};
    const struct contract *c = p->contract;
    if (!c->n_purges)
        return;
    struct page_section *s = add_table(p, "Purges", columns, N_PURGE_CELLS, c->n_purges);
    for (size_t i = 0; i < c->n_purges; i++)
        purge_cells(p->arena, c, &c->purges[i], &s->cells[i * N_PURGE_CELLS]);
    p->purges = s;
}

static void add_non_goals(struct page *p)
{
    const struct contract *c = p->contract;
    struct page_section *s = add_section(p, "Explicit non-goals");
    for (size_t i = 0; i < c->n_unbounded; i++) {
        const struct unbounded *u = &c->unbounded[i];
        bool undecided = strcmp(words_clean(p->arena, u->why), "?") == 0;
        cell_add(p->arena, &s->list, "%s has no policy: %s", words_code(p->arena, u->name),
                 undecided ? "why is not decided yet." : words_sentence(p->arena, u->why, false));
    }
    if (!c->n_unbounded)
        cell_add(p->arena, &s->list, "None: the contract names nothing that needs no policy.");
}

/* --- failure handling ---------------------------------------------------------------------------- */

/* Schedulers that have work, and are as they are asked for. */
enum which { EVERY, EXCLUSIVE, SHARED, WITH_BUDGET };

static bool has_policy(const struct contract *c, const struct scheduler *s)
{
    for (size_t i = 0; i < c->n_policies; i++)
        if (strcmp(c->policies[i].scheduler, s->name) == 0)
            return true;
    return false;
}

static bool is_which(const struct scheduler *s, enum which which)
{
    bool budget = s->budget_rows >= 0 || s->budget_batches >= 0 || s->budget_time.kind == SPAN_TIME;
    return which == EVERY || (which == EXCLUSIVE && s->exclusive) || (which == SHARED && !s->exclusive) ||
           (which == WITH_BUDGET && budget);
}

static const char *plain_name(struct arena *a, const char *name, const char *suffix)
{
    return words_code(a, arena_printf(a, "%s%s", name, suffix));
}

static const char *metric_name(struct arena *a, const char *name, const char *metric)
{
    return words_code(a, words_metric(a, metric, "scheduler", name, NULL));
}

/* A list of schedulers, each as show() writes it with `more`; *ret_n: how many. */
static const char *schedulers_words(const struct page *p, enum which which,
                                    const char *(*show)(struct arena *, const char *, const char *),
                                    const char *more, const char *last, size_t *ret_n)
{
    const struct contract *c = p->contract;
    const char **items = arena_alloc(p->arena, c->n_schedulers * sizeof(*items));
    size_t n = 0;
    for (size_t i = 0; i < c->n_schedulers; i++) {
        const struct scheduler *s = &c->schedulers[i];
        if (has_policy(c, s) && is_which(s, which))
            items[n++] = show(p->arena, s->name, more);
    }
    *ret_n = n;
    return words_list(p->arena, items, n, last);
}

static void say_coordination(struct page *p, struct page_cell *list)
{
    size_t n;
    const char *names = schedulers_words(p, EXCLUSIVE, plain_name, "", "and", &n);
    if (n)
        cell_add(p->arena, list,
                 "%s %s under a single-writer lease in the database: one sweeper in the cluster. Every batch "
                 "commits "
                 "only with the lease's current token, so one that lost the lease deletes nothing more.",
                 names, n == 1 ? "runs" : "run");
    names = schedulers_words(p, SHARED, plain_name, "", "and", &n);
    if (n)
        cell_add(p->arena, list,
                 "%s %s no lease: any number of servers may sweep at once without coordination; nothing "
                 "fails, and no "
                 "row is counted twice.",
                 names, n == 1 ? "takes" : "take");
}

static const char *listen_words(struct arena *a, const char *listen)
{
    size_t host = strlen(listen) - 2;
    bool picked = strcmp(listen + host, ":0") == 0;
    return picked ? arena_printf(a, "a port of %s that is picked at start",
                                 words_code(a, arena_strndup(a, listen, host)))
                  : words_code(a, listen);
}

static void say_ticks(struct page *p, struct page_cell *list)
{
    size_t n;
    const char *events = schedulers_words(p, EVERY, plain_name, ".lifecycle_tick_failed", "or", &n);
    cell_add(p->arena, list, "Tick failures are logged as %s.", events);
    const char *metrics = schedulers_words(p, EVERY, metric_name, "lifecycle_tick_errors_total", "and", &n);
    if (p->contract->listen)
        cell_add(p->arena, list, "Prometheus reads %s from %s on %s, for alerts on repeated failures.",
                 metrics, words_code(p->arena, "/metrics"), listen_words(p->arena, p->contract->listen));
    events = schedulers_words(p, WITH_BUDGET, plain_name, ".lifecycle_prune_budget_exhausted", "or", &n);
    if (n)
        cell_add(p->arena, list, "A policy that used up its budget stops until the next tick, logged as %s.",
                 events);
}

static void say_batches(struct page *p, struct page_cell *list)
{
    cell_add(p->arena, list,
             "A row is judged once more in the transaction that deletes it: one that came back to life "
             "by then survives, with all it owns.");
    cell_add(p->arena, list,
             "A row that a constraint or a trigger refuses to let go is skipped for that run and "
             "reported; after 100 of them the policy fails. The other policies go on.");
    cell_add(p->arena, list,
             "A deadlock, a lock timeout or a busy database: the whole transaction is retried, later and "
             "later. After a crash at any instant the next run finishes what was left.");
}

static void say_fuses(struct page *p, struct page_cell *list)
{
    const struct contract *c = p->contract;
    const char **names = arena_alloc(p->arena, c->n_policies * sizeof(*names));
    size_t n = 0;
    for (size_t i = 0; i < c->n_policies; i++)
        if (c->policies[i].limits)
            names[n++] = words_code(p->arena, c->policies[i].name);
    if (n)
        cell_add(p->arena, list,
                 "%s %s a fuse. One that tripped deletes nothing in any later run, until someone has looked "
                 "and runs %s.",
                 words_list(p->arena, names, n, "and"), n == 1 ? "has" : "have",
                 words_code(p->arena, "lapse ack POLICY"));
}

static void add_failures(struct page *p)
{
    struct page_section *s = add_section(p, "Failure handling");
    if (p->policies) {
        say_coordination(p, &s->list);
        say_ticks(p, &s->list);
        say_batches(p, &s->list);
        say_fuses(p, &s->list);
        cell_add(
            p->arena, &s->list,
            "%s stops everything, %s one policy or scheduler, after the batch under way; %s lets it go on.",
            words_code(p->arena, "lapse pause"), words_code(p->arena, "lapse pause NAME"),
            words_code(p->arena, "lapse resume"));
    }
    if (p->purges)
        cell_add(
            p->arena, &s->list,
            "A purge is never lost: what is due is carried out when the program runs again, however long it "
            "did not.");
    p->failures = s;
}

/* --- the page ------------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

struct page *page_make(const struct contract *c)
{
    struct arena *a = arena_new();
    struct page *p = arena_alloc(a, sizeof(*p));
    p->arena = a;
    p->contract = c;
    p->title = "Operational Table Maintenance Contract";
    p->source =
        arena_printf(a,
                     "Generated by %s from %s. Do not edit it by hand: change the contract and generate it "
                     "again.",
                     words_code(a, "lapse contract"), words_code(a, base_name(c->file)));
    p->intro = "This page says what bounds each operational table, which job prunes it, and what operators "
               "can rely on "
               "during recovery.";
    add_policies(p);
    add_purges(p);
    add_own(p);
    add_non_goals(p);
    add_failures(p);
    return p;
}

void page_free(struct page *p)
{
    if (p)
        arena_free(p->arena);
}

void page_free_p(struct page **p)
{
    page_free(*p);
    *p = NULL;
}

/* --- is it the same? ----------------------------------------------------------------------------- */

struct line {
    const char *text;
    size_t len;
};

/* The line that begins at *at, without its end. False: there is none. */
static bool next_line(const char **at, const char *end, struct line *ret)
{
    if (*at == end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *ret = (struct line){*at, (size_t)((stop ? stop : end) - *at)};
    if (stop && ret->len && ret->text[ret->len - 1] == '\r')
        ret->len--;
    *at = stop ? stop + 1 : end;
    return true;
}

static bool continues_character(const struct line *l, size_t at)
{
    return at < l->len && ((unsigned char)l->text[at] & 0xC0) == 0x80;
}

/* The part of a line around a byte of it: a row of the table is too long to be shown whole. */
static const char *excerpt(struct arena *a, const struct line *l, size_t at)
{
    enum { BEFORE = 30, AFTER = 60 };
    size_t from = at > BEFORE ? at - BEFORE : 0, to = at + AFTER < l->len ? at + AFTER : l->len;
    while (continues_character(l, from))
        from++;
    while (continues_character(l, to))
        to++;
    const char *part = from < to ? arena_strndup(a, l->text + from, to - from) : "";
    return arena_printf(a, "%s%s%s", from > 0 ? "…" : "", words_clean(a, part), to < l->len ? "…" : "");
}

static void describe(struct arena *a, const struct line *want, const struct line *got, int number,
                     struct page_difference *ret)
{
    size_t at = 0;
    int column = 1;
    while (at < want->len && at < got->len && want->text[at] == got->text[at])
        column += !continues_character(want, ++at);
    ret->at = (struct place){number, column};
    ret->expected = excerpt(a, want, at);
    ret->found = excerpt(a, got, at);
}

bool page_differs(struct arena *a, const char *expected, const char *found, size_t found_len,
                  struct page_difference *ret)
{
    const char *want_end = expected + strlen(expected), *got_end = found + found_len;
    for (int number = 1;; number++) {
        struct line want = {"", 0}, got = {"", 0};
        bool more_want = next_line(&expected, want_end, &want), more_got = next_line(&found, got_end, &got);
        if (!more_want && !more_got)
            return false;
        if (more_want && more_got && want.len == got.len && memcmp(want.text, got.text, want.len) == 0)
            continue;
        describe(a, &want, &got, number, ret);
        if (!more_want || !more_got)
            *(more_want ? &ret->found : &ret->expected) = "the end of the page";
        return true;
    }
}
