/* report: what a command found or did -> text for people, JSON for machines. */
#ifndef LAPSE_REPORT_H
#define LAPSE_REPORT_H

#include <stdio.h>

#include "contract/contract.h"
#include "explain/explain.h"
#include "sweep/sweep.h"

/* One policy in the report of plan or sweep. Texts live in the report's arena. */
struct report_policy {
    const struct policy *policy;
    const char *table;      /* "schema.table" */
    enum outcome_kind kind; /* plan: OUTCOME_DONE means planned */
    const char *error;      /* NULL: none. For refused: the first findings, one per line */
    bool unreachable;       /* it failed because the database was not there */
    const char **tables;    /* names per slot, the root's last */
    const char **labels;    /* per slot: what metrics, logs and the history call it (plan_label) */
    int64_t *gone;
    bool *split; /* plan: rows that may go ahead of what owns them; else NULL */
    size_t n_tables;
    const char **detach_tables;
    int64_t *detached;
    size_t n_detach_tables;
    const struct partition_outcome *partitions; /* plan: what would become of those that are wholly due */
    size_t n_partitions;
    const char
        *drops_not; /* the policy asks for partitions to be dropped, and none ever is; NULL: it may be */
    /* plan */
    bool counted;            /* what is due was counted … */
    bool below_unknown;      /* … but what goes with it took too long … */
    bool kept_unknown;       /* … or what is kept, and why */
    bool timed_out;          /* not counted, because it took too long */
    int64_t least;           /* not counted: so many rows of its own table at least */
    struct finding *indexes; /* what `check` says of indexes, where counting took too long */
    size_t n_indexes;
    const struct cutoff *cutoffs; /* copied */
    size_t n_cutoffs;
    bool cutoff_per_row;
    bool has_latest;
    instant latest; /* of all cutoffs: no row that is younger goes */
    bool has_range;
    instant oldest, newest;
    int64_t null_time, unreadable_time, held, waiting;
    bool frees;   /* some of those wait for rows that go: more become free then */
    bool circles; /* rows that refer to each other in a circle are counted, but cannot be deleted */
    enum walk walk;
    const char *walk_why;      /* how rows are found, and why so; NULL: it was not asked */
    const char *sql;           /* NULL unless asked for: statements, one per paragraph */
    const struct fuse *fuse;   /* NULL: it has no limits */
    const char *fuse_words;    /* "" where it holds */
    const struct brake *brake; /* NULL: none is on */
    const char *brake_words;
    /* sweep */
    const struct lease_row *holder; /* of the lease, where it is another; else NULL */
    struct skipped_row *skipped;
    size_t n_skipped;
    int64_t left, unknown, unknown_gone, batches, retries, duration_us, deleting_us;
    bool came_again;
    struct outcome_pace pace;
};

/* One value of a report in words, for machines. */
enum fact_kind { FACT_TEXT, FACT_NUMBER, FACT_TIME, FACT_FLAG, FACT_TEXTS, FACT_ROWS };
struct report_fact {
    const char *key;
    enum fact_kind kind;
    bool null;
    const char *text;
    int64_t number; /* FACT_NUMBER, FACT_TIME, FACT_FLAG */
    const char **texts;
    size_t n;
    const struct report_row {
        struct report_fact *facts;
        size_t n;
    } * rows; /* FACT_ROWS: n of them */
};

/* One finding of init: a policy drafted for a table, or what the table has instead. */
struct report_drafted {
    const char *table;
    const char *found;  /* "expires", "ended", "age", "bounded", "owned", "nothing" */
    const char *policy; /* drafted for it, or the one its rows go with; NULL: none */
    bool certain;       /* it stands in the draft as it is */
    const char **why, **decide;
    size_t n_why, n_decide;
};

enum report_kind {
    REPORT_MISTAKES,
    REPORT_CHECK,
    REPORT_PLAN,
    REPORT_SWEEP,
    REPORT_EXPLAIN,
    REPORT_WORDS,
    REPORT_DRAFT,
    REPORT_STATUS,
    REPORT_HISTORY,
    REPORT_ERROR
};
struct report {
    struct arena *arena; /* owns everything but the contract */
    enum report_kind kind;
    const struct contract *contract; /* NULL for REPORT_MISTAKES */
    const char *command;             /* "check", "plan", "sweep" */
    const char *file;
    int exit;          /* one of enum lapse_exit */
    const char *error; /* the whole command failed; NULL: it did not */
    bool unreachable;  /* … because the database was not there */
    instant now;
    int64_t
        again_us; /* another's lease ends so long after the tick, and its run may never end; 0: it is not so */
    struct mistake *mistakes; /* REPORT_MISTAKES */
    size_t n_mistakes;
    struct findings findings;       /* REPORT_CHECK */
    bool verbose, only_statements;  /* … told one by one; of them only the statements that make indexes */
    struct report_policy *policies; /* REPORT_PLAN, REPORT_SWEEP; in the order of the file */
    size_t n_policies;
    int64_t most;              /* REPORT_PLAN: rows of all tables that were counted, each once … */
    bool at_most;              /* … as far as that could be known: some may be counted twice */
    bool not_all;              /* … and there are others that were not counted: */
    int64_t least;             /* … then it is so many, or more */
    const char *words;         /* REPORT_WORDS: for people, whole lines … */
    struct report_fact *facts; /* … and the same for machines */
    size_t n_facts;
    const char *draft; /* REPORT_DRAFT: the contract as text */
    struct report_drafted *drafted;
    size_t n_drafted;
    const struct explanation *explanation; /* REPORT_EXPLAIN; NULL: the policy's entry says why not */
    const struct status *status;           /* REPORT_STATUS (status.h) */
    const struct run_rows *runs; /* REPORT_HISTORY: the newest first; they live in the arena above */
    const char **remarks;        /* things worth saying once: "no history is kept", … */
    size_t n_remarks;
    int64_t duration_us;
};
struct report *report_new(enum report_kind kind, const char *command);
void report_free(struct report *r);
struct report_policy *report_add_policy(struct report *r, const struct policy *p);
void report_add_fact(struct report *r, struct report_fact fact); /* its texts must live in the arena */

/* What both ways of showing it need. */
int64_t report_rows(const struct report_policy *p); /* of the policy's own table */
/* plan: how many rows would go is not known. */
bool report_uncounted(const struct report_policy *p);
/* What metrics, logs and the history call the rows of one slot: the policy's label, and for rows that went
 * along their table's name as the contract writes it. */
const char *report_label(const struct report_policy *p, size_t slot);
/* Whether the policy had its turn: it was neither off nor refused nor braked nor another's. */
bool report_ran(const struct report_policy *p);
/* Whether something is wrong with it: it failed, was refused, tripped its fuse, had to skip rows, or does not
 * know what became of some. */
bool report_in_trouble(const struct report_policy *p);
void report_place(const struct report *r, struct place at, struct text *out); /* "lapse.yaml:12:9" */
void report_levels(const struct findings *f, size_t ret_count[3]);            /* by enum finding_level */
size_t report_utf8(const char *s); /* the length of the UTF-8 character s begins with; 0: it is none */

void report_json(const struct report *r, FILE *out);
/* colour: escape codes allowed; width: of the terminal, 0 when piped. Errors (mistakes, r->error) go to err.
 */
void report_text(const struct report *r, FILE *out, FILE *err, bool colour, int width);

#endif
