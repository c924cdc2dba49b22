/* purger: purges, turn by turn. See purger.h. */
#include "command/purger.h"

#include <string.h>

static const int64_t TURN_US = US_PER_S, /* between two looks: others schedule at any time */
    LOOK_US = 30 * US_PER_S,             /* between two looks at the tables themselves */
    STRANGERS_US = 60 * US_PER_S, REFUSED_US = 10 * US_PER_S, FAIL_MOST_US = 60 * US_PER_S;

struct purger {
    const struct contract *contract;
    struct store *store; /* NULL: not open */
    int64_t looked_us, strangers_us;
    atomic_bool interrupted;
    int fails; /* turns in a row without a database */
    struct {
        char *after;           /* reasons up to this one were looked at; NULL: begin again */
        int64_t not_before_us; /* it was refused, or failed */
    } * spaces;
};

struct purger *purger_new(const struct contract *c)
{
    struct purger *p = mem_alloc(sizeof(*p));
    p->contract = c;
    p->spaces = mem_alloc((c->n_purges + 1) * sizeof(*p->spaces));
    return p;
}

static void disconnect(struct purger *p)
{
    store_close(p->store);
    p->store = NULL;
    p->looked_us = p->strangers_us = 0;
}

void purger_free(struct purger *p)
{
    if (!p)
        return;
    disconnect(p);
    for (size_t i = 0; i < p->contract->n_purges; i++)
        mem_free_p(&p->spaces[i].after);
    mem_free_p(&p->spaces);
    mem_free_p(&p);
}

void purger_interrupt(struct purger *p)
{
    atomic_store(&p->interrupted, true);
}

void purger_turn_release(struct purger_turn *t)
{
    arena_free(t->arena);
    *t = (struct purger_turn){0};
}

int64_t purger_pending(struct purger *p, const struct purge_space *s, int64_t most)
{
    struct err e = ERR_INIT;
    int64_t n;
    const char *fix;
    AUTO(text_release) struct text why = {0};
    if (!p->store || purging_obstacle(p->store, &why, &fix) ||
        p->store->ops->purges->pending(p->store, s->name, most, &n, &e) < 0)
        return -1;
    return n;
}

/* --- a space ---------------------------------------------------------------------------------------------
 */

static const char *errors_text(struct arena *a, const struct findings *f, const char *file)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < f->n; i++)
        if (f->list[i].level == FINDING_ERROR)
            text_addf(&t, "%s%s:%d:%d: %s%s%s%s", t.len ? "; " : "", file, f->list[i].at.line,
                      f->list[i].at.column, f->list[i].what, f->list[i].fix[0] ? " (" : "", f->list[i].fix,
                      f->list[i].fix[0] ? ")" : "");
    return arena_strdup(a, text_str(&t));
}

/* True: a brake is on, which costs one reading. */
static bool paused(struct store *s, struct purger_space *ret)
{
    struct err e = ERR_INIT;
    if (purging_brake(s, &e) == 0 || e.kind != ERR_PAUSED)
        return false;
    ret->kind = PURGER_WORKED;
    ret->out = (struct purging_outcome){.kind = PURGING_PAUSED, .err = e};
    return true;
}

static int work_on(struct store *s, const struct contract *c, const struct purging_look *look, instant now,
                   const struct purging_options *o, struct arena *a, struct purger_space *ret, struct err *e)
{
    AUTO(arena_free_p) struct arena *scratch = arena_new();
    AUTO(facts_free_p) struct facts *facts = NULL;
    AUTO(purge_plan_free_p) struct purge_plan *plan = NULL;
    struct findings found = {.arena = scratch};
    if (check_purge(ret->space, s, now, false, &found, &plan, &facts, e) < 0)
        return -1;
    if (!plan) {
        ret->kind = PURGER_REFUSED;
        ret->refused = errors_text(a, &found, c->file);
        return 0;
    }
    ret->kind = PURGER_WORKED;
    purging_run(s, plan, &look->groups, now, o, &ret->out);
    return 0;
}

int purger_space_turn(struct store *s, const struct contract *c, const struct purge_space *space, instant now,
                      char **after, const struct purging_options *o, struct arena *a,
                      struct purger_space *ret, struct err *e)
{
    AUTO(purging_look_release) struct purging_look look = {0};
    *ret = (struct purger_space){.space = space, .next = INT64_MAX};
    if (purging_look(s, space, now, *after, &look, e) < 0)
        return -1;
    mem_free_p(after);
    *after = look.groups.next ? mem_strdup(look.groups.next) : NULL;
    ret->more = *after != NULL;
    ret->next = look.next;
    return look.due && !paused(s, ret) ? work_on(s, c, &look, now, o, a, ret, e) : 0;
}

int purger_strangers(struct store *s, const struct contract *c, struct arena *a, const char ***ret,
                     size_t *ret_n, struct err *e)
{
    AUTO(purge_rows_release) struct purge_rows found = {0};
    const char **list = NULL;
    size_t n = 0;
    if (s->ops->purges->spaces(s, &found, e) < 0)
        return -1;
    for (size_t i = 0; i < found.n; i++) {
        if (!found.list[i].odd && purge_space_named(c, found.list[i].space))
            continue;
        list = arena_push(a, list, n, sizeof(*list));
        list[n++] = arena_strdup(a, found.list[i].space);
    }
    *ret = list;
    *ret_n = n;
    return 0;
}

int purger_stuck(struct store *s, const struct contract *c, instant now, struct arena *a, const char ***ret,
                 size_t *ret_n, struct err *e)
{
    static const int64_t FAR_US = 3600 * US_PER_S;
    const char **list = arena_alloc(a, (c->n_purges + 1) * sizeof(*list));
    size_t n = 0;
    for (size_t i = 0; i < c->n_purges; i++) {
        int64_t id;
        if (s->ops->purges->stuck(s, c->purges[i].name, now + FAR_US, &id, e) < 0)
            return -1;
        if (id)
            list[n++] = arena_printf(
                a,
                "lapse_purge has rows of the space '%s' whose purge_at or retry_at is infinite, or whose "
                "retry_at is more than an hour ahead, which lapse does not write: they wait until "
                "somebody changes them (the first: id %lld)",
                c->purges[i].name, (long long)id);
    }
    *ret = list;
    *ret_n = n;
    return 0;
}

/* --- a turn ----------------------------------------------------------------------------------------------
 */

/* Open, with tables that can be worked with. */
static int be_ready(struct purger *p, struct purger_turn *t, struct err *e)
{
    int64_t now_us = when_monotonic_us();
    if (!p->store) {
        if (store_open(p->contract->store, false, &p->store, e) < 0)
            return -1;
        p->store->own_schema = p->contract->own_schema;
        p->store->own_owner = p->contract->own_owner;
        p->store->interrupted = &p->interrupted;
    }
    if (!p->looked_us || now_us - p->looked_us > LOOK_US) {
        if (p->store->ops->own->look(p->store, e) < 0)
            return -1;
        p->looked_us = now_us;
    }
    AUTO(text_release) struct text why = {0};
    const char *fix;
    if (!purging_obstacle(p->store, &why, &fix))
        return 0;
    t->fix = fix;
    p->looked_us = 0;
    t->wait_us = REFUSED_US;
    return err_set(e, ERR_FINDINGS, "purges: %s", text_str(&why));
}

static bool lost_database(const struct err *e)
{
    return e->kind == ERR_LOST || e->kind == ERR_UNREACHABLE || e->kind == ERR_COMMIT_UNKNOWN;
}

static bool went_wrong(const struct purger_space *s)
{
    return s->kind == PURGER_REFUSED || (s->kind == PURGER_WORKED && s->out.kind == PURGING_FAILED);
}

static void fail_space(struct purger_space *s, struct err *e)
{
    s->kind = PURGER_WORKED;
    s->out = (struct purging_outcome){.kind = PURGING_FAILED, .err = *e};
    *e = (struct err)ERR_INIT;
}

static int turn_spaces(struct purger *p, const struct purging_options *o, struct purger_turn *t,
                       struct err *e)
{
    const struct contract *c = p->contract;
    instant now;
    if (p->store->ops->now(p->store, &now, e) < 0)
        return -1;
    t->spaces = arena_alloc(t->arena, (c->n_purges + 1) * sizeof(*t->spaces));
    for (size_t i = 0; i < c->n_purges; i++) {
        struct purger_space *s = &t->spaces[t->n];
        int64_t mono = when_monotonic_us();
        *s = (struct purger_space){.space = &c->purges[i], .next = INT64_MAX};
        if (mono >= p->spaces[i].not_before_us &&
            purger_space_turn(p->store, c, s->space, now, &p->spaces[i].after, o, t->arena, s, e) < 0) {
            if (lost_database(e) || e->kind == ERR_STOPPED)
                return -1;
            fail_space(s, e); /* the others go on */
        }
        t->n++;
        p->spaces[i].not_before_us = went_wrong(s) ? mono + REFUSED_US : p->spaces[i].not_before_us;
        if (s->kind == PURGER_WORKED && lost_database(&s->out.err)) {
            *e = s->out.err;
            return -1;
        }
        if (s->more)
            t->wait_us = 0;
        else if (s->next != INT64_MAX && s->next > now && s->next - now < t->wait_us)
            t->wait_us = s->next - now;
    }
    return 0;
}

static int look_for_strangers(struct purger *p, struct purger_turn *t, struct err *e)
{
    int64_t now_us = when_monotonic_us();
    if (p->strangers_us && now_us - p->strangers_us < STRANGERS_US)
        return 0;
    instant now;
    p->strangers_us = now_us;
    if (purger_strangers(p->store, p->contract, t->arena, &t->strangers, &t->n_strangers, e) < 0 ||
        p->store->ops->now(p->store, &now, e) < 0)
        return -1;
    return purger_stuck(p->store, p->contract, now, t->arena, &t->stuck, &t->n_stuck, e);
}

/* 1 s, 2 s, 4 s … a minute. */
static int64_t pause_after(int fails)
{
    int64_t us = US_PER_S << (fails > 6 ? 6 : fails);
    return us < FAIL_MOST_US ? us : FAIL_MOST_US;
}

void purger_turn(struct purger *p, const struct purging_options *o, struct purger_turn *ret)
{
    struct err e = ERR_INIT;
    *ret = (struct purger_turn){.arena = arena_new(), .err = ERR_INIT, .fix = "", .wait_us = TURN_US};
    if (be_ready(p, ret, &e) == 0 && turn_spaces(p, o, ret, &e) == 0 && look_for_strangers(p, ret, &e) == 0) {
        p->fails = 0;
        return;
    }
    ret->err = e;
    if (!lost_database(&e))
        return;
    disconnect(p);
    ret->wait_us = pause_after(p->fails++);
}
