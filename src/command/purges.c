/* purges: the commands on purges: schedule, cancel, status, list, due. */
#include <string.h>

#include "command/purger.h"
#include "base/quote.h"

enum { LIST_MOST = 1000 };

/* --- saying ----------------------------------------------------------------------------------------------
 */

static void say(struct work *w, const char *line)
{
    struct report *r = w->report;
    AUTO(text_release) struct text t = {0};
    text_add_seen(&t, line, false);
    r->words = arena_printf(r->arena, "%s%s\n", r->words ? r->words : "", text_str(&t));
}

static struct report_fact fact_text(const char *key, const char *text)
{
    return (struct report_fact){.key = key, .kind = FACT_TEXT, .null = !text, .text = text};
}

static struct report_fact fact_number(const char *key, int64_t number)
{
    return (struct report_fact){.key = key, .kind = FACT_NUMBER, .number = number};
}

static struct report_fact fact_flag(const char *key, bool flag)
{
    return (struct report_fact){.key = key, .kind = FACT_FLAG, .number = flag};
}

static struct report_fact fact_time(const char *key, bool there, instant at)
{
    return (struct report_fact){.key = key, .kind = FACT_TIME, .null = !there, .number = at};
}

static const char *utc(struct arena *a, instant at)
{
    char buf[WHEN_TEXT_SIZE];
    return arena_printf(a, "%s UTC", when_format_local(at, 0, buf));
}

static const char *instance_text(struct arena *a, const struct value *v)
{
    AUTO(text_release) struct text t = {0};
    if (v->kind == VALUE_NULL)
        return "(too long to be read)";
    if (v->kind == VALUE_TEXT && v->len && !memchr(v->text, 0, v->len))
        return arena_strndup(a, v->text, v->len);
    purge_name_print(v, &t);
    return arena_strdup(a, text_str(&t));
}

static const char *row_instance(struct arena *a, const struct purge_row *r)
{
    const char *text = instance_text(a, &r->instance);
    return r->cut ? arena_printf(a, "%s\xE2\x80\xA6", text) : text;
}

/* --- words -----------------------------------------------------------------------------------------------
 */

static const char *word(const struct work *w, size_t at)
{
    return at < w->options->n_key ? w->options->key[at] : NULL;
}

static const struct purge_space *find_space(struct work *w, const char *name, struct err *e)
{
    const struct contract *c = w->contract;
    const struct purge_space *s = purge_space_named(c, name);
    if (s)
        return s;
    AUTO(mem_free_p) const char **names = mem_alloc((c->n_purges + 1) * sizeof(*names));
    AUTO(text_release) struct text all = {0};
    for (size_t i = 0; i < c->n_purges; i++) {
        names[i] = c->purges[i].name;
        text_addf(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = nearest_word(name, names, c->n_purges);
    if (!c->n_purges)
        err_set(e, ERR_USAGE, "%s has no purges", c->file);
    else if (near)
        err_set(e, ERR_USAGE, "there is no space '%s' in the purges of %s (did you mean '%s'?)", name,
                c->file, near);
    else
        err_set(e, ERR_USAGE, "there is no space '%s' in the purges of %s; it has: %s", name, c->file,
                text_str(&all));
    return NULL;
}

/* A database may take bytes that are no text, and nothing that shows them could. */
static int need_text(const char *what, const char *text, struct err *e)
{
    for (const char *s = text; *s;) {
        size_t n = utf8_length(s);
        if (!n)
            return err_set(e, ERR_USAGE, "the %s is not valid UTF-8 (byte %zu)", what,
                           (size_t)(s - text) + 1);
        s += n;
    }
    return 0;
}

static int need_tables(struct work *w, struct err *e)
{
    const char *fix;
    AUTO(text_release) struct text why = {0};
    return purging_obstacle(w->store, &why, &fix) ? err_set(e, ERR_USAGE, "%s: %s", text_str(&why), fix) : 0;
}

/* The space, and the tables; -1: e says why not. */
static int prepare(struct work *w, const struct purge_space **ret, struct err *e)
{
    for (size_t i = 1; i < w->options->n_key; i++)
        if (need_text(i == 1 ? "instance" : "reason", word(w, i), e) < 0)
            return -1;
    *ret = word(w, 0) ? find_space(w, word(w, 0), e) : NULL;
    return (word(w, 0) && !*ret) || need_tables(w, e) < 0 ? -1 : 0;
}

/* --- rows ------------------------------------------------------------------------------------------------
 */

/* What a row is waiting for; decides: it is the first of its instance. */
static const char *state_of(const struct purge_space *s, const struct purge_row *r, bool decides, instant now)
{
    instant due;
    if (!s)
        return "unknown_space";
    if (!purge_counts(s, r))
        return "not_purged";
    if (!decides)
        return "repeated";
    if (r->parked.there)
        return "parked";
    if (!purge_due_at(s, r, &due))
        return "never";
    return due <= now ? "due" : r->retry.there ? "retrying" : "pending";
}

static const char *state_words(struct arena *a, const char *state, const struct purge_row *r, bool dated,
                               instant due)
{
    const char *when = dated ? utc(a, due) : "";
    if (strcmp(state, "pending") == 0)
        return arena_printf(a, "purged at %s", when);
    if (strcmp(state, "due") == 0)
        return arena_printf(a, "due since %s", when);
    if (strcmp(state, "retrying") == 0)
        return arena_printf(a, "failed %lld time%s, again at %s: %s", (long long)r->attempts,
                            r->attempts == 1 ? "" : "s", when, r->error ? r->error : "");
    if (strcmp(state, "parked") == 0)
        return arena_printf(a, "parked after %lld attempt%s: %s", (long long)r->attempts,
                            r->attempts == 1 ? "" : "s", r->error ? r->error : "");
    if (strcmp(state, "repeated") == 0)
        return "scheduled again, which changes nothing";
    if (strcmp(state, "not_purged") == 0)
        return "never purged: the reason is outside 'only'";
    if (strcmp(state, "unknown_space") == 0)
        return "left alone: the contract has no such space";
    return "never due";
}

static struct report_row row_facts(struct work *w, const struct purge_row *r, const char *state, bool dated,
                                   instant due)
{
    struct arena *a = w->report->arena;
    const struct report_fact facts[] = {
        fact_number("id", r->id),
        fact_text("space", arena_strdup(a, r->space)),
        fact_text("instance", row_instance(a, r)),
        fact_text("reason", arena_strdup(a, purge_reason(r->reason))),
        fact_text("state", state),
        fact_time("scheduled_at", r->scheduled.usable, r->scheduled.at),
        fact_time("due_at", dated, due),
        fact_number("attempts", r->attempts),
        fact_text("error", r->error ? arena_strdup(a, r->error) : NULL),
    };
    struct report_row row = {arena_alloc(a, sizeof(facts)), COUNT_OF(facts)};
    memcpy(row.facts, facts, sizeof(facts));
    return row;
}

/* Whether the row is the first of its instance that counts. sorted: as they were scheduled. */
static bool decides(const struct purge_space *s, const struct purge_rows *sorted, const struct purge_row *r)
{
    for (size_t i = 0; i < sorted->n && s; i++) {
        const struct purge_row *x = &sorted->list[i];
        if (!x->cut && strcmp(x->space, r->space) == 0 && purge_counts(s, x) &&
            purge_compare(&x->instance, &r->instance) == 0)
            return x->id == r->id;
    }
    return true;
}

static struct purge_rows as_scheduled(struct arena *a, const struct purge_rows *rows)
{
    struct purge_rows sorted = *rows;
    sorted.list = arena_alloc(a, (rows->n + 1) * sizeof(*sorted.list));
    if (rows->n)
        memcpy(sorted.list, rows->list, rows->n * sizeof(*sorted.list));
    purge_rows_sort(&sorted);
    return sorted;
}

static void show_rows(struct work *w, const struct purge_rows *rows)
{
    struct arena *a = w->report->arena;
    const struct purge_rows sorted = as_scheduled(a, rows);
    struct report_row *list = arena_alloc(a, (rows->n + 1) * sizeof(*list));
    for (size_t i = 0; i < rows->n; i++) {
        const struct purge_row *r = &rows->list[i];
        const struct purge_space *s = purge_space_named(w->contract, r->space);
        instant due = 0;
        bool dated = s && purge_counts(s, r) && purge_due_at(s, r, &due);
        const char *state = state_of(s, r, decides(s, &sorted, r), w->now);
        list[i] = row_facts(w, r, state, dated, due);
        say(w, arena_printf(a, "%s %s (%s): %s", r->space, row_instance(a, r), purge_reason(r->reason),
                            state_words(a, state, r, dated, due)));
    }
    report_add_fact(w->report,
                    (struct report_fact){.key = "purges", .kind = FACT_ROWS, .rows = list, .n = rows->n});
}

/* --- schedule and cancel ---------------------------------------------------------------------------------
 */

static void add_names(struct work *w, const struct purge_space *s, const char *reason)
{
    report_add_fact(w->report, fact_text("space", s->name));
    report_add_fact(w->report, fact_text("instance", arena_strdup(w->report->arena, word(w, 1))));
    if (reason)
        report_add_fact(w->report, fact_text("reason", arena_strdup(w->report->arena, reason)));
}

/* A success: whoever ends in such a state has data that stays. */
static void not_taken(struct work *w, const struct purge_space *s, const char *reason)
{
    AUTO(text_release) struct text all = {0};
    const char *near = nearest_word(reason, s->only, s->n_only);
    for (size_t i = 0; i < s->n_only; i++)
        text_addf(&all, "%s%s", i ? ", " : "", s->only[i]);
    add_names(w, s, reason);
    report_add_fact(w->report, fact_flag("scheduled", false));
    say(w, arena_printf(w->report->arena,
                        "nothing was scheduled: the space '%s' purges only for %s, not for '%s'%s%s%s",
                        s->name, text_str(&all), reason, near ? " (did you mean '" : "", near ? near : "",
                        near ? "'?)" : ""));
    report_add_fact(w->report, (struct report_fact){.key = "purges", .kind = FACT_ROWS});
}

static int need_short(const char *reason, struct err *e)
{
    enum { MOST = 2000 };
    size_t n = 0;
    for (const char *s = reason; *s; s += utf8_length(s))
        n++;
    return n <= MOST ? 0 : err_set(e, ERR_USAGE, "the reason is longer than %d characters", MOST);
}

/* A row whose reason does not count is none: it goes unexecuted, and must not take this one with it. Two that
 * look at the same time both write: the first decides, as ever. */
static int schedule_once(struct work *w, const struct purge_space *s, const char *instance,
                         const char *reason, bool *ret_new, struct err *e)
{
    AUTO(purge_rows_release) struct purge_rows rows = {0};
    const struct purge_ops *ops = w->store->ops->purges;
    struct span delay = purge_delay(s, reason);
    if (ops->of_instance(w->store, s->name, instance, &rows, e) < 0)
        return -1;
    *ret_new = true;
    for (size_t i = 0; i < rows.n; i++)
        *ret_new = *ret_new && !purge_counts(s, &rows.list[i]);
    return *ret_new ? ops->schedule(w->store, s->name, instance, reason,
                                    delay.kind == SPAN_NEVER ? -1 : delay.us, e)
                    : 0;
}

static int schedule(struct work *w, struct err *e)
{
    struct arena *a = w->report->arena;
    const struct purge_space *s;
    bool is_new;
    if (prepare(w, &s, e) < 0)
        return -1;
    const char *instance = word(w, 1), *reason = word(w, 2);
    if (!purge_takes(s, reason)) {
        not_taken(w, s, reason);
        return 0;
    }
    if (need_short(reason, e) < 0 || schedule_once(w, s, instance, reason, &is_new, e) < 0)
        return -1;
    AUTO(purge_rows_release) struct purge_rows rows = {0};
    if (w->store->ops->purges->of_instance(w->store, s->name, instance, &rows, e) < 0)
        return -1;
    add_names(w, s, reason);
    report_add_fact(w->report, fact_flag("scheduled", is_new));
    say(w, is_new ? arena_printf(a, "scheduled the purge of %s in %s", instance, s->name)
                  : arena_printf(a, "nothing was changed: %s in %s is scheduled already", instance, s->name));
    show_rows(w, &rows);
    return 0;
}

static int cancel(struct work *w, struct err *e)
{
    struct arena *a = w->report->arena;
    const struct purge_space *s;
    int64_t rows;
    if (prepare(w, &s, e) < 0 || w->store->ops->purges->cancel(w->store, s->name, word(w, 1), &rows, e) < 0)
        return -1;
    add_names(w, s, NULL);
    report_add_fact(w->report, fact_flag("cancelled", rows > 0));
    say(w, rows ? arena_printf(a, "cancelled the purge of %s in %s", word(w, 1), s->name)
                : arena_printf(a, "no purge of %s in %s was scheduled", word(w, 1), s->name));
    return 0;
}

/* --- status and list -------------------------------------------------------------------------------------
 */

static int status(struct work *w, struct err *e)
{
    AUTO(purge_rows_release) struct purge_rows rows = {0};
    const struct purge_space *s;
    if (prepare(w, &s, e) < 0 ||
        w->store->ops->purges->of_instance(w->store, s->name, word(w, 1), &rows, e) < 0)
        return -1;
    add_names(w, s, NULL);
    report_add_fact(w->report, fact_flag("scheduled", rows.n > 0));
    if (!rows.n)
        say(w, arena_printf(w->report->arena, "no purge of %s in %s is scheduled", word(w, 1), s->name));
    show_rows(w, &rows);
    return 0;
}

static int list(struct work *w, struct err *e)
{
    AUTO(purge_rows_release) struct purge_rows rows = {0};
    const struct purge_space *s;
    if (prepare(w, &s, e) < 0 ||
        w->store->ops->purges->list(w->store, s ? s->name : NULL, LIST_MOST + 1, &rows, e) < 0)
        return -1;
    bool more = rows.n > LIST_MOST;
    rows.n = more ? LIST_MOST : rows.n;
    if (!rows.n)
        say(w, "no purges are scheduled");
    show_rows(w, &rows);
    report_add_fact(w->report, fact_flag("more", more));
    if (more)
        work_remark(w, arena_printf(w->report->arena, "only the first %d are shown", LIST_MOST));
    return 0;
}

/* --- due -------------------------------------------------------------------------------------------------
 */

struct doing {
    struct work *work;
    struct report_row *rows;
    size_t n;
    const char *reason; /* of the last */
    const char *space;  /* at work */
};

static bool ask_stop(void *context)
{
    const struct lapse_options *o = ((struct doing *)context)->work->options;
    return o->stop && o->stop(o->context);
}

static void on_executed(void *context, const struct purge_done *d)
{
    struct doing *doing = context;
    struct arena *a = doing->work->report->arena;
    if (!doing->reason || strcmp(doing->reason, d->reason) != 0) /* many have the same */
        doing->reason = arena_strdup(a, d->reason);
    struct report_fact facts[] = {fact_text("space", d->space->name),
                                  fact_text("instance", instance_text(a, d->instance)),
                                  fact_text("reason", doing->reason), fact_number("rows", d->rows)};
    facts[COUNT_OF(facts) - 1].null = d->rows < 0;
    struct report_row row = {arena_alloc(a, sizeof(facts)), COUNT_OF(facts)};
    memcpy(row.facts, facts, sizeof(facts));
    doing->rows = arena_push(a, doing->rows, doing->n, sizeof(*doing->rows));
    doing->rows[doing->n++] = row;
}

static void on_wait(void *context, const struct err *why, int64_t waited_us)
{
    const struct lapse_options *o = ((struct doing *)context)->work->options;
    if (o->progress)
        o->progress(o->context, &(struct lapse_progress){.policy = ((struct doing *)context)->space,
                                                         .pace = "away",
                                                         .pace_text = why->text,
                                                         .waiting_us = waited_us + 1});
}

/* The words at the end: a line per purge would be copied again and again. */
static void say_executed(struct doing *d)
{
    AUTO(text_release) struct text t = {0}, line = {0};
    struct report *r = d->work->report;
    text_add(&t, r->words ? r->words : "");
    for (size_t i = 0; i < d->n; i++) {
        const struct report_fact *f = d->rows[i].facts;
        const struct purge_space *s = purge_space_named(d->work->contract, f[0].text);
        text_clear(&line);
        purge_line(s, &(struct value){.kind = VALUE_TEXT, .text = f[1].text, .len = strlen(f[1].text)},
                   f[2].text, &line);
        text_add_seen(&t, text_str(&line), false);
        text_add(&t, "\n");
    }
    r->words = arena_strndup(r->arena, text_str(&t), t.len);
}

static void graver(struct work *w, int code)
{
    static const int order[] = {LAPSE_UNREACHABLE, LAPSE_FAILED, LAPSE_FINDINGS, LAPSE_STOPPED, LAPSE_DONE};
    for (size_t i = 0; i < COUNT_OF(order) && order[i] != w->report->exit; i++)
        if (order[i] == code) {
            w->report->exit = code;
            return;
        }
}

static const char *outcome_word(const struct purger_space *s)
{
    static const char *const words[] = {[PURGING_DONE] = "done",
                                        [PURGING_FAILED] = "failed",
                                        [PURGING_STOPPED] = "stopped",
                                        [PURGING_PAUSED] = "paused"};
    return s->kind == PURGER_REFUSED ? "refused" : s->kind == PURGER_IDLE ? "done" : words[s->out.kind];
}

static void judge_space(struct work *w, const struct purger_space *s)
{
    static const int codes[] = {[PURGING_DONE] = LAPSE_DONE,
                                [PURGING_FAILED] = LAPSE_FAILED,
                                [PURGING_STOPPED] = LAPSE_STOPPED,
                                [PURGING_PAUSED] = LAPSE_STOPPED};
    struct arena *a = w->report->arena;
    const struct purging_outcome *o = &s->out;
    if (s->kind == PURGER_REFUSED) {
        graver(w, LAPSE_FINDINGS);
        say(w, arena_printf(a, "%s: refused: %s", s->space->name, s->refused));
        return;
    }
    graver(w, codes[o->kind]);
    if (o->retried || o->parked || o->unknown)
        graver(w, LAPSE_FAILED);
    if (o->err.kind == ERR_UNREACHABLE)
        graver(w, LAPSE_UNREACHABLE);
    if (o->kind != PURGING_DONE)
        say(w, arena_printf(a, "%s: %s: %s", s->space->name, outcome_word(s), o->err.text));
    if (o->retried || o->parked)
        say(w, arena_printf(a, "%s: %lld failed and will be tried again, %lld parked; the first: %s",
                            s->space->name, (long long)o->retried, (long long)o->parked, o->trouble));
    if (o->unknown)
        say(w, arena_printf(a, "%s: %lld in commits whose outcome is unknown", s->space->name,
                            (long long)o->unknown));
}

static struct report_row space_facts(struct work *w, const struct purger_space *s)
{
    struct arena *a = w->report->arena;
    const struct purging_outcome *o = &s->out;
    const char *error = s->kind == PURGER_REFUSED ? s->refused : o->err.text[0] ? o->err.text : o->trouble;
    const struct report_fact facts[] = {fact_text("space", s->space->name),
                                        fact_text("outcome", outcome_word(s)),
                                        fact_number("executed", o->executed),
                                        fact_number("rows", o->rows),
                                        fact_number("removed", o->removed),
                                        fact_number("retried", o->retried),
                                        fact_number("parked", o->parked),
                                        fact_number("unknown", o->unknown),
                                        fact_number("batches", o->batches),
                                        fact_number("retries", o->retries),
                                        fact_text("error", error[0] ? arena_strdup(a, error) : NULL)};
    struct report_row row = {arena_alloc(a, sizeof(facts)), COUNT_OF(facts)};
    memcpy(row.facts, facts, sizeof(facts));
    return row;
}

/* All reasons of the space, however many there are. */
static int due_space(struct doing *d, const struct purge_space *space, struct purger_space *ret,
                     struct err *e)
{
    struct work *w = d->work;
    const struct purging_options o = {ask_stop, on_executed, d, on_wait};
    AUTO(mem_free_p) char *after = NULL;
    d->space = space->name;
    do {
        struct purging_outcome before = ret->out;
        if (purger_space_turn(w->store, w->contract, space, w->now, &after, &o, w->report->arena, ret, e) < 0)
            return -1;
        ret->out.executed += before.executed;
        ret->out.rows += before.rows;
        ret->out.removed += before.removed;
        ret->out.retried += before.retried;
        ret->out.parked += before.parked;
        ret->out.unknown += before.unknown;
        ret->out.batches += before.batches;
        ret->out.retries += before.retries;
    } while (after && ret->kind != PURGER_REFUSED && ret->out.kind == PURGING_DONE);
    return 0;
}

static void say_stuck(struct work *w, struct err *e)
{
    struct arena *a = w->report->arena;
    const char **list_of;
    size_t n;
    if (purger_stuck(w->store, w->contract, w->now, a, &list_of, &n, e) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        work_remark(w, list_of[i]);
    report_add_fact(w->report,
                    (struct report_fact){.key = "stuck", .kind = FACT_TEXTS, .texts = list_of, .n = n});
}

static void say_strangers(struct work *w, struct err *e)
{
    const char **list_of;
    size_t n;
    struct arena *a = w->report->arena;
    if (purger_strangers(w->store, w->contract, a, &list_of, &n, e) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        work_remark(w, arena_printf(a,
                                    "lapse_purge has rows of the space '%s', which %s does not have: they "
                                    "are left alone",
                                    list_of[i], w->contract->file));
    report_add_fact(w->report, (struct report_fact){
                                   .key = "unknown_spaces", .kind = FACT_TEXTS, .texts = list_of, .n = n});
}

static int due(struct work *w, struct err *e)
{
    const struct contract *c = w->contract;
    struct arena *a = w->report->arena;
    struct doing d = {.work = w};
    struct report_row *rows = arena_alloc(a, (c->n_purges + 1) * sizeof(*rows));
    struct purger_space *all = arena_alloc(a, (c->n_purges + 1) * sizeof(*all));
    int r = need_tables(w, e);
    if (r == 0 && !c->n_purges)
        r = err_set(e, ERR_USAGE, "%s has no purges", c->file);
    for (size_t i = 0; i < c->n_purges && r == 0; i++)
        r = due_space(&d, &c->purges[i], &all[i], e);
    if (r < 0)
        return -1;
    say_executed(&d);
    for (size_t i = 0; i < c->n_purges; i++) {
        judge_space(w, &all[i]);
        rows[i] = space_facts(w, &all[i]);
    }
    report_add_fact(w->report,
                    (struct report_fact){.key = "executed", .kind = FACT_ROWS, .rows = d.rows, .n = d.n});
    report_add_fact(w->report,
                    (struct report_fact){.key = "spaces", .kind = FACT_ROWS, .rows = rows, .n = c->n_purges});
    if (!w->report->words)
        w->report->words = "";
    if (!w->report->words[0])
        say(w, "no purge is due");
    say_strangers(w, e);
    say_stuck(w, e);
    return 0;
}

/* --- check -----------------------------------------------------------------------------------------------
 */

int work_check_purges(struct work *w, struct err *e)
{
    struct findings *f = &w->report->findings;
    const char *fix;
    AUTO(text_release) struct text why = {0};
    bool obstacle = purging_obstacle(w->store, &why, &fix);
    for (size_t i = 0; i < w->contract->n_purges; i++) {
        AUTO(facts_free_p) struct facts *facts = NULL;
        AUTO(purge_plan_free_p) struct purge_plan *plan = NULL;
        const struct purge_space *s = &w->contract->purges[i];
        if (obstacle && i == 0)
            findings_add(f, w->store->own.lacks_purges[0] ? FINDING_ERROR : FINDING_NOTE,
                         purge_finding_name(f->arena, s), s->at, fix, "nothing can be purged yet: %s",
                         text_str(&why));
        if (check_purge(s, w->store, w->now, true, f, &plan, &facts, e) < 0)
            return err_wrap(e, "purges '%s'", s->name);
    }
    return 0;
}

/* --- the commands ----------------------------------------------------------------------------------------
 */

static struct lapse_report *command(const struct lapse_contract *c, const struct lapse_options *o,
                                    const char *name, bool reading, int (*run)(struct work *w, struct err *e))
{
    struct work w;
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    if (work_start(&w, c, o, REPORT_WORDS, name, reading) < 0 || work_own(&w) < 0)
        return work_finish(&w, started);
    if (run(&w, &e) < 0) {
        work_fail(&w, &e);
        w.report->kind = REPORT_ERROR;
    }
    return work_finish(&w, started);
}

struct lapse_report *lapse_purges_schedule(const struct lapse_contract *c, const struct lapse_options *o)
{
    return command(c, o, "purge schedule", false, schedule);
}

struct lapse_report *lapse_purges_cancel(const struct lapse_contract *c, const struct lapse_options *o)
{
    return command(c, o, "purge cancel", false, cancel);
}

struct lapse_report *lapse_purges_status(const struct lapse_contract *c, const struct lapse_options *o)
{
    return command(c, o, "purge status", true, status);
}

struct lapse_report *lapse_purges_list(const struct lapse_contract *c, const struct lapse_options *o)
{
    return command(c, o, "purge list", true, list);
}

struct lapse_report *lapse_purges_due(const struct lapse_contract *c, const struct lapse_options *o)
{
    return command(c, o, "purge due", false, due);
}
