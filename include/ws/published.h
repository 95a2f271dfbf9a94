/* What went to a destination, against a history: nothing of it may be taken back. */
#ifndef WS_PUBLISHED_H
#define WS_PUBLISHED_H

#include "ws/history.h"

/* Does all that consumers sent (STATE/pos/sent.*) lie on history h?  Else WS_EOPERATOR
 * reason=published_past_fork.  *most (may be NULL) becomes the highest of the positions, {0, 0} without
 * any.  state NULL: nothing was sent. */
int ws_published_check(const char *state, const struct ws_history *h, struct ws_pos *most, struct ws_err *err);

#endif
