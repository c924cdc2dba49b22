/* lapse check: the contract against the live schema. */
#include "prog.h"

int cmd_check(const struct call *call)
{
    return report_on(call, lapse_check,
                     (struct lapse_options){.strict = given(call, OPTION_STRICT),
                                            .sql = given(call, OPTION_SQL),
                                            .verbose = given(call, OPTION_VERBOSE)});
}
