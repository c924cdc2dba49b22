/* html: the page as one HTML file that needs nothing else, on a screen and on paper. */
#include "page/internal.h"

/* On paper: landscape for five columns, the table's head on every sheet, no row cut in two unless it is
 * longer than a sheet. On a narrow screen each row becomes a card whose cells name their columns. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--head:#f3f5f7;--code:#eff2f5;"
    "--paper:#fff}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;"
    "--head:#1c2128;--code:#262c36;--paper:#0d1117}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:100rem;padding:1.5rem;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif}\n"
    "h1{font-size:1.75rem;line-height:1.25;margin:.5rem 0}\n"
    "h2{font-size:1.25rem;margin:2rem 0 .75rem}\n"
    ".source{color:var(--soft);font-size:.875rem;margin:0}\n"
    "table{border-collapse:collapse;width:100%;table-layout:fixed;font-size:.875rem}\n"
    "th,td{border:1px solid var(--line);padding:.5rem .625rem;text-align:left;vertical-align:top;"
    "overflow-wrap:anywhere}\n"
    "thead th{background:var(--head)}\n"
    "tbody th{font-weight:400}\n"
    "th:first-child{width:14%}\n"
    "td p,th p{margin:0 0 .375rem}\n"
    "td p:last-child,th p:last-child{margin:0}\n"
    "code{background:var(--code);border-radius:3px;padding:.1em .3em;font:.9em "
    "ui-monospace,SFMono-Regular,Menlo,"
    "Consolas,\"Liberation Mono\",monospace;overflow-wrap:anywhere;-webkit-box-decoration-break:clone;"
    "box-decoration-break:clone}\n"
    "li{margin:.375rem 0;overflow-wrap:anywhere}\n"
    "@media screen and (max-width:50rem){table,tbody,tr,th,td{display:block;width:auto}thead{display:none}"
    "tr{border:1px solid var(--line);margin:0 0 1rem}th,td,th:first-child{border:0;width:auto}"
    "tbody th{background:var(--head)}td::before{content:attr(data-column);display:block;color:var(--soft);"
    "font-size:.75rem}}\n"
    "@page{size:landscape;margin:14mm}\n"
    "@media print{body{max-width:none;padding:0;font-size:10pt}h2{break-after:avoid}table{font-size:8pt}"
    "thead{display:table-header-group}tr,li{break-inside:avoid}th,td{padding:3pt 4pt}"
    "code{background:none;padding:0}thead th{background:none;border-bottom:1.5pt solid var(--ink)}}\n";

static void add_escaped(const char *s, size_t len, struct text *out)
{
    for (size_t i = 0; i < len; i++) {
        const char *entity = s[i] == '<'   ? "&lt;"
                             : s[i] == '>' ? "&gt;"
                             : s[i] == '&' ? "&amp;"
                             : s[i] == '"' ? "&quot;"
                                           : NULL;
        if (entity)
            text_add(out, entity);
        else
            text_add_n(out, &s[i], 1);
    }
}

static void add_line(const char *line, struct text *out)
{
    struct piece piece;
    while (piece_next(&line, &piece)) {
        const char *element = piece.mark == MARK_CODE ? "code" : piece.mark == MARK_STRONG ? "strong" : NULL;
        if (element)
            text_addf(out, "<%s>", element);
        add_escaped(piece.text, piece.len, out);
        if (element)
            text_addf(out, "</%s>", element);
    }
}

static void add_cell(const struct page_section *s, size_t column, const struct page_cell *cell,
                     struct text *out)
{
    if (column == 0)
        text_add(out, "<th scope=\"row\">");
    else
        text_addf(out, "<td data-column=\"%s\">", s->columns[column]);
    for (size_t i = 0; i < cell->n; i++) {
        text_add(out, "<p>");
        add_line(cell->lines[i], out);
        text_add(out, "</p>");
    }
    text_add(out, column == 0 ? "</th>\n" : "</td>\n");
}

static void add_table(const struct page_section *s, struct text *out)
{
    text_add(out, "<table>\n<thead>\n<tr>");
    for (size_t i = 0; i < s->n_columns; i++)
        text_addf(out, "<th scope=\"col\">%s</th>", s->columns[i]);
    text_add(out, "</tr>\n</thead>\n<tbody>\n");
    for (size_t i = 0; i < s->n_rows; i++) {
        text_add(out, "<tr>\n");
        for (size_t k = 0; k < s->n_columns; k++)
            add_cell(s, k, &s->cells[i * s->n_columns + k], out);
        text_add(out, "</tr>\n");
    }
    text_add(out, "</tbody>\n</table>\n");
}

static void add_list(const struct page_cell *list, struct text *out)
{
    text_add(out, "<ul>\n");
    for (size_t i = 0; i < list->n; i++) {
        text_add(out, "<li>");
        add_line(list->lines[i], out);
        text_add(out, "</li>\n");
    }
    text_add(out, "</ul>\n");
}

void page_html(const struct page *p, struct text *out)
{
    text_addf(out,
              "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
              "'unsafe-inline'\">\n"
              "<title>%s</title>\n<style>\n%s</style>\n</head>\n<body>\n<p class=\"source\">",
              p->title, style);
    add_line(p->source, out);
    text_addf(out, "</p>\n<h1>%s</h1>\n<p>", p->title);
    add_line(p->intro, out);
    text_add(out, "</p>\n");
    for (size_t i = 0; i < p->n_sections; i++) {
        const struct page_section *s = &p->sections[i];
        text_addf(out, "<h2>%s</h2>\n", s->title);
        if (s->n_columns)
            add_table(s, out);
        else
            add_list(&s->list, out);
    }
    text_add(out, "</body>\n</html>\n");
}
