/* signals: a request to stop, and whether another one is meant. */
#include <signal.h>
#include <time.h>

#include "prog.h"

#define ECHO_MS 100

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* timeout(1) and others signal a process and then its group, so that one request arrives twice. */
int stop_requests(struct stop_count *s)
{
    int64_t now = now_ms();
    if (s->n && now - s->last_ms < ECHO_MS)
        return 0;
    s->last_ms = now;
    return ++s->n;
}
