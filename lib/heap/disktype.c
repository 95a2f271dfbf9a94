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

/* cash.c: cash_out with lc_monetary=C, as every session of ours has it: the number of digits and
 * signs is a setting of the server's, not of the value. */
WS_CODEC(ws_read_money)
{
	int64_t m = (int64_t)ws_le64(p);
	uint64_t u = m < 0 ? 0 - (uint64_t)m : (uint64_t)m, whole = u / 100;
	char tmp[48], *o = tmp + sizeof tmp;

	(void)n;
	*--o = (char)('0' + u % 10);
	*--o = (char)('0' + u / 10 % 10);
	*--o = '.';
	for (int digits = 0; digits == 0 || whole; whole /= 10, digits++) {
		if (digits && digits % 3 == 0)
			*--o = ',';
		*--o = (char)('0' + whole % 10);
	}
	*--o = '$';
	if (m < 0)
		*--o = '-';
	set_text(in, v, o, (size_t)(tmp + sizeof tmp - o));
	return 0;
}

/* Block (its upper half first) and line pointer (storage/block.h, utils/adt/tid.c). */
WS_CODEC(ws_read_tid)
{
	char s[32];

	(void)n;
	set_text(
		in, v, s,
		(size_t)sprintf(s, "(%u,%u)", (unsigned)ws_le16(p) << 16 | ws_le16(p + 2), ws_le16(p + 4)));
	return 0;
}

WS_CODEC(ws_read_lsn)
{
	char s[32];

	(void)n;
	set_text(in, v, s, (size_t)sprintf(s, "%X/%X", ws_le32(p + 4), ws_le32(p)));
	return 0;
}

/* 64 bits without a sign: as the number that it is. */
WS_CODEC(ws_read_xid8)
{
	char s[32];

	(void)n;
	set_text(in, v, s, (size_t)sprintf(s, "%llu", (unsigned long long)ws_le64(p)));
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
