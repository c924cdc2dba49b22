/* purges_plan: what a purge of one space erases, resolved against the schema; and whether an instance's id
 * can stand in a column. See purges.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/internal.h"
#include "plan/purges.h"
#include "base/quote.h"

const char *purge_finding_name(struct arena *a, const struct purge_space *s)
{
    return arena_printf(a, "purges.%s", s->name);
}

void purge_tables(const struct purge_space *s, struct arena *a, struct table_names *names)
{
    for (size_t i = 0; i < s->n_erases; i++) {
        names->list = arena_push(a, names->list, names->n, sizeof(*names->list));
        names->list[names->n++] = &s->erases[i].ref.table;
    }
}

/* --- ids and columns -------------------------------------------------------------------------------------
 */

static bool is_uuid(const struct column *c)
{
    return c->type == TYPE_OTHER && strcmp(c->sql_type, "uuid") == 0;
}

const char *purge_column_unfit(const struct column *c)
{
    if (c->type == TYPE_TEXT || c->type == TYPE_INTEGER || c->type == TYPE_ENUM || is_uuid(c))
        return NULL;
    return c->type == TYPE_DYNAMIC || c->type == TYPE_BLOB
               ? "it may hold the same id in several ways"
               : "values of that type can be written in several ways";
}

/* The one way that a whole number is written, within the type's range. */
static bool fits_integer(const struct column *c, const char *s)
{
    const char *digits = s + (*s == '-');
    size_t len = strlen(digits);
    if (!len || strspn(digits, "0123456789") != len || (*digits == '0' && (len > 1 || s != digits)))
        return false;
    errno = 0;
    if (c->is_unsigned) {
        unsigned long long u = strtoull(s, NULL, 10);
        return s == digits && !errno && (!c->bytes || u >> (8 * c->bytes) == 0);
    }
    long long v = strtoll(s, NULL, 10);
    if (errno)
        return false;
    int64_t half = c->bytes ? INT64_C(1) << (8 * c->bytes - 1) : INT64_MAX;
    return !c->bytes || (v >= -half && v < half);
}

static bool fits_uuid(const char *s)
{
    size_t i = 0;
    for (; s[i]; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s[i] != '-' : !strchr("0123456789abcdef", s[i]))
            return false;
    }
    return i == 36;
}

static bool fits_enum(const struct column *c, const char *s)
{
    for (size_t i = 0; i < c->n_labels; i++)
        if (strcmp(c->labels[i], s) == 0)
            return true;
    return false;
}

/* Neither too long for the column nor with a character that it cannot hold. What is no UTF-8 counts byte by
 * byte. */
static bool can_be_written(const struct column *c, const struct value *v)
{
    int64_t n = 0;
    if (!c->longest && !c->last_character)
        return true;
    for (size_t i = 0, bytes; i < v->len; i += bytes, n++) {
        bytes = utf8_length(v->text + i);
        if (c->last_character && bytes > (c->last_character < 0x80 ? 1 : 3))
            return false;
        bytes = bytes ? bytes : 1;
    }
    return !c->longest || n <= c->longest;
}

/* A char(n) is padded, and cannot tell a blank at the end from its own. */
static bool fits_text(const struct column *c, const struct value *v)
{
    bool padded = strcmp(c->sql_type, "bpchar") == 0 || (c->pads && strcmp(c->sql_type, "char") == 0);
    return can_be_written(c, v) && (!padded || !v->len || v->text[v->len - 1] != ' ');
}

bool purge_fits(const struct column *c, const struct value *v, struct text *why)
{
    bool text = v->kind == VALUE_TEXT, whole = text && strlen(v->text) == v->len;
    if (c->type == TYPE_TEXT   ? text && fits_text(c, v)
        : !whole               ? false
        : is_uuid(c)           ? fits_uuid(v->text)
        : c->type == TYPE_ENUM ? fits_enum(c, v->text)
                               : c->type == TYPE_INTEGER && fits_integer(c, v->text))
        return true;
    if (text)
        text_addf(why, "the instance does not come back the same from the column '%s' of type %s", c->name,
                  *c->sql_type ? c->sql_type : "none");
    else
        text_add(why, "the instance is no text");
    if (text && c->longest)
        text_addf(why, " (at most %lld character%s)", (long long)c->longest, c->longest == 1 ? "" : "s");
    return false;
}

void purge_judge_fit(const struct purge_plan *p, struct purge_cases *cases, struct arena *a)
{
    for (size_t i = 0; i < cases->n; i++) {
        struct purge_case *c = &cases->list[i];
        AUTO(text_release) struct text why = {0};
        for (size_t k = 0; k < p->n && c->verdict == PURGE_EXECUTE; k++)
            if (!purge_fits(p->erases[k].column, &c->decides->instance, &why)) {
                c->verdict = PURGE_MISFIT;
                c->why = arena_printf(a, "%s of %s", text_str(&why), p->erases[k].table->print);
            }
    }
}

/* --- the plan --------------------------------------------------------------------------------------------
 */

static bool make_erasing(struct making *m, const struct erase *e, struct erasing *ret)
{
    *ret = (struct erasing){.at = e->ref.at, .table = plan_find_table(m, &e->ref.table)};
    if (!ret->table)
        return false;
    ret->column = plan_find_column(m, ret->table, &e->ref.columns[0], e->ref.at);
    ret->keep = e->keep ? plan_condition(m, ret->table, e->keep) : NULL;
    const char *unfit = ret->column ? purge_column_unfit(ret->column) : NULL;
    if (unfit)
        complain(m, e->ref.at, "declare it as a text, a whole number or a uuid",
                 "column '%s' of %s is %s: %s, so an instance's id cannot be looked up in it",
                 ret->column->name, ret->table->print,
                 *ret->column->sql_type ? ret->column->sql_type : "of no type", unfit);
    return ret->column && !unfit && (!e->keep || ret->keep);
}

struct purge_plan *purge_plan_make(const struct purge_space *s, const struct facts *f, instant now,
                                   struct findings *findings)
{
    struct arena *a = arena_new();
    struct purge_plan *p = arena_alloc(a, sizeof(*p));
    *p = (struct purge_plan){.arena = a, .space = s, .facts = f, .now = now, .n = s->n_erases};
    /* Conditions are made as those of a policy are. */
    struct policy as = {.name = purge_finding_name(findings->arena, s), .zone = "UTC", .at = s->at};
    struct plan row = {.arena = a, .policy = &as, .facts = f, .now = now};
    struct making m = {.plan = &row, .arena = a, .policy = &as, .facts = f, .findings = findings};
    size_t errors = findings->errors;
    p->erases = arena_alloc(a, p->n * sizeof(*p->erases));
    bool whole = true;
    for (size_t i = 0; i < p->n; i++)
        whole = make_erasing(&m, &s->erases[i], &p->erases[i]) && whole;
    if (whole && findings->errors == errors)
        return p;
    arena_free(a);
    return NULL;
}

void purge_plan_free(struct purge_plan *p)
{
    if (p)
        arena_free(p->arena);
}

void purge_plan_free_p(struct purge_plan **p)
{
    purge_plan_free(*p);
    *p = NULL;
}
