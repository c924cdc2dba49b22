/* contract: the key table, and YAML -> contract; every error as file:line:column, all of them at once. */
#ifndef LAPSE_CONTRACT_H
#define LAPSE_CONTRACT_H

#include "contract/key.h"
#include "contract/mistake.h"

struct scheduler {
    const char *name;
    struct span every;    /* SPAN_NEVER when cron is set */
    const char *cron;     /* NULL: by interval; without the CRON prefix */
    const char *timezone; /* "UTC" unless given */
    bool run_on_start;
    struct span jitter; /* 0: none */
    bool exclusive;
    struct span lease;
    int64_t budget_rows, budget_batches; /* -1: none */
    struct span budget_time;             /* SPAN_NEVER: none */
    int window_from, window_to;          /* minutes of the day; -1: always */
    bool enabled;
    struct place at;
};

struct erase {
    struct ref ref;
    struct cond *keep; /* NULL: none; COND_IN with prefixes per column */
};
struct purge_space {
    const char *name, *label;
    struct span delay;
    struct {
        const char *reason;
        struct span span;
    } * retention;
    size_t n_retention;
    const char **only; /* n_only 0 and only NULL: every reason */
    size_t n_only;
    struct erase *erases;
    size_t n_erases;
    int64_t statement_timeout_us, away_us;
    bool notify; /* who schedules may say so at once */
    struct place at;
};

struct unbounded {
    const char *name, *why;
    struct place at;
};

struct contract {
    struct arena *arena;     /* owns everything below */
    const char *file;        /* as given */
    const struct node *root; /* what is written, as yaml.h has it */
    const char *store;       /* the DSN; may hold a password: never print it */
    const char *own_schema;  /* NULL: none */
    const char *own_owner;   /* NULL: nobody beside whom the engine trusts */
    const char *listen;      /* "127.0.0.1:9933"; NULL: serve: off */
    const char *token_file;  /* NULL: none */
    struct scheduler *schedulers;
    size_t n_schedulers;
    struct policy *policies; /* in file order */
    size_t n_policies;
    struct purge_space *purges;
    size_t n_purges;
    struct unbounded *unbounded;
    size_t n_unbounded;
    /* What bounds lapse's own tables: a contract like any other, of the same store, with one scheduler and
     * its policies. Whoever runs everything (a plain sweep, the daemon) runs it too where a history is kept
     * (history_obstacle). NULL: this is such a one. */
    const struct contract *own;
};
#define OWN_SCHEDULER "lapse" /* reserved, as are names of policies that begin with it and a dot */

/* Reads a file. 0: *ret is set. -1 with mistakes->n > 0: the file is wrong, all mistakes listed (at most
 * a hundred, the last then says so). -1 with mistakes->n == 0: the file could not be read, e says why. */
int contract_load(const char *path, struct contract **ret, struct mistakes *mistakes, struct err *e);
/* The same from memory; file is for messages and for store_file. */
int contract_parse(const char *file, const char *yaml, size_t len, struct contract **ret,
                   struct mistakes *mistakes, struct err *e);
void contract_free(struct contract *c);
void contract_free_p(struct contract **c);
const struct policy *contract_policy(const struct contract *c, const char *name); /* NULL: none */
/* The key table, for the reference page: one row per key of the language, in the order of the documentation.
 */
const struct key_doc *contract_keys(size_t *ret_n);

#endif
