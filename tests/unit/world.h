/* Facts by hand, a contract in a few words, the plan that they make and what it finds. No database. */
#ifndef LAPSE_TEST_WORLD_H
#define LAPSE_TEST_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "contract/contract.h"
#include "plan/plan.h"

struct world {
    struct arena *arena;
    struct facts *facts;
    struct contract *contract;
    struct plan *plan;
    struct findings findings;
};

static inline int world_setup(void **state)
{
    struct world *w = mem_alloc(sizeof(*w));
    w->arena = arena_new();
    w->facts = facts_new();
    w->facts->folds_lower = true;
    w->facts->default_schema = "public";
    w->facts->create_index = "CREATE INDEX CONCURRENTLY";
    w->facts->locking_takes_update = true;
    w->findings.arena = w->arena;
    *state = w;
    return 0;
}

static inline int world_teardown(void **state)
{
    struct world *w = *state;
    plan_free(w->plan);
    contract_free(w->contract);
    facts_free(w->facts);
    arena_free(w->arena);
    mem_free_p(state);
    return 0;
}

/* --- facts ------------------------------------------------------------------------------------ */

/* "a, b" -> its words. */
static inline const char **words(struct arena *a, const char *list, size_t *ret_n)
{
    const char **found = NULL;
    size_t n = 0;
    for (const char *s = list; *s;) {
        size_t len = strcspn(s, ",");
        found = arena_push(a, found, n, sizeof(*found));
        found[n++] = arena_strndup(a, s, len);
        s += len;
        s += strspn(s, ", ");
    }
    *ret_n = n;
    return found;
}

static inline const struct column **columns_of(struct world *w, const struct table *t, const char *list,
                                               size_t *n)
{
    const char **names = words(w->arena, list, n);
    const struct column **found = arena_alloc(w->arena, (*n + 1) * sizeof(*found));
    for (size_t i = 0; i < *n; i++)
        assert_non_null(found[i] = column_named(t, names[i]));
    return found;
}

static inline enum type_class type_by_name(const char *name)
{
    size_t len = strlen(name);
    if (len > 3 && !strcmp(name + len - 3, "_at"))
        return TYPE_TIMESTAMPTZ;
    return !strcmp(name, "state") || !strcmp(name, "kind") ? TYPE_TEXT : TYPE_INTEGER;
}

static inline enum type_class type_by_word(const char *word)
{
    static const struct {
        const char *word;
        enum type_class type;
    } types[] = {
        {"boolean", TYPE_BOOLEAN},     {"integer", TYPE_INTEGER},
        {"real", TYPE_REAL},           {"numeric", TYPE_NUMERIC},
        {"text", TYPE_TEXT},           {"mood", TYPE_ENUM},
        {"date", TYPE_DATE},           {"timestamptz", TYPE_TIMESTAMPTZ},
        {"timestamp", TYPE_TIMESTAMP}, {"bytea", TYPE_BLOB},
        {"any", TYPE_DYNAMIC},         {"uuid", TYPE_OTHER},
        {"inet", TYPE_OTHER},
    };
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (!strcmp(types[i].word, word))
            return types[i].type;
    fail_msg("no type '%s'", word);
    return TYPE_OTHER;
}

/* "name", "name:type", or with a ! behind it: NOT NULL. Without a type, columns named *_at are instants,
 * state and kind are texts, the others integers; their type is then spelt x. */
static inline struct column column_by_words(struct arena *a, const char *written)
{
    char *name = arena_strdup(a, written);
    struct column c = {.name = name, .sql_type = "x"};
    size_t len = strlen(name);
    if (name[len - 1] == '!') {
        c.not_null = true;
        name[len - 1] = '\0';
    }
    char *colon = strchr(name, ':');
    if (!colon) {
        c.type = type_by_name(name);
        return c;
    }
    *colon = '\0';
    c.sql_type = colon + 1;
    c.type = type_by_word(colon + 1);
    if (c.type == TYPE_ENUM)
        c.labels = words(a, "happy, sad", &c.n_labels);
    return c;
}

static inline struct table *add_table(struct world *w, const char *schema, const char *name,
                                      const char *columns, const char *key)
{
    struct facts *f = w->facts;
    struct table *t = arena_alloc(f->arena, sizeof(*t));
    size_t n;
    const char **written = words(f->arena, columns, &n);
    t->columns = arena_alloc(f->arena, n * sizeof(*t->columns));
    for (size_t i = 0; i < n; i++)
        t->columns[i] = column_by_words(f->arena, written[i]);
    t->n_columns = n;
    t->schema = schema;
    t->bare = schema && strcmp(schema, "public") == 0;
    t->name = name;
    t->print = schema ? arena_printf(f->arena, "%s.%s", schema, name) : name;
    t->may_select = t->may_delete = t->may_update = true;
    t->key = columns_of(w, t, key, &t->n_key);
    f->tables = arena_push(f->arena, f->tables, f->n_tables, sizeof(struct table *));
    f->tables[f->n_tables++] = t;
    return t;
}

static inline void add_index(struct world *w, struct table *t, const char *columns, const char *predicate)
{
    struct index x = {.name = "x", .partial = predicate != NULL, .predicate = predicate};
    x.columns = columns_of(w, t, columns, &x.n_columns);
    t->indexes = arena_push(w->arena, t->indexes, t->n_indexes, sizeof(x));
    t->indexes[t->n_indexes++] = x;
}

static inline void add_fkey(struct world *w, const struct table *child, const char *columns,
                            struct table *parent, const char *targets, enum on_delete action)
{
    struct fkey k = {
        .name = "k", .child_schema = child->schema, .child_table = child->name, .action = action};
    k.child_columns = words(w->arena, columns, &k.n);
    k.parent_columns = words(w->arena, targets, &k.n);
    parent->fkeys_in = arena_push(w->arena, parent->fkeys_in, parent->n_fkeys_in, sizeof(k));
    parent->fkeys_in[parent->n_fkeys_in++] = k;
}

/* --- the plan --------------------------------------------------------------------------------- */

static inline void parse(struct world *w, const char *yaml)
{
    struct mistakes mistakes = {0};
    struct err e = ERR_INIT;
    if (contract_parse("lapse.yaml", yaml, strlen(yaml), &w->contract, &mistakes, &e))
        fail_msg("%s: %s", yaml, mistakes.n ? mistakes.list[0].text : e.text);
    mistakes_release(&mistakes);
}

/* The plan of one policy, p, given by its own keys in flow style; NULL when something was found. What was
 * planned before is gone. */
static inline struct plan *try_plan(struct world *w, const char *keys, instant now)
{
    AUTO(text_release) struct text yaml = {0};
    plan_free_p(&w->plan);
    contract_free_p(&w->contract);
    w->findings = (struct findings){.arena = w->arena};
    text_addf(&yaml, "store: sqlite:x\npolicies:\n  p: { %s }\n", keys);
    parse(w, text_str(&yaml));
    w->plan = plan_make(&w->contract->policies[0], w->facts, now, &w->findings);
    return w->plan;
}

static inline struct plan *make_plan(struct world *w, const char *keys, instant now)
{
    if (!try_plan(w, keys, now))
        fail_msg("%s: no plan: %s", keys, w->findings.n ? w->findings.list[0].what : "and no finding");
    return w->plan;
}

#endif
