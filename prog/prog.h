/* prog: what the files of the program share: the command line as read, the terminal, the progress line. */
#ifndef PROG_H
#define PROG_H

#include <stdbool.h>

#include "lapse.h"

/* Options a command may take; a bit each. */
enum option_bit {
    OPTION_FILE = 1 << 0,
    OPTION_JSON = 1 << 1,
    OPTION_NOW = 1 << 2,
    OPTION_STRICT = 1 << 3,
    OPTION_SQL = 1 << 4,
    OPTION_NO_PROGRESS = 1 << 5,
    OPTION_HELP = 1 << 6,
    OPTION_VERSION = 1 << 7,
    OPTION_OBSERVE = 1 << 8,
    OPTION_INSTALL = 1 << 9,
    OPTION_WATCH = 1 << 10,
    OPTION_LOG_FORMAT = 1 << 11,
    OPTION_LOG_LEVEL = 1 << 12,
    OPTION_LAST = 1 << 13,
    OPTION_VERBOSE = 1 << 14,
    OPTION_PRINT = 1 << 16,
    OPTION_GRANTS = 1 << 17,
    OPTION_FOR = 1 << 18,
    OPTION_HTML = 1 << 20,
    OPTION_CHECK = 1 << 21,
    OPTION_OUTPUT = 1 << 22,
    OPTION_REASON = 1 << 23,
};
struct option {
    enum option_bit bit;
    char letter;          /* 0: none */
    const char *name;     /* without the dashes */
    const char *argument; /* NULL: takes none */
    const char *help;
};

struct call;
struct command {
    const char *name;
    const char *arguments; /* "[POLICY...]", or "" when it takes none */
    const char *help;      /* one line */
    unsigned options;      /* of enum option_bit, beside --help */
    int (*run)(const struct call *call);
    const char *example; /* lines that could be typed */
};

/* A command line, read. */
struct call {
    const struct command *command;
    unsigned given; /* the options that were there */
    const char *file, *now;
    const char *grants, *how_long, *reason; /* NULL: not given; how_long: --for, whatever it means */
    const char *page, *output;              /* contract, init */
    const char *log_format, *log_level;
    const char *last;   /* history; NULL: not given */
    const char **names; /* the words after the command */
    size_t n_names;
};

/* args.c: 0, or -1 after saying on stderr what is wrong. names has room for every word of argv. */
struct grammar {
    const struct command *commands;
    size_t n_commands;
    const struct option *options;
    size_t n_options;
};
int args_read(const struct grammar *g, int argc, char **argv, struct call *call);
const struct command *args_command(const struct grammar *g, const char *name); /* NULL after saying so */
bool given(const struct call *call, enum option_bit bit);

/* cmd_keys.c: explains a key of the contract, in each section that has it. False: no section has. */
bool show_key(const char *name);
const char *nearest_key(const char *name); /* the one that was probably meant, or NULL */

/* terminal.c: what a stream can show. */
struct terminal {
    bool is;     /* a terminal that can redraw a line */
    bool colour; /* escape codes for colour are welcome */
    bool utf8;
};
struct terminal terminal_of(FILE *stream);
int terminal_width(FILE *stream); /* columns now; 0: not a terminal */

/* signals.c: for a signal handler: the how-manieth request to stop this is; 0: an echo of the last one. */
struct stop_count {
    int n;
    int64_t last_ms;
};
int stop_requests(struct stop_count *s);

/* asked.c: from now on Ctrl-C and SIGTERM are requests to stop, answered at once; whether one was made. */
void asked_begin(void);
int asked_to_stop(void *context);

/* progress.c: lines on stderr while a sweep runs, or a plan is counted. */
struct progress;
struct progress *progress_new(const struct call *call); /* NULL: none is wanted */
bool progress_live(const struct progress *p);           /* a bar is drawn: it needs to know the end */
void progress_show(void *progress, const struct lapse_progress *now);
void progress_clear(struct progress *p); /* takes an unfinished line away */
void progress_free(struct progress *p);

/* report.c: loads the contract, does the work, shows the report; the process's exit code. */
typedef struct lapse_report *work_fn(const struct lapse_contract *contract,
                                     const struct lapse_options *options);
int report_show(const struct call *call, struct lapse_report *report); /* and frees it */
int report_on(const struct call *call, work_fn *work, struct lapse_options options);

int cmd_check(const struct call *call);
int cmd_plan(const struct call *call);
int cmd_explain(const struct call *call);
int cmd_sweep(const struct call *call);
int cmd_install(const struct call *call);
int cmd_ack(const struct call *call);
int cmd_pause(const struct call *call);
int cmd_resume(const struct call *call);
int cmd_purge(const struct call *call);
int cmd_init(const struct call *call);
int cmd_contract(const struct call *call);
int cmd_run(const struct call *call);
int cmd_status(const struct call *call);
int cmd_history(const struct call *call);
int cmd_keys(const struct call *call);

#endif
