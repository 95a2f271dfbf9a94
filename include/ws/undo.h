/* How far back a promotion may still take us. */
#ifndef WS_UNDO_H
#define WS_UNDO_H

#include "ws/pos.h"

/* The lowest fork that can be undone: nothing that a consumer sent (STATE/pos/sent.*) may lie past it, and a
 * kept copy of the shadow has to be at or below it.  What is needed to go back there must stay: 1 with
 * *lsn, 0 when there is no copy, -1. */
int ws_undo_lowest(const char *state, ws_lsn *lsn, struct ws_err *err);

/* The kept copies of the shadow, STATE/shadow.keep/LSN (16 hex digits): 1 with the highest at or below limit in *high,
 * and the lowest of all in *low; each may be NULL.  0: there is none such, -1. */
int ws_undo_copies(const char *state, ws_lsn limit, ws_lsn *low, ws_lsn *high, struct ws_err *err);

#endif
