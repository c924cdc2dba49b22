/* mistake: the list of mistakes, and the word that was probably meant. */
#include "contract/mistake.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/quote.h"

enum { MOST_KEPT = 10000, MOST_SHOWN = 100 };

void mistakes_release(struct mistakes *m)
{
    arena_free(m->arena);
    *m = (struct mistakes){0};
}

bool mistakes_full(const struct mistakes *m)
{
    return m->n >= MOST_KEPT;
}

/* What was read may hold anything, and a long piece of it may be cut inside a character: the text of a
 * mistake is whole UTF-8 that people see as it is all the same. */
static void clean(struct text *t)
{
    for (size_t i = 0; i < t->len;) {
        unsigned char c = (unsigned char)t->data[i];
        size_t need = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4, have = 1;
        while (have < need && ((unsigned char)t->data[i + have] & 0xc0) == 0x80)
            have++;
        if (c < 0x20 || c == 0x7f || have < need || (c & 0xc0) == 0x80)
            memset(t->data + i, '?', have);
        i += have;
    }
    AUTO(text_release) struct text seen = {0};
    text_add_seen(&seen, text_str(t), false);
    text_clear(t);
    text_add(t, text_str(&seen));
}

void mistakes_add(struct mistakes *m, struct place at, const char *fmt, ...)
{
    if (mistakes_full(m))
        return;
    if (!m->arena)
        m->arena = arena_new();
    AUTO(text_release) struct text t = {0};
    va_list args;
    va_start(args, fmt);
    text_vaddf(&t, fmt, args);
    va_end(args);
    clean(&t);
    m->list = arena_push(m->arena, m->list, m->n, sizeof(*m->list));
    m->list[m->n++] = (struct mistake){at, arena_strndup(m->arena, text_str(&t), t.len)};
}

/* By place; at one place by text, which puts repetitions (a mistake read through several aliases) together.
 */
static int compare_mistakes(const void *left, const void *right)
{
    const struct mistake *a = left, *b = right;
    if (a->at.line != b->at.line)
        return a->at.line < b->at.line ? -1 : 1;
    if (a->at.column != b->at.column)
        return a->at.column < b->at.column ? -1 : 1;
    return strcmp(a->text, b->text);
}

void mistakes_settle(struct mistakes *m)
{
    if (m->n == 0)
        return;
    qsort(m->list, m->n, sizeof(*m->list), compare_mistakes);
    size_t kept = 1;
    for (size_t i = 1; i < m->n; i++)
        if (compare_mistakes(&m->list[kept - 1], &m->list[i]) != 0)
            m->list[kept++] = m->list[i];
    m->n = kept;
    if (m->n <= MOST_SHOWN)
        return;
    size_t more = m->n - (MOST_SHOWN - 1);
    m->n = MOST_SHOWN;
    m->list[MOST_SHOWN - 1].text = arena_printf(m->arena, "and %zu more mistakes from here on", more);
}

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

enum { LONGEST_WORD = 64 };

/* How many letters must be changed, added, dropped or swapped with their neighbour; case does not count.
 * Three rows of the usual table are enough: a swap looks two rows back. */
static int word_distance(const char *a, const char *b)
{
    int n = (int)strlen(b);
    int rows[3][LONGEST_WORD + 1];
    int *before = rows[0], *last = rows[1], *row = rows[2];
    for (int k = 0; k <= n; k++)
        last[k] = k;
    for (int i = 1; a[i - 1]; i++) {
        row[0] = i;
        for (int k = 1; k <= n; k++) {
            int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[k - 1]);
            row[k] = min_of(min_of(row[k - 1], last[k]) + 1, last[k - 1] + (ca != cb));
            bool swapped = i > 1 && k > 1 && ca == tolower((unsigned char)b[k - 2]) &&
                           cb == tolower((unsigned char)a[i - 2]);
            if (swapped)
                row[k] = min_of(row[k], before[k - 2] + 1);
        }
        int *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[n];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t n)
{
    size_t len = strlen(word);
    if (len == 0 || len > LONGEST_WORD)
        return NULL;
    /* One slip in a short word, up to three in a long one; a word of one or two letters must be exact but
     * for case. */
    int best = len < 3 ? 0 : len < 6 ? 1 : len < 10 ? 2 : 3;
    const char *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (strlen(candidates[i]) > LONGEST_WORD)
            continue;
        int distance = word_distance(word, candidates[i]);
        if (distance < best || (distance == best && !found)) {
            best = distance;
            found = candidates[i];
        }
    }
    if (found || len < 3)
        return found;
    /* Or the only one that begins with the word. */
    for (size_t i = 0; i < n; i++) {
        if (strncasecmp(candidates[i], word, len) != 0)
            continue;
        if (found)
            return NULL;
        found = candidates[i];
    }
    return found;
}
