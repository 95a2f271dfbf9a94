/* What went to a destination, against a history; see ws/published.h. */
#include <string.h>

#include "ws/lsn.h"
#include "ws/published.h"
#include "ws/statepos.h"

struct published {
	const struct ws_history *h;
	struct ws_pos most;
};

static int
check_sent(void *arg, const char *name, struct ws_pos pos, struct ws_err *err)
{
	struct published *p = arg;
	ws_lsn end = ws_history_end(p->h, pos.tli);

	if (pos.lsn > p->most.lsn)
		p->most = pos;
	if (pos.lsn <= end)
		return 0;
	return ws_err_op(err, "published_past_fork",
	                 "consumer %s sent changes up to " WS_LSN_FMT " of timeline %u, which was left at " WS_LSN_FMT
	                 " for timeline %u",
	                 name + strlen("sent."), WS_LSN_ARG(pos.lsn), pos.tli, WS_LSN_ARG(end), p->h->tli);
}

int
ws_published_check(const char *state, const struct ws_history *h, struct ws_pos *most, struct ws_err *err)
{
	struct published p = {.h = h};
	int rc = state ? ws_statepos_each(state, "sent.", check_sent, &p, err) : 0;

	if (most)
		*most = p.most;
	return rc;
}
