/* http_work: one thread that makes answers which may take long, in the order they were asked for. */
#ifndef HTTP_WORK_H
#define HTTP_WORK_H

#include <pthread.h>
#include <stdbool.h>

/* Lies in whoever asked, until done. */
struct job {
    void (*make)(struct job *job); /* in the worker's thread */
    void (*done)(struct job *job); /* the same; the job may be gone after it */
    struct job *next;
    bool dropped; /* it was not made: the server closes */
};

struct work;
struct work *work_new(void);
bool work_full(struct work *w); /* so many wait that one more should not */
void work_add(struct work *w, struct job *job);
/* Drops what waits and returns when the one at work is done, too. */
void work_drain(struct work *w);
void work_free(struct work *w); /* after work_drain */

/* Starts a thread that no signal is delivered to; ends the process when there is none to be had. */
pthread_t thread_start(void *(*body)(void *), void *argument);

#endif
