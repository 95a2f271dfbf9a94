/* Geometric types on disk: float8s in a row (utils/geo_decls.h), printed as utils/adt/geo_ops.c
 * does. */
#include <string.h>

#include "heap-int.h"

static void
put_number(struct ws_buf *out, const uint8_t *p)
{
	double d;

	memcpy(&d, p, sizeof d);
	ws_buf_reserve(out, WS_TEXT_MAX);
	out->len += ws_float8_text((char *)out->data + out->len, d);
}

static void
put_point(struct ws_buf *out, const uint8_t *p)
{
	ws_buf_putc(out, '(');
	put_number(out, p);
	ws_buf_putc(out, ',');
	put_number(out, p + 8);
	ws_buf_putc(out, ')');
}

static void
put_points(struct ws_buf *out, const uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			ws_buf_putc(out, ',');
		put_point(out, p + 16 * (size_t)i);
	}
}

static int
read_points(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, char open, char close,
			struct ws_value *v)
{
	struct ws_buf *out = in->text;

	out->len = 0;
	if (open)
		ws_buf_putc(out, (uint8_t)open);
	put_points(out, p, n);
	if (close)
		ws_buf_putc(out, (uint8_t)close);
	ws_codec_done(in, out, v);
	return 0;
}

WS_CODEC(ws_read_point)
{
	(void)n;
	return read_points(in, p, 1, 0, 0, v);
}

WS_CODEC(ws_read_lseg)
{
	(void)n;
	return read_points(in, p, 2, '[', ']', v);
}

/* The upper right corner, then the lower left one. */
WS_CODEC(ws_read_box)
{
	(void)n;
	return read_points(in, p, 2, 0, 0, v);
}

/* A, B, C of Ax + By + C = 0. */
WS_CODEC(ws_read_line)
{
	(void)n;
	in->text->len = 0;
	for (unsigned i = 0; i < 3; i++) {
		ws_buf_putc(in->text, i ? ',' : '{');
		put_number(in->text, p + 8 * i);
	}
	ws_buf_putc(in->text, '}');
	ws_codec_done(in, in->text, v);
	return 0;
}

WS_CODEC(ws_read_circle)
{
	(void)n;
	in->text->len = 0;
	ws_buf_putc(in->text, '<');
	put_point(in->text, p);
	ws_buf_putc(in->text, ',');
	put_number(in->text, p + 16);
	ws_buf_putc(in->text, '>');
	ws_codec_done(in, in->text, v);
	return 0;
}

/* Number of points, closed, padding, points. */
WS_CODEC(ws_read_path)
{
	if (n < 12 || (n - 12) % 16 || ws_le32(p) != (n - 12) / 16)
		return -1;
	bool closed = ws_le32(p + 4) != 0;

	return read_points(in, p + 12, (n - 12) / 16, closed ? '(' : '[', closed ? ')' : ']', v);
}

/* Number of points, bounding box, points. */
WS_CODEC(ws_read_polygon)
{
	if (n < 36 || (n - 36) % 16 || ws_le32(p) != (n - 36) / 16)
		return -1;
	return read_points(in, p + 36, (n - 36) / 16, '(', ')', v);
}
