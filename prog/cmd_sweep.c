/* lapse sweep: one pass, with progress, that ends after the current batch when asked. */
#include "prog.h"

int cmd_sweep(const struct call *call)
{
    struct progress *progress = progress_new(call);
    int code = report_on(call, lapse_sweep,
                         (struct lapse_options){.count_first = progress_live(progress),
                                                .progress = progress ? progress_show : NULL,
                                                .context = progress});
    progress_free(progress);
    return code;
}
