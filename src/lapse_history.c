/* lapse_history: what a command that deletes writes into the history. */
#include "lapse_parts.h"

void history_add_policy(struct history *h, const struct report_policy *rp)
{
    const struct history_part part = {.outcome = outcome_name(rp->kind),
                                      .error = rp->error,
                                      .labels = rp->labels,
                                      .gone = rp->gone,
                                      .n = rp->n_tables,
                                      .skipped = (int64_t)rp->n_skipped,
                                      .unknown = rp->unknown,
                                      .batches = rp->batches};
    history_add(h, &part);
}
