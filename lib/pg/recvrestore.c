/* Going on from the archive, as a standby does, when the server has no longer what we need or is not
 * there; see receiver.h.
 *
 * The way is the history of the server's timeline, or without a server that of the newest timeline that
 * the archive knows.  Bytes go to the output as those of a stream do: each timeline's up to its switch,
 * then the switch, then the next one's from the start of that segment, all out of the one file that
 * carries the newest timeline's name. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "receiver.h"
#include "ws/arcpath.h"
#include "ws/cluster.h"
#include "ws/file.h"
#include "ws/histdir.h"
#include "ws/lsn.h"
#include "ws/tool.h"

#define GAP_WAIT_US 60000000 /* an archive may be behind the server that removed the segment */

struct round {
	struct ws_history h; /* the way */
	struct ws_pos kept;  /* where it began */
	ws_lsn seg;          /* the segment at hand */
	unsigned restored;
};

bool
receiver_asks_archive(const struct receiver *r, const struct ws_err *err)
{
	struct ws_err ignored;

	if (!r->o->restore_command || r->local || (r->out && recvout_check(r->out, &ignored) != 0))
		return false;
	if (!r->connected)
		return err->status == WS_ETEMP && !r->o->no_loop && !ws_tool_stopping();
	return !strcmp(err->reason, "wal_missing") || !strcmp(err->reason, "slot_too_new");
}

/* ---- the way ---- */

static int
load_way(struct receiver *r, ws_tli tli, struct ws_history *h, struct ws_err *err)
{
	struct ws_buf b = {0};
	const char *source;
	bool ours = tli == recvout_kept(r->out).tli;
	int rc = ours ? ws_histdir_load(r->o->dir, tli, h, err) : 0;

	/* Ours is here, but for a directory that somebody else has begun. */
	if (!ours || (rc != 0 && !strcmp(err->reason, "history_missing")))
		rc = receiver_history(r, tli, h, &b, &source, err);
	ws_buf_free(&b);
	return rc;
}

static int
find_way(struct receiver *r, struct round *a, struct ws_err *err)
{
	ws_tli tli = a->kept.tli > r->src.pos.tli ? a->kept.tli : r->src.pos.tli;

	if (!r->connected && receiver_archive_newest(r, &tli, err) != 0)
		return -1;
	if (load_way(r, tli, &a->h, err) != 0)
		return -1;
	if (ws_history_prove(&a->h, a->kept.tli, a->kept.lsn, err) == 0 &&
		ws_history_ascends(&a->h, a->kept.tli, err) == 0)
		return 0;
	if (r->connected)
		return -1;
	/* A server's word is needed to leave a branch.  Going on along ours would not be right either. */
	err->status = WS_ETEMP;
	return ws_err_prefix(err, "the archive goes another way, a server must tell which is right");
}

/* ---- a segment into the output ---- */

/* The file's bytes from r->pushed up to `to`: 0, ENDPOS, STOPPING or -1. */
static int
push_up_to(struct receiver *r, int fd, ws_lsn seg, ws_lsn to, struct ws_err *err)
{
	uint8_t *buf = ws_malloc(RESTORE_PIECE);
	bool last = r->o->endpos && to >= r->o->endpos;
	int rc = 0;

	if (last)
		to = r->o->endpos;
	while (rc == 0 && r->pushed < to) {
		size_t want = to - r->pushed < RESTORE_PIECE ? (size_t)(to - r->pushed) : RESTORE_PIECE;
		ssize_t n = pread(fd, buf, want, (off_t)(r->pushed - seg));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			rc = n < 0 ? ws_err_sys(err, "cannot read what was restored")
					   : ws_err_temp(err, "what was restored became shorter");
			break;
		}
		recvout_push_copy(r->out, r->pushed, buf, (size_t)n);
		r->pushed += (ws_lsn)n;
		rc = receiver_wait_taken(r, err);
	}
	free(buf);
	return rc == 0 && last ? ENDPOS : rc;
}

/* Every timeline that has bytes in it, one after the other. */
static int
push_segment(struct receiver *r, const struct round *a, int fd, struct ws_err *err)
{
	const ws_lsn next = a->seg + r->src.segsize;

	for (;;) {
		ws_lsn end = ws_history_end(&a->h, r->tli);
		int rc = push_up_to(r, fd, a->seg, end < next ? end : next, err);

		/* A switch at the very end is made when the next segment is here. */
		if (rc != 0 || end >= next)
			return rc;
		rc = receiver_switch_restored(r, ws_history_next(&a->h, r->tli), err);
		if (rc != 0)
			return rc;
	}
}

/* The output is to begin.  Where what is kept ends with a segment there is nothing to compare: the one
 * before serves, when the archive has it still. */
static int
push_previous(struct receiver *r, struct round *a, struct ws_err *err)
{
	struct ws_pos start = {a->kept.tli, a->seg};
	int fd = -1, rc = 0;

	if (start.lsn == a->kept.lsn && start.lsn >= r->src.segsize &&
		recvout_has_segment(r->out, start.tli, start.lsn - 1)) {
		rc = receiver_archive_segment(r, &a->h, start.lsn - r->src.segsize, &fd, err);
		if (rc < 0)
			return -1;
		if (rc == 1)
			start.lsn -= r->src.segsize;
	}
	recvout_begin(r->out, start, "the archive's");
	r->tli = start.tli;
	r->pushed = r->checked = start.lsn;
	rc = rc ? push_up_to(r, fd, start.lsn, a->seg, err) : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* ---- a round ---- */

static int
begin(struct receiver *r, struct round *a, const struct ws_err *why, struct ws_err *err)
{
	int rc = receiver_same_history(r, a->kept.tli, true, err);

	if (rc == 0)
		rc = push_previous(r, a, err);
	if (rc == 0)
		ws_info("restoring from the archive: system_id=%" PRIu64 " timeline=%u towards=%u kept=" WS_LSN_FMT
				" because=\"%s\"",
				r->src.system_id, a->kept.tli, a->h.tli, WS_LSN_ARG(a->kept.lsn), why->msg);
	return rc;
}

/* Segment after segment: 0 when the archive has no more, ENDPOS, STOPPING or -1. */
static int
restore(struct receiver *r, struct round *a, const struct ws_err *why, struct ws_err *err)
{
	/* What was never announced must be compared, were it to the last byte of a segment. */
	a->seg = ws_seg_start(recvout_announced(r->out) ? a->kept.lsn : a->kept.lsn - 1, r->src.segsize);
	for (;; a->seg += r->src.segsize) {
		int fd, rc = receiver_wait_room(r, err);

		if (rc == 0 && ws_tool_stopping())
			rc = STOPPING;
		if (rc != 0)
			return rc;
		rc = receiver_archive_segment(r, &a->h, a->seg, &fd, err);
		if (rc != 1)
			return rc;
		rc = a->restored ? 0 : begin(r, a, why, err);
		if (rc == 0)
			rc = push_segment(r, a, fd, err);
		close(fd);
		if (rc != 0)
			return rc;
		a->restored++;
		*r->m_restored += 1;
		receiver_metrics_update(r);
	}
}

/* Neither has it.  Below the last switch that is a gap; above, the archive may only be late. */
static int
absent(struct receiver *r, const struct round *a, const struct ws_err *why, struct ws_err *err)
{
	uint64_t now = ws_now_us();
	char name[WS_WALNAME_MAX];

	*err = *why;
	if (!r->connected)
		return -1; /* the connection's matter */
	ws_histdir_name(&a->h, a->seg, r->src.segsize, name);
	if (r->absent != a->kept.lsn || !r->absent_since) {
		r->absent = a->kept.lsn;
		r->absent_since = now;
	}
	if (r->o->no_loop || now - r->absent_since > GAP_WAIT_US ||
		ws_arcpath_required(&a->h, ws_segno(a->seg, r->src.segsize), r->src.segsize))
		return ws_err_op(err, why->reason, "%s; the archive does not have %s", why->msg, name);
	return ws_err_temp(err, "%s; the archive does not have %s yet", why->msg, name);
}

/* Which cluster it is, when no server has said so yet. */
static int
know_cluster(struct receiver *r, struct ws_err *err)
{
	struct ws_cluster c;

	if (r->src.major)
		return 1;
	int rc = r->o->state ? ws_cluster_read(r->o->state, &c, err) : 0;

	if (rc == 1) {
		r->src.system_id = c.system_id;
		r->src.major = c.major;
		r->src.segsize = c.segsize;
	}
	return rc;
}

int
receiver_restore(struct receiver *r, struct ws_err *err)
{
	const struct ws_err why = *err;
	struct round a = {0};
	int rc = know_cluster(r, err);

	if (rc <= 0)
		return -1;
	if (receiver_open_output(r, err) != 0)
		return -1;
	rc = receiver_wait_idle(r, err);
	if (rc != 0)
		return rc;
	a.kept = recvout_kept(r->out);
	if (a.kept.lsn == 0)
		return -1; /* nothing to go on from */
	if (r->o->endpos && a.kept.lsn >= r->o->endpos)
		return ENDPOS;
	rc = find_way(r, &a, err);
	if (rc == 0)
		rc = restore(r, &a, &why, err);
	if (a.restored)
		ws_info("from the archive: restored=%u timeline=%u end=" WS_LSN_FMT "%s", a.restored, r->tli,
				WS_LSN_ARG(r->pushed), rc == 0 ? "; it has no more, the server is asked again" : "");
	if (rc == 0)
		rc = a.restored ? RESTORED : absent(r, &a, &why, err);
	ws_history_fini(&a.h);
	return rc;
}
