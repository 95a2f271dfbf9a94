/* Arrays on disk (utils/array.h): ndim, offset of the data (0 without NULLs), element type,
 * lengths, lower bounds, [bitmap, bit set = not NULL], elements.  Offsets and alignment count from
 * the varlena's 4-byte header, which is not among the bytes given here. */
#include <string.h>

#include "heap-int.h"

#define HDR 4u /* the varlena header */

struct disk_array {
	size_t size;         /* of the datum */
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
	a->size = (size_t)n + HDR;
	for (uint32_t i = 0; i < ndim; i++) {
		a->dims[i] = ws_le32(p + 12 + 4 * i);
		a->lbounds[i] = (int32_t)ws_le32(p + 12 + 4 * ndim + 4 * i);
		if (a->dims[i] && nelems > most / a->dims[i])
			return -1;
		nelems *= a->dims[i];
	}
	a->nelems = (uint32_t)nelems;
	size_t end = HDR + 12 + 8 * (size_t)ndim;

	a->bitmap = NULL;
	if (dataoff) {
		size_t bytes = ((size_t)a->nelems + 7) / 8;

		if (end + bytes > a->size || dataoff < end + bytes || dataoff > a->size)
			return -1;
		a->bitmap = p + end - HDR;
		a->at = dataoff;
	} else {
		a->at = (end + 7) & ~(size_t)7;
		if (nelems && a->at > a->size)
			return -1;
	}
	return 0;
}

/* The bytes of the element at a->at; moves it past. */
static int
element(struct disk_array *a, const uint8_t *p, const struct ws_codec *c, const uint8_t **e, uint32_t *n)
{
	struct ws_varlena v;

	if (c->len > 0) {
		a->at = (a->at + c->mask) & ~(size_t)c->mask;
		if (a->at > a->size || a->size - a->at < (size_t)c->len)
			return -1;
		*e = p + (a->at - HDR);
		*n = (uint32_t)c->len;
		a->at += *n;
		return 0;
	}
	if (a->at >= a->size)
		return -1;
	if (!p[a->at - HDR]) /* padding */
		a->at = (a->at + c->mask) & ~(size_t)c->mask;
	if (a->at >= a->size || ws_varlena_parse(p + (a->at - HDR), a->size - a->at, &v) != 0 ||
	    v.kind != WS_VAR_PLAIN)
		return -1;
	*e = v.data;
	*n = v.len;
	a->at += v.total;
	return 0;
}

WS_CODEC(ws_read_array)
{
	const struct ws_codec *c = in->type->elem_codec;
	struct ws_value e = {.state = WS_V_VALUE, .kind = c->kind};
	struct ws_buf *out = in->array;
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
	ws_array_head(out->data, c->kind, a.ndim, a.dims, a.lbounds);
	memset(out->data + head, 0, nulls);
	out->len = head + nulls;
	for (uint32_t i = 0; i < a.nelems; i++) {
		if (a.bitmap && !(a.bitmap[i / 8] >> (i % 8) & 1)) {
			out->data[head + i / 8] |= (uint8_t)(1u << (i % 8));
			continue;
		}
		e.len = 0;
		if (element(&a, p, c, &q, &len) != 0 || c->read(in, q, len, &e) != 0)
			return -1;
		ws_value_put(out, &e);
		if (out->len > WS_VALUE_MAX)
			return -1;
	}
	ws_codec_done(in, out, v);
	return 0;
}
