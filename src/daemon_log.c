/* daemon_log: lines of the daemon, one at a time, no lower than the level that is wanted. */
#include "daemon_parts.h"

void daemon_say(struct lapse_daemon *d, struct event *ev)
{
    AUTO(event_free_p) struct event *owned = ev;
    if (!owned || !d->options.log || (int)event_level_of(owned) < (int)d->options.level)
        return;
    AUTO(text_release) struct text line = {0};
    if (d->options.json)
        event_print_json(owned, &line);
    else
        event_print_text(owned, d->options.colour, &line);
    pthread_mutex_lock(&d->log_lock);
    d->options.log(d->options.context, (enum lapse_level)event_level_of(owned), text_str(&line));
    pthread_mutex_unlock(&d->log_lock);
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
