/* lapse: the library as its users see it: the public header, a contract and a SQLite file in a folder. */
#include "lapse.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>
#include <sqlite3.h>

/* --- a folder with a database and a contract -------------------------------------------------------- */

struct place {
    char folder[32], db[48], contract[48];
    sqlite3 *sqlite;
    struct lapse_contract *loaded;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    snprintf(p->folder, sizeof(p->folder), "/tmp/lapse-test-XXXXXX");
    if (!mkdtemp(p->folder))
        return -1;
    snprintf(p->db, sizeof(p->db), "%s/db", p->folder);
    snprintf(p->contract, sizeof(p->contract), "%s/lapse.yaml", p->folder);
    *state = p;
    return sqlite3_open(p->db, &p->sqlite);
}

static int teardown(void **state)
{
    struct place *p = *state;
    lapse_contract_free(p->loaded);
    sqlite3_close(p->sqlite);
    unlink(p->db);
    unlink(p->contract);
    int rc = rmdir(p->folder);
    free(p);
    return rc;
}

static void sql(struct place *p, const char *text)
{
    char *error = NULL;
    if (sqlite3_exec(p->sqlite, text, NULL, NULL, &error))
        fail_msg("%s: %s", text, error);
}

static int first_number(void *ret, int n, char **values, char **names)
{
    (void)names;
    *(long long *)ret = n && values[0] ? atoll(values[0]) : -1;
    return 0;
}

static long long number(struct place *p, const char *text)
{
    long long ret = -1;
    if (sqlite3_exec(p->sqlite, text, first_number, &ret, NULL))
        fail_msg("%s: %s", text, sqlite3_errmsg(p->sqlite));
    return ret;
}

static void write_contract(struct place *p, const char *policies)
{
    FILE *f = fopen(p->contract, "w");
    assert_non_null(f);
    fprintf(f, "store: sqlite:%s\npolicies:\n%s", p->db, policies);
    assert_int_equal(fclose(f), 0);
}

static struct lapse_contract *contract(struct place *p, const char *policies)
{
    struct lapse_report *untouched = (struct lapse_report *)p;
    write_contract(p, policies);
    lapse_contract_free(p->loaded);
    p->loaded = lapse_contract_load(p->contract, &untouched);
    assert_non_null(p->loaded);
    assert_ptr_equal(untouched, p);
    return p->loaded;
}

static void make_jobs(struct place *p)
{
    sql(p, "CREATE TABLE jobs(id INTEGER PRIMARY KEY, at_s INTEGER, bad INTEGER);"
           "CREATE INDEX jobs_at ON jobs(at_s);"
           "CREATE TABLE step(id INTEGER PRIMARY KEY, job INTEGER REFERENCES jobs(id));"
           "CREATE INDEX step_job ON step(job);"
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
           "INSERT INTO jobs SELECT i, 1700000000 + i, 0 FROM n;"
           "INSERT INTO step SELECT id * 2, id FROM jobs UNION SELECT id * 2 + 1, id FROM jobs;"
           "CREATE TABLE other(id INTEGER PRIMARY KEY, at_s INTEGER);"
           "INSERT INTO other VALUES (1, 1700000001), (2, 1700000050), (3, 1900000000)");
}

#define JOBS                                                                                                 \
    "  jobs: { table: jobs, expires: at_s, with: [step(job)], batch: 30, pace: {target: 10m, duty: 1} }\n"
#define OTHER "  other: { table: other, expires: at_s }\n"
#define NOW   "2023-11-14T22:14:10Z" /* 1700000050 */

/* --- reports ----------------------------------------------------------------------------------------- */

/* The report as JSON; the report is freed. */
static json_t *json_of(struct lapse_report *r)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    lapse_report_json(r, out);
    fclose(out);
    json_t *json = json_loads(text, 0, NULL);
    if (!json || text[len - 1] != '\n' || strchr(text, '\n') != text + len - 1)
        fail_msg("no line of JSON: %s", text);
    free(text);
    assert_int_equal(json_integer_value(json_object_get(json, "exit")), lapse_report_exit(r));
    lapse_report_free(r);
    return json;
}

/* What is written for people: standard output, then standard error. */
static void assert_text(const struct lapse_report *r, const char *out_has, const char *err_has)
{
    char *out_text = NULL, *err_text = NULL;
    size_t len;
    FILE *out = open_memstream(&out_text, &len), *err = open_memstream(&err_text, &len);
    lapse_report_text(r, out, err, 0, 0);
    fclose(out);
    fclose(err);
    if (*out_has ? !strstr(out_text, out_has) : *out_text)
        fail_msg("out: %s", out_text);
    if (*err_has ? !strstr(err_text, err_has) : *err_text)
        fail_msg("err: %s", err_text);
    free(out_text);
    free(err_text);
}

static void assert_exit(const struct lapse_report *r, enum lapse_exit code, const char *out_has,
                        const char *err_has)
{
    assert_text(r, out_has, err_has);
    assert_int_equal(lapse_report_exit(r), code);
}

static void assert_ends(struct lapse_report *r, enum lapse_exit code, const char *out_has,
                        const char *err_has)
{
    assert_exit(r, code, out_has, err_has);
    lapse_report_free(r);
}

static const json_t *policy_of(const json_t *json, size_t i)
{
    return json_array_get(json_object_get(json, "policies"), i);
}

static const char *text_in(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static long long number_in(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* --- contracts --------------------------------------------------------------------------------------- */

static void a_contract_that_cannot_be_read_is_reported(void **state)
{
    struct place *p = *state;
    struct lapse_report *r = NULL;
    assert_null(lapse_contract_load("/nonexistent/lapse.yaml", &r));
    lapse_report_name(r, "sweep");
    assert_exit(r, LAPSE_BAD_INPUT, "", "/nonexistent/lapse.yaml");
    json_t *json = json_of(r);
    assert_string_equal(text_in(json, "command"), "sweep");
    assert_non_null(strstr(text_in(json, "error"), "No such file"));
    json_decref(json);
    assert_null(lapse_contract_load(p->folder, &r));
    assert_ends(r, LAPSE_BAD_INPUT, "", "directory");
}

static void all_mistakes_are_reported(void **state)
{
    struct place *p = *state;
    struct lapse_report *r = NULL;
    write_contract(p, "  a: { tabel: t, expires: x }\n  b: { table: t, age: x, keep: 5 fortnights }\n");
    assert_null(lapse_contract_load(p->contract, &r));
    assert_exit(r, LAPSE_BAD_INPUT, "", "lapse.yaml:3:8: unknown key 'tabel' (did you mean 'table'?)");
    json_t *json = json_of(r), *mistakes = json_object_get(json, "mistakes");
    assert_true(json_array_size(mistakes) >= 3); /* the key, the table it stands for, the duration */
    assert_int_equal(number_in(json_array_get(mistakes, 0), "line"), 3);
    json_decref(json);
}

/* --- check ------------------------------------------------------------------------------------------- */

static void check_reads_and_judges(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, JOBS OTHER);
    json_t *json = json_of(lapse_check(p->loaded, NULL));
    assert_int_equal(number_in(json, "exit"), LAPSE_DONE);
    assert_int_equal(number_in(json, "errors"), 0);
    json_decref(json);
    contract(p, "  jobs: { table: jobs, expires: at_s }\n");
    assert_ends(lapse_check(p->loaded, NULL), LAPSE_FINDINGS, "step(job)", "");
    assert_int_equal(number(p, "SELECT count(*) FROM jobs"), 100);
}

static void strict_makes_uncovered_tables_errors(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, JOBS);
    struct lapse_options strict = {.strict = 1};
    assert_ends(lapse_check(p->loaded, NULL), LAPSE_DONE, "other", "");
    assert_ends(lapse_check(p->loaded, &strict), LAPSE_FINDINGS, "other", "");
    /* asked about one policy, the rest of the database is not judged */
    const char *const names[] = {"jobs"};
    struct lapse_options one = {.strict = 1, .policies = names, .n_policies = 1};
    json_t *json = json_of(lapse_check(p->loaded, &one));
    assert_int_equal(number_in(json, "exit"), LAPSE_DONE);
    json_decref(json);
}

/* --- plan -------------------------------------------------------------------------------------------- */

static void plan_counts_and_writes_nothing(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, JOBS OTHER);
    struct lapse_options o = {.now = NOW};
    json_t *json = json_of(lapse_plan(p->loaded, &o));
    assert_int_equal(number_in(json, "exit"), LAPSE_DONE);
    assert_string_equal(text_in(json, "command"), "plan");
    assert_string_equal(text_in(json, "now"), NOW);
    const json_t *jobs = policy_of(json, 0);
    assert_string_equal(text_in(jobs, "outcome"), "planned");
    assert_int_equal(number_in(jobs, "rows"), 50);
    assert_string_equal(text_in(jobs, "cutoff"), NOW);
    assert_string_equal(text_in(jobs, "oldest"), "2023-11-14T22:13:21Z");
    assert_string_equal(text_in(jobs, "newest"), NOW);
    assert_null(json_object_get(jobs, "sql"));
    assert_int_equal(number_in(policy_of(json, 1), "rows"), 2);
    json_decref(json);
    assert_int_equal(number(p, "SELECT count(*) FROM jobs"), 100);
    assert_int_equal(number(p, "SELECT count(*) FROM step"), 200);
}

static void plan_shows_its_statements_when_asked(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, JOBS);
    struct lapse_options o = {.sql = 1};
    json_t *json = json_of(lapse_plan(p->loaded, &o));
    assert_true(json_array_size(json_object_get(policy_of(json, 0), "sql")) >= 3);
    json_decref(json);
}

static void a_plan_may_look_ahead_and_a_sweep_may_not(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, OTHER);
    struct lapse_options ahead = {.now = "2100-01-01T00:00:00Z"}, wrong = {.now = "tomorrow"};
    json_t *json = json_of(lapse_plan(p->loaded, &ahead));
    assert_int_equal(number_in(policy_of(json, 0), "rows"), 3);
    json_decref(json);
    assert_ends(lapse_sweep(p->loaded, &ahead), LAPSE_BAD_INPUT, "", "ahead of the database's clock");
    assert_ends(lapse_plan(p->loaded, &wrong), LAPSE_BAD_INPUT, "", "'tomorrow' is no time");
    assert_int_equal(number(p, "SELECT count(*) FROM other"), 3);
}

/* --- sweep ------------------------------------------------------------------------------------------- */

struct watch {
    int calls, counted, finished, stop_after; /* stop_after so many calls; 0: never */
    struct lapse_progress last;
    char outcomes[100];
};

static void progress(void *context, const struct lapse_progress *g)
{
    struct watch *w = context;
    w->calls++;
    w->last = *g;
    w->counted += g->counting;
    assert_true(g->number >= 1 && g->number <= g->of);
    if (!g->finished) {
        assert_null(g->outcome);
        return;
    }
    w->finished++;
    snprintf(w->outcomes + strlen(w->outcomes), sizeof(w->outcomes) - strlen(w->outcomes), "%s:%s ",
             g->policy, g->outcome);
}

static int stop(void *context)
{
    struct watch *w = context;
    return w->stop_after && w->calls >= w->stop_after;
}

static void sweep_deletes_what_is_due(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, JOBS OTHER);
    struct watch w = {0};
    struct lapse_options o = {
        .now = NOW, .count_first = 1, .progress = progress, .stop = stop, .context = &w};
    struct lapse_report *r = lapse_sweep(p->loaded, &o);
    assert_text(r, "jobs", "");
    json_t *json = json_of(r);
    assert_int_equal(number_in(json, "exit"), LAPSE_DONE);
    const json_t *jobs = policy_of(json, 0);
    assert_string_equal(text_in(jobs, "outcome"), "done");
    assert_int_equal(number_in(jobs, "rows"), 50);
    assert_int_equal(number_in(jobs, "batches"), 2);
    assert_int_equal(json_array_size(json_object_get(jobs, "tables")), 2);
    json_decref(json);
    assert_int_equal(number(p, "SELECT min(id) FROM jobs"), 51);
    assert_int_equal(number(p, "SELECT count(*) FROM step"), 100);
    assert_int_equal(number(p, "SELECT count(*) FROM other"), 1);
    assert_int_equal(w.calls, 7); /* counting, 30, 50, finished; counting, 2, finished */
    assert_int_equal(w.counted, 2);
    assert_string_equal(w.outcomes, "jobs:done other:done ");
    assert_int_equal(w.last.number, 2);
    assert_int_equal(w.last.of, 2);
    assert_int_equal(w.last.rows, 2);
    assert_int_equal(w.last.due, 2);
    assert_int_equal(w.last.rows_all, 2);
    assert_ends(lapse_sweep(p->loaded, &o), LAPSE_DONE, "nothing was due", "");
}

static void progress_counts_what_goes_along(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, JOBS);
    struct watch w = {0};
    struct lapse_options o = {.now = NOW, .progress = progress, .context = &w};
    lapse_report_free(lapse_sweep(p->loaded, &o));
    assert_int_equal(w.last.rows, 50);
    assert_int_equal(w.last.rows_all, 150);
    assert_int_equal(w.last.due, -1); /* not counted */
}

static void only_the_named_policies_run(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, JOBS OTHER "  off: { table: other, expires: at_s, enabled: false }\n");
    const char *const names[] = {"other", "off"}, *const wrong[] = {"othr"};
    struct watch w = {0};
    struct lapse_options o = {
        .now = NOW, .policies = names, .n_policies = 2, .progress = progress, .context = &w};
    struct lapse_options misspelt = {.policies = wrong, .n_policies = 1};
    assert_ends(lapse_sweep(p->loaded, &o), LAPSE_DONE, "other", "");
    assert_string_equal(w.outcomes, "other:done off:disabled ");
    assert_int_equal(number(p, "SELECT count(*) FROM jobs"), 100);
    assert_ends(lapse_sweep(p->loaded, &misspelt), LAPSE_BAD_INPUT, "", "(did you mean 'other'?)");
}

static void one_refused_policy_does_not_stop_the_others(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, "  bad: { table: nope, expires: at_s }\n" OTHER "  worse: { table: jobs, expires: at_s }\n");
    struct watch w = {0};
    struct lapse_options o = {.now = NOW, .progress = progress, .context = &w};
    json_t *json = json_of(lapse_sweep(p->loaded, &o));
    assert_int_equal(number_in(json, "exit"), LAPSE_FINDINGS);
    assert_non_null(
        strstr(text_in(policy_of(json, 0), "error"), "lapse.yaml:3:17: table 'nope' does not exist"));
    json_decref(json);
    assert_string_equal(w.outcomes, "bad:refused other:done worse:refused ");
    assert_int_equal(number(p, "SELECT count(*) FROM other"), 1);
    assert_int_equal(number(p, "SELECT count(*) FROM jobs"), 100);
}

static void a_skipped_row_makes_it_one(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    sql(p,
        "CREATE TRIGGER t BEFORE DELETE ON jobs WHEN old.id = 7 BEGIN SELECT RAISE(ABORT, 'not seven'); END");
    /* what is graver decides: a failure before a refusal, in either order */
    contract(p, "  bad: { table: nope, expires: at_s }\n" JOBS "  worse: { table: nope, expires: at_s }\n");
    struct lapse_options o = {.now = NOW};
    struct lapse_report *r = lapse_sweep(p->loaded, &o);
    assert_text(r, "not seven", "");
    json_t *json = json_of(r);
    assert_int_equal(number_in(json, "exit"), LAPSE_FAILED);
    const json_t *jobs = policy_of(json, 1), *skipped = json_array_get(json_object_get(jobs, "skipped"), 0);
    assert_string_equal(text_in(jobs, "outcome"), "done");
    assert_int_equal(number_in(jobs, "rows"), 49);
    assert_string_equal(text_in(skipped, "key"), "id=7");
    assert_string_equal(text_in(skipped, "reason"), "refused");
    json_decref(json);
    assert_int_equal(number(p, "SELECT count(*) FROM step WHERE job = 7"), 2);
}

static void a_sweep_stops_when_asked(void **state)
{
    struct place *p = *state;
    make_jobs(p);
    contract(p, JOBS OTHER);
    struct watch w = {.stop_after = 1};
    struct lapse_options o = {.now = NOW, .progress = progress, .stop = stop, .context = &w};
    json_t *json = json_of(lapse_sweep(p->loaded, &o));
    assert_int_equal(number_in(json, "exit"), LAPSE_STOPPED);
    assert_int_equal(number_in(policy_of(json, 0), "rows"), 30);
    assert_string_equal(text_in(policy_of(json, 1), "error"), "not begun: asked to stop");
    json_decref(json);
    assert_string_equal(w.outcomes, "jobs:stopped other:stopped ");
    assert_int_equal(number(p, "SELECT count(*) FROM jobs"), 70);
    assert_int_equal(number(p, "SELECT count(*) FROM step"), 140);
    assert_int_equal(number(p, "SELECT count(*) FROM other"), 3);
}

/* --- databases that are not there ---------------------------------------------------------------------- */

static void a_database_that_cannot_be_reached_is_five(void **state)
{
    struct place *p = *state;
    contract(p, OTHER);
    unlink(p->db);
    assert_ends(lapse_check(p->loaded, NULL), LAPSE_UNREACHABLE, "", "No such file");
    assert_ends(lapse_plan(p->loaded, NULL), LAPSE_UNREACHABLE, "", "No such file");
    assert_ends(lapse_sweep(p->loaded, NULL), LAPSE_UNREACHABLE, "", "No such file");
    assert_int_equal(access(p->db, F_OK), -1); /* and none was made */
}

static void a_server_that_is_not_there_is_said_without_its_password(void **state)
{
    struct place *p = *state;
    struct lapse_report *r = NULL;
    FILE *f = fopen(p->contract, "w");
    fprintf(f, "store: mariadb://u:secret@127.0.0.1:1/d\npolicies:\n" OTHER);
    fclose(f);
    p->loaded = lapse_contract_load(p->contract, &r);
    assert_non_null(p->loaded);
    r = lapse_plan(p->loaded, NULL);
    assert_text(r, "", "mariadb: 127.0.0.1:1: ");
    json_t *json = json_of(r);
    assert_int_equal(number_in(json, "exit"), LAPSE_UNREACHABLE);
    assert_null(strstr(text_in(json, "error"), "secret"));
    json_decref(json);
}

/* --- two at once --------------------------------------------------------------------------------------- */

static void *sweep_thread(void *context)
{
    struct place *p = context;
    struct lapse_options o = {.now = NOW};
    return lapse_sweep(p->loaded, &o);
}

static void two_threads_work_at_once(void **state)
{
    struct place *p = *state, *q;
    void *other, *one, *two;
    pthread_t thread;
    assert_int_equal(setup(&other), 0);
    q = other;
    make_jobs(p);
    make_jobs(q);
    contract(p, JOBS);
    contract(q, JOBS OTHER);
    assert_int_equal(pthread_create(&thread, NULL, sweep_thread, q), 0);
    one = sweep_thread(p);
    assert_int_equal(pthread_join(thread, &two), 0);
    assert_ends(one, LAPSE_DONE, "jobs", "");
    assert_ends(two, LAPSE_DONE, "other", "");
    assert_int_equal(number(p, "SELECT count(*) FROM jobs") + number(q, "SELECT count(*) FROM jobs"), 100);
    assert_int_equal(teardown(&other), 0);
}

/* --- the rest ------------------------------------------------------------------------------------------- */

static void the_language_can_be_listed(void **state)
{
    (void)state;
    struct lapse_key key;
    size_t n = 0, later = 0;
    int found = 0;
    for (; lapse_contract_key(n, &key); n++) {
        assert_true(*key.section && *key.key && *key.type && *key.doc && key.standard);
        found |= !strcmp(key.section, "policy") && !strcmp(key.key, "batch") && !strcmp(key.standard, "1000");
        later += key.not_yet != 0;
    }
    assert_true(n > 50);
    assert_true(found);
    assert_int_equal(later, 0); /* all of it runs */
    assert_null(lapse_contract_key(n + 100, &key));
}

static void the_small_functions(void **state)
{
    (void)state;
    const char *const words[] = {"check", "plan", "sweep"};
    assert_string_equal(lapse_nearest("swep", words, 3), "sweep");
    assert_null(lapse_nearest("xyzzy", words, 3));
    int major, minor, patch;
    assert_int_equal(sscanf(lapse_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    lapse_report_free(NULL);
    lapse_contract_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_contract_that_cannot_be_read_is_reported),
        TEST(all_mistakes_are_reported),
        TEST(check_reads_and_judges),
        TEST(strict_makes_uncovered_tables_errors),
        TEST(plan_counts_and_writes_nothing),
        TEST(plan_shows_its_statements_when_asked),
        TEST(a_plan_may_look_ahead_and_a_sweep_may_not),
        TEST(sweep_deletes_what_is_due),
        TEST(progress_counts_what_goes_along),
        TEST(only_the_named_policies_run),
        TEST(one_refused_policy_does_not_stop_the_others),
        TEST(a_skipped_row_makes_it_one),
        TEST(a_sweep_stops_when_asked),
        TEST(a_database_that_cannot_be_reached_is_five),
        TEST(a_server_that_is_not_there_is_said_without_its_password),
        TEST(two_threads_work_at_once),
        cmocka_unit_test(the_language_can_be_listed),
        cmocka_unit_test(the_small_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
