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

struct ws_codec_in {
	const struct ws_heaptype *type;
	struct ws_arena *arena;
	struct ws_buf *text, *stack, *array; /* scratch, emptied by whoever uses it */
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

extern const struct ws_codec ws_codec_enum, ws_codec_array;

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
WS_CODEC(ws_read_inet);
WS_CODEC(ws_read_cidr);
WS_CODEC(ws_read_enum);
WS_CODEC(ws_read_numeric);
WS_CODEC(ws_read_jsonb);
WS_CODEC(ws_read_array);

/* numeric.c: appends the text of the numeric whose bytes (without header) these are. */
int ws_numeric_text(const uint8_t *p, uint32_t n, struct ws_buf *out);

/* Puts what is in b into the arena as v's bytes. */
static inline void
ws_codec_done(const struct ws_codec_in *in, const struct ws_buf *b, struct ws_value *v)
{
	v->p = ws_arena_dup(in->arena, b->data, b->len);
	v->len = (uint32_t)b->len;
}

#endif
