/* sql: a plan -> SQL text in a dialect. Pure: no connection, no clock. Each function writes one whole
 * statement with its parameters; what engines spell differently is asked of the dialect. */
#ifndef LAPSE_SQL_H
#define LAPSE_SQL_H

#include "store.h"

/* A parameter: a value, or a column of a key set (all rows of it). */
struct param {
    struct value value;   /* set < 0 */
    const char *sql_type; /* the type to bind it as; NULL: the engine's choice */
    int set;              /* >= 0: key set number */
    size_t set_column;    /* index in that set's columns */
};
struct stmt {
    struct text sql;
    struct param *params; /* placeholder n is params[n - 1] */
    size_t n_params;
    struct arena *arena; /* texts of values made for this statement; created on demand */
};
void stmt_release(struct stmt *s);
void stmt_clear(struct stmt *s);

/* How rows that are read are locked: skip those that others hold, wait for them, or skip those and let others
 * share the rest. */
enum lock_mode { LOCK_SKIP, LOCK_WAIT, LOCK_SHARE };

/* What a statement-writing function of a dialect may use. alias is the row's alias, already safe to write. */
struct dialect {
    char quote; /* " or ` */
    const char
        *table_prefix; /* before a table that has no schema: "main." keeps temporary tables out; NULL: none */
    const char *integer_type; /* what a plain number is bound as: "bigint"; NULL: needs none */

    /* Writes the placeholder of params[n - 1] where a value is expected: "$3::integer", "?3". */
    void (*placeholder)(struct stmt *s, size_t n);
    /* "the row's columns are in key set `set`, column numbers at[]". columns[i] belongs with the set's column
     * at[i], whose type is types[i]. Single and composite. PostgreSQL binds arrays, SQLite reads a temporary
     * table. */
    void (*in_set)(struct stmt *s, const char *alias, const struct column *const *columns, size_t n, int set,
                   const size_t *at, const struct column *const *types);
    /* EXPR_TIME: a condition the column's index can serve first, the exact instant after it. False or unknown
     * where the value is unusable (infinite, unreadable text, another storage class). cmp is LT, LE, GT or
     * GE. */
    void (*time_compare)(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                         instant at);
    /* EXPR_TIME_KEEP: time cmp at - keep * unit; false where keep is NULL, <= 0 or so large that the result
     * lies before 1970. cmp is LT or LE. */
    void (*time_keep)(struct stmt *s, const char *alias, const struct time_column *t, enum compare cmp,
                      instant at, const struct column *keep, int64_t keep_unit_us);
    /* True where the value is NULL or usable; never unknown. */
    void (*time_readable)(struct stmt *s, const char *alias, const struct time_column *t);
    /* An expression of the instant in microseconds (integer or exact decimal), NULL where NULL or unusable.
     * Must not raise an error for any value. */
    void (*time_value)(struct stmt *s, const char *alias, const struct time_column *t);
    /* The greatest of several time_value expressions, NULLs ignored. n >= 2. */
    void (*latest)(struct stmt *s, const char *alias, const struct time_column *t, size_t n);
    /* column LIKE pattern (% _ and \ as escape, case counts); column begins with prefix (bytes). Columns are
     * text. */
    void (*like)(struct stmt *s, const char *alias, const struct column *c, const char *pattern);
    void (*prefix)(struct stmt *s, const char *alias, const struct column *c, const char *prefix);
    /* "the column is one of the texts in key set `set`", byte by byte, however the column compares. The texts
     * fit its type. */
    void (*is_text_of_set)(struct stmt *s, const char *alias, const struct column *c, int set);
    bool hex_blobs;        /* bytes are given as the text \x616263 */
    const char *text_cast; /* CAST (x AS this) gives a value's text */
    /* What ends a SELECT that locks rows: " FOR UPDATE OF this SKIP LOCKED", " FOR UPDATE OF …", " FOR SHARE
     * OF …". */
    void (*lock)(struct stmt *s, const char *alias, enum lock_mode mode);
    bool locks_rows; /* false: a transaction that writes keeps all others out, nothing is locked by row */
    const char
        *once; /* WITH x AS: what is worked out once, however often it is looked at: " AS MATERIALIZED " */
    const char
        *nulls_last; /* what sends NULLs to the end of a descending order: " NULLS LAST"; "": they are */
    /* :now in the contract's SQL. */
    void (*now)(struct stmt *s, instant now);
    const char *now_is_text; /* NULL: it is a time. Else what to write where a number is needed */
    /* How lapse's own tables are spelt. */
    struct {
        const char *name_type, *time_type; /* of columns; names compare byte by byte */
        const char *text_type;             /* of columns that hold text of any length */
        const char *bind_name, *bind_time; /* what values are bound as; NULL: the engine's choice */
        enum encoding time;                /* how that type holds an instant */
        const char *clock, *clock_us;      /* the database's clock: as that type; in microseconds */
        const char *later[2];    /* … so many microseconds from now: before and after the number */
        const char *lock;        /* lets one installer work at a time; NULL: a write does */
        const char *has_schema;  /* a row if there is schema {1}; NULL: no schemas */
        const char *no_roles;    /* NULL: there are roles. Else why not */
        const char *number_type; /* of a key that the database counts up by itself */
        const char *by_any[2];   /* an index that serves equality on a text of any length: before and after */
        const char *time_check[3]; /* what makes times comparable as they are: before, between and after two
                                    * mentions of the column; NULL: the type does */
        int time_digits;           /* of a second's fraction that its clock writes */
    } own;
    /* How to scan the contract's SQL text. */
    bool dollar_quotes;     /* $tag$ … $tag$ */
    bool backslash_strings; /* E'…\'…' */
    bool nested_comments;
    bool question_marks_ok;   /* ? is an operator, not a parameter */
    bool backticks, brackets; /* `name`, [name] quote too */
};

/* Building blocks, for dialects too. */
void sql_name(struct stmt *s, const struct dialect *d, const char *name); /* quoted */
void sql_column(struct stmt *s, const struct dialect *d, const char *alias,
                const struct column *c); /* alias."c" */
void sql_table(struct stmt *s, const struct dialect *d, const struct table *t);
void sql_bind(struct stmt *s, const struct dialect *d, struct value v,
              const char *sql_type); /* adds it, writes it */
void sql_bind_integer(struct stmt *s, const struct dialect *d, int64_t i);
void sql_bind_text(struct stmt *s, const struct dialect *d, const char *text,
                   const char *sql_type); /* copied */
size_t sql_bind_set(struct stmt *s, int set, size_t column,
                    const char *sql_type); /* adds it only; returns n */
const char *sql_compare(enum compare cmp); /* " < " */

/* Copies a condition of the contract with `this` as alias and :now bound, or says why it may not stand inside
 * parentheses: a ;, an unbalanced parenthesis, an open string or comment, a parameter other than :now. s may
 * be NULL to check only. */
int sql_condition(struct stmt *s, const struct dialect *d, const char *alias, const char *sql, instant now,
                  struct err *e);
/* -1: a condition on rows of t compares :now with a whole-number column where :now is a text. */
int sql_now_is_time(const struct dialect *d, const char *sql, const struct facts *f, const struct table *t,
                    struct err *e);

/* The statements of a slice, in the order of execution. Sets are numbered as in the plan; `frontier` is one
 * more. */
void sql_pick(struct stmt *s, const struct dialect *d, const struct plan *p, const struct cursor *from,
              int64_t most);
/* The same rows without a lock; and, of those in set 0, the ones that still look due by what they say
 * themselves, locked. */
void sql_scout(struct stmt *s, const struct dialect *d, const struct plan *p, const struct cursor *from,
               int64_t most);
void sql_pick_set(struct stmt *s, const struct dialect *d, const struct plan *p);
/* Locks the source rows of the root's set, so that they stay as they are judged; gives their number. */
void sql_lock_source(struct stmt *s, const struct dialect *d, const struct plan *p);
/* … and how many there are: more than were locked when others hold some. */
void sql_source_there(struct stmt *s, const struct dialect *d, const struct plan *p);
void sql_judge(struct stmt *s, const struct dialect *d, const struct plan *p);
void sql_grow(struct stmt *s, const struct dialect *d, const struct node *n, size_t way, int frontier);
void sql_pick_kids(struct stmt *s, const struct dialect *d, const struct node *parent, const struct node *n);
/* outside: rows that stay (these are counted); inside: rows that go themselves, in this slice or a later one.
 */
void sql_detach(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                const struct detachment *t, bool inside);
void sql_detach_left(struct stmt *s, const struct dialect *d, const struct node *parent,
                     const struct detachment *t);
void sql_delete_kids(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                     const struct node *n);
/* inside: only those that `where` lets go. */
void sql_kids_left(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                   const struct node *n, bool inside);
/* How many rows of the root's set must wait after all. */
void sql_set_waiting(struct stmt *s, const struct dialect *d, const struct plan *p);
void sql_delete_set(struct stmt *s, const struct dialect *d, const struct node *n);
/* Only those of the set to which no row of the table refers any more by a way down. */
void sql_delete_leaves(struct stmt *s, const struct dialect *d, const struct node *n);
void sql_set_left(struct stmt *s, const struct dialect *d, const struct node *n);

/* The data of the instances in a set: deleted, each row giving the text of its instance where rows are locked
 * one by one; how many there are of each, where a transaction that writes keeps all others out; how many are
 * left. */
struct erasing;
void sql_erase_count(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set);
void sql_erase(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set);
void sql_erase_left(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set);

/* Reading. For plans that rank rows the probe is a necessary condition only, which costs no ranking: a group
 * of a cap has more rows than stay; a row is old enough. */
void sql_probe(struct stmt *s, const struct dialect *d, const struct plan *p); /* a row, or none */
void sql_size(struct stmt *s, const struct dialect *d, const struct plan *p);  /* one number */
void sql_remaining(struct stmt *s, const struct dialect *d, const struct plan *p,
                   int64_t most); /* one number */
/* One row: how many, and the earliest of their times (microseconds or NULL). */
void sql_backlog(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t most);
/* One row: gone per slot, detached per detach slot, oldest, newest (microseconds or NULL). */
void sql_count(struct stmt *s, const struct dialect *d, const struct plan *p);
/* One row: null_time, unreadable_time, held, waiting. */
void sql_kept(struct stmt *s, const struct dialect *d, const struct plan *p);
/* A row per row that fits the key, two at most: its columns, its times (microseconds or NULL), its verdicts
 * (1, 0 or NULL). */
void sql_judge_row(struct stmt *s, const struct dialect *d, const struct plan *p, const struct inquiry *q);
/* Its place among the rows of its group, the newest is 1, and how many they are; no row: it is not ranked. */
void sql_rank_row(struct stmt *s, const struct dialect *d, const struct plan *p, const struct expr *key);
/* Rows that make it wait: their key, and the number of all of them. */
void sql_waits_for(struct stmt *s, const struct dialect *d, const struct plan *p, const struct expr *key,
                   const struct wait *w, int64_t most);
void sql_sample(struct stmt *s, const struct dialect *d, const struct plan *p, const struct column *c,
                int64_t most);
void sql_has(struct stmt *s, const struct dialect *d, const struct table *t, const struct expr *is);
/* The rows of a table for which a condition is true, with no other row in sight. */
void sql_alone(struct stmt *s, const struct dialect *d, const struct plan *p, const struct table *t,
               const struct expr *x);
/* What a condition says of one row, whichever: it is carried out, not only compiled. */
void sql_try(struct stmt *s, const struct dialect *d, const struct plan *p, const struct table *t,
             const struct expr *x);

#endif
