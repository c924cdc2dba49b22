/* thread: threads of the library's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>

#include "base/thread.h"

static void *look(void *blocked)
{
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    *(bool *)blocked = sigismember(&now, SIGTERM) && sigismember(&now, SIGINT) && sigismember(&now, SIGUSR1);
    return blocked;
}

static void signals_are_for_others(void **state)
{
    (void)state;
    pthread_t thread;
    bool blocked = false;
    void *returned = NULL;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(thread_begin(&thread, look, &blocked), 0);
    assert_int_equal(pthread_join(thread, &returned), 0);
    assert_ptr_equal(returned, &blocked);
    assert_true(blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(signals_are_for_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
