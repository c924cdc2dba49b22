/* retry: pauses and connections. See retry.h. */
#include "store/retry.h"

enum { RECONNECTS = 8 };
static const int64_t PAUSE_FIRST_US = 20 * US_PER_MS, PAUSE_MOST_US = 2 * US_PER_S,
                     PAUSE_STEP_US = 50 * US_PER_MS;

bool patience_ends(const struct patience *p)
{
    return p->stop && p->stop(p->context);
}

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

bool retry_reconnect(struct store *s, const struct patience *p, struct err *e)
{
    struct err why = *e;
    for (int i = 0; i < RECONNECTS && !patience_ends(p); i++) {
        if (s->ops->reconnect(s, &why) == 0)
            return true;
        retry_wait_us(p, retry_pause_us(i + 2));
    }
    why.kind = ERR_UNREACHABLE;
    *e = why;
    return false;
}
