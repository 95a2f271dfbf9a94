/* A bounds-checked read cursor with a sticky failure, for all parsing.  After a failure every get
 * returns 0 or NULL and `bad` stays set; check it once at the end.  Loads are little-endian and
 * need no alignment. */
#ifndef WS_CURSOR_H
#define WS_CURSOR_H

#include <string.h>
#include "ws/types.h"

static inline uint16_t
ws_le16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint32_t
ws_le32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint64_t
ws_le64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline void
ws_store16(void *p, uint16_t v)
{
	memcpy(p, &v, sizeof v);
}

static inline void
ws_store32(void *p, uint32_t v)
{
	memcpy(p, &v, sizeof v);
}

static inline void
ws_store64(void *p, uint64_t v)
{
	memcpy(p, &v, sizeof v);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a little-endian machine is needed");

struct ws_cursor {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

static inline struct ws_cursor
ws_cursor(const void *p, size_t n)
{
	const uint8_t *b = p;
	struct ws_cursor c = {b, b + n, false};

	return c;
}

static inline size_t
ws_cur_left(const struct ws_cursor *c)
{
	return c->bad ? 0 : (size_t)(c->end - c->p);
}

/* n bytes, or NULL past the end.  n == 0 gives a non-NULL pointer while the cursor is good. */
static inline const uint8_t *
ws_cur_bytes(struct ws_cursor *c, size_t n)
{
	const uint8_t *p = c->p;

	if (c->bad || (size_t)(c->end - p) < n) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return p;
}

static inline void
ws_cur_skip(struct ws_cursor *c, size_t n)
{
	(void)ws_cur_bytes(c, n);
}

static inline uint8_t
ws_cur_u8(struct ws_cursor *c)
{
	const uint8_t *p = ws_cur_bytes(c, 1);

	return p ? *p : 0;
}

static inline uint16_t
ws_cur_u16(struct ws_cursor *c)
{
	const uint8_t *p = ws_cur_bytes(c, 2);

	return p ? ws_le16(p) : 0;
}

static inline uint32_t
ws_cur_u32(struct ws_cursor *c)
{
	const uint8_t *p = ws_cur_bytes(c, 4);

	return p ? ws_le32(p) : 0;
}

static inline uint64_t
ws_cur_u64(struct ws_cursor *c)
{
	const uint8_t *p = ws_cur_bytes(c, 8);

	return p ? ws_le64(p) : 0;
}

/* A string as ws_buf_putstr writes it: *len bytes, not NUL-terminated. */
static inline const char *
ws_cur_str(struct ws_cursor *c, size_t *len)
{
	*len = ws_cur_u32(c);
	const uint8_t *p = ws_cur_bytes(c, *len);

	if (!p)
		*len = 0;
	return (const char *)p;
}

#endif
