/* reader: sections and plain values; see reader.h. */
#include "contract/reader.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- what a message shows ------------------------------------------------------------------------ */

/* What was read, short, and without what follows :// because that may hold a password. */
static const char *shown(struct reader *r, const char *s)
{
    enum { MOST = 60 };
    const char *address = strstr(s, "://");
    size_t len = strlen(s);
    if (address && address - s < MOST)
        return arena_printf(r->arena, "%.*s://…", (int)(address - s), s);
    return len <= MOST ? s : arena_printf(r->arena, "%.*s…", (int)MOST, s);
}

static const char *described(struct reader *r, const struct node *n)
{
    if (n->kind == NODE_LIST)
        return n->n_items ? "a list" : "an empty list";
    if (n->kind == NODE_MAP)
        return n->n_pairs ? "a map" : "an empty map";
    if (node_is_null(n))
        return n->text[0] ? "null" : "empty";
    return arena_printf(r->arena, n->quoted ? "the text '%s'" : "'%s'", shown(r, n->text));
}

void reader_wrong(struct reader *r, const struct node *n, const char *allowed)
{
    if (n->kind != NODE_SCALAR || !n->broken)
        mistakes_add(r->mistakes, n->at, "'%s' must be %s, not %s", shown(r, r->key), allowed,
                     described(r, n));
}

/* --- references that YAML cut at a comma --------------------------------------------------------- */

static bool is_plain(const struct node *n)
{
    return n->kind == NODE_SCALAR && !n->quoted && !n->broken;
}

/* Parentheses opened and not closed. A quote left open counts as none: what it held cannot be known. */
static int open_parentheses(const char *s)
{
    int open = 0;
    bool quoted = false;
    for (; *s; s++) {
        if (*s == '"')
            quoted = !quoted;
        else if (!quoted)
            open += (*s == '(') - (*s == ')');
    }
    return quoted ? 0 : open;
}

static const struct node *joined_node(struct reader *r, const struct node *first, const struct text *t)
{
    struct node *n = node_plain(r->arena, arena_strdup(r->arena, text_str(t)));
    n->at = first->at;
    return n;
}

/* The item at *i, with the pieces after it that belong to it; *i moves to the last of them. */
static const struct node *join_items(struct reader *r, const struct node *list, size_t *i)
{
    const struct node *first = list->items[*i];
    if (!list->flow || !is_plain(first) || open_parentheses(first->text) <= 0)
        return first;
    AUTO(text_release) struct text t = {0};
    text_add(&t, first->text);
    for (size_t k = *i + 1; k < list->n_items && is_plain(list->items[k]); k++) {
        text_addf(&t, ", %s", list->items[k]->text);
        if (open_parentheses(text_str(&t)) <= 0) {
            *i = k;
            return joined_node(r, first, &t);
        }
    }
    return first;
}

/* The same in { }: there the pieces are keys without a value. */
static const struct node *join_pairs(struct reader *r, const struct node *map, size_t *i)
{
    const struct node *first = map->pairs[*i].value;
    if (!map->flow || !is_plain(first) || open_parentheses(first->text) <= 0)
        return first;
    AUTO(text_release) struct text t = {0};
    text_add(&t, first->text);
    for (size_t k = *i + 1; k < map->n_pairs && node_is_null(map->pairs[k].value); k++) {
        text_addf(&t, ", %s", map->pairs[k].key->text);
        if (open_parentheses(text_str(&t)) <= 0) {
            *i = k;
            return joined_node(r, first, &t);
        }
    }
    return first;
}

/* --- sections ------------------------------------------------------------------------------------ */

static bool in_section(const struct key_doc *k, const char *section)
{
    return strcmp(k->section, section) == 0;
}

/* The keys of a section as one text, and as words if wanted. */
static const char *section_keys(struct reader *r, const char *section, const char ***ret_words, size_t *ret_n)
{
    AUTO(text_release) struct text all = {0};
    for (size_t i = 0; i < r->n_keys; i++) {
        if (!in_section(&r->keys[i], section))
            continue;
        text_addf(&all, "%s%s", all.len ? ", " : "", r->keys[i].key);
        if (ret_words) {
            *ret_words = arena_push(r->arena, *ret_words, *ret_n, sizeof(**ret_words));
            (*ret_words)[(*ret_n)++] = r->keys[i].key;
        }
    }
    return arena_strdup(r->arena, text_str(&all));
}

static void unknown_key(struct reader *r, const char *section, const struct node *key)
{
    if (mistakes_full(r->mistakes))
        return;
    const char **words = NULL;
    size_t n = 0;
    const char *all = section_keys(r, section, &words, &n);
    const char *near = nearest_word(key->text, words, n);
    if (near)
        mistakes_add(r->mistakes, key->at, "unknown key '%s' (did you mean '%s'?)", shown(r, key->text),
                     near);
    else
        mistakes_add(r->mistakes, key->at, "unknown key '%s'; allowed: %s", shown(r, key->text), all);
}

static const struct key_doc *find_key(struct reader *r, const char *section, const char *key)
{
    for (size_t i = 0; i < r->n_keys; i++)
        if (in_section(&r->keys[i], section) && strcmp(r->keys[i].key, key) == 0)
            return &r->keys[i];
    return NULL;
}

const struct key_doc *reader_key(struct reader *r, const char *section, const struct node *key)
{
    const struct key_doc *k = find_key(r, section, key->text);
    if (!k)
        unknown_key(r, section, key);
    return k;
}

static void read_key(struct reader *r, const struct key_doc *k, const struct node *value, void *base)
{
    const char *outer = r->key;
    r->key = k->key;
    char *start = base;
    k->read(r, value, start + k->offset,
            k->count_offset ? (size_t *)(void *)(start + k->count_offset) : NULL);
    r->key = outer;
}

/* Notes a key of a policy that does not run yet; one that is written out as its default changes nothing. */
static bool note_not_yet(struct reader *r, const struct key_doc *k, const struct pair *p)
{
    struct policy *policy = r->policy;
    bool standard = p->value->kind == NODE_SCALAR && strcmp(p->value->text, k->standard) == 0;
    if (!k->not_yet || !policy || r->inside_not_yet || standard)
        return false;
    policy->not_yet = arena_push(r->arena, policy->not_yet, policy->n_not_yet, sizeof(*policy->not_yet));
    policy->not_yet[policy->n_not_yet].key = k->key;
    policy->not_yet[policy->n_not_yet++].at = p->key->at;
    return true;
}

static void check_required(struct reader *r, const char *section, struct place at, const struct node *map)
{
    for (size_t i = 0; i < r->n_keys; i++)
        if (in_section(&r->keys[i], section) && r->keys[i].required && !node_find(map, r->keys[i].key))
            mistakes_add(r->mistakes, at, "'%s' is missing. %s", r->keys[i].key, r->keys[i].doc);
}

void reader_defaults(struct reader *r, const char *section, void *base)
{
    for (size_t i = 0; i < r->n_keys; i++)
        if (in_section(&r->keys[i], section) && r->keys[i].standard[0])
            read_key(r, &r->keys[i], node_plain(r->arena, r->keys[i].standard), base);
}

bool reader_map(struct reader *r, const struct node *n, const char *allowed)
{
    if (n->kind != NODE_MAP) {
        reader_wrong(r, n, allowed);
        return false;
    }
    if (n->n_pairs == 0)
        mistakes_add(r->mistakes, n->at, "'%s' is an empty map; leave it out or write %s", shown(r, r->key),
                     allowed);
    return n->n_pairs > 0;
}

bool reader_section(struct reader *r, const char *section, struct place at, const struct node *map,
                    void *base)
{
    reader_defaults(r, section, base);
    if (map->kind != NODE_MAP || map->n_pairs == 0) {
        const char *all = section_keys(r, section, NULL, NULL);
        reader_wrong(r, map, arena_printf(r->arena, "a map with some of the keys (%s)", all));
        return false;
    }
    for (size_t i = 0; i < map->n_pairs; i++) {
        const struct pair *p = &map->pairs[i];
        const struct key_doc *k = reader_key(r, section, p->key);
        if (!k)
            continue;
        bool noted = note_not_yet(r, k, p);
        r->inside_not_yet |= noted;
        read_key(r, k, join_pairs(r, map, &i), base);
        r->inside_not_yet &= !noted;
    }
    check_required(r, section, at, map);
    return true;
}

/* --- values -------------------------------------------------------------------------------------- */

const char *reader_text(struct reader *r, const struct node *n, const char *allowed)
{
    if (n->kind == NODE_SCALAR && !node_is_null(n) && !n->broken)
        return n->text;
    reader_wrong(r, n, allowed);
    return NULL;
}

const struct node **reader_items(struct reader *r, const struct node *n, size_t *ret_n)
{
    const struct node **items = NULL;
    size_t n_items = 0;
    if (n->kind == NODE_LIST && n->n_items == 0)
        mistakes_add(r->mistakes, n->at, "'%s' is an empty list; leave it out or name something",
                     shown(r, r->key));
    if (n->kind != NODE_LIST) {
        items = arena_push(r->arena, items, n_items, sizeof(*items));
        items[n_items++] = n;
    }
    for (size_t i = 0; i < n->n_items; i++) {
        items = arena_push(r->arena, items, n_items, sizeof(*items));
        items[n_items++] = join_items(r, n, &i);
    }
    *ret_n = n_items;
    return items;
}

static const char *either(struct reader *r, const char *const *words, size_t n)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < n; i++)
        text_addf(&t, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", words[i]);
    return arena_strdup(r->arena, text_str(&t));
}

int reader_choice(struct reader *r, const struct node *n, const char *const *words, size_t n_words)
{
    const char *allowed = either(r, words, n_words);
    const char *s = reader_text(r, n, allowed);
    if (!s)
        return -1;
    for (size_t i = 0; i < n_words; i++)
        if (strcmp(words[i], s) == 0)
            return (int)i;
    const char *near = nearest_word(s, words, n_words);
    if (near)
        allowed = arena_printf(r->arena, "%s (did you mean %s?)", allowed, near);
    reader_wrong(r, n, allowed);
    return -1;
}

struct scalar reader_scalar(const struct node *n)
{
    bool null = node_is_null(n);
    return (struct scalar){.null = null, .quoted = n->quoted, .text = null ? NULL : n->text, .at = n->at};
}

const char *reader_path(struct reader *r, const char *path)
{
    const char *slash = strrchr(r->file, '/');
    if (path[0] == '/' || !slash)
        return path;
    return arena_printf(r->arena, "%.*s/%s", (int)(slash - r->file), r->file, path);
}

void read_bool(struct reader *r, const struct node *n, void *field, size_t *count)
{
    static const struct {
        const char *word;
        bool value;
    } slips[] = {{"yes", true}, {"on", true}, {"1", true}, {"no", false}, {"off", false}, {"0", false}};
    (void)count;
    const char *s = reader_text(r, n, "true or false");
    if (!s)
        return;
    bool is_true = !strcmp(s, "true") || !strcmp(s, "True") || !strcmp(s, "TRUE");
    bool is_false = !strcmp(s, "false") || !strcmp(s, "False") || !strcmp(s, "FALSE");
    if (!n->quoted && (is_true || is_false)) {
        *(bool *)field = is_true;
        return;
    }
    const char *allowed = "true or false";
    for (size_t i = 0; i < COUNT_OF(slips); i++)
        if (strcasecmp(s, slips[i].word) == 0)
            allowed =
                slips[i].value ? "true or false (did you mean true?)" : "true or false (did you mean false?)";
    reader_wrong(r, n, allowed);
}

static bool all_digits(const char *s)
{
    return *s && strspn(s, "0123456789") == strlen(s);
}

void read_count(struct reader *r, const struct node *n, void *field, size_t *count)
{
    static const char allowed[] = "a whole number of at least 1";
    (void)count;
    const char *s = reader_text(r, n, allowed);
    if (!s)
        return;
    int64_t value = 0;
    bool good = !n->quoted && all_digits(s);
    for (; good && *s; s++)
        good = mul_i64(value, 10, &value) && add_i64(value, *s - '0', &value);
    if (good && value >= 1)
        *(int64_t *)field = value;
    else
        reader_wrong(r, n, allowed);
}

/* Digits with at most one point among them; the locale has no say. */
static bool parse_decimal(const char *s, double *ret)
{
    double value = 0, scale = 1;
    bool point = false, digit = false;
    size_t len = strlen(s);
    for (; *s && len <= 18; s++) {
        if (*s == '.' && !point) {
            point = true;
        } else if (*s >= '0' && *s <= '9') {
            digit = true;
            value = value * 10 + (*s - '0');
            scale *= point ? 10 : 1;
        } else {
            return false;
        }
    }
    *ret = value / scale;
    return digit && len <= 18;
}

static void read_decimal(struct reader *r, const struct node *n, double *field, double most,
                         const char *allowed)
{
    const char *s = reader_text(r, n, allowed);
    if (!s)
        return;
    double value;
    if (!n->quoted && parse_decimal(s, &value) && value > 0 && value <= most)
        *field = value;
    else
        reader_wrong(r, n, allowed);
}

void read_fraction(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    read_decimal(r, n, field, 1, "a fraction above 0 and at most 1, like 0.25");
}

void read_rate(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    read_decimal(r, n, field, 1e18, "a number above 0");
}

void read_text(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    const char *s = reader_text(r, n, "a text");
    if (s && !*s)
        reader_wrong(r, n, "a text with something in it");
    else if (s)
        *(const char **)field = s;
}

enum { MOST_ITEMS = 100 };

/* Lists that are looked through for each of their items are short. */
static bool too_many(struct reader *r, const struct node *n, size_t n_items)
{
    if (n_items > MOST_ITEMS)
        mistakes_add(r->mistakes, n->at, "'%s' has more than %d items", r->key, MOST_ITEMS);
    return n_items > MOST_ITEMS;
}

void read_texts(struct reader *r, const struct node *n, void *field, size_t *count)
{
    const char **list = NULL;
    size_t n_items, n_list = 0;
    const struct node **items = reader_items(r, n, &n_items);
    if (too_many(r, n, n_items))
        return;
    for (size_t i = 0; i < n_items; i++) {
        list = arena_push(r->arena, list, n_list, sizeof(*list));
        read_text(r, items[i], &list[n_list++], NULL);
    }
    *(const char ***)field = list;
    *count = n_list;
}

void read_path(struct reader *r, const struct node *n, void *field, size_t *count)
{
    const char *path = NULL;
    read_text(r, n, &path, count);
    if (path)
        *(const char **)field = reader_path(r, path);
}

/* Only what YAML takes for an integer counts in milliseconds; a signed one is refused there by name. */
static bool is_integer(const struct node *n)
{
    return !n->quoted && all_digits(n->text + (*n->text == '-' || *n->text == '+'));
}

bool reader_span(struct reader *r, const struct node *n, struct span *ret)
{
    const char *s = reader_text(r, n, "a duration like 90s, 1h30m or 7d");
    if (!s)
        return false;
    struct err e = ERR_INIT;
    if ((is_integer(n) ? span_parse_ms(s, ret, &e) : span_parse(s, ret, &e)) == 0)
        return true;
    mistakes_add(r->mistakes, n->at, "'%s': %s", r->key, e.text);
    return false;
}

/* What was meant by a number: one that makes days as seconds counts those; a small one has lost its unit. */
static const char *meant_words(struct reader *r, const char *digits, int64_t as_ms_us)
{
    enum { SMALL = 1000 };
    AUTO(text_release) struct text seconds = {0};
    int64_t as_seconds_us;
    if (as_ms_us < SMALL * US_PER_MS)
        return arena_printf(r->arena, "%sd, %sh or %sm", digits, digits, digits);
    if (!mul_i64(as_ms_us, 1000, &as_seconds_us))
        return "it with a unit, like 30d";
    span_format(as_seconds_us, &seconds);
    return arena_printf(r->arena, "%s if it counts seconds", text_str(&seconds));
}

bool reader_kept_span(struct reader *r, const struct node *n, struct span *ret)
{
    const int64_t minute = 60 * US_PER_S;
    AUTO(text_release) struct text words = {0};
    struct span span;
    if (!reader_span(r, n, &span))
        return false;
    if (!is_integer(n) || span.us % minute == 0) {
        *ret = span;
        return true;
    }
    span_format_words(span.us, &words);
    mistakes_add(r->mistakes, n->at,
                 "'%s': %s is %s, for a number counts milliseconds; write %s (or %sms if that is meant)",
                 r->key, n->text, text_str(&words), meant_words(r, n->text, span.us), n->text);
    return false;
}

static void take_time(struct reader *r, const struct node *n, struct span span, void *field)
{
    if (span.kind == SPAN_TIME && span.us > 0)
        *(struct span *)field = span;
    else
        reader_wrong(r, n, "a duration longer than 0");
}

void read_time(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct span span;
    if (reader_span(r, n, &span))
        take_time(r, n, span, field);
}

void read_kept(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct span span;
    if (reader_kept_span(r, n, &span))
        take_time(r, n, span, field);
}

static void take_time_or_none(struct reader *r, const struct node *n, struct span span, void *field)
{
    if (span.kind != SPAN_NEVER)
        *(struct span *)field = span;
    else
        reader_wrong(r, n, "a duration");
}

void read_time_or_none(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct span span;
    if (reader_span(r, n, &span))
        take_time_or_none(r, n, span, field);
}

void read_kept_or_none(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct span span;
    if (reader_kept_span(r, n, &span))
        take_time_or_none(r, n, span, field);
}

void read_delay(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct span span;
    if (reader_span(r, n, &span))
        *(struct span *)field = span;
}

void read_time_us(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct span span = {0};
    read_time(r, n, &span, count);
    if (span.us > 0)
        *(int64_t *)field = span.us;
}

void read_zone(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    const char *s = reader_text(r, n, "a time zone like Europe/Prague");
    if (!s)
        return;
    struct err e = ERR_INIT;
    AUTO(zone_free_p) struct zone *zone = NULL;
    if (strcmp(s, "UTC") != 0 && zone_open(s, &zone, &e) != 0)
        mistakes_add(r->mistakes, n->at, "'%s': %s", r->key, e.text);
    else
        *(const char **)field = s;
}

void read_name(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    const char *s = reader_text(r, n, "the name of a column");
    struct err e = ERR_INIT;
    struct name *name = field;
    if (!s)
        return;
    if (name_parse(r->arena, s, name, &e) != 0)
        mistakes_add(r->mistakes, n->at, "'%s': %s", r->key, e.text);
    name->at = n->at;
}

void read_names(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct name *list = NULL;
    size_t n_items, n_list = 0;
    const struct node **items = reader_items(r, n, &n_items);
    if (too_many(r, n, n_items))
        return;
    for (size_t i = 0; i < n_items; i++) {
        list = arena_push(r->arena, list, n_list, sizeof(*list));
        read_name(r, items[i], &list[n_list], NULL);
        for (size_t k = 0; k < n_list && list[n_list].text; k++)
            if (list[k].text && strcmp(list[k].text, list[n_list].text) == 0)
                mistakes_add(r->mistakes, items[i]->at, "'%s' names the column '%s' twice", r->key,
                             shown(r, list[k].text));
        n_list++;
    }
    *(struct name **)field = list;
    *count = n_list;
}

void read_table(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    const char *s = reader_text(r, n, "the name of a table");
    struct err e = ERR_INIT;
    struct table_name *table = field;
    if (s && table_name_parse(r->arena, s, table, &e) != 0)
        mistakes_add(r->mistakes, n->at, "'%s': %s", r->key, e.text);
    table->at = n->at;
}

void read_ref(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    const char *s = reader_text(r, n, "a reference, table(column, …)");
    struct err e = ERR_INIT;
    struct ref *ref = field;
    if (s && ref_parse(r->arena, s, ref, &e) != 0)
        mistakes_add(r->mistakes, n->at, "'%s': %s", r->key, e.text);
    ref->at = ref->table.at = n->at;
}

void read_refs(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct ref *list = NULL;
    size_t n_items, n_list = 0;
    const struct node **items = reader_items(r, n, &n_items);
    for (size_t i = 0; i < n_items; i++) {
        list = arena_push(r->arena, list, n_list, sizeof(*list));
        read_ref(r, items[i], &list[n_list++], NULL);
    }
    *(struct ref **)field = list;
    *count = n_list;
}
