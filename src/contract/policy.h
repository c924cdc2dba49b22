/* policy: one validated rule and what it may touch, as the contract says it, before any schema is looked at.
 * Plain data: names are as written, durations are parsed, everything lives in the contract's arena. */
#ifndef LAPSE_CONTRACT_POLICY_H
#define LAPSE_CONTRACT_POLICY_H

#include "time/when.h"

/* Where in the file something stands; both count from 1. line 0: nowhere (a default). */
struct place {
    int line, column;
};

/* A name as written. Bare names match exactly, or else folded as the engine folds them; a name written in
 * double quotes (as in SQL: "odd ""name""") matches exactly only. */
struct name {
    const char *text; /* without the quotes */
    bool quoted;
    struct place at; /* of a name that stands alone in the file; line 0 inside a reference */
};
struct table_name {
    struct name schema; /* text NULL: none given */
    struct name table;
    struct place at;
};
/* "schema.table", quoted where the name needs it to be read back. For messages. */
void table_name_print(const struct table_name *t, struct text *out);

/* table(column, …), optionally -> (column, …) */
struct ref {
    struct table_name table;
    struct name *columns;
    size_t n_columns;
    struct name *targets; /* n_targets 0: what the foreign key points at, else the primary key */
    size_t n_targets;
    struct place at;
};
/* Parse names and references; the error says what was read and what is allowed. Results live in the arena. */
int name_parse(struct arena *a, const char *s, struct name *ret, struct err *e);
int table_name_parse(struct arena *a, const char *s, struct table_name *ret, struct err *e);
int ref_parse(struct arena *a, const char *s, struct ref *ret, struct err *e);
void ref_print(const struct ref *r, struct text *out);

/* A value as YAML gave it; it gets the column's type when a plan is made. */
struct scalar {
    bool null;
    bool quoted; /* 'x' or "x": text, never a number, boolean or null */
    bool prefix; /* only in `rows`: the text is a prefix (its trailing * is taken off) */
    const char *text;
    struct place at;
};

/* A condition on one row of one table. Comparisons with NULL are unknown, as in SQL. */
enum cond_op {
    COND_ALL,    /* every kid */
    COND_ANY,    /* some kid */
    COND_IN,     /* column is one of values (NULL and prefixes allowed) */
    COND_NOT_IN, /* column is none of values */
    COND_LT,
    COND_LTE,
    COND_GT,
    COND_GTE,        /* column against values[0] */
    COND_LIKE,       /* column against values[0]: % and _, \ escapes, case counts */
    COND_OLDER_THAN, /* column's instant < now - span */
    COND_NEWER_THAN, /* column's instant > now - span */
    COND_SQL,        /* text of the engine's SQL: `this` is the row, `:now` the run's time */
};
struct cond {
    enum cond_op op;
    struct name column;
    struct scalar *values;
    size_t n_values;
    struct span span;
    const char *sql;
    struct cond **kids;
    size_t n_kids;
    struct place at;
};

enum keep_kind {
    KEEP_NONE,   /* not given */
    KEEP_SPAN,   /* one duration */
    KEEP_BY,     /* a duration per value of a column */
    KEEP_COLUMN, /* each row says */
};
struct keep {
    enum keep_kind kind;
    struct span span;   /* KEEP_SPAN; KEEP_BY: otherwise */
    struct name column; /* KEEP_BY, KEEP_COLUMN */
    struct {
        struct scalar value;
        struct span span;
    } * values; /* KEEP_BY */
    size_t n_values;
    int64_t unit_us; /* KEEP_COLUMN; 0: take it from the column's suffix */
    struct place at;
};

/* Rows that wait for others: `after`. */
struct after {
    struct ref ref;
    struct cond *where; /* NULL: any such row */
};
/* Rows owned by the doomed row: `with`. */
struct with {
    struct ref ref;
    struct cond *where; /* NULL: all of them */
    bool split;
    struct with *with;
    size_t n_with;
    struct ref *detach;
    size_t n_detach;
    struct after *after;
    size_t n_after;
};

enum orphan_when { ORPHAN_DELETED, ORPHAN_DELETED_OR_UNMATCHED, ORPHAN_NEVER };
struct orphan {
    struct ref of; /* table(key) */
    struct name *by;
    size_t n_by;
    struct cond *matching;
    enum orphan_when when;
    bool allow_empty;
    struct place at;
};
/* cap and keep_newest */
struct newest {
    int64_t rows;
    struct name *per;
    size_t n_per;
    struct name *newest;
    size_t n_newest;
    struct place at;
};
struct limits {
    int64_t rows;    /* -1: not set */
    double fraction; /* < 0: not set */
    struct place at;
};
struct pace {
    struct span target;
    bool target_set;        /* it is the contract's own, not the default */
    double rows_per_second; /* < 0: not set */
    double duty;            /* < 0: not set */
    struct span lag;
    int64_t lag_bytes; /* -1: not set */
    struct place at;
};

enum { BATCH_ALL = 0 }; /* batch: null */

struct partition_rule {
    bool drop; /* a partition that is wholly due is dropped */
    struct place at;
};

struct policy {
    const char *name;
    const char *label;     /* the policy's name unless given */
    const char *scheduler; /* resolved: always names one */
    bool enabled;
    struct table_name table;

    struct cond *rows, *where, *hold; /* NULL: not given */

    struct name expires; /* text NULL: not given */
    struct name *age;
    size_t n_age;
    struct keep keep;
    bool inclusive;
    int64_t unit_us;  /* 0: not given */
    const char *zone; /* "UTC" unless given; known to exist */
    struct orphan *orphan;
    struct newest *cap, *keep_newest;

    struct with *with;
    size_t n_with;
    struct ref *detach;
    size_t n_detach;
    struct after *after;
    size_t n_after;

    int64_t batch; /* rows, or BATCH_ALL */
    int64_t lock_timeout_us, statement_timeout_us;
    int64_t away_us; /* a server that is being replaced is waited for */
    struct limits *limits;
    struct pace *pace;
    int64_t workers;
    struct partition_rule partitions;

    const char *invariant;
    const char **also;
    size_t n_also;

    /* Keys used here that this version validates but cannot run yet, in file order: the policy is refused
     * by name, each with its place. */
    struct {
        const char *key;
        struct place at;
    } * not_yet;
    size_t n_not_yet;

    struct place at; /* of its name */
};

/* What rows have below them in the contract: those of the policy's own table, or of an entry of `with`. */
struct below {
    const struct with *with;
    size_t n_with;
    const struct ref *detach;
    size_t n_detach;
    const struct after *after;
    size_t n_after;
};
struct below below_policy(const struct policy *p);
struct below below_with(const struct with *w);

/* What metrics, logs and the history call the tables that lose rows: the policy's own by its label; those
 * whose rows go along by their names as the contract writes them, each once. plan_label says it of a plan's
 * slots.
 */
const char **policy_dependents(struct arena *a, const struct policy *p, size_t *ret_n);

#endif
