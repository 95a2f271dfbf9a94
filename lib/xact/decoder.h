/* The decoder's insides, shared by skim.c (first reading), commit.c (a transaction's end),
 * rows.c (records to row events), events.c (everything else that is sent).  Private to lib/xact. */
#ifndef WS_DECODER_H
#define WS_DECODER_H

#include "chain.h"
#include "orphan.h"
#include "posread.h"
#include "prepared.h"
#include "shapes.h"
#include "toastmap.h"
#include "ws/boundary.h"
#include "ws/heap.h"
#include "ws/xact.h"
#include "ws/xactrec.h"
#include "xtx.h"

#define WS_SPECS_MAX 8
#define WS_ROWFILES  256

/* A TOAST value of the row at hand that was not found. */
struct ws_toastmiss {
	ws_oid rel, id;
	bool before_load;
};

/* A speculative insert that waits for its confirmation. */
struct ws_spec {
	ws_lsn at;
	ws_xid xid;
	ws_oid file;
	uint32_t blkno;
	uint16_t off;
};

struct ws_decoder {
	struct ws_decoder_opts o;
	const struct ws_walver *ver;
	struct ws_xtab tab;
	struct ws_orphans orphans;
	struct ws_prepset prepared;
	struct ws_walplace place;
	struct ws_posread rd, rd_toast; /* a row is held while its TOAST chunks are read */
	struct ws_shapes shapes;
	ws_lsn first_capture; /* the history begins here */
	ws_lsn last_commit;
	struct ws_decoder_stats st;

	/* the transaction being sent */
	struct ws_c_begin begin;
	ws_tli tli;
	bool begun;
	uint64_t ordinal;
	struct ws_chain *chain; /* NULL: no relation changes its file in it, or goes */
	size_t next_mark;       /* of chain's marks */
	struct ws_toastmap toast;
	struct ws_spec specs[WS_SPECS_MAX];
	unsigned nspecs;
	/* What the rows' files are, by their lower bits; good for one epoch. */
	struct ws_rowfile {
		ws_oid file, spc; /* file 0: empty */
		struct ws_shape *shape;
	} files[WS_ROWFILES];
	ws_lsn row_lsn;
	bool toast_apply; /* its TOAST chunks go to the store ... */
	bool store_only;  /* ... and nothing else: it was sent and acknowledged before */
	bool old_whole;   /* the row's old version is whole, so that it has what the new one keeps */
	unsigned nmiss;
	struct ws_toastmiss miss[WS_CHANGE_MAX_COLS];
	struct ws_shape *old_shape; /* rows older than a copy of this relation ... */
	struct ws_heapdesc *old_desc; /* ... are read by this; old_rel is its own */
	struct ws_rel *old_rel, *old_before;
	int16_t old_natts; /* attributes whose missing values are known */
	struct ws_arena arena;
	struct ws_value vnew[WS_CHANGE_MAX_COLS], vold[WS_CHANGE_MAX_COLS];
};

/* ---- skim.c ---- */

/* 1: its position is remembered with its transaction; 0; -1. */
int ws_skim_wanted(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err);

/* ---- decoder.c ---- */

/* A boundary was passed: shapes found before are looked at again. */
void ws_decoder_epoch(struct ws_decoder *d);

/* ---- abandon.c ---- */

/* A timeline begins: unfinished transactions go, but for prepared ones. */
void ws_abandon(struct ws_decoder *d);

/* ---- commit.c ---- */
int ws_commit(struct ws_decoder *d, const struct ws_record *r, const struct ws_xactrec *x,
              struct ws_err *err);
void ws_abort(struct ws_decoder *d, const struct ws_xactrec *x);

/* ---- quick.c ---- */

/* As ws_record_parse and ws_heaprec_parse, for the common form of record; fields that its operation
 * does not have are left alone.  False: not of that form. */
bool ws_quick_heap(const struct ws_rec *rec, struct ws_heaprec *h);

/* ---- rows.c ---- */

/* A heap record of the transaction being sent. */
int ws_row_record(struct ws_decoder *d, const struct ws_rec *rec, struct ws_err *err);
/* What a file is, for a record at lsn: NULL in *sh when nothing, or not any more; when the record
 * has a tuple, that must be explained. */
int ws_row_file(struct ws_decoder *d, const struct ws_locator *loc, ws_lsn lsn, bool has_data,
                struct ws_shape **sh, struct ws_err *err);

/* ---- raw.c ---- */

/* A row of sh was put at `frame`: its values that the oracle has to render are noted, or counted
 * when there is none. */
void ws_row_raw(struct ws_decoder *d, const struct ws_shape *sh, size_t frame,
                const struct ws_value *new_, const struct ws_value *old);

/* ---- oldshape.c ---- */

/* In a transaction with a chain: what reads a tuple of sh at d->row_lsn (rows.c's decode). */
int ws_row_old_desc(struct ws_decoder *d, struct ws_shape *sh, const struct ws_tuple *t,
                    struct ws_heapdesc **desc, struct ws_err *err);

void ws_row_old_forget(struct ws_decoder *d);

/* ---- events.c ---- */
int ws_ev_begin(struct ws_decoder *d, struct ws_err *err); /* the frame, when not yet sent */
int ws_ev_flush(struct ws_decoder *d, struct ws_err *err); /* when out is large */
int
ws_ev_truncate(struct ws_decoder *d, const struct ws_heaprec *h, ws_lsn lsn, struct ws_err *err);
int ws_ev_message(struct ws_decoder *d, const struct ws_record *r, bool transactional,
                  struct ws_err *err);
int ws_ev_sequence(struct ws_decoder *d, const struct ws_record *r, bool transactional,
                   struct ws_err *err);
int ws_ev_schema(struct ws_decoder *d, char what, struct ws_shape *before, struct ws_shape *after,
                 struct ws_err *err);
int ws_ev_replace(struct ws_decoder *d, bool begin, struct ws_shape *sh, struct ws_err *err);
void ws_ev_commit(struct ws_decoder *d);

#endif
