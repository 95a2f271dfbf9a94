/* The common heap record taken apart in one go: one block without an image (and maybe a second
 * without anything), short main data.  Everything else is left to ws_record_parse and
 * ws_heaprec_parse, which define the result: tests/unit/xact-quick.c compares. */
#include "decoder.h"
#include "ws/cursor.h"

/* access/heapam_xlog.h */
#define INSERT     0x00
#define DELETE     0x10
#define UPDATE     0x20
#define HOT_UPDATE 0x40
#define INIT_PAGE  0x80
#define TUPLE_HDR  5u
/* access/xlogrecord.h */
#define SAME_REL    0x80
#define ID_SHORT    255
#define ID_ORIGIN   253
#define ID_TOPLEVEL 252

static bool
tuple(const uint8_t *p, size_t n, struct ws_tuple *t)
{
	if (n < TUPLE_HDR)
		return false;
	t->infomask2 = ws_le16(p);
	t->infomask = ws_le16(p + 2);
	t->hoff = p[4];
	t->body = p + TUPLE_HDR;
	t->len = (uint32_t)(n - TUPLE_HDR);
	return t->hoff >= WS_TUPLE_HDR_SIZE && t->hoff - WS_TUPLE_HDR_SIZE <= t->len;
}

/* Flags of the three records to ours. */
static uint16_t
insert_flags(uint8_t f)
{
	return (uint16_t)((f & 0x02 ? WS_HR_LAST_IN_MULTI : 0) | (f & 0x04 ? WS_HR_SPECULATIVE : 0) |
	                  (f & 0x08 ? WS_HR_NEW : 0) | (f & 0x10 ? WS_HR_TOAST : 0));
}

static uint16_t
delete_flags(uint8_t f)
{
	return (uint16_t)((f & 0x02 ? WS_HR_OLD_FULL : 0) | (f & 0x04 ? WS_HR_OLD_KEY : 0) |
	                  (f & 0x08 ? WS_HR_SUPER : 0) | (f & 0x10 ? WS_HR_PARTITION_MOVE : 0));
}

static uint16_t
update_flags(uint8_t f)
{
	return (uint16_t)((f & 0x04 ? WS_HR_OLD_FULL : 0) | (f & 0x08 ? WS_HR_OLD_KEY : 0) |
	                  (f & 0x10 ? WS_HR_NEW : 0));
}

struct body {
	const uint8_t *main, *data; /* data: block 0's */
	size_t main_len, data_len;
};

/* The headers: block 0 without image, then nothing or block 1 of the same relation with nothing. */
static bool
headers(const struct ws_rec *rec, struct ws_heaprec *h, struct body *b)
{
	const uint8_t *p = rec->data + WS_REC_HDR_SIZE, *end = rec->data + rec->tot_len;

	if (rec->tot_len < WS_REC_HDR_SIZE + 22 || p[0] != 0 ||
	    p[1] & (WS_BKP_HAS_IMAGE | SAME_REL | 0x0F))
		return false;
	b->data_len = ws_le16(p + 2);
	if (!(p[1] & WS_BKP_HAS_DATA) != !b->data_len)
		return false;
	h->loc = (struct ws_locator){ws_le32(p + 4), ws_le32(p + 8), ws_le32(p + 12)};
	h->blkno = h->old_blkno = ws_le32(p + 16);
	p += 20;
	if (*p == 1) {
		if (end - p < 10 || (p[1] & 0xF0) != SAME_REL || p[2] || p[3])
			return false;
		if (!(p[1] & 0x0F))
			h->old_blkno = ws_le32(p + 4);
		p += 8;
	}
	if (*p == ID_ORIGIN)
		p += 3;
	if (p < end && *p == ID_TOPLEVEL)
		p += 5;
	if (end - p < 2 || *p != ID_SHORT)
		return false;
	b->main_len = p[1];
	b->data = p + 2;
	b->main = b->data + b->data_len;
	return (size_t)(end - b->data) == b->data_len + b->main_len;
}

bool
ws_quick_heap(const struct ws_rec *rec, struct ws_heaprec *h)
{
	struct body b;
	uint8_t op = rec->info & 0x70;

	if (rec->rmid != WS_RM_HEAP || !headers(rec, h, &b))
		return false;
	h->flags = rec->info & INIT_PAGE ? WS_HR_INIT_PAGE : 0;
	h->old_off = 0;
	switch (op) {
	case INSERT:
		if (b.main_len < 3)
			return false;
		h->op = WS_HEAP_INSERT;
		h->off = ws_le16(b.main);
		h->old_blkno = 0;
		h->flags |= insert_flags(b.main[2]);
		break;
	case UPDATE:
	case HOT_UPDATE:
		/* 0x60: logged against the old version. */
		if (b.main_len < 14 || b.main[7] & 0x60)
			return false;
		h->op = WS_HEAP_UPDATE;
		h->old_off = ws_le16(b.main + 4);
		h->off = ws_le16(b.main + 12);
		h->flags |= update_flags(b.main[7]);
		if (h->flags & (WS_HR_OLD_FULL | WS_HR_OLD_KEY) &&
		    !tuple(b.main + 14, b.main_len - 14, &h->old))
			return false;
		break;
	case DELETE:
		if (b.main_len < 8)
			return false;
		h->op = WS_HEAP_DELETE;
		h->off = ws_le16(b.main + 4);
		h->old_blkno = 0;
		h->flags |= delete_flags(b.main[7]);
		return !(h->flags & (WS_HR_OLD_FULL | WS_HR_OLD_KEY)) ||
		       tuple(b.main + 8, b.main_len - 8, &h->old);
	default:
		return false;
	}
	return !(h->flags & WS_HR_NEW) || tuple(b.data, b.data_len, &h->new_);
}
