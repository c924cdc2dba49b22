/* log: lines of the daemon, one at a time, no lower than the level that is wanted. */
#include "daemon/internal.h"

void daemon_say_lent(void *daemon, const struct event *ev)
{
    struct lapse_daemon *d = daemon;
    if (!d->options.log || (int)event_level_of(ev) < (int)d->options.level)
        return;
    AUTO(text_release) struct text line = {0};
    if (d->options.json)
        event_print_json(ev, &line);
    else
        event_print_text(ev, d->options.colour, &line);
    pthread_mutex_lock(&d->log_lock);
    d->options.log(d->options.context, (enum lapse_level)event_level_of(ev), text_str(&line));
    pthread_mutex_unlock(&d->log_lock);
}

void daemon_say(struct lapse_daemon *d, struct event *ev)
{
    daemon_say_lent(d, ev);
    event_free(ev);
}

void daemon_remark(struct lapse_daemon *d, enum event_level level, const char *format, ...)
{
    AUTO(text_release) struct text t = {0};
    va_list args;
    va_start(args, format);
    text_vaddf(&t, format, args);
    va_end(args);
    struct event *ev = event_new(EVENT_REMARK, NULL, when_now());
    event_level(ev, level);
    event_message(ev, "%s", text_str(&t));
    daemon_say(d, ev);
}
