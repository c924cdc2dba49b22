/* event: what a daemon has to say, and how it reads on a terminal. event_json.c writes it for machines. */
#include "watch/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/quote.h"

enum { NAMED_MOST = 8 }; /* labels named in a message; the fields have them all */

/* Told: the message says all that the fields do, so that a terminal needs no fields. */
static const struct kind {
    const char *word; /* with a dot: the whole name */
    enum event_level level;
    bool of_scheduler, told;
    const char *help;
} kinds[N_EVENTS] = {
    [EVENT_PRUNED] = {"lifecycle_pruned", LEVEL_INFO, true, true,
                      "A tick ended: its time (now) and the rows gone per label. debug if none went."},
    [EVENT_TICK_FAILED] = {"lifecycle_tick_failed", LEVEL_ERROR, true, true,
                           "A policy, or the tick as a whole, fails: said once per different error."},
    [EVENT_BUDGET] = {"lifecycle_prune_budget_exhausted", LEVEL_WARN, true, true,
                      "Policies stopped at the scheduler's budget; the next tick goes on."},
    [EVENT_OBSERVED] = {"lifecycle_observed", LEVEL_INFO, true, true,
                        "What is due, per label; nothing is deleted. debug if nothing is."},
    [EVENT_STILL_FAILING] = {"lifecycle_still_failing", LEVEL_ERROR, true, true,
                             "An error lasts: said after 1, 10, then every 60 minutes."},
    [EVENT_RECOVERED] = {"lifecycle_recovered", LEVEL_INFO, true, true,
                         "What failed went well again: how long it lasted."},
    [EVENT_PACED] =
        {"lifecycle_paced", LEVEL_DEBUG, true, true,
         "What holds a sweep back is another than before. info and warn of one that has waited for 10 and "
         "60 seconds."},
    [EVENT_LEASE_TAKEN] = {"lease_taken", LEVEL_INFO, true, false,
                           "This process now sweeps for the scheduler."},
    [EVENT_LEASE_LOST] = {"lease_lost", LEVEL_WARN, true, false,
                          "Another process took the scheduler's lease."},
    [EVENT_HELD_ELSEWHERE] = {"lease_held_elsewhere", LEVEL_DEBUG, true, false,
                              "Another process sweeps for the scheduler."},
    [EVENT_PAUSED] = {"paused", LEVEL_INFO, true, false, "A brake is on."},
    [EVENT_STARTED] = {"started", LEVEL_INFO, false, false, "The daemon began."},
    [EVENT_STOPPING] = {"stopping", LEVEL_INFO, false, false, "It was asked to stop."},
    [EVENT_STOPPED] = {"stopped", LEVEL_INFO, false, false, "It ended."},
    [EVENT_RELOADED] = {"contract_reloaded", LEVEL_INFO, false, false,
                        "A contract came into force, and what it changed, by policy and key: `policy "
                        "audit_log: keep 365d -> 30d`."},
    [EVENT_RELOAD_REFUSED] = {"contract_refused", LEVEL_ERROR, false, false,
                              "A contract is wrong; the old one stays in force."},
    [EVENT_CLOCK_SET] = {"clock_set", LEVEL_WARN, false, false, "The system's clock was set."},
    [EVENT_SERVING] = {"serving", LEVEL_INFO, false, false, "Where HTTP listens."},
    [EVENT_INSTALLED] = {"installed", LEVEL_INFO, false, false, "lapse's own tables were made or upgraded."},
    [EVENT_REMARK] = {"remark", LEVEL_INFO, false, false, "Worth knowing, once."},
    [EVENT_PURGE_EXECUTED] = {"purge.executed", LEVEL_INFO, false, true, "An instance's data was purged."},
    [EVENT_PURGE_FAILED] = {"purge.failed", LEVEL_ERROR, false, true,
                            "A purge, or the purges of a space, could not be carried out."},
};

static const struct level {
    const char *name, *colour;
} levels[] = {
    [LEVEL_DEBUG] = {"debug", "\033[2m"},
    [LEVEL_INFO] = {"info", "\033[32m"},
    [LEVEL_WARN] = {"warn", "\033[33m"},
    [LEVEL_ERROR] = {"error", "\033[31m"},
};

const char *level_name(enum event_level l)
{
    return levels[l].name;
}

const char *event_word(enum event_kind k)
{
    return kinds[k].word;
}

const char *event_help(enum event_kind k)
{
    return kinds[k].help;
}

bool event_of_scheduler(enum event_kind k)
{
    return kinds[k].of_scheduler;
}

/* --- texts --------------------------------------------------------------------------------------- */

/* What some reader takes for the end of a line, or a terminal for an order. n: the character's length. */
static bool unsafe(const char *s, size_t n)
{
    unsigned char first = (unsigned char)s[0], second = n > 1 ? (unsigned char)s[1] : 0;
    if (n <= 1)
        return n == 0 || (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
    if (n == 2)
        return first == 0xC2 && second < 0xA0;                                         /* C1 */
    return n == 3 && (!memcmp(s, "\xE2\x80\xA8", 3) || !memcmp(s, "\xE2\x80\xA9", 3)); /* U+2028, U+2029 */
}

const char *event_clean(struct arena *a, const char *s)
{
    AUTO(text_release) struct text t = {0};
    const char *at = s;
    for (size_t n; *at && at - s < EVENT_TEXT_MOST; at += n ? n : 1) {
        n = utf8_length(at);
        if (unsafe(at, n))
            text_add(&t, "\xEF\xBF\xBD");
        else
            text_add_n(&t, at, n);
    }
    if (*at)
        text_addf(&t, "… (%zu bytes more)", strlen(at));
    return arena_strdup(a, text_str(&t));
}

/* --- a line -------------------------------------------------------------------------------------- */

struct event *event_new(enum event_kind k, const char *scheduler, instant at)
{
    struct arena *a = arena_new();
    struct event *ev = arena_alloc(a, sizeof(*ev));
    *ev = (struct event){.arena = a, .kind = k, .level = kinds[k].level, .at = at};
    ev->scheduler = scheduler ? event_clean(a, scheduler) : NULL;
    const char *of = kinds[k].of_scheduler && scheduler ? ev->scheduler : "lapse";
    bool whole = strchr(kinds[k].word, '.') != NULL;
    ev->name = arena_printf(a, "%s%s%s", whole ? "" : of, whole ? "" : ".", kinds[k].word);
    return ev;
}

void event_free(struct event *ev)
{
    if (ev)
        arena_free(ev->arena);
}

void event_free_p(struct event **ev)
{
    event_free(*ev);
}

void event_level(struct event *ev, enum event_level l)
{
    ev->level = l;
}

void event_rename(struct event *ev, const char *name)
{
    ev->name = event_clean(ev->arena, name);
}

void event_message(struct event *ev, const char *format, ...)
{
    AUTO(text_release) struct text t = {0};
    va_list args;
    va_start(args, format);
    text_vaddf(&t, format, args);
    va_end(args);
    ev->message = event_clean(ev->arena, text_str(&t));
}

static bool taken(const struct event *ev, const char *key)
{
    static const char *const fixed[] = {"time", "level", "event", "scheduler", "message"};
    for (size_t i = 0; i < COUNT_OF(fixed); i++)
        if (!strcmp(fixed[i], key))
            return true;
    for (size_t i = 0; i < ev->n_fields; i++)
        if (!strcmp(ev->fields[i].key, key))
            return true;
    return false;
}

static struct event_field *add_field(struct event *ev, const char *key, enum field_kind kind)
{
    key = event_clean(ev->arena, key);
    while (taken(ev, key))
        key = arena_printf(ev->arena, "%s_", key);
    ev->fields = arena_push(ev->arena, ev->fields, ev->n_fields, sizeof(*ev->fields));
    struct event_field *f = &ev->fields[ev->n_fields++];
    *f = (struct event_field){.key = key, .kind = kind};
    return f;
}

void event_text(struct event *ev, const char *key, const char *text)
{
    struct event_field *f = add_field(ev, key, FIELD_TEXT);
    f->text = text ? event_clean(ev->arena, text) : NULL;
}

void event_number(struct event *ev, const char *key, int64_t number)
{
    add_field(ev, key, FIELD_NUMBER)->number = number;
}

void event_time(struct event *ev, const char *key, instant at)
{
    add_field(ev, key, FIELD_TIME)->number = at;
}

void event_span(struct event *ev, const char *key, int64_t us)
{
    add_field(ev, key, FIELD_SPAN)->number = us;
}

void event_texts(struct event *ev, const char *key, const char *const *texts, size_t n)
{
    struct event_field *f = add_field(ev, key, FIELD_TEXTS);
    f->texts = arena_alloc(ev->arena, (n + 1) * sizeof(*f->texts));
    f->n = n;
    for (size_t i = 0; i < n; i++)
        f->texts[i] = event_clean(ev->arena, texts[i]);
}

enum event_kind event_kind_of(const struct event *ev)
{
    return ev->kind;
}

enum event_level event_level_of(const struct event *ev)
{
    return ev->level;
}

const char *event_message_of(const struct event *ev)
{
    return ev->message ? ev->message : "";
}

/* --- as text ------------------------------------------------------------------------------------- */

static void add_flat(struct text *out, const char *s)
{
    text_add_seen(out, s, false);
}

/* Between quotes, unless it needs none: then what would end it is escaped. */
static void add_value(struct text *out, const char *s)
{
    AUTO(text_release) struct text quoted = {0};
    if (s && *s && !strpbrk(s, " \n\t\"=")) {
        add_flat(out, s);
        return;
    }
    for (; s && *s; s++) {
        text_add(&quoted, *s == '"' || *s == '\\' ? "\\" : "");
        text_add_n(&quoted, s, 1);
    }
    text_add(out, "\"");
    add_flat(out, text_str(&quoted));
    text_add(out, "\"");
}

static void print_field(struct text *out, const struct event_field *f)
{
    char buf[WHEN_TEXT_SIZE];
    text_add(out, " ");
    add_flat(out, f->key);
    text_add(out, "=");
    switch (f->kind) {
    case FIELD_TEXT:
        add_value(out, f->text);
        break;
    case FIELD_NUMBER:
        text_addf(out, "%lld", (long long)f->number);
        break;
    case FIELD_TIME:
        text_add(out, when_format(f->number, buf));
        break;
    case FIELD_SPAN:
        text_addf(out, "%.3fs", (double)f->number / 1e6);
        break;
    case FIELD_TEXTS:
        for (size_t i = 0; i < f->n; i++) {
            text_add(out, i ? "," : "");
            add_value(out, f->texts[i]);
        }
        break;
    }
}

void event_print_text(const struct event *ev, bool colour, struct text *out)
{
    char buf[WHEN_TEXT_SIZE];
    const struct level *l = &levels[ev->level];
    text_addf(out, "%sZ ", when_format_local(ev->at, 0, buf));
    text_addf(out, "%s%-5s%s ", colour ? l->colour : "", l->name, colour ? "\033[0m" : "");
    add_flat(out, ev->name);
    text_add(out, ev->message || ev->n_fields ? " " : "");
    if (ev->message) {
        text_add(out, " ");
        add_flat(out, ev->message);
    }
    for (size_t i = 0; i < ev->n_fields && !(kinds[ev->kind].told && ev->message); i++)
        print_field(out, &ev->fields[i]);
}

/* --- a tick -------------------------------------------------------------------------------------- */

/* Rows by label, in the order of the report. */
struct tally {
    struct count {
        const char *label;
        int64_t rows;
    } * list;
    size_t n;
    int64_t rows;
};

static void tally_release(struct tally *t)
{
    free(t->list);
}

static void tally_add(struct tally *t, const char *label, int64_t rows)
{
    size_t at = 0;
    while (at < t->n && strcmp(t->list[at].label, label) != 0)
        at++;
    if (at == t->n) {
        t->list = mem_grow(t->list, t->n + 1, sizeof(*t->list));
        t->list[t->n++] = (struct count){.label = label};
    }
    t->list[at].rows += rows;
    t->rows += rows;
}

/* Each policy's own label, though nothing went; what went along only if something did. */
static void tally_policy(struct tally *t, const struct report_policy *p)
{
    tally_add(t, p->policy->label, report_rows(p));
    for (size_t i = 0; i + 1 < p->n_tables; i++)
        if (p->gone[i])
            tally_add(t, report_label(p, i), p->gone[i]);
}

static void name_counts(const struct tally *t, struct text *out)
{
    size_t named = 0, left = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (!t->list[i].rows)
            continue;
        if (named == NAMED_MOST)
            left++;
        else
            text_addf(out, "%s%s %lld", named++ ? ", " : "", t->list[i].label, (long long)t->list[i].rows);
    }
    if (left)
        text_addf(out, " and %zu more", left);
}

/* Those that went as a whole; or those that could not, each with the reason. Nothing where there are none. */
static void add_partitions(struct event *ev, const struct report *r, bool dropped)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    const char **names = NULL;
    size_t n = 0;
    for (size_t i = 0; i < r->n_policies; i++)
        for (size_t k = 0; k < r->policies[i].n_partitions; k++) {
            const struct partition_outcome *x = &r->policies[i].partitions[k];
            if (dropped != !x->why)
                continue;
            names = arena_push(a, names, n, sizeof(*names));
            names[n++] = dropped ? x->name : arena_printf(a, "%s: %s", x->name, x->why);
        }
    if (n)
        event_texts(ev, dropped ? "partitions_dropped" : "partitions_not_dropped", names, n);
}

static void say_counts(const struct report *r, const char *scheduler, instant at, event_say *say,
                       void *context)
{
    bool observed = r->kind == REPORT_PLAN, any = r->n_policies == 0;
    AUTO(tally_release) struct tally t = {0};
    AUTO(text_release) struct text counts = {0};
    for (size_t i = 0; i < r->n_policies; i++)
        if (report_ran(&r->policies[i])) {
            tally_policy(&t, &r->policies[i]);
            any = true;
        }
    if (!any || (r->error && !t.rows))
        return;
    AUTO(event_free_p)
    struct event *ev = event_new(observed ? EVENT_OBSERVED : EVENT_PRUNED, scheduler, at);
    event_level(ev, t.rows ? LEVEL_INFO : LEVEL_DEBUG);
    name_counts(&t, &counts);
    if (t.rows)
        event_message(ev, "%lld row%s%s: %s", (long long)t.rows, t.rows == 1 ? "" : "s",
                      observed ? " due" : "", text_str(&counts));
    else
        event_message(ev, observed ? "nothing is due" : "nothing went");
    event_time(ev, "now", r->now);
    for (size_t i = 0; i < t.n; i++)
        event_number(ev, t.list[i].label, t.list[i].rows);
    add_partitions(ev, r, true);
    add_partitions(ev, r, false);
    say(context, ev);
}

static bool out_of_budget(const struct report_policy *p)
{
    return p->kind == OUTCOME_BUDGET;
}

static void say_budget(const struct report *r, const char *scheduler, instant at, event_say *say,
                       void *context)
{
    AUTO(mem_free_p) const char **names = mem_alloc((r->n_policies + 1) * sizeof(*names));
    AUTO(text_release) struct text list = {0};
    size_t n = 0;
    for (size_t i = 0; i < r->n_policies; i++)
        if (out_of_budget(&r->policies[i])) {
            names[n] = r->policies[i].policy->name;
            if (n < NAMED_MOST)
                text_addf(&list, "%s%s", n ? ", " : "", names[n]);
            n++;
        }
    if (!n)
        return;
    if (n > NAMED_MOST)
        text_addf(&list, " and %zu more", n - NAMED_MOST);
    AUTO(event_free_p) struct event *ev = event_new(EVENT_BUDGET, scheduler, at);
    event_message(ev, "the budget of this tick was used up, the next one goes on: %s", text_str(&list));
    event_time(ev, "now", r->now);
    event_texts(ev, "policies", names, n);
    say(context, ev);
}

void events_of_tick(const struct report *r, const char *scheduler, instant at, event_say *say, void *context)
{
    say_counts(r, scheduler, at, say, context);
    say_budget(r, scheduler, at, say, context);
}
