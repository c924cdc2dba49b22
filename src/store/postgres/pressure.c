/* pressure: how others fare beside a sweep: who writes, which replica is behind, who holds the
 * oldest snapshot.
 *
 * Lag is what a replica has not replayed, in bytes of the log. One that is away and has a slot is as far
 * behind as its slot holds the log back. What receives the log without replaying it (pg_receivewal) is
 * measured by what it has on disk; a base backup follows nobody. To whoever is no member of
 * pg_read_all_stats, replicas are rows without figures: then the lag is not known.
 *
 * Who writes is told by transaction ids, which every transaction that writes takes one of: exact, at once,
 * and for everybody to see. Those that commit here are taken off (store_mark). */
#include "store/postgres/store.h"

#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_S = 5 };

enum { OTHERS, WRITTEN, REPLICAS, HIDDEN, SILENT, LAG, LAG_US, NAME, SNAPSHOT_US, ROLE, N_COLUMNS };

static const char question[] =
    "WITH log AS (SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()"
    "                    ELSE pg_catalog.pg_current_wal_lsn() END AS at),"
    " follower AS ("
    "  SELECT COALESCE(NULLIF(application_name, ''), 'pid ' || pid) AS name, state IS NULL AS hidden,"
    "         pg_catalog.pg_wal_lsn_diff(log.at, COALESCE(replay_lsn, flush_lsn)) AS lag,"
    "         COALESCE(EXTRACT(epoch FROM replay_lag), 0) AS delay"
    "  FROM pg_catalog.pg_stat_replication, log WHERE state IS NULL OR state NOT IN ('backup', 'stopping')"
    "  UNION ALL"
    "  SELECT slot_name, false, pg_catalog.pg_wal_lsn_diff(log.at, restart_lsn), 0"
    "  FROM pg_catalog.pg_replication_slots, log"
    "  WHERE NOT active AND NOT temporary AND restart_lsn IS NOT NULL),"
    " furthest AS (SELECT * FROM follower WHERE NOT hidden ORDER BY lag DESC NULLS FIRST LIMIT 1) "
    "SELECT pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot())::text,"
    "  pg_catalog.pg_wal_lsn_diff((SELECT at FROM log), '0/0')::bigint::text,"
    "  (SELECT count(*) FROM follower)::text,"
    "  (SELECT count(*) FROM follower WHERE hidden)::text,"
    "  (SELECT count(*) FROM follower WHERE NOT hidden AND lag IS NULL)::text,"
    "  (SELECT GREATEST(lag, 0) FROM furthest)::bigint::text,"
    "  (SELECT (delay * 1000000)::bigint FROM furthest)::text,"
    "  (SELECT name FROM furthest)::text,"
    "  (EXTRACT(epoch FROM pg_catalog.clock_timestamp() - LEAST("
    "    (SELECT min(xact_start) FROM pg_catalog.pg_stat_activity"
    "     WHERE backend_type = 'client backend' AND pid <> pg_catalog.pg_backend_pid()"
    "       AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)),"
    "    (SELECT min(prepared) FROM pg_catalog.pg_prepared_xacts))) * 1000000)::bigint::text,"
    "  pg_catalog.quote_ident(current_user)";

static const char *cell(const struct rows *r, int column)
{
    const struct value *v = &rows_at(r, 0)[column];
    return v->kind == VALUE_TEXT ? v->text : "";
}

static int64_t number(const struct rows *r, int column)
{
    int64_t n = strtoll(cell(r, column), NULL, 10);
    return n > 0 ? n : 0;
}

static void say_lag(const struct rows *r, struct pressure *ret)
{
    ret->replicas = number(r, REPLICAS);
    ret->lag_bytes = number(r, LAG);
    ret->lag_us = number(r, LAG_US);
    snprintf(ret->furthest, sizeof(ret->furthest), "%s", cell(r, NAME));
    if (!number(r, HIDDEN) && !number(r, SILENT))
        return;
    ret->lag_bytes = -1;
    snprintf(ret->unknown, sizeof(ret->unknown), "how far replicas are behind is not known: %s",
             number(r, HIDDEN) ? "this user may not see it" : "one has not said it yet");
    if (number(r, HIDDEN))
        snprintf(ret->fix, sizeof(ret->fix), "GRANT pg_read_all_stats TO %s", cell(r, ROLE));
}

int postgres_pressure(struct store *s, struct pressure *ret, struct err *e)
{
    struct sql_store *sql = (struct sql_store *)s;
    AUTO(rows_release) struct rows r = {0};
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, question);
    if (sql->engine->begin_read(sql, TIMEOUT_S * US_PER_S, e) < 0)
        return -1;
    int64_t done = store_marks_done(s);
    int asked = sql->engine->query(sql, &st, &r, e);
    sql->engine->rollback(sql);
    if (asked < 0)
        return -1;
    if (r.n_rows != 1 || r.n_columns != N_COLUMNS)
        return err_set(e, ERR_DATABASE, "postgresql: no answer to how replicas fare");
    *ret = (struct pressure){.written = number(&r, WRITTEN), .snapshot_us = number(&r, SNAPSHOT_US)};
    store_take_marks_off(s, number(&r, OTHERS), done, ret);
    say_lag(&r, ret);
    return 0;
}
