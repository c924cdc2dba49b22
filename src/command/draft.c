/* draft: a database -> facts and a few rows of each table -> a draft -> a report. */
#include <string.h>

#include "command/internal.h"

struct drafting {
    struct work work;
    struct facts *facts;
    struct draft_look *looks; /* one per table */
    struct draft *draft;
};

static void drafting_release(struct drafting *g)
{
    draft_free(g->draft);
    for (size_t i = 0; g->looks && i < g->facts->n_tables; i++)
        rows_release(&g->looks[i].rows);
    facts_free(g->facts);
}

static int read_facts(struct drafting *g, struct err *e)
{
    struct store *s = g->work.store;
    struct arena *a = g->work.report->arena;
    struct table_name *tables = NULL;
    struct table_names names = {0};
    if (s->ops->now(s, &g->work.now, e) < 0 || s->ops->list_tables(s, a, &tables, &names.n, e) < 0)
        return -1;
    names.list = arena_alloc(a, (names.n + 1) * sizeof(*names.list));
    for (size_t i = 0; i < names.n; i++) {
        tables[i].table.quoted = true; /* as it is, and no other that differs in case */
        names.list[i] = &tables[i];
    }
    return s->ops->inspect(s, &names, &g->facts, e);
}

/* A table that cannot be looked at is said to be so; only a lost database ends it all. */
static int look_at(struct drafting *g, const struct table *t, struct draft_look *l, struct err *e)
{
    struct arena *a = g->work.report->arena;
    struct store *s = g->work.store;
    struct err failed = ERR_INIT;
    *l = (struct draft_look){.table = t, .columns = arena_alloc(a, (t->n_columns + 1) * sizeof(*l->columns))};
    l->n_columns = draft_columns(t, l->columns);
    if (!t->may_select || t->rows_hidden)
        l->trouble = t->may_select ? "row security hides rows" : "they may not be read";
    if (l->trouble || !l->n_columns)
        return 0;
    if (s->ops->look(s, t, l->columns, l->n_columns, &l->rows, &l->whole, &failed) == 0)
        return 0;
    rows_release(&l->rows);
    l->trouble = arena_strdup(a, failed.text);
    if (failed.kind != ERR_LOST && failed.kind != ERR_UNREACHABLE)
        return 0;
    *e = failed;
    return -1;
}

static int look_at_all(struct drafting *g, struct err *e)
{
    size_t n = g->facts->n_tables;
    g->looks = arena_alloc(g->work.report->arena, (n + 1) * sizeof(*g->looks));
    for (size_t i = 0; i < n; i++)
        if (look_at(g, g->facts->tables[i], &g->looks[i], e) < 0)
            return err_wrap(e, "table %s", g->facts->tables[i]->print);
    return 0;
}

/* The facts of the tables a policy names, as check would ask for them. */
static struct facts facts_for(const struct drafting *g, const struct policy *p, struct arena *a)
{
    struct facts some = *g->facts;
    struct table_names names = {0};
    plan_tables(p, a, &names);
    some.tables = NULL;
    some.n_tables = 0;
    for (size_t i = 0; i < names.n; i++) {
        struct table *t = (struct table *)facts_table(g->facts, names.list[i]);
        if (!t || facts_table(&some, names.list[i]))
            continue;
        some.tables = arena_push(a, some.tables, some.n_tables, sizeof(struct table *));
        some.tables[some.n_tables++] = t;
    }
    return some;
}

/* What is to stand uncommented must pass check on the database itself. */
static int check_certain(struct drafting *g, struct draft_policy *p, struct err *e)
{
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    AUTO(contract_free_p) struct contract *c = NULL;
    AUTO(plan_free_p) struct plan *plan = NULL;
    struct findings found = {.arena = scratch};
    struct err failed = ERR_INIT;
    int r = draft_contract(p, &c, &failed);
    struct facts some = r < 0 ? *g->facts : facts_for(g, &c->policies[0], scratch);
    if (r == 0)
        plan = plan_make(&c->policies[0], &some, g->work.now, &found);
    if (plan)
        r = check_made(plan, g->work.store, false, &found, &failed);
    if (r < 0) {
        draft_doubt(g->draft, p, failed.text);
        *e = failed;
        return failed.kind == ERR_LOST || failed.kind == ERR_UNREACHABLE ? -1 : 0;
    }
    for (size_t i = 0; i < found.n; i++)
        if (found.list[i].level == FINDING_ERROR)
            draft_doubt(g->draft, p, arena_printf(scratch, "check says: %s", found.list[i].what));
    return 0;
}

static int make_draft(struct drafting *g, struct err *e)
{
    if (read_facts(g, e) < 0 || look_at_all(g, e) < 0)
        return -1;
    g->draft = draft_make(g->facts, g->looks, g->work.now);
    for (size_t i = 0; i < g->draft->n_certain; i++)
        if (check_certain(g, &g->draft->policies[i], e) < 0)
            return -1;
    draft_sort(g->draft);
    return 0;
}

/* --- the report --------------------------------------------------------------------------------------------
 */

static const char **copy_lines(struct arena *a, const struct draft_lines *lines)
{
    const char **copy = arena_alloc(a, (lines->n + 1) * sizeof(*copy));
    for (size_t i = 0; i < lines->n; i++)
        copy[i] = arena_strdup(a, lines->list[i]);
    return copy;
}

static struct report_drafted *add_drafted(struct report *r, const struct table *t, const char *found,
                                          const char *policy)
{
    r->drafted = arena_push(r->arena, r->drafted, r->n_drafted, sizeof(*r->drafted));
    struct report_drafted *d = &r->drafted[r->n_drafted++];
    d->table = arena_strdup(r->arena, t->print);
    d->found = found;
    d->policy = policy ? arena_strdup(r->arena, policy) : NULL;
    return d;
}

static void report_policy(struct report *r, const struct draft_policy *p)
{
    static const char *const found[] = {
        [DRAFT_EXPIRES] = "expires", [DRAFT_ENDED] = "ended", [DRAFT_AGE] = "age", [DRAFT_DELETED] = "ended"};
    struct report_drafted *d = add_drafted(r, p->table, found[p->bound], p->name);
    d->certain = p->decide.n == 0;
    d->why = copy_lines(r->arena, &p->why);
    d->n_why = p->why.n;
    d->decide = copy_lines(r->arena, &p->decide);
    d->n_decide = p->decide.n;
}

static void report_rest(struct report *r, const struct draft_rest *x)
{
    const char *found = x->bounded_by ? "bounded" : x->goes_with ? "owned" : "nothing";
    struct report_drafted *d = add_drafted(r, x->table, found, x->goes_with);
    struct draft_lines why = x->why;
    if (x->bounded_by)
        why = (struct draft_lines){(const char **)&x->bounded_by, 1};
    d->certain = x->bounded_by != NULL;
    d->why = copy_lines(r->arena, &why);
    d->n_why = why.n;
}

static void report_draft(struct report *r, const struct draft *d, const char *dsn)
{
    AUTO(text_release) struct text file = {0};
    draft_text(d, dsn, &file);
    r->draft = arena_strdup(r->arena, text_str(&file));
    for (size_t i = 0; i < d->n_policies; i++)
        report_policy(r, &d->policies[i]);
    for (size_t i = 0; i < d->n_rest; i++)
        report_rest(r, &d->rest[i]);
}

struct lapse_report *lapse_draft(const char *dsn)
{
    return lapse_draft_with(dsn, NULL);
}

struct lapse_report *lapse_draft_with(const char *dsn, const struct lapse_options *o)
{
    static const struct lapse_options none = {0};
    AUTO(drafting_release) struct drafting g = {0};
    struct err e = ERR_INIT;
    int64_t started = when_monotonic_us();
    g.work.report = report_new(REPORT_DRAFT, "init");
    g.work.options = o ? o : &none;
    g.work.reads = true;
    const struct patience patience = {.stop = work_asked, .context = &g.work};
    if (store_open_patiently(dsn, true, &patience, &g.work.store, &e) < 0 || make_draft(&g, &e) < 0)
        work_fail(&g.work, &e);
    else
        report_draft(g.work.report, g.draft, dsn);
    return work_finish(&g.work, started);
}
