/* sql: a plan -> SQL text in a dialect. Pure: no connection, no clock. Each function writes one whole
 * statement with its parameters; what engines spell differently is asked of the dialect. */
#ifndef LAPSE_STORE_SQL_H
#define LAPSE_STORE_SQL_H

#include "store/store.h"

/* A parameter: a value, or a column of a key set (all rows of it). */
struct param {
    struct value value;   /* set < 0 */
    const char *sql_type; /* the type to bind it as; NULL: the engine's choice */
    int set;              /* >= 0: key set number */
    size_t set_column;    /* index in that set's columns */
    enum rows_part part;  /* of that column */
};
struct stmt {
    struct text sql;
    struct param *params; /* placeholder n is params[n - 1] */
    size_t n_params;
    struct arena *arena;          /* texts of values made for this statement; created on demand */
    const struct table *deletes;  /* it deletes rows of this table, and does nothing else; NULL: it may */
    const struct column *runs_of; /* … whose numbers in this column are in a set's runs; NULL: otherwise */
    bool of_catalog;              /* it looks at the engine's catalog and nothing else */
    bool has_sql; /* it holds SQL text of the contract, whose names are looked up as the user's are */
};
void stmt_release(struct stmt *s);
void stmt_clear(struct stmt *s);

/* How rows that are read are locked: skip those that others hold, wait for them, or skip those and let others
 * share the rest. */
enum lock_mode { LOCK_SKIP, LOCK_WAIT, LOCK_SHARE };

/* What a statement-writing function of a dialect may use. alias is the row's alias, already safe to write. */
struct dialect {
    char quote; /* " or ` */
    /* Where a name means what the session's search path makes of it: the schema of all that the engine brings
     * along, with which functions, types and operators are written ("pg_catalog"). NULL: it means one thing.
     */
    const char *catalog;
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
    /* The opposite, so that an index can serve it where that is possible; and whether it never is true. */
    void (*time_unreadable)(struct stmt *s, const char *alias, const struct time_column *t);
    bool (*always_readable)(const struct time_column *t);
    /* An expression of the instant in microseconds (integer or exact decimal), NULL where NULL or unusable.
     * Must not raise an error for any value. */
    void (*time_value)(struct stmt *s, const char *alias, const struct time_column *t);
    /* The greatest of several time_value expressions, NULLs ignored. n >= 2. */
    void (*latest)(struct stmt *s, const char *alias, const struct time_column *t, size_t n);
    /* column LIKE pattern (% _ and \ as escape, case counts); column begins with prefix (bytes). Columns are
     * text. */
    void (*like)(struct stmt *s, const char *alias, const struct column *c, const char *pattern);
    void (*prefix)(struct stmt *s, const char *alias, const struct column *c, const char *prefix);
    /* column LIKE pattern where case does not count, of a column that folds. */
    void (*like_folded)(struct stmt *s, const char *alias, const struct column *c, const char *pattern);
    /* Follows "column < value" where truth lets a row go: " AND …" so that the row's value is of its kind, a
     * number or a text; NULL passes. NULL: a column has one kind. */
    void (*is_of_kind)(struct stmt *s, const char *alias, const struct column *c, const struct value *v);
    /* "the column is one of the texts in key set `set`", byte by byte, however the column compares. The texts
     * fit its type. indexed: an index begins with the column. */
    void (*is_text_of_set)(struct stmt *s, const char *alias, const struct column *c, int set, bool indexed);
    /* The same of the one row of it that engine->each has come to. NULL where there is no such. */
    void (*is_text_of_row)(struct stmt *s, const char *alias, const struct column *c, int set);
    /* A column of a key set's row, in a SELECT that is about one row of it: which engine->each has come to,
     * or which stands between the two others, that have every row looked up by an index, whatever the engine
     * believes of the table. NULL: statements are about whole sets. */
    void (*of_row)(struct stmt *s, int set, size_t column);
    void (*each_row)(struct stmt *s, int set, const struct column *const *types, size_t n);
    /* "the column is in key set `set`, column number at, of this type", looked up by the column's own index
     * in the same way, which costs less to plan, too. NULL: as in_set does. */
    void (*in_set_by_index)(struct stmt *s, const char *alias, const struct column *c, int set, size_t at,
                            const struct column *type);
    const char *each_row_end;
    bool hex_blobs;        /* bytes are given as the text \x616263 */
    const char *text_cast; /* CAST (x AS this) gives a value's text */
    /* What ends a SELECT that locks rows: " FOR UPDATE OF this SKIP LOCKED", " FOR UPDATE OF …", " FOR SHARE
     * OF …". */
    void (*lock)(struct stmt *s, const char *alias, enum lock_mode mode);
    /* The lock that a transaction takes before it judges which rows of the table are the newest: an
     * expression that waits for nobody, true or 1 where it was had. rank_unlock: what gives it back once the
     * transaction has ended; NULL: its end does. NULL: a transaction that writes keeps all others out. */
    void (*rank_lock)(struct stmt *s, const struct table *t);
    void (*rank_unlock)(struct stmt *s, const struct table *t);
    bool ranks_by_row; /* locks hold on one server of several: a row of lapse's own tables is written instead
                        */
    bool held_fails;   /* LOCK_SKIP passes no row by: one that another holds ends the statement alone */
    bool locks_rows;   /* false: a transaction that writes keeps all others out, nothing is locked by row */
    const char
        *once; /* WITH x AS: what is worked out once, however often it is looked at: " AS MATERIALIZED " */
    const char
        *nulls_last;     /* what sends NULLs to the end of a descending order: " NULLS LAST"; "": they are */
    const char *is_null; /* what is true of NULL alone; NULL: " IS NULL" is */
    /* Two columns compare alike: = between them is what either of them means by it. NULL: any two do. */
    bool (*alike)(const struct column *a, const struct column *b);
    /* "a equals b", both written already, of columns that are not alike; exact: the same text byte for byte,
     * besides. */
    void (*equal)(struct stmt *s, const char *a, const struct column *of_a, const char *b,
                  const struct column *of_b, bool exact);
    /* Texts that differ are never equal to the column. NULL: its collation says it. */
    bool (*tells_apart)(const struct column *c);
    /* A column that may take texts that differ for equal, by its bytes. */
    void (*bytes)(struct stmt *s, const char *alias, const struct column *c);
    /* Follows "column = value" or "column IN (…)" where truth lets a row go: " AND …" so that the column is
     * one of them byte for byte, however it compares. Writes nothing where it cannot fold. */
    void (*exactly)(struct stmt *s, const char *alias, const struct column *c, const struct value *values,
                    size_t n);
    /* Follows a table whose rows a statement locks or changes: the index by which it must find them, so that
     * it touches no others: " FORCE INDEX (`PRIMARY`)". NULL: the engine touches only what it finds. */
    void (*use_index)(struct stmt *s, const struct index *i);
    /* Goes before such a table, then: the rows of a set as a table lapse_keys (k0, k1, …), each once, with
     * what joins the other to it, so that these rows are looked up one by one. False: not for such columns,
     * nothing was written. NULL: never. Arguments as those of in_set. */
    bool (*key_list)(struct stmt *s, const struct column *const *columns, size_t n, int set, const size_t *at,
                     const struct column *const *types);
    /* The whole DELETE of the rows whose column is in a set, in a form that is cheaper than one that joins a
     * list and as certain to use the column's index. False: not of this table or column, nothing was written.
     * NULL: never. */
    bool (*delete_by)(struct stmt *s, const struct table *t, const struct column *c, int set, size_t at,
                      const struct column *type);
    /* The runs that a set's numbers make up, as a table that another is joined to; and "the column lies in
     * one of them". Each is looked up once, where each of many keys would be. Without the list, in the one
     * that its parameters are the ends of: the statement is for each. NULL: runs are no cheaper. */
    struct {
        void (*list)(struct stmt *s, int set, size_t at);
        void (*has)(struct stmt *s, const char *alias, const struct column *c, int set, size_t at);
        enum value_kind given_as; /* what the engine gives a whole number as */
        size_t most;              /* worth while up to so many; 0: however many */
    } runs;
    bool picks_by_read; /* a locking read locks what it looks at: keys are read first, then locked */
    bool deletes_alias; /* DELETE this FROM t AS this */
    bool returning;     /* DELETE … RETURNING */
    bool keys_by_row;   /* a statement that deletes is held by a foreign key to a row that it deletes later */
    bool writes_alone;  /* a statement that writes must not look at other rows: that is asked before */
    bool cycles_hold;   /* rows that refer to each other, or to themselves, do not go by one DELETE */
    bool recursion_apart; /* WITH RECURSIVE does not see the row outside */
    bool rows_spelt_out;  /* (a, b) > (x, y) is served by no index: a > x OR a = x AND b > y is */
    bool one_state_each;  /* an index serves a list of values of its first column, but not from a cursor on */
    const char *only; /* before the name of a table that has places: its own rows, of none that will inherit
                       * from it, where others lie at the same places; NULL: there are none */
    /* " AND …": the table, which stands for a partition, is still one of its whole. Where rows are locked by
     * it, it stays so until COMMIT. NULL: no table stands for one. */
    void (*is_part)(struct stmt *s, const struct table *t);
    /* The whole SELECT: a row where some partition of the table is just being detached, and not seen in it
     * any more, though it waits for whoever has rows of it locked. NULL: that cannot be. */
    void (*parting)(struct stmt *s, const struct table *t);
    /* Places of rows, where a table has such: the last that can be in a block; the block of one; and how many
     * blocks the table has, one number. NULL: there are none. */
    struct {
        void (*last_in)(int64_t block, struct text *out);
        bool (*block_of)(const struct value *place, int64_t *ret);
        void (*blocks)(struct stmt *s, const struct table *t);
    } place;
    /* The statement for people, where its text is not fit for them. NULL: it is. */
    void (*show)(const struct stmt *s, struct text *out);
    /* :now in the contract's SQL. */
    void (*now)(struct stmt *s, instant now);
    const char *now_is_text; /* NULL: it is a time. Else what to write where a number is needed */
    /* How lapse's own tables are spelt. */
    struct {
        const char *name_type, *time_type; /* of columns; names compare byte by byte */
        const char *moment_type;           /* … of times that are always there; with a constraint */
        bool moments_begin_now;            /* … and a default: the clock */
        const char *long_name_type;        /* … of names that others write: of any length, never cut */
        const char *text_type;             /* of columns that hold text of any length */
        const char *bind_name, *bind_time; /* what values are bound as; NULL: the engine's choice */
        enum encoding time;                /* how that type holds an instant */
        void (*instant)(struct stmt *s, instant at); /* writes one; NULL: a text, bound as bind_time */
        instant first, last; /* what it can hold, and a bound that an index serves be; 0: any of ours */
        const char *clock, *clock_us; /* the database's clock: as that type; in microseconds */
        const char *later[2];         /* … so many microseconds from now: before and after the number */
        const char *lock;             /* lets one installer work at a time; NULL: a write does */
        const char *unlock;           /* … until this; NULL: until it commits */
        const char *has_schema;       /* a row if there is schema {1}; NULL: no schemas */
        const char *no_roles;         /* NULL: there are roles. Else why not */
        /* What is on these tables, or about them, and not trusted: what was found, what to run against it,
         * and whom the contract could name as own_owner so that it is trusted (NULL: nobody). A row each.
         * {1}: the schema, {2}: own_owner, or NULL, {3}: 1 where the contract names the schema, {4}: names,
         * between commas. No expression of the tables is evaluated by it. */
        const char *foreign;
        const char *number_type; /* of a key that the database counts up by itself */
        const char *by_any[2];   /* an index that serves equality on a text of any length: before and after */
        const char *time_check[3]; /* what makes times comparable as they are: before, between and after two
                                    * mentions of the column; NULL: the type does */
        int time_digits;           /* of a second's fraction that its clock writes */
        const char *table_end;     /* behind a table's closing parenthesis */
        const char *from_none;     /* what a SELECT without a table needs before its WHERE; NULL: nothing */
        const char *new_column;    /* in ADD COLUMN, so that one that is there is no error; NULL: nothing */
        bool commits_alone; /* CREATE commits by itself: an installer may have been stopped at any of them */
        bool accounts;      /* rights go to user@host, and need none on the schema */
        bool orders_rest;   /* an index gives an order only where columns that are the same are not named */
        bool looks_apart;   /* an index serves no condition with a value of another row: one look each */
    } own;
    /* How to scan the contract's SQL text. */
    bool dollar_quotes;     /* $tag$ … $tag$ */
    bool backslash_strings; /* E'…\'…' */
    bool nested_comments;
    bool question_marks_ok;   /* ? is an operator, not a parameter */
    bool backticks, brackets; /* `name`, [name] quote too */
    bool strings_escape;      /* '…\'…' and "…\"…" */
    bool hash_comments;       /* # begins one; -- does so only before a blank; one that begins
                               * with ! is code */
    const char *reserved;     /* bytes that must not occur; NULL: none */
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
size_t sql_bind_runs(struct stmt *s, int set, size_t column, enum rows_part part, const char *sql_type);
const char *sql_compare(enum compare cmp); /* " < ", of an engine where a name means one thing */

/* --- what means the same under any search path ---
 *
 * Whoever may create objects in a schema of the path can plant a function or an operator that fits better
 * than the engine's own, and it would run with the rights of whoever sweeps. So functions and operators are
 * written with their schema; and what looks operators up by itself is not written at all: IN, LIKE, BETWEEN,
 * IS DISTINCT FROM, NULLIF, CASE x WHEN, JOIN … USING. ORDER BY, GROUP BY, DISTINCT, UNION, GREATEST and
 * COALESCE go by the types alone. An operator with its schema binds closer than < and AND, and no closer than
 * another one: arithmetic stands in parentheses. */

/* The schema of the operators that compare two columns, quoted; NULL: none is written. Where it is not the
 * catalog, both sides are to be of exactly the type: sql_operand() and parameters are. */
const char *sql_operators(const struct dialect *d, const struct column *a, const struct column *b);
/* One schema does for all n pairs, so that they can be compared as rows: *ret. */
bool sql_operators_of_row(const struct dialect *d, const struct column *const *a,
                          const struct column *const *b, size_t n, const char **ret);
/* " = ", " OPERATOR(pg_catalog.=) " */
void sql_operator(struct stmt *s, const char *operators, const char *sign);
/* The column as such an operator takes it: alias."c", alias."c"::public.citext; what is added to it. */
void sql_add_type(struct stmt *s, const struct dialect *d, const char *operators, const struct column *c);
void sql_operand(struct stmt *s, const struct dialect *d, const char *operators, const char *alias,
                 const struct column *c);
void sql_operands(struct stmt *s, const struct dialect *d, const char *operators, const char *alias,
                  const struct column *const *list, size_t n);
/* "alias.c = ", to be followed by a parameter of the column's type. */
void sql_compared(struct stmt *s, const struct dialect *d, const char *alias, const struct column *c,
                  enum compare cmp);
/* What is given is the beginning of a call of one of the engine's functions: "pg_catalog.count(*)". */
void sql_builtin(struct stmt *s, const struct dialect *d, const char *call);
/* An operator of the engine between what is of one of its own types. */
void sql_sign(struct stmt *s, const struct dialect *d, const char *sign);
const char *sql_is_null(const struct dialect *d);

/* Local times that lie before (LT, LE) or not before (GT, GE) an instant; the same in days, each of which
 * stands for its midnight; `subject`, in the bound's unit, within it or beyond it, numbers written by
 * `write`. */
struct local_bound sql_bound_of(const struct time_column *t, enum compare cmp, instant at);
struct local_bound sql_bound_days(struct local_bound b);
void sql_within(struct stmt *s, const struct dialect *d, const char *subject, const struct local_bound *b,
                bool within, void (*write)(struct stmt *s, int64_t value));

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
void sql_pick(struct stmt *s, const struct dialect *d, const struct plan *p, const struct stretch *in,
              int64_t most);
/* The same rows without a lock; and, of those in set 0, the ones that still look due by what they say
 * themselves, locked. */
void sql_scout(struct stmt *s, const struct dialect *d, const struct plan *p, const struct stretch *in,
               int64_t most);
/* The same from the beginning, held to the plan's index where the dialect has words for it: to be explained.
 * Of a short table the whole would be read else, and rightly so. */
void sql_scout_by_index(struct stmt *s, const struct dialect *d, const struct plan *p,
                        const struct stretch *in, int64_t most);
/* The place, in the plan's order, of the so-manieth row beyond the cursor that is due by what it says itself;
 * no row: fewer are left. */
void sql_cut(struct stmt *s, const struct dialect *d, const struct plan *p, const struct cursor *after,
             int64_t rows);
void sql_pick_set(struct stmt *s, const struct dialect *d, const struct plan *p);
/* Locks the source rows of the root's set, so that they stay as they are judged; gives a row for each. */
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
/* Where a statement that writes must not look at other rows: how many there are inside, locked; and all of
 * them, detached. */
void sql_detach_inside(struct stmt *s, const struct dialect *d, const struct plan *p,
                       const struct node *parent, const struct detachment *t);
void sql_detach_all(struct stmt *s, const struct dialect *d, const struct node *parent,
                    const struct detachment *t);
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
/* Where they were when they were locked; false: it was not asked. One that this transaction has updated since
 * is not there any more, and nobody else is. */
bool sql_delete_set_by_place(struct stmt *s, const struct dialect *d, const struct node *n);
/* Both by the runs of the set's numbers: for a set of which there are few (rows_runs, of the column that the
 * parameters name). False: not with this dialect, table or column; nothing is to be run. */
bool sql_delete_kids_by_runs(struct stmt *s, const struct dialect *d, const struct node *parent,
                             const struct node *n);
bool sql_delete_set_by_runs(struct stmt *s, const struct dialect *d, const struct node *n);
/* What is there of the kids that such a statement should have deleted: a row each. */
void sql_kids_left_by_runs(struct stmt *s, const struct dialect *d, const struct node *parent,
                           const struct node *n);
/* The keys of those of the set to which no row of the table refers any more by a way down; and of such keys,
 * in the set `frontier`, the rows. */
void sql_leaves(struct stmt *s, const struct dialect *d, const struct node *n);
void sql_delete_leaves(struct stmt *s, const struct dialect *d, const struct node *n, int frontier);
/* Empties the references within the set that may be; false: there are none such, nothing was written. */
bool sql_break_cycles(struct stmt *s, const struct dialect *d, const struct node *n);
/* Locks the rows of the set that are there, and gives a row for each. */
void sql_lock_set(struct stmt *s, const struct dialect *d, const struct node *n);
void sql_set_left(struct stmt *s, const struct dialect *d, const struct node *n);

/* Rows that may go ahead of the row that owns them. A path leads from a node with a set down to another. */
struct sql_path {
    const struct node **nodes; /* n of them, at least 2 */
    size_t n;
};
/* How many rows of the path's last node the rows of its first one's set own; it counts no further than
 * `most`. */
void sql_path_count(struct stmt *s, const struct dialect *d, const struct plan *p,
                    const struct sql_path *path, int64_t most);
/* What each row of the root's set carries, and 1 where it owns more than `most` rows by one of the paths,
 * else 0. */
void sql_heavy(struct stmt *s, const struct dialect *d, const struct plan *p, const struct sql_path *paths,
               size_t n, int64_t most);
/* The keys of some rows that the parent's set owns; of some of those that own rows by one of the paths, whose
 * first node they are; those of such keys, in the set `keys`, that it still owns: locked; deleted; how many
 * are there. */
void sql_ahead_keys(struct stmt *s, const struct dialect *d, const struct node *parent, const struct node *n,
                    int64_t most);
void sql_owners(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                const struct node *n, const struct sql_path *paths, size_t n_paths, int64_t most);
void sql_ahead_lock(struct stmt *s, const struct dialect *d, const struct node *parent, const struct node *n,
                    int keys);
void sql_delete_ahead(struct stmt *s, const struct dialect *d, const struct plan *p,
                      const struct node *parent, const struct node *n, int keys);
/* inside: only those that `where` lets go. */
void sql_ahead_left(struct stmt *s, const struct dialect *d, const struct plan *p, const struct node *parent,
                    const struct node *n, int keys, bool inside);

/* The data of the instances in a set: deleted; how many rows there are of each, which keep until they are
 * deleted; how many are left. EACH_ROW: of the one that engine->each has come to. */
enum whose { WHOLE_SET, EACH_ROW };
struct erasing;
void sql_erase_count(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set);
void sql_erase(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set,
               enum whose whose);
/* The same of a whole set, and each row that goes gives the text of its instance. */
/* Only those rows to which no row of the table itself refers. */
void sql_erase_leaves(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set);
void sql_erase_told(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set);
void sql_erase_left(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x, int set,
                    enum whose whose);
/* The rows that x does not keep, of whatever instance. */
void sql_erase_unkept(struct stmt *s, const struct dialect *d, instant now, const struct erasing *x);

/* Partitions that may be dropped: a row if one of its rows is not due; how many rows it has, and how many of
 * them are due; nobody else may write to it; nobody may use it, nor the table it is a part of; it goes, and
 * nothing that depends on it. */
void sql_partition_alive(struct stmt *s, const struct dialect *d, const struct plan *p,
                         const struct partition *x);
void sql_partition_count(struct stmt *s, const struct dialect *d, const struct plan *p,
                         const struct partition *x);
void sql_partition_lock(struct stmt *s, const struct dialect *d, const struct partition *x);
void sql_partition_seize(struct stmt *s, const struct dialect *d, const struct partition *x);
void sql_partition_drop(struct stmt *s, const struct dialect *d, const struct partition *x);

/* Reading. For plans that rank rows the probe is a necessary condition only, which costs no ranking: a group
 * of a cap has more rows than stay; a row is old enough. */
void sql_probe(struct stmt *s, const struct dialect *d, const struct plan *p); /* a row, or none */
void sql_size(struct stmt *s, const struct dialect *d, const struct plan *p);  /* one number */
void sql_remaining(struct stmt *s, const struct dialect *d, const struct plan *p,
                   int64_t most); /* one number */
/* The rows at so many places of a key that counts, from `low` on and `step` apart, or the next ones: their
 * times (microseconds or NULL), and whether they are due by what they say themselves (1 or 0). */
void sql_spread(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t low, int64_t step,
                int64_t places);
/* The least and the greatest value of a key that counts. */
void sql_key_ends(struct stmt *s, const struct dialect *d, const struct plan *p);
/* The rows that are due, to be explained. */
void sql_due(struct stmt *s, const struct dialect *d, const struct plan *p);
/* One row: how many, and the earliest of their times (microseconds or NULL). */
void sql_backlog(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t most);
/* One row: how many rows of the policy's own table are due, oldest, newest (microseconds or NULL): one
 * reading, in which no row is looked up again. */
void sql_count_due(struct stmt *s, const struct dialect *d, const struct plan *p);
/* One row: gone per slot, but NULL of the policy's own table where plan_counts_alone; detached per detach
 * slot. Of plans that delete from, or detach, other rows. */
void sql_count(struct stmt *s, const struct dialect *d, const struct plan *p);
/* One number: rows of its own table that are due, and by none of the others, plans of the same table. */
void sql_count_beside(struct stmt *s, const struct dialect *d, const struct plan *p,
                      const struct plan *const *others, size_t n);
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
/* Of up to `most` rows with the highest keys: their number, how many are old enough, the newest time. */
void sql_recent(struct stmt *s, const struct dialect *d, const struct plan *p, int64_t most);
void sql_has(struct stmt *s, const struct dialect *d, const struct table *t, const struct expr *is);
/* A value of the column that equals values[0] for it, but is none of the n byte for byte. Only for dialects
 * with `exactly`. */
void sql_lookalike(struct stmt *s, const struct dialect *d, const struct table *t, const struct column *c,
                   const struct value *values, size_t n);
/* The rows of a table for which a condition is true, with no other row in sight. */
void sql_alone(struct stmt *s, const struct dialect *d, const struct plan *p, const struct table *t,
               const struct expr *x);
/* What a condition says of one row, whichever: it is carried out, not only compiled. */
void sql_try(struct stmt *s, const struct dialect *d, const struct plan *p, const struct table *t,
             const struct expr *x);

#endif
