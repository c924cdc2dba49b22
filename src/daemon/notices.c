/* notices: hears applications say that they scheduled a purge, and has the purges looked at at once.
 * Nothing depends on it: what is not heard is found at the next look, a second later. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/internal.h"

static const int64_t HEAR_US = 60 * US_PER_S, /* then whether the database is still there */
    REST_US = 50 * US_PER_MS;                 /* between two looks, however often somebody notifies */

struct notices_work {
    struct lapse_daemon *daemon;
    const struct contract *contract;
    struct store *store; /* NULL: not open */
    int wake_fd;
    atomic_bool interrupted;
    int fails; /* in a row */
};

static bool is_wanted(const struct contract *c)
{
    for (size_t i = 0; i < c->n_purges; i++)
        if (c->purges[i].notify)
            return true;
    return false;
}

static int hear(struct notices_work *w, bool *ret_heard, struct err *e)
{
    if (!w->store && store_open(w->contract->store, true, &w->store, e) < 0)
        return -1;
    w->store->interrupted = &w->interrupted;
    if (!w->store->ops->hear) /* check says so */
        return err_set(e, ERR_FINDINGS, "%s has no notifications", w->store->ops->scheme);
    return w->store->ops->hear(w->store, w->fails ? 0 : HEAR_US, w->wake_fd, ret_heard, e);
}

static int64_t fail(struct notices_work *w, const struct err *e)
{
    enum { DOUBLED = 6 };
    store_close(w->store);
    w->store = NULL;
    if (e->kind == ERR_STOPPED)
        return 0;
    if (e->kind == ERR_FINDINGS)
        return INT64_MAX;
    if (!w->fails)
        daemon_remark(w->daemon, LEVEL_WARN,
                      "notifications of purges are not heard, which are looked for every second: %s",
                      e->text);
    return US_PER_S << (w->fails < DOUBLED ? w->fails++ : DOUBLED);
}

static int64_t turn(void *work, bool *ret_lost)
{
    struct notices_work *w = work;
    struct err e = ERR_INIT;
    bool heard = false;
    *ret_lost = false; /* it is said here */
    if (!is_wanted(w->contract))
        return INT64_MAX;
    if (hear(w, &heard, &e) < 0)
        return fail(w, &e);
    if (w->fails)
        daemon_remark(w->daemon, LEVEL_INFO, "notifications of purges are heard again");
    bool missed = w->fails > 0;
    w->fails = 0;
    pthread_mutex_lock(&w->daemon->lock);
    if (heard || missed)
        side_ask(&w->daemon->purges);
    pthread_mutex_unlock(&w->daemon->lock);
    return heard ? REST_US : 0;
}

static void *open_notices(struct lapse_daemon *d, const struct contract *c)
{
    struct notices_work *w = mem_alloc(sizeof(*w));
    w->daemon = d;
    w->contract = c;
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_init(&w->interrupted, false);
    return w;
}

static void close_notices(void *work)
{
    struct notices_work *w = work;
    store_close(w->store);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    mem_free_p(&w);
}

static void interrupt(void *work)
{
    struct notices_work *w = work;
    const uint64_t one = 1;
    atomic_store(&w->interrupted, true);
    if (write(w->wake_fd, &one, sizeof(one)) < 0)
        return; /* it is full: it can be read */
}

const struct side_kind side_notices = {"notifications of purges are not heard", open_notices, turn,
                                       close_notices, interrupt};
