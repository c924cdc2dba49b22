/* What is due by each policy of a contract, counted up to MOST: backlog FILE MOST NOW prints "policy rows
 * oldest" a line, oldest as an instant or "-". backlog FILE prints the metrics once each policy was looked
 * at, and an empty line; then again, a minute later by its own clock, for every line it reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/gauge.h"

static int complain(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

static int count(struct store *s, const struct policy *p, int64_t most, instant now, struct err *e)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    struct findings found = {.arena = a};
    struct table_names names = {0};
    AUTO(facts_free_p) struct facts *facts = NULL;
    struct backlog b;
    char buf[WHEN_TEXT_SIZE];
    plan_tables(p, a, &names);
    if (s->ops->inspect(s, &names, &facts, e) < 0)
        return -1;
    AUTO(plan_free_p) struct plan *plan = plan_make(p, facts, now, &found);
    if (!plan)
        return err_set(e, ERR_FINDINGS, "%s", found.list[0].what);
    if (s->ops->backlog(s, plan, most, 60 * US_PER_S, &b, e) < 0)
        return -1;
    printf("%s %lld %s\n", p->name, (long long)b.rows, b.has_oldest ? when_format(b.oldest, buf) : "-");
    return 0;
}

static int counts(const struct contract *c, const char *most, const char *now, struct err *e)
{
    AUTO(store_close_p) struct store *s = NULL;
    instant at;
    if (!when_parse(now, strlen(now), NULL, &at))
        return err_set(e, ERR_USAGE, "no time: %s", now);
    if (store_open(c->store, true, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < c->n_policies; i++)
        if (count(s, &c->policies[i], strtoll(most, NULL, 10), at, e) < 0)
            return err_wrap(e, "%s", c->policies[i].name);
    return 0;
}

static void say(void *context, const struct event *ev)
{
    (void)context;
    fprintf(stderr, "%s\n", event_message_of(ev));
}

static void metrics(const struct contract *c)
{
    AUTO(text_release) struct text out = {0};
    struct meter *m = meter_new();
    struct gauge *g = gauge_new(c, m, &(struct gauge_options){.say = say});
    meter_expect(m, c);
    int64_t now = 0;
    do {
        for (int64_t wait = 0; wait < 30 * US_PER_S; now += wait)
            wait = gauge_turn(g, now);
        text_clear(&out);
        meter_print(m, &out);
        printf("%s\n", text_str(&out));
        fflush(stdout);
    } while (getchar() == '\n');
    gauge_free(g);
    meter_free(m);
}

int main(int argc, char **argv)
{
    AUTO(contract_free_p) struct contract *c = NULL;
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    struct err e = ERR_INIT;
    if (argc != 2 && argc != 4)
        return complain("usage: backlog FILE [MOST NOW]");
    if (contract_load(argv[1], &c, &mistakes, &e) < 0)
        return complain(mistakes.n ? mistakes.list[0].text : e.text);
    if (argc == 2)
        metrics(c);
    else if (counts(c, argv[2], argv[3], &e) < 0)
        return complain(e.text);
    return 0;
}
