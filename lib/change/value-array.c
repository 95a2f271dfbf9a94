/* Arrays: the wire form, PostgreSQL's array literals out of it and into it
 * (utils/adt/arrayfuncs.c: array_out, array_in).  In a value the delimiter is always a comma:
 * arrays of types with another one (box) are no arrays but texts in the change stream. */
#include <string.h>
#include <strings.h>

#include "ws/cursor.h"
#include "value-int.h"

static bool
is_element(enum ws_kind k)
{
	return ws_kind_width(k) && k != WS_K_ARRAY && k != WS_K_UNSUPPORTED;
}

int
ws_array_parse(const uint8_t *p, size_t n, struct ws_array *a, struct ws_err *err)
{
	struct ws_cursor c = ws_cursor(p, n);
	uint64_t nelems = 0;

	a->elem = ws_cur_u8(&c);
	a->ndim = ws_cur_u8(&c);
	if (c.bad || a->ndim > WS_ARRAY_MAX_DIM || !is_element(a->elem))
		goto bad;
	for (int i = 0; i < a->ndim; i++) {
		a->dims[i] = ws_cur_u32(&c);
		a->lbounds[i] = (int32_t)ws_cur_u32(&c);
		/* Both factors below 2^32: no overflow. */
		nelems = (i ? nelems : 1) * a->dims[i];
		if (nelems == 0 || nelems > (uint64_t)n * 8 || nelems > WS_ARRAY_MAX_ELEMS)
			goto bad;
	}
	a->nelems = (uint32_t)nelems;
	a->nulls = ws_cur_bytes(&c, (a->nelems + 7) / 8);
	if (c.bad)
		goto bad;
	a->data = c.p;
	a->datalen = ws_cur_left(&c);
	return 0;
bad:
	return ws_err_op(err, "bad_stream", "malformed array value of %zu bytes", n);
}

int
ws_array_next(const struct ws_array *a, uint32_t index, const uint8_t **at, struct ws_value *v,
              struct ws_err *err)
{
	if (a->nulls[index / 8] >> (index % 8) & 1) {
		memset(v, 0, sizeof *v);
		v->kind = (uint8_t)a->elem;
		return 0;
	}
	if (ws_value_get(a->elem, at, a->data + a->datalen, v) != 0)
		return ws_err_op(err, "bad_stream", "array value ends in element %u", index);
	return 0;
}

/* ---- out ---- */

static bool
is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
needs_quotes(const uint8_t *p, size_t n, char delim)
{
	if (n == 0 || (n == 4 && !strncasecmp((const char *)p, "null", 4)))
		return true;
	for (size_t i = 0; i < n; i++)
		if (p[i] == '"' || p[i] == '\\' || p[i] == '{' || p[i] == '}' || p[i] == (uint8_t)delim ||
			is_space(p[i]))
			return true;
	return false;
}

static void
put_element(struct ws_buf *out, const struct ws_value *v, char delim, struct ws_buf *tmp)
{
	if (v->state == WS_V_NULL) {
		ws_buf_puts(out, "NULL");
		return;
	}
	tmp->len = 0;
	ws_value_text(v, tmp);
	if (!needs_quotes(tmp->data, tmp->len, delim)) {
		ws_buf_put(out, tmp->data, tmp->len);
		return;
	}
	ws_buf_reserve(out, tmp->len * 2 + 2);
	uint8_t *o = out->data + out->len;

	*o++ = '"';
	for (size_t i = 0; i < tmp->len; i++) {
		if (tmp->data[i] == '"' || tmp->data[i] == '\\')
			*o++ = '\\';
		*o++ = tmp->data[i];
	}
	*o++ = '"';
	out->len = (size_t)(o - out->data);
}

static void
put_bounds(struct ws_buf *out, const struct ws_array *a)
{
	bool plain = true;

	for (int i = 0; i < a->ndim; i++)
		plain = plain && a->lbounds[i] == 1;
	if (plain)
		return;
	for (int i = 0; i < a->ndim; i++)
		ws_buf_printf(out, "[%d:%lld]", a->lbounds[i], (long long)a->lbounds[i] + a->dims[i] - 1);
	ws_buf_putc(out, '=');
}

/* A malformed value leaves its text incomplete: whoever reads a stream checks with ws_array_parse. */
void
ws_array_text_delim(const struct ws_value *v, char delim, struct ws_buf *out)
{
	struct ws_array a;
	struct ws_value e;
	struct ws_buf tmp = {0};

	if (ws_array_parse(v->p, v->len, &a, NULL) != 0)
		return;
	if (a.ndim == 0) {
		ws_buf_puts(out, "{}");
		return;
	}
	put_bounds(out, &a);
	const uint8_t *at = a.data;
	uint32_t in_dim[WS_ARRAY_MAX_DIM] = {0};

	for (int i = 0; i < a.ndim; i++)
		ws_buf_putc(out, '{');
	for (uint32_t i = 0; i < a.nelems; i++) {
		if (ws_array_next(&a, i, &at, &e, NULL) != 0)
			break;
		put_element(out, &e, delim, &tmp);
		int d = a.ndim - 1;

		while (d >= 0 && ++in_dim[d] == a.dims[d]) {
			in_dim[d--] = 0;
			ws_buf_putc(out, '}');
		}
		if (d < 0)
			break;
		ws_buf_putc(out, (uint8_t)delim);
		for (; d < a.ndim - 1; d++)
			ws_buf_putc(out, '{');
	}
	ws_buf_free(&tmp);
}

/* ---- in ---- */

struct literal {
	const char *p, *end;
	enum ws_kind elem;
	int ndim;
	uint32_t dims[WS_ARRAY_MAX_DIM];
	int32_t lbounds[WS_ARRAY_MAX_DIM];
	uint64_t nelems;
	struct ws_buf nulls, data, tmp;
	struct ws_arena *arena;
};

static int
bad(struct ws_err *err, const char *what)
{
	return ws_err_op(err, "bad_value", "not an array literal: %s", what);
}

static bool
take(struct literal *l, char c)
{
	if (l->p == l->end || *l->p != c)
		return false;
	l->p++;
	return true;
}

static int
bound(struct literal *l, int64_t *v)
{
	bool neg = take(l, '-');
	const char *at = l->p;

	*v = 0;
	for (; l->p < l->end && *l->p >= '0' && *l->p <= '9' && l->p - at < 11; l->p++)
		*v = *v * 10 + (*l->p - '0');
	if (neg)
		*v = -*v;
	return l->p == at || *v < INT32_MIN || *v > INT32_MAX ? -1 : 0;
}

/* [l:u][l:u]...= */
static int
read_bounds(struct literal *l, int *nbounds, uint32_t *want, struct ws_err *err)
{
	int64_t lo, hi;

	*nbounds = 0;
	for (; take(l, '['); (*nbounds)++) {
		if (*nbounds == WS_ARRAY_MAX_DIM || bound(l, &lo) != 0 || !take(l, ':') || bound(l, &hi) != 0 ||
		    !take(l, ']') || hi < lo)
			return bad(err, "bounds");
		l->lbounds[*nbounds] = (int32_t)lo;
		want[*nbounds] = (uint32_t)(hi - lo + 1);
	}
	if (*nbounds && !take(l, '='))
		return bad(err, "bounds");
	return 0;
}

/* One element's text in l->tmp. */
static int
read_text(struct literal *l, bool *quoted, struct ws_err *err)
{
	*quoted = take(l, '"');
	l->tmp.len = 0;
	for (; l->p < l->end; l->p++) {
		char c = *l->p;

		if (*quoted ? c == '"' : c == ',' || c == '}')
			break;
		if (!*quoted && (c == '{' || c == '"'))
			return bad(err, "misplaced character");
		if (c == '\\' && ++l->p == l->end)
			return bad(err, "ends in a backslash");
		ws_buf_putc(&l->tmp, (uint8_t)*l->p);
	}
	if (l->p == l->end || (*quoted && !take(l, '"')))
		return bad(err, "no end");
	if (!*quoted && l->tmp.len == 0)
		return bad(err, "empty element");
	return 0;
}

static int
read_element(struct literal *l, struct ws_err *err)
{
	struct ws_value v;
	bool quoted;

	if (read_text(l, &quoted, err) != 0)
		return -1;
	if (l->nelems % 8 == 0)
		ws_buf_putc(&l->nulls, 0);
	if (!quoted && l->tmp.len == 4 && !strncasecmp((char *)l->tmp.data, "null", 4))
		l->nulls.data[l->nelems / 8] |= (uint8_t)(1u << (l->nelems % 8));
	else {
		if (ws_value_from_text(l->elem, 0, l->tmp.len ? (char *)l->tmp.data : "", l->tmp.len, l->arena,
		                       &v, err) != 0)
			return -1;
		ws_value_put(&l->data, &v);
		if (l->data.len > WS_VALUE_MAX)
			return bad(err, "too long");
	}
	l->nelems++;
	return 0;
}

/* A closing brace at depth d: its count must be that of the first one at this depth. */
static int
close_dim(struct literal *l, int d, uint32_t count, bool *known, struct ws_err *err)
{
	if (known[d] && l->dims[d] != count)
		return bad(err, "sub-arrays of different sizes");
	known[d] = true;
	l->dims[d] = count;
	return 0;
}

static int
read_braces(struct literal *l, struct ws_err *err)
{
	uint32_t count[WS_ARRAY_MAX_DIM] = {0};
	bool known[WS_ARRAY_MAX_DIM] = {false};
	int depth = 0;

	for (;;) {
		if (take(l, '{')) {
			if (depth == WS_ARRAY_MAX_DIM || (l->ndim && depth == l->ndim))
				return bad(err, "nested too deep");
			count[depth++] = 0;
			continue;
		}
		if (!l->ndim)
			l->ndim = depth;
		if (depth != l->ndim)
			return bad(err, "element between sub-arrays");
		if (read_element(l, err) != 0)
			return -1;
		count[depth - 1]++;
		while (depth && take(l, '}')) {
			if (close_dim(l, depth - 1, count[depth - 1], known, err) != 0)
				return -1;
			if (--depth)
				count[depth - 1]++;
		}
		if (!depth)
			return 0;
		if (!take(l, ','))
			return bad(err, "no comma");
	}
}

static int
read_literal(struct literal *l, struct ws_err *err)
{
	uint32_t want[WS_ARRAY_MAX_DIM];
	int nbounds;

	if (l->end - l->p == 2 && !memcmp(l->p, "{}", 2)) {
		l->p = l->end;
		return 0;
	}
	if (read_bounds(l, &nbounds, want, err) != 0)
		return -1;
	if (l->p == l->end || *l->p != '{')
		return bad(err, "no brace");
	if (read_braces(l, err) != 0)
		return -1;
	if (nbounds && (nbounds != l->ndim || memcmp(want, l->dims, sizeof want[0] * (size_t)nbounds) != 0))
		return bad(err, "bounds do not fit the elements");
	return l->p == l->end ? 0 : bad(err, "text after its end");
}

int
ws_array_from_text(enum ws_kind elem, const char *s, size_t n, struct ws_arena *a, struct ws_value *v,
                   struct ws_err *err)
{
	struct literal l = {.p = s, .end = s + n, .elem = elem, .arena = a};
	int rc;

	for (int i = 0; i < WS_ARRAY_MAX_DIM; i++)
		l.lbounds[i] = 1;
	rc = is_element(elem) ? read_literal(&l, err) : bad(err, "no element kind");
	if (rc == 0) {
		size_t head = 2 + 8 * (size_t)l.ndim;
		uint8_t *p = ws_arena_alloc(a, head + l.nulls.len + l.data.len);

		v->p = p;
		v->len = (uint32_t)(head + l.nulls.len + l.data.len);
		p = ws_array_head(p, elem, l.ndim, l.dims, l.lbounds);
		if (l.nulls.len)
			memcpy(p, l.nulls.data, l.nulls.len);
		if (l.data.len)
			memcpy(p + l.nulls.len, l.data.data, l.data.len);
	}
	ws_buf_free(&l.nulls);
	ws_buf_free(&l.data);
	ws_buf_free(&l.tmp);
	return rc;
}

uint8_t *
ws_array_head(uint8_t *p, enum ws_kind elem, int ndim, const uint32_t *dims, const int32_t *lbounds)
{
	*p++ = (uint8_t)elem;
	*p++ = (uint8_t)ndim;
	for (int i = 0; i < ndim; i++, p += 8) {
		ws_store32(p, dims[i]);
		ws_store32(p + 4, (uint32_t)lbounds[i]);
	}
	return p;
}
