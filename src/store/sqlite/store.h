/* store: what the files of the SQLite adapter share. Only store.c knows the client library. */
#ifndef LAPSE_STORE_SQLITE_STORE_H
#define LAPSE_STORE_SQLITE_STORE_H

#include "store/sql/sqlstore.h"

/* The dialect uses two functions that every connection of the adapter brings:
 *   lapse_instant(value, zone)   microseconds since the epoch of a text that is a timestamp, else NULL
 *   lapse_latest(a, b, …)        the greatest of the integers given, NULLs ignored; NULL if there is none */
extern const struct dialect dialect_sqlite;

/* The catalog, through the engine's query(). */
int sqlite_inspect(struct store *s, const struct table_names *names, struct facts **ret, struct err *e);
int sqlite_list_tables(struct store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                       struct err *e);

/* What foreign keys and triggers make of a row that goes, as the schema says now: asked once as long as it
 * stays the same. In a transaction, so that it does. */
struct ties {
    char *table, *key;
    bool none;      /* no trigger, and no foreign key that refers to it. (Its own may be broken: SQLite would
                     * then let no row go, though one less breaks nothing) */
    char *question; /* no trigger, and foreign keys that refer to its primary key alone, which is the key: 1
                     * if any row refers to one whose key lies from ?1 to ?2, else 0. NULL: it cannot be asked
                     * so */
};
struct known_ties {
    int64_t schema;                   /* whose they are */
    struct rows references, triggers; /* of all tables */
    bool read;                        /* … these were */
    struct ties *list;                /* of those that were asked for */
    size_t n;
};
int sqlite_ties(struct sql_store *s, struct known_ties *known, const struct table *t, const struct ties **ret,
                struct err *e);
void known_ties_release(struct known_ties *known);

/* A column's own collation, or NULL: BINARY, or no such column. Copy it before the next call. */
const char *sqlite_collation(struct sql_store *s, const char *table, const char *column);

#endif
