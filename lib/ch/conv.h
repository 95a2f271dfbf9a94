/* Appending to a column under construction: shared by the conversions. */
#ifndef LIB_CH_CONV_H
#define LIB_CH_CONV_H

#include <string.h>

#include "lib/ch/column.h"
#include "ws/cursor.h"

/* Room for n more bytes in the column's data. */
static inline __attribute__((always_inline)) uint8_t *
conv_room(struct ws_buf *b, size_t n)
{
	if (__builtin_expect(b->cap - b->len < n, 0))
		ws_buf_reserve(b, n);
	return b->data + b->len;
}

static inline void
conv_string(struct ws_buf *b, const void *p, size_t n)
{
	uint8_t *o = conv_room(b, n + 10), *at = o;
	size_t v = n;

	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	if (n)
		memcpy(at, p, n);
	b->len += (size_t)(at - o) + n;
}

/* PostgreSQL counts from 2000, ClickHouse from 1970. */
#define EPOCH_DAYS 10957
#define EPOCH_US   (INT64_C(946684800) * 1000000)
#define DAY_US     (INT64_C(86400) * 1000000)

/* Drops what a number's text does not have from money's, in place; returns the length left. */
static inline size_t
conv_money(uint8_t *s, size_t n)
{
	size_t o = 0;

	for (size_t i = 0; i < n; i++)
		if (s[i] != '$' && s[i] != ',')
			s[o++] = s[i];
	return o;
}

ch_put_fn ch_put_number(enum ws_kind kind, const struct ch_type *t);
ch_put_fn ch_put_time(enum ws_kind kind, const struct ch_type *t);
ch_put_fn ch_put_text(enum ws_kind kind, const struct ch_type *t);
/* hstore's text as map(...), for a DEFAULT; a text that is none gives an expression that is not
 * equal to it. */
void ch_map_literal(const struct ws_value *v, struct ws_buf *out);
ch_put_fn ch_put_map(enum ws_kind kind, const struct ch_type *t);

#endif
