/* clockwork: a ticker and the scheduler that it borrows, in a few words, for tests of time. */
#ifndef CLOCKWORK_H
#define CLOCKWORK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "schedule/ticker.h"

#define S INT64_C(1000000)
#define M (60 * S)
#define H (60 * M)

/* A scheduler as the contract gives it, in a few words. Times in tests are UTC. */
struct given {
    int64_t every;
    const char *cron, *zone, *window;
    bool run_on_start;
    int64_t jitter;
    bool off;
};

static int minutes(const char *hh_mm)
{
    return (hh_mm[0] - '0') * 600 + (hh_mm[1] - '0') * 60 + (hh_mm[3] - '0') * 10 + (hh_mm[4] - '0');
}

/* The ticker and what it borrows. */
struct clockwork {
    struct scheduler s;
    struct ticker *t;
};

static void open_clockwork(struct clockwork *c, const struct given *g)
{
    c->s = (struct scheduler){.name = "s",
                              .every = {g->cron ? SPAN_NEVER : SPAN_TIME, g->cron ? INT64_MAX : g->every},
                              .cron = g->cron,
                              .timezone = g->zone ? g->zone : "UTC",
                              .run_on_start = g->run_on_start,
                              .jitter = {SPAN_TIME, g->jitter},
                              .window_from = g->window ? minutes(g->window) : -1,
                              .window_to = g->window ? minutes(g->window + 6) : -1,
                              .enabled = !g->off};
    struct err e = ERR_INIT;
    c->t = NULL;
    if (ticker_open(&c->s, &c->t, &e) < 0)
        fail_msg("%s", e.text);
}

static void release(struct clockwork *c)
{
    ticker_free(c->t);
}

static instant time_of(const char *text)
{
    instant at;
    if (!text || strcmp(text, "never") == 0)
        return NEVER;
    if (!when_parse(text, strlen(text), NULL, &at))
        fail_msg("bad time in a test: %s", text);
    return at;
}

#endif
