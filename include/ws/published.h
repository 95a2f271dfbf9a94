/* What went to a destination, against a history: nothing of it may be taken back. */
#ifndef WS_PUBLISHED_H
#define WS_PUBLISHED_H

#include "ws/history.h"
#include "ws/pos.h"

/* Does all that consumers sent (STATE/pos/sent.*) lie on history h?  Else WS_EOPERATOR
 * reason=published_past_fork.  *most (may be NULL) becomes the highest of the positions, {0, 0} without
 * any.  state NULL: nothing was sent. */
int ws_published_check(const char *state, const struct ws_history *h, struct ws_pos *most, struct ws_err *err);

/* The same, and as long as the fence stands nothing is sent that lies past the end of timeline tli on h, by whoever
 * has it in hand: STATE/pos/fence, durable. */
int ws_published_fence(const char *state, const struct ws_history *h, ws_tli tli, struct ws_pos *most,
                       struct ws_err *err);
/* Timeline tli goes on: a fence in its way is removed. */
int ws_published_unfence(const char *state, ws_tli tli, struct ws_err *err);

/* Something up to p is about to be sent: moves sent, the path of a pos/sent.NAME, there, durable.  Past the fence:
 * WS_ETEMP, and nothing may be sent. */
int ws_published_move(const char *state, const char *sent, struct ws_pos p, struct ws_err *err);

#endif
