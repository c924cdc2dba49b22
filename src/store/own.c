/* own: the small values that lapse keeps for itself. See own.h. */
#include "store/own.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/quote.h"

void brakes_release(struct brakes *b)
{
    arena_free(b->arena);
    *b = (struct brakes){0};
}

void run_rows_release(struct run_rows *r)
{
    arena_free(r->arena);
    *r = (struct run_rows){0};
}

void run_totals_release(struct run_totals *t)
{
    arena_free(t->arena);
    *t = (struct run_totals){0};
}

void lease_rows_release(struct lease_rows *l)
{
    arena_free(l->arena);
    *l = (struct lease_rows){0};
}

const struct brake *brakes_named(const struct brakes *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->list[i].name, name) == 0)
            return &b->list[i];
    return NULL;
}

const struct brake *brakes_on(const struct brakes *b, const char *policy, const char *scheduler)
{
    const char *const names[] = {"", policy, scheduler};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct brake *found = names[i] ? brakes_named(b, names[i]) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

void brake_words(const struct brake *b, struct text *out)
{
    char since[WHEN_TEXT_SIZE], until[WHEN_TEXT_SIZE];
    text_addf(out, "paused since %s UTC", when_format_local(b->since, 0, since));
    if (b->ends)
        text_addf(out, " until %s UTC", when_format_local(b->until, 0, until));
    if (*b->name)
        text_addf(out, " by a brake on '%s'", b->name);
    if (*b->by.reason)
        text_addf(out, ": %s", b->by.reason);
    text_addf(out, " (lapse resume%s%s)", *b->name ? " " : "", b->name);
}

static const char *const purposes[] = {"sweep", "operate", "read"};

const char *grants_for_name(enum grants_for what)
{
    return purposes[what];
}

bool grants_for_named(const char *name, enum grants_for *ret)
{
    for (size_t i = 0; i < COUNT_OF(purposes); i++)
        if (strcmp(name, purposes[i]) == 0) {
            *ret = (enum grants_for)i;
            return true;
        }
    return false;
}

/* A user without an entry is a number. */
static void add_system_user(struct text *out)
{
    char buf[4096], host[100] = "";
    struct passwd entry, *found = NULL;
    if (getpwuid_r(geteuid(), &entry, buf, sizeof(buf), &found) != 0 || !found)
        text_addf(out, "%ld", (long)geteuid());
    else
        text_add(out, found->pw_name);
    if (gethostname(host, sizeof(host) - 1) == 0)
        text_addf(out, "@%s", host);
}

void deed_set_who(struct deed *d, const char *role, const char *actor)
{
    AUTO(text_release) struct text t = {0};
    if (role)
        text_addf(&t, "%s, ", role);
    add_system_user(&t);
    if (actor && *actor)
        text_addf(&t, ", %s", actor);
    deed_copy(d->who, sizeof(d->who), text_str(&t));
}

void deed_copy(char *ret, size_t size, const char *text)
{
    size_t len = 0;
    for (size_t n; text[len] && (n = utf8_length(text + len)) && len + n < size;)
        len += n;
    memcpy(ret, text, len);
    ret[len] = '\0';
}

void own_process(char *ret, size_t size)
{
    char host[100] = "";
    uint32_t random = 0;
    if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
        snprintf(host, sizeof(host), "?");
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint32_t)when_now() ^ (uint32_t)when_monotonic_us();
    snprintf(ret, size, "%s:%ld:%08x", host, (long)getpid(), (unsigned)random);
}
