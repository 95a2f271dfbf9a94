/* The state of a run of ws-decode: run.c (the loop), start.c (opening and closing).  Private to
 * lib/xact. */
#ifndef WS_RUN_H
#define WS_RUN_H

#include "scratch.h"
#include "sink.h"
#include "ws/decoding.h"
#include "ws/waldir.h"
#include "ws/walread.h"

struct ws_live;

struct ws_run {
	const struct ws_decoding_opts *o;
	ws_oid db;
	struct ws_live *live; /* NULL: offline */
	struct ws_cathist *cat;
	struct ws_cluster cluster;
	const char *const *inputs;
	size_t ninputs;
	struct ws_walsrc *src;
	const char *input, *placed; /* at hand; that the decoder knows of */
	bool stream; /* src is a stream: its end is told */
	struct ws_scratch scratch;
	struct ws_walreader *reader;
	struct ws_decoder *dec; /* made with the first bytes */
	struct ws_toaststore *toast; /* NULL: none */
	char *spill; /* folder for what is too much for memory */
	ws_lsn purged; /* what died at or below is gone from it */
	struct ws_buf out;
	struct ws_sink sink;
	struct ws_pos start;  /* asked for; lsn 0: the first byte */
	struct ws_pos done;   /* end of the last record taken */
	struct ws_pos sent;   /* of the last commit or progress put out */
	ws_tli tli, before;   /* read now; before the switch at fork */
	ws_lsn fork;
	uint64_t progress_us;
	struct ws_oracle *oracle; /* NULL: none */
	bool oracle_away;         /* it was not there when last asked */
	double *m[48];
};

int ws_run_inputs(struct ws_run *r, struct ws_err *err);
int ws_run_flush(void *arg, struct ws_err *err);
/* Metrics, floor, read position: what has to happen now and then; now: all of it. */
int ws_run_look_after(struct ws_run *r, bool now, struct ws_err *err);

/* ---- text.c ---- */

/* Has the oracle put text into r->out, however long it takes. */
int ws_run_text(struct ws_run *r, struct ws_err *err);

/* ---- start.c ---- */
int ws_run_open_input(struct ws_run *r, const char *input, bool first, struct ws_err *err);
/* The decoder must be able to read the input's bytes again; c is its first chunk. */
int ws_run_place(struct ws_run *r, const struct ws_walchunk *c, struct ws_err *err);
void ws_run_metrics(struct ws_run *r);

/* ---- runtoast.c ---- */
/* The TOAST store, once the cluster is known. */
int ws_run_toast_open(struct ws_run *r, struct ws_err *err);
/* The path of the WAL begins, or goes on, with r->tli. */
int ws_run_toast_route(struct ws_run *r, struct ws_err *err);
/* Now and then: what is dead goes, what rests for long is written. */
int ws_run_toast_tend(struct ws_run *r, struct ws_err *err);

#endif
