/* purge: the manager over its adapters: what is scheduled, when it goes, what stays; and that neither a crash
 * between any two writes nor the engine's own wake-ups lose a purge. */
#include "lapse_purge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#define T0 INT64_C(1700000000000)

/* --- a host: memory behind adapters that can fail
 * ----------------------------------------------------------- */

struct host {
    struct lapse_memory *memory; /* or else … */
    struct lapse_table *table;
    struct lapse_storage inner;
    struct lapse_alarm inner_alarm;
    struct lapse_purge *purge;
    int64_t now;
    int fail_at; /* the call that fails, and all after it: as a crash does; 0: none */
    bool once;   /* … it alone */
    int calls;
    char line[200];
};

static bool crashed(struct host *h)
{
    h->calls++;
    return h->fail_at && (h->once ? h->calls == h->fail_at : h->calls >= h->fail_at);
}

static int get(void *c, const char *key, void **v, size_t *len)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner.get(h->inner.context, key, v, len);
}
static int put(void *c, const char *key, const void *v, size_t len)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner.put(h->inner.context, key, v, len);
}
static int put_batch(void *c, const struct lapse_entry *entries, size_t n)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner.put_batch(h->inner.context, entries, n);
}
static int delete_key(void *c, const char *key)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner.delete_key(h->inner.context, key);
}
static int delete_all(void *c)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner.delete_all(h->inner.context);
}
static int list(void *c, const char *prefix, int (*each)(void *of, const char *key), void *of)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner.list(h->inner.context, prefix, each, of);
}
static int alarm_schedule(void *c, int64_t at)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner_alarm.schedule(h->inner_alarm.context, at);
}
static int alarm_cancel(void *c)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner_alarm.cancel(h->inner_alarm.context);
}
static int alarm_get(void *c, int *set, int64_t *at)
{
    struct host *h = c;
    return crashed(h) ? -1 : h->inner_alarm.get(h->inner_alarm.context, set, at);
}
static int64_t clock_now(void *c)
{
    return ((struct host *)c)->now;
}
static void keep_line(void *c, const char *line)
{
    snprintf(((struct host *)c)->line, sizeof(((struct host *)c)->line), "%s", line);
}

/* A process that starts over the storage that is there. */
static void start(struct host *h, const struct lapse_purge_config *config)
{
    struct lapse_storage storage = {get, put, put_batch, delete_key, delete_all, list, h};
    struct lapse_alarm alarm = {alarm_schedule, alarm_cancel, alarm_get, h};
    struct lapse_clock clock = {clock_now, h};
    struct lapse_purge_config with_log;
    char *error = NULL;
    lapse_purge_free(h->purge);
    if (config) {
        with_log = *config;
        with_log.log = keep_line;
        with_log.context = h;
        with_log.instance = "wf-1";
    }
    h->purge = lapse_purge_new(config ? &with_log : NULL, &storage, &alarm, &clock, &error);
    if (!h->purge)
        fail_msg("%s", error);
    h->fail_at = h->calls = 0;
}

/* Any bytes, from a file. */
static char *named_instance(void)
{
    const char *file = getenv("LAPSE_PURGE_INSTANCE");
    enum { MOST = 2000000 };
    char *name = mem_alloc(MOST + 1);
    FILE *in = file ? fopen(file, "rb") : NULL;
    strcpy(name, "wf-1");
    if (in) {
        name[fread(name, 1, MOST, in)] = '\0';
        fclose(in);
    }
    return name;
}

static struct host open_host(void)
{
    const char *dsn = getenv("LAPSE_PURGE_DSN"); /* a database with an empty table kv */
    struct host h = {.now = T0};
    char *error = NULL;
    AUTO(mem_free_p) char *instance = named_instance();
    if (!dsn) {
        h.memory = lapse_memory_new();
        lapse_memory_storage(h.memory, &h.inner);
        lapse_memory_alarm(h.memory, &h.inner_alarm);
        return h;
    }
    h.table = lapse_table_open(dsn, "kv", instance, &error);
    if (!h.table)
        fail_msg("%s", error);
    lapse_table_storage(h.table, &h.inner);
    lapse_table_alarm(h.table, &h.inner_alarm);
    h.inner.delete_all(h.table);
    h.inner_alarm.cancel(h.table);
    return h;
}

static void close_host(struct host *h)
{
    lapse_purge_free(h->purge);
    lapse_memory_free(h->memory);
    lapse_table_close(h->table);
}

static bool rings(struct host *h)
{
    int yes = 0;
    if (h->memory)
        return lapse_memory_rings(h->memory, h->now);
    assert_int_equal(lapse_table_rings(h->table, h->now, &yes), 0);
    return yes;
}

static int count_key(void *n, const char *key)
{
    (void)key;
    (*(int *)n)++;
    return 0;
}

static int keys(struct host *h, const char *prefix)
{
    int n = 0;
    h->inner.list(h->inner.context, prefix, count_key, &n);
    return n;
}

/* "" where there is none. */
static const char *value(struct host *h, const char *key, char buf[100])
{
    void *v;
    size_t len;
    h->inner.get(h->inner.context, key, &v, &len);
    snprintf(buf, 100, "%s", v ? (char *)v : "");
    free(v);
    return buf;
}

static void put_data(struct host *h)
{
    static const char *const data[] = {"step:1", "step:2", "workflow:output", "workflow:status", "meta:a"};
    for (size_t i = 0; i < COUNT_OF(data); i++)
        h->inner.put(h->inner.context, data[i], "x", 1);
}

static int64_t alarm_at(struct host *h) /* -1: not set */
{
    int set;
    int64_t at;
    h->inner_alarm.get(h->inner_alarm.context, &set, &at);
    return set ? at : -1;
}

static struct lapse_purged if_due(struct host *h)
{
    struct lapse_purged got;
    assert_int_equal(lapse_purge_execute_if_due(h->purge, &got), 0);
    return got;
}

static int is_scheduled(struct host *h)
{
    int is = -1;
    assert_int_equal(lapse_purge_is_scheduled(h->purge, &is), 0);
    return is;
}

/* --- the document
 * -------------------------------------------------------------------------------------------- */

static const struct lapse_purge_config standard = {0};

static void it_goes_after_the_delay(void **state)
{
    (void)state;
    char buf[100];
    struct host h = open_host();
    start(&h, &standard);
    put_data(&h);
    assert_int_equal(is_scheduled(&h), 0);
    if (lapse_purge_schedule(h.purge, "completed") < 0)
        fail_msg("%s", h.table ? lapse_table_error(h.table) : lapse_purge_error(h.purge));
    assert_int_equal(is_scheduled(&h), 1);
    assert_string_equal(value(&h, "workflow:purge:scheduled", buf), "true");
    assert_string_equal(value(&h, "workflow:purge:purgeAt", buf), "1700000060000");
    assert_string_equal(value(&h, "workflow:purge:reason", buf), "completed");
    assert_string_equal(value(&h, "workflow:alarm:type", buf), "purge");
    assert_int_equal(alarm_at(&h), T0 + 60000);

    h.now = T0 + 59999;
    assert_false(if_due(&h).purged);
    assert_int_equal(keys(&h, "step:"), 2);
    h.now = T0 + 60000;
    struct lapse_purged got = if_due(&h);
    assert_true(got.purged);
    assert_string_equal(got.reason, "completed");
    assert_string_equal(h.line, "[Workflow] Purged data for wf-1 (completed)");
    assert_int_equal(keys(&h, ""), 0);
    assert_int_equal(alarm_at(&h), -1);
    assert_false(if_due(&h).purged);
    close_host(&h);
}

static void the_first_terminal_state_wins(void **state)
{
    (void)state;
    char buf[100];
    struct host h = open_host();
    start(&h, &standard);
    assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
    h.now += 30000;
    assert_int_equal(lapse_purge_schedule(h.purge, "cancelled"), 0);
    assert_string_equal(value(&h, "workflow:purge:reason", buf), "completed");
    assert_int_equal(alarm_at(&h), T0 + 60000);
    close_host(&h);
}

static void a_restart_cancels(void **state)
{
    (void)state;
    struct host h = open_host();
    start(&h, &standard);
    put_data(&h);
    h.inner_alarm.schedule(h.inner_alarm.context, T0 + 7);
    assert_int_equal(lapse_purge_cancel(h.purge), 0);
    assert_int_equal(alarm_at(&h), T0 + 7); /* not lapse's */
    assert_int_equal(lapse_purge_schedule(h.purge, "failed"), 0);
    assert_int_equal(lapse_purge_cancel(h.purge), 0);
    assert_int_equal(is_scheduled(&h), 0);
    assert_int_equal(alarm_at(&h), -1);
    assert_int_equal(keys(&h, "workflow:purge:") + keys(&h, "workflow:alarm:"), 0);
    h.now += 1000000;
    assert_false(if_due(&h).purged);
    assert_int_equal(keys(&h, ""), 5);
    close_host(&h);
}

static void without_configuration_nothing_is_touched(void **state)
{
    (void)state;
    struct host h = open_host();
    start(&h, NULL);
    assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
    assert_int_equal(is_scheduled(&h), 0);
    assert_false(if_due(&h).purged);
    assert_int_equal(lapse_purge_cancel(h.purge), 0);
    assert_int_equal(h.calls, 0);
    assert_int_equal(lapse_purge_wake(h.purge, T0 + 5), 0); /* the engine's own wake-ups still work */
    assert_int_equal(alarm_at(&h), T0 + 5);
    close_host(&h);
}

/* --- what can be configured
 * ---------------------------------------------------------------------------------- */

static void delays_by_reason(void **state)
{
    (void)state;
    static const struct lapse_purge_reason by[] = {
        {"failed", "24 hours"}, {"paused", "never"}, {"odd", "1.5ms"}};
    const struct lapse_purge_config config = {.delay = "5000", .retention = by, .n_retention = 3};
    static const struct {
        const char *reason;
        int64_t delay; /* -1: nothing is stored */
    } cases[] = {{"completed", 5000}, {"failed", 86400000}, {"paused", -1},
                 {"odd", 2},          {NULL, 5000},         {"", 5000}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct host h = open_host();
        start(&h, &config);
        assert_int_equal(lapse_purge_schedule(h.purge, cases[i].reason), 0);
        assert_int_equal(alarm_at(&h), cases[i].delay < 0 ? -1 : T0 + cases[i].delay);
        assert_int_equal(is_scheduled(&h), cases[i].delay >= 0);
        close_host(&h);
    }
}

static void only_some_reasons(void **state)
{
    (void)state;
    static const char *const only[] = {"completed"};
    const struct lapse_purge_config config = {.delay = "0", .only = only, .n_only = 1},
                                    none = {.delay = "0", .only = only};
    struct host h = open_host();
    start(&h, &config);
    assert_int_equal(lapse_purge_schedule(h.purge, "failed"), 0);
    assert_int_equal(keys(&h, ""), 0);
    assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
    assert_true(if_due(&h).purged); /* a delay of 0 is at once */
    start(&h, &none);
    assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
    assert_int_equal(is_scheduled(&h), 0);
    close_host(&h);
}

static void what_is_kept(void **state)
{
    (void)state;
    static const char *const keep[] = {"workflow:output", "meta:*", "star\\*", "workflow:purge:*",
                                       "workflow:alarm:wakeAt"};
    const struct lapse_purge_config config = {.delay = "now", .keep = keep, .n_keep = COUNT_OF(keep)};
    char buf[100];
    struct host h = open_host();
    start(&h, &config);
    put_data(&h);
    h.inner.put(h.inner.context, "star*", "1", 1);
    h.inner.put(h.inner.context, "start", "1", 1);
    h.inner.put(h.inner.context, "meta", "1", 1);
    assert_int_equal(lapse_purge_wake(h.purge, T0 + 99), 0);
    assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
    assert_true(if_due(&h).purged);
    assert_int_equal(keys(&h, ""), 3); /* of lapse's own keys none stays, whatever keep says */
    assert_string_equal(value(&h, "workflow:output", buf), "x");
    assert_string_equal(value(&h, "meta:a", buf), "x");
    assert_string_equal(value(&h, "star*", buf), "1");
    assert_int_equal(alarm_at(&h), -1);
    assert_false(if_due(&h).purged);
    close_host(&h);
}

static void bad_configuration_is_refused(void **state)
{
    (void)state;
    static const struct lapse_purge_reason bad_delay[] = {{"failed", "soon"}}, no_reason[] = {{NULL, "1h"}};
    static const char *const nothing[] = {"a", NULL};
    const struct {
        struct lapse_purge_config config;
        const char *says;
    } cases[] = {
        {{.delay = "soon"}, "delay"},
        {{.delay = ""}, "delay"},
        {{.delay = "-5"}, "delay"},
        {{.delay = "99999999999999999999"}, "delay"},
        {{.retention = bad_delay, .n_retention = 1}, "retention of 'failed'"},
        {{.retention = no_reason, .n_retention = 1}, "needs a reason"},
        {{.n_retention = 1}, "retention"},
        {{.only = nothing, .n_only = 2}, "only: entry 2"},
        {{.n_only = 1}, "only"},
        {{.keep = nothing, .n_keep = 2}, "keep: entry 2"},
        {{.n_keep = 1}, "keep"},
    };
    struct lapse_storage s = {0};
    struct lapse_alarm a = {0};
    struct lapse_clock c = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *error = NULL;
        assert_null(lapse_purge_new(&cases[i].config, &s, &a, &c, &error));
        if (!strstr(error, cases[i].says))
            fail_msg("case %zu says: %s", i, error);
        free(error);
    }
}

/* --- one alarm, two users
 * ------------------------------------------------------------------------------------ */

static enum lapse_rang ring(struct host *h, struct lapse_purged *purged)
{
    enum lapse_rang rang;
    assert_true(rings(h));
    assert_int_equal(lapse_purge_alarm(h->purge, &rang, purged), 0);
    return rang;
}

static void neither_loses_the_others_alarm(void **state)
{
    (void)state;
    char buf[100];
    struct lapse_purged purged;
    struct host h = open_host();
    start(&h, &standard);
    put_data(&h);
    assert_int_equal(lapse_purge_wake(h.purge, T0 + 90000), 0);
    assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
    assert_int_equal(alarm_at(&h), T0 + 60000);
    assert_int_equal(lapse_purge_wake(h.purge, T0 + 10000), 0);
    assert_int_equal(alarm_at(&h), T0 + 10000);
    assert_string_equal(value(&h, "workflow:alarm:type", buf), "workflow");

    h.now = T0 + 10000;
    assert_int_equal(ring(&h, &purged), LAPSE_RANG_WAKE);
    assert_true(alarm_at(&h) > 0); /* in case the engine falls on its face */
    start(&h, &standard);          /* … as it does */
    enum lapse_rang rang;
    assert_int_equal(lapse_purge_alarm(h.purge, &rang, &purged), 0);
    assert_int_equal(rang, LAPSE_RANG_WAKE);
    assert_int_equal(lapse_purge_no_wake(h.purge), 0);
    assert_int_equal(alarm_at(&h), T0 + 60000);
    assert_string_equal(value(&h, "workflow:alarm:type", buf), "purge");

    assert_int_equal(lapse_purge_wake(h.purge, T0 + 50000), 0);
    assert_int_equal(lapse_purge_cancel(h.purge), 0); /* the engine's own stays */
    assert_int_equal(alarm_at(&h), T0 + 50000);
    assert_int_equal(lapse_purge_schedule(h.purge, "failed"), 0);
    h.now = T0 + 80000;
    assert_int_equal(ring(&h, &purged), LAPSE_RANG_PURGED); /* both are due: the purge */
    assert_int_equal(keys(&h, ""), 0);
    assert_int_equal(alarm_at(&h), -1);
    close_host(&h);
}

static void an_early_alarm_is_set_again(void **state)
{
    (void)state;
    struct lapse_purged purged;
    enum lapse_rang rang;
    struct host h = open_host();
    start(&h, &standard);
    put_data(&h);
    assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
    h.inner_alarm.schedule(h.inner_alarm.context, T0 + 1); /* somebody else's hand */
    h.now = T0 + 1;
    assert_int_equal(ring(&h, &purged), LAPSE_RANG_EARLY);
    assert_int_equal(alarm_at(&h), T0 + 60000);
    h.now = T0 + 60000;
    h.inner_alarm.cancel(h.inner_alarm.context);
    h.now -= 120000; /* the clock was set back as it rang */
    assert_int_equal(lapse_purge_alarm(h.purge, &rang, &purged), 0);
    assert_int_equal(rang, LAPSE_RANG_EARLY);
    assert_int_equal(keys(&h, "step:"), 2);
    assert_int_equal(alarm_at(&h), T0 + 60000);
    close_host(&h);
}

static void a_time_that_cannot_be_read_begins_anew(void **state)
{
    (void)state;
    static const char *const broken[] = {NULL, "", "soon", "12x", "99999999999999999999", "-"};
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        struct host h = open_host();
        start(&h, &standard);
        put_data(&h);
        h.inner.put(h.inner.context, "workflow:purge:scheduled", "true", 4);
        if (broken[i])
            h.inner.put(h.inner.context, "workflow:purge:purgeAt", broken[i], strlen(broken[i]));
        assert_false(if_due(&h).purged);
        assert_int_equal(alarm_at(&h), T0 + 60000);
        h.now += 60000;
        struct lapse_purged got = if_due(&h);
        assert_true(got.purged);
        assert_string_equal(got.reason, "unknown");
        close_host(&h);
    }
}

static void the_end_of_time(void **state)
{
    (void)state;
    const struct lapse_purge_config config = {.delay = "200000d"};
    struct host h = open_host();
    start(&h, &config);
    h.now = INT64_MAX - 10;
    assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
    assert_int_equal(is_scheduled(&h), 0);
    close_host(&h);
}

/* --- crashes
 * ------------------------------------------------------------------------------------------------- */

/* The process dies at its n-th call to an adapter, for every n; then a new one looks. */
static void schedule_then_crash(const struct lapse_purge_config *config)
{
    for (int n = 1;; n++) {
        struct host h = open_host();
        start(&h, config);
        put_data(&h);
        h.fail_at = n;
        bool ended = lapse_purge_schedule(h.purge, "completed") == 0;
        if (!ended)
            assert_true(*lapse_purge_error(h.purge));
        start(&h, config);
        int is = is_scheduled(&h);
        assert_true(is || !ended);
        assert_false(if_due(&h).purged); /* a look when the instance is loaded */
        assert_int_equal(alarm_at(&h), is ? T0 + 60000 : -1);
        h.now += 60000;
        assert_int_equal(if_due(&h).purged, is);
        close_host(&h);
        if (ended)
            return;
    }
}

static void execute_then_crash(const struct lapse_purge_config *config, int left)
{
    for (int n = 1;; n++) {
        struct host h = open_host();
        struct lapse_purged got;
        start(&h, config);
        put_data(&h);
        assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
        h.now += 60000;
        assert_true(rings(&h));
        h.fail_at = h.calls = 0;
        h.fail_at = n;
        bool ended = lapse_purge_execute_if_due(h.purge, &got) == 0;
        start(&h, config);
        /* Where the alarm was reached, it is set until all is gone: nobody need load the instance. */
        if (n > 6 && is_scheduled(&h))
            assert_true(alarm_at(&h) > h.now);
        if (is_scheduled(&h)) {
            got = if_due(&h);
            assert_true(got.purged);
            assert_string_equal(got.reason, "completed");
        }
        assert_int_equal(keys(&h, ""), left);
        close_host(&h);
        if (ended)
            return;
    }
}

static void cancel_then_crash(const struct lapse_purge_config *config)
{
    for (int n = 1;; n++) {
        struct host h = open_host();
        start(&h, config);
        put_data(&h);
        assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
        h.calls = 0;
        h.fail_at = n;
        bool ended = lapse_purge_cancel(h.purge) == 0;
        start(&h, config);
        assert_int_equal(lapse_purge_cancel(h.purge), 0); /* whoever did not hear of success tries again */
        h.now += 60000;
        assert_false(if_due(&h).purged);
        assert_int_equal(keys(&h, ""), 5);
        close_host(&h);
        if (ended)
            return;
    }
}

/* A purge that dies at its n-th call: then the instance is started again, or the clock goes back. Either all
 * of its data is there, or nothing but what is kept. */
static void half_a_purge(const struct lapse_purge_config *config, int left, bool cancelled)
{
    for (int n = 1;; n++) {
        struct host h = open_host();
        struct lapse_purged got;
        start(&h, config);
        put_data(&h);
        assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
        h.now += 60000;
        h.calls = 0;
        h.fail_at = n;
        bool ended = lapse_purge_execute_if_due(h.purge, &got) == 0;
        start(&h, config);
        h.now = T0;
        if (cancelled) {
            assert_int_equal(lapse_purge_cancel(h.purge), 0);
            assert_int_equal(is_scheduled(&h), 0);
        } else {
            if_due(&h);
        }
        int data = keys(&h, "") - keys(&h, "workflow:purge:") - keys(&h, "workflow:alarm:");
        assert_true(data == 5 || data == left);
        assert_true(data == left || !ended);
        close_host(&h);
        if (ended)
            return;
    }
}

/* One call fails, and the next try succeeds: whoever purged it hears of it, once. */
static void a_call_that_fails_once(const struct lapse_purge_config *config)
{
    for (int n = 1;; n++) {
        struct host h = open_host();
        struct lapse_purged got;
        start(&h, config);
        put_data(&h);
        assert_int_equal(lapse_purge_schedule(h.purge, "completed"), 0);
        h.now += 60000;
        h.calls = 0;
        h.once = true;
        h.fail_at = n;
        if (lapse_purge_execute_if_due(h.purge, &got) < 0)
            got = if_due(&h);
        assert_true(got.purged);
        assert_string_equal(got.reason, "completed");
        assert_string_equal(h.line, "[Workflow] Purged data for wf-1 (completed)");
        bool met = h.calls >= n;
        close_host(&h);
        if (!met)
            return;
    }
}

static void a_crash_between_any_two_writes(void **state)
{
    (void)state;
    static const char *const keep[] = {"meta:*"};
    const struct lapse_purge_config keeping = {.keep = keep, .n_keep = 1};
    schedule_then_crash(&standard);
    execute_then_crash(&standard, 0);
    execute_then_crash(&keeping, 1);
    cancel_then_crash(&standard);
}

/* What the manager does is the same over any storage: over a table it would take long. */
static void half_a_purge_is_none(void **state)
{
    (void)state;
    static const char *const keep[] = {"meta:*"};
    const struct lapse_purge_config keeping = {.keep = keep, .n_keep = 1};
    if (getenv("LAPSE_PURGE_DSN"))
        return;
    half_a_purge(&standard, 0, true);
    half_a_purge(&standard, 0, false);
    half_a_purge(&keeping, 1, true);
    half_a_purge(&keeping, 1, false);
    a_call_that_fails_once(&standard);
    a_call_that_fails_once(&keeping);
}

static void the_systems_clock(void **state)
{
    (void)state;
    struct lapse_clock c;
    lapse_system_clock(&c);
    assert_true(c.now(c.context) > T0);
}

int main(void)
{
    if (getenv("LAPSE_PURGE_TEST"))
        cmocka_set_test_filter(getenv("LAPSE_PURGE_TEST"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_after_the_delay),
        cmocka_unit_test(the_first_terminal_state_wins),
        cmocka_unit_test(a_restart_cancels),
        cmocka_unit_test(without_configuration_nothing_is_touched),
        cmocka_unit_test(delays_by_reason),
        cmocka_unit_test(only_some_reasons),
        cmocka_unit_test(what_is_kept),
        cmocka_unit_test(bad_configuration_is_refused),
        cmocka_unit_test(neither_loses_the_others_alarm),
        cmocka_unit_test(an_early_alarm_is_set_again),
        cmocka_unit_test(a_time_that_cannot_be_read_begins_anew),
        cmocka_unit_test(the_end_of_time),
        cmocka_unit_test(a_crash_between_any_two_writes),
        cmocka_unit_test(half_a_purge_is_none),
        cmocka_unit_test(the_systems_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
