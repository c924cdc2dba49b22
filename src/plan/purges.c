/* purges: which row decides, and when. See purges.h. */
#include "plan/purges.h"

#include <stdlib.h>
#include <string.h>

void purge_rows_release(struct purge_rows *r)
{
    arena_free(r->arena);
    *r = (struct purge_rows){0};
}

void purge_groups_release(struct purge_groups *g)
{
    arena_free(g->arena);
    *g = (struct purge_groups){0};
}

const struct purge_space *purge_space_named(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->n_purges; i++)
        if (strcmp(c->purges[i].name, name) == 0)
            return &c->purges[i];
    return NULL;
}

/* --- when a purge is due ---------------------------------------------------------------------------------
 */

const char *purge_reason(const char *reason)
{
    return reason ? reason : "unknown";
}

bool purge_takes(const struct purge_space *s, const char *reason)
{
    for (size_t i = 0; i < s->n_only; i++)
        if (strcmp(s->only[i], purge_reason(reason)) == 0)
            return true;
    return s->n_only == 0;
}

bool purge_counts(const struct purge_space *s, const struct purge_row *r)
{
    return r->odd || purge_takes(s, r->reason);
}

struct span purge_delay(const struct purge_space *s, const char *reason)
{
    for (size_t i = 0; i < s->n_retention; i++)
        if (strcmp(s->retention[i].reason, purge_reason(reason)) == 0)
            return s->retention[i].span;
    return s->delay;
}

/* As it was asked for, whether or not it was tried since. */
static bool asked_for_at(const struct purge_space *s, const struct purge_row *r, instant *ret)
{
    struct span delay = purge_delay(s, r->reason);
    *ret = r->at.at;
    if (r->at.there)
        return r->at.usable;
    return r->scheduled.usable && delay.kind != SPAN_NEVER && add_i64(r->scheduled.at, delay.us, ret);
}

/* A retry only ever puts it off: the contract may wait longer by now than when the first attempt failed. */
bool purge_due_at(const struct purge_space *s, const struct purge_row *r, instant *ret)
{
    if (r->parked.there || r->odd || !asked_for_at(s, r, ret))
        return false;
    if (r->retry.there && r->retry.at > *ret)
        *ret = r->retry.at;
    return !r->retry.there || r->retry.usable;
}

/* 2 s, 4 s, 8 s … 17 minutes after the ninth. */
int64_t purge_backoff_us(int64_t attempts)
{
    return (INT64_C(1) << (attempts < 1 ? 1 : attempts > 10 ? 10 : attempts)) * US_PER_S;
}

int purge_compare(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    size_t len = a->len < b->len ? a->len : b->len;
    int order = len ? memcmp(a->text, b->text, len) : 0;
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static void print_bytes(const struct value *v, struct text *out)
{
    text_add(out, "x'");
    for (size_t i = 0; i < v->len; i++)
        text_addf(out, "%02x", (unsigned)(unsigned char)v->text[i]);
    text_add(out, "'");
}

bool purge_name_print(const struct value *v, struct text *out)
{
    if (v->kind != VALUE_TEXT) {
        print_bytes(v, out);
        return false;
    }
    bool whole = true;
    for (size_t i = 0, n; i < v->len; i += n) {
        const char *zero = memchr(v->text + i, 0, v->len - i);
        n = zero ? (size_t)(zero - v->text) - i : v->len - i;
        text_add_n(out, v->text + i, n);
        if (!zero)
            continue;
        text_add(out, "\\x00");
        whole = false;
        n++;
    }
    return whole;
}

/* A time that cannot be told is before all others: what is in doubt stays. */
static int compare_rows(const void *pa, const void *pb)
{
    const struct purge_row *a = pa, *b = pb;
    int order = purge_compare(&a->instance, &b->instance);
    if (!order)
        order = (int)a->scheduled.usable - (int)b->scheduled.usable;
    if (!order && a->scheduled.usable)
        order = (a->scheduled.at > b->scheduled.at) - (a->scheduled.at < b->scheduled.at);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

void purge_rows_sort(struct purge_rows *r)
{
    size_t sorted = 1; /* they mostly are, the second time */
    while (sorted < r->n && compare_rows(&r->list[sorted - 1], &r->list[sorted]) <= 0)
        sorted++;
    if (sorted < r->n)
        qsort(r->list, r->n, sizeof(*r->list), compare_rows);
}

/* Of a part of the rows, only the first that counts can be the one that decides: all others go, whatever the
 * rest is. Those that somebody else holds are not looked at, as he may be about to delete them. */
static void judge_part(const struct purge_space *s, struct purge_case *c)
{
    c->verdict = PURGE_THIN;
    for (size_t i = 0; i < c->n && !c->decides; i++)
        if (c->rows[i].locked && purge_counts(s, &c->rows[i]))
            c->decides = &c->rows[i];
}

static void judge_case(const struct purge_space *s, struct purge_case *c, instant now)
{
    instant due;
    bool all_locked = true;
    for (size_t i = 0; i < c->n; i++) {
        all_locked = all_locked && c->rows[i].locked;
        if (!c->decides && purge_counts(s, &c->rows[i]))
            c->decides = &c->rows[i];
    }
    if (!all_locked)
        c->verdict = PURGE_BUSY;
    else if (!c->decides)
        c->verdict = PURGE_REMOVE;
    else if (c->decides->odd && !c->decides->parked.there) {
        c->verdict = PURGE_MISFIT;
        c->why = c->decides->instance.kind == VALUE_NULL
                     ? "the instance is longer than 1,000,000 characters: delete this row of lapse_purge"
                     : "the reason is no text, holds a zero byte or is longer than 2,000 characters, so how "
                       "long to "
                       "wait is not known: delete this row of lapse_purge and schedule the purge again";
    } else
        c->verdict = purge_due_at(s, c->decides, &due) && due <= now ? PURGE_EXECUTE : PURGE_WAIT;
}

struct purge_cases purge_judge(const struct purge_space *s, struct purge_rows *rows, instant now)
{
    struct purge_cases all = {0};
    purge_rows_sort(rows);
    for (size_t i = 0; i < rows->n;) {
        size_t n = 1;
        while (i + n < rows->n && purge_compare(&rows->list[i].instance, &rows->list[i + n].instance) == 0)
            n++;
        all.list = arena_push(rows->arena, all.list, all.n, sizeof(*all.list));
        all.list[all.n] = (struct purge_case){.rows = &rows->list[i], .n = n};
        if (rows->crowded)
            judge_part(s, &all.list[all.n++]);
        else
            judge_case(s, &all.list[all.n++], now);
        i += n;
    }
    return all;
}

bool purge_goes(const struct purge_case *c, const struct purge_row *r)
{
    switch (c->verdict) {
    case PURGE_EXECUTE:
    case PURGE_REMOVE:
        return true;
    case PURGE_WAIT:
    case PURGE_MISFIT:
        return r != c->decides;
    case PURGE_THIN:
        return r->locked && r != c->decides;
    case PURGE_BUSY:
        break;
    }
    return false;
}

static int compare_case(const void *instance, const void *c)
{
    return purge_compare(instance, &((const struct purge_case *)c)->rows[0].instance);
}

const struct purge_case *purge_case_of(const struct purge_cases *c, const struct value *instance)
{
    return c->n ? bsearch(instance, c->list, c->n, sizeof(*c->list), compare_case) : NULL;
}

void purge_line(const struct purge_space *s, const struct value *instance, const char *reason,
                struct text *out)
{
    text_add(out, "[");
    text_add(out, s->label);
    text_add(out, "] Purged data for ");
    purge_name_print(instance, out);
    text_add(out, " (");
    text_add(out, purge_reason(reason));
    text_add(out, ")");
}
