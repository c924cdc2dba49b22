/* written: contracts compared as they are written. See written.h. */
#include "contract/written.h"

#include <string.h>

#include "base/quote.h"
#include "contract/yaml.h"

struct difference {
    const char *what;
    written_say *say;
    void *context;
};

enum { WORDS_MOST = 100 }; /* bytes of a value that are said */

/* As it would be written in a list: quotes only where something else would be read. */
static void put_scalar(const char *s, struct text *out)
{
    bool bare = *s && !strpbrk(s, "\"'#,:[]{}") && s[0] != ' ' && s[strlen(s) - 1] != ' ' && yaml_can_hold(s);
    if (bare)
        text_add(out, s);
    else
        yaml_scalar(out, s, true);
}

static void put_node(const struct node *n, struct text *out)
{
    if (n->kind == NODE_SCALAR && (n->broken || node_is_null(n))) {
        text_add(out, "null");
    } else if (n->kind == NODE_SCALAR) {
        put_scalar(n->text, out);
    } else if (n->kind == NODE_LIST) {
        for (size_t i = 0; i < n->n_items; i++) {
            text_add(out, i ? ", " : "[");
            put_node(n->items[i], out);
        }
        text_add(out, n->n_items ? "]" : "[]");
    } else {
        for (size_t i = 0; i < n->n_pairs; i++) {
            text_addf(out, "%s%s: ", i ? ", " : "{ ", n->pairs[i].key->text);
            put_node(n->pairs[i].value, out);
        }
        text_add(out, n->n_pairs ? " }" : "{}");
    }
}

static void put_short(const char *s, struct text *out)
{
    size_t len = 0;
    for (size_t n; s[len] && len < WORDS_MOST; len += n ? n : 1)
        n = utf8_length(s + len);
    text_add_n(out, s, len);
    text_add(out, s[len] ? "\xE2\x80\xA6" : "");
}

static const struct node *value_of(const struct node *map, const char *key)
{
    const struct pair *p = map && map->kind == NODE_MAP ? node_find(map, key) : NULL;
    return p ? p->value : NULL;
}

static void compare_nodes(const struct difference *d, const char *key, const struct node *from,
                          const struct node *to);

static void compare_key(const struct difference *d, const char *path, const char *key,
                        const struct node *from, const struct node *to)
{
    AUTO(text_release) struct text whole = {0};
    text_addf(&whole, "%s%s%s", path, *path ? "." : "", key);
    compare_nodes(d, text_str(&whole), from, to);
}

static void compare_maps(const struct difference *d, const char *path, const struct node *from,
                         const struct node *to)
{
    for (size_t i = 0; i < to->n_pairs; i++) {
        const char *key = to->pairs[i].key->text;
        compare_key(d, path, key, value_of(from, key), to->pairs[i].value);
    }
    for (size_t i = 0; i < from->n_pairs; i++)
        if (!node_find(to, from->pairs[i].key->text))
            compare_key(d, path, from->pairs[i].key->text, from->pairs[i].value, NULL);
}

static void put_side(const struct node *n, struct text *out)
{
    AUTO(text_release) struct text whole = {0};
    if (n)
        put_node(n, &whole);
    put_short(n ? text_str(&whole) : "unset", out);
}

/* NULL: it is not written. It ends, as a file is no deeper than YAML_MOST_DEPTH. */
static void compare_nodes(const struct difference *d, const char *key, const struct node *from,
                          const struct node *to)
{
    AUTO(text_release) struct text before = {0}, now = {0}, words = {0};
    if (from && to && from->kind == NODE_MAP && to->kind == NODE_MAP) {
        compare_maps(d, key, from, to);
        return;
    }
    if (from)
        put_node(from, &before);
    if (to)
        put_node(to, &now);
    if (!from == !to && strcmp(text_str(&before), text_str(&now)) == 0)
        return;
    text_addf(&words, "%s: %s ", d->what, key);
    put_side(from, &words);
    text_add(&words, " -> ");
    put_side(to, &words);
    d->say(d->context, text_str(&words));
}

void written_compare(const struct contract *from, const struct contract *to, const char *section,
                     const char *name, const char *what, written_say *say, void *context)
{
    const struct difference d = {what, say, context};
    const struct node *before = value_of(value_of(from->root, section), name),
                      *now = value_of(value_of(to->root, section), name);
    if (before && now)
        compare_nodes(&d, "", before, now);
}
