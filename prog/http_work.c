/* http_work: a short queue and the thread that empties it. */
#include "http_work.h"

#include <signal.h>
#include <stdlib.h>

enum { MOST_WAITING = 16, STACK = 1 << 20 /* address space; memory is what is touched */ };

struct work {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, **end;
    unsigned waiting;
    bool busy, stop;
    pthread_t thread;
};

pthread_t thread_start(void *(*body)(void *), void *argument)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_attr_t how;
    pthread_t made;
    /* A new thread inherits the mask: signals stay with those who expect them. */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_attr_init(&how) || pthread_attr_setstacksize(&how, STACK) ||
        pthread_create(&made, &how, body, argument))
        abort();
    pthread_attr_destroy(&how);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return made;
}

static struct job *take(struct work *w)
{
    struct job *job = w->first;
    w->first = job->next;
    if (!w->first)
        w->end = &w->first;
    w->waiting--;
    return job;
}

static void *work_body(void *argument)
{
    struct work *w = argument;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->stop)
            pthread_cond_wait(&w->changed, &w->lock);
        if (!w->first)
            break;
        struct job *job = take(w);
        w->busy = true;
        pthread_mutex_unlock(&w->lock);
        job->make(job);
        job->done(job);
        pthread_mutex_lock(&w->lock);
        w->busy = false;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct work *work_new(void)
{
    struct work *w = calloc(1, sizeof(*w));
    if (!w || pthread_mutex_init(&w->lock, NULL) || pthread_cond_init(&w->changed, NULL))
        abort();
    w->end = &w->first;
    w->thread = thread_start(work_body, w);
    return w;
}

bool work_full(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    bool full = w->waiting >= MOST_WAITING;
    pthread_mutex_unlock(&w->lock);
    return full;
}

void work_add(struct work *w, struct job *job)
{
    pthread_mutex_lock(&w->lock);
    job->next = NULL;
    *w->end = job;
    w->end = &job->next;
    w->waiting++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void work_drain(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->first) {
        struct job *job = take(w);
        job->dropped = true;
        job->done(job);
    }
    while (w->busy)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

void work_free(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
