/* reader: a node of the tree -> C data, as the key table says. Sections by their keys, values by their type;
 * what is wrong becomes a mistake, and reading goes on. */
#ifndef LAPSE_CONTRACT_READER_H
#define LAPSE_CONTRACT_READER_H

#include "contract/key.h"
#include "contract/yaml.h"

struct reader {
    struct arena *arena; /* of the contract */
    struct mistakes *mistakes;
    const char *file; /* of the contract */
    const struct key_doc *keys;
    size_t n_keys;
    const char *key;       /* being read, for messages */
    struct policy *policy; /* being read, or NULL */
    bool inside_not_yet;   /* below a key that was noted as not yet running */
};

/* Sets every field of a section that has a default. */
void reader_defaults(struct reader *r, const char *section, void *base);
/* Defaults first, then the map's keys. at: where a missing key is reported. False: not even a map. */
bool reader_section(struct reader *r, const char *section, struct place at, const struct node *map,
                    void *base);
/* The row of a key, or NULL after a mistake that says which are allowed. */
const struct key_doc *reader_key(struct reader *r, const char *section, const struct node *key);

/* "'key' must be <allowed>, not <what was read>". */
void reader_wrong(struct reader *r, const struct node *n, const char *allowed);
/* The text of a scalar that is not null; NULL after a mistake. */
const char *reader_text(struct reader *r, const struct node *n, const char *allowed);
/* A map with something in it, else a mistake and false. */
bool reader_map(struct reader *r, const struct node *n, const char *allowed);
/* The items of a list, or the one item that stands in its place. An empty list is a mistake. A reference such
 * as t(a, b), which YAML cuts at the comma inside [ ], is put together again. */
const struct node **reader_items(struct reader *r, const struct node *n, size_t *ret_n);
/* Which of the words; -1 after a mistake. */
int reader_choice(struct reader *r, const struct node *n, const char *const *words, size_t n_words);
/* Any duration that can be written; false after a mistake. */
bool reader_span(struct reader *r, const struct node *n, struct span *ret);
/* The same where it says how long rows are kept: of an integer, which is milliseconds, whole minutes alone.
 */
bool reader_kept_span(struct reader *r, const struct node *n, struct span *ret);
struct scalar reader_scalar(const struct node *n);
/* A relative path is one beside the contract's file. */
const char *reader_path(struct reader *r, const char *path);

/* Readers of the key table, by the type of their field. */
void read_bool(struct reader *r, const struct node *n, void *field, size_t *count);  /* bool */
void read_count(struct reader *r, const struct node *n, void *field, size_t *count); /* int64_t >= 1 */
void read_fraction(struct reader *r, const struct node *n, void *field,
                   size_t *count);                                                   /* double, 0 < x <= 1 */
void read_rate(struct reader *r, const struct node *n, void *field, size_t *count);  /* double > 0 */
void read_text(struct reader *r, const struct node *n, void *field, size_t *count);  /* const char * */
void read_texts(struct reader *r, const struct node *n, void *field, size_t *count); /* const char ** */
void read_path(struct reader *r, const struct node *n, void *field, size_t *count);  /* const char * */
void read_time(struct reader *r, const struct node *n, void *field, size_t *count);  /* struct span, > 0 */
void read_time_or_none(struct reader *r, const struct node *n, void *field,
                       size_t *count); /* struct span, >= 0 */
/* How long rows are kept: reader_kept_span. */
void read_kept(struct reader *r, const struct node *n, void *field, size_t *count); /* struct span, > 0 */
void read_kept_or_none(struct reader *r, const struct node *n, void *field,
                       size_t *count); /* struct span, >= 0 */
void read_delay(struct reader *r, const struct node *n, void *field,
                size_t *count); /* struct span, also never */
void read_time_us(struct reader *r, const struct node *n, void *field, size_t *count); /* int64_t > 0 */
void read_zone(struct reader *r, const struct node *n, void *field, size_t *count);    /* const char * */
void read_name(struct reader *r, const struct node *n, void *field, size_t *count);    /* struct name */
void read_names(struct reader *r, const struct node *n, void *field, size_t *count);   /* struct name * */
void read_table(struct reader *r, const struct node *n, void *field, size_t *count);   /* struct table_name */
void read_ref(struct reader *r, const struct node *n, void *field, size_t *count);     /* struct ref */
void read_refs(struct reader *r, const struct node *n, void *field, size_t *count);    /* struct ref * */

#endif
