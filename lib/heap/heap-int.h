/* What the files of lib/heap share: varlenas, codecs, the private half of a descriptor. */
#ifndef WS_HEAP_INT_H
#define WS_HEAP_INT_H

#include "ws/cursor.h"
#include "ws/heap.h"

/* ---- varlenas (varlena.c; varatt.h) ---- */

enum ws_varkind { WS_VAR_PLAIN, WS_VAR_COMPRESSED, WS_VAR_EXTERNAL };

struct ws_varlena {
	enum ws_varkind kind;
	const uint8_t *data; /* after the header; compressed: begins with rawsize and method */
	uint32_t len;        /* of data */
	uint32_t total;      /* bytes on disk, header included */
	struct ws_toast_ptr ext;
};

/* avail bytes at p.  -1: they hold no varlena. */
int ws_varlena_parse(const uint8_t *p, size_t avail, struct ws_varlena *v);

/* The value's bytes without header, decompressed and fetched.  1, 0 not known (external), -1. */
int ws_varlena_detoast(const struct ws_varlena *v, const struct ws_heapenv *env, const uint8_t **data,
                       uint32_t *len, struct ws_err *err);

/* Where a varlena starts at or after off: padding bytes are zero, a header is not unless aligned. */
static inline size_t
ws_varlena_align(const uint8_t *data, size_t off, size_t mask)
{
	return data[off] ? off : (off + mask) & ~mask;
}

/* ---- codecs ---- */

/* Types in types: arrays, ranges, composites.  What is deeper is not decoded. */
#define WS_TYPE_DEPTH 16

struct ws_codec_in {
	const struct ws_heaptype *type;
	struct ws_arena *arena;
	/* Scratch, emptied by whoever uses it.  Text and stack are for values without values in them,
	 * *level for those with: theirs have the next one. */
	struct ws_buf *text, *stack, *level;
};

/* Reads the n bytes of one value (of a varlena: without header) into v, whose state, kind and len
 * (0) are set.  -1: corrupt. */
typedef int (*ws_codec_read)(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, struct ws_value *v);

struct ws_codec {
	ws_oid typid, arrayid;
	const char *name;
	uint8_t kind;
	int16_t len; /* attlen, -1 varlena */
	uint8_t mask; /* alignment - 1 */
	ws_codec_read read;
};

/* heapcodec.c: by oid, by the array's oid, by the output function (for what has no fixed oid).
 * NULL: none. */
const struct ws_codec *ws_codec_find(ws_oid oid);
const struct ws_codec *ws_codec_find_array(ws_oid oid);
const struct ws_codec *ws_codec_find_out(const struct ws_type *t);
extern const struct ws_codec ws_codec_enum, ws_codec_array, ws_codec_array_text, ws_codec_range,
	ws_codec_multirange, ws_codec_row;

#define WS_CODEC(fn) int fn(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, struct ws_value *v)
WS_CODEC(ws_read_bool);
WS_CODEC(ws_read_int2);
WS_CODEC(ws_read_int4);
WS_CODEC(ws_read_int8);
WS_CODEC(ws_read_oid);
WS_CODEC(ws_read_float4);
WS_CODEC(ws_read_float8);
WS_CODEC(ws_read_bytes);
WS_CODEC(ws_read_char);
WS_CODEC(ws_read_name);
WS_CODEC(ws_read_interval);
WS_CODEC(ws_read_timetz);
WS_CODEC(ws_read_money);
WS_CODEC(ws_read_tid);
WS_CODEC(ws_read_lsn);
WS_CODEC(ws_read_xid8);
WS_CODEC(ws_read_xml);
WS_CODEC(ws_read_enum);
WS_CODEC(ws_read_inet);
WS_CODEC(ws_read_cidr);
WS_CODEC(ws_read_macaddr);
WS_CODEC(ws_read_macaddr8);
WS_CODEC(ws_read_numeric);
WS_CODEC(ws_read_jsonb);
WS_CODEC(ws_read_jsonpath);
WS_CODEC(ws_read_array);
WS_CODEC(ws_read_array_text);
WS_CODEC(ws_read_vector2);
WS_CODEC(ws_read_vector4);
WS_CODEC(ws_read_range);
WS_CODEC(ws_read_multirange);
WS_CODEC(ws_read_row);
WS_CODEC(ws_read_bit);
WS_CODEC(ws_read_point);
WS_CODEC(ws_read_lseg);
WS_CODEC(ws_read_box);
WS_CODEC(ws_read_line);
WS_CODEC(ws_read_circle);
WS_CODEC(ws_read_path);
WS_CODEC(ws_read_polygon);
WS_CODEC(ws_read_tsvector);
WS_CODEC(ws_read_tsquery);
WS_CODEC(ws_read_hstore);
WS_CODEC(ws_read_ltree);
WS_CODEC(ws_read_lquery);
WS_CODEC(ws_read_ltxtquery);
WS_CODEC(ws_read_cube);
WS_CODEC(ws_read_floats);

/* numeric.c: appends the text of the numeric whose bytes (without header) these are. */
int ws_numeric_text(const uint8_t *p, uint32_t n, struct ws_buf *out);

/* jsonb.c: appends the text as a JSON string, quoted. */
void ws_json_quote(struct ws_buf *out, const uint8_t *p, uint32_t n);

/* ---- values inside of values (datum.c) ---- */

#define WS_VARHDR 4u /* the varlena header, which is not among the bytes that a codec gets */

/* The next value of a container: p is what a codec got, n its length; *at counts from the varlena
 * header and moves past the value.  -1: it is not whole there. */
int ws_inner_next(const struct ws_codec_in *in, const uint8_t *p, uint32_t n, size_t *at,
				  int16_t len, uint8_t mask, const uint8_t **e, uint32_t *elen);
/* Appends the text of such a value. */
int ws_inner_text(const struct ws_codec_in *in, const struct ws_heaptype *t, const uint8_t *p,
				  uint32_t n, struct ws_buf *out);
/* Quotes what was appended to out from `from` on, when it is empty or has a blank or one of
 * specials (quotes and backslashes among them): both are doubled. */
void ws_inner_quote(struct ws_buf *out, size_t from, const char *specials);

/* Puts what is in b into the arena as v's bytes. */
static inline void
ws_codec_done(const struct ws_codec_in *in, const struct ws_buf *b, struct ws_value *v)
{
	v->p = ws_arena_dup(in->arena, b->data, b->len);
	v->len = (uint32_t)b->len;
}

#endif
