/* Is this a whole WAL segment, as a server that writes timeline after timeline of a history fills it?
 * Pure: bytes in, in any chunking.
 *
 * Looked at: every page's address and timeline, the system identifier, the CRC and the prev link of
 * every record that begins in it; and that there are records up to its end, or to a segment switch. */
#ifndef WS_SEGCHECK_H
#define WS_SEGCHECK_H

#include "ws/history.h"

struct ws_segcheck;

struct ws_segcheck_opts {
	uint64_t system_id;
	uint32_t segsize;
	ws_lsn start;                 /* its first byte */
	const struct ws_history *way; /* must stay until ws_segcheck_free */
};

struct ws_segcheck *ws_segcheck_new(const struct ws_segcheck_opts *o);
void ws_segcheck_free(struct ws_segcheck *c);

/* The next n bytes.  -1: WS_EOPERATOR system_id_changed, wal_corrupt or as ws_walreader_next. */
int ws_segcheck_data(struct ws_segcheck *c, const uint8_t *p, size_t n, struct ws_err *err);
/* There are no more. */
int ws_segcheck_end(const struct ws_segcheck *c, struct ws_err *err);

#endif
