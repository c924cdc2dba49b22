/* store: the SQLite adapter: a connection, transactions, statements, key sets as virtual tables. */
#include "store/sqlite/store.h"

#include <sqlite3.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    READ_LOCK_TIMEOUT_MS = 10000, /* other sweepers may write back to back: a reader gets its turn late */
    STEPS_BETWEEN_LOOKS = 2000,   /* instructions of SQLite's machine between two looks at the clock */
    IMPATIENT_TRIES = 4000,       /* of a lock, at short intervals */
    SHORT_WAIT_US = 250,
    LONG_WAIT_US = 2000,
    STATEMENTS_KEPT = 32, /* compiled, for the next time */
    CELLS_AT_HAND = 16,   /* columns of a row that need no memory of their own */
};

static const int64_t EPOCH_JULIAN_MS = INT64_C(210866760000000); /* 1970, as SQLite counts */

/* A statement that was compiled before; batch after batch asks the same. */
struct kept_statement {
    sqlite3_stmt *st; /* NULL: none */
    char *sql;
    size_t len;
    int64_t used; /* the higher, the later */
};

struct sqlite_store {
    struct sql_store sql; /* first */
    sqlite3 *db;
    struct kept_statement kept[STATEMENTS_KEPT];
    int64_t uses;
    char *path;
    bool reading;
    bool in_transaction; /* we began one; SQLite may have ended it since */
    bool marked;         /* the savepoint exists */
    int64_t lock_timeout_us;
    int64_t waiting_since_us;     /* for a lock */
    int64_t statement_timeout_us; /* 0: none */
    int64_t deadline_us;          /* of the statement that runs; 0: none */
    bool logs_ahead;              /* WAL: a commit that is not synced is still whole, or not there */
    bool lax;                     /* commits are not synced one by one */
    int64_t synced_us;            /* when one last was */
    int64_t others;               /* what pressure() saw last; 0: it did not look yet … */
    bool alone;                   /* … or nobody has written since */
    struct known_ties ties;       /* as far as asked for */
    struct zone **zones;          /* opened by lapse_instant */
    size_t n_zones;
};

static struct sqlite_store *of_sql(struct sql_store *s)
{
    return (struct sqlite_store *)s;
}

static struct sqlite_store *of_store(struct store *s)
{
    return (struct sqlite_store *)s;
}

/* --- errors ------------------------------------------------------------------------------------ */

#define CODE(name)                                                                                           \
    {                                                                                                        \
        name, #name                                                                                          \
    }
static const struct {
    int code;
    const char *name;
} code_names[] = {
    CODE(SQLITE_ERROR),
    CODE(SQLITE_PERM),
    CODE(SQLITE_ABORT),
    CODE(SQLITE_BUSY),
    CODE(SQLITE_LOCKED),
    CODE(SQLITE_NOMEM),
    CODE(SQLITE_READONLY),
    CODE(SQLITE_INTERRUPT),
    CODE(SQLITE_IOERR),
    CODE(SQLITE_CORRUPT),
    CODE(SQLITE_FULL),
    CODE(SQLITE_CANTOPEN),
    CODE(SQLITE_PROTOCOL),
    CODE(SQLITE_SCHEMA),
    CODE(SQLITE_TOOBIG),
    CODE(SQLITE_CONSTRAINT),
    CODE(SQLITE_MISMATCH),
    CODE(SQLITE_MISUSE),
    CODE(SQLITE_AUTH),
    CODE(SQLITE_RANGE),
    CODE(SQLITE_NOTADB),
    CODE(SQLITE_BUSY_RECOVERY),
    CODE(SQLITE_BUSY_SNAPSHOT),
    CODE(SQLITE_BUSY_TIMEOUT),
    CODE(SQLITE_LOCKED_SHAREDCACHE),
    CODE(SQLITE_CONSTRAINT_CHECK),
    CODE(SQLITE_CONSTRAINT_FOREIGNKEY),
    CODE(SQLITE_CONSTRAINT_NOTNULL),
    CODE(SQLITE_CONSTRAINT_PRIMARYKEY),
    CODE(SQLITE_CONSTRAINT_TRIGGER),
    CODE(SQLITE_CONSTRAINT_UNIQUE),
    CODE(SQLITE_CONSTRAINT_ROWID),
    CODE(SQLITE_CONSTRAINT_DATATYPE),
    CODE(SQLITE_READONLY_DBMOVED),
    CODE(SQLITE_READONLY_DIRECTORY),
    CODE(SQLITE_READONLY_ROLLBACK),
    CODE(SQLITE_READONLY_RECOVERY),
    CODE(SQLITE_READONLY_CANTINIT),
    CODE(SQLITE_IOERR_READ),
    CODE(SQLITE_IOERR_SHORT_READ),
    CODE(SQLITE_IOERR_WRITE),
    CODE(SQLITE_IOERR_FSYNC),
    CODE(SQLITE_IOERR_TRUNCATE),
    CODE(SQLITE_IOERR_DELETE),
};

static const char *code_name(int code)
{
    for (size_t i = 0; i < COUNT_OF(code_names); i++)
        if (code_names[i].code == code)
            return code_names[i].name;
    return (code & 0xff) != code ? code_name(code & 0xff) : "SQLITE_ERROR";
}

static enum err_kind kind_of(int code)
{
    if (code == SQLITE_BUSY_SNAPSHOT)
        return ERR_CONFLICT;
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return ERR_BUSY;
    case SQLITE_CONSTRAINT:
        return ERR_REFUSED;
    case SQLITE_INTERRUPT: /* only our own look at the clock interrupts */
        return ERR_TIMEOUT;
    default:
        return ERR_DATABASE;
    }
}

static int fail_code(int code, const char *words, struct err *e)
{
    const char *name = code_name(code);
    err_set(e, kind_of(code), "sqlite %s: %s", name, words);
    if (e)
        memcpy(e->code, name, strlen(name) + 1);
    return -1;
}
_Static_assert(sizeof("SQLITE_CONSTRAINT_FOREIGNKEY") <= sizeof(((struct err *)0)->code), "names fit");

/* The connection's last error. */
static int fail(struct sqlite_store *q, struct err *e)
{
    int code = sqlite3_extended_errcode(q->db);
    if (store_interrupted(&q->sql.store))
        return err_set(e, ERR_STOPPED, "sqlite: interrupted");
    if (code == SQLITE_INTERRUPT)
        return fail_code(code, "the statement took longer than it may", e);
    return fail_code(code, sqlite3_errmsg(q->db), e);
}

/* --- functions the dialect uses ---------------------------------------------------------------- */

static const struct zone *zone_named(struct sqlite_store *q, const char *name, struct err *e)
{
    for (size_t i = 0; i < q->n_zones; i++)
        if (strcmp(zone_name(q->zones[i]), name) == 0)
            return q->zones[i];
    struct zone *z = NULL;
    if (zone_open(name, &z, e))
        return NULL;
    q->zones = mem_grow(q->zones, q->n_zones + 1, sizeof(struct zone *));
    q->zones[q->n_zones++] = z;
    return z;
}

static void lapse_instant(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    const char *name = (const char *)sqlite3_value_text(values[1]);
    if (sqlite3_value_type(values[0]) != SQLITE_TEXT || !name)
        return;
    struct err e = ERR_INIT;
    const struct zone *z = zone_named(sqlite3_user_data(context), name, &e);
    if (!z) {
        sqlite3_result_error(context, e.text, -1);
        return;
    }
    const char *text = (const char *)sqlite3_value_text(values[0]);
    instant at;
    if (text && when_parse(text, (size_t)sqlite3_value_bytes(values[0]), z, &at))
        sqlite3_result_int64(context, at);
}

static void lapse_latest(sqlite3_context *context, int n, sqlite3_value **values)
{
    const sqlite3_value *greatest = NULL;
    sqlite3_int64 at = 0;
    for (int i = 0; i < n; i++) {
        if (sqlite3_value_type(values[i]) != SQLITE_INTEGER)
            continue;
        sqlite3_int64 v = sqlite3_value_int64(values[i]);
        if (!greatest || v > at) {
            greatest = values[i];
            at = v;
        }
    }
    if (greatest)
        sqlite3_result_int64(context, at);
}

static int add_functions(struct sqlite_store *q)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int rc = sqlite3_create_function_v2(q->db, "lapse_instant", 2, flags, q, lapse_instant, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(q->db, "lapse_latest", -1, flags, q, lapse_latest, NULL, NULL, NULL);
    return rc;
}

/* --- statements -------------------------------------------------------------------------------- */

static void finalize_p(sqlite3_stmt **p)
{
    sqlite3_finalize(*p);
}

static int out_of_time(void *store)
{
    const struct sqlite_store *q = store;
    return store_interrupted(&q->sql.store) || (q->deadline_us && when_monotonic_us() > q->deadline_us);
}

static void start_clock(struct sqlite_store *q)
{
    int64_t deadline = 0;
    if (q->statement_timeout_us > 0 && !add_i64(when_monotonic_us(), q->statement_timeout_us, &deadline))
        deadline = 0;
    q->deadline_us = deadline;
}

static int prepare(struct sqlite_store *q, const char *sql, sqlite3_stmt **ret, struct err *e)
{
    const char *rest = NULL;
    if (sqlite3_prepare_v2(q->db, sql, -1, ret, &rest) != SQLITE_OK)
        return fail(q, e);
    while (isspace((unsigned char)*rest))
        rest++;
    if (!*ret || *rest)
        return fail_code(SQLITE_ERROR, "not exactly one statement", e);
    return 0;
}

/* A condition of the contract may hold @x, which SQLite would read as parameters that are NULL. */
static int prepare_text(struct sqlite_store *q, const struct text *sql, size_t n_params, sqlite3_stmt **ret,
                        struct err *e)
{
    if (prepare(q, text_str(sql), ret, e))
        return -1;
    if ((size_t)sqlite3_bind_parameter_count(*ret) != n_params)
        return fail_code(SQLITE_ERROR, "a parameter that is not :now", e);
    return 0;
}

static void forget_statement(struct kept_statement *k)
{
    sqlite3_finalize(k->st);
    free(k->sql);
    *k = (struct kept_statement){0};
}

/* The one that was not asked for the longest makes room. */
static sqlite3_stmt *keep_statement(struct sqlite_store *q, const struct text *sql, sqlite3_stmt *st)
{
    struct kept_statement *oldest = &q->kept[0];
    for (size_t i = 1; i < STATEMENTS_KEPT; i++)
        if (q->kept[i].used < oldest->used)
            oldest = &q->kept[i];
    forget_statement(oldest);
    *oldest = (struct kept_statement){st, mem_strdup(text_str(sql)), sql->len, ++q->uses};
    return st;
}

/* What is given is to be reset after use; it is the store's. SQLite compiles it anew by itself where the
 * schema has changed. */
static int compiled(struct sqlite_store *q, const struct text *sql, size_t n_params, sqlite3_stmt **ret,
                    struct err *e)
{
    sqlite3_stmt *st = NULL;
    for (size_t i = 0; i < STATEMENTS_KEPT; i++) {
        struct kept_statement *k = &q->kept[i];
        if (!k->st || k->len != sql->len || memcmp(k->sql, text_str(sql), k->len) != 0)
            continue;
        k->used = ++q->uses;
        *ret = k->st;
        return 0;
    }
    if (prepare_text(q, sql, n_params, &st, e)) {
        sqlite3_finalize(st);
        return -1;
    }
    *ret = keep_statement(q, sql, st);
    return 0;
}

/* Not later: one that stands in the middle of a table holds its transaction open. */
static void reset_p(sqlite3_stmt **p)
{
    sqlite3_reset(*p);
}

static int bind_value(sqlite3_stmt *st, int n, const struct value *v)
{
    const char *bytes = v->text ? v->text : "";
    switch (v->kind) {
    case VALUE_NULL:
        return sqlite3_bind_null(st, n);
    case VALUE_INTEGER:
        return sqlite3_bind_int64(st, n, v->integer);
    case VALUE_REAL:
        return sqlite3_bind_double(st, n, v->real);
    case VALUE_TEXT:
        return sqlite3_bind_text64(st, n, bytes, v->len, SQLITE_STATIC, SQLITE_UTF8);
    case VALUE_BLOB:
        return sqlite3_bind_blob64(st, n, bytes, v->len, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

static struct value cell(sqlite3_stmt *st, int i)
{
    struct value v = {.kind = VALUE_NULL};
    switch (sqlite3_column_type(st, i)) {
    case SQLITE_INTEGER:
        v.kind = VALUE_INTEGER;
        v.integer = sqlite3_column_int64(st, i);
        break;
    case SQLITE_FLOAT:
        v.kind = VALUE_REAL;
        v.real = sqlite3_column_double(st, i);
        break;
    case SQLITE_TEXT:
        v.kind = VALUE_TEXT;
        v.text = (const char *)sqlite3_column_text(st, i);
        v.len = (size_t)sqlite3_column_bytes(st, i);
        break;
    case SQLITE_BLOB:
        v.kind = VALUE_BLOB;
        v.text = sqlite3_column_blob(st, i);
        v.len = (size_t)sqlite3_column_bytes(st, i);
        break;
    default:
        break;
    }
    if (v.kind >= VALUE_TEXT && !v.text) /* an empty blob */
        v.text = "";
    return v;
}

static void push_row(sqlite3_stmt *st, struct rows *ret)
{
    struct value few[CELLS_AT_HAND];
    AUTO(mem_free_p)
    struct value *many = ret->n_columns > CELLS_AT_HAND ? mem_alloc(ret->n_columns * sizeof(*many)) : NULL;
    struct value *cells = many ? many : few;
    for (size_t i = 0; i < ret->n_columns; i++)
        cells[i] = cell(st, (int)i);
    rows_push(ret, cells);
}

/* Steps a prepared statement to its end; ret may be NULL. */
static int step(struct sqlite_store *q, sqlite3_stmt *st, struct rows *ret, struct err *e)
{
    int rc;
    if (ret)
        ret->n_columns = (size_t)sqlite3_column_count(st);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        if (ret)
            push_row(st, ret);
    return rc == SQLITE_DONE ? 0 : fail(q, e);
}

static int run(struct sqlite_store *q, sqlite3_stmt *st, struct rows *ret, struct err *e)
{
    start_clock(q);
    return step(q, st, ret, e);
}

static int run_text(struct sqlite_store *q, const char *sql, struct err *e)
{
    AUTO(finalize_p) sqlite3_stmt *st = NULL;
    if (prepare(q, sql, &st, e))
        return -1;
    return run(q, st, NULL, e);
}

/* After RAISE(ROLLBACK), an interrupt or a full disk SQLite has ended the transaction by itself; whatever
 * came next would be committed at once. */
static int still_open(struct sqlite_store *q, struct err *e)
{
    if (!q->db)
        return err_set(e, ERR_LOST, "sqlite: %s is not open", q->path);
    if (store_interrupted(&q->sql.store))
        return err_set(e, ERR_STOPPED, "sqlite: interrupted");
    if (q->in_transaction && sqlite3_get_autocommit(q->db))
        return err_set(e, ERR_DATABASE, "sqlite: the transaction was rolled back by a trigger or an error");
    return 0;
}

/* row: of the set that parameters are columns of; NULL: none is. */
static int bind(struct sqlite_store *q, sqlite3_stmt *st, const struct stmt *s, const struct value *row,
                struct err *e)
{
    for (size_t i = 0; i < s->n_params; i++) {
        const struct param *p = &s->params[i];
        if (bind_value(st, (int)i + 1, row && p->set >= 0 ? &row[p->set_column] : &p->value) != SQLITE_OK)
            return fail(q, e);
    }
    return 0;
}

static int run_stmt(struct sqlite_store *q, const struct stmt *s, struct rows *ret, struct err *e)
{
    AUTO(reset_p) sqlite3_stmt *st = NULL;
    if (still_open(q, e) || compiled(q, &s->sql, s->n_params, &st, e) || bind(q, st, s, NULL, e))
        return -1;
    return run(q, st, ret, e);
}

static int query(struct sql_store *s, const struct stmt *st, struct rows *ret, struct err *e)
{
    struct rows rows = {0};
    if (run_stmt(of_sql(s), st, &rows, e)) {
        rows_release(&rows);
        return -1;
    }
    *ret = rows;
    return 0;
}

/* "x" for 'x' is refused in what a contract says, but an application's triggers may use it. */
static void allow_quoted_strings(struct sqlite_store *q, bool allow)
{
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_DQS_DML, (int)allow, NULL);
}

/* Unlike the PRAGMA, this has effect within a transaction. Returns whether it is so now. */
static bool switch_foreign_keys(struct sqlite_store *q, bool on)
{
    int now_on = !on;
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_ENABLE_FKEY, (int)on, &now_on);
    return now_on == (int)on;
}

static int foreign_keys_again(struct sqlite_store *q, struct err *e)
{
    return switch_foreign_keys(q, true)
               ? 0
               : err_set(e, ERR_DATABASE, "sqlite: foreign keys cannot be enforced any more");
}

static int run_once(struct sqlite_store *q, const struct stmt *s, int64_t *ret, struct err *e)
{
    if (run_stmt(q, s, NULL, e))
        return -1;
    *ret = sqlite3_changes64(q->db);
    return 0;
}

static int runs_for(struct sqlite_store *q, const struct stmt *s, const struct runs **ret, struct err *e)
{
    const struct param *p = &s->params[0];
    *ret = rows_runs(&q->sql.sets[p->set].rows, p->set_column, VALUE_INTEGER);
    return *ret ? 0 : err_set(e, ERR_DATABASE, "sqlite: set %d has no runs", p->set);
}

static int step_run(struct sqlite_store *q, sqlite3_stmt *st, const struct runs *runs, size_t i,
                    struct rows *ret, struct err *e)
{
    if (still_open(q, e))
        return -1;
    sqlite3_reset(st);
    if (sqlite3_bind_int64(st, 1, runs->first[i]) != SQLITE_OK ||
        sqlite3_bind_int64(st, 2, runs->last[i]) != SQLITE_OK)
        return fail(q, e);
    return step(q, st, ret, e);
}

/* Once for each run of the set's numbers. */
static int run_by_runs(struct sqlite_store *q, const struct stmt *s, int64_t *ret, struct err *e)
{
    AUTO(reset_p) sqlite3_stmt *st = NULL;
    const struct runs *runs = NULL;
    if (runs_for(q, s, &runs, e) || compiled(q, &s->sql, s->n_params, &st, e))
        return -1;
    start_clock(q);
    *ret = 0;
    for (size_t i = 0; i < runs->n; i++) {
        if (step_run(q, st, runs, i, NULL, e))
            return -1;
        *ret += sqlite3_changes64(q->db);
    }
    return 0;
}

typedef int running(struct sqlite_store *q, const struct stmt *s, int64_t *ret, struct err *e);

static int run_watched(struct sqlite_store *q, running *run_it, const struct stmt *s, int64_t *ret,
                       struct err *e)
{
    allow_quoted_strings(q, true);
    int rc = run_it(q, s, ret, e);
    allow_quoted_strings(q, false);
    return rc;
}

/* Where foreign keys are enforced and a table has any, SQLite goes twice over the rows that a DELETE is
 * about, and looks for what refers to each. */
static int run_unwatched(struct sqlite_store *q, running *run_it, const struct stmt *s, int64_t *ret,
                         struct err *e)
{
    if (!switch_foreign_keys(q, false))
        return run_watched(q, run_it, s, ret, e);
    int rc = run_it(q, s, ret, e);
    return foreign_keys_again(q, rc ? NULL : e) ? -1 : rc;
}

/* Violations that a later statement of the transaction may yet make good. */
static bool owes_foreign_keys(const struct sqlite_store *q)
{
    int violations = 0, highest = 0;
    sqlite3_db_status(q->db, SQLITE_DBSTATUS_DEFERRED_FKS, &violations, &highest, 0);
    return violations;
}

static int any_refers(struct sqlite_store *q, const char *question, const struct runs *runs, bool *ret,
                      struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    AUTO(text_release) struct text sql = {0};
    AUTO(reset_p) sqlite3_stmt *st = NULL;
    text_add(&sql, question);
    if (compiled(q, &sql, 2, &st, e))
        return -1;
    start_clock(q);
    *ret = false;
    for (size_t i = 0; i < runs->n && !*ret; i++) {
        found.n_rows = 0;
        if (step_run(q, st, runs, i, &found, e))
            return -1;
        *ret = found.n_rows != 1 || rows_at(&found, 0)->integer != 0;
    }
    return 0;
}

/* Foreign keys have nothing to say of rows to which none refers; nobody else writes now. Whether any does is
 * asked of whole runs at once, where SQLite would look for each row. */
static int goes_unwatched(struct sqlite_store *q, const struct stmt *s, bool *ret, struct err *e)
{
    const struct ties *ties = NULL;
    *ret = false;
    if (!s->deletes || !q->in_transaction || owes_foreign_keys(q))
        return 0;
    if (sqlite_ties(&q->sql, &q->ties, s->deletes, &ties, e))
        return -1;
    *ret = ties->none;
    if (!ties->question || !s->runs_of || s->runs_of != s->deletes->key[0])
        return 0;
    const struct runs *runs = NULL;
    bool any;
    if (runs_for(q, s, &runs, e) || any_refers(q, ties->question, runs, &any, e))
        return -1;
    *ret = !any;
    return 0;
}

static int change(struct sqlite_store *q, running *run_it, const struct stmt *s, int64_t *ret, struct err *e)
{
    bool unwatched;
    if (still_open(q, e) || goes_unwatched(q, s, &unwatched, e))
        return -1;
    return (unwatched ? run_unwatched : run_watched)(q, run_it, s, ret, e);
}

static int execute(struct sql_store *s, const struct stmt *st, int64_t *ret_affected, struct err *e)
{
    int64_t affected = 0;
    if (change(of_sql(s), run_once, st, &affected, e))
        return -1;
    if (ret_affected)
        *ret_affected = affected;
    return 0;
}

static int execute_by_runs(struct sql_store *s, struct by_runs *b, struct err *e)
{
    for (size_t i = 0; i < b->n; i++)
        if (change(of_sql(s), run_by_runs, &b->list[i].st, &b->list[i].rows, e))
            return -1;
    return 0;
}

/* A trigger may end the transaction in one run, and the next would be one of its own. */
static int run_each(struct sqlite_store *q, const struct stmt *s, const struct rows *set, size_t most,
                    struct rows *ret, int64_t *ret_changed, struct err *e)
{
    AUTO(reset_p) sqlite3_stmt *st = NULL;
    if (compiled(q, &s->sql, s->n_params, &st, e))
        return -1;
    start_clock(q);
    for (size_t i = 0; i < set->n_rows && (!ret || ret->n_rows < most); i++) {
        if (still_open(q, e) || bind(q, st, s, rows_at(set, i), e) || step(q, st, ret, e))
            return -1;
        if (ret_changed)
            ret_changed[i] = sqlite3_changes64(q->db);
        sqlite3_reset(st);
    }
    return 0;
}

static int each(struct sql_store *s, const struct stmt *st, int set, size_t most, struct rows *ret,
                int64_t *ret_changed, struct err *e)
{
    struct sqlite_store *q = of_sql(s);
    struct rows rows = {0};
    if (still_open(q, e))
        return -1;
    allow_quoted_strings(q, ret_changed != NULL);
    int rc = run_each(q, st, &s->sets[set].rows, most, ret ? &rows : NULL, ret_changed, e);
    allow_quoted_strings(q, false);
    if (rc == 0 && ret)
        *ret = rows;
    else
        rows_release(&rows);
    return rc;
}

static int accepts(struct sql_store *s, const struct stmt *st, struct err *e)
{
    AUTO(finalize_p) sqlite3_stmt *compiled = NULL;
    struct sqlite_store *q = of_sql(s);
    return still_open(q, e) ? -1 : prepare_text(q, &st->sql, st->n_params, &compiled, e);
}

/* "SEARCH this USING INDEX …" it is to be, and no B-tree to sort in. */
static int served(struct sql_store *s, const struct stmt *st, bool *ret, struct text *words, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    AUTO(finalize_p) sqlite3_stmt *compiled_now = NULL;
    AUTO(text_release) struct text sql = {0};
    struct sqlite_store *q = of_sql(s);
    text_addf(&sql, "EXPLAIN QUERY PLAN %s", text_str(&st->sql));
    if (still_open(q, e) || prepare(q, text_str(&sql), &compiled_now, e) ||
        bind(q, compiled_now, st, NULL, e) || run(q, compiled_now, &found, e))
        return -1;
    *ret = true;
    for (size_t i = 0; i < found.n_rows; i++) {
        const struct value *detail = rows_at(&found, i) + found.n_columns - 1;
        bool sorts = strstr(detail->text, "TEMP B-TREE FOR ORDER BY") != NULL; /* not the rest of it alone */
        bool scans = strncmp(detail->text, "SCAN ", 5) == 0 && !strstr(detail->text, " USING ");
        *ret = *ret && !sorts && !scans;
        text_addf(words, "%s%s", i ? "; " : "", detail->text);
    }
    return 0;
}

/* --- key sets as tables: temp.lapse_set_N(c0, c1, …) ------------------------------------------------------
 */

/* A type with the affinity of the column the values come from, so that comparing with the set converts what
 * comparing with that column would. */
static const char *set_type(const struct column *c)
{
    switch (c->type) {
    case TYPE_INTEGER:
        return "INTEGER";
    case TYPE_TEXT:
        return "TEXT";
    case TYPE_REAL:
        return "REAL";
    case TYPE_BLOB:
        return "BLOB";
    case TYPE_DYNAMIC:
        return c->sql_type && *c->sql_type && sqlite3_stricmp(c->sql_type, "ANY") ? "NUMERIC" : "BLOB";
    default:
        return "NUMERIC";
    }
}

/* The table is not stored anywhere: what is read of it are the rows of the set, where they are. */
struct set_table {
    sqlite3_vtab base; /* first */
    const struct sqlite_store *store;
    size_t set;
};
struct set_cursor {
    sqlite3_vtab_cursor base; /* first */
    const struct rows *rows;
    size_t at;
};

/* lapse_set(0, c0 INTEGER, c1 TEXT): the number of the set, then its columns. */
static int set_connect(sqlite3 *db, void *store, int n, const char *const *words, sqlite3_vtab **ret,
                       char **why)
{
    (void)why;
    AUTO(text_release) struct text shape = {0};
    for (int i = 4; i < n; i++)
        text_addf(&shape, "%s%s", i > 4 ? ", " : "CREATE TABLE set_of_rows(", words[i]);
    text_add(&shape, ")");
    int rc = n < 5 ? SQLITE_ERROR : sqlite3_declare_vtab(db, text_str(&shape));
    if (rc != SQLITE_OK)
        return rc;
    struct set_table *t = mem_alloc(sizeof(*t));
    t->store = store;
    t->set = (size_t)strtoul(words[3], NULL, 10);
    *ret = &t->base;
    return SQLITE_OK;
}

static int set_disconnect(sqlite3_vtab *t)
{
    free(t);
    return SQLITE_OK;
}

/* It is only ever read from one end to the other. */
static int set_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    info->estimatedCost = 1000;
    info->estimatedRows = 1000;
    return SQLITE_OK;
}

static int set_open(sqlite3_vtab *t, sqlite3_vtab_cursor **ret)
{
    (void)t;
    struct set_cursor *c = mem_alloc(sizeof(*c));
    *ret = &c->base;
    return SQLITE_OK;
}

static int set_close(sqlite3_vtab_cursor *c)
{
    free(c);
    return SQLITE_OK;
}

static int set_filter(sqlite3_vtab_cursor *base, int n, const char *s, int n_values, sqlite3_value **values)
{
    (void)n, (void)s, (void)n_values, (void)values;
    struct set_cursor *c = (struct set_cursor *)base;
    const struct set_table *t = (const struct set_table *)base->pVtab;
    if (t->set >= t->store->sql.n_sets)
        return SQLITE_ERROR;
    c->rows = &t->store->sql.sets[t->set].rows;
    c->at = 0;
    return SQLITE_OK;
}

static int set_next(sqlite3_vtab_cursor *base)
{
    ((struct set_cursor *)base)->at++;
    return SQLITE_OK;
}

static int set_eof(sqlite3_vtab_cursor *base)
{
    const struct set_cursor *c = (const struct set_cursor *)base;
    return c->at >= c->rows->n_rows;
}

static int set_column(sqlite3_vtab_cursor *base, sqlite3_context *to, int i)
{
    const struct set_cursor *c = (const struct set_cursor *)base;
    const struct value *v = rows_at(c->rows, c->at) + i;
    const char *bytes = v->text ? v->text : "";
    switch (v->kind) {
    case VALUE_NULL:
        break;
    case VALUE_INTEGER:
        sqlite3_result_int64(to, v->integer);
        break;
    case VALUE_REAL:
        sqlite3_result_double(to, v->real);
        break;
    case VALUE_TEXT:
        sqlite3_result_text64(to, bytes, v->len, SQLITE_STATIC, SQLITE_UTF8);
        break;
    case VALUE_BLOB:
        sqlite3_result_blob64(to, bytes, v->len, SQLITE_STATIC);
        break;
    }
    return SQLITE_OK;
}

static int set_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((const struct set_cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module set_module = {
    .xCreate = set_connect,
    .xConnect = set_connect,
    .xBestIndex = set_best_index,
    .xDisconnect = set_disconnect,
    .xDestroy = set_disconnect,
    .xOpen = set_open,
    .xClose = set_close,
    .xFilter = set_filter,
    .xNext = set_next,
    .xEof = set_eof,
    .xColumn = set_column,
    .xRowid = set_rowid,
};

static void write_set_table(const struct keyset *k, int set, struct text *out)
{
    text_addf(out, "lapse_set_%d USING lapse_set(%d", set, set);
    for (size_t i = 0; i < k->rows.n_columns; i++) {
        bool known = k->node && i < k->node->n_carry;
        text_addf(out, ", c%zu %s", i, known ? set_type(k->node->carry[i]) : "BLOB");
    }
    text_add(out, ")");
}

static int find_set(struct sqlite_store *q, int set, struct rows *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_addf(&st.sql, "SELECT sql FROM temp.sqlite_schema WHERE name = 'lapse_set_%d'", set);
    return run_stmt(q, &st, ret, e);
}

/* What a former transaction created may be gone (ROLLBACK takes it along), or have the shape of another plan:
 * so the temporary schema is asked each time. */
static int prepare_set(struct sqlite_store *q, int set, const struct text *table, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (find_set(q, set, &found, e))
        return -1;
    const char *there = found.n_rows ? strstr(found.cells[0].text, "lapse_set_") : NULL;
    if (there && strcmp(there, text_str(table)) == 0)
        return 0;
    AUTO(text_release) struct text drop = {0}, create = {0};
    text_addf(&drop, "DROP TABLE IF EXISTS temp.lapse_set_%d", set);
    text_addf(&create, "CREATE VIRTUAL TABLE temp.%s", text_str(table));
    return run_text(q, text_str(&drop), e) ? -1 : run_text(q, text_str(&create), e);
}

static int load_set(struct sql_store *s, int set, struct err *e)
{
    struct sqlite_store *q = of_sql(s);
    const struct keyset *k = &s->sets[set];
    AUTO(text_release) struct text table = {0};
    if (!k->rows.n_columns) /* of which nothing is known, and nothing is read */
        return 0;
    write_set_table(k, set, &table);
    return prepare_set(q, set, &table, e) ? err_wrap(e, "key set %d", set) : 0;
}

/* --- transactions ------------------------------------------------------------------------------- */

/* SQLite's own way of waiting soon looks every 100 ms only: beside a sweep whose batches follow each other,
 * the lock would be free again and again and always missed; a brake could not be set. */
static int wait_for_lock(void *context, int tries)
{
    struct sqlite_store *q = context;
    int64_t now_us = when_monotonic_us();
    if (tries == 0)
        q->waiting_since_us = now_us;
    if (now_us - q->waiting_since_us >= q->lock_timeout_us || store_interrupted(&q->sql.store))
        return 0;
    when_sleep_us(tries < IMPATIENT_TRIES ? SHORT_WAIT_US : LONG_WAIT_US);
    return 1;
}

static int begin(struct sqlite_store *q, const char *sql, int64_t statement_timeout_us, struct err *e)
{
    q->in_transaction = q->marked = false;
    q->statement_timeout_us = statement_timeout_us;
    if (still_open(q, e) || run_text(q, sql, e))
        return -1;
    q->in_transaction = true;
    return 0;
}

static int begin_read(struct sql_store *s, int64_t statement_timeout_us, struct err *e)
{
    struct sqlite_store *q = of_sql(s);
    if (q->db)
        q->lock_timeout_us = READ_LOCK_TIMEOUT_MS * US_PER_MS; /* a write may have left another */
    return begin(q, "BEGIN", statement_timeout_us, e);
}

/* Whether the next commit may go without being synced: in WAL such a commit is whole or, after a power
 * failure, not there at all, and what slices did is then found and done again. */
static bool may_be_lax(const struct sqlite_store *q)
{
    return q->sql.repeatable && q->logs_ahead && when_monotonic_us() - q->synced_us < LAX_MOST_US;
}

static int look_at_journal(struct sqlite_store *q, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    AUTO(stmt_release) struct stmt st = {0};
    if (q->logs_ahead) /* which nobody can end while we are here */
        return 0;
    text_add(&st.sql, "PRAGMA main.journal_mode");
    if (run_stmt(q, &st, &found, e))
        return -1;
    q->logs_ahead = found.n_rows && strcmp(rows_at(&found, 0)->text, "wal") == 0;
    return 0;
}

static int choose_sync(struct sqlite_store *q, struct err *e)
{
    if (q->sql.repeatable && look_at_journal(q, e))
        return -1;
    bool lax = may_be_lax(q);
    if (lax != q->lax &&
        run_text(q, lax ? "PRAGMA main.synchronous = NORMAL" : "PRAGMA main.synchronous = FULL", e))
        return -1;
    q->lax = lax;
    return 0;
}

/* The log, that is: what was moved from it into the file was synced then. */
static int sync_log(struct store *s, struct err *e)
{
    struct sqlite_store *q = of_store(s);
    sqlite3_file *log = NULL;
    if (!q->db || !q->lax)
        return 0;
    sqlite3_file_control(q->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log && log->pMethods && log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) != SQLITE_OK)
        return err_set(e, ERR_DATABASE, "sqlite: the log of %s could not be synced: %s", q->path,
                       strerror(sqlite3_system_errno(q->db)));
    q->synced_us = when_monotonic_us();
    return 0;
}

static int begin_write(struct sql_store *s, int64_t lock_timeout_us, int64_t statement_timeout_us,
                       struct err *e)
{
    struct sqlite_store *q = of_sql(s);
    if (q->db && sqlite3_db_readonly(q->db, "main") == 1)
        return err_set(e, ERR_DATABASE, "sqlite: %s can only be read, not written", q->path);
    if (q->db)
        q->lock_timeout_us = lock_timeout_us;
    if (still_open(q, e) || choose_sync(q, e) || foreign_keys_again(q, e))
        return -1;
    if (begin(q, "BEGIN IMMEDIATE", statement_timeout_us, e))
        return -1;
    s->store.writes = true;
    return 0;
}

/* COMMIT would find out, but only after the fence. */
static int settle(struct sql_store *s, struct err *e)
{
    struct sqlite_store *q = of_sql(s);
    if (still_open(q, e))
        return -1;
    if (owes_foreign_keys(q))
        return fail_code(SQLITE_CONSTRAINT_FOREIGNKEY, "FOREIGN KEY constraint failed", e);
    return 0;
}

static int mark(struct sql_store *s, struct err *e)
{
    struct sqlite_store *q = of_sql(s);
    if (still_open(q, e) || (q->marked && run_text(q, "RELEASE lapse", e)))
        return -1;
    q->marked = false;
    if (run_text(q, "SAVEPOINT lapse", e))
        return -1;
    q->marked = true;
    return 0;
}

static int undo(struct sql_store *s, struct err *e)
{
    struct sqlite_store *q = of_sql(s);
    return still_open(q, e) ? -1 : run_text(q, "ROLLBACK TO lapse", e);
}

/* A COMMIT that fails leaves the transaction open, or rolls it back; it never half succeeds. */
static int commit(struct sql_store *s, struct err *e)
{
    struct sqlite_store *q = of_sql(s);
    if (still_open(q, e) || run_text(q, "COMMIT", e))
        return -1;
    q->in_transaction = q->marked = s->store.writes = false;
    q->synced_us = q->lax ? q->synced_us : when_monotonic_us();
    return 0;
}

static void rollback(struct sql_store *s)
{
    struct sqlite_store *q = of_sql(s);
    if (q->db && !sqlite3_get_autocommit(q->db))
        run_text(q, "ROLLBACK", NULL);
    q->in_transaction = q->marked = s->store.writes = false;
}

/* --- the connection ----------------------------------------------------------------------------- */

const char *sqlite_collation(struct sql_store *s, const char *table, const char *column)
{
    const char *name = NULL;
    int rc =
        sqlite3_table_column_metadata(of_sql(s)->db, "main", table, column, NULL, &name, NULL, NULL, NULL);
    return rc == SQLITE_OK && name && sqlite3_stricmp(name, "BINARY") != 0 ? name : NULL;
}

/* sqlite:PATH, sqlite://PATH, sqlite:///PATH. A relative path gets ./ before it: ":memory:" and "file:…" are
 * then names of files like any other. */
static char *path_of(const char *dsn)
{
    const char *path = strchr(dsn, ':');
    path = path ? path + 1 : dsn;
    if (strncmp(path, "//", 2) == 0)
        path += 2;
    AUTO(text_release) struct text t = {0};
    if (*path && *path != '/' && strncmp(path, "./", 2) != 0)
        text_add(&t, "./");
    text_add(&t, path);
    return mem_strdup(text_str(&t));
}

static int unreachable(const char *path, const char *why, struct err *e)
{
    return err_set(e, ERR_UNREACHABLE, "sqlite: cannot open %s: %s", path, why);
}

/* What a server that replicates SQLite keeps beside the file. It sends its replicas what its clients ask of it, not what
 * others do to the file: the replicas would keep the rows, and a vote or a restart could bring them back. */
static const struct {
    const char *name;
    bool suffix; /* of the file's own name, else a file of its folder */
    const char *of;
} servers[] = {
    {"wallog", false, "sqld, the server of libSQL"},
    {".sentinel", false, "sqld, the server of libSQL"},
    {"-info", true, "libSQL, as a replica of a server"},
    {"-client_wal_index", true, "libSQL, as a replica of a server"},
    {"raft.db", false, "rqlite"},
    {"ltx", false, "LiteFS, which replicates what is written through its own mount"},
};

static int look_for_servers(const char *path, struct err *e)
{
    AUTO(mem_free_p) char *real = realpath(path, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    if (!slash)
        return unreachable(path, strerror(errno), e);
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        AUTO(text_release) struct text beside = {0};
        struct stat st;
        text_add_n(&beside, real, servers[i].suffix ? strlen(real) : (size_t)(slash - real) + 1);
        text_add(&beside, servers[i].name);
        if (lstat(text_str(&beside), &st) == 0)
            return err_set(
                e, ERR_USAGE,
                "sqlite: %s belongs to %s, as %s beside it shows: its replicas would keep what is deleted "
                "in the file, so nothing is done here",
                path, servers[i].of,
                servers[i].suffix ? strrchr(text_str(&beside), '/') + 1 : servers[i].name);
    }
    return 0;
}

/* SQLite's own words for all of these are "unable to open database file". */
static int look_at_file(const char *path, struct err *e)
{
    struct stat st;
    if (!*path)
        return err_set(e, ERR_USAGE, "sqlite: the store names no file; write sqlite:PATH");
    if (stat(path, &st))
        return unreachable(path, strerror(errno), e);
    if (S_ISDIR(st.st_mode))
        return unreachable(path, "it is a directory", e);
    if (!S_ISREG(st.st_mode))
        return unreachable(path, "it is not a regular file", e);
    return look_for_servers(path, e);
}

static int foreign_keys_on(struct sqlite_store *q, struct err *e)
{
    AUTO(finalize_p) sqlite3_stmt *st = NULL;
    if (run_text(q, "PRAGMA foreign_keys = ON", e) || prepare(q, "PRAGMA foreign_keys", &st, e))
        return -1;
    if (sqlite3_step(st) != SQLITE_ROW || sqlite3_column_int(st, 0) != 1)
        return err_set(e, ERR_DATABASE, "this build of SQLite does not enforce foreign keys");
    return 0;
}

/* Only what ends with the connection; nothing that stays in the file. */
static int set_up(struct sqlite_store *q, struct err *e)
{
    sqlite3_extended_result_codes(q->db, 1);
    q->lock_timeout_us = READ_LOCK_TIMEOUT_MS * US_PER_MS;
    sqlite3_busy_handler(q->db, wait_for_lock, q);
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(q->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    allow_quoted_strings(q, false);
    sqlite3_progress_handler(q->db, STEPS_BETWEEN_LOOKS, out_of_time, q);
    if (foreign_keys_on(q, e) || run_text(q, "PRAGMA temp_store = MEMORY", e))
        return -1;
    if (add_functions(q) != SQLITE_OK ||
        sqlite3_create_module_v2(q->db, "lapse_set", &set_module, q, NULL) != SQLITE_OK)
        return fail(q, e);
    return run_text(q, "SELECT count(*) FROM sqlite_schema", e); /* reads the file for the first time */
}

static void disconnect(struct sqlite_store *q)
{
    for (size_t i = 0; i < STATEMENTS_KEPT; i++)
        forget_statement(&q->kept[i]);
    known_ties_release(&q->ties);
    sqlite3_close_v2(q->db);
    q->db = NULL;
    q->in_transaction = q->marked = q->lax = q->logs_ahead = q->alone = false;
    q->others = 0;
}

static int connect(struct sqlite_store *q, struct err *e)
{
    if (look_at_file(q->path, e))
        return -1;
    /* A store is used by one thread at a time: SQLite need not lock at every call. */
    int flags = SQLITE_OPEN_NOMUTEX | (q->reading ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    if (sqlite3_open_v2(q->path, &q->db, flags, NULL) != SQLITE_OK) {
        int error = q->db ? sqlite3_system_errno(q->db) : ENOMEM;
        unreachable(q->path, error ? strerror(error) : sqlite3_errmsg(q->db), e);
        disconnect(q);
        return -1;
    }
    if (set_up(q, e) == 0)
        return 0;
    disconnect(q);
    if (e)
        e->kind = ERR_UNREACHABLE;
    return err_wrap(e, "cannot read %s", q->path);
}

static void store_free(struct store *s)
{
    struct sqlite_store *q = of_store(s);
    disconnect(q);
    for (size_t i = 0; i < q->n_zones; i++)
        zone_free(q->zones[i]);
    free(q->zones);
    free(q->path);
    sql_store_release(&q->sql);
    free(q);
}

static const struct engine engine;

static int store_open_file(const char *dsn, bool reading, struct store **ret, struct err *e)
{
    struct sqlite_store *q = mem_alloc(sizeof(*q));
    q->sql.store.ops = &store_sqlite;
    q->sql.engine = &engine;
    q->path = path_of(dsn);
    q->reading = reading;
    if (connect(q, e)) {
        store_free(&q->sql.store);
        return -1;
    }
    *ret = &q->sql.store;
    return 0;
}

static int reconnect(struct store *s, struct err *e)
{
    disconnect(of_store(s));
    return connect(of_store(s), e);
}

/* A file that was moved away or replaced is not the one that the contract names. */
static int same_file(struct sqlite_store *q, struct err *e)
{
    int moved = 0;
    if (still_open(q, e))
        return -1;
    sqlite3_file_control(q->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved ? err_set(e, ERR_LOST, "sqlite: %s was moved or replaced", q->path) : 0;
}

/* The clock that SQL sees on this connection. */
static int now(struct store *s, instant *ret, struct err *e)
{
    struct sqlite_store *q = of_store(s);
    sqlite3_vfs *vfs = NULL;
    sqlite3_int64 julian_ms;
    if (same_file(q, e))
        return -1;
    if (sqlite3_file_control(q->db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) != SQLITE_OK || !vfs ||
        vfs->iVersion < 2 || vfs->xCurrentTimeInt64(vfs, &julian_ms) != SQLITE_OK)
        return err_set(e, ERR_DATABASE, "sqlite: the clock cannot be read");
    *ret = (julian_ms - EPOCH_JULIAN_MS) * US_PER_MS;
    return 0;
}

static int schema_stamp(struct store *s, int64_t *ret, struct err *e)
{
    struct sqlite_store *q = of_store(s);
    AUTO(finalize_p) sqlite3_stmt *st = NULL;
    AUTO(rows_release) struct rows found = {0};
    q->statement_timeout_us = 0;
    if (still_open(q, e) || prepare(q, "PRAGMA main.schema_version", &st, e) || run(q, st, &found, e))
        return -1;
    *ret = found.n_rows ? rows_at(&found, 0)->integer : -1;
    return 0;
}

/* The log is moved into the file, with two syncs each time, whenever it has grown by so many pages. Others
 * that write would wait for a long move: only a sweep that is alone makes fewer of them. */
static void move_log(struct sqlite_store *q, int64_t others)
{
    enum { PAGES = 1000, PAGES_ALONE = 4000 }; /* the first is SQLite's own choice */
    bool alone = q->others == others;
    if (alone != q->alone)
        sqlite3_wal_autocheckpoint(q->db, alone ? PAGES_ALONE : PAGES);
    q->alone = alone;
    q->others = others;
}

/* Another number after any commit of another connection, and one that grows; commits of this one do not
 * count. There are no replicas, and nobody but a writer is kept waiting. */
static int pressure(struct store *s, struct pressure *ret, struct err *e)
{
    struct sqlite_store *q = of_store(s);
    AUTO(finalize_p) sqlite3_stmt *st = NULL;
    AUTO(rows_release) struct rows found = {0};
    q->statement_timeout_us = 0;
    if (still_open(q, e) || prepare(q, "PRAGMA main.data_version", &st, e) || run(q, st, &found, e))
        return -1;
    *ret = (struct pressure){.one_writer = true,
                             .no_lag = "SQLite has no replicas",
                             .others = found.n_rows ? rows_at(&found, 0)->integer : -1};
    move_log(q, ret->others);
    return 0;
}

static const struct engine engine = {
    .dialect = &dialect_sqlite,
    .query = query,
    .execute = execute,
    .execute_by_runs = execute_by_runs,
    .each = each,
    .load_set = load_set,
    .begin_read = begin_read,
    .begin_write = begin_write,
    .settle = settle,
    .mark = mark,
    .undo = undo,
    .commit = commit,
    .rollback = rollback,
    .accepts = accepts,
    .served = served,
};

const struct store_ops store_sqlite = {
    .scheme = "sqlite",
    .open = store_open_file,
    .close = store_free,
    .reconnect = reconnect,
    .now = now,
    .inspect = sqlite_inspect,
    .schema_stamp = schema_stamp,
    .sync = sync_log,
    .list_tables = sqlite_list_tables,
    .pressure = pressure,
    SQLSTORE_VERBS,
};
