/* store: finding the adapter for a DSN, and the small values that cross the seam. See store.h. */
#include "store.h"

#include <stdlib.h>
#include <string.h>

/* Adding an engine is one line here. Several schemes may name one engine. */
static const struct {
    const char *scheme;          /* with its colon */
    const struct store_ops *ops; /* NULL: known, not part of this version */
    bool file;                   /* a path follows, nothing else */
} engines[] = {
    {"sqlite:", &store_sqlite, true},
    {"postgresql://", &store_postgres, false},
    {"postgres://", &store_postgres, false},
    {"mariadb://", NULL, false},
    {"mysql://", NULL, false},
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

/* A DSN's secrets stand before an @ behind a colon, or behind the ? as a parameter; a parameter's name may be
 * written with %. Where it is not plain that there is none, there may be one. */
bool store_may_hold_secret(const char *dsn)
{
    const char *host = strstr(dsn, "://");
    for (size_t i = 0; i < COUNT_OF(engines); i++)
        if (engines[i].file && strncmp(dsn, engines[i].scheme, strlen(engines[i].scheme)) == 0)
            return false;
    if (!host)
        return true;
    host += 3;
    const char *at = strrchr(host, '@'), *query = strchr(host, '?');
    if (at && memchr(host, ':', (size_t)(at - host)))
        return true;
    return query && (strcasestr(query, "pass") || strcasestr(query, "secret") || strchr(query, '%') ||
                     strcasestr(query, "token") || strchr(query, '@'));
}

bool store_interrupted(const struct store *s)
{
    return s->interrupted && atomic_load(s->interrupted);
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

bool time_is_plausible(int64_t count, int64_t unit_us)
{
    const int64_t from_s = INT64_C(631152000), to_s = INT64_C(4102444800); /* 1990 to 2100 */
    int64_t per_s = US_PER_S / unit_us;
    return count >= from_s * per_s && count < to_s * per_s;
}

void rows_release(struct rows *r)
{
    arena_free(r->arena);
    free(r->cells);
    *r = (struct rows){0};
}

void rows_push(struct rows *r, const struct value *cells)
{
    if (!r->arena)
        r->arena = arena_new();
    bool full = (r->n_rows & (r->n_rows - 1)) == 0; /* room is the next power of two */
    if (full)
        r->cells = mem_grow(r->cells, (r->n_rows ? r->n_rows * 2 : 1) * r->n_columns, sizeof(*r->cells));
    struct value *to = r->cells + r->n_rows * r->n_columns;
    for (size_t i = 0; i < r->n_columns; i++) {
        to[i] = cells[i];
        if (cells[i].text)
            to[i].text = arena_strndup(r->arena, cells[i].text, cells[i].len);
    }
    r->n_rows++;
}

const struct value *rows_at(const struct rows *r, size_t row)
{
    return r->cells + row * r->n_columns;
}

void value_print(const struct value *v, struct text *out)
{
    switch (v->kind) {
    case VALUE_NULL:
        text_add(out, "NULL");
        break;
    case VALUE_INTEGER:
        text_addf(out, "%lld", (long long)v->integer);
        break;
    case VALUE_REAL:
        text_addf(out, "%.17g", v->real);
        break;
    case VALUE_TEXT:
        text_add_n(out, v->text, v->len);
        break;
    case VALUE_BLOB:
        text_add(out, "x'");
        for (size_t i = 0; i < v->len; i++)
            text_addf(out, "%02x", (unsigned)(unsigned char)v->text[i]);
        text_add(out, "'");
        break;
    }
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

void answer_release(struct answer *a)
{
    rows_release(&a->row);
    for (size_t i = 0; i < a->n_waits; i++)
        rows_release(&a->waits[i].keys);
    free(a->waits);
    due_release(&a->goes);
    free(a->times);
    free(a->verdicts);
    *a = (struct answer){0};
}

const struct table *wait_table(const struct wait *w)
{
    return w->rows ? w->rows->table : w->node->table;
}
