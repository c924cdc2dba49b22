/* store: finding the adapter for a DSN, and the small values that cross the seam. See store.h. */
#include "store.h"

#include <stdlib.h>
#include <string.h>

/* Adding an engine is one line here. Several schemes may name one engine. */
static const struct {
    const char *scheme;          /* with its colon */
    const struct store_ops *ops; /* NULL: known, not part of this version */
} engines[] = {
    {"sqlite:", &store_sqlite},
    {"postgresql://", &store_postgres},
    {"postgres://", &store_postgres},
    {"mariadb://", NULL},
    {"mysql://", NULL},
};

int store_open(const char *dsn, bool reading, struct store **ret, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        if (strncmp(dsn, engines[i].scheme, strlen(engines[i].scheme)) != 0)
            continue;
        if (!engines[i].ops)
            return err_set(e, ERR_USAGE,
                           "store: %s… is not part of this version; there are sqlite:PATH and postgresql://…",
                           engines[i].scheme);
        return engines[i].ops->open(dsn, reading, ret, e);
    }
    return err_set(e, ERR_USAGE, "store: the scheme is not known; there are sqlite:PATH and postgresql://…");
}

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

void store_close_p(struct store **s)
{
    store_close(*s);
    *s = NULL;
}

void cursor_release(struct cursor *c)
{
    for (size_t i = 0; i < c->n; i++)
        free((char *)c->values[i].text);
    free(c->values);
    *c = (struct cursor){0};
}

void cursor_set(struct cursor *c, const struct value *values, size_t n)
{
    struct cursor fresh = {.set = true, .n = n, .values = mem_alloc(n * sizeof(*fresh.values))};
    for (size_t i = 0; i < n; i++) {
        fresh.values[i] = values[i];
        if (!values[i].text)
            continue;
        char *copy = mem_alloc(values[i].len + 1);
        memcpy(copy, values[i].text, values[i].len);
        fresh.values[i].text = copy;
    }
    cursor_release(c);
    *c = fresh;
}

void cursor_copy(struct cursor *to, const struct cursor *from)
{
    if (from->set)
        cursor_set(to, from->values, from->n);
    else
        cursor_release(to);
}

void slice_init(struct slice *s, const struct plan *p)
{
    *s = (struct slice){0};
    s->gone = mem_alloc(p->n_slots * sizeof(*s->gone));
    s->detached = mem_alloc(p->n_detach_slots * sizeof(*s->detached));
}

void slice_release(struct slice *s)
{
    free(s->gone);
    free(s->detached);
    free(s->key);
    cursor_release(&s->end);
    *s = (struct slice){0};
}

void due_init(struct due *d, const struct plan *p)
{
    *d = (struct due){0};
    d->gone = mem_alloc(p->n_slots * sizeof(*d->gone));
    d->detached = mem_alloc(p->n_detach_slots * sizeof(*d->detached));
}

void due_release(struct due *d)
{
    free(d->gone);
    free(d->detached);
    *d = (struct due){0};
}
