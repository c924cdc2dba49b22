/* lapse explain: why one row is, is not, or will be due. */
#include "prog.h"

int cmd_explain(const struct call *call)
{
    if (call->n_names < 2) {
        fprintf(stderr,
                "lapse: 'explain' needs a policy and the key of a row: lapse explain POLICY KEY...\n");
        return LAPSE_BAD_INPUT;
    }
    struct call policy = *call; /* the first word; the others are the key */
    policy.n_names = 1;
    return report_on(&policy, lapse_explain,
                     (struct lapse_options){.key = call->names + 1, .n_key = call->n_names - 1});
}
