/* A WAL writer's appends in the background, while the caller makes the next bytes.  Private to
 * lib/wal. */
#ifndef WS_WALBACK_H
#define WS_WALBACK_H

#include "ws/filterdir.h"
#include "ws/waldir.h"

#define WS_WALBACK_DEPTH WS_FILTERDIR_DEPTH /* appends that are under way at most */

struct ws_walback;

/* w is used, not owned.  NULL when the system gives no thread. */
struct ws_walback *ws_walback_new(struct ws_walwriter *w);
/* Ends the appends under way. */
void ws_walback_free(struct ws_walback *b);

/* Queues an append, when WS_WALBACK_DEPTH are under way after the oldest has ended.  p must stay until
 * then, or until ws_walback_wait says so.  Bytes that lie behind each other in memory too are
 * written as one.  An error is told by a later call, and by every one after it. */
int ws_walback_append(struct ws_walback *b, ws_tli tli, ws_lsn lsn, const uint8_t *p, size_t n,
                      struct ws_err *err);
/* Waits until `most` appends, the last, are under way.  With 0 the writer is the caller's until the
 * next append. */
int ws_walback_wait(struct ws_walback *b, unsigned most, struct ws_err *err);

#endif
