/* The receiver: sessions with the server one after another, and what each end of a stream means.
 * Writing is recvout.c's; see ws/receive.h. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiver.h"
#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/tool.h"

#define BACKOFF_MIN_MS    100
#define BACKOFF_MAX_MS    5000
#define BACKOFF_CONFIG_MS 30000    /* a login refused later on: somebody must do something first */
#define BLOCKED_MAX_US    10000000 /* then the connection is given up, so that the source can stop */
#define LIMIT_CHECK_US    500000
#define REPEAT_LOG_US     60000000
#define CLOSE_TIMEOUT_MS  10000
#define EVENTS_AT_ONCE    64

/* ---- start of a session ---- */

int
receiver_open_output(struct receiver *r, struct ws_err *err)
{
	const struct ws_receive_opts *o = r->o;
	struct ws_cluster c = {r->src.system_id, r->src.major, r->src.segsize};
	char *path = o->state ? ws_asprintf("%s/pos/received", o->state) : NULL;
	struct recvout_opts ro = {.dir = o->dir,
							  .pos_path = o->dir ? path : NULL,
							  .cluster = c,
							  .no_sync = o->no_sync,
							  .synchronous = o->synchronous,
							  .sync_interval = o->sync_interval};
	int rc = 0;

	if (!r->out) {
		if ((o->state ? ws_cluster_claim(o->state, &c, err) : 0) == 0)
			r->out = recvout_open(&ro, err);
		/* Under the directory's lock: its positions are ours. */
		rc = r->out ? recvhold_start(o->dir ? o->state : NULL, o->hold, &o->conn, &r->hold, err) : -1;
	}
	free(path);
	if (rc != 0)
		r->local = true;
	else
		receiver_archive_sweep(r);
	return rc;
}

/* The same server as in the session before? */
static int
check_source(struct receiver *r, const struct ws_pg_source *was, struct ws_err *err)
{
	const struct ws_pg_source *s = &r->src;

	if (was->major && was->system_id != s->system_id)
		return ws_err_op(err, "system_id_changed",
						 "the server's system identifier is %" PRIu64 ", it was %" PRIu64,
						 s->system_id, was->system_id);
	if (was->major && (was->major != s->major || was->segsize != s->segsize))
		return ws_err_op(err, "major_changed",
						 "the server is PostgreSQL %d with segments of %u bytes, it was %d with %u",
						 s->major, s->segsize, was->major, was->segsize);
	if (strcmp(s->wal_level, "logical") && !r->warned_level) {
		ws_warn("wal_level is %s on the source: changes are decoded only from WAL written with "
				"wal_level=logical",
				s->wal_level);
		r->warned_level = true;
	}
	return 0;
}

int
receiver_check_slot(struct receiver *r, struct ws_pos kept, struct ws_pos *restart, struct ws_err *err)
{
	*restart = (struct ws_pos){0, 0};
	if (!r->o->slot)
		return 0;
	if (ws_pg_slot_read(r->c, r->o->slot, restart, err) != 0)
		return -1;
	if (restart->lsn == 0)
		return ws_err_op(err, "slot_lost",
						 "replication slot \"%s\" reserves no WAL: it was invalidated, or made "
						 "without reserving; drop it and create it with --create-slot",
						 r->o->slot);
	/* It holds all of the segment in which it begins (xlog.c, KeepLogSeg). */
	if (kept.lsn && ws_seg_start(restart->lsn, r->src.segsize) > kept.lsn)
		return ws_err_op(err, "slot_too_new",
						 "replication slot \"%s\" begins at " WS_LSN_FMT
						 ", the WAL kept ends at " WS_LSN_FMT
						 ": it was made anew, and WAL between may be missing",
						 r->o->slot, WS_LSN_ARG(restart->lsn), WS_LSN_ARG(kept.lsn));
	return 0;
}

/* Where to begin: at the start of the segment that holds the end of what is kept, or, when the end
 * is a segment's, at the start of the one before, so that there is something to compare. */
static int
choose_start(struct receiver *r, struct ws_pos *start, struct ws_err *err)
{
	struct ws_pos kept = recvout_kept(r->out), restart;
	uint32_t segsize = r->src.segsize;
	bool to_stdout = !r->o->dir;

	if ((kept.lsn && receiver_lineage(r, &kept, err) != 0) ||
		receiver_check_slot(r, kept, &restart, err) != 0)
		return -1;
	if (kept.lsn == 0) {
		ws_lsn lsn = r->o->startpos ? r->o->startpos : restart.lsn ? restart.lsn : r->src.pos.lsn;

		return receiver_first(r, lsn, start, err);
	}
	*start = kept;
	if (to_stdout)
		return 0;
	start->lsn = ws_seg_start(kept.lsn, segsize);
	if (start->lsn == kept.lsn && kept.lsn >= segsize && !r->skip_previous &&
		recvout_has_segment(r->out, kept.tli, kept.lsn - 1))
		start->lsn -= segsize;
	return 0;
}

static int
connect_source(struct receiver *r, struct ws_err *err)
{
	struct ws_pg_source was = r->src;

	r->c = ws_pg_open(&r->o->conn, NULL, err);
	if (!r->c || ws_pg_identify(r->c, &r->src, err) != 0) {
		r->src = was;
		return -1;
	}
	r->connected = true;
	return check_source(r, &was, err);
}

/* 0: streaming from *start; else an outcome or -1. */
static int
begin_session(struct receiver *r, struct ws_pos *start, struct ws_err *err)
{
	if (r->out) {
		int rc = receiver_wait_idle(r, err);

		if (rc == 0)
			rc = receiver_wait_room(r, err);
		if (rc != 0)
			return rc;
	}
	if (connect_source(r, err) != 0)
		return -1;
	if (receiver_open_output(r, err) != 0 || choose_start(r, start, err) != 0)
		return -1;
	int room = r->ever ? 1 : receiver_room(r, false, err);

	if (room <= 0)
		return room < 0 ? -1 : NO_ROOM;
	ws_lsn kept = recvout_kept(r->out).lsn;

	if (r->o->endpos && (kept ? kept : start->lsn) >= r->o->endpos)
		return ENDPOS;
	uint64_t timeout = (uint64_t)r->src.wal_sender_timeout_ms * 1000;

	r->interval_us = (uint64_t)(r->o->status_interval * 1e6);
	if (timeout && r->interval_us > timeout / 3)
		r->interval_us = timeout / 3;
	int rc = ws_pg_stream_start(r->c, r->o->slot, *start, &r->next, err);

	if (rc < 0)
		return -1;
	ws_info("streaming: system_id=%" PRIu64 " timeline=%u start=" WS_LSN_FMT " kept=" WS_LSN_FMT
			"%s%s",
			r->src.system_id, start->tli, WS_LSN_ARG(start->lsn), WS_LSN_ARG(kept),
			r->o->slot ? " slot=" : "", r->o->slot ? r->o->slot : "");
	recvout_begin(r->out, *start, "the server's");
	recvhold_session(r->hold, r->c, &r->src);
	r->tli = start->tli;
	r->pushed = r->checked = start->lsn;
	r->reported = 0;
	r->last_status = r->last_limit = ws_now_us();
	r->blocked_since = 0;
	/* Exactly at a fork the server ends the timeline at once. */
	return rc ? TIMELINE_END : 0;
}

/* ---- streaming ---- */

static int
take_wal(struct receiver *r, struct ws_pg_event *ev, struct ws_err *err)
{
	ws_lsn end = ev->lsn + ev->n;

	r->streamed = r->ever = true;
	r->skip_previous = false;
	if (ev->lsn != r->pushed) {
		ws_pg_free(ev->owner);
		return ws_err_temp(err, "the server sent WAL of " WS_LSN_FMT ", expected " WS_LSN_FMT,
						   WS_LSN_ARG(ev->lsn), WS_LSN_ARG(r->pushed));
	}
	if (r->o->endpos && end > r->o->endpos)
		end = r->o->endpos;
	*r->m_bytes += (double)(end - ev->lsn);
	r->pushed = end;
	recvout_push(r->out, ev->owner, ev->lsn, ev->p, end - ev->lsn);
	return r->o->endpos && end >= r->o->endpos ? ENDPOS : 0;
}

/* The limit is looked at often enough to be kept to an eighth. */
static bool
limit_may_be_near(const struct receiver *r)
{
	return r->o->raw_limit && r->pushed - r->checked >= r->o->raw_limit / 8;
}

/* Takes what the server sent; 0 or an outcome or -1. */
static int
take_events(struct receiver *r, struct ws_err *err)
{
	r->more = true;
	for (int i = 0; i < EVENTS_AT_ONCE && !recvout_full(r->out) && !limit_may_be_near(r); i++) {
		struct ws_pg_event ev;
		int rc = 0;

		if (ws_pg_stream_next(r->c, &ev, err) != 0)
			return -1;
		if (ev.server_end > r->server_end)
			r->server_end = ev.server_end;
		switch (ev.kind) {
		case WS_PG_NOTHING:
			r->more = false;
			return 0;
		case WS_PG_WAL:
			rc = take_wal(r, &ev, err);
			break;
		case WS_PG_KEEPALIVE:
			r->ever = true;
			if (ev.reply)
				rc = receiver_status(r, err);
			break;
		case WS_PG_TIMELINE_END:
			r->next = ev.next;
			return TIMELINE_END;
		case WS_PG_SHUTDOWN:
			return SHUTDOWN;
		case WS_PG_STOPPED:
			return SERVER_STOPPED;
		}
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
wait_events(struct receiver *r, bool full, struct ws_err *err)
{
	uint64_t now = ws_now_us(), next = now + 1000000;
	struct pollfd p[3] = {{.fd = ws_pg_socket(r->c)},
						  {.fd = recvout_fd(r->out), .events = POLLIN},
						  {.fd = ws_tool_signal_fd(), .events = POLLIN}};

	if (!full)
		p[0].events |= POLLIN;
	if (ws_pg_stream_unsent(r->c))
		p[0].events |= POLLOUT;
	if (r->interval_us && r->last_status + r->interval_us < next)
		next = r->last_status + r->interval_us;
	if (r->more && !full)
		next = now;
	if (poll(p, 3, next > now ? (int)((next - now + 999) / 1000) : 0) < 0 && errno != EINTR)
		return ws_err_sys(err, "cannot poll");
	ws_tool_take_hup();
	return p[0].revents & POLLOUT ? ws_pg_stream_flush(r->c, err) : 0;
}

/* What is due by the clock. */
static int
housekeeping(struct receiver *r, bool full, struct ws_err *err)
{
	uint64_t now = ws_now_us();
	ws_lsn written, synced;

	recvout_positions(r->out, &written, &synced);
	recvhold_received(r->hold, synced);
	if ((r->interval_us && now - r->last_status >= r->interval_us) ||
		(r->o->synchronous && synced > r->reported))
		if (receiver_status(r, err) != 0)
			return -1;
	if (!full)
		r->blocked_since = 0;
	else if (!r->blocked_since)
		r->blocked_since = now;
	else if (now - r->blocked_since > BLOCKED_MAX_US)
		return BLOCKED;
	if (now - r->last_limit >= LIMIT_CHECK_US || limit_may_be_near(r)) {
		r->last_limit = now;
		r->checked = r->pushed;
		int room = receiver_room(r, false, err);

		if (room <= 0)
			return room < 0 ? -1 : NO_ROOM;
	}
	receiver_metrics_update(r);
	return 0;
}

static int
stream(struct receiver *r, struct ws_err *err)
{
	for (;;) {
		if (ws_tool_stopping())
			return STOPPING;
		int rc = take_events(r, err);

		if (rc == 0)
			rc = recvout_check(r->out, err);
		if (rc == 0) {
			bool full = recvout_full(r->out);

			rc = housekeeping(r, full, err);
			if (rc == 0)
				rc = wait_events(r, full, err);
		}
		if (rc != 0)
			return rc;
	}
}

/* The last WAL is written and confirmed before the connection goes. */
static void
say_goodbye(struct receiver *r)
{
	struct ws_err err;
	uint64_t until = ws_now_us() + 2000000;

	while (!recvout_idle(r->out) && ws_now_us() < until) {
		struct pollfd p = {.fd = recvout_fd(r->out), .events = POLLIN};

		poll(&p, 1, 50);
		if (recvout_check(r->out, &err) != 0)
			return;
	}
	if (receiver_status(r, &err) != 0)
		ws_debug("%s", err.msg);
}

static int
session(struct receiver *r, struct ws_err *err)
{
	struct ws_pos start = {0, 0};

	r->streamed = r->connected = false;
	int rc = begin_session(r, &start, err);

	while (rc == 0 || rc == TIMELINE_END) {
		rc = rc == 0 ? stream(r, err) : receiver_switch(r, err);
		if (rc == ENDPOS || rc == STOPPING)
			say_goodbye(r);
	}
	if (rc < 0 && !strcmp(err->reason, "wal_missing") && start.lsn &&
		start.lsn < ws_seg_start(recvout_kept(r->out).lsn, r->src.segsize) && recvout_announced(r->out)) {
		/* Only the segment before, wanted for the comparison, is gone: nothing is missing. */
		r->skip_previous = true;
		rc = NO_PREVIOUS;
	}
	recvhold_session(r->hold, NULL, NULL);
	ws_pg_close(r->c);
	r->c = NULL;
	if (rc < 0)
		receiver_slot_lost(r, err);
	return rc;
}

/* ---- between sessions ---- */

/* The exit status of an outcome, with *err filled, or -1: connect again. */
static int
judge(struct receiver *r, int rc, struct ws_err *err)
{
	switch (rc) {
	case ENDPOS:
	case STOPPING:
		return WS_OK;
	case SHUTDOWN:
		ws_err_end(err, "the server was shut down");
		return r->o->no_loop ? WS_EEND : -1;
	case SERVER_STOPPED:
		ws_err_temp(err, "the server stopped the stream");
		break;
	case NO_ROOM:
	case NO_PREVIOUS:
	case RESTORED:
		return -1;
	case BLOCKED:
		ws_err_temp(err, "the output took nothing for %d s: disconnected until it does",
					BLOCKED_MAX_US / 1000000);
		ws_warn("%s", err->msg);
		return -1;
	}
	if (ws_tool_stopping() && err->status == WS_ETEMP &&
		(!r->out || recvout_check(r->out, err) == 0))
		return WS_OK;
	if (err->status == WS_EOPERATOR || (err->status == WS_EUSAGE && !r->ever))
		return err->status;
	if (r->o->no_loop || r->local || (r->out && recvout_check(r->out, err) != 0))
		return err->status;
	return -1;
}

/* Says why, once a minute when it stays the same. */
static void
log_retry(struct receiver *r, const struct ws_err *err, int ms)
{
	uint64_t now = ws_now_us();

	if (!strcmp(r->last_msg, err->msg) && now - r->last_msg_us < REPEAT_LOG_US)
		return;
	strcpy(r->last_msg, err->msg);
	r->last_msg_us = now;
	ws_warn("%s; trying again in %.1f s", err->msg, ms / 1000.0);
}

static int
run(struct receiver *r, struct ws_err *err)
{
	int backoff = BACKOFF_MIN_MS;

	for (;;) {
		int rc = session(r, err);

		if (rc < 0 && receiver_asks_archive(r, err))
			rc = receiver_restore(r, err);
		int status = judge(r, rc, err);

		if (status >= 0)
			return status;
		*r->m_reconnects += 1;
		if (r->streamed || rc == RESTORED)
			backoff = BACKOFF_MIN_MS;
		if (rc == NO_ROOM || rc == BLOCKED || rc == NO_PREVIOUS || rc == RESTORED)
			continue;
		int ms = err->status == WS_EUSAGE ? BACKOFF_CONFIG_MS : backoff;

		log_retry(r, err, ms);
		if (!receiver_nap(r, ms))
			return WS_OK;
		backoff = backoff * 2 < BACKOFF_MAX_MS ? backoff * 2 : BACKOFF_MAX_MS;
	}
}

int
ws_receive_run(const struct ws_receive_opts *o, struct ws_err *err)
{
	struct receiver r = {.o = o};
	struct ws_err cerr = {0};

	receiver_metrics_init(&r);
	int status = run(&r, err);

	receiver_metrics_update(&r);
	recvhold_stop(r.hold);
	if (recvout_close(r.out, status == WS_OK, CLOSE_TIMEOUT_MS, &cerr) != 0 && status == WS_OK) {
		*err = cerr;
		status = cerr.status;
	}
	receiver_archive_fini(&r);
	return status;
}
