/* report: what check, plan and sweep have in common: load, work, show. */
#include "prog.h"

int report_show(const struct call *call, struct lapse_report *report)
{
    if (given(call, OPTION_JSON))
        lapse_report_json(report, stdout);
    else
        lapse_report_text(report, stdout, stderr, terminal_of(stdout).colour, terminal_width(stdout));
    int code = (int)lapse_report_exit(report);
    lapse_report_free(report);
    return code;
}

int report_on(const struct call *call, work_fn *work, struct lapse_options options)
{
    options.policies = call->n_names ? call->names : NULL;
    options.n_policies = call->n_names;
    options.now = call->now;
    options.stop = asked_to_stop;

    struct lapse_report *report = NULL;
    struct lapse_contract *contract = lapse_contract_load(call->file, &report);
    if (contract)
        report = work(contract, &options);
    else
        lapse_report_name(report, call->command->name);
    if (options.progress)
        progress_clear(options.context);
    int code = report_show(call, report);
    lapse_contract_free(contract);
    return code;
}
