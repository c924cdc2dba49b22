/* check_purge: what a purge erases against the schema. Placeholder until the next commit. */
#include "check_parts.h"
