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

/* The image part of a block header.  Returns what is wrong, or NULL. */
static const char *
parse_image(struct ws_cursor *c, struct ws_block *b)
{
	b->img_len = ws_cur_u16(c);
	b->hole_off = ws_cur_u16(c);
	b->img_info = ws_cur_u8(c);
	bool hole = b->img_info & WS_IMG_HAS_HOLE, compressed = b->img_info & IMG_COMPRESSED;

	if (compressed)
		b->hole_len = hole ? ws_cur_u16(c) : 0;
	else
		b->hole_len = b->img_len <= WS_PAGE_SIZE ? (uint16_t)(WS_PAGE_SIZE - b->img_len) : 0;
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

/* One block header after its id.  *rel is the locator that a same-relation block repeats. */
static const char *
parse_block(struct ws_cursor *c, struct ws_block *b, const struct ws_block *before)
{
	uint8_t fork_flags = ws_cur_u8(c);

	b->fork = fork_flags & BKP_FORK_MASK;
	b->flags = fork_flags & 0xF0;
	b->data_len = ws_cur_u16(c);
	b->img = b->data = NULL;
	b->img_len = b->hole_off = b->hole_len = 0;
	b->img_info = 0;
	if (!(b->flags & WS_BKP_HAS_DATA) != !b->data_len)
		return "block data flag and length disagree";
	if (b->flags & WS_BKP_HAS_IMAGE) {
		const char *wrong = parse_image(c, b);

		if (wrong)
			return wrong;
	}
	if (!(b->flags & BKP_SAME_REL)) {
		const uint8_t *p = ws_cur_bytes(c, 12);

		if (p)
			b->loc = (struct ws_locator){ws_le32(p), ws_le32(p + 4), ws_le32(p + 8)};
	} else if (before) {
		b->loc = before->loc;
	} else {
		return "block repeats a relation that no block named";
	}
	b->blkno = ws_cur_u32(c);
	return NULL;
}

/* The headers, up to the main data's.  *payload sums what is to follow them. */
static const char *
parse_headers(struct ws_cursor *c, struct ws_record *out, size_t *payload)
{
	int last_id = -1;

	while (ws_cur_left(c) > *payload) {
		uint8_t id = ws_cur_u8(c);

		if (id < WS_REC_MAX_BLOCKS) {
			struct ws_block *b = &out->blocks[out->nblocks];

			if (id <= last_id)
				return "block ids out of order";
			last_id = b->id = id;
			const char *wrong = parse_block(c, b, out->nblocks ? b - 1 : NULL);

			if (wrong)
				return wrong;
			out->nblocks++;
			*payload += (size_t)b->data_len + b->img_len;
		} else if (id == ID_SHORT || id == ID_LONG) {
			out->main_len = id == ID_SHORT ? ws_cur_u8(c) : ws_cur_u32(c);
			*payload += out->main_len;
			return NULL; /* always the last header */
		} else if (id == ID_ORIGIN) {
			out->origin = ws_cur_u16(c);
		} else if (id == ID_TOPLEVEL) {
			out->toplevel_xid = ws_cur_u32(c);
		} else {
			return "unknown header id";
		}
	}
	return NULL;
}

int
ws_record_parse(const struct ws_rec *rec, struct ws_record *out, struct ws_err *err)
{
	struct ws_cursor c = {rec->data + WS_REC_HDR_SIZE, rec->data + rec->tot_len, false};
	size_t payload = 0;

	out->rec = rec;
	out->toplevel_xid = 0;
	out->origin = 0;
	out->main_len = 0;
	out->nblocks = 0;
	const char *wrong = rec->tot_len < WS_REC_HDR_SIZE ? "record too short"
	                                                   : parse_headers(&c, out, &payload);

	if (!wrong && (c.bad || (size_t)(c.end - c.p) != payload))
		wrong = "lengths do not add up to the record's";
	if (wrong)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": %s", WS_LSN_ARG(rec->start), wrong);
	const uint8_t *p = c.p;

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

const struct ws_block *
ws_record_block(const struct ws_record *r, uint8_t id)
{
	for (int i = 0; i < r->nblocks; i++)
		if (r->blocks[i].id == id)
			return &r->blocks[i];
	return NULL;
}
