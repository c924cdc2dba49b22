/* lapse contract: the operators' page, printed, written to a file, or held against the one that is there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prog.h"

static int refuse(const char *why)
{
    fprintf(stderr, "lapse: %s; see 'lapse help contract'\n", why);
    return LAPSE_BAD_INPUT;
}

/* The page is whole before the file is opened: a contract with mistakes leaves the old one as it is. */
static int write_page(const char *path, const char *page)
{
    FILE *out = path ? fopen(path, "we") : stdout;
    bool failed = !out || fputs(page, out) == EOF;
    if (out && path)
        failed = fclose(out) != 0 || failed;
    if (!failed || !path) /* what standard output made of it is seen at the end */
        return LAPSE_DONE;
    fprintf(stderr, "lapse: cannot write %s: %s\n", path, strerror(errno));
    return LAPSE_FAILED;
}

static int make_page(const struct call *call)
{
    struct lapse_report *report = NULL;
    struct lapse_contract *contract = lapse_contract_load(call->file, &report);
    if (!contract) {
        lapse_report_name(report, call->command->name);
        return report_show(call, report);
    }
    char *page = lapse_page(contract, given(call, OPTION_JSON)   ? LAPSE_PAGE_JSON
                                      : given(call, OPTION_HTML) ? LAPSE_PAGE_HTML
                                                                 : LAPSE_PAGE_MARKDOWN);
    int code = write_page(call->output, page);
    free(page);
    lapse_contract_free(contract);
    return code;
}

int cmd_contract(const struct call *call)
{
    if (given(call, OPTION_CHECK) && given(call, OPTION_OUTPUT))
        return refuse("--check and --output exclude each other");
    if (given(call, OPTION_CHECK))
        return report_on(call, lapse_page_check,
                         (struct lapse_options){.page = call->page, .html = given(call, OPTION_HTML)});
    if (given(call, OPTION_HTML) && given(call, OPTION_JSON))
        return refuse("--html and --json exclude each other");
    return make_page(call);
}
