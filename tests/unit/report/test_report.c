/* Reports made by hand, shown as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "report/status.h"

static const instant NOW = INT64_C(1718452800000000); /* 2024-06-15T12:00:00Z */

/* --- showing ------------------------------------------------------------------------------------ */

static char *shown(const struct report *r, bool colour, int width, char **ret_err)
{
    char *out = NULL, *err = NULL;
    size_t n, m;
    FILE *to_out = open_memstream(&out, &n), *to_err = open_memstream(&err, &m);
    report_text(r, to_out, to_err, colour, width);
    fclose(to_out);
    fclose(to_err);
    if (ret_err)
        *ret_err = err;
    else
        free(err);
    return out;
}

static void shows(const struct report *r, const char *expected)
{
    AUTO(mem_free_p) char *out = shown(r, false, 0, NULL);
    assert_string_equal(out, expected);
}

static json_t *json_of(const struct report *r)
{
    char *out = NULL;
    size_t n;
    FILE *f = open_memstream(&out, &n);
    report_json(r, f);
    fclose(f);
    assert_int_equal(out[n - 1], '\n');
    assert_null(memchr(out, '\n', n - 1));
    json_t *j = json_loads(out, 0, NULL);
    assert_non_null(j);
    free(out);
    return j;
}

/* expected is JSON with ' for " */
static void json_shows(const struct report *r, const char *expected)
{
    AUTO(mem_free_p) char *quoted = mem_strdup(expected);
    for (char *c = quoted; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *got = json_of(r), *want = json_loads(quoted, 0, NULL);
    assert_non_null(want);
    AUTO(mem_free_p) char *got_text = json_dumps(got, JSON_INDENT(1));
    AUTO(mem_free_p) char *want_text = json_dumps(want, JSON_INDENT(1));
    json_decref(got);
    json_decref(want);
    assert_string_equal(got_text, want_text);
}

/* --- making ------------------------------------------------------------------------------------- */

static struct policy metadata = {.name = "metadata",
                                 .label = "meta",
                                 .table = {.schema = {.text = "trax"}, .table = {.text = "metadata"}}};
static struct policy outbox = {.name = "outbox", .label = "outbox", .table = {.table = {.text = "outbox"}}};

static const char *slots[] = {"trax.log", "trax.metadata"};
static const char *detach_slots[] = {"trax.dead_letter"};
static int64_t some[] = {45000, 1234567}, few[] = {12}, none[] = {0, 0};

static struct report_policy *add(struct report *r, const struct policy *p, int64_t *gone)
{
    struct report_policy *added = report_add_policy(r, p);
    added->tables = slots;
    added->gone = gone;
    added->n_tables = 2;
    return added;
}

static struct report *planned(struct cutoff *cutoffs, size_t n)
{
    struct report *r = report_new(REPORT_PLAN, "plan");
    r->now = NOW;
    struct report_policy *p = add(r, &metadata, some);
    p->counted = true;
    r->most = r->least = 1279567;
    p->detach_tables = detach_slots;
    p->detached = few;
    p->n_detach_tables = 1;
    p->cutoffs = cutoffs;
    p->n_cutoffs = n;
    p->has_range = true;
    p->oldest = NOW - 45 * US_PER_DAY;
    p->newest = NOW - 1801 * US_PER_S;
    p->null_time = 3;
    p->held = 2;
    p->waiting = 7000;
    return r;
}

static struct cutoff one[] = {{.at = INT64_C(1718451000000000)}};
static struct cutoff by_state[] = {{.value = "failed", .at = INT64_C(1718366400000000)}, {.never = true}};

static struct report *swept(void)
{
    struct report *r = report_new(REPORT_SWEEP, "sweep");
    r->now = NOW + 123456;
    r->duration_us = 2 * US_PER_S;
    struct report_policy *p = add(r, &metadata, some);
    p->duration_us = 1900 * US_PER_MS;
    p->deleting_us = 2 * US_PER_S;
    p->batches = 1235;
    return r;
}

static struct report *checked(void)
{
    struct report *r = report_new(REPORT_CHECK, "check");
    r->file = "lapse.yaml";
    r->exit = 3;
    static struct finding list[] = {
        {FINDING_NOTE, NULL, {0, 0}, "nothing bounds kv", "policies:\n  kv:\n    table: kv"},
        {FINDING_ERROR, "metadata", {12, 9}, "no column [at]", "write start_time"},
        {FINDING_WARNING, "metadata", {13, 9}, "no index", "CREATE INDEX ON t (a);"},
    };
    r->findings.list = list;
    r->findings.n = COUNT_OF(list);
    return r;
}

/* --- plan --------------------------------------------------------------------------------------- */

static void plan_text(void **state)
{
    (void)state;
    struct report *r = planned(one, 1);
    shows(r, "policy    table                  rows  oldest               newest               cutoff\n"
             "metadata  trax.metadata     1,234,567  2024-05-01 12:00:00  2024-06-15 11:29:59  2024-06-15 "
             "11:30:00\n"
             "  with    trax.log             45,000\n"
             "  detach  trax.dead_letter         12\n"
             "  kept: 3 without a time, 2 held, 7,000 waiting\n"
             "\n"
             "1,279,567 rows would go, 12 would be detached at 2024-06-15 12:00:00 UTC\n");
    report_free(r);
}

static void plan_by_value_and_refused(void **state)
{
    (void)state;
    struct report *r = planned(by_state, 2);
    r->policies[0].n_detach_tables = 0;
    struct report_policy *p = report_add_policy(r, &outbox);
    p->kind = OUTCOME_REFUSED;
    p->error = "lapse.yaml:3:4: no such column\nlapse.yaml:4:4: no key";
    shows(r, "policy    table               rows  oldest               newest               cutoff\n"
             "metadata  trax.metadata  1,234,567  2024-05-01 12:00:00  2024-06-15 11:29:59  by value\n"
             "  with    trax.log          45,000\n"
             "  cutoff: failed 2024-06-14 12:00:00, otherwise never\n"
             "  kept: 3 without a time, 2 held, 7,000 waiting\n"
             "outbox    outbox                 -  refused\n"
             "  why: lapse.yaml:3:4: no such column\n"
             "       lapse.yaml:4:4: no key\n"
             "\n"
             "1,279,567 rows would go at 2024-06-15 12:00:00 UTC; 1 policy refused\n");
    report_free(r);
}

static void plan_not_counted(void **state)
{
    (void)state;
    struct report *r = planned(one, 1);
    struct report_policy *p = report_add_policy(r, &outbox);
    static struct finding index = {
        FINDING_WARNING, "outbox", {3, 4}, "no index", "CREATE INDEX ON outbox (at)"};
    p->kind = OUTCOME_FAILED;
    p->timed_out = true;
    p->least = 100000;
    p->error = "it took longer";
    p->indexes = &index;
    p->n_indexes = 1;
    r->policies[0].below_unknown = r->policies[0].kept_unknown = r->not_all = true;
    shows(
        r,
        "policy    table                  rows  oldest                          newest               cutoff\n"
        "metadata  trax.metadata     1,234,567  2024-05-01 12:00:00             2024-06-15 11:29:59  "
        "2024-06-15 11:30:00\n"
        "  with    trax.log                  -  not counted\n"
        "  detach  trax.dead_letter          -  not counted\n"
        "  kept: not counted: it took too long\n"
        "outbox    outbox                    -  not counted (at least 100,000)\n"
        "  why: it took longer\n"
        "  index: no index: CREATE INDEX ON outbox (at)\n"
        "\n"
        "at least 1,279,567 rows would go at 2024-06-15 12:00:00 UTC; 1 policy not counted\n");
    r->not_all = false;
    r->at_most = true;
    r->policies[1].timed_out = false;
    r->policies[1].kind = OUTCOME_STOPPED;
    r->policies[1].least = 0;
    r->n_policies = 2;
    AUTO(mem_free_p) char *out = shown(r, false, 0, NULL);
    assert_non_null(strstr(out, "outbox    outbox                    -  not counted\n"));
    assert_non_null(strstr(out, "at most 1,279,567 rows would go"));
    report_free(r);
}

/* Too narrow for dates: ages. Too narrow for those: names are cut. Nothing is wider than the terminal. */
static void plan_on_a_narrow_terminal(void **state)
{
    (void)state;
    struct report *r = planned(one, 1);
    for (int width = 60; width <= 80; width++) {
        AUTO(mem_free_p) char *out = shown(r, false, width, NULL);
        assert_non_null(strstr(out, "-45d"));
        for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n"))
            assert_in_range(strlen(line), 0, (unsigned)width);
    }
    AUTO(mem_free_p) char *piped = shown(r, false, 0, NULL);
    assert_null(strchr(piped, '\033'));
    AUTO(mem_free_p) char *coloured = shown(r, true, 0, NULL);
    assert_non_null(strstr(coloured, "\033[1mmetadata\033[0m"));
    report_free(r);
}

static void plan_statements(void **state)
{
    (void)state;
    struct report *r = planned(one, 1);
    r->policies[0].sql = "SELECT 1\n  FROM t;\n\nDELETE FROM t;\n";
    AUTO(mem_free_p) char *out = shown(r, false, 0, NULL);
    assert_non_null(strstr(out, "\n-- policy 'metadata'\nSELECT 1\n  FROM t;\n\nDELETE FROM t;\n"));
    json_t *j = json_of(r);
    json_t *sql = json_object_get(json_array_get(json_object_get(j, "policies"), 0), "sql");
    assert_int_equal(json_array_size(sql), 2);
    assert_string_equal(json_string_value(json_array_get(sql, 0)), "SELECT 1\n  FROM t;");
    assert_string_equal(json_string_value(json_array_get(sql, 1)), "DELETE FROM t;");
    json_decref(j);
    report_free(r);
}

static void plan_json(void **state)
{
    (void)state;
    struct report *r = planned(by_state, 2);
    json_shows(
        r, "{'command':'plan','now':'2024-06-15T12:00:00Z','exit':0,'policies':[{"
           "'policy':'metadata','label':'meta','table':'trax.metadata','outcome':'planned',"
           "'rows':1234567,'tables':[{'table':'trax.log','rows':45000},"
           "{'table':'trax.metadata','rows':1234567}],"
           "'detached':[{'table':'trax.dead_letter','rows':12}],"
           "'cutoff':null,'cutoffs':[{'value':'failed','at':'2024-06-14T12:00:00Z'},"
           "{'value':null,'at':null}],"
           "'oldest':'2024-05-01T12:00:00Z','newest':'2024-06-15T11:29:59Z',"
           "'kept':{'null_time':3,'unreadable_time':0,'held':2,'waiting':7000},'more_become_free':false}],"
           "'total':{'rows':1279567,'at_least':1279567,'at_most':1279567},"
           "'remarks':[]}");
    r->policies[0].cutoffs = one;
    r->policies[0].n_cutoffs = 1;
    json_t *j = json_of(r), *p = json_array_get(json_object_get(j, "policies"), 0);
    assert_string_equal(json_string_value(json_object_get(p, "cutoff")), "2024-06-15T11:30:00Z");
    assert_null(json_object_get(p, "cutoffs"));
    json_decref(j);
    report_free(r);
}

/* --- sweep -------------------------------------------------------------------------------------- */

static char key42[] = "id=42", key43[] = "id=43", words42[] = "SQLITE_CONSTRAINT_TRIGGER: on hold",
            words43[] = "55P03";
static struct skipped_row bad[] = {{key42, "refused", words42}, {key43, "locked", words43}};

static void sweep_text(void **state)
{
    (void)state;
    struct report *r = swept();
    struct report_policy *p = add(r, &outbox, none);
    p->skipped = bad;
    p->n_skipped = 2;
    p->left = 1;
    p->unknown = 1000;
    p->duration_us = 12 * US_PER_MS;
    static const char *remarks[] = {"no history is kept"};
    r->remarks = remarks;
    r->n_remarks = 1;
    shows(r, "policy    table          rows gone  time  note\n"
             "metadata  trax.metadata  1,234,567  1.9s\n"
             "  with    trax.log          45,000\n"
             "outbox    outbox                 0  12ms  2 skipped\n"
             "  with    trax.log               0\n"
             "  left: 1 row, locked by others\n"
             "  unknown: 1,000 rows in commits whose outcome is not known; they are not counted as gone\n"
             "  skipped id=42, refused: SQLITE_CONSTRAINT_TRIGGER: on hold\n"
             "  skipped id=43, locked: 55P03\n"
             "\n"
             "1,279,567 rows gone in 2.0s (639,783 rows/s)\n"
             "no history is kept\n");
    report_free(r);
}

static void sweep_nothing_due(void **state)
{
    (void)state;
    struct report *r = report_new(REPORT_SWEEP, "sweep");
    r->duration_us = 34 * US_PER_MS;
    add(r, &metadata, none);
    report_add_policy(r, &outbox)->kind = OUTCOME_DISABLED;
    shows(r, "nothing was due (1 policy, 1 disabled, 34ms)\n");
    report_free(r);
}

static void sweep_troubles(void **state)
{
    (void)state;
    struct report *r = swept();
    struct report_policy *p = report_add_policy(r, &outbox);
    p->kind = OUTCOME_FAILED;
    p->error = "sqlite SQLITE_FULL: disk";
    add(r, &outbox, none)->kind = OUTCOME_STOPPED;
    AUTO(mem_free_p) char *out = shown(r, false, 0, NULL);
    assert_non_null(
        strstr(out, "outbox    outbox                 -        failed\n  why: sqlite SQLITE_FULL: disk\n"));
    assert_non_null(strstr(out, "; 1 policy failed, 1 stopped\n"));
    report_free(r);
}

static void sweep_json(void **state)
{
    (void)state;
    struct report *r = swept();
    r->exit = 1;
    struct report_policy *p = &r->policies[0];
    p->error = "why";
    p->kind = OUTCOME_FAILED;
    p->skipped = bad;
    p->n_skipped = 1;
    p->left = 5;
    p->retries = 2;
    p->pace.reason = PACE_LAG;
    p->pace.rows = 70;
    p->pace.waited_us[PACE_LAG] = 1500 * US_PER_MS;
    p->unknown = INT64_MAX;
    json_shows(
        r,
        "{'command':'sweep','now':'2024-06-15T12:00:00.123456Z','exit':1,'policies':[{"
        "'policy':'metadata','label':'meta','table':'trax.metadata','outcome':'failed',"
        "'error':'why','rows':1234567,"
        "'tables':[{'table':'trax.log','rows':45000},{'table':'trax.metadata','rows':1234567}],"
        "'detached':[],'skipped':[{'key':'id=42','reason':'refused',"
        "'error':'SQLITE_CONSTRAINT_TRIGGER: on hold'}],'left':5,'came_again':false,"
        "'unknown':9223372036854775807,'batches':1235,'retries':2,'duration_ms':1900.0,'deleting_ms':2000.0,"
        "'pace':{'reason':'lag','rows':70,'waited_ms':{'lag':1500.0}}}],"
        "'remarks':[]}");
    report_free(r);
}

/* --- check -------------------------------------------------------------------------------------- */

static void check_text(void **state)
{
    (void)state;
    struct report *r = checked();
    shows(r, "error    lapse.yaml:12:9  policy 'metadata': no column [at]\n"
             "         fix: write start_time\n"
             "warning  lapse.yaml:13:9  policy 'metadata': no index\n"
             "         fix: CREATE INDEX ON t (a);\n"
             "note     lapse.yaml  nothing bounds kv\n"
             "         fix:\n"
             "           policies:\n"
             "             kv:\n"
             "               table: kv\n"
             "\n"
             "1 error, 1 warning, 1 note\n");
    r->findings.n = 1;
    AUTO(mem_free_p) char *fits = shown(r, false, 0, NULL);
    assert_non_null(strstr(fits, "\neverything the contract says fits the schema (1 note)\n"));
    r->findings.n = 0;
    shows(r, "everything the contract says fits the schema\n");
    report_free(r);
}

static void check_wraps_words_but_not_fixes(void **state)
{
    (void)state;
    struct report *r = checked();
    static struct finding list[] = {
        {FINDING_ERROR,
         NULL,
         {1, 1},
         "many words that do not fit one narrow line of a terminal",
         "CREATE INDEX CONCURRENTLY ON some_table (some_column, another_column);"}};
    r->findings.list = list;
    r->findings.n = 1;
    AUTO(mem_free_p) char *out = shown(r, false, 40, NULL);
    assert_string_equal(
        out, "error    lapse.yaml:1:1  many words that\n"
             "         do not fit one narrow line of a\n"
             "         terminal\n"
             "         fix: CREATE INDEX CONCURRENTLY ON some_table (some_column, another_column);\n"
             "\n"
             "1 error, 0 warnings, 0 notes\n");
    report_free(r);
}

static void check_json(void **state)
{
    (void)state;
    struct report *r = checked();
    r->findings.n = 2;
    json_shows(r, "{'command':'check','exit':3,'errors':1,'warnings':0,'notes':1,'findings':["
                  "{'level':'note','policy':null,'at':'lapse.yaml','what':'nothing bounds kv',"
                  "'fix':'policies:\\n  kv:\\n    table: kv'},"
                  "{'level':'error','policy':'metadata','at':'lapse.yaml:12:9',"
                  "'what':'no column [at]','fix':'write start_time'}]}");
    report_free(r);
}

/* --- what goes wrong as a whole -------------------------------------------------------------------- */

static void mistakes(void **state)
{
    (void)state;
    struct report *r = report_new(REPORT_MISTAKES, "plan");
    r->file = "lapse.yaml";
    r->exit = 2;
    static struct mistake list[] = {{{12, 9}, "unknown key [kepp] (did you mean [keep]?)"}, {{14, 1}, "no"}};
    r->mistakes = list;
    r->n_mistakes = 2;
    AUTO(mem_free_p) char *err = NULL;
    AUTO(mem_free_p) char *out = shown(r, false, 0, &err);
    assert_string_equal(out, "");
    assert_string_equal(err, "lapse.yaml:12:9: unknown key [kepp] (did you mean [keep]?)\n"
                             "lapse.yaml:14:1: no\n"
                             "2 mistakes in the contract; nothing was done\n");
    r->n_mistakes = 1;
    json_shows(r, "{'command':'plan','exit':2,'mistakes':[{'at':'lapse.yaml:12:9','line':12,"
                  "'column':9,'text':'unknown key [kepp] (did you mean [keep]?)'}]}");
    report_free(r);
}

static void whole_error(void **state)
{
    (void)state;
    struct report *r = report_new(REPORT_ERROR, "sweep");
    r->exit = 5;
    r->error = "cannot reach it";
    AUTO(mem_free_p) char *err = NULL;
    AUTO(mem_free_p) char *out = shown(r, true, 80, &err);
    assert_string_equal(out, "");
    assert_string_equal(err, "lapse: cannot reach it\n");
    json_shows(r, "{'command':'sweep','exit':5,'error':'cannot reach it'}");
    report_free(r);
}

#define BAD "\xEF\xBF\xBD"

/* Bytes that are no UTF-8 do not break the JSON; what would command a terminal is escaped in text. */
static void odd_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *said, *json, *text;
    } cases[] = {
        {"caf\xE9", "caf" BAD, "caf\\xe9"},
        {"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
         "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
        {"cut \xE2\x82", "cut " BAD BAD, "cut \\xe2\\x82"},
        {"long \xC0\x80 \xE0\x80\x80", "long " BAD BAD " " BAD BAD BAD, "long \\xc0\\x80 \\xe0\\x80\\x80"},
        {"half \xED\xA0\x80", "half " BAD BAD BAD, "half \\xed\\xa0\\x80"},
        {"far \xF4\x90\x80\x80", "far " BAD BAD BAD BAD, "far \\xf4\\x90\\x80\\x80"},
        {"\033[31mred\r\x7F \xC2\x9B", "\033[31mred\r\x7F \xC2\x9B", "\\x1b[31mred\\x0d\\x7f \\u009b"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct report *r = report_new(REPORT_ERROR, "sweep");
        r->error = cases[i].said;
        json_t *j = json_of(r);
        assert_string_equal(json_string_value(json_object_get(j, "error")), cases[i].json);
        json_decref(j);
        AUTO(mem_free_p) char *err = NULL;
        AUTO(mem_free_p) char *out = shown(r, false, 0, &err);
        assert_string_equal(out, "");
        assert_memory_equal(err, "lapse: ", 7);
        err[strlen(err) - 1] = '\0';
        assert_string_equal(err + 7, cases[i].text);
        report_free(r);
    }
}

/* Wide characters take two columns, so the table stays aligned. */
static void wide_names(void **state)
{
    (void)state;
    struct report *r = planned(one, 1);
    static struct policy wide = {
        .name = "\xE4\xBC\x9A\xE8\xAD\xB0", .label = "", .table = {.table = {.text = "caf\xC3\xA9"}}};
    report_add_policy(r, &wide)->kind = OUTCOME_DISABLED;
    AUTO(mem_free_p) char *out = shown(r, false, 0, NULL);
    assert_non_null(
        strstr(out, "\n\xE4\xBC\x9A\xE8\xAD\xB0      caf\xC3\xA9                      -  disabled\n"));
    report_free(r);
}

/* --- status and history ----------------------------------------------------------------------------- */

static const struct scheduler often = {.name = "often", .every = {SPAN_TIME, 60 * US_PER_S}, .enabled = true},
                              alone = {.name = "alone", .enabled = true, .exclusive = true};
#define AT (INT64_C(1800000000) * US_PER_S) /* 2027-01-15 08:00:00 */
static struct run_row runs[] = {
    {"b", "often", "daemon", "web:1:x", AT - 30 * US_PER_S, true, AT - 28 * US_PER_S, "failed", 1234, 1, 2, 3,
     1, "no \033way", "{\"a\":1234}"},
    {"a", "often", "sweep", "web:2:y", AT - 90 * US_PER_S, false, 0, "running", 0, 0, 0, 0, 0, NULL, "x"},
};

static void history_text_and_json(void **state)
{
    (void)state;
    struct report *r = report_new(REPORT_HISTORY, "history");
    const struct run_rows all = {NULL, runs, 2}, none_yet = {0};
    r->now = AT;
    r->runs = &all;
    shows(r, "started (UTC)        scheduler  by      outcome  rows gone  time\n"
             "2027-01-15 07:59:30  often      daemon  failed       1,234  2.0s\n"
             "  skipped: 1 row\n"
             "  unknown: 2 rows in commits whose outcome is not known\n"
             "  why: no \\x1bway\n"
             "2027-01-15 07:58:30  often      sweep   running          0\n"
             "  since: 1m 30s ago, by web:2:y\n"
             "\n"
             "1,234 rows gone in 2 runs\n");
    json_t *j = json_of(r), *list = json_object_get(j, "runs"), *first = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "counts"), "a")), 1234);
    assert_string_equal(json_string_value(json_object_get(first, "started")), "2027-01-15T07:59:30Z");
    assert_true(json_is_null(json_object_get(json_array_get(list, 1), "ended")));
    assert_int_equal(json_object_size(json_object_get(json_array_get(list, 1), "counts")), 0);
    json_decref(j);
    r->runs = &none_yet;
    shows(r, "nothing has run yet\n");
    report_free(r);
}

static void status_text(void **state)
{
    (void)state;
    struct report *r = report_new(REPORT_STATUS, "status");
    const struct lease_row lease = {3, "web:1:x", true, AT + 20 * US_PER_S};
    const struct brake brake = {"often", false, 0, AT - US_PER_S};
    struct status_fuse fuse = {"p", {.there = true, .rows = 10, .most = 5, .tripped_at = AT}};
    struct status_scheduler list[] = {
        {.scheduler = &often,
         .ticks = "every 1m",
         .last = &runs[0],
         .daemon = &runs[0],
         .next = AT - 10 * US_PER_S,
         .late_us = 5 * 60 * US_PER_S,
         .brakes = &brake,
         .n_brakes = 1,
         .fuses = &fuse,
         .n_fuses = 1,
         .total = {"often", 2, 1300, 1, 2, 1, AT - 90 * US_PER_S, "boo", AT - US_PER_S}},
        {.scheduler = &alone, .ticks = "cron @daily", .lease = &lease, .next = NEVER}};
    const struct status s = {list, 2};
    r->now = AT;
    r->status = &s;
    shows(r, "scheduler  ticks        last run  outcome  rows gone  next\n"
             "often      every 1m     30s ago   failed       1,234  overdue\n"
             "  last: 2027-01-15 07:59:30 UTC by daemon, web:1:x, took 2.0s, 1 row skipped, 2 rows not known "
             "to be gone\n"
             "  late: by 5m: is lapse run running?\n"
             "  brake: paused since 2027-01-15 07:59:59 UTC by a brake on 'often' (lapse resume often)\n"
             "  fuse: that of 'p' tripped at 2027-01-15 08:00:00 UTC: 10 rows or more would have gone, and a "
             "run may "
             "delete 5 (lapse ack p)\n"
             "  total: 1,300 rows gone in 2 runs since 2027-01-15 07:58:30 UTC, 1 error\n"
             "  last error, 1.0s ago: boo\n"
             "alone      cron @daily  never     -                -  with lapse run\n"
             "  never: no lapse run has ticked it yet\n"
             "  lease: held by web:1:x until 2027-01-15 08:00:20 UTC\n"
             "\n"
             "1,300 rows gone in the history that is kept; 1 scheduler is late\n");
    json_t *j = json_of(r), *one_of = json_array_get(json_object_get(j, "schedulers"), 1);
    assert_string_equal(json_string_value(json_object_get(json_object_get(one_of, "lease"), "owner")),
                        "web:1:x");
    assert_true(json_is_null(json_object_get(one_of, "next")));
    json_decref(j);
    report_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_text),        cmocka_unit_test(plan_by_value_and_refused),
        cmocka_unit_test(plan_not_counted), cmocka_unit_test(plan_on_a_narrow_terminal),
        cmocka_unit_test(plan_statements),  cmocka_unit_test(plan_json),
        cmocka_unit_test(sweep_text),       cmocka_unit_test(sweep_nothing_due),
        cmocka_unit_test(sweep_troubles),   cmocka_unit_test(sweep_json),
        cmocka_unit_test(check_text),       cmocka_unit_test(check_wraps_words_but_not_fixes),
        cmocka_unit_test(check_json),       cmocka_unit_test(mistakes),
        cmocka_unit_test(whole_error),      cmocka_unit_test(odd_bytes),
        cmocka_unit_test(wide_names),       cmocka_unit_test(history_text_and_json),
        cmocka_unit_test(status_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
