/* policy: one policy as the sentences of its row. Each follows from a key of the contract; nothing is
 * said that this contract does not make true. */
#include "page/internal.h"

#include <string.h>

/* --- which rows ---------------------------------------------------------------------------------- */

static bool is_filtered(const struct policy *p)
{
    return p->rows || p->where;
}

/* " whose `status` is completed, and whose `name` is x, where …": what follows "rows"; "" for all of them. In
 * mid-sentence, a clause with commas of its own ends in one. */
static const char *filter(struct arena *a, const struct policy *p, bool mid_sentence)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; p->rows && i < p->rows->n_kids; i++)
        text_addf(&t, "%s whose %s", i ? ", and" : "", words_cond(a, p->rows->kids[i]));
    if (p->where)
        text_addf(&t, "%s where %s", t.len ? "," : "", words_cond(a, p->where));
    bool commas = (p->rows && p->rows->n_kids > 1) || (p->rows && p->where) ||
                  (p->where && words_cond_compound(p->where));
    text_add(&t, commas && mid_sentence ? "," : "");
    return arena_strdup(a, text_str(&t));
}

/* --- how long ------------------------------------------------------------------------------------ */

static const char *unit_name(int64_t us)
{
    static const struct {
        int64_t us;
        const char *name;
    } units[] = {{1, "microseconds"},        {US_PER_MS, "milliseconds"}, {US_PER_S, "seconds"},
                 {60 * US_PER_S, "minutes"}, {3600 * US_PER_S, "hours"},  {US_PER_DAY, "days"},
                 {7 * US_PER_DAY, "weeks"}};
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (units[i].us == us)
            return units[i].name;
    return NULL;
}

static const char *suffix_unit(const char *column)
{
    static const struct {
        const char *suffix;
        int64_t us;
    } suffixes[] = {{"_s", US_PER_S}, {"_ms", US_PER_MS}, {"_us", 1}};
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        size_t len = strlen(column), n = strlen(suffixes[i].suffix);
        if (len > n && strcmp(column + len - n, suffixes[i].suffix) == 0)
            return unit_name(suffixes[i].us);
    }
    return NULL;
}

/* "the latest of `a` and `b`" */
static const char *age_of(struct arena *a, const struct policy *p)
{
    return arena_printf(a, "%s%s", p->n_age > 1 ? "the latest of " : "",
                        words_columns(a, p->age, p->n_age, "and"));
}

static void say_keep_span(struct arena *a, struct page_cell *cell, const struct policy *p, const char *who)
{
    const struct span *keep = &p->keep.span;
    if (keep->kind == SPAN_NEVER)
        cell_add(a, cell, "%s stay for ever: %s.", who, words_code(a, "keep: never"));
    else if (p->n_age == 0)
        cell_add(a, cell, "%s go at once.", who);
    else if (keep->kind == SPAN_NOW)
        cell_add(a, cell, "%s go as soon as %s lies in the past.", who, age_of(a, p));
    else
        cell_add(a, cell, "%s go %s after %s.", who, words_time(a, keep->us), age_of(a, p));
}

static const char *keep_when(struct arena *a, const struct span *s)
{
    return s->kind == SPAN_NEVER ? "never"
           : s->kind == SPAN_NOW ? "at once"
                                 : arena_printf(a, "after %s", words_time(a, s->us));
}

static void say_keep_by(struct arena *a, struct page_cell *cell, const struct policy *p, const char *who)
{
    const struct keep *k = &p->keep;
    const char **each = arena_alloc(a, (k->n_values + 1) * sizeof(*each));
    for (size_t i = 0; i < k->n_values; i++)
        each[i] =
            arena_printf(a, "%s %s", words_value(a, &k->values[i].value), keep_when(a, &k->values[i].span));
    cell_add(a, cell, "%s go by their %s, counted from %s: %s; any other value %s.", who,
             words_code(a, k->column.text), age_of(a, p), words_list(a, each, k->n_values, "and"),
             keep_when(a, &k->span));
}

static void say_keep_column(struct arena *a, struct page_cell *cell, const struct policy *p, const char *who)
{
    const char *unit = p->keep.unit_us ? unit_name(p->keep.unit_us) : suffix_unit(p->keep.column.text);
    cell_add(a, cell,
             "%s go when the time that their %s gives%s%s has passed since %s; NULL, 0 and less is never.",
             who, words_code(a, p->keep.column.text), unit ? " in " : "", unit ? unit : "", age_of(a, p));
}

static void say_keep(struct arena *a, struct page_cell *cell, const struct policy *p, const char *who)
{
    if (p->keep.kind == KEEP_BY)
        say_keep_by(a, cell, p, who);
    else if (p->keep.kind == KEEP_COLUMN)
        say_keep_column(a, cell, p, who);
    else
        say_keep_span(a, cell, p, who);
    if (p->inclusive)
        cell_add(a, cell, "A row of exactly that age goes too.");
}

static bool keeps_for_ever(const struct keep *k)
{
    for (size_t i = 0; i < k->n_values && k->kind == KEEP_BY; i++)
        if (k->values[i].span.kind != SPAN_NEVER)
            return false;
    return (k->kind == KEEP_SPAN || k->kind == KEEP_BY) && k->span.kind == SPAN_NEVER;
}

/* --- bounding mechanism -------------------------------------------------------------------------- */

static bool is_lease(const char *column)
{
    return strncmp(column, "lease_", 6) == 0 || strstr(column, "_lease") != NULL;
}

static void say_expires(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    cell_add(a, cell, "%s via %s%s%s.", is_lease(p->expires.text) ? "Lease TTL" : "TTL",
             words_code(a, p->expires.text), is_filtered(p) ? ", for rows" : "", filter(a, p, false));
}

/* "its `id` is their `source_doc_id`" */
static const char *orphan_link(struct arena *a, const struct orphan *o)
{
    return arena_printf(a, "its %s %s their %s", words_columns(a, o->of.columns, o->of.n_columns, "and"),
                        o->n_by > 1 ? "are" : "is", words_columns(a, o->by, o->n_by, "and"));
}

static void say_orphan(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    const struct orphan *o = p->orphan;
    bool unmatched = o->when == ORPHAN_DELETED_OR_UNMATCHED;
    if (o->when == ORPHAN_NEVER) {
        cell_add(a, cell, "Orphans of %s stay for ever: %s.", words_table(a, &o->of.table),
                 words_code(a, "delete_when: never"));
        return;
    }
    cell_add(a, cell, "Orphans: rows%s%s whose row in %s (%s) is gone%s.", filter(a, p, false),
             is_filtered(p) ? ", and" : "", words_table(a, &o->of.table), orphan_link(a, o),
             unmatched ? " or no longer matches" : "");
    if (unmatched)
        cell_add(a, cell, "It matches while %s.", words_cond(a, o->matching));
    say_keep(a, cell, p, "They");
}

/* " per `tenant_id`"; "" when all rows are one group */
static const char *per_group(struct arena *a, const struct newest *n)
{
    return n->n_per ? arena_printf(a, " per %s", words_columns(a, n->per, n->n_per, "and")) : "";
}

/* "`last_seen_at_ms`, then `instance_id`" */
static const char *newest_by(struct arena *a, const struct newest *n)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < n->n_newest; i++)
        text_addf(&t, "%s%s", i ? ", then " : "", words_code(a, n->newest[i].text));
    return arena_strdup(a, text_str(&t));
}

static void say_cap(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    const struct newest *cap = p->cap;
    const char *stay = cap->rows == 1 ? "stays" : "stay", *by = newest_by(a, cap), *per = per_group(a, cap);
    if (is_filtered(p)) {
        cell_add(a, cell, "Of the rows%s, at most %s%s %s: the newest by %s.", filter(a, p, false),
                 words_number(a, cap->rows), per, stay, by);
    } else {
        cell_add(a, cell, "At most %s%s %s: the newest by %s.", words_count(a, cap->rows, "row"), per, stay,
                 by);
    }
}

static void say_keep_newest(struct arena *a, struct page_cell *cell, const struct newest *n)
{
    bool one = n->rows == 1;
    cell_add(a, cell, "However old, the newest %s%s by %s %s.", one ? "row" : words_count(a, n->rows, "row"),
             per_group(a, n), newest_by(a, n), one ? "stays" : "stay");
}

static void say_bound(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    if (p->expires.text)
        say_expires(a, cell, p);
    else if (p->orphan)
        say_orphan(a, cell, p);
    else if (p->cap)
        say_cap(a, cell, p);
    else
        say_keep(a, cell, p, arena_printf(a, "Rows%s", filter(a, p, true)));
    if (p->keep_newest)
        say_keep_newest(a, cell, p->keep_newest);
    if (p->unit_us && !p->cap)
        cell_add(a, cell, "Integer times count %s.", unit_name(p->unit_us));
    if (strcmp(p->zone, "UTC") != 0 && !p->cap)
        cell_add(a, cell, "Times without a zone are in %s.", words_clean(a, p->zone));
}

/* --- what goes along ----------------------------------------------------------------------------- */

static const char *refs_words(struct arena *a, const struct ref *refs, size_t n, const char *last)
{
    const char **items = arena_alloc(a, (n + 1) * sizeof(*items));
    for (size_t i = 0; i < n; i++)
        items[i] = words_ref(a, &refs[i]);
    return words_list(a, items, n, last);
}

static bool same_table(const struct table_name *x, const struct table_name *y)
{
    bool same_schema = !x->schema.text == !y->schema.text &&
                       (!x->schema.text || strcmp(x->schema.text, y->schema.text) == 0);
    return same_schema && strcmp(x->table.text, y->table.text) == 0;
}

static void say_with_entry(struct arena *a, struct page_cell *cell, const struct with *w,
                           const struct table_name *owner)
{
    if (same_table(&w->ref.table, owner))
        cell_add(a, cell, "By %s that is the whole subtree.", words_ref(a, &w->ref));
    if (w->where)
        cell_add(a, cell, "In %s only rows where %s go; a row that owns others there waits.",
                 words_ref(a, &w->ref), words_cond(a, w->where));
    if (w->split)
        cell_add(
            a, cell,
            "Rows in %s may go ahead in transactions of their own; a row that comes back to life meanwhile "
            "keeps only what is left of them.",
            words_ref(a, &w->ref));
}

/* owner: the rows that own these; outer: its name in the sentence, NULL for the policy's own rows. */
static void say_below(struct arena *a, struct page_cell *cell, const struct below *b,
                      const struct table_name *owner, const char *outer)
{
    struct ref *refs = arena_alloc(a, (b->n_with + 1) * sizeof(*refs));
    for (size_t i = 0; i < b->n_with; i++)
        refs[i] = b->with[i].ref;
    if (b->n_with && outer)
        cell_add(a, cell, "With rows of %s go theirs in %s.", outer, refs_words(a, refs, b->n_with, "and"));
    else if (b->n_with)
        cell_add(a, cell, "What a row owns in %s goes with it.", refs_words(a, refs, b->n_with, "and"));
    for (size_t i = 0; i < b->n_with; i++)
        say_with_entry(a, cell, &b->with[i], owner);
    if (b->n_detach)
        cell_add(a, cell, "References %s%s%sin %s are set to NULL; those rows stay.", outer ? "to " : "",
                 outer ? outer : "", outer ? " " : "", refs_words(a, b->detach, b->n_detach, "and"));
    for (size_t i = 0; i < b->n_with; i++) {
        struct below deeper = below_with(&b->with[i]);
        say_below(a, cell, &deeper, &b->with[i].ref.table, words_table(a, &b->with[i].ref.table));
    }
}

static void say_bounding(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    struct below b = below_policy(p);
    say_bound(a, cell, p);
    say_below(a, cell, &b, &p->table, NULL);
    if (p->partitions.drop)
        cell_add(a, cell, "A partition that is wholly due is dropped instead of deleted from.");
}

/* --- prune trigger ------------------------------------------------------------------------------- */

const struct scheduler *scheduler_of(const struct contract *c, const struct policy *p)
{
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (strcmp(c->schedulers[i].name, p->scheduler) == 0)
            return &c->schedulers[i];
    return NULL; /* a contract that was read has it */
}

/* "every minute", "every 5 minutes" */
static const char *every_words(struct arena *a, int64_t us)
{
    const char *time = words_time(a, us);
    bool one_unit = strncmp(time, "1 ", 2) == 0 && !strchr(time + 2, ' ');
    return arena_printf(a, "every %s", one_unit ? time + 2 : time);
}

static const char *budget_words(struct arena *a, const struct scheduler *s)
{
    const char *parts[3];
    size_t n = 0;
    if (s->budget_rows >= 0)
        parts[n++] = words_count(a, s->budget_rows, "row");
    if (s->budget_batches >= 0)
        parts[n++] = words_count(a, s->budget_batches, "batch");
    if (s->budget_time.kind == SPAN_TIME)
        parts[n++] = words_time(a, s->budget_time.us);
    return n ? arena_printf(a, ", at most %s per policy and tick", words_list(a, parts, n, "and")) : "";
}

/* "scheduler `nightly`, by cron `0 3 * * *` in Europe/Prague, not at start, …" */
static const char *schedule_words(struct arena *a, const struct scheduler *s)
{
    AUTO(text_release) struct text t = {0};
    const char *zone = words_clean(a, s->timezone);
    text_addf(&t, "scheduler %s, ", words_code(a, s->name));
    if (s->cron)
        text_addf(&t, "by cron %s in %s", words_code(a, s->cron), zone);
    else
        text_add(&t, every_words(a, s->every.us));
    text_add(&t, s->run_on_start ? ", also at start" : ", not at start");
    if (s->exclusive)
        text_addf(&t, ", one sweeper in the cluster (lease %s)", words_time(a, s->lease.us));
    if (s->window_from >= 0)
        text_addf(&t, ", only from %02d:%02d to %02d:%02d %s", s->window_from / 60, s->window_from % 60,
                  s->window_to / 60, s->window_to % 60, zone);
    if (s->jitter.kind == SPAN_TIME && s->jitter.us > 0)
        text_addf(&t, ", up to %s later at random", words_time(a, s->jitter.us));
    text_add(&t, budget_words(a, s));
    return arena_strdup(a, text_str(&t));
}

/* What the row says of its scheduler must not read as if it ran when it does not. */
static void say_schedule(struct arena *a, struct page_cell *cell, const struct scheduler *s,
                         const struct policy *p)
{
    const char *schedule = schedule_words(a, s);
    const char **keys = arena_alloc(a, (p->n_not_yet + 1) * sizeof(*keys));
    for (size_t i = 0; i < p->n_not_yet; i++)
        keys[i] = words_code(a, p->not_yet[i].key);
    if (!p->enabled)
        cell_add(a, cell, "None while the policy is disabled; then %s.", schedule);
    else if (!s->enabled)
        cell_add(a, cell, "None while its scheduler is disabled; then %s.", schedule);
    else
        cell_add(a, cell, "S%s.", schedule + 1);
    if (p->n_not_yet)
        cell_add(a, cell, "%s: this version of lapse refuses a policy with %s.",
                 words_strong(a, "Not run yet"), words_list(a, keys, p->n_not_yet, "or"));
}

static void say_pace(struct arena *a, struct page_cell *cell, const struct pace *pace)
{
    const char *lag[2];
    size_t n_lag = 0;
    cell_add(a, cell, "Transactions of about %s%s%s%s%s.", words_time(a, pace->target.us),
             pace->rows_per_second > 0 ? ", at most " : "",
             pace->rows_per_second > 0 ? arena_printf(a, "%.10g rows a second", pace->rows_per_second) : "",
             pace->duty > 0 ? ", busy at most " : "",
             pace->duty > 0 ? arena_printf(a, "%s of the time", words_percent(a, pace->duty)) : "");
    if (pace->lag.kind == SPAN_TIME)
        lag[n_lag++] = words_time(a, pace->lag.us);
    if (pace->lag_bytes >= 0)
        lag[n_lag++] = words_count(a, pace->lag_bytes, "byte");
    if (n_lag)
        cell_add(a, cell, "It waits while a replica is more than %s behind.",
                 words_list(a, lag, n_lag, "or"));
}

/* What is as everywhere needs no words. */
static void say_effort(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    enum { BATCH = 1000, LOCK_S = 2, STATEMENT_S = 30 };
    if (p->batch == BATCH_ALL)
        cell_add(a, cell, "Everything that is due goes in one transaction.");
    else if (p->batch != BATCH)
        cell_add(a, cell, "At most %s in one transaction.", words_count(a, p->batch, "row"));
    if (p->pace)
        say_pace(a, cell, p->pace);
    if (p->workers > 1 && !p->cap && !p->keep_newest) /* which go one by one */
        cell_add(a, cell, "%s sweep at once.", words_count(a, p->workers, "connection"));
    if (p->lock_timeout_us != LOCK_S * US_PER_S || p->statement_timeout_us != STATEMENT_S * US_PER_S)
        cell_add(a, cell, "It waits at most %s for a lock and %s for a statement.",
                 words_time(a, p->lock_timeout_us), words_time(a, p->statement_timeout_us));
}

static void say_trigger(struct arena *a, struct page_cell *cell, const struct contract *c,
                        const struct policy *p)
{
    say_schedule(a, cell, scheduler_of(c, p), p);
    say_effort(a, cell, p);
    for (size_t i = 0; i < p->n_also; i++)
        cell_add(a, cell, "Also: %s", words_sentence(a, p->also[i], false));
}

/* --- safety invariant ---------------------------------------------------------------------------- */

/* One time among them is enough for a row to go. */
static const char *ages_words(struct arena *a, const struct policy *p)
{
    const char *columns = words_columns(a, p->age, p->n_age, "and");
    return p->n_age > 1 ? arena_printf(a, "any of %s", columns) : columns;
}

static void say_orphan_safety(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    const struct orphan *o = p->orphan;
    const char *source = words_table(a, &o->of.table);
    cell_add(a, cell, "Deletes only orphans; a row with NULL in %s stays.",
             words_columns(a, o->by, o->n_by, "or"));
    if (p->n_age)
        cell_add(a, cell, "So does one without a time in %s.", ages_words(a, p));
    if (o->when == ORPHAN_DELETED && o->matching)
        cell_add(a, cell, "A row of %s counts whether it matches or not.", source);
    if (o->when == ORPHAN_DELETED_OR_UNMATCHED)
        cell_add(a, cell, "A match that is unknown counts as none.");
    cell_add(a, cell,
             o->allow_empty
                 ? "If %s is empty, every row is an orphan: the contract allows it."
                 : "If %s is empty or cannot be read in full, nothing is deleted and that is an error.",
             source);
}

static void say_only(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    if (p->expires.text)
        cell_add(a, cell, "Deletes only %s; a row without a time in %s stays.",
                 is_lease(p->expires.text) ? "expired leases" : "rows whose TTL has expired",
                 words_code(a, p->expires.text));
    else if (p->orphan)
        say_orphan_safety(a, cell, p);
    else if (p->cap)
        cell_add(a, cell, "Deletes only rows beyond the newest %s%s.", words_number(a, p->cap->rows),
                 per_group(a, p->cap));
    else
        cell_add(a, cell, "Deletes only rows past their window; a row without a time in %s stays.",
                 ages_words(a, p));
    if (is_filtered(p))
        cell_add(a, cell, "Never touches other rows, at any age.");
}

/* of: "it", or the rows that a row owns */
static void say_after(struct arena *a, struct page_cell *cell, const struct after *list, size_t n,
                      const char *of)
{
    for (size_t i = 0; i < n; i++)
        cell_add(a, cell, "A row waits while any row in %s%s%s refers to %s.", words_ref(a, &list[i].ref),
                 list[i].where ? " where " : "", list[i].where ? words_cond(a, list[i].where) : "", of);
}

static bool say_waits(struct arena *a, struct page_cell *cell, const struct below *b, const char *of)
{
    bool waits = b->n_after > 0;
    say_after(a, cell, b->after, b->n_after, of);
    for (size_t i = 0; i < b->n_with; i++) {
        struct below deeper = below_with(&b->with[i]);
        const char *owned = arena_printf(a, "what it owns in %s", words_table(a, &b->with[i].ref.table));
        waits = say_waits(a, cell, &deeper, owned) || b->with[i].where || waits;
    }
    return waits;
}

/* Whether anything goes with the row in its own transaction. */
static bool goes_whole(const struct below *b)
{
    for (size_t i = 0; i < b->n_with; i++) {
        struct below deeper = below_with(&b->with[i]);
        if (!b->with[i].split || goes_whole(&deeper))
            return true;
    }
    return false;
}

static bool splits(const struct below *b)
{
    for (size_t i = 0; i < b->n_with; i++) {
        struct below deeper = below_with(&b->with[i]);
        if (b->with[i].split || splits(&deeper))
            return true;
    }
    return false;
}

static void say_fuse(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    const struct limits *l = p->limits;
    const char *parts[2];
    size_t n = 0;
    if (l->rows >= 0)
        parts[n++] = words_count(a, l->rows, "row");
    if (l->fraction >= 0)
        parts[n++] = arena_printf(a, "%s of the table", words_percent(a, l->fraction));
    if (n)
        cell_add(a, cell,
                 "Fuse: a run that would delete more than %s deletes nothing and stays stopped until %s.",
                 words_list(a, parts, n, "or"), words_code(a, arena_printf(a, "lapse ack %s", p->name)));
}

static void say_safety(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    struct below b = below_policy(p);
    say_only(a, cell, p);
    if (p->hold)
        cell_add(a, cell, "A row stays while %s.", words_cond(a, p->hold));
    bool waits = say_waits(a, cell, &b, "it");
    if (p->cap && (p->hold || waits))
        cell_add(a, cell, "Rows that are held or wait count, but never go.");
    if (goes_whole(&b))
        cell_add(a, cell, "A row and what it owns go in one transaction, or stay%s.",
                 splits(&b) ? ", but for what may go ahead: that may be gone while its owner stays" : "");
    else if (splits(&b))
        cell_add(a, cell, "What may go ahead of a row may be gone while the row stays.");
    if (p->limits)
        say_fuse(a, cell, p);
}

static void say_invariant(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    if (keeps_for_ever(&p->keep) || (p->orphan && p->orphan->when == ORPHAN_NEVER))
        cell_add(a, cell, "Deletes nothing.");
    else
        say_safety(a, cell, p);
    if (p->invariant)
        cell_add(a, cell, "%s", words_sentence(a, p->invariant, true));
}

/* --- observability ------------------------------------------------------------------------------- */

static void say_observability(struct arena *a, struct page_cell *cell, const struct contract *c,
                              const struct policy *p)
{
    const char *event = words_code(a, arena_printf(a, "%s.lifecycle_pruned", p->scheduler));
    if (!c->listen) { /* nothing serves the metrics */
        cell_add(a, cell, "%s in the log.", event);
        return;
    }
    const char *metric = words_metric(a, "lifecycle_prune_rows_total", "scheduler", p->scheduler, "table",
                                      p->label, "policy", p->name, NULL);
    cell_add(a, cell, "%s and %s.", words_code(a, metric), event);
    size_t n;
    const char **tables = policy_dependents(a, p, &n);
    for (size_t i = 0; i < n; i++)
        tables[i] = words_code(a, tables[i]);
    if (n)
        cell_add(a, cell, "Rows that go along count under the table %s.", words_list(a, tables, n, "or"));
}

static void say_table(struct arena *a, struct page_cell *cell, const struct policy *p)
{
    AUTO(text_release) struct text name = {0};
    table_name_print(&p->table, &name);
    cell_add(a, cell, "%s", words_table(a, &p->table));
    if (strcmp(text_str(&name), p->name) != 0)
        cell_add(a, cell, "(policy %s)", words_code(a, p->name));
    if (!p->enabled)
        cell_add(a, cell, "%s", words_strong(a, "Disabled"));
}

void policy_cells(struct arena *a, const struct contract *c, const struct policy *p,
                  struct page_cell ret[N_POLICY_CELLS])
{
    say_table(a, &ret[CELL_TABLE], p);
    say_bounding(a, &ret[CELL_BOUNDING], p);
    say_trigger(a, &ret[CELL_TRIGGER], c, p);
    say_invariant(a, &ret[CELL_INVARIANT], p);
    say_observability(a, &ret[CELL_OBSERVABILITY], c, p);
}
