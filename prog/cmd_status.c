/* lapse status, history: what the database knows of schedulers and past runs. */
#include <errno.h>
#include <stdlib.h>

#include "prog.h"

int cmd_status(const struct call *call)
{
    return report_on(call, lapse_status, (struct lapse_options){0});
}

int cmd_history(const struct call *call)
{
    struct lapse_options options = {0};
    if (call->last) {
        char *end;
        errno = 0;
        options.last = strtoll(call->last, &end, 10);
        if (errno || *end || options.last < 1) {
            fprintf(stderr, "lapse: --last: '%s' is no number of runs; write one like 50\n", call->last);
            return LAPSE_BAD_INPUT;
        }
    }
    return report_on(call, lapse_history, options);
}
