/* ws-decode's run; see ws/decoding.h.  One loop: bytes from the source, records from the reader,
 * to the decoder, frames out; when the input is drained, what is written goes out and positions
 * are looked after. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"
#include "run.h"
#include "ws/toaststore.h"
#include "ws/tool.h"

#define FLUSH_AT       (256u * 1024)
#define PROGRESS_US    100000u
#define PROGRESS_BYTES (16u * 1024 * 1024)
#define SAY_US         10000000u

/* ---- output ---- */

int
ws_run_flush(void *arg, struct ws_err *err)
{
	struct ws_run *r = arg;

	if (!r->out.len)
		return 0;
	if (r->oracle && ws_run_text(r, err) != 0)
		return -1;
	return ws_sink_write(&r->sink, &r->out, err);
}

static int
put(struct ws_run *r, const struct ws_change *c, struct ws_err *err)
{
	ws_change_put(&r->out, c);
	return r->out.len >= FLUSH_AT ? ws_run_flush(r, err) : 0;
}

static int
put_identity(struct ws_run *r, struct ws_err *err)
{
	struct ws_change c = {
		.type = WS_C_IDENTITY,
		.identity = {r->cluster.system_id, r->tli, r->db, (uint16_t)r->cluster.major,
	                 r->o->dbname ? r->o->dbname : "", r->o->encoding ? r->o->encoding : "UTF8"},
	};

	ws_change_put_header(&r->out);
	return put(r, &c, err);
}

/* ---- positions ---- */

/* Everything that commits at or below has been sent. */
static struct ws_pos
sent_all(const struct ws_run *r)
{
	struct ws_pos p = r->done;

	if (r->live && p.lsn > r->live->captured.lsn)
		p = r->live->captured;
	if (p.lsn < r->sent.lsn)
		p = r->sent;
	return p;
}

static ws_tli
tli_at(const struct ws_run *r, ws_lsn lsn)
{
	return lsn < r->fork ? r->before : r->tli;
}

static void
note_sent(struct ws_run *r, struct ws_pos at)
{
	ws_lsn oldest = ws_decoder_oldest(r->dec);
	struct ws_pos floor = {at.tli, at.lsn};

	r->sent = at;
	if (oldest && oldest < at.lsn)
		floor = (struct ws_pos){tli_at(r, oldest), oldest};
	if (r->live)
		ws_floorq_push(&r->live->floors, at, floor);
}

/* WAL went by without a commit of ours: so that ack and floor move all the same. */
int
ws_run_progress(struct ws_run *r, struct ws_err *err)
{
	uint64_t t = ws_now_us();

	/* Of files the same stream each time: by bytes alone. */
	bool soon = (r->live || r->stream) && t - r->progress_us >= PROGRESS_US;

	if (r->done.lsn <= r->sent.lsn || (!soon && r->done.lsn - r->sent.lsn < PROGRESS_BYTES))
		return 0;
	if (r->live && ws_live_look_captured(r->live, r->done.lsn, err) < 0)
		return -1;
	struct ws_pos p = sent_all(r);

	if (p.lsn <= r->sent.lsn)
		return 0;
	struct ws_change c = {.type = WS_C_PROGRESS, .progress = p};

	r->progress_us = t;
	note_sent(r, p);
	return put(r, &c, err);
}

int
ws_run_look_after(struct ws_run *r, bool now, struct ws_err *err)
{
	ws_run_metrics(r);
	if (r->scratch.dir) {
		ws_lsn oldest = ws_decoder_oldest(r->dec);

		ws_scratch_prune(&r->scratch, oldest && oldest < r->done.lsn ? oldest : r->done.lsn);
	}
	if (r->live && (ws_live_floor(r->live, r->sent.lsn, now, err) != 0 ||
	                ws_live_read(r->live, r->done, now, err) != 0))
		return -1;
	if (r->toast && ws_run_toast_tend(r, err) != 0)
		return -1;
	if (r->o->reload && ws_tool_take_hup()) {
		if (r->o->reload(r->o->toast_arg, err) != 0)
			return -1;
		ws_decoder_reload(r->dec);
	}
	return ws_metrics_write(ws_tool_metrics(), now ? 0 : 1, err);
}

/* The decoder asks before a commit that ends at `end` is decoded. */
static int
captured(void *arg, ws_lsn end, struct ws_err *err)
{
	struct ws_run *r = arg;
	uint64_t said = ws_now_us();
	int rc;

	if (r->live->captured.lsn >= end)
		return 1;
	while ((rc = ws_live_look_captured(r->live, end, err)) == 0) {
		if (ws_run_flush(r, err) != 0 || ws_run_look_after(r, false, err) != 0)
			return -1;
		if (ws_tool_stopping())
			return 0;
		if (ws_now_us() - said > SAY_US) {
			ws_info("waiting for the catalog history: captured=" WS_LSN_FMT " commit=" WS_LSN_FMT,
			        WS_LSN_ARG(r->live->captured.lsn), WS_LSN_ARG(end));
			said = ws_now_us();
		}
		if (ws_live_sleep(r->live, -1, 100, err) != 0)
			return -1;
	}
	return rc;
}

/* ---- records ---- */

static int
start_decoder(struct ws_run *r, struct ws_err *err)
{
	const struct ws_decoding_opts *o = r->o;
	struct ws_decoder_opts d = {
		.cat = r->cat,
		.db = r->db,
		.segsize = r->cluster.segsize,
		.memory = o->memory,
		.trust_swaps = o->trust_swaps,
		.allow_absent = o->allow_absent,
		.max_value = (uint32_t)o->max_value,
		.skip = r->live ? r->live->ack.lsn : 0,
		.oracle = r->oracle,
		.toast = r->toast,
		.toast_use = o->toast_use,
		.toast_arg = o->toast_arg,
		.spill = r->spill,
		.out = &r->out,
		.captured = r->live ? captured : NULL,
		.flush = ws_run_flush,
		.flush_at = FLUSH_AT,
		.arg = r,
	};

	return (r->dec = ws_decoder_new(&d, err)) ? 0 : -1;
}

/* 1 go on, 0 stop, -1 */
static int
records(struct ws_run *r, struct ws_err *err)
{
	const struct ws_walver *ver = NULL;
	struct ws_rec rec;
	int rc;

	while ((rc = ws_walsrc_record(r->src, r->tli, r->reader, &rec, err)) == 1) {
		if (!ver)
			ver = ws_walreader_ver(r->reader);
		if (r->o->end && rec.start >= r->o->end)
			return 0;
		if (ws_run_held(r, rec.end) && (rc = ws_run_hold_wait(r, rec.end, err)) != 1)
			return rc == 2 ? 1 : rc;
		rc = ws_decoder_record(r->dec, &rec, ver, err);
		if (rc != 1)
			return rc;
		r->done = (struct ws_pos){rec.tli, rec.end};
		if (rec.rmid == WS_RM_XACT && ws_decoder_last_commit(r->dec) == rec.end &&
		    rec.end > r->sent.lsn) {
			r->commit = r->done;
			note_sent(r, r->done);
		}
		if (r->out.len >= FLUSH_AT && ws_run_flush(r, err) != 0)
			return -1;
	}
	return rc < 0 ? -1 : 1;
}

/* p lies past the switch from r->tli, and on no descendant in the history: what was sent there has not
 * happened. */
static int
check_fork(const struct ws_run *r, struct ws_pos p, const struct ws_history *h, ws_lsn at, struct ws_err *err)
{
	ws_lsn end = h && p.tli > r->tli ? ws_history_end(h, p.tli) : 0;

	if (p.lsn <= at || p.lsn <= end)
		return 0;
	return ws_err_op(err, "published_past_fork",
	                 "timeline %u ends at " WS_LSN_FMT ", but changes up to " WS_LSN_FMT
	                 " of timeline %u were sent",
	                 r->tli, WS_LSN_ARG(at), WS_LSN_ARG(p.lsn), p.tli);
}

static bool
is_past(const struct ws_run *r, const struct ws_history *h, struct ws_pos p)
{
	return h && p.lsn && p.tli != r->tli && p.lsn > ws_history_end(h, p.tli);
}

/* What an earlier run published must be on the way that is read now: a segment in which timelines meet
 * is read under the descendant's name from its start, and no switch is seen then.  An ack past it alone
 * went along with WAL that had nothing for us, and can be taken back. */
static int
check_before(const struct ws_run *r, struct ws_err *err)
{
	const struct ws_history *h = ws_walsrc_history(r->src);
	const struct ws_pos sent = r->live->published, ack = r->live->ack;

	if (is_past(r, h, sent))
		return ws_err_op(err, "published_past_fork",
		                 "timeline %u ends at " WS_LSN_FMT ", but changes up to " WS_LSN_FMT " of it were sent",
		                 sent.tli, WS_LSN_ARG(ws_history_end(h, sent.tli)), WS_LSN_ARG(sent.lsn));
	if (is_past(r, h, ack))
		return ws_err_op(err, "past_fork",
		                 "timeline %u ends at " WS_LSN_FMT ", but " WS_LSN_FMT
		                 " of it is acknowledged, where nothing was sent: go back with ws-catalog rewind",
		                 ack.tli, WS_LSN_ARG(ws_history_end(h, ack.tli)), WS_LSN_ARG(ack.lsn));
	return 0;
}

/* The first bytes tell who the cluster is. */
static int
begin(struct ws_run *r, const struct ws_walchunk *c, struct ws_err *err)
{
	struct ws_pos first = r->start.lsn ? r->start : (struct ws_pos){c->tli, c->lsn};

	if (c->lsn > first.lsn)
		return ws_err_op(err, "wal_missing",
		                 "WAL begins at " WS_LSN_FMT ", it is needed from " WS_LSN_FMT,
		                 WS_LSN_ARG(c->lsn), WS_LSN_ARG(first.lsn));
	if (!ws_walsrc_cluster(r->src, &r->cluster))
		return ws_err_usage(err, "the WAL does not say which cluster it is of");
	r->tli = c->tli;
	if (r->live && check_before(r, err) != 0)
		return -1;
	r->sent = r->done = first;
	if (ws_run_toast_open(r, err) != 0 || ws_run_toast_route(r, err) != 0 ||
	    start_decoder(r, err) != 0)
		return -1;
	r->reader = ws_walreader_new(r->cluster.segsize, r->cluster.system_id, 0);
	ws_walreader_seek(r->reader, c->lsn, first.lsn);
	ws_decoder_route(r->dec, c->tli, ws_seg_start(c->lsn, r->cluster.segsize));
	if (r->live) {
		struct ws_pos ack = r->live->ack.lsn > first.lsn ? r->live->ack : first;

		/* A floor for what was acknowledged before: itself. */
		ws_floorq_push(&r->live->floors, ack, r->live->floor);
		r->sent = ack;
	}
	return put_identity(r, err);
}

/* A descendant's segment comes. */
static int
switch_timeline(struct ws_run *r, const struct ws_walchunk *c, struct ws_err *err)
{
	const struct ws_history *h = ws_walsrc_history(r->src);
	ws_lsn at = h ? ws_history_end(h, r->tli) : c->lsn;

	if (check_fork(r, r->commit, h, at, err) != 0 ||
	    (r->live && check_fork(r, r->live->published, h, at, err) != 0))
		return -1;
	if (r->done.lsn > at)
		return ws_err_temp(
			err, "timeline %u ends at " WS_LSN_FMT ", which was read past: starting again", r->tli,
			WS_LSN_ARG(at));
	struct ws_change ev = {.type = WS_C_TIMELINE, .timeline = {r->tli, c->tli, at}};

	ws_info("timeline switch: timeline=%u lsn=" WS_LSN_FMT, c->tli, WS_LSN_ARG(at));
	ws_decoder_route(r->dec, c->tli, ws_seg_start(c->lsn, r->cluster.segsize));
	r->before = r->tli;
	r->fork = at;
	r->tli = c->tli;
	if (ws_run_toast_route(r, err) != 0)
		return -1;
	ws_walreader_fork(r->reader, c->lsn, at);
	return put(r, &ev, err);
}

/* 1 go on, 0 the WAL has ended or stop, -1 */
/* Only bytes that are not durable yet may be torn: a restart reads them again.  What was captured
 * is durable, and damage. */
static int
torn(struct ws_run *r, const struct ws_walchunk *c, struct ws_err *err)
{
	struct ws_err other = {0};
	int rc = ws_walsrc_damaged(c, ws_walreader_failed_below(r->reader),
	                           ws_walreader_clean_end(r->reader), r->live->captured_path, &other);

	if (rc < 0)
		*err = other;
	return rc == 0 ? ws_err_temp(err, "%s; its writer may write it again", err->msg) : -1;
}

static int
chunk(struct ws_run *r, const struct ws_walchunk *c, struct ws_err *err)
{
	if ((!r->reader && begin(r, c, err) != 0) ||
	    (c->tli != r->tli && switch_timeline(r, c, err) != 0))
		return -1;
	if (ws_run_place(r, c, err) != 0)
		return -1;
	if (r->scratch.dir && ws_scratch_put(&r->scratch, c->tli, c->lsn, c->p, c->n, err) != 0)
		return -1;
	if (r->reseek)
		ws_walreader_seek(r->reader, c->lsn, r->done.lsn);
	r->reseek = false;
	if (ws_walreader_feed(r->reader, c->lsn, c->p, c->n, err) != 0)
		return -1;
	int rc = records(r, err);

	if (rc >= 0 || !ws_walreader_torn(r->reader))
		return rc;
	return r->live ? torn(r, c, err) : ws_walreader_clean_end(r->reader) ? 0 : -1;
}

/* ---- the loop ---- */

static int
idle(struct ws_run *r, struct ws_err *err)
{
	if (r->dec &&
	    (ws_run_progress(r, err) != 0 || ws_run_flush(r, err) != 0 || ws_run_look_after(r, false, err) != 0))
		return -1;
	if (!r->live)
		return ws_walsrc_wait(r->src, 100, err);
	bool outstanding = r->dec && (r->done.lsn > r->sent.lsn || r->live->ack.lsn < r->sent.lsn);

	return ws_live_sleep(r->live, ws_walsrc_fd(r->src), outstanding ? 20 : 500, err);
}

/* Reads one source to its end.  1 the next may follow, 0 stop, -1. */
static int
drain(struct ws_run *r, struct ws_err *err)
{
	struct ws_walchunk c;
	unsigned n = 0;

	while (!ws_tool_stopping()) {
		int rc = ws_walsrc_next(r->src, &c, err);

		if (rc == 1) {
			rc = chunk(r, &c, err);
			if (rc <= 0)
				return rc;
			if (++n % 16 == 0 && (ws_run_progress(r, err) != 0 || ws_run_look_after(r, false, err) != 0))
				return -1;
		} else if (rc < 0) {
			return -1;
		} else if (!r->live && (ws_walsrc_at_end(r->src) || !r->stream)) {
			return 1;
		} else if (idle(r, err) != 0) {
			return -1;
		}
	}
	return 0;
}

static int
finish(struct ws_run *r, struct ws_err *err)
{
	if (!r->dec)
		return r->live || ws_tool_stopping() ? 0 : ws_err_usage(err, "no WAL to decode");
	struct ws_change c = {.type = WS_C_END, .end = sent_all(r)};

	ws_change_put(&r->out, &c);
	if (ws_run_flush(r, err) != 0)
		return -1;
	if (r->toast && ws_toaststore_sync(r->toast, err) != 0)
		return -1;
	return ws_run_look_after(r, true, err);
}

int
ws_run_inputs(struct ws_run *r, struct ws_err *err)
{
	int rc = 1;

	for (size_t i = 0; i < r->ninputs && rc == 1; i++) {
		if (ws_run_open_input(r, r->inputs[i], i == 0, err) != 0)
			return -1;
		rc = drain(r, err);
	}
	if (rc >= 0)
		return finish(r, err);
	/* What came before the failure may go on; without an end frame the reader knows. */
	struct ws_err ignored;

	if (!r->oracle || !ws_oracle_deferred(r->oracle))
		(void)ws_run_flush(r, &ignored);
	return -1;
}
