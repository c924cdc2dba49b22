/* store_sqlite: what the files of the SQLite adapter share. Only store_sqlite.c knows the client library. */
#ifndef LAPSE_STORE_SQLITE_H
#define LAPSE_STORE_SQLITE_H

#include "sqlstore.h"

/* The dialect uses two functions that every connection of the adapter brings:
 *   lapse_instant(value, zone)   microseconds since the epoch of a text that is a timestamp, else NULL
 *   lapse_latest(a, b, …)        the greatest of the integers given, NULLs ignored; NULL if there is none */
extern const struct dialect dialect_sqlite;

/* The catalog, through the engine's query(). */
int sqlite_inspect(struct store *s, const struct table_names *names, struct facts **ret, struct err *e);
int sqlite_list_tables(struct store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                       struct err *e);

/* A column's own collation, or NULL: BINARY, or no such column. Copy it before the next call. */
const char *sqlite_collation(struct sql_store *s, const char *table, const char *column);

#endif
