/* store: a connection to MariaDB or MySQL. The only file that sees libmariadb.
 *
 * One statement at a time, as text with its literals; never two in one. What the meaning of a statement
 * depends on is set anew for every transaction, so that no trigger, no init_connect and no pooler can change
 * it. */
#include "store/mariadb/store.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>

#include "base/thread.h"

enum { CATALOG_TIMEOUT_S = 30, READ_LOCK_TIMEOUT_S = 5, IDLE_S = 10 };
enum { LOOK_MS = 50 }; /* between two looks whether to go on waiting */
enum { LATE_S = 30 };  /* an answer may be later than its statement may take */
enum { PRESSURE_TIMEOUT_S = 5 };
enum {
    KILL_LASTS_S = 3,
    KILL_ASKS_S = 1
}; /* for a server that does not answer any more; of that, for the connection that asks */

struct mariadb {
    struct sql_store sql; /* first: a struct store * is one of these */
    struct engine engine; /* with the dialect of the server that answered */
    struct dialect dialect;
    struct mariadb_dsn dsn;
    const struct mariadb_host *host; /* to which it is connected */
    MYSQL *conn;                     /* NULL: none could be had */
    struct mariadb_server server;
    size_t packet_most; /* bytes of a statement that the server takes */
    bool clock_fixed;   /* nobody may set a session's clock: it need not be set right */
    bool reading;
    bool wrote;                   /* the database took writes over this store already */
    bool open;                    /* a transaction is */
    struct text unlock;           /* what gives back the lock it took for its ranks; empty: it took none */
    bool ending;                  /* what runs now ends one: nothing interrupts it */
    int64_t patience_us;          /* how long a statement may take, by the limit that the server was told */
    int64_t asked_us, spoke_us;   /* when the statement was sent, when the server last spoke */
    int64_t killed_us;            /* when it was asked to end the statement; 0: not */
    bool gave_up;                 /* no answer came for longer than that */
    int64_t stamp, stamp_ends_us; /* of the schema, and until when it will do; 0: not on this connection */
    struct mariadb *beside; /* NULL: none yet. To the same node of a cluster, to wait on while this one is in
                             * a transaction */
};

static struct mariadb *of_sql(struct sql_store *s)
{
    return (struct mariadb *)s;
}

static struct mariadb *of_store(struct store *s)
{
    return (struct mariadb *)s;
}

static void result_free_p(MYSQL_RES **r)
{
    mysql_free_result(*r);
}

/* --- waiting ------------------------------------------------------------------------------------- */

static void give_up(struct mariadb *m)
{
    m->gave_up = true;
    shutdown(mysql_get_socket(m->conn), SHUT_RDWR);
}

static MYSQL *connect_to(const struct mariadb_dsn *d, const struct mariadb_host *host, int timeout_s);

/* Another connection tells the server to end what runs on this one. */
static void kill_query(struct mariadb *m)
{
    char sql[64];
    m->killed_us = when_monotonic_us();
    MYSQL *other = connect_to(&m->dsn, m->host, KILL_ASKS_S);
    snprintf(sql, sizeof(sql), "KILL QUERY %lu", mysql_thread_id(m->conn));
    if (other && !mysql_errno(other))
        mysql_query(other, sql);
    if (other)
        mysql_close(other);
}

/* A server of MySQL limits only what reads: what writes is ended from here. MariaDB does it by itself, and is
 * helped where it does not. */
static bool overdue(const struct mariadb *m, int64_t now)
{
    int64_t more = m->server.mysql ? 0 : LATE_S * US_PER_S / 2;
    return m->patience_us && now - m->asked_us > m->patience_us + more;
}

/* Interrupted: has the statement ended; of a server that does not answer that either, the connection is given
 * up, and what is not committed with it. So it is where no answer comes though the server has long ended the
 * statement: a network that swallows everything closes no connection. */
static void look(struct mariadb *m)
{
    int64_t now = when_monotonic_us();
    bool interrupted = store_interrupted(&m->sql.store) && !m->ending;
    if (m->sql.store.trying && store_gives_up(&m->sql.store))
        give_up(m);
    else if (now - m->spoke_us > m->patience_us + LATE_S * US_PER_S)
        give_up(m);
    else if (m->killed_us && now - m->killed_us > KILL_LASTS_S * US_PER_S && interrupted)
        give_up(m);
    else if (!m->killed_us && !m->ending && (interrupted || overdue(m, now)))
        kill_query(m);
}

/* Waits until the socket is ready for one of these; returns which. */
static int wait_for(struct mariadb *m, int status)
{
    short events =
        (short)((status & MYSQL_WAIT_READ ? POLLIN : 0) | (status & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
                (status & MYSQL_WAIT_EXCEPT ? POLLPRI : 0));
    for (;;) {
        struct pollfd fd = {mysql_get_socket(m->conn), events, 0};
        if (poll(&fd, 1, LOOK_MS) > 0) {
            m->spoke_us = when_monotonic_us();
            bool broken = fd.revents & (POLLERR | POLLHUP | POLLNVAL);
            return (fd.revents & POLLIN || broken ? status & MYSQL_WAIT_READ : 0) |
                   (fd.revents & POLLOUT || broken ? status & MYSQL_WAIT_WRITE : 0) |
                   (fd.revents & POLLPRI ? status & MYSQL_WAIT_EXCEPT : 0);
        }
        look(m);
    }
}

/* Sends one statement and waits for the answer; 0: it is there. */
static int ask(struct mariadb *m, const char *sql, size_t len)
{
    int failed = 0;
    m->asked_us = m->spoke_us = when_monotonic_us();
    m->killed_us = 0;
    int status = mysql_real_query_start(&failed, m->conn, sql, len);
    while (status)
        status = mysql_real_query_cont(&failed, m->conn, wait_for(m, status));
    return failed;
}

/* The rows of the answer; NULL: it has none, or they did not come whole. */
static MYSQL_RES *take_rows(struct mariadb *m)
{
    MYSQL_RES *rows = NULL;
    int status = mysql_store_result_start(&rows, m->conn);
    while (status)
        status = mysql_store_result_cont(&rows, m->conn, wait_for(m, status));
    return rows;
}

/* --- errors -------------------------------------------------------------------------------------- */

/* The words of the server as one line. */
static void add_one_line(struct text *t, const char *words)
{
    bool gap = false;
    for (; *words; words++) {
        if (strchr(" \t\r\n", *words)) {
            gap = t->len > 0;
            continue;
        }
        if (gap)
            text_add(t, " ");
        text_add_n(t, words, 1);
        gap = false;
    }
}

static struct mariadb_words words_of(MYSQL *conn)
{
    return (struct mariadb_words){mysql_errno(conn), mysql_sqlstate(conn), mysql_error(conn)};
}

/* A server that was written to before has become a replica: another one is written to now, by the same name
 * where a proxy or a moving address is before them. */
static int fail_read_only(struct mariadb *m, struct err *e)
{
    return err_set(e, m->dsn.n_hosts > 1 || m->wrote ? ERR_LOST : ERR_DATABASE,
                   "mariadb: the database is read-only (a replica?)");
}

/* Outside of a transaction there is no lock to wait for: the node waited for its cluster, and in vain. */
static bool waited_for_cluster(const struct mariadb *m, unsigned number)
{
    return m->server.galera && !m->open && number == ER_LOCK_WAIT_TIMEOUT;
}

static bool is_denied(unsigned number)
{
    static const unsigned denied[] = {ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR,
                                      ER_DBACCESS_DENIED_ERROR, ER_PROCACCESS_DENIED_ERROR,
                                      ER_SPECIFIC_ACCESS_DENIED_ERROR};
    for (size_t i = 0; i < COUNT_OF(denied); i++)
        if (denied[i] == number)
            return true;
    return false;
}

static int fail(struct mariadb *m, struct err *e)
{
    unsigned number = m->conn ? mysql_errno(m->conn) : CR_SERVER_LOST;
    AUTO(text_release) struct text words = {0};
    if (m->gave_up)
        return err_set(e, ERR_LOST, "mariadb: no answer came in time, and the connection was given up");
    if (store_interrupted(&m->sql.store) && number == ER_QUERY_INTERRUPTED)
        return err_set(e, ERR_STOPPED, "mariadb: interrupted");
    if (m->conn && !m->reading && mariadb_is_read_only(words_of(m->conn)))
        return fail_read_only(m, e);
    if (waited_for_cluster(m, number))
        return err_set(e, ERR_LOST, "mariadb: this node has left its cluster, or does not catch up with it");
    add_one_line(&words, m->conn ? mysql_error(m->conn) : "");
    AUTO(text_release) struct text hint = {0};
    if (is_denied(number))
        store_grants_hint(&m->sql.store, &hint);
    err_set(e, m->conn ? mariadb_error_kind(words_of(m->conn)) : ERR_LOST,
            hint.len ? "mariadb %u: %s (%s)" : "mariadb %u: %s", number,
            words.len ? text_str(&words) : "the connection is lost", text_str(&hint));
    if (e)
        snprintf(e->code, sizeof(e->code), "%u", number);
    return -1;
}

/* What is interrupted before it begins does not begin. */
static int may_ask(struct mariadb *m, struct err *e)
{
    if (store_interrupted(&m->sql.store))
        return err_set(e, ERR_STOPPED, "mariadb: interrupted");
    return m->conn ? 0 : err_set(e, ERR_LOST, "mariadb: there is no connection");
}

/* --- statements ---------------------------------------------------------------------------------- */

/* One statement without rows, or whose rows do not matter. */
static int command(struct mariadb *m, const char *sql, struct err *e)
{
    if (may_ask(m, e) < 0)
        return -1;
    if (ask(m, sql, strlen(sql)))
        return fail(m, e);
    mysql_free_result(take_rows(m));
    return mysql_errno(m->conn) ? fail(m, e) : 0;
}

/* A whole number that a field of the server's holds as text or as bits. Beyond 64 bits it stays a text. */
static bool integer_of(const MYSQL_FIELD *f, const char *text, size_t len, int64_t *ret)
{
    switch (f->type) {
    case MYSQL_TYPE_BIT:
        *ret = 0;
        for (size_t i = 0; i < len; i++)
            *ret = (int64_t)((uint64_t)*ret << 8 | (unsigned char)text[i]);
        return len < sizeof(*ret) || *ret >= 0;
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        errno = 0;
        *ret = strtoll(text, NULL, 10);
        return errno == 0;
    default:
        return false;
    }
}

static bool is_bytes(const MYSQL_FIELD *f)
{
    enum { BINARY_CHARSET = 63 };
    bool text = f->type == MYSQL_TYPE_STRING || f->type == MYSQL_TYPE_VAR_STRING ||
                f->type == MYSQL_TYPE_VARCHAR || f->type == MYSQL_TYPE_BLOB ||
                f->type == MYSQL_TYPE_TINY_BLOB || f->type == MYSQL_TYPE_MEDIUM_BLOB ||
                f->type == MYSQL_TYPE_LONG_BLOB;
    return f->type == MYSQL_TYPE_GEOMETRY || (text && f->charsetnr == BINARY_CHARSET);
}

static struct value value_of(const MYSQL_FIELD *f, const char *text, size_t len)
{
    struct value v = {.kind = VALUE_NULL};
    if (!text)
        return v;
    if (integer_of(f, text, len, &v.integer)) {
        v.kind = VALUE_INTEGER;
        return v;
    }
    return (struct value){.kind = is_bytes(f) ? VALUE_BLOB : VALUE_TEXT, .text = text, .len = len};
}

static void copy_rows(MYSQL_RES *r, struct rows *ret)
{
    unsigned n = mysql_num_fields(r);
    const MYSQL_FIELD *fields = mysql_fetch_fields(r);
    AUTO(mem_free_p) struct value *cells = mem_alloc(n * sizeof(*cells));
    ret->n_columns = n;
    for (MYSQL_ROW row; (row = mysql_fetch_row(r));) {
        const unsigned long *lengths = mysql_fetch_lengths(r);
        for (unsigned i = 0; i < n; i++)
            cells[i] = value_of(&fields[i], row[i], lengths[i]);
        rows_push(ret, cells);
    }
}

/* A statement that the server would not take, and close the connection for: as one that takes too long, it
 * may be of fewer rows. */
static int fits(const struct mariadb *m, size_t len, struct err *e)
{
    if (len < m->packet_most)
        return 0;
    return err_set(e, ERR_TIMEOUT, "mariadb: a statement of %zu bytes is more than max_allowed_packet (%zu)",
                   len, m->packet_most);
}

static int run(struct mariadb *m, const char *verb, const struct stmt *st, MYSQL_RES **ret, struct err *e)
{
    AUTO(text_release) struct text sql = {0};
    if (may_ask(m, e) < 0)
        return -1;
    text_add(&sql, verb);
    if (mariadb_write(&m->sql, st, &sql, e) < 0 || fits(m, sql.len, e) < 0)
        return -1;
    if (ask(m, text_str(&sql), sql.len))
        return fail(m, e);
    *ret = take_rows(m);
    return *ret || !mysql_errno(m->conn) ? 0 : fail(m, e);
}

static int mariadb_query(struct sql_store *s, const struct stmt *st, struct rows *ret, struct err *e)
{
    AUTO(result_free_p) MYSQL_RES *r = NULL;
    if (run(of_sql(s), "", st, &r, e) < 0)
        return -1;
    rows_release(ret);
    if (r)
        copy_rows(r, ret);
    return 0;
}

static int mariadb_execute(struct sql_store *s, const struct stmt *st, int64_t *ret_affected, struct err *e)
{
    AUTO(result_free_p) MYSQL_RES *r = NULL;
    bool counted = mariadb_is_counted(text_str(&st->sql));
    if (counted)
        store_mark_begin(&s->store);
    int failed = run(of_sql(s), "", st, &r, e);
    if (counted)
        store_mark(&s->store); /* one that fails is counted, too */
    if (failed)
        return -1;
    *ret_affected = (int64_t)mysql_affected_rows(of_sql(s)->conn);
    return 0;
}

/* Sets travel with each statement as lists. */
static int mariadb_load_set(struct sql_store *s, int set, struct err *e)
{
    (void)s, (void)set, (void)e;
    return 0;
}

static int64_t number_of(const struct value *v)
{
    return v->kind == VALUE_TEXT ? strtoll(v->text, NULL, 10) : v->integer;
}

/* One number. */
static int ask_number(struct mariadb *m, const char *sql, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, sql);
    if (mariadb_query(&m->sql, &st, &found, e) < 0)
        return -1;
    const struct value none = {.kind = VALUE_NULL};
    *ret = number_of(found.n_rows ? rows_at(&found, 0) : &none);
    return 0;
}

/* --- transactions -------------------------------------------------------------------------------- */

static void close_beside(struct mariadb *m);

static void disconnect(struct mariadb *m)
{
    close_beside(m);
    if (m->conn)
        mysql_close(m->conn);
    m->conn = NULL;
    m->open = false;
    text_clear(&m->unlock);
}

/* Once the transaction has ended, whatever became of it: the lock outlives it. Where it cannot be given back
 * it goes with the connection. */
static void unlock_ranks(struct mariadb *m)
{
    if (!m->conn || !m->unlock.len)
        return;
    m->ending = true;
    bool failed = m->gave_up || ask(m, text_str(&m->unlock), m->unlock.len);
    AUTO(result_free_p) MYSQL_RES *r = failed ? NULL : take_rows(m);
    m->ending = false;
    MYSQL_ROW row = r ? mysql_fetch_row(r) : NULL;
    text_clear(&m->unlock);
    if (!row || !row[0] || strcmp(row[0], "1") != 0)
        disconnect(m);
}

/* Between transactions nobody waits for us. */
static void may_sleep(struct mariadb *m)
{
    static const char sql[] = "SET SESSION wait_timeout = DEFAULT";
    if (m->server.mysql && m->conn)
        ask(m, sql, strlen(sql)); /* what is wrong with the connection shows when it is used */
}

/* A transaction that cannot be ended is ended with its connection. */
static void mariadb_rollback(struct sql_store *s)
{
    struct mariadb *m = of_sql(s);
    s->store.writes = false;
    if (!m->conn || !m->open)
        return;
    m->open = false;
    m->ending = true;
    bool failed = m->gave_up || ask(m, "ROLLBACK", strlen("ROLLBACK"));
    m->ending = false;
    if (failed && (m->gave_up || mysql_errno(m->conn) != ER_LOCK_DEADLOCK)) /* which has ended it, too */
        disconnect(m);
    unlock_ranks(m);
    may_sleep(m);
}

/* Rounded up; 0 would mean no limit at all, or none to wait for. */
static int64_t in_units(int64_t us, int64_t unit)
{
    int64_t n = us / unit + (us % unit > 0);
    return n < 1 ? 1 : n > INT32_MAX / 1000 ? INT32_MAX / 1000 : n;
}

/* Whoever sleeps in a transaction holds what others wait for. */
static int64_t idle_s(const struct store *s)
{
    int64_t most = s->idle_most_us;
    return in_units(most > 0 && most < IDLE_S * US_PER_S ? most : IDLE_S * US_PER_S, US_PER_S);
}

/* The limits of time. MySQL has one for statements that read; the rest is watched from here. What it has no word for
 * either is a transaction that sleeps: until it ends, a session that sleeps is as bad. */
static void add_limits(struct mariadb *m, struct text *sql, bool writes, int64_t lock_us,
                       int64_t statement_us)
{
    long long ms = (long long)in_units(statement_us, US_PER_MS);
    if (writes) /* who takes no answer sleeps, too */
        text_addf(sql, ", net_write_timeout = %lld", (long long)idle_s(&m->sql.store));
    if (m->server.mysql && writes)
        text_addf(sql, ", wait_timeout = %lld", (long long)idle_s(&m->sql.store));
    if (m->server.mysql)
        text_addf(sql, ", max_execution_time = %lld", ms);
    else
        text_addf(sql,
                  ", max_statement_time = %lld.%03lld, idle_transaction_timeout = %lld,"
                  " idle_write_transaction_timeout = %lld",
                  ms / 1000, ms % 1000, (long long)idle_s(&m->sql.store), (long long)idle_s(&m->sql.store));
    text_addf(sql, ", innodb_lock_wait_timeout = %lld, lock_wait_timeout = %lld",
              (long long)in_units(lock_us, US_PER_S), (long long)in_units(lock_us, US_PER_S));
    m->patience_us = ms * US_PER_MS;
}

/* Rows as they are, not as they were at some time; and the server's clock, not one that stands. */
static void add_present(struct mariadb *m, struct text *sql)
{
    if (m->server.version >= 100304)
        text_add(sql, ", system_versioning_asof = DEFAULT");
    if (!m->clock_fixed)
        text_add(sql, ", timestamp = DEFAULT");
}

/* The settings on which the meaning of a statement depends. A cluster may abort a transaction and say so only
 * once: what is then written outside of it must not commit by itself. Long lists of keys must be looked up in
 * the index, however long; a recursion that is cut short would lose rows without a word; and a sort that
 * looks at the beginning of a key only would rank them by chance: no key is as long as this. */
static void add_settings(struct mariadb *m, struct text *sql, bool writes)
{
    const struct mariadb_server *v = &m->server;
    const char *level = writes ? "READ-COMMITTED" : "REPEATABLE-READ";
    text_addf(sql,
              "SET NAMES utf8mb4 COLLATE %s, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',"
              " time_zone = '+00:00', autocommit = %d, foreign_key_checks = 1, unique_checks = 1,"
              " sql_safe_updates = 0, sql_select_limit = 18446744073709551615, sql_auto_is_null = 0, "
              "sql_big_selects = 1, completion_type = 0, max_sort_length = 32768",
              !v->mysql             ? "utf8mb4_nopad_bin"
              : v->version >= 80017 ? "utf8mb4_0900_bin"
                                    : "utf8mb4_bin",
              !writes);
    text_addf(sql,
              v->mysql ? ", transaction_isolation = '%s', transaction_read_only = %d"
                       : ", tx_isolation = '%s', tx_read_only = %d",
              level, m->reading);
    if (v->mysql)
        text_add(sql, ", range_optimizer_max_mem_size = 0");
    if (v->mysql && v->version >= 80003)
        text_add(sql, ", cte_max_recursion_depth = 4294967295");
    if (v->mysql)
        return;
    add_present(m, sql);
    text_add(sql, ", max_recursive_iterations = 4294967295, default_regex_flags = ''");
    if (v->version >= 100318)
        text_add(sql, ", in_predicate_conversion_threshold = 0");
    if (v->version >= 100400) /* would lock what it filters with */
        text_add(sql, ", optimizer_switch = 'rowid_filter=off'");
    if (v->version >= 100509)
        text_add(sql, ", optimizer_max_sel_arg_weight = 0");
    if (v->galera) /* reads what other nodes have committed */
        text_add(sql, ", wsrep_sync_wait = 1");
}

static int set_session(struct mariadb *m, bool writes, int64_t lock_us, int64_t statement_us, struct err *e)
{
    AUTO(text_release) struct text sql = {0};
    add_settings(m, &sql, writes);
    add_limits(m, &sql, writes, lock_us, statement_us);
    return command(m, text_str(&sql), e);
}

static int begin(struct mariadb *m, const char *sql, struct err *e)
{
    int r = command(m, sql, e);
    m->open = true; /* as far as one knows */
    if (r < 0)
        mariadb_rollback(&m->sql);
    return r;
}

static int mariadb_begin_read(struct sql_store *s, int64_t statement_timeout_us, struct err *e)
{
    struct mariadb *m = of_sql(s);
    if (set_session(m, false, READ_LOCK_TIMEOUT_S * US_PER_S, statement_timeout_us, e) < 0)
        return -1;
    return begin(m, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", e);
}

/* A user with enough privileges can write to a replica: that it is one is asked, not left to the first error.
 */
static int need_writable(struct mariadb *m, struct err *e)
{
    int64_t read_only;
    if (ask_number(m, "SELECT @@GLOBAL.read_only", &read_only, e) < 0)
        return -1;
    return read_only ? fail_read_only(m, e) : 0;
}

/* The same, and the lock of a table's ranks by the same way. What this transaction reads from then on it sees
 * as it is then: its last holder had committed before. */
static int need_writable_alone(struct mariadb *m, const struct table *ranks, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0}, unlock = {0};
    AUTO(rows_release) struct rows found = {0};
    text_add(&st.sql, "SELECT @@GLOBAL.read_only, ");
    m->dialect.rank_lock(&st, ranks);
    text_add(&unlock.sql, "SELECT ");
    m->dialect.rank_unlock(&unlock, ranks);
    if (mariadb_write(&m->sql, &unlock, &m->unlock, e) < 0 || mariadb_query(&m->sql, &st, &found, e) < 0)
        return -1; /* whether it was had is not known */
    const struct value *row = rows_at(&found, 0);
    bool had = number_of(&row[1]) == 1;
    if (!had)
        text_clear(&m->unlock);
    if (number_of(&row[0]))
        return fail_read_only(m, e);
    return had ? 0 : err_set(e, ERR_TURN, "mariadb: another transaction judges ranks of %s", ranks->print);
}

static int mariadb_begin_write(struct sql_store *s, int64_t lock_timeout_us, int64_t statement_timeout_us,
                               struct err *e)
{
    struct mariadb *m = of_sql(s);
    if (m->reading)
        return err_set(e, ERR_USAGE, "mariadb: this connection was opened for reading only");
    if (set_session(m, true, lock_timeout_us, statement_timeout_us, e) < 0 ||
        begin(m, "START TRANSACTION READ WRITE", e) < 0)
        return -1;
    bool alone = s->ranks && !m->dialect.ranks_by_row;
    if ((alone ? need_writable_alone(m, s->ranks, e) : need_writable(m, e)) == 0) {
        m->wrote = s->store.writes = true;
        return 0;
    }
    mariadb_rollback(s);
    return -1;
}

/* Constraints speak with each statement. */
static int mariadb_settle(struct sql_store *s, struct err *e)
{
    (void)s, (void)e;
    return 0;
}

/* A savepoint of the same name takes the place of the former. */
static int mariadb_mark(struct sql_store *s, struct err *e)
{
    return command(of_sql(s), "SAVEPOINT lapse", e);
}

static int mariadb_undo(struct sql_store *s, struct err *e)
{
    return command(of_sql(s), "ROLLBACK TO SAVEPOINT lapse", e);
}

/* Whether the server has not hung up, or said that it does. What TLS has to say unasked does not count. */
static bool is_connected(struct mariadb *m)
{
    char byte;
    ssize_t n = recv(mysql_get_socket(m->conn), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0)
        return mysql_get_ssl_cipher(m->conn) != NULL;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/* A connection that is known to be gone before COMMIT is sent is lost, and nothing is in doubt. Later it may
 * have committed, if not here then on other nodes of a cluster, whatever the last words: only of a conflict,
 * and of a transaction that is too large for a cluster, it is certain that it has not. */
static int mariadb_commit(struct sql_store *s, struct err *e)
{
    struct mariadb *m = of_sql(s);
    if (may_ask(m, e) < 0)
        return -1;
    if (!is_connected(m)) {
        disconnect(m);
        return err_set(e, ERR_LOST, "mariadb: the server closed the connection");
    }
    m->ending = true;
    int failed = ask(m, "COMMIT", strlen("COMMIT"));
    m->ending = false;
    if (!failed) {
        m->open = s->store.writes = false;
        unlock_ranks(m);
        may_sleep(m);
        return 0;
    }
    struct err why = ERR_INIT;
    fail(m, &why);
    if (!m->conn || !mariadb_not_committed(words_of(m->conn)))
        why.kind = ERR_COMMIT_UNKNOWN;
    if (e)
        *e = why;
    return -1;
}

static int mariadb_catch_up(struct sql_store *s, struct err *e);

static int mariadb_accepts(struct sql_store *s, const struct stmt *st, struct err *e)
{
    struct mariadb *m = of_sql(s);
    bool alone = !m->open;
    if (alone && mariadb_begin_read(s, CATALOG_TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    AUTO(result_free_p) MYSQL_RES *r = NULL;
    int result = run(m, "EXPLAIN ", st, &r, e);
    if (alone)
        mariadb_rollback(s);
    return result;
}

static int field_named(MYSQL_RES *r, const char *name)
{
    const MYSQL_FIELD *fields = mysql_fetch_fields(r);
    for (unsigned i = 0; i < mysql_num_fields(r); i++)
        if (strcasecmp(fields[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* The plan is made and thrown away; a server with columns that are not known here is taken at its word. */
static int mariadb_served(struct sql_store *s, const struct stmt *st, bool *ret, struct text *words,
                          struct err *e)
{
    AUTO(result_free_p) MYSQL_RES *r = NULL;
    if (run(of_sql(s), "EXPLAIN FORMAT=TRADITIONAL ", st, &r, e) < 0)
        return -1;
    *ret = true;
    if (!r)
        return 0;
    int type = field_named(r, "type"), possible = field_named(r, "possible_keys"),
        key = field_named(r, "key"), extra = field_named(r, "Extra");
    if (type < 0 || possible < 0 || key < 0 || extra < 0)
        return 0;
    for (MYSQL_ROW row; (row = mysql_fetch_row(r));) {
        struct mariadb_access a = {row[type], row[possible], row[key], row[extra]};
        *ret = *ret && mariadb_reads_range(&a);
        mariadb_access_words(&a, words);
    }
    return 0;
}

static const struct engine engine_mariadb = {
    .dialect = &dialect_mariadb,
    .query = mariadb_query,
    .execute = mariadb_execute,
    .load_set = mariadb_load_set,
    .begin_read = mariadb_begin_read,
    .begin_write = mariadb_begin_write,
    .catch_up = mariadb_catch_up,
    .settle = mariadb_settle,
    .mark = mariadb_mark,
    .undo = mariadb_undo,
    .commit = mariadb_commit,
    .rollback = mariadb_rollback,
    .served = mariadb_served,
    .accepts = mariadb_accepts,
};

/* --- the connection ------------------------------------------------------------------------------ */

/* What was asked of the encryption. Over a socket of this machine there is none. */
static void set_tls(MYSQL *conn, const struct mariadb_dsn *d)
{
    my_bool yes = 1;
    if (d->tls == TLS_DISABLED || d->socket)
        return;
    mysql_ssl_set(conn, d->key, d->cert, d->ca, NULL, NULL);
    if (d->tls == TLS_REQUIRED || d->tls == TLS_VERIFIED)
        mysql_optionsv(conn, MYSQL_OPT_SSL_ENFORCE, &yes);
    if (d->tls == TLS_VERIFIED)
        mysql_optionsv(conn, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
}

/* The server says how it wants to be shown the password. What it gets by these is worth nothing to another
 * than the right one: a hash or a signature over what it has just made up. By all others it gets the password
 * (caching_sha2_password and sha256_password encrypt it with a key that the server sends, or with nothing
 * inside TLS), so these are for a server whose certificate is right and for a socket of this machine. The
 * library looks for the name as a piece of this text: nothing else may be in it. Without a password there is
 * none to hand over, but `dialog` would ask at the terminal for one. */
static void set_logins(MYSQL *conn, const struct mariadb_dsn *d)
{
    static const char hashing[] = "mysql_native_password,client_ed25519,parsec";
    static const char harmless[] =
        "mysql_native_password,client_ed25519,parsec,caching_sha2_password,sha256_password";
    if (!d->socket && d->tls != TLS_VERIFIED)
        mysql_optionsv(conn, MARIADB_OPT_RESTRICTED_AUTH, d->password && *d->password ? hashing : harmless);
}

/* A server that is no longer there is noticed within a minute, and not after the two hours of most systems.
 */
static void keep_alive(MYSQL *conn)
{
    int fd = (int)mysql_get_socket(conn), on = 1, idle = 30, interval = 10, count = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/* Waits, but not beyond the end: then the connection is cut, and the attempt finds that out. */
static int wait_until(MYSQL *conn, int status, int64_t ends_us)
{
    int64_t left_ms = (ends_us - when_monotonic_us()) / US_PER_MS;
    struct pollfd fd = {mysql_get_socket(conn), POLLIN | POLLPRI, 0};
    if (status & MYSQL_WAIT_WRITE)
        fd.events |= POLLOUT;
    int ready = poll(&fd, 1, left_ms > 0 ? (int)left_ms : 0);
    if (ready == 0)
        shutdown((int)mysql_get_socket(conn), SHUT_RDWR);
    return ready == 0 && status & MYSQL_WAIT_TIMEOUT ? MYSQL_WAIT_TIMEOUT
                                                     : status & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE);
}

static void begin_library(void)
{
    mysql_library_init(0, NULL, NULL);
}

/* Files of options are not read. A file of this machine is never sent to a server that asks for one. NULL:
 * out of memory; else mysql_errno says how it went. */
static MYSQL *connect_to(const struct mariadb_dsn *d, const struct mariadb_host *host, int timeout_s)
{
    static pthread_once_t begun = PTHREAD_ONCE_INIT;
    pthread_once(&begun, begin_library); /* which is not fit for two threads at once */
    MYSQL *conn = mysql_init(NULL), *done = NULL;
    unsigned no = 0, timeout = (unsigned)timeout_s;
    unsigned protocol = d->socket ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    int64_t ends_us = when_monotonic_us() + timeout_s * US_PER_S;
    if (!conn)
        return NULL;
    mysql_optionsv(conn, MYSQL_OPT_NONBLOCK, 0);
    mysql_optionsv(conn, MYSQL_OPT_LOCAL_INFILE, &no);
    mysql_optionsv(conn, MYSQL_OPT_PROTOCOL, &protocol);
    mysql_optionsv(conn, MYSQL_OPT_CONNECT_TIMEOUT, &timeout);
    mysql_optionsv(conn, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_optionsv(conn, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "lapse");
    set_tls(conn, d);
    set_logins(conn, d);
    int status = mysql_real_connect_start(&done, conn, d->socket ? NULL : host->name, d->user,
                                          d->password ? d->password : "", d->database, host->port, d->socket,
                                          CLIENT_FOUND_ROWS);
    while (status)
        status = mysql_real_connect_cont(&done, conn, wait_until(conn, status, ends_us));
    if (done && !d->socket)
        keep_alive(conn);
    return conn;
}

/* A connection on its way to one of the hosts. */
struct connecting {
    char *dsn;
    size_t host;
    MYSQL *conn;
};

static void connect_now(void *connecting)
{
    struct connecting *c = connecting;
    struct mariadb_dsn d = {0};
    struct err e = ERR_INIT; /* it was parsed before, and may only lack its password_file by now */
    if (mariadb_dsn_parse(c->dsn, &d, &e) == 0)
        c->conn = connect_to(&d, &d.hosts[c->host], d.connect_timeout_s);
    mariadb_dsn_release(&d);
}

static void connecting_free(void *connecting)
{
    struct connecting *c = connecting;
    if (c->conn)
        mysql_close(c->conn);
    free(c->dsn);
    free(c);
}

static bool gives_up(void *store)
{
    return store_gives_up(store);
}

/* The library looks names up, and cannot be told to stop. False: it was left at that. */
static bool connect_or_leave(struct mariadb *m)
{
    struct store *s = &m->sql.store;
    struct connecting *c = mem_alloc(sizeof(*c));
    c->dsn = mem_strdup(s->dsn);
    c->host = (size_t)(m->host - m->dsn.hosts);
    if (!thread_try(connect_now, connecting_free, c, gives_up, s))
        return false;
    m->conn = c->conn;
    c->conn = NULL;
    connecting_free(c);
    return true;
}

static void add_host(struct text *t, const struct mariadb_dsn *d, const struct mariadb_host *h)
{
    if (d->socket)
        text_add(t, d->socket);
    else
        text_addf(t, strchr(h->name, ':') ? "[%s]:%u" : "%s:%u", h->name, h->port);
}

static int fail_connection(struct mariadb *m, struct err *e)
{
    AUTO(text_release) struct text words = {0}, host = {0};
    add_host(&host, &m->dsn, m->host);
    if (m->conn && mysql_errno(m->conn) == CR_PLUGIN_NOT_ALLOWED)
        return err_set(
            e, ERR_UNREACHABLE,
            "mariadb: %s: the server asks for the password in a form that it could read, and nothing "
            "proves that it is the right server: use ssl_mode=verify_identity (with ssl_ca), a unix "
            "socket, or a user that logs in by mysql_native_password or ed25519",
            text_str(&host));
    add_one_line(&words, m->conn ? mysql_error(m->conn) : "out of memory");
    return err_set(e, ERR_UNREACHABLE, "mariadb: %s: %s", text_str(&host), text_str(&words));
}

/* The second column of what a SHOW gives. */
static int show_is(struct mariadb *m, const char *sql, const char *word, bool *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, sql);
    if (mariadb_query(&m->sql, &st, &found, e) < 0)
        return -1;
    const struct value *v = found.n_rows ? &rows_at(&found, 0)[1] : NULL;
    *ret = v && v->kind == VALUE_TEXT && strcmp(v->text, word) == 0;
    return 0;
}

/* Whoever may not set the clock of a session cannot have done so. */
static int read_clock_rule(struct mariadb *m, struct err *e)
{
    bool settable = true;
    if (m->server.version >= 100307 &&
        show_is(m, "SHOW VARIABLES LIKE 'secure_timestamp'", "NO", &settable, e) < 0)
        return -1;
    m->clock_fixed = !settable;
    return 0;
}

/* Of MySQL: a server that is to be one of a group, whether the group is there or not. */
static int read_group(struct mariadb *m, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    AUTO(stmt_release) struct stmt st = {0};
    m->server.certifies = m->server.galera ? "Galera" : NULL;
    if (!m->server.mysql)
        return 0;
    text_add(&st.sql, "SHOW VARIABLES LIKE 'group_replication_group_name'");
    if (mariadb_query(&m->sql, &st, &found, e) < 0)
        return -1;
    const struct value *name = found.n_rows ? &rows_at(&found, 0)[1] : NULL;
    if (name && name->kind == VALUE_TEXT && name->len)
        m->server.certifies = "group replication";
    return 0;
}

static int read_server(struct mariadb *m, struct err *e)
{
    enum { OLDEST = 100300, OLDEST_MYSQL = 80019 }; /* which has lists of rows */
    int64_t packet;
    const char *info = mysql_get_server_info(m->conn);
    m->server.mysql = !info || !strstr(info, "MariaDB");
    m->server.version = (int)mysql_get_server_version(m->conn);
    int oldest = m->server.mysql ? OLDEST_MYSQL : OLDEST;
    if (m->server.version < oldest)
        return err_set(e, ERR_UNREACHABLE, "mariadb: the server is %s %d.%d.%d, at least %d.%d.%d is needed",
                       m->server.mysql ? "MySQL" : "MariaDB", m->server.version / 10000,
                       m->server.version / 100 % 100, m->server.version % 100, oldest / 10000,
                       oldest / 100 % 100, oldest % 100);
    if (ask_number(m, "SELECT @@max_allowed_packet", &packet, e) < 0 || read_clock_rule(m, e) < 0 ||
        show_is(m, "SHOW VARIABLES LIKE 'wsrep_on'", "ON", &m->server.galera, e) < 0 ||
        (!m->server.mysql && m->server.version < 100600 &&
         show_is(m, "SHOW VARIABLES LIKE 'innodb_rollback_on_timeout'", "ON", &m->server.undoes_all, e) < 0))
        return -1;
    if (read_group(m, e) < 0)
        return -1;
    m->packet_most = (size_t)packet;
    m->dialect = mariadb_dialect_for(&m->server);
    m->engine = engine_mariadb;
    m->engine.dialect = &m->dialect;
    return 0;
}

/* A node of a cluster that is not in its primary part, or not in step, answers, but does not work. */
static int need_ready(struct mariadb *m, struct err *e)
{
    bool ready = true;
    if (m->server.galera && show_is(m, "SHOW STATUS LIKE 'wsrep_ready'", "ON", &ready, e) < 0)
        return -1;
    return ready ? 0
                 : err_set(e, ERR_UNREACHABLE,
                           "mariadb: this node is not in the primary part of its cluster, or not in step "
                           "with it (wsrep_ready)");
}

/* In the end it is as after the first statement of a transaction, with time limits. */
static int look_at_server(struct mariadb *m, struct err *e)
{
    m->packet_most = 1024 * 1024;
    m->patience_us = CATALOG_TIMEOUT_S * US_PER_S;
    if (m->dsn.tls != TLS_DISABLED && m->dsn.tls != TLS_PREFERRED && !m->dsn.socket &&
        !mysql_get_ssl_cipher(m->conn))
        return err_set(e, ERR_UNREACHABLE, "mariadb: the server does not encrypt, and ssl_mode asks for it");
    if (read_server(m, e) < 0 || need_ready(m, e) < 0 ||
        set_session(m, false, READ_LOCK_TIMEOUT_S * US_PER_S, CATALOG_TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    return m->reading || (m->dsn.n_hosts == 1 && !m->wrote) ? 0 : need_writable(m, e);
}

/* -1: this one will not do. */
static int try_host(struct mariadb *m, const struct mariadb_host *host, struct err *e)
{
    m->host = host;
    m->gave_up = m->open = false;
    m->stamp_ends_us = 0;
    bool left = m->sql.store.trying && !connect_or_leave(m);
    if (!m->sql.store.trying)
        m->conn = connect_to(&m->dsn, host, m->dsn.connect_timeout_s);
    const char *role = !left && m->conn && m->conn->user ? m->conn->user : m->dsn.user;
    snprintf(m->sql.store.role, sizeof(m->sql.store.role), "%s", role ? role : "");
    if (left)
        err_set(e, store_interrupted(&m->sql.store) ? ERR_STOPPED : ERR_UNREACHABLE,
                "mariadb: no connection could be had in time");
    else if (!m->conn || mysql_errno(m->conn))
        fail_connection(m, e);
    else if (look_at_server(m, e) == 0)
        return 0;
    disconnect(m);
    return -1;
}

/* The number of microseconds does not depend on the session's zone. */
static int mariadb_now(struct store *s, instant *ret, struct err *e)
{
    return ask_number(of_store(s), "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))", ret,
                      e);
}

/* A node of a cluster answers when it has applied what is committed anywhere, but not in a transaction: so it
 * is asked over another connection to the same node. */
static int mariadb_catch_up(struct sql_store *s, struct err *e)
{
    struct mariadb *m = of_sql(s);
    int64_t now;
    if (!m->server.galera)
        return 0;
    if (!m->beside) {
        m->beside = mem_alloc(sizeof(*m->beside));
        m->beside->sql.engine = &m->beside->engine;
        m->beside->dsn = m->dsn; /* borrowed */
        m->beside->reading = true;
        m->beside->sql.store.interrupted = s->store.interrupted;
        if (try_host(m->beside, m->host, e) < 0) {
            close_beside(m);
            e->kind = e->kind == ERR_STOPPED ? ERR_STOPPED : ERR_LOST;
            return -1;
        }
    }
    return mariadb_now(&m->beside->sql.store, &now, e);
}

static void close_beside(struct mariadb *m)
{
    if (!m->beside)
        return;
    disconnect(m->beside);
    sql_store_release(&m->beside->sql);
    mem_free_p(&m->beside);
}

/* The first of the hosts that will do. Of several the words of each say why not. */
static int connect_any(struct mariadb *m, struct err *e)
{
    AUTO(text_release) struct text all = {0};
    struct err why = ERR_INIT;
    for (size_t i = 0; i < m->dsn.n_hosts; i++) {
        if (store_interrupted(&m->sql.store))
            return err_set(e, ERR_STOPPED, "mariadb: interrupted");
        if (i && store_gives_up(&m->sql.store))
            break;
        if (try_host(m, &m->dsn.hosts[i], &why) == 0)
            return 0;
        AUTO(text_release) struct text host = {0};
        add_host(&host, &m->dsn, &m->dsn.hosts[i]);
        bool named = strstr(why.text, text_str(&host)) != NULL;
        text_addf(&all, "%s%s%s%s", i ? "; " : "", named ? "" : text_str(&host), named ? "" : ": ", why.text);
    }
    return err_set(e, why.kind == ERR_STOPPED ? ERR_STOPPED : ERR_UNREACHABLE, "%s",
                   m->dsn.n_hosts > 1 ? text_str(&all) : why.text);
}

static void mariadb_close(struct store *s)
{
    struct mariadb *m = of_store(s);
    disconnect(m);
    text_release(&m->unlock);
    mariadb_dsn_release(&m->dsn);
    sql_store_release(&m->sql);
    free(m);
}

static int mariadb_open(const char *dsn, bool reading, struct store **ret, struct err *e)
{
    struct mariadb *m = mem_alloc(sizeof(*m));
    m->sql.store.ops = &store_mariadb;
    m->sql.engine = &m->engine;
    m->reading = reading;
    if (mariadb_dsn_parse(dsn, &m->dsn, e) < 0 || connect_any(m, e) < 0) {
        mariadb_close(&m->sql.store);
        return -1;
    }
    *ret = &m->sql.store;
    return 0;
}

static int reconnect(struct store *s, struct err *e)
{
    struct mariadb *m = of_store(s);
    disconnect(m);
    return connect_any(m, e);
}

static int mariadb_inspect(struct store *s, const struct table_names *names, struct facts **ret,
                           struct err *e)
{
    struct sql_store *sql = &of_store(s)->sql;
    if (mariadb_begin_read(sql, CATALOG_TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    int result = mariadb_read_facts(sql, names, ret, e);
    mariadb_rollback(sql);
    return result;
}

static int read_stamp(struct sql_store *s, int64_t *ret, struct err *e)
{
    if (mariadb_begin_read(s, CATALOG_TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    int result = mariadb_read_stamp(s, ret, e);
    mariadb_rollback(s);
    return result;
}

/* Asked now and then only, and less often where it takes long: never more than a hundredth of the time. What
 * facts depend on besides (privileges, the data) ages. */
static int mariadb_schema_stamp(struct store *s, int64_t *ret, struct err *e)
{
    enum { STAMP_LASTS_US = 10 * US_PER_S, STAMP_SHARE = 100, FACTS_LAST_S = 600 };
    struct mariadb *m = of_store(s);
    int64_t now = when_monotonic_us();
    if (now >= m->stamp_ends_us) {
        if (read_stamp(&m->sql, &m->stamp, e) < 0)
            return -1;
        int64_t asked = when_monotonic_us(), rest = (asked - now) * STAMP_SHARE;
        m->stamp_ends_us = asked + (rest > STAMP_LASTS_US ? rest : STAMP_LASTS_US);
    }
    *ret = (m->stamp ^ now / (FACTS_LAST_S * US_PER_S)) & INT64_MAX;
    return 0;
}

static int mariadb_list_tables(struct store *s, struct arena *a, struct table_name **ret, size_t *ret_n,
                               struct err *e)
{
    struct sql_store *sql = &of_store(s)->sql;
    if (mariadb_begin_read(sql, CATALOG_TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    int result = mariadb_read_tables(sql, a, ret, ret_n, e);
    mariadb_rollback(sql);
    return result;
}

/* A node that has fallen behind must not be waited for to hear that it has. */
static int mariadb_pressure(struct store *s, struct pressure *ret, struct err *e)
{
    struct mariadb *m = of_store(s);
    m->patience_us = PRESSURE_TIMEOUT_S * US_PER_S;
    if (m->server.galera && command(m, "SET SESSION wsrep_sync_wait = 0", e) < 0)
        return -1;
    if (mariadb_read_pressure(&m->sql, ret, e) < 0)
        return -1;
    if (m->server.galera) {
        ret->no_lag =
            "the nodes of a cluster of Galera hold their writers up by themselves, and lapse waits with them";
        return 0;
    }
    ret->lag_bytes = -1;
    ret->unknowable = true;
    snprintf(ret->unknown, sizeof(ret->unknown),
             "how far replicas are behind is known on each of them only, and cannot be asked for here");
    return 0;
}

const struct store_ops store_mariadb = {
    .scheme = "mariadb",
    .open = mariadb_open,
    .close = mariadb_close,
    .reconnect = reconnect,
    .now = mariadb_now,
    .inspect = mariadb_inspect,
    .schema_stamp = mariadb_schema_stamp,
    .list_tables = mariadb_list_tables,
    .pressure = mariadb_pressure,
    SQLSTORE_VERBS,
};
