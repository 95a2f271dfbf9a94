/* numeric on disk (utils/adt/numeric.c): a header of 2 (short) or 4 bytes (long), then digits to
 * the base of 10000, each int16, the first of which counts 10000^weight. */
#include <string.h>

#include "heap-int.h"

struct numeric {
	const char *special;
	bool neg;
	int weight, dscale;
	uint32_t ndigits;
	const uint8_t *digits;
};

static int
parse(const uint8_t *p, uint32_t n, struct numeric *x)
{
	if (n < 2)
		return -1;
	uint16_t h = ws_le16(p);
	uint32_t head = 2;

	memset(x, 0, sizeof *x);
	if ((h & 0xC000) == 0xC000) {
		switch (h & 0xF000) {
		case 0xC000:
			x->special = "NaN";
			return 0;
		case 0xD000:
			x->special = "Infinity";
			return 0;
		case 0xF000:
			x->special = "-Infinity";
			return 0;
		default:
			return -1;
		}
	}
	if (h & 0x8000) {
		x->neg = h & 0x2000;
		x->dscale = (h & 0x1F80) >> 7;
		x->weight = (h & 0x3F) - (h & 0x40); /* 7 bits with sign */
	} else {
		if (n < 4)
			return -1;
		x->neg = (h & 0xC000) == 0x4000;
		x->dscale = h & 0x3FFF;
		x->weight = (int16_t)ws_le16(p + 2);
		head = 4;
	}
	if ((n - head) % 2)
		return -1;
	x->ndigits = (n - head) / 2;
	x->digits = p + head;
	return 0;
}

/* Digit i, zero outside of what is stored; -1 when it is none. */
static int
digit(const struct numeric *x, int i)
{
	if (i < 0 || (uint32_t)i >= x->ndigits)
		return 0;
	uint16_t d = ws_le16(x->digits + 2 * (size_t)i);

	return d < 10000 ? d : -1;
}

static uint8_t *
put4(uint8_t *o, int d)
{
	o[0] = (uint8_t)('0' + d / 1000);
	o[1] = (uint8_t)('0' + d / 100 % 10);
	o[2] = (uint8_t)('0' + d / 10 % 10);
	o[3] = (uint8_t)('0' + d % 10);
	return o + 4;
}

/* What the text needs, the last group of digits whole. */
static size_t
room(const struct numeric *x)
{
	return (x->weight < 0 ? 0 : (size_t)x->weight + 1) * 4 + (size_t)x->dscale + 8;
}

static int
put(const struct numeric *x, uint8_t *out, size_t *len)
{
	uint8_t *o = out;
	int d = 0, v;

	if (x->neg)
		*o++ = '-';
	if (x->weight < 0) {
		*o++ = '0';
		d = x->weight + 1;
	}
	for (; d <= x->weight; d++) {
		if ((v = digit(x, d)) < 0)
			return -1;
		if (d > 0) {
			o = put4(o, v);
			continue;
		}
		/* The first group without its leading zeros. */
		uint8_t tmp[4];
		int skip = v < 10 ? 3 : v < 100 ? 2 : v < 1000 ? 1 : 0;

		put4(tmp, v);
		memcpy(o, tmp + skip, 4 - (size_t)skip);
		o += 4 - skip;
	}
	if (x->dscale) {
		*o++ = '.';
		uint8_t *end = o + x->dscale;

		for (; o < end; d++) {
			if ((v = digit(x, d)) < 0)
				return -1;
			o = put4(o, v);
		}
		o = end;
	}
	*len = (size_t)(o - out);
	return 0;
}

int
ws_read_numeric(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, struct ws_value *v)
{
	struct numeric x;
	size_t len;

	if (parse(p, n, &x) != 0)
		return -1;
	if (x.special) {
		v->p = (const uint8_t *)x.special;
		v->len = (uint32_t)strlen(x.special);
		return 0;
	}
	uint8_t *o = ws_arena_alloc(in->arena, room(&x));

	v->p = o;
	if (put(&x, o, &len) != 0)
		return -1;
	v->len = (uint32_t)len;
	return 0;
}

int
ws_numeric_text(const uint8_t *p, uint32_t n, struct ws_buf *out)
{
	struct numeric x;
	size_t len;

	if (parse(p, n, &x) != 0)
		return -1;
	if (x.special) {
		ws_buf_puts(out, x.special);
		return 0;
	}
	ws_buf_reserve(out, room(&x));
	if (put(&x, out->data + out->len, &len) != 0)
		return -1;
	out->len += len;
	return 0;
}
