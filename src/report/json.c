/* json: a report for machines: one JSON object on one line. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"

/* What a database or a file says need not be UTF-8: bytes that are not become U+FFFD. */
static json_t *text_json(const char *s)
{
    if (!s)
        return json_null();
    AUTO(text_release) struct text clean = {0};
    while (*s) {
        size_t n = report_utf8(s);
        if (n)
            text_add_n(&clean, s, n);
        else
            text_add(&clean, "\xEF\xBF\xBD");
        s += n ? n : 1;
    }
    return json_string(text_str(&clean));
}

void put_string(json_t *to, const char *key, const char *s)
{
    json_object_set_new(to, key, text_json(s));
}

void put_integer(json_t *to, const char *key, int64_t n)
{
    json_object_set_new(to, key, json_integer(n));
}

json_t *instant_json(instant at)
{
    char buf[WHEN_TEXT_SIZE];
    return json_string(when_format(at, buf));
}

static void put_place(json_t *to, const struct report *r, struct place at)
{
    AUTO(text_release) struct text where = {0};
    report_place(r, at, &where);
    put_string(to, "at", text_str(&where));
}

static json_t *tables_json(const char **names, const int64_t *rows, const bool *split, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *entry = json_object();
        put_string(entry, "table", names[i]);
        put_integer(entry, "rows", rows[i]);
        if (split && split[i])
            json_object_set_new(entry, "split", json_true());
        json_array_append_new(list, entry);
    }
    return list;
}

/* Only of policies that ask for it. */
static void put_partitions(json_t *to, const struct report_policy *p)
{
    if (!p->policy->partitions.drop)
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_partitions; i++) {
        json_t *entry = json_object();
        put_string(entry, "table", p->partitions[i].name);
        put_integer(entry, "rows", p->partitions[i].rows);
        json_object_set_new(entry, "dropped", json_boolean(!p->partitions[i].why));
        if (p->partitions[i].why)
            put_string(entry, "why", p->partitions[i].why);
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "partitions", list);
    if (p->drops_not)
        put_string(to, "partitions_why", p->drops_not);
}

/* What plan and sweep say of a policy alike. */
static json_t *policy_json(const struct report_policy *p, const char *outcome)
{
    json_t *entry = json_object();
    put_string(entry, "policy", p->policy->name);
    put_string(entry, "label", p->policy->label);
    put_string(entry, "table", p->table);
    put_string(entry, "outcome", outcome);
    if (p->error)
        put_string(entry, "error", p->error);
    put_integer(entry, "rows", report_rows(p));
    json_object_set_new(entry, "tables", tables_json(p->tables, p->gone, p->split, p->n_tables));
    json_object_set_new(entry, "detached",
                        tables_json(p->detach_tables, p->detached, NULL, p->n_detach_tables));
    put_partitions(entry, p);
    return entry;
}

static json_t *skipped_json(const struct report_policy *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_skipped; i++) {
        json_t *entry = json_object();
        put_string(entry, "key", p->skipped[i].key);
        put_string(entry, "reason", p->skipped[i].reason);
        put_string(entry, "error", p->skipped[i].error);
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *holder_json(const struct report_policy *p)
{
    json_t *entry = json_object();
    put_string(entry, "scheduler", p->policy->scheduler);
    put_string(entry, "owner", p->holder->owner);
    json_object_set_new(entry, "until", p->holder->ends ? instant_json(p->holder->until) : json_null());
    return entry;
}

/* What held it back last, and how long it waited for what. */
static json_t *pace_json(const struct report_policy *p)
{
    json_t *entry = json_object(), *waited = json_object();
    for (int r = 0; r < N_PACE_REASONS; r++)
        if (p->pace.waited_us[r])
            json_object_set_new(waited, pace_reason_name((enum pace_reason)r),
                                json_real((double)p->pace.waited_us[r] / 1000));
    put_string(entry, "reason", pace_reason_name(p->pace.reason));
    put_integer(entry, "rows", p->pace.rows);
    json_object_set_new(entry, "waited_ms", waited);
    return entry;
}

static json_t *swept_json(const struct report_policy *p)
{
    json_t *entry = policy_json(p, outcome_name(p->kind));
    json_object_set_new(entry, "skipped", skipped_json(p));
    put_integer(entry, "left", p->left);
    json_object_set_new(entry, "came_again", json_boolean(p->left && p->came_again));
    put_integer(entry, "unknown", p->unknown);
    put_integer(entry, "batches", p->batches);
    put_integer(entry, "retries", p->retries);
    json_object_set_new(entry, "duration_ms", json_real((double)p->duration_us / 1000));
    json_object_set_new(entry, "deleting_ms", json_real((double)p->deleting_us / 1000));
    json_object_set_new(entry, "pace", pace_json(p));
    if (p->holder)
        json_object_set_new(entry, "held_by", holder_json(p));
    return entry;
}

static json_t *cutoff_json(const struct cutoff *c)
{
    return c->never ? json_null() : instant_json(c->at);
}

static void put_cutoffs(json_t *to, const struct report_policy *p)
{
    bool one = p->n_cutoffs == 1 && !p->cutoff_per_row;
    json_object_set_new(to, "cutoff", one ? cutoff_json(&p->cutoffs[0]) : json_null());
    if (p->n_cutoffs < 2)
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_cutoffs; i++) {
        json_t *entry = json_object();
        put_string(entry, "value", p->cutoffs[i].value);
        json_object_set_new(entry, "at", cutoff_json(&p->cutoffs[i]));
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "cutoffs", list);
}

static void put_walk(json_t *to, const struct report_policy *p)
{
    static const char *const names[] = {
        [WALK_INDEX] = "index", [WALK_KEY] = "key", [WALK_PLACE] = "place", [WALK_PIECES] = "partition"};
    if (!p->walk_why)
        return;
    json_t *entry = json_object();
    put_string(entry, "by", names[p->walk]);
    put_string(entry, "text", p->walk_why);
    json_object_set_new(to, "found", entry);
}

/* Statements are paragraphs: a blank line stands between two. */
static json_t *statements_json(const char *sql)
{
    json_t *list = json_array();
    while (*sql) {
        const char *gap = strstr(sql, "\n\n");
        size_t len = gap ? (size_t)(gap - sql) : strlen(sql);
        const char *next = sql + len + strspn(sql + len, "\n");
        while (len > 0 && sql[len - 1] == '\n')
            len--;
        AUTO(text_release) struct text one = {0};
        text_add_n(&one, sql, len);
        if (len > 0)
            json_array_append_new(list, text_json(text_str(&one)));
        sql = next;
    }
    return list;
}

static json_t *fuse_json(const struct report_policy *p)
{
    const struct fuse *f = p->fuse;
    json_t *entry = json_object();
    put_string(entry, "state", fuse_verdict_name(f->verdict));
    put_integer(entry, "limit", f->most);
    if (f->stored.there) {
        json_object_set_new(entry, "tripped_at", instant_json(f->stored.tripped_at));
        put_integer(entry, "tripped_rows", f->stored.rows);
    }
    if (f->verdict != FUSE_HOLDS)
        put_string(entry, "text", p->fuse_words);
    return entry;
}

static json_t *brake_json(const struct report_policy *p)
{
    json_t *entry = json_object();
    put_string(entry, "by", p->brake->name);
    json_object_set_new(entry, "since", instant_json(p->brake->since));
    json_object_set_new(entry, "until", p->brake->ends ? instant_json(p->brake->until) : json_null());
    return entry;
}

static void forget_rows(json_t *tables, size_t from, size_t n)
{
    for (size_t i = from; i < n; i++)
        json_object_set_new(json_array_get(tables, i), "rows", json_null());
}

/* What is not known is null. */
static void put_unknown(json_t *to, const struct report_policy *p)
{
    size_t below = p->n_tables ? p->n_tables - 1 : 0;
    if (report_uncounted(p)) {
        json_object_set_new(to, "rows", json_null());
        put_integer(to, "rows_at_least", p->least);
        forget_rows(json_object_get(to, "tables"), below, p->n_tables);
    }
    if (report_uncounted(p) || p->below_unknown) {
        forget_rows(json_object_get(to, "tables"), 0, below);
        forget_rows(json_object_get(to, "detached"), 0, p->n_detach_tables);
    }
    if (!p->n_indexes)
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_indexes; i++) {
        json_t *entry = json_object();
        put_string(entry, "what", p->indexes[i].what);
        put_string(entry, "fix", p->indexes[i].fix ? p->indexes[i].fix : "");
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "indexes", list);
}

static const char *planned_name(const struct report_policy *p)
{
    return p->kind == OUTCOME_DONE ? "planned" : p->timed_out ? "not_counted" : outcome_name(p->kind);
}

static void put_kept(json_t *to, const struct report_policy *p)
{
    const struct {
        const char *key;
        int64_t rows;
    } kept[] = {{"null_time", p->null_time},
                {"unreadable_time", p->unreadable_time},
                {"held", p->held},
                {"waiting", p->waiting}};
    json_t *entry = json_object();
    bool known = !p->kept_unknown && !report_uncounted(p);
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        json_object_set_new(entry, kept[i].key, known ? json_integer(kept[i].rows) : json_null());
    json_object_set_new(to, "kept", entry);
    json_object_set_new(to, "more_become_free", json_boolean(p->frees));
    if (p->circles)
        json_object_set_new(to, "circles_stay", json_true());
}

static json_t *planned_json(const struct report_policy *p)
{
    json_t *entry = policy_json(p, planned_name(p));
    put_unknown(entry, p);
    put_cutoffs(entry, p);
    put_walk(entry, p);
    json_object_set_new(entry, "oldest", p->has_range ? instant_json(p->oldest) : json_null());
    json_object_set_new(entry, "newest", p->has_range ? instant_json(p->newest) : json_null());
    put_kept(entry, p);
    if (p->fuse)
        json_object_set_new(entry, "fuse", fuse_json(p));
    if (p->brake)
        json_object_set_new(entry, "paused", brake_json(p));
    if (p->sql)
        json_object_set_new(entry, "sql", statements_json(p->sql));
    return entry;
}

static void put_remarks(json_t *to, const struct report *r)
{
    json_t *remarks = json_array();
    for (size_t i = 0; i < r->n_remarks; i++)
        json_array_append_new(remarks, text_json(r->remarks[i]));
    json_object_set_new(to, "remarks", remarks);
}

/* Rows of all tables, those that several policies would take once. */
static void put_total(json_t *to, const struct report *r)
{
    json_t *entry = json_object();
    bool exact = !r->at_most && !r->not_all;
    json_object_set_new(entry, "rows", exact ? json_integer(r->most) : json_null());
    put_integer(entry, "at_least", r->least);
    json_object_set_new(entry, "at_most", r->not_all ? json_null() : json_integer(r->most));
    json_object_set_new(to, "total", entry);
}

static void put_policies(json_t *to, const struct report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_policies; i++)
        json_array_append_new(
            list, r->kind == REPORT_PLAN ? planned_json(&r->policies[i]) : swept_json(&r->policies[i]));
    json_object_set_new(to, "policies", list);
    if (r->kind == REPORT_PLAN)
        put_total(to, r);
    put_remarks(to, r);
}

static bool is_whole(const char *s)
{
    s += *s == '-';
    return *s && strspn(s, "0123456789") == strlen(s);
}

/* An engine may give numbers as texts: they get their column's type back. */
static json_t *value_json(const struct explain_value *v)
{
    AUTO(text_release) struct text t = {0};
    bool text = v->value.kind == VALUE_TEXT;
    if (v->value.kind == VALUE_NULL)
        return json_null();
    value_print(&v->value, &t);
    if (v->type == TYPE_BOOLEAN && (text || v->value.kind == VALUE_INTEGER))
        return json_boolean(text ? v->value.text[0] == 't' : v->value.integer != 0);
    errno = 0;
    int64_t whole = strtoll(text_str(&t), NULL, 10);
    bool fits = errno == 0; /* beyond, it stays a text: no number here would be exact */
    if (v->value.kind == VALUE_INTEGER || (text && v->type == TYPE_INTEGER && fits && is_whole(text_str(&t))))
        return json_integer(whole);
    if (v->value.kind == VALUE_REAL)
        return json_real(v->value.real);
    return text_json(text_str(&t));
}

static json_t *reason_json(const struct explain_line *l)
{
    json_t *entry = json_object();
    put_string(entry, "part", l->part);
    put_string(entry, "text", l->reason);
    return entry;
}

static json_t *waits_json(const struct explain_line *l)
{
    json_t *entry = json_object(), *keys = json_array();
    put_string(entry, "table", l->of_table);
    put_integer(entry, "rows", l->total);
    for (size_t i = 0; i < l->n_keys; i++)
        json_array_append_new(keys, text_json(l->keys[i]));
    json_object_set_new(entry, "keys", keys);
    return entry;
}

static json_t *line_json(const struct explain_line *l)
{
    static const char *const verdicts[] = {
        [VERDICT_FALSE] = "does not match", [VERDICT_TRUE] = "matches", [VERDICT_UNKNOWN] = "unknown"};
    json_t *entry = json_object();
    put_string(entry, "part", l->part);
    put_integer(entry, "depth", l->depth);
    put_string(entry, "demand", l->demand);
    if (l->has_value) {
        put_string(entry, "column", l->value.column);
        json_object_set_new(entry, "value", value_json(&l->value));
    }
    if (l->has_at)
        json_object_set_new(entry, "instant", instant_json(l->at));
    if (l->counts)
        json_object_set_new(entry, "waits_for", waits_json(l));
    if (l->ranks) {
        json_object_set_new(entry, "rank", l->rank ? json_integer(l->rank) : json_null());
        put_integer(entry, "of", l->ranked);
    }
    put_string(entry, "verdict", l->judged ? verdicts[l->verdict] : NULL);
    put_string(entry, "said", l->said);
    json_object_set_new(entry, "keeps", json_boolean(l->reason != NULL));
    if (l->reason && l->later)
        json_object_set_new(entry, "due_at", instant_json(l->due_at));
    return entry;
}

static void put_explanation(json_t *to, const struct report *r)
{
    const struct explanation *x = r->explanation;
    json_t *key = json_object(), *lines = json_array(), *reasons = json_array();
    for (size_t i = 0; i < x->n_key; i++)
        json_object_set_new(key, x->key[i].column, value_json(&x->key[i]));
    for (size_t i = 0; i < x->n_lines; i++) {
        json_array_append_new(lines, line_json(&x->lines[i]));
        if (x->lines[i].reason)
            json_array_append_new(reasons, reason_json(&x->lines[i]));
    }
    put_string(to, "table", x->table);
    json_object_set_new(to, "key", key);
    put_string(to, "verdict", due_kind_name(x->kind));
    json_object_set_new(to, "due", json_boolean(x->kind == DUE_NOW));
    json_object_set_new(to, "due_at", x->kind == DUE_LATER ? instant_json(x->due_at) : json_null());
    json_object_set_new(to, "reasons", reasons);
    json_object_set_new(to, "conditions", lines);
    json_object_set_new(to, "tables", tables_json(x->tables, x->gone, NULL, x->n_tables));
    json_object_set_new(to, "detached", tables_json(x->detach_tables, x->detached, NULL, x->n_detach_tables));
}

static void put_explained(json_t *to, const struct report *r)
{
    const struct report_policy *p = r->n_policies ? &r->policies[0] : NULL;
    if (!p)
        return;
    put_string(to, "policy", p->policy->name);
    json_object_set_new(to, "enabled", json_boolean(p->policy->enabled));
    put_string(to, "outcome", r->explanation ? "explained" : outcome_name(p->kind));
    if (r->explanation)
        put_explanation(to, r);
    else if (p->error && !r->error)
        put_string(to, "error", p->error);
    put_remarks(to, r);
}

static void put_findings(json_t *to, const struct report *r)
{
    static const char *const names[] = {"error", "warning", "note"};
    size_t count[COUNT_OF(names)];
    report_levels(&r->findings, count);
    put_integer(to, "errors", (int64_t)count[FINDING_ERROR]);
    put_integer(to, "warnings", (int64_t)count[FINDING_WARNING]);
    put_integer(to, "notes", (int64_t)count[FINDING_NOTE]);
    json_t *list = json_array();
    for (size_t i = 0; i < r->findings.n; i++) {
        const struct finding *f = &r->findings.list[i];
        json_t *entry = json_object();
        put_string(entry, "level", names[f->level]);
        put_string(entry, "policy", f->policy);
        put_place(entry, r, f->at);
        put_string(entry, "what", f->what);
        put_string(entry, "fix", f->fix ? f->fix : "");
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "findings", list);
}

static json_t *texts_json(const char **texts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, text_json(texts[i]));
    return list;
}

static void put_draft(json_t *to, const struct report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_drafted; i++) {
        const struct report_drafted *d = &r->drafted[i];
        json_t *entry = json_object();
        put_string(entry, "table", d->table);
        put_string(entry, "found", d->found);
        put_string(entry, "policy", d->policy);
        json_object_set_new(entry, "certain", json_boolean(d->certain));
        json_object_set_new(entry, "why", texts_json(d->why, d->n_why));
        json_object_set_new(entry, "decide", texts_json(d->decide, d->n_decide));
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "tables", list);
    put_string(to, "draft", r->draft);
}

static void put_mistakes(json_t *to, const struct report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_mistakes; i++) {
        const struct mistake *m = &r->mistakes[i];
        json_t *entry = json_object();
        put_place(entry, r, m->at);
        put_integer(entry, "line", m->at.line);
        put_integer(entry, "column", m->at.column);
        put_string(entry, "text", m->text);
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "mistakes", list);
}

static json_t *fact_json(const struct report_fact *f);

static json_t *rows_json(const struct report_fact *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->n; i++) {
        json_t *row = json_object();
        for (size_t k = 0; k < f->rows[i].n; k++)
            json_object_set_new(row, f->rows[i].facts[k].key, fact_json(&f->rows[i].facts[k]));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *fact_json(const struct report_fact *f)
{
    if (f->null)
        return json_null();
    switch (f->kind) {
    case FACT_TEXT:
        return text_json(f->text);
    case FACT_NUMBER:
        return json_integer(f->number);
    case FACT_TIME:
        return instant_json(f->number);
    case FACT_FLAG:
        return json_boolean(f->number);
    case FACT_ROWS:
        return rows_json(f);
    case FACT_TEXTS:
        break;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, text_json(f->texts[i]));
    return list;
}

void report_json(const struct report *r, FILE *out)
{
    json_t *whole = json_object();
    put_string(whole, "command", r->command);
    if (r->kind == REPORT_PLAN || r->kind == REPORT_SWEEP || r->kind == REPORT_EXPLAIN ||
        r->kind == REPORT_STATUS || r->kind == REPORT_HISTORY)
        json_object_set_new(whole, "now", instant_json(r->now));
    put_integer(whole, "exit", r->exit);
    if (r->error)
        put_string(whole, "error", r->error);
    if (r->kind == REPORT_MISTAKES)
        put_mistakes(whole, r);
    else if (r->kind == REPORT_CHECK)
        put_findings(whole, r);
    else if (r->kind == REPORT_DRAFT)
        put_draft(whole, r);
    else if (r->kind == REPORT_PLAN || r->kind == REPORT_SWEEP)
        put_policies(whole, r);
    else if (r->kind == REPORT_EXPLAIN)
        put_explained(whole, r);
    else if (r->kind == REPORT_STATUS)
        put_status(whole, r);
    else if (r->kind == REPORT_HISTORY)
        put_history(whole, r);
    if (r->kind == REPORT_STATUS || r->kind == REPORT_HISTORY)
        put_remarks(whole, r);
    for (size_t i = 0; i < r->n_facts; i++)
        json_object_set_new(whole, r->facts[i].key, fact_json(&r->facts[i]));
    AUTO(mem_free_p) char *text = json_dumps(whole, JSON_REAL_PRECISION(15)); /* not piece by piece */
    fputs(text ? text : "", out);
    fputc('\n', out);
    json_decref(whole);
}
