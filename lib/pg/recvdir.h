/* What a WAL directory already holds, and the comparison of a stream's beginning with it. */
#ifndef WS_PG_RECVDIR_H
#define WS_PG_RECVDIR_H

#include "ws/err.h"

/* The end of the newest WAL in dir: of timeline tli, or of the highest segment when tli is 0.
 * {0,0} when there is none. */
int
recvdir_end(const char *dir, uint32_t segsize, ws_tli tli, struct ws_pos *end, struct ws_err *err);

/* Opens the segment that holds lsn, complete or partial; -1 with errno. */
int
recvdir_open(const char *dir, uint32_t segsize, ws_tli tli, ws_lsn lsn, int flags, bool *partial);

/* Compares n bytes at lsn (inside one segment) with the file's.  1: equal; 0: they differ, first
 * at *diff (a file that is too short differs where it ends); -1: cannot be read. */
int recvdir_compare(const char *dir, uint32_t segsize, ws_tli tli, ws_lsn lsn, const uint8_t *p,
					size_t n, ws_lsn *diff, struct ws_err *err);
/* Bytes below end are right: the segment of the last of them becomes durable (with sync), and a full
 * one gets its final name, which a kill may have left undone.  No such segment is no error. */
int recvdir_finish(const char *dir, uint32_t segsize, struct ws_pos end, bool sync,
				   struct ws_err *err);
/* Cuts the partial segment that holds lsn there. */
int recvdir_cut(const char *dir, uint32_t segsize, ws_tli tli, ws_lsn lsn, struct ws_err *err);

#endif
