/* lapse_purge.h: one instance's data is erased some time after the instance ended.
 *
 * For an engine that keeps the data of each instance (a workflow, a session, an actor) in a storage of its
 * own. It gives three small adapters, storage, alarm and clock, and gets a manager for one instance:
 *
 *     lapse_purge_schedule(p, "completed");     the instance ended: erase it, after the delay
 *     lapse_purge_cancel(p);                    it was started again: its data stays
 *     lapse_purge_alarm(p, &rang, &purged);     the alarm rang, or the process started
 *
 * Most engines have one alarm per instance. It serves two here: the purge and the engine's own wake-ups,
 * which therefore go through lapse_purge_wake. What is scheduled is in the storage, so it outlives a crash; a
 * purge whose alarm was never set is found by the next lapse_purge_alarm or lapse_purge_execute_if_due: call
 * one of them when an instance is loaded.
 *
 * All times are milliseconds since 1970. Calls return 0, or -1: lapse_purge_error says why, and whatever was
 * scheduled is still scheduled, so that the call can be made again. One thread at a time per manager, and one
 * manager at a time per instance: a storage of keys and values has no lock by which two could agree. */
#ifndef LAPSE_PURGE_H
#define LAPSE_PURGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LAPSE_PUBLIC
#define LAPSE_PUBLIC __attribute__((visibility("default")))
#endif

/* --- what the engine gives -------------------------------------------------------------------------------
 */

struct lapse_entry {
    const char *key;
    const void *value;
    size_t len;
};
/* The data of one instance, as keys and values. Each returns 0, or -1 when it failed. */
struct lapse_storage {
    /* *ret_value: a copy, which lapse gives to free(); NULL: there is no such key. */
    int (*get)(void *context, const char *key, void **ret_value, size_t *ret_len);
    int (*put)(void *context, const char *key, const void *value, size_t len);
    int (*put_batch)(void *context, const struct lapse_entry *entries, size_t n); /* all of them or none */
    int (*delete_key)(void *context, const char *key); /* one that is not there is fine */
    int (*delete_all)(void *context);                  /* all of them or none */
    /* Every key that begins with prefix ("": every key); each is not called for keys that it deleted. -1 of
     * each ends it with -1. */
    int (*list)(void *context, const char *prefix, int (*each)(void *each_context, const char *key),
                void *each_context);
    void *context;
};
/* The one alarm of the instance. */
struct lapse_alarm {
    int (*schedule)(void *context, int64_t at_ms); /* instead of an earlier one */
    int (*cancel)(void *context);                  /* none set is fine */
    int (*get)(void *context, int *ret_set, int64_t *ret_at_ms);
    void *context;
};
struct lapse_clock {
    int64_t (*now)(void *context); /* milliseconds since 1970 */
    void *context;
};

/* --- what is wanted ------------------------------------------------------------------------------------- */

struct lapse_purge_reason {
    const char *reason, *delay;
};
/* A delay is a duration as in a contract ("60 seconds", "1h30m", "never"), or digits alone: milliseconds. All
 * fields may be zero. The texts are copied. */
struct lapse_purge_config {
    const char *delay;                          /* NULL: 60 seconds */
    const struct lapse_purge_reason *retention; /* another delay for a reason */
    size_t n_retention;
    const char *const *only; /* other reasons are never purged; NULL: all are */
    size_t n_only;
    const char *const *keep; /* keys that stay; with a trailing * all that begin so, \* is a star */
    size_t n_keep;
    const char *label, *instance;                 /* for the log; NULL: "Workflow", "" */
    void (*log)(void *context, const char *line); /* "[Workflow] Purged data for wf-1 (completed)" */
    void *context;
};

struct lapse_purge;
/* config NULL: purging is off, and every call succeeds and does nothing (wake-ups still work). The adapters
 * are copied; what they point at must outlive the manager. NULL: *ret_error says what is wrong; free() it. */
LAPSE_PUBLIC struct lapse_purge *lapse_purge_new(const struct lapse_purge_config *config,
                                                 const struct lapse_storage *storage,
                                                 const struct lapse_alarm *alarm,
                                                 const struct lapse_clock *clock, char **ret_error);
LAPSE_PUBLIC void lapse_purge_free(struct lapse_purge *p);
/* Of the last call that returned -1. Lives until the next call. */
LAPSE_PUBLIC const char *lapse_purge_error(const struct lapse_purge *p);

/* --- purging ----------------------------------------------------------------------------------------------
 */

/* The instance ended so. The first terminal state wins: scheduling again changes nothing. A reason outside
 * `only`, or with the delay `never`, stores nothing. NULL or "": "unknown". */
LAPSE_PUBLIC int lapse_purge_schedule(struct lapse_purge *p, const char *reason);
LAPSE_PUBLIC int lapse_purge_is_scheduled(struct lapse_purge *p, int *ret_scheduled);
/* It was started again. Cancelling nothing is fine. A purge with `keep` that was cut short after some of the
 * data had gone is carried out to its end instead, so that the instance never starts on half of its data. */
LAPSE_PUBLIC int lapse_purge_cancel(struct lapse_purge *p);

struct lapse_purged {
    int purged;
    char reason[256]; /* "" where nothing was purged; longer ones are cut */
};
/* Erases everything but what `keep` names if its time has come; else sees to it that the alarm is set. */
LAPSE_PUBLIC int lapse_purge_execute_if_due(struct lapse_purge *p, struct lapse_purged *ret);

/* --- the engine's own wake-ups
 * ------------------------------------------------------------------------------ */

/* Wakes the engine then, instead of at an earlier wish; the purge keeps its time. */
LAPSE_PUBLIC int lapse_purge_wake(struct lapse_purge *p, int64_t at_ms);
LAPSE_PUBLIC int lapse_purge_no_wake(struct lapse_purge *p);

enum lapse_rang {
    LAPSE_RANG_EARLY,  /* nothing is due: the alarm is set again where something is to come */
    LAPSE_RANG_PURGED, /* the data is gone, and a wish to be woken with it */
    LAPSE_RANG_WAKE,   /* the engine's turn; said again until lapse_purge_wake or lapse_purge_no_wake */
};
LAPSE_PUBLIC int lapse_purge_alarm(struct lapse_purge *p, enum lapse_rang *ret,
                                   struct lapse_purged *ret_purged);

/* --- adapters that are there already
 * ------------------------------------------------------------------------ */

/* In memory: a storage and an alarm that rings for nobody (ask lapse_memory_rings). */
struct lapse_memory;
LAPSE_PUBLIC struct lapse_memory *lapse_memory_new(void);
LAPSE_PUBLIC void lapse_memory_free(struct lapse_memory *m);
LAPSE_PUBLIC void lapse_memory_storage(struct lapse_memory *m, struct lapse_storage *ret);
LAPSE_PUBLIC void lapse_memory_alarm(struct lapse_memory *m, struct lapse_alarm *ret);
/* Whether the alarm is due; it is not set any more then. */
LAPSE_PUBLIC int lapse_memory_rings(struct lapse_memory *m, int64_t now_ms);
/* A table in any store, with the columns instance, key (texts) and value (a text, or bytes): the rows of one
 * instance. dsn and table are written as in a contract. NULL: *ret_error says what is wrong; free() it. One
 * thread at a time. A connection that breaks is made again. The key lapse:alarm is the alarm's own. */
struct lapse_table;
LAPSE_PUBLIC struct lapse_table *lapse_table_open(const char *dsn, const char *table, const char *instance,
                                                  char **ret_error);
LAPSE_PUBLIC void lapse_table_close(struct lapse_table *t);
LAPSE_PUBLIC void lapse_table_storage(struct lapse_table *t, struct lapse_storage *ret);
LAPSE_PUBLIC void lapse_table_alarm(struct lapse_table *t, struct lapse_alarm *ret);
/* Whether the alarm is due; it is not set any more then. -1: lapse_table_error says why it cannot be told. */
LAPSE_PUBLIC int lapse_table_rings(struct lapse_table *t, int64_t now_ms, int *ret_rings);
/* Of the last call of an adapter that returned -1. */
LAPSE_PUBLIC const char *lapse_table_error(const struct lapse_table *t);
/* The system's clock. */
LAPSE_PUBLIC void lapse_system_clock(struct lapse_clock *ret);

#ifdef __cplusplus
}
#endif

#endif
