/* The positions of a state directory against the history of its WAL: which of them lie on a branch that
 * was left. */
#ifndef WS_HISTPOS_H
#define WS_HISTPOS_H

#include <stdbool.h>

#include "ws/history.h"
#include "ws/pos.h"

struct ws_histpos {
	const char *name; /* of the file in STATE/pos */
	struct ws_pos pos;
	ws_lsn end; /* of its timeline on that history: UINT64_MAX open, 0: it is not on it */
};

static inline bool
ws_histpos_past(const struct ws_histpos *p)
{
	return p->pos.lsn > p->end;
}

/* Calls each for every position, with the newest timeline of STATE/raw as the way; each returns 0 to go on.
 * pos/hold.* are left out: ws-receive cuts them at each switch.  -1: also reason history_missing, raw/ is
 * empty. */
int ws_histpos_each(const char *state, int (*each)(void *arg, const struct ws_histpos *p, struct ws_err *err),
                    void *arg, struct ws_err *err);

#endif
