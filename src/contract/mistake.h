/* mistake: what is wrong with a file, collected with its place instead of ending the reading. */
#ifndef LAPSE_CONTRACT_MISTAKE_H
#define LAPSE_CONTRACT_MISTAKE_H

#include "contract/policy.h"

/* One thing wrong with the file. text has no file:line:column in front. */
struct mistake {
    struct place at;
    const char *text;
};
/* {0} is a valid empty one. */
struct mistakes {
    struct arena *arena;
    struct mistake *list; /* in file order */
    size_t n;
};
void mistakes_release(struct mistakes *m);

/* Control characters in what was read are shown as '?'. Beyond some thousands, more are not kept. */
void mistakes_add(struct mistakes *m, struct place at, const char *fmt, ...) PRINTF(3, 4);
bool mistakes_full(const struct mistakes *m); /* adding more has no effect */
/* Puts them in file order, each once, and at most a hundred: the last then says how many there are more. */
void mistakes_settle(struct mistakes *m);

/* The candidate nearest to a misspelt word, or NULL if none is near. Shared by keys, policies and commands.
 */
const char *nearest_word(const char *word, const char *const *candidates, size_t n);

#endif
