/* What the files that show reports to people share. Private to report. */
#ifndef LAPSE_REPORT_SCREEN_H
#define LAPSE_REPORT_SCREEN_H

#include "report/report.h"

enum style { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN };

/* Where it is shown. The arena is for texts that live as long as the call. */
struct screen {
    struct arena *arena;
    FILE *out;
    bool colour;
    int width;       /* 0: not a terminal, nothing is wrapped or cut */
    const char *cut; /* what stands for text that was cut off */
};
const char *cut_mark(void); /* for a screen's cut */

/* Texts; those made live in the screen's arena. */
int columns(const char *s); /* how many it takes on a terminal */
/* A name, a value, a message may hold anything: what people would not see as it is, is escaped. clean_lines:
 * of lapse's own writing, which has lines; what is not its own was escaped in it before. */
const char *clean(const struct screen *v, const char *s);
const char *clean_lines(const struct screen *v, const char *s);
const char *number(const struct screen *v, int64_t n);                                   /* 1,234,567 */
const char *count(const struct screen *v, int64_t n, const char *one, const char *many); /* "2,000 rows" */
const char *duration(const struct screen *v, int64_t us);
const char *utc(const struct screen *v, instant at);
void list_add(struct text *t, const char *s); /* with a comma before it where something is there */

/* Writing. put_text: wrapped; from the second line on it begins at column `indent`; the cursor stands at
 * column `at`. put_remark: "  heading: text". */
void put(const struct screen *v, enum style style, const char *s, size_t len);
void put_line(const struct screen *v, enum style style, const char *s);
void put_text(const struct screen *v, enum style style, const char *s, int at, int indent);
void put_remark(const struct screen *v, enum style style, const char *heading, const char *text);

/* Grids: rows of aligned cells, with remarks between them. */
enum { CELLS_MOST = 7 };
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
    bool spare;               /* the last column is left out where there is no room for it */
};
void grid_row(struct grid *g, enum style style, const char *const cells[CELLS_MOST]);
void grid_remark(struct grid *g, enum style style, const char *heading, const char *text);
int grid_measure(const struct grid *g, int widths[CELLS_MOST]); /* each column; returns the width of all */
void grid_print(const struct screen *v, const struct grid *g);

/* The parts of report_text that have a file of their own. */
void show_explain(const struct screen *v, const struct report *r);
void show_status(const struct screen *v, const struct report *r);
void show_history(const struct screen *v, const struct report *r);

#endif
