/* status: how the schedulers stand and what past runs did, for people. Part of report. */
#include <string.h>

#include "report/screen.h"
#include "report/status.h"

enum { BAR_MOST = 20 }; /* columns of the longest bar of history */

static bool utf8(const struct screen *v)
{
    return strcmp(v->cut, "~") != 0;
}

/* A column per run: nothing is the lowest, the most rows the highest. */
static const char *chart(const struct screen *v, const int64_t *rows, size_t n)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
    AUTO(text_release) struct text t = {0};
    int64_t most = 1;
    for (size_t i = 0; i < n; i++)
        most = rows[i] > most ? rows[i] : most;
    for (size_t i = 0; i < n; i++) {
        double part = (double)rows[i] / (double)most;
        size_t level = rows[i] > 0 ? 1 + (size_t)(part * 6) : 0;
        text_add(&t, (utf8(v) ? blocks : letters)[level]);
    }
    return arena_strdup(v->arena, text_str(&t));
}

/* In eighths of a column where the terminal can show them. */
static const char *bar(const struct screen *v, int64_t rows, int64_t most)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    AUTO(text_release) struct text t = {0};
    int length = most > 0 ? (int)((double)rows / (double)most * BAR_MOST * 8) : 0;
    if (rows > 0 && length == 0)
        length = 1;
    for (int i = 0; i < length / 8; i++)
        text_add(&t, utf8(v) ? "█" : "#");
    if (length % 8)
        text_add(&t, utf8(v) ? eighths[length % 8] : length < 8 ? "#" : "");
    return arena_strdup(v->arena, text_str(&t));
}

static enum style outcome_style(const struct run_row *r)
{
    static const char *const grave[] = {"failed", "refused", "fuse"};
    for (size_t i = 0; i < COUNT_OF(grave); i++)
        if (strcmp(r->outcome, grave[i]) == 0)
            return RED;
    if (strcmp(r->outcome, "done") != 0 || r->skipped || r->unknown)
        return YELLOW;
    return r->rows ? BOLD : DIM;
}

static const char *ago(const struct screen *v, instant at, instant now)
{
    return now <= at ? "now" : arena_printf(v->arena, "%s ago", duration(v, now - at));
}

/* --- history -------------------------------------------------------------------------------------------- */

static void history_row(const struct screen *v, const struct report *r, const struct run_row *run,
                        int64_t most, struct grid *g)
{
    const char *took =
        run->ended ? duration(v, run->ended_at - run->started) : arena_printf(v->arena, "%s", "");
    enum style style = outcome_style(run);
    grid_row(g, style,
             (const char *[CELLS_MOST]){utc(v, run->started), clean(v, run->scheduler), clean(v, run->source),
                                        clean(v, run->outcome), number(v, run->rows), took,
                                        v->width ? bar(v, run->rows, most) : NULL});
    if (!run->ended)
        grid_remark(g, style, "since",
                    arena_printf(v->arena, "%s, by %s", ago(v, run->started, r->now), run->owner));
    if (run->skipped)
        grid_remark(g, YELLOW, "skipped", count(v, run->skipped, "row", "rows"));
    if (run->unknown)
        grid_remark(g, RED, "unknown",
                    arena_printf(v->arena, "%s in commits whose outcome is not known",
                                 count(v, run->unknown, "row", "rows")));
    if (run->error)
        grid_remark(g, style, "why", run->error);
}

void show_history(const struct screen *v, const struct report *r)
{
    const struct run_rows *runs = r->runs;
    int64_t most = 0, rows = 0;
    struct grid g = {.arena = v->arena,
                     .n_columns = 7,
                     .spare = true,
                     .right = {[4] = true, [5] = true},
                     .shrinks = {[1] = true}};
    if (!runs->n) {
        put_line(v, BOLD, "nothing has run yet");
        return;
    }
    for (size_t i = 0; i < runs->n; i++) {
        most = runs->list[i].rows > most ? runs->list[i].rows : most;
        rows += runs->list[i].rows;
    }
    grid_row(&g, DIM,
             (const char *[CELLS_MOST]){"started (UTC)", "scheduler", "by", "outcome", "rows gone", "time"});
    for (size_t i = 0; i < runs->n; i++)
        history_row(v, r, &runs->list[i], most, &g);
    grid_print(v, &g);
    fputc('\n', v->out);
    put_text(v, BOLD,
             arena_printf(v->arena, "%s gone in %s", count(v, rows, "row", "rows"),
                          count(v, (int64_t)runs->n, "run", "runs")),
             0, 0);
}

/* --- status --------------------------------------------------------------------------------------------- */

static const char *last_cell(const struct screen *v, const struct report *r, const struct status_scheduler *s)
{
    return s->last ? ago(v, s->last->started, r->now) : "never";
}

static const char *next_cell(const struct screen *v, const struct report *r, const struct status_scheduler *s)
{
    if (!s->scheduler->enabled)
        return "disabled";
    if (s->next == NEVER)
        return s->daemon ? "never" : "with lapse run";
    return s->next <= r->now ? s->late_us ? "overdue" : "now"
                             : arena_printf(v->arena, "in %s", duration(v, s->next - r->now));
}

static void say_last(const struct screen *v, const struct report *r, const struct status_scheduler *s,
                     struct grid *g)
{
    const struct run_row *l = s->last;
    if (!l)
        return;
    AUTO(text_release) struct text t = {0};
    text_addf(&t, "%s UTC by %s, %s", utc(v, l->started), l->source, l->owner);
    if (l->ended)
        text_addf(&t, ", took %s", duration(v, l->ended_at - l->started));
    else
        text_addf(&t, ", running for %s", duration(v, r->now > l->started ? r->now - l->started : 0));
    if (l->skipped)
        text_addf(&t, ", %s skipped", count(v, l->skipped, "row", "rows"));
    if (l->unknown)
        text_addf(&t, ", %s not known to be gone", count(v, l->unknown, "row", "rows"));
    grid_remark(g, DIM, "last", arena_strdup(v->arena, text_str(&t)));
}

static void say_late(const struct screen *v, const struct status_scheduler *s, struct grid *g)
{
    if (s->scheduler->enabled && !s->daemon)
        grid_remark(g, DIM, "never", "no lapse run has ticked it yet");
    if (!s->late_us)
        return;
    bool running = !s->daemon->ended;
    grid_remark(g, RED, "late",
                arena_printf(v->arena, "by %s: is lapse run %s?", duration(v, s->late_us),
                             running ? "still at it, or was it killed" : "running"));
}

static void say_lease(const struct screen *v, const struct status_scheduler *s, struct grid *g)
{
    const struct lease_row *l = s->lease;
    if (!s->scheduler->exclusive)
        return;
    const char *text =
        !l || !l->owner[0] ? "free"
        : s->lease_expired
            ? arena_printf(v->arena, "free: that of %s ended at %s UTC", l->owner, utc(v, l->until))
        : l->ends ? arena_printf(v->arena, "held by %s until %s UTC", l->owner, utc(v, l->until))
                  : arena_printf(v->arena, "held by %s; its end cannot be read", l->owner);
    grid_remark(g, DIM, "lease", text);
}

/* " by WHO: REASON" */
static const char *deed_words(const struct screen *v, const struct deed *by)
{
    return arena_printf(v->arena, "%s%s%s%s", *by->who ? " by " : "", by->who, *by->reason ? ": " : "",
                        by->reason);
}

static void say_stops(const struct screen *v, const struct status_scheduler *s, struct grid *g)
{
    for (size_t i = 0; i < s->n_brakes; i++) {
        AUTO(text_release) struct text t = {0};
        brake_words(&s->brakes[i], &t);
        if (s->brakes[i].by.who[0])
            text_addf(&t, "; set by %s", s->brakes[i].by.who);
        grid_remark(g, YELLOW, "brake", arena_strdup(v->arena, text_str(&t)));
    }
    for (size_t i = 0; i < s->n_released; i++)
        grid_remark(g, DIM, "resumed",
                    arena_printf(v->arena, "%s%s%s at %s UTC%s", *s->released[i].name ? "'" : "everything",
                                 s->released[i].name, *s->released[i].name ? "'" : "",
                                 utc(v, s->released[i].since), deed_words(v, &s->released[i].by)));
    for (size_t i = 0; i < s->n_acks; i++)
        grid_remark(
            g, s->acks[i].row.used ? DIM : YELLOW, "ack",
            arena_printf(v->arena, "the fuse of '%s' was acknowledged at %s UTC%s%s", s->acks[i].policy,
                         utc(v, s->acks[i].row.acked_at), deed_words(v, &s->acks[i].row.by),
                         s->acks[i].row.used ? "; a run has used it" : "; the next run may pass"));
    for (size_t i = 0; i < s->n_fuses; i++) {
        const struct status_fuse *f = &s->fuses[i];
        grid_remark(g, RED, "fuse",
                    arena_printf(v->arena,
                                 "that of '%s' tripped at %s UTC: %s or more would have gone, and a run may "
                                 "delete %s (lapse ack %s)",
                                 f->policy, utc(v, f->row.tripped_at), count(v, f->row.rows, "row", "rows"),
                                 number(v, f->row.most), f->policy));
    }
}

static void say_totals(const struct screen *v, const struct report *r, const struct status_scheduler *s,
                       struct grid *g)
{
    const struct run_total *t = &s->total;
    if (!t->runs)
        return;
    grid_remark(g, DIM, "total",
                arena_printf(v->arena, "%s gone in %s since %s UTC%s%s", count(v, t->rows, "row", "rows"),
                             count(v, t->runs, "run", "runs"), utc(v, t->since), t->errors ? ", " : "",
                             t->errors ? count(v, t->errors, "error", "errors") : ""));
    if (t->error)
        grid_remark(g, RED, arena_printf(v->arena, "last error, %s", ago(v, t->error_at, r->now)), t->error);
}

static void status_row(const struct screen *v, const struct report *r, const struct status_scheduler *s,
                       struct grid *g)
{
    const struct run_row *l = s->last;
    enum style style = !s->scheduler->enabled ? DIM : s->late_us ? RED : l ? outcome_style(l) : PLAIN;
    grid_row(
        g, style,
        (const char *[CELLS_MOST]){clean(v, s->scheduler->name), clean(v, s->ticks), last_cell(v, r, s),
                                   l ? clean(v, l->outcome) : "-", l ? number(v, l->rows) : "-",
                                   next_cell(v, r, s), v->width ? chart(v, s->recent, s->n_recent) : NULL});
    say_last(v, r, s, g);
    say_late(v, s, g);
    say_lease(v, s, g);
    say_stops(v, s, g);
    say_totals(v, r, s, g);
}

void show_status(const struct screen *v, const struct report *r)
{
    int64_t rows = 0, late = 0;
    struct grid g = {
        .arena = v->arena, .n_columns = 7, .spare = true, .right = {[4] = true}, .shrinks = {true, true}};
    grid_row(&g, DIM,
             (const char *[CELLS_MOST]){"scheduler", "ticks", "last run", "outcome", "rows gone", "next"});
    for (size_t i = 0; i < r->status->n; i++) {
        status_row(v, r, &r->status->list[i], &g);
        rows += r->status->list[i].total.rows;
        late += r->status->list[i].late_us > 0;
    }
    grid_print(v, &g);
    AUTO(text_release) struct text last = {0};
    text_addf(&last, "%s gone in the history that is kept", count(v, rows, "row", "rows"));
    if (late)
        text_addf(&last, "; %s late", count(v, late, "scheduler is", "schedulers are"));
    fputc('\n', v->out);
    put_text(v, late ? RED : BOLD, text_str(&last), 0, 0);
}
