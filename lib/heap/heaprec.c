/* Bodies of heap and heap2 records (access/heapam_xlog.h).  What is of no interest to a decoder of
 * rows (locks, pruning, freezing, visibility) is recognised and left alone. */
#include <string.h>

#include "heap-int.h"

/* rmgr heap, info & 0x70 */
#define OP_INSERT     0x00
#define OP_DELETE     0x10
#define OP_UPDATE     0x20
#define OP_TRUNCATE   0x30
#define OP_HOT_UPDATE 0x40
#define OP_CONFIRM    0x50
/* rmgr heap2 */
#define OP2_MULTI_INSERT 0x50
#define INIT_PAGE        0x80

#define TUPLE_HDR 5u /* xl_heap_header: infomask2, infomask, hoff */

int
ws_tuple_from_page(const uint8_t *p, size_t len, struct ws_tuple *t)
{
	if (len < WS_TUPLE_HDR_SIZE || len > UINT32_MAX)
		return -1;
	t->infomask2 = ws_le16(p + 18);
	t->infomask = ws_le16(p + 20);
	t->hoff = p[22];
	t->body = p + WS_TUPLE_HDR_SIZE;
	t->len = (uint32_t)len - WS_TUPLE_HDR_SIZE;
	return t->hoff < WS_TUPLE_HDR_SIZE || t->hoff > len ? -1 : 0;
}

/* A tuple as records hold it: 5 bytes of header, then what follows the fixed header on a page. */
static int
tuple(const uint8_t *p, size_t len, struct ws_tuple *t)
{
	if (!p || len < TUPLE_HDR)
		return -1;
	t->infomask2 = ws_le16(p);
	t->infomask = ws_le16(p + 2);
	t->hoff = p[4];
	t->body = p + TUPLE_HDR;
	t->len = (uint32_t)(len - TUPLE_HDR);
	return t->hoff < WS_TUPLE_HDR_SIZE || t->hoff - WS_TUPLE_HDR_SIZE > t->len ? -1 : 0;
}

static uint16_t
map(uint8_t flags, const uint16_t *bits)
{
	uint16_t out = 0;

	for (int i = 0; i < 8; i++)
		if (flags >> i & 1)
			out |= bits[i];
	return out;
}

static int
parse_insert(const struct ws_record *r, const struct ws_block *b, struct ws_heaprec *h)
{
	static const uint16_t bits[8] = {[1] = WS_HR_LAST_IN_MULTI, [2] = WS_HR_SPECULATIVE, [3] = WS_HR_NEW, [4] = WS_HR_TOAST};

	h->op = WS_HEAP_INSERT;
	if (r->main_len < 3)
		return -1;
	h->off = ws_le16(r->main);
	h->flags |= map(r->main[2], bits);
	return h->flags & WS_HR_NEW ? tuple(b->data, b->data_len, &h->new_) : 0;
}

static int
parse_multi(const struct ws_record *r, const struct ws_block *b, struct ws_heaprec *h)
{
	static const uint16_t bits[8] = {[1] = WS_HR_LAST_IN_MULTI, [2] = WS_HR_SPECULATIVE, [3] = WS_HR_NEW, [4] = WS_HR_TOAST};

	h->op = WS_HEAP_MULTI_INSERT;
	if (r->main_len < 4)
		return -1;
	h->flags |= map(r->main[0], bits);
	h->ntuples = ws_le16(r->main + 2);
	if (!(h->flags & WS_HR_INIT_PAGE)) {
		if (r->main_len < 4 + 2u * h->ntuples)
			return -1;
		h->multi_offs = r->main + 4;
		if (h->ntuples)
			h->off = ws_le16(h->multi_offs);
	}
	if (h->flags & WS_HR_NEW) {
		if (!b->data)
			return -1;
		h->multi = b->data;
		h->multi_len = b->data_len;
	}
	return 0;
}

static int
parse_delete(const struct ws_record *r, struct ws_heaprec *h)
{
	static const uint16_t bits[8] = {[1] = WS_HR_OLD_FULL, [2] = WS_HR_OLD_KEY, [3] = WS_HR_SUPER, [4] = WS_HR_PARTITION_MOVE};

	h->op = WS_HEAP_DELETE;
	if (r->main_len < 8)
		return -1;
	h->off = ws_le16(r->main + 4);
	h->flags |= map(r->main[7], bits);
	if (h->flags & (WS_HR_OLD_FULL | WS_HR_OLD_KEY))
		return tuple(r->main + 8, r->main_len - 8, &h->old);
	return 0;
}

static int
parse_update(const struct ws_record *r, const struct ws_block *b, struct ws_heaprec *h)
{
	static const uint16_t bits[8] = {[2] = WS_HR_OLD_FULL, [3] = WS_HR_OLD_KEY, [4] = WS_HR_NEW,
	                                 [5] = WS_HR_DELTA, [6] = WS_HR_DELTA};
	const struct ws_block *old = ws_record_block(r, 1);

	h->op = WS_HEAP_UPDATE;
	if (r->main_len < 14)
		return -1;
	h->old_off = ws_le16(r->main + 4);
	h->off = ws_le16(r->main + 12);
	h->flags |= map(r->main[7], bits);
	/* Block 1 is the old page when that is another one; with 18 it can also be a map's page. */
	h->old_blkno = old && old->fork == 0 ? old->blkno : b->blkno;
	if (h->flags & (WS_HR_OLD_FULL | WS_HR_OLD_KEY) &&
	    tuple(r->main + 14, r->main_len - 14, &h->old) != 0)
		return -1;
	if (h->flags & WS_HR_DELTA)
		h->flags &= (uint16_t)~WS_HR_NEW;
	return h->flags & WS_HR_NEW ? tuple(b->data, b->data_len, &h->new_) : 0;
}

static int
parse_truncate(const struct ws_record *r, struct ws_heaprec *h)
{
	static const uint16_t bits[8] = {WS_HR_CASCADE, WS_HR_RESTART_SEQS};

	h->op = WS_HEAP_TRUNCATE;
	if (r->main_len < 12)
		return -1;
	h->truncate_db = ws_le32(r->main);
	h->noids = ws_le32(r->main + 4);
	h->flags |= map(r->main[8], bits);
	h->oids = r->main + 12;
	return h->noids > (r->main_len - 12) / 4 ? -1 : 0;
}

static int
parse(const struct ws_record *r, const struct ws_block *b, struct ws_heaprec *h)
{
	uint8_t op = r->rec->info & 0x70;

	if (r->rec->rmid == WS_RM_HEAP2)
		return parse_multi(r, b, h);
	switch (op) {
	case OP_INSERT:
		return parse_insert(r, b, h);
	case OP_DELETE:
		return parse_delete(r, h);
	case OP_UPDATE:
	case OP_HOT_UPDATE:
		return parse_update(r, b, h);
	default: /* OP_CONFIRM */
		h->op = WS_HEAP_CONFIRM;
		h->off = r->main_len >= 2 ? ws_le16(r->main) : 0;
		return r->main_len >= 2 ? 0 : -1;
	}
}

int
ws_heaprec_parse(const struct ws_record *r, struct ws_heaprec *out, struct ws_err *err)
{
	const struct ws_rec *rec = r->rec;
	uint8_t op = rec->info & 0x70;
	const struct ws_block *b;

	if (rec->rmid == WS_RM_HEAP2 ? op != OP2_MULTI_INSERT : rec->rmid != WS_RM_HEAP || op > OP_CONFIRM)
		return 0;
	memset(out, 0, sizeof *out);
	if (rec->rmid == WS_RM_HEAP && op == OP_TRUNCATE) {
		if (parse_truncate(r, out) != 0)
			goto bad;
		return 1;
	}
	b = ws_record_block(r, 0);
	if (!b)
		goto bad;
	out->loc = b->loc;
	out->blkno = b->blkno;
	if (rec->info & INIT_PAGE)
		out->flags |= WS_HR_INIT_PAGE;
	if (parse(r, b, out) != 0)
		goto bad;
	return 1;
bad:
	return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": malformed heap record (info %02X, %u bytes)",
	                 WS_LSN_ARG(rec->start), rec->info, rec->tot_len);
}

ws_oid
ws_heaprec_oid(const struct ws_heaprec *h, uint32_t i)
{
	return ws_le32(h->oids + 4 * (size_t)i);
}

/* xl_multi_insert_tuple: 2-aligned in the block's data: length of what follows the header,
 * infomask2, infomask, hoff. */
int
ws_heap_multi_next(struct ws_heap_multi *m, struct ws_tuple *t, uint16_t *off, struct ws_err *err)
{
	const struct ws_heaprec *h = m->rec;
	size_t at = (size_t)(m->at - h->multi), len;

	if (m->next == h->ntuples) {
		if (h->ntuples && at != h->multi_len)
			goto bad;
		return 0;
	}
	at = (at + 1) & ~(size_t)1;
	if (at > h->multi_len || h->multi_len - at < 2 + TUPLE_HDR)
		goto bad;
	len = ws_le16(h->multi + at) + TUPLE_HDR;
	at += 2;
	if (h->multi_len - at < len || tuple(h->multi + at, len, t) != 0)
		goto bad;
	if (off)
		*off = h->multi_offs ? ws_le16(h->multi_offs + 2 * (size_t)m->next) : (uint16_t)(m->next + 1);
	m->at = h->multi + at + len;
	m->next++;
	return 1;
bad:
	return ws_err_op(err, "wal_corrupt", "multi-insert of %u tuples: malformed tuple %u", h->ntuples, m->next + 1u);
}

int
ws_toast_chunk_parse(const struct ws_tuple *t, struct ws_toast_chunk *c, struct ws_err *err)
{
	size_t skip = (size_t)t->hoff - WS_TUPLE_HDR_SIZE;
	struct ws_varlena v;

	/* No NULLs, three attributes; chunk_data follows two integers, so it is aligned. */
	if (WS_TUPLE_NATTS(t) != 3 || t->infomask & 1 || skip > t->len || t->len - skip < 9)
		goto bad;
	const uint8_t *p = t->body + skip;

	if (ws_varlena_parse(p + 8, t->len - skip - 8, &v) != 0 || v.kind != WS_VAR_PLAIN)
		goto bad;
	c->id = ws_le32(p);
	c->seq = (int32_t)ws_le32(p + 4);
	c->data = v.data;
	c->len = v.len;
	return 0;
bad:
	return ws_err_op(err, "corrupt_tuple", "malformed TOAST chunk of %u bytes", t->len);
}
