/* text: a report for people: aligned tables, sentences, colours where they are allowed. */
#include <string.h>

#include "report/screen.h"

/* Dependents and detached tables of a policy, indented under it. */
static void grid_tables(const struct screen *v, struct grid *g, const char *word, const char **names,
                        const int64_t *rows, size_t n, bool known)
{
    for (size_t i = 0; i < n; i++)
        grid_row(g, rows[i] && known ? PLAIN : DIM,
                 (const char *[CELLS_MOST]){arena_printf(v->arena, "  %s", word), clean(v, names[i]),
                                            known ? number(v, rows[i]) : "-", known ? NULL : "not counted"});
}

static void grid_dependents(const struct screen *v, struct grid *g, const struct report_policy *p)
{
    grid_tables(v, g, "with", p->tables, p->gone, p->n_tables ? p->n_tables - 1 : 0, !p->below_unknown);
    grid_tables(v, g, "detach", p->detach_tables, p->detached, p->n_detach_tables, !p->below_unknown);
}

/* --- plan ------------------------------------------------------------------------------------- */

/* A time as a date, or, where that is too wide, as how long ago it was. */
static const char *time_cell(const struct screen *v, const struct report *r, instant at, bool ages)
{
    int64_t us;
    if (!ages || !sub_i64(r->now, at, &us))
        return utc(v, at);
    return us == 0 ? "now" : us < 0 ? utc(v, at) : arena_printf(v->arena, "-%s", duration(v, us));
}

static const char *cutoff_cell(const struct screen *v, const struct report *r, const struct report_policy *p,
                               bool ages)
{
    if (p->cutoff_per_row)
        return "each row's own";
    if (p->n_cutoffs == 0) /* age plays no part */
        return "-";
    if (p->n_cutoffs > 1)
        return "by value";
    return p->cutoffs[0].never ? "never" : time_cell(v, r, p->cutoffs[0].at, ages);
}

static const char *cutoffs_text(const struct screen *v, const struct report *r, const struct report_policy *p,
                                bool ages)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < p->n_cutoffs; i++) {
        const struct cutoff *c = &p->cutoffs[i];
        list_add(&t, c->value ? c->value : "otherwise");
        text_addf(&t, " %s", c->never ? "never" : time_cell(v, r, c->at, ages));
    }
    return arena_strdup(v->arena, text_str(&t));
}

static const char *kept_text(const struct screen *v, const struct report_policy *p)
{
    AUTO(text_release) struct text t = {0};
    if (p->kept_unknown)
        return "not counted: it took too long";
    const struct {
        int64_t n;
        const char *why;
    } kept[] = {{p->null_time, "without a time"},
                {p->unreadable_time, "with an unreadable time"},
                {p->held, "held"},
                {p->waiting, "waiting"}};
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        if (kept[i].n)
            list_add(&t, arena_printf(v->arena, "%s %s", number(v, kept[i].n), kept[i].why));
    if (p->frees)
        text_add(&t, ", some of them for rows that go: more become free then");
    return t.len ? arena_strdup(v->arena, text_str(&t)) : NULL;
}

/* NULL: no table is. */
static const char *split_text(const struct screen *v, const struct report_policy *p)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; p->split && i < p->n_tables; i++)
        if (p->split[i])
            text_addf(&t, "%s%s", t.len ? ", " : "", clean(v, p->tables[i]));
    if (!t.len)
        return NULL;
    text_add(&t, ": rows may go ahead, in transactions of their own");
    return arena_strdup(v->arena, text_str(&t));
}

static const char *dropped_text(const struct screen *v, const struct report_policy *p)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < p->n_partitions; i++)
        if (!p->partitions[i].why)
            list_add(&t, arena_printf(v->arena, "%s (%s)", clean(v, p->partitions[i].name),
                                      count(v, p->partitions[i].rows, "row", "rows")));
    return arena_strdup(v->arena, text_str(&t));
}

/* planned: they would be. */
static void grid_partitions(const struct screen *v, const struct report_policy *p, bool planned,
                            struct grid *g)
{
    const char *dropped = dropped_text(v, p);
    if (*dropped)
        grid_remark(g, DIM, planned ? "drops" : "dropped", dropped);
    for (size_t i = 0; i < p->n_partitions; i++)
        if (p->partitions[i].why)
            grid_remark(g, YELLOW, arena_printf(v->arena, "not dropped %s", clean(v, p->partitions[i].name)),
                        p->partitions[i].why);
    if (planned && p->drops_not)
        grid_remark(g, YELLOW, "drops none", p->drops_not);
}

/* What `check` says of indexes, where counting took too long. */
static void grid_indexes(const struct screen *v, const struct report_policy *p, struct grid *g)
{
    for (size_t i = 0; i < p->n_indexes; i++) {
        const struct finding *f = &p->indexes[i];
        grid_remark(g, YELLOW, "index",
                    f->fix && *f->fix ? arena_printf(v->arena, "%s: %s", f->what, f->fix) : f->what);
    }
}

static void plan_uncounted(const struct screen *v, const struct report_policy *p, struct grid *g)
{
    enum style style = p->kind == OUTCOME_DISABLED ? DIM : p->kind == OUTCOME_STOPPED ? YELLOW : RED;
    const char *word = outcome_name(p->kind);
    if (p->timed_out || p->kind == OUTCOME_STOPPED)
        word = p->least ? arena_printf(v->arena, "not counted (at least %s)", number(v, p->least))
                        : "not counted";
    grid_row(g, style, (const char *[CELLS_MOST]){clean(v, p->policy->name), clean(v, p->table), "-", word});
    if (p->error)
        grid_remark(g, style, "why", p->error);
    grid_indexes(v, p, g);
}

static void plan_policy(const struct screen *v, const struct report *r, const struct report_policy *p,
                        bool ages, struct grid *g)
{
    const char *name = clean(v, p->policy->name), *table = clean(v, p->table);
    if (p->kind != OUTCOME_DONE) {
        plan_uncounted(v, p, g);
        return;
    }
    int64_t rows = report_rows(p);
    grid_row(g, rows ? BOLD : DIM,
             (const char *[CELLS_MOST]){
                 name, table, number(v, rows), p->has_range ? time_cell(v, r, p->oldest, ages) : "-",
                 p->has_range ? time_cell(v, r, p->newest, ages) : "-", cutoff_cell(v, r, p, ages)});
    grid_dependents(v, g, p);
    grid_indexes(v, p, g);
    const char *split = split_text(v, p);
    if (split)
        grid_remark(g, DIM, "split", split);
    grid_partitions(v, p, true, g);
    if (p->n_cutoffs > 1)
        grid_remark(g, DIM, "cutoff", cutoffs_text(v, r, p, ages));
    if (p->walk_why && p->walk != WALK_INDEX && rows)
        grid_remark(g, DIM, "found", p->walk_why);
    const char *kept = kept_text(v, p);
    if (kept)
        grid_remark(g, YELLOW, "kept", kept);
    if (p->circles)
        grid_remark(
            g, YELLOW, "circles",
            "rows that refer to each other in a circle are counted, but ON DELETE RESTRICT keeps them");
    if (p->fuse && *p->fuse_words)
        grid_remark(g, YELLOW, "fuse", p->fuse_words);
    if (p->brake)
        grid_remark(g, YELLOW, "brake", p->brake_words);
}

static struct grid plan_grid(const struct screen *v, const struct report *r, bool ages)
{
    struct grid g = {.arena = v->arena, .n_columns = 6, .right = {[2] = true}, .shrinks = {true, true}};
    grid_row(&g, DIM, (const char *[CELLS_MOST]){"policy", "table", "rows", "oldest", "newest", "cutoff"});
    for (size_t i = 0; i < r->n_policies; i++)
        plan_policy(v, r, &r->policies[i], ages, &g);
    return g;
}

static void plan_statements(const struct screen *v, const struct report *r)
{
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = &r->policies[i];
        if (!p->sql)
            continue;
        put_line(v, DIM, arena_printf(v->arena, "\n-- policy '%s'", clean(v, p->policy->name)));
        const char *sql = clean_lines(v, p->sql);
        fputs(sql, v->out);
        if (*sql && sql[strlen(sql) - 1] != '\n')
            fputc('\n', v->out);
    }
}

static int64_t sum_rows(const int64_t *rows, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += rows[i];
    return sum;
}

/* How many policies ended so. */
static int64_t policies_that(const struct report *r, enum outcome_kind kind)
{
    int64_t n = 0;
    for (size_t i = 0; i < r->n_policies; i++)
        n += r->policies[i].kind == kind;
    return n;
}

/* Those of `plan` whose rows were not counted, since it took too long. They failed, too. */
static int64_t policies_timed_out(const struct report *r)
{
    int64_t n = 0;
    for (size_t i = 0; i < r->n_policies; i++)
        n += r->policies[i].timed_out;
    return n;
}

static const char *outcome_words(enum outcome_kind kind)
{
    switch (kind) {
    case OUTCOME_HELD:
        return "held elsewhere";
    case OUTCOME_BUDGET:
        return "out of budget";
    case OUTCOME_WINDOW:
        return "out of its window";
    default:
        return outcome_name(kind);
    }
}

/* ", 1 policy failed, 2 refused": what was not done as the contract says, or nothing. */
static void add_troubles(const struct screen *v, const struct report *r, struct text *t)
{
    static const enum outcome_kind kinds[] = {OUTCOME_FAILED,  OUTCOME_FUSE, OUTCOME_REFUSED, OUTCOME_PAUSED,
                                              OUTCOME_STOPPED, OUTCOME_HELD, OUTCOME_BUDGET,  OUTCOME_WINDOW};
    int64_t late = policies_timed_out(r);
    bool first = late == 0;
    if (late)
        text_addf(t, "; %s not counted", count(v, late, "policy", "policies"));
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        int64_t n = policies_that(r, kinds[i]) - (kinds[i] == OUTCOME_FAILED ? late : 0);
        const char *word = kinds[i] == OUTCOME_FUSE ? "stopped by a fuse" : outcome_words(kinds[i]);
        if (n && first)
            text_addf(t, "; %s %s", count(v, n, "policy", "policies"), word);
        else if (n)
            text_addf(t, ", %s %s", number(v, n), word);
        first = first && n == 0;
    }
}

/* "nothing is due" only where everything was looked at. */
static const char *all_that_goes(const struct screen *v, const struct report *r)
{
    if (r->not_all && !r->least)
        return "how many rows would go is not known";
    if (r->not_all)
        return arena_printf(v->arena, "at least %s would go", count(v, r->least, "row", "rows"));
    if (!r->most && !policies_that(r, OUTCOME_REFUSED))
        return "nothing is due";
    return arena_printf(v->arena, "%s%s would go", r->at_most ? "at most " : "",
                        count(v, r->most, "row", "rows"));
}

static void show_plan(const struct screen *v, const struct report *r)
{
    struct grid g = plan_grid(v, r, false);
    int widths[CELLS_MOST];
    bool ages = v->width && grid_measure(&g, widths) > v->width;
    if (ages)
        g = plan_grid(v, r, true);
    grid_print(v, &g);

    int64_t detached = 0;
    for (size_t i = 0; i < r->n_policies; i++)
        if (!r->policies[i].below_unknown)
            detached += sum_rows(r->policies[i].detached, r->policies[i].n_detach_tables);
    AUTO(text_release) struct text last = {0};
    text_add(&last, all_that_goes(v, r));
    if (detached)
        text_addf(&last, ", %s would be detached", number(v, detached));
    text_addf(&last, " at %s UTC", utc(v, r->now));
    add_troubles(v, r, &last);
    fputc('\n', v->out);
    put_text(v, BOLD, text_str(&last), 0, 0);
    plan_statements(v, r);
}

/* --- sweep ------------------------------------------------------------------------------------ */

static const char *sweep_note(const struct screen *v, const struct report_policy *p)
{
    AUTO(text_release) struct text t = {0};
    if (p->kind != OUTCOME_DONE)
        list_add(&t, outcome_words(p->kind));
    if (p->n_skipped)
        list_add(&t, arena_printf(v->arena, "%s skipped", number(v, (int64_t)p->n_skipped)));
    return arena_strdup(v->arena, text_str(&t));
}

/* Where waiting was a good part of the time. */
static const char *waited_words(const struct screen *v, const struct report_policy *p)
{
    AUTO(text_release) struct text t = {0};
    for (int r = N_PACE_REASONS - 1; r > PACE_FREE; r--)
        if (p->pace.waited_us[r] >= US_PER_S && p->pace.waited_us[r] >= p->duration_us / 10)
            list_add(&t, arena_printf(v->arena, "%s for %s", duration(v, p->pace.waited_us[r]),
                                      pace_reason_name((enum pace_reason)r)));
    return arena_strdup(v->arena, text_str(&t));
}

static void sweep_policy(const struct screen *v, const struct report_policy *p, struct grid *g)
{
    static const enum style styles[] = {
        [OUTCOME_DONE] = BOLD,    [OUTCOME_FAILED] = RED,     [OUTCOME_REFUSED] = RED,
        [OUTCOME_DISABLED] = DIM, [OUTCOME_STOPPED] = YELLOW, [OUTCOME_PAUSED] = YELLOW,
        [OUTCOME_FUSE] = RED,     [OUTCOME_HELD] = YELLOW,    [OUTCOME_BUDGET] = YELLOW,
        [OUTCOME_WINDOW] = YELLOW};
    const char *note = sweep_note(v, p);
    bool ran = p->n_tables > 0;
    enum style style = p->kind != OUTCOME_DONE ? styles[p->kind]
                       : *note                 ? YELLOW
                       : report_rows(p)        ? BOLD
                                               : DIM;
    grid_row(g, style,
             (const char *[CELLS_MOST]){clean(v, p->policy->name), clean(v, p->table),
                                        ran ? number(v, report_rows(p)) : "-",
                                        ran ? duration(v, p->duration_us) : "", note});
    grid_dependents(v, g, p);
    grid_partitions(v, p, false, g);
    if (p->error)
        grid_remark(g, style, "why", p->error);
    const char *waited = waited_words(v, p);
    if (*waited)
        grid_remark(g, DIM, "waited", waited);
    if (p->left)
        grid_remark(g, YELLOW, "left",
                    arena_printf(v->arena,
                                 p->came_again ? "%s, inserted while it ran or locked by others: as many are "
                                                 "due again as the last look deleted"
                                               : "%s, locked by others",
                                 count(v, p->left, "row", "rows")));
    if (p->unknown > p->unknown_gone)
        grid_remark(
            g, RED, "unknown",
            arena_printf(v->arena, "%s in commits whose outcome is not known; they are not counted as gone",
                         count(v, p->unknown - p->unknown_gone, "row", "rows")));
    if (p->unknown_gone)
        grid_remark(
            g, YELLOW, "unknown",
            arena_printf(v->arena,
                         "%s in commits without an answer are gone, by this sweep or another beside it; "
                         "they are not counted",
                         count(v, p->unknown_gone, "row", "rows")));
    for (size_t i = 0; i < p->n_skipped; i++) {
        const struct skipped_row *s = &p->skipped[i];
        grid_remark(g, YELLOW,
                    arena_printf(v->arena, "skipped %s, %s", clean(v, s->key), clean(v, s->reason)),
                    s->error);
    }
}

/* Nothing went and nothing is to be said of any policy: one line is enough. */
static bool uneventful(const struct report *r)
{
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = &r->policies[i];
        bool quiet = (p->kind == OUTCOME_DONE || p->kind == OUTCOME_DISABLED) && !p->error && !p->n_skipped &&
                     !p->left && !p->unknown && !sum_rows(p->gone, p->n_tables);
        if (!quiet)
            return false;
    }
    return true;
}

static void show_uneventful(const struct screen *v, const struct report *r)
{
    int64_t off = policies_that(r, OUTCOME_DISABLED), n = (int64_t)r->n_policies - off;
    put_line(v, BOLD,
             arena_printf(v->arena, "nothing was due (%s%s, %s)", count(v, n, "policy", "policies"),
                          off ? arena_printf(v->arena, ", %s disabled", number(v, off)) : "",
                          duration(v, r->duration_us)));
}

static void show_sweep(const struct screen *v, const struct report *r)
{
    if (uneventful(r)) {
        show_uneventful(v, r);
        return;
    }
    struct grid g = {
        .arena = v->arena, .n_columns = 5, .right = {[2] = true, [3] = true}, .shrinks = {true, true}};
    grid_row(&g, DIM, (const char *[CELLS_MOST]){"policy", "table", "rows gone", "time", "note"});
    int64_t rows = 0, deleting_us = 0;
    for (size_t i = 0; i < r->n_policies; i++) {
        deleting_us += r->policies[i].deleting_us;
        sweep_policy(v, &r->policies[i], &g);
        rows += sum_rows(r->policies[i].gone, r->policies[i].n_tables);
    }
    grid_print(v, &g);

    AUTO(text_release) struct text last = {0};
    text_addf(&last, "%s gone in %s", count(v, rows, "row", "rows"), duration(v, r->duration_us));
    if (rows && deleting_us > 0) /* of the time in which it deleted, not counted or waited */
        text_addf(&last, " (%s rows/s)", number(v, (int64_t)((double)rows * US_PER_S / (double)deleting_us)));
    add_troubles(v, r, &last);
    fputc('\n', v->out);
    put_text(v, BOLD, text_str(&last), 0, 0);
}

/* --- check ------------------------------------------------------------------------------------ */

/* What to do is never wrapped and keeps its lines: it is there to be copied. */
static void put_fix(const struct screen *v, const char *fix, int indent)
{
    if (!fix || !*fix)
        return;
    fprintf(v->out, "%*s", indent, "");
    put(v, GREEN, "fix:", 4);
    const char *s = clean_lines(v, fix);
    bool many = s[strcspn(s, "\n")] != '\0';
    fputc(many ? '\n' : ' ', v->out);
    while (*s) {
        size_t len = strcspn(s, "\n");
        fprintf(v->out, "%*s%.*s\n", many && len ? indent + 2 : 0, "", (int)len, s);
        s += len + (s[len] == '\n');
    }
}

static void show_finding(const struct screen *v, const struct report *r, const struct finding *f)
{
    static const struct {
        const char *name;
        enum style style;
    } levels[] = {{"error", RED}, {"warning", YELLOW}, {"note", CYAN}};
    enum { INDENT = 9 };
    const char *level = levels[f->level].name;
    put(v, levels[f->level].style, level, strlen(level));

    AUTO(text_release) struct text where = {0};
    report_place(r, f->at, &where);
    const char *place = clean(v, text_str(&where));
    fprintf(v->out, "%*s", INDENT - columns(level), "");
    put(v, DIM, place, strlen(place));
    fputs("  ", v->out);

    const char *what = clean(v, f->what);
    if (f->policy)
        what = arena_printf(v->arena, "policy '%s': %s", clean(v, f->policy), what);
    put_text(v, PLAIN, what, INDENT + columns(place) + 2, INDENT);
    put_fix(v, f->fix, INDENT);
}

/* Tables that the contract does not name are one line, so that what is wrong is not lost among them. */
static bool is_folded(const struct report *r, const struct finding *f, size_t unnamed)
{
    return f->unnamed && f->level == FINDING_NOTE && unnamed > 1 && !r->verbose;
}

static void show_findings(const struct screen *v, const struct report *r)
{
    size_t unnamed = 0;
    for (size_t i = 0; i < r->findings.n; i++)
        unnamed += r->findings.list[i].unnamed;
    bool told = false;
    for (int level = FINDING_ERROR; level <= FINDING_NOTE; level++)
        for (size_t i = 0; i < r->findings.n; i++) {
            const struct finding *f = &r->findings.list[i];
            if ((int)f->level != level || (is_folded(r, f, unnamed) && told))
                continue;
            struct finding all = *f;
            if (is_folded(r, f, unnamed)) {
                told = true;
                all.what = arena_printf(v->arena, "%zu tables have no policy and no unbounded line", unnamed);
                all.fix = "lapse check -v lists them, each with the line to add";
            }
            show_finding(v, r, &all);
        }
}

/* Each statement once, ready for the database's shell. */
static void show_statements(const struct screen *v, const struct report *r)
{
    static const char begin[] = "CREATE INDEX";
    for (size_t i = 0; i < r->findings.n; i++) {
        const char *sql = r->findings.list[i].fix;
        bool fresh = strncmp(sql, begin, strlen(begin)) == 0;
        for (size_t k = 0; k < i; k++)
            fresh = fresh && strcmp(r->findings.list[k].fix, sql) != 0;
        if (fresh)
            fprintf(v->out, "%s;\n", clean(v, sql));
    }
}

static void show_check(const struct screen *v, const struct report *r)
{
    size_t n[3];
    if (r->only_statements) {
        show_statements(v, r);
        return;
    }
    report_levels(&r->findings, n);
    show_findings(v, r);
    if (r->findings.n)
        fputc('\n', v->out);
    const char *notes = count(v, (int64_t)n[FINDING_NOTE], "note", "notes");
    if (r->error) /* it was cut short: no verdict */
        return;
    if (n[FINDING_ERROR] + n[FINDING_WARNING] == 0) {
        put(v, GREEN, "everything the contract says fits the schema", 44);
        put_line(v, PLAIN, n[FINDING_NOTE] ? arena_printf(v->arena, " (%s)", notes) : "");
        return;
    }
    put_line(v, n[FINDING_ERROR] ? RED : YELLOW,
             arena_printf(v->arena, "%s, %s, %s", count(v, (int64_t)n[FINDING_ERROR], "error", "errors"),
                          count(v, (int64_t)n[FINDING_WARNING], "warning", "warnings"), notes));
}

/* --- what went wrong as a whole ---------------------------------------------------------------- */

static void show_mistakes(const struct screen *v, const struct report *r)
{
    for (size_t i = 0; i < r->n_mistakes; i++) {
        AUTO(text_release) struct text where = {0};
        report_place(r, r->mistakes[i].at, &where);
        fprintf(v->out, "%s: %s\n", clean(v, text_str(&where)), clean(v, r->mistakes[i].text));
    }
    fprintf(v->out, "%s in the contract; nothing was done\n",
            count(v, (int64_t)r->n_mistakes, "mistake", "mistakes"));
}

void report_text(const struct report *r, FILE *out, FILE *err, bool colour, int width)
{
    AUTO(arena_free_p) struct arena *arena = arena_new();
    struct screen v = {.arena = arena, .out = out, .colour = colour, .width = width, .cut = cut_mark()};
    struct screen errors = {.arena = arena, .out = err, .cut = v.cut};
    if (r->kind == REPORT_MISTAKES)
        show_mistakes(&errors, r);
    else if (r->kind == REPORT_CHECK)
        show_check(&v, r);
    else if (r->kind == REPORT_PLAN)
        show_plan(&v, r);
    else if (r->kind == REPORT_SWEEP)
        show_sweep(&v, r);
    else if (r->kind == REPORT_WORDS && r->words)
        fputs(clean_lines(&v, r->words), out);
    else if (r->kind == REPORT_DRAFT && r->draft)
        fputs(r->draft, out);
    else if (r->kind == REPORT_EXPLAIN)
        show_explain(&v, r);
    else if (r->kind == REPORT_STATUS)
        show_status(&v, r);
    else if (r->kind == REPORT_HISTORY)
        show_history(&v, r);
    for (size_t i = 0; i < r->n_remarks; i++)
        put_text(&v, DIM, clean(&v, r->remarks[i]), 0, 0);
    if (r->error)
        fprintf(err, "lapse: %s\n", clean_lines(&errors, r->error));
}
