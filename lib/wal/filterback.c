/* A filter is taken back to a fork; see ws/filterback.h.
 *
 * Order of what is written: the history, so that every reader knows where its timeline ends; the WAL out
 * of the way; the state; the position.  As long as the state is past the fork all is done again, and
 * what was done already stays as it is. */
#include <stdlib.h>
#include <string.h>

#include "ws/filterback.h"
#include "ws/histdir.h"
#include "ws/log.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/published.h"
#include "ws/waldir.h"

struct back {
	const struct ws_filterdir_opts *o;
	const char *input, *state;
	uint32_t segsize;
	struct ws_filterdir *dir;
	struct ws_history h;
	struct ws_pos pos;   /* of the state that is saved */
	struct ws_pos to;    /* of the one that takes its place */
	struct ws_buf saved; /* that one */
};

static int
load(struct back *b, struct ws_err *err)
{
	struct ws_filter *f = ws_filter_new();
	uint64_t system_id;
	int rc = ws_filterdir_load(b->dir, f, &b->pos, &system_id, err);

	ws_filter_free(f);
	return rc;
}

/* Is all that is needed to go on from b->to there: WAL to read, and the output up to it? */
static int
check_wal(struct back *b, struct ws_err *err)
{
	const struct ws_walsrc_opts so = {.segsize = b->segsize};
	struct ws_walsrc *src = ws_walsrc_open(b->input, b->to, &so, err);
	struct ws_walchunk c;
	char *path;

	if (!src)
		return -1;
	int rc = ws_walsrc_next(src, &c, err);

	ws_walsrc_close(src);
	if (rc < 0 || b->to.lsn == ws_seg_start(b->to.lsn, b->segsize))
		return rc < 0 ? -1 : 0;
	rc = ws_histdir_segment(b->o->dir, &b->h, b->to.lsn - 1, b->segsize, &path, err);
	if (rc == 0)
		return ws_err_op(err, "wal_missing", "%s: no segment that holds " WS_LSN_FMT, b->o->dir,
		                 WS_LSN_ARG(b->to.lsn));
	free(path);
	return rc < 0 ? -1 : 0;
}

/* Where to, and whether that may be. */
static int
plan(struct back *b, ws_lsn fork, struct ws_err *err)
{
	if (ws_published_check(b->state, &b->h, NULL, err) != 0 ||
	    ws_filterdir_segment_state(b->dir, &b->h, ws_seg_start(fork, b->segsize), &b->saved, &b->to, err) != 0)
		return -1;
	return check_wal(b, err);
}

/* The position file may be past it where the state is not: a kill came between. */
static int
check_announced(struct back *b, struct ws_err *err)
{
	struct ws_pos p;
	int rc = b->o->pos_file ? ws_pos_read(b->o->pos_file, &p, err) : 0;

	if (rc < 0 || (rc == 1 && p.lsn > ws_history_end(&b->h, p.tli)))
		return rc < 0 ? -1 : ws_filterdir_announce(b->dir, b->pos, err);
	return 0;
}

static int
apply(struct back *b, ws_lsn fork, struct ws_err *err)
{
	bool past = b->to.lsn != 0;
	uint64_t bytes;

	if ((b->h.tli != b->pos.tli && ws_filterdir_history(b->dir, b->input, b->h.tli, err) != 0) ||
	    ws_filterdir_set_aside(b->dir, &b->h, &bytes, err) != 0 ||
	    (past ? ws_filterdir_go_back(b->dir, &b->saved, b->to, err) : check_announced(b, err)) != 0)
		return -1;
	if (past)
		ws_info("went back: timeline=%u from=" WS_LSN_FMT " to=" WS_LSN_FMT " fork=" WS_LSN_FMT
		        " new_timeline=%u abandoned_bytes=%llu",
		        b->pos.tli, WS_LSN_ARG(b->pos.lsn), WS_LSN_ARG(b->to.lsn), WS_LSN_ARG(fork), b->h.tli,
		        (unsigned long long)bytes);
	else
		ws_info("nothing to go back from: timeline=%u lsn=" WS_LSN_FMT " newest_timeline=%u abandoned_bytes=%llu",
		        b->pos.tli, WS_LSN_ARG(b->pos.lsn), b->h.tli, (unsigned long long)bytes);
	return 0;
}

static int
run(struct back *b, struct ws_err *err)
{
	struct ws_err why = {0};
	int rc = load(b, err);

	if (rc == 0)
		ws_info("nothing to go back from: %s has no state yet", b->o->dir);
	/* Opened for writing it has the lock, and the state is nobody else's. */
	if (rc <= 0 || ws_filterdir_begin(b->dir, b->segsize, b->pos, err) != 0 || (rc = load(b, err)) <= 0 ||
	    ws_histdir_load(b->input, 0, &b->h, err) != 0)
		return rc == 0 ? 0 : -1;
	ws_lsn fork = ws_history_end(&b->h, b->pos.tli);

	if (ws_history_prove(&b->h, b->pos.tli, b->pos.lsn, &why) == 0)
		return apply(b, fork, err);
	if (strcmp(why.reason, "resume_past_fork")) {
		*err = why;
		return -1;
	}
	return plan(b, fork, err) == 0 ? apply(b, fork, err) : -1;
}

int
ws_filterback(const struct ws_filterdir_opts *o, const char *input, const char *state, uint32_t segsize,
              struct ws_err *err)
{
	struct back b = {
	    .o = o, .input = input, .state = state, .segsize = segsize, .dir = ws_filterdir_new(o)};
	int rc = run(&b, err);

	ws_filterdir_free(b.dir);
	ws_history_fini(&b.h);
	ws_buf_free(&b.saved);
	return rc;
}
