/* Changes of pg_class as WAL shows them: did a command give a relation a certain file?
 *
 * An invalidation record that names a table and a transient one can mean that they exchanged files,
 * or just that both were touched (a foreign key between them).  The update of the table's row in
 * pg_class tells: it is logged a few records before the invalidation, as a difference to the old
 * row (access/heap/heapam.c: log_heap_update), whole, or in the page's image. */
#include <string.h>

#include "pgclass.h"
#include "ws/cursor.h"

#define UPDATE          0x20
#define HOT_UPDATE      0x40
#define PREFIX_FROM_OLD 0x20
#define SUFFIX_FROM_OLD 0x40
#define TUPLE_HDR       5u
#define OFF_OID         0u  /* in pg_class's row, 16 to 18 (catalog/pg_class.h) */
#define OFF_RELFILENODE 88u
#define RECORDS_MAX     200000 /* looked at on the way back */

/* Bytes [at, at + n) of a row; true when what is known of the field says value, or may. */
static bool
field_is(const uint8_t *p, size_t at, size_t n, size_t field, uint32_t value, bool *known)
{
	uint8_t want[4];

	ws_store32(want, value);
	*known = false;
	for (size_t i = 0; i < 4; i++) {
		if (field + i < at || field + i >= at + n)
			continue;
		*known = true;
		if (p[field + i - at] != want[i])
			return false;
	}
	return true;
}

static bool
row_sets(const uint8_t *p, size_t at, size_t n, ws_oid rel, ws_oid file)
{
	bool known;

	if (!field_is(p, at, n, OFF_OID, rel, &known))
		return false;
	return field_is(p, at, n, OFF_RELFILENODE, file, &known) && known;
}

/* The row is in the page's image. */
static bool
image_sets(const struct ws_block *b, uint16_t off, ws_oid rel, ws_oid file)
{
	uint8_t page[WS_PAGE_SIZE];
	const uint8_t *row;
	size_t n;

	return ws_fpi_row(b, off, page, &row, &n) && row_sets(row, 0, n, rel, file);
}

bool
ws_pgclass_sets(const struct ws_record *r, ws_oid rel, ws_oid file)
{
	const struct ws_block *b = ws_record_block(r, 0);
	uint8_t op = r->rec->info & 0x70;
	size_t prefix = 0;

	if (r->rec->rmid != WS_RM_HEAP || (op != UPDATE && op != HOT_UPDATE) || !b || r->main_len < 14)
		return false;
	if (!b->data)
		return b->img && image_sets(b, ws_le16(r->main + 12), rel, file);
	struct ws_cursor c = ws_cursor(b->data, b->data_len);

	if (r->main[7] & PREFIX_FROM_OLD)
		prefix = ws_cur_u16(&c);
	if (r->main[7] & SUFFIX_FROM_OLD)
		ws_cur_skip(&c, 2);
	const uint8_t *h = ws_cur_bytes(&c, TUPLE_HDR);

	/* The NULL bitmap is always there whole; the prefix is one of the columns. */
	if (!h || h[4] < WS_TUPLE_HDR_SIZE)
		return false;
	ws_cur_skip(&c, h[4] - WS_TUPLE_HDR_SIZE);
	return !c.bad && row_sets(c.p, prefix, ws_cur_left(&c), rel, file);
}

int
ws_pgclass_find(struct ws_posread *rd, const struct ws_pgclass *where, ws_oid rel, ws_oid file,
                struct ws_err *err)
{
	ws_lsn at = where->to;
	ws_xid xid;

	if (ws_posread_rec(rd, at, err) != 0)
		return -1;
	xid = rd->rec.xid;
	for (long n = 0; n < RECORDS_MAX; n++) {
		struct ws_locator loc;
		struct ws_record r;

		at = rd->rec.prev;
		if (at <= where->from || at < where->oldest)
			return 0;
		if (ws_posread_rec(rd, at, err) != 0)
			return -1;
		if (rd->rec.xid != xid || rd->rec.rmid != WS_RM_HEAP ||
		    !ws_rec_locator(rd->rec.data, rd->rec.tot_len, &loc) || loc.db != where->db ||
		    (loc.rel != where->class_before && loc.rel != where->class_after))
			continue;
		if (ws_record_parse(&rd->rec, &r, err) != 0)
			return -1;
		if (ws_pgclass_sets(&r, rel, file))
			return 1;
	}
	return 2;
}
