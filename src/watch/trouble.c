/* trouble: what goes wrong again and again is said once, then how long it lasts, then that it is over. */
#include "watch/trouble.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE (60 * US_PER_S)
/* An error that lasts is said after these, and then every so often. */
static const int64_t said_after[] = {1 * MINUTE, 10 * MINUTE};
#define SAID_EVERY (60 * MINUTE)

enum { DIFFERENT_MOST = 16 }; /* errors of one trouble that are told apart; what else it says is not new */

/* What one policy, or the scheduler as a whole, has been failing with. */
struct trouble {
    char *policy; /* "": the scheduler */
    char *table, *label;
    char *error, *outcome;      /* as of its last failing tick */
    char *said[DIFFERENT_MOST]; /* errors said since it began, normalised */
    size_t n_said;
    instant since, next_say;
    int64_t ticks;
    bool seen; /* in this tick's report */
};
struct troubles {
    char *scheduler;
    struct trouble **list; /* in the order they began */
    size_t n;
    char *now; /* what troubles_now gave out */
};

/* A tick as it is looked at. */
struct looking {
    struct troubles *troubles;
    instant at;
    event_say *say;
    void *context;
    size_t errors;
};

struct troubles *troubles_new(const char *scheduler)
{
    struct troubles *t = mem_alloc(sizeof(*t));
    t->scheduler = mem_strdup(scheduler);
    return t;
}

static void trouble_free(struct trouble *t)
{
    for (size_t i = 0; i < t->n_said; i++)
        free(t->said[i]);
    free(t->policy);
    free(t->table);
    free(t->label);
    free(t->error);
    free(t->outcome);
    free(t);
}

void troubles_free(struct troubles *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        trouble_free(t->list[i]);
    free(t->list);
    free(t->scheduler);
    free(t->now);
    free(t);
}

/* --- the same error ------------------------------------------------------------------------------ */

/* Past a value: what stands in brackets or quotes, or else all until a blank or a comma. */
static const char *past_value(const char *s)
{
    static const char pairs[] = "(){}[]''\"\"";
    const char *open = *s ? strchr(pairs, *s) : NULL;
    const char *close = open ? strchr(s + 1, open[1]) : NULL;
    if (close)
        return close + 1;
    return s + strcspn(s, " ,;)\n");
}

/* What stays of an error when the row, the process and the port are others: values behind "=" and words with
 * a digit in them are left out. */
static char *normalised(const char *s)
{
    AUTO(text_release) struct text t = {0};
    while (*s) {
        size_t word = 0;
        bool digit = false;
        for (; isalnum((unsigned char)s[word]) ||
               (word && digit && strchr("-:._", s[word]) && s[word] && isalnum((unsigned char)s[word + 1]));
             word++)
            digit |= isdigit((unsigned char)s[word]) != 0;
        if (word) {
            text_add_n(&t, digit ? "#" : s, digit ? 1 : word);
            s += word;
        } else if (*s == '=') {
            text_add(&t, "=#");
            s = past_value(s + 1);
        } else {
            text_add_n(&t, s++, 1);
        }
    }
    return mem_strdup(text_str(&t));
}

/* Whether the trouble has not said such an error yet; then it has. */
static bool is_new(struct trouble *t, const char *error)
{
    char *form = normalised(error);
    bool known = t->n_said == DIFFERENT_MOST;
    for (size_t i = 0; i < t->n_said && !known; i++)
        known = !strcmp(t->said[i], form);
    if (known)
        free(form);
    else
        t->said[t->n_said++] = form;
    return !known;
}

/* --- what is said -------------------------------------------------------------------------------- */

static struct event *event_about(const struct looking *k, const struct trouble *t, enum event_kind kind)
{
    struct event *ev = event_new(kind, k->troubles->scheduler, k->at);
    if (t->policy[0]) {
        event_text(ev, "policy", t->policy);
        event_text(ev, "label", t->label);
        event_text(ev, "table", t->table);
    }
    event_text(ev, "outcome", t->outcome);
    event_text(ev, "error", t->error);
    return ev;
}

static void who(const struct trouble *t, struct text *out)
{
    if (t->policy[0])
        text_addf(out, "policy '%s': ", t->policy);
}

static void say_failed(const struct looking *k, const struct trouble *t)
{
    AUTO(event_free_p) struct event *ev = event_about(k, t, EVENT_TICK_FAILED);
    AUTO(text_release) struct text name = {0};
    who(t, &name);
    event_message(ev, "%s%s", text_str(&name), t->error);
    k->say(k->context, ev);
}

/* With how long it lasted and how many ticks failed. */
static void say_length(const struct looking *k, const struct trouble *t, enum event_kind kind,
                       const char *format_words)
{
    AUTO(event_free_p) struct event *ev = event_about(k, t, kind);
    AUTO(text_release) struct text name = {0}, span = {0};
    int64_t us = k->at > t->since ? k->at - t->since : 0;
    who(t, &name);
    span_format_rough(us, &span);
    event_time(ev, "since", t->since);
    event_span(ev, "lasted_s", us);
    event_number(ev, "ticks", t->ticks);
    event_message(ev, "%s%s %s, %lld tick%s failed: %s", text_str(&name), format_words, text_str(&span),
                  (long long)t->ticks, t->ticks == 1 ? "" : "s", t->error);
    k->say(k->context, ev);
}

/* The next time that is worth a line, after now. */
static instant next_say(instant since, instant at)
{
    for (size_t i = 0; i < COUNT_OF(said_after); i++)
        if (since + said_after[i] > at)
            return since + said_after[i];
    return since + ((at - since) / SAID_EVERY + 1) * SAID_EVERY;
}

/* --- a tick -------------------------------------------------------------------------------------- */

static struct trouble *find(const struct troubles *ts, const char *policy)
{
    for (size_t i = 0; i < ts->n; i++)
        if (!strcmp(ts->list[i]->policy, policy))
            return ts->list[i];
    return NULL;
}

static void forget(struct troubles *ts, struct trouble *t)
{
    size_t i = 0;
    while (ts->list[i] != t)
        i++;
    memmove(&ts->list[i], &ts->list[i + 1], (ts->n - i - 1) * sizeof(*ts->list));
    ts->n--;
    trouble_free(t);
}

static struct trouble *begin(struct looking *k, const char *policy)
{
    struct troubles *ts = k->troubles;
    struct trouble *t = mem_alloc(sizeof(*t));
    t->policy = mem_strdup(policy);
    t->since = k->at;
    t->next_say = next_say(t->since, k->at);
    ts->list = mem_grow(ts->list, ts->n + 1, sizeof(*ts->list));
    return ts->list[ts->n++] = t;
}

static void put(char **to, const char *s)
{
    free(*to);
    *to = s ? mem_strdup(s) : NULL;
}

static void failed(struct looking *k, const struct report_policy *p, const char *outcome, const char *error)
{
    const char *policy = p ? p->policy->name : "";
    struct trouble *t = find(k->troubles, policy);
    if (!t)
        t = begin(k, policy);
    put(&t->error, error);
    put(&t->outcome, outcome);
    put(&t->table, p ? p->table : NULL);
    put(&t->label, p ? p->policy->label : NULL);
    t->ticks++;
    t->seen = true;
    k->errors++;
    if (t->since > k->at) { /* the clock was set back */
        t->since = k->at;
        t->next_say = next_say(t->since, k->at);
    }
    bool due = k->at >= t->next_say;
    if (due)
        t->next_say = next_say(t->since, k->at);
    /* A fuse that has tripped stays so: at the next tick the words are others, but nothing is new. */
    if (is_new(t, strcmp(outcome, outcome_name(OUTCOME_FUSE)) == 0 ? outcome : error))
        say_failed(k, t);
    else if (due)
        say_length(k, t, EVENT_STILL_FAILING, "still failing after");
}

static void went_well(struct looking *k, const char *policy)
{
    struct trouble *t = find(k->troubles, policy);
    if (!t)
        return;
    say_length(k, t, EVENT_RECOVERED, "went well again after");
    forget(k->troubles, t);
}

/* What is wrong, in words; several things at once: the gravest. */
static void policy_failed(struct looking *k, const struct report_policy *p)
{
    AUTO(text_release) struct text t = {0};
    bool stayed = p->kind != OUTCOME_FAILED && p->kind != OUTCOME_REFUSED && p->kind != OUTCOME_FUSE;
    if (stayed && p->n_skipped) {
        const struct skipped_row *first = &p->skipped[0];
        text_addf(&t, "rows that could not be deleted: %zu; the first (%s), %s: %s", p->n_skipped,
                  first->reason, first->key, first->error);
        failed(k, p, "skipped", text_str(&t));
    } else if (stayed) {
        text_addf(&t, "rows that may or may not be gone, because the connection broke in a commit: %lld",
                  (long long)p->unknown);
        failed(k, p, "unknown", text_str(&t));
    } else {
        failed(k, p, outcome_name(p->kind), p->error ? p->error : outcome_name(p->kind));
    }
}

static bool says_nothing(const struct report_policy *p)
{
    return p->kind == OUTCOME_STOPPED || p->kind == OUTCOME_PAUSED || p->kind == OUTCOME_HELD ||
           p->kind == OUTCOME_WINDOW;
}

static void look_at_policy(struct looking *k, const struct report_policy *p)
{
    struct trouble *t = find(k->troubles, p->policy->name);
    if (t)
        t->seen = p->kind != OUTCOME_DISABLED;
    if (p->unreachable || p->kind == OUTCOME_DISABLED)
        return;
    if (report_in_trouble(p))
        policy_failed(k, p);
    else if (!says_nothing(p))
        went_well(k, p->policy->name);
}

/* The database not there: one error of the tick, however many policies met with it. */
static void look_at_scheduler(struct looking *k, const struct report *r)
{
    const struct report_policy *lost = NULL;
    bool heard = r->n_policies == 0;
    for (size_t i = 0; i < r->n_policies; i++) {
        if (r->policies[i].unreachable && !lost)
            lost = &r->policies[i];
        heard |= r->policies[i].kind != OUTCOME_STOPPED;
    }
    if (r->error)
        failed(k, NULL, r->unreachable ? "unreachable" : "failed", r->error);
    else if (lost)
        failed(k, NULL, "unreachable", lost->error ? lost->error : "the database was not there");
    else if (heard)
        went_well(k, "");
}

size_t troubles_of_tick(struct troubles *t, const struct report *r, instant at, event_say *say, void *context)
{
    struct looking k = {.troubles = t, .at = at, .say = say, .context = context};
    for (size_t i = 0; i < t->n; i++)
        t->list[i]->seen = !t->list[i]->policy[0];
    look_at_scheduler(&k, r);
    for (size_t i = 0; i < r->n_policies; i++)
        look_at_policy(&k, &r->policies[i]);
    /* What the contract no longer has, or has turned off. A tick that failed as a whole lists no policies. */
    for (size_t i = t->n; i-- > 0 && !r->error;)
        if (!t->list[i]->seen)
            forget(t, t->list[i]);
    return k.errors;
}

const char *troubles_now(const struct troubles *t, instant *ret_since)
{
    const struct trouble *found = find(t, "");
    if (!found && t->n)
        found = t->list[0];
    if (!found)
        return NULL;
    AUTO(text_release) struct text s = {0};
    who(found, &s);
    text_add(&s, found->error);
    put(&((struct troubles *)t)->now, text_str(&s));
    if (ret_since)
        *ret_since = found->since;
    return t->now;
}
