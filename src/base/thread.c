/* thread: threads of the library's own. See thread.h. */
#include "base/thread.h"

#include <signal.h>

enum { STACK_SIZE = 256 * 1024 };

int thread_begin(pthread_t *ret, void *(*body)(void *), void *context)
{
    sigset_t all, old;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(ret, &attr, body, context);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return r;
}
