/* bounded: tables that cannot grow by construction, as their keys and CHECK constraints say. Pure. */
#ifndef LAPSE_SCHEMA_BOUNDED_H
#define LAPSE_SCHEMA_BOUNDED_H

#include "schema/facts.h"

/* What keeps the table small, in words for `unbounded`: "singleton primary key (id = 1)". NULL: nothing that
 * is understood for certain. Lives in the arena. */
const char *table_bounded_by(const struct facts *f, const struct table *t, struct arena *a);

#endif
