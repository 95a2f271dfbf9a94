/* Opening and closing a run of ws-decode, and its metrics. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"
#include "run.h"
#include "ws/toaststore.h"
#include "ws/file.h"
#include "ws/tool.h"

/* ---- metrics ---- */

enum metric {
	M_COMMITS,
	M_INSERTS,
	M_UPDATES,
	M_DELETES,
	M_TRUNCATES,
	M_REPLACES,
	M_SCHEMAS,
	M_MESSAGES,
	M_SEQUENCES,
	M_SKIPPED,
	M_VOIDED,
	M_NOT_SENT,
	M_RECORDS,
	M_MERGES,
	M_SPILLS,
	M_REAPED,
	M_ABANDONED,
	M_FLOOR_TLI,
	M_BYTES,
	M_BLOCKED,
	M_READ_LSN,
	M_SENT_LSN,
	M_ACK_LSN,
	M_OLDEST_LSN,
	M_UNFINISHED,
	M_PREPARED,
	M_PREPARED_TIME,
	M_MEMORY,
	M_COMMIT_TIME,
	M_UNSUPPORTED,
	M_ORACLE_VALUES,
	M_ORACLE_BATCHES,
	M_ORACLE_BYTES,
	M_ORACLE_LOST,
	M_ORACLE_WAIT,
	M_ORACLE_UP,
	M_HOLD_LSN,
	M_HOLD_WAITING,
	M_TOAST_ABSENT,
	M_TOAST_FETCHED,
	M_TOAST_CHUNKS,
	M_TOAST_PURGED,
	M_TOAST_BYTES
};

#define ROWS_HELP "Row changes sent."

static const struct {
	enum ws_metric_kind kind;
	const char *name, *labels, *help;
} metrics[] = {
	[M_COMMITS] = {WS_COUNTER, "walshadow_decode_transactions_total", "", "Transactions sent."},
	[M_INSERTS] = {WS_COUNTER, "walshadow_decode_rows_total", "op=\"insert\"", ROWS_HELP},
	[M_UPDATES] = {WS_COUNTER, "walshadow_decode_rows_total", "op=\"update\"", ROWS_HELP},
	[M_DELETES] = {WS_COUNTER, "walshadow_decode_rows_total", "op=\"delete\"", ROWS_HELP},
	[M_TRUNCATES] = {WS_COUNTER, "walshadow_decode_events_total", "event=\"truncate\"",
                     "Other events sent."},
	[M_REPLACES] = {WS_COUNTER, "walshadow_decode_events_total", "event=\"replace\"",
                    "Other events sent."},
	[M_SCHEMAS] = {WS_COUNTER, "walshadow_decode_events_total", "event=\"schema\"",
                   "Other events sent."},
	[M_MESSAGES] = {WS_COUNTER, "walshadow_decode_events_total", "event=\"message\"",
                    "Other events sent."},
	[M_SEQUENCES] = {WS_COUNTER, "walshadow_decode_events_total", "event=\"sequence\"",
                     "Other events sent."},
	[M_SKIPPED] = {WS_COUNTER, "walshadow_decode_skipped_transactions_total", "",
                   "Transactions read again that were acknowledged before."},
	[M_VOIDED] = {WS_COUNTER, "walshadow_decode_voided_rows_total", "",
                  "Rows that a rewrite in the same transaction superseded."},
	[M_NOT_SENT] = {WS_COUNTER, "walshadow_decode_unsent_records_total", "",
                    "Records of materialized views and unlogged tables."},
	[M_RECORDS] = {WS_COUNTER, "walshadow_decode_records_total", "", "WAL records read."},
	[M_MERGES] = {WS_COUNTER, "walshadow_decode_page_maps_total", "",
                  "Position lists that became page maps to stay within the memory."},
	[M_SPILLS] = {WS_COUNTER, "walshadow_decode_spilled_total", "",
                  "Unfinished (sub)transactions of which only xid and pages were kept, for memory."},
	[M_REAPED] = {WS_COUNTER, "walshadow_decode_reaped_total", "",
                  "Transactions that crashed without an abort."},
	[M_ABANDONED] = {WS_COUNTER, "walshadow_timeline_abandoned_xacts_total", "",
                     "(Sub)transactions that a switch of timeline left unfinished."},
	[M_FLOOR_TLI] = {WS_GAUGE, "walshadow_floor_timeline", "", "Timeline of the consumer's floor."},
	[M_BYTES] = {WS_COUNTER, "walshadow_decode_output_bytes_total", "", "Bytes written."},
	[M_BLOCKED] = {WS_COUNTER, "walshadow_decode_output_blocked_seconds_total", "",
                   "Time spent waiting for whoever reads the output."},
	[M_READ_LSN] = {WS_GAUGE, "walshadow_decode_read_lsn", "", "End of the last record read."},
	[M_SENT_LSN] = {WS_GAUGE, "walshadow_decode_sent_lsn", "",
                    "Everything that commits at or below was put out."},
	[M_ACK_LSN] = {WS_GAUGE, "walshadow_decode_ack_lsn", "", "Acknowledged position as last seen."},
	[M_OLDEST_LSN] = {WS_GAUGE, "walshadow_decode_oldest_lsn", "",
                      "First record of the oldest unfinished transaction, or the position read."},
	[M_UNFINISHED] = {WS_GAUGE, "walshadow_decode_unfinished_transactions", "",
                      "Unfinished (sub)transactions that wrote something."},
	[M_PREPARED] = {WS_GAUGE, "walshadow_decode_prepared_transactions", "",
                    "Prepared transactions that wait for their commit or rollback."},
	[M_PREPARED_TIME] = {WS_GAUGE, "walshadow_decode_prepared_oldest_timestamp_seconds", "",
                         "When the oldest of them was prepared, by the source's clock; 0 none."},
	[M_MEMORY] = {WS_GAUGE, "walshadow_decode_position_bytes", "",
                  "Memory for positions of unfinished transactions."},
	[M_COMMIT_TIME] = {WS_GAUGE, "walshadow_decode_commit_timestamp_seconds", "",
                       "Time of the last commit put out, by the source's clock."},
	[M_UNSUPPORTED] = {WS_COUNTER, "walshadow_decode_unsupported_values_total", "",
                       "Values of types that are not decoded, sent as bytes."},
	[M_ORACLE_VALUES] = {WS_COUNTER, "walshadow_decode_oracle_values_total", "",
                         "Values that the oracle rendered."},
	[M_ORACLE_BATCHES] = {WS_COUNTER, "walshadow_decode_oracle_batches_total", "",
                          "Requests that the oracle answered."},
	[M_ORACLE_BYTES] = {WS_COUNTER, "walshadow_decode_oracle_bytes_total", "",
                        "Bytes of text that the oracle made."},
	[M_ORACLE_LOST] = {WS_COUNTER, "walshadow_decode_oracle_lost_total", "",
                       "Connections to the oracle that ended before their answer."},
	[M_ORACLE_WAIT] = {WS_COUNTER, "walshadow_decode_oracle_wait_seconds_total", "",
                       "Time spent waiting for the oracle's answers."},
	[M_ORACLE_UP] = {WS_GAUGE, "walshadow_decode_oracle_available", "",
                     "0 while values wait for an oracle that is not there."},
	[M_HOLD_LSN] = {WS_GAUGE, "walshadow_decode_hold_lsn", "",
                    "What --hold-back lets be read, as a number; 0 without it."},
	[M_HOLD_WAITING] = {WS_GAUGE, "walshadow_decode_hold_waiting", "",
                        "1 while WAL waits for a standby to have flushed it."},
	[M_TOAST_ABSENT] = {WS_COUNTER, "walshadow_decode_toast_absent_total", "",
                        "TOAST values of earlier transactions that are not known and were left out."},
	[M_TOAST_FETCHED] = {WS_COUNTER, "walshadow_decode_toast_fetched_total", "",
                         "TOAST values taken from the store."},
	[M_TOAST_CHUNKS] = {WS_COUNTER, "walshadow_decode_toast_chunks_total", "",
                        "TOAST chunks put into the store."},
	[M_TOAST_PURGED] = {WS_COUNTER, "walshadow_decode_toast_purged_total", "",
                        "TOAST chunks removed from the store."},
	[M_TOAST_BYTES] = {WS_GAUGE, "walshadow_decode_toast_store_bytes", "",
                       "Size of the TOAST store."},
};

_Static_assert(sizeof metrics / sizeof metrics[0] <=
                   sizeof((struct ws_run *)0)->m / sizeof(double *),
               "room for every metric");

static void
register_metrics(struct ws_run *r)
{
	for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
		r->m[i] = ws_metric(ws_tool_metrics(), metrics[i].kind, metrics[i].name, metrics[i].labels,
		                    metrics[i].help);
}

void
ws_run_metrics(struct ws_run *r)
{
	struct ws_decoder_stats s;

	ws_decoder_get_stats(r->dec, &s);
	*r->m[M_COMMITS] = (double)s.commits;
	*r->m[M_INSERTS] = (double)s.inserts;
	*r->m[M_UPDATES] = (double)s.updates;
	*r->m[M_DELETES] = (double)s.deletes;
	*r->m[M_TRUNCATES] = (double)s.truncates;
	*r->m[M_REPLACES] = (double)s.replaces;
	*r->m[M_SCHEMAS] = (double)s.schemas;
	*r->m[M_MESSAGES] = (double)s.messages;
	*r->m[M_SEQUENCES] = (double)s.sequences;
	*r->m[M_SKIPPED] = (double)s.skipped;
	*r->m[M_VOIDED] = (double)s.voided;
	*r->m[M_NOT_SENT] = (double)s.not_sent;
	*r->m[M_RECORDS] = (double)s.records;
	*r->m[M_MERGES] = (double)s.merges;
	*r->m[M_SPILLS] = (double)s.spills;
	*r->m[M_PREPARED] = (double)s.prepared;
	*r->m[M_PREPARED_TIME] = s.prepared ? (double)s.prepared_time / 1e6 + 946684800 : 0;
	*r->m[M_REAPED] = (double)s.reaped;
	*r->m[M_ABANDONED] = (double)s.abandoned;
	*r->m[M_FLOOR_TLI] = r->live ? r->live->floor.tli : 0;
	*r->m[M_BYTES] = (double)r->sink.bytes;
	*r->m[M_BLOCKED] = (double)r->sink.blocked_us / 1e6;
	*r->m[M_READ_LSN] = (double)r->done.lsn;
	*r->m[M_SENT_LSN] = (double)r->sent.lsn;
	*r->m[M_ACK_LSN] = r->live ? (double)r->live->ack.lsn : 0;
	*r->m[M_OLDEST_LSN] = (double)(s.oldest ? s.oldest : r->done.lsn);
	*r->m[M_UNFINISHED] = (double)s.unfinished;
	*r->m[M_MEMORY] = (double)s.memory;
	*r->m[M_UNSUPPORTED] = (double)s.unsupported;
	if (r->oracle) {
		struct ws_oracle_stats o;

		ws_oracle_get_stats(r->oracle, &o);
		*r->m[M_ORACLE_VALUES] = (double)o.values;
		*r->m[M_ORACLE_BATCHES] = (double)o.batches;
		*r->m[M_ORACLE_BYTES] = (double)o.bytes;
		*r->m[M_ORACLE_LOST] = (double)o.lost;
		*r->m[M_ORACLE_WAIT] = (double)o.waited_us / 1e6;
	}
	*r->m[M_HOLD_LSN] = (double)r->hold.limit;
	*r->m[M_HOLD_WAITING] = r->hold.waiting;
	*r->m[M_ORACLE_UP] = !r->oracle_away;
	/* From 2000-01-01 to 1970-01-01. */
	*r->m[M_COMMIT_TIME] = s.commit_time ? (double)s.commit_time / 1e6 + 946684800 : 0;
	*r->m[M_TOAST_ABSENT] = (double)s.toast_absent;
	if (!r->toast)
		return;
	struct ws_toaststore_stats t;

	ws_toaststore_get_stats(r->toast, &t);
	*r->m[M_TOAST_FETCHED] = (double)t.fetched;
	*r->m[M_TOAST_CHUNKS] = (double)t.chunks;
	*r->m[M_TOAST_PURGED] = (double)t.purged;
	*r->m[M_TOAST_BYTES] = (double)t.disk;
}

/* ---- input ---- */

static bool
compressed(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcmp(dot, ".gz") || !strcmp(dot, ".lz4") || !strcmp(dot, ".zst"));
}

/* Tells the decoder where the bytes can be read again. */
static int
place_input(struct ws_run *r, const char *input, const struct ws_walchunk *c, struct ws_err *err)
{
	struct stat st;

	if (!strcmp(input, "-") || compressed(input)) {
		if (!r->scratch.dir &&
		    ws_scratch_open(&r->scratch, r->o->scratch, ws_walsrc_segsize(r->src), err) != 0)
			return -1;
		ws_decoder_dir(r->dec, r->scratch.dir);
		return 0;
	}
	if (stat(input, &st) != 0)
		return ws_err_arg(err, "%s", input);
	if (S_ISDIR(st.st_mode))
		ws_decoder_dir(r->dec, input);
	else
		ws_decoder_file(r->dec, input, ws_seg_start(c->lsn, r->cluster.segsize));
	return 0;
}

int
ws_run_open_input(struct ws_run *r, const char *input, bool first, struct ws_err *err)
{
	struct ws_walsrc_opts so = {.segsize = r->cluster.segsize, .follow = r->live != NULL};

	ws_walsrc_close(r->src);
	r->input = input;
	r->stream = !strcmp(input, "-");
	r->src = ws_walsrc_open(input, first ? r->start : (struct ws_pos){0, 0}, &so, err);
	return r->src ? 0 : -1;
}

int
ws_run_place(struct ws_run *r, const struct ws_walchunk *c, struct ws_err *err)
{
	if (r->placed == r->input)
		return 0;
	r->placed = r->input;
	return place_input(r, r->input, c, err);
}

/* ---- start ---- */

static int
open_live(struct ws_run *r, struct ws_live *l, struct ws_err *err)
{
	const struct ws_decoding_opts *o = r->o;

	if (ws_live_open(l, o->state, o->consumer, r->db, err) != 0)
		return -1;
	r->live = l;
	ws_run_hold_open(r);
	int rc = ws_live_wait_start(l, err);

	if (rc != 1)
		return rc;
	r->start = l->floor;
	return 1;
}

static void
close_run(struct ws_run *r)
{
	ws_decoder_free(r->dec);
	ws_oracle_free(r->oracle);
	ws_toaststore_close(r->toast);
	free(r->spill);
	free(r->hold.path);
	ws_walreader_free(r->reader);
	ws_walsrc_close(r->src);
	ws_scratch_close(&r->scratch);
	ws_cathist_close(r->cat);
	ws_buf_free(&r->out);
	ws_sink_fini(&r->sink);
	if (r->live)
		ws_live_close(r->live);
}

int
ws_decoding_run(const struct ws_decoding_opts *o, struct ws_err *err)
{
	struct ws_run *r = ws_calloc(1, sizeof *r);
	struct ws_live live;
	int rc = 1;

	r->o = o;
	r->db = o->db;
	r->inputs = o->inputs;
	r->ninputs = o->ninputs;
	r->start.lsn = o->start;
	if (o->oracle)
		r->oracle = ws_oracle_new(o->oracle, o->db);
	ws_sink_init(&r->sink, o->fd, o->json);
	register_metrics(r);
	if (o->consumer)
		rc = open_live(r, &live, err);
	if (rc == 1) {
		r->cat = ws_cathist_open(o->catalog, false, err);
		rc = r->cat ? ws_cathist_captured(r->cat, r->db, NULL, NULL, err) : -1;
		if (rc == 0)
			rc = ws_err_op(err, "catalog_missing", "%s: nothing of database %u is captured",
			               o->catalog, r->db);
		if (rc == 1)
			rc = ws_run_inputs(r, err);
	}
	close_run(r);
	free(r);
	return rc < 0 ? -1 : 0;
}
