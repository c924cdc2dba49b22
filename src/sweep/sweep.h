/* sweep: runs a plan: slices, retry, bisection, stop -> outcome. */
#ifndef LAPSE_SWEEP_H
#define LAPSE_SWEEP_H

#include "guard/fuse.h"
#include "guard/lease.h"
#include "sweep/pace.h"

enum { SKIPPED_MOST = 100 }; /* after so many refused rows the policy fails */

enum outcome_kind {
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REFUSED,
    OUTCOME_DISABLED,
    OUTCOME_STOPPED,
    OUTCOME_PAUSED, /* a brake is on */
    OUTCOME_FUSE,   /* more would go than the policy's limits allow */
    OUTCOME_HELD,   /* another holds the lease of its scheduler */
    OUTCOME_BUDGET, /* its budget is used up, and rows are still due */
    OUTCOME_WINDOW, /* the window of its scheduler closed, and rows are still due, or may be */
};
/* "done", "failed", "refused", "disabled", "stopped", "paused", "fuse", "held_elsewhere", "budget", "window"
 */
const char *outcome_name(enum outcome_kind k);

struct skipped_row {
    char *key;          /* "id=42" */
    const char *reason; /* "refused", "locked", "timeout", "too_heavy" */
    char *error;        /* the database's words */
};

/* A partition that was wholly due. */
struct partition_outcome {
    char *name;
    int64_t rows;
    char *why; /* NULL: it was dropped with its rows. Else why its rows were left to go one by one */
};

/* What became of one policy. Counts are of committed transactions only. */
struct outcome {
    enum outcome_kind kind;
    struct err err;       /* FAILED, STOPPED, PAUSED, FUSE, BUDGET, WINDOW: why */
    int64_t *gone;        /* per plan->slots; NULL when there was no plan */
    int64_t *detached;    /* per plan->detach_slots */
    int64_t unknown;      /* roots in commits whose outcome is unknown; of these … */
    int64_t unknown_gone; /* … so many are gone, by this run or another at the same time */
    int64_t left;         /* due rows still there at the end, locked by others (counted up to left_most) */
    int64_t batches, retries;
    struct skipped_row *skipped;
    size_t n_skipped;
    struct partition_outcome *partitions;
    size_t n_partitions;
    int64_t alone; /* connections of its workers that could not be had: the others did their part … */
    char alone_why[PRESSURE_TEXT]; /* … and why, of the first */
    bool came_again; /* as many are left as the last look deleted: they may be inserted while it runs */
    int64_t duration_us;
    int64_t deleting_us;       /* … without looking, counting and waiting */
    int64_t batch_us;          /* of the last batch */
    const int64_t *batch_gone; /* … its rows per plan->slots; during progress() only */
    struct outcome_pace {
        enum pace_reason reason;           /* what holds it back; of the end: what did */
        int64_t rows;                      /* that the next batch may have */
        int64_t waited_us[N_PACE_REASONS]; /* between transactions, by reason */
        int64_t waiting_us;                /* this wait has lasted so long; 0: it works */
        char words[PRESSURE_TEXT * 2];     /* the reason, for people; "": none */
        char deaf[PRESSURE_TEXT];          /* how others fare could not be asked: why; "": it could */
    } pace;
};
void outcome_init(struct outcome *o, const struct plan *p);
void outcome_release(struct outcome *o);

struct sweep_options {
    /* Asked before every batch and while waiting; true: stop. May be NULL. */
    bool (*stop)(void *context);
    /* Once, before the first transaction that may delete something; none is open. May be NULL. */
    void (*begins)(void *context, const struct plan *p);
    /* After every batch. May be NULL. */
    void (*progress)(void *context, const struct plan *p, const struct outcome *so_far);
    /* Between transactions, where what holds it back is another than before, and about every second of a
     * wait: so_far->pace. May be NULL. */
    void (*paced)(void *context, const struct plan *p, const struct outcome *so_far);
    void *context;
    struct lease *lease; /* that every batch needs, and that is held; NULL: none */
    /* What this run may do; 0: as much as there is. Rows are those of the policy's own table: never more. The
     * time is looked at after every batch. */
    int64_t budget_rows, budget_batches, budget_us;
    instant until; /* the window closes then, by the wall clock; 0: never */
};
/* Never fails as a function: what went wrong is in the outcome. Brakes and fuses are heeded where store->own
 * says that lapse's own tables are installed; a policy with limits needs them. */
void sweep_run(struct store *s, const struct plan *p, const struct sweep_options *o, struct outcome *ret);

#endif
