/* changes: what one contract says that another did not, in words for the log. Pure. */
#include <string.h>

#include "daemon/internal.h"
#include "contract/policy_hash.h"
#include "contract/written.h"
#include "plan/purges.h"

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_span(struct span a, struct span b)
{
    return a.kind == b.kind && a.us == b.us;
}

static void note(struct changes *c, const char *kind, const char *name, const char *what)
{
    c->list = arena_push(c->arena, c->list, c->n, sizeof(*c->list));
    c->list[c->n++] = arena_printf(c->arena, "%s%s%s %s", kind, *name ? " " : "", name, what);
}

static void note_key(void *changes, const char *words)
{
    struct changes *c = changes;
    c->list = arena_push(c->arena, c->list, c->n, sizeof(*c->list));
    c->list[c->n++] = arena_strdup(c->arena, words);
}

/* "policy audit_log: keep 365d -> 30d". True: what is written of it is not as before. */
static bool compare_written(struct changes *c, const char *kind, const char *section, const char *name,
                            const struct contract *from, const struct contract *to)
{
    size_t n = c->n;
    written_compare(from, to, section, name, arena_printf(c->arena, "%s %s", kind, name), note_key, c);
    return c->n > n;
}

/* --- schedulers ------------------------------------------------------------------------------------------
 */

bool scheduler_times_same(const struct scheduler *a, const struct scheduler *b)
{
    return same_span(a->every, b->every) && same_text(a->cron, b->cron) &&
           same_text(a->timezone, b->timezone) && same_span(a->jitter, b->jitter) &&
           a->window_from == b->window_from && a->window_to == b->window_to && a->enabled == b->enabled;
}

static bool same_scheduler(const struct scheduler *a, const struct scheduler *b)
{
    return scheduler_times_same(a, b) && a->run_on_start == b->run_on_start && a->exclusive == b->exclusive &&
           same_span(a->lease, b->lease) && a->budget_rows == b->budget_rows &&
           a->budget_batches == b->budget_batches && same_span(a->budget_time, b->budget_time);
}

static void compare_schedulers(const struct contract *from, const struct contract *to, struct changes *c)
{
    for (size_t i = 0; i < to->n_schedulers; i++) {
        const struct scheduler *now = &to->schedulers[i], *before = scheduler_named(from, now->name);
        if (!before)
            note(c, "scheduler", now->name, "added");
        else if (!compare_written(c, "scheduler", "schedulers", now->name, from, to) &&
                 !same_scheduler(before, now))
            note(c, "scheduler", now->name, "changed");
    }
    for (size_t i = 0; i < from->n_schedulers; i++)
        if (!scheduler_named(to, from->schedulers[i].name))
            note(c, "scheduler", from->schedulers[i].name, "removed");
}

/* --- policies --------------------------------------------------------------------------------------------
 */

static bool same_pace(const struct pace *a, const struct pace *b)
{
    if (!a || !b)
        return a == b;
    return same_span(a->target, b->target) && a->rows_per_second == b->rows_per_second &&
           a->duty == b->duty && same_span(a->lag, b->lag) && a->lag_bytes == b->lag_bytes;
}

/* What is deleted, then how, when and by what name. */
static bool same_policy(const struct policy *a, const struct policy *b)
{
    char hash_a[POLICY_HASH_SIZE], hash_b[POLICY_HASH_SIZE];
    return strcmp(policy_hash(a, hash_a), policy_hash(b, hash_b)) == 0 && a->enabled == b->enabled &&
           same_text(a->label, b->label) && same_text(a->scheduler, b->scheduler) && a->batch == b->batch &&
           a->lock_timeout_us == b->lock_timeout_us && a->statement_timeout_us == b->statement_timeout_us &&
           a->away_us == b->away_us && same_pace(a->pace, b->pace) && a->workers == b->workers &&
           a->partitions.drop == b->partitions.drop;
}

static void compare_policies(const struct contract *from, const struct contract *to, struct changes *c)
{
    for (size_t i = 0; i < to->n_policies; i++) {
        const struct policy *now = &to->policies[i], *before = contract_policy(from, now->name);
        if (!before)
            note(c, "policy", now->name, "added");
        else if (!compare_written(c, "policy", "policies", now->name, from, to) && !same_policy(before, now))
            note(c, "policy", now->name, "changed");
    }
    for (size_t i = 0; i < from->n_policies; i++)
        if (!contract_policy(to, from->policies[i].name))
            note(c, "policy", from->policies[i].name, "removed");
}

static void compare_purges(const struct contract *from, const struct contract *to, struct changes *c)
{
    for (size_t i = 0; i < to->n_purges; i++) {
        const char *name = to->purges[i].name;
        if (!purge_space_named(from, name))
            note(c, "purges", name, "added");
        else
            compare_written(c, "purges", "purges", name, from, to);
    }
    for (size_t i = 0; i < from->n_purges; i++)
        if (!purge_space_named(to, from->purges[i].name))
            note(c, "purges", from->purges[i].name, "removed");
}

void changes_find(const struct contract *from, const struct contract *to, struct changes *ret)
{
    *ret = (struct changes){.arena = arena_new()};
    if (!same_store(from, to)) /* which one is never said: it may hold a password */
        note(ret, "store", "", "changed");
    if (!same_text(from->listen, to->listen) || !same_text(from->token_file, to->token_file))
        note(ret, "serve", "", "changed");
    compare_schedulers(from, to, ret);
    compare_policies(from, to, ret);
    compare_purges(from, to, ret);
}

bool same_store(const struct contract *a, const struct contract *b)
{
    return same_text(a->store, b->store) && same_text(a->own_schema, b->own_schema) &&
           same_text(a->own_owner, b->own_owner);
}

void changes_release(struct changes *c)
{
    arena_free_p(&c->arena);
    *c = (struct changes){0};
}
