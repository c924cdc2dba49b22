/* base: the error value, the arena, the text buffer and scope cleanup. A closed list: what does
 * not fit one of these four belongs to the module that needs it. */
#ifndef LAPSE_BASE_H
#define LAPSE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Scope cleanup: AUTO(text_release) struct text t = {0};
 * The cleanup function takes a pointer to the variable. */
#define AUTO(fn)          __attribute__((cleanup(fn)))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define COUNT_OF(array)   (sizeof(array) / sizeof((array)[0]))

/* --- memory ---------------------------------------------------------------------------------
 * Running out of memory ends the process: an open transaction is then rolled back by the
 * database, which is the only safe answer a deletion engine has. These never return NULL. */
void *mem_alloc(size_t size);                         /* zeroed; free() it */
void *mem_grow(void *old, size_t count, size_t size); /* like reallocarray, aborts on overflow */
char *mem_strdup(const char *s);
void mem_free_p(void *pointer_to_pointer); /* AUTO(mem_free_p) char *s = NULL; */

/* An arena is freed whole. Pointers into it stay valid until then; nothing in it is freed alone. */
struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *a);
void arena_free_p(struct arena **a);
void arena_join(struct arena *to,
                struct arena *from);             /* `from` is freed; what lives in it lives on in `to` */
void *arena_alloc(struct arena *a, size_t size); /* zeroed, aligned for any type */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
/* One more element at the end of an array that lives in the arena: returns the (moved) array,
 * with room for at least count + 1 elements; the new one is zeroed. count must be the current length. */
void *arena_push(struct arena *a, void *array, size_t count, size_t size);

/* A growing text. {0} is a valid empty one; data is always NUL-terminated once something was added. */
struct text {
    char *data;
    size_t len;
    size_t room;
};
void text_add(struct text *t, const char *s);
void text_add_n(struct text *t, const char *s, size_t len);
void text_add_i64(struct text *t, int64_t n); /* in decimal, many times faster than text_addf */
void text_addf(struct text *t, const char *fmt, ...) PRINTF(2, 3);
void text_vaddf(struct text *t, const char *fmt, va_list args) PRINTF(2, 0) __attribute__((nonnull(2)));
void text_clear(struct text *t);            /* keeps the room */
void text_release(struct text *t);          /* back to {0}; usable with AUTO() */
const char *text_str(const struct text *t); /* never NULL */

/* --- errors -----------------------------------------------------------------------------------
 * kind drives decisions, text is for people and is wrapped on the way up, printed once at the top. */
enum err_kind {
    ERR_NONE,
    ERR_USAGE,          /* the call itself is wrong */
    ERR_CONTRACT,       /* the contract is wrong */
    ERR_FINDINGS,       /* the live schema does not allow it */
    ERR_UNREACHABLE,    /* no connection could be had */
    ERR_LOST,           /* the connection broke; what was not committed is rolled back */
    ERR_COMMIT_UNKNOWN, /* the connection broke while COMMIT was under way */
    ERR_CONFLICT,       /* deadlock, serialization failure: retry the whole transaction */
    ERR_BUSY,           /* a lock was not had in time */
    ERR_TURN,           /* another transaction judges ranks of this table: the whole transaction later */
    ERR_TIMEOUT,        /* a statement took too long */
    ERR_REFUSED,        /* a constraint, trigger or rule kept a row */
    ERR_DATABASE,       /* any other error of the database: the policy fails */
    ERR_STOPPED,        /* asked to stop */
    ERR_PAUSED,         /* a brake is on */
    ERR_LEASE,          /* the lease of an exclusive scheduler was lost to another */
    ERR_HELD,           /* … is held by another */
    ERR_BUDGET,         /* what one run of a policy may do is used up */
    ERR_WINDOW,         /* the scheduler's window closed */
    ERR_FUSE,           /* more would be deleted than the policy's limits allow */
    ERR_SYSTEM,         /* files, clocks, the operating system */
};
struct err {
    enum err_kind kind;
    char code[32]; /* the database's own code, "55P03", "SQLITE_BUSY", or "" */
    char text[1000];
};
#define ERR_INIT                                                                                             \
    {                                                                                                        \
        ERR_NONE, "", ""                                                                                     \
    }
/* Sets the error (over a former one) and returns -1, so that `return err_set(e, …);` reads well. e may be
 * NULL. The text is one line: line breaks in it are escaped. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) PRINTF(3, 4);
/* Puts "<fmt>: " before the text; kind and code stay. Returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);

/* --- checked arithmetic: false on overflow, *ret untouched then ----------------------------- */
static inline bool add_i64(int64_t a, int64_t b, int64_t *ret)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}
static inline bool sub_i64(int64_t a, int64_t b, int64_t *ret)
{
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}
static inline bool mul_i64(int64_t a, int64_t b, int64_t *ret)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

#endif
