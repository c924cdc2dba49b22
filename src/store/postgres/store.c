/* store: a connection to PostgreSQL. The only file that sees libpq.
 *
 * Everything holds behind a pooler that hands out a server per transaction: settings are SET LOCAL, there are
 * no session locks, and statements are prepared only where no pooler is.
 *
 * Every question is asked in a transaction, which can write only where something is to be written: what is
 * READ ONLY is so before its first query. Names in it are the server's own, whatever others created in a
 * schema of the search path. The user's search path is for what the user wrote: triggers, and SQL text of the
 * contract. */
#include "store/postgres/store.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <libpq-fe.h>

#include "base/thread.h"

enum { OLDEST_SERVER = 140000, CATALOG_TIMEOUT_S = 30, READ_LOCK_TIMEOUT_S = 5, IDLE_S = 10 };
enum { LOOK_MS = 50 };                               /* between two looks whether to go on waiting */
enum { LATE_S = 30 };                                /* an answer may be later than its statement may take */
static const int64_t CANCEL_LASTS_US = 3 * US_PER_S; /* for a server that does not answer any more */
static const int64_t CANCEL_ASKS_US = US_PER_S / 2;  /* … and for asking it to cancel */

/* Whose names a statement means: the server's alone, or those that this user finds. */
enum path { PATH_UNKNOWN, PATH_SERVER, PATH_USER };
#define SET_SERVER_PATH "SET LOCAL search_path = pg_catalog, pg_temp"
#define SET_USER_PATH   "SET LOCAL search_path TO DEFAULT"

struct postgres {
    struct sql_store sql; /* first: a struct store * is one of these */
    PGconn *conn;
    bool reading;
    bool writes;                  /* the open transaction may */
    enum path path;               /* … and in it names mean this */
    bool marked;                  /* the savepoint exists */
    int64_t patience_us;          /* how long a statement may take, by the limit that the server was told */
    bool gave_up;                 /* no answer came for longer than that */
    int64_t stamp, stamp_ends_us; /* of the schema, and until when it will do; 0: not on this connection */
    bool can_sync;                /* it may have the log flushed, and so put it off */
    bool repeatable;              /* what the open transaction did would be found and done again … */
    bool lax;                     /* … and it commits without waiting for the disk */
    int64_t since_us;             /* when this sweep first committed; 0: it did not, on this connection */
    int64_t synced_us;            /* when the log was last known to be on the disk */
    char life[64];                /* of the server: another one after it crashed, or was another */
    bool alone;                   /* the server's end of the connection is always the same, and no other's */
    struct statements statements;
};

static struct postgres *of_sql(struct sql_store *s)
{
    return (struct postgres *)s;
}

static struct postgres *of_store(struct store *s)
{
    return (struct postgres *)s;
}

static void result_clear_p(PGresult **r)
{
    PQclear(*r);
}

/* --- answers ------------------------------------------------------------------------------------- */

static void cancel_now(void *cancel)
{
    char words[256];
    PQcancel(cancel, words, sizeof(words));
}

static void cancel_free(void *cancel)
{
    PQfreeCancel(cancel);
}

static bool is_past(void *until_us)
{
    return when_monotonic_us() > *(int64_t *)until_us;
}

/* It goes over a connection of its own, which a network that swallows everything never answers. */
static void cancel(struct postgres *p)
{
    int64_t until_us = when_monotonic_us() + CANCEL_ASKS_US;
    PGcancel *c = PQgetCancel(p->conn);
    if (c && thread_try(cancel_now, cancel_free, c, is_past, &until_us))
        PQfreeCancel(c);
}

static void give_up(struct postgres *p)
{
    p->gave_up = true;
    shutdown(PQsocket(p->conn), SHUT_RDWR);
}

/* Waits until the server has spoken. Interrupted meanwhile: has the statement cancelled; of a server that
 * does not answer that either, the connection is given up, and what is not committed with it. So it is where
 * no answer comes though the server has long ended the statement: a network that swallows everything closes
 * no connection, and whoever waited for it would wait for hours. */
static void wait_for_answer(struct postgres *p)
{
    int64_t cancelled_us = 0, since_us = when_monotonic_us();
    while (PQisBusy(p->conn)) {
        struct pollfd fd = {PQsocket(p->conn), POLLIN, 0};
        int ready = poll(&fd, 1, LOOK_MS);
        if (ready > 0 && !PQconsumeInput(p->conn))
            return;
        if (ready > 0)
            since_us = when_monotonic_us();
        else if (when_monotonic_us() - since_us > p->patience_us + LATE_S * US_PER_S)
            give_up(p);
        if (p->sql.store.trying && store_gives_up(&p->sql.store))
            give_up(p);
        if (!store_interrupted(&p->sql.store))
            continue;
        if (!cancelled_us) {
            cancelled_us = when_monotonic_us();
            cancel(p);
        } else if (when_monotonic_us() - cancelled_us > CANCEL_LASTS_US) {
            give_up(p);
        }
    }
}

/* The last of the answers, as PQexec gives it; NULL: there was none. */
static PGresult *last_answer(struct postgres *p, int sent)
{
    PGresult *last = NULL, *next;
    while (sent) {
        wait_for_answer(p);
        if (!(next = PQgetResult(p->conn)))
            break;
        PQclear(last);
        last = next;
    }
    return last;
}

/* What the server said last before it closed the connection; last_answer would say only that it did. */
static PGresult *first_answer(struct postgres *p, int sent)
{
    if (sent)
        wait_for_answer(p);
    PGresult *first = sent ? PQgetResult(p->conn) : NULL;
    PQclear(first ? last_answer(p, true) : NULL);
    return first;
}

/* --- errors -------------------------------------------------------------------------------------- */

/* Line breaks and tabs become single blanks; with `breaks`, a line's end becomes that. */
static void add_joined(struct text *t, const char *words, const char *breaks)
{
    bool gap = false, broken = false;
    for (; *words; words++) {
        if (strchr(" \t\r\n", *words)) {
            gap = t->len > 0;
            broken |= *words == '\n';
            continue;
        }
        if (gap)
            text_add(t, broken ? breaks : " ");
        text_add_n(t, words, 1);
        gap = broken = false;
    }
}

/* The words of the server as one line. */
static void add_one_line(struct text *t, const char *words)
{
    add_joined(t, words, " ");
}

/* The words of libpq, which has a line per host and another for what may be wrong there. */
static void add_lines(struct text *t, const char *words)
{
    add_joined(t, words, "; ");
}

#define CANCELLED       "57014"
#define NO_RIGHT        "42501"
#define NOT_IN_RECOVERY "0A000" /* of BEGIN … READ WRITE: it is a standby */
#define UNKNOWN_NAME    "26000"
#define STANDBY                                                                                              \
    "postgresql: the server is a standby and takes no writes: name the primary in 'store', "                 \
    "or all servers with target_session_attrs=read-write (check and plan work on a standby)"

/* The first line that begins like the SQLSTATE decides. What is not here was said by a constraint, a trigger
 * or a value of one row, and may be said of that row only. */
static enum err_kind kind_of_state(const char *state)
{
    static const struct {
        const char *begins;
        enum err_kind kind;
    } kinds[] = {
        {"40001", ERR_CONFLICT},                    /* serialization failure */
        {"40P01", ERR_CONFLICT},                    /* deadlock */
        {"55P03", ERR_BUSY},                        /* lock not available */
        {CANCELLED, ERR_TIMEOUT}, {"08", ERR_LOST}, /* connection exception */
        {"57P0", ERR_LOST},                         /* shutdown, crash, dropped */
        {"25P03", ERR_LOST},                        /* idle in transaction for too long */
        {"25", ERR_DATABASE},                       /* invalid transaction state */
        {"42", ERR_DATABASE},                       /* syntax, unknown names, privileges, row security */
        {"53", ERR_DATABASE},                       /* out of disk, memory, connections */
        {"54", ERR_DATABASE},                       /* limits */
        {"58", ERR_DATABASE},                       /* system error */
        {"XX", ERR_DATABASE},                       /* internal error */
        {"0A", ERR_DATABASE},                       /* not supported */
        {"3D", ERR_DATABASE},                       /* no such database */
        {"3F", ERR_DATABASE},                       /* no such schema */
        {"28", ERR_DATABASE},                       /* not authorized */
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strncmp(state, kinds[i].begins, strlen(kinds[i].begins)) == 0)
            return kinds[i].kind;
    return ERR_REFUSED;
}

/* A trigger may give its refusal any SQLSTATE, that of a missing right before all; it is of the row still.
 * One that asks for another try gets it. */
static bool is_raised(const PGresult *r)
{
    const char *function = PQresultErrorField(r, PG_DIAG_SOURCE_FUNCTION);
    return function && strcmp(function, "exec_stmt_raise") == 0;
}

static enum err_kind kind_of_error(const PGresult *r, const char *state)
{
    enum err_kind kind = kind_of_state(state);
    return is_raised(r) && kind != ERR_CONFLICT && kind != ERR_BUSY ? ERR_REFUSED : kind;
}

static int fail_lost(struct postgres *p, struct err *e)
{
    AUTO(text_release) struct text words = {0};
    if (p->gave_up)
        return err_set(e, ERR_LOST, "postgresql: no answer came in time, and the connection was given up");
    add_lines(&words, p->conn ? PQerrorMessage(p->conn) : "");
    return err_set(e, ERR_LOST, "postgresql: %s", words.len ? text_str(&words) : "the connection is lost");
}

/* Whatever the reason was, the server has closed the connection with these words. */
static bool ended_session(const PGresult *r)
{
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    return severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

/* r is an error, or NULL when there was no answer at all. */
static int fail(struct postgres *p, const PGresult *r, struct err *e)
{
    const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    const char *primary = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *detail = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_DETAIL) : NULL;
    if (!state)
        return fail_lost(p, e);
    if (store_interrupted(&p->sql.store) && strcmp(state, CANCELLED) == 0)
        return err_set(e, ERR_STOPPED, "postgresql: interrupted");
    AUTO(text_release) struct text words = {0}, more = {0};
    add_one_line(&words, primary ? primary : "");
    add_one_line(&more, detail ? detail : "");
    if (!more.len && strcmp(state, NO_RIGHT) == 0 && !is_raised(r) && !strstr(text_str(&words), "row-level"))
        store_grants_hint(&p->sql.store, &more);
    err_set(e, ended_session(r) ? ERR_LOST : kind_of_error(r, state),
            more.len ? "postgresql %s: %s (%s)" : "postgresql %s: %s", state, text_str(&words),
            text_str(&more));
    if (e)
        snprintf(e->code, sizeof(e->code), "%s", state);
    return -1;
}

static bool succeeded(const PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* What is interrupted before it begins does not begin. */
static int may_ask(struct postgres *p, struct err *e)
{
    return store_interrupted(&p->sql.store) ? err_set(e, ERR_STOPPED, "postgresql: interrupted") : 0;
}

/* One or more plain commands. */
static int command(struct postgres *p, const char *sql, struct err *e)
{
    if (may_ask(p, e) < 0)
        return -1;
    AUTO(result_clear_p) PGresult *r = last_answer(p, PQsendQuery(p->conn, sql));
    return succeeded(r) ? 0 : fail(p, r, e);
}

/* Some commands, of which one asks: its answer, or what went wrong. */
static PGresult *answer_of(struct postgres *p, const char *commands)
{
    PGresult *ret = NULL, *next;
    for (int sent = PQsendQuery(p->conn, commands); sent;) {
        wait_for_answer(p);
        if (!(next = PQgetResult(p->conn)))
            break;
        bool matters = !succeeded(next) || (PQresultStatus(next) == PGRES_TUPLES_OK && !ret);
        if (matters)
            PQclear(ret);
        else
            PQclear(next);
        ret = matters ? next : ret;
    }
    return ret;
}

/* In a transaction of its own, in which names mean the server's; mode: " READ ONLY", or "". */
static PGresult *ask_alone(struct postgres *p, const char *mode, const char *question)
{
    AUTO(text_release) struct text sql = {0};
    if (PQtransactionStatus(p->conn) != PQTRANS_IDLE)
        return answer_of(p, question);
    text_addf(&sql, "BEGIN%s; " SET_SERVER_PATH "; %s; COMMIT", mode, question);
    PGresult *r = answer_of(p, text_str(&sql));
    if (PQtransactionStatus(p->conn) == PQTRANS_INERROR)
        PQclear(last_answer(p, PQsendQuery(p->conn, "ROLLBACK")));
    return r;
}

/* --- statements ---------------------------------------------------------------------------------- */

/* What deletes keeps the user's path, which triggers need. What is not said of a transaction that failed, or
 * of none, the statement itself will say. */
static int take_path(struct postgres *p, const struct stmt *st, struct err *e)
{
    bool users = !st->of_catalog && (st->has_sql || p->writes);
    enum path path = users ? PATH_USER : PATH_SERVER;
    if (p->path == path || PQtransactionStatus(p->conn) != PQTRANS_INTRANS)
        return 0;
    if (command(p, users ? SET_USER_PATH : SET_SERVER_PATH, e) < 0)
        return -1;
    p->path = path;
    return 0;
}

/* A statement of a sweep that comes again gets a name, of which the server knows what it means. Only where
 * the server's end of the connection is this one's alone: a pooler may run the next transaction elsewhere.
 * NULL: it goes without. */
static int name_of(struct postgres *p, const struct text *sql, const char **ret, struct err *e)
{
    *ret = NULL;
    if (!p->alone || !p->sql.repeatable)
        return 0;
    struct known_statement *k = statements_meet(&p->statements, sql);
    if (k && !k->is_named) {
        AUTO(result_clear_p)
        PGresult *r = last_answer(p, PQsendPrepare(p->conn, k->name, k->sql, 0, NULL));
        if (!succeeded(r))
            return fail(p, r, e);
        k->is_named = true;
    }
    *ret = k ? k->name : NULL;
    return 0;
}

/* A name that the server does not know is no fault of the statement: its end is not this one's alone after
 * all. The transaction is tried again, without names. */
static int fail_by_name(struct postgres *p, const PGresult *r, struct err *e)
{
    struct err why = ERR_INIT;
    fail(p, r, &why);
    if (strcmp(why.code, UNKNOWN_NAME) == 0 && !is_raised(r)) {
        p->alone = false;
        why.kind = ERR_CONFLICT;
    }
    if (e)
        *e = why;
    return -1;
}

static int send_one(struct postgres *p, const char *name, const char *sql, const struct stmt *st)
{
    AUTO(bound_release) struct bound b = {0};
    postgres_bind(&p->sql, st, &b);
    return name ? PQsendQueryPrepared(p->conn, name, (int)b.n, b.values, NULL, NULL, 0)
                : PQsendQueryParams(p->conn, sql, (int)b.n, NULL, b.values, NULL, NULL, 0);
}

/* Without a name it is planned for these very values: how few rows are to be found, and beyond which; among
 * how many keys is looked for each. */
static int run(struct postgres *p, const char *sql, const struct stmt *st, PGresult **ret, struct err *e)
{
    if (may_ask(p, e) < 0 || take_path(p, st, e) < 0)
        return -1;
    *ret = last_answer(p, send_one(p, NULL, sql, st));
    return succeeded(*ret) ? 0 : fail(p, *ret, e);
}

static size_t bytes_of(const PGresult *r, int n_rows, int n_columns)
{
    size_t bytes = 0;
    for (int row = 0; row < n_rows; row++)
        for (int i = 0; i < n_columns; i++)
            bytes += (size_t)PQgetlength(r, row, i) + 1;
    return bytes;
}

static void copy_rows(const PGresult *r, struct rows *ret)
{
    int n_rows = PQntuples(r), n_columns = PQnfields(r);
    char *to = rows_make(ret, (size_t)n_columns, (size_t)n_rows, bytes_of(r, n_rows, n_columns));
    struct value *cell = ret->cells;
    for (int row = 0; row < n_rows; row++)
        for (int i = 0; i < n_columns; i++, cell++) {
            size_t len = (size_t)PQgetlength(r, row, i);
            *cell = (struct value){.kind = VALUE_NULL};
            if (!len && PQgetisnull(r, row, i))
                continue;
            *cell = (struct value){
                .kind = VALUE_TEXT, .text = memcpy(to, PQgetvalue(r, row, i), len + 1), .len = len};
            to += len + 1;
        }
}

static int postgres_query(struct sql_store *s, const struct stmt *st, struct rows *ret, struct err *e)
{
    struct postgres *p = of_sql(s);
    AUTO(result_clear_p) PGresult *r = NULL;
    if (run(p, text_str(&st->sql), st, &r, e) < 0)
        return -1;
    rows_release(ret);
    copy_rows(r, ret);
    return 0;
}

static int postgres_execute(struct sql_store *s, const struct stmt *st, int64_t *ret_affected, struct err *e)
{
    struct postgres *p = of_sql(s);
    AUTO(result_clear_p) PGresult *r = NULL;
    if (run(p, text_str(&st->sql), st, &r, e) < 0)
        return -1;
    *ret_affected = strtoll(PQcmdTuples(r), NULL, 10);
    return 0;
}

static void add_relation(struct text *sql, const struct postgres *p, const struct table *t, const char *name)
{
    AUTO(stmt_release) struct stmt st = {0};
    if (t->schema) {
        sql_name(&st, p->sql.engine->dialect, t->schema);
        text_add(&st.sql, ".");
    }
    sql_name(&st, p->sql.engine->dialect, name);
    char *quoted = PQescapeLiteral(p->conn, text_str(&st.sql), st.sql.len);
    text_addf(sql, "pg_catalog.to_regclass(%s)", quoted ? quoted : "NULL");
    PQfreemem(quoted);
}

/* Rows that this session has found yet: by the index, by a bitmap of the table, by reading it whole; NULL: it
 * does not count them. */
static void add_met(struct text *sql, const struct postgres *p, const struct by_runs_one *one)
{
    const char *const by[] = {"fetched", "fetched", "returned"},
                      *of[] = {one->index->name, one->table->name, one->table->name};
    text_add(sql, "CASE WHEN pg_catalog.current_setting('track_counts')::pg_catalog.bool THEN ");
    for (size_t i = 0; i < COUNT_OF(by); i++) {
        text_addf(sql, "%spg_catalog.pg_stat_get_xact_tuples_%s(", i ? " OPERATOR(pg_catalog.+) " : "",
                  by[i]);
        add_relation(sql, p, one->table, of[i]);
        text_add(sql, ")");
    }
    text_add(sql, " END");
}

/* A SELECT of what each has met; no text: it is not wanted of any. */
static void write_met(struct text *sql, const struct postgres *p, const struct by_runs *b)
{
    for (size_t i = 0; i < b->n; i++) {
        if (!b->list[i].index)
            continue;
        text_add(sql, sql->len ? ", " : "SELECT ");
        add_met(sql, p, &b->list[i]);
    }
}

/* NULL: it is not known, and nobody asks again. */
static void take_met(const PGresult *before, const PGresult *after, struct by_runs *b)
{
    int column = 0;
    for (size_t i = 0; i < b->n; i++) {
        struct by_runs_one *one = &b->list[i];
        if (!one->index)
            continue;
        if (PQgetisnull(before, 0, column) || PQgetisnull(after, 0, column))
            one->index = NULL;
        else
            one->met = strtoll(PQgetvalue(after, 0, column), NULL, 10) -
                       strtoll(PQgetvalue(before, 0, column), NULL, 10);
        column++;
    }
}

/* A statement that is sent together with others. */
struct step {
    const struct stmt *st;
    const char *name;
    PGresult *answer;
};

/* Of a connection that broke none may come. */
static PGresult *next_answer(struct postgres *p)
{
    wait_for_answer(p);
    PGresult *r = PQgetResult(p->conn);
    if (r && PQresultStatus(r) != PGRES_PIPELINE_SYNC) {
        wait_for_answer(p);
        PQclear(PQgetResult(p->conn)); /* the end of it */
    }
    return r;
}

/* They go to the server at once; behind one that fails none is carried out. Of each that may last the server
 * is to tell when it has ended: it would keep its answers to itself until the last. */
static int send_together(struct postgres *p, struct step *steps, size_t n)
{
    int sent = PQenterPipelineMode(p->conn);
    for (size_t i = 0; sent && i < n; i++)
        sent = send_one(p, steps[i].name, text_str(&steps[i].st->sql), steps[i].st) &&
               (!steps[i].st->n_params || PQsendFlushRequest(p->conn));
    sent = sent && PQpipelineSync(p->conn);
    for (size_t i = 0; sent && i < n; i++)
        steps[i].answer = next_answer(p);
    PQclear(sent ? next_answer(p) : NULL);
    if (PQexitPipelineMode(p->conn))
        return sent;
    shutdown(PQsocket(p->conn), SHUT_RDWR); /* it is of no more use */
    return 0;
}

static int run_together(struct postgres *p, struct step *steps, size_t n, struct err *e)
{
    if (may_ask(p, e) < 0 || take_path(p, steps[0].st, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (name_of(p, &steps[i].st->sql, &steps[i].name, e) < 0)
            return -1;
    int sent = send_together(p, steps, n);
    for (size_t i = 0; i < n; i++)
        if (!succeeded(steps[i].answer))
            return steps[i].name ? fail_by_name(p, steps[i].answer, e) : fail(p, steps[i].answer, e);
    return sent ? 0 : fail_lost(p, e);
}

#define SETTLES "SET CONSTRAINTS ALL IMMEDIATE"

/* Whatever the planner believes of a table, it is not read whole for a few keys that an index has. Only for
 * these statements: others, a trigger's among them, may have no index. So a plan does for all batches. */
enum { SEQSCAN_OFF, MET, SEQSCAN_AGAIN, SETTLE, N_AROUND };
static void write_around(const struct postgres *p, const struct by_runs *b, struct stmt around[N_AROUND])
{
    text_add(&around[SEQSCAN_OFF].sql, "SET LOCAL enable_seqscan = off");
    write_met(&around[MET].sql, p, b);
    text_add(&around[SEQSCAN_AGAIN].sql, "SET LOCAL enable_seqscan TO DEFAULT");
    text_add(&around[SETTLE].sql, SETTLES);
}

static int run_by_runs(struct postgres *p, struct by_runs *b, struct step *steps,
                       const struct stmt around[N_AROUND], struct err *e)
{
    bool met = around[MET].sql.len > 0;
    struct step *next = steps;
    (next++)->st = &around[SEQSCAN_OFF];
    struct step *before = met ? next++ : NULL, *deletes = next;
    if (before)
        before->st = &around[MET];
    for (size_t i = 0; i < b->n; i++)
        (next++)->st = &b->list[i].st;
    struct step *after = met ? next++ : NULL;
    if (after)
        after->st = &around[MET];
    (next++)->st = &around[SEQSCAN_AGAIN];
    if (b->last)
        (next++)->st = &around[SETTLE];
    if (run_together(p, steps, (size_t)(next - steps), e) < 0)
        return -1;
    for (size_t i = 0; i < b->n; i++)
        b->list[i].rows = strtoll(PQcmdTuples(deletes[i].answer), NULL, 10);
    if (met)
        take_met(before->answer, after->answer, b);
    b->settled = b->last;
    return 0;
}

static int postgres_execute_by_runs(struct sql_store *s, struct by_runs *b, struct err *e)
{
    enum { STEPS_AROUND = N_AROUND + 1 }; /* what was met is asked twice */
    struct stmt around[N_AROUND] = {0};
    struct step *steps = mem_alloc((b->n + STEPS_AROUND) * sizeof(*steps));
    write_around(of_sql(s), b, around);
    int result = run_by_runs(of_sql(s), b, steps, around, e);
    for (size_t i = 0; i < b->n + STEPS_AROUND; i++)
        PQclear(steps[i].answer);
    for (size_t i = 0; i < N_AROUND; i++)
        stmt_release(&around[i]);
    free(steps);
    return result;
}

/* Sets travel with each statement as arrays. */
static int postgres_load_set(struct sql_store *s, int set, struct err *e)
{
    (void)s, (void)set, (void)e;
    return 0;
}

/* --- transactions -------------------------------------------------------------------------------- */

static void postgres_rollback(struct sql_store *s)
{
    struct postgres *p = of_sql(s);
    p->marked = s->store.writes = false;
    store_unmark(&s->store);
    if (PQstatus(p->conn) == CONNECTION_OK && PQtransactionStatus(p->conn) != PQTRANS_IDLE)
        PQclear(last_answer(p, PQsendQuery(p->conn, "ROLLBACK")));
}

/* The settings on which the meaning of a statement depends, and the time limit. The session may have been
 * another's, behind a pooler, who left its search path and its role in it: a table of that name elsewhere
 * would be swept. The defaults are those of this user, this database and this connection string. */
static void add_settings(struct text *sql, const char *set_path, int64_t statement_timeout_ms)
{
    text_addf(sql,
              "SET LOCAL statement_timeout = %lld;"
              " SET LOCAL role TO DEFAULT;"
              " %s;"
              " SET LOCAL row_security = off;" /* hidden rows are an error */
              " SET LOCAL standard_conforming_strings = on;"
              " SET LOCAL TimeZone = 'UTC';"
              " SET LOCAL DateStyle = 'ISO, YMD';"
              " SET LOCAL IntervalStyle = 'postgres';"
              " SET LOCAL extra_float_digits = 1",
              (long long)statement_timeout_ms, set_path);
}

/* Rounded up; 0 would mean no limit at all. */
static int64_t to_ms(int64_t us)
{
    int64_t ms = us / US_PER_MS + (us % US_PER_MS > 0);
    return ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : ms;
}

static int begin(struct postgres *p, const char *sql, int64_t statement_timeout_us, struct err *e)
{
    p->patience_us = to_ms(statement_timeout_us) * US_PER_MS;
    p->path = p->writes ? PATH_USER : PATH_SERVER;
    if (command(p, sql, e) == 0)
        return 0;
    postgres_rollback(&p->sql);
    return -1;
}

/* The same where the last of the commands asks for the lock of a table's ranks (NULL: for none), and gives the
 * transaction's name. It sees what the lock's last holder committed: that was to be seen before the lock was
 * free. */
static int begin_named(struct postgres *p, const char *sql, int64_t statement_timeout_us,
                       const struct table *ranks, struct err *e)
{
    p->patience_us = to_ms(statement_timeout_us) * US_PER_MS;
    p->path = PATH_USER;
    if (may_ask(p, e) < 0)
        return -1;
    AUTO(result_clear_p) PGresult *r = last_answer(p, PQsendQuery(p->conn, sql));
    bool had = succeeded(r) && *PQgetvalue(r, 0, 0) == 't';
    if (had) {
        snprintf(p->sql.transaction, sizeof(p->sql.transaction), "%s", PQgetvalue(r, 0, 1));
        return 0;
    }
    if (!succeeded(r))
        fail(p, r, e);
    else
        err_set(e, ERR_TURN, "postgresql: another transaction judges ranks of %s", ranks->print);
    postgres_rollback(&p->sql);
    return -1;
}

static int postgres_begin_read(struct sql_store *s, int64_t statement_timeout_us, struct err *e)
{
    AUTO(text_release) struct text sql = {0};
    of_sql(s)->writes = false;
    text_add(&sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ");
    add_settings(&sql, SET_SERVER_PATH, to_ms(statement_timeout_us));
    text_addf(&sql, "; SET LOCAL lock_timeout = %lld", (long long)to_ms(READ_LOCK_TIMEOUT_S * US_PER_S));
    return begin(of_sql(s), text_str(&sql), statement_timeout_us, e);
}

/* Whoever sleeps in a transaction holds what others wait for. */
static int64_t idle_ms(const struct store *s)
{
    int64_t most = s->idle_most_us;
    return to_ms(most > 0 && most < IDLE_S * US_PER_S ? most : IDLE_S * US_PER_S);
}

/* A server that was started, or began anew after a crash: what it knows of itself then has another age. */
#define LIFE /* as numbers: the text of a time depends on the session's zone and style */                    \
    "extract(epoch FROM pg_catalog.pg_postmaster_start_time()) || ' ' ||"                                    \
    " COALESCE(extract(epoch FROM (SELECT stats_reset FROM pg_catalog.pg_stat_bgwriter))::text, '')"

static void note_life(struct postgres *p, const char *life)
{
    if (*p->life && strncmp(p->life, life, sizeof(p->life) - 1) != 0)
        p->sql.store.lives++;
    snprintf(p->life, sizeof(p->life), "%s", life);
}

/* A message to nobody: what is committed behind it waits until the log is on the disk up to here. A standby,
 * which a pooler may have behind it by now, has no log of its own. */
static int flush_log(struct postgres *p, struct err *e)
{
    struct store *s = &p->sql.store;
    if (!s->lax)
        return 0;
    if (may_ask(p, e) < 0)
        return -1;
    AUTO(result_clear_p)
    PGresult *r = ask_alone(p, "",
                            "SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery()"
                            " THEN pg_catalog.pg_logical_emit_message(true, 'lapse', 'sync') END, " LIFE);
    if (!succeeded(r))
        return fail(p, r, e);
    if (PQgetisnull(r, 0, 0))
        return err_set(e, ERR_LOST, STANDBY);
    store_mark(s);
    note_life(p, PQgetvalue(r, 0, 1));
    s->lax = false;
    s->syncs++;
    p->synced_us = when_monotonic_us();
    return 0;
}

/* The next sweep has other statements. Behind a pooler, others' would go with them. */
static void forget_statements(struct postgres *p)
{
    if (p->alone && statements_any_named(&p->statements))
        PQclear(last_answer(p, PQsendQuery(p->conn, "DEALLOCATE ALL")));
    statements_forget(&p->statements);
}

static int postgres_sync(struct store *s, struct err *e)
{
    struct postgres *p = of_store(s);
    p->since_us = 0;
    forget_statements(p);
    return flush_log(p, e);
}

/* Whether the next commit need not wait for the disk: in a sweep that lasts. Of a short one nothing is ever
 * in doubt. */
static int choose_sync(struct postgres *p, struct err *e)
{
    static const int64_t lasts_us = 250 * US_PER_MS;
    int64_t now = when_monotonic_us();
    p->repeatable = p->sql.repeatable;
    p->lax = p->can_sync && p->repeatable && p->since_us && now - p->since_us >= lasts_us;
    return p->lax && now - p->synced_us >= LAX_MOST_US ? flush_log(p, e) : 0;
}

/* The lock and the transaction's name go along with BEGIN: the batch has no more ways to the server for them. */
static void add_last(struct text *sql, const struct sql_store *s)
{
    AUTO(stmt_release) struct stmt lock = {0};
    if (s->ranks)
        s->engine->dialect->rank_lock(&lock, s->ranks);
    text_addf(sql, "; SELECT %s, pg_catalog.pg_current_xact_id()", s->ranks ? text_str(&lock.sql) : "true");
}

/* One that the server has not had, as after a failover, has no status: that it says by an error. */
static int postgres_committed(struct sql_store *s, const char *transaction, bool *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    struct err why = ERR_INIT;
    text_addf(&st.sql, "SELECT pg_catalog.pg_xact_status('%s'::pg_catalog.xid8)", transaction);
    *ret = false;
    if (postgres_query(s, &st, &found, &why) < 0) {
        if (strncmp(why.code, "22", 2) == 0)
            return 0;
        *e = why;
        return -1;
    }
    const struct value *v = rows_at(&found, 0);
    *ret = v->kind == VALUE_TEXT && strcmp(v->text, "committed") == 0;
    return 0;
}

static int postgres_begin_write(struct sql_store *s, int64_t lock_timeout_us, int64_t statement_timeout_us,
                                struct err *e)
{
    struct postgres *p = of_sql(s);
    if (p->reading)
        return err_set(e, ERR_USAGE, "postgresql: this connection was opened for reading only");
    if (choose_sync(p, e) < 0 || may_ask(p, e) < 0)
        return -1;
    AUTO(text_release) struct text sql = {0};
    p->writes = true;
    text_add(&sql, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ");
    add_settings(&sql, SET_USER_PATH, to_ms(statement_timeout_us));
    text_addf(&sql,
              "; SET LOCAL jit = off" /* a batch is over before it would pay */
              "; SET LOCAL lock_timeout = %lld; SET LOCAL idle_in_transaction_session_timeout = %lld%s",
              (long long)to_ms(lock_timeout_us), (long long)idle_ms(&s->store),
              p->lax ? "; SET LOCAL synchronous_commit = off" : "");
    add_last(&sql, s);
    struct err why = ERR_INIT;
    s->store.writes = true;
    store_mark_begin(&s->store);
    if (begin_named(p, text_str(&sql), statement_timeout_us, s->ranks, &why) == 0)
        return 0;
    store_unmark(&s->store);
    s->store.writes = false;
    if (strcmp(why.code, NOT_IN_RECOVERY) == 0) /* a pooler has another server behind it by now */
        return err_set(e, ERR_LOST, STANDBY);
    if (e)
        *e = why;
    return -1;
}

static int postgres_settle(struct sql_store *s, struct err *e)
{
    return command(of_sql(s), SETTLES, e);
}

static int postgres_mark(struct sql_store *s, struct err *e)
{
    struct postgres *p = of_sql(s);
    if (command(p, p->marked ? "RELEASE SAVEPOINT lapse; SAVEPOINT lapse" : "SAVEPOINT lapse", e) < 0)
        return -1;
    p->marked = true;
    return 0;
}

static int postgres_undo(struct sql_store *s, struct err *e)
{
    of_sql(s)->path = PATH_UNKNOWN; /* what it was when the savepoint was set */
    return command(of_sql(s), "ROLLBACK TO SAVEPOINT lapse", e);
}

/* Whether the server has not hung up yet. Reading does not wait: the first read may find its last words, the
 * second then finds the end. */
static bool is_connected(struct postgres *p)
{
    return p->conn && PQconsumeInput(p->conn) && PQconsumeInput(p->conn) &&
           PQstatus(p->conn) == CONNECTION_OK;
}

/* A commit that waits for the disk says nothing of those before it: behind a pooler, the server that has them
 * may be another. Only flush_log, which asks, makes them sure. */
static void note_commit(struct postgres *p)
{
    int64_t now = when_monotonic_us();
    if (p->lax)
        p->sql.store.lax = true;
    else if (!p->sql.store.lax)
        p->synced_us = now;
    if (!p->lax && p->repeatable && !p->since_us)
        p->since_us = now;
}

/* A connection that is known to be gone before COMMIT is sent is lost, and nothing is in doubt. One that goes
 * later may have committed, whatever its last words: a pooler speaks for a server it has lost, too. */
static int postgres_commit(struct sql_store *s, struct err *e)
{
    struct postgres *p = of_sql(s);
    p->marked = false;
    if (!is_connected(p))
        return fail_lost(p, e);
    if (may_ask(p, e) < 0)
        return -1;
    AUTO(result_clear_p) PGresult *r = first_answer(p, PQsendQuery(p->conn, "COMMIT"));
    if (succeeded(r)) {
        if (strcmp(PQcmdStatus(r), "COMMIT") == 0) {
            s->store.writes = false;
            store_mark(&s->store);
            note_commit(p);
            return 0;
        }
        return err_set(e, ERR_DATABASE, "postgresql: the transaction had failed, COMMIT rolled it back");
    }
    struct err why = ERR_INIT;
    fail(p, r, &why);
    if (why.kind == ERR_LOST && strcmp(why.code, "25P03") != 0) /* that one came before the COMMIT */
        why.kind = ERR_COMMIT_UNKNOWN;
    if (e)
        *e = why;
    return -1;
}

static int postgres_accepts(struct sql_store *s, const struct stmt *st, struct err *e)
{
    struct postgres *p = of_sql(s);
    bool alone = PQtransactionStatus(p->conn) == PQTRANS_IDLE;
    if (alone && postgres_begin_read(s, CATALOG_TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    AUTO(text_release) struct text sql = {0};
    text_addf(&sql, "EXPLAIN %s", text_str(&st->sql));
    AUTO(result_clear_p) PGresult *r = NULL;
    int result = run(p, text_str(&sql), st, &r, e);
    if (alone)
        postgres_rollback(s);
    return result;
}

static const struct engine engine_postgres = {
    .dialect = &dialect_postgres,
    .query = postgres_query,
    .execute = postgres_execute,
    .execute_by_runs = postgres_execute_by_runs,
    .load_set = postgres_load_set,
    .begin_read = postgres_begin_read,
    .begin_write = postgres_begin_write,
    .settle = postgres_settle,
    .mark = postgres_mark,
    .undo = postgres_undo,
    .commit = postgres_commit,
    .committed = postgres_committed,
    .rollback = postgres_rollback,
    .accepts = postgres_accepts,
    .estimate = postgres_estimate,
    .served = postgres_served,
};

/* --- the connection ------------------------------------------------------------------------------ */

/* A password with a bare / or @ moves its rest into the host, port or database, from where libpq's messages
 * would print it. What lies before the query and behind the credentials has no @ in a good string. */
static bool password_may_show(const char *dsn)
{
    const char *scheme_end = strstr(dsn, "://");
    if (!scheme_end)
        return false;
    const char *rest = scheme_end + 3, *slash_or_at = rest + strcspn(rest, "@/");
    if (*slash_or_at == '@')
        rest = slash_or_at + 1;
    return memchr(rest, '@', strcspn(rest, "?")) != NULL;
}

/* libpq quotes parts of the string in its words: what stands between the first and the last quote goes. */
static void add_unquoted(struct text *t, const char *words)
{
    const char *first = strchr(words, '"'), *last = strrchr(words, '"');
    AUTO(text_release) struct text kept = {0};
    if (first) {
        text_add_n(&kept, words, (size_t)(first - words));
        text_add(&kept, "…");
        text_add(&kept, last + 1);
    } else {
        text_add(&kept, words);
    }
    add_one_line(t, text_str(&kept));
}

static bool ports_are_numbers(const PQconninfoOption *options)
{
    for (; options->keyword; options++)
        if (strcmp(options->keyword, "port") == 0 && options->val &&
            options->val[strspn(options->val, "0123456789,")])
            return false;
    return true;
}

static int check_dsn(const char *dsn, struct err *e)
{
    static const char invalid[] = "postgresql: the connection string is not valid";
    if (password_may_show(dsn))
        return err_set(e, ERR_UNREACHABLE,
                       "%s: there is an @ behind the host (in a user or password, write @ as %%40 and / as "
                       "%%2F)",
                       invalid);
    char *words = NULL;
    PQconninfoOption *options = PQconninfoParse(dsn, &words);
    if (!options) {
        AUTO(text_release) struct text t = {0};
        add_unquoted(&t, words ? words : "out of memory");
        PQfreemem(words);
        return err_set(e, ERR_UNREACHABLE, "%s: %s", invalid, text_str(&t));
    }
    bool good = ports_are_numbers(options);
    PQconninfoFree(options);
    return good ? 0 : err_set(e, ERR_UNREACHABLE, "%s: the port is not a number", invalid);
}

static void ignore_notice(void *context, const PGresult *r)
{
    (void)context, (void)r;
}

/* What the string says, else the environment, else libpq; NULL: nothing, or libpq does not know the word. */
static const char *option_of(const PQconninfoOption *said, const PQconninfoOption *unsaid,
                             const char *keyword)
{
    const PQconninfoOption *lists[] = {said, unsaid};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (const PQconninfoOption *o = lists[i]; o && o->keyword; o++)
            if (strcmp(o->keyword, keyword) == 0 && o->val && *o->val)
                return o->val;
    return NULL;
}

static bool knows(const PQconninfoOption *options, const char *keyword)
{
    while (options && options->keyword && strcmp(options->keyword, keyword) != 0)
        options++;
    return options && options->keyword;
}

/* A server that asks for the password as it is gets it where its certificate was looked at, where the way to
 * it is a socket of this machine, and where the user says so. libpq can refuse it from 16 on. NULL: nothing
 * is to be said to libpq. */
static const char *logins_for(const PQconninfoOption *said, const PQconninfoOption *unsaid)
{
    const char *mode = option_of(said, unsaid, "sslmode"), *host = option_of(said, unsaid, "host");
    bool by_socket = (!host || (*host == '/' && !strchr(host, ','))) && !option_of(said, unsaid, "hostaddr");
    bool verified = mode && strncmp(mode, "verify-", strlen("verify-")) == 0;
    bool decided = option_of(said, unsaid, "require_auth") != NULL;
    return by_socket || verified || decided || !knows(unsaid, "require_auth") ? NULL : "!password";
}

/* Later entries win: what stands before the string is a default, what follows it is not. A server that is no
 * longer there is noticed within a minute, and not after the two hours of most systems. */
static PGconn *connect_to(const char *dsn)
{
    PQconninfoOption *said = PQconninfoParse(dsn, NULL), *unsaid = PQconndefaults();
    const char *timeout = getenv("PGCONNECT_TIMEOUT"), *logins = logins_for(said, unsaid);
    const char *keywords[] = {"connect_timeout",
                              "keepalives_idle",
                              "keepalives_interval",
                              "keepalives_count",
                              "fallback_application_name",
                              "dbname",
                              "client_encoding",
                              logins ? "require_auth" : NULL,
                              NULL};
    const char *values[] = {timeout ? timeout : "10", "30", "10", "3", "lapse", dsn, "UTF8", logins, NULL};
    PGconn *conn = PQconnectdbParams(keywords, values, 1);
    PQconninfoFree(said);
    PQconninfoFree(unsaid);
    if (conn)
        PQsetNoticeReceiver(conn, ignore_notice, NULL);
    return conn;
}

static int check_connection(PGconn *conn, struct err *e)
{
    if (PQstatus(conn) != CONNECTION_OK) {
        AUTO(text_release) struct text words = {0};
        add_lines(&words, conn ? PQerrorMessage(conn) : "out of memory");
        return err_set(e, ERR_UNREACHABLE, "postgresql: %s", text_str(&words));
    }
    int version = PQserverVersion(conn);
    if (version < OLDEST_SERVER)
        return err_set(e, ERR_UNREACHABLE, "postgresql: the server is version %d, at least %d is needed",
                       version / 10000, OLDEST_SERVER / 10000);
    return 0;
}

/* Asked, because what a pooler reports of its server (in_hot_standby, its process) may be of another one, or
 * made up. Whoever is to write does not begin on a standby: with nothing due it would look as if all were
 * well. */
enum { STANDBY_NOW, MAY_SYNC, LIFE_NOW, SERVER_PID, MARK };
static const char about_server[] =
    "SELECT pg_catalog.pg_is_in_recovery(),"
    " (SELECT bool_and(pg_catalog.has_function_privilege(oid, 'EXECUTE')) FROM pg_catalog.pg_proc"
    "  WHERE proname = 'pg_logical_emit_message' AND pronamespace = 'pg_catalog'::regnamespace), " LIFE
    ", pg_catalog.pg_backend_pid(), pg_catalog.gen_random_uuid()";

/* Who may not see how old it is has every commit on the disk at once. */
static const char about_server_least[] = "SELECT pg_catalog.pg_is_in_recovery(), false, '', 0, ''";

static PGresult *ask_about_server(struct postgres *p)
{
    struct err why = ERR_INIT;
    PGresult *r = ask_alone(p, " READ ONLY", about_server);
    if (succeeded(r))
        return r;
    fail(p, r, &why);
    if (strncmp(why.code, "42", 2) != 0)
        return r;
    PQclear(r);
    return ask_alone(p, " READ ONLY", about_server_least);
}

static int look_at_server(struct postgres *p, struct err *e)
{
    if (check_connection(p->conn, e) < 0)
        return -1;
    p->patience_us = 0;
    AUTO(result_clear_p) PGresult *r = ask_about_server(p);
    if (!succeeded(r)) {
        struct err why = ERR_INIT;
        fail(p, r, &why);
        return err_set(e, why.kind == ERR_STOPPED ? ERR_STOPPED : ERR_UNREACHABLE, "%s", why.text);
    }
    bool standby = *PQgetvalue(r, 0, STANDBY_NOW) == 't';
    p->can_sync = *PQgetvalue(r, 0, MAY_SYNC) == 't';
    note_life(p, PQgetvalue(r, 0, LIFE_NOW));
    statements_forget(&p->statements);
    snprintf(p->statements.mark, sizeof(p->statements.mark), "%s", PQgetvalue(r, 0, MARK));
    p->alone = PQbackendPID(p->conn) == strtol(PQgetvalue(r, 0, SERVER_PID), NULL, 10);
    p->sql.store.only_reads = standby ? "a standby" : NULL;
    if (!standby || p->reading)
        return 0;
    shutdown(PQsocket(p->conn), SHUT_RDWR); /* else whoever tries again would find it good for reading */
    return err_set(e, ERR_UNREACHABLE, STANDBY);
}

static void postgres_close(struct store *s)
{
    struct postgres *p = of_store(s);
    PQfinish(p->conn);
    statements_forget(&p->statements);
    sql_store_release(&p->sql);
    free(p);
}

static int postgres_open(const char *dsn, bool reading, struct store **ret, struct err *e)
{
    if (check_dsn(dsn, e) < 0)
        return -1;
    struct postgres *p = mem_alloc(sizeof(*p));
    p->sql.store.ops = &store_postgres;
    p->sql.engine = &engine_postgres;
    p->conn = connect_to(dsn);
    const char *role = PQuser(p->conn);
    snprintf(p->sql.store.role, sizeof(p->sql.store.role), "%s", role ? role : "");
    p->reading = reading;
    if (look_at_server(p, e) < 0) {
        postgres_close(&p->sql.store);
        return -1;
    }
    *ret = &p->sql.store;
    return 0;
}

/* A connection on its way. */
struct connecting {
    char *dsn;
    PGconn *conn;
};

static void connect_now(void *connecting)
{
    struct connecting *c = connecting;
    c->conn = connect_to(c->dsn);
}

static void connecting_free(void *connecting)
{
    struct connecting *c = connecting;
    PQfinish(c->conn);
    free(c->dsn);
    free(c);
}

static bool gives_up(void *store)
{
    return store_gives_up(store);
}

/* libpq looks names up, and waits for a server that does not answer, and cannot be told to stop. */
static int connect_or_leave(struct postgres *p, struct err *e)
{
    struct store *s = &p->sql.store;
    struct connecting *c = mem_alloc(sizeof(*c));
    c->dsn = mem_strdup(s->dsn);
    if (!thread_try(connect_now, connecting_free, c, gives_up, s))
        return err_set(e, store_interrupted(s) ? ERR_STOPPED : ERR_UNREACHABLE,
                       "postgresql: no connection could be had in time");
    p->conn = c->conn;
    c->conn = NULL;
    connecting_free(c);
    return 0;
}

static int postgres_reconnect(struct store *s, struct err *e)
{
    struct postgres *p = of_store(s);
    p->marked = p->gave_up = false;
    p->stamp_ends_us = p->since_us = 0;
    PQfinish(p->conn); /* before the next: there may be room for one only */
    p->conn = NULL;
    return connect_or_leave(p, e) < 0 ? -1 : look_at_server(p, e);
}

static int postgres_now(struct store *s, instant *ret, struct err *e)
{
    struct postgres *p = of_store(s);
    static const char sql[] = "SELECT (EXTRACT(epoch FROM pg_catalog.clock_timestamp())"
                              " OPERATOR(pg_catalog.*) 1000000::numeric)::bigint";
    if (may_ask(p, e) < 0)
        return -1;
    p->patience_us = 0;
    AUTO(result_clear_p) PGresult *r = ask_alone(p, " READ ONLY", sql);
    if (!succeeded(r))
        return fail(p, r, e);
    *ret = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    return 0;
}

int postgres_names(struct sql_store *s, struct rows *ret, struct err *e)
{
    static const char commands[] =
        SET_USER_PATH "; SELECT pg_catalog.current_schemas(false), pg_catalog.current_schema(),"
                      " pg_catalog.current_setting('search_path'); " SET_SERVER_PATH;
    struct postgres *p = of_sql(s);
    if (may_ask(p, e) < 0)
        return -1;
    p->path = PATH_UNKNOWN;
    AUTO(result_clear_p) PGresult *r = answer_of(p, commands);
    if (!succeeded(r))
        return fail(p, r, e);
    p->path = PATH_SERVER;
    rows_release(ret);
    copy_rows(r, ret);
    return 0;
}

static int postgres_inspect(struct store *s, const struct table_names *names, struct facts **ret,
                            struct err *e)
{
    struct sql_store *sql = &of_store(s)->sql;
    if (postgres_begin_read(sql, CATALOG_TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    int result = postgres_read_facts(sql, names, ret, e);
    postgres_rollback(sql);
    return result;
}

/* Every row of the catalog that says something of a table, by the transaction that wrote it; what temporary
 * tables come and go with is nobody's business. Asked now and then only, and less often where the catalog is
 * so large that it takes long: never more than a hundredth of the time. What facts depend on besides (roles,
 * the data) ages. */
static int postgres_schema_stamp(struct store *s, int64_t *ret, struct err *e)
{
    enum { STAMP_LASTS_US = 10 * US_PER_S, STAMP_SHARE = 100, FACTS_LAST_S = 600 };
    static const char sql[] =
        "WITH c AS (SELECT oid, xmin FROM pg_catalog.pg_class WHERE oid >= 16384 AND relpersistence <> 't' "
        "           AND relkind <> 't') "
        "SELECT COALESCE(sum(pg_catalog.hashtext(w)::bigint), 0)::bigint FROM ("
        " SELECT 'c' || oid || ' ' || xmin FROM c UNION ALL"
        " SELECT 'a' || attrelid || ' ' || attnum || ' ' || a.xmin"
        "   FROM pg_catalog.pg_attribute a JOIN c ON c.oid = attrelid WHERE attnum > 0 UNION ALL"
        " SELECT 'k' || k.oid || ' ' || k.xmin FROM pg_catalog.pg_constraint k JOIN c ON c.oid = conrelid "
        "UNION ALL"
        " SELECT 'i' || indexrelid || ' ' || i.xmin FROM pg_catalog.pg_index i JOIN c ON c.oid = indexrelid "
        "UNION ALL"
        " SELECT 't' || t.oid || ' ' || t.xmin FROM pg_catalog.pg_trigger t JOIN c ON c.oid = tgrelid UNION "
        "ALL"
        " SELECT 'p' || oid || ' ' || xmin FROM pg_catalog.pg_policy UNION ALL"
        " SELECT 'e' || oid || ' ' || xmin FROM pg_catalog.pg_enum) AS x(w)";
    struct postgres *p = of_store(s);
    int64_t now = when_monotonic_us();
    if (now >= p->stamp_ends_us) {
        if (may_ask(p, e) < 0)
            return -1;
        AUTO(result_clear_p) PGresult *r = ask_alone(p, " READ ONLY", sql);
        if (!succeeded(r))
            return fail(p, r, e);
        p->stamp = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
        int64_t asked = when_monotonic_us(), rest = (asked - now) * STAMP_SHARE;
        p->stamp_ends_us = asked + (rest > STAMP_LASTS_US ? rest : STAMP_LASTS_US);
    }
    *ret = (p->stamp ^ now / (FACTS_LAST_S * US_PER_S)) & INT64_MAX;
    return 0;
}

static int postgres_list_tables(struct store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                                struct err *e)
{
    struct sql_store *sql = &of_store(s)->sql;
    if (postgres_begin_read(sql, CATALOG_TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    int result = postgres_read_tables(sql, a, ret, ret_n, e);
    postgres_rollback(sql);
    return result;
}

static bool take_notices(struct postgres *p)
{
    bool any = false;
    for (PGnotify *n; (n = PQnotifies(p->conn)); any = true)
        PQfreemem(n);
    return any;
}

/* LISTEN again each time: it costs one look whether the server is still there, and changes nothing else. */
static int postgres_hear(struct store *s, int64_t most_us, int wake_fd, bool *ret_heard, struct err *e)
{
    struct postgres *p = of_store(s);
    struct pollfd fds[] = {{PQsocket(p->conn), POLLIN, 0}, {wake_fd, POLLIN, 0}};
    int64_t until = when_monotonic_us() + most_us, left = most_us;
    p->patience_us = 0;
    if (command(p, "LISTEN lapse_purge", e) < 0)
        return -1;
    for (*ret_heard = take_notices(p); !*ret_heard && left > 0 && !(fds[1].revents & POLLIN);
         left = until - when_monotonic_us()) {
        poll(fds, COUNT_OF(fds), (int)(left / US_PER_MS) + 1);
        if (!PQconsumeInput(p->conn))
            return fail_lost(p, e);
        *ret_heard = take_notices(p);
    }
    return 0;
}

const struct store_ops store_postgres = {
    .scheme = "postgresql",
    .open = postgres_open,
    .close = postgres_close,
    .reconnect = postgres_reconnect,
    .now = postgres_now,
    .inspect = postgres_inspect,
    .schema_stamp = postgres_schema_stamp,
    .list_tables = postgres_list_tables,
    .sync = postgres_sync,
    .hear = postgres_hear,
    .pressure = postgres_pressure,
    .pieces = postgres_pieces,
    .partitions = &postgres_partitions,
    SQLSTORE_VERBS,
};
