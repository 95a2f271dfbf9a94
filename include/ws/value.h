/* Values of the change stream: kinds that need no knowledge of PostgreSQL's disk formats.
 *
 * A column is absent (an unchanged TOAST value that is not known, or not in an old key), NULL, or
 * a value.  Values that are not in the struct itself point elsewhere; whoever makes the row says
 * how long they live. */
#ifndef WS_VALUE_H
#define WS_VALUE_H

#include "ws/err.h"
#include "ws/mem.h"

enum ws_kind {
#define WS_KIND(id, sym, name, width) WS_K_##sym = id,
#include "ws/kind.def"
#undef WS_KIND
	WS_K_COUNT
};

enum ws_vstate { WS_V_NULL = 0, WS_V_VALUE = 1, WS_V_ABSENT = 2 };

struct ws_value {
	uint8_t state; /* enum ws_vstate */
	uint8_t kind;  /* enum ws_kind; of the column */
	uint32_t len;  /* bytes at p, for kinds of width -1 */
	union {
		int64_t i; /* bool, int2, int4, int8, oid, date, time, timestamp, timestamptz */
		float f4;
		double f8;
		const uint8_t *p; /* uuid (16 bytes) and all of width -1 */
	};
};

/* Infinite dates and timestamps, as PostgreSQL stores them (datatype/timestamp.h, utils/date.h). */
#define WS_DATE_INFINITY       INT32_MAX
#define WS_DATE_MINUS_INFINITY INT32_MIN
#define WS_TS_INFINITY         INT64_MAX
#define WS_TS_MINUS_INFINITY   INT64_MIN

const char *ws_kind_name(enum ws_kind k);
/* Bytes of the value on the wire; -1: u32 length and bytes; 0: no such kind. */
int ws_kind_width(enum ws_kind k);

/* PostgreSQL's text of a value (UTC, ISO, hex bytea, extra_float_digits=1, IntervalStyle
 * postgres), appended.  v is a value (not NULL, not absent).  Unsupported: \x and hex bytes. */
void ws_value_text(const struct ws_value *v, struct ws_buf *out);

/* The reverse: text as PostgreSQL writes it under those settings -> a value of this kind.  elem is
 * the element kind of an array, else 0.  Memory from the arena.  -1: not such a text (reason
 * bad_value), and always for unsupported values, whose bytes no text tells. */
int ws_value_from_text(enum ws_kind kind, enum ws_kind elem, const char *s, size_t n,
                       struct ws_arena *a, struct ws_value *v, struct ws_err *err);

/* An array value's bytes (kind WS_K_ARRAY), see ws-change(5):
 *   u8 element kind, u8 ndim, ndim x {u32 length, i32 lower bound}, null bitmap
 *   ((nelems + 7) / 8 bytes, bit set = NULL, least significant first), then the non-NULL elements
 *   as wire values.  ndim 0: empty array. */
#define WS_ARRAY_MAX_DIM 6 /* MAXDIM */
#define WS_ARRAY_MAX_ELEMS 134217727u /* utils/array.h, MaxArraySize */

struct ws_array {
	enum ws_kind elem;
	int ndim;
	uint32_t dims[WS_ARRAY_MAX_DIM];
	int32_t lbounds[WS_ARRAY_MAX_DIM];
	uint32_t nelems;
	const uint8_t *nulls;
	const uint8_t *data;
	size_t datalen;
};
int ws_array_parse(const uint8_t *p, size_t n, struct ws_array *a, struct ws_err *err);
/* Reads element values in order: *at starts at a->data; call nelems times; NULL elements consume
 * nothing. */
int ws_array_next(const struct ws_array *a, uint32_t index, const uint8_t **at, struct ws_value *v,
                  struct ws_err *err);
/* Writes the 2 + 8 * ndim bytes before the null bitmap; returns their end. */
uint8_t *ws_array_head(uint8_t *p, enum ws_kind elem, int ndim, const uint32_t *dims, const int32_t *lbounds);

/* The text of an array value with another delimiter than the comma that ws_value_text takes. */
void ws_array_text_delim(const struct ws_value *v, char delim, struct ws_buf *out);

/* Text of single values without a NUL; out has room for WS_TEXT_MAX bytes; they return its length. */
#define WS_TEXT_MAX 64
size_t ws_float4_text(char *out, float v);
size_t ws_float8_text(char *out, double v);
size_t ws_date_text(char *out, int32_t days);
size_t ws_time_text(char *out, int64_t us);
size_t ws_timestamp_text(char *out, int64_t us, bool tz);
/* HH:MM:SS and what there is of a fraction, for any us >= 0; returns the end. */
char *ws_time_put(char *o, int64_t us);

/* The one NaN that the stream knows; v->kind is float4 or float8. */
void ws_value_set_nan(struct ws_value *v);

/* Longest value: PostgreSQL's MaxAllocSize allows no longer text or datum. */
#define WS_VALUE_MAX 0x3fffffffu
/* What --max-value is unless it is given: a pipeline holds a value several times. */
#define WS_VALUE_DEFAULT_MAX (256u << 20)

/* Appends the wire form of a value (not NULL, not absent); reads it back from *at. */
void ws_value_put(struct ws_buf *b, const struct ws_value *v);
int ws_value_get(enum ws_kind kind, const uint8_t **at, const uint8_t *end, struct ws_value *v);

#endif
