/* Composites on disk: a heap tuple whose header has the type instead of transaction ids
 * (access/htup_details.h: DatumTupleFields), printed as utils/adt/rowtypes.c does.
 *
 * The attributes are those of the shape at the value's commit: dropped ones are passed over, those
 * that the value is too old for have their missing value or nothing. */
#include <string.h>

#include "heap-int.h"

#define HASNULL  0x0001u
#define SPECIALS "\"\\(),"

/* Offsets among the bytes after the varlena header: typmod, oid, ctid, infomask2, infomask, hoff,
 * bits. */
#define AT_INFOMASK2 14u
#define AT_INFOMASK  16u
#define AT_HOFF      18u
#define AT_BITS      19u

static int
align_of(char c)
{
	return c == 'c' ? 1 : c == 's' ? 2 : c == 'i' ? 4 : 8;
}

WS_CODEC(ws_read_row)
{
	const struct ws_rel *row = in->type->row;
	struct ws_buf *out = in->level;
	bool first = true;

	if (n < AT_BITS)
		return -1;
	int natts = ws_le16(p + AT_INFOMASK2) & 0x07ff;
	bool hasnull = ws_le16(p + AT_INFOMASK) & HASNULL;
	size_t at = p[AT_HOFF], bits = hasnull ? ((size_t)natts + 7) / 8 : 0;

	if (natts > row->natts || at < AT_BITS + WS_VARHDR + bits || at > (size_t)n + WS_VARHDR)
		return -1;
	out->len = 0;
	ws_buf_putc(out, '(');
	for (int i = 0; i < row->natts; i++) {
		const struct ws_attr *a = &row->attrs[i];
		const struct ws_heaptype *t = &in->type->sub[i];
		bool there = i < natts && !(hasnull && !(p[AT_BITS + (unsigned)i / 8] >> (i % 8) & 1));
		const uint8_t *e;
		uint32_t len;

		if (there &&
			ws_inner_next(in, p, n, &at, a->len, (uint8_t)(align_of(a->align) - 1), &e, &len) != 0)
			return -1;
		if (a->flags & WS_ATT_DROPPED)
			continue;
		if (!first)
			ws_buf_putc(out, ',');
		first = false;
		size_t from = out->len;

		if (there) {
			if (ws_inner_text(in, t, e, len, out) != 0)
				return -1;
		} else if (i >= natts && a->flags & WS_ATT_MISSING && a->missing) {
			ws_buf_puts(out, a->missing);
		} else {
			continue;
		}
		ws_inner_quote(out, from, SPECIALS);
	}
	ws_buf_putc(out, ')');
	if (out->len > WS_VALUE_MAX)
		return -1;
	ws_codec_done(in, out, v);
	return 0;
}
