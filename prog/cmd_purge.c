/* lapse purge: per-instance purges by hand: schedule, cancel, status, list, due. */
#include <string.h>

#include "prog.h"

static const struct action {
    const char *name, *arguments;
    size_t least, most; /* words after it */
    work_fn *work;
} actions[] = {
    {"schedule", "SPACE INSTANCE REASON", 3, 3, lapse_purges_schedule},
    {"cancel", "SPACE INSTANCE", 2, 2, lapse_purges_cancel},
    {"status", "SPACE INSTANCE", 2, 2, lapse_purges_status},
    {"list", "[SPACE]", 0, 1, lapse_purges_list},
    {"due", "", 0, 0, lapse_purges_due},
};
enum { ACTIONS = sizeof(actions) / sizeof(actions[0]) };

/* The database is not there: said once each time. */
static void say_wait(void *waited, const struct lapse_progress *now)
{
    int64_t *before = waited;
    if (!*before || now->waiting_us < *before)
        fprintf(stderr, "%s  waits: the database is not there: %s\n", now->policy, now->pace_text);
    *before = now->waiting_us;
}

static int unknown(const char *word)
{
    const char *names[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++)
        names[i] = actions[i].name;
    const char *near = word ? lapse_nearest(word, names, ACTIONS) : NULL;
    fprintf(stderr, word ? "lapse: purge does not know '%s'" : "lapse: purge needs a word after it", word);
    if (near)
        fprintf(stderr, " (did you mean '%s'?)", near);
    fputs("; it has:\n", stderr);
    for (size_t i = 0; i < ACTIONS; i++)
        fprintf(stderr, "  lapse purge %s%s%s\n", actions[i].name, *actions[i].arguments ? " " : "",
                actions[i].arguments);
    return LAPSE_BAD_INPUT;
}

int cmd_purge(const struct call *call)
{
    const struct action *action = NULL;
    for (size_t i = 0; i < ACTIONS && call->n_names; i++)
        if (strcmp(actions[i].name, call->names[0]) == 0)
            action = &actions[i];
    if (!action)
        return unknown(call->n_names ? call->names[0] : NULL);
    size_t n = call->n_names - 1;
    if (n < action->least || n > action->most) {
        fprintf(stderr, "lapse: write: lapse purge %s%s%s\n", action->name, *action->arguments ? " " : "",
                action->arguments);
        return LAPSE_BAD_INPUT;
    }
    struct call without = *call; /* report_on would take the words for policies */
    without.n_names = 0;
    int64_t waited = 0;
    return report_on(
        &without, action->work,
        (struct lapse_options){.key = call->names + 1, .n_key = n, .progress = say_wait, .context = &waited});
}
