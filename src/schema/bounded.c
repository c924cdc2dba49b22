/* bounded: which keys have only so many values.
 *
 * A table is bounded when a key of one column, never NULL, can hold so many values: its CHECK allows only
 * these, it is generated from a constant, or its type has no more. Of a CHECK only this is understood:
 *
 *   condition := term { AND term }     with any parentheses
 *   term      := column = constant | constant = column | column IN (constant, …) | boolean column | anything
 * else
 *
 * One term that names the values is enough, since all of them must hold. An OR beside it, or a word that may
 * bind otherwise than it reads (BETWEEN, CASE), and nothing is known: a table must never be taken for bounded
 * that is not. */
#include "schema/bounded.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { MOST_VALUES = 100 }; /* a longer list is data, not a shape */

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_SIGN };
struct token {
    enum token_kind kind;
    const char *at;
    size_t len;
};

struct reading {
    const struct facts *facts;
    const struct column *column; /* whose values are looked for */
    const char *p;               /* behind `now` */
    struct token now;
    struct text values; /* found: the constants, with ", " between them */
    size_t n_values;
};

static void reading_release(struct reading *r)
{
    text_release(&r->values);
}

/* --- tokens ----------------------------------------------------------------------------------------------
 */

static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static const char *behind_quotes(const char *p)
{
    char close = *p == '[' ? ']' : *p;
    for (p++; *p; p++)
        if (*p == close && (close == ']' || *++p != close))
            return close == ']' ? p + 1 : p;
    return p;
}

static const char *behind_comment(const char *p)
{
    const char *close = *p == '-' ? "\n" : "*/";
    const char *end = strstr(p + 2, close);
    return end ? end + strlen(close) : p + strlen(p);
}

static const char *behind_blanks(const char *p)
{
    for (;;) {
        if (isspace((unsigned char)*p))
            p++;
        else if (strncmp(p, "--", 2) == 0 || strncmp(p, "/*", 2) == 0)
            p = behind_comment(p);
        else
            return p;
    }
}

static const char *behind_sign(const char *p)
{
    static const char *const pairs[] = {"::", "==", "<=", ">=", "<>", "!=", "||", "&&", "<<", ">>"};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        if (strncmp(p, pairs[i], 2) == 0)
            return p + 2;
    return p + 1;
}

/* [ quotes a name where it begins one, and is a sign behind the word ARRAY. */
static void next(struct reading *r)
{
    bool array = r->now.kind == TOKEN_WORD && r->now.len == 5 && strncasecmp(r->now.at, "ARRAY", 5) == 0;
    const char *p = behind_blanks(r->p), *end = p;
    enum token_kind kind = TOKEN_END;
    if (is_letter(*p)) {
        kind = TOKEN_WORD;
        while (is_letter(*end) || isdigit((unsigned char)*end) || *end == '$')
            end++;
    } else if (isdigit((unsigned char)*p)) {
        kind = TOKEN_NUMBER;
        while (isalnum((unsigned char)*end) || *end == '.' || *end == '_')
            end++;
    } else if (*p == '\'') {
        end = behind_quotes(p);
        kind = end - p > 1 && end[-1] == '\'' ? TOKEN_STRING : TOKEN_SIGN; /* never closed */
    } else if (*p == '"' || *p == '`' || (*p == '[' && !array && p[1] != ']')) {
        kind = TOKEN_NAME;
        end = behind_quotes(p);
    } else if (*p) {
        kind = TOKEN_SIGN;
        end = behind_sign(p);
    }
    r->now = (struct token){kind, p, (size_t)(end - p)};
    r->p = end;
}

static bool is(const struct reading *r, const char *text)
{
    bool written = r->now.kind == TOKEN_WORD || r->now.kind == TOKEN_SIGN;
    return written && r->now.len == strlen(text) && strncasecmp(r->now.at, text, r->now.len) == 0;
}

static bool take(struct reading *r, const char *text)
{
    if (!is(r, text))
        return false;
    next(r);
    return true;
}

/* --- constants -------------------------------------------------------------------------------------------
 */

static bool take_kind(struct reading *r, enum token_kind kind)
{
    if (r->now.kind != kind)
        return false;
    next(r);
    return true;
}

/* The name of a type: schema.name, further words, a length. */
static bool take_type(struct reading *r)
{
    static const char *const more[] = {"varying", "precision", "with", "without", "time", "zone"};
    if (!take_kind(r, TOKEN_WORD) && !take_kind(r, TOKEN_NAME))
        return false;
    if (take(r, ".") && !take_kind(r, TOKEN_WORD) && !take_kind(r, TOKEN_NAME))
        return false;
    for (size_t i = 0; i < COUNT_OF(more); i++)
        take(r, more[i]);
    if (!take(r, "("))
        return true;
    if (!take_kind(r, TOKEN_NUMBER) || (take(r, ",") && !take_kind(r, TOKEN_NUMBER)))
        return false;
    return take(r, ")");
}

static bool take_casts(struct reading *r)
{
    while (take(r, "::"))
        if (!take_type(r))
            return false;
    return true;
}

/* A number, a string, true or false; NULL is none, since nothing equals it. Without its casts in `out`. */
static bool take_constant(struct reading *r, struct text *out)
{
    if (take(r, "("))
        return take_constant(r, out) && take(r, ")") && take_casts(r);
    bool negative = is(r, "-");
    if (negative || is(r, "+"))
        next(r);
    struct token t = r->now;
    if (t.kind != TOKEN_NUMBER && (negative || t.kind != TOKEN_STRING) && !is(r, "true") && !is(r, "false"))
        return false;
    text_add(out, negative ? "-" : "");
    text_add_n(out, t.at, t.len);
    next(r);
    return take_casts(r);
}

static bool take_value(struct reading *r)
{
    text_add(&r->values, r->n_values++ ? ", " : "");
    return r->n_values <= MOST_VALUES && take_constant(r, &r->values);
}

static bool take_values(struct reading *r, const char *close)
{
    do {
        if (!take_value(r))
            return false;
    } while (take(r, ","));
    return take(r, close);
}

/* --- terms -----------------------------------------------------------------------------------------------
 */

static bool names_column(const struct reading *r)
{
    const char *name = r->column->name, *at = r->now.at;
    size_t len = r->now.len;
    if (r->now.kind == TOKEN_NAME) {
        if (len < 2 || memchr(at + 1, *at, len - 2)) /* a doubled quote inside: not worth understanding */
            return false;
        at++, len -= 2;
    } else if (r->now.kind != TOKEN_WORD) {
        return false;
    }
    if (strlen(name) != len)
        return false;
    return r->facts->ignores_case || r->facts->columns_ignore_case ? strncasecmp(at, name, len) == 0
                                                                   : strncmp(at, name, len) == 0;
}

/* A cast may make two values one; of text to text it does not. */
static bool take_column(struct reading *r)
{
    if (take(r, "(")) {
        if (!take_column(r) || !take(r, ")"))
            return false;
        if (!take(r, "::"))
            return true;
        return r->column->type == TYPE_TEXT && take(r, "text");
    }
    if (!names_column(r))
        return false;
    next(r);
    return true;
}

/* = ANY (ARRAY[…]), as PostgreSQL writes IN. */
static bool take_any(struct reading *r)
{
    if (!take(r, "("))
        return false;
    bool group = take(r, "(");
    if (!take(r, "ARRAY") || !take(r, "[") || !take_values(r, "]"))
        return false;
    if (group && !take(r, ")"))
        return false;
    if (take(r, "::") && (!take_type(r) || !take(r, "[") || !take(r, "]")))
        return false;
    return take(r, ")");
}

/* Behind the column. SQLite reads IS TRUE as "is not zero", so there IS says nothing of a boolean. */
static bool take_comparison(struct reading *r)
{
    if (take(r, "=") || take(r, "=="))
        return take(r, "ANY") ? take_any(r) : take_value(r);
    if (take(r, "IN"))
        return take(r, "(") && take_values(r, ")");
    if (!take(r, "IS"))
        return false;
    bool truth = is(r, "true") || is(r, "false");
    return !(truth && r->facts->booleans_are_integers) && take_value(r);
}

static bool ends_term(const struct reading *r)
{
    return r->now.kind == TOKEN_END || is(r, ")") || is(r, "AND");
}

static void forget(struct reading *r)
{
    text_clear(&r->values);
    r->n_values = 0;
}

static bool take_bare_boolean(struct reading *r)
{
    if (r->column->type != TYPE_BOOLEAN || r->facts->booleans_are_integers || !ends_term(r))
        return false;
    text_add(&r->values, "true");
    r->n_values = 1;
    return true;
}

typedef bool term_fn(struct reading *r);

static bool column_first(struct reading *r)
{
    return take_column(r) && (take_bare_boolean(r) || take_comparison(r));
}

static bool constant_first(struct reading *r)
{
    return take_value(r) && (take(r, "=") || take(r, "==")) && take_column(r);
}

/* Tries one form; what did not fit is as if it had not been read. */
static bool try_term(struct reading *r, term_fn *form)
{
    const char *p = r->p;
    struct token now = r->now;
    if (form(r) && ends_term(r))
        return true;
    forget(r);
    r->p = p;
    r->now = now;
    return false;
}

/* Words beside which the rest may mean something else than it seems. */
static bool is_dangerous(const struct reading *r)
{
    static const char *const words[] = {"OR", "XOR", "BETWEEN", "CASE", "||", "&&"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (is(r, words[i]))
            return true;
    return false;
}

/* Over a term of another form; false at something dangerous, or where a parenthesis is missing. Ends, since
 * every turn takes a token. */
static bool skip_term(struct reading *r)
{
    for (int depth = 0; depth > 0 || !ends_term(r); next(r)) {
        if (r->now.kind == TOKEN_END || (depth == 0 && is_dangerous(r)))
            return false;
        depth += is(r, "(") - is(r, ")");
    }
    return true;
}

enum verdict { UNKNOWN, NOTHING, VALUES };
static enum verdict condition(struct reading *r);

static bool in_parentheses(struct reading *r)
{
    return take(r, "(") && condition(r) == VALUES && take(r, ")");
}

static bool term(struct reading *r)
{
    return try_term(r, column_first) || try_term(r, constant_first) || try_term(r, in_parentheses);
}

/* Up to its end or a closing parenthesis. What was found counts only once all of it has been looked at: an OR
 * may follow. */
static enum verdict condition(struct reading *r)
{
    bool found = false;
    do {
        if (!found && term(r))
            found = true;
        else if (!skip_term(r))
            return UNKNOWN;
    } while (take(r, "AND"));
    return found ? VALUES : NOTHING;
}

/* --- keys ------------------------------------------------------------------------------------------------
 */

static void start(struct reading *r, const char *text)
{
    forget(r);
    r->p = text;
    r->now = (struct token){0};
    next(r);
}

static bool check_bounds(struct reading *r, const char *text)
{
    start(r, text);
    return condition(r) == VALUES && r->now.kind == TOKEN_END;
}

static bool generated_constant(struct reading *r)
{
    if (!r->column->generated || !r->column->generated_as)
        return false;
    start(r, r->column->generated_as);
    return take_value(r) && r->now.kind == TOKEN_END;
}

static const char *words_of(const struct reading *r, struct arena *a, const char *key)
{
    const char *name = r->column->name, *values = text_str(&r->values);
    if (r->n_values == 1)
        return arena_printf(a, "singleton %s (%s = %s)", key, name, values);
    return arena_printf(a, "%s of listed values (%s in %s), at most %zu rows", key, name, values,
                        r->n_values);
}

static const char *type_bounds(const struct facts *f, const struct column *c, struct arena *a,
                               const char *key)
{
    if (c->type == TYPE_ENUM && c->n_labels)
        return arena_printf(a, "enum %s (%s), at most %zu row%s", key, c->name, c->n_labels,
                            c->n_labels == 1 ? "" : "s");
    if (c->type == TYPE_BOOLEAN && !f->booleans_are_integers)
        return arena_printf(a, "boolean %s (%s), at most 2 rows", key, c->name);
    return NULL;
}

static const char *key_bounds(const struct facts *f, const struct table *t, const struct index *x,
                              struct arena *a)
{
    if (!x->unique || x->partial || x->n_columns != 1 || !x->columns[0] || !x->columns[0]->not_null)
        return NULL;
    AUTO(reading_release) struct reading r = {.facts = f, .column = x->columns[0]};
    const char *key = x->primary ? "primary key" : "unique key";
    if (generated_constant(&r))
        return words_of(&r, a, key);
    for (size_t i = 0; i < t->n_checks; i++)
        if (check_bounds(&r, t->checks[i]))
            return words_of(&r, a, key);
    return type_bounds(f, r.column, a, key);
}

/* Inheritors share neither the key nor, always, the constraint. */
const char *table_bounded_by(const struct facts *f, const struct table *t, struct arena *a)
{
    if ((t->kind != KIND_TABLE && t->kind != KIND_PARTITIONED) || t->inheritors)
        return NULL;
    for (size_t i = 0; i < t->n_indexes; i++) {
        const char *words = key_bounds(f, t, &t->indexes[i], a);
        if (words)
            return words;
    }
    return NULL;
}
