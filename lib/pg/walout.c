/* WAL out of the directory into 'w' messages; see walsend.h.  Messages end at a page boundary or at
 * the gate's limit, which is a record's end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "recvdir.h"
#include "replmsg.h"
#include "servermsg.h"
#include "walsend.h"
#include "ws/lsn.h"
#include "ws/tool.h"
#include "ws/walpage.h"

#define SEND_MAX (16 * WS_PAGE_SIZE) /* as walsender.c, MAX_SEND_SIZE */

void
walout_close(struct client *c)
{
	if (c->seg_fd >= 0)
		close(c->seg_fd);
	c->seg_fd = -1;
}

/* The segment that holds lsn.  The fork's is read under the descendant's name, which has the ancestor's
 * bytes, too, and more of them when the ancestor's file was left before its end. */
static int
open_segment(struct walsend *w, ws_tli tli, ws_lsn lsn)
{
	ws_tli name = ws_gate_name_of(w->gate, lsn);
	bool partial;
	int fd = recvdir_open(w->o->dir, w->cluster.segsize, name, lsn, O_RDONLY, &partial);

	if (fd < 0 && errno == ENOENT && name != tli)
		fd = recvdir_open(w->o->dir, w->cluster.segsize, tli, lsn, O_RDONLY, &partial);
	return fd;
}

static int
open_at(struct walsend *w, struct client *c, struct ws_err *err)
{
	ws_lsn start = ws_seg_start(c->sent, w->cluster.segsize);

	if (c->seg_fd >= 0 && c->seg_start == start)
		return 1;
	walout_close(c);
	c->seg_fd = open_segment(w, c->tli, c->sent);
	c->seg_start = start;
	if (c->seg_fd >= 0)
		return 1;
	if (errno == ENOENT)
		return 0;
	return ws_err_sys(err, "%s: cannot open the segment of " WS_LSN_FMT, w->o->dir,
					  WS_LSN_ARG(c->sent));
}

int
walout_send(struct walsend *w, struct client *c, struct ws_err *err)
{
	ws_tli next;
	ws_lsn limit = ws_gate_limit(w->gate), last = ws_gate_end_of(w->gate, c->tli, &next);
	ws_lsn end = c->sent + SEND_MAX;
	ws_lsn seg_end = ws_seg_start(c->sent, w->cluster.segsize) + w->cluster.segsize;

	if (c->copy_done)
		return 0;
	if (c->sent >= last) {
		/* The timeline has ended, or is on the way no longer: the client's CopyDone is answered with what
		 * follows. */
		msg_copy_done(&c->out);
		c->copy_done = true;
		return 1;
	}
	/* What is served already comes after all of an ancestor. */
	if (last != UINT64_MAX)
		limit = last;
	if (limit <= c->sent)
		return 0;
	end &= ~((ws_lsn)WS_PAGE_SIZE - 1);
	if (end > seg_end)
		end = seg_end;
	if (end > limit)
		end = limit;
	int rc = open_at(w, c, err);

	if (rc <= 0)
		return rc;
	size_t n = (size_t)(end - c->sent), mark;

	msg_begin(&c->out, 'd', &mark);
	size_t hdr = c->out.len;

	ws_buf_reserve(&c->out, REPL_WAL_HDR + n);
	uint8_t *p = c->out.data + hdr;
	ssize_t got;

	do
		got = pread(c->seg_fd, p + REPL_WAL_HDR, n, (off_t)(c->sent - c->seg_start));
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)n) {
		/* Shorter than the gate saw it: the writer cut off what a crash tore, or went on under the
		 * descendant's name. */
		c->out.len = mark - 1;
		walout_close(c);
		return got < 0 ? ws_err_sys(err, "%s: cannot read at " WS_LSN_FMT, w->o->dir,
									WS_LSN_ARG(c->sent))
					   : 0;
	}
	p[0] = 'w';
	put_be64(p + 1, c->sent);
	put_be64(p + 9, end);
	put_be64(p + 17, (uint64_t)repl_time(ws_wall_us()));
	c->out.len = hdr + REPL_WAL_HDR + n;
	msg_end(&c->out, mark);
	c->sent = end;
	c->last_sent_us = ws_now_us();
	*w->m_bytes += (double)n;
	return 1;
}

const char *
walout_can_start(struct walsend *w, ws_tli tli, ws_lsn lsn, char *msg, size_t n)
{
	char name[WS_WALNAME_MAX];
	struct ws_err err;

	ws_tli next;
	ws_lsn last = ws_gate_end_of(w->gate, tli, &next);

	if (walsend_end(w, &err) != 0 || w->end.lsn == 0) {
		snprintf(msg, n, "there is no WAL to serve yet");
		return "57P03";
	}
	if (!last) {
		snprintf(msg, n, "requested timeline %u is not in this server's history", tli);
		return "XX000";
	}
	if (last != UINT64_MAX && lsn > last) {
		snprintf(msg, n,
				 "requested starting point " WS_LSN_FMT " on timeline %u is not in this server's history: it ends "
				 "at " WS_LSN_FMT,
				 WS_LSN_ARG(lsn), tli, WS_LSN_ARG(last));
		return "XX000";
	}
	if (lsn == last)
		return NULL;
	if (lsn > w->end.lsn) {
		snprintf(msg, n,
				 "requested starting point " WS_LSN_FMT
				 " is ahead of the WAL flush position of this server " WS_LSN_FMT,
				 WS_LSN_ARG(lsn), WS_LSN_ARG(w->end.lsn));
		return "XX000";
	}
	if (lsn == w->end.lsn)
		return NULL;
	int fd = open_segment(w, tli, lsn);

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	ws_seg_name(name, tli, lsn, w->cluster.segsize);
	snprintf(msg, n, "requested WAL segment %s has already been removed", name);
	return "58P01";
}
