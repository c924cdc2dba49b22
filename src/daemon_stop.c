/* daemon_stop: the end: after the current batches, or at once.
 *
 * At once, the statements that run are cancelled and their transactions rolled back. Where the network is
 * gone, even that has no answer: then the threads are left behind, and the process must end without running
 * what cleans up under them (_exit). That is as safe as a crash: a database rolls back what a process left
 * open, and nothing was counted that was not committed. */
#include "daemon_parts.h"

#define INTERRUPT_US (1500 * US_PER_MS) /* a worker that was between two statements is interrupted again */
#define GIVE_UP_US   (5 * US_PER_S)

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
    for (size_t i = 0; i < d->n_workers; i++)
        worker_order_leave(d->workers[i]);
    pthread_mutex_unlock(&d->lock);
}

/* --- at once ---------------------------------------------------------------------------------------------
 */

static bool all_left(const struct lapse_daemon *d)
{
    for (size_t i = 0; i < d->n_workers; i++)
        if (!d->workers[i]->left)
            return false;
    return true;
}

/* Cancelling may wait for the network, so a thread does it. While it runs, the loop lets no worker go. */
static void *interrupt_all(void *daemon)
{
    struct lapse_daemon *d = daemon;
    pthread_mutex_lock(&d->lock);
    while (!all_left(d)) {
        for (size_t i = 0; i < d->n_workers; i++) {
            pthread_mutex_unlock(&d->lock);
            worker_interrupt(d->workers[i]);
            pthread_mutex_lock(&d->lock);
        }
        if (!all_left(d))
            daemon_cond_wait(&d->stop.wake, &d->lock, INTERRUPT_US);
    }
    d->stop.interrupting = false;
    daemon_wake(d);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

void stop_at_once(struct lapse_daemon *d)
{
    if (d->stop.give_up_us)
        return;
    say_end(d, EVENT_STOPPING, LEVEL_WARN, "stopping at once: what runs is rolled back");
    d->stop.give_up_us = when_monotonic_us() + GIVE_UP_US;
    d->stop.interrupting = true;
    d->stop.started = daemon_thread(&d->stop.thread, interrupt_all, d) == 0;
    if (!d->stop.started)
        d->stop.interrupting = false; /* then they end after their batches, or are left behind */
}

bool stop_interrupts(struct lapse_daemon *d)
{
    if (d->stop.interrupting && all_left(d))
        pthread_cond_signal(&d->stop.wake);
    return d->stop.interrupting;
}

/* --- the end ---------------------------------------------------------------------------------------------
 */

int64_t stop_wait_us(const struct lapse_daemon *d, int64_t most_us)
{
    if (!d->stop.give_up_us)
        return most_us;
    int64_t left = d->stop.give_up_us - when_monotonic_us();
    return left < 0 ? 0 : left < most_us ? left : most_us;
}

bool stop_is_over(struct lapse_daemon *d)
{
    if (!atomic_load(&d->stopping))
        return false;
    pthread_mutex_lock(&d->lock);
    bool over = !d->n_workers && !d->stop.interrupting && (!d->prepare.running || d->prepare.done);
    pthread_mutex_unlock(&d->lock);
    d->abandoned = !over && d->stop.give_up_us && when_monotonic_us() >= d->stop.give_up_us;
    return over || d->abandoned;
}

enum lapse_exit stop_end(struct lapse_daemon *d)
{
    if (d->abandoned) {
        say_end(d, EVENT_STOPPED, LEVEL_WARN, "stopped at once: the database gave no answer");
        return LAPSE_STOPPED;
    }
    if (d->stop.started)
        pthread_join(d->stop.thread, NULL);
    prepare_join(d);
    run_rows_release(&d->prepare.runs);
    int code = d->prepare.exit;
    say_end(d, EVENT_STOPPED, LEVEL_INFO, "stopped");
    return (enum lapse_exit)code;
}
