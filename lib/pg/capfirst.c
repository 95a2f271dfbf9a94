/* First captures, and a shadow that stands at the backup's end and lets nobody in; see capture.h.
 *
 * A transaction with more subtransactions than fit into shared memory was open when the backup began:
 * the standby knows that it does not know them all, and takes no queries before a RUNNING_XACTS record
 * that does (procarray.c, ProcArrayApplyRecoveryInfo), or one from after the end of everything that
 * ran then.  That record is behind the gate.  Nothing is captured yet and nobody has a position, so
 * that the first capture may as well be later: the gate, pos/backup, moves to the end of the next
 * RUNNING_XACTS, again and again, until the shadow lets us in. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/tool.h"
#include "ws/walscan.h"
#include "ws/xactrec.h"

#define SAY_EVERY_US  10000000u

/* The last such record above `from` that is durable here and filtered. */
struct snapshot {
	struct ws_pos from, found; /* found: lsn 0: none */
	ws_lsn limit;
};

static int
look_for_snapshot(void *arg, const struct ws_rec *rec, const struct ws_walver *ver, struct ws_err *err)
{
	struct snapshot *s = arg;

	(void)ver;
	(void)err;
	if (rec->tli != s->from.tli || rec->end > s->limit)
		return 1;
	if (rec->rmid == WS_RM_STANDBY && (rec->info & 0xF0) == WS_RUNNING_XACTS && rec->end > s->from.lsn)
		s->found = (struct ws_pos){rec->tli, rec->end};
	return 0;
}

/* 1 moved, 0 there is no later place yet, -1. */
static int
move_on(struct cap *c, struct ws_pos *at, struct ws_err *err)
{
	struct ws_pos received, filtered;

	int r = cap_pos(c, "received", &received, err), f = r == 1 ? cap_pos(c, "filtered", &filtered, err) : r;

	if (f != 1)
		return f;
	struct snapshot s = {.from = *at, .limit = received.lsn < filtered.lsn ? received.lsn : filtered.lsn};
	char *raw = ws_asprintf("%s/raw", c->o->state), *path = ws_asprintf("%s/pos/backup", c->o->state);
	int rc = ws_walscan(raw, *at, s.limit, NULL, look_for_snapshot, &s, err);

	if (rc > 0)
		rc = 0;
	if (rc == 0 && s.found.lsn) {
		rc = ws_pos_write(path, s.found, true, err);
		if (rc == 0) {
			ws_info("the shadow refuses connections at " WS_LSN_FMT ": the first capture is at " WS_LSN_FMT,
			        WS_LSN_ARG(at->lsn), WS_LSN_ARG(s.found.lsn));
			*at = s.found;
			rc = 1;
		}
	}
	free(raw);
	free(path);
	return rc;
}

/* Everything of one database, of which nothing may be left from an earlier life. */
int
cap_first(struct cap *c, struct cap_db *db, struct ws_pos at, struct ws_err *err)
{
	const struct ws_catquery_want want = {.everything = true};

	ws_info("database %u (%s): first capture at " WS_LSN_FMT, db->oid, db->name, WS_LSN_ARG(at.lsn));
	if (ws_cathist_rewind(c->hist, db->oid, 0, err) != 0)
		return -1;
	return cap_capture(c, db, at, &want, err);
}

/* Of every database, at one place, which moves on while the shadow stands there and lets nobody in. */
int
cap_first_all(struct cap *c, struct ws_pos *at, struct ws_err *err)
{
	uint64_t said = 0;
	int rc;

	c->first = true;
	do {
		rc = 0;
		for (size_t i = 0; i < c->ndbs && rc == 0; i++)
			rc = cap_first(c, &c->dbs[i], *at, err);
		if (rc == 0 || strcmp(err->reason, "shadow_refuses_connections"))
			break;
		rc = ws_tool_stopping() ? ws_err_temp(err, "interrupted") : move_on(c, at, err);
		if (rc == 0 && ws_now_us() - said >= SAY_EVERY_US) {
			ws_info("the shadow refuses connections until a transaction with many subtransactions, which was "
			        "open at the backup, has ended on the source");
			said = ws_now_us();
		}
	} while (rc >= 0);
	c->first = false;
	return rc;
}
