/* store_postgres: what the files of the PostgreSQL adapter share: the dialect (dialect_postgres.c), the
 * catalog (catalog_postgres.c) and the connection (store_postgres.c, the only one that sees libpq). */
#ifndef LAPSE_STORE_POSTGRES_H
#define LAPSE_STORE_POSTGRES_H

#include "sqlstore.h"

extern const struct dialect dialect_postgres;

/* One more item of an array literal, which begins as {0}; NULL is SQL NULL. */
void postgres_add_item(struct text *array, const char *item);
void postgres_end_array(struct text *array);

/* The catalog as facts. Both run inside a transaction that the caller has begun. */
int postgres_read_facts(struct sql_store *s, const struct table_names *names, struct facts **ret,
                        struct err *e);
int postgres_read_tables(struct sql_store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                         struct err *e);

#endif
