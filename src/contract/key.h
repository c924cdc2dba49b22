/* key: one row of the key table. Parsing, defaults, allowed keys and the reference page all come from it. */
#ifndef LAPSE_CONTRACT_KEY_H
#define LAPSE_CONTRACT_KEY_H

#include <stdbool.h>
#include <stddef.h>

struct reader;
struct node;

struct key_doc {
    const char *section; /* "contract", "scheduler", "policy", "policy.with", … */
    const char *key;
    const char *type;     /* "duration", "list of references", … */
    const char *standard; /* the default as it would be written, or "" */
    const char *doc;      /* one sentence */
    bool not_yet;         /* validated, does not run yet */
    bool required;

    /* How the contract reads it; of no use to others. field and count are in the struct of the section: count
     * is the length of a list, else NULL. */
    void (*read)(struct reader *r, const struct node *value, void *field, size_t *count);
    size_t offset, count_offset;
};

#endif
