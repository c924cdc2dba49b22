/* gauge: a look now and then at how much is due, for the metrics. */
#include <string.h>

#include "daemon/internal.h"

/* Who looks at a table while it is swept would only see the sweep, and be in its way. */
static bool is_swept(void *daemon, const struct policy *p)
{
    struct lapse_daemon *d = daemon;
    bool swept = false;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->n_workers && !swept; i++)
        swept = d->workers[i]->beat.working && strcmp(d->workers[i]->name, p->scheduler) == 0;
    pthread_mutex_unlock(&d->lock);
    return swept;
}

static void *open_gauge(struct lapse_daemon *d, const struct contract *c)
{
    const struct gauge_options o = {.busy = is_swept, .say = daemon_say_lent, .context = d};
    return gauge_new(c, d->meter, &o);
}

static int64_t turn(void *gauge, bool *ret_lost)
{
    int64_t us = gauge_turn(gauge, when_monotonic_us());
    *ret_lost = gauge_lost(gauge);
    return us;
}

static void close_gauge(void *gauge)
{
    gauge_free(gauge);
}

static void interrupt(void *gauge)
{
    gauge_interrupt(gauge);
}

const struct side_kind side_gauge = {"how much is due is not measured", open_gauge, turn, close_gauge,
                                     interrupt};
