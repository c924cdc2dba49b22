/* draft: what each table's columns and rows say about its end, and what is left to decide. */
#include "draft/draft.h"

#include <stdlib.h>
#include <string.h>

#include "schema/bounded.h"
#include "check/check.h"
#include "draft/internal.h"
#include "draft/words.h"
#include "base/quote.h"

enum { MOST_STATES_SHOWN = 12 };

void draft_say(struct arena *a, struct draft_lines *to, const char *fmt, ...)
{
    AUTO(text_release) struct text t = {0};
    va_list args;
    va_start(args, fmt);
    text_vaddf(&t, fmt, args);
    va_end(args);
    to->list = arena_push(a, to->list, to->n, sizeof(*to->list));
    to->list[to->n++] = arena_strdup(a, text_str(&t));
}

static void say_all(struct arena *a, struct draft_lines *to, const struct draft_lines *from)
{
    for (size_t i = 0; i < from->n; i++)
        draft_say(a, to, "%s", from->list[i]);
}

/* --- which columns -----------------------------------------------------------------------------------------
 */

static bool may_be_time(const struct column *c)
{
    switch (c->type) {
    case TYPE_INTEGER:
    case TYPE_TEXT:
    case TYPE_DYNAMIC:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP:
    case TYPE_DATE:
        return true;
    default:
        return false;
    }
}

static bool may_be_state(struct arena *a, const struct column *c)
{
    bool words = c->type == TYPE_TEXT || c->type == TYPE_ENUM || c->type == TYPE_DYNAMIC;
    return words && words_state(a, c->name);
}

/* What a queue has done with a row, or that it is only marked as deleted: a time or a flag. */
static bool may_be_mark(struct arena *a, const struct column *c)
{
    return (may_be_time(c) || c->type == TYPE_BOOLEAN) &&
           (words_handed_on(a, c->name) || words_soft_deleted(a, c->name));
}

static bool is_of_interest(struct arena *a, const struct table *t, const struct column *c)
{
    if (may_be_state(a, c) || may_be_mark(a, c))
        return true;
    return may_be_time(c) && (words_age(a, c->name) || words_expiry(a, t->name, c->name) == EXPIRY_OF_ROW);
}

size_t draft_columns(const struct table *t, const struct column **ret)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    size_t n = 0;
    for (size_t i = 0; i < t->n_columns; i++)
        if (is_of_interest(a, t, &t->columns[i]))
            ret[n++] = &t->columns[i];
    return n;
}

/* --- one table ---------------------------------------------------------------------------------------------
 */

/* Columns that each must say yes before a row is over, and the best of them that says since when. */
struct marks {
    struct draft_condition *list;
    size_t n;
    struct draft_time since;
    int rank;
};

/* What was found of a table, before anything is known of the others. */
struct sight {
    const struct draft_look *look;
    struct draft_time expires, age;
    struct marks handed_on, deleted;
    const struct column *state;
    const char **states;
    size_t n_states;
    struct draft_lines notes; /* what was seen and does not bound it */
    struct draft_lines states_why;
};

static const char *rows_words(struct arena *a, const struct draft_look *l)
{
    size_t n = l->rows.n_rows;
    return arena_printf(a, "%s%zu row%s", l->whole ? "" : "the ", n,
                        n == 1     ? ""
                        : l->whole ? "s"
                                   : "s looked at");
}

/* The expiry of the row; where there are two, neither can be told to be the row's end. */
static void find_expiry(struct sight *s, struct arena *a)
{
    const struct table *t = s->look->table;
    size_t found = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];
        enum expiry e = words_expiry(a, t->name, c->name);
        if (e == EXPIRY_NONE || !may_be_time(c))
            continue;
        struct draft_time time = e == EXPIRY_OF_ROW ? draft_time_of(s->look, c, a) : (struct draft_time){0};
        if (e == EXPIRY_OF_PART)
            draft_say(a, &s->notes, "%s is about a part of the row, not about the row", c->name);
        else if (!time.usable)
            draft_say(a, &s->notes, "%s holds no times", c->name);
        found += time.usable || e == EXPIRY_OF_PART;
        if (time.usable && !s->expires.usable)
            s->expires = time;
    }
    if (s->expires.usable && found > 1)
        draft_say(a, &s->expires.decide, "more than one column says when something expires");
}

/* How often a value was seen. */
struct tally {
    const char *text;
    size_t len, rows;
};
struct tallies {
    struct tally *list;
    size_t n, nulls;
};

static void count_value(struct arena *a, struct tallies *t, const struct value *v)
{
    if (v->kind != VALUE_TEXT) {
        t->nulls += v->kind == VALUE_NULL;
        return;
    }
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].len == v->len && memcmp(t->list[i].text, v->text, v->len) == 0) {
            t->list[i].rows++;
            return;
        }
    t->list = arena_push(a, t->list, t->n, sizeof(*t->list));
    t->list[t->n++] = (struct tally){v->text, v->len, 1};
}

static int compare_tallies(const void *pa, const void *pb)
{
    const struct tally *a = pa, *b = pb;
    return a->rows != b->rows ? (a->rows < b->rows) - (a->rows > b->rows) : strcmp(a->text, b->text);
}

/* Many different values make a text, not a state. */
enum { MOST_STATES = 64 };

static struct tallies tally(struct arena *a, const struct draft_look *l, const struct column *c)
{
    struct tallies t = {0};
    for (size_t k = 0; k < l->n_columns; k++)
        for (size_t i = 0; l->columns[k] == c && i < l->rows.n_rows && t.n <= MOST_STATES; i++)
            count_value(a, &t, &rows_at(&l->rows, i)[k]);
    if (t.n)
        qsort(t.list, t.n, sizeof(*t.list), compare_tallies);
    return t;
}

static const char *tally_words(struct arena *a, const struct tallies *t)
{
    AUTO(text_release) struct text out = {0};
    for (size_t i = 0; i < t->n && i < MOST_STATES_SHOWN; i++)
        text_addf(&out, "%s%.*s %zu", i ? ", " : "",
                  (int)(t->list[i].len < LONGEST ? t->list[i].len : LONGEST), t->list[i].text,
                  t->list[i].rows);
    if (t->n > MOST_STATES_SHOWN)
        text_addf(&out, ", and %zu more", t->n - MOST_STATES_SHOWN);
    if (t->nulls)
        text_addf(&out, "%sNULL %zu", out.len ? ", " : "", t->nulls);
    return arena_strdup(a, text_str(&out));
}

static void add_state(struct sight *s, struct arena *a, const char *text, size_t len)
{
    for (size_t i = 0; i < s->n_states; i++)
        if (strlen(s->states[i]) == len && memcmp(s->states[i], text, len) == 0)
            return;
    if (!word_is_ended(a, text, len) || memchr(text, '\0', len))
        return;
    const char *state = arena_strndup(a, text, len);
    if (!yaml_can_hold(state))
        return;
    s->states = arena_push(a, s->states, s->n_states, sizeof(*s->states));
    s->states[s->n_states++] = state;
}

/* An enum lists its states, in their order; of a text only the values present are known. */
static bool find_states_in(struct sight *s, struct arena *a, const struct column *c)
{
    struct tallies t = tally(a, s->look, c);
    for (size_t i = 0; i < c->n_labels; i++)
        add_state(s, a, c->labels[i], strlen(c->labels[i]));
    for (size_t i = 0; t.n <= MOST_STATES && i < t.n; i++)
        add_state(s, a, t.list[i].text, t.list[i].len);
    if (!s->n_states) {
        if (t.n && t.n <= MOST_STATES)
            draft_say(a, &s->notes, "no value of %s is known to mean that a row has ended (%s)", c->name,
                      tally_words(a, &t));
        else
            draft_say(a, &s->notes, "%s: %s", c->name,
                      t.n ? "too many different values for a state" : "no values yet");
        return false;
    }
    s->state = c;
    draft_say(a, &s->states_why, "%s says which rows have ended%s; in %s: %s", c->name,
              c->type == TYPE_ENUM ? " (from its enum)" : "", rows_words(a, s->look),
              t.n || t.nulls ? tally_words(a, &t) : "no values");
    return true;
}

static void find_states(struct sight *s, struct arena *a)
{
    const struct table *t = s->look->table;
    for (int rank = 1; rank <= 2; rank++)
        for (size_t i = 0; i < t->n_columns; i++) {
            const struct column *c = &t->columns[i];
            if (words_state(a, c->name) != rank)
                continue;
            if (!may_be_state(a, c))
                draft_say(a, &s->notes, "%s is %s: which of its values mean the end is not said", c->name,
                          c->sql_type);
            else if (find_states_in(s, a, c))
                return;
        }
}

static bool is_zero_or_one(const struct value *v)
{
    if (v->kind == VALUE_INTEGER)
        return v->integer == 0 || v->integer == 1;
    return v->kind == VALUE_TEXT && v->len == 1 && (*v->text == '0' || *v->text == '1');
}

/* Every value there is, is 0 or 1. Without a value its name decides. */
static bool is_flag(const struct draft_look *l, const struct column *c, struct arena *a)
{
    bool any = false;
    if (c->type == TYPE_BOOLEAN)
        return true;
    if (c->type != TYPE_INTEGER && c->type != TYPE_DYNAMIC)
        return false;
    for (size_t k = 0; k < l->n_columns; k++)
        for (size_t i = 0; l->columns[k] == c && i < l->rows.n_rows; i++) {
            const struct value *v = &rows_at(&l->rows, i)[k];
            if (v->kind != VALUE_NULL && !is_zero_or_one(v))
                return false;
            any |= v->kind != VALUE_NULL;
        }
    return (any || c->type == TYPE_INTEGER) && !words_say_time(a, c->name);
}

/* `dispatched integer`: that it was done, not when. */
static bool is_mere_mark(const struct draft_look *l, const struct column *c, struct arena *a)
{
    return (words_handed_on(a, c->name) || words_soft_deleted(a, c->name)) && is_flag(l, c, a);
}

static void find_age(struct sight *s, struct arena *a)
{
    const struct table *t = s->look->table;
    int best = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];
        int rank = may_be_time(c) && !is_mere_mark(s->look, c, a) ? words_age(a, c->name) : 0;
        if (!rank || (best && rank >= best))
            continue;
        struct draft_time time = draft_time_of(s->look, c, a);
        if (!time.usable)
            continue;
        s->age = time;
        best = rank;
    }
}

/* When the column says yes. A count's 0 may stand for "not yet". */
static enum draft_test test_of(const struct draft_look *l, const struct column *c, struct arena *a)
{
    if (is_flag(l, c, a))
        return c->type == TYPE_BOOLEAN ? DRAFT_IS_TRUE : DRAFT_IS_ONE;
    return c->type == TYPE_INTEGER || draft_time_of(l, c, a).count ? DRAFT_ABOVE_ZERO : DRAFT_IS_SET;
}

static void add_mark(struct arena *a, struct marks *m, const struct draft_look *l, const struct column *c)
{
    struct draft_condition condition = {c, test_of(l, c, a)};
    m->list = arena_push(a, m->list, m->n, sizeof(*m->list));
    m->list[m->n++] = condition;
    if (condition.test == DRAFT_IS_TRUE || condition.test == DRAFT_IS_ONE)
        return;
    struct draft_time time = draft_time_of(l, c, a);
    int rank = words_age(a, c->name);
    if (!time.usable || (m->since.usable && rank >= m->rank))
        return;
    m->since = time;
    m->rank = rank;
}

static void find_marks(struct sight *s, struct arena *a)
{
    const struct table *t = s->look->table;
    for (size_t i = 0; i < t->n_columns; i++)
        if (may_be_mark(a, &t->columns[i]))
            add_mark(a, words_soft_deleted(a, t->columns[i].name) ? &s->deleted : &s->handed_on, s->look,
                     &t->columns[i]);
}

static struct sight sight_of(const struct draft_look *l, struct arena *a)
{
    struct sight s = {.look = l};
    find_expiry(&s, a);
    find_states(&s, a);
    find_age(&s, a);
    find_marks(&s, a);
    return s;
}

/* --- policies ----------------------------------------------------------------------------------------------
 */

static bool table_is_ordinary(const struct table *t)
{
    return t->kind == KIND_TABLE || t->kind == KIND_PARTITIONED;
}

static bool has_ended_rows(const struct sight *s)
{
    return s->state && s->age.usable;
}

static bool has_state_column(const struct table *t, struct arena *a)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (words_state(a, t->columns[i].name))
            return true;
    return false;
}

/* Sessions and their like that nobody has used for long. */
static bool falls_asleep(const struct sight *s, struct arena *a)
{
    return s->age.usable && words_end_as_ephemeral(a, s->look->table->name) &&
           words_last_used(a, s->age.column->name);
}

/* By age alone only where no column tells rows that have ended from others: those would be deleted too. Of a
 * queue, that a row was handed on tells it as well as a state. */
static bool piles_up(const struct sight *s, struct arena *a)
{
    const struct table *t = s->look->table;
    return !s->expires.usable && (s->age.usable || s->handed_on.since.usable) &&
           (!has_state_column(t, a) || (s->handed_on.since.usable && words_are_queue(a, t->name))) &&
           (words_are_operational(a, t->name) || falls_asleep(s, a));
}

static bool is_soft_deleted(const struct sight *s)
{
    return s->deleted.n && (s->deleted.since.usable || s->age.usable);
}

static struct draft_policy *add_policy(struct draft *d, const struct sight *s, enum draft_bound bound,
                                       const struct draft_time *time, const char *what)
{
    struct arena *a = d->arena;
    d->policies = arena_push(a, d->policies, d->n_policies, sizeof(*d->policies));
    struct draft_policy *p = &d->policies[d->n_policies++];
    *p = (struct draft_policy){.table = s->look->table,
                               .bound = bound,
                               .time = time->column,
                               .unit = time->unit,
                               .zone = time->zone};
    draft_say(a, &p->why, "%s: %s", p->table->print, what);
    say_all(a, &p->why, &time->why);
    if (s->look->trouble)
        draft_say(a, &p->decide, "its rows could not be looked at: %s", s->look->trouble);
    say_all(a, &p->decide, &time->decide);
    return p;
}

/* A row that holds a token which is renewed, or money, does not end with its expiry. */
static void doubt_columns(struct draft *d, struct draft_policy *p)
{
    for (size_t i = 0; i < p->table->n_columns; i++)
        if (words_outlive_expiry(d->arena, p->table->columns[i].name)) {
            draft_say(d->arena, &p->decide, "whether the row is over then: it also has %s",
                      p->table->columns[i].name);
            return;
        }
}

static void draft_expiry(struct draft *d, const struct sight *s)
{
    const struct table *t = s->look->table;
    const char *what = arena_printf(d->arena, "%s says when a row is over", s->expires.column->name);
    struct draft_policy *p = add_policy(d, s, DRAFT_EXPIRES, &s->expires, what);
    p->above_zero = s->expires.count;
    if (!words_are_ephemeral(d->arena, t->name))
        draft_say(d->arena, &p->decide, "whether a row may go once it has expired");
    doubt_columns(d, p);
}

/* A row whose age column is NULL is never due: only where that is a count it must be above 0, too. */
static void add_conditions(struct draft *d, struct draft_policy *p, const struct marks *m)
{
    p->conditions = arena_alloc(d->arena, (m->n + 1) * sizeof(*p->conditions));
    for (size_t i = 0; i < m->n; i++)
        if (m->list[i].column != p->time || m->list[i].test != DRAFT_IS_SET)
            p->conditions[p->n_conditions++] = m->list[i];
}

static const char *mark_words(struct arena *a, const struct marks *m)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < m->n; i++)
        text_addf(&t, "%s%s", i ? ", " : "", m->list[i].column->name);
    return arena_strdup(a, text_str(&t));
}

static void require_handed_on(struct draft *d, struct draft_policy *p, const struct sight *s)
{
    struct arena *a = d->arena;
    if (s->handed_on.n) {
        add_conditions(d, p, &s->handed_on);
        draft_say(a, &p->why, "a row is over once it has %s: without, it stays",
                  mark_words(a, &s->handed_on));
    } else if (words_are_queue(a, p->table->name) && !p->state) {
        draft_say(a, &p->decide,
                  "which rows are done with: no column says it, and one that is not would go too");
    }
}

static void draft_ended(struct draft *d, const struct sight *s)
{
    struct draft_policy *p = add_policy(d, s, DRAFT_ENDED, &s->age, s->states_why.list[0]);
    p->state = s->state;
    p->states = s->states;
    p->n_states = s->n_states;
    if (words_are_queue(d->arena, p->table->name))
        require_handed_on(d, p, s);
    draft_say(d->arena, &p->decide, "how long such rows are kept, counted from %s", s->age.column->name);
}

static void draft_age(struct draft *d, const struct sight *s)
{
    const struct draft_time *since = s->handed_on.since.usable ? &s->handed_on.since : &s->age;
    const char *why =
        words_are_operational(d->arena, s->look->table->name)
            ? arena_printf(d->arena, "its rows pile up, as its name says; %s says how old they are",
                           since->column->name)
            : arena_printf(d->arena,
                           "its rows are short-lived, as its name says; %s says when they "
                           "were last used",
                           since->column->name);
    struct draft_policy *p = add_policy(d, s, DRAFT_AGE, since, why);
    require_handed_on(d, p, s);
    draft_say(d->arena, &p->decide, "whether its rows may go by age, and how long they are kept");
    say_all(d->arena, &p->decide, &s->notes);
}

static void draft_deleted(struct draft *d, const struct sight *s)
{
    const struct draft_time *since = s->deleted.since.usable ? &s->deleted.since : &s->age;
    const char *what = arena_printf(d->arena, "%s marks rows as deleted that are still there",
                                    mark_words(d->arena, &s->deleted));
    struct draft_policy *p = add_policy(d, s, DRAFT_DELETED, since, what);
    add_conditions(d, p, &s->deleted);
    draft_say(d->arena, &p->decide, "how long rows that are marked as deleted are kept, counted from %s",
              since->column->name);
}

static bool name_is_taken(const struct draft *d, const struct draft_policy *p, const char *name)
{
    for (const struct draft_policy *q = d->policies; q < p; q++)
        if (strcmp(q->name, name) == 0)
            return true;
    return false;
}

static bool name_is_shared(const struct draft *d, const struct table *t)
{
    for (size_t i = 0; i < d->facts->n_tables; i++)
        if (d->facts->tables[i] != t && strcmp(d->facts->tables[i]->name, t->name) == 0)
            return true;
    return false;
}

/* The table's name, with its schema where two have it, and what tells two policies of a table apart. */
static void name_policies(struct draft *d)
{
    for (size_t i = 0; i < d->n_policies; i++) {
        struct draft_policy *p = &d->policies[i];
        const char *name = name_is_shared(d, p->table) ? p->table->print : p->table->name;
        bool second = i && d->policies[i - 1].table == p->table;
        const char *of = p->bound == DRAFT_DELETED ? "deleted" : "ended";
        p->name = second ? arena_printf(d->arena, "%s.%s", name, of) : name;
        for (int n = 2; name_is_taken(d, p, p->name); n++)
            p->name = arena_printf(d->arena, "%s.%d", name, n);
    }
}

/* --- check -------------------------------------------------------------------------------------------------
 */

int draft_contract(const struct draft_policy *p, struct contract **ret, struct err *e)
{
    AUTO(text_release) struct text yaml = {0};
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    text_add(&yaml, "store: sqlite:x\npolicies:\n");
    draft_policy_text(p, false, &yaml);
    if (contract_parse("draft", text_str(&yaml), yaml.len, ret, &mistakes, e) == 0)
        return 0;
    return mistakes.n ? err_set(e, ERR_CONTRACT, "%s", mistakes.list[0].text) : -1;
}

/* What check would say of the policy, as far as the facts tell. False: a contract cannot say it at all. */
static bool check_by_facts(struct draft *d, struct draft_policy *p, instant now)
{
    AUTO(contract_free_p) struct contract *c = NULL;
    AUTO(plan_free_p) struct plan *plan = NULL;
    struct findings found = {.arena = d->arena};
    struct err e = ERR_INIT;
    if (draft_contract(p, &c, &e) < 0)
        return false;
    plan = plan_make(&c->policies[0], d->facts, now, &found);
    if (plan)
        check_plan(plan, false, &found);
    for (size_t i = 0; i < found.n; i++)
        if (found.list[i].level == FINDING_ERROR)
            draft_say(d->arena, &p->decide, "check says: %s", found.list[i].what);
    return true;
}

void draft_doubt(struct draft *d, struct draft_policy *p, const char *what)
{
    draft_say(d->arena, &p->decide, "%s", what);
}

/* --- the rest ----------------------------------------------------------------------------------------------
 */

static bool takes_along(const struct draft_ref *refs, size_t n, const struct table *t)
{
    for (size_t i = 0; i < n; i++)
        if (refs[i].role == DRAFT_WITH &&
            (refs[i].child == t || takes_along(refs[i].below, refs[i].n_below, t)))
            return true;
    return false;
}

static const char *goes_with(const struct draft *d, const struct table *t)
{
    for (size_t i = 0; i < d->n_policies; i++)
        if (d->policies[i].table != t && takes_along(d->policies[i].refs, d->policies[i].n_refs, t))
            return d->policies[i].name;
    return NULL;
}

static bool has_policy(const struct draft *d, const struct table *t)
{
    for (size_t i = 0; i < d->n_policies; i++)
        if (d->policies[i].table == t)
            return true;
    return false;
}

static void say_rest(struct draft *d, struct draft_rest *r, const struct sight *s)
{
    struct arena *a = d->arena;
    if (!r->table->may_select)
        draft_say(a, &r->why, "%s: it may not be read", r->table->print);
    else if (s->look->trouble)
        draft_say(a, &r->why, "%s: its rows could not be looked at: %s", r->table->print, s->look->trouble);
    else
        draft_say(a, &r->why, "%s: found no expiry of its rows, no states that end them", r->table->print);
    say_all(a, &r->why, &s->notes);
    if (s->state && !s->age.usable)
        draft_say(a, &r->why, "%s, but no column says since when", s->states_why.list[0]);
    if (!r->table->n_key)
        draft_say(a, &r->why, "no usable key: its rows could not be told apart");
}

static void add_rest(struct draft *d, const struct sight *s)
{
    const struct table *t = s->look->table;
    if (has_policy(d, t))
        return;
    d->rest = arena_push(d->arena, d->rest, d->n_rest, sizeof(*d->rest));
    struct draft_rest *r = &d->rest[d->n_rest++];
    *r = (struct draft_rest){.table = t};
    r->bounded_by = table_bounded_by(d->facts, t, d->arena);
    r->goes_with = r->bounded_by ? NULL : goes_with(d, t);
    if (!r->bounded_by && !r->goes_with)
        say_rest(d, r, s);
}

/* --- all together ------------------------------------------------------------------------------------------
 */

static bool is_own(const struct table *t)
{
    return strncmp(t->name, "lapse_", strlen("lapse_")) == 0;
}

/* Names with control characters, or that are not UTF-8. */
static bool can_be_named(const struct table *t)
{
    return yaml_can_hold(t->name) && (!t->schema || yaml_can_hold(t->schema));
}

static bool is_for_draft(const struct table *t)
{
    return table_is_ordinary(t) && !is_own(t) && can_be_named(t);
}

static void draft_table(struct draft *d, const struct sight *s, bool drafted)
{
    if (!drafted)
        return;
    if (s->expires.usable)
        draft_expiry(d, s);
    if (has_ended_rows(s))
        draft_ended(d, s);
    else if (piles_up(s, d->arena))
        draft_age(d, s);
    if (is_soft_deleted(s))
        draft_deleted(d, s);
}

/* A policy that a contract cannot hold is left out; its table is then among the rest. */
static void check_policies(struct draft *d, instant now)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_policies; i++)
        if (check_by_facts(d, &d->policies[i], now))
            d->policies[n++] = d->policies[i];
        else
            draft_say(d->arena, &d->odd, "%s: a contract cannot name it, its columns or what points at it",
                      d->policies[i].table->print);
    d->n_policies = n;
}

static int compare_policies(const void *pa, const void *pb)
{
    const struct draft_policy *a = pa, *b = pb;
    if (!a->decide.n != !b->decide.n)
        return a->decide.n ? 1 : -1;
    return strcmp(a->name, b->name);
}

void draft_sort(struct draft *d)
{
    if (d->n_policies)
        qsort(d->policies, d->n_policies, sizeof(*d->policies), compare_policies);
    d->n_certain = 0;
    while (d->n_certain < d->n_policies && !d->policies[d->n_certain].decide.n)
        d->n_certain++;
}

/* The column by which a row is a queue with its settings: its key is a queue's name, or the table is called
 * `queues` and its rows have names. NULL: there is none. */
static const struct column *name_of_queue(const struct table *t, struct arena *a)
{
    if (words_are_queue(a, t->name) && t->n_key == 1 && words_name_queue(a, t->key[0]->name))
        return t->key[0];
    for (size_t i = 0; words_are_queues(a, t->name) && i < t->n_columns; i++)
        if (words_name_queue(a, t->columns[i].name))
            return &t->columns[i];
    return NULL;
}

/* Rows that are part of how a system is set up, however their names sound. */
static bool is_configuration(struct sight *s, struct arena *a)
{
    const struct table *t = s->look->table;
    const struct column *queue = name_of_queue(t, a);
    if (words_are_pool(a, t->name))
        draft_say(a, &s->notes, "its name says that it is a pool: its rows are handed out again");
    else if (queue)
        draft_say(a, &s->notes, "its %s is %s: its rows are queues, not what waits in them",
                  t->n_key == 1 && queue == t->key[0] ? "key" : "queue's name", queue->name);
    else
        return false;
    return true;
}

/* Singletons first said to be bounded need no policy. */
static bool wants_policy(const struct draft *d, struct sight *s)
{
    const struct table *t = s->look->table;
    if (table_bounded_by(d->facts, t, d->arena) || is_configuration(s, d->arena))
        return false;
    return s->expires.usable || has_ended_rows(s) || piles_up(s, d->arena) || is_soft_deleted(s);
}

struct draft *draft_make(const struct facts *f, const struct draft_look *looks, instant now)
{
    struct arena *a = arena_new();
    struct draft *d = arena_alloc(a, sizeof(*d));
    *d = (struct draft){.arena = a, .facts = f};
    struct sight *sights = arena_alloc(a, (f->n_tables + 1) * sizeof(*sights));
    struct draft_house h = {.draft = d, .facts = f};
    bool *keeps = arena_alloc(a, f->n_tables + 1);
    h.owner = arena_alloc(a, (f->n_tables + 1) * sizeof(*h.owner));
    h.drafted = arena_alloc(a, f->n_tables + 1);
    for (size_t i = 0; i < f->n_tables; i++) {
        if (!is_for_draft(f->tables[i]))
            continue;
        sights[i] = sight_of(&looks[i], a);
        h.drafted[i] = wants_policy(d, &sights[i]);
        keeps[i] = h.drafted[i] && sights[i].expires.usable;
    }
    draft_own(&h, keeps);
    for (size_t i = 0; i < f->n_tables; i++)
        draft_table(d, &sights[i], h.drafted[i]);
    name_policies(d);
    for (size_t i = 0; i < d->n_policies; i++)
        draft_refs(&h, &d->policies[i]);
    check_policies(d, now);
    draft_sort(d);
    for (size_t i = 0; i < f->n_tables; i++) {
        if (is_for_draft(f->tables[i]))
            add_rest(d, &sights[i]);
        else if (!can_be_named(f->tables[i]))
            draft_say(a, &d->odd, "%s: a contract cannot name it", f->tables[i]->print);
    }
    return d;
}

void draft_free(struct draft *d)
{
    if (d)
        arena_free(d->arena);
}
