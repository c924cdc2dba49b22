/* A plan on a real file: the contract in a few words, the facts from the catalog. */
#ifndef LAPSE_TEST_SQLITE_PLAN_H
#define LAPSE_TEST_SQLITE_PLAN_H

#include "sqlite_file.h"

#include "contract/contract.h"

struct planned {
    struct arena *arena;
    struct contract *contract;
    struct facts *facts;
    struct plan *plan;
};

static inline void planned_release(struct planned *p)
{
    plan_free(p->plan);
    facts_free(p->facts);
    contract_free(p->contract);
    arena_free(p->arena);
    *p = (struct planned){0};
}

/* keys: of one policy, p, in flow style. */
static inline struct planned plan_on(struct file *f, const char *keys, instant now)
{
    struct planned p = {.arena = arena_new()};
    struct mistakes mistakes = {0};
    struct err e = ERR_INIT;
    struct table_names names = {0};
    struct findings findings = {.arena = p.arena};
    const char *yaml = arena_printf(p.arena, "store: sqlite:x\npolicies:\n  p: { %s }\n", keys);
    if (contract_parse("lapse.yaml", yaml, strlen(yaml), &p.contract, &mistakes, &e))
        fail_msg("%s: %s", yaml, mistakes.n ? mistakes.list[0].text : e.text);
    mistakes_release(&mistakes);
    plan_tables(&p.contract->policies[0], p.arena, &names);
    if (f->store->ops->inspect(f->store, &names, &p.facts, &e))
        fail_msg("%s", e.text);
    p.plan = plan_make(&p.contract->policies[0], p.facts, now, &findings);
    if (!p.plan)
        fail_msg("%s: no plan: %s", keys, findings.n ? findings.list[0].what : "and no finding");
    return p;
}

#endif
