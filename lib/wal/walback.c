/* Background appends to a WAL directory; see walback.h.
 *
 * Writes end where WRITE_ALIGN says as long as more may come: the page cache then gets few large
 * folios instead of many small ones, which halves the cost of a write(2) into a new file. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "walback.h"
#include "ws/mem.h"

#define WRITE_ALIGN 262144u

struct piece {
	ws_tli tli;
	ws_lsn lsn;
	const uint8_t *p;
	size_t n;
};

struct ws_walback {
	struct ws_walwriter *w; /* the thread's while q is not empty */
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t work;  /* for the thread: something is to be written, or stop */
	pthread_cond_t done;  /* for the caller: pieces have left q */
	struct piece q[WS_WALBACK_DEPTH]; /* a ring, oldest at first; what is written is taken off */
	unsigned first, n;
	unsigned most; /* the caller waits for this many */
	bool stop;
	int rc;
	struct ws_err err;
};

static struct piece *
at(struct ws_walback *b, unsigned i)
{
	return &b->q[(b->first + i) % WS_WALBACK_DEPTH];
}

/* What is to be written now as one; n 0: nothing yet. */
static struct piece
ready(struct ws_walback *b)
{
	struct piece run = {0};
	unsigned i = 0;

	if (b->rc != 0)
		return run;
	for (; i < b->n; i++) {
		struct piece *q = at(b, i);

		if (i && (q->tli != run.tli || q->p != run.p + run.n || q->lsn != run.lsn + run.n))
			break;
		if (!i)
			run = *q;
		else
			run.n += q->n;
	}
	/* The last bytes go with what comes behind them, when nobody waits for them. */
	if (i == b->n && b->most) {
		size_t tail = (size_t)((run.lsn + run.n) & (WRITE_ALIGN - 1));

		if (run.n > tail)
			run.n -= tail;
		else if (b->n <= b->most)
			run.n = 0;
	}
	return run;
}

/* Takes n written bytes off. */
static void
take_off(struct ws_walback *b, size_t n)
{
	while (n) {
		struct piece *q = at(b, 0);
		size_t m = n < q->n ? n : q->n;

		q->p += m;
		q->lsn += m;
		q->n -= m;
		n -= m;
		if (!q->n) {
			b->first = (b->first + 1) % WS_WALBACK_DEPTH;
			b->n--;
		}
	}
}

static void *
work(void *arg)
{
	struct ws_walback *b = arg;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		struct piece run = ready(b);

		if (!run.n) {
			if (b->stop)
				break;
			pthread_cond_wait(&b->work, &b->lock);
			continue;
		}
		pthread_mutex_unlock(&b->lock);
		struct ws_err err = {0};
		int rc = ws_walwriter_append(b->w, run.tli, run.lsn, run.p, run.n, &err);

		pthread_mutex_lock(&b->lock);
		if (rc == 0) {
			take_off(b, run.n);
		} else {
			b->rc = rc;
			b->err = err;
			b->n = 0;
		}
		pthread_cond_signal(&b->done);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static void
destroy(struct ws_walback *b)
{
	pthread_cond_destroy(&b->work);
	pthread_cond_destroy(&b->done);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

struct ws_walback *
ws_walback_new(struct ws_walwriter *w)
{
	struct ws_walback *b = ws_calloc(1, sizeof *b);
	sigset_t all, before;

	b->w = w;
	b->most = WS_WALBACK_DEPTH;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->work, NULL);
	pthread_cond_init(&b->done, NULL);
	/* Signals are the caller's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&b->thread, NULL, work, b);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		return b;
	destroy(b);
	return NULL;
}

/* Waits, with the lock, until `most` are left. */
static int
wait_for(struct ws_walback *b, unsigned most, struct ws_err *err)
{
	if (b->n > most) {
		b->most = most;
		pthread_cond_signal(&b->work);
		while (b->n > most)
			pthread_cond_wait(&b->done, &b->lock);
		b->most = WS_WALBACK_DEPTH;
	}
	if (b->rc != 0 && err)
		*err = b->err;
	return b->rc;
}

int
ws_walback_append(struct ws_walback *b, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                  struct ws_err *err)
{
	pthread_mutex_lock(&b->lock);
	int rc = wait_for(b, WS_WALBACK_DEPTH - 1, err);

	if (rc == 0 && n) {
		*at(b, b->n++) = (struct piece){tli, lsn, p, n};
		if (ready(b).n)
			pthread_cond_signal(&b->work);
	}
	pthread_mutex_unlock(&b->lock);
	return rc;
}

int
ws_walback_wait(struct ws_walback *b, unsigned most, struct ws_err *err)
{
	pthread_mutex_lock(&b->lock);
	int rc = wait_for(b, most, err);

	pthread_mutex_unlock(&b->lock);
	return rc;
}

void
ws_walback_free(struct ws_walback *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	(void)wait_for(b, 0, NULL);
	b->stop = true;
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	destroy(b);
}
