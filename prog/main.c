/* lapse: the program. The command table below is its table of contents; a file per command does the rest. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"

static const struct command commands[] = {
    {"init", "DSN", "Look at a database and draft a contract for it. Writes nothing to it.",
     OPTION_OUTPUT | OPTION_JSON, cmd_init, "lapse init postgresql:///app -o lapse.yaml"},
    {"check", "", "Hold the contract against the live schema and say what does not fit.",
     OPTION_FILE | OPTION_JSON | OPTION_STRICT | OPTION_SQL | OPTION_VERBOSE, cmd_check,
     "lapse check --strict"},
    {"plan", "[POLICY...]", "Show what a sweep would delete now. Writes nothing.",
     OPTION_FILE | OPTION_JSON | OPTION_NOW | OPTION_SQL, cmd_plan, "lapse plan sessions --sql"},
    {"explain", "POLICY KEY...", "Say why a row is, is not, or will be due; KEY has a word per key column.",
     OPTION_FILE | OPTION_JSON | OPTION_NOW, cmd_explain, "lapse explain sessions 4711"},
    {"sweep", "[POLICY...]", "Delete what is due, in small transactions: one pass.",
     OPTION_FILE | OPTION_JSON | OPTION_NOW | OPTION_NO_PROGRESS, cmd_sweep, "lapse sweep sessions --json"},
    {"run", "",
     "Run as a daemon: tick every scheduler until stopped (SIGTERM); SIGHUP reads the contract again.",
     OPTION_FILE | OPTION_OBSERVE | OPTION_INSTALL | OPTION_WATCH | OPTION_LOG_FORMAT | OPTION_LOG_LEVEL,
     cmd_run, "lapse -f /etc/lapse/lapse.yaml run --observe"},
    {"purge", "schedule|cancel|status|list|due ...",
     "Purge one instance's data some time after it ended: by hand, or all that are due now.",
     OPTION_FILE | OPTION_JSON | OPTION_NOW, cmd_purge, "lapse purge schedule workflow wf-1 completed"},
    {"status", "", "Show the schedulers: last and next runs, leases, brakes, fuses, errors.",
     OPTION_FILE | OPTION_JSON, cmd_status, "lapse status --json"},
    {"history", "[SCHEDULER]", "Show past runs, the newest first.", OPTION_FILE | OPTION_JSON | OPTION_LAST,
     cmd_history, "lapse history nightly --last 50"},
    {"pause", "[POLICY|SCHEDULER]",
     "Set a brake, kept in the database, on a policy, a scheduler or everything.",
     OPTION_FILE | OPTION_JSON | OPTION_FOR | OPTION_REASON, cmd_pause,
     "lapse pause nightly --for 2h --reason \"release under way\""},
    {"resume", "[POLICY|SCHEDULER]", "Release a brake. Without a name, only the one on everything.",
     OPTION_FILE | OPTION_JSON | OPTION_REASON, cmd_resume, "lapse resume nightly"},
    {"ack", "POLICY", "Reset a tripped fuse: the policy's next run may pass its limits, once.",
     OPTION_FILE | OPTION_JSON | OPTION_REASON, cmd_ack,
     "lapse ack sessions --reason \"the backlog of the migration\""},
    {"install", "", "Create or upgrade lapse's own tables.",
     OPTION_FILE | OPTION_JSON | OPTION_PRINT | OPTION_GRANTS | OPTION_FOR, cmd_install,
     "lapse install --grants app_sweeper --for sweep"},
    {"contract", "", "Print the operators' page: what bounds each table, what prunes it, what to rely on.",
     OPTION_FILE | OPTION_JSON | OPTION_HTML | OPTION_CHECK | OPTION_OUTPUT, cmd_contract,
     "lapse contract --html -o retention.html"},
    {"keys", "[KEY]", "Print the reference of the contract's language, as Markdown; or explain one key.", 0,
     cmd_keys, "lapse keys keep"},
};

static const struct option options[] = {
    {OPTION_FILE, 'f', "file", "FILE", "The contract (default: lapse.yaml)."},
    {OPTION_JSON, 0, "json", NULL, "Print one JSON object instead of text."},
    {OPTION_NOW, 0, "now", "TIME",
     "Now, as an ISO time, instead of the database's clock; not ahead for sweep."},
    {OPTION_STRICT, 0, "strict", NULL, "Tables that the contract does not name are errors."},
    {OPTION_SQL, 0, "sql", NULL, "Show the statements too; of check only those that make missing indexes."},
    {OPTION_VERBOSE, 'v', "verbose", NULL, "List the tables that the contract does not name, one by one."},
    {OPTION_NO_PROGRESS, 0, "no-progress", NULL, "No progress on standard error."},
    {OPTION_FOR, 0, "for", "DURATION|WHAT",
     "How long the brake is on, like 2h (without it until lapse resume); of install --grants: sweep, operate "
     "or read."},
    {OPTION_REASON, 0, "reason", "TEXT", "Why, kept for others to read; lapse status shows it."},
    {OPTION_LAST, 0, "last", "N", "So many runs (default: 20)."},
    {OPTION_PRINT, 0, "print", NULL, "Show the statements instead of running them."},
    {OPTION_GRANTS, 0, "grants", "ROLE",
     "Show the least that a role needs, instead of installing; --for says what for (default: sweep)."},
    {OPTION_HTML, 0, "html", NULL, "The page as one HTML file instead of Markdown."},
    {OPTION_CHECK, 0, "check", "FILE", "Fail if this page is not what the contract says now."},
    {OPTION_OUTPUT, 'o', "output", "FILE", "Write to this file instead of standard output."},
    {OPTION_OBSERVE, 0, "observe", NULL, "Say what is due and delete nothing."},
    {OPTION_INSTALL, 0, "install", NULL, "Create or upgrade lapse's own tables first."},
    {OPTION_WATCH, 0, "watch", NULL, "Read the contract again when its file changes."},
    {OPTION_LOG_FORMAT, 0, "log-format", "json|text", "How log lines look (default: text on a terminal)."},
    {OPTION_LOG_LEVEL, 0, "log-level", "LEVEL",
     "The least that is logged: debug, info (default), warn, error."},
    {OPTION_HELP, 'h', "help", NULL, "Show help, of a command after its name."},
    {OPTION_VERSION, 'V', "version", NULL, "Show the version."},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static const struct grammar grammar = {commands, COUNT(commands), options, COUNT(options)};

static void show_option(FILE *out, const struct option *o)
{
    char left[40];
    snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
             o->letter ? ", " : "  ", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    fprintf(out, "  %-20s  %s\n", left, o->help);
}

static void show_command_help(const struct command *c)
{
    printf("usage: lapse [OPTIONS] %s%s%s\n\n%s\n\n", c->name, *c->arguments ? " " : "", c->arguments,
           c->help);
    for (size_t i = 0; i < COUNT(options); i++)
        if ((c->options | OPTION_HELP) & options[i].bit)
            show_option(stdout, &options[i]);
    printf("\nexample: %s\n", c->example);
}

static void show_help(FILE *out)
{
    fprintf(out, "lapse %s: a retention engine for operational tables\n\nusage: lapse [-f FILE] COMMAND\n\n",
            lapse_version());
    for (size_t i = 0; i < COUNT(commands); i++)
        fprintf(out, "  %-20s  %s\n", commands[i].name, commands[i].help);
    fprintf(out, "  %-20s  %s\n\n", "help COMMAND|KEY",
            "Say more about one command, or one key of the contract.");
    for (size_t i = 0; i < COUNT(options); i++)
        show_option(out, &options[i]);
    fprintf(out, "\nexit: 0 done, 1 a policy failed, 2 bad usage or contract, 3 check found errors,\n"
                 "      4 a fuse, 5 the database could not be reached, 6 stopped early\n");
}

static bool is_command(const char *name)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return true;
    return false;
}

/* lapse help [COMMAND|KEY] */
static int help(const struct call *call)
{
    if (call->n_names == 0) {
        show_help(stdout);
        return LAPSE_DONE;
    }
    if (!is_command(call->names[0]) && show_key(call->names[0]))
        return LAPSE_DONE;
    const struct command *c = args_command(&grammar, call->names[0]);
    const char *key = c ? NULL : nearest_key(call->names[0]);
    if (key)
        fprintf(stderr, "lapse: there is a key '%s' of the contract: 'lapse help %s'\n", key, key);
    if (!c)
        return LAPSE_BAD_INPUT;
    show_command_help(c);
    return LAPSE_DONE;
}

static int dispatch(int argc, char **argv, struct call *call)
{
    if (args_read(&grammar, argc, argv, call) < 0)
        return LAPSE_BAD_INPUT;
    if (given(call, OPTION_VERSION)) {
        printf("lapse %s\n", lapse_version());
        return LAPSE_DONE;
    }
    if (call->command && given(call, OPTION_HELP)) {
        show_command_help(call->command);
        return LAPSE_DONE;
    }
    if (call->command && call->command->run != cmd_run)
        asked_begin();
    if (call->command)
        return call->command->run(call);
    if (given(call, OPTION_HELP) || call->n_names)
        return help(call);
    fputs("lapse: no command was given\n\n", stderr);
    show_help(stderr);
    return LAPSE_BAD_INPUT;
}

/* A standard stream that is closed would give its number to the database's file or socket, and what is
 * printed would land there. A descriptor that cannot be written to makes the printing fail instead. */
static void keep_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
            abort();
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write */
}

/* What was printed may still fail to arrive: a full disk, a closed pipe. */
static int finish(int code)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    failed = fflush(stdout) != 0 || failed;
    if (!failed)
        return code;
    fprintf(stderr, "lapse: cannot write to standard output%s%s\n", errno ? ": " : "",
            errno ? strerror(errno) : "");
    return code == LAPSE_DONE ? LAPSE_FAILED : code;
}

int main(int argc, char **argv)
{
    keep_standard_streams();
    struct call call = {.file = "lapse.yaml", .names = calloc((size_t)argc + 1, sizeof(char *))};
    if (!call.names)
        abort();
    int code = finish(dispatch(argc, argv, &call));
    free(call.names);
    /* A thread may still wait for a server that does not answer: nothing is taken away from under it. */
    if (asked_to_stop(NULL))
        _exit(code);
    return code;
}
