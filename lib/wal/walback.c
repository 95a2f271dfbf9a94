/* Background appends to a WAL directory; see walback.h. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "walback.h"
#include "ws/mem.h"

struct ws_walback {
	struct ws_walwriter *w;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool busy, stop;
	int rc;
	struct ws_err err;
	/* the append at hand: the thread's while busy */
	ws_tli tli;
	ws_lsn lsn;
	const uint8_t *p;
	size_t n;
};

static void *
work(void *arg)
{
	struct ws_walback *b = arg;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		while (!b->busy && !b->stop)
			pthread_cond_wait(&b->changed, &b->lock);
		if (!b->busy)
			break;
		pthread_mutex_unlock(&b->lock);
		int rc = ws_walwriter_append(b->w, b->tli, b->lsn, b->p, b->n, &b->err);

		pthread_mutex_lock(&b->lock);
		b->rc = rc;
		b->busy = false;
		pthread_cond_signal(&b->changed);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

struct ws_walback *
ws_walback_new(struct ws_walwriter *w)
{
	struct ws_walback *b = ws_calloc(1, sizeof *b);
	sigset_t all, before;

	b->w = w;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	/* Signals are the caller's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&b->thread, NULL, work, b);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		return b;
	free(b);
	return NULL;
}

void
ws_walback_free(struct ws_walback *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_cond_signal(&b->changed);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* With the lock: 0 when idle and all went well. */
static int
settle(struct ws_walback *b, struct ws_err *err)
{
	while (b->busy)
		pthread_cond_wait(&b->changed, &b->lock);
	if (b->rc != 0 && err)
		*err = b->err;
	return b->rc;
}

int
ws_walback_append(struct ws_walback *b, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n, struct ws_err *err)
{
	pthread_mutex_lock(&b->lock);
	int rc = settle(b, err);

	if (rc == 0 && n) {
		b->tli = tli;
		b->lsn = lsn;
		b->p = p;
		b->n = n;
		b->busy = true;
		pthread_cond_signal(&b->changed);
	}
	pthread_mutex_unlock(&b->lock);
	return rc;
}

int
ws_walback_wait(struct ws_walback *b, struct ws_err *err)
{
	return ws_walback_append(b, 0, 0, NULL, 0, err);
}
