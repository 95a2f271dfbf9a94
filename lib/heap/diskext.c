/* Types of contributed modules on disk: hstore, ltree, lquery, ltxtquery, cube, pgvector's vector.
 */
#include <string.h>

#include "heap-int.h"

/* ---- hstore (contrib/hstore/hstore.h): count, two entries a pair (ends of key and value), texts
 * ---- */

#define HS_NEW   0x80000000u
#define HS_COUNT 0x0fffffffu
#define HS_FIRST 0x80000000u
#define HS_NULL  0x40000000u
#define HS_END   0x3fffffffu

static void
put_escaped(struct ws_buf *out, const uint8_t *p, uint32_t n)
{
	ws_buf_reserve(out, 2 * (size_t)n + 2);
	uint8_t *o = out->data + out->len;

	*o++ = '"';
	for (uint32_t i = 0; i < n; i++) {
		if (p[i] == '"' || p[i] == '\\')
			*o++ = '\\';
		*o++ = p[i];
	}
	*o++ = '"';
	out->len = (size_t)(o - out->data);
}

WS_CODEC(ws_read_hstore)
{
	uint32_t h = n >= 4 ? ws_le32(p) : 0, count = h & HS_COUNT, last = 0;
	struct ws_buf *out = in->text;

	if (!(h & HS_NEW) || count > (n - 4) / 8)
		return -1;
	const uint8_t *entry = p + 4, *str = entry + 8 * (size_t)count;
	uint32_t avail = n - 4 - 8 * count;

	out->len = 0;
	for (uint32_t i = 0; i < 2 * count; i++, entry += 4) {
		uint32_t e = ws_le32(entry), end = e & HS_END, from = e & HS_FIRST ? 0 : last;

		if (end < from || from < last || end > avail)
			return -1;
		last = end;
		if (i && i % 2 == 0)
			ws_buf_puts(out, ", ");
		if (i % 2 && e & HS_NULL)
			ws_buf_puts(out, "NULL");
		else
			put_escaped(out, str + from, end - from);
		if (i % 2 == 0)
			ws_buf_puts(out, "=>");
	}
	ws_codec_done(in, out, v);
	return 0;
}

/* ---- ltree, lquery (contrib/ltree/ltree.h); offsets are those after the varlena header ---- */

#define MAXLEVELS UINT16_MAX

static size_t
align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Number of levels, padding; each level its length and name, 8-aligned. */
WS_CODEC(ws_read_ltree)
{
	uint32_t count = n >= 4 ? ws_le16(p) : UINT32_MAX;
	size_t at = 4;

	if (n < 4)
		return -1;
	in->text->len = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (at > n || n - at < 2 || n - at - 2 < ws_le16(p + at))
			return -1;
		uint32_t len = ws_le16(p + at);

		if (i)
			ws_buf_putc(in->text, '.');
		ws_buf_put(in->text, p + at + 2, len);
		at += align8(len + 2);
	}
	ws_codec_done(in, in->text, v);
	return 0;
}

#define LVAR_ANYEND    0x01
#define LVAR_INCASE    0x02
#define LVAR_SUBLEXEME 0x04
#define LQL_NOT        0x10
#define LQL_COUNT      0x20

static void
put_variant_flags(struct ws_buf *out, unsigned flags)
{
	if (flags & LVAR_SUBLEXEME)
		ws_buf_putc(out, '%');
	if (flags & LVAR_INCASE)
		ws_buf_putc(out, '@');
	if (flags & LVAR_ANYEND)
		ws_buf_putc(out, '*');
}

static void
put_repeats(struct ws_buf *out, unsigned low, unsigned high, bool any)
{
	if (low == high)
		ws_buf_printf(out, "{%u}", low);
	else if (low == 0 && high == MAXLEVELS)
		ws_buf_puts(out, any ? "" : "{,}");
	else if (low == 0)
		ws_buf_printf(out, "{,%u}", high);
	else if (high == MAXLEVELS)
		ws_buf_printf(out, "{%u,}", low);
	else
		ws_buf_printf(out, "{%u,%u}", low, high);
}

/* Variants {val 4, length 2, flag 1, name}, 8-aligned, of which n bytes belong to the level. */
static int
put_variants(struct ws_buf *out, const uint8_t *p, size_t n, unsigned count)
{
	size_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		if (at > n || n - at < 7 || n - at - 7 < ws_le16(p + at + 4))
			return -1;
		uint32_t len = ws_le16(p + at + 4);

		if (i)
			ws_buf_putc(out, '|');
		ws_buf_put(out, p + at + 7, len);
		put_variant_flags(out, p[at + 6]);
		at += 8 + align8(len);
	}
	return 0;
}

/* Head of 12 bytes; levels {totallen, flag, numvar, low, high: u16 each, padding to 16, variants}.
 */
WS_CODEC(ws_read_lquery)
{
	uint32_t count = n >= 12 ? ws_le16(p) : UINT32_MAX;
	struct ws_buf *out = in->text;
	size_t at = 12;

	if (n < 12)
		return -1;
	out->len = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (at > n || n - at < 16)
			return -1;
		const uint8_t *l = p + at;
		size_t total = ws_le16(l);
		unsigned flag = ws_le16(l + 2), nvar = ws_le16(l + 4);

		if (total < 16 || total > n - at)
			return -1;
		if (i)
			ws_buf_putc(out, '.');
		if (nvar && flag & LQL_NOT)
			ws_buf_putc(out, '!');
		if (!nvar)
			ws_buf_putc(out, '*');
		if (put_variants(out, l + 16, total - 16, nvar) != 0)
			return -1;
		if (flag & LQL_COUNT || !nvar)
			put_repeats(out, ws_le16(l + 6), ws_le16(l + 8), !nvar);
		at += align8(total);
	}
	ws_codec_done(in, out, v);
	return 0;
}

/* ---- ltxtquery: count, items of 12 bytes in prefix order as in a tsquery, texts that end in NUL
 * ---- */

#define ITEM 12u
enum { LT_VAL = 2, LT_OPR = 3 };

struct task {
	uint32_t lo, hi; /* items; hi 0: a text */
	bool first;
	const char *text;
};

static void
push(struct ws_buf *stack, struct task t)
{
	ws_buf_put(stack, &t, sizeof t);
}

static int
put_word(const uint8_t *item, const uint8_t *str, uint32_t avail, struct ws_buf *out, size_t *used)
{
	uint32_t at = ws_le16(item + 10), len = item[9];

	if (at > avail || avail - at < len || (*used += len) > avail)
		return -1;
	ws_buf_put(out, str + at, len);
	put_variant_flags(out, item[8]);
	return 0;
}

static int
put_operator(const uint8_t *items, const struct task *t, struct ws_buf *stack, struct ws_buf *out)
{
	const uint8_t *item = items + (size_t)t->lo * ITEM;
	uint32_t op = ws_le32(item + 4), left = ws_le16(item + 2);

	if (t->hi - t->lo < 2)
		return -1;
	if (op == '!') {
		bool group = ws_le16(item + ITEM) == LT_OPR;

		ws_buf_puts(out, group ? "!( " : "!");
		if (group)
			push(stack, (struct task){.text = " )"});
		push(stack, (struct task){.lo = t->lo + 1, .hi = t->hi, .first = group});
		return 0;
	}
	if ((op != '|' && op != '&') || left < 2 || left >= t->hi - t->lo)
		return -1;
	if (op == '|' && !t->first) {
		ws_buf_puts(out, "( ");
		push(stack, (struct task){.text = " )"});
	}
	push(stack, (struct task){.lo = t->lo + 1, .hi = t->lo + left});
	push(stack, (struct task){.text = op == '|' ? " | " : " & "});
	push(stack, (struct task){.lo = t->lo + left, .hi = t->hi});
	return 0;
}

WS_CODEC(ws_read_ltxtquery)
{
	uint32_t count = n >= 4 ? ws_le32(p) : 0;
	const uint8_t *items = p + 4, *str;
	size_t used = 0;
	struct task t;
	int rc = 0;

	if (n < 4 || count == 0 || count > (n - 4) / ITEM)
		return -1;
	str = items + (size_t)count * ITEM;
	in->text->len = in->stack->len = 0;
	push(in->stack, (struct task){.hi = count, .first = true});
	while (rc == 0 && in->stack->len) {
		in->stack->len -= sizeof t;
		memcpy(&t, in->stack->data + in->stack->len, sizeof t);
		const uint8_t *item = items + (size_t)t.lo * ITEM;

		if (t.text)
			ws_buf_puts(in->text, t.text);
		else if (ws_le16(item) == LT_OPR)
			rc = put_operator(items, &t, in->stack, in->text);
		else
			rc = ws_le16(item) == LT_VAL && t.hi == t.lo + 1
					 ? put_word(item, str, n - 4 - count * ITEM, in->text, &used)
					 : -1;
	}
	if (rc == 0)
		ws_codec_done(in, in->text, v);
	return rc;
}

/* ---- cube (contrib/cube/cubedata.h): header, float8s ---- */

#define CUBE_POINT 0x80000000u

static double
float8_at(const uint8_t *p, uint32_t i)
{
	double d;

	memcpy(&d, p + 8 * (size_t)i, sizeof d);
	return d;
}

static void
put_corner(struct ws_buf *out, const uint8_t *p, uint32_t dim)
{
	ws_buf_putc(out, '(');
	for (uint32_t i = 0; i < dim; i++) {
		if (i)
			ws_buf_puts(out, ", ");
		ws_buf_reserve(out, WS_TEXT_MAX);
		out->len += ws_float8_text((char *)out->data + out->len, float8_at(p, i));
	}
	ws_buf_putc(out, ')');
}

WS_CODEC(ws_read_cube)
{
	uint32_t h = n >= 4 ? ws_le32(p) : 0, dim = h & ~CUBE_POINT;
	bool point = h & CUBE_POINT;

	if (n < 4 || dim > (n - 4) / 8 || (uint64_t)dim * (point ? 8 : 16) != n - 4)
		return -1;
	const uint8_t *x = p + 4;

	in->text->len = 0;
	put_corner(in->text, x, dim);
	/* Two equal corners are printed as one; NaN equals nothing. */
	bool same = true;

	for (uint32_t i = 0; !point && i < dim; i++)
		same = same && float8_at(x, i) == float8_at(x, i + dim);
	if (!point && !same) {
		ws_buf_putc(in->text, ',');
		put_corner(in->text, x + 8 * (size_t)dim, dim);
	}
	ws_codec_done(in, in->text, v);
	return 0;
}

/* ---- vector of pgvector (src/vector.h): dimensions, unused, float4s ---- */

WS_CODEC(ws_read_floats)
{
	uint32_t dim = n >= 4 ? ws_le16(p) : UINT32_MAX;

	if (n < 4 || 4 * (uint64_t)dim != n - 4)
		return -1;
	in->text->len = 0;
	ws_buf_putc(in->text, '[');
	for (uint32_t i = 0; i < dim; i++) {
		float f;

		memcpy(&f, p + 4 + 4 * (size_t)i, sizeof f);
		if (i)
			ws_buf_putc(in->text, ',');
		ws_buf_reserve(in->text, WS_TEXT_MAX);
		in->text->len += ws_float4_text((char *)in->text->data + in->text->len, f);
	}
	ws_buf_putc(in->text, ']');
	ws_codec_done(in, in->text, v);
	return 0;
}
