/* screen: what is shown to people: texts made safe, wrapped and aligned, colours where they are
 * allowed. Part of report. */
#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "base/quote.h"
#include "report/screen.h"

/* --- texts ------------------------------------------------------------------------------------ */

/* The mark for cut text, if the terminal's locale can show it. Asks without setting the process's locale. */
const char *cut_mark(void)
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

int columns(const char *s)
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

static const char *seen(const struct screen *v, const char *s, bool lines)
{
    AUTO(text_release) struct text t = {0};
    text_add_seen(&t, s, lines);
    return arena_strndup(v->arena, text_str(&t), t.len);
}

const char *clean(const struct screen *v, const char *s)
{
    return seen(v, s, false);
}

const char *clean_lines(const struct screen *v, const char *s)
{
    return seen(v, s, true);
}

/* 1234567 -> "1,234,567" */
const char *number(const struct screen *v, int64_t n)
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
const char *count(const struct screen *v, int64_t n, const char *one, const char *many)
{
    return arena_printf(v->arena, "%s %s", number(v, n), n == 1 ? one : many);
}

const char *duration(const struct screen *v, int64_t us)
{
    AUTO(text_release) struct text t = {0};
    span_format_rough(us, &t);
    return arena_strdup(v->arena, text_str(&t));
}

const char *utc(const struct screen *v, instant at)
{
    char buf[WHEN_TEXT_SIZE];
    return arena_strdup(v->arena, when_format_local(at, 0, buf));
}

/* --- writing ---------------------------------------------------------------------------------- */

void put(const struct screen *v, enum style style, const char *s, size_t len)
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

void put_line(const struct screen *v, enum style style, const char *s)
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
void put_text(const struct screen *v, enum style style, const char *s, int at, int indent)
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
void put_remark(const struct screen *v, enum style style, const char *heading, const char *text)
{
    const char *head = arena_printf(v->arena, "  %s: ", heading);
    int wide = columns(head);
    put(v, style, head, strlen(head));
    put_text(v, PLAIN, clean_lines(v, text), wide, wide < 24 ? wide : 6);
}

/* --- grids: rows of aligned cells, with remarks between them --------------------------------------- */

static struct grid_line *grid_add(struct grid *g, enum style style)
{
    g->lines = arena_push(g->arena, g->lines, g->n, sizeof(*g->lines));
    g->lines[g->n] = (struct grid_line){.style = style};
    return &g->lines[g->n++];
}

void grid_row(struct grid *g, enum style style, const char *const cells[CELLS_MOST])
{
    struct grid_line *line = grid_add(g, style);
    for (size_t i = 0; i < g->n_columns; i++)
        line->cells[i] = cells[i] ? cells[i] : "";
}

void grid_remark(struct grid *g, enum style style, const char *heading, const char *text)
{
    struct grid_line *line = grid_add(g, style);
    line->heading = heading;
    line->cells[0] = text;
}

/* The width of each column; returns the width of all. */
int grid_measure(const struct grid *g, int widths[CELLS_MOST])
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

/* The width of all columns when those that may shrink have. */
static int grid_fit(const struct screen *v, const struct grid *g, int widths[CELLS_MOST])
{
    int sum = grid_measure(g, widths);
    if (v->width)
        grid_shrink(g, widths, sum - v->width);
    sum = 2 * ((int)g->n_columns - 1);
    for (size_t c = 0; c < g->n_columns; c++)
        sum += widths[c];
    return sum;
}

void grid_print(const struct screen *v, const struct grid *whole)
{
    int widths[CELLS_MOST];
    struct grid g = *whole;
    if (grid_fit(v, &g, widths) > v->width && v->width && g.spare) {
        g.n_columns--;
        grid_fit(v, &g, widths);
    }
    for (size_t i = 0; i < g.n; i++) {
        const struct grid_line *line = &g.lines[i];
        if (line->heading) {
            put_remark(v, line->style, line->heading, line->cells[0]);
            continue;
        }
        for (size_t c = 0; c < g.n_columns; c++)
            put_cell(v, &g, line, c, widths[c]);
        fputc('\n', v->out);
    }
}

/* Adds "3 skipped" to a list of such. */
void list_add(struct text *t, const char *s)
{
    if (t->len)
        text_add(t, ", ");
    text_add(t, s);
}
