/* errors: what the numbers of MariaDB and MySQL mean to a sweep. Pure. */
#include "store/mariadb/store.h"

#include <string.h>

#include <errmsg.h>
#include <mysqld_error.h>

enum { /* some that one of the two does not have */
       STATEMENT_TIMEOUT = 1969,
       MYSQL_STATEMENT_TIMEOUT = 3024,
       MYSQL_LOCK_NOWAIT = 3572,
       READ_ONLY_MODE = 1836,
       CLUSTER_NOT_READY = 1047,
       OFFLINE_MODE = 3032,
       GROUP_WANTS_NO_SUCH_TABLE = 3098, /* it has no primary key, or is not of InnoDB */
       SESSION_KILLED = 3169,
       WAS_KILLED_IDLE = 4031,
};

/* The first line that fits decides. What is not here was said by a constraint, a trigger or a value of one
 * row, and may be said of that row only. */
static enum err_kind kind_of(unsigned number, const char *state)
{
    static const struct {
        unsigned number; /* 0: by the beginning of the SQLSTATE */
        enum err_kind kind;
        const char *begins;
    } kinds[] = {
        {ER_SIGNAL_EXCEPTION, ERR_REFUSED, NULL}, /* SIGNAL of a trigger, whatever its SQLSTATE */
        {ER_SIGNAL_NOT_FOUND, ERR_REFUSED, NULL},
        {ER_LOCK_DEADLOCK, ERR_CONFLICT, NULL},
        {ER_CHECKREAD, ERR_CONFLICT, NULL}, /* a record has changed since it was read */
        {ER_TABLE_DEF_CHANGED, ERR_CONFLICT, NULL},
        {ER_LOCK_WAIT_TIMEOUT, ERR_BUSY, NULL},
        {MYSQL_LOCK_NOWAIT, ERR_BUSY, NULL},
        {STATEMENT_TIMEOUT, ERR_TIMEOUT, NULL},
        {MYSQL_STATEMENT_TIMEOUT, ERR_TIMEOUT, NULL},
        {ER_QUERY_INTERRUPTED, ERR_TIMEOUT, NULL},
        {ER_SERVER_SHUTDOWN, ERR_LOST, NULL},
        {ER_NORMAL_SHUTDOWN, ERR_LOST, NULL},
        {ER_CONNECTION_KILLED, ERR_LOST, NULL},
        {WAS_KILLED_IDLE, ERR_LOST, NULL},
        {SESSION_KILLED, ERR_LOST, NULL},
        {OFFLINE_MODE, ERR_LOST, NULL},
        {CLUSTER_NOT_READY, ERR_LOST, NULL}, /* another node may be */
        {GROUP_WANTS_NO_SUCH_TABLE, ERR_DATABASE, NULL},
        {0, ERR_CONFLICT, "40"},    /* the transaction was rolled back: a group's certification */
        {0, ERR_LOST, "08"},        /* connection exception */
        {0, ERR_REFUSED, "22"},     /* a value that does not fit */
        {0, ERR_REFUSED, "23"},     /* a constraint */
        {0, ERR_REFUSED, "45"},     /* SIGNAL with a number of its own */
        {0, ERR_DATABASE, "0A"},    /* not supported */
        {0, ERR_DATABASE, "25"},    /* invalid transaction state */
        {0, ERR_DATABASE, "28"},    /* not authorized */
        {0, ERR_DATABASE, "3D"},    /* no such database */
        {0, ERR_DATABASE, "42"},    /* syntax, unknown names, privileges */
        {0, ERR_DATABASE, "HY001"}, /* out of memory */
        {ER_DISK_FULL, ERR_DATABASE, NULL},
        {ER_GET_ERRNO, ERR_DATABASE, NULL}, /* the storage engine's own */
        {ER_NOT_KEYFILE, ERR_DATABASE, NULL},
        {ER_OPEN_AS_READONLY, ERR_DATABASE, NULL},
        {ER_RECORD_FILE_FULL, ERR_DATABASE, NULL},
        {ER_UNKNOWN_ERROR, ERR_DATABASE, NULL},
        {ER_LOCK_TABLE_FULL, ERR_DATABASE, NULL},
        {ER_CANT_AGGREGATE_2COLLATIONS, ERR_DATABASE, NULL},
        {ER_CANT_AGGREGATE_3COLLATIONS, ERR_DATABASE, NULL},
        {ER_CANT_AGGREGATE_NCOLLATIONS, ERR_DATABASE, NULL},
        {ER_WRONG_VALUE, ERR_DATABASE, NULL}, /* a literal that is none */
        {ER_UNKNOWN_SYSTEM_VARIABLE, ERR_DATABASE, NULL},
        {ER_VIEW_INVALID, ERR_DATABASE, NULL},
        {ER_NO_SUCH_USER, ERR_DATABASE, NULL}, /* the definer of a trigger */
        {ER_BINLOG_STMT_MODE_AND_ROW_ENGINE, ERR_DATABASE, NULL},
        {ER_UPDATE_TABLE_USED, ERR_DATABASE, NULL},
        {ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE, ERR_DATABASE, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (kinds[i].number ? kinds[i].number == number
                            : strncmp(state, kinds[i].begins, strlen(kinds[i].begins)) == 0)
            return kinds[i].kind;
    return number >= CR_MIN_ERROR && number <= CR_MAX_ERROR ? ERR_LOST : ERR_REFUSED;
}

/* A cluster takes no transaction of more than so many rows or bytes: fewer may do. */
static bool is_too_large(const struct mariadb_words w)
{
    return (w.number == ER_UNKNOWN_ERROR && strstr(w.text, "writeset size")) ||
           (w.number == ER_ERROR_DURING_COMMIT && strstr(w.text, "wsrep_max_ws_rows"));
}

/* How MySQL says that a transaction of its group was first, where the news comes at COMMIT itself. */
static bool is_beaten_at_commit(const struct mariadb_words w)
{
    return w.number == ER_ERROR_DURING_COMMIT && strstr(w.text, "Got error 149");
}

enum err_kind mariadb_error_kind(struct mariadb_words w)
{
    return is_too_large(w) ? ERR_REFUSED : is_beaten_at_commit(w) ? ERR_CONFLICT : kind_of(w.number, w.state);
}

/* The first is said of other options as well. */
bool mariadb_is_read_only(struct mariadb_words w)
{
    return (w.number == ER_OPTION_PREVENTS_STATEMENT && strstr(w.text, "read-only")) ||
           w.number == READ_ONLY_MODE;
}

bool mariadb_not_committed(struct mariadb_words w)
{
    return mariadb_error_kind(w) == ERR_CONFLICT || is_too_large(w);
}
