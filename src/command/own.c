/* own: the commands on lapse's own tables: install, ack, pause, resume; and what check, plan and sweep
 * ask of them. */
#include <string.h>

#include "guard/fuse.h"
#include "base/quote.h"
#include "command/internal.h"

/* Who asks for it, and why. */
static int set_deed(struct work *w, const struct lapse_options *o, struct deed *ret, struct err *e)
{
    const char *reason = o && o->reason ? o->reason : "", *actor = o ? o->actor : NULL;
    *ret = (struct deed){{0}, {0}};
    if (strlen(reason) >= REASON_SIZE || !yaml_can_hold(reason))
        return err_set(e, ERR_USAGE, "--reason: a text of at most %d bytes, in one line", REASON_SIZE - 1);
    if (actor && !yaml_can_hold(actor))
        return err_set(e, ERR_USAGE, "LAPSE_ACTOR: a text in one line");
    deed_copy(ret->reason, sizeof(ret->reason), reason);
    deed_set_who(ret, *w->store->role ? w->store->role : NULL, actor);
    return 0;
}

static int need_own(struct work *w, struct err *e)
{
    return w->store->own.version
               ? 0
               : err_set(e, ERR_USAGE, "lapse's own tables are not installed: run lapse install");
}

static int look(struct work *w, struct err *e)
{
    const struct own_ops *own = w->store->ops->own;
    if (own->look(w->store, e) < 0)
        return -1;
    return w->store->own.version ? own->brakes(w->store, &w->brakes, e) : 0;
}

int work_own(struct work *w)
{
    struct err e = ERR_INIT;
    if (look(w, &e) == 0)
        return 0;
    if (e.kind == ERR_LOST && w->store->ops->reconnect(w->store, &e) == 0 && look(w, &e) == 0)
        return 0;
    work_fail(w, &e);
    w->report->kind = REPORT_ERROR;
    return -1;
}

/* --- what plan and check say -------------------------------------------------------------------------------
 */

static const char *brake_text(struct arena *a, const struct brake *b)
{
    AUTO(text_release) struct text t = {0};
    brake_words(b, &t);
    return arena_strdup(a, text_str(&t));
}

void work_brake_finding(struct work *w, const struct policy *p)
{
    const struct brake *b = brakes_on(&w->brakes, p->name, p->scheduler);
    if (b)
        findings_add(&w->report->findings, FINDING_WARNING, p->name, p->at, "", "%s",
                     brake_text(w->report->arena, b));
}

static void copy_brake(struct work *w, const struct policy *p, struct report_policy *rp)
{
    const struct brake *b = brakes_on(&w->brakes, p->name, p->scheduler);
    struct arena *a = w->report->arena;
    if (!b)
        return;
    struct brake *copy = arena_alloc(a, sizeof(*copy));
    *copy = *b;
    copy->name = arena_strdup(a, b->name);
    rp->brake = copy;
    rp->brake_words = brake_text(a, b);
}

int work_own_policy(struct work *w, const struct plan *plan, struct report_policy *rp, struct err *e)
{
    struct arena *a = w->report->arena;
    copy_brake(w, plan->policy, rp);
    if (!plan->policy->limits)
        return 0;
    struct fuse *f = arena_alloc(a, sizeof(*f));
    AUTO(text_release) struct text words = {0};
    if (fuse_judge(w->store, plan, report_rows(rp), f, e) < 0)
        return -1;
    fuse_words(plan, f, &words);
    rp->fuse = f;
    rp->fuse_words = arena_strdup(a, text_str(&words));
    return 0;
}

/* --- saying --------------------------------------------------------------------------------------------- */

static void say(struct work *w, const char *line)
{
    struct report *r = w->report;
    AUTO(text_release) struct text t = {0};
    text_add_seen(&t, line, false);
    r->words = arena_printf(r->arena, "%s%s\n", r->words ? r->words : "", text_str(&t));
}

static void fact_text(struct work *w, const char *key, const char *text)
{
    const char *copy = text ? arena_strdup(w->report->arena, text) : NULL;
    report_add_fact(w->report,
                    (struct report_fact){.key = key, .kind = FACT_TEXT, .null = !text, .text = copy});
}

static void fact_number(struct work *w, const char *key, enum fact_kind kind, int64_t number)
{
    report_add_fact(w->report, (struct report_fact){.key = key, .kind = kind, .number = number});
}

/* What tables of an earlier version do not keep. */
static void say_not_kept(struct work *w)
{
    const char *what;
    if (w->store->own.version >= OWN_SINCE_WHO)
        return;
    what = arena_printf(w->report->arena,
                        "lapse's own tables are version %d, which does not keep who did this and why: run "
                        "lapse install",
                        w->store->own.version);
    say(w, what);
    fact_text(w, "not_kept", what);
}

static void say_deed(struct work *w, const struct deed *by)
{
    fact_text(w, "who", *by->who ? by->who : NULL);
    fact_text(w, "reason", *by->reason ? by->reason : NULL);
    say_not_kept(w);
}

/* Opens, and looks at the tables; a command of these has no part that goes on without them. names: how many
 * may be given. */
static int start(struct work *w, const struct lapse_contract *c, const struct lapse_options *o,
                 const char *command, bool reading)
{
    if (work_start(w, c, o, REPORT_WORDS, command, reading) < 0)
        return -1;
    if (!reading)
        w->store->purpose = grants_for_name(FOR_OPERATE);
    return work_own(w);
}

static struct lapse_report *finish(struct work *w, int64_t started, int result, const struct err *e)
{
    if (result < 0) {
        work_fail(w, e);
        w->report->kind = REPORT_ERROR;
    }
    return work_finish(w, started);
}

/* --- install -------------------------------------------------------------------------------------------- */

static const char *place(struct work *w)
{
    const char *schema = w->store->own.schema;
    return *schema ? arena_printf(w->report->arena, " in schema %s", schema) : "";
}

static int install_now(struct work *w, struct err *e)
{
    int from;
    struct arena *a = w->report->arena;
    if (w->store->ops->own->install(w->store, &from, e) < 0)
        return -1;
    if (from >= OWN_VERSION)
        say(w, arena_printf(a, "lapse's own tables are up to date%s (version %d)", place(w), from));
    else if (from == 0)
        say(w, arena_printf(a, "installed lapse's own tables%s (version %d)", place(w), OWN_VERSION));
    else
        say(w, arena_printf(a, "upgraded lapse's own tables%s from version %d to %d", place(w), from,
                            OWN_VERSION));
    fact_text(w, "schema", w->store->own.schema[0] ? w->store->own.schema : NULL);
    fact_number(w, "from", FACT_NUMBER, from);
    fact_number(w, "version", FACT_NUMBER, OWN_VERSION);
    return 0;
}

/* SQL for people to run: as it is in words, statement by statement for machines. */
static void show_sql(struct work *w, const char *key, const char *sql)
{
    struct arena *a = w->report->arena;
    struct report_fact f = {.key = key, .kind = FACT_TEXTS};
    w->report->words = arena_printf(a, "%s%s", w->report->words ? w->report->words : "", sql);
    for (const char *end; (end = strstr(sql, ";\n")); sql = end + 2) {
        sql += strspn(sql, "\n");
        f.texts = arena_push(a, f.texts, f.n, sizeof(*f.texts));
        f.texts[f.n++] = arena_strndup(a, sql, (size_t)(end - sql) + 1);
    }
    report_add_fact(w->report, f);
}

static void print_tables(struct work *w)
{
    AUTO(text_release) struct text sql = {0};
    w->store->ops->own->print(w->store, &sql);
    if (!sql.len)
        say(w, arena_printf(w->report->arena, "-- version %d is installed%s: there is nothing to do",
                            OWN_VERSION, place(w)));
    show_sql(w, "statements", text_str(&sql));
}

/* Plans of all policies at once, with the facts they look at. */
struct plans {
    struct plan **plans;
    struct facts **facts;
    size_t n;
};

static void plans_release(struct plans *p)
{
    for (size_t i = 0; i < p->n; i++)
        plan_free(p->plans[i]);
    for (size_t i = 0; i < p->n; i++)
        facts_free(p->facts[i]);
    mem_free_p(&p->plans);
    mem_free_p(&p->facts);
}

/* Privileges that this user lacks are no obstacle: a plan can be made without them. */
static struct plan *plan_for_grants(struct work *w, const struct policy *p, struct facts **ret, struct err *e)
{
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    struct findings found = {.arena = scratch};
    struct table_names names = {0};
    plan_tables(p, scratch, &names);
    if (w->store->ops->inspect(w->store, &names, ret, e) < 0)
        return NULL;
    return plan_make(p, *ret, w->now, &found);
}

static bool has_sql(const struct expr *x)
{
    bool found = x && x->kind == EXPR_SQL;
    for (size_t i = 0; x && i < x->n_kids && !found; i++)
        found = has_sql(x->kids[i]);
    return found;
}

static void say_of_policy(struct work *w, const struct policy *p, const char *what)
{
    say(w, arena_printf(w->report->arena, "-- policy '%s' %s", p->name, what));
}

struct purge_plans {
    struct purge_plan **plans;
    struct facts **facts;
    size_t n;
};

static void purge_plans_release(struct purge_plans *p)
{
    for (size_t i = 0; i < p->n; i++) {
        purge_plan_free(p->plans[i]);
        facts_free(p->facts[i]);
    }
    mem_free_p(&p->plans);
    mem_free_p(&p->facts);
}

static int plan_purges_for_grants(struct work *w, struct purge_plans *all, struct needs *needs, struct err *e)
{
    const struct contract *c = w->contract;
    all->plans = mem_alloc((c->n_purges + 1) * sizeof(*all->plans));
    all->facts = mem_alloc((c->n_purges + 1) * sizeof(*all->facts));
    for (size_t i = 0; i < c->n_purges; i++) {
        AUTO(arena_free_p) struct arena *scratch = arena_new();
        struct findings found = {.arena = scratch};
        struct table_names names = {0};
        purge_tables(&c->purges[i], scratch, &names);
        if (w->store->ops->inspect(w->store, &names, &all->facts[i], e) < 0)
            return -1;
        all->plans[all->n++] = purge_plan_make(&c->purges[i], all->facts[i], w->now, &found);
        if (all->plans[i])
            needs_add_purge(needs, all->plans[i]);
        else
            say(w, arena_printf(w->report->arena,
                                "-- the purges of '%s' are left out: they do not fit the schema (lapse check "
                                "says why)",
                                c->purges[i].name));
    }
    if (c->n_purges)
        say(w, "-- a program that schedules and cancels purges needs INSERT (space, instance, reason, "
               "purge_at), SELECT, "
               "DELETE on lapse_purge; with that it can have any instance of a space erased at once");
    return 0;
}

static int print_grants(struct work *w, enum grants_for what, struct err *e)
{
    AUTO(plans_release) struct plans all = {0};
    AUTO(text_release) struct text sql = {0};
    struct needs needs = {.arena = w->report->arena};
    const struct contract *c = w->contract;
    all.plans = mem_alloc((c->n_policies + 1) * sizeof(*all.plans));
    all.facts = mem_alloc((c->n_policies + 1) * sizeof(*all.facts));
    for (size_t i = 0; i < c->n_policies; i++) {
        struct plan *plan = plan_for_grants(w, &c->policies[i], &all.facts[i], e);
        all.plans[all.n++] = plan;
        if (!all.facts[i])
            return -1;
        if (!plan)
            say_of_policy(w, &c->policies[i],
                          "is left out: it does not fit the schema (lapse check says why)");
        else if (has_sql(plan->due))
            say_of_policy(w, &c->policies[i],
                          "has a condition in SQL: other tables it reads need SELECT too");
        if (plan)
            needs_add(&needs, plan);
    }
    AUTO(purge_plans_release) struct purge_plans purges = {0};
    if (plan_purges_for_grants(w, &purges, &needs, e) < 0)
        return -1;
    needs_settle(&needs);
    if (w->store->ops->own->print_grants(w->store, w->options->grants, what, needs.list, needs.n,
                                         c->n_purges > 0, &sql, e) < 0)
        return -1;
    show_sql(w, "grants", text_str(&sql));
    return 0;
}

static int install(struct work *w, struct err *e)
{
    const struct lapse_options *o = w->options;
    enum grants_for what = FOR_SWEEP;
    if (o->grants_for && !grants_for_named(o->grants_for, &what))
        return err_set(e, ERR_USAGE, "--for: '%s' is none of sweep, operate, read", o->grants_for);
    if (o->grants_for && !o->grants)
        return err_set(e, ERR_USAGE, "--for goes with --grants ROLE");
    if (!o->print && !o->grants)
        return install_now(w, e);
    if (o->print)
        print_tables(w);
    return o->grants ? print_grants(w, what, e) : 0;
}

struct lapse_report *lapse_install(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct work w;
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    bool reading = o && (o->print || o->grants);
    if (reading ? start(&w, c, o, "install", true) < 0
                : work_start(&w, c, o, REPORT_WORDS, "install", false) < 0) /* it looks for itself */
        return work_finish(&w, started);
    w.store->purpose = NULL; /* it needs what no such role has */
    return finish(&w, started, install(&w, &e), &e);
}

/* --- ack ------------------------------------------------------------------------------------------------ */

static int64_t rows_due(struct work *w, const struct plan *plan, struct err *e)
{
    AUTO(due_release) struct due due;
    due_init(&due, plan);
    return w->store->ops->count(w->store, plan, &due, e) < 0 ? -1 : due.gone[plan->root.slot];
}

/* Nothing to do, or what was done. */
static int ack_fuse(struct work *w, const struct plan *plan, struct err *e)
{
    struct fuse f;
    struct deed by;
    struct arena *a = w->report->arena;
    const char *name = plan->policy->name;
    if (set_deed(w, w->options, &by, e) < 0)
        return -1;
    int64_t due = rows_due(w, plan, e);
    if (due < 0 || fuse_judge(w->store, plan, due, &f, e) < 0)
        return -1;
    bool acked = f.verdict == FUSE_ACKED;
    if (!f.stored.there)
        say(w, arena_printf(a, "the fuse of '%s' has not tripped: there is nothing to acknowledge", name));
    else if (acked)
        say(w, arena_printf(a, "the fuse of '%s' was acknowledged before", name));
    else if (w->store->ops->own->fuse_ack(w->store, name, f.hash, &by, e) < 0)
        return -1;
    else
        say(w, arena_printf(a, "the fuse of '%s' is reset, for the policy as it is now", name));
    if (f.stored.there)
        say(w, arena_printf(
                   a, "its next run may pass the limit of %lld row%s, once: %lld row%s of %s would go now",
                   (long long)f.most, f.most == 1 ? "" : "s", (long long)due, due == 1 ? "" : "s",
                   plan->root.table->print));
    fact_text(w, "policy", name);
    say_deed(w, &by);
    fact_number(w, "acknowledged", FACT_FLAG, f.stored.there);
    fact_number(w, "changed", FACT_FLAG, f.stored.there && !acked);
    fact_number(w, "rows", FACT_NUMBER, due);
    fact_number(w, "limit", FACT_NUMBER, f.most);
    return 0;
}

static int ack(struct work *w, struct err *e)
{
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(plan_free_p) struct plan *plan = NULL;
    struct findings found = {.arena = scratch};
    if (w->options->n_policies != 1)
        return err_set(e, ERR_USAGE, "name one policy: lapse ack POLICY");
    const struct policy *p = contract_policy(w->contract, w->options->policies[0]);
    if (!p->limits)
        return err_set(e, ERR_USAGE, "policy '%s' has no limits, and so no fuse", p->name);
    if (need_own(w, e) < 0 ||
        check_policy(w->contract, p, w->store, w->now, false, &found, &plan, &facts, e) < 0)
        return -1;
    if (!plan)
        return err_set(e, ERR_FINDINGS, "policy '%s' does not fit the schema; lapse check says why", p->name);
    return ack_fuse(w, plan, e);
}

struct lapse_report *lapse_ack(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct work w;
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    if (start(&w, c, o, "ack", false) < 0)
        return work_finish(&w, started);
    return finish(&w, started, ack(&w, &e), &e);
}

/* --- pause and resume -------------------------------------------------------------------------------------
 */

/* Those on lapse's own tables are named like any other. */
static bool has_policy(const struct contract *c, const char *name)
{
    return contract_policy(c, name) || (c->own && has_policy(c->own, name));
}

static bool has_scheduler(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (strcmp(c->schedulers[i].name, name) == 0)
            return true;
    return c->own && has_scheduler(c->own, name);
}

static int unknown_name(struct work *w, const char *name, struct err *e)
{
    const struct contract *c = w->contract;
    size_t n = 0;
    AUTO(mem_free_p) const char **names = mem_alloc((c->n_policies + c->n_schedulers + 1) * sizeof(*names));
    for (size_t i = 0; i < c->n_policies; i++)
        names[n++] = c->policies[i].name;
    for (size_t i = 0; i < c->n_schedulers; i++)
        names[n++] = c->schedulers[i].name;
    const char *near = nearest_word(name, names, n);
    return err_set(e, ERR_USAGE, "there is no policy and no scheduler '%s' in %s%s%s%s", name, c->file,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* "policy 'x'", "scheduler 'x'", "policy and scheduler 'x'", "everything" */
static const char *braked(struct work *w, const char *name)
{
    bool policy = has_policy(w->contract, name), scheduler = has_scheduler(w->contract, name);
    if (!*name)
        return "everything";
    return arena_printf(w->report->arena, "%s%s%s%s'%s'", policy ? "policy " : "",
                        policy && scheduler ? "and " : "", scheduler ? "scheduler " : "",
                        policy || scheduler ? "" : "the name ", name);
}

/* By the database's clock. */
static int end_of_pause(struct work *w, const char *length, instant *ret, struct err *e)
{
    struct span span;
    const instant last = INT64_C(253402300799) * US_PER_S; /* the end of the year 9999 */
    if (span_parse(length, &span, e) < 0)
        return err_wrap(e, "--for");
    if (span.kind != SPAN_TIME || span.us == 0)
        return err_set(e, ERR_USAGE,
                       "--for: '%s' is no length of time; write one like 2h, or nothing: until lapse "
                       "resume",
                       length);
    if (!add_i64(w->now, span.us, ret) || *ret > last)
        return err_set(e, ERR_USAGE, "--for: '%s' is too long", length);
    return 0;
}

static int pause_name(struct work *w, const char *name, const char *length, const struct deed *by,
                      struct err *e)
{
    instant until = 0;
    char buf[WHEN_TEXT_SIZE];
    struct arena *a = w->report->arena;
    if (*name && !has_policy(w->contract, name) && !has_scheduler(w->contract, name))
        return unknown_name(w, name, e);
    if ((length && end_of_pause(w, length, &until, e) < 0) || need_own(w, e) < 0 ||
        w->store->ops->own->brake(w->store, name, length ? &until : NULL, by, e) < 0)
        return -1;
    if (length)
        say(w,
            arena_printf(a, "%s is paused until %s UTC", braked(w, name), when_format_local(until, 0, buf)));
    else
        say(w, arena_printf(a, "%s is paused until 'lapse resume%s%s'", braked(w, name), *name ? " " : "",
                            name));
    fact_text(w, "name", *name ? name : NULL);
    report_add_fact(
        w->report, (struct report_fact){.key = "until", .kind = FACT_TIME, .null = !length, .number = until});
    say_deed(w, by);
    return 0;
}

/* Brakes that are still on. */
static int say_remaining(struct work *w, struct err *e)
{
    AUTO(brakes_release) struct brakes left = {0};
    struct arena *a = w->report->arena;
    struct report_fact f = {.key = "still_paused", .kind = FACT_TEXTS};
    if (w->store->ops->own->brakes(w->store, &left, e) < 0)
        return -1;
    f.texts = arena_alloc(a, (left.n + 1) * sizeof(*f.texts));
    for (size_t i = 0; i < left.n; i++) {
        f.texts[f.n++] = arena_strdup(a, left.list[i].name);
        say(w,
            arena_printf(a, "still: %s is %s", braked(w, left.list[i].name), brake_text(a, &left.list[i])));
    }
    report_add_fact(w->report, f);
    return 0;
}

/* A brake may outlive what it was set on: such a name is known too. */
static int resume_name(struct work *w, const char *name, const struct deed *by, struct err *e)
{
    bool was_there;
    struct arena *a = w->report->arena;
    bool known = !*name || has_policy(w->contract, name) || has_scheduler(w->contract, name);
    if (!known && !brakes_named(&w->brakes, name))
        return unknown_name(w, name, e);
    bool on = brakes_named(&w->brakes, name) != NULL;
    if (need_own(w, e) < 0 || w->store->ops->own->release(w->store, name, by, &was_there, e) < 0)
        return -1;
    bool resumed = on && was_there;
    say(w, arena_printf(a, resumed ? "the brake on %s is released" : "there was no brake on %s",
                        braked(w, name)));
    fact_text(w, "name", *name ? name : NULL);
    fact_number(w, "resumed", FACT_FLAG, resumed);
    say_deed(w, by);
    return say_remaining(w, e);
}

/* The name may be a scheduler's, so it is not for work_start to judge. */
static struct lapse_report *on_name(const struct lapse_contract *c, const struct lapse_options *o, bool pause)
{
    struct work w;
    struct deed by;
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    size_t n = o ? o->n_policies : 0;
    const char *name = n ? o->policies[0] : "", *length = o ? o->pause_for : NULL;
    const struct lapse_options stop = work_only_stop(o); /* a name may be a scheduler's */
    if (start(&w, c, &stop, pause ? "pause" : "resume", false) < 0)
        return work_finish(&w, started);
    int r = n > 1         ? err_set(&e, ERR_USAGE, "name one policy or scheduler, or none for everything")
            : n && !*name ? unknown_name(&w, name, &e)
                          : set_deed(&w, o, &by, &e);
    if (r == 0)
        r = pause ? pause_name(&w, name, length, &by, &e) : resume_name(&w, name, &by, &e);
    return finish(&w, started, r, &e);
}

struct lapse_report *lapse_pause(const struct lapse_contract *c, const struct lapse_options *o)
{
    return on_name(c, o, true);
}

struct lapse_report *lapse_resume(const struct lapse_contract *c, const struct lapse_options *o)
{
    return on_name(c, o, false);
}
