/* The receiver's writing thread; see recvout.h.
 *
 * What crosses between the threads (the queue, positions, the error) is under one mutex; what the
 * thread alone touches while it runs is marked so. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "recvdir.h"
#include "recvout.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/pgconn.h"
#include "ws/pos.h"
#include "ws/tool.h"
#include "ws/waldir.h"

#define QUEUE_MAX        (8u << 20) /* bytes */
#define SYNC_AT_LEAST_US 100000     /* also when the server never pauses */

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
	struct timespec ts;

	if (us < 0) {
		pthread_cond_wait(&o->more, &o->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += (long)(us % 1000000) * 1000;
	ts.tv_sec += us / 1000000 + ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&o->more, &o->lock, &ts);
}

static struct chunk *
take(struct recvout *o)
{
	struct chunk *c = o->head;

	if (c && !(o->head = c->next))
		o->tail = &o->head;
	return c;
}

static void *
thread_main(void *arg)
{
	struct recvout *o = arg;
	struct ws_err err = {0};
	int rc = 0;

	pthread_mutex_lock(&o->lock);
	while (rc == 0) {
		int64_t due = sync_due(o, ws_now_us());
		struct chunk *c = due == 0 ? NULL : take(o);

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

static int
open_sinks(struct recvout *o, struct ws_err *err)
{
	struct ws_walwriter_opts wo = {.segsize = o->o.cluster.segsize, .no_sync = o->o.no_sync};
	struct ws_pos received = {0, 0}, end;

	if (o->pos_path && ws_pos_read(o->pos_path, &received, err) < 0)
		return -1;
	/* What was never announced may be torn. */
	wo.durable = received.lsn;

	if (!o->dir) {
		o->frame = ws_walframe_new(STDOUT_FILENO, &o->o.cluster, err);
		return o->frame ? 0 : -1;
	}
	o->w = ws_walwriter_open(o->dir, &wo, err);
	if (!o->w)
		return -1;
	if (recvdir_end(o->dir, wo.segsize, received.tli, &end, err) != 0)
		return -1;
	o->received = received.lsn;
	if (end.lsn == 0) {
		/* Nothing left in the directory (all pruned): go on from the position. */
		o->tli = received.tli;
		o->end = ws_seg_start(received.lsn, wo.segsize);
		return 0;
	}
	if (end.lsn < received.lsn)
		ws_warn("%s ends below pos/received and is filled again: end=" WS_LSN_FMT
				" received=" WS_LSN_FMT,
				o->dir, WS_LSN_ARG(end.lsn), WS_LSN_ARG(received.lsn));
	o->tli = end.tli;
	o->end = end.lsn;
	return 0;
}

struct recvout *
recvout_open(const struct recvout_opts *opts, struct ws_err *err)
{
	struct recvout *o = ws_calloc(1, sizeof *o);
	pthread_condattr_t ca;

	o->o = *opts;
	o->dir = opts->dir ? ws_strdup(opts->dir) : NULL;
	o->pos_path = opts->pos_path ? ws_strdup(opts->pos_path) : NULL;
	o->tail = &o->head;
	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(&o->more, &ca);
	pthread_condattr_destroy(&ca);
	o->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->fd < 0) {
		ws_err_sys(err, "cannot make an eventfd");
		goto fail;
	}
	if (open_sinks(o, err) != 0)
		goto fail;
	int rc = pthread_create(&o->thread, NULL, thread_main, o);

	if (rc != 0) {
		errno = rc;
		ws_err_sys(err, "cannot start a thread");
		goto fail;
	}
	o->started = true;
	return o;
fail:
	recvout_close(o, false, 0, NULL);
	return NULL;
}

static void
release(struct recvout *o)
{
	struct chunk *c;

	while ((c = take(o))) {
		ws_pg_free(c->owner);
		free(c);
	}
	ws_walwriter_close(o->w);
	ws_walframe_free(o->frame);
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->more);
	if (o->fd >= 0)
		close(o->fd);
	free(o->dir);
	free(o->pos_path);
	free(o);
}

int
recvout_close(struct recvout *o, bool end, int timeout_ms, struct ws_err *err)
{
	int rc = 0;

	if (!o)
		return 0;
	if (o->started) {
		struct timespec until;

		pthread_mutex_lock(&o->lock);
		o->closing = true;
		pthread_cond_signal(&o->more);
		pthread_mutex_unlock(&o->lock);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += timeout_ms / 1000;
		if (pthread_timedjoin_np(o->thread, NULL, &until) != 0)
			/* Stuck in a write: the thread keeps its data until the process ends. */
			return ws_err_temp(err, "the output takes nothing: %zu bytes dropped", o->queued);
		if (o->failed) {
			if (err)
				*err = o->err;
			rc = -1;
		} else if (end && o->frame && o->end) {
			rc = ws_walframe_end(o->frame, (struct ws_pos){o->tli, o->end}, err);
		}
	}
	release(o);
	return rc;
}

struct ws_pos
recvout_kept(struct recvout *o)
{
	pthread_mutex_lock(&o->lock);
	struct ws_pos pos = {o->ancestor ? o->ancestor : o->tli, o->end};

	pthread_mutex_unlock(&o->lock);
	return pos;
}

bool
recvout_announced(struct recvout *o)
{
	return !o->pos_path || o->received >= recvout_kept(o).lsn;
}

bool
recvout_has_segment(struct recvout *o, ws_tli tli, ws_lsn lsn)
{
	bool partial;
	int fd = o->dir ? recvdir_open(o->dir, o->o.cluster.segsize, tli, lsn, O_RDONLY, &partial) : -1;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void
recvout_begin(struct recvout *o, struct ws_pos pos, const char *whose)
{
	pthread_mutex_lock(&o->lock);
	o->whose = whose;
	o->tli = pos.tli;
	o->ancestor = 0;
	o->next = pos.lsn;
	if (o->dir && o->end > pos.lsn) {
		o->kept = o->end;
		o->synced = 0;
	} else {
		o->kept = 0;
		o->end = pos.lsn;
		o->synced = o->dir ? pos.lsn : 0;
	}
	pthread_mutex_unlock(&o->lock);
}

void
recvout_cut_back(struct recvout *o, ws_lsn lsn)
{
	pthread_mutex_lock(&o->lock);
	if (o->end > lsn)
		o->end = lsn;
	pthread_mutex_unlock(&o->lock);
}

/* The thread waits while nothing is queued: what is its own may be touched. */
int
recvout_timeline_end(struct recvout *o, const struct ws_history *h, ws_lsn lsn, uint64_t *abandoned,
					 struct ws_err *err)
{
	const struct ws_pos at = {o->tli, lsn};
	ws_lsn end = recvout_kept(o).lsn;

	*abandoned = end > lsn ? end - lsn : 0;
	if (end < lsn || (o->kept && o->next < lsn))
		return ws_err_temp(err, "timeline %u ends at " WS_LSN_FMT ", it is here up to " WS_LSN_FMT, at.tli,
						   WS_LSN_ARG(lsn), WS_LSN_ARG(o->kept ? o->next : end));
	if (o->w) {
		uint64_t whole;

		if (ws_walwriter_position(o->w, at, err) != 0)
			return -1;
		if (o->pos_path && o->received > lsn) {
			if (ws_pos_write(o->pos_path, at, !o->o.no_sync, err) != 0)
				return -1;
			o->received = lsn;
		}
		if (ws_waldir_set_aside(o->dir, o->o.cluster.segsize, h, false, &whole, err) != 0)
			return -1;
		if (whole > *abandoned)
			*abandoned = whole;
	}
	pthread_mutex_lock(&o->lock);
	o->kept = 0;
	o->end = o->fork = lsn;
	if (o->w)
		o->synced = lsn;
	pthread_mutex_unlock(&o->lock);
	return 0;
}

void
recvout_begin_fork(struct recvout *o, struct ws_pos start)
{
	pthread_mutex_lock(&o->lock);
	/* A stream that breaks before the switch is made again from the ancestor on. */
	o->ancestor = o->w && start.lsn < o->fork ? o->tli : 0;
	o->tli = start.tli;
	o->next = start.lsn;
	pthread_mutex_unlock(&o->lock);
}

static void
push(struct recvout *o, struct chunk *c)
{
	pthread_mutex_lock(&o->lock);
	*o->tail = c;
	o->tail = &c->next;
	o->queued += c->n;
	o->next = c->lsn + c->n;
	pthread_cond_signal(&o->more);
	pthread_mutex_unlock(&o->lock);
}

void
recvout_push(struct recvout *o, void *owner, ws_lsn lsn, const uint8_t *p, size_t n)
{
	struct chunk *c = ws_malloc(sizeof *c);

	*c = (struct chunk){NULL, owner, lsn, p, n};
	push(o, c);
}

void
recvout_push_copy(struct recvout *o, ws_lsn lsn, const uint8_t *p, size_t n)
{
	struct chunk *c = ws_malloc(sizeof *c + n);
	uint8_t *bytes = (uint8_t *)(c + 1);

	memcpy(bytes, p, n);
	*c = (struct chunk){NULL, NULL, lsn, bytes, n};
	push(o, c);
}

int
recvout_history(struct recvout *o, ws_tli tli, const void *p, size_t n, struct ws_err *err)
{
	return o->frame ? ws_walframe_history(o->frame, tli, p, n, err)
					: ws_walwriter_history(o->w, tli, p, n, err);
}

bool
recvout_full(struct recvout *o)
{
	pthread_mutex_lock(&o->lock);
	bool full = o->queued >= QUEUE_MAX || (o->was_full && o->queued >= QUEUE_MAX / 2);

	o->was_full = full;
	pthread_mutex_unlock(&o->lock);
	return full;
}

bool
recvout_idle(struct recvout *o)
{
	pthread_mutex_lock(&o->lock);
	bool idle = o->queued == 0 && (!o->w || !o->synced || o->end == o->synced);

	pthread_mutex_unlock(&o->lock);
	return idle;
}

void
recvout_positions(struct recvout *o, ws_lsn *written, ws_lsn *synced)
{
	pthread_mutex_lock(&o->lock);
	*written = o->end;
	*synced = o->synced;
	pthread_mutex_unlock(&o->lock);
}

uint64_t
recvout_verified(struct recvout *o)
{
	pthread_mutex_lock(&o->lock);
	uint64_t n = o->verified;

	pthread_mutex_unlock(&o->lock);
	return n;
}

int
recvout_check(struct recvout *o, struct ws_err *err)
{
	uint64_t n;
	ssize_t r = read(o->fd, &n, sizeof n);
	int rc = 0;

	(void)r;
	pthread_mutex_lock(&o->lock);
	if (o->failed) {
		*err = o->err;
		rc = -1;
	}
	pthread_mutex_unlock(&o->lock);
	return rc;
}

int
recvout_fd(const struct recvout *o)
{
	return o->fd;
}
