/* What statements are made of. Private to sql. */
#ifndef LAPSE_STORE_SQL_INTERNAL_H
#define LAPSE_STORE_SQL_INTERNAL_H

#include "store/sql/sql.h"

/* The swept row is always called so. */
#define THIS "this"

enum { ALIAS_SIZE = 24 };
struct writer {
    struct stmt *s;
    const struct dialect *d;
    instant now;
    int aliases;               /* handed out so far */
    const struct node *picked; /* not NULL: the rows asked about are those of its set */
    const struct plan *plan;   /* NULL: none */
    bool keeps;                /* where what is being written is true, a row stays */
};
struct writer sql_writer(struct stmt *s, const struct dialect *d, const struct plan *p); /* clears s */
const char *sql_alias(struct writer *w, char buf[ALIAS_SIZE]);

/* Text; "alias.a, alias.b"; " FROM t AS alias". */
void sql_add(struct stmt *s, const char *text);
/* Whether the column may take texts that differ for equal; then d->bytes tells them apart. */
bool sql_folds(const struct column *c);
void sql_columns(struct stmt *s, const struct dialect *d, const char *alias, const struct column *const *list,
                 size_t n);
void sql_from_table(struct stmt *s, const struct dialect *d, const struct table *t, const char *alias);
void sql_from(struct writer *w, const struct table *t, const char *alias);

/* Columns of a table, and those of a key set that they belong with. */
struct sql_by {
    const struct column *const *columns, *const *types;
    size_t n, *at;
    int set;
    bool said;    /* by sql_table_by(): nothing is left for WHERE to say */
    bool indexed; /* an index has them, of which the engine is to make use without weighing the keys */
};

void sql_by_release(struct sql_by *b);
/* Rows of a child whose reference is in the parent's set; set: the parent's own, or another of the same
 * shape. Rows of the node's own table that are in its set: the key leads what is carried. */
struct sql_by sql_by_reference(const struct join *j, const struct node *parent, int set);
struct sql_by sql_by_key(const struct node *n);
/* A table whose rows are locked or changed, found by a set of keys; "WHERE …"; both, after " FROM ". */
void sql_table_by(struct stmt *s, const struct dialect *d, const struct table *t, const char *alias,
                  struct sql_by *b);
void sql_where_by(struct stmt *s, const struct dialect *d, const char *alias, const struct sql_by *b);
void sql_from_by(struct stmt *s, const struct dialect *d, const struct table *t, const char *alias,
                 struct sql_by *b);
/* The index by which these rows are found; NULL: none. */
const struct index *sql_index_by(const struct table *t, const struct sql_by *b);
/* Whether they are whole numbers in an index that has all of the table's rows. */
bool sql_may_go_by_runs(const struct dialect *d, const struct table *t, const struct sql_by *b);
/* The same as conditions alone. */
void sql_refers_to(struct stmt *s, const struct dialect *d, const char *alias, const struct join *j,
                   const struct node *parent, int set);
void sql_in_own_set(struct stmt *s, const struct dialect *d, const char *alias, const struct node *n);
size_t sql_carried_at(const struct node *n, const struct column *c);

void sql_expression(struct writer *w, const char *alias, const struct expr *x);
bool sql_alike(const struct dialect *d, const struct column *a, const struct column *b);
void sql_equal(struct writer *w, const char *child, const struct column *c, const char *parent,
               const struct column *p, const char *as);
/* "(alias.a, alias.b) IN (", to be followed by a SELECT. */
void sql_in_select(struct stmt *s, const struct dialect *d, const char *operators, const char *alias,
                   const struct column *const *list, size_t n);
void sql_join(struct writer *w, const struct join *j, const char *child, const char *parent);
void sql_newest_first(struct writer *w, const char *alias, const struct expr *x); /* " ORDER BY …" */
void sql_in_order(struct stmt *s, const struct dialect *d, const struct plan *p); /* the cursor's */
/* "WITH RECURSIVE …": the rows that are due and all that goes with them, a set per node. */
void sql_sets(struct writer *w, const struct plan *p);
/* "this row is of that node": it goes by being of that node's set, or owned by one of its parent's. */
void sql_of_node(struct writer *w, const struct node *n, const struct node *parent);

#endif
