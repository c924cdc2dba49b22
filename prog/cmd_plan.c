/* lapse plan: what a sweep would delete now; on a terminal with a line that says which policy is counted. */
#include "prog.h"

int cmd_plan(const struct call *call)
{
    struct progress *progress = progress_new(call);
    int code = report_on(call, lapse_plan,
                         (struct lapse_options){.sql = given(call, OPTION_SQL),
                                                .progress = progress_live(progress) ? progress_show : NULL,
                                                .context = progress});
    progress_free(progress);
    return code;
}
