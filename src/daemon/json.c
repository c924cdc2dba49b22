/* json: what a daemon knows, for machines: its schedulers, its policies, past runs. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/internal.h"
#include "report/json.h"

#define ASK_MOST_US (2 * US_PER_S) /* so long does a question wait for another */

static void set_seconds(json_t *o, const char *key, int64_t us)
{
    json_object_set_new(o, key, json_real((double)us / (double)US_PER_S));
}

static void set_flag(json_t *o, const char *key, bool flag)
{
    json_object_set_new(o, key, json_boolean(flag));
}

static char *dump(json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}

/* --- schedulers ------------------------------------------------------------------------------------------
 */

static json_t *last_json(const struct last_tick *l)
{
    if (!l->there)
        return json_null();
    json_t *o = json_object();
    put_time(o, "started", true, l->started);
    set_seconds(o, "duration", l->duration_us);
    put_string(o, "outcome", l->outcome);
    put_integer(o, "rows", l->rows);
    return o;
}

static void set_rhythm(json_t *o, const struct scheduler *s)
{
    AUTO(text_release) struct text every = {0};
    if (s->cron) {
        put_string(o, "cron", s->cron);
    } else {
        span_format(s->every.us, &every);
        put_string(o, "every", text_str(&every));
    }
    put_string(o, "timezone", s->timezone);
    set_flag(o, "exclusive", s->exclusive);
    set_flag(o, "enabled", s->enabled);
}

static json_t *worker_json(const struct worker *w, instant now)
{
    json_t *o = json_object();
    put_string(o, "name", w->name);
    set_rhythm(o, w->scheduler);
    set_flag(o, "lease_held", w->leads);
    set_flag(o, "working", w->beat.working);
    json_object_set_new(o, "last", last_json(&w->last));
    put_time(o, "next", w->begun && !w->beat.working && w->beat.start != NEVER, w->beat.start);
    set_seconds(o, "late_seconds", w->begun ? beat_late_us(&w->beat, now) : 0);
    put_integer(o, "errors", w->errors);
    put_string(o, "error", w->error);
    put_time(o, "error_since", w->error != NULL, w->error_since);
    return o;
}

static json_t *workers_json(struct lapse_daemon *d)
{
    json_t *list = json_array();
    instant now = when_now();
    for (size_t i = 0; i < d->n_workers; i++)
        if (!d->workers[i]->leave && d->workers[i]->scheduler)
            json_array_append_new(list, worker_json(d->workers[i], now));
    return list;
}

char *lapse_daemon_status(struct lapse_daemon *d)
{
    json_t *o = json_object();
    char *why = NULL;
    put_string(o, "version", LAPSE_VERSION);
    set_flag(o, "ready", lapse_daemon_ready(d, &why));
    put_string(o, "not_ready", why);
    free(why);
    pthread_mutex_lock(&d->lock);
    put_time(o, "started", true, d->started);
    put_string(o, "contract", d->file);
    put_time(o, "loaded_at", true, d->loaded_at);
    put_integer(o, "generation", (int64_t)d->generation);
    set_flag(o, "observe", d->options.observe);
    json_object_set_new(o, "schedulers", workers_json(d));
    pthread_mutex_unlock(&d->lock);
    return dump(o);
}

/* --- policies --------------------------------------------------------------------------------------------
 */

static const char *bound_name(const struct policy *p)
{
    return p->cap ? "cap" : p->orphan ? "orphan" : p->expires.text ? "expires" : "age";
}

static json_t *policy_json(const struct policy *p, const struct policy_state *s)
{
    json_t *o = json_object();
    AUTO(text_release) struct text table = {0};
    table_name_print(&p->table, &table);
    put_string(o, "name", p->name);
    put_string(o, "scheduler", p->scheduler);
    put_string(o, "table", text_str(&table));
    put_string(o, "label", p->label);
    put_string(o, "bound", bound_name(p));
    set_flag(o, "enabled", p->enabled);
    put_string(o, "outcome", s->ran ? outcome_name(s->outcome) : NULL);
    put_time(o, "at", s->ran, s->at);
    put_integer(o, "rows", s->rows);
    put_integer(o, "rows_total", s->rows_total);
    if (s->ran && s->due >= 0)
        put_integer(o, "due", s->due);
    put_string(o, "error", s->error);
    if (s->pace.reason) {
        json_t *pace = json_object();
        put_string(pace, "reason", pace_reason_name(s->pace.reason));
        put_string(pace, "text", s->pace.words);
        put_integer(pace, "rows", s->pace.rows);
        put_integer(pace, "waiting_ms", s->pace.waiting_us / US_PER_MS);
        json_object_set_new(o, "pace", pace);
    }
    return o;
}

char *lapse_daemon_policies(struct lapse_daemon *d)
{
    json_t *list = json_array();
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < terms_policies(d->terms); i++)
        json_array_append_new(list, policy_json(terms_policy(d->terms, i), &d->states[i]));
    pthread_mutex_unlock(&d->lock);
    return dump(list);
}

/* --- past runs -------------------------------------------------------------------------------------------
 */

static int read_runs(const struct contract *c, const char *scheduler, int64_t most, struct run_rows *ret,
                     struct err *e)
{
    AUTO(store_close_p) struct store *s = NULL;
    const char *fix;
    if (store_open(c->store, true, &s, e) < 0)
        return -1;
    s->own_schema = c->own_schema;
    s->own_owner = c->own_owner;
    if (s->ops->own->look(s, e) < 0)
        return -1;
    const char *why = history_obstacle(s, &fix);
    if (s->own.version < OWN_SINCE_RUNS)
        return err_set(e, ERR_FINDINGS, "%s (%s)", why, fix);
    return s->ops->own->runs(s, scheduler, most, ret, e);
}

static char *ask_runs(struct terms *t, const char *scheduler, int64_t most, char **ret_why)
{
    AUTO(run_rows_release) struct run_rows runs = {0};
    struct err e = ERR_INIT;
    if (read_runs(t->contract, scheduler, most, &runs, &e) < 0) {
        *ret_why = mem_strdup(e.text);
        return NULL;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < runs.n; i++)
        json_array_append_new(list, run_json(&runs.list[i]));
    return dump(list);
}

/* Whether it is this caller's turn. */
static bool take_turn(struct lapse_daemon *d)
{
    int64_t until = when_monotonic_us() + ASK_MOST_US;
    pthread_mutex_lock(&d->lock);
    while (d->asking && when_monotonic_us() < until)
        daemon_cond_wait(&d->answered, &d->lock, until - when_monotonic_us());
    bool mine = !d->asking;
    d->asking = d->asking || mine;
    pthread_mutex_unlock(&d->lock);
    return mine;
}

char *lapse_daemon_runs(struct lapse_daemon *d, const char *scheduler, int64_t most, char **ret_why)
{
    if (!take_turn(d)) {
        *ret_why = mem_strdup("another question to the history has not been answered yet; try again");
        return NULL;
    }
    pthread_mutex_lock(&d->lock);
    struct terms *t = terms_take(d->terms);
    pthread_mutex_unlock(&d->lock);
    char *runs = ask_runs(t, scheduler, most, ret_why);
    terms_drop(t);
    pthread_mutex_lock(&d->lock);
    d->asking = false;
    pthread_cond_signal(&d->answered);
    pthread_mutex_unlock(&d->lock);
    return runs;
}
