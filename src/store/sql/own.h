/* own: lapse's own tables in an SQL database. The verbs are in sqlstore.h's `sqlown`; this is for its
 * tests.
 */
#ifndef LAPSE_STORE_SQL_OWN_H
#define LAPSE_STORE_SQL_OWN_H

#include "store/sql/sqlstore.h"

/* What turns the tables of version - 1 into those of version: statements, with blank lines between them. */
struct own_step {
    int version;
    const char *statements;
};
/* Runs the steps that are missing, in one transaction. *ret_from: the version that was there. */
int sqlown_upgrade(struct sql_store *s, const struct own_step *steps, size_t n, int *ret_from, struct err *e);

#endif
