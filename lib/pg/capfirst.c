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
#include "ws/waldir.h"
#include "ws/walread.h"

#define SAY_EVERY_US  10000000u
#define RUNNING_XACTS 0x10 /* standbydefs.h, XLOG_RUNNING_XACTS */

/* The end of the last such record above `from` that is durable here and filtered; lsn 0: none. */
static int
find_snapshot(struct ws_walsrc *src, struct ws_pos from, ws_lsn limit, struct ws_pos *out, struct ws_err *err)
{
	struct ws_walreader *rd = ws_walreader_new(ws_walsrc_segsize(src), 0, 0);
	struct ws_walchunk ch;
	struct ws_rec rec;
	bool begun = false;
	int rc;

	*out = (struct ws_pos){0, 0};
	while ((rc = ws_walsrc_next(src, &ch, err)) == 1 && ch.tli == from.tli) {
		if (!begun)
			ws_walreader_seek(rd, ch.lsn, from.lsn > ch.lsn ? from.lsn : ch.lsn);
		begun = true;
		if ((rc = ws_walreader_feed(rd, ch.lsn, ch.p, ch.n, err)) != 0)
			break;
		while ((rc = ws_walsrc_record(src, ch.tli, rd, &rec, err)) == 1)
			if (rec.rmid == WS_RM_STANDBY && (rec.info & 0xF0) == RUNNING_XACTS && rec.end > from.lsn && rec.end <= limit)
				*out = (struct ws_pos){rec.tli, rec.end};
		if (rc != 0)
			break;
	}
	/* The end of what is there may be torn: it grows. */
	if (rc < 0 && (ws_walreader_torn(rd) || ws_walreader_clean_end(rd))) {
		err->msg[0] = 0;
		rc = 0;
	}
	ws_walreader_free(rd);
	return rc < 0 ? -1 : 0;
}

/* 1 moved, 0 there is no later place yet, -1. */
static int
move_on(struct cap *c, struct ws_pos *at, struct ws_err *err)
{
	const struct ws_walsrc_opts o = {0};
	struct ws_pos received, filtered, next;

	int r = cap_pos(c, "received", &received, err), f = r == 1 ? cap_pos(c, "filtered", &filtered, err) : r;

	if (f != 1)
		return f;
	ws_lsn limit = received.lsn < filtered.lsn ? received.lsn : filtered.lsn;
	char *raw = ws_asprintf("%s/raw", c->o->state), *path = ws_asprintf("%s/pos/backup", c->o->state);
	struct ws_walsrc *src = ws_walsrc_open(raw, *at, &o, err);
	int rc = src ? find_snapshot(src, *at, limit, &next, err) : -1;

	ws_walsrc_close(src);
	if (rc == 0 && next.lsn) {
		rc = ws_pos_write(path, next, true, err);
		if (rc == 0) {
			ws_info("the shadow refuses connections at " WS_LSN_FMT ": the first capture is at " WS_LSN_FMT,
			        WS_LSN_ARG(at->lsn), WS_LSN_ARG(next.lsn));
			*at = next;
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
