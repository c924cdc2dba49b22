/* fuse: whether a run may delete as much as it would. See fuse.h. */
#include "guard/fuse.h"

#include <string.h>

const char *fuse_verdict_name(enum fuse_verdict v)
{
    static const char *const names[] = {[FUSE_HOLDS] = "holds",
                                        [FUSE_WOULD_TRIP] = "would_trip",
                                        [FUSE_TRIPPED] = "tripped",
                                        [FUSE_ACKED] = "acknowledged"};
    return names[v];
}

/* The most rows that are no more than the fraction. A quotient is compared, not a product: 29 of 100 is 0.29,
 * while 0.29 * 100 is less than 29. */
static int64_t fraction_of(double fraction, int64_t rows)
{
    if (rows <= 0)
        return 0;
    int64_t n = (int64_t)(fraction * (double)rows);
    n = n > rows ? rows : n;
    while (n > 0 && (double)n / (double)rows > fraction)
        n--;
    while (n < rows && (double)(n + 1) / (double)rows <= fraction)
        n++;
    return n;
}

int64_t fuse_most(const struct limits *l, int64_t table_rows)
{
    int64_t most = l->rows < 0 ? INT64_MAX : l->rows;
    if (l->fraction < 0)
        return most;
    int64_t part = fraction_of(l->fraction, table_rows);
    return part < most ? part : most;
}

/* Whether rows of the policy's own table go that are not due by themselves: below others, or owned. */
static bool own_rows_go_along(const struct plan *p, const struct node *n)
{
    if (n->slot == p->root.slot && (n != &p->root || n->n_grow))
        return true;
    for (size_t i = 0; i < n->n_kids; i++)
        if (own_rows_go_along(p, &n->kids[i]))
            return true;
    return false;
}

static int count_due(struct store *s, const struct plan *p, struct fuse *f, struct err *e)
{
    if (!own_rows_go_along(p, &p->root)) {
        int64_t enough = f->most < INT64_MAX ? f->most + 1 : f->most;
        if (s->ops->remaining(s, p, enough, &f->due, e) < 0)
            return -1;
        f->at_least = f->due == enough;
        return 0;
    }
    AUTO(due_release) struct due due;
    due_init(&due, p);
    if (s->ops->count(s, p, &due, e) < 0)
        return -1;
    f->due = due.gone[p->root.slot];
    return 0;
}

int fuse_judge(struct store *s, const struct plan *p, int64_t due, struct fuse *ret, struct err *e)
{
    struct fuse f = {.due = due};
    const struct limits *l = p->policy->limits;
    int64_t size = 0;
    policy_hash(p->policy, f.hash);
    if (s->ops->own->fuse_read(s, p->policy->name, &f.stored, e) < 0)
        return -1;
    if (l->fraction >= 0 && s->ops->size(s, p, &size, e) < 0)
        return err_wrap(e, "limits");
    f.most = fuse_most(l, size);
    bool same = f.stored.there && strcmp(f.stored.hash, f.hash) == 0;
    if (same)
        f.verdict = f.stored.acked ? FUSE_ACKED : FUSE_TRIPPED;
    if (due < 0 && !same && count_due(s, p, &f, e) < 0)
        return err_wrap(e, "limits");
    if (!same && f.due > f.most)
        f.verdict = FUSE_WOULD_TRIP;
    *ret = f;
    return 0;
}

int fuse_trip(struct store *s, const struct plan *p, const struct fuse *f, int64_t rows, struct err *e)
{
    return s->ops->own->fuse_trip(s, p->policy->name, f->hash, rows, f->most, e);
}

int fuse_use(struct store *s, const struct plan *p, const struct fuse *f, struct err *e)
{
    return f->verdict == FUSE_ACKED ? s->ops->own->fuse_use(s, p->policy->name, &f->stored, e) : 0;
}

static void most_words(const struct plan *p, int64_t most, struct text *out)
{
    const struct limits *l = p->policy->limits;
    text_addf(out, "a run may delete %lld", (long long)most);
    if (l->fraction >= 0 && (l->rows < 0 || most < l->rows))
        text_addf(out, ", %g of %s", l->fraction, p->root.table->print);
}

void fuse_words(const struct plan *p, const struct fuse *f, struct text *out)
{
    char at[WHEN_TEXT_SIZE];
    const char *name = p->policy->name;
    switch (f->verdict) {
    case FUSE_HOLDS:
        break;
    case FUSE_WOULD_TRIP:
        text_addf(out, "the fuse would trip: %lld rows%s would go, and ", (long long)f->due,
                  f->at_least ? " or more" : "");
        most_words(p, f->most, out);
        break;
    case FUSE_TRIPPED:
        text_addf(
            out,
            "the fuse tripped at %s UTC: %lld rows or more would have gone, and a run might delete %lld; "
            "nothing is deleted until 'lapse ack %s'",
            when_format_local(f->stored.tripped_at, 0, at), (long long)f->stored.rows,
            (long long)f->stored.most, name);
        break;
    case FUSE_ACKED:
        text_addf(out, "the fuse was acknowledged at %s UTC: the next run may delete more than %lld row%s",
                  when_format_local(f->stored.acked_at, 0, at), (long long)f->most, f->most == 1 ? "" : "s");
        break;
    }
}
