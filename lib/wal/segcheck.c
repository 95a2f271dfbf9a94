/* A whole segment, page by page and record by record; see ws/segcheck.h.
 *
 * Which timeline a page has: that of its first byte (the page in which a switch lies was begun by the
 * ancestor; xlog.c, AdvanceXLInsertBuffer, and xlogrecovery.c, which copies it at the end of recovery). */
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/segcheck.h"
#include "ws/walread.h"

struct ws_segcheck {
	struct ws_segcheck_opts o;
	struct ws_walreader *rd;
	ws_lsn at; /* of the next byte */
	uint8_t hdr[WS_PAGE_HDR_SHORT];
};

struct ws_segcheck *
ws_segcheck_new(const struct ws_segcheck_opts *o)
{
	struct ws_segcheck *c = ws_calloc(1, sizeof *c);

	c->o = *o;
	c->at = o->start;
	c->rd = ws_walreader_new(o->segsize, o->system_id, 0);
	ws_walreader_seek(c->rd, o->start, o->start);
	return c;
}

void
ws_segcheck_free(struct ws_segcheck *c)
{
	if (!c)
		return;
	ws_walreader_free(c->rd);
	free(c);
}

static int
check_page(const struct ws_segcheck *c, ws_lsn page, struct ws_err *err)
{
	static const uint8_t zeros[WS_PAGE_HDR_SHORT];
	ws_tli tli = ws_le32(c->hdr + 4), want = ws_history_tli_at(c->o.way, page);
	ws_lsn addr = ws_le64(c->hdr + 8);

	/* The record reader has seen to it that nothing is wanted here: it is behind a segment switch. */
	if (!memcmp(c->hdr, zeros, sizeof zeros))
		return 0;
	if (addr != page)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": page address is " WS_LSN_FMT, WS_LSN_ARG(page),
						 WS_LSN_ARG(addr));
	if (tli != want)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": page of timeline %u, there is timeline %u",
						 WS_LSN_ARG(page), tli, want);
	return 0;
}

static int
check_pages(struct ws_segcheck *c, const uint8_t *p, size_t n, struct ws_err *err)
{
	while (n) {
		size_t off = c->at & (WS_PAGE_SIZE - 1), k = WS_PAGE_SIZE - off;

		if (off < sizeof c->hdr)
			k = sizeof c->hdr - off;
		if (k > n)
			k = n;
		if (off < sizeof c->hdr)
			memcpy(c->hdr + off, p, k);
		if (off < sizeof c->hdr && off + k == sizeof c->hdr && check_page(c, c->at - off, err) != 0)
			return -1;
		c->at += k;
		p += k;
		n -= k;
	}
	return 0;
}

int
ws_segcheck_data(struct ws_segcheck *c, const uint8_t *p, size_t n, struct ws_err *err)
{
	struct ws_rec rec;
	int rc;

	if (n > c->o.start + c->o.segsize - c->at)
		return ws_err_op(err, "wal_corrupt", "longer than a segment");
	if (n == 0)
		return 0;
	if (ws_walreader_feed(c->rd, c->at, p, n, err) != 0)
		return -1;
	while ((rc = ws_walreader_next(c->rd, &rec, err)) == 1)
		;
	return rc < 0 ? -1 : check_pages(c, p, n, err);
}

int
ws_segcheck_end(const struct ws_segcheck *c, struct ws_err *err)
{
	uint64_t have = c->at - c->o.start;

	if (have == c->o.segsize)
		return 0;
	return ws_err_op(err, "wal_corrupt", "%llu bytes long, a segment has %u", (unsigned long long)have,
					 c->o.segsize);
}
