/* policy_hash: what a policy means, written in one way only, and hashed (FNV-1a, 64 bits).
 *
 * Every text is preceded by its length, every list by its number of items: two meanings are never written
 * alike. Where order says nothing (rows, conditions, references), items are sorted. */
#include "contract/policy_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void put_text(struct text *out, const char *key, const char *s)
{
    if (s)
        text_addf(out, "%s=%zu:%s;", key, strlen(s), s);
}

static void put_number(struct text *out, const char *key, int64_t n)
{
    text_addf(out, "%s=%" PRId64 ";", key, n);
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Items, each written apart, so that they can be sorted. */
struct items {
    struct text *list;
    size_t n;
};

static struct text *items_add(struct items *i)
{
    i->list = mem_grow(i->list, i->n + 1, sizeof(*i->list));
    i->list[i->n] = (struct text){0};
    return &i->list[i->n++];
}

static void items_release(struct items *i)
{
    for (size_t k = 0; k < i->n; k++)
        text_release(&i->list[k]);
    free(i->list);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(text_str(a), text_str(b));
}

static void put_items(struct text *out, const char *key, struct items *i, bool ordered)
{
    if (!i->n)
        return;
    if (!ordered)
        qsort(i->list, i->n, sizeof(*i->list), compare_texts);
    text_addf(out, "%s=%zu[", key, i->n);
    for (size_t k = 0; k < i->n; k++)
        text_addf(out, "%s,", text_str(&i->list[k]));
    text_add(out, "];");
}

/* --- names, values, conditions ------------------------------------------------------------------- */

static void put_name(struct text *out, const char *key, const struct name *n)
{
    if (n->text)
        text_addf(out, "%s%s=%zu:%s;", key, n->quoted ? " exactly" : "", strlen(n->text), n->text);
}

static void put_names(struct text *out, const char *key, const struct name *list, size_t n, bool ordered)
{
    AUTO(items_release) struct items items = {0};
    for (size_t i = 0; i < n; i++)
        put_name(items_add(&items), "item", &list[i]);
    put_items(out, key, &items, ordered);
}

static void put_table(struct text *out, const struct table_name *t)
{
    put_name(out, "schema", &t->schema);
    put_name(out, "table", &t->table);
}

static void put_ref(struct text *out, const struct ref *r)
{
    put_table(out, &r->table);
    put_names(out, "columns", r->columns, r->n_columns, true);
    put_names(out, "targets", r->targets, r->n_targets, true);
}

/* Whether quotes around the text change what it is: '1' is no number, 'null' is no NULL. */
static bool quotes_matter(const char *s)
{
    static const char *const words[] = {"", "~", "null", "true", "false", "yes", "no", "on", "off"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcasecmp(s, words[i]) == 0)
            return true;
    return strchr("+-.0123456789", s[0]) != NULL;
}

static void put_scalar(struct text *out, const struct scalar *s)
{
    if (s->null) {
        text_add(out, "null;");
        return;
    }
    put_text(out, s->prefix ? "prefix" : s->quoted && quotes_matter(s->text) ? "text" : "value", s->text);
}

static void put_span(struct text *out, const char *key, const struct span *s)
{
    static const char *const kinds[] = {[SPAN_TIME] = "time", [SPAN_NOW] = "now", [SPAN_NEVER] = "never"};
    text_addf(out, "%s=%s %" PRId64 ";", key, kinds[s->kind], s->us);
}

/* Numbers of enums may change with the next version of lapse; these words must not. */
static const char *op_word(enum cond_op op)
{
    static const char *const words[] = {[COND_ALL] = "all",
                                        [COND_ANY] = "any",
                                        [COND_IN] = "in",
                                        [COND_NOT_IN] = "not in",
                                        [COND_LT] = "lt",
                                        [COND_LTE] = "lte",
                                        [COND_GT] = "gt",
                                        [COND_GTE] = "gte",
                                        [COND_LIKE] = "like",
                                        [COND_SQL] = "sql",
                                        [COND_OLDER_THAN] = "older",
                                        [COND_NEWER_THAN] = "newer"};
    return words[op];
}

static void put_cond(struct text *out, const char *key, const struct cond *c)
{
    AUTO(items_release) struct items values = {0}, kids = {0};
    if (!c)
        return;
    text_addf(out, "%s={%s;", key, op_word(c->op));
    put_name(out, "column", &c->column);
    put_text(out, "sql", c->sql);
    if (c->op == COND_OLDER_THAN || c->op == COND_NEWER_THAN)
        put_span(out, "span", &c->span);
    for (size_t i = 0; i < c->n_values; i++)
        put_scalar(items_add(&values), &c->values[i]);
    for (size_t i = 0; i < c->n_kids; i++)
        put_cond(items_add(&kids), "", c->kids[i]);
    put_items(out, "values", &values, false);
    put_items(out, "kids", &kids, false);
    text_add(out, "};");
}

bool cond_same(const struct cond *a, const struct cond *b)
{
    AUTO(text_release) struct text one = {0}, other = {0};
    put_cond(&one, "", a);
    put_cond(&other, "", b);
    return strcmp(text_str(&one), text_str(&other)) == 0;
}

/* --- the bound ----------------------------------------------------------------------------------- */

static void put_keep(struct text *out, const struct keep *k)
{
    AUTO(items_release) struct items values = {0};
    static const char *const kinds[] = {[KEEP_SPAN] = "span", [KEEP_BY] = "by", [KEEP_COLUMN] = "column"};
    if (k->kind == KEEP_NONE)
        return;
    text_addf(out, "keep=%s;", kinds[k->kind]);
    if (k->kind != KEEP_COLUMN)
        put_span(out, "span", &k->span);
    put_name(out, "by", &k->column);
    put_number(out, "unit", k->unit_us);
    for (size_t i = 0; i < k->n_values; i++) {
        struct text *item = items_add(&values);
        put_scalar(item, &k->values[i].value);
        put_span(item, "span", &k->values[i].span);
    }
    put_items(out, "values", &values, false);
}

static void put_newest(struct text *out, const char *key, const struct newest *n)
{
    if (!n)
        return;
    put_number(out, key, n->rows);
    put_names(out, "per", n->per, n->n_per, false);
    put_names(out, "newest", n->newest, n->n_newest, true);
}

static void put_orphan(struct text *out, const struct orphan *o)
{
    if (!o)
        return;
    static const char *const whens[] = {
        [ORPHAN_DELETED] = "deleted", [ORPHAN_DELETED_OR_UNMATCHED] = "unmatched", [ORPHAN_NEVER] = "never"};
    text_addf(out, "orphan=%s%s;", whens[o->when], o->allow_empty ? " empty" : "");
    put_ref(out, &o->of);
    put_names(out, "by", o->by, o->n_by, true);
    put_cond(out, "matching", o->matching);
}

/* --- what goes along ------------------------------------------------------------------------------- */

static void put_below(struct text *out, const struct below *b)
{
    AUTO(items_release) struct items with = {0}, detach = {0}, after = {0};
    for (size_t i = 0; i < b->n_with; i++) {
        struct text *item = items_add(&with);
        struct below further = below_with(&b->with[i]);
        put_ref(item, &b->with[i].ref);
        put_cond(item, "where", b->with[i].where);
        if (b->with[i].split)
            text_add(item, "split;");
        put_below(item, &further);
    }
    for (size_t i = 0; i < b->n_detach; i++)
        put_ref(items_add(&detach), &b->detach[i]);
    for (size_t i = 0; i < b->n_after; i++) {
        struct text *item = items_add(&after);
        put_ref(item, &b->after[i].ref);
        put_cond(item, "where", b->after[i].where);
    }
    put_items(out, "with", &with, false);
    put_items(out, "detach", &detach, false);
    put_items(out, "after", &after, false);
}

void policy_meaning(const struct policy *p, struct text *out)
{
    struct below below = below_policy(p);
    put_table(out, &p->table);
    put_cond(out, "rows", p->rows);
    put_cond(out, "where", p->where);
    put_cond(out, "hold", p->hold);
    put_name(out, "expires", &p->expires);
    put_names(out, "age", p->age, p->n_age, false);
    put_keep(out, &p->keep);
    put_number(out, "inclusive", p->inclusive);
    put_number(out, "unit", p->unit_us);
    put_text(out, "zone", p->zone);
    put_orphan(out, p->orphan);
    put_newest(out, "cap", p->cap);
    put_newest(out, "keep_newest", p->keep_newest);
    put_below(out, &below);
    if (p->limits)
        text_addf(out, "limits=%" PRId64 " %.17g;", p->limits->rows, p->limits->fraction);
}

static const char *hash_of(const struct text *meaning, char ret[POLICY_HASH_SIZE])
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < meaning->len; i++)
        h = (h ^ (unsigned char)meaning->data[i]) * UINT64_C(1099511628211);
    snprintf(ret, POLICY_HASH_SIZE, "%016" PRIx64, h);
    return ret;
}

const char *policy_hash(const struct policy *p, char ret[POLICY_HASH_SIZE])
{
    AUTO(text_release) struct text meaning = {0};
    policy_meaning(p, &meaning);
    return hash_of(&meaning, ret);
}

const char *policies_hash(const struct policy *list, size_t n, char ret[POLICY_HASH_SIZE])
{
    AUTO(text_release) struct text all = {0};
    for (size_t i = 0; i < n; i++)
        text_addf(&all, "%s=%s;", list[i].name, policy_hash(&list[i], ret));
    return hash_of(&all, ret);
}
