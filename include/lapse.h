/* lapse.h: the public library of lapse, a retention engine for operational tables.
 *
 * Load a contract, then check, plan or sweep with it. Each call returns a report, which owns what it shows
 * and outlives nothing else: free reports before the contract they came from. Nothing here prints by itself,
 * reads the command line or keeps global state; two threads may work at once as long as each has its own
 * contract.
 *
 *     struct lapse_report *report = NULL;
 *     struct lapse_contract *contract = lapse_contract_load("lapse.yaml", &report);
 *     if (contract)
 *         report = lapse_sweep(contract, NULL);
 *     lapse_report_text(report, stdout, stderr, 0, 0);
 *     int code = lapse_report_exit(report);
 *     lapse_report_free(report);
 *     lapse_contract_free(contract);
 */
#ifndef LAPSE_H
#define LAPSE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAPSE_PUBLIC __attribute__((visibility("default")))

/* What a command's process should exit with. */
enum lapse_exit {
    LAPSE_DONE = 0,        /* also when nothing was due */
    LAPSE_FAILED = 1,      /* some policy failed, or rows were skipped */
    LAPSE_BAD_INPUT = 2,   /* bad usage or a bad contract */
    LAPSE_FINDINGS = 3,    /* check found errors */
    LAPSE_FUSE = 4,        /* a fuse tripped */
    LAPSE_UNREACHABLE = 5, /* the database could not be reached */
    LAPSE_STOPPED = 6,     /* stopped early */
};

struct lapse_contract;
struct lapse_report;

LAPSE_PUBLIC const char *lapse_version(void);

/* Reads a contract. NULL when it has mistakes or cannot be read: *ret_report then says which, all of them. On
 * success *ret_report is untouched. */
LAPSE_PUBLIC struct lapse_contract *lapse_contract_load(const char *path, struct lapse_report **ret_report);
LAPSE_PUBLIC void lapse_contract_free(struct lapse_contract *contract);

/* How far a sweep is, after every batch; valid during the call only. */
struct lapse_progress {
    const char *policy;
    size_t number, of;     /* this policy is the number-th (from 1) of so many */
    int64_t rows;          /* rows of the policy's own table gone so far */
    int64_t due;           /* rows that were due at the start, -1 when not counted */
    int64_t rows_all;      /* with the rows that went along */
    int64_t elapsed_us;    /* since the policy began */
    int64_t batch_us;      /* how long the last batch took, to the end of its transaction */
    int finished;          /* this policy is done: the last call for it */
    const char *outcome;   /* when finished: "done", "failed", "refused", "disabled", "stopped",
                              "paused", "fuse", "held_elsewhere", "budget", "window" */
    const char *pace;      /* what holds it back: "", "target", "lag", …; NULL when finished */
    const char *pace_text; /* … in words */
    int counting;          /* it counts what is due: nothing else above is known yet, but the policy */
    int64_t deleting_us;   /* of elapsed_us: without looking, counting and waiting */
    int64_t waiting_us; /* it has waited for that since so long, and deletes nothing meanwhile; 0: it works */
};

/* All fields may be zero. */
struct lapse_options {
    const char *const *policies; /* only these, by name; NULL: all */
    size_t n_policies;
    const char *const *key; /* explain: the row's key, a word per column of it */
    size_t n_key;
    const char *now; /* an ISO time instead of the database's clock; a sweep refuses one that lies ahead */
    int strict;      /* check: tables that nothing names are errors */
    int sql;         /* plan: the statements too; check: only those that make the indexes that are missing */
    int verbose;     /* check: tables that nothing names one by one, and not in one line */
    int count_first; /* sweep: count what is due first, so that progress knows an end */
    /* Asked all the time, from any thread, also from several at once: it must do no more than look. Non-zero:
     * what reads, counts or waits ends within half a second; a batch that has begun is finished. */
    int (*stop)(void *context);
    /* Of a policy with workers it is called from several threads, but never at the same time. */
    void (*progress)(void *context, const struct lapse_progress *progress);
    void *context;
    int print;              /* install: show the statements instead of running them */
    const char *grants;     /* install: show what this role needs instead of installing */
    const char *grants_for; /* … for "sweep", "operate" or "read"; NULL: for "sweep" */
    const char *pause_for;  /* pause: a duration like 2h; NULL: until resumed */
    const char *reason;     /* pause, resume, ack: why, kept for others to read; NULL: not said */
    const char *actor;      /* … who, beside the database's role and the system's user; NULL: nobody else */
    const char *page;       /* page_check: the file that should hold the page */
    int html;               /* page_check: as HTML */
    int64_t last;           /* history: so many runs; 0: 20. policies[0]: of this scheduler */
};

/* The contract against the live schema. Reads only. */
LAPSE_PUBLIC struct lapse_report *lapse_check(const struct lapse_contract *c, const struct lapse_options *o);
/* What a sweep would delete now. Reads only. */
LAPSE_PUBLIC struct lapse_report *lapse_plan(const struct lapse_contract *c, const struct lapse_options *o);
/* Why one row (key) is, is not, or will be due under one policy (policies[0]). Reads only. */
LAPSE_PUBLIC struct lapse_report *lapse_explain(const struct lapse_contract *c,
                                                const struct lapse_options *o);
/* One pass: deletes what is due. */
LAPSE_PUBLIC struct lapse_report *lapse_sweep(const struct lapse_contract *c, const struct lapse_options *o);

/* Creates or upgrades lapse's own tables. */
LAPSE_PUBLIC struct lapse_report *lapse_install(const struct lapse_contract *c,
                                                const struct lapse_options *o);
/* Resets the tripped fuse of the one policy named in o: its next run may pass its limits. */
LAPSE_PUBLIC struct lapse_report *lapse_ack(const struct lapse_contract *c, const struct lapse_options *o);
/* A brake, kept in the database, on the one policy or scheduler named in o->policies; NULL: on everything. */
LAPSE_PUBLIC struct lapse_report *lapse_pause(const struct lapse_contract *c, const struct lapse_options *o);
LAPSE_PUBLIC struct lapse_report *lapse_resume(const struct lapse_contract *c, const struct lapse_options *o);

/* Purges: words in o->key. schedule: SPACE INSTANCE REASON; cancel and status: SPACE INSTANCE; list: [SPACE];
 * due carries out those that are due now. (An engine with a storage of its own: lapse_purge.h.) */
LAPSE_PUBLIC struct lapse_report *lapse_purges_schedule(const struct lapse_contract *c,
                                                        const struct lapse_options *o);
LAPSE_PUBLIC struct lapse_report *lapse_purges_cancel(const struct lapse_contract *c,
                                                      const struct lapse_options *o);
LAPSE_PUBLIC struct lapse_report *lapse_purges_status(const struct lapse_contract *c,
                                                      const struct lapse_options *o);
LAPSE_PUBLIC struct lapse_report *lapse_purges_list(const struct lapse_contract *c,
                                                    const struct lapse_options *o);
LAPSE_PUBLIC struct lapse_report *lapse_purges_due(const struct lapse_contract *c,
                                                   const struct lapse_options *o);

/* The schedulers: who holds a lease, the last and the next run; past runs. Both from the database, whether a
 * daemon runs or not. */
LAPSE_PUBLIC struct lapse_report *lapse_status(const struct lapse_contract *c, const struct lapse_options *o);
LAPSE_PUBLIC struct lapse_report *lapse_history(const struct lapse_contract *c,
                                                const struct lapse_options *o);

/* A contract drafted from the tables of a database: the report's text is the file. Reads only. */
LAPSE_PUBLIC struct lapse_report *lapse_draft(const char *dsn);
/* The same, which stops when o->stop says so. */
LAPSE_PUBLIC struct lapse_report *lapse_draft_with(const char *dsn, const struct lapse_options *o);

/* The operators' page: what bounds each table, what prunes it, what can be relied on. From the contract
 * alone: no database is asked. free() it. */
enum lapse_page_form { LAPSE_PAGE_MARKDOWN, LAPSE_PAGE_HTML, LAPSE_PAGE_JSON };
LAPSE_PUBLIC char *lapse_page(const struct lapse_contract *c, enum lapse_page_form form);
/* Whether the file o->page holds that page; else the report says where they differ, and how to refresh it. */
LAPSE_PUBLIC struct lapse_report *lapse_page_check(const struct lapse_contract *c,
                                                   const struct lapse_options *o);

/* --- the daemon ------------------------------------------------------------------------------------------
 * Ticks every scheduler of a contract until it is asked to stop, each in a thread with a connection of its
 * own. It opens no port and handles no signal: whoever runs it does, with what stands here. */
struct lapse_daemon;

enum lapse_level { LAPSE_DEBUG, LAPSE_INFO, LAPSE_WARN, LAPSE_ERROR };
/* What a service manager wants to hear. */
enum lapse_news { LAPSE_READY, LAPSE_RELOADING, LAPSE_STOPPING, LAPSE_ALIVE };
enum lapse_request { LAPSE_RELOAD, LAPSE_STOP, LAPSE_STOP_NOW };

/* Where a contract wants to be served. The texts are free()d by who asked; listen NULL: nowhere. */
struct lapse_serve {
    unsigned long generation; /* grows by one with every contract taken into force */
    char *listen, *token_file;
};

struct lapse_daemon_options {
    int observe;            /* say what is due, delete nothing: no connection that could write is opened */
    int install;            /* lapse's own tables first, as soon as the database is there */
    int watch;              /* read the contract again when its file changes */
    int json;               /* log lines as JSON objects, else as text */
    int colour;             /* text lines may have escape codes */
    enum lapse_level level; /* the least that is said */
    /* One line, without its end; from any thread, one at a time. */
    void (*log)(void *context, enum lapse_level level, const char *line);
    /* From the thread in lapse_daemon_run: at a change, and LAPSE_ALIVE at least every alive_us (0: never).
     */
    void (*news)(void *context, enum lapse_news news, const char *status);
    int64_t alive_us;
    /* From that thread, before a contract that was read again comes into force: whether it can be served so.
     * -1: it is refused as a whole; *ret_why, which is free()d, says why. NULL: nobody serves it. */
    int (*accept)(void *context, const struct lapse_serve *wanted, char **ret_why);
    void *context;
};

/* Reads the contract; the database is asked later. NULL: *ret_report says what is wrong. */
LAPSE_PUBLIC struct lapse_daemon *lapse_daemon_new(const char *file, const struct lapse_daemon_options *o,
                                                   struct lapse_report **ret_report);
/* Returns when asked to stop: what the process should exit with. */
LAPSE_PUBLIC enum lapse_exit lapse_daemon_run(struct lapse_daemon *d);
/* From a signal handler or any thread. LAPSE_STOP: after the current batches. LAPSE_STOP_NOW: what is running
 * is rolled back. */
LAPSE_PUBLIC void lapse_daemon_ask(struct lapse_daemon *d, enum lapse_request request);
LAPSE_PUBLIC void lapse_daemon_free(struct lapse_daemon *d);

/* What it knows now, from any thread until lapse_daemon_free; free() the texts. */
LAPSE_PUBLIC char *lapse_daemon_metrics(struct lapse_daemon *d);             /* as Prometheus reads them */
LAPSE_PUBLIC int lapse_daemon_alive(struct lapse_daemon *d);                 /* its loop turns */
LAPSE_PUBLIC int lapse_daemon_ready(struct lapse_daemon *d, char **ret_why); /* why not: one reason a line */
LAPSE_PUBLIC char *lapse_daemon_status(struct lapse_daemon *d);   /* JSON: schedulers, as they stand */
LAPSE_PUBLIC char *lapse_daemon_policies(struct lapse_daemon *d); /* JSON: policies and their last outcome */
/* JSON: past runs from the database, the newest first; NULL: *ret_why says why not. scheduler NULL: all. */
LAPSE_PUBLIC char *lapse_daemon_runs(struct lapse_daemon *d, const char *scheduler, int64_t most,
                                     char **ret_why);
/* Where the contract in force wants to be served. */
LAPSE_PUBLIC void lapse_daemon_serve(struct lapse_daemon *d, struct lapse_serve *ret);
/* A line of the daemon's log, for whoever serves it. */
LAPSE_PUBLIC void lapse_daemon_say(struct lapse_daemon *d, enum lapse_level level, const char *event,
                                   const char *message);

/* The command that its JSON names; for reports of lapse_contract_load, which cannot know it. */
LAPSE_PUBLIC void lapse_report_name(struct lapse_report *r, const char *command);
LAPSE_PUBLIC enum lapse_exit lapse_report_exit(const struct lapse_report *r);
/* For people: colour allows escape codes, width is the terminal's (0: not a terminal). Errors go to err. */
LAPSE_PUBLIC void lapse_report_text(const struct lapse_report *r, FILE *out, FILE *err, int colour,
                                    int width);
/* For machines: one JSON object and a newline. */
LAPSE_PUBLIC void lapse_report_json(const struct lapse_report *r, FILE *out);
LAPSE_PUBLIC void lapse_report_free(struct lapse_report *r);

/* The language of the contract, one key after the other; NULL at the end. For documentation. */
struct lapse_key {
    const char *section, *key, *type, *standard, *doc;
    int not_yet;
};
LAPSE_PUBLIC const struct lapse_key *lapse_contract_key(size_t number, struct lapse_key *ret);
/* The candidate nearest to a misspelt word, or NULL. */
LAPSE_PUBLIC const char *lapse_nearest(const char *word, const char *const *candidates, size_t n);

#ifdef __cplusplus
}
#endif

#endif
