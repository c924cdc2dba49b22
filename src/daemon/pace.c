/* pace: how hard a scheduler's sweep pushes just now, and what holds it back: to the log, the metrics,
 * and those who ask for the policies. In the thread that sweeps. */
#include "daemon/internal.h"

#include <string.h>

static const int64_t NOTABLE_US = 10 * US_PER_S, TOO_LONG_US = 60 * US_PER_S, AGAIN_US = 600 * US_PER_S;

/* How loud a wait of this length is to be said; LEVEL_DEBUG: it need not be. */
static enum event_level loudness(const struct outcome_pace *p)
{
    int64_t waiting_us = p->waiting_us;
    if (waiting_us && p->reason == PACE_AWAY)
        return LEVEL_WARN;
    return waiting_us >= TOO_LONG_US ? LEVEL_WARN : waiting_us >= NOTABLE_US ? LEVEL_INFO : LEVEL_DEBUG;
}

/* Another reason, or the same for so long that it is another matter. */
static bool is_news(const struct worker *w, const struct outcome_pace *p)
{
    const struct outcome_pace *said = &w->said_pace;
    enum event_level now = loudness(p), before = loudness(said);
    if (p->reason != said->reason || p->waiting_us < said->waiting_us)
        return p->reason != said->reason || now != LEVEL_DEBUG;
    return now > before || (now == LEVEL_WARN && p->waiting_us - said->waiting_us >= AGAIN_US);
}

static void say(struct worker *w, const struct policy *of, const struct outcome_pace *p)
{
    struct event *ev = event_new(EVENT_PACED, w->name, when_now());
    event_level(ev, loudness(p));
    if (p->reason == PACE_AWAY)
        event_message(ev, "'%s' waits: %s", of->name, p->words);
    else if (p->waiting_us >= NOTABLE_US)
        event_message(ev, "'%s' has waited for %lld s and deletes nothing meanwhile: %s", of->name,
                      (long long)(p->waiting_us / US_PER_S), p->words);
    else if (p->reason)
        event_message(ev, "'%s' is held back: %s", of->name, p->words);
    else
        event_message(ev, "'%s' is not held back any more", of->name);
    event_text(ev, "policy", of->name);
    event_text(ev, "reason", pace_reason_name(p->reason));
    event_number(ev, "rows", p->rows);
    event_span(ev, "waiting", p->waiting_us);
    daemon_say(w->daemon, ev);
}

static void count(struct worker *w, const struct policy *of, const struct outcome_pace *p)
{
    struct meter *m = w->daemon->meter;
    meter_set(m, METRIC_PACE_ROWS, (const char *[]){w->name, of->label}, (double)p->rows);
    for (int r = 0; r < N_PACE_REASONS; r++) {
        int64_t us = p->waited_us[r] - w->said_pace.waited_us[r];
        if (us > 0)
            meter_add(m, METRIC_PACE_WAIT,
                      (const char *[]){w->name, of->label, pace_reason_name((enum pace_reason)r)},
                      (double)us / (double)US_PER_S);
    }
}

static void note(struct worker *w, const struct policy *of, const struct outcome_pace *p)
{
    pthread_mutex_lock(&w->daemon->lock);
    struct policy_state *s = policy_state(w->daemon, of->name);
    if (s)
        s->pace = *p;
    w->away = p->reason == PACE_AWAY;
    pthread_mutex_unlock(&w->daemon->lock);
}

void tell_pace(struct worker *w, const struct policy *of, const struct outcome_pace *p)
{
    if (w->paced != of)
        w->said_pace = (struct outcome_pace){0};
    w->paced = of;
    count(w, of, p);
    note(w, of, p);
    bool news = is_news(w, p);
    if (news)
        say(w, of, p);
    int64_t waited =
        news || p->waiting_us < w->said_pace.waiting_us ? p->waiting_us : w->said_pace.waiting_us;
    w->said_pace = *p;
    w->said_pace.waiting_us = waited;
}

void tell_pace_begins(struct worker *w)
{
    w->paced = NULL;
    pthread_mutex_lock(&w->daemon->lock);
    w->away = false;
    pthread_mutex_unlock(&w->daemon->lock);
}
