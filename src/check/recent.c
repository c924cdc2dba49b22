/* recent: are nearly all rows due, and do times lie ahead? Told by the rows with the highest keys: to look at them
 * costs next to nothing, and they are the youngest, or as old as any. */
#include "check/internal.h"

#include <inttypes.h>

/* Said of so many rows or more, of which this share is old enough. */
enum { FEW_ROWS = 1000, NEARLY_ALL_PERCENT = 95 };

static const char *keep_words(struct arena *a, const struct keep *k)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; k->kind == KEEP_BY && i < k->n_values; i++) {
        text_addf(&t, "%s%s ", i ? ", " : "", k->values[i].value.null ? "NULL" : k->values[i].value.text);
        if (k->values[i].span.kind == SPAN_NEVER)
            text_add(&t, "for ever");
        else
            span_format_words(k->values[i].span.us, &t);
    }
    text_add(&t, k->kind == KEEP_BY ? ", others " : "");
    if (k->span.kind == SPAN_NEVER)
        text_add(&t, "for ever");
    else
        span_format_words(k->span.us, &t);
    return arena_strdup(a, text_str(&t));
}

/* A queue that is emptied by its age, or a table that nothing was ever deleted from, is so, too: a word, no more. */
static void say_nearly_all_due(const struct plan *p, const struct recent *r, struct findings *findings)
{
    const struct policy *pol = p->policy;
    bool ages = pol->keep.kind == KEEP_SPAN || pol->keep.kind == KEEP_BY;
    if (!ages || pol->expires.text || pol->orphan || p->beyond || r->rows < FEW_ROWS ||
        r->due < r->rows * NEARLY_ALL_PERCENT / 100)
        return;
    findings_add(findings, FINDING_WARNING, pol->name, pol->keep.at.line ? pol->keep.at : pol->at,
                 "see whether that is meant; 'lapse plan' shows what would go",
                 "nearly all rows are due: %" PRId64 " of %s%" PRId64
                 " rows%s are old enough, at a keep of %s",
                 r->due, r->more ? "the " : "all ", r->rows, r->more ? " with the highest keys" : "",
                 keep_words(findings->arena, &pol->keep));
}

static const char *zone_words(struct arena *a, const struct time_column *t)
{
    if (t->encoding == TIME_INSTANT || t->encoding == TIME_INTEGER)
        return "of the database's clock";
    if (t->encoding == TIME_TEXT && !t->zone)
        return "; no other zone is given, so what has no offset is read as UTC";
    return t->zone ? arena_printf(a, "; it is read as of zone %s", zone_name(t->zone))
                   : "; no other zone is given, read as UTC";
}

/* A minute is a matter of clocks. */
static void say_ahead(const struct plan *p, const struct recent *r, struct findings *findings)
{
    const struct time_column *t = &p->times[0];
    AUTO(text_release) struct text words = {0};
    int64_t ahead;
    bool zoned = t->encoding == TIME_INSTANT || t->encoding == TIME_INTEGER;
    if (p->policy->expires.text || !r->has_newest || !sub_i64(r->newest, p->now, &ahead) ||
        ahead < 60 * US_PER_S)
        return;
    span_format_words(ahead - ahead % (60 * US_PER_S), &words);
    findings_add(findings, FINDING_WARNING, p->policy->name, t->at,
                 zoned ? "see whether it is the column that says how old a row is"
                       : "say in which zone these times are, for example zone: Europe/Prague",
                 "%s%s: the newest time looked at lies %s ahead%s%s",
                 p->n_times > 1 ? "the latest of times from " : "", t->column->name, text_str(&words),
                 zoned ? " " : "", zone_words(findings->arena, t));
}

int check_recent(const struct plan *p, struct store *s, struct findings *findings, struct err *e)
{
    struct recent r = {0};
    if (!p->n_times || !p->aged || p->policy->expires.text)
        return 0;
    if (s->ops->recent(s, p, &r, e) < 0)
        return -1;
    say_nearly_all_due(p, &r, findings);
    say_ahead(p, &r, findings);
    return 0;
}
