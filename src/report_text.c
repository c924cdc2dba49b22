/* report_text: a report for people: aligned tables, sentences, colours where they are allowed. */
#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "report.h"

enum style { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN };

/* Where it is shown. The arena is for texts that live as long as the call. */
struct screen {
    struct arena *arena;
    FILE *out;
    bool colour;
    int width;       /* 0: not a terminal, nothing is wrapped or cut */
    const char *cut; /* what stands for text that was cut off */
};

/* --- texts ------------------------------------------------------------------------------------ */

/* The mark for cut text, if the terminal's locale can show it. Asks without setting the process's locale. */
static const char *cut_mark(void)
{
    locale_t l = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!l)
        return "~";
    bool utf8 = strcmp(nl_langinfo_l(CODESET, l), "UTF-8") == 0;
    freelocale(l);
    return utf8 ? "…" : "~";
}

/* How many columns the character of n bytes at s takes. */
static int char_columns(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    unsigned c = n == 1   ? u[0]
                 : n == 2 ? (u[0] & 31u) << 6 | (u[1] & 63u)
                 : n == 3 ? (u[0] & 15u) << 12 | (u[1] & 63u) << 6 | (u[2] & 63u)
                          : 0x20000u;
    if ((c >= 0x300 && c < 0x370) || (c >= 0x200B && c < 0x2010) || (c >= 0xFE00 && c < 0xFE10))
        return 0;
    bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xA4D0) || (c >= 0xAC00 && c < 0xD7A4) ||
                (c >= 0xF900 && c < 0xFB00) || (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF00 && c < 0xFF61) ||
                c >= 0x1F300;
    return wide ? 2 : 1;
}

static int columns(const char *s)
{
    int sum = 0;
    for (size_t n; *s; s += n) {
        n = report_utf8(s);
        n = n ? n : 1;
        sum += char_columns(s, n);
    }
    return sum;
}

/* How many bytes of s fit into so many columns. */
static size_t bytes_within(const char *s, int room)
{
    size_t at = 0;
    while (s[at]) {
        size_t n = report_utf8(s + at);
        n = n ? n : 1;
        room -= char_columns(s + at, n);
        if (room < 0)
            break;
        at += n;
    }
    return at;
}

/* A name or a message may hold anything: escape what could command a terminal. Newlines stay. */
static const char *clean(const struct screen *v, const char *s)
{
    AUTO(text_release) struct text t = {0};
    while (*s) {
        unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
        size_t n = report_utf8(s);
        bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F || (c == 0xC2 && next < 0xA0);
        if (n > 0 && !control)
            text_add_n(&t, s, n);
        else
            for (size_t i = 0; i < (n ? n : 1); i++)
                text_addf(&t, "\\x%02x", (unsigned char)s[i]);
        s += n ? n : 1;
    }
    return arena_strndup(v->arena, text_str(&t), t.len);
}

/* 1234567 -> "1,234,567" */
static const char *number(const struct screen *v, int64_t n)
{
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof(digits), "%llu",
                                  n < 0 ? -(unsigned long long)n : (unsigned long long)n);
    AUTO(text_release) struct text t = {0};
    if (n < 0)
        text_add(&t, "-");
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            text_add(&t, ",");
        text_add_n(&t, digits + i, 1);
    }
    return arena_strndup(v->arena, text_str(&t), t.len);
}

/* "1 row", "2,000 rows" */
static const char *count(const struct screen *v, int64_t n, const char *one, const char *many)
{
    return arena_printf(v->arena, "%s %s", number(v, n), n == 1 ? one : many);
}

static const char *duration(const struct screen *v, int64_t us)
{
    AUTO(text_release) struct text t = {0};
    span_format_rough(us, &t);
    return arena_strdup(v->arena, text_str(&t));
}

static const char *utc(const struct screen *v, instant at)
{
    char buf[WHEN_TEXT_SIZE];
    return arena_strdup(v->arena, when_format_local(at, 0, buf));
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put(const struct screen *v, enum style style, const char *s, size_t len)
{
    static const char *const codes[] = {"",         "\033[1m",  "\033[2m", "\033[31m",
                                        "\033[32m", "\033[33m", "\033[36m"};
    bool coloured = v->colour && style != PLAIN && len > 0;
    if (coloured)
        fputs(codes[style], v->out);
    fwrite(s, 1, len, v->out);
    if (coloured)
        fputs("\033[0m", v->out);
}

static void put_line(const struct screen *v, enum style style, const char *s)
{
    put(v, style, s, strlen(s));
    fputc('\n', v->out);
}

/* How much of the line at s (which ends at s[len]) fits into room columns, broken at a blank if there is one.
 */
static size_t wrapped_part(const char *s, size_t len, int room)
{
    size_t fits = bytes_within(s, room);
    if (fits >= len)
        return len;
    for (size_t i = fits; i > 0; i--)
        if (s[i] == ' ')
            return i;
    return fits > 0 ? fits : len; /* not even one character fits: give up wrapping */
}

/* A text of one or more lines; from the second on, also after wrapping, they begin at column `indent`. The
 * cursor stands at column `at`. */
static void put_text(const struct screen *v, enum style style, const char *s, int at, int indent)
{
    for (;;) {
        size_t len = strcspn(s, "\n");
        size_t part = v->width > indent + 20 ? wrapped_part(s, len, v->width - at) : len;
        put(v, style, s, part);
        fputc('\n', v->out);
        s += part;
        if (*s == '\n' || *s == ' ')
            s++;
        if (!*s)
            return;
        fprintf(v->out, "%*s", indent, "");
        at = indent;
    }
}

/* "  heading: text", its further lines below its first. */
static void put_remark(const struct screen *v, enum style style, const char *heading, const char *text)
{
    const char *head = arena_printf(v->arena, "  %s: ", heading);
    int wide = columns(head);
    put(v, style, head, strlen(head));
    put_text(v, PLAIN, clean(v, text), wide, wide < 24 ? wide : 6);
}

/* --- grids: rows of aligned cells, with remarks between them --------------------------------------- */

enum { CELLS_MOST = 6 };
struct grid_line {
    enum style style;
    const char *heading; /* set: a remark, not cells */
    const char *cells[CELLS_MOST];
};
struct grid {
    struct arena *arena;
    struct grid_line *lines;
    size_t n;
    size_t n_columns;
    bool right[CELLS_MOST];   /* aligned to the right */
    bool shrinks[CELLS_MOST]; /* cut when the terminal is too narrow */
};

static struct grid_line *grid_add(struct grid *g, enum style style)
{
    g->lines = arena_push(g->arena, g->lines, g->n, sizeof(*g->lines));
    g->lines[g->n] = (struct grid_line){.style = style};
    return &g->lines[g->n++];
}

static void grid_row(struct grid *g, enum style style, const char *const cells[CELLS_MOST])
{
    struct grid_line *line = grid_add(g, style);
    for (size_t i = 0; i < g->n_columns; i++)
        line->cells[i] = cells[i] ? cells[i] : "";
}

static void grid_remark(struct grid *g, enum style style, const char *heading, const char *text)
{
    struct grid_line *line = grid_add(g, style);
    line->heading = heading;
    line->cells[0] = text;
}

/* The width of each column; returns the width of all. */
static int grid_measure(const struct grid *g, int widths[CELLS_MOST])
{
    int sum = 2 * ((int)g->n_columns - 1);
    for (size_t c = 0; c < g->n_columns; c++) {
        widths[c] = 0;
        for (size_t i = 0; i < g->n; i++) {
            int w = g->lines[i].heading ? 0 : columns(g->lines[i].cells[c]);
            widths[c] = w > widths[c] ? w : widths[c];
        }
        sum += widths[c];
    }
    return sum;
}

/* Takes from the widest column that may shrink, one by one, until it fits or none is wider than 8. */
static void grid_shrink(const struct grid *g, int widths[CELLS_MOST], int excess)
{
    for (; excess > 0; excess--) {
        size_t widest = CELLS_MOST;
        for (size_t c = 0; c < g->n_columns; c++)
            if (g->shrinks[c] && widths[c] > 8 && (widest == CELLS_MOST || widths[c] > widths[widest]))
                widest = c;
        if (widest == CELLS_MOST)
            return;
        widths[widest]--;
    }
}

static void put_cell(const struct screen *v, const struct grid *g, const struct grid_line *line, size_t c,
                     int width)
{
    const char *s = line->cells[c];
    if (columns(s) > width)
        s = arena_printf(v->arena, "%.*s%s", (int)bytes_within(s, width - 1), s, v->cut);
    int pad = width - columns(s);
    bool last = true; /* nothing follows: no blanks at the end of a line */
    for (size_t i = c + 1; i < g->n_columns; i++)
        last = last && !*line->cells[i];
    fprintf(v->out, "%*s", c > 0 && !(last && !*s) ? 2 : 0, "");
    if (g->right[c] && *s)
        fprintf(v->out, "%*s", pad, "");
    put(v, line->style, s, strlen(s));
    if (!last && (!g->right[c] || !*s))
        fprintf(v->out, "%*s", pad, "");
}

static void grid_print(const struct screen *v, const struct grid *g)
{
    int widths[CELLS_MOST];
    int sum = grid_measure(g, widths);
    if (v->width)
        grid_shrink(g, widths, sum - v->width);
    for (size_t i = 0; i < g->n; i++) {
        const struct grid_line *line = &g->lines[i];
        if (line->heading) {
            put_remark(v, line->style, line->heading, line->cells[0]);
            continue;
        }
        for (size_t c = 0; c < g->n_columns; c++)
            put_cell(v, g, line, c, widths[c]);
        fputc('\n', v->out);
    }
}

/* Dependents and detached tables of a policy, indented under it. */
static void grid_tables(const struct screen *v, struct grid *g, const char *word, const char **names,
                        const int64_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        grid_row(g, rows[i] ? PLAIN : DIM,
                 (const char *[CELLS_MOST]){arena_printf(v->arena, "  %s", word), clean(v, names[i]),
                                            number(v, rows[i])});
}

static void grid_dependents(const struct screen *v, struct grid *g, const struct report_policy *p)
{
    grid_tables(v, g, "with", p->tables, p->gone, p->n_tables ? p->n_tables - 1 : 0);
    grid_tables(v, g, "detach", p->detach_tables, p->detached, p->n_detach_tables);
}

/* Adds "3 skipped" to a list of such. */
static void list_add(struct text *t, const char *s)
{
    if (t->len)
        text_add(t, ", ");
    text_add(t, s);
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
    return t.len ? arena_strdup(v->arena, text_str(&t)) : NULL;
}

static void plan_policy(const struct screen *v, const struct report *r, const struct report_policy *p,
                        bool ages, struct grid *g)
{
    const char *name = clean(v, p->policy->name), *table = clean(v, p->table);
    if (p->kind != OUTCOME_DONE) {
        enum style style = p->kind == OUTCOME_DISABLED ? DIM : RED;
        grid_row(g, style, (const char *[CELLS_MOST]){name, table, "-", outcome_name(p->kind)});
        if (p->error)
            grid_remark(g, style, "why", p->error);
        return;
    }
    int64_t rows = report_rows(p);
    grid_row(g, rows ? BOLD : DIM,
             (const char *[CELLS_MOST]){
                 name, table, number(v, rows), p->has_range ? time_cell(v, r, p->oldest, ages) : "-",
                 p->has_range ? time_cell(v, r, p->newest, ages) : "-", cutoff_cell(v, r, p, ages)});
    grid_dependents(v, g, p);
    if (p->n_cutoffs > 1)
        grid_remark(g, DIM, "cutoff", cutoffs_text(v, r, p, ages));
    const char *kept = kept_text(v, p);
    if (kept)
        grid_remark(g, YELLOW, "kept", kept);
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
        const char *sql = clean(v, p->sql);
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

/* ", 1 policy failed, 2 refused": what was not done as the contract says, or nothing. */
static void add_troubles(const struct screen *v, const struct report *r, struct text *t)
{
    static const enum outcome_kind kinds[] = {OUTCOME_FAILED, OUTCOME_FUSE, OUTCOME_REFUSED, OUTCOME_PAUSED,
                                              OUTCOME_STOPPED};
    bool first = true;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        int64_t n = policies_that(r, kinds[i]);
        const char *word = kinds[i] == OUTCOME_FUSE ? "stopped by a fuse" : outcome_name(kinds[i]);
        if (n && first)
            text_addf(t, "; %s %s", count(v, n, "policy", "policies"), word);
        else if (n)
            text_addf(t, ", %s %s", number(v, n), word);
        first = first && n == 0;
    }
}

static void show_plan(const struct screen *v, const struct report *r)
{
    struct grid g = plan_grid(v, r, false);
    int widths[CELLS_MOST];
    bool ages = v->width && grid_measure(&g, widths) > v->width;
    if (ages)
        g = plan_grid(v, r, true);
    grid_print(v, &g);

    int64_t rows = 0, detached = 0;
    for (size_t i = 0; i < r->n_policies; i++) {
        rows += sum_rows(r->policies[i].gone, r->policies[i].n_tables);
        detached += sum_rows(r->policies[i].detached, r->policies[i].n_detach_tables);
    }
    AUTO(text_release) struct text last = {0};
    /* "nothing is due" only where everything was looked at. */
    bool unknown = policies_that(r, OUTCOME_FAILED) + policies_that(r, OUTCOME_REFUSED) > 0;
    text_add(&last, rows || unknown ? arena_printf(v->arena, "%s would go", count(v, rows, "row", "rows"))
                                    : "nothing is due");
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
        list_add(&t, outcome_name(p->kind));
    if (p->n_skipped)
        list_add(&t, arena_printf(v->arena, "%s skipped", number(v, (int64_t)p->n_skipped)));
    return arena_strdup(v->arena, text_str(&t));
}

static void sweep_policy(const struct screen *v, const struct report_policy *p, struct grid *g)
{
    static const enum style styles[] = {
        [OUTCOME_DONE] = BOLD,    [OUTCOME_FAILED] = RED,     [OUTCOME_REFUSED] = RED,
        [OUTCOME_DISABLED] = DIM, [OUTCOME_STOPPED] = YELLOW, [OUTCOME_PAUSED] = YELLOW,
        [OUTCOME_FUSE] = RED};
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
    if (p->error)
        grid_remark(g, style, "why", p->error);
    if (p->left)
        grid_remark(g, YELLOW, "left",
                    arena_printf(v->arena, "%s, locked by others", count(v, p->left, "row", "rows")));
    if (p->unknown)
        grid_remark(
            g, RED, "unknown",
            arena_printf(v->arena, "%s in commits whose outcome is not known; they are not counted as gone",
                         count(v, p->unknown, "row", "rows")));
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
    int64_t rows = 0;
    for (size_t i = 0; i < r->n_policies; i++) {
        sweep_policy(v, &r->policies[i], &g);
        rows += sum_rows(r->policies[i].gone, r->policies[i].n_tables);
    }
    grid_print(v, &g);

    AUTO(text_release) struct text last = {0};
    text_addf(&last, "%s gone in %s", count(v, rows, "row", "rows"), duration(v, r->duration_us));
    if (rows && r->duration_us > 0)
        text_addf(&last, " (%s rows/s)",
                  number(v, (int64_t)((double)rows * US_PER_S / (double)r->duration_us)));
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
    const char *s = clean(v, fix);
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

static void show_check(const struct screen *v, const struct report *r)
{
    size_t n[3];
    report_levels(&r->findings, n);
    for (int level = FINDING_ERROR; level <= FINDING_NOTE; level++)
        for (size_t i = 0; i < r->findings.n; i++)
            if ((int)r->findings.list[i].level == level)
                show_finding(v, r, &r->findings.list[i]);
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
        fputs(clean(&v, r->words), out);
    for (size_t i = 0; i < r->n_remarks; i++)
        put_text(&v, DIM, clean(&v, r->remarks[i]), 0, 0);
    if (r->error)
        fprintf(err, "lapse: %s\n", clean(&errors, r->error));
}
