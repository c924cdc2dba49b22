/* meter: the metrics: one table of names, a sorted list of series per name, one mutex. */
#include "watch/meter.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"

enum { LABELS_MOST = 3 };

static const double tick_buckets[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                      2.5,   5,    10,    30,   60,  300,  900, 3600};
static const double batch_buckets[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                       0.5,   1,      2.5,   5,    10,    30,   60};

enum type { COUNTER, GAUGE, HISTOGRAM };
static const char *const type_names[] = {"counter", "gauge", "histogram"};

static const struct row {
    const char *name;
    enum type type;
    const char *labels[LABELS_MOST];
    const double *buckets;
    size_t n_buckets;
    const char *help;
} table[N_METRICS] = {
    [METRIC_PRUNE_ROWS] = {"lifecycle_prune_rows_total",
                           COUNTER,
                           {"scheduler", "table", "policy"},
                           .help = "Rows deleted, by the policy's label or the table that rows went along "
                                   "from; counted after commit."},
    [METRIC_TICK_ERRORS] = {"lifecycle_tick_errors_total",
                            COUNTER,
                            {"scheduler"},
                            .help = "Errors of ticks: policies that failed or were refused, rows that could "
                                    "not go, the database not there."},
    [METRIC_TICK_SECONDS] = {"lapse_tick_duration_seconds",
                             HISTOGRAM,
                             {"scheduler"},
                             tick_buckets,
                             COUNT_OF(tick_buckets),
                             "How long ticks took."},
    [METRIC_BATCH_SECONDS] = {"lapse_batch_duration_seconds",
                              HISTOGRAM,
                              {"scheduler", "table"},
                              batch_buckets,
                              COUNT_OF(batch_buckets),
                              "How long the transactions of a policy took."},
    [METRIC_DUE_ROWS] = {"lapse_due_rows",
                         GAUGE,
                         {"scheduler", "table"},
                         .help = "Rows due now, counted up to 10000 per policy."},
    [METRIC_OLDEST_DUE] = {"lapse_oldest_due_age_seconds",
                           GAUGE,
                           {"scheduler", "table"},
                           .help = "How long ago the time of the oldest row that is due was."},
    [METRIC_SKIPPED] = {"lapse_rows_skipped_total",
                        COUNTER,
                        {"scheduler", "table", "reason"},
                        .help = "Due rows that could not be deleted in a tick, by reason."},
    [METRIC_PACE_WAIT] = {"lapse_pace_wait_seconds_total",
                          COUNTER,
                          {"scheduler", "table", "reason"},
                          .help = "How long sweeps waited between transactions, by what held them back."},
    [METRIC_PACE_ROWS] = {"lapse_pace_rows",
                          GAUGE,
                          {"scheduler", "table"},
                          .help = "Rows that a batch may have at the pace of the last sweep."},
    [METRIC_LAST_SUCCESS] = {"lapse_last_success_timestamp_seconds",
                             GAUGE,
                             {"scheduler"},
                             .help = "When the last tick began in which nothing failed."},
    [METRIC_NEXT_TICK] = {"lapse_next_tick_timestamp_seconds",
                          GAUGE,
                          {"scheduler"},
                          .help = "When the next tick is due."},
    [METRIC_LEASE_HELD] = {"lapse_lease_held",
                           GAUGE,
                           {"scheduler"},
                           .help = "Whether this process holds the lease of an exclusive scheduler."},
    [METRIC_PURGES_PENDING] = {"lapse_purges_pending",
                               GAUGE,
                               {"space"},
                               .help = "Purges scheduled and not carried out yet, counted up to 10000."},
    [METRIC_PURGES] = {"lapse_purges_total",
                       COUNTER,
                       {"space", "reason"},
                       .help = "Purges carried out; reasons beyond fifty unnamed ones count as other."},
    [METRIC_BUILD] = {"lapse_build_info", GAUGE, {"version"}, .help = "The version of lapse; always 1."},
};

/* Every reason that skipped_row.reason may have (sweep/sweep.h); another would count as the last. */
static const char *const skip_reasons[] = {"refused", "locked", "timeout", "too_heavy", "other"};
enum { SKIP_ALWAYS = 3 }; /* so many may come up of any policy; then one for rows that own others */

/* One combination of labels. */
struct series {
    char *labels[LABELS_MOST];
    double value; /* of a histogram: the sum */
    uint64_t count, *buckets;
};
struct meter {
    pthread_mutex_t lock;
    struct {
        struct series **list; /* sorted by labels */
        size_t n;
    } metrics[N_METRICS];
};

/* --- series -------------------------------------------------------------------------------------- */

static size_t n_labels(enum metric x)
{
    size_t n = 0;
    while (n < LABELS_MOST && table[x].labels[n])
        n++;
    return n;
}

static int compare(enum metric x, const struct series *s, const char *const *labels)
{
    int c = 0;
    for (size_t i = 0; i < n_labels(x) && c == 0; i++)
        c = strcmp(s->labels[i], labels[i]);
    return c;
}

/* Where the series is, or belongs. */
static size_t place_of(const struct meter *m, enum metric x, const char *const *labels, bool *ret_there)
{
    size_t from = 0, to = m->metrics[x].n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (compare(x, m->metrics[x].list[middle], labels) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *ret_there = from < m->metrics[x].n && compare(x, m->metrics[x].list[from], labels) == 0;
    return from;
}

static struct series *series_of(struct meter *m, enum metric x, const char *const *labels)
{
    bool there;
    size_t at = place_of(m, x, labels, &there), n = m->metrics[x].n;
    if (there)
        return m->metrics[x].list[at];
    struct series *s = mem_alloc(sizeof(*s));
    for (size_t i = 0; i < n_labels(x); i++)
        s->labels[i] = mem_strdup(labels[i]);
    if (table[x].n_buckets)
        s->buckets = mem_alloc(table[x].n_buckets * sizeof(*s->buckets));
    struct series **list = m->metrics[x].list = mem_grow(m->metrics[x].list, n + 1, sizeof(*list));
    memmove(&list[at + 1], &list[at], (n - at) * sizeof(*list));
    m->metrics[x].n++;
    return list[at] = s;
}

static void series_free(struct series *s)
{
    for (size_t i = 0; i < LABELS_MOST; i++)
        free(s->labels[i]);
    free(s->buckets);
    free(s);
}

static void drop_at(struct meter *m, enum metric x, size_t at)
{
    struct series **list = m->metrics[x].list;
    series_free(list[at]);
    memmove(&list[at], &list[at + 1], (m->metrics[x].n - at - 1) * sizeof(*list));
    m->metrics[x].n--;
}

/* --- counting ------------------------------------------------------------------------------------ */

struct meter *meter_new(void)
{
    struct meter *m = mem_alloc(sizeof(*m));
    pthread_mutex_init(&m->lock, NULL);
    meter_set(m, METRIC_BUILD, (const char *const[]){LAPSE_VERSION}, 1);
    return m;
}

void meter_free(struct meter *m)
{
    if (!m)
        return;
    for (int x = 0; x < N_METRICS; x++) {
        for (size_t i = 0; i < m->metrics[x].n; i++)
            series_free(m->metrics[x].list[i]);
        free(m->metrics[x].list);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void meter_add(struct meter *m, enum metric x, const char *const *labels, double by)
{
    pthread_mutex_lock(&m->lock);
    series_of(m, x, labels)->value += by;
    pthread_mutex_unlock(&m->lock);
}

void meter_set(struct meter *m, enum metric x, const char *const *labels, double to)
{
    pthread_mutex_lock(&m->lock);
    series_of(m, x, labels)->value = to;
    pthread_mutex_unlock(&m->lock);
}

void meter_observe(struct meter *m, enum metric x, const char *const *labels, double seconds)
{
    pthread_mutex_lock(&m->lock);
    struct series *s = series_of(m, x, labels);
    for (size_t i = 0; i < table[x].n_buckets; i++)
        s->buckets[i] += seconds <= table[x].buckets[i];
    s->value += seconds;
    s->count++;
    pthread_mutex_unlock(&m->lock);
}

void meter_drop(struct meter *m, enum metric x, const char *const *labels)
{
    bool there;
    pthread_mutex_lock(&m->lock);
    size_t at = place_of(m, x, labels, &there);
    if (there)
        drop_at(m, x, at);
    pthread_mutex_unlock(&m->lock);
}

/* --- a contract ---------------------------------------------------------------------------------- */

static void expect_policy(struct meter *m, struct arena *a, const struct policy *p)
{
    size_t n;
    const char **tables = policy_dependents(a, p, &n);
    meter_add(m, METRIC_PRUNE_ROWS, (const char *const[]){p->scheduler, p->label, p->name}, 0);
    for (size_t i = 0; i < n; i++)
        meter_add(m, METRIC_PRUNE_ROWS, (const char *const[]){p->scheduler, tables[i], p->name}, 0);
    for (size_t i = 0; i < SKIP_ALWAYS + (n > 0); i++)
        meter_add(m, METRIC_SKIPPED, (const char *const[]){p->scheduler, p->label, skip_reasons[i]}, 0);
}

static void expect_scheduler(struct meter *m, const struct scheduler *s)
{
    const char *const labels[] = {s->name};
    meter_add(m, METRIC_TICK_ERRORS, labels, 0);
    pthread_mutex_lock(&m->lock);
    series_of(m, METRIC_TICK_SECONDS, labels);
    if (s->exclusive)
        series_of(m, METRIC_LEASE_HELD, labels);
    pthread_mutex_unlock(&m->lock);
}

/* Whether a contract, or what lapse has of its own, has what the labels of a gauge name. */
static bool speaks_of(const struct contract *c, enum metric x, const struct series *s)
{
    if (x == METRIC_BUILD || (c->own && speaks_of(c->own, x, s)))
        return true;
    if (!strcmp(table[x].labels[0], "space")) {
        for (size_t i = 0; i < c->n_purges; i++)
            if (!strcmp(c->purges[i].name, s->labels[0]))
                return true;
        return false;
    }
    if (table[x].labels[1]) {
        for (size_t i = 0; i < c->n_policies; i++)
            if (c->policies[i].enabled && !strcmp(c->policies[i].scheduler, s->labels[0]) &&
                !strcmp(c->policies[i].label, s->labels[1]))
                return true;
        return false;
    }
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (!strcmp(c->schedulers[i].name, s->labels[0]))
            return x != METRIC_LEASE_HELD || c->schedulers[i].exclusive;
    return false;
}

static void expect(struct meter *m, struct arena *scratch, const struct contract *c)
{
    for (size_t i = 0; i < c->n_schedulers; i++)
        expect_scheduler(m, &c->schedulers[i]);
    for (size_t i = 0; i < c->n_policies; i++)
        expect_policy(m, scratch, &c->policies[i]);
}

void meter_expect(struct meter *m, const struct contract *c)
{
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    pthread_mutex_lock(&m->lock);
    for (int x = 0; x < N_METRICS; x++)
        for (size_t i = m->metrics[x].n; i-- > 0 && table[x].type == GAUGE;)
            if (!speaks_of(c, (enum metric)x, m->metrics[x].list[i]))
                drop_at(m, (enum metric)x, i);
    pthread_mutex_unlock(&m->lock);
    expect(m, scratch, c);
    if (c->own)
        expect(m, scratch, c->own);
}

/* --- a tick -------------------------------------------------------------------------------------- */

static const char *known_reason(const char *reason)
{
    for (size_t i = 0; i < COUNT_OF(skip_reasons); i++)
        if (!strcmp(skip_reasons[i], reason))
            return skip_reasons[i];
    return skip_reasons[COUNT_OF(skip_reasons) - 1];
}

static void count_skipped(struct meter *m, const struct report_policy *p, const char *scheduler)
{
    for (size_t i = 0; i < p->n_skipped; i++)
        meter_add(m, METRIC_SKIPPED,
                  (const char *const[]){scheduler, p->policy->label, known_reason(p->skipped[i].reason)}, 1);
}

void meter_tick(struct meter *m, const struct report *r, const char *scheduler)
{
    const char *const labels[] = {scheduler};
    bool ran = r->n_policies == 0, well = !r->error;
    for (size_t i = 0; i < r->n_policies; i++) {
        const struct report_policy *p = &r->policies[i];
        if (r->kind == REPORT_SWEEP)
            count_skipped(m, p, scheduler);
        ran |= report_ran(p);
        well &= !report_in_trouble(p) && p->kind != OUTCOME_STOPPED;
    }
    if (ran || r->error)
        meter_observe(m, METRIC_TICK_SECONDS, labels, (double)r->duration_us / 1e6);
    if (ran && well)
        meter_set(m, METRIC_LAST_SUCCESS, labels, (double)r->now / 1e6);
}

void meter_batch(struct meter *m, const struct report_policy *p, const int64_t *gone, int64_t us)
{
    const struct policy *of = p->policy;
    for (size_t i = 0; i < p->n_tables; i++)
        meter_add(m, METRIC_PRUNE_ROWS, (const char *const[]){of->scheduler, report_label(p, i), of->name},
                  (double)gone[i]);
    meter_observe(m, METRIC_BATCH_SECONDS, (const char *const[]){of->scheduler, of->label}, (double)us / 1e6);
}

/* --- as Prometheus reads them -------------------------------------------------------------------- */

/* Whole numbers exactly, others with as many digits as tell them apart; a point whatever the locale. */
static void add_number(struct text *out, double x)
{
    char buf[40];
    if (isnan(x) || isinf(x)) {
        text_add(out, isnan(x) ? "NaN" : x > 0 ? "+Inf" : "-Inf");
        return;
    }
    if (fabs(x) < 9007199254740992.0 && x == floor(x)) {
        text_addf(out, "%lld", (long long)x);
        return;
    }
    snprintf(buf, sizeof(buf), "%.15g", x);
    if (strtod(buf, NULL) != x)
        snprintf(buf, sizeof(buf), "%.17g", x);
    char *comma = strchr(buf, ',');
    if (comma)
        *comma = '.';
    text_add(out, buf);
}

static void add_label(struct text *out, const char *name, const char *value, bool first)
{
    text_addf(out, "%s%s=\"", first ? "{" : ",", name);
    for (size_t n; *value; value += n ? n : 1) {
        n = utf8_length(value);
        if (*value == '\n')
            text_add(out, "\\n");
        else if (!n)
            text_add(out, "\xEF\xBF\xBD");
        else {
            text_add(out, *value == '\\' || *value == '"' ? "\\" : "");
            text_add_n(out, value, n);
        }
    }
    text_add(out, "\"");
}

/* name_suffix{labels,le="…"} */
static void add_series(struct text *out, enum metric x, const struct series *s, const char *suffix,
                       const double *le)
{
    size_t n = n_labels(x);
    text_addf(out, "%s%s", table[x].name, suffix);
    for (size_t i = 0; i < n; i++)
        add_label(out, table[x].labels[i], s->labels[i], i == 0);
    if (le) {
        text_addf(out, "%sle=\"", n ? "," : "{");
        add_number(out, *le);
        text_add(out, "\"");
    }
    text_add(out, n || le ? "} " : " ");
}

static void print_histogram(struct text *out, enum metric x, const struct series *s)
{
    const double all = INFINITY;
    for (size_t i = 0; i < table[x].n_buckets; i++) {
        add_series(out, x, s, "_bucket", &table[x].buckets[i]);
        text_addf(out, "%llu\n", (unsigned long long)s->buckets[i]);
    }
    add_series(out, x, s, "_bucket", &all);
    text_addf(out, "%llu\n", (unsigned long long)s->count);
    add_series(out, x, s, "_sum", NULL);
    add_number(out, s->value);
    text_add(out, "\n");
    add_series(out, x, s, "_count", NULL);
    text_addf(out, "%llu\n", (unsigned long long)s->count);
}

static void print_metric(const struct meter *m, struct text *out, enum metric x)
{
    if (!m->metrics[x].n)
        return;
    text_addf(out, "# HELP %s %s\n", table[x].name, table[x].help);
    text_addf(out, "# TYPE %s %s\n", table[x].name, type_names[table[x].type]);
    for (size_t i = 0; i < m->metrics[x].n; i++) {
        const struct series *s = m->metrics[x].list[i];
        if (table[x].type == HISTOGRAM) {
            print_histogram(out, x, s);
            continue;
        }
        add_series(out, x, s, "", NULL);
        add_number(out, s->value);
        text_add(out, "\n");
    }
}

void meter_print(struct meter *m, struct text *out)
{
    pthread_mutex_lock(&m->lock);
    for (int x = 0; x < N_METRICS; x++)
        print_metric(m, out, (enum metric)x);
    pthread_mutex_unlock(&m->lock);
}
