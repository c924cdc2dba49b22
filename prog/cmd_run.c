/* lapse run: the daemon, from the side of the process: signals, the service manager, where its log goes. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "prog.h"

#define STATUS_US INT64_C(10000000) /* how often a service manager without a watchdog hears the status */

/* --- signals: what their handlers need is the only state of the program outside its stack ----------------
 */

static struct lapse_daemon *volatile running;
static struct stop_count stops; /* the handlers' own: none interrupts another */

/* The first: after the current batches. The second: at once. The third finds the default action. */
static void on_stop(int number)
{
    int request = stop_requests(&stops);
    (void)number;
    if (request > 1) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
    if (request)
        lapse_daemon_ask(running, request > 1 ? LAPSE_STOP_NOW : LAPSE_STOP);
}

static void on_reload(int number)
{
    (void)number;
    lapse_daemon_ask(running, LAPSE_RELOAD);
}

static void catch_signal(int number, void (*handler)(int), bool even_if_ignored)
{
    struct sigaction old, new = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&new.sa_mask);
    sigaddset(&new.sa_mask, SIGINT);
    sigaddset(&new.sa_mask, SIGTERM);
    if (sigaction(number, NULL, &old) == 0 && (even_if_ignored || old.sa_handler != SIG_IGN))
        sigaction(number, &new, NULL);
}

/* One that was ignored when the program began (a background job) stays so; but a hangup is a request here,
 * also under nohup. */
static void catch_signals(struct lapse_daemon *d)
{
    running = d;
    catch_signal(SIGINT, on_stop, false);
    catch_signal(SIGTERM, on_stop, false);
    catch_signal(SIGHUP, on_reload, true);
}

static void release_signals(void)
{
    signal(SIGINT, SIG_IGN); /* it ends already */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

/* --- the service manager ---------------------------------------------------------------------------------
 */

static int64_t monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void on_news(void *context, enum lapse_news news, const char *status)
{
    struct http **http = context;
    static const char *const words[] = {[LAPSE_READY] = "READY=1",
                                        [LAPSE_RELOADING] = "RELOADING=1",
                                        [LAPSE_STOPPING] = "STOPPING=1",
                                        [LAPSE_ALIVE] = "WATCHDOG=1"};
    if (news == LAPSE_RELOADING)
        sd_notifyf(0, "%s\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=reading the contract again", words[news],
                   monotonic_us());
    else
        sd_notifyf(0, "%s\nSTATUS=%s", words[news], news == LAPSE_STOPPING ? "stopping" : status);
    if (news == LAPSE_READY)
        http_follow(*http);
}

static int64_t alive_us(void)
{
    uint64_t us = 0;
    if (sd_watchdog_enabled(0, &us) > 0)
        return (int64_t)(us / 2);
    return getenv("NOTIFY_SOCKET") ? STATUS_US : 0;
}

/* --- the log ---------------------------------------------------------------------------------------------
 */

static void on_log(void *context, enum lapse_level level, const char *line)
{
    (void)context;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

/* The place of a word among those allowed, or -1 after saying which they are. */
static int choice(const char *option, const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    fprintf(stderr, "lapse: --%s is '%s'; it may be", option, word);
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%s %s", i == 0 ? "" : i + 1 < n ? "," : " or", words[i]);
    fputc('\n', stderr);
    return -1;
}

static int log_options(const struct call *call, struct lapse_daemon_options *o)
{
    static const char *const formats[] = {"text", "json"}, *const levels[] = {"debug", "info", "warn",
                                                                              "error"};
    struct terminal terminal = terminal_of(stderr);
    int format = isatty(STDERR_FILENO) ? 0 : 1, level = LAPSE_INFO;
    if (call->log_format)
        format = choice("log-format", call->log_format, formats, 2);
    if (call->log_level)
        level = choice("log-level", call->log_level, levels, 4);
    if (format < 0 || level < 0)
        return -1;
    o->json = format;
    o->level = (enum lapse_level)level;
    o->colour = terminal.colour;
    return 0;
}

/* --- the command -----------------------------------------------------------------------------------------
 */

/* HTTP is there before the first tick and until the last thread has ended. */
static int run(struct lapse_daemon *d, struct http **http)
{
    enum lapse_exit code = LAPSE_DONE;
    catch_signals(d);
    *http = http_start(d, &code);
    if (*http)
        code = lapse_daemon_run(d);
    release_signals();
    if (code == LAPSE_STOPPED) /* threads were left behind: nothing may be cleaned up under them */
        _exit((int)code);
    http_stop(*http);
    return (int)code;
}

int cmd_run(const struct call *call)
{
    struct lapse_report *report = NULL;
    struct http *http = NULL;
    struct lapse_daemon_options o = {.observe = given(call, OPTION_OBSERVE),
                                     .install = given(call, OPTION_INSTALL),
                                     .watch = given(call, OPTION_WATCH),
                                     .log = on_log,
                                     .news = on_news,
                                     .alive_us = alive_us(),
                                     .context = &http};
    if (log_options(call, &o) < 0)
        return LAPSE_BAD_INPUT;
    if (o.observe && o.install) {
        fputs("lapse: --observe writes nothing, so it does not go with --install\n", stderr);
        return LAPSE_BAD_INPUT;
    }
    struct lapse_daemon *d = lapse_daemon_new(call->file, &o, &report);
    if (!d)
        return report_show(call, report);
    int code = run(d, &http);
    lapse_daemon_free(d);
    return code;
}
