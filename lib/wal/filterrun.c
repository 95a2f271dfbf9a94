/* The filter at work: WAL from a source through a stream to a directory, or as frames; see
 * ws/filterrun.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ws/file.h"
#include "ws/filterrun.h"
#include "ws/lsn.h"
#include "ws/tool.h"

static int
emit(struct ws_filterrun *r, const struct ws_filterout *out, struct ws_err *err)
{
	struct ws_filterout o = *out;

	/* Nothing new, but what was given before is to be out of the way. */
	if (!o.n)
		return r->dir ? ws_filterdir_flush(r->dir, err) : 0;
	while (o.n) {
		size_t n = o.n;
		ws_tli tli = o.tli;

		/* Bytes held across a switch lie on both timelines. */
		if (o.lsn < r->fork) {
			tli = r->before;
			if (n > r->fork - o.lsn)
				n = (size_t)(r->fork - o.lsn);
		}
		if (r->dir && ws_filterdir_append(r->dir, tli, o.lsn, o.p, n, err) != 0)
			return -1;
		if (r->frame && ws_walframe_bytes(r->frame, tli, o.lsn, o.p, n, err) != 0)
			return -1;
		o.lsn += n;
		o.p += n;
		o.n -= n;
	}
	/* Chunks stay as long as the appends under way need them, the stream's own memory does not. */
	return r->dir && o.copied ? ws_filterdir_settle(r->dir, err) : 0;
}

_Static_assert(WS_FILTERDIR_DEPTH + 2 <= WS_CHUNK_STAYS, "chunks go while they are being written");

static void
count(struct ws_filterrun *r)
{
	const struct ws_filterstat *st = ws_filterstream_stats(r->stream);
	uint64_t n = 0, bytes = 0, blanked = 0;

	for (int i = 0; i < 256; i++) {
		n += st[i].records;
		bytes += st[i].bytes;
		blanked += st[i].blanked_bytes;
	}
	*r->records = (double)n;
	*r->bytes = (double)bytes;
	*r->blanked = (double)blanked;
	*r->kept = (double)ws_filter_kept_count(r->filter);
	*r->lsn = (double)ws_filterstream_pos(r->stream).lsn;
}

static int
save(struct ws_filterrun *r, bool now, struct ws_err *err)
{
	count(r);
	if (ws_metrics_write(ws_tool_metrics(), 1, err) != 0)
		return -1;
	return r->dir && !r->one_file
	           ? ws_filterdir_save(r->dir, r->filter, ws_filterstream_pos(r->stream),
	                               ws_filterstream_system_id(r->stream), now, err)
	           : 0;
}

/* A directory that begins on a later timeline has its history, which a standby that starts there asks for
 * (replication/walreceiver.c, WalRcvFetchTimeLineHistoryFiles). */
static int
first_history(struct ws_filterrun *r, struct ws_err *err)
{
	char name[WS_WALNAME_MAX];

	ws_history_name(name, r->tli);
	char *path = ws_asprintf("%s/%s", r->input, name);
	bool there = access(path, F_OK) == 0;

	free(path);
	return there ? ws_filterdir_history(r->dir, r->input, r->tli, err) : 0;
}

/* The first bytes: now the segment size is known. */
static int
begin(struct ws_filterrun *r, const struct ws_walchunk *c, struct ws_err *err)
{
	uint32_t segsize = ws_walsrc_segsize(r->src);
	struct ws_pos first = r->start.lsn ? r->start : (struct ws_pos){c->tli, c->lsn};

	if (c->lsn > first.lsn || (r->since.lsn && c->lsn > r->since.lsn))
		return ws_err_op(err, "wal_missing", "%s: WAL begins at " WS_LSN_FMT ", it is needed from " WS_LSN_FMT,
		                 r->input, WS_LSN_ARG(c->lsn),
		                 WS_LSN_ARG(r->start.lsn ? r->start.lsn : r->since.lsn));
	r->stream = ws_filterstream_new(r->filter, segsize, 0);
	ws_filterstream_seek(r->stream, c->lsn, first);
	/* The descendant may have come while nobody filtered. */
	r->tli = r->start.lsn ? r->start.tli : c->tli;
	r->fed = r->start.lsn;
	if (r->to_stdout) {
		struct ws_cluster cluster;

		if (!ws_walsrc_cluster(r->src, &cluster))
			return ws_err_usage(err, "%s: it does not say which cluster it is of", r->input);
		r->frame = ws_walframe_new(STDOUT_FILENO, &cluster, err);
		return r->frame ? 0 : -1;
	}
	if (!r->dir)
		return 0;
	return ws_filterdir_begin(r->dir, segsize, r->start, err) != 0 ? -1 : first_history(r, err);
}

/* Hands on the descendant's history. */
static int
pass_history(struct ws_filterrun *r, ws_tli tli, struct ws_err *err)
{
	char name[WS_WALNAME_MAX];
	struct ws_buf b = {0};

	/* The segment of a switch is filtered again from its start, to which no stream goes back. */
	if (!strcmp(r->input, "-"))
		return ws_err_op(err, "switch_in_stream", "a framed WAL stream goes over to timeline %u: filter a WAL "
		                 "directory instead", tli);
	if (r->dir)
		return ws_filterdir_history(r->dir, r->input, tli, err);
	if (!r->frame)
		return 0;
	ws_history_name(name, tli);
	char *path = ws_asprintf("%s/%s", r->input, name);
	int rc = ws_file_read(path, WS_HISTORY_MAX, &b, err);

	if (rc == 1)
		rc = ws_walframe_history(r->frame, tli, b.data, b.len, err);
	else if (rc == 0)
		rc = ws_err_op(err, "history_missing", "%s: absent", path);
	free(path);
	ws_buf_free(&b);
	return rc;
}

/* The state that a segment on h begins with, or an older one. */
static int
segment_state(struct ws_filterrun *r, const struct ws_history *h, ws_lsn segment, struct ws_buf *out,
              struct ws_pos *pos, struct ws_err *err)
{
	const struct ws_buf *state;

	if (r->dir)
		return ws_filterdir_segment_state(r->dir, h, segment, out, pos, err);
	if (ws_filterstream_segment_state(r->stream, &state) != segment)
		return ws_err_op(err, "filter_state_missing", "no filter state for the fork's segment at " WS_LSN_FMT,
		                 WS_LSN_ARG(segment));
	ws_buf_put(out, state->data, state->len);
	return 0;
}

/* Back to what was known where a segment begins, and to where that was. */
static int
go_back(struct ws_filterrun *r, const struct ws_history *h, ws_lsn segment, struct ws_err *err)
{
	uint32_t segsize = ws_walsrc_segsize(r->src);
	struct ws_buf state = {0};
	struct ws_pos pos;
	uint64_t system_id;
	int rc = -1;

	if (!h) {
		ws_err_op(err, "history_missing", "%s: no history of the timeline that comes", r->input);
		goto out;
	}
	if (segment_state(r, h, segment, &state, &pos, err) != 0)
		goto out;
	ws_filter_free(r->filter);
	r->filter = ws_filter_new();
	if (ws_filter_load(r->filter, "segment state", state.data, state.len, &pos, &system_id, err) != 0)
		goto out;
	/* Killed before the next save, it would begin on the branch that was left. */
	if (r->dir && ws_filterdir_past(r->dir, h) && ws_filterdir_go_back(r->dir, &state, pos, err) != 0)
		goto out;
	if (r->dir && ws_filterdir_reopen(r->dir, pos, err) != 0)
		goto out;
	ws_filterstream_free(r->stream);
	r->stream = ws_filterstream_new(r->filter, segsize, system_id);
	ws_filterstream_seek(r->stream, pos.lsn & ~(ws_lsn)(WS_PAGE_SIZE - 1), pos);
	/* From here on it is as after a start: the segment's own timeline comes when the segment does. */
	if (pos.lsn != ws_seg_start(pos.lsn, segsize))
		r->tli = ws_history_name_of(h, pos.lsn, segsize);
	r->fed = pos.lsn;
	r->fork = 0;
	rc = 0;
out:
	ws_buf_free(&state);
	return rc;
}

/* A descendant's segment comes.  When it goes on where we are, nothing is to be redone; else back to
 * what was known where the fork's segment begins.  1: the chunk is to be used, 0: another comes. */
static int
switch_timeline(struct ws_filterrun *r, const struct ws_walchunk *c, struct ws_err *err)
{
	const struct ws_history *h = ws_walsrc_history(r->src);
	ws_lsn segment = ws_seg_start(c->lsn, ws_walsrc_segsize(r->src));
	const struct ws_pos judged = ws_filterstream_pos(r->stream);
	uint64_t bytes;

	if (h && !ws_history_end(h, r->tli))
		return ws_err_op(err, "timeline_not_descendant", "%s: timeline %u does not come from timeline %u",
		                 r->input, c->tli, r->tli);
	if (h && r->received_file && judged.lsn > ws_history_end(h, judged.tli))
		return ws_err_op(err, "past_fork",
		                 "%s: WAL up to " WS_LSN_FMT " of timeline %u was filtered, which was left at " WS_LSN_FMT
		                 ": once what read it is taken back, ws-filter --rewind",
		                 r->input, WS_LSN_ARG(judged.lsn), judged.tli, WS_LSN_ARG(ws_history_end(h, judged.tli)));
	if (pass_history(r, c->tli, err) != 0)
		return -1;
	if (r->dir && h && ws_filterdir_set_aside(r->dir, h, &bytes, err) != 0)
		return -1;
	if (c->lsn != r->fed || c->lsn != segment) {
		if (go_back(r, h, segment, err) != 0)
			return -1;
		return ws_walsrc_seek(r->src, (struct ws_pos){c->tli, r->fed}, err);
	}
	ws_info("timeline switch: timeline=%u segment=" WS_LSN_FMT, c->tli, WS_LSN_ARG(c->lsn));
	r->before = r->tli;
	r->tli = c->tli;
	r->fork = c->lsn;
	return 1;
}

/* Following, WAL was no WAL, as *err says.  Only bytes that are not durable yet may be torn: a restart
 * reads them again.  Returns -1. */
static int
not_yet(struct ws_filterrun *r, const struct ws_walchunk *c, struct ws_err *err)
{
	struct ws_err other = {0};
	int rc = ws_walsrc_damaged(c, ws_filterstream_failed_below(r->stream),
	                           ws_filterstream_clean_end(r->stream), r->received_file, &other);

	if (rc < 0)
		*err = other;
	return rc == 0 ? ws_err_temp(err, "%s; its writer may write it again", err->msg) : -1;
}

/* One chunk in, what is final out.  1: goes on, 0: the WAL has ended, -1. */
static int
chunk(struct ws_filterrun *r, const struct ws_walchunk *c, struct ws_err *err)
{
	struct ws_filterout out;
	const struct ws_buf *state;
	ws_lsn before, segment;

	if (!r->stream && begin(r, c, err) != 0)
		return -1;
	int rc = c->tli > r->tli ? switch_timeline(r, c, err) : 1;

	if (rc <= 0)
		return rc < 0 ? -1 : 1;
	r->fed = c->lsn + c->n;
	before = ws_filterstream_segment_state(r->stream, &state);
	rc = c->edit ? ws_filterstream_edit(r->stream, c->tli, c->lsn, c->edit, c->n, c->room, &out, err)
	             : ws_filterstream_feed(r->stream, c->tli, c->lsn, c->p, c->n, &out, err);

	if (emit(r, &out, err) != 0)
		return -1;
	segment = ws_filterstream_segment_state(r->stream, &state);
	if (segment != before && r->dir && ws_filterdir_segment(r->dir, c->tli, segment, state, err) != 0)
		return -1;
	if (rc == 0)
		return 1;
	if (!ws_filterstream_torn(r->stream))
		return -1;
	if (!r->follow)
		return ws_filterstream_clean_end(r->stream) ? 0 : -1;
	return not_yet(r, c, err);
}

/* What comes after the end of WAL must be the rest of its last segment.  Of one segment alone it is
 * given out as it is. */
static int
finish(struct ws_filterrun *r, bool ended, const struct ws_walchunk *last, struct ws_err *err)
{
	uint32_t segsize = ws_walsrc_segsize(r->src);
	struct ws_err torn = *err;
	struct ws_filterout out;
	struct ws_walchunk c = *last;
	int rc;

	if (!r->stream)
		return r->one_file ? ws_err_usage(err, "%s: no WAL", r->input) : 0;
	if (r->one_file) {
		ws_filterstream_rest(r->stream, &out);
		if (emit(r, &out, err) != 0)
			return -1;
	}
	if (!ended)
		return 0;
	ws_info("end of WAL: lsn=" WS_LSN_FMT, WS_LSN_ARG(ws_filterstream_pos(r->stream).lsn));
	while ((rc = ws_walsrc_next(r->src, &c, err)) == 1) {
		if (ws_seg_start(c.lsn, segsize) != ws_seg_start(last->lsn, segsize)) {
			*err = torn;
			return -1;
		}
		out = (struct ws_filterout){.tli = c.tli, .lsn = c.lsn, .p = c.p, .n = c.n};
		if (r->one_file && emit(r, &out, err) != 0)
			return -1;
	}
	return rc;
}

static void
make_metrics(struct ws_filterrun *r)
{
	struct ws_metrics *m = ws_tool_metrics();

	r->records = ws_metric(m, WS_COUNTER, "walshadow_filter_records_total", "", "WAL records judged.");
	r->bytes = ws_metric(m, WS_COUNTER, "walshadow_filter_bytes_total", "", "Bytes of records judged.");
	r->blanked = ws_metric(m, WS_COUNTER, "walshadow_filter_blanked_bytes_total", "",
	                       "Bytes of records turned into NOOPs.");
	r->kept = ws_metric(m, WS_GAUGE, "walshadow_filter_kept_files", "",
	                    "Catalog files known beyond the fixed rules.");
	r->lsn = ws_metric(m, WS_GAUGE, "walshadow_filter_lsn", "", "Position of the last record judged.");
}

int
ws_filterrun_loop(struct ws_filterrun *r, struct ws_err *err)
{
	struct ws_walchunk c = {0};
	bool ended = false;
	int rc;

	make_metrics(r);
	while (!ws_tool_stopping() && !ended) {
		struct ws_walchunk next;

		rc = ws_walsrc_next(r->src, &next, err);
		if (rc < 0)
			return -1;
		if (rc == 1) {
			c = next;
			rc = chunk(r, &c, err);
			if (rc < 0)
				return -1;
			ended = rc == 0;
		} else if (!r->follow || ws_walsrc_at_end(r->src)) {
			break;
		} else if (ws_walsrc_wait(r->src, 100, err) != 0) {
			return -1;
		}
		if (r->stream && save(r, false, err) != 0)
			return -1;
	}
	if (!ws_tool_stopping() && finish(r, ended, &c, err) != 0)
		return -1;
	if (r->stream && save(r, true, err) != 0)
		return -1;
	if (r->dir && ws_filterdir_flush(r->dir, err) != 0)
		return -1;
	struct ws_pos end = r->stream ? ws_filterstream_pos(r->stream) : r->start;

	return r->frame && !ws_tool_stopping() ? ws_walframe_end(r->frame, end, err) : 0;
}

void
ws_filterrun_fini(struct ws_filterrun *r)
{
	ws_walframe_free(r->frame);
	ws_filterstream_free(r->stream);
	ws_filter_free(r->filter);
}
