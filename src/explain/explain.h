/* explain: why one row is, is not, or will be due. A plan -> what to ask of the row; the answer -> a line per
 * condition, and a verdict. Pure: the engine judges, nothing is judged again here. */
#ifndef LAPSE_EXPLAIN_H
#define LAPSE_EXPLAIN_H

#include "store/store.h"

/* A value of the row, as stored. */
struct explain_value {
    const char *column;
    enum type_class type;
    struct value value;
};

/* One condition. Its kids, if it has any, follow it one deeper. */
struct explain_line {
    const char *part; /* the contract's word for it: "rows", "age", "after" */
    int depth;
    const char *demand; /* in words */
    bool has_value;
    struct explain_value value;
    bool has_at; /* the value is a time that can be reckoned with */
    instant at;
    bool judged; /* false: it only says what another line reckons with */
    enum verdict verdict;
    const char *said;     /* the verdict in words */
    const char *reason;   /* NULL: the row is not kept for this; else why it is, in words */
    bool never;           /* kept for it as long as the row is as it is */
    bool later;           /* kept for it until due_at, and not longer */
    instant due_at;       /* later */
    bool ranks;           /* it is about its place in its group: */
    int64_t rank, ranked; /* the newest is 1, of so many; 0: it is not ranked */
    bool counts;          /* it is about other rows: */
    int64_t total;        /* how many there are */
    const char **keys;    /* the first of them, "id=7" */
    size_t n_keys;
    const char *of_table; /* whose rows */
};

enum due_kind { DUE_NOW, DUE_LATER, DUE_NOT, DUE_NEVER };
const char *due_kind_name(enum due_kind k); /* "due", "later", "not due", "never" */

struct explanation {
    const char *table;
    struct explain_value *key;
    size_t n_key;
    const char *key_text; /* "id=42" */
    enum due_kind kind;
    instant due_at; /* DUE_LATER; an engine that judges the row at that time says it is due */
    struct explain_line *lines;
    size_t n_lines;
    const char **tables; /* what would go: rows per table, the row's own last */
    int64_t *gone;
    size_t n_tables;
    const char **detach_tables;
    int64_t *detached;
    size_t n_detach_tables;
};

/* At work: the plan must outlive it; everything else lives in the arena. */
struct explain_source; /* what of the answer a line shows */
struct explaining {
    struct arena *arena;
    const struct plan *plan;
    struct explanation *explanation;
    struct explain_source *sources; /* per line */
    struct inquiry inquiry;
};

/* The words of a key, one per key column, as a condition. The error says what was read and what is allowed.
 * Words must be UTF-8. */
int explain_key(struct arena *a, const struct table *t, const char *const *words, size_t n,
                const struct expr **ret, struct err *e);
/* What to ask: fills x->inquiry and the lines as far as they follow from the plan. enabled: whether the
 * policy runs at all. */
void explain_begin(struct explaining *x, struct arena *a, const struct plan *p, const struct expr *key,
                   bool enabled);
/* What was answered (answer->found is 1). DUE_LATER is then a claim: explain_confirm says whether the engine
 * agrees. */
void explain_end(struct explaining *x, const struct answer *answer);
void explain_confirm(struct explanation *x, bool due_then);

/* A condition in words: "status is completed or failed". A value: 'it''s', 42, NULL. */
void expr_print(const struct expr *x, struct text *out);
void explain_value_print(enum type_class type, const struct value *v, struct text *out);
/* "outbox(job_id)" */
void join_print(const struct table *t, const struct join *j, struct text *out);
/* "id=7", "a=1, b=2" */
void key_print(const struct table *t, const struct value *row, struct text *out);

#endif
