/* retry: how whoever works in transactions waits and tries again: pauses that grow, and new connections. */
#ifndef LAPSE_STORE_RETRY_H
#define LAPSE_STORE_RETRY_H

#include "store/store.h"

/* Doubles with every try, and differs between processes so that two that collided do not collide again. */
int64_t retry_pause_us(int tries);
void retry_wait_us(const struct patience *p, int64_t us);
bool retry_is_lost(const struct err *e); /* a new connection is needed */
/* Tries for as long as p waits for a server; once that was in vain, a single time, until the server is there
 * again. False: e says why, as ERR_UNREACHABLE, or ERR_STOPPED. */
bool retry_reconnect(struct store *s, const struct patience *p, struct err *e);

#endif
