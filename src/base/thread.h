/* thread: a thread of the library's own: signals are for whoever runs it, and the stack is small. */
#ifndef LAPSE_BASE_THREAD_H
#define LAPSE_BASE_THREAD_H

#include <pthread.h>

int thread_begin(pthread_t *ret, void *(*body)(void *), void *context); /* as pthread_create */

#endif
