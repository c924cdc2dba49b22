/* lapse plan: what a sweep would delete now. */
#include "prog.h"

int cmd_plan(const struct call *call)
{
    return report_on(call, lapse_plan, (struct lapse_options){.sql = given(call, OPTION_SQL)});
}
