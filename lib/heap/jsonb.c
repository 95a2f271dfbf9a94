/* jsonb on disk (utils/jsonb.h, utils/adt/jsonb_util.c), printed as PostgreSQL prints it.
 *
 * A container is a header (count and kind), an entry for each element (of an object: all keys, then
 * all values), then the elements' bytes.  An entry gives its element's length or, every so often,
 * the offset of its end.  Ends never go back, so that no byte belongs to two elements: the work
 * is bounded by the value's size whatever the input. */
#include <stdio.h>
#include <string.h>

#include "heap-int.h"

#define COUNT_MASK  0x0FFFFFFFu
#define IS_SCALAR   0x10000000u
#define IS_OBJECT   0x20000000u
#define IS_ARRAY    0x40000000u
#define ENTRY_LEN   0x0FFFFFFFu
#define ENTRY_TYPE  0x70000000u
#define ENTRY_ISOFF 0x80000000u

enum { T_STRING, T_NUMERIC, T_FALSE, T_TRUE, T_NULL, T_CONTAINER };

struct frame {
	const uint8_t *entries, *data;
	uint32_t len;        /* of data */
	uint32_t count, next;
	uint32_t kat, vat;   /* ends of the last key and value read */
	bool object, scalar;
};

/* The bytes of entry i, which starts at *at; moves *at to its end. */
static int
element(const struct frame *f, uint32_t i, uint32_t *at, uint32_t *type, const uint8_t **p, uint32_t *n)
{
	uint32_t e = ws_le32(f->entries + 4 * (size_t)i), start = *at;
	uint64_t end = e & ENTRY_ISOFF ? e & ENTRY_LEN : (uint64_t)start + (e & ENTRY_LEN);

	if (end < start || end > f->len)
		return -1;
	*type = (e & ENTRY_TYPE) >> 28;
	*at = (uint32_t)end;
	/* Numerics and containers are 4-aligned, the padding is part of the element. */
	if (*type == T_NUMERIC || *type == T_CONTAINER) {
		start = (start + 3) & ~3u;
		if (start > end)
			return -1;
	}
	*p = f->data + start;
	*n = (uint32_t)end - start;
	return 0;
}

static int
open_container(const uint8_t *p, uint32_t n, struct frame *f)
{
	uint32_t type, klen;
	const uint8_t *k;

	if (n < 4)
		return -1;
	uint32_t h = ws_le32(p), entries;

	memset(f, 0, sizeof *f);
	f->count = h & COUNT_MASK;
	f->object = h & IS_OBJECT;
	f->scalar = h & IS_SCALAR;
	if (f->object == !!(h & IS_ARRAY) || (f->scalar && (f->object || f->count != 1)))
		return -1;
	entries = f->object ? f->count * 2 : f->count;
	if (f->count > n / 4 || entries > (n - 4) / 4)
		return -1;
	f->entries = p + 4;
	f->data = p + 4 + 4 * (size_t)entries;
	f->len = n - 4 - 4 * entries;
	if (f->object)
		for (uint32_t i = 0; i < f->count; i++)
			if (element(f, i, &f->vat, &type, &k, &klen) != 0 || type != T_STRING)
				return -1;
	return 0;
}

/* utils/adt/json.c: escape_json. */
void
ws_json_quote(struct ws_buf *out, const uint8_t *p, uint32_t n)
{
	ws_buf_reserve(out, (size_t)n * 6 + 2);
	uint8_t *o = out->data + out->len;

	*o++ = '"';
	for (uint32_t i = 0; i < n; i++) {
		uint8_t c = p[i];
		static const char shorts[] = "btn?fr"; /* 8 to 13 */

		if (c == '"' || c == '\\') {
			*o++ = '\\';
			*o++ = c;
		} else if (c >= ' ')
			*o++ = c;
		else if (c >= 8 && c <= 13 && c != 11) {
			*o++ = '\\';
			*o++ = (uint8_t)shorts[c - 8];
		} else {
			static const char hex[] = "0123456789abcdef";

			memcpy(o, "\\u00", 4);
			o[4] = (uint8_t)hex[c >> 4];
			o[5] = (uint8_t)hex[c & 15];
			o += 6;
		}
	}
	*o++ = '"';
	out->len = (size_t)(o - out->data);
}

static int
put_scalar(struct ws_buf *out, uint32_t type, const uint8_t *p, uint32_t n)
{
	struct ws_varlena v;

	switch (type) {
	case T_STRING:
		ws_json_quote(out, p, n);
		return 0;
	case T_NUMERIC:
		if (ws_varlena_parse(p, n, &v) != 0 || v.kind != WS_VAR_PLAIN)
			return -1;
		return ws_numeric_text(v.data, v.len, out);
	case T_FALSE:
		ws_buf_puts(out, "false");
		return 0;
	case T_TRUE:
		ws_buf_puts(out, "true");
		return 0;
	case T_NULL:
		ws_buf_puts(out, "null");
		return 0;
	default:
		return -1;
	}
}

static void
put_bracket(struct ws_buf *out, const struct frame *f, const char *object_array)
{
	if (!f->scalar)
		ws_buf_putc(out, (uint8_t)object_array[f->object ? 0 : 1]);
}

static struct frame *
push(struct ws_buf *stack, const struct frame *f)
{
	ws_buf_put(stack, f, sizeof *f);
	return (struct frame *)(void *)stack->data + stack->len / sizeof *f - 1;
}

/* One step: the next element of the innermost container, or its end. */
static int
step(struct ws_buf *stack, struct ws_buf *out)
{
	struct frame *f = (struct frame *)(void *)stack->data + stack->len / sizeof *f - 1, inner;
	uint32_t type, n;
	const uint8_t *p;

	if (f->next == f->count) {
		put_bracket(out, f, "}]");
		stack->len -= sizeof *f;
		return 0;
	}
	if (f->next)
		ws_buf_puts(out, ", ");
	if (f->object) {
		if (element(f, f->next, &f->kat, &type, &p, &n) != 0)
			return -1;
		ws_json_quote(out, p, n);
		ws_buf_puts(out, ": ");
	}
	if (element(f, f->object ? f->count + f->next : f->next, &f->vat, &type, &p, &n) != 0)
		return -1;
	f->next++;
	if (type != T_CONTAINER)
		return put_scalar(out, type, p, n);
	if (open_container(p, n, &inner) != 0 || inner.scalar)
		return -1;
	put_bracket(out, push(stack, &inner), "{[");
	return 0;
}

int
ws_read_jsonb(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, struct ws_value *v)
{
	struct frame f;

	in->text->len = in->stack->len = 0;
	if (open_container(p, n, &f) != 0)
		return -1;
	put_bracket(in->text, push(in->stack, &f), "{[");
	while (in->stack->len)
		if (step(in->stack, in->text) != 0 || in->text->len > WS_VALUE_MAX)
			return -1;
	ws_codec_done(in, in->text, v);
	return 0;
}
