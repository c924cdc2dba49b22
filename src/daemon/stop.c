/* stop: the end: after the current batches, or at once.
 *
 * At once, the statements that run are cancelled and their transactions rolled back. Where the network is
 * gone, even that has no answer: then the threads are left behind, and the process must end without running
 * what cleans up under them (_exit). That is as safe as a crash: a database rolls back what a process left
 * open, and nothing was counted that was not committed. */
#include "daemon/internal.h"

#define GIVE_UP_US (5 * US_PER_S)

static void say_end(struct lapse_daemon *d, enum event_kind kind, enum event_level level, const char *words)
{
    struct event *ev = event_new(kind, NULL, when_now());
    event_level(ev, level);
    event_message(ev, "%s", words);
    daemon_say(d, ev);
}

void stop_begin(struct lapse_daemon *d)
{
    say_end(d, EVENT_STOPPING, LEVEL_INFO, "stopping after the current batches");
    pthread_mutex_lock(&d->lock);
    atomic_store(&d->stopping, true);
    d->running = false;
    prepare_stop(d);
    side_order_stop(&d->gauge);
    side_interrupt(&d->gauge); /* it only reads */
    side_order_stop(&d->purges);
    side_order_stop(&d->notices);
    side_interrupt(&d->notices);
    for (size_t i = 0; i < d->n_workers; i++)
        worker_order_leave(d->workers[i]);
    pthread_mutex_unlock(&d->lock);
}

/* Once is enough: no tick begins any more. */
void stop_at_once(struct lapse_daemon *d)
{
    if (d->give_up_us)
        return;
    say_end(d, EVENT_STOPPING, LEVEL_WARN, "stopping at once: what runs is rolled back");
    d->give_up_us = when_monotonic_us() + GIVE_UP_US;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->n_workers; i++)
        worker_interrupt(d->workers[i]);
    side_interrupt(&d->purges);
    pthread_mutex_unlock(&d->lock);
}

/* --- the end ---------------------------------------------------------------------------------------------
 */

int64_t stop_wait_us(const struct lapse_daemon *d, int64_t most_us)
{
    if (!d->give_up_us)
        return most_us;
    int64_t left = d->give_up_us - when_monotonic_us();
    return left < 0 ? 0 : left < most_us ? left : most_us;
}

bool stop_is_over(struct lapse_daemon *d)
{
    if (!atomic_load(&d->stopping))
        return false;
    pthread_mutex_lock(&d->lock);
    bool over = !d->n_workers && (!d->prepare.running || d->prepare.done) && side_is_over(&d->gauge) &&
                side_is_over(&d->purges) && side_is_over(&d->notices);
    pthread_mutex_unlock(&d->lock);
    d->abandoned = !over && d->give_up_us && when_monotonic_us() >= d->give_up_us;
    return over || d->abandoned;
}

enum lapse_exit stop_end(struct lapse_daemon *d)
{
    if (d->abandoned) {
        say_end(d, EVENT_STOPPED, LEVEL_WARN, "stopped at once: the database gave no answer");
        return LAPSE_STOPPED;
    }
    prepare_join(d);
    side_join(&d->gauge);
    side_join(&d->purges);
    side_join(&d->notices);
    run_rows_release(&d->prepare.runs);
    int code = d->prepare.exit;
    say_end(d, EVENT_STOPPED, LEVEL_INFO, "stopped");
    return (enum lapse_exit)code;
}
