/* lapse install, ack, pause, resume: what lapse keeps for itself in the database. */
#include <stdlib.h>

#include "prog.h"

int cmd_install(const struct call *call)
{
    return report_on(
        call, lapse_install,
        (struct lapse_options){
            .print = given(call, OPTION_PRINT), .grants = call->grants, .grants_for = call->how_long});
}

/* Who and why, for the commands that keep it. */
static struct lapse_options by_whom(const struct call *call)
{
    return (struct lapse_options){.reason = call->reason, .actor = getenv("LAPSE_ACTOR")};
}

int cmd_ack(const struct call *call)
{
    return report_on(call, lapse_ack, by_whom(call));
}

int cmd_pause(const struct call *call)
{
    struct lapse_options o = by_whom(call);
    o.pause_for = call->how_long;
    return report_on(call, lapse_pause, o);
}

int cmd_resume(const struct call *call)
{
    return report_on(call, lapse_resume, by_whom(call));
}
