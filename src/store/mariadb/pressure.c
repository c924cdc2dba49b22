/* pressure: how others fare beside a sweep: who writes, and whether a cluster of Galera holds
 * its writers up because a node does not keep up.
 *
 * How far a replica is behind is known on that replica only (SHOW REPLICA STATUS there): from here it cannot
 * be told, nor whether there is one. The nodes of a cluster are no such replicas: it slows its writers down
 * by itself, and says so.
 *
 * Statements that write are counted by the server. Of those that a sweep makes, deletes with an alias are of
 * a kind that is not asked for here; the rest is taken off (store_mark). */
#include "store/mariadb/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char question[] =
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_insert', 'Com_insert_select', 'Com_update',"
    " 'Com_update_multi', 'Com_delete', 'Com_replace', 'Com_replace_select', 'Com_load',"
    " 'wsrep_flow_control_paused_ns', 'wsrep_local_recv_queue')";

/* Settings for one statement stand before it, and it counts like any other. */
bool mariadb_is_counted(const char *sql)
{
    static const char *const verbs[] = {"INSERT ", "UPDATE ", "DELETE FROM ", "REPLACE "};
    static const char set[] = "SET STATEMENT ", last[] = " FOR ";
    const char *statement = strncasecmp(sql, set, strlen(set)) == 0 ? strstr(sql, last) : NULL;
    sql = statement ? statement + strlen(last) : sql;
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strncasecmp(sql, verbs[i], strlen(verbs[i])) == 0)
            return true;
    return false;
}

static int64_t number(const struct value *v)
{
    return v->kind == VALUE_INTEGER ? v->integer : v->text ? strtoll(v->text, NULL, 10) : 0;
}

static void take(const struct value *row, struct pressure *ret, int64_t *counted)
{
    const char *name = row[0].text ? row[0].text : "";
    int64_t n = number(&row[1]);
    if (strcasecmp(name, "wsrep_flow_control_paused_ns") == 0)
        ret->held_up_us = n / 1000;
    else if (strcasecmp(name, "wsrep_local_recv_queue") == 0)
        ret->queued = n;
    else
        *counted += n;
}

int mariadb_read_pressure(struct sql_store *s, struct pressure *ret, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    AUTO(stmt_release) struct stmt st = {0};
    int64_t done = store_marks_done(&s->store), counted = 0;
    text_add(&st.sql, question);
    if (s->engine->query(s, &st, &r, e) < 0)
        return -1;
    *ret = (struct pressure){0};
    for (size_t i = 0; i < r.n_rows && r.n_columns == 2; i++)
        take(rows_at(&r, i), ret, &counted);
    store_take_marks_off(&s->store, counted, done, ret);
    return 0;
}
