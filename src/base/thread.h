/* thread: a thread of the library's own: signals are for whoever runs it, and the stack is small. */
#ifndef LAPSE_BASE_THREAD_H
#define LAPSE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

int thread_begin(pthread_t *ret, void *(*body)(void *), void *context); /* as pthread_create */

/* Something that may take long and that nothing can end, in a thread of its own. While it runs `leave` is
 * asked; true: it is left behind there, and `drop` gets the work when it is done. Returns whether it is done:
 * then the work is the caller's again. Where no thread can be had it is done at once. */
bool thread_try(void (*body)(void *work), void (*drop)(void *work), void *work, bool (*leave)(void *context),
                void *context);

#endif
