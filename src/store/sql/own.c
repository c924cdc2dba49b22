/* own: lapse's own tables in an SQL database: fuses, brakes, leases. See store/own.h. Their
 * shapes by version are in own_tables.c, the history is in own_runs.c, purges are in purge_queue.c.
 *
 * Statements are written with words in braces, which become what the engine calls them: {lapse_fuse} a table
 * with its schema, {name} {count} {time} {text} types, {clock} the database's clock, {us until} a time as
 * microseconds, {1} the first argument, bound, {later 1} the clock and so many microseconds, {until 1} a
 * bound that an index serves and behind which no time up to those microseconds stands, {same …} columns that
 * are the same in all rows asked for, named in an ORDER BY where that helps; {=} {<} … an operator and {.}
 * what stands before a function, of the engine itself whatever else is on the search path (see sql.h). Rows
 * are replaced by DELETE and INSERT, which every engine has; where two do that at once, one of them finds the
 * other's row and begins again. */
#include "store/sql/own_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- statements ----------------------------------------------------------------------------------------- */

/* Always of the same length, so that texts of times compare as the times do. */
static void bind_digits(struct stmt *st, const struct dialect *d, instant at, int digits)
{
    char local[WHEN_TEXT_SIZE], buf[WHEN_TEXT_SIZE + 1];
    if (d->own.instant) {
        d->own.instant(st, at);
        return;
    }
    snprintf(buf, sizeof(buf), "%sZ", when_format_local(at, digits, local));
    *strchr(buf, ' ') = 'T';
    sql_bind_text(st, d, buf, d->own.bind_time);
}

static void bind_time(struct stmt *st, const struct dialect *d, instant at)
{
    bind_digits(st, d, at, 6);
}

/* No time that is earlier or the same is written behind this, however many digits either has. */
static void add_until(struct stmt *st, const struct dialect *d, instant at)
{
    int64_t unit = d->own.time_digits == 3 ? US_PER_MS : 1;
    if (d->own.last)
        at = at < d->own.first ? d->own.first : at > d->own.last ? d->own.last : at;
    bind_digits(st, d, when_floor_div(at + unit - 1, unit) * unit, d->own.time_digits);
}

static void bind_arg(struct stmt *st, const struct dialect *d, const struct own_arg *a)
{
    if (a->null)
        sql_bind(st, d, (struct value){.kind = VALUE_NULL},
                 a->kind == ARG_TIME ? d->own.bind_time : d->own.bind_name);
    else if (a->kind == ARG_NAME)
        sql_bind_text(st, d, a->name, d->own.bind_name);
    else if (a->kind == ARG_VALUE)
        sql_bind(st, d, *a->value, d->own.bind_name);
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

/* What {until} leaves open where times are written with fewer digits than they may have. Elsewhere it would
 * only keep the engine from knowing how few rows there are. */
static void add_exactly(struct stmt *st, const struct dialect *d, const struct own_arg *a, const char *column)
{
    if (d->own.time_digits >= 6)
        return;
    text_add(&st->sql, " AND ");
    add_instant(st, d, column);
    text_add(&st->sql, " <= ");
    bind_arg(st, d, a);
}

/* Indexes on lapse_purge. any: one that serves equality on a text of any length. */
static const struct own_index {
    const char *name, *columns;
    bool any;
} indexes[] = {
    {"lapse_purge_instance", "instance", true},
    {"lapse_purge_due", "space, parked_at, retry_at, purge_at, reason, scheduled_at", false},
};

static void add_index_columns(struct stmt *st, const struct dialect *d, const char *name)
{
    size_t i = 0;
    while (strcmp(indexes[i].name, name) != 0)
        i++;
    const char *const plain[2] = {"(", ")"}, *const *around = indexes[i].any ? d->own.by_any : plain;
    text_addf(&st->sql, " %s%s%s", around[0], indexes[i].columns, around[1]);
}

/* Where CREATE commits by itself, a table is made whole, so that none is ever left without its indexes. */
static void add_key(struct stmt *st, const struct dialect *d, const char *name)
{
    if (!d->own.commits_alone)
        return;
    text_add(&st->sql, ",\n    INDEX ");
    sql_name(st, d, name);
    add_index_columns(st, d, name);
}

/* "CREATE INDEX name ON lapse_purge (…)": the schema stands before the table, or, where there is a prefix
 * instead, before the index. */
static void add_index(struct stmt *st, const struct sql_store *s, const char *name)
{
    const struct dialect *d = s->engine->dialect;
    if (d->own.commits_alone)
        return;
    text_addf(&st->sql, "CREATE INDEX %s", d->table_prefix ? d->table_prefix : "");
    sql_name(st, d, name);
    text_add(&st->sql, " ON ");
    if (d->table_prefix)
        sql_name(st, d, "lapse_purge");
    else
        add_table(st, s, "lapse_purge");
    add_index_columns(st, d, name);
}

static void add_delete(struct stmt *st, const struct sql_store *s, const char *table)
{
    text_add(&st->sql, s->engine->dialect->deletes_alias ? "DELETE own FROM " : "DELETE FROM ");
    add_table(st, s, table);
    text_add(&st->sql, " AS own");
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

/* Between blanks that stand there already. */
static void add_operator(struct stmt *st, const struct dialect *d, const char *sign)
{
    if (d->catalog)
        text_addf(&st->sql, "OPERATOR(%s.%s)", d->catalog, sign);
    else
        text_add(&st->sql, sign);
}

static void add_word(struct stmt *st, const struct sql_store *s, const char *word, const struct own_arg *args)
{
    const struct dialect *d = s->engine->dialect;
    const struct {
        const char *word, *means;
    } words[] = {
        {"name", d->own.name_type},        {"long name", d->own.long_name_type},
        {"time", d->own.time_type},        {"moment", d->own.moment_type},
        {"text", d->own.text_type},        {"count", "bigint"},
        {"number", d->own.number_type},    {"clock", d->own.clock},
        {"clock_us", d->own.clock_us},     {"new", d->own.commits_alone ? " IF NOT EXISTS" : NULL},
        {"end", d->own.table_end},         {"none", d->own.from_none},
        {"new column", d->own.new_column},
    };
    if (strncmp(word, "lapse_", 6) == 0)
        add_table(st, s, word);
    else if (strncmp(word, "us ", 3) == 0)
        add_instant(st, d, word + 3);
    else if (strncmp(word, "later ", 6) == 0)
        add_later(st, d, &args[word[6] - '1']);
    else if (strncmp(word, "until ", 6) == 0)
        add_until(st, d, args[word[6] - '1'].number);
    else if (strncmp(word, "exactly ", 8) == 0)
        add_exactly(st, d, &args[word[8] - '1'], word + 10);
    else if (strncmp(word, "index ", 6) == 0)
        add_index(st, s, word + 6);
    else if (strncmp(word, "written ", 8) == 0)
        add_written(st, d, word + 8);
    else if (strncmp(word, "key ", 4) == 0)
        add_key(st, d, word + 4);
    else if (strncmp(word, "delete ", 7) == 0)
        add_delete(st, s, word + 7);
    else if (strncmp(word, "same ", 5) == 0)
        text_add(&st->sql, d->own.orders_rest ? "" : word + 5);
    else if (strcmp(word, "standing clock") == 0 && !d->own.moments_begin_now)
        text_addf(&st->sql, " DEFAULT (%s)", d->own.clock);
    else if (strcmp(word, "lock") == 0)
        d->lock(st, "own", LOCK_SKIP);
    else if (word[0] && strchr("=<>+", word[0]))
        add_operator(st, d, word);
    else if (strcmp(word, ".") == 0)
        sql_builtin(st, d, "");
    else if (word[0] >= '1' && word[0] <= '9')
        bind_arg(st, d, &args[strtol(word, NULL, 10) - 1]);
    else if (strcmp(word, "schema") == 0)
        sql_name(st, d, s->store.own.schema);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (words[i].means && strcmp(word, words[i].word) == 0)
            text_add(&st->sql, words[i].means);
}

void own_add(struct stmt *st, const struct sql_store *s, const char *sql, size_t len,
             const struct own_arg *args)
{
    for (const char *end = sql + len; sql < end;) {
        size_t plain = strcspn(sql, "{");
        plain = plain < (size_t)(end - sql) ? plain : (size_t)(end - sql);
        text_add_n(&st->sql, sql, plain);
        sql += plain;
        if (sql == end)
            return;
        char word[80] = "";
        size_t length = strcspn(++sql, "}");
        memcpy(word, sql, length < sizeof(word) ? length : sizeof(word) - 1);
        add_word(st, s, word, args);
        sql += length + 1;
    }
}

void own_write(struct stmt *st, const struct sql_store *s, const char *sql, size_t len,
               const struct own_arg *args)
{
    stmt_clear(st);
    own_add(st, s, sql, len, args);
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
    int r = s->engine->begin_read(s, OWN_STATEMENT_US, e);
    if (r == 0)
        r = own_ask(s, sql, args, ret, e);
    s->engine->rollback(s);
    return r;
}

/* As strtoll reads it, which is slow. */
int64_t own_number(const struct value *v)
{
    enum { SURE = 18 }; /* so many digits are never too many */
    if (v->kind != VALUE_TEXT)
        return v->kind == VALUE_INTEGER ? v->integer : 0;
    bool minus = v->len && v->text[0] == '-';
    int64_t n = 0;
    size_t i = minus;
    for (; i < v->len && i < SURE && v->text[i] >= '0' && v->text[i] <= '9'; i++)
        n = n * 10 + (v->text[i] - '0');
    return i < v->len ? strtoll(v->text, NULL, 10) : minus ? -n : n;
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
    s->store.writes = s->store.own_goes_on;
    int r = s->engine->begin_write(s, OWN_LOCK_US, OWN_STATEMENT_US, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = change_one(s, &changes[i], e);
    if (r == 0)
        r = s->engine->commit(s, e);
    if (r < 0)
        s->engine->rollback(s);
    return r;
}

bool own_may_try_again(const struct err *e)
{
    return e->kind == ERR_REFUSED || e->kind == ERR_CONFLICT || e->kind == ERR_BUSY;
}

int own_change(struct sql_store *s, struct own_change *changes, size_t n, struct err *e)
{
    for (int tries = 1;; tries++) {
        if (change_once(s, changes, n, e) == 0)
            return 0;
        if (!own_may_try_again(e) || tries == OWN_TRIES)
            return -1;
        when_sleep_us(OWN_PAUSE_US * tries);
    }
}

/* --- fuses ---------------------------------------------------------------------------------------------- */

static bool keeps_who(const struct store *s)
{
    return s->own.version >= OWN_SINCE_WHO;
}

static void copy_deed(const struct value *who, const struct value *reason, struct deed *ret)
{
    deed_copy(ret->who, sizeof(ret->who), who->kind == VALUE_TEXT ? who->text : "");
    deed_copy(ret->reason, sizeof(ret->reason), reason->kind == VALUE_TEXT ? reason->text : "");
}

static struct own_arg text_or_null(const char *text)
{
    return (struct own_arg){ARG_NAME, .name = text, .null = !*text};
}

static int fuse_read(struct store *store, const char *policy, struct fuse_row *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {{ARG_NAME, .name = policy}};
    const char *sql =
        keeps_who(store)
            ? "SELECT policy_hash, due_rows, most_rows, {us tripped_at}, {us acked_at}, acked_by, "
              "reason FROM {lapse_fuse} AS own WHERE policy {=} {1}"
            : "SELECT policy_hash, due_rows, most_rows, {us tripped_at}, {us acked_at}, NULL, NULL "
              "FROM {lapse_fuse} AS own WHERE policy {=} {1}";
    if (own_look_up(sqlstore_of(store), sql, args, &found, e) < 0)
        return err_wrap(e, "reading the fuse");
    *ret = (struct fuse_row){.there = found.n_rows > 0};
    if (!ret->there)
        return 0;
    const struct value *row = rows_at(&found, 0);
    snprintf(ret->hash, sizeof(ret->hash), "%s", row[0].kind == VALUE_TEXT ? row[0].text : "");
    copy_deed(&row[5], &row[6], &ret->by);
    ret->used = !*ret->hash;
    ret->there = !ret->used;
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
        {"DELETE FROM {lapse_fuse} WHERE policy {=} {1} AND (policy_hash {<>} {2} OR acked_at IS NOT NULL)",
         args},
        {"INSERT INTO {lapse_fuse} (policy, policy_hash, due_rows, most_rows, tripped_at) "
         "SELECT {1}, {2}, {3}, {4}, {clock}{none} "
         "WHERE NOT EXISTS (SELECT 1 FROM {lapse_fuse} WHERE policy {=} {1})",
         args},
    };
    return own_change(sqlstore_of(store), changes, COUNT_OF(changes), e) < 0 ? err_wrap(e, "storing the fuse")
                                                                             : 0;
}

static int fuse_ack(struct store *store, const char *policy, const char *hash, const struct deed *by,
                    struct err *e)
{
    const struct own_arg args[] = {{ARG_NAME, .name = policy},
                                   {ARG_NAME, .name = hash},
                                   text_or_null(by->who),
                                   text_or_null(by->reason)};
    struct own_change changes[] = {
        {keeps_who(store)
             ? "UPDATE {lapse_fuse} SET policy_hash = {2}, acked_at = {clock}, acked_by = {3}, "
               "reason = {4} WHERE policy {=} {1}"
             : "UPDATE {lapse_fuse} SET policy_hash = {2}, acked_at = {clock} WHERE policy {=} {1}",
         args}};
    return own_change(sqlstore_of(store), changes, 1, e) < 0 ? err_wrap(e, "resetting the fuse") : 0;
}

/* It is kept who acknowledged it, under a hash that is no policy's: nothing takes it for a fuse. */
static int fuse_use(struct store *store, const char *policy, const struct fuse_row *acked, struct err *e)
{
    const struct own_arg args[] = {{ARG_NAME, .name = policy},
                                   {ARG_NAME, .name = acked->hash},
                                   {ARG_COUNT, .number = acked->rows},
                                   {ARG_COUNT, .number = acked->most},
                                   {ARG_TIME, .number = acked->tripped_at},
                                   {ARG_TIME, .number = acked->acked_at},
                                   text_or_null(acked->by.who),
                                   text_or_null(acked->by.reason)};
    struct fuse_row now;
    if (fuse_read(store, policy, &now, e) < 0)
        return -1;
    if (!now.acked || now.acked_at != acked->acked_at)
        return 0;
    struct own_change changes[] = {
        {"DELETE FROM {lapse_fuse} WHERE policy {=} {1} AND policy_hash {=} {2} AND acked_at IS NOT NULL",
         args},
        {"INSERT INTO {lapse_fuse} (policy, policy_hash, due_rows, most_rows, tripped_at, acked_at, "
         "acked_by, "
         "reason) SELECT {1}, '', {3}, {4}, {5}, {6}, {7}, {8}{none} "
         "WHERE NOT EXISTS (SELECT 1 FROM {lapse_fuse} WHERE policy {=} {1})",
         args}};
    return own_change(sqlstore_of(store), changes, keeps_who(store) ? 2 : 1, e);
}

/* --- brakes --------------------------------------------------------------------------------------------- */

/* A time that cannot be read (written by hand) or is infinite does not end: a brake errs to the safe side. */
static int brakes(struct store *store, struct brakes *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const char *sql =
        keeps_who(store)
            ? "SELECT name, {us until}, {us paused_at}, {clock_us}, paused_by, reason, "
              "{us released_at}, released_by, release_reason FROM {lapse_pause} AS own ORDER BY "
              "name"
            : "SELECT name, {us until}, {us paused_at}, {clock_us}, NULL, NULL, NULL, NULL, NULL "
              "FROM {lapse_pause} AS own ORDER BY name";
    if (own_look_up(sqlstore_of(store), sql, NULL, &found, e) < 0)
        return err_wrap(e, "reading lapse_pause");
    struct brakes b = {.arena = arena_new()};
    for (size_t i = 0; i < found.n_rows; i++) {
        const struct value *row = rows_at(&found, i);
        bool ends = row[1].kind != VALUE_NULL;
        struct brake x = {arena_strdup(b.arena, row[0].kind == VALUE_TEXT ? row[0].text : ""),
                          ends,
                          own_number(&row[1]),
                          own_number(&row[2]),
                          {{0}, {0}}};
        copy_deed(&row[4], &row[5], &x.by);
        if (row[6].kind == VALUE_NULL && (!ends || own_number(&row[1]) > own_number(&row[3]))) {
            b.list = arena_push(b.arena, b.list, b.n, sizeof(*b.list));
            b.list[b.n++] = x;
        } else if (row[6].kind != VALUE_NULL) {
            x.since = own_number(&row[6]);
            copy_deed(&row[7], &row[8], &x.by);
            b.released = arena_push(b.arena, b.released, b.n_released, sizeof(*b.released));
            b.released[b.n_released++] = x;
        }
    }
    *ret = b;
    return 0;
}

#define CLEAR_EXPIRED "{delete lapse_pause} WHERE {us until} {<=} {clock_us}"
#define CLEAR_ENDED   CLEAR_EXPIRED " AND released_at IS NULL" /* those that were released are kept */

/* A time beyond what the tables hold. */
static int too_late(const struct dialect *d, struct err *e)
{
    char last[WHEN_TEXT_SIZE];
    return err_set(e, ERR_USAGE, "this database's tables hold times up to %s: pause without an end instead",
                   when_format(d->own.last, last));
}

static int brake(struct store *store, const char *name, const instant *until, const struct deed *by,
                 struct err *e)
{
    const struct dialect *d = sqlstore_of(store)->engine->dialect;
    if (until && d->own.last && *until > d->own.last)
        return too_late(d, e);
    const struct own_arg args[] = {{ARG_NAME, .name = name},
                                   {ARG_TIME, .number = until ? *until : 0, .null = !until},
                                   text_or_null(by->who),
                                   text_or_null(by->reason)};
    bool who = keeps_who(store);
    struct own_change changes[] = {
        {who ? CLEAR_ENDED : CLEAR_EXPIRED, NULL},
        {"DELETE FROM {lapse_pause} WHERE name {=} {1}", args},
        {who ? "INSERT INTO {lapse_pause} (name, until, paused_at, paused_by, reason) "
               "VALUES ({1}, {2}, {clock}, {3}, {4})"
             : "INSERT INTO {lapse_pause} (name, until, paused_at) VALUES ({1}, {2}, {clock})",
         args},
    };
    return own_change(sqlstore_of(store), changes, COUNT_OF(changes), e) < 0
               ? err_wrap(e, "storing the brake")
               : 0;
}

/* One that is released ends now, also for a program that knows nothing of releases. */
static int release(struct store *store, const char *name, const struct deed *by, bool *ret_was_there,
                   struct err *e)
{
    const struct own_arg args[] = {{ARG_NAME, .name = name}, text_or_null(by->who), text_or_null(by->reason)};
    bool who = keeps_who(store);
    struct own_change changes[] = {
        {who ? CLEAR_ENDED : CLEAR_EXPIRED, NULL},
        {who ? "UPDATE {lapse_pause} SET until = {clock}, released_at = {clock}, released_by = {2}, "
               "release_reason = {3} WHERE name {=} {1} AND released_at IS NULL"
             : "DELETE FROM {lapse_pause} WHERE name {=} {1}",
         args},
    };
    if (own_change(sqlstore_of(store), changes, COUNT_OF(changes), e) < 0)
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

#define READ_LEASE "SELECT token, owner, {us expires_at} FROM {lapse_lease} AS own WHERE scheduler {=} {1}"

/* The condition stands in the UPDATE itself, where it is judged with the row locked: of many that try at
 * once, one passes. A row once there stays, so that its token goes on from where it was. */
static int lease_try(struct sql_store *s, const struct own_arg *args, struct lease_row *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    struct own_change changes[] = {
        {"INSERT INTO {lapse_lease} (scheduler, token) SELECT {1}, 0{none} "
         "WHERE NOT EXISTS (SELECT 1 FROM {lapse_lease} WHERE scheduler {=} {1})",
         args},
        {"UPDATE {lapse_lease} AS own SET token = token {+} 1, owner = {2}, acquired_at = {clock}, "
         "expires_at = {later 3} WHERE scheduler {=} {1} "
         "AND (owner IS NULL OR owner {=} {2} OR {us expires_at} {<=} {clock_us})",
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
    for (int tries = 0; tries < OWN_TRIES; tries++) {
        if (lease_try(sqlstore_of(store), args, ret, e) < 0)
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
    struct sql_store *s = sqlstore_of(store);
    const struct own_arg args[] = {{ARG_NAME, .name = scheduler},
                                   {ARG_NAME, .name = owner},
                                   {ARG_COUNT, .number = token},
                                   {ARG_COUNT, .number = us}};
    struct own_change c = {"UPDATE {lapse_lease} SET expires_at = {later 4} "
                           "WHERE scheduler {=} {1} AND token {=} {3} AND owner {=} {2}",
                           args};
    int r = s->writing ? change_one(s, &c, e) : own_change(s, &c, 1, e);
    if (r < 0)
        return err_wrap(e, "renewing the lease of '%s'", scheduler);
    return c.affected == 1 ? 0 : lease_lost(s, args, e);
}

/* --- ranks ---------------------------------------------------------------------------------------------- */

/* Beside the schedulers, in whose names there is no tab. */
#define RANKS "ranks\t"
#define CLAIM "UPDATE {lapse_lease} SET token = token {+} 1 WHERE scheduler {=} {1}"
#define MAKE_CLAIM                                                                                           \
    "INSERT INTO {lapse_lease} (scheduler, token) SELECT {1}, 0{none} "                                      \
    "WHERE NOT EXISTS (SELECT 1 FROM {lapse_lease} WHERE scheduler {=} {1})"

static void add_claim_name(struct text *t, const struct table *of)
{
    text_addf(t, RANKS "%s.%s", of->schema ? of->schema : "", of->name);
}

/* On one server its lock keeps others out, who do not wait for it; of those on several the row is certified
 * for the first that commits, and all others are rolled back. */
int sqlown_claim_ranks(struct sql_store *s, const struct table *t, struct err *e)
{
    AUTO(text_release) struct text name = {0};
    AUTO(rows_release) struct rows found = {0};
    add_claim_name(&name, t);
    const struct own_arg args[] = {{ARG_NAME, .name = text_str(&name)}};
    if (s->store.own.version < OWN_SINCE_LEASES)
        return err_set(e, ERR_DATABASE,
                       "rows of %s cannot be ranked here without lapse's own tables: run "
                       "lapse install",
                       t->print);
    int r = own_ask(s, "SELECT token FROM {lapse_lease} AS own WHERE scheduler {=} {1} FOR UPDATE NOWAIT",
                    args, &found, e);
    if (r == 0 && found.n_rows)
        r = own_run(s, CLAIM, args, NULL, e);
    if (r == 0 && found.n_rows)
        return 0;
    s->engine->rollback(s);
    struct own_change make = {MAKE_CLAIM, args};
    if (r == 0 && own_change(s, &make, 1, e) < 0)
        return -1;
    return r == 0 || e->kind == ERR_BUSY || e->kind == ERR_CONFLICT
               ? err_set(e, ERR_TURN, "another transaction judges ranks of %s", t->print)
               : -1;
}

void sqlown_explain_ranks(const struct sql_store *s, const struct table *t, struct text *out)
{
    AUTO(text_release) struct text name = {0};
    AUTO(stmt_release) struct stmt st = {0};
    add_claim_name(&name, t);
    const struct own_arg args[] = {{ARG_NAME, .name = text_str(&name)}};
    own_write(&st, s, CLAIM, strlen(CLAIM), args);
    sqlstore_show(
        out, s->engine->dialect, &st,
        "of all batches that rank rows of the table only one commits, on whatever server: it writes a "
        "row of lapse's own");
}

static bool is_claim(const struct value *name)
{
    return name->kind == VALUE_TEXT && strncmp(name->text, RANKS, strlen(RANKS)) == 0;
}

static int leases(struct store *store, struct lease_rows *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up(sqlstore_of(store),
                    "SELECT token, owner, {us expires_at}, {clock_us}, scheduler FROM {lapse_lease} AS own "
                    "ORDER BY scheduler",
                    NULL, &found, e) < 0)
        return err_wrap(e, "reading lapse_lease");
    struct lease_rows all = {.arena = arena_new()};
    for (size_t i = 0; i < found.n_rows; i++) {
        const struct value *row = rows_at(&found, i);
        if (is_claim(&row[4]))
            continue;
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
                           "WHERE scheduler {=} {1} AND token {=} {3} AND owner {=} {2}",
                           args};
    return own_change(sqlstore_of(store), &c, 1, e) < 0
               ? err_wrap(e, "handing over the lease of '%s'", scheduler)
               : 0;
}

const struct own_ops sqlown = {
    .look = sqlown_look,
    .install = sqlown_install,
    .print = sqlown_print,
    .print_grants = sqlown_print_grants,
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
