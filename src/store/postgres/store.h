/* store: what the files of the PostgreSQL adapter share: the dialect (dialect.c), the
 * catalog (catalog.c) and the connection (store.c, the only one that sees libpq). */
#ifndef LAPSE_STORE_POSTGRES_STORE_H
#define LAPSE_STORE_POSTGRES_STORE_H

#include "store/sql/sqlstore.h"

extern const struct dialect dialect_postgres;
extern const char postgres_foreign[]; /* own.c */

/* --- parameters (bind.c) --- */

struct bound {
    const char **values; /* NULL entry: SQL NULL */
    struct text *texts;
    size_t n;
};
void postgres_bind(struct sql_store *s, const struct stmt *st, struct bound *b);
void bound_release(struct bound *b);

/* One more item of an array literal, which begins as {0}; NULL is SQL NULL. */
void postgres_add_item(struct text *array, const char *item);
void postgres_end_array(struct text *array);

/* --- statements that come again (known.c) ---
 *
 * What a sweep has run before is given a name, so that the server need not read it again. The names are
 * nobody else's: where a server connection turns out to be shared after all, they can only be unknown. */
enum { KNOWN_MOST = 32 }; /* a statement that finds no room goes without a name */
struct statements {
    struct known_statement {
        char *sql;
        size_t len;
        char name[64];
        bool is_named; /* the server knows it */
    } list[KNOWN_MOST];
    size_t n;
    char mark[40]; /* of this connection, in all names */
    uint32_t met;  /* so far: no name is given twice, should the server still have what was forgotten */
};
/* NULL: it is met for the first time. */
struct known_statement *statements_meet(struct statements *all, const struct text *sql);
bool statements_any_named(const struct statements *all);
void statements_forget(struct statements *all);

/* How this user finds names: the schemas, as an array; the first of them; what search_path says. In the open
 * transaction. */
int postgres_names(struct sql_store *s, struct rows *ret, struct err *e);

/* --- the catalog ---
 *
 * As facts. Both run inside a transaction that the caller has begun. */
int postgres_read_facts(struct sql_store *s, const struct table_names *names, struct facts **ret,
                        struct err *e);
int postgres_read_tables(struct sql_store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                         struct err *e);
/* engine.estimate */
int postgres_estimate(struct sql_store *s, const struct plan *p, struct estimate *ret, struct err *e);
/* engine.served */
int postgres_served(struct sql_store *s, const struct stmt *st, bool *ret, struct text *words, struct err *e);
/* store_ops.pressure (pressure.c) */
int postgres_pressure(struct store *s, struct pressure *ret, struct err *e);

/* Partitions of the plan's table by range, at any depth; id: only that one, NULL: all. In the caller's
 * transaction. */
int postgres_read_partitions(struct sql_store *s, const struct plan *p, const char *id,
                             struct partitions *ret, struct err *e);
extern const struct partition_ops postgres_partitions;
extern const struct column postgres_place; /* ctid */
/* pieces_json.c: store_ops.pieces. */
int postgres_pieces(struct store *s, const struct plan *p, struct arena *a, struct table_pieces *ret,
                    struct err *e);

#endif
