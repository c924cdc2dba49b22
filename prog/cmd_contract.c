/* lapse contract: the operators' page, printed, written to a file, or held against the one that is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prog.h"

static int refuse(const char *why)
{
    fprintf(stderr, "lapse: %s; see 'lapse help contract'\n", why);
    return LAPSE_BAD_INPUT;
}

static int cannot_write(const char *path, const char *why)
{
    fprintf(stderr, "lapse: cannot write %s: %s\n", path, why);
    return LAPSE_FAILED;
}

/* Opened for writing, and empty; NULL: *ret_why. Whoever may write in the folder could have put a link there,
 * and have another file overwritten: none is followed. Nor is a pipe waited for. */
static FILE *open_empty(const char *path, const char **ret_why)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    *ret_why = errno == ELOOP   ? "it is a link, and links are not followed"
               : errno == ENXIO ? "it is no file"
                                : strerror(errno);
    if (fd < 0)
        return NULL;
    FILE *out = NULL;
    *ret_why = "it is no file";
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        out = ftruncate(fd, 0) == 0 ? fdopen(fd, "w") : NULL;
        *ret_why = strerror(errno);
    }
    if (!out)
        close(fd);
    return out;
}

/* The page is whole before the file is opened: a contract with mistakes leaves the old one as it is. */
static int write_page(const char *path, const char *page)
{
    const char *why;
    if (!path) {
        fputs(page, stdout); /* what standard output made of it is seen at the end */
        return LAPSE_DONE;
    }
    FILE *out = open_empty(path, &why);
    if (!out)
        return cannot_write(path, why);
    bool failed = fputs(page, out) == EOF;
    failed = fclose(out) != 0 || failed;
    return failed ? cannot_write(path, strerror(errno)) : LAPSE_DONE;
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
