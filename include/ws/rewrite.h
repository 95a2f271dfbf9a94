/* Editing WAL in place without moving a byte: a record becomes an XLOG_NOOP of the same length, or
 * loses a tablespace's path.  Pure. */
#ifndef WS_REWRITE_H
#define WS_REWRITE_H

#include "ws/record.h"

/* A stretch of WAL, page headers included, that a record lies in. */
struct ws_walspan {
	uint8_t *p;
	ws_lsn lsn; /* of p[0] */
	size_t n;
	uint32_t segsize;
};

/* Turns the contiguous record of tot_len bytes (its xl_tot_len) into an XLOG_NOOP that keeps
 * xl_xid and xl_prev and has a right CRC.  Its content is one block of zeros as main data, so that
 * every reader takes it apart without complaint. */
void ws_rewrite_blank(uint8_t *rec, uint32_t tot_len);

/* As ws_rewrite_blank for a record that goes on behind page headers.  The span must hold all of it;
 * rec->data is a copy in one piece. */
void ws_rewrite_blank_span(const struct ws_walspan *span, const struct ws_rec *rec);

/* Writes rec's bytes back behind page headers, at `start`. */
void ws_rewrite_put_span(const struct ws_walspan *span, ws_lsn start, const uint8_t *rec, uint32_t tot_len);

/* Zeroes n bytes at offset off of the contiguous record and sets its CRC. */
void ws_rewrite_zero(uint8_t *rec, uint32_t tot_len, uint32_t off, uint32_t n);

#endif
