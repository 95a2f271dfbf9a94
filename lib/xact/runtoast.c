/* A run's TOAST store: opening, tending it, and timelines. */
#include <stdlib.h>

#include "live.h"
#include "run.h"
#include "ws/toaststore.h"

#define PURGE_AT_ONCE 4096u

static int
before_floor(void *arg, struct ws_err *err)
{
	return ws_toaststore_sync(arg, err);
}

int
ws_run_toast_open(struct ws_run *r, struct ws_err *err)
{
	const struct ws_decoding_opts *o = r->o;
	char *dir = o->toast ? ws_strdup(o->toast)
	          : o->consumer ? ws_asprintf("%s/consumer/%s/toast", o->state, o->consumer)
	                        : NULL;

	if (o->scratch)
		r->spill = ws_strdup(o->scratch);
	else if (o->consumer)
		r->spill = ws_asprintf("%s/consumer/%s", o->state, o->consumer);
	if (!dir)
		return 0;
	r->toast = ws_toaststore_open(dir, r->cluster.system_id, r->db, err);
	free(dir);
	if (!r->toast)
		return -1;
	if (r->live) {
		r->live->before_floor = before_floor;
		r->live->arg = r->toast;
	}
	return 0;
}

/* The store may have commits of a timeline that was left, which nobody acknowledged. */
int
ws_run_toast_route(struct ws_run *r, struct ws_err *err)
{
	const struct ws_history *h = ws_walsrc_history(r->src);

	if (!r->toast || !h)
		return 0;
	struct ws_pos have = ws_toaststore_applied(r->toast);
	ws_lsn end = have.lsn ? ws_history_end(h, have.tli) : UINT64_MAX;

	/* Up to that timeline's end the path is the same. */
	if (end)
		return ws_toaststore_fork(r->toast, r->tli, end, end, err);
	/* A timeline that is not on the path at all: what is not acknowledged is read again, all of it. */
	ws_lsn keep = r->live ? r->live->ack.lsn : r->start.lsn;

	if (have.lsn <= keep)
		return 0;
	if (ws_toaststore_fork(r->toast, r->tli, keep, UINT64_MAX, err) != 0)
		return -1;
	return r->dec ? ws_err_temp(err, "the TOAST store was on timeline %u, which is not that of the "
	                                 "WAL: starting again", have.tli)
	              : 0;
}

int
ws_run_toast_tend(struct ws_run *r, struct ws_err *err)
{
	ws_lsn floor = r->live ? r->live->floor.lsn : 0;
	int rc;

	if (ws_toaststore_tend(r->toast, err) != 0)
		return -1;
	if (!floor || floor == r->purged)
		return 0;
	rc = ws_toaststore_purge(r->toast, floor, PURGE_AT_ONCE, err);
	if (rc == 0)
		r->purged = floor;
	return rc < 0 ? -1 : 0;
}
