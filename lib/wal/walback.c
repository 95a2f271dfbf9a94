/* Background appends to a WAL directory; see walback.h. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

#include "walback.h"
#include "ws/mem.h"

struct ws_walback {
	struct ws_walwriter *w;
	pthread_t thread;
	/* The append at hand, rc and err belong to the thread from `work` to `idle`, else to the caller. */
	sem_t work, idle;
	bool stop;
	int rc;
	struct ws_err err;
	ws_tli tli;
	ws_lsn lsn;
	const uint8_t *p;
	size_t n;
};

static void
take(sem_t *s)
{
	while (sem_wait(s) != 0 && errno == EINTR)
		;
}

static void *
work(void *arg)
{
	struct ws_walback *b = arg;

	for (;;) {
		take(&b->work);
		if (b->stop)
			return NULL;
		b->rc = ws_walwriter_append(b->w, b->tli, b->lsn, b->p, b->n, &b->err);
		sem_post(&b->idle);
	}
}

struct ws_walback *
ws_walback_new(struct ws_walwriter *w)
{
	struct ws_walback *b = ws_calloc(1, sizeof *b);
	sigset_t all, before;

	b->w = w;
	sem_init(&b->work, 0, 0);
	sem_init(&b->idle, 0, 1);
	/* Signals are the caller's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&b->thread, NULL, work, b);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		return b;
	sem_destroy(&b->work);
	sem_destroy(&b->idle);
	free(b);
	return NULL;
}

void
ws_walback_free(struct ws_walback *b)
{
	if (!b)
		return;
	take(&b->idle);
	b->stop = true;
	sem_post(&b->work);
	pthread_join(b->thread, NULL);
	sem_destroy(&b->work);
	sem_destroy(&b->idle);
	free(b);
}

int
ws_walback_append(struct ws_walback *b, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n, struct ws_err *err)
{
	take(&b->idle);
	if (b->rc != 0) {
		if (err)
			*err = b->err;
		sem_post(&b->idle);
		return -1;
	}
	b->tli = tli;
	b->lsn = lsn;
	b->p = p;
	b->n = n;
	sem_post(n ? &b->work : &b->idle);
	return 0;
}

int
ws_walback_wait(struct ws_walback *b, struct ws_err *err)
{
	return ws_walback_append(b, 0, 0, NULL, 0, err);
}
