/* event: what a daemon has to say, one line each: a name, a level, a few fields. The vocabulary is one table;
 * which line becomes JSON or text is decided at the end. Pure. */
#ifndef LAPSE_WATCH_EVENT_H
#define LAPSE_WATCH_EVENT_H

#include "report/report.h"

enum event_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR };
const char *level_name(enum event_level l); /* "debug", "info", "warn", "error" */

/* The names. Those with a scheduler are written <scheduler>.<word>, the others lapse.<word>, or as they are.
 */
enum event_kind {
    EVENT_PRUNED,         /* <scheduler>.lifecycle_pruned */
    EVENT_TICK_FAILED,    /* <scheduler>.lifecycle_tick_failed */
    EVENT_BUDGET,         /* <scheduler>.lifecycle_prune_budget_exhausted */
    EVENT_OBSERVED,       /* <scheduler>.lifecycle_observed: what is due, with --observe */
    EVENT_STILL_FAILING,  /* <scheduler>.lifecycle_still_failing */
    EVENT_RECOVERED,      /* <scheduler>.lifecycle_recovered */
    EVENT_PACED,          /* <scheduler>.lifecycle_paced */
    EVENT_LEASE_TAKEN,    /* <scheduler>.lease_taken */
    EVENT_LEASE_LOST,     /* <scheduler>.lease_lost */
    EVENT_HELD_ELSEWHERE, /* <scheduler>.lease_held_elsewhere */
    EVENT_PAUSED,         /* <scheduler>.paused */
    EVENT_STARTED,        /* lapse.started */
    EVENT_STOPPING,       /* lapse.stopping */
    EVENT_STOPPED,        /* lapse.stopped */
    EVENT_RELOADED,       /* lapse.contract_reloaded */
    EVENT_RELOAD_REFUSED, /* lapse.contract_refused */
    EVENT_CLOCK_SET,      /* lapse.clock_set */
    EVENT_SERVING,        /* lapse.serving: where HTTP listens */
    EVENT_INSTALLED,      /* lapse.installed */
    EVENT_REMARK,         /* lapse.remark */
    EVENT_PURGE_EXECUTED, /* purge.executed */
    EVENT_PURGE_FAILED,   /* purge.failed */
    N_EVENTS
};

/* For documentation: the kind's word, what level it has by itself, and when it is said. */
const char *event_word(enum event_kind k);
const char *event_help(enum event_kind k);
bool event_of_scheduler(enum event_kind k); /* its name begins with the scheduler's */

/* A line being made. Fields keep their order; texts are copied, cut at EVENT_TEXT_MOST bytes with a mark, and
 * hold nothing afterwards that could end a line: bytes that are not UTF-8 and stray control characters become
 * U+FFFD. */
enum { EVENT_TEXT_MOST = 4096 };
struct event;
struct event *event_new(enum event_kind k, const char *scheduler, instant at); /* with the kind's own level */
void event_free(struct event *ev);
void event_free_p(struct event **ev);
void event_level(struct event *ev, enum event_level l);
void event_message(struct event *ev, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Another name than its kind's: for events that whoever serves the daemon brings along. */
void event_rename(struct event *ev, const char *name);
/* A key that a fixed one (time, level, event, message, scheduler) or an earlier field has already gets a
 * trailing underscore. */
void event_text(struct event *ev, const char *key, const char *text); /* NULL: null */
void event_number(struct event *ev, const char *key, int64_t number);
void event_time(struct event *ev, const char *key, instant at);
void event_span(struct event *ev, const char *key, int64_t us); /* seconds, as a number with fractions */
void event_texts(struct event *ev, const char *key, const char *const *texts, size_t n);

enum event_kind event_kind_of(const struct event *ev);
enum event_level event_level_of(const struct event *ev);
const char *event_message_of(const struct event *ev); /* "": none */
/* Without a newline; never more than one line, whatever the texts hold. */
void event_print_json(const struct event *ev, struct text *out);
void event_print_text(const struct event *ev, bool colour, struct text *out);

/* Who is told of an event. It is lent: it lives until this returns. */
typedef void event_say(void *context, const struct event *ev);

/* What a tick's report says: pruned (with `now` and a count per label, info if anything went, else debug) or,
 * of a plan, observed; and budget, where one was used up. Nothing where no policy had its turn. Failures are
 * trouble's (trouble.h). */
void events_of_tick(const struct report *r, const char *scheduler, instant at, event_say *say, void *context);

#endif
