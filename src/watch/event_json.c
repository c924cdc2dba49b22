/* event_json: an event for machines: one JSON object on one line. */
#include <jansson.h>
#include <stdlib.h>

#include "watch/internal.h"

static json_t *time_json(instant at)
{
    char buf[WHEN_TEXT_SIZE];
    return json_string(when_format(at, buf));
}

static json_t *value_json(const struct event_field *f)
{
    switch (f->kind) {
    case FIELD_TEXT:
        return f->text ? json_string(f->text) : json_null();
    case FIELD_NUMBER:
        return json_integer(f->number);
    case FIELD_TIME:
        return time_json(f->number);
    case FIELD_SPAN:
        return json_real((double)f->number / 1e6);
    case FIELD_TEXTS:
        break;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, json_string(f->texts[i]));
    return list;
}

void event_print_json(const struct event *ev, struct text *out)
{
    json_t *line = json_object();
    json_object_set_new(line, "time", time_json(ev->at));
    json_object_set_new(line, "level", json_string(level_name(ev->level)));
    json_object_set_new(line, "event", json_string(ev->name));
    if (ev->scheduler)
        json_object_set_new(line, "scheduler", json_string(ev->scheduler));
    if (ev->message)
        json_object_set_new(line, "message", json_string(ev->message));
    for (size_t i = 0; i < ev->n_fields; i++)
        json_object_set_new(line, ev->fields[i].key, value_json(&ev->fields[i]));
    AUTO(mem_free_p) char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(line);
    text_add(out, text ? text : "{}");
}
