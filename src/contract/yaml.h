/* yaml: a file of YAML as a small tree in which every node knows its place. What follows is plain data:
 * aliases are resolved (shared nodes), merge keys merged, ${NAME} replaced from the environment. */
#ifndef LAPSE_CONTRACT_YAML_H
#define LAPSE_CONTRACT_YAML_H

#include "contract/mistake.h"

enum {
    YAML_MOST_BYTES = 4 * 1024 * 1024, /* of a file, and of its texts after replacement */
    YAML_MOST_NODES = 1000000,         /* counted as if every alias were written out */
    YAML_MOST_DEPTH = 64,
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };
struct node {
    enum node_kind kind;
    struct place at;
    /* NODE_SCALAR */
    const char *text;
    bool quoted; /* 'x', "x", | or >, or tagged !!str: text, never a number, boolean or null */
    bool broken; /* what was written could not be replaced, which is a mistake already: do not read it */
    /* NODE_LIST */
    struct node **items;
    size_t n_items;
    /* NODE_MAP: no key twice, in the order of the file, merged ones last */
    struct pair *pairs;
    size_t n_pairs;
    bool flow; /* a list or map in [ ] or { } */

    size_t size;  /* nodes in here, itself included, aliases written out */
    size_t depth; /* of what is in here; a scalar has 1 */
};
struct pair {
    struct node *key; /* a scalar */
    struct node *value;
};

/* The one document of a file, in the arena. NULL: not even a tree could be read; the mistakes say why. With a
 * tree there may be mistakes too. Prints nothing; never fails in another way. */
struct node *yaml_parse(struct arena *a, const char *yaml, size_t len, struct mistakes *mistakes);

bool node_is_null(const struct node *n);                                /* plain and empty, ~ or null */
const struct pair *node_find(const struct node *map, const char *key);  /* NULL: not there */
struct node *node_plain(struct arena *a, const char *text);             /* as if written plain, nowhere */
bool yaml_check_text(const char *s, size_t len, struct place *ret_bad); /* UTF-8 without control characters */

#endif
