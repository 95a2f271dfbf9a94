/* Shared by the files of lib/wal only. */
#ifndef WS_WALPRIV_H
#define WS_WALPRIV_H

#include "ws/types.h"

/* True when the record's CRC is right; len >= WS_REC_HDR_SIZE.  Chosen at load time. */
extern bool (*ws_record_crc_check)(const uint8_t *rec, uint32_t len);
/* Adds what lies before xl_crc in a record's header to the CRC of its body. */
extern uint32_t (*ws_record_head_crc)(uint32_t crc, const uint8_t *rec);

static inline uint64_t
ws_maxalign(uint64_t v)
{
	return (v + 7) & ~(uint64_t)7;
}

#endif
