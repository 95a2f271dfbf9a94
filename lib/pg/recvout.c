/* The receiver's output, as the network thread sees it; see recvout.h.  recvwrite.c is the thread that
 * writes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "recvdir.h"
#include "recvwrite.h"
#include "timedcond.h"
#include "ws/lsn.h"
#include "ws/pgconn.h"
#include "ws/pos.h"
#include "ws/tool.h"

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

	o->o = *opts;
	o->dir = opts->dir ? ws_strdup(opts->dir) : NULL;
	o->pos_path = opts->pos_path ? ws_strdup(opts->pos_path) : NULL;
	o->tail = &o->head;
	pthread_mutex_init(&o->lock, NULL);
	timedcond_init(&o->more);
	o->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->fd < 0) {
		ws_err_sys(err, "cannot make an eventfd");
		goto fail;
	}
	if (open_sinks(o, err) != 0)
		goto fail;
	int rc = pthread_create(&o->thread, NULL, recvwrite_thread, o);

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

	while ((c = recvwrite_take(o))) {
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
