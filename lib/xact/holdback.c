/* Hold-back: no record is taken that the standbys which may be promoted have not flushed.
 *
 * It stands before everything else that a record leads to: nothing that is derived from one above the
 * limit leaves this process or reaches its files, so that a promotion finds all of it at or below the
 * fork.  The position is ws-receive's, see ws/hold.h. */
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "run.h"
#include "ws/histdir.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define SAY_US  10000000u
#define LOOK_US 500000u /* for a fork behind which the record that waits has not happened */

void
ws_run_hold_open(struct ws_run *r)
{
	if (r->o->hold)
		r->hold.path = ws_hold_path(r->o->state, r->o->hold);
}

/* 1 read, 0 it is not there yet, -1. */
static int
load(const char *dir, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	struct ws_err why = {0};

	if (ws_histdir_load(dir, tli, h, &why) == 0)
		return 1;
	if (!strcmp(why.reason, "history_missing"))
		return 0;
	*err = why;
	return -1;
}

/* The limit on the timeline that is read, by what the file has now. */
static int
look(struct ws_run *r, struct ws_err *err)
{
	struct ws_holdback *h = &r->hold;
	struct ws_history newer = {0};
	struct ws_pos at = {0, 0};
	int rc = ws_pos_read(h->path, &at, err);

	/* An empty file is what a power failure leaves: ws-receive writes it again. */
	if (rc < 0 && (err->status != WS_ETEMP || err->sys))
		return -1;
	h->at = rc == 1 ? at : (struct ws_pos){0, 0};
	h->tli = r->tli;
	h->limit = 0;
	if (!h->at.lsn)
		return 0;
	if (h->at.tli != r->tli) {
		/* Until it is here nothing tells what the two have in common. */
		rc = load(r->input, h->at.tli > r->tli ? h->at.tli : r->tli, &newer, err);
		if (rc != 1)
			return rc;
	}
	h->limit = ws_hold_limit(h->at, r->tli, &newer);
	ws_history_fini(&newer);
	return 0;
}

/* 1 when the newest timeline here leaves the one that is read before lsn; then the source goes back to
 * done, which is not past that. */
static int
abandoned(struct ws_run *r, ws_lsn lsn, struct ws_err *err)
{
	struct ws_history h = {0};

	if (ws_now_us() - r->hold.looked_us < LOOK_US)
		return 0;
	r->hold.looked_us = ws_now_us();
	int rc = load(r->input, 0, &h, err);

	if (rc != 1)
		return rc;
	ws_lsn end = h.tli > r->tli ? ws_history_end(&h, r->tli) : 0;
	bool gone = end && lsn > end && r->done.lsn <= end;

	ws_history_fini(&h);
	if (!gone)
		return 0;
	ws_info("timeline %u ends at " WS_LSN_FMT ": what was held back behind it has not happened",
	        r->tli, WS_LSN_ARG(end));
	if (ws_walsrc_seek(r->src, r->done, err) != 0)
		return -1;
	r->reseek = true;
	return 1;
}

static void
say(struct ws_run *r, ws_lsn end)
{
	if (ws_now_us() - r->hold.said_us <= SAY_US)
		return;
	r->hold.said_us = ws_now_us();
	ws_info("waiting for a standby to have flushed it: hold_back=%s flushed=" WS_LSN_FMT " record=" WS_LSN_FMT,
	        r->o->hold->label, WS_LSN_ARG(r->hold.at.lsn), WS_LSN_ARG(end));
}

int
ws_run_hold_wait(struct ws_run *r, ws_lsn end, struct ws_err *err)
{
	int rc = look(r, err);

	if (rc != 0 || !ws_run_held(r, end))
		return rc == 0 ? 1 : -1;
	r->hold.waiting = true;
	r->hold.said_us = r->hold.looked_us = ws_now_us();
	for (;;) {
		if (ws_run_progress(r, err) != 0 || ws_run_flush(r, err) != 0 || ws_run_look_after(r, false, err) != 0)
			rc = -1;
		else if (ws_tool_stopping())
			break;
		else if ((rc = abandoned(r, end, err)) != 0)
			rc = rc == 1 ? 2 : -1;
		else if (ws_live_sleep(r->live, -1, 100, err) != 0 || look(r, err) != 0)
			rc = -1;
		else if (!ws_run_held(r, end))
			rc = 1;
		if (rc != 0)
			break;
		say(r, end);
	}
	r->hold.waiting = false;
	return rc;
}
