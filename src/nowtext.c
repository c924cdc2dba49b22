/* nowtext: a condition that compares :now with a number, on an engine where :now is a text. Every number is
 * less than every text there, so that such a condition would be true of all rows, or of none, and nobody
 * would be told. */
#include "nowtext.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum token_kind { TOKEN_NAME, TOKEN_NOW, TOKEN_OPERATOR, TOKEN_DOT, TOKEN_OTHER };
struct token {
    enum token_kind kind;
    const char *at;
    size_t len;
};
struct tokens {
    struct token *list;
    size_t n;
};

static void tokens_release(struct tokens *t)
{
    free(t->list);
}

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* From an opening quote to behind the closing one, or to the end. */
static const char *behind_quote(const char *s, char close)
{
    const char *end = strchr(s + 1, close);
    return end ? end + 1 : s + strlen(s);
}

/* Blanks and comments. */
static const char *skip_blanks(const char *s)
{
    for (;;) {
        if (isspace((unsigned char)*s))
            s++;
        else if (s[0] == '-' && s[1] == '-')
            s += strcspn(s, "\n");
        else if (s[0] == '/' && s[1] == '*')
            s = strstr(s + 2, "*/") ? strstr(s + 2, "*/") + 2 : s + strlen(s);
        else
            return s;
    }
}

static struct token next_token(const char *s)
{
    struct token t = {TOKEN_OTHER, s, 1};
    if (*s == '\'') {
        t.len = (size_t)(behind_quote(s, '\'') - s);
    } else if (*s == '"' || *s == '`' || *s == '[') {
        const char *end = behind_quote(s, *s == '[' ? ']' : *s);
        t = (struct token){TOKEN_NAME, s + 1, (size_t)(end - s)};
        t.len -= t.len >= 2 ? 2 : t.len;
    } else if (*s == ':' && !strncasecmp(s, ":now", 4) && !name_char(s[4])) {
        t = (struct token){TOKEN_NOW, s, 4};
    } else if (name_char(*s)) {
        t.kind = TOKEN_NAME;
        while (name_char(s[t.len]))
            t.len++;
    } else if (*s == '.') {
        t.kind = TOKEN_DOT;
    } else if (strchr("<>=!+-*/%", *s)) {
        t.kind = TOKEN_OPERATOR;
        t.len = strspn(s, "<>=!+-*/%");
    }
    return t;
}

/* Where the text goes on behind a token: a quoted name's closing quote is no part of it. */
static const char *behind(const struct token *t, const char *start)
{
    return t->at + t->len + (t->at != start);
}

static void tokenize(const char *sql, struct tokens *ret)
{
    for (const char *s = skip_blanks(sql); *s;) {
        struct token t = next_token(s);
        ret->list = mem_grow(ret->list, ret->n + 1, sizeof(*ret->list));
        ret->list[ret->n++] = t;
        const char *end = behind(&t, s);
        s = skip_blanks(end > s ? end : s + 1);
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

int nowtext_check(const char *sql, const struct facts *f, const struct table *t, const char *hint,
                  struct err *e)
{
    AUTO(tokens_release) struct tokens k = {0};
    tokenize(sql, &k);
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
                           hint);
    }
    return 0;
}
