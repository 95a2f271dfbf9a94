/* pglz decompression; see ws/pglz.h.
 *
 * A stream is groups of a control byte and eight items, lowest bit first.  Bit 0: one literal byte.
 * Bit 1: a copy of len bytes from off bytes back: low nibble of the first byte is len - 3, its high
 * nibble and the second byte are off; len - 3 == 15 is followed by a byte that is added to it. */
#include <string.h>

#include "ws/pglz.h"

/* Copies that overlap their own output repeat it. */
static void
copy_back(uint8_t *d, size_t off, size_t len)
{
	const uint8_t *s = d - off;

	if (off >= len) {
		memcpy(d, s, len);
		return;
	}
	for (size_t i = 0; i < len; i++)
		d[i] = s[i];
}

int
ws_pglz_decompress(const uint8_t *src, size_t n, uint8_t *dst, size_t rawlen)
{
	const uint8_t *s = src, *send = src + n;
	uint8_t *d = dst, *dend = dst + rawlen;

	while (s < send && d < dend) {
		unsigned ctrl = *s++;

		for (int i = 0; i < 8 && s < send && d < dend; i++, ctrl >>= 1) {
			if (!(ctrl & 1)) {
				*d++ = *s++;
				continue;
			}
			if (send - s < 2)
				return -1;
			size_t len = (s[0] & 15u) + 3, off = (size_t)(s[0] & 0xF0u) << 4 | s[1];

			s += 2;
			if (len == 18) {
				if (s == send)
					return -1;
				len += *s++;
			}
			if (off == 0 || off > (size_t)(d - dst))
				return -1;
			if (len > (size_t)(dend - d)) /* PostgreSQL takes such a stream too */
				len = (size_t)(dend - d);
			copy_back(d, off, len);
			d += len;
		}
	}
	return s == send && d == dend ? 0 : -1;
}
