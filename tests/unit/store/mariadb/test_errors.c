/* What errors of MariaDB and MySQL mean to a sweep. */
#include "world.h"

#include "store/mariadb/store.h"

static struct mariadb_words said(unsigned number, const char *state, const char *text)
{
    return (struct mariadb_words){number, state, text};
}

static void what_they_mean(void **state)
{
    (void)state;
    static const struct {
        unsigned number;
        const char *state, *text;
        enum err_kind kind;
    } cases[] = {
        {1213, "40001", "Deadlock found when trying to get lock; try restarting transaction", ERR_CONFLICT},
        {3101, "40000", "Plugin instructed the server to rollback the current transaction.", ERR_CONFLICT},
        {1180, "HY000", "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT", ERR_CONFLICT},
        {1205, "HY000", "Lock wait timeout exceeded; try restarting transaction", ERR_BUSY},
        {3572, "HY000", "Statement aborted because lock(s) could not be acquired immediately", ERR_BUSY},
        {3024, "HY000", "Query execution was interrupted, maximum statement execution time exceeded",
         ERR_TIMEOUT},
        {1053, "08S01", "Server shutdown in progress", ERR_LOST},
        {1927, "70100", "Connection was killed", ERR_LOST},
        {3032, "HY000", "The server is currently in offline mode", ERR_LOST},
        {3169, "HY000", "The session was killed", ERR_LOST},
        {2013, "HY000", "Lost connection to MySQL server during query", ERR_LOST},
        {3098, "HY000", "The table does not comply with the requirements by an external plugin.",
         ERR_DATABASE},
        {1142, "42000", "DELETE command denied to user", ERR_DATABASE},
        {1451, "23000", "Cannot delete or update a parent row", ERR_REFUSED},
        {1644, "40001", "a trigger's own SIGNAL, whatever its SQLSTATE", ERR_REFUSED},
        {1180, "HY000", "wsrep_max_ws_rows exceeded", ERR_REFUSED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct mariadb_words w = said(cases[i].number, cases[i].state, cases[i].text);
        if (mariadb_error_kind(w) != cases[i].kind)
            fail_msg("%u is kind %d, not %d", w.number, (int)mariadb_error_kind(w), (int)cases[i].kind);
    }
}

/* What is not certain is reported apart. */
static void what_is_certain_of_a_commit(void **state)
{
    (void)state;
    assert_true(mariadb_not_committed(said(3101, "40000", "Plugin instructed the server to rollback")));
    assert_true(mariadb_not_committed(said(1213, "40001", "Deadlock found")));
    assert_true(mariadb_not_committed(said(1180, "HY000", "wsrep_max_ws_rows exceeded")));
    assert_false(mariadb_not_committed(said(1180, "HY000", "Got error 6 during COMMIT")));
    assert_false(
        mariadb_not_committed(said(3100, "HY000", "Error on observer while running replication hook")));
    assert_false(mariadb_not_committed(said(2013, "HY000", "Lost connection")));
    assert_false(mariadb_not_committed(said(1053, "08S01", "Server shutdown in progress")));
}

static void a_server_that_only_reads(void **state)
{
    (void)state;
    assert_true(mariadb_is_read_only(said(1290, "HY000", "running with the --super-read-only option")));
    assert_true(mariadb_is_read_only(said(1836, "HY000", "Running in read-only mode")));
    assert_false(mariadb_is_read_only(said(1290, "HY000", "running with the --secure-file-priv option")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_they_mean),
        cmocka_unit_test(what_is_certain_of_a_commit),
        cmocka_unit_test(a_server_that_only_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
