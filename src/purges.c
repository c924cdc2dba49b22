/* purges: which row decides, and when. See purges.h. */
#include "purges.h"

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

struct span purge_delay(const struct purge_space *s, const char *reason)
{
    for (size_t i = 0; i < s->n_retention; i++)
        if (strcmp(s->retention[i].reason, purge_reason(reason)) == 0)
            return s->retention[i].span;
    return s->delay;
}

bool purge_due_at(const struct purge_space *s, const struct purge_row *r, instant *ret)
{
    const struct purge_time *own = r->retry.there ? &r->retry : &r->at;
    struct span delay = purge_delay(s, r->reason);
    if (r->parked.there)
        return false;
    if (own->there) {
        *ret = own->at;
        return own->usable;
    }
    return r->scheduled.usable && delay.kind != SPAN_NEVER && add_i64(r->scheduled.at, delay.us, ret);
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

static void judge_case(const struct purge_space *s, struct purge_case *c, instant now)
{
    instant due;
    bool all_locked = true;
    for (size_t i = 0; i < c->n; i++) {
        all_locked = all_locked && c->rows[i].locked;
        if (!c->decides && purge_takes(s, c->rows[i].reason))
            c->decides = &c->rows[i];
    }
    if (!all_locked)
        c->verdict = PURGE_BUSY;
    else if (!c->decides)
        c->verdict = PURGE_REMOVE;
    else
        c->verdict = purge_due_at(s, c->decides, &due) && due <= now ? PURGE_EXECUTE : PURGE_WAIT;
}

struct purge_cases purge_judge(const struct purge_space *s, struct purge_rows *rows, instant now)
{
    struct purge_cases all = {0};
    if (rows->n)
        qsort(rows->list, rows->n, sizeof(*rows->list), compare_rows);
    for (size_t i = 0; i < rows->n;) {
        size_t n = 1;
        while (i + n < rows->n && purge_compare(&rows->list[i].instance, &rows->list[i + n].instance) == 0)
            n++;
        all.list = arena_push(rows->arena, all.list, all.n, sizeof(*all.list));
        all.list[all.n] = (struct purge_case){.rows = &rows->list[i], .n = n};
        judge_case(s, &all.list[all.n++], now);
        i += n;
    }
    return all;
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
    text_addf(out, "[%s] Purged data for ", s->label);
    text_add_n(out, instance->text ? instance->text : "", instance->len);
    text_addf(out, " (%s)", purge_reason(reason));
}
