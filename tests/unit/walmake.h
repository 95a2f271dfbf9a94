/* Makes WAL in memory for unit tests: pages, records with right CRCs and prev links. */
#ifndef WALMAKE_H
#define WALMAKE_H

#include <stdlib.h>
#include <string.h>

#include "ws/crc.h"
#include "ws/cursor.h"
#include "ws/mem.h"
#include "ws/walpage.h"

struct walmake {
	struct ws_buf b; /* bytes from start on */
	ws_lsn start, prev;
	uint32_t segsize;
	uint16_t magic;
	ws_tli tli;
	uint64_t sysid;
	uint32_t rem;       /* of the record being written */
	uint16_t next_info; /* extra bits for the next page header */
};

static inline ws_lsn
wm_lsn(const struct walmake *m)
{
	return m->start + m->b.len;
}

static inline void
wm_init(struct walmake *m, ws_lsn start, uint32_t segsize, uint16_t magic)
{
	*m = (struct walmake){.start = start, .prev = start - 100, .segsize = segsize, .magic = magic,
	                      .tli = 1, .sysid = 0x1122334455667788ull};
}

static inline void
wm_page(struct walmake *m)
{
	uint8_t h[WS_PAGE_HDR_LONG] = {0};
	bool lng = !(wm_lsn(m) & (m->segsize - 1));
	uint16_t info = (uint16_t)((lng ? WS_PAGE_LONG_HEADER : 0) |
	                           (m->rem ? WS_PAGE_FIRST_IS_CONTRECORD : 0) | m->next_info);

	m->next_info = 0;
	ws_store16(h, m->magic);
	ws_store16(h + 2, info);
	ws_store32(h + 4, m->tli);
	ws_store64(h + 8, wm_lsn(m));
	ws_store32(h + 16, m->rem);
	ws_store64(h + 24, m->sysid);
	ws_store32(h + 32, m->segsize);
	ws_store32(h + 36, WS_PAGE_SIZE);
	ws_buf_put(&m->b, h, lng ? WS_PAGE_HDR_LONG : WS_PAGE_HDR_SHORT);
}

/* Raw bytes of a record over pages; limit stops early (a torn record), 0: all. */
static inline ws_lsn
wm_put(struct walmake *m, const uint8_t *rec, uint32_t n, uint32_t limit)
{
	ws_lsn start = 0;

	for (uint32_t done = 0; done < n;) {
		if (limit && done >= limit)
			return start;
		if (!(wm_lsn(m) & (WS_PAGE_SIZE - 1))) {
			m->rem = done ? n - done : 0;
			wm_page(m);
		}
		if (!done)
			start = wm_lsn(m);
		uint32_t room = (uint32_t)(WS_PAGE_SIZE - (wm_lsn(m) & (WS_PAGE_SIZE - 1)));
		uint32_t k = n - done < room ? n - done : room;

		ws_buf_put(&m->b, rec + done, k);
		done += k;
	}
	m->rem = 0;
	while (m->b.len & 7)
		ws_buf_putc(&m->b, 0);
	return start;
}

/* A record with `len` bytes of main data (header included when it fits).  Returns its start. */
static inline ws_lsn
wm_record_part(struct walmake *m, uint8_t rmid, uint8_t info, ws_xid xid, const void *body, uint32_t len,
               uint32_t limit)
{
	uint8_t *r = ws_calloc(1, 24 + len + 1);

	ws_store32(r, 24 + len);
	ws_store32(r + 4, xid);
	ws_store64(r + 8, m->prev);
	r[16] = info;
	r[17] = rmid;
	if (len)
		memcpy(r + 24, body, len);
	ws_store32(r + 20, WS_CRC_FIN(ws_crc32c(ws_crc32c(WS_CRC_INIT, r + 24, len), r, 20)));
	ws_lsn at = wm_put(m, r, 24 + len, limit);

	if (!limit)
		m->prev = at;
	free(r);
	return at;
}

/* Main data of n bytes that count from `seed`. */
static inline ws_lsn
wm_record(struct walmake *m, uint8_t rmid, uint8_t info, ws_xid xid, uint32_t n, uint8_t seed)
{
	struct ws_buf b = {0};

	if (n < 256) {
		ws_buf_putc(&b, 255);
		ws_buf_putc(&b, (uint8_t)n);
	} else {
		ws_buf_putc(&b, 254);
		ws_buf_put32(&b, n);
	}
	for (uint32_t i = 0; i < n; i++)
		ws_buf_putc(&b, (uint8_t)(seed + i));
	ws_lsn at = wm_record_part(m, rmid, info, xid, b.data, (uint32_t)b.len, 0);

	ws_buf_free(&b);
	return at;
}

/* Zeros up to lsn. */
static inline void
wm_zero_to(struct walmake *m, ws_lsn lsn)
{
	while (wm_lsn(m) < lsn)
		ws_buf_putc(&m->b, 0);
}

#endif
