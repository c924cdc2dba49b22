/* history: the row of a run in lapse's own tables, from its begin to its end. One row per tick of a
 * scheduler, or per scheduler of a sweep. A row that cannot be written stops and undoes nothing: what went
 * wrong is kept in `trouble`, for the caller to say.
 *
 *     AUTO(history_release) struct history h;
 *     history_open(&h, store, "metadata", "daemon", owner, started);
 *     history_begin(&h);                   before the first deletion, where anything is due
 *     history_add(&h, &part);              after each policy: written at once where rows went
 *     history_end(&h, ended);              in any case; a run with nothing due writes its one row here
 */
#ifndef LAPSE_RECORD_HISTORY_H
#define LAPSE_RECORD_HISTORY_H

#include "store/store.h"

/* Why no history is kept here, and what to do about it; "": it is kept. own->look has been called. */
const char *history_obstacle(const struct store *s, const char **ret_fix);

/* "no history is kept: …", with what to do; "" where it is kept. */
void history_excuse(const struct store *s, struct text *out);

/* What became of one policy of the run. */
struct history_part {
    const char *policy;
    bool has_cutoff;
    instant cutoff;            /* no row that was younger went */
    const char *outcome;       /* as outcome_name has it; "budget" where a budget ended it */
    const char *error;         /* NULL: none */
    const char *const *labels; /* of the tables that lost rows … */
    const int64_t *gone;       /* … and how many each */
    size_t n;
    int64_t skipped, unknown, batches;
};

struct history {
    struct store *store;
    struct arena *arena; /* owns the texts of the row */
    struct run_row row;  /* as it is, or would be, written next */
    bool kept;           /* there is a place for it */
    bool written;        /* it is there, as far as is known */
    bool held;           /* a part was not run: another holds the lease */
    size_t parts;        /* that were run, or should have been */
    struct history_count {
        const char *label;
        int64_t rows;
    } * counts; /* by label, in the order they came */
    size_t n_counts;
    struct text policies; /* JSON, but for the brackets: an object per part */
    struct err trouble;   /* why the row is not as it should be; ERR_NONE: it is, or none is kept */
};
/* Nothing is asked of the database yet. started: by its clock. Texts are copied. */
void history_open(struct history *h, struct store *s, const char *scheduler, const char *source,
                  const char *owner, instant started);
/* The row is there from now on, as "running". Once is enough. */
void history_begin(struct history *h);
/* Disabled policies are passed over; one whose lease is held elsewhere leaves no trace but this: a run of
 * nothing else writes no row. */
void history_add(struct history *h, const struct history_part *part);
/* The run as a whole failed (the database was not there, …), or was ended early: beside or instead of its
 * parts. */
void history_fail(struct history *h, const char *outcome, const char *error);
/* The gravest outcome of the parts; "done" where there are none. */
void history_end(struct history *h, instant ended);
void history_release(struct history *h);

/* The hash of the policies that it runs: kept with it. Copied; before the first writing. */
void history_contract(struct history *h, const char *hash);

/* {"policy": …, "outcome": …, "cutoff": …, "rows": {"label": rows, …}}; in history_json.c */
void history_part_json(const struct history_part *part, struct text *out);
/* {"label": rows, …}; in history_json.c */
void history_counts_json(const struct history *h, struct text *out);

#endif
