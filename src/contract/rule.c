/* rule: the keys of a policy that need more than a plain value, and the check of a policy as a whole. */
#include "contract/rule.h"

#include <string.h>
#include <strings.h>

/* --- keep and unit ------------------------------------------------------------------------------- */

void read_unit(struct reader *r, const struct node *n, void *field, size_t *count)
{
    static const char *const words[] = {"s", "ms", "us"};
    static const int64_t sizes[] = {US_PER_S, US_PER_MS, 1};
    (void)count;
    int i = reader_choice(r, n, words, COUNT_OF(words));
    if (i >= 0)
        *(int64_t *)field = sizes[i];
}

/* A unit is what can follow a 1 in a duration, and us. */
void read_keep_unit(struct reader *r, const struct node *n, void *field, size_t *count)
{
    static const char allowed[] = "us, ms, s, m, h, d or w";
    (void)count;
    const char *s = reader_text(r, n, allowed);
    if (!s)
        return;
    struct span span;
    bool letters = *s && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(s);
    if (strcasecmp(s, "us") == 0)
        *(int64_t *)field = 1;
    else if (letters && span_parse(arena_printf(r->arena, "1%s", s), &span, NULL) == 0)
        *(int64_t *)field = span.us;
    else
        reader_wrong(r, n, allowed);
}

void read_keep_span(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct span span;
    if (!reader_kept_span(r, n, &span))
        return;
    if (span.kind == SPAN_TIME && span.us == 0)
        mistakes_add(r->mistakes, n->at, "'%s' is 0, which deletes at once; write 'now' if that is meant",
                     r->key);
    else
        *(struct span *)field = span;
}

void read_keep_values(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct keep *keep = field;
    if (!reader_map(r, n, "a map of values and durations, like { failed: 24h }"))
        return;
    for (size_t i = 0; i < n->n_pairs; i++) {
        keep->values = arena_push(r->arena, keep->values, keep->n_values, sizeof(*keep->values));
        keep->values[keep->n_values].value = reader_scalar(n->pairs[i].key);
        const char *outer = r->key;
        r->key = n->pairs[i].key->text;
        read_keep_span(r, n->pairs[i].value, &keep->values[keep->n_values++].span, NULL);
        r->key = outer;
    }
}

/* { by, values, otherwise } or { column, unit }: which of them is said by the key that only one has. */
static void check_keep_map(struct reader *r, const struct node *map, struct keep *keep,
                           size_t mistakes_before)
{
    static const char *const of_by[] = {"by", "values", "otherwise"}, *const of_column[] = {"column", "unit"};
    const struct pair *by = node_find(map, "by"), *column = node_find(map, "column");
    if (!by && !column && r->mistakes->n > mistakes_before)
        return; /* one of them is misspelt */
    if (!by == !column) {
        mistakes_add(r->mistakes, map->at,
                     "'keep' must be a duration, { by, values, otherwise } or { column, unit }");
        return;
    }
    keep->kind = by ? KEEP_BY : KEEP_COLUMN;
    for (size_t i = 0; i < (by ? COUNT_OF(of_column) : COUNT_OF(of_by)); i++) {
        const struct pair *stray = node_find(map, by ? of_column[i] : of_by[i]);
        if (stray)
            mistakes_add(r->mistakes, stray->key->at, "'%s' does not go with '%s'", stray->key->text,
                         by ? "by" : "column");
    }
    if (by && !node_find(map, "values"))
        mistakes_add(r->mistakes, by->key->at, "'by' needs 'values', a map of values and durations");
}

void read_keep(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct keep *keep = field;
    size_t mistakes_before = r->mistakes->n;
    keep->at = n->at;
    if (n->kind == NODE_MAP) {
        if (reader_section(r, "policy.keep", n->at, n, keep))
            check_keep_map(r, n, keep, mistakes_before);
    } else {
        keep->kind = KEEP_SPAN;
        read_keep_span(r, n, &keep->span, count);
    }
}

/* --- orphan, cap, keep_newest -------------------------------------------------------------------- */

void read_orphan_when(struct reader *r, const struct node *n, void *field, size_t *count)
{
    static const struct {
        const char *word;
        enum orphan_when when;
    } aliases[] = {{"sourceDocumentDeleted", ORPHAN_DELETED},
                   {"sourceDocumentDeletedOrNoLongerMatching", ORPHAN_DELETED_OR_UNMATCHED}};
    static const char *const words[] = {"deleted", "deleted_or_unmatched", "never"};
    (void)count;
    for (size_t i = 0; i < COUNT_OF(aliases); i++)
        if (n->kind == NODE_SCALAR && strcmp(n->text, aliases[i].word) == 0) {
            *(enum orphan_when *)field = aliases[i].when;
            return;
        }
    int i = reader_choice(r, n, words, COUNT_OF(words));
    if (i >= 0)
        *(enum orphan_when *)field = (enum orphan_when)i;
}

static void check_orphan(struct reader *r, const struct node *map, const struct orphan *o)
{
    const struct pair *when = node_find(map, "delete_when"), *by = node_find(map, "by");
    if (o->when == ORPHAN_DELETED_OR_UNMATCHED && when && !node_find(map, "matching"))
        mistakes_add(r->mistakes, when->key->at, "'delete_when: %s' needs 'matching'", when->value->text);
    if (o->of.n_columns && o->n_by && by && o->of.n_columns != o->n_by)
        mistakes_add(r->mistakes, by->key->at,
                     "'by' names %zu columns and 'of' has a key of %zu; they must agree", o->n_by,
                     o->of.n_columns);
    if (o->of.n_targets)
        mistakes_add(r->mistakes, o->of.at,
                     "'of' is table(key); the columns of this table go under 'by', not after ->");
}

void read_orphan(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct orphan *o = arena_alloc(r->arena, sizeof(*o));
    o->at = n->at;
    if (reader_section(r, "policy.orphan", n->at, n, o))
        check_orphan(r, n, o);
    *(struct orphan **)field = o;
}

/* Inside a group its own columns are all alike, so they order nothing. */
static void check_newest(struct reader *r, const struct newest *newest)
{
    for (size_t i = 0; i < newest->n_newest; i++)
        for (size_t k = 0; k < newest->n_per && newest->newest[i].text; k++)
            if (newest->per[k].text && strcmp(newest->per[k].text, newest->newest[i].text) == 0)
                mistakes_add(r->mistakes, newest->newest[i].at,
                             "'per' and 'newest' both name the column '%s'; per makes the groups, newest the "
                             "order inside them",
                             newest->newest[i].text);
}

static void read_newest(struct reader *r, const char *section, const struct node *n, struct newest **field)
{
    struct newest *newest = arena_alloc(r->arena, sizeof(*newest));
    newest->at = n->at;
    if (reader_section(r, section, n->at, n, newest))
        check_newest(r, newest);
    *field = newest;
}

void read_cap(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    read_newest(r, "policy.cap", n, field);
}

void read_keep_newest(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    read_newest(r, "policy.keep_newest", n, field);
}

/* --- other tables -------------------------------------------------------------------------------- */

/* A reference alone, or a map that says more about it. */
static void read_entry(struct reader *r, const char *section, const struct node *n, struct ref *ref,
                       void *base)
{
    if (n->kind == NODE_SCALAR)
        read_ref(r, n, ref, NULL);
    else if (n->kind == NODE_MAP)
        reader_section(r, section, n->at, n, base);
    else
        reader_wrong(r, n, "a reference, table(column, …), or a map with a 'ref'");
}

void read_with(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct with *list = NULL;
    size_t n_items, n_list = 0;
    const struct node **items = reader_items(r, n, &n_items);
    for (size_t i = 0; i < n_items; i++) {
        list = arena_push(r->arena, list, n_list, sizeof(*list));
        read_entry(r, "policy.with", items[i], &list[n_list].ref, &list[n_list]);
        n_list++;
    }
    *(struct with **)field = list;
    *count = n_list;
}

void read_after(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct after *list = NULL;
    size_t n_items, n_list = 0;
    const struct node **items = reader_items(r, n, &n_items);
    for (size_t i = 0; i < n_items; i++) {
        list = arena_push(r->arena, list, n_list, sizeof(*list));
        read_entry(r, "policy.after", items[i], &list[n_list].ref, &list[n_list]);
        n_list++;
    }
    *(struct after **)field = list;
    *count = n_list;
}

/* --- how it runs --------------------------------------------------------------------------------- */

void read_batch(struct reader *r, const struct node *n, void *field, size_t *count)
{
    if (node_is_null(n) && n->text[0])
        *(int64_t *)field = BATCH_ALL;
    else if (node_is_null(n))
        reader_wrong(r, n, "a whole number of at least 1, or null for everything due in one transaction");
    else
        read_count(r, n, field, count);
}

void read_workers(struct reader *r, const struct node *n, void *field, size_t *count)
{
    enum { MOST = 64 };
    int64_t workers = 0;
    read_count(r, n, &workers, count);
    if (workers > MOST)
        reader_wrong(r, n, "a whole number from 1 to 64");
    else if (workers)
        *(int64_t *)field = workers;
}

void read_limits(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct limits *limits = arena_alloc(r->arena, sizeof(*limits));
    *limits = (struct limits){.rows = -1, .fraction = -1, .at = n->at};
    reader_section(r, "policy.limits", n->at, n, limits);
    *(struct limits **)field = limits;
}

void read_pace(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct pace *pace = arena_alloc(r->arena, sizeof(*pace));
    *pace = (struct pace){.rows_per_second = -1, .duty = -1, .lag_bytes = -1, .at = n->at};
    pace->lag = (struct span){SPAN_NEVER, INT64_MAX};
    if (reader_section(r, "policy.pace", n->at, n, pace))
        pace->target_set = node_find(n, "target") != NULL;
    *(struct pace **)field = pace;
}

void read_timeouts(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    reader_section(r, "policy.timeouts", n->at, n, field);
}

void read_partitions(struct reader *r, const struct node *n, void *field, size_t *count)
{
    static const char *const words[] = {"drop"};
    (void)count;
    if (reader_choice(r, n, words, COUNT_OF(words)) == 0)
        *(struct partition_rule *)field = (struct partition_rule){true, n->at};
}

/* --- the policy as a whole ----------------------------------------------------------------------- */

/* age is a bound of its own only where it is not orphan's grace. */
static bool is_bound(const struct node *map, const char *key)
{
    bool age = strcmp(key, "age") == 0 && !node_find(map, "orphan");
    return age || !strcmp(key, "expires") || !strcmp(key, "orphan") || !strcmp(key, "cap");
}

static void check_bounds(struct reader *r, const struct policy *p, const struct node *map)
{
    const struct pair *first = NULL, *second = NULL;
    for (size_t i = 0; i < map->n_pairs && !second; i++)
        if (is_bound(map, map->pairs[i].key->text))
            *(first ? &second : &first) = &map->pairs[i];
    if (second)
        mistakes_add(r->mistakes, second->key->at,
                     "'%s' and '%s' are two bounds; a policy has one of expires, age with keep, orphan, cap",
                     first->key->text, second->key->text);
    if (!first && !node_find(map, "keep"))
        mistakes_add(r->mistakes, p->at, "policy '%s' has no bound: expires, age with keep, orphan or cap",
                     p->name);
}

static void needs(struct reader *r, const struct node *map, const char *key, const char *other)
{
    const struct pair *p = node_find(map, key);
    if (p && !node_find(map, other))
        mistakes_add(r->mistakes, p->key->at, "'%s' needs '%s'", key, other);
}

/* An orphan without a time to count from has no grace, and that must be said. */
static void check_grace(struct reader *r, struct policy *p, const struct node *map)
{
    if (p->keep.kind == KEEP_NONE && !node_find(map, "keep")) {
        p->keep.kind = KEEP_SPAN;
        p->keep.span = (struct span){SPAN_TIME, US_PER_DAY};
    }
    bool at_once = p->keep.kind == KEEP_SPAN && p->keep.span.kind == SPAN_NOW;
    if (!node_find(map, "age") && !at_once)
        mistakes_add(r->mistakes, node_find(map, "orphan")->key->at,
                     "'orphan' needs 'age', the columns its grace counts from, or 'keep: now' for no grace");
}

/* One transaction has one connection. */
static void check_workers(struct reader *r, const struct policy *p, const struct node *map)
{
    if (p->batch == BATCH_ALL && p->workers > 1)
        mistakes_add(r->mistakes, node_find(map, "workers")->key->at,
                     "'workers' cannot stand with 'batch: null': what goes in one transaction goes over one "
                     "connection");
}

static void check_policy(struct reader *r, struct policy *p, const struct node *map)
{
    check_bounds(r, p, map);
    if (node_find(map, "orphan")) {
        check_grace(r, p, map);
    } else {
        needs(r, map, "age", "keep");
        needs(r, map, "keep", "age");
    }
    needs(r, map, "inclusive", "age");
    needs(r, map, "keep_newest", "age");
    check_workers(r, p, map);
}

void rule_read(struct reader *r, const struct node *key, const struct node *map, struct policy *ret)
{
    *ret = (struct policy){.name = key->text, .label = key->text, .at = key->at};
    const char *outer = r->key;
    r->key = key->text;
    r->policy = ret;
    reader_defaults(r, "policy.timeouts", ret);
    if (reader_section(r, "policy", key->at, map, ret))
        check_policy(r, ret, map);
    r->policy = NULL;
    r->key = outer;
}
