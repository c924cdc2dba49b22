/* yaml: libfyaml's events -> a tree of nodes. The only file that knows libfyaml. */
#include "contract/yaml.h"

#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ANCHORS = 1000 }; /* an alias looks through all of them */

struct anchor {
    const char *name;
    struct node *node; /* NULL while the node it names is still open */
};

/* A list or map that is not closed yet; key is a map's key that waits for its value. */
struct open_node {
    struct node *node;
    struct node *key;
    size_t anchor; /* index + 1; 0: none */
};

struct builder {
    struct arena *arena;
    struct mistakes *mistakes;
    struct open_node open[YAML_MOST_DEPTH];
    size_t n_open;
    struct anchor *anchors;
    size_t n_anchors;
    struct node *root;
    struct place last;   /* of the newest event that had one */
    size_t nodes, bytes; /* so far, aliases written out */
    bool stopped;        /* a mistake after which reading on makes no sense */
};

/* A mistake that ends the reading. */
#define STOP(b, at, ...)                                                                                     \
    do {                                                                                                     \
        mistakes_add((b)->mistakes, (at), __VA_ARGS__);                                                      \
        (b)->stopped = true;                                                                                 \
    } while (0)

/* --- ${NAME} ------------------------------------------------------------------------------------- */

static size_t name_length(const char *s)
{
    size_t n = 0;
    while ((s[n] >= 'A' && s[n] <= 'Z') || (s[n] >= 'a' && s[n] <= 'z') || s[n] == '_' ||
           (n > 0 && s[n] >= '0' && s[n] <= '9'))
        n++;
    return n;
}

/* Adds the value of what stands between ${ and }. With ":-", empty counts as unset, as in a shell. */
static bool add_variable(struct builder *b, struct place at, const char *inside, size_t len, struct text *out)
{
    size_t name_len = name_length(inside);
    bool has_default = len >= name_len + 2 && strncmp(inside + name_len, ":-", 2) == 0;
    bool nested = memmem(inside, len, "${", 2) != NULL;
    if (name_len == 0 || nested || (name_len != len && !has_default)) {
        mistakes_add(b->mistakes, at,
                     "'${' is not followed by NAME} or NAME:-default} (a literal '${' is '$${')");
        return false;
    }
    const char *name = arena_strndup(b->arena, inside, name_len);
    const char *value = getenv(name);
    if (has_default && (!value || !*value)) {
        text_add_n(out, inside + name_len + 2, len - name_len - 2);
        return true;
    }
    if (!value) {
        mistakes_add(b->mistakes, at,
                     "'${%.64s}' is not set in the environment and has no default (${NAME:-default})", name);
        return false;
    }
    struct place bad;
    if (!yaml_check_text(value, strlen(value), &bad)) {
        mistakes_add(b->mistakes, at, "the environment variable '%.64s' is not UTF-8 text", name);
        return false;
    }
    text_add(out, value);
    return true;
}

/* The text with every ${…} replaced, or NULL after a mistake. */
static const char *replaced(struct builder *b, struct place at, const char *text)
{
    if (!strstr(text, "${"))
        return text;
    AUTO(text_release) struct text out = {0};
    for (const char *p = text; *p;) {
        if (strncmp(p, "$${", 3) == 0) {
            text_add(&out, "${");
            p += 3;
        } else if (strncmp(p, "${", 2) == 0) {
            const char *end = strchr(p, '}');
            if (!end) {
                mistakes_add(b->mistakes, at, "'${' has no closing '}' (a literal '${' is '$${')");
                return NULL;
            }
            if (!add_variable(b, at, p + 2, (size_t)(end - p - 2), &out))
                return NULL;
            p = end + 1;
        } else {
            text_add_n(&out, p++, 1);
        }
    }
    b->bytes += out.len;
    if (b->bytes > YAML_MOST_BYTES) {
        STOP(b, at, "the texts of the file are longer than 4 MiB once ${…} is replaced");
        return NULL;
    }
    return arena_strndup(b->arena, text_str(&out), out.len);
}

/* --- building ------------------------------------------------------------------------------------ */

static struct place place_of(struct builder *b, struct fy_event *event)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (mark)
        b->last = (struct place){mark->line + 1, mark->column + 1};
    return b->last;
}

static void count_nodes(struct builder *b, struct place at, size_t more)
{
    b->nodes += more;
    if (b->nodes > YAML_MOST_NODES && !b->stopped)
        STOP(b, at, "the file has more than %d nodes (aliases and merge keys count as written out)",
             YAML_MOST_NODES);
}

static struct node *new_node(struct builder *b, enum node_kind kind, struct place at)
{
    struct node *n = arena_alloc(b->arena, sizeof(*n));
    *n = (struct node){.kind = kind, .at = at, .size = 1, .depth = 1};
    count_nodes(b, at, 1);
    return n;
}

static const char *token_text(struct builder *b, struct fy_token *token, bool *ret_has_nul)
{
    size_t len = 0;
    const char *s = token ? fy_token_get_text(token, &len) : NULL;
    *ret_has_nul = s && memchr(s, '\0', len);
    return s ? arena_strndup(b->arena, s, len) : "";
}

/* The core tags say what YAML says anyway, but for !!str. */
static void apply_tag(struct builder *b, struct node *n, struct fy_token *tag)
{
    static const char core[] = "tag:yaml.org,2002:";
    if (!tag)
        return;
    bool nul;
    const char *name = token_text(b, tag, &nul);
    const char *kind = strncmp(name, core, sizeof(core) - 1) == 0 ? name + sizeof(core) - 1 : "";
    if (n->kind == NODE_SCALAR && strcmp(kind, "str") == 0)
        n->quoted = true;
    else if (n->kind == NODE_SCALAR && strcmp(name, "!") == 0)
        n->quoted = true;
    else if (!((n->kind == NODE_SCALAR && (!strcmp(kind, "int") || !strcmp(kind, "float") ||
                                           !strcmp(kind, "bool") || !strcmp(kind, "null"))) ||
               (n->kind == NODE_LIST && !strcmp(kind, "seq")) ||
               (n->kind == NODE_MAP && !strcmp(kind, "map"))))
        mistakes_add(b->mistakes, n->at, "the tag '%.64s' is not known here; write the value without a tag",
                     name);
}

static void close_map(struct builder *b, struct node *map);

/* Puts a complete node where it belongs: root, list item, key or value. */
static void attach(struct builder *b, struct node *n)
{
    if (b->n_open == 0) {
        b->root = n;
        return;
    }
    struct open_node *top = &b->open[b->n_open - 1];
    struct node *parent = top->node;
    parent->size += n->size;
    if (n->depth >= parent->depth)
        parent->depth = n->depth + 1;
    if (b->n_open + n->depth > YAML_MOST_DEPTH) {
        STOP(b, n->at, "nested deeper than %d levels", YAML_MOST_DEPTH);
    } else if (parent->kind == NODE_LIST) {
        parent->items = arena_push(b->arena, parent->items, parent->n_items, sizeof(*parent->items));
        parent->items[parent->n_items++] = n;
    } else if (!top->key) {
        top->key = n;
    } else {
        parent->pairs = arena_push(b->arena, parent->pairs, parent->n_pairs, sizeof(*parent->pairs));
        parent->pairs[parent->n_pairs++] = (struct pair){top->key, n};
        top->key = NULL;
    }
}

static size_t add_anchor(struct builder *b, struct fy_event *event, struct node *n)
{
    struct fy_token *token = fy_event_get_anchor_token(event);
    if (!token)
        return 0;
    if (b->n_anchors >= MOST_ANCHORS)
        STOP(b, b->last, "more than %d anchors", MOST_ANCHORS);
    bool nul;
    b->anchors = arena_push(b->arena, b->anchors, b->n_anchors, sizeof(*b->anchors));
    b->anchors[b->n_anchors++] = (struct anchor){token_text(b, token, &nul), n};
    return b->n_anchors;
}

static void on_scalar(struct builder *b, struct fy_event *event)
{
    struct node *n = new_node(b, NODE_SCALAR, place_of(b, event));
    struct fy_token *token = event->scalar.value;
    enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;
    if ((style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) && n->at.column > 1)
        n->at.column--; /* libfyaml points behind the quote */
    bool nul;
    n->text = token_text(b, token, &nul);
    n->quoted = style != FYSS_PLAIN;
    apply_tag(b, n, fy_event_get_tag_token(event));
    if (nul) {
        mistakes_add(b->mistakes, n->at, "a text with a NUL character (\\0) in it");
        n->broken = true;
    }
    const char *text = replaced(b, n->at, n->text);
    if (text && !*text && *n->text && !n->quoted) {
        mistakes_add(b->mistakes, n->at,
                     "nothing is left here once ${…} is replaced; put it in quotes if an "
                     "empty text is meant");
        text = NULL;
    }
    if (text)
        n->text = text;
    else
        n->broken = true;
    add_anchor(b, event, n);
    attach(b, n);
}

static void on_alias(struct builder *b, struct fy_event *event)
{
    struct place at = place_of(b, event);
    bool nul;
    const char *name = token_text(b, event->alias.anchor, &nul);
    size_t i = b->n_anchors;
    while (i > 0 && strcmp(b->anchors[i - 1].name, name) != 0)
        i--;
    if (i == 0) {
        STOP(b, at, "'*%.64s' names no anchor above; a text that begins with * is put in quotes", name);
    } else if (!b->anchors[i - 1].node) {
        STOP(b, at, "'*%.64s' is inside the node it names", name);
    } else {
        struct node *n = b->anchors[i - 1].node;
        count_nodes(b, at, n->size);
        attach(b, n);
    }
}

static void on_open(struct builder *b, struct fy_event *event, enum node_kind kind)
{
    struct place at = place_of(b, event);
    struct node *n = new_node(b, kind, at);
    n->flow = fy_event_get_node_style(event) == FYNS_FLOW;
    apply_tag(b, n, fy_event_get_tag_token(event));
    if (b->n_open >= YAML_MOST_DEPTH) {
        STOP(b, at, "nested deeper than %d levels", YAML_MOST_DEPTH);
        return;
    }
    b->open[b->n_open++] = (struct open_node){n, NULL, add_anchor(b, event, NULL)};
}

static void on_close(struct builder *b, struct fy_event *event)
{
    place_of(b, event);
    struct open_node top = b->open[--b->n_open];
    if (top.node->kind == NODE_MAP)
        close_map(b, top.node);
    if (top.anchor)
        b->anchors[top.anchor - 1].node = top.node;
    attach(b, top.node);
}

/* --- maps: duplicate and merge keys -------------------------------------------------------------- */

struct ranked {
    struct pair pair;
    size_t rank; /* in the order of precedence; those from merge keys follow the map's own */
    bool merged;
};

static int by_key(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = strcmp(a->pair.key->text, b->pair.key->text);
    return order ? order : a->rank < b->rank ? -1 : 1;
}

static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return a->rank < b->rank ? -1 : 1;
}

struct ranked_list {
    struct ranked *list;
    size_t n;
};

static void ranked_release(struct ranked_list *l)
{
    free(l->list);
}

static void add_pairs(struct ranked_list *l, const struct node *map, bool merged)
{
    l->list = mem_grow(l->list, l->n + map->n_pairs, sizeof(*l->list));
    for (size_t i = 0; i < map->n_pairs; i++, l->n++)
        l->list[l->n] = (struct ranked){map->pairs[i], l->n, merged};
}

static void merge_from(struct builder *b, struct ranked_list *l, const struct node *source)
{
    if (source->kind == NODE_MAP) {
        add_pairs(l, source, true); /* counted as nodes where it was written, or named by its alias */
    } else {
        mistakes_add(b->mistakes, source->at, "'<<' merges a map or a list of maps, usually *aliases");
    }
}

static bool is_merge_key(const struct node *key)
{
    return key->kind == NODE_SCALAR && !key->quoted && strcmp(key->text, "<<") == 0;
}

/* Takes the `<<` pairs out of the map's own and adds what they merge. */
static void merge(struct builder *b, struct node *map, struct ranked_list *l)
{
    struct node own = *map;
    own.n_pairs = 0;
    own.pairs = arena_alloc(b->arena, (map->n_pairs + 1) * sizeof(*own.pairs));
    for (size_t i = 0; i < map->n_pairs; i++) {
        struct node *key = map->pairs[i].key;
        if (key->kind != NODE_SCALAR)
            mistakes_add(b->mistakes, key->at, "a key must be a text, not a list or map");
        else if (!is_merge_key(key) && !key->broken)
            own.pairs[own.n_pairs++] = map->pairs[i];
    }
    add_pairs(l, &own, false);
    for (size_t i = 0; i < map->n_pairs && !b->stopped; i++) {
        const struct node *value = map->pairs[i].value;
        if (!is_merge_key(map->pairs[i].key))
            continue;
        if (value->kind != NODE_LIST)
            merge_from(b, l, value);
        for (size_t k = 0; k < value->n_items && !b->stopped; k++)
            merge_from(b, l, value->items[k]);
    }
}

/* Sorting finds equal keys in n log n, however large the map. */
static void close_map(struct builder *b, struct node *map)
{
    AUTO(ranked_release) struct ranked_list all = {0};
    merge(b, map, &all);
    qsort(all.list, all.n, sizeof(*all.list), by_key);
    size_t kept = 0;
    for (size_t i = 0; i < all.n; i++) {
        const struct node *key = all.list[i].pair.key;
        const struct node *first = kept > 0 ? all.list[kept - 1].pair.key : NULL;
        if (!first || strcmp(first->text, key->text) != 0)
            all.list[kept++] = all.list[i];
        else if (!all.list[i].merged)
            mistakes_add(b->mistakes, key->at, "the key '%.64s' is here twice; first on line %d, column %d",
                         key->text, first->at.line, first->at.column);
    }
    qsort(all.list, kept, sizeof(*all.list), by_rank);
    map->pairs = arena_alloc(b->arena, (kept + 1) * sizeof(*map->pairs));
    map->n_pairs = kept;
    for (size_t i = 0; i < kept; i++) {
        const struct node *value = all.list[i].pair.value;
        map->pairs[i] = all.list[i].pair;
        if (value->depth >= map->depth)
            map->depth = value->depth + 1;
    }
}

/* --- events -------------------------------------------------------------------------------------- */

static void on_event(struct builder *b, struct fy_event *event)
{
    switch (event->type) {
    case FYET_DOCUMENT_START:
        if (b->root)
            STOP(b, place_of(b, event), "a second document begins here; a contract is one document");
        break;
    case FYET_MAPPING_START:
        on_open(b, event, NODE_MAP);
        break;
    case FYET_SEQUENCE_START:
        on_open(b, event, NODE_LIST);
        break;
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        on_close(b, event);
        break;
    case FYET_SCALAR:
        on_scalar(b, event);
        break;
    case FYET_ALIAS:
        on_alias(b, event);
        break;
    default:
        break;
    }
}

/* What libfyaml says is short; two slips that YAML makes easy get a word more. */
static const char *hint(const char *yaml, size_t len, struct place at)
{
    const char *line = yaml, *end = yaml + len;
    for (int i = 1; i < at.line && line < end; i++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        line = newline ? newline + 1 : end;
    }
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    size_t line_len = (size_t)((newline ? newline : end) - line);
    if (memmem(line, line_len, "${", 2))
        return "; inside { } and [ ] put a value with ${…} in quotes";
    if (memmem(line, line_len, ": *", 3))
        return "; a text that begins with * is put in quotes";
    return "";
}

static void add_syntax_mistakes(struct builder *b, struct fy_diag *diag, const char *yaml, size_t len)
{
    void *position = NULL;
    bool any = false;
    for (struct fy_diag_error *d; (d = fy_diag_errors_iterate(diag, &position));) {
        struct place at = {d->line > 0 ? d->line : b->last.line, d->column > 0 ? d->column : b->last.column};
        mistakes_add(b->mistakes, at, "not valid YAML: %s%s", d->msg, hint(yaml, len, at));
        any = true;
    }
    if (!any)
        mistakes_add(b->mistakes, b->last, "not valid YAML");
}

static void diag_destroy_p(struct fy_diag **diag)
{
    fy_diag_destroy(*diag);
}

static void parser_destroy_p(struct fy_parser **parser)
{
    fy_parser_destroy(*parser);
}

static struct fy_diag *quiet_diag(void)
{
    struct fy_diag_cfg cfg;
    fy_diag_cfg_default(&cfg);
    cfg.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&cfg);
    if (!diag)
        abort(); /* only when out of memory */
    fy_diag_set_collect_errors(diag, true);
    return diag;
}

/* False after a syntax error or a mistake that stops. */
static bool build(struct builder *b, const char *yaml, size_t len)
{
    AUTO(diag_destroy_p) struct fy_diag *diag = quiet_diag();
    struct fy_parse_cfg cfg = {
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE | FYPCF_SLOPPY_FLOW_INDENTATION,
        .diag = diag,
    };
    AUTO(parser_destroy_p) struct fy_parser *parser = fy_parser_create(&cfg);
    if (!parser || fy_parser_set_string(parser, yaml, len) != 0)
        abort(); /* only when out of memory */
    for (struct fy_event *event; !b->stopped && (event = fy_parser_parse(parser));) {
        on_event(b, event);
        fy_parser_event_free(parser, event);
    }
    if (!b->stopped && fy_parser_get_stream_error(parser)) {
        add_syntax_mistakes(b, diag, yaml, len);
        b->stopped = true;
    }
    return !b->stopped;
}

/* The length of the character of UTF-8 that begins here; 0: none does, or one that no text holds. */
static size_t character_length(const unsigned char *s, size_t len)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 || s[0] == '\t' || s[0] == '\n' || s[0] == '\r' ? s[0] != 0x7f : 0;
    size_t need = s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (s[0] > 0xf4 || need == 0 || need > len)
        return 0;
    for (size_t i = 1; i < need; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
    bool beyond = s[0] == 0xf4 && s[1] >= 0x90;
    bool control = s[0] == 0xc2 && s[1] < 0xa0 && s[1] != 0x85;
    return overlong || surrogate || beyond || control ? 0 : need;
}

bool yaml_check_text(const char *s, size_t len, struct place *ret_bad)
{
    struct place at = {1, 1};
    for (size_t i = 0; i < len;) {
        size_t n = character_length((const unsigned char *)s + i, len - i);
        if (n == 0) {
            *ret_bad = at;
            return false;
        }
        at.column++;
        if (s[i] == '\n')
            at = (struct place){at.line + 1, 1};
        i += n;
    }
    return true;
}

bool node_is_null(const struct node *n)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (n->kind != NODE_SCALAR || n->quoted || n->broken)
        return false;
    for (size_t i = 0; i < COUNT_OF(nulls); i++)
        if (strcmp(n->text, nulls[i]) == 0)
            return true;
    return false;
}

const struct pair *node_find(const struct node *map, const char *key)
{
    for (size_t i = 0; i < map->n_pairs; i++)
        if (strcmp(map->pairs[i].key->text, key) == 0)
            return &map->pairs[i];
    return NULL;
}

struct node *node_plain(struct arena *a, const char *text)
{
    struct node *n = arena_alloc(a, sizeof(*n));
    *n = (struct node){.kind = NODE_SCALAR, .text = text, .size = 1, .depth = 1};
    return n;
}

struct node *yaml_parse(struct arena *a, const char *yaml, size_t len, struct mistakes *mistakes)
{
    struct place at = {1, 1};
    if (len > YAML_MOST_BYTES) {
        mistakes_add(mistakes, at, "the file is larger than 4 MiB");
        return NULL;
    }
    if (!yaml_check_text(yaml, len, &at)) {
        mistakes_add(mistakes, at, "not a text: a byte that is no UTF-8, or a control character");
        return NULL;
    }
    struct builder b = {.arena = a, .mistakes = mistakes, .last = {1, 1}};
    if (!build(&b, yaml, len))
        return NULL;
    if (!b.root)
        mistakes_add(mistakes, at, "the file is empty");
    return b.root;
}
