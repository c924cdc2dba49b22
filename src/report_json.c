/* report_json: a report for machines: one JSON object on one line. */
#include <jansson.h>
#include <string.h>

#include "report.h"

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

static void put_text(json_t *to, const char *key, const char *s)
{
    json_object_set_new(to, key, text_json(s));
}

static void put_integer(json_t *to, const char *key, int64_t n)
{
    json_object_set_new(to, key, json_integer(n));
}

static json_t *instant_json(instant at)
{
    char buf[WHEN_TEXT_SIZE];
    return json_string(when_format(at, buf));
}

static void put_place(json_t *to, const struct report *r, struct place at)
{
    AUTO(text_release) struct text where = {0};
    report_place(r, at, &where);
    put_text(to, "at", text_str(&where));
}

static json_t *tables_json(const char **names, const int64_t *rows, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *entry = json_object();
        put_text(entry, "table", names[i]);
        put_integer(entry, "rows", rows[i]);
        json_array_append_new(list, entry);
    }
    return list;
}

/* What plan and sweep say of a policy alike. */
static json_t *policy_json(const struct report_policy *p, const char *outcome)
{
    json_t *entry = json_object();
    put_text(entry, "policy", p->policy->name);
    put_text(entry, "label", p->policy->label);
    put_text(entry, "table", p->table);
    put_text(entry, "outcome", outcome);
    if (p->error)
        put_text(entry, "error", p->error);
    put_integer(entry, "rows", report_rows(p));
    json_object_set_new(entry, "tables", tables_json(p->tables, p->gone, p->n_tables));
    json_object_set_new(entry, "detached", tables_json(p->detach_tables, p->detached, p->n_detach_tables));
    return entry;
}

static json_t *skipped_json(const struct report_policy *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_skipped; i++) {
        json_t *entry = json_object();
        put_text(entry, "key", p->skipped[i].key);
        put_text(entry, "reason", p->skipped[i].reason);
        put_text(entry, "error", p->skipped[i].error);
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *swept_json(const struct report_policy *p)
{
    json_t *entry = policy_json(p, outcome_name(p->kind));
    json_object_set_new(entry, "skipped", skipped_json(p));
    put_integer(entry, "left", p->left);
    put_integer(entry, "unknown", p->unknown);
    put_integer(entry, "batches", p->batches);
    put_integer(entry, "retries", p->retries);
    json_object_set_new(entry, "duration_ms", json_real((double)p->duration_us / 1000));
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
        put_text(entry, "value", p->cutoffs[i].value);
        json_object_set_new(entry, "at", cutoff_json(&p->cutoffs[i]));
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "cutoffs", list);
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
    put_text(entry, "state", fuse_verdict_name(f->verdict));
    put_integer(entry, "limit", f->most);
    if (f->stored.there) {
        json_object_set_new(entry, "tripped_at", instant_json(f->stored.tripped_at));
        put_integer(entry, "tripped_rows", f->stored.rows);
    }
    if (f->verdict != FUSE_HOLDS)
        put_text(entry, "text", p->fuse_words);
    return entry;
}

static json_t *brake_json(const struct report_policy *p)
{
    json_t *entry = json_object();
    put_text(entry, "by", p->brake->name);
    json_object_set_new(entry, "since", instant_json(p->brake->since));
    json_object_set_new(entry, "until", p->brake->ends ? instant_json(p->brake->until) : json_null());
    return entry;
}

static json_t *planned_json(const struct report_policy *p)
{
    json_t *entry = policy_json(p, p->kind == OUTCOME_DONE ? "planned" : outcome_name(p->kind));
    put_cutoffs(entry, p);
    json_object_set_new(entry, "oldest", p->has_range ? instant_json(p->oldest) : json_null());
    json_object_set_new(entry, "newest", p->has_range ? instant_json(p->newest) : json_null());
    json_t *kept = json_object();
    put_integer(kept, "null_time", p->null_time);
    put_integer(kept, "unreadable_time", p->unreadable_time);
    put_integer(kept, "held", p->held);
    put_integer(kept, "waiting", p->waiting);
    json_object_set_new(entry, "kept", kept);
    if (p->fuse)
        json_object_set_new(entry, "fuse", fuse_json(p));
    if (p->brake)
        json_object_set_new(entry, "paused", brake_json(p));
    if (p->sql)
        json_object_set_new(entry, "sql", statements_json(p->sql));
    return entry;
}

static void put_policies(json_t *to, const struct report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_policies; i++)
        json_array_append_new(
            list, r->kind == REPORT_PLAN ? planned_json(&r->policies[i]) : swept_json(&r->policies[i]));
    json_object_set_new(to, "policies", list);
    json_t *remarks = json_array();
    for (size_t i = 0; i < r->n_remarks; i++)
        json_array_append_new(remarks, text_json(r->remarks[i]));
    json_object_set_new(to, "remarks", remarks);
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
        put_text(entry, "level", names[f->level]);
        put_text(entry, "policy", f->policy);
        put_place(entry, r, f->at);
        put_text(entry, "what", f->what);
        put_text(entry, "fix", f->fix ? f->fix : "");
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "findings", list);
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
        put_text(entry, "text", m->text);
        json_array_append_new(list, entry);
    }
    json_object_set_new(to, "mistakes", list);
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
    put_text(whole, "command", r->command);
    if (r->kind == REPORT_PLAN || r->kind == REPORT_SWEEP)
        json_object_set_new(whole, "now", instant_json(r->now));
    put_integer(whole, "exit", r->exit);
    if (r->error)
        put_text(whole, "error", r->error);
    if (r->kind == REPORT_MISTAKES)
        put_mistakes(whole, r);
    else if (r->kind == REPORT_CHECK)
        put_findings(whole, r);
    else if (r->kind == REPORT_PLAN || r->kind == REPORT_SWEEP)
        put_policies(whole, r);
    for (size_t i = 0; i < r->n_facts; i++)
        json_object_set_new(whole, r->facts[i].key, fact_json(&r->facts[i]));
    json_dumpf(whole, out, JSON_REAL_PRECISION(15));
    fputc('\n', out);
    json_decref(whole);
}
