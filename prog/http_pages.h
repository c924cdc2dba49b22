/* http_pages: what is served, as one table: a path, what it takes, who makes the answer. Knows nothing of
 * sockets. */
#ifndef HTTP_PAGES_H
#define HTTP_PAGES_H

#include <stdbool.h>

#include "lapse.h"

/* A request that may be answered. */
struct ask {
    struct lapse_daemon *daemon;
    bool json; /* the client would rather have JSON, where there is a choice */
    char scheduler[256];
    int64_t last;
};

struct answer {
    int status;
    const char *type;
    char *body; /* free() it */
    size_t len;
};

struct page {
    const char *path, *about;
    bool health; /* needs no token anywhere */
    bool slow;   /* may wait for the database: not to be made where others wait */
    bool query;  /* takes scheduler and last */
    void (*make)(const struct ask *ask, struct answer *ret);
};

/* NULL: there is no such page. path is as it stands in the request: none of ours has anything to decode. */
const struct page *page_find(const char *path, size_t len);
/* Reads what follows the `?` (NULL: nothing) into ask; false: *ret says what is allowed. */
bool page_query(const struct page *p, const char *query, struct ask *ask, struct answer *ret);
/* What is wrong, on one line; as JSON below /api. */
void answer_error(const char *path, int status, const char *why, struct answer *ret);

/* docs/openapi.json, built in. */
extern const char openapi[];

#endif
