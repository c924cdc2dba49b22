/* What the files of page share: words and their marks. Private to page. */
#ifndef LAPSE_PAGE_INTERNAL_H
#define LAPSE_PAGE_INTERNAL_H

#include "page/page.h"

/* Marks inside a line. What the contract says cannot hold them: words_clean() turns them into blanks. */
enum mark { MARK_CODE = 1, MARK_STRONG = 2, MARK_END = 3 };
/* The next piece of a line: text between two marks. False at the end. */
struct piece {
    enum mark mark; /* MARK_END: plain prose */
    const char *text;
    size_t len;
};
bool piece_next(const char **line, struct piece *ret);

void cell_add(struct arena *a, struct page_cell *cell, const char *fmt, ...) PRINTF(3, 4);

/* --- words.c: each returns text in the arena ----------------------------------------------- */

/* On one line, valid UTF-8, no control characters. For every text of the contract that is shown. */
const char *words_clean(struct arena *a, const char *s);
const char *words_code(struct arena *a, const char *s);
const char *words_strong(struct arena *a, const char *s);
/* A text of the contract as a sentence: the end gets its full stop, a first plain word its capital. */
const char *words_sentence(struct arena *a, const char *s, bool capital);
const char *words_table(struct arena *a, const struct table_name *t);
const char *words_ref(struct arena *a, const struct ref *r);
const char *words_number(struct arena *a, int64_t n);                   /* "1,000" */
const char *words_count(struct arena *a, int64_t n, const char *thing); /* "1 row", "1,000 rows" */
const char *words_percent(struct arena *a, double fraction);            /* "12.5 %" */
const char *words_time(struct arena *a, int64_t us);                    /* "1 hour 30 minutes" */
/* "a, b and c"; of more than eight the first ones, and how many others. */
const char *words_list(struct arena *a, const char *const *items, size_t n, const char *last);
const char *words_columns(struct arena *a, const struct name *columns, size_t n, const char *last);
const char *words_value(struct arena *a, const struct scalar *v);
/* "`status` is completed or failed, and `attempts` is at least 3" */
const char *words_cond(struct arena *a, const struct cond *c);
bool words_cond_compound(const struct cond *c); /* it has commas of its own */
/* "lifecycle_prune_rows_total{scheduler="s",table="t"}": names and values in turn, NULL at the end. No mark.
 */
const char *words_metric(struct arena *a, const char *name, ...) __attribute__((sentinel));

/* --- policy.c: the cells of one row -------------------------------------------------------- */

enum { CELL_TABLE, CELL_BOUNDING, CELL_TRIGGER, CELL_INVARIANT, CELL_OBSERVABILITY, N_POLICY_CELLS };
void policy_cells(struct arena *a, const struct contract *c, const struct policy *p,
                  struct page_cell ret[N_POLICY_CELLS]);
const struct scheduler *scheduler_of(const struct contract *c, const struct policy *p);

/* --- purge.c ------------------------------------------------------------------------------- */

enum { CELL_SPACE, CELL_WHEN, CELL_ERASES, CELL_PURGE_INVARIANT, CELL_PURGE_OBSERVABILITY, N_PURGE_CELLS };
void purge_cells(struct arena *a, const struct contract *c, const struct purge_space *s,
                 struct page_cell ret[N_PURGE_CELLS]);

#endif
