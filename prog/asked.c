/* asked: Ctrl-C and SIGTERM, for every command but the daemon, which has a way of its own. */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "prog.h"

/* Written by the signal handler, read by whichever thread of the library asks: the only state of the program
 * outside its stack. */
static atomic_bool asked;
static bool on_terminal;
static struct stop_count stops; /* the handler's own: it does not interrupt itself */

/* At once, whatever the rest of the program waits for. */
static void answer(void)
{
    static const char clear[] = "\r\033[K", words[] = "stopping …\n";
    ssize_t ignored = on_terminal ? write(STDERR_FILENO, clear, sizeof(clear) - 1) : 0;
    ignored = write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)ignored;
}

/* The second ends the process at once. */
static void on_stop(int number)
{
    int request = stop_requests(&stops);
    atomic_store(&asked, true);
    if (request == 1)
        answer();
    if (request < 2)
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

void asked_begin(void)
{
    on_terminal = terminal_of(stderr).is;
    catch_signal(SIGINT);
    catch_signal(SIGTERM);
}

int asked_to_stop(void *context)
{
    (void)context;
    return atomic_load(&asked);
}
