/* Values: kinds, wire form, text form.  Dates and times are in value-time.c, floats in
 * value-float.c, arrays in value-array.c. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ws/cursor.h"
#include "value-int.h"

static const struct {
	const char *name;
	int8_t width;
} kinds[WS_K_COUNT] = {
#define WS_KIND(id, sym, name, width) [id] = {name, width},
#include "ws/kind.def"
#undef WS_KIND
};

const char *
ws_kind_name(enum ws_kind k)
{
	return (unsigned)k < WS_K_COUNT && kinds[k].name ? kinds[k].name : "unknown";
}

int
ws_kind_width(enum ws_kind k)
{
	return (unsigned)k < WS_K_COUNT && kinds[k].name ? kinds[k].width : 0;
}

/* ---- wire ---- */

void
ws_value_put(struct ws_buf *b, const struct ws_value *v)
{
	int w = kinds[v->kind].width;

	if (w < 0) {
		ws_buf_reserve(b, (size_t)v->len + 4);
		ws_store32(b->data + b->len, v->len);
		if (v->len)
			memcpy(b->data + b->len + 4, v->p, v->len);
		b->len += (size_t)v->len + 4;
		return;
	}
	ws_buf_reserve(b, 16);
	uint8_t *at = b->data + b->len;

	switch (v->kind) {
	case WS_K_UUID:
		memcpy(at, v->p, 16);
		break;
	case WS_K_FLOAT4:
		memcpy(at, &v->f4, 4);
		break;
	case WS_K_FLOAT8:
		memcpy(at, &v->f8, 8);
		break;
	default: {
		uint64_t i = (uint64_t)v->i;

		memcpy(at, &i, 8); /* the low w bytes count */
	}
	}
	b->len += (size_t)w;
}

int
ws_value_get(enum ws_kind kind, const uint8_t **at, const uint8_t *end, struct ws_value *v)
{
	if ((unsigned)kind >= WS_K_COUNT || !kinds[kind].name)
		return -1;
	size_t left = (size_t)(end - *at), w;
	const uint8_t *p = *at;

	v->state = WS_V_VALUE;
	v->kind = (uint8_t)kind;
	v->len = 0;
	if (kinds[kind].width < 0) {
		if (left < 4 || left - 4 < (w = ws_le32(p)))
			return -1;
		v->len = (uint32_t)w;
		v->p = p + 4;
		*at = p + 4 + w;
		return 0;
	}
	w = (size_t)kinds[kind].width;
	if (left < w)
		return -1;
	*at = p + w;
	switch (kind) {
	case WS_K_UUID:
		v->p = p;
		break;
	case WS_K_FLOAT4:
		v->i = 0;
		memcpy(&v->f4, p, 4);
		break;
	case WS_K_FLOAT8:
		memcpy(&v->f8, p, 8);
		break;
	case WS_K_BOOL:
		if (*p > 1)
			return -1;
		v->i = *p;
		break;
	case WS_K_OID:
		v->i = ws_le32(p);
		break;
	default:
		v->i = w == 2 ? (int16_t)ws_le16(p) : w == 4 ? (int32_t)ws_le32(p) : (int64_t)ws_le64(p);
	}
	return 0;
}

/* ---- text ---- */

static void
put_hex(struct ws_buf *out, const uint8_t *p, size_t n)
{
	static const char hex[] = "0123456789abcdef";

	ws_buf_reserve(out, n * 2);
	for (size_t i = 0; i < n; i++) {
		out->data[out->len++] = (uint8_t)hex[p[i] >> 4];
		out->data[out->len++] = (uint8_t)hex[p[i] & 15];
	}
}

static void
put_int(struct ws_buf *out, int64_t v)
{
	char tmp[24], *p = tmp + sizeof tmp;
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do
		*--p = (char)('0' + u % 10);
	while ((u /= 10));
	if (v < 0)
		*--p = '-';
	ws_buf_put(out, p, (size_t)(tmp + sizeof tmp - p));
}

static void
put_uuid(struct ws_buf *out, const uint8_t *p)
{
	static const uint8_t groups[] = {4, 2, 2, 2, 6};

	for (size_t i = 0; i < sizeof groups; p += groups[i++]) {
		if (i)
			ws_buf_putc(out, '-');
		put_hex(out, p, groups[i]);
	}
}

void
ws_value_text(const struct ws_value *v, struct ws_buf *out)
{
	char *o;

	switch ((enum ws_kind)v->kind) {
	case WS_K_BOOL:
		ws_buf_putc(out, v->i ? 't' : 'f');
		return;
	case WS_K_INT2:
	case WS_K_INT4:
	case WS_K_INT8:
	case WS_K_OID:
		put_int(out, v->i);
		return;
	case WS_K_UUID:
		put_uuid(out, v->p);
		return;
	case WS_K_BYTES:
	case WS_K_UNSUPPORTED:
		ws_buf_puts(out, "\\x");
		put_hex(out, v->p, v->len);
		return;
	case WS_K_NUMERIC:
	case WS_K_TEXT:
	case WS_K_JSON:
	case WS_K_OTHER:
		ws_buf_put(out, v->p, v->len);
		return;
	case WS_K_ARRAY:
		ws_array_text_delim(v, ',', out);
		return;
	default:
		break;
	}
	ws_buf_reserve(out, WS_TEXT_MAX);
	o = (char *)out->data + out->len;
	switch (v->kind) {
	case WS_K_FLOAT4:
		out->len += ws_float4_text(o, v->f4);
		break;
	case WS_K_FLOAT8:
		out->len += ws_float8_text(o, v->f8);
		break;
	case WS_K_DATE:
		out->len += ws_date_text(o, (int32_t)v->i);
		break;
	case WS_K_TIME:
		out->len += ws_time_text(o, v->i);
		break;
	case WS_K_TIMESTAMP:
	case WS_K_TIMESTAMPTZ:
		out->len += ws_timestamp_text(o, v->i, v->kind == WS_K_TIMESTAMPTZ);
		break;
	}
}

/* ---- from text ---- */

static int
parse_int(const char *s, size_t n, int64_t min, int64_t max, int64_t *out)
{
	bool neg = n && *s == '-';
	uint64_t v = 0;

	s += neg;
	n -= neg;
	if (n < 1 || n > 19)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	if (v > (uint64_t)INT64_MAX + neg)
		return -1;
	*out = neg ? (int64_t)(0 - v) : (int64_t)v;
	return *out < min || *out > max ? -1 : 0;
}

/* strtod knows forms that PostgreSQL never prints (hexadecimal, nan(...)): the text is checked
 * first.  It is copied because it need not end in a NUL. */
static int
parse_float(const char *s, size_t n, bool four, struct ws_value *v)
{
	char tmp[64], *end;

	if (n < 1 || n >= sizeof tmp)
		return -1;
	memcpy(tmp, s, n);
	tmp[n] = 0;
	bool named = !strcmp(tmp, "NaN") || !strcmp(tmp, "Infinity") || !strcmp(tmp, "-Infinity");

	if (!named && strspn(tmp, "0123456789+-.e") != n)
		return -1;
	errno = 0;
	if (four) {
		v->i = 0;
		v->f4 = strtof(tmp, &end);
	} else
		v->f8 = strtod(tmp, &end);
	if (end != tmp + n)
		return -1;
	if (!named && (four ? isinf(v->f4) : isinf(v->f8)))
		return -1;
	if (!strcmp(tmp, "NaN"))
		ws_value_set_nan(v);
	return 0;
}

void
ws_value_set_nan(struct ws_value *v)
{
	static const uint32_t nan4 = 0x7fc00000u;
	static const uint64_t nan8 = 0x7ff8000000000000ull;

	if (v->kind == WS_K_FLOAT4)
		memcpy(&v->f4, &nan4, 4);
	else
		memcpy(&v->f8, &nan8, 8);
}

static bool
is_numeric(const char *s, size_t n)
{
	const char *end = s + n;
	size_t digits = 0;

	if ((n == 3 && !memcmp(s, "NaN", 3)) || (n == 8 && !memcmp(s, "Infinity", 8)) ||
	    (n == 9 && !memcmp(s, "-Infinity", 9)))
		return true;
	if (s < end && *s == '-')
		s++;
	for (; s < end && *s >= '0' && *s <= '9'; s++)
		digits++;
	if (!digits)
		return false;
	if (s == end)
		return true;
	if (*s++ != '.' || s == end)
		return false;
	while (s < end && *s >= '0' && *s <= '9')
		s++;
	return s == end;
}

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* n hex digits, n even, into n / 2 bytes. */
static int
parse_hex(const char *s, size_t n, uint8_t *out)
{
	for (size_t i = 0; i < n; i += 2) {
		int h = hex_digit(s[i]), l = hex_digit(s[i + 1]);

		if (h < 0 || l < 0)
			return -1;
		out[i / 2] = (uint8_t)(h << 4 | l);
	}
	return 0;
}

static int
parse_bytes(const char *s, size_t n, struct ws_arena *a, struct ws_value *v)
{
	if (n < 2 || n % 2 || s[0] != '\\' || s[1] != 'x')
		return -1;
	uint8_t *p = ws_arena_alloc(a, n / 2);

	v->p = p;
	v->len = (uint32_t)(n / 2 - 1);
	return parse_hex(s + 2, n - 2, p);
}

static int
parse_uuid(const char *s, size_t n, struct ws_arena *a, struct ws_value *v)
{
	static const uint8_t groups[] = {8, 4, 4, 4, 12};
	uint8_t *p = ws_arena_alloc(a, 16);

	v->p = p;
	if (n != 36)
		return -1;
	for (size_t i = 0; i < sizeof groups; i++) {
		if (i && *s++ != '-')
			return -1;
		if (parse_hex(s, groups[i], p) != 0)
			return -1;
		s += groups[i];
		p += groups[i] / 2;
	}
	return 0;
}

static int
parse(enum ws_kind kind, const char *s, size_t n, struct ws_arena *a, struct ws_value *v)
{
	switch (kind) {
	case WS_K_BOOL:
		v->i = n == 1 && *s == 't';
		return n == 1 && (*s == 't' || *s == 'f') ? 0 : -1;
	case WS_K_INT2:
		return parse_int(s, n, INT16_MIN, INT16_MAX, &v->i);
	case WS_K_INT4:
		return parse_int(s, n, INT32_MIN, INT32_MAX, &v->i);
	case WS_K_INT8:
		return parse_int(s, n, INT64_MIN, INT64_MAX, &v->i);
	case WS_K_OID:
		return parse_int(s, n, 0, UINT32_MAX, &v->i);
	case WS_K_FLOAT4:
	case WS_K_FLOAT8:
		return parse_float(s, n, kind == WS_K_FLOAT4, v);
	case WS_K_DATE:
		return ws_date_parse(s, n, &v->i);
	case WS_K_TIME:
		return ws_time_parse(s, n, &v->i);
	case WS_K_TIMESTAMP:
	case WS_K_TIMESTAMPTZ:
		return ws_timestamp_parse(s, n, kind == WS_K_TIMESTAMPTZ, &v->i);
	case WS_K_UUID:
		return parse_uuid(s, n, a, v);
	case WS_K_BYTES:
		return parse_bytes(s, n, a, v);
	case WS_K_NUMERIC:
		if (!is_numeric(s, n))
			return -1;
		/* fall through */
	case WS_K_TEXT:
	case WS_K_JSON:
	case WS_K_OTHER:
		v->p = ws_arena_dup(a, s, n);
		v->len = (uint32_t)n;
		return 0;
	default:
		return -1;
	}
}

int
ws_value_from_text(enum ws_kind kind, enum ws_kind elem, const char *s, size_t n, struct ws_arena *a,
                   struct ws_value *v, struct ws_err *err)
{
	v->state = WS_V_VALUE;
	v->kind = (uint8_t)kind;
	v->len = 0;
	v->i = 0;
	if (n > WS_VALUE_MAX)
		return ws_err_op(err, "bad_value", "a value of %zu bytes is too long", n);
	if (kind == WS_K_ARRAY)
		return ws_array_from_text(elem, s, n, a, v, err);
	if (parse(kind, s, n, a, v) != 0)
		return ws_err_op(err, "bad_value", "not the text of a value of kind %s: \"%.*s\"%s",
		                 ws_kind_name(kind), n > 100 ? 100 : (int)n, s, n > 100 ? "..." : "");
	return 0;
}
