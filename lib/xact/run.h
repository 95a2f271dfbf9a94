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

/* What may be read, by the standbys that are waited for. */
struct ws_holdback {
	char *path; /* of their position; NULL: no limit */
	struct ws_pos at; /* as last read; lsn 0: not there */
	ws_tli tli;       /* for which limit holds */
	ws_lsn limit;     /* records that end at or below may be taken */
	bool waiting;
	uint64_t said_us, looked_us;
};

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
	struct ws_pos commit; /* of the last commit that was put out in this run */
	ws_tli tli, before;   /* read now; before the switch at fork */
	ws_lsn fork;
	uint64_t progress_us;
	struct ws_holdback hold;
	bool reseek; /* the source was sent back to done: the reader follows with the next chunk */
	struct ws_oracle *oracle; /* NULL: none */
	bool oracle_away;         /* it was not there when last asked */
	double *m[48];
};

int ws_run_inputs(struct ws_run *r, struct ws_err *err);
int ws_run_flush(void *arg, struct ws_err *err);
/* Metrics, floor, read position: what has to happen now and then; now: all of it. */
int ws_run_look_after(struct ws_run *r, bool now, struct ws_err *err);

/* Moves the sent position over WAL without a commit of ours, now and then. */
int ws_run_progress(struct ws_run *r, struct ws_err *err);

/* ---- holdback.c ---- */

static inline bool
ws_run_held(const struct ws_run *r, ws_lsn end)
{
	return r->hold.path && (end > r->hold.limit || r->hold.tli != r->tli);
}

void ws_run_hold_open(struct ws_run *r);
/* Waits until the record that ends at `end' is covered.  1 it is; 0 stop; 2 it has not happened: another
 * timeline goes on before it, and the source stands at r->done again; -1. */
int ws_run_hold_wait(struct ws_run *r, ws_lsn end, struct ws_err *err);

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
