/* Booleans, integers, floats and numeric into ClickHouse numbers; see lib/ch/column.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/ch/conv.h"

/* ---- integers ---- */

/* The hot ones: same width, every value fits. */
#define COPY(name, bytes)                                                                          \
	static int name(struct ch_col *c, const struct ws_value *v, bool clamp)                        \
	{                                                                                              \
		(void)clamp;                                                                               \
		memcpy(conv_room(&c->data, bytes), &v->i, bytes);                                          \
		c->data.len += bytes;                                                                      \
		return 0;                                                                                  \
	}
COPY(copy1, 1)
COPY(copy2, 2)
COPY(copy4, 4)
COPY(copy8, 8)

static int
put_uuid(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	uint8_t *o = conv_room(&c->data, 16);

	(void)clamp;
	/* Two little-endian halves, the high one first. */
	ws_store64(o, __builtin_bswap64(ws_le64(v->p)));
	ws_store64(o + 8, __builtin_bswap64(ws_le64(v->p + 8)));
	c->data.len += 16;
	return 0;
}

/* Any integer into any integer type: range checked, sign extended. */
static int
put_int(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	unsigned w = c->type->width;
	bool is_signed = c->type->base == CH_INT;
	int64_t i = v->i, lo = INT64_MIN, hi = INT64_MAX;

	if (w < 8) {
		lo = is_signed ? -(INT64_C(1) << (w * 8 - 1)) : 0;
		hi = is_signed ? (INT64_C(1) << (w * 8 - 1)) - 1 : (INT64_C(1) << (w * 8)) - 1;
	} else if (!is_signed) {
		lo = 0;
	}
	if (i < lo || i > hi) {
		if (!clamp)
			return -1;
		i = i < lo ? lo : hi;
	}
	uint8_t *o = conv_room(&c->data, w);

	if (w > 8)
		memset(o, i < 0 ? 0xff : 0, w);
	memcpy(o, &i, w < 8 ? w : 8);
	c->data.len += w;
	return 0;
}

static int
int_to_decimal(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	char s[24];
	int n = snprintf(s, sizeof s, "%lld", (long long)v->i);
	const struct ch_type *t = c->type;

	if (ch_decimal((uint8_t *)s, (size_t)n, t->width, t->precision, t->scale, clamp, conv_room(&c->data, t->width)) != 0)
		return -1;
	c->data.len += t->width;
	return 0;
}

/* ---- floats ---- */

static int
add_double(struct ch_col *c, double d)
{
	unsigned w = c->type->width;
	float f = (float)d;

	memcpy(conv_room(&c->data, w), w == 4 ? (void *)&f : (void *)&d, w);
	c->data.len += w;
	return 0;
}

static int
int_to_float(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	double d = (double)v->i;

	if (c->type->width == 4)
		d = (float)v->i;
	/* 2^63 as a double cannot go back into an integer. */
	if (!clamp && (d >= 9223372036854775808.0 || (int64_t)d != v->i))
		return -1;
	return add_double(c, d);
}

static int
float4_to_float8(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	(void)clamp;
	return add_double(c, v->f4);
}

static int
float8_to_float4(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	double d = v->f8;

	if (!isnan(d) && (double)(float)d != d) {
		if (!clamp)
			return -1;
		/* Not infinity for what is finite. */
		if (isinf((float)d))
			d = d < 0 ? -3.40282346638528859812e+38 : 3.40282346638528859812e+38;
	}
	return add_double(c, d);
}

/* ---- numeric ---- */

static int
numeric_to_decimal(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	const struct ch_type *t = c->type;
	uint8_t *o = conv_room(&c->data, t->width);

	if (ch_decimal(v->p, v->len, t->width, t->precision, t->scale, clamp, o) != 0)
		return -1;
	c->data.len += t->width;
	return 0;
}

/* Digits that an integer type of that many bytes surely holds are not enough: int64 holds some
 * numbers of 19 digits.  So the value is made in 256 bits and its upper bytes are looked at. */
static int
numeric_to_int(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	unsigned w = c->type->width;
	bool is_signed = c->type->base == CH_INT;
	uint8_t x[32], fill;
	bool neg, fits = true;

	if (ch_decimal(v->p, v->len, 32, 76, 0, clamp, x) != 0)
		return -1;
	neg = x[31] & 0x80;
	fill = neg ? 0xff : 0;
	for (unsigned i = w; i < 32; i++)
		fits = fits && x[i] == fill;
	if (is_signed ? !!(x[w - 1] & 0x80) != neg : neg)
		fits = false;
	if (!fits) {
		if (!clamp)
			return -1;
		memset(x, neg && is_signed ? 0 : neg ? 0 : 0xff, w);
		if (is_signed)
			x[w - 1] = neg ? 0x80 : 0x7f;
	}
	memcpy(conv_room(&c->data, w), x, w);
	c->data.len += w;
	return 0;
}

/* A float holds few decimals exactly: only a clamp may round. */
static int
numeric_to_float(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	char s[512];

	if (v->len && v->p[0] != 'N' && v->p[0] != 'I' && !(v->len > 1 && v->p[1] == 'I') && !clamp)
		return -1;
	if (v->len >= sizeof s)
		return -1;
	memcpy(s, v->p, v->len);
	s[v->len] = 0;
	return add_double(c, strtod(s, NULL));
}

ch_put_fn
ch_put_number(enum ws_kind kind, const struct ch_type *t)
{
	bool same_int = (kind == WS_K_INT2 && t->width == 2) || (kind == WS_K_INT4 && t->width == 4) ||
	                (kind == WS_K_INT8 && t->width == 8);

	switch (kind) {
	case WS_K_BOOL:
		return t->base == CH_BOOL || (t->base == CH_UINT && t->width == 1) ? copy1 :
		       t->base == CH_INT || t->base == CH_UINT ? put_int : NULL;
	case WS_K_INT2:
	case WS_K_INT4:
	case WS_K_INT8:
	case WS_K_OID:
		if ((t->base == CH_INT && same_int) || (kind == WS_K_OID && t->base == CH_UINT && t->width == 4))
			return t->width == 2 ? copy2 : t->width == 4 ? copy4 : copy8;
		return t->base == CH_INT || t->base == CH_UINT ? put_int :
		       t->base == CH_DECIMAL ? int_to_decimal : t->base == CH_FLOAT ? int_to_float : NULL;
	case WS_K_FLOAT4:
		return t->base != CH_FLOAT ? NULL : t->width == 4 ? copy4 : float4_to_float8;
	case WS_K_FLOAT8:
		return t->base != CH_FLOAT ? NULL : t->width == 8 ? copy8 : float8_to_float4;
	case WS_K_NUMERIC:
		return t->base == CH_DECIMAL ? numeric_to_decimal :
		       t->base == CH_INT || t->base == CH_UINT ? numeric_to_int :
		       t->base == CH_FLOAT ? numeric_to_float : NULL;
	case WS_K_UUID:
		return t->base == CH_UUID ? put_uuid : NULL;
	default:
		return NULL;
	}
}
