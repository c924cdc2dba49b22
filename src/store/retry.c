/* retry: pauses and connections. See retry.h. */
#include "store/retry.h"

static const int64_t PAUSE_FIRST_US = 20 * US_PER_MS, PAUSE_MOST_US = 2 * US_PER_S,
                     PAUSE_STEP_US = 50 * US_PER_MS, TELL_US = US_PER_S; /* between two words of a wait */
static const int64_t TRY_LEAST_US = 10 * US_PER_S; /* that one try to connect has, however short the wait */

int64_t retry_pause_us(int tries)
{
    int64_t us = PAUSE_FIRST_US << (tries > 6 ? 6 : tries);
    us = us > PAUSE_MOST_US ? PAUSE_MOST_US : us;
    return us / 2 + when_monotonic_us() % (us / 2 + 1);
}

void retry_wait_us(const struct patience *p, int64_t us)
{
    while (us > 0 && !patience_ends(p)) {
        int64_t step = us < PAUSE_STEP_US ? us : PAUSE_STEP_US;
        when_sleep_us(step);
        us -= step;
    }
}

bool retry_is_lost(const struct err *e)
{
    return e->kind == ERR_LOST || e->kind == ERR_COMMIT_UNKNOWN;
}

static int reconnect_once(struct store *s, const struct patience *p, int64_t until_us, struct err *e)
{
    s->trying = p;
    s->trying_until_us = until_us;
    *e = (struct err)ERR_INIT;
    int failed = s->ops->reconnect(s, e);
    s->trying = NULL;
    return failed;
}

/* In steps, each of which is told. */
static void wait_for_server(const struct patience *p, int64_t us, int64_t begun, const struct err *why)
{
    while (us > 0 && !patience_ends(p)) {
        int64_t step = us < TELL_US ? us : TELL_US;
        if (p->waits)
            p->waits(p->context, why, when_monotonic_us() - begun);
        retry_wait_us(p, step);
        us -= step;
    }
}

bool retry_reconnect(struct store *s, const struct patience *p, struct err *e)
{
    struct err why = *e;
    int64_t begun = when_monotonic_us(), away = s->out_of_patience ? 0 : p->away_us, left = away;
    for (int i = 0; !patience_ends(p); i++) {
        if (reconnect_once(s, p, when_monotonic_us() + (left > TRY_LEAST_US ? left : TRY_LEAST_US), &why) ==
            0) {
            s->out_of_patience = false;
            return true;
        }
        left = away - (when_monotonic_us() - begun);
        if (why.kind == ERR_STOPPED || left <= 0)
            break;
        int64_t pause = retry_pause_us(i + 2);
        wait_for_server(p, pause < left ? pause : left, begun, &why);
    }
    bool stopped = why.kind == ERR_STOPPED || patience_ends(p);
    if (stopped)
        err_set(&why, ERR_STOPPED, "stopped when asked to");
    s->out_of_patience = !stopped && !patience_ends(p);
    if (!stopped && away > 0 && left <= 0) {
        AUTO(text_release) struct text span = {0};
        span_format(away, &span);
        err_wrap(&why, "the database was waited for in vain for %s (timeouts.away)", text_str(&span));
    }
    why.kind = stopped ? ERR_STOPPED : ERR_UNREACHABLE;
    *e = why;
    return false;
}
