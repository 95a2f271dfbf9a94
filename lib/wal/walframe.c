/* The writing side of the framed WAL stream; see ws/waldir.h and ws-wal(5). */
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/uio.h>

#include "walframe.h"
#include "ws/cursor.h"
#include "ws/file.h"
#include "ws/history.h"
#include "ws/waldir.h"

struct ws_walframe {
	int fd;
	uint32_t segsize;
};

#define WHAT "framed WAL stream"

/* Head and body by one writev(2) when the pipe takes it. */
static int
put(struct ws_walframe *f, ws_tli tli, ws_lsn lsn, const void *p, size_t n, struct ws_err *err)
{
	uint8_t head[WS_FRAME_HEAD];
	struct iovec v[2] = {{head, sizeof head}, {(void *)(uintptr_t)p, n}};
	ssize_t w;

	ws_store32(head, (uint32_t)n);
	ws_store32(head + 4, tli);
	ws_store64(head + 8, lsn);
	do
		w = writev(f->fd, v, n ? 2 : 1);
	while (w < 0 && errno == EINTR);
	if (w < 0)
		return ws_err_sys(err, WHAT ": cannot write");
	size_t done = (size_t)w;

	if (done < sizeof head) {
		if (ws_write_all(f->fd, head + done, sizeof head - done, err, WHAT) != 0)
			return -1;
		done = sizeof head;
	}
	done -= sizeof head;
	return done < n ? ws_write_all(f->fd, (const uint8_t *)p + done, n - done, err, WHAT) : 0;
}

struct ws_walframe *
ws_walframe_new(int fd, const struct ws_cluster *c, struct ws_err *err)
{
	uint8_t h[WS_FRAME_HEADER];

	memcpy(h, WS_FRAME_MAGIC, 8);
	ws_store64(h + 8, c->system_id);
	ws_store32(h + 16, (uint32_t)c->major);
	ws_store32(h + 20, c->segsize);
	if (ws_write_all(fd, h, sizeof h, err, WHAT) != 0)
		return NULL;
	struct ws_walframe *f = ws_calloc(1, sizeof *f);

	f->fd = fd;
	f->segsize = c->segsize;
	return f;
}

int
ws_walframe_bytes(struct ws_walframe *f, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n, struct ws_err *err)
{
	while (n) {
		size_t m = f->segsize - (size_t)(lsn & (f->segsize - 1));

		if (m > WS_FRAME_MAX)
			m = WS_FRAME_MAX;
		if (m > n)
			m = n;
		if (put(f, tli, lsn, p, m, err) != 0)
			return -1;
		lsn += m;
		p += m;
		n -= m;
	}
	return 0;
}

int
ws_walframe_history(struct ws_walframe *f, ws_tli tli, const void *p, size_t n, struct ws_err *err)
{
	if (!n || n > WS_HISTORY_MAX)
		return ws_err_op(err, "history_malformed", "history of timeline %u has %zu bytes", tli, n);
	return put(f, tli, 0, p, n, err);
}

int
ws_walframe_end(struct ws_walframe *f, struct ws_pos pos, struct ws_err *err)
{
	return put(f, pos.tli, pos.lsn, NULL, 0, err);
}

void
ws_walframe_free(struct ws_walframe *f)
{
	free(f);
}
