/* check: one policy against the live schema and the values really there; findings in order. */
#include "check/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check/internal.h"
#include "guard/fuse.h"

/* One policy's plan, and the database to ask about it. */
struct asking {
    const struct plan *plan;
    struct store *store;
    bool thorough;
    struct findings *findings;
    bool refused; /* the database does not accept the policy's conditions */
    char unreadable[sizeof(((struct time_sample *)0)->example)]; /* a time that cannot be read, or "" */
    bool timeless;                                               /* no value of a time column is a time */
};

static const struct policy *policy_of(const struct asking *a)
{
    return a->plan->policy;
}

/* --- errors of the database -------------------------------------------------------------------------------
 */

/* The places of SQL conditions: the first, and whether there are others. */
struct sql_places {
    struct place first;
    bool several;
};

static void find_sql(const struct expr *x, struct sql_places *ret)
{
    if (x->kind == EXPR_SQL) {
        struct place at = x->at_place;
        ret->several |= ret->first.line && (ret->first.line != at.line || ret->first.column != at.column);
        ret->first = ret->first.line ? ret->first : at;
    }
    for (size_t i = 0; i < x->n_kids; i++)
        find_sql(x->kids[i], ret);
}

/* With several SQL conditions the database does not say which one it means. */
static struct place condition_place(const struct plan *p)
{
    struct sql_places found = {0};
    if (p->due)
        find_sql(p->due, &found);
    if (p->matching)
        find_sql(p->matching, &found);
    return found.first.line && !found.several ? found.first : p->policy->at;
}

/* 0: the error is about this policy and has become a finding, once. -1: about more than that. */
static int take_refusal(struct asking *a, const struct err *refused, struct err *e)
{
    if (refused->kind != ERR_DATABASE && refused->kind != ERR_USAGE && refused->kind != ERR_REFUSED) {
        if (e)
            *e = *refused;
        return -1;
    }
    if (a->refused)
        return 0;
    a->refused = true;
    findings_add(a->findings, FINDING_ERROR, policy_of(a)->name, condition_place(a->plan),
                 "correct the condition", "the database does not accept the policy's conditions: %s",
                 refused->text);
    return 0;
}

/* The same for what only advises: no answer in time is worth a note, no more. */
static int take_delay(struct asking *a, const struct err *failed, const char *what, struct err *e)
{
    if (failed->kind != ERR_TIMEOUT && failed->kind != ERR_BUSY)
        return take_refusal(a, failed, e);
    findings_add(a->findings, FINDING_NOTE, policy_of(a)->name, policy_of(a)->at,
                 "give timeouts: { statement: … } more time", "%s could not be looked at in time: %s", what,
                 failed->text);
    return 0;
}

static int check_accepts(struct asking *a, struct err *e)
{
    struct err refused = ERR_INIT;
    if (a->store->ops->accepts(a->store, a->plan, &refused) == 0)
        return 0;
    return take_refusal(a, &refused, e);
}

/* --- times against the values really there
 * ------------------------------------------------------------------ */

static int64_t plausible_in(const struct time_sample *t, const struct time_unit *u)
{
    return u->us == US_PER_S ? t->plausible_s : u->us == US_PER_MS ? t->plausible_ms : t->plausible_us;
}

static const struct time_unit *best_unit(const struct time_sample *t, const struct time_unit *declared)
{
    const struct time_unit *best = declared;
    for (size_t i = 0; i < TIME_UNITS; i++)
        if (plausible_in(t, &time_units[i]) > plausible_in(t, best))
            best = &time_units[i];
    return best;
}

/* "1700000000 read as milliseconds is 1970-01-20T…" in parentheses, or nothing if there is no such value. */
static const char *misreading(struct arena *a, const char *example, const struct time_unit *declared)
{
    char *end = NULL;
    char buf[WHEN_TEXT_SIZE];
    int64_t value = strtoll(example, &end, 10), us;
    if (end == example || *end || !mul_i64(value, declared->us, &us))
        return "";
    return arena_printf(a, " (%s read as %s is %s)", example, declared->words, when_format(us, buf));
}

static void check_unit(const struct asking *a, const struct time_column *t, const struct time_sample *seen)
{
    const struct time_unit *declared = time_unit_of(t->unit_us);
    if (!declared)
        return;
    const struct time_unit *best = best_unit(seen, declared);
    struct arena *arena = a->findings->arena;
    const char *reading = misreading(arena, seen->example, declared);
    if (best != declared)
        findings_add(a->findings, FINDING_ERROR, policy_of(a)->name, t->at,
                     arena_printf(arena, "write unit: %s", best->sign),
                     "%s: the values look like %s, not %s%s", t->column->name, best->words, declared->words,
                     reading);
    else if (a->thorough && seen->n > seen->unreadable && plausible_in(seen, declared) == 0)
        findings_add(a->findings, FINDING_WARNING, policy_of(a)->name, t->at,
                     "see whether the column holds times, and in which unit",
                     "%s: no value read as %s lies between 1990 and 2100%s", t->column->name, declared->words,
                     reading);
}

static void check_readable(struct asking *a, const struct time_column *t, const struct time_sample *seen)
{
    if (seen->unreadable == 0)
        return;
    if (seen->unreadable < seen->n) {
        memcpy(a->unreadable, seen->example, sizeof(a->unreadable));
        return;
    }
    if (!a->thorough)
        return;
    a->timeless = true;
    findings_add(a->findings, FINDING_ERROR, policy_of(a)->name, t->at,
                 t->encoding == TIME_TEXT
                     ? "name a column of times; text is read as YYYY-MM-DDTHH:MM:SSZ or YYYY-MM-DD HH:MM:SS"
                     : "name a column of times",
                 "%s: none of the %" PRId64 " values looked at is a time (for example '%s'): nothing can be "
                 "due",
                 t->column->name, seen->n, seen->example);
}

static int check_times(struct asking *a, struct err *e)
{
    const struct plan *p = a->plan;
    for (size_t i = 0; i < p->n_times; i++) {
        struct err failed = ERR_INIT;
        struct time_sample seen = {0};
        if (p->times[i].encoding != TIME_INTEGER && p->times[i].encoding != TIME_TEXT)
            continue;
        if (a->store->ops->sample(a->store, p, i, &seen, &failed)) {
            if (take_delay(a, &failed, p->times[i].column->name, e))
                return -1;
            continue;
        }
        check_readable(a, &p->times[i], &seen);
        if (p->times[i].encoding == TIME_INTEGER)
            check_unit(a, &p->times[i], &seen);
    }
    return 0;
}

/* --- whether the order of newest is one of times
 * ----------------------------------------------------------- */

/* Types whose values need not sort together: text, and what may hold anything. One without a sign holds
 * numbers alone, though the greatest of them are told as texts. */
static bool may_be_mixed(const struct column *c)
{
    enum type_class t = c->type;
    if (c->is_unsigned)
        return false;
    return t == TYPE_TEXT || t == TYPE_DYNAMIC || t == TYPE_INTEGER || t == TYPE_REAL || t == TYPE_NUMERIC;
}

static void say_disorder(const struct asking *a, const struct newest_column *c, const struct disorder *d)
{
    struct place at = c->at.line ? c->at : policy_of(a)->at;
    if (d->of_times)
        findings_add(a->findings, FINDING_ERROR, policy_of(a)->name, at,
                     "write them all in one form, or name another column under newest",
                     "%s: its times are written in different ways ('%s' and '%s') and do not sort as times",
                     c->column->name, d->one, d->other);
    else
        findings_add(a->findings, FINDING_ERROR, policy_of(a)->name, at,
                     "make them all of one kind, or name another column under newest",
                     "%s: it holds numbers and texts ('%s' and '%s'), which do not sort as times",
                     c->column->name, d->one, d->other);
}

static int check_ranking(struct asking *a, struct err *e)
{
    const struct expr *beyond = a->plan->beyond;
    for (size_t i = 0; beyond && i < beyond->ranking->n_newest; i++) {
        const struct newest_column *c = &beyond->ranking->newest[i];
        struct err failed = ERR_INIT;
        struct disorder found = {0};
        if (c->time || !may_be_mixed(c->column))
            continue;
        if (a->store->ops->disorder(a->store, a->plan, c->column, &found, &failed)) {
            if (take_delay(a, &failed, c->column->name, e))
                return -1;
        } else if (found.found) {
            say_disorder(a, c, &found);
        }
    }
    return 0;
}

/* --- values of `rows` that no row has
 * ----------------------------------------------------------------------- */

static const char *value_words(struct arena *a, const struct expr *is)
{
    const struct value *v = is->kind == EXPR_IS_NULL ? NULL : &is->values[0];
    switch (v ? v->kind : VALUE_NULL) {
    case VALUE_NULL:
        return "NULL";
    case VALUE_INTEGER:
        return arena_printf(a, "%" PRId64, v->integer);
    case VALUE_REAL:
        return arena_printf(a, "%.15g", v->real);
    case VALUE_TEXT:
        return arena_printf(a, "'%.*s%s'", (int)v->len, v->text, is->kind == EXPR_PREFIX ? "*" : "");
    case VALUE_BLOB:
        break;
    }
    return "the value given";
}

/* Where the contract writes the value; a text is found by its letters. */
static struct place value_place(const struct cond *c, const struct expr *is)
{
    for (size_t i = 0; i < c->n_values && is->kind != EXPR_IS_NULL; i++) {
        const struct value *v = &is->values[0];
        const char *text = c->values[i].text;
        if (v->kind == VALUE_TEXT && text && strlen(text) == v->len && memcmp(text, v->text, v->len) == 0)
            return c->values[i].at;
    }
    return c->at;
}

static int check_value(struct asking *a, const struct cond *c, const struct expr *is, struct err *e)
{
    struct err failed = ERR_INIT;
    struct arena *arena = a->findings->arena;
    bool has = true;
    if (a->store->ops->has_value(a->store, a->plan->root.table, is, &has, &failed))
        return take_delay(a, &failed, arena_printf(arena, "%s %s", c->column.text, value_words(arena, is)),
                          e);
    if (!has)
        findings_add(a->findings, FINDING_WARNING, policy_of(a)->name, value_place(c, is),
                     "see whether the value is spelled as the rows have it", "no row has %s %s",
                     is->column->name, value_words(arena, is));
    return 0;
}

/* Finds the values in the plan, where they have the column's type. */
static int check_values(struct asking *a, const struct cond *c, const struct column *column,
                        const struct expr *x, struct err *e)
{
    if (x->kind == EXPR_AND || x->kind == EXPR_OR) {
        for (size_t i = 0; i < x->n_kids; i++)
            if (check_values(a, c, column, x->kids[i], e))
                return -1;
        return 0;
    }
    if (x->column != column)
        return 0;
    if (x->kind == EXPR_IS_NULL || x->kind == EXPR_PREFIX || (x->kind == EXPR_COMPARE && x->cmp == CMP_EQ))
        return check_value(a, c, x, e);
    for (size_t i = 0; x->kind == EXPR_IN && i < x->n_values; i++) {
        struct expr is = {.kind = EXPR_COMPARE, .column = column, .cmp = CMP_EQ};
        is.values = &x->values[i];
        is.n_values = 1;
        if (check_value(a, c, &is, e))
            return -1;
    }
    return 0;
}

/* Booleans and enums cannot be misspelt: making the plan has looked at their values. */
static int check_states(struct asking *a, const struct cond *c, const struct expr *in, struct err *e)
{
    const struct plan *p = a->plan;
    for (size_t i = 0; c->op == COND_ALL && i < c->n_kids; i++)
        if (check_states(a, c->kids[i], in, e))
            return -1;
    if (c->op != COND_IN)
        return 0;
    const struct column *column = table_column(p->facts, p->root.table, &c->column);
    if (!column || column->type == TYPE_ENUM || column->type == TYPE_BOOLEAN)
        return 0;
    return check_values(a, c, column, in, e);
}

static int check_keep_states(struct asking *a, const struct keep *k, struct err *e)
{
    struct cond c = {.op = COND_IN, .column = k->column, .n_values = k->n_values, .at = k->at};
    c.values = arena_alloc(a->findings->arena, (k->n_values + 1) * sizeof(*c.values));
    for (size_t i = 0; i < k->n_values; i++)
        c.values[i] = k->values[i].value;
    return check_states(a, &c, a->plan->timely, e);
}

/* Of an empty table nothing can be said about states. */
static int check_all_states(struct asking *a, struct err *e)
{
    struct err failed = ERR_INIT;
    const struct expr any = {.kind = EXPR_TRUE};
    const struct policy *p = policy_of(a);
    const struct table *t = a->plan->root.table;
    bool has = true;
    if (!p->rows && p->keep.kind != KEEP_BY)
        return 0;
    if (a->store->ops->has_value(a->store, t, &any, &has, &failed))
        return take_delay(a, &failed, t->print, e);
    if (!has) {
        findings_add(a->findings, FINDING_NOTE, p->name, p->rows ? p->rows->at : p->keep.at, "",
                     "%s is empty: whether its rows will have these values cannot be seen", t->print);
        return 0;
    }
    if (p->rows && check_states(a, p->rows, a->plan->matches, e))
        return -1;
    return p->keep.kind == KEEP_BY ? check_keep_states(a, &p->keep, e) : 0;
}

/* What a column takes for a value of the contract, and is another. */
static int check_folding(struct asking *a, struct err *e)
{
    struct err failed = ERR_INIT;
    if (check_lookalikes(a->plan, a->store, a->findings, &failed) == 0)
        return 0;
    return take_delay(a, &failed, "what its collations fold", e);
}

/* --- NULL and unreadable times
 * ------------------------------------------------------------------------------- */

static const char *time_words(const struct asking *a)
{
    AUTO(text_release) struct text out = {0};
    for (size_t i = 0; i < a->plan->n_times; i++)
        text_addf(&out, "%s%s", i ? ", " : "", a->plan->times[i].column->name);
    return arena_strdup(a->findings->arena, text_str(&out));
}

static const char *example_words(const struct asking *a)
{
    return *a->unreadable ? arena_printf(a->findings->arena, " (for example '%s')", a->unreadable) : "";
}

static void say_some_unreadable(const struct asking *a, const char *how_many)
{
    findings_add(a->findings, FINDING_WARNING, policy_of(a)->name, a->plan->times[0].at,
                 "correct these values if the rows are to go",
                 "%s a value of %s that is no time%s: never due", how_many, time_words(a), example_words(a));
}

static const char *row_words(struct arena *a, int64_t n)
{
    return arena_printf(a, "%" PRId64 " %s", n, n == 1 ? "row has" : "rows have");
}

static void say_unusable(const struct asking *a, const struct due *d)
{
    struct arena *arena = a->findings->arena;
    if (d->null_time > 0)
        findings_add(a->findings, FINDING_NOTE, policy_of(a)->name, a->plan->times[0].at, "",
                     "%s no %s (NULL): never due", row_words(arena, d->null_time), time_words(a));
    if (d->unreadable_time > 0)
        say_some_unreadable(a, row_words(arena, d->unreadable_time));
}

static int check_unusable(struct asking *a, struct err *e)
{
    struct err failed = ERR_INIT;
    AUTO(due_release) struct due d = {0};
    if (!a->plan->n_times)
        return 0;
    due_init(&d, a->plan);
    if (a->store->ops->kept(a->store, a->plan, &d, &failed) == 0) {
        say_unusable(a, &d);
        return 0;
    }
    if (*a->unreadable)
        say_some_unreadable(a, "some rows have");
    const char *what = a->plan->root.table->print;
    if (a->plan->n_times)
        what = arena_printf(a->findings->arena, "NULL in %s", time_words(a));
    return take_delay(a, &failed, what, e);
}

/* What the rows with the highest keys say of all. */
static int check_newest_rows(struct asking *a, struct err *e)
{
    struct err failed = ERR_INIT;
    if (a->timeless || check_recent(a->plan, a->store, a->findings, &failed) == 0)
        return 0;
    return take_delay(a, &failed, "its newest rows", e);
}

/* --- the source of orphans
 * ----------------------------------------------------------------------------------- */

static int check_source(struct asking *a, struct err *e)
{
    struct err failed = ERR_INIT;
    const struct expr any = {.kind = EXPR_TRUE};
    const struct plan *p = a->plan;
    bool has = true;
    if (!p->source_needed)
        return 0;
    if (a->store->ops->has_value(a->store, p->source, &any, &has, &failed))
        return take_delay(a, &failed, p->source->print, e);
    if (!has)
        findings_add(a->findings, FINDING_ERROR, p->policy->name, p->policy->orphan->of.at,
                     "see why it is empty; allow_empty: true if it may be",
                     "the source %s is empty: every row of %s would pass for an orphan", p->source->print,
                     p->root.table->print);
    return 0;
}

/* --- the fuse --------------------------------------------------------------------------------------------
 */

static void refuse_without_own(const struct policy *p, const struct store *s, bool looks_on,
                               struct findings *findings)
{
    if (!p->limits)
        return;
    if (!s->own.version)
        findings_add(findings, FINDING_ERROR, p->name, p->limits->at, "run lapse install",
                     "limits need lapse's own tables, which are not installed");
    else if (s->own.lacks[0] && (!looks_on || strncmp(s->own.lacks, "SELECT", 6) == 0))
        findings_add(findings, FINDING_ERROR, p->name, p->limits->at,
                     s->own.hint[0] ? arena_strdup(findings->arena, s->own.hint) : "",
                     "limits need lapse's own tables, and this user has no right to %s", s->own.lacks);
}

/* --- ranks -----------------------------------------------------------------------------------------------
 */

/* Nodes share no locks: of two that judge at once who is newest, each could delete what the other relies on.
 */
static void refuse_ranks(const struct plan *p, const struct store *s, struct findings *findings)
{
    const struct own_state *own = &s->own;
    const struct newest *n = p->policy->cap ? p->policy->cap : p->policy->keep_newest;
    const char *key = p->policy->cap ? "cap" : "keep_newest", *servers = p->facts->certifies;
    if (!p->beyond || !servers)
        return;
    if (own->version < OWN_SINCE_LEASES)
        findings_add(
            findings, FINDING_ERROR, p->policy->name, n->at, "run lapse install",
            "%s needs lapse's own tables with %s, whose servers share no locks: sweeps on two of them "
            "could leave fewer rows than are to stay",
            key, servers);
    else if (own->lacks_lease[0])
        findings_add(findings, FINDING_ERROR, p->policy->name, n->at,
                     "'lapse install --grants ROLE' prints what is needed",
                     "%s needs lapse's own tables with %s, and this user has no right to %s", key, servers,
                     own->lacks_lease);
}

static int check_fuse(struct asking *a, struct err *e)
{
    struct err failed = ERR_INIT;
    struct fuse f;
    const struct policy *p = policy_of(a);
    AUTO(text_release) struct text words = {0};
    if (!p->limits || !a->store->own.version)
        return 0;
    if (fuse_judge(a->store, a->plan, -1, &f, &failed))
        return take_delay(a, &failed, "the fuse", e);
    fuse_words(a->plan, &f, &words);
    if (words.len)
        findings_add(a->findings, FINDING_WARNING, p->name, p->limits->at,
                     f.verdict == FUSE_WOULD_TRIP
                         ? "look at 'lapse plan'; if it is right, raise the limits, or acknowledge the trip"
                         : "",
                     "%s", text_str(&words));
    return 0;
}

static int check_drops(struct asking *a, struct err *e)
{
    struct err failed = ERR_INIT;
    if (!a->plan->drops || check_listed_partitions(a->plan, a->store, a->findings, &failed) == 0)
        return 0;
    return take_delay(a, &failed, "partitions", e);
}

/* --- how due rows are found ------------------------------------------------------------------- */

/* An index that has the right columns may still not serve: by its collation, its type, how it is built, what
 * stands behind the time in it, or as it is too new. */
static void add_unserved(const struct plan *p, struct findings *findings, const char *words)
{
    const struct survey s = survey_of(p, findings);
    const char *better = better_index_words(&s);
    if (p->index->too_new)
        findings_add(findings, FINDING_WARNING, p->policy->name, p->times[0].at,
                     "wait until those have ended, then run lapse check again",
                     "the index %s leads to %s, but the database does not use it as long as transactions run "
                     "that began before it was made: %s",
                     p->index->name, p->times[0].column->name, words);
    else
        findings_add(
            findings, FINDING_WARNING, p->policy->name, p->times[0].at,
            better ? better : "see what the index is made of: its columns must compare as the table's do",
            "the index %s leads to %s, but the database cannot find due rows by it: %s", p->index->name,
            p->times[0].column->name, words);
}

/* Conditions on other rows are other tables' business. */
static int check_served(struct asking *a, struct err *e)
{
    const struct plan *p = a->plan;
    struct err failed = ERR_INIT;
    bool served = true;
    AUTO(text_release) struct text words = {0};
    if (!p->index || p->examines || p->judge_again || a->timeless)
        return 0;
    if (a->store->ops->served(a->store, p, &served, &words, &failed) < 0)
        return take_delay(a, &failed, p->index->name, e);
    if (!served)
        add_unserved(p, a->findings, text_str(&words));
    return 0;
}

/* --- the policy ------------------------------------------------------------------------------- */

/* Conditions that are not accepted cannot be counted with; the rest can be asked all the same. */
static int ask_database(struct asking *a, struct err *e)
{
    if (check_source(a, e) || check_ranking(a, e))
        return -1;
    if (a->thorough && (check_all_states(a, e) || check_folding(a, e)))
        return -1;
    if (!a->thorough || a->refused)
        return 0;
    if (check_unusable(a, e) || check_newest_rows(a, e) || check_fuse(a, e) || check_drops(a, e))
        return -1;
    return check_served(a, e);
}

/* Where reading is denied the database would only say so once more. */
static bool may_read_all(const struct facts *f)
{
    for (size_t i = 0; i < f->n_tables; i++)
        if (!f->tables[i]->may_select || f->tables[i]->rows_hidden)
            return false;
    return true;
}

static void refuse_not_yet(const struct policy *p, struct findings *findings)
{
    for (size_t i = 0; i < p->n_not_yet; i++)
        findings_add(findings, FINDING_ERROR, p->name, p->not_yet[i].at, "take the key out, or the policy",
                     "'%s' is validated but does not run in this version; policy '%s' is refused",
                     p->not_yet[i].key, p->name);
}

/* "schema.table" and "table" of every table there is. */
static int all_table_words(struct store *s, struct arena *a, const char ***ret, size_t *ret_n, struct err *e)
{
    struct table_name *tables = NULL;
    size_t n = 0;
    if (s->ops->list_tables(s, a, &tables, &n, e))
        return -1;
    const char **words = arena_alloc(a, (2 * n + 1) * sizeof(*words));
    for (size_t i = 0; i < n; i++) {
        words[2 * i] = tables[i].table.text;
        words[2 * i + 1] = table_words(a, &tables[i]);
    }
    *ret = words;
    *ret_n = 2 * n;
    return 0;
}

static void suggest_table(struct findings *findings, size_t from, const struct table_name *name,
                          const char *near)
{
    for (size_t i = from; i < findings->n; i++) {
        struct finding *f = &findings->list[i];
        if (f->level == FINDING_ERROR && f->at.line == name->at.line && f->at.column == name->at.column)
            f->fix = arena_printf(findings->arena, "did you mean '%s'?", near);
    }
}

/* Making the plan has complained of tables that are not there (findings `from` on); only the database knows
 * which there are instead. */
int check_suggest_tables(struct store *s, const struct facts *facts, const struct table_names *names,
                         struct findings *findings, size_t from, struct err *e)
{
    const char **words = NULL;
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++) {
        if (facts_table(facts, names->list[i]))
            continue;
        if (!words && all_table_words(s, findings->arena, &words, &n, e))
            return -1;
        const char *near = nearest_word(table_words(findings->arena, names->list[i]), words, n);
        if (near)
            suggest_table(findings, from, names->list[i], near);
    }
    return 0;
}

static void check_parts(const struct plan *p, bool thorough, bool timeless, struct findings *findings);

int check_made(const struct plan *plan, struct store *s, bool thorough, struct findings *findings,
               struct err *e)
{
    struct asking a = {.plan = plan, .store = s, .thorough = thorough, .findings = findings};
    bool readable = may_read_all(plan->facts);
    if (readable && (check_accepts(&a, e) || check_times(&a, e)))
        return -1;
    check_parts(plan, thorough, a.timeless, findings);
    refuse_ranks(plan, s, findings);
    return readable ? ask_database(&a, e) : 0;
}

/* Said, since whoever asks for several expects them. */
static void check_workers(const struct survey *s)
{
    const struct policy *p = s->plan->policy;
    if (p->workers > 1 && s->plan->facts->one_writer)
        findings_add(s->findings, FINDING_NOTE, p->name, p->at, "",
                     "workers: %lld is one here: this engine lets one connection write at a time",
                     (long long)p->workers);
    else if (p->workers > 1 && s->plan->beyond)
        findings_add(s->findings, FINDING_NOTE, p->name, p->at, "",
                     "workers: %lld is one here: batches that judge which rows are the newest go one by one",
                     (long long)p->workers);
}

static void check_circles(const struct survey *s)
{
    const struct plan *p = s->plan;
    if (plan_holds_circles(p))
        findings_add(
            s->findings, FINDING_WARNING, p->policy->name, p->policy->at,
            "make it ON DELETE NO ACTION, or set one of the references of such rows to NULL first",
            "rows that refer to each other in a circle cannot be deleted: a foreign key of the table "
            "to itself is ON DELETE RESTRICT, which acts row by row; plan counts them all the same");
}

static void check_parts(const struct plan *p, bool thorough, bool timeless, struct findings *findings)
{
    struct survey s = survey_of(p, findings);
    s.timeless = timeless;
    check_fkeys(&s);
    check_access(&s);
    check_policy_path(&s, thorough);
    check_references(&s);
    check_orphan(&s);
    check_partitions(&s);
    if (thorough)
        check_indexes(&s);
    check_split(&s);
    check_circles(&s);
    if (thorough)
        check_workers(&s);
}

void check_plan(const struct plan *p, bool thorough, struct findings *findings)
{
    check_parts(p, thorough, false, findings);
}

int check_plan_indexes(const struct plan *p, struct store *s, struct findings *findings, struct err *e)
{
    struct survey survey = survey_of(p, findings);
    struct asking a = {.plan = p, .store = s, .findings = findings};
    check_indexes(&survey);
    return check_served(&a, e);
}

/* Who has no right on lapse's own tables that only a sweep needs looks on, or operates; a sweeper that lacks
 * some is told. Without such tables nobody can tell. */
void check_role(const struct store *s, struct facts *f)
{
    AUTO(text_release) struct text hint = {0};
    bool sweeps = !s->purpose || strcmp(s->purpose, grants_for_name(FOR_SWEEP)) == 0;
    f->looks_on = !sweeps && s->own.version && !s->own.may_sweep;
    store_grants_hint(s, &hint);
    f->grants = hint.len ? arena_strdup(f->arena, text_str(&hint)) : NULL;
}

int check_policy(const struct contract *c, const struct policy *p, struct store *s, instant now,
                 bool thorough, struct findings *findings, struct plan **ret_plan, struct facts **ret_facts,
                 struct err *e)
{
    (void)c;
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(plan_free_p) struct plan *plan = NULL; /* freed before the facts it looks at */
    struct table_names names = {0};
    size_t errors = findings->errors;

    refuse_not_yet(p, findings);
    plan_tables(p, findings->arena, &names);
    if (s->ops->inspect(s, &names, &facts, e))
        return -1;
    check_role(s, facts);
    refuse_without_own(p, s, facts->looks_on, findings);
    size_t before = findings->n;
    if (p->expires.text || p->n_age || p->orphan || p->cap) /* the file has complained of another */
        plan = plan_make(p, facts, now, findings);
    if (plan ? check_made(plan, s, thorough, findings, e)
             : check_suggest_tables(s, facts, &names, findings, before, e))
        return -1;

    bool refused = findings->errors > errors;
    *ret_plan = refused ? NULL : plan;
    *ret_facts = facts;
    facts = NULL;
    if (!refused)
        plan = NULL;
    return 0;
}

int check_coverage(const struct contract *c, struct store *s, bool strict, struct findings *findings,
                   struct err *e)
{
    AUTO(facts_free_p) struct facts *names = NULL;
    AUTO(facts_free_p) struct facts *f = NULL;
    struct table_names none = {0}, open = {0};
    struct table_name *tables = NULL;
    size_t n = 0;
    /* Facts about no table still say how the engine matches names. */
    if (s->ops->inspect(s, &none, &names, e) || s->ops->list_tables(s, findings->arena, &tables, &n, e))
        return -1;
    coverage_open(c, names, tables, n, findings->arena, &open);
    if (s->ops->inspect(s, &open, &f, e))
        return -1;
    coverage_judge(c, f, tables, n, strict, findings);
    return 0;
}

/* --- order
 * --------------------------------------------------------------------------------------------------- */

struct ranked {
    struct finding finding;
    size_t rank; /* in the order of adding */
};

static int compare_int(int a, int b)
{
    return (a > b) - (a < b);
}

static int compare_ranked(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    int order = compare_int((int)a->finding.level, (int)b->finding.level);
    /* What concerns the file as a whole comes after what has a line. */
    if (!order)
        order = compare_int(!a->finding.at.line, !b->finding.at.line);
    if (!order)
        order = compare_int(a->finding.at.line, b->finding.at.line);
    if (!order)
        order = compare_int(a->finding.at.column, b->finding.at.column);
    return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

void findings_sort(struct findings *f)
{
    if (f->n < 2)
        return;
    AUTO(mem_free_p) struct ranked *list = mem_grow(NULL, f->n, sizeof(*list));
    for (size_t i = 0; i < f->n; i++)
        list[i] = (struct ranked){f->list[i], i};
    qsort(list, f->n, sizeof(*list), compare_ranked);
    for (size_t i = 0; i < f->n; i++)
        f->list[i] = list[i].finding;
}
