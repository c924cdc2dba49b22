/* daemon: what changed between two contracts, a file that is watched, and a daemon in this process, over the
 * public header, on a SQLite file. */
#include "daemon/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>
#include <sqlite3.h>

/* --- what changed ----------------------------------------------------------------------------------- */

static struct contract *parsed(const char *yaml)
{
    AUTO(mistakes_release) struct mistakes m = {0};
    struct err e = ERR_INIT;
    struct contract *c = NULL;
    if (contract_parse("lapse.yaml", yaml, strlen(yaml), &c, &m, &e) < 0)
        fail_msg("%s\n%s", m.n ? m.list[0].text : e.text, yaml);
    return c;
}

static void assert_changes(const char *from, const char *to, const char *words)
{
    AUTO(contract_free_p) struct contract *a = parsed(from), *b = parsed(to);
    AUTO(changes_release) struct changes c = {0};
    AUTO(text_release) struct text found = {0};
    changes_find(a, b, &c);
    for (size_t i = 0; i < c.n; i++)
        text_addf(&found, "%s%s", i ? "; " : "", c.list[i]);
    assert_string_equal(text_str(&found), words);
}

#define BASE                                                                                                 \
    "store: sqlite:/tmp/x\n"                                                                                 \
    "schedulers: {a: {every: 1m}, b: {every: 5m}}\n"                                                         \
    "policies:\n"
#define ONE                         "  one: {table: t, scheduler: a, expires: at_ms}\n"
#define TWO                         "  two: {table: u, scheduler: b, expires: at_ms}\n"
#define BASE_WITH(schedulers, rest) "store: sqlite:/tmp/x\nschedulers: {" schedulers "}\npolicies:\n" rest

static void test_changes(void **state)
{
    (void)state;
    assert_changes(BASE ONE TWO, BASE ONE TWO, "");
    assert_changes(BASE ONE TWO, "# moved down\n\n" BASE TWO ONE, "");
    assert_changes(BASE ONE, BASE ONE TWO, "policy two added");
    assert_changes(BASE ONE TWO, BASE TWO, "policy one removed");
    assert_changes(BASE ONE, BASE "  one: {table: t, scheduler: a, expires: other_ms}\n",
                   "policy one: expires at_ms -> other_ms");
    assert_changes(BASE ONE, BASE "  one: {table: t, scheduler: b, expires: at_ms}\n",
                   "policy one: scheduler a -> b");
    assert_changes(BASE ONE, BASE "  one: {batch: 7, expires: at_ms, table: t, scheduler: a}\n",
                   "policy one: batch unset -> 7");
    assert_changes(BASE ONE, BASE "  one: {table: t, scheduler: a, age: at_ms, keep: 30d}\n",
                   "policy one: age unset -> at_ms; policy one: keep unset -> 30d; "
                   "policy one: expires at_ms -> unset");
    assert_changes(BASE ONE,
                   BASE "  one: {table: t, scheduler: a, expires: at_ms, timeouts: {statement: 1s}}\n",
                   "policy one: timeouts unset -> { statement: 1s }");
    assert_changes(BASE ONE, BASE_WITH("a: {every: 2m}, c: {every: 1m}", ONE),
                   "scheduler a: every 1m -> 2m; scheduler c added; scheduler b removed");
    assert_changes(BASE ONE, BASE_WITH("a: {every: 1m, exclusive: true}, b: {every: 5m}", ONE),
                   "scheduler a: exclusive unset -> true");
}

/* What is written is the same, and means another: the only scheduler there is, is another one. */
static void test_changes_that_are_not_written(void **state)
{
    (void)state;
    assert_changes(
        "store: sqlite:x\nschedulers: {a: {every: 1m}}\npolicies: {p: {table: t, expires: at_ms}}\n",
        "store: sqlite:x\nschedulers: {b: {every: 1m}}\npolicies: {p: {table: t, expires: at_ms}}\n",
        "scheduler b added; scheduler a removed; policy p changed");
}

static void test_changes_of_purges(void **state)
{
    (void)state;
    static const char one[] = "store: sqlite:x\npurges: {w: {delay: 60s, erases: [w(id)]}}\n";
    assert_changes(one, "store: sqlite:x\npurges: {w: {delay: 5m, erases: [w(id)]}, v: {erases: [v(id)]}}\n",
                   "purges w: delay 60s -> 5m; purges v added");
}

static void test_a_changed_store_is_not_said(void **state)
{
    (void)state;
    const char *from = "store: postgresql://u:secret@h/d\npolicies:\n  one: {table: t, expires: at_ms}\n";
    const char *to = "store: postgresql://u:other@h/d\npolicies:\n  one: {table: t, expires: at_ms}\n";
    assert_changes(from, to, "store changed");
    assert_changes(from, from, "");
    assert_changes(
        "store: sqlite:x\npolicies:\n  one: {table: t, expires: at_ms}\n",
        "store: sqlite:x\nserve: {listen: 127.0.0.1:1}\npolicies:\n  one: {table: t, expires: at_ms}\n",
        "serve changed");
}

/* Whether a beat goes on as it was. */
static void test_what_concerns_the_beat(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = parsed(
        "store: sqlite:x\nschedulers:\n  a: {every: 1m}\n  b: {every: 1m, exclusive: true}\n"
        "  c: {every: 1m, window: 22:00-06:00}\n  d: {every: 1m, jitter: 1s}\n  e: {cron: '* * * * *'}\n"
        "  f: {every: 1m, timezone: Europe/Prague}\n  g: {every: 1m, enabled: false}\n"
        "policies:\n  one: {table: t, scheduler: a, expires: at_ms}\n");
    assert_true(scheduler_times_same(&c->schedulers[0], &c->schedulers[1]));
    for (size_t i = 2; i < c->n_schedulers; i++)
        assert_false(scheduler_times_same(&c->schedulers[0], &c->schedulers[i]));
}

/* --- a folder with a database and a contract -------------------------------------------------------- */

struct home {
    char folder[32], db[48], file[48], other[48];
    sqlite3 *sqlite;
    struct lapse_daemon *daemon;
    pthread_t thread;
    int exit;
    pthread_mutex_t lock;
    struct text log;
    int news[4];
};

static int setup(void **state)
{
    struct home *h = calloc(1, sizeof(*h));
    snprintf(h->folder, sizeof(h->folder), "/tmp/lapse-test-XXXXXX");
    if (!mkdtemp(h->folder))
        return -1;
    snprintf(h->db, sizeof(h->db), "%s/db", h->folder);
    snprintf(h->file, sizeof(h->file), "%s/lapse.yaml", h->folder);
    snprintf(h->other, sizeof(h->other), "%s/new.yaml", h->folder);
    pthread_mutex_init(&h->lock, NULL);
    *state = h;
    if (sqlite3_open(h->db, &h->sqlite) != SQLITE_OK)
        return -1;
    return sqlite3_busy_timeout(h->sqlite, 60000); /* the daemon writes to the same file */
}

static int teardown(void **state)
{
    struct home *h = *state;
    sqlite3_close(h->sqlite);
    text_release(&h->log);
    unlink(h->db);
    unlink(h->file);
    unlink(h->other);
    int rc = rmdir(h->folder);
    free(h);
    return rc;
}

static void sql(struct home *h, const char *text)
{
    if (sqlite3_exec(h->sqlite, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(h->sqlite));
}

static int first_number(void *ret, int n, char **values, char **names)
{
    (void)names;
    *(long long *)ret = n && values[0] ? atoll(values[0]) : -1;
    return 0;
}

static long long number(struct home *h, const char *text)
{
    long long ret = -1;
    if (sqlite3_exec(h->sqlite, text, first_number, &ret, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(h->sqlite));
    return ret;
}

static void write_file(const char *file, const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void write_contract(struct home *h, const char *rest)
{
    AUTO(text_release) struct text t = {0};
    text_addf(&t, "store: sqlite:%s\nserve: off\n%s", h->db, rest);
    write_file(h->file, text_str(&t));
}

/* --- a file that is watched ------------------------------------------------------------------------- */

/* Asks until it settles; how long that took. -1: nothing changed, or it does not within 20 s. */
static int64_t settled_after(struct watch *w, const char *file)
{
    int64_t begin = when_monotonic_us(), wait_us;
    do {
        wait_us = US_PER_S;
        if (watch_changed(w, file, &wait_us))
            return when_monotonic_us() - begin;
        assert_in_range(wait_us, 1, US_PER_S);
        when_sleep_us(10000);
    } while (when_monotonic_us() - begin < 20 * US_PER_S && wait_us < US_PER_S);
    return -1;
}

static void test_watch(void **state)
{
    struct home *h = *state;
    struct watch w = {0};
    write_file(h->file, "one");
    watch_open(&w, h->file);
    watch_loaded(&w, h->file);
    assert_int_equal(settled_after(&w, h->file), -1);

    write_file(h->file, "two2"); /* in place; it is left alone for a while */
    int64_t us = settled_after(&w, h->file);
    assert_in_range(us, 190 * US_PER_MS, 20 * US_PER_S);
    watch_loaded(&w, h->file);
    assert_int_equal(settled_after(&w, h->file), -1);

    write_file(h->other, "two2"); /* by a rename, the same size */
    assert_int_equal(rename(h->other, h->file), 0);
    assert_true(settled_after(&w, h->file) >= 0);
    watch_loaded(&w, h->file);

    assert_int_equal(unlink(h->file), 0); /* gone is no change; back is */
    assert_int_equal(settled_after(&w, h->file), -1);
    write_file(h->file, "two2");
    assert_true(settled_after(&w, h->file) >= 0);
    watch_close(&w);
}

/* --- a daemon --------------------------------------------------------------------------------------- */

static void on_log(void *home, enum lapse_level level, const char *line)
{
    struct home *h = home;
    (void)level;
    pthread_mutex_lock(&h->lock);
    text_addf(&h->log, "%s\n", line);
    pthread_mutex_unlock(&h->lock);
}

static void on_news(void *home, enum lapse_news news, const char *status)
{
    struct home *h = home;
    assert_non_null(status);
    pthread_mutex_lock(&h->lock);
    h->news[news]++;
    pthread_mutex_unlock(&h->lock);
}

static bool said(struct home *h, const char *words)
{
    pthread_mutex_lock(&h->lock);
    bool found = strstr(text_str(&h->log), words) != NULL;
    pthread_mutex_unlock(&h->lock);
    return found;
}

static int news_of(struct home *h, enum lapse_news news)
{
    pthread_mutex_lock(&h->lock);
    int n = h->news[news];
    pthread_mutex_unlock(&h->lock);
    return n;
}

#define EVENTUALLY(question)                                                                                 \
    do {                                                                                                     \
        int64_t until = when_monotonic_us() + 20 * US_PER_S;                                                 \
        while (!(question)) {                                                                                \
            if (when_monotonic_us() > until)                                                                 \
                fail_msg("not within 20 s: %s\n%s", #question, text_str(&h->log));                           \
            when_sleep_us(5000);                                                                             \
        }                                                                                                    \
    } while (0)

static void *run(void *home)
{
    struct home *h = home;
    h->exit = lapse_daemon_run(h->daemon);
    return NULL;
}

static void start_daemon(struct home *h, struct lapse_daemon_options o)
{
    struct lapse_report *report = NULL;
    o.json = 1;
    o.log = on_log;
    o.news = on_news;
    o.context = h;
    h->daemon = lapse_daemon_new(h->file, &o, &report);
    assert_non_null(h->daemon);
    assert_int_equal(pthread_create(&h->thread, NULL, run, h), 0);
}

static void stop_daemon(struct home *h, enum lapse_request how)
{
    lapse_daemon_ask(h->daemon, how);
    pthread_join(h->thread, NULL);
    lapse_daemon_free(h->daemon);
}

#define JOBS                                                                                                 \
    "schedulers: {main: {every: 50ms}}\n"                                                                    \
    "policies:\n  job: {table: job, expires: at_ms}\n"

static void make_jobs(struct home *h)
{
    sql(h, "create table job (id integer primary key, at_ms integer not null);"
           "create index job_at on job (at_ms);"
           "insert into job values (1, 1), (2, 2), (3, 99999999999999)");
}

static json_t *asked(char *text)
{
    json_error_t e;
    assert_non_null(text);
    json_t *j = json_loads(text, 0, &e);
    if (!j)
        fail_msg("%s: %s", e.text, text);
    free(text);
    return j;
}

static const char *text_at(json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static bool ready_by_status(struct home *h)
{
    json_t *o = asked(lapse_daemon_status(h->daemon));
    bool ready = json_is_true(json_object_get(o, "ready"));
    json_decref(o);
    return ready;
}

static void test_it_ticks_and_tells(void **state)
{
    struct home *h = *state;
    char *why = NULL;
    make_jobs(h);
    write_contract(h, JOBS);
    start_daemon(h, (struct lapse_daemon_options){0});
    EVENTUALLY(number(h, "select count(*) from job") == 1);
    sql(h, "insert into job values (4, 4)");
    EVENTUALLY(number(h, "select count(*) from job") == 1);
    EVENTUALLY(said(h, "main.lifecycle_pruned"));
    assert_true(lapse_daemon_alive(h->daemon));
    EVENTUALLY(lapse_daemon_ready(h->daemon, NULL)); /* where others run, a tick may be late */
    EVENTUALLY(ready_by_status(h));

    json_t *o = asked(lapse_daemon_status(h->daemon));
    json_t *s = json_array_get(json_object_get(o, "schedulers"), 0);
    assert_string_equal(text_at(o, "contract"), h->file);
    assert_string_equal(text_at(s, "name"), "main");
    assert_string_equal(text_at(s, "every"), "50ms");
    assert_string_equal(text_at(json_object_get(s, "last"), "outcome"), "done");
    json_decref(o);

    EVENTUALLY((o = asked(lapse_daemon_policies(h->daemon)), s = json_array_get(o, 0),
                (long)json_integer_value(json_object_get(s, "rows_total")) == 3 ? (json_decref(o), true)
                                                                                : (json_decref(o), false)));
    char *metrics = lapse_daemon_metrics(h->daemon);
    assert_non_null(
        strstr(metrics, "lifecycle_prune_rows_total{scheduler=\"main\",table=\"job\",policy=\"job\"} 3"));
    free(metrics);
    assert_null(lapse_daemon_runs(h->daemon, NULL, 5, &why));
    assert_non_null(strstr(why, "lapse install"));
    free(why);
    stop_daemon(h, LAPSE_STOP);
    assert_int_equal(h->exit, LAPSE_DONE);
    assert_int_equal(h->news[LAPSE_READY], 1);
    assert_int_equal(h->news[LAPSE_STOPPING], 1);
    assert_true(said(h, "lapse.stopped"));
}

/* Many reloads while it ticks and while others ask: for the sanitizers. */
static void test_reloads_while_it_ticks(void **state)
{
    struct home *h = *state;
    static const char *const contracts[] = {
        JOBS,
        "schedulers: {main: {every: 20ms}, more: {every: 30ms}}\n"
        "policies:\n  job: {table: job, scheduler: main, expires: at_ms}\n"
        "  again: {table: job, scheduler: more, expires: at_ms}\n",
        "schedulers: {main: {every: 20ms, enabled: false}, more: {every: 10ms}}\n"
        "policies:\n  job: {table: job, scheduler: main, expires: at_ms}\n"
        "  again: {table: job, scheduler: more, expires: at_ms, batch: 1}\n",
    };
    make_jobs(h);
    write_contract(h, JOBS);
    start_daemon(h, (struct lapse_daemon_options){0});
    for (int i = 0; i < 100; i++) {
        int before = news_of(h, LAPSE_READY);
        if (i % 10 == 9)
            write_contract(h, "policies: {job: {tabel: job}}\n");
        else
            write_contract(h, contracts[i % 3]);
        lapse_daemon_ask(h->daemon, LAPSE_RELOAD);
        free(lapse_daemon_status(h->daemon));
        free(lapse_daemon_policies(h->daemon));
        free(lapse_daemon_metrics(h->daemon));
        lapse_daemon_ready(h->daemon, NULL);
        EVENTUALLY(news_of(h, LAPSE_READY) > before);
        if (i % 10 == 9)
            assert_false(lapse_daemon_ready(h->daemon, NULL));
    }
    write_contract(h, JOBS);
    lapse_daemon_ask(h->daemon, LAPSE_RELOAD);
    EVENTUALLY(lapse_daemon_ready(h->daemon, NULL));
    sql(h, "insert into job values (9, 9)");
    EVENTUALLY(number(h, "select count(*) from job") == 1);
    stop_daemon(h, LAPSE_STOP_NOW);
    assert_int_equal(h->exit, LAPSE_DONE);
    assert_true(said(h, "did you mean 'table'?"));
    assert_true(said(h, "scheduler more added"));
}

static void test_what_cannot_start(void **state)
{
    struct home *h = *state;
    struct lapse_report *report = NULL;
    struct lapse_daemon_options o = {.observe = 1, .install = 1};
    write_contract(h, JOBS);
    assert_null(lapse_daemon_new(h->file, &o, &report));
    assert_int_equal(lapse_report_exit(report), LAPSE_BAD_INPUT);
    lapse_report_free(report);
    o.install = 0;
    write_contract(h, "policies: {job: {}}\n");
    assert_null(lapse_daemon_new(h->file, &o, &report));
    assert_int_equal(lapse_report_exit(report), LAPSE_BAD_INPUT);
    lapse_report_free(report);
}

/* Asked to stop before it runs, it does not. */
static void test_stop_before_run(void **state)
{
    struct home *h = *state;
    struct lapse_report *report = NULL;
    make_jobs(h);
    write_contract(h, JOBS);
    h->daemon =
        lapse_daemon_new(h->file, &(struct lapse_daemon_options){.log = on_log, .context = h}, &report);
    assert_non_null(h->daemon);
    assert_false(lapse_daemon_ready(h->daemon, NULL));
    lapse_daemon_ask(h->daemon, LAPSE_STOP);
    assert_int_equal(lapse_daemon_run(h->daemon), LAPSE_DONE);
    assert_int_equal(number(h, "select count(*) from job"), 3);
    lapse_daemon_free(h->daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_changes_that_are_not_written),
        cmocka_unit_test(test_changes_of_purges),
        cmocka_unit_test(test_a_changed_store_is_not_said),
        cmocka_unit_test(test_what_concerns_the_beat),
        cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_it_ticks_and_tells, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reloads_while_it_ticks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_before_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
