/* Following raw/ from boundary to boundary; see ws/capture.h.
 *
 * One reader serves all databases, in WAL order.  A boundary of a database is captured while the
 * shadow, which ws-walsend parks there, shows it; every other position moves on with raw/, never
 * past `received`.  A database that joins later is captured whole at the next boundary of one that
 * is followed already: there the shadow stands still, and what follows is seen. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "capture.h"
#include "ws/file.h"
#include "ws/history.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/temprel.h"
#include "ws/tool.h"
#include "ws/undo.h"
#include "ws/waldir.h"
#include "ws/walread.h"

#define SAY_EVERY_US      10000000u
#define PRUNE_EVERY_US    600000000ull
#define PRUNE_BOUNDARIES  1000 /* fewer are not worth a sweep */

/* The reading side. */
struct tail {
	struct cap *c;
	struct ws_walsrc *src;
	struct ws_walreader *reader;
	ws_tli tli;
	struct ws_pos received;
	struct ws_temprels *temps;
	struct ws_pos passed; /* the last boundary that needed no capture; lsn 0: positions are past it */
	int notify; /* inotify on pos/ */
	/* Ends of records that were read, ascending; those above `received` wait for it.  A position is
	 * always a record's end: reading that starts inside a record would not see it. */
	ws_lsn *ends;
	size_t nends, cap;
	uint64_t pruned_at;
	double pruned_boundaries;
};

/* ---- waiting ---- */

static void
drain(int fd)
{
	char junk[4096];

	while (read(fd, junk, sizeof junk) > 0)
		;
}

/* Until raw/ or a position file may have changed, a signal came, or timeout_ms passed. */
static void
wait_change(struct tail *t, int timeout_ms)
{
	int raw = t->src ? ws_walsrc_fd(t->src) : -1;
	struct pollfd fds[3] = {{.fd = ws_tool_signal_fd(), .events = POLLIN},
	                        {.fd = t->notify, .events = POLLIN},
	                        {.fd = raw, .events = POLLIN}};

	/* Without a descriptor for raw/ its growth is looked for. */
	poll(fds, 3, t->src && raw < 0 && timeout_ms > 20 ? 20 : timeout_ms);
	drain(t->notify);
}

/* Waits for a position file, saying so. */
static int
need_pos(struct tail *t, const char *name, const char *what, struct ws_pos *pos, struct ws_err *err)
{
	uint64_t said = 0;

	for (;;) {
		int rc = cap_pos(t->c, name, pos, err);

		if (rc)
			return rc < 0 ? -1 : 0;
		if (ws_tool_stopping())
			return ws_err_temp(err, "interrupted");
		if (ws_now_us() - said >= SAY_EVERY_US) {
			ws_info("waiting for %s (pos/%s)", what, name);
			said = ws_now_us();
		}
		wait_change(t, 1000);
		ws_tool_take_hup();
	}
}

/* Nothing is announced above what is on disk here: waits until `received` is there. */
static int
need_received(struct tail *t, struct ws_pos at, struct ws_err *err)
{
	struct ws_pos received;
	uint64_t say = ws_now_us() + 1000000;

	for (;;) {
		if (need_pos(t, "received", "WAL from the source", &received, err) != 0)
			return -1;
		/* A newer timeline's copy holds all of this one that counts. */
		if (received.tli > at.tli || received.lsn >= at.lsn)
			return 0;
		if (ws_tool_stopping())
			return ws_err_temp(err, "interrupted");
		if (ws_now_us() >= say) {
			ws_info("waiting for pos/received to reach " WS_LSN_FMT, WS_LSN_ARG(at.lsn));
			say = ws_now_us() + SAY_EVERY_US;
		}
		wait_change(t, 100);
		ws_tool_take_hup();
	}
}

/* ---- first captures ---- */

static bool
any_captured(const struct cap *c)
{
	for (size_t i = 0; i < c->ndbs; i++)
		if (c->dbs[i].has)
			return true;
	return false;
}

/* Nobody has a position: the gate is the backup's end.  Positions are written when all are done,
 * since the first of them opens the gate. */
static int
capture_backup(struct tail *t, struct ws_err *err)
{
	struct cap *c = t->c;
	struct ws_pos at;
	uint64_t said = 0;

	while (c->ndbs == 0) {
		if (ws_tool_stopping())
			return ws_err_temp(err, "interrupted");
		if (ws_now_us() - said >= SAY_EVERY_US) {
			ws_info("waiting for a consumer (consumer/NAME/config)");
			said = ws_now_us();
		}
		wait_change(t, 500);
		ws_tool_take_hup();
		if (cap_scan(c, err) != 0)
			return -1;
	}
	if (any_captured(c))
		return 0;
	if (need_pos(t, "backup", "the base backup of the shadow", &at, err) != 0)
		return -1;
	if (cap_first_all(c, &at, err) != 0)
		return -1;
	if (need_received(t, at, err) != 0)
		return -1;
	for (size_t i = 0; i < c->ndbs; i++)
		if (!c->dbs[i].dropped && cap_move(c, &c->dbs[i], at, true, err) != 0)
			return -1;
	return any_captured(c) ? 0 : ws_err_usage(err, "database %u (%s) did not exist at " WS_LSN_FMT, c->dbs[0].oid,
	                                          c->dbs[0].name, WS_LSN_ARG(at.lsn));
}

/* 1: the parked shadow has the database (its name is brought up to date), 0: not created yet. */
static int
exists(struct cap *c, struct cap_db *db, struct ws_err *err)
{
	char sql[80];

	for (size_t i = 0; i < c->ndbs; i++) {
		if (!c->dbs[i].conn)
			continue;
		snprintf(sql, sizeof sql, "SELECT datname FROM pg_database WHERE oid = %u", db->oid);
		PGresult *res = ws_pg_exec(c->dbs[i].conn, sql, "cannot read pg_database", err);
		int rc = res ? PQntuples(res) : -1;

		if (rc == 1) {
			free(db->name);
			db->name = ws_strdup(PQgetvalue(res, 0, 0));
		}
		PQclear(res);
		return rc;
	}
	return 0;
}

/* Databases that joined, while the shadow stands at `at`. */
static int
capture_joined(struct cap *c, struct ws_pos at, struct ws_err *err)
{
	if (cap_scan(c, err) != 0)
		return -1;
	for (size_t i = 0; i < c->ndbs; i++) {
		struct cap_db *db = &c->dbs[i];

		if (db->has)
			continue;
		int rc = exists(c, db, err);

		/* Not created yet, for the shadow, or not to be asked now: at a later boundary. */
		if (rc <= 0)
			continue;
		if (cap_first(c, db, at, err) != 0 || cap_move(c, db, at, true, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- boundaries ---- */

static bool
concerns(const struct cap_db *db, const struct ws_boundary *b, ws_lsn end)
{
	return db->has && db->captured.lsn < end && ws_boundary_for(b, db->oid);
}

/* The gate stands at the first boundary above captured, one that needs no capture included. */
static int
move_passed(struct tail *t, struct ws_err *err)
{
	if (!t->passed.lsn)
		return 0;
	if (need_received(t, t->passed, err) != 0)
		return -1;
	if (cap_pass(t->c, t->passed, err) != 0)
		return -1;
	t->passed.lsn = 0;
	return 0;
}

static int
capture_boundary(struct tail *t, const struct ws_xactrec *x, const struct ws_boundary *b, struct ws_pos at,
                 struct ws_err *err)
{
	struct cap *c = t->c;
	struct ws_boundary_ids ids;
	bool any = false;
	int rc = 0;

	for (size_t i = 0; i < c->ndbs; i++)
		any |= concerns(&c->dbs[i], b, at.lsn);
	if (!any)
		return 0;
	ws_boundary_ids(x, ws_walreader_ver(t->reader), &ids);
	const struct ws_catquery_want want = {.boundary = b, .ids = &ids};

	++*c->m_boundaries;
	rc = cap_temporary(c, t->temps, b, &ids, err);
	if (rc > 0) {
		++*c->m_temporary;
		t->passed = at;
	}
	if (rc != 0) {
		ws_boundary_ids_fini(&ids);
		return rc < 0 ? -1 : 0;
	}
	rc = move_passed(t, err);
	for (size_t i = 0; i < c->ndbs && rc == 0; i++) {
		struct cap_db *db = &c->dbs[i];

		if (concerns(db, b, at.lsn) && !db->dropped)
			rc = cap_capture(c, db, at, &want, err);
	}
	if (rc == 0)
		rc = need_received(t, at, err);
	if (rc == 0)
		rc = capture_joined(c, at, err);
	/* Only now may the gate move. */
	for (size_t i = 0; i < c->ndbs && rc == 0; i++)
		if (concerns(&c->dbs[i], b, at.lsn))
			rc = cap_move(c, &c->dbs[i], at, true, err) != 0 ? -1 : cap_temp_files(c, t->temps, &c->dbs[i], err);
	ws_boundary_ids_fini(&ids);
	return rc;
}

static int
take_record(struct tail *t, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;
	struct ws_xactrec x;
	const struct ws_walver *ver = ws_walreader_ver(t->reader);

	if (rec->rmid != WS_RM_XACT) {
		ws_temprels_record(t->temps, rec, ver);
		return 0;
	}
	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	int rc = ws_xactrec_parse(&r, ver, &x, err);

	if (rc <= 0)
		return rc;
	struct ws_boundary b = ws_boundary_of(&x, ver);

	return b.is ? capture_boundary(t, &x, &b, (struct ws_pos){rec->tli, rec->end}, err) : 0;
}

/* ---- reading raw/ ---- */

static int
open_tail(struct tail *t, struct ws_err *err)
{
	struct cap *c = t->c;
	struct ws_cluster cluster;
	struct ws_pos start = {0};
	struct ws_walsrc_opts o = {.follow = true};
	char *raw = ws_asprintf("%s/raw", c->o->state);
	int rc = ws_cluster_read(c->o->state, &cluster, err);

	if (rc == 0)
		rc = ws_err_temp(err, "%s/cluster does not exist: ws-receive has not run yet", c->o->state);
	if (rc < 0)
		goto out;
	for (size_t i = 0; i < c->ndbs; i++)
		if (c->dbs[i].has && (!start.lsn || c->dbs[i].captured.lsn < start.lsn))
			start = c->dbs[i].captured;
	o.segsize = cluster.segsize;
	t->tli = start.tli;
	rc = -1;
	if (!(t->src = ws_walsrc_open(raw, start, &o, err)))
		goto out;
	t->reader = ws_walreader_new(cluster.segsize, cluster.system_id, 0);
	/* The first chunk begins at a page or segment before it. */
	rc = 0;
	ws_info("reading %s from " WS_LSN_FMT, raw, WS_LSN_ARG(start.lsn));
out:
	free(raw);
	return rc;
}

static ws_lsn
lowest_captured(const struct cap *c)
{
	ws_lsn low = UINT64_MAX;

	for (size_t i = 0; i < c->ndbs; i++)
		if (c->dbs[i].has && c->dbs[i].captured.lsn < low)
			low = c->dbs[i].captured.lsn;
	return low;
}

/* The descendant's copy of the fork's segment begins: go on in it where the ancestor was left. */
static int
switch_timeline(struct tail *t, const struct ws_walchunk *ch, struct ws_err *err)
{
	const struct ws_history *h = ws_walsrc_history(t->src);
	ws_lsn at = h ? ws_history_end(h, t->tli) : 0;

	if (!at)
		return ws_err_op(err, "timeline_unknown", "timeline %u does not come from timeline %u", ch->tli, t->tli);
	for (size_t i = 0; i < t->c->ndbs; i++)
		if (t->c->dbs[i].has && t->c->dbs[i].captured.lsn > at)
			return ws_err_op(err, "captured_past_fork",
			                 "database %u was captured up to " WS_LSN_FMT ", timeline %u left %u at " WS_LSN_FMT
			                 ": go back with ws-catalog rewind",
			                 t->c->dbs[i].oid, WS_LSN_ARG(t->c->dbs[i].captured.lsn), ch->tli, t->tli,
			                 WS_LSN_ARG(at));
	ws_info("timeline %u from " WS_LSN_FMT, ch->tli, WS_LSN_ARG(at));
	if (ws_walreader_ver(t->reader))
		ws_walreader_fork(t->reader, ch->lsn, at);
	else
		ws_walreader_seek(t->reader, ch->lsn, lowest_captured(t->c));
	t->tli = ch->tli;
	t->nends = 0;
	/* What the ancestor had above the fork has not happened. */
	if (t->passed.lsn > at)
		t->passed.lsn = 0;
	ws_temprels_free(t->temps);
	t->temps = cap_temp_new(t->c, err);
	return t->temps ? 0 : -1;
}

static void
note_end(struct tail *t)
{
	ws_lsn end = ws_walreader_end(t->reader);

	if (!end || (t->nends && t->ends[t->nends - 1] >= end))
		return;
	if (t->nends == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 64;
		t->ends = ws_realloc(t->ends, t->cap * sizeof *t->ends);
	}
	t->ends[t->nends++] = end;
}

/* Up to where this timeline's WAL is durable here. */
static ws_lsn
durable(const struct tail *t)
{
	if (t->received.tli == t->tli)
		return t->received.lsn;
	/* The switch has not been read yet: what lies beyond it is another history. */
	const struct ws_history *h = ws_walsrc_history(t->src);
	ws_lsn end = h ? ws_history_end(h, t->tli) : 0;

	return end == UINT64_MAX ? 0 : end;
}

/* Moves every position, now that no boundary holds it. */
static int
advance(struct tail *t, struct ws_err *err)
{
	ws_lsn limit = durable(t);
	size_t n = 0;

	while (n < t->nends && t->ends[n] <= limit)
		n++;
	if (!n)
		return 0;
	const struct ws_pos pos = {t->tli, t->ends[n - 1]};

	if (t->passed.lsn && t->passed.lsn <= pos.lsn) {
		if (cap_pass(t->c, t->passed, err) != 0)
			return -1;
		t->passed.lsn = 0;
	}
	t->nends -= n;
	memmove(t->ends, t->ends + n, t->nends * sizeof *t->ends);
	for (size_t i = 0; i < t->c->ndbs; i++)
		if (t->c->dbs[i].has && cap_move(t->c, &t->c->dbs[i], pos, false, err) != 0)
			return -1;
	return 0;
}

/* One chunk: 1 taken, 0 none there, -1. */
static int
read_chunk(struct tail *t, struct ws_err *err)
{
	struct ws_walchunk ch;
	struct ws_rec rec;
	int rc = ws_walsrc_next(t->src, &ch, err);

	if (rc <= 0)
		return rc;
	if (ch.tli != t->tli) {
		if (switch_timeline(t, &ch, err) != 0)
			return -1;
	} else if (!ws_walreader_ver(t->reader)) {
		/* The page's earlier records are seen again; what they say is known. */
		ws_walreader_seek(t->reader, ch.lsn, ch.lsn);
	}
	if (ws_walreader_feed(t->reader, ch.lsn, ch.p, ch.n, err) != 0)
		return -1;
	while ((rc = ws_walsrc_record(t->src, t->tli, t->reader, &rec, err)) == 1)
		if (take_record(t, &rec, err) != 0)
			return -1;
	note_end(t);
	return rc < 0 ? -1 : 1;
}

/* What no consumer can ask for any more goes, once in a while. */
static int
prune(struct tail *t, struct ws_err *err)
{
	struct cap *c = t->c;
	uint64_t now = ws_now_us();

	if (now - t->pruned_at < PRUNE_EVERY_US || *c->m_boundaries - t->pruned_boundaries < PRUNE_BOUNDARIES)
		return 0;
	t->pruned_at = now;
	t->pruned_boundaries = *c->m_boundaries;
	ws_lsn floor, undo = UINT64_MAX;

	if (ws_undo_lowest(c->o->state, &undo, err) < 0)
		return -1;
	for (size_t i = 0; i < c->ndbs; i++) {
		if (cap_floor(c, c->dbs[i].oid, &floor, err) != 0)
			return -1;
		if (floor > undo)
			floor = undo;
		if (floor && c->dbs[i].has && ws_cathist_prune(c->hist, c->dbs[i].oid, floor, err) != 0)
			return -1;
	}
	return 0;
}

static int
follow(struct tail *t, struct ws_err *err)
{
	uint64_t scanned = ws_now_us();

	while (!ws_tool_stopping()) {
		int rc = read_chunk(t, err);

		if (rc < 0)
			return -1;
		int known = cap_pos(t->c, "received", &t->received, err);

		if (known < 0)
			return -1;
		if (known && advance(t, err) != 0)
			return -1;
		if (ws_metrics_write(ws_tool_metrics(), 1, err) != 0)
			ws_warn("%s", err->msg);
		if (rc == 1)
			continue;
		if (prune(t, err) != 0)
			return -1;
		/* A new consumer is known early, and captured at the next boundary. */
		if (ws_tool_take_hup() || ws_now_us() - scanned > 2000000) {
			scanned = ws_now_us();
			if (cap_scan(t->c, err) != 0)
				return -1;
		}
		wait_change(t, 1000);
		/* Lets the source look at what its descriptor announced. */
		if (ws_walsrc_wait(t->src, 0, err) != 0)
			return -1;
	}
	return 0;
}

static int
start(struct tail *t, struct ws_err *err)
{
	struct cap *c = t->c;
	char *pos = ws_asprintf("%s/pos", c->o->state), *dir = ws_asprintf("%s/catalog", c->o->state);
	int rc = -1;

	if (ws_mkdir_p(pos, 0700, err) != 0)
		goto out;
	t->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (t->notify < 0 || inotify_add_watch(t->notify, pos, IN_MOVED_TO) < 0) {
		ws_err_sys(err, "%s: cannot watch", pos);
		goto out;
	}
	if (!(c->hist = ws_cathist_open(dir, true, err)) || cap_scan(c, err) != 0 || capture_backup(t, err) != 0)
		goto out;
	/* What the history knows may be ahead of the file, and of `received`: a capture is stored before
	 * its boundary is known to be durable. */
	for (size_t i = 0; i < c->ndbs; i++) {
		struct ws_pos at = c->dbs[i].captured;

		if (!c->dbs[i].has)
			continue;
		c->dbs[i].captured.lsn = 0;
		if (need_received(t, at, err) != 0 || cap_move(c, &c->dbs[i], at, true, err) != 0)
			goto out;
	}
	rc = (t->temps = cap_temp_new(c, err)) ? open_tail(t, err) : -1;
out:
	free(pos);
	free(dir);
	return rc;
}

int
ws_capture_run(const struct ws_capture_opts *o, struct ws_err *err)
{
	struct cap c = {.o = o};
	struct tail t = {.c = &c, .notify = -1, .pruned_at = ws_now_us()};

	c.shadow = o->shadow ? ws_strdup(o->shadow) : ws_asprintf("host='%s/run' port=5433", o->state);
	cap_metrics(&c);
	int rc = start(&t, err);

	if (rc == 0)
		rc = follow(&t, err);
	/* Told to stop while waiting: an orderly end. */
	if (rc != 0 && ws_tool_stopping() && err->status == WS_ETEMP)
		rc = 0;
	free(t.ends);
	ws_temprels_free(t.temps);
	ws_walreader_free(t.reader);
	ws_walsrc_close(t.src);
	if (t.notify >= 0)
		close(t.notify);
	cap_fini(&c);
	return rc;
}
