/* The receiver's writing thread; see recvwrite.h.
 *
 * It compares what comes with what is kept (recvdir.c), writes the rest (lib/wal's writer and framed
 * stream), and moves pos/received over what is durable. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "recvdir.h"
#include "recvwrite.h"
#include "timedcond.h"
#include "ws/lsn.h"
#include "ws/pgconn.h"
#include "ws/pos.h"
#include "ws/tool.h"

#define SYNC_AT_LEAST_US 100000 /* also when the server never pauses */

static void
notify(struct recvout *o)
{
	uint64_t one = 1;
	ssize_t r = write(o->fd, &one, sizeof one);

	(void)r;
}

/* Publishes a durable end. */
static int
announce(struct recvout *o, ws_lsn lsn, struct ws_err *err)
{
	if (o->pos_path && lsn > o->received) {
		struct ws_pos pos = {o->tli, lsn};

		if (ws_pos_write(o->pos_path, pos, !o->o.no_sync, err) != 0)
			return -1;
		o->received = lsn;
	}
	pthread_mutex_lock(&o->lock);
	bool moved = lsn > o->synced;

	if (moved)
		o->synced = lsn;
	pthread_mutex_unlock(&o->lock);
	if (moved)
		notify(o);
	return 0;
}

static int
sync_now(struct recvout *o, struct ws_err *err)
{
	o->last_sync = ws_now_us();
	o->dirty = false;
	if (ws_walwriter_sync(o->w, err) != 0)
		return -1;
	return announce(o, ws_walwriter_synced(o->w).lsn, err);
}

/* The kept bytes agree up to their end.  After a kill some may be in the page cache only, and a full
 * segment without its name. */
static int
compared(struct recvout *o, struct ws_err *err)
{
	ws_lsn end = o->kept;

	o->kept = 0;
	if (o->end == 0)
		return 0;
	if (recvdir_finish(o->dir, o->o.cluster.segsize, (struct ws_pos){o->tli, end}, !o->o.no_sync,
					   err) != 0)
		return -1;
	return announce(o, end, err);
}

/* Is the segment that ends what is kept still a growing one? */
static bool
kept_grows(const struct recvout *o)
{
	bool partial;
	int fd = recvdir_open(o->dir, o->o.cluster.segsize, o->tli, o->kept - 1, O_RDONLY, &partial);

	if (fd >= 0)
		close(fd);
	return fd >= 0 && partial;
}

static int
differs(struct recvout *o, ws_lsn at, struct ws_err *err)
{
	ws_lsn durable = o->received;
	ws_lsn seg = ws_seg_start(o->kept - 1, o->o.cluster.segsize);

	/* Never announced, and in the growing file: a crash tore it, the server's bytes stand. */
	if (o->pos_path && at >= durable && at >= seg && kept_grows(o)) {
		ws_warn("bytes written but not received yet differ from %s, cut: lsn=" WS_LSN_FMT
				" bytes=%llu",
				o->whose, WS_LSN_ARG(at), (unsigned long long)(o->kept - at));
		if (recvdir_cut(o->dir, o->o.cluster.segsize, o->tli, at, err) != 0)
			return -1;
		pthread_mutex_lock(&o->lock);
		o->end = at;
		pthread_mutex_unlock(&o->lock);
		o->kept = at;
		return compared(o, err);
	}
	return ws_err_op(err, "sibling_branch",
					 "%s: the WAL kept differs from %s at " WS_LSN_FMT
					 " on timeline %u: this is "
					 "another history of the same cluster, or the file was damaged",
					 o->dir, o->whose, WS_LSN_ARG(at), o->tli);
}

/* Compares the part of [lsn, lsn+n) below the kept end; returns how much of it is dealt with. */
static int
verify(struct recvout *o, ws_lsn lsn, const uint8_t *p, size_t n, size_t *used, struct ws_err *err)
{
	uint32_t segsize = o->o.cluster.segsize;

	*used = 0;
	while (*used < n && o->kept && lsn + *used < o->kept) {
		ws_lsn at = lsn + *used, diff;
		size_t len = n - *used;

		if (len > o->kept - at)
			len = o->kept - at;
		if (len > segsize - (at & (segsize - 1)))
			len = segsize - (at & (segsize - 1));
		int rc = recvdir_compare(o->dir, segsize, o->tli, at, p + *used, len, &diff, err);

		if (rc < 0)
			return -1;
		*used += rc == 1 ? len : diff - at;
		pthread_mutex_lock(&o->lock);
		o->verified += diff - at;
		pthread_mutex_unlock(&o->lock);
		if (rc == 0)
			return differs(o, diff, err);
	}
	return o->kept && lsn + *used >= o->kept ? compared(o, err) : 0;
}

static int
write_chunk(struct recvout *o, const struct chunk *c, struct ws_err *err)
{
	size_t used = 0;

	if (o->kept && verify(o, c->lsn, c->p, c->n, &used, err) != 0)
		return -1;
	const uint8_t *p = c->p + used;
	size_t n = c->n - used;

	if (n == 0)
		return 0;
	if (o->frame) {
		if (ws_walframe_bytes(o->frame, o->tli, c->lsn + used, p, n, err) != 0)
			return -1;
	} else if (ws_walwriter_append(o->w, o->tli, c->lsn + used, p, n, err) != 0) {
		return -1;
	}
	ws_lsn end = c->lsn + c->n, from = c->lsn + used;

	pthread_mutex_lock(&o->lock);
	if (from < o->fork)
		o->verified += (end < o->fork ? end : o->fork) - from;
	if (end > o->end)
		o->end = end;
	if (end >= o->fork)
		o->ancestor = 0;
	pthread_mutex_unlock(&o->lock);
	if (!o->w)
		return 0;
	o->dirty = true;
	if (o->o.synchronous)
		return sync_now(o, err);
	/* A segment that is complete was synced by the writer. */
	ws_lsn synced = ws_walwriter_synced(o->w).lsn;

	if (synced > o->synced) {
		o->dirty = synced < o->end;
		return announce(o, synced, err);
	}
	return 0;
}

/* Microseconds until the next sync: 0 due now, -1 nothing to sync.  Called with the lock held. */
static int64_t
sync_due(struct recvout *o, uint64_t now)
{
	if (!o->dirty)
		return -1;
	uint64_t interval = (uint64_t)(o->o.sync_interval * 1e6), since = now - o->last_sync;

	if (o->head)
		interval = interval > SYNC_AT_LEAST_US ? interval : SYNC_AT_LEAST_US;
	return since >= interval || o->closing ? 0 : (int64_t)(interval - since);
}

static void
wait_more(struct recvout *o, int64_t us)
{
	if (us < 0)
		pthread_cond_wait(&o->more, &o->lock);
	else
		timedcond_wait(&o->more, &o->lock, (uint64_t)us);
}

struct chunk *
recvwrite_take(struct recvout *o)
{
	struct chunk *c = o->head;

	if (c && !(o->head = c->next))
		o->tail = &o->head;
	return c;
}

void *
recvwrite_thread(void *arg)
{
	struct recvout *o = arg;
	struct ws_err err = {0};
	int rc = 0;

	pthread_mutex_lock(&o->lock);
	while (rc == 0) {
		int64_t due = sync_due(o, ws_now_us());
		struct chunk *c = due == 0 ? NULL : recvwrite_take(o);

		if (!c && due != 0) {
			if (o->closing)
				break;
			wait_more(o, due);
			continue;
		}
		pthread_mutex_unlock(&o->lock);
		rc = c ? write_chunk(o, c, &err) : sync_now(o, &err);
		pthread_mutex_lock(&o->lock);
		if (c) {
			o->queued -= c->n;
			if (o->was_full && o->queued < QUEUE_MAX / 2) {
				o->was_full = false;
				notify(o);
			}
			ws_pg_free(c->owner);
			free(c);
		}
	}
	if (rc != 0) {
		o->failed = true;
		o->err = err;
	}
	o->done = true;
	pthread_mutex_unlock(&o->lock);
	notify(o);
	return NULL;
}
