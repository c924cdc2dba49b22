/* Tests of src/command/tick.c: ticks on a real SQLite file whose clock is the test's: the default VFS is a copy
 * of the real one that tells another time, so nothing in lapse knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "schedule/beat.h"
#include "command/tick.h"

#ifdef __SANITIZE_ADDRESS__
size_t __sanitizer_get_current_allocated_bytes(void); /* its header is not everywhere */
#endif

#define S INT64_C(1000000)
#define M (60 * S)
#define H (60 * M)

/* --- the clock ------------------------------------------------------------------------------------------ */

static struct clocks clock_now; /* what both clocks show */
static sqlite3_vfs faked;
static size_t statements; /* that any connection has run */

static int tell_time(sqlite3_vfs *vfs, sqlite3_int64 *ret)
{
    (void)vfs;
    *ret = INT64_C(210866760000000) + clock_now.wall / 1000;
    return SQLITE_OK;
}

static int tell_days(sqlite3_vfs *vfs, double *ret)
{
    sqlite3_int64 ms;
    tell_time(vfs, &ms);
    *ret = (double)ms / 86400000.0;
    return SQLITE_OK;
}

static int count_statement(unsigned event, void *context, void *stmt, void *text)
{
    (void)event, (void)context, (void)stmt;
    statements += strncmp(text, "--", 2) != 0; /* those are of triggers */
    return 0;
}

static int watch(sqlite3 *db, char **error, const void *api)
{
    (void)error, (void)api;
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_statement, NULL);
    return SQLITE_OK;
}

static int fake_clock(void **state)
{
    (void)state;
    faked = *sqlite3_vfs_find(NULL);
    faked.zName = "faked";
    faked.xCurrentTime = tell_days;
    faked.xCurrentTimeInt64 = tell_time;
    return sqlite3_vfs_register(&faked, 1) || sqlite3_auto_extension((void (*)(void))watch);
}

static instant time_of(const char *text)
{
    instant at;
    assert_true(when_parse(text, strlen(text), NULL, &at));
    return at;
}

static void set_time(const char *text)
{
    clock_now = (struct clocks){time_of(text), 7 * H};
}

static void pass(int64_t us)
{
    clock_now.wall += us;
    clock_now.boot_us += us;
}

/* --- a folder with a database and a contract --------------------------------------------------------------
 */

struct place_of_work {
    char folder[32], db[48];
    sqlite3 *sqlite;
    struct contract *contract;
    struct hand *hand; /* of the first scheduler */
};

static int setup(void **state)
{
    struct place_of_work *p = calloc(1, sizeof(*p));
    bool quick = access("/dev/shm", W_OK) == 0; /* thousands of commits */
    snprintf(p->folder, sizeof(p->folder), "%s/lapse-test-XXXXXX", quick ? "/dev/shm" : "/tmp");
    if (!mkdtemp(p->folder))
        return -1;
    snprintf(p->db, sizeof(p->db), "%s/db", p->folder);
    *state = p;
    set_time("2026-03-28T12:00:00Z");
    return sqlite3_open(p->db, &p->sqlite);
}

static int teardown(void **state)
{
    struct place_of_work *p = *state;
    hand_free(p->hand);
    contract_free(p->contract);
    sqlite3_close(p->sqlite);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", p->folder);
    int rc = system(command);
    free(p);
    return rc;
}

static void sql(struct place_of_work *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = sqlite3_vmprintf(format, args), *error = NULL;
    va_end(args);
    if (sqlite3_exec(p->sqlite, text, NULL, NULL, &error))
        fail_msg("%s: %s", text, error);
    sqlite3_free(text);
}

static int first_number(void *ret, int n, char **values, char **names)
{
    (void)names;
    *(long long *)ret = n && values[0] ? atoll(values[0]) : -1;
    return 0;
}

static long long number(struct place_of_work *p, const char *text)
{
    long long ret = -1;
    if (sqlite3_exec(p->sqlite, text, first_number, &ret, NULL))
        fail_msg("%s: %s", text, sqlite3_errmsg(p->sqlite));
    return ret;
}

static void load(struct place_of_work *p, const char *yaml)
{
    AUTO(text_release) struct text t = {0};
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    struct err e = ERR_INIT;
    text_addf(&t, "store: sqlite:%s\n%s", p->db, yaml);
    hand_free(p->hand);
    p->hand = NULL;
    contract_free(p->contract);
    p->contract = NULL;
    if (contract_parse("lapse.yaml", text_str(&t), t.len, &p->contract, &mistakes, &e) < 0)
        fail_msg("%s", mistakes.n ? mistakes.list[0].text : e.text);
    p->hand = hand_new(p->contract, &p->contract->schedulers[0]);
}

static void install(struct place_of_work *p)
{
    AUTO(text_release) struct text dsn = {0};
    AUTO(store_close_p) struct store *s = NULL;
    struct err e = ERR_INIT;
    int from;
    text_addf(&dsn, "sqlite:%s", p->db);
    if (store_open(text_str(&dsn), false, &s, &e) < 0 || s->ops->own->install(s, &from, &e) < 0)
        fail_msg("%s", e.text);
}

static const struct tick_options plain = {.until = NEVER, .source = "daemon", .owner = "test:1:1"};

static void free_report(struct report **r)
{
    report_free(*r);
}

#define TICK(name, hand, options) AUTO(free_report) struct report *name = hand_tick(hand, options)

/* A tick that must end so. */
static struct report *ticked(struct hand *h, const struct tick_options *o, int code, enum outcome_kind first,
                             int64_t rows)
{
    struct report *r = hand_tick(h, o);
    if (r->exit != code || !r->n_policies || r->policies[0].kind != first)
        fail_msg("exit %d, %zu policies, outcome %s: %s", r->exit, r->n_policies,
                 r->n_policies ? outcome_name(r->policies[0].kind) : "?",
                 r->error                                ? r->error
                 : r->n_policies && r->policies[0].error ? r->policies[0].error
                                                         : "");
    assert_int_equal(report_rows(&r->policies[0]), rows);
    return r;
}

static void expect(struct place_of_work *p, int code, enum outcome_kind first, int64_t rows)
{
    report_free(ticked(p->hand, &plain, code, first, rows));
}

#define JOBS                                                                                                 \
    "CREATE TABLE job(id INTEGER PRIMARY KEY, end_ms INTEGER, note TEXT); CREATE INDEX job_end ON "          \
    "job(end_ms)"

static void add_job(struct place_of_work *p, int64_t due_in_us)
{
    sql(p, "INSERT INTO job(end_ms) VALUES (%lld)", (long long)((clock_now.wall + due_in_us) / 1000));
}

static const char job_yaml[] = "policies: { job: { table: job, expires: end_ms } }\n";

/* --- what a tick is ------------------------------------------------------------------------------------- */

static void a_tick_deletes_what_is_due_by_the_databases_clock(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    load(p, job_yaml);
    add_job(p, -M);
    add_job(p, M);
    TICK(r, p->hand, &plain);
    assert_int_equal(r->now, clock_now.wall);
    assert_int_equal(r->exit, LAPSE_DONE);
    assert_int_equal(report_rows(&r->policies[0]), 1);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
    pass(M);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 1);
    assert_int_equal(number(p, "SELECT count(*) FROM job"), 0);
}

/* The clock and the brakes cost no statement or one; then one probe per policy. */
static void an_idle_tick_costs_one_probe_per_policy(void **state)
{
    struct place_of_work *p = *state;
    enum { POLICIES = 50 };
    AUTO(text_release) struct text yaml = {0};
    text_add(&yaml, "policies:\n");
    for (int i = 0; i < POLICIES; i++) {
        sql(p, "CREATE TABLE t%d(id INTEGER PRIMARY KEY, end_ms INTEGER); CREATE INDEX i%d ON t%d(end_ms)", i,
            i, i);
        text_addf(&yaml, "  t%d: { table: t%d, expires: end_ms }\n", i, i);
    }
    install(p);
    load(p, text_str(&yaml));
    for (int i = 0; i < 3; i++)
        expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
    long long runs = number(p, "SELECT count(*) FROM lapse_run WHERE outcome = 'done' AND source = 'daemon'");
    assert_int_equal(runs, 3);
    statements = 0;
    expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
    assert_in_range(statements, POLICIES + 1, POLICIES + 20);
    sql(p, "INSERT INTO t7 VALUES (1, 5)");
    TICK(r, p->hand, &plain);
    assert_int_equal(report_rows(&r->policies[7]), 1);
}

/* What is kept from before never deletes, and does not hide for long what has changed. */
static void facts_kept_from_before_delete_nothing(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    load(p, job_yaml);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
    sql(p, "DROP TABLE job; CREATE TABLE job(id INTEGER PRIMARY KEY, end_ms INTEGER);"
           "CREATE TABLE part(id INTEGER PRIMARY KEY, job INTEGER REFERENCES job(id) ON DELETE CASCADE)");
    add_job(p, -M);
    sql(p, "INSERT INTO part VALUES (1, 1)");
    expect(p, LAPSE_FINDINGS, OUTCOME_REFUSED, 0); /* a foreign key that the policy does not name */
    assert_int_equal(number(p, "SELECT count(*) FROM part"), 1);
    sql(p, "DELETE FROM part; DELETE FROM job");
    expect(p, LAPSE_FINDINGS, OUTCOME_REFUSED, 0); /* also while nothing is due */
    add_job(p, -M);
    sql(p, "DROP TABLE part");
    expect(p, LAPSE_DONE, OUTCOME_DONE, 1); /* what was refused is looked at anew each time */
    sql(p, "CREATE TABLE part(id INTEGER PRIMARY KEY, job INTEGER REFERENCES job(id))");
    expect(p, LAPSE_FINDINGS, OUTCOME_REFUSED, 0);
    sql(p, "DROP TABLE part");
    expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
    sql(p, "DROP TABLE job");
    expect(p, LAPSE_FINDINGS, OUTCOME_REFUSED, 0);
    sql(p, JOBS);
    add_job(p, -M);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 1);
}

static void a_file_that_was_replaced_is_opened_anew(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    load(p, job_yaml);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
    sqlite3_close(p->sqlite);
    assert_int_equal(unlink(p->db), 0);
    TICK(r, p->hand, &plain);
    assert_int_equal(r->exit, LAPSE_UNREACHABLE);
    assert_int_equal(r->kind, REPORT_ERROR);
    assert_non_null(strstr(r->error, "cannot open"));
    assert_int_equal(sqlite3_open(p->db, &p->sqlite), SQLITE_OK);
    sql(p, JOBS);
    add_job(p, -M);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 1);
}

/* A probe that finds nothing must not pass for a fuse that was settled. */
static void a_fuse_that_tripped_is_said_at_every_tick(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    install(p);
    load(p, "policies: { job: { table: job, expires: end_ms, limits: { rows: 1 } } }\n");
    expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
    add_job(p, -M);
    add_job(p, -M);
    expect(p, LAPSE_FUSE, OUTCOME_FUSE, 0);
    sql(p, "DELETE FROM job");
    expect(p, LAPSE_FUSE, OUTCOME_FUSE, 0);
    sql(p, "DELETE FROM lapse_fuse");
    expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
}

static void policies_run_in_order_and_one_that_fails_stops_no_other(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    sql(p, "CREATE TABLE other(id INTEGER PRIMARY KEY, end_ms INTEGER)");
    load(p, "policies:\n  gone: { table: nowhere, expires: end_ms }\n"
            "  off: { table: other, expires: end_ms, enabled: false }\n"
            "  job: { table: job, expires: end_ms }\n");
    add_job(p, -M);
    TICK(r, p->hand, &plain);
    assert_int_equal(r->exit, LAPSE_FINDINGS);
    assert_int_equal(r->n_policies, 3);
    assert_int_equal(r->policies[0].kind, OUTCOME_REFUSED);
    assert_int_equal(r->policies[1].kind, OUTCOME_DISABLED);
    assert_int_equal(report_rows(&r->policies[2]), 1);
}

static void a_brake_pauses(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    install(p);
    load(p, job_yaml);
    add_job(p, -M);
    sql(p, "INSERT INTO lapse_pause (name, until, paused_at) VALUES ('job', NULL, '2026-03-28T11:00:00Z')");
    for (int i = 0; i < 2; i++)
        expect(p, LAPSE_STOPPED, OUTCOME_PAUSED, 0);
    sql(p, "DELETE FROM lapse_pause");
    expect(p, LAPSE_DONE, OUTCOME_DONE, 1);
    assert_int_equal(number(p, "SELECT count(*) FROM lapse_run WHERE outcome = 'paused'"), 2);
}

/* Over a connection that cannot write. */
static void observe_counts_and_deletes_nothing(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    install(p);
    load(p, job_yaml);
    add_job(p, -M);
    struct tick_options o = plain;
    o.observe = true;
    for (int i = 0; i < 2; i++) {
        struct report *r = ticked(p->hand, &o, LAPSE_DONE, OUTCOME_DONE, 1);
        assert_int_equal(r->kind, REPORT_PLAN);
        report_free(r);
    }
    assert_int_equal(number(p, "SELECT count(*) FROM job"), 1);
    assert_int_equal(number(p, "SELECT count(*) FROM lapse_run"), 0);
}

/* --- stopping ------------------------------------------------------------------------------------------- */

struct stopper {
    int batches, stop_after;
};

static bool stop_now(void *context)
{
    const struct stopper *s = context;
    return s->batches >= s->stop_after;
}

static void count_batch(void *context, const struct report_policy *p, const int64_t *gone, int64_t us)
{
    struct stopper *s = context;
    assert_string_equal(p->policy->name, "job");
    assert_int_equal(p->n_tables, 1);
    assert_int_equal(gone[0], 2);
    assert_true(us > 0);
    s->batches++;
}

static void a_stop_is_heard_before_every_batch_and_policy(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    load(p, "policies:\n  job: { table: job, expires: end_ms, batch: 2, pace: { target: 10m } }\n"
            "  again: { table: job, expires: end_ms }\n");
    for (int i = 0; i < 7; i++)
        add_job(p, -M);
    struct stopper s = {.stop_after = 2};
    struct tick_options o = plain;
    o.stop = stop_now;
    o.batch = count_batch;
    o.context = &s;
    TICK(r, p->hand, &o);
    assert_int_equal(r->exit, LAPSE_STOPPED);
    assert_int_equal(report_rows(&r->policies[0]), 4);
    assert_int_equal(r->policies[0].kind, OUTCOME_STOPPED);
    assert_int_equal(r->policies[1].kind, OUTCOME_STOPPED);
    assert_int_equal(s.batches, 2);
}

/* Once two jobs are left, and a little later. */
static void *interrupt_soon(void *place)
{
    struct place_of_work *p = place;
    long long jobs = -1;
    for (int i = 0; i < 2000 && jobs != 2; i++) {
        sqlite3_exec(p->sqlite, "SELECT count(*) FROM job", first_number, &jobs, NULL);
        when_sleep_us(10 * 1000);
    }
    when_sleep_us(200 * 1000);
    hand_interrupt(p->hand);
    return NULL;
}

/* A statement that would take minutes, and a lock that another holds for longer than the test lasts. */
static void what_runs_is_interrupted_and_rolled_back(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    install(p);
    sql(p,
        "CREATE TABLE big(n INTEGER); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
        "i < 20000) INSERT INTO big SELECT i FROM n;"
        "CREATE TRIGGER slow AFTER DELETE ON job WHEN old.id > 1 BEGIN "
        "UPDATE big SET n = n + 1 WHERE (SELECT count(*) FROM big AS a, big AS b WHERE a.n < b.n) < 0; END");
    load(p, "policies: { job: { table: job, expires: end_ms, batch: 1, timeouts: { statement: 10m, lock: 10m "
            "} } }\n");
    for (int i = 0; i < 3; i++)
        add_job(p, -M);
    for (int locked = 0; locked < 2; locked++) {
        pthread_t thread;
        int64_t began = when_monotonic_us();
        if (locked)
            sql(p, "BEGIN IMMEDIATE");
        assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, p), 0);
        report_free(ticked(p->hand, &plain, LAPSE_STOPPED, OUTCOME_STOPPED, locked ? 0 : 1));
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(when_monotonic_us() - began < 30 * S);
        if (locked)
            sql(p, "COMMIT");
        assert_int_equal(number(p, "SELECT count(*) FROM job"), 2);
    }
    assert_int_equal(number(p, "SELECT count(*) FROM lapse_run WHERE outcome = 'running'"), 1);
    sql(p, "DROP TRIGGER slow");
    expect(p, LAPSE_DONE, OUTCOME_DONE, 2); /* the next tick is not concerned */
}

/* --- leases --------------------------------------------------------------------------------------------- */

static void the_lease_is_kept_between_ticks_and_handed_over(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    load(p, "schedulers: { s: { every: 1m, exclusive: true, lease: 30s } }\n"
            "policies: { job: { table: job, expires: end_ms }, off: { table: job, expires: end_ms, enabled: "
            "false } }\n");
    add_job(p, -M);
    expect(p, LAPSE_FINDINGS, OUTCOME_REFUSED, 0); /* no lease without own tables */
    assert_int_equal(hand_keep(p->hand), INT64_MAX);
    install(p);
    struct hand *other = hand_new(p->contract, &p->contract->schedulers[0]);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 1);
    assert_true(hand_leads(p->hand));
    assert_in_range(hand_keep(p->hand), 1, 10 * S);
    hand_rest(p->hand, 10 * H); /* keeps what it needs */
    assert_true(hand_leads(p->hand));
    add_job(p, -M);
    struct report *held = ticked(other, &plain, LAPSE_DONE, OUTCOME_HELD, 0);
    assert_non_null(held->policies[0].holder);
    assert_int_equal(held->policies[1].kind, OUTCOME_DISABLED);
    report_free(held);
    assert_int_equal(number(p, "SELECT count(*) FROM lapse_run"), 1); /* held elsewhere leaves no row */
    assert_false(hand_leads(other));
    hand_free(p->hand);
    p->hand = other;
    expect(p, LAPSE_DONE, OUTCOME_DONE, 1); /* at once */
}

/* By the database's clock the lease is over; another takes it; the first finds out at its fence. */
static void a_lease_that_was_lost_ends_the_tick(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    install(p);
    load(p, "schedulers: { s: { every: 1m, exclusive: true, lease: 30s } }\n"
            "policies: { a: { table: job, expires: end_ms }, b: { table: job, expires: end_ms } }\n");
    expect(p, LAPSE_DONE, OUTCOME_DONE, 0);
    pass(40 * S);
    struct hand *other = hand_new(p->contract, &p->contract->schedulers[0]);
    report_free(ticked(other, &plain, LAPSE_DONE, OUTCOME_DONE, 0));
    assert_true(hand_leads(other));
    add_job(p, -M);
    TICK(r, p->hand, &plain);
    assert_int_equal(r->exit, LAPSE_FAILED);
    assert_int_equal(r->policies[0].kind, OUTCOME_FAILED);
    assert_int_equal(r->policies[1].kind, OUTCOME_STOPPED);
    assert_int_equal(number(p, "SELECT count(*) FROM job"), 1);
    assert_false(hand_leads(p->hand));
    expect(p, LAPSE_DONE, OUTCOME_HELD, 0);
    hand_free(other);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 1);
}

/* --- budget and window ---------------------------------------------------------------------------------- */

static void a_budget_is_of_a_policy_and_a_tick(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    load(p, "schedulers: { s: { every: 1m, budget: { rows: 5 } } }\n"
            "policies: { job: { table: job, expires: end_ms, batch: 3 } }\n");
    for (int i = 0; i < 12; i++)
        add_job(p, -M);
    expect(p, LAPSE_STOPPED, OUTCOME_BUDGET, 5);
    expect(p, LAPSE_STOPPED, OUTCOME_BUDGET, 5);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 2);
    for (int i = 0; i < 5; i++)
        add_job(p, -M);
    expect(p, LAPSE_DONE, OUTCOME_DONE, 5); /* used up to the last row, and nothing is left */
}

static bool never_stop(void *context)
{
    (void)context;
    return false;
}

static void a_window_that_closes_ends_it_after_the_batch(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    load(p, "policies: { job: { table: job, expires: end_ms }, b: { table: job, expires: end_ms } }\n");
    add_job(p, -M);
    struct tick_options o = plain;
    o.stop = never_stop;
    o.until = when_now(); /* by the machine's own clock */
    TICK(r, p->hand, &o);
    assert_int_equal(r->exit, LAPSE_STOPPED);
    assert_int_equal(r->policies[0].kind, OUTCOME_WINDOW);
    assert_int_equal(r->policies[1].kind, OUTCOME_WINDOW);
    assert_int_equal(number(p, "SELECT count(*) FROM job"), 1);
    o.until = when_now() + H;
    report_free(ticked(p->hand, &o, LAPSE_DONE, OUTCOME_DONE, 1));
}

/* --- a day ---------------------------------------------------------------------------------------------- */

/* What should become of rows, reckoned without lapse. */
struct row {
    int64_t id;
    instant due; /* the first instant at which it may go */
    bool held;   /* never */
    bool gone;
};
struct model {
    const char *table, *check; /* count and sum of ids as one number */
    int64_t budget;            /* rows per tick */
    struct row rows[4000];
    size_t n;
};

/* The oldest first. */
static int64_t model_tick(struct model *m, instant now)
{
    int64_t gone = 0;
    while (gone < m->budget) {
        struct row *oldest = NULL;
        for (size_t i = 0; i < m->n; i++) {
            struct row *r = &m->rows[i];
            if (!r->gone && !r->held && r->due <= now && (!oldest || r->due < oldest->due))
                oldest = r;
        }
        if (!oldest)
            break;
        oldest->gone = true;
        gone++;
    }
    return gone;
}

static bool model_has_due(const struct model *m, instant now)
{
    for (size_t i = 0; i < m->n; i++)
        if (!m->rows[i].gone && !m->rows[i].held && m->rows[i].due <= now)
            return true;
    return false;
}

static void compare(struct place_of_work *p, const struct model *m)
{
    int64_t n = 0, sum = 0;
    for (size_t i = 0; i < m->n; i++) {
        n += !m->rows[i].gone;
        sum += m->rows[i].gone ? 0 : m->rows[i].id;
    }
    char text[128];
    snprintf(text, sizeof(text), "SELECT count(*) * 1000000000 + coalesce(sum(id), 0) FROM %s", m->table);
    assert_int_equal(number(p, text), n * 1000000000 + sum);
}

enum { SESSION, EVENT, QUEUE, NIGHT, N_MODELS };

static struct row *model_add(struct model *m, instant due)
{
    assert_true(m->n < COUNT_OF(m->rows));
    m->rows[m->n] = (struct row){.id = (int64_t)m->n + 1, .due = due};
    return &m->rows[m->n++];
}

/* What applications do in a minute. */
static void live(struct place_of_work *p, struct model *m, unsigned minute)
{
    instant now = clock_now.wall;
    char text[WHEN_TEXT_SIZE];
    const struct row *r = model_add(&m[SESSION], now + (1 + minute * 7 % 120) * M);
    sql(p, "INSERT INTO session VALUES (%lld, %lld)", (long long)r->id, (long long)(r->due / 1000));
    /* kept for 90 minutes, and gone when older than that: the next millisecond */
    struct row *e = model_add(&m[EVENT], now + 90 * M + 1);
    e->held = minute % 10 == 3;
    sql(p, "INSERT INTO event VALUES (%lld, %Q, %Q)", (long long)e->id, when_format(now, text),
        e->held ? "open" : "closed");
    for (unsigned i = 0; i < minute % 3; i++) {
        r = model_add(&m[QUEUE], now + 10 * M + i * 1000);
        sql(p, "INSERT INTO queue VALUES (%lld, %lld)", (long long)r->id, (long long)(r->due / 1000));
    }
    r = model_add(&m[NIGHT], now + 2 * H);
    sql(p, "INSERT INTO night VALUES (%lld, %lld)", (long long)r->id, (long long)(r->due / 1000));
}

static void a_day_of_sweeps(void **state)
{
    struct place_of_work *p = *state;
    static const char yaml[] =
        "schedulers:\n"
        "  session: { every: 1m }\n"
        "  event: { cron: '*/20 * * * *', timezone: Europe/Prague }\n"
        "  queue: { every: 5m, budget: { rows: 4 } }\n"
        "  night: { every: 30m, window: '22:00-06:00', timezone: Europe/Prague }\n"
        "policies:\n"
        "  session: { scheduler: session, table: session, expires: end_ms }\n"
        "  event: { scheduler: event, table: event, age: at, keep: 90m, rows: { state: closed } }\n"
        "  queue: { scheduler: queue, table: queue, expires: end_ms, batch: 3 }\n"
        "  night: { scheduler: night, table: night, expires: end_ms, batch: null }\n";
    static const int64_t budgets[] = {INT64_MAX, INT64_MAX, 4, INT64_MAX};
    static const size_t ticks_of[] = {24 * 60, 24 * 3 - 1, 24 * 12, 14};
    struct model *models = calloc(N_MODELS, sizeof(*models));
    sql(p, "CREATE TABLE session(id INTEGER PRIMARY KEY, end_ms INTEGER NOT NULL);"
           "CREATE TABLE event(id INTEGER PRIMARY KEY, at TEXT NOT NULL, state TEXT NOT NULL);"
           "CREATE TABLE queue(id INTEGER PRIMARY KEY, end_ms INTEGER NOT NULL);"
           "CREATE TABLE night(id INTEGER PRIMARY KEY, end_ms INTEGER NOT NULL);"
           "CREATE INDEX s ON session(end_ms); CREATE INDEX e ON event(at); CREATE INDEX q ON queue(end_ms);"
           "CREATE INDEX n ON night(end_ms)");
    install(p);
    load(p, yaml);
    hand_free(p->hand);
    p->hand = NULL;
    struct hand *hands[N_MODELS];
    struct ticker *tickers[N_MODELS];
    struct beat beats[N_MODELS];
    size_t ticks[N_MODELS] = {0};
    instant begin = clock_now.wall, end = begin + 24 * H, next_life = begin;
    for (size_t i = 0; i < N_MODELS; i++) {
        struct err e = ERR_INIT;
        models[i].table = p->contract->schedulers[i].name;
        models[i].budget = budgets[i];
        hands[i] = hand_new(p->contract, &p->contract->schedulers[i]);
        assert_int_equal(ticker_open(&p->contract->schedulers[i], &tickers[i], &e), 0);
        beat_begin(&beats[i], tickers[i], clock_now, NULL, 0);
    }
    unsigned minute = 0;
    int64_t budget_ticks = 0, gone_in_all = 0;
    while (clock_now.wall < end) {
        instant next = next_life;
        for (size_t i = 0; i < N_MODELS; i++)
            next = beats[i].start < next ? beats[i].start : next;
        pass(next - clock_now.wall);
        if (clock_now.wall >= end)
            break;
        if (clock_now.wall == next_life) {
            live(p, models, minute++);
            next_life += M;
        }
        for (size_t i = 0; i < N_MODELS; i++) {
            if (!beat_turn(&beats[i], clock_now, 0))
                continue;
            struct tick_options o = plain;
            int64_t rows = model_tick(&models[i], clock_now.wall);
            bool more = model_has_due(&models[i], clock_now.wall);
            report_free(ticked(hands[i], &o, more ? LAPSE_STOPPED : LAPSE_DONE,
                               more ? OUTCOME_BUDGET : OUTCOME_DONE, rows));
            compare(p, &models[i]);
            beat_end(&beats[i], clock_now, false, NEVER, 0);
            ticks[i]++;
            budget_ticks += more;
            gone_in_all += rows;
            if (beats[i].start - clock_now.wall > H)
                hand_rest(hands[i], beats[i].start - clock_now.wall);
        }
    }
    for (size_t i = 0; i < N_MODELS; i++) {
        assert_int_equal(ticks[i], ticks_of[i]);
        hand_free(hands[i]);
        ticker_free(tickers[i]);
    }
    assert_true(budget_ticks > 100); /* 5 rows come in 5 minutes, and 4 go */
    assert_true(gone_in_all > 3000);
    assert_int_equal(number(p, "SELECT count(*) FROM lapse_run"), 24 * 60 + 24 * 3 - 1 + 24 * 12 + 14);
    assert_int_equal(number(p, "SELECT sum(rows_gone) FROM lapse_run"), gone_in_all);
    free(models);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static size_t memory_in_use(void)
{
#ifdef __SANITIZE_ADDRESS__
    return __sanitizer_get_current_allocated_bytes();
#else
    return mallinfo2().uordblks;
#endif
}

/* So many ticks, of which every tenth deletes something; what is in use once it has settled must be enough.
 */
static void ticks_need_no_more_memory(struct place_of_work *p, int settled, int in_all, int code)
{
    size_t early = 0;
    for (int i = 1; i <= in_all; i++) {
        if (i % 10 == 0)
            add_job(p, -M);
        if (i % 500 == 0) /* so that the pages of the history do not count */
            sql(p, "DELETE FROM lapse_run");
        report_free(ticked(p->hand, &plain, code, OUTCOME_DONE, i % 10 == 0));
        pass(S);
        if (i == settled)
            early = memory_in_use();
    }
    size_t late = memory_in_use();
    if (late > early + 16 * 1024)
        fail_msg("%zu bytes after %d ticks, %zu after %d", early, settled, late, in_all);
}

static void ten_thousand_ticks_need_no_more_memory(void **state)
{
    struct place_of_work *p = *state;
    sql(p, JOBS);
    sql(p, "PRAGMA journal_mode = WAL");
    install(p);
    load(p, "schedulers: { s: { every: 1m, exclusive: true } }\n"
            "policies: { job: { table: job, expires: end_ms } }\n");
    ticks_need_no_more_memory(p, 1000, 10000, LAPSE_DONE);
    load(p, "policies: { job: { table: job, expires: end_ms }, bad: { table: nowhere, expires: end_ms } }\n");
    ticks_need_no_more_memory(p, 50, 300, LAPSE_FINDINGS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tick_deletes_what_is_due_by_the_databases_clock),
        TEST(an_idle_tick_costs_one_probe_per_policy),
        TEST(facts_kept_from_before_delete_nothing),
        TEST(a_file_that_was_replaced_is_opened_anew),
        TEST(a_fuse_that_tripped_is_said_at_every_tick),
        TEST(policies_run_in_order_and_one_that_fails_stops_no_other),
        TEST(a_brake_pauses),
        TEST(observe_counts_and_deletes_nothing),
        TEST(a_stop_is_heard_before_every_batch_and_policy),
        TEST(what_runs_is_interrupted_and_rolled_back),
        TEST(the_lease_is_kept_between_ticks_and_handed_over),
        TEST(a_lease_that_was_lost_ends_the_tick),
        TEST(a_budget_is_of_a_policy_and_a_tick),
        TEST(a_window_that_closes_ends_it_after_the_batch),
        TEST(a_day_of_sweeps),
        TEST(ten_thousand_ticks_need_no_more_memory),
    };
    return cmocka_run_group_tests(tests, fake_clock, NULL);
}
