/* store: finding the adapter for a DSN, and the small values that cross the seam. See store.h. */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

/* Adding an engine is one line here. Several schemes may name one engine. */
static const struct {
    const char *scheme; /* with its colon */
    const struct store_ops *ops;
    bool file; /* a path follows, nothing else */
} engines[] = {
    {"sqlite:", &store_sqlite, true},        {"postgresql://", &store_postgres, false},
    {"postgres://", &store_postgres, false}, {"mariadb://", &store_mariadb, false},
    {"mysql://", &store_mariadb, false},
};

int store_open(const char *dsn, bool reading, struct store **ret, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        if (strncmp(dsn, engines[i].scheme, strlen(engines[i].scheme)) != 0)
            continue;
        if (engines[i].ops->open(dsn, reading, ret, e) < 0)
            return -1;
        (*ret)->dsn = mem_strdup(dsn);
        (*ret)->purpose = grants_for_name(reading ? FOR_READ : FOR_SWEEP);
        return 0;
    }
    return err_set(e, ERR_USAGE,
                   "store: the scheme is not known; there are sqlite:PATH, postgresql://… and mariadb://…");
}

/* A connection that is being made in a thread of its own, since clients of databases wait for names, servers
 * and certificates in ways that nothing ends. Who comes last frees it. */
struct opening {
    pthread_mutex_t lock;
    char *dsn;
    bool reading, done, left; /* left: nobody waits for it any more */
    int r;
    struct store *store;
    struct err err;
};

static void opening_free(struct opening *o)
{
    store_close(o->store);
    pthread_mutex_destroy(&o->lock);
    free(o->dsn);
    free(o);
}

static void *open_aside(void *opening)
{
    struct opening *o = opening;
    struct store *store = NULL;
    struct err e = ERR_INIT;
    int r = store_open(o->dsn, o->reading, &store, &e);
    pthread_mutex_lock(&o->lock);
    o->r = r;
    o->store = r == 0 ? store : NULL;
    o->err = e;
    o->done = true;
    bool left = o->left;
    pthread_mutex_unlock(&o->lock);
    if (left)
        opening_free(o);
    return NULL;
}

static bool is_open(struct opening *o)
{
    pthread_mutex_lock(&o->lock);
    bool done = o->done;
    pthread_mutex_unlock(&o->lock);
    return done;
}

/* Whether it was done after all. */
static bool leave(struct opening *o)
{
    pthread_mutex_lock(&o->lock);
    o->left = !o->done;
    bool done = o->done;
    pthread_mutex_unlock(&o->lock);
    return done;
}

int store_open_patiently(const char *dsn, bool reading, const struct patience *p, struct store **ret,
                         struct err *e)
{
    static const int64_t step_us[] = {US_PER_MS / 2, 5 * US_PER_MS};
    pthread_t thread;
    struct opening *o = mem_alloc(sizeof(*o));
    pthread_mutex_init(&o->lock, NULL);
    o->dsn = mem_strdup(dsn);
    o->reading = reading;
    bool aside = p->stop && thread_begin(&thread, open_aside, o) == 0;
    if (!aside)
        open_aside(o);
    for (int waited = 0; !is_open(o) && !p->stop(p->context); waited++)
        when_sleep_us(step_us[waited > 20]);
    if (!leave(o)) { /* the thread frees it */
        pthread_detach(thread);
        return err_set(e, ERR_STOPPED, "stopped when asked to");
    }
    if (aside)
        pthread_join(thread, NULL); /* what its libraries keep for it is theirs until its very end */
    int r = o->r;
    if (r == 0) {
        *ret = o->store;
        (*ret)->asks = *p;
        o->store = NULL;
    } else {
        *e = o->err;
    }
    opening_free(o);
    return r;
}

int store_another(const struct store *terms, struct store **ret, struct err *e)
{
    struct store *other;
    if (store_open(terms->dsn, false, &other, e) < 0)
        return -1;
    other->own_schema = terms->own_schema;
    other->own_owner = terms->own_owner;
    other->own = terms->own;
    other->idle_most_us = terms->idle_most_us;
    other->marks = terms->marks;
    other->interrupted = terms->interrupted;
    other->asks = terms->asks;
    *ret = other;
    return 0;
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

bool patience_ends(const struct patience *p)
{
    return p->stop && p->stop(p->context);
}

bool store_gives_up(const struct store *s)
{
    return store_interrupted(s) ||
           (s->trying && (patience_ends(s->trying) || when_monotonic_us() >= s->trying_until_us));
}

void store_grants_hint(const struct store *s, struct text *out)
{
    if (*s->role && s->purpose)
        text_addf(out, "role '%s': 'lapse install --grants %s --for %s' prints what it needs", s->role,
                  s->role, s->purpose);
}

bool store_interrupted(const struct store *s)
{
    if (s->interrupted && atomic_load(s->interrupted))
        return true;
    return !s->writes && s->asks.stop && s->asks.stop(s->asks.context);
}

static struct store_marks *marks_of(struct store *s)
{
    return s->marks ? s->marks : &s->own_marks;
}

void store_mark_begin(struct store *s)
{
    if (!s->marking)
        atomic_fetch_add(&marks_of(s)->begun, 1);
    s->marking = true;
}

void store_mark(struct store *s)
{
    store_mark_begin(s);
    atomic_fetch_add(&marks_of(s)->done, 1);
    s->marking = false;
}

void store_unmark(struct store *s)
{
    if (s->marking)
        atomic_fetch_sub(&marks_of(s)->begun, 1);
    s->marking = false;
}

int64_t store_marks_done(struct store *s)
{
    return atomic_load(&marks_of(s)->done);
}

/* What was begun by now, and was not done before, may have been counted. */
void store_take_marks_off(struct store *s, int64_t counted, int64_t done, struct pressure *ret)
{
    int64_t under_way = atomic_load(&marks_of(s)->begun) - done;
    ret->others = counted - done;
    ret->under_way = under_way > 0 ? under_way : 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    char *dsn = s->dsn;
    s->ops->close(s);
    free(dsn);
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

static void forget_runs(struct rows *r)
{
    if (r->runs) {
        free(r->runs->first);
        free(r->runs->last);
    }
    mem_free_p(&r->runs);
}

static void forget_sent(struct rows *r)
{
    for (size_t i = 0; r->sent && i < N_ROWS_PARTS * r->n_columns; i++)
        text_release(&r->sent[i]);
    mem_free_p(&r->sent);
    forget_runs(r);
}

void rows_release(struct rows *r)
{
    forget_sent(r);
    arena_free(r->arena);
    free(r->cells);
    *r = (struct rows){0};
}

void rows_push(struct rows *r, const struct value *cells)
{
    if (!r->arena)
        r->arena = arena_new();
    forget_sent(r);
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

char *rows_make(struct rows *r, size_t n_columns, size_t n_rows, size_t bytes)
{
    size_t room = 1;
    while (room < n_rows)
        room *= 2;
    *r = (struct rows){.arena = arena_new(), .n_columns = n_columns, .n_rows = n_rows};
    r->cells = n_rows ? mem_grow(NULL, room * n_columns, sizeof(*r->cells)) : NULL;
    return arena_alloc(r->arena, bytes);
}

const struct value *rows_at(const struct rows *r, size_t row)
{
    return r->cells + row * r->n_columns;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool number_of(const struct value *v, enum value_kind given_as, int64_t *ret)
{
    char *end = NULL;
    if (v->kind != given_as || (given_as == VALUE_TEXT && !v->len))
        return false;
    if (given_as == VALUE_INTEGER) {
        *ret = v->integer;
        return true;
    }
    errno = 0;
    *ret = strtoll(v->text, &end, 10);
    return errno == 0 && (size_t)(end - v->text) == v->len;
}

/* The numbers, in order, become the first ones of their runs, and `last` the last ones; returns how many runs
 * there are. */
static size_t join_runs(int64_t *first, int64_t *last, size_t n)
{
    size_t runs = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t number = first[i];
        if (runs && (number == last[runs - 1] || number - 1 == last[runs - 1])) {
            last[runs - 1] = number;
            continue;
        }
        first[runs] = last[runs] = number;
        runs++;
    }
    return runs;
}

const struct runs *rows_runs(struct rows *r, size_t column, enum value_kind given_as)
{
    enum { LEAST = 4, SHARE = 4 };
    size_t n = 0;
    if (r->runs && r->runs->column == column)
        return r->runs->n ? r->runs : NULL;
    forget_runs(r);
    struct runs *runs = r->runs = mem_alloc(sizeof(*runs));
    *runs = (struct runs){.column = column};
    if (r->n_rows < LEAST)
        return NULL;
    runs->first = mem_alloc(r->n_rows * sizeof(*runs->first));
    runs->last = mem_alloc(r->n_rows * sizeof(*runs->last));
    while (n < r->n_rows && number_of(&rows_at(r, n)[column], given_as, &runs->first[n]))
        n++;
    if (n < r->n_rows)
        return NULL;
    qsort(runs->first, n, sizeof(*runs->first), by_number);
    size_t joined = join_runs(runs->first, runs->last, n);
    runs->n = joined * SHARE <= n ? joined : 0;
    return runs->n ? runs : NULL;
}

bool value_same(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case VALUE_NULL:
        return true;
    case VALUE_INTEGER:
        return a->integer == b->integer;
    case VALUE_REAL:
        return memcmp(&a->real, &b->real, sizeof(a->real)) == 0;
    case VALUE_TEXT:
    case VALUE_BLOB:
        break;
    }
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

void value_print(const struct value *v, struct text *out)
{
    switch (v->kind) {
    case VALUE_NULL:
        text_add(out, "NULL");
        break;
    case VALUE_INTEGER:
        text_add_i64(out, v->integer);
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

bool cursor_same(const struct cursor *a, const struct cursor *b)
{
    size_t same = 0;
    while (same < a->n && same < b->n && value_same(&a->values[same], &b->values[same]))
        same++;
    return a->set == b->set && same == a->n && same == b->n;
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
    s->split_most = INT64_MAX;
}

void slice_release(struct slice *s)
{
    free(s->gone);
    free(s->detached);
    free(s->key);
    rows_release(&s->root);
    rows_release(&s->some);
    rows_release(&s->put_off);
    rows_release(&s->heavy);
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
