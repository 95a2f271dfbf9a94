/* Transactions that were prepared at a fork, and a consumer that had passed it; see capture.h.
 *
 * A floor is at or below the first record of every transaction that is open.  One that was prepared
 * below the fork and ended past it, on the branch that was left - by a ROLLBACK PREPARED, or without a row
 * for us - no longer holds the floor, and is still prepared on the branch that goes on.  So: those that
 * PostgreSQL lists after the fork, and those that end before it does, must not end in what was left and had
 * been passed. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "ws/cursor.h"
#include "ws/file.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/mem.h"
#include "ws/waldir.h"
#include "ws/walscan.h"
#include "ws/xactrec.h"

#define RUNNING_MAX (1u << 20)

struct xids {
	ws_xid *v;
	uint32_t n;
};

struct prepared {
	bool listed;
	struct xids at; /* prepared at the fork, as far as nothing tells that they are at work; 0: one that is */
	struct xids since; /* prepared between the fork and the list */
	ws_xid ended; /* of those at the fork, on the branch that was left */
	ws_lsn passed; /* up to there, which counts */
};

static void
add(struct xids *s, ws_xid xid)
{
	if ((s->n & (s->n + 1)) == 0) /* 0, 1, 3, 7, ...: double */
		s->v = ws_realloc(s->v, (s->n * 2 + 1) * sizeof *s->v);
	s->v[s->n++] = xid;
}

/* Its place, or NULL. */
static ws_xid *
find(const struct xids *s, ws_xid xid)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->v[i] == xid)
			return &s->v[i];
	return NULL;
}

static int
take_list(struct prepared *p, const struct ws_rec *rec, struct ws_err *err)
{
	struct ws_record r;

	if (ws_record_parse(rec, &r, err) != 0)
		return -1;
	uint32_t n = r.main_len < WS_RUNNING_XACTS_MIN ? UINT32_MAX : ws_le32(r.main);

	if (n > RUNNING_MAX || r.main_len < WS_RUNNING_XACTS_MIN + 4 * n)
		return ws_err_op(err, "wal_corrupt", WS_LSN_FMT ": short RUNNING_XACTS record", WS_LSN_ARG(rec->start));
	p->listed = true;
	for (uint32_t i = 0; i < n; i++) {
		ws_xid xid = ws_le32(r.main + WS_RUNNING_XACTS_MIN + 4 * i);

		if (!find(&p->since, xid))
			add(&p->at, xid);
	}
	return 0;
}

/* The PREPARE of a transaction, or the end of one that was prepared: 1, 0 another record, -1. */
static int
parse(const struct ws_rec *rec, const struct ws_walver *ver, struct ws_xactrec *x, struct ws_err *err)
{
	struct ws_record r;

	if (rec->rmid != WS_RM_XACT)
		return 0;
	int rc = ws_record_parse(rec, &r, err) == 0 ? ws_xactrec_parse(&r, ver, x, err) : -1;

	return rc <= 0 ? rc
	               : x->op == WS_XACT_PREPARE || x->op == WS_XACT_COMMIT_PREPARED || x->op == WS_XACT_ABORT_PREPARED;
}

/* A record of its own tells that a transaction is at work: the end of a prepared one has none.  One that is
 * over before there is a list was prepared at the fork, unless its PREPARE came since. */
static int
list(void *arg, const struct ws_rec *rec, const struct ws_walver *ver, struct ws_err *err)
{
	struct prepared *p = arg;
	struct ws_xactrec x;
	ws_xid *own = rec->xid ? find(&p->at, rec->xid) : NULL;

	if (own)
		*own = 0;
	if (p->listed)
		return 0;
	if (rec->rmid == WS_RM_STANDBY && (rec->info & 0xF0) == WS_RUNNING_XACTS)
		return take_list(p, rec, err);
	int rc = parse(rec, ver, &x, err);

	if (rc == 1 && x.op == WS_XACT_PREPARE)
		add(&p->since, x.xid);
	else if (rc == 1 && !find(&p->since, x.xid))
		add(&p->at, x.xid);
	return rc < 0 ? -1 : 0;
}

static int
look_for_end(void *arg, const struct ws_rec *rec, const struct ws_walver *ver, struct ws_err *err)
{
	struct prepared *p = arg;
	struct ws_xactrec x;
	int rc = rec->end > p->passed ? 0 : parse(rec, ver, &x, err);

	if (rc == 1 && x.op != WS_XACT_PREPARE && find(&p->at, x.xid))
		p->ended = x.xid;
	return rc < 0 ? -1 : p->ended != 0;
}

/* ---- what was left ---- */

/* The segments of what was left under the names that they had: links in a folder, or none again. */
static void
link_left(const char *raw, const char *dir, uint32_t segsize, struct ws_pos from, ws_lsn to, bool make)
{
	static const char *const kinds[][2] = {
		{WS_WAL_ABANDONED, ""}, {".partial" WS_WAL_ABANDONED, ".partial"}, {"", ""}, {".partial", ".partial"}};
	bool done = false;

	for (ws_lsn at = ws_seg_start(from.lsn, segsize); at < to; at += segsize, done = false)
		for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !done; i++) {
			char name[WS_WALNAME_MAX];

			ws_seg_name(name, from.tli, at, segsize);
			char *old = ws_asprintf("%s/%s%s", raw, name, kinds[i][0]),
				 *new = ws_asprintf("%s/%s%s", dir, name, kinds[i][1]);

			if (make)
				done = access(old, F_OK) == 0 && symlink(old, new) == 0;
			else
				unlink(new);
			free(old);
			free(new);
		}
}

/* Is one of them over in (from, ack] of what was left?  1: yes, or it cannot be read. */
static int
scan_left(struct cap *c, const char *raw, struct prepared *p, struct ws_pos from, ws_lsn ack, struct ws_err *err)
{
	char *dir = ws_asprintf("%s/run/left", c->o->state);
	struct ws_cluster cluster;
	struct ws_err why = {0};
	ws_lsn reached = 0;
	int rc = ws_cluster_read(c->o->state, &cluster, err) == 1 ? ws_mkdir_p(dir, 0700, err) : -1;

	if (rc == 0) {
		link_left(raw, dir, cluster.segsize, from, ack, false);
		link_left(raw, dir, cluster.segsize, from, ack, true);
		rc = ws_walscan(dir, from, ack, &reached, look_for_end, p, &why) != 0 || reached < ack;
		if (rc && why.msg[0])
			ws_warn("what was left cannot be read: %s", why.msg);
		link_left(raw, dir, cluster.segsize, from, ack, false);
		rmdir(dir);
	}
	free(dir);
	return rc;
}

int
cap_check_prepared(struct cap *c, const char *consumer, struct ws_pos fork, struct ws_pos ack,
                   struct ws_err *err)
{
	char *raw = ws_asprintf("%s/raw", c->o->state);
	struct prepared p = {.passed = ack.lsn};
	struct ws_pos received;
	bool any = false;
	int rc = cap_pos(c, "received", &received, err);

	if (rc == 1)
		rc = ws_walscan(raw, fork, received.lsn, NULL, list, &p, err);
	if (rc == 0 && !p.listed)
		rc = ws_err_temp(err, "what is prepared at " WS_LSN_FMT " is not received yet", WS_LSN_ARG(fork.lsn));
	for (uint32_t i = 0; i < p.at.n; i++)
		any |= p.at.v[i] != 0;
	if (rc == 0 && any)
		rc = scan_left(c, raw, &p, (struct ws_pos){ack.tli, fork.lsn}, ack.lsn, err);
	if (rc == 1)
		rc = ws_err_op(err, "prepared_xact_present",
		               "consumer %s has passed the end of a transaction that is prepared at " WS_LSN_FMT
		               ", where timeline %u was left: what it has of it is gone",
		               consumer, WS_LSN_ARG(fork.lsn), ack.tli);
	free(p.at.v);
	free(p.since.v);
	free(raw);
	return rc;
}
