/* CRC-32C (Castagnoli), as PostgreSQL's pg_crc32c.h: start with WS_CRC_INIT, add bytes, finish
 * with XOR.  Uses the CPU's instruction where there is one. */
#ifndef WS_CRC_H
#define WS_CRC_H

#include "ws/types.h"

#define WS_CRC_INIT 0xffffffffu
#define WS_CRC_FIN(c) ((c) ^ 0xffffffffu)

/* Chosen at load time; ws_crc32c_sw is the portable form, exported for tests. */
extern uint32_t (*ws_crc32c)(uint32_t crc, const void *p, size_t n);
uint32_t ws_crc32c_sw(uint32_t crc, const void *p, size_t n);

#endif
