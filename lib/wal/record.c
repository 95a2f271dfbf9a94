/* One record taken apart (access/transam/xlogreader.c, DecodeXLogRecord); see ws/record.h. */
#include <stdio.h>

#include "ws/cursor.h"
#include "ws/record.h"
#include "ws/walpage.h"

/* Header ids (access/xlogrecord.h). */
#define ID_SHORT    255
#define ID_LONG     254
#define ID_ORIGIN   253
#define ID_TOPLEVEL 252

#define BKP_FORK_MASK 0x0F
#define BKP_SAME_REL  0x80
#define IMG_COMPRESSED (WS_IMG_PGLZ | WS_IMG_LZ4 | WS_IMG_ZSTD)

static const char *const names[] = {
#define WS_RMGR(id, sym, name) [id] = name,
#include "ws/rmgr.def"
#undef WS_RMGR
};

const char *
ws_rmgr_name(uint8_t rmid, char *buf)
{
	if (rmid < sizeof names / sizeof names[0])
		return names[rmid];
	snprintf(buf, 16, "%s%u", rmid >= 128 ? "custom" : "unknown", rmid);
	return buf;
}

/* Little-endian loads that move on; the caller has checked that the bytes are there. */
#define TAKE8(p)  (*(p)++)
#define TAKE16(p) ((p) += 2, ws_le16((p) - 2))
#define TAKE32(p) ((p) += 4, ws_le32((p) - 4))

#define NEED(n)                                                                                    \
	if ((size_t)(end - p) < (size_t)(n))                                                           \
	return cut_off

static const char cut_off[] = "lengths do not add up to the record's";

/* The image part of a block header at *at.  Returns what is wrong, or NULL. */
static const char *
parse_image(const uint8_t **at, const uint8_t *end, struct ws_block *b)
{
	const uint8_t *p = *at;

	NEED(7); /* with the hole's length, or the block number that comes anyway */
	b->img_len = TAKE16(p);
	b->hole_off = TAKE16(p);
	b->img_info = TAKE8(p);
	bool hole = b->img_info & WS_IMG_HAS_HOLE, compressed = b->img_info & IMG_COMPRESSED;

	if (compressed)
		b->hole_len = (uint16_t)(hole ? TAKE16(p) : 0);
	else
		b->hole_len = b->img_len <= WS_PAGE_SIZE ? (uint16_t)(WS_PAGE_SIZE - b->img_len) : 0;
	*at = p;
	if (hole && (!b->hole_off || !b->hole_len || b->img_len >= WS_PAGE_SIZE))
		return "block image with a hole of no place";
	if (!hole && (b->hole_off || b->hole_len))
		return "block image of a wrong length";
	if (b->img_len > WS_PAGE_SIZE || (compressed && b->img_len == WS_PAGE_SIZE))
		return "block image too long";
	if ((uint32_t)b->hole_off + b->hole_len > WS_PAGE_SIZE)
		return "block image's hole is past the page";
	return NULL;
}

/* One block header at *at, after its id.  before is the block that a same-relation one repeats. */
static inline const char *
parse_block(const uint8_t **at, const uint8_t *end, struct ws_block *b, const struct ws_block *before)
{
	const uint8_t *p = *at;

	NEED(3 + 4);
	uint8_t fork_flags = TAKE8(p);

	b->fork = fork_flags & BKP_FORK_MASK;
	b->flags = fork_flags & 0xF0;
	b->data_len = TAKE16(p);
	b->img_info = 0;
	b->img_len = b->hole_off = b->hole_len = 0;
	b->img = b->data = NULL;
	if (!(b->flags & WS_BKP_HAS_DATA) != !b->data_len)
		return "block data flag and length disagree";
	if (b->flags & WS_BKP_HAS_IMAGE) {
		const char *wrong = parse_image(&p, end, b);

		if (wrong)
			return wrong;
	}
	if (!(b->flags & BKP_SAME_REL)) {
		NEED(12 + 4);
		b->loc.spc = TAKE32(p);
		b->loc.db = TAKE32(p);
		b->loc.rel = TAKE32(p);
	} else if (before) {
		NEED(4);
		b->loc = before->loc;
	} else {
		return "block repeats a relation that no block named";
	}
	b->blkno = TAKE32(p);
	*at = p;
	return NULL;
}

/* The headers from *at on, which is then behind them.  *payload sums what is to follow. */
static const char *
parse_headers(const uint8_t **at, const uint8_t *end, struct ws_record *out, size_t *payload)
{
	const uint8_t *p = *at;
	size_t sum = 0;
	int last_id = -1;

	while ((size_t)(end - p) > sum) {
		uint8_t id = TAKE8(p);

		if (id < WS_REC_MAX_BLOCKS) {
			struct ws_block *b = &out->blocks[out->nblocks];

			if (id <= last_id)
				return "block ids out of order";
			last_id = b->id = id;
			const char *wrong = parse_block(&p, end, b, out->nblocks ? b - 1 : NULL);

			if (wrong)
				return wrong;
			out->nblocks++;
			sum += (size_t)b->data_len + b->img_len;
		} else if (id == ID_SHORT) {
			NEED(1);
			out->main_len = TAKE8(p);
			sum += out->main_len;
			break; /* always the last header */
		} else if (id == ID_LONG) {
			NEED(4);
			out->main_len = TAKE32(p);
			sum += out->main_len;
			break;
		} else if (id == ID_ORIGIN) {
			NEED(2);
			out->origin = TAKE16(p);
		} else if (id == ID_TOPLEVEL) {
			NEED(4);
			out->toplevel_xid = TAKE32(p);
		} else {
			return "unknown header id";
		}
	}
	*at = p;
	*payload = sum;
	return (size_t)(end - p) == sum ? NULL : cut_off;
}

int
ws_record_parse(const struct ws_rec *rec, struct ws_record *out, struct ws_err *err)
{
	const uint8_t *p = rec->data + WS_REC_HDR_SIZE;
	size_t payload = 0;

	out->rec = rec;
	out->toplevel_xid = 0;
	out->origin = 0;
	out->main_len = 0;
	out->nblocks = 0;
	const char *wrong = rec->tot_len < WS_REC_HDR_SIZE
	                        ? "record too short"
	                        : parse_headers(&p, rec->data + rec->tot_len, out, &payload);

	if (wrong)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": %s", WS_LSN_ARG(rec->start), wrong);
	for (int i = 0; i < out->nblocks; i++) {
		struct ws_block *b = &out->blocks[i];

		if (b->flags & WS_BKP_HAS_IMAGE) {
			b->img = p;
			p += b->img_len;
		}
		if (b->data_len) {
			b->data = p;
			p += b->data_len;
		}
	}
	out->main = p;
	return 0;
}

bool
ws_rec_locator(const uint8_t *data, uint32_t tot_len, struct ws_locator *loc)
{
	/* block header: id 0, fork and flags, data length, [image: length, hole offset, info, [hole
	 * length]], locator (access/xlogrecord.h) */
	const uint8_t *p = data + WS_REC_HDR_SIZE, *end = data + tot_len;

	if (tot_len < WS_REC_HDR_SIZE + 16 || p[0] != 0)
		return false;
	uint8_t flags = p[1];

	p += 4;
	if (flags & WS_BKP_HAS_IMAGE) {
		uint8_t info = p[4];

		p += 5;
		if (info & WS_IMG_HAS_HOLE && info & (WS_IMG_PGLZ | WS_IMG_LZ4 | WS_IMG_ZSTD))
			p += 2;
	}
	if (end - p < 12)
		return false;
	*loc = (struct ws_locator){ws_le32(p), ws_le32(p + 4), ws_le32(p + 8)};
	return true;
}

const struct ws_block *
ws_record_block(const struct ws_record *r, uint8_t id)
{
	for (int i = 0; i < r->nblocks; i++)
		if (r->blocks[i].id == id)
			return &r->blocks[i];
	return NULL;
}
