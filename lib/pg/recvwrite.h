/* What the two sides of the receiver's output share: recvout.c, which the network thread calls, and the
 * writing thread, recvwrite.c.
 *
 * What crosses between them (the queue, positions, the error) is under one mutex; what the writing thread
 * alone touches while it runs is marked so. */
#ifndef WS_PG_RECVWRITE_H
#define WS_PG_RECVWRITE_H

#include <pthread.h>

#include "recvout.h"
#include "ws/waldir.h"

#define QUEUE_MAX (8u << 20) /* bytes */

struct chunk {
	struct chunk *next;
	void *owner;
	ws_lsn lsn;
	const uint8_t *p;
	size_t n;
};

struct recvout {
	struct recvout_opts o;
	char *dir, *pos_path;
	struct ws_walwriter *w;
	struct ws_walframe *frame;
	pthread_t thread;
	bool started;
	int fd;

	pthread_mutex_t lock;
	pthread_cond_t more;
	struct chunk *head, **tail;
	size_t queued; /* bytes in the queue and in the thread's hands */
	bool closing, failed, done;
	bool was_full;
	struct ws_err err;
	ws_tli tli;
	ws_tli ancestor; /* while tli's own bytes do not reach its begin yet, 0 else */
	ws_lsn end;    /* of what is written */
	ws_lsn synced; /* of what is durable; 0 until compared */
	ws_lsn next;   /* of the last push */
	const char *whose; /* bytes come */
	uint64_t verified;

	/* the thread's own */
	ws_lsn kept;     /* bytes below are compared; 0: nothing to compare any more */
	ws_lsn received; /* pos/received as it stands in the file */
	ws_lsn fork;     /* bytes below are the ancestor's too */
	uint64_t last_sync;
	bool dirty; /* appended since the last sync */
};

/* The first of the queue, NULL when it is empty; the caller frees it and its owner.  With the lock held. */
struct chunk *recvwrite_take(struct recvout *o);

/* The thread, given a struct recvout: writes and syncs until o->closing and nothing is left, or until an
 * error, which is then in o->err. */
void *recvwrite_thread(void *o);

#endif
