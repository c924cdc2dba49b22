/* sqlown: lapse's own tables in an SQL database: their shapes by version, fuses, brakes, leases. See own.h.
 * The history is in sqlown_run.c, purges are in sqlown_purge.c.
 *
 * Statements are written with words in braces, which become what the engine calls them: {lapse_fuse} a table
 * with its schema, {name} {count} {time} {text} types, {clock} the database's clock, {us until} a time as
 * microseconds, {1} the first argument, bound, {later 1} the clock and so many microseconds, {until 1} a
 * bound that an index serves and behind which no time up to those microseconds stands. Rows are replaced by
 * DELETE and INSERT, which every engine has; where two do that at once, one of them finds the other's row and
 * begins again. */
#include "sqlown_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 5 };
static const int64_t LOCK_US = 10 * US_PER_S, STATEMENT_US = 30 * US_PER_S, PAUSE_US = 20 * US_PER_MS;

/* --- the tables ----------------------------------------------------------------------------------------- */

static const char version_table[] = "CREATE TABLE IF NOT EXISTS {lapse_version} (\n"
                                    "    version {count} NOT NULL PRIMARY KEY,\n"
                                    "    installed_at {time} NOT NULL\n"
                                    ")";

/* A later version adds a step here and its tables below; a step is never changed once it was released. */
static const struct own_step steps[] = {
    {1, "CREATE TABLE {lapse_fuse} (\n"
        "    policy {name} NOT NULL PRIMARY KEY,\n"
        "    policy_hash {name} NOT NULL,\n"
        "    due_rows {count} NOT NULL,\n"
        "    most_rows {count} NOT NULL,\n"
        "    tripped_at {time} NOT NULL,\n"
        "    acked_at {time}\n"
        ")\n\n"
        "CREATE TABLE {lapse_pause} (\n"
        "    name {name} NOT NULL PRIMARY KEY,\n"
        "    until {time},\n"
        "    paused_at {time} NOT NULL\n"
        ")"},
    {2, "CREATE TABLE {lapse_lease} (\n"
        "    scheduler {name} NOT NULL PRIMARY KEY,\n"
        "    token {count} NOT NULL,\n"
        "    owner {name},\n"
        "    acquired_at {time},\n"
        "    expires_at {time}\n"
        ")"},
    /* The second key serves the newest of a scheduler, the third the newest of all and what is due. */
    {3, "CREATE TABLE {lapse_run} (\n"
        "    id {name} NOT NULL PRIMARY KEY,\n"
        "    scheduler {name} NOT NULL,\n"
        "    source {name} NOT NULL,\n"
        "    owner {name} NOT NULL,\n"
        "    started_at {time} NOT NULL,\n"
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
        ")"},
    /* An instance may have any number of rows, so that a plain INSERT never fails on a repeat. The first
     * index finds the rows of an instance, however long its id. The second answers what is due: rows that
     * wait for a time of their own, for a retry or for somebody's help each stand apart from those that wait
     * for the delay of their reason, and among these the earliest is the first. No watermark: a transaction
     * may commit late. */
    {4, "CREATE TABLE {lapse_purge} (\n"
        "    id {number} NOT NULL PRIMARY KEY,\n"
        "    space {name} NOT NULL,\n"
        "    instance {name} NOT NULL,\n"
        "    reason {name},\n"
        "    scheduled_at {time} NOT NULL DEFAULT {standing clock}{written scheduled_at},\n"
        "    purge_at {time}{written purge_at},\n"
        "    attempts {count} NOT NULL DEFAULT 0,\n"
        "    retry_at {time}{written retry_at},\n"
        "    parked_at {time},\n"
        "    error {text}\n"
        ")\n\n"
        "{index lapse_purge_instance} {by instance}\n\n"
        "{index lapse_purge_due} (space, parked_at, retry_at, purge_at, reason, scheduled_at)"},
};

/* The tables: since which version, by which columns they are known, and what a sweep does with them. */
static const struct own_table {
    const char *name;
    int since;
    const char *columns[14];
    int needs;
} tables[] = {
    {"lapse_version", 1, {"version", "installed_at"}, NEED_SELECT},
    {"lapse_fuse",
     1,
     {"policy", "policy_hash", "due_rows", "most_rows", "tripped_at", "acked_at"},
     NEED_SELECT | NEED_INSERT | NEED_DELETE},
    {"lapse_pause", 1, {"name", "until", "paused_at"}, NEED_SELECT},
    {"lapse_lease",
     OWN_SINCE_LEASES,
     {"scheduler", "token", "owner", "acquired_at", "expires_at"},
     NEED_SELECT | NEED_INSERT | NEED_UPDATE},
    {"lapse_run",
     OWN_SINCE_RUNS,
     {"id", "scheduler", "source", "owner", "started_at", "ended_at", "outcome", "rows_gone", "skipped",
      "unknown", "batches", "errors", "error", "counts"},
     NEED_SELECT | NEED_INSERT | NEED_UPDATE | NEED_DELETE}, /* who writes the history sweeps it, too */
    {"lapse_purge",
     OWN_SINCE_PURGES,
     {"id", "space", "instance", "reason", "scheduled_at", "purge_at", "attempts", "retry_at", "parked_at",
      "error"},
     NEED_SELECT | NEED_INSERT | NEED_UPDATE | NEED_DELETE},
};
enum { TABLE_VERSION, TABLE_FUSE, TABLE_PAUSE, TABLE_LEASE, TABLE_RUN, TABLE_PURGE };

/* --- statements ----------------------------------------------------------------------------------------- */

static struct sql_store *of(struct store *s)
{
    return (struct sql_store *)s;
}

/* Always of the same length, so that texts of times compare as the times do. */
static void bind_time(struct stmt *st, const struct dialect *d, instant at)
{
    char local[WHEN_TEXT_SIZE], buf[WHEN_TEXT_SIZE + 1];
    snprintf(buf, sizeof(buf), "%sZ", when_format_local(at, 6, local));
    *strchr(buf, ' ') = 'T';
    sql_bind_text(st, d, buf, d->own.bind_time);
}

/* No time that is earlier or the same is written behind this, however many digits either has. */
static void add_until(struct stmt *st, const struct dialect *d, instant at)
{
    char local[WHEN_TEXT_SIZE], buf[WHEN_TEXT_SIZE + 1];
    int64_t unit = d->own.time_digits == 3 ? US_PER_MS : 1;
    instant up = when_floor_div(at + unit - 1, unit) * unit;
    snprintf(buf, sizeof(buf), "%sZ", when_format_local(up, d->own.time_digits, local));
    *strchr(buf, ' ') = 'T';
    sql_bind_text(st, d, buf, d->own.bind_time);
}

static void bind_arg(struct stmt *st, const struct dialect *d, const struct own_arg *a)
{
    if (a->null)
        sql_bind(st, d, (struct value){.kind = VALUE_NULL},
                 a->kind == ARG_TIME ? d->own.bind_time : d->own.bind_name);
    else if (a->kind == ARG_NAME)
        sql_bind_text(st, d, a->name, d->own.bind_name);
    else if (a->kind == ARG_COUNT)
        sql_bind_integer(st, d, a->number);
    else
        bind_time(st, d, a->number);
}

static void add_table(struct stmt *st, const struct sql_store *s, const char *name)
{
    const struct table t = {.schema = s->store.own.schema[0] ? s->store.own.schema : NULL, .name = name};
    sql_table(st, s->engine->dialect, &t);
}

/* Of the row aliased `own`. */
static void add_instant(struct stmt *st, const struct dialect *d, const char *column)
{
    const struct column c = {.name = column, .sql_type = d->own.time_type};
    const struct time_column t = {.column = &c, .encoding = d->own.time};
    d->time_value(st, "own", &t);
}

/* "CREATE INDEX name ON lapse_purge": the schema stands before the table, or, where there is a prefix
 * instead, before the index. */
static void add_index(struct stmt *st, const struct sql_store *s, const char *name)
{
    const struct dialect *d = s->engine->dialect;
    text_addf(&st->sql, "CREATE INDEX %s", d->table_prefix ? d->table_prefix : "");
    sql_name(st, d, name);
    text_add(&st->sql, " ON ");
    if (d->table_prefix)
        sql_name(st, d, "lapse_purge");
    else
        add_table(st, s, "lapse_purge");
}

/* What a column of times may hold, where its type does not see to it. */
static void add_written(struct stmt *st, const struct dialect *d, const char *column)
{
    for (size_t i = 0; d->own.time_check[0] && i < COUNT_OF(d->own.time_check); i++)
        text_addf(&st->sql, "%s%s", i ? column : "", d->own.time_check[i]);
}

static void add_later(struct stmt *st, const struct dialect *d, const struct own_arg *a)
{
    text_add(&st->sql, d->own.later[0]);
    bind_arg(st, d, a);
    text_add(&st->sql, d->own.later[1]);
}

static void add_word(struct stmt *st, const struct sql_store *s, const char *word, const struct own_arg *args)
{
    const struct dialect *d = s->engine->dialect;
    const struct {
        const char *word, *means;
    } words[] = {{"name", d->own.name_type},    {"time", d->own.time_type}, {"text", d->own.text_type},
                 {"count", "bigint"},           {"clock", d->own.clock},    {"clock_us", d->own.clock_us},
                 {"number", d->own.number_type}};
    if (strncmp(word, "lapse_", 6) == 0)
        add_table(st, s, word);
    else if (strncmp(word, "us ", 3) == 0)
        add_instant(st, d, word + 3);
    else if (strncmp(word, "later ", 6) == 0)
        add_later(st, d, &args[word[6] - '1']);
    else if (strncmp(word, "until ", 6) == 0)
        add_until(st, d, args[word[6] - '1'].number);
    else if (strncmp(word, "index ", 6) == 0)
        add_index(st, s, word + 6);
    else if (strncmp(word, "written ", 8) == 0)
        add_written(st, d, word + 8);
    else if (strncmp(word, "by ", 3) == 0)
        text_addf(&st->sql, "%s%s%s", d->own.by_any[0], word + 3, d->own.by_any[1]);
    else if (strcmp(word, "standing clock") == 0)
        text_addf(&st->sql, "(%s)", d->own.clock);
    else if (strcmp(word, "lock") == 0)
        d->lock(st, "own", LOCK_SKIP);
    else if (word[0] >= '1' && word[0] <= '9')
        bind_arg(st, d, &args[strtol(word, NULL, 10) - 1]);
    else if (strcmp(word, "schema") == 0)
        sql_name(st, d, s->store.own.schema);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(word, words[i].word) == 0)
            text_add(&st->sql, words[i].means);
}

void own_write(struct stmt *st, const struct sql_store *s, const char *sql, size_t len,
               const struct own_arg *args)
{
    stmt_clear(st);
    for (const char *end = sql + len; sql < end;) {
        size_t plain = strcspn(sql, "{");
        plain = plain < (size_t)(end - sql) ? plain : (size_t)(end - sql);
        text_add_n(&st->sql, sql, plain);
        sql += plain;
        if (sql == end)
            return;
        char word[40] = "";
        size_t length = strcspn(++sql, "}");
        memcpy(word, sql, length < sizeof(word) ? length : sizeof(word) - 1);
        add_word(st, s, word, args);
        sql += length + 1;
    }
}

int own_run(struct sql_store *s, const char *sql, const struct own_arg *args, int64_t *ret_affected,
            struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t ignored;
    own_write(&st, s, sql, strlen(sql), args);
    return s->engine->execute(s, &st, ret_affected ? ret_affected : &ignored, e);
}

int own_ask(struct sql_store *s, const char *sql, const struct own_arg *args, struct rows *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    own_write(&st, s, sql, strlen(sql), args);
    return s->engine->query(s, &st, ret, e);
}

int own_look_up(struct sql_store *s, const char *sql, const struct own_arg *args, struct rows *ret,
                struct err *e)
{
    if (s->writing)
        return own_ask(s, sql, args, ret, e);
    int r = s->engine->begin_read(s, STATEMENT_US, e);
    if (r == 0)
        r = own_ask(s, sql, args, ret, e);
    s->engine->rollback(s);
    return r;
}

int64_t own_number(const struct value *v)
{
    return v->kind == VALUE_INTEGER ? v->integer : v->kind == VALUE_TEXT ? strtoll(v->text, NULL, 10) : 0;
}

/* --- transactions that write -------------------------------------------------------------------------------
 */

static int change_one(struct sql_store *s, struct own_change *c, struct err *e)
{
    if (!c->found)
        return own_run(s, c->sql, c->args, &c->affected, e);
    rows_release(c->found);
    return own_ask(s, c->sql, c->args, c->found, e);
}

static int change_once(struct sql_store *s, struct own_change *changes, size_t n, struct err *e)
{
    int r = s->engine->begin_write(s, LOCK_US, STATEMENT_US, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = change_one(s, &changes[i], e);
    if (r == 0)
        r = s->engine->commit(s, e);
    if (r < 0)
        s->engine->rollback(s);
    return r;
}

int own_change(struct sql_store *s, struct own_change *changes, size_t n, struct err *e)
{
    for (int tries = 1;; tries++) {
        if (change_once(s, changes, n, e) == 0)
            return 0;
        bool again = e->kind == ERR_REFUSED || e->kind == ERR_CONFLICT || e->kind == ERR_BUSY;
        if (!again || tries == TRIES)
            return -1;
        when_sleep_us(PAUSE_US * tries);
    }
}

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

static int look_foreign(const struct table *t, size_t table, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(tables[table].columns) && tables[table].columns[i]; i++)
        if (!column_named(t, tables[table].columns[i]))
            return err_set(e, ERR_FINDINGS,
                           "%s is not lapse's own table: it has no column '%s'; rename it, or set own_schema",
                           t->print, tables[table].columns[i]);
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
    add_missing(t, tables[table].needs, &missing);
    if (t->rows_hidden && (table == TABLE_RUN || table == TABLE_PURGE))
        text_addf(&missing, "%sall rows (row security hides some)", missing.len ? ", " : "");
    else if (t->rows_hidden)
        return err_set(e, ERR_FINDINGS, "row security hides rows of %s from this user", t->print);
    if (!missing.len)
        return 0;
    if (!lacks)
        return err_set(
            e, ERR_FINDINGS,
            "this user has no right to %s on %s, one of lapse's own tables ('lapse install --grants "
            "ROLE' prints what is needed)",
            text_str(&missing), t->print);
    snprintf(lacks, sizeof(s->store.own.lacks), "%s on %s", text_str(&missing), t->print);
    return 0;
}

static int read_version(struct sql_store *s, const struct table *t, int *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up(s, "SELECT max(version) FROM {lapse_version}", NULL, &found, e) < 0)
        return err_wrap(e, "reading %s", t->print);
    const struct value *v = rows_at(&found, 0);
    if (v->kind == VALUE_NULL || own_number(v) < 1)
        return err_set(e, ERR_FINDINGS,
                       "%s names no version: it is not lapse's, or was emptied; drop it and run "
                       "lapse install",
                       t->print);
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
        if (!t)
            return err_set(e, ERR_FINDINGS,
                           "lapse's own tables are not whole: version %d has %s, which is not there; drop "
                           "lapse_version and what is left of the others, and run lapse install",
                           version, tables[i].name);
        if (look_foreign(t, i, e) < 0 || look_rights(s, t, i, e) < 0)
            return -1;
    }
    return 0;
}

static int set_schema(struct sql_store *s, const char *schema, struct err *e)
{
    struct own_state *own = &s->store.own;
    if (schema && strlen(schema) >= sizeof(own->schema))
        return err_set(e, ERR_USAGE, "own_schema: the name is too long");
    snprintf(own->schema, sizeof(own->schema), "%s", schema ? schema : "");
    return 0;
}

static int look(struct store *store, struct err *e)
{
    struct sql_store *s = of(store);
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
    if (!t)
        return 0;
    if (look_foreign(t, TABLE_VERSION, e) < 0 || look_rights(s, t, TABLE_VERSION, e) < 0 ||
        read_version(s, t, &version, e) < 0 || look_at_all(s, version, e) < 0)
        return -1;
    store->own.version = version;
    return 0;
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

static int run_step(struct sql_store *s, const struct own_step *step, struct err *e)
{
    const char *rest = step->statements, *sql;
    while (*rest) {
        AUTO(stmt_release) struct stmt st = {0};
        int64_t ignored;
        size_t len = next_statement(&rest, &sql);
        own_write(&st, s, sql, len, NULL);
        if (s->engine->execute(s, &st, &ignored, e) < 0)
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
    if (own_run(s, "CREATE SCHEMA {schema}", NULL, NULL, e) < 0 ||
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
    if (make_schema(s, e) < 0 || own_run(s, version_table, NULL, NULL, e) < 0 ||
        own_ask(s, "SELECT max(version) FROM {lapse_version}", NULL, &found, e) < 0)
        return -1;
    int64_t from = own_number(rows_at(&found, 0));
    for (size_t i = 0; i < n; i++)
        if (list[i].version > from && run_step(s, &list[i], e) < 0)
            return err_wrap(e, "version %d", list[i].version);
    *ret_from = (int)from;
    return 0;
}

int sqlown_upgrade(struct sql_store *s, const struct own_step *list, size_t n, int *ret_from, struct err *e)
{
    int r = s->engine->begin_write(s, LOCK_US, STATEMENT_US, e);
    if (r == 0)
        r = upgrade_in(s, list, n, ret_from, e);
    if (r == 0)
        r = s->engine->commit(s, e);
    if (r < 0)
        s->engine->rollback(s);
    return r;
}

/* Tables that a step would create and that are there already are somebody else's. */
static int look_in_the_way(struct sql_store *s, struct err *e)
{
    AUTO(facts_free_p) struct facts *f = NULL;
    const char *schema = s->store.own.schema;
    if (inspect(s, *schema ? schema : NULL, COUNT_OF(tables), &f, e) < 0)
        return -1;
    if (find(f, TABLE_VERSION)) /* another installer was faster */
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

static int install(struct store *store, int *ret_from, struct err *e)
{
    struct sql_store *s = of(store);
    if (look(store, e) < 0)
        return -1;
    if (store->own.version == OWN_VERSION) {
        *ret_from = OWN_VERSION;
        return 0;
    }
    if (store->own.version == 0 && look_in_the_way(s, e) < 0)
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
    text_addf(out, "%s;\n\n", text_str(&st.sql));
}

static void show_text(const struct sql_store *s, const char *sql, struct text *out)
{
    show(s, sql, strlen(sql), out);
}

static void print(struct store *store, struct text *out)
{
    struct sql_store *s = of(store);
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

static void grant_table(const struct dialect *d, const char *role, const struct need *n, struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "GRANT ");
    add_rights(&st, d, n);
    text_add(&st.sql, " ON ");
    sql_table(&st, d, n->table);
    text_add(&st.sql, " TO ");
    sql_name(&st, d, role);
    text_addf(out, "%s;\n", text_str(&st.sql));
}

static void grant_schema(const struct dialect *d, const char *role, const char *schema, struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    text_add(&st.sql, "GRANT USAGE ON SCHEMA ");
    sql_name(&st, d, schema);
    text_add(&st.sql, " TO ");
    sql_name(&st, d, role);
    text_addf(out, "%s;\n", text_str(&st.sql));
}

static int print_grants(struct store *store, const char *role, const struct need *needs, size_t n,
                        bool purges, struct text *out, struct err *e)
{
    const struct dialect *d = of(store)->engine->dialect;
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
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const struct table t = {.schema = schema, .name = tables[i].name};
        if (i == TABLE_PURGE && !purges)
            continue;
        grant_table(d, role, &(struct need){.table = &t, .rights = tables[i].needs}, out);
    }
    for (size_t i = 0; i < n; i++)
        grant_table(d, role, &needs[i], out);
    return 0;
}

/* --- fuses ---------------------------------------------------------------------------------------------- */

static int fuse_read(struct store *store, const char *policy, struct fuse_row *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {{ARG_NAME, .name = policy}};
    if (own_look_up(of(store),
                    "SELECT policy_hash, due_rows, most_rows, {us tripped_at}, {us acked_at} "
                    "FROM {lapse_fuse} AS own WHERE policy = {1}",
                    args, &found, e) < 0)
        return err_wrap(e, "reading the fuse");
    *ret = (struct fuse_row){.there = found.n_rows > 0};
    if (!ret->there)
        return 0;
    const struct value *row = rows_at(&found, 0);
    snprintf(ret->hash, sizeof(ret->hash), "%s", row[0].kind == VALUE_TEXT ? row[0].text : "");
    ret->rows = own_number(&row[1]);
    ret->most = own_number(&row[2]);
    ret->tripped_at = own_number(&row[3]);
    ret->acked_at = own_number(&row[4]);
    ret->acked = row[4].kind != VALUE_NULL;
    return 0;
}

static int fuse_trip(struct store *store, const char *policy, const char *hash, int64_t rows, int64_t most,
                     struct err *e)
{
    const struct own_arg args[] = {{ARG_NAME, .name = policy},
                                   {ARG_NAME, .name = hash},
                                   {ARG_COUNT, .number = rows},
                                   {ARG_COUNT, .number = most}};
    struct own_change changes[] = {
        {"DELETE FROM {lapse_fuse} WHERE policy = {1} AND (policy_hash <> {2} OR acked_at IS NOT NULL)",
         args},
        {"INSERT INTO {lapse_fuse} (policy, policy_hash, due_rows, most_rows, tripped_at) "
         "SELECT {1}, {2}, {3}, {4}, {clock} "
         "WHERE NOT EXISTS (SELECT 1 FROM {lapse_fuse} WHERE policy = {1})",
         args},
    };
    return own_change(of(store), changes, COUNT_OF(changes), e) < 0 ? err_wrap(e, "storing the fuse") : 0;
}

static int fuse_ack(struct store *store, const char *policy, const char *hash, struct err *e)
{
    const struct own_arg args[] = {{ARG_NAME, .name = policy}, {ARG_NAME, .name = hash}};
    struct own_change changes[] = {
        {"UPDATE {lapse_fuse} SET policy_hash = {2}, acked_at = {clock} WHERE policy = {1}", args}};
    return own_change(of(store), changes, 1, e) < 0 ? err_wrap(e, "resetting the fuse") : 0;
}

static int fuse_use(struct store *store, const char *policy, const struct fuse_row *acked, struct err *e)
{
    const struct own_arg args[] = {{ARG_NAME, .name = policy}, {ARG_NAME, .name = acked->hash}};
    struct fuse_row now;
    if (fuse_read(store, policy, &now, e) < 0)
        return -1;
    if (!now.acked || now.acked_at != acked->acked_at)
        return 0;
    struct own_change changes[] = {
        {"DELETE FROM {lapse_fuse} WHERE policy = {1} AND policy_hash = {2} AND acked_at IS NOT NULL", args}};
    return own_change(of(store), changes, 1, e);
}

/* --- brakes --------------------------------------------------------------------------------------------- */

/* A time that cannot be read (written by hand) or is infinite does not end: a brake errs to the safe side. */
static int brakes(struct store *store, struct brakes *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up(
            of(store),
            "SELECT name, {us until}, {us paused_at}, {clock_us} FROM {lapse_pause} AS own ORDER BY name",
            NULL, &found, e) < 0)
        return err_wrap(e, "reading lapse_pause");
    struct brakes b = {.arena = arena_new()};
    for (size_t i = 0; i < found.n_rows; i++) {
        const struct value *row = rows_at(&found, i);
        bool ends = row[1].kind != VALUE_NULL;
        if (ends && own_number(&row[1]) <= own_number(&row[3]))
            continue;
        b.list = arena_push(b.arena, b.list, b.n, sizeof(*b.list));
        b.list[b.n++] = (struct brake){arena_strdup(b.arena, row[0].kind == VALUE_TEXT ? row[0].text : ""),
                                       ends, own_number(&row[1]), own_number(&row[2])};
    }
    *ret = b;
    return 0;
}

#define CLEAR_EXPIRED                                                                                        \
    "DELETE FROM {lapse_pause} WHERE name IN (SELECT name FROM {lapse_pause} AS own "                        \
    "WHERE {us until} <= {clock_us})"

static int brake(struct store *store, const char *name, const instant *until, struct err *e)
{
    const struct own_arg args[] = {{ARG_NAME, .name = name},
                                   {ARG_TIME, .number = until ? *until : 0, .null = !until}};
    struct own_change changes[] = {
        {CLEAR_EXPIRED, NULL},
        {"DELETE FROM {lapse_pause} WHERE name = {1}", args},
        {"INSERT INTO {lapse_pause} (name, until, paused_at) VALUES ({1}, {2}, {clock})", args},
    };
    return own_change(of(store), changes, COUNT_OF(changes), e) < 0 ? err_wrap(e, "storing the brake") : 0;
}

static int release(struct store *store, const char *name, bool *ret_was_there, struct err *e)
{
    const struct own_arg args[] = {{ARG_NAME, .name = name}};
    struct own_change changes[] = {
        {CLEAR_EXPIRED, NULL},
        {"DELETE FROM {lapse_pause} WHERE name = {1}", args},
    };
    if (own_change(of(store), changes, COUNT_OF(changes), e) < 0)
        return err_wrap(e, "releasing the brake");
    *ret_was_there = changes[1].affected > 0;
    return 0;
}

/* --- leases --------------------------------------------------------------------------------------------- */

/* token, owner, expires_at; NULL: there is none */
static void copy_lease(const struct value *row, struct lease_row *ret)
{
    *ret = (struct lease_row){0};
    if (!row)
        return;
    ret->token = own_number(&row[0]);
    snprintf(ret->owner, sizeof(ret->owner), "%s", row[1].kind == VALUE_TEXT ? row[1].text : "");
    ret->ends = row[2].kind != VALUE_NULL;
    ret->until = own_number(&row[2]);
}

#define READ_LEASE "SELECT token, owner, {us expires_at} FROM {lapse_lease} AS own WHERE scheduler = {1}"

/* The condition stands in the UPDATE itself, where it is judged with the row locked: of many that try at
 * once, one passes. A row once there stays, so that its token goes on from where it was. */
static int lease_try(struct sql_store *s, const struct own_arg *args, struct lease_row *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    struct own_change changes[] = {
        {"INSERT INTO {lapse_lease} (scheduler, token) SELECT {1}, 0 "
         "WHERE NOT EXISTS (SELECT 1 FROM {lapse_lease} WHERE scheduler = {1})",
         args},
        {"UPDATE {lapse_lease} AS own SET token = token + 1, owner = {2}, acquired_at = {clock}, "
         "expires_at = {later 3} WHERE scheduler = {1} "
         "AND (owner IS NULL OR owner = {2} OR {us expires_at} <= {clock_us})",
         args},
        {READ_LEASE, args, &found},
    };
    if (own_change(s, changes, COUNT_OF(changes), e) < 0)
        return -1;
    copy_lease(found.n_rows ? rows_at(&found, 0) : NULL, ret);
    return 0;
}

static int lease_take(struct store *store, const char *scheduler, const char *owner, int64_t us,
                      struct lease_row *ret, struct err *e)
{
    const struct own_arg args[] = {
        {ARG_NAME, .name = scheduler}, {ARG_NAME, .name = owner}, {ARG_COUNT, .number = us}};
    for (int tries = 0; tries < TRIES; tries++) {
        if (lease_try(of(store), args, ret, e) < 0)
            return err_wrap(e, "taking the lease of '%s'", scheduler);
        if (ret->owner[0]) /* else whoever held it let it go in between */
            return 0;
    }
    return err_set(e, ERR_BUSY, "the lease of '%s' changes hands too fast", scheduler);
}

/* Who has it instead. */
static int lease_lost(struct sql_store *s, const struct own_arg *args, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    struct lease_row now;
    if (own_look_up(s, READ_LEASE, args, &found, e) < 0)
        return -1;
    copy_lease(found.n_rows ? rows_at(&found, 0) : NULL, &now);
    return err_set(e, ERR_LEASE, "the lease of '%s' was lost to %s", args[0].name,
                   now.owner[0] ? now.owner : "another, who is done by now");
}

static int lease_fence(struct store *store, const char *scheduler, const char *owner, int64_t token,
                       int64_t us, struct err *e)
{
    struct sql_store *s = of(store);
    const struct own_arg args[] = {{ARG_NAME, .name = scheduler},
                                   {ARG_NAME, .name = owner},
                                   {ARG_COUNT, .number = token},
                                   {ARG_COUNT, .number = us}};
    struct own_change c = {"UPDATE {lapse_lease} SET expires_at = {later 4} "
                           "WHERE scheduler = {1} AND token = {3} AND owner = {2}",
                           args};
    int r = s->writing ? change_one(s, &c, e) : own_change(s, &c, 1, e);
    if (r < 0)
        return err_wrap(e, "renewing the lease of '%s'", scheduler);
    return c.affected == 1 ? 0 : lease_lost(s, args, e);
}

static int leases(struct store *store, struct lease_rows *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up(of(store),
                    "SELECT token, owner, {us expires_at}, {clock_us}, scheduler FROM {lapse_lease} AS own "
                    "ORDER BY scheduler",
                    NULL, &found, e) < 0)
        return err_wrap(e, "reading lapse_lease");
    struct lease_rows all = {.arena = arena_new()};
    for (size_t i = 0; i < found.n_rows; i++) {
        const struct value *row = rows_at(&found, i);
        all.list = arena_push(all.arena, all.list, all.n, sizeof(*all.list));
        copy_lease(row, &all.list[all.n].row);
        all.list[all.n].expired = row[2].kind != VALUE_NULL && own_number(&row[2]) <= own_number(&row[3]);
        all.list[all.n++].scheduler = arena_strdup(all.arena, row[4].kind == VALUE_TEXT ? row[4].text : "");
    }
    *ret = all;
    return 0;
}

static int lease_drop(struct store *store, const char *scheduler, const char *owner, int64_t token,
                      struct err *e)
{
    const struct own_arg args[] = {
        {ARG_NAME, .name = scheduler}, {ARG_NAME, .name = owner}, {ARG_COUNT, .number = token}};
    struct own_change c = {"UPDATE {lapse_lease} SET owner = NULL, expires_at = NULL "
                           "WHERE scheduler = {1} AND token = {3} AND owner = {2}",
                           args};
    return own_change(of(store), &c, 1, e) < 0 ? err_wrap(e, "handing over the lease of '%s'", scheduler) : 0;
}

const struct own_ops sqlown = {
    .look = look,
    .install = install,
    .print = print,
    .print_grants = print_grants,
    .fuse_read = fuse_read,
    .fuse_trip = fuse_trip,
    .fuse_ack = fuse_ack,
    .fuse_use = fuse_use,
    .brakes = brakes,
    .brake = brake,
    .release = release,
    .lease_take = lease_take,
    .lease_fence = lease_fence,
    .lease_drop = lease_drop,
    .leases = leases,
    .run_put = sqlown_run_put,
    .runs = sqlown_runs,
    .last_runs = sqlown_last_runs,
    .run_totals = sqlown_run_totals,
};
