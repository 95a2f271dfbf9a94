/* Values on the wire, inline for the two hot paths (rows out, rows in).  Private to lib/change;
 * others use ws_value_put and ws_value_get. */
#ifndef WS_CHANGE_WIRE_H
#define WS_CHANGE_WIRE_H

#include "ws/cursor.h"
#include "ws/value.h"

/* Bytes that wire_put will write. */
static inline size_t
wire_size(const struct ws_value *v)
{
	static const uint8_t fixed[WS_K_COUNT] = {
#define WS_KIND(id, sym, name, width) [id] = (width) > 0 ? (width) : 0,
#include "ws/kind.def"
#undef WS_KIND
	};

	return fixed[v->kind] ? fixed[v->kind] : 4 + (size_t)v->len;
}

/* Writes the value, returns the place after it. */
static inline uint8_t *
wire_put(uint8_t *o, const struct ws_value *v)
{
	switch ((enum ws_kind)v->kind) {
	case WS_K_BOOL:
		*o = v->i != 0;
		return o + 1;
	case WS_K_INT2:
		ws_store16(o, (uint16_t)v->i);
		return o + 2;
	case WS_K_INT4:
	case WS_K_OID:
	case WS_K_DATE:
		ws_store32(o, (uint32_t)v->i);
		return o + 4;
	case WS_K_FLOAT4:
		memcpy(o, &v->f4, 4);
		return o + 4;
	case WS_K_INT8:
	case WS_K_TIME:
	case WS_K_TIMESTAMP:
	case WS_K_TIMESTAMPTZ:
		ws_store64(o, (uint64_t)v->i);
		return o + 8;
	case WS_K_FLOAT8:
		memcpy(o, &v->f8, 8);
		return o + 8;
	case WS_K_UUID:
		memcpy(o, v->p, 16);
		return o + 16;
	default:
		ws_store32(o, v->len);
		if (v->len)
			memcpy(o + 4, v->p, v->len);
		return o + 4 + v->len;
	}
}

/* Reads a value of this kind into *v (state VALUE); NULL when the bytes end before it does. */
static inline const uint8_t *
wire_get(enum ws_kind kind, const uint8_t *p, const uint8_t *end, struct ws_value *v)
{
	size_t left = (size_t)(end - p);

	v->state = WS_V_VALUE;
	v->kind = (uint8_t)kind;
	v->len = 0;
	switch (kind) {
	case WS_K_BOOL:
		if (left < 1)
			return NULL;
		v->i = *p;
		return p + 1;
	case WS_K_INT2:
		if (left < 2)
			return NULL;
		v->i = (int16_t)ws_le16(p);
		return p + 2;
	case WS_K_INT4:
	case WS_K_DATE:
		if (left < 4)
			return NULL;
		v->i = (int32_t)ws_le32(p);
		return p + 4;
	case WS_K_OID:
		if (left < 4)
			return NULL;
		v->i = ws_le32(p);
		return p + 4;
	case WS_K_FLOAT4:
		if (left < 4)
			return NULL;
		v->i = 0;
		memcpy(&v->f4, p, 4);
		return p + 4;
	case WS_K_INT8:
	case WS_K_TIME:
	case WS_K_TIMESTAMP:
	case WS_K_TIMESTAMPTZ:
	case WS_K_FLOAT8:
		if (left < 8)
			return NULL;
		v->i = (int64_t)ws_le64(p);
		return p + 8;
	case WS_K_UUID:
		if (left < 16)
			return NULL;
		v->len = 16;
		v->p = p;
		return p + 16;
	default:
		if (left < 4)
			return NULL;
		v->len = ws_le32(p);
		if (left - 4 < v->len)
			return NULL;
		v->p = p + 4;
		return p + 4 + v->len;
	}
}

#endif
