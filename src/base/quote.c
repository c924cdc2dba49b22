/* quote: scalars and comments of YAML, texts for people. */
#include "base/quote.h"

#include <string.h>
#include <strings.h>

size_t utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2 : s[0] >= 0xE0 && s[0] < 0xF0 ? 3 : 0;
    if (s[0] >= 0xF0 && s[0] < 0xF5)
        n = 4;
    for (size_t i = 1; i < n; i++) /* stops at the terminator too: it is no continuation */
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xED && s[1] >= 0xA0;
    bool beyond = s[0] == 0xF4 && s[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

/* The character of so many bytes, which are valid. */
static unsigned code_point(const char *s, size_t n)
{
    unsigned c = (unsigned char)s[0];
    c &= n == 1 ? 0x7Fu : n == 2 ? 0x1Fu : n == 3 ? 0x0Fu : 0x07u;
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3Fu);
    return c;
}

/* Unicode's control and format characters, separators of lines, and what it calls default ignorable. */
bool is_unseen(const char *s, size_t n)
{
    static const struct {
        unsigned from, to;
    } unseen[] = {{0, 0x1F},          {0x7F, 0x9F},       {0xAD, 0xAD},      {0x34F, 0x34F},
                  {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},    {0x70F, 0x70F},
                  {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},  {0x200B, 0x200F},
                  {0x2028, 0x202E},   {0x2060, 0x206F},   {0x3164, 0x3164},  {0xFE00, 0xFE0F},
                  {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},  {0xFFFE, 0xFFFF},
                  {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};
    if (!n)
        return true;
    unsigned c = code_point(s, n);
    for (size_t i = 0; i < COUNT_OF(unseen); i++)
        if (c >= unseen[i].from && c <= unseen[i].to)
            return true;
    return false;
}

static void add_escaped(struct text *out, const char *s, size_t n)
{
    if (n == 1 && (*s == '\n' || *s == '\t'))
        text_add(out, *s == '\n' ? "\\n" : "\\t");
    else if (n <= 1)
        text_addf(out, "\\x%02x", (unsigned)(unsigned char)*s);
    else
        text_addf(out, n < 4 ? "\\u%04x" : "\\U%08x", code_point(s, n));
}

void text_add_seen(struct text *out, const char *s, bool lines)
{
    for (size_t plain, n; *s; s += n ? n : 1) {
        for (plain = 0; s[plain] >= ' ' && s[plain] < 0x7F;)
            plain++;
        text_add_n(out, s, plain);
        if (!*(s += plain))
            break;
        n = utf8_length(s);
        if (!is_unseen(s, n) || (lines && (*s == '\n' || *s == '\t')))
            text_add_n(out, s, n);
        else
            add_escaped(out, s, n);
    }
}

/* Control characters, line and paragraph separators, the byte order mark: what YAML does not take as it is,
 * or an editor shows as something else. n: the character's length. */
static bool is_unprintable(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];
    if (n <= 1)
        return n == 0 || c < 0x20 || c == 0x7F;
    if (n == 2)
        return c == 0xC2 && (unsigned char)s[1] < 0xA0;
    static const char *const odd[] = {"\xE2\x80\xA8", "\xE2\x80\xA9", "\xEF\xBB\xBF", "\xEF\xBF\xBE",
                                      "\xEF\xBF\xBF"};
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        if (n == 3 && memcmp(s, odd[i], 3) == 0)
            return true;
    return false;
}

bool yaml_can_hold(const char *s)
{
    for (size_t n; *s; s += n) {
        n = utf8_length(s);
        if (is_unprintable(s, n))
            return false;
    }
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word_of_yaml(const char *s)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcasecmp(s, words[i]) == 0)
            return true;
    return false;
}

static bool is_bare(const char *s, bool flow)
{
    const char *also = flow ? "0123456789.-/()=' " : "0123456789.-/()=', ";
    size_t len = strlen(s);
    if (!is_letter(*s) || s[len - 1] == ' ' || is_word_of_yaml(s))
        return false;
    for (const char *p = s; *p; p++)
        if (!is_letter(*p) && !strchr(also, *p))
            return false;
    return true;
}

void yaml_scalar(struct text *out, const char *s, bool flow)
{
    if (is_bare(s, flow)) {
        text_add(out, s);
        return;
    }
    text_add(out, "\"");
    for (size_t n; *s; s += n) {
        n = utf8_length(s);
        if (strncmp(s, "${", 2) == 0)
            text_add(out, "$");
        if (*s == '"' || *s == '\\')
            text_add(out, "\\");
        if (n == 0)
            text_add(out, "\xEF\xBF\xBD"), n = 1;
        else if (n == 1 && is_unprintable(s, n))
            text_addf(out, "\\x%02X", (unsigned)(unsigned char)*s);
        else if (is_unseen(s, n)) /* YAML reads it back */
            add_escaped(out, s, n);
        else
            text_add_n(out, s, n);
    }
    text_add(out, "\"");
}

void yaml_comment(struct text *out, const char *s)
{
    for (size_t n; *s; s += n) {
        n = utf8_length(s);
        if (is_unprintable(s, n))
            text_add(out, "\xEF\xBF\xBD");
        else if (is_unseen(s, n))
            add_escaped(out, s, n);
        else
            text_add_n(out, s, n);
        n = n ? n : 1;
    }
}
