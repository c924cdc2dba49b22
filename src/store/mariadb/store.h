/* store: what the files of the MariaDB and MySQL adapter share: the dialect (dialect.c), the
 * catalog (catalog.c), the connection string and literals (dsn.c,
 * text.c), what EXPLAIN says (explain.c), what errors mean (errors.c) and the connection (store.c, the
 * only one that sees libmariadb). */
#ifndef LAPSE_STORE_MARIADB_STORE_H
#define LAPSE_STORE_MARIADB_STORE_H

#include "store/sql/sqlstore.h"

/* What a server is; what it can do follows from it. */
struct mariadb_server {
    bool mysql;            /* MySQL, not MariaDB */
    int version;           /* 101119: 10.11.19 */
    bool galera;           /* part of a cluster of Galera */
    const char *certifies; /* what decides at COMMIT which transactions of several servers go through:
                            * "Galera", "group replication"; NULL: locks of this one server do */
    bool undoes_all;       /* a lock that is not had undoes the transaction, not the statement */
};

/* As MariaDB 10.6 and later read it; and what it is for a server: only what the server decides differs. */
extern const struct dialect dialect_mariadb;
struct dialect mariadb_dialect_for(const struct mariadb_server *server);

/* --- literals (text.c) ------------------------------------------------------------------ */

/* Stands in the SQL text for a parameter, which the connection writes as a literal: "\1" "3" "\1" for
 * params[2], a value or all rows of one column of a set; "\1" "3-5" "\1" for params[2] to params[4],
 * columns of one set, as rows: (1,'a',NULL),(2,'b','x'); so it is for "3-3": (1),(2). "3=5" writes ROW before
 * each. An empty set is (NULL, …). No text of a contract has this byte. */
#define MARIADB_PARAM "\x01"
/* The statement with its literals; sets are s->sets. -1: a value does not fit the type it is bound as. */
int mariadb_write(const struct sql_store *s, const struct stmt *st, struct text *out, struct err *e);
/* The same for people: ?3. */
void mariadb_show(const struct stmt *st, struct text *out);
/* A literal of a value for a column of that type (information_schema's data_type; NULL: as it comes). */
int mariadb_literal(const struct value *v, const char *sql_type, struct text *out, struct err *e);

/* --- the connection string (dsn.c) ------------------------------------------------------ */

enum mariadb_tls { TLS_PREFERRED, TLS_DISABLED, TLS_REQUIRED, TLS_VERIFIED, TLS_UNSAID };
struct mariadb_dsn {
    struct arena *arena; /* owns the rest */
    const char *user;    /* NULL: whom the system says we are */
    const char *password;
    const char *database;
    struct mariadb_host {
        const char *name; /* NULL: by the socket */
        unsigned port;
    } * hosts; /* in the order in which they are tried */
    size_t n_hosts;
    const char *socket; /* NULL: over the network */
    enum mariadb_tls tls;
    const char *ca, *cert, *key; /* files; NULL: none */
    int connect_timeout_s;
};
/* scheme://user:password@host:port,…/database?options. The words of an error never hold a password. */
int mariadb_dsn_parse(const char *dsn, struct mariadb_dsn *ret, struct err *e);
void mariadb_dsn_release(struct mariadb_dsn *d);

/* --- the catalog (catalog.c) ------------------------------------------------------------------ */

/* The catalog as facts. Both run inside a transaction that the caller has begun. */
int mariadb_read_facts(struct sql_store *s, const struct table_names *names, struct facts **ret,
                       struct err *e);
int mariadb_read_tables(struct sql_store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                        struct err *e);
int mariadb_read_stamp(struct sql_store *s, int64_t *ret,
                       struct err *e); /* a number that changes with the schema */

/* --- EXPLAIN (explain.c) ---------------------------------------------------------------- */

/* A line of it, of a statement that is held to one index. NULL: SQL NULL. */
struct mariadb_access {
    const char *type, *possible, *key, *extra;
};
/* By a range that ends with the time, in the order of the index. */
bool mariadb_reads_range(const struct mariadb_access *a);
/* The line for people: appended to out. */
void mariadb_access_words(const struct mariadb_access *a, struct text *out);

/* --- errors (errors.c) ------------------------------------------------------------------ */

/* What the server said. */
struct mariadb_words {
    unsigned number;
    const char *state, *text;
};
enum err_kind mariadb_error_kind(struct mariadb_words w);
bool mariadb_is_read_only(struct mariadb_words w);
/* Of the answer to COMMIT: the transaction was certainly rolled back, on every server of a cluster. */
bool mariadb_not_committed(struct mariadb_words w);

/* --- others (pressure.c) ---------------------------------------------------------------- */

/* Outside of a transaction. */
int mariadb_read_pressure(struct sql_store *s, struct pressure *ret, struct err *e);
/* Whether the server counts the statement among those that pressure.others is of. */
bool mariadb_is_counted(const char *sql);

#endif
