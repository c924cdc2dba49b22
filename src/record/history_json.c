/* history_json: the rows that went, by label, as the history keeps them. See history.h. */
#include <jansson.h>
#include <stdlib.h>

#include "record/history.h"

/* In letters that every character set has: a database need not be able to hold the label's. */
void history_counts_json(const struct history *h, struct text *out)
{
    json_t *all = json_object();
    for (size_t i = 0; i < h->n_counts; i++)
        json_object_set_new(all, h->counts[i].label, json_integer(h->counts[i].rows));
    char *text = json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_PRESERVE_ORDER);
    text_add(out, text ? text : "{}");
    free(text);
    json_decref(all);
}

void history_part_json(const struct history_part *part, struct text *out)
{
    char at[WHEN_TEXT_SIZE];
    json_t *o = json_object(), *rows = json_object();
    for (size_t i = 0; i < part->n; i++)
        if (part->gone[i])
            json_object_set_new(
                rows, part->labels[i],
                json_integer(part->gone[i] + json_integer_value(json_object_get(rows, part->labels[i]))));
    json_object_set_new(o, "policy", json_string(part->policy));
    json_object_set_new(o, "outcome", json_string(part->outcome));
    json_object_set_new(o, "cutoff",
                        part->has_cutoff ? json_string(when_format(part->cutoff, at)) : json_null());
    json_object_set_new(o, "rows", rows);
    char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_PRESERVE_ORDER);
    text_add(out, text ? text : "{}");
    free(text);
    json_decref(o);
}
