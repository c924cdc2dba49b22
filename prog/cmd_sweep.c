/* lapse sweep: one pass, with progress, that ends after the current batch when asked. */
#include <signal.h>
#include <stdatomic.h>

#include "prog.h"

/* Written by the signal handler, read by whichever connection of a sweep asks: the only state of the program
 * outside its stack. */
static atomic_bool asked_to_stop;
static struct stop_count stops; /* the handler's own: it does not interrupt itself */

/* The second ends the process at once. */
static void on_stop(int number)
{
    atomic_store(&asked_to_stop, true);
    if (stop_requests(&stops) < 2)
        return;
    signal(number, SIG_DFL);
    raise(number);
}

/* A signal that was ignored when the program began (nohup, a background job) stays ignored. */
static void catch_signal(int number)
{
    struct sigaction old, stop = {.sa_handler = on_stop};
    sigemptyset(&stop.sa_mask);
    sigaddset(&stop.sa_mask, SIGINT);
    sigaddset(&stop.sa_mask, SIGTERM);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &stop, NULL);
}

static int stop(void *context)
{
    bool asked = atomic_load(&asked_to_stop);
    if (asked)
        progress_stopping(context);
    return asked;
}

int cmd_sweep(const struct call *call)
{
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
    struct progress *progress = progress_new(call);
    int code = report_on(call, lapse_sweep,
                         (struct lapse_options){.count_first = progress_live(progress),
                                                .stop = stop,
                                                .progress = progress ? progress_show : NULL,
                                                .context = progress});
    progress_free(progress);
    return code;
}
