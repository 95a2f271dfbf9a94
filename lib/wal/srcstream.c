/* A WAL source that reads the framed stream of ws-wal(5).
 *
 * A following source never blocks in read(2); another waits in poll(2) for bytes or a signal. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "walframe.h"
#include "walsrcpriv.h"
#include "ws/cursor.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/tool.h"
#include "ws/walpage.h"

struct srcstream {
	int fd;
	struct ws_buf in; /* what was read and not yet handed out, from `at` */
	size_t at;
	bool head_seen;
	struct ws_pos want; /* the start asked for; lsn 0: any */
	struct ws_pos next; /* where the next WAL frame must be; lsn 0 before the first */
};

/* 1 bytes came, 0 none now (or a signal), -1. */
static int
read_more(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcstream *d = s->impl;
	struct pollfd p[2] = {{.fd = d->fd, .events = POLLIN}, {.fd = ws_tool_signal_fd(), .events = POLLIN}};

	if (poll(p, 2, s->follow && d->head_seen ? 0 : -1) < 0)
		return errno == EINTR ? 0 : ws_err_sys(err, "%s: cannot poll", s->spec);
	if (!p[0].revents)
		return 0;
	if (d->at) {
		memmove(d->in.data, d->in.data + d->at, d->in.len - d->at);
		d->in.len -= d->at;
		d->at = 0;
	}
	ws_buf_reserve(&d->in, WS_FRAME_MAX + WS_FRAME_HEAD);
	ssize_t n = read(d->fd, d->in.data + d->in.len, d->in.cap - d->in.len);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : ws_err_sys(err, "%s: cannot read", s->spec);
	if (n == 0)
		return ws_err_temp(err, "framed WAL stream: ended without an end frame, its producer died");
	d->in.len += (size_t)n;
	return 1;
}

/* 1: n bytes are there from *p on.  0, -1 as read_more. */
static int
need(struct ws_walsrc *s, size_t n, const uint8_t **p, struct ws_err *err)
{
	struct srcstream *d = s->impl;
	int rc;

	while (d->in.len - d->at < n)
		if ((rc = read_more(s, err)) <= 0)
			return rc;
	*p = d->in.data + d->at;
	return 1;
}

static int
bad(const char *what, struct ws_err *err)
{
	return ws_err_op(err, "stream_malformed", "framed WAL stream: %s", what);
}

static int
take_header(struct ws_walsrc *s, struct ws_err *err)
{
	struct srcstream *d = s->impl;
	const uint8_t *p;
	int rc = need(s, WS_FRAME_HEADER, &p, err);

	if (rc <= 0)
		return rc;
	if (memcmp(p, WS_FRAME_MAGIC, 8) != 0)
		return bad("does not begin as one", err);
	struct ws_cluster c = {ws_le64(p + 8), (int)ws_le32(p + 16), ws_le32(p + 20)};

	if (!ws_segsize_ok(c.segsize) || !ws_walver_by_major(c.major))
		return bad("PostgreSQL's major or the segment size is unknown", err);
	if (s->segsize && s->segsize != c.segsize)
		return ws_err_op(err, "segment_size_changed",
		                 "framed WAL stream: segments of %" PRIu32 " bytes, %" PRIu32 " were expected",
		                 c.segsize, s->segsize);
	s->segsize = c.segsize;
	s->cluster = c;
	s->cluster_known = true;
	d->at += WS_FRAME_HEADER;
	d->head_seen = true;
	return 1;
}

static int
take_history(struct ws_walsrc *s, ws_tli tli, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct ws_history h;

	if (ws_history_parse(tli, (const char *)p, n, &h, err) != 0)
		return -1;
	if (s->hist_known && s->hist.tli > tli) {
		ws_history_fini(&h);
		return 0;
	}
	ws_history_fini(&s->hist);
	s->hist = h;
	s->hist_known = true;
	return 0;
}

/* Whether a frame's place follows what came before. */
static int
check_place(struct ws_walsrc *s, struct ws_pos at, size_t n, struct ws_err *err)
{
	struct srcstream *d = s->impl;

	if (!at.tli || n > WS_FRAME_MAX || (at.lsn & (s->segsize - 1)) + n > s->segsize || at.lsn + n < at.lsn)
		return bad("a frame crosses a segment or is too long", err);
	if (!d->next.lsn) {
		if (at.lsn & (WS_PAGE_SIZE - 1))
			return bad("does not start at a page", err);
		if (d->want.lsn && at.lsn > (d->want.lsn & ~(ws_lsn)(WS_PAGE_SIZE - 1)))
			return ws_err_op(err, "wal_missing", "framed WAL stream: starts at " WS_LSN_FMT ", behind " WS_LSN_FMT,
			                 WS_LSN_ARG(at.lsn), WS_LSN_ARG(d->want.lsn));
		return 0;
	}
	if (at.tli == d->next.tli ? at.lsn == d->next.lsn
	                          : at.tli > d->next.tli && at.lsn <= d->next.lsn && !(at.lsn & (WS_PAGE_SIZE - 1)))
		return 0;
	return bad("a frame does not follow the one before it", err);
}

/* 1 *c is set, 0 the frame gave no bytes (history, below the start, end). */
static int
take_frame(struct ws_walsrc *s, const uint8_t *p, size_t n, struct ws_walchunk *c, struct ws_err *err)
{
	struct srcstream *d = s->impl;
	struct ws_pos at = {ws_le32(p + 4), ws_le64(p + 8)};

	p += WS_FRAME_HEAD;
	if (!n) {
		s->at_end = true;
		if (d->next.lsn && (at.lsn != d->next.lsn || at.tli != d->next.tli))
			return bad("its end is not where it says", err);
		return 0;
	}
	if (!at.lsn)
		return take_history(s, at.tli, p, n, err);
	if (check_place(s, at, n, err) != 0)
		return -1;
	d->next = (struct ws_pos){at.tli, at.lsn + n};
	/* Below the start asked for, page by page. */
	ws_lsn first = d->want.lsn & ~(ws_lsn)(WS_PAGE_SIZE - 1);

	if (at.lsn + n <= first)
		return 0;
	size_t skip = at.lsn < first ? (size_t)(first - at.lsn) : 0;

	d->want.lsn = 0;
	*c = (struct ws_walchunk){.lsn = at.lsn + skip, .tli = at.tli, .p = p + skip, .n = n - skip};
	return 1;
}

static int
stream_next(struct ws_walsrc *s, struct ws_walchunk *c, struct ws_err *err)
{
	struct srcstream *d = s->impl;
	const uint8_t *p;
	int rc;

	if (!d->head_seen && (rc = take_header(s, err)) <= 0)
		return rc;
	while (!s->at_end) {
		if ((rc = need(s, WS_FRAME_HEAD, &p, err)) <= 0)
			return rc;
		size_t n = ws_le32(p), most = ws_le64(p + 8) ? WS_FRAME_MAX : WS_HISTORY_MAX;

		if (n > most)
			return bad("a frame is too long", err);
		if ((rc = need(s, WS_FRAME_HEAD + n, &p, err)) <= 0)
			return rc;
		d->at += WS_FRAME_HEAD + n;
		if ((rc = take_frame(s, p, n, c, err)) != 0)
			return rc;
	}
	return 0;
}

static int
stream_seek(struct ws_walsrc *s, struct ws_pos to, struct ws_err *err)
{
	struct srcstream *d = s->impl;

	if (d->next.lsn && to.lsn < d->next.lsn)
		return ws_err_op(err, "wal_missing", "framed WAL stream: cannot go back to " WS_LSN_FMT,
		                 WS_LSN_ARG(to.lsn));
	d->want = to;
	return 0;
}

static void
stream_close(struct ws_walsrc *s)
{
	struct srcstream *d = s->impl;

	ws_buf_free(&d->in);
	free(d);
}

static const struct ws_srcops ops = {stream_next, stream_seek, stream_close};

int
ws_srcstream_open(struct ws_walsrc *s, int fd, struct ws_pos start, struct ws_err *err)
{
	struct srcstream *d = ws_calloc(1, sizeof *d);

	s->ops = &ops;
	s->impl = d;
	s->fd = d->fd = fd;
	d->want = start;
	/* 0 here is a signal before the header came: the caller finds it out at ws_walsrc_next. */
	return take_header(s, err) < 0 ? -1 : 0;
}
