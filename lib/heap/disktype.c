/* Codecs of the types that need no file of their own: how their bytes on disk become values. */
#include <stdio.h>
#include <string.h>

#include "heap-int.h"

static void
set_text(const struct ws_codec_in *in, struct ws_value *v, const char *s, size_t n)
{
	v->p = ws_arena_dup(in->arena, s, n);
	v->len = (uint32_t)n;
}

/* The fixed-width ones: whoever calls has checked that n is the type's length. */

WS_CODEC(ws_read_bool)
{
	(void)in, (void)n;
	v->i = *p != 0;
	return 0;
}

WS_CODEC(ws_read_int2)
{
	(void)in, (void)n;
	v->i = (int16_t)ws_le16(p);
	return 0;
}

WS_CODEC(ws_read_int4)
{
	(void)in, (void)n;
	v->i = (int32_t)ws_le32(p);
	return 0;
}

WS_CODEC(ws_read_int8)
{
	(void)in, (void)n;
	v->i = (int64_t)ws_le64(p);
	return 0;
}

WS_CODEC(ws_read_oid)
{
	(void)in, (void)n;
	v->i = ws_le32(p);
	return 0;
}

WS_CODEC(ws_read_float4)
{
	(void)in, (void)n;
	v->i = 0;
	memcpy(&v->f4, p, 4);
	if (v->f4 != v->f4)
		ws_value_set_nan(v);
	return 0;
}

WS_CODEC(ws_read_float8)
{
	(void)in, (void)n;
	memcpy(&v->f8, p, 8);
	if (v->f8 != v->f8)
		ws_value_set_nan(v);
	return 0;
}

/* text and its like, bytea, uuid: the bytes as they are. */
WS_CODEC(ws_read_bytes)
{
	(void)in;
	v->p = p;
	v->len = v->kind == WS_K_UUID ? 0 : n;
	return 0;
}

/* utils/adt/char.c: charout (since 16: bytes above 127 as \ooo). */
WS_CODEC(ws_read_char)
{
	char s[8];

	(void)n;
	if (*p & 0x80)
		set_text(in, v, s, (size_t)sprintf(s, "\\%03o", *p));
	else {
		v->p = p;
		v->len = *p != 0;
	}
	return 0;
}

WS_CODEC(ws_read_name)
{
	(void)in;
	v->p = p;
	v->len = (uint32_t)strnlen((const char *)p, n);
	return 0;
}

/* ---- interval: time int64, day int32, month int32 (datetime.c: EncodeInterval) ---- */

struct interval_text {
	char *o;
	bool is_zero, is_before;
};

static void
put_part(struct interval_text *t, int32_t value, const char *unit)
{
	if (value == 0)
		return;
	t->o += sprintf(t->o, "%s%s%d %s%s", t->is_zero ? "" : " ", t->is_before && value > 0 ? "+" : "",
	                value, unit, value != 1 ? "s" : "");
	/* A field's sign counts for the next one only. */
	t->is_before = value < 0;
	t->is_zero = false;
}

WS_CODEC(ws_read_interval)
{
	int64_t time = (int64_t)ws_le64(p);
	int32_t day = (int32_t)ws_le32(p + 8), month = (int32_t)ws_le32(p + 12);
	char s[160];
	struct interval_text t = {s, true, false};

	(void)n;
	/* Since 17; in 16 these two are the largest and smallest of intervals, far outside of use. */
	if (time == INT64_MAX && day == INT32_MAX && month == INT32_MAX) {
		set_text(in, v, "infinity", 8);
		return 0;
	}
	if (time == INT64_MIN && day == INT32_MIN && month == INT32_MIN) {
		set_text(in, v, "-infinity", 9);
		return 0;
	}
	put_part(&t, month / 12, "year");
	put_part(&t, month % 12, "mon");
	put_part(&t, day, "day");
	if (t.is_zero || time) {
		t.o += sprintf(t.o, "%s%s", t.is_zero ? "" : " ", time < 0 ? "-" : t.is_before ? "+" : "");
		t.o = ws_time_put(t.o, (int64_t)(time < 0 ? 0 - (uint64_t)time : (uint64_t)time));
	}
	set_text(in, v, s, (size_t)(t.o - s));
	return 0;
}

/* time int64, zone int32 in seconds west of Greenwich (datetime.c: EncodeTimezone). */
WS_CODEC(ws_read_timetz)
{
	int64_t time = (int64_t)ws_le64(p);
	int32_t zone = (int32_t)ws_le32(p + 8);
	char s[96], *o;

	(void)n;
	if (time < 0 || time > 86400000000 || zone <= -86400 || zone >= 86400)
		return -1;
	o = ws_time_put(s, time);
	*o++ = zone <= 0 ? '+' : '-';
	zone = zone < 0 ? -zone : zone;
	o += sprintf(o, "%02d", zone / 3600);
	if (zone % 3600)
		o += sprintf(o, ":%02d", zone / 60 % 60);
	if (zone % 60)
		o += sprintf(o, ":%02d", zone % 60);
	set_text(in, v, s, (size_t)(o - s));
	return 0;
}

/* ---- inet, cidr: family, bits, address (port/inet_net_ntop.c) ---- */

static char *
put_ipv4(char *o, const uint8_t *a)
{
	return o + sprintf(o, "%u.%u.%u.%u", a[0], a[1], a[2], a[3]);
}

/* The longest run of zero words, of at least two; the first of equals. */
static void
longest_zeros(const unsigned *w, int *base, int *len)
{
	*base = -1;
	*len = 1;
	for (int i = 0; i < 8; i++) {
		int n = 0;

		while (i + n < 8 && w[i + n] == 0)
			n++;
		if (n > *len) {
			*base = i;
			*len = n;
		}
		i += n;
	}
}

static char *
put_ipv6(char *o, const uint8_t *a)
{
	unsigned w[8];
	int base, len;

	for (int i = 0; i < 8; i++)
		w[i] = (unsigned)a[2 * i] << 8 | a[2 * i + 1];
	longest_zeros(w, &base, &len);
	for (int i = 0; i < 8; i++) {
		if (base >= 0 && i >= base && i < base + len) {
			if (i == base)
				*o++ = ':';
			continue;
		}
		if (i)
			*o++ = ':';
		/* An IPv4 address in an IPv6 one. */
		if (i == 6 && base == 0 && (len == 6 || (len == 5 && w[5] == 0xffff)))
			return put_ipv4(o, a + 12);
		o += sprintf(o, "%x", w[i]);
	}
	if (base >= 0 && base + len == 8)
		*o++ = ':';
	return o;
}

static int
read_address(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, bool cidr, struct ws_value *v)
{
	char s[80], *o;
	bool v4 = n == 6 && p[0] == 2, v6 = n == 18 && p[0] == 3;
	unsigned max = v4 ? 32 : 128;

	if ((!v4 && !v6) || p[1] > max)
		return -1;
	o = v4 ? put_ipv4(s, p + 2) : put_ipv6(s, p + 2);
	if (cidr || p[1] != max)
		o += sprintf(o, "/%u", p[1]);
	set_text(in, v, s, (size_t)(o - s));
	return 0;
}

WS_CODEC(ws_read_inet)
{
	return read_address(in, p, n, false, v);
}

WS_CODEC(ws_read_cidr)
{
	return read_address(in, p, n, true, v);
}

/* ---- enum: the label's oid ---- */

WS_CODEC(ws_read_enum)
{
	const struct ws_type *t = in->type->enum_;
	ws_oid oid = ws_le32(p);
	int lo = 0, hi = t->nlabels;

	(void)n;
	/* Labels made with the type have ascending oids; ALTER TYPE can put others in between. */
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (t->labels[mid].oid < oid)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == t->nlabels || t->labels[lo].oid != oid)
		for (lo = 0; lo < t->nlabels && t->labels[lo].oid != oid; lo++)
			;
	if (lo == t->nlabels)
		return -1;
	v->p = (const uint8_t *)t->labels[lo].label;
	v->len = (uint32_t)strlen(t->labels[lo].label);
	return 0;
}
