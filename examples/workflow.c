/* workflow: a toy durable workflow engine whose data purges itself: how a host uses lapse_purge.h.
 *
 * An instance is a list of steps; its state is in a storage of keys and values, its one alarm wakes it after
 * a pause or for a retry. When it ends, its data is purged a minute later (failed ones after an hour), except
 * its output. Time is simulated, so that an hour passes at once. Commands, a line each:
 *
 *     start ID STEP…     run the steps: ok, pause (ten seconds), flaky (fails twice), bad (fails for good)
 *     cancel ID          end it where it is
 *     advance MS         let time pass; alarms ring on the way
 *     query ID           what its storage says
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lapse_purge.h"

enum { MOST_INSTANCES = 100, MOST_TRIES = 3 };
static const int64_t PAUSE_MS = 10000, RETRY_MS = 2000;

struct engine;
struct instance {
    char id[64];
    struct engine *engine;
    struct lapse_memory *memory;
    struct lapse_storage storage;
    struct lapse_alarm alarm;
    struct lapse_purge *purge;
};
struct engine {
    int64_t now;
    struct instance instances[MOST_INSTANCES];
    size_t n;
};

static int64_t engine_now(void *engine)
{
    return ((const struct engine *)engine)->now;
}

static void say(void *instance, const char *line)
{
    printf("%lld %s\n", (long long)((struct instance *)instance)->engine->now, line);
}

static void must(int result, struct instance *i)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s: %s\n", i->id, lapse_purge_error(i->purge));
    exit(1);
}

/* --- an instance and its storage ---------------------------------------------------------------------------
 */

static void put(struct instance *i, const char *key, const char *value)
{
    i->storage.put(i->storage.context, key, value, strlen(value));
}

/* "" where there is none. */
static void get(struct instance *i, const char *key, char *ret, size_t room)
{
    void *value = NULL;
    size_t len = 0;
    i->storage.get(i->storage.context, key, &value, &len);
    snprintf(ret, room, "%.*s", (int)len, value ? (const char *)value : "");
    free(value);
}

static int get_number(struct instance *i, const char *key)
{
    char text[32];
    get(i, key, text, sizeof(text));
    return atoi(text);
}

static void put_number(struct instance *i, const char *key, int number)
{
    char text[32];
    snprintf(text, sizeof(text), "%d", number);
    put(i, key, text);
}

static void open_purge(struct instance *i)
{
    static const struct lapse_purge_reason retention[] = {{"failed", "1 hour"}};
    static const char *const keep[] = {"workflow:output"};
    const struct lapse_purge_config config = {.retention = retention,
                                              .n_retention = 1,
                                              .keep = keep,
                                              .n_keep = 1,
                                              .instance = i->id,
                                              .log = say,
                                              .context = i};
    const struct lapse_clock clock = {engine_now, i->engine};
    char *error = NULL;
    i->purge = lapse_purge_new(&config, &i->storage, &i->alarm, &clock, &error);
    if (i->purge)
        return;
    fprintf(stderr, "%s\n", error);
    exit(1);
}

static struct instance *find(struct engine *e, const char *id)
{
    for (size_t k = 0; k < e->n; k++)
        if (!strcmp(e->instances[k].id, id))
            return &e->instances[k];
    return NULL;
}

static struct instance *find_or_add(struct engine *e, const char *id)
{
    struct instance *i = find(e, id);
    if (i || e->n == MOST_INSTANCES)
        return i;
    i = &e->instances[e->n++];
    snprintf(i->id, sizeof(i->id), "%s", id);
    i->engine = e;
    i->memory = lapse_memory_new();
    lapse_memory_storage(i->memory, &i->storage);
    lapse_memory_alarm(i->memory, &i->alarm);
    open_purge(i);
    return i;
}

/* --- running
 * ------------------------------------------------------------------------------------------------ */

static void end(struct instance *i, const char *state)
{
    put(i, "workflow:status", state);
    put(i, "workflow:output", state);
    must(lapse_purge_no_wake(i->purge), i);
    must(lapse_purge_schedule(i->purge, state), i);
}

static void wake_in(struct instance *i, const char *status, int64_t ms)
{
    put(i, "workflow:status", status);
    must(lapse_purge_wake(i->purge, i->engine->now + ms), i);
}

/* true: on to the next step. */
static bool run_step(struct instance *i, int number, const char *step)
{
    char key[40];
    snprintf(key, sizeof(key), "step:%d:tries", number);
    int tries = get_number(i, key) + 1;
    put_number(i, key, tries);
    if (!strcmp(step, "pause") && tries == 1)
        wake_in(i, "paused", PAUSE_MS);
    else if (!strcmp(step, "bad") && tries >= MOST_TRIES)
        end(i, "failed");
    else if (!strcmp(step, "bad") || (!strcmp(step, "flaky") && tries < MOST_TRIES))
        wake_in(i, "retrying", RETRY_MS);
    else
        return true;
    return false;
}

/* From the step it had come to, until it ends or waits. */
static void go_on(struct instance *i)
{
    char key[40], step[40];
    for (;;) {
        int number = get_number(i, "workflow:step");
        snprintf(key, sizeof(key), "step:%d", number);
        get(i, key, step, sizeof(step));
        if (!*step) {
            end(i, "completed");
            return;
        }
        if (!run_step(i, number, step))
            return;
        put_number(i, "workflow:step", number + 1);
    }
}

static bool has_ended(struct instance *i)
{
    char status[40];
    get(i, "workflow:status", status, sizeof(status));
    return !strcmp(status, "completed") || !strcmp(status, "failed") || !strcmp(status, "cancelled");
}

/* The alarm is the purge's or the engine's: lapse knows which. */
static void ring(struct instance *i)
{
    enum lapse_rang rang;
    struct lapse_purged purged;
    must(lapse_purge_alarm(i->purge, &rang, &purged), i);
    if (rang != LAPSE_RANG_WAKE)
        return;
    must(lapse_purge_no_wake(i->purge), i);
    if (!has_ended(i))
        go_on(i);
}

/* --- commands
 * ----------------------------------------------------------------------------------------------- */

/* Starting again first takes back the purge of the last time, then clears what it left. */
static void start(struct engine *e, char *id, char *words)
{
    struct instance *i = find_or_add(e, id);
    if (!i) {
        printf("there is no room for %s\n", id);
        return;
    }
    must(lapse_purge_cancel(i->purge), i);
    i->storage.delete_all(i->storage.context);
    int n = 0;
    char key[40], *rest = NULL;
    for (char *step = strtok_r(words, " \n", &rest); step; step = strtok_r(NULL, " \n", &rest)) {
        snprintf(key, sizeof(key), "step:%d", n++);
        put(i, key, step);
    }
    put(i, "workflow:status", "running");
    go_on(i);
}

static void cancel(struct engine *e, const char *id)
{
    struct instance *i = find(e, id);
    if (!i || has_ended(i))
        printf("%s: nothing to cancel\n", id);
    else
        end(i, "cancelled");
}

static int count(void *n, const char *key)
{
    (void)key;
    ++*(int *)n;
    return 0;
}

static void query(struct engine *e, const char *id)
{
    struct instance *i = find(e, id);
    char status[40] = "", output[40] = "";
    int steps = 0, scheduled = 0;
    if (i) {
        get(i, "workflow:status", status, sizeof(status));
        get(i, "workflow:output", output, sizeof(output));
        i->storage.list(i->storage.context, "step:", count, &steps);
        must(lapse_purge_is_scheduled(i->purge, &scheduled), i);
    }
    printf("%s: status %s, output %s, %d step keys%s\n", id, *status ? status : "-", *output ? output : "-",
           steps, scheduled ? ", purge to come" : "");
}

/* A second at a time, so that what rings in between rings in order. */
static void advance(struct engine *e, int64_t ms)
{
    for (int64_t until = e->now + ms; e->now < until;) {
        e->now = e->now + 1000 < until ? e->now + 1000 : until;
        for (size_t k = 0; k < e->n; k++)
            if (lapse_memory_rings(e->instances[k].memory, e->now))
                ring(&e->instances[k]);
    }
}

static void obey(struct engine *e, char *line)
{
    char *rest = NULL, *verb = strtok_r(line, " \n", &rest), *id = strtok_r(NULL, " \n", &rest);
    if (!verb)
        return;
    if (!id)
        printf("%s: of what?\n", verb);
    else if (!strcmp(verb, "start"))
        start(e, id, rest);
    else if (!strcmp(verb, "cancel"))
        cancel(e, id);
    else if (!strcmp(verb, "query"))
        query(e, id);
    else if (!strcmp(verb, "advance"))
        advance(e, atoll(id));
    else
        printf("%s? start, cancel, advance, query\n", verb);
}

int main(void)
{
    struct engine e = {0};
    char line[1000];
    while (fgets(line, sizeof(line), stdin))
        obey(&e, line);
    for (size_t k = 0; k < e.n; k++) {
        lapse_purge_free(e.instances[k].purge);
        lapse_memory_free(e.instances[k].memory);
    }
    return 0;
}
