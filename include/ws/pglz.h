/* PostgreSQL's own compression, pglz (common/pg_lzcompress.c): decompression only.  Pure and total. */
#ifndef WS_PGLZ_H
#define WS_PGLZ_H

#include "ws/types.h"

/* Decompresses n bytes into exactly rawlen bytes at dst.  -1 when src is no pglz stream of that
 * length; dst then holds anything. */
int ws_pglz_decompress(const uint8_t *src, size_t n, uint8_t *dst, size_t rawlen);

#endif
