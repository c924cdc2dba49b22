/* purge: one instance's data is erased some time after it ended, in the storage of a host. See lapse_purge.h.
 *
 * What is known is in the storage, under four keys; the alarm is only a reminder. So whatever happens between
 * two writes, the next look at the keys finds out what is to come and sets the alarm again. Two orders
 * matter: metadata is written before the alarm is set, and when data is erased key by key, the metadata goes
 * last. Before the first of those keys goes, it is noted that the purge has begun: from then on nothing stops
 * it, neither a cancel nor a clock that goes back, since half of the data is nobody's. */
#include "lapse_purge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "contract/policy.h"

#define KEY_SCHEDULED  "workflow:purge:scheduled"
#define KEY_PURGE_AT   "workflow:purge:purgeAt"
#define KEY_REASON     "workflow:purge:reason"
#define KEY_ALARM_TYPE "workflow:alarm:type"
#define KEY_WAKE_AT    "workflow:alarm:wakeAt"

#define REASON_UNKNOWN "unknown"
/* What stands under KEY_SCHEDULED: a purge is to come, or it has begun, for the reason that follows. */
#define IS_SCHEDULED "true"
#define HAS_BEGUN    "begun:"

/* Without the first there is no purge: it is the first to go when one is cancelled, the last when it is done.
 */
static const char *const purge_keys[] = {KEY_SCHEDULED, KEY_PURGE_AT, KEY_REASON};
/* … and the wish to be woken, which a purge takes along. */
static const char *const alarm_keys[] = {KEY_ALARM_TYPE, KEY_WAKE_AT};

static const int64_t STANDARD_DELAY_US = 60 * US_PER_S;
static const int64_t AGAIN_MS = 30000; /* when to look again whether what was begun has ended */

struct lapse_purge {
    struct lapse_storage storage;
    struct lapse_alarm alarm;
    struct lapse_clock clock;
    bool enabled;
    struct arena *arena; /* what was copied of the configuration */
    struct span delay;
    struct reason_delay {
        const char *reason;
        struct span delay;
    } * retention;
    size_t n_retention;
    const char **only; /* NULL: every reason */
    size_t n_only;
    struct kept {
        const char *text;
        bool prefix;
    } * keep;
    size_t n_keep;
    const char *label, *instance;
    void (*log)(void *context, const char *line);
    void *context;
    struct err err;
};

/* --- the configuration ------------------------------------------------------------------------------------
 */

static int read_delay(const char *s, struct span *ret, struct err *e)
{
    bool digits = *s && s[strspn(s, "0123456789")] == '\0';
    return digits ? span_parse_ms(s, ret, e) : span_parse(s, ret, e);
}

static int read_retention(struct lapse_purge *p, const struct lapse_purge_config *c, struct err *e)
{
    if (c->n_retention && !c->retention)
        return err_set(e, ERR_USAGE, "retention is NULL");
    p->retention = arena_alloc(p->arena, (c->n_retention + 1) * sizeof(*p->retention));
    for (size_t i = 0; i < c->n_retention; i++) {
        const struct lapse_purge_reason *r = &c->retention[i];
        if (!r->reason || !*r->reason || !r->delay)
            return err_set(e, ERR_USAGE, "retention: entry %zu needs a reason and a delay", i + 1);
        p->retention[p->n_retention].reason = arena_strdup(p->arena, r->reason);
        if (read_delay(r->delay, &p->retention[p->n_retention++].delay, e) < 0)
            return err_wrap(e, "retention of '%s'", r->reason);
    }
    return 0;
}

/* A trailing star is a prefix; behind a backslash it is a star. */
static struct kept read_kept(struct arena *a, const char *key)
{
    size_t len = strlen(key);
    bool star = len > 0 && key[len - 1] == '*', escaped = star && len > 1 && key[len - 2] == '\\';
    if (escaped)
        return (struct kept){arena_printf(a, "%.*s*", (int)(len - 2), key), false};
    return (struct kept){arena_strndup(a, key, star ? len - 1 : len), star};
}

static const char **copy_texts(struct arena *a, const char *const *texts, size_t n)
{
    const char **copy = arena_alloc(a, (n + 1) * sizeof(*copy));
    for (size_t i = 0; i < n; i++)
        copy[i] = arena_strdup(a, texts[i]);
    return copy;
}

static int need_texts(const char *what, const char *const *texts, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (!texts || !texts[i])
            return err_set(e, ERR_USAGE, "%s: entry %zu is NULL", what, i + 1);
    return 0;
}

static int read_config(struct lapse_purge *p, const struct lapse_purge_config *c, struct err *e)
{
    struct arena *a = p->arena;
    if (need_texts("only", c->only, c->n_only, e) < 0 || need_texts("keep", c->keep, c->n_keep, e) < 0)
        return -1;
    p->delay = (struct span){SPAN_TIME, STANDARD_DELAY_US};
    if (c->delay && read_delay(c->delay, &p->delay, e) < 0)
        return err_wrap(e, "delay");
    p->only = c->only ? copy_texts(a, c->only, c->n_only) : NULL;
    p->n_only = c->n_only;
    p->keep = arena_alloc(a, (c->n_keep + 1) * sizeof(*p->keep));
    for (size_t i = 0; i < c->n_keep; i++)
        p->keep[p->n_keep++] = read_kept(a, c->keep[i]);
    p->label = arena_strdup(a, c->label ? c->label : "Workflow");
    p->instance = arena_strdup(a, c->instance ? c->instance : "");
    p->log = c->log;
    p->context = c->context;
    return read_retention(p, c, e);
}

struct lapse_purge *lapse_purge_new(const struct lapse_purge_config *config,
                                    const struct lapse_storage *storage, const struct lapse_alarm *alarm,
                                    const struct lapse_clock *clock, char **ret_error)
{
    struct err e = ERR_INIT;
    struct lapse_purge *p = mem_alloc(sizeof(*p));
    p->storage = *storage;
    p->alarm = *alarm;
    p->clock = *clock;
    p->enabled = config != NULL;
    p->arena = arena_new();
    if (!config || read_config(p, config, &e) == 0)
        return p;
    lapse_purge_free(p);
    *ret_error = mem_strdup(e.text);
    return NULL;
}

void lapse_purge_free(struct lapse_purge *p)
{
    if (!p)
        return;
    arena_free(p->arena);
    mem_free_p(&p);
}

const char *lapse_purge_error(const struct lapse_purge *p)
{
    return p->err.text;
}

static bool wanted(const struct lapse_purge *p, const char *reason)
{
    for (size_t i = 0; i < p->n_only; i++)
        if (!strcmp(p->only[i], reason))
            return true;
    return !p->only;
}

static struct span delay_of(const struct lapse_purge *p, const char *reason)
{
    for (size_t i = 0; i < p->n_retention; i++)
        if (!strcmp(p->retention[i].reason, reason))
            return p->retention[i].delay;
    return p->delay;
}

static bool is_kept(const struct lapse_purge *p, const char *key)
{
    for (size_t i = 0; i < p->n_keep; i++) {
        const struct kept *k = &p->keep[i];
        if (k->prefix ? !strncmp(key, k->text, strlen(k->text)) : !strcmp(key, k->text))
            return true;
    }
    return false;
}

/* --- the keys ---------------------------------------------------------------------------------------------
 */

static int failed(struct lapse_purge *p, const char *what, const char *key)
{
    return err_set(&p->err, ERR_SYSTEM, "the storage failed to %s %s", what, key);
}

/* *ret NULL: there is no such key. Values are texts; what stands behind a NUL is no part of one. */
static int get_text(struct lapse_purge *p, const char *key, char **ret)
{
    void *value = NULL;
    size_t len = 0;
    if (p->storage.get(p->storage.context, key, &value, &len) < 0)
        return failed(p, "read", key);
    *ret = NULL;
    if (!value)
        return 0;
    *ret = mem_alloc(len + 1);
    memcpy(*ret, value, len);
    free(value);
    return 0;
}

static bool read_time(const char *text, int64_t *ret)
{
    char *end;
    if (!text || !*text || text[strspn(text, "-0123456789")])
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end)
        return false;
    *ret = value;
    return true;
}

/* A time that is to come, as kept. */
struct kept_time {
    bool set;
    int64_t at_ms;
};

static int get_time(struct lapse_purge *p, const char *key, struct kept_time *ret)
{
    AUTO(mem_free_p) char *text = NULL;
    if (get_text(p, key, &text) < 0)
        return -1;
    ret->set = read_time(text, &ret->at_ms);
    return 0;
}

static struct lapse_entry text_entry(const char *key, const char *text)
{
    return (struct lapse_entry){key, text, strlen(text)};
}

static int delete_key(struct lapse_purge *p, const char *key)
{
    return p->storage.delete_key(p->storage.context, key) < 0 ? failed(p, "delete", key) : 0;
}

static int64_t now(const struct lapse_purge *p)
{
    return p->clock.now(p->clock.context);
}

/* --- the alarm --------------------------------------------------------------------------------------------
 */

/* Says in the storage for whom the alarm is, as the host's engine may want to know. */
static int note_alarm_type(struct lapse_purge *p, const char *type)
{
    AUTO(mem_free_p) char *before = NULL;
    if (get_text(p, KEY_ALARM_TYPE, &before) < 0)
        return -1;
    if (before && !strcmp(before, type))
        return 0;
    return p->storage.put(p->storage.context, KEY_ALARM_TYPE, type, strlen(type)) < 0
               ? failed(p, "write", KEY_ALARM_TYPE)
               : 0;
}

static int set_alarm(struct lapse_purge *p, int64_t at_ms)
{
    int set = 0;
    int64_t before = 0;
    if (p->alarm.get(p->alarm.context, &set, &before) < 0)
        return err_set(&p->err, ERR_SYSTEM, "the alarm cannot be read");
    if (set && before == at_ms)
        return 0;
    return p->alarm.schedule(p->alarm.context, at_ms) < 0
               ? err_set(&p->err, ERR_SYSTEM, "the alarm cannot be set")
               : 0;
}

static int cancel_alarm(struct lapse_purge *p)
{
    return p->alarm.cancel(p->alarm.context) < 0
               ? err_set(&p->err, ERR_SYSTEM, "the alarm cannot be cancelled")
               : 0;
}

/* Nothing is to come. An alarm that was not set here is left alone. */
static int disarm(struct lapse_purge *p)
{
    AUTO(mem_free_p) char *type = NULL;
    if (get_text(p, KEY_ALARM_TYPE, &type) < 0)
        return -1;
    return !type ? 0 : cancel_alarm(p) < 0 ? -1 : delete_key(p, KEY_ALARM_TYPE);
}

/* For whichever comes first. */
static int arm(struct lapse_purge *p, struct kept_time purge, struct kept_time wake)
{
    bool for_purge = purge.set && (!wake.set || purge.at_ms <= wake.at_ms);
    if (!purge.set && !wake.set)
        return disarm(p);
    if (note_alarm_type(p, for_purge ? "purge" : "workflow") < 0)
        return -1;
    return set_alarm(p, for_purge ? purge.at_ms : wake.at_ms);
}

/* --- what is scheduled ------------------------------------------------------------------------------------
 */

/* begun: for which reason; NULL: it has not. */
struct state {
    bool scheduled;
    char *begun;
};

static void state_release(struct state *s)
{
    mem_free_p(&s->begun);
}

static int read_state(struct lapse_purge *p, struct state *ret)
{
    AUTO(mem_free_p) char *text = NULL;
    size_t n = strlen(HAS_BEGUN);
    if (get_text(p, KEY_SCHEDULED, &text) < 0)
        return -1;
    bool begun = text && !strncmp(text, HAS_BEGUN, n);
    *ret =
        (struct state){text && (begun || !strcmp(text, IS_SCHEDULED)), begun ? mem_strdup(text + n) : NULL};
    return 0;
}

static int scheduled(struct lapse_purge *p, bool *ret)
{
    AUTO(state_release) struct state state = {0};
    if (read_state(p, &state) < 0)
        return -1;
    *ret = state.scheduled;
    return 0;
}

/* A sum beyond the end of time is never. */
static struct kept_time after_delay(const struct lapse_purge *p, const char *reason)
{
    struct kept_time t = {0};
    struct span delay = delay_of(p, reason);
    if (delay.kind == SPAN_NEVER)
        return t;
    /* A part of a millisecond counts as a whole one: never early. */
    t.set = add_i64(now(p), delay.us / US_PER_MS + (delay.us % US_PER_MS > 0), &t.at_ms);
    return t;
}

static int put_purge(struct lapse_purge *p, const char *reason, int64_t at_ms)
{
    AUTO(text_release) struct text at = {0};
    text_addf(&at, "%lld", (long long)at_ms);
    const struct lapse_entry entries[] = {
        text_entry(KEY_SCHEDULED, IS_SCHEDULED), text_entry(KEY_PURGE_AT, text_str(&at)),
        text_entry(KEY_REASON, reason), text_entry(KEY_ALARM_TYPE, "purge")};
    return p->storage.put_batch(p->storage.context, entries, COUNT_OF(entries)) < 0
               ? failed(p, "write", KEY_SCHEDULED)
               : 0;
}

/* When the purge is due: one that has begun, now. Where its time cannot be read it begins anew: later than it
 * should, but neither early nor never. */
static int purge_time(struct lapse_purge *p, struct kept_time *ret)
{
    AUTO(state_release) struct state state = {0};
    *ret = (struct kept_time){0};
    if (!p->enabled)
        return 0;
    if (read_state(p, &state) < 0)
        return -1;
    if (state.begun) {
        *ret = (struct kept_time){true, now(p)};
        return 0;
    }
    if (state.scheduled && get_time(p, KEY_PURGE_AT, ret) < 0)
        return -1;
    if (!state.scheduled || ret->set)
        return 0;
    AUTO(mem_free_p) char *reason = NULL;
    if (get_text(p, KEY_REASON, &reason) < 0)
        return -1;
    *ret = after_delay(p, reason ? reason : REASON_UNKNOWN);
    return ret->set ? put_purge(p, reason ? reason : REASON_UNKNOWN, ret->at_ms) : 0;
}

/* The alarm as it should be. */
static int rearm(struct lapse_purge *p)
{
    struct kept_time purge, wake;
    return purge_time(p, &purge) < 0 || get_time(p, KEY_WAKE_AT, &wake) < 0 ? -1 : arm(p, purge, wake);
}

/* --- purging ----------------------------------------------------------------------------------------------
 */

int lapse_purge_schedule(struct lapse_purge *p, const char *reason)
{
    bool is;
    reason = reason && *reason ? reason : REASON_UNKNOWN;
    if (!p->enabled || !wanted(p, reason))
        return 0;
    if (scheduled(p, &is) < 0)
        return -1;
    if (!is) {
        struct kept_time at = after_delay(p, reason);
        if (!at.set)
            return 0;
        if (put_purge(p, reason, at.at_ms) < 0)
            return -1;
    }
    return rearm(p);
}

int lapse_purge_is_scheduled(struct lapse_purge *p, int *ret_scheduled)
{
    bool is = false;
    if (p->enabled && scheduled(p, &is) < 0)
        return -1;
    *ret_scheduled = is;
    return 0;
}

static bool is_one_of(const char *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(keys[i], key))
            return true;
    return false;
}

/* Whether a key is lapse's own: those go last, and whatever `keep` says. */
static bool is_own(const char *key)
{
    return is_one_of(key, purge_keys, COUNT_OF(purge_keys)) ||
           is_one_of(key, alarm_keys, COUNT_OF(alarm_keys));
}

struct doomed {
    const struct lapse_purge *purge;
    struct arena *arena;
    const char **keys;
    size_t n;
};

static int note_doomed(void *context, const char *key)
{
    struct doomed *d = context;
    if (is_own(key) || is_kept(d->purge, key))
        return 0;
    d->keys = arena_push(d->arena, d->keys, d->n, sizeof(*d->keys));
    d->keys[d->n++] = arena_strdup(d->arena, key);
    return 0;
}

/* Key by key, lapse's own last: cut short, the next look finds the purge still due and goes on. */
static int erase_but_kept(struct lapse_purge *p)
{
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    struct doomed d = {.purge = p, .arena = scratch};
    if (p->storage.list(p->storage.context, "", note_doomed, &d) < 0)
        return failed(p, "list", "the keys");
    for (size_t i = 0; i < d.n; i++)
        if (delete_key(p, d.keys[i]) < 0)
            return -1;
    for (size_t i = 0; i < COUNT_OF(alarm_keys); i++)
        if (delete_key(p, alarm_keys[i]) < 0)
            return -1;
    for (size_t i = COUNT_OF(purge_keys); i-- > 0;)
        if (delete_key(p, purge_keys[i]) < 0)
            return -1;
    return 0;
}

/* A time soon, in case what begins now is cut short: the alarm that rang is not set any more. */
static int64_t again(const struct lapse_purge *p)
{
    int64_t at;
    return add_i64(now(p), AGAIN_MS, &at) ? at : INT64_MAX;
}

static int note_begun(struct lapse_purge *p, const char *reason)
{
    AUTO(text_release) struct text begun = {0};
    text_addf(&begun, HAS_BEGUN "%s", reason);
    return p->storage.put(p->storage.context, KEY_SCHEDULED, text_str(&begun), begun.len) < 0
               ? failed(p, "write", KEY_SCHEDULED)
               : 0;
}

/* The alarm outlives the data, not the other way round: one too many rings for nothing, and so it is no
 * failure of the purge if it cannot be cancelled. */
static int erase(struct lapse_purge *p, const char *reason)
{
    if (set_alarm(p, again(p)) < 0)
        return -1;
    if (p->n_keep && (note_begun(p, reason) < 0 || erase_but_kept(p) < 0))
        return -1;
    if (!p->n_keep && p->storage.delete_all(p->storage.context) < 0)
        return failed(p, "delete", "everything");
    (void)cancel_alarm(p);
    return 0;
}

static void say_purged(const struct lapse_purge *p, const char *reason)
{
    AUTO(text_release) struct text line = {0};
    text_addf(&line, "[%s] Purged data for %s (%s)", p->label, p->instance, reason);
    if (p->log)
        p->log(p->context, text_str(&line));
}

static int execute(struct lapse_purge *p, struct lapse_purged *ret)
{
    AUTO(state_release) struct state state = {0};
    AUTO(mem_free_p) char *reason = NULL;
    if (read_state(p, &state) < 0 || (!state.begun && get_text(p, KEY_REASON, &reason) < 0))
        return -1;
    const char *why = state.begun ? state.begun : reason && *reason ? reason : REASON_UNKNOWN;
    if (erase(p, why) < 0)
        return -1;
    say_purged(p, why);
    ret->purged = true;
    strncpy(ret->reason, why, sizeof(ret->reason) - 1);
    return 0;
}

static int forget_purge(struct lapse_purge *p)
{
    for (size_t i = 0; i < COUNT_OF(purge_keys); i++)
        if (delete_key(p, purge_keys[i]) < 0)
            return -1;
    return 0;
}

/* Too late where some of the data is gone: the rest follows, and the instance starts from nothing. */
int lapse_purge_cancel(struct lapse_purge *p)
{
    AUTO(state_release) struct state state = {0};
    struct lapse_purged ignored = {0};
    if (!p->enabled)
        return 0;
    if (read_state(p, &state) < 0)
        return -1;
    if (state.begun)
        return execute(p, &ignored);
    return forget_purge(p) < 0 ? -1 : rearm(p);
}

static bool is_due(const struct lapse_purge *p, struct kept_time t)
{
    return t.set && now(p) >= t.at_ms;
}

int lapse_purge_execute_if_due(struct lapse_purge *p, struct lapse_purged *ret)
{
    struct kept_time purge, wake;
    *ret = (struct lapse_purged){0};
    if (!p->enabled)
        return 0;
    if (purge_time(p, &purge) < 0)
        return -1;
    if (is_due(p, purge))
        return execute(p, ret);
    return !purge.set ? 0 : get_time(p, KEY_WAKE_AT, &wake) < 0 ? -1 : arm(p, purge, wake);
}

/* --- wake-ups ---------------------------------------------------------------------------------------------
 */

int lapse_purge_wake(struct lapse_purge *p, int64_t at_ms)
{
    AUTO(text_release) struct text at = {0};
    text_addf(&at, "%lld", (long long)at_ms);
    if (p->storage.put(p->storage.context, KEY_WAKE_AT, text_str(&at), at.len) < 0)
        return failed(p, "write", KEY_WAKE_AT);
    return rearm(p);
}

int lapse_purge_no_wake(struct lapse_purge *p)
{
    return delete_key(p, KEY_WAKE_AT) < 0 ? -1 : rearm(p);
}

int lapse_purge_alarm(struct lapse_purge *p, enum lapse_rang *ret, struct lapse_purged *ret_purged)
{
    struct kept_time purge, wake;
    *ret_purged = (struct lapse_purged){0};
    *ret = LAPSE_RANG_EARLY;
    if (purge_time(p, &purge) < 0)
        return -1;
    if (is_due(p, purge)) {
        *ret = LAPSE_RANG_PURGED;
        return execute(p, ret_purged);
    }
    if (get_time(p, KEY_WAKE_AT, &wake) < 0)
        return -1;
    /* The engine's turn. The wish stays until it is taken back, in case the engine falls on its face. */
    if (is_due(p, wake)) {
        *ret = LAPSE_RANG_WAKE;
        wake.at_ms = again(p);
    }
    return purge.set || wake.set ? arm(p, purge, wake) : 0;
}
