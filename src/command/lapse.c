/* lapse: the public library: contract -> check -> plan -> sweep -> report, and nothing of its own. See
 * lapse.h. */
#include "command/internal.h"

#include <string.h>

#include "base/quote.h"
#include "store/retry.h"

static const struct lapse_options no_options = {0};

static void work_release(struct work *w)
{
    work_histories_release(w);
    store_close(w->store);
    brakes_release(&w->brakes);
}

const char *lapse_version(void)
{
    return LAPSE_VERSION;
}

struct lapse_report *boxed(struct report *r)
{
    struct lapse_report *box = mem_alloc(sizeof(*box));
    box->report = r;
    return box;
}

/* --- contracts -------------------------------------------------------------------------------------------
 */

struct report *mistakes_report(const char *path, const struct mistakes *m, const struct err *e)
{
    struct report *r = report_new(m->n ? REPORT_MISTAKES : REPORT_ERROR, NULL);
    r->file = arena_strdup(r->arena, path);
    r->exit = LAPSE_BAD_INPUT;
    if (!m->n)
        r->error = arena_strdup(r->arena, e->text);
    for (size_t i = 0; i < m->n; i++) {
        r->mistakes = arena_push(r->arena, r->mistakes, r->n_mistakes, sizeof(*r->mistakes));
        r->mistakes[r->n_mistakes++] =
            (struct mistake){m->list[i].at, arena_strdup(r->arena, m->list[i].text)};
    }
    return r;
}

struct lapse_contract *lapse_contract_load(const char *path, struct lapse_report **ret_report)
{
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    struct err e = ERR_INIT;
    struct contract *c = NULL;
    if (contract_load(path, &c, &mistakes, &e) < 0) {
        *ret_report = boxed(mistakes_report(path, &mistakes, &e));
        return NULL;
    }
    struct lapse_contract *box = mem_alloc(sizeof(*box));
    box->contract = c;
    return box;
}

void lapse_contract_free(struct lapse_contract *c)
{
    if (!c)
        return;
    contract_free(c->contract);
    mem_free_p(&c);
}

const struct lapse_key *lapse_contract_key(size_t number, struct lapse_key *ret)
{
    size_t n;
    const struct key_doc *keys = contract_keys(&n);
    if (number >= n)
        return NULL;
    const struct key_doc *k = &keys[number];
    *ret = (struct lapse_key){k->section, k->key, k->type, k->standard, k->doc, k->not_yet};
    return ret;
}

const char *lapse_nearest(const char *word, const char *const *candidates, size_t n)
{
    return nearest_word(word, candidates, n);
}

/* --- what every command does first
 * --------------------------------------------------------------------------- */

static int exit_of(const struct err *e)
{
    switch (e->kind) {
    case ERR_USAGE:
    case ERR_CONTRACT:
        return LAPSE_BAD_INPUT;
    case ERR_FINDINGS:
        return LAPSE_FINDINGS;
    case ERR_UNREACHABLE:
    case ERR_LOST:
        return LAPSE_UNREACHABLE;
    case ERR_STOPPED:
    case ERR_PAUSED:
    case ERR_BUDGET:
    case ERR_WINDOW:
        return LAPSE_STOPPED;
    case ERR_FUSE:
        return LAPSE_FUSE;
    case ERR_HELD: /* the work is another's */
        return LAPSE_DONE;
    default:
        return LAPSE_FAILED;
    }
}

struct lapse_options work_only_stop(const struct lapse_options *o)
{
    return o ? (struct lapse_options){.stop = o->stop, .context = o->context} : no_options;
}

bool work_asked(void *work)
{
    struct work *w = work;
    return w->options && w->options->stop && w->options->stop(w->options->context);
}

/* What is to be written at the end, of a run that was asked to stop, is written. */
static void hear_no_more(struct work *w)
{
    if (work_asked(w))
        w->store->asks = (struct patience){0};
}

static const char *words_of(struct work *w, const struct err *e)
{
    return e->kind == ERR_STOPPED && work_asked(w) && !strstr(e->text, "asked to stop")
               ? "stopped when asked to"
               : arena_strdup(w->report->arena, e->text);
}

void work_fail(struct work *w, const struct err *e)
{
    w->report->error = words_of(w, e);
    w->report->exit = exit_of(e);
    w->report->unreachable = w->report->exit == LAPSE_UNREACHABLE;
}

static int check_names(const struct work *w, struct err *e)
{
    const struct contract *c = w->contract;
    for (size_t i = 0; i < w->options->n_policies; i++) {
        const char *name = w->options->policies[i];
        if (contract_policy(c, name))
            continue;
        AUTO(mem_free_p) const char **names = mem_alloc(c->n_policies * sizeof(*names));
        AUTO(text_release) struct text all = {0};
        for (size_t k = 0; k < c->n_policies; k++) {
            names[k] = c->policies[k].name;
            text_addf(&all, "%s%s", k ? ", " : "", names[k]);
        }
        const char *near = nearest_word(name, names, c->n_policies);
        return near ? err_set(e, ERR_USAGE, "there is no policy '%s' in %s (did you mean '%s'?)", name,
                              c->file, near)
                    : err_set(e, ERR_USAGE, "there is no policy '%s' in %s; it has: %s", name, c->file,
                              text_str(&all));
    }
    return 0;
}

bool work_selected(const struct work *w, const struct policy *p)
{
    for (size_t i = 0; i < w->options->n_policies; i++)
        if (!strcmp(w->options->policies[i], p->name))
            return true;
    return w->options->n_policies == 0;
}

static int set_now(struct work *w, bool may_lie_ahead, struct err *e)
{
    instant database;
    const struct store_ops *ops = w->store->ops;
    if (ops->now(w->store, &database, e) < 0 &&
        (e->kind != ERR_LOST || ops->reconnect(w->store, e) < 0 || ops->now(w->store, &database, e) < 0))
        return -1;
    w->now = database;
    const char *given = w->options->now;
    if (!given)
        return 0;
    if (!when_parse(given, strlen(given), NULL, &w->now))
        return err_set(e, ERR_USAGE, "'%s' is no time; write it as 2026-11-16T04:54:14Z", given);
    char buf[WHEN_TEXT_SIZE];
    if (!may_lie_ahead && w->now > database)
        return err_set(e, ERR_USAGE, "a sweep cannot run ahead of the database's clock (%s)",
                       when_format(database, buf));
    return 0;
}

int work_start(struct work *w, const struct lapse_contract *c, const struct lapse_options *o,
               enum report_kind kind, const char *command, bool reading)
{
    struct err e = ERR_INIT;
    *w = (struct work){.contract = c->contract, .options = o ? o : &no_options, .due = -1, .reads = reading};
    w->report = report_new(kind, command);
    w->report->contract = c->contract;
    w->report->file = c->contract->file;
    const struct patience patience = {.stop = work_asked, .context = w};
    if (check_names(w, &e) < 0 ||
        store_open_patiently(c->contract->store, reading, &patience, &w->store, &e) < 0 ||
        set_now(w, reading, &e) < 0) {
        work_fail(w, &e);
        w->report->kind = REPORT_ERROR; /* nothing was looked at */
        return -1;
    }
    w->store->own_schema = c->contract->own_schema;
    w->store->own_owner = c->contract->own_owner;
    w->report->now = w->now;
    w->report->findings.arena = w->report->arena;
    for (size_t i = 0; i < c->contract->n_policies; i++)
        w->selected += work_selected(w, &c->contract->policies[i]);
    if (!c->contract->n_policies && !c->contract->n_purges &&
        kind != REPORT_CHECK) /* check has a finding for it */
        work_remark(w, "the contract has no policies: nothing is bounded by it");
    if (!c->contract->n_policies && c->contract->n_purges && (kind == REPORT_PLAN || kind == REPORT_SWEEP))
        work_remark(w,
                    "the contract has purges only: lapse run carries them out, or lapse purge due by hand");
    if (w->store->only_reads && kind == REPORT_PLAN)
        work_remark(w,
                    arena_printf(w->report->arena,
                                 "this is %s: what was committed elsewhere a moment ago may not be here yet",
                                 w->store->only_reads));
    return 0;
}

/* How a server that is lost in mid-course is waited for, by whoever works for this policy. */
static void be_patient(struct work *w, const struct policy *p)
{
    if (!w->store->patience.stop)
        w->store->patience = (struct patience){.stop = work_asked, .context = w};
    w->store->patience.away_us = p->away_us;
}

bool work_reads_again(struct work *w, int *tries, struct err *e)
{
    enum { TRIES = 5 };
    const struct patience patience = {.stop = work_asked, .context = w};
    if (!w->store->only_reads || patience_ends(&patience) || *tries >= TRIES)
        return false;
    if (e->kind == ERR_LOST ? w->store->ops->reconnect(w->store, e) < 0 : e->kind != ERR_CONFLICT)
        return false;
    retry_wait_us(&patience, retry_pause_us(2 + (*tries)++));
    *e = (struct err)ERR_INIT;
    return true;
}

struct lapse_report *work_finish(struct work *w, int64_t started)
{
    w->report->duration_us = when_monotonic_us() - started;
    struct report *r = w->report;
    /* What reads is not whole then, whatever part of it noticed. */
    if (w->reads && work_asked(w) && r->exit != LAPSE_STOPPED) {
        struct err e = ERR_INIT;
        err_set(&e, ERR_STOPPED, "%s", "stopped when asked to");
        work_fail(w, &e);
    }
    if (w->store)
        hear_no_more(w);
    work_release(w);
    return boxed(r);
}

void work_remark(struct work *w, const char *text)
{
    struct report *r = w->report;
    r->remarks = arena_push(r->arena, r->remarks, r->n_remarks, sizeof(*r->remarks));
    r->remarks[r->n_remarks++] = text;
}

/* --- check
 * ------------------------------------------------------------------------------------------------------ */

static int check_patiently(struct work *w, const struct policy *p, struct plan **ret_plan,
                           struct facts **ret_facts, struct err *e)
{
    struct findings *f = &w->report->findings, before = *f;
    for (int tries = 0;
         check_policy(w->contract, p, w->store, w->now, true, f, ret_plan, ret_facts, e) < 0;) {
        if (!work_reads_again(w, &tries, e))
            return -1;
        facts_free(*ret_facts);
        *ret_facts = NULL;
        *f = before;
    }
    return 0;
}

static void only_reads_finding(struct work *w)
{
    if (w->store->only_reads)
        findings_add(&w->report->findings, FINDING_WARNING, NULL, (struct place){0},
                     "name the server that takes writes in 'store'",
                     "the database is %s: check and plan read from it, and nothing can be deleted there",
                     w->store->only_reads);
}

struct lapse_report *lapse_check(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct work w;
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    if (work_start(&w, c, o, REPORT_CHECK, "check", true) < 0 || work_own(&w) < 0)
        return work_finish(&w, started);
    struct findings *f = &w.report->findings;
    w.report->verbose = w.options->verbose;
    w.report->only_statements = w.options->sql;
    only_reads_finding(&w);
    for (size_t i = 0; i < w.contract->n_policies; i++) {
        AUTO(facts_free_p) struct facts *facts = NULL;
        AUTO(plan_free_p) struct plan *plan = NULL;
        const struct policy *p = &w.contract->policies[i];
        if (!work_selected(&w, p))
            continue;
        if (check_patiently(&w, p, &plan, &facts, &e) < 0) {
            err_wrap(&e, "policy '%s'", p->name);
            work_fail(&w, &e);
            return work_finish(&w, started);
        }
        work_brake_finding(&w, p);
        work_lease_finding(&w, p);
        work_pace_finding(&w, p);
    }
    if (!w.options->n_policies &&
        (work_check_purges(&w, &e) < 0 || check_coverage(w.contract, w.store, w.options->strict, f, &e) < 0))
        work_fail(&w, &e);
    findings_sort(f);
    if (f->errors && !w.report->error)
        w.report->exit = LAPSE_FINDINGS;
    return work_finish(&w, started);
}

/* --- one policy of plan or sweep
 * ------------------------------------------------------------------------------------ */

static const char *findings_text(struct arena *a, const struct findings *f, const char *file)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < f->n; i++) {
        const struct finding *x = &f->list[i];
        if (x->level != FINDING_ERROR)
            continue;
        text_addf(&t, "%s%s:%d:%d: ", t.len ? "\n" : "", file, x->at.line, x->at.column);
        text_add_seen(&t, x->what, false);
        if (x->fix[0])
            text_addf(&t, " (%s)", x->fix);
    }
    return arena_strdup(a, text_str(&t));
}

void work_names(struct work *w, struct report_policy *rp, const struct plan *p)
{
    struct arena *a = w->report->arena;
    rp->table = arena_strdup(a, p->root.table->print);
    rp->n_tables = p->n_slots;
    rp->tables = arena_alloc(a, p->n_slots * sizeof(*rp->tables));
    rp->labels = arena_alloc(a, p->n_slots * sizeof(*rp->labels));
    rp->gone = arena_alloc(a, p->n_slots * sizeof(*rp->gone));
    for (size_t i = 0; i < p->n_slots; i++) {
        rp->tables[i] = arena_strdup(a, p->slots[i]->print);
        rp->labels[i] = plan_label(p, i, a);
    }
    for (size_t i = 0; i < p->n_cutoffs; i++) {
        const struct cutoff *c = &p->cutoffs[i];
        if (c->never || (rp->has_latest && c->at <= rp->latest))
            continue;
        rp->has_latest = true;
        rp->latest = c->at;
    }
    rp->n_detach_tables = p->n_detach_slots;
    rp->detach_tables = arena_alloc(a, p->n_detach_slots * sizeof(*rp->detach_tables));
    rp->detached = arena_alloc(a, p->n_detach_slots * sizeof(*rp->detached));
    for (size_t i = 0; i < p->n_detach_slots; i++)
        rp->detach_tables[i] = arena_strdup(a, p->detach_slots[i]->print);
}

void work_copy_counts(struct report_policy *rp, const int64_t *gone, const int64_t *detached)
{
    memcpy(rp->gone, gone, rp->n_tables * sizeof(*gone));
    if (rp->n_detach_tables)
        memcpy(rp->detached, detached, rp->n_detach_tables * sizeof(*detached));
}

void work_policy_failed(struct work *w, struct report_policy *rp, const struct err *e)
{
    rp->kind = e->kind == ERR_STOPPED ? OUTCOME_STOPPED : OUTCOME_FAILED;
    rp->error = words_of(w, e);
    int code = exit_of(e);
    rp->unreachable = code == LAPSE_UNREACHABLE;
    /* What is graver stays: the database gone, a failure, a fuse, a refusal, a stop. */
    static const int graver[] = {LAPSE_UNREACHABLE, LAPSE_FAILED,  LAPSE_FUSE,
                                 LAPSE_FINDINGS,    LAPSE_STOPPED, LAPSE_DONE};
    for (size_t i = 0; i < COUNT_OF(graver) && graver[i] != w->report->exit; i++)
        if (graver[i] == code) {
            w->report->exit = code;
            return;
        }
}

/* As check_policy; one of lapse's own tables is the one that was looked at, whatever else has its name. */
static int make_plan(struct work *w, const struct policy *p, struct findings *found, struct plan **ret,
                     struct facts **ret_facts, struct err *e)
{
    struct policy own = *p;
    const char *schema = w->store->own.schema;
    own.table.schema = (struct name){.text = *schema ? schema : NULL, .quoted = true};
    own.table.table.quoted = true;
    bool built_in = !w->contract->own;
    int r = check_policy(w->contract, built_in ? &own : p, w->store, w->now, false, found, ret, ret_facts, e);
    if (r == 0 && *ret)
        (*ret)->policy = p; /* which lives longer */
    return r;
}

/* The policy's plan, or the reason there is none: disabled, refused by what check finds, or the database
 * failed. */
struct plan *work_plan(struct work *w, const struct policy *p, struct report_policy *rp,
                       struct facts **ret_facts)
{
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    struct findings found = {.arena = scratch};
    struct err e = ERR_INIT;
    struct plan *plan = NULL;
    if (!p->enabled) {
        rp->kind = OUTCOME_DISABLED;
        return NULL;
    }
    int tries = 0, r = make_plan(w, p, &found, &plan, ret_facts, &e);
    while (r < 0 &&
           (work_reads_again(w, &tries, &e) ||
            (e.kind == ERR_LOST && !tries++ && retry_reconnect(w->store, &w->store->patience, &e)))) {
        facts_free(*ret_facts);
        *ret_facts = NULL;
        found = (struct findings){.arena = scratch};
        r = make_plan(w, p, &found, &plan, ret_facts, &e);
    }
    if (r < 0) {
        work_policy_failed(w, rp, &e);
        return NULL;
    }
    if (!plan) {
        err_set(&e, ERR_FINDINGS, "%s", "");
        work_policy_failed(w, rp, &e);
        rp->kind = OUTCOME_REFUSED;
        rp->error = findings_text(w->report->arena, &found, w->contract->file);
        return NULL;
    }
    work_names(w, rp, plan);
    work_walk(w, plan, rp);
    return plan;
}

/* --- sweep
 * -------------------------------------------------------------------------------------------------------- */

static void tell(struct work *w, struct lapse_progress g, const struct policy *p)
{
    if (!w->options->progress || !w->contract->own) /* what is built in was not asked for */
        return;
    AUTO(text_release) struct text name = {0}, pace = {0};
    text_add_seen(&name, p->name, false);
    text_add_seen(&pace, g.pace_text ? g.pace_text : "", false);
    g.policy = text_str(&name);
    g.pace_text = text_str(&pace);
    g.number = w->number;
    g.of = w->selected;
    g.due = w->due;
    w->options->progress(w->options->context, &g);
}

void work_counting(struct work *w, const struct policy *p)
{
    tell(w, (struct lapse_progress){.counting = 1}, p);
}

static void tell_end(struct work *w, const struct report_policy *rp)
{
    struct lapse_progress g = {.finished = 1, .outcome = outcome_name(rp->kind)};
    g.rows = report_rows(rp);
    for (size_t i = 0; i < rp->n_tables; i++)
        g.rows_all += rp->gone[i];
    g.elapsed_us = rp->duration_us;
    g.deleting_us = rp->deleting_us;
    tell(w, g, rp->policy);
}

static void on_progress(void *context, const struct plan *p, const struct outcome *so_far)
{
    struct lapse_progress g = {.rows = so_far->gone[p->root.slot],
                               .elapsed_us = so_far->duration_us,
                               .batch_us = so_far->batch_us,
                               .pace = pace_reason_name(so_far->pace.reason),
                               .pace_text = so_far->pace.words,
                               .waiting_us = so_far->pace.waiting_us};
    for (size_t i = 0; i < p->n_slots; i++)
        g.rows_all += so_far->gone[i];
    tell(context, g, p->policy);
}

static void on_pace(void *context, const struct plan *p, const struct outcome *so_far)
{
    if (so_far->pace.waiting_us)
        on_progress(context, p, so_far);
}

static void on_begin(void *context, const struct plan *p)
{
    work_history_begin(context, p->policy);
}

static void count_first(struct work *w, const struct plan *plan)
{
    AUTO(due_release) struct due due;
    struct err e = ERR_INIT;
    due_init(&due, plan);
    w->due = w->store->ops->count(w->store, plan, &due, &e) < 0 ? -1 : due.gone[plan->root.slot];
}

static void copy_outcome(struct work *w, struct report_policy *rp, const struct outcome *o)
{
    struct arena *a = w->report->arena;
    work_copy_counts(rp, o->gone, o->detached);
    rp->skipped = arena_alloc(a, (o->n_skipped + 1) * sizeof(*rp->skipped));
    for (size_t i = 0; i < o->n_skipped; i++)
        rp->skipped[i] = (struct skipped_row){arena_strdup(a, o->skipped[i].key), o->skipped[i].reason,
                                              arena_strdup(a, o->skipped[i].error)};
    rp->n_skipped = o->n_skipped;
    work_partition_outcomes(w, rp, o);
    rp->left = o->left;
    rp->unknown = o->unknown;
    rp->unknown_gone = o->unknown_gone;
    rp->batches = o->batches;
    rp->retries = o->retries;
    rp->duration_us = o->duration_us;
    rp->deleting_us = o->deleting_us;
    rp->came_again = o->came_again;
    rp->pace = o->pace;
    rp->kind = o->kind;
}

void work_sweep(struct work *w, struct report_policy *rp, const struct plan *plan, struct sweep_options o)
{
    AUTO(outcome_release) struct outcome out;
    const struct scheduler *s = work_scheduler(w, rp->policy);
    o.lease = w->lease;
    o.budget_rows = s->budget_rows > 0 ? s->budget_rows : 0;
    o.budget_batches = s->budget_batches > 0 ? s->budget_batches : 0;
    o.budget_us = s->budget_time.kind == SPAN_TIME ? s->budget_time.us : 0;
    outcome_init(&out, plan);
    sweep_run(w->store, plan, &o, &out);
    copy_outcome(w, rp, &out);
    if (out.pace.deaf[0])
        work_remark(
            w, arena_printf(w->report->arena,
                            "policy '%s': it could not be asked what others do, so they were ignored: %s",
                            rp->policy->name, out.pace.deaf));
    if (out.alone)
        work_remark(
            w, arena_printf(w->report->arena,
                            "policy '%s': %lld of its %lld connections could not be had, and the others did "
                            "their part: %s",
                            rp->policy->name, (long long)out.alone, (long long)rp->policy->workers,
                            out.alone_why));
    struct err trouble = out.err;
    if (out.kind == OUTCOME_DONE && (out.n_skipped || out.unknown > out.unknown_gone))
        err_set(&trouble, ERR_REFUSED, "%s", "");
    if (trouble.kind == ERR_NONE)
        return;
    work_policy_failed(w, rp, &trouble);
    rp->kind = out.kind;
    if (!trouble.text[0])
        rp->error = NULL;
}

static void sweep_policy(struct work *w, struct report_policy *rp)
{
    AUTO(facts_free_p) struct facts *facts = NULL;
    be_patient(w, rp->policy);
    AUTO(plan_free_p) struct plan *plan = work_plan(w, rp->policy, rp, &facts);
    w->number++;
    w->due = -1;
    if (plan && (!w->lease || work_lease(w, rp) == 0)) {
        if (w->options->count_first && w->options->progress) {
            work_counting(w, rp->policy);
            count_first(w, plan);
        }
        work_sweep(w, rp, plan,
                   (struct sweep_options){.stop = work_asked,
                                          .begins = on_begin,
                                          .progress = on_progress,
                                          .paced = on_pace,
                                          .context = w});
    }
    tell_end(w, rp);
}

/* With its row in the history. */
static void sweep_and_note(struct work *w, struct report_policy *rp)
{
    work_history_open(w, rp->policy);
    sweep_policy(w, rp);
    hear_no_more(w);
    work_history_add(w, rp);
}

static void stop_policy(struct work *w, struct report_policy *rp)
{
    struct err e = ERR_INIT;
    err_set(&e, ERR_STOPPED, "not begun: asked to stop");
    work_policy_failed(w, rp, &e);
    w->number++;
    work_history_add(w, rp);
    tell_end(w, rp);
}

static bool is_last_of_its_scheduler(const struct report *r, const struct report_policy *rp)
{
    for (const struct report_policy *later = rp + 1; later < r->policies + r->n_policies; later++)
        if (!strcmp(later->policy->scheduler, rp->policy->scheduler))
            return false;
    return true;
}

static void sweep_or_stop(struct work *w, struct report_policy *rp)
{
    hear_no_more(w);
    if (work_asked(w))
        stop_policy(w, rp);
    else
        sweep_and_note(w, rp);
    if (is_last_of_its_scheduler(w->report, rp))
        work_history_end(w, rp->policy);
}

/* From this entry of the report on, the policies of one exclusive scheduler, under one lease. */
static void sweep_exclusively(struct work *w, size_t first, const struct scheduler *s)
{
    struct report *r = w->report;
    struct lease lease;
    lease_init(&lease, w->store, s->name, s->lease.us);
    w->lease = &lease;
    for (size_t i = first; i < r->n_policies; i++)
        if (work_exclusive(w, r->policies[i].policy) == s)
            sweep_or_stop(w, &r->policies[i]);
    work_lease_drop(w);
}

/* Whether an earlier entry is of the same scheduler. */
static bool was_earlier(const struct report *r, size_t entry)
{
    for (size_t i = 0; i < entry; i++)
        if (!strcmp(r->policies[i].policy->scheduler, r->policies[entry].policy->scheduler))
            return true;
    return false;
}

/* In the order of the file, but those of an exclusive scheduler together where the first of them stands. */
static void sweep_all(struct work *w)
{
    struct report *r = w->report;
    for (size_t i = 0; i < w->contract->n_policies; i++)
        if (work_selected(w, &w->contract->policies[i]))
            report_add_policy(r, &w->contract->policies[i]);
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct scheduler *s = work_exclusive(w, r->policies[i].policy);
        if (!s)
            sweep_or_stop(w, &r->policies[i]);
        else if (!was_earlier(r, i))
            sweep_exclusively(w, i, s);
    }
}

/* Lapse's own tables, too, where all is swept. What there is nothing to say of is not in the report. */
static void sweep_own(struct work *w)
{
    const struct contract *c = w->contract;
    struct report *r = w->report;
    if (w->options->n_policies || !work_keeps_history(w))
        return;
    w->contract = c->own;
    for (size_t i = 0; i < c->own->n_policies && !work_asked(w); i++) {
        int exit_before = r->exit;
        struct report_policy *rp = report_add_policy(r, &c->own->policies[i]);
        sweep_policy(w, rp);
        if (report_rows(rp) || rp->kind == OUTCOME_FAILED || rp->kind == OUTCOME_REFUSED || rp->n_skipped) {
            work_history_open(w, rp->policy);
            work_history_add(w, rp);
            work_history_end(w, rp->policy);
            continue;
        }
        r->n_policies--;
        r->exit = exit_before;
    }
    w->contract = c;
}

struct lapse_report *lapse_sweep(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct work w;
    int64_t started = when_monotonic_us();
    if (work_start(&w, c, o, REPORT_SWEEP, "sweep", false) < 0 || work_own(&w) < 0)
        return work_finish(&w, started);
    w.store->own_goes_on = true;
    sweep_all(&w);
    sweep_own(&w);
    work_history_remark(&w);
    return work_finish(&w, started);
}

/* --- reports
 * ---------------------------------------------------------------------------------------------------------
 */

void lapse_report_name(struct lapse_report *r, const char *command)
{
    r->report->command = arena_strdup(r->report->arena, command);
}

enum lapse_exit lapse_report_exit(const struct lapse_report *r)
{
    return (enum lapse_exit)r->report->exit;
}

void lapse_report_text(const struct lapse_report *r, FILE *out, FILE *err, int colour, int width)
{
    report_text(r->report, out, err, colour != 0, width);
}

void lapse_report_json(const struct lapse_report *r, FILE *out)
{
    report_json(r->report, out);
}

void lapse_report_free(struct lapse_report *r)
{
    if (!r)
        return;
    report_free(r->report);
    mem_free_p(&r);
}
