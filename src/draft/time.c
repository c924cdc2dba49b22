/* time: whether a column holds times, in which unit and zone, as its type, its name and its values say.
 */
#include <stdlib.h>
#include <string.h>

#include "draft/internal.h"
#include "plan/plan.h"

/* The values of one column, as times. */
struct seen {
    size_t n;                     /* not NULL */
    size_t whole;                 /* whole numbers */
    size_t plausible[TIME_UNITS]; /* … that lie in 1990 to 2100 */
    size_t readable, with_zone;   /* texts that are times; … that say their zone */
    const char *odd;              /* one that is neither */
};

static bool read_whole(const struct value *v, int64_t *ret)
{
    if (v->kind == VALUE_INTEGER) {
        *ret = v->integer;
        return true;
    }
    if (v->kind != VALUE_TEXT || !v->len)
        return false;
    char *end = NULL;
    *ret = strtoll(v->text, &end, 10);
    return *end == '\0' && v->text[strspn(v->text, "-0123456789")] == '\0';
}

/* 2024-06-15T12:00:00Z, …+02:00: what follows the date has a sign or a Z. */
static bool has_zone(const char *s, size_t len)
{
    const size_t date = strlen("2024-06-15");
    for (size_t i = date; i < len; i++)
        if (strchr("Zz+-", s[i]))
            return true;
    return false;
}

static const char *shown(const struct value *v, struct arena *a)
{
    AUTO(text_release) struct text t = {0};
    value_print(v, &t);
    return arena_printf(a, "%.*s", LONGEST, text_str(&t));
}

static void see_text(struct seen *seen, const struct value *v, struct arena *a)
{
    instant ignored;
    size_t len = v->len;
    while (len && v->text[len - 1] == ' ')
        len--;
    if (len && when_parse(v->text, len, NULL, &ignored)) {
        seen->readable++;
        seen->with_zone += has_zone(v->text, len);
    } else if (!seen->odd) {
        seen->odd = shown(v, a);
    }
}

/* 0 and -1 are no times, but often stand for "never": they are not held against the unit. */
static void see(struct seen *seen, const struct value *v, struct arena *a)
{
    int64_t count;
    if (v->kind == VALUE_NULL)
        return;
    seen->n++;
    if (read_whole(v, &count)) {
        bool any = count == 0 || count == -1;
        seen->whole++;
        for (size_t u = 0; u < TIME_UNITS; u++) {
            bool fits = time_is_plausible(count, time_units[u].us);
            seen->plausible[u] += fits;
            any |= fits;
        }
        if (!any && !seen->odd)
            seen->odd = shown(v, a);
    } else if (v->kind == VALUE_TEXT) {
        see_text(seen, v, a);
    } else if (!seen->odd) {
        seen->odd = "another kind of value";
    }
}

static struct seen look_at(const struct draft_look *l, const struct column *c, struct arena *a)
{
    struct seen seen = {0};
    for (size_t k = 0; k < l->n_columns; k++)
        for (size_t i = 0; l->columns[k] == c && i < l->rows.n_rows; i++)
            see(&seen, &rows_at(&l->rows, i)[k], a);
    return seen;
}

/* The unit that most values fit; NULL: none fits any. The ranges of two units do not overlap. */
static const struct time_unit *unit_of_values(const struct seen *seen)
{
    size_t best = 0;
    for (size_t u = 1; u < TIME_UNITS; u++)
        if (seen->plausible[u] > seen->plausible[best])
            best = u;
    return seen->plausible[best] ? &time_units[best] : NULL;
}

static void say_mixed(struct draft_time *t, const struct seen *seen, const struct time_unit *u,
                      struct arena *a)
{
    size_t fits = seen->plausible[u - time_units];
    if (seen->odd || seen->whole < seen->n)
        draft_say(a, &t->decide, "%s also holds %s%s%s: see what it means", t->column->name,
                  seen->odd ? "'" : "values that are no ", seen->odd ? seen->odd : u->words,
                  seen->odd ? "'" : "");
    else if (fits && fits < seen->n && seen->plausible[0] + seen->plausible[1] + seen->plausible[2] > fits)
        draft_say(a, &t->decide, "%s holds values in more than one unit", t->column->name);
}

/* `written`: the unit must be said, since the type alone does not make it a number. */
static void judge_count(struct draft_time *t, const struct seen *seen, struct arena *a)
{
    const struct time_unit *named = time_unit_of(plan_unit_of_suffix(t->column->name));
    const struct time_unit *valued = unit_of_values(seen);
    const char *name = t->column->name;
    t->count = true;
    if (named && valued && named != valued) {
        t->unit = valued->sign;
        draft_say(a, &t->decide, "the name of %s says %s, its values look like %s", name, named->words,
                  valued->words);
    } else if (!named && valued) {
        t->unit = valued->sign;
        draft_say(a, &t->why, "%s: its values look like %s since 1970", name, valued->words);
    } else if (!named) {
        t->unit = "s";
        draft_say(a, &t->decide,
                  "in which unit %s counts (s, ms or us): neither its name nor a value says it", name);
    }
    say_mixed(t, seen, valued ? valued : named ? named : &time_units[0], a);
    t->usable = valued || seen->n == seen->plausible[0] || named;
    if (seen->n && !valued && !seen->odd)
        draft_say(a, &t->decide, "no value of %s lies between 1990 and 2100", name);
    if (!named && !valued && seen->n)
        t->usable = false; /* a number that is no time: a counter, a flag */
}

static void judge_zone(struct draft_time *t, struct arena *a)
{
    t->zone = "UTC";
    draft_say(a, &t->decide, "in which zone %s is written: it does not say so", t->column->name);
}

static void judge_text(struct draft_time *t, const struct seen *seen, struct arena *a)
{
    t->usable = seen->n == 0 || seen->readable > 0;
    if (seen->n == 0)
        draft_say(a, &t->decide, "whether the texts of %s are times: no row has one", t->column->name);
    else if (seen->readable < seen->n)
        draft_say(a, &t->decide, "%s also holds '%s', which is no time", t->column->name,
                  seen->odd ? seen->odd : "numbers");
    if (seen->with_zone < seen->n || seen->n == 0)
        judge_zone(t, a);
}

struct draft_time draft_time_of(const struct draft_look *l, const struct column *c, struct arena *a)
{
    struct draft_time t = {.column = c};
    struct seen seen = look_at(l, c, a);
    switch (c->type) {
    case TYPE_TIMESTAMPTZ:
        t.usable = true;
        break;
    case TYPE_TIMESTAMP:
    case TYPE_DATE:
        t.usable = true;
        judge_zone(&t, a);
        break;
    case TYPE_INTEGER:
        judge_count(&t, &seen, a);
        break;
    case TYPE_TEXT:
        judge_text(&t, &seen, a);
        break;
    case TYPE_DYNAMIC: /* with a unit it is a number, else a text */
        if (plan_unit_of_suffix(c->name) || (seen.n && seen.whole == seen.n))
            judge_count(&t, &seen, a);
        else
            judge_text(&t, &seen, a);
        break;
    case TYPE_BOOLEAN:
    case TYPE_REAL:
    case TYPE_NUMERIC:
    case TYPE_ENUM:
    case TYPE_BLOB:
    case TYPE_OTHER:
        break;
    }
    return t;
}
