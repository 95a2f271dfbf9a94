/* Descriptors: a shape compiled once, then tuples into values by it (access/common/heaptuple.c:
 * heap_deform_tuple). */
#include <stdlib.h>
#include <string.h>

#include "heap-int.h"

#define HASNULL 0x0001u

enum att_op {
	OP_SKIP, /* dropped */
	OP_BOOL,
	OP_INT2,
	OP_INT4,
	OP_INT8,
	OP_OID,
	OP_FLOAT4,
	OP_FLOAT8,
	OP_PTR,  /* fixed width, by pointer (uuid) */
	OP_FIX,  /* fixed width, codec */
	OP_TEXT, /* varlena, as it is */
	OP_VAR,  /* varlena, codec */
	OP_RAW   /* unsupported */
};

struct ws_heapatt {
	uint64_t head; /* the first 8 bytes of a value: state VALUE, kind, len 0 */
	uint32_t off;  /* of the first nfast */
	int16_t len;
	uint8_t mask; /* alignment - 1 */
	uint8_t op;
	uint8_t kind;
	int16_t col; /* -1 dropped */
};

/* What the private pointers of a desc hold beside the arrays. */
struct desc {
	struct ws_heapdesc pub;
	uint32_t fastlen; /* bytes of the fixed prefix */
	struct ws_buf text, stack, level[WS_TYPE_DEPTH];
};

#define V_NO_MISSING 3 /* state of a missing value that cannot be had: unsupported type */

static uint8_t
op_of(const struct ws_codec *c)
{
	static const struct {
		ws_codec_read read;
		uint8_t op;
	} map[] = {
	    {ws_read_bool, OP_BOOL},     {ws_read_int2, OP_INT2}, {ws_read_int4, OP_INT4},
	    {ws_read_int8, OP_INT8},     {ws_read_oid, OP_OID},   {ws_read_float4, OP_FLOAT4},
	    {ws_read_float8, OP_FLOAT8},
	};

	if (!c)
		return OP_RAW;
	for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
		if (map[i].read == c->read)
			return map[i].op;
	if (c->read == ws_read_bytes)
		return c->len > 0 ? OP_PTR : OP_TEXT;
	return c->len > 0 ? OP_FIX : OP_VAR;
}

static int
set_missing(struct desc *d, const struct ws_attr *a, struct ws_heapcol *c, struct ws_value *v, struct ws_err *err)
{
	memset(v, 0, sizeof *v);
	v->kind = (uint8_t)c->type.kind;
	if (!(a->flags & WS_ATT_MISSING) || !a->missing)
		return 0;
	/* The text of regclass and its like is a name, of which nobody knows the oid. */
	if (c->type.kind == WS_K_UNSUPPORTED || c->type.reg) {
		v->state = V_NO_MISSING;
		return 0;
	}
	if (ws_value_from_text(c->type.kind, c->type.elem, a->missing, strlen(a->missing), &d->pub.arena, v, err) != 0)
		return ws_err_prefix(err, "relation %s.%s column %s: missing value", d->pub.rel->nspname,
		                     d->pub.rel->name, a->name);
	return 0;
}

static int
alignment(char align)
{
	return align == 'c' ? 1 : align == 's' ? 2 : align == 'i' ? 4 : align == 'd' ? 8 : 0;
}

static int
add_att(struct desc *d, int i, ws_type_fn lookup, void *arg, struct ws_err *err)
{
	const struct ws_rel *rel = d->pub.rel;
	const struct ws_attr *a = &rel->attrs[i];
	struct ws_heapatt *t = &d->pub.atts[i];
	int align = alignment(a->align);

	if (!align || a->len == 0 || a->len < -2)
		return ws_err_op(err, "bad_shape", "relation %s.%s attribute %d: length %d, alignment '%c'",
		                 rel->nspname, rel->name, i + 1, a->len, a->align);
	t->len = a->len;
	t->mask = (uint8_t)(align - 1);
	t->col = -1;
	t->op = OP_SKIP;
	if (a->flags & WS_ATT_DROPPED)
		return 0;
	struct ws_heapcol *c = &d->pub.cols[d->pub.ncols];

	c->attnum = (int16_t)(i + 1);
	c->attr = a;
	if (ws_heaptype_of(a->typid, lookup, arg, &d->pub.arena, &c->type, err) != 0)
		return -1;
	/* A type whose length is not what this program knows is not decoded. */
	if (c->type.codec && c->type.len != a->len) {
		memset(&c->type, 0, sizeof c->type);
		c->type.kind = WS_K_UNSUPPORTED;
	}
	t->op = op_of(c->type.codec);
	t->kind = (uint8_t)c->type.kind;
	t->head = WS_V_VALUE | (uint64_t)t->kind << 8;
	t->col = (int16_t)d->pub.ncols++;
	return set_missing(d, a, c, &d->pub.missing[t->col], err);
}

static void
plan_prefix(struct desc *d)
{
	uint32_t off = 0;
	uint16_t i = 0;

	for (; i < d->pub.natts && d->pub.atts[i].len > 0; i++) {
		struct ws_heapatt *t = &d->pub.atts[i];

		off = (off + t->mask) & ~(uint32_t)t->mask;
		t->off = off;
		off += (uint32_t)t->len;
	}
	d->pub.nfast = i;
	d->fastlen = off;
}

struct ws_heapdesc *
ws_heapdesc_new(const struct ws_rel *rel, ws_type_fn lookup, void *arg, struct ws_err *err)
{
	struct desc *d = ws_calloc(1, sizeof *d);
	size_t n = (size_t)(rel->natts > 0 ? rel->natts : 0);

	d->pub.rel = rel;
	d->pub.natts = (uint16_t)n;
	d->pub.atts = ws_calloc(n, sizeof *d->pub.atts);
	d->pub.cols = ws_calloc(n, sizeof *d->pub.cols);
	d->pub.missing = ws_calloc(n, sizeof *d->pub.missing);
	for (int i = 0; i < (int)n; i++)
		if (add_att(d, i, lookup, arg, err) != 0) {
			ws_heapdesc_free(&d->pub);
			return NULL;
		}
	plan_prefix(d);
	return &d->pub;
}

void
ws_heapdesc_free(struct ws_heapdesc *pub)
{
	struct desc *d = (struct desc *)(void *)pub;

	if (!d)
		return;
	ws_buf_free(&d->text);
	ws_buf_free(&d->stack);
	for (int i = 0; i < WS_TYPE_DEPTH; i++)
		ws_buf_free(&d->level[i]);
	ws_arena_free(&d->pub.arena);
	free(d->pub.atts);
	free(d->pub.cols);
	free(d->pub.missing);
	free(d);
}

/* ---- decoding ---- */

static int
corrupt(const struct ws_heapdesc *d, int att, const char *what, struct ws_err *err)
{
	const struct ws_rel *r = d->rel;

	if (att >= 0)
		return ws_err_op(err, "corrupt_tuple", "relation %s.%s column %s: %s", r->nspname, r->name,
		                 r->attrs[att].name, what);
	return ws_err_op(err, "corrupt_tuple", "relation %s.%s: %s", r->nspname, r->name, what);
}

static int
by_codec(struct desc *d, const struct ws_heapatt *t, const struct ws_heapenv *env, const uint8_t *p,
         uint32_t n, struct ws_value *v)
{
	const struct ws_heaptype *type = &d->pub.cols[t->col].type;
	struct ws_codec_in in = {type, env->arena, &d->text, &d->stack, d->level};

	return type->codec->read(&in, p, n, v);
}

static void
set_value(struct ws_value *v, uint8_t state, uint8_t kind)
{
	v->state = state;
	v->kind = kind;
	v->len = 0;
}

_Static_assert(offsetof(struct ws_value, len) == 4 && offsetof(struct ws_value, p) == 8, "a head is 8 bytes");

/* A value of an attribute with len bytes, in one store. */
static inline void
set_head(struct ws_value *v, const struct ws_heapatt *t, uint32_t len)
{
	uint64_t head = t->head | (uint64_t)len << 32;

	memcpy(v, &head, sizeof head);
}

/* A fixed-width attribute whose bytes are all there; v is not used for a dropped one. */
static inline __attribute__((always_inline)) int
load_fixed(struct desc *d, const struct ws_heapatt *t, const struct ws_heapenv *env, const uint8_t *p,
           struct ws_value *v)
{
	if (t->op == OP_SKIP)
		return 0;
	set_head(v, t, 0);
	switch (t->op) {
	case OP_BOOL:
		v->i = *p != 0;
		return 0;
	case OP_INT2:
		v->i = (int16_t)ws_le16(p);
		return 0;
	case OP_INT4:
		v->i = (int32_t)ws_le32(p);
		return 0;
	case OP_INT8:
		v->i = (int64_t)ws_le64(p);
		return 0;
	case OP_OID:
		v->i = ws_le32(p);
		return 0;
	case OP_FLOAT4:
		return ws_read_float4(NULL, p, 4, v);
	case OP_FLOAT8:
		return ws_read_float8(NULL, p, 8, v);
	case OP_PTR:
		v->p = p;
		return 0;
	case OP_RAW:
		v->p = p;
		v->len = (uint32_t)t->len;
		d->pub.cols[t->col].unsupported++;
		return 0;
	default:
		return by_codec(d, t, env, p, (uint32_t)t->len, v);
	}
}

static int
too_long(const struct desc *d, int att, uint64_t n, uint32_t max, struct ws_err *err)
{
	const struct ws_rel *r = d->pub.rel;

	return ws_err_op(
		err, "value_too_long",
		"relation %s.%s column %s: a value of %llu bytes is longer than --max-value (%u)",
		r->nspname, r->name, r->attrs[att].name, (unsigned long long)n, max);
}

/* Bytes of the value without header, before anything is fetched or decompressed. */
static uint32_t
raw_size(const struct ws_varlena *v)
{
	return v->kind == WS_VAR_EXTERNAL     ? v->ext.rawsize
		   : v->kind == WS_VAR_COMPRESSED ? ws_le32(v->data) & 0x3fffffff
										  : v->len;
}

/* A varlena attribute at p; *total tells its size. */
static int
load_varlena(struct desc *d, int att, const struct ws_heapenv *env, const uint8_t *p, size_t avail,
             uint32_t *total, struct ws_value *out, struct ws_err *err)
{
	const struct ws_heapatt *t = &d->pub.atts[att];
	struct ws_varlena v;
	const uint8_t *data;
	uint32_t len;

	if (ws_varlena_parse(p, avail, &v) != 0)
		return corrupt(&d->pub, att, "value runs beyond its tuple", err);
	*total = v.total;
	if (t->op == OP_SKIP)
		return 0;
	uint32_t max = env->max_value ? env->max_value : WS_VALUE_MAX;

	if (raw_size(&v) > max)
		return too_long(d, att, raw_size(&v), max, err);
	struct ws_value *o = &out[t->col];
	int rc = ws_varlena_detoast(&v, env, &data, &len, err);

	if (rc < 0)
		return ws_err_prefix(err, "relation %s.%s column %s", d->pub.rel->nspname, d->pub.rel->name,
		                     d->pub.rel->attrs[att].name);
	set_value(o, rc ? WS_V_VALUE : WS_V_ABSENT, t->kind);
	if (!rc)
		return 0;
	if (t->op == OP_VAR) {
		if (by_codec(d, t, env, data, len, o) != 0)
			return corrupt(&d->pub, att, "corrupt value", err);
		return o->len > max ? too_long(d, att, o->len, max, err) : 0;
	}
	o->p = data;
	o->len = len;
	if (t->op == OP_RAW)
		d->pub.cols[t->col].unsupported++;
	return 0;
}

/* A cstring (attlen -2): only unsupported types have it. */
static int
load_cstring(struct desc *d, int att, const uint8_t *p, size_t avail, uint32_t *total, struct ws_value *out,
             struct ws_err *err)
{
	const struct ws_heapatt *t = &d->pub.atts[att];
	size_t n = strnlen((const char *)p, avail);

	if (n == avail)
		return corrupt(&d->pub, att, "value runs beyond its tuple", err);
	*total = (uint32_t)n + 1;
	if (t->op == OP_SKIP)
		return 0;
	set_value(&out[t->col], WS_V_VALUE, t->kind);
	out[t->col].p = p;
	out[t->col].len = (uint32_t)n;
	d->pub.cols[t->col].unsupported++;
	return 0;
}

/* The columns that the tuple is too old for. */
static int
fill_missing(struct desc *d, uint16_t from, unsigned flags, struct ws_value *out, struct ws_err *err)
{
	for (uint16_t i = from; i < d->pub.natts; i++) {
		int col = d->pub.atts[i].col;

		if (col < 0)
			continue;
		if (flags & WS_DECODE_KEY) {
			set_value(&out[col], WS_V_ABSENT, d->pub.atts[i].kind);
			continue;
		}
		out[col] = d->pub.missing[col];
		if (out[col].state == V_NO_MISSING)
			return ws_err_op(err, "type_unsupported",
			                 "relation %s.%s column %s: the missing value of type %s cannot be read",
			                 d->pub.rel->nspname, d->pub.rel->name, d->pub.rel->attrs[i].name,
			                 d->pub.rel->attrs[i].typname);
	}
	return 0;
}

/* Attributes from `i` on, which start at or after off. */
static int
deform(struct desc *d, const struct ws_tuple *t, uint16_t i, uint16_t natts, size_t off, unsigned flags,
       const struct ws_heapenv *env, struct ws_value *out, struct ws_err *err)
{
	const uint8_t *data = t->body + t->hoff - WS_TUPLE_HDR_SIZE;
	size_t dlen = t->len - (t->hoff - WS_TUPLE_HDR_SIZE);
	bool hasnull = t->infomask & HASNULL;
	uint8_t null_state = flags & WS_DECODE_KEY ? WS_V_ABSENT : WS_V_NULL;
	uint32_t total = 0;

	for (; i < natts; i++) {
		const struct ws_heapatt *a = &d->pub.atts[i];

		if (hasnull && !(t->body[i >> 3] >> (i & 7) & 1)) {
			if (a->col >= 0)
				set_value(&out[a->col], null_state, a->kind);
			continue;
		}
		if (a->len > 0) {
			off = (off + a->mask) & ~(size_t)a->mask;
			if (off > dlen || dlen - off < (size_t)a->len)
				return corrupt(&d->pub, i, "value runs beyond its tuple", err);
			if (load_fixed(d, a, env, data + off, out + a->col) != 0)
				return corrupt(&d->pub, i, "corrupt value", err);
			off += (size_t)a->len;
			continue;
		}
		if (off >= dlen)
			return corrupt(&d->pub, i, "value runs beyond its tuple", err);
		if (a->len == -2) {
			if (load_cstring(d, i, data + off, dlen - off, &total, out, err) != 0)
				return -1;
			off += total;
			continue;
		}
		off = ws_varlena_align(data, off, a->mask);
		if (off >= dlen)
			return corrupt(&d->pub, i, "value runs beyond its tuple", err);
		uint8_t b = data[off];
		uint32_t n = b >> 1;

		/* The short text of most rows; a length byte of 1 is an external pointer. */
		if (a->op == OP_TEXT && b & 1 && n && n <= dlen - off) {
			set_head(&out[a->col], a, n - 1);
			out[a->col].p = data + off + 1;
			off += n;
			continue;
		}
		if (load_varlena(d, i, env, data + off, dlen - off, &total, out, err) != 0)
			return -1;
		off += total;
	}
	return 0;
}

int
ws_heap_decode(struct ws_heapdesc *pub, const struct ws_tuple *t, unsigned flags, const struct ws_heapenv *env,
               struct ws_value *out, struct ws_err *err)
{
	struct desc *d = (struct desc *)(void *)pub;
	uint16_t natts = WS_TUPLE_NATTS(t), i = 0;
	size_t skip = (size_t)t->hoff - WS_TUPLE_HDR_SIZE, off = 0;

	if (natts > pub->natts)
		return corrupt(pub, -1, "a tuple has more attributes than the relation", err);
	if (t->hoff < WS_TUPLE_HDR_SIZE || skip > t->len ||
	    (t->infomask & HASNULL && skip < (size_t)(natts + 7) / 8))
		return corrupt(pub, -1, "a tuple's header is corrupt", err);
	if (!(t->infomask & HASNULL) && natts >= pub->nfast && t->len - skip >= d->fastlen) {
		const uint8_t *data = t->body + skip;

		for (; i < pub->nfast; i++) {
			const struct ws_heapatt *a = &pub->atts[i];

			if (load_fixed(d, a, env, data + a->off, out + a->col) != 0)
				return corrupt(pub, i, "corrupt value", err);
		}
		off = d->fastlen;
	}
	if (deform(d, t, i, natts, off, flags, env, out, err) != 0)
		return -1;
	return natts < pub->natts ? fill_missing(d, natts, flags, out, err) : 0;
}
