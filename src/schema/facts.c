/* facts: finding tables, columns and indexes by the names a contract uses; the list of findings. */
#include "schema/facts.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

const char *on_delete_name(enum on_delete action)
{
    static const char *const names[] = {
        [ON_DELETE_NO_ACTION] = "ON DELETE NO ACTION",     [ON_DELETE_RESTRICT] = "ON DELETE RESTRICT",
        [ON_DELETE_CASCADE] = "ON DELETE CASCADE",         [ON_DELETE_SET_NULL] = "ON DELETE SET NULL",
        [ON_DELETE_SET_DEFAULT] = "ON DELETE SET DEFAULT", [ON_DELETE_HIDDEN] = "an ON DELETE that is hidden",
    };
    return names[action];
}

struct facts *facts_new(void)
{
    struct arena *a = arena_new();
    struct facts *f = arena_alloc(a, sizeof(*f));
    f->arena = a;
    return f;
}

void facts_free(struct facts *f)
{
    if (f)
        arena_free(f->arena);
}

void facts_free_p(struct facts **f)
{
    facts_free(*f);
    *f = NULL;
}

/* Engines fold ASCII only where it matters to us: a locale must not change which table is meant. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_in_any_case(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return !*a && !*b;
}

static bool same_when_lowered(const char *written, const char *real)
{
    while (*written && lower(*written) == *real)
        written++, real++;
    return !*written && !*real;
}

static bool matches_folded(const struct facts *f, const struct name *n, const char *real)
{
    if (n->quoted)
        return false;
    if (f->ignores_case)
        return same_in_any_case(n->text, real);
    return f->folds_lower && same_when_lowered(n->text, real);
}

static bool column_matches_folded(const struct facts *f, const struct name *n, const char *real)
{
    if (f->columns_ignore_case)
        return !n->quoted && same_in_any_case(n->text, real);
    return matches_folded(f, n, real);
}

bool name_matches(const struct facts *f, const struct name *n, const char *real)
{
    return strcmp(n->text, real) == 0 || matches_folded(f, n, real);
}

/* An unqualified name means what the engine finds by it: a table of another schema that happens to be in the
 * facts must not be taken for it. An engine without schemas has one database, which SQLite calls main. */
static bool schema_matches(const struct facts *f, const struct name *n, const struct table *t)
{
    if (!n->text)
        return !t->schema || t->bare;
    return name_matches(f, n, t->schema ? t->schema : "main");
}

static bool schema_is_exact(const struct name *n, const struct table *t)
{
    return !n->text || !t->schema || strcmp(n->text, t->schema) == 0;
}

/* An exact schema wins over a folded one, then an exact table: as the engine's catalog is searched. */
const struct table *facts_table(const struct facts *f, const struct table_name *n)
{
    const struct table *best = NULL;
    int best_rank = -1;
    for (size_t i = 0; i < f->n_tables; i++) {
        const struct table *t = f->tables[i];
        if (!schema_matches(f, &n->schema, t) || !name_matches(f, &n->table, t->name))
            continue;
        int rank = 2 * schema_is_exact(&n->schema, t) + (strcmp(n->table.text, t->name) == 0);
        if (rank > best_rank) {
            best = t;
            best_rank = rank;
        }
    }
    return best;
}

const struct column *table_column(const struct facts *f, const struct table *t, const struct name *n)
{
    const struct column *exact = column_named(t, n->text);
    if (exact)
        return exact;
    for (size_t i = 0; i < t->n_columns; i++)
        if (column_matches_folded(f, n, t->columns[i].name))
            return &t->columns[i];
    return NULL;
}

const struct column *column_named(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

bool fkey_is_own(const struct table *t, const struct fkey *k)
{
    if (strcmp(k->child_table, t->name) != 0)
        return false;
    return k->child_schema && t->schema ? strcmp(k->child_schema, t->schema) == 0
                                        : !k->child_schema && !t->schema;
}

static bool is_among(const struct column *c, const struct column *const *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (columns[i] == c)
            return true;
    return false;
}

bool table_is_key_column(const struct table *t, const struct column *c)
{
    return is_among(c, t->key, t->n_key);
}

/* --- the WHERE of a partial index ------------------------------------------------------------
 * Understood is only `c IS NOT NULL [AND …]`, with any parentheses: with AND alone they change nothing. */

static void skip_blanks(const char **s)
{
    while (isspace((unsigned char)**s) || **s == '(' || **s == ')')
        (*s)++;
}

static bool take_word(const char **s, const char *word)
{
    skip_blanks(s);
    size_t len = strlen(word);
    const char *end = *s + len;
    if (strncasecmp(*s, word, len) != 0 || isalnum((unsigned char)*end) || *end == '_')
        return false;
    *s = end;
    return true;
}

static char closing_quote(char c)
{
    return c == '[' ? ']' : c == '"' || c == '`' ? c : '\0';
}

/* A bare or quoted name; a doubled closing quote stands for itself. */
static bool take_name(const char **s, struct text *ret)
{
    skip_blanks(s);
    text_clear(ret);
    const char *p = *s;
    char close = closing_quote(*p);
    if (!close) {
        while (isalnum((unsigned char)*p) || *p == '_' || *p == '$' || (unsigned char)*p >= 0x80)
            text_add_n(ret, p++, 1);
        *s = p;
        return ret->len > 0;
    }
    for (p++; *p; p++) {
        if (*p == close && *++p != close) {
            *s = p;
            return true;
        }
        text_add_n(ret, p, 1);
    }
    return false;
}

static bool names_one_of(const char *name, const struct column *const *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (same_in_any_case(name, columns[i]->name))
            return true;
    return false;
}

static bool take_not_null(const char **s)
{
    return take_word(s, "NOTNULL") || (take_word(s, "IS") && take_word(s, "NOT") && take_word(s, "NULL")) ||
           (take_word(s, "NOT") && take_word(s, "NULL"));
}

/* Whether rows outside the index are just those where one of the columns is NULL: a comparison with these
 * columns never finds such rows anyway. */
static bool leaves_out_only_nulls(const char *predicate, const struct column *const *columns, size_t n)
{
    if (!predicate)
        return false;
    AUTO(text_release) struct text name = {0};
    const char *s = predicate;
    do {
        if (!take_name(&s, &name) || !names_one_of(text_str(&name), columns, n) || !take_not_null(&s))
            return false;
    } while (take_word(&s, "AND"));
    skip_blanks(&s);
    return *s == '\0';
}

static bool leads_with(const struct index *x, const struct column *const *columns, size_t n)
{
    if (x->n_columns < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_among(columns[i], x->columns, n))
            return false;
    return true;
}

const struct index *table_index_on(const struct table *t, const struct column *const *columns, size_t n)
{
    for (size_t i = 0; i < t->n_indexes; i++) {
        const struct index *x = &t->indexes[i];
        if (leads_with(x, columns, n) && (!x->partial || leaves_out_only_nulls(x->predicate, columns, n)))
            return x;
    }
    return NULL;
}

void findings_add(struct findings *f, enum finding_level level, const char *policy, struct place at,
                  const char *fix, const char *what_fmt, ...)
{
    AUTO(text_release) struct text what = {0};
    va_list args;
    va_start(args, what_fmt);
    text_vaddf(&what, what_fmt, args);
    va_end(args);

    f->list = arena_push(f->arena, f->list, f->n, sizeof(*f->list));
    f->list[f->n++] = (struct finding){
        .level = level,
        .policy = policy ? arena_strdup(f->arena, policy) : NULL,
        .at = at,
        .what = arena_strdup(f->arena, text_str(&what)),
        .fix = arena_strdup(f->arena, fix ? fix : ""),
    };
    if (level == FINDING_ERROR)
        f->errors++;
}
