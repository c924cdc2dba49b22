/* memory: the storage and the alarm of an instance in memory; and the system's clock. See
 * lapse_purge.h. */
#include <stdlib.h>
#include <string.h>

#include "lapse_purge.h"
#include "time/when.h"

struct lapse_memory {
    struct pair {
        char *key;
        void *value;
        size_t len;
    } * pairs;
    size_t n;
    bool set;
    int64_t at_ms;
};

static struct pair *find(const struct lapse_memory *m, const char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->pairs[i].key, key))
            return &m->pairs[i];
    return NULL;
}

static void *copy(const void *value, size_t len)
{
    void *to = mem_alloc(len + 1);
    if (len)
        memcpy(to, value, len);
    return to;
}

static int get(void *context, const char *key, void **ret_value, size_t *ret_len)
{
    const struct pair *p = find(context, key);
    *ret_value = p ? copy(p->value, p->len) : NULL;
    *ret_len = p ? p->len : 0;
    return 0;
}

static int put(void *context, const char *key, const void *value, size_t len)
{
    struct lapse_memory *m = context;
    struct pair *p = find(m, key);
    if (!p) {
        m->pairs = mem_grow(m->pairs, m->n + 1, sizeof(*m->pairs));
        p = &m->pairs[m->n++];
        *p = (struct pair){.key = mem_strdup(key)};
    }
    void *to = copy(value, len); /* first: it may be the value that is there */
    free(p->value);
    p->value = to;
    p->len = len;
    return 0;
}

static int put_batch(void *context, const struct lapse_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(context, entries[i].key, entries[i].value, entries[i].len);
    return 0;
}

static void drop(struct lapse_memory *m, size_t i)
{
    free(m->pairs[i].key);
    free(m->pairs[i].value);
    memmove(&m->pairs[i], &m->pairs[i + 1], (m->n - i - 1) * sizeof(*m->pairs));
    m->n--;
}

static int delete_key(void *context, const char *key)
{
    struct lapse_memory *m = context;
    const struct pair *p = find(m, key);
    if (p)
        drop(m, (size_t)(p - m->pairs));
    return 0;
}

static int delete_all(void *context)
{
    struct lapse_memory *m = context;
    while (m->n)
        drop(m, m->n - 1);
    return 0;
}

/* From the end: what each deletes moves only what was listed already. */
static int list(void *context, const char *prefix, int (*each)(void *each_context, const char *key),
                void *each_context)
{
    struct lapse_memory *m = context;
    for (size_t i = m->n; i-- > 0;) {
        if (i >= m->n || strncmp(m->pairs[i].key, prefix, strlen(prefix)) != 0)
            continue;
        AUTO(mem_free_p) char *key = mem_strdup(m->pairs[i].key);
        if (each(each_context, key) < 0)
            return -1;
    }
    return 0;
}

static int schedule(void *context, int64_t at_ms)
{
    struct lapse_memory *m = context;
    m->set = true;
    m->at_ms = at_ms;
    return 0;
}

static int cancel(void *context)
{
    struct lapse_memory *m = context;
    m->set = false;
    return 0;
}

static int alarm_get(void *context, int *ret_set, int64_t *ret_at_ms)
{
    const struct lapse_memory *m = context;
    *ret_set = m->set;
    *ret_at_ms = m->at_ms;
    return 0;
}

struct lapse_memory *lapse_memory_new(void)
{
    return mem_alloc(sizeof(struct lapse_memory));
}

void lapse_memory_free(struct lapse_memory *m)
{
    if (!m)
        return;
    delete_all(m);
    free(m->pairs);
    free(m);
}

void lapse_memory_storage(struct lapse_memory *m, struct lapse_storage *ret)
{
    *ret = (struct lapse_storage){get, put, put_batch, delete_key, delete_all, list, m};
}

void lapse_memory_alarm(struct lapse_memory *m, struct lapse_alarm *ret)
{
    *ret = (struct lapse_alarm){schedule, cancel, alarm_get, m};
}

int lapse_memory_rings(struct lapse_memory *m, int64_t now_ms)
{
    bool rings = m->set && now_ms >= m->at_ms;
    m->set = m->set && !rings;
    return rings;
}

static int64_t system_now(void *context)
{
    (void)context;
    return when_floor_div(when_now(), US_PER_MS);
}

void lapse_system_clock(struct lapse_clock *ret)
{
    *ret = (struct lapse_clock){system_now, NULL};
}
