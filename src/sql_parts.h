/* What sql.c lends to statements that are written elsewhere. Private to sql. */
#ifndef LAPSE_SQL_PARTS_H
#define LAPSE_SQL_PARTS_H

#include "sql.h"

/* The swept row is always called so. */
#define THIS "this"

enum { ALIAS_SIZE = 24 };
struct writer {
    struct stmt *s;
    const struct dialect *d;
    instant now;
    int aliases;               /* handed out so far */
    const struct node *picked; /* not NULL: the rows asked about are those of its set */
};
struct writer sql_writer(struct stmt *s, const struct dialect *d, const struct plan *p); /* clears s */
const char *sql_alias(struct writer *w, char buf[ALIAS_SIZE]);
void sql_from(struct writer *w, const struct table *t, const char *alias);
void sql_expression(struct writer *w, const char *alias, const struct expr *x);
void sql_join(struct writer *w, const struct join *j, const char *child, const char *parent);
void sql_newest_first(struct writer *w, const char *alias, const struct expr *x); /* " ORDER BY …" */
/* "WITH RECURSIVE …": the rows that are due and all that goes with them, a set per node. */
void sql_sets(struct writer *w, const struct plan *p);
/* "this row is of that node": it goes by being of that node's set, or owned by one of its parent's. */
void sql_of_node(struct writer *w, const struct node *n, const struct node *parent);

#endif
