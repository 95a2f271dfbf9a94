/* Waiting with a limit; see timedcond.h. */
#include <time.h>

#include "timedcond.h"

void
timedcond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

void
timedcond_wait(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t us)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(us % 1000000) * 1000;
	until.tv_sec += (time_t)(us / 1000000) + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(c, lock, &until);
}
