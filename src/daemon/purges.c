/* purges: carries out purges. It says of each what it did, and of what goes wrong once, until that
 * changes. */
#include <string.h>

#include "daemon/internal.h"
#include "command/purger.h"

enum {
    PENDING_MOST = 10000, /* how far those that wait are counted … */
    REASONS_MOST = 50,   /* reasons of a space that are counted apart, beside those that the contract names */
    REASON_LENGTH = 100, /* a longer one is no label */
};
static const int64_t PENDING_US = 15 * US_PER_S;       /* … and how often … */
static const int64_t PENDING_MANY_US = 120 * US_PER_S; /* … where they are more: they mostly stay so */

/* What is remembered between turns. */
struct purges_work {
    struct lapse_daemon *daemon;
    const struct contract *contract;
    struct purger *purger;
    char **said; /* per space, and one for the turn as a whole: the trouble that was said; NULL: none */
    char *said_strangers, *said_stuck;
    struct reasons {
        char **list;
        size_t n;
    } * reasons; /* per space: those that were counted apart so far */
    int64_t counted_us;
    bool many;         /* than are counted */
    int64_t waited_us; /* for a database that is not there; 0: it is */
};

static bool should_stop(void *context)
{
    struct lapse_daemon *d = ((struct purges_work *)context)->daemon;
    return atomic_load(&d->stopping);
}

static bool is_named(const struct purge_space *s, const char *reason)
{
    for (size_t i = 0; i < s->n_only; i++)
        if (strcmp(s->only[i], reason) == 0)
            return true;
    for (size_t i = 0; i < s->n_retention; i++)
        if (strcmp(s->retention[i].reason, reason) == 0)
            return true;
    return false;
}

/* Applications write reasons, and some write a new one each time: a series for each would never end. */
static const char *reason_label(struct purges_work *w, const struct purge_space *s, const char *reason)
{
    struct reasons *known = &w->reasons[s - w->contract->purges];
    if (is_named(s, reason))
        return reason;
    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->list[i], reason) == 0)
            return reason;
    if (known->n == REASONS_MOST || strlen(reason) > REASON_LENGTH)
        return "other";
    known->list = mem_grow(known->list, known->n + 1, sizeof(*known->list));
    known->list[known->n++] = mem_strdup(reason);
    return reason;
}

static void on_executed(void *context, const struct purge_done *done)
{
    struct purges_work *w = context;
    const char *labels[] = {done->space->name, reason_label(w, done->space, done->reason)};
    AUTO(text_release) struct text line = {0}, instance = {0};
    struct event *ev = event_new(EVENT_PURGE_EXECUTED, NULL, when_now());
    purge_line(done->space, done->instance, done->reason, &line);
    event_message(ev, "%s", text_str(&line));
    event_text(ev, "space", done->space->name);
    purge_name_print(done->instance, &instance);
    event_text(ev, "instance", text_str(&instance));
    event_text(ev, "reason", done->reason);
    if (done->rows >= 0)
        event_number(ev, "rows", done->rows);
    meter_add(w->daemon->meter, METRIC_PURGES, labels, 1); /* who reads the line finds it counted */
    daemon_say(w->daemon, ev);
}

/* --- what goes wrong ---------------------------------------------------------------------------------------
 */

static void say_failed(struct purges_work *w, const char *space, const char *words)
{
    struct event *ev = event_new(EVENT_PURGE_FAILED, NULL, when_now());
    event_message(ev, "%s", words);
    if (space)
        event_text(ev, "space", space);
    daemon_say(w->daemon, ev);
}

/* words NULL: nothing is wrong (any more). */
static void say_once(struct purges_work *w, char **said, const char *space, const char *words)
{
    if (words && *said && strcmp(words, *said) == 0)
        return;
    if (words)
        say_failed(w, space, words);
    else if (*said)
        daemon_remark(w->daemon, LEVEL_INFO, "purges%s%s go on: what was wrong is over", space ? " of " : "",
                      space ? space : "");
    mem_free_p(said);
    *said = words ? mem_strdup(words) : NULL;
}

static void say_space(struct purges_work *w, size_t at, const struct purger_space *s)
{
    const struct purging_outcome *o = &s->out;
    if (s->kind == PURGER_IDLE)
        return;
    if (s->kind == PURGER_REFUSED)
        say_once(w, &w->said[at], s->space->name, s->refused);
    else if (o->kind == PURGING_STOPPED)
        return;
    else
        say_once(w, &w->said[at], s->space->name, o->kind == PURGING_DONE ? NULL : o->err.text);
    if (o->retried || o->parked)
        say_failed(w, s->space->name, o->trouble);
    if (o->unknown)
        daemon_remark(w->daemon, LEVEL_WARN, "purges of %s: %lld in commits whose outcome is unknown",
                      s->space->name, (long long)o->unknown);
}

static void say_strangers(struct purges_work *w, const struct purger_turn *t)
{
    AUTO(text_release) struct text names = {0};
    for (size_t i = 0; i < t->n_strangers; i++)
        text_addf(&names, "%s'%s'", i ? ", " : "", t->strangers[i]);
    if (!names.len || (w->said_strangers && strcmp(w->said_strangers, text_str(&names)) == 0))
        return;
    daemon_remark(w->daemon, LEVEL_WARN,
                  "lapse_purge has rows of spaces that the contract does not have, which are left alone: %s",
                  text_str(&names));
    mem_free_p(&w->said_strangers);
    w->said_strangers = mem_strdup(text_str(&names));
}

static void say_stuck(struct purges_work *w, const struct purger_turn *t)
{
    AUTO(text_release) struct text words = {0};
    for (size_t i = 0; i < t->n_stuck; i++)
        text_addf(&words, "%s%s", i ? "; " : "", t->stuck[i]);
    if (!words.len || (w->said_stuck && strcmp(w->said_stuck, text_str(&words)) == 0))
        return;
    daemon_remark(w->daemon, LEVEL_WARN, "%s", text_str(&words));
    mem_free_p(&w->said_stuck);
    w->said_stuck = mem_strdup(text_str(&words));
}

static void say_whole(struct purges_work *w, const struct purger_turn *t)
{
    AUTO(text_release) struct text words = {0};
    if (t->err.kind != ERR_NONE)
        text_addf(&words, "%s%s%s%s", t->err.text, *t->fix ? " (" : "", t->fix, *t->fix ? ")" : "");
    say_once(w, &w->said[w->contract->n_purges], NULL, words.len ? text_str(&words) : NULL);
}

/* --- turns -------------------------------------------------------------------------------------------------
 */

static void count_pending(struct purges_work *w)
{
    int64_t now_us = when_monotonic_us();
    if (w->counted_us && now_us - w->counted_us < (w->many ? PENDING_MANY_US : PENDING_US))
        return;
    w->counted_us = now_us;
    w->many = false;
    for (size_t i = 0; i < w->contract->n_purges; i++) {
        const char *labels[] = {w->contract->purges[i].name};
        int64_t n = purger_pending(w->purger, &w->contract->purges[i], PENDING_MOST);
        w->many = w->many || n >= PENDING_MOST;
        if (n >= 0)
            meter_set(w->daemon->meter, METRIC_PURGES_PENDING, labels, (double)n);
    }
}

/* Said once: the turn says what became of it. */
static void on_wait(void *context, const struct err *why, int64_t waited_us)
{
    struct purges_work *w = context;
    if (waited_us < w->waited_us || !w->waited_us)
        daemon_remark(w->daemon, LEVEL_WARN, "purges wait: the database is not there: %s", why->text);
    w->waited_us = waited_us + 1;
}

static int64_t turn(void *work, bool *ret_lost)
{
    struct purges_work *w = work;
    AUTO(purger_turn_release) struct purger_turn t = {0};
    w->waited_us = 0;
    const struct purging_options o = {should_stop, on_executed, w, on_wait};
    *ret_lost = false; /* what is wrong is said here */
    if (!w->contract->n_purges)
        return INT64_MAX;
    purger_turn(w->purger, &o, &t);
    if (should_stop(w))
        return 0;
    for (size_t i = 0; i < t.n; i++)
        say_space(w, i, &t.spaces[i]);
    say_whole(w, &t);
    say_strangers(w, &t);
    say_stuck(w, &t);
    count_pending(w);
    return t.wait_us;
}

static void *open_purges(struct lapse_daemon *d, const struct contract *c)
{
    struct purges_work *w = mem_alloc(sizeof(*w));
    *w = (struct purges_work){.daemon = d, .contract = c, .purger = purger_new(c)};
    w->said = mem_alloc((c->n_purges + 1) * sizeof(*w->said));
    w->reasons = mem_alloc((c->n_purges + 1) * sizeof(*w->reasons));
    return w;
}

static void close_purges(void *work)
{
    struct purges_work *w = work;
    purger_free(w->purger);
    for (size_t i = 0; i <= w->contract->n_purges; i++)
        mem_free_p(&w->said[i]);
    for (size_t i = 0; i < w->contract->n_purges; i++) {
        for (size_t k = 0; k < w->reasons[i].n; k++)
            mem_free_p(&w->reasons[i].list[k]);
        mem_free_p(&w->reasons[i].list);
    }
    mem_free_p(&w->reasons);
    mem_free_p(&w->said);
    mem_free_p(&w->said_strangers);
    mem_free_p(&w->said_stuck);
    mem_free_p(&w);
}

static void interrupt(void *work)
{
    purger_interrupt(((struct purges_work *)work)->purger);
}

const struct side_kind side_purges = {"purges are not carried out", open_purges, turn, close_purges,
                                      interrupt};
