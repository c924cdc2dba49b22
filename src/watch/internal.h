/* What the files of event share: a line before it is written. Private to event. */
#ifndef LAPSE_WATCH_INTERNAL_H
#define LAPSE_WATCH_INTERNAL_H

#include "watch/event.h"

enum field_kind { FIELD_TEXT, FIELD_NUMBER, FIELD_TIME, FIELD_SPAN, FIELD_TEXTS };
struct event_field {
    const char *key;
    enum field_kind kind;
    const char *text;   /* FIELD_TEXT; NULL: none */
    int64_t number;     /* FIELD_NUMBER, FIELD_TIME, FIELD_SPAN */
    const char **texts; /* FIELD_TEXTS */
    size_t n;
};
struct event {
    struct arena *arena; /* owns the rest */
    enum event_kind kind;
    enum event_level level;
    instant at;
    const char *name, *scheduler, *message; /* the last two: NULL, none */
    struct event_field *fields;
    size_t n_fields;
};

/* A text that fits in a line of JSON: cut, UTF-8, no control characters but tabs and newlines. */
const char *event_clean(struct arena *a, const char *s);

#endif
