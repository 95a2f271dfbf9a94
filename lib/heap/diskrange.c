/* Ranges and multiranges on disk (utils/rangetypes.h, utils/multirangetypes.h).
 *
 * A range: oid of its type, lower bound, upper bound, flags in the last byte.  A multirange: oid,
 * count, for all ranges but the first an item, a byte of flags each, and the bounds, aligned. */
#include "heap-int.h"

#define R_EMPTY   0x01
#define R_LB_INC  0x02
#define R_UB_INC  0x04
#define R_LB_INF  0x08
#define R_UB_INF  0x10
#define R_LB_NULL 0x20
#define R_UB_NULL 0x40

#define SPECIALS "\"\\()[],"

#define ITEM_ISOFF 0x80000000u
#define HEAD       12u /* header, oid, count */

/* t is the range's type; its bounds begin at *at. */
static int
put_range(const struct ws_codec_in *in, const struct ws_heaptype *t, const uint8_t *p, uint32_t n,
		  uint8_t flags, size_t *at, struct ws_buf *out)
{
	const struct ws_heaptype *sub = t->sub;
	const uint8_t *e;
	uint32_t len;

	if (flags & R_EMPTY) {
		ws_buf_puts(out, "empty");
		return 0;
	}
	ws_buf_putc(out, flags & R_LB_INC ? '[' : '(');
	for (int i = 0; i < 2; i++) {
		size_t from = out->len;

		if (i)
			ws_buf_putc(out, ',');
		if (flags & (i ? R_UB_INF | R_UB_NULL : R_LB_INF | R_LB_NULL))
			continue;
		if (ws_inner_next(in, p, n, at, sub->len, sub->mask, &e, &len) != 0 ||
			ws_inner_text(in, sub, e, len, out) != 0)
			return -1;
		ws_inner_quote(out, from + (size_t)i, SPECIALS);
	}
	ws_buf_putc(out, flags & R_UB_INC ? ']' : ')');
	return out->len > WS_VALUE_MAX ? -1 : 0;
}

WS_CODEC(ws_read_range)
{
	size_t at = WS_VARHDR + 4;

	if (n < 5)
		return -1;
	in->level->len = 0;
	/* The flags are none of the bounds' bytes. */
	if (put_range(in, in->type, p, n - 1, p[n - 1], &at, in->level) != 0)
		return -1;
	ws_codec_done(in, in->level, v);
	return 0;
}

WS_CODEC(ws_read_multirange)
{
	const struct ws_heaptype *t = in->type->sub;
	/* The range's own level is not in use: its bounds have the next one. */
	const struct ws_codec_in inner = {t, in->arena, in->text, in->stack, in->level + 1};
	uint32_t count = n >= 8 ? ws_le32(p + 4) : UINT32_MAX;
	struct ws_buf *out = in->level;
	size_t mask = t->sub->mask, off = 0, last = 0;

	if (count > (n - 8) / 5 + 1)
		return -1;
	size_t flags = HEAD + (count ? count - 1 : 0) * (size_t)4,
		   begin = (flags + count + mask) & ~mask;

	out->len = 0;
	ws_buf_putc(out, '{');
	for (uint32_t i = 0; i < count; i++) {
		if (flags + i >= (size_t)n + WS_VARHDR)
			return -1;
		if (i) {
			uint32_t item = ws_le32(p + HEAD - WS_VARHDR + 4 * (size_t)(i - 1));

			/* An offset, or the length of the range before. */
			off = item & ITEM_ISOFF ? item & ~ITEM_ISOFF : off + item;
			ws_buf_putc(out, ',');
		}
		if (off > n)
			return -1;
		size_t at = begin + off;

		/* No byte belongs to two ranges: the work is bounded by the value's size. */
		if (at < last)
			return -1;
		if (put_range(&inner, t, p, n, p[flags + i - WS_VARHDR], &at, out) != 0)
			return -1;
		last = at;
	}
	ws_buf_putc(out, '}');
	ws_codec_done(in, out, v);
	return 0;
}
