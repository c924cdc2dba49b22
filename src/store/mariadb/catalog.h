/* catalog: what the files of the MariaDB catalog share: questions put to information_schema, and what
 * the server is. */
#ifndef LAPSE_STORE_MARIADB_CATALOG_H
#define LAPSE_STORE_MARIADB_CATALOG_H

#include "store/mariadb/store.h"

/* What the server says of itself. */
struct server {
    bool mariadb;         /* else MySQL */
    int version;          /* 1011: 10.11; 800: 8.0 */
    const char *database; /* the one connected to; NULL: none */
    bool names_fold;      /* names of tables are kept in lower case */
    bool galera;
    bool group; /* of MySQL: one of several that replicate as a group */
    bool statement_binlog;
};

struct grant;

/* The tables asked for that there are: tables[i] of the facts. */
struct reading {
    struct sql_store *store;
    struct facts *facts;
    struct server server;
    const struct grant *grants; /* what this user may do, and where */
    size_t n_grants;
};

/* Runs a query. {1}, {2}, … stand for texts[0], texts[1], … (NULL: SQL NULL). ret is {0} or an earlier
 * answer. */
int mariadb_ask(struct sql_store *s, const char *sql, const char *const *texts, size_t n, struct rows *ret,
                struct err *e);
/* NULL: SQL NULL. Valid as long as the rows. */
const char *mariadb_cell(const struct rows *r, size_t row, size_t column);
int64_t mariadb_number(const struct rows *r, size_t row, size_t column);

/* The grants; whether there may be tables that this user cannot see. */
int mariadb_read_grants(struct reading *r, struct err *e);
/* Foreign keys that point at the tables of the facts, and whether others may be hidden from this user. */
int mariadb_read_fkeys(const struct reading *r, struct err *e);
/* What this user may do to them, and whether it sees their triggers. Columns are known. */
int mariadb_read_rights(const struct reading *r, struct err *e);

#endif
