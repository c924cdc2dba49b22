/* What the files of the facade share: a command at work, from its contract to its report. Private to lapse.
 */
#ifndef LAPSE_COMMAND_INTERNAL_H
#define LAPSE_COMMAND_INTERNAL_H

#include "check/check.h"
#include "draft/draft.h"
#include "record/history.h"
#include "lapse.h"
#include "guard/lease.h"
#include "report/report.h"

struct lapse_contract {
    struct contract *contract;
};
struct lapse_report {
    struct report *report;
};

/* One command at work. */
struct work {
    const struct contract *contract;
    const struct lapse_options *options;
    struct report *report;
    struct store *store;
    instant now;
    size_t selected, number;   /* policies: how many, and which one it is */
    int64_t due;               /* of the current one; -1: not counted */
    struct brakes brakes;      /* in force when it began; none before work_own */
    struct history *histories; /* of the schedulers that began, one each */
    size_t n_histories;
    bool reads;          /* it writes nothing */
    struct lease *lease; /* of the exclusive scheduler whose policies are swept; NULL: of none */
};

struct lapse_report *boxed(struct report *r);
/* Why a contract was not loaded. */
struct report *mistakes_report(const char *path, const struct mistakes *m, const struct err *e);
/* Opens the store and takes the time. -1: the report says what is wrong, finish() it. */
int work_start(struct work *w, const struct lapse_contract *c, const struct lapse_options *o,
               enum report_kind kind, const char *command, bool reading);
void work_fail(struct work *w, const struct err *e); /* the command as a whole */
void work_remark(struct work *w, const char *text);  /* worth saying once; lives as long as the report */
struct lapse_report *work_finish(struct work *w, int64_t started);

/* The same options, of which only that to stop is heeded. */
struct lapse_options work_only_stop(const struct lapse_options *o);
bool work_asked(void *work); /* to stop; from any thread */
/* Whether the command is about this policy. */
bool work_selected(const struct work *w, const struct policy *p);
/* Readings that a standby cancels, because what it replays removes rows that they still see (or, at worst, by
 * ending the session), are begun again. True: once more; e is reset. */
bool work_reads_again(struct work *w, int *tries, struct err *e);

/* Looks at lapse's own tables, and at the brakes if there are such tables. -1: the report says what is wrong.
 */
int work_own(struct work *w);
/* What to say of a policy's brake and fuse; the fuse is judged by the rows that would go. */
int work_own_policy(struct work *w, const struct plan *plan, struct report_policy *rp, struct err *e);
/* A finding where a brake stops the policy. */
void work_brake_finding(struct work *w, const struct policy *p);

/* The policy's scheduler. */
const struct scheduler *work_scheduler(const struct work *w, const struct policy *p);
/* Findings about the contract's purges. (purges.c) */
int work_check_purges(struct work *w, struct err *e);

/* The policy's scheduler if it is exclusive, else NULL. */
const struct scheduler *work_exclusive(const struct work *w, const struct policy *p);
/* A finding where the policy needs a lease that cannot be had. */
void work_lease_finding(struct work *w, const struct policy *p);
/* Findings about its pace. (pace.c) */
void work_pace_finding(struct work *w, const struct policy *p);
/* Takes w->lease for the policy, or keeps it. -1: rp says who holds it, or why it cannot be had. */
int work_lease(struct work *w, struct report_policy *rp);
void work_lease_drop(struct work *w);

/* The policy's plan, or NULL and the reason in rp: disabled, refused by what check finds, or the database
 * failed. */
struct plan *work_plan(struct work *w, const struct policy *p, struct report_policy *rp,
                       struct facts **ret_facts);
/* Lets the plan choose in which order rows are found, by what the database reckons; rp says which. The
 * statements of that, for people. */
void work_explain(struct work *w, const struct plan *plan, struct text *out);
void work_walk(struct work *w, struct plan *plan, struct report_policy *rp);
/* What is due of the policy of this entry, counted: what `plan` says of it. (plan.c) */
void work_count(struct work *w, struct report_policy *rp);
/* Runs the plan; rp gets what became of it. The options' lease is w's, their budget the scheduler's. */
void work_sweep(struct work *w, struct report_policy *rp, const struct plan *plan, struct sweep_options o);
void work_counting(struct work *w, const struct policy *p); /* to whoever is shown progress */
void work_copy_counts(struct report_policy *rp, const int64_t *gone, const int64_t *detached);
/* The tables that lose rows, with nothing gone yet. */
void work_names(struct work *w, struct report_policy *rp, const struct plan *plan);
/* What went wrong with one policy; the graver exit code stays. */
void work_policy_failed(struct work *w, struct report_policy *rp, const struct err *e);

/* --- partitions that are dropped (partitions.c) ------------------------------------------------------
 */

/* What would become of those that are wholly due; the statements, of one of them; what became of them. */
int work_partitions(struct work *w, const struct plan *plan, struct report_policy *rp, struct err *e);
void work_partition_sql(struct work *w, const struct plan *plan, struct text *out);
void work_partition_outcomes(struct work *w, struct report_policy *rp, const struct outcome *o);

/* --- the history (history.c) ------------------------------------------------------------------------
 */

/* What became of a policy, into the row of its run. */
void history_add_policy(struct history *h, const struct report_policy *rp);

/* For a sweep: a row per scheduler, opened with the first of its policies that is not disabled. Those that
 * follow do nothing where it was not opened. */
void work_history_open(struct work *w, const struct policy *p);
void work_history_begin(struct work *w, const struct policy *p); /* its first deletion may follow */
void work_history_add(struct work *w, const struct report_policy *rp);
void work_history_end(struct work *w, const struct policy *p); /* a remark where it could not be written */
void work_histories_release(struct work *w);
bool work_keeps_history(const struct work *w);
void work_history_remark(struct work *w); /* where none is kept */

#endif
