/* lapse init: drafts a contract from the tables of a database. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"

static int cannot_write(const char *path, int error)
{
    if (error == EEXIST)
        fprintf(stderr,
                "lapse: %s is there already and is not overwritten; name another file, or move it away\n",
                path);
    else
        fprintf(stderr, "lapse: cannot write %s: %s\n", path, strerror(error));
    return error == EEXIST ? LAPSE_BAD_INPUT : LAPSE_FAILED;
}

/* Only a file that was not there before; one that could not be written whole is taken away again. */
static int write_file(const char *path, const struct lapse_report *report)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out)
        return cannot_write(path, errno);
    lapse_report_text(report, out, stderr, 0, 0);
    bool failed = ferror(out) != 0;
    errno = 0;
    failed = fclose(out) != 0 || failed;
    if (!failed)
        return LAPSE_DONE;
    int error = errno ? errno : EIO;
    unlink(path);
    return cannot_write(path, error);
}

/* The address may hold a password, and everybody on the machine can read the arguments of a process: it is
 * copied, and behind its scheme overwritten where it came from. */
static char *take_address(const char *argument)
{
    char *copy = strdup(argument), *rest = strstr(argument, "://");
    if (!copy)
        abort();
    if (rest)
        memset(rest + strlen("://"), '*', strlen(rest + strlen("://")));
    return copy;
}

int cmd_init(const struct call *call)
{
    if (call->n_names != 1) {
        fputs("lapse: init needs one database: lapse init DSN, which is sqlite:PATH, postgresql://… or "
              "mariadb://…\n",
              stderr);
        return LAPSE_BAD_INPUT;
    }
    if (call->output && access(call->output, F_OK) == 0)
        return cannot_write(call->output, EEXIST);
    char *address = take_address(call->names[0]);
    struct lapse_report *report = lapse_draft_with(address, &(struct lapse_options){.stop = asked_to_stop});
    int code = (int)lapse_report_exit(report);
    if (call->output && code == LAPSE_DONE)
        code = write_file(call->output, report);
    if (given(call, OPTION_JSON))
        lapse_report_json(report, stdout);
    else if (!call->output || lapse_report_exit(report) != LAPSE_DONE)
        lapse_report_text(report, stdout, stderr, 0, 0);
    lapse_report_free(report);
    free(address);
    return code;
}
