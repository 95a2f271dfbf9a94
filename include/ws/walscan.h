/* Every record of a piece of WAL that is there, once. */
#ifndef WS_WALSCAN_H
#define WS_WALSCAN_H

#include "ws/pos.h"
#include "ws/record.h"
#include "ws/walpage.h"

/* Reads a WAL directory, a segment file or "-" from start (as ws_walsrc_open; lsn 0: the oldest byte) along the
 * newest timeline to its end, and calls each for every record; each returns 0 to go on, else that is what is
 * returned.  Zeros behind the last record are the end, and so is a record that is not whole.  Reading also ends
 * when what lies below stop (UINT64_MAX: everything) has been seen, and WAL that is being written may be torn
 * above it.  *reached (may be NULL): every record that ends there or below was seen, unless each stopped it. */
int ws_walscan(const char *wal, struct ws_pos start, ws_lsn stop, ws_lsn *reached,
               int (*each)(void *arg, const struct ws_rec *rec, const struct ws_walver *ver, struct ws_err *err),
               void *arg, struct ws_err *err);

#endif
