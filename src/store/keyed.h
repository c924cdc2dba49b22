/* keyed: a table of keys and values per instance, (instance, key, value), that a host keeps its data in. The
 * verbs that a store has for it. */
#ifndef LAPSE_STORE_KEYED_H
#define LAPSE_STORE_KEYED_H

#include "plan/plan.h"

/* The table as it was found, and whose rows are meant. */
struct keyed {
    struct arena *arena; /* owns the rest */
    struct facts *facts;
    const struct table *table;
    const struct column *instance, *key, *value;
    const char *of; /* the instance */
};
void keyed_release(struct keyed *k);

struct keyed_pair {
    const char *key;
    const void *value;
    size_t len;
};
struct keyed_keys {
    struct arena *arena;
    const char **list;
    size_t n;
};
void keyed_keys_release(struct keyed_keys *k);

struct store;
/* Each in a transaction of its own; doing it twice does what doing it once does. */
struct keyed_ops {
    /* An error says how such a table is made. */
    int (*find)(struct store *s, const char *table, const char *instance, struct keyed *ret, struct err *e);
    /* *ret_value: to be free()d, with a NUL behind it; NULL: there is none. */
    int (*get)(struct store *s, const struct keyed *k, const char *key, void **ret_value, size_t *ret_len,
               struct err *e);
    int (*put)(struct store *s, const struct keyed *k, const struct keyed_pair *pairs, size_t n,
               struct err *e);
    int (*remove)(struct store *s, const struct keyed *k, const char *key, struct err *e);
    int (*remove_all)(struct store *s, const struct keyed *k, const char *but,
                      struct err *e); /* but that key */
    int (*keys)(struct store *s, const struct keyed *k, const char *prefix, struct keyed_keys *ret,
                struct err *e);
};

#endif
