/* json: the page's facts as data: what the contract says, and the sentences that follow from it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "page/internal.h"

static json_t *text_json(const struct page *p, const char *s)
{
    return s ? json_string(words_clean(p->arena, s)) : json_null();
}

static void put_text(const struct page *p, json_t *to, const char *key, const char *s)
{
    json_object_set_new(to, key, text_json(p, s));
}

static void put_bool(json_t *to, const char *key, bool yes)
{
    json_object_set_new(to, key, json_boolean(yes));
}

/* -1 is "not set" throughout */
static void put_count(json_t *to, const char *key, int64_t n)
{
    json_object_set_new(to, key, n < 0 ? json_null() : json_integer(n));
}

static json_t *span_json(const struct span *s)
{
    if (s->kind == SPAN_NEVER)
        return json_null();
    return s->us % US_PER_MS ? json_real((double)s->us / (double)US_PER_MS) : json_integer(s->us / US_PER_MS);
}

static void put_span(json_t *to, const char *key, const struct span *s)
{
    json_object_set_new(to, key, span_json(s));
}

/* A line without its marks. */
static json_t *line_json(const char *line)
{
    AUTO(text_release) struct text t = {0};
    struct piece piece;
    while (piece_next(&line, &piece))
        text_add_n(&t, piece.text, piece.len);
    return json_string(text_str(&t));
}

static void put_lines(json_t *to, const char *key, const struct page_cell *cell)
{
    json_t *list = json_array();
    for (size_t i = 0; i < cell->n; i++)
        json_array_append_new(list, line_json(cell->lines[i]));
    json_object_set_new(to, key, list);
}

static void put_texts(const struct page *p, json_t *to, const char *key, const char *const *texts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, text_json(p, texts[i]));
    json_object_set_new(to, key, list);
}

static void put_names(const struct page *p, json_t *to, const char *key, const struct name *names, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, text_json(p, names[i].text));
    json_object_set_new(to, key, list);
}

static json_t *ref_json(const struct page *p, const struct ref *r)
{
    AUTO(text_release) struct text t = {0};
    ref_print(r, &t);
    return text_json(p, text_str(&t));
}

static void put_table(const struct page *p, json_t *to, const struct table_name *table)
{
    AUTO(text_release) struct text t = {0};
    table_name_print(table, &t);
    put_text(p, to, "table", text_str(&t));
}

/* --- policies ------------------------------------------------------------------------------------ */

static void put_keep(const struct page *p, json_t *to, const struct policy *policy)
{
    const struct keep *k = &policy->keep;
    put_names(p, to, "age", policy->age, policy->n_age);
    put_bool(to, "inclusive", policy->inclusive);
    if (k->kind == KEEP_SPAN) {
        put_span(to, "keep_ms", &k->span);
        return;
    }
    json_t *keep = json_object();
    put_text(p, keep, k->kind == KEEP_BY ? "by" : "column", k->column.text);
    if (k->kind == KEEP_BY) {
        json_t *values = json_array();
        for (size_t i = 0; i < k->n_values; i++) {
            json_t *entry = json_object();
            put_text(p, entry, "value", k->values[i].value.null ? NULL : k->values[i].value.text);
            put_span(entry, "keep_ms", &k->values[i].span);
            json_array_append_new(values, entry);
        }
        json_object_set_new(keep, "values", values);
        put_span(keep, "otherwise_ms", &k->span);
    }
    json_object_set_new(to, "keep", keep);
}

static json_t *newest_json(const struct page *p, const struct newest *n)
{
    json_t *o = json_object();
    put_count(o, "rows", n->rows);
    put_names(p, o, "per", n->per, n->n_per);
    put_names(p, o, "newest", n->newest, n->n_newest);
    return o;
}

static json_t *orphan_json(const struct page *p, const struct orphan *o)
{
    static const char *const when[] = {"deleted", "deleted_or_unmatched", "never"};
    json_t *j = json_object();
    json_object_set_new(j, "of", ref_json(p, &o->of));
    put_names(p, j, "by", o->by, o->n_by);
    json_object_set_new(j, "matching",
                        o->matching ? line_json(words_cond(p->arena, o->matching)) : json_null());
    put_text(p, j, "delete_when", when[o->when]);
    put_bool(j, "allow_empty", o->allow_empty);
    return j;
}

static void put_bound(const struct page *p, json_t *to, const struct policy *policy)
{
    put_text(p, to, "bound",
             policy->expires.text ? "expires"
             : policy->orphan     ? "orphan"
             : policy->cap        ? "cap"
                                  : "age");
    if (policy->expires.text)
        put_text(p, to, "expires", policy->expires.text);
    if (policy->orphan)
        json_object_set_new(to, "orphan", orphan_json(p, policy->orphan));
    if (policy->cap)
        json_object_set_new(to, "cap", newest_json(p, policy->cap));
    if (policy->keep.kind != KEEP_NONE)
        put_keep(p, to, policy);
    if (policy->keep_newest)
        json_object_set_new(to, "keep_newest", newest_json(p, policy->keep_newest));
}

static void put_condition(const struct page *p, json_t *to, const char *key, const struct cond *c)
{
    if (c)
        json_object_set_new(to, key, line_json(words_cond(p->arena, c)));
}

static void put_after(const struct page *p, json_t *to, const struct below *b)
{
    json_t *list = json_array();
    for (size_t i = 0; i < b->n_after; i++) {
        json_t *entry = json_object();
        json_object_set_new(entry, "ref", ref_json(p, &b->after[i].ref));
        put_condition(p, entry, "where", b->after[i].where);
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "after", list);
}

static void put_below(const struct page *p, json_t *to, const struct below *b)
{
    json_t *with = json_array(), *detach = json_array();
    for (size_t i = 0; i < b->n_with; i++) {
        struct below deeper = below_with(&b->with[i]);
        json_t *entry = json_object();
        json_object_set_new(entry, "ref", ref_json(p, &b->with[i].ref));
        put_condition(p, entry, "where", b->with[i].where);
        put_bool(entry, "split", b->with[i].split);
        put_below(p, entry, &deeper);
        json_array_append_new(with, entry);
    }
    for (size_t i = 0; i < b->n_detach; i++)
        json_array_append_new(detach, ref_json(p, &b->detach[i]));
    json_object_set_new(to, "with", with);
    json_object_set_new(to, "detach", detach);
    put_after(p, to, b);
}

static void put_limits(json_t *to, const struct limits *l)
{
    if (!l)
        return;
    json_t *limits = json_object();
    put_count(limits, "rows", l->rows);
    json_object_set_new(limits, "fraction", l->fraction < 0 ? json_null() : json_real(l->fraction));
    json_object_set_new(to, "limits", limits);
}

static void put_metrics(const struct page *p, json_t *to, const struct policy *policy)
{
    json_t *metrics = json_array();
    size_t n = 0;
    const char **tables = policy_dependents(p->arena, policy, &n);
    for (size_t i = 0; i <= n && p->contract->listen; i++)
        json_array_append_new(
            metrics, json_string(words_metric(p->arena, "lifecycle_prune_rows_total", "scheduler",
                                              policy->scheduler, "table", i ? tables[i - 1] : policy->label,
                                              "policy", policy->name, NULL)));
    json_object_set_new(to, "metrics", metrics);
    put_text(p, to, "log", arena_printf(p->arena, "%s.lifecycle_pruned", policy->scheduler));
}

static json_t *policy_json(const struct page *p, const struct policy *policy, const struct page_cell *cells)
{
    json_t *o = json_object();
    struct below b = below_policy(policy);
    put_text(p, o, "policy", policy->name);
    put_text(p, o, "label", policy->label);
    put_table(p, o, &policy->table);
    put_text(p, o, "scheduler", policy->scheduler);
    put_bool(o, "enabled", policy->enabled);
    put_condition(p, o, "rows", policy->rows);
    put_condition(p, o, "where", policy->where);
    put_condition(p, o, "hold", policy->hold);
    put_bound(p, o, policy);
    put_below(p, o, &b);
    put_count(o, "batch", policy->batch == BATCH_ALL ? -1 : policy->batch);
    put_limits(o, policy->limits);
    put_text(p, o, "invariant", policy->invariant);
    put_texts(p, o, "also", policy->also, policy->n_also);
    put_metrics(p, o, policy);
    json_t *says = json_object();
    put_lines(says, "bounding_mechanism", &cells[CELL_BOUNDING]);
    put_lines(says, "prune_trigger", &cells[CELL_TRIGGER]);
    put_lines(says, "safety_invariant", &cells[CELL_INVARIANT]);
    put_lines(says, "observability", &cells[CELL_OBSERVABILITY]);
    json_object_set_new(o, "says", says);
    return o;
}

/* --- the rest ------------------------------------------------------------------------------------ */

static json_t *scheduler_json(const struct page *p, const struct scheduler *s)
{
    json_t *o = json_object();
    put_text(p, o, "scheduler", s->name);
    put_bool(o, "enabled", s->enabled);
    put_span(o, "every_ms", &s->every);
    put_text(p, o, "cron", s->cron);
    put_text(p, o, "timezone", s->timezone);
    put_bool(o, "run_on_start", s->run_on_start);
    put_bool(o, "exclusive", s->exclusive);
    if (s->exclusive)
        put_span(o, "lease_ms", &s->lease);
    put_span(o, "jitter_ms", &s->jitter);
    const char *window = arena_printf(p->arena, "%02d:%02d-%02d:%02d", s->window_from / 60,
                                      s->window_from % 60, s->window_to / 60, s->window_to % 60);
    put_text(p, o, "window", s->window_from < 0 ? NULL : window);
    put_count(o, "budget_rows", s->budget_rows);
    put_count(o, "budget_batches", s->budget_batches);
    put_span(o, "budget_time_ms", &s->budget_time);
    return o;
}

static json_t *erases_json(const struct page *p, const struct purge_space *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_erases; i++) {
        json_t *entry = json_object();
        json_object_set_new(entry, "ref", ref_json(p, &s->erases[i].ref));
        put_condition(p, entry, "keep", s->erases[i].keep);
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *purge_json(const struct page *p, const struct purge_space *s, const struct page_cell *cells)
{
    json_t *o = json_object(), *retention = json_object(), *says = json_object();
    put_text(p, o, "space", s->name);
    put_text(p, o, "label", s->label);
    put_span(o, "delay_ms", &s->delay);
    for (size_t i = 0; i < s->n_retention; i++)
        json_object_set_new(retention, words_clean(p->arena, s->retention[i].reason),
                            span_json(&s->retention[i].span));
    json_object_set_new(o, "retention_ms", retention);
    if (s->n_only)
        put_texts(p, o, "only", s->only, s->n_only);
    json_object_set_new(o, "erases", erases_json(p, s));
    put_lines(says, "when", &cells[CELL_WHEN]);
    put_lines(says, "erases", &cells[CELL_ERASES]);
    put_lines(says, "safety_invariant", &cells[CELL_PURGE_INVARIANT]);
    put_lines(says, "observability", &cells[CELL_PURGE_OBSERVABILITY]);
    json_object_set_new(o, "says", says);
    return o;
}

static json_t *unbounded_json(const struct page *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->contract->n_unbounded; i++) {
        json_t *entry = json_object();
        put_text(p, entry, "name", p->contract->unbounded[i].name);
        put_text(p, entry, "why", p->contract->unbounded[i].why);
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *own_json(const struct page *p)
{
    const struct contract *own = p->contract->own;
    json_t *o = json_object(), *schedulers = json_array(), *policies = json_array();
    for (size_t i = 0; own && i < own->n_schedulers; i++)
        json_array_append_new(schedulers, scheduler_json(p, &own->schedulers[i]));
    for (size_t i = 0; own && i < own->n_policies; i++)
        json_array_append_new(policies,
                              policy_json(p, &own->policies[i], &p->own->cells[i * p->own->n_columns]));
    json_object_set_new(o, "schedulers", schedulers);
    json_object_set_new(o, "policies", policies);
    return o;
}

void page_json(const struct page *p, struct text *out)
{
    const struct contract *c = p->contract;
    json_t *whole = json_object(), *schedulers = json_array(), *policies = json_array(),
           *purges = json_array();
    put_text(p, whole, "command", "contract");
    json_object_set_new(whole, "exit", json_integer(0));
    for (size_t i = 0; i < c->n_schedulers; i++)
        json_array_append_new(schedulers, scheduler_json(p, &c->schedulers[i]));
    for (size_t i = 0; i < c->n_policies; i++)
        json_array_append_new(policies,
                              policy_json(p, p->ordered[i], &p->policies->cells[i * p->policies->n_columns]));
    for (size_t i = 0; i < c->n_purges; i++)
        json_array_append_new(purges,
                              purge_json(p, &c->purges[i], &p->purges->cells[i * p->purges->n_columns]));
    json_object_set_new(whole, "schedulers", schedulers);
    json_object_set_new(whole, "policies", policies);
    json_object_set_new(whole, "purges", purges);
    json_object_set_new(whole, "own", own_json(p));
    json_object_set_new(whole, "unbounded", unbounded_json(p));
    put_lines(whole, "failure_handling", &p->failures->list);
    char *text = json_dumps(whole, JSON_REAL_PRECISION(15));
    text_addf(out, "%s\n", text);
    free(text);
    json_decref(whole);
}
