/* Native columns: NULLs, policies, arrays, and the bytes of a block; see lib/ch/column.h. */
#include <stdlib.h>

#include "lib/ch/conv.h"

/* ---- arrays ---- */

static int
array_level(struct ch_col *c, const struct ws_array *arr, int level, const uint8_t **at,
            uint32_t *index, bool clamp)
{
	struct ch_col *e = c->elem;
	struct ws_err err;

	for (uint32_t i = 0; i < arr->dims[level]; i++) {
		if (level + 1 < arr->ndim) {
			if (array_level(e, arr, level + 1, at, index, clamp) != 0)
				return -1;
			continue;
		}
		struct ws_value v;
		uint64_t policy = 0;

		if (ws_array_next(arr, (*index)++, at, &v, &err) != 0)
			return -1;
		if (v.state == WS_V_VALUE && e->put(e, &v, clamp) == 0) {
			if (e->type->nullable)
				ws_buf_putc(&e->nulls, 0);
			e->rows++;
		} else if (v.state == WS_V_VALUE && e->unfit == WS_UNFIT_NULL && e->type->nullable) {
			e->nulled++;
			ch_col_add_default(e);
		} else if (v.state == WS_V_VALUE || ch_col_add(e, &v, &policy) != 0) {
			return -1;
		}
	}
	ws_store64(conv_room(&c->data, 8), e->rows);
	c->data.len += 8;
	c->rows++;
	return 0;
}

/* Cuts a column back to the rows it had: an array that does not fit leaves nothing behind. */
struct mark {
	uint64_t rows;
	size_t data, nulls;
};

static void
mark(const struct ch_col *c, struct mark *m)
{
	for (; c; c = c->elem, m++)
		*m = (struct mark){c->rows, c->data.len, c->nulls.len};
}

static void
cut_back(struct ch_col *c, const struct mark *m)
{
	for (; c; c = c->elem, m++) {
		c->rows = m->rows;
		c->data.len = m->data;
		c->nulls.len = m->nulls;
	}
}

static int
put_array(struct ch_col *c, const struct ws_value *v, bool clamp)
{
	struct ws_array arr;
	struct ws_err err;
	struct mark marks[20];
	uint32_t index = 0;
	int depth = 0;

	for (const struct ch_col *x = c; x->elem; x = x->elem)
		depth++;
	if (ws_array_parse(v->p, v->len, &arr, &err) != 0)
		return -1;
	if (arr.ndim == 0) {
		ws_store64(conv_room(&c->data, 8), c->elem->rows);
		c->data.len += 8;
		return 0;
	}
	if (arr.ndim != depth)
		return -1;
	for (int i = 0; i < arr.ndim; i++)
		if (arr.lbounds[i] != 1 && !clamp)
			return -1;
	const uint8_t *at = arr.data;

	mark(c, marks);
	if (array_level(c, &arr, 0, &at, &index, clamp) != 0) {
		cut_back(c, marks);
		return -1;
	}
	c->rows--; /* ch_col_add counts it */
	return 0;
}

ch_put_fn
ch_put_find(enum ws_kind kind, enum ws_kind elem, const struct ch_type *t)
{
	ch_put_fn f;

	if (t->base == CH_MAP)
		return ch_put_map(kind, t);

	if (t->base == CH_ARRAY) {
		const struct ch_type *e = t->elem;

		while (e->base == CH_ARRAY)
			e = e->elem;
		if (kind != WS_K_ARRAY || elem == WS_K_ARRAY || e->base == CH_MAP)
			return NULL;
		return ch_put_find(elem, 0, e) ? put_array : NULL;
	}
	if ((f = ch_put_number(kind, t)) || (f = ch_put_time(kind, t)))
		return f;
	return ch_put_text(kind, t);
}

enum ch_fast
ch_put_fast(enum ws_kind kind, const struct ch_type *t)
{
	switch (kind) {
	case WS_K_BOOL:
		return t->base == CH_BOOL || (t->base == CH_UINT && t->width == 1) ? CH_FAST_1 : CH_SLOW;
	case WS_K_INT2:
		return t->base == CH_INT && t->width == 2 ? CH_FAST_2 : CH_SLOW;
	case WS_K_INT4:
		return t->base == CH_INT && t->width == 4 ? CH_FAST_4 : CH_SLOW;
	case WS_K_OID:
		return t->base == CH_UINT && t->width == 4 ? CH_FAST_4 : CH_SLOW;
	case WS_K_FLOAT4:
		return t->base == CH_FLOAT && t->width == 4 ? CH_FAST_4 : CH_SLOW;
	case WS_K_INT8:
		return t->base == CH_INT && t->width == 8 ? CH_FAST_8 : CH_SLOW;
	case WS_K_FLOAT8:
		return t->base == CH_FLOAT && t->width == 8 ? CH_FAST_8 : CH_SLOW;
	case WS_K_TEXT:
	case WS_K_OTHER:
	case WS_K_JSON:
	case WS_K_BYTES:
	case WS_K_NUMERIC:
		return t->base == CH_STRING ? CH_FAST_STRING : CH_SLOW;
	case WS_K_TIMESTAMP:
	case WS_K_TIMESTAMPTZ:
		return t->base == CH_DATETIME64 && t->scale == 6 ? CH_FAST_US : CH_SLOW;
	default:
		return CH_SLOW;
	}
}

/* ---- life ---- */

int
ch_col_init(struct ch_col *c, const struct ch_type *t, enum ws_kind kind, enum ws_kind elem,
            const struct ws_route *route, const struct ch_limits *lim)
{
	memset(c, 0, sizeof *c);
	c->type = t;
	c->lim = lim;
	c->unfit = route->unfit;
	c->unsupported = route->unsupported;
	c->null_array_empty = route->null_array == WS_NULL_ARRAY_EMPTY;
	c->put = ch_put_find(kind, elem, t);
	if (!c->put)
		return -1;
	if (t->base == CH_ARRAY) {
		bool inner = t->elem->base == CH_ARRAY;

		c->elem = ws_calloc(1, sizeof *c->elem);
		return ch_col_init(c->elem, t->elem, inner ? kind : elem, inner ? elem : 0, route, lim);
	}
	if (t->base == CH_MAP) {
		/* In the order of the block: offsets, keys, values. */
		c->elem = ws_calloc(1, sizeof *c->elem);
		if (ch_col_init(c->elem, t->elem, WS_K_TEXT, 0, route, lim) != 0)
			return -1;
		c->elem->elem = ws_calloc(1, sizeof *c->elem);
		return ch_col_init(c->elem->elem, t->value, WS_K_TEXT, 0, route, lim);
	}
	return 0;
}

void
ch_col_fini(struct ch_col *c)
{
	if (c->elem) {
		ch_col_fini(c->elem);
		free(c->elem);
	}
	ws_buf_free(&c->data);
	ws_buf_free(&c->nulls);
	c->elem = NULL;
}

void
ch_col_clear(struct ch_col *c)
{
	for (; c; c = c->elem) {
		c->rows = 0;
		c->data.len = c->nulls.len = 0;
	}
}

size_t
ch_col_bytes(const struct ch_col *c)
{
	size_t n = 0;

	for (; c; c = c->elem)
		n += c->data.len + c->nulls.len;
	return n;
}

size_t
ch_col_held(const struct ch_col *c)
{
	size_t n = 0;

	for (; c; c = c->elem)
		n += c->data.cap + c->nulls.cap;
	return n;
}

/* ---- rows ---- */

void
ch_col_add_default(struct ch_col *c)
{
	const struct ch_type *t = c->type;

	if (t->nullable)
		ws_buf_putc(&c->nulls, 1);
	if (t->base == CH_ARRAY || t->base == CH_MAP) {
		ws_store64(conv_room(&c->data, 8), c->elem->rows);
		c->data.len += 8;
	} else if (t->base == CH_JSON) {
		conv_string(&c->data, "{}", 2);
	} else if (t->width == 0) {
		conv_string(&c->data, "", 0);
	} else {
		uint8_t *o = conv_room(&c->data, t->width);

		memset(o, 0, t->width);
		if (t->base == CH_ENUM)
			memcpy(o, &t->first, t->width); /* 0 may be no label */
		c->data.len += t->width;
	}
	c->rows++;
}

int
ch_col_add(struct ch_col *c, const struct ws_value *v, uint64_t *policy)
{
	bool nullable = c->type->nullable;

	if (v->state == WS_V_VALUE) {
		int rc = c->put(c, v, false);

		/* Elements that an array's policy made NULL. */
		if (c->type->base == CH_ARRAY)
			for (struct ch_col *e = c->elem; e; e = e->elem) {
				*policy += e->nulled;
				e->nulled = 0;
			}

		if (rc != 0 && v->kind == WS_K_UNSUPPORTED && c->unsupported == WS_UNSUP_NULL && nullable) {
			++*policy;
			ch_col_add_default(c);
			return 0;
		}
		if (rc != 0 && c->unfit == WS_UNFIT_CLAMP) {
			++*policy;
			rc = c->put(c, v, true);
		}
		if (rc != 0 && c->unfit == WS_UNFIT_NULL && nullable) {
			++*policy;
			ch_col_add_default(c);
			return 0;
		}
		if (rc != 0)
			return -1;
		if (nullable)
			*conv_room(&c->nulls, 1) = 0, c->nulls.len++;
		c->rows++;
		return 0;
	}
	if (!nullable) {
		if (c->type->base != CH_ARRAY || !c->null_array_empty)
			return -1;
		++*policy;
	}
	ch_col_add_default(c);
	return 0;
}

/* ---- the block ---- */

void
ch_varint(struct ws_buf *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		ws_buf_putc(b, (uint8_t)(v | 0x80));
	ws_buf_putc(b, (uint8_t)v);
}

void
ch_col_head(const struct ch_col *c, const char *name, struct ws_buf *out)
{
	size_t n = strlen(name), t = strlen(c->type->wire);

	ch_varint(out, n);
	ws_buf_put(out, name, n);
	ch_varint(out, t);
	ws_buf_put(out, c->type->wire, t);
	if (c->type->base == CH_JSON)
		ws_buf_put64(out, 1); /* values follow as Strings */
}

int
ch_col_pieces(const struct ch_col *c, struct ch_piece *out, int max)
{
	int n = 0;

	for (; c && n + 2 <= max; c = c->elem) {
		/* An Array: offsets, then its elements; else the mask, then the values. */
		if (c->nulls.len)
			out[n++] = (struct ch_piece){c->nulls.data, c->nulls.len};
		if (c->data.len)
			out[n++] = (struct ch_piece){c->data.data, c->data.len};
	}
	return n;
}
