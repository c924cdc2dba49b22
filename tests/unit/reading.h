/* A piece of YAML and a reader over it, for the files that turn nodes into C data. */
#ifndef LAPSE_TEST_READING_H
#define LAPSE_TEST_READING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "contract/contract.h"
#include "contract/reader.h"

struct reading {
    struct arena *arena;
    struct mistakes mistakes;
    struct reader reader;
};

static inline int reading_setup(void **state)
{
    struct reading *g = mem_alloc(sizeof(*g));
    g->arena = arena_new();
    g->reader = (struct reader){
        .arena = g->arena, .mistakes = &g->mistakes, .file = "folder/lapse.yaml", .key = "outer"};
    g->reader.keys = contract_keys(&g->reader.n_keys);
    *state = g;
    return 0;
}

static inline int reading_teardown(void **state)
{
    struct reading *g = *state;
    mistakes_release(&g->mistakes);
    arena_free(g->arena);
    mem_free_p(state);
    return 0;
}

/* The tree of it, without mistakes so far; what it was reads as before. */
static inline const struct node *tree(struct reading *g, const char *yaml)
{
    mistakes_release(&g->mistakes);
    const struct node *n = yaml_parse(g->arena, yaml, strlen(yaml), &g->mistakes);
    if (!n || g->mistakes.n)
        fail_msg("%s: %s", yaml, g->mistakes.n ? g->mistakes.list[0].text : "");
    return n;
}

/* Every mistake as "line:column text", a line for each. */
static inline void assert_mistakes(struct reading *g, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    for (size_t i = 0; i < g->mistakes.n; i++)
        text_addf(&out, "%s%d:%d %s", i ? "\n" : "", g->mistakes.list[i].at.line,
                  g->mistakes.list[i].at.column, g->mistakes.list[i].text);
    assert_string_equal(text_str(&out), expected);
    assert_string_equal(g->reader.key, "outer"); /* whatever was read in between */
}

#endif
