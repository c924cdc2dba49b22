/* internal: what the files of check share: a plan laid out flat, and names as SQL and contracts write
 * them. Included by check*.c and their tests only. */
#ifndef LAPSE_CHECK_INTERNAL_H
#define LAPSE_CHECK_INTERNAL_H

#include "check/check.h"

/* A node of the plan: a table that loses rows, and the `with` entry that says so. */
struct loser {
    const struct node *node;
    const struct with *with;   /* NULL: the policy's own table */
    const struct loser *above; /* NULL: the policy's own table */
    struct place at;
};

/* A reference of the policy to rows that lose their parent. */
enum role { ROLE_WITH, ROLE_SUBTREE, ROLE_DETACH, ROLE_AFTER };
struct reference {
    enum role role;
    const struct loser *parent;
    const struct table *child;
    struct join join;
    bool narrowed; /* after: with a `where` */
    struct place at;
};

struct survey {
    const struct plan *plan;
    struct findings *findings; /* texts are made in its arena */
    struct loser **losers;     /* the root first */
    size_t n_losers;
    struct reference *references;
    size_t n_references;
    bool timeless; /* a time column holds no times: an index on it serves nothing */
};
struct survey survey_of(const struct plan *p, struct findings *findings);

/* Every row the foreign key finds, the join finds too: what is done to the join's rows is done to all. */
bool join_covers_fkey(const struct join *j, const struct fkey *k);

/* A name as SQL wants it: in the engine's quotes unless it is plain, in lower case and not a word of the
 * language. */
void sql_word(struct text *out, const struct facts *f, const char *name);
void sql_table_words(struct text *out, const struct facts *f, const struct table *t);
/* What "name" is called when it has to be granted: "GRANT DELETE ON app.jobs TO the user that …". */
const char *grant_words(struct arena *a, const struct facts *f, const struct table *t, const char *rights);
/* "schema.table" as a contract writes it. */
const char *table_words(struct arena *a, const struct table_name *t);
/* "table(a, b)" with real names, as a contract writes it. */
const char *reference_words(struct arena *a, const struct reference *r);
const char *fkey_words(struct arena *a, const struct fkey *k);
/* The columns' names with ", " between them. */
const char *column_words(struct arena *a, const struct column *const *columns, size_t n);

/* The statement that makes an index on these columns. */
const char *index_words(const struct survey *s, const struct table *t, const struct column **columns,
                        size_t n);

/* The statement that makes the index for the due query of a policy with one time; NULL: there is one with
 * just these columns. */
const char *better_index_words(const struct survey *s);

/* Into the facts: whether this user only looks on, and what prints the grants that it should have. */
void check_role(const struct store *s, struct facts *f);

/* The parts of check_plan. */
void check_fkeys(const struct survey *s);
void check_access(const struct survey *s);
/* What speaks against sweeping a table at all, or against doing it here. */
void check_refused(const struct facts *f, struct findings *findings, const char *policy, struct place at);
void check_engine(const struct facts *f, const struct table *t, struct findings *findings, const char *policy,
                  struct place at);
void check_sight(const struct facts *f, const struct table *t, struct findings *findings, const char *policy,
                 struct place at);
const char *hook_words(struct arena *a, const struct table *t);
/* What a policy or purge has run that looks names up on the search path, and the tables whose rows it deletes
 * or changes: a trigger of such a table, or NULL; a condition, or NULL. */
struct path_use {
    const struct table **tables;
    size_t n_tables;
    const char *what; /* the first that does so; NULL: nothing does */
    struct place at;
};
void path_use_table(struct path_use *u, struct arena *a, const struct table *t, const char *trigger,
                    struct place at);
void path_use_sql(struct path_use *u, const struct expr *x);
void check_path(const struct path_use *u, const struct facts *f, bool thorough, struct findings *findings,
                const char *policy);
void check_policy_path(const struct survey *s, bool thorough);
void check_references(const struct survey *s);
void check_indexes(const struct survey *s);
void check_split(const struct survey *s);
void check_orphan(const struct survey *s);
void check_partitions(const struct survey *s);
/* What speaks against dropping some of them, as the database knows it. 0, or its error. */
int check_listed_partitions(const struct plan *p, struct store *s, struct findings *findings, struct err *e);
void check_orphan_index(const struct survey *s);

/* Values that a column takes for one that `rows` or `where` names, though they are others. 0, or the
 * database's error. */
int check_recent(const struct plan *p, struct store *s, struct findings *findings, struct err *e);
int check_lookalikes(const struct plan *p, struct store *s, struct findings *findings, struct err *e);

/* Names the nearest table where a finding (`from` on) says that one is not there. */
int check_suggest_tables(struct store *s, const struct facts *facts, const struct table_names *names,
                         struct findings *findings, size_t from, struct err *e);

/* Which of the tables (real names) nothing in the contract names; f says how names match. Adds to open. */
void coverage_open(const struct contract *c, const struct facts *f, const struct table_name *tables, size_t n,
                   struct arena *a, struct table_names *open);
/* The pure half of coverage. f knows the tables that are open. */
void coverage_judge(const struct contract *c, const struct facts *f, const struct table_name *tables,
                    size_t n_tables, bool strict, struct findings *findings);

#endif
