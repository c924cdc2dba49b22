/* thread: threads of the library's own. See thread.h. */
#include "base/thread.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

enum { STACK_SIZE = 256 * 1024, LOOK_MS = 50 };

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

struct attempt {
    pthread_mutex_t lock;
    bool done, left;
    int tell, hear; /* a pipe: something can be read when it is done */
    void (*body)(void *work), (*drop)(void *work);
    void *work;
};

static void attempt_free(struct attempt *a)
{
    close(a->tell);
    close(a->hear);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static void *attempt_run(void *attempt)
{
    struct attempt *a = attempt;
    a->body(a->work);
    pthread_mutex_lock(&a->lock);
    a->done = true;
    bool left = a->left;
    ssize_t told = left ? 0 : write(a->tell, "", 1); /* an empty pipe takes it */
    pthread_mutex_unlock(&a->lock);
    (void)told;
    if (!left)
        return NULL;
    a->drop(a->work);
    attempt_free(a);
    return NULL;
}

/* False: it was done meanwhile. */
static bool leave_behind(struct attempt *a)
{
    pthread_mutex_lock(&a->lock);
    a->left = !a->done;
    bool left = a->left;
    pthread_mutex_unlock(&a->lock);
    return left;
}

bool thread_try(void (*body)(void *work), void (*drop)(void *work), void *work, bool (*leave)(void *context),
                void *context)
{
    int ends[2];
    pthread_t thread;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        body(work);
        return true;
    }
    struct attempt *a = mem_alloc(sizeof(*a));
    *a = (struct attempt){.hear = ends[0], .tell = ends[1], .body = body, .drop = drop, .work = work};
    pthread_mutex_init(&a->lock, NULL);
    if (thread_begin(&thread, attempt_run, a) != 0) {
        attempt_free(a);
        body(work);
        return true;
    }
    struct pollfd fd = {a->hear, POLLIN, 0};
    while (poll(&fd, 1, LOOK_MS) <= 0)
        if (leave(context) && leave_behind(a)) {
            pthread_detach(thread);
            return false;
        }
    pthread_join(thread, NULL);
    attempt_free(a);
    return true;
}
