/* LSNs, WAL segment names and arithmetic for any segment size
 * (PostgreSQL: access/xlog_internal.h, XLogFileName and its family). */
#ifndef WS_LSN_H
#define WS_LSN_H

#include "ws/err.h"

#define WS_SEGSIZE_MIN (1024u * 1024)
#define WS_SEGSIZE_MAX (1024u * 1024 * 1024)
#define WS_SEGNAME_LEN 24
#define WS_WALNAME_MAX 64 /* room for any name in a WAL directory */

static inline bool
ws_segsize_ok(uint32_t s)
{
	return s >= WS_SEGSIZE_MIN && s <= WS_SEGSIZE_MAX && (s & (s - 1)) == 0;
}

static inline ws_lsn
ws_seg_start(ws_lsn lsn, uint32_t segsize)
{
	return lsn & ~((ws_lsn)segsize - 1);
}

static inline uint64_t
ws_segno(ws_lsn lsn, uint32_t segsize)
{
	return lsn / segsize;
}

/* "X/X" of up to 8 hex digits each; the whole text must be one LSN. */
int ws_lsn_parse(const char *s, ws_lsn *lsn);

/* A timeline id in decimal, the whole text. */
int ws_tli_parse(const char *s, ws_tli *tli);

/* The name of the segment that holds byte lsn; out has room for WS_WALNAME_MAX. */
void ws_seg_name(char *out, ws_tli tli, ws_lsn lsn, uint32_t segsize);

/* 24 hex digits -> timeline and first byte; 0 when it is a segment name for this segment size, else -1. */
int ws_seg_parse(const char *name, uint32_t segsize, ws_tli *tli, ws_lsn *start);

/* "NNNNNNNN.history" -> its timeline, or -1. */
int ws_history_name_parse(const char *name, ws_tli *tli);
void ws_history_name(char *out, ws_tli tli);

#endif
