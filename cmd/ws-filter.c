/* ws-filter: keeps the catalogs' WAL, blanks the rest, every byte at its LSN.  See ws-filter(1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ws/file.h"
#include "ws/filter.h"
#include "ws/filterdir.h"
#include "ws/history.h"
#include "ws/lsn.h"
#include "ws/pos.h"
#include "ws/tool.h"
#include "ws/waldir.h"

static char no_stats[] = "none";
static char *opt_state, *opt_out, *opt_kept, *opt_interval;
static char *opt_stats = no_stats; /* NULL: --stats without a value */
static int opt_follow, opt_no_output, opt_no_sync;

static const struct poptOption options[] = {
    {"state", 0, POPT_ARG_STRING, &opt_state, 0, "state directory: filters its raw/ into its filtered/", "DIR"},
    {"directory", 'D', POPT_ARG_STRING, &opt_out, 0, "WAL directory to write, or - for a framed stream", "DIR"},
    {"follow", 0, POPT_ARG_NONE, &opt_follow, 0, "go on at the end of the input until stopped", NULL},
    {"kept", 0, POPT_ARG_STRING, &opt_kept, 0, "catalog files at the first start (ws-catalog kept)", "FILE"},
    {"no-output", 'n', POPT_ARG_NONE, &opt_no_output, 0, "write no WAL", NULL},
    {"no-sync", 0, POPT_ARG_NONE, &opt_no_sync, 0, "do not wait for the disk", NULL},
    {"stats", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, &opt_stats, 0,
     "print counts by resource manager at the end", "json"},
    {"sync-interval", 0, POPT_ARG_STRING, &opt_interval, 0, "at most this long between syncs (1s)", "TIME"},
    POPT_TABLEEND};

static bool
to_stdout(void)
{
	return opt_out && !strcmp(opt_out, "-");
}

struct run {
	const char *input, *state; /* state NULL: not in a state directory */
	bool one_file;
	struct ws_filter *filter;
	struct ws_filterstream *stream;
	struct ws_filterdir *dir; /* output and state, or NULL */
	struct ws_walframe *frame;
	struct ws_walsrc *src;
	struct ws_pos start; /* of a restored state, else lsn 0 */
	struct ws_pos since; /* of the kept list, else lsn 0 */
	ws_tli tli, before;  /* newest timeline read; the one before it, below fork */
	ws_lsn fork;
	ws_lsn fed; /* end of the bytes read */
	double *bytes, *blanked, *records, *kept, *lsn;
};

static int
emit(struct run *r, const struct ws_filterout *out, struct ws_err *err)
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
	return 0;
}

static void
count(struct run *r)
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
save(struct run *r, bool now, struct ws_err *err)
{
	count(r);
	if (ws_metrics_write(ws_tool_metrics(), 1, err) != 0)
		return -1;
	return r->dir && !r->one_file
	           ? ws_filterdir_save(r->dir, r->filter, ws_filterstream_pos(r->stream),
	                               ws_filterstream_system_id(r->stream), now, err)
	           : 0;
}

/* The first bytes: now the segment size is known. */
static int
begin(struct run *r, const struct ws_walchunk *c, struct ws_err *err)
{
	uint32_t segsize = ws_walsrc_segsize(r->src);
	struct ws_pos first = r->start.lsn ? r->start : (struct ws_pos){c->tli, c->lsn};

	if (c->lsn > first.lsn || (r->since.lsn && c->lsn > r->since.lsn))
		return ws_err_op(err, "wal_missing", "%s: WAL begins at " WS_LSN_FMT ", it is needed from " WS_LSN_FMT,
		                 r->input, WS_LSN_ARG(c->lsn),
		                 WS_LSN_ARG(r->start.lsn ? r->start.lsn : r->since.lsn));
	r->stream = ws_filterstream_new(r->filter, segsize, 0);
	ws_filterstream_seek(r->stream, c->lsn, first);
	r->tli = c->tli;
	if (to_stdout()) {
		struct ws_cluster cluster;

		if (!ws_walsrc_cluster(r->src, &cluster))
			return ws_err_usage(err, "%s: it does not say which cluster it is of", r->input);
		r->frame = ws_walframe_new(STDOUT_FILENO, &cluster, err);
		return r->frame ? 0 : -1;
	}
	return r->dir ? ws_filterdir_begin(r->dir, segsize, r->start, err) : 0;
}

/* Hands on the descendant's history. */
static int
pass_history(struct run *r, ws_tli tli, struct ws_err *err)
{
	char name[WS_WALNAME_MAX];
	struct ws_buf b = {0};

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

/* The state that the segment at c->lsn began with. */
static int
segment_state(struct run *r, const struct ws_walchunk *c, struct ws_buf *out, struct ws_err *err)
{
	const struct ws_buf *state;

	if (ws_filterstream_segment_state(r->stream, &state) == c->lsn) {
		ws_buf_put(out, state->data, state->len);
		return 0;
	}
	if (r->dir)
		return ws_filterdir_segment_state(r->dir, r->tli, c->lsn, out, err);
	return ws_err_op(err, "filter_state_missing", "no filter state for the fork's segment at " WS_LSN_FMT,
	                 WS_LSN_ARG(c->lsn));
}

/* A descendant's segment comes.  When it goes on where we are, nothing is to be redone; else back to
 * what was known where the fork's segment begins.  1: the chunk is to be used, 0: another comes. */
static int
switch_timeline(struct run *r, const struct ws_walchunk *c, struct ws_err *err)
{
	struct ws_buf state = {0};
	struct ws_pos pos;
	uint64_t system_id;
	int rc = -1;

	if (pass_history(r, c->tli, err) != 0)
		return -1;
	ws_info("timeline switch: timeline=%u segment=" WS_LSN_FMT, c->tli, WS_LSN_ARG(c->lsn));
	if (c->lsn != r->fed) {
		if (segment_state(r, c, &state, err) != 0)
			goto out;
		ws_filter_free(r->filter);
		r->filter = ws_filter_new();
		if (ws_filter_load(r->filter, "segment state", state.data, state.len, &pos, &system_id, err) != 0 ||
		    (r->dir && ws_filterdir_reopen(r->dir, pos, err) != 0))
			goto out;
		ws_filterstream_free(r->stream);
		r->stream = ws_filterstream_new(r->filter, ws_walsrc_segsize(r->src), system_id);
		ws_filterstream_seek(r->stream, pos.lsn & ~(ws_lsn)(WS_PAGE_SIZE - 1), pos);
		rc = ws_walsrc_seek(r->src, (struct ws_pos){c->tli, pos.lsn}, err);
	} else {
		rc = 1;
	}
	r->before = r->tli;
	r->tli = c->tli;
	r->fork = c->lsn;
out:
	ws_buf_free(&state);
	return rc;
}

/* One chunk in, what is final out.  1: goes on, 0: the WAL has ended, -1. */
static int
chunk(struct run *r, const struct ws_walchunk *c, struct ws_err *err)
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
	if (!opt_follow)
		return ws_filterstream_clean_end(r->stream) ? 0 : -1;
	/* Only bytes that are not durable yet may be torn: a restart reads them again. */
	err->status = WS_ETEMP;
	return -1;
}

/* What comes after the end of WAL must be the rest of its last segment.  Of one segment alone it is
 * given out as it is. */
static int
finish(struct run *r, bool ended, const struct ws_walchunk *last, struct ws_err *err)
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
		out = (struct ws_filterout){c.tli, c.lsn, c.p, c.n};
		if (r->one_file && emit(r, &out, err) != 0)
			return -1;
	}
	return rc;
}

static int
loop(struct run *r, struct ws_err *err)
{
	struct ws_walchunk c = {0};
	bool ended = false;
	int rc;

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
		} else if (!opt_follow || ws_walsrc_at_end(r->src)) {
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

/* The state directory's identity comes from whoever receives. */
static int
wait_cluster(const char *state, struct ws_cluster *c, struct ws_err *err)
{
	int rc;

	while ((rc = ws_cluster_read(state, c, err)) == 0 && opt_follow && !ws_tool_stopping())
		usleep(100000);
	if (rc == 0)
		return ws_err_temp(err, "%s: no cluster file yet (ws-receive makes it)", state);
	return rc == 1 ? 0 : -1;
}

static int
open_output(struct run *r, double interval, struct ws_err *err)
{
	char *out = NULL, *pos = NULL, *received = NULL;
	uint64_t system_id = 0;
	int rc = 0;

	if (opt_no_output)
		return 0;
	if (to_stdout())
		return 0; /* opened when the cluster is known */
	out = opt_out ? ws_strdup(opt_out) : ws_asprintf("%s/filtered", r->state);
	if (r->state && !opt_out) {
		pos = ws_asprintf("%s/pos/filtered", r->state);
		received = ws_asprintf("%s/pos/received", r->state);
	}
	struct ws_filterdir_opts o = {.dir = out,
	                              .pos_file = pos,
	                              .received_file = received,
	                              .no_sync = opt_no_sync,
	                              .stateless = r->one_file,
	                              .background = !opt_follow,
	                              .interval = interval};

	r->dir = ws_filterdir_new(&o);
	rc = ws_filterdir_load(r->dir, r->filter, &r->start, &system_id, err);
	if (rc == 0)
		r->start = (struct ws_pos){0, 0};
	free(out);
	free(pos);
	free(received);
	return rc < 0 ? -1 : 0;
}

static int
check_usage(int argc, double *interval, struct ws_err *err)
{
	*interval = 1;
	if (opt_interval && ws_parse_seconds(opt_interval, interval) != 0)
		return ws_err_usage(err, "--sync-interval: not a time: %s", opt_interval);
	if (argc > 1)
		return ws_err_usage(err, "too many operands");
	if (argc == 1 && opt_state)
		return ws_err_usage(err, "--state names the input already");
	if (!opt_state && argc == 0)
		opt_state = getenv("WALSHADOW_STATE") ? ws_strdup(getenv("WALSHADOW_STATE")) : NULL;
	if (!opt_state && argc == 0)
		return ws_err_usage(err, "an input is needed: --state DIR, a WAL directory, a segment, or -");
	if (argc == 1 && !opt_out && !opt_no_output)
		return ws_err_usage(err, "where to? -D DIR, -D - or --no-output");
	if (opt_out && opt_no_output)
		return ws_err_usage(err, "--directory and --no-output exclude each other");
	return 0;
}

static int
prepare(struct run *r, double interval, struct ws_err *err)
{
	struct ws_walsrc_opts so = {.follow = opt_follow, .editable = true};
	struct ws_cluster cluster;
	struct ws_pos from;

	if (r->state) {
		if (wait_cluster(r->state, &cluster, err) != 0)
			return -1;
		so.segsize = cluster.segsize;
	}
	if (open_output(r, interval, err) != 0)
		return -1;
	if (!r->start.lsn && opt_kept && ws_filter_read_kept(r->filter, opt_kept, &r->since, err) != 0)
		return -1;
	if (!r->start.lsn && !r->since.lsn && r->state)
		return ws_err_usage(err, "the first start needs --kept FILE (ws-catalog kept)");
	from = r->start;
	if (!from.lsn && r->since.lsn && so.segsize)
		from = (struct ws_pos){r->since.tli, ws_seg_start(r->since.lsn, so.segsize)};
	r->src = ws_walsrc_open(r->input, from, &so, err);
	if (!r->src)
		return -1;
	/* A list holds from its segment on; earlier WAL would only be read in vain. */
	uint32_t segsize = ws_walsrc_segsize(r->src);

	if (from.lsn || !r->since.lsn || !segsize)
		return 0;
	from = (struct ws_pos){r->since.tli, ws_seg_start(r->since.lsn, segsize)};
	return ws_walsrc_seek(r->src, from, err);
}

static void
make_metrics(struct run *r)
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

static int
run(int argc, const char **argv, struct ws_err *err)
{
	struct run r = {0};
	struct stat st;
	double interval;
	char *raw = NULL;

	/* `--stats INPUT`: popt takes the next word for the option's value. */
	if (opt_stats && opt_stats != no_stats && strcmp(opt_stats, "json")) {
		if (argc)
			return ws_err_usage(err, "--stats is plain or json, not %s", opt_stats), WS_EUSAGE;
		argv = (const char **)&opt_stats;
		argc = 1;
	}
	if (check_usage(argc, &interval, err) != 0)
		return err->status;
	r.state = opt_state;
	r.input = argc ? argv[0] : (raw = ws_asprintf("%s/raw", opt_state));
	r.one_file = argc && strcmp(r.input, "-") && stat(r.input, &st) == 0 && S_ISREG(st.st_mode);
	r.filter = ws_filter_new();
	make_metrics(&r);
	int rc = prepare(&r, interval, err) == 0 && loop(&r, err) == 0 ? 0 : (int)err->status;

	if (rc == 0 && opt_stats != no_stats && r.stream)
		ws_filterstats_print(to_stdout() ? stderr : stdout, ws_filterstream_stats(r.stream), opt_stats);
	ws_walsrc_close(r.src);
	ws_walframe_free(r.frame);
	ws_filterdir_free(r.dir);
	ws_filterstream_free(r.stream);
	ws_filter_free(r.filter);
	free(raw);
	return rc;
}

static const struct ws_tool tool = {"ws-filter", "[INPUT]", options, run};

int
main(int argc, char **argv)
{
	return ws_tool_main(&tool, argc, argv);
}
