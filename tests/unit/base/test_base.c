/* base: memory, the arena, the text buffer, errors, checked arithmetic. */
#include "base/base.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* --- memory ----------------------------------------------------------------------------------- */

static void memory_is_zeroed_even_none_of_it(void **state)
{
    (void)state;
    AUTO(mem_free_p) char *none = mem_alloc(0);
    AUTO(mem_free_p) unsigned char *some = mem_alloc(1000);
    assert_non_null(none);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(some[i], 0);
    mem_free_p(&none);
    assert_null(none);
}

static void memory_grows_and_keeps_what_was_there(void **state)
{
    (void)state;
    AUTO(mem_free_p) int *list = NULL;
    for (int i = 0; i < 1000; i++) {
        list = mem_grow(list, (size_t)i + 1, sizeof(*list));
        list[i] = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(list[i], i);
    AUTO(mem_free_p) char *copy = mem_strdup("same");
    assert_string_equal(copy, "same");
}

static void grow_too_far(void)
{
    mem_grow(NULL, SIZE_MAX / 2, 3);
}

static void push_too_far(void)
{
    arena_push(arena_new(), NULL, SIZE_MAX / 4 + 1, 8);
}

static void alloc_too_much(void)
{
    arena_alloc(arena_new(), SIZE_MAX - 3);
}

/* A size that cannot be counted must end the process: wrapped around it would be a small one. */
static void assert_aborts(void (*fn)(void))
{
    int said[2], status;
    char words[100] = "";
    assert_int_equal(pipe(said), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(said[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(said[1]);
    assert_true(read(said[0], words, sizeof(words) - 1) > 0);
    close(said[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_string_equal(words, "lapse: out of memory\n");
}

static void a_size_that_overflows_ends_the_process(void **state)
{
    (void)state;
    assert_aborts(grow_too_far);
    assert_aborts(push_too_far);
    assert_aborts(alloc_too_much);
}

/* --- the arena -------------------------------------------------------------------------------- */

static void an_arena_gives_zeroed_aligned_pieces_of_any_size(void **state)
{
    (void)state;
    AUTO(arena_free_p) struct arena *a = arena_new();
    unsigned char *before[300];
    for (size_t i = 0; i < 300; i++) {
        size_t size = i * i; /* up to several blocks at once */
        before[i] = arena_alloc(a, size);
        assert_int_equal((uintptr_t)before[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(before[i][k], 0);
        memset(before[i], (int)i, size);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t k = 0; k < i * i; k++)
            assert_int_equal(before[i][k], (unsigned char)i);
}

static void an_arena_copies_texts(void **state)
{
    (void)state;
    struct arena *a = arena_new();
    char word[] = "retention";
    char *whole = arena_strdup(a, word), *part = arena_strndup(a, word, 3);
    word[0] = 'X';
    assert_string_equal(whole, "retention");
    assert_string_equal(part, "ret");
    assert_string_equal(arena_printf(a, "%s=%d", part, 42), "ret=42");
    assert_string_equal(arena_printf(a, "%s", ""), "");
    char *zero = arena_strndup(a, "a\0b", 3);
    assert_memory_equal(zero, "a\0b", 4);
    arena_free_p(&a);
    assert_null(a);
    arena_free(NULL);
}

static void joined_arenas_keep_what_both_hold(void **state)
{
    (void)state;
    for (int pieces = 0; pieces < 4; pieces++) {
        AUTO(arena_free_p) struct arena *a = arena_new();
        struct arena *b = arena_new();
        char *mine[4], *theirs[4];
        for (int i = 0; i < pieces; i++) {
            mine[i] = arena_printf(a, "mine %d%*s", i, 900 * (pieces - 1), "");
            theirs[i] = arena_printf(b, "theirs %d%*s", i, 900 * i, "");
        }
        if (pieces == 1)
            theirs[0] = arena_strdup(b, "theirs 0");
        arena_join(a, b);
        char *later = arena_strdup(a, "later");
        for (int i = 0; i < pieces; i++) {
            assert_int_equal(mine[i][5], '0' + i);
            assert_int_equal(theirs[i][7], '0' + i);
        }
        assert_string_equal(later, "later");
    }
}

static void a_pushed_array_keeps_what_it_holds(void **state)
{
    (void)state;
    AUTO(arena_free_p) struct arena *a = arena_new();
    struct pair {
        int64_t n, twice;
    } *list = NULL;
    for (int64_t i = 0; i < 1000; i++) {
        list = arena_push(a, list, (size_t)i, sizeof(*list));
        assert_int_equal(list[i].n, 0);
        assert_int_equal(list[i].twice, 0);
        list[i] = (struct pair){i, 2 * i};
        arena_alloc(a, 1); /* something that lies right behind it */
    }
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(list[i].n, i);
        assert_int_equal(list[i].twice, 2 * i);
    }
}

/* --- the text --------------------------------------------------------------------------------- */

static void a_text_grows(void **state)
{
    (void)state;
    AUTO(text_release) struct text t = {0};
    assert_string_equal(text_str(&t), "");
    text_add_n(&t, NULL, 0);
    assert_string_equal(text_str(&t), "");
    for (int i = 0; i < 1000; i++)
        text_addf(&t, "%03d", i);
    text_add(&t, "!");
    text_add_n(&t, "?no", 1);
    assert_int_equal(t.len, 3002);
    assert_memory_equal(t.data + 3 * 457, "457", 3);
    assert_string_equal(t.data + 2997, "999!?");
}

static void a_text_holds_exactly_what_was_added(void **state)
{
    (void)state;
    for (size_t len = 60; len < 70; len++) { /* around its first room */
        AUTO(text_release) struct text t = {0};
        char fill[80];
        memset(fill, 'x', sizeof(fill));
        text_add_n(&t, fill, len);
        text_addf(&t, "%s", "");
        assert_int_equal(strlen(text_str(&t)), len);
        text_addf(&t, "%s", "yz");
        assert_string_equal(t.data + len, "yz");
    }
}

static void a_text_takes_numbers(void **state)
{
    (void)state;
    static const int64_t numbers[] = {0, 7, -7, 10, 99, 100, 1234567890123, INT64_MAX, INT64_MIN, -10};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        AUTO(text_release) struct text t = {0}, expected = {0};
        text_add_i64(&t, numbers[i]);
        text_addf(&expected, "%lld", (long long)numbers[i]);
        assert_string_equal(text_str(&t), text_str(&expected));
    }
}

static void a_text_can_be_emptied(void **state)
{
    (void)state;
    struct text t = {0};
    text_clear(&t);
    assert_string_equal(text_str(&t), "");
    text_add(&t, "something");
    size_t room = t.room;
    text_clear(&t);
    assert_string_equal(text_str(&t), "");
    assert_int_equal(t.len, 0);
    assert_int_equal(t.room, room);
    text_add_n(&t, "a\0b", 3);
    assert_int_equal(t.len, 3);
    text_release(&t);
    assert_null(t.data);
    assert_int_equal(t.len + t.room, 0);
}

/* --- errors ----------------------------------------------------------------------------------- */

static void an_error_is_set_whole(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(e.kind, ERR_NONE);
    assert_string_equal(e.text, "");
    snprintf(e.code, sizeof(e.code), "55P03");
    assert_int_equal(err_set(&e, ERR_BUSY, "lock of %s", "sessions"), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    assert_string_equal(e.code, "");
    assert_string_equal(e.text, "lock of sessions");
    assert_int_equal(err_set(NULL, ERR_BUSY, "nobody listens"), -1);
    assert_int_equal(err_wrap(NULL, "nobody listens"), -1);
}

static void an_error_is_wrapped_on_the_way_up(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    err_set(&e, ERR_BUSY, "lock timeout");
    snprintf(e.code, sizeof(e.code), "55P03");
    assert_int_equal(err_wrap(&e, "batch %d", 42), -1);
    assert_int_equal(err_wrap(&e, "sweep '%s'", "sessions"), -1);
    assert_string_equal(e.text, "sweep 'sessions': batch 42: lock timeout");
    assert_int_equal(e.kind, ERR_BUSY);
    assert_string_equal(e.code, "55P03");
}

static void a_long_error_is_cut(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    char longer[3000];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    err_set(&e, ERR_DATABASE, "%s", longer);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_wrap(&e, "first");
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    assert_memory_equal(e.text, "first: xxx", 10);
    err_wrap(&e, "%s", longer);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

/* Between characters: half of one is no text, and whoever is to store it says no. */
static void a_long_error_is_cut_between_characters(void **state)
{
    (void)state;
    static const char *const characters[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (size_t c = 0; c < COUNT_OF(characters); c++) {
        size_t n = strlen(characters[c]);
        for (size_t shift = 0; shift < 5; shift++) {
            struct err e = ERR_INIT;
            AUTO(text_release) struct text t = {0};
            text_add_n(&t, "xxxxx", shift);
            while (t.len < sizeof(e.text) * 2)
                text_add(&t, characters[c]);
            err_set(&e, ERR_DATABASE, "%s", text_str(&t));
            assert_int_equal(strlen(e.text), shift + (sizeof(e.text) - 1 - shift) / n * n);
            err_wrap(&e, "y");
            assert_int_equal(strlen(e.text), 3 + shift + (sizeof(e.text) - 4 - shift) / n * n);
        }
    }
}

/* --- arithmetic ------------------------------------------------------------------------------- */

static void arithmetic_says_when_it_overflows(void **state)
{
    (void)state;
    int64_t r = 7;
    assert_false(add_i64(INT64_MAX, 1, &r));
    assert_false(add_i64(INT64_MIN, -1, &r));
    assert_false(sub_i64(INT64_MIN, 1, &r));
    assert_false(sub_i64(0, INT64_MIN, &r));
    assert_false(mul_i64(INT64_MAX / 2 + 1, 2, &r));
    assert_false(mul_i64(INT64_MIN, -1, &r));
    assert_int_equal(r, 7);
    assert_true(add_i64(INT64_MAX - 1, 1, &r) && r == INT64_MAX);
    assert_true(sub_i64(INT64_MIN + 1, 1, &r) && r == INT64_MIN);
    assert_true(mul_i64(INT64_MIN / 2, 2, &r) && r == INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_even_none_of_it),
        cmocka_unit_test(memory_grows_and_keeps_what_was_there),
        cmocka_unit_test(a_size_that_overflows_ends_the_process),
        cmocka_unit_test(an_arena_gives_zeroed_aligned_pieces_of_any_size),
        cmocka_unit_test(an_arena_copies_texts),
        cmocka_unit_test(joined_arenas_keep_what_both_hold),
        cmocka_unit_test(a_pushed_array_keeps_what_it_holds),
        cmocka_unit_test(a_text_grows),
        cmocka_unit_test(a_text_holds_exactly_what_was_added),
        cmocka_unit_test(a_text_takes_numbers),
        cmocka_unit_test(a_text_can_be_emptied),
        cmocka_unit_test(an_error_is_set_whole),
        cmocka_unit_test(an_error_is_wrapped_on_the_way_up),
        cmocka_unit_test(a_long_error_is_cut),
        cmocka_unit_test(a_long_error_is_cut_between_characters),
        cmocka_unit_test(arithmetic_says_when_it_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
