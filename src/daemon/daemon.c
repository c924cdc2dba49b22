/* daemon: the loop that decides when something happens, and the public face of it all. See lapse.h. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/internal.h"

#define TURN_MOST_US  (10 * US_PER_S) /* the loop turns at least so often … */
#define TURN_LATE_US  (30 * US_PER_S) /* … and is taken for dead after so long */
#define CLOCK_SLIP_US US_PER_S        /* a clock that was set by less is not spoken of */
#define STOPS         (1u << LAPSE_STOP | 1u << LAPSE_STOP_NOW)

struct clocks daemon_clocks(void)
{
    return (struct clocks){when_now(), when_boot_us()};
}

uint64_t daemon_chance(void)
{
    uint64_t random;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint64_t)when_boot_us() * UINT64_C(0x9E3779B97F4A7C15);
    return random;
}

/* Async-signal-safe. A counter that is full wakes as well. */
void daemon_wake(struct lapse_daemon *d)
{
    int before = errno;
    uint64_t one = 1;
    if (write(d->wake_fd, &one, sizeof(one)) < 0)
        errno = before;
}

void lapse_daemon_ask(struct lapse_daemon *d, enum lapse_request request)
{
    atomic_fetch_or(&d->asked, 1u << request);
    daemon_wake(d);
}

/* --- a daemon that does not run yet ----------------------------------------------------------------------
 */

static struct lapse_daemon *make(const char *file, const struct lapse_daemon_options *o)
{
    struct lapse_daemon *d = mem_alloc(sizeof(*d));
    d->options = *o;
    d->file = mem_strdup(file);
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->timer_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    d->watch.fd = -1;
    d->meter = meter_new();
    d->started = when_now();
    own_process(d->owner, sizeof(d->owner));
    atomic_store(&d->turned, when_monotonic_us());
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->log_lock, NULL);
    daemon_cond_init(&d->prepare.wake);
    daemon_cond_init(&d->answered);
    side_init(&d->gauge, d, &side_gauge);
    side_init(&d->purges, d, &side_purges);
    side_init(&d->notices, d, &side_notices);
    return d;
}

struct lapse_daemon *lapse_daemon_new(const char *file, const struct lapse_daemon_options *o,
                                      struct lapse_report **ret_report)
{
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    struct err e = ERR_INIT;
    struct terms *t = NULL;
    struct lapse_daemon *d = make(file, o);
    watch_loaded(&d->watch, file);
    if (d->wake_fd < 0 || d->timer_fd < 0)
        err_set(&e, ERR_SYSTEM, "no file descriptor is to be had: %s", strerror(errno));
    else if (o->observe && o->install)
        err_set(&e, ERR_USAGE, "to observe is to write nothing: it cannot install");
    else if (terms_load(file, &t, &mistakes, &e) == 0) {
        d->terms = t;
        d->generation = 1;
        d->loaded_at = when_now();
        d->states = mem_alloc(terms_policies(t) * sizeof(*d->states));
        meter_expect(d->meter, t->contract);
        return d;
    }
    *ret_report = boxed(mistakes_report(file, &mistakes, &e));
    lapse_daemon_free(d);
    return NULL;
}

/* Threads that were left behind still use it: then it stays, for the short time that the process has left. */
void lapse_daemon_free(struct lapse_daemon *d)
{
    if (!d || d->abandoned)
        return;
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    if (d->timer_fd >= 0)
        close(d->timer_fd);
    watch_close(&d->watch);
    states_free(d);
    terms_drop(d->terms);
    meter_free(d->meter);
    mem_free_p(&d->workers);
    mem_free_p(&d->refused);
    mem_free_p(&d->file);
    pthread_cond_destroy(&d->prepare.wake);
    pthread_cond_destroy(&d->answered);
    pthread_cond_destroy(&d->gauge.wake);
    pthread_cond_destroy(&d->purges.wake);
    pthread_cond_destroy(&d->notices.wake);
    pthread_mutex_destroy(&d->log_lock);
    pthread_mutex_destroy(&d->lock);
    mem_free_p(&d);
}

/* --- beats -----------------------------------------------------------------------------------------------
 * All with the lock held. */

static void begin_beat(struct worker *w, struct clocks now)
{
    beat_begin(&w->beat, w->ticker, now, w->ran ? &w->ran_at : NULL, daemon_chance());
    w->begun = true;
    worker_show_next(w);
}

static void turn_beat(struct worker *w, struct clocks now)
{
    struct lapse_daemon *d = w->daemon;
    if (w->leave || !d->prepare.may_begin)
        return;
    if (!w->begun)
        begin_beat(w, now);
    if (!beat_turn(&w->beat, now, daemon_chance()))
        return;
    instant until;
    ticker_may_work(w->ticker, now.wall, &until);
    worker_order_tick(w, until);
}

static void end_tick(struct worker *w, struct clocks now)
{
    w->finished = false;
    if (!w->last.lost) {
        w->ran = true;
        w->ran_at = w->last.started;
        if (w->daemon->prepare.unreachable) /* it is there again: no need to sit out the pause */
            pthread_cond_signal(&w->daemon->prepare.wake);
    }
    beat_end(&w->beat, now, w->last.lost, w->last.again, daemon_chance());
    worker_show_next(w);
    worker_order_rest(w);
}

/* Joins the threads that have left: they end without waiting for anything, not even the lock. */
static void reap(struct lapse_daemon *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_workers; i++) {
        struct worker *w = d->workers[i];
        if (!w->left) {
            d->workers[n++] = w;
            continue;
        }
        pthread_join(w->thread, NULL);
        worker_free(w);
    }
    d->n_workers = n;
}

static void turn_workers(struct lapse_daemon *d)
{
    struct clocks now = daemon_clocks();
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->n_workers; i++) {
        if (d->workers[i]->finished)
            end_tick(d->workers[i], now);
        turn_beat(d->workers[i], now);
    }
    reap(d);
    pthread_mutex_unlock(&d->lock);
}

/* What the database says of schedulers whose beat goes without that knowledge. One that tries to run now is
 * left to it. */
static void take_runs(struct lapse_daemon *d)
{
    struct run_rows *runs = &d->prepare.runs;
    for (size_t i = 0; i < d->n_workers; i++) {
        struct worker *w = d->workers[i];
        for (size_t k = 0; k < runs->n && !w->ran; k++)
            if (strcmp(runs->list[k].scheduler, w->name) == 0) {
                w->ran = true;
                w->ran_at = runs->list[k].started;
                if (w->begun && !w->beat.begun && !w->scheduler->run_on_start)
                    begin_beat(w, daemon_clocks());
            }
    }
    run_rows_release(runs);
    d->prepare.runs_new = false;
}

static void turn_prepare(struct lapse_daemon *d)
{
    struct prepare *p = &d->prepare;
    struct err e = ERR_INIT;
    pthread_mutex_lock(&d->lock);
    if (p->runs_new)
        take_runs(d);
    bool done = p->done, again = p->again && !atomic_load(&d->stopping);
    pthread_mutex_unlock(&d->lock);
    if (!done)
        return;
    prepare_join(d);
    if (!again)
        return;
    pthread_mutex_lock(&d->lock);
    p->again = false;
    pthread_mutex_unlock(&d->lock);
    if (prepare_start(d, false, &e) < 0)
        daemon_remark(d, LEVEL_ERROR, "lapse's own tables are not installed: %s", e.text);
}

/* --- the loop --------------------------------------------------------------------------------------------
 */

/* At work, lapse's own apart. The lock is held. */
static size_t count_schedulers(const struct lapse_daemon *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_workers; i++)
        n += !d->workers[i]->leave && strcmp(d->workers[i]->name, OWN_SCHEDULER) != 0;
    return n;
}

static void status_line(struct lapse_daemon *d, struct text *out)
{
    instant next = NEVER;
    size_t working = 0;
    pthread_mutex_lock(&d->lock);
    size_t n = count_schedulers(d);
    for (size_t i = 0; i < d->n_workers; i++) {
        const struct worker *w = d->workers[i];
        working += w->beat.working;
        if (w->begun && !w->beat.working && w->beat.start < next)
            next = w->beat.start;
    }
    size_t policies = d->terms->contract->n_policies;
    pthread_mutex_unlock(&d->lock);
    text_addf(out, "%zu %s, %zu %s; ", n, n == 1 ? "scheduler" : "schedulers", policies,
              policies == 1 ? "policy" : "policies");
    if (working)
        text_addf(out, "%zu at work", working);
    else if (next == NEVER)
        text_add(out, "no tick to come");
    else {
        text_add(out, "next tick in ");
        span_format_rough(next > when_now() ? next - when_now() : 0, out);
    }
}

static void tell(struct lapse_daemon *d, enum lapse_news news)
{
    AUTO(text_release) struct text status = {0};
    if (!d->options.news)
        return;
    status_line(d, &status);
    d->options.news(d->options.context, news, text_str(&status));
}

static void tell_alive(struct lapse_daemon *d)
{
    int64_t now = when_monotonic_us();
    if (!d->options.alive_us || (d->told_us && now - d->told_us < d->options.alive_us / 2))
        return;
    d->told_us = now;
    tell(d, LAPSE_ALIVE);
}

/* When the earliest tick is to begin. The timer also fires when the clock is set, and in time after the
 * machine slept. */
static void set_timer(struct lapse_daemon *d)
{
    instant next = NEVER;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->n_workers; i++) {
        const struct worker *w = d->workers[i];
        if (w->begun && !w->leave && !w->beat.working && d->prepare.may_begin && w->beat.start < next)
            next = w->beat.start;
    }
    pthread_mutex_unlock(&d->lock);
    if (next == NEVER)
        next = when_now() + 3600 * US_PER_S; /* a timer that is set, to hear of the clock */
    if (next < 1)
        next = 1; /* zero would stop it */
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(next / US_PER_S), .tv_nsec = (long)(next % US_PER_S * 1000)}};
    timerfd_settime(d->timer_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL);
}

static void drain(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof(count)) > 0) {
    }
}

static void wait_for_something(struct lapse_daemon *d, int64_t most_us)
{
    struct pollfd fds[] = {{.fd = d->wake_fd, .events = POLLIN},
                           {.fd = d->timer_fd, .events = POLLIN},
                           {.fd = d->watch.fd, .events = POLLIN}};
    if (d->options.alive_us && most_us > d->options.alive_us / 2)
        most_us = d->options.alive_us / 2;
    poll(fds, COUNT_OF(fds), (int)((most_us + US_PER_MS - 1) / US_PER_MS));
    drain(d->wake_fd);
    drain(d->timer_fd);
    atomic_store(&d->turned, when_monotonic_us());
}

/* The beats notice by themselves; this is for people. */
static void look_at_clock(struct lapse_daemon *d)
{
    struct clocks now = daemon_clocks(), before = d->seen;
    d->seen = now;
    int64_t by = (now.wall - before.wall) - (now.boot_us - before.boot_us);
    if (!before.boot_us || (by < CLOCK_SLIP_US && by > -CLOCK_SLIP_US))
        return;
    AUTO(text_release) struct text words = {0};
    span_format_rough(by < 0 ? -by : by, &words);
    struct event *ev = event_new(EVENT_CLOCK_SET, NULL, now.wall);
    event_message(ev, "the clock was set %s by %s", by < 0 ? "back" : "forward", text_str(&words));
    event_span(ev, "by", by);
    daemon_say(d, ev);
}

static void reload(struct lapse_daemon *d)
{
    tell(d, LAPSE_RELOADING);
    daemon_reload(d);
    tell(d, LAPSE_READY);
}

static bool must_end(struct lapse_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    bool must = d->prepare.exit != 0;
    pthread_mutex_unlock(&d->lock);
    return must;
}

/* One request of each kind is as good as many. */
static void hear(struct lapse_daemon *d)
{
    unsigned asked = atomic_exchange(&d->asked, 0);
    bool stopping = atomic_load(&d->stopping);
    if (!stopping && (asked & STOPS || must_end(d))) {
        tell(d, LAPSE_STOPPING);
        stop_begin(d);
    } else if (!stopping && asked & 1u << LAPSE_RELOAD)
        reload(d);
    if (asked & 1u << LAPSE_STOP_NOW)
        stop_at_once(d);
}

static int64_t look_at_file(struct lapse_daemon *d)
{
    int64_t wait_us = TURN_MOST_US;
    if (d->options.watch && !atomic_load(&d->stopping) && watch_changed(&d->watch, d->file, &wait_us))
        reload(d);
    return wait_us;
}

/* --- from the start to the end ---------------------------------------------------------------------------
 */

static void say_started(struct lapse_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    size_t schedulers = count_schedulers(d);
    pthread_mutex_unlock(&d->lock);
    struct event *ev = event_new(EVENT_STARTED, NULL, when_now());
    event_message(ev, "lapse %s %s", LAPSE_VERSION,
                  d->options.observe ? "observes: it deletes nothing" : "runs");
    event_text(ev, "version", LAPSE_VERSION);
    event_text(ev, "file", d->file);
    event_number(ev, "schedulers", (int64_t)schedulers);
    event_number(ev, "policies", (int64_t)d->terms->contract->n_policies);
    event_text(ev, "owner", d->owner);
    daemon_say(d, ev);
}

static int begin(struct lapse_daemon *d, struct err *e)
{
    if (d->options.watch)
        watch_open(&d->watch, d->file);
    meter_set(d->meter, METRIC_BUILD, (const char *[]){LAPSE_VERSION}, 1);
    if (terms_enforce(d, d->terms, e) < 0)
        return -1;
    pthread_mutex_lock(&d->lock);
    d->running = true;
    pthread_mutex_unlock(&d->lock);
    say_started(d);
    side_start(&d->gauge);
    if (!d->options.observe) { /* who only observes carries nothing out */
        side_start(&d->purges);
        side_start(&d->notices);
    }
    return prepare_start(d, true, e);
}

/* Does what is to be done now; returns how long nothing may be. */
static int64_t turn(struct lapse_daemon *d)
{
    look_at_clock(d);
    hear(d);
    turn_prepare(d);
    turn_workers(d);
    int64_t wait_us = look_at_file(d);
    set_timer(d);
    tell_alive(d);
    return stop_wait_us(d, wait_us);
}

enum lapse_exit lapse_daemon_run(struct lapse_daemon *d)
{
    struct err e = ERR_INIT;
    if (begin(d, &e) == 0) {
        tell(d, LAPSE_READY);
    } else {
        daemon_remark(d, LEVEL_ERROR, "%s", e.text);
        d->prepare.exit = LAPSE_FAILED; /* no other thread writes to it now */
    }
    for (;;) {
        int64_t wait_us = turn(d);
        if (stop_is_over(d))
            return stop_end(d);
        wait_for_something(d, wait_us);
    }
}

/* --- for those who look ----------------------------------------------------------------------------------
 */

int lapse_daemon_alive(struct lapse_daemon *d)
{
    return when_monotonic_us() - atomic_load(&d->turned) < TURN_LATE_US;
}

static void late_reason(const struct worker *w, instant now, struct text *out)
{
    if (!w->begun || w->leave)
        return;
    int64_t late = beat_late_us(&w->beat, now), interval = beat_interval_us(&w->beat, now);
    if (late <= 0 || late / 2 <= interval)
        return;
    text_addf(out, "scheduler '%s' is late by ", w->name);
    span_format_rough(late, out);
    text_add(out, "\n");
}

int lapse_daemon_ready(struct lapse_daemon *d, char **ret_why)
{
    struct text why = {0};
    instant now = when_now();
    pthread_mutex_lock(&d->lock);
    if (!d->running)
        text_add(&why, atomic_load(&d->stopping) ? "it is stopping\n" : "it has not started yet\n");
    if (d->refused)
        text_addf(&why, "the contract was read again and refused: %s\n", d->refused);
    if (d->prepare.unreachable || d->gauge.lost)
        text_add(&why, "the database could not be reached\n");
    else if (d->running && !d->prepare.may_begin)
        text_add(&why, "no scheduler has begun: the database has not answered yet\n");
    for (size_t i = 0; i < d->n_workers; i++) {
        if (d->workers[i]->last.lost || d->workers[i]->away)
            text_addf(&why, "scheduler '%s' could not reach the database\n", d->workers[i]->name);
        late_reason(d->workers[i], now, &why);
    }
    pthread_mutex_unlock(&d->lock);
    if (why.len)
        why.data[why.len - 1] = 0;
    int ready = why.len == 0;
    if (ret_why && !ready)
        *ret_why = why.data;
    else
        text_release(&why);
    return ready;
}

char *lapse_daemon_metrics(struct lapse_daemon *d)
{
    struct text out = {0};
    meter_print(d->meter, &out);
    return out.data ? out.data : mem_strdup("");
}

void lapse_daemon_serve(struct lapse_daemon *d, struct lapse_serve *ret)
{
    pthread_mutex_lock(&d->lock);
    const struct contract *c = d->terms->contract;
    *ret = (struct lapse_serve){.generation = d->generation,
                                .listen = c->listen ? mem_strdup(c->listen) : NULL,
                                .token_file = c->token_file ? mem_strdup(c->token_file) : NULL};
    pthread_mutex_unlock(&d->lock);
}

void lapse_daemon_say(struct lapse_daemon *d, enum lapse_level level, const char *event, const char *message)
{
    struct event *ev = event_new(EVENT_REMARK, NULL, when_now());
    event_level(ev, (enum event_level)level);
    event_rename(ev, event);
    event_message(ev, "%s", message);
    daemon_say(d, ev);
}
