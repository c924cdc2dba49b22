/* keyed: a table of keys and values in an SQL database. See store/keyed.h. */
#include <stdlib.h>
#include <string.h>

#include "store/sql/sqlstore.h"

static const int64_t LOCK_US = 10 * US_PER_S, STATEMENT_US = 30 * US_PER_S;

static struct sql_store *of(struct store *s)
{
    return (struct sql_store *)s;
}

void keyed_release(struct keyed *k)
{
    facts_free(k->facts);
    arena_free(k->arena);
    *k = (struct keyed){0};
}

void keyed_keys_release(struct keyed_keys *k)
{
    arena_free(k->arena);
    *k = (struct keyed_keys){0};
}

/* --- the table -------------------------------------------------------------------------------------------
 */

static int not_such_a_table(const struct dialect *d, const char *name, const char *why, struct err *e)
{
    AUTO(stmt_release) struct stmt key = {0};
    const char *type = d->tells_apart ? d->own.name_type : "text"; /* one that compares exactly */
    if (d->tells_apart)
        sql_name(&key, d, "key");
    else
        text_add(&key.sql, "key");
    return err_set(e, ERR_FINDINGS,
                   "%s: %s; it is made by CREATE TABLE %s (instance %s NOT NULL, %s %s NOT NULL, value text, "
                   "PRIMARY KEY (instance, %s))",
                   name, why, name, type, text_str(&key.sql), type, text_str(&key.sql));
}

/* Whether the column's own comparison may find two names equal that are not: then one instance would erase
 * what is another's. */
static bool may_fold(const struct dialect *d, const struct column *c)
{
    if (d->tells_apart)
        return !d->tells_apart(c);
    static const char *const types[] = {"citext", "bpchar"}, *const plain[] = {"C", "POSIX"};
    bool folds = c->collation != NULL;
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        folds = folds && strcmp(c->collation, plain[i]) != 0;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        folds = folds || strstr(c->sql_type, types[i]); /* with or without a schema */
    return folds;
}

static int look_at_table(struct keyed *k, const struct dialect *d, const char *name, struct err *e)
{
    if (!k->table || k->table->kind != KIND_TABLE)
        return not_such_a_table(d, name, "there is no such table", e);
    k->instance = column_named(k->table, "instance");
    k->key = column_named(k->table, "key");
    k->value = column_named(k->table, "value");
    if (!k->instance || !k->key || !k->value)
        return not_such_a_table(d, name, "it has no columns instance, key and value", e);
    if (k->instance->type != TYPE_TEXT || k->key->type != TYPE_TEXT ||
        (k->value->type != TYPE_TEXT && k->value->type != TYPE_BLOB))
        return not_such_a_table(d, name, "instance and key must be texts, and value a text or bytes", e);
    if (may_fold(d, k->instance) || may_fold(d, k->key))
        return not_such_a_table(d, name, "instance and key must be texts that compare exactly", e);
    return 0;
}

static int find(struct store *store, const char *name, const char *instance, struct keyed *ret, struct err *e)
{
    struct keyed k = {.arena = arena_new()};
    struct table_name wanted;
    const struct table_name *list[] = {&wanted};
    const struct table_names names = {list, 1};
    k.of = arena_strdup(k.arena, instance);
    if (table_name_parse(k.arena, name, &wanted, e) < 0 ||
        store->ops->inspect(store, &names, &k.facts, e) < 0) {
        keyed_release(&k);
        return -1;
    }
    k.table = facts_table(k.facts, &wanted);
    if (look_at_table(&k, of(store)->engine->dialect, name, e) < 0) {
        keyed_release(&k);
        return -1;
    }
    *ret = k;
    return 0;
}

/* --- statements ------------------------------------------------------------------------------------------
 */

static void bind(struct stmt *st, const struct dialect *d, const struct column *c, const void *bytes,
                 size_t len)
{
    if (!st->arena)
        st->arena = arena_new();
    const struct value v = {.kind = c->type == TYPE_BLOB ? VALUE_BLOB : VALUE_TEXT,
                            .text = arena_strndup(st->arena, bytes ? bytes : "", len),
                            .len = len};
    sql_bind(st, d, v, c->sql_type);
}

static void add_is(struct stmt *st, const struct dialect *d, const struct column *c, const char *text)
{
    const char *operators = sql_operators(d, c, c);
    sql_name(st, d, c->name);
    sql_add_type(st, d, operators, c);
    sql_operator(st, operators, "=");
    bind(st, d, c, text, strlen(text));
}

/* "… table WHERE instance = …", and the key unless it is NULL */
static void add_where(struct stmt *st, const struct dialect *d, const struct keyed *k, const char *verb,
                      const char *key)
{
    stmt_clear(st);
    text_add(&st->sql, verb);
    sql_table(st, d, k->table);
    text_add(&st->sql, " WHERE ");
    add_is(st, d, k->instance, k->of);
    if (!key)
        return;
    text_add(&st->sql, " AND ");
    add_is(st, d, k->key, key);
}

static int ask(struct sql_store *s, const struct stmt *st, struct rows *ret, struct err *e)
{
    int r = s->engine->begin_read(s, STATEMENT_US, e);
    if (r == 0)
        r = s->engine->query(s, st, ret, e);
    s->engine->rollback(s);
    return r;
}

static int finish(struct sql_store *s, int r, struct err *e)
{
    if (r == 0)
        r = s->engine->commit(s, e);
    if (r < 0)
        s->engine->rollback(s);
    return r;
}

/* --- values ----------------------------------------------------------------------------------------------
 */

static int digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : 0;
}

/* Bytes that came as \x616263. */
static void *unhex(const struct value *v, size_t *ret_len)
{
    size_t n = v->len / 2 - 1;
    char *bytes = mem_alloc(n + 1);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(digit(v->text[2 * i + 2]) * 16 + digit(v->text[2 * i + 3]));
    *ret_len = n;
    return bytes;
}

static void *copy_value(const struct value *v, bool hex, size_t *ret_len)
{
    AUTO(text_release) struct text t = {0};
    if (hex && v->kind == VALUE_TEXT && v->len >= 2 && v->len % 2 == 0)
        return unhex(v, ret_len);
    if (v->kind == VALUE_TEXT || v->kind == VALUE_BLOB)
        text_add_n(&t, v->text, v->len);
    else
        value_print(v, &t);
    char *copy = mem_alloc(t.len + 1);
    memcpy(copy, text_str(&t), t.len);
    *ret_len = t.len;
    return copy;
}

static int get(struct store *store, const struct keyed *k, const char *key, void **ret_value, size_t *ret_len,
               struct err *e)
{
    struct sql_store *s = of(store);
    const struct dialect *d = s->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    add_where(&st, d, k, "SELECT value FROM ", key);
    if (ask(s, &st, &found, e) < 0)
        return -1;
    bool there = found.n_rows > 0 && rows_at(&found, 0)->kind != VALUE_NULL;
    *ret_len = 0;
    *ret_value =
        there ? copy_value(rows_at(&found, 0), d->hex_blobs && k->value->type == TYPE_BLOB, ret_len) : NULL;
    return 0;
}

/* --- writing ---------------------------------------------------------------------------------------------
 */

/* A type may cut a name without a word, and what was put would be another's. */
static int must_be_there(struct sql_store *s, const struct keyed *k, const char *key, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    add_where(&st, s->engine->dialect, k, "SELECT 1 FROM ", key);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    return found.n_rows ? 0
                        : err_set(e, ERR_REFUSED,
                                  "%s: the instance or the key does not come back the same from its column: "
                                  "it is too long for it",
                                  k->table->print);
}

static int put_one(struct sql_store *s, const struct keyed *k, const struct keyed_pair *p, struct err *e)
{
    const struct dialect *d = s->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    int64_t ignored;
    add_where(&st, d, k, "DELETE FROM ", p->key);
    if (s->engine->execute(s, &st, &ignored, e) < 0)
        return -1;
    stmt_clear(&st);
    text_add(&st.sql, "INSERT INTO ");
    sql_table(&st, d, k->table);
    text_add(&st.sql, " (instance, ");
    sql_name(&st, d, "key"); /* a word of the language somewhere */
    text_add(&st.sql, ", value) VALUES (");
    bind(&st, d, k->instance, k->of, strlen(k->of));
    text_add(&st.sql, ", ");
    bind(&st, d, k->key, p->key, strlen(p->key));
    text_add(&st.sql, ", ");
    bind(&st, d, k->value, p->value, p->len);
    text_add(&st.sql, ")");
    return s->engine->execute(s, &st, &ignored, e) < 0 ? -1 : must_be_there(s, k, p->key, e);
}

static int put(struct store *store, const struct keyed *k, const struct keyed_pair *pairs, size_t n,
               struct err *e)
{
    struct sql_store *s = of(store);
    int r = s->engine->begin_write(s, LOCK_US, STATEMENT_US, e);
    for (size_t i = 0; i < n && r == 0; i++)
        r = put_one(s, k, &pairs[i], e);
    return finish(s, r, e);
}

/* "… table WHERE instance = …", of one key, or of all but one. */
static void add_doomed(struct stmt *st, const struct dialect *d, const struct keyed *k, const char *verb,
                       const char *key, const char *but)
{
    add_where(st, d, k, verb, key);
    if (!but)
        return;
    text_add(&st->sql, " AND (");
    add_is(st, d, k->key, but);
    text_add(&st->sql, ") IS NOT TRUE"); /* SQLite takes NULL in a key */
}

/* A trigger may keep a row without a word. */
static int must_be_gone(struct sql_store *s, const struct keyed *k, const char *key, const char *but,
                        struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    if (!k->table->delete_hooks)
        return 0;
    add_doomed(&st, s->engine->dialect, k, "SELECT 1 FROM ", key, but);
    text_add(&st.sql, " LIMIT 1");
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    return found.n_rows
               ? err_set(e, ERR_REFUSED, "rows of %s stayed: a trigger or a rule kept them", k->table->print)
               : 0;
}

static int remove_those(struct sql_store *s, const struct keyed *k, const char *key, const char *but,
                        struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t ignored;
    add_doomed(&st, s->engine->dialect, k, "DELETE FROM ", key, but);
    int r = s->engine->begin_write(s, LOCK_US, STATEMENT_US, e);
    if (r == 0)
        r = s->engine->execute(s, &st, &ignored, e);
    return finish(s, r == 0 ? must_be_gone(s, k, key, but, e) : r, e);
}

static int remove_key(struct store *store, const struct keyed *k, const char *key, struct err *e)
{
    return remove_those(of(store), k, key, NULL, e);
}

static int remove_all(struct store *store, const struct keyed *k, const char *but, struct err *e)
{
    return remove_those(of(store), k, NULL, but, e);
}

static int keys(struct store *store, const struct keyed *k, const char *prefix, struct keyed_keys *ret,
                struct err *e)
{
    struct sql_store *s = of(store);
    const struct dialect *d = s->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    text_add(&st.sql, "SELECT ");
    sql_column(&st, d, "this", k->key);
    text_add(&st.sql, " FROM ");
    sql_table(&st, d, k->table);
    text_add(&st.sql, " AS this WHERE ");
    add_is(&st, d, k->instance, k->of);
    text_add(&st.sql, " AND ");
    d->prefix(&st, "this", k->key, prefix);
    if (ask(s, &st, &found, e) < 0)
        return -1;
    *ret = (struct keyed_keys){.arena = arena_new(), .n = found.n_rows};
    ret->list = arena_alloc(ret->arena, (ret->n + 1) * sizeof(*ret->list));
    for (size_t i = 0; i < ret->n; i++)
        ret->list[i] = arena_strdup(ret->arena, rows_at(&found, i)->text);
    return 0;
}

const struct keyed_ops sqlkeyed = {find, get, put, remove_key, remove_all, keys};
