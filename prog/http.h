/* http: serves what a daemon knows, read-only, where its contract says; follows the contract when it changes.
 *
 * One thread with one epoll set holds every connection, so that a thousand idle ones cost memory and nothing
 * else; a second thread makes the pages that wait for the database, so that health and metrics never do. */
#ifndef HTTP_H
#define HTTP_H

#include "lapse.h"

struct http;

/* Listens, or not at all (serve: off). What cannot be is said in the daemon's log: NULL, and *ret_exit is
 * what the process should end with. A port that is taken ends it too: metrics would be missing without a
 * word. */
struct http *http_start(struct lapse_daemon *d, enum lapse_exit *ret_exit);
/* The contract in force may be another: looks, soon, from its own thread. Cheap; from any thread. What the
 * new one wants and cannot have is said, and the old stays. */
void http_follow(struct http *h);
/* Before lapse_daemon_free. NULL is fine. */
void http_stop(struct http *h);

#endif
