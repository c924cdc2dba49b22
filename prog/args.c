/* args: the words of the command line -> a call. Options may stand before and after the command. */
#include <stdlib.h>
#include <string.h>

#include "prog.h"

bool given(const struct call *call, enum option_bit bit)
{
    return (call->given & (unsigned)bit) != 0;
}

static void did_you_mean(const char *word, const char *prefix, const char *const *candidates, size_t n)
{
    const char *near = lapse_nearest(word, candidates, n);
    if (near)
        fprintf(stderr, " (did you mean '%s%s'?)", prefix, near);
    fputs("; 'lapse --help' lists them\n", stderr);
}

/* What other programs call it. NULL: nothing that is known. */
static const char *other_name(const char *word)
{
    static const char *const names[][2] = {
        {"validate", "check"}, {"verify-config", "check"}, {"lint", "check"},   {"test", "check"},
        {"dry-run", "plan"},   {"dryrun", "plan"},         {"preview", "plan"}, {"apply", "sweep"},
        {"delete", "sweep"},   {"clean", "sweep"},         {"daemon", "run"},   {"serve", "run"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i][0], word) == 0)
            return names[i][1];
    return NULL;
}

static void unknown_command(const struct grammar *g, const char *word)
{
    const char *ours = other_name(word);
    if (ours) {
        fprintf(stderr, "lapse: unknown command '%s' (that is 'lapse %s' here)\n", word, ours);
        return;
    }
    const char *names[g->n_commands + 1];
    for (size_t i = 0; i < g->n_commands; i++)
        names[i] = g->commands[i].name;
    names[g->n_commands] = "help";
    fprintf(stderr, "lapse: unknown command '%s'", word);
    did_you_mean(word, "", names, g->n_commands + 1);
}

const struct command *args_command(const struct grammar *g, const char *name)
{
    for (size_t i = 0; i < g->n_commands; i++)
        if (strcmp(g->commands[i].name, name) == 0)
            return &g->commands[i];
    unknown_command(g, name);
    return NULL;
}

static int unknown_option(const struct grammar *g, const char *word)
{
    const char *names[g->n_options];
    for (size_t i = 0; i < g->n_options; i++)
        names[i] = g->options[i].name;
    fprintf(stderr, "lapse: unknown option '%s'", word);
    const char *name = word + strspn(word, "-");
    char bare[64]; /* without =VALUE */
    snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(name, "="), name);
    did_you_mean(bare, "--", names, g->n_options);
    return -1;
}

/* Finds the option that a word names; *ret_value is what the word itself gives it (--file=X, -fX), or NULL.
 */
static const struct option *find_option(const struct grammar *g, const char *word, const char **ret_value)
{
    bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    size_t len = is_long ? strcspn(name, "=") : 1;
    for (size_t i = 0; i < g->n_options; i++) {
        const struct option *o = &g->options[i];
        if (is_long ? strlen(o->name) == len && strncmp(o->name, name, len) == 0 : o->letter == *name) {
            *ret_value = !name[len] ? NULL : name + len + (is_long ? 1 : 0);
            return o;
        }
    }
    return NULL;
}

static void keep_value(struct call *call, enum option_bit bit, const char *value)
{
    if (bit == OPTION_FILE)
        call->file = value;
    else if (bit == OPTION_NOW)
        call->now = value;
    else if (bit == OPTION_GRANTS)
        call->grants = value;
    else if (bit == OPTION_FOR)
        call->how_long = value;
    else if (bit == OPTION_REASON)
        call->reason = value;
    else if (bit == OPTION_LAST)
        call->last = value;
    else if (bit == OPTION_CHECK)
        call->page = value;
    else if (bit == OPTION_OUTPUT)
        call->output = value;
    else if (bit == OPTION_LOG_FORMAT)
        call->log_format = value;
    else if (bit == OPTION_LOG_LEVEL)
        call->log_level = value;
}

/* Reads the option at *at, with its value if it takes one, and leaves *at on the last word it used. */
static int read_option(const struct grammar *g, int argc, char **argv, int *at, struct call *call)
{
    const char *word = argv[*at], *value = NULL;
    const struct option *o = find_option(g, word, &value);
    if (!o || (!o->argument && value && word[1] != '-'))
        return unknown_option(g, word);
    if (!o->argument && value) {
        fprintf(stderr, "lapse: --%s takes no value\n", o->name);
        return -1;
    }
    if (o->argument && !value && *at + 1 < argc)
        value = argv[++*at];
    if (o->argument && (!value || !*value)) {
        fprintf(stderr, "lapse: --%s needs a value: --%s %s\n", o->name, o->name, o->argument);
        return -1;
    }
    call->given |= (unsigned)o->bit;
    keep_value(call, o->bit, value);
    return 0;
}

/* Whether the command takes what was given to it. */
static int fits(const struct grammar *g, const struct call *call)
{
    const struct command *c = call->command;
    unsigned taken = c->options | OPTION_HELP | OPTION_VERSION;
    for (size_t i = 0; i < g->n_options; i++)
        if (call->given & (unsigned)g->options[i].bit & ~taken) {
            fprintf(stderr, "lapse: '%s' does not take --%s; see 'lapse help %s'\n", c->name,
                    g->options[i].name, c->name);
            return -1;
        }
    if (call->n_names && !*c->arguments) {
        fprintf(stderr, "lapse: '%s' takes no arguments, but '%s' was given\n", c->name, call->names[0]);
        return -1;
    }
    return 0;
}

int args_read(const struct grammar *g, int argc, char **argv, struct call *call)
{
    const char *command = NULL;
    bool only_words = false; /* after -- */
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!only_words && strcmp(word, "--") == 0)
            only_words = true;
        else if (!only_words && word[0] == '-' && word[1]) {
            if (read_option(g, argc, argv, &i, call) < 0)
                return -1;
        } else if (!command)
            command = word;
        else
            call->names[call->n_names++] = word;
    }
    if (!command)
        return 0;
    if (strcmp(command, "help") == 0) {
        call->given |= OPTION_HELP;
        return 0;
    }
    call->command = args_command(g, command);
    return call->command ? fits(g, call) : -1;
}
