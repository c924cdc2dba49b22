/* lapse install, ack, pause, resume: what lapse keeps for itself in the database. */
#include "prog.h"

int cmd_install(const struct call *call)
{
    return report_on(call, lapse_install,
                     (struct lapse_options){.print = given(call, OPTION_PRINT), .grants = call->grants});
}

int cmd_ack(const struct call *call)
{
    return report_on(call, lapse_ack, (struct lapse_options){0});
}

int cmd_pause(const struct call *call)
{
    return report_on(call, lapse_pause, (struct lapse_options){.pause_for = call->pause_for});
}

int cmd_resume(const struct call *call)
{
    return report_on(call, lapse_resume, (struct lapse_options){0});
}
