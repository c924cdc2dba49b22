/* explain: one row and one policy: why it is, is not, or will be due. Part of lapse. */
#include <string.h>

#include "guard/fuse.h"
#include "command/internal.h"

/* The words may hold anything a shell can pass. */
static int check_words(const struct lapse_options *o, struct err *e)
{
    for (size_t i = 0; i < o->n_key; i++)
        for (const char *s = o->key[i]; *s;) {
            size_t n = report_utf8(s);
            if (!n)
                return err_set(e, ERR_USAGE, "word %zu of the key is not UTF-8 (at its byte %zu)", i + 1,
                               (size_t)(s - o->key[i]) + 1);
            s += n;
        }
    return 0;
}

static void print_key(const struct table *t, const struct lapse_options *o, struct text *out)
{
    for (size_t i = 0; i < t->n_key; i++)
        text_addf(out, "%s%s=%s", i ? ", " : "", t->key[i]->name, o->key[i]);
}

/* Asks for the key alone first: what the database says then is about the key. */
static int find_row(struct work *w, const struct plan *p, const struct expr *key, struct err *e)
{
    AUTO(answer_release) struct answer found = {0};
    AUTO(text_release) struct text words = {0};
    struct inquiry q = {.key = key, .columns = p->root.table->key, .n_columns = p->root.table->n_key};
    print_key(p->root.table, w->options, &words);
    if (w->store->ops->judge_row(w->store, p, &q, &found, e) < 0) {
        if (e->kind != ERR_DATABASE && e->kind != ERR_REFUSED)
            return -1;
        e->kind = ERR_USAGE;
        return err_wrap(e, "the key %s", text_str(&words));
    }
    if (found.found == 1)
        return 0;
    return found.found
               ? err_set(e, ERR_REFUSED, "several rows of %s fit the key %s", p->root.table->print,
                         text_str(&words))
               : err_set(e, ERR_REFUSED, "no such row in %s: %s", p->root.table->print, text_str(&words));
}

/* Whether the engine, at the time the row is said to be due, says so too. */
static int confirm(struct work *w, const struct plan *p, const struct expr *key, struct explanation *x,
                   struct err *e)
{
    if (x->kind != DUE_LATER)
        return 0;
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    struct findings ignored = {.arena = scratch};
    AUTO(plan_free_p) struct plan *then = plan_make(p->policy, p->facts, x->due_at, &ignored);
    AUTO(answer_release) struct answer answer = {0};
    if (!then) {
        explain_confirm(x, false);
        return 0;
    }
    struct inquiry q = {.key = key, .asked = &then->due, .n_asked = 1};
    if (w->store->ops->judge_row(w->store, then, &q, &answer, e) < 0)
        return -1;
    explain_confirm(x, answer.found == 1 && answer.verdicts[0] == VERDICT_TRUE);
    return 0;
}

static int explain_row(struct work *w, const struct plan *p, bool enabled, struct err *e)
{
    struct arena *a = w->report->arena;
    const struct lapse_options *o = w->options;
    const struct expr *key;
    AUTO(answer_release) struct answer answer = {0};
    if (check_words(o, e) < 0 || explain_key(a, p->root.table, o->key, o->n_key, &key, e) < 0 ||
        find_row(w, p, key, e) < 0)
        return -1;
    struct explaining x;
    explain_begin(&x, a, p, key, enabled);
    if (w->store->ops->judge_row(w->store, p, &x.inquiry, &answer, e) < 0)
        return -1;
    if (answer.found != 1)
        return err_set(e, ERR_REFUSED, "the row of %s is gone", p->root.table->print);
    explain_end(&x, &answer);
    if (confirm(w, p, key, x.explanation, e) < 0)
        return -1;
    w->report->explanation = x.explanation;
    return 0;
}

/* What keeps the whole policy from running is no condition of the row, but must be known beside it. */
static int say_what_stops_it(struct work *w, const struct plan *p, struct err *e)
{
    AUTO(text_release) struct text words = {0};
    struct fuse f = {.verdict = FUSE_TRIPPED};
    const struct policy *policy = p->policy;
    const struct brake *b = brakes_on(&w->brakes, policy->name, policy->scheduler);
    if (b) {
        text_add(&words, "nothing goes now: ");
        brake_words(b, &words);
        work_remark(w, arena_strdup(w->report->arena, text_str(&words)));
    }
    if (!policy->limits)
        return 0;
    if (w->store->ops->own->fuse_read(w->store, policy->name, &f.stored, e) < 0)
        return -1;
    policy_hash(policy, f.hash);
    if (!f.stored.there || f.stored.acked || strcmp(f.stored.hash, f.hash) != 0)
        return 0;
    text_clear(&words);
    fuse_words(p, &f, &words);
    work_remark(w, arena_strdup(w->report->arena, text_str(&words)));
    return 0;
}

struct lapse_report *lapse_explain(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct work w;
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    if (work_start(&w, c, o, REPORT_EXPLAIN, "explain", true) < 0 || work_own(&w) < 0)
        return work_finish(&w, started);
    if (w.options->n_policies != 1) {
        err_set(&e, ERR_USAGE, "explain takes one policy and the key of a row: explain POLICY KEY...");
        work_fail(&w, &e);
        return work_finish(&w, started);
    }
    /* A policy that is off is explained as if it were on, and that it is off is said. */
    const struct policy *policy = contract_policy(w.contract, w.options->policies[0]);
    struct policy as_if = *policy;
    as_if.enabled = true;
    AUTO(facts_free_p) struct facts *facts = NULL;
    struct report_policy *rp = report_add_policy(w.report, policy);
    AUTO(plan_free_p) struct plan *plan = work_plan(&w, &as_if, rp, &facts);
    if (plan && (explain_row(&w, plan, policy->enabled, &e) < 0 || say_what_stops_it(&w, plan, &e) < 0))
        work_fail(&w, &e);
    return work_finish(&w, started);
}
