/* nowtext: a condition that compares :now with a number, on an engine where :now is a text. */
#ifndef LAPSE_NOWTEXT_H
#define LAPSE_NOWTEXT_H

#include "facts.h"

/* -1: sql, a condition on rows of t, compares :now with a whole-number column. hint: what to write instead.
 */
int nowtext_check(const char *sql, const struct facts *f, const struct table *t, const char *hint,
                  struct err *e);

#endif
