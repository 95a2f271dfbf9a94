/* The decoder: WAL records in, committed transactions of one database out as a change stream.
 *
 * It remembers what unfinished transactions wrote by position (8 bytes a record) and reads the
 * records again from the segment files when a commit is known, with the shapes of that commit.
 * So it is told where the segments are, and every record it is given must already lie there.
 *
 * Not here: finding bytes (lib/wal), positions on disk, waiting, writing (ws-decode). */
#ifndef WS_XACT_H
#define WS_XACT_H

#include "ws/change.h"
#include "ws/oracle.h"
#include "ws/record.h"
#include "ws/shape.h"
#include "ws/walpage.h"

struct ws_decoder;
struct ws_toaststore;

/* What becomes of a relation's TOAST values that an earlier transaction wrote. */
enum ws_toast_use {
	WS_TOAST_STOP,   /* kept; one that is not known is an error */
	WS_TOAST_ABSENT, /* kept; one that is not known is absent */
	WS_TOAST_UNUSED  /* not kept: nobody wants the relation (or the column) */
};

struct ws_decoder_opts {
	struct ws_cathist *cat;
	ws_oid db;
	uint32_t segsize;
	size_t memory;     /* for positions; past it, page maps; 0: 32 MB */
	bool trust_swaps;  /* a table that took another's file is as it was (pg_repack) */
	uint32_t max_value; /* bytes of a value; 0: PostgreSQL's limit */
	bool allow_absent; /* TOAST values that are not known stay absent */
	struct ws_toaststore *toast; /* those of earlier transactions; NULL: only the transaction's own */
	/* Asked for a relation (root: of a partition, or NULL), and with attr when a value of it is not
	 * known.  NULL: WS_TOAST_STOP. */
	enum ws_toast_use (*toast_use)(void *arg, const struct ws_rel *rel, const struct ws_rel *root,
	                               const struct ws_attr *attr);
	void *toast_arg;
	const char *spill; /* folder for what is too much for memory; NULL: TMPDIR */
	ws_lsn skip;       /* transactions whose commit ends at or below are not sent */
	struct ws_oracle *oracle; /* gives text of types that are not decoded; NULL: they go as bytes */
	struct ws_buf *out; /* frames are appended */
	/* Called before a commit that ends at `end` is decoded: waits until the history covers it.
	 * 1 it does, 0 the tool is to stop, -1 error.  NULL: it does. */
	int (*captured)(void *arg, ws_lsn end, struct ws_err *err);
	/* Called when out has grown past flush_at, also inside a transaction; it empties out. */
	int (*flush)(void *arg, struct ws_err *err);
	size_t flush_at;
	void *arg;
};

struct ws_decoder_stats {
	uint64_t records, commits, skipped, aborts, reaped; /* commits: that were sent */
	uint64_t abandoned; /* (sub)transactions that a switch of timeline left unfinished */
	uint64_t inserts, updates, deletes, truncates, replaces, schemas, messages, sequences;
	uint64_t voided; /* rows that a rewrite in the same transaction superseded */
	uint64_t merges; /* position lists turned into page maps */
	uint64_t spills; /* transactions of which only xid and pages were kept */
	uint64_t toast_absent; /* TOAST values that are not known and were left out */
	uint64_t not_sent; /* rows of materialized views and unlogged tables */
	uint64_t unsupported; /* values of types that are not decoded, as bytes */
	size_t memory;   /* bytes of positions now */
	size_t unfinished;
	ws_lsn oldest;   /* first record of the oldest unfinished transaction, 0 none */
	size_t prepared; /* transactions prepared and not decided */
	int64_t prepared_time; /* of the oldest one's PREPARE, 0 none */
	int64_t commit_time; /* of the last commit seen */
};

struct ws_decoder *ws_decoder_new(const struct ws_decoder_opts *o, struct ws_err *err);
void ws_decoder_free(struct ws_decoder *d);

/* Where the segments are: a WAL directory, and single files that take precedence. */
void ws_decoder_dir(struct ws_decoder *d, const char *dir);
void ws_decoder_file(struct ws_decoder *d, const char *path, ws_lsn start);
/* Bytes from `from` (a segment's start) on come from timeline tli's segments. */
void ws_decoder_route(struct ws_decoder *d, ws_tli tli, ws_lsn from);

/* What toast_use says has changed. */
void ws_decoder_reload(struct ws_decoder *d);

/* The next record, in order.  1 taken; 0 not taken, since captured() said stop; -1 error, after
 * which the decoder is good for nothing but free. */
int ws_decoder_record(struct ws_decoder *d, const struct ws_rec *rec, const struct ws_walver *ver,
                      struct ws_err *err);

/* Start of the first remembered record of all unfinished transactions; 0 when there is none. */
ws_lsn ws_decoder_oldest(const struct ws_decoder *d);
/* End of the last commit sent; 0 none. */
ws_lsn ws_decoder_last_commit(const struct ws_decoder *d);
void ws_decoder_get_stats(const struct ws_decoder *d, struct ws_decoder_stats *s);

/* ---- where to start again ---- */

/* Floors: for each position that may be acknowledged, from where WAL has to be read again to send
 * everything above it.  Bounded: neighbours are merged downwards, which is always safe. */
#define WS_FLOORQ_MAX 4096

struct ws_floorq {
	struct ws_floor {
		struct ws_pos at;    /* acknowledged up to here ... */
		struct ws_pos floor; /* ... read again from here */
	} e[WS_FLOORQ_MAX];
	size_t n;
	uint64_t step; /* WAL bytes between entries, doubled when full */
};

void ws_floorq_init(struct ws_floorq *q);
/* at ascends.  floor <= at. */
void ws_floorq_push(struct ws_floorq *q, struct ws_pos at, struct ws_pos floor);
/* The floor for an acknowledged position; forgets what is below it.  False: none known yet. */
bool ws_floorq_take(struct ws_floorq *q, ws_lsn ack, struct ws_pos *floor);

#endif
