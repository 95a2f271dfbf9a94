/* Editing WAL records; see ws/rewrite.h.
 * Layouts: access/xlogrecord.h (XLogRecord, XLR_BLOCK_ID_DATA_SHORT and _LONG); a NOOP's content is
 * not looked at by xlog_redo (access/transam/xlog.c), but DecodeXLogRecord wants it well formed. */
#include <string.h>

#include "walpriv.h"
#include "ws/crc.h"
#include "ws/cursor.h"
#include "ws/rewrite.h"
#include "ws/walpage.h"

#define XLOG_NOOP      0x20
#define DATA_SHORT     255
#define DATA_LONG      254
#define SHORT_MAX      255u
#define CRC_OFFSET     20u
#define CRC_TABLE_SIZE 8448u /* a page image with its headers, and a bit */
#define SMALL_BODY     512u  /* zeroed by stores; above, by memset */

/* The first bytes of a blanked body of n bytes; returns how many.  No record has a body of 1 byte. */
static inline uint32_t
body_prefix(uint8_t *p, uint32_t n)
{
	if (n < 2) {
		memset(p, 0, n);
		return n;
	}
	if (n - 2 <= SHORT_MAX) {
		p[0] = DATA_SHORT;
		p[1] = (uint8_t)(n - 2);
		return 2;
	}
	p[0] = DATA_LONG;
	ws_store32(p + 1, n - 5);
	return 5;
}

static uint32_t
body_crc_slow(uint32_t n)
{
	static const uint8_t zeros[4096];
	uint8_t prefix[8];
	uint32_t k = body_prefix(prefix, n);
	uint32_t crc = ws_crc32c(WS_CRC_INIT, prefix, k);

	for (n -= k; n; n -= k) {
		k = n < sizeof zeros ? n : (uint32_t)sizeof zeros;
		crc = ws_crc32c(crc, zeros, k);
	}
	return crc;
}

/* A blanked body depends on its length alone, so its CRC is worked out once a length. */
static inline uint32_t
body_crc(uint32_t n)
{
	static uint32_t table[CRC_TABLE_SIZE];

	if (n < CRC_TABLE_SIZE && table[n])
		return table[n];
	uint32_t crc = body_crc_slow(n);

	if (n < CRC_TABLE_SIZE)
		table[n] = crc;
	return crc;
}

static inline void
blank_header(uint8_t *hdr, uint32_t tot_len)
{
	/* xl_info, xl_rmid, padding */
	ws_store32(hdr + 16, (uint32_t)WS_RM_XLOG << 8 | XLOG_NOOP);
	uint32_t crc = ws_record_head_crc(body_crc(tot_len - WS_REC_HDR_SIZE), hdr);

	ws_store32(hdr + CRC_OFFSET, WS_CRC_FIN(crc));
}

/* n is 8 at least: the last store may go over the one before. */
static inline void
zero_small(uint8_t *p, uint32_t n)
{
	uint8_t *last = p + n - 8;

	for (; p < last; p += 8)
		ws_store64(p, 0);
	ws_store64(last, 0);
}

void
ws_rewrite_blank(uint8_t *rec, uint32_t tot_len)
{
	uint8_t *body = rec + WS_REC_HDR_SIZE;
	uint32_t n = tot_len - WS_REC_HDR_SIZE;

	if (n >= 8 && n <= SMALL_BODY)
		zero_small(body, n);
	else
		memset(body, 0, n);
	(void)body_prefix(body, n);
	blank_header(rec, tot_len);
}

/* A place in a span; record bytes lie behind each page header. */
struct place {
	const struct ws_walspan *span;
	ws_lsn lsn;
};

static uint8_t *
place_next(struct place *at, size_t *room)
{
	uint32_t in_page = (uint32_t)(at->lsn & (WS_PAGE_SIZE - 1));

	if (!in_page) {
		in_page = at->lsn & (at->span->segsize - 1) ? WS_PAGE_HDR_SHORT : WS_PAGE_HDR_LONG;
		at->lsn += in_page;
	}
	*room = WS_PAGE_SIZE - in_page;
	return at->span->p + (at->lsn - at->span->lsn);
}

/* Stores n bytes (zeros when p is NULL) and moves on. */
static void
place_put(struct place *at, const uint8_t *p, size_t n)
{
	while (n) {
		size_t room;
		uint8_t *to = place_next(at, &room);

		if (room > n)
			room = n;
		if (p) {
			memcpy(to, p, room);
			p += room;
		} else {
			memset(to, 0, room);
		}
		at->lsn += room;
		n -= room;
	}
}

void
ws_rewrite_blank_span(const struct ws_walspan *span, const struct ws_rec *rec)
{
	uint8_t head[WS_REC_HDR_SIZE + 8];
	struct place at = {span, rec->start};
	uint32_t n = rec->tot_len - WS_REC_HDR_SIZE;

	memcpy(head, rec->data, WS_REC_HDR_SIZE);
	blank_header(head, rec->tot_len);
	uint32_t k = body_prefix(head + WS_REC_HDR_SIZE, n);

	place_put(&at, head, WS_REC_HDR_SIZE + k);
	place_put(&at, NULL, n - k);
}

void
ws_rewrite_put_span(const struct ws_walspan *span, ws_lsn start, const uint8_t *rec, uint32_t tot_len)
{
	struct place at = {span, start};

	place_put(&at, rec, tot_len);
}

void
ws_rewrite_zero(uint8_t *rec, uint32_t tot_len, uint32_t off, uint32_t n)
{
	memset(rec + off, 0, n);
	uint32_t crc = ws_crc32c(WS_CRC_INIT, rec + WS_REC_HDR_SIZE, tot_len - WS_REC_HDR_SIZE);

	ws_store32(rec + CRC_OFFSET, WS_CRC_FIN(ws_crc32c(crc, rec, CRC_OFFSET)));
}
