/* scan: conditions that people wrote in the engine's own SQL: what may stand in one, and where `this` and
 * :now are. Declared in sql.h. */
#include "store/sql/sql.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- copying ------------------------------------------------------------------------------------------- */

struct scan {
    struct stmt *out; /* NULL: only look */
    const struct dialect *d;
    const char *alias;
    const char *text; /* whole */
    const char *at;
    instant now;
    bool escapes; /* E'…\'…' stands before: a string on the next line belongs to it, with its backslashes */
    struct err *e;
};

static int refuse(struct scan *k, const char *what)
{
    return err_set(k->e, ERR_USAGE, "the condition %s at character %zu", what, (size_t)(k->at - k->text) + 1);
}

static void copy_to(struct scan *k, const char *end)
{
    if (k->out)
        text_add_n(&k->out->sql, k->at, (size_t)(end - k->at));
    k->at = end;
}

/* From an opening quote to behind the closing one; a doubled closing quote stands for itself. */
static int quoted(struct scan *k, char close, bool backslash)
{
    const char *c = k->at + 1;
    for (;; c++) {
        if (*c && k->d->reserved && strchr(k->d->reserved, *c))
            return refuse(k, "has a control character");
        if (!*c)
            return refuse(k, close == '\'' ? "has a string that is not closed"
                                           : "has a quoted name that is not closed");
        if (backslash && *c == '\\' && c[1])
            c++;
        else if (*c == close && c[1] == close && close != ']')
            c++;
        else if (*c == close)
            break;
    }
    copy_to(k, c + 1);
    return 0;
}

/* Comments are left out: where one ends then depends on this text alone, not on what else an engine takes
 * for the end of a line. */
static void skip_to(struct scan *k, const char *end)
{
    if (k->out)
        text_add(&k->out->sql, " ");
    k->at = end;
}

static int block_comment(struct scan *k)
{
    const char *c = k->at + 2;
    for (int depth = 1; depth;) {
        if (!*c)
            return refuse(k, "has a comment that is not closed");
        if (c[0] == '*' && c[1] == '/') {
            depth--;
            c += 2;
        } else if (k->d->nested_comments && c[0] == '/' && c[1] == '*') {
            depth++;
            c += 2;
        } else {
            c++;
        }
    }
    skip_to(k, c);
    return 0;
}

/* Where # begins a comment, -- takes a blank (else it is a minus twice). */
static bool is_line_comment(const struct dialect *d, const char *s)
{
    if (d->hash_comments && *s == '#')
        return true;
    return s[0] == '-' && s[1] == '-' && (!d->hash_comments || (unsigned char)s[2] <= ' ');
}

static bool is_comment(const struct dialect *d, const char *s)
{
    return is_line_comment(d, s) || (s[0] == '/' && s[1] == '*');
}

/* A comment to others, but to a server of its kind a piece of the statement. */
static bool is_code(const struct dialect *d, const char *s)
{
    return d->hash_comments && s[0] == '/' && s[1] == '*' && (s[2] == '!' || (s[2] == 'M' && s[3] == '!'));
}

static void line_comment(struct scan *k)
{
    skip_to(k, k->at + strcspn(k->at, "\r\n"));
}

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t word_length(const char *s)
{
    size_t n = 0;
    while (word_char(s[n]) || (n && s[n] == '$'))
        n++;
    return n;
}

static int dollar(struct scan *k)
{
    size_t tag = 1;
    while (word_char(k->at[tag]))
        tag++;
    if (!k->d->dollar_quotes || isdigit((unsigned char)k->at[1]) || k->at[tag] != '$')
        return refuse(k, "has a parameter; only :now is one");
    const char *body = k->at + tag + 1;
    for (const char *c = strchr(body, '$'); c; c = strchr(c + 1, '$'))
        if (!strncmp(c, k->at, tag + 1)) {
            copy_to(k, c + tag + 1);
            return 0;
        }
    return refuse(k, "has a dollar-quoted string that is not closed");
}

static int colon(struct scan *k)
{
    if (k->at[1] == ':' || k->at[1] == '=') {
        copy_to(k, k->at + 2);
        return 0;
    }
    size_t n = word_length(k->at + 1);
    if (n == 3 && !strncasecmp(k->at + 1, "now", 3)) {
        if (k->out)
            k->d->now(k->out, k->now);
        k->at += 4;
        return 0;
    }
    if (n && !isdigit((unsigned char)k->at[1]))
        return refuse(k, "has a parameter that is not :now");
    copy_to(k, k->at + 1);
    return 0;
}

static int word(struct scan *k, bool after_dot)
{
    size_t n = word_length(k->at);
    const char *w = k->at;
    if (k->d->backslash_strings && n == 1 && (*w == 'e' || *w == 'E') && w[1] == '\'') {
        copy_to(k, w + 1);
        k->escapes = true;
        return quoted(k, '\'', true);
    }
    if (n == 4 && !strncasecmp(w, "this", 4) && !after_dot) {
        if (k->out)
            text_add(&k->out->sql, k->alias);
        k->at += n;
        return 0;
    }
    copy_to(k, w + n);
    return 0;
}

static int scan_step(struct scan *k, int *depth, bool after_dot)
{
    const struct dialect *d = k->d;
    char c = *k->at;
    if (c == '\'')
        return quoted(k, '\'', k->escapes || d->strings_escape);
    if (is_code(d, k->at))
        return refuse(k, "has a comment that the server runs");
    if (d->reserved && strchr(d->reserved, c))
        return refuse(k, "has a control character");
    if (is_line_comment(d, k->at)) {
        line_comment(k);
        return 0;
    }
    if (c == '/' && k->at[1] == '*')
        return block_comment(k);
    k->escapes = k->escapes && isspace((unsigned char)c);
    if (c == '"' || (c == '`' && d->backticks))
        return quoted(k, c, c == '"' && d->strings_escape);
    if (c == '[' && d->brackets)
        return quoted(k, ']', false);
    if (c == '$')
        return dollar(k);
    if (c == ':')
        return colon(k);
    if (c == '?' && !d->question_marks_ok)
        return refuse(k, "has a parameter; only :now is one");
    if (c == ';')
        return refuse(k, "has a ';', but must be one expression,");
    if (word_char(c))
        return word(k, after_dot);
    if (c == ')' && *depth == 0)
        return refuse(k, "closes a parenthesis that it did not open");
    *depth += (c == '(') - (c == ')');
    copy_to(k, k->at + 1);
    return 0;
}

int sql_condition(struct stmt *s, const struct dialect *d, const char *alias, const char *sql, instant now,
                  struct err *e)
{
    struct scan k = {.out = s, .d = d, .alias = alias, .text = sql, .at = sql, .now = now, .e = e};
    int depth = 0;
    bool after_dot = false, empty = true;
    if (s)
        s->has_sql = true;
    /* Every step consumes at least one character, or fails. */
    while (*k.at) {
        char first = *k.at;
        bool blank = isspace((unsigned char)first) || is_comment(d, k.at);
        if (scan_step(&k, &depth, after_dot) < 0)
            return -1;
        if (!blank) {
            after_dot = first == '.';
            empty = false;
        }
    }
    if (depth)
        return refuse(&k, "leaves a parenthesis open");
    if (empty)
        return refuse(&k, "is empty");
    return 0;
}

/* --- :now against numbers ------------------------------------------------------------------------------
 * Where :now is a text, every number is less than it: a condition that compares the two would be true of all
 * rows, or of none, and nobody would be told. */

enum token_kind { TOKEN_NAME, TOKEN_NOW, TOKEN_OPERATOR, TOKEN_DOT, TOKEN_OTHER };
struct token {
    enum token_kind kind;
    const char *at;
    size_t len;
    const char *end; /* where the text goes on */
};
struct tokens {
    struct token *list;
    size_t n;
};

static void tokens_release(struct tokens *t)
{
    free(t->list);
}

/* From an opening quote to behind the closing one, or to the end. */
static const char *behind_quote(const char *s, char close)
{
    const char *end = strchr(s + 1, close);
    return end ? end + 1 : s + strlen(s);
}

/* Blanks and comments. */
static const char *skip_blanks(const struct dialect *d, const char *s)
{
    for (;;) {
        if (isspace((unsigned char)*s))
            s++;
        else if (is_line_comment(d, s))
            s += strcspn(s, "\n");
        else if (s[0] == '/' && s[1] == '*')
            s = strstr(s + 2, "*/") ? strstr(s + 2, "*/") + 2 : s + strlen(s);
        else
            return s;
    }
}

static struct token next_token(const char *s)
{
    struct token t = {TOKEN_OTHER, s, 1, NULL};
    if (*s == '\'') {
        t.len = (size_t)(behind_quote(s, '\'') - s);
    } else if (*s == '"' || *s == '`' || *s == '[') {
        t.kind = TOKEN_NAME;
        t.end = behind_quote(s, *s == '[' ? ']' : *s);
        t.at = s + 1;
        t.len = t.end - t.at >= 1 ? (size_t)(t.end - t.at) - 1 : 0;
    } else if (!strncasecmp(s, ":now", 4) && !word_char(s[4])) {
        t.kind = TOKEN_NOW;
        t.len = 4;
    } else if (word_char(*s)) {
        t.kind = TOKEN_NAME;
        while (word_char(s[t.len]))
            t.len++;
    } else if (*s == '.') {
        t.kind = TOKEN_DOT;
    } else if (strchr("<>=!+-*/%", *s)) {
        t.kind = TOKEN_OPERATOR;
        t.len = strspn(s, "<>=!+-*/%");
    }
    if (!t.end)
        t.end = t.at + t.len;
    return t;
}

static void tokenize(const struct dialect *d, const char *sql, struct tokens *ret)
{
    for (const char *s = skip_blanks(d, sql); *s; s = skip_blanks(d, ret->list[ret->n - 1].end)) {
        ret->list = mem_grow(ret->list, ret->n + 1, sizeof(*ret->list));
        ret->list[ret->n++] = next_token(s);
    }
}

static bool is_this(const struct token *t)
{
    return t->kind == TOKEN_NAME && t->len == 4 && !strncasecmp(t->at, "this", 4);
}

/* The whole-number column that ends (or, ahead, begins) at token i: `this.column`, or the column alone. */
static const struct column *number_at(const struct tokens *k, size_t i, bool ahead, const struct facts *f,
                                      const struct table *t)
{
    size_t at = i;
    if (ahead && i + 2 < k->n && is_this(&k->list[i]) && k->list[i + 1].kind == TOKEN_DOT)
        at = i + 2;
    else if (!ahead && i >= 1 && k->list[i - 1].kind == TOKEN_DOT && (i < 2 || !is_this(&k->list[i - 2])))
        return NULL; /* of another table */
    if (k->list[at].kind != TOKEN_NAME)
        return NULL;
    AUTO(text_release) struct text name = {0};
    text_add_n(&name, k->list[at].at, k->list[at].len);
    const struct name as_written = {.text = text_str(&name)};
    const struct column *c = table_column(f, t, &as_written);
    return c && c->type == TYPE_INTEGER ? c : NULL;
}

int sql_now_is_time(const struct dialect *d, const char *sql, const struct facts *f, const struct table *t,
                    struct err *e)
{
    AUTO(tokens_release) struct tokens k = {0};
    if (!d->now_is_text)
        return 0;
    tokenize(d, sql, &k);
    for (size_t i = 0; i < k.n; i++) {
        if (k.list[i].kind != TOKEN_NOW)
            continue;
        const struct column *c = NULL;
        if (i >= 2 && k.list[i - 1].kind == TOKEN_OPERATOR)
            c = number_at(&k, i - 2, false, f, t);
        if (!c && i + 2 < k.n && k.list[i + 1].kind == TOKEN_OPERATOR)
            c = number_at(&k, i + 2, true, f, t);
        if (c)
            return err_set(e, ERR_USAGE,
                           "the condition compares :now with '%s', which holds whole numbers; %s", c->name,
                           d->now_is_text);
    }
    return 0;
}
