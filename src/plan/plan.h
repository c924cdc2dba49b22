/* plan: (policy, facts, now) -> what to erase and in what order. Pure data, engine-neutral: `plan` prints the
 * very object that `sweep` executes. */
#ifndef LAPSE_PLAN_H
#define LAPSE_PLAN_H

#include "schema/facts.h"

/* How a column holds an instant. */
enum encoding {
    TIME_INSTANT, /* timestamptz */
    TIME_LOCAL,   /* a timestamp in the policy's zone */
    TIME_DATE,    /* midnight in the policy's zone */
    TIME_INTEGER, /* a count of unit_us since the epoch */
    TIME_TEXT,    /* ISO text, with an offset or in the policy's zone */
};
struct time_column {
    const struct column *column;
    enum encoding encoding;
    int64_t unit_us;         /* TIME_INTEGER */
    const struct zone *zone; /* NULL: UTC. Owned by the plan */
    struct place at;         /* where the contract names it */
};

/* A value bound as the column's type. */
enum value_kind { VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT, VALUE_BLOB };
struct value {
    enum value_kind kind;
    int64_t integer;
    double real;
    const char *text; /* VALUE_TEXT, VALUE_BLOB */
    size_t len;
};

enum compare { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };

/* Child column i equals parent column i. */
struct join {
    const struct column **child, **parent;
    size_t n;
};

/* The newest rows of each group, for EXPR_BEYOND_NEWEST. NULLs are oldest; the key, also descending, breaks
 * ties. Rows with NULL in a column of `per` are a group. */
struct ranking {
    int64_t rows;              /* how many of a group are the newest: at least 1 */
    const struct column **per; /* none: all rows are one group */
    size_t n_per;
    struct newest_column {
        const struct column *column;
        const struct time_column *time; /* not NULL: by its instant, unusable ones oldest */
        struct place at;
    } * newest;
    size_t n_newest; /* at least 1 */
    bool plain;      /* two rows compare as (newest …, key): no NULL among them, no instants to work out */
};

/* A condition over one row ("this row") and, in EXPR_EXISTS, over rows joined to it. Three-valued, as in SQL.
 */
enum expr_kind {
    EXPR_TRUE,
    EXPR_FALSE,
    EXPR_AND,
    EXPR_OR,       /* kids */
    EXPR_NOT_TRUE, /* kids[0] is false or unknown */
    EXPR_IS_NULL,
    EXPR_NOT_NULL, /* column */
    EXPR_COMPARE,  /* column cmp values[0] */
    EXPR_IN,       /* column is one of values, none of them NULL */
    EXPR_NOT_IN,
    EXPR_LIKE,           /* column against values[0]; case counts on every engine */
    EXPR_PREFIX,         /* column starts with values[0], byte for byte */
    EXPR_TIME,           /* time cmp instant; false where the time is unusable; NULL: unknown */
    EXPR_TIME_KEEP,      /* time cmp instant - keep_column * keep_unit_us; false where keep is NULL or <= 0 */
    EXPR_TIME_READABLE,  /* the time is NULL or usable */
    EXPR_EXISTS,         /* a row of table, joined to this one, for which kids[0] (if any) is true */
    EXPR_SUBTREE_EXISTS, /* this row or a row below it by `join` (same table, any depth): kids[0] is true */
    EXPR_BEYOND_NEWEST,  /* of table's rows for which kids[0] is true, this one is not among the newest */
    EXPR_SQL,            /* sql, in which `this` is this row; true only where it is true */
};
/* What makes a text equal, of a column that may take texts that differ for equal. */
enum equality {
    EQUALITY_SAFE,  /* where truth lets a row go, the very text; where it keeps one, what the column says */
    EQUALITY_EXACT, /* the very text */
    EQUALITY_OWN    /* what the column says */
};
struct expr {
    enum expr_kind kind;
    const struct expr **kids;
    size_t n_kids;
    const struct column *column;
    enum compare cmp;
    struct value *values;
    size_t n_values;
    enum equality equality;
    struct time_column time;
    instant at;
    const struct column *keep_column;
    int64_t keep_unit_us;
    const struct table *table;
    const struct join *joins; /* EXPR_EXISTS: one; EXPR_SUBTREE_EXISTS: every way down */
    size_t n_joins;
    const struct ranking *ranking; /* EXPR_BEYOND_NEWEST */
    const char *sql;
    struct place at_place; /* EXPR_SQL: where it stands in the contract */
};

struct detachment {
    const struct table *table;
    struct join join;
    const struct column *
        *emptied; /* those of the child columns that may be NULL and are not part of its key */
    size_t n_emptied;
    size_t slot;
};

/* A table that loses rows because its parent's rows go. The root has no join. */
struct node {
    const struct table *table;
    struct join join;
    const struct expr *where; /* NULL: all. A row for which it is not true makes the root wait */
    bool split; /* its rows may go ahead of the root, in transactions of their own; it carries its key */
    const struct join *grow; /* ways down inside this table: the whole subtree goes */
    const struct expr *
        *grow_where; /* per way down: NULL, or what every row below must satisfy, else the root waits */
    size_t n_grow;
    const struct expr **after; /* EXPR_EXISTS each: while one is true, the row waits */
    size_t n_after;
    struct node *kids;
    size_t n_kids;
    struct detachment *detach;
    size_t n_detach;
    const struct column *
        *carry; /* what its key set holds: the key first, then what kids, detachments and grow refer to */
    size_t n_carry;
    int set;     /* number of its key set, 0 for the root; -1: none, deleted straight by its parent's set */
    size_t slot; /* where its rows are counted: one slot per table */
};

/* In which order rows are found. */
enum walk {
    WALK_INDEX, /* by the index that leads to the time */
    WALK_KEY,
    WALK_PLACE,  /* as they lie: order is the table's place alone */
    WALK_PIECES, /* for people: partition by partition, in each by one of these */
};

/* A partition that may hold due rows, and can be swept as if it were the table. */
struct table_piece {
    const char *schema, *name, *print;
    const struct column *place;
};
struct table_pieces {
    struct table_piece *list; /* in the order of what they hold, where they have one */
    size_t n;                 /* 0: rows are found in the whole */
    size_t of;                /* partitions */
};

struct plan {
    struct arena *arena; /* owns the plan (facts and policy are borrowed and must outlive it) */
    const struct policy *policy;
    const struct facts *facts;
    instant now;
    struct node root;
    int n_sets;

    const struct expr *matches;  /* rows, where: the rows the policy speaks of (no time, no guards) */
    const struct expr *timely;   /* the bound: which of them are old enough */
    const struct expr *beyond;   /* NULL: none. cap, keep_newest: the part of the bound that ranks rows */
    const struct expr *aged;     /* the bound without that part */
    const struct expr *hold;     /* NULL: none. Already "is not true" */
    const struct expr *free_;    /* NULL: none. after, with-where: nothing to wait for */
    const struct expr *orphaned; /* NULL: none. Its source is gone */
    const struct expr *due;      /* all of the above, sargable parts first */
    bool examines; /* the bound looks at many rows to find few: they are found in one reading, then locked by
                      key */
    bool splits;   /* a node is split */
    bool judge_again; /* due looks at other rows: judge in a new statement once the rows are locked */

    /* orphan: where the rows come from. `child` of the join is the source's key, `parent` the swept row's
     * columns. */
    const struct table *source; /* NULL: none */
    struct join source_join;
    const struct expr *matching; /* NULL: none. On the source row; part of due only where it counts */
    bool source_needed;          /* an empty source makes no orphans: it refuses the policy */
    bool source_locked; /* the source rows that are there decide: they are locked before the judgement */

    struct time_column *times; /* the bound's columns; none where age plays no part */
    size_t n_times;
    const struct index
        *index; /* what the cursor follows to the time; NULL: none serves, it follows the key */
    const struct column **order; /* the cursor: ([columns of rows,] time, key), or the key alone */
    size_t n_order;
    enum walk walk;
    bool
        sorts; /* WALK_INDEX: the index does not end with the key, so that rows of one time would be sorted for
                 * every batch */
    const char *walk_why;       /* for people */
    double due_per_block;       /* WALK_PLACE: as estimated; 0: not known */
    struct value *states;       /* what `rows` allows order[0] to be, in ascending order, where that is */
    size_t n_states;            /* … not the time; else 0 */
    struct table_pieces pieces; /* that the first pass goes by */

    /* For people: the parts of matches; NULL: not given. */
    const struct expr *rows, *where;
    /* For people: the cutoff(s). value NULL: for every row / otherwise. */
    struct cutoff {
        const char *value;
        bool never;
        instant at;
        const struct expr *when; /* the rows it is for; NULL: all, or those that no other is for */
        const struct expr
            *taken; /* … and those whose value the column takes for it; NULL: there are no others */
    } * cutoffs;
    size_t n_cutoffs; /* 0: each row says */

    bool drops;            /* a partition that is wholly due is dropped */
    const char *drops_not; /* … why none is, though the policy asks for it; else NULL */
    instant range_by;      /* … a range of times that ends by then gets no new rows: the latest cutoff */

    const struct table **slots; /* tables that lose rows, in the order they are emptied; the root's last */
    size_t n_slots;
    const struct table **detach_slots;
    size_t n_detach_slots;
};

/* NULL when something is wrong; then findings hold at least one error for this policy. */
struct plan *plan_make(const struct policy *p, const struct facts *f, instant now, struct findings *findings);
/* Another order where the estimate says that rows are found faster so. What is deleted is the same in any. */
void plan_walk(struct plan *p, const struct estimate *e);
/* pieces.c: whether partitions may be swept one by one: each row is judged by itself and by other
 * tables. The plan for one: as the whole's, of that partition's rows alone. It lives in the arena, and no
 * longer than the whole's. */
bool plan_may_go_by_pieces(const struct plan *p);
struct plan *plan_of_piece(const struct plan *p, const struct table_piece *x, struct arena *a);
void plan_free(struct plan *p);
void plan_free_p(struct plan **p);
/* Whether the policy deletes or changes rows of no other table, and of its own only those that are due. */
bool plan_goes_alone(const struct plan *p);
/* Whether of its own table only those go that are due. */
bool plan_counts_alone(const struct plan *p);
/* Whether a foreign key that acts row by row keeps rows of the node that refer to each other in a circle, as
 * long as they do; and whether it does so for good, since none of the references can be set to NULL. */
bool plan_restricts_circles(const struct plan *p, const struct node *n);
bool plan_holds_circles(const struct plan *p);
/* Whether the policy deletes rows of this table. */
bool plan_loses(const struct plan *p, const struct table *t);
/* A foreign key of this table; one that watches every row of the child that the join finds. */
bool fkey_is_from(const struct fkey *k, const struct table *child);
bool join_is_enforced(const struct join *j, const struct table *parent, const struct table *child);
/* A text as a value of this column: char(n) has no blanks at its end. */
const char *plan_text_of(struct arena *a, const struct column *c, const char *text);
/* What metrics, logs and the history call the table of a slot (see policy_dependents). */
const char *plan_label(const struct plan *p, size_t slot, struct arena *a);
/* The tables that must be inspected before plan_make: the policy's own and every one it refers to. Adds to
 * list. */
struct table_names {
    const struct table_name **list;
    size_t n;
};
void plan_tables(const struct policy *p, struct arena *a, struct table_names *names);

/* The unit of times that a column's name says (`_ms`), or 0. */
int64_t plan_unit_of_suffix(const char *name);

#endif
