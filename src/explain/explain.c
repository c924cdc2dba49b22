/* explain: why one row is, is not, or will be due. See explain.h.
 *
 * First a pass over the plan: a line per condition, and what each line needs to know of the row goes into one
 * inquiry. Then a pass over the lines with the answer: each gets its value, its verdict and, where the row is
 * kept for it, the reason. */
#include "explain/explain.h"

#include <string.h>

#define NONE SIZE_MAX
enum { ROWS_NAMED = 5 };

/* What of the answer a line shows: numbers of columns, times, verdicts, waits; NONE: nothing. */
struct explain_source {
    size_t column, time, asked, wait;
    size_t unequal; /* the verdict on "by the column's own rules it is none of these" */
    void (*judge)(struct explaining *x, const struct answer *a, size_t line);
    const struct expr *expr; /* the condition itself; NULL: none */
};

const char *due_kind_name(enum due_kind k)
{
    static const char *const names[] = {
        [DUE_NOW] = "due", [DUE_LATER] = "later", [DUE_NOT] = "not due", [DUE_NEVER] = "never"};
    return names[k];
}

/* --- asking ------------------------------------------------------------------------------------ */

/* Its number among the columns asked for, or how many there are. */
static size_t asked_column(const struct explaining *x, const struct column *c)
{
    size_t i = 0;
    while (i < x->inquiry.n_columns && x->inquiry.columns[i] != c)
        i++;
    return i;
}

static size_t ask_column(struct explaining *x, const struct column *c)
{
    struct inquiry *q = &x->inquiry;
    size_t there = asked_column(x, c);
    if (there < q->n_columns)
        return there;
    q->columns = arena_push(x->arena, q->columns, q->n_columns, sizeof(*q->columns));
    q->columns[q->n_columns] = c;
    return q->n_columns++;
}

static size_t ask_time(struct explaining *x, const struct time_column *t)
{
    struct inquiry *q = &x->inquiry;
    struct time_column *times = arena_push(x->arena, (void *)q->times, q->n_times, sizeof(*times));
    times[q->n_times] = *t;
    q->times = times;
    return q->n_times++;
}

static size_t ask(struct explaining *x, const struct expr *condition)
{
    struct inquiry *q = &x->inquiry;
    q->asked = arena_push(x->arena, q->asked, q->n_asked, sizeof(*q->asked));
    q->asked[q->n_asked] = condition;
    return q->n_asked++;
}

static struct explain_line *line_at(struct explaining *x, size_t line)
{
    return &x->explanation->lines[line];
}

static size_t add_line(struct explaining *x, const char *part, int depth, const char *demand)
{
    struct explanation *ex = x->explanation;
    size_t n = ex->n_lines;
    ex->lines = arena_push(x->arena, ex->lines, n, sizeof(*ex->lines));
    x->sources = arena_push(x->arena, x->sources, n, sizeof(*x->sources));
    ex->lines[n] = (struct explain_line){.part = part, .depth = depth, .demand = demand, .said = ""};
    x->sources[n] = (struct explain_source){NONE, NONE, NONE, NONE, NONE, NULL, NULL};
    return ex->n_lines++;
}

static void show_column(struct explaining *x, size_t line, const struct column *c)
{
    struct explain_line *l = line_at(x, line);
    x->sources[line].column = ask_column(x, c);
    l->has_value = true;
    l->value.column = arena_strdup(x->arena, c->name);
    l->value.type = c->type;
}

static void show_time(struct explaining *x, size_t line, const struct time_column *t)
{
    show_column(x, line, t->column);
    x->sources[line].time = ask_time(x, t);
}

static const char *words_of(struct explaining *x, const struct expr *condition)
{
    AUTO(text_release) struct text t = {0};
    expr_print(condition, &t);
    return arena_strdup(x->arena, text_str(&t));
}

static const char *span_words(struct explaining *x, int64_t us)
{
    AUTO(text_release) struct text t = {0};
    span_format(us, &t);
    return arena_strdup(x->arena, text_str(&t));
}

/* --- verdicts ------------------------------------------------------------------------------------- */

static void set_verdict(struct explain_line *l, enum verdict v)
{
    static const char *const words[] = {
        [VERDICT_FALSE] = "does not match", [VERDICT_TRUE] = "matches", [VERDICT_UNKNOWN] = "unknown"};
    l->judged = true;
    l->verdict = v;
    l->said = v == VERDICT_UNKNOWN && l->has_value && l->value.value.kind == VALUE_NULL ? "unknown (NULL)"
                                                                                        : words[v];
}

/* The row is kept for this line until then, if that is a time at all. */
static void until(struct explain_line *l, instant at, int64_t keep_us, int64_t more_us)
{
    instant due;
    if (!add_i64(at, keep_us, &due) || !add_i64(due, more_us, &due))
        return;
    l->later = true;
    l->due_at = due;
}

/* A column's own time against a fixed distance from now: the distance moves with now. */
static void until_time_passes(struct explaining *x, struct explain_line *l, const struct expr *c, bool wanted)
{
    int64_t keep;
    if (!c || c->kind != EXPR_TIME || !l->has_at || !sub_i64(x->plan->now, c->at, &keep))
        return;
    if (wanted && (c->cmp == CMP_LT || c->cmp == CMP_LE))
        until(l, l->at, keep, c->cmp == CMP_LT);
    if (!wanted && (c->cmp == CMP_GT || c->cmp == CMP_GE))
        until(l, l->at, keep, c->cmp == CMP_GE);
}

/* Lines below a first one say more; only the first keeps the row. */
static void judge_part(struct explaining *x, const struct answer *a, size_t line)
{
    struct explain_line *l = line_at(x, line);
    size_t unequal = x->sources[line].unequal;
    if (l->verdict == VERDICT_FALSE && unequal != NONE && a->verdicts[unequal] == VERDICT_FALSE)
        l->said = "does not match: equal to the column, but not the same text";
    if (l->depth || l->verdict == VERDICT_TRUE)
        return;
    l->reason = arena_printf(x->arena, "outside `%s`", l->part);
    until_time_passes(x, l, x->sources[line].expr, true);
}

static void judge_hold(struct explaining *x, const struct answer *a, size_t line)
{
    (void)a;
    struct explain_line *l = line_at(x, line);
    if (l->depth)
        return;
    l->said = l->verdict == VERDICT_TRUE    ? "held"
              : l->verdict == VERDICT_FALSE ? "not held"
                                            : "not held (unknown)";
    if (l->verdict != VERDICT_TRUE)
        return;
    l->reason = arena_printf(x->arena, "held (%s)", words_of(x, x->sources[line].expr));
    until_time_passes(x, l, x->sources[line].expr, false);
}

/* --- conditions on the row's own columns -------------------------------------------------------------- */

typedef void judge_fn(struct explaining *x, const struct answer *a, size_t line);

/* The one column that a condition is about; NULL: none, or several. */
static const struct column *only_column(const struct expr *c)
{
    const struct column *one = c->kind == EXPR_TIME ? c->time.column : c->column;
    for (size_t i = 0; i < c->n_kids; i++) {
        const struct column *of_kid = only_column(c->kids[i]);
        if (!of_kid || (one && one != of_kid))
            return NULL;
        one = of_kid;
    }
    return c->kind == EXPR_EXISTS || c->kind == EXPR_SUBTREE_EXISTS ? NULL : one;
}

/* Whether texts may be equal to the condition's column that are not the same, and so let no row go. */
static bool may_be_merely_equal(const struct expr *c)
{
    bool equality = c->kind == EXPR_IN || (c->kind == EXPR_COMPARE && c->cmp == CMP_EQ);
    return equality && (c->column->folds || c->column->pads);
}

/* Where its being true keeps a row, a condition is judged by the column's own rules. */
static const struct expr *merely_unequal(struct explaining *x, const struct expr *c)
{
    struct expr *n = arena_alloc(x->arena, sizeof(*n));
    n->kind = EXPR_NOT_TRUE;
    n->kids = arena_alloc(x->arena, sizeof(*n->kids));
    n->kids[0] = c;
    n->n_kids = 1;
    return n;
}

static size_t add_leaf(struct explaining *x, const char *part, int depth, const struct expr *c,
                       judge_fn *judge)
{
    size_t line = add_line(x, part, depth, words_of(x, c));
    const struct column *column = only_column(c);
    if (c->kind == EXPR_TIME)
        show_time(x, line, &c->time);
    else if (column)
        show_column(x, line, column);
    x->sources[line].asked = ask(x, c);
    if (judge == judge_part && may_be_merely_equal(c))
        x->sources[line].unequal = ask(x, merely_unequal(x, c));
    x->sources[line].judge = judge;
    x->sources[line].expr = c;
    return line;
}

static bool is_group(const struct expr *c)
{
    return (c->kind == EXPR_AND || c->kind == EXPR_OR) && !only_column(c);
}

/* flat: every kid of an AND is a line of its own; else the AND is one, its kids below it. */
static void add_condition(struct explaining *x, const char *part, int depth, const struct expr *c, bool flat,
                          judge_fn *judge)
{
    bool all = c->kind == EXPR_AND;
    if (all && flat) {
        for (size_t i = 0; i < c->n_kids; i++)
            add_condition(x, part, depth, c->kids[i], true, judge);
        return;
    }
    size_t line = add_leaf(x, part, depth, c, judge);
    if (!is_group(c))
        return;
    line_at(x, line)->demand = all ? "all of" : "any of";
    for (size_t i = 0; i < c->n_kids; i++)
        add_condition(x, part, depth + 1, c->kids[i], false, judge);
}

/* --- time ----------------------------------------------------------------------------------------- */

/* The keep of a row whose column says it. False: it never ends. */
static bool own_keep(const struct explain_value *v, int64_t unit_us, int64_t *ret_us)
{
    if (v->value.kind == VALUE_NULL || v->value.kind == VALUE_BLOB || v->value.kind == VALUE_REAL)
        return false;
    AUTO(text_release) struct text t = {0};
    value_print(&v->value, &t);
    const char *s = text_str(&t);
    int64_t n = 0;
    if (!*s || strlen(s) > 19)
        return false;
    for (; *s; s++)
        if (*s < '0' || *s > '9' || !mul_i64(n, 10, &n) || !add_i64(n, *s - '0', &n))
            return false;
    return n > 0 && mul_i64(n, unit_us, ret_us);
}

static const struct cutoff *longer(const struct cutoff *a, const struct cutoff *b)
{
    if (!a || !b)
        return a ? a : b;
    return b->never || (!a->never && b->at < a->at) ? b : a;
}

/* Of the cutoffs by value, the one that keeps the row longest of those that the column takes its value for; and
 * otherwise, where it is none of these: the engine asks the same. *taken_for: one that it is not; NULL: none. */
static const struct cutoff *cutoff_of(const struct explaining *x, const struct answer *a, size_t first_asked,
                                      const char **taken_for)
{
    const struct plan *p = x->plan;
    const struct cutoff *longest = NULL, *otherwise = NULL;
    bool named = false;
    *taken_for = NULL;
    for (size_t i = 0; i < p->n_cutoffs; i++) {
        const struct cutoff *c = &p->cutoffs[i];
        if (!c->when) {
            otherwise = c;
            continue;
        }
        bool is = a->verdicts[first_asked++] == VERDICT_TRUE;
        bool taken = c->taken ? a->verdicts[first_asked++] == VERDICT_TRUE : is;
        named |= is;
        longest = taken ? longer(longest, c) : longest;
        *taken_for = taken && !is ? c->value : *taken_for;
    }
    if (named)
        *taken_for = NULL;
    return named ? longest : longer(longest, otherwise);
}

/* How long the row is kept. False: for ever. */
struct kept {
    bool never;
    int64_t us;
    instant not_before;    /* an engine does not reckon with cutoffs before 1970 */
    const char *taken_for; /* a value named by keep that the column takes the row's for; NULL: none */
};
static struct kept keep_of(struct explaining *x, const struct answer *a, size_t line)
{
    const struct plan *p = x->plan;
    const struct keep *k = &p->policy->keep;
    struct kept kept = {.not_before = INT64_MIN};
    struct explain_line *l = line_at(x, line);
    if (k->kind == KEEP_COLUMN) {
        const struct explain_source *s = &x->sources[line];
        kept.never = !own_keep(&l->value, s->expr->keep_unit_us, &kept.us);
        kept.not_before = kept.us;
        return kept;
    }
    const struct cutoff *c = k->kind == KEEP_BY ? cutoff_of(x, a, x->sources[line].asked, &kept.taken_for)
                             : p->n_cutoffs     ? &p->cutoffs[0]
                                                : NULL;
    kept.never = !c || c->never || !sub_i64(p->now, c->at, &kept.us);
    return kept;
}

static void judge_keep(struct explaining *x, const struct answer *a, size_t line)
{
    struct explain_line *l = line_at(x, line);
    struct kept kept = keep_of(x, a, line);
    l->judged = false; /* the first value's own verdict says nothing here */
    l->said = kept.never ? "never ends" : span_words(x, kept.us);
    if (kept.taken_for)
        l->said = arena_printf(
            x->arena, "%s: equal to '%s', but not the same text, so it is the longer of that and otherwise",
            l->said, kept.taken_for);
}

/* The latest of the row's times that count. */
static bool latest(const struct answer *a, size_t n, instant *ret)
{
    bool found = false;
    for (size_t i = 0; i < n; i++)
        if (a->times[i].usable && (!found || a->times[i].at > *ret)) {
            *ret = a->times[i].at;
            found = true;
        }
    return found;
}

static bool all_null(const struct explaining *x, const struct answer *a)
{
    const struct plan *p = x->plan;
    for (size_t i = 0; i < p->n_times; i++)
        if (rows_at(&a->row, 0)[asked_column(x, p->times[i].column)].kind != VALUE_NULL)
            return false;
    return true;
}

/* Verdicts 0 to n_times - 1 are "it is NULL or usable". */
static const char *unreadable(const struct explaining *x, const struct answer *a)
{
    for (size_t i = 0; i < x->plan->n_times; i++)
        if (a->verdicts[i] != VERDICT_TRUE)
            return x->plan->times[i].column->name;
    return NULL;
}

static void keep_for_ever(struct explaining *x, struct explain_line *l, const char *why)
{
    l->never = true;
    l->said = arena_printf(x->arena, "never: %s", why);
    l->reason = why;
}

/* The line before is the keep's, unless there is one keep for all. */
static struct kept keep_of_age(struct explaining *x, const struct answer *a, size_t line)
{
    enum keep_kind k = x->plan->policy->keep.kind;
    if (x->plan->policy->expires.text)
        return (struct kept){.not_before = INT64_MIN};
    return keep_of(x, a, k == KEEP_BY || k == KEEP_COLUMN ? line - 1 : line);
}

static void show_cutoff(struct explaining *x, struct explain_line *l, const struct kept *kept)
{
    const struct plan *p = x->plan;
    char buf[WHEN_TEXT_SIZE];
    instant cutoff;
    bool expires = p->policy->expires.text != NULL;
    if (kept->never || !sub_i64(p->now, kept->us, &cutoff))
        return;
    l->demand =
        arena_printf(x->arena, "%s %s %s", l->demand,
                     expires || p->policy->inclusive ? "at or before" : "before", when_format(cutoff, buf));
    if (!expires && p->policy->keep.kind == KEEP_SPAN)
        l->demand = arena_printf(x->arena, "%s (keep %s)", l->demand, span_words(x, kept->us));
}

static void judge_age(struct explaining *x, const struct answer *a, size_t line)
{
    const struct plan *p = x->plan;
    struct explain_line *l = line_at(x, line);
    struct kept kept = keep_of_age(x, a, line);
    bool inclusive = p->policy->expires.text || p->policy->inclusive;
    l->has_at = latest(a, p->n_times, &l->at);
    show_cutoff(x, l, &kept);
    if (l->verdict == VERDICT_TRUE)
        return;
    const char *bad = unreadable(x, a);
    if (bad)
        keep_for_ever(x, l, arena_printf(x->arena, "%s is no usable time", bad));
    else if (all_null(x, a))
        keep_for_ever(x, l, "it has no time");
    else if (kept.never)
        keep_for_ever(x, l, "its keep never ends");
    if (l->never)
        return;
    l->verdict = VERDICT_FALSE; /* a NULL among times that are not: it does not count */
    l->reason = "not old enough";
    l->said = "does not match";
    if (!l->has_at)
        return;
    until(l, l->at, kept.us, !inclusive);
    if (l->later && l->due_at < kept.not_before)
        l->due_at = kept.not_before;
}

static const struct expr *first_of_kind(const struct expr *c, enum expr_kind kind)
{
    const struct expr *found = c->kind == kind ? c : NULL;
    for (size_t i = 0; !found && i < c->n_kids; i++)
        found = first_of_kind(c->kids[i], kind);
    return found;
}

static void add_keep(struct explaining *x)
{
    const struct plan *p = x->plan;
    const struct keep *k = &p->policy->keep;
    if (p->policy->expires.text || (k->kind != KEEP_BY && k->kind != KEEP_COLUMN))
        return;
    const struct column *c = table_column(p->facts, p->root.table, &k->column);
    size_t line =
        add_line(x, "keep", 0, arena_printf(x->arena, "%s %s", k->kind == KEEP_BY ? "by" : "says", c->name));
    show_column(x, line, c);
    x->sources[line].judge = judge_keep;
    for (size_t i = 0; k->kind == KEEP_BY && i < p->n_cutoffs; i++) {
        if (!p->cutoffs[i].when)
            continue;
        size_t asked = ask(x, p->cutoffs[i].when);
        if (x->sources[line].asked == NONE)
            x->sources[line].asked = asked;
        if (p->cutoffs[i].taken)
            ask(x, p->cutoffs[i].taken);
    }
    if (k->kind == KEEP_COLUMN)
        x->sources[line].expr = first_of_kind(p->aged, EXPR_TIME_KEEP);
}

static void add_age(struct explaining *x)
{
    const struct plan *p = x->plan;
    AUTO(text_release) struct text names = {0};
    if (!p->n_times)
        return;
    add_keep(x);
    text_add(&names, p->n_times > 1 ? "the latest of " : "");
    for (size_t i = 0; i < p->n_times; i++)
        text_addf(&names, "%s%s", i ? ", " : "", p->times[i].column->name);
    const char *part = p->policy->expires.text ? "expires" : "age";
    size_t line = add_line(x, part, 0, arena_strdup(x->arena, text_str(&names)));
    if (p->n_times == 1)
        show_column(x, line, p->times[0].column);
    x->sources[line].asked = ask(x, p->aged);
    x->sources[line].judge = judge_age;
    for (size_t i = 0; p->n_times > 1 && i < p->n_times; i++) {
        size_t below = add_line(x, part, 1, arena_strdup(x->arena, p->times[i].column->name));
        show_column(x, below, p->times[i].column);
        x->sources[below].time = i;
    }
}

/* --- other rows ------------------------------------------------------------------------------------- */

static const char *wait_words(struct explaining *x, const struct wait *w)
{
    const struct node *n = w->node;
    const struct expr *demand = NULL;
    AUTO(text_release) struct text t = {0};
    switch (w->kind) {
    case WAIT_AFTER:
        text_add(&t, "no row of ");
        join_print(w->rows->table, w->rows->joins, &t);
        if (w->rows->n_kids) {
            text_add(&t, " where ");
            expr_print(w->rows->kids[0], &t);
        }
        if (w->parent)
            text_addf(&t, ", of its rows of %s", n->table->print);
        else if (n->n_grow)
            text_add(&t, ", of it or a row below it");
        break;
    case WAIT_WITH:
        text_add(&t, "every row of ");
        join_print(n->table, &n->join, &t);
        demand = n->where;
        break;
    case WAIT_BELOW:
        text_add(&t, "every row below by ");
        join_print(n->table, &n->grow[w->at], &t);
        demand = n->grow_where[w->at];
        break;
    case WAIT_SOURCE:
        text_add(&t, "a row of ");
        join_print(w->rows->table, w->rows->joins, &t);
        break;
    }
    if (demand) {
        text_add(&t, ": ");
        expr_print(demand, &t);
    }
    return arena_strdup(x->arena, text_str(&t));
}

static void show_rows(struct explaining *x, const struct answer *a, size_t line)
{
    struct explain_line *l = line_at(x, line);
    const struct table *t = wait_table(&x->inquiry.waits[x->sources[line].wait]);
    const struct answer_wait *w = &a->waits[x->sources[line].wait];
    l->total = w->total;
    l->keys = arena_alloc(x->arena, (w->keys.n_rows + 1) * sizeof(*l->keys));
    for (; l->n_keys < w->keys.n_rows; l->n_keys++) {
        AUTO(text_release) struct text key = {0};
        key_print(t, rows_at(&w->keys, l->n_keys), &key);
        l->keys[l->n_keys] = arena_strdup(x->arena, text_str(&key));
    }
}

static void judge_wait(struct explaining *x, const struct answer *a, size_t line)
{
    struct explain_line *l = line_at(x, line);
    show_rows(x, a, line);
    set_verdict(l, l->total ? VERDICT_FALSE : VERDICT_TRUE);
    if (!l->total)
        return;
    l->said = "waits";
    l->reason = arena_printf(x->arena, "waits for %lld row%s of %s", (long long)l->total,
                             l->total == 1 ? "" : "s", l->of_table);
}

static void judge_source(struct explaining *x, const struct answer *a, size_t line)
{
    struct explain_line *l = line_at(x, line);
    show_rows(x, a, line);
    l->said = l->total ? "exists" : "does not exist";
}

static size_t add_wait(struct explaining *x, const char *part, int depth, struct wait w, judge_fn *judge)
{
    struct inquiry *q = &x->inquiry;
    struct wait *waits = arena_push(x->arena, (void *)q->waits, q->n_waits, sizeof(*waits));
    waits[q->n_waits] = w;
    q->waits = waits;
    size_t line = add_line(x, part, depth, wait_words(x, &w));
    line_at(x, line)->counts = true;
    line_at(x, line)->of_table = arena_strdup(x->arena, wait_table(&w)->print);
    x->sources[line].wait = q->n_waits++;
    x->sources[line].judge = judge;
    return line;
}

static void add_waits(struct explaining *x, const struct node *n, const struct node *parent)
{
    if (parent && n->where)
        add_wait(x, "with", 0, (struct wait){WAIT_WITH, n, parent, 0, NULL}, judge_wait);
    for (size_t i = 0; i < n->n_after; i++)
        add_wait(x, "after", 0, (struct wait){WAIT_AFTER, n, parent, i, n->after[i]}, judge_wait);
    for (size_t i = 0; i < n->n_grow; i++)
        if (n->grow_where[i])
            add_wait(x, "with", 0, (struct wait){WAIT_BELOW, n, parent, i, NULL}, judge_wait);
    for (size_t i = 0; i < n->n_kids; i++)
        add_waits(x, &n->kids[i], n);
}

/* --- orphans ---------------------------------------------------------------------------------------- */

static const struct expr *source_exists(struct explaining *x, const struct expr *matching)
{
    struct expr *c = arena_alloc(x->arena, sizeof(*c));
    c->kind = EXPR_EXISTS;
    c->table = x->plan->source;
    c->joins = &x->plan->source_join;
    c->n_joins = 1;
    c->kids = arena_alloc(x->arena, sizeof(*c->kids));
    c->kids[0] = matching;
    c->n_kids = matching ? 1 : 0;
    return c;
}

/* The name of a column of the row that refers to the source and is NULL. */
static const char *null_reference(const struct explaining *x, const struct answer *a)
{
    const struct join *j = &x->plan->source_join;
    for (size_t i = 0; i < j->n; i++)
        if (rows_at(&a->row, 0)[asked_column(x, j->parent[i])].kind == VALUE_NULL)
            return j->parent[i]->name;
    return NULL;
}

/* The source itself is told by the line below. */
static void judge_orphan(struct explaining *x, const struct answer *a, size_t line)
{
    struct explain_line *l = line_at(x, line);
    const struct orphan *o = x->plan->policy->orphan;
    const char *null = null_reference(x, a);
    bool there = a->waits[x->sources[line + 1].wait].total > 0;
    bool unmatched = o->when == ORPHAN_DELETED_OR_UNMATCHED && x->plan->matching;
    l->said = l->verdict != VERDICT_TRUE ? "not orphaned"
              : there                    ? "orphaned: its source does not match"
                                         : "orphaned: its source is gone";
    if (l->verdict == VERDICT_TRUE)
        return;
    l->never = o->when == ORPHAN_NEVER || null;
    if (o->when == ORPHAN_NEVER)
        l->reason = "delete_when is never";
    else if (null)
        l->reason = arena_printf(x->arena, "%s is NULL", null);
    else if (there)
        l->reason = unmatched ? "its source exists and matches" : "its source exists";
    else
        l->reason = "its source is empty as a whole";
}

static void add_orphan(struct explaining *x)
{
    const struct plan *p = x->plan;
    const struct orphan *o = p->policy->orphan;
    if (!p->orphaned)
        return;
    bool counts = o->when == ORPHAN_DELETED_OR_UNMATCHED && p->matching;
    AUTO(text_release) struct text t = {0};
    text_add(&t, "no row of ");
    join_print(p->source, &p->source_join, &t);
    text_add(&t, counts ? " that matches" : "");
    size_t line = add_line(x, "orphan", 0, arena_strdup(x->arena, text_str(&t)));
    for (size_t i = 0; i < p->source_join.n; i++)
        ask_column(x, p->source_join.parent[i]);
    if (p->source_join.n == 1)
        show_column(x, line, p->source_join.parent[0]);
    x->sources[line].asked = ask(x, p->orphaned);
    x->sources[line].judge = judge_orphan;
    add_wait(x, "orphan", 1, (struct wait){WAIT_SOURCE, &p->root, NULL, 0, source_exists(x, NULL)},
             judge_source);
    if (!p->matching)
        return;
    size_t below =
        add_line(x, "orphan", 1, arena_printf(x->arena, "that matches: %s", words_of(x, p->matching)));
    x->sources[below].asked = ask(x, source_exists(x, p->matching));
}

/* --- the newest that stay ------------------------------------------------------------------------------ */

static void judge_newest(struct explaining *x, const struct answer *a, size_t line)
{
    struct explain_line *l = line_at(x, line);
    l->rank = a->rank;
    l->ranked = a->ranked;
    l->said = !l->rank ? "not ranked" : l->verdict == VERDICT_TRUE ? "matches" : "stays";
    if (l->verdict != VERDICT_TRUE && l->rank)
        l->reason =
            arena_printf(x->arena, "among the newest %lld", (long long)x->plan->beyond->ranking->rows);
    else if (l->verdict != VERDICT_TRUE) /* nor does it match: another line says so */
        l->reason = "not ranked";
}

static void add_newest(struct explaining *x)
{
    const struct plan *p = x->plan;
    if (!p->beyond)
        return;
    size_t line = add_line(x, p->policy->cap ? "cap" : "keep_newest", 0, words_of(x, p->beyond));
    line_at(x, line)->ranks = true;
    x->sources[line].asked = ask(x, p->beyond);
    x->sources[line].judge = judge_newest;
}

/* --- the whole ----------------------------------------------------------------------------------------- */

static void add_disabled(struct explaining *x)
{
    size_t line = add_line(x, "enabled", 0, "the policy runs");
    struct explain_line *l = line_at(x, line);
    l->judged = true;
    l->verdict = VERDICT_FALSE;
    l->said = "disabled";
    l->reason = "the policy is disabled";
}

static void begin_names(struct explaining *x)
{
    struct explanation *ex = x->explanation;
    const struct plan *p = x->plan;
    struct arena *a = x->arena;
    ex->table = arena_strdup(a, p->root.table->print);
    ex->n_tables = p->n_slots;
    ex->tables = arena_alloc(a, (p->n_slots + 1) * sizeof(*ex->tables));
    ex->gone = arena_alloc(a, (p->n_slots + 1) * sizeof(*ex->gone));
    for (size_t i = 0; i < p->n_slots; i++)
        ex->tables[i] = arena_strdup(a, p->slots[i]->print);
    ex->n_detach_tables = p->n_detach_slots;
    ex->detach_tables = arena_alloc(a, (p->n_detach_slots + 1) * sizeof(*ex->detach_tables));
    ex->detached = arena_alloc(a, (p->n_detach_slots + 1) * sizeof(*ex->detached));
    for (size_t i = 0; i < p->n_detach_slots; i++)
        ex->detach_tables[i] = arena_strdup(a, p->detach_slots[i]->print);
}

void explain_begin(struct explaining *x, struct arena *a, const struct plan *p, const struct expr *key,
                   bool enabled)
{
    *x = (struct explaining){.arena = a, .plan = p};
    x->explanation = arena_alloc(a, sizeof(*x->explanation));
    x->inquiry = (struct inquiry){.key = key, .most = ROWS_NAMED, .rank = p->beyond, .goes = true};
    begin_names(x);
    for (size_t i = 0; i < p->root.table->n_key; i++)
        ask_column(x, p->root.table->key[i]);
    /* The bound's times and whether they can be used come first, in the plan's order; then the whole. */
    for (size_t i = 0; i < p->n_times; i++) {
        struct expr *readable = arena_alloc(a, sizeof(*readable));
        readable->kind = EXPR_TIME_READABLE;
        readable->time = p->times[i];
        ask_column(x, p->times[i].column);
        ask_time(x, &p->times[i]);
        ask(x, readable);
    }
    ask(x, p->due);
    if (!enabled)
        add_disabled(x);
    if (p->rows)
        add_condition(x, "rows", 0, p->rows, true, judge_part);
    if (p->where)
        add_condition(x, "where", 0, p->where, true, judge_part);
    if (p->hold)
        add_condition(x, "hold", 0, p->hold->kids[0], false, judge_hold);
    add_orphan(x);
    add_age(x);
    add_newest(x);
    add_waits(x, &p->root, NULL);
}

static struct value copied(struct explaining *x, const struct value *v)
{
    struct value copy = *v;
    if (v->text)
        copy.text = arena_strndup(x->arena, v->text, v->len);
    return copy;
}

static void end_key(struct explaining *x, const struct answer *a)
{
    struct explanation *ex = x->explanation;
    const struct table *t = x->plan->root.table;
    AUTO(text_release) struct text text = {0};
    ex->n_key = t->n_key;
    ex->key = arena_alloc(x->arena, t->n_key * sizeof(*ex->key));
    for (size_t i = 0; i < t->n_key; i++)
        ex->key[i] = (struct explain_value){arena_strdup(x->arena, t->key[i]->name), t->key[i]->type,
                                            copied(x, &rows_at(&a->row, 0)[i])};
    key_print(t, rows_at(&a->row, 0), &text);
    ex->key_text = arena_strdup(x->arena, text_str(&text));
}

static void end_line(struct explaining *x, const struct answer *a, size_t line)
{
    struct explain_line *l = line_at(x, line);
    const struct explain_source *s = &x->sources[line];
    if (s->column != NONE)
        l->value.value = copied(x, &rows_at(&a->row, 0)[s->column]);
    if (s->time != NONE) {
        l->has_at = a->times[s->time].usable;
        l->at = a->times[s->time].at;
    }
    if (s->asked != NONE)
        set_verdict(l, a->verdicts[s->asked]);
    if (s->judge)
        s->judge(x, a, line);
}

/* Due in time only if nothing else keeps it; what the lines say, the engine has the last word. */
static void end_whole(struct explaining *x, const struct answer *a, bool enabled)
{
    struct explanation *ex = x->explanation;
    bool later = true, never = false, any = false;
    for (size_t i = 0; i < ex->n_lines; i++) {
        const struct explain_line *l = &ex->lines[i];
        if (!l->reason)
            continue;
        never |= l->never;
        later &= l->later;
        if (l->later && (!any || l->due_at > ex->due_at))
            ex->due_at = l->due_at;
        any |= l->later;
    }
    if (enabled && a->verdicts[x->plan->n_times] == VERDICT_TRUE)
        ex->kind = DUE_NOW;
    else
        ex->kind = never ? DUE_NEVER : later && any && ex->due_at > x->plan->now ? DUE_LATER : DUE_NOT;
}

void explain_end(struct explaining *x, const struct answer *a)
{
    struct explanation *ex = x->explanation;
    const struct plan *p = x->plan;
    bool enabled = !ex->n_lines || strcmp(ex->lines[0].part, "enabled") != 0;
    end_key(x, a);
    for (size_t i = 0; i < ex->n_lines; i++)
        end_line(x, a, i);
    end_whole(x, a, enabled);
    for (size_t i = 0; i < p->n_slots; i++)
        ex->gone[i] = a->goes.gone[i];
    for (size_t i = 0; i < p->n_detach_slots; i++)
        ex->detached[i] = a->goes.detached[i];
}

void explain_confirm(struct explanation *x, bool due_then)
{
    if (x->kind == DUE_LATER && !due_then)
        x->kind = DUE_NOT;
}
