/* page: contract -> the operators' page: what bounds each table, what prunes it, what can be relied on. Pure:
 * the contract alone, no database, no clock, so that the same contract always gives the same bytes. */
#ifndef LAPSE_PAGE_H
#define LAPSE_PAGE_H

#include "report/report.h"

/* Sentences. A line is prose with marks in it (internal.h); whoever shows it escapes both. */
struct page_cell {
    const char **lines;
    size_t n;
};

/* A table (n_columns > 0), or a list. */
struct page_section {
    const char *title;
    const char *const *columns;
    size_t n_columns;
    struct page_cell *cells; /* n_rows times n_columns */
    size_t n_rows;
    struct page_cell list;
};

enum { PAGE_SECTIONS_MOST = 5 };
struct page {
    struct arena *arena;             /* owns everything but the contract */
    const struct contract *contract; /* must outlive the page */
    const char *title;
    const char *source, *intro;    /* lines */
    const struct policy **ordered; /* policies of one table stand together, else in the order of the file */
    struct page_section sections[PAGE_SECTIONS_MOST];
    size_t n_sections;
    const struct page_section *policies, *purges, *own, *failures; /* of these; NULL: there is none */
};

struct page *page_make(const struct contract *c);
void page_free(struct page *p);
void page_free_p(struct page **p);

void page_markdown(const struct page *p, struct text *out);
void page_html(const struct page *p, struct text *out); /* one file: its style inside, no scripts */
void page_json(const struct page *p, struct text *out); /* the same facts as data, one object on one line */

/* Where a page that was read differs from the one that should be there; CRLF is a line's end too. */
struct page_difference {
    struct place at;
    const char *expected, *found; /* parts of the two lines, in the arena */
};
bool page_differs(struct arena *a, const char *expected, const char *found, size_t found_len,
                  struct page_difference *ret);

#endif
