/* written: what two contracts say of one name, key by key, where it is not the same. Pure. */
#ifndef LAPSE_CONTRACT_WRITTEN_H
#define LAPSE_CONTRACT_WRITTEN_H

#include "contract/contract.h"

/* Called for each key that is written otherwise, or in one of them only, with "<what>: keep 365d -> 30d"; a key within a
 * map has its path, "keep.values.failed". Long values are cut. A name that one of them does not have: nothing. */
typedef void written_say(void *context, const char *words);
void written_compare(const struct contract *from, const struct contract *to, const char *section,
                     const char *name, const char *what, written_say *say, void *context);

#endif
