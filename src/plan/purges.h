/* purges: one instance's data, some time after it ended, by a row of lapse's own table. Which row of an
 * instance decides and when it is due, whether an id can stand in a column, what a purge erases: plain
 * values, and the verbs that a store has for them. */
#ifndef LAPSE_PLAN_PURGES_H
#define LAPSE_PLAN_PURGES_H

#include "contract/contract.h"
#include "plan/plan.h"

/* The most attempts before a purge is parked. */
enum { PURGE_ATTEMPTS = 10 };

/* A time of a row: not there, there and of no use (infinite), or usable. */
struct purge_time {
    bool there, usable;
    instant at;
};
/* A row of lapse_purge. */
struct purge_row {
    int64_t id;
    const char *space;
    struct value instance; /* a text; in SQLite it may be anything */
    const char *reason;    /* NULL: none was given */
    bool odd; /* space or reason is no text, holds a zero byte or is too long: no contract can name
                            * it; or the instance is too long to be read */
    bool cut; /* the instance goes on: this is its beginning, for people */
    struct purge_time scheduled, at, retry, parked;
    int64_t attempts;
    const char *error; /* of the last attempt; NULL: none */
    bool locked;       /* by this transaction */
};
struct purge_rows {
    struct arena *arena; /* NULL: there are none */
    struct purge_row *list;
    size_t n;
    bool crowded; /* their instances have more rows than one transaction can hold: these are some of them */
};
void purge_rows_release(struct purge_rows *r);
void purge_rows_sort(struct purge_rows *r);                      /* by instance, and as they were scheduled */
int purge_compare(const struct value *a, const struct value *b); /* instances, byte by byte */
/* A name as people read it: what is no text, and zero bytes, are shown as such. False: it is such a one. */
bool purge_name_print(const struct value *v, struct text *out);

/* --- when a purge is due ---------------------------------------------------------------------------------
 */

const struct purge_space *purge_space_named(const struct contract *c, const char *name); /* NULL: none */
const char *purge_reason(const char *reason); /* as it reads: "unknown" where none was given */
bool purge_takes(const struct purge_space *s, const char *reason); /* false: outside `only` */
/* Whether a row may decide: its reason is taken, or one that cannot be told, which must be seen. */
bool purge_counts(const struct purge_space *s, const struct purge_row *r);
struct span purge_delay(const struct purge_space *s, const char *reason);
/* False: never, it is parked, or its reason cannot be told. */
bool purge_due_at(const struct purge_space *s, const struct purge_row *r, instant *ret);
/* How long to wait after so many failed attempts. */
int64_t purge_backoff_us(int64_t attempts);

/* What becomes of one instance. The first row that was scheduled with a reason that counts decides:
 * scheduling again changes nothing. */
enum purge_verdict {
    PURGE_EXECUTE, /* the row that decides is due: all rows go with the data */
    PURGE_WAIT,    /* it is not, or it is parked: the rows that change nothing go, and a retry that is over */
    PURGE_REMOVE,  /* no reason counts: all rows go, the data stays */
    PURGE_BUSY,    /* another transaction holds some of its rows: nothing happens */
    PURGE_MISFIT,  /* its id cannot stand in a column, or its reason cannot be told: it is parked */
    PURGE_THIN,    /* not all of its rows are known: of those that are, the ones that change nothing go */
};
struct purge_case {
    enum purge_verdict verdict;
    const struct purge_row *rows; /* of this instance, as they were scheduled */
    size_t n;
    const struct purge_row *decides; /* of the rows that are known; NULL: none counts */
    int64_t gone;                    /* rows erased of its data … */
    bool untold;                     /* … which nobody counted for this one alone */
    const char *why;                 /* PURGE_MISFIT */
};
struct purge_cases {
    struct purge_case *list; /* in the order of instances */
    size_t n;
};
/* Sorts the rows, which must be all there are of their instances unless they are crowded; the cases live in
 * the rows' arena. */
struct purge_cases purge_judge(const struct purge_space *s, struct purge_rows *rows, instant now);
/* Whether this row of the case is removed: one that decides stays where it waits, or is to be seen. */
bool purge_goes(const struct purge_case *c, const struct purge_row *r);
const struct purge_case *purge_case_of(const struct purge_cases *c, const struct value *instance);

/* "[Workflow] Purged data for ID (REASON)" */
void purge_line(const struct purge_space *s, const struct value *instance, const char *reason,
                struct text *out);

/* --- what a purge erases ---------------------------------------------------------------------------------
 */

struct erasing {
    const struct table *table;
    const struct column *column;
    const struct expr *keep; /* rows that stay; NULL: none */
    struct place at;
};
struct purge_plan {
    struct arena *arena; /* owns the plan (space and facts are borrowed and must outlive it) */
    const struct purge_space *space;
    const struct facts *facts;
    instant now;
    struct erasing *erases; /* in this order */
    size_t n;
};
/* The tables to be inspected before purge_plan_make. */
void purge_tables(const struct purge_space *s, struct arena *a, struct table_names *names);
/* NULL when something is wrong; then findings hold at least one error for this space. */
struct purge_plan *purge_plan_make(const struct purge_space *s, const struct facts *f, instant now,
                                   struct findings *findings);
void purge_plan_free(struct purge_plan *p);
void purge_plan_free_p(struct purge_plan **p);
/* What findings call the space. */
const char *purge_finding_name(struct arena *a, const struct purge_space *s);
/* Whether instances can stand in such a column at all; if not, why. */
const char *purge_column_unfit(const struct column *c);
/* Whether this one becomes the column's type and comes back the same; else why not, appended. */
bool purge_fits(const struct column *c, const struct value *instance, struct text *why);
/* Cases whose instance fits one of the columns not become PURGE_MISFIT. */
void purge_judge_fit(const struct purge_plan *p, struct purge_cases *cases, struct arena *a);

/* --- what a store does -----------------------------------------------------------------------------------
 */

/* Rows that wait for the same: the delay of a reason, a time of their own, a retry. */
enum purge_wait { PURGE_BY_REASON, PURGE_BY_TIME, PURGE_BY_RETRY };
struct purge_group {
    enum purge_wait wait;
    const char *reason; /* PURGE_BY_REASON; NULL: rows without one */
    instant first;      /* the earliest scheduled_at, purge_at or retry_at among them */
    struct value exact; /* the reason as it is stored */
    bool odd;           /* it is no text, holds a zero byte, or is too long to be read: then … */
    int64_t row;        /* … this row has it; else 0 */
};
struct purge_groups {
    struct arena *arena;
    struct purge_group *list;
    size_t n;
    char *next; /* there are more reasons, from behind this one on; NULL: these are all */
};
void purge_groups_release(struct purge_groups *g);

struct store;
struct purge_ops {
    /* Does the engine accept what this entry keeps? Nothing is run, and no table of lapse's own is needed. */
    int (*accepts)(struct store *s, const struct purge_plan *p, const struct erasing *x, struct err *e);
    /* The groups that there are, of reasons behind `after` (NULL: of all): a look into the index per group,
     * however many rows they have. */
    int (*groups)(struct store *s, const char *space, const char *after, struct purge_groups *ret,
                  struct err *e);
    /* The names of all spaces that rows are in, known or not; a hundred at most. free_rows: names in `space`.
     */
    int (*spaces)(struct store *s, struct purge_rows *ret, struct err *e);
    /* Rows of a space that there are, counting at most `most`. */
    int (*pending)(struct store *s, const char *space, int64_t most, int64_t *ret, struct err *e);
    /* A row of the space that will not be due, or is tried again only after `far`; 0: there is none. Rows without a time
     * of their own are not looked at. */
    int (*stuck)(struct store *s, const char *space, instant far, int64_t *ret_id, struct err *e);
    /* All rows of an instance, in order; of a space (NULL: of all) at most so many. */
    int (*of_instance)(struct store *s, const char *space, const char *instance, struct purge_rows *ret,
                       struct err *e);
    int (*list)(struct store *s, const char *space, int64_t most, struct purge_rows *ret, struct err *e);

    /* One more row: purge_at is so long after now, or not said (< 0). */
    int (*schedule)(struct store *s, const char *space, const char *instance, const char *reason,
                    int64_t delay_us, struct err *e);
    int (*cancel)(struct store *s, const char *space, const char *instance, int64_t *ret_rows, struct err *e);

    /* A transaction, ended with commit or rollback of store_ops. */
    int (*begin)(struct store *s, const struct purge_space *space, struct err *e);
    /* In it: up to `most` rows of a group up to a time, locked; those that others hold are passed over. */
    int (*pick)(struct store *s, const char *space, const struct purge_group *g, instant until, int64_t most,
                struct purge_rows *ret, struct err *e);
    /* To these, which are locked, every other row of the same instances, locked where others do not hold it;
     * or else a part of them, and crowded says so: memory does not grow with the rows that there are. */
    int (*others)(struct store *s, const char *space, struct purge_rows *rows, struct err *e);
    /* Erases the data of those to be executed (counting per erasing in gone, and per case unless they are
     * many), removes rows, parks those that do not fit. */
    int (*carry_out)(struct store *s, const struct purge_plan *p, struct purge_cases *cases, int64_t *gone,
                     struct err *e);
    /* An attempt failed: in a transaction of its own, unless the row has changed meanwhile. retry_us < 0:
     * parked. */
    int (*failed)(struct store *s, const struct purge_row *r, int64_t attempts, int64_t retry_us,
                  const char *why, struct err *e);
};

#endif
