/* policy: names and references, as the contract writes them. */
#include "contract/policy.h"

#include <string.h>

/* What a bare name cannot hold, because it separates names; in double quotes everything is allowed. */
static const char separators[] = ".(),\"";

struct scan {
    struct arena *arena;
    const char *p;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static void skip_blanks(struct scan *s)
{
    while (is_blank(*s->p))
        s->p++;
}

/* Takes the text, and blanks around it, if it comes next. */
static bool take(struct scan *s, const char *text)
{
    skip_blanks(s);
    size_t len = strlen(text);
    if (strncmp(s->p, text, len) != 0)
        return false;
    s->p += len;
    skip_blanks(s);
    return true;
}

/* "odd ""name""": a doubled quote is one quote of the name. */
static bool scan_quoted(struct scan *s, struct name *ret)
{
    char *text = arena_alloc(s->arena, strlen(s->p) + 1);
    size_t len = 0;
    bool closed = false;
    const char *p = s->p + 1;
    for (; *p && !closed; p++) {
        if (*p == '"' && p[1] == '"')
            text[len++] = *p++;
        else if (*p == '"')
            closed = true;
        else
            text[len++] = *p;
    }
    if (!closed || len == 0)
        return false;
    s->p = p;
    *ret = (struct name){.text = text, .quoted = true};
    return true;
}

static bool scan_bare(struct scan *s, struct name *ret)
{
    const char *start = s->p;
    while (*s->p && !strchr(separators, *s->p) && !is_control(*s->p))
        s->p++;
    const char *end = s->p;
    while (end > start && is_blank(end[-1]))
        end--;
    if (end == start)
        return false;
    *ret = (struct name){.text = arena_strndup(s->arena, start, (size_t)(end - start))};
    return true;
}

static bool scan_name(struct scan *s, struct name *ret)
{
    skip_blanks(s);
    bool found = *s->p == '"' ? scan_quoted(s, ret) : scan_bare(s, ret);
    skip_blanks(s);
    return found;
}

static bool scan_table(struct scan *s, struct table_name *ret)
{
    struct table_name t = {0};
    if (!scan_name(s, &t.table))
        return false;
    if (take(s, ".")) {
        t.schema = t.table;
        if (!scan_name(s, &t.table))
            return false;
    }
    *ret = t;
    return true;
}

enum { MOST_COLUMNS = 100 }; /* more than any engine's key has */

/* (column, …) */
static bool scan_columns(struct scan *s, struct name **ret, size_t *ret_n)
{
    struct name *list = NULL;
    size_t n = 0;
    if (!take(s, "("))
        return false;
    do {
        list = arena_push(s->arena, list, n, sizeof(*list));
        if (!scan_name(s, &list[n++]))
            return false;
    } while (n < MOST_COLUMNS && take(s, ","));
    if (!take(s, ")"))
        return false;
    *ret = list;
    *ret_n = n;
    return true;
}

static bool scan_ref(struct scan *s, struct ref *ret)
{
    struct ref r = {0};
    if (!scan_table(s, &r.table) || !scan_columns(s, &r.columns, &r.n_columns))
        return false;
    if (take(s, "->") && !scan_columns(s, &r.targets, &r.n_targets))
        return false;
    if (*s->p)
        return false;
    *ret = r;
    return true;
}

static const char *repeated(const struct name *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(list[i].text, list[k].text) == 0)
                return list[i].text;
    return NULL;
}

/* How much of what was read a message shows: whole characters of UTF-8 only. */
static int shown(const char *s)
{
    enum { MOST = 200 };
    size_t len = strlen(s);
    if (len <= MOST)
        return (int)len;
    len = MOST;
    while (len > 0 && ((unsigned char)s[len] & 0xc0) == 0x80)
        len--;
    return (int)len;
}

static void name_print(const struct name *name, struct text *out)
{
    const char *s = name->text;
    size_t len = strlen(s);
    bool plain = !name->quoted && len > 0 && !is_blank(s[0]) && !is_blank(s[len - 1]) &&
                 s[strcspn(s, separators)] == '\0';
    if (plain) {
        text_add(out, s);
        return;
    }
    text_add(out, "\"");
    for (; *s; s++)
        text_add_n(out, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    text_add(out, "\"");
}

static void names_print(const struct name *list, size_t n, struct text *out)
{
    text_add(out, "(");
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            text_add(out, ", ");
        name_print(&list[i], out);
    }
    text_add(out, ")");
}

void table_name_print(const struct table_name *t, struct text *out)
{
    if (t->schema.text) {
        name_print(&t->schema, out);
        text_add(out, ".");
    }
    name_print(&t->table, out);
}

void ref_print(const struct ref *r, struct text *out)
{
    table_name_print(&r->table, out);
    names_print(r->columns, r->n_columns, out);
    if (r->n_targets > 0) {
        text_add(out, " -> ");
        names_print(r->targets, r->n_targets, out);
    }
}

int name_parse(struct arena *a, const char *s, struct name *ret, struct err *e)
{
    /* A name that stands alone needs no quotes for the separators: nothing else could be meant. */
    struct scan scan = {a, s};
    struct name name = {0};
    bool good = *s != '\0';
    if (*s == '"')
        good = scan_quoted(&scan, &name) && *scan.p == '\0';
    else
        name.text = arena_strdup(a, s);
    for (const char *p = s; *p && good; p++)
        good = !is_control(*p);
    if (!good)
        return err_set(e, ERR_CONTRACT, "'%.*s' is not a column name; write it bare or as \"name\"", shown(s),
                       s);
    *ret = name;
    return 0;
}

int table_name_parse(struct arena *a, const char *s, struct table_name *ret, struct err *e)
{
    struct scan scan = {a, s};
    struct table_name t;
    if (!scan_table(&scan, &t) || *scan.p)
        return err_set(e, ERR_CONTRACT,
                       "'%.*s' is not a table name; write table or schema.table, a name with . ( ) , in it "
                       "as \"na.me\"",
                       shown(s), s);
    *ret = t;
    return 0;
}

int ref_parse(struct arena *a, const char *s, struct ref *ret, struct err *e)
{
    struct scan scan = {a, s};
    struct ref r;
    if (!scan_ref(&scan, &r))
        return err_set(e, ERR_CONTRACT, "'%.*s' is not a reference; write table(column, …)", shown(s), s);
    if (r.n_targets > 0 && r.n_targets != r.n_columns)
        return err_set(e, ERR_CONTRACT,
                       "'%.*s' has %zu in the first list of columns and %zu in the second; they must agree",
                       shown(s), s, r.n_columns, r.n_targets);
    const char *twice = repeated(r.columns, r.n_columns);
    if (!twice)
        twice = repeated(r.targets, r.n_targets);
    if (twice)
        return err_set(e, ERR_CONTRACT, "'%.*s' names the column '%.*s' twice", shown(s), s, shown(twice),
                       twice);
    *ret = r;
    return 0;
}

struct below below_policy(const struct policy *p)
{
    return (struct below){p->with, p->n_with, p->detach, p->n_detach, p->after, p->n_after};
}

struct below below_with(const struct with *w)
{
    return (struct below){w->with, w->n_with, w->detach, w->n_detach, w->after, w->n_after};
}

/* Rows of the policy's own table that go along count as its own. */
static void add_dependents(struct arena *a, const struct below *b, const char *own, const char ***list,
                           size_t *n)
{
    for (size_t i = 0; i < b->n_with; i++) {
        AUTO(text_release) struct text name = {0};
        table_name_print(&b->with[i].ref.table, &name);
        bool known = strcmp(own, text_str(&name)) == 0;
        for (size_t k = 0; k < *n && !known; k++)
            known = strcmp((*list)[k], text_str(&name)) == 0;
        if (!known) {
            *list = arena_push(a, *list, *n, sizeof(**list));
            (*list)[(*n)++] = arena_strdup(a, text_str(&name));
        }
        struct below deeper = below_with(&b->with[i]);
        add_dependents(a, &deeper, own, list, n);
    }
}

const char **policy_dependents(struct arena *a, const struct policy *p, size_t *ret_n)
{
    AUTO(text_release) struct text own = {0};
    const char **list = NULL;
    struct below b = below_policy(p);
    *ret_n = 0;
    table_name_print(&p->table, &own);
    add_dependents(a, &b, text_str(&own), &list, ret_n);
    return list;
}
