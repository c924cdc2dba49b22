/* status_json: how the schedulers stand and what past runs did, for machines. Part of report. */
#include <jansson.h>

#include "report/json.h"
#include "report/status.h"

void put_time(json_t *to, const char *key, bool there, instant at)
{
    json_object_set_new(to, key, there ? instant_json(at) : json_null());
}

json_t *run_json(const struct run_row *r)
{
    if (!r)
        return json_null();
    json_t *o = json_object(), *counts = r->counts ? json_loads(r->counts, 0, NULL) : NULL;
    put_string(o, "id", r->id);
    put_string(o, "scheduler", r->scheduler);
    put_string(o, "source", r->source);
    put_string(o, "owner", r->owner);
    put_time(o, "started", true, r->started);
    put_time(o, "ended", r->ended, r->ended_at);
    put_string(o, "outcome", r->outcome);
    put_integer(o, "rows", r->rows);
    put_integer(o, "skipped", r->skipped);
    put_integer(o, "unknown", r->unknown);
    put_integer(o, "batches", r->batches);
    put_integer(o, "errors", r->errors);
    put_string(o, "error", r->error);
    json_object_set_new(o, "counts", counts ? counts : json_object()); /* by hand it may be anything */
    json_t *policies = r->policies ? json_loads(r->policies, 0, NULL) : NULL;
    put_string(o, "contract", r->contract);
    put_time(o, "cutoff", r->has_cutoff, r->cutoff);
    json_object_set_new(o, "policies", policies ? policies : json_array());
    return o;
}

void put_history(json_t *to, const struct report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; r->runs && i < r->runs->n; i++)
        json_array_append_new(list, run_json(&r->runs->list[i]));
    json_object_set_new(to, "runs", list);
}

static json_t *lease_json(const struct status_scheduler *s)
{
    const struct lease_row *l = s->lease;
    if (!l || !l->owner[0])
        return json_null();
    json_t *o = json_object();
    put_string(o, "owner", l->owner);
    put_time(o, "until", l->ends, l->until);
    json_object_set_new(o, "expired", json_boolean(s->lease_expired));
    return o;
}

static void put_deed(json_t *to, const struct deed *by)
{
    put_string(to, "who", by->who[0] ? by->who : NULL);
    put_string(to, "reason", by->reason[0] ? by->reason : NULL);
}

static json_t *brakes_json(const struct status_scheduler *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_brakes; i++) {
        json_t *o = json_object();
        put_string(o, "name", s->brakes[i].name[0] ? s->brakes[i].name : NULL);
        put_time(o, "since", true, s->brakes[i].since);
        put_time(o, "until", s->brakes[i].ends, s->brakes[i].until);
        put_deed(o, &s->brakes[i].by);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *released_json(const struct status_scheduler *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_released; i++) {
        json_t *o = json_object();
        put_string(o, "name", s->released[i].name[0] ? s->released[i].name : NULL);
        put_time(o, "at", true, s->released[i].since);
        put_deed(o, &s->released[i].by);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *acks_json(const struct status_scheduler *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_acks; i++) {
        json_t *o = json_object();
        put_string(o, "policy", s->acks[i].policy);
        put_time(o, "at", true, s->acks[i].row.acked_at);
        json_object_set_new(o, "used", json_boolean(s->acks[i].row.used));
        put_deed(o, &s->acks[i].row.by);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *fuses_json(const struct status_scheduler *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_fuses; i++) {
        json_t *o = json_object();
        put_string(o, "policy", s->fuses[i].policy);
        put_integer(o, "rows", s->fuses[i].row.rows);
        put_integer(o, "limit", s->fuses[i].row.most);
        put_time(o, "tripped", true, s->fuses[i].row.tripped_at);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *total_json(const struct run_total *t)
{
    json_t *o = json_object();
    put_integer(o, "runs", t->runs);
    put_integer(o, "rows", t->rows);
    put_integer(o, "skipped", t->skipped);
    put_integer(o, "unknown", t->unknown);
    put_integer(o, "errors", t->errors);
    put_time(o, "since", t->runs > 0, t->since);
    put_string(o, "last_error", t->error);
    put_time(o, "last_error_at", t->error != NULL, t->error_at);
    return o;
}

static json_t *scheduler_json(const struct status_scheduler *s)
{
    json_t *o = json_object(), *recent = json_array();
    put_string(o, "scheduler", s->scheduler->name);
    put_string(o, "ticks", s->ticks);
    json_object_set_new(o, "built_in", json_boolean(s->built_in));
    json_object_set_new(o, "enabled", json_boolean(s->scheduler->enabled));
    json_object_set_new(o, "exclusive", json_boolean(s->scheduler->exclusive));
    put_integer(o, "policies", (int64_t)s->n_policies);
    json_object_set_new(o, "lease", lease_json(s));
    json_object_set_new(o, "last", run_json(s->last));
    json_object_set_new(o, "last_by_daemon", run_json(s->daemon));
    json_object_set_new(o, "running", json_boolean(s->last && !s->last->ended));
    put_time(o, "next", s->next != NEVER, s->next);
    json_object_set_new(o, "late_seconds", json_real((double)s->late_us / (double)US_PER_S));
    json_object_set_new(o, "brakes", brakes_json(s));
    json_object_set_new(o, "released", released_json(s));
    json_object_set_new(o, "fuses", fuses_json(s));
    json_object_set_new(o, "acks", acks_json(s));
    json_object_set_new(o, "total", total_json(&s->total));
    for (size_t i = 0; i < s->n_recent; i++)
        json_array_append_new(recent, json_integer(s->recent[i]));
    json_object_set_new(o, "recent_rows", recent);
    return o;
}

void put_status(json_t *to, const struct report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; r->status && i < r->status->n; i++)
        json_array_append_new(list, scheduler_json(&r->status->list[i]));
    json_object_set_new(to, "schedulers", list);
}
