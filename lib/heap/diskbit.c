/* bit and varbit on disk (utils/varbit.h): number of bits, then the bits, the first one highest. */
#include "heap-int.h"

WS_CODEC(ws_read_bit)
{
	uint32_t nbits = n >= 4 ? ws_le32(p) : 0;

	if (n < 4 || (nbits + (uint64_t)7) / 8 != n - 4 || nbits > WS_VALUE_MAX)
		return -1;
	uint8_t *o = ws_arena_alloc(in->arena, nbits);

	v->p = o;
	v->len = nbits;
	for (uint32_t i = 0; i < nbits; i++)
		o[i] = (uint8_t)('0' + (p[4 + i / 8] >> (7 - i % 8) & 1));
	return 0;
}
