/* Serves HTTP for a daemon that does only what it is told, so that the suites can have what a real one shows
 * seldom: a loop that stands still, reasons of any kind, a database that takes its time, answers of any size.
 *
 *     http_alone LISTEN [TOKEN_FILE]      LISTEN `off`: nowhere
 *
 * Log lines go to standard output: LEVEL EVENT MESSAGE. Commands come as lines on standard input, each is
 * answered with `did`; at their end it stops.
 *     serve LISTEN [TOKEN_FILE]   a contract with this is in force
 *     unready TEXT                why it is not ready, `|` between the reasons; nothing: it is
 *     dead 0|1                    its loop stands still
 *     slow MS                     what the database takes
 *     big BYTES                   the length of the metrics */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"

struct lapse_daemon {
    pthread_mutex_t lock;
    unsigned long generation;
    char listen[300], token_file[300], unready[3000];
    int dead;
    long slow_ms, big;
};

static char *copy(const char *s)
{
    char *made = strdup(s);
    if (!made)
        abort();
    return made;
}

char *lapse_daemon_metrics(struct lapse_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    size_t n = (size_t)d->big;
    pthread_mutex_unlock(&d->lock);
    char *made = malloc(n + 20);
    if (!made)
        abort();
    memset(made, '#', n);
    strcpy(made + n, "\nlapse_test 1\n");
    return made;
}

int lapse_daemon_alive(struct lapse_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    int alive = !d->dead;
    pthread_mutex_unlock(&d->lock);
    return alive;
}

int lapse_daemon_ready(struct lapse_daemon *d, char **ret_why)
{
    pthread_mutex_lock(&d->lock);
    int ready = !*d->unready;
    if (!ready)
        *ret_why = copy(d->unready);
    pthread_mutex_unlock(&d->lock);
    return ready;
}

char *lapse_daemon_status(struct lapse_daemon *d)
{
    (void)d;
    return copy("{}\n");
}

char *lapse_daemon_policies(struct lapse_daemon *d)
{
    (void)d;
    return copy("{}\n");
}

char *lapse_daemon_runs(struct lapse_daemon *d, const char *scheduler, int64_t most, char **ret_why)
{
    char line[600];
    pthread_mutex_lock(&d->lock);
    long ms = d->slow_ms;
    pthread_mutex_unlock(&d->lock);
    usleep((useconds_t)(ms * 1000));
    if (scheduler && strcmp(scheduler, "broken") == 0) {
        *ret_why = copy("the \"database\" is\tgone: \xff");
        return NULL;
    }
    snprintf(line, sizeof(line), "{\"scheduler\": \"%s\", \"last\": %ld}\n", scheduler ? scheduler : "",
             (long)most);
    return copy(line);
}

void lapse_daemon_serve(struct lapse_daemon *d, struct lapse_serve *ret)
{
    pthread_mutex_lock(&d->lock);
    ret->generation = d->generation;
    ret->listen = strcmp(d->listen, "off") == 0 ? NULL : copy(d->listen);
    ret->token_file = *d->token_file ? copy(d->token_file) : NULL;
    pthread_mutex_unlock(&d->lock);
}

void lapse_daemon_say(struct lapse_daemon *d, enum lapse_level level, const char *event, const char *message)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    (void)d;
    printf("%s %s %s\n", levels[level], event, message);
    fflush(stdout);
}

static void obey(struct lapse_daemon *d, struct http *h, char *line)
{
    char *value = strchr(line, ' ');
    value = value ? (*value = '\0', value + 1) : line + strlen(line);
    pthread_mutex_lock(&d->lock);
    if (strcmp(line, "serve") == 0) {
        *d->token_file = '\0';
        sscanf(value, "%299s %299s", d->listen, d->token_file);
        d->generation++;
    } else if (strcmp(line, "unready") == 0) {
        snprintf(d->unready, sizeof(d->unready), "%s", value);
        for (char *c = d->unready; *c; c++)
            *c = *c == '|' ? '\n' : *c;
    } else if (strcmp(line, "dead") == 0)
        d->dead = atoi(value);
    else if (strcmp(line, "slow") == 0)
        d->slow_ms = atol(value);
    else if (strcmp(line, "big") == 0)
        d->big = atol(value);
    else
        abort();
    pthread_mutex_unlock(&d->lock);
    if (strcmp(line, "serve") == 0)
        http_follow(h);
    puts("did");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct lapse_daemon d = {.lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1};
    char line[4096];
    if (argc < 2)
        return LAPSE_BAD_INPUT;
    snprintf(d.listen, sizeof(d.listen), "%s", argv[1]);
    snprintf(d.token_file, sizeof(d.token_file), "%s", argc > 2 ? argv[2] : "");
    enum lapse_exit code = LAPSE_DONE;
    struct http *h = http_start(&d, &code);
    while (h && fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        obey(&d, h, line);
    }
    http_stop(h);
    return (int)code;
}
