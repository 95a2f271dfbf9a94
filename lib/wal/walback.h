/* A WAL writer's appends in the background: one at a time, while the caller makes the next bytes.
 * Private to lib/wal. */
#ifndef WS_WALBACK_H
#define WS_WALBACK_H

#include "ws/waldir.h"

struct ws_walback;

/* w is used, not owned.  NULL when the system gives no thread. */
struct ws_walback *ws_walback_new(struct ws_walwriter *w);
/* Ends the append under way. */
void ws_walback_free(struct ws_walback *b);

/* Waits for the append before, then starts this one: p must stay until the next call.  An error is
 * told by the call after it, and by every later one. */
int ws_walback_append(struct ws_walback *b, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                      struct ws_err *err);
/* Waits until nothing is under way: the writer is then the caller's until the next append. */
int ws_walback_wait(struct ws_walback *b, struct ws_err *err);

#endif
