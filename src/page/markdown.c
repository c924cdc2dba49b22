/* markdown: the page as Markdown (CommonMark with GitHub's tables). Nothing in a contract may break a
 * table or become markup. */
#include "page/internal.h"

#include <string.h>

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c & 0x80);
}

/* NULL: as it is. Entities where a backslash would not do everywhere: a bar ends a cell before anything else
 * is looked at. */
static const char *entity(char c)
{
    return c == '|' ? "&#124;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : NULL;
}

/* An underscore inside a word means nothing, so names stay readable. */
static bool needs_backslash(const char *s, size_t at, size_t len)
{
    if (s[at] == '_')
        return at == 0 || at + 1 == len || !is_word(s[at - 1]) || !is_word(s[at + 1]);
    return strchr("\\`*[]~$", s[at]) != NULL;
}

static void add_prose(const char *s, size_t len, struct text *out)
{
    for (size_t i = 0; i < len; i++) {
        if (entity(s[i])) {
            text_add(out, entity(s[i]));
            continue;
        }
        if (needs_backslash(s, i, len))
            text_add(out, "\\");
        text_add_n(out, &s[i], 1);
    }
}

/* Between backticks everything but a bar and a backtick stands for itself. Where those are, an element holds
 * the code, and everything that is not a letter, a digit or a blank is an entity. */
static void add_code(const char *s, size_t len, struct text *out)
{
    bool plain = len > 0;
    for (size_t i = 0; i < len && plain; i++)
        plain = s[i] != '|' && s[i] != '`';
    text_add(out, plain ? "`" : "<code>");
    for (size_t i = 0; i < len; i++) {
        if (plain || is_word(s[i]) || s[i] == ' ')
            text_add_n(out, &s[i], 1);
        else
            text_addf(out, "&#%d;", s[i]);
    }
    text_add(out, plain ? "`" : "</code>");
}

static void add_line(const char *line, struct text *out)
{
    struct piece piece;
    while (piece_next(&line, &piece)) {
        if (piece.mark == MARK_CODE) {
            add_code(piece.text, piece.len, out);
            continue;
        }
        text_add(out, piece.mark == MARK_STRONG ? "**" : "");
        add_prose(piece.text, piece.len, out);
        text_add(out, piece.mark == MARK_STRONG ? "**" : "");
    }
}

static void add_row(const struct page_section *s, const struct page_cell *cells, struct text *out)
{
    for (size_t i = 0; i < s->n_columns; i++) {
        text_add(out, i ? " | " : "| ");
        for (size_t k = 0; k < cells[i].n; k++) {
            text_add(out, k ? " " : "");
            add_line(cells[i].lines[k], out);
        }
    }
    text_add(out, " |\n");
}

static void add_section(const struct page_section *s, struct text *out)
{
    text_addf(out, "\n## %s\n\n", s->title);
    for (size_t i = 0; i < s->n_columns; i++)
        text_addf(out, "%s %s", i ? " |" : "|", s->columns[i]);
    for (size_t i = 0; i < s->n_columns; i++)
        text_add(out, i ? "---|" : " |\n|---|");
    text_add(out, s->n_columns ? "\n" : "");
    for (size_t i = 0; i < s->n_rows; i++)
        add_row(s, &s->cells[i * s->n_columns], out);
    for (size_t i = 0; i < s->list.n; i++) {
        text_add(out, "- ");
        add_line(s->list.lines[i], out);
        text_add(out, "\n");
    }
}

void page_markdown(const struct page *p, struct text *out)
{
    add_line(p->source, out);
    text_addf(out, "\n\n# %s\n\n", p->title);
    add_line(p->intro, out);
    text_add(out, "\n");
    for (size_t i = 0; i < p->n_sections; i++)
        add_section(&p->sections[i], out);
}
