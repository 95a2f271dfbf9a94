/* Dates and times into ClickHouse's; see lib/ch/column.h.  Ranges are the server's own: what it
 * stores beyond them it shows as something else. */
#include "lib/ch/conv.h"

static int64_t
ticks(int scale)
{
	int64_t t = 1;

	while (scale-- > 0)
		t *= 10;
	return t;
}

static int
add_int(struct ch_col *c, int64_t v)
{
	unsigned w = c->type->width;

	memcpy(conv_room(&c->data, w), &v, w);
	c->data.len += w;
	return 0;
}

/* Puts *v into [lo, hi] when that is allowed. */
static int
within(int64_t *v, int64_t lo, int64_t hi, bool clamp)
{
	if (*v >= lo && *v <= hi)
		return 0;
	if (!clamp)
		return -1;
	*v = *v < lo ? lo : hi;
	return 0;
}

static int
put_date(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	int64_t d = v->i + EPOCH_DAYS; /* the infinities fall outside every range */
	bool small = c->type->base == CH_DATE;

	if (within(&d, small ? 0 : c->lim->day_lo, small ? 65535 : c->lim->day_hi, clamp) != 0)
		return -1;
	return add_int(c, d);
}

/* Microseconds since 1970 into DateTime64(p) or DateTime. */
static int
put_us(struct ch_col *c, int64_t us, bool clamp)
{
	int64_t t = us;

	if (c->type->base == CH_DATETIME) {
		int64_t s = us / 1000000 - (us % 1000000 < 0);

		if (s * 1000000 != us && !clamp)
			return -1;
		return within(&s, 0, UINT32_MAX, clamp) != 0 ? -1 : add_int(c, s);
	}
	if (within(&us, c->lim->us_lo, c->lim->us_hi, clamp) != 0)
		return -1;
	if (c->type->scale == 6)
		return add_int(c, us);
	if (c->type->scale < 6) {
		int64_t per = ticks(6 - c->type->scale);

		t = us / per - (us % per < 0);
		return t * per != us && !clamp ? -1 : add_int(c, t);
	}
	if (__builtin_mul_overflow(us, ticks(c->type->scale - 6), &t)) {
		if (!clamp)
			return -1;
		t = us < 0 ? INT64_MIN : INT64_MAX;
	}
	return add_int(c, t);
}

static int
put_timestamp(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	int64_t us;

	if (v->i == WS_TS_INFINITY || v->i == WS_TS_MINUS_INFINITY || __builtin_add_overflow(v->i, EPOCH_US, &us)) {
		if (!clamp)
			return -1;
		us = v->i < 0 ? INT64_MIN : INT64_MAX;
	}
	return put_us(c, us, clamp);
}

static int
date_to_timestamp(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	int64_t us;

	if (__builtin_mul_overflow(v->i + EPOCH_DAYS, DAY_US, &us)) {
		if (!clamp)
			return -1;
		us = v->i < 0 ? INT64_MIN : INT64_MAX;
	}
	return put_us(c, us, clamp);
}

static int
put_time(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	int scale = c->type->base == CH_TIME ? 0 : c->type->scale;

	if (scale >= 6)
		return add_int(c, v->i * ticks(scale - 6));
	int64_t per = ticks(6 - scale);

	return v->i % per && !clamp ? -1 : add_int(c, v->i / per);
}

ch_put_fn
ch_put_time(enum ws_kind kind, const struct ch_type *t)
{
	bool stamp = t->base == CH_DATETIME || t->base == CH_DATETIME64;

	switch (kind) {
	case WS_K_DATE:
		return t->base == CH_DATE || t->base == CH_DATE32 ? put_date : stamp ? date_to_timestamp : NULL;
	case WS_K_TIMESTAMP:
	case WS_K_TIMESTAMPTZ:
		return stamp ? put_timestamp : NULL;
	case WS_K_TIME:
		return t->base == CH_TIME || t->base == CH_TIME64 ? put_time : NULL;
	default:
		return NULL;
	}
}
