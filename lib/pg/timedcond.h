/* A condition variable that is waited for by the monotonic clock: setting the machine's time makes no wait
 * longer. */
#ifndef WS_PG_TIMEDCOND_H
#define WS_PG_TIMEDCOND_H

#include <pthread.h>
#include <stdint.h>

/* To be destroyed with pthread_cond_destroy. */
void timedcond_init(pthread_cond_t *c);
/* Waits, with the lock held, for us microseconds at most. */
void timedcond_wait(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t us);

#endif
