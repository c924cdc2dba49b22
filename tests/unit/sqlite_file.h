/* A database file in a temporary folder, a store on it, and a few short ways to ask it things. */
#ifndef LAPSE_TEST_SQLITE_FILE_H
#define LAPSE_TEST_SQLITE_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/sqlite/store.h"

struct file {
    char folder[32];
    char dsn[64]; /* sqlite:PATH */
    struct store *store;
    struct sql_store *sql;
};

static inline const char *file_path(const struct file *f)
{
    return f->dsn + strlen("sqlite:");
}

static inline void file_open_store(struct file *f, bool reading)
{
    struct err e = ERR_INIT;
    if (store_sqlite.open(f->dsn, reading, &f->store, &e))
        fail_msg("%s", e.text);
    f->sql = (struct sql_store *)f->store;
}

static inline int file_setup(void **state)
{
    struct file *f = mem_alloc(sizeof(*f));
    snprintf(f->folder, sizeof(f->folder), "/tmp/lapse-test-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->dsn, sizeof(f->dsn), "sqlite:%s/db", f->folder);
    FILE *empty = fopen(file_path(f), "w");
    if (!empty || fclose(empty))
        return -1;
    file_open_store(f, false);
    *state = f;
    return 0;
}

static inline int file_teardown(void **state)
{
    struct file *f = *state;
    if (f->store)
        store_sqlite.close(f->store);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", f->folder);
    int rc = system(command);
    free(f);
    return rc;
}

static inline int try_sql(struct sql_store *s, const char *sql, int64_t *affected, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, sql);
    return s->engine->execute(s, &st, affected, e);
}

static inline int64_t do_sql(struct sql_store *s, const char *sql)
{
    struct err e = ERR_INIT;
    int64_t n = -1;
    if (try_sql(s, sql, &n, &e))
        fail_msg("%s: %s", sql, e.text);
    return n;
}

static inline struct rows ask_stmt(struct sql_store *s, const struct stmt *st)
{
    struct err e = ERR_INIT;
    struct rows rows = {0};
    if (s->engine->query(s, st, &rows, &e))
        fail_msg("%s: %s", text_str(&st->sql), e.text);
    return rows;
}

static inline int64_t ask_number(struct sql_store *s, const char *sql)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, sql);
    AUTO(rows_release) struct rows rows = ask_stmt(s, &st);
    return rows.n_rows ? rows.cells[0].integer : -1;
}

/* What EXPLAIN QUERY PLAN says of the statement, all lines. */
static inline void ask_plan(struct sql_store *s, const struct stmt *st, struct text *out)
{
    struct stmt explain = *st;
    explain.sql = (struct text){0};
    text_addf(&explain.sql, "EXPLAIN QUERY PLAN %s", text_str(&st->sql));
    AUTO(rows_release) struct rows rows = ask_stmt(s, &explain);
    for (size_t i = 0; i < rows.n_rows; i++)
        text_addf(out, "%s\n", rows.cells[i * rows.n_columns + 3].text);
    text_release(&explain.sql);
}

#endif
