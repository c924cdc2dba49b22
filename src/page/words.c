/* words: what the contract holds, as English. */
#include "base/quote.h"
#include "page/internal.h"

#include <string.h>
#include <strings.h>

bool piece_next(const char **line, struct piece *ret)
{
    const char *s = *line;
    if (!*s)
        return false;
    ret->mark = MARK_END;
    if (*s == MARK_CODE || *s == MARK_STRONG)
        ret->mark = (enum mark) * s++;
    ret->text = s;
    while ((unsigned char)*s > MARK_END)
        s++;
    ret->len = (size_t)(s - ret->text);
    *line = *s == MARK_END ? s + 1 : s;
    return true;
}

void cell_add(struct arena *a, struct page_cell *cell, const char *fmt, ...)
{
    AUTO(text_release) struct text t = {0};
    va_list args;
    va_start(args, fmt);
    text_vaddf(&t, fmt, args);
    va_end(args);
    cell->lines = arena_push(a, cell->lines, cell->n, sizeof(*cell->lines));
    cell->lines[cell->n++] = arena_strdup(a, text_str(&t));
}

/* --- text ---------------------------------------------------------------------------------------- */

const char *words_clean(struct arena *a, const char *s)
{
    AUTO(text_release) struct text t = {0};
    while (*s) {
        size_t n = report_utf8(s);
        bool control = (unsigned char)*s < 0x20 || *s == 0x7f;
        bool wide_break = n == 3 && (!memcmp(s, "\xE2\x80\xA8", 3) || !memcmp(s, "\xE2\x80\xA9", 3));
        bool c1 = n == 2 && !memcmp(s, "\xC2", 1) && (unsigned char)s[1] < 0xA0;
        if (control || wide_break || c1)
            text_add(&t, " ");
        else if (n && is_unseen(s, n))
            text_add_seen(&t, arena_strndup(a, s, n), false);
        else
            text_add_n(&t, n ? s : "\xEF\xBF\xBD", n ? n : 3);
        s += n ? n : 1;
    }
    size_t from = strspn(text_str(&t), " ");
    while (t.len > from && t.data[t.len - 1] == ' ')
        t.len--;
    return arena_strndup(a, text_str(&t) + from, t.len - from);
}

static const char *marked(struct arena *a, enum mark mark, const char *s)
{
    return arena_printf(a, "%c%s%c", mark, words_clean(a, s), MARK_END);
}

const char *words_code(struct arena *a, const char *s)
{
    return marked(a, MARK_CODE, s);
}

const char *words_strong(struct arena *a, const char *s)
{
    return marked(a, MARK_STRONG, s);
}

const char *words_sentence(struct arena *a, const char *s, bool capital)
{
    static const char small[] = "abcdefghijklmnopqrstuvwxyz";
    const char *clean = words_clean(a, s);
    size_t len = strlen(clean), word = strspn(clean, small);
    char *sentence = arena_printf(a, "%s%s", clean, len && strchr(".!?", clean[len - 1]) ? "" : ".");
    if (capital && word > 0 &&
        strchr(" ,;:.", sentence[word])) /* channel_outbox and eBPF keep their spelling */
        sentence[0] = (char)(sentence[0] - 'a' + 'A');
    return sentence;
}

const char *words_table(struct arena *a, const struct table_name *table)
{
    AUTO(text_release) struct text t = {0};
    table_name_print(table, &t);
    return words_code(a, text_str(&t));
}

const char *words_ref(struct arena *a, const struct ref *r)
{
    AUTO(text_release) struct text t = {0};
    ref_print(r, &t);
    return words_code(a, text_str(&t));
}

/* --- numbers ------------------------------------------------------------------------------------- */

const char *words_number(struct arena *a, int64_t n)
{
    const char *digits = arena_printf(a, "%lld", (long long)n);
    AUTO(text_release) struct text t = {0};
    for (size_t left = strlen(digits); left > 0; left--, digits++) {
        text_add_n(&t, digits, 1);
        if (left > 1 && left % 3 == 1 && *digits != '-')
            text_add(&t, ",");
    }
    return arena_strdup(a, text_str(&t));
}

const char *words_count(struct arena *a, int64_t n, const char *thing)
{
    const char *plural = n == 1 ? "" : strcmp(thing, "batch") == 0 ? "es" : "s";
    return arena_printf(a, "%s %s%s", words_number(a, n), thing, plural);
}

const char *words_percent(struct arena *a, double fraction)
{
    return arena_printf(a, "%.10g %%", fraction * 100);
}

/* Below two days hours are clearer: 24 hours, 36 hours; then 2 days. */
const char *words_time(struct arena *a, int64_t us)
{
    static const struct {
        int64_t us, least;
        const char *name;
    } units[] = {{US_PER_DAY, 2 * US_PER_DAY, "day"}, {3600 * US_PER_S, 0, "hour"},
                 {60 * US_PER_S, 0, "minute"},        {US_PER_S, 0, "second"},
                 {US_PER_MS, 0, "millisecond"},       {1, 0, "microsecond"}};
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        int64_t n = us >= units[i].least ? us / units[i].us : 0;
        if (n > 0)
            text_addf(&t, "%s%s", t.len ? " " : "", words_count(a, n, units[i].name));
        us -= n * units[i].us;
    }
    return t.len ? arena_strdup(a, t.data) : "0 seconds";
}

/* --- lists --------------------------------------------------------------------------------------- */

const char *words_list(struct arena *a, const char *const *items, size_t n, const char *last)
{
    enum { MOST = 8 };
    AUTO(text_release) struct text t = {0};
    size_t shown = n > MOST ? MOST : n;
    for (size_t i = 0; i < shown; i++) {
        if (i > 0 && i + 1 == n)
            text_addf(&t, " %s ", last);
        else if (i > 0)
            text_add(&t, ", ");
        text_add(&t, items[i]);
    }
    if (n > shown)
        text_addf(&t, " %s %s", last, words_count(a, (int64_t)(n - shown), "other"));
    return arena_strdup(a, text_str(&t));
}

const char *words_columns(struct arena *a, const struct name *columns, size_t n, const char *last)
{
    const char **items = arena_alloc(a, (n + 1) * sizeof(*items));
    for (size_t i = 0; i < n; i++)
        items[i] = words_code(a, columns[i].text);
    return words_list(a, items, n, last);
}

/* --- conditions ---------------------------------------------------------------------------------- */

static bool is_plain_value(const struct scalar *v)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:";
    size_t len = strlen(v->text);
    return len > 0 && strspn(v->text, plain) == len && !strchr(".:", v->text[len - 1]) &&
           strcasecmp(v->text, "null") != 0;
}

/* A plain word is itself; anything else stands in quotes, so that its ends are seen. */
const char *words_value(struct arena *a, const struct scalar *v)
{
    if (v->null)
        return "NULL";
    if (is_plain_value(v))
        return v->text;
    return arena_printf(a, "%c'%s'%c", MARK_CODE, words_clean(a, v->text), MARK_END);
}

/* "is a or b", "begins with `p`", or both */
static const char *in_words(struct arena *a, const struct cond *c)
{
    const char **is = arena_alloc(a, c->n_values * sizeof(*is));
    const char **begins = arena_alloc(a, c->n_values * sizeof(*begins));
    size_t n_is = 0, n_begins = 0;
    for (size_t i = 0; i < c->n_values; i++) {
        if (c->values[i].prefix)
            begins[n_begins++] = words_code(a, c->values[i].text);
        else
            is[n_is++] = words_value(a, &c->values[i]);
    }
    const char *first = n_is ? arena_printf(a, "is %s", words_list(a, is, n_is, "or")) : "";
    if (!n_begins)
        return first;
    return arena_printf(a, "%s%sbegins with %s", first, n_is ? " or " : "",
                        words_list(a, begins, n_begins, "or"));
}

static const char *not_in_words(struct arena *a, const struct cond *c)
{
    const char **is = arena_alloc(a, c->n_values * sizeof(*is));
    for (size_t i = 0; i < c->n_values; i++)
        is[i] = words_value(a, &c->values[i]);
    return arena_printf(a, "is %s %s", c->n_values > 1 ? "none of" : "not",
                        words_list(a, is, c->n_values, "and"));
}

static const char *age_words(struct arena *a, const struct cond *c)
{
    bool older = c->op == COND_OLDER_THAN;
    if (c->span.us == 0)
        return older ? "lies in the past" : "lies in the future";
    return arena_printf(a, "is %s than %s", older ? "older" : "newer", words_time(a, c->span.us));
}

static const char *comparison_words(struct arena *a, const struct cond *c)
{
    static const char *const words[] = {[COND_LT] = "less than",
                                        [COND_LTE] = "at most",
                                        [COND_GT] = "greater than",
                                        [COND_GTE] = "at least",
                                        [COND_LIKE] = "like"};
    return arena_printf(a, "is %s %s", words[c->op], words_value(a, &c->values[0]));
}

/* A group of one is that one. */
static const struct cond *only_kid(const struct cond *c)
{
    while ((c->op == COND_ALL || c->op == COND_ANY) && c->n_kids == 1)
        c = c->kids[0];
    return c;
}

bool words_cond_compound(const struct cond *c)
{
    c = only_kid(c);
    return c->op == COND_ALL || c->op == COND_ANY;
}

static const char *group_words(struct arena *a, const struct cond *c)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < c->n_kids; i++) {
        const char *kid = words_cond(a, c->kids[i]);
        text_add(&t, !i ? "" : c->op == COND_ALL ? ", and " : ", or ");
        text_addf(&t, words_cond_compound(c->kids[i]) ? "(%s)" : "%s", kid);
    }
    return arena_strdup(a, text_str(&t));
}

const char *words_cond(struct arena *a, const struct cond *c)
{
    c = only_kid(c);
    if (c->op == COND_SQL)
        return words_code(a, c->sql);
    if (c->op == COND_ALL || c->op == COND_ANY)
        return group_words(a, c);
    const char *column = words_code(a, c->column.text);
    const char *says = c->op == COND_IN                                       ? in_words(a, c)
                       : c->op == COND_NOT_IN                                 ? not_in_words(a, c)
                       : c->op == COND_OLDER_THAN || c->op == COND_NEWER_THAN ? age_words(a, c)
                                                                              : comparison_words(a, c);
    return arena_printf(a, "%s %s", column, says);
}

/* --- metrics ------------------------------------------------------------------------------------- */

static void add_label(struct text *t, const char *name, const char *value)
{
    text_addf(t, "%s=\"", name);
    for (; *value; value++) {
        if (strchr("\\\"", *value))
            text_add(t, "\\");
        text_add_n(t, value, 1);
    }
    text_add(t, "\"");
}

const char *words_metric(struct arena *a, const char *name, ...)
{
    AUTO(text_release) struct text t = {0};
    text_addf(&t, "%s{", name);
    const char *label;
    va_list args;
    va_start(args, name);
    for (bool first = true; (label = va_arg(args, const char *)) != NULL; first = false) {
        text_add(&t, first ? "" : ",");
        add_label(&t, label, words_clean(a, va_arg(args, const char *)));
    }
    va_end(args);
    text_add(&t, "}");
    return arena_strdup(a, text_str(&t));
}
