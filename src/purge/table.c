/* table: the storage and the alarm of an instance in a table of any store. See lapse_purge.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lapse_purge.h"
#include "store/retry.h"

/* The alarm is a row beside the data; nobody sees it there. */
static const char alarm_key[] = "lapse:alarm";

struct lapse_table {
    struct store *store;
    struct keyed keyed;
    struct err err;
};

enum { TRIES = 3 };
static const int64_t AWAY_US = 5 * US_PER_S;

/* Whatever is done here may be done again: after a connection that broke, it is. */
static bool again(struct lapse_table *t, int *tries)
{
    const struct patience none = {.away_us = AWAY_US};
    if (++*tries >= TRIES)
        return false;
    if (retry_is_lost(&t->err))
        return retry_reconnect(t->store, &none, &t->err);
    if (t->err.kind != ERR_BUSY && t->err.kind != ERR_CONFLICT)
        return false;
    retry_wait_us(&none, retry_pause_us(*tries));
    return true;
}

static int get(void *context, const char *key, void **ret_value, size_t *ret_len)
{
    struct lapse_table *t = context;
    int tries = 0;
    do {
        if (t->store->ops->keyed->get(t->store, &t->keyed, key, ret_value, ret_len, &t->err) == 0)
            return 0;
    } while (again(t, &tries));
    return -1;
}

static int put_pairs(struct lapse_table *t, const struct keyed_pair *pairs, size_t n)
{
    int tries = 0;
    do {
        if (t->store->ops->keyed->put(t->store, &t->keyed, pairs, n, &t->err) == 0)
            return 0;
    } while (again(t, &tries));
    return -1;
}

static int put(void *context, const char *key, const void *value, size_t len)
{
    const struct keyed_pair pair = {key, value, len};
    return put_pairs(context, &pair, 1);
}

static int put_batch(void *context, const struct lapse_entry *entries, size_t n)
{
    AUTO(mem_free_p) struct keyed_pair *pairs = mem_alloc((n + 1) * sizeof(*pairs));
    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct keyed_pair){entries[i].key, entries[i].value, entries[i].len};
    return put_pairs(context, pairs, n);
}

static int delete_key(void *context, const char *key)
{
    struct lapse_table *t = context;
    int tries = 0;
    do {
        if (t->store->ops->keyed->remove(t->store, &t->keyed, key, &t->err) == 0)
            return 0;
    } while (again(t, &tries));
    return -1;
}

static int delete_all(void *context)
{
    struct lapse_table *t = context;
    int tries = 0;
    do {
        if (t->store->ops->keyed->remove_all(t->store, &t->keyed, alarm_key, &t->err) == 0)
            return 0;
    } while (again(t, &tries));
    return -1;
}

static int keys_of(struct lapse_table *t, const char *prefix, struct keyed_keys *ret)
{
    int tries = 0;
    do {
        if (t->store->ops->keyed->keys(t->store, &t->keyed, prefix, ret, &t->err) == 0)
            return 0;
    } while (again(t, &tries));
    return -1;
}

static int list(void *context, const char *prefix, int (*each)(void *each_context, const char *key),
                void *each_context)
{
    AUTO(keyed_keys_release) struct keyed_keys keys = {0};
    if (keys_of(context, prefix, &keys) < 0)
        return -1;
    for (size_t i = 0; i < keys.n; i++)
        if (strcmp(keys.list[i], alarm_key) != 0 && each(each_context, keys.list[i]) < 0)
            return -1;
    return 0;
}

/* --- the alarm -------------------------------------------------------------------------------------------
 */

static int schedule(void *context, int64_t at_ms)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%lld", (long long)at_ms);
    return put(context, alarm_key, text, (size_t)len);
}

static int cancel(void *context)
{
    return delete_key(context, alarm_key);
}

static int alarm_get(void *context, int *ret_set, int64_t *ret_at_ms)
{
    void *value = NULL;
    size_t len;
    if (get(context, alarm_key, &value, &len) < 0)
        return -1;
    *ret_set = value != NULL;
    *ret_at_ms = value ? strtoll(value, NULL, 10) : 0;
    free(value);
    return 0;
}

/* --- the table -------------------------------------------------------------------------------------------
 */

/* An instance whose bytes the database does not take is better refused now than when it ends. */
static int can_be_read(struct lapse_table *t, const char *table)
{
    int set;
    int64_t at;
    return alarm_get(t, &set, &at) < 0 ? err_wrap(&t->err, "the instance cannot be looked up in %s", table)
                                       : 0;
}

struct lapse_table *lapse_table_open(const char *dsn, const char *table, const char *instance,
                                     char **ret_error)
{
    struct lapse_table *t = mem_alloc(sizeof(*t));
    if (store_open(dsn, false, &t->store, &t->err) == 0 &&
        t->store->ops->keyed->find(t->store, table, instance, &t->keyed, &t->err) == 0 &&
        can_be_read(t, table) == 0)
        return t;
    *ret_error = mem_strdup(t->err.text);
    lapse_table_close(t);
    return NULL;
}

void lapse_table_close(struct lapse_table *t)
{
    if (!t)
        return;
    keyed_release(&t->keyed);
    store_close(t->store);
    free(t);
}

const char *lapse_table_error(const struct lapse_table *t)
{
    return t->err.text;
}

void lapse_table_storage(struct lapse_table *t, struct lapse_storage *ret)
{
    *ret = (struct lapse_storage){get, put, put_batch, delete_key, delete_all, list, t};
}

void lapse_table_alarm(struct lapse_table *t, struct lapse_alarm *ret)
{
    *ret = (struct lapse_alarm){schedule, cancel, alarm_get, t};
}

int lapse_table_rings(struct lapse_table *t, int64_t now_ms, int *ret_rings)
{
    int set;
    int64_t at;
    if (alarm_get(t, &set, &at) < 0)
        return -1;
    *ret_rings = set && now_ms >= at;
    return *ret_rings ? cancel(t) : 0;
}
