/* meter: the metrics, one table of names; counted by label, printed as Prometheus reads them. One mutex
 * inside: any thread may count and print. */
#ifndef LAPSE_WATCH_METER_H
#define LAPSE_WATCH_METER_H

#include "report/report.h"

enum metric {
    METRIC_PRUNE_ROWS,     /* lifecycle_prune_rows_total{scheduler,table,policy} */
    METRIC_TICK_ERRORS,    /* lifecycle_tick_errors_total{scheduler} */
    METRIC_TICK_SECONDS,   /* lapse_tick_duration_seconds{scheduler}: histogram */
    METRIC_BATCH_SECONDS,  /* lapse_batch_duration_seconds{scheduler,table}: histogram */
    METRIC_DUE_ROWS,       /* lapse_due_rows{scheduler,table} */
    METRIC_OLDEST_DUE,     /* lapse_oldest_due_age_seconds{scheduler,table} */
    METRIC_SKIPPED,        /* lapse_rows_skipped_total{scheduler,table,reason} */
    METRIC_PACE_WAIT,      /* lapse_pace_wait_seconds_total{scheduler,table,reason} */
    METRIC_PACE_ROWS,      /* lapse_pace_rows{scheduler,table} */
    METRIC_LAST_SUCCESS,   /* lapse_last_success_timestamp_seconds{scheduler} */
    METRIC_NEXT_TICK,      /* lapse_next_tick_timestamp_seconds{scheduler} */
    METRIC_LEASE_HELD,     /* lapse_lease_held{scheduler} */
    METRIC_PURGES_PENDING, /* lapse_purges_pending{space} */
    METRIC_PURGES,         /* lapse_purges_total{space,reason} */
    METRIC_BUILD,          /* lapse_build_info{version} */
    N_METRICS
};

struct meter;
struct meter *meter_new(void);
void meter_free(struct meter *m);
/* labels: as many texts as the metric has labels, in the order of the table above; copied. */
void meter_add(struct meter *m, enum metric x, const char *const *labels, double by); /* counters */
void meter_set(struct meter *m, enum metric x, const char *const *labels, double to); /* gauges */
void meter_observe(struct meter *m, enum metric x, const char *const *labels,
                   double seconds); /* histograms */
void meter_drop(struct meter *m, enum metric x,
                const char *const *labels); /* a gauge that says nothing now */
/* A contract is in force: the series of its schedulers and policies exist from now on, counters at 0, so that
 * a rate can be taken of the first rows; gauges of what is no longer there go, counters stay. */
void meter_expect(struct meter *m, const struct contract *c);
/* What a tick did: skipped rows, duration, success; not rows (meter_batch), not errors. */
void meter_tick(struct meter *m, const struct report *r, const char *scheduler);
/* What a committed batch did: its rows by label and dependent table, and how long it took. */
void meter_batch(struct meter *m, const struct report_policy *p, const int64_t *gone, int64_t us);
void meter_print(struct meter *m, struct text *out);

#endif
