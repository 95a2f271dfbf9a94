/* Arrays on disk (utils/array.h): ndim, offset of the data (0 without NULLs), element type,
 * lengths, lower bounds, [bitmap, bit set = not NULL], elements.  Offsets and alignment count from
 * the varlena's 4-byte header, which is not among the bytes given here. */
#include <string.h>

#include "heap-int.h"

struct disk_array {
	size_t size; /* of the datum */
	int ndim;
	uint32_t dims[WS_ARRAY_MAX_DIM];
	int32_t lbounds[WS_ARRAY_MAX_DIM];
	uint32_t nelems;
	const uint8_t *bitmap;
	size_t at; /* offset of the next element */
};

static int
parse(const uint8_t *p, uint32_t n, struct disk_array *a)
{
	if (n < 12)
		return -1;
	uint32_t ndim = ws_le32(p), dataoff = ws_le32(p + 4);
	uint64_t nelems = ndim ? 1 : 0, most = (uint64_t)n * 8;

	if (ndim > WS_ARRAY_MAX_DIM || n - 12 < 8 * ndim)
		return -1;
	if (most > WS_ARRAY_MAX_ELEMS)
		most = WS_ARRAY_MAX_ELEMS;
	a->ndim = (int)ndim;
	a->size = (size_t)n + WS_VARHDR;
	for (uint32_t i = 0; i < ndim; i++) {
		a->dims[i] = ws_le32(p + 12 + 4 * i);
		a->lbounds[i] = (int32_t)ws_le32(p + 12 + 4 * ndim + 4 * i);
		if (a->dims[i] && nelems > most / a->dims[i])
			return -1;
		nelems *= a->dims[i];
	}
	a->nelems = (uint32_t)nelems;
	size_t end = WS_VARHDR + 12 + 8 * (size_t)ndim;

	a->bitmap = NULL;
	if (dataoff) {
		size_t bytes = ((size_t)a->nelems + 7) / 8;

		if (end + bytes > a->size || dataoff < end + bytes || dataoff > a->size)
			return -1;
		a->bitmap = p + end - WS_VARHDR;
		a->at = dataoff;
	} else {
		a->at = (end + 7) & ~(size_t)7;
		if (nelems && a->at > a->size)
			return -1;
	}
	return 0;
}

/* Appends the element: in the form of an array value, which holds no arrays. */
static int
put_element(const struct ws_codec_in *in, const struct ws_heaptype *t, const uint8_t *p, uint32_t n)
{
	const struct ws_codec_in inner = {t, in->arena, in->text, in->stack, in->level + 1};
	struct ws_value e = {.state = WS_V_VALUE, .kind = (uint8_t)t->kind};
	struct ws_buf *out = in->level;

	if (t->codec->read(&inner, p, n, &e) != 0)
		return -1;
	if (t->kind != WS_K_ARRAY) {
		ws_value_put(out, &e);
		return 0;
	}
	size_t at = out->len;

	ws_buf_put32(out, 0);
	ws_value_text(&e, out);
	ws_store32(out->data + at, (uint32_t)(out->len - at - 4));
	return 0;
}

WS_CODEC(ws_read_array)
{
	const struct ws_heaptype *t = in->type->sub;
	enum ws_kind kind = t->kind == WS_K_ARRAY ? WS_K_OTHER : t->kind;
	struct ws_buf *out = in->level;
	struct disk_array a;
	const uint8_t *q;
	uint32_t len;

	if (parse(p, n, &a) != 0)
		return -1;
	if (a.nelems == 0)
		a.ndim = 0;
	size_t head = 2 + 8 * (size_t)a.ndim, nulls = ((size_t)a.nelems + 7) / 8;

	out->len = 0;
	ws_buf_reserve(out, head + nulls);
	ws_array_head(out->data, kind, a.ndim, a.dims, a.lbounds);
	memset(out->data + head, 0, nulls);
	out->len = head + nulls;
	for (uint32_t i = 0; i < a.nelems; i++) {
		if (a.bitmap && !(a.bitmap[i / 8] >> (i % 8) & 1)) {
			out->data[head + i / 8] |= (uint8_t)(1u << (i % 8));
			continue;
		}
		if (ws_inner_next(in, p, n, &a.at, t->len, t->mask, &q, &len) != 0 ||
			put_element(in, t, q, len) != 0)
			return -1;
		if (out->len > WS_VALUE_MAX)
			return -1;
	}
	ws_codec_done(in, out, v);
	return 0;
}

/* An array whose delimiter is no comma (of boxes) is its text. */
WS_CODEC(ws_read_array_text)
{
	struct ws_value a = {.state = WS_V_VALUE, .kind = WS_K_ARRAY};

	if (ws_read_array(in, p, n, &a) != 0)
		return -1;
	in->level->len = 0;
	ws_array_text_delim(&a, in->type->delim, in->level);
	ws_codec_done(in, in->level, v);
	return 0;
}

/* int2vector, oidvector (utils/adt/int.c: int2vectorout): their own text, numbers and blanks. */
static int
read_vector(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, unsigned width,
			struct ws_value *v)
{
	struct disk_array a;

	if (parse(p, n, &a) != 0 || a.bitmap || a.ndim > 1)
		return -1;
	if (a.nelems && ((size_t)n + WS_VARHDR - a.at) / width < a.nelems)
		return -1;
	in->text->len = 0;
	for (uint32_t i = 0; i < a.nelems; i++) {
		const uint8_t *e = p + (a.at - WS_VARHDR) + (size_t)i * width;

		if (i)
			ws_buf_putc(in->text, ' ');
		if (width == 2)
			ws_buf_printf(in->text, "%d", (int16_t)ws_le16(e));
		else
			ws_buf_printf(in->text, "%u", ws_le32(e));
	}
	ws_codec_done(in, in->text, v);
	return 0;
}

WS_CODEC(ws_read_vector2)
{
	return read_vector(in, p, n, 2, v);
}

WS_CODEC(ws_read_vector4)
{
	return read_vector(in, p, n, 4, v);
}
