/* lease: one sweeper at a time for an exclusive scheduler. See lease.h. */
#include "guard/lease.h"

#include <stdio.h>
#include <string.h>

#include "store/retry.h"

enum { PARTS = 3 }; /* renewed when one of so many is over */

void lease_init(struct lease *l, struct store *s, const char *scheduler, int64_t us)
{
    *l = (struct lease){.store = s, .scheduler = scheduler, .us = us};
    own_process(l->owner, sizeof(l->owner));
}

const char *lease_obstacle(const struct store *s, const char **ret_fix)
{
    *ret_fix = "run lapse install";
    if (!s->own.version)
        return "the lease of an exclusive scheduler needs lapse's own tables, which are not installed";
    if (s->own.version < OWN_SINCE_LEASES)
        return "lapse's own tables are of an earlier version, which has no leases for exclusive schedulers";
    *ret_fix = s->own.hint;
    return s->own.lacks_lease;
}

/* A server that ends idle transactions does so no later than the lease. */
static void set_held(struct lease *l, bool held)
{
    l->held = held;
    l->renewed_us = when_monotonic_us();
    l->store->idle_most_us = held ? l->us : 0;
}

static bool lost_connection(const struct err *e)
{
    return e->kind == ERR_LOST || e->kind == ERR_COMMIT_UNKNOWN;
}

static int ask_once(struct lease *l, struct err *e)
{
    return l->store->ops->own->lease_take(l->store, l->scheduler, l->owner, l->us, &l->row, e);
}

static int ask_for_it(struct lease *l, struct err *e)
{
    l->store->idle_most_us = l->us; /* asking is a transaction, too */
    int r = ask_once(l, e);
    if (r < 0 && lost_connection(e) && retry_reconnect(l->store, &l->store->patience, e))
        r = ask_once(l, e); /* what may be ours already is ours to take */
    set_held(l, r == 0 && strcmp(l->row.owner, l->owner) == 0);
    if (r < 0 || l->held)
        return r;
    char until[WHEN_TEXT_SIZE] = "";
    return err_set(e, ERR_HELD, "the lease of '%s' is held by %s%s%s%s", l->scheduler, l->row.owner,
                   l->row.ends ? " until " : ", and its end cannot be read",
                   l->row.ends ? when_format_local(l->row.until, 0, until) : "", l->row.ends ? " UTC" : "");
}

int lease_take(struct lease *l, struct err *e)
{
    if (!l->held)
        return ask_for_it(l, e);
    if (lease_keep(l, e) == 0)
        return 0;
    return e->kind == ERR_LEASE ? ask_for_it(l, e) : -1;
}

int lease_fence(struct lease *l, struct err *e)
{
    if (l->store->ops->own->lease_fence(l->store, l->scheduler, l->owner, l->row.token, l->us, e) < 0) {
        if (e->kind == ERR_LEASE)
            set_held(l, false);
        return -1;
    }
    l->renewed_us = when_monotonic_us();
    return 0;
}

int lease_keep(struct lease *l, struct err *e)
{
    if (l->held && when_monotonic_us() - l->renewed_us < l->us / PARTS)
        return 0;
    int r = lease_fence(l, e);
    if (r < 0 && lost_connection(e) && retry_reconnect(l->store, &l->store->patience, e))
        r = lease_fence(l, e);
    return r;
}

int64_t lease_rest_us(const struct lease *l)
{
    int64_t rest = l->us / PARTS - (when_monotonic_us() - l->renewed_us);
    return !l->held ? INT64_MAX : rest > 0 ? rest : 0;
}

void lease_unite(struct lease *l, const struct lease *copy)
{
    if (l->held && !copy->held)
        set_held(l, false);
    if (l->renewed_us < copy->renewed_us)
        l->renewed_us = copy->renewed_us;
}

static int drop_once(struct lease *l, struct err *e)
{
    return l->store->ops->own->lease_drop(l->store, l->scheduler, l->owner, l->row.token, e);
}

int lease_drop(struct lease *l, struct err *e)
{
    if (!l->held)
        return 0;
    set_held(l, false);
    int r = drop_once(l, e);
    if (r < 0 && lost_connection(e) && retry_reconnect(l->store, &l->store->patience, e))
        r = drop_once(l, e);
    return r;
}
