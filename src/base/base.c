/* base: see base.h. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
    static const char words[] = "lapse: out of memory\n";
    fwrite(words, 1, sizeof(words) - 1, stderr);
    abort();
}

void *mem_alloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *mem_grow(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        out_of_memory();
    void *p = realloc(old, bytes ? bytes : 1);
    if (!p)
        out_of_memory();
    return p;
}

char *mem_strdup(const char *s)
{
    size_t len = strlen(s) + 1;
    return memcpy(mem_alloc(len), s, len);
}

void mem_free_p(void *pointer_to_pointer)
{
    void **p = pointer_to_pointer;
    free(*p);
    *p = NULL;
}

/* Blocks are chained, newest first; an allocation larger than a block gets a block of its own. */
struct block {
    struct block *next;
    size_t used, room;
    _Alignas(max_align_t) unsigned char data[];
};

struct arena {
    struct block *blocks;
    size_t next_room;
};

/* The first is small, because many arenas stay so; each further one twice the size of the last. */
enum { BLOCK_LEAST = 1024, BLOCK_MOST = 16 * 1024 };

struct arena *arena_new(void)
{
    return mem_alloc(sizeof(struct arena));
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    for (struct block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

void arena_free_p(struct arena **a)
{
    arena_free(*a);
    *a = NULL;
}

/* The newest block of `to` stays the one in which there is room. */
void arena_join(struct arena *to, struct arena *from)
{
    struct block **behind = to->blocks ? &to->blocks->next : &to->blocks, *rest = *behind;
    *behind = from->blocks;
    while (*behind)
        behind = &(*behind)->next;
    *behind = rest;
    free(from);
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t align = _Alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        out_of_memory();
    size = (size + align - 1) / align * align;
    if (!a->blocks || a->blocks->room - a->blocks->used < size) {
        size_t usual = a->blocks ? a->next_room : BLOCK_LEAST, room = size > usual ? size : usual;
        a->next_room = usual < BLOCK_MOST ? usual * 2 : BLOCK_MOST;
        struct block *b = mem_alloc(sizeof(*b) + room);
        b->room = room;
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = a->blocks->data + a->blocks->used;
    a->blocks->used += size;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
    char *copy = arena_alloc(a, len + 1);
    memcpy(copy, s, len);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    AUTO(text_release) struct text t = {0};
    va_list args;
    va_start(args, fmt);
    text_vaddf(&t, fmt, args);
    va_end(args);
    return arena_strndup(a, text_str(&t), t.len);
}

void *arena_push(struct arena *a, void *array, size_t count, size_t size)
{
    /* Room is always a power of two, so the array is full exactly when count is one. */
    bool full = count == 0 || (count & (count - 1)) == 0;
    if (!full)
        return array;
    size_t bytes;
    if (__builtin_mul_overflow(count ? count * 2 : 1, size, &bytes))
        out_of_memory();
    void *moved = arena_alloc(a, bytes);
    if (count)
        memcpy(moved, array, count * size);
    return moved;
}

static void text_reserve(struct text *t, size_t more)
{
    size_t need = t->len + more + 1;
    if (need <= t->room)
        return;
    size_t room = t->room ? t->room : 64;
    while (room < need)
        room *= 2;
    t->data = mem_grow(t->data, room, 1);
    t->room = room;
}

void text_add_n(struct text *t, const char *s, size_t len)
{
    text_reserve(t, len);
    if (len)
        memcpy(t->data + t->len, s, len);
    t->len += len;
    t->data[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
    text_add_n(t, s, strlen(s));
}

void text_add_i64(struct text *t, int64_t n)
{
    char digits[20], *at = digits + sizeof(digits);
    uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (n < 0)
        *--at = '-';
    text_add_n(t, at, (size_t)(digits + sizeof(digits) - at));
}

/* Written twice only where there was no room for it. */
void text_vaddf(struct text *t, const char *fmt, va_list args)
{
    enum { USUAL = 32 };
    va_list again;
    va_copy(again, args);
    text_reserve(t, USUAL);
    size_t room = t->room - t->len;
    int len = vsnprintf(t->data + t->len, room, fmt, args);
    if (len > 0 && (size_t)len >= room) {
        text_reserve(t, (size_t)len);
        vsnprintf(t->data + t->len, (size_t)len + 1, fmt, again);
    }
    t->len += len > 0 ? (size_t)len : 0;
    t->data[t->len] = '\0';
    va_end(again);
}

void text_addf(struct text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    text_vaddf(t, fmt, args);
    va_end(args);
}

void text_clear(struct text *t)
{
    t->len = 0;
    if (t->data)
        t->data[0] = '\0';
}

void text_release(struct text *t)
{
    free(t->data);
    *t = (struct text){0};
}

const char *text_str(const struct text *t)
{
    return t->data ? t->data : "";
}

/* A text that was cut ends with a whole character: half of one is refused by whoever is to store it. */
static void drop_half_character(char *s, size_t len)
{
    size_t n = 0;
    while (n < len && n < 3 && ((unsigned char)s[len - 1 - n] & 0xC0) == 0x80)
        n++;
    unsigned char lead = n < len ? (unsigned char)s[len - 1 - n] : 0;
    size_t wants = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (wants > n)
        s[len - 1 - n] = '\0';
}

/* On one line: a line that a value breaks could pass for one of lapse's own. Cut to what there is room for.
 */
static void set_text(struct err *e, const char *words)
{
    AUTO(text_release) struct text t = {0};
    for (size_t n; *words; words += n) {
        n = strcspn(words, "\r\n");
        text_add_n(&t, words, n);
        if (words[n])
            text_add(&t, words[n++] == '\n' ? "\\n" : "\\r");
    }
    size_t len = t.len < sizeof(e->text) - 1 ? t.len : sizeof(e->text) - 1;
    memcpy(e->text, text_str(&t), len);
    e->text[len] = '\0';
    if (len < t.len)
        drop_half_character(e->text, len);
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    if (!e)
        return -1;
    AUTO(text_release) struct text t = {0};
    va_list args;
    va_start(args, fmt);
    text_vaddf(&t, fmt, args);
    va_end(args);
    e->kind = kind;
    e->code[0] = '\0';
    set_text(e, text_str(&t));
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e)
        return -1;
    AUTO(text_release) struct text t = {0};
    va_list args;
    va_start(args, fmt);
    text_vaddf(&t, fmt, args);
    va_end(args);
    text_add(&t, ": ");
    text_add(&t, e->text);
    set_text(e, text_str(&t));
    return -1;
}
