/* quote: text from elsewhere, written so that it is read back as it was: as a scalar of YAML, or as a comment
 * that stays one; or so that people see what it holds. */
#ifndef LAPSE_BASE_QUOTE_H
#define LAPSE_BASE_QUOTE_H

#include "base/base.h"

/* The length of the UTF-8 character s begins with; 0: it is none. */
size_t utf8_length(const char *s);
/* Whether people do not see the character of n bytes (0: it is no UTF-8) as what it is: it commands a terminal,
 * ends a line, has no width, or changes the direction of what stands beside it. */
bool is_unseen(const char *s, size_t n);
/* A text for people: what they would not see is escaped (\x1b, \n, \u202e), and so are bytes that are no
 * UTF-8. lines: line breaks and tabs stay. */
void text_add_seen(struct text *out, const char *s, bool lines);
/* Whether a contract can hold the text: it is UTF-8 without control characters. */
bool yaml_can_hold(const char *s);
/* A text as YAML of a contract: bare where nothing else could be meant, else in double quotes; a ${ that is
 * meant as such is doubled. flow: inside { } or [ ]. */
void yaml_scalar(struct text *out, const char *s, bool flow);
/* A text inside a comment: what could end the line, or is not UTF-8, becomes U+FFFD. */
void yaml_comment(struct text *out, const char *s);

#endif
