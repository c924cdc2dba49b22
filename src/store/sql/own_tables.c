/* own_tables: the tables by version; which there are; installing them; their statements for people. See
 * own.c. */
#include "store/sql/own_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the tables ----------------------------------------------------------------------------------------- */

static const char version_table[] = "CREATE TABLE IF NOT EXISTS {lapse_version} (\n"
                                    "    version {count} NOT NULL PRIMARY KEY,\n"
                                    "    installed_at {moment}\n"
                                    "){end}";

/* A later version adds a step here and its tables below; a step is never changed once it was released. */
static const struct own_step steps[] = {
    {1, "CREATE TABLE{new} {lapse_fuse} (\n"
        "    policy {name} NOT NULL PRIMARY KEY,\n"
        "    policy_hash {name} NOT NULL,\n"
        "    due_rows {count} NOT NULL,\n"
        "    most_rows {count} NOT NULL,\n"
        "    tripped_at {moment},\n"
        "    acked_at {time}\n"
        "){end}\n\n"
        "CREATE TABLE{new} {lapse_pause} (\n"
        "    name {name} NOT NULL PRIMARY KEY,\n"
        "    until {time},\n"
        "    paused_at {moment}\n"
        "){end}"},
    {2, "CREATE TABLE{new} {lapse_lease} (\n"
        "    scheduler {name} NOT NULL PRIMARY KEY,\n"
        "    token {count} NOT NULL,\n"
        "    owner {name},\n"
        "    acquired_at {time},\n"
        "    expires_at {time}\n"
        "){end}"},
    /* The second key serves the newest of a scheduler, the third the newest of all and what is due. */
    {3, "CREATE TABLE{new} {lapse_run} (\n"
        "    id {name} NOT NULL PRIMARY KEY,\n"
        "    scheduler {name} NOT NULL,\n"
        "    source {name} NOT NULL,\n"
        "    owner {name} NOT NULL,\n"
        "    started_at {moment},\n"
        "    ended_at {time},\n"
        "    outcome {name} NOT NULL,\n"
        "    rows_gone {count} NOT NULL,\n"
        "    skipped {count} NOT NULL,\n"
        "    unknown {count} NOT NULL,\n"
        "    batches {count} NOT NULL,\n"
        "    errors {count} NOT NULL,\n"
        "    error {text},\n"
        "    counts {text} NOT NULL,\n"
        "    UNIQUE (scheduler, started_at, id),\n"
        "    UNIQUE (started_at, id)\n"
        "){end}"},
    /* An instance may have any number of rows, so that a plain INSERT never fails on a repeat. The first
     * index finds the rows of an instance, however long its id. The second answers what is due: rows that
     * wait for a time of their own, for a retry or for somebody's help each stand apart from those that wait
     * for the delay of their reason, and among these the earliest is the first. No watermark: a transaction
     * may commit late. */
    {4, "CREATE TABLE{new} {lapse_purge} (\n"
        "    id {number} NOT NULL PRIMARY KEY,\n"
        "    space {name} NOT NULL,\n"
        "    instance {long name} NOT NULL,\n"
        "    reason {name},\n"
        "    scheduled_at {moment}{standing clock}{written scheduled_at},\n"
        "    purge_at {time}{written purge_at},\n"
        "    attempts {count} NOT NULL DEFAULT 0,\n"
        "    retry_at {time}{written retry_at},\n"
        "    parked_at {time},\n"
        "    error {text}{key lapse_purge_instance}{key lapse_purge_due}\n"
        "){end}\n\n"
        "{index lapse_purge_instance}\n\n"
        "{index lapse_purge_due}"},
    /* Who and why. A brake that was released stays, with an end, until the next of its name; so does an
     * acknowledgement that was used, with a hash that is no policy's. */
    {5, "ALTER TABLE {lapse_pause} ADD COLUMN{new column} paused_by {name}\n\n"
        "ALTER TABLE {lapse_pause} ADD COLUMN{new column} reason {text}\n\n"
        "ALTER TABLE {lapse_pause} ADD COLUMN{new column} released_at {time}\n\n"
        "ALTER TABLE {lapse_pause} ADD COLUMN{new column} released_by {name}\n\n"
        "ALTER TABLE {lapse_pause} ADD COLUMN{new column} release_reason {text}\n\n"
        "ALTER TABLE {lapse_fuse} ADD COLUMN{new column} acked_by {name}\n\n"
        "ALTER TABLE {lapse_fuse} ADD COLUMN{new column} reason {text}\n\n"
        "ALTER TABLE {lapse_run} ADD COLUMN{new column} cutoff {time}\n\n"
        "ALTER TABLE {lapse_run} ADD COLUMN{new column} contract {name}\n\n"
        "ALTER TABLE {lapse_run} ADD COLUMN{new column} policies {text}"},
};

/* The tables: since which version, by which columns they are known, what a sweep does with them, what somebody
 * does who pauses, resumes and acknowledges, and which columns came later. */
static const struct own_table {
    const char *name;
    int since;
    const char *columns[14];
    int needs, operates;
    const char *since_who[6];
} tables[] = {
    {"lapse_version", 1, {"version", "installed_at"}, NEED_SELECT, NEED_SELECT, {0}},
    {"lapse_fuse",
     1,
     {"policy", "policy_hash", "due_rows", "most_rows", "tripped_at", "acked_at"},
     NEED_SELECT | NEED_INSERT | NEED_DELETE,
     NEED_SELECT | NEED_UPDATE,
     {"acked_by", "reason"}},
    {"lapse_pause",
     1,
     {"name", "until", "paused_at"},
     NEED_SELECT,
     NEED_SELECT | NEED_INSERT | NEED_DELETE | NEED_UPDATE,
     {"paused_by", "reason", "released_at", "released_by", "release_reason"}},
    {"lapse_lease",
     OWN_SINCE_LEASES,
     {"scheduler", "token", "owner", "acquired_at", "expires_at"},
     NEED_SELECT | NEED_INSERT | NEED_UPDATE,
     NEED_SELECT,
     {0}},
    {"lapse_run",
     OWN_SINCE_RUNS,
     {"id", "scheduler", "source", "owner", "started_at", "ended_at", "outcome", "rows_gone", "skipped",
      "unknown", "batches", "errors", "error", "counts"},
     NEED_SELECT | NEED_INSERT | NEED_UPDATE | NEED_DELETE, /* who writes the history sweeps it, too */
     NEED_SELECT,
     {"cutoff", "contract", "policies"}},
    {"lapse_purge",
     OWN_SINCE_PURGES,
     {"id", "space", "instance", "reason", "scheduled_at", "purge_at", "attempts", "retry_at", "parked_at",
      "error"},
     NEED_SELECT | NEED_INSERT | NEED_UPDATE | NEED_DELETE,
     NEED_SELECT,
     {0}},
};
enum { TABLE_VERSION, TABLE_FUSE, TABLE_PAUSE, TABLE_LEASE, TABLE_RUN, TABLE_PURGE };

/* --- looking -------------------------------------------------------------------------------------------- */

static struct table_name name_of(const char *schema, const char *table)
{
    return (struct table_name){.schema = {.text = schema, .quoted = true},
                               .table = {.text = table, .quoted = true}};
}

/* What the schema holds of these tables (NULL: wherever names are found). */
static int inspect(struct sql_store *s, const char *schema, size_t n, struct facts **ret, struct err *e)
{
    struct table_name names[COUNT_OF(tables)];
    const struct table_name *list[COUNT_OF(tables)];
    for (size_t i = 0; i < n; i++) {
        names[i] = name_of(schema, tables[i].name);
        list[i] = &names[i];
    }
    const struct table_names asked = {list, n};
    return s->store.ops->inspect(&s->store, &asked, ret, e);
}

static const struct table *find(const struct facts *f, size_t table)
{
    for (size_t i = 0; i < f->n_tables; i++)
        if (strcmp(f->tables[i]->name, tables[table].name) == 0)
            return f->tables[i];
    return NULL;
}

/* The first of them that the table has not; NULL: it has all. */
static const char *missing_column(const struct table *t, const char *const *columns, size_t most)
{
    for (size_t i = 0; i < most && columns[i]; i++)
        if (!column_named(t, columns[i]))
            return columns[i];
    return NULL;
}

static int look_foreign(const struct table *t, size_t table, int version, struct err *e)
{
    const struct own_table *own = &tables[table];
    const char *missing = missing_column(t, own->columns, COUNT_OF(own->columns));
    if (!missing && version >= OWN_SINCE_WHO)
        missing = missing_column(t, own->since_who, COUNT_OF(own->since_who));
    if (missing)
        return err_set(e, ERR_FINDINGS,
                       "%s is not lapse's own table: it has no column '%s'; rename it, or set own_schema",
                       t->print, missing);
    if (t->kind != KIND_TABLE)
        return err_set(e, ERR_FINDINGS, "%s is not lapse's own table: it is no ordinary table", t->print);
    return 0;
}

/* "SELECT, INSERT": what of the table's needs this user may not do. */
static void add_missing(const struct table *t, int needs, struct text *out)
{
    const struct {
        int right;
        bool may;
        const char *name;
    } rights[] = {{NEED_SELECT, t->may_select, "SELECT"},
                  {NEED_INSERT, t->may_insert, "INSERT"},
                  {NEED_DELETE, t->may_delete, "DELETE"},
                  {NEED_UPDATE, t->may_update, "UPDATE"}};
    for (size_t i = 0; i < COUNT_OF(rights); i++)
        if (needs & rights[i].right && !rights[i].may)
            text_addf(out, "%s%s", out->len ? ", " : "", rights[i].name);
}

/* Where it is noted what a table lacks whose absence concerns only some: the policies with a fuse, those that
 * need a lease, the history, purges. NULL: a brake that cannot be read must not be passed over. */
static char *lacks_of(struct sql_store *s, size_t table)
{
    struct own_state *own = &s->store.own;
    return table == TABLE_FUSE    ? own->lacks
           : table == TABLE_LEASE ? own->lacks_lease
           : table == TABLE_RUN   ? own->lacks_runs
           : table == TABLE_PURGE ? own->lacks_purges
                                  : NULL;
}

static int look_rights(struct sql_store *s, const struct table *t, size_t table, struct err *e)
{
    AUTO(text_release) struct text missing = {0};
    char *lacks = lacks_of(s, table);
    AUTO(text_release) struct text hint = {0};
    add_missing(t, tables[table].needs, &missing);
    if (table == TABLE_FUSE || table == TABLE_LEASE || table == TABLE_RUN)
        s->store.own.may_sweep |= t->may_insert;
    if (t->rows_hidden && (table == TABLE_RUN || table == TABLE_PURGE))
        text_addf(&missing, "%sall rows (row security hides some)", missing.len ? ", " : "");
    else if (t->rows_hidden)
        return err_set(e, ERR_FINDINGS, "row security hides rows of %s from this user", t->print);
    if (!missing.len)
        return 0;
    store_grants_hint(&s->store, &hint);
    if (!lacks)
        return err_set(e, ERR_FINDINGS, "this user has no right to %s on %s, one of lapse's own tables (%s)",
                       text_str(&missing), t->print, text_str(&hint));
    snprintf(lacks, sizeof(s->store.own.lacks), "%s on %s", text_str(&missing), t->print);
    return 0;
}

/* Whoever installs goes on from where another was stopped; nobody else may take what is there for nothing. */
static int no_version(const struct sql_store *s, const struct table *t, bool installs, struct err *e)
{
    bool may_be_cut = s->engine->dialect->own.commits_alone;
    if (installs && may_be_cut)
        return 0;
    return err_set(e, ERR_FINDINGS, "%s names no version: %s", t->print,
                   may_be_cut ? "an installation was cut short, or it was emptied; run lapse install"
                              : "it is not lapse's, or was emptied; drop it and run lapse install");
}

static int read_version(struct sql_store *s, const struct table *t, bool installs, int *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up(s, "SELECT {.}max(version) FROM {lapse_version}", NULL, &found, e) < 0)
        return err_wrap(e, "reading %s", t->print);
    const struct value *v = rows_at(&found, 0);
    *ret = 0;
    if (v->kind == VALUE_NULL || own_number(v) < 1)
        return no_version(s, t, installs, e);
    int64_t version = own_number(v);
    if (version > OWN_VERSION)
        return err_set(
            e, ERR_USAGE,
            "lapse's own tables are version %lld, and this program knows only version %d: use a newer "
            "lapse",
            (long long)version, OWN_VERSION);
    *ret = (int)version;
    return 0;
}

/* Where rights go to accounts, a table that one has no right on is not to be seen. */
static int not_whole(const struct sql_store *s, int version, const char *table, struct err *e)
{
    AUTO(text_release) struct text hint = {0};
    store_grants_hint(&s->store, &hint);
    if (s->engine->dialect->own.accounts)
        return err_set(e, ERR_FINDINGS,
                       "lapse's own tables are not whole: version %d has %s, which is not there, or this "
                       "user has no right on it (%s)",
                       version, table, text_str(&hint));
    return err_set(e, ERR_FINDINGS,
                   "lapse's own tables are not whole: version %d has %s, which is not there; drop "
                   "lapse_version and what is left of the others, and run lapse install",
                   version, table);
}

/* It is not there, or not to be seen. */
static int not_seen(const struct sql_store *s, const char *table, struct err *e)
{
    AUTO(text_release) struct text hint = {0};
    store_grants_hint(&s->store, &hint);
    return err_set(e, ERR_FINDINGS, "lapse's own table %s is not there, or this user has no right on it (%s)",
                   table, text_str(&hint));
}

/* Every table of that version is there, as it should be. */
static int look_at_all(struct sql_store *s, int version, struct err *e)
{
    AUTO(facts_free_p) struct facts *f = NULL;
    const char *schema = s->store.own.schema;
    if (inspect(s, *schema ? schema : NULL, COUNT_OF(tables), &f, e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const struct table *t = find(f, i);
        if (tables[i].since > version)
            continue;
        if (!t && f->hides && lacks_of(s, i)) { /* it is there, or what needs it will say so */
            snprintf(lacks_of(s, i), sizeof(s->store.own.lacks), "see %s", tables[i].name);
            continue;
        }
        if (!t && f->hides)
            return not_seen(s, tables[i].name, e);
        if (!t)
            return not_whole(s, version, tables[i].name, e);
        if (look_foreign(t, i, version, e) < 0 || look_rights(s, t, i, e) < 0)
            return -1;
    }
    return 0;
}

/* All of them, whichever there are. */
static int look_who(struct sql_store *s, bool inside, struct err *e)
{
    AUTO(text_release) struct text names = {0};
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        text_addf(&names, "%s%s", i ? "," : "", tables[i].name);
    return sqlown_trust(s, text_str(&names), inside, e);
}

static int set_schema(struct sql_store *s, const char *schema, struct err *e)
{
    struct own_state *own = &s->store.own;
    if (schema && strlen(schema) >= sizeof(own->schema))
        return err_set(e, ERR_USAGE, "own_schema: the name is too long");
    snprintf(own->schema, sizeof(own->schema), "%s", schema ? schema : "");
    return 0;
}

/* What one has no right on looks as if it were not there: brakes would be passed over. The others tell. */
static int look_hidden(struct sql_store *s, const char *schema, struct err *e)
{
    AUTO(facts_free_p) struct facts *f = NULL;
    if (inspect(s, schema, COUNT_OF(tables), &f, e) < 0)
        return -1;
    return f->n_tables ? not_seen(s, tables[TABLE_VERSION].name, e) : 0;
}

/* Who may sweep, and looks, is told of what a sweep lacks. */
static void note_purpose(struct sql_store *s)
{
    AUTO(text_release) struct text hint = {0};
    struct store *store = &s->store;
    if (store->own.may_sweep && store->purpose && strcmp(store->purpose, grants_for_name(FOR_READ)) == 0)
        store->purpose = grants_for_name(FOR_SWEEP);
    store_grants_hint(store, &hint);
    snprintf(store->own.hint, sizeof(store->own.hint), "%s", text_str(&hint));
}

static int look_for(struct store *store, bool installs, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    bool schemas = s->engine->dialect->own.has_schema != NULL;
    AUTO(facts_free_p) struct facts *f = NULL;
    int version = 0;
    store->own = (struct own_state){0};
    const char *wanted = schemas ? store->own_schema : NULL;
    if (inspect(s, wanted, TABLE_VERSION + 1, &f, e) < 0)
        return -1;
    const struct table *t = find(f, TABLE_VERSION);
    if (set_schema(s, t ? t->schema : wanted ? wanted : f->default_schema, e) < 0)
        return -1;
    if ((t || installs) && look_who(s, false, e) < 0)
        return -1;
    if (!t)
        return f->hides ? look_hidden(s, wanted, e) : 0;
    if (look_foreign(t, TABLE_VERSION, 0, e) < 0 || look_rights(s, t, TABLE_VERSION, e) < 0 ||
        read_version(s, t, installs, &version, e) < 0 || look_at_all(s, version, e) < 0)
        return -1;
    store->own.version = version;
    note_purpose(s);
    return 0;
}

int sqlown_look(struct store *store, struct err *e)
{
    return look_for(store, false, e);
}

/* --- installing ----------------------------------------------------------------------------------------- */

/* The next statement of a step; *rest goes behind it. */
static size_t next_statement(const char **rest, const char **ret)
{
    const char *s = *rest, *gap = strstr(s, "\n\n");
    size_t len = gap ? (size_t)(gap - s) : strlen(s);
    *rest = gap ? gap + 2 : s + len;
    *ret = s;
    return len;
}

/* A column that an installer which was stopped has added: MySQL has no words for "if it is not there". */
static bool was_there(const struct sql_store *s, struct err *e)
{
    if (!s->engine->dialect->own.commits_alone || strcmp(e->code, "1060") != 0)
        return false;
    *e = (struct err)ERR_INIT;
    return true;
}

static int run_step(struct sql_store *s, const struct own_step *step, struct err *e)
{
    const char *rest = step->statements, *sql;
    while (*rest) {
        AUTO(stmt_release) struct stmt st = {0};
        int64_t ignored;
        size_t len = next_statement(&rest, &sql);
        own_write(&st, s, sql, len, NULL);
        if (st.sql.len && s->engine->execute(s, &st, &ignored, e) < 0 && !was_there(s, e))
            return -1;
    }
    const struct own_arg version = {ARG_COUNT, .number = step->version};
    return own_run(s, "INSERT INTO {lapse_version} (version, installed_at) VALUES ({1}, {clock})", &version,
                   NULL, e);
}

/* CREATE SCHEMA asks for a right on the database even where the schema is there. */
static int make_schema(struct sql_store *s, struct err *e)
{
    AUTO(rows_release) struct rows found = {0}, made = {0};
    const struct own_arg schema = {ARG_NAME, .name = s->store.own.schema};
    const char *has_schema = s->engine->dialect->own.has_schema;
    if (!has_schema)
        return 0;
    if (!schema.name[0])
        return err_set(e, ERR_USAGE, "no schema is in the search path: say own_schema in the contract");
    if (own_ask(s, has_schema, &schema, &found, e) < 0)
        return -1;
    if (found.n_rows)
        return 0;
    if (own_run(s, "CREATE SCHEMA{new} {schema}", NULL, NULL, e) < 0 ||
        own_ask(s, has_schema, &schema, &made, e) < 0)
        return -1;
    return made.n_rows ? 0 : err_set(e, ERR_USAGE, "own_schema: the name is too long for this database");
}

static int upgrade_in(struct sql_store *s, const struct own_step *list, size_t n, int *ret_from,
                      struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const char *lock = s->engine->dialect->own.lock;
    if (lock && own_run(s, lock, NULL, NULL, e) < 0)
        return -1;
    if (make_schema(s, e) < 0 || own_run(s, version_table, NULL, NULL, e) < 0 || look_who(s, true, e) < 0 ||
        own_ask(s, "SELECT {.}max(version) FROM {lapse_version}", NULL, &found, e) < 0)
        return -1;
    int64_t from = own_number(rows_at(&found, 0));
    for (size_t i = 0; i < n; i++)
        if (list[i].version > from && run_step(s, &list[i], e) < 0)
            return err_wrap(e, "version %d", list[i].version);
    *ret_from = (int)from;
    return 0;
}

static int upgrade_once(struct sql_store *s, const struct own_step *list, size_t n, int *ret_from,
                        struct err *e)
{
    int r = s->engine->begin_write(s, OWN_LOCK_US, OWN_STATEMENT_US, e);
    if (r == 0)
        r = upgrade_in(s, list, n, ret_from, e);
    if (r == 0)
        r = s->engine->commit(s, e);
    if (r < 0)
        s->engine->rollback(s);
    return r;
}

/* A lock that a commit does not end. */
static void unlock(struct sql_store *s)
{
    struct err ignored = ERR_INIT;
    const char *sql = s->engine->dialect->own.unlock;
    if (sql)
        own_run(s, sql, NULL, NULL, &ignored);
}

/* Where every CREATE commits by itself, and a lock holds on one server of many, of two that install at once
 * one finds what the other has done, and goes on from there. */
int sqlown_upgrade(struct sql_store *s, const struct own_step *list, size_t n, int *ret_from, struct err *e)
{
    int most = s->engine->dialect->own.commits_alone ? OWN_TRIES : 1;
    for (int tries = 1;; tries++) {
        int r = upgrade_once(s, list, n, ret_from, e);
        unlock(s);
        if (r == 0)
            return 0;
        if (!own_may_try_again(e) || tries == most)
            return -1;
        when_sleep_us(OWN_PAUSE_US * tries);
    }
}

/* What an installer that was stopped may have left behind is as it would have been made. */
static int look_at_begun(const struct facts *f, int version, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const struct table *t = find(f, i);
        if (t && tables[i].since > version && look_foreign(t, i, 0, e) < 0)
            return -1;
    }
    return 0;
}

/* Tables that a step would create and that are there already are somebody else's. */
static int look_in_the_way(struct sql_store *s, struct err *e)
{
    AUTO(facts_free_p) struct facts *f = NULL;
    const char *schema = s->store.own.schema;
    if (inspect(s, *schema ? schema : NULL, COUNT_OF(tables), &f, e) < 0)
        return -1;
    if (s->engine->dialect->own.commits_alone && look_at_begun(f, s->store.own.version, e) < 0)
        return -1;
    if (s->store.own.version || find(f, TABLE_VERSION)) /* another installer was faster */
        return 0;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const struct table *t = find(f, i);
        if (t)
            return err_set(
                e, ERR_FINDINGS,
                "%s is there already, without lapse_version beside it: it is not lapse's; rename it, or "
                "set own_schema",
                t->print);
    }
    return 0;
}

int sqlown_install(struct store *store, int *ret_from, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    if (look_for(store, true, e) < 0)
        return -1;
    if (store->own.version == OWN_VERSION) {
        *ret_from = OWN_VERSION;
        return 0;
    }
    bool in_the_way = store->own.version == 0 || s->engine->dialect->own.commits_alone;
    if (in_the_way && look_in_the_way(s, e) < 0)
        return -1;
    if (sqlown_upgrade(s, steps, COUNT_OF(steps), ret_from, e) < 0)
        return err_wrap(e, "installing lapse's own tables");
    store->own.version = OWN_VERSION;
    return 0;
}

/* --- for people ------------------------------------------------------------------------------------------
 */

static void show(const struct sql_store *s, const char *sql, size_t len, struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    own_write(&st, s, sql, len, NULL);
    if (st.sql.len)
        text_addf(out, "%s;\n\n", text_str(&st.sql));
}

static void show_text(const struct sql_store *s, const char *sql, struct text *out)
{
    show(s, sql, strlen(sql), out);
}

void sqlown_print(struct store *store, struct text *out)
{
    struct sql_store *s = sqlstore_of(store);
    const struct dialect *d = s->engine->dialect;
    if (store->own.version == OWN_VERSION)
        return;
    show_text(s, "BEGIN", out);
    if (d->own.lock)
        show_text(s, d->own.lock, out);
    if (d->own.has_schema && store->own_schema) /* else it is one that is there */
        show_text(s, "CREATE SCHEMA IF NOT EXISTS {schema}", out);
    show_text(s, version_table, out);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        const char *rest = steps[i].statements, *sql;
        if (steps[i].version <= store->own.version)
            continue;
        while (*rest) {
            size_t len = next_statement(&rest, &sql);
            show(s, sql, len, out);
        }
        AUTO(text_release) struct text row = {0};
        text_addf(&row, "INSERT INTO {lapse_version} (version, installed_at) VALUES (%d, {clock})",
                  steps[i].version);
        show_text(s, text_str(&row), out);
    }
    show_text(s, "COMMIT", out);
    if (d->own.unlock)
        show_text(s, d->own.unlock, out);
}

static void add_rights(struct stmt *st, const struct dialect *d, const struct need *n)
{
    static const struct {
        int right;
        const char *name;
    } rights[] = {
        {NEED_SELECT, "SELECT"}, {NEED_INSERT, "INSERT"}, {NEED_DELETE, "DELETE"}, {NEED_UPDATE, "UPDATE"}};
    bool first = true;
    for (size_t i = 0; i < COUNT_OF(rights); i++) {
        if (!(n->rights & rights[i].right))
            continue;
        text_addf(&st->sql, "%s%s", first ? "" : ", ", rights[i].name);
        first = false;
        for (size_t k = 0; rights[i].right == NEED_UPDATE && k < n->n_updates; k++) {
            text_add(&st->sql, k ? ", " : " (");
            sql_name(st, d, n->updates[k]->name);
            text_add(&st->sql, k + 1 == n->n_updates ? ")" : "");
        }
    }
}

/* An account has a host: user@host, or any host. */
static void add_role(struct stmt *st, const struct dialect *d, const char *role)
{
    const char *host = d->own.accounts ? strrchr(role, '@') : NULL;
    AUTO(text_release) struct text user = {0};
    text_add_n(&user, role, host ? (size_t)(host - role) : strlen(role));
    sql_name(st, d, text_str(&user));
    if (!host)
        return;
    text_add(&st->sql, "@");
    sql_name(st, d, host + 1);
}

static void grant_table(const struct dialect *d, const char *role, const struct need *n, struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "GRANT ");
    add_rights(&st, d, n);
    text_add(&st.sql, " ON ");
    sql_table(&st, d, n->table);
    text_add(&st.sql, " TO ");
    add_role(&st, d, role);
    text_addf(out, "%s;\n", text_str(&st.sql));
}

static void grant_schema(const struct dialect *d, const char *role, const char *schema, struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    if (d->own.accounts)
        return;
    text_add(&st.sql, "GRANT USAGE ON SCHEMA ");
    sql_name(&st, d, schema);
    text_add(&st.sql, " TO ");
    add_role(&st, d, role);
    text_addf(out, "%s;\n", text_str(&st.sql));
}

/* Where a foreign key shows only to those with some right on its table: this one is on all, and shows nothing
 * else of them. */
static void grant_sight(const struct dialect *d, const char *role, struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "GRANT REFERENCES ON *.* TO ");
    add_role(&st, d, role);
    text_addf(out, "%s;\n", text_str(&st.sql));
}

/* What a role of this kind does with a table of lapse's own; 0: nothing. */
static int own_rights(size_t table, enum grants_for what, bool purges)
{
    if (table == TABLE_PURGE && !purges)
        return 0;
    return what == FOR_SWEEP     ? tables[table].needs
           : what == FOR_OPERATE ? tables[table].operates
                                 : NEED_SELECT;
}

int sqlown_print_grants(struct store *store, const char *role, enum grants_for what, const struct need *needs,
                        size_t n, bool purges, struct text *out, struct err *e)
{
    const struct dialect *d = sqlstore_of(store)->engine->dialect;
    const char *schema = store->own.schema;
    if (d->own.no_roles)
        return err_set(e, ERR_USAGE, "%s", d->own.no_roles);
    grant_schema(d, role, schema, out);
    for (size_t i = 0; i < n; i++) {
        bool said = strcmp(needs[i].table->schema, schema) == 0;
        for (size_t k = 0; k < i; k++)
            said = said || strcmp(needs[k].table->schema, needs[i].table->schema) == 0;
        if (!said)
            grant_schema(d, role, needs[i].table->schema, out);
    }
    if (d->own.accounts && n && what == FOR_SWEEP)
        grant_sight(d, role, out);
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const struct table t = {.schema = schema, .name = tables[i].name};
        const struct need own = {.table = &t, .rights = own_rights(i, what, purges)};
        if (own.rights)
            grant_table(d, role, &own, out);
    }
    for (size_t i = 0; i < n; i++) {
        const struct need reads = {.table = needs[i].table, .rights = NEED_SELECT};
        grant_table(d, role, what == FOR_SWEEP ? &needs[i] : &reads, out);
    }
    return 0;
}
